/* SPDX-License-Identifier: MIT */
/* The schema in memory: everything that has been defined so far, for the writer and for the reader alike.
 *
 * Definitions are checked, copied and never move or change again. One thread at a time may add; others may look up
 * items meanwhile (the writer's streams do). */
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

/* An operand made ready for expansion: a record that holds the displacement, to which src[base] + (src[index] << scale) is
 * added. */
struct plan_op {
    _Alignas(16) struct peet_record record;
    uint16_t base, index;
    uint8_t scale;
};

/* So many bits have instructions and references of a trip of a linear loop, and its trips where nobody looks for overflow: with
 * the 2^21 loops that a chunk can hold they stay below 2^62. */
enum { LINEAR_BITS = 13, LINEAR_TRIP_BITS = 28 };

struct item {
    uint8_t kind;
    bool dynamic; /* block: how many references it makes depends on its slots */
    bool effects; /* block: it changes registers */
    bool indexed; /* block: some operand has an index */
    uint16_t slots;
    uint32_t insns,
        references; /* of a block, references only where not dynamic; of a loop, what does not hang on `count` */
    union {
        const struct peet_block *block;
        const struct peet_loop *loop;
        const struct peet_event_item *event;
    };
    const struct plan_op *plan; /* block: one per operand, and zeroes up to a multiple of PLAN_PAD */
    bool linear;                /* loop: slot `count` is its only trip count, and each trip has as many */
    uint16_t count;
    uint32_t trip_insns, trip_references;
};

struct schema {
    struct arena arena;
    struct item *_Atomic segment[SCHEMA_MAX_ITEMS / ITEM_SEGMENT];
    _Atomic uint32_t items; /* one more than the greatest number */
    uint32_t insns;
    struct vector {
        void **at;
        size_t count, room;
    } blocks, metas, processes, modules, ranges, threads, strings;
};

struct schema *schema_new(void); /* NULL: no memory */
void schema_free(struct schema *s);

/* NULL when there is no such item. */
static inline const struct item *schema_item(const struct schema *s, uint64_t number)
{
    if (number >= atomic_load_explicit(&s->items, memory_order_acquire))
        return NULL;
    const struct item *segment = atomic_load_explicit(&s->segment[number / ITEM_SEGMENT], memory_order_acquire);
    if (!segment || segment[number % ITEM_SEGMENT].kind == ITEM_NONE)
        return NULL;
    return &segment[number % ITEM_SEGMENT];
}

/* These check and copy. The number of an item is the id inside. */
int schema_add_block(struct schema *s, const struct peet_block *b, struct peet_err *err);
int schema_add_loop(struct schema *s, const struct peet_loop *l, struct peet_err *err);
/* The kind PEET_EVENT_KINDS stands for one that is not known; readers pass over it. */
int schema_add_event(struct schema *s, const struct peet_event_item *e, unsigned arguments, struct peet_err *err);
int schema_add_process(struct schema *s, const struct peet_process *p, struct peet_err *err);
int schema_add_module(struct schema *s, const struct peet_module *m, struct peet_err *err);
int schema_add_range(struct schema *s, const struct peet_range *r, struct peet_err *err);
int schema_add_thread(struct schema *s, const struct peet_thread *t, struct peet_err *err);
int schema_add_meta(struct schema *s, const char *key, const char *value, struct peet_err *err);
int schema_add_string(struct schema *s, uint32_t number, const char *text, struct peet_err *err);

struct meta {
    const char *key, *value;
};

/* The thread with this number, or NULL. */
const struct peet_thread *schema_thread(const struct schema *s, uint32_t id);

/* Instructions and references of one execution of a loop; false when they do not fit into 63 bits. */
bool loop_totals(const struct schema *s, const struct peet_loop *l, const uint64_t *counts, uint64_t *ret_insns,
                 uint64_t *ret_references);

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

/* Adds all the records in bytes to the schema. Records of unknown kinds are passed over; so are those that make no sense,
 * and the first of them is told. */
int defs_read(struct schema *s, const uint8_t *bytes, size_t n, struct peet_err *err);

/* ---- executing a block: src has PEET_SOURCES words, its slots are in place ---- */

static inline struct peet_record block_record(const struct peet_block *b)
{
    return (struct peet_record){ .addr = b->insn[0].addr, .id = b->id, .size = b->insns, .kind = PEET_BLOCK };
}

typedef uint64_t record_vector __attribute__((vector_size(16), aligned(8), may_alias));

/* The record of one operand. */
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

/* Bytes that an operand moves: 0 for none; OPERAND_MAX_BYTES or more is not allowed. A predicate's bit is a factor, for it
 * cannot be foreseen. */
static inline uint64_t operand_bytes(const struct peet_operand *o, const uint64_t *src)
{
    uint64_t bytes = o->size, happens = o->predicate ? src[o->predicate] >> o->predicate_bit & 1 : 1;

    if (o->size_src && __builtin_mul_overflow(bytes, src[o->size_src], &bytes))
        bytes = OPERAND_MAX_BYTES;
    return bytes & (0 - happens);
}

/* The references that a dynamic block makes; -1 when an operand is too large. Computes must have been done. */
int64_t block_references(const struct peet_block *b, const uint64_t *src);

#endif
