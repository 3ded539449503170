/* SPDX-License-Identifier: MIT */
/* A program on a simulated machine: contexts from a source, on processors that a scheduler gives them, with the machine's memory,
 * locks and barriers.
 *
 * Model. A processor takes its instructions one after the other, each for as long as its class costs, and waits for
 * each reference that is not found at once. The one that is farthest behind goes on, for one block of instructions, or for one
 * reference (turn = "reference"): references of different processors are simulated in the order of time but for the length of a block.
 * Hardware contexts of one processor share its caches and issue in turn: one instruction at a time, while others wait for memory.
 * What stands in a trace for a lock, a barrier or a semaphore says only that the program asked; who goes on when is decided here. The
 * references that these make to their own words are like any others: their instructions are compute, their misses are stall, and only what
 * is left of the time until the thread goes on is a wait.
 * Library calls that move bytes (memcpy and its kin) refer to them line by line, at one instruction for 16 bytes. Allocation,
 * system calls and what else was not recorded cost nothing.
 *
 * Of a recorded trace, each thread does what it did when it was recorded. If the machine lets threads meet in another order, a wait for a
 * condition may find its signal already given: one signal is kept for who comes late, and where nothing else can go on, waits for
 * conditions end by themselves, and barriers open for those that have come, which is counted (`broken`). */
#ifndef SIM_ENGINE_SIM_H
#define SIM_ENGINE_SIM_H

#include <stdio.h>

#include "base/progress.h"
#include "map/remap.h"
#include "map/source/source.h"
#include "map/spaces.h"
#include "sim/memory/hierarchy.h"

/* X(name, title): what a hardware context's time goes into. compute: instructions, and hits in the first cache; stall: what references
 * take beyond that, but for bus: the part in which the fabric was busy; fetch: instructions that come late; issue: another context of the
 * processor issues its instructions; lock, barrier and other: threads wait for each other. */
/* clang-format off */
#define TIME_KINDS(X) \
    X(compute, "compute") X(stall, "miss stall") X(bus, "bus wait") X(fetch, "fetch stall") X(issue, "issue wait") \
    X(lock, "lock wait") X(barrier, "barrier") X(other, "other waits") X(change, "switching") X(idle, "idle")
/* clang-format on */
enum time_kind {
#define X(name, title) TIME_##name,
    TIME_KINDS(X) TIME_COUNT
#undef X
};

struct time_account {          /* a hardware context; of processor number / contexts */
    uint64_t time[TIME_COUNT]; /* cycles; they add up to those of the run */
    uint64_t sync; /* cycles of compute, stall and bus in which locks and barriers referred to their own words */
    uint64_t instructions, switches;
};

/* X(name, text): what contexts wait for. JOIN: the ends of other threads, and YIELD: that time passes; each of them is one object, at
 * address 0, for the whole program. */
/* clang-format off */
#define SYNC_OBJECT_KINDS(X) \
    X(LOCK, "lock") X(RWLOCK, "rwlock") X(BARRIER, "barrier") X(CONDITION, "condition") X(SEMAPHORE, "semaphore") \
    X(POST, "post") X(FUTEX, "futex") X(ARC, "arc") X(JOIN, "end of threads") X(YIELD, "yield")
/* clang-format on */
enum sync_object_kind {
#define X(name, text) SYNC_OBJECT_##name,
    SYNC_OBJECT_KINDS(X) SYNC_OBJECT_KIND_COUNT
#undef X
};

/* A lock or a barrier, by its address. */
enum { SIM_NAME = 160 };
struct sync_summary {
    uint64_t addr;       /* as its process uses it */
    uint32_t process;    /* the first that has used it */
    char name[SIM_NAME]; /* of the data object in which it lies, with its place if that is known; "": it lies in none */
    uint8_t kind;        /* enum sim_object_kind */
    uint64_t uses;       /* times it was taken, or opened */
    uint64_t waits;      /* times a thread waited */
    uint64_t waited;     /* cycles for which threads waited, all together, */
    uint64_t spent;      /*   and those of them in which a hardware context had nothing else to do */
    uint64_t held;       /* of a lock: cycles */
    uint64_t longest;    /* wait of a thread: cycles */
};

/* One of several programs that were simulated together: a process. Its time is that of the hardware contexts on which its threads ran, or had run last. */
struct sim_program {
    char name[SIM_NAME]; /* process_label */
    uint32_t process;    /* its number in the trace */
    uint32_t threads;
    uint64_t finished;           /* the cycle in which the last of its threads ended; 0: none has */
    struct time_account account; /* summed up, without idle time */
    struct memory_counts memory; /* of processors, while they executed it */
};

/* Lines that went out of caches for those of programs. Of a line, the program counts for which it came last. */
struct sim_evictions {
    uint64_t private; /* out of all caches of a processor */
    uint64_t shared;  /* out of the last shared level */
};

/* What came of it: numbers alone, so that it can outlive the simulation, and go to another process. */
struct sim_result {
    uint64_t cycles; /* until the last context ended */
    uint64_t instructions, references;
    uint64_t sync_references; /* those of them that locks and barriers have made to their own words */
    uint64_t forced_wakeups;  /* waits that had to be ended, since nobody did */
    bool is_interrupted;      /* somebody wanted it to end before its end */
    bool by_frame;            /* the machine saw physical addresses, where the trace told frames */
    uint32_t threads, hw_threads, cpus, sync_objects;
    uint32_t programs;               /* 0: there was only one */
    struct sim_program *program;     /* by the order of their first threads */
    struct sim_evictions *evictions; /* by evicting program and, in that, by victim */
    struct time_account *hw_thread;
    struct memory_counts *memory;     /* of each processor */
    struct sync_summary *sync_object; /* those first for which contexts waited longest */
    struct fabric_use fabric;
};

struct sim;

const char *sync_object_kind_name(const struct sync_summary *o); /* of its kind */
const char *time_kind_title(enum time_kind kind);

int sim_new(const struct machine_config *config, struct source *source, struct sim **ret, struct peet_err *err);
void sim_free(struct sim *s);

/* Addresses go through it from now on; it is borrowed. The source must not give repeats. */
void sim_set_remap(struct sim *s, struct remap *r);

/* For tests: whether places may do before their time what nobody can see (they do). All results are the same. */
void sim_set_lookahead(struct sim *s, bool leads);

/* ---- who looks on ---- */

/* What one reference did to one line. A reference that spans lines is told line by line, in the order of their addresses. */
struct sim_reference {
    uint32_t context; /* of the source: which thread */
    unsigned cpu;
    uint32_t insn; /* its number in the schema; SIM_NO_INSN: library code moved bytes, or is_sync, */
    uint64_t site; /*   for the call that stands there */
    uint64_t addr; /* the reference's first byte, as the program uses it */
    uint64_t
        data; /* the address that says to which data it belongs: addr, or that of the lock or barrier whose word it is */
    uint64_t now;      /* the cycle in which the reference came to this line */
    uint64_t line;     /* number of the line for the machine: the address of its first byte by the bytes of a line */
    uint64_t own_line; /* the same of the address that the program uses */
    bool is_first;     /* it is the reference's first line */
    bool is_sync;      /* a lock or barrier, or whatever else threads wait for, refers to a word of its own */
    uint8_t kind;
    uint8_t
        level; /* where the line was: a cache's number, the innermost being 0; SIM_BEYOND: in none of the processor's own, or shared */
    uint8_t cause;   /* enum miss_cause of a line that no private level had; else MISS_KINDS */
    bool from_cache; /* another processor's cache gave it */
    bool is_upgrade; /* it was there, but others had to give theirs up */
    bool is_update;  /* it was there, and the word that was written was sent to others */
    uint64_t issue;  /* cycles of library code for the reference's bytes; with its first line */
    uint64_t stall;  /* cycles that the processor waited, of which */
    uint64_t waited; /*   the fabric was busy */
};
enum { SIM_BEYOND = CONFIG_LEVELS };
#define SIM_NO_INSN UINT32_MAX

/* Of the cycles that a reference of that kind takes at a line: those beyond a hit in the first cache, which are stall; the others are compute. */
static inline uint64_t sim_beyond(const struct machine_config *c, unsigned kind, uint64_t cycles)
{
    uint64_t hit = c->level[0].bytes && kind != PEET_PREFETCH ? c->level[0].latency : 0;

    return cycles > hit ? cycles - hit : 0;
}

/* Is told of everything, in the order of the machine's time. What a simulation with an observer does is the same, but slower. */
struct sim_observer {
    void *context;
    /* A block begins: cycles of its instructions, and what they waited for themselves. */
    void (*block)(void *context, uint32_t thread, const struct peet_record *block, uint64_t cycles, uint64_t fetch);
    void (*reference)(void *context, const struct sim_reference *r);
    /* The same of an instruction's reference to one line that the first cache has: there is nothing else to be told. */
    void (*hit)(void *context, uint32_t thread, unsigned cpu, const struct peet_record *r, uint64_t at);
    void (*event)(void *context, uint32_t thread, const struct peet_event *e); /* before anything comes of it */
    /* While a reference is on its way: a processor loses a line to it. */
    void (*lost)(void *context, unsigned cpu, uint64_t line, enum line_removal how);
};

/* Borrowed. The source must not give repeats. */
void sim_set_observer(struct sim *s, const struct sim_observer *o);

/* Cycles that a hardware context has spent because a thread waits. All that is told adds up to its time as lock, barrier and other. */
struct sim_wait {
    uint32_t thread; /* context of the source */
    uint8_t kind;    /* enum sim_object_kind: what it waits for, */
    uint8_t as;      /*   and enum time_kind: what that time is */
    uint64_t addr;   /* of the object that it waits for; 0: it lies nowhere */
    uint64_t site;   /* of the call that waits, as of events; 0: not known */
    uint64_t cycles;
    uint32_t
        leaf; /* of a watcher (sim_set_block_observer): where the thread is; UINT32_MAX: there is no watcher, or no leaf yet */
};
void sim_set_waiter(struct sim *s, void (*waiter)(void *context, const struct sim_wait *w), void *context);

/* Another way to look on, which costs much less, where it is possible (sim/exec/exec_blocks.h): for one processor, and a source that has words. Where several threads share that
 * processor, a loop ends before the next thread's turn begins. False: it is not possible, and nothing has changed. */
struct block_observer;
bool sim_set_block_observer(struct sim *s, const struct block_observer *w, struct peet_err *err);

/* Is told of each event before anything comes of it, and of each object that lies somewhere when a thread first comes to it, which
 * it may give a name. Costs nothing else. Borrowed. */
struct sim_listener {
    void *context;
    void (*event)(void *context, uint32_t thread, const struct peet_event *e);
    void (*object)(void *context, uint32_t thread, struct sync_summary *ret);
};
void sim_set_listener(struct sim *s, const struct sim_listener *l);

/* It is to end as soon as that is not 0 any more. */
void sim_set_stop(struct sim *s, const volatile uint32_t *stop);

/* Runs to the end. An error also if nobody can go on: the message says who waits for what. */
int sim_run(struct sim *s, struct progress *progress, struct peet_err *err);

/* While it runs: the cycles of a processor so far. */
uint64_t sim_clock(const struct sim *s, unsigned cpu);

/* What has happened so far; to be released. */
void sim_result(struct sim *s, struct sim_result *ret);

/* ---- result.c ---- */

void sim_result_release(struct sim_result *r);

/* To another process of the same program, and there. */
int sim_result_write(const struct sim_result *r, FILE *out, struct peet_err *err);
int sim_result_read(struct sim_result *ret, FILE *in, struct peet_err *err);

#endif
