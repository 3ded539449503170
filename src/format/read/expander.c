/* SPDX-License-Identifier: MIT */
/* From items to batches of records. The common item is a block with operands that are sums of sources. Rarer ones (events, loops,
 * registers, operands of varying size) have item_state.special set, and take a slower path. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "format/codec/item_state.h"
#include "format/read/expander.h"
#include "format/read/stream_reader.h"

enum { PAGE_BITS = 12 };

int expander_init(struct expander *ex, const struct peet_trace *trace, unsigned want, struct peet_err *err)
{
    ex->trace = trace;
    ex->want = want;
    ex->pages.value_size = sizeof(uint64_t);
    int r = decoder_init(&ex->decoder, trace->schema, err);
    return r < 0 ? r : expander_reserve(ex, 1, err);
}

void expander_release(struct expander *ex)
{
    decoder_release(&ex->decoder);
    map_release(&ex->pages);
    loop_plans_release(&ex->loop.plans);
    free(ex->batch.record);
    free(ex->batch.physical);
    free(ex->batch.value_index);
    free(ex->batch.value);
}

struct peet_batch expander_batch(const struct expander *ex)
{
    return (struct peet_batch){
        .count = ex->batch.count,
        .records = ex->batch.record,
        .events = ex->batch.event,
        .event_count = ex->batch.events,
        .loops = ex->batch.loop,
        .repeats = ex->strided.repeat,
        .physical = ex->batch.physical,
        .values = ex->batch.value,
        .value_index = ex->batch.value_index,
        .thread = ex->chunk.header.thread,
        .position = ex->batch.position,
    };
}

int expander_reserve(struct expander *ex, size_t more, struct peet_err *err)
{
    if (ex->batch.room - ex->batch.count >= more && ex->batch.room)
        return 0;
    size_t room = ex->batch.count + more + BATCH + BLOCK_MAX_OPERANDS + 1;
    struct peet_record *record = realloc(ex->batch.record, room * sizeof *record);
    if (!record)
        return err_set(err, PEET_ERR_MEMORY, "no memory for a batch of %zu records", room);
    ex->batch.record = record;
    ex->batch.room = room;
    if (ex->want & PEET_WANT_PHYSICAL) {
        uint64_t *physical = realloc(ex->batch.physical, room * sizeof *physical);
        if (!physical)
            return err_set(err, PEET_ERR_MEMORY, "no memory for a batch of %zu records", room);
        ex->batch.physical = physical;
    }
    if (ex->want & PEET_WANT_VALUES) {
        uint32_t *value_index = realloc(ex->batch.value_index, room * sizeof *value_index);
        if (!value_index)
            return err_set(err, PEET_ERR_MEMORY, "no memory for a batch of %zu records", room);
        ex->batch.value_index = value_index;
    }
    return 0;
}

int expander_damaged(const struct expander *ex, const char *what, struct peet_err *err)
{
    return chunk_damaged(ex->trace, &ex->chunk, what, err);
}

/* The next item of words. The fast case is a block in the lookup cache, with more words after it. */
static inline __attribute__((always_inline)) struct item_state *expander_next_fed(struct expander *ex)
{
    const uint64_t *word = ex->fed.word;

    if (word == ex->fed.end)
        return NULL;
    struct item_state *x = *item_states_cached(&ex->decoder.states, *word);
    if (!x || x->key != *word || x->special & SPECIAL_OTHER || (size_t)(ex->fed.end - word) <= x->padded)
        return expander_next_of_words(ex);
    expander_copy_slots(ex->decoder.src + PEET_SRC_SLOT, word + 1, x->padded);
    ex->fed.word += x->slots + 1;
    return x;
}

static inline __attribute__((always_inline)) struct item_state *expander_next_item(struct expander *ex, bool is_fed)
{
    return is_fed ? expander_next_fed(ex) : decoder_next(&ex->decoder);
}

/* Writes references in groups of PLAN_PAD, also if there are fewer operands: later records overwrite the rest. */
static inline __attribute__((always_inline)) void records_put_operands(const struct plan_op *op, unsigned operands,
                                                                       const uint64_t *src, bool indexed,
                                                                       struct peet_record *r)
{
    for (unsigned i = 0; i < operands; i += PLAN_PAD) {
        plan_put(&op[i], src, indexed, &r[i]);
        plan_put(&op[i + 1], src, indexed, &r[i + 1]);
        plan_put(&op[i + 2], src, indexed, &r[i + 2]);
        plan_put(&op[i + 3], src, indexed, &r[i + 3]);
    }
}

/* Writes the records of a block; returns their end. */
static inline __attribute__((always_inline)) struct peet_record *records_put(struct peet_record *r,
                                                                             const struct peet_record *head,
                                                                             const struct plan_op *op,
                                                                             unsigned operands, bool indexed,
                                                                             const uint64_t *src)
{
    *(record_vector *)r++ = *(const record_vector *)head;
    if (indexed)
        records_put_operands(op, operands, src, true, r);
    else
        records_put_operands(op, operands, src, false, r);
    return r + operands;
}

static void expander_put_block(struct expander *ex, const struct item *item)
{
    struct peet_record head = block_record(item->block), *r = ex->batch.record + ex->batch.count;

    records_put(r, &head, item->plan, item->block->operands, item->indexed, ex->decoder.src);
    ex->batch.count += 1u + item->block->operands;
    ex->position += item->insns;
}

/* Writes a reference of more than PEET_MAX_SIZE bytes as several records; afterwards there is room for `more`. */
static int expander_put_pieces(struct expander *ex, const struct peet_record *whole, uint64_t bytes, size_t more,
                               struct peet_err *err)
{
    if (bytes >= OPERAND_MAX_BYTES)
        return expander_damaged(ex, "an operand of 4 GiB or more", err);
    struct peet_record piece = *whole; /* a copy: the next line may move the record */
    int r = expander_reserve(ex, bytes / PEET_MAX_SIZE + 1 + more, err);
    for (; r == 0 && bytes > 0; ex->batch.count++) {
        piece.size = (bytes < PEET_MAX_SIZE ? (uint32_t)bytes : PEET_MAX_SIZE) & PEET_MAX_SIZE;
        ex->batch.record[ex->batch.count] = piece;
        piece.addr += piece.size;
        bytes -= piece.size;
    }
    return r;
}

/* Writes a block with operands that vary in size or may not be executed. The next record overwrites one that is not executed. */
static int expander_put_dynamic(struct expander *ex, const struct item *item, struct peet_err *err)
{
    const uint64_t *src = ex->decoder.src;
    const struct peet_block *b = item->block;
    int r = 0;

    ex->batch.record[ex->batch.count++] = block_record(b);
    for (unsigned i = 0; r == 0 && i < b->operands; i++) {
        const struct peet_operand *o = &b->operand[i];
        struct peet_record *to = &ex->batch.record[ex->batch.count];
        uint64_t bytes = operand_bytes(o, src);
        plan_put(&item->plan[i], src, true, to);
        to->addr -= o->down && bytes ? bytes - o->size : 0;
        to->size = (uint32_t)bytes & PEET_MAX_SIZE;
        if (bytes <= PEET_MAX_SIZE)
            ex->batch.count += bytes > 0;
        else
            r = expander_put_pieces(ex, to, bytes, b->operands, err);
    }
    ex->position += b->insns;
    return r;
}

static int expander_put_event(struct expander *ex, const struct item *item, struct peet_err *err)
{
    const uint64_t *slot = ex->decoder.src + PEET_SRC_SLOT;
    struct peet_event *e = &ex->batch.event[ex->batch.events];

    e->kind = item->event->kind;
    e->args = item->slots;
    e->site = item->event->site;
    for (unsigned i = 0; i < PEET_EVENT_ARGS; i++)
        e->arg[i] = i < item->slots ? slot[i] : 0;
    if (e->kind == PEET_EV_page) {
        uint64_t *frame = map_put(&ex->pages, slot[0], 0);
        if (!frame)
            return err_set(err, PEET_ERR_MEMORY, "no memory for a page table");
        *frame = slot[1];
    }
    ex->batch.record[ex->batch.count++] =
        (struct peet_record){ .addr = e->arg[0], .id = (uint32_t)ex->batch.events, .kind = PEET_EVENT };
    ex->batch.events++;
    return 0;
}

static int expander_put_loop(struct expander *ex, const struct item *item, struct peet_err *err)
{
    const uint64_t *slot = ex->decoder.src + PEET_SRC_SLOT;
    uint64_t insns, references;
    struct peet_loop_run run = { item->loop, slot, slot + item->loop->values };

    if (!loop_item_totals(ex->decoder.schema, item, slot, &insns, &references) || ex->position + insns < ex->position
        || ex->position + insns > ex->chunk.header.first + ex->chunk.header.instructions)
        return expander_damaged(ex, "a loop has more trips than the chunk has instructions", err);
    if (!(ex->want & PEET_WANT_LOOPS)) {
        ex->loop.is_open = true;
        ex->loop.flat.trips = 0;
        bool plain = !ex->batch.physical && !ex->batch.value_index && !ex->seek.is_on;
        const struct loop_plan *plan = plain ? loop_plan(&ex->loop.plans, ex->decoder.schema, item->loop) : NULL;
        ex->loop.run.plan = NULL;
        if (plan)
            loop_run_init(&ex->loop.run, plan, ex->decoder.src);
        else
            peet_loop_walk_init(&ex->loop.walk, ex->trace, &run);
        return 0;
    }
    memcpy(ex->batch.loop_words[ex->batch.loops], slot, item->slots * sizeof *slot);
    run.value = ex->batch.loop_words[ex->batch.loops];
    run.count = run.value + item->loop->values;
    ex->batch.loop[ex->batch.loops] = run;
    ex->batch.record[ex->batch.count++] = (struct peet_record){ .id = (uint32_t)ex->batch.loops++, .kind = PEET_LOOP };
    ex->position += insns;
    return 0;
}

int expander_put_special(struct expander *ex, const struct item *item, struct peet_err *err)
{
    uint64_t *src = ex->decoder.src;
    int r = 0;

    if (!item)
        return expander_damaged(ex, "it executes an item that is not defined", err);
    if (item->kind == ITEM_LOOP)
        return expander_put_loop(ex, item, err);
    if (item->kind == ITEM_EVENT) {
        if (item->event->kind >= PEET_EVENT_KINDS)
            return 0; /* of a later version of the format; reported with its definition */
        if (item->event->kind != PEET_EV_set_register)
            return expander_put_event(ex, item, err);
        if (src[PEET_SRC_SLOT] >= PEET_REGISTERS)
            return expander_damaged(ex, "it sets a register that there is not", err);
        src[PEET_SRC_REGISTER + src[PEET_SRC_SLOT]] = src[PEET_SRC_SLOT + 1];
        return 0;
    }
    block_compute(item->block, src);
    if (item->dynamic)
        r = expander_put_dynamic(ex, item, err);
    else
        expander_put_block(ex, item);
    block_effects(item->block, src);
    return r;
}

/* Expands the next block of the open loop. */
static void expander_put_loop_block(struct expander *ex, const struct item **ret_item)
{
    const uint64_t *slots;
    const struct peet_block *b = peet_loop_walk_next(&ex->loop.walk, &slots);

    *ret_item = NULL;
    if (!b) {
        ex->loop.is_open = false;
        return;
    }
    memcpy(ex->decoder.src + PEET_SRC_SLOT, slots, b->slots * sizeof *slots);
    if (b->computes)
        block_compute(b, ex->decoder.src);
    *ret_item = schema_item(ex->decoder.schema, b->id);
    expander_put_block(ex, *ret_item);
}

static uint64_t expander_translate(const struct expander *ex, uint64_t addr)
{
    const uint64_t *frame = map_find(&ex->pages, addr >> PAGE_BITS, 0);

    return frame ? *frame << PAGE_BITS | (addr & (((uint64_t)1 << PAGE_BITS) - 1)) : PEET_NO_PHYSICAL;
}

/* Writes all iterations of the flat loop as one record. */
static void expander_put_repeat(struct expander *ex)
{
    struct flat_loop *f = &ex->loop.flat;
    struct peet_record *trip = ex->strided.record + ex->strided.records;
    uint64_t *step = ex->strided.step + ex->strided.records;

    memcpy(trip, f->record, f->records * sizeof *trip);
    if (f->step == f->own_step) /* the next loop overwrites own_step */
        memcpy(step, f->own_step, f->records * sizeof *step);
    ex->strided.records += f->records;
    ex->strided.repeat[ex->strided.repeats] =
        (struct peet_repeat){ f->trips, f->records, trip, f->step == f->own_step ? step : f->step };
    ex->batch.record[ex->batch.count++] =
        (struct peet_record){ .id = (uint32_t)ex->strided.repeats++, .kind = PEET_REPEAT };
    ex->position += f->trips * f->instructions;
    f->trips = 0;
}

/* Continues in the plan: expands a block, or moves iterations to loop.flat. */
static void expander_run_plan(struct expander *ex)
{
    const struct plan_node *n = loop_run_next(&ex->loop.run, ex->decoder.src);

    if (!n) {
        ex->loop.is_open = false;
    } else if (n->kind == PLAN_FLAT) {
        loop_run_flatten(&ex->loop.run, n, ex->decoder.src, &ex->loop.flat);
    } else {
        records_put(ex->batch.record + ex->batch.count, &n->head, n->op, n->operands, n->indexed, ex->decoder.src);
        ex->batch.count += 1u + n->operands;
        ex->position += n->instructions;
    }
}

static void expander_put_iterations(struct expander *ex)
{
    if (ex->want & PEET_WANT_REPEATS && ex->loop.flat.trips * ex->loop.flat.records >= WORTH_A_REPEAT) {
        expander_put_repeat(ex);
        return;
    }
    size_t trips =
        loop_flat_trips(&ex->loop.flat, ex->batch.record + ex->batch.count, ex->batch.room - ex->batch.count);
    ex->batch.count += trips * ex->loop.flat.records;
    ex->position += trips * ex->loop.flat.instructions;
}

/* Expands as much of the open loop as fits into the batch. */
static void expander_run_loop(struct expander *ex)
{
    const struct item *item;

    while (ex->loop.is_open && ex->batch.count < BATCH && expander_may_repeat(ex))
        if (ex->loop.flat.trips > 0)
            expander_put_iterations(ex);
        else if (ex->loop.run.plan)
            expander_run_plan(ex);
        else if (!loop_flatten(&ex->loop.walk, ex->decoder.src, &ex->loop.flat))
            expander_put_loop_block(ex, &item);
}

/* Adds physical addresses and values to the records from `from` on, which are of one item. */
static int expander_add_extras(struct expander *ex, const struct item *item, size_t from, struct peet_err *err)
{
    const uint64_t *src = ex->decoder.src;

    for (size_t i = from; i < ex->batch.count && ex->batch.physical; i++)
        ex->batch.physical[i] = peet_is_reference(&ex->batch.record[i])
                                    ? expander_translate(ex, ex->batch.record[i].addr)
                                    : PEET_NO_PHYSICAL;
    if (!ex->batch.value_index)
        return 0;
    for (size_t i = from; i < ex->batch.count; i++)
        ex->batch.value_index[i] = PEET_NO_VALUE;
    if (!item || item->kind != ITEM_BLOCK)
        return 0;
    size_t at = from + 1;
    for (unsigned i = 0; i < item->block->operands; i++) {
        const struct peet_operand *o = &item->block->operand[i];
        uint64_t bytes = operand_bytes(o, src), words = (bytes + 7) / 8;
        if (o->value && bytes) {
            if (ex->batch.value_room - ex->batch.values < words) {
                size_t room = ex->batch.value_room * 2 + BATCH + words;
                uint64_t *value = realloc(ex->batch.value, room * sizeof *value);
                if (!value)
                    return err_set(err, PEET_ERR_MEMORY, "no memory for values");
                ex->batch.value = value;
                ex->batch.value_room = room;
            }
            ex->batch.value_index[at] = (uint32_t)ex->batch.values;
            memcpy(ex->batch.value + ex->batch.values, src + o->value, words * sizeof *src);
            ex->batch.values += words;
        }
        at += (bytes + PEET_MAX_SIZE - 1) / PEET_MAX_SIZE;
    }
    return 0;
}

/* While seeking: drops records that end before the instruction sought. */
static void expander_skip(struct expander *ex, uint64_t before)
{
    bool wanted = ex->position > ex->seek.to || (before >= ex->seek.to && ex->batch.count > 0);

    ex->batch.position = before;
    if (wanted)
        ex->seek.is_on = false;
    else
        ex->batch.count = ex->batch.events = ex->batch.loops = ex->batch.values = 0;
}

/* Expands an item, or a block of a loop: 1, or 0 at the end of the chunk, or an error. */
static int expander_step(struct expander *ex, struct peet_err *err)
{
    size_t from = ex->batch.count;
    uint64_t before = ex->position;
    const struct item *item = NULL;
    int r = 0;

    if (ex->loop.is_open) {
        expander_put_loop_block(ex, &item);
    } else {
        const struct item_state *x = expander_next_item(ex, ex->fed.is_on);
        if (!x)
            return 0;
        item = x->item;
        r = expander_put_special(ex, item, err);
    }
    if (r == 0 && (ex->batch.physical || ex->batch.value_index))
        r = expander_add_extras(ex, item, from, err);
    if (r < 0)
        return r;
    if (ex->seek.is_on)
        expander_skip(ex, before);
    return 1;
}

/* Expands blocks with constant numbers of references, and the first other item after them. Returns as expander_step does. */
static inline __attribute__((always_inline)) int expander_run(struct expander *ex, bool is_fed, struct peet_err *err)
{
    struct peet_record *r = ex->batch.record + ex->batch.count, *full = ex->batch.record + BATCH;
    uint64_t *src = ex->decoder.src, instructions = 0, last = 0; /* where the last block stands */
    const struct item_state *x = NULL;
    unsigned special = 0;

    while (r < full && (x = expander_next_item(ex, is_fed))) {
        special = x->special;
        if (special & SPECIAL_OTHER)
            break;
        if (special & SPECIAL_MACHINE)
            block_compute(x->item->block, src);
        struct peet_record *from = r;
        r = records_put(r, &x->head, x->plan, x->operands, x->indexed, src);
        uint64_t row = is_fed && !special && expander_may_row(ex, x, last) ? expander_put_row(ex, x, from) : 0;
        last = x->head.addr;
        if (row) {
            r = from + 1;
            instructions += row;
            if (!expander_may_repeat(ex))
                break;
            continue;
        }
        instructions += x->head.size;
        if (special & SPECIAL_STATE)
            block_effects(x->item->block, src);
    }
    ex->batch.count = (size_t)(r - ex->batch.record);
    ex->position += instructions;
    if (!x)
        return 0;
    int e = special & SPECIAL_OTHER ? expander_put_special(ex, x->item, err) : 0;
    return e < 0 ? e : 1;
}

int expander_fill(struct expander *ex, struct peet_err *err)
{
    bool plain = !ex->batch.physical && !ex->batch.value_index;
    int r = 1;

    while (r == 1 && ex->batch.count < BATCH && ex->batch.events < BATCH_EVENTS && ex->batch.loops < BATCH_LOOPS
           && expander_may_repeat(ex)) {
        if (!plain || ex->seek.is_on)
            r = expander_step(ex, err);
        else if (ex->loop.is_open)
            expander_run_loop(ex);
        else
            r = ex->fed.is_on ? expander_run(ex, true, err) : expander_run(ex, false, err);
    }
    return r;
}
