/* SPDX-License-Identifier: MIT */
/* A log of changed address ranges. A lookup cache keeps an entry as long as no change since its validation overlaps its addresses. */
#ifndef BASE_CHANGE_LOG_H
#define BASE_CHANGE_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum { CHANGE_LOG_SIZE = 16 };
/* The last changes of an address-to-object map. */
struct change_log {
    uint64_t count; /* changes so far: the version of the map */
    struct changed_range {
        uint64_t start, end; /* bytes [start, end) */
    } last[CHANGE_LOG_SIZE]; /* the last changes; change n is element n % CHANGE_LOG_SIZE */
};

/* Adds a change of [start, end); an empty range counts as one byte. */
static inline void change_log_add(struct change_log *c, uint64_t start, uint64_t end)
{
    c->last[c->count++ % CHANGE_LOG_SIZE] = (struct changed_range){ start, end > start ? end : start + 1 };
}

/* Whether a change after the first `since` ones overlaps [start, end); true also if it is no longer in the log. */
static inline bool change_log_overlaps(const struct change_log *c, uint64_t since, uint64_t start, uint64_t end)
{
    if (c->count - since > CHANGE_LOG_SIZE)
        return true;
    for (; since < c->count; since++) {
        const struct changed_range *x = &c->last[since % CHANGE_LOG_SIZE];
        if (x->start < end && start < x->end)
            return true;
    }
    return false;
}

/* Whether data about [start, end) that were valid after the first *since changes are still valid; then sets *since to all changes so far. */
static inline bool change_log_revalidate(const struct change_log *c, uint64_t *since, uint64_t start, uint64_t end)
{
    if (*since == c->count)
        return true;
    if (change_log_overlaps(c, *since, start, end))
        return false;
    *since = c->count;
    return true;
}

#endif
