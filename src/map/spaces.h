/* SPDX-License-Identifier: MIT */
/* Address spaces: from the addresses that processes use to those that the machine sees.
 *
 * Two processes may use the same address for different bytes, and different addresses for the same bytes. A trace that was recorded in
 * a full system says in which frames of physical memory pages are (`page` events): of such a trace the machine sees physical addresses,
 * so that processes share what they share there. Of other traces each process has bytes of its own: the machine sees the process's address with the
 * number of its address space above it. Number 0 changes nothing, so that one process alone is simulated at its own addresses.
 *
 * Assumes: programs use addresses below 2^48, kernels those from 2^63 on, which are the same in all address spaces. A page
 * of which no frame is known is private to its process. */
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

struct spaces {
    bool by_frame;      /* frames are known: the machine sees physical addresses */
    uint32_t count;     /* address spaces so far */
    uint32_t *process;  /* by address space: the number of its process in the trace */
    struct map numbers; /* uint32_t: 1 + address space, by process */
    struct map frames;  /* uint64_t: 1 + frame, by page and address space */
    struct {
        uint64_t page; /* 1 + number of the page; 0: the entry is empty */
        uint64_t frame;
        uint32_t space;
    } recent[SPACES_RECENT]; /* of `frames`, those that were used last, by the last bits of their pages */
};

/* Of the processes of a trace, whose frames are used if it has any and has several processes. */
void spaces_init(struct spaces *s, const struct peet_trace *t);
void spaces_release(struct spaces *s);

/* The number of a process's address space, which is new if the process is. */
int spaces_of(struct spaces *s, uint32_t process, uint32_t *ret, struct peet_err *err);

/* An event of a thread in an address space: if it is a `page`, the page is in another frame from now on. */
void spaces_event(struct spaces *s, uint32_t space, const struct peet_event *e);

/* An address that no other process has: with the number of its address space. */
static inline uint64_t spaces_tag(const struct spaces *s, uint32_t space, uint64_t addr)
{
    return addr >> 63 ? addr : addr ^ (uint64_t)(space + s->by_frame) << SPACE_BITS;
}

/* The reverse: the address as its process uses it; *ret_space: its address space. Of what no address space has, as of a kernel's address, that is 0, and the address
 * stays as it is. */
static inline uint64_t spaces_untag(const struct spaces *s, uint64_t tagged, uint32_t *ret_space)
{
    uint64_t number = tagged >> SPACE_BITS, space = number - s->by_frame;

    *ret_space = space < s->count ? (uint32_t)space : 0;
    return space < s->count ? tagged ^ number << SPACE_BITS : tagged;
}

/* Where a byte is for the machine. What follows it in the same page follows it there, too. */
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

/* A name for a process that no other one of the trace has: of its program, without the folder, and its number if several processes execute programs
 * of that name. */
void process_label(const struct peet_trace *t, uint32_t process, char *ret, size_t room);

/* Whether threads of a trace belong to different processes. */
bool trace_has_processes(const struct peet_trace *t);

#endif
