/* SPDX-License-Identifier: MIT */
/* Threads of the program, hardware threads of the machine, and which runs where. docs/design/engine.md, "Threads". */
#ifndef SIM_ENGINE_THREAD_H
#define SIM_ENGINE_THREAD_H

#include "sim/engine/doall.h"
#include "sim/engine/fast_forward.h"
#include "sim/engine/lookahead.h"

/* UNBORN: not created; READY: waits for a hardware thread; WAITING: for an object. */
enum thread_status { STATUS_UNBORN, STATUS_READY, STATUS_RUNNING, STATUS_WAITING, STATUS_ENDED };

/* An entry of the queue of threads that become ready at a known cycle. */
struct wakeup {
    uint64_t at;     /* cycle in which the thread becomes ready */
    uint64_t number; /* entries made before it: the order of those at the same cycle */
};

/* A thread of the program in the simulator. */
struct sim_thread {
    struct sched_thread sched;
    uint32_t space;       /* index of its process: in sim.spaces and sim.program */
    uint8_t status;       /* enum thread_status */
    uint8_t pending;      /* enum pending */
    bool is_idle;         /* its last event was a yield: it had nothing to do */
    struct hw_thread *hw; /* on which it runs or waits; NULL: none */
    uint64_t reply;       /* to its last event, for the source */
    uint64_t site;        /* return address of the call of its last event; 0: not known */
    struct thread_wait wait;
    uint64_t advanced; /* cycles at shared accesses, before their records came; taken off later ones */
    struct wakeup wakeup;
    struct sync_waiter waiter;      /* at locks and barriers */
    struct sim_thread *next_queued; /* at the same object; NULL: the last */
    struct doall_part doall;
    struct source_words words;            /* block executor: event words of the thread, from the next one on */
    struct peet_event event;              /* block executor: the event that they have reached */
    struct peet_batch batch;              /* record executor: records of the thread */
    size_t at;                            /* next record of the batch */
    struct loop_position loop;            /* at a strided loop: position in it */
    const struct ordering_insn *ordering; /* with store buffers: of its block, those not yet executed */
    uint32_t orderings;
};

#define NO_PROGRAM UINT32_MAX

/* The wait for which a hardware thread is empty. */
struct empty_wait {
    struct sim_thread *thread; /* ran here last, and waits; NULL: the hardware thread is idle, or it has a thread */
    uint8_t as;                /* enum time_kind of the wait; valid if thread is not NULL */
};

/* A hardware thread of a core. */
struct hw_thread {
    unsigned number, cpu;               /* its index in sim.hw_thread; index of its core */
    struct l1_filter *filter;           /* of its core */
    const struct memory_counts *counts; /* of its core */
    struct sim_thread *thread;          /* NULL: none; `empty` says for which wait */
    struct empty_wait empty;
    bool runs;                   /* its thread can take a step */
    bool speculates;             /* the accesses of its thread are speculative (sim/spec/speculation.h) */
    bool is_undone;              /* the speculation has failed in the step that is being taken */
    uint64_t clock;              /* local time: cycles */
    uint64_t began;              /* cycle in which its thread was bound */
    struct time_account account; /* of its cycles up to the clock */
    uint32_t program;            /* of the thread that ran last; NO_PROGRAM: none yet */
    struct time_account flushed; /* what of `account` is in the sums of programs */
    struct sync_time sync_time;
    struct fast_forward forward;
    struct lookahead lookahead;
};

/* The strided loop at which a thread is. */
static inline const struct peet_repeat *thread_loop(const struct sim_thread *t)
{
    return &t->batch.repeats[t->batch.records[t->at].id];
}

static inline bool thread_is_in_loop(const struct sim_thread *t)
{
    return t->at < t->batch.count && t->batch.records[t->at].kind == PEET_REPEAT;
}

/* Advances the clock to cycle `until`, unless that has passed. */
static inline void hw_thread_spend(struct hw_thread *hw, uint64_t until, enum time_kind as)
{
    if (until <= hw->clock)
        return;
    hw->account.time[as] += until - hw->clock;
    hw->clock = until;
}

/* Adds the cycles of a hit in the first level, or of a load that reads its store buffer. */
static inline void hw_thread_hit(struct hw_thread *hw, unsigned kind)
{
    uint64_t latency = hw->filter->latency;

    if (latency && kind != PEET_PREFETCH) {
        hw->clock += latency;
        hw->account.time[TIME_compute] += latency;
    }
}

/* Binds the next ready thread to a hardware thread that has none, from cycle `now` on; nothing if no thread is ready. */
void sim_dispatch(struct sim *s, struct hw_thread *hw, uint64_t now);

/* Queues a thread that becomes ready at cycle wakeup.at; makes the first queued thread ready. */
void sim_ready_later(struct sim *s, struct sim_thread *t);
void sim_ready_next(struct sim *s);

/* The thread of a hardware thread has used its quantum, and others are ready. */
void sim_yield(struct sim *s, struct hw_thread *hw);

/* The run is over: advances all hardware threads to its end. */
void sim_end_times(struct sim *s);

#endif
