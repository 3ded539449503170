/* SPDX-License-Identifier: MIT */
/* Lines are used: which of them a cache would have that may keep any (struct solo_recent), and what samples are told of it. */
#ifndef SIM_EXEC_USES_H
#define SIM_EXEC_USES_H

#include "sim/exec/exec_state.h"

int solo_lines_init(struct solo *s, uint64_t most); /* -1: no memory */
void solo_lines_release(struct solo *s);

/* Whether the cache that may keep any lines would have it. */
static inline bool solo_is_recent(const struct solo *s, const struct solo_line *l)
{
    const struct solo_recent *r = &s->recent;

    return l->use >= r->now || (l->use >= r->last && r->rank[l->use - r->last] >= r->gone);
}
static inline bool solo_is_used(const struct solo *s, const struct solo_line *l) /* in this interval */
{
    return l->use >= s->recent.now;
}
/* A line is used that was not in this interval. */
static inline void solo_use_anew(struct solo *s, struct solo_line *l, uint64_t line)
{
    struct solo_recent *r = &s->recent;
    uint64_t before = l->use - r->last;

    r->used[r->next - r->now] = l;
    if (s->is_plain)
        r->used_at[r->next - r->now] = (uint32_t)(line & s->level[0].mask) * (uint32_t)sizeof *s->first;
    l->use = (uint32_t)r->next++;
    if (before < r->ranks) {
        r->again[r->rank[before]] = 1;
        if (r->rank[before] >= r->gone)
            return;
    }
    if (r->ranks) {
        while (r->again[r->gone])
            r->gone++;
        r->gone++;
    }
}
static inline void solo_use_untold(struct solo *s, struct solo_line *l, uint64_t line)
{
    s->recent.told++;
    if (!solo_is_used(s, l))
        solo_use_anew(s, l, line);
}
/* What a sample is told of later, all at once. */
void solo_tell_seen(struct solo *s);
void solo_tell_missed(struct solo *s); /* of sets that it is not told of */
static inline void solo_see(struct solo *s, uint64_t line, uint64_t last, uint64_t what)
{
    if (!(what & SOLO_UNKNOWN) && !solo_is_told(s->choice, line & s->level[0].mask)) {
        if (!(what & SOLO_USES)) {
            s->missed[(uint32_t)what]++;
            s->missed_new += what / SOLO_MAYBE_COLD & 1;
        }
        return;
    }
    if (s->seen_at == s->seen_end)
        solo_tell_seen(s);
    *s->seen_at++ = (struct solo_seen){ line, s->number, last, what };
}
static inline void solo_see_use(struct solo *s, const struct solo_line *l, uint64_t line, uint64_t wait)
{
    if (s->seen)
        solo_see(s, line, solo_used_last(s, l, line), SOLO_USES | wait);
    else if (__builtin_expect(s->watch.use != NULL, 0))
        s->watch.use(s->watch.context, s, line, s->number, wait);
}
static inline void solo_use(struct solo *s, struct solo_line *l, uint64_t line)
{
    solo_see_use(s, l, line, s->recent.since - s->recent.before);
    solo_use_untold(s, l, line);
}
/* Behind all uses of a reference: perhaps it is time for another interval. */
void solo_end_interval(struct solo *s);
void solo_tell_again(struct solo *s);
static inline void solo_uses_end(struct solo *s)
{
    const struct solo_recent *r = &s->recent;

    if (__builtin_expect(r->next >= r->end, 0))
        solo_end_interval(s);
    else if (__builtin_expect(s->watch.use != NULL, 0) && r->told >= r->tell)
        solo_tell_again(s);
}

#endif
