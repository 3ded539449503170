/* SPDX-License-Identifier: MIT */
/* The predictor states of a chunk: found by item number or key, made on first use, freed together. */
#ifndef FORMAT_CODEC_ITEM_STATE_H
#define FORMAT_CODEC_ITEM_STATE_H

#include "format/codec/codec.h"

int item_states_init(struct item_states *x); /* -1: no memory */
void item_states_release(struct item_states *x);
void item_states_forget(struct item_states *x);

/* The state of an item. NULL: there is no such item, or no memory. */
struct item_state *item_states_get(struct item_states *x, const struct schema *s, uint64_t number);

/* The state of the item with a key. names: the resolver; NULL: keys are item numbers. */
struct item_state *item_states_resolve(struct item_states *x, const struct schema *s, const struct peet_names *names,
                                       uint64_t key, struct peet_err *err);

/* The entry of the lookup cache for a key; it may hold the state of another key. */
static inline struct item_state **item_states_cached(struct item_states *x, uint64_t key)
{
    return &x->by_key[key * 0x9e3779b97f4a7c15u >> 56];
}

static inline struct item_state *item_states_find(struct item_states *x, const struct schema *s,
                                                  const struct peet_names *names, uint64_t key, struct peet_err *err)
{
    struct item_state **known = item_states_cached(x, key);

    if (!*known || (*known)->key != key) {
        struct item_state *c = item_states_resolve(x, s, names, key, err);
        if (!c)
            return NULL;
        *known = c;
    }
    return *known;
}

/* Iterations of a loop with SPECIAL_COUNTED_LOOP. */
static inline uint64_t loop_iterations(const struct peet_trips *t, const uint64_t *slots)
{
    uint64_t distance = slots[t->end] - (t->start == PEET_LOOP_ZERO ? 0 : slots[t->start]) - t->add;

    return (distance >> t->shift) * t->inverse & t->mask;
}

/* Turns the words of a loop into its slots, in place. t: how the words give its trip count; NULL: names->loop computes the slots. */
void loop_words_to_slots(const struct peet_trips *t, unsigned count, const struct peet_names *names, uint64_t key,
                         uint64_t *slots);
void item_state_complete_loop(const struct item_state *c, const struct peet_names *names, uint64_t *slots);

#endif
