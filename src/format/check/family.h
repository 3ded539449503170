/* SPDX-License-Identifier: MIT */
/* Families of rules. Rules about the same records are a family: a file NAME.c that defines `const struct check_family
 * check_family_NAME`, and a line in CHECK_FAMILIES.
 *
 * Calls of a family, all optional, in this order: `scan` gets the events of all threads of a file. `batch` and `event` get each
 * thread's stream in order, `lost` is called where chunks could not be read, `end` at the end of the stream. Streams of a pipe
 * are interleaved, those of a file come one after another. `finish` is called last. They return 0 or an error. */
#ifndef FORMAT_CHECK_FAMILY_H
#define FORMAT_CHECK_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "format/check/check.h"

#define CHECK_FAMILIES(X) X(flow) X(locks) X(nesting) X(meetings) X(threads) X(heap) X(mapped)

enum {
#define X(name) CHECK_FAMILY_##name,
    CHECK_FAMILIES(X) CHECK_FAMILY_COUNT
#undef X
};

struct check_state; /* a family's private state of the trace; zeros at first */
struct check_local; /* a family's private state of a thread; zeros at first */

/* A thread being checked. */
struct check_thread {
    uint32_t id, process;
    const struct peet_thread *info; /* its definition; NULL: missing */
    bool sure;                      /* nothing is missing in its stream so far */
    bool whole;                     /* for `end`: its last chunk was read */
    uint64_t position;              /* for `end`: its recorded instructions */
    struct check_local *local[CHECK_FAMILY_COUNT];
};

/* A check of a trace. */
struct check {
    struct peet_trace *trace;
    const struct check_config *config;
    struct check_totals totals;
    struct peet_err *err;
    bool has_gaps;      /* a stream had a gap event: events in it are unknown */
    bool whole;         /* for `finish`: nothing is missing */
    bool knows_memory;  /* the trace has all mappings and allocations (no meta key `memory`) */
    struct map threads; /* struct check_thread *, by number: threads with records so far, and not at their end */
    struct check_state *state[CHECK_FAMILY_COUNT];
};

/* A family of rules, with functions for what a scan and a reading of all streams find; NULL: not needed. */
struct check_family {
    const char *name;
    size_t state_size, local_size; /* bytes of its struct check_state, and of its struct check_local */
    int (*wants_scan)(struct check *c, struct check_state *s); /* 1, 0 or an error */
    int (*scan)(struct check *c, struct check_state *s, const struct check_thread *th, const struct peet_event *e);
    int (*batch)(struct check *c, struct check_state *s, const struct check_thread *th, struct check_local *l,
                 const struct peet_batch *b);
    int (*event)(struct check *c, struct check_state *s, const struct check_thread *th, struct check_local *l,
                 const struct peet_event *e, uint64_t position);
    void (*lost)(struct check *c, struct check_local *l);
    int (*end)(struct check *c, struct check_state *s, const struct check_thread *th, struct check_local *l);
    int (*finish)(struct check *c, struct check_state *s);
    void (*release_local)(struct check_local *l);
    void (*release)(struct check_state *s);
};

#define X(name) extern const struct check_family check_family_##name;
CHECK_FAMILIES(X)
#undef X

/* The place of a finding. */
struct check_position {
    const struct check_thread *thread; /* NULL: it concerns several threads */
    uint64_t position;                 /* instructions of the thread before it */
};
void check_found(struct check *c, enum check_rule rule, enum check_severity severity, struct check_position at,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));
void check_found_at(struct check *c, enum check_rule rule, enum check_severity severity, struct check_position at,
                    uint64_t addr, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* A violation; or a warning if missing records of the thread may explain it. */
static inline enum check_severity check_severity(const struct check_thread *th)
{
    return th->sure ? CHECK_VIOLATION : CHECK_WARNING;
}

void check_note(struct check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
int check_no_memory(struct check *c);

/* The process that forked this one, or 0. */
uint32_t check_parent(const struct check *c, uint32_t process);

/* Makes room for one more element of an array with `count` elements; returns the array, or NULL: no memory. */
void *check_room(void *array, size_t count, size_t *room, size_t size);

#endif
