/* SPDX-License-Identifier: MIT */
#include "format/read/word_reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "format/codec/item_state.h"
#include "format/read/stream_reader.h"

enum { WORDS = 1 << 14 }; /* returned at a time, at least, unless the chunk ends; up to an item more */

/* Decodes a recorded thread into event words. */
struct word_reader {
    struct stream_reader reader;
    struct decoder decoder;
    struct chunk_ref chunk;             /* the one that is being decoded */
    bool is_open;                       /* a chunk is being decoded */
    uint64_t position;                  /* instructions of the thread before the next item */
    uint64_t registers[PEET_REGISTERS]; /* trace registers before the chunk */
    struct peet_err damage;             /* to be returned after the words before the damage; code 0: none */
    uint64_t word[WORDS + PEET_SLOTS + SLOT_PAD + 1];
};

int word_reader_open(struct peet_trace *t, uint32_t thread, struct word_reader **ret, struct peet_err *err)
{
    const struct thread_index *x = trace_thread(t, thread);
    struct word_reader *r = calloc(1, sizeof *r);

    if (!r)
        return err_set(err, PEET_ERR_MEMORY, "no memory for a reader of event words");
    int code = x ? stream_reader_init(&r->reader, t, thread, x, err)
                 : err_set(err, PEET_ERR_USAGE, "%s: there is no thread %" PRIu32, t->path, thread);
    if (code == 0)
        code = decoder_init(&r->decoder, t->schema, err);
    if (code < 0) {
        word_reader_free(r);
        return code;
    }
    *ret = r;
    return 0;
}

void word_reader_free(struct word_reader *r)
{
    if (!r)
        return;
    stream_reader_release(&r->reader);
    decoder_release(&r->decoder);
    free(r);
}

/* ---- chunks ---- */

static int word_reader_open_chunk(struct word_reader *r, struct peet_err *err)
{
    int code = stream_reader_next(&r->reader, &r->chunk, &r->decoder, &r->position, err);

    if (code <= 0)
        return code;
    memcpy(r->registers, r->decoder.src + PEET_SRC_REGISTER, sizeof r->registers);
    r->is_open = true;
    return 1;
}

/* Sets `damage`; the rest of the chunk is left out. */
static int word_reader_damaged(struct word_reader *r, const char *what)
{
    r->is_open = false;
    return chunk_damaged(r->reader.trace, &r->chunk, what, &r->damage);
}

static uint64_t word_reader_chunk_end(const struct word_reader *r)
{
    return r->chunk.header.first + r->chunk.header.instructions;
}

/* The decoder has no more items: checks that it has used all of the chunk. */
static void word_reader_close_chunk(struct word_reader *r)
{
    const struct decoder *d = &r->decoder;

    if (d->fault)
        word_reader_damaged(r, d->fault);
    else if (r->position != word_reader_chunk_end(r) || d->in_planes || d->residual != d->residual_end)
        word_reader_damaged(r, "it holds more or less than its header says");
    r->is_open = false;
}

/* ---- items ---- */

/* Counts the instructions of a loop. */
static int word_reader_count_loop(struct word_reader *r, const struct item *item)
{
    uint64_t insns, references, end = word_reader_chunk_end(r);

    if (!loop_item_totals(r->decoder.schema, item, r->decoder.src + PEET_SRC_SLOT, &insns, &references)
        || r->position + insns < r->position || r->position + insns > end)
        return word_reader_damaged(r, "a loop has more trips than the chunk has instructions");
    r->position += insns;
    return 0;
}

/* A block with operands whose sizes vary. */
static int word_reader_varying(struct word_reader *r, const struct item *item)
{
    const struct peet_block *b = item->block;
    uint64_t *src = r->decoder.src;

    block_compute(b, src);
    for (unsigned i = 0; i < b->operands; i++)
        if (operand_bytes(&b->operand[i], src) >= OPERAND_MAX_BYTES)
            return word_reader_damaged(r, "an operand of 4 GiB or more");
    block_effects(b, src);
    r->position += item->insns;
    return 1;
}

/* An item with SPECIAL_OTHER: 1, 0: it is left out, or the error in `damage`. */
static int word_reader_other(struct word_reader *r, const struct item *item)
{
    uint64_t *src = r->decoder.src;

    if (!item)
        return word_reader_damaged(r, "it executes an item that is not defined");
    if (item->kind == ITEM_BLOCK)
        return word_reader_varying(r, item);
    if (item->kind == ITEM_LOOP) {
        int code = word_reader_count_loop(r, item);
        return code < 0 ? code : 1;
    }
    if (item->event->kind >= PEET_EVENT_KINDS)
        return 0;
    if (item->event->kind != PEET_EV_set_register)
        return 1;
    if (src[PEET_SRC_SLOT] >= PEET_REGISTERS)
        return word_reader_damaged(r, "it sets a register that there is not");
    src[PEET_SRC_REGISTER + src[PEET_SRC_SLOT]] = src[PEET_SRC_SLOT + 1];
    return 1;
}

/* A block follows its registers, on which sizes of later operands may depend. */
static inline void word_reader_block(struct word_reader *r, const struct item_state *x)
{
    if (x->special & SPECIAL_MACHINE) {
        block_compute(x->item->block, r->decoder.src);
        block_effects(x->item->block, r->decoder.src);
    }
    r->position += x->head.size;
}

/* Decodes items of the chunk into words until there are enough, or up to the chunk's end, which closes it. */
static void word_reader_fill(struct word_reader *r, uint64_t **end)
{
    uint64_t *word = r->word, *full = r->word + WORDS;
    const struct item_state *x = NULL;
    int code = 1;

    while (word < full && (x = decoder_next(&r->decoder))) {
        if (!(x->special & SPECIAL_OTHER))
            word_reader_block(r, x);
        else if ((code = word_reader_other(r, x->item)) < 0)
            break;
        else if (code == 0)
            continue;
        *word++ = x->number;
        for (uint32_t i = 0; i < x->padded; i += SLOT_PAD) {
            *(slot_pair *)(word + i) = *(const slot_pair *)(x->word + i);
            *(slot_pair *)(word + i + 2) = *(const slot_pair *)(x->word + i + 2);
        }
        word += x->slots;
    }
    *end = word;
    if (!x)
        word_reader_close_chunk(r);
}

int word_reader_next(struct word_reader *r, struct read_words *ret, struct peet_err *err)
{
    *ret = (struct read_words){ .word = r->word, .end = r->word };
    while (ret->end == ret->word) {
        if (r->damage.code) {
            *err = r->damage;
            r->damage.code = 0;
            return err->code;
        }
        if (!r->is_open) {
            int code = word_reader_open_chunk(r, err);
            if (code <= 0)
                return code;
            ret->registers = r->registers;
        }
        word_reader_fill(r, &ret->end);
    }
    return 1;
}
