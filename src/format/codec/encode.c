/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "base/err.h"
#include "format/codec/item_state.h"
#include "format/codec/slot_predict.h"

/* The most that one word can add to each plane, in quarters of a byte, without bytes of 255 of a long run. */
static const size_t PER_WORD[PLANES] = { 4, 4, 16, 32, 1, 4, 4, 4, 4, 16 };

int encoder_init(struct encoder *e, const struct schema *s, size_t chunk_words, struct peet_err *err)
{
    size_t words = chunk_words + PEET_SLOTS + 2;

    *e = (struct encoder){ .schema = s, .limit = chunk_words };
    e->has_avx2 = cpu_has_avx2();
    if (item_states_init(&e->states) < 0)
        goto no_memory;
    for (int i = 0; i < PLANES; i++)
        if (!(e->room[i] = malloc(words * PER_WORD[i] / 4 + words / 255 + 16)))
            goto no_memory;
    encoder_next_chunk(e);
    return 0;
no_memory:
    encoder_release(e);
    return err_set(err, PEET_ERR_MEMORY, "no memory for a stream of %zu words a chunk", chunk_words);
}

void encoder_release(struct encoder *e)
{
    item_states_release(&e->states);
    for (int i = 0; i < PLANES; i++)
        free(e->room[i]);
    *e = (struct encoder){ 0 };
}

void encoder_next_chunk(struct encoder *e)
{
    item_states_forget(&e->states);
    e->now = e->states.none;
    e->run = 0;
    e->words = 0;
    for (int i = 0; i < PLANES; i++)
        e->end[i] = e->room[i];
    e->residual_end = e->residual;
    e->instructions = e->references = e->events = 0;
    memcpy(e->at_start, e->src + PEET_SRC_REGISTER, sizeof e->at_start);
}

static inline void encoder_put_run(struct encoder *e, uint64_t run)
{
    for (; run >= 255; run -= 255)
        *e->end[PLANE_RUNS]++ = 255;
    *e->end[PLANE_RUNS]++ = (uint8_t)run;
}

/* The item, or which of its slots are mispredicted, was not predicted. There are no branches on the kind of exception, which cannot be predicted either: all
 * fields are written, and each plane grows by those that count. */
static inline void encoder_put_exception(struct encoder *e, struct item_state *from, struct item_state *c,
                                         uint64_t before, uint64_t mispredicted)
{
    unsigned rank = TOKEN_NEW, other = mispredicted != before;

    for (unsigned i = RANKS; i-- > 0;)
        rank = from->next[i] == c ? i : rank;
    *e->end[PLANE_TOKENS]++ = (uint8_t)(rank | (other ? TOKEN_MASK : 0));
    put_le32(e->end[PLANE_ITEMS], c->leb);
    e->end[PLANE_ITEMS] += rank == TOKEN_NEW ? c->leb_bytes : 0;
    put_le64(e->end[PLANE_MASKS], mispredicted);
    e->end[PLANE_MASKS] += other ? c->mask_bytes : 0;
    c->mispredicted = mispredicted;
    item_state_promote(from, c, rank);
}

/* Adds the totals of a linear loop's iterations; false: they are too many for sums without overflow checks. */
static inline bool encoder_add_iterations(struct encoder *e, const struct item *item, uint64_t iterations)
{
    if (iterations >> LINEAR_TRIP_BITS)
        return false;
    e->instructions += iterations * item->trip_insns;
    e->references += iterations * item->trip_references;
    return true;
}

/* Executes a special item: totals beyond its executions, registers. Its slots are not encoded yet, so that an error leaves the chunk
 * complete. */
static int encoder_special(struct encoder *e, const struct item_state *c, const uint64_t *slots, struct peet_err *err)
{
    const struct item *item = c->item;
    uint64_t insns, references;

    if (item->kind == ITEM_LOOP) {
        if (item->linear && encoder_add_iterations(e, item, slots[item->count]))
            return 0;
        if (!loop_totals(e->schema, item->loop, slots + item->loop->values, &insns, &references)
            || (e->instructions + insns) >> 62 || (e->references + references) >> 62)
            return err_set(err, PEET_ERR_LIMIT, "loop %" PRIu32 ": its trip counts multiply to more than 2^62",
                           c->number);
        e->instructions += insns - item->insns; /* these are counted with the executions */
        e->references += references - item->references;
        return 0;
    }
    if (item->kind == ITEM_EVENT) {
        if (slots[0] >= PEET_REGISTERS)
            return err_set(err, PEET_ERR_USAGE, "set_register: there is no register %" PRIu64, slots[0]);
        e->src[PEET_SRC_REGISTER + slots[0]] = slots[1];
        return 0;
    }
    memcpy(e->src + PEET_SRC_SLOT, slots, c->slots * sizeof *slots);
    block_compute(item->block, e->src);
    if (item->dynamic) {
        int64_t n = block_references(item->block, e->src);
        if (n < 0)
            return err_set(err, PEET_ERR_LIMIT, "block %" PRIu32 ": an operand of 4 GiB or more; split it", c->number);
        e->references += (uint64_t)n;
    }
    block_effects(item->block, e->src);
    return 0;
}

/* The state of the item with a key that is not the likeliest successor's. */
static inline struct item_state *encoder_find_slowly(struct encoder *e, uint64_t key, struct peet_err *err)
{
    return item_states_find(&e->states, e->schema, e->names, key, err);
}

/* Appends the first n residuals to their planes. */
static void encoder_put_residuals(struct encoder *e, size_t n)
{
    uint8_t **end = e->end + PLANE_CLASSES;
    struct residual_writer to = { end[0], end[1], end[2], end[3], end[4], end[5] };

    residuals_split(e->residual, n, &to);
    memcpy(end, &to, sizeof to);
}

/* Appends the residuals up to `end` to their planes, in groups of four; returns the end of the rest. */
static __attribute__((noinline)) uint64_t *encoder_spill(struct encoder *e, const uint64_t *end)
{
    size_t n = (size_t)(end - e->residual), whole = n / 4 * 4;

    encoder_put_residuals(e, whole);
    memcpy(e->residual, e->residual + whole, (n - whole) * sizeof *end);
    return e->residual + (n - whole);
}

/* Executes an item with SPECIAL_STATE that is none of the frequent ones. */
static __attribute__((noinline)) int encoder_update_rare(struct encoder *e, const struct item_state *c,
                                                         const uint64_t *slots, struct peet_err *err)
{
    if (!c->item)
        return err_set(err, PEET_ERR_USAGE, "no such item");
    if (c->item->kind == ITEM_LOOP)
        item_state_complete_loop(c, e->names, (uint64_t *)(uintptr_t)slots); /* words with names are writable */
    return encoder_special(e, c, slots, err);
}

static inline int encoder_update_state(struct encoder *e, const struct item_state *c, const uint64_t *slots,
                                       struct peet_err *err)
{
    if (c->special & SPECIAL_ONE_EFFECT) {
        const struct peet_effect *f = c->item->block->effect;
        uint64_t from = f->src < PEET_SRC_SLOT ? e->src[f->src] : slots[f->src - PEET_SRC_SLOT];
        e->src[PEET_SRC_REGISTER + f->reg] = from + (uint64_t)f->add;
        return 0;
    }
    if (c->special & SPECIAL_COUNTED_LOOP) {
        uint64_t iterations = loop_iterations(c->trips, slots);
        if (encoder_add_iterations(e, c->item, iterations)) {
            ((uint64_t *)(uintptr_t)slots)[c->slots - 1] = iterations;
            return 0;
        }
    }
    return encoder_update_rare(e, c, slots, err);
}

/* The state of the item at p; NULL: it is unknown, or words are missing. */
static inline struct item_state *encoder_find(struct encoder *e, const struct item_state *now, const uint64_t *p,
                                              const uint64_t *end, struct peet_err *err)
{
    struct item_state *c = now->next[0];

    if (c->key != *p && !(c = encoder_find_slowly(e, *p, err)))
        return NULL;
    if ((size_t)(end - p) > c->slots)
        return c;
    err_set(err, PEET_ERR_USAGE, "item %" PRIu64 " has %u slots, %zd words are left", *p, c->slots, end - p - 1);
    return NULL;
}

static inline __attribute__((always_inline)) int encoder_put_words(struct encoder *e, const uint64_t *words, size_t n,
                                                                   size_t *ret_used, slot_predictor *slot_predict,
                                                                   repeat_predictor *again, struct peet_err *err)
{
    const uint64_t *p = words, *end = words + n, *stop = n < e->limit - e->words ? end : words + (e->limit - e->words);
    uint64_t *out = e->residual_end, run = e->run;
    struct item_state *now = e->now, *c;

    while (p < stop && (c = encoder_find(e, now, p, end, err))) {
        const uint64_t *slots = p + 1;
        if (c->special & SPECIAL_STATE && encoder_update_state(e, c, slots, err) < 0)
            break;
        uint64_t before = c->mispredicted, mispredicted;
        mispredicted = (size_t)(end - p) > c->padded ? slot_predict(c, slots, &out) : predict_slots(c, slots, &out);
        c->executions++;
        p += c->slots + 1;
        if (c == now->next[0] && mispredicted == before) {
            run++;
        } else {
            encoder_put_run(e, run);
            run = 0;
            encoder_put_exception(e, now, c, before, mispredicted);
        }
        if (out >= e->residual + RESIDUALS)
            out = encoder_spill(e, out);
        now = c;
        if (c->next[0] == c && mispredicted == before && !(c->special & SPECIAL_STATE)) {
            size_t times = again(c, p, stop, end, &out, e->residual + RESIDUALS);
            run += times;
            p += times * (c->slots + 1u);
        }
    }
    e->now = now;
    e->run = run;
    e->residual_end = out;
    *ret_used = (size_t)(p - words);
    e->words += *ret_used;
    return p < stop ? err->code : 0;
}

#ifdef __x86_64__
PREDICT_AVX2 static int encoder_put_avx2(struct encoder *e, const uint64_t *words, size_t n, size_t *ret_used,
                                         struct peet_err *err)
{
    return encoder_put_words(e, words, n, ret_used, predict_slots_avx2, predict_again_avx2, err);
}
#endif

int encoder_put(struct encoder *e, const uint64_t *words, size_t n, size_t *ret_used, struct peet_err *err)
{
#ifdef __x86_64__
    if (e->has_avx2)
        return encoder_put_avx2(e, words, n, ret_used, err);
#endif
    return encoder_put_words(e, words, n, ret_used, predict_slots, predict_again, err);
}

void encoder_finish(struct encoder *e, struct encoded *ret)
{
    *ret = (struct encoded){ .instructions = e->instructions, .references = e->references };
    encoder_put_run(e, e->run);
    encoder_put_residuals(e, (size_t)(e->residual_end - e->residual));
    for (int i = 0; i < PLANES; i++) {
        ret->plane[i] = e->room[i];
        ret->size[i] = (size_t)(e->end[i] - e->room[i]);
    }
    for (size_t i = 0; i < e->states.used_count; i++) {
        const struct item_state *c = e->states.used[i];
        ret->items += c->executions;
        ret->instructions += c->executions * c->item->insns;
        ret->references += c->item->dynamic ? 0 : c->executions * c->item->references;
        ret->events += c->item->kind == ITEM_EVENT && !(c->special & SPECIAL_STATE)
                           ? c->executions
                           : 0; /* set_register is no event for users */
    }
}
