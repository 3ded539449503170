/* SPDX-License-Identifier: MIT */
/* Uses of lines: the shadow directory by epochs, and the sample log. */
#ifndef SIM_EXEC_USES_H
#define SIM_EXEC_USES_H

#include "sim/exec/exec_state.h"

int exec_lines_init(struct exec_blocks *s, uint64_t most); /* -1: no memory */
void exec_lines_release(struct exec_blocks *s);

/* Whether the shadow directory has the line. */
static inline bool epoch_shadow_has(const struct exec_blocks *s, const struct exec_line *l)
{
    const struct epoch_shadow *r = &s->recent;

    return l->use >= r->now || (l->use >= r->last && r->rank[l->use - r->last] >= r->evicted_below);
}
static inline bool line_used_in_epoch(const struct exec_blocks *s, const struct exec_line *l) /* in the current epoch */
{
    return l->use >= s->recent.now;
}
/* Uses a line for the first time in the epoch. */
static inline void epoch_shadow_first_use(struct exec_blocks *s, struct exec_line *l, uint64_t line)
{
    struct epoch_shadow *r = &s->recent;
    uint64_t before = l->use - r->last;

    r->used[r->next - r->now] = l;
    if (s->cache.state_from_tags)
        r->used_at[r->next - r->now] = (uint32_t)(line & s->cache.level[0].mask) * (uint32_t)sizeof *s->cache.first;
    l->use = (uint32_t)r->next++;
    if (before < r->ranks) {
        r->used_again[r->rank[before]] = 1;
        if (r->rank[before] >= r->evicted_below)
            return;
    }
    if (r->ranks) {
        while (r->used_again[r->evicted_below])
            r->evicted_below++;
        r->evicted_below++;
    }
}
/* Notes a use of a line in the shadow directory, and not in the sample log. */
static inline void epoch_shadow_note(struct exec_blocks *s, struct exec_line *l, uint64_t line)
{
    s->recent.noted_uses++;
    if (!line_used_in_epoch(s, l))
        epoch_shadow_first_use(s, l, line);
}
/* The sample log: entries are reported together. */
void sample_log_flush(struct exec_blocks *s);
void sample_log_report_misses(struct exec_blocks *s); /* of sets that are not logged */
static inline void sample_log_add(struct exec_blocks *s, uint64_t line, uint64_t last, uint64_t what)
{
    if (!(what & SAMPLE_UNKNOWN) && !logged_sets_has(s->log.sets, line & s->cache.level[0].mask)) {
        if (!(what & SAMPLE_USE)) {
            s->log.missed[(uint32_t)what]++;
            s->log.missed_new += what / SAMPLE_MAYBE_COLD & 1;
        }
        return;
    }
    if (s->log.at == s->log.end)
        sample_log_flush(s);
    *s->log.at++ = (struct sample_entry){ line, s->number, last, what };
}
static inline void sample_log_add_use(struct exec_blocks *s, const struct exec_line *l, uint64_t line, uint64_t wait)
{
    if (s->sample.log)
        sample_log_add(s, line, line_last_use(s, l, line), SAMPLE_USE | wait);
    else if (__builtin_expect(s->observer.use != NULL, 0))
        s->observer.use(s->observer.self, s, line, s->number, wait);
}
/* Notes the first use of a line since touch `since`: in the shadow directory, and for samples. */
static inline void epoch_shadow_use(struct exec_blocks *s, struct exec_line *l, uint64_t line)
{
    sample_log_add_use(s, l, line, s->recent.since - s->recent.before);
    epoch_shadow_note(s, l, line);
}
/* After all uses of a reference: begins the next epoch if this one is full. */
void epoch_shadow_advance(struct exec_blocks *s);
/* From now on, the next use of each line is noted. */
void epoch_shadow_note_again(struct exec_blocks *s);
static inline void epoch_shadow_end_access(struct exec_blocks *s)
{
    const struct epoch_shadow *r = &s->recent;

    if (__builtin_expect(r->next >= r->end, 0))
        epoch_shadow_advance(s);
    else if (__builtin_expect(s->observer.use != NULL, 0) && r->noted_uses >= r->most_noted)
        epoch_shadow_note_again(s);
}

#endif
