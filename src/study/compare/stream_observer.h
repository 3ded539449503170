/* SPDX-License-Identifier: MIT */
/* Streams of several runs of one program, for comparison. See docs/design/studies.md.
 *
 * First, each thread's stream becomes a sequence of hashes: one of all records so far, after every HASH_BLOCK_RECORDS records. Then runs with a first
 * difference, and the first run, are observed again, and the records of the first hash block that differs are kept.
 *
 * Blocks are compared by the addresses of their instructions, references by kind, size and address, events by kind and arguments. Numbers that depend
 * on the recording are not compared: of items, strings and processes, and arguments of system calls. A thread is named by its creator and its number among the
 * creator's children, if the trace has these; otherwise by the order of creation. Of a live run it is named by its index. */
#ifndef STUDY_COMPARE_STREAM_OBSERVER_H
#define STUDY_COMPARE_STREAM_OBSERVER_H

#include "base/map.h"
#include "map/source/source.h"

enum { HASH_BLOCK_RECORDS = 4096 }; /* records */

/* A record as it is compared. */
struct compared_record {
    struct peet_record record;
    struct peet_event event;
    uint64_t hash;
    uint64_t code;        /* address of the instruction, or of the event's call; 0: unknown */
    uint64_t instruction; /* instructions of the thread before it */
};

/* A thread of a run. */
struct observed_thread {
    uint64_t name;                  /* equal in all runs */
    uint32_t thread, process;       /* numbers in the source */
    uint64_t records, instructions; /* so far */
    uint64_t hash;                  /* of all records so far */
    uint64_t *hash_block;           /* `hash` after each HASH_BLOCK_RECORDS records */
    uint64_t hash_blocks;           /* elements of hash_block */
    uint64_t wanted;                /* number of the hash block that is kept; UINT64_MAX: none */
    struct compared_record *kept;   /* its records so far; NULL: none */
    uint32_t count;                 /* elements of `kept` */
};

/* A hash block that is to be kept: name of the thread, number of the block. */
struct wanted_block {
    uint64_t name, hash_block;
};

/* The streams of one run. Begins as zeros. */
struct stream_observer {
    const struct wanted_block *want;
    size_t wants;
    struct observed_thread *thread;
    uint32_t threads;
    const struct peet_trace *trace; /* of the observed source */
    uint64_t *code;                 /* by item: hash of a block */
    uint32_t codes;
    struct map numbers; /* uint32_t: 1 + index in `thread`, by id */
};

void stream_observer_release(struct stream_observer *o);

/* Begins another run; `want` is borrowed until the next begin. */
void stream_observer_begin(struct stream_observer *o, const struct source *s, const struct wanted_block *want,
                           size_t wants);

/* A batch without strided loops and loops, of a thread of the source. */
void stream_observer_take(struct stream_observer *o, const struct source *s, uint32_t thread,
                          const struct peet_batch *b);

struct observed_thread *stream_observer_find(const struct stream_observer *o,
                                             uint64_t name); /* NULL: there is no such thread */

/* The number of the first hash block that differs; UINT64_MAX: none. */
uint64_t observed_thread_first_difference(const struct observed_thread *a, const struct observed_thread *b);

#endif
