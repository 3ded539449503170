/* SPDX-License-Identifier: MIT */
/* See mem_spans.h. */
#include "study/objects/mem_spans.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void mem_spans_release(struct mem_spans *s)
{
    free(s->at);
    *s = (struct mem_spans){ 0 };
}

/* The number of spans that begin at or before addr. */
static size_t mem_spans_rank(const struct mem_spans *s, uint32_t process, uint64_t addr)
{
    size_t low = 0, high = s->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct mem_span *m = &s->at[middle];
        if (m->process < process || (m->process == process && m->start <= addr))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void mem_spans_insert(struct mem_spans *s, size_t at, const struct mem_span *new)
{
    if (s->count == s->room) {
        s->room = s->room ? 2 * s->room : 16;
        struct mem_span *more = mem_alloc(s->room, sizeof *more);
        if (s->count)
            memcpy(more, s->at, s->count * sizeof *more);
        free(s->at);
        s->at = more;
    }
    memmove(s->at + at + 1, s->at + at, (s->count - at) * sizeof *s->at);
    s->at[at] = *new;
    s->count++;
}

void mem_spans_clear(struct mem_spans *s, uint32_t process, uint64_t start, uint64_t end)
{
    if (end <= start || s->count == 0)
        return;
    size_t i = mem_spans_rank(s, process, start);
    if (i > 0 && s->at[i - 1].process == process && s->at[i - 1].end > start) {
        struct mem_span right = s->at[i - 1];
        s->at[i - 1].end = start; /* maybe empty: then it goes below */
        right.start = end;
        if (right.end > end)
            mem_spans_insert(s, i, &right);
        if (s->at[i - 1].start == start)
            i--;
    }
    size_t removed = i;
    while (removed < s->count && s->at[removed].process == process && s->at[removed].end <= end)
        removed++;
    memmove(s->at + i, s->at + removed, (s->count - removed) * sizeof *s->at);
    s->count -= removed - i;
    if (i < s->count && s->at[i].process == process && s->at[i].start < end)
        s->at[i].start = end;
}

void mem_spans_set(struct mem_spans *s, const struct mem_span *new)
{
    if (new->end <= new->start)
        return;
    mem_spans_clear(s, new->process, new->start, new->end);
    mem_spans_insert(s, mem_spans_rank(s, new->process, new->start), new);
}

const struct mem_span *mem_spans_find(const struct mem_spans *s, uint32_t process, uint64_t addr, uint64_t *ret_low,
                                      uint64_t *ret_high)
{
    size_t i = mem_spans_rank(s, process, addr);
    const struct mem_span *before = i > 0 && s->at[i - 1].process == process ? &s->at[i - 1] : NULL;
    const struct mem_span *after = i < s->count && s->at[i].process == process ? &s->at[i] : NULL;
    bool found = before && addr < before->end;
    uint64_t low = found ? before->start : before ? before->end : 0;
    uint64_t high = found ? before->end : after ? after->start : UINT64_MAX;

    *ret_low = low > *ret_low ? low : *ret_low;
    *ret_high = high < *ret_high ? high : *ret_high;
    return found ? before : NULL;
}
