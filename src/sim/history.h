/* SPDX-License-Identifier: MIT */
/* Who had which line, and how it was lost: what tells the cause of a miss. Words of a line are told apart, at most 64 of them. */
#ifndef SIM_HISTORY_H
#define SIM_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"

/* X(name, title): what can be the cause of a miss. */
/* clang-format off */
#define MISS_CAUSES(X) \
    X(cold, "cold") X(replaced, "replacement") X(true_sharing, "true sharing") X(false_sharing, "false sharing")
/* clang-format on */
enum miss_cause {
#define X(name, title) MISS_##name,
    MISS_CAUSES(X) MISS_KINDS
#undef X
};

enum lost { REPLACED, INVALIDATED };

/* All of a line, for all processors. What most misses need is little. */
struct history {
    uint64_t present;     /* a bit for each processor that has it, */
    uint64_t had;         /*   for each that ever had it, */
    uint64_t invalidated; /*   and for each that lost it because another one wrote */
    uint64_t *written;    /* by processor: words that others wrote since it was invalidated; NULL: it never was */
};

/* Of neighbouring lines, which are often used together, they lie together. */
enum { HISTORY_GROUP_BITS = 8, HISTORY_NEAR = 1024 };
struct histories {
    unsigned cpus;
    uint64_t all_words;
    struct {
        uint64_t key; /* 1 + number of the group; 0: none */
        struct history *group;
    } near[HISTORY_NEAR]; /* groups that were used last */
    struct map groups;    /* struct history *, by number */
    struct arena arena;
};

void histories_init(struct histories *h, unsigned cpus, uint64_t all_words);
void histories_release(struct histories *h);
struct history *histories_group(struct histories *h, uint64_t number); /* from the map; new if need be */

/* Of a line; lives as long as the histories. */
static inline struct history *history_at(struct histories *h, uint64_t line)
{
    uint64_t number = line >> HISTORY_GROUP_BITS, at = line & ((1 << HISTORY_GROUP_BITS) - 1);
    struct history *group = h->near[number % HISTORY_NEAR].group;

    return (h->near[number % HISTORY_NEAR].key == number + 1 ? group : histories_group(h, number)) + at;
}

/* Why a processor does not have a line of which it wants these words. */
enum miss_cause history_cause(const struct history *h, unsigned cpu, uint64_t words);

void history_come(struct history *h, unsigned cpu);
void history_go(struct histories *all, struct history *h, unsigned cpu, enum lost how);

/* A processor writes words: those that have lost the line see them when they come back. */
void history_write(struct history *h, unsigned cpu, uint64_t words);

/* Whether a write to the line could still tell somebody something new. */
bool history_is_watched(const struct histories *all, const struct history *h, unsigned cpu);

#endif
