/* SPDX-License-Identifier: MIT */
/* What was: lines that were ever used, and which of them a cache of the same size would have that may keep any. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/solo/state.h"

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

static unsigned bits_of(uint64_t value)
{
    return value ? 64 - (unsigned)__builtin_clzll(value) : 0;
}

int solo_lines_init(struct solo *s, uint64_t most)
{
    struct solo_recent *r = &s->recent;

    s->lines.pages.value_size = sizeof(struct solo_line *);
    r->most = most;
    r->tell = most / 4 > 8 ? (uint32_t)(most / 4) : 8;
    r->now = r->last = 1;
    r->rank = malloc((most + 1) * sizeof *r->rank);
    r->again = malloc(most + 1);
    r->used = malloc((most + 1) * sizeof(struct solo_line *));
    r->key = malloc((most + 1) * sizeof *r->key);
    r->key_buffer = malloc((most + 1) * sizeof *r->key);
    r->index_bits = bits_of(most);
    return r->rank && r->again && r->used && r->key && r->key_buffer ? 0 : -1;
}

void solo_lines_release(struct solo *s)
{
    map_release(&s->lines.pages);
    arena_release(&s->lines.arena);
    free(s->recent.rank);
    free(s->recent.again);
    free(s->recent.used);
    free(s->recent.key);
    free(s->recent.key_buffer);
}

struct solo_line *solo_lines_page(struct solo_lines *l, uint64_t page)
{
    struct solo_line **at = map_put(&l->pages, page, 0);

    assert(at); /* these tables are small beside what is simulated */
    if (!*at) {
        *at = arena_alloc(&l->arena, sizeof(struct solo_line) << SOLO_PAGE_BITS);
        assert(*at);
    }
    l->near[page % SOLO_PAGES_NEAR].key = page + 1;
    l->near[page % SOLO_PAGES_NEAR].line = *at;
    return *at;
}

/* By `bits` bits from that one on. */
static void sort_by_digit(const uint64_t *from, uint64_t *to, size_t n, unsigned at, unsigned bits)
{
    uint32_t place[DIGITS], sum = 0, digits = 1u << bits;

    memset(place, 0, digits * sizeof *place);
    for (size_t i = 0; i < n; i++)
        place[from[i] >> at & (digits - 1)]++;
    for (unsigned i = 0; i < digits; i++) {
        uint32_t count = place[i];
        place[i] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++)
        to[place[from[i] >> at & (digits - 1)]++] = from[i];
}

/* The lines of this interval by when they were used: that is in the upper bits, and their numbers in the lower ones. */
static const uint64_t *sort(const struct solo *s)
{
    const struct solo_recent *r = &s->recent;
    unsigned bits = bits_of(s->number - r->began), digits = (bits + DIGIT_BITS - 1) / DIGIT_BITS, at = r->index_bits;
    uint64_t *from = r->key, *to = r->key_buffer;

    assert(bits + r->index_bits <= 64); /* no run is so long */
    for (uint32_t i = 0; i < r->count; i++)
        from[i] = (solo_used_last(s, r->used[i]) - r->began) << r->index_bits | i;
    for (unsigned left = bits, here; left > 0; left -= here, at += here, digits--) {
        here = (left + digits - 1) / digits;
        sort_by_digit(from, to, r->count, at, here);
        uint64_t *other = from;
        from = to;
        to = other;
    }
    return from;
}

void solo_tell_again(struct solo *s)
{
    s->recent.before = s->recent.since;
    s->recent.since = s->number;
    s->recent.told = 0;
}

void solo_end_interval(struct solo *s)
{
    struct solo_recent *r = &s->recent;
    const uint64_t *key = sort(s), mask = (UINT64_C(1) << r->index_bits) - 1;

    for (uint32_t i = 0; i < r->count; i++)
        r->rank[key[i] & mask] = i;
    memset(r->again, 0, r->count);
    r->ranks = r->count;
    r->last = r->now;
    r->now += r->count;
    r->gone = 0;
    r->count = 0;
    r->began = s->number;
    solo_tell_again(s);
}
