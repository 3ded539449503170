/* SPDX-License-Identifier: MIT */
#include "sim/near.h"

#include <stdlib.h>
#include <string.h>

bool memory_may_lead(const struct memory *m)
{
    const struct cache *c = &m->cpu[0].level[0];

    return m->levels > 0 && !m->config.tlb.entries && c->replacement->is_calm && c->sets <= UINT32_MAX
           && (c->is_ranked || !c->replacement->moves);
}

bool memory_keeps_order(const struct memory *m)
{
    return m->levels > 0 && m->cpu[0].level[0].is_ranked;
}

bool memory_has(const struct memory *m, unsigned cpu, uint64_t line)
{
    return cache_find(&m->cpu[cpu].level[0], line) != NULL;
}

/* Whether lines can go to and fro between the two first levels. */
static bool can_bring(const struct memory *m, const struct processor *p)
{
    const struct cache *first = &p->level[0], *second = &p->level[1];

    return memory_may_lead(m) && m->private_levels == 2 && first->is_ranked && second->is_ranked
           && (first->mask || first->sets == 1) && second->sets * second->ways <= UINT32_MAX;
}

int near_init(struct memory *m, struct processor *p)
{
    const struct cache *first = &p->level[0];

    p->front.marks = calloc(2 * MEMORY_MARKS, sizeof *p->front.marks);
    p->filled = calloc(first->sets + 1, sizeof *p->filled);
    if (can_bring(m, p))
        p->behind = calloc(first->sets * first->ways, sizeof *p->behind);
    return p->front.marks && p->filled && (p->behind || !can_bring(m, p)) ? 0 : -1;
}

void near_release(struct processor *p)
{
    free(p->front.marks);
    free(p->filled);
    free(p->behind);
}

void memory_lead_begin(struct memory *m, unsigned cpu)
{
    struct processor *p = &m->cpu[cpu];
    struct memory_front *f = &p->front;

    f->touches = f->changed = 0;
    if (++f->lead > 0)
        return;
    memset(f->marks, 0, 2 * MEMORY_MARKS * sizeof *f->marks); /* the numbers of leads begin anew */
    memset(p->filled, 0, (p->level[0].sets + 1) * sizeof *p->filled);
    f->lead = 1;
}

bool near_tell(struct memory *m, struct processor *p, const struct part *part, bool keep, bool *ret_watched)
{
    struct history *h = history_at(&m->histories, part->line);
    uint64_t words = words_of(m, part->addr, part->size);

    if (keep && p->front.changed + m->cpus > CHANGES)
        return false;
    for (uint64_t left = h->invalidated & ~((uint64_t)1 << p->number); keep && left; left &= left - 1) {
        uint64_t *written = &h->written[__builtin_ctzll(left)];
        if (words & ~*written)
            near_keep_entry(p, written, PEET_STORE, NEAR_NOT);
    }
    history_write(h, p->number, words);
    *ret_watched = history_is_watched(&m->histories, h, p->number);
    return true;
}

/* The line is nowhere here: before long it comes, and another one of its set goes. */
static void expect(const struct memory *m, const struct processor *p, uint64_t line)
{
    const struct cache *last = &p->level[m->private_levels - 1];
    uint64_t set = cache_set(last, line);

    history_expect(&m->histories, line);
    if (last->is_ranked && last->is_full[set])
        history_expect(&m->histories, last->entry[set * last->ways + cache_oldest(last, set)] >> CACHE_STATE_BITS);
}

enum near memory_lead(struct memory *m, unsigned cpu, uint64_t addr, uint64_t size, enum peet_kind kind)
{
    struct processor *p = &m->cpu[cpu];
    struct memory_front *f = &p->front;
    struct cache *c = &p->level[0];
    uint64_t line = addr >> c->shift, *e = cache_find(c, line);
    enum near n = NEAR_SMOOTH;

    if ((addr + size - 1) >> c->shift != line || f->touches + 2 > TOUCHES || f->changed + 2 > CHANGES)
        return NEAR_NOT;
    if (!e) {
        uint64_t *behind = p->behind ? cache_find(&p->level[1], line) : NULL;
        n = behind ? near_bring(m, p, line, behind, kind, true) : NEAR_NOT;
        if (!behind && 0)
            expect(m, p, line);
    } else if (f->fast[kind] >> cache_state(*e) & 1) {
        near_keep_order(p, 0, cache_set(c, line));
        cache_touch(c, e);
    } else {
        n = near_write(m, p, e, &(struct part){ line, addr, size }, kind, true);
    }
    if (n != NEAR_NOT)
        memory_mark(f, line, kind);
    return n;
}

void memory_lead_back(struct memory *m, unsigned cpu, size_t touches, size_t changed)
{
    struct processor *p = &m->cpu[cpu];
    struct memory_front *f = &p->front;
    const struct cache *first = &p->level[0];

    while (f->touches > touches) {
        const struct touch *t = &p->touch[--f->touches];
        p->level[t->level].order[t->set] = t->order;
        p->level[t->level].recent[t->set] = t->recent;
    }
    while (f->changed > changed) {
        const struct change *c = &p->change[--f->changed];
        *c->entry = c->old;
        f->silent[c->kind] -= c->as == NEAR_SILENT;
        if (c->as == NEAR_BEHIND) {
            uint64_t line = c->old >> CACHE_STATE_BITS, set = cache_set(first, line);
            cache_set_tag(first, set, (unsigned)(c->entry - (first->entry + set * first->ways)), line);
            f->behind[c->kind]--;
        }
    }
}

bool memory_lead_has(const struct memory *m, unsigned cpu, uint64_t line, bool reads)
{
    const struct processor *p = &m->cpu[cpu];
    const struct cache *c = &p->level[0];
    const uint16_t *marks = p->front.marks + line % MEMORY_MARKS;

    if (reads)
        return marks[MEMORY_MARKS] == p->front.lead;
    /* A line that goes makes room for one that came. */
    return marks[0] == p->front.lead || marks[MEMORY_MARKS] == p->front.lead
           || (p->filled[cache_set(c, line)] == p->front.lead && cache_find(c, line));
}
