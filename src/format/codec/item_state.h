/* SPDX-License-Identifier: MIT */
/* The contexts of a chunk: found by item number, made on first use, forgotten together. */
#ifndef FORMAT_CODEC_ITEM_STATE_H
#define FORMAT_CODEC_ITEM_STATE_H

#include "format/codec/codec.h"

int contexts_init(struct contexts *x); /* -1: no memory */
void contexts_release(struct contexts *x);
void contexts_forget(struct contexts *x);

/* NULL: there is no such item, or no memory. */
struct context *contexts_get(struct contexts *x, const struct schema *s, uint64_t number);

/* That of a name; names may be NULL: then it is a number. */
struct context *contexts_find_name(struct contexts *x, const struct schema *s, const struct peet_names *names,
                                   uint64_t name, struct peet_err *err);

/* Where the one is that had this name, or another one, last. */
static inline struct context **contexts_known(struct contexts *x, uint64_t name)
{
    return &x->by_name[name * 0x9e3779b97f4a7c15u >> 56];
}

static inline struct context *contexts_named(struct contexts *x, const struct schema *s, const struct peet_names *names,
                                             uint64_t name, struct peet_err *err)
{
    struct context **known = contexts_known(x, name);

    if (!*known || (*known)->name != name) {
        struct context *c = contexts_find_name(x, s, names, name, err);
        if (!c)
            return NULL;
        *known = c;
    }
    return *known;
}

/* The trips of a loop whose words need nothing else. */
static inline uint64_t context_trips(const struct peet_trips *t, const uint64_t *slots)
{
    uint64_t way = slots[t->end] - (t->start == PEET_LOOP_ZERO ? 0 : slots[t->start]) - t->add;

    return (way >> t->shift) * t->inverse & t->mask;
}

/* The words of a loop become its slots: t may be NULL, for one that tells its trips in another way. */
void words_settle(const struct peet_trips *t, unsigned count, const struct peet_names *names, uint64_t name,
                  uint64_t *slots);
void context_settle(const struct context *c, const struct peet_names *names, uint64_t *slots);

#endif
