/* SPDX-License-Identifier: MIT */
/* Which thread has read and written which granule of memory, and whose values went to whom.
 *
 * A shadow page stands for GRANULES granules; each thread that touches it has a side of it: bits for what it read and wrote in
 * this epoch, and for what became of it before. A reference sets bits and no more. At the end of an epoch the pages that were touched
 * are gone through, 64 granules at a time: a value flows from its writer to each other thread that reads it later, once, until the granule is
 * written again. What is read and written by different threads in one epoch has no order: it may have flowed. A thread that writes
 * a granule before it reads it reads its own value.
 *
 * What a thread does in one epoch may go on for more of them, as far as is known (a thread that only joins the others is beside all their
 * epochs): its bits are then kept, and count against what others do in these epochs, too.
 *
 * Threads may come in any order within an epoch; the result does not hang on it. */
#ifndef STUDY_SHARING_SHADOW_H
#define STUDY_SHARING_SHADOW_H

#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "study/sharing/data_names.h"

enum { SHADOW_GRANULES = 512, SHADOW_WORDS = SHADOW_GRANULES / 64, SHADOW_CACHE = 256 };

struct shadow_page;

/* What a thread did in earlier epochs and may have done in later ones as well. */
struct shadow_span {
    uint64_t read[SHADOW_WORDS], wrote[SHADOW_WORDS];
    uint32_t until; /* the first epoch in which it certainly did not */
};

struct shadow_side {
    uint64_t read[SHADOW_WORDS], wrote[SHADOW_WORDS];      /* in this epoch; read: before it wrote */
    uint64_t touched[SHADOW_WORDS], written[SHADOW_WORDS]; /* ever */
    uint64_t owns[SHADOW_WORDS];       /* written by this thread in the last epoch in which anybody wrote */
    uint64_t read_since[SHADOW_WORDS]; /* read since then */
    struct shadow_page *page;
    struct shadow_side *next; /* of the page */
    struct shadow_span *span; /* NULL: nothing that it did went on for more than an epoch */
    uint32_t thread, epoch;   /* epoch: in which it was touched last, from 1 */
    uint32_t until;           /* the first epoch that certainly follows what was done in `epoch` */
};

/* Granules, all of them. */
struct shadow_flow {
    uint64_t ordered, unordered;
};

struct shadow_kinds {
    uint64_t touched, alone, read_only, shared, many; /* many: of shared, written by more than one thread */
    struct shadow_flow flow;
};

/* Of a thread: which pages it touched recently. */
struct shadow_thread {
    uint64_t number[SHADOW_CACHE];
    struct shadow_side *side[SHADOW_CACHE];
    uint32_t process, thread;
    uint32_t
        until; /* the first epoch that certainly follows what it does now: at least the one at hand + 1; set by shadow_thread_until */
};

struct shadow {
    unsigned shift; /* log2 of the bytes of a granule */
    uint32_t epoch;
    struct map pages;             /* struct shadow_page *, by number and process */
    struct map sides;             /* struct shadow_side *, by number and lane */
    struct map flows;             /* struct shadow_flow, by writer and reader */
    struct shadow_page **changed; /* in this epoch */
    size_t changes, change_room;
    struct arena arena;
    const struct data_names *names;
    struct shadow_kinds *by_name, *by_thread, total; /* flow is known at once, all else after shadow_count */
};

int shadow_init(struct shadow *s, unsigned shift, const struct data_names *names, size_t threads, struct peet_err *err);
void shadow_release(struct shadow *s);

/* A reference of `size` bytes, at least 1. kind: PEET_LOAD, PEET_STORE or PEET_UPDATE. */
int shadow_touch(struct shadow *s, struct shadow_thread *l, unsigned kind, uint64_t addr, uint64_t size,
                 struct peet_err *err);

/* What the thread does from now on certainly precedes that epoch, the first one being 1, and perhaps no earlier one. */
void shadow_thread_until(struct shadow_thread *l, uint32_t epoch);

int shadow_end_epoch(struct shadow *s, struct peet_err *err);
void shadow_count(struct shadow *s); /* once, behind the last epoch */

#endif
