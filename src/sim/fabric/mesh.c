/* SPDX-License-Identifier: MIT */
/* A two-dimensional mesh with a core, a part of memory and its directory at each node: the smallest grid that is a square, or has one row less,
 * and has a node for each core. Core n is in row n / width; nodes at the end of the last row may have no core, and still pass messages on.
 *
 * Messages go along the row first, then along the column. Each link, in each direction, is occupied by a message for
 * `port` cycles and its data; the head of the message is at the next node `hop` cycles after it began to occupy the link, and does
 * not wait for its tail. So a message takes distance * hop + port + data, and what it waits. Inside a node it takes
 * port + data, and occupies nothing.
 *
 * A request goes to the line's home node. For a read, memory there answers, or home forwards the request to the supplier, which answers the
 * requester. Before a line may be written, home notifies all sharers, and each acknowledges: only then home answers. A supplier answers at the
 * same time, without waiting for them. The notification of an update has its word. A read notifies only its supplier. A write-back is one
 * message to home, over for the sender when its tail has left.
 *
 * `waited` is that of the last messages; messages of one transaction wait for each other, too. Leaves out: buffers of nodes, in which
 * messages wait without blocking others; the time of a directory; what a supplier writes to memory; contention inside a node. */
#include <assert.h>

#include "sim/fabric/kind.h"

/* Of a link, from the node that it leaves. */
enum direction { EAST, WEST, SOUTH, NORTH, DIRECTIONS };

/* Links of the grid. */
struct fabric_state {
    unsigned width;         /* nodes of a row */
    struct calendar link[]; /* outgoing links, by node and direction */
};

static unsigned width_of(const struct fabric_config *c)
{
    unsigned width = 1;

    while (width * width < c->cpus)
        width++;
    return width;
}

static unsigned height_of(const struct fabric_config *c)
{
    unsigned width = width_of(c);

    return (c->cpus + width - 1) / width;
}

static size_t mesh_state_size(const struct fabric_config *c)
{
    size_t nodes = (size_t)width_of(c) * height_of(c);

    return sizeof(struct fabric_state) + nodes * DIRECTIONS * sizeof(struct calendar);
}

static void mesh_init(struct fabric *f)
{
    unsigned width = width_of(&f->config), height = height_of(&f->config);
    unsigned links = 2 * ((width - 1) * height + width * (height - 1));

    f->state->width = width;
    f->use.parallel = links ? links : 1;
}

static enum direction direction_of(unsigned from, unsigned to, unsigned width)
{
    if (from % width != to % width)
        return from % width < to % width ? EAST : WEST;
    return from < to ? SOUTH : NORTH;
}

static unsigned mesh_neighbour(unsigned node, enum direction d, unsigned width)
{
    switch (d) {
    case EAST: return node + 1;
    case WEST: return node - 1;
    case SOUTH: return node + width;
    default: return node - width;
    }
}

/* A message; advances *time to the arrival of its tail. Returns the time at which the tail has left the sender. */
static struct fabric_time mesh_send(struct fabric *f, unsigned from, unsigned to, uint32_t bytes,
                                    struct fabric_time *time)
{
    struct fabric_state *s = f->state;
    uint64_t length = f->config.port + fabric_data_cycles(f, bytes);
    struct fabric_time left = { .done = time->done + length, .waited = time->waited };

    for (bool is_first = true; from != to; is_first = false) {
        enum direction d = direction_of(from, to, s->width);
        struct calendar *link = &s->link[from * DIRECTIONS + d];
        uint64_t at = calendar_book(link, time->done, length);
        fabric_use_add(&f->use, at, at + length);
        time->waited += at - time->done;
        if (is_first)
            left = (struct fabric_time){ .done = at + length, .waited = time->waited };
        time->done = at + f->config.hop;
        from = mesh_neighbour(from, d, s->width);
    }
    time->done += length;
    return left;
}

static struct fabric_time mesh_later(struct fabric_time a, struct fabric_time b)
{
    return a.done >= b.done ? a : b;
}

/* Home notifies sharers, a bit each; returns the time of the last acknowledgement. */
static struct fabric_time mesh_notify(struct fabric *f, unsigned home, uint64_t sharers, uint32_t bytes,
                                      struct fabric_time time)
{
    struct fabric_time last = time;

    for (; sharers; sharers &= sharers - 1) {
        unsigned sharer = (unsigned)__builtin_ctzll(sharers);
        struct fabric_time one = time;
        assert(sharer < f->config.cpus);
        mesh_send(f, home, sharer, bytes, &one);
        mesh_send(f, sharer, home, 0, &one);
        last = mesh_later(one, last);
    }
    return last;
}

static struct fabric_time mesh_transact(struct fabric *f, const struct transaction *t, uint64_t now)
{
    uint32_t sent = fabric_is_answered(t) ? 0 : t->bytes, answered = t->bytes - sent;
    bool is_supplied = fabric_is_answered(t) && t->supplier != FABRIC_MEMORY;
    uint64_t sharers = t->op == BUS_READ ? 0 : t->sharers & ~((uint64_t)1 << t->cpu);
    struct fabric_time time = { .done = now };

    if (t->op == BUS_WRITE_BACK)
        return mesh_send(f, t->cpu, t->home, sent, &time);
    mesh_send(f, t->cpu, t->home, sent, &time);
    if (is_supplied)
        sharers &= ~((uint64_t)1 << t->supplier); /* the request notifies it */
    struct fabric_time notified = mesh_notify(f, t->home, sharers, sent, time);
    if (!is_supplied) {
        time.done += t->latency;
        time = mesh_later(time, notified);
        mesh_send(f, t->home, t->cpu, answered, &time);
        return time;
    }
    mesh_send(f, t->home, (unsigned)t->supplier, 0, &time);
    time.done += t->latency;
    mesh_send(f, (unsigned)t->supplier, t->cpu, answered, &time);
    if (sharers)
        mesh_send(f, t->home, t->cpu, 0, &notified);
    return mesh_later(time, notified);
}

const struct fabric_kind fabric_mesh = { .name = "mesh",
                                         .summary = "a grid of nodes, each with memory and its directory",
                                         .state_size = mesh_state_size,
                                         .init = mesh_init,
                                         .transact = mesh_transact,
                                         .has_directory = true };
