/* SPDX-License-Identifier: MIT */
/* The undo log and the signature of lookahead. docs/design/memory.md, "Undo". */
#include "sim/memory/core_caches.h"

#include <stdlib.h>
#include <string.h>

bool hierarchy_can_undo(const struct hierarchy *h)
{
    const struct cache *c = &h->cpu[0].level[0];

    return h->levels > 0 && !h->config.tlb.entries && c->replacement->mru_touch_is_noop && c->sets <= UINT32_MAX
           && (c->is_ranked || !c->replacement->touch_reorders);
}

bool hierarchy_l1_is_lru(const struct hierarchy *h)
{
    return h->levels > 0 && h->cpu[0].level[0].is_ranked;
}

bool hierarchy_l1_has(const struct hierarchy *h, unsigned cpu, uint64_t line)
{
    return cache_find(&h->cpu[cpu].level[0], line) != NULL;
}

/* Whether core_fill_from_l2 works on these caches. */
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
    bool has_mru_pages = tlb->entry && tlb->replacement->mru_touch_is_noop && (tlb->mask || tlb->sets == 1);

    core->filter.signature = calloc(2 * SIGNATURE_ENTRIES, sizeof *core->filter.signature);
    core->filled_in = calloc(first->sets + 1, sizeof *core->filled_in);
    if (first->sets)
        core->filter.mru = core->mru = calloc(first->sets, sizeof *core->mru);
    if (tlb->entry) {
        core->filter.tlb_page = core->tlb_page = calloc(tlb->sets, sizeof *core->tlb_page);
        core->filter.page_mask = tlb->mask;
        core->filter.page_shift = tlb->shift;
        for (uint64_t i = 0; core->tlb_page && i < tlb->sets; i++)
            core->tlb_page[i] = UINT64_MAX;
        if (!has_mru_pages)
            memset(core->filter.tlb_hit_states, 0, sizeof core->filter.tlb_hit_states);
    }
    if (core_can_fill_from_l2(h, core))
        core->l2_entry = calloc(first->sets * first->ways, sizeof *core->l2_entry);
    return core->filter.signature && core->filled_in && (core->mru || !first->sets) && (core->tlb_page || !tlb->entry)
                   && (core->l2_entry || !core_can_fill_from_l2(h, core))
               ? 0
               : -1;
}

void core_release_filter(struct core_caches *core)
{
    free(core->filter.signature);
    free(core->mru);
    free(core->tlb_page);
    free(core->filled_in);
    free(core->l2_entry);
}

void undo_log_begin(struct hierarchy *h, unsigned cpu)
{
    struct core_caches *core = &h->cpu[cpu];
    struct l1_filter *f = &core->filter;

    f->undo_length = 0;
    if (++f->lookahead > 0)
        return;
    memset(f->signature, 0, 2 * SIGNATURE_ENTRIES * sizeof *f->signature); /* numbers start again from 1 */
    memset(core->filled_in, 0, (core->level[0].sets + 1) * sizeof *core->filled_in);
    f->lookahead = 1;
}

bool core_write_tracked(struct hierarchy *h, struct core_caches *core, const struct line_access *part, bool keep,
                        bool *ret_tracked)
{
    struct line_info *info = line_info_at(&h->line_table, part->line);
    struct line_bytes b = line_access_bytes(h, part);
    uint32_t first = b.first / 64, end = (b.first + b.count + 63) / 64;

    if (keep && core->filter.undo_length + UNDO_WORDS_PER_ACCESS + (size_t)h->cpus * (end - first) > UNDO_WORDS)
        return false;
    for (uint64_t left = info->invalidated & ~((uint64_t)1 << core->number); keep && left; left &= left - 1) {
        uint64_t *mask = line_info_written(&h->line_table, info, (unsigned)__builtin_ctzll(left));
        for (uint32_t w = first; w < end; w++)
            if (line_bytes_in(b, w) & ~mask[w])
                undo_log_add(core, &mask[w], UNDO_WORD);
    }
    line_info_write(&h->line_table, info, core->number, b);
    *ret_tracked = line_info_is_tracked(&h->line_table, info, core->number);
    return true;
}

/* An access that is no reorder hit. Entry e of the first level has the line; NULL: no entry there has. */
static __attribute__((noinline)) enum local_hit undo_log_access_other(struct hierarchy *h, struct core_caches *core,
                                                                      uint64_t *e, const struct line_access *part,
                                                                      enum peet_kind kind)
{
    uint64_t line = part->line, *second;
    enum local_hit n = LOCAL_NONE;

    if (e)
        n = core_write_hit(h, core, e, part, kind, true);
    else if (core->l2_entry && (second = cache_find_in(&core->level[1], line & core->level[1].mask, line)))
        n = core_fill_from_l2(core, line, second, kind, true);
    if (n != LOCAL_NONE)
        signature_add(&core->filter, line, kind);
    return n;
}

enum local_hit undo_log_access(struct hierarchy *h, struct l1_filter *f, uint64_t addr, uint64_t size,
                               enum peet_kind kind)
{
    struct core_caches *core = core_of_filter(f);
    uint64_t line = addr >> f->shift, set, *e;

    if ((addr & (f->line - 1)) + size > f->line || f->undo_length + UNDO_WORDS_PER_ACCESS > UNDO_WORDS)
        return LOCAL_NONE;
    if (!core_find_reorder_hit(core, line, kind, &set, &e))
        return undo_log_access_other(h, core, e, &(struct line_access){ line, addr, size }, kind);
    undo_log_add_order(core, set);
    core_touch(core, set, e);
    signature_add(f, line, kind);
    return LOCAL_REORDER_HIT;
}

void undo_log_roll_back(struct l1_filter *f, size_t length)
{
    struct core_caches *core = core_of_filter(f);
    const struct cache *first = &core->level[0];

    while (f->undo_length > length) {
        const struct undo_record *k = &core->undo[--f->undo_length];
        uint64_t *word = (uint64_t *)(k->word & ~(uint64_t)UNDO_MASK);
        unsigned counted = k->word & UNDO_MASK;
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
            f->l2_hits[counted - UNDO_L2_HIT + PEET_LOAD]--;
        } else if (counted >= UNDO_SILENT_UPGRADE) {
            l1_filter_refresh(core, (uint64_t)(word - first->entry) / first->ways);
            f->silent_upgrades[counted - UNDO_SILENT_UPGRADE + PEET_STORE]--;
        } else if (((uintptr_t)word - (uintptr_t)first->order) / sizeof *word < first->sets) {
            l1_filter_refresh(core, (uint64_t)(word - first->order));
        }
    }
}

bool signature_has(const struct hierarchy *h, unsigned cpu, uint64_t line, bool is_read)
{
    const struct core_caches *core = &h->cpu[cpu];
    const struct cache *c = &core->level[0];
    const uint16_t *last = core->filter.signature + line % SIGNATURE_ENTRIES;

    if (is_read)
        return last[SIGNATURE_ENTRIES] == core->filter.lookahead;
    /* if the line is removed, the set would not have had to evict for the line that was filled */
    return last[0] == core->filter.lookahead || last[SIGNATURE_ENTRIES] == core->filter.lookahead
           || (core->filled_in[cache_set(c, line)] == core->filter.lookahead && cache_find(c, line));
}
