/* SPDX-License-Identifier: MIT */
/* From items to batches of records.
 *
 * The common case is a block whose operands are sums of sources: decode its slots, add them up, write the records. What
 * is rarer (events, loops, registers, operands of varying size) is marked `special` in its context and goes elsewhere. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "format/codec/item_state.h"
#include "format/read/cursor.h"

enum { PAGE_BITS = 12 };

int cursor_reserve(struct peet_cursor *c, size_t more, struct peet_err *err)
{
    if (c->room - c->count >= more && c->room)
        return 0;
    size_t room = c->count + more + BATCH + BLOCK_MAX_OPERANDS + 1;
    struct peet_record *record = realloc(c->record, room * sizeof *record);
    if (!record)
        return err_set(err, PEET_ERR_MEMORY, "no memory for a batch of %zu records", room);
    c->record = record;
    c->room = room;
    if (c->want & PEET_WANT_PHYSICAL) {
        uint64_t *physical = realloc(c->physical, room * sizeof *physical);
        if (!physical)
            return err_set(err, PEET_ERR_MEMORY, "no memory for a batch of %zu records", room);
        c->physical = physical;
    }
    if (c->want & PEET_WANT_VALUES) {
        uint32_t *value_index = realloc(c->value_index, room * sizeof *value_index);
        if (!value_index)
            return err_set(err, PEET_ERR_MEMORY, "no memory for a batch of %zu records", room);
        c->value_index = value_index;
    }
    return 0;
}

int cursor_damaged(const struct peet_cursor *c, const char *what, struct peet_err *err)
{
    return err_set(err, PEET_ERR_DAMAGED,
                   "%s: thread %" PRIu32 ": instructions %" PRIu64 " to %" PRIu64 " (chunk at byte %" PRIu64 "): %s",
                   c->trace->path, c->chunk.header.thread, c->chunk.header.first,
                   c->chunk.header.first + c->chunk.header.instructions, c->chunk.offset, what);
}

/* The next item of words: most often a block that is known, and more words follow. */
static inline __attribute__((always_inline)) struct item_state *next_fed(struct peet_cursor *c)
{
    const uint64_t *word = c->word;

    if (word == c->word_end)
        return NULL;
    struct item_state *x = *item_states_cached(&c->decoder.states, *word);
    if (!x || x->name != *word || x->special & SPECIAL_OTHER || (size_t)(c->word_end - word) <= x->padded)
        return cursor_feed_next(c);
    feed_slots(c->decoder.src + PEET_SRC_SLOT, word + 1, x->padded);
    c->word += x->slots + 1;
    return x;
}

static inline __attribute__((always_inline)) struct item_state *next_item(struct peet_cursor *c, bool is_fed)
{
    return is_fed ? next_fed(c) : decoder_next(&c->decoder);
}

/* Records are written in groups of PLAN_PAD, also where there are fewer operands: what is too much is written over later. */
static inline __attribute__((always_inline)) void put_operands(const struct plan_op *op, unsigned operands,
                                                               const uint64_t *src, bool indexed, struct peet_record *r)
{
    for (unsigned i = 0; i < operands; i += PLAN_PAD) {
        plan_put(&op[i], src, indexed, &r[i]);
        plan_put(&op[i + 1], src, indexed, &r[i + 1]);
        plan_put(&op[i + 2], src, indexed, &r[i + 2]);
        plan_put(&op[i + 3], src, indexed, &r[i + 3]);
    }
}

/* The records of a block; returns where the next ones go. */
static inline __attribute__((always_inline)) struct peet_record *put_records(struct peet_record *r,
                                                                             const struct peet_record *head,
                                                                             const struct plan_op *op,
                                                                             unsigned operands, bool indexed,
                                                                             const uint64_t *src)
{
    *(record_vector *)r++ = *(const record_vector *)head;
    if (indexed)
        put_operands(op, operands, src, true, r);
    else
        put_operands(op, operands, src, false, r);
    return r + operands;
}

static void put_block(struct peet_cursor *c, const struct item *item)
{
    struct peet_record head = block_record(item->block), *r = c->record + c->count;

    put_records(r, &head, item->plan, item->block->operands, item->indexed, c->decoder.src);
    c->count += 1u + item->block->operands;
    c->position += item->insns;
}

/* A range that is longer than a record can say, in pieces; then there is room for `more`. */
static int put_pieces(struct peet_cursor *c, const struct peet_record *whole, uint64_t bytes, size_t more,
                      struct peet_err *err)
{
    if (bytes >= OPERAND_MAX_BYTES)
        return cursor_damaged(c, "an operand of 4 GiB or more", err);
    struct peet_record piece = *whole; /* which reserve may move */
    int r = cursor_reserve(c, bytes / PEET_MAX_SIZE + 1 + more, err);
    for (; r == 0 && bytes > 0; c->count++) {
        piece.size = (bytes < PEET_MAX_SIZE ? (uint32_t)bytes : PEET_MAX_SIZE) & PEET_MAX_SIZE;
        c->record[c->count] = piece;
        piece.addr += piece.size;
        bytes -= piece.size;
    }
    return r;
}

/* A block some of whose operands vary in size or do not happen at all: these are written, too, and written over. */
static int put_dynamic(struct peet_cursor *c, const struct item *item, struct peet_err *err)
{
    const uint64_t *src = c->decoder.src;
    const struct peet_block *b = item->block;
    int r = 0;

    c->record[c->count++] = block_record(b);
    for (unsigned i = 0; r == 0 && i < b->operands; i++) {
        const struct peet_operand *o = &b->operand[i];
        struct peet_record *to = &c->record[c->count];
        uint64_t bytes = operand_bytes(o, src);
        plan_put(&item->plan[i], src, true, to);
        to->addr -= o->down && bytes ? bytes - o->size : 0;
        to->size = (uint32_t)bytes & PEET_MAX_SIZE;
        if (bytes <= PEET_MAX_SIZE)
            c->count += bytes > 0;
        else
            r = put_pieces(c, to, bytes, b->operands, err);
    }
    c->position += b->insns;
    return r;
}

static int put_event(struct peet_cursor *c, const struct item *item, struct peet_err *err)
{
    const uint64_t *slot = c->decoder.src + PEET_SRC_SLOT;
    struct peet_event *e = &c->event[c->events];

    e->kind = item->event->kind;
    e->args = item->slots;
    e->site = item->event->site;
    for (unsigned i = 0; i < PEET_EVENT_ARGS; i++)
        e->arg[i] = i < item->slots ? slot[i] : 0;
    if (e->kind == PEET_EV_page) {
        uint64_t *frame = map_put(&c->pages, slot[0], 0);
        if (!frame)
            return err_set(err, PEET_ERR_MEMORY, "no memory for a page table");
        *frame = slot[1];
    }
    c->record[c->count++] = (struct peet_record){ .addr = e->arg[0], .id = (uint32_t)c->events, .kind = PEET_EVENT };
    c->events++;
    return 0;
}

/* What a loop adds up to; false: it is too much. */
static bool count_loop(const struct peet_cursor *c, const struct item *item, const uint64_t *count, uint64_t *ret_insns,
                       uint64_t *ret_references)
{
    uint64_t trips = item->linear ? c->decoder.src[PEET_SRC_SLOT + item->count] : 0;

    if (!item->linear || trips >> LINEAR_TRIP_BITS)
        return loop_totals(c->decoder.schema, item->loop, count, ret_insns, ret_references);
    *ret_insns = item->insns + trips * item->trip_insns;
    *ret_references = item->references + trips * item->trip_references;
    return true;
}

static int put_loop(struct peet_cursor *c, const struct item *item, struct peet_err *err)
{
    const uint64_t *slot = c->decoder.src + PEET_SRC_SLOT;
    uint64_t insns, references;
    struct peet_loop_run run = { item->loop, slot, slot + item->loop->values };

    if (!count_loop(c, item, run.count, &insns, &references) || c->position + insns < c->position
        || c->position + insns > c->chunk.header.first + c->chunk.header.instructions)
        return cursor_damaged(c, "a loop has more trips than the chunk has instructions", err);
    if (!(c->want & PEET_WANT_LOOPS)) {
        c->in_loop = true;
        c->flat.trips = 0;
        bool plain = !c->physical && !c->value_index && !c->skipping;
        const struct loop_plan *plan = plain ? loop_plan(&c->plans, c->decoder.schema, item->loop) : NULL;
        c->run.plan = NULL;
        if (plan)
            loop_run_init(&c->run, plan, c->decoder.src);
        else
            peet_loop_walk_init(&c->walk, c->trace, &run);
        return 0;
    }
    memcpy(c->loop_words[c->loops], slot, item->slots * sizeof *slot);
    run.value = c->loop_words[c->loops];
    run.count = run.value + item->loop->values;
    c->loop[c->loops] = run;
    c->record[c->count++] = (struct peet_record){ .id = (uint32_t)c->loops++, .kind = PEET_LOOP };
    c->position += insns;
    return 0;
}

int cursor_special(struct peet_cursor *c, const struct item *item, struct peet_err *err)
{
    uint64_t *src = c->decoder.src;
    int r = 0;

    if (!item)
        return cursor_damaged(c, "it executes an item that is not defined", err);
    if (item->kind == ITEM_LOOP)
        return put_loop(c, item, err);
    if (item->kind == ITEM_EVENT) {
        if (item->event->kind >= PEET_EVENT_KINDS)
            return 0; /* of a later version: its definition has been told */
        if (item->event->kind != PEET_EV_set_register)
            return put_event(c, item, err);
        if (src[PEET_SRC_SLOT] >= PEET_REGISTERS)
            return cursor_damaged(c, "it sets a register that there is not", err);
        src[PEET_SRC_REGISTER + src[PEET_SRC_SLOT]] = src[PEET_SRC_SLOT + 1];
        return 0;
    }
    block_compute(item->block, src);
    if (item->dynamic)
        r = put_dynamic(c, item, err);
    else
        put_block(c, item);
    block_effects(item->block, src);
    return r;
}

/* The next block of the loop that is being expanded. */
static void put_loop_block(struct peet_cursor *c, const struct item **ret_item)
{
    const uint64_t *slots;
    const struct peet_block *b = peet_loop_walk_next(&c->walk, &slots);

    *ret_item = NULL;
    if (!b) {
        c->in_loop = false;
        return;
    }
    memcpy(c->decoder.src + PEET_SRC_SLOT, slots, b->slots * sizeof *slots);
    if (b->computes)
        block_compute(b, c->decoder.src);
    *ret_item = schema_item(c->decoder.schema, b->id);
    put_block(c, *ret_item);
}

static uint64_t translate(const struct peet_cursor *c, uint64_t addr)
{
    const uint64_t *frame = map_find(&c->pages, addr >> PAGE_BITS, 0);

    return frame ? *frame << PAGE_BITS | (addr & (((uint64_t)1 << PAGE_BITS) - 1)) : PEET_NO_PHYSICAL;
}

/* All trips of the loop as one record. */
static void put_repeat(struct peet_cursor *c)
{
    struct flat_loop *f = &c->flat;
    struct peet_record *trip = c->trip + c->trip_records;
    uint64_t *step = c->trip_step + c->trip_records;

    memcpy(trip, f->record, f->records * sizeof *trip);
    if (f->step == f->own_step) /* which the next loop overwrites */
        memcpy(step, f->own_step, f->records * sizeof *step);
    c->trip_records += f->records;
    c->repeat[c->repeats] = (struct peet_repeat){ f->trips, f->records, trip, f->step == f->own_step ? step : f->step };
    c->record[c->count++] = (struct peet_record){ .id = (uint32_t)c->repeats++, .kind = PEET_REPEAT };
    c->position += f->trips * f->instructions;
    f->trips = 0;
}

/* Goes on in the plan: a block, or trips that are in c->flat then. */
static void run_plan(struct peet_cursor *c)
{
    const struct plan_node *n = loop_run_next(&c->run, c->decoder.src);

    if (!n) {
        c->in_loop = false;
    } else if (n->kind == PLAN_FLAT) {
        loop_run_flatten(&c->run, n, c->decoder.src, &c->flat);
    } else {
        put_records(c->record + c->count, &n->head, n->op, n->operands, n->indexed, c->decoder.src);
        c->count += 1u + n->operands;
        c->position += n->instructions;
    }
}

static void put_trips(struct peet_cursor *c)
{
    if (c->want & PEET_WANT_REPEATS && c->flat.trips * c->flat.records >= WORTH_A_REPEAT) {
        put_repeat(c);
        return;
    }
    size_t trips = loop_flat_trips(&c->flat, c->record + c->count, c->room - c->count);
    c->count += trips * c->flat.records;
    c->position += trips * c->flat.instructions;
}

/* As much of the loop as goes into the batch, at full speed. */
static void run_loop(struct peet_cursor *c)
{
    const struct item *item;

    while (c->in_loop && c->count < BATCH && cursor_may_repeat(c))
        if (c->flat.trips > 0)
            put_trips(c);
        else if (c->run.plan)
            run_plan(c);
        else if (!loop_flatten(&c->walk, c->decoder.src, &c->flat))
            put_loop_block(c, &item);
}

/* Physical addresses and values of the records from `from` on, all of them of one item. */
static int add_extras(struct peet_cursor *c, const struct item *item, size_t from, struct peet_err *err)
{
    const uint64_t *src = c->decoder.src;

    for (size_t i = from; i < c->count && c->physical; i++)
        c->physical[i] = peet_is_reference(&c->record[i]) ? translate(c, c->record[i].addr) : PEET_NO_PHYSICAL;
    if (!c->value_index)
        return 0;
    for (size_t i = from; i < c->count; i++)
        c->value_index[i] = PEET_NO_VALUE;
    if (!item || item->kind != ITEM_BLOCK)
        return 0;
    size_t at = from + 1;
    for (unsigned i = 0; i < item->block->operands; i++) {
        const struct peet_operand *o = &item->block->operand[i];
        uint64_t bytes = operand_bytes(o, src), words = (bytes + 7) / 8;
        if (o->value && bytes) {
            if (c->value_room - c->values < words) {
                size_t room = c->value_room * 2 + BATCH + words;
                uint64_t *value = realloc(c->value, room * sizeof *value);
                if (!value)
                    return err_set(err, PEET_ERR_MEMORY, "no memory for values");
                c->value = value;
                c->value_room = room;
            }
            c->value_index[at] = (uint32_t)c->values;
            memcpy(c->value + c->values, src + o->value, words * sizeof *src);
            c->values += words;
        }
        at += (bytes + PEET_MAX_SIZE - 1) / PEET_MAX_SIZE;
    }
    return 0;
}

/* While seeking: forget what ends before the place that is looked for. */
static void skip(struct peet_cursor *c, uint64_t before)
{
    bool wanted = c->position > c->skip_to || (before >= c->skip_to && c->count > 0);

    c->batch_position = before;
    if (wanted)
        c->skipping = false;
    else
        c->count = c->events = c->loops = c->values = 0;
}

/* One item, or one block of a loop: 1, or 0 at the end of the chunk, or an error. */
static int step(struct peet_cursor *c, struct peet_err *err)
{
    size_t from = c->count;
    uint64_t before = c->position;
    const struct item *item = NULL;
    int r = 0;

    if (c->in_loop) {
        put_loop_block(c, &item);
    } else {
        const struct item_state *x = next_item(c, c->is_fed);
        if (!x)
            return 0;
        item = x->item;
        r = cursor_special(c, item, err);
    }
    if (r == 0 && (c->physical || c->value_index))
        r = add_extras(c, item, from, err);
    if (r < 0)
        return r;
    if (c->skipping)
        skip(c, before);
    return 1;
}

/* Many items at full speed, as long as they are blocks whose references do not vary. What stops it is done, too: returns as step
 * does. */
static inline __attribute__((always_inline)) int run(struct peet_cursor *c, bool is_fed, struct peet_err *err)
{
    struct peet_record *r = c->record + c->count, *full = c->record + BATCH;
    uint64_t *src = c->decoder.src, instructions = 0, last = 0; /* where the last block stands */
    const struct item_state *x = NULL;
    unsigned special = 0;

    while (r < full && (x = next_item(c, is_fed))) {
        special = x->special;
        if (special & SPECIAL_OTHER)
            break;
        if (special & SPECIAL_MACHINE)
            block_compute(x->item->block, src);
        struct peet_record *from = r;
        r = put_records(r, &x->head, x->plan, x->operands, x->indexed, src);
        uint64_t row = is_fed && !special && cursor_may_row(c, x, last) ? cursor_feed_row(c, x, from) : 0;
        last = x->head.addr;
        if (row) {
            r = from + 1;
            instructions += row;
            if (!cursor_may_repeat(c))
                break;
            continue;
        }
        instructions += x->head.size;
        if (special & SPECIAL_STATE)
            block_effects(x->item->block, src);
    }
    c->count = (size_t)(r - c->record);
    c->position += instructions;
    if (!x)
        return 0;
    int e = special & SPECIAL_OTHER ? cursor_special(c, x->item, err) : 0;
    return e < 0 ? e : 1;
}

int cursor_fill(struct peet_cursor *c, struct peet_err *err)
{
    bool plain = !c->physical && !c->value_index;
    int r = 1;

    while (r == 1 && c->count < BATCH && c->events < BATCH_EVENTS && c->loops < BATCH_LOOPS && cursor_may_repeat(c)) {
        if (!plain || c->skipping)
            r = step(c, err);
        else if (c->in_loop)
            run_loop(c);
        else
            r = c->is_fed ? run(c, true, err) : run(c, false, err);
    }
    return r;
}
