/* SPDX-License-Identifier: MIT */
/* usage: listing SEED OUT.peet    writes a made-up trace (tests/synthetic.h); the seed also chooses its style
 *        listing --read FILE      prints what the library reads, in the form of tests/oracle/second_reader.py
 *
 * The library's half of the comparison that second_reader.sh makes. Odd seeds make many small chunks.
 * Exit status of --read: 0 the trace is whole, 3 it cannot be read, 4 parts of it are damaged or missing. */
#include <inttypes.h>
#include <stdio.h>

#include "tests/synthetic.h"

enum { THREADS = 3, ITEMS = 700 };

static void check(int r, const struct peet_err *err)
{
    if (r < 0) {
        fprintf(stderr, "listing: %s\n", err->text);
        exit(3);
    }
}

/* ---- writing ---- */

static const struct synthetic_style STYLES[] = {
    { .regular = 13, .wander = 24, .loops = 40, .events = 100 },
    { .regular = 0, .wander = 256, .loops = 8, .events = 300 },
    { .regular = 16, .wander = 0, .loops = 0, .events = 0 },
    { .regular = 13, .wander = 64, .loops = 40, .events = 40, .plain = true },
    { .regular = 8, .wander = 2, .loops = 80, .events = 2000 },
};

/* A nest of loops whose assignments depend on their order, around a block that takes its second address from a
 * register: tests/synthetic.h has no such loops. It has two values and the outer trip count. */
static uint32_t define_nest(struct peet_writer *w)
{
    const struct peet_insn insn[] = { { .addr = 0x500000, .length = 4 }, { .addr = 0x500004, .length = 4 } };
    const struct peet_operand operand[] = {
        { .insn = 0, .kind = PEET_LOAD, .size = 4, .base = PEET_SRC_SLOT },
        { .insn = 1, .kind = PEET_STORE, .size = 16, .base = PEET_SRC_REGISTER + 3, .index = PEET_SRC_SLOT + 1 },
    };
    const struct peet_assign outer[] = { { 5, 1, 0, 0 }, { 1, 0, 1, 0 }, { 8, 0, 1, 0 }, { -1, 1, 0, 0 } };
    const struct peet_assign middle[] = { { 7, 1, PEET_LOOP_ZERO, 0 }, { 256, 0, 1, 0 } };
    const struct peet_assign inner[] = { { 64, 0, 0, 2 }, { 64, 1, 0, 0 } };
    const struct peet_assign slots[] = { { 0, 0, 0, 0 }, { 32, 1, 1, 0 } };
    struct peet_loop_node node[] = {
        { .end = 7, .counted = 1, .assigns = 4, .enters = 2, .assign = outer },
        { .assigns = 2, .assign = slots },
        { .end = 6, .trips = 2, .assigns = 2, .enters = 1, .assign = middle },
        { .assigns = 2, .assign = slots },
        { .end = 6, .trips = 3, .assigns = 2, .enters = 0, .assign = inner },
        { .assigns = 2, .assign = slots },
        { .assigns = 2, .assign = slots },
    };
    struct peet_err err;
    uint32_t block, loop;

    check(peet_writer_block(
              w, &(struct peet_block){ .insns = 2, .operands = 2, .slots = 2, .insn = insn, .operand = operand },
              &block, &err),
          &err);
    node[1].block = node[3].block = node[5].block = node[6].block = block;
    check(peet_writer_loop(w, &(struct peet_loop){ .values = 2, .counts = 1, .nodes = 7, .node = node }, &loop, &err),
          &err);
    return loop;
}

/* Things that no item uses: a reader has to pass over them. */
static void put_surroundings(struct peet_writer *w)
{
    const struct peet_segment segment = { .start = 0x400000, .size = 0x10000, .protection = 5 };
    const struct peet_symbol symbol[] = { { 0x400000, 64, "main", 1 }, { 0x400040, 64, "other", 1 } };
    struct peet_err err;
    uint32_t string;

    check(peet_writer_meta(w, "producer", "listing", &err), &err);
    check(peet_writer_process(w, &(struct peet_process){ .id = 0, .program = "made-up", .command = "" }, &err), &err);
    check(peet_writer_module(w,
                             &(struct peet_module){ .path = "/made-up",
                                                    .build_id = "00ff",
                                                    .segments = 1,
                                                    .symbols = 2,
                                                    .segment = &segment,
                                                    .symbol = symbol },
                             &err),
          &err);
    check(peet_writer_range(w, &(struct peet_range){ .start = 0x1000, .size = 0x1000, .name = "[heap]" }, &err), &err);
    check(peet_writer_string(w, "a string", &string, &err), &err);
}

static void put_item(struct synthetic_thread *t, struct peet_stream *stream, uint32_t nest, uint64_t n)
{
    struct synthetic_step x;
    struct peet_err err;

    if (n % 100 == 0)
        check(peet_stream_time(stream, &(struct peet_time){ .position = n, .ns = 1000 * n, .cpu = 1 }, &err), &err);
    if (n % 64 == 0)
        check(peet_stream_put(stream, nest, (uint64_t[]){ 0x700000 + 8 * n, 0x900000, n / 64 % 4 }, &err), &err);
    synthetic_next(t, &x);
    check(peet_stream_put(stream, x.item, x.slot, &err), &err);
}

/* A long run of what can be foreseen. */
static void put_run(const struct synthetic *s, struct peet_stream *stream)
{
    struct peet_err err;
    uint64_t slot[SYN_OPERANDS];

    for (uint64_t n = 0; n < 600; n++) {
        for (uint64_t i = 0; i < SYN_OPERANDS; i++)
            slot[i] = 0x800000 + 0x1000 * i + 8 * n;
        check(peet_stream_put(stream, s->block[0].item, slot, &err), &err);
    }
}

/* Every seventh trace has a thread that is not recorded to its end, and every one a definition that comes late. */
static int write_trace(uint64_t seed, const char *path)
{
    static struct synthetic_thread t[THREADS];
    struct synthetic *s = synthetic_new(seed, &STYLES[seed % (sizeof STYLES / sizeof *STYLES)]);
    struct peet_stream *stream[THREADS];
    struct peet_writer *w;
    struct peet_err err;
    uint32_t nest, late;

    check(peet_writer_open(path, &(struct peet_writer_config){ .chunk_words = seed % 2 ? 500 : 20000 }, &w, &err),
          &err);
    put_surroundings(w);
    check(synthetic_define(s, w, &err), &err);
    nest = define_nest(w);
    for (uint32_t i = 0; i < THREADS; i++) {
        synthetic_thread_init(&t[i], s, i);
        check(
            peet_stream_open(w, &(struct peet_thread){ .id = i * 5, .ordinal = i, .name = "worker" }, &stream[i], &err),
            &err);
    }
    for (uint64_t n = 0; n < ITEMS; n++)
        for (uint32_t i = 0; i < THREADS; i++)
            put_item(&t[i], stream[i], nest, n);
    put_run(s, stream[0]);
    check(peet_writer_event(w, PEET_EV_thread_end, 0, &late, &err), &err);
    for (uint32_t i = 0; i < THREADS; i++) {
        if (i == 1 && seed % 7 == 0)
            continue;
        check(peet_stream_put(stream[i], late, (uint64_t[]){ PEET_END_EXIT, i }, &err), &err);
        check(peet_stream_close(stream[i], &err), &err);
    }
    check(peet_writer_close(w, &err), &err);
    free(s);
    return 0;
}

/* ---- reading ---- */

static void print_record(const struct peet_trace *t, const struct peet_batch *b, const struct peet_record *r)
{
    if (r->kind == PEET_BLOCK) {
        printf("%" PRIu32 " b %" PRIu32 " 0x%" PRIx64 " %u\n", b->thread, r->id, r->addr, (unsigned)r->size);
    } else if (peet_is_reference(r)) {
        printf("%" PRIu32 " %c 0x%" PRIx64 " 0x%" PRIx64 " %u\n", b->thread, "lsup"[r->kind - PEET_LOAD],
               peet_trace_insn(t, r->id) -> addr, r -> addr, (unsigned)r -> size);
    } else {
        const struct peet_event *e = &b->events[r->id];
        printf("%" PRIu32 " e %s 0x%" PRIx64, b->thread, peet_event_name(e->kind), e->site);
        for (uint32_t i = 0; i < e->args; i++)
            printf(" 0x%" PRIx64, e->arg[i]);
        putchar('\n');
    }
}

/* Returns whether anything was damaged. Times are read, but not shown. */
static bool print_thread(struct peet_trace *t, uint32_t thread)
{
    struct peet_cursor *c;
    struct peet_batch b;
    struct peet_err err;
    struct peet_time *times = NULL;
    size_t count;
    bool damaged = peet_trace_times(t, thread, &times, &count, &err) < 0;
    int r;

    free(times);
    check(peet_cursor_open(t, thread, 0, &c, &err), &err);
    while ((r = peet_cursor_next(c, &b, &err)) != 0) {
        if (r == PEET_ERR_DAMAGED) {
            fprintf(stderr, "listing: %s\n", err.text);
            damaged = true;
            continue;
        }
        check(r, &err);
        for (size_t i = 0; i < b.count; i++)
            print_record(t, &b, &b.records[i]);
    }
    peet_cursor_free(c);
    return damaged;
}

static int by_id(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static int read_trace(const char *path)
{
    struct peet_trace *t;
    struct peet_err err;
    size_t threads = 0;
    bool damaged = false;

    check(peet_trace_open(path, &t, &err), &err);
    while (peet_trace_thread(t, threads))
        threads++;
    uint32_t *id = calloc(threads + 1, sizeof *id);
    if (!id)
        abort();
    for (size_t i = 0; i < threads; i++)
        id[i] = peet_trace_thread(t, i)->id;
    qsort(id, threads, sizeof *id, by_id);
    for (size_t i = 0; i < threads; i++)
        damaged |= print_thread(t, id[i]);
    for (size_t i = 0; peet_trace_problem(t, i); i++, damaged = true)
        fprintf(stderr, "listing: %s\n", peet_trace_problem(t, i));
    free(id);
    peet_trace_free(t);
    return damaged ? 4 : 0;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: listing SEED OUT.peet, or listing --read FILE\n");
        return 2;
    }
    return strcmp(argv[1], "--read") == 0 ? read_trace(argv[2]) : write_trace(strtoull(argv[1], NULL, 0), argv[2]);
}
