/* SPDX-License-Identifier: MIT */
/* One counter and one flag. Who arrives counts itself and waits on its cached copy of the flag; the last one sets the counter back and
 * turns the flag over, and all read it again. The flag means the opposite in the next round, so nobody has to set it back. */
#include "sim/sync/parts.h"

static uint64_t flag_of(const struct sync_barrier *b)
{
    return sync_word(b->addr, 0, USE_FLAG);
}

static uint64_t arrive(struct sync_barrier *b, struct sync_waiter *p, uint64_t now, enum sync_outcome *ret)
{
    now = refer(b->host, b->addr, p, word_at(b->addr), PEET_UPDATE, now);
    b->opens = b->arrived ? later(b->opens, now) : now;
    if (++b->arrived < b->expected) {
        p->ready = refer(b->host, b->addr, p, flag_of(b), PEET_LOAD, now);
        line_up(&b->first, &b->last, p);
        *ret = SYNC_PARKED;
        return p->ready;
    }
    now = refer(b->host, b->addr, p, word_at(b->addr), PEET_STORE, b->opens);
    now = refer(b->host, b->addr, p, flag_of(b), PEET_STORE, now);
    b->arrived = 0;
    b->round++;
    wake_all(b->host, &b->first, &b->last, now);
    *ret = SYNC_DONE;
    return now;
}

static uint64_t go_on(struct sync_barrier *b, struct sync_waiter *p, uint64_t now)
{
    return refer(b->host, b->addr, p, flag_of(b), PEET_LOAD, now);
}

const struct barrier_kind barrier_central = {
    .name = "central", .summary = "one counter, and a flag that all wait on", .arrive = arrive, .go_on = go_on
};
