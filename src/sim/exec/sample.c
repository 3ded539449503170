/* SPDX-License-Identifier: MIT */
/* Windows of samples: between them references are skipped, so that the levels are empty where a window begins. */
#include <assert.h>

#include "sim/exec/uses.h"

/* ---- caches ---- */

static void forget_entry(struct exec_blocks *s, unsigned level, uint32_t e)
{
    struct exec_level *l = &s->cache.level[level];
    struct exec_line *line = level ? l->info[e] : s->cache.first[e].info;

    if (!line)
        return;
    if (level == 0) {
        line->stamp = s->cache.first[e].stamp;
        s->cache.first[e] = (struct l1_entry){ { NO_LINE, NO_LINE }, 0, NULL };
    } else {
        if (l->stamp) /* of ways that are all empty, any order will do */
            l->stamp[e] = 0;
        l->info[e] = NULL;
        line->entry[level] = 0;
    }
    line->remover = REMOVER_UNKNOWN;
    l->line[e] = NO_LINE;
    l->state[e] = 0;
}

uint64_t blocks_last_use(struct exec_blocks *s, uint64_t line)
{
    return line_last_use(s, exec_line_at(&s->memory.lines, line), line);
}

void blocks_invalidate_all(struct exec_blocks *s)
{
    sample_log_flush(s);
    if (s->cache.level[0].filled)
        sample_log_report_misses(s);
    s->log.new_flag = SAMPLE_MAYBE_COLD;
    for (unsigned i = 0; i < s->cache.levels; i++) {
        struct exec_level *l = &s->cache.level[i];
        for (uint32_t k = 0; k < l->filled; k++)
            forget_entry(s, i, l->full[k]);
        l->filled = 0;
    }
}

void blocks_begin_sample(struct exec_blocks *s)
{
    if (s->sample.log)
        s->log.sets = s->observer.choose_sets(s->observer.self);
}

/* ---- words ---- */

static void set_border(struct exec_blocks *s)
{
    const struct source_words *w = s->sample.words;

    s->sample.border = UINT64_MAX;
    if (w->advance && s->number > s->recent.since)
        epoch_shadow_note_again(s);
    if (w->advance && w->is_on)
        s->sample.border = blocks_references(s) + w->left;
    if (w->advance && !w->is_on) {
        s->sample.border = 0;
        s->sample.pass_left = w->left;
    }
}

static void sample_account(struct exec_blocks *s)
{
    s->sample.words->used += blocks_references(s) - s->sample.used_until;
    s->sample.used_until = blocks_references(s);
}

void blocks_begin_words(struct exec_blocks *s, struct source_words *w)
{
    s->sample.words = w;
    s->sample.used_until = blocks_references(s);
    set_border(s);
}

void blocks_cross_border(struct exec_blocks *s)
{
    static const struct peet_event GAP = { .kind = PEET_EV_gap }; /* that is here alone */
    struct source_words *w = s->sample.words;
    bool was_on = w->is_on, has_passed = w->passed > 0;

    sample_account(s);
    w->advance(w);
    if (w->is_on && !was_on && has_passed) { /* the effect of skipped references on the levels is not known */
        blocks_invalidate_all(s);
        s->observer.event(s->observer.self, s->binding.thread, &GAP);
        blocks_begin_sample(s);
    }
    set_border(s);
}

void blocks_take_used(struct exec_blocks *s, uint32_t thread, struct source_words *w)
{
    if (!w->advance || !(w->used || w->passed))
        return;
    s->sample.words = w;
    s->binding.thread = thread;
    s->sample.used_until = blocks_references(s);
    blocks_cross_border(s);
}

void blocks_end_words(struct exec_blocks *s)
{
    if (s->sample.words->advance)
        blocks_cross_border(s);
}

void blocks_skip(struct exec_blocks *s, uint64_t references)
{
    s->sample.words->passed += references;
    s->sample.pass_left -= references < s->sample.pass_left ? references : s->sample.pass_left;
}

void blocks_skip_varying(struct exec_blocks *s, const struct peet_block *b)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < b->operands; i++)
        n += (operand_bytes(&b->operand[i], s->src) + PEET_MAX_SIZE - 1) / PEET_MAX_SIZE;
    blocks_skip(s, n);
}

uint64_t blocks_iterations_to_border(const struct exec_blocks *s, const struct tblock *x, uint64_t iterations)
{
    uint64_t left = blocks_skips(s) ? s->sample.pass_left : s->sample.border - blocks_references(s);
    uint64_t most = x->operands ? (left + x->operands - 1) / x->operands : iterations;

    return most == 0 ? 1 : most < iterations ? most : iterations;
}
