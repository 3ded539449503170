/* SPDX-License-Identifier: MIT */
#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

#define SLAB ((size_t)64 << 10)

/* Memory of which allocations are parts. */
struct arena_slab {
    struct arena_slab *next;
    size_t size, clean; /* bytes of data; bytes of data that were allocated before, and need not be zero */
    _Alignas(16) unsigned char data[];
};

/* Advances to a slab with room for `bytes`: an unused one, or a new one. */
static int arena_next_slab(struct arena *a, size_t bytes)
{
    struct arena_slab **link = a->now ? &a->now->next : &a->first;

    while (*link && (*link)->size < bytes) {
        struct arena_slab *small = *link;
        *link = small->next;
        free(small);
    }
    if (!*link) {
        size_t size = bytes > SLAB ? bytes : SLAB;
        struct arena_slab *s = calloc(1, sizeof *s + size);
        if (!s)
            return -1;
        s->size = size;
        *link = s;
    }
    a->now = *link;
    a->used = 0;
    return 0;
}

void *arena_alloc(struct arena *a, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        return NULL;
    bytes = (bytes + 15) & ~(size_t)15;
    if ((!a->now || a->now->size - a->used < bytes) && arena_next_slab(a, bytes) < 0)
        return NULL;
    struct arena_slab *s = a->now;
    unsigned char *p = s->data + a->used;
    a->used += bytes;
    if (a->used <= s->clean)
        return memset(p, 0, bytes);
    if (p < s->data + s->clean)
        memset(p, 0, (size_t)(s->data + s->clean - p));
    s->clean = a->used;
    return p;
}

char *arena_string(struct arena *a, const char *s, size_t n)
{
    char *copy = arena_alloc(a, n + 1);

    return copy && n ? memcpy(copy, s, n) : copy;
}

void arena_reset(struct arena *a)
{
    a->now = NULL;
    a->used = 0;
}

void arena_release(struct arena *a)
{
    for (struct arena_slab *s = a->first, *next; s; s = next) {
        next = s->next;
        free(s);
    }
    *a = (struct arena){ 0 };
}
