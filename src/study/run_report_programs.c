/* SPDX-License-Identifier: MIT */
/* Tables of several programs on one machine: times and misses of each, and evictions between them. */
#include "study/run_report.h"

static const struct column PROGRAMS[] = { { "program", "Program", CELL_TEXT, false },
                                          { "process", "Process", CELL_COUNT, false },
                                          { "addresses", "Addresses", CELL_TEXT, true },
                                          { "threads", "Threads", CELL_COUNT, false },
                                          { "finished", "Finished at", CELL_COUNT, false },
                                          { "instructions", "Instructions", CELL_COUNT, false },
/* Idle time is no program's. */
#define X(name, title) { #name, title, CELL_COUNT, TIME_##name == TIME_idle },
                                          TIME_KINDS(X)
#undef X
                                              { "references", "References", CELL_COUNT, false },
                                          { "misses", "Misses", CELL_COUNT, false },
                                          { "miss_rate", "Miss rate", CELL_PERCENT, false },
#define X(name, title) { #name, title, CELL_COUNT, false },
                                          MISS_CAUSES(X)
#undef X
                                              { "from_caches", "from caches", CELL_COUNT, false },
                                          { "tlb_misses", "TLB misses", CELL_COUNT, true },
                                          { 0 } };

static const struct column EVICTIONS[] = { { "by", "Evicting program", CELL_TEXT, false },
                                           { "of", "Evicted lines of", CELL_TEXT, false },
                                           { "private", "Out of a processor's caches", CELL_COUNT, false },
                                           { "shared", "Out of the shared cache", CELL_COUNT, true },
                                           { 0 } };

/* clang-format off */
#define X(name, title) #name " "
static const struct plot PROGRAMS_PLOTS[] = {
    { PLOT_STACK, "What each program's cycles went into", "program", TIME_KINDS(X), .unit = "Cycles" },
    { PLOT_STACK, "Misses of each program by their causes", "program", MISS_CAUSES(X), .unit = "Misses" },
    { 0 },
};
#undef X
static const struct plot EVICTIONS_PLOTS[] = {
    { PLOT_MATRIX, "Lines evicted from a processor's own caches", "by of", "private", .least = 2 },
    { 0 },
};
/* clang-format on */

static void run_report_add_program(struct table *t, const struct machine_config *c, const struct sim_result *r,
                                   const struct sim_program *p)
{
    const struct memory_counts *n = &p->memory;
    uint64_t references = n->misses;

    for (unsigned i = 0; i < CONFIG_LEVELS && !c->level[i].is_shared; i++)
        references += n->hits[i];
    table_text(t, p->name);
    table_count(t, p->process);
    table_text(t, r->by_frame ? "physical" : "by process");
    table_count(t, p->threads);
    p->finished ? table_count(t, p->finished) : table_none(t);
    table_count(t, p->account.instructions);
    for (unsigned i = 0; i < TIME_COUNT; i++)
        table_count(t, p->account.time[i]);
    table_count(t, references);
    table_count(t, n->misses);
    table_real(t, references ? (double)n->misses / (double)references : 0);
    for (unsigned i = 0; i < MISS_KINDS; i++)
        table_count(t, n->causes[i]);
    table_count(t, n->from_caches);
    table_count(t, n->tlb_misses);
}

static void run_report_add_evictions(struct result *out, const struct sim_result *r)
{
    struct table *t = result_table(out, "evictions", "Evictions between programs", EVICTIONS);

    t->plot = EVICTIONS_PLOTS;
    for (uint32_t i = 0; i < r->programs; i++)
        for (uint32_t k = 0; k < r->programs; k++) {
            const struct sim_evictions *e = &r->evictions[(size_t)i * r->programs + k];
            if (e->private + e->shared == 0)
                continue;
            table_text(t, r->program[i].name);
            table_text(t, r->program[k].name);
            table_count(t, e->private);
            table_count(t, e->shared);
        }
    table_note(t, "A line belongs to the program for which a processor missed it last. Pairs without evictions are "
                  "left out.");
}

void run_report_add_programs(struct run_report *m, const struct machine_config *c, const struct sim_result *r)
{
    if (r->programs == 0)
        return;
    struct table *t =
        result_table(&m->result, "programs", "What each program's time went into, and its misses", PROGRAMS);
    t->plot = PROGRAMS_PLOTS;
    for (uint32_t i = 0; i < r->programs; i++)
        run_report_add_program(t, c, r, &r->program[i]);
    table_note(t, r->by_frame
                      ? "Caches see physical addresses, by the frames that the trace has: processes share "
                        "lines where they share frames. Instructions are looked up by process."
                      : "Each process has an address space of its own: no line is shared between processes, for "
                        "the trace has no frames.");
    table_note(t,
               "Columns from compute to switching add up to the cycles in which the program's threads had a hardware "
               "context, or had it last and waited.");
    run_report_add_evictions(&m->result, r);
}
