/* SPDX-License-Identifier: MIT */
/* A hash table from a number and a tag to values of one size. The tag keeps kinds of keys apart: a process, a lock's
 * kind. Values move when the table grows or loses one: a pointer to a value holds until the next put or remove. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

/* A hash table. */
struct map {
    size_t value_size;    /* bytes; set by the owner; all other fields begin as 0 */
    size_t count;         /* keys in the table */
    size_t room;          /* number of cells: 0 or a power of two */
    unsigned char *cells; /* each has a header (key, tag, in use) and a value */
};

void map_release(struct map *m);
void map_clear(struct map *m); /* forgets all keys and keeps the memory */

void *map_find(const struct map *m, uint64_t key, uint32_t tag); /* NULL when it is not there */
void *map_put(struct map *m, uint64_t key, uint32_t tag);        /* zeroed when it is new; NULL: no memory */
void map_remove(struct map *m, uint64_t key, uint32_t tag);

/* Iterates over all values, in no order: starts with *at = 0, returns NULL at the end. The map must not change between the calls. */
void *map_next(const struct map *m, size_t *at, uint64_t *ret_key, uint32_t *ret_tag);

#endif
