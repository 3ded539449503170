/* SPDX-License-Identifier: MIT */
/* The inside of samples: sample.c sees to windows, sample_trips.c to what is repeated, sample_copy.c to sets. */
#ifndef MAP_SOURCE_SAMPLER_H
#define MAP_SOURCE_SAMPLER_H

#include "base/err.h"
#include "map/source/set_sample.h"
#include "map/source/source_sample.h"
#include "map/source/touched.h"

enum {
    SAMPLE_ROOM = 4096, /* records that are expanded or copied at a time */
    LEAST_SKIP = 512,   /* references: to leave out fewer costs more than to look at them */
};

struct lane {                         /* a thread */
    struct peet_batch raw;            /* as the source behind gave it, */
    size_t in_raw;                    /*   and the next record of it */
    const struct peet_repeat *repeat; /* of raw, that is being expanded; or NULL */
    uint64_t trip;                    /* the next one of it */
    struct peet_batch part;           /* that is looked at: of raw, or expanded trips */
    size_t at;                        /* the next record of it */
    struct peet_record *expanded, *copy;
    size_t expanded_room, copy_room;
    struct peet_event *event; /* of the copy */
    size_t event_room, events;
    bool is_on, has_gap;
    bool has_ended;                        /* and this has not been told */
    uint64_t now;                          /* references so far */
    uint64_t period, begin, every, length; /* of the window that is open, or comes next: its period, */
    uint64_t from, end;                    /*   and where it is */
    uint64_t gap_instructions, gap_references;
    struct peet_record gap;
    struct peet_event gap_event;
    uint64_t random;
    bool has_words;    /* who asks for words sees to windows, and tells of gaps */
    uint64_t left_out; /* references that the source behind did not show, */
    uint64_t late;     /*   how far it may come behind what it was told to leave out, */
    uint64_t allowed;  /*   and the period for which it was told that last */
    struct sample_counts counts;
};

struct sampler {
    struct source source;
    struct source *inner;
    struct sample_config config;
    unsigned line_bits;
    struct lane **lane; /* by context; NULL: it has not been asked for */
    void (*passed)(void *user, uint32_t context, const struct peet_record *block); /* or NULL */
    void *user;
    struct set_sample set_sample;
    struct touched touched;
    bool has_left_out; /* the source behind, something */
};

static inline int sample_no_memory(struct peet_err *err)
{
    return err_set(err, PEET_ERR_MEMORY, "no memory for samples");
}

/* What library code refers to, as an event says. */
struct sample_range {
    uint64_t addr, size;
    bool is_write;
};
/* How many there are; 0: it is another event. */
unsigned sample_ranges(const struct peet_event *e, struct sample_range ret[2]);
/* In how many lines it is. */
uint64_t sample_lines(const struct sampler *s, const struct sample_range *r);
/* One for each line. */
uint64_t sample_range_references(const struct sampler *s, const struct peet_event *e);

/* Bytes that were referred to between windows. */
int sample_touch(struct sampler *s, uint32_t process, uint64_t addr, uint64_t size, struct peet_err *err);

/* What is left of the repeat that is being expanded: 1, or 0 if that is nothing. */
int sample_refill_from_repeat(struct sampler *s, uint32_t context, struct lane *l, struct peet_err *err);

/* What of the next records is seen, if sets are chosen, copied. */
int sample_copy(struct sampler *s, struct lane *l, size_t count, struct peet_batch *ret, struct peet_err *err);

#endif
