/* SPDX-License-Identifier: MIT */
/* Critical sections of conditions' mutexes: conditions.c reads them from a trace, condition_arcs.c computes arcs. */
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

/* Elements [first, first + count) of sections.range. */
struct byte_ranges {
    size_t first, count;
};

/* A turn at a mutex: from its acquisition by a thread to its release. A critical section is one turn, and one
 * more for each wait at a condition in it. */
struct turn {
    uint64_t number;          /* among all turns at the mutex, from 1; 0: not recorded */
    uint64_t begin;           /* event of the thread that acquires the mutex */
    uint64_t end;             /* event that releases it; 0: the stream ends before */
    uint64_t site;            /* address of the call that began the section */
    struct byte_ranges read;  /* bytes read before the turn wrote them */
    struct byte_ranges wrote; /* bytes written */
    uint32_t thread, mutex;   /* indices in the trace, in sections.mutexe */
    uint32_t woken;           /* condition of the wait that ended before the turn; CONDITION_NONE: no wait */
    uint32_t waits;           /* condition of the wait that ends the turn; CONDITION_NONE: no wait */
    uint32_t signals;         /* 1 + index of the last signal in the turn; 0: none */
    bool continues;           /* it is not the first turn of its section */
};

/* A signal or broadcast. */
struct signal {
    uint64_t event;             /* number in its thread, from 1 */
    uint32_t thread, condition; /* indices in the trace, in sections.condition */
    uint32_t turn; /* innermost turn of its thread at the signal, else the last one before; CONDITION_NONE: none */
    uint32_t next; /* 1 + index of the signal before it in the same turn; 0: none */
};

/* A condition variable. */
struct condition {
    uint64_t addr;
    uint32_t process;  /* number in the trace */
    uint32_t mutex;    /* index; CONDITION_NONE: unknown */
    bool is_broadcast; /* there was a broadcast */
    bool has_waits;    /* there was a wait */
};

/* A mutex. */
struct mutex {
    uint64_t addr;
    uint32_t process;    /* number in the trace */
    bool has_conditions; /* a condition was used with it */
};

/* Whether sections of a call site have waited at or signalled a condition: sections of all threads at one condition, of one thread at one
 * condition, or of one thread at any condition of a mutex. */
struct site_info {
    bool waits, signals;
};

/* All turns of a trace at mutexes, with their signals and bytes. */
struct sections {
    struct peet_trace *trace;
    struct peet_err *err;
    struct turn *turn; /* sorted by thread, then by begin */
    size_t turns;
    size_t *first_turn; /* by index of a thread; has threads + 1 elements */
    uint32_t threads;
    struct signal *signal; /* sorted by thread, then by event */
    size_t signals;
    struct condition *condition;
    size_t conditions;
    struct mutex *mutexe; /* named so that macro ADD counts it in `mutexes` */
    size_t mutexes;
    struct byte_range *range; /* of all turns: byte_ranges */
    size_t ranges;
    struct map condition_by_addr, mutex_by_addr; /* uint32_t: index + 1; by address and process */
    struct map info;                             /* struct site_info, by site and condition */
    struct map info_of_thread;                   /* struct site_info, by site_key of the condition, and thread */
    struct map info_of_mutex;                    /* struct site_info, by site_key of the mutex, and thread */
};

/* A key for a call site and the index of a condition or a mutex. */
static inline uint64_t site_key(uint64_t site, uint32_t index)
{
    return site ^ (uint64_t)index << 48 ^ (uint64_t)index << 16;
}

static inline int sections_no_memory(struct peet_err *err)
{
    return err_set(err, PEET_ERR_MEMORY, "no memory for the critical sections of conditions");
}

/* Makes room for element `count` of an array. Its capacity is always the next power of two. NULL: no memory, and the array
 * is unchanged. */
void *sections_room(void *array, size_t count, size_t size);

/* Computes arcs and waits. */
int condition_arcs_find(struct condition_order *o, const struct sections *s);

#endif
