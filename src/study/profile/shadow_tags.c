/* SPDX-License-Identifier: MIT */
#include "study/profile/shadow_tags.h"

#include <stdlib.h>

#include "base/mem.h"

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

void recent_init(struct recent *r, uint32_t most)
{
    uint32_t cells = 4;

    while (cells < 2 * most)
        cells *= 2;
    *r = (struct recent){ .most = most, .mask = cells - 1, .next = most };
    r->line = mem_alloc((size_t)most + 1, sizeof *r->line);
    r->line[0].line = UINT64_MAX;
    r->cell = mem_alloc(cells, sizeof *r->cell);
    r->order = mem_alloc(most, sizeof *r->order);
    r->other = mem_alloc(most, sizeof *r->other);
    r->free = mem_alloc(most, sizeof *r->free);
}

void recent_release(struct recent *r)
{
    free(r->line);
    free(r->cell);
    free(r->order);
    free(r->other);
    free(r->free);
    *r = (struct recent){ 0 };
}

/* ---- where lines are: cells from the hash on, without a gap ---- */

static uint32_t first_cell(const struct recent *r, uint64_t line)
{
    return (uint32_t)(line * UINT64_C(0x9e3779b97f4a7c15) >> 32) & r->mask;
}

/* The cell of a line, or the free one where it would be. */
static uint32_t find_cell(const struct recent *r, uint64_t line)
{
    uint32_t at = first_cell(r, line);

    while (r->cell[at] && r->line[r->cell[at]].line != line)
        at = (at + 1) & r->mask;
    return at;
}

/* Those behind it move up where they may. */
static void clear_cell(struct recent *r, uint32_t at)
{
    for (uint32_t next = (at + 1) & r->mask; r->cell[next]; next = (next + 1) & r->mask) {
        uint32_t home = first_cell(r, r->line[r->cell[next]].line);
        if (((next - home) & r->mask) >= ((next - at) & r->mask)) {
            r->cell[at] = r->cell[next];
            at = next;
        }
    }
    r->cell[at] = 0;
}

/* ---- which is the oldest ---- */

/* By one digit of when they were used. */
static void sort_by(struct recent *r, uint64_t from, unsigned shift)
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
        r->other[before[(r->line[r->order[i]].used - from) >> shift & (DIGITS - 1)]++] = r->order[i];
    uint32_t *done = r->other;
    r->other = r->order;
    r->order = done;
}

static void sort(struct recent *r)
{
    uint64_t from = UINT64_MAX;

    for (uint32_t i = 0; i < r->most; i++) {
        r->order[i] = i + 1;
        from = r->line[i + 1].used < from ? r->line[i + 1].used : from;
    }
    for (unsigned shift = 0; shift < 64 && (r->now - from) >> shift; shift += DIGIT_BITS)
        sort_by(r, from, shift);
    r->next = 0;
    r->sorted = r->now;
}

/* Of as many as there may be. To come to the end takes as many uses, so that they are not sorted often. */
static uint32_t oldest(struct recent *r)
{
    for (;; sort(r))
        while (r->next < r->most) {
            uint32_t i = r->order[r->next++];
            if (r->line[i].used <= r->sorted)
                return i;
        }
}

/* ---- uses ---- */

bool recent_use_other(struct recent *r, uint64_t line)
{
    uint32_t at = find_cell(r, line), i = r->cell[at];
    bool was_there = i != 0;

    if (!was_there) {
        if (r->frees) {
            i = r->free[--r->frees];
        } else if (r->count < r->most) {
            i = ++r->count;
        } else {
            i = oldest(r);
            clear_cell(r, find_cell(r, r->line[i].line));
            at = find_cell(r, line);
        }
        r->cell[at] = i;
    }
    r->line[i] = (struct recent_line){ line, ++r->now };
    r->near[line % RECENT_NEAR] = i;
    return was_there;
}

void recent_drop(struct recent *r, uint64_t line)
{
    uint32_t at = find_cell(r, line), i = r->cell[at];

    if (i == 0)
        return;
    clear_cell(r, at);
    r->line[i].line = UINT64_MAX;
    r->free[r->frees++] = i;
}
