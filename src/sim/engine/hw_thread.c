/* SPDX-License-Identifier: MIT */
/* Which context is where: those that wait, those that will be ready, and who gets a place when one is free. */
#include <assert.h>

#include "sim/engine/state.h"

/* ---- contexts that will be ready ---- */

static bool comes_before(const struct context *a, const struct context *b)
{
    return a->wake_at != b->wake_at ? a->wake_at < b->wake_at : a->order < b->order;
}

void sim_ready_later(struct sim *s, struct context *c)
{
    size_t i = s->heap_count++;

    c->order = s->woken++;
    for (; i > 0 && comes_before(c, s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = c;
}

static struct context *heap_pop(struct sim *s)
{
    struct context *first = s->heap[0], *last = s->heap[--s->heap_count];
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

uint64_t place_take_own(struct place *p, uint64_t cycles)
{
    uint64_t left = cycles, elsewhere = 0;

    left = take_own(&p->own.elsewhere, &elsewhere, left);
    left = take_own(&p->own.compute, &p->seen.time[TIME_compute], left);
    left = take_own(&p->own.stall, &p->seen.time[TIME_stall], left);
    left = take_own(&p->own.bus, &p->seen.time[TIME_bus], left);
    p->seen.sync += cycles - left;
    return left;
}

/* What a context waits for: at an arc, that is the condition on which it decides. */
static struct object *waits_for(const struct context *c, struct object *o)
{
    return o->seen.kind == OBJECT_ARC ? c->decides : o;
}

static void wait_for(struct context *c, struct object *o, uint64_t cycles)
{
    c->waited += cycles;
    o->seen.waited += cycles;
    o->seen.longest = c->waited > o->seen.longest ? c->waited : o->seen.longest;
}

void sim_spend(struct sim *s, struct place *p, uint64_t until, enum time_kind as, struct context *c, struct object *o)
{
    if (until <= p->clock)
        return;
    uint64_t cycles = place_take_own(p, until - p->clock);
    o = waits_for(c, o);
    p->clock = until;
    p->seen.time[as] += cycles;
    o->seen.spent += cycles;
    wait_for(c, o, cycles);
    if (cycles && s->waiter)
        s->waiter(s->waiting,
                  &(struct sim_wait){ .thread = c->sched.number,
                                      .kind = o->seen.kind,
                                      .as = (uint8_t)as,
                                      .addr = o->seen.addr,
                                      .site = c->site,
                                      .cycles = cycles,
                                      .leaf = s->block_exec ? blocks_path_counts(s->block_exec, c->sched.number)
                                                            : UINT32_MAX });
}

/* ---- who is where ---- */

/* Nobody has been at a place up to that time. */
static void end_empty(struct sim *s, struct place *p, uint64_t now)
{
    struct context *c = p->empty_for;

    if (c) {
        sim_spend(s, p, now, (enum time_kind)p->empty_as, c, c->object);
        c->left = p->clock;
    }
    place_spend(p, now, TIME_idle);
    p->empty_for = NULL;
}

/* A context that comes to a place has waited without one, if it waited. */
static void end_absence(struct sim *s, struct context *c, uint64_t now)
{
    if (!c->is_away)
        return;
    c->is_away = false;
    if (s->place[c->sched.last].empty_for == c) /* and may have left it empty */
        end_empty(s, &s->place[c->sched.last], now);
    if (c->wake_at > c->left)
        wait_for(c, waits_for(c, c->object), c->wake_at - c->left);
}

static void leave_place(struct place *p)
{
    p->context->is_away = p->context->status == STATUS_WAITING;
    p->context->left = p->clock;
    p->context->place = NULL;
    p->context = NULL;
    p->runs = false;
    p->ahead = 0;
    p->lead.is_on = false;
}

static void take_place(struct sim *s, struct place *p, struct context *c, uint64_t now)
{
    end_empty(s, p, now);
    end_absence(s, c, now);
    if (c->sched.last != (int)p->number || p->seen.switches == 0) {
        p->seen.switches++;
        if (p->seen.switches > 1)
            place_spend(p, p->clock + s->config.switch_cost, TIME_change);
    }
    c->sched.last = (int)p->number;
    c->party.cpu = p->cpu;
    c->status = STATUS_RUNNING;
    c->place = p;
    p->context = c;
    c->hard++; /* what a trip had found here may be gone */
    p->began = p->clock;
    p->runs = true;
    s->is_changed = true;
}

void sim_employ(struct sim *s, struct place *p, uint64_t now)
{
    struct sched_thread *c = sched_pick(&s->scheduler, p->number, now > p->clock ? now : p->clock);

    if (c)
        take_place(s, p, &s->context[c->number], now);
}

/* A place for a context that has become ready: an idle one, or one whose context only waits. */
static struct place *find_place(struct sim *s, const struct context *c)
{
    struct place *best = NULL;

    for (uint32_t i = 0; i < s->places; i++) {
        struct place *p = &s->place[i];
        if (!p->context && (!best || best->context || (int)p->number == c->sched.last))
            best = p;
        else if (!best && p->context && p->context->status == STATUS_WAITING)
            best = p;
    }
    return best;
}

static void become_ready(struct sim *s, struct context *c)
{
    uint64_t now = c->wake_at;
    struct place *p = find_place(s, c);

    c->status = STATUS_READY;
    sched_ready(&s->scheduler, &c->sched, now);
    if (p && p->context) { /* who waits there makes room */
        sim_spend(s, p, now, (enum time_kind)p->context->waits_as, p->context, p->context->object);
        leave_place(p);
    }
    if (p)
        sim_employ(s, p, now);
    for (uint32_t i = 0; s->scheduler.count > 0 && i < s->places; i++) /* from now on their quanta matter */
        sim_take_back(s, &s->place[i], now, 0);
}

void sim_end_times(struct sim *s)
{
    uint64_t end = 0;

    for (uint32_t i = 0; i < s->places; i++)
        end = s->place[i].clock > end ? s->place[i].clock : end;
    for (uint32_t i = 0; i < s->places; i++) {
        struct place *p = &s->place[i];
        struct context *c = p->context ? p->context : p->empty_for;
        if (c && c->status == STATUS_WAITING) {
            sim_spend(s, p, end, (enum time_kind)c->waits_as, c, c->object);
        } else if (p->clock < end) {
            p->seen.time[TIME_idle] += place_take_own(p, end - p->clock);
            p->clock = end;
        }
    }
}

void sim_ready_next(struct sim *s)
{
    become_ready(s, heap_pop(s));
    s->is_changed = true;
}

void sim_give_way(struct sim *s, struct place *p)
{
    struct context *c = p->context;

    leave_place(p);
    s->is_changed = true;
    c->status = STATUS_READY;
    sched_ready(&s->scheduler, &c->sched, p->clock);
    sim_employ(s, p, p->clock);
}

void sim_wait(struct sim *s, struct context *c, struct object *o, enum time_kind as)
{
    struct place *p = c->place;

    c->status = STATUS_WAITING;
    c->object = o;
    c->waits_as = (uint8_t)as;
    p->runs = false;
    s->is_changed = true;
    if (!s->config.waits_busily || s->scheduler.count > 0) {
        leave_place(p);
        sim_employ(s, p, p->clock);
        if (!p->context) {
            p->empty_for = c;
            p->empty_as = (uint8_t)as;
        }
    }
}

void sim_wake(struct sim *s, struct context *c, uint64_t when)
{
    assert(c->status == STATUS_WAITING || c->status == STATUS_UNBORN);
    s->is_changed = true;
    when += sim_late(s);
    if (c->place) {
        sim_spend(s, c->place, when, (enum time_kind)c->waits_as, c, c->object);
        c->status = STATUS_RUNNING;
        c->place->runs = true;
        return;
    }
    c->status = STATUS_READY;
    c->wake_at = when;
    sim_ready_later(s, c);
}
