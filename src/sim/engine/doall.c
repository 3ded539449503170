/* SPDX-License-Identifier: MIT */
/* Iterations of parallel loops (map/source/source_doall.h), and the values that they post and wait for.
 *
 * DOACROSS: an iteration waits for a value that another one posts. The wait is over when that very value was posted in this execution of
 * the loop; a greater one proves nothing. Values below the first iteration's number count as posted. The oldest unfinished iteration
 * never waits: all iterations before it are over, as when the loop was recorded. So there is no deadlock, whatever the values mean. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine/simulation.h"

/* ---- values that were posted ---- */

/* Searches from the end: most values that are posted are greater than all before. */
static void posts_add(struct sync_object *o, int64_t value)
{
    size_t i = o->posts.spans;

    while (i > 0 && o->posts.span[i - 1].from > value)
        i--;
    if (i > 0 && value <= o->posts.span[i - 1].to)
        return;
    bool after = i > 0 && o->posts.span[i - 1].to == value - 1;
    bool before = i < o->posts.spans && o->posts.span[i].from == value + 1;
    if (after && before) {
        o->posts.span[i - 1].to = o->posts.span[i].to;
        memmove(&o->posts.span[i], &o->posts.span[i + 1], (--o->posts.spans - i) * sizeof *o->posts.span);
    } else if (after) {
        o->posts.span[i - 1].to = value;
    } else if (before) {
        o->posts.span[i].from = value;
    } else {
        if (o->posts.spans == o->posts.room) {
            o->posts.room = o->posts.room * 2 + 8;
            o->posts.span = realloc(o->posts.span, o->posts.room * sizeof *o->posts.span);
            assert(o->posts.span);
        }
        memmove(&o->posts.span[i + 1], &o->posts.span[i], (o->posts.spans++ - i) * sizeof *o->posts.span);
        o->posts.span[i] = (struct value_span){ value, value };
    }
}

static bool posts_have(const struct sync_object *o, int64_t value)
{
    size_t i = o->posts.spans;

    while (i > 0 && o->posts.span[i - 1].from > value)
        i--;
    return i > 0 && value <= o->posts.span[i - 1].to;
}

/* ---- iterations ---- */

/* The thread whose iteration began first, of those that are in one; NULL: no thread is. */
static struct sim_thread *doall_oldest(const struct sim_thread *forker)
{
    struct sim_thread *oldest = NULL;

    for (struct sim_thread *t = forker->doall.takers; t; t = t->doall.next_taker)
        if (t->doall.depth > 0 && (!oldest || t->doall.sequence < oldest->doall.sequence))
            oldest = t;
    return oldest;
}

void sim_loop_created(struct sim_thread *t, struct sim_thread *forker)
{
    assert(t->status == STATUS_UNBORN || t->status == STATUS_ENDED);
    t->batch.count = t->at = 0;
    t->status = STATUS_UNBORN;
    t->doall.depth = 0;
    if (t->doall.forker)
        return;
    t->doall.forker = forker;
    t->doall.next_taker = forker->doall.takers;
    forker->doall.takers = t;
}

void sim_loop_start(struct sim_thread *t, uint64_t iteration)
{
    if (!t->doall.forker || t->doall.depth++ > 0)
        return;
    if (t->doall.forker->doall.begun == 0)
        t->doall.forker->doall.first_iteration = (int64_t)iteration;
    t->doall.sequence = t->doall.forker->doall.begun++;
}

void sim_loop_finish(struct sim *s, struct sim_thread *t, uint64_t now)
{
    if (!t->doall.forker || t->doall.depth == 0 || --t->doall.depth > 0)
        return;
    struct sim_thread *next = doall_oldest(t->doall.forker);
    if (next && next->status == STATUS_WAITING && next->wait.object
        && next->wait.object->summary.kind == SYNC_OBJECT_POST)
        sim_leave_queue(s, next, now);
}

/* Values of this execution of the loop do not count in the next one. */
void sim_loop_join(struct sim *s, struct sim_thread *forker)
{
    forker->doall.begun = 0;
    for (struct sync_object *o = s->sync.post; o; o = o->posts.next)
        if (o->posts.forker == forker)
            o->posts.spans = 0;
}

/* ---- posts ---- */

void sim_loop_post(struct sim *s, struct sim_thread *t, struct sync_object *o, uint64_t value)
{
    if (!o->posts.forker) {
        o->posts.next = s->sync.post;
        s->sync.post = o;
    }
    if (o->posts.forker != t->doall.forker)
        o->posts.spans = 0;
    o->posts.forker = t->doall.forker;
    posts_add(o, (int64_t)value);
}

bool sim_loop_may_continue(const struct sim_thread *t, const struct sync_object *o, uint64_t value)
{
    return (int64_t)value < t->doall.forker->doall.first_iteration
           || (o->posts.forker == t->doall.forker && posts_have(o, (int64_t)value))
           || doall_oldest(t->doall.forker) == t;
}

void sim_loop_release(struct sim *s)
{
    for (struct sync_object *o = s->sync.post; o; o = o->posts.next)
        free(o->posts.span);
}
