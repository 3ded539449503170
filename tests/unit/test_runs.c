/* SPDX-License-Identifier: MIT */
/* Rows of blocks in words that are fed (format/read/feed.c): as repeats they stand for the same records as one by one. */
#include "check.h"
#include "tests/synthetic.h"

enum { WORDS = 1000000, BLOCKS = 6, PIECE = 3000 };

static bool fine(int r, const struct peet_err *err)
{
    if (r < 0)
        printf("# %s\n", err->text);
    return CHECK(r >= 0);
}

/* Blocks with that number of slots, and operands that are sums of them and of a register, also scaled. One changes the register, one computes. */
static void define_blocks(struct peet_writer *w, uint32_t *ret)
{
    static const struct peet_effect effect = { .reg = 1, .src = PEET_SRC_REGISTER + 1, .add = 24 };
    static const struct peet_compute compute = { .op = PEET_OP_and, .width = 8, .a = PEET_SRC_SLOT, .imm = 0xff };
    struct peet_insn insn = { .addr = 0x1000, .length = 4 };
    struct peet_operand operand[2 * BLOCKS];
    struct peet_err err;

    for (unsigned n = 0; n < BLOCKS; n++) {
        for (unsigned i = 0; i < 2 * n; i++)
            operand[i] = (struct peet_operand){
                .disp = 100 * (int64_t)i,
                .size = 8,
                .kind = PEET_LOAD,
                .base = (uint8_t)(i % 3 == 2 ? PEET_SRC_REGISTER + 1 : PEET_SRC_SLOT + i % n),
                .index = (uint8_t)(i % 2 ? PEET_SRC_SLOT + (i + 1) % n : PEET_SRC_ZERO),
                .scale = (uint8_t)(i % 4),
            };
        if (n == 4)
            operand[0].base = PEET_SRC_TEMP;
        struct peet_block block = { .insns = 1, .operands = (uint16_t)(2 * n), .slots = (uint16_t)n, .insn = &insn };
        block.operand = operand;
        block.effects = n == 3;
        block.effect = &effect;
        block.computes = n == 4;
        block.compute = &compute;
        fine(peet_writer_block(w, &block, &ret[n], &err), &err);
        insn.addr += 16;
    }
}

/* Rows of some blocks in which each slot grows by as much, but for a slip now and then, and for a block that is left out. */
static size_t make_rows(const uint32_t *item, uint64_t *word)
{
    enum { MOST = 10 }; /* more than are looked at */
    uint64_t seed = 99, slot[MOST][BLOCKS], step[MOST][BLOCKS];
    size_t n = 0;

    while (n + 100 * MOST * (BLOCKS + 1) < WORDS) {
        unsigned block[MOST],
            blocks = 1 + (unsigned)(synthetic_random(&seed) % (synthetic_random(&seed) % 2 ? 1 : MOST));
        for (unsigned k = 0; k < blocks; k++) {
            block[k] = (unsigned)(synthetic_random(&seed) % BLOCKS);
            block[k] = block[k] == 3 && blocks > 1 ? 2 : block[k]; /* which ends all rows */
            for (unsigned i = 0; i < BLOCKS; i++) {
                slot[k][i] = synthetic_random(&seed) >> 20;
                step[k][i] = synthetic_random(&seed) % 40 - 20;
            }
        }
        for (uint64_t row = 1 + synthetic_random(&seed) % (synthetic_random(&seed) % 2 ? 3 : 99); row > 0; row--)
            for (unsigned k = 0; k < blocks; k++) {
                if (synthetic_random(&seed) % 500 == 0)
                    continue;
                word[n++] = item[block[k]];
                for (unsigned i = 0; i < block[k]; i++) {
                    slot[k][i] += step[k][i] + (synthetic_random(&seed) % 300 == 0);
                    word[n++] = slot[k][i];
                }
            }
    }
    return n;
}

/* Everything that is fed, one record after the other. */
struct list {
    struct peet_record *record;
    size_t count, room, repeats, wide; /* wide: repeats of several blocks */
};

static void add(struct list *l, const struct peet_record *r, uint64_t by)
{
    if (l->count == l->room) {
        l->room = 2 * l->room + 1000;
        l->record = realloc(l->record, l->room * sizeof *l->record);
    }
    l->record[l->count] = *r;
    l->record[l->count++].addr += by;
}

static void add_batch(struct list *l, const struct peet_batch *b)
{
    for (size_t k = 0; k < b->count; k++) {
        if (b->records[k].kind != PEET_REPEAT) {
            add(l, &b->records[k], 0);
            continue;
        }
        const struct peet_repeat *n = &b->repeats[b->records[k].id];
        l->repeats++;
        for (size_t i = 1; i < n->count; i++)
            if (n->records[i].kind == PEET_BLOCK) {
                l->wide++;
                break;
            }
        for (uint64_t trip = 0; trip < n->times; trip++)
            for (size_t i = 0; i < n->count; i++)
                add(l, &n->records[i], n->step[i] * trip);
    }
}

static void feed(unsigned want, struct list *l)
{
    static uint64_t word[WORDS];
    uint32_t item[BLOCKS];
    struct peet_err err;
    struct peet_writer *w;
    struct peet_feed *f;
    struct peet_batch batch;

    fine(peet_writer_open("/dev/null", NULL, &w, &err), &err);
    define_blocks(w, item);
    size_t n = make_rows(item, word);
    fine(peet_feed_new(w, 0, want, &f, &err), &err);
    peet_feed_register(f, 1, 0x70000);
    for (size_t at = 0, end; at < n; at = end) { /* pieces end with an item */
        for (end = at; end < n && end < at + PIECE;)
            end += 1 + (word[end] - item[0]);
        int r;
        peet_feed_put(f, word + at, end - at, NULL);
        while ((r = peet_feed_next(f, &batch, &err)) > 0)
            add_batch(l, &batch);
        fine(r, &err);
    }
    peet_feed_free(f);
    fine(peet_writer_close(w, &err), &err);
}

static void rows_are_repeats_of_the_same_records(void)
{
    struct list plain = { 0 }, repeating = { 0 };

    feed(0, &plain);
    feed(PEET_WANT_REPEATS, &repeating);
    CHECK_EQ(plain.repeats, 0);
    CHECK(repeating.repeats > 400);
    CHECK(repeating.wide > 100);
    CHECK_EQ(plain.count, repeating.count);
    for (size_t i = 0; i < plain.count && i < repeating.count; i++)
        if (!CHECK(!memcmp(&plain.record[i], &repeating.record[i], sizeof plain.record[i])))
            break;
    printf("# %zu records, %zu repeats, %zu of several blocks\n", plain.count, repeating.repeats, repeating.wide);
    free(plain.record);
    free(repeating.record);
}

int main(void)
{
    RUN(rows_are_repeats_of_the_same_records);
    return check_done();
}
