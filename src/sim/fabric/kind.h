/* SPDX-License-Identifier: MIT */
/* What the kinds of fabrics share: lengths of messages, and calendars.
 *
 * A calendar has the intervals in which a bus, a port or a link is busy. An answer is booked when its transaction is issued, long before it
 * comes, and other messages go between: so the end of the last interval is not sufficient. A calendar has at least the last
 * CALENDAR_SIZE / 2 intervals; all time before them counts as busy. */
#ifndef SIM_FABRIC_KIND_H
#define SIM_FABRIC_KIND_H

#include "sim/fabric/fabric.h"

enum { CALENDAR_SIZE = 256 };

/* Core cycles [from, to). */
struct calendar_interval {
    uint64_t from, to;
};

/* The busy times of a resource. All zero: it is free. */
struct calendar {
    uint64_t begin; /* core cycle; all time before it counts as busy; 0: nothing was dropped */
    uint32_t count; /* intervals in `busy` */
    /* By rising time, at least one free cycle between two. When it is full, the older half is dropped. */
    struct calendar_interval busy[CALENDAR_SIZE];
};

/* The first cycle, not before `from`, at which the resource is free for `length` cycles. */
uint64_t calendar_find(const struct calendar *c, uint64_t from, uint64_t length);

/* Books an interval that calendar_find returned. */
void calendar_take(struct calendar *c, uint64_t from, uint64_t length);

/* Finds an interval and books it; returns its first cycle. Most are the latest, or between a request and its data. */
static inline uint64_t calendar_book(struct calendar *c, uint64_t from, uint64_t length)
{
    if (c->count > 1 && c->count < CALENDAR_SIZE && length > 0) {
        struct calendar_interval *last = &c->busy[c->count - 1];
        if (last->to < from) {
            c->count++;
            last[1] = (struct calendar_interval){ from, from + length };
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

/* Core cycles of a transfer of that many bytes. */
static inline uint64_t fabric_data_cycles(const struct fabric *f, uint32_t bytes)
{
    return bytes == f->config.line ? f->line_cycles : fabric_cycles_of(&f->config, bytes);
}

/* Core cycles of a request on a bus. */
static inline uint64_t fabric_address_cycles(const struct fabric_config *c)
{
    return (uint64_t)c->address * c->clock;
}

/* Whether the supplier answers with data later; other transactions carry their data with the request. */
static inline bool fabric_is_answered(const struct transaction *t)
{
    return t->op == BUS_READ || t->op == BUS_READ_OWN;
}

#endif
