/* SPDX-License-Identifier: MIT */
/* Traces come back as they were written: against the oracle of synthetic.h, through files and pipes, whole and cut. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/unit/trace_file.h"

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
        /* the first record that the seek may hand out: a block that holds the goal, or an event at or after it */
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

/* ---- values, physical addresses, times ---- */

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
    if (!folder_begin())
        return 1;
    RUN(what_is_written_comes_back_record_for_record);
    RUN(cursors_of_one_trace_can_be_used_by_several_threads_at_once);
    RUN(threads_can_write_one_trace_together);
    RUN(a_seek_to_any_instruction_continues_like_a_read_from_the_start);
    RUN(values_physical_addresses_and_times_come_back);
    RUN(definitions_come_back);
    RUN(a_trace_goes_through_a_pipe);
    RUN(a_wrong_definition_is_refused_with_its_reason);
    RUN(a_full_disk_is_told_and_what_was_written_stays);
    folder_end();
    return check_done();
}
