/* SPDX-License-Identifier: MIT */
#include "study/compare/distance.h"

#include <math.h>
#include <stdlib.h>

#include "peet/err.h"

const char *const distance_engine_names[] = { "equal ends", "wavefront", "bit-parallel", "anchors" };

/* Cells of a table that take as long as a unit of a wavefront's work, by vector width. Measured by bench/compare. */
static const double CELLS_PER_WORK[VECTOR_WIDTHS] = {
    [VECTOR_PORTABLE] = 130, [VECTOR_AVX2] = 230, [VECTOR_AVX512] = 570
};

/* The same where a table is out of reach: wavefronts are wide there, and get less time. */
static const double LONG_CELLS_PER_WORK = 5000;

struct wavefront_limit distance_limit(size_t n, size_t m, double cells, enum vector_width w)
{
    double table = (double)n * (double)m;
    double work =
        (table > cells ? cells / LONG_CELLS_PER_WORK : table / CELLS_PER_WORK[w]) + 4096 + (double)(n + m) / 4;

    return (struct wavefront_limit){ .edits = (uint64_t)sqrt(2 * work) + 64, .work = work, .predicts = true };
}

/* Removes what both strings begin and end with; returns how many symbols precede the rest. */
static size_t distance_strip(struct string32 *a, struct string32 *b, enum vector_width w)
{
    size_t most = a->count < b->count ? a->count : b->count;
    size_t start = equal_start(a->at, b->at, most, w);
    size_t end = equal_end(a->at + a->count, b->at + b->count, most - start, w);

    *a = string32_part(*a, start, a->count - end);
    *b = string32_part(*b, start, b->count - end);
    return start;
}

/* Counts of each symbol in both strings, to be freed; NULL: no memory. */
static uint32_t *distance_counts(struct string32 s, uint32_t symbols)
{
    uint32_t *count = calloc((size_t)symbols + 1, sizeof *count);

    for (size_t i = 0; count && i < s.count; i++)
        count[s.at[i]]++;
    return count;
}

/* Copies the symbols of s that the other string has, too. */
static int distance_filter(struct string32 s, const uint32_t *other, uint32_t **ret, struct string32 *ret_string)
{
    size_t count = 0;

    *ret = malloc((s.count + 1) * sizeof **ret);
    if (!*ret)
        return PEET_ERR_MEMORY;
    for (size_t i = 0; i < s.count; i++)
        if (other[s.at[i]])
            (*ret)[count++] = s.at[i];
    *ret_string = (struct string32){ *ret, count };
    return 0;
}

/* What counts of symbols alone say: symbols that one string has more of are at least inserted or deleted. */
static uint64_t distance_by_counts(const uint32_t *a, const uint32_t *b, uint32_t symbols, bool replaces)
{
    uint64_t deleted = 0, inserted = 0;

    for (uint32_t i = 0; i < symbols; i++)
        if (a[i] > b[i])
            deleted += a[i] - b[i];
        else
            inserted += b[i] - a[i];
    return replaces ? (deleted > inserted ? deleted : inserted) : deleted + inserted;
}

/* The table of LCS, of symbols that both strings have: all others are inserted or deleted. */
static int distance_table_indels(struct string32 a, struct string32 b, uint32_t symbols, const uint32_t *in_a,
                                 const uint32_t *in_b, enum vector_width w, uint64_t *ret)
{
    struct string32 x = { 0 }, y = { 0 };
    uint32_t *memory_x = NULL, *memory_y = NULL;
    uint64_t length = 0;
    int r = distance_filter(a, in_b, &memory_x, &x);

    if (r == 0)
        r = distance_filter(b, in_a, &memory_y, &y);
    if (r == 0)
        r = x.count > y.count ? bit_parallel_lcs(x, y, symbols, w, NULL, &length)
                              : bit_parallel_lcs(y, x, symbols, w, NULL, &length);
    free(memory_x);
    free(memory_y);
    *ret = a.count + b.count - 2 * length;
    return r;
}

/* Strings for which wavefronts are given up. */
static int distance_unlike(struct string32 a, struct string32 b, uint32_t symbols, bool replaces,
                           const struct distance_effort *effort, uint64_t least, struct distance *ret)
{
    uint32_t *in_a = distance_counts(a, symbols), *in_b = distance_counts(b, symbols);
    uint64_t edits = 0;
    int r = in_a && in_b ? 0 : PEET_ERR_MEMORY;

    if (r == 0 && (double)a.count * (double)b.count <= effort->cells) {
        if (replaces)
            r = a.count > b.count ? bit_parallel_edits(a, b, symbols, effort->width, &edits)
                                  : bit_parallel_edits(b, a, symbols, effort->width, &edits);
        else
            r = distance_table_indels(a, b, symbols, in_a, in_b, effort->width, &edits);
        *ret = (struct distance){ edits, edits, ENGINE_BIT_PARALLEL };
    } else if (r == 0) {
        struct edit_script script;
        uint64_t by_counts = distance_by_counts(in_a, in_b, symbols, replaces);
        r = edit_script_bound(a, b, symbols, effort, &script);
        if (r == 0) {
            *ret = (struct distance){ least > by_counts ? least : by_counts, replaces ? script.edits : script.indels,
                                      ENGINE_BOUND };
            edit_script_release(&script);
        }
    }
    free(in_a);
    free(in_b);
    return r;
}

static int distance_compute(struct string32 a, struct string32 b, uint32_t symbols, bool replaces,
                            const struct distance_effort *effort, struct distance *ret)
{
    struct wavefront_result found;

    distance_strip(&a, &b, effort->width);
    if (a.count == 0 || b.count == 0) {
        *ret = (struct distance){ a.count + b.count, a.count + b.count, ENGINE_ENDS };
        return 0;
    }
    struct wavefront_limit limit = distance_limit(a.count, b.count, effort->cells, effort->width);
    int r = wavefront_distance(a, b, replaces, limit, effort->width, &found);
    if (r == 0 && found.is_found)
        *ret = (struct distance){ found.edits, found.edits, ENGINE_WAVEFRONT };
    else if (r == 0)
        r = distance_unlike(a, b, symbols, replaces, effort, found.edits, ret);
    return r;
}

int distance_indels(struct string32 a, struct string32 b, uint32_t symbols, const struct distance_effort *effort,
                    struct distance *ret)
{
    return distance_compute(a, b, symbols, false, effort, ret);
}

int distance_edits(struct string32 a, struct string32 b, uint32_t symbols, const struct distance_effort *effort,
                   struct distance *ret)
{
    return distance_compute(a, b, symbols, true, effort, ret);
}
