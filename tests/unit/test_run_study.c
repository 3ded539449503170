/* SPDX-License-Identifier: MIT */
/* Studies that observe a run: together they see what each of them sees alone. */
#include <string.h>

#include "study/profile/profile_study.h"
#include "study/run_report.h"
#include "tests/unit/study_program.h"

static void every_run_study_has_a_name_of_its_own_and_a_summary(void)
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
            result_release(&together[i]);
        }
        CHECK(ok);
    }
}

int main(void)
{
    if (!begin())
        return 1;
    RUN(every_run_study_has_a_name_of_its_own_and_a_summary);
    RUN(studies_of_one_run_see_what_each_of_them_sees_alone);
    return end();
}
