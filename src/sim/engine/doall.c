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
static void add_value(struct object *o, int64_t value)
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
        o->span[i] = (struct span){ value, value };
    }
}

static bool has_value(const struct object *o, int64_t value)
{
    size_t i = o->spans;

    while (i > 0 && o->span[i - 1].from > value)
        i--;
    return i > 0 && value <= o->span[i - 1].to;
}

/* ---- iterations ---- */

/* The iteration that was begun first, of those that have not finished. */
static struct context *oldest_of(const struct context *forker)
{
    struct context *oldest = NULL;

    for (struct context *c = forker->iterations; c; c = c->next_iteration)
        if (c->depth > 0 && (!oldest || c->sequence < oldest->sequence))
            oldest = c;
    return oldest;
}

void sim_loop_created(struct context *c, struct context *forker)
{
    assert(c->status == STATUS_UNBORN || c->status == STATUS_ENDED);
    c->batch.count = c->at = 0;
    c->status = STATUS_UNBORN;
    c->depth = 0;
    if (c->forker)
        return;
    c->forker = forker;
    c->next_iteration = forker->iterations;
    forker->iterations = c;
}

void sim_loop_start(struct context *c, uint64_t iteration)
{
    if (!c->forker || c->depth++ > 0)
        return;
    if (c->forker->begun == 0)
        c->forker->first_iteration = (int64_t)iteration;
    c->sequence = c->forker->begun++;
}

void sim_loop_finish(struct sim *s, struct context *c, uint64_t now)
{
    if (!c->forker || c->depth == 0 || --c->depth > 0)
        return;
    struct context *next = oldest_of(c->forker);
    if (next && next->status == STATUS_WAITING && next->object && next->object->seen.kind == OBJECT_POST)
        sim_leave_line(s, next, now);
}

/* The next execution of the loop posts anew. */
void sim_loop_join(struct sim *s, struct context *forker)
{
    forker->begun = 0;
    for (struct object *o = s->posts; o; o = o->next_post)
        if (o->poster == forker)
            o->spans = 0;
}

/* ---- posts ---- */

void sim_loop_post(struct sim *s, struct context *c, struct object *o, uint64_t value)
{
    if (!o->poster) {
        o->next_post = s->posts;
        s->posts = o;
    }
    if (o->poster != c->forker)
        o->spans = 0;
    o->poster = c->forker;
    add_value(o, (int64_t)value);
}

bool sim_loop_may_go_on(const struct context *c, const struct object *o, uint64_t value)
{
    return (int64_t)value < c->forker->first_iteration || (o->poster == c->forker && has_value(o, (int64_t)value))
           || oldest_of(c->forker) == c;
}

void sim_loop_release(struct sim *s)
{
    for (struct object *o = s->posts; o; o = o->next_post)
        free(o->span);
}
