/* SPDX-License-Identifier: MIT */
/* The schema of a trace: all definitions so far, of a writer or of a reader.
 *
 * Definitions are checked and copied; they never move or change again. One thread at a time may add definitions; other threads may look up
 * items at the same time (the writer's streams do). */
#ifndef FORMAT_SCHEMA_SCHEMA_H
#define FORMAT_SCHEMA_SCHEMA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "peet/err.h"
#include "peet/record.h"
#include "peet/schema.h"

enum { BLOCK_MAX_INSNS = 4096, BLOCK_MAX_OPERANDS = 1024, LOOP_MAX_NODES = 256, ITEM_SEGMENT = 4096, PLAN_PAD = 4 };
#define SCHEMA_MAX_ITEMS ((uint32_t)1 << 26)
#define OPERAND_MAX_BYTES ((uint64_t)1 << 32)

enum item_kind { ITEM_NONE, ITEM_BLOCK, ITEM_LOOP, ITEM_EVENT };

/* An operand prepared for expansion. Its reference is `record`, which holds the displacement, plus src[base] + (src[index] << scale). */
struct plan_op {
    _Alignas(16) struct peet_record record;
    uint16_t base, index; /* PEET_SRC_… */
    uint8_t scale;        /* bits by which src[index] is shifted */
};

/* Limits of linear loops, in bits: instructions and references of an iteration, and iterations. With the 2^21 loops of a
 * full chunk, totals stay below 2^62, so that sums need no overflow checks. */
enum { LINEAR_BITS = 13, LINEAR_TRIP_BITS = 28 };

/* An item of the schema: a block, a loop or an event, as codec and expander use it. */
struct item {
    uint8_t kind;        /* enum item_kind */
    bool dynamic;        /* block: its number of references depends on slots */
    bool effects;        /* block: it changes registers */
    bool indexed;        /* block: an operand has an index */
    uint16_t slots;      /* number of slots */
    uint32_t insns;      /* block: instructions; loop: those that do not depend on `count` */
    uint32_t references; /* block: references, 0 if dynamic; loop: those that do not depend on `count` */
    union {
        const struct peet_block *block;
        const struct peet_loop *loop;
        const struct peet_event_item *event;
    };
    const struct plan_op *plan; /* block: an element per operand, and zeros up to a multiple of PLAN_PAD */
    bool linear;                /* loop: slot `count` is its only trip count, and all iterations have equal totals */
    uint16_t count;             /* linear loop: its slot with the trip count */
    uint32_t trip_insns, trip_references; /* linear loop: totals of an iteration */
};

/* All definitions of a trace. */
struct schema {
    struct arena arena;
    struct item *_Atomic segment[SCHEMA_MAX_ITEMS / ITEM_SEGMENT]; /* items by number; NULL: no item in this range */
    _Atomic uint32_t items;                                        /* 1 + the greatest number */
    uint32_t insns;                                                /* of all blocks */
    struct vector {
        void **at;
        size_t count, room;
    } blocks, metas, processes, modules, ranges, threads, strings;
};

struct schema *schema_new(void); /* NULL: no memory */
void schema_free(struct schema *s);

/* The item with a number; NULL: there is none. */
static inline const struct item *schema_item(const struct schema *s, uint64_t number)
{
    if (number >= atomic_load_explicit(&s->items, memory_order_acquire))
        return NULL;
    const struct item *segment = atomic_load_explicit(&s->segment[number / ITEM_SEGMENT], memory_order_acquire);
    if (!segment || segment[number % ITEM_SEGMENT].kind == ITEM_NONE)
        return NULL;
    return &segment[number % ITEM_SEGMENT];
}

/* Check and copy a definition. The number of an item is its field `id`. */
int schema_add_block(struct schema *s, const struct peet_block *b, struct peet_err *err);
int schema_add_loop(struct schema *s, const struct peet_loop *l, struct peet_err *err);
/* e->kind == PEET_EVENT_KINDS: an event of a later version of the format, which readers skip. */
int schema_add_event(struct schema *s, const struct peet_event_item *e, unsigned arguments, struct peet_err *err);
int schema_add_process(struct schema *s, const struct peet_process *p, struct peet_err *err);
int schema_add_module(struct schema *s, const struct peet_module *m, struct peet_err *err);
int schema_add_range(struct schema *s, const struct peet_range *r, struct peet_err *err);
int schema_add_thread(struct schema *s, const struct peet_thread *t, struct peet_err *err);
int schema_add_meta(struct schema *s, const char *key, const char *value, struct peet_err *err);
int schema_add_string(struct schema *s, uint32_t number, const char *text, struct peet_err *err);

/* An entry of the trace's meta data. */
struct meta {
    const char *key, *value;
};

/* The thread with this number, or NULL. */
const struct peet_thread *schema_thread(const struct schema *s, uint32_t id);

/* Instructions and references of one execution of a loop; false when they do not fit into 63 bits. */
bool loop_totals(const struct schema *s, const struct peet_loop *l, const uint64_t *counts, uint64_t *ret_insns,
                 uint64_t *ret_references);

/* As loop_totals, for the slots of a loop item. */
static inline bool loop_item_totals(const struct schema *s, const struct item *item, const uint64_t *slots,
                                    uint64_t *ret_insns, uint64_t *ret_references)
{
    if (!item->linear || slots[item->count] >> LINEAR_TRIP_BITS)
        return loop_totals(s, item->loop, slots + item->loop->values, ret_insns, ret_references);
    *ret_insns = item->insns + slots[item->count] * item->trip_insns;
    *ret_references = item->references + slots[item->count] * item->trip_references;
    return true;
}

/* Definition records as bytes (docs/trace-format.md, section 6). */
void defs_put_block(struct buf *out, const struct peet_block *b);
void defs_put_loop(struct buf *out, const struct peet_loop *l);
void defs_put_event(struct buf *out, const struct peet_event_item *e);
void defs_put_process(struct buf *out, const struct peet_process *p);
void defs_put_module(struct buf *out, const struct peet_module *m);
void defs_put_range(struct buf *out, const struct peet_range *r);
void defs_put_thread(struct buf *out, const struct peet_thread *t);
void defs_put_meta(struct buf *out, const char *key, const char *value);
void defs_put_string(struct buf *out, uint32_t number, const char *text);

/* Adds all definition records in bytes to the schema. Records of unknown kinds are skipped. Invalid records are skipped, too, and the
 * first of them is reported as an error. */
int defs_read(struct schema *s, const uint8_t *bytes, size_t n, struct peet_err *err);

/* ---- execution of a block: src has PEET_SOURCES words, with the block's slots in place ---- */

static inline struct peet_record block_record(const struct peet_block *b)
{
    return (struct peet_record){ .addr = b->insn[0].addr, .id = b->id, .size = b->insns, .kind = PEET_BLOCK };
}

typedef uint64_t record_vector __attribute__((vector_size(16), aligned(8), may_alias));

/* Computes the reference of an operand. */
static inline __attribute__((always_inline)) void plan_put(const struct plan_op *op, const uint64_t *src, bool indexed,
                                                           struct peet_record *out)
{
    record_vector by = { src[op->base] + (indexed ? src[op->index] << op->scale : 0), 0 };

    *(record_vector *)out = *(const record_vector *)&op->record + by;
}

/* Any operation but add of width 8. */
uint64_t compute_other(const struct peet_compute *c, uint64_t a, uint64_t b);

static inline __attribute__((always_inline)) void block_compute(const struct peet_block *b, uint64_t *src)
{
    for (unsigned i = 0; i < b->computes; i++) {
        const struct peet_compute *c = &b->compute[i];
        src[PEET_SRC_TEMP + i] = c->op == PEET_OP_add && c->width == 8
                                     ? src[c->a] + (src[c->b] << c->shift) + (uint64_t)c->imm
                                     : compute_other(c, src[c->a], src[c->b]);
    }
}

static inline void block_effects(const struct peet_block *b, uint64_t *src)
{
    for (unsigned i = 0; i < b->effects; i++)
        src[PEET_SRC_REGISTER + b->effect[i].reg] = src[b->effect[i].src] + (uint64_t)b->effect[i].add;
}

/* Bytes that an operand refers to; 0: none; OPERAND_MAX_BYTES or more: invalid. A predicate's bit is a factor, not a branch, since it
 * cannot be predicted. */
static inline uint64_t operand_bytes(const struct peet_operand *o, const uint64_t *src)
{
    uint64_t bytes = o->size, happens = o->predicate ? src[o->predicate] >> o->predicate_bit & 1 : 1;

    if (o->size_src && __builtin_mul_overflow(bytes, src[o->size_src], &bytes))
        bytes = OPERAND_MAX_BYTES;
    return bytes & (0 - happens);
}

/* Number of references of a dynamic block; -1: an operand is too large. Temporaries are in src. */
int64_t block_references(const struct peet_block *b, const uint64_t *src);

#endif
