/* SPDX-License-Identifier: MIT */
/* Words with names in place of item numbers, as instrumented programs leave them, become the same stream as words with the
 * numbers: random items and slots, names that are addresses, chunks that end anywhere. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peet/trace.h"
#include "tests/unit/check.h"

enum { ITEMS = 40, STEPS = 60000, MAX_SLOTS = 5 };

static uint64_t seed = 88172645463325252u;

static uint64_t draw(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
}

struct items {
    uint32_t number[ITEMS];
    uint64_t name[ITEMS];
    unsigned slots[ITEMS], asked;
};

static int item_of_name(void *context, uint64_t name, uint32_t *ret_item, struct peet_err *err)
{
    struct items *x = context;

    x->asked++;
    for (int i = 0; i < ITEMS; i++)
        if (x->name[i] == name) {
            *ret_item = x->number[i];
            return 0;
        }
    err->code = PEET_ERR_FORMAT;
    snprintf(err->text, sizeof err->text, "no such name");
    return PEET_ERR_FORMAT;
}

/* Blocks with stores through their slots, of which some move register 0. */
static void define(struct peet_writer *w, struct items *x)
{
    for (int i = 0; i < ITEMS; i++) {
        struct peet_insn insn = { .addr = 0x1000 + 16 * (uint64_t)i, .length = 4 };
        struct peet_operand operand[MAX_SLOTS];
        struct peet_effect effect = { .add = 8 * i, .reg = 0, .src = i % 3 ? PEET_SRC_REGISTER : PEET_SRC_SLOT };
        x->slots[i] = 1 + (unsigned)i % MAX_SLOTS;
        x->name[i] = 0x555555560000 + 16 * (uint64_t)(i * 7);
        for (unsigned k = 0; k < x->slots[i]; k++)
            operand[k] = (struct peet_operand){ .size = 8, .kind = PEET_STORE, .base = (uint8_t)(PEET_SRC_SLOT + k) };
        struct peet_block b = { .insns = 1,
                                .operands = (uint16_t)x->slots[i],
                                .effects = (uint16_t)(i % 2),
                                .slots = (uint16_t)x->slots[i],
                                .insn = &insn,
                                .operand = operand,
                                .effect = &effect };
        struct peet_err err;
        CHECK(peet_writer_block(w, &b, &x->number[i], &err) == 0);
    }
}

/* The same walk through the items, with keys or with numbers, handed over in buffers of varying sizes. */
static void write_trace(const char *path, bool with_names, struct items *x)
{
    const struct peet_writer_config config = { .chunk_words = 5000 };
    const struct peet_thread thread = { .id = 1, .process = 1, .parent = 1, .name = "" };
    const struct peet_process process = { 1, 1, "p", "p" };
    const struct peet_names names = { .item = item_of_name, .context = x };
    struct peet_writer *w;
    struct peet_stream *s;
    struct peet_err err;
    uint64_t words[1000];
    size_t n = 0;
    unsigned at = 0;

    CHECK(peet_writer_open(path, &config, &w, &err) == 0);
    CHECK(peet_writer_process(w, &process, &err) == 0);
    define(w, x);
    CHECK(peet_stream_open(w, &thread, &s, &err) == 0);
    seed = 88172645463325252u;
    for (int i = 0; i < STEPS; i++) {
        at = draw(5) ? (at + 1) % 7 : (unsigned)draw(ITEMS);
        words[n++] = with_names ? x->name[at] : x->number[at];
        for (unsigned k = 0; k < x->slots[at]; k++)
            words[n++] = draw(3) ? 8 * (uint64_t)i : draw(UINT64_MAX);
        if (n > 990 || i == STEPS - 1) {
            CHECK((with_names ? peet_stream_put_named(s, words, n, &names, &err)
                              : peet_stream_put_words(s, words, n, &err))
                  == 0);
            n = 0;
        }
    }
    CHECK(peet_stream_close(s, &err) == 0);
    struct peet_totals totals;
    peet_writer_totals(w, &totals);
    CHECK(totals.instructions == STEPS);
    CHECK(peet_writer_close(w, &err) == 0);
}

static size_t read_file(const char *path, char *room, size_t size)
{
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(room, 1, size, f) : 0;

    if (f)
        fclose(f);
    return n;
}

static void names_give_the_same_file_as_numbers(void)
{
    enum { ROOM = 1 << 24 };
    struct items x = { 0 };
    char a[64] = "/tmp/peet-live-a-XXXXXX", b[64] = "/tmp/peet-live-b-XXXXXX";
    char *first = malloc(ROOM), *second = malloc(ROOM);

    close(mkstemp(a));
    close(mkstemp(b));
    write_trace(a, false, &x);
    CHECK(x.asked == 0);
    write_trace(b, true, &x);
    CHECK(x.asked > 0);
    size_t n = read_file(a, first, ROOM);
    CHECK(n > 10000);
    CHECK(n == read_file(b, second, ROOM));
    CHECK(memcmp(first, second, n) == 0);
    unlink(a);
    unlink(b);
    free(first);
    free(second);
}

static void a_name_that_nobody_knows_is_an_error_and_leaves_the_stream_usable(void)
{
    const struct peet_thread thread = { .id = 1, .process = 1, .parent = 1, .name = "" };
    struct items x = { 0 };
    const struct peet_names names = { .item = item_of_name, .context = &x };
    struct peet_writer *w;
    struct peet_stream *s;
    struct peet_err err;

    CHECK(peet_writer_open("/dev/null", NULL, &w, &err) == 0);
    define(w, &x);
    CHECK(peet_stream_open(w, &thread, &s, &err) == 0);
    CHECK(peet_stream_put_named(s, (uint64_t[]){ x.name[0], 1, 4711, 2 }, 4, &names, &err) == PEET_ERR_FORMAT);
    CHECK(strstr(err.text, "no such name") != NULL);
    CHECK(peet_stream_put_named(s, (uint64_t[]){ x.name[0], 1 }, 2, &names, &err) == 0);
    CHECK(peet_stream_put_words(s, (uint64_t[]){ x.number[0], 1 }, 2, &err) == 0);
    CHECK(peet_stream_close(s, &err) == 0);
    CHECK(peet_writer_close(w, &err) == 0);
}

int main(void)
{
    RUN(names_give_the_same_file_as_numbers);
    RUN(a_name_that_nobody_knows_is_an_error_and_leaves_the_stream_usable);
    return check_done();
}
