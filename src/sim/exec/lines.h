/* SPDX-License-Identifier: MIT */
/* Descriptors of lines, the shadow directory by epochs (lines.c), and the levels (block_cache.c). docs/design/blocks.md. */
#ifndef SIM_EXEC_LINES_H
#define SIM_EXEC_LINES_H

#include "base/arena.h"
#include "base/map.h"
#include "sim/memory/hierarchy.h"

#define NO_LINE UINT64_MAX /* no line */

/* The descriptor of a line that was used, in 32 bytes. With exec_caches.state_from_tags it ends before `entry`. */
struct exec_line {
    uint64_t stamp;                /* number of the last touch before the first level evicted the line */
    uint32_t use;                  /* number given to its first use in the latest epoch in which it was used (struct
                                      epoch_shadow); 1: an epoch long ago; 0: never used */
    uint32_t remover;              /* tag of the access that removed it last, 0: none; and the flag REMOVER_UNKNOWN */
    uint32_t entry[CONFIG_LEVELS]; /* by level: 1 + entry, 0: none; of the first level: 1 + the entry that held it
                                      last, and may hold another line */
    uint32_t unused;               /* fills the descriptor up to 2^EXEC_LINE_BITS bytes */
};
/* Flag of exec_line.remover. Several levels: the core has lost the line. One level: it is unknown which access removed it. */
#define REMOVER_UNKNOWN UINT32_C(0x80000000)
enum { EXEC_LINE_BITS = 5, EXEC_SHORT_LINE_BITS = 4 };
_Static_assert(sizeof(struct exec_line) == 1 << EXEC_LINE_BITS, "two in a line of the host");
_Static_assert(offsetof(struct exec_line, entry) == 1 << EXEC_SHORT_LINE_BITS, "four in a line of the host");

/* Whether some level ever had a line. */
static inline bool line_was_used(const struct exec_line *l)
{
    return l->use != 0;
}

/* Index of the access counts of the access that removed a line; UINT32_MAX: none. */
static inline uint32_t line_remover(const struct exec_line *l)
{
    return (l->remover & ~REMOVER_UNKNOWN) - 1;
}

extern bool exec_short_epochs; /* for tests: uses are renumbered after few epochs */

enum { LINE_PAGE_BITS = 8, LINE_PAGE_CACHE = 4096 };

/* The descriptors of all lines that were used, in pages of 2^LINE_PAGE_BITS lines. */
struct exec_lines {
    struct {
        uint64_t page;             /* number of the page; UINT64_MAX: none */
        uintptr_t origin;          /* address that the descriptor of line 0 would have in this page */
    } page_cache[LINE_PAGE_CACHE]; /* by low bits of the number */
    struct map pages;              /* uintptr_t: origins of all pages, by number */
    struct exec_line **page;       /* descriptor of the first line of each page, in the order of first use */
    size_t page_count;
    struct arena arena;
    unsigned bits; /* log2 of the bytes of a descriptor */
};
uintptr_t exec_lines_page(struct exec_lines *l, uint64_t page);

static inline struct exec_line *exec_line_at(struct exec_lines *l, uint64_t line)
{
    uint64_t page = line >> LINE_PAGE_BITS, k = page % LINE_PAGE_CACHE;
    uintptr_t origin = l->page_cache[k].page == page ? l->page_cache[k].origin : exec_lines_page(l, page);

    return (struct exec_line *)(origin + (line << l->bits));
}

/* The shadow directory: a fully associative LRU directory, by epochs. An epoch ends when `most` lines were used in it. The first use of a line in an
 * epoch has a number. Lines of the current epoch are in the directory. Lines of the previous one have an LRU rank, made at its end; each line
 * that enters the directory removes the one of lowest rank that was not used again. Older lines are not in the directory.
 * `began`, `since` and `before` are numbers of touches (exec_blocks.number); `now`, `last`, `next`, `end` and `limit` are numbers of uses. */
struct epoch_shadow {
    uint64_t most;           /* lines of the directory */
    uint64_t began;          /* first touch of this epoch */
    uint64_t since;          /* a hit of a line with a lower stamp takes the slow path, where its use is noted */
    uint64_t before;         /* the previous value of `since` */
    uint64_t now, last;      /* first use in this epoch, in the previous one */
    uint64_t ranks;          /* lines used in the previous epoch; 0: there is none */
    uint64_t next, end;      /* the next use; the use that ends the epoch */
    uint32_t *rank;          /* LRU rank, by exec_line.use - last */
    uint8_t *used_again;     /* by rank: used in this epoch */
    uint64_t evicted_below;  /* lines of lower rank are not in the directory, unless used again */
    struct exec_line **used; /* by exec_line.use - now */
    uint32_t *used_at; /* with state_from_tags, by exec_line.use - now: byte offset of its entry in the first level */
    uintptr_t rank_origin, used_origin, used_at_origin; /* addresses that use 0 would have in these arrays */
    uint64_t limit;                                     /* uses are renumbered before they reach it */
    uint32_t noted_uses;                                /* uses noted since touch `since` */
    uint32_t most_noted;        /* of samples: noted uses after which `since` advances to the current touch */
    bool has_popcount;          /* the host can count bits */
    uint64_t *key, *key_buffer; /* to sort lines */
    unsigned index_bits;        /* of a line's index in a key */
};

/* ---- levels (block_cache.c) ---- */

/* An entry of the first level. */
struct l1_entry {
    uint64_t tag[2];        /* by is_write: address of the line if exec_caches.allows it; otherwise NO_LINE */
    uint64_t stamp;         /* number of the last touch; 0: it is empty */
    struct exec_line *info; /* the line; NULL or exec_sentinels.empty: it is empty */
};

#define LRU_ORDER_ONES UINT64_C(0x1111111111111111) /* exec_level.order: 1 in each way's 4 bits */

/* A private cache level of the core. */
struct exec_level {
    uint64_t *line;          /* by entry (set * ways + way): number of its line; NO_LINE: empty; not read with
                                exec_caches.state_from_tags */
    uint8_t *state;          /* by entry: state of the protocol; not read with exec_caches.state_from_tags */
    struct exec_line **info; /* by entry; NULL: empty; the first level has no array: l1_entry.info */
    uint64_t *order;         /* by set: its ways in LRU order, 4 bits each, MRU lowest; NULL: more than 16 ways, or the
                                first level */
    uint64_t *stamp;         /* by entry: number of the last touch, 0: empty; NULL: `order` is used, or the first level
                                (l1_entry.stamp) */
    uint32_t *full;          /* entries in use, in the order in which they were filled */
    uint32_t filled;         /* entries in use */
    uint64_t mask;           /* sets - 1 */
    uint32_t ways, latency;  /* ways of a set; cycles of a hit */
};

/* What an access to one line did. */
struct exec_outcome {
    uint64_t latency;     /* cycles that the core waits, with those of a hit; 0 for a prefetch */
    uint8_t level, cause; /* as in struct access_outcome */
    bool is_upgrade;      /* the core had the line and issued an invalidation */
};

#endif
