/* SPDX-License-Identifier: MIT */
/* What was: lines that were ever used, and which of them a cache of the same size would have that may keep any. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/solo_state.h"

enum { LONG_INTERVAL = 256 }; /* lines */

struct solo_key {
    uint64_t used;
    struct solo_line *line;
};

void solo_lines_init(struct solo *s, uint64_t most)
{
    struct solo_recent *r = &s->recent;

    s->lines.pages.value_size = sizeof(struct solo_line *);
    r->most = most;
    /* Long intervals have fewer first uses; but the one in which the cache would end is looked through. */
    uint64_t width = most / 16 < LONG_INTERVAL ? most / 16 : most / 64 > LONG_INTERVAL ? most / 64 : LONG_INTERVAL;
    r->width = width > 8 ? (uint32_t)width : 8;
    r->now = 1;
}

void solo_lines_release(struct solo *s)
{
    map_release(&s->lines.pages);
    arena_release(&s->lines.arena);
    for (unsigned i = 0; i < SOLO_INTERVALS; i++)
        free(s->recent.interval[i].line);
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

static uint64_t last_use(const struct solo *s, const struct solo_line *l)
{
    return l->entry[0] ? s->first[l->entry[0] - 1].stamp : l->stamp;
}

static struct solo_interval *interval_at(struct solo *s, uint32_t number)
{
    return &s->recent.interval[number % SOLO_INTERVALS];
}

bool solo_is_recent(const struct solo *s, const struct solo_line *l)
{
    const struct solo_recent *r = &s->recent;

    if (l->interval != r->border || r->border == 0)
        return l->interval > r->border;
    const struct solo_interval *border = &r->interval[r->border % SOLO_INTERVALS];
    uint64_t newer = r->newer, used = last_use(s, l);
    for (uint32_t i = 0; i < border->count; i++)
        newer += border->line[i]->interval == r->border && last_use(s, border->line[i]) > used;
    return newer < r->most;
}

static inline void put(struct solo *s, struct solo_line *l)
{
    struct solo_interval *now = interval_at(s, s->recent.now);

    if (now->count == now->room) {
        now->room = now->room * 2 + 64;
        now->line = realloc(now->line, now->room * sizeof(struct solo_line *));
        assert(now->line);
    }
    now->line[now->count++] = l;
    now->lines++;
    l->interval = s->recent.now;
}

void solo_use_anew(struct solo *s, struct solo_line *l)
{
    struct solo_recent *r = &s->recent;

    if (l->interval >= r->border && l->interval)
        interval_at(s, l->interval)->lines--;
    r->newer += l->interval <= r->border && r->border < r->now; /* an interval may have more lines than the cache */
    put(s, l);
    while (r->newer >= r->most) /* the cache ends later */
        r->newer -= interval_at(s, ++r->border)->lines;
}

static int by_use(const void *a, const void *b)
{
    const struct solo_key *x = a, *y = b;

    return x->used < y->used ? -1 : x->used > y->used;
}

/* There are too many intervals, most of them with few lines: their lines are put into as few as there can be. */
static void pack(struct solo *s)
{
    struct solo_recent *r = &s->recent;
    uint32_t first = r->border ? r->border : 1, last = r->now;
    size_t n = 0, most = r->newer + (r->border ? interval_at(s, r->border)->lines : 0);
    struct solo_key *key = malloc((most + 1) * sizeof *key);

    assert(key);
    for (uint32_t i = first; i <= last; i++) {
        struct solo_interval *x = interval_at(s, i);
        for (uint32_t k = 0; k < x->count; k++)
            if (x->line[k]->interval == i)
                key[n++] = (struct solo_key){ last_use(s, x->line[k]), x->line[k] };
        x->count = x->lines = 0;
    }
    qsort(key, n, sizeof *key, by_use);
    r->now = last;
    r->newer = n;
    r->border = last;
    for (size_t i = 0; i < n; i++) {
        if (i % r->width == 0) {
            r->now++;
            interval_at(s, r->now)->count = interval_at(s, r->now)->lines = 0;
        }
        put(s, key[i].line);
    }
    while (r->newer >= r->most)
        r->newer -= interval_at(s, ++r->border)->lines;
    free(key);
}

void solo_end_interval(struct solo *s)
{
    struct solo_recent *r = &s->recent;

    if (r->border == 0 && r->newer + r->width < r->most)
        return; /* there are so few lines that all of them would be there */
    if (r->border == 0 || r->now - r->border >= SOLO_INTERVALS - 2)
        pack(s);
    r->now++;
    interval_at(s, r->now)->count = interval_at(s, r->now)->lines = 0;
    r->before = r->since;
    r->since = s->number;
}
