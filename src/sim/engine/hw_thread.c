/* SPDX-License-Identifier: MIT */
/* Which context is where: those that wait, those that will be ready, and who gets a place when one is free. */
#include <assert.h>

#include "sim/engine/state.h"

/* ---- contexts that will be ready ---- */

static bool comes_before(const struct sim_thread *a, const struct sim_thread *b)
{
    return a->wake_at != b->wake_at ? a->wake_at < b->wake_at : a->order < b->order;
}

void sim_ready_later(struct sim *s, struct sim_thread *t)
{
    size_t i = s->heap_count++;

    t->order = s->woken++;
    for (; i > 0 && comes_before(t, s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = t;
}

static struct sim_thread *heap_pop(struct sim *s)
{
    struct sim_thread *first = s->heap[0], *last = s->heap[--s->heap_count];
    size_t i = 0;

    for (size_t child; (child = 2 * i + 1) < s->heap_count; i = child) {
        if (child + 1 < s->heap_count && comes_before(s->heap[child + 1], s->heap[child]))
            child++;
        if (!comes_before(s->heap[child], last))
            break;
        s->heap[i] = s->heap[child];
    }
    s->heap[i] = last;
    return first;
}

/* ---- time ---- */

/* Of cycles, as many as references of locks and barriers have taken are added to a time; the others are returned. */
static uint64_t take_own(uint64_t *own, uint64_t *time, uint64_t cycles)
{
    uint64_t n = *own < cycles ? *own : cycles;

    *own -= n;
    *time += n;
    return cycles - n;
}

uint64_t hw_thread_take_sync_time(struct hw_thread *hw, uint64_t cycles)
{
    uint64_t left = cycles, elsewhere = 0;

    left = take_own(&hw->own.elsewhere, &elsewhere, left);
    left = take_own(&hw->own.compute, &hw->seen.time[TIME_compute], left);
    left = take_own(&hw->own.stall, &hw->seen.time[TIME_stall], left);
    left = take_own(&hw->own.bus, &hw->seen.time[TIME_bus], left);
    hw->seen.sync += cycles - left;
    return left;
}

/* What a context waits for: at an arc, that is the condition on which it decides. */
static struct sync_object *waits_for(const struct sim_thread *t, struct sync_object *o)
{
    return o->seen.kind == SYNC_OBJECT_ARC ? t->decides : o;
}

static void wait_for(struct sim_thread *t, struct sync_object *o, uint64_t cycles)
{
    t->waited += cycles;
    o->seen.waited += cycles;
    o->seen.longest = t->waited > o->seen.longest ? t->waited : o->seen.longest;
}

void sim_spend(struct sim *s, struct hw_thread *hw, uint64_t until, enum time_kind as, struct sim_thread *t,
               struct sync_object *o)
{
    if (until <= hw->clock)
        return;
    uint64_t cycles = hw_thread_take_sync_time(hw, until - hw->clock);
    o = waits_for(t, o);
    hw->clock = until;
    hw->seen.time[as] += cycles;
    o->seen.spent += cycles;
    wait_for(t, o, cycles);
    if (cycles && s->waiter)
        s->waiter(s->waiting,
                  &(struct sim_wait){ .thread = t->sched.number,
                                      .kind = o->seen.kind,
                                      .as = (uint8_t)as,
                                      .addr = o->seen.addr,
                                      .site = t->site,
                                      .cycles = cycles,
                                      .leaf = s->block_exec ? blocks_path_counts(s->block_exec, t->sched.number)
                                                            : UINT32_MAX });
}

/* ---- who is where ---- */

/* Nobody has been at a place up to that time. */
static void end_empty(struct sim *s, struct hw_thread *hw, uint64_t now)
{
    struct sim_thread *t = hw->empty_for;

    if (t) {
        sim_spend(s, hw, now, (enum time_kind)hw->empty_as, t, t->object);
        t->left = hw->clock;
    }
    hw_thread_spend(hw, now, TIME_idle);
    hw->empty_for = NULL;
}

/* A context that comes to a place has waited without one, if it waited. */
static void end_absence(struct sim *s, struct sim_thread *t, uint64_t now)
{
    if (!t->is_away)
        return;
    t->is_away = false;
    if (s->place[t->sched.last].empty_for == t) /* and may have left it empty */
        end_empty(s, &s->place[t->sched.last], now);
    if (t->wake_at > t->left)
        wait_for(t, waits_for(t, t->object), t->wake_at - t->left);
}

static void hw_thread_unbind(struct hw_thread *hw)
{
    hw->context->is_away = hw->context->status == STATUS_WAITING;
    hw->context->left = hw->clock;
    hw->context->place = NULL;
    hw->context = NULL;
    hw->runs = false;
    hw->ahead = 0;
    hw->lead.is_on = false;
}

static void hw_thread_bind(struct sim *s, struct hw_thread *hw, struct sim_thread *t, uint64_t now)
{
    end_empty(s, hw, now);
    end_absence(s, t, now);
    if (t->sched.last != (int)hw->number || hw->seen.switches == 0) {
        hw->seen.switches++;
        if (hw->seen.switches > 1)
            hw_thread_spend(hw, hw->clock + s->config.switch_cost, TIME_change);
    }
    t->sched.last = (int)hw->number;
    t->party.cpu = hw->cpu;
    t->status = STATUS_RUNNING;
    t->place = hw;
    hw->context = t;
    t->hard++; /* what a trip had found here may be gone */
    hw->began = hw->clock;
    hw->runs = true;
    s->is_changed = true;
}

void sim_dispatch(struct sim *s, struct hw_thread *hw, uint64_t now)
{
    struct sched_thread *c = sched_pick(&s->scheduler, hw->number, now > hw->clock ? now : hw->clock);

    if (c)
        hw_thread_bind(s, hw, &s->context[c->number], now);
}

/* A place for a context that has become ready: an idle one, or one whose context only waits. */
static struct hw_thread *find_hw_thread(struct sim *s, const struct sim_thread *t)
{
    struct hw_thread *best = NULL;

    for (uint32_t i = 0; i < s->places; i++) {
        struct hw_thread *hw = &s->place[i];
        if (!hw->context && (!best || best->context || (int)hw->number == t->sched.last))
            best = hw;
        else if (!best && hw->context && hw->context->status == STATUS_WAITING)
            best = hw;
    }
    return best;
}

static void become_ready(struct sim *s, struct sim_thread *t)
{
    uint64_t now = t->wake_at;
    struct hw_thread *hw = find_hw_thread(s, t);

    t->status = STATUS_READY;
    sched_ready(&s->scheduler, &t->sched, now);
    if (hw && hw->context) { /* who waits there makes room */
        sim_spend(s, hw, now, (enum time_kind)hw->context->waits_as, hw->context, hw->context->object);
        hw_thread_unbind(hw);
    }
    if (hw)
        sim_dispatch(s, hw, now);
    for (uint32_t i = 0; s->scheduler.count > 0 && i < s->places; i++) /* from now on their quanta matter */
        sim_roll_back(s, &s->place[i], now, 0);
}

void sim_end_times(struct sim *s)
{
    uint64_t end = 0;

    for (uint32_t i = 0; i < s->places; i++)
        end = s->place[i].clock > end ? s->place[i].clock : end;
    for (uint32_t i = 0; i < s->places; i++) {
        struct hw_thread *hw = &s->place[i];
        struct sim_thread *t = hw->context ? hw->context : hw->empty_for;
        if (t && t->status == STATUS_WAITING) {
            sim_spend(s, hw, end, (enum time_kind)t->waits_as, t, t->object);
        } else if (hw->clock < end) {
            hw->seen.time[TIME_idle] += hw_thread_take_sync_time(hw, end - hw->clock);
            hw->clock = end;
        }
    }
}

void sim_ready_next(struct sim *s)
{
    become_ready(s, heap_pop(s));
    s->is_changed = true;
}

void sim_yield(struct sim *s, struct hw_thread *hw)
{
    struct sim_thread *t = hw->context;

    hw_thread_unbind(hw);
    s->is_changed = true;
    t->status = STATUS_READY;
    sched_ready(&s->scheduler, &t->sched, hw->clock);
    sim_dispatch(s, hw, hw->clock);
}

void sim_wait(struct sim *s, struct sim_thread *t, struct sync_object *o, enum time_kind as)
{
    struct hw_thread *hw = t->place;

    t->status = STATUS_WAITING;
    t->object = o;
    t->waits_as = (uint8_t)as;
    hw->runs = false;
    s->is_changed = true;
    if (!s->config.waits_busily || s->scheduler.count > 0) {
        hw_thread_unbind(hw);
        sim_dispatch(s, hw, hw->clock);
        if (!hw->context) {
            hw->empty_for = t;
            hw->empty_as = (uint8_t)as;
        }
    }
}

void sim_wake(struct sim *s, struct sim_thread *t, uint64_t when)
{
    assert(t->status == STATUS_WAITING || t->status == STATUS_UNBORN);
    s->is_changed = true;
    when += sim_start_jitter(s);
    if (t->place) {
        sim_spend(s, t->place, when, (enum time_kind)t->waits_as, t, t->object);
        t->status = STATUS_RUNNING;
        t->place->runs = true;
        return;
    }
    t->status = STATUS_READY;
    t->wake_at = when;
    sim_ready_later(s, t);
}
