/* SPDX-License-Identifier: MIT */
/* usage: compare KIND LENGTH CHANGED MEASURE [WIDTH]
 *        compare KIND LENGTH CHANGED write A B
 * Measures the engines of peet compare on two strings of events. KIND: `random` (symbols of which few are frequent, as functions are that a
 * program calls) or `loops` (nested loops, whose iterations are often the same). CHANGED: events in a million that are removed, inserted
 * or replaced in the second string; 1000000: two strings that have nothing to do with each other.
 * MEASURE: indels, edits, script (by the engine that distance.c takes), lcs-table, edits-table (bit-parallel), wavefront.
 * WIDTH: portable, avx2 or avx512. Prints: seconds of CPU time, distance, "exact" or "bound", engine, cells, MiB of memory at most.
 * write: writes the strings as lines, for other programs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "study/compare/distance.h"

enum { SYMBOLS = 1000, LOOP_DEPTH = 4 };

static uint64_t state = 1;

static uint32_t draw(uint32_t below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((state >> 33) % below);
}

/* A symbol; half of all are among 30. */
static uint32_t draw_symbol(void)
{
    return draw(2) ? draw(30) : draw(SYMBOLS);
}

static void *allocate(size_t bytes)
{
    void *p = malloc(bytes);

    if (!p) {
        fprintf(stderr, "compare: no memory\n");
        exit(2);
    }
    return p;
}

/* A loop with a body of symbols and loops; returns how much of the string is filled. */
static size_t put_loop(uint32_t *s, size_t at, size_t count, unsigned depth)
{
    size_t start = at, length = 1 + draw(8), times = 2 + draw(30);

    for (size_t i = 0; i < length && at < count; i++)
        if (depth && draw(3) == 0)
            at = put_loop(s, at, count, depth - 1);
        else
            s[at++] = draw_symbol();
    size_t body = at - start;
    for (size_t i = 1; i < times; i++)
        for (size_t k = 0; k < body && at < count; k++, at++)
            s[at] = s[at - body];
    return at;
}

static void make(uint32_t *s, size_t count, bool has_loops)
{
    for (size_t i = 0; i < count;)
        if (has_loops)
            i = put_loop(s, i, count, LOOP_DEPTH);
        else
            s[i++] = draw_symbol();
}

static size_t change(uint32_t *to, const uint32_t *from, size_t count, uint32_t changed)
{
    size_t m = 0;

    for (size_t i = 0; i < count; i++) {
        if (draw(1000000) >= changed) {
            to[m++] = from[i];
            continue;
        }
        uint32_t what = draw(3);
        if (what != 0)
            to[m++] = draw_symbol();
        if (what == 2)
            to[m++] = from[i];
    }
    return m;
}

static void write_lines(const char *path, const uint32_t *s, size_t count)
{
    FILE *f = fopen(path, "w");

    for (size_t i = 0; f && i < count; i++)
        fprintf(f, "%" PRIu32 "\n", s[i]);
    if (!f || fclose(f)) {
        perror(path);
        exit(2);
    }
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int measure(const char *what, struct string32 a, struct string32 b, enum vector_width w, struct distance *d)
{
    struct distance_effort effort = { w, DISTANCE_CELLS };
    struct wavefront_limit all = { .edits = a.count + b.count, .work = 1e300 };
    struct wavefront_result found = { 0 };
    struct edit_script script;
    uint64_t value = 0;
    int r = 0;

    if (strcmp(what, "indels") == 0)
        return distance_indels(a, b, SYMBOLS, &effort, d);
    if (strcmp(what, "edits") == 0)
        return distance_edits(a, b, SYMBOLS, &effort, d);
    if (strcmp(what, "script") == 0) {
        r = edit_script_make(a, b, SYMBOLS, &effort, &script);
        if (r == 0)
            *d = (struct distance){ script.is_exact ? script.indels : 0, script.indels, ENGINE_BOUND };
        return r;
    }
    if (strcmp(what, "lcs-table") == 0) {
        r = bit_parallel_lcs(a, b, SYMBOLS, w, NULL, &value);
        value = a.count + b.count - 2 * value;
        *d = (struct distance){ value, value, ENGINE_BIT_PARALLEL };
    } else if (strcmp(what, "edits-table") == 0) {
        r = bit_parallel_edits(a, b, SYMBOLS, w, &value);
        *d = (struct distance){ value, value, ENGINE_BIT_PARALLEL };
    } else if (strcmp(what, "wavefront") == 0) {
        r = wavefront_distance(a, b, false, all, w, &found);
        *d = (struct distance){ found.edits, found.edits, ENGINE_WAVEFRONT };
    } else {
        fprintf(stderr, "compare: '%s' is no measure\n", what);
        exit(2);
    }
    return r;
}

int main(int argc, char **argv)
{
    static const char *const WIDTHS[] = { "portable", "avx2", "avx512" };
    enum vector_width w = vector_width_best();
    struct distance d = { 0 };
    struct rusage usage;

    if (argc < 5) {
        fprintf(stderr, "usage: compare KIND LENGTH CHANGED MEASURE [WIDTH]\n");
        return 2;
    }
    size_t n = strtoull(argv[2], NULL, 10), m;
    uint32_t changed = (uint32_t)strtoul(argv[3], NULL, 10);
    uint32_t *a = allocate((n + 1) * sizeof *a), *b = allocate((2 * n + 1) * sizeof *b);
    bool has_loops = strcmp(argv[1], "loops") == 0;
    make(a, n, has_loops);
    if (changed >= 1000000)
        make(b, m = n, has_loops);
    else
        m = change(b, a, n, changed);
    if (strcmp(argv[4], "write") == 0 && argc == 7) {
        write_lines(argv[5], a, n);
        write_lines(argv[6], b, m);
        return 0;
    }
    for (int i = 0; argc > 5 && i < VECTOR_WIDTHS; i++)
        if (strcmp(argv[5], WIDTHS[i]) == 0)
            w = (enum vector_width)i;
    if (!vector_width_is_supported(w)) {
        printf("- - - unsupported - -\n");
        return 77;
    }
    double start = now();
    if (measure(argv[4], (struct string32){ a, n }, (struct string32){ b, m }, w, &d) < 0) {
        fprintf(stderr, "compare: no memory\n");
        return 2;
    }
    double seconds = now() - start;
    getrusage(RUSAGE_SELF, &usage);
    printf("%.4f %" PRIu64 " %s %s %.3g %ld\n", seconds, d.most, d.least == d.most ? "exact" : "bound",
           strcmp(argv[4], "script") == 0 ? "script" : distance_engine_names[d.engine], (double)n * (double)m,
           usage.ru_maxrss / 1024);
    return 0;
}
