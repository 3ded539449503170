/* SPDX-License-Identifier: MIT */
/* Private parts of samplers: source_sample.c has the windows, sample_loops.c strided loops, sample_copy.c sampled sets. */
#ifndef MAP_SOURCE_SAMPLER_H
#define MAP_SOURCE_SAMPLER_H

#include "base/err.h"
#include "map/source/set_sample.h"
#include "map/source/source_sample.h"
#include "map/source/touched.h"

enum {
    SAMPLE_ROOM = 4096, /* records that are expanded or copied at a time */
    LEAST_SKIP = 512,   /* references: leaving out fewer is slower than looking at them */
};

/* A thread of the inner source, as it is sampled. Its references are counted from its begin. */
struct sampled_thread {
    struct peet_batch raw;            /* last batch of the inner source */
    size_t in_raw;                    /* index in raw.records of the next record to look at */
    const struct peet_repeat *repeat; /* strided loop of raw that is being expanded; NULL: none */
    uint64_t iteration;               /* next iteration of it */
    struct peet_batch part;           /* records being looked at: of raw, or of expanded iterations */
    size_t at;                        /* index in part.records of the next record */
    struct {
        struct peet_record *expanded, *copy; /* records of expanded iterations; of the sampled sets */
        struct peet_event *event;            /* events of the copy */
        size_t expanded_room, copy_room;     /* capacities, in records */
        size_t event_room, events;           /* capacity of `event`, and how many it has */
    } buffer;
    bool is_on;     /* a window is open */
    bool has_ended; /* the inner source has ended, and only the last gap was returned since */
    bool has_words; /* the consumer takes event words: it applies windows, and creates gaps */
    uint64_t now;   /* references so far */
    struct {
        uint64_t period;       /* number of the period */
        uint64_t begin, every; /* its first reference, and its length in references */
        uint64_t from, end;    /* the window's first reference, and the first one after it */
        uint64_t length;       /* references of the window */
        uint64_t random;       /* state of the random numbers */
    } window;                  /* that is open, or else comes next */
    struct {
        bool is_pending;                   /* something was left out since the last window or gap */
        uint64_t instructions, references; /* left out since then */
        struct peet_record record;         /* the record of the last gap, valid until the next call */
        struct peet_event event;
    } gap;
    struct {
        uint64_t left_out;  /* references that the inner source has left out */
        uint64_t overshoot; /* references by which it may leave out more than it was asked to, by experience */
        uint64_t period;    /* number of the period for which it was asked last */
    } skip;
    struct sample_counts counts;
};

/* A source that shows samples of an inner source. */
struct sampler {
    struct source source;
    struct source *inner;
    struct sample_config config;
    unsigned line_bits;
    struct sampled_thread **thread; /* by index; NULL: the thread has not been asked for */
    void (*passed)(void *user, uint32_t thread, const struct peet_record *block); /* gap observer; or NULL */
    void *user;
    struct set_sample set_sample;
    struct touched_lines touched; /* lines that were referred to between windows */
    bool has_left_out;            /* the inner source has left references out */
};

static inline int sample_no_memory(struct peet_err *err)
{
    return err_set(err, PEET_ERR_MEMORY, "no memory for samples");
}

/* Bytes that a library call reads or writes, from an event. */
struct sample_range {
    uint64_t addr, size;
    bool is_write;
};
/* The ranges of an event, and their number; 0: the event has none. */
unsigned sample_ranges(const struct peet_event *e, struct sample_range ret[2]);
uint64_t sample_lines(const struct sampler *s, const struct sample_range *r); /* lines that a range overlaps */
/* References that an event counts for: one for each line of its ranges. */
uint64_t sample_range_references(const struct sampler *s, const struct peet_event *e);

/* Notes that bytes were referred to between windows. */
int sample_touch(struct sampler *s, uint32_t process, uint64_t addr, uint64_t size, struct peet_err *err);

/* The next iterations of the strided loop that is being expanded, into l->part: 1, or 0 if there are no more. */
int sample_refill_from_repeat(struct sampler *s, uint32_t thread, struct sampled_thread *l, struct peet_err *err);

/* The next `count` records without references to sets that are not sampled, as a copy. */
int sample_copy(struct sampler *s, struct sampled_thread *l, size_t count, struct peet_batch *ret,
                struct peet_err *err);

#endif
