/* SPDX-License-Identifier: MIT */
/* Distances and edit scripts against the table of all prefixes, for every engine and every vector width that the processor has. */
#include <stdlib.h>

#include "peet/err.h"
#include "study/compare/anchors.h"
#include "study/compare/distance.h"
#include "tests/unit/check.h"
#include "tests/unit/random.h"

enum { PAIRS = 10000, LONGEST = 300 };

static uint64_t seed = 7;

/* A pair of strings. */
struct pair {
    uint32_t a[LONGEST + 40], b[LONGEST + 40];
    struct string32 x, y;
    uint32_t symbols;
};

/* Strings of all kinds: unrelated ones, ones with few changes, periodic ones; few and many symbols. */
static void pair_make(struct pair *p)
{
    static const uint32_t SYMBOLS[] = { 1, 2, 3, 5, 20, 300, 5000 };
    uint64_t kind = draw(&seed, 4), change = 1 + draw(&seed, 40);
    size_t n = draw(&seed, LONGEST + 1), m = 0, period = 1 + draw(&seed, 12);

    p->symbols = SYMBOLS[draw(&seed, sizeof SYMBOLS / sizeof *SYMBOLS)];
    for (size_t i = 0; i < n; i++)
        p->a[i] = kind == 3 && i >= period && draw(&seed, 20) ? p->a[i - period] : (uint32_t)draw(&seed, p->symbols);
    if (kind == 0) {
        m = draw(&seed, LONGEST + 1);
        for (size_t j = 0; j < m; j++)
            p->b[j] = (uint32_t)draw(&seed, p->symbols);
    }
    for (size_t i = 0; kind != 0 && i < n && m < LONGEST; i++) {
        uint64_t what = draw(&seed, change * 3);
        if (what != 0)
            p->b[m++] = what == 1 ? (uint32_t)draw(&seed, p->symbols) : p->a[i];
        if (what == 2 && m < LONGEST)
            p->b[m++] = (uint32_t)draw(&seed, p->symbols);
    }
    p->x = (struct string32){ p->a, n };
    p->y = (struct string32){ p->b, m };
}

/* The table of all prefixes, row by row. A replacement costs 1, or as much as an insertion and a deletion. */
static uint64_t plain_distance(struct string32 a, struct string32 b, bool replaces)
{
    static uint64_t row[LONGEST + 1];

    for (size_t j = 0; j <= b.count; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.count; i++) {
        uint64_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.count; j++) {
            uint64_t best = diagonal + (a.at[i - 1] == b.at[j - 1] ? 0 : replaces ? 1 : 2);
            best = row[j] + 1 < best ? row[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[b.count];
}

/* Applies a script to a. True: the result is b, and hunks are in order with something equal between them. */
static bool script_holds(const struct edit_script *s, struct string32 a, struct string32 b)
{
    size_t i = 0, j = 0;

    for (size_t k = 0; k <= s->count; k++) {
        struct edit_hunk end = { a.count, b.count, 0, 0 }, h = k < s->count ? s->hunk[k] : end;
        if (h.a < i || h.a - i != h.b - j || (k > 0 && k < s->count && h.a == i) || h.a + h.a_count > a.count
            || h.b + h.b_count > b.count)
            return false;
        for (; i < h.a; i++, j++)
            if (a.at[i] != b.at[j])
                return false;
        i += h.a_count;
        j += h.b_count;
    }
    return i == a.count && j == b.count;
}

static void every_engine_and_width_equals_the_plain_table(void)
{
    static struct pair p;

    for (unsigned round = 0; round < PAIRS; round++) {
        pair_make(&p);
        uint64_t indels = plain_distance(p.x, p.y, false), edits = plain_distance(p.x, p.y, true), value;
        const struct wavefront_limit all = { .edits = 2 * LONGEST, .work = 1e300 };
        for (enum vector_width w = VECTOR_PORTABLE; w < VECTOR_WIDTHS; w++) {
            struct wavefront_result found;
            struct distance d;
            struct distance_effort effort = { w, DISTANCE_CELLS };
            if (!vector_width_is_supported(w))
                continue;
            CHECK_EQ(bit_parallel_lcs(p.x, p.y, p.symbols, w, NULL, &value), 0);
            CHECK_EQ(p.x.count + p.y.count - 2 * value, indels);
            CHECK_EQ(bit_parallel_edits(p.x, p.y, p.symbols, w, &value), 0);
            CHECK_EQ(value, edits);
            CHECK_EQ(wavefront_distance(p.x, p.y, false, all, w, &found), 0);
            CHECK(found.is_found);
            CHECK_EQ(found.edits, indels);
            CHECK_EQ(wavefront_distance(p.x, p.y, true, all, w, &found), 0);
            CHECK(found.is_found);
            CHECK_EQ(found.edits, edits);
            CHECK_EQ(distance_indels(p.x, p.y, p.symbols, &effort, &d), 0);
            CHECK(d.least == indels && d.most == indels);
            CHECK_EQ(distance_edits(p.x, p.y, p.symbols, &effort, &d), 0);
            CHECK(d.least == edits && d.most == edits);
        }
    }
}

static void a_split_is_on_a_shortest_path(void)
{
    static struct pair p;

    for (unsigned round = 0; round < PAIRS / 4; round++) {
        pair_make(&p);
        const struct wavefront_limit all = { .edits = 2 * LONGEST, .work = 1e300 };
        struct wavefront_result found;
        uint64_t indels = plain_distance(p.x, p.y, false);
        for (enum vector_width w = VECTOR_PORTABLE; w < VECTOR_WIDTHS; w++) {
            if (!vector_width_is_supported(w))
                continue;
            CHECK_EQ(wavefront_split(p.x, p.y, all, w, &found), 0);
            CHECK(found.is_found);
            CHECK_EQ(found.edits, indels);
            uint64_t before = plain_distance(string32_part(p.x, 0, found.a), string32_part(p.y, 0, found.b), false);
            uint64_t after =
                plain_distance(string32_part(p.x, found.a, p.x.count), string32_part(p.y, found.b, p.y.count), false);
            CHECK_EQ(before + after, indels);
            CHECK(before == indels / 2 || before == (indels + 1) / 2);
        }
    }
}

static void a_search_that_is_given_up_says_a_lower_bound(void)
{
    static struct pair p;

    for (unsigned round = 0; round < PAIRS / 4; round++) {
        pair_make(&p);
        const struct wavefront_limit few = { .edits = draw(&seed, 60), .work = 1e300, .predicts = draw(&seed, 2) };
        bool replaces = draw(&seed, 2);
        struct wavefront_result found;
        uint64_t edits = plain_distance(p.x, p.y, replaces);
        CHECK_EQ(wavefront_distance(p.x, p.y, replaces, few, VECTOR_PORTABLE, &found), 0);
        CHECK(found.is_found ? found.edits == edits : found.edits <= edits && edits > 0);
        CHECK(found.is_found || few.predicts || found.edits == few.edits + 1);
        CHECK(found.is_found
              || plain_distance(string32_part(p.x, 0, found.a), string32_part(p.y, 0, found.b), replaces)
                     <= found.edits);
    }
}

static void growth_of_the_common_subsequence_is_that_of_prefixes(void)
{
    static struct pair p;
    uint64_t grows[(LONGEST + 63) / 64], length, last;

    for (unsigned round = 0; round < 200; round++) {
        pair_make(&p);
        for (enum vector_width w = VECTOR_PORTABLE; w < VECTOR_WIDTHS; w++) {
            if (!vector_width_is_supported(w))
                continue;
            CHECK_EQ(bit_parallel_lcs(p.x, p.y, p.symbols, w, grows, &last), 0);
            length = 0;
            for (size_t i = 0; i < p.x.count; i++) {
                length += grows[i / 64] >> i % 64 & 1;
                CHECK_EQ(i + 1 + p.y.count - 2 * length, plain_distance(string32_part(p.x, 0, i + 1), p.y, false));
            }
            CHECK_EQ(length, last);
        }
    }
}

/* With all limits of effort; small ones make use of tables of halves, of anchors and of greedy steps. */
static void a_script_applied_to_a_gives_b(void)
{
    static struct pair p;

    for (unsigned round = 0; round < PAIRS; round++) {
        pair_make(&p);
        uint64_t indels = plain_distance(p.x, p.y, false), edits = plain_distance(p.x, p.y, true);
        for (enum vector_width w = VECTOR_PORTABLE; w < VECTOR_WIDTHS; w++) {
            struct distance_effort effort = { w, round % 3 ? DISTANCE_CELLS : (double)draw(&seed, 20000) };
            struct edit_script s;
            if (!vector_width_is_supported(w))
                continue;
            CHECK_EQ(edit_script_make(p.x, p.y, p.symbols, &effort, &s), 0);
            CHECK(script_holds(&s, p.x, p.y));
            CHECK(s.is_exact ? s.indels == indels : s.indels >= indels);
            CHECK(s.edits >= edits);
            CHECK(s.is_exact || effort.cells < DISTANCE_CELLS);
            edit_script_release(&s);
        }
    }
}

/* A string of this length, for tests that need long ones. */
static uint32_t *long_string(size_t count, uint32_t symbols)
{
    uint32_t *s = malloc((count + 1) * sizeof *s);

    for (size_t i = 0; i < count; i++)
        s[i] = (uint32_t)draw(&seed, symbols);
    return s;
}

static void long_unlike_strings_have_exact_scripts(void)
{
    enum { N = 9000, M = 7000, SYMBOLS = 50 };
    uint32_t *a = long_string(N, SYMBOLS), *b = long_string(M, SYMBOLS);
    struct string32 x = { a, N }, y = { b, M };
    uint64_t length[VECTOR_WIDTHS], edits[VECTOR_WIDTHS];

    for (enum vector_width w = VECTOR_PORTABLE; w < VECTOR_WIDTHS; w++) {
        struct distance_effort effort = { w, DISTANCE_CELLS };
        struct edit_script s;
        struct distance d;
        if (!vector_width_is_supported(w))
            continue;
        CHECK_EQ(bit_parallel_lcs(x, y, SYMBOLS, w, NULL, &length[w]), 0);
        CHECK_EQ(bit_parallel_edits(x, y, SYMBOLS, w, &edits[w]), 0);
        CHECK_EQ(length[w], length[0]);
        CHECK_EQ(edits[w], edits[0]);
        CHECK_EQ(edit_script_make(x, y, SYMBOLS, &effort, &s), 0);
        CHECK(s.is_exact);
        CHECK(script_holds(&s, x, y));
        CHECK_EQ(s.indels, N + M - 2 * length[0]);
        edit_script_release(&s);
        CHECK_EQ(distance_indels(x, y, SYMBOLS, &effort, &d), 0);
        CHECK_EQ(d.engine, ENGINE_BIT_PARALLEL);
        CHECK(d.least == N + M - 2 * length[0] && d.most == d.least);
        CHECK_EQ(distance_edits(x, y, SYMBOLS, &effort, &d), 0);
        CHECK(d.least == edits[0] && d.most == d.least);
    }
    free(a);
    free(b);
}

static void strings_out_of_reach_have_bounds(void)
{
    enum { N = 200000, SYMBOLS = 1000 };
    uint32_t *a = long_string(N, SYMBOLS), *b = long_string(N, SYMBOLS);
    struct distance_effort little = { vector_width_best(), 1e6 };
    struct string32 x = { a, N }, y = { b, N };
    struct distance d, exact;
    struct edit_script s;

    for (size_t i = 0; i < N; i++)
        b[i] = i % 50 ? a[i] : b[i]; /* 4,000 changes or less */
    CHECK_EQ(distance_indels(x, y, SYMBOLS, &little, &d), 0);
    CHECK_EQ(d.engine, ENGINE_BOUND);
    CHECK_EQ(distance_indels(x, y, SYMBOLS, &(struct distance_effort){ little.width, DISTANCE_CELLS }, &exact), 0);
    CHECK_EQ(exact.least, exact.most);
    CHECK(d.least <= exact.least && exact.most <= d.most);
    CHECK(d.most <= exact.most + exact.most / 50);
    CHECK_EQ(distance_edits(x, y, SYMBOLS, &little, &d), 0);
    CHECK(d.least <= 4000 && d.most >= 3900 && d.most <= 4080);
    CHECK_EQ(edit_script_make(x, y, SYMBOLS, &little, &s), 0);
    CHECK(!s.is_exact);
    CHECK(script_holds(&s, x, y));
    edit_script_release(&s);
    free(a);
    free(b);
}

static void distances_are_metrics(void)
{
    static struct pair p, q;
    struct distance_effort effort = { vector_width_best(), DISTANCE_CELLS };
    struct distance xy, yx, xz, yz, xx;

    for (unsigned round = 0; round < 2000; round++) {
        pair_make(&p);
        pair_make(&q);
        uint32_t symbols = p.symbols > q.symbols ? p.symbols : q.symbols;
        int (*const distance)(struct string32, struct string32, uint32_t, const struct distance_effort *,
                              struct distance *) = round % 2 ? distance_indels : distance_edits;
        CHECK_EQ(distance(p.x, p.y, symbols, &effort, &xy), 0);
        CHECK_EQ(distance(p.y, p.x, symbols, &effort, &yx), 0);
        CHECK_EQ(distance(p.x, q.x, symbols, &effort, &xz), 0);
        CHECK_EQ(distance(p.y, q.x, symbols, &effort, &yz), 0);
        CHECK_EQ(distance(p.x, p.x, symbols, &effort, &xx), 0);
        CHECK_EQ(xx.most, 0);
        CHECK_EQ(xy.most, yx.most);
        CHECK(xz.most <= xy.most + yz.most);
        bool are_equal = p.x.count == p.y.count && memcmp(p.a, p.b, p.x.count * sizeof *p.a) == 0;
        CHECK_EQ(xy.most == 0, are_equal);
    }
}

static void anchors_are_equal_runs_in_rising_order(void)
{
    enum { N = 40000, SYMBOLS = 500 };
    uint32_t *a = long_string(N, SYMBOLS), *b = long_string(N, SYMBOLS);
    struct string32 x = { a, N }, y = { b, N };
    struct anchor *anchor;
    size_t count;

    memcpy(b, a + N / 2,
           N / 4 * sizeof *b); /* one half of b has its place elsewhere in a; the other half has no equal */
    memcpy(b + N / 4, a + N / 2 + N / 4, N / 4 * sizeof *b);
    CHECK_EQ(anchors_find(x, y, &anchor, &count), 0);
    CHECK(count > N / 3);
    for (size_t i = 0; i < count; i++) {
        CHECK_EQ(memcmp(a + anchor[i].a, b + anchor[i].b, 24 * sizeof *a), 0);
        CHECK(i == 0 || (anchor[i].a > anchor[i - 1].a && anchor[i].b > anchor[i - 1].b));
    }
    free(anchor);
    free(a);
    free(b);
}

int main(void)
{
    RUN(every_engine_and_width_equals_the_plain_table);
    RUN(a_split_is_on_a_shortest_path);
    RUN(a_search_that_is_given_up_says_a_lower_bound);
    RUN(growth_of_the_common_subsequence_is_that_of_prefixes);
    RUN(a_script_applied_to_a_gives_b);
    RUN(long_unlike_strings_have_exact_scripts);
    RUN(strings_out_of_reach_have_bounds);
    RUN(distances_are_metrics);
    RUN(anchors_are_equal_runs_in_rising_order);
    return check_done();
}
