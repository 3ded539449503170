/* SPDX-License-Identifier: MIT */
/* Iterations of parallel loops (map/source/source_doall.h), and what they wait for.
 *
 * DOACROSS: an iteration waits for a value that another one posts. A wait is over when that very value was posted in this execution of
 * the loop: that a greater one was, by an iteration that ran ahead, says nothing. Values before the first iteration's number are there from the
 * beginning. An iteration that has none before it any more need not wait, for then all has been done that was done when the
 * loop was recorded; so whatever values stand for, there is no deadlock. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/state.h"

/* ---- values that were posted ---- */

/* Values stand in spans that do not touch, in rising order; the newest are mostly the greatest. */
static void add_value(struct sync_object *o, int64_t value)
{
    size_t i = o->spans;

    while (i > 0 && o->span[i - 1].from > value)
        i--;
    if (i > 0 && value <= o->span[i - 1].to)
        return;
    bool after = i > 0 && o->span[i - 1].to == value - 1;
    bool before = i < o->spans && o->span[i].from == value + 1;
    if (after && before) {
        o->span[i - 1].to = o->span[i].to;
        memmove(&o->span[i], &o->span[i + 1], (--o->spans - i) * sizeof *o->span);
    } else if (after) {
        o->span[i - 1].to = value;
    } else if (before) {
        o->span[i].from = value;
    } else {
        if (o->spans == o->span_room) {
            o->span_room = o->span_room * 2 + 8;
            o->span = realloc(o->span, o->span_room * sizeof *o->span);
            assert(o->span);
        }
        memmove(&o->span[i + 1], &o->span[i], (o->spans++ - i) * sizeof *o->span);
        o->span[i] = (struct value_span){ value, value };
    }
}

static bool has_value(const struct sync_object *o, int64_t value)
{
    size_t i = o->spans;

    while (i > 0 && o->span[i - 1].from > value)
        i--;
    return i > 0 && value <= o->span[i - 1].to;
}

/* ---- iterations ---- */

/* The iteration that was begun first, of those that have not finished. */
static struct sim_thread *oldest_of(const struct sim_thread *forker)
{
    struct sim_thread *oldest = NULL;

    for (struct sim_thread *t = forker->iterations; t; t = t->next_iteration)
        if (t->depth > 0 && (!oldest || t->sequence < oldest->sequence))
            oldest = t;
    return oldest;
}

void sim_loop_created(struct sim_thread *t, struct sim_thread *forker)
{
    assert(t->status == STATUS_UNBORN || t->status == STATUS_ENDED);
    t->batch.count = t->at = 0;
    t->status = STATUS_UNBORN;
    t->depth = 0;
    if (t->forker)
        return;
    t->forker = forker;
    t->next_iteration = forker->iterations;
    forker->iterations = t;
}

void sim_loop_start(struct sim_thread *t, uint64_t iteration)
{
    if (!t->forker || t->depth++ > 0)
        return;
    if (t->forker->begun == 0)
        t->forker->first_iteration = (int64_t)iteration;
    t->sequence = t->forker->begun++;
}

void sim_loop_finish(struct sim *s, struct sim_thread *t, uint64_t now)
{
    if (!t->forker || t->depth == 0 || --t->depth > 0)
        return;
    struct sim_thread *next = oldest_of(t->forker);
    if (next && next->status == STATUS_WAITING && next->object && next->object->seen.kind == SYNC_OBJECT_POST)
        sim_leave_line(s, next, now);
}

/* The next execution of the loop posts anew. */
void sim_loop_join(struct sim *s, struct sim_thread *forker)
{
    forker->begun = 0;
    for (struct sync_object *o = s->posts; o; o = o->next_post)
        if (o->poster == forker)
            o->spans = 0;
}

/* ---- posts ---- */

void sim_loop_post(struct sim *s, struct sim_thread *t, struct sync_object *o, uint64_t value)
{
    if (!o->poster) {
        o->next_post = s->posts;
        s->posts = o;
    }
    if (o->poster != t->forker)
        o->spans = 0;
    o->poster = t->forker;
    add_value(o, (int64_t)value);
}

bool sim_loop_may_go_on(const struct sim_thread *t, const struct sync_object *o, uint64_t value)
{
    return (int64_t)value < t->forker->first_iteration || (o->poster == t->forker && has_value(o, (int64_t)value))
           || oldest_of(t->forker) == t;
}

void sim_loop_release(struct sim *s)
{
    for (struct sync_object *o = s->posts; o; o = o->next_post)
        free(o->span);
}
