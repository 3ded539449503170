/* SPDX-License-Identifier: MIT */
/* Less than the program says: of its words, those go on that the user asked for.
 *
 * Where blocks are left out, a gap event tells how much that was, in front of whatever comes next. Abstract events are never left
 * out. Blocks that find %rsp in a register of the trace need it right: so the effects of blocks that are left out are followed, and
 * the register is set anew in front of the first one that asks for it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/live/live.h"

bool filter_is_wanted(const struct producer_state *s)
{
    return s->code.layout.strips || s->config->regions.count;
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

/* ---- what is left out ---- */

static void tell_gap(struct live_filter *f)
{
    if (f->instructions)
        push(f, raw_event_key(PEET_EV_gap, 0), (uint64_t[]){ f->instructions, f->references }, 2);
    f->instructions = f->references = 0;
}

static uint64_t references_of(const struct live_item *item, const uint64_t *slots)
{
    uint64_t n = 0;

    if (!item->has_strings)
        return item->node->operands;
    for (const struct x86_node *i = item->node; i; i = i->parent)
        for (unsigned k = 0; k < i->own_operands; k++) {
            const struct peet_operand *o = &i->operand[k];
            uint64_t elements = o->size_src >= PEET_SRC_SLOT ? slots[o->size_src - PEET_SRC_SLOT] : 1;
            n += o->size_src ? (elements * o->size + PEET_MAX_SIZE - 1) / PEET_MAX_SIZE : 1;
        }
    return n;
}

static void leave_out(struct live_filter *f, const struct live_item *item, const uint64_t *slots)
{
    uint64_t trips = item->loop ? trips_of(item->loop, slots) : 1;

    f->instructions += item->node->depth * trips;
    f->references += references_of(item, slots) * trips;
}

/* What a block does to %rsp, as far as the trace knows it; a loop does nothing. */
static void follow_stack(struct live_filter *f, const struct live_item *item, const uint64_t *slots)
{
    const struct x86_track *rsp = &item->node->track[X86_RSP];

    if (item->loop || !rsp->known)
        return;
    if (rsp->source >= PEET_SRC_SLOT)
        f->stack = slots[rsp->source - PEET_SRC_SLOT] + (uint64_t)rsp->add;
    else if (rsp->source == PEET_SRC_REGISTER + X86_STACK_REGISTER)
        f->stack += (uint64_t)rsp->add;
}

/* ---- regions ---- */

enum { REGION_KNOWN = 1, REGION_WANTED = 2, REGION_BEGAN = 4 };

static bool is_named(const struct producer_state *s, const char *region)
{
    for (size_t i = 0; i < s->config->regions.count; i++)
        if (!strncmp(s->config->regions.item[i], region, RAW_STRING_BYTES - 1))
            return true;
    return false;
}

/* Whether the region of a name was asked for. */
static bool is_wanted(struct producer_state *s, uint64_t name, unsigned also)
{
    if (name == 0 || name > RAW_STRINGS)
        return false;
    uint8_t *known = &s->region[name - 1];
    if (!*known)
        *known = REGION_KNOWN | (is_named(s, s->header->string[name - 1]) ? REGION_WANTED : 0);
    *known |= (uint8_t)also;
    return *known & REGION_WANTED;
}

static void take_event(struct live_thread *t, const uint64_t *words, size_t slots)
{
    struct live_filter *f = &t->filter;
    unsigned kind = (unsigned)(words[0] >> 48 & 0x7fff);

    tell_gap(f);
    push(f, words[0], words + 1, slots);
    if (kind == PEET_EV_region_begin)
        f->inside += is_wanted(t->recorder, words[1], REGION_BEGAN);
    else if (kind == PEET_EV_region_end && f->inside)
        f->inside -= is_wanted(t->recorder, words[1], 0);
}

void filter_warn(struct producer_state *s)
{
    char *there = NULL;

    for (uint32_t i = 0; i < RAW_STRINGS; i++) {
        if (!(s->region[i] & REGION_BEGAN))
            continue;
        char *more = there ? mem_format("%s, %s", there, s->header->string[i]) : mem_string(s->header->string[i]);
        free(there);
        there = more;
    }
    for (size_t i = 0; i < s->config->regions.count; i++) {
        bool began = false;
        for (uint32_t k = 0; k < RAW_STRINGS; k++)
            began |= s->region[k] & REGION_BEGAN
                     && !strncmp(s->config->regions.item[i], s->header->string[k], RAW_STRING_BYTES - 1);
        if (!began)
            recording_warn(s->ret, "there was no region '%s'; %s%s", s->config->regions.item[i],
                           there ? "those that were: " : "the program has named none", there ? there : "");
    }
    free(there);
}

/* ---- words ---- */

static int take_calls(struct live_thread *t, uint64_t key, struct live_item *item, struct peet_err *err)
{
    int r = item->is_defined ? 0 : code_define(&t->recorder->code, t->last, key, item, err);

    if (r == 0 && (item->entry || item->item))
        tell_gap(&t->filter);
    if (r == 0 && item->entry)
        push(&t->filter, key | LIVE_ENTRY, NULL, 0);
    if (r == 0 && item->item)
        push(&t->filter, key | LIVE_LAST, NULL, 0);
    return r;
}

static void take_all(struct live_filter *f, const uint64_t *words, const struct live_item *item)
{
    tell_gap(f);
    if (item->is_carried && f->stack != f->told)
        push(f, raw_event_key(PEET_EV_set_register, 0), (uint64_t[]){ X86_STACK_REGISTER, f->stack }, 2);
    push(f, words[0], words + 1, item->slots);
    follow_stack(f, item, words + 1);
    f->told = f->stack;
}

static int take_block(struct live_thread *t, const uint64_t *words, struct live_item *item, struct peet_err *err)
{
    const struct producer_state *s = t->recorder;
    struct live_filter *f = &t->filter;
    enum level level = s->code.level;

    if (level == LEVEL_events)
        return 0;
    if (s->config->regions.count && !f->inside) {
        leave_out(f, item, words + 1);
        follow_stack(f, item, words + 1);
    } else if (level == LEVEL_calls) {
        return item->loop ? 0 : take_calls(t, words[0], item, err);
    } else if (level == LEVEL_blocks) {
        uint64_t trips = item->loop ? trips_of(item->loop, words + 1) : 0;
        tell_gap(f);
        push(f, words[0], &trips, item->loop != NULL);
    } else {
        take_all(f, words, item);
    }
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
            take_event(t, words + i, (size_t)slots);
        else
            r = take_block(t, words + i, item, err);
    }
    return r < 0 ? r : flush(t, err);
}

int filter_end(struct live_thread *t, struct peet_err *err)
{
    if (!t->filter.word)
        return 0;
    tell_gap(&t->filter);
    return flush(t, err);
}
