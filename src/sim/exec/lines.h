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
    uint64_t stamp;                /* number of the last reference, when the first level evicted the line */
    uint32_t use;                  /* number of its last first use in an epoch (struct epoch_shadow); 0: never used */
    uint32_t remover;              /* removal tag, 0: none; and REMOVER_UNKNOWN */
    uint32_t entry[CONFIG_LEVELS]; /* by level: 1 + entry, 0: none; of the first level: the last one */
    uint32_t unused;
};
/* Flag of exec_line.remover. Several levels: no level has the line. Samples: the tag is not known. */
#define REMOVER_UNKNOWN UINT32_C(0x80000000)
enum { EXEC_LINE_BITS = 5, EXEC_SHORT_LINE_BITS = 4 };
_Static_assert(sizeof(struct exec_line) == 1 << EXEC_LINE_BITS, "two in a line of the host");
_Static_assert(offsetof(struct exec_line, entry) == 1 << EXEC_SHORT_LINE_BITS, "four in a line of the host");

/* Whether some level ever had a line. */
static inline bool line_was_used(const struct exec_line *l)
{
    return l->use != 0;
}

/* The cell of the access that removed a line; UINT32_MAX: none. */
static inline uint32_t line_remover(const struct exec_line *l)
{
    return (l->remover & ~REMOVER_UNKNOWN) - 1;
}

extern bool exec_short_epochs; /* for tests: numbers of uses are renumbered after few epochs */

enum { LINE_PAGE_BITS = 8, LINE_PAGE_CACHE = 4096 };

/* The descriptors of all lines that were used, in pages of 2^LINE_PAGE_BITS lines. */
struct exec_lines {
    struct {
        uint64_t page;    /* UINT64_MAX: none */
        uintptr_t origin; /* address that line 0 would have in this page */
    } page_cache[LINE_PAGE_CACHE];
    struct map pages;        /* uintptr_t: their origins */
    struct exec_line **page; /* first line of each */
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
 * that enters the directory removes the one of lowest rank that was not used again. Older lines are not in the directory. */
struct epoch_shadow {
    uint64_t most;           /* lines */
    uint64_t began;          /* number of the first reference of this epoch */
    uint64_t since;          /* number of the reference from which uses are logged again */
    uint64_t before;         /* the previous value of `since` */
    uint64_t now, last;      /* numbers of the first use in this epoch, and in the previous one */
    uint64_t ranks;          /* lines used in the previous epoch; 0: there is none */
    uint64_t next, end;      /* numbers of the next use, and of the use that ends the epoch */
    uint32_t *rank;          /* LRU rank, by number of use - last */
    uint8_t *used_again;     /* by rank: used in this epoch */
    uint64_t evicted_below;  /* lines of lower rank are not in the directory, unless used again */
    struct exec_line **used; /* by number of use - now */
    uint32_t *used_at; /* with state_from_tags, by number of use - now: byte offset of its entry in the first level */
    uintptr_t rank_origin, used_origin, used_at_origin; /* addresses that number 0 would have in these arrays */
    uint64_t limit;                                     /* numbers are smaller */
    uint32_t logged_lines, log_limit; /* lines logged since `since`; number after which all are logged again */
    bool has_popcount;                /* the host can count bits */
    uint64_t *key, *key_buffer;       /* to sort lines */
    unsigned index_bits;              /* of a line's index in a key */
};

/* ---- levels (block_cache.c) ---- */

/* An entry of the first level. */
struct l1_entry {
    uint64_t tag[2]; /* address of the line if it can be read, or written, without side effect; otherwise NO_LINE */
    uint64_t stamp;  /* number of the last reference to it; 0: it is empty */
    struct exec_line *info;
};

#define LRU_ORDER_ONES UINT64_C(0x1111111111111111) /* 4 bits for each way of a set, MRU first */

/* A private cache level of the core. */
struct exec_level {
    uint64_t *line;          /* by entry (set * ways + way); NO_LINE: empty */
    uint8_t *state;          /* of the protocol, by entry */
    struct exec_line **info; /* by entry, of levels after the first; NULL: empty */
    uint64_t *order;         /* by set: LRU order, 4 bits each; NULL: too many ways, see `stamp` */
    uint64_t *stamp;         /* by entry: number of the last touch; 0: empty */
    uint32_t *full;          /* entries in use, in the order in which they were filled */
    uint32_t filled;         /* number of entries in use */
    uint64_t mask;           /* sets - 1 */
    uint32_t ways, latency;  /* per set; cycles of a hit */
};

/* What an access to one line did; as in struct access_outcome. */
struct exec_outcome {
    uint64_t stall;
    uint8_t level, cause;
    bool is_upgrade;
};

#endif
