/* SPDX-License-Identifier: MIT */
/* Open addressing with linear probing, at most three quarters full. A removal shifts the following cells back, so that
 * there are no tombstones and a table that loses as much as it gains stays as fast as it was. */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

/* The header of a cell of the table. */
struct map_cell {
    uint64_t key;
    uint32_t tag, used; /* used: 1: the cell has a value; 0: it is empty */
};

static size_t map_cell_size(const struct map *m)
{
    return sizeof(struct map_cell) + ((m->value_size + 7) & ~(size_t)7);
}

static struct map_cell *map_cell_at(const struct map *m, size_t i)
{
    return (struct map_cell *)(void *)(m->cells + i * map_cell_size(m));
}

static size_t map_home(const struct map *m, uint64_t key, uint32_t tag)
{
    uint64_t h = (key ^ (uint64_t)tag << 40 ^ tag) * UINT64_C(0x9e3779b97f4a7c15);

    return (size_t)(h ^ h >> 32) & (m->room - 1);
}

void map_release(struct map *m)
{
    free(m->cells);
    *m = (struct map){ .value_size = m->value_size };
}

void map_clear(struct map *m)
{
    if (m->count)
        memset(m->cells, 0, m->room * map_cell_size(m));
    m->count = 0;
}

/* The cell of the key, or the free cell for it. The map must have a free cell. */
static struct map_cell *map_probe(const struct map *m, uint64_t key, uint32_t tag)
{
    for (size_t i = map_home(m, key, tag);; i = (i + 1) & (m->room - 1)) {
        struct map_cell *c = map_cell_at(m, i);
        if (!c->used || (c->key == key && c->tag == tag))
            return c;
    }
}

void *map_find(const struct map *m, uint64_t key, uint32_t tag)
{
    if (m->count == 0)
        return NULL;
    struct map_cell *c = map_probe(m, key, tag);
    return c->used ? c + 1 : NULL;
}

static int map_grow(struct map *m)
{
    struct map bigger = { .value_size = m->value_size, .count = m->count, .room = m->room ? 2 * m->room : 16 };
    size_t size = map_cell_size(m);

    bigger.cells = calloc(bigger.room, size);
    if (!bigger.cells)
        return -1;
    for (size_t i = 0; i < m->room; i++) {
        const struct map_cell *c = map_cell_at(m, i);
        if (c->used)
            memcpy(map_probe(&bigger, c->key, c->tag), c, size);
    }
    free(m->cells);
    *m = bigger;
    return 0;
}

void *map_put(struct map *m, uint64_t key, uint32_t tag)
{
    if (m->count >= m->room / 4 * 3 && map_grow(m) < 0)
        return NULL;
    struct map_cell *c = map_probe(m, key, tag);
    if (!c->used) {
        memset(c, 0, map_cell_size(m));
        *c = (struct map_cell){ key, tag, 1 };
        m->count++;
    }
    return c + 1;
}

void map_remove(struct map *m, uint64_t key, uint32_t tag)
{
    if (!map_find(m, key, tag))
        return;
    size_t size = map_cell_size(m), mask = m->room - 1;
    size_t hole = (size_t)((unsigned char *)map_probe(m, key, tag) - m->cells) / size;
    for (size_t i = (hole + 1) & mask; map_cell_at(m, i)->used; i = (i + 1) & mask) {
        const struct map_cell *c = map_cell_at(m, i);
        /* a cell may move into the hole if its home is not between the hole and the cell */
        if (((i - map_home(m, c->key, c->tag)) & mask) >= ((i - hole) & mask)) {
            memcpy(map_cell_at(m, hole), c, size);
            hole = i;
        }
    }
    map_cell_at(m, hole)->used = 0;
    m->count--;
}

void *map_next(const struct map *m, size_t *at, uint64_t *ret_key, uint32_t *ret_tag)
{
    while (*at < m->room) {
        struct map_cell *c = map_cell_at(m, (*at)++);
        if (c->used) {
            *ret_key = c->key;
            *ret_tag = c->tag;
            return c + 1;
        }
    }
    return NULL;
}
