/* SPDX-License-Identifier: MIT */
/* How rules are checked. Rules that look at the same records are a family: one file, check_NAME.c, that defines `const
 * struct check_family check_family_NAME` as its last thing, and one line in CHECK_FAMILIES.
 *
 * Life of a family: `scan` sees the events of all threads of a file, before all else; then `batch` and `event` see each
 * thread's stream in order, `lost` learns that a part of it could not be read, `end` that it is over. Streams of a pipe
 * come mixed, those of a file one after another. `finish` comes last. All are optional and return 0 or an error. */
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

struct check_state; /* a family's own for the trace, and for each thread; begin as zeros */
struct check_local;

struct check_thread {
    uint32_t id, process;
    const struct peet_thread *info; /* NULL: its definition is lost */
    bool sure;                      /* nothing is missing in its stream so far */
    bool whole;                     /* for `end`: its last chunk was there */
    uint64_t position;              /* for `end`: its recorded instructions */
    struct check_local *local[CHECK_FAMILY_COUNT];
};

struct check {
    struct peet_trace *trace;
    const struct check_config *config;
    struct check_totals totals;
    struct peet_err *err;
    bool has_gaps;      /* somewhere in the trace; what happened there is unknown */
    bool whole;         /* for `finish`: nothing is missing */
    bool knows_memory;  /* of what the program had mapped and allocated, nothing is missing (meta key `memory`) */
    struct map threads; /* of which something has been read and more may come: struct check_thread * */
    struct check_state *state[CHECK_FAMILY_COUNT];
};

struct check_family {
    const char *name;
    size_t state_size, local_size;
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

/* A finding. where: which thread (NULL: several), at which of its instructions. */
struct check_where {
    const struct check_thread *thread;
    uint64_t position;
};
void check_found(struct check *c, enum check_rule rule, enum check_severity severity, struct check_where where,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));
void check_found_at(struct check *c, enum check_rule rule, enum check_severity severity, struct check_where where,
                    uint64_t addr, const char *format, ...) __attribute__((format(printf, 6, 7)));

/* A violation, unless something that is missing in the thread's stream may explain it. */
static inline enum check_severity check_severity(const struct check_thread *th)
{
    return th->sure ? CHECK_VIOLATION : CHECK_WARNING;
}

void check_note(struct check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
int check_no_memory(struct check *c);

/* The process that forked this one, or 0. */
uint32_t check_parent(const struct check *c, uint32_t process);

/* Makes room for one more element of an array that has `count`; returns it, or NULL: no memory. */
void *check_room(void *array, size_t count, size_t *room, size_t size);

#endif
