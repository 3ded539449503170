/* SPDX-License-Identifier: MIT */
/* The list of target threads (Ji et al., NPC 2013, steps 6 and 7): who executes, told by the stack pointer.
 *
 * A thread's stack is a window of virtual addresses. Its start is the last byte of the page at the stack's bottom, as in the
 * paper; where stacks grow upwards, the first. Windows of different programs overlap, so the start's physical address
 * has to be the one that it had when the pattern was found. That is not enough either: after a fork parent and child
 * share the page until one of them writes. So where the root of the address space is known (not 0), it has to be the same,
 * too, and windows of one space never overlap, for the newer one retires the older.
 * Assumes that nobody changes a list while others look (the plugin has a lock for it). */
#ifndef CAPTURE_QEMU_THREADS_H
#define CAPTURE_QEMU_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

struct window {
    uint64_t start, end; /* bottom and farthest byte, both in the window: whichever is higher */
};

struct window_config {
    uint64_t page, stack; /* bytes */
    uint64_t pages;       /* the paper's k: from the page of the stack pointer to that of the bottom; at least 1 */
    bool up;              /* stacks grow to higher addresses */
};

/* Equations (1) and (2), for the stack pointer at the pattern. */
struct window window_of(const struct window_config *c, uint64_t sp);
bool window_has(struct window w, uint64_t addr);

#define TARGET_NO_FRAME UINT64_MAX

struct target {
    struct window window;
    uint64_t frame;   /* physical address of window.start; TARGET_NO_FRAME: not known yet */
    uint64_t space;   /* root of the address space, 0: not known */
    uint64_t pointer; /* the thread pointer, which a thread keeps on all its stacks; 0: not known */
    uint64_t tid;     /* what the pattern said */
    uint32_t number;  /* in the order of their beginnings, from 0 */
    bool live;
    void *user;
};

struct target_space; /* the live targets of one address space */

/* Begins as zeros. */
struct targets {
    struct map spaces; /* struct target_space *, by root */
    struct map frames; /* struct target *, by frame: the live ones whose space is not known */
    struct target **all;
    size_t count;
};

void targets_release(struct targets *t);

/* A thread begins. Those whose place it takes are over: of the same space, with a window in common; where spaces are not known,
 * with the same frame. They are handed to `retired`, which may be NULL, before. The target lives as long as the list. */
struct target *targets_add(struct targets *t, const struct target *model,
                           void (*retired)(struct target *over, void *context), void *context);
void targets_retire(struct targets *t, struct target *over);

/* Physical addresses in the space that is in use now: false when nothing is there. */
struct translation {
    bool (*translate)(void *context, uint64_t addr, uint64_t *ret);
    void *context;
};

/* Whose stack pointer this is; NULL: no target's. Without a `translate` frames are not looked at. */
struct target *targets_find(const struct targets *t, uint64_t space, uint64_t sp, const struct translation *tr);

/* Who has this thread pointer, on whatever stack. */
struct target *targets_find_pointer(const struct targets *t, uint64_t space, uint64_t pointer);

/* The live target of the space whose window ends shortly before sp, on the side of its bottom: it was made too small, k is. */
struct target *targets_near(const struct targets *t, uint64_t space, uint64_t sp, uint64_t distance);

#endif
