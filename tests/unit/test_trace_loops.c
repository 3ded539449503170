/* SPDX-License-Identifier: MIT */
/* Loops of a trace: whole ones stand for what expanded ones hold, and producers can give them by words with names. */
#include "tests/unit/trace_file.h"

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

/* The loop as one item. */
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

int main(void)
{
    if (!folder_begin())
        return 1;
    RUN(whole_loops_walk_to_what_expanded_ones_hold);
    RUN(repeats_stand_for_what_expanded_loops_hold);
    RUN(a_producer_can_change_the_words_of_each_loop);
    RUN(a_producer_can_tell_how_trips_follow);
    folder_end();
    return check_done();
}
