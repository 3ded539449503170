/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"
#include "format/contexts.h"

/* The most bytes that one item can add to each of the first four planes, apart from whole 255s of a long run. */
static const size_t PER_ITEM[4] = { 1, 1, 4, 8 };

int encoder_init(struct encoder *e, const struct schema *s, size_t chunk_words, struct peet_err *err)
{
    size_t words = chunk_words + PEET_SLOTS + 2;

    *e = (struct encoder){ .schema = s, .limit = chunk_words };
    if (contexts_init(&e->contexts) < 0)
        goto no_memory;
    for (int i = 0; i < 4; i++)
        if (!(e->room[i] = malloc(words * PER_ITEM[i] + words / 255 + 16)))
            goto no_memory;
    if (!(e->difference = malloc(words * sizeof *e->difference)))
        goto no_memory;
    encoder_next_chunk(e);
    return 0;
no_memory:
    encoder_release(e);
    return err_set(err, PEET_ERR_MEMORY, "no memory for a stream of %zu words a chunk", chunk_words);
}

void encoder_release(struct encoder *e)
{
    contexts_release(&e->contexts);
    for (int i = 0; i < 4; i++)
        free(e->room[i]);
    free(e->difference);
    *e = (struct encoder){ 0 };
}

void encoder_next_chunk(struct encoder *e)
{
    contexts_forget(&e->contexts);
    e->now = e->contexts.none;
    e->run = e->items = 0;
    e->words = 0;
    for (int i = 0; i < 4; i++)
        e->end[i] = e->room[i];
    e->difference_end = e->difference;
    e->instructions = e->references = e->events = 0;
    memcpy(e->at_start, e->src + PEET_SRC_REGISTER, sizeof e->at_start);
}

static void put_run(struct encoder *e)
{
    for (; e->run >= 255; e->run -= 255)
        *e->end[PLANE_RUNS]++ = 255;
    *e->end[PLANE_RUNS]++ = (uint8_t)e->run;
    e->run = 0;
}

/* The item or its misses are not as foreseen. */
static __attribute__((noinline)) void exception(struct encoder *e, struct context *c, uint64_t missed)
{
    struct context *from = e->now;
    unsigned rank = 0;

    while (rank < RANKS && from->next[rank] != c)
        rank++;
    put_run(e);
    *e->end[PLANE_TOKENS]++ = (uint8_t)(rank | (missed != c->missed ? TOKEN_MASK : 0));
    if (rank == TOKEN_NEW)
        e->end[PLANE_ITEMS] = leb_put(e->end[PLANE_ITEMS], c->number);
    if (missed != c->missed) {
        for (unsigned i = 0; i < c->slots; i += 8)
            *e->end[PLANE_MASKS]++ = (uint8_t)(missed >> i);
        c->missed = missed;
    }
    contexts_promote(from, c, rank);
}

/* The slots of a loop as they are to be written. */
static const uint64_t *loop_slots(struct encoder *e, const struct context *c, const uint64_t *slots)
{
    if (c->item->kind != ITEM_LOOP || !e->names || !e->names->loop)
        return slots;
    memcpy(e->changed, slots, c->slots * sizeof *slots);
    e->names->loop(e->names->context, c->name, e->changed);
    return e->changed;
}

/* What counting executions does not cover. The slots are not encoded yet, so that an error leaves the chunk whole. */
static int special(struct encoder *e, const struct context *c, const uint64_t *slots, struct peet_err *err)
{
    const struct item *item = c->item;
    uint64_t insns, references;

    if (!item)
        return err_set(err, PEET_ERR_USAGE, "no such item");
    if (item->kind == ITEM_LOOP) {
        if (!loop_totals(e->schema, item->loop, slots + item->loop->values, &insns, &references)
            || (e->instructions + insns) >> 62 || (e->references + references) >> 62)
            return err_set(err, PEET_ERR_LIMIT, "loop %" PRIu64 ": its trip counts multiply to more than 2^62",
                           c->number);
        e->instructions += insns;
        e->references += references;
        return 0;
    }
    if (item->kind == ITEM_EVENT) {
        if (slots[0] >= PEET_REGISTERS)
            return err_set(err, PEET_ERR_USAGE, "set_register: there is no register %" PRIu64, slots[0]);
        e->src[PEET_SRC_REGISTER + slots[0]] = slots[1];
        return 0;
    }
    if (item->block->computes == 0 && !item->dynamic) { /* all that most blocks do is to move the stack pointer */
        for (unsigned i = 0; i < item->block->effects; i++) {
            const struct peet_effect *f = &item->block->effect[i];
            uint64_t from = f->src < PEET_SRC_SLOT ? e->src[f->src] : slots[f->src - PEET_SRC_SLOT];
            e->src[PEET_SRC_REGISTER + f->reg] = from + (uint64_t)f->add;
        }
        return 0;
    }
    memcpy(e->src + PEET_SRC_SLOT, slots, c->slots * sizeof *slots);
    block_compute(item->block, e->src);
    if (item->dynamic) {
        int64_t n = block_references(item->block, e->src);
        if (n < 0)
            return err_set(err, PEET_ERR_LIMIT, "block %" PRIu64 ": an operand of 4 GiB or more; split it", c->number);
        e->references += (uint64_t)n;
    }
    block_effects(item->block, e->src);
    return 0;
}

/* The context of what a word says, which is not the likeliest successor. */
static __attribute__((noinline)) struct context *find(struct encoder *e, uint64_t name, struct peet_err *err)
{
    struct context *c = NULL;
    uint32_t number;

    for (unsigned rank = 1; rank < RANKS; rank++)
        if (e->now->next[rank]->name == name)
            return e->now->next[rank];
    if (!e->names)
        c = contexts_get(&e->contexts, e->schema, name);
    else if (e->names->item(e->names->context, name, &number, err) < 0)
        return NULL;
    else
        c = contexts_get(&e->contexts, e->schema, number);
    if (c)
        c->name = name;
    else
        err_set(err, PEET_ERR_USAGE, "item %" PRIu64 " is not defined", name);
    return c;
}

/* Whether all slots are where their strides take them. */
static inline bool is_foreseen(const struct context *c, const uint64_t *slots)
{
    const uint64_t *last = c->word, *stride = c->word + c->padded;
    uint64_t off = 0;

    for (uint32_t i = 0; i < c->slots; i++)
        off |= (slots[i] - last[i]) ^ stride[i];
    return off == 0;
}

/* Takes the slots of an execution: those that are not where their strides take them leave their differences at *out. Returns
 * their mask. */
static inline uint64_t take_slots(struct context *c, const uint64_t *slots, uint64_t **out)
{
    uint64_t *last = c->word, *stride = c->word + c->padded, before = c->missed, missed = 0, *o = *out;

    if (before == 0 && is_foreseen(c, slots)) { /* again */
        for (uint32_t i = 0; i < c->slots; i++)
            last[i] = slots[i];
        return 0;
    }
    for (uint32_t i = 0; i < c->slots; i++) {
        uint64_t by = slots[i] - last[i], miss = by != stride[i];
        last[i] = slots[i];
        *o = zigzag((int64_t)by);
        o += miss;
        missed |= miss << i;
        stride[i] = miss & (before >> i) ? by : stride[i];
    }
    *out = o;
    return missed;
}

/* How often, from p on and at most `most` times, c is executed again with every slot where its stride takes it: what loops
 * do. Its execution before stands in front of p. */
static size_t count_again(struct context *c, const uint64_t *p, const uint64_t *end, size_t most)
{
    const uint64_t *stride = c->word + c->padded;
    size_t words = c->slots + 1u, n = 0;

    if ((size_t)(end - p) / words < most)
        most = (size_t)(end - p) / words;
    for (; n < most && *p == c->name; n++, p += words) {
        uint64_t off = 0;
        for (size_t i = 0; i + 1 < words; i++)
            off |= (p[1 + i] - p[1 + i - words]) ^ stride[i];
        if (off)
            break;
    }
    if (n)
        memcpy(c->word, p - words + 1, (words - 1) * sizeof *p);
    return n;
}

int encoder_put(struct encoder *e, const uint64_t *words, size_t n, size_t *ret_used, struct peet_err *err)
{
    const uint64_t *p = words, *end = words + n;
    uint64_t *out = e->difference_end;
    int r = 0;

    while (p < end && e->words < e->limit) {
        struct context *c = e->now->next[0];
        if (c->name != *p && !(c = find(e, *p, err))) {
            r = err->code;
            break;
        }
        if ((size_t)(end - p) <= c->slots) {
            r = err_set(err, PEET_ERR_USAGE, "item %" PRIu64 " has %u slots, %zd words are left", *p, c->slots,
                        end - p - 1);
            break;
        }
        const uint64_t *slots = p + 1;
        if (c->special & SPECIAL_STATE) {
            slots = c->item ? loop_slots(e, c, slots) : slots;
            if ((r = special(e, c, slots, err)) < 0)
                break;
        }
        uint64_t before = c->missed, missed = take_slots(c, slots, &out);
        c->executions++;
        if (c == e->now->next[0] && missed == before)
            e->run++;
        else
            exception(e, c, missed);
        e->now = c;
        e->items++;
        p += c->slots + 1;
        e->words += c->slots + 1;
        if (c->next[0] == c && c->missed == 0 && !(c->special & SPECIAL_STATE) && e->words < e->limit) {
            size_t again = count_again(c, p, end, (e->limit - e->words - 1) / (c->slots + 1) + 1);
            e->run += again;
            e->items += again;
            c->executions += again;
            p += again * (c->slots + 1);
            e->words += again * (c->slots + 1);
        }
    }
    e->difference_end = out;
    *ret_used = (size_t)(p - words);
    return r;
}

/* Spreads the differences over their planes. */
static void split(const struct encoder *e, uint8_t *base, struct encoded *ret)
{
    size_t n = (size_t)(e->difference_end - e->difference);
    uint8_t *classes = base, *b0 = classes + (n + 3) / 4, *b1 = b0 + n, *b2 = b1 + n, *b3 = b2 + n, *high = b3 + n;
    uint8_t *p2 = b2, *p3 = b3, *p4 = high;

    memset(classes, 0, (n + 3) / 4);
    for (size_t i = 0; i < n; i++) {
        uint64_t v = e->difference[i];
        unsigned more2 = v >> 16 != 0, more3 = v >> 24 != 0, more4 = v >> 32 != 0;
        classes[i / 4] |= (uint8_t)((more2 + more3 + more4) << i % 4 * 2);
        b0[i] = (uint8_t)v;
        b1[i] = (uint8_t)(v >> 8);
        *p2 = (uint8_t)(v >> 16);
        p2 += more2;
        *p3 = (uint8_t)(v >> 24);
        p3 += more3;
        put_le32(p4, (uint32_t)(v >> 32));
        p4 += 4 * more4;
    }
    const uint8_t *start[] = { classes, b0, b1, b2, b3, high }, *end[] = { b0, b1, b2, p2, p3, p4 };
    for (int i = 0; i < 6; i++) {
        ret->plane[PLANE_CLASSES + i] = start[i];
        ret->size[PLANE_CLASSES + i] = (size_t)(end[i] - start[i]);
    }
}

int encoder_finish(struct encoder *e, struct buf *scratch, struct encoded *ret, struct peet_err *err)
{
    size_t n = (size_t)(e->difference_end - e->difference);

    scratch->size = 0;
    if (!buf_room(scratch, (n + 3) / 4 + 8 * n + 16))
        return err_set(err, PEET_ERR_MEMORY, "no memory to lay out a chunk of %zu words", e->words);
    put_run(e);
    *ret = (struct encoded){ .items = e->items, .instructions = e->instructions, .references = e->references };
    for (int i = 0; i < 4; i++) {
        ret->plane[i] = e->room[i];
        ret->size[i] = (size_t)(e->end[i] - e->room[i]);
    }
    split(e, scratch->data, ret);
    for (size_t i = 0; i < e->contexts.used_count; i++) {
        const struct context *c = e->contexts.used[i];
        ret->instructions += c->executions * c->item->insns;
        ret->references += c->item->dynamic ? 0 : c->executions * c->item->references;
        ret->events += c->item->kind == ITEM_EVENT && !(c->special & SPECIAL_STATE)
                           ? c->executions
                           : 0; /* set_register is for the decoder */
    }
    return 0;
}
