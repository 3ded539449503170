/* SPDX-License-Identifier: MIT */
/* A mesh of two dimensions with a processor, a part of memory and its directory at each node: the smallest grid that is a square, or
 * nearly one (one row less), and has a node for each processor. Processor n is in row n / width; nodes at the end of the last row
 * may have none, and messages still go through.
 *
 * Messages go along the row first, then along the column. Each link, in each direction, is occupied by a message for
 * `port` cycles and its data; the head of the message is at the next node `hop` cycles after it began to occupy the link, and does
 * not wait for its tail. So a message takes distance * hop + port + data, and what it waits. Inside a node it takes
 * port + data, and occupies nothing.
 *
 * A request goes to the line's home. For a read, memory there answers, or home passes the request on to the supplier, which answers
 * who asked. Before a line may be written, home tells all sharers, and each says to home that it knows: only then
 * home answers (also beside a supplier, who does not wait for that). An update is told with its word. A read tells its supplier only,
 * whoever else has the line. A write-back is one message to the home of the line, over for the sender when its tail has left.
 *
 * What is told as waiting is that of the messages that came last; messages of one transaction wait for each other, too.
 * Leaves out: room in the nodes, where messages wait without hindering others behind them; how long a directory is busy; what a
 * supplier writes to memory beside its answer; contention inside a node. */
#include <assert.h>

#include "sim/fabric/kind.h"

enum direction { EAST, WEST, SOUTH, NORTH, DIRECTIONS };

struct fabric_state {
    unsigned width;
    struct calendar link[]; /* node by node, by direction: those that leave it */
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

static size_t state_size(const struct fabric_config *c)
{
    size_t nodes = (size_t)width_of(c) * height_of(c);

    return sizeof(struct fabric_state) + nodes * DIRECTIONS * sizeof(struct calendar);
}

static void init(struct fabric *f)
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

static unsigned neighbour(unsigned node, enum direction d, unsigned width)
{
    switch (d) {
    case EAST: return node + 1;
    case WEST: return node - 1;
    case SOUTH: return node + width;
    default: return node - width;
    }
}

/* A message; its time goes on until all of it has come. Returns what it was when all of it had left the sender. */
static struct fabric_time send(struct fabric *f, unsigned from, unsigned to, uint32_t bytes, struct fabric_time *time)
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
        from = neighbour(from, d, s->width);
    }
    time->done += length;
    return left;
}

static struct fabric_time later(struct fabric_time a, struct fabric_time b)
{
    return a.done >= b.done ? a : b;
}

/* Home tells all who have to know, and hears from them; returns when it has heard from the last. */
static struct fabric_time tell(struct fabric *f, unsigned home, uint64_t who, uint32_t bytes, struct fabric_time time)
{
    struct fabric_time last = time;

    for (; who; who &= who - 1) {
        unsigned sharer = (unsigned)__builtin_ctzll(who);
        struct fabric_time one = time;
        assert(sharer < f->config.cpus);
        send(f, home, sharer, bytes, &one);
        send(f, sharer, home, 0, &one);
        last = later(one, last);
    }
    return last;
}

static struct fabric_time transact(struct fabric *f, const struct transaction *t, uint64_t now)
{
    uint32_t sent = fabric_is_answered(t) ? 0 : t->bytes, answered = t->bytes - sent;
    bool is_supplied = fabric_is_answered(t) && t->supplier != FABRIC_MEMORY;
    uint64_t who = t->op == BUS_READ ? 0 : t->sharers & ~((uint64_t)1 << t->cpu);
    struct fabric_time time = { .done = now };

    if (t->op == BUS_WRITE_BACK)
        return send(f, t->cpu, t->home, sent, &time);
    send(f, t->cpu, t->home, sent, &time);
    if (is_supplied)
        who &= ~((uint64_t)1 << t->supplier); /* it learns it from the request */
    struct fabric_time told = tell(f, t->home, who, sent, time);
    if (!is_supplied) {
        time.done += t->latency;
        time = later(time, told);
        send(f, t->home, t->cpu, answered, &time);
        return time;
    }
    send(f, t->home, (unsigned)t->supplier, 0, &time);
    time.done += t->latency;
    send(f, (unsigned)t->supplier, t->cpu, answered, &time);
    if (who)
        send(f, t->home, t->cpu, 0, &told);
    return later(time, told);
}

const struct fabric_kind fabric_mesh = { .name = "mesh",
                                         .summary = "a grid of nodes, each with memory and its directory",
                                         .state_size = state_size,
                                         .init = init,
                                         .transact = transact,
                                         .has_directory = true };
