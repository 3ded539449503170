/* SPDX-License-Identifier: MIT */
#include "format/file/chunk_builder.h"

#include <stdlib.h>

#include "base/err.h"
#include "format/file/writer.h"

int chunk_builder_init(struct peet_part *p, struct peet_writer *w, struct peet_err *err)
{
    *p = (struct peet_part){ .writer = w, .packer = packer_new(w->config.level) };
    if (!p->packer)
        return err_set(err, PEET_ERR_MEMORY, "no memory for a stream");
    int r = encoder_init(&p->encoder, w->builder.schema, w->config.chunk_words, err);
    if (r < 0)
        chunk_builder_release(p);
    return r;
}

void chunk_builder_release(struct peet_part *p)
{
    for (size_t i = 0; i < p->room; i++)
        buf_release(&p->chunk[i].payload);
    free(p->chunk);
    encoder_release(&p->encoder);
    packer_free(p->packer);
    *p = (struct peet_part){ 0 };
}

void chunk_builder_begin(struct peet_part *p, const uint64_t *registers)
{
    memcpy(p->encoder.src + PEET_SRC_REGISTER, registers, PEET_REGISTERS * sizeof *registers);
    encoder_next_chunk(&p->encoder);
    p->chunks = 0;
}

const uint64_t *chunk_builder_registers(const struct peet_part *p)
{
    return p->encoder.src + PEET_SRC_REGISTER;
}

/* ---- packing ---- */

/* Registers at the start, then the planes (docs/trace-format.md, section 5). */
static int chunk_builder_lay_out(struct peet_part *p, const struct encoded *x, struct buf *out, struct peet_err *err)
{
    const uint64_t *at_start = p->encoder.at_start;
    uint64_t used = 0;
    int r = 0;

    out->size = 0;
    for (int i = 0; i < PEET_REGISTERS; i++)
        used |= (uint64_t)(at_start[i] != 0) << i;
    buf_leb(out, x->items);
    buf_leb(out, used);
    for (int i = 0; i < PEET_REGISTERS; i++)
        if (used >> i & 1)
            buf_leb(out, at_start[i]);
    for (unsigned i = 0; r == 0 && i < PLANES; i++)
        r = packer_put(p->packer, i, x->plane[i], x->size[i], out, err);
    return r;
}

static struct built_chunk *chunk_builder_next(struct peet_part *p)
{
    if (p->chunks == p->room) {
        size_t room = p->room * 2 + 1;
        struct built_chunk *chunk = realloc(p->chunk, room * sizeof *chunk);
        if (!chunk)
            return NULL;
        memset(chunk + p->room, 0, (room - p->room) * sizeof *chunk);
        p->chunk = chunk;
        p->room = room;
    }
    return &p->chunk[p->chunks];
}

int chunk_builder_pack(struct peet_part *p, bool also_empty, struct peet_err *err)
{
    struct encoded x;

    if (p->encoder.words == 0 && !also_empty)
        return 0;
    struct built_chunk *c = chunk_builder_next(p);
    if (!c)
        return err_set(err, PEET_ERR_MEMORY, "no memory for a chunk");
    encoder_finish(&p->encoder, &x);
    int r = chunk_builder_lay_out(p, &x, &c->payload, err);
    if (r == 0) {
        c->header = (struct chunk_header){
            .type = CHUNK_STREAM, .instructions = x.instructions, .references = x.references, .events = x.events
        };
        p->chunks++;
    }
    encoder_next_chunk(&p->encoder);
    return r;
}

/* ---- parts (public) ---- */

int peet_part_new(struct peet_writer *w, struct peet_part **ret, struct peet_err *err)
{
    struct peet_err own;
    struct peet_part *p = malloc(sizeof *p);

    err = err ? err : &own;
    if (!p)
        return err_set(err, PEET_ERR_MEMORY, "no memory for a part of a stream");
    int r = chunk_builder_init(p, w, err);
    if (r < 0) {
        free(p);
        return r;
    }
    *ret = p;
    return 0;
}

void peet_part_free(struct peet_part *p)
{
    if (p)
        chunk_builder_release(p);
    free(p);
}

void peet_part_begin(struct peet_part *p, struct peet_stream *s, const uint64_t *registers)
{
    p->stream = s;
    chunk_builder_begin(p, registers);
}

int peet_part_put_named(struct peet_part *p, uint64_t *words, size_t count, const struct peet_names *names,
                        struct peet_err *err)
{
    struct peet_err own;
    int r;

    err = err ? err : &own;
    p->encoder.names = names;
    /* A full chunk is packed at the next call, so that the thread that puts the last words need not wait for the packer. */
    while (count > 0) {
        size_t used;
        if (atomic_load_explicit(&p->writer->failed, memory_order_relaxed))
            return writer_failed(p->writer, err);
        if (encoder_is_full(&p->encoder) && (r = chunk_builder_pack(p, false, err)) < 0)
            return writer_remember(p->writer, err);
        if ((r = encoder_put(&p->encoder, words, count, &used, err)) < 0)
            return stream_prefix(p->stream, err);
        words += used;
        count -= used;
    }
    return 0;
}

int peet_part_finish(struct peet_part *p, struct peet_err *err)
{
    struct peet_err own;

    err = err ? err : &own;
    return chunk_builder_pack(p, false, err) < 0 ? writer_remember(p->writer, err) : 0;
}

int peet_part_commit(struct peet_part *p, struct peet_err *err)
{
    struct peet_err own;
    int r = peet_part_finish(p, err = err ? err : &own);

    return r < 0 ? r : stream_append(p->stream, p, err);
}
