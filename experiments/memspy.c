/* SPDX-License-Identifier: MIT */
/* usage: memspy TRACE SERIES
 * Reads the first thread of a trace once, and runs the three direct-mapped caches of Martonosi, Gupta and Anderson (1993) and samples
 * of them: for the scripts memspy-table1 to memspy-fig10. Writes lines of words and numbers:
 *
 *   run REFERENCES BYTES                                      BYTES: of lines of 64 bytes that were used
 *   cache NAME LINES MISSES DEAD_TIME GENERATION_TIME         of all references
 *   sample NAME LENGTH EVERY SAMPLES N TRUE_MISSES K U TRUE_UNKNOWN_MISSES GENERATIONS MU_GENERATION MU_AGE TOUCHED OUTSIDE WORST
 *   window NAME LENGTH EVERY NUMBER FROM N TRUE_MISSES K U    each sample
 *
 * LENGTH and EVERY are references; windows are in the middle of their periods, or follow each other without gaps. TRUE_MISSES are those of a cache that
 * is never forgotten, in the samples. OUTSIDE: samples whose true misses are not between K and K + U. WORST: the largest error of one whole sample
 * with mu = 0.5, in misses by references.
 * Into SERIES it writes a line for each 10000 references: the misses of the three caches.
 *
 * A reference that spans two lines counts for the first. Memory that library code moves is referred to 16 bytes at a time. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "map/source/source.h"
#include "study/profile/sampling/estimate.h"

enum { CACHES = 3, SAMPLINGS = 8, STRETCH = 10000, MILLION = 1000000 };

struct cache {
    const char *name;
    uint64_t lines;
    unsigned line_bits;
    uint64_t *line; /* 1 + its number */
    uint64_t *filled, *last;
    uint64_t misses, stretch_misses;
    double dead, generation;
    bool missed; /* the reference at hand */
};

struct sampling {
    unsigned cache;
    uint64_t length, every;
    struct estimate *estimate;
    uint64_t windows, at;                        /* at: place in the period */
    uint64_t n, misses, unknown_misses, outside; /* misses: true ones */
    uint64_t here_n, here_misses, here_k, here_u;
    double worst;
};

static struct cache cache[CACHES] = {
    { .name = "16k", .lines = 1024, .line_bits = 4 },
    { .name = "128k", .lines = 4096, .line_bits = 5 },
    { .name = "1m", .lines = 16384, .line_bits = 6 },
};

static struct sampling sampling[SAMPLINGS] = {
    { .cache = 0, .length = MILLION / 2, .every = 5 * MILLION },
    { .cache = 1, .length = MILLION / 2, .every = 5 * MILLION },
    { .cache = 2, .length = MILLION / 2, .every = 5 * MILLION },
    { .cache = 2, .length = MILLION / 2, .every = MILLION / 2 },
    { .cache = 2, .length = MILLION, .every = MILLION },
    { .cache = 2, .length = 2 * MILLION, .every = 2 * MILLION },
    { .cache = 2, .length = 4 * MILLION, .every = 4 * MILLION },
    { .cache = 2, .length = 8 * MILLION, .every = 8 * MILLION },
};

static uint64_t now, left = STRETCH;
static FILE *series;

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "memspy: %s: %s\n", what, why);
    exit(2);
}

static void *room(size_t count, size_t size)
{
    void *p = calloc(count, size);

    if (!p)
        fail("memory", "there is none");
    return p;
}

/* ---- caches that are never forgotten ---- */

static void cache_refer(struct cache *c, uint64_t addr)
{
    uint64_t line = addr >> c->line_bits, at = line & (c->lines - 1);

    c->missed = c->line[at] != line + 1;
    if (c->missed) {
        c->misses++;
        c->stretch_misses++;
        if (c->line[at]) {
            c->dead += (double)(now - c->last[at]);
            c->generation += (double)(now - c->filled[at]);
        }
        c->line[at] = line + 1;
        c->filled[at] = now;
    }
    c->last[at] = now;
}

/* ---- samples ---- */

static void end_window(struct sampling *s)
{
    double n = (double)s->here_n;
    double off = ((double)s->here_k + (double)s->here_u / 2 - (double)s->here_misses) / n;

    estimate_end(s->estimate, 0);
    printf("window %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
           "\n",
           cache[s->cache].name, s->length, s->every, s->windows, now - s->here_n, s->here_n, s->here_misses, s->here_k,
           s->here_u);
    s->outside += s->here_misses < s->here_k || s->here_misses > s->here_k + s->here_u;
    if (s->here_n == s->length)
        s->worst = fmax(s->worst, fabs(off));
    s->windows++;
    s->n += s->here_n;
    s->misses += s->here_misses;
    s->here_n = s->here_misses = s->here_k = s->here_u = 0;
}

static void sample_refer(struct sampling *s, uint64_t addr)
{
    const struct cache *c = &cache[s->cache];
    uint64_t at = s->at, first = (s->every - s->length) / 2;

    s->at = at + 1 < s->every ? at + 1 : 0;
    if (at < first || at >= first + s->length)
        return;
    if (at == first)
        estimate_begin(s->estimate);
    enum estimate_outcome outcome = estimate_refer(s->estimate, addr >> c->line_bits, 0, at - first);
    s->here_n++;
    s->here_misses += c->missed;
    s->here_k += outcome == OUTCOME_MISS;
    s->here_u += outcome == OUTCOME_UNKNOWN;
    s->unknown_misses += outcome == OUTCOME_UNKNOWN && c->missed;
}

/* ---- memory that was used: a table of pages of 4 KB, by hash ---- */

enum { PAGE_ROOM = 1 << 20 };

static struct {
    uint64_t number, lines; /* 1 + number; bits */
} page[PAGE_ROOM];

static void mark_used(uint64_t addr)
{
    uint64_t number = (addr >> 12) + 1, at = number * UINT64_C(0x9e3779b97f4a7c15) >> 44;

    while (page[at].number && page[at].number != number)
        at = (at + 1) % PAGE_ROOM;
    page[at].number = number;
    page[at].lines |= (uint64_t)1 << (addr >> 6) % 64;
}

static uint64_t bytes_used(void)
{
    uint64_t lines = 0;

    for (size_t i = 0; i < PAGE_ROOM; i++)
        lines += (uint64_t)__builtin_popcountll(page[i].lines);
    return lines * 64;
}

/* ---- the trace ---- */

static void refer(uint64_t addr)
{
    for (unsigned i = 0; i < CACHES; i++)
        cache_refer(&cache[i], addr);
    if (cache[0].missed) /* what the smallest has was marked when it came */
        mark_used(addr);
    for (unsigned i = 0; i < SAMPLINGS; i++)
        sample_refer(&sampling[i], addr);
    now++;
    for (unsigned i = 0; i < SAMPLINGS; i++) {
        struct sampling *s = &sampling[i];
        if (s->here_n == s->length)
            end_window(s);
    }
    if (--left == 0) {
        left = STRETCH;
        fprintf(series, "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", cache[0].stretch_misses, cache[1].stretch_misses,
                cache[2].stretch_misses);
        for (unsigned i = 0; i < CACHES; i++)
            cache[i].stretch_misses = 0;
    }
}

static void refer_range(uint64_t addr, uint64_t size)
{
    for (uint64_t i = 0; i < size; i += 16)
        refer(addr + i);
}

static void take_event(const struct peet_event *e)
{
    switch (e->kind) {
    case PEET_EV_range_read:
    case PEET_EV_range_write: refer_range(e->arg[0], e->arg[1]); break;
    case PEET_EV_range_copy:
        refer_range(e->arg[1], e->arg[2]);
        refer_range(e->arg[0], e->arg[2]);
        break;
    case PEET_EV_range_compare:
        refer_range(e->arg[0], e->arg[2]);
        refer_range(e->arg[1], e->arg[2]);
        break;
    default: break;
    }
}

static void read_trace(const char *path)
{
    struct peet_trace *trace;
    struct source *source = NULL;
    struct peet_batch batch;
    struct peet_err err;
    int r;

    if (peet_trace_open(path, &trace, &err) < 0 || source_open_trace(trace, false, &source, &err) < 0)
        fail(path, err.text);
    while ((r = source_next(source, 0, 0, &batch, &err)) > 0)
        for (size_t i = 0; i < batch.count; i++) {
            const struct peet_record *x = &batch.records[i];
            if (x->kind == PEET_EVENT)
                take_event(&batch.events[x->id]);
            else if (peet_is_reference(x))
                refer(x->addr);
        }
    if (r < 0)
        fail(path, err.text);
    source_free(source);
    peet_trace_free(trace);
}

/* ---- what comes out ---- */

static void report(void)
{
    printf("run %" PRIu64 " %" PRIu64 "\n", now, bytes_used());
    for (unsigned i = 0; i < CACHES; i++)
        printf("cache %s %" PRIu64 " %" PRIu64 " %.0f %.0f\n", cache[i].name, cache[i].lines, cache[i].misses,
               cache[i].dead, cache[i].generation);
    for (unsigned i = 0; i < SAMPLINGS; i++) {
        struct sampling *s = &sampling[i];
        struct estimate_result r;
        if (s->here_n > 0) /* a last one that is shorter counts as one of them */
            end_window(s);
        estimate_result(s->estimate, ESTIMATE_ALL, &r);
        printf("sample %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
               " %" PRIu64 " %.6f %.6f %.6f %" PRIu64 " %.6f\n",
               cache[s->cache].name, s->length, s->every, s->windows, s->n, s->misses, r.misses, r.unknown,
               s->unknown_misses, r.generations, r.mu[ESTIMATE_generation], r.mu[ESTIMATE_age], r.touched, s->outside,
               s->worst);
        estimate_free(s->estimate);
    }
}

int main(int argc, char **argv)
{
    struct peet_err err;

    if (argc != 3)
        fail("usage", "memspy TRACE SERIES");
    series = fopen(argv[2], "w");
    if (!series)
        fail(argv[2], "cannot be written");
    for (unsigned i = 0; i < CACHES; i++) {
        cache[i].line = room(cache[i].lines, sizeof *cache[i].line);
        cache[i].filled = room(cache[i].lines, sizeof *cache[i].filled);
        cache[i].last = room(cache[i].lines, sizeof *cache[i].last);
    }
    for (unsigned i = 0; i < SAMPLINGS; i++) {
        struct estimate_config c = { cache[sampling[i].cache].lines, 1, sampling[i].length };
        if (estimate_new(&c, &sampling[i].estimate, &err) < 0)
            fail("samples", err.text);
    }
    read_trace(argv[1]);
    report();
    if (fclose(series) != 0)
        fail(argv[2], "cannot be written");
    return 0;
}
