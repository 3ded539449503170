/* SPDX-License-Identifier: MIT */
/* Lines that were ever used, and the shadow tags: the lines that a fully associative LRU cache of equal size would have. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/mem.h"
#include "sim/exec/uses.h"

/* Bytes between pages, so that lines of one set of the simulated cache are not in one set of the host's cache. */
enum { BETWEEN_PAGES = 96 };
enum { BIT_STRIDE = 64 }; /* bits of every 64th line are set in turn: consecutive ones are seldom in one word */
enum {
    BITS_PER_LINE = 64
}; /* references per line up to which rank_by_bits is faster than rank_by; they fit into key_buffer */
enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS, MOST_DIGITS = (64 + DIGIT_BITS - 1) / DIGIT_BITS };

static unsigned bits_of(uint64_t value)
{
    return value ? 64 - (unsigned)__builtin_clzll(value) : 0;
}

bool exec_short_epochs;

/* From the next use on. */
static void begin_interval(struct epoch_shadow *r)
{
    r->last = r->ranks ? r->now : r->next;
    r->now = r->next;
}

static void find_origins(struct epoch_shadow *r)
{
    r->end = r->now + r->most;
    r->rank_origin = (uintptr_t)r->rank - r->last * sizeof *r->rank;
    r->used_origin = (uintptr_t)r->used - r->now * sizeof(struct exec_line *);
    r->used_at_origin = (uintptr_t)r->used_at - r->now * sizeof *r->used_at;
}

/* Renumbers uses before they exceed 32 bits. Lines that were not used in the last two epochs get the number 1. */
static void epoch_renumber(struct exec_blocks *s)
{
    struct epoch_shadow *r = &s->recent;
    uint64_t less = r->last - 2;

    for (size_t i = 0; i < s->memory.lines.page_count; i++)
        for (size_t k = 0; k < 1 << LINE_PAGE_BITS; k++) {
            struct exec_line *l =
                (struct exec_line *)((uintptr_t)s->memory.lines.page[i] + (k << s->memory.lines.bits));
            l->use = l->use >= r->last ? l->use - (uint32_t)less : l->use > 0;
        }
    r->last -= less;
    r->now -= less;
    r->next -= less;
}

int exec_lines_init(struct exec_blocks *s, uint64_t most)
{
    struct epoch_shadow *r = &s->recent;

    s->memory.lines.pages.value_size = sizeof(uintptr_t);
    r->most = most;
    r->most_noted = most / 4 > 8 ? (uint32_t)(most / 4) : 8;
    r->rank = malloc((most + 1) * sizeof *r->rank);
    r->used_again = malloc(most + 1);
    r->used = malloc((most + 1) * sizeof(struct exec_line *));
    r->used_at = malloc((most + 1) * sizeof *r->used_at);
    r->limit = exec_short_epochs ? 5 * most + 8 : UINT32_MAX;
    r->key = malloc((most + 1) * sizeof *r->key);
    r->key_buffer = malloc((most + 1) * sizeof *r->key);
    r->has_popcount = cpu_has_avx2();
    r->index_bits = bits_of(most);
    r->next = 2;
    begin_interval(r);
    find_origins(r);
    for (unsigned i = 0; i < LINE_PAGE_CACHE; i++)
        s->memory.lines.page_cache[i].page = UINT64_MAX;
    return r->rank && r->used_again && r->used && r->used_at && r->key && r->key_buffer ? 0 : -1;
}

void exec_lines_release(struct exec_blocks *s)
{
    map_release(&s->memory.lines.pages);
    arena_release(&s->memory.lines.arena);
    free(s->recent.rank);
    free(s->recent.used_again);
    free(s->recent.used);
    free(s->recent.used_at);
    free(s->memory.lines.page);
    free(s->recent.key);
    free(s->recent.key_buffer);
}

uintptr_t exec_lines_page(struct exec_lines *l, uint64_t page)
{
    uintptr_t *at = map_put(&l->pages, page, 0);

    assert(at); /* these tables are small beside what is simulated */
    if (!*at) {
        const size_t size = (size_t)1 << (LINE_PAGE_BITS + l->bits);
        uintptr_t lines = (uintptr_t)arena_alloc(&l->arena, size + BETWEEN_PAGES + sizeof(struct exec_line));
        assert(lines);
        lines = (lines & -sizeof(struct exec_line)) + sizeof(struct exec_line);
        *at = lines - size * page;
        l->page = mem_room(l->page, l->page_count, sizeof(struct exec_line *));
        l->page[l->page_count++] = (struct exec_line *)lines;
    }
    l->page_cache[page % LINE_PAGE_CACHE].page = page;
    l->page_cache[page % LINE_PAGE_CACHE].origin = *at;
    return *at;
}

/* Turns counts of digits into the position of the first element of each digit. */
static void begin_digits(uint32_t *position, uint32_t digits)
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < digits; i++) {
        uint32_t count = position[i];
        position[i] = sum;
        sum += count;
    }
}

/* The number of the last reference to a line of this interval, by its own from `now` on. Whether the first cache has it is hard to foresee. */
static inline uint64_t used_last(const struct exec_blocks *s, uint32_t number)
{
    const struct exec_line *l = s->recent.used[number];
    size_t before = s->cache.state_from_tags ? s->recent.used_at[number]
                                             : (l->entry[0] - (l->entry[0] > 0)) * sizeof *s->cache.first;
    const struct l1_entry *at = (const struct l1_entry *)((uintptr_t)s->cache.first + before);
    uint64_t is_there = -(uint64_t)(at->info == l);

    return (at->stamp & is_there) | (l->stamp & ~is_there);
}

/* Ranks the lines of this epoch by their last use: radix sort with that number of digits of `size` bits. A key is the use, then the index of the line. */
static inline __attribute__((always_inline)) void rank_by(const struct exec_blocks *s, unsigned digits, unsigned size)
{
    const struct epoch_shadow *r = &s->recent;
    uint32_t position[MOST_DIGITS][DIGITS], values = 1u << size, count = (uint32_t)(r->next - r->now), *rank = r->rank;
    uint64_t *from = r->key, *to = r->key_buffer, index = (UINT64_C(1) << r->index_bits) - 1, began = r->began;
    unsigned at = r->index_bits;

    for (unsigned d = 0; d < digits; d++)
        memset(position[d], 0, values * sizeof *position[d]);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t key = used_last(s, i) - began;
        from[i] = key << at | i;
        for (unsigned d = 0; d < digits; d++)
            position[d][key >> d * size & (values - 1)]++;
    }
    for (unsigned d = 0; d < digits; d++)
        begin_digits(position[d], values);
    for (unsigned d = 0; d + 1 < digits; d++, at += size) {
        for (uint32_t i = 0; i < count; i++)
            to[position[d][from[i] >> at & (values - 1)]++] = from[i];
        uint64_t *other = from;
        from = to;
        to = other;
    }
    for (uint32_t i = 0; i < count; i++)
        rank[from[i] & index] = position[digits - 1][from[i] >> at]++;
}

#ifdef __x86_64__
/* Ranks the lines of a short epoch: a bit is set for each reference that was the last one to its line. The rank of a line is the number of bits before
 * its own. False: two lines have the same bit, which is an error. */
__attribute__((target("popcnt"))) static bool rank_by_bits(const struct exec_blocks *s)
{
    const struct epoch_shadow *r = &s->recent;
    uint64_t began = r->began, words = (s->number - began) / 64 + 1, *bits = r->key_buffer;
    uint32_t count = (uint32_t)(r->next - r->now), *key = (uint32_t *)(void *)r->key, *before = key + count, sum = 0;

    memset(bits, 0, words * sizeof *bits);
    for (uint32_t i = 0; i < count; i++)
        key[i] = (uint32_t)(used_last(s, i) - began);
    for (uint32_t k = 0; k < BIT_STRIDE; k++)
        for (uint32_t i = k; i < count; i += BIT_STRIDE)
            bits[key[i] / 64] |= UINT64_C(1) << key[i] % 64;
    for (uint32_t i = 0; i < words; i++) {
        before[i] = sum;
        sum += (uint32_t)__builtin_popcountll(bits[i]);
    }
    for (uint32_t i = 0; i < count; i++)
        r->rank[i] = before[key[i] / 64]
                     + (uint32_t)__builtin_popcountll(bits[key[i] / 64] & ((UINT64_C(1) << key[i] % 64) - 1));
    return sum == count;
}
#endif

/* Ranks the lines of this epoch by their last use. */
static void epoch_rank(const struct exec_blocks *s)
{
    unsigned bits = bits_of(s->number - s->recent.began);

#ifdef __x86_64__
    if (s->recent.has_popcount && s->number - s->recent.began < BITS_PER_LINE * (s->recent.next - s->recent.now)
        && rank_by_bits(s))
        return;
#endif
    assert(bits > 0 && bits + s->recent.index_bits <= 64); /* references of a run are far fewer */
    unsigned digits = (bits + DIGIT_BITS - 1) / DIGIT_BITS, size = (bits + digits - 1) / digits;
    if (digits == 2) /* mostly */
        rank_by(s, 2, size);
    else
        rank_by(s, digits, size);
}

void epoch_shadow_note_again(struct exec_blocks *s)
{
    s->recent.before = s->recent.since;
    s->recent.since = s->number;
    s->recent.noted_uses = 0;
}

void epoch_shadow_advance(struct exec_blocks *s)
{
    struct epoch_shadow *r = &s->recent;

    epoch_rank(s);
    r->ranks = r->next - r->now;
    memset(r->used_again, 0, r->ranks);
    r->evicted_below = 0;
    begin_interval(r);
    if (r->next + r->most >= r->limit)
        epoch_renumber(s);
    find_origins(r);
    r->began = s->number;
    epoch_shadow_note_again(s);
}
