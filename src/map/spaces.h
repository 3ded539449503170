/* SPDX-License-Identifier: MIT */
/* Address spaces: from the addresses that processes use to those that the machine sees.
 *
 * A trace that was recorded in a full system has the physical frames of pages (`page` events): the machine sees physical addresses, and
 * processes share the pages that they shared there. In other traces processes share nothing: the machine sees the process's address with the
 * number of the address space in the bits above it. Space 0 changes nothing.
 *
 * Assumes: programs use addresses below 2^48, kernels those from 2^63 on, which are the same in all address spaces. A page
 * without a known frame is private to its process. */
#ifndef MAP_SPACES_H
#define MAP_SPACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "peet/trace.h"

enum {
    SPACE_BITS = 48,    /* of an address below the number of its address space */
    SPACES_MOST = 2047, /* numbers end below bit 59, which the machine's own words have (sim/sync) */
    SPACE_PAGE_BITS = 12,
    SPACES_RECENT = 1024
};
#define SPACE_PAGE ((uint64_t)1 << SPACE_PAGE_BITS) /* bytes of a page that has a frame */

/* The address spaces of a run, and the frames of their pages. */
struct spaces {
    bool by_frame;      /* frames are known: the machine sees physical addresses */
    uint32_t count;     /* address spaces so far */
    uint32_t *process;  /* by address space: the number of its process in the trace */
    struct map numbers; /* uint32_t: 1 + address space, by process */
    struct map frames;  /* uint64_t: 1 + frame, by page and address space */
    struct {
        uint64_t page;       /* 1 + number of the page; 0: the entry is empty */
        uint64_t frame;      /* number of its frame */
        uint32_t space;      /* number of its address space */
    } recent[SPACES_RECENT]; /* lookup cache of `frames`, direct-mapped by page number */
};

/* For the processes of a trace. Frames are used if the trace has any, and several processes. */
void spaces_init(struct spaces *s, const struct peet_trace *t);
void spaces_release(struct spaces *s);

/* The number of a process's address space, which is new if the process is. */
int spaces_of(struct spaces *s, uint32_t process, uint32_t *ret, struct peet_err *err);

/* Notes an event of a thread in an address space: a `page` event gives a page a new frame. */
void spaces_event(struct spaces *s, uint32_t space, const struct peet_event *e);

/* The address with the number of its address space: different for each process. */
static inline uint64_t spaces_tag(const struct spaces *s, uint32_t space, uint64_t addr)
{
    return addr >> 63 ? addr : addr ^ (uint64_t)(space + s->by_frame) << SPACE_BITS;
}

/* The reverse: the address as its process uses it; *ret_space: its address space. An address that belongs to no address space, as a kernel's,
 * stays as it is, and *ret_space is 0. */
static inline uint64_t spaces_untag(const struct spaces *s, uint64_t tagged, uint32_t *ret_space)
{
    uint64_t number = tagged >> SPACE_BITS, space = number - s->by_frame;

    *ret_space = space < s->count ? (uint32_t)space : 0;
    return space < s->count ? tagged ^ number << SPACE_BITS : tagged;
}

/* The address at which the machine sees a byte. Bytes of one page stay contiguous. */
uint64_t spaces_frame_addr(struct spaces *s, uint32_t space, uint64_t addr);
static inline uint64_t spaces_addr(struct spaces *s, uint32_t space, uint64_t addr)
{
    return s->by_frame ? spaces_frame_addr(s, space, addr) : spaces_tag(s, space, addr);
}

/* Whether the machine sees other addresses than the program uses. */
static inline bool spaces_translate(const struct spaces *s)
{
    return s->by_frame || s->count > 1;
}

/* A unique name for a process: the name of its program without the folder, and the process's number if several processes have that program name. */
void process_label(const struct peet_trace *t, uint32_t process, char *ret, size_t room);

/* Whether threads of a trace belong to different processes. */
bool trace_has_processes(const struct peet_trace *t);

#endif
