/* SPDX-License-Identifier: MIT */
/* Trips of a repeat: those that end before the next window are passed over at once, and the others expanded. */
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

/* Some trips of a repeat whose references nobody will see. Steps that are shorter than a line leave none out. */
static int touch_trips(struct sampler *s, uint32_t process, const struct lane *l, uint64_t trips, struct peet_err *err)
{
    const struct peet_repeat *n = l->repeat;

    for (size_t i = 0; i < n->count; i++) {
        const struct peet_record *r = &n->records[i];
        if (!peet_is_reference(r))
            continue;
        uint64_t first = r->addr + l->trip * n->step[i], step = n->step[i], length = (trips - 1) * step;
        int e = 0;
        if (step >> 63) { /* backwards */
            first += length;
            step = -step;
            length = -length;
        }
        if (step <= s->config.line_bytes)
            e = sample_touch(s, process, first, length + r->size, err);
        else
            for (uint64_t k = 0; k < trips && e == 0; k++)
                e = sample_touch(s, process, first + k * step, r->size, err);
        if (e < 0)
            return e;
    }
    return 0;
}

/* As many trips as end before the next window, at once. */
static int skip_trips(struct sampler *s, uint32_t context, struct lane *l, struct peet_err *err)
{
    uint64_t references = references_of(l->repeat), left = l->repeat->times - l->trip, trips = left;

    if (l->is_on || l->now >= l->from)
        return 0;
    if (references > 0)
        trips = (l->from - l->now) / references;
    trips = trips < left ? trips : left;
    if (trips == 0)
        return 0;
    for (size_t i = 0; s->passed && i < l->repeat->count; i++)
        if (l->repeat->records[i].kind == PEET_BLOCK)
            s->passed(s->user, context, &l->repeat->records[i]);
    int e = touch_trips(s, s->source.thread[context].process, l, trips, err);
    l->gap_instructions += trips * instructions_of(l->repeat);
    l->gap_references += trips * references;
    l->has_gap = true;
    l->now += trips * references;
    l->trip += trips;
    return e;
}

static int expand_trips(struct lane *l, struct peet_err *err)
{
    const struct peet_repeat *n = l->repeat;
    uint64_t left = n->times - l->trip, trips = n->count < SAMPLE_ROOM ? SAMPLE_ROOM / n->count : 1;

    if (n->count > l->expanded_room || !l->expanded) {
        size_t room = n->count > SAMPLE_ROOM ? n->count : SAMPLE_ROOM;
        struct peet_record *more = realloc(l->expanded, room * sizeof *more);
        if (!more)
            return sample_no_memory(err);
        l->expanded = more;
        l->expanded_room = room;
    }
    trips = trips < left ? trips : left;
    struct peet_record *to = l->expanded;
    for (uint64_t end = l->trip + trips; l->trip < end; l->trip++)
        for (size_t i = 0; i < n->count; i++) {
            *to = n->records[i];
            to++->addr += l->trip * n->step[i];
        }
    l->part = l->raw;
    l->part.records = l->expanded;
    l->part.count = (size_t)(to - l->expanded);
    l->at = 0;
    return 1;
}

int sample_refill_from_repeat(struct sampler *s, uint32_t context, struct lane *l, struct peet_err *err)
{
    if (!l->repeat)
        return 0;
    int e = skip_trips(s, context, l, err);
    if (e < 0)
        return e;
    if (l->trip < l->repeat->times)
        return expand_trips(l, err);
    l->repeat = NULL;
    return 0;
}
