/* SPDX-License-Identifier: MIT */
#include "sim/engine/line_crossings.h"

#include <assert.h>

static void make_room(struct line_crossings *m, size_t count, struct arena *arena)
{
    if (count <= m->room)
        return;
    m->move = arena_alloc(arena, count * sizeof *m->move);
    m->moved = arena_alloc(arena, count * sizeof *m->moved);
    assert(m->move && m->moved);
    m->room = (uint32_t)count;
}

/* Where a reference is in that trip, and when it moves. */
static void settle(struct line_crossings *m, const struct peet_repeat *n, struct line_crossing *at, uint64_t trip)
{
    const struct peet_record *r = &n->records[at->record];
    uint64_t step = n->step[at->record], addr = r->addr + step * trip, bytes = (uint64_t)1 << m->shift;
    uint64_t stays = iterations_in_line(addr & (bytes - 1), r->size, step, bytes);

    at->line = addr >> m->shift;
    at->when = stays < UINT64_MAX - trip ? trip + 1 + stays : UINT64_MAX;
}

/* If steps divide lines, and no reference is in two of them, it moves to the next line every so many trips. */
static void find_period(const struct line_crossings *m, const struct peet_repeat *n, struct line_crossing *at)
{
    const struct peet_record *r = &n->records[at->record];
    uint64_t step = n->step[at->record], length = (int64_t)step > 0 ? step : 0 - step, bytes = (uint64_t)1 << m->shift;

    at->by = (int64_t)step > 0 ? 1 : UINT64_MAX;
    at->period = 0;
    if (length > 0 && length <= bytes && (length & (length - 1)) == 0 && (r->addr & (length - 1)) + r->size <= length)
        at->period = (uint32_t)(bytes >> __builtin_ctzll(length));
}

void line_crossings_find(struct line_crossings *m, const struct peet_repeat *n, uint64_t trip, uint32_t shift,
                         uint64_t sets, struct arena *arena)
{
    if (m->trip == trip)
        return;
    make_room(m, n->count, arena);
    m->trip = trip;
    m->soonest = UINT64_MAX;
    m->count = 0;
    m->shift = shift;
    m->mask = (sets - 1) & 63;
    for (uint32_t i = 0; i < n->count; i++) {
        if (n->records[i].kind == PEET_BLOCK)
            continue;
        struct line_crossing *at = &m->move[m->count++];
        at->record = i;
        settle(m, n, at, trip - 1);
        find_period(m, n, at);
        m->soonest = at->when < m->soonest ? at->when : m->soonest;
    }
}

/* It varies when a reference moves; whether it is in several lines then. */
static bool move_freely(struct line_crossings *m, const struct peet_repeat *n, struct line_crossing *at, uint64_t trip)
{
    const struct peet_record *r = &n->records[at->record];
    uint64_t bytes = (uint64_t)1 << m->shift;

    settle(m, n, at, trip);
    return ((r->addr + n->step[at->record] * trip) & (bytes - 1)) + r->size > bytes;
}

uint64_t line_crossings_next(struct line_crossings *m, const struct peet_repeat *n)
{
    uint64_t trip = m->trip++, kinds = 0, soonest = UINT64_MAX;
    uint32_t moves = 0;

    m->moves = 0;
    if (m->soonest > trip)
        return 0;
    for (uint32_t i = 0; i < m->count; i++) {
        struct line_crossing *at = &m->move[i];
        if (at->when == trip) {
            kinds |= (uint64_t)1 << (at->line & m->mask);
            if (at->period) {
                at->line += at->by;
                at->when += at->period;
            } else if (move_freely(m, n, at, trip)) {
                kinds = UINT64_MAX;
            }
            kinds |= (uint64_t)1 << (at->line & m->mask);
            m->moved[moves++] = i;
        }
        soonest = at->when < soonest ? at->when : soonest;
    }
    m->moves = moves;
    m->soonest = soonest;
    return kinds;
}

void line_crossings_undo(struct line_crossings *m, const struct peet_repeat *n)
{
    uint64_t trip = --m->trip;

    for (uint32_t k = 0; k < m->moves; k++) {
        struct line_crossing *at = &m->move[m->moved[k]];
        const struct peet_record *r = &n->records[at->record];
        at->line = (r->addr + n->step[at->record] * (trip - 1)) >> m->shift;
        at->when = trip;
        m->soonest = trip;
    }
}
