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

#endif
