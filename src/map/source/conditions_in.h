/* SPDX-License-Identifier: MIT */
/* Critical sections of the mutexes of conditions: conditions.c reads them from a trace, condition_arcs.c finds what
 * ordered them. */
#ifndef MAP_SOURCE_CONDITIONS_IN_H
#define MAP_SOURCE_CONDITIONS_IN_H

#include "base/err.h"
#include "base/map.h"
#include "map/source/conditions.h"

#define CONDITION_NONE UINT32_MAX

/* Bytes [from, to). */
struct byte_range {
    uint64_t from, to;
};

/* Ranges of one array; of a turn. */
struct byte_ranges {
    size_t first, count;
};

/* A turn at a mutex: from where a thread takes it to where it gives it up. A critical section is one turn, and one
 * more for each wait at a condition in it. */
struct turn {
    uint64_t number; /* of all turns at the mutex, from 1; 0: not told */
    uint64_t begin,
        end;       /* events of the thread: that takes the mutex, that gives it up; end 0: the stream ended before */
    uint64_t site; /* of the call that began the section */
    struct byte_ranges read; /* what it read before it wrote it */
    struct byte_ranges wrote;
    uint32_t thread, mutex; /* index of the thread; index of the mutex */
    uint32_t woken;         /* the condition at which the wait before it was over, or CONDITION_NONE */
    uint32_t waits;         /* the condition at which the wait behind it began, or CONDITION_NONE */
    uint32_t signals;       /* by number of the signal + 1: the last one that belongs to this turn; 0: none */
    bool goes_on;           /* it is not the first one of its section */
};

struct signal {
    uint64_t event;
    uint32_t thread, condition;
    uint32_t near; /* the turn that its thread was in, or else had been in last; CONDITION_NONE */
    uint32_t next; /* of the same turn, as turn.signals */
};

struct condition {
    uint64_t addr;
    uint32_t process;
    uint32_t mutex;    /* or CONDITION_NONE */
    bool is_broadcast; /* at least once */
    bool has_waits;    /* at least one */
};

struct mutex {
    uint64_t addr;
    uint32_t process;
    bool has_conditions;
};

/* What sections that began at one place do with one condition, at least once: those of all threads, or of one. Or what
 * those of one thread do with any condition of a mutex. */
struct site_facts {
    bool waits, signals;
};

struct sections {
    struct peet_trace *trace;
    struct peet_err *err;
    struct turn *turn; /* by thread, and there by their begin */
    size_t turns;
    size_t *first_turn; /* by index of a thread, one more than there are threads */
    uint32_t threads;
    struct signal *signal; /* by thread, and there by event */
    size_t signals;
    struct condition *condition;
    size_t conditions;
    struct mutex *mutexe; /* so that their number is called mutexes */
    size_t mutexes;
    struct byte_range *range;
    size_t ranges;
    struct map condition_by_addr, mutex_by_addr; /* uint32_t: index + 1; by address and process */
    struct map facts;                            /* struct site_facts, by site and condition; */
    struct map facts_of_thread;                  /*   by site_key of the condition, and thread; */
    struct map facts_of_mutex;                   /*   by site_key of the mutex, and thread */
};

/* A key for a place and the index of a condition or a mutex. */
static inline uint64_t site_key(uint64_t site, uint32_t index)
{
    return site ^ (uint64_t)index << 48 ^ (uint64_t)index << 16;
}

static inline int sections_no_memory(struct peet_err *err)
{
    return err_set(err, PEET_ERR_MEMORY, "no memory for the critical sections of conditions");
}

/* Room for element `count` of an array whose capacity is always the next power of two; NULL: no memory, and the array
 * is as it was. */
void *sections_room(void *array, size_t count, size_t size);

/* Finds arcs and waits. */
int condition_arcs_find(struct condition_order *o, const struct sections *s);

#endif
