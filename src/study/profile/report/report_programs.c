/* SPDX-License-Identifier: MIT */
/* Tables of several programs in one profile: costs of each, and interference between them. */
#include <stdlib.h>

#include "base/mem.h"
#include "study/profile/report/report_in.h"

#define X(name, title) { #name, title, CELL_PERCENT, false },
static const struct column PROGRAMS[] = { { "program", "Program", CELL_TEXT, false },
                                          { "process", "Process", CELL_COUNT, false },
                                          { "addresses", "Addresses", CELL_TEXT, true },
                                          { "finished", "Finished at", CELL_COUNT, false },
                                          { "share", "Time", CELL_SHARE, false },
                                          { "compute", "Compute", CELL_COUNT, false },
                                          { "stall", "Stall", CELL_COUNT, false },
                                          { "fetch", "Fetch", CELL_COUNT, false },
                                          { "stall_share", "Of stall", CELL_PERCENT, false },
                                          { "references", "References", CELL_COUNT, false },
                                          { "misses", "Misses", CELL_COUNT, false },
                                          { "miss_rate", "Rate", CELL_PERCENT, false },
                                          PROFILE_CAUSES(X){ 0 } };
#undef X
static const struct column PAIRS[] = { { "by", "Program", CELL_TEXT, false },
                                       { "how", "What it did", CELL_TEXT, false },
                                       { "of", "Lines of", CELL_TEXT, false },
                                       { "misses", "Misses", CELL_COUNT, false },
                                       { "stall", "Stall", CELL_COUNT, false },
                                       { "stall_share", "Of stall", CELL_SHARE, false },
                                       { 0 } };

static const struct plot PROGRAM_PLOTS[] = { { .kind = PLOT_BARS,
                                               .title = "Time by program",
                                               .over = "program",
                                               .of = "compute stall fetch",
                                               .unit = "cycles",
                                               .least = 1,
                                               .most = 15 },
                                             { 0 } };
static const struct plot PAIR_PLOTS[] = { { .kind = PLOT_MATRIX,
                                            .title = "Which program makes which miss: misses",
                                            .over = "by of",
                                            .of = "misses",
                                            .least = 2,
                                            .most = 10 },
                                          { 0 } };

/* Cycles of a program except stall for data. */
static void program_function_cycles(const struct totals *t, uint32_t process, uint64_t *ret_compute,
                                    uint64_t *ret_fetch)
{
    *ret_compute = *ret_fetch = 0;
    for (uint32_t i = 0; i < t->functions; i++)
        if (t->function[i].process == process) {
            *ret_compute += t->function[i].compute;
            *ret_fetch += t->function[i].fetch;
        }
}

/* The sum over the objects of a process. */
static struct total program_sum_objects(const struct profile_report *r, uint32_t process)
{
    struct total sum = { 0 };

    for (size_t i = 0; i < r->t.by_object_count; i++) {
        const struct total *x = &r->t.by_object[i];
        if (profile_object_process(r->p, x->object) != process)
            continue;
        sum.references += x->references;
        sum.misses += x->misses;
        for (unsigned k = 0; k < CAUSES; k++)
            sum.stall[k] += x->stall[k];
    }
    return sum;
}

/* The cycle in which the last of its threads ended; 0: none has. */
static uint64_t program_end(const struct sim_result *r, uint32_t process)
{
    for (uint32_t i = 0; i < r->programs; i++)
        if (r->program[i].process == process)
            return r->program[i].finished;
    return 0;
}

static void report_put_program_row(struct table *t, const struct profile_report *r, uint32_t process)
{
    const struct profile *p = r->p;
    const struct total sum = program_sum_objects(r, process);
    uint64_t compute, fetch, stall = total_stall(&sum);
    uint32_t number = p->paths.process[process].number;
    char name[PROFILE_PROGRAM];

    program_function_cycles(&r->t, process, &compute, &fetch);
    table_text(t, profile_process_name(p, process, name));
    table_count(t, number);
    table_text(t, p->result.by_frame ? "physical" : "by process");
    uint64_t finished = program_end(&p->result, number);
    finished ? table_count(t, finished) : table_none(t);
    table_real(t, report_part(compute + stall + fetch, report_time(p)));
    table_count(t, compute);
    table_count(t, stall);
    p->fetch ? table_count(t, fetch) : table_none(t);
    table_real(t, report_part(stall, p->stall));
    table_count(t, sum.references);
    table_count(t, sum.misses);
    table_real(t, report_part(sum.misses, sum.references));
    for (unsigned i = 0; i < CAUSES; i++)
        sum.stall[i] ? table_real(t, report_part(sum.stall[i], stall)) : table_none(t);
}

void report_add_programs(struct profile_report *r)
{
    if (r->p->paths.processes < 2)
        return;
    struct table *t = result_table(r->result, "programs", "Time by program", PROGRAMS);
    t->plot = PROGRAM_PLOTS;
    for (uint32_t i = 0; i < r->p->paths.processes; i++)
        report_put_program_row(t, r, i);
    table_note(t, "causes: shares of the row's stall");
    table_note(t,
               r->p->result.by_frame
                   ? "caches see physical addresses, by the frames that the trace tells: processes share lines where "
                     "they share frames"
                   : "each process has an address space of its own: no line is shared between processes, for "
                     "frames are not known, or sets are chosen by addresses (--sets)");
}

/* ---- interference between programs ---- */

/* How a program removed the line that another program missed. */
enum how { HOW_EVICTED, HOW_TAKEN, HOWS };

/* What one program's lines cost another program. */
struct program_pair {
    uint64_t misses, stall; /* lines missed; cycles */
};

/* How the aggressor removed the line, by cause; HOWS: there is no aggressor. */
static enum how removal_of_cause(enum profile_cause cause)
{
    switch (cause) {
    case CAUSE_capacity:
    case CAUSE_conflict: return HOW_EVICTED;
    case CAUSE_true_sharing:
    case CAUSE_false_sharing: return HOW_TAKEN;
    default: return HOWS;
    }
}

/* Sums of pairs with a known aggressor, by `how`, program of the aggressor, program of the victim. To be freed. */
static struct program_pair *program_sum_pairs(const struct profile *p)
{
    size_t n = p->paths.processes;
    struct program_pair *sum = mem_alloc(HOWS * n * n, sizeof *sum);

    for (size_t i = 0; i < p->pairs; i++) {
        const struct interference_pair *q = &p->pair[i];
        enum how how = removal_of_cause((enum profile_cause)q->cause);
        if (how == HOWS || q->by_object == REPORT_UNKNOWN)
            continue;
        size_t by = profile_object_process(p, q->by_object), of = profile_object_process(p, q->object);
        sum[(how * n + by) * n + of].misses += q->misses;
        sum[(how * n + by) * n + of].stall += q->stall;
    }
    return sum;
}

void report_add_program_pairs(struct profile_report *r)
{
    static const char *const hows[HOWS] = { "evicted", "wrote to" };
    uint32_t n = r->p->paths.processes;
    char by[PROFILE_PROGRAM], of[PROFILE_PROGRAM];

    if (n < 2)
        return;
    struct program_pair *sum = program_sum_pairs(r->p);
    struct table *t = result_table(r->result, "program_pairs", "Which program makes which miss", PAIRS);
    t->plot = PAIR_PLOTS;
    for (size_t i = 0; i < (size_t)HOWS * n * n; i++) {
        if (sum[i].misses == 0)
            continue;
        table_text(t, profile_process_name(r->p, (uint32_t)(i / n % n), by));
        table_text(t, hows[i / n / n]);
        table_text(t, profile_process_name(r->p, (uint32_t)(i % n), of));
        table_count(t, sum[i].misses);
        table_count(t, sum[i].stall);
        table_real(t, report_part(sum[i].stall, r->p->stall));
    }
    table_note(t,
               "misses of lines that the first program evicted, or wrote to, counted where the second one missed them; "
               "a cold miss has no first program");
    free(sum);
}
