/* SPDX-License-Identifier: MIT */
/* The record: the one thing that producers, simulators and studies all speak.
 *
 * A thread's stream is a sequence of records in program order. A block record says that a sequence of instructions was
 * executed, one or several basic blocks; their references follow it, in order. Abstract events (a lock, a barrier, an allocation) are one
 * record each and stand for all the instructions inside them. Nothing here has a time or a processor number.
 *
 * Records travel in batches. A batch and all that it points to is valid until the next call on its cursor. */
#ifndef PEET_RECORD_H
#define PEET_RECORD_H

#include <stddef.h>
#include <stdint.h>

enum peet_kind {
    PEET_BLOCK,  /* addr: first instruction; id: the block; size: number of instructions */
    PEET_LOAD,   /* the four kinds of reference: addr: first byte; id: the instruction's number in the schema; */
    PEET_STORE,  /*   size: bytes, at most PEET_MAX_SIZE (a longer string operation yields several records) */
    PEET_UPDATE, /*   load and store of the same bytes by one instruction; counts as one reference */
    PEET_PREFETCH,
    PEET_EVENT,  /* id: index in the batch's events; addr: the event's first argument */
    PEET_LOOP,   /* id: index in the batch's loops; only for cursors that ask for whole loops */
    PEET_REPEAT, /* id: index in the batch's repeats; only for cursors that ask for them */
    PEET_KINDS
};

#define PEET_MAX_SIZE 0xffffffu

/* A record of a thread: a block, a reference or an event. enum peet_kind says what the fields are for each kind. */
struct peet_record {
    uint64_t addr;      /* address of an instruction or of data; of an event, its first argument */
    uint32_t id;        /* number of a block or an instruction in the schema, or index in an array of the batch */
    uint32_t size : 24; /* instructions of a block; bytes of a reference */
    uint32_t kind : 8;  /* enum peet_kind */
};

static inline int peet_is_reference(const struct peet_record *r)
{
    return r->kind >= PEET_LOAD && r->kind <= PEET_PREFETCH;
}

/* The abstract events: X(name, number of arguments, names of the arguments, what it stands for).
 * Addresses name objects; `result` is what the call returned; strings are numbers of strings in the schema. */
/* clang-format off */
#define PEET_EVENTS(X) \
    X(thread_create,    1, "child",               "a thread was created") \
    X(thread_start,     1, "parent",              "first record of a thread that another one created") \
    X(thread_exit,      1, "value",               "the thread's function returned or called exit") \
    X(thread_join,      1, "child",               "waited for the end of a thread") \
    X(thread_detach,    1, "child",               "that thread will not be joined") \
    X(thread_end,       2, "how code",            "last record of every whole stream; how: enum peet_end") \
    X(mutex_init,       1, "lock",                "") \
    X(mutex_destroy,    1, "lock",                "") \
    X(mutex_lock,       1, "lock",                "the lock was taken") \
    X(mutex_trylock,    2, "lock result",         "taken if result is 0") \
    X(mutex_unlock,     1, "lock",                "") \
    X(rwlock_rdlock,    1, "lock",                "") \
    X(rwlock_tryrdlock, 2, "lock result",         "") \
    X(rwlock_wrlock,    1, "lock",                "") \
    X(rwlock_trywrlock, 2, "lock result",         "") \
    X(rwlock_unlock,    1, "lock",                "") \
    X(spin_lock,        1, "lock",                "one event, however long it spun") \
    X(spin_trylock,     2, "lock result",         "") \
    X(spin_unlock,      1, "lock",                "") \
    X(spin_wait,        1, "addr",                "spun on a word of memory until it changed") \
    X(cond_wait,        2, "cond lock",           "gave up the lock, waited, has it again") \
    X(cond_timedwait,   3, "cond lock result",    "") \
    X(cond_signal,      1, "cond",                "") \
    X(cond_broadcast,   1, "cond",                "") \
    X(barrier_init,     2, "barrier count",       "") \
    X(barrier_wait,     2, "barrier count",       "arrived and went on; count parties meet here") \
    X(barrier_destroy,  1, "barrier",             "") \
    X(sem_init,         2, "sem value",           "") \
    X(sem_wait,         1, "sem",                 "") \
    X(sem_trywait,      2, "sem result",          "") \
    X(sem_post,         1, "sem",                 "") \
    X(once,             2, "once ran",            "ran is 1 in the thread that ran the function") \
    X(post,             2, "object value",        "DOACROSS: iterations up to value are done") \
    X(wait,             2, "object value",        "DOACROSS: waited for post of value") \
    X(doall_fork,       1, "iterations",          "a parallel loop begins") \
    X(doall_start,      1, "iteration",           "") \
    X(doall_finish,     1, "iteration",           "") \
    X(doall_join,       1, "iterations",          "all iterations are done") \
    X(malloc,           2, "addr size",           "") \
    X(calloc,           3, "addr number size",    "") \
    X(realloc,          3, "addr old size",       "") \
    X(memalign,         3, "addr align size",     "") \
    X(free,             1, "addr",                "") \
    X(map,              3, "addr size protection", "memory appeared (mmap, brk, a stack)") \
    X(unmap,            2, "addr size",           "memory went away") \
    X(range_read,       2, "addr size",           "library code read these bytes (strlen, write)") \
    X(range_write,      2, "addr size",           "library code wrote these bytes (memset, read)") \
    X(range_copy,       3, "to from size",        "memcpy and kin") \
    X(range_compare,    3, "a b size",            "memcmp and kin") \
    X(syscall,          5, "number a b c result", "a system call") \
    X(signal_enter,     1, "signal",              "a handler begins: control does not continue") \
    X(signal_exit,      1, "signal",              "and it ends") \
    X(jump,             1, "addr",                "control goes elsewhere: longjmp, unwinding") \
    X(fork,             1, "process",             "a child process was made") \
    X(exec,             1, "program",             "string: the program that takes the place of this one") \
    X(region_begin,     1, "name",                "string") \
    X(region_end,       1, "name",                "string") \
    X(mark,             2, "name value",          "string; what a program says about itself") \
    X(name_data,        3, "name addr size",      "string: what the program calls these bytes") \
    X(gap,              2, "instructions references", "not recorded here: sampling, or lost") \
    X(page,             2, "virtual physical",    "page numbers: to the end of the chunk, that page is in that frame") \
    X(set_register,     2, "register value",      "for the decoder; expanded streams do not show it") \
    X(futex_wait,       1, "addr",                "a library waits, and the word has not changed; of programs under control") \
    X(futex_wake,       2, "addr count",          "and wakes up to count threads; of programs under control") \
    X(yield,            1, "cycles",              "is idle for this number of cycles; of programs under control") \
    X(thread_cancel,    1, "child",               "that thread is to end where it waits; of programs under control") \
    X(lock_turn,        2, "lock number",         "the lock was taken just now, for that time of all threads together") \
    X(arc_tail,         1, "arc",                 "threads at the arc's head may go on; of recordings that are simulated") \
    X(arc_head,         2, "arc cond",            "waits for the arc's tail (0: for none); cond: what for; of recordings that are simulated")
/* clang-format on */

enum peet_event_kind {
#define X(name, n, args, text) PEET_EV_##name,
    PEET_EVENTS(X) PEET_EVENT_KINDS
#undef X
};

enum peet_end { PEET_END_EXIT, PEET_END_PROCESS_EXIT, PEET_END_SIGNAL, PEET_END_EXEC, PEET_END_STOPPED };

#define PEET_EVENT_ARGS 5

/* An event of a thread. */
struct peet_event {
    uint32_t kind;                 /* enum peet_event_kind */
    uint32_t args;                 /* elements of `arg` in use */
    uint64_t site;                 /* address of the call; 0: not known */
    uint64_t arg[PEET_EVENT_ARGS]; /* arguments, as PEET_EVENTS names them */
};

const char *peet_event_name(uint32_t kind); /* "mutex_lock"; NULL for no such kind */
const char *peet_event_args(uint32_t kind); /* "cond lock": the names, separated by blanks */
int peet_event_arity(uint32_t kind);
int peet_event_find(const char *name); /* the kind, or -1 */

struct peet_loop_run; /* schema.h */

/* A strided loop: `times` iterations of the same blocks and references; from one to the next, the address of record i grows by step[i]. */
struct peet_repeat {
    uint64_t times;                    /* iterations */
    size_t count;                      /* records of an iteration */
    const struct peet_record *records; /* of the first iteration */
    const uint64_t *step;              /* by record: bytes, modulo 2^64 */
};

/* Consecutive records of a thread. */
struct peet_batch {
    size_t count; /* elements of `records` */
    const struct peet_record *records;
    const struct peet_event *events; /* of the records of kind PEET_EVENT */
    size_t event_count;
    const struct peet_loop_run *loops; /* of the records of kind PEET_LOOP */
    const struct peet_repeat *repeats; /* of the records of kind PEET_REPEAT */
    const uint64_t *physical; /* with PEET_WANT_PHYSICAL: per record, PEET_NO_PHYSICAL where unknown; else NULL */
    const uint64_t *values;   /* with PEET_WANT_VALUES: the words that references moved; else NULL */
    const uint32_t *
        value_index; /* with PEET_WANT_VALUES: per record, index of its first word in values; PEET_NO_VALUE: not recorded */
    uint32_t thread;   /* number of the thread in the trace */
    uint64_t position; /* recorded instructions of the thread before this batch */
};

#define PEET_NO_PHYSICAL UINT64_MAX
#define PEET_NO_VALUE UINT32_MAX

#endif
