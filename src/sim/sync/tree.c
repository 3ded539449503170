/* SPDX-License-Identifier: MIT */
/* A combining tree (Yew, Tzeng and Lawrie 1987): groups of `fan_in` expected have a counter and a flag each, the last of a group goes up
 * to a group of groups, and so on. The last one at the root turns the root's flag over and those on its way down; who waited at a node
 * does the same below it when it goes on. Each counter and each flag has a line of its own.
 *
 * Counters are not kept: who has counted itself at a node and did not go up waits there. Those of the round before who have not gone on
 * yet stay in the list; `round` tells them apart. */
#include <stddef.h>

#include "sim/sync/parts.h"

static uint64_t fan_in(const struct sync_barrier *b)
{
    return b->config->fan_in < 2 ? 2 : b->config->fan_in;
}

/* The node of that level above a place. */
static uint64_t node_above(const struct sync_barrier *b, uint64_t place, uint32_t level)
{
    for (uint32_t i = 0; i <= level && place > 0; i++)
        place /= fan_in(b);
    return place;
}

static uint64_t word_of(const struct sync_barrier *b, uint32_t level, uint64_t node, unsigned use)
{
    return sync_word(b->addr, (uint32_t)node, use | level << USE_BITS);
}

static bool waits_at(const struct sync_barrier *b, const struct sync_waiter *p, uint64_t round, uint32_t level,
                     uint64_t node)
{
    return p->round == round && p->level == level && node_above(b, p->place, level) == node;
}

static uint64_t count_at(const struct sync_barrier *b, uint32_t level, uint64_t node)
{
    uint64_t n = 0;

    for (const struct sync_waiter *p = b->first; p; p = p->next)
        n += waits_at(b, p, b->round, level, node);
    return n;
}

static void wake_at(struct sync_barrier *b, uint64_t round, uint32_t level, uint64_t node, uint64_t when)
{
    struct sync_waiter *p = b->first, *woken = NULL, *last_woken = NULL;

    b->first = b->last = NULL;
    while (p) {
        struct sync_waiter *next = p->next;
        if (waits_at(b, p, round, level, node))
            line_up(&woken, &last_woken, p);
        else
            line_up(&b->first, &b->last, p);
        p = next;
    }
    wake_all(b->host, &woken, &last_woken, when);
}

/* Turns the flags over below `level`, on the way to the party's own place. */
static uint64_t open_below(struct sync_barrier *b, const struct sync_waiter *p, uint32_t level, uint64_t now)
{
    while (level-- > 0) {
        uint64_t node = node_above(b, p->place, level);
        now = refer(b->host, b->addr, p, word_of(b, level, node, USE_FLAG), PEET_STORE, now);
        wake_at(b, p->round, level, node, now);
    }
    return now;
}

static uint64_t arrive(struct sync_barrier *b, struct sync_waiter *p, uint64_t now, enum sync_outcome *ret)
{
    uint64_t children = b->expected; /* of this level */

    p->round = b->round;
    p->place = place_for(b, p->number);
    b->opens = b->arrived++ ? b->opens : now;
    for (p->level = 0;; p->level++) {
        uint64_t node = node_above(b, p->place, p->level), begin = node * fan_in(b);
        uint64_t size = children - begin < fan_in(b) ? children - begin : fan_in(b);
        now = refer(b->host, b->addr, p, word_of(b, p->level, node, USE_COUNTER), PEET_UPDATE, now);
        b->opens = later(b->opens, now);
        if (count_at(b, p->level, node) + 1 < size) {
            p->ready = refer(b->host, b->addr, p, word_of(b, p->level, node, USE_FLAG), PEET_LOAD, now);
            line_up(&b->first, &b->last, p);
            *ret = SYNC_PARKED;
            return p->ready;
        }
        bool is_root = children <= fan_in(b);
        now = refer(b->host, b->addr, p, word_of(b, p->level, node, USE_COUNTER), PEET_STORE, is_root ? b->opens : now);
        if (is_root)
            break;
        children = (children + fan_in(b) - 1) / fan_in(b);
    }
    b->arrived = 0;
    b->round++;
    *ret = SYNC_DONE;
    return open_below(b, p, p->level + 1, now);
}

static uint64_t go_on(struct sync_barrier *b, struct sync_waiter *p, uint64_t now)
{
    uint64_t node = node_above(b, p->place, p->level);

    now = refer(b->host, b->addr, p, word_of(b, p->level, node, USE_FLAG), PEET_LOAD, now);
    return open_below(b, p, p->level, now);
}

const struct barrier_kind barrier_tree = {
    .name = "tree", .summary = "groups have counters, and the last of a group goes up", .arrive = arrive, .go_on = go_on
};
