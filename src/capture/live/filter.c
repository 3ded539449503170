/* SPDX-License-Identifier: MIT */
/* Less than the program says: of its words, those go on that the user asked for. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/live/live.h"

bool filter_is_wanted(const struct producer_state *s)
{
    return s->code.layout.strips;
}

void filter_release(struct live_filter *f)
{
    free(f->word);
}

static int flush(struct live_thread *t, struct peet_err *err)
{
    struct live_filter *f = &t->filter;
    int r = f->words ? live_put(t, f->word, f->words, err) : 0;

    f->words = 0;
    return r;
}

static void push(struct live_filter *f, uint64_t key, const uint64_t *slots, size_t n)
{
    f->word[f->words++] = key;
    if (n)
        memcpy(f->word + f->words, slots, n * sizeof *slots);
    f->words += n;
}

/* The trips of a loop that has left these words. */
static uint64_t trips_of(const struct x86_affine *loop, const uint64_t *slots)
{
    uint64_t own[PEET_SLOTS];

    memcpy(own, slots, (loop->values + 1) * sizeof *own);
    x86_affine_settle(loop, own);
    return own[loop->values];
}

static int take_calls(struct live_thread *t, uint64_t key, struct live_item *item, struct peet_err *err)
{
    int r = item->is_defined ? 0 : code_define(&t->recorder->code, t->last, key, item, err);

    if (r == 0 && item->entry)
        push(&t->filter, key | LIVE_ENTRY, NULL, 0);
    if (r == 0 && item->item)
        push(&t->filter, key | LIVE_LAST, NULL, 0);
    return r;
}

static int take_block(struct live_thread *t, const uint64_t *words, struct live_item *item, struct peet_err *err)
{
    if (t->recorder->code.level == LEVEL_calls)
        return item->loop ? 0 : take_calls(t, words[0], item, err);
    if (t->recorder->code.level == LEVEL_events)
        return 0;
    uint64_t trips = item->loop ? trips_of(item->loop, words + 1) : 0;
    push(&t->filter, words[0], &trips, item->loop != NULL);
    return 0;
}

int filter_put(struct live_thread *t, const uint64_t *words, size_t n, struct peet_err *err)
{
    struct live_filter *f = &t->filter;
    int r = 0;

    if (!f->word)
        f->word = mem_alloc(LIVE_FILTER_WORDS, sizeof *f->word);
    for (size_t i = 0, next; r == 0 && i < n; i = next) {
        struct live_item *item = NULL;
        bool is_event = words[i] & RAW_EVENT;
        int slots = is_event ? peet_event_arity((uint32_t)(words[i] >> 48 & 0x7fff)) : 0;
        if (!is_event && (r = live_find(t, words[i], &item, err)) < 0)
            return r;
        next = i + 1 + (size_t)(is_event ? slots : item->slots);
        if (slots < 0 || next > n)
            return err_set(err, PEET_ERR_FORMAT, "the words of 0x%016" PRIx64 " make no sense", words[i]);
        if (f->words + 2 * RAW_MAX_WORDS > LIVE_FILTER_WORDS && (r = flush(t, err)) < 0)
            return r;
        if (is_event)
            push(f, words[i], words + i + 1, (size_t)slots);
        else
            r = take_block(t, words + i, item, err);
    }
    return r < 0 ? r : flush(t, err);
}
