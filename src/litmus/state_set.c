/* SPDX-License-Identifier: MIT */
#include "litmus/state_set.h"

#include <stdlib.h>
#include <string.h>

enum { STATE_SET_FIRST = 256 };

static uint64_t state_set_hash(const uint64_t *state, size_t words)
{
    uint64_t h = 0;

    for (size_t i = 0; i < words; i++) {
        h = (h ^ state[i]) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
    }
    return h;
}

/* Twice as many slots, at most half of them in use. */
static int state_set_grow(struct state_set *s)
{
    size_t slots = s->slots ? 2 * s->slots : 2 * STATE_SET_FIRST;
    uint32_t *slot = calloc(slots, sizeof *slot);
    uint64_t *state = realloc(s->state, slots / 2 * s->words * sizeof *state);

    s->state = state ? state : s->state;
    if (!slot || !state || slots / 2 >= UINT32_MAX) {
        free(slot);
        return -1;
    }
    for (size_t i = 0; i < s->count; i++) {
        size_t at = state_set_hash(s->state + i * s->words, s->words) & (slots - 1);
        while (slot[at])
            at = (at + 1) & (slots - 1);
        slot[at] = (uint32_t)i + 1;
    }
    free(s->slot);
    s->slot = slot;
    s->slots = slots;
    s->room = slots / 2;
    return 0;
}

int state_set_add(struct state_set *s, const uint64_t *state)
{
    size_t bytes = s->words * sizeof *state;

    if (s->count == s->room && state_set_grow(s) < 0)
        return -1;
    size_t at = state_set_hash(state, s->words) & (s->slots - 1);
    for (; s->slot[at]; at = (at + 1) & (s->slots - 1))
        if (memcmp(s->state + (s->slot[at] - 1) * s->words, state, bytes) == 0)
            return 0;
    memcpy(s->state + s->count * s->words, state, bytes);
    s->slot[at] = (uint32_t)++s->count;
    return 1;
}

void state_set_release(struct state_set *s)
{
    free(s->state);
    free(s->slot);
    *s = (struct state_set){ 0 };
}
