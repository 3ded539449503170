/* SPDX-License-Identifier: MIT */
/* Test-and-test-and-set (Rudolph and Segall, ISCA 1984): reads the lock's word until it is free, and only then writes it.
 *
 * Who finds it taken is parked on its cached copy. The release wakes all: they read again, those who find it free try to write, one of
 * them succeeds, and the others read again and are parked. Reading and writing are two attempts, so that others come between.
 * Leaves out: a write that fails takes the copies of those who are parked away, too, and they would read once more. */
#include "sim/sync/parts.h"

enum { READS, WRITES };

static uint64_t read_it(struct sync_lock *l, struct sync_waiter *p, uint64_t now, enum sync_outcome *ret)
{
    p->ready = refer(l->host, l->addr, p, word_at(l->addr), PEET_LOAD, now);
    if (l->taken) {
        line_up(&l->first, &l->last, p);
        *ret = SYNC_PARKED;
        return p->ready;
    }
    p->phase = WRITES;
    *ret = SYNC_AGAIN;
    return p->ready;
}

static uint64_t write_it(struct sync_lock *l, struct sync_waiter *p, uint64_t now, enum sync_outcome *ret)
{
    uint64_t done = refer(l->host, l->addr, p, word_at(l->addr), PEET_UPDATE, now);

    if (!l->taken) {
        l->taken = true;
        *ret = SYNC_DONE;
        return later(done, l->free_at);
    }
    p->place++;
    p->phase = READS;
    *ret = SYNC_AGAIN;
    return done + backoff_after(l->config, p->place);
}

static uint64_t attempt(struct sync_lock *l, struct sync_waiter *p, bool is_new, uint64_t now, enum sync_outcome *ret)
{
    if (is_new) {
        p->place = 0;
        p->phase = READS;
    }
    return p->phase == READS ? read_it(l, p, now, ret) : write_it(l, p, now, ret);
}

static uint64_t release(struct sync_lock *l, struct sync_waiter *holder, uint64_t now)
{
    l->free_at = refer(l->host, l->addr, holder, word_at(l->addr), PEET_STORE, now);
    l->taken = false;
    wake_all(l->host, &l->first, &l->last, l->free_at);
    return l->free_at;
}

const struct lock_kind lock_ttas = {
    .name = "ttas", .summary = "reads its cached copy until the lock is free", .attempt = attempt, .release = release
};
