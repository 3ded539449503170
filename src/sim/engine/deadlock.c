/* SPDX-License-Identifier: MIT */
/* No thread can continue: waits that another order of recorded threads has caused are ended by force; else it is a deadlock. */
#include <inttypes.h>

#include "base/err.h"
#include "sim/engine/simulation.h"
#include "sim/spec/speculation.h"

static uint64_t thread_time(const struct sim_thread *t)
{
    return t->hw ? t->hw->clock : t->wait.since;
}

static bool thread_waits_at(const struct sim_thread *t, const struct sync_object *barrier)
{
    return t->status == STATUS_WAITING && !t->wait.joined && t->wait.object == barrier;
}

/* The threads for which a barrier waits are not in the trace, or their recordings end early: it opens for those that have arrived. It can be
 * initialized, since no thread can continue, and so none is still leaving it. */
static void barrier_open(struct sim *s, struct sync_object *o)
{
    uint64_t last = 0;

    if (s->sync.speculation) {
        speculation_force(s, o);
        return;
    }
    for (uint32_t i = 0; i < s->threads; i++)
        if (thread_waits_at(&s->thread[i], o) && thread_time(&s->thread[i]) > last)
            last = thread_time(&s->thread[i]);
    for (uint32_t i = 0; i < s->threads; i++) {
        struct sim_thread *t = &s->thread[i];
        if (!thread_waits_at(t, o))
            continue;
        s->counts.forced_wakeups++;
        t->pending = PENDING_NOTHING;
        sim_wake(s, t, last);
    }
    o->barrier = sync_object_barrier(s, o->addr);
}

/* Opens the first barrier at which a thread waits. Not for a live program: its deadlock is a mistake of the program. */
static bool barrier_force(struct sim *s)
{
    for (uint32_t i = 0; i < s->threads && !s->source->is_live; i++) {
        const struct sim_thread *t = &s->thread[i];
        if (t->wait.object && t->wait.object->summary.kind == SYNC_OBJECT_BARRIER
            && thread_waits_at(t, t->wait.object)) {
            barrier_open(s, t->wait.object);
            return true;
        }
    }
    return false;
}

bool sim_force_wakeup(struct sim *s)
{
    bool any = false;

    for (uint32_t i = 0; i < s->threads; i++) {
        struct sim_thread *t = &s->thread[i];
        bool waits = t->status == STATUS_WAITING && t->wait.object && !t->wait.joined
                     && (t->wait.object->summary.kind == SYNC_OBJECT_CONDITION
                         || t->wait.object->summary.kind == SYNC_OBJECT_SEMAPHORE
                         || t->wait.object->summary.kind == SYNC_OBJECT_ARC);
        if (!waits
            || (s->source->is_live && !(t->wait.object->summary.kind == SYNC_OBJECT_CONDITION && t->wait.has_timeout)))
            continue;
        any = true;
        s->counts.forced_wakeups += !s->source->is_live;
        t->reply = 1; /* timeout */
        sync_object_remove(t->wait.object, t);
        sim_wake(s, t, thread_time(t));
    }
    return any || barrier_force(s);
}

/* Names waiting threads and their objects, as far as they fit into the message. */
int sim_report_deadlock(struct sim *s, struct peet_err *err)
{
    char text[400] = "";
    size_t n = 0;

    for (uint32_t i = 0; i < s->threads && n < sizeof text - 100; i++) {
        const struct sim_thread *t = &s->thread[i];
        if (t->status != STATUS_WAITING)
            continue;
        n += (size_t)snprintf(text + n, sizeof text - n, "%sthread %" PRIu32 " waits for ", n ? "; " : "",
                              s->source->thread[i].id);
        if (t->wait.joined)
            n += (size_t)snprintf(text + n, sizeof text - n, "the end of thread %" PRIu32,
                                  s->source->thread[t->wait.joined - 1].id);
        else
            n += (size_t)snprintf(text + n, sizeof text - n, "%s 0x%" PRIx64,
                                  sync_object_kind_name(&t->wait.object->summary), t->wait.object->summary.addr);
        if (!t->wait.joined && t->wait.object->holder)
            n += (size_t)snprintf(text + n, sizeof text - n, ", which thread %" PRIu32 " holds",
                                  s->source->thread[t->wait.object->holder->sched.number].id);
    }
    return err_set(err, PEET_ERR_FORMAT, "deadlock: no thread can continue: %s", text);
}
