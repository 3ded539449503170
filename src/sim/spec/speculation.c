/* SPDX-License-Identifier: MIT */
#include "sim/spec/speculation.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/engine/checkpoint.h"
#include "sim/sync/parts.h"

static struct thread_speculation *speculation_of(const struct sim *s, const struct sim_thread *t)
{
    return &s->sync.speculation->thread[t->sched.number];
}

struct speculation *speculation_new(const struct sim *s)
{
    struct speculation *x = mem_alloc(1, sizeof *x);

    x->thread = mem_alloc(s->source->max_threads + 1, sizeof *x->thread);
    x->counts = mem_alloc(s->hw_threads, sizeof *x->counts);
    x->scores.value_size = sizeof(struct barrier_score);
    x->due = mem_alloc(s->source->max_threads + 1, sizeof(struct sync_object *));
    return x;
}

void speculation_free(struct speculation *x, uint32_t threads)
{
    if (!x)
        return;
    for (uint32_t i = 0; i < threads; i++)
        record_hold_release(&x->thread[i].hold);
    map_release(&x->scores);
    free(x->thread);
    free(x->counts);
    free(x->due);
    free(x);
}

/* ---- failures ---- */

/* The score of a hardware thread at a barrier. Valid until the next call. */
static struct barrier_score *speculation_score(const struct sim *s, const struct hw_thread *hw,
                                               const struct sync_object *o)
{
    struct barrier_score *score = map_put(&s->sync.speculation->scores, (uintptr_t)o, hw->number);

    assert(score);
    return score;
}

/* Sets the thread of a hardware thread back to its checkpoint, as of cycle `now`. Its caches have done so. It waits for the confirmation. */
static void speculation_undo(struct sim *s, struct hw_thread *hw, uint64_t now)
{
    struct sim_thread *t = hw->thread;
    struct thread_speculation *x = speculation_of(s, t);
    struct speculation_counts *n = &s->sync.speculation->counts[hw->number];
    struct time_account *a = &hw->account;

    if (x->phase == SPECULATION_HELD)
        sim_spend(s, hw, now, TIME_barrier, t, x->barrier);
    a->rollback += a->time[TIME_compute] - x->start.compute;
    a->time[TIME_compute] = x->start.compute;
    n->undone_instructions += a->instructions - x->start.instructions;
    uint64_t undone_stall = a->time[TIME_stall] - x->start.stall + a->time[TIME_bus] - x->bus;
    n->undone_stall += undone_stall;
    speculation_score(s, hw, x->barrier)->cost +=
        s->config.speculation.save + s->config.speculation.roll_back + 2 * undone_stall;
    a->instructions = x->start.instructions;
    s->counts.references -= x->references;
    s->sync.speculation->undone_references += x->references;
    x->repeats = x->repeats > x->references ? x->repeats : x->references;
    record_hold_rewind(&x->hold, &t->batch);
    t->at = x->start.at;
    uint64_t restored = (now > hw->clock ? now : hw->clock) + s->config.speculation.roll_back;
    a->rollback += restored - hw->clock;
    hw->clock = restored;
    x->phase = SPECULATION_UNDONE;
    hw->speculates = false;
    s->sync.speculation->active--;
    t->status = STATUS_WAITING;
    t->wait.object = x->barrier;
    t->wait.as = TIME_barrier;
    t->wait.since = hw->clock;
    t->wait.cycles = 0;
    hw->runs = false;
    s->order.needs_sort = true;
}

/* A thread that fails in its own step is set back when the step is over. */
static void speculation_violated(void *self, unsigned cpu, enum violation why)
{
    struct sim *s = self;
    struct hw_thread *hw = &s->hw_thread[cpu];

    s->sync.speculation->counts[cpu].roll_backs[why]++;
    if (cpu == s->step.number)
        hw->is_undone = true;
    else
        speculation_undo(s, hw, s->step.now);
}

void speculation_make_room(struct sim *s)
{
    for (uint32_t i = 0; i < s->hw_threads && s->counts.alive > s->hw_threads; i++)
        if (s->hw_thread[i].speculates) {
            s->sync.speculation->counts[i].forced++;
            hierarchy_roll_back(s->memory, s->hw_thread[i].cpu);
            speculation_undo(s, &s->hw_thread[i], s->step.now);
        }
}

int speculation_begin(struct sim *s, struct peet_err *err)
{
    bool keeps_read = s->config.speculation.drop == DROP_WRITTEN;

    if (s->source->is_live)
        return err_set(err, PEET_ERR_USAGE,
                       "speculation.policy: a program that runs cannot be rolled back; record it first");
    if (s->observer)
        return err_set(err, PEET_ERR_USAGE,
                       "speculation.policy: a run that is observed, as for a profile, does not speculate; take none");
    if (s->spaces.count > 1)
        return err_set(err, PEET_ERR_USAGE, "speculation.policy: the trace has several processes; one was expected");
    if (hierarchy_set_speculation(s->memory, keeps_read, speculation_violated, s) < 0)
        return err_set(err, PEET_ERR_MEMORY, "no memory for the lines of speculating cores");
    return 0;
}

/* ---- barriers ---- */

/* Whether speculation at the barrier has cost at most 1/400 of the time so far more than it has gained: the policy "adaptive". */
static bool speculation_is_worth(const struct sim *s, const struct hw_thread *hw, const struct sync_object *o)
{
    const struct barrier_score *score = speculation_score(s, hw, o);

    return score->cost <= score->gain + hw->clock / 400;
}

/* Threads speculate at one barrier at a time, and only while each has a hardware thread. */
static bool speculation_is_allowed(const struct sim *s, const struct hw_thread *hw, const struct sync_object *o)
{
    const struct speculation *x = s->sync.speculation;

    if (s->config.speculation.policy == SPECULATE_ADAPTIVE && !speculation_is_worth(s, hw, o))
        return false;
    return s->counts.alive <= s->hw_threads && s->scheduler.count == 0 && (x->active == 0 || x->barrier == o);
}

void speculation_arrive(struct sim *s, struct hw_thread *hw, struct sync_object *o)
{
    struct sim_thread *t = hw->thread;
    struct thread_speculation *x = speculation_of(s, t);
    struct sync_barrier *b = &o->barrier;
    bool speculates = speculation_is_allowed(s, hw, o);

    assert(x->phase == SPECULATION_NONE);
    s->sync.speculation->counts[hw->number].barriers++;
    hierarchy_arrive(s->memory, hw->cpu, speculates);
    if (b->arrived + 1 == b->expected && x->overlap) { /* all wait for it, and less by the overlap */
        uint64_t margin = hw->clock > b->opens ? hw->clock - b->opens : 0;
        speculation_score(s, hw, x->barrier)->gain += x->overlap < margin ? x->overlap : margin;
    }
    x->overlap = 0;
    waiters_append(&b->first, &b->last, &t->waiter);
    b->opens = b->arrived ? cycle_later(b->opens, hw->clock) : hw->clock;
    if (++b->arrived == b->expected) {
        b->opens += s->config.sync.cost;
        s->sync.speculation->due[s->sync.speculation->dues++] = o;
        s->order.needs_sort = true;
    }
    x->barrier = o;
    if (!speculates) {
        sim_wait(s, t, o, TIME_barrier);
        return;
    }
    s->sync.speculation->active++;
    s->sync.speculation->barrier = o;
    s->sync.speculation->counts[hw->number].speculations++;
    checkpoint_take(&x->start, hw);
    record_hold_begin(&x->hold);
    x->bus = hw->account.time[TIME_bus];
    x->references = 0;
    x->phase = SPECULATION_RUNS;
    hw->speculates = true;
    hw->clock += s->config.speculation.save;
    hw->account.rollback += s->config.speculation.save;
}

static size_t speculation_next_due(const struct speculation *x)
{
    size_t first = 0;

    for (size_t i = 1; i < x->dues; i++)
        first = x->due[i]->barrier.opens < x->due[first]->barrier.opens ? i : first;
    return first;
}

uint64_t speculation_due(const struct sim *s)
{
    const struct speculation *x = s->sync.speculation;

    return x->dues ? x->due[speculation_next_due(x)]->barrier.opens : UINT64_MAX;
}

/* A thread passes the barrier. */
static void speculation_pass(struct sim *s, struct sim_thread *t, struct sync_object *o)
{
    struct thread_speculation *x = speculation_of(s, t);
    uint8_t phase = x->phase;

    x->phase = SPECULATION_NONE;
    record_hold_end(&x->hold);
    if (phase == SPECULATION_RUNS || phase == SPECULATION_HELD) {
        struct barrier_score *score = speculation_score(s, t->hw, o);
        uint64_t until = t->hw->clock < o->barrier.opens ? t->hw->clock : o->barrier.opens;
        x->overlap = until > x->start.clock ? until - x->start.clock : 0;
        score->cost += s->config.speculation.save;
        t->hw->speculates = false;
        s->sync.speculation->active--;
    }
    if (phase == SPECULATION_RUNS)
        return;
    o->summary.waits++;
    sim_wake(s, t, o->barrier.opens);
}

/* The caches of all cores see that the barrier opens: copies that expire become invalid in each of them. */
void speculation_confirm(struct sim *s)
{
    struct speculation *x = s->sync.speculation;
    size_t at = speculation_next_due(x);
    struct sync_object *o = x->due[at];
    struct sync_waiter *p = o->barrier.first;

    x->due[at] = x->due[--x->dues];
    o->barrier.first = o->barrier.last = NULL;
    o->barrier.arrived = 0;
    o->barrier.round++;
    o->summary.uses++;
    for (unsigned cpu = 0; cpu < s->config.cpus; cpu++)
        if (!s->hw_thread[cpu].speculates || speculation_of(s, s->hw_thread[cpu].thread)->barrier == o)
            hierarchy_confirm(s->memory, cpu);
    while (p) {
        struct sync_waiter *next = p->next;
        speculation_pass(s, &s->thread[p->number], o);
        p = next;
    }
}

void speculation_force(struct sim *s, struct sync_object *o)
{
    for (const struct sync_waiter *p = o->barrier.first; p; p = p->next) {
        const struct sim_thread *t = &s->thread[p->number];
        o->barrier.opens = cycle_later(o->barrier.opens, t->hw ? t->hw->clock : t->wait.since);
        s->counts.forced_wakeups++;
    }
    s->sync.speculation->due[s->sync.speculation->dues++] = o;
}

/* ---- steps ---- */

int speculation_step(struct sim *s, struct hw_thread *hw, uint64_t limit, speculation_advance *advance,
                     struct peet_err *err)
{
    struct thread_speculation *x = speculation_of(s, hw->thread);
    struct speculation_counts *n = &s->sync.speculation->counts[hw->number];
    uint64_t *undone = &s->sync.speculation->undone_references; /* a step can undo other threads */
    uint64_t references = s->counts.references + *undone, misses = hw->counts->misses;
    int r = advance(s, hw, limit, err);

    references = s->counts.references + *undone - references;
    misses = hw->counts->misses - misses;
    if (x->repeats && x->phase != SPECULATION_UNDONE) {
        n->repeated_references += references;
        n->repeated_misses += misses;
        x->repeats -= references < x->repeats ? references : x->repeats;
    } else {
        n->other_references += references;
        n->other_misses += misses;
    }
    if (hw->speculates)
        x->references += references;
    if (hw->is_undone) {
        hw->is_undone = false;
        speculation_undo(s, hw, hw->clock);
    }
    return r;
}

/* The thread of a hardware thread waits until its accesses are confirmed. */
static void speculation_hold(struct sim *s, struct hw_thread *hw)
{
    struct sim_thread *t = hw->thread;
    struct thread_speculation *x = speculation_of(s, t);

    x->phase = SPECULATION_HELD;
    t->status = STATUS_WAITING;
    t->wait.object = x->barrier;
    t->wait.as = TIME_barrier;
    t->wait.since = hw->clock;
    t->wait.cycles = 0;
    hw->runs = false;
    s->order.needs_sort = true;
}

bool speculation_holds(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    bool is_memory = e->kind == PEET_EV_range_read || e->kind == PEET_EV_range_write || e->kind == PEET_EV_range_copy
                     || e->kind == PEET_EV_range_compare;

    if (!hw->speculates || is_memory)
        return false;
    speculation_hold(s, hw);
    return true;
}

int speculation_next(struct sim *s, struct hw_thread *hw, struct peet_err *err)
{
    struct sim_thread *t = hw->thread;
    struct thread_speculation *x = speculation_of(s, t);

    if (record_hold_next(&x->hold, &t->batch))
        return 1;
    int answer = x->has_ended ? 0 : source_next(s->source, t->sched.number, t->reply, &t->batch, err);
    if (answer != 0)
        return answer;
    x->has_ended = true;
    t->batch.count = 0;
    if (hw->speculates)
        speculation_hold(s, hw);
    return 0;
}

void speculation_result(const struct sim *s, struct sim_result *ret)
{
    ret->speculations = s->hw_threads;
    ret->speculation = mem_alloc(s->hw_threads, sizeof *ret->speculation);
    memcpy(ret->speculation, s->sync.speculation->counts, s->hw_threads * sizeof *ret->speculation);
    for (uint32_t i = 0; s->memory && i < s->hw_threads; i++)
        ret->speculation[i].rollback_misses = hierarchy_rollback_misses(s->memory, s->hw_thread[i].cpu);
}
