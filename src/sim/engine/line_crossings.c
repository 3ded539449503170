/* SPDX-License-Identifier: MIT */
#include "sim/engine/line_crossings.h"

#include <assert.h>

static void crossings_reserve(struct line_crossings *m, size_t count, struct arena *arena)
{
    if (count <= m->room)
        return;
    m->crossing = arena_alloc(arena, count * sizeof *m->crossing);
    m->crossed = arena_alloc(arena, count * sizeof *m->crossed);
    assert(m->crossing && m->crossed);
    m->room = (uint32_t)count;
}

/* Finds the line of a reference in an iteration, and when it changes. */
static void crossing_locate(struct line_crossings *m, const struct peet_repeat *n, struct line_crossing *at,
                            uint64_t iteration)
{
    const struct peet_record *r = &n->records[at->record];
    uint64_t step = n->step[at->record], addr = r->addr + step * iteration, bytes = (uint64_t)1 << m->shift;
    uint64_t stays = iterations_in_line(addr & (bytes - 1), r->size, step, bytes);

    at->line = addr >> m->shift;
    at->when = stays < UINT64_MAX - iteration ? iteration + 1 + stays : UINT64_MAX;
}

/* The period of the crossings: constant if the step is a power of two, at most a line, and the reference never spans lines. */
static void crossing_find_period(const struct line_crossings *m, const struct peet_repeat *n, struct line_crossing *at)
{
    const struct peet_record *r = &n->records[at->record];
    uint64_t step = n->step[at->record], length = (int64_t)step > 0 ? step : 0 - step, bytes = (uint64_t)1 << m->shift;

    at->increase = (int64_t)step > 0 ? 1 : UINT64_MAX;
    at->period = 0;
    if (length > 0 && length <= bytes && (length & (length - 1)) == 0 && (r->addr & (length - 1)) + r->size <= length)
        at->period = (uint32_t)(bytes >> __builtin_ctzll(length));
}

void line_crossings_find(struct line_crossings *m, const struct peet_repeat *n, uint64_t iteration, uint32_t shift,
                         uint64_t sets, struct arena *arena)
{
    if (m->iteration == iteration)
        return;
    crossings_reserve(m, n->count, arena);
    m->iteration = iteration;
    m->soonest = UINT64_MAX;
    m->count = 0;
    m->shift = shift;
    m->mask = (sets - 1) & 63;
    for (uint32_t i = 0; i < n->count; i++) {
        if (n->records[i].kind == PEET_BLOCK)
            continue;
        struct line_crossing *at = &m->crossing[m->count++];
        at->record = i;
        crossing_locate(m, n, at, iteration - 1);
        crossing_find_period(m, n, at);
        m->soonest = at->when < m->soonest ? at->when : m->soonest;
    }
}

/* A crossing without a constant period. Whether the reference spans lines in that iteration. */
static bool crossing_advance(struct line_crossings *m, const struct peet_repeat *n, struct line_crossing *at,
                             uint64_t iteration)
{
    const struct peet_record *r = &n->records[at->record];
    uint64_t bytes = (uint64_t)1 << m->shift;

    crossing_locate(m, n, at, iteration);
    return ((r->addr + n->step[at->record] * iteration) & (bytes - 1)) + r->size > bytes;
}

uint64_t line_crossings_next(struct line_crossings *m, const struct peet_repeat *n)
{
    uint64_t iteration = m->iteration++, classes = 0, soonest = UINT64_MAX;
    uint32_t crossed = 0;

    m->crossed_count = 0;
    if (m->soonest > iteration)
        return 0;
    for (uint32_t i = 0; i < m->count; i++) {
        struct line_crossing *at = &m->crossing[i];
        if (at->when == iteration) {
            classes |= (uint64_t)1 << (at->line & m->mask);
            if (at->period) {
                at->line += at->increase;
                at->when += at->period;
            } else if (crossing_advance(m, n, at, iteration)) {
                classes = UINT64_MAX;
            }
            classes |= (uint64_t)1 << (at->line & m->mask);
            m->crossed[crossed++] = i;
        }
        soonest = at->when < soonest ? at->when : soonest;
    }
    m->crossed_count = crossed;
    m->soonest = soonest;
    return classes;
}

void line_crossings_undo(struct line_crossings *m, const struct peet_repeat *n)
{
    uint64_t iteration = --m->iteration;

    for (uint32_t k = 0; k < m->crossed_count; k++) {
        struct line_crossing *at = &m->crossing[m->crossed[k]];
        const struct peet_record *r = &n->records[at->record];
        at->line = (r->addr + n->step[at->record] * (iteration - 1)) >> m->shift;
        at->when = iteration;
        m->soonest = iteration;
    }
}
