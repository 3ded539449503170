/* SPDX-License-Identifier: MIT */
#include "sim/memory/core_caches.h"

#include <stdlib.h>
#include <string.h>

bool hierarchy_can_undo(const struct hierarchy *h)
{
    const struct cache *c = &h->cpu[0].level[0];

    return h->levels > 0 && !h->config.tlb.entries && c->replacement->is_calm && c->sets <= UINT32_MAX
           && (c->is_ranked || !c->replacement->moves);
}

bool hierarchy_l1_is_lru(const struct hierarchy *h)
{
    return h->levels > 0 && h->cpu[0].level[0].is_ranked;
}

bool hierarchy_l1_has(const struct hierarchy *h, unsigned cpu, uint64_t line)
{
    return cache_find(&h->cpu[cpu].level[0], line) != NULL;
}

/* Whether lines can go to and fro between the two first levels. */
static bool core_can_fill_from_l2(const struct hierarchy *h, const struct core_caches *core)
{
    const struct cache *first = &core->level[0], *second = &core->level[1];

    return hierarchy_can_undo(h) && h->private_levels == 2 && first->is_ranked && second->is_ranked
           && (first->mask || first->sets == 1) && (second->mask || second->sets == 1)
           && second->sets * second->ways <= UINT32_MAX;
}

int core_init_filter(struct hierarchy *h, struct core_caches *core)
{
    const struct cache *first = &core->level[0], *tlb = &core->tlb;
    bool knows_pages = tlb->entry && tlb->replacement->is_calm && (tlb->mask || tlb->sets == 1);

    core->front.marks = calloc(2 * SIGNATURE_ENTRIES, sizeof *core->front.marks);
    core->filled = calloc(first->sets + 1, sizeof *core->filled);
    if (first->sets)
        core->front.top = core->top = calloc(first->sets, sizeof *core->top);
    if (tlb->entry) {
        core->front.page = core->page = calloc(tlb->sets, sizeof *core->page);
        core->front.page_mask = tlb->mask;
        core->front.page_shift = tlb->shift;
        for (uint64_t i = 0; core->page && i < tlb->sets; i++)
            core->page[i] = UINT64_MAX;
        if (!knows_pages)
            memset(core->front.calm, 0, sizeof core->front.calm);
    }
    if (core_can_fill_from_l2(h, core))
        core->behind = calloc(first->sets * first->ways, sizeof *core->behind);
    return core->front.marks && core->filled && (core->top || !first->sets) && (core->page || !tlb->entry)
                   && (core->behind || !core_can_fill_from_l2(h, core))
               ? 0
               : -1;
}

void core_release_filter(struct core_caches *core)
{
    free(core->front.marks);
    free(core->top);
    free(core->page);
    free(core->filled);
    free(core->behind);
}

void undo_log_begin(struct hierarchy *h, unsigned cpu)
{
    struct core_caches *core = &h->cpu[cpu];
    struct l1_filter *f = &core->front;

    f->kept = 0;
    if (++f->lead > 0)
        return;
    memset(f->marks, 0, 2 * SIGNATURE_ENTRIES * sizeof *f->marks); /* the numbers of leads begin anew */
    memset(core->filled, 0, (core->level[0].sets + 1) * sizeof *core->filled);
    f->lead = 1;
}

bool core_write_tracked(struct hierarchy *h, struct core_caches *core, const struct line_access *part, bool keep,
                        bool *ret_watched)
{
    struct line_info *info = line_info_at(&h->line_table, part->line);
    struct line_bytes b = line_access_bytes(h, part);
    uint32_t first = b.first / 64, end = (b.first + b.count + 63) / 64;

    if (keep && core->front.kept + UNDO_WORDS_PER_ACCESS + (size_t)h->cpus * (end - first) > UNDO_WORDS)
        return false;
    for (uint64_t left = info->invalidated & ~((uint64_t)1 << core->number); keep && left; left &= left - 1) {
        uint64_t *mask = line_info_written(&h->line_table, info, (unsigned)__builtin_ctzll(left));
        for (uint32_t w = first; w < end; w++)
            if (line_bytes_in(b, w) & ~mask[w])
                undo_log_add(core, &mask[w], UNDO_WORD);
    }
    line_info_write(&h->line_table, info, core->number, b);
    *ret_watched = line_info_is_tracked(&h->line_table, info, core->number);
    return true;
}

/* A reference that is not smooth; its entry in the first level is given, or NULL. */
static __attribute__((noinline)) enum local_hit undo_log_access_other(struct hierarchy *h, struct core_caches *core,
                                                                      uint64_t *e, const struct line_access *part,
                                                                      enum peet_kind kind)
{
    uint64_t line = part->line, *behind;
    enum local_hit n = LOCAL_NONE;

    if (e)
        n = core_write_hit(h, core, e, part, kind, true);
    else if (core->behind && (behind = cache_find_in(&core->level[1], line & core->level[1].mask, line)))
        n = core_fill_from_l2(h, core, line, behind, kind, true);
    if (n != LOCAL_NONE)
        signature_add(&core->front, line, kind);
    return n;
}

enum local_hit undo_log_access(struct hierarchy *h, struct l1_filter *f, uint64_t addr, uint64_t size,
                               enum peet_kind kind)
{
    struct core_caches *core = core_of_filter(f);
    uint64_t line = addr >> f->shift, set, *e;

    if ((addr & (f->line - 1)) + size > f->line || f->kept + UNDO_WORDS_PER_ACCESS > UNDO_WORDS)
        return LOCAL_NONE;
    if (!core_find_reorder_hit(core, line, kind, &set, &e))
        return undo_log_access_other(h, core, e, &(struct line_access){ line, addr, size }, kind);
    undo_log_add_order(core, set);
    core_touch(core, set, e);
    signature_add(f, line, kind);
    return LOCAL_REORDER_HIT;
}

void undo_log_roll_back(struct l1_filter *f, size_t kept)
{
    struct core_caches *core = core_of_filter(f);
    const struct cache *first = &core->level[0];

    while (f->kept > kept) {
        const struct undo_record *k = &core->kept[--f->kept];
        uint64_t *word = (uint64_t *)(k->where & ~(uint64_t)UNDO_MASK);
        unsigned counted = k->where & UNDO_MASK;
        if (counted == UNDO_MRU) {
            first->recent[word - first->order] = k->old;
            l1_filter_refresh(core, (uint64_t)(word - first->order));
            continue;
        }
        *word = k->old;
        if (counted >= UNDO_L2_HIT) {
            uint64_t at = (uint64_t)(word - first->entry);
            cache_set_tag(first, at / first->ways, (unsigned)(at % first->ways), k->old >> CACHE_STATE_BITS);
            l1_filter_refresh(core, at / first->ways);
            f->behind[counted - UNDO_L2_HIT + PEET_LOAD]--;
        } else if (counted >= UNDO_SILENT_UPGRADE) {
            l1_filter_refresh(core, (uint64_t)(word - first->entry) / first->ways);
            f->silent[counted - UNDO_SILENT_UPGRADE + PEET_STORE]--;
        } else if (((uintptr_t)word - (uintptr_t)first->order) / sizeof *word < first->sets) {
            l1_filter_refresh(core, (uint64_t)(word - first->order));
        }
    }
}

bool signature_has(const struct hierarchy *h, unsigned cpu, uint64_t line, bool reads)
{
    const struct core_caches *core = &h->cpu[cpu];
    const struct cache *c = &core->level[0];
    const uint16_t *marks = core->front.marks + line % SIGNATURE_ENTRIES;

    if (reads)
        return marks[SIGNATURE_ENTRIES] == core->front.lead;
    /* A line that goes makes room for one that came. */
    return marks[0] == core->front.lead || marks[SIGNATURE_ENTRIES] == core->front.lead
           || (core->filled[cache_set(c, line)] == core->front.lead && cache_find(c, line));
}
