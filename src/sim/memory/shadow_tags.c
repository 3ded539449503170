/* SPDX-License-Identifier: MIT */
#include "sim/memory/shadow_tags.h"

#include <stdlib.h>

#include "base/mem.h"

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

void shadow_tags_init(struct shadow_tags *r, uint32_t most)
{
    uint32_t slots = 4;

    while (slots < 2 * most)
        slots *= 2;
    *r = (struct shadow_tags){ .most = most, .mask = slots - 1, .next = most };
    r->line = mem_alloc((size_t)most + 1, sizeof *r->line);
    r->line[0].line = UINT64_MAX;
    r->slot = mem_alloc(slots, sizeof *r->slot);
    r->order = mem_alloc(most, sizeof *r->order);
    r->sorted_next = mem_alloc(most, sizeof *r->sorted_next);
    r->free = mem_alloc(most, sizeof *r->free);
}

void shadow_tags_release(struct shadow_tags *r)
{
    free(r->line);
    free(r->slot);
    free(r->order);
    free(r->sorted_next);
    free(r->free);
    *r = (struct shadow_tags){ 0 };
}

/* ---- slots: open addressing with linear probing ---- */

static uint32_t first_slot(const struct shadow_tags *r, uint64_t line)
{
    return (uint32_t)(line * UINT64_C(0x9e3779b97f4a7c15) >> 32) & r->mask;
}

/* The slot of a line; the free slot for it if it is in none. */
static uint32_t find_slot(const struct shadow_tags *r, uint64_t line)
{
    uint32_t at = first_slot(r, line);

    while (r->slot[at] && r->line[r->slot[at]].line != line)
        at = (at + 1) & r->mask;
    return at;
}

/* Empties a slot, and moves later ones of its run into the gap, so that probing finds them. */
static void clear_slot(struct shadow_tags *r, uint32_t at)
{
    for (uint32_t next = (at + 1) & r->mask; r->slot[next]; next = (next + 1) & r->mask) {
        uint32_t first = first_slot(r, r->line[r->slot[next]].line);
        if (((next - first) & r->mask) >= ((next - at) & r->mask)) {
            r->slot[at] = r->slot[next];
            at = next;
        }
    }
    r->slot[at] = 0;
}

/* ---- the oldest line ---- */

/* A pass of radix sort: sorts `order` by one digit of the times of use. */
static void shadow_tags_sort_digit(struct shadow_tags *r, uint64_t from, unsigned shift)
{
    uint32_t before[DIGITS] = { 0 }, sum = 0;

    for (uint32_t i = 1; i <= r->most; i++)
        before[(r->line[i].used - from) >> shift & (DIGITS - 1)]++;
    for (unsigned i = 0; i < DIGITS; i++) {
        uint32_t these = before[i];
        before[i] = sum;
        sum += these;
    }
    for (uint32_t i = 0; i < r->most; i++)
        r->sorted_next[before[(r->line[r->order[i]].used - from) >> shift & (DIGITS - 1)]++] = r->order[i];
    uint32_t *done = r->sorted_next;
    r->sorted_next = r->order;
    r->order = done;
}

static void shadow_tags_sort(struct shadow_tags *r)
{
    uint64_t from = UINT64_MAX;

    for (uint32_t i = 0; i < r->most; i++) {
        r->order[i] = i + 1;
        from = r->line[i + 1].used < from ? r->line[i + 1].used : from;
    }
    for (unsigned shift = 0; shift < 64 && (r->now - from) >> shift; shift += DIGIT_BITS)
        shadow_tags_sort_digit(r, from, shift);
    r->next = 0;
    r->sorted = r->now;
}

/* The oldest line of a full directory. Reaching the end of `order` takes `most` evictions, so that sorts are rare. */
static uint32_t shadow_tags_oldest(struct shadow_tags *r)
{
    for (;; shadow_tags_sort(r))
        while (r->next < r->most) {
            uint32_t i = r->order[r->next++];
            if (r->line[i].used <= r->sorted)
                return i;
        }
}

/* ---- uses ---- */

bool shadow_tags_use_slow(struct shadow_tags *r, uint64_t line)
{
    uint32_t at = find_slot(r, line), i = r->slot[at];
    bool was_there = i != 0;

    if (!was_there) {
        if (r->free_count) {
            i = r->free[--r->free_count];
        } else if (r->count < r->most) {
            i = ++r->count;
        } else {
            i = shadow_tags_oldest(r);
            clear_slot(r, find_slot(r, r->line[i].line));
            at = find_slot(r, line);
        }
        r->slot[at] = i;
    }
    r->line[i] = (struct shadow_line){ line, ++r->now };
    r->lookup[line % SHADOW_LOOKUP] = i;
    return was_there;
}

void shadow_tags_drop(struct shadow_tags *r, uint64_t line)
{
    uint32_t at = find_slot(r, line), i = r->slot[at];

    if (i == 0)
        return;
    clear_slot(r, at);
    r->line[i].line = UINT64_MAX;
    r->free[r->free_count++] = i;
}
