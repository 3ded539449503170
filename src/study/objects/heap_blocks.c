/* SPDX-License-Identifier: MIT */
/* See heap_blocks.h. */
#include "study/objects/heap_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* A block of 256 KiB is in at most 65 small pages, one of 1 GiB in at most 1025 large ones. */
enum { LARGE = 256 << 10 };
static const unsigned SHIFT[2] = { 12, 20 };

/* The blocks that touch a page. */
struct heap_page {
    struct heap_block *block; /* by rising address */
    uint32_t count, room;     /* blocks: in use; allocated */
};

void heap_blocks_init(struct heap_blocks *b)
{
    *b = (struct heap_blocks){ { { .value_size = sizeof(struct heap_page) },
                                 { .value_size = sizeof(struct heap_page) } },
                               { .value_size = sizeof(uint64_t) } };
}

void heap_blocks_release(struct heap_blocks *b)
{
    for (int k = 0; k < 2; k++) {
        size_t at = 0;
        struct heap_page *p;
        uint64_t key;
        uint32_t tag;
        while ((p = map_next(&b->page[k], &at, &key, &tag)))
            free(p->block);
        map_release(&b->page[k]);
    }
    map_release(&b->taken);
}

/* A small page has its first block, or has lost its last one. */
static void heap_page_mark(struct heap_blocks *b, uint32_t process, uint64_t number, bool is_taken)
{
    uint64_t *bits = map_put(&b->taken, number / 64, process), bit = UINT64_C(1) << number % 64;

    if (bits)
        *bits = is_taken ? *bits | bit : *bits & ~bit;
}

/* A block without bytes is known at its address all the same. */
static uint64_t heap_block_last_byte(const struct heap_block *b)
{
    return b->end > b->start ? b->end - 1 : b->start;
}

/* The last byte that it may use. */
static uint64_t heap_block_last_of_room(const struct heap_block *b)
{
    return b->room > b->end ? b->room - 1 : heap_block_last_byte(b);
}

static int heap_block_class(const struct heap_block *b)
{
    return b->end - b->start >= LARGE;
}

/* How many blocks of the page begin at or before addr. */
static uint32_t heap_page_rank(const struct heap_page *p, uint64_t addr)
{
    uint32_t low = 0, high = p->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (p->block[middle].start <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void heap_page_add(struct heap_page *p, const struct heap_block *block)
{
    uint32_t at = heap_page_rank(p, block->start);

    if (p->count == p->room) {
        p->room = p->room ? 2 * p->room : 4;
        struct heap_block *more = mem_alloc(p->room, sizeof *more);
        if (p->count)
            memcpy(more, p->block, p->count * sizeof *more);
        free(p->block);
        p->block = more;
    }
    memmove(p->block + at + 1, p->block + at, (p->count - at) * sizeof *p->block);
    p->block[at] = *block;
    p->count++;
}

static void heap_page_remove(struct heap_page *p, uint64_t start)
{
    uint32_t at = heap_page_rank(p, start);

    if (at > 0 && p->block[at - 1].start == start) {
        memmove(p->block + at - 1, p->block + at, (p->count - at) * sizeof *p->block);
        p->count--;
    }
}

static void heap_blocks_remove(struct heap_blocks *b, uint32_t process, const struct heap_block *block)
{
    struct heap_block old = *block; /* which may lie in one of the pages */
    int k = heap_block_class(&old);

    for (uint64_t n = old.start >> SHIFT[k]; n <= heap_block_last_of_room(&old) >> SHIFT[k]; n++) {
        struct heap_page *p = map_find(&b->page[k], n, process);
        if (!p || p->count == 0)
            continue;
        heap_page_remove(p, old.start);
        if (k == 0 && p->count == 0)
            heap_page_mark(b, process, n, false);
    }
}

/* A block in the page that shares a byte, or the address, with this one. */
static const struct heap_block *heap_page_overlapping(const struct heap_page *p, const struct heap_block *block)
{
    uint32_t at = heap_page_rank(p, heap_block_last_byte(block));
    const struct heap_block *other = at > 0 ? &p->block[at - 1] : NULL;

    return other && heap_block_last_byte(other) >= block->start ? other : NULL;
}

static void heap_blocks_clear(struct heap_blocks *b, uint32_t process, const struct heap_block *block,
                              uint64_t *ret_start, uint64_t *ret_end)
{
    const struct heap_block *other;

    *ret_start = block->start;
    *ret_end = block->end;
    for (int k = 0; k < 2; k++)
        for (uint64_t n = block->start >> SHIFT[k]; n <= heap_block_last_byte(block) >> SHIFT[k]; n++) {
            struct heap_page *p = map_find(&b->page[k], n, process);
            while (p && (other = heap_page_overlapping(p, block))) {
                *ret_start = other->start < *ret_start ? other->start : *ret_start;
                *ret_end = other->room > *ret_end ? other->room : *ret_end;
                heap_blocks_remove(b, process, other);
            }
        }
}

void heap_blocks_add(struct heap_blocks *b, uint32_t process, const struct heap_block *block, uint64_t *ret_start,
                     uint64_t *ret_end)
{
    struct heap_block whole = *block;
    int k = heap_block_class(block);

    whole.room = block->room > block->end ? block->room : block->end;
    heap_blocks_clear(b, process, block, ret_start, ret_end);
    *ret_end = whole.room > *ret_end ? whole.room : *ret_end;
    for (uint64_t n = whole.start >> SHIFT[k]; n <= heap_block_last_of_room(&whole) >> SHIFT[k]; n++) {
        struct heap_page *p = map_put(&b->page[k], n, process);
        if (!p)
            continue;
        heap_page_add(p, &whole);
        if (k == 0 && p->count == 1)
            heap_page_mark(b, process, n, true);
    }
}

bool heap_blocks_take(struct heap_blocks *b, uint32_t process, uint64_t start, struct heap_block *ret)
{
    for (int k = 0; k < 2; k++) {
        struct heap_page *p = map_find(&b->page[k], start >> SHIFT[k], process);
        uint32_t at = p ? heap_page_rank(p, start) : 0;
        if (at > 0 && p->block[at - 1].start == start) {
            *ret = p->block[at - 1];
            heap_blocks_remove(b, process, ret);
            return true;
        }
    }
    return false;
}

/* From the first to the last byte of all small pages around one that have no blocks, as far as their bits reach. */
static void heap_blocks_find_empty(const struct heap_blocks *b, uint32_t process, uint64_t number, uint64_t *ret_first,
                                   uint64_t *ret_last)
{
    const uint64_t *bits = map_find(&b->taken, number / 64, process);
    unsigned at = number % 64;
    uint64_t taken = bits ? *bits : 0, below = taken & ((UINT64_C(1) << at) - 1), above = taken >> at >> 1;
    uint64_t first = number - at + (below ? 64 - (unsigned)__builtin_clzll(below) : 0);
    uint64_t end = above ? number + 1 + (unsigned)__builtin_ctzll(above) : number - at + 64;

    *ret_first = first << SHIFT[0];
    *ret_last = (end << SHIFT[0]) - 1;
}

bool heap_blocks_find(const struct heap_blocks *b, uint32_t process, uint64_t addr, struct heap_block *ret)
{
    const struct heap_block *found = NULL; /* of the small and the large ones, that which begins last */
    uint64_t low = 0, high = UINT64_MAX, next = UINT64_MAX;

    for (int k = 0; k < 2; k++) {
        const struct heap_page *p = map_find(&b->page[k], addr >> SHIFT[k], process);
        uint64_t first = addr >> SHIFT[k] << SHIFT[k], last = first + ((uint64_t)1 << SHIFT[k]) - 1;
        uint32_t at = p ? heap_page_rank(p, addr) : 0;
        const struct heap_block *before = at > 0 ? &p->block[at - 1] : NULL;
        if (before && addr < before->room && (!found || before->start > found->start))
            found = before;
        if (k == 0)
            heap_blocks_find_empty(b, process, addr >> SHIFT[k], &first, &last);
        if (before)
            first = before->room > first ? before->room : first;
        if (p && at < p->count)
            last = (next = p->block[at].start < next ? p->block[at].start : next) - 1;
        low = first > low ? first : low;
        high = last < high ? last : high;
    }
    *ret = found ? *found : (struct heap_block){ .start = low, .end = high + 1 };
    if (found)
        ret->end = next < found->room ? next : found->room;
    return found != NULL;
}
