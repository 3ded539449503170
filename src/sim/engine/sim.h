/* SPDX-License-Identifier: MIT */
/* A simulation: threads of a source on a machine, in the machine's time. docs/design/engine.md has the model.
 *
 * A trace says only that a thread asked for a lock; the machine decides which thread gets it, and when. Each recorded thread does what it did
 * when it was recorded; waits that only the recorded order would have ended are ended by force, and counted (forced_wakeups).
 *
 * Order of calls: sim_new, sim_set_*, sim_run once, sim_result, sim_free. sim_clock may be called during sim_run. */
#ifndef SIM_ENGINE_SIM_H
#define SIM_ENGINE_SIM_H

#include <stdio.h>

#include "base/progress.h"
#include "map/remap.h"
#include "map/source/source.h"
#include "map/spaces.h"
#include "sim/memory/hierarchy.h"
#include "sim/memory/speculative.h"

/* X(name, title): the parts of a hardware thread's time. compute: instructions, and first-level hits; stall: what references take beyond that;
 * bus: the part of it in which the fabric was busy; fetch: misses of the instruction cache; issue: another hardware thread of the core issues;
 * lock, barrier and other: its thread waits for other threads; change: switches of threads; idle: it has no thread. */
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

/* Where the cycles of a hardware thread went. */
struct time_account {
    uint64_t time[TIME_COUNT]; /* cycles, by enum time_kind; their sum, and `rollback`, is the length of the run */
    uint64_t sync; /* cycles of compute, stall and bus in which locks and barriers referred to their own words */
    uint64_t
        rollback; /* cycles of speculation beside `time`: instructions that were undone, saving and restoring of states */
    uint64_t instructions; /* executed */
    uint64_t switches;     /* threads bound to it */
};

/* X(name, text): what threads wait for. JOIN: ends of threads, and YIELD: time; each of these two is one object for all threads, at address 0. */
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

/* Speculation of a hardware thread (docs/design/speculation.md). References and misses are those of committed sections and of undone ones. */
struct speculation_counts {
    uint64_t barriers;                    /* arrivals of its threads */
    uint64_t speculations;                /* of these: after which it speculated */
    uint64_t roll_backs[VIOLATION_KINDS]; /* by enum violation */
    uint64_t forced;                      /* roll-backs without a violation: another thread needed the core */
    uint64_t undone_instructions;         /* instructions that were undone */
    uint64_t undone_stall;                /* cycles of miss stall and bus wait in undone sections */
    uint64_t repeated_references,
        repeated_misses; /* when a section was executed again, up to the reference at which it had failed */
    uint64_t other_references, other_misses; /* all others */
    uint64_t rollback_misses;                /* misses on lines that a roll-back made invalid */
};

/* A synchronization object, and how long threads waited for it. */
enum { SIM_NAME = 160 };
struct sync_summary {
    uint64_t addr;       /* in the address space of `process`; 0: JOIN or YIELD */
    uint32_t process;    /* first process that used it */
    char name[SIM_NAME]; /* of its data object, with the place of its declaration if that is known; "": it is in none */
    uint8_t kind;        /* enum sync_object_kind */
    uint64_t uses;       /* acquisitions, or openings of a barrier */
    uint64_t waits;      /* number of waits */
    uint64_t waited;     /* cycles, summed over all waiting threads */
    uint64_t spent;      /* cycles of `waited` in which a hardware thread had no other thread */
    uint64_t held;       /* of a lock: cycles for which threads had it; of others 0 */
    uint64_t longest;    /* cycles of the longest wait */
};

/* One of several programs that were simulated together: a process. Its time is that of hardware threads while its threads ran there, or had run last. */
struct sim_program {
    char name[SIM_NAME];         /* of process_label() */
    uint32_t process;            /* its number in the trace */
    uint32_t threads;            /* created so far */
    uint64_t finished;           /* cycle in which its last thread ended; 0: no thread has ended */
    struct time_account account; /* sum over hardware threads, without idle time */
    struct memory_counts memory; /* of cores while they executed it */
};

/* Lines of one program that accesses of one program evicted; an element of sim_result.evictions. A line belongs to the program for which it was
 * filled last. */
struct sim_evictions {
    uint64_t private; /* out of all private caches of a core */
    uint64_t shared;  /* out of the last shared level */
};

/* X(name, title): why a hardware thread waits for its store buffer, and then what was noted of an instruction without a wait: a load that read memory
 * while another domain had a pending store to its bytes, and that store. */
/* clang-format off */
#define ORDER_WAITS(X) \
    X(full, "buffer full") X(fence, "fence") X(atomic, "atomic") X(load, "load of a pending store") X(sync, "synchronization")
#define ORDER_NOTES(X) X(early_load, "load before a pending store") X(overtaken_store, "store after another's load")
/* clang-format on */
enum order_wait {
#define X(name, title) ORDER_WAIT_##name,
    ORDER_WAITS(X) ORDER_NOTES(X) ORDER_LOCATION_KINDS,
#undef X
    ORDER_WAIT_KINDS = ORDER_WAIT_early_load
};
const char *order_wait_title(enum order_wait kind);

/* What a hardware thread did with its store buffer. */
struct order_counts {
    uint64_t stores;                   /* that entered it */
    uint64_t forwarded;                /* loads that read from it */
    uint64_t occupied;                 /* cycles from entry until performed, summed over stores */
    uint64_t most;                     /* stores in it at a time */
    uint64_t waits[ORDER_WAIT_KINDS];  /* by enum order_wait */
    uint64_t waited[ORDER_WAIT_KINDS]; /* cycles; they are part of TIME_stall */
};

/* An instruction, or a call site, at which hardware threads waited for a store buffer. */
struct order_location {
    uint64_t
        addr; /* of the instruction; for ORDER_WAIT_sync and library code, return address of the call; 0: unknown */
    uint32_t process;    /* number in the trace */
    uint8_t kind;        /* enum order_wait */
    uint64_t times;      /* executions of fences and atomics; waits otherwise */
    uint64_t cycles;     /* waited */
    char name[SIM_NAME]; /* function and line; "": unknown */
};

/* Accesses of a program that stops at them (docs/design/live-orders.md). */
struct access_stops {
    bool has_stops;     /* the machine wanted them */
    uint64_t consulted; /* accesses at which a thread stopped */
    uint64_t alone;     /* others with hooks: to the own stack, or to a line that one thread alone has used */
};

/* The result of a simulation: numbers only, so that it can outlive the simulation and be sent to another process. */
struct sim_result {
    uint64_t cycles;                   /* until the last thread ended */
    uint64_t instructions, references; /* executed */
    uint64_t sync_references;          /* of these: made by locks and barriers to their own words */
    uint64_t forced_wakeups; /* waits of recorded threads that were ended by force, since no thread could continue */
    bool is_interrupted;     /* sim_set_stop ended it */
    bool by_frame;           /* the machine used the physical addresses of the trace */
    uint32_t threads, hw_threads, cpus, sync_objects; /* how many there are; cpus: cores */
    uint32_t speculations;                            /* elements of speculation; 0: the machine does not speculate */
    uint32_t programs;                                /* 0: a single one */
    struct sim_program *program;                      /* in order of their first threads */
    struct sim_evictions *evictions;                  /* row: evicting program; column: program of the victim */
    struct time_account *hw_thread;
    struct memory_counts *memory;     /* by core */
    struct sync_summary *sync_object; /* most waited cycles first */
    struct access_stops stops;
    uint32_t orders, order_locations;       /* orders: hardware threads, or 0 without store buffers */
    struct order_counts *order;             /* by hardware thread */
    struct order_location *order_location;  /* most cycles first */
    struct speculation_counts *speculation; /* by hardware thread */
    struct fabric_use fabric;
};

struct sim;

const char *sync_object_kind_name(const struct sync_summary *o);
const char *time_kind_title(enum time_kind kind);

int sim_new(const struct machine_config *config, struct source *source, struct sim **ret, struct peet_err *err);
void sim_free(struct sim *s);

/* Translates addresses by remap rules; r is borrowed. The source must not give strided loops. */
void sim_set_remap(struct sim *s, struct remap *r);

/* For tests: switches lookahead; initially on. Results are the same. */
void sim_set_lookahead(struct sim *s, bool enabled);

/* ---- observers ---- */

/* A reference at one line, and its outcome. A reference that spans lines is reported line by line, in order of address. */
struct sim_reference {
    uint32_t thread; /* number in the source */
    unsigned cpu;    /* number of the core */
    uint32_t
        insn; /* number of its instruction in the schema; SIM_NO_INSN: of library code that moves bytes, or is_sync */
    uint64_t site;     /* SIM_NO_INSN: return address of the library call; 0: not known */
    uint64_t addr;     /* of its first byte, as the program uses it; is_sync: the machine's address of the word */
    uint64_t data;     /* address of the data that it belongs to: addr, or of the lock or barrier that has the word */
    uint64_t now;      /* cycle in which it reached this line */
    uint64_t line;     /* the line's number: the machine's address divided by the line size */
    uint64_t own_line; /* the line's number by the program's address; is_sync: that of `data` */
    bool is_first;     /* the reference's first line */
    bool is_sync;      /* a lock, barrier or another synchronization object refers to its own word */
    uint8_t kind;      /* enum peet_kind */
    uint32_t tag;      /* result of sim_observer.tag; 0: that function returned 0, or there is none */
    uint64_t issue;    /* cycles of library code for the reference's bytes; with its first line */
    struct access_outcome outcome; /* latency: 0 if is_sync, and no hardware thread waits for it */
};

/* Receives every block, reference and event in the machine's order. The simulation has the same result, and is slower. A thread's event or
 * block precedes the references that it makes. `self` is passed to each function. */
struct sim_observer {
    void *self;
    /* A block begins: cycles of its instructions, and cycles in which they waited for the instruction cache. */
    void (*block)(void *self, uint32_t thread, const struct peet_record *block, uint64_t cycles, uint64_t fetch);
    /* Called before a reference that is not reported to `hit`; r->outcome is not known. The result is kept with each line that the
     * reference removes from a core's caches, as access_outcome.removed_by of the core's next miss; 0: the line keeps the previous tag.
     * NULL: outcomes have neither removed_by nor is_conflict. */
    uint32_t (*tag)(void *self, const struct sim_reference *r);
    void (*reference)(void *self, const struct sim_reference *r);
    /* A reference of an instruction to one line that hit in the first level and changed at most the LRU order. All others go to `reference`.
     * at: the machine's address of its first byte. */
    void (*hit)(void *self, uint32_t thread, unsigned cpu, const struct peet_record *r, uint64_t at);
    void (*event)(void *self, uint32_t thread, const struct peet_event *e); /* before it is executed */
};

/* Adds an observer, which is borrowed; at most SIM_MAX_OBSERVERS, of which one may have `tag`. All receive the same calls, in the order in
 * which they were added. The source must not give strided loops. Not together with sim_set_block_observer. */
enum { SIM_MAX_OBSERVERS = 8 };
void sim_add_observer(struct sim *s, const struct sim_observer *o);

/* Cycles that a hardware thread spends while its thread waits. Their sum over all reports is its time as lock, barrier and other. */
struct sim_wait {
    uint32_t thread; /* number in the source */
    uint8_t kind;    /* enum sync_object_kind of the object */
    uint8_t as;      /* enum time_kind of the cycles */
    uint64_t addr;   /* of the object; 0: JOIN or YIELD */
    uint64_t site;   /* return address of the call that waits; 0: not known */
    uint64_t cycles; /* of this report; a wait may be reported in parts */
    uint32_t
        path_counts; /* block observer: the thread's path (blocks_path_counts); UINT32_MAX: no block observer, or no path yet */
};
/* Replaces the previous waiter. */
void sim_set_waiter(struct sim *s, void (*waiter)(void *self, const struct sim_wait *w), void *self);

/* Observes a single core by blocks, at much less cost (sim/exec/exec_blocks.h); the source must have event words. A loop item runs to its end, so
 * that a quantum may be exceeded, and the schedule of threads that share the core differs from the record executor's. False: machine or source do
 * not allow it, and nothing has changed. */
struct block_observer;
bool sim_set_block_observer(struct sim *s, const struct block_observer *observer, struct peet_err *err);

/* Receives each event before it is executed, and each synchronization object with an address at its first use, to which it may give a name. The
 * simulation is as fast as without it. Borrowed; replaces the previous listener. */
struct sim_listener {
    void *self;
    void (*event)(void *self, uint32_t thread, const struct peet_event *e);
    void (*object)(void *self, uint32_t thread, struct sync_summary *ret);
    void (*location)(void *self, struct order_location *ret); /* names a location; NULL: it has none */
};
void sim_set_listener(struct sim *s, const struct sim_listener *l);

/* The run ends soon after *stop becomes nonzero. */
void sim_set_stop(struct sim *s, const volatile uint32_t *stop);

/* Runs to the end. A deadlock is an error whose message names the waiting threads and their objects. */
int sim_run(struct sim *s, struct progress *progress, struct peet_err *err);

/* Cycles of a core so far. */
uint64_t sim_clock(const struct sim *s, unsigned cpu);

/* Cycles so far of the hardware thread on which a thread of the source runs; 0: it does not run. */
uint64_t sim_thread_clock(const struct sim *s, uint32_t thread);

/* The result so far; to be released with sim_result_release. */
void sim_result(struct sim *s, struct sim_result *ret);

/* ---- result.c ---- */

void sim_result_release(struct sim_result *r);

/* Sends a result to another process of the same build, and receives it. */
int sim_result_write(const struct sim_result *r, FILE *out, struct peet_err *err);
int sim_result_read(struct sim_result *ret, FILE *in, struct peet_err *err);

#endif
