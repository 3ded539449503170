/* SPDX-License-Identifier: MIT */
/* Traces come back as they were written: against the oracle of synthetic.h, through files and pipes, whole and cut. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "tests/synthetic.h"

static char folder[] = "/tmp/peet-trace.XXXXXX";
static char path[100];

static const struct synthetic_style FULL = { .regular = 10, .wander = 40, .loops = 20, .events = 200 };

static bool fine(int r, const struct peet_err *err)
{
    if (r < 0)
        printf("# %s\n", err->text);
    return CHECK(r >= 0);
}

/* Writes `threads` streams of `items` items each, in turn, a few items at a time. */
static bool write_trace(struct synthetic *s, unsigned threads, unsigned items, const struct peet_writer_config *config)
{
    struct peet_err err;
    struct peet_writer *w;
    struct peet_stream *stream[16];
    struct synthetic_thread *t = calloc(threads, sizeof *t);
    struct synthetic_step x;
    bool ok = fine(peet_writer_open(path, config, &w, &err), &err) && fine(synthetic_define(s, w, &err), &err);

    for (unsigned i = 0; ok && i < threads; i++) {
        struct peet_thread thread = { .id = i, .name = "worker" };
        ok = fine(peet_stream_open(w, &thread, &stream[i], &err), &err);
        synthetic_thread_init(&t[i], s, i);
    }
    for (unsigned n = 0; ok && n < items; n++)
        for (unsigned i = 0; ok && i < threads; i++) {
            synthetic_next(&t[i], &x);
            ok = fine(peet_stream_put(stream[i], x.item, x.slot, &err), &err);
        }
    for (unsigned i = 0; ok && i < threads; i++)
        ok = fine(peet_stream_close(stream[i], &err), &err);
    free(t);
    return ok && fine(peet_writer_close(w, &err), &err);
}

/* A reader's records in a row, across batches. */
struct reader {
    struct peet_cursor *c;
    struct peet_batch batch;
    size_t at;
    struct peet_err err;
};

static const struct peet_record *next_record(struct reader *r)
{
    if (r->at == r->batch.count) {
        int n = peet_cursor_next(r->c, &r->batch, &r->err);
        if (n <= 0) {
            if (n < 0)
                printf("# %s\n", r->err.text);
            return NULL;
        }
        r->at = 0;
    }
    return &r->batch.records[r->at++];
}

static bool same(const struct reader *r, const struct peet_record *a, const struct peet_record *b,
                 const struct synthetic_step *x)
{
    if (a->kind != b->kind || a->addr != b->addr)
        return false;
    if (a->kind != PEET_EVENT)
        return a->id == b->id && a->size == b->size;
    const struct peet_event *e = &r->batch.events[a->id];
    return e->kind == x->s_kind && e->site == x->s_site && e->args == x->slots
           && !memcmp(e->arg, x->slot, x->slots * 8);
}

/* The stream of one thread equals the oracle's, record for record. */
static bool thread_is_same(struct synthetic *s, struct peet_trace *trace, uint32_t thread, unsigned items)
{
    static struct peet_record expected[SYN_RECORDS];
    struct reader r = { 0 };
    struct synthetic_thread *t = malloc(sizeof *t);
    struct synthetic_step x;
    bool ok = fine(peet_cursor_open(trace, thread, 0, &r.c, &r.err), &r.err);

    synthetic_thread_init(t, s, thread);
    for (unsigned n = 0; ok && n < items; n++) {
        synthetic_next(t, &x);
        if (x.kind == 'e') {
            x.s_kind = s->event[x.index].kind;
            x.s_site = s->event[x.index].site;
        }
        size_t count = synthetic_expand(t, trace, &x, expected);
        for (size_t i = 0; ok && i < count; i++) {
            const struct peet_record *got = next_record(&r);
            ok = CHECK(got && same(&r, got, &expected[i], &x));
            if (!ok)
                printf("# thread %u item %u (%c%u) record %zu of %zu\n", thread, n, x.kind, x.index, i, count);
        }
    }
    ok = ok && CHECK(next_record(&r) == NULL);
    peet_cursor_free(r.c);
    free(t);
    return ok;
}

static struct peet_trace *open_trace(size_t problems)
{
    struct peet_err err;
    struct peet_trace *t;
    size_t n = 0;

    if (!fine(peet_trace_open(path, &t, &err), &err))
        return NULL;
    while (peet_trace_problem(t, n))
        n++;
    if (!CHECK_EQ(n, problems))
        for (size_t i = 0; i < n; i++)
            printf("# problem: %s\n", peet_trace_problem(t, i));
    return t;
}

static void what_is_written_comes_back_record_for_record(void)
{
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct synthetic *s = synthetic_new(seed, seed % 3 == 0 ? &SYN_RANDOM : seed % 3 == 1 ? &FULL : &SYN_TYPICAL);
        struct peet_writer_config config = { .chunk_words = seed % 2 ? 1000 : 0 };
        if (write_trace(s, 3, 20000, &config)) {
            struct peet_trace *t = open_trace(0);
            for (uint32_t i = 0; t && i < 3; i++)
                thread_is_same(s, t, i, 20000);
            peet_trace_free(t);
        }
        free(s);
    }
}

struct walker {
    struct synthetic *s;
    struct peet_trace *t;
    uint32_t thread;
    unsigned items;
    bool ok;
};

static uint64_t digest(struct peet_trace *t, uint32_t thread, uint64_t from)
{
    struct peet_err err;
    struct peet_cursor *c;
    struct peet_batch b;
    uint64_t sum = 0;

    if (!fine(peet_cursor_open(t, thread, 0, &c, &err), &err) || (from && !fine(peet_cursor_seek(c, from, &err), &err)))
        return 0;
    while (peet_cursor_next(c, &b, &err) == 1)
        for (size_t i = 0; i < b.count; i++)
            sum = sum * 31 + b.records[i].addr + b.records[i].kind + b.records[i].size;
    peet_cursor_free(c);
    return sum;
}

static void *walk(void *p)
{
    struct walker *w = p;
    w->ok = digest(w->t, w->thread, 0) == digest(w->t, w->thread, 0);
    return NULL;
}

static void cursors_of_one_trace_can_be_used_by_several_threads_at_once(void)
{
    struct synthetic *s = synthetic_new(11, &FULL);

    if (write_trace(s, 4, 20000, NULL)) {
        struct peet_trace *t = open_trace(0);
        struct walker w[4];
        pthread_t thread[4];
        for (uint32_t i = 0; i < 4; i++) {
            w[i] = (struct walker){ s, t, i, 20000, false };
            pthread_create(&thread[i], NULL, walk, &w[i]);
        }
        for (int i = 0; i < 4; i++) {
            pthread_join(thread[i], NULL);
            CHECK(w[i].ok);
        }
        peet_trace_free(t);
    }
    free(s);
}

/* ---- writers in parallel ---- */

struct producer {
    struct synthetic *s;
    struct peet_writer *w;
    uint32_t thread;
    bool ok;
};

static void *produce(void *p)
{
    struct producer *x = p;
    struct peet_err err;
    struct peet_stream *stream;
    struct synthetic_thread *t = malloc(sizeof *t);
    struct synthetic_step step;
    struct peet_thread thread = { .id = x->thread, .name = "worker" };

    x->ok = peet_stream_open(x->w, &thread, &stream, &err) == 0;
    synthetic_thread_init(t, x->s, x->thread);
    for (int n = 0; x->ok && n < 30000; n++) {
        synthetic_next(t, &step);
        x->ok = peet_stream_put(stream, step.item, step.slot, &err) == 0;
        if (n % 1000 == 0) {
            uint32_t item;
            x->ok &= peet_writer_event(x->w, PEET_EV_mark, 0x1000 + (unsigned)n * 16 + x->thread, &item, &err) == 0;
        }
    }
    x->ok = x->ok && peet_stream_close(stream, &err) == 0;
    free(t);
    return NULL;
}

static void threads_can_write_one_trace_together(void)
{
    struct synthetic *s = synthetic_new(5, &FULL);
    struct peet_writer *w;
    struct peet_err err;
    struct producer x[8];
    pthread_t thread[8];

    fine(peet_writer_open(path, &(struct peet_writer_config){ .chunk_words = 2000 }, &w, &err), &err);
    fine(synthetic_define(s, w, &err), &err);
    for (uint32_t i = 0; i < 8; i++) {
        x[i] = (struct producer){ s, w, i, false };
        pthread_create(&thread[i], NULL, produce, &x[i]);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(thread[i], NULL);
        CHECK(x[i].ok);
    }
    if (fine(peet_writer_close(w, &err), &err)) {
        struct peet_trace *t = open_trace(0);
        for (uint32_t i = 0; t && i < 8; i++)
            thread_is_same(s, t, i, 30000);
        peet_trace_free(t);
    }
    free(s);
}

/* ---- seeking ---- */

static void a_seek_to_any_instruction_continues_like_a_read_from_the_start(void)
{
    struct synthetic *s = synthetic_new(21, &FULL);
    struct peet_err err;
    struct peet_totals totals;
    uint64_t random = 99;

    if (!write_trace(s, 1, 20000, &(struct peet_writer_config){ .chunk_words = 3000 }))
        return;
    struct peet_trace *t = open_trace(0);
    peet_trace_totals(t, 0, &totals);
    for (int n = 0; n < 40; n++) {
        uint64_t goal = n == 0 ? 0 : n == 1 ? totals.instructions - 1 : synthetic_random(&random) % totals.instructions;
        struct reader all = { 0 }, there = { 0 };
        peet_cursor_open(t, 0, 0, &all.c, &err);
        peet_cursor_open(t, 0, 0, &there.c, &err);
        fine(peet_cursor_seek(there.c, goal, &err), &err);
        const struct peet_record *a, *b = next_record(&there);
        uint64_t position = 0;
        /* the first record that the seek may hand out: a block that holds the goal, or an event at or behind it */
        while ((a = next_record(&all)) && !(a->kind == PEET_BLOCK && position + a->size > goal)
               && !(a->kind == PEET_EVENT && position >= goal))
            position += a->kind == PEET_BLOCK ? a->size : 0;
        CHECK_EQ(there.batch.position, position);
        for (int i = 0; i < 3000 && a && b; i++) {
            if (!CHECK(a->kind == b->kind && a->addr == b->addr && a->size == b->size))
                break;
            a = next_record(&all);
            b = next_record(&there);
        }
        CHECK((a == NULL) == (b == NULL));
        peet_cursor_free(all.c);
        peet_cursor_free(there.c);
    }
    struct peet_cursor *c;
    struct peet_batch batch;
    peet_cursor_open(t, 0, 0, &c, &err);
    fine(peet_cursor_seek(c, totals.instructions + 5, &err), &err);
    CHECK_EQ(peet_cursor_next(c, &batch, &err), 0);
    peet_cursor_free(c);
    peet_trace_free(t);
    free(s);
}

/* ---- loops, values, physical addresses, times ---- */

static void whole_loops_walk_to_what_expanded_ones_hold(void)
{
    struct synthetic *s =
        synthetic_new(8, &(struct synthetic_style){ .regular = 12, .wander = 9, .loops = 900, .plain = true });
    struct peet_err err;
    struct peet_cursor *whole;
    struct peet_batch batch;
    unsigned loops = 0;

    if (!write_trace(s, 1, 5000, NULL))
        return;
    struct peet_trace *t = open_trace(0);
    struct reader flat = { 0 };
    peet_cursor_open(t, 0, 0, &flat.c, &err);
    peet_cursor_open(t, 0, PEET_WANT_LOOPS, &whole, &err);
    while (peet_cursor_next(whole, &batch, &err) == 1)
        for (size_t i = 0; i < batch.count; i++) {
            const struct peet_record *r = &batch.records[i], *f;
            if (r->kind != PEET_LOOP) {
                f = next_record(&flat);
                if (!CHECK(f && f->addr == r->addr && f->id == r->id))
                    return;
                continue;
            }
            struct peet_loop_walk walker;
            const struct peet_block *b;
            const uint64_t *slots;
            peet_loop_walk_init(&walker, t, &batch.loops[r->id]);
            loops++;
            while ((b = peet_loop_walk_next(&walker, &slots))) {
                f = next_record(&flat);
                if (!CHECK(f && f->kind == PEET_BLOCK && f->id == b->id))
                    return;
                for (unsigned j = 0; j < b->operands; j++) {
                    f = next_record(&flat);
                    const struct peet_operand *o = &b->operand[j];
                    CHECK(f && f->addr == (o->base ? slots[o->base - PEET_SRC_SLOT] : 0) + (uint64_t)o->disp);
                }
            }
        }
    CHECK(loops > 500);
    CHECK(next_record(&flat) == NULL);
    peet_cursor_free(whole);
    peet_cursor_free(flat.c);
    peet_trace_free(t);
    free(s);
}

/* The next records are those of a repeat, trip by trip. */
static bool repeat_is_same(struct reader *flat, const struct peet_repeat *n)
{
    for (uint64_t trip = 0; trip < n->times; trip++)
        for (size_t i = 0; i < n->count; i++) {
            const struct peet_record *r = &n->records[i], *f = next_record(flat);
            if (!CHECK(f && f->addr == r->addr + n->step[i] * trip && f->id == r->id && f->kind == r->kind
                       && f->size == r->size))
                return false;
        }
    return true;
}

static void repeats_stand_for_what_expanded_loops_hold(void)
{
    static const struct synthetic_style STYLE[] = { { .regular = 12, .wander = 9, .loops = 900, .plain = true },
                                                    { .regular = 12, .wander = 9, .loops = 900 } };
    unsigned repeats = 0;

    for (unsigned n = 0; n < 60; n++) {
        struct synthetic *s = synthetic_new(n, &STYLE[n % 2]);
        struct peet_err err;
        struct peet_batch batch;
        struct reader flat = { 0 };
        struct peet_cursor *c;
        bool ok = write_trace(s, 1, 300, NULL);
        struct peet_trace *t = open_trace(0);
        peet_cursor_open(t, 0, 0, &flat.c, &err);
        peet_cursor_open(t, 0, PEET_WANT_REPEATS, &c, &err);
        while (ok && peet_cursor_next(c, &batch, &err) == 1)
            for (size_t i = 0; ok && i < batch.count; i++) {
                const struct peet_record *r = &batch.records[i];
                bool is_repeat = r->kind == PEET_REPEAT;
                const struct peet_record *f = is_repeat ? NULL : next_record(&flat);
                repeats += is_repeat;
                ok = is_repeat ? repeat_is_same(&flat, &batch.repeats[r->id])
                               : CHECK(f && f->addr == r->addr && f->kind == r->kind && f->size == r->size);
            }
        CHECK(next_record(&flat) == NULL);
        peet_cursor_free(c);
        peet_cursor_free(flat.c);
        peet_trace_free(t);
        free(s);
    }
    CHECK(repeats > 100);
}

enum { TRIPS_NAME = 1000, TRIPS_LOOPS = 300 };

struct tripper {
    uint32_t block, loop;
    unsigned calls;
};

static int tripper_item(void *context, uint64_t name, uint32_t *ret_item, struct peet_err *err)
{
    const struct tripper *x = context;

    (void)err;
    *ret_item = name == TRIPS_NAME ? x->loop : x->block;
    return 0;
}

/* The words say where the counter ended; the trip count is how far it came from value 0, in steps of 8. */
static void tripper_loop(void *context, uint64_t name, uint64_t *slots)
{
    struct tripper *x = context;

    CHECK_EQ(name, TRIPS_NAME);
    slots[1] = (slots[1] - slots[0]) / 8;
    x->calls++;
}

/* A loop of one load, whose address steps by 8. */
static void define_tripper(struct peet_writer *w, struct tripper *x)
{
    struct peet_insn insn = { .addr = 0x1000, .length = 4 };
    struct peet_operand operand = { .size = 8, .kind = PEET_LOAD, .base = PEET_SRC_SLOT };
    struct peet_block block = { .insns = 1, .operands = 1, .slots = 1, .insn = &insn, .operand = &operand };
    struct peet_assign same = { 0, 0, 0, 0 }, step = { 8, 0, 0, 0 };
    struct peet_loop_node node[] = { { .end = 2, .counted = 1, .assigns = 1, .assign = &step },
                                     { .assigns = 1, .assign = &same } };
    struct peet_err err;

    fine(peet_writer_block(w, &block, &x->block, &err), &err);
    node[1].block = x->block;
    fine(peet_writer_loop(w, &(struct peet_loop){ .values = 1, .counts = 1, .nodes = 2, .node = node }, &x->loop, &err),
         &err);
}

/* The same, told once. */
static const struct peet_trips *tripper_trips(void *context, uint64_t name)
{
    static const struct peet_trips BY_8 = { .inverse = 1, .mask = UINT64_MAX, .end = 1, .start = 0, .shift = 3 };

    (void)context;
    CHECK_EQ(name, TRIPS_NAME);
    return &BY_8;
}

static void put_loops(bool is_told)
{
    struct tripper x = { 0 };
    struct peet_names names = { tripper_item, &x, tripper_loop, is_told ? tripper_trips : NULL };
    uint64_t word[5 * TRIPS_LOOPS], *p = word, total = 0;
    struct peet_err err;
    struct peet_writer *w;
    struct peet_stream *stream;

    fine(peet_writer_open(path, &(struct peet_writer_config){ .chunk_words = 100 }, &w, &err), &err);
    define_tripper(w, &x);
    fine(peet_stream_open(w, &(struct peet_thread){ .name = "x" }, &stream, &err), &err);
    for (uint64_t i = 0; i < TRIPS_LOOPS; i++) {
        uint64_t start = 0x70000000 + 4096 * i, said[] = { TRIPS_NAME, start, start + 8 * (i % 7), 1, 64 * i };
        memcpy(p, said, sizeof said);
        p += 5;
        total += i % 7 + 1;
    }
    fine(peet_stream_put_named(stream, word, 5 * TRIPS_LOOPS, &names, &err), &err);
    CHECK_EQ(x.calls, is_told ? 0 : TRIPS_LOOPS);
    fine(peet_stream_close(stream, &err), &err);
    fine(peet_writer_close(w, &err), &err);

    struct peet_trace *t = open_trace(0);
    struct peet_totals totals;
    struct reader r = { 0 };
    const struct peet_record *a;
    peet_trace_totals(t, 0, &totals);
    CHECK_EQ(totals.references, total);
    fine(peet_cursor_open(t, 0, 0, &r.c, &r.err), &r.err);
    for (uint64_t i = 0; i < TRIPS_LOOPS; i++)
        for (uint64_t k = 0; k < i % 7 + 1; k++) {
            uint64_t expected = k < i % 7 ? 0x70000000 + 4096 * i + 8 * k : 64 * i;
            CHECK((a = next_record(&r)) && a->kind == PEET_BLOCK);
            CHECK((a = next_record(&r)) && a->addr == expected);
        }
    CHECK(next_record(&r) == NULL);
    peet_cursor_free(r.c);
    peet_trace_free(t);
}

static void a_producer_can_change_the_words_of_each_loop(void)
{
    put_loops(false);
}

static void a_producer_can_tell_how_trips_follow(void)
{
    put_loops(true);
}

static void values_physical_addresses_and_times_come_back(void)
{
    struct peet_insn insn = { .addr = 0x1000, .length = 4 };
    struct peet_operand operand[] = {
        { .size = 8, .kind = PEET_LOAD, .base = PEET_SRC_SLOT, .value = PEET_SRC_SLOT + 1 },
        { .size = 16, .kind = PEET_STORE, .base = PEET_SRC_SLOT, .disp = 0x1000, .value = PEET_SRC_SLOT + 2 },
        { .size = 4, .kind = PEET_LOAD, .base = PEET_SRC_SLOT, .disp = 64 },
    };
    struct peet_block block = { .insns = 1, .operands = 3, .slots = 4, .insn = &insn, .operand = operand };
    struct peet_thread thread = { .id = 7, .name = "one" };
    struct peet_err err;
    struct peet_writer *w;
    struct peet_stream *stream;
    uint32_t b, page;

    fine(peet_writer_open(path, &(struct peet_writer_config){ .chunk_words = 500 }, &w, &err), &err);
    fine(peet_writer_block(w, &block, &b, &err), &err);
    fine(peet_writer_event(w, PEET_EV_page, 0, &page, &err), &err);
    fine(peet_stream_open(w, &thread, &stream, &err), &err);
    uint64_t said = UINT64_MAX;
    for (uint64_t i = 0; i < 2000; i++) {
        if (peet_stream_chunk(stream) != said) {
            said = peet_stream_chunk(stream);
            peet_stream_put(stream, page, (uint64_t[]){ 0x70000, 0x123 }, &err);
        }
        fine(peet_stream_put(stream, b, (uint64_t[]){ 0x70000000 + i % 200, i, i * i, ~i }, &err), &err);
        if (i % 10 == 0)
            peet_stream_time(stream, &(struct peet_time){ i, 1000 * i, (uint32_t)(i % 3) }, &err);
    }
    fine(peet_stream_close(stream, &err), &err);
    fine(peet_writer_close(w, &err), &err);

    struct peet_trace *t = open_trace(0);
    struct peet_cursor *c;
    struct peet_batch batch;
    uint64_t i = 0;
    fine(peet_cursor_open(t, 7, PEET_WANT_VALUES | PEET_WANT_PHYSICAL, &c, &err), &err);
    while (peet_cursor_next(c, &batch, &err) == 1)
        for (size_t k = 0; k < batch.count; k++) {
            if (batch.records[k].kind != PEET_BLOCK)
                continue;
            if (!CHECK(k + 3 < batch.count))
                break;
            CHECK_EQ(batch.physical[k + 1], 0x123000 + i % 200);
            CHECK_EQ(batch.physical[k + 2], PEET_NO_PHYSICAL);
            CHECK_EQ(batch.physical[k + 3], 0x123000 + i % 200 + 64);
            CHECK_EQ(batch.values[batch.value_index[k + 1]], i);
            CHECK_EQ(batch.values[batch.value_index[k + 2]], i * i);
            CHECK_EQ(batch.values[batch.value_index[k + 2] + 1], ~i);
            CHECK_EQ(batch.value_index[k + 3], PEET_NO_VALUE);
            i++;
        }
    CHECK_EQ(i, 2000);
    peet_cursor_free(c);
    struct peet_time *time;
    size_t times;
    if (fine(peet_trace_times(t, 7, &time, &times, &err), &err) && CHECK_EQ(times, 200)) {
        CHECK_EQ(time[199].position, 1990);
        CHECK_EQ(time[199].ns, 1990000);
        CHECK_EQ(time[199].cpu, 1990 % 3);
        free(time);
    }
    peet_trace_free(t);
}

static void definitions_come_back(void)
{
    struct peet_segment segment[] = { { 0x400000, 0x1000, 0, 5 }, { 0x600000, 0x2000, 0x1000, 6 } };
    struct peet_symbol symbol[] = { { 0x400100, 0x80, "main", 1 }, { 0x600010, 8, "counter", 0 } };
    struct peet_module module = { 3, "/bin/thing", "00ff12", 0x400000, 2, 2, segment, symbol };
    struct peet_err err;
    struct peet_writer *w;
    uint32_t one, two, again;

    fine(peet_writer_open(path, NULL, &w, &err), &err);
    fine(peet_writer_meta(w, "producer", "a test", &err), &err);
    fine(peet_writer_process(w, &(struct peet_process){ 3, 0, "thing", "thing -x 'a b'" }, &err), &err);
    fine(peet_writer_module(w, &module, &err), &err);
    fine(peet_writer_range(w, &(struct peet_range){ 3, 0x7fff0000, 0x10000, 6, "[stack]" }, &err), &err);
    peet_writer_string(w, "phase one", &one, &err);
    peet_writer_string(w, "", &two, &err);
    peet_writer_string(w, "phase one", &again, &err);
    CHECK_EQ(one, again);
    CHECK(one != two);
    fine(peet_writer_close(w, &err), &err);

    struct peet_trace *t = open_trace(0);
    CHECK_EQ(peet_trace_meta_get(t, "producer"), "a test");
    CHECK_EQ(peet_trace_process(t, 0)->command, "thing -x 'a b'");
    CHECK(peet_trace_process(t, 1) == NULL);
    const struct peet_module *m = peet_trace_module(t, 0);
    CHECK_EQ(m->build_id, "00ff12");
    CHECK_EQ(m->segment[1].offset, 0x1000);
    CHECK_EQ(peet_trace_symbol(t, 3, 0x400120)->name, "main");
    CHECK_EQ(peet_trace_symbol(t, 3, 0x600017)->name, "counter");
    CHECK(peet_trace_symbol(t, 3, 0x600018) == NULL);
    CHECK(peet_trace_symbol(t, 2, 0x400120) == NULL);
    CHECK_EQ(peet_trace_range(t, 0)->name, "[stack]");
    CHECK_EQ(peet_trace_string(t, one), "phase one");
    CHECK_EQ(peet_trace_string(t, two), "");
    CHECK(peet_trace_string(t, 12345) == NULL);
    peet_trace_free(t);
}

/* ---- pipes ---- */

static void a_trace_goes_through_a_pipe(void)
{
    struct synthetic *s = synthetic_new(31, &FULL);
    struct peet_err err;
    char saved[sizeof path];

    write_trace(s, 3, 10000, &(struct peet_writer_config){ .chunk_words = 2000 });
    memcpy(saved, path, sizeof saved);
    struct peet_trace *file = open_trace(0);
    snprintf(path, sizeof path, "%s/fifo", folder);
    CHECK(mkfifo(path, 0600) == 0);
    pid_t child = fork();
    if (child == 0)
        _exit(write_trace(s, 3, 10000, &(struct peet_writer_config){ .chunk_words = 2000 }) ? 0 : 1);
    struct peet_trace *pipe;
    uint64_t sum[3] = { 0 };
    if (fine(peet_trace_open(path, &pipe, &err), &err)) {
        struct peet_cursor *c;
        struct peet_batch b;
        CHECK(peet_trace_is_pipe(pipe));
        CHECK_EQ(peet_cursor_open(pipe, 0, 0, &c, &err), PEET_ERR_USAGE);
        fine(peet_cursor_open(pipe, PEET_ALL_THREADS, 0, &c, &err), &err);
        int r;
        while ((r = peet_cursor_next(c, &b, &err)) == 1)
            for (size_t i = 0; i < b.count; i++)
                sum[b.thread] = sum[b.thread] * 31 + b.records[i].addr + b.records[i].kind + b.records[i].size;
        fine(r, &err);
        for (uint32_t i = 0; i < 3; i++) {
            struct peet_totals a, p;
            CHECK_EQ(sum[i], digest(file, i, 0));
            peet_trace_totals(file, i, &a);
            peet_trace_totals(pipe, i, &p);
            CHECK_EQ(a.references, p.references);
            CHECK_EQ(a.bytes, p.bytes);
            CHECK(p.whole);
        }
        CHECK(peet_trace_problem(pipe, 0) == NULL);
        peet_cursor_free(c);
        peet_trace_free(pipe);
    }
    int status;
    waitpid(child, &status, 0);
    CHECK_EQ(status, 0);
    unlink(path);
    memcpy(path, saved, sizeof path);
    peet_trace_free(file);
    free(s);
}

/* ---- mistakes of producers ---- */

static void a_wrong_definition_is_refused_with_its_reason(void)
{
    struct peet_insn insn = { .addr = 0x1000, .length = 4 };
    struct peet_operand operand = { .size = 8, .kind = PEET_LOAD, .base = PEET_SRC_SLOT };
    struct peet_block good = { .insns = 1, .operands = 1, .slots = 1, .insn = &insn, .operand = &operand }, bad;
    struct peet_err err;
    struct peet_writer *w;
    struct peet_stream *stream;
    uint32_t item;

    fine(peet_writer_open(path, NULL, &w, &err), &err);
    fine(peet_stream_open(w, &(struct peet_thread){ .name = "x" }, &stream, &err), &err);
    bad = good, bad.slots = 0;
    CHECK_EQ(peet_writer_block(w, &bad, &item, &err), PEET_ERR_FORMAT);
    CHECK(strstr(err.text, "operand 0: it uses a source that the block does not have") != NULL);
    bad = good, bad.insns = 0;
    CHECK_EQ(peet_writer_block(w, &bad, &item, &err), PEET_ERR_LIMIT);
    bad = good, bad.slots = 65;
    CHECK_EQ(peet_writer_block(w, &bad, &item, &err), PEET_ERR_LIMIT);
    CHECK_EQ(peet_writer_event(w, PEET_EVENT_KINDS, 0, &item, &err), PEET_ERR_FORMAT);
    CHECK_EQ(peet_stream_put(stream, 77, NULL, &err), PEET_ERR_USAGE);
    CHECK(strstr(err.text, "item 77 is not defined") != NULL);
    fine(peet_writer_block(w, &good, &item, &err), &err);
    CHECK_EQ(peet_stream_put_words(stream, (uint64_t[]){ item }, 1, &err), PEET_ERR_USAGE);
    struct peet_assign assign = { 0, 0, 0, 0 };
    struct peet_loop_node node[] = { { .end = 2, .trips = 3 }, { .block = item, .assigns = 1, .assign = &assign } };
    struct peet_loop loop = { .values = 1, .nodes = 2, .node = node };
    fine(peet_writer_loop(w, &loop, &item, &err), &err);
    node[1].assigns = 0;
    CHECK_EQ(peet_writer_loop(w, &loop, &item, &err), PEET_ERR_FORMAT);
    CHECK(strstr(err.text, "node 1: it does not set each of its block's slots") != NULL);
    fine(peet_stream_close(stream, &err), &err);
    fine(peet_writer_close(w, &err), &err);
    peet_trace_free(open_trace(0));
}

static void a_full_disk_is_told_and_what_was_written_stays(void)
{
    struct synthetic *s = synthetic_new(3, &SYN_RANDOM);
    struct peet_err err;
    struct peet_writer *w;
    int full = open("/dev/full", O_WRONLY);

    if (full >= 0) {
        CHECK_EQ(peet_writer_open_fd(full, NULL, &w, &err), PEET_ERR_IO);
        CHECK(strstr(err.text, "No space left") != NULL);
        close(full);
    }
    free(s);
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/t.peet", folder);
    RUN(what_is_written_comes_back_record_for_record);
    RUN(cursors_of_one_trace_can_be_used_by_several_threads_at_once);
    RUN(threads_can_write_one_trace_together);
    RUN(a_seek_to_any_instruction_continues_like_a_read_from_the_start);
    RUN(whole_loops_walk_to_what_expanded_ones_hold);
    RUN(repeats_stand_for_what_expanded_loops_hold);
    RUN(a_producer_can_change_the_words_of_each_loop);
    RUN(a_producer_can_tell_how_trips_follow);
    RUN(values_physical_addresses_and_times_come_back);
    RUN(definitions_come_back);
    RUN(a_trace_goes_through_a_pipe);
    RUN(a_wrong_definition_is_refused_with_its_reason);
    RUN(a_full_disk_is_told_and_what_was_written_stays);
    unlink(path);
    rmdir(folder);
    return check_done();
}
