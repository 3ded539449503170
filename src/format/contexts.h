/* SPDX-License-Identifier: MIT */
/* The contexts of a chunk: found by item number, made on first use, forgotten together. */
#ifndef FORMAT_CONTEXTS_H
#define FORMAT_CONTEXTS_H

#include "format/codec.h"

int contexts_init(struct contexts *x); /* -1: no memory */
void contexts_release(struct contexts *x);
void contexts_forget(struct contexts *x);

/* NULL: there is no such item, or no memory. */
struct context *contexts_get(struct contexts *x, const struct schema *s, uint64_t number);

/* Makes `c` the latest successor of `from`; `rank` is where it stood, TOKEN_NEW if it was none of them. */
static inline void contexts_promote(struct context *from, struct context *c, unsigned rank)
{
    for (unsigned i = rank < RANKS ? rank : RANKS - 1; i > 0; i--)
        from->next[i] = from->next[i - 1];
    from->next[0] = c;
}

#endif
