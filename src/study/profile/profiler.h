/* SPDX-License-Identifier: MIT */
/* The inside of a profile while it is made: cells.c knows what belongs to whom, profile.c sees what a machine tells of every reference, and watch.c what one tells that
 * counts by itself. */
#ifndef STUDY_PROFILE_PROFILER_H
#define STUDY_PROFILE_PROFILER_H

#include <assert.h>

#include "sim/exec/exec_blocks.h"
#include "study/profile/sampling/estimate_profile.h"
#include "study/profile/profile.h"
#include "study/profile/shadow_tags.h"

#define CALLS ((uint32_t)1 << 31)
enum {
    NOBODY = UINT32_MAX,
    FIRST_WINDOW = 1 << 10,
    LEAVES_NEAR = 1 << 14,
    PAIRS_NEAR = 4096,
    BLOCK_BITS = 10,
    PLACES_NEAR = 1024
};

/* Where a place referred last: as long as it stays there, nothing has to be looked up. */
struct site {
    uint64_t start, end, since; /* since: that holds since so many changes of what is where */
    uint32_t process;
    uint64_t origin,
        stride;     /* where its object begins, and after how many bytes members come again (0: there are none) */
    uint32_t cell;  /* 1 + number; 0: it has not referred yet */
    bool is_second; /* of the first of two: the other one was used last */
    uint32_t references, writes; /* that the cell does not know of yet */
};

/* A block of the heap, or a variable, that was looked up, whoever referred to it. */
struct near_block {
    uint64_t start, end, since, origin, stride;
    uint32_t process, object;
};

/* A line that a processor has lost, and to whom. */
struct loss {
    uint32_t place, object;
};

/* A block where it was executed last, if it is left for no other function. */
struct spot {
    uint32_t node, leaf; /* leaf: 1 + number; 0: nobody knows */
    bool goes_on;        /* it is left so, as far as anybody knows */
};

struct running {
    struct profile p; /* first, so that one is the other */
    struct source *source;
    struct site *site[2]; /* by instruction, and by call: two of each, the one that it referred to last first */
    uint32_t sites[2];
    struct map cells;                 /* uint32_t: number, by place and object */
    struct map losses;                /* struct loss, by line and processor */
    struct map pairs;                 /* uint32_t: number, by hash */
    struct map calls;                 /* uint32_t: 1 + number, by address */
    struct map leaves;                /* uint32_t: number, by node and block */
    struct map waits;                 /* uint32_t: number, by place, and which of that place */
    struct profile_window *window;    /* of the reference that is on its way */
    struct recent *recent;            /* by processor */
    const struct change_log *changes; /* of objects */
    bool *has_told;                   /* by thread: where its own data is, as far as that is known */
    uint32_t tellers;
    uint32_t *leaf;    /* by thread: 1 + number of the one in which it is */
    struct spot *spot; /* by block */
    uint32_t spots;
    uint32_t near[LEAVES_NEAR]; /* 1 + numbers of those that were used last */
    uint32_t pairs_near[PAIRS_NEAR];
    struct near_block blocks_near[1 << BLOCK_BITS];
    struct near_place {
        uint32_t next; /* 1 + the place; 0: none */
        uint64_t addr;
    } places_near[PLACES_NEAR];
    uint32_t threads;
    uint32_t shift;
    struct lost_line {
        unsigned cpu;
        uint64_t line;
    } * lost; /* to the reference that is on its way */
    unsigned losses_now, losses_room;
};

static inline void *room(void *p)
{
    assert(p); /* these tables are small beside what is simulated */
    return p;
}

/* ---- what belongs to whom (cells.c) ---- */

/* When all is known: calls get numbers behind instructions. */
void profile_number_calls(struct profile *p);
/* Cells know of all references. */
void profile_settle_sites(struct running *x);
/* The place of a call of library code. */
uint32_t profile_call_place(struct running *x, uint64_t addr);
/* Where an address belongs to that a context refers to from a place: most often where it did before. */
struct site *profile_find_site(struct running *x, uint32_t context, uint64_t addr, uint32_t place);
static inline bool profile_is_in(struct site *s, uint32_t process, uint64_t addr, const struct change_log *c)
{
    return addr - s->start < s->end - s->start && s->process == process && s->cell
           && change_log_revalidate(c, &s->since, s->start, s->end);
}
static inline struct site *profile_site_of(struct running *x, uint32_t context, uint64_t addr, uint32_t place)
{
    if (place < x->sites[0]) {
        struct site *two = &x->site[0][2 * (size_t)place], *s = two + two->is_second;
        if (profile_is_in(s, x->source->thread[context].process, addr, x->changes))
            return s;
    }
    return profile_find_site(x, context, addr, place);
}

/* ---- what is seen (profile.c) ---- */

enum profile_cause profile_cause_of(const struct running *x, const struct sim_reference *r, bool was_recent);
/* The window of time that the next reference is in. */
struct profile_window *profile_window_now(struct profile *p);
/* So many references of a cell that waited for the same reason, and how many of them no private cache had; by: to whom their lines were lost, or NULL. */
void profile_see_miss(struct running *x, struct profile_cell *c, const struct loss *by, enum profile_cause cause,
                      uint64_t misses, uint64_t count, uint64_t stall);
/* A reference of a cell, in a leaf, of which a sample does not know whether it missed. */
void profile_see_unknown(struct running *x, struct profile_cell *c, uint32_t leaf);
void profile_see_event(void *context, uint32_t thread, const struct peet_event *e);
uint32_t profile_near_leaf(struct running *x, uint32_t node, uint32_t block); /* 1 + its number */
struct profile_block *profile_block_at(struct profile *p, uint32_t process, uint32_t block);

/* ---- the same from a machine that counts by itself (watch.c) ---- */

struct block_observer profile_watch(struct running *x);
/* Behind all of it: windows count references, of which most were not told. */
void profile_fill_windows(struct profile *p);

#endif
