/* SPDX-License-Identifier: MIT */
/* Any bytes as a trace, or as the text of one, on the whole way: check, all studies, simulations, profiles from all
 * references and from samples, their exports and their difference, each in all views.
 *
 * A few bytes can stand for a program of years; so what is long is left out. */
#include "fuzz.h"

#include "format/check/check.h"
#include "map/source/source_sample.h"
#include "sim/engine/sim.h"
#include "study/profile/sampling/estimate_profile.h"
#include "study/profile/profiler.h"
#include "study/profile/export/export.h"
#include "study/profile/profile.h"
#include "study/study.h"
#include "view/view.h"

enum { RECORDS = 3000, BYTES = 1 << 16, THREADS = 64 };
static const char *const MACHINES[] = { "core", "sato1999", "memspy-16k", "modern" };

/* Library code that refers to many bytes, and gaps, stand for as much. */
static bool is_long(const struct peet_event *e)
{
    bool is_range = e->kind >= PEET_EV_range_read && e->kind <= PEET_EV_range_compare;

    return (is_range || e->kind == PEET_EV_gap) && e->arg[peet_event_arity(e->kind) - 1] > BYTES;
}

/* Whether the trace has few records, each of few bytes. */
static bool is_short(struct peet_trace *t)
{
    struct peet_cursor *c;
    struct peet_batch b;
    struct peet_err err;
    size_t records = 0, bytes = 0;
    bool is_short = !peet_trace_thread(t, THREADS) && peet_cursor_open(t, PEET_ALL_THREADS, 0, &c, &err) == 0;

    if (!is_short)
        return false;
    for (int r = 1; is_short && r != 0;) {
        r = peet_cursor_next(c, &b, &err);
        records += r == 1 ? b.count : 1;
        for (size_t i = 0; r == 1 && i < b.count; i++) {
            const struct peet_record *x = &b.records[i];
            bytes += peet_is_reference(x) ? x->size : 0;
            is_short &= x->kind != PEET_EVENT || !is_long(&b.events[x->id]);
        }
        is_short &= records < RECORDS && bytes < BYTES;
    }
    peet_cursor_free(c);
    return is_short;
}

static void show(const struct result *r)
{
    struct view_style style = { .bars = true, .width = 80 };
    struct peet_err err;
    FILE *out = fopen("/dev/null", "w");

    for (size_t i = 0; out && view_at(i); i++)
        if (view_show_in(view_at(i)->name, r, &style, out, &err) < 0)
            abort();
    fclose(out);
}

static void found(const struct check_finding *f, void *context)
{
    *(size_t *)context += strlen(f->text);
}

static void note(const char *text, void *context)
{
    *(size_t *)context += strlen(text);
}

static void study(struct peet_trace *t, bool other)
{
    size_t sum = 0;
    struct check_config check = { .most = 3, .found = found, .note = note, .context = &sum };
    struct check_totals totals;
    struct peet_err err;

    fuzz_check(check_trace(t, &check, &totals, &err), &err);
    for (size_t i = 0; study_at(i); i++) {
        const struct study *s = study_at(i);
        struct study_state *state = study_state_new(s);
        struct study_answer a;
        for (const struct opt *o = s->options; o && o->name && other; o++) {
            if (o->type == OPT_FLAG)
                *(bool *)study_option(s, state, o->name) = true;
            if (strcmp(o->name, "grain") == 0)
                *(uint64_t *)study_option(s, state, o->name) = 64;
        }
        if (fuzz_check(study_run(s, state, t, &a, NULL, &err), &err) == 0) {
            show(&a.result);
            study_release(&a);
        }
        study_state_free(state);
    }
}

static void simulate(struct peet_trace *t, const struct machine_config *c)
{
    struct source *source = NULL;
    struct sim *s = NULL;
    struct sim_result result;
    struct peet_err err = { 0 };

    if (fuzz_check(source_open_trace(t, true, &source, &err), &err) == 0
        && fuzz_check(sim_new(c, source, &s, &err), &err) == 0 && fuzz_check(sim_run(s, NULL, &err), &err) == 0) {
        sim_result(s, &result);
        sim_result_release(&result);
    }
    sim_free(s);
    source_free(source);
}

static struct profile *profile(struct peet_trace *t, const struct machine_config *c, struct sample_config *sampling,
                               struct source **ret)
{
    struct profiler *p = NULL;
    struct peet_err err = { 0 };

    if (sampling && fuzz_check(sampled_geometry(c, sampling, &err), &err) < 0)
        return NULL;
    if (fuzz_check(profiler_open_trace(t, c, sampling, ret, &p, &err), &err) == 0
        && fuzz_check(profiler_run(p, NULL, NULL, &err), &err) == 0)
        return profiler_take(p);
    profiler_free(p);
    return NULL;
}

static void report(const struct profile *p)
{
    struct profile_wants wants = { .top = 5 };
    struct result r = { 0 };
    FILE *out = fopen("/dev/null", "w");

    profile_report(p, &wants, &r);
    show(&r);
    result_release(&r);
    if (out && !p->sampled) {
        profile_callgrind(p, out);
        profile_stacks(p, out);
    }
    fclose(out);
}

static void profile_all(struct peet_trace *t, const struct machine_config *c)
{
    struct sample_config sampling = { .length = 20, .every = 60, .seed = 1, .one_in = 1 };
    struct source *source[2] = { NULL, NULL };
    struct profile *p[2] = { profile(t, c, NULL, &source[0]), profile(t, c, &sampling, &source[1]) };

    for (int i = 0; i < 2; i++)
        if (p[i])
            report(p[i]);
    if (p[0]) {
        struct profile_wants wants = { .top = 5 };
        struct result r = { 0 };
        profile_diff(p[0], p[0], &wants, &r);
        show(&r);
        result_release(&r);
    }
    for (int i = 0; i < 2; i++) {
        profile_free(p[i]);
        source_free(source[i]);
    }
}

/* Chosen by the input: one machine, and how studies are asked. */
static void go(const char *path, size_t choice)
{
    static struct machine_config machine[sizeof MACHINES / sizeof *MACHINES];
    struct peet_trace *t;
    struct peet_err err;

    size_t which = choice % (sizeof MACHINES / sizeof *MACHINES);

    if (!machine[which].cpus
        && config_load(&machine[which], MACHINES[which], (const char *[]){ "cpus=2" }, which > 0, &err) < 0)
        abort();
    if (fuzz_check(peet_trace_open(path, &t, &err), &err) < 0)
        return;
    if (is_short(t)) {
        study(t, choice / 16 % 2);
        simulate(t, &machine[which]);
        profile_all(t, &machine[which]);
    }
    peet_trace_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] = "peet text";
    bool is_text = size > sizeof text && !memcmp(data, text, sizeof text - 1);
    char path[FUZZ_PATH];
    int fd = fuzz_file(data, is_text ? 0 : size, path);

    if (is_text) {
        struct peet_writer *w;
        struct peet_err err;
        FILE *in = fmemopen((void *)(uintptr_t)data, size, "r");
        if (!in || peet_writer_open_fd(fd, NULL, &w, &err) < 0)
            abort();
        fuzz_check(text_read(in, "input", w, &err), &err);
        peet_writer_close(w, NULL);
        fclose(in);
    }
    size_t choice = 0;
    for (size_t i = 0; i < size; i++)
        choice += data[i];
    go(path, choice);
    close(fd);
    return 0;
}
