/* SPDX-License-Identifier: MIT */
/* Streams of several runs of one program, compared: what is the same in each of them, and where they part.
 *
 * A run may be long, and may happen only while it is watched. So it is watched twice: first each thread's stream becomes a row of hashes, one
 * for each stretch of records; then the stretch in which two runs part is kept of both, and compared record by record.
 *
 * Blocks are compared by the addresses of their instructions, references by kind, size and address, events by kind and arguments. Numbers
 * that mean nothing by themselves are not: those of items and strings, arguments of system calls, processes. Threads are named by who
 * created them, and as its how-many-th child, where the trace tells that; else by the order in which they were created. */
#ifndef STUDY_COMPARE_STREAM_OBSERVER_H
#define STUDY_COMPARE_STREAM_OBSERVER_H

#include "base/map.h"
#include "map/source/source.h"

enum { HASH_BLOCK_RECORDS = 4096 }; /* records */

struct compared_record { /* a record */
    struct peet_record record;
    struct peet_event event;
    uint64_t hash;
    uint64_t code;        /* the instruction, or the call of the event; 0: not known */
    uint64_t instruction; /* of the thread, before it */
};

struct observed_thread { /* a thread */
    uint64_t name;       /* the same in all runs */
    uint32_t thread, process;
    uint64_t records, instructions, hash;
    uint64_t *hash_block; /* the hash at the end of each whole one */
    uint64_t hash_blocks;
    uint64_t wanted; /* the stretch that is kept; UINT64_MAX: none */
    struct compared_record *kept;
    uint32_t count;
};

struct wanted_block { /* a stretch that is to be kept */
    uint64_t name, hash_block;
};

struct stream_observer { /* begins as zeros */
    const struct wanted_block *want;
    size_t wants;
    struct observed_thread *thread;
    uint32_t threads;
    const struct peet_trace *trace; /* of the source that is watched */
    uint64_t *code;                 /* by item: hash of a block */
    uint32_t codes;
    struct map numbers; /* uint32_t: 1 + thread, by number */
};

void stream_observer_release(struct stream_observer *o);

/* Begins anew, with another run; `want` is borrowed until the next begin. */
void stream_observer_begin(struct stream_observer *o, const struct source *s, const struct wanted_block *want,
                           size_t wants);

/* A batch without repeats and loops, of a context of the source. */
void stream_observer_take(struct stream_observer *o, const struct source *s, uint32_t context,
                          const struct peet_batch *b);

struct observed_thread *stream_observer_find(const struct stream_observer *o,
                                             uint64_t name); /* NULL: there is no such thread */

/* The first stretch in which they differ; UINT64_MAX: in none. */
uint64_t observed_thread_first_difference(const struct observed_thread *a, const struct observed_thread *b);

#endif
