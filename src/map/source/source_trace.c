/* SPDX-License-Identifier: MIT */
/* A source of a recorded trace. A thread's cursor is opened when the thread runs first, and freed at its end. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "format/file/trace.h"
#include "format/read/word_reader.h"
#include "map/source/arc_inserter.h"
#include "map/source/source.h"
#include "map/spaces.h"

enum {
    THREAD_POINTER = 1 /* trace register that has the thread pointer, by convention of all recorders */
};

/* A recorded trace as a source. */
struct trace_source {
    struct source source;
    struct peet_trace *trace;     /* borrowed */
    struct source_thread *thread; /* by index */
    struct peet_cursor **cursor;  /* by thread; NULL: not opened, or at its end */
    struct arc_inserter *arcs;    /* arcs of conditions to insert; NULL: none */
    unsigned want;                /* PEET_WANT_* of cursors */
    struct word_reader **words;   /* by thread; NULL: not opened */
};

static int trace_source_open_cursor(struct trace_source *r, uint32_t thread, struct peet_err *err)
{
    struct peet_cursor **c = &r->cursor[thread];

    return *c ? 0 : peet_cursor_open(r->trace, r->thread[thread].id, r->want, c, err);
}

static int trace_source_next(struct source *s, uint32_t thread, uint64_t reply, struct peet_batch *ret,
                             struct peet_err *err)
{
    struct trace_source *r = (struct trace_source *)(void *)s;
    struct peet_cursor **c = &r->cursor[thread];
    int code = trace_source_open_cursor(r, thread, err);

    (void)reply; /* the thread did what it did when it was recorded */
    if (code < 0)
        return code;
    do /* damaged chunks are left out; they are among the trace's problems */
        code = peet_cursor_next(*c, ret, err);
    while (code == PEET_ERR_DAMAGED);
    if (code == 0) {
        peet_cursor_free(*c);
        *c = NULL;
    }
    int kept = code > 0 && r->arcs ? arc_inserter_apply(r->arcs, thread, ret, err) : 0;
    return kept < 0 ? kept : code;
}

static int trace_source_words(struct source *s, uint32_t thread, uint64_t reply, struct source_words *ret,
                              struct peet_err *err)
{
    struct trace_source *r = (struct trace_source *)(void *)s;
    struct word_reader **w = &r->words[thread];
    struct read_words words = { NULL, NULL, NULL };
    int code = *w ? 0 : word_reader_open(r->trace, r->thread[thread].id, w, err);

    (void)reply;
    if (code < 0)
        return code;
    do
        code = word_reader_next(*w, &words, err);
    while (code == PEET_ERR_DAMAGED);
    *ret = (struct source_words){ .word = words.word, .end = words.end, .registers = words.registers };
    return code;
}

/* A stream begins with the events that set registers. */
static uint64_t trace_source_pointer(struct source *s, uint32_t thread)
{
    struct trace_source *r = (struct trace_source *)(void *)s;
    struct peet_cursor *c;
    struct peet_err err;
    const uint64_t *slots;
    uint64_t found = 0;
    uint32_t item;

    if (peet_cursor_open(r->trace, r->thread[thread].id, 0, &c, &err) < 0)
        return 0;
    for (bool is_set = true; is_set && peet_cursor_item(c, &item, &slots, &err) > 0;) {
        const struct item *x = schema_item(r->trace->schema, item);
        is_set = x->kind == ITEM_EVENT && x->event->kind == PEET_EV_set_register;
        found = peet_cursor_registers(c)[THREAD_POINTER];
    }
    peet_cursor_free(c);
    return found;
}

static void trace_source_free(struct source *s)
{
    struct trace_source *r = (struct trace_source *)(void *)s;

    for (uint32_t i = 0; r->cursor && i < s->threads; i++)
        peet_cursor_free(r->cursor[i]);
    for (uint32_t i = 0; r->words && i < s->threads; i++)
        word_reader_free(r->words[i]);
    arc_inserter_free(r->arcs);
    free(r->words);
    free(r->cursor);
    free(r->thread);
    free(r);
}

static const struct source_kind TRACE_SOURCE = {
    .next = trace_source_next, .free = trace_source_free, .words = trace_source_words, .pointer = trace_source_pointer
};

/* ---- births ---- */

/* Whether the trace has the stream of the thread's parent. */
static bool thread_has_parent(const struct peet_trace *t, const struct peet_thread *thread)
{
    struct peet_totals totals;

    return thread->parent != thread->id && thread->process != thread->id
           && peet_trace_totals(t, thread->parent, &totals) == 0;
}

static const struct peet_thread *thread_of(const struct trace_source *r, uint32_t thread)
{
    return peet_trace_thread(r->trace, thread);
}

/* Notes a thread_create event of a parent; true: it is the first one of a child of this parent. */
static bool trace_source_note_child(struct trace_source *r, const struct map *threads_by_id, uint32_t parent,
                                    uint64_t id)
{
    const uint32_t *child = map_find(threads_by_id, id, 0);

    if (!child || r->thread[*child].birth == BIRTH_CREATED || !thread_has_parent(r->trace, thread_of(r, *child))
        || thread_of(r, *child)->parent != parent)
        return false;
    r->thread[*child].birth = BIRTH_CREATED;
    return true;
}

/* Searches a thread's stream for the events that create its children, which may be missing in a truncated stream. Items are not
 * expanded, and nothing after the last child is read, so that the time is small compared with a simulation. */
static int trace_source_find_children(struct trace_source *r, const struct map *threads_by_id, uint32_t parent,
                                      uint32_t children, struct peet_err *err)
{
    struct peet_cursor *c;
    const uint64_t *slots;
    uint32_t item;
    int code = peet_cursor_open(r->trace, parent, 0, &c, err);

    if (code < 0)
        return code;
    while (children > 0 && ((code = peet_cursor_item(c, &item, &slots, err)) > 0 || code == PEET_ERR_DAMAGED)) {
        const struct peet_event_item *e = code > 0 ? peet_trace_event(r->trace, item) : NULL;
        if (e && e->kind == PEET_EV_thread_create)
            children -= trace_source_note_child(r, threads_by_id, parent, slots[0]);
    }
    peet_cursor_free(c);
    return code < 0 && code != PEET_ERR_DAMAGED ? code : 0;
}

/* A thread waits for its creator only if the creator's stream has the thread_create event. That stream may be truncated; then the thread
 * starts with the run. */
static int trace_source_find_births(struct trace_source *r, uint32_t n, struct peet_err *err)
{
    struct map threads_by_id = { .value_size = sizeof(uint32_t) }, children = { .value_size = sizeof(uint32_t) };
    const uint32_t *count;
    uint64_t parent;
    uint32_t tag;
    int code = 0;

    for (uint32_t i = 0; code == 0 && i < n; i++) {
        uint32_t *thread = map_put(&threads_by_id, thread_of(r, i)->id, 0);
        uint32_t *of_parent = thread_has_parent(r->trace, thread_of(r, i))
                                  ? map_put(&children, thread_of(r, i)->parent, 0)
                                  : &(uint32_t){ 0 };
        if (!thread || !of_parent)
            code = err_set(err, PEET_ERR_MEMORY, "no memory for the threads of a trace");
        else {
            *thread = i;
            ++*of_parent;
        }
    }
    for (size_t at = 0; code == 0 && (count = map_next(&children, &at, &parent, &tag));)
        code = trace_source_find_children(r, &threads_by_id, (uint32_t)parent, *count, err);
    map_release(&children);
    map_release(&threads_by_id);
    return code;
}

int source_open_trace(struct peet_trace *t, bool repeats, struct source **ret, struct peet_err *err)
{
    struct trace_source *r = calloc(1, sizeof *r);
    size_t threads = 0, n = 0;

    while (peet_trace_thread(t, threads))
        threads++;
    if (!r || !(r->thread = calloc(threads + 1, sizeof *r->thread))
        || !(r->cursor = calloc(threads + 1, sizeof *r->cursor))
        || !(r->words = calloc(threads + 1, sizeof *r->words))) {
        if (r)
            trace_source_free(&r->source);
        return err_set(err, PEET_ERR_MEMORY, "no memory for the threads of a trace");
    }
    for (size_t i = 0; i < threads; i++) {
        const struct peet_thread *thread = peet_trace_thread(t, i);
        r->thread[n++] = (struct source_thread){ thread->id, thread->process, BIRTH_FIRST };
    }
    r->trace = t;
    r->want = repeats && !trace_has_processes(t) ? PEET_WANT_REPEATS : 0;
    r->source = (struct source){ &TRACE_SOURCE, t, r->thread, (uint32_t)n, (uint32_t)n, false, false, false };
    int code = trace_source_find_births(r, (uint32_t)n, err);
    if (code == 0)
        *ret = &r->source;
    else
        trace_source_free(&r->source);
    return code;
}

struct peet_trace *source_recording(const struct source *s)
{
    return s->kind == &TRACE_SOURCE ? ((const struct trace_source *)(const void *)s)->trace : NULL;
}

int source_keep_conditions(struct source *s, struct peet_err *err)
{
    struct trace_source *r = (struct trace_source *)(void *)s;

    return s->kind == &TRACE_SOURCE ? arc_inserter_new(r->trace, r->thread, s->threads, &r->arcs, err) : 0;
}
