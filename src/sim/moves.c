/* SPDX-License-Identifier: MIT */
#include "sim/moves.h"

#include <assert.h>

static void make_room(struct moves *m, size_t count, struct arena *arena)
{
    if (count <= m->room)
        return;
    m->line = arena_alloc(arena, count * sizeof *m->line);
    m->when = arena_alloc(arena, count * sizeof *m->when);
    m->record = arena_alloc(arena, count * sizeof *m->record);
    m->moved = arena_alloc(arena, count * sizeof *m->moved);
    assert(m->line && m->when && m->record && m->moved);
    m->room = (uint32_t)count;
}

/* Where a reference is in that trip, and when it moves. */
static inline uint64_t settle(struct moves *m, const struct peet_repeat *n, uint32_t i, uint64_t trip)
{
    const struct peet_record *r = &n->records[m->record[i]];
    uint64_t step = n->step[m->record[i]], addr = r->addr + step * trip, bytes = (uint64_t)1 << m->shift;
    uint64_t stays = trips_in_line(addr & (bytes - 1), r->size, step, bytes);

    m->line[i] = addr >> m->shift;
    m->when[i] = stays < UINT64_MAX - trip ? trip + 1 + stays : UINT64_MAX;
    m->soonest = m->when[i] < m->soonest ? m->when[i] : m->soonest;
    return addr;
}

void moves_know(struct moves *m, const struct peet_repeat *n, uint64_t trip, uint32_t shift, uint64_t sets,
                struct arena *arena)
{
    if (m->trip == trip)
        return;
    make_room(m, n->count, arena);
    m->trip = trip;
    m->soonest = UINT64_MAX;
    m->count = 0;
    m->shift = shift;
    m->mask = (sets - 1) & 63;
    for (uint32_t i = 0; i < n->count; i++)
        if (n->records[i].kind != PEET_BLOCK) {
            m->record[m->count] = i;
            settle(m, n, m->count++, trip - 1);
        }
}

uint64_t moves_take(struct moves *m, const struct peet_repeat *n)
{
    uint64_t trip = m->trip++, kinds = 0, bytes = (uint64_t)1 << m->shift;

    m->moves = 0;
    if (m->soonest > trip)
        return 0;
    m->soonest = UINT64_MAX;
    for (uint32_t i = 0; i < m->count; i++) {
        if (m->when[i] != trip) {
            m->soonest = m->when[i] < m->soonest ? m->when[i] : m->soonest;
            continue;
        }
        kinds |= (uint64_t)1 << (m->line[i] & m->mask);
        uint64_t addr = settle(m, n, i, trip);
        kinds |= (uint64_t)1 << (m->line[i] & m->mask);
        if ((addr & (bytes - 1)) + n->records[m->record[i]].size > bytes)
            kinds = UINT64_MAX; /* it is in several */
        m->moved[m->moves++] = i;
    }
    return kinds;
}

void moves_back(struct moves *m, const struct peet_repeat *n)
{
    uint64_t trip = --m->trip;

    for (uint32_t k = 0; k < m->moves; k++) {
        uint32_t i = m->moved[k];
        const struct peet_record *r = &n->records[m->record[i]];
        m->line[i] = (r->addr + n->step[m->record[i]] * (trip - 1)) >> m->shift;
        m->when[i] = trip;
        m->soonest = trip;
    }
}
