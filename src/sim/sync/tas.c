/* SPDX-License-Identifier: MIT */
/* Test-and-set: every attempt writes the lock's word, taken or not. Who fails tries again after `spin` cycles, and `backoff`
 * cycles if there is one, twice as many after each failure. Nobody waits in line: who is lucky has it, and who is not may wait for ever. */
#include "sim/sync/parts.h"

static uint64_t attempt(struct sync_lock *l, struct sync_waiter *p, bool is_new, uint64_t now, enum sync_outcome *ret)
{
    uint64_t done = refer(l->host, l->addr, p, word_at(l->addr), PEET_UPDATE, now);

    if (is_new)
        p->place = 0;
    if (!l->taken) {
        l->taken = true;
        *ret = SYNC_DONE;
        return later(done, l->free_at);
    }
    p->place++;
    *ret = SYNC_AGAIN;
    /* time has to pass, or the holder never comes to give it back */
    return later(done + l->config->spin + backoff_after(l->config, p->place), now + 1);
}

static uint64_t release(struct sync_lock *l, struct sync_waiter *holder, uint64_t now)
{
    l->free_at = refer(l->host, l->addr, holder, word_at(l->addr), PEET_STORE, now);
    l->taken = false;
    return l->free_at;
}

const struct lock_kind lock_tas = {
    .name = "tas", .summary = "test-and-set: every attempt writes", .attempt = attempt, .release = release
};
