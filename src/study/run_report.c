/* SPDX-License-Identifier: MIT */
#include "study/run_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

enum { OBJECTS_SHOWN = 100, TIME_BINS_SHOWN = 64 };

/* "whole", or "part": the run was stopped before its end. */
#define EXTENT \
    { \
        "extent", "Extent", CELL_TEXT, true \
    }

static const struct column RUNS[] = { { "machine", "Machine", CELL_TEXT, true },
                                      { "processors", "Processors", CELL_COUNT, false },
                                      { "threads", "Threads", CELL_COUNT, false },
#define X(name, title, type) { #name, title, type, false },
                                      RUN_MEASURES(X)
#undef X
                                          EXTENT,
                                      { 0 } };

static const struct column MEANS[] = { { "machine", "Machine", CELL_TEXT, true },
                                       { "processors", "Processors", CELL_COUNT, false },
                                       { "threads", "Threads", CELL_COUNT, false },
                                       { "seeds", "Seeds", CELL_COUNT, true },
#define X(name, title, type) { #name, title, type, false }, { #name "_error", "±", type, false },
                                       RUN_MEASURES(X)
#undef X
                                           { 0 } };

static const struct column SINGLE[] = { { "machine", "Machine", CELL_TEXT, true },
                                        { "processors", "Processors", CELL_COUNT, false },
                                        { "seed", "Seed", CELL_COUNT, false },
                                        { "threads", "Threads", CELL_COUNT, true },
#define X(name, title, type) { #name, title, type, false },
                                        RUN_MEASURES(X)
#undef X
                                            EXTENT,
                                        { 0 } };

static const enum cell_type MEASURE_TYPE[MEASURES] = {
#define X(name, title, type) type,
    RUN_MEASURES(X)
#undef X
};

static const struct column TIMES[] = { { "processor", "Processor", CELL_COUNT, false },
                                       { "instructions", "Instructions", CELL_COUNT, false },
#define X(name, title) { #name, title, CELL_COUNT, false },
                                       TIME_KINDS(X)
#undef X
                                           { "switches", "Switches", CELL_COUNT, false },
                                       { 0 } };

static const struct column MEMORY[] = { { "processor", "Processor", CELL_COUNT, false },
                                        { "reads", "Reads", CELL_COUNT, false },
                                        { "writes", "Writes", CELL_COUNT, false },
                                        { "hits_l1", "In L1", CELL_COUNT, false },
                                        { "hits_l2", "In L2", CELL_COUNT, true },
                                        { "hits_l3", "In L3", CELL_COUNT, true },
                                        { "misses", "Misses", CELL_COUNT, false },
#define X(name, title) { #name, title, CELL_COUNT, false },
                                        MISS_CAUSES(X)
#undef X
                                            { "from_caches", "from caches", CELL_COUNT, false },
                                        { "upgrades", "Upgrades", CELL_COUNT, false },
                                        { "updates", "Updates", CELL_COUNT, true },
                                        { "invalidations", "Invalidated", CELL_COUNT, false },
                                        { "write_backs", "Written back", CELL_COUNT, false },
                                        { "throughs", "Written through", CELL_COUNT, true },
                                        { "tlb_misses", "TLB misses", CELL_COUNT, true },
                                        { "fetch_misses", "Fetch misses", CELL_COUNT, true },
                                        { 0 } };

static const struct column OBJECTS[] = { { "kind", "Kind", CELL_TEXT, false },
                                         { "address", "Address", CELL_HEX, false },
                                         { "name", "Name", CELL_TEXT, false },
                                         { "uses", "Uses", CELL_COUNT, false },
                                         { "waits", "Waits", CELL_COUNT, false },
                                         { "waited", "Cycles waited", CELL_COUNT, false },
                                         { "spent", "On processors", CELL_COUNT, false },
                                         { "longest", "Longest wait", CELL_COUNT, false },
                                         { "held", "Cycles held", CELL_COUNT, false },
                                         { 0 } };

static const struct column USE[] = { { "from", "From cycle", CELL_COUNT, false },
                                     { "busy", "Busy", CELL_PERCENT, false },
                                     { 0 } };

/* clang-format off */
static const struct plot RUNS_PLOTS[] = {
    { PLOT_LINES, "Speed-up (dashed: ideal)", "processors", "speed_up", .error = "speed_up_error", .ideal = true, .least = 2 },
    { PLOT_LINES, "Cycles", "processors", "cycles", .error = "cycles_error", .least = 2 },
    { PLOT_LINES, "How busy the fabric was", "processors", "utilisation", .error = "utilisation_error", .least = 2 },
    { 0 },
};
#define X(name, title) #name " "
static const struct plot TIMES_PLOTS[] = {
    { PLOT_STACK, "What each processor's cycles went into", "processor", TIME_KINDS(X), .unit = "Cycles" },
    { 0 },
};
static const struct plot MEMORY_PLOTS[] = {
    { PLOT_STACK, "Misses of each processor by their causes", "processor", MISS_CAUSES(X), .unit = "Misses" },
    { 0 },
};
#undef X
static const struct plot OBJECTS_PLOTS[] = {
    { PLOT_BARS, "Cycles waited, all threads together", "kind name address", "waited", .most = 12 },
    { PLOT_BARS, "Longest wait, cycles", "kind name address", "longest", .most = 12 },
    { 0 },
};
static const struct plot USE_PLOTS[] = {
    { PLOT_STEPS, "How busy the fabric was over time", "from", "busy", .least = 2 },
    { 0 },
};
/* clang-format on */

void run_report_init(struct run_report *m, uint64_t seeds)
{
    *m = (struct run_report){ .time_bins = TIME_BINS_SHOWN, .seeds = seeds };
    m->first_cycles = mem_alloc(seeds ? seeds : 1, sizeof *m->first_cycles);
    m->sc_cycles = mem_alloc(seeds ? seeds : 1, sizeof *m->sc_cycles);
    m->runs = result_table(&m->result, "runs", seeds ? "Runs: means of several seeds" : "Runs", seeds ? MEANS : RUNS);
    m->runs->plot = RUNS_PLOTS;
    table_note(m->runs,
               "A processor takes one instruction after the other and waits for every miss; what the C library and the "
               "kernel execute is not counted.");
    if (seeds == 0)
        return;
    m->single = result_table(&m->result, "seeds", "Runs, seed by seed", SINGLE);
    table_note(
        m->runs,
        "± is half of the interval around a mean that holds the true mean with a confidence of 95 %% (Student's t, "
        "%lu runs). Speed-up is against the first row, seed by seed. Tables below are those of the last seed.",
        (unsigned long)seeds);
}

void run_report_release(struct run_report *m)
{
    free(m->first_cycles);
    free(m->sc_cycles);
    result_release(&m->result);
}

static uint64_t run_count_misses(const struct machine_config *c, const struct sim_result *r, uint64_t *ret_references)
{
    uint64_t misses = 0;

    *ret_references = 0;
    for (unsigned i = 0; i < c->cpus; i++) {
        const struct memory_counts *n = &r->memory[i];
        misses += n->misses;
        *ret_references += n->misses;
        for (unsigned k = 0; k < CONFIG_LEVELS && !c->level[k].is_shared; k++)
            *ret_references += n->hits[k];
    }
    return misses;
}

static void run_measure_all(struct run_report *m, const struct machine_config *c, const struct sim_result *r,
                            double ret[MEASURES])
{
    const struct fabric_use *use = &r->fabric;
    uint64_t references, misses = run_count_misses(c, r, &references), which = m->seeds ? m->added % m->seeds : 0;
    double time = (double)r->cycles * (use->parallel ? use->parallel : 1);

    if (m->added <= which)
        m->first_cycles[which] = (double)r->cycles;
    ret[MEASURE_cycles] = (double)r->cycles;
    /* What was cut off did less than the other runs. */
    bool has_speed_up = !r->is_interrupted && r->cycles;
    ret[MEASURE_speed_up] = has_speed_up ? m->first_cycles[which] / (double)r->cycles : NAN;
    ret[MEASURE_instructions] = (double)r->instructions;
    ret[MEASURE_references] = (double)r->references;
    ret[MEASURE_misses] = (double)misses;
    ret[MEASURE_miss_rate] = references ? (double)misses / (double)references : 0;
    ret[MEASURE_utilisation] = time > 0 ? (double)use->total / time : 0;
}

static void run_report_put_measure(struct table *t, int i, double value)
{
    if (isnan(value))
        table_none(t);
    else if (MEASURE_TYPE[i] == CELL_COUNT)
        table_count(t, (uint64_t)value);
    else
        table_real(t, value);
}

/* Counts are whole; their errors are not made smaller by that. */
static void run_report_add_means(struct run_report *m, const struct machine_config *c, const struct sim_result *r)
{
    table_text(m->runs, c->name);
    table_count(m->runs, c->cpus);
    table_count(m->runs, r->threads);
    table_count(m->runs, m->seeds);
    for (int i = 0; i < MEASURES; i++) {
        double error = sample_error(&m->sample[i], 0.95);
        bool is_count = MEASURE_TYPE[i] == CELL_COUNT;
        run_report_put_measure(m->runs, i, is_count ? round(m->sample[i].mean) : m->sample[i].mean);
        if (isnan(error))
            table_none(m->runs);
        else
            run_report_put_measure(m->runs, i, is_count ? ceil(error) : error);
        m->sample[i] = (struct sample){ 0 };
    }
}

static void run_report_add_seed(struct run_report *m, const struct machine_config *c, const struct sim_result *r,
                                const double *value)
{
    table_text(m->single, c->name);
    table_count(m->single, c->cpus);
    table_count(m->single, c->seed);
    table_count(m->single, r->threads);
    for (int i = 0; i < MEASURES; i++) {
        run_report_put_measure(m->single, i, value[i]);
        if (!r->is_interrupted)
            sample_add(&m->sample[i], value[i]);
    }
    table_text(m->single, r->is_interrupted ? "part" : "whole");
}

static void run_report_add_run(struct run_report *m, const struct machine_config *c, const struct sim_result *r,
                               const double *value)
{
    table_text(m->runs, c->name);
    table_count(m->runs, c->cpus);
    table_count(m->runs, r->threads);
    for (int i = 0; i < MEASURES; i++)
        run_report_put_measure(m->runs, i, value[i]);
    table_text(m->runs, r->is_interrupted ? "part" : "whole");
}

void run_report_add(struct run_report *m, const struct machine_config *c, const struct sim_result *r)
{
    double value[MEASURES];

    run_measure_all(m, c, r, value);
    run_report_add_order(m, c, r, m->added);
    m->added++;
    if (!m->seeds)
        run_report_add_run(m, c, r, value);
    else
        run_report_add_seed(m, c, r, value);
    if (m->seeds && m->added % m->seeds == 0 && !r->is_interrupted)
        run_report_add_means(m, c, r);
    if (m->added == 1 && m->seeds && c->jitter)
        table_note(m->runs, "Threads that begin, or have waited, are late by 0 to %lu cycles, by the seed (jitter).",
                   (unsigned long)c->jitter);
    if (r->is_interrupted)
        table_note(m->seeds ? m->single : m->runs,
                   "Stopped before its end, with %u processors: all numbers of that run are of what had happened, "
                   "and it has no speed-up.",
                   c->cpus);
    if (r->stops.has_stops && r->stops.consulted + r->stops.alone == 0)
        table_note(
            m->seeds ? m->single : m->runs,
            "order.grain is access, but the program does not stop at accesses: build it with peet cc --peet-order.");
    else if (r->stops.has_stops)
        table_note(
            m->seeds ? m->single : m->runs,
            "Under %s, threads stopped at %lu accesses; %lu were to the own stack or to a line of one thread alone.",
            c->order.model->name, (unsigned long)r->stops.consulted, (unsigned long)r->stops.alone);
    if (r->forced_wakeups)
        table_note(m->seeds ? m->single : m->runs,
                   "%lu waits had to be ended: in the order of this machine, no thread would have ended them.",
                   (unsigned long)r->forced_wakeups);
}

static void run_report_add_times(struct run_report *m, const struct sim_result *r)
{
    struct table *t = result_table(&m->result, "times", "Cycles of each processor", TIMES);

    t->plot = TIMES_PLOTS;
    for (uint32_t i = 0; i < r->hw_threads; i++) {
        const struct time_account *p = &r->hw_thread[i];
        table_count(t, i);
        table_count(t, p->instructions);
        for (int k = 0; k < TIME_COUNT; k++)
            table_count(t, p->time[k]);
        table_count(t, p->switches);
    }
    table_note(
        t,
        r->speculations
            ? "With the column of roll-backs of table \"speculation\", the columns from compute to idle add up to the run's cycles."
            : "The columns from compute to idle add up to the run's cycles.");
}

static void run_report_add_memory(struct run_report *m, const struct machine_config *c, const struct sim_result *r)
{
    struct table *t = result_table(&m->result, "memory", "References and misses of each processor", MEMORY);

    t->plot = MEMORY_PLOTS;
    for (unsigned i = 0; i < c->cpus; i++) {
        const struct memory_counts *n = &r->memory[i];
        table_count(t, i);
        table_count(t, n->reads);
        table_count(t, n->writes);
        for (int k = 0; k < CONFIG_LEVELS; k++)
            table_count(t, n->hits[k]);
        table_count(t, n->misses);
        for (int k = 0; k < MISS_KINDS; k++)
            table_count(t, n->causes[k]);
        table_count(t, n->from_caches);
        table_count(t, n->upgrades);
        table_count(t, n->updates);
        table_count(t, n->invalidations);
        table_count(t, n->write_backs);
        table_count(t, n->write_throughs);
        table_count(t, n->tlb_misses);
        table_count(t, n->fetch_misses);
    }
    table_note(
        t,
        "A miss is a line that none of the processor's own caches has; a shared cache may have it. Lines are counted: a "
        "reference across two is two.");
}

static void run_report_add_objects(struct run_report *m, const struct sim_result *r)
{
    if (r->sync_objects == 0)
        return;
    struct table *t = result_table(&m->result, "objects", "Locks, barriers and what else threads wait for", OBJECTS);
    t->plot = OBJECTS_PLOTS;
    for (size_t i = 0; i < r->sync_objects && i < OBJECTS_SHOWN; i++) {
        const struct sync_summary *o = &r->sync_object[i];
        table_text(t, sync_object_kind_name(o));
        o->addr ? table_count(t, o->addr) : table_none(t);
        table_text(t, o->name[0] ? o->name : NULL);
        table_count(t, o->uses);
        table_count(t, o->waits);
        table_count(t, o->waited);
        table_count(t, o->spent);
        table_count(t, o->longest);
        table_count(t, o->held);
    }
    table_note(
        t, "Cycles waited are those of threads. On processors: those in which a hardware thread had nothing else to "
           "do; of all objects they add up to lock wait, barrier and other waits of the processors. Misses of a "
           "lock's own line are miss stall.");
    if (r->sync_objects > OBJECTS_SHOWN)
        table_note(t, "%u more are not shown.", r->sync_objects - OBJECTS_SHOWN);
}

/* Adds up neighbouring time bins until there are at most m->time_bins. */
static void run_report_add_fabric(struct run_report *m, const struct sim_result *r)
{
    const struct fabric_use *use = &r->fabric;
    unsigned together = 1;

    if (!use->total || !use->bin)
        return;
    struct table *t = result_table(&m->result, "fabric", "The fabric over time", USE);
    t->plot = USE_PLOTS;
    while (r->cycles / (use->bin * together) >= m->time_bins)
        together *= 2;
    for (unsigned i = 0; i < FABRIC_BINS && i * use->bin < r->cycles; i += together) {
        uint64_t left = r->cycles - i * use->bin, length = use->bin * together, busy = 0;
        for (unsigned k = i; k < i + together && k < FABRIC_BINS; k++)
            busy += use->busy[k];
        length = left < length ? left : length;
        table_count(t, i * use->bin);
        table_real(t, (double)busy / ((double)length * (use->parallel ? use->parallel : 1)));
    }
}

void run_report_add_details(struct run_report *m, const struct machine_config *c, const struct sim_result *r)
{
    run_report_add_times(m, r);
    run_report_add_programs(m, c, r);
    run_report_add_memory(m, c, r);
    run_report_add_order_locations(m, r);
    run_report_add_objects(m, r);
    run_report_add_speculation(m, r);
    run_report_add_fabric(m, r);
}
