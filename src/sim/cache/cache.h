/* SPDX-License-Identifier: MIT */
/* One cache: which lines it has, in which states, and which of them goes when another one comes. It knows neither time nor data nor
 * other caches. A TLB is a cache of pages. */
#ifndef SIM_CACHE_CACHE_H
#define SIM_CACHE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CACHE_STATE_BITS = 4, CACHE_STATES = 1 << CACHE_STATE_BITS }; /* state 0: nothing is there */
enum { CACHE_MAX_WAYS = 64 };

struct cache_config {
    uint64_t bytes;
    uint32_t ways; /* 0: it has one set */
    uint32_t line; /* bytes, a power of two */
    const struct replacement *replacement;
    uint64_t seed; /* of the random one */
};

struct cache {
    uint64_t *entry;      /* set by set, way by way: line number << CACHE_STATE_BITS | state */
    uint64_t *order;      /* a word per set, for the replacement */
    uint8_t *recent;      /* the way of each set that was used last, if it is still there */
    bool *is_full;        /* there is no way without a line; false: nobody knows */
    uint64_t sets, mask;  /* mask: sets - 1 if that is all it takes, else 0 */
    uint32_t ways, shift; /* shift: from an address to the number of its line */
    const struct replacement *replacement;
    uint64_t random;
};

/* How a set's next victim is found. The ways of a set are numbered from 0. */
struct replacement {
    const char *name, *summary;
    bool moves;   /* touch makes a way the first, as fill does; fill alone may change places in any case */
    bool is_calm; /* to use what was used or filled last once more changes nothing */
    unsigned (*victim)(struct cache *c, uint64_t set);          /* of a full set */
    void (*touch)(struct cache *c, uint64_t set, unsigned way); /* it was used, and was there before */
    void (*fill)(struct cache *c, uint64_t set, unsigned way);  /* it has just come */
};

int cache_init(struct cache *c, const struct cache_config *config); /* -1: no memory */
void cache_release(struct cache *c);

static inline uint64_t cache_set(const struct cache *c, uint64_t line)
{
    return c->mask || c->sets == 1 ? line & c->mask : line % c->sets;
}

static inline unsigned cache_state(uint64_t entry)
{
    return entry & (CACHE_STATES - 1);
}

/* The entry of a line, or NULL. Valid until the next touch or put of its set. */
uint64_t *cache_find(struct cache *c, uint64_t line);

/* The line was used; returns where its entry is now. */
uint64_t *cache_touch(struct cache *c, uint64_t *entry);

/* Puts a line, which is not there, in this state. Returns the entry that had to go; 0: none. */
uint64_t cache_put(struct cache *c, uint64_t line, unsigned state);

void cache_drop(struct cache *c, uint64_t *entry); /* the line goes */

/* A new replacement is a file src/sim/cache/NAME.c that defines replacement_NAME, and a line here. */
#define REPLACEMENTS(X) X(lru) X(plru) X(fifo) X(random) X(rrip)

#define X(name) extern const struct replacement replacement_##name;
REPLACEMENTS(X)
#undef X

extern const struct replacement *const replacements[]; /* NULL at the end */
const struct replacement *replacement_find(const char *name);

#endif
