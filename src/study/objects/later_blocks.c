/* SPDX-License-Identifier: MIT */
/* See later_blocks.h. Of several blocks at one address, the first of the first thread is kept. */
#include "study/objects/later_blocks.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "map/call_path.h"
#include "format/read/word_reader.h"
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

/* ---- the blocks ---- */

static void add_later_block(struct later_blocks *l, uint32_t thread, uint64_t event, const struct peet_event *e)
{
    uint64_t start = e->arg[0], end = start + event_allocates(e), low, high;
    struct heap_block there;

    if (!start || end <= start || heap_blocks_find(&l->blocks, 1, start, &there))
        return;
    heap_blocks_add(&l->blocks, 1, &(struct heap_block){ start, end, end, l->count }, &low, &high);
    l->block = mem_room(l->block, l->count, sizeof *l->block);
    l->block[l->count++] = (struct later_block){ .event = event, .thread = thread };
}

/* Adds the blocks of the allocating events among words. Returns the number of events of objects_wants so far. */
static uint64_t find_in_words(struct later_blocks *l, uint32_t thread, const struct read_words *w, uint64_t events)
{
    uint64_t passed = events_passed(l, thread);

    for (const uint64_t *word = w->word; word < w->end;) {
        const struct item *item = schema_item(l->trace->schema, *word++);
        if (item->kind == ITEM_EVENT && objects_wants(item->event->kind) && events++ >= passed) {
            struct peet_event e = { .kind = item->event->kind };
            for (unsigned i = 0; i < PEET_EVENT_ARGS && i < item->slots; i++)
                e.arg[i] = word[i];
            add_later_block(l, thread, events - 1, &e);
        }
        word += item->slots;
    }
    return events;
}

/* Finds the blocks of the events that the replay has not passed. Nothing is expanded. */
static void find_blocks(struct later_blocks *l)
{
    const struct peet_thread *thread;
    struct word_reader *r;
    struct read_words words;
    struct peet_err err; /* not reported: the replay reads the same chunks */
    int code;

    l->is_read = true;
    for (size_t i = 0; (thread = peet_trace_thread(l->trace, i)); i++) {
        uint64_t events = 0;
        if (word_reader_open(l->trace, thread->id, &r, &err) < 0)
            return;
        while ((code = word_reader_next(r, &words, &err)) > 0 || code == PEET_ERR_DAMAGED)
            events = code > 0 ? find_in_words(l, thread->id, &words, events) : events;
        word_reader_free(r);
    }
}

/* ---- their names ---- */

/* The trace while the call paths of blocks are read. Blocks are in the order of threads, and of events in a thread. */
struct later_reader {
    struct later_blocks *later;
    struct source *source;
    struct paths paths;
    later_blocks_note *note;
    void *context;
    uint32_t next; /* index of the next block to be named, in later->block */
};

/* An event of objects_wants, the number of which in the thread is given. */
static void name_block(struct later_reader *r, uint32_t thread, uint64_t event, const struct peet_event *e)
{
    struct later_blocks *l = r->later;
    uint64_t path[LATER_CALLS];

    if (r->next == l->count || l->block[r->next].thread != r->source->thread[thread].id
        || l->block[r->next].event != event)
        return;
    paths_calls(&r->paths, thread, path, LATER_CALLS);
    l->block[r->next++].number = r->note(r->context, e, path);
}

static void name_blocks_of(struct later_reader *r, uint32_t thread)
{
    struct peet_batch batch;
    struct peet_err err; /* as in find_blocks */
    uint64_t events = 0;

    while (source_next(r->source, thread, 0, &batch, &err) > 0)
        for (size_t i = 0; i < batch.count; i++) {
            const struct peet_record *x = &batch.records[i];
            const struct peet_event *e = x->kind == PEET_EVENT ? &batch.events[x->id] : NULL;
            if (x->kind == PEET_BLOCK)
                paths_block(&r->paths, thread, x);
            if (e && objects_wants(e->kind))
                name_block(r, thread, events++, e);
        }
}

/* Expands the trace, for the call paths that name the blocks. */
static void name_blocks(struct later_blocks *l, later_blocks_note *note, void *context)
{
    struct later_reader r = { .later = l, .note = note, .context = context };
    struct peet_err err; /* as in find_blocks */

    l->is_named = true;
    if (source_open_trace(l->trace, true, &r.source, &err) < 0)
        return;
    paths_init(&r.paths, l->trace, r.source);
    for (uint32_t i = 0; i < r.source->threads; i++)
        name_blocks_of(&r, i);
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
        find_blocks(l);
    if (!heap_blocks_find(&l->blocks, 1, addr, ret))
        return false;
    const struct later_block *b = &l->block[ret->object];
    if (b->thread == thread || b->event < events_passed(l, b->thread))
        return false;
    if (!l->is_named)
        name_blocks(l, note, context);
    ret->object = b->number;
    return true;
}
