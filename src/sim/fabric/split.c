/* SPDX-License-Identifier: MIT */
/* A bus with split transactions. A request occupies it for `address` bus cycles, and its data for as long as they take, once the
 * supplier has answered; between the two the bus is free for others. Write-backs and updates have their data with them: request and
 * data are one phase, and they are over at its end.
 *
 * Requests are granted in the order in which they were issued, each not before the last one is over. Data have priority: they are booked when
 * their request is granted, so that they wait for other data only, and a request begins where it ends before the next data.
 *
 * Leaves out: arbitration; a limit of the transactions under way, and of what memory can do at a time; bus cycles as a grid. */
#include "sim/fabric/kind.h"

/* The bus, booked ahead for data. */
struct fabric_state {
    uint64_t requests_until; /* cycle in which the last request ends */
    struct calendar bus;     /* what is booked */
};

static size_t split_state_size(const struct fabric_config *c)
{
    (void)c;
    return sizeof(struct fabric_state);
}

/* Books a phase on the bus; returns its end. */
static uint64_t split_book(struct fabric *f, uint64_t from, uint64_t length, uint64_t *waited)
{
    uint64_t at = calendar_book(&f->state->bus, from, length);

    fabric_use_add(&f->use, at, at + length);
    *waited += at - from;
    return at + length;
}

static struct fabric_time split_transact(struct fabric *f, const struct transaction *t, uint64_t now)
{
    struct fabric_state *s = f->state;
    uint64_t address = fabric_address_cycles(&f->config), data = fabric_data_cycles(f, t->bytes);
    uint64_t from = now > s->requests_until ? now : s->requests_until;
    struct fabric_time time = { .waited = from - now };

    s->requests_until = split_book(f, from, address + (fabric_is_answered(t) ? 0 : data), &time.waited);
    time.done = s->requests_until + t->latency;
    if (fabric_is_answered(t))
        time.done = split_book(f, time.done, data, &time.waited);
    return time;
}

const struct fabric_kind fabric_split = { .name = "split",
                                          .summary = "a bus that is free for others between request and data",
                                          .state_size = split_state_size,
                                          .transact = split_transact };
