/* SPDX-License-Identifier: MIT */
/* See ordered.h. A record has the number of its instruction, so that fences, which have no record, are executed between the references before
 * and after them. */
#include "sim/engine/ordered.h"

#include <assert.h>

#include "sim/engine/executor.h"

enum {
    FENCE_FLAGS = PEET_FL_FENCE_FULL | PEET_FL_FENCE_SS | PEET_FL_FENCE_LL,
    ORDERING_FLAGS = FENCE_FLAGS | PEET_FL_ATOMIC | PEET_FL_ACQUIRE | PEET_FL_RELEASE
};

void ordered_find_insns(struct sim *s, const struct peet_block *b, struct block_info *f)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < b->insns; i++)
        count += (b->insn[i].flags & ORDERING_FLAGS) != 0;
    f->ordering = count ? arena_alloc(&s->arena, count * sizeof *f->ordering) : NULL;
    assert(f->ordering || !count);
    for (uint32_t i = 0; i < b->insns; i++)
        if (b->insn[i].flags & ORDERING_FLAGS)
            f->ordering[f->orderings++] =
                (struct ordering_insn){ b->first_insn + i, b->insn[i].flags & ORDERING_FLAGS };
}

/* Executes the fences before an instruction of the current block. Returns the instruction's flags. */
static uint16_t ordered_fence_before(struct sim *s, struct hw_thread *hw, struct sim_thread *t, uint32_t insn)
{
    for (; t->orderings && t->ordering->insn < insn; t->ordering++, t->orderings--) {
        if (t->ordering->flags & PEET_FL_FENCE_FULL)
            store_buffer_fence(s, hw, ORDER_FENCE_FULL, t->ordering->insn);
        if (t->ordering->flags & PEET_FL_FENCE_SS)
            store_buffer_fence(s, hw, ORDER_FENCE_STORES, t->ordering->insn);
        if (t->ordering->flags & PEET_FL_FENCE_LL)
            store_buffer_fence(s, hw, ORDER_FENCE_LOADS, t->ordering->insn);
    }
    return t->orderings && t->ordering->insn == insn ? t->ordering->flags : 0;
}

void ordered_refer(struct sim *s, struct hw_thread *hw, const struct peet_record *r, uint16_t flags)
{
    struct ordered_access a = { .insn = r->id,
                                .kind = (uint8_t)r->kind,
                                .flags = (flags & PEET_FL_ACQUIRE ? ORDER_ACQUIRE : 0)
                                         | (flags & PEET_FL_RELEASE ? ORDER_RELEASE : 0),
                                .is_atomic = flags & PEET_FL_ATOMIC };
    uint64_t line = s->config.level[0].bytes ? s->config.level[0].line : ORDER_MAX_BYTES, done = 0;

    line = line < ORDER_MAX_BYTES ? line : ORDER_MAX_BYTES;
    s->counts.references++;
    do {
        uint64_t addr = r->addr + done, here = line - (addr & (line - 1));
        here = here < r->size - done ? here : r->size - done;
        a.addr = s->mode.translates ? sim_translate(s, hw->cpu, hw->thread->space, addr) : addr;
        a.page_offset = hw->filter->page_offset;
        a.size = (uint32_t)here;
        store_buffer_access(s, hw, &a);
        done += here;
    } while (done < r->size);
}

/* References up to another record or the end; with turn = "reference", one. Returns the next record. */
static const struct peet_record *ordered_refer_all(struct sim *s, struct hw_thread *hw, struct sim_thread *t,
                                                   const struct peet_record *r, const struct peet_record *end)
{
    for (; r < end && peet_is_reference(r); r++) {
        ordered_refer(s, hw, r, ordered_fence_before(s, hw, t, r->id));
        if (s->config.by_reference)
            return r + 1;
    }
    return r;
}

void ordered_execute(struct sim *s, struct hw_thread *hw, struct sim_thread *t, uint64_t limit)
{
    const struct peet_record *r = t->batch.records + t->at, *end = t->batch.records + t->batch.count;

    for (;;) {
        store_buffers_advance(s, &s->buffers, hw->clock);
        if (r->kind == PEET_BLOCK) {
            ordered_fence_before(s, hw, t, UINT32_MAX);
            sim_issue(s, hw, r);
            const struct block_info *f = sim_block(s, r++);
            t->ordering = f->ordering;
            t->orderings = f->orderings;
        }
        r = ordered_refer_all(s, hw, t, r, end);
        if (r >= end || r->kind > PEET_PREFETCH || !sim_may_continue(s, hw, limit))
            break;
        s->step.now = hw->clock;
    }
    t->at = (size_t)(r - t->batch.records);
}

/* Kinds of events that are acquire or release, as ranges of PEET_EVENTS. */
static const struct event_range {
    uint8_t first, last; /* enum peet_event_kind */
} SYNCHRONIZING[] = {
    { PEET_EV_thread_create, PEET_EV_thread_end },  { PEET_EV_mutex_lock, PEET_EV_cond_broadcast },
    { PEET_EV_barrier_wait, PEET_EV_barrier_wait }, { PEET_EV_sem_wait, PEET_EV_doall_join },
    { PEET_EV_signal_enter, PEET_EV_signal_exit },  { PEET_EV_fork, PEET_EV_exec },
    { PEET_EV_futex_wait, PEET_EV_thread_cancel },  { PEET_EV_arc_tail, PEET_EV_arc_head },
};

/* Whether other threads may rely on stores before the event, or this thread must not load before it. */
static bool event_synchronizes(uint32_t kind)
{
    for (size_t i = 0; i < sizeof SYNCHRONIZING / sizeof *SYNCHRONIZING; i++)
        if (kind >= SYNCHRONIZING[i].first && kind <= SYNCHRONIZING[i].last)
            return true;
    return false;
}

void ordered_event(struct sim *s, struct hw_thread *hw, struct sim_thread *t, const struct peet_event *e)
{
    ordered_fence_before(s, hw, t, UINT32_MAX);
    t->orderings = 0;
    if (!e || event_synchronizes(e->kind))
        store_buffer_drain(s, hw, e ? e->site : 0);
}
