/* SPDX-License-Identifier: MIT */
/* Finds data dependences between threads, and the synchronization that orders them. See docs/design/slack.md.
 *
 * A *dependence* is a pair of accesses of two threads to one byte, at least one of them a write. It is ordered by events whose order is the same in
 * every run (must_order: barriers, joins), or else by the order in which locks were taken in this run (known). It relies on a unit
 * if it is not ordered without that unit. Accesses of a thread are collected as bits, and compared with those of other threads when its clocks
 * change. Threads are given by number, from 0; the caller passes events in an order in which they happened. */
#ifndef STUDY_SLACK_DEPENDENCES_H
#define STUDY_SLACK_DEPENDENCES_H

#include <stdbool.h>
#include <stdint.h>

#include "study/slack/clocks.h"

enum { PAGE_SHIFT = 8, PAGE_BYTES = 1 << PAGE_SHIFT, PAGE_WORDS = PAGE_BYTES / 64 };

enum dependence_kind { DEPENDENCE_FLOW, DEPENDENCE_ANTI, DEPENDENCE_OUTPUT, DEPENDENCE_KINDS };

/* Dependences between two segments within a page that rely on a unit. */
struct dependence {
    uint32_t unit;
    uint32_t from, to;     /* threads */
    uint32_t from_segment; /* of the first access: in must_order if is_must, else in `known` */
    bool is_must;
    uint32_t process;
    uint64_t addr;                                         /* of the page */
    const uint64_t (*bytes)[DEPENDENCE_KINDS][PAGE_WORDS]; /* a bit for each byte */
};

/* What a thread accessed in a page since its clocks last changed. */
struct page_use {
    uint32_t thread, process;
    uint64_t addr;                /* of the page */
    const uint64_t *read, *wrote; /* a bit for each byte */
    bool is_shared;               /* another thread has accessed the page */
};

struct dependence_observer {
    void *self;
    void (*found)(void *self, const struct dependence *d);
    void (*used)(void *self, const struct page_use *u); /* only of threads that hold locks; NULL: not wanted */
};

/* Knowledge that a lock, barrier, semaphore or another object passes from thread to thread. */
struct sync_channel {
    struct unit_clock must_order, known;
};

void channel_release(struct sync_channel *c);

/* What an event does to order. */
enum channel_order {
    CHANNEL_LOCK, /* the order may be another one in another run */
    CHANNEL_MUST, /* the order is the same in every run */
};

struct dependences;

/* The observer is borrowed. */
struct dependences *dependences_new(const struct dependence_observer *observer);
void dependences_free(struct dependences *d);

/* A thread begins. It knows what its creator knows; UNIT_NONE: it has none. Other calls need it first. */
void dependences_begin(struct dependences *d, uint32_t thread, uint32_t process, uint32_t creator);
void dependences_end(struct dependences *d, uint32_t thread); /* it does nothing any more */

/* Bytes of a thread's stack: what it wrote there is forgotten when it has ended. */
void dependences_stack(struct dependences *d, uint32_t thread, uint64_t start, uint64_t end);

/* An access of `size` bytes. */
void dependences_access(struct dependences *d, uint32_t thread, uint64_t addr, uint64_t size, bool reads, bool writes);

/* A thread frees bytes: a write to those that were ever accessed. */
void dependences_discard(struct dependences *d, uint32_t thread, uint64_t addr, uint64_t size);

/* A thread gets new memory: earlier accesses to these bytes were to other data. */
void dependences_forget(struct dependences *d, uint32_t thread, uint64_t addr, uint64_t size);

/* A thread passes on what it knows, and begins a new segment. */
void dependences_publish(struct dependences *d, uint32_t thread, struct sync_channel *c, enum channel_order order);

/* A thread gets to know what the channel knows, because of a unit. */
void dependences_acquire(struct dependences *d, uint32_t thread, const struct sync_channel *c, uint32_t unit,
                         enum channel_order order);

/* A thread has taken a lock (1) or released one (-1). */
void dependences_hold(struct dependences *d, uint32_t thread, int change);

/* Processes the accesses of a thread up to now. */
void dependences_flush(struct dependences *d, uint32_t thread);

/* The current segment of a thread. */
uint32_t dependences_segment(const struct dependences *d, uint32_t thread, enum channel_order order);

/* The thread in whose stack a byte lies; UNIT_NONE: in none that is known. */
uint32_t dependences_stack_of(const struct dependences *d, uint64_t addr);

/* Dependences that no synchronization orders, as pairs of segments in a page. */
uint64_t dependences_races(const struct dependences *d);

#endif
