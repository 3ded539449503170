/* SPDX-License-Identifier: MIT */
/* Test-and-test-and-set (Rudolph and Segall, ISCA 1984): reads the lock's word until it is free, and only then writes it.
 *
 * A thread that finds the lock taken is parked on its cached copy. The release wakes all: they read again, those that find it free try to write,
 * one of them succeeds, and the others read again and are parked. Reading and writing are two attempts, so that other threads come between.
 * Leaves out: a failing write invalidates the copies of parked threads, too, which would read once more. */
#include "sim/sync/parts.h"

enum { READS, WRITES };

static uint64_t ttas_read(struct sync_lock *l, struct sync_waiter *p, uint64_t now, enum sync_outcome *ret)
{
    p->ready = waiter_refer(l->host, l->addr, p, word_at(l->addr), PEET_LOAD, now);
    if (l->taken) {
        waiters_append(&l->first, &l->last, p);
        *ret = SYNC_PARKED;
        return p->ready;
    }
    p->phase = WRITES;
    *ret = SYNC_AGAIN;
    return p->ready;
}

static uint64_t ttas_write(struct sync_lock *l, struct sync_waiter *p, uint64_t now, enum sync_outcome *ret)
{
    uint64_t done = waiter_refer(l->host, l->addr, p, word_at(l->addr), PEET_UPDATE, now);

    if (!l->taken) {
        l->taken = true;
        *ret = SYNC_DONE;
        return cycle_later(done, l->free_at);
    }
    p->slot++;
    p->phase = READS;
    *ret = SYNC_AGAIN;
    return done + lock_backoff(l->config, p->slot);
}

static uint64_t ttas_attempt(struct sync_lock *l, struct sync_waiter *p, bool is_new, uint64_t now,
                             enum sync_outcome *ret)
{
    if (is_new) {
        p->slot = 0;
        p->phase = READS;
    }
    return p->phase == READS ? ttas_read(l, p, now, ret) : ttas_write(l, p, now, ret);
}

static uint64_t ttas_release(struct sync_lock *l, struct sync_waiter *holder, uint64_t now)
{
    l->free_at = waiter_refer(l->host, l->addr, holder, word_at(l->addr), PEET_STORE, now);
    l->taken = false;
    waiters_wake(l->host, &l->first, &l->last, l->free_at);
    return l->free_at;
}

const struct lock_kind lock_ttas = { .name = "ttas",
                                     .summary = "reads its cached copy until the lock is free",
                                     .attempt = ttas_attempt,
                                     .release = ttas_release };
