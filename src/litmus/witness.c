/* SPDX-License-Identifier: MIT */
/* An execution in words: instructions in program order, except that what performs late is said to be delayed where its thread
 * gets past it, and said again where it performs. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "litmus/explore.h"

/* The text of an execution that is being written. */
struct witness {
    const struct litmus_test *t;
    struct witness_line *line;
    size_t lines;
    uint32_t begun[LITMUS_MAX_THREADS]; /* by thread: instructions that were mentioned */
};

static void witness_add(struct witness *w, uint32_t thread, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void witness_add(struct witness *w, uint32_t thread, const char *format, ...)
{
    va_list ap;

    w->line = mem_room(w->line, w->lines, sizeof *w->line);
    struct witness_line *line = &w->line[w->lines++];
    line->thread = (int)thread;
    va_start(ap, format);
    vsnprintf(line->text, sizeof line->text, format, ap);
    va_end(ap);
}

/* Mentions an instruction that has not performed and that later ones of its thread get past, or that accesses nothing. */
static void witness_begin(struct witness *w, uint32_t thread, const struct litmus_instruction *i)
{
    switch (i->kind) {
    case LITMUS_STORE: witness_add(w, thread, "%s: the store waits in the store buffer", i->text); break;
    case LITMUS_LOAD: witness_add(w, thread, "%s: the load is delayed", i->text); break;
    case LITMUS_ATOMIC: witness_add(w, thread, "%s: the atomic is delayed", i->text); break;
    case LITMUS_FENCE:
        witness_add(w, thread, "%s: %s", i->text,
                    i->fence == ORDER_FENCE_FULL     ? "all accesses before it perform before those after it"
                    : i->fence == ORDER_FENCE_STORES ? "stores before it perform before stores after it"
                                                     : "loads before it perform before loads after it");
        break;
    case LITMUS_REGISTER: break;
    }
}

static void witness_step(struct witness *w, const struct litmus_step *s)
{
    const struct litmus_instruction *i = &w->t->thread[s->thread].instruction[s->instruction];
    const char *location = w->t->location[i->location].name;
    bool is_late = w->begun[s->thread] > s->instruction;

    while (w->begun[s->thread] < s->instruction)
        witness_begin(w, s->thread, &w->t->thread[s->thread].instruction[w->begun[s->thread]++]);
    if (!is_late)
        w->begun[s->thread]++;
    if (s->access == ORDER_ATOMIC)
        witness_add(w, s->thread, "%s: reads %s=%d and writes %s=%d at once", i->text, location, s->read, location,
                    s->wrote);
    else if (s->access == ORDER_LOAD)
        witness_add(w, s->thread, "%s: %s %s=%d%s%s", i->text, is_late ? "the load performs, reads" : "reads", location,
                    s->read, s->forwarded ? " from its own store buffer" : " from memory",
                    i->kind == LITMUS_ATOMIC ? "; its store waits" : "");
    else if (i->kind == LITMUS_ATOMIC)
        witness_add(w, s->thread, "%s: its store performs, memory has %s=%d", i->text, location, s->wrote);
    else
        witness_add(w, s->thread, "%s: %s, memory has %s=%d", i->text,
                    is_late ? "the store leaves the store buffer" : "stores", location, s->wrote);
}

struct witness_line *litmus_witness(const struct litmus_test *t, const struct litmus_step *step, uint32_t steps,
                                    size_t *ret_count)
{
    struct witness w = { .t = t };

    for (uint32_t i = 0; i < steps; i++)
        witness_step(&w, &step[i]);
    *ret_count = w.lines;
    return w.line;
}
