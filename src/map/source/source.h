/* SPDX-License-Identifier: MIT */
/* Where the records of software contexts come from: a recorded trace, or a program that runs while it is simulated.
 *
 * A context is a thread of the program. Its records come in batches, in program order, as fast as they are asked for; what
 * it does at an event that others have a say in (a lock, a barrier) is not the source's business: the consumer asks for no more
 * records of a context until it may go on. A block's references stand behind it in the same batch, as many as its operands say; only who is
 * observed may leave some out (map/source/source_sample.h). */
#ifndef MAP_SOURCE_SOURCE_H
#define MAP_SOURCE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "peet/trace.h"

struct source;

enum source_birth {
    BIRTH_CREATED,   /* by another one */
    BIRTH_FIRST,     /* nobody creates it */
    BIRTH_ITERATION, /* for a loop whose iterations it takes (map/source/source_doall.h), and again for the next loop */
};

struct source_thread {
    uint32_t id; /* its number in the trace, which events name */
    uint32_t process;
    uint8_t birth; /* enum source_birth */
};

/* A reply to an event in which a thread waited: its wait was ended, for it is to end. */
enum { SOURCE_CANCELLED = 2 };

/* Words of a producer (peet/trace.h, peet_names): those that are not used yet. registers: not NULL for a context's first ones. */
struct source_words {
    uint64_t *word, *end;
    const struct peet_names *names;
    const uint64_t *registers;
    /* Of samples. The next `left` references are to be used if is_on holds, and else passed over; then, or before, turn is called, which
     * takes what they were (used, passed), and says what comes next. NULL: all are used. */
    void (*turn)(struct source_words *w);
    struct source *source;
    uint64_t left, used, passed;
    uint32_t context;
    bool is_on;
};

enum { SOURCE_CALLS = 256 };
struct source_calls {
    uint64_t site[SOURCE_CALLS], back[SOURCE_CALLS]; /* the call; the block to which it returns */
    bool is_whole;
};

struct source_kind {
    /* The next batch of a context, valid until the next call for it: 1, 0 at its end, or an error. `reply` answers its last event, if
     * that asked something. What others have created meanwhile is among the contexts then. */
    int (*next)(struct source *s, uint32_t context, uint64_t reply, struct peet_batch *ret, struct peet_err *err);
    void (*free)(struct source *s);
    /* The same as words, for who asks for nothing else from the beginning; or NULL. All that came before must have been used. */
    int (*words)(struct source *s, uint32_t context, uint64_t reply, struct source_words *ret, struct peet_err *err);
    /* Before `next`: nobody wants to see about so many references of a context, so that it may leave them out, and say how many they were in a gap
     * event; what library code moves counts as one reference for each line. That holds until it has to wait for others; with 0, it sees to it that nothing
     * is left out. NULL: it cannot. */
    void (*skip)(struct source *s, uint32_t context, uint64_t references, uint32_t line_bytes);
    /* Behind such a gap: the calls that have led to where a context is, the innermost first, and whether they are all of them. Returns how many; 0 and not all: it
     * does not know. NULL: it never does. */
    unsigned (*calls)(struct source *s, uint32_t context, struct source_calls *ret);
    /* Where a context's own data ends (x86: %fs), as it was told when the context began; 0: nobody has. NULL: nobody ever does. */
    uint64_t (*pointer)(struct source *s, uint32_t context);
};

struct source {
    const struct source_kind *kind;
    const struct peet_trace *trace; /* its schema */
    const struct source_thread *thread;
    uint32_t threads;     /* so far; more can be created while the source is read */
    uint32_t max_threads; /* bound of `threads` */
    bool is_live;         /* what it does depends on what it is told */
    bool has_ended;       /* as a program does, and takes all contexts along, wherever they are */
};

static inline int source_next(struct source *s, uint32_t context, uint64_t reply, struct peet_batch *ret,
                              struct peet_err *err)
{
    return s->kind->next(s, context, reply, ret, err);
}

static inline int source_words(struct source *s, uint32_t context, uint64_t reply, struct source_words *ret,
                               struct peet_err *err)
{
    return s->kind->words(s, context, reply, ret, err);
}

static inline uint64_t source_pointer(struct source *s, uint32_t context)
{
    return s->kind->pointer ? s->kind->pointer(s, context) : 0;
}

static inline void source_free(struct source *s)
{
    if (s)
        s->kind->free(s);
}

/* A recorded trace, which must outlive the source. repeats: what is repeated may come as one record; not of several processes, whose addresses are
 * translated one by one (map/spaces.h). */
int source_open_trace(struct peet_trace *t, bool repeats, struct source **ret, struct peet_err *err);

/* Of a recorded trace, before it is asked for anything: a thread goes on behind what it decided on under the mutex of
 * a condition only when that is there (map/source/conditions.h), by events arc_tail and arc_head. For machines on which
 * threads run at the same time. Other sources stay as they are. */
int source_keep_conditions(struct source *s, struct peet_err *err);

/* A program built with peet cc, which runs as far as it is asked for. ahead: struct producer_config. */
int source_open_program(char *const *argv, uint32_t ahead, bool repeats, struct source **ret, struct peet_err *err);

/* The same for the program in whose process this is. */
struct raw_host;
int source_open_host(const struct raw_host *host, bool repeats, struct source **ret, struct peet_err *err);

/* How it ended, as waitpid tells it; of a process of its own. */
int source_status(struct source *s);

#endif
