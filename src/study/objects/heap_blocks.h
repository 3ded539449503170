/* SPDX-License-Identifier: MIT */
/* Which block of the heap holds a byte. Blocks are listed in each page that they touch, those of a page in order; large ones in large
 * pages of their own, so that they are in few. */
#ifndef STUDY_OBJECTS_HEAP_BLOCKS_H
#define STUDY_OBJECTS_HEAP_BLOCKS_H

#include <stdbool.h>

#include "base/map.h"

struct heap_block {
    uint64_t start, end; /* the bytes that the program asked for: from start to before end */
    uint64_t room;       /* behind the last byte that the allocator lets it use; a block that begins earlier ends it */
    uint32_t object;
};

struct heap_blocks {
    struct map page[2]; /* small and large, by number and process */
    struct map taken;   /* uint64_t: of 64 small pages in a row, a bit for each that has blocks */
};

void heap_blocks_init(struct heap_blocks *b);
void heap_blocks_release(struct heap_blocks *b);

/* Blocks that overlap it have been freed without anybody telling, and go; *ret_start and *ret_end then say where something is another now. */
void heap_blocks_add(struct heap_blocks *b, uint32_t process, const struct heap_block *block, uint64_t *ret_start,
                     uint64_t *ret_end);

/* The block that begins there; false: there is none. */
bool heap_blocks_take(struct heap_blocks *b, uint32_t process, uint64_t start, struct heap_block *ret);

/* The block that holds the byte, with what it may use as its end, or false; then *ret says from where to where there is none around it. */
bool heap_blocks_find(const struct heap_blocks *b, uint32_t process, uint64_t addr, struct heap_block *ret);

#endif
