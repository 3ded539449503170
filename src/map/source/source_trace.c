/* SPDX-License-Identifier: MIT */
/* The threads of a trace as contexts. A cursor is opened when a context runs first, and freed at its end. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "format/file/trace.h"
#include "map/source/arc_keep.h"
#include "map/source/source.h"
#include "map/spaces.h"

enum { WORDS = 1 << 14 /* at a time */, THREAD_POINTER = 1 /* a register, by custom of all who record */ };

struct replay {
    struct source source;
    struct peet_trace *trace;
    struct source_thread *context;
    struct peet_cursor **cursor;
    struct keep *keep; /* or NULL: no order of conditions is kept */
    unsigned want;
    uint64_t **word, registers[PEET_REGISTERS];
};

static int open_cursor(struct replay *r, uint32_t context, struct peet_err *err)
{
    struct peet_cursor **c = &r->cursor[context];

    return *c ? 0 : peet_cursor_open(r->trace, r->context[context].id, r->want, c, err);
}

static int next(struct source *s, uint32_t context, uint64_t reply, struct peet_batch *ret, struct peet_err *err)
{
    struct replay *r = (struct replay *)(void *)s;
    struct peet_cursor **c = &r->cursor[context];
    int code = open_cursor(r, context, err);

    (void)reply; /* what it did is done */
    if (code < 0)
        return code;
    do /* what is damaged is left out; the trace tells it as a problem */
        code = peet_cursor_next(*c, ret, err);
    while (code == PEET_ERR_DAMAGED);
    if (code == 0) {
        peet_cursor_free(*c);
        *c = NULL;
    }
    int kept = code > 0 && r->keep ? keep_arcs(r->keep, context, ret, err) : 0;
    return kept < 0 ? kept : code;
}

/* Items as they are in the trace: a number, and its slots. */
static int words(struct source *s, uint32_t context, uint64_t reply, struct source_words *ret, struct peet_err *err)
{
    struct replay *r = (struct replay *)(void *)s;
    int code = open_cursor(r, context, err);
    const uint64_t *slots;
    uint32_t item;

    (void)reply;
    if (code < 0)
        return code;
    if (!r->word[context])
        r->word[context] = mem_alloc(WORDS + PEET_SLOTS + 1, sizeof **r->word);
    *ret = (struct source_words){ .word = r->word[context], .end = r->word[context], .registers = r->registers };
    while (ret->end - ret->word < WORDS) {
        code = peet_cursor_item(r->cursor[context], &item, &slots, err);
        if (code == PEET_ERR_DAMAGED)
            continue;
        if (code <= 0)
            break;
        if (ret->end == ret->word)
            memcpy(r->registers, peet_cursor_registers(r->cursor[context]), sizeof r->registers);
        unsigned count = schema_item(r->trace->schema, item)->slots;
        *ret->end++ = item;
        memcpy(ret->end, slots, count * sizeof *slots);
        ret->end += count;
    }
    return code < 0 ? code : ret->end > ret->word;
}

/* Registers are set before all else. */
static uint64_t pointer(struct source *s, uint32_t context)
{
    struct replay *r = (struct replay *)(void *)s;
    struct peet_cursor *c;
    struct peet_err err;
    const uint64_t *slots;
    uint64_t found = 0;
    uint32_t item;

    if (peet_cursor_open(r->trace, r->context[context].id, 0, &c, &err) < 0)
        return 0;
    for (bool is_set = true; is_set && peet_cursor_item(c, &item, &slots, &err) > 0;) {
        const struct item *x = schema_item(r->trace->schema, item);
        is_set = x->kind == ITEM_EVENT && x->event->kind == PEET_EV_set_register;
        found = peet_cursor_registers(c)[THREAD_POINTER];
    }
    peet_cursor_free(c);
    return found;
}

static void free_replay(struct source *s)
{
    struct replay *r = (struct replay *)(void *)s;

    for (uint32_t i = 0; r->cursor && i < s->threads; i++)
        peet_cursor_free(r->cursor[i]);
    for (uint32_t i = 0; r->word && i < s->threads; i++)
        free(r->word[i]);
    keep_free(r->keep);
    free(r->word);
    free(r->cursor);
    free(r->context);
    free(r);
}

static const struct source_kind REPLAY = { .next = next, .free = free_replay, .words = words, .pointer = pointer };

/* ---- who is there from the beginning ---- */

/* Whether another thread of the trace says that it has made it. */
static bool has_parent(const struct peet_trace *t, const struct peet_thread *thread)
{
    struct peet_totals totals;

    return thread->parent != thread->id && thread->process != thread->id
           && peet_trace_totals(t, thread->parent, &totals) == 0;
}

static const struct peet_thread *thread_of(const struct replay *r, uint32_t context)
{
    return peet_trace_thread(r->trace, context);
}

/* A thread that the parent creates: one more that need not begin by itself. */
static bool is_child(struct replay *r, const struct map *contexts, uint32_t parent, uint64_t thread)
{
    const uint32_t *context = map_find(contexts, thread, 0);

    if (!context || r->context[*context].birth == BIRTH_CREATED || !has_parent(r->trace, thread_of(r, *context))
        || thread_of(r, *context)->parent != parent)
        return false;
    r->context[*context].birth = BIRTH_CREATED;
    return true;
}

/* Looks for so many children of a thread in its stream, which may lack them: it was cut, or left out. Items are not expanded, and
 * what comes behind the last child is not read, so that this is little beside a simulation. */
static int find_children(struct replay *r, const struct map *contexts, uint32_t parent, uint32_t children,
                         struct peet_err *err)
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
            children -= is_child(r, contexts, parent, slots[0]);
    }
    peet_cursor_free(c);
    return code < 0 && code != PEET_ERR_DAMAGED ? code : 0;
}

/* Who says that another thread made it was created only if that thread says so, too. Otherwise nobody would ever let it begin. */
static int find_births(struct replay *r, uint32_t n, struct peet_err *err)
{
    struct map contexts = { .value_size = sizeof(uint32_t) }, children = { .value_size = sizeof(uint32_t) };
    const uint32_t *count;
    uint64_t parent;
    uint32_t tag;
    int code = 0;

    for (uint32_t i = 0; code == 0 && i < n; i++) {
        uint32_t *context = map_put(&contexts, thread_of(r, i)->id, 0);
        uint32_t *of_parent =
            has_parent(r->trace, thread_of(r, i)) ? map_put(&children, thread_of(r, i)->parent, 0) : &(uint32_t){ 0 };
        if (!context || !of_parent)
            code = err_set(err, PEET_ERR_MEMORY, "no memory for the threads of a trace");
        else {
            *context = i;
            ++*of_parent;
        }
    }
    for (size_t at = 0; code == 0 && (count = map_next(&children, &at, &parent, &tag));)
        code = find_children(r, &contexts, (uint32_t)parent, *count, err);
    map_release(&children);
    map_release(&contexts);
    return code;
}

int source_open_trace(struct peet_trace *t, bool repeats, struct source **ret, struct peet_err *err)
{
    struct replay *r = calloc(1, sizeof *r);
    size_t threads = 0, n = 0;

    while (peet_trace_thread(t, threads))
        threads++;
    if (!r || !(r->context = calloc(threads + 1, sizeof *r->context))
        || !(r->cursor = calloc(threads + 1, sizeof *r->cursor)) || !(r->word = calloc(threads + 1, sizeof *r->word))) {
        if (r)
            free_replay(&r->source);
        return err_set(err, PEET_ERR_MEMORY, "no memory for the threads of a trace");
    }
    for (size_t i = 0; i < threads; i++) {
        const struct peet_thread *thread = peet_trace_thread(t, i);
        r->context[n++] = (struct source_thread){ thread->id, thread->process, BIRTH_FIRST };
    }
    r->trace = t;
    r->want = repeats && !trace_has_processes(t) ? PEET_WANT_REPEATS : 0;
    r->source = (struct source){ &REPLAY, t, r->context, (uint32_t)n, (uint32_t)n, false, false };
    int code = find_births(r, (uint32_t)n, err);
    if (code == 0)
        *ret = &r->source;
    else
        free_replay(&r->source);
    return code;
}

int source_keep_conditions(struct source *s, struct peet_err *err)
{
    struct replay *r = (struct replay *)(void *)s;

    return s->kind == &REPLAY ? keep_new(r->trace, r->context, s->threads, &r->keep, err) : 0;
}
