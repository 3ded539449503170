/* SPDX-License-Identifier: MIT */
/* Reading a stream: from chunks to items, from items to batches of records.
 *
 * The common case is a block whose operands are sums of sources: decode its slots, add them up, write the records. What
 * is rarer (events, loops, registers, operands of varying size) is marked `special` in its context and goes elsewhere. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/map.h"
#include "format/codec.h"
#include "format/loop.h"
#include "format/trace.h"

enum { PAGE_BITS = 12, BATCH = 1024, BATCH_EVENTS = 1024, BATCH_LOOPS = 64 };

struct peet_cursor {
    struct peet_trace *trace;
    uint32_t only; /* this thread, or PEET_ALL_THREADS */
    unsigned want;
    size_t next, end;       /* chunks still to come; numbers in trace->chunk, or in trace->by_offset for all */
    uint64_t expected;      /* sequence of the next chunk */
    bool open;              /* a chunk is being decoded */
    struct chunk_ref chunk; /* which */
    struct decoder decoder;
    struct unpacker *unpacker;
    struct buf payload, planes;
    uint64_t position;
    uint64_t skip_to; /* seeking: items that end before this instruction are not handed out */
    bool skipping;
    uint64_t batch_position;

    struct peet_record *record;
    size_t count, room;
    struct peet_event event[BATCH_EVENTS];
    size_t events;
    struct peet_loop_run loop[BATCH_LOOPS];
    size_t loops;
    uint64_t loop_words[BATCH_LOOPS][PEET_SLOTS];
    bool in_loop; /* a loop is being expanded */
    struct peet_loop_walk walk;
    struct flat_loop flat; /* trips that were taken out of the walk */
    struct map pages;      /* from virtual to physical page numbers, as this chunk has said */
    uint64_t *physical;
    uint32_t *value_index;
    size_t extra_room;
    uint64_t *value;
    size_t values, value_room;
    uint64_t registers[PEET_REGISTERS]; /* before the item that peet_cursor_item handed out */
    uint64_t item_position;
};

/* ---- opening ---- */

static int reserve(struct peet_cursor *c, size_t more, struct peet_err *err)
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

int peet_cursor_open(struct peet_trace *t, uint32_t thread, unsigned want, struct peet_cursor **ret,
                     struct peet_err *err)
{
    const struct thread_index *x = thread == PEET_ALL_THREADS ? NULL : trace_thread(t, thread);

    if (thread != PEET_ALL_THREADS && t->is_pipe)
        return err_set(err, PEET_ERR_USAGE,
                       "%s: threads cannot be read one by one from a pipe; save it in a file first", t->path);
    if (thread != PEET_ALL_THREADS && !x)
        return err_set(err, PEET_ERR_USAGE, "%s: there is no thread %" PRIu32, t->path, thread);
    struct peet_cursor *c = calloc(1, sizeof *c);
    if (!c || !(c->unpacker = unpacker_new())) {
        free(c);
        return err_set(err, PEET_ERR_MEMORY, "no memory for a cursor");
    }
    c->trace = t;
    c->only = thread;
    c->want = want;
    c->pages.value_size = sizeof(uint64_t);
    c->next = x ? x->first : 0;
    c->end = x ? x->first + x->count : t->chunks;
    int r = decoder_init(&c->decoder, t->schema, err);
    if (r == 0)
        r = reserve(c, 1, err);
    if (r < 0) {
        peet_cursor_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

void peet_cursor_free(struct peet_cursor *c)
{
    if (!c)
        return;
    decoder_release(&c->decoder);
    unpacker_free(c->unpacker);
    buf_release(&c->payload);
    buf_release(&c->planes);
    map_release(&c->pages);
    free(c->record);
    free(c->physical);
    free(c->value_index);
    free(c->value);
    free(c);
}

/* ---- chunks ---- */

static int damaged(const struct peet_cursor *c, const char *what, struct peet_err *err)
{
    return err_set(err, PEET_ERR_DAMAGED,
                   "%s: thread %" PRIu32 ": instructions %" PRIu64 " to %" PRIu64 " (chunk at byte %" PRIu64 "): %s",
                   c->trace->path, c->chunk.header.thread, c->chunk.header.first,
                   c->chunk.header.first + c->chunk.header.instructions, c->chunk.offset, what);
}

/* The chunk at hand cannot be read, for the reason in err: the cursor stands behind it. */
static int lost(struct peet_cursor *c, struct peet_err *err)
{
    struct peet_err why = *err;

    c->position = c->chunk.header.first + c->chunk.header.instructions;
    return why.code == PEET_ERR_DAMAGED ? damaged(c, why.text, err) : why.code;
}

/* Registers and planes out of the payload, and the decoder set on them. */
static int unpack(struct peet_cursor *c, struct peet_err *err)
{
    struct window w = { c->payload.data, c->payload.data + c->payload.size, 0 };
    const uint8_t *plane[PLANES];
    struct part part[PLANES];
    size_t size[PLANES];
    uint64_t items = window_leb(&w), used = window_leb(&w);

    for (int i = 0; i < PEET_REGISTERS; i++)
        c->decoder.src[PEET_SRC_REGISTER + i] = used >> i & 1 ? window_leb(&w) : 0;
    c->planes.size = 0;
    for (int i = 0; i < PLANES; i++) {
        int r = unpacker_part(c->unpacker, &w, PACK_MAX_PLANE, &c->planes, &part[i], err);
        if (r < 0)
            return r;
    }
    for (int i = 0; i < PLANES; i++) {
        plane[i] = part[i].raw ? part[i].raw : c->planes.data + part[i].at;
        size[i] = part[i].n;
    }
    if (w.bad || used >> PEET_REGISTERS)
        return err_set(err, PEET_ERR_DAMAGED, "its head makes no sense");
    return decoder_begin(&c->decoder, items, plane, size, err);
}

/* Chooses and loads the next chunk: 1, 0 at the end, or an error. */
static int load_next(struct peet_cursor *c, struct peet_err *err)
{
    const struct peet_trace *t = c->trace;

    if (t->is_pipe)
        return trace_pipe_next(c->trace, &c->chunk, &c->payload, err);
    if (c->next == c->end)
        return 0;
    const struct chunk_ref *r = &t->chunk[c->only == PEET_ALL_THREADS ? t->by_offset[c->next] : c->next];
    if (c->only != PEET_ALL_THREADS && r->header.sequence != c->expected) {
        uint64_t from = c->position, missing = r->header.sequence - c->expected;
        c->expected = r->header.sequence; /* said once; the next call goes on */
        return err_set(err, PEET_ERR_DAMAGED,
                       "%s: thread %" PRIu32 ": %" PRIu64 " chunks are missing: instructions %" PRIu64 " to %" PRIu64,
                       t->path, c->only, missing, from, r->header.first);
    }
    c->chunk = *r;
    c->next++;
    c->expected++;
    int e = trace_load(t, &c->chunk, &c->payload, err);
    return e < 0 ? lost(c, err) : 1;
}

static int open_chunk(struct peet_cursor *c, struct peet_err *err)
{
    int r = load_next(c, err);

    if (r <= 0)
        return r;
    c->position = c->chunk.header.first;
    if (unpack(c, err) < 0)
        return lost(c, err);
    map_clear(&c->pages);
    c->open = true;
    return 1;
}

/* The decoder has no more items; was that as it should be? */
static int close_chunk(struct peet_cursor *c, struct peet_err *err)
{
    const struct decoder *d = &c->decoder;
    uint64_t end = c->chunk.header.first + c->chunk.header.instructions, at = c->position;

    c->open = c->in_loop = false;
    c->position = end;
    if (d->fault)
        return damaged(c, d->fault, err);
    if (at != end || d->in_planes || d->difference != d->difference_end)
        return damaged(c, "it holds more or less than its header says", err);
    return 0;
}

/* ---- expansion ---- */

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
        return damaged(c, "an operand of 4 GiB or more", err);
    struct peet_record piece = *whole; /* which reserve may move */
    int r = reserve(c, bytes / PEET_MAX_SIZE + 1 + more, err);
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

static int put_loop(struct peet_cursor *c, const struct item *item, struct peet_err *err)
{
    const uint64_t *slot = c->decoder.src + PEET_SRC_SLOT;
    uint64_t insns, references;
    struct peet_loop_run run = { item->loop, slot, slot + item->loop->values };

    if (!loop_totals(c->decoder.schema, item->loop, run.count, &insns, &references) || c->position + insns < c->position
        || c->position + insns > c->chunk.header.first + c->chunk.header.instructions)
        return damaged(c, "a loop has more trips than the chunk has instructions", err);
    if (!(c->want & PEET_WANT_LOOPS)) {
        c->in_loop = true;
        peet_loop_walk_init(&c->walk, c->trace, &run);
        c->flat.trips = 0;
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

static int put_special(struct peet_cursor *c, const struct item *item, struct peet_err *err)
{
    uint64_t *src = c->decoder.src;
    int r = 0;

    if (!item)
        return damaged(c, "it executes an item that is not defined", err);
    if (item->kind == ITEM_LOOP)
        return put_loop(c, item, err);
    if (item->kind == ITEM_EVENT) {
        if (item->event->kind >= PEET_EVENT_KINDS)
            return 0; /* of a later version: its definition has been told */
        if (item->event->kind != PEET_EV_set_register)
            return put_event(c, item, err);
        if (src[PEET_SRC_SLOT] >= PEET_REGISTERS)
            return damaged(c, "it sets a register that there is not", err);
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

/* As much of the loop as goes into the batch, at full speed. */
static void run_loop(struct peet_cursor *c)
{
    const struct item *item;

    while (c->in_loop && c->count < BATCH) {
        if (c->flat.trips > 0 || loop_flatten(&c->walk, c->decoder.src, &c->flat)) {
            size_t trips = loop_flat_trips(&c->flat, c->record + c->count, c->room - c->count);
            c->count += trips * c->flat.records;
            c->position += trips * c->flat.instructions;
        } else {
            put_loop_block(c, &item);
        }
    }
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
        const struct context *x = decoder_next(&c->decoder);
        if (!x)
            return 0;
        item = x->item;
        r = put_special(c, item, err);
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
static int run(struct peet_cursor *c, struct peet_err *err)
{
    struct peet_record *r = c->record + c->count, *full = c->record + BATCH;
    uint64_t *src = c->decoder.src, instructions = 0;
    const struct context *x = NULL;
    unsigned special = 0;

    while (r < full && (x = decoder_next(&c->decoder))) {
        special = x->special;
        if (special & SPECIAL_OTHER)
            break;
        if (special & SPECIAL_MACHINE)
            block_compute(x->item->block, src);
        r = put_records(r, &x->head, x->plan, x->operands, x->indexed, src);
        instructions += x->head.size;
        if (special & SPECIAL_STATE)
            block_effects(x->item->block, src);
    }
    c->count = (size_t)(r - c->record);
    c->position += instructions;
    if (!x)
        return 0;
    int e = special & SPECIAL_OTHER ? put_special(c, x->item, err) : 0;
    return e < 0 ? e : 1;
}

/* Fills the batch: 1 when it is full, 0 when the chunk is at its end. */
static int fill(struct peet_cursor *c, struct peet_err *err)
{
    bool plain = !c->physical && !c->value_index;
    int r = 1;

    while (r == 1 && c->count < BATCH && c->events < BATCH_EVENTS && c->loops < BATCH_LOOPS) {
        if (!plain || c->skipping)
            r = step(c, err);
        else if (c->in_loop)
            run_loop(c);
        else
            r = run(c, err);
    }
    return r;
}

int peet_cursor_next(struct peet_cursor *c, struct peet_batch *batch, struct peet_err *err)
{
    struct peet_err own;
    int r;

    err = err ? err : &own;
    do {
        if (!c->open && (r = open_chunk(c, err)) <= 0)
            return r;
        c->batch_position = c->position;
        c->count = c->events = c->loops = c->values = 0;
        r = fill(c, err);
        if (r == 0)
            r = close_chunk(c, err);
        else if (r < 0)
            c->open = c->in_loop = false;
        if (r < 0)
            return r;
        *batch = (struct peet_batch){
            .count = c->count,
            .records = c->record,
            .events = c->event,
            .loops = c->loop,
            .physical = c->physical,
            .values = c->value,
            .value_index = c->value_index,
            .thread = c->chunk.header.thread,
            .position = c->batch_position,
        };
    } while (c->count == 0);
    return 1;
}

/* ---- seeking ---- */

int peet_cursor_seek(struct peet_cursor *c, uint64_t n, struct peet_err *err)
{
    const struct peet_trace *t = c->trace;
    const struct thread_index *x = trace_thread(t, c->only);

    if (c->only == PEET_ALL_THREADS || t->is_pipe)
        return err_set(err, PEET_ERR_USAGE, "%s: only a cursor of one thread of a file can be set to a place", t->path);
    size_t low = x->first, high = x->first + x->count;
    while (low < high) { /* the first chunk that ends behind n */
        size_t middle = (low + high) / 2;
        if (t->chunk[middle].header.first + t->chunk[middle].header.instructions <= n)
            low = middle + 1;
        else
            high = middle;
    }
    /* Chunks that hold events only may end at n and belong to what is behind it. */
    while (low > x->first && t->chunk[low - 1].header.first >= n)
        low--;
    c->open = c->in_loop = false;
    c->next = low;
    c->expected = low < c->end ? t->chunk[low].header.sequence : 0;
    c->position = low < c->end ? t->chunk[low].header.first : c->position;
    c->skip_to = n;
    c->skipping = n > 0;
    return 0;
}

/* ---- items ---- */

int peet_cursor_item(struct peet_cursor *c, uint32_t *ret_item, const uint64_t **ret_slots, struct peet_err *err)
{
    struct decoder *d = &c->decoder;
    struct peet_err own;
    int r;

    err = err ? err : &own;
    for (;;) {
        if (!c->open && (r = open_chunk(c, err)) <= 0)
            return r;
        memcpy(c->registers, d->src + PEET_SRC_REGISTER, sizeof c->registers);
        const struct context *x = decoder_next(d);
        if (!x) {
            if ((r = close_chunk(c, err)) < 0)
                return r;
            continue;
        }
        c->item_position = c->position;
        c->count = c->events = c->loops = c->values = 0;
        unsigned want = c->want;
        c->want |= PEET_WANT_LOOPS; /* counted, not expanded */
        r = x->special ? put_special(c, x->item, err) : 0;
        c->want = want;
        if (r < 0) {
            c->open = false;
            return r;
        }
        if (!x->special)
            c->position += x->item->insns;
        if (c->skipping && (c->position > c->skip_to || c->item_position >= c->skip_to))
            c->skipping = false;
        if (c->skipping || (x->item->kind == ITEM_EVENT && x->item->event->kind >= PEET_EVENT_KINDS))
            continue;
        *ret_item = (uint32_t)x->number;
        *ret_slots = x->word;
        return 1;
    }
}

const uint64_t *peet_cursor_registers(const struct peet_cursor *c)
{
    return c->registers;
}

uint32_t peet_cursor_thread(const struct peet_cursor *c)
{
    return c->chunk.header.thread;
}

uint64_t peet_cursor_position(const struct peet_cursor *c)
{
    return c->item_position;
}
