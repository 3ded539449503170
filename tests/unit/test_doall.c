/* SPDX-License-Identifier: MIT */
/* Iterations of parallel loops, dealt out: against the stream as it was recorded, cut by slow and obvious code. */
#include "tests/unit/loops.h"

/* ---- records, for people and as one number ---- */

static const char *describe(const struct peet_batch *b, size_t i, char text[120])
{
    const struct peet_record *r = &b->records[i];

    if (r->kind == PEET_BLOCK)
        snprintf(text, 120, "b%x", (unsigned)(r->addr & 0xff));
    else if (r->kind == PEET_EVENT)
        snprintf(text, 120, "%s %" PRIu64, peet_event_name(b->events[r->id].kind), b->events[r->id].arg[0]);
    else
        snprintf(text, 120, "%s %" PRIx64, r->kind == PEET_LOAD ? "load" : "store", r->addr);
    return text;
}

static void mix_record(uint64_t *hash, const struct peet_record *r, const struct peet_event *e)
{
    mix(hash, r->kind);
    mix(hash, r->addr);
    mix(hash, r->kind == PEET_EVENT ? e->kind : r->size);
    for (unsigned i = 0; r->kind == PEET_EVENT && i < e->args; i++)
        mix(hash, e->arg[i]);
}

/* ---- what is expected: the stream, cut ---- */

enum { ITERATIONS = 4096, TAKERS = 4, SLOTS = 64 };

struct cut {
    uint64_t iteration[ITERATIONS]; /* by its number, which no other has: hash; 0: there is none */
    uint64_t rest[TAKERS];          /* by thread */
};

struct cutter {
    int depth;           /* of starts */
    bool forked, inside; /* the last event was a fork; in a loop that is dealt out */
    uint64_t number, hash;
};

static void expect_record(struct cut *c, struct cutter *x, unsigned taker, const struct peet_record *r,
                          const struct peet_event *e)
{
    unsigned kind = r->kind == PEET_EVENT ? e->kind : PEET_EVENT_KINDS;

    if (kind == PEET_EV_doall_start && (x->forked || x->inside)) {
        if (x->depth++ == 0) {
            x->number = e->arg[0];
            x->hash = 1;
        }
        x->inside = true;
    }
    if (r->kind == PEET_EVENT)
        x->forked = kind == PEET_EV_doall_fork && !x->inside;
    if (kind == PEET_EV_doall_join && x->depth == 0)
        x->inside = false;
    if (x->depth > 0)
        mix_record(&x->hash, r, e);
    else if (!x->inside)
        mix_record(&c->rest[taker], r, e);
    if (kind == PEET_EV_doall_finish && x->depth > 0 && --x->depth == 0)
        c->iteration[x->number] = x->hash;
}

static void expect(struct peet_trace *t, struct cut *c)
{
    for (uint32_t taker = 0; peet_trace_thread(t, taker); taker++) {
        struct peet_cursor *cursor;
        struct peet_batch b;
        struct peet_err err;
        struct cutter x = { 0 };
        if (!fine(peet_cursor_open(t, taker + 1, 0, &cursor, &err), &err))
            return;
        while (peet_cursor_next(cursor, &b, &err) == 1)
            for (size_t i = 0; i < b.count; i++)
                expect_record(c, &x, taker, &b.records[i],
                              b.records[i].kind == PEET_EVENT ? &b.events[b.records[i].id] : NULL);
        peet_cursor_free(cursor);
    }
}

/* ---- what comes: contexts asked in any order ---- */

enum { UNBORN, RUNS, JOINS, ENDED };

struct consumer {
    struct source *source;
    uint8_t status[TAKERS + SLOTS * TAKERS];
    struct cutter x[TAKERS + SLOTS * TAKERS];
    bool joins[TAKERS][TAKERS + SLOTS * TAKERS];
    struct cut cut;
    uint64_t largest; /* batch */
};

static uint32_t find(const struct consumer *c, uint64_t thread)
{
    for (uint32_t i = 0; i < c->source->threads; i++)
        if (c->source->thread[i].id == thread)
            return i;
    CHECK(false);
    return 0;
}

static void consume_record(struct consumer *c, uint32_t i, const struct peet_record *r, const struct peet_event *e)
{
    struct cutter *x = &c->x[i];

    if (e && e->arg[0] >= 1000000 && e->kind == PEET_EV_thread_create) {
        uint32_t child = find(c, e->arg[0]);
        CHECK(c->status[child] == UNBORN || c->status[child] == ENDED);
        c->status[child] = RUNS;
    } else if (e && e->arg[0] >= 1000000 && e->kind == PEET_EV_thread_join) {
        c->status[i] = JOINS;
        c->joins[i][find(c, e->arg[0])] = true;
    } else if (c->source->thread[i].birth != BIRTH_ITERATION) {
        mix_record(&c->cut.rest[i], r, e);
    } else {
        if (e && e->kind == PEET_EV_doall_start && x->depth++ == 0) {
            x->number = e->arg[0];
            x->hash = 1;
        }
        CHECK(x->depth > 0); /* nothing but iterations */
        mix_record(&x->hash, r, e);
        if (e && e->kind == PEET_EV_doall_finish && --x->depth == 0) {
            CHECK_EQ(c->cut.iteration[x->number], 0); /* each once */
            c->cut.iteration[x->number] = x->hash;
        }
    }
}

static void consume_repeat(struct consumer *c, uint32_t i, const struct peet_repeat *n)
{
    for (uint64_t trip = 0; trip < n->times; trip++)
        for (size_t k = 0; k < n->count; k++) {
            struct peet_record r = n->records[k];
            r.addr += trip * n->step[k];
            consume_record(c, i, &r, NULL);
        }
}

static bool may_go_on(struct consumer *c, uint32_t i)
{
    if (c->status[i] == JOINS) {
        for (uint32_t k = 0; k < c->source->threads; k++)
            if (c->joins[i][k] && c->status[k] != ENDED)
                return false;
        memset(c->joins[i], 0, sizeof c->joins[i]);
        c->status[i] = RUNS;
    }
    return c->status[i] == RUNS;
}

static int consume(struct consumer *c, struct peet_err *err)
{
    struct peet_batch b;

    for (uint32_t i = 0; i < c->source->threads; i++)
        c->status[i] = RUNS;
    for (;;) {
        uint32_t n = c->source->threads, from = (uint32_t)draw(n), i = 0;
        while (i < n && !may_go_on(c, (from + i) % n))
            i++;
        if (i == n)
            return 0;
        i = (from + i) % n;
        int r = source_next(c->source, i, 0, &b, err);
        if (r < 0)
            return r;
        if (r == 0)
            c->status[i] = ENDED;
        for (size_t k = 0; r == 1 && k < b.count; k++) {
            if (b.records[k].kind == PEET_REPEAT)
                consume_repeat(c, i, &b.repeats[b.records[k].id]);
            else
                consume_record(c, i, &b.records[k],
                               b.records[k].kind == PEET_EVENT ? &b.events[b.records[k].id] : NULL);
        }
        c->largest = r == 1 && b.count > c->largest ? b.count : c->largest;
    }
}

/* ---- the example of the paper ---- */

/* The maximum of an array, by two processors, each S elements; then the greater one of both. */
static void write_maximum(unsigned elements)
{
    program_begin(1);
    line("1 - b1");
    line("1 - doall_fork 2");
    line("1 - b1"); /* p = 0 */
    for (unsigned p = 0; p < 2; p++) {
        line("1 - doall_start %u", p);
        for (unsigned i = 0; i < elements; i++)
            line("1 - b2 0x%x", 0x500000 + (p * elements + i) * 8);
        line("1 - b3 0x%x", 0x600000 + p * 8);
        line("1 - doall_finish %u", p);
        line("1 - b1");          /* p++ */
        line("1 - b2 0x700000"); /* p < 2 */
    }
    line("1 - doall_join 0");
    line("1 - b2 0x600000");
    line("1 - b2 0x600008");
}

static void take_all(struct source *s, uint32_t context, char *text, size_t size)
{
    struct peet_batch b;
    struct peet_err err;
    char word[120];

    *text = 0;
    while (source_next(s, context, 0, &b, &err) == 1)
        for (size_t i = 0; i < b.count; i++)
            snprintf(text + strlen(text), size - strlen(text), "%s; ", describe(&b, i, word));
}

static void the_maximum_of_an_array_is_two_contexts_and_no_loop(void)
{
    char text[1000];
    struct peet_batch b;
    struct peet_err err;

    write_maximum(2);
    struct peet_trace *t = program_end(1);
    struct source *s = t ? deal(t, 2, 1000) : NULL;
    if (!s)
        return;
    CHECK(source_next(s, 0, 0, &b, &err) == 1);
    CHECK_EQ(b.count, 3);
    CHECK_EQ(describe(&b, 1, text), "doall_fork 2");
    CHECK(source_next(s, 0, 0, &b, &err) == 1);
    CHECK_EQ(b.count, 2);
    CHECK_EQ(describe(&b, 0, text), "thread_create 1000000");
    CHECK_EQ(describe(&b, 1, text), "thread_create 1000001");
    CHECK_EQ(s->threads, 3);
    take_all(s, 2, text,
             sizeof text); /* the thread that is asked first takes the first iteration, and here all of them */
    CHECK_EQ(text, "doall_start 0; b10; load 500000; b10; load 500008; b14; store 600000; doall_finish 0; "
                   "doall_start 1; b10; load 500010; b10; load 500018; b14; store 600008; doall_finish 1; ");
    take_all(s, 1, text, sizeof text);
    CHECK_EQ(text, "");
    take_all(s, 0, text, sizeof text);
    CHECK_EQ(text, "thread_join 1000000; thread_join 1000001; doall_join 0; b10; load 600000; b10; load 600008; "
                   "thread_end 0; ");
    source_free(s);
    peet_trace_free(t);
}

static void two_contexts_take_an_iteration_each(void)
{
    static const char *const EXPECTED[] = {
        "doall_start 0; b10; load 500000; b14; store 600000; doall_finish 0; ",
        "doall_start 1; b10; load 500008; b14; store 600008; doall_finish 1; ",
    };
    struct peet_batch b;
    struct peet_err err;
    char word[120], text[2][400] = { "", "" };

    write_maximum(1);
    struct peet_trace *t = program_end(1);
    struct source *s = t ? deal(t, 2, 1000) : NULL;
    if (!s)
        return;
    for (int i = 0; i < 2; i++)
        CHECK(source_next(s, 0, 0, &b, &err) == 1);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK(source_next(s, 2 - i, 0, &b, &err) == 1);
        for (size_t k = 0; k < b.count; k++)
            snprintf(text[i] + strlen(text[i]), 200, "%s; ", describe(&b, k, word));
        CHECK_EQ(text[i], EXPECTED[i]);
    }
    CHECK(source_next(s, 1, 0, &b, &err) == 0);
    CHECK(source_next(s, 2, 0, &b, &err) == 0);
    source_free(s);
    peet_trace_free(t);
}

/* ---- any program ---- */

static unsigned iterations; /* so far: their numbers */

static void put_work(unsigned thread)
{
    switch (draw(6)) {
    case 0: line("%u - b1", thread); break;
    case 1: line("%u - b2 0x%x", thread, 0x500000 + (unsigned)draw(4096) * 8); break;
    case 2: line("%u - b3 0x%x", thread, 0x500000 + (unsigned)draw(4096) * 8); break;
    case 3: line("%u - l1 0x600000 %u", thread, 1 + (unsigned)draw(300)); break;
    case 4: line("%u - range_read 0x%x 64", thread, 0x500000 + (unsigned)draw(4096) * 8); break;
    default: line("%u - mark \"a\" %u", thread, (unsigned)draw(9)); break;
    }
}

static void put_some_work(unsigned thread, unsigned most)
{
    for (unsigned n = (unsigned)draw(most + 1); n > 0; n--)
        put_work(thread);
}

static void put_loop(unsigned thread, bool is_outer);

static void put_iteration(unsigned thread, bool is_outer)
{
    unsigned number = is_outer ? ++iterations : 7;

    line("%u - doall_start %u", thread, number);
    put_some_work(thread, 8);
    if (is_outer && draw(6) == 0)
        put_loop(thread, false);
    put_some_work(thread, 4);
    line("%u - doall_finish %u", thread, number);
}

static void put_loop(unsigned thread, bool is_outer)
{
    unsigned n = (unsigned)draw(12);

    line("%u - doall_fork %u", thread, draw(4) ? n : 0);
    for (unsigned i = draw(2) ? 1 : 0; i > 0; i--)
        line("%u - b1", thread);
    for (unsigned i = 0; i < n; i++) {
        put_iteration(thread, is_outer);
        line("%u - b2 0x700000", thread);
        put_some_work(thread, 2);
    }
    line("%u - doall_join %u", thread, n);
}

/* As OpenMP's: the loop is shared by threads already. */
static void put_team(unsigned thread)
{
    line("%u - doall_fork 1", thread);
    line("%u - barrier_wait 0x900000 1", thread);
    line("%u - doall_start 0", thread);
    put_some_work(thread, 5);
    line("%u - doall_finish 0", thread);
    line("%u - doall_join 1", thread);
}

static struct peet_trace *random_program(unsigned threads)
{
    iterations = 0;
    program_begin(threads);
    for (unsigned n = 20 * threads; n > 0; n--) {
        unsigned thread = 1 + (unsigned)draw(threads);
        if (draw(3) == 0)
            put_loop(thread, true);
        else if (draw(5) == 0)
            put_team(thread);
        else
            put_work(thread);
    }
    return program_end(threads);
}

static void every_iteration_comes_whole_and_once_in_whatever_order_contexts_are_asked(void)
{
    struct cut *expected = malloc(sizeof *expected);
    struct consumer *c = malloc(sizeof *c);
    unsigned all = 0;

    for (unsigned round = 0; expected && c && round < 150; round++) {
        unsigned threads = 1 + (unsigned)draw(3);
        struct peet_trace *t = random_program(threads);
        struct peet_err err;
        if (!t)
            break;
        memset(expected, 0, sizeof *expected);
        memset(c, 0, sizeof *c);
        expect(t, expected);
        c->source = deal(t, 1 + (uint32_t)draw(9), UINT64_MAX);
        fine(consume(c, &err), &err);
        for (unsigned i = 0; i <= iterations; i++)
            CHECK_EQ(c->cut.iteration[i], expected->iteration[i]);
        for (unsigned i = 0; i < threads; i++)
            CHECK_EQ(c->cut.rest[i], expected->rest[i]);
        for (uint32_t i = 0; i < c->source->threads; i++)
            CHECK_EQ(c->status[i] == ENDED || c->status[i] == UNBORN, true);
        all += iterations;
        source_free(c->source);
        peet_trace_free(t);
    }
    CHECK(all > 2000);
    free(expected);
    free(c);
}

/* ---- how much is kept ---- */

static void what_is_kept_of_a_context_stays_below_the_limit(void)
{
    struct consumer *c = calloc(1, sizeof *c);
    struct peet_trace *t = long_loop(100, 3000);
    struct peet_err err;

    if (!c || !t)
        return;
    c->source = deal(t, 8, 3002); /* an iteration: not more, however many there are */
    if (c->source && fine(consume(c, &err), &err)) {
        CHECK(source_doall_peak(c->source) <= 3002);
        CHECK(source_doall_peak(c->source) > 1000);
        CHECK(c->largest <= 1024 + 64); /* and a batch is small */
    }
    source_free(c->source);
    memset(c, 0, sizeof *c);
    c->source = deal(t, 8, 1000);
    if (c->source) {
        CHECK_EQ(consume(c, &err), PEET_ERR_LIMIT);
        CHECK(strstr(err.text, "--doall-records") != NULL);
    }
    source_free(c->source);
    memset(c, 0, sizeof *c);
    c->source = deal(t, 1, 1100); /* one at a time needs a batch only */
    if (c->source)
        fine(consume(c, &err), &err);
    source_free(c->source);
    peet_trace_free(t);
    free(c);
}

static void a_loop_that_is_left_by_a_jump_is_told(void)
{
    struct consumer *c = calloc(1, sizeof *c);
    struct peet_err err;

    program_begin(1);
    line("1 - doall_fork 3");
    line("1 - doall_start 0");
    line("1 - b1");
    struct peet_trace *t = program_end(1);
    if (!c || !t)
        return;
    c->source = deal(t, 2, 1000);
    CHECK_EQ(consume(c, &err), PEET_ERR_FORMAT);
    CHECK(strstr(err.text, "iteration 0") && strstr(err.text, "--doall keep"));
    source_free(c->source);
    peet_trace_free(t);
    free(c);
}

int main(void)
{
    if (!begin())
        return 1;
    RUN(the_maximum_of_an_array_is_two_contexts_and_no_loop);
    RUN(two_contexts_take_an_iteration_each);
    RUN(every_iteration_comes_whole_and_once_in_whatever_order_contexts_are_asked);
    RUN(what_is_kept_of_a_context_stays_below_the_limit);
    RUN(a_loop_that_is_left_by_a_jump_is_told);
    return end();
}
