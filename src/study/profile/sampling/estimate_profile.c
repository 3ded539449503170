/* SPDX-License-Identifier: MIT */
/* A sampled profile while windows are simulated. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "map/source/set_sample.h"
#include "sim/exec/exec_blocks.h"
#include "study/profile/sampling/estimate_whole.h"

/* ---- life ---- */

static const struct level_config *last_private(const struct machine_config *m)
{
    const struct level_config *last = NULL;

    for (unsigned i = 0; i < CONFIG_LEVELS && m->level[i].bytes && !m->level[i].is_shared; i++)
        last = &m->level[i];
    return last;
}

int sampled_geometry(const struct machine_config *machine, struct sample_config *ret, struct peet_err *err)
{
    const struct level_config *level = last_private(machine);
    uint64_t sets = level ? level->bytes / level->line / level_ways(level) : 0;

    if (!level)
        return err_set(
            err, PEET_ERR_USAGE,
            "machine %s: a processor with a cache of its own was expected for sampling; choose another one, or no --sample",
            machine->name);
    if (sets & (sets - 1))
        return err_set(err, PEET_ERR_USAGE,
                       "machine %s: %" PRIu64
                       " sets in a processor's last own cache; a power of two was expected for sampling",
                       machine->name, sets);
    ret->line_bytes = level->line;
    ret->sets = ret->one_in > 1 ? sets : 0;
    return 0;
}

/* Draws the groups of sets at random, as sampled sets are drawn. Neighbouring sets are alike: groups of sets in their order would differ less than random samples of sets do. */
static int sampled_draw_groups(struct sampled *s, uint64_t sets, struct peet_err *err)
{
    uint8_t *group = mem_alloc(sets, sizeof *group);
    int r = set_sample_groups(sets, s->config.seed, ESTIMATE_GROUPS, group) < 0
                ? err_set(err, PEET_ERR_MEMORY, "no memory for the sets of a sample")
                : 0;

    for (unsigned i = 0; i < s->cpus && r == 0; i++)
        estimate_set_groups(s->core[i].estimate, group);
    free(group);
    return r;
}

int sampled_new(const struct machine_config *machine, struct source *source, const struct objects *objects,
                const struct sample_config *config, struct sampled **ret, struct peet_err *err)
{
    const struct level_config *level = last_private(machine);
    uint64_t length = config->most ? config->most : config->length;
    struct estimate_config cache = { level->bytes / level->line / level_ways(level), level_ways(level),
                                     config->every ? length : UINT32_MAX };
    struct sampled *s = mem_alloc(1, sizeof *s);
    bool has_sets = config->sets && config->one_in > 1;
    int r = 0;

    if (has_sets) /* time is counted in references to sampled sets */
        cache.length = cache.length / config->one_in + 1;
    s->unknown.value_size = sizeof(uint64_t);
    s->source = source;
    s->objects = objects;
    s->has_footprint = machine->cpus == 1;
    if (s->has_footprint)
        footprint_init(&s->footprint, level->bytes, level_ways(level));
    s->config = *config;
    s->cpus = machine->cpus;
    s->core = mem_alloc(machine->cpus, sizeof *s->core);
    for (unsigned i = 0; i < s->cpus && r == 0; i++)
        r = estimate_new(&cache, &s->core[i].estimate, err);
    if (r == 0 && has_sets)
        r = sampled_draw_groups(s, cache.sets, err);
    if (r < 0) {
        sampled_free(s);
        return r;
    }
    *ret = s;
    return 0;
}

void sampled_free(struct sampled *s)
{
    if (!s)
        return;
    for (unsigned i = 0; i < s->cpus; i++) {
        if (s->core[i].is_open)
            estimate_end(s->core[i].estimate, 0);
        estimate_free(s->core[i].estimate);
    }
    footprint_release(&s->footprint);
    map_release(&s->observed_lines);
    map_release(&s->unknown);
    free(s->core);
    free(s->gaps);
    free(s->object);
    free(s);
}

/* ---- while it runs ---- */

static uint64_t *sampled_gaps(struct sampled *s, uint32_t thread)
{
    while (s->threads <= thread) {
        s->gaps = mem_room(s->gaps, s->threads, sizeof *s->gaps);
        s->gaps[s->threads++] = 0;
    }
    return &s->gaps[thread];
}

static double sampled_clock(const struct sampled *s, const struct core_estimator *f)
{
    return s->machine ? (double)sim_clock(s->machine, (unsigned)(f - s->core)) : 0;
}

void sampled_close(struct sampled *s, struct core_estimator *f)
{
    if (!f->is_open)
        return;
    if (s->by_blocks)
        estimate_add_references(f->estimate, sampled_counts(s).observed - f->observed_before);
    estimate_add_time(f->estimate, sampled_clock(s, f) - f->began);
    estimate_end(f->estimate, 0);
    f->is_open = false;
}

void sampled_gap(struct sampled *s, uint32_t thread, const struct peet_event *e)
{
    if (!s->by_blocks) {
        ++*sampled_gaps(s, thread);
        return;
    }
    sampled_close(s, &s->core[0]);
    s->core[0].thread = thread;
    if (e->args) /* without arguments, the source passed references over, and has counted them */
        sample_add_gap(s->source, thread, e->arg[1]);
}

void sampled_event(struct sampled *s, uint32_t process, const struct peet_event *e)
{
    if (s->has_footprint)
        footprint_event(&s->footprint, process, e);
}

/* A window of a thread begins on a processor. */
static void sampled_begin_window(const struct sampled *s, const struct core_estimator *f)
{
    uint64_t length = s->config.most ? sample_window_length(s->source, f->thread) : 0;

    if (length && s->config.sets && s->config.one_in > 1)
        length = length / s->config.one_in + 1;
    if (length)
        estimate_begin_length(f->estimate, length);
    else
        estimate_begin(f->estimate);
}

static struct core_estimator *sampled_enter_window(struct sampled *s, const struct sampled_reference *r)
{
    struct core_estimator *f = &s->core[r->cpu];
    uint64_t gaps = *sampled_gaps(s, r->thread);

    if (f->is_open && f->thread == r->thread && f->gaps == gaps)
        return f;
    sampled_close(s, f);
    *f = (struct core_estimator){ f->estimate, true, r->thread, gaps, 0, 0, sampled_clock(s, f) };
    sampled_begin_window(s, f);
    return f;
}

bool sampled_was_touched(const struct sampled *s, const struct sim_reference *r)
{
    return sample_was_touched(s->source, r->thread, r->own_line);
}

enum estimate_outcome sampled_refer(struct sampled *s, const struct sampled_reference *r, uint32_t object)
{
    struct core_estimator *f = sampled_enter_window(s, r);
    uint64_t now = r->is_first ? f->now++ : f->now - 1;
    enum estimate_outcome result = estimate_refer(f->estimate, r->line, object, now);

    if (!r->is_first)
        estimate_join_line(f->estimate, object, r->line);
    if (result == OUTCOME_HIT)
        return result;
    size_t before = s->observed_lines.count;
    void *there = map_put(&s->observed_lines, r->line, s->source->thread[r->thread].process);
    assert(there); /* as small as the lines that windows refer to */
    s->maybe_cold += s->observed_lines.count != before && sample_has_gaps(s->source);
    if (s->observed_lines.count != before)
        estimate_add_fresh(f->estimate, object);
    if (result == OUTCOME_MISS || s->observed_lines.count == before
        || sample_was_touched(s->source, r->thread, r->own_line))
        return result;
    estimate_set_cold(f->estimate, r->line, object, now);
    return OUTCOME_MISS;
}

void sampled_unknown(struct sampled *s, uint32_t object, uint32_t path)
{
    uint64_t *count = map_put(&s->unknown, path, object);

    assert(count);
    ++*count;
}

/* ---- from the block engine ---- */

void sampled_begin(struct sampled *s, const struct sim *machine)
{
    s->machine = machine;
}

void sampled_observe_blocks(struct sampled *s)
{
    assert(s->cpus == 1 && s->source->kind->words);
    s->by_blocks = true;
}

static struct core_estimator *sampled_window_at(struct sampled *s, uint64_t number)
{
    struct core_estimator *f = &s->core[0];

    if (!f->is_open) {
        *f = (struct core_estimator){ .estimate = f->estimate, .is_open = true, .thread = f->thread, .now = number };
        f->observed_before = sampled_counts(s).observed;
        f->began = sampled_clock(s, f);
        sampled_begin_window(s, f);
    }
    return f;
}

/* Finds the time of the last use of a line in the sample. */
struct use_clock {
    struct exec_blocks *by; /* the executor that has the times */
    uint64_t from;          /* number of the sample's first reference */
};

static uint64_t sampled_last_use(const void *context, uint64_t line)
{
    const struct use_clock *c = context;
    uint64_t last = blocks_last_use(c->by, line);

    return last > c->from ? last - c->from : 0;
}

bool sampled_classify(struct sampled *s, struct exec_blocks *by, uint32_t object, uint64_t line, bool is_new,
                      uint64_t number)
{
    struct core_estimator *f = sampled_window_at(s, number);
    const struct use_clock at = { by, f->now };
    const struct estimate_clock use = { number - f->now, 0, sampled_last_use, &at };
    enum estimate_outcome result = estimate_miss(f->estimate, line, object, &use);

    bool may_be_cold = is_new && sample_has_gaps(s->source);
    if (is_new)
        estimate_add_fresh(f->estimate, object);
    s->maybe_cold += may_be_cold;
    if (result != OUTCOME_UNKNOWN || !is_new || may_be_cold)
        return result != OUTCOME_UNKNOWN;
    estimate_set_cold(f->estimate, line, object, number - f->now); /* no reference of the run was left out */
    return true;
}

void sampled_use(struct sampled *s, struct exec_blocks *by, uint64_t line, uint64_t number, uint64_t wait)
{
    struct core_estimator *f = &s->core[0];
    const struct use_clock at = { by, f->now };

    if (f->is_open && number > f->now)
        estimate_use(f->estimate, line, &(struct estimate_clock){ number - f->now, wait, sampled_last_use, &at });
}

void sampled_add_log(struct sampled *s, const struct sample_entry *log, size_t n)
{
    while (n > 0 && !s->core[0].is_open && log->what & SAMPLE_USE) { /* of lines that a lock has filled */
        log++;
        n--;
    }
    if (n > 0) {
        const struct core_estimator *f = sampled_window_at(s, log->number);
        s->maybe_cold += estimate_add_log(f->estimate, log, n, f->now);
    }
}

void sampled_add_misses(struct sampled *s, uint32_t object, uint64_t misses)
{
    estimate_add_misses(sampled_window_at(s, s->core[0].now)->estimate, object, misses);
}

void sampled_add_cold(struct sampled *s, uint64_t maybe_cold)
{
    s->maybe_cold += maybe_cold;
}

struct logged_sets sampled_choose_logged_sets(struct sampled *s)
{
    return estimate_choose_logged_sets(s->core[0].estimate);
}
