/* SPDX-License-Identifier: MIT */
/* Arenas: allocations that never move, and are freed all at once. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct arena_slab;

/* An arena: allocations that are freed together. */
struct arena {
    struct arena_slab *first; /* list of slabs */
    struct arena_slab *now;   /* slab of the last allocation; later slabs are unused since a reset; NULL: all are */
    size_t used;              /* bytes of `now` */
};

/* Zeroed memory, aligned to 16 bytes, or NULL. */
void *arena_alloc(struct arena *a, size_t bytes);
char *arena_string(struct arena *a, const char *s, size_t n);

/* Frees all allocations, and keeps the memory for new ones. */
void arena_reset(struct arena *a);
void arena_release(struct arena *a);

#endif
