/* SPDX-License-Identifier: MIT */
/* A simulation: all of its state, and what its parts ask of each other. docs/design/engine.md. */
#ifndef SIM_ENGINE_SIMULATION_H
#define SIM_ENGINE_SIMULATION_H

#include "base/arena.h"
#include "sim/engine/block.h"
#include "sim/engine/store_buffer.h"
#include "sim/engine/thread.h"

/* The hardware threads that can take a step, by local time. */
struct step_order {
    struct hw_thread **hw; /* least local time first; at the same cycle, the smaller number */
    uint32_t count;
    uint64_t *issue_at; /* by core: cycle from which it can issue its next instruction */
    bool needs_sort;    /* hardware threads have begun or ceased to run, or have another clock */
};

/* Threads that become ready at known cycles: a heap, earliest first. */
struct wakeup_queue {
    struct sim_thread **thread;
    size_t count;
    uint64_t entered; /* entries so far */
};

/* The step that is being taken. */
struct current_step {
    uint64_t now;    /* cycle in which it began */
    unsigned number; /* index of its hardware thread in sim.hw_thread */
    uint64_t count;  /* steps so far */
    uint64_t site; /* return address of the library call of the last event, for the bytes that it moves; 0: not known */
};

/* Synchronization objects, and what the modules of sim/sync need. */
struct sync_objects {
    struct sync_host host;
    uint64_t random;                 /* state of the generator for locks */
    struct map object;               /* struct sync_object *, by identity (object_identity) and kind */
    struct map identity;             /* 1 + identity, by address with its address space; only if spaces.by_frame */
    struct sync_object *post;        /* list (posts.next) of those at which iterations have posted; NULL: none */
    struct speculation *speculation; /* past barriers (sim/spec/speculation.h); NULL: the machine does not speculate */
};

/* Sums of the run so far. */
struct sim_counts {
    uint64_t references;
    uint64_t sync_references; /* of these: made by locks and barriers to their own words */
    uint64_t forced_wakeups;  /* waits of recorded threads that sim_force_wakeup ended */
    uint64_t start_jitters;   /* random delays drawn */
    uint32_t alive;           /* threads that began and have not ended */
};

/* What the machine and the observers allow. */
struct sim_mode {
    bool translates;   /* by `remap` or `spaces`: the machine's addresses are not the program's */
    bool looks_ahead;  /* cores may simulate blocks ahead of the global clock */
    bool keeps_recent; /* looks_ahead, and the first-level cache is LRU: a set keeps what was used last */
};

/* Callbacks and flags of the caller of sim_run. */
struct sim_hooks {
    struct sim_observers *observers;     /* that sim.observer passes calls on to, owned; NULL: at most one observer */
    const struct sim_listener *listener; /* NULL: none */
    void (*waiter)(void *waiter_self, const struct sim_wait *w); /* NULL: none */
    void *waiter_self;
    const volatile uint32_t *stop; /* *stop not 0: the run is to end; NULL: it cannot be stopped */
    bool is_stopped;               /* *stop was not 0 */
};

/* What the blocks of the schema cost on this machine. */
struct block_table {
    struct block_info *info; /* by number of the block */
    uint32_t count;          /* elements of `info` */
};

struct executor;
struct speculation;

/* A run of threads on a machine. */
struct sim {
    struct machine_config config;
    struct source *source;
    struct spaces spaces;
    struct remap *remap;         /* NULL: none */
    struct sim_program *program; /* by address space; their memory counts are added by sim_list_programs */
    const struct executor *executor;
    struct hierarchy *memory;            /* of executor_records; NULL before sim_run */
    struct exec_blocks *block_exec;      /* of executor_blocks; NULL: another executor runs */
    const struct sim_observer *observer; /* NULL: none */
    struct sim_hooks hooks;
    struct sim_mode mode;
    struct sync_objects sync;
    struct scheduler scheduler;
    struct hw_thread *hw_thread; /* core by core */
    uint32_t hw_threads;
    struct step_order order;
    struct store_buffers buffers;
    struct sim_thread *thread; /* by index in the source */
    uint32_t threads;
    struct map thread_by_id; /* uint32_t: 1 + index of the thread, by source_thread.id */
    struct wakeup_queue wakeups;
    struct current_step step;
    struct block_table blocks;
    struct sim_counts counts;
    struct arena arena;
};

/* Number of the line of an address, for the observer; lines have 64 bytes where there are no caches. */
static inline uint64_t sim_line(const struct sim *s, uint64_t addr)
{
    return addr >> (s->config.level[0].bytes ? (unsigned)__builtin_ctz(s->config.level[0].line) : 6);
}

/* Whether a hardware thread may take another step at once: its clock is below `limit`, the order is unchanged, and no ready thread is queued. */
static inline bool sim_may_continue(const struct sim *s, const struct hw_thread *hw, uint64_t limit)
{
    return hw->clock < limit && !s->order.needs_sort && s->scheduler.count == 0 && !hw->is_undone;
}

/* Whether a hardware thread that has passed the limit may look ahead. */
static inline bool sim_may_look_ahead(const struct sim *s, const struct hw_thread *hw, uint64_t limit)
{
    return s->mode.looks_ahead && hw->clock >= limit && !s->order.needs_sort && s->scheduler.count == 0;
}

/* ---- sim.c ---- */

/* Executes the instructions of a block. */
void sim_issue_other(struct sim *s, struct hw_thread *hw, const struct peet_record *block);
static inline void sim_issue(struct sim *s, struct hw_thread *hw, const struct peet_record *block)
{
    if (block->id >= s->blocks.count || !s->blocks.info[block->id].has_fixed_cost) {
        sim_issue_other(s, hw, block);
        return;
    }
    hw->clock += s->blocks.info[block->id].cost;
    hw->account.time[TIME_compute] += s->blocks.info[block->id].cost;
    hw->account.instructions += block->size;
}

/* Executes a reference. True: it was an MRU hit, or a hit that only reordered its set. False in an observed run, whatever it was. */
bool sim_refer(struct sim *s, struct hw_thread *hw, const struct peet_record *r);

/* The machine's address of a byte of an address space. The core's next references to the byte's page are translated alike. */
uint64_t sim_translate(struct sim *s, unsigned cpu, uint32_t space, uint64_t addr);

/* Executes the references of library code that moves bytes. */
void sim_range(struct sim *s, struct hw_thread *hw, uint64_t addr, uint64_t size, enum peet_kind kind);

/* ---- programs.c ---- */

/* With several programs, each has sums of time. The hardware thread is about to run a thread of a program: what it did so far goes to the
 * sums of the program before. */
void sim_change_program(struct sim *s, struct hw_thread *hw);
static inline void sim_enter_program(struct sim *s, struct hw_thread *hw)
{
    if (s->spaces.count > 1)
        sim_change_program(s, hw);
}

/* A thread of a process begins to exist: *ret_space becomes the number of its address space and program. */
int sim_add_program(struct sim *s, uint32_t process, uint32_t *ret_space, struct peet_err *err);

/* The hardware thread's thread has ended: the last of its program, perhaps. */
void sim_end_program(struct sim *s, const struct hw_thread *hw);
void sim_list_programs(struct sim *s, struct sim_result *ret);

#endif
