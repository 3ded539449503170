/* SPDX-License-Identifier: MIT */
/* Studies that observe a run: together they see what each of them sees alone. */
#include <string.h>

#include "study/profile/profile_study.h"
#include "study/run_report.h"
#include "tests/unit/study_program.h"

static void every_run_study_has_a_unique_name_and_a_summary(void)
{
    for (size_t i = 0; run_study_at(i); i++) {
        const struct run_study *s = run_study_at(i);
        CHECK(s->summary && *s->summary && s->begin && s->end && s->report && s->state_size);
        for (size_t k = 0; k < i; k++)
            CHECK(strcmp(run_study_at(k)->name, s->name) != 0);
    }
}

/* The program on a machine, observed by n studies, whose tables go to result[]. */
static bool observe(const struct machine_config *machine, const struct run_study *const *study, size_t n,
                    struct result *result)
{
    struct run_observer observer[2];
    struct source *source = NULL, *inner;
    struct peet_trace *t;
    struct peet_err err;

    if (!fine(peet_trace_open(path_of("a"), &t, &err), &err))
        return false;
    for (size_t i = 0; i < n; i++) {
        observer[i] = (struct run_observer){ study[i], run_study_state_new(study[i], NULL) };
        if (study[i] == &run_study_report)
            run_report_study(observer[i].state, 0);
    }
    bool ok = fine(source_open_trace(t, false, &inner, &err), &err)
              && fine(run_studies_open(observer, n, machine, inner, &source, &err), &err);
    struct observed_run run = { .machine = machine, .source = source, .is_last = true };
    ok = ok && fine(run_studies_play(observer, n, &run, &(struct run_play){ 0 }, &err), &err);
    if (ok)
        run_studies_end(observer, n, &run);
    for (size_t i = 0; i < n; i++) {
        if (ok)
            study[i]->report(observer[i].state, &result[i]);
        run_study_state_free(study[i], observer[i].state);
    }
    source_free(source);
    peet_trace_free(t);
    return ok;
}

static bool same_cell(enum cell_type type, const struct cell *a, const struct cell *b)
{
    if (a->empty || b->empty)
        return a->empty == b->empty;
    return cell_is_text(type)   ? !strcmp(a->text, b->text)
           : cell_is_real(type) ? a->real == b->real
                                : a->count == b->count;
}

static size_t compare_results(const struct result *x, const struct result *y)
{
    const struct table *a = x->first, *b = y->first;
    size_t cells = 0;

    for (; a && b; a = a->next, b = b->next) {
        if (!CHECK_EQ(a->name, b->name) || !CHECK_EQ(a->rows, b->rows))
            return 0;
        for (size_t i = 0; i < a->rows * a->columns; i++, cells++)
            if (!CHECK(same_cell(a->column[i % a->columns].type, &a->cell[i], &b->cell[i])))
                printf("# table %s, cell %zu\n", a->name, i);
    }
    CHECK(!a && !b);
    return cells;
}

static size_t count_tables(const struct result *r)
{
    size_t n = 0;

    for (const struct table *t = r->first; t; t = t->next)
        n++;
    return n;
}

static void studies_of_one_run_see_what_each_of_them_sees_alone(void)
{
    static const struct run_study *const BOTH[] = { &run_study_report, &run_study_profile };
    static const char *const MACHINES[] = { "modern", "sato1999", "core", "memspy-128k" };

    program_begin(3);
    create_all(3);
    for (unsigned k = 0; k < 200; k++)
        for (unsigned i = 2; i <= 3; i++) {
            does(i, "mutex_lock 0x500040");
            does(i, "b3 0x%x", 0x500000 + 16 * (k % 13) + 8 * (i - 2));
            does(i, "mutex_unlock 0x500040");
            does(i, "b2 0x%x", 0x600000 + 64 * k);
        }
    join_all(3);
    if (!program_end(3))
        return;
    for (size_t m = 0; m < sizeof MACHINES / sizeof *MACHINES; m++) {
        struct result together[2] = { { 0 } }, alone[2] = { { 0 } };
        struct machine_config machine;
        struct peet_err err;
        if (!fine(config_load(&machine, MACHINES[m], NULL, 0, &err), &err))
            return;
        bool ok = observe(&machine, BOTH, 2, together);
        for (unsigned i = 0; i < 2; i++) {
            ok = ok && observe(&machine, BOTH + i, 1, &alone[i]);
            if (ok)
                CHECK(compare_results(&together[i], &alone[i]) > 20);
            result_release(&alone[i]);
        }
        size_t tables = count_tables(&together[0]) + count_tables(&together[1]);
        result_append(&together[0], &together[1]);
        CHECK_EQ(count_tables(&together[0]), tables);
        CHECK(!together[1].first && !together[0].last->next);
        result_release(&together[0]);
        CHECK(ok);
    }
}

/* Numbers of what an observer received, and a sum over it that depends on the order. */
struct received {
    uint64_t blocks, references, hits, events, sum;
};

static void received_block(void *self, uint32_t thread, const struct peet_record *block, uint64_t cycles,
                           uint64_t fetch)
{
    struct received *x = self;

    x->blocks++;
    x->sum = x->sum * 31 + thread + block->addr + cycles + fetch;
}

static uint32_t received_tag(void *self, const struct sim_reference *r)
{
    (void)self;
    return r->insn + 2;
}

static void received_reference(void *self, const struct sim_reference *r)
{
    struct received *x = self;

    x->references++;
    x->sum = x->sum * 31 + r->addr + r->now + r->outcome.removed_by;
}

static void received_hit(void *self, uint32_t thread, unsigned cpu, const struct peet_record *r, uint64_t at)
{
    struct received *x = self;

    x->hits++;
    x->sum = x->sum * 31 + thread + cpu + r->addr + at;
}

static void received_event(void *self, uint32_t thread, const struct peet_event *e)
{
    struct received *x = self;

    x->events++;
    x->sum = x->sum * 31 + thread + e->kind;
}

/* The program on machine `sato1999`, with n observers, of which only the first has tags. */
static bool receive(struct received *x, size_t n)
{
    struct sim_observer o[3];
    struct machine_config machine;
    struct source *source = NULL;
    struct peet_trace *t;
    struct sim *sim = NULL;
    struct peet_err err;

    if (!fine(config_load(&machine, "sato1999", NULL, 0, &err), &err)
        || !fine(peet_trace_open(path_of("a"), &t, &err), &err))
        return false;
    bool ok =
        fine(source_open_trace(t, false, &source, &err), &err) && fine(sim_new(&machine, source, &sim, &err), &err);
    for (size_t i = 0; ok && i < n; i++) {
        o[i] = (struct sim_observer){ &x[i],        received_block, i ? NULL : received_tag, received_reference,
                                      received_hit, received_event };
        sim_add_observer(sim, &o[i]);
    }
    ok = ok && fine(sim_run(sim, NULL, &err), &err);
    sim_free(sim);
    source_free(source);
    peet_trace_free(t);
    return ok;
}

static void every_observer_of_a_run_receives_what_a_single_one_does(void)
{
    struct received alone = { 0 }, together[3] = { { 0 } };

    program_begin(2);
    create_all(2);
    for (unsigned k = 0; k < 500; k++) {
        does(2, "b3 0x%x", 0x500000 + 8 * (k % 700));
        does(2, "mutex_lock 0x500040");
        does(2, "b2 0x%x", 0x600000 + 4096 * (k % 90));
        does(2, "mutex_unlock 0x500040");
    }
    join_all(2);
    if (!program_end(2) || !receive(&alone, 1) || !receive(together, 3)) {
        CHECK(false);
        return;
    }
    CHECK(alone.blocks >= 1000 && alone.references > 90 && alone.hits && alone.events > 1000);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(together[i].blocks, alone.blocks);
        CHECK_EQ(together[i].references, alone.references);
        CHECK_EQ(together[i].hits, alone.hits);
        CHECK_EQ(together[i].events, alone.events);
        CHECK_EQ(together[i].sum, alone.sum);
    }
}

int main(void)
{
    if (!begin())
        return 1;
    RUN(every_run_study_has_a_unique_name_and_a_summary);
    RUN(studies_of_one_run_see_what_each_of_them_sees_alone);
    RUN(every_observer_of_a_run_receives_what_a_single_one_does);
    return end();
}
