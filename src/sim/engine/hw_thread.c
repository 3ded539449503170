/* SPDX-License-Identifier: MIT */
/* Dispatch: threads that wait, threads that become ready, and which of them gets a free hardware thread. */
#include <assert.h>

#include "sim/engine/executor.h"

/* ---- threads that become ready at a known cycle ---- */

static bool wakeup_precedes(const struct sim_thread *a, const struct sim_thread *b)
{
    return a->wakeup.at != b->wakeup.at ? a->wakeup.at < b->wakeup.at : a->wakeup.number < b->wakeup.number;
}

void sim_ready_later(struct sim *s, struct sim_thread *t)
{
    size_t i = s->wakeups.count++;

    t->wakeup.number = s->wakeups.entered++;
    for (; i > 0 && wakeup_precedes(t, s->wakeups.thread[(i - 1) / 2]); i = (i - 1) / 2)
        s->wakeups.thread[i] = s->wakeups.thread[(i - 1) / 2];
    s->wakeups.thread[i] = t;
}

static struct sim_thread *wakeups_pop(struct sim *s)
{
    struct sim_thread *first = s->wakeups.thread[0], *last = s->wakeups.thread[--s->wakeups.count];
    size_t i = 0;

    for (size_t child; (child = 2 * i + 1) < s->wakeups.count; i = child) {
        if (child + 1 < s->wakeups.count && wakeup_precedes(s->wakeups.thread[child + 1], s->wakeups.thread[child]))
            child++;
        if (!wakeup_precedes(s->wakeups.thread[child], last))
            break;
        s->wakeups.thread[i] = s->wakeups.thread[child];
    }
    s->wakeups.thread[i] = last;
    return first;
}

/* ---- time ---- */

/* Moves up to `cycles` from pending to a time; returns the cycles that are left. */
static uint64_t sync_time_take(uint64_t *own, uint64_t *time, uint64_t cycles)
{
    uint64_t n = *own < cycles ? *own : cycles;

    *own -= n;
    *time += n;
    return cycles - n;
}

uint64_t hw_thread_take_sync_time(struct hw_thread *hw, uint64_t cycles)
{
    uint64_t left = cycles, counted = 0;

    left = sync_time_take(&hw->sync_time.counted, &counted, left);
    left = sync_time_take(&hw->sync_time.compute, &hw->account.time[TIME_compute], left);
    left = sync_time_take(&hw->sync_time.stall, &hw->account.time[TIME_stall], left);
    left = sync_time_take(&hw->sync_time.bus, &hw->account.time[TIME_bus], left);
    hw->account.sync += cycles - left;
    return left;
}

/* The object for which a thread waits in reports: at an arc, the condition that the arc stands for. */
static struct sync_object *thread_waits_for(const struct sim_thread *t, struct sync_object *o)
{
    return o->summary.kind == SYNC_OBJECT_ARC ? t->wait.condition : o;
}

static void thread_count_wait(struct sim_thread *t, struct sync_object *o, uint64_t cycles)
{
    t->wait.cycles += cycles;
    o->summary.waited += cycles;
    o->summary.longest = t->wait.cycles > o->summary.longest ? t->wait.cycles : o->summary.longest;
}

void sim_spend(struct sim *s, struct hw_thread *hw, uint64_t until, enum time_kind as, struct sim_thread *t,
               struct sync_object *o)
{
    if (until <= hw->clock)
        return;
    uint64_t cycles = hw_thread_take_sync_time(hw, until - hw->clock);
    o = thread_waits_for(t, o);
    hw->clock = until;
    hw->account.time[as] += cycles;
    o->summary.spent += cycles;
    thread_count_wait(t, o, cycles);
    if (cycles && s->hooks.waiter)
        s->hooks.waiter(s->hooks.waiter_self,
                        &(struct sim_wait){ .thread = t->sched.number,
                                            .kind = o->summary.kind,
                                            .as = (uint8_t)as,
                                            .addr = o->summary.addr,
                                            .site = t->site,
                                            .cycles = cycles,
                                            .path_counts = s->executor->path_counts(s, t->sched.number) });
}

/* ---- binding ---- */

/* The hardware thread had no thread up to cycle `now`. */
static void hw_thread_end_empty(struct sim *s, struct hw_thread *hw, uint64_t now)
{
    struct sim_thread *t = hw->empty.thread;

    if (t) {
        sim_spend(s, hw, now, (enum time_kind)hw->empty.as, t, t->wait.object);
        t->wait.counted_until = hw->clock;
    }
    hw_thread_spend(hw, now, TIME_idle);
    hw->empty.thread = NULL;
}

/* A thread that is bound may have waited without a hardware thread: counts that time. */
static void thread_end_absence(struct sim *s, struct sim_thread *t, uint64_t now)
{
    if (!t->wait.has_left)
        return;
    t->wait.has_left = false;
    if (s->hw_thread[t->sched.last].empty.thread == t) /* its hardware thread was empty during the wait */
        hw_thread_end_empty(s, &s->hw_thread[t->sched.last], now);
    if (t->wakeup.at > t->wait.counted_until)
        thread_count_wait(t, thread_waits_for(t, t->wait.object), t->wakeup.at - t->wait.counted_until);
}

static void hw_thread_unbind(struct hw_thread *hw)
{
    hw->thread->wait.has_left = hw->thread->status == STATUS_WAITING;
    hw->thread->wait.counted_until = hw->clock;
    hw->thread->hw = NULL;
    hw->thread = NULL;
    hw->runs = false;
    hw->forward.iterations = 0;
    hw->lookahead.is_on = false;
}

static void hw_thread_bind(struct sim *s, struct hw_thread *hw, struct sim_thread *t, uint64_t now)
{
    hw_thread_end_empty(s, hw, now);
    thread_end_absence(s, t, now);
    if (t->sched.last != (int)hw->number || hw->account.switches == 0) {
        hw->account.switches++;
        if (hw->account.switches > 1)
            hw_thread_spend(hw, hw->clock + s->config.switch_cost, TIME_change);
    }
    t->sched.last = (int)hw->number;
    t->waiter.cpu = hw->cpu;
    t->status = STATUS_RUNNING;
    t->hw = hw;
    hw->thread = t;
    t->loop.misses_next++; /* lines of the iteration may have been evicted */
    hw->began = hw->clock;
    hw->runs = true;
    s->order.needs_sort = true;
}

void sim_dispatch(struct sim *s, struct hw_thread *hw, uint64_t now)
{
    struct sched_thread *c = sched_pick(&s->scheduler, hw->number, now > hw->clock ? now : hw->clock);

    if (c)
        hw_thread_bind(s, hw, &s->thread[c->number], now);
}

/* A hardware thread for a thread that is ready: one without a thread, preferably where it ran last, else one with a thread that waits. */
static struct hw_thread *hw_thread_find(struct sim *s, const struct sim_thread *t)
{
    struct hw_thread *best = NULL;

    for (uint32_t i = 0; i < s->hw_threads; i++) {
        struct hw_thread *hw = &s->hw_thread[i];
        if (!hw->thread && (!best || best->thread || (int)hw->number == t->sched.last))
            best = hw;
        else if (!best && hw->thread && hw->thread->status == STATUS_WAITING)
            best = hw;
    }
    return best;
}

static void thread_become_ready(struct sim *s, struct sim_thread *t)
{
    uint64_t now = t->wakeup.at;
    struct hw_thread *hw = hw_thread_find(s, t);

    t->status = STATUS_READY;
    sched_ready(&s->scheduler, &t->sched, now);
    if (hw && hw->thread) { /* its thread waits there, and makes room */
        sim_spend(s, hw, now, (enum time_kind)hw->thread->wait.as, hw->thread, hw->thread->wait.object);
        hw_thread_unbind(hw);
    }
    if (hw)
        sim_dispatch(s, hw, now);
    for (uint32_t i = 0; s->scheduler.count > 0 && i < s->hw_threads; i++) /* from now on, quanta end on all of them */
        sim_roll_back(s, &s->hw_thread[i], now, 0);
}

void sim_end_times(struct sim *s)
{
    uint64_t end = 0;

    for (uint32_t i = 0; i < s->hw_threads; i++)
        end = s->hw_thread[i].clock > end ? s->hw_thread[i].clock : end;
    for (uint32_t i = 0; i < s->hw_threads; i++) {
        struct hw_thread *hw = &s->hw_thread[i];
        struct sim_thread *t = hw->thread ? hw->thread : hw->empty.thread;
        if (t && t->status == STATUS_WAITING) {
            sim_spend(s, hw, end, (enum time_kind)t->wait.as, t, t->wait.object);
        } else if (hw->clock < end) {
            hw->account.time[TIME_idle] += hw_thread_take_sync_time(hw, end - hw->clock);
            hw->clock = end;
        }
    }
}

void sim_ready_next(struct sim *s)
{
    thread_become_ready(s, wakeups_pop(s));
    s->order.needs_sort = true;
}

void sim_yield(struct sim *s, struct hw_thread *hw)
{
    struct sim_thread *t = hw->thread;

    if (s->buffers.buffer)
        store_buffer_drain(s, hw, 0);
    hw_thread_unbind(hw);
    s->order.needs_sort = true;
    t->status = STATUS_READY;
    sched_ready(&s->scheduler, &t->sched, hw->clock);
    sim_dispatch(s, hw, hw->clock);
}

void sim_wait(struct sim *s, struct sim_thread *t, struct sync_object *o, enum time_kind as)
{
    struct hw_thread *hw = t->hw;

    t->status = STATUS_WAITING;
    t->wait.object = o;
    t->wait.as = (uint8_t)as;
    hw->runs = false;
    s->order.needs_sort = true;
    if (!s->config.waits_busily || s->scheduler.count > 0) {
        hw_thread_unbind(hw);
        sim_dispatch(s, hw, hw->clock);
        if (!hw->thread) {
            hw->empty.thread = t;
            hw->empty.as = (uint8_t)as;
        }
    }
}

void sim_wake(struct sim *s, struct sim_thread *t, uint64_t when)
{
    assert(t->status == STATUS_WAITING || t->status == STATUS_UNBORN);
    s->order.needs_sort = true;
    when += sim_start_jitter(s);
    if (t->hw) {
        sim_spend(s, t->hw, when, (enum time_kind)t->wait.as, t, t->wait.object);
        t->status = STATUS_RUNNING;
        t->hw->runs = true;
        return;
    }
    t->status = STATUS_READY;
    t->wakeup.at = when;
    sim_ready_later(s, t);
}
