/* SPDX-License-Identifier: MIT */
/* Which references of a strided loop change their line, and in which iteration. docs/design/engine.md, "Fast-forward".
 *
 * An iteration leaves a set as it was if it refers to the lines of the set as the iteration before did, and all were present. So only those
 * references matter whose sets hold the old or the new line of a reference that changes its line. */
#ifndef SIM_ENGINE_LINE_CROSSINGS_H
#define SIM_ENGINE_LINE_CROSSINGS_H

#include <stdbool.h>

#include "base/arena.h"
#include "peet/record.h"

/* A reference of the loop, and when it changes its line. */
struct line_crossing {
    uint64_t line;     /* number of its line in iteration `line_crossings.iteration` - 1 */
    uint64_t when;     /* number of the iteration in which it has another line; UINT64_MAX: never */
    uint64_t increase; /* of the line's number at a crossing, modulo 2^64 */
    uint32_t period;   /* iterations between crossings; 0: that varies */
    uint32_t record;   /* index of the reference in the iteration */
};

/* The references of a loop, after an iteration. */
struct line_crossings {
    uint64_t iteration;             /* number of the next iteration; 0: the rest is not valid */
    uint64_t soonest;               /* first iteration, from `iteration` on, with a crossing; UINT64_MAX: none */
    struct line_crossing *crossing; /* by reference */
    uint32_t *crossed; /* indices into `crossing`: references that changed their lines in the last iteration */
    uint32_t crossed_count;
    uint32_t count, room; /* of `crossing` */
    uint32_t shift;       /* log2 of the bytes of a line */
    uint64_t mask;        /* bits of a line's number that choose its set, at most 6 */
};

/* Makes *m valid before that iteration, unless it is; sets: number of sets, a power of two. */
void line_crossings_find(struct line_crossings *m, const struct peet_repeat *n, uint64_t iteration, uint32_t shift,
                         uint64_t sets, struct arena *arena);

/* Advances to the next iteration. Returns which of up to 64 classes of sets it changes, a bit each. */
uint64_t line_crossings_next(struct line_crossings *m, const struct peet_repeat *n);

/* Undoes the last advance: the iteration was not executed. */
void line_crossings_undo(struct line_crossings *m, const struct peet_repeat *n);

/* Whether the line of reference i is in one of the classes of sets. */
static inline bool line_crossings_touch(const struct line_crossings *m, uint64_t classes, uint32_t i)
{
    return classes >> (m->crossing[i].line & m->mask) & 1;
}

/* Number of next iterations in which a reference stays in its line. from: its first byte's offset in the line. */
static inline uint64_t iterations_in_line(uint64_t from, uint64_t size, uint64_t step, uint64_t line)
{
    uint64_t by = (int64_t)step > 0 ? step : 0 - step, room = (int64_t)step > 0 ? line - from - size : from;

    if (from + size > line)
        return 0;
    if (step == 0)
        return UINT64_MAX;
    if ((by & (by - 1)) == 0) /* the common case, and a shift is faster than a division */
        return room >> __builtin_ctzll(by);
    return by > room ? 0 : (uint32_t)room / (uint32_t)by;
}

#endif
