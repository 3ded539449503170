/* SPDX-License-Identifier: MIT */
/* Samples of a program: a source on top of another one that leaves most references out.
 *
 * Time sampling: of each period of `every` references of a thread, `length` consecutive ones are observed: a window. Windows begin and end
 * between blocks. What is executed between two windows is one gap event. Set sampling: only references to the lines of some sets of a
 * cache are observed; blocks stay. Both can be combined (Martonosi, Gupta and Anderson, 1993). See docs/design/mapper.md. */
#ifndef MAP_SOURCE_SOURCE_SAMPLE_H
#define MAP_SOURCE_SOURCE_SAMPLE_H

#include "map/source/source.h"

/* Which references are observed. */
struct sample_config {
    uint64_t length, every; /* references of a window, and of a period; every = 0: everything is observed */
    bool is_random;         /* each window begins anywhere in its period; else it is in its middle */
    uint64_t seed;          /* of random windows, and of the sample of sets */
    uint32_t line_bytes;    /* a power of two */
    uint64_t sets;          /* sets of the cache, a power of two; 0: no set sampling */
    uint32_t one_in;        /* sets of which one is observed */
    uint64_t most; /* references: windows and periods grow with a thread's age, up to windows of it; 0: they do not */
};

/* What was observed and left out so far: references, where nothing else is said. */
struct sample_counts {
    uint64_t windows;      /* number of windows */
    uint64_t observed;     /* in windows */
    uint64_t instructions; /* instructions of blocks in windows */
    uint64_t between;      /* between windows */
    uint64_t
        gap_instructions;  /* instructions between windows; estimated where the inner source has left references out */
    uint64_t other_sets;   /* in windows, to sets that are not observed */
    uint64_t sets;         /* number of sets, as configured */
    uint64_t sampled_sets; /* number of observed sets */
    uint64_t late;         /* the most that the inner source has left out of one window */
    uint64_t missed;       /* all that it has left out of windows; of random windows an estimate */
};

/* The new source owns `inner`, also after a failure. It has event words if `inner` can leave references out and all sets are observed; the consumer
 * of the words then applies the windows (map/source/source.h). Strided loops are expanded. Events pass, except those of bytes that library code
 * moves. These count as one reference per line: they are left out between windows, and cut to the observed sets. */
int source_take_sample(struct source *inner, const struct sample_config *config, struct source **ret,
                       struct peet_err *err);

/* Whether a source of any kind samples sets. It does so by the addresses that programs use: remapped addresses would be in other sets. */
bool source_samples_sets(const struct source *s);

/* All functions below are for sources made by source_take_sample. */

enum { SAMPLE_ALL = UINT32_MAX }; /* in place of a thread: all of them */

/* Length in references of the window that is open in a thread, or else comes next; 0: there are no windows. */
uint64_t sample_window_length(const struct source *s, uint32_t thread);

struct sample_counts sample_counts(const struct source *s, uint32_t thread);

/* Whether a line (address / line_bytes) was referred to between windows by the thread's process, so that its next miss is not cold. After the inner
 * source has left references out, this is true for all lines. */
bool sample_was_touched(const struct source *s, uint32_t thread, uint64_t line);

/* Whether the inner source has left references out so far: calls and lines between windows are then unknown. */
bool sample_has_gaps(const struct source *s);

/* For consumers of words: notes that a gap event occurred. */
void sample_add_gap(struct source *s, uint32_t thread, uint64_t references);

/* Sets the gap observer, for call paths, which need all calls and returns. It gets each block between windows, blocks of a strided loop once, and NULL
 * where the inner source has left blocks out. */
void sample_set_gap_observer(struct source *s,
                             void (*passed)(void *user, uint32_t thread, const struct peet_record *block), void *user);

/* Whether references to a set are observed. */
bool sample_has_set(const struct source *s, uint64_t set);

#endif
