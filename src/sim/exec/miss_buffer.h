/* SPDX-License-Identifier: MIT */
/* What the watcher is told, and what is only counted until then (tell.c). */
#ifndef SIM_EXEC_MISS_BUFFER_H
#define SIM_EXEC_MISS_BUFFER_H

#include "sim/exec/exec_state.h"

/* What the stretch was told is of another path, or of other data. */
void solo_renew(struct solo *s, struct solo_stretch *x);
/* Whether it is known to which data a site refers there. */
static inline bool solo_is_located(const struct solo *s, struct solo_site *site, uint64_t addr)
{
    const struct solo_data *d = &site->data;

    return site->has_cell && addr - d->start < d->end - d->start
           && change_log_spares(s->watch.changes, &site->located, d->start, d->end);
}
/* The data to which a site refers; and the sites of all groups that have the base of that one. */
void solo_locate_site(struct solo *s, struct solo_stretch *x, struct solo_site *site, uint64_t addr);
void solo_locate(struct solo *s, struct solo_stretch *x, struct solo_group *owner, uint64_t base);
/* References that were alike: as in struct solo_met. */
void solo_meet(struct solo *s, uint64_t who, uint64_t how, uint64_t offset, uint64_t count, uint64_t stall);
void solo_tell_memo(struct solo *s, const struct solo_site *site, struct solo_memo *m);
void solo_tell_moved(struct solo *s);
/* The window of time ends before that reference. */
void solo_end_window(struct solo *s, uint64_t reference);

static inline uint64_t solo_how(unsigned level, unsigned cause, bool was_recent, bool is_upgrade)
{
    return level | cause << 8 | (unsigned)was_recent << 16 | (unsigned)is_upgrade << 24;
}

/* Those of the window that this reference is in; perhaps it is the first one there. */
static inline void solo_see_window(struct solo *s, uint64_t reference, uint64_t misses, uint64_t stall)
{
    if (__builtin_expect(reference >= s->window_end, 0))
        solo_end_window(s, reference);
    s->window_misses += misses;
    s->window_stall += stall;
}

static inline uint64_t solo_offset_in(const struct solo_data *d, uint64_t addr)
{
    return d->stride ? (addr - d->origin) % d->stride : UINT64_MAX;
}

/* Puts the offset of a site into what a memo is of, if it has one. False: it is too far away for that. The remainder by the stride of what has 32 bits is its part of 2^64, times the
 * stride (D. Lemire and others, 2019). */
static inline bool solo_memo_offset(const struct solo_site *site, uint64_t base, uint64_t *what)
{
    const struct solo_data *d = &site->data;
    uint64_t distance = base + (uint64_t)site->disp - d->origin;

    if (d->stride == 0)
        return true;
    if (distance > UINT32_MAX || d->stride > SOLO_MOST_STRIDE)
        return false;
    uint64_t offset = (uint64_t)((unsigned __int128)(site->inverse * distance) * d->stride >> 64);
    *what |= (offset + 1) << SOLO_OFFSET_AT;
    return true;
}

void solo_tell_far(struct solo *s, const struct solo_site *site, struct solo_far *f);
/* A reference that no cache could answer. */
static inline void solo_count_far(struct solo *s, struct solo_stretch *x, struct solo_site *site, uint64_t what,
                                  uint64_t stall)
{
    struct solo_leaf *part = &x->path->part[site->part];
    struct solo_far *f = &site->far[solo_memo_of(what) % SOLO_FAR];

    if (__builtin_expect(f->what != what, 0)) {
        solo_tell_far(s, site, f);
        f->what = what;
    }
    site->has_far = true;
    f->count++;
    f->stall += stall;
    solo_see_window(s, solo_references(s), 1, stall);
    part->misses++;
    part->stall += stall;
}

/* A reference that waits as long as all that memos count. */
static inline void solo_count_memo(struct solo *s, struct solo_stretch *x, struct solo_site *site, uint64_t what)
{
    unsigned number = solo_memo_of(what);
    struct solo_memo *memo = &site->memo[number];

    if (__builtin_expect(memo->what != what, 0)) {
        solo_tell_memo(s, site, memo);
        memo->what = what;
        site->memos |= UINT32_C(1) << number;
    }
    memo->count++;
    if (__builtin_expect(solo_references(s) >= s->window_end, 0))
        solo_end_window(s, solo_references(s));
    s->window_lean++;
    x->path->part[site->part].lean++;
    s->time.clock += s->lean_stall;
}

#endif
