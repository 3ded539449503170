/* SPDX-License-Identifier: MIT */
/* Spans of memory that do not overlap: a new one replaces what it covers. A sorted array, for few spans that seldom change. */
#ifndef STUDY_OBJECTS_MEM_SPANS_H
#define STUDY_OBJECTS_MEM_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Addresses of a process with one name. */
struct mem_span {
    uint32_t process;    /* number in the trace */
    uint32_t what;       /* a number of the owner */
    uint64_t start, end; /* addresses [start, end) */
    uint64_t origin;     /* its begin before others covered parts of it */
    const char *name;    /* borrowed */
};

/* Spans of all processes. */
struct mem_spans {
    struct mem_span *at; /* by process and start; none overlap */
    size_t count, room;
};

void mem_spans_release(struct mem_spans *s);
void mem_spans_set(struct mem_spans *s, const struct mem_span *new);
void mem_spans_clear(struct mem_spans *s, uint32_t process, uint64_t start, uint64_t end);

/* The span of a byte, or NULL. Narrows [*ret_low, *ret_high) to where the answer holds. */
const struct mem_span *mem_spans_find(const struct mem_spans *s, uint32_t process, uint64_t addr, uint64_t *ret_low,
                                      uint64_t *ret_high);

#endif
