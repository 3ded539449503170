/* SPDX-License-Identifier: MIT */
/* Vector clocks that also say which order each synchronization alone provides. See docs/design/slack.md.
 *
 * A *unit* is what could be taken out of the program: a barrier at its place, a lock, a join. For each other thread a clock has the last
 * segment of it that certainly ended, and for units without which that segment would be an earlier one, the earlier one. So one clock stands for
 * as many clocks as there are units, each with one unit left out. */
#ifndef STUDY_SLACK_CLOCKS_H
#define STUDY_SLACK_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#define UNIT_NONE UINT32_MAX

/* What a clock would be without one unit. */
struct clock_reliance {
    uint32_t unit;
    uint32_t segment; /* less than that of its entry; 0: none */
};

/* What a clock knows of one thread. */
struct clock_entry {
    uint32_t segment; /* the last one that ended before; from 1; 0: none */
    uint32_t count, room;
    struct clock_reliance *reliance; /* one for each unit on which `segment` relies, in no order */
};

/* A vector clock: an entry for each thread. */
struct unit_clock {
    struct clock_entry *entry;
    uint32_t threads;
};

void clock_release(struct unit_clock *c); /* also of zeros */
void clock_copy(struct unit_clock *to, const struct unit_clock *from);

/* `to` now knows what `from` knows, because of that unit; UNIT_NONE: because of order that no unit can take away. */
void clock_join(struct unit_clock *to, const struct unit_clock *from, uint32_t unit);

/* A thread's segment has ended, and the clock knows it from itself. */
void clock_set(struct unit_clock *c, uint32_t thread, uint32_t segment);

/* What the clock knows of a thread. */
static inline const struct clock_entry *clock_at(const struct unit_clock *c, uint32_t thread)
{
    static const struct clock_entry nothing;

    return thread < c->threads ? &c->entry[thread] : &nothing;
}

#endif
