/* SPDX-License-Identifier: MIT */
/* A tenth of a program: a source before the source that leaves most references out.
 *
 * Time sampling: of every `every` references that a thread makes, `length` in a row are seen: a window. Windows begin and end between blocks. What
 * is executed between two of them is one event: gap. A source that can leave references out is told to. Set sampling: of the sets of a cache, some are chosen, and only
 * references to their lines are seen; blocks stay. Both may be had together (Martonosi, Gupta and Anderson, 1993). */
#ifndef MAP_SOURCE_SOURCE_SAMPLE_H
#define MAP_SOURCE_SOURCE_SAMPLE_H

#include "map/source/source.h"

struct sample_config {
    uint64_t length, every; /* references; every = 0: all of the time */
    bool is_random;         /* each window begins anywhere in its period; else it is in its middle */
    uint64_t seed;          /* of that, and of the choice of sets */
    uint32_t line_bytes;    /* a power of two */
    uint64_t sets;          /* a power of two; 0: all sets are seen */
    uint32_t one_in;        /* so many sets, one is chosen */
    uint64_t most; /* windows, and gaps, grow with a thread, up to windows of so many references; 0: they do not */
};

struct sample_counts {
    uint64_t windows;
    uint64_t observed, instructions; /* references, and instructions of blocks, in windows */
    uint64_t between,
        gap_instructions;  /* and between them; instructions are guessed where the source has left something out */
    uint64_t other_sets;   /* references in windows to sets that were not chosen */
    uint64_t sets, sampled_sets; /* as configured, and how many of them were chosen */
    uint64_t late;         /* references that the source has left out behind the beginning of a window, at most; */
    uint64_t missed;       /*   and all that it has left out of windows; of random ones, about so many */
};

/* What it gives as words, if `inner` can leave references out and all sets are seen, says itself what is to be passed over (map/source/source.h).
 * Stands before `inner`, which it owns from now on, also if it fails. What `inner` repeats is expanded. Events pass, but those that say that library
 * code moved bytes count as references, one for each line: between windows they are left out, and pieces of them are left out with their sets. */
int source_take_sample(struct source *inner, const struct sample_config *config, struct source **ret,
                       struct peet_err *err);

/* Whether a source, whoever made it, leaves out references by the sets of the addresses that programs use: other addresses would be in other sets. */
bool source_samples_sets(const struct source *s);

/* What follows is for a source that source_take_sample made. */

enum { SAMPLE_ALL = UINT32_MAX }; /* for a context */

/* References of the window in which a context is, or that comes next; 0: there are none. */
uint64_t sample_window_length(const struct source *s, uint32_t context);

struct sample_counts sample_counts(const struct source *s, uint32_t context);

/* Whether a line (address / line_bytes) was referred to between windows, by a thread of this context's process: a miss of it is then no cold one. Where the
 * source has left something out, any line may have been. */
bool sample_was_touched(const struct source *s, uint32_t context, uint64_t line);

/* Whether the source behind has left something out so far: nobody knows what was called then, and which lines were used. */
bool sample_has_gaps(const struct source *s);

/* For who takes words: there was a gap event. */
void sample_add_gap(struct source *s, uint32_t context, uint64_t references);

/* Is told of each block between windows, of rows that are repeated once, and of what the source behind has left out (NULL): for who follows calls and
 * returns, which cannot be sampled. */
void sample_set_gap_observer(struct source *s,
                             void (*passed)(void *user, uint32_t context, const struct peet_record *block), void *user);

/* Whether references to a set are seen. */
bool sample_has_set(const struct source *s, uint64_t set);

#endif
