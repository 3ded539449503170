/* SPDX-License-Identifier: MIT */
/* Memory that is given out piece by piece, never moves, and is freed all at once. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct arena_slab;

struct arena {
    struct arena_slab *first, *now; /* now and all before it are in use; those behind it are kept from before a reset */
    size_t used;                    /* of now */
};

/* Zeroed memory, aligned to 16 bytes, or NULL. */
void *arena_alloc(struct arena *a, size_t bytes);
char *arena_string(struct arena *a, const char *s, size_t n);

/* Forgets all pieces and keeps the memory for the next ones. */
void arena_reset(struct arena *a);
void arena_release(struct arena *a);

#endif
