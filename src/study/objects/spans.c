/* SPDX-License-Identifier: MIT */
#include "study/objects/spans.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void spans_release(struct spans *s)
{
    free(s->at);
    *s = (struct spans){ 0 };
}

/* How many begin at or before addr. */
static size_t rank(const struct spans *s, uint32_t process, uint64_t addr)
{
    size_t low = 0, high = s->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct span *m = &s->at[middle];
        if (m->process < process || (m->process == process && m->start <= addr))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert(struct spans *s, size_t at, const struct span *new)
{
    if (s->count == s->room) {
        s->room = s->room ? 2 * s->room : 16;
        struct span *more = mem_alloc(s->room, sizeof *more);
        if (s->count)
            memcpy(more, s->at, s->count * sizeof *more);
        free(s->at);
        s->at = more;
    }
    memmove(s->at + at + 1, s->at + at, (s->count - at) * sizeof *s->at);
    s->at[at] = *new;
    s->count++;
}

void spans_clear(struct spans *s, uint32_t process, uint64_t start, uint64_t end)
{
    if (end <= start || s->count == 0)
        return;
    size_t i = rank(s, process, start);
    if (i > 0 && s->at[i - 1].process == process && s->at[i - 1].end > start) {
        struct span right = s->at[i - 1];
        s->at[i - 1].end = start; /* maybe empty: then it goes below */
        right.start = end;
        if (right.end > end)
            insert(s, i, &right);
        if (s->at[i - 1].start == start)
            i--;
    }
    size_t gone = i;
    while (gone < s->count && s->at[gone].process == process && s->at[gone].end <= end)
        gone++;
    memmove(s->at + i, s->at + gone, (s->count - gone) * sizeof *s->at);
    s->count -= gone - i;
    if (i < s->count && s->at[i].process == process && s->at[i].start < end)
        s->at[i].start = end;
}

void spans_set(struct spans *s, const struct span *new)
{
    if (new->end <= new->start)
        return;
    spans_clear(s, new->process, new->start, new->end);
    insert(s, rank(s, new->process, new->start), new);
}

const struct span *spans_find(const struct spans *s, uint32_t process, uint64_t addr, uint64_t *ret_low,
                              uint64_t *ret_high)
{
    size_t i = rank(s, process, addr);
    const struct span *before = i > 0 && s->at[i - 1].process == process ? &s->at[i - 1] : NULL;
    const struct span *behind = i < s->count && s->at[i].process == process ? &s->at[i] : NULL;
    bool found = before && addr < before->end;
    uint64_t low = found ? before->start : before ? before->end : 0;
    uint64_t high = found ? before->end : behind ? behind->start : UINT64_MAX;

    *ret_low = low > *ret_low ? low : *ret_low;
    *ret_high = high < *ret_high ? high : *ret_high;
    return found ? before : NULL;
}
