/* SPDX-License-Identifier: MIT */
/* Loops that are made ready once (format/schema/loop_plan.c) against the walk block by block: random loops whose operands have bases and
 * indices of all kinds. */
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "format/schema/loop.h"
#include "format/file/trace.h"
#include "tests/unit/random.h"

enum { LOOPS = 2000, VALUES = 5, OPERANDS = 4, RECORDS = 1 << 16 };

static uint64_t seed = 3;

static uint8_t random_source(unsigned slots)
{
    uint64_t k = draw(&seed, 4);

    return (uint8_t)(k == 0   ? PEET_SRC_ZERO
                     : k == 1 ? PEET_SRC_REGISTER + draw(&seed, 4)
                              : PEET_SRC_SLOT + draw(&seed, slots));
}

static uint32_t random_block(struct peet_writer *w, unsigned slots)
{
    struct peet_operand operand[OPERANDS];
    struct peet_insn insn[OPERANDS];
    struct peet_block b = { .slots = (uint16_t)slots, .insn = insn, .operand = operand };
    struct peet_err err;
    uint32_t item = 0;

    b.insns = b.operands = (uint16_t)(1 + draw(&seed, OPERANDS));
    for (unsigned i = 0; i < b.operands; i++) {
        insn[i] = (struct peet_insn){ .addr = 0x1000 + 4 * i, .length = 4 };
        operand[i] = (struct peet_operand){ .insn = (uint16_t)i,
                                            .kind = PEET_LOAD,
                                            .size = 8,
                                            .base = random_source(slots),
                                            .index = random_source(slots),
                                            .scale = (uint8_t)draw(&seed, 4),
                                            .disp = (int64_t)draw(&seed, 100) - 50 };
    }
    CHECK_EQ(peet_writer_block(w, &b, &item, &err), 0);
    return item;
}

static struct peet_assign random_step(void)
{
    uint8_t dst = (uint8_t)draw(&seed, VALUES);

    return (struct peet_assign){ .add = (int64_t)draw(&seed, 40) - 20,
                                 .dst = dst,
                                 .src = draw(&seed, 8) ? dst : (uint8_t)draw(&seed, VALUES),
                                 .plus = draw(&seed, 4) ? 0 : (uint8_t)(1 + draw(&seed, VALUES)) };
}

/* Once or some times: a block, some times two blocks, a block. */
static uint32_t random_loop(struct peet_writer *w)
{
    static const uint8_t IS_BLOCK[] = { 0, 1, 0, 1, 1, 1 };
    struct peet_loop_node node[6];
    struct peet_assign assign[6][OPERANDS];
    struct peet_loop l = { .values = VALUES, .counts = 1, .nodes = 6, .node = node };
    struct peet_err err;
    uint32_t item = 0;

    for (unsigned i = 0; i < 6; i++) {
        unsigned slots = 1 + (unsigned)draw(&seed, OPERANDS);
        bool has_sums = draw(&seed, 20) == 0; /* then the plan is to give up */
        node[i] = (struct peet_loop_node){ .assigns = (uint16_t)slots, .assign = assign[i] };
        for (unsigned k = 0; k < slots; k++)
            assign[i][k] =
                IS_BLOCK[i]
                    ? (struct peet_assign){ .add = (int64_t)draw(&seed, 64),
                                            .dst = (uint8_t)k,
                                            .src = draw(&seed, 5) ? (uint8_t)draw(&seed, VALUES) : PEET_LOOP_ZERO,
                                            .plus = (uint8_t)(has_sums ? 1 + draw(&seed, VALUES) : 0) }
                    : random_step();
        if (IS_BLOCK[i])
            node[i].block = random_block(w, slots);
        else
            node[i].enters = (uint16_t)draw(&seed, slots + 1u);
    }
    node[0].end = 6;
    node[0].trips = 1 + draw(&seed, 2);
    node[2].end = 5;
    node[2].counted = 1;
    CHECK_EQ(peet_writer_loop(w, &l, &item, &err), 0);
    return item;
}

/* What the walk says, with sums in the obvious way. */
static size_t walk(const struct peet_trace *t, const struct peet_loop *l, const uint64_t *slot,
                   const uint64_t *registers, uint64_t *out)
{
    struct peet_loop_walk w;
    const struct peet_block *b;
    const uint64_t *slots;
    uint64_t src[PEET_SOURCES] = { 0 };
    size_t n = 0;

    memcpy(src + PEET_SRC_REGISTER, registers, PEET_REGISTERS * sizeof *src);
    peet_loop_walk_init(&w, t, &(struct peet_loop_run){ l, slot, slot + l->values });
    while ((b = peet_loop_walk_next(&w, &slots))) {
        memcpy(src + PEET_SRC_SLOT, slots, b->slots * sizeof *slots);
        out[n++] = b->insn[0].addr;
        for (unsigned i = 0; i < b->operands; i++)
            out[n++] = src[b->operand[i].base] + (src[b->operand[i].index] << b->operand[i].scale)
                       + (uint64_t)b->operand[i].disp;
    }
    return n;
}

static size_t expand(const struct loop_plan *p, uint64_t *src, uint64_t *out, unsigned *flats)
{
    static struct flat_loop flat;
    static struct peet_record record[RECORDS];
    const struct plan_node *n;
    struct loop_run run;
    size_t count = 0;

    loop_run_init(&run, p, src);
    while ((n = loop_run_next(&run, src))) {
        if (n->kind == PLAN_FLAT) {
            loop_run_flatten(&run, n, src, &flat);
            count += loop_flat_trips(&flat, record + count, RECORDS - count) * flat.records;
            ++*flats;
            continue;
        }
        record[count++] = n->head;
        for (unsigned i = 0; i < n->operands; i++)
            plan_put(&n->op[i], src, n->indexed, &record[count++]);
    }
    for (size_t i = 0; i < count; i++)
        out[i] = record[i].addr;
    return count;
}

static void a_plan_expands_to_what_the_walk_says(void)
{
    static uint64_t expected[RECORDS], got[RECORDS];
    struct loop_plans plans = { 0 };
    char path[] = "/tmp/peet-test.XXXXXX";
    struct peet_writer *w;
    struct peet_err err;
    unsigned planned = 0, flats = 0;

    if (!CHECK_EQ(peet_writer_open_fd(mkstemp(path), NULL, &w, &err), 0))
        return;
    const struct peet_trace *t = peet_writer_schema(w);
    for (unsigned i = 0; i < LOOPS; i++) {
        const struct peet_loop *l = schema_item(t->schema, random_loop(w))->loop;
        uint64_t src[PEET_SOURCES + PLAN_PAD] = { 0 }, slot[PEET_SLOTS];
        for (unsigned k = 0; k < PEET_REGISTERS; k++)
            src[PEET_SRC_REGISTER + k] = draw(&seed, 1 << 20);
        for (unsigned k = 0; k < VALUES; k++)
            slot[k] = draw(&seed, 1 << 20);
        slot[VALUES] = draw(&seed, 30);
        memcpy(src + PEET_SRC_SLOT, slot, (VALUES + 1) * sizeof *slot);
        const struct loop_plan *p = loop_plan(&plans, t->schema, l);
        if (!p)
            continue;
        planned++;
        size_t n = walk(t, l, slot, src + PEET_SRC_REGISTER, expected);
        if (!CHECK_EQ(expand(p, src, got, &flats), n) || !CHECK(!memcmp(got, expected, n * sizeof *got)))
            printf("# loop %u\n", i);
    }
    CHECK(planned > LOOPS / 2 && planned < LOOPS);
    CHECK(flats > LOOPS / 10);
    loop_plans_release(&plans);
    peet_writer_close(w, NULL);
    unlink(path);
}

int main(void)
{
    RUN(a_plan_expands_to_what_the_walk_says);
    return check_done();
}
