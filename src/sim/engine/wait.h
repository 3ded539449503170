/* SPDX-License-Identifier: MIT */
/* What threads wait for: synchronization objects, and the wait of one thread. docs/design/engine.md, "Synchronization". */
#ifndef SIM_ENGINE_WAIT_H
#define SIM_ENGINE_WAIT_H

#include "sim/engine/sim.h"

struct sim_thread;
struct hw_thread;

/* An operation that a thread has to finish before its next record. */
enum pending {
    PENDING_NOTHING,
    PENDING_LOCK,    /* try to take wait.object again */
    PENDING_RELOCK,  /* was signalled at a condition: take wait.relock */
    PENDING_BARRIER, /* check whether the barrier has opened */
};

/* Consecutive values that were posted. */
struct value_span {
    int64_t from, to; /* both included */
};

/* Values that iterations of one execution of a DOACROSS loop have posted at an object. */
struct doall_posts {
    struct sim_thread *forker; /* thread whose loop it is; NULL: no iteration has posted here */
    struct value_span *span;   /* in rising order; they neither overlap nor touch */
    size_t spans, room;
    struct sync_object *next; /* object at which iterations have posted; NULL: the last */
};

/* A lock, barrier, condition or another thing that threads wait for. */
struct sync_object {
    struct sync_summary summary;
    uint64_t addr; /* in the first process that used it, with the tag of its address space (spaces_tag) */
    union {
        struct sync_lock lock;
        struct sync_barrier barrier;
    };
    struct sim_thread *holder; /* of a lock; NULL: free, or held by readers */
    uint32_t depth;            /* of a recursive lock: how often its holder took it again */
    uint32_t readers;          /* threads that hold a reader-writer lock for reading */
    uint64_t since;            /* cycle in which the holder took it */
    uint64_t
        value; /* of a semaphore; of a condition, 1: a signal is stored; the greatest value posted; of an arc, 1: its tail was reached */
    struct sim_thread *first, *last; /* queue of waiting threads; not of locks and barriers, whose modules queue them */
    struct doall_posts posts;
};

/* The wait of a thread: the one that it is in, or its last one. */
struct thread_wait {
    struct sync_object *object;    /* it waits for it, or tries to take it */
    struct sync_object *relock;    /* the lock that a wait for a condition released */
    struct sync_object *condition; /* at an arc of a recording: the condition that the arc stands for */
    uint32_t joined;               /* 1 + number of the thread whose end it waits for; 0: none */
    uint8_t as;                    /* enum time_kind of its cycles */
    bool is_reader;                /* it takes a reader-writer lock for reading */
    bool found_held;               /* another thread held the lock in one of its attempts */
    bool has_timeout;              /* a wait for a condition with a time limit */
    bool has_left;                 /* it gave its hardware thread up for this wait */
    uint64_t value;                /* at a post: the value that has to be posted */
    uint64_t since;                /* cycle in which it began */
    uint64_t cycles;               /* of the wait that are counted so far */
    uint64_t counted_until;        /* has_left: cycle up to which the wait is counted */
};

/* Cycles that references of locks and barriers to their own words took for threads of a hardware thread, and that its time account does
 * not contain yet. They are taken from the time for which these threads wait. */
struct sync_time {
    uint64_t compute, stall, bus; /* cycles, as in enum time_kind */
    uint64_t counted; /* cycles of such references that the block executor has counted as compute or stall */
};

/* ---- hw_thread.c ---- */

/* The thread cannot continue, as of the clock of its hardware thread, which it keeps unless other threads are ready. */
void sim_wait(struct sim *s, struct sim_thread *t, struct sync_object *o, enum time_kind as);

/* The thread can continue from cycle `when` on. */
void sim_wake(struct sim *s, struct sim_thread *t, uint64_t when);

/* Advances a hardware thread to cycle `until`, unless that has passed: t, which runs there or left it empty, waits for o. Of these cycles,
 * references of locks and barriers are compute and stall; the rest is the wait. */
void sim_spend(struct sim *s, struct hw_thread *hw, uint64_t until, enum time_kind as, struct sim_thread *t,
               struct sync_object *o);

/* Moves up to `cycles` of pending sync_time to the time account; returns how many cycles are left. */
uint64_t hw_thread_take_sync_time(struct hw_thread *hw, uint64_t cycles);

/* ---- sync_events.c ---- */

/* Executes an event of the hardware thread's thread; the clock moves. */
void sim_event(struct sim *s, struct hw_thread *hw, const struct peet_event *e);

/* Continues the pending operation of the hardware thread's thread; false: the thread still waits. */
bool sim_pending(struct sim *s, struct hw_thread *hw);

/* The stream of the hardware thread's thread has ended. */
void sim_end_thread(struct sim *s, struct hw_thread *hw);

/* A barrier at that address, at which no thread has arrived. */
struct sync_barrier sync_object_barrier(const struct sim *s, uint64_t addr);

/* Removes a thread from the queue of an object. */
void sync_object_remove(struct sync_object *o, const struct sim_thread *t);

/* A thread that is queued at an object need not wait any longer. */
void sim_leave_queue(struct sim *s, struct sim_thread *t, uint64_t now);

/* Cycles by which a start or wake-up is delayed at random: the setting `jitter`. */
uint64_t sim_start_jitter(struct sim *s);

/* ---- sync_host.c ---- */

/* Connects the modules of sim/sync with the machine. */
void sim_init_sync_host(struct sim *s);

/* ---- deadlock.c ---- */

/* No thread can continue: ends waits that another order of the recorded threads has caused. False: there are none. */
bool sim_force_wakeup(struct sim *s);

/* No thread can continue: an error that names each waiting thread and its object. */
int sim_report_deadlock(struct sim *s, struct peet_err *err);

#endif
