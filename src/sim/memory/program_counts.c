/* SPDX-License-Identifier: MIT */
/* Counts of each of several programs, and its evictions of lines of others. A core's counts belong to the program that it executes. A line belongs to the
 * program for which it was filled last. An invalidation or a write-back that another core causes counts for the program that lost the line only
 * if that program runs on the core then. */
#include <assert.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/memory/core_caches.h"

static_assert(sizeof(struct memory_counts) % sizeof(uint64_t) == 0, "counts are a row of words");
enum { COUNTS = sizeof(struct memory_counts) / sizeof(uint64_t) };

int hierarchy_set_programs(struct hierarchy *h, uint32_t programs, struct peet_err *err)
{
    size_t pairs = (size_t)programs * programs;
    struct program_counts *p = mem_alloc(1, sizeof *p);

    p->count = programs;
    p->owner.value_size = sizeof(uint32_t);
    p->active = mem_alloc(h->cpus, sizeof *p->active);
    p->flushed = mem_alloc(h->cpus, sizeof *p->flushed);
    p->counts = mem_alloc(programs, sizeof *p->counts);
    p->private = calloc(pairs, sizeof *p->private);
    p->shared = calloc(pairs, sizeof *p->shared);
    if (!p->private || !p->shared) {
        program_counts_release(p);
        return err_set(err, PEET_ERR_MEMORY, "no memory for the evictions of %lu programs", (unsigned long)programs);
    }
    h->programs = p;
    return 0;
}

void program_counts_release(struct program_counts *p)
{
    if (!p)
        return;
    free(p->active);
    free(p->flushed);
    free(p->counts);
    free(p->private);
    free(p->shared);
    map_release(&p->owner);
    free(p);
}

/* Adds what a core has counted since its last change of program to its program. */
static void program_counts_flush(struct hierarchy *h, unsigned cpu)
{
    struct program_counts *p = h->programs;

    hierarchy_flush_core(h, cpu);
    const uint64_t *now = (const uint64_t *)&h->cpu[cpu].counts, *before = (const uint64_t *)&p->flushed[cpu];
    uint64_t *sum = (uint64_t *)&p->counts[p->active[cpu]];
    for (unsigned i = 0; i < COUNTS; i++)
        sum[i] += now[i] - before[i];
    p->flushed[cpu] = h->cpu[cpu].counts;
}

void hierarchy_set_program(struct hierarchy *h, unsigned cpu, uint32_t program)
{
    if (h->programs->active[cpu] == program)
        return;
    program_counts_flush(h, cpu);
    h->programs->active[cpu] = program;
}

const struct memory_counts *hierarchy_program_counts(struct hierarchy *h, uint32_t program)
{
    for (unsigned i = 0; i < h->cpus; i++)
        program_counts_flush(h, i);
    return &h->programs->counts[program];
}

void program_counts_fill(struct program_counts *p, unsigned cpu, uint64_t line)
{
    uint32_t *owner = map_put(&p->owner, line, 0);

    assert(owner); /* without memory for tables that grow with the program, a run cannot continue */
    *owner = p->active[cpu] + 1;
}

void program_counts_evict(struct program_counts *p, uint64_t line, uint64_t *evictions)
{
    const uint32_t *owner = map_find(&p->owner, line, 0);

    if (owner)
        evictions[(size_t)p->active[p->actor] * p->count + *owner - 1]++;
}

uint64_t hierarchy_private_evictions(const struct hierarchy *h, uint32_t by, uint32_t of)
{
    return h->programs->private[(size_t)by * h->programs->count + of];
}

uint64_t hierarchy_shared_evictions(const struct hierarchy *h, uint32_t by, uint32_t of)
{
    return h->programs->shared[(size_t)by * h->programs->count + of];
}
