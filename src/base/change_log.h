/* SPDX-License-Identifier: MIT */
/* Which addresses have changed: the last changes of all, so that who remembers something of some addresses need not forget it for what happened to others. */
#ifndef BASE_CHANGE_LOG_H
#define BASE_CHANGE_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum { CHANGE_LOG_SIZE = 16 };
struct change_log {
    uint64_t count; /* so far; and where each of the last ones was: */
    struct changed_range {
        uint64_t start, end;
    } last[CHANGE_LOG_SIZE];
};

/* A change from start to before end; there may be nothing between. */
static inline void change_log_add(struct change_log *c, uint64_t start, uint64_t end)
{
    c->last[c->count++ % CHANGE_LOG_SIZE] = (struct changed_range){ start, end > start ? end : start + 1 };
}

/* Whether a change had to do with these addresses, of those behind the first so many. */
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

/* The same, for who keeps up to which change something held: it still does, and is then known to hold up to now. */
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
