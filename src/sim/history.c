/* SPDX-License-Identifier: MIT */
#include "sim/history.h"

#include <assert.h>

void histories_init(struct histories *h, unsigned cpus, uint64_t all_words)
{
    *h = (struct histories){ .cpus = cpus,
                             .size = sizeof(struct history) + cpus * sizeof(struct history_of),
                             .all_words = all_words,
                             .groups.value_size = sizeof(char *) };
}

void histories_release(struct histories *h)
{
    map_release(&h->groups);
    arena_release(&h->arena);
}

char *histories_group(struct histories *h, uint64_t number)
{
    char **group = map_put(&h->groups, number, 0);

    assert(group); /* like all tables that grow with the program, it is not worth to go on without */
    if (!*group)
        *group = arena_alloc(&h->arena, h->size << HISTORY_GROUP_BITS);
    assert(*group);
    h->near[number % HISTORY_NEAR].key = number + 1;
    h->near[number % HISTORY_NEAR].group = *group;
    return *group;
}

enum miss_cause history_cause(const struct history *h, unsigned cpu, uint64_t words)
{
    const struct history_of *o = &h->of[cpu];

    switch (o->lost) {
    case NEVER_HAD: return MISS_cold;
    case INVALIDATED: return o->written & words ? MISS_true_sharing : MISS_false_sharing;
    default: return MISS_replaced;
    }
}

void history_come(struct history *h, unsigned cpu)
{
    h->of[cpu] = (struct history_of){ 0, HAS };
    h->present |= (uint64_t)1 << cpu;
    h->invalidated &= ~((uint64_t)1 << cpu);
}

void history_go(struct history *h, unsigned cpu, enum lost how)
{
    h->of[cpu] = (struct history_of){ 0, (uint8_t)how };
    h->present &= ~((uint64_t)1 << cpu);
    h->invalidated |= (uint64_t)(how == INVALIDATED) << cpu;
}

void history_write(struct history *h, unsigned cpu, uint64_t words)
{
    for (uint64_t left = h->invalidated & ~((uint64_t)1 << cpu); left; left &= left - 1)
        h->of[__builtin_ctzll(left)].written |= words;
}

bool history_is_watched(const struct histories *all, const struct history *h, unsigned cpu)
{
    for (uint64_t left = h->invalidated & ~((uint64_t)1 << cpu); left; left &= left - 1)
        if (h->of[__builtin_ctzll(left)].written != all->all_words)
            return true;
    return false;
}
