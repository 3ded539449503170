/* SPDX-License-Identifier: MIT */
/* Fabrics take the time that their models say, in closed form where there is one, and against models that mark every single
 * cycle of everything that can be busy. What they say of how busy they were is exact. */
#include <stdlib.h>

#include "check.h"
#include "sim/fabric/fabric.h"
#include "slow_fabric.h"

static uint64_t state = 1;

static uint64_t draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

/* With these numbers all parts of a transaction have different lengths: */
static const struct fabric_config CONFIG = { .cpus = 4,
                                             .line = 64,
                                             .width = 8,
                                             .clock = 2,
                                             .address = 3,
                                             .hop = 5,
                                             .port = 4,
                                             .memory = 100,
                                             .transfer = 40,
                                             .banks = 4 };
enum { ADDRESS = 3 * 2, DATA = 64 / 8 * 2, WORD = 1 * 2, HOP = 5, PORT = 4, MEMORY = 100, TRANSFER = 40 };

static struct fabric make(const struct fabric_kind *kind, uint32_t cpus)
{
    struct fabric_config c = CONFIG;
    struct fabric f = { 0 };

    c.cpus = cpus;
    CHECK_EQ(fabric_init(&f, kind, &c), 0);
    return f;
}

static struct transaction read_of(unsigned cpu, uint64_t line)
{
    return (struct transaction){
        .op = BUS_READ, .cpu = cpu, .line = line, .supplier = FABRIC_MEMORY, .latency = MEMORY, .bytes = 64
    };
}

static struct transaction supplied(unsigned cpu, uint64_t line, int supplier)
{
    struct transaction t = read_of(cpu, line);

    t.supplier = supplier;
    t.latency = TRANSFER;
    return t;
}

static struct transaction other(enum bus_op op, unsigned cpu, uint32_t bytes)
{
    return (struct transaction){ .op = (uint8_t)op, .cpu = cpu, .supplier = FABRIC_MEMORY, .bytes = bytes };
}

static bool takes(struct fabric *f, struct transaction t, uint64_t now, uint64_t time, uint64_t waited)
{
    struct fabric_time r = fabric_transact(f, &t, now);
    bool same = CHECK_EQ(r.done - now, time) && CHECK_EQ(r.waited, waited);

    if (!same)
        printf("# %s: operation %u of processor %u, at %" PRIu64 "\n", f->kind->name, t.op, t.cpu, now);
    return same;
}

/* ---- the registry ---- */

static void fabrics_have_names_of_their_own_and_summaries(void)
{
    size_t n = 0;

    for (; fabrics[n]; n++) {
        CHECK(fabrics[n]->name[0] && fabrics[n]->summary[0] && !strchr(fabrics[n]->summary, '\n'));
        CHECK(fabrics[n]->transact);
        CHECK(fabric_find(fabrics[n]->name) == fabrics[n]); /* the first of that name */
    }
    CHECK(n > 0);
    CHECK(fabric_mesh.has_directory);
    CHECK(!fabric_bus.has_directory);
    CHECK(!fabric_find("string"));
    CHECK(!fabric_find(""));
}

/* ---- closed forms ---- */

static void one_transaction_takes_the_sum_of_its_parts(void)
{
    static const struct {
        const struct fabric_kind *kind;
        uint64_t read, supplied, invalidate, update, write_back;
    } T[] = {
        { &fabric_ideal, MEMORY, TRANSFER, 0, 0, 0 },
        { &fabric_bus, ADDRESS + MEMORY + DATA, ADDRESS + TRANSFER + DATA, ADDRESS, ADDRESS + WORD, ADDRESS + DATA },
        { &fabric_split, ADDRESS + MEMORY + DATA, ADDRESS + TRANSFER + DATA, ADDRESS, ADDRESS + WORD, ADDRESS + DATA },
        { &fabric_crossbar, 2 * PORT + MEMORY + DATA, 2 * PORT + TRANSFER + DATA, PORT, PORT + WORD, PORT + DATA },
        { &fabric_mesh, 2 * PORT + MEMORY + DATA, 3 * PORT + TRANSFER + DATA + 2 * HOP, 2 * PORT, 2 * PORT + WORD,
          PORT + DATA },
    };

    for (size_t i = 0; i < sizeof T / sizeof T[0] || fabrics[i]; i++) {
        if (!CHECK(i < sizeof T / sizeof T[0] && T[i].kind == fabrics[i])) /* a new fabric needs a row in T */
            return;
        struct fabric f = make(T[i].kind, 4);
        takes(&f, read_of(0, 7), 1000, T[i].read, 0); /* its home is here */
        takes(&f, supplied(0, 7, 1), 2000, T[i].supplied, 0);
        takes(&f, other(BUS_INVALIDATE, 0, 0), 3000, T[i].invalidate, 0);
        takes(&f, other(BUS_UPDATE, 0, 8), 4000, T[i].update, 0);
        takes(&f, other(BUS_WRITE_BACK, 0, 64), 5000, T[i].write_back, 0);
        CHECK_EQ(f.use.transactions, 5);
        CHECK_EQ(f.use.bytes, 3 * 64 + 8);
        CHECK_EQ(f.use.waited, 0);
        CHECK_EQ(f.use.by_op[BUS_READ], 2);
        CHECK_EQ(f.use.by_op[BUS_READ_OWN], 0);
        CHECK_EQ(f.use.by_op[BUS_UPDATE], 1);
        fabric_release(&f);
    }
}

static void of_two_at_once_the_second_waits_for_what_the_first_has(void)
{
    struct fabric f = make(&fabric_ideal, 4);
    takes(&f, read_of(0, 7), 10, MEMORY, 0);
    takes(&f, read_of(1, 7), 10, MEMORY, 0);
    fabric_release(&f);

    f = make(&fabric_bus, 4);
    takes(&f, read_of(0, 7), 10, ADDRESS + MEMORY + DATA, 0);
    takes(&f, read_of(1, 8), 10, 2 * (ADDRESS + MEMORY + DATA), ADDRESS + MEMORY + DATA);
    fabric_release(&f);

    f = make(&fabric_split, 4);
    takes(&f, read_of(0, 7), 10, ADDRESS + MEMORY + DATA, 0);
    takes(&f, read_of(1, 8), 10, ADDRESS + MEMORY + 2 * DATA, DATA);
    fabric_release(&f);

    /* another bank, the same bank, a cache that is busy until its data have come */
    f = make(&fabric_crossbar, 4);
    takes(&f, read_of(0, 7), 10, 2 * PORT + MEMORY + DATA, 0);
    takes(&f, read_of(1, 8), 10, 2 * PORT + MEMORY + DATA, 0);
    takes(&f, read_of(2, 11), 10, 3 * PORT + MEMORY + 2 * DATA, PORT + DATA);
    takes(&f, supplied(3, 9, 1), 10 + PORT + MEMORY - TRANSFER - PORT, PORT + TRANSFER + 2 * (PORT + DATA),
          PORT + DATA);
    fabric_release(&f);

    /* from 0 to 3 by 1, from 0 to 1, and back: only the second has a way of the first */
    f = make(&fabric_mesh, 4);
    struct transaction far = other(BUS_WRITE_BACK, 0, 64), near = far, back = other(BUS_WRITE_BACK, 1, 64);
    far.home = 3;
    near.home = 1;
    back.home = 0;
    takes(&f, far, 10, PORT + DATA, 0);
    takes(&f, near, 10, 2 * (PORT + DATA), PORT + DATA);
    takes(&f, back, 10, PORT + DATA, 0);
    CHECK_EQ(f.use.total, 4 * (PORT + DATA));
    fabric_release(&f);
}

/* n processors ask at once. While all requests come before the first data, the requests are one after the other, then the data. */
static void a_row_of_transactions_takes_n_times_what_is_occupied_longest(void)
{
    enum { N = 12 };
    uint64_t whole = ADDRESS + MEMORY + DATA;

    struct fabric f = make(&fabric_bus, N);
    for (unsigned i = 0; i < N; i++)
        takes(&f, read_of(i, i), 0, (i + 1) * whole, i * whole);
    CHECK_EQ(f.use.total, N * whole);
    CHECK_EQ(f.use.waited, N * (N - 1) / 2 * whole);
    fabric_release(&f);

    f = make(&fabric_split, N);
    for (unsigned i = 0; i < N; i++)
        takes(&f, read_of(i, i), 0, ADDRESS + MEMORY + (i + 1) * DATA, i * DATA);
    CHECK_EQ(f.use.total, N * (ADDRESS + DATA));
    CHECK_EQ(f.use.waited, N * (N - 1) / 2 * DATA);
    takes(&f, read_of(0, 0), 1, ADDRESS + MEMORY + (N + 1) * DATA - 1, N * DATA - 1); /* between requests and data */
    uint64_t idle = MEMORY + ADDRESS - (N + 1) * ADDRESS; /* there is room for one of the next two */
    CHECK(idle >= ADDRESS + DATA && idle < 2 * ADDRESS + WORD + DATA);
    takes(&f, other(BUS_UPDATE, 1, 8), 1, (N + 2) * ADDRESS + WORD - 1, (N + 1) * ADDRESS - 1);
    takes(&f, other(BUS_WRITE_BACK, 2, 64), 1, 2 * ADDRESS + MEMORY + (N + 2) * DATA - 1,
          ADDRESS + MEMORY + (N + 1) * DATA - 1);
    fabric_release(&f);

    f = make(&fabric_crossbar, N); /* all of one bank */
    for (unsigned i = 0; i < N; i++)
        takes(&f, read_of(i, 4 * i), 0, PORT + MEMORY + (i + 1) * (PORT + DATA), i * (PORT + DATA));
    CHECK_EQ(f.use.total, N * (2 * PORT + DATA));
    fabric_release(&f);

    f = make(&fabric_mesh, 2); /* all over one link */
    for (unsigned i = 0; i < N; i++) {
        struct transaction t = read_of(0, i);
        t.home = 1;
        takes(&f, t, 0, 2 * HOP + PORT + MEMORY + (i + 1) * (PORT + DATA), i * (PORT + DATA));
    }
    CHECK_EQ(f.use.total, N * (2 * PORT + DATA));
    CHECK_EQ(f.use.parallel, 2);
    fabric_release(&f);
}

static void one_behind_the_other_never_waits(void)
{
    for (size_t k = 0; fabrics[k]; k++) {
        struct fabric f = make(fabrics[k], 4);
        uint64_t now = 17, first = 0;
        for (unsigned i = 0; i < 1000; i++) {
            struct transaction t = read_of(0, i);
            struct fabric_time r = fabric_transact(&f, &t, now);
            first = i == 0 ? r.done - now : first;
            CHECK_EQ(r.done - now, first);
            now = r.done;
        }
        CHECK_EQ(now, 17 + 1000 * first);
        CHECK_EQ(f.use.waited, 0);
        fabric_release(&f);
    }
}

/* ---- the mesh ---- */

static unsigned distance(unsigned a, unsigned b, unsigned width)
{
    return (unsigned)(abs((int)(a % width) - (int)(b % width)) + abs((int)(a / width) - (int)(b / width)));
}

static void a_message_takes_a_hop_for_each_step_of_its_way(void)
{
    for (unsigned cpus = 1; cpus <= FABRIC_MAX_CPUS; cpus += cpus < 17 ? 1 : 47) {
        unsigned height = 0, width = grid(cpus, &height), links = 2 * (width * (height - 1) + height * (width - 1));
        struct fabric f = make(&fabric_mesh, cpus);
        uint64_t now = 0, busy = 0;
        CHECK_EQ(f.use.parallel, links ? links : 1);
        for (unsigned a = 0; a < cpus; a++)
            for (unsigned b = 0; b < cpus; b++, now += 10000) {
                struct transaction t = read_of(a, 0);
                t.home = b;
                unsigned way = 2 * distance(a, b, width);
                takes(&f, t, now, way * HOP + 2 * PORT + MEMORY + DATA, 0);
                unsigned c = (a + b + 1) % cpus;
                busy += way / 2 * (2 * PORT + DATA);
                if (c == a)
                    continue;
                unsigned there = distance(a, b, width) + distance(b, c, width), home = distance(c, a, width);
                t = supplied(a, 0, (int)c);
                t.home = b;
                takes(&f, t, now + 5000, (there + home) * HOP + 3 * PORT + TRANSFER + DATA, 0);
                busy += there * PORT + home * (PORT + DATA);
            }
        CHECK_EQ(f.use.total, busy);
        fabric_release(&f);
    }
}

/* 16 cores, 4 in a row: core 5 asks, home is 6, and 7 and 4 have to be notified. */
static void a_writer_waits_until_all_sharers_are_notified(void)
{
    struct fabric f = make(&fabric_mesh, 16);
    struct transaction t = other(BUS_INVALIDATE, 5, 0);
    uint64_t there_and_back = 2 * (HOP + PORT);

    t.home = 6;
    takes(&f, t, 0, there_and_back, 0);
    t.sharers = 1 << 7 | 1 << 5; /* the asking core is not notified */
    takes(&f, t, 1000, 2 * there_and_back, 0);
    t.sharers = 1 << 7 | 1 << 4;
    takes(&f, t, 2000, there_and_back + 2 * (2 * HOP + PORT), 0);
    t.sharers =
        1 << 0 | 1 << 4; /* both over the link from 6 to 5; 0 is notified first, and its answer takes other links */
    takes(&f, t, 3000, there_and_back + 2 * (3 * HOP + PORT), 0);
    t.sharers = 1 << 4 | 1 << 8; /* 8 is notified last, and answers last */
    takes(&f, t, 4000, there_and_back + 2 * (3 * HOP + PORT) + PORT, PORT);

    t = other(BUS_UPDATE, 5, 8);
    t.home = 6;
    t.sharers = 1 << 7;
    takes(&f, t, 5000, 2 * there_and_back + 2 * WORD, 0);

    t = read_of(5, 0); /* memory is slower than the others, or not */
    t.op = BUS_READ_OWN;
    t.home = 6;
    t.sharers = 1 << 7;
    takes(&f, t, 6000, there_and_back + MEMORY + DATA, 0);
    t.latency = 1;
    takes(&f, t, 7000, 2 * there_and_back + DATA, 0);
    t.op = BUS_READ;
    takes(&f, t, 8000, there_and_back + 1 + DATA, 0);

    t = supplied(5, 0, 4); /* and so is a supplier */
    t.op = BUS_READ_OWN;
    t.home = 6;
    t.sharers = 1 << 4 | 1 << 7;
    takes(&f, t, 9000, (1 + 2 + 1) * HOP + 3 * PORT + TRANSFER + DATA, 0);
    t.latency = 1;
    t.bytes = 8;
    t.sharers = 1 << 4 | 1 << 15;
    takes(&f, t, 10000, there_and_back + 2 * (3 * HOP + PORT), 0);
    fabric_release(&f);
}

/* ---- against every cycle ---- */

enum { MARGIN = 1 << 16, MOST_CPUS = 12 };

/* A fabric, and the one that marks cycles. */
struct pair {
    struct fabric fast;
    struct slow slow;
    struct fabric_use expected;
    struct fabric_time (*transact)(struct slow *, const struct transaction *, struct fabric_time);
};

static struct fabric_config some_config(void)
{
    return (struct fabric_config){ .cpus = 1 + (uint32_t)draw() % MOST_CPUS,
                                   .line = 64,
                                   .width = 1u << draw() % 7,
                                   .clock = 1 + (uint32_t)draw() % 3,
                                   .address = (uint32_t)draw() % 4,
                                   .hop = (uint32_t)draw() % 6,
                                   .port = (uint32_t)draw() % 6,
                                   .memory = (uint32_t)draw() % 150,
                                   .transfer = (uint32_t)draw() % 60,
                                   .banks = 1 + (uint32_t)draw() % 8 };
}

static struct transaction some_transaction(const struct fabric_config *c, unsigned cpu)
{
    struct transaction t = { .op = (uint8_t)(1 + draw() % (BUS_BASE_OPS - 1)),
                             .cpu = cpu,
                             .line = draw(),
                             .supplier = FABRIC_MEMORY,
                             .home = (unsigned)draw() % c->cpus,
                             .sharers = draw() & draw() & (((uint64_t)1 << c->cpus) - 1) };

    if (!is_read(&t)) {
        t.bytes = t.op == BUS_INVALIDATE ? 0 : t.op == BUS_UPDATE || draw() % 2 ? 8 : c->line;
        return t;
    }
    t.bytes = c->line;
    t.latency = c->memory;
    if (draw() % 2 && c->cpus > 1) {
        t.supplier = (int)((cpu + 1 + draw() % (c->cpus - 1)) % c->cpus);
        t.latency = c->transfer;
    }
    return t;
}

static bool transact_both(struct pair *p, const struct transaction *t, uint64_t now, uint64_t *ret_done)
{
    struct fabric_time fast = fabric_transact(&p->fast, t, now);
    struct fabric_time slow = p->transact(&p->slow, t, (struct fabric_time){ now, 0 });

    p->expected.transactions++;
    p->expected.by_op[t->op]++;
    p->expected.bytes += t->bytes;
    p->expected.waited += slow.waited;
    *ret_done = fast.done;
    return CHECK_EQ(fast.done, slow.done) && CHECK_EQ(fast.waited, slow.waited);
}

static void check_use(struct pair *p)
{
    struct fabric_use *u = &p->fast.use, *e = &p->expected;

    e->bin = u->bin;
    e->parallel = u->parallel;
    for (uint64_t i = 0; i < CYCLES; i++) {
        e->total += p->slow.count[i];
        if (p->slow.count[i] && CHECK(i / u->bin < FABRIC_BINS))
            e->busy[i / u->bin] += p->slow.count[i];
        if (p->slow.count[i] > u->parallel)
            CHECK_EQ(p->slow.count[i], u->parallel);
    }
    CHECK(!memcmp(u, e, sizeof *u));
    CHECK_EQ(u->total, e->total);
}

/* Cores ask, wait for the answer, do something else, and ask again: in order of time, though some are a little late. Returns the number of
 * transactions. */
static unsigned ask_at_random(struct pair *p, unsigned most)
{
    uint64_t next[MOST_CPUS] = { 0 };
    unsigned n = 0, pause = 1 + (unsigned)draw() % 300;

    while (n < most) {
        unsigned cpu = 0;
        for (unsigned i = 0; i < p->fast.config.cpus; i++)
            cpu = next[i] < next[cpu] ? i : cpu;
        uint64_t late = draw() % 8 ? 0 : draw() % 50, now = next[cpu] > late ? next[cpu] - late : 0;
        struct transaction t = some_transaction(&p->fast.config, cpu);
        if (now > CYCLES - MARGIN || !transact_both(p, &t, now, &next[cpu]))
            break;
        n++;
        if (t.op == BUS_WRITE_BACK && draw() % 2)
            next[cpu] = now; /* the core does not wait for it */
        next[cpu] += draw() % pause;
    }
    return n;
}

static void fabrics_agree_with_models_that_mark_every_cycle(void)
{
#define X(name) { &fabric_##name, slow_##name },
    static const struct {
        const struct fabric_kind *kind;
        struct fabric_time (*transact)(struct slow *, const struct transaction *, struct fabric_time);
    } K[] = { FABRICS(X) };
#undef X
    struct pair *p = malloc(sizeof *p);

    for (size_t k = 0; CHECK(p) && k < sizeof K / sizeof K[0]; k++)
        for (unsigned n = 0; n < 100000;) {
            memset(p, 0, sizeof *p);
            p->slow.c = some_config();
            p->transact = K[k].transact;
            if (!CHECK_EQ(fabric_init(&p->fast, K[k].kind, &p->slow.c), 0))
                break;
            unsigned some = ask_at_random(p, 4000);
            check_use(p);
            fabric_release(&p->fast);
            n += some;
            if (atomic_load(&check_failures)) {
                printf("# %s, after %u transactions\n", K[k].kind->name, n);
                break;
            }
        }
    free(p);
}

/* ---- what holds for all ---- */

/* Whatever the order, nothing breaks, and nothing is busy more than it can be. */
static void transactions_in_any_order_are_counted_exactly(void)
{
    for (size_t k = 0; fabrics[k]; k++)
        for (unsigned round = 0; round < 10; round++) {
            struct fabric_config c = some_config();
            struct fabric f;
            uint64_t sum = 0, waited = 0, spread = (uint64_t)10 << draw() % 20;
            if (!CHECK_EQ(fabric_init(&f, fabrics[k], &c), 0))
                return;
            for (unsigned i = 0; i < 10000; i++) {
                struct transaction t = some_transaction(&c, (unsigned)draw() % c.cpus);
                uint64_t now = i * (draw() % 20) + draw() % spread;
                struct fabric_time r = fabric_transact(&f, &t, now);
                CHECK(r.done >= now && r.waited <= r.done - now);
                waited += r.waited;
            }
            for (size_t i = 0; i < FABRIC_BINS; i++) {
                CHECK(f.use.busy[i] <= f.use.bin * f.use.parallel);
                sum += f.use.busy[i];
            }
            CHECK_EQ(sum, f.use.total);
            CHECK_EQ(waited, f.use.waited);
            fabric_release(&f);
        }
}

/* What one processor does: lines come, and for some of them others go, for which it does not wait. */
static void one_stream(const struct fabric_kind *kind, const struct fabric_config *c, uint64_t seed, uint64_t *done,
                       size_t n)
{
    struct fabric f;
    uint64_t now = 0;

    state = seed;
    if (!CHECK_EQ(fabric_init(&f, kind, c), 0))
        return;
    for (size_t i = 0; i < n; i++) {
        struct transaction t = some_transaction(c, 0), back = other(BUS_WRITE_BACK, 0, c->line);
        back.home = (unsigned)draw() % c->cpus;
        back.line = draw();
        done[i] = fabric_transact(&f, &t, now).done;
        if (draw() % 3 == 0)
            fabric_transact(&f, &back, now);
        now = done[i] + draw() % 40;
    }
    fabric_release(&f);
}

static void more_bandwidth_makes_no_processor_slower(void)
{
    enum { N = 500 };
    static uint64_t narrow[N], wide[N];

    for (size_t k = 0; fabrics[k]; k++)
        for (uint64_t round = 0; round < 40; round++) {
            state = round + 100;
            struct fabric_config c = some_config();
            c.width = 1;
            one_stream(fabrics[k], &c, round, narrow, N);
            uint64_t last = narrow[N - 1];
            for (c.width = 2; c.width <= 64; c.width *= 2) {
                one_stream(fabrics[k], &c, round, wide, N);
                for (size_t i = 0; i < N; i++)
                    if (!CHECK(wide[i] <= narrow[i])) {
                        printf("# %s, width %u, round %" PRIu64 ", %zu\n", fabrics[k]->name, c.width, round, i);
                        return;
                    }
                memcpy(narrow, wide, sizeof wide);
            }
            CHECK(fabrics[k] == &fabric_ideal || wide[N - 1] < last);
        }
}

static void the_same_transactions_take_the_same_time(void)
{
    for (size_t k = 0; fabrics[k]; k++) {
        struct fabric_use use[2];
        uint64_t sum[2] = { 0 };
        for (unsigned run = 0; run < 2; run++) {
            struct fabric f = make(fabrics[k], 9);
            state = 5;
            for (unsigned i = 0; i < 5000; i++) {
                struct transaction t = some_transaction(&f.config, (unsigned)draw() % 9);
                struct fabric_time r = fabric_transact(&f, &t, i * 10 + draw() % 30);
                sum[run] = sum[run] * 31 + r.done + r.waited;
            }
            use[run] = f.use;
            fabric_release(&f);
        }
        CHECK_EQ(sum[0], sum[1]);
        CHECK(!memcmp(&use[0], &use[1], sizeof use[0]));
    }
}

/* ---- how busy it was ---- */

static void busy_time_is_exact_however_long_the_bins_are(void)
{
    enum { N = 2000 };
    static uint64_t from[N], to[N];

    for (unsigned round = 0; round < 60; round++) {
        static struct fabric_use u;
        uint64_t total = 0, last = 0;
        memset(&u, 0, sizeof u);
        for (size_t i = 0; i < N; i++) {
            from[i] = draw() * draw() >> (round < 55 ? 6 + round : 0);
            to[i] = from[i] + (draw() >> draw() % 32);
            total += to[i] - from[i];
            last = to[i] > from[i] && to[i] > last ? to[i] : last;
            fabric_use_add(&u, from[i], to[i]);
        }
        CHECK_EQ(u.total, total);
        CHECK(u.bin == 1 || (last - 1) / (u.bin / 2) >= FABRIC_BINS); /* no longer than needed */
        for (uint64_t s = 0; s < FABRIC_BINS; s++) {
            uint64_t begin = s * u.bin, end = begin + u.bin, busy = 0;
            for (size_t i = 0; i < N; i++) {
                uint64_t a = from[i] > begin ? from[i] : begin, b = to[i] < end ? to[i] : end;
                busy += b > a ? b - a : 0;
            }
            CHECK_EQ(u.busy[s], busy);
        }
    }
}

static void the_last_cycle_of_all_time_can_be_busy(void)
{
    static struct fabric_use u;

    fabric_use_add(&u, 0, 1);
    fabric_use_add(&u, 5, 5);
    fabric_use_add(&u, UINT64_MAX - 3, UINT64_MAX);
    CHECK_EQ(u.total, 4);
    CHECK_EQ(u.busy[0], 1);
    CHECK_EQ(u.busy[FABRIC_BINS - 1], 3);
    CHECK_EQ(u.bin, (uint64_t)1 << 55);
}

int main(void)
{
    RUN(fabrics_have_names_of_their_own_and_summaries);
    RUN(one_transaction_takes_the_sum_of_its_parts);
    RUN(of_two_at_once_the_second_waits_for_what_the_first_has);
    RUN(a_row_of_transactions_takes_n_times_what_is_occupied_longest);
    RUN(one_behind_the_other_never_waits);
    RUN(a_message_takes_a_hop_for_each_step_of_its_way);
    RUN(a_writer_waits_until_all_sharers_are_notified);
    RUN(fabrics_agree_with_models_that_mark_every_cycle);
    RUN(transactions_in_any_order_are_counted_exactly);
    RUN(more_bandwidth_makes_no_processor_slower);
    RUN(the_same_transactions_take_the_same_time);
    RUN(busy_time_is_exact_however_long_the_bins_are);
    RUN(the_last_cycle_of_all_time_can_be_busy);
    return check_done();
}
