/* SPDX-License-Identifier: MIT */
/* Edit scripts in linear memory: strings are cut at a point of a shortest path, and both parts are made one after the other.
 *
 * The point comes from wavefronts of both ends (Myers 1986), or where strings are unlike, from bit-parallel tables of both halves
 * (Hirschberg 1975). Strings out of reach are cut at anchors, or after the wavefronts have gone some edits far; then the script is a bound. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "peet/err.h"
#include "study/compare/anchors.h"
#include "study/compare/distance.h"

enum {
    SMALL_CELLS = 1 << 12, /* tables that are made whole */
    GREEDY_EDITS = 256,    /* of a step through strings that are out of reach */
};

/* A script that is being made. */
struct script_maker {
    struct edit_script *script;
    uint32_t symbols;
    enum vector_width width;
    double cells; /* of tables that may still be made */
};

static void script_add(struct script_maker *m, size_t a, size_t a_count, size_t b, size_t b_count)
{
    struct edit_script *s = m->script;
    struct edit_hunk *last = s->count ? &s->hunk[s->count - 1] : NULL;

    if (a_count + b_count == 0)
        return;
    if (last && last->a + last->a_count == a && last->b + last->b_count == b) {
        last->a_count += a_count;
        last->b_count += b_count;
        return;
    }
    s->hunk = mem_room(s->hunk, s->count, sizeof *s->hunk);
    s->hunk[s->count++] = (struct edit_hunk){ a, b, a_count, b_count };
}

/* Two strings, and where they stand in the whole ones. */
struct script_strings {
    struct string32 a, b;
    size_t at_a, at_b;
};

static struct script_strings script_part(struct script_strings s, size_t a_from, size_t a_to, size_t b_from,
                                         size_t b_to)
{
    return (struct script_strings){ string32_part(s.a, a_from, a_to), string32_part(s.b, b_from, b_to), s.at_a + a_from,
                                    s.at_b + b_from };
}

/* The table of all prefixes, walked from the end. */
static void script_small(struct script_maker *m, struct script_strings s)
{
    uint16_t table[2 * SMALL_CELLS + 4];
    size_t n = s.a.count, wide = s.b.count + 1, i = 0, j = 0;

    /* table[i, j]: LCS of a from i on and b from j on */
    for (size_t k = 0; k < wide; k++)
        table[n * wide + k] = 0;
    for (size_t row = n; row-- > 0;) {
        table[row * wide + s.b.count] = 0;
        for (size_t k = s.b.count; k-- > 0;) {
            uint16_t down = table[(row + 1) * wide + k], right = table[row * wide + k + 1];
            table[row * wide + k] = s.a.at[row] == s.b.at[k] ? (uint16_t)(table[(row + 1) * wide + k + 1] + 1)
                                    : down > right           ? down
                                                             : right;
        }
    }
    while (i < n && j < s.b.count) {
        if (s.a.at[i] == s.b.at[j])
            i++, j++;
        else if (table[(i + 1) * wide + j] >= table[i * wide + j + 1])
            script_add(m, s.at_a + i, 1, s.at_b + j, 0), i++;
        else
            script_add(m, s.at_a + i, 0, s.at_b + j, 1), j++;
    }
    script_add(m, s.at_a + i, n - i, s.at_b + j, s.b.count - j);
}

/* A string of one symbol. */
static void script_single(struct script_maker *m, struct script_strings s)
{
    size_t j = 0;

    while (j < s.b.count && s.b.at[j] != s.a.at[0])
        j++;
    if (j == s.b.count) {
        script_add(m, s.at_a, 1, s.at_b, s.b.count);
    } else {
        script_add(m, s.at_a, 0, s.at_b, j);
        script_add(m, s.at_a + 1, 0, s.at_b + j + 1, s.b.count - j - 1);
    }
}

/* A copy in reverse order. */
static uint32_t *string32_reversed(struct string32 s)
{
    uint32_t *r = malloc((s.count + 1) * sizeof *r);

    for (size_t i = 0; r && i < s.count; i++)
        r[i] = s.at[s.count - 1 - i];
    return r;
}

/* The column through which a longest common subsequence passes the middle row of a. */
static int script_middle(struct script_maker *m, struct script_strings s, size_t *ret_b)
{
    size_t half = s.a.count / 2, words = (s.b.count + 63) / 64, best_at = 0;
    uint32_t *a = string32_reversed(string32_part(s.a, half, s.a.count)), *b = string32_reversed(s.b);
    uint64_t *first = malloc((2 * words + 1) * sizeof *first), *second = first + words, length, last;
    int r = a && b && first ? 0 : PEET_ERR_MEMORY;

    if (r == 0)
        r = bit_parallel_lcs(s.b, string32_part(s.a, 0, half), m->symbols, m->width, first, &length);
    if (r == 0)
        r = bit_parallel_lcs((struct string32){ b, s.b.count }, (struct string32){ a, s.a.count - half }, m->symbols,
                             m->width, second, &last);
    if (r == 0) {
        /* Before column j: LCS of the first half with b[0, j], and of the second one with the rest. */
        uint64_t sum = last, best = last;
        for (size_t j = 1; j <= s.b.count; j++) {
            size_t from_end =
                s.b.count - j; /* bit `from_end`: the second half with b from j − 1 on, beyond b from j on */
            sum += first[(j - 1) / 64] >> (j - 1) % 64 & 1;
            sum -= second[from_end / 64] >> from_end % 64 & 1;
            if (sum > best)
                best = sum, best_at = j;
        }
    }
    free(a);
    free(b);
    free(first);
    *ret_b = best_at;
    return r;
}

static int script_make(struct script_maker *m, struct script_strings s, const struct wavefront_limit *known);

static int script_both(struct script_maker *m, struct script_strings s, size_t a, size_t b,
                       const struct wavefront_limit *known)
{
    int r = script_make(m, script_part(s, 0, a, 0, b), known);

    return r < 0 ? r : script_make(m, script_part(s, a, s.a.count, b, s.b.count), known);
}

static int script_at_anchors(struct script_maker *m, struct script_strings s, const struct anchor *anchor, size_t count)
{
    size_t a = 0, b = 0;
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++) {
        r = script_make(m, script_part(s, a, anchor[i].a, b, anchor[i].b), NULL);
        a = anchor[i].a;
        b = anchor[i].b;
    }
    return r < 0 ? r : script_make(m, script_part(s, a, s.a.count, b, s.b.count), NULL);
}

/* Takes steps of GREEDY_EDITS edits, each to the point that is furthest from the start. */
static int script_greedy(struct script_maker *m, struct script_strings s)
{
    const struct wavefront_limit step = { .edits = GREEDY_EDITS, .work = 1e9 };
    const struct wavefront_limit known = { .edits = GREEDY_EDITS + 1, .work = 1e300 };
    struct wavefront_result found;
    int r = 0;

    while (r == 0 && s.a.count && s.b.count) {
        r = wavefront_distance(s.a, s.b, false, step, m->width, &found);
        if (r == 0 && found.is_found)
            return script_make(m, s, &known);
        if (r == 0)
            r = script_make(m, script_part(s, 0, found.a, 0, found.b), &known);
        s = script_part(s, found.a, s.a.count, found.b, s.b.count);
    }
    script_add(m, s.at_a, s.a.count, s.at_b, s.b.count);
    return r;
}

static int script_out_of_reach(struct script_maker *m, struct script_strings s)
{
    struct anchor *anchor;
    size_t count;

    m->script->is_exact = false;
    int r = anchors_find(s.a, s.b, &anchor, &count);
    if (r < 0)
        return r;
    r = count ? script_at_anchors(m, s, anchor, count) : script_greedy(m, s);
    free(anchor);
    return r;
}

/* known: limits that a search in the strings does not reach; NULL: unknown. */
static int script_make(struct script_maker *m, struct script_strings s, const struct wavefront_limit *known)
{
    size_t most = s.a.count < s.b.count ? s.a.count : s.b.count;
    size_t start = equal_start(s.a.at, s.b.at, most, m->width);
    size_t end = equal_end(s.a.at + s.a.count, s.b.at + s.b.count, most - start, m->width), middle;
    struct wavefront_result found;

    s = script_part(s, start, s.a.count - end, start, s.b.count - end);
    double cells = (double)s.a.count * (double)s.b.count;
    if (s.a.count == 0 || s.b.count == 0) {
        script_add(m, s.at_a, s.a.count, s.at_b, s.b.count);
        return 0;
    }
    if (cells <= SMALL_CELLS) {
        script_small(m, s);
        return 0;
    }
    if (s.a.count == 1) {
        script_single(m, s);
        return 0;
    }
    struct wavefront_limit limit = known ? *known : distance_limit(s.a.count, s.b.count, m->cells, m->width);
    int r = wavefront_split(s.a, s.b, limit, m->width, &found);
    if (r < 0)
        return r;
    if (found.is_found) {
        const struct wavefront_limit half = { .edits = found.edits / 2 + 1, .work = 1e300 };
        return script_both(m, s, found.a, found.b, &half);
    }
    if (cells > m->cells)
        return script_out_of_reach(m, s);
    m->cells -= m->script->is_exact ? 0 : cells; /* of strings out of reach, parts share what there is */
    r = script_middle(m, s, &middle);
    return r < 0 ? r : script_both(m, s, s.a.count / 2, middle, NULL);
}

/* Sums up a script, or releases it after a failure. */
static int edit_script_finish(struct edit_script *script, int r, struct edit_script *ret)
{
    for (size_t i = 0; i < script->count; i++) {
        const struct edit_hunk *h = &script->hunk[i];
        script->indels += h->a_count + h->b_count;
        script->edits += h->a_count > h->b_count ? h->a_count : h->b_count;
    }
    if (r < 0)
        edit_script_release(script);
    else
        *ret = *script;
    return r;
}

int edit_script_make(struct string32 a, struct string32 b, uint32_t symbols, const struct distance_effort *effort,
                     struct edit_script *ret)
{
    struct edit_script script = { .is_exact = true };
    struct script_maker m = { &script, symbols, effort->width, effort->cells };
    int r = script_make(&m, (struct script_strings){ a, b, 0, 0 }, NULL);

    return edit_script_finish(&script, r, ret);
}

int edit_script_bound(struct string32 a, struct string32 b, uint32_t symbols, const struct distance_effort *effort,
                      struct edit_script *ret)
{
    struct edit_script script = { .is_exact = true };
    struct script_maker m = { &script, symbols, effort->width, effort->cells };
    int r = script_out_of_reach(&m, (struct script_strings){ a, b, 0, 0 });

    return edit_script_finish(&script, r, ret);
}

void edit_script_release(struct edit_script *s)
{
    free(s->hunk);
    s->hunk = NULL;
    s->count = 0;
}
