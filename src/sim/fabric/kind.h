/* SPDX-License-Identifier: MIT */
/* What the kinds of fabrics share: how long messages are, and calendars.
 *
 * A calendar knows when a bus, a port or a link is taken. An answer takes its place when its transaction is issued, often long
 * before it comes, and others go between: so it is not enough to know the last time at which something is busy. A calendar knows
 * its last CALENDAR_SIZE / 2 stretches at least; what was free before them is taken for busy, and who comes so late waits. */
#ifndef SIM_FABRIC_KIND_H
#define SIM_FABRIC_KIND_H

#include "sim/fabric/fabric.h"

enum { CALENDAR_SIZE = 256 };

struct calendar_stretch {
    uint64_t from, to;
};

/* All zero: nothing is taken. */
struct calendar {
    uint64_t begin; /* nothing is known of the time before */
    uint32_t count;
    struct calendar_stretch busy[CALENDAR_SIZE]; /* in order; between two of them there is time */
};

/* The first time, not before `from`, from which on nothing is taken for so many cycles. */
uint64_t calendar_find(const struct calendar *c, uint64_t from, uint64_t length);

/* Takes what calendar_find found. */
void calendar_take(struct calendar *c, uint64_t from, uint64_t length);

/* Both; most who ask come last, or right behind a request, before its data. Returns what was found. */
static inline uint64_t calendar_book(struct calendar *c, uint64_t from, uint64_t length)
{
    if (c->count > 1 && c->count < CALENDAR_SIZE && length > 0) {
        struct calendar_stretch *last = &c->busy[c->count - 1];
        if (last->to < from) {
            c->count++;
            last[1] = (struct calendar_stretch){ from, from + length };
            return from;
        }
        if (last->to == from) {
            last->to += length;
            return from;
        }
        if (last[-1].to == from && from + length < last->from) {
            last[-1].to += length;
            return from;
        }
    }
    uint64_t at = calendar_find(c, from, length);
    calendar_take(c, at, length);
    return at;
}

/* Processor cycles in which so many bytes are moved. */
static inline uint64_t fabric_data_cycles(const struct fabric *f, uint32_t bytes)
{
    return bytes == f->config.line ? f->line_cycles : fabric_cycles_of(&f->config, bytes);
}

/* Processor cycles of a request on a bus. */
static inline uint64_t fabric_address_cycles(const struct fabric_config *c)
{
    return (uint64_t)c->address * c->clock;
}

/* Who asks is answered by somebody else, with data, later; all others send what they have to say. */
static inline bool fabric_is_answered(const struct transaction *t)
{
    return t->op == BUS_READ || t->op == BUS_READ_OWN;
}

#endif
