/* SPDX-License-Identifier: MIT */
/* Sources: the records of a program's threads, from a recorded trace or from a program that runs while it is simulated.
 *
 * The records of a thread come in batches, in program order. The source knows nothing of waiting: at an event such as a lock or a
 * barrier, the consumer asks for no more records of the thread until the simulated thread may continue. A block's references follow it in the
 * same batch, one for each operand; only samples leave some out (map/source/source_sample.h). See docs/design/mapper.md. */
#ifndef MAP_SOURCE_SOURCE_H
#define MAP_SOURCE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "peet/trace.h"

struct source;

/* When a thread begins. */
enum source_birth {
    BIRTH_CREATED,   /* at a thread_create event of another thread */
    BIRTH_FIRST,     /* at the start of the run */
    BIRTH_ITERATION, /* at each parallel loop whose iterations it takes (map/source/source_doall.h) */
};

/* A thread of a source. */
struct source_thread {
    uint32_t id;      /* its number in the trace, which events name */
    uint32_t process; /* number of its process in the trace */
    uint8_t birth;    /* enum source_birth */
};

/* A reply to an event in which a thread waited: the wait was cancelled, since the thread is to end. */
enum { SOURCE_CANCELLED = 2 };

/* Event words of a thread that have not been used yet (docs/design/event-words.md). */
struct source_words {
    uint64_t *word, *end;           /* the words [word, end) */
    const struct peet_names *names; /* resolves their keys to items; NULL: keys are item numbers */
    const uint64_t *registers;      /* trace registers before the first word; NULL: as left by the words before */
    /* Samples. The consumer uses the next `left` references if is_on is set, and skips them otherwise. Then, or earlier, it calls advance, which
     * takes the counts `used` and `passed`, and sets is_on and `left` for the next references. NULL: all references are used. */
    void (*advance)(struct source_words *w);
    struct source *source; /* the sampler */
    uint64_t left;         /* references up to the border of the window */
    uint64_t used, passed; /* references used and skipped since the last call of advance */
    uint32_t thread;       /* index in the source */
    bool is_on;            /* a window is open */
};

enum { SOURCE_CALLS = 256 };

/* A call stack as a source finds it in a program's memory; innermost call first. */
struct source_calls {
    uint64_t site[SOURCE_CALLS], back[SOURCE_CALLS]; /* address of the call instruction; return address */
    uint64_t slot[SOURCE_CALLS];                     /* address at which the call stored its return address */
    uint64_t root_slot;                              /* that of the function with which the thread began; if is_whole */
    bool is_whole;                                   /* the stack has no further calls */
};

/* A kind of source. Threads are given by index. */
struct source_kind {
    /* The next batch of a thread, valid until the next call for the same thread: 1, 0 at its end, or an error. `reply` is the result of the
     * thread's last event, if that has one. Threads created so far are in source.thread when the function returns. */
    int (*next)(struct source *s, uint32_t thread, uint64_t reply, struct peet_batch *ret, struct peet_err *err);
    void (*free)(struct source *s);
    /* The next records of a thread as event words, for consumers that never call `next`. All words returned before must have been used. NULL: the source
     * has no words. */
    int (*words)(struct source *s, uint32_t thread, uint64_t reply, struct source_words *ret, struct peet_err *err);
    /* Before `next`: allows the source to leave out about this number of references of a thread, and to return a gap event with their number
     * instead. Bytes that library code moves count as one reference per line. Valid until the thread waits for another one; 0: nothing may be
     * left out. NULL: the source leaves nothing out. */
    void (*skip)(struct source *s, uint32_t thread, uint64_t references, uint32_t line_bytes);
    /* After such a gap: the thread's call stack. Returns the number of calls; 0 and not is_whole: unknown. NULL: always unknown. */
    unsigned (*calls)(struct source *s, uint32_t thread, struct source_calls *ret);
    /* The thread pointer (x86: %fs base) with which a thread began; 0: unknown. NULL: always unknown. */
    uint64_t (*pointer)(struct source *s, uint32_t thread);
};

/* A source of records; the first member of each kind's struct. */
struct source {
    const struct source_kind *kind;
    const struct peet_trace *trace;     /* its schema */
    const struct source_thread *thread; /* by index */
    uint32_t threads;                   /* so far; the number grows while the source is read */
    uint32_t max_threads;               /* bound of `threads` */
    bool is_live;                       /* replies change what the program does */
    bool has_ended;                     /* the program has ended, and with it all threads, wherever they are */
    bool stops_at_accesses;             /* `next` may return an empty batch: the thread is at a shared access */
};

static inline int source_next(struct source *s, uint32_t thread, uint64_t reply, struct peet_batch *ret,
                              struct peet_err *err)
{
    return s->kind->next(s, thread, reply, ret, err);
}

static inline int source_words(struct source *s, uint32_t thread, uint64_t reply, struct source_words *ret,
                               struct peet_err *err)
{
    return s->kind->words(s, thread, reply, ret, err);
}

static inline uint64_t source_pointer(struct source *s, uint32_t thread)
{
    return s->kind->pointer ? s->kind->pointer(s, thread) : 0;
}

static inline void source_free(struct source *s)
{
    if (s)
        s->kind->free(s);
}

/* A source of a recorded trace, which must outlive it. repeats: strided loops may come as one record, but not in traces of several processes, since
 * their addresses are translated one by one (map/spaces.h). */
int source_open_trace(struct peet_trace *t, bool repeats, struct source **ret, struct peet_err *err);

/* The trace of a source of source_open_trace; NULL: it is another source. */
struct peet_trace *source_recording(const struct source *s);

/* For a recorded trace, before the first call of next: inserts events arc_tail and arc_head, so that a thread passes a decision that it made under the
 * mutex of a condition only when the data it decided on have been written (map/source/conditions.h). For machines on which threads run at the
 * same time. Does nothing to other sources. */
int source_keep_conditions(struct source *s, struct peet_err *err);

/* A source of a program built with peet cc. The program runs as far as its records are asked for. ahead: struct producer_config. */
int source_open_program(char *const *argv, uint32_t ahead, bool repeats, struct source **ret, struct peet_err *err);

/* A source of the program that runs in this process. */
struct raw_host;
int source_open_host(const struct raw_host *host, bool repeats, struct source **ret, struct peet_err *err);

/* The memory order of a program that runs (docs/design/live-orders.md). */
struct source_order {
    uint32_t model;  /* index in memory_orders */
    uint32_t stores; /* in a store buffer */
    uint32_t delay;  /* a store performs by itself at one of delay + 2 accesses */
    uint32_t group;  /* threads of a domain */
    bool drains_randomly;
    uint64_t seed;
};

/* Before the first record of a program: its threads stop at shared accesses, if it was built with --peet-order, and their stores perform by the order. */
void source_set_order(struct source *s, const struct source_order *order);
/* Its accesses so far: those at which threads stopped, and those of one thread alone. */
void source_count_accesses(const struct source *s, uint64_t *ret_consulted, uint64_t *ret_alone);
/* The i-th pair of a load and a store of another thread that it did not see, since it was pending: addresses of code. Returns how often; 0: the end. */
uint64_t source_overtaken(const struct source *s, uint32_t i, uint64_t *ret_load, uint64_t *ret_store);

/* The exit status of the program, as waitpid returns it; only if the program is a separate process. */
int source_status(struct source *s);

#endif
