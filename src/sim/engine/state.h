/* SPDX-License-Identifier: MIT */
/* The inside of a simulation: contexts, places, and what contexts wait for. sim.c moves time on, events.c knows what events mean. */
#ifndef SIM_ENGINE_STATE_H
#define SIM_ENGINE_STATE_H

#include "base/arena.h"
#include "map/spaces.h"
#include "sim/engine/line_crossings.h"
#include "sim/engine/sim.h"
#include "sim/exec/exec_blocks.h"

enum status { STATUS_UNBORN, STATUS_READY, STATUS_RUNNING, STATUS_WAITING, STATUS_ENDED };

/* What a context has to do before its next record. */
enum pending {
    PENDING_NOTHING,
    PENDING_LOCK,    /* try to take the lock again */
    PENDING_RELOCK,  /* it was signalled, and needs its lock again */
    PENDING_BARRIER, /* look whether the barrier is open */
};

struct value_span {
    int64_t from, to;
};

struct sync_object {
    struct sync_summary seen;
    uint64_t addr; /* as its first process uses it, with the number of that address space (spaces_tag) */
    union {
        struct sync_lock lock;
        struct sync_barrier barrier;
    };
    struct sim_thread *holder;
    uint32_t depth, readers;         /* of a recursive lock; of a lock for many readers */
    uint64_t since;                  /* it is held */
    uint64_t value;                  /* of a semaphore; signals that were kept; iterations that were posted */
    struct sim_thread *first, *last; /* who waits in line here: not for locks and barriers, which know by themselves */
    struct sim_thread *poster;       /* whose iterations have posted here (loops.c), */
    struct value_span *span;         /*   and what */
    size_t spans, span_room;
    struct sync_object *next_post;
};

/* What is the same in every execution of a block. Its instructions need not stand in a row: it may be a way through several. */
struct code_range {
    uint64_t addr, bytes;
};
enum { KIND_COUNT_BITS = 16, KIND_COUNT_MAX = (1 << (KIND_COUNT_BITS - 1)) - 1 };
struct block_info {
    bool is_known, is_plain; /* plain: it takes its cost, and that is all of it, */
    bool is_fixed;           /*   and it makes all its references each time: */
    uint16_t references;     /*   so many, */
    uint64_t kinds;          /*   of these kinds (lead_kind) */
    uint64_t cost;           /* cycles of its instructions */
    uint64_t fetches;        /* lines of instructions, stretch by stretch */
    uint32_t stretches;
    struct code_range *stretch;
};

/* What one trip of a repeat is if all its references are easy; it holds for all repeats of these records, wherever they refer to. */
enum { HIT_ITERATION_RECORDS = 16 };
struct hit_iteration {
    uint64_t kinds[PEET_PREFETCH + 1], blocks, references, cycles, compute, fetch, instructions, fetches;
    size_t records;                         /* 0: so many that nobody looks whether they are the same */
    uint64_t record[HIT_ITERATION_RECORDS]; /* but for their addresses */
};

struct sim_thread {
    struct sched_thread sched;
    uint32_t space; /* number of its process's address space, and of the process among the programs of the result */
    struct sync_waiter party;
    uint8_t status, pending;
    uint8_t waits_as; /* enum time_kind */
    bool is_reader;
    bool found_taken;            /* the lock was held in one of its attempts */
    struct hw_thread *place;     /* where it runs or waits; NULL: nowhere */
    struct sync_object *object;  /* that it waits for, or tries to take */
    struct sync_object *relock;  /* the lock that a wait for a condition gave up */
    struct sync_object *decides; /* the condition for which it waits at an arc of a recording */
    uint32_t joins;              /* 1 + the context for whose end it waits */
    uint64_t wanted;             /* of a wait for a posted value */
    uint64_t reply;              /* to its last event */
    bool yields;                 /* it had nothing to do when it was asked last */
    bool is_limited;             /* it waits for a condition, but not for ever */
    uint64_t since;              /* it waits */
    uint64_t site;               /* of the call of its last event: where it returns to; 0: not known */
    uint64_t waited;             /* cycles of the wait that is on its way, or was the last one */
    bool is_away;                /* it waits, or has waited, without a place, */
    uint64_t left;               /*   and for that its wait is told up to this cycle */
    uint64_t wake_at, order;     /* in the heap of those that will be ready: by time, then by who came first */
    struct sim_thread *next;     /* in an object's line */
    struct sim_thread *forker;   /* of one that takes iterations: whose */
    struct sim_thread *iterations, *next_iteration; /* those that take this one's; its next brother */
    uint64_t begun;                                 /* of this one's loop: iterations so far, */
    int64_t first_iteration;                        /*   and the number of the first */
    uint64_t sequence;                              /* of its iteration, */
    uint32_t depth;                                 /*   and how many starts it is in; 0: it has none */
    struct source_words words;                      /* of solo, */
    struct peet_event event;                        /*   and where they have come to */
    struct peet_batch batch;
    size_t at;
    size_t in_trip;    /* of what is repeated: the next record, */
    uint64_t trip;     /*   in which trip, */
    uint64_t hard;     /*   how many of its references would not be easy once more, */
    uint64_t brought;  /*   how many others were not, and may have pushed out lines of this trip, */
    uint64_t changes;  /*   and what others had changed here when it began */
    bool is_small;     /* it has few references, and nobody looks which of them move; */
    bool is_streaming; /*   and some do in each trip */
    struct hit_iteration easy;
    struct line_crossings moves;
};

/* Blocks that a place has done before their time (lead.c), and what was before them. */
struct lookahead {
    bool is_on;
    uint32_t most, failed, rest; /* blocks at a time; how many turns it rests if there were none; and still rests */
    size_t at, in_trip;          /* their first record */
    uint64_t trip, hard, brought, changes;
    uint64_t clock, compute, stall, instructions;
    uint64_t easy[PEET_PREFETCH + 1], silent[PEET_PREFETCH + 1], behind[PEET_PREFETCH + 1];
    uint64_t references; /* of all of them */
};

#define NO_PROGRAM UINT32_MAX

struct hw_thread {
    struct time_account seen;
    unsigned number, cpu;
    struct l1_filter *front; /* of the processor */
    const struct memory_counts *counts;
    uint64_t clock;
    uint64_t began;      /* when its context came */
    uint64_t ahead;      /* trips that are counted before their time, and can be taken back, */
    uint64_t ahead_from; /*   since that time, */
    size_t ahead_at;     /*   of that repeat */
    struct lookahead lead;
    struct sim_thread *context;  /* NULL: idle */
    uint32_t program;            /* whose context it executed last; NO_PROGRAM: none yet */
    struct time_account settled; /* what of `seen` its programs have in their sums */
    bool runs;                   /* it can go on */
    uint8_t empty_as; /* enum time_kind of the time in which it has no context: TIME_idle, or as `empty_for` waits */
    struct sim_thread *empty_for; /* the context that was there last and waits for something; NULL: idle */
    /* Cycles of references that locks and barriers have made to their own words for contexts here, and which are not in `seen` yet: they
     * come out of the time that these contexts spend waiting. */
    struct sync_time {
        uint64_t compute, stall, bus;
        uint64_t elsewhere; /* the same that are known to be compute or stall already */
    } own;
};

struct sim {
    struct machine_config config;
    struct source *source;
    struct spaces spaces;
    bool translates;             /* by `remap` or `spaces`: the machine sees other addresses than the program uses */
    struct sim_program *program; /* by address space; those of `memory` are added by sim_list_programs */
    struct hierarchy *memory;
    struct remap *remap;                                     /* or NULL */
    const struct sim_observer *observer;                     /* or NULL */
    const struct sim_listener *listener;                     /* or NULL */
    void (*waiter)(void *context, const struct sim_wait *w); /* or NULL */
    void *waiting;
    struct exec_blocks *block_exec; /* or NULL */
    uint64_t site;                  /* for whom library code moves bytes */
    struct scheduler scheduler;
    struct sync_host host;
    struct hw_thread *place;
    uint32_t places;
    struct hw_thread **order; /* those that run, the one that is farthest behind first */
    uint32_t running;
    bool is_changed; /* the order may be another one */
    uint64_t steps;
    uint64_t *issue; /* by processor: when it can begin its next instruction */
    struct sim_thread *context;
    uint32_t contexts;
    struct sim_thread **heap; /* that will be ready */
    size_t heap_count;
    uint64_t woken; /* how many contexts were put into the heap */
    uint64_t now;   /* when the step that is being taken began, */
    unsigned actor; /*   and the number of its place */
    uint64_t random;
    uint64_t lates;            /* how many random delays there were */
    struct map objects;        /* struct object *, by name (object_name) and kind */
    struct map object_names;   /* uint64_t: 1 + name, by address with its address space; of machines that see frames */
    struct sync_object *posts; /* in which iterations have posted */
    struct map threads;        /* uint32_t: 1 + context, by number */
    struct block_info *block;  /* by item */
    uint32_t blocks;
    uint64_t references, sync_references;
    uint32_t alive;
    uint64_t broken;
    const volatile uint32_t *stop; /* or NULL */
    bool is_stopped;
    bool leads;   /* places may do blocks before their time, */
    bool settles; /*   and what was used last is there, if there are not too many lines (memory_keeps_order) */
    struct arena arena;
};

/* The context cannot go on, as of its place's clock. It keeps its place unless others want it. */
void sim_wait(struct sim *s, struct sim_thread *t, struct sync_object *o, enum time_kind as);

/* It can, from that time on. */
void sim_wake(struct sim *s, struct sim_thread *t, uint64_t when);

/* By how much who begins or goes on now is late: the machine's jitter. */
uint64_t sim_start_jitter(struct sim *s);

/* Gives a place that is free something to do from that time on, if there is something. */
void sim_dispatch(struct sim *s, struct hw_thread *hw, uint64_t now);
/* A context becomes ready at the time that it knows; the one that does so next does it now. */
void sim_ready_later(struct sim *s, struct sim_thread *t);
void sim_ready_next(struct sim *s);
/* The context of a place has used its time, and others are ready. */
void sim_yield(struct sim *s, struct hw_thread *hw);

/* What the record at which a context is repeats. */
static inline const struct peet_repeat *thread_loop(const struct sim_thread *t)
{
    return &t->batch.repeats[t->batch.records[t->at].id];
}

static inline bool thread_is_in_loop(const struct sim_thread *t)
{
    return t->at < t->batch.count && t->batch.records[t->at].kind == PEET_REPEAT;
}

/* A place's clock goes on to a time, if that is not past, for one of its contexts, or the one that it is empty for, waits there: of that,
 * references of locks and barriers are compute and stall, and the rest is the wait for the object. */
void sim_spend(struct sim *s, struct hw_thread *hw, uint64_t until, enum time_kind as, struct sim_thread *t,
               struct sync_object *o);

/* The line of an address, for the observer: of 64 bytes where there are no caches. */
static inline uint64_t sim_line(const struct sim *s, uint64_t addr)
{
    return addr >> (s->config.level[0].bytes ? (unsigned)__builtin_ctz(s->config.level[0].line) : 6);
}

/* How locks and barriers reach the machine (host.c). */
void sim_init_sync_host(struct sim *s);

/* Of cycles that a place spends, those that are references of locks and barriers become compute and stall; returns how many others there are. */
uint64_t hw_thread_take_sync_time(struct hw_thread *hw, uint64_t cycles);

/* Nothing happens any more: all places come to the end of the run. */
void sim_end_times(struct sim *s);

/* A place's clock goes on to a time, if that is not past; what it did meanwhile. */
static inline void hw_thread_spend(struct hw_thread *hw, uint64_t until, enum time_kind as)
{
    if (until <= hw->clock)
        return;
    hw->seen.time[as] += until - hw->clock;
    hw->clock = until;
}

/* Whether a place that has just taken a step may take the next one without asking who is farthest behind, or who wants its place. */
static inline bool sim_may_continue(const struct sim *s, const struct hw_thread *hw, uint64_t limit)
{
    return hw->clock < limit && !s->is_changed && s->scheduler.count == 0;
}

/* Whether it may go on nevertheless, before its time. */
static inline bool sim_may_look_ahead(const struct sim *s, const struct hw_thread *hw, uint64_t limit)
{
    return s->leads && hw->clock >= limit && !s->is_changed && s->scheduler.count == 0;
}

/* One event; the place's clock moves. */
void sim_event(struct sim *s, struct hw_thread *hw, const struct peet_event *e);

/* What is pending; false: it still waits. */
bool sim_pending(struct sim *s, struct hw_thread *hw);

/* The context's stream is over. */
void sim_end_thread(struct sim *s, struct hw_thread *hw);

/* Nobody can go on: lets those go on who wait for conditions, for it was another order that made them wait. False: there are none. */
bool sim_force_wakeup(struct sim *s);

/* Nobody can: the error says who waits for what. */
int sim_report_deadlock(struct sim *s, struct peet_err *err);

/* A context that waits in an object's line need not any more. */
void sim_leave_line(struct sim *s, struct sim_thread *t, uint64_t now);

/* Iterations of parallel loops: a context that takes them is created, also again; begins one; has finished it; all have. */
void sim_loop_created(struct sim_thread *t, struct sim_thread *forker);
void sim_loop_start(struct sim_thread *t, uint64_t iteration);
void sim_loop_finish(struct sim *s, struct sim_thread *t, uint64_t now);
void sim_loop_join(struct sim *s, struct sim_thread *forker);
void sim_loop_release(struct sim *s);

/* What iterations post and wait for. */
void sim_loop_post(struct sim *s, struct sim_thread *t, struct sync_object *o, uint64_t value);
bool sim_loop_may_go_on(const struct sim_thread *t, const struct sync_object *o, uint64_t value);

/* Of the block of a record; valid until the next call. */
const struct block_info *sim_block(struct sim *s, const struct peet_record *block);

/* Instructions, and the references that follow them. */
void sim_issue_other(struct sim *s, struct hw_thread *hw, const struct peet_record *block);
static inline void sim_issue(struct sim *s, struct hw_thread *hw, const struct peet_record *block)
{
    if (block->id >= s->blocks || !s->block[block->id].is_plain) {
        sim_issue_other(s, hw, block);
        return;
    }
    hw->clock += s->block[block->id].cost;
    hw->seen.time[TIME_compute] += s->block[block->id].cost;
    hw->seen.instructions += block->size;
}

/* The cycles of a reference that was easy. */
static inline void hw_thread_hit(struct hw_thread *hw, unsigned kind)
{
    uint64_t latency = hw->front->latency;

    if (latency && kind != PEET_PREFETCH) {
        hw->clock += latency;
        hw->seen.time[TIME_compute] += latency;
    }
}

bool sim_refer(struct sim *s, struct hw_thread *hw, const struct peet_record *r); /* whether it was easy, or smooth */

/* Where a byte of an address space is for the machine; the processor's next references to its page are translated so, too. */
uint64_t sim_translate(struct sim *s, unsigned cpu, uint32_t space, uint64_t addr);

/* ---- programs.c ---- */

/* The sums of each program, if there are several. A place is about to go on with a context of a program: what happened there before is of another one. */
void sim_change_program(struct sim *s, struct hw_thread *hw);
static inline void sim_see_program(struct sim *s, struct hw_thread *hw)
{
    if (s->spaces.count > 1)
        sim_change_program(s, hw);
}
/* A thread of a process begins to exist: *ret_space, the number of its address space and program. */
int sim_add_program(struct sim *s, uint32_t process, uint32_t *ret_space, struct peet_err *err);
/* A thread of a program has ended there, perhaps the last one. */
void sim_end_program(struct sim *s, const struct hw_thread *hw);
void sim_list_programs(struct sim *s, struct sim_result *ret);

/* A reference at a line: the cycle in which it came there, what the processor had counted before, or NULL if it was easy, and whether
 * the line was found behind the first cache and is not counted yet. */
struct observed_line {
    uint64_t line, own_line; /* number of the line for the machine, and as the program uses it */
    uint64_t now;
    const struct memory_counts *before;
    bool is_first, is_behind;
};
void sim_observe(struct sim *s, const struct hw_thread *hw, const struct peet_record *r,
                 const struct observed_line *at);

/* The same of a reference of a lock or barrier (sim_reference.data), for which the context's place, if it has one, waits that long. */
void sim_observe_sync(struct sim *s, const struct sim_thread *t, const struct peet_record *r, uint64_t data,
                      const struct observed_line *at, uint64_t stall);

/* The next block of what is repeated. If nothing new happens in its trips, all of them that end before `limit`; or, where they can be
 * taken back, as many as there are. */
void sim_run_loop(struct sim *s, struct hw_thread *hw, uint64_t limit);

/* Something is about to happen here that others do: what the place did before its time goes back, to the first step that comes behind
 * the one of that place at that time. */
void sim_roll_back(struct sim *s, struct hw_thread *hw, uint64_t time, unsigned number);

/* The place's next blocks, before their time, as far as nobody can see them. */
void sim_look_ahead(struct sim *s, struct hw_thread *hw);

/* One more reference of a kind, in a word of such counts. */
static inline uint64_t kind_count_one(unsigned kind)
{
    return (uint64_t)1 << KIND_COUNT_BITS * (kind - PEET_LOAD);
}

/* Takes back those that come behind the step of that place at that time. */
void lookahead_roll_back(struct sim *s, struct hw_thread *hw, uint64_t time, unsigned number);

/* What one trip of what is repeated is if it is easy, when it begins, and anyhow. */
void loop_begin(struct sim *s, struct sim_thread *t);
void loop_refresh(struct sim *s, struct sim_thread *t);

/* So many easy trips; also less than none. */
void loop_account(struct sim *s, struct hw_thread *hw, uint64_t trips);

/* Whether lines of the trip that is just over, some of which were brought, are all there. */
bool loop_lines_present(const struct sim *s, const struct hw_thread *hw);

/* Behind a settled trip: in how many more nothing moves. What moves in the next ones is known then, unless it is small. */
uint64_t loop_iterations_to_crossing(struct sim *s, const struct hw_thread *hw);

/* The context stays where it is for so many trips. */
static inline void thread_skip_iterations(struct sim_thread *t, uint64_t trips)
{
    t->trip += trips;
    t->moves.trip += t->is_small ? 0 : trips;
}

static inline void thread_begin_iteration(struct sim_thread *t, const struct hw_thread *hw)
{
    t->hard = t->brought = 0;
    t->changes = hw->front->changes;
}

static inline void thread_end_iteration(struct sim_thread *t)
{
    if (t->trip == thread_loop(t)->times) {
        t->trip = 0;
        t->at++;
    }
}

/* A reference of a trip was not easy. Whether it would be once more, if nothing else happens. */
static inline void thread_note_slow_hit(const struct sim *s, struct sim_thread *t, const struct hw_thread *hw,
                                        const struct peet_record *r, uint64_t addr)
{
    if (s->settles && !t->is_streaming && l1_filter_has(hw->front, addr, r->size, r->kind))
        t->brought++;
    else
        t->hard++;
}

/* Whether the trip that is just over would be easy once more. */
static inline bool thread_is_steady(const struct sim *s, const struct hw_thread *hw)
{
    const struct sim_thread *t = hw->context;

    return t->hard == 0 && t->in_trip == 0 && t->trip > 0 && t->changes == hw->front->changes && !t->is_streaming
           && (t->brought == 0 || loop_lines_present(s, hw));
}

/* Bytes that library code moved. */
void sim_range(struct sim *s, struct hw_thread *hw, uint64_t addr, uint64_t size, enum peet_kind kind);

#endif
