/* SPDX-License-Identifier: MIT */
/* One cache: its lines, their states, and the victim of each fill. It knows neither time nor data nor other caches. A TLB is a cache of
 * pages. */
#ifndef SIM_CACHE_CACHE_H
#define SIM_CACHE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { CACHE_STATE_BITS = 4, CACHE_STATES = 1 << CACHE_STATE_BITS }; /* state 0: nothing is there */
enum { CACHE_RANKED_WAYS = 16, CACHE_COMPARED = 8 };

/* The geometry of a cache. */
struct cache_config {
    uint64_t bytes; /* of all lines */
    uint32_t ways;  /* 0: the cache has one set */
    uint32_t line;  /* bytes, a power of two */
    const struct replacement *replacement;
    uint64_t seed; /* of cache.random */
};

/* A cache, or a TLB. */
struct cache {
    uint64_t *entry; /* by set * ways + way: line number << CACHE_STATE_BITS | state; state 0: empty */
    uint16_t *tag;   /* by set * tags + way: bits of the line number from tag_shift on; NULL: entries are compared */
    uint64_t *order; /* by set: a word of the replacement */
    uint64_t *recent, recent_mask; /* recent[set] & recent_mask: the way that was used last; its line may be gone */
    bool *is_full;                 /* by set: all ways have a line; false: it is not known */
    uint64_t sets, mask;           /* mask: sets - 1; 0 if sets is no power of two, or 1 */
    uint32_t ways, shift;          /* lines of a set; log2 of the bytes of a line */
    uint32_t tag_shift;            /* bits of a line number below its tag */
    uint32_t tags;                 /* tags of a set: of its ways, and unused ones up to a multiple of CACHE_COMPARED */
    bool is_ranked;                /* order has the ways of each set, 4 bits each, MRU lowest (lru.c) */
    const struct replacement *replacement;
    uint64_t random; /* state of the generator of the policy `random` */
};

/* A replacement policy: finds the next victim of a set. The ways of a set are numbered from 0. */
struct replacement {
    const char *name, *summary;
    uint32_t most_ways;                                         /* of a set; 0: any number */
    bool touch_reorders;                                        /* touch may move a line to way 0, as fill may */
    bool stays;                                                 /* no line ever changes its way */
    bool mru_touch_is_noop;                                     /* touching the MRU way again changes nothing */
    unsigned (*victim)(struct cache *c, uint64_t set);          /* way of the victim in a full set */
    void (*touch)(struct cache *c, uint64_t set, unsigned way); /* a hit in that way */
    void (*fill)(struct cache *c, uint64_t set, unsigned way);  /* a line was put into that way */
};

int cache_init(struct cache *c, const struct cache_config *config); /* -1: no memory */
void cache_release(struct cache *c);

static inline uint64_t cache_set(const struct cache *c, uint64_t line)
{
    return c->mask || c->sets == 1 ? line & c->mask : line % c->sets;
}

static inline unsigned cache_recent(const struct cache *c, uint64_t set)
{
    return (unsigned)(c->recent[set] & c->recent_mask);
}

static inline unsigned cache_state(uint64_t entry)
{
    return entry & (CACHE_STATES - 1);
}

/* A way of a set has another line. */
static inline void cache_set_tag(const struct cache *c, uint64_t set, unsigned way, uint64_t line)
{
    if (c->tag)
        c->tag[set * c->tags + way] = (uint16_t)(line >> c->tag_shift);
}

#ifdef __SSE2__
/* A bit for each of up to 16 ways of a set whose tag is the line's; also for some that are none. */
static inline unsigned cache_compare(const struct cache *c, uint64_t set, uint64_t line)
{
    const __m128i *tag = (const __m128i *)(const void *)(c->tag + set * c->tags);
    const __m128i wanted = _mm_set1_epi16((short)(line >> c->tag_shift));
    __m128i low = _mm_cmpeq_epi16(_mm_load_si128(tag), wanted), high = _mm_setzero_si128();

    if (c->tags > CACHE_COMPARED)
        high = _mm_cmpeq_epi16(_mm_load_si128(tag + 1), wanted);
    return (unsigned)_mm_movemask_epi8(_mm_packs_epi16(low, high));
}
#endif

/* The entry of a line in its set, or NULL. Valid until the next touch or put of the set. */
static inline uint64_t *cache_find_in(const struct cache *c, uint64_t set, uint64_t line)
{
    uint64_t *e = c->entry + set * c->ways, *end = e + c->ways;
    uint64_t first = line << CACHE_STATE_BITS | 1; /* its entry in the first state; those in the others follow */

#ifdef __SSE2__
    if (c->tag) { /* many at once, and no branch that depends on where it is */
        for (unsigned left = cache_compare(c, set, line); left; left &= left - 1) {
            uint64_t *found = e + __builtin_ctz(left);
            if (*found - first < CACHE_STATES - 1)
                return found;
        }
        return NULL;
    }
#endif
    for (; e < end; e++)
        if (*e - first < CACHE_STATES - 1)
            return e;
    return NULL;
}

static inline uint64_t *cache_find(const struct cache *c, uint64_t line)
{
    return cache_find_in(c, cache_set(c, line), line);
}

/* The entry of the line that was touched or put last in its set. */
static inline uint64_t *cache_last(const struct cache *c, uint64_t line)
{
    uint64_t set = cache_set(c, line), *e = c->entry + set * c->ways + cache_recent(c, set);
    uint64_t first = line << CACHE_STATE_BITS | 1; /* as in cache_find_in: the entry may be empty */

    return *e - first < CACHE_STATES - 1 ? e : cache_find_in(c, set, line);
}

/* A way of a ranked set becomes the first. */
static inline void cache_rank(struct cache *c, uint64_t set, unsigned way)
{
    const uint64_t ones = UINT64_MAX / 15;
    uint64_t order = c->order[set], other = order ^ way * ones;
    uint64_t same = (other - ones) & ~other & ones << 3; /* its lowest bit is the one of the way */
    uint64_t before = ((same & -same) >> 3) - 1;

    c->order[set] = (order & ~(before << 4 | 15)) | (order & before) << 4 | way;
}

/* The way of a ranked set that was not used for the longest time. */
static inline unsigned cache_oldest(const struct cache *c, uint64_t set)
{
    return (unsigned)(c->order[set] >> 4 * (c->ways - 1)) & 15;
}

/* It becomes the first; returns its number. */
static inline unsigned cache_rank_oldest(struct cache *c, uint64_t set)
{
    unsigned way = cache_oldest(c, set);

    c->order[set] = c->order[set] << 4 | way; /* bits after those of the ways do not matter */
    return way;
}

/* The line was used; returns where its entry is now. */
uint64_t *cache_touch_other(struct cache *c, uint64_t set, uint64_t *entry);
static inline uint64_t *cache_touch_in(struct cache *c, uint64_t set, uint64_t *entry)
{
    if (!c->is_ranked)
        return cache_touch_other(c, set, entry);
    cache_rank(c, set, (unsigned)(entry - (c->entry + set * c->ways)));
    return entry;
}

static inline uint64_t *cache_touch(struct cache *c, uint64_t *entry)
{
    return cache_touch_in(c, cache_set(c, *entry >> CACHE_STATE_BITS), entry);
}

/* Whether a line is there; it is used then. Most often it was so last in its set. */
static inline bool cache_use(struct cache *c, uint64_t line)
{
    uint64_t set = cache_set(c, line), *e = cache_last(c, line);

    if (e && !(c->replacement->mru_touch_is_noop && e == c->entry + set * c->ways + cache_recent(c, set)))
        cache_touch_in(c, set, e);
    return e != NULL;
}

/* Puts a line, which is not there, in this state. Returns the entry that had to go; 0: none. */
uint64_t cache_put(struct cache *c, uint64_t line, unsigned state);

void cache_drop(struct cache *c, uint64_t *entry); /* the line goes */

/* For replacements: a way becomes the first, and those before it move. */
void cache_move_first(struct cache *c, uint64_t set, unsigned way);

/* A new replacement is a file src/sim/cache/NAME.c that defines replacement_NAME, and a line here. Two models in tests need its rule, too:
 * tests/unit/test_cache.c and tests/unit/slow_memory.h fail for a policy that they do not know. ARCHITECTURE.md has the rest. */
#define REPLACEMENTS(X) X(lru) X(plru) X(fifo) X(random) X(rrip)

#define X(name) extern const struct replacement replacement_##name;
REPLACEMENTS(X)
#undef X

extern const struct replacement *const replacements[]; /* NULL at the end */
const struct replacement *replacement_find(const char *name);

#endif
