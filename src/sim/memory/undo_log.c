/* SPDX-License-Identifier: MIT */
#include "sim/memory/core_local.h"

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
           && (first->mask || first->sets == 1) && (second->mask || second->sets == 1)
           && second->sets * second->ways <= UINT32_MAX;
}

int near_init(struct memory *m, struct processor *p)
{
    const struct cache *first = &p->level[0], *tlb = &p->tlb;
    bool knows_pages = tlb->entry && tlb->replacement->is_calm && (tlb->mask || tlb->sets == 1);

    p->front.marks = calloc(2 * MEMORY_MARKS, sizeof *p->front.marks);
    p->filled = calloc(first->sets + 1, sizeof *p->filled);
    if (first->sets)
        p->front.top = p->top = calloc(first->sets, sizeof *p->top);
    if (tlb->entry) {
        p->front.page = p->page = calloc(tlb->sets, sizeof *p->page);
        p->front.page_mask = tlb->mask;
        p->front.page_shift = tlb->shift;
        for (uint64_t i = 0; p->page && i < tlb->sets; i++)
            p->page[i] = UINT64_MAX;
        if (!knows_pages)
            memset(p->front.calm, 0, sizeof p->front.calm);
    }
    if (can_bring(m, p))
        p->behind = calloc(first->sets * first->ways, sizeof *p->behind);
    return p->front.marks && p->filled && (p->top || !first->sets) && (p->page || !tlb->entry)
                   && (p->behind || !can_bring(m, p))
               ? 0
               : -1;
}

void near_release(struct processor *p)
{
    free(p->front.marks);
    free(p->top);
    free(p->page);
    free(p->filled);
    free(p->behind);
}

void memory_lead_begin(struct memory *m, unsigned cpu)
{
    struct processor *p = &m->cpu[cpu];
    struct memory_front *f = &p->front;

    f->kept = 0;
    if (++f->lead > 0)
        return;
    memset(f->marks, 0, 2 * MEMORY_MARKS * sizeof *f->marks); /* the numbers of leads begin anew */
    memset(p->filled, 0, (p->level[0].sets + 1) * sizeof *p->filled);
    f->lead = 1;
}

bool near_tell(struct memory *m, struct processor *p, const struct part *part, bool keep, bool *ret_watched)
{
    struct history *h = history_at(&m->histories, part->line);
    struct line_bytes b = bytes_of(m, part);
    uint32_t first = b.first / 64, end = (b.first + b.count + 63) / 64;

    if (keep && p->front.kept + KEPT_BY_ONE + (size_t)m->cpus * (end - first) > KEPT)
        return false;
    for (uint64_t left = h->invalidated & ~((uint64_t)1 << p->number); keep && left; left &= left - 1) {
        uint64_t *mask = history_mask(&m->histories, h, (unsigned)__builtin_ctzll(left));
        for (uint32_t w = first; w < end; w++)
            if (line_bytes_in(b, w) & ~mask[w])
                near_keep(p, &mask[w], COUNTED_NOTHING);
    }
    history_write(&m->histories, h, p->number, b);
    *ret_watched = history_is_watched(&m->histories, h, p->number);
    return true;
}

/* A reference that is not smooth; its entry in the first level is given, or NULL. */
static __attribute__((noinline)) enum near lead_other(struct memory *m, struct processor *p, uint64_t *e,
                                                      const struct part *part, enum peet_kind kind)
{
    uint64_t line = part->line, *behind;
    enum near n = NEAR_NOT;

    if (e)
        n = near_write(m, p, e, part, kind, true);
    else if (p->behind && (behind = cache_find_in(&p->level[1], line & p->level[1].mask, line)))
        n = near_bring(m, p, line, behind, kind, true);
    if (n != NEAR_NOT)
        memory_mark(&p->front, line, kind);
    return n;
}

enum near memory_lead(struct memory *m, struct memory_front *f, uint64_t addr, uint64_t size, enum peet_kind kind)
{
    struct processor *p = processor_of(f);
    uint64_t line = addr >> f->shift, set, *e;

    if ((addr & (f->line - 1)) + size > f->line || f->kept + KEPT_BY_ONE > KEPT)
        return NEAR_NOT;
    if (!near_find_smooth(p, line, kind, &set, &e))
        return lead_other(m, p, e, &(struct part){ line, addr, size }, kind);
    near_keep_order(p, set);
    near_touch(p, set, e);
    memory_mark(f, line, kind);
    return NEAR_SMOOTH;
}

void memory_lead_back(struct memory_front *f, size_t kept)
{
    struct processor *p = processor_of(f);
    const struct cache *first = &p->level[0];

    while (f->kept > kept) {
        const struct kept *k = &p->kept[--f->kept];
        uint64_t *word = (uint64_t *)(k->where & ~(uint64_t)COUNTED_MASK);
        unsigned counted = k->where & COUNTED_MASK;
        if (counted == COUNTED_RECENT) {
            first->recent[word - first->order] = k->old;
            near_refresh(p, (uint64_t)(word - first->order));
            continue;
        }
        *word = k->old;
        if (counted >= COUNTED_BEHIND) {
            uint64_t at = (uint64_t)(word - first->entry);
            cache_set_tag(first, at / first->ways, (unsigned)(at % first->ways), k->old >> CACHE_STATE_BITS);
            near_refresh(p, at / first->ways);
            f->behind[counted - COUNTED_BEHIND + PEET_LOAD]--;
        } else if (counted >= COUNTED_SILENT) {
            near_refresh(p, (uint64_t)(word - first->entry) / first->ways);
            f->silent[counted - COUNTED_SILENT + PEET_STORE]--;
        } else if (((uintptr_t)word - (uintptr_t)first->order) / sizeof *word < first->sets) {
            near_refresh(p, (uint64_t)(word - first->order));
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
