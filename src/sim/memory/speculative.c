/* SPDX-License-Identifier: MIT */
/* Lines of cores that speculate: arrival, confirmation and roll-back, each a bulk operation on all private caches of a core. */
#include "sim/memory/speculative.h"

#include <assert.h>
#include <stdlib.h>

#include "sim/coherence/step.h"
#include "sim/coherence/tag_store.h"
#include "sim/memory/core_caches.h"

int hierarchy_set_speculation(struct hierarchy *h, bool keeps_read, violation_hook *hook, void *self)
{
    uint64_t lines = 0;

    assert(h->protocol->extension && h->private_levels > 0);
    h->protocol = h->protocol->extension;
    for (unsigned i = 0; i < h->private_levels; i++)
        lines += h->cpu[0].level[i].sets * h->cpu[0].level[i].ways;
    h->speculative = calloc(1, sizeof *h->speculative);
    if (!h->speculative)
        return -1;
    h->speculative->roll_back = keeps_read ? BULK_ROLL_BACK_WRITTEN : BULK_ROLL_BACK;
    h->speculative->hook = hook;
    h->speculative->self = self;
    h->speculative->dropped = calloc(lines, sizeof(uint64_t));
    h->speculative->changed = calloc(lines, sizeof(uint64_t));
    h->speculative->misses = calloc(h->cpus, sizeof(uint64_t));
    h->speculative->undone.value_size = 1;
    h->remote_read_keeps_readable = coherence_keeps_readable(h->protocol, BUS_READ);
    h->ignored_ops = 0;
    for (unsigned op = BUS_READ; op < BUS_OPS; op++)
        h->ignored_ops |= (uint32_t)coherence_is_ignored(h->protocol, op) << op;
    for (unsigned i = 0; i < h->cpus; i++)
        core_set_mode(h, &h->cpu[i], false);
    return h->speculative->dropped && h->speculative->changed && h->speculative->misses ? 0 : -1;
}

void speculative_release(struct hierarchy *h)
{
    if (!h->speculative)
        return;
    map_release(&h->speculative->undone);
    free(h->speculative->dropped);
    free(h->speculative->changed);
    free(h->speculative->misses);
    free(h->speculative);
}

/* ---- bulk operations ---- */

/* The innermost entry of a line in levels before `level`; NULL: none has it. */
static uint64_t *speculative_inner(struct core_caches *core, unsigned level, uint64_t line)
{
    uint64_t *e = NULL;

    for (unsigned i = 0; i < level && !e; i++)
        e = cache_find(&core->level[i], line);
    return e;
}

/* Gives entries of outer levels the valid state of their lines, and lists the lines that the event makes invalid. Returns their number. */
static size_t speculative_list(struct hierarchy *h, struct core_caches *core, const uint8_t *next)
{
    size_t n = 0;

    h->speculative->changes = 0;
    for (unsigned i = 0; i < h->private_levels; i++) {
        struct cache *c = &core->level[i];
        for (uint64_t k = 0; k < c->sets * c->ways; k++) {
            if (i == 0 && !(c->entry[k] & TAG_B2)) /* the frequent case: no event changes such a state */
                continue;
            if (i == 0)
                h->speculative->changed[h->speculative->changes++] = k / c->ways;
            unsigned state = cache_state(c->entry[k]) & STATE_MASK;
            uint64_t line = c->entry[k] >> CACHE_STATE_BITS;
            const uint64_t *inner = i && state ? speculative_inner(core, i, line) : NULL;
            if (inner)
                set_state(&c->entry[k], cache_state(*inner));
            else if (state && next[state] == PROTOCOL_ABSENT)
                h->speculative->dropped[n++] = line;
        }
    }
    return n;
}

static void speculative_drop(struct hierarchy *h, struct core_caches *core, uint64_t line, bool is_undone)
{
    struct line_info *info = line_info_at(&h->line_table, line);
    bool is_expiring = false, is_found = false;

    for (unsigned i = 0; i < h->private_levels; i++) {
        uint64_t *e = cache_find(&core->level[i], line);
        if (!e)
            continue;
        is_expiring = is_found ? is_expiring : state_is_expiring(h, cache_state(*e));
        is_found = true;
        cache_drop(&core->level[i], e);
    }
    if (is_expiring)
        line_info_drop(info, core->number);
    else
        line_info_remove(&h->line_table, info, core->number, REMOVED_EVICTED, 0);
    if (is_undone && !is_expiring)
        *(uint8_t *)map_put(&h->speculative->undone, line, core->number) = 1;
}

/* An event of all lines of a core. */
static void speculative_apply(struct hierarchy *h, unsigned cpu, enum bulk_event event)
{
    struct core_caches *core = &h->cpu[cpu];
    bool is_roll_back = event == BULK_ROLL_BACK || event == BULK_ROLL_BACK_WRITTEN;

    if (!core->is_marked) /* without lines that the event could change */
        return;
    core->is_marked = false;
    size_t dropped = speculative_list(h, core, h->protocol->bulk[event]);

    for (size_t i = 0; i < dropped; i++)
        speculative_drop(h, core, h->speculative->dropped[i], is_roll_back);
    for (unsigned i = 0; i < h->private_levels; i++)
        tag_store_apply(core->level[i].entry, core->level[i].sets * core->level[i].ways, event);
    for (size_t i = 0; i < h->speculative->changes; i++)
        l1_filter_refresh(core, h->speculative->changed[i]);
    core->filter.epoch++;
}

void hierarchy_arrive(struct hierarchy *h, unsigned cpu, bool speculates)
{
    assert(!h->cpu[cpu].speculates);
    speculative_apply(h, cpu, BULK_ARRIVE);
    core_set_mode(h, &h->cpu[cpu], speculates);
    h->cpu[cpu].is_marked = speculates;
}

void hierarchy_confirm(struct hierarchy *h, unsigned cpu)
{
    speculative_apply(h, cpu, BULK_CONFIRM);
    core_set_mode(h, &h->cpu[cpu], false);
}

void speculative_undo(struct hierarchy *h, unsigned cpu)
{
    assert(h->cpu[cpu].speculates);
    core_set_mode(h, &h->cpu[cpu], false);
    speculative_apply(h, cpu, h->speculative->roll_back);
}

void speculative_violate(struct hierarchy *h, unsigned cpu, enum violation why)
{
    speculative_undo(h, cpu);
    h->speculative->hook(h->speculative->self, cpu, why);
}

void hierarchy_roll_back(struct hierarchy *h, unsigned cpu)
{
    speculative_undo(h, cpu);
}

/* ---- misses ---- */

void speculative_miss(struct hierarchy *h, unsigned cpu, uint64_t line)
{
    uint8_t *is_undone = map_find(&h->speculative->undone, line, cpu);

    if (!is_undone || !*is_undone)
        return;
    *is_undone = 0;
    h->speculative->misses[cpu]++;
}

uint64_t hierarchy_rollback_misses(const struct hierarchy *h, unsigned cpu)
{
    return h->speculative ? h->speculative->misses[cpu] : 0;
}

/* ---- invariants ---- */

const char *hierarchy_check_line(struct hierarchy *h, uint64_t addr)
{
    const struct protocol *p = h->protocol;
    unsigned copies = 0, final = 0, exclusive = 0, written = 0;

    for (unsigned i = 0; i < h->cpus; i++) {
        unsigned state = hierarchy_state(h, i, addr);
        bool is_written = state_is_unsafe(h, state) && p->bulk[BULK_ROLL_BACK_WRITTEN][state] == PROTOCOL_ABSENT;
        copies += state != PROTOCOL_ABSENT;
        final += state != PROTOCOL_ABSENT && !state_is_expiring(h, state);
        exclusive += !is_written && (p->flags[state] | p->flags[p->bulk[BULK_CONFIRM][state]]) & STATE_WRITABLE;
        written += is_written;
        if (state_is_unsafe(h, state) && !h->cpu[i].speculates)
            return "a line is unsafe in a core that does not speculate";
    }
    if (exclusive && copies > 1)
        return "an exclusive line has another copy";
    return written && final > 1 ? "a line that was written speculatively has another copy that does not expire" : NULL;
}
