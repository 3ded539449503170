/* SPDX-License-Identifier: MIT */
/* The fabrics once more, as slow as they are simple: every cycle of everything that can be busy is marked. They share no code
 * with src/sim/fabric. */
#ifndef TESTS_SLOW_FABRIC_H
#define TESTS_SLOW_FABRIC_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/fabric/fabric.h"

enum { CYCLES = 1 << 20 };

/* What is taken in each cycle, a bit for each thing that can be, and by how many. */
struct slow {
    struct fabric_config c;
    uint64_t last; /* on a bus: when the last transaction or request ends */
    uint64_t taken[CYCLES];
    uint8_t count[CYCLES];
};

static inline struct fabric_time occupy(struct slow *s, uint64_t things, uint64_t length, struct fabric_time time)
{
    uint64_t at = time.done;

    for (uint64_t i = 0; i < length;)
        if (s->taken[at + i] & things) {
            at += i + 1;
            i = 0;
        } else {
            i++;
        }
    for (uint64_t i = 0; i < length; i++) {
        s->taken[at + i] |= things;
        s->count[at + i]++;
    }
    return (struct fabric_time){ at, time.waited + at - time.done };
}

static inline struct fabric_time after(struct fabric_time t, uint64_t cycles)
{
    return (struct fabric_time){ t.done + cycles, t.waited };
}

static inline uint64_t slow_data(const struct slow *s, uint32_t bytes)
{
    uint64_t cycles = 0;

    for (uint64_t moved = 0; moved < bytes; moved += s->c.width)
        cycles += s->c.clock;
    return cycles;
}

static inline bool is_read(const struct transaction *t)
{
    return t->op == BUS_READ || t->op == BUS_READ_OWN;
}

static inline struct fabric_time slow_ideal(struct slow *s, const struct transaction *t, struct fabric_time time)
{
    (void)s;
    return after(time, t->latency);
}

static inline struct fabric_time turn(struct slow *s, struct fabric_time time)
{
    return time.done >= s->last ? time : (struct fabric_time){ s->last, s->last - time.done };
}

static inline struct fabric_time slow_bus(struct slow *s, const struct transaction *t, struct fabric_time time)
{
    uint64_t length = (uint64_t)s->c.address * s->c.clock + t->latency + slow_data(s, t->bytes);

    time = after(occupy(s, 1, length, turn(s, time)), length);
    s->last = time.done;
    return time;
}

static inline struct fabric_time slow_split(struct slow *s, const struct transaction *t, struct fabric_time time)
{
    uint64_t address = (uint64_t)s->c.address * s->c.clock, data = slow_data(s, t->bytes);

    address += is_read(t) ? 0 : data;
    time = after(occupy(s, 1, address, turn(s, time)), address);
    s->last = time.done;
    time = after(time, t->latency);
    return is_read(t) ? after(occupy(s, 1, data, time), data) : time;
}

static inline struct fabric_time slow_connect(struct slow *s, unsigned a, unsigned b, uint32_t bytes,
                                              struct fabric_time time)
{
    uint64_t length = s->c.port + slow_data(s, bytes);

    return after(occupy(s, (uint64_t)1 << a | (uint64_t)1 << b, length, time), length);
}

static inline struct fabric_time slow_crossbar(struct slow *s, const struct transaction *t, struct fabric_time time)
{
    unsigned bank = s->c.cpus + (unsigned)(t->line % s->c.banks), from = bank;

    if (t->supplier != FABRIC_MEMORY)
        from = (unsigned)t->supplier;
    time = after(slow_connect(s, t->cpu, bank, is_read(t) ? 0 : t->bytes, time), t->latency);
    return is_read(t) ? slow_connect(s, t->cpu, from, t->bytes, time) : time;
}

/* The smallest rectangle with room for all whose sides differ by one at most. */
static inline unsigned grid(unsigned cpus, unsigned *ret_height)
{
    unsigned best = 0;

    for (unsigned w = 1; w <= 8; w++)
        for (unsigned h = w > 1 ? w - 1 : 1; h <= w; h++)
            if (w * h >= cpus && (best == 0 || w * h < best * *ret_height)) {
                best = w;
                *ret_height = h;
            }
    return best;
}

/* Step by step; the bit of a link is that of where it comes from, four times, and of the step. *left: the sender has it no more. */
static inline struct fabric_time slow_send(struct slow *s, unsigned from, unsigned to, uint32_t bytes,
                                           struct fabric_time time, struct fabric_time *left)
{
    unsigned height = 0, width = grid(s->c.cpus, &height);
    int x = (int)(from % width), y = (int)(from / width), to_x = (int)(to % width), to_y = (int)(to / width);
    uint64_t length = s->c.port + slow_data(s, bytes);

    for (bool first = true; x != to_x || y != to_y; first = false) {
        int dx = (to_x > x) - (to_x < x), dy = dx ? 0 : (to_y > y) - (to_y < y);
        unsigned step = dx ? dx > 0 : 2 + (dy > 0);
        time = occupy(s, (uint64_t)1 << (((unsigned)y * width + (unsigned)x) * 4 + step), length, time);
        if (first)
            *left = after(time, length);
        time = after(time, s->c.hop);
        x += dx;
        y += dy;
    }
    if (from == to)
        *left = after(time, length);
    return after(time, length);
}

static inline struct fabric_time latest(struct fabric_time a, struct fabric_time b)
{
    return b.done > a.done ? b : a;
}

static inline struct fabric_time slow_mesh(struct slow *s, const struct transaction *t, struct fabric_time time)
{
    struct fabric_time left, told;
    bool cache = is_read(t) && t->supplier != FABRIC_MEMORY, somebody = false;

    time = slow_send(s, t->cpu, t->home, is_read(t) ? 0 : t->bytes, time, &left);
    if (t->op == BUS_WRITE_BACK)
        return left;
    told = time;
    for (unsigned i = 0; i < s->c.cpus; i++) {
        if (t->op == BUS_READ || !(t->sharers >> i & 1) || i == t->cpu || (cache && (int)i == t->supplier))
            continue;
        struct fabric_time one = slow_send(s, t->home, i, is_read(t) ? 0 : t->bytes, time, &left);
        one = slow_send(s, i, t->home, 0, one, &left);
        told = latest(one, told);
        somebody = true;
    }
    if (!cache)
        return slow_send(s, t->home, t->cpu, is_read(t) ? t->bytes : 0, latest(after(time, t->latency), told), &left);
    time = after(slow_send(s, t->home, (unsigned)t->supplier, 0, time, &left), t->latency);
    time = slow_send(s, (unsigned)t->supplier, t->cpu, t->bytes, time, &left);
    return somebody ? latest(time, slow_send(s, t->home, t->cpu, 0, told, &left)) : time;
}

#endif
