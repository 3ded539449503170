/* SPDX-License-Identifier: MIT */
/* The threads of a trace as contexts. A cursor is opened when a context runs first, and freed at its end. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "format/trace.h"
#include "map/source.h"

enum { WORDS = 1 << 14 /* at a time */, THREAD_POINTER = 1 /* a register, by custom of all who record */ };

struct replay {
    struct source source;
    struct peet_trace *trace;
    struct source_context *context;
    struct peet_cursor **cursor;
    unsigned want;
    uint64_t **word, registers[PEET_REGISTERS];
};

static int open_cursor(struct replay *r, uint32_t context, struct peet_err *err)
{
    struct peet_cursor **c = &r->cursor[context];

    return *c ? 0 : peet_cursor_open(r->trace, r->context[context].thread, r->want, c, err);
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
    return code;
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

    if (peet_cursor_open(r->trace, r->context[context].thread, 0, &c, &err) < 0)
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

    for (uint32_t i = 0; r->cursor && i < s->contexts; i++)
        peet_cursor_free(r->cursor[i]);
    for (uint32_t i = 0; r->word && i < s->contexts; i++)
        free(r->word[i]);
    free(r->word);
    free(r->cursor);
    free(r->context);
    free(r);
}

static const struct source_kind REPLAY = { .next = next, .free = free_replay, .words = words, .pointer = pointer };

/* Whether another thread of the trace has made it. */
static bool has_parent(const struct peet_trace *t, const struct peet_thread *thread)
{
    struct peet_totals totals;

    return thread->parent != thread->id && thread->process != thread->id
           && peet_trace_totals(t, thread->parent, &totals) == 0;
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
        r->context[n++] =
            (struct source_context){ thread->id, thread->process, has_parent(t, thread) ? BIRTH_CREATED : BIRTH_FIRST };
    }
    r->trace = t;
    r->want = repeats ? PEET_WANT_REPEATS : 0;
    r->source = (struct source){ &REPLAY, t, r->context, (uint32_t)n, (uint32_t)n, false, false };
    *ret = &r->source;
    return 0;
}
