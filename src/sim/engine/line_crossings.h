/* SPDX-License-Identifier: MIT */
/* Which references of a repeat come to another line, and in which trip: those of all others are where they were.
 *
 * A set of a cache to which a trip refers as the one before it did is left as it was, if all was there. So of a trip only those references matter
 * whose sets are touched by one that moves, where it was or where it comes to. */
#ifndef SIM_ENGINE_LINE_CROSSINGS_H
#define SIM_ENGINE_LINE_CROSSINGS_H

#include <stdbool.h>

#include "base/arena.h"
#include "peet/record.h"

struct line_crossing {
    uint64_t line;   /* in the trip before */
    uint64_t when;   /* the next trip in which that is another one */
    uint64_t by;     /* by how much the line's number grows then, */
    uint32_t period; /*   every so many trips; 0: that varies */
    uint32_t record; /* where the reference is */
};

struct line_crossings {
    uint64_t trip;               /* the next one; 0: nothing is known */
    uint64_t soonest;            /* the first from it on in which something moves */
    struct line_crossing *move;  /* by reference */
    uint32_t *moved;             /* those that did in the last trip that was taken, */
    uint32_t moves;              /*   so many */
    uint32_t count, room, shift; /* shift: from an address to its line's number */
    uint64_t mask;               /* what numbers of lines in one set have in common, at most 6 bits of them */
};

/* Begins behind a trip, unless that is known; sets: their number, a power of two. */
void line_crossings_find(struct line_crossings *m, const struct peet_repeat *n, uint64_t trip, uint32_t shift,
                         uint64_t sets, struct arena *arena);

/* The next trip. Returns for which of 64 kinds of sets it matters; moves_back: it was not taken. */
uint64_t line_crossings_next(struct line_crossings *m, const struct peet_repeat *n);
void line_crossings_undo(struct line_crossings *m, const struct peet_repeat *n);

/* Whether the reference is of such a set. */
static inline bool line_crossings_touch(const struct line_crossings *m, uint64_t kinds, uint32_t i)
{
    return kinds >> (m->move[i].line & m->mask) & 1;
}

/* For how many more trips a reference stays in the line in which it was in this one, of which `from` is the byte. */
static inline uint64_t iterations_in_line(uint64_t from, uint64_t size, uint64_t step, uint64_t line)
{
    uint64_t by = (int64_t)step > 0 ? step : 0 - step, room = (int64_t)step > 0 ? line - from - size : from;

    if (from + size > line)
        return 0;
    if (step == 0)
        return UINT64_MAX;
    if ((by & (by - 1)) == 0) /* most often, and a division takes long */
        return room >> __builtin_ctzll(by);
    return by > room ? 0 : (uint32_t)room / (uint32_t)by;
}

#endif
