/* SPDX-License-Identifier: MIT */
/* usage: sampling_bounds TRACE MACHINE LENGTH even|random|grows
 * For experiments/sampling-truth: the misses of each data object in the windows of a sample of 1/10, as a profile of the whole recording has them, and what the profile of the sample
 * says they are at least and at most. One thread. Writes a line for each object of which windows have references, and for all:
 *
 *   NAME MISSES AT_LEAST AT_MOST
 *
 * with '_' for blanks in names. Where windows begin and end is reckoned here once more, and not taken from the sampler (map/source/source_sample.h). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "map/source/set_sample.h"
#include "study/profile/sampling/estimate_profile.h"
#include "study/profile/profiler.h"

enum { ONE_IN = 10, SEED = 1, GROWN = 8000000, GROWTH = 250, OBJECTS = 4096 };

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "sampling_bounds: %s: %s\n", what, why);
    exit(2);
}

/* ---- a source before the recording that stops where windows begin and end ---- */

struct border {
    struct source source;
    struct source *inner;
    struct peet_batch batch;
    size_t at;
    struct sample_config config;
    uint64_t now, begin, every, from, end, random;
    bool is_on;
    const struct profile *profile;
    int64_t misses[OBJECTS]; /* in windows: what they had at their ends, less what they had where they began */
};

static void place_window(struct border *b)
{
    uint64_t length = b->config.length;

    if (b->config.most && b->begin / GROWTH > length)
        length = b->begin / GROWTH < b->config.most ? b->begin / GROWTH : b->config.most;
    b->every = ONE_IN * length;
    b->from = b->begin + (b->every - length) / 2;
    if (b->config.is_random) {
        b->random += 0x9e3779b97f4a7c15;
        b->from = b->begin + set_sample_hash(b->random) % b->every;
    }
    b->end = b->from + length;
}

/* Whether a block that begins now is in a window. */
static bool is_in_window(struct border *b)
{
    while (b->now >= b->end) {
        b->begin += b->every;
        place_window(b);
    }
    return b->now >= b->from;
}

static void count_misses(struct border *b, int sign)
{
    for (size_t i = 0; i < b->profile->accesses; i++) {
        const struct access_counts *c = &b->profile->access[i];
        if (c->object >= OBJECTS)
            fail("objects", "there are too many");
        b->misses[c->object] += sign * (int64_t)c->misses;
    }
}

static uint64_t lines_of(uint64_t addr, uint64_t size, uint64_t line)
{
    return size ? (addr + size - 1) / line - addr / line + 1 : 0;
}

static uint64_t references_of(const struct border *b, const struct peet_record *r)
{
    const struct peet_event *e = r->kind == PEET_EVENT ? &b->batch.events[r->id] : NULL;
    uint64_t line = b->config.line_bytes;

    if (!e)
        return r->kind != PEET_BLOCK;
    switch (e->kind) {
    case PEET_EV_range_read:
    case PEET_EV_range_write: return lines_of(e->arg[0], e->arg[1], line);
    case PEET_EV_range_copy:
    case PEET_EV_range_compare: return lines_of(e->arg[0], e->arg[2], line) + lines_of(e->arg[1], e->arg[2], line);
    default: return 0;
    }
}

/* All before this was used. */
static int border_next(struct source *source, uint32_t context, uint64_t reply, struct peet_batch *ret,
                       struct peet_err *err)
{
    struct border *b = (struct border *)(void *)source;
    size_t first = b->at;

    if (b->at == b->batch.count) {
        int r = source_next(b->inner, context, reply, &b->batch, err);
        b->source.thread = b->inner->thread;
        b->source.threads = b->inner->threads;
        b->source.has_ended = b->inner->has_ended;
        first = b->at = 0;
        if (r <= 0) {
            b->batch.count = 0;
            return r;
        }
    }
    for (; b->at < b->batch.count; b->at++) {
        const struct peet_record *r = &b->batch.records[b->at];
        bool is_on = r->kind == PEET_BLOCK ? is_in_window(b) : b->is_on;
        if (is_on != b->is_on && b->at > first)
            break;
        if (is_on != b->is_on)
            count_misses(b, is_on ? -1 : 1);
        b->is_on = is_on;
        b->now += references_of(b, r);
    }
    *ret = b->batch;
    ret->records += first;
    ret->count = b->at - first;
    return 1;
}

static void border_free(struct source *source)
{
    source_free(((struct border *)(void *)source)->inner);
}

static const struct source_kind BORDER = { .next = border_next, .free = border_free };

/* ---- the whole recording ---- */

static struct border border = { 0 };

static struct profile *profile_whole(struct peet_trace *t, const struct machine_config *machine)
{
    struct profiler *p;
    struct peet_err err;

    if (source_open_trace(t, false, &border.inner, &err) < 0)
        fail("whole", err.text);
    border.source =
        (struct source){ &BORDER, t,    border.inner->thread, border.inner->threads, border.inner->max_threads, false,
                         false,   false };
    border.random = set_sample_hash(SEED + 1);
    place_window(&border);
    if (profiler_new(machine, &border.source, &p, &err) < 0)
        fail("whole", err.text);
    profiler_set_debug(p, &(struct profiler_debug){ .observe_all = true });
    border.profile = profiler_profile(p);
    if (profiler_run(p, NULL, NULL, &err) < 0)
        fail("whole", err.text);
    if (border.is_on)
        count_misses(&border, 1);
    return profiler_take(p);
}

/* ---- and the sample ---- */

static void print_row(const char *name, int64_t misses, const struct sampled_object *o)
{
    for (; *name; name++)
        putchar(*name == ' ' ? '_' : *name);
    printf(" %" PRId64 " %" PRIu64 " %" PRIu64 "\n", misses, o->low, o->high);
}

static void compare(const struct profile *whole, struct profile *sample)
{
    struct sampled_object o;
    int64_t all = 0;

    for (uint32_t i = 0; i < objects_count(whole->objects); i++)
        all += border.misses[i];
    sampled_object(sample->sampled, ESTIMATE_ALL, &o);
    print_row("all", all, &o);
    for (uint32_t i = 0; i < objects_count(sample->objects); i++) {
        const char *name = objects_info(sample->objects, i)->name;
        uint32_t k = 0;
        sampled_object(sample->sampled, i, &o);
        while (k < objects_count(whole->objects) && strcmp(objects_info(whole->objects, k)->name, name) != 0)
            k++;
        if (o.observed > 0 && k < objects_count(whole->objects))
            print_row(name, border.misses[k], &o);
    }
}

int main(int argc, char **argv)
{
    struct machine_config machine;
    struct peet_trace *t = NULL;
    struct source *source;
    struct profile *whole, *sample;
    struct profiler *profiler;
    struct peet_err err;

    if (argc != 5)
        fail("usage", "sampling_bounds TRACE MACHINE LENGTH even|random|grows");
    struct sample_config config = { .length = strtoull(argv[3], NULL, 10), .seed = SEED, .one_in = 1 };
    config.every = ONE_IN * config.length;
    config.is_random = !strcmp(argv[4], "random");
    config.most = !strcmp(argv[4], "grows") ? GROWN : 0;
    if (config_load(&machine, argv[2], NULL, 0, &err) < 0 || sampled_geometry(&machine, &config, &err) < 0
        || peet_trace_open(argv[1], &t, &err) < 0)
        fail(argv[1], err.text);
    border.config = config;
    whole = profile_whole(t, &machine);
    if (profiler_open_trace(t, &machine, &config, &source, &profiler, &err) < 0
        || profiler_run(profiler, NULL, NULL, &err) < 0)
        fail("sample", err.text);
    sample = profiler_take(profiler);
    compare(whole, sample);
    profile_free(whole);
    profile_free(sample);
    source_free(source);
    source_free(&border.source);
    peet_trace_free(t);
    return 0;
}
