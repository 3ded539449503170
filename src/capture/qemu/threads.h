/* SPDX-License-Identifier: MIT */
/* The list of target threads (Ji et al., NPC 2013, steps 6 and 7). A thread is identified by its stack pointer.
 *
 * A thread's stack is a window of virtual addresses. Windows of different programs overlap. So the physical address of the window's start
 * must be that at the time of the mark. After fork, parent and child share the page until one of them writes; so the root of the address
 * space, where it is known (not 0), must be the same, too. Windows of one space do not overlap: a new one retires the old one.
 * Assumes that callers serialize changes (plugin.lock). */
#ifndef CAPTURE_QEMU_THREADS_H
#define CAPTURE_QEMU_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

/* A thread's stack. */
struct window {
    uint64_t start; /* address of the outermost byte of the page at the stack's bottom, as in the paper */
    uint64_t end;   /* address of the byte farthest from it, in the window; higher than start if stacks grow up */
};

/* How a window follows from a stack pointer. */
struct window_config {
    uint64_t page, stack; /* bytes */
    uint64_t pages;       /* the paper's k: number of pages from the stack pointer's to the bottom's; at least 1 */
    bool up;              /* stacks grow to higher addresses */
};

/* The paper's equations (1) and (2), for the stack pointer at the pattern. */
struct window window_of(const struct window_config *c, uint64_t sp);
bool window_has(struct window w, uint64_t addr);

#define TARGET_NO_FRAME UINT64_MAX

/* A thread that has marked itself. */
struct target {
    struct window window;
    uint64_t frame;   /* physical address of window.start; TARGET_NO_FRAME: not known yet */
    uint64_t space;   /* root of the address space, 0: not known */
    uint64_t pointer; /* thread pointer, the same on all stacks of a thread; 0: not known */
    uint64_t tid;     /* the thread's number in the pattern */
    uint32_t number;  /* in the order of marks, from 0 */
    bool live;        /* false: retired */
    void *user;       /* the caller's */
};

struct target_space; /* the live targets of one address space */

/* The list. Begins as zeros. */
struct targets {
    struct map spaces; /* struct target_space * by root */
    struct map frames; /* struct target * by frame: live targets of unknown space */
    struct target **all;
    size_t count;
};

void targets_release(struct targets *t);

/* Adds a copy of the model. Retires targets that it replaces: in the same space with an overlapping window, or in unknown space with the
 * same frame. `retired` is called for each before; NULL: no call. The result is valid as long as the list. */
struct target *targets_add(struct targets *t, const struct target *model,
                           void (*retired)(struct target *over, void *context), void *context);
void targets_retire(struct targets *t, struct target *over);

/* Translation to physical addresses in the current address space. False: not mapped. */
struct translation {
    bool (*translate)(void *context, uint64_t addr, uint64_t *ret);
    void *context;
};

/* The target whose window has this stack pointer; NULL: none. If tr->translate is NULL, frames are not compared. */
struct target *targets_find(const struct targets *t, uint64_t space, uint64_t sp, const struct translation *tr);

/* The target with this thread pointer, on any stack; NULL: none. */
struct target *targets_find_pointer(const struct targets *t, uint64_t space, uint64_t pointer);

/* A live target of the space whose window's bottom is less than `distance` bytes from sp, outside of it: k is too small. NULL: none. */
struct target *targets_near(const struct targets *t, uint64_t space, uint64_t sp, uint64_t distance);

#endif
