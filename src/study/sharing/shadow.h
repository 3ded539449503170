/* SPDX-License-Identifier: MIT */
/* Shadow memory: the threads that read and wrote each granule of memory, and flows of values between them. See docs/design/studies.md.
 *
 * A shadow page stands for SHADOW_GRANULES granules; each thread that touches it has a side: bits for reads and writes of this epoch, and of earlier
 * ones. A reference sets bits only. At the end of an epoch, a value flows from its writer to each other thread that reads it later, once for
 * each write. Reads and writes of different threads in one epoch have no order: the value may have flowed.
 *
 * Accesses that may last for several epochs keep their bits for all of them (struct shadow_span). Threads may come in any order within an epoch;
 * the result does not depend on it. */
#ifndef STUDY_SHARING_SHADOW_H
#define STUDY_SHARING_SHADOW_H

#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "study/sharing/data_names.h"

enum { SHADOW_GRANULES = 512, SHADOW_WORDS = SHADOW_GRANULES / 64, SHADOW_CACHE = 256 };

struct shadow_page;

/* Accesses of a thread in earlier epochs that may also have been in later ones. */
struct shadow_span {
    uint64_t read[SHADOW_WORDS], wrote[SHADOW_WORDS];
    uint32_t until; /* first epoch in which they certainly were not */
};

/* Accesses of a thread to a page: a bit for each granule. */
struct shadow_side {
    uint64_t read[SHADOW_WORDS], wrote[SHADOW_WORDS];      /* in this epoch; read: before it wrote */
    uint64_t touched[SHADOW_WORDS], written[SHADOW_WORDS]; /* ever */
    uint64_t owns[SHADOW_WORDS];                           /* written by this thread in the last epoch with a write */
    uint64_t read_since[SHADOW_WORDS];                     /* read since then */
    struct shadow_page *page;
    struct shadow_side *next; /* of the page */
    struct shadow_span *span; /* NULL: no access lasted for more than an epoch */
    uint32_t thread, epoch;   /* epoch: of the last access, from 1 */
    uint32_t until;           /* first epoch that certainly follows the accesses of `epoch` */
};

/* Granules whose value flowed, in a certain order or in none. */
struct shadow_flow {
    uint64_t ordered, unordered; /* granules, once for each write and reading thread */
};

/* Granules by how threads use them. */
struct shadow_kinds {
    uint64_t touched, alone, read_only, shared, many; /* many: of shared, written by more than one thread */
    struct shadow_flow flow;
};

/* A thread, with a lookup cache of its sides. */
struct shadow_thread {
    uint64_t number[SHADOW_CACHE]; /* of the page of each side */
    struct shadow_side *side[SHADOW_CACHE];
    uint32_t process, thread; /* numbers in the trace */
    uint32_t
        until; /* first epoch that certainly follows its current segment: at least the current one + 1 (shadow_thread_until) */
};

/* The shadow memory of all processes. */
struct shadow {
    unsigned shift;               /* log2 of the bytes of a granule */
    uint32_t epoch;               /* current one, from 1 */
    struct map pages;             /* struct shadow_page *, by number and process */
    struct map sides;             /* struct shadow_side *, by number and thread */
    struct map flows;             /* struct shadow_flow, by writer and reader */
    struct shadow_page **changed; /* pages with accesses in this epoch */
    size_t changes, change_room;
    struct arena arena;
    const struct data_names *names;
    struct shadow_kinds *by_name, *by_thread, total; /* flow is valid at any time, all else after shadow_count */
};

int shadow_init(struct shadow *s, unsigned shift, const struct data_names *names, size_t threads, struct peet_err *err);
void shadow_release(struct shadow *s);

/* A reference of `size` bytes, at least 1. kind: PEET_LOAD, PEET_STORE or PEET_UPDATE. */
int shadow_touch(struct shadow *s, struct shadow_thread *l, unsigned kind, uint64_t addr, uint64_t size,
                 struct peet_err *err);

/* Accesses of the thread from now on certainly precede that epoch (from 1), and not certainly an earlier one. */
void shadow_thread_until(struct shadow_thread *l, uint32_t epoch);

int shadow_end_epoch(struct shadow *s, struct peet_err *err);
void shadow_count(struct shadow *s); /* once, after the last epoch */

#endif
