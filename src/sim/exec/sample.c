/* SPDX-License-Identifier: MIT */
/* Samples: parts of what a thread does are passed over, and nobody knows what caches have where the next one begins. */
#include <assert.h>

#include "sim/exec/uses.h"

/* ---- caches ---- */

static void forget_entry(struct solo *s, unsigned level, uint32_t e)
{
    struct solo_level *l = &s->level[level];
    struct solo_line *line = level ? l->record[e] : s->first[e].record;

    if (!line)
        return;
    if (level == 0) {
        line->stamp = s->first[e].stamp;
        s->first[e] = (struct solo_entry){ { SOLO_NONE, SOLO_NONE }, 0, NULL };
    } else {
        if (l->stamp) /* of ways that are all empty, any order will do */
            l->stamp[e] = 0;
        l->record[e] = NULL;
        line->entry[level] = 0;
    }
    line->lost = SOLO_LOST;
    l->line[e] = SOLO_NONE;
    l->state[e] = 0;
}

uint64_t solo_last_use(struct solo *s, uint64_t line)
{
    return solo_used_last(s, solo_line_at(&s->lines, line), line);
}

void solo_forget(struct solo *s)
{
    solo_tell_seen(s);
    if (s->level[0].filled)
        solo_tell_missed(s);
    s->seen_new = SOLO_MAYBE_COLD;
    for (unsigned i = 0; i < s->levels; i++) {
        struct solo_level *l = &s->level[i];
        for (uint32_t k = 0; k < l->filled; k++)
            forget_entry(s, i, l->full[k]);
        l->filled = 0;
    }
}

void solo_begin_sample(struct solo *s)
{
    if (s->seen)
        s->choice = s->watch.choose(s->watch.context);
}

/* ---- words ---- */

static void set_border(struct solo *s)
{
    const struct source_words *w = s->words;

    s->border = UINT64_MAX;
    if (w->turn && s->number > s->recent.since)
        solo_tell_again(s);
    if (w->turn && w->is_on)
        s->border = solo_references(s) + w->left;
    if (w->turn && !w->is_on) {
        s->border = 0;
        s->pass_left = w->left;
    }
}

static void account(struct solo *s)
{
    s->words->used += solo_references(s) - s->mark;
    s->mark = solo_references(s);
}

void solo_begin_words(struct solo *s, struct source_words *w)
{
    s->words = w;
    s->mark = solo_references(s);
    set_border(s);
}

void solo_turn(struct solo *s)
{
    static const struct peet_event GAP = { .kind = PEET_EV_gap }; /* that is here alone */
    struct source_words *w = s->words;
    bool was_on = w->is_on, has_passed = w->passed > 0;

    account(s);
    w->turn(w);
    if (w->is_on && !was_on && has_passed) { /* of what was passed over, nobody knows what it did */
        solo_forget(s);
        s->watch.event(s->watch.context, s->thread, &GAP);
        solo_begin_sample(s);
    }
    set_border(s);
}

void solo_see_used(struct solo *s, uint32_t thread, struct source_words *w)
{
    if (!w->turn || !(w->used || w->passed))
        return;
    s->words = w;
    s->thread = thread;
    s->mark = solo_references(s);
    solo_turn(s);
}

void solo_end_words(struct solo *s)
{
    if (s->words->turn)
        solo_turn(s);
}

void solo_pass(struct solo *s, uint64_t references)
{
    s->words->passed += references;
    s->pass_left -= references < s->pass_left ? references : s->pass_left;
}

void solo_pass_varying(struct solo *s, const struct peet_block *b)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < b->operands; i++)
        n += (operand_bytes(&b->operand[i], s->src) + PEET_MAX_SIZE - 1) / PEET_MAX_SIZE;
    solo_pass(s, n);
}

uint64_t solo_trips_now(const struct solo *s, const struct solo_stretch *x, uint64_t trips)
{
    uint64_t left = solo_passes(s) ? s->pass_left : s->border - solo_references(s);
    uint64_t most = x->sites ? (left + x->sites - 1) / x->sites : trips;

    return most == 0 ? 1 : most < trips ? most : trips;
}
