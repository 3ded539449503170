/* SPDX-License-Identifier: MIT */
/* What was: lines that were ever used, and which of them a cache of the same size would have that may keep any. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/solo/state.h"

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

struct solo_key {
    uint64_t used;
    struct solo_line *line;
};

int solo_lines_init(struct solo *s, uint64_t most)
{
    struct solo_recent *r = &s->recent;

    s->lines.pages.value_size = sizeof(struct solo_line *);
    r->most = most;
    r->tell = most / 4 > 8 ? (uint32_t)(most / 4) : 8;
    r->from = r->end = r->base = 1;
    r->room = 4 * most + 4;
    r->line = malloc(r->room * sizeof(struct solo_line *));
    r->used = malloc((most + 1) * sizeof(struct solo_line *));
    r->key = malloc((most + 1) * sizeof *r->key);
    r->key_buffer = malloc((most + 1) * sizeof *r->key);
    return r->line && r->used && r->key && r->key_buffer ? 0 : -1;
}

void solo_lines_release(struct solo *s)
{
    map_release(&s->lines.pages);
    arena_release(&s->lines.arena);
    free(s->recent.line);
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

/* By when they were used, which is less than `most`. Returns which of the two has them then. */
static struct solo_key *sort(struct solo_key *from, struct solo_key *to, size_t n, uint64_t most)
{
    for (unsigned shift = 0; shift < 64 && most >> shift; shift += DIGIT_BITS) {
        uint32_t at[DIGITS] = { 0 }, sum = 0;
        for (size_t i = 0; i < n; i++)
            at[from[i].used >> shift & (DIGITS - 1)]++;
        for (unsigned i = 0; i < DIGITS; i++) {
            uint32_t count = at[i];
            at[i] = sum;
            sum += count;
        }
        for (size_t i = 0; i < n; i++)
            to[at[from[i].used >> shift & (DIGITS - 1)]++] = from[i];
        struct solo_key *other = from;
        from = to;
        to = other;
    }
    return from;
}

/* Leaves out what was used since, or has gone. */
static void pack(struct solo_recent *r)
{
    uint64_t end = r->end;

    for (uint64_t i = r->from; i < end; i++) {
        struct solo_line *l = r->line[i - r->base];
        if (l->rank != i)
            continue;
        l->rank = r->end;
        r->line[r->end++ - end] = l; /* never before what is read */
    }
    r->base = r->from = end;
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

    for (uint32_t i = 0; i < r->count; i++)
        r->key[i] = (struct solo_key){ solo_used_last(s, r->used[i]) - r->began, r->used[i] };
    const struct solo_key *key = sort(r->key, r->key_buffer, r->count, s->number - r->began);
    if (r->end - r->base + r->count > r->room)
        pack(r);
    for (uint32_t i = 0; i < r->count; i++) {
        r->line[r->end - r->base] = key[i].line;
        key[i].line->rank = r->end++;
    }
    r->count = 0;
    r->began = s->number;
    solo_tell_again(s);
}
