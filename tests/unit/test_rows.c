/* SPDX-License-Identifier: MIT */
/* Words by the thousand, as producers hand them over: what is written comes back, and a processor's vectors write the same bytes as
 * plain code does. */
#include <unistd.h>

#include "base/cpu.h"
#include "check.h"
#include "tests/synthetic.h"

enum { WORDS = 200000, BLOCKS = 11 };

static char folder[] = "/tmp/peet-rows.XXXXXX";
static char path[100];

static bool fine(int r, const struct peet_err *err)
{
    if (r < 0)
        printf("# %s\n", err->text);
    return CHECK(r >= 0);
}

/* Blocks with 0 to 10 slots, each the address of a load. */
static void define_blocks(struct peet_writer *w, uint32_t *ret)
{
    struct peet_insn insn = { .addr = 0x1000, .length = 4 };
    struct peet_operand operand[BLOCKS];
    struct peet_err err;

    for (uint8_t n = 0; n < BLOCKS; n++) {
        operand[n] = (struct peet_operand){ .size = 8, .kind = PEET_LOAD, .base = (uint8_t)(PEET_SRC_SLOT + n) };
        struct peet_block block = { .insns = 1, .operands = n, .slots = n, .insn = &insn, .operand = operand };
        fine(peet_writer_block(w, &block, &ret[n], &err), &err);
        insn.addr += 16;
    }
}

/* Rows of one block, in which some slots go by strides and others anywhere, and now and then a slot does the other thing. */
static size_t make_rows(const uint32_t *item, uint64_t *word)
{
    uint64_t seed = 4711, slot[BLOCKS] = { 0 };
    size_t n = 0;

    while (n + 100 * (BLOCKS + 1) < WORDS) {
        unsigned slots = (unsigned)(synthetic_random(&seed) % BLOCKS), by_chance = (unsigned)synthetic_random(&seed);
        for (uint64_t row = synthetic_random(&seed) % 100; row > 0; row--) {
            word[n++] = item[slots];
            for (unsigned i = 0; i < slots; i++) {
                bool other = synthetic_random(&seed) % 50 == 0, any = (by_chance >> i & 1) != other;
                slot[i] = any ? synthetic_random(&seed) >> (synthetic_random(&seed) % 60) : slot[i] + 8 * i;
                word[n++] = slot[i];
            }
        }
    }
    return n;
}

/* Puts the words in pieces that end with an item. */
static void put(struct peet_writer *w, const uint64_t *word, const size_t *piece, size_t pieces)
{
    struct peet_err err;
    struct peet_stream *stream;

    fine(peet_stream_open(w, &(struct peet_thread){ .name = "x" }, &stream, &err), &err);
    for (size_t i = 0; i < pieces; word += piece[i++])
        fine(peet_stream_put_words(stream, word, piece[i], &err), &err);
    fine(peet_stream_close(stream, &err), &err);
    fine(peet_writer_close(w, &err), &err);
}

static void check_rows(const uint64_t *word, size_t n, uint32_t first)
{
    struct peet_err err;
    struct peet_trace *t;
    struct peet_cursor *c;
    const uint64_t *slots;
    uint32_t got;
    bool same = true;

    if (!fine(peet_trace_open(path, &t, &err), &err))
        return;
    fine(peet_cursor_open(t, 0, 0, &c, &err), &err);
    for (size_t i = 0; same && i < n;) {
        size_t left = n - i - 1;
        same = peet_cursor_item(c, &got, &slots, &err) == 1 && got == word[i] && got - first <= left
               && !memcmp(slots, word + i + 1, (got - first) * sizeof *slots);
        i += got - first + 1;
    }
    CHECK(same);
    CHECK_EQ(peet_cursor_item(c, &got, &slots, &err), 0);
    peet_cursor_free(c);
    peet_trace_free(t);
}

static void rows_of_one_item_come_back(void)
{
    uint64_t *word = calloc(WORDS, sizeof *word);
    uint32_t item[BLOCKS];
    struct peet_err err;
    struct peet_writer *w;

    for (int plain = 0; plain < 2; plain++) {
        cpu_force_scalar = plain;
        fine(peet_writer_open(path, &(struct peet_writer_config){ .chunk_words = 5000 }, &w, &err), &err);
        define_blocks(w, item);
        size_t n = make_rows(item, word);
        put(w, word, &n, 1);
        check_rows(word, n, item[0]);
    }
    free(word);
}

/* The words of a made-up thread, and in pieces of which sizes they are put. */
static size_t make_synthetic(const struct synthetic *s, uint64_t *word, size_t *piece)
{
    struct synthetic_thread t;
    struct synthetic_step x;
    uint64_t seed = s->seed;
    size_t n = 0, pieces = 0, begin = 0;

    synthetic_thread_init(&t, s, 0);
    while (n + PEET_SLOTS + 1 < WORDS) {
        synthetic_next(&t, &x);
        word[n++] = x.item;
        memcpy(word + n, x.slot, x.slots * sizeof *word);
        n += x.slots;
        if (synthetic_random(&seed) % 300 == 0) {
            piece[pieces++] = n - begin;
            begin = n;
        }
    }
    piece[pieces++] = n - begin;
    return pieces;
}

static char *write_synthetic(uint64_t seed, const struct synthetic_style *style, long *ret_size)
{
    static uint64_t word[WORDS];
    static size_t piece[WORDS];
    struct synthetic *s = synthetic_new(seed, style);
    struct peet_err err;
    struct peet_writer *w;

    fine(peet_writer_open(path, &(struct peet_writer_config){ .chunk_words = 9000 }, &w, &err), &err);
    fine(synthetic_define(s, w, &err), &err);
    put(w, word, piece, make_synthetic(s, word, piece));
    free(s);

    FILE *f = fopen(path, "rb");
    fseek(f, 0, SEEK_END);
    *ret_size = ftell(f);
    rewind(f);
    char *bytes = malloc((size_t)*ret_size);
    CHECK_EQ(fread(bytes, 1, (size_t)*ret_size, f), (size_t)*ret_size);
    fclose(f);
    return bytes;
}

static void vectors_write_what_plain_code_writes(void)
{
    static const struct synthetic_style styles[] = { { .regular = 10, .wander = 40, .loops = 20, .events = 200 },
                                                     { .regular = 16, .wander = 4 },
                                                     { .regular = 0, .wander = 256, .loops = 8, .events = 100 } };

    for (uint64_t seed = 1; seed <= 12; seed++) {
        long size[2];
        char *bytes[2];
        for (int plain = 0; plain < 2; plain++) {
            cpu_force_scalar = plain;
            bytes[plain] = write_synthetic(seed, &styles[seed % 3], &size[plain]);
        }
        CHECK(size[0] > 10000);
        CHECK_EQ(size[0], size[1]);
        CHECK(size[0] == size[1] && !memcmp(bytes[0], bytes[1], (size_t)size[0]));
        free(bytes[0]);
        free(bytes[1]);
    }
}

/* Records of a cursor, one by one; what is repeated is done as often as it says. */
struct reader {
    struct peet_cursor *cursor;
    struct peet_batch batch;
    size_t at, in_trip;
    uint64_t trip, repeats;
};

static bool next_record(struct reader *r, struct peet_record *ret)
{
    struct peet_err err;

    while (r->at == r->batch.count) {
        if (peet_cursor_next(r->cursor, &r->batch, &err) <= 0)
            return false;
        r->at = 0;
    }
    *ret = r->batch.records[r->at];
    if (ret->kind != PEET_REPEAT) {
        r->at++;
        return true;
    }
    const struct peet_repeat *n = &r->batch.repeats[ret->id];
    *ret = n->records[r->in_trip];
    ret->addr += n->step[r->in_trip] * r->trip;
    if (++r->in_trip == n->count) {
        r->in_trip = 0;
        r->trip++;
    }
    if (r->trip == n->times) {
        r->trip = 0;
        r->at++;
        r->repeats++;
    }
    return true;
}

static void repeats_stand_for_what_is_expanded_else(void)
{
    static const struct synthetic_style style = { .regular = 10, .wander = 40, .loops = 400, .events = 200 };
    struct peet_trace *t;
    struct peet_err err;
    struct reader plain = { 0 }, repeating = { 0 };
    struct peet_record a, b;
    uint64_t n = 0;
    long size;
    bool same = true;

    free(write_synthetic(77, &style, &size));
    if (!fine(peet_trace_open(path, &t, &err), &err))
        return;
    fine(peet_cursor_open(t, 0, 0, &plain.cursor, &err), &err);
    fine(peet_cursor_open(t, 0, PEET_WANT_REPEATS, &repeating.cursor, &err), &err);
    while (same && next_record(&plain, &a)) {
        same = next_record(&repeating, &b) && a.addr == b.addr && a.size == b.size && a.kind == b.kind
               && (a.id == b.id || a.kind == PEET_EVENT);
        n++;
    }
    CHECK(same && !next_record(&repeating, &b));
    CHECK(repeating.repeats > 100);
    printf("# %lu records, %lu repeats\n", (unsigned long)n, (unsigned long)repeating.repeats);
    peet_cursor_free(plain.cursor);
    peet_cursor_free(repeating.cursor);
    peet_trace_free(t);
}

static void what_is_fed_expands_as_what_is_written(void)
{
    static const struct synthetic_style style = { .regular = 10, .wander = 40, .loops = 400, .events = 200 };
    static uint64_t word[WORDS];
    static size_t piece[WORDS];
    struct synthetic *s = synthetic_new(78, &style);
    struct peet_err err;
    struct peet_writer *w;
    struct peet_feed *feed;
    struct peet_trace *t;
    struct reader plain = { 0 };
    struct peet_batch batch;
    struct peet_record a;
    uint64_t *at = word;
    bool same = true;

    fine(peet_writer_open(path, NULL, &w, &err), &err);
    fine(synthetic_define(s, w, &err), &err);
    size_t pieces = make_synthetic(s, word, piece);
    put(w, word, piece, pieces); /* and the writer is no more */
    fine(peet_writer_open("/dev/null", NULL, &w, &err), &err);
    fine(synthetic_define(s, w, &err), &err);
    fine(peet_feed_new(w, 0, 0, &feed, &err), &err);
    fine(peet_trace_open(path, &t, &err), &err);
    fine(peet_cursor_open(t, 0, 0, &plain.cursor, &err), &err);
    for (size_t i = 0; i < pieces; at += piece[i++]) {
        int r;
        peet_feed_put(feed, at, piece[i], NULL);
        while ((r = peet_feed_next(feed, &batch, &err)) > 0)
            for (size_t k = 0; k < batch.count; k++) {
                const struct peet_record *b = &batch.records[k];
                same = same && next_record(&plain, &a) && a.addr == b->addr && a.size == b->size && a.kind == b->kind
                       && (a.id == b->id || a.kind == PEET_EVENT);
            }
        fine(r, &err);
    }
    CHECK(same && !next_record(&plain, &a));
    peet_cursor_free(plain.cursor);
    peet_trace_free(t);
    peet_feed_free(feed);
    fine(peet_writer_close(w, &err), &err);
    free(s);
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/t.peet", folder);
    RUN(rows_of_one_item_come_back);
    RUN(vectors_write_what_plain_code_writes);
    cpu_force_scalar = false;
    RUN(repeats_stand_for_what_is_expanded_else);
    RUN(what_is_fed_expands_as_what_is_written);
    unlink(path);
    rmdir(folder);
    return check_done();
}
