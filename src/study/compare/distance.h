/* SPDX-License-Identifier: MIT */
/* Distances and edit scripts of two strings of symbols. Exact where a table of n × m cells or the wavefronts are within reach, else bounds.
 *
 * Indels: least number of insertions and deletions, n + m − 2 LCS. Edits: least number of insertions, deletions and replacements. Common ends are
 * removed first; then wavefronts are tried, and given up where a bit-parallel table costs less. See docs/design/compare.md. */
#ifndef STUDY_COMPARE_DISTANCE_H
#define STUDY_COMPARE_DISTANCE_H

#include "study/compare/wavefront.h"

#define DISTANCE_CELLS 1e13 /* default of distance_effort.cells: 40 s with AVX-512 */

/* What a comparison may cost. */
struct distance_effort {
    enum vector_width width;
    double cells; /* of a table, at most; wavefronts cost at most as much time; more is out of reach */
};

/* What computed a distance. */
enum distance_engine { ENGINE_ENDS, ENGINE_WAVEFRONT, ENGINE_BIT_PARALLEL, ENGINE_BOUND };
extern const char *const distance_engine_names[];

/* A distance, or its bounds. It is exact if they are equal. */
struct distance {
    uint64_t least, most;
    enum distance_engine engine;
};

/* Symbols of both strings are below `symbols`. These return 0 or PEET_ERR_MEMORY. */
int distance_indels(struct string32 a, struct string32 b, uint32_t symbols, const struct distance_effort *effort,
                    struct distance *ret);
int distance_edits(struct string32 a, struct string32 b, uint32_t symbols, const struct distance_effort *effort,
                   struct distance *ret);

/* a_count symbols of one string from a on are replaced by b_count of the other from b on. */
struct edit_hunk {
    size_t a, b, a_count, b_count;
};

/* What makes b of a: hunks in rising order, with at least one equal symbol between two of them. */
struct edit_script {
    struct edit_hunk *hunk;
    size_t count;
    uint64_t indels; /* sum of a_count + b_count */
    uint64_t edits;  /* sum of the greater of both */
    bool is_exact;   /* there is no script with less indels */
};

int edit_script_make(struct string32 a, struct string32 b, uint32_t symbols, const struct distance_effort *effort,
                     struct edit_script *ret);
/* A script of strings for which wavefronts were given up, and a table is out of reach. */
int edit_script_bound(struct string32 a, struct string32 b, uint32_t symbols, const struct distance_effort *effort,
                      struct edit_script *ret);
void edit_script_release(struct edit_script *s);

/* Of distance.c, for edit_script.c: limits of a search by wavefronts for which a table costs as much. */
struct wavefront_limit distance_limit(size_t n, size_t m, double cells, enum vector_width w);

#endif
