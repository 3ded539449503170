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

    p->front.marks = calloc(MEMORY_MARKS, sizeof *p->front.marks);
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
    memset(f->marks, 0, MEMORY_MARKS * sizeof *f->marks); /* the numbers of leads begin anew */
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

/* What goes out of the first level is marked, too: it is in another state where it goes. */
static enum near bring(struct memory *m, struct processor *p, uint64_t line, enum peet_kind kind)
{
    size_t changed = p->front.changed;
    enum near n = p->behind ? near_bring(m, p, line, cache_find(&p->level[1], line), kind, true) : NEAR_NOT;

    if (n == NEAR_NOT)
        return n;
    p->filled[line & p->level[0].mask] = p->front.lead;
    memory_mark(&p->front, p->change[changed].old >> CACHE_STATE_BITS);
    return n;
}

/* A reference that is not smooth; its entry in the first level is given, or NULL. */
static __attribute__((noinline)) enum near lead_other(struct memory *m, struct processor *p, uint64_t *e,
                                                      const struct part *part, enum peet_kind kind)
{
    enum near n = e ? near_write(m, p, e, part, kind, true) : bring(m, p, part->line, kind);

    if (n != NEAR_NOT)
        memory_mark(&p->front, part->line);
    return n;
}

enum near memory_lead(struct memory *m, unsigned cpu, uint64_t addr, uint64_t size, enum peet_kind kind)
{
    struct processor *p = &m->cpu[cpu];
    struct memory_front *f = &p->front;
    struct cache *c = &p->level[0];
    uint64_t line = addr >> c->shift, *e = cache_find(c, line);

    if ((addr + size - 1) >> c->shift != line || f->touches + 2 > TOUCHES || f->changed + 2 > CHANGES)
        return NEAR_NOT;
    if (!e || !(f->fast[kind] >> cache_state(*e) & 1))
        return lead_other(m, p, e, &(struct part){ line, addr, size }, kind);
    near_keep_order(p, 0, cache_set(c, line));
    cache_touch(c, e);
    memory_mark(f, line);
    return NEAR_SMOOTH;
}

void memory_lead_back(struct memory *m, unsigned cpu, size_t touches, size_t changed)
{
    struct processor *p = &m->cpu[cpu];
    struct memory_front *f = &p->front;

    while (f->touches > touches) {
        const struct touch *t = &p->touch[--f->touches];
        p->level[t->level].order[t->set] = t->order;
        p->level[t->level].recent[t->set] = t->recent;
    }
    while (f->changed > changed) {
        const struct change *c = &p->change[--f->changed];
        *c->entry = c->old;
        f->silent[c->kind] -= c->as == NEAR_SILENT;
        f->behind[c->kind] -= c->as == NEAR_BEHIND;
    }
}

bool memory_lead_has(const struct memory *m, unsigned cpu, uint64_t line)
{
    const struct processor *p = &m->cpu[cpu];
    const struct cache *c = &p->level[0];

    /* A line that goes makes room for one that came. */
    return p->front.marks[line % MEMORY_MARKS] == p->front.lead
           || (p->filled[cache_set(c, line)] == p->front.lead && cache_find(c, line));
}
