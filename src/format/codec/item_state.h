/* SPDX-License-Identifier: MIT */
/* The contexts of a chunk: found by item number, made on first use, forgotten together. */
#ifndef FORMAT_CODEC_ITEM_STATE_H
#define FORMAT_CODEC_ITEM_STATE_H

#include "format/codec/codec.h"

int item_states_init(struct item_states *x); /* -1: no memory */
void item_states_release(struct item_states *x);
void item_states_forget(struct item_states *x);

/* NULL: there is no such item, or no memory. */
struct item_state *item_states_get(struct item_states *x, const struct schema *s, uint64_t number);

/* That of a name; names may be NULL: then it is a number. */
struct item_state *item_states_resolve(struct item_states *x, const struct schema *s, const struct peet_names *names,
                                       uint64_t name, struct peet_err *err);

/* Where the one is that had this name, or another one, last. */
static inline struct item_state **item_states_cached(struct item_states *x, uint64_t name)
{
    return &x->by_name[name * 0x9e3779b97f4a7c15u >> 56];
}

static inline struct item_state *item_states_find(struct item_states *x, const struct schema *s,
                                                  const struct peet_names *names, uint64_t name, struct peet_err *err)
{
    struct item_state **known = item_states_cached(x, name);

    if (!*known || (*known)->name != name) {
        struct item_state *c = item_states_resolve(x, s, names, name, err);
        if (!c)
            return NULL;
        *known = c;
    }
    return *known;
}

/* The trips of a loop whose words need nothing else. */
static inline uint64_t loop_iterations(const struct peet_trips *t, const uint64_t *slots)
{
    uint64_t way = slots[t->end] - (t->start == PEET_LOOP_ZERO ? 0 : slots[t->start]) - t->add;

    return (way >> t->shift) * t->inverse & t->mask;
}

/* The words of a loop become its slots: t may be NULL, for one that tells its trips in another way. */
void loop_words_to_slots(const struct peet_trips *t, unsigned count, const struct peet_names *names, uint64_t name,
                         uint64_t *slots);
void item_state_complete_loop(const struct item_state *c, const struct peet_names *names, uint64_t *slots);

#endif
