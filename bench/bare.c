/* SPDX-License-Identifier: MIT */
/* usage: bare TRACE
 *
 * What caches alone cost: all references of a trace, expanded in memory beforehand, go through two machines that only count what they miss: one level, direct-mapped, 128 KB of
 * 32-byte lines; and two levels, 32 KB of 8 ways and 1 MB of 16 ways of 64-byte lines, in which the least recently used line goes. No data, no causes, no call paths, no order of lines,
 * no states, no time; a reference that goes over the end of a line counts once. Prints the CPU time of each, in seconds, the references, and the misses. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "peet/trace.h"

enum { BATCH = 1 << 20, DIRECT = 4096, FIRST_SETS = 64, FIRST_WAYS = 8, SECOND_SETS = 1024, SECOND_WAYS = 16 };

static uint64_t addr[BATCH];
static uint64_t direct[DIRECT];
static uint64_t first[FIRST_SETS][FIRST_WAYS], second[SECOND_SETS][SECOND_WAYS]; /* the one used last comes first */

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t refer_direct(size_t n)
{
    uint64_t misses = 0;

    for (size_t i = 0; i < n; i++) {
        uint64_t line = addr[i] >> 5, *at = &direct[line % DIRECT];
        if (__builtin_expect(*at != line, 0)) {
            *at = line;
            misses++;
        }
    }
    return misses;
}

/* Whether a set has a line, which is the one used last then. */
static inline __attribute__((always_inline)) int use(uint64_t *set, unsigned ways, uint64_t line)
{
    unsigned way = 1;

    while (way < ways && set[way] != line)
        way++;
    int is_there = way < ways;
    for (way = is_there ? way : ways - 1; way > 0; way--)
        set[way] = set[way - 1];
    set[0] = line;
    return is_there;
}

static uint64_t refer_two(size_t n)
{
    uint64_t misses = 0;

    for (size_t i = 0; i < n; i++) {
        uint64_t line = addr[i] >> 6, *set = first[line % FIRST_SETS], *behind = second[line % SECOND_SETS];
        if (__builtin_expect(set[0] == line, 1) || use(set, FIRST_WAYS, line))
            continue;
        misses += behind[0] != line && !use(behind, SECOND_WAYS, line);
    }
    return misses;
}

int main(int argc, char **argv)
{
    struct peet_err err = { 0 };
    struct peet_trace *trace = NULL;
    struct peet_cursor *cursor = NULL;
    struct peet_batch b;
    double time[2] = { 0, 0 };
    uint64_t misses[2] = { 0, 0 }, references = 0;
    int r = argc == 2 ? peet_trace_open(argv[1], &trace, &err) : -1;

    if (r < 0 || (r = peet_cursor_open(trace, PEET_ALL_THREADS, 0, &cursor, &err)) < 0) {
        fprintf(stderr, "bare: %s\n", argc == 2 ? err.text : "usage: bare TRACE");
        return 2;
    }
    memset(direct, 0xff, sizeof direct);
    memset(first, 0xff, sizeof first);
    memset(second, 0xff, sizeof second);
    for (r = 1; r == 1;) {
        size_t n = 0;
        while (n < BATCH / 2 && (r = peet_cursor_next(cursor, &b, &err)) == 1) {
            if (b.count > BATCH / 2) {
                fprintf(stderr, "bare: a batch of %zu records, more than there is room for\n", b.count);
                return 2;
            }
            for (size_t i = 0; i < b.count; i++) {
                addr[n] = b.records[i].addr;
                n += peet_is_reference(&b.records[i]) != 0;
            }
        }
        references += n;
        double begin = seconds();
        misses[0] += refer_direct(n);
        double middle = seconds();
        misses[1] += refer_two(n);
        time[0] += middle - begin;
        time[1] += seconds() - middle;
    }
    if (r < 0)
        fprintf(stderr, "bare: %s\n", err.text);
    printf("%.4f %.4f %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", time[0], time[1], references, misses[0], misses[1]);
    peet_cursor_free(cursor);
    peet_trace_free(trace);
    return r < 0;
}
