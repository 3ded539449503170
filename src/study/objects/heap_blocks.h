/* SPDX-License-Identifier: MIT */
/* Live heap blocks by address. Each page lists the blocks that touch it, in order; large blocks are in a second table with larger pages, so
 * that they are in few of them. */
#ifndef STUDY_OBJECTS_HEAP_BLOCKS_H
#define STUDY_OBJECTS_HEAP_BLOCKS_H

#include <stdbool.h>

#include "base/map.h"

/* A live heap block, or the bounds of a gap between two. */
struct heap_block {
    uint64_t start, end; /* the bytes that the program asked for: from start to before end */
    uint64_t room; /* end of the bytes that the allocator lets the program use; a following block may begin before it */
    uint32_t object; /* index of the data object, or of a deferred one (objects.c); NO_OBJECT: none */
};

/* Live heap blocks of all processes, by page. */
struct heap_blocks {
    struct map page
        [2]; /* struct heap_page, by number and process. [0]: of blocks below 256 KiB, by address >> 12; [1]: of larger ones, by address >> 20 */
    struct map
        taken; /* uint64_t, by number of a page of page[0] / 64 and process: a bit for each page that has a block */
};

void heap_blocks_init(struct heap_blocks *b);
void heap_blocks_release(struct heap_blocks *b);

/* Adds a block. Blocks that it overlaps were freed without an event, and are removed. The map has changed in [*ret_start, *ret_end). */
void heap_blocks_add(struct heap_blocks *b, uint32_t process, const struct heap_block *block, uint64_t *ret_start,
                     uint64_t *ret_end);

/* Removes the block that begins there; false: there is none. */
bool heap_blocks_take(struct heap_blocks *b, uint32_t process, uint64_t start, struct heap_block *ret);

/* Finds the block of a byte, with the end of its usable bytes as `end`. False: there is none; *ret then has the bounds of the gap. */
bool heap_blocks_find(const struct heap_blocks *b, uint32_t process, uint64_t addr, struct heap_block *ret);

#endif
