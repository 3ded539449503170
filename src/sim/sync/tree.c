/* SPDX-License-Identifier: MIT */
/* A combining tree (Yew, Tzeng and Lawrie 1987): each group of `fan_in` threads has a counter and a flag. The last of a group ascends to a group
 * of groups, and so on. The last one at the root inverts the root's flag and those on its way down; a thread that waited at a node does so below
 * that node when it resumes. Each counter and each flag has a separate line.
 *
 * The value of a counter is the number of threads that wait at its node. Threads of the last round that have not resumed are still in the
 * queue; `round` distinguishes them. */
#include <stddef.h>

#include "sim/sync/parts.h"

static uint64_t tree_fan_in(const struct sync_barrier *b)
{
    return b->config->fan_in < 2 ? 2 : b->config->fan_in;
}

/* The node of that level above a slot. */
static uint64_t tree_node_above(const struct sync_barrier *b, uint64_t slot, uint32_t level)
{
    for (uint32_t i = 0; i <= level && slot > 0; i++)
        slot /= tree_fan_in(b);
    return slot;
}

static uint64_t tree_word(const struct sync_barrier *b, uint32_t level, uint64_t node, unsigned use)
{
    return sync_word(b->addr, (uint32_t)node, use | level << USE_BITS);
}

static bool tree_waits_at(const struct sync_barrier *b, const struct sync_waiter *p, uint64_t round, uint32_t level,
                          uint64_t node)
{
    return p->round == round && p->level == level && tree_node_above(b, p->slot, level) == node;
}

static uint64_t tree_count(const struct sync_barrier *b, uint32_t level, uint64_t node)
{
    uint64_t n = 0;

    for (const struct sync_waiter *p = b->first; p; p = p->next)
        n += tree_waits_at(b, p, b->round, level, node);
    return n;
}

static void tree_wake(struct sync_barrier *b, uint64_t round, uint32_t level, uint64_t node, uint64_t when)
{
    struct sync_waiter *p = b->first, *woken = NULL, *last_woken = NULL;

    b->first = b->last = NULL;
    while (p) {
        struct sync_waiter *next = p->next;
        if (tree_waits_at(b, p, round, level, node))
            waiters_append(&woken, &last_woken, p);
        else
            waiters_append(&b->first, &b->last, p);
        p = next;
    }
    waiters_wake(b->host, &woken, &last_woken, when);
}

/* Inverts the flags below `level` on the path to the thread's slot. */
static uint64_t tree_open_below(struct sync_barrier *b, const struct sync_waiter *p, uint32_t level, uint64_t now)
{
    while (level-- > 0) {
        uint64_t node = tree_node_above(b, p->slot, level);
        now = waiter_refer(b->host, b->addr, p, tree_word(b, level, node, USE_FLAG), PEET_STORE, now);
        tree_wake(b, p->round, level, node, now);
    }
    return now;
}

static uint64_t tree_arrive(struct sync_barrier *b, struct sync_waiter *p, uint64_t now, enum sync_outcome *ret)
{
    uint64_t children = b->expected; /* of this level */

    p->round = b->round;
    p->slot = barrier_free_slot(b, p->number);
    b->opens = b->arrived++ ? b->opens : now;
    for (p->level = 0;; p->level++) {
        uint64_t node = tree_node_above(b, p->slot, p->level), begin = node * tree_fan_in(b);
        uint64_t size = children - begin < tree_fan_in(b) ? children - begin : tree_fan_in(b);
        now = waiter_refer(b->host, b->addr, p, tree_word(b, p->level, node, USE_COUNTER), PEET_UPDATE, now);
        b->opens = cycle_later(b->opens, now);
        if (tree_count(b, p->level, node) + 1 < size) {
            p->ready = waiter_refer(b->host, b->addr, p, tree_word(b, p->level, node, USE_FLAG), PEET_LOAD, now);
            waiters_append(&b->first, &b->last, p);
            *ret = SYNC_PARKED;
            return p->ready;
        }
        bool is_root = children <= tree_fan_in(b);
        now = waiter_refer(b->host, b->addr, p, tree_word(b, p->level, node, USE_COUNTER), PEET_STORE,
                           is_root ? b->opens : now);
        if (is_root)
            break;
        children = (children + tree_fan_in(b) - 1) / tree_fan_in(b);
    }
    b->arrived = 0;
    b->round++;
    *ret = SYNC_DONE;
    return tree_open_below(b, p, p->level + 1, now);
}

static uint64_t tree_resume(struct sync_barrier *b, struct sync_waiter *p, uint64_t now)
{
    uint64_t node = tree_node_above(b, p->slot, p->level);

    now = waiter_refer(b->host, b->addr, p, tree_word(b, p->level, node, USE_FLAG), PEET_LOAD, now);
    return tree_open_below(b, p, p->level, now);
}

const struct barrier_kind barrier_tree = { .name = "tree",
                                           .summary = "groups have counters, and the last of a group goes up",
                                           .arrive = tree_arrive,
                                           .resume = tree_resume };
