/* SPDX-License-Identifier: MIT */
/* Set sampling: copies references to observed sets. A reference to several lines, or a range that library code moves, is cut to the pieces in observed
 * sets. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "map/source/sampler.h"

unsigned sample_ranges(const struct peet_event *e, struct sample_range ret[2])
{
    switch (e->kind) {
    case PEET_EV_range_read: ret[0] = (struct sample_range){ e->arg[0], e->arg[1], false }; return 1;
    case PEET_EV_range_write: ret[0] = (struct sample_range){ e->arg[0], e->arg[1], true }; return 1;
    case PEET_EV_range_copy:
        ret[0] = (struct sample_range){ e->arg[1], e->arg[2], false };
        ret[1] = (struct sample_range){ e->arg[0], e->arg[2], true };
        return 2;
    case PEET_EV_range_compare:
        ret[0] = (struct sample_range){ e->arg[0], e->arg[2], false };
        ret[1] = (struct sample_range){ e->arg[1], e->arg[2], false };
        return 2;
    default: return 0;
    }
}

uint64_t sample_lines(const struct sampler *s, const struct sample_range *r)
{
    return r->size ? ((r->addr + r->size - 1) >> s->line_bits) - (r->addr >> s->line_bits) + 1 : 0;
}

uint64_t sample_range_references(const struct sampler *s, const struct peet_event *e)
{
    struct sample_range r[2];
    uint64_t n = 0;

    for (unsigned i = 0, count = sample_ranges(e, r); i < count; i++)
        n += sample_lines(s, &r[i]);
    return n;
}

static int put_record(struct sampled_thread *l, size_t n, const struct peet_record *r, struct peet_err *err)
{
    if (n >= l->buffer.copy_room) {
        size_t room = l->buffer.copy_room ? 2 * l->buffer.copy_room : SAMPLE_ROOM;
        struct peet_record *more = realloc(l->buffer.copy, room * sizeof *more);
        if (!more)
            return sample_no_memory(err);
        l->buffer.copy = more;
        l->buffer.copy_room = room;
    }
    l->buffer.copy[n] = *r;
    return 0;
}

static int put_event(struct sampled_thread *l, size_t *n, const struct peet_event *e, struct peet_err *err)
{
    struct peet_record r = { .addr = e->arg[0], .id = (uint32_t)l->buffer.events, .kind = PEET_EVENT };

    if (l->buffer.events >= l->buffer.event_room) {
        size_t room = l->buffer.event_room ? 2 * l->buffer.event_room : 64;
        struct peet_event *more = realloc(l->buffer.event, room * sizeof *more);
        if (!more)
            return sample_no_memory(err);
        l->buffer.event = more;
        l->buffer.event_room = room;
    }
    l->buffer.event[l->buffer.events++] = *e;
    return put_record(l, (*n)++, &r, err);
}

static int put_ranges(struct sampler *s, struct sampled_thread *l, size_t *n, const struct peet_event *e,
                      struct peet_err *err)
{
    struct sample_range range[2];
    unsigned ranges = sample_ranges(e, range);

    for (unsigned i = 0; i < ranges; i++) {
        uint64_t at = range[i].addr, end = at + range[i].size, size;
        l->counts.other_sets += sample_lines(s, &range[i]);
        for (; set_sample_range(&s->set_sample, &at, end, &size); at += size) {
            struct peet_event piece = { .kind = range[i].is_write ? PEET_EV_range_write : PEET_EV_range_read,
                                        .args = 2,
                                        .site = e->site,
                                        .arg = { at, size } };
            int r = put_event(l, n, &piece, err);
            if (r < 0)
                return r;
            l->counts.other_sets -= sample_lines(s, &(struct sample_range){ at, size, false });
        }
    }
    return 0;
}

static int put_reference(struct sampler *s, struct sampled_thread *l, size_t *n, const struct peet_record *r,
                         struct peet_err *err)
{
    uint64_t at = r->addr, end = at + (r->size ? r->size : 1), size;
    bool is_in = false;
    int e = 0;

    for (; e == 0 && set_sample_range(&s->set_sample, &at, end, &size); at += size) {
        struct peet_record piece = *r;
        piece.addr = at;
        piece.size = r->size ? (uint32_t)size & PEET_MAX_SIZE : 0;
        e = put_record(l, (*n)++, &piece, err);
        is_in = true;
    }
    l->counts.other_sets += !is_in;
    return e;
}

int sample_copy(struct sampler *s, struct sampled_thread *l, size_t count, struct peet_batch *ret, struct peet_err *err)
{
    size_t n = 0;

    l->buffer.events = 0;
    for (size_t i = l->at; i < l->at + count; i++) {
        const struct peet_record *r = &l->part.records[i];
        struct sample_range range[2];
        int e;
        if (r->kind == PEET_BLOCK)
            e = put_record(l, n++, r, err);
        else if (r->kind != PEET_EVENT)
            e = put_reference(s, l, &n, r, err);
        else if (sample_ranges(&l->part.events[r->id], range) > 0)
            e = put_ranges(s, l, &n, &l->part.events[r->id], err);
        else
            e = put_event(l, &n, &l->part.events[r->id], err);
        if (e < 0)
            return e;
    }
    *ret = l->part;
    ret->records = l->buffer.copy;
    ret->events = l->buffer.event;
    ret->event_count = l->buffer.events;
    ret->count = n;
    return 0;
}
