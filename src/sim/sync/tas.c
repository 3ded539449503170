/* SPDX-License-Identifier: MIT */
/* Test-and-set: every attempt writes the lock's word, taken or not. After a failure, a thread tries again after `spin` cycles, and `backoff`
 * cycles more, which double with each failure. There is no queue, so that a thread may starve. */
#include "sim/sync/parts.h"

static uint64_t tas_attempt(struct sync_lock *l, struct sync_waiter *p, bool is_new, uint64_t now,
                            enum sync_outcome *ret)
{
    uint64_t done = waiter_refer(l->host, l->addr, p, word_at(l->addr), PEET_UPDATE, now);

    if (is_new)
        p->slot = 0;
    if (!l->taken) {
        l->taken = true;
        *ret = SYNC_DONE;
        return cycle_later(done, l->free_at);
    }
    p->slot++;
    *ret = SYNC_AGAIN;
    /* at least one cycle, so that the holder can take its step to the release */
    return cycle_later(done + l->config->spin + lock_backoff(l->config, p->slot), now + 1);
}

static uint64_t tas_release(struct sync_lock *l, struct sync_waiter *holder, uint64_t now)
{
    l->free_at = waiter_refer(l->host, l->addr, holder, word_at(l->addr), PEET_STORE, now);
    l->taken = false;
    return l->free_at;
}

const struct lock_kind lock_tas = {
    .name = "tas", .summary = "test-and-set: every attempt writes", .attempt = tas_attempt, .release = tas_release
};
