/* SPDX-License-Identifier: MIT */
/* Strided loops: iterations that end before the next window are left out at once, the others expanded. */
#include <stdlib.h>

#include "map/source/sampler.h"

int sample_touch(struct sampler *s, uint32_t process, uint64_t addr, uint64_t size, struct peet_err *err)
{
    uint64_t last = addr + (size ? size - 1 : 0);

    return touched_add(&s->touched, process, addr >> s->line_bits, last >> s->line_bits) < 0 ? sample_no_memory(err)
                                                                                             : 0;
}

static uint64_t references_of(const struct peet_repeat *r)
{
    uint64_t n = 0;

    for (size_t i = 0; i < r->count; i++)
        n += peet_is_reference(&r->records[i]) != 0;
    return n;
}

static uint64_t instructions_of(const struct peet_repeat *r)
{
    uint64_t n = 0;

    for (size_t i = 0; i < r->count; i++)
        n += r->records[i].kind == PEET_BLOCK ? r->records[i].size : 0;
    return n;
}

/* Notes the lines that iterations between windows refer to. Steps of at most a line touch all lines of a range. */
static int sample_touch_iterations(struct sampler *s, uint32_t process, const struct sampled_thread *l,
                                   uint64_t iterations, struct peet_err *err)
{
    const struct peet_repeat *n = l->repeat;

    for (size_t i = 0; i < n->count; i++) {
        const struct peet_record *r = &n->records[i];
        if (!peet_is_reference(r))
            continue;
        uint64_t first = r->addr + l->iteration * n->step[i], step = n->step[i], length = (iterations - 1) * step;
        int e = 0;
        if (step >> 63) { /* backwards */
            first += length;
            step = -step;
            length = -length;
        }
        if (step <= s->config.line_bytes)
            e = sample_touch(s, process, first, length + r->size, err);
        else
            for (uint64_t k = 0; k < iterations && e == 0; k++)
                e = sample_touch(s, process, first + k * step, r->size, err);
        if (e < 0)
            return e;
    }
    return 0;
}

/* Leaves out the iterations that end before the next window. */
static int sample_skip_iterations(struct sampler *s, uint32_t thread, struct sampled_thread *l, struct peet_err *err)
{
    uint64_t references = references_of(l->repeat), left = l->repeat->times - l->iteration, iterations = left;

    if (l->is_on || l->now >= l->window.from)
        return 0;
    if (references > 0)
        iterations = (l->window.from - l->now) / references;
    iterations = iterations < left ? iterations : left;
    if (iterations == 0)
        return 0;
    for (size_t i = 0; s->passed && i < l->repeat->count; i++)
        if (l->repeat->records[i].kind == PEET_BLOCK)
            s->passed(s->user, thread, &l->repeat->records[i]);
    int e = sample_touch_iterations(s, s->source.thread[thread].process, l, iterations, err);
    l->gap.instructions += iterations * instructions_of(l->repeat);
    l->gap.references += iterations * references;
    l->gap.is_pending = true;
    l->now += iterations * references;
    l->iteration += iterations;
    return e;
}

static int sample_expand_iterations(struct sampled_thread *l, struct peet_err *err)
{
    const struct peet_repeat *n = l->repeat;
    uint64_t left = n->times - l->iteration, iterations = n->count < SAMPLE_ROOM ? SAMPLE_ROOM / n->count : 1;

    if (n->count > l->buffer.expanded_room || !l->buffer.expanded) {
        size_t room = n->count > SAMPLE_ROOM ? n->count : SAMPLE_ROOM;
        struct peet_record *more = realloc(l->buffer.expanded, room * sizeof *more);
        if (!more)
            return sample_no_memory(err);
        l->buffer.expanded = more;
        l->buffer.expanded_room = room;
    }
    iterations = iterations < left ? iterations : left;
    struct peet_record *to = l->buffer.expanded;
    for (uint64_t end = l->iteration + iterations; l->iteration < end; l->iteration++)
        for (size_t i = 0; i < n->count; i++) {
            *to = n->records[i];
            to++->addr += l->iteration * n->step[i];
        }
    l->part = l->raw;
    l->part.records = l->buffer.expanded;
    l->part.count = (size_t)(to - l->buffer.expanded);
    l->at = 0;
    return 1;
}

int sample_refill_from_repeat(struct sampler *s, uint32_t thread, struct sampled_thread *l, struct peet_err *err)
{
    if (!l->repeat)
        return 0;
    int e = sample_skip_iterations(s, thread, l, err);
    if (e < 0)
        return e;
    if (l->iteration < l->repeat->times)
        return sample_expand_iterations(l, err);
    l->repeat = NULL;
    return 0;
}
