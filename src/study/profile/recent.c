/* SPDX-License-Identifier: MIT */
#include "study/profile/recent.h"

#include <stdlib.h>

#include "base/mem.h"

enum { NEAR = 4 }; /* of the newest, which are looked at before all others */

void recent_init(struct recent *r, uint32_t most)
{
    uint32_t cells = 4;

    while (cells < 2 * most)
        cells *= 2;
    *r = (struct recent){ .most = most, .newest = UINT64_MAX, .mask = cells - 1 };
    r->line = mem_alloc((size_t)most + 1, sizeof *r->line);
    r->cell = mem_alloc(cells, sizeof *r->cell);
}

void recent_release(struct recent *r)
{
    free(r->line);
    free(r->cell);
    *r = (struct recent){ 0 };
}

/* ---- the ring ---- */

static void take_out(struct recent *r, uint32_t i)
{
    r->line[r->line[i].newer].older = r->line[i].older;
    r->line[r->line[i].older].newer = r->line[i].newer;
}

static void put_behind(struct recent *r, uint32_t i, uint32_t newer)
{
    uint32_t older = r->line[newer].older;

    r->line[i].newer = newer;
    r->line[i].older = older;
    r->line[older].newer = i;
    r->line[newer].older = i;
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

bool recent_use_other(struct recent *r, uint64_t line)
{
    uint32_t near = r->line[0].older;

    for (unsigned k = 0; k < NEAR && near; k++, near = r->line[near].older)
        if (r->line[near].line == line) {
            r->newest = line;
            take_out(r, near);
            put_behind(r, near, 0);
            return true;
        }
    uint32_t at = find_cell(r, line), i = r->cell[at];
    bool was_there = i != 0;

    r->newest = line;
    if (was_there) {
        take_out(r, i);
    } else if (r->count < r->most) {
        i = ++r->count;
    } else { /* the oldest goes, unless it has gone before */
        i = r->line[0].newer;
        take_out(r, i);
        if (r->line[i].line != UINT64_MAX)
            clear_cell(r, find_cell(r, r->line[i].line));
        at = find_cell(r, line);
    }
    r->line[i].line = line;
    r->cell[at] = i;
    put_behind(r, i, 0);
    return was_there;
}

/* It stays in the ring, as the oldest, without a line. */
void recent_drop(struct recent *r, uint64_t line)
{
    uint32_t at = find_cell(r, line), i = r->cell[at];

    if (i == 0)
        return;
    if (r->newest == line)
        r->newest = UINT64_MAX;
    clear_cell(r, at);
    take_out(r, i);
    r->line[i].line = UINT64_MAX;
    put_behind(r, i, r->line[0].newer);
}
