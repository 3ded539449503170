/* SPDX-License-Identifier: MIT */
/* See later_blocks.h. Of several blocks at one address, the first of the first thread is kept. */
#include "study/objects/later_blocks.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "map/call_path.h"
#include "map/source/source.h"
#include "study/objects/objects.h"

_Static_assert((int)LATER_CALLS == (int)OBJECT_PATH, "paths of events");

void later_blocks_init(struct later_blocks *l, struct peet_trace *t)
{
    if (peet_trace_process(t, 1) || !peet_trace_thread(t, 1))
        return;
    l->trace = t;
    l->passed.value_size = sizeof(uint64_t);
    heap_blocks_init(&l->blocks);
}

void later_blocks_release(struct later_blocks *l)
{
    if (!l->trace)
        return;
    heap_blocks_release(&l->blocks);
    map_release(&l->passed);
    free(l->block);
}

void later_blocks_pass(struct later_blocks *l, uint32_t thread)
{
    if (!l->trace)
        return;
    uint64_t *passed = map_put(&l->passed, thread, 0);
    assert(passed);
    ++*passed;
}

static uint64_t events_passed(const struct later_blocks *l, uint32_t thread)
{
    const uint64_t *passed = map_find(&l->passed, thread, 0);

    return passed ? *passed : 0;
}

/* Bytes that an event allocates; 0: none. */
static uint64_t event_allocates(const struct peet_event *e)
{
    switch (e->kind) {
    case PEET_EV_malloc: return e->arg[1];
    case PEET_EV_calloc: return e->arg[1] * e->arg[2];
    case PEET_EV_memalign:
    case PEET_EV_realloc: return e->arg[2];
    default: return 0;
    }
}

/* A trace while it is read. */
struct later_reader {
    struct later_blocks *later;
    struct source *source;
    struct paths paths;
    later_blocks_note *note;
    void *context;
};

static void add_later_block(struct later_reader *r, uint32_t thread, uint64_t event, const struct peet_event *e)
{
    struct later_blocks *l = r->later;
    uint64_t start = e->arg[0], end = start + event_allocates(e), path[LATER_CALLS], low, high;
    struct heap_block there;

    if (!start || end <= start || heap_blocks_find(&l->blocks, 1, start, &there))
        return;
    paths_calls(&r->paths, thread, path, LATER_CALLS);
    heap_blocks_add(&l->blocks, 1, &(struct heap_block){ start, end, end, l->count }, &low, &high);
    l->block = mem_room(l->block, l->count, sizeof *l->block);
    l->block[l->count++] = (struct later_block){ event, r->source->thread[thread].id, r->note(r->context, e, path) };
}

static void note_blocks_of(struct later_reader *r, uint32_t thread)
{
    uint64_t events = 0, passed = events_passed(r->later, r->source->thread[thread].id);
    struct peet_batch batch;
    struct peet_err err; /* not reported: the replay reads the same records */

    while (source_next(r->source, thread, 0, &batch, &err) > 0)
        for (size_t i = 0; i < batch.count; i++) {
            const struct peet_record *x = &batch.records[i];
            const struct peet_event *e = x->kind == PEET_EVENT ? &batch.events[x->id] : NULL;
            if (x->kind == PEET_BLOCK)
                paths_block(&r->paths, thread, x);
            if (e && objects_wants(e->kind) && events++ >= passed)
                add_later_block(r, thread, events - 1, e);
        }
}

static void read_trace(struct later_blocks *l, later_blocks_note *note, void *context)
{
    struct later_reader r = { .later = l, .note = note, .context = context };
    struct peet_err err; /* as above */

    l->is_read = true;
    if (source_open_trace(l->trace, true, &r.source, &err) < 0)
        return;
    paths_init(&r.paths, l->trace, r.source);
    for (uint32_t i = 0; i < r.source->threads; i++)
        note_blocks_of(&r, i);
    paths_release(&r.paths);
    source_free(r.source);
}

bool later_blocks_find(struct later_blocks *l, uint32_t thread, uint64_t addr, later_blocks_note *note, void *context,
                       struct heap_block *ret)
{
    *ret = (struct heap_block){ .start = 0, .end = UINT64_MAX };
    if (!l->trace)
        return false;
    if (!l->is_read)
        read_trace(l, note, context);
    if (!heap_blocks_find(&l->blocks, 1, addr, ret))
        return false;
    const struct later_block *b = &l->block[ret->object];
    ret->object = b->number;
    return b->thread != thread && b->event >= events_passed(l, b->thread);
}
