/* SPDX-License-Identifier: MIT */
/* The event loop: the hardware thread with the least local time takes the next step. */
#include "sim/engine/sim.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "map/source/source_sample.h"
#include "sim/engine/executor.h"
#include "sim/spec/speculation.h"

/* ---- making one ---- */

/* Threads that the source has created since the last call. */
static int sim_add_threads(struct sim *s, struct peet_err *err)
{
    for (; s->threads < s->source->threads; s->threads++) {
        uint32_t i = s->threads;
        const struct source_thread *from = &s->source->thread[i];
        uint32_t *at = map_put(&s->thread_by_id, from->id, 0);
        if (!at)
            return err_set(err, PEET_ERR_MEMORY, "no memory for %" PRIu32 " threads", i);
        *at = i + 1;
        int r = sim_add_program(s, from->process, &s->thread[i].space, err);
        if (r < 0)
            return r;
        s->thread[i].sched = (struct sched_thread){ .number = i, .group = from->process, .last = -1 };
        s->thread[i].waiter = (struct sync_waiter){ .number = i, .priority = i };
    }
    return 0;
}

static int sim_make_threads(struct sim *s, struct peet_err *err)
{
    s->thread = calloc(s->source->max_threads + 1, sizeof *s->thread);
    s->wakeups.thread = calloc(s->source->max_threads + 1, sizeof *s->wakeups.thread);
    s->thread_by_id.value_size = sizeof(uint32_t);
    if (!s->thread || !s->wakeups.thread)
        return err_set(err, PEET_ERR_MEMORY, "no memory for %" PRIu32 " threads", s->source->max_threads);
    return sim_add_threads(s, err);
}

static int sim_make_hw_threads(struct sim *s, struct peet_err *err)
{
    s->hw_threads = s->config.cpus * s->config.core_threads;
    s->hw_thread = calloc(s->hw_threads, sizeof *s->hw_thread);
    s->order.hw = calloc(s->hw_threads, sizeof *s->order.hw);
    s->order.issue_at = calloc(s->config.cpus, sizeof *s->order.issue_at);
    if (!s->hw_thread || !s->order.hw || !s->order.issue_at)
        return err_set(err, PEET_ERR_MEMORY, "no memory for %" PRIu32 " hardware threads", s->hw_threads);
    for (uint32_t i = 0; i < s->hw_threads; i++) {
        s->hw_thread[i].number = i;
        s->hw_thread[i].cpu = i / s->config.core_threads;
        s->hw_thread[i].program = NO_PROGRAM;
    }
    return 0;
}

int sim_new(const struct machine_config *config, struct source *source, struct sim **ret, struct peet_err *err)
{
    struct sim *s = calloc(1, sizeof *s);
    int r;

    if (!s)
        return err_set(err, PEET_ERR_MEMORY, "no memory for a simulation");
    s->config = *config;
    s->source = source;
    s->executor = &executor_records;
    sim_init_sync_host(s);
    s->sync.random = config->seed * 2 + 1;
    s->sync.object.value_size = sizeof(struct sync_object *);
    s->sync.identity.value_size = sizeof(uint64_t);
    spaces_init(&s->spaces, source->trace);
    s->spaces.by_frame &= !source_samples_sets(source);
    if ((r = sim_make_threads(s, err)) < 0 || (r = sim_make_hw_threads(s, err)) < 0) {
        sim_free(s);
        return r;
    }
    if (config->speculation.policy != SPECULATE_NONE)
        s->sync.speculation = speculation_new(s);
    sim_set_remap(s, NULL);
    sim_set_lookahead(s, true);
    sched_init(&s->scheduler, config->scheduler,
               &(struct sched_config){ .hw_threads = s->hw_threads, .quantum = config->quantum, .seed = config->seed });
    *ret = s;
    return 0;
}

void sim_set_remap(struct sim *s, struct remap *r)
{
    s->remap = r;
    s->mode.translates = r || spaces_translate(&s->spaces);
}

void sim_set_lookahead(struct sim *s, bool enabled)
{
    s->mode.looks_ahead = enabled;
}

void sim_set_waiter(struct sim *s, void (*waiter)(void *self, const struct sim_wait *w), void *self)
{
    s->hooks.waiter = waiter;
    s->hooks.waiter_self = self;
}

void sim_set_listener(struct sim *s, const struct sim_listener *l)
{
    s->hooks.listener = l;
}

void sim_set_stop(struct sim *s, const volatile uint32_t *stop)
{
    s->hooks.stop = stop;
}

void sim_free(struct sim *s)
{
    if (!s)
        return;
    s->executor->release(s);
    speculation_free(s->sync.speculation, s->threads);
    sim_loop_release(s);
    map_release(&s->sync.object);
    map_release(&s->sync.identity);
    map_release(&s->thread_by_id);
    arena_release(&s->arena);
    spaces_release(&s->spaces);
    free(s->program);
    free(s->thread);
    free(s->wakeups.thread);
    free(s->hw_thread);
    free(s->order.hw);
    free(s->order.issue_at);
    free(s->blocks.info);
    free(s->hooks.observers);
    free(s);
}

/* ---- one step ---- */

static bool hw_thread_quantum_is_over(struct sim *s, const struct hw_thread *hw)
{
    return s->scheduler.count > 0
           && sched_is_over(&s->scheduler, &hw->thread->sched, hw->number, hw->clock - hw->began, hw->clock);
}

void sim_check_quantum(struct sim *s, struct hw_thread *hw)
{
    if (hw_thread_quantum_is_over(s, hw))
        sim_yield(s, hw);
}

void sim_reach_event(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    spaces_event(&s->spaces, hw->thread->space, e);
    if (s->remap)
        remap_event(s->remap, hw->thread->sched.group, e);
    if (s->hooks.listener)
        s->hooks.listener->event(s->hooks.listener->self, hw->thread->sched.number, e);
    s->executor->event(s, hw->thread->sched.number, e);
    s->step.site = hw->thread->site = e->site;
    sim_event(s, hw, e);
}

uint64_t sim_end_of_quantum(struct sim *s, const struct hw_thread *hw, uint64_t limit)
{
    uint64_t quantum = s->config.quantum ? s->config.quantum : limit - hw->clock;
    uint64_t over = hw->began + quantum > hw->clock    ? hw->began + quantum
                    : hw_thread_quantum_is_over(s, hw) ? hw->clock + 1
                                                       : hw->clock + quantum;

    return s->scheduler.count > 0 && over < limit ? over : limit;
}

int sim_take_answer(struct sim *s, struct hw_thread *hw, int answer, struct peet_err *err)
{
    hw->thread->is_idle = false;
    hw->thread->reply = 0;
    int r = answer < 0 ? answer : sim_add_threads(s, err);
    if (r < 0)
        return r;
    if (answer == 0)
        sim_end_thread(s, hw);
    return answer;
}

/* One step of a hardware thread. */
static int sim_take_step(struct sim *s, struct hw_thread *hw, uint64_t limit, struct peet_err *err)
{
    struct sim_thread *t = hw->thread;

    sim_enter_program(s, hw);
    hw->forward.iterations = 0; /* it has the least local time: this is final */
    hw->lookahead.is_on = false;
    s->step.now = hw->clock;
    s->step.number = hw->number;
    if (t->pending && !sim_pending(s, hw)) {
        if (hw->thread == t && hw->runs) /* a thread that spins may occupy the hardware thread that the holder needs */
            sim_check_quantum(s, hw);
        return 0;
    }
    return s->executor->step(s, hw, limit, err);
}

void sim_range(struct sim *s, struct hw_thread *hw, uint64_t addr, uint64_t size, enum peet_kind kind)
{
    uint32_t line = s->config.level[0].bytes ? s->config.level[0].line : 64;

    for (uint64_t done = 0, here; done < size && !s->hooks.is_stopped; done += here) {
        if (hw->is_undone)
            return;
        here = line - ((addr + done) & (line - 1));
        here = here < size - done ? here : size - done;
        if (s->remap && here > 8) /* remap rules move elements separately */
            here = 8 - ((addr + done) & 7);
        hw_thread_issue(s, hw, (here + 15) / 16 * s->config.cost[PEET_CL_plain]);
        s->executor->library_access(
            s, hw,
            &(struct peet_record){
                .addr = addr + done, .id = SIM_NO_INSN, .size = (uint32_t)here & 0xffffff, .kind = kind });
        s->hooks.is_stopped = s->hooks.stop && *s->hooks.stop; /* a range may be as long as memory */
    }
}

/* ---- the loop ---- */

static bool hw_thread_precedes(const struct hw_thread *a, const struct hw_thread *b)
{
    return a->clock != b->clock ? a->clock < b->clock : a->number < b->number;
}

/* The first hardware thread of the order has another clock: moves it to its position. */
static void order_move_first(struct sim *s)
{
    struct hw_thread *hw = s->order.hw[0];
    uint32_t i = 1;

    for (; i < s->order.count && hw_thread_precedes(s->order.hw[i], hw); i++)
        s->order.hw[i - 1] = s->order.hw[i];
    s->order.hw[i - 1] = hw;
}

/* Sorts the hardware threads that can take a step. */
static void order_rebuild(struct sim *s)
{
    s->order.count = 0;
    for (uint32_t i = 0; i < s->hw_threads; i++)
        if (s->hw_thread[i].runs) {
            uint32_t at = s->order.count++;
            for (; at > 0 && hw_thread_precedes(&s->hw_thread[i], s->order.hw[at - 1]); at--)
                s->order.hw[at] = s->order.hw[at - 1];
            s->order.hw[at] = &s->hw_thread[i];
        }
    s->order.needs_sort = false;
}

/* Steps of the hardware thread with the least local time, until another one has it, or a step has changed another one. */
static int sim_take_steps(struct sim *s, struct hw_thread *hw, struct progress *progress, struct peet_err *err)
{
    uint64_t limit = s->order.count > 1 ? s->order.hw[1]->clock + s->config.slack : UINT64_MAX;
    int r;

    if (s->wakeups.count && s->wakeups.thread[0]->wakeup.at < limit)
        limit = s->wakeups.thread[0]->wakeup.at;
    if (s->sync.speculation && speculation_due(s) < limit)
        limit = speculation_due(s);
    do {
        r = sim_take_step(s, hw, limit, err);
        if (++s->step.count % s->executor->progress_steps == 0) {
            if (progress)
                progress_at(progress, s->counts.references);
            s->hooks.is_stopped = s->hooks.stop && *s->hooks.stop;
        }
    } while (r == 0 && hw->runs && hw->clock < limit && !s->order.needs_sort && !s->hooks.is_stopped);
    return r;
}

/* Whether a barrier opens before any thread does something. */
static bool sim_next_is_confirmation(const struct sim *s, const struct hw_thread *first)
{
    uint64_t due = speculation_due(s);

    return due != UINT64_MAX && (!first || due <= first->clock)
           && (!s->wakeups.count || due <= s->wakeups.thread[0]->wakeup.at);
}

static int sim_run_all(struct sim *s, struct progress *progress, struct peet_err *err)
{
    int r = 0;

    while (r == 0 && !s->hooks.is_stopped && !s->source->has_ended) {
        if (s->order.needs_sort)
            order_rebuild(s);
        struct hw_thread *hw = s->order.count ? s->order.hw[0] : NULL;
        if (s->sync.speculation && sim_next_is_confirmation(s, hw)) {
            speculation_confirm(s);
            continue;
        }
        if (s->wakeups.count && (!hw || s->wakeups.thread[0]->wakeup.at <= hw->clock)) {
            sim_ready_next(s);
            continue;
        }
        if (!hw && s->counts.alive > 0 && sim_force_wakeup(s))
            continue;
        if (!hw)
            return s->counts.alive > 0 ? sim_report_deadlock(s, err) : 0;
        r = sim_take_steps(s, hw, progress, err);
        if (!s->order.needs_sort)
            order_move_first(s);
    }
    return r == 0 && s->source->has_ended ? s->executor->end(s, err) : r;
}

uint64_t sim_thread_clock(const struct sim *s, uint32_t thread)
{
    return thread < s->threads && s->thread[thread].hw ? s->thread[thread].hw->clock : 0;
}

uint64_t sim_clock(const struct sim *s, unsigned cpu)
{
    uint64_t clock = s->executor->clock(s);

    for (uint32_t i = 0; i < s->hw_threads; i++)
        if (s->hw_thread[i].cpu == cpu && s->hw_thread[i].clock > clock)
            clock = s->hw_thread[i].clock;
    return clock;
}

int sim_run(struct sim *s, struct progress *progress, struct peet_err *err)
{
    int r = s->executor->begin(s, err);

    if (r < 0)
        return r;
    for (uint32_t i = 0; i < s->threads; i++)
        if (s->source->thread[i].birth == BIRTH_FIRST) {
            s->counts.alive++;
            s->thread[i].wakeup.at = sim_start_jitter(s);
            s->thread[i].status = STATUS_READY;
            sim_ready_later(s, &s->thread[i]);
        }
    r = sim_run_all(s, progress, err);
    sim_end_times(s);
    return r;
}
