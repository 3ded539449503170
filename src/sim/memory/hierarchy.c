/* SPDX-License-Identifier: MIT */
#include "sim/memory/hierarchy.h"

#include <assert.h>
#include <string.h>

#include "sim/coherence/step.h"
#include "sim/memory/core_caches.h"

enum { SHARED_CLEAN = 1, SHARED_DIRTY = 2 }; /* of a line in a shared level */

/* ---- lines and states ---- */

static bool is_dirty(const struct hierarchy *h, unsigned state)
{
    return h->protocol->flags[state & STATE_MASK] & STATE_DIRTY;
}

/* Whether a line in that state goes to memory when it is evicted. */
static bool is_written_back(const struct hierarchy *h, unsigned state)
{
    return coherence_op(h->protocol, state & STATE_MASK, OWN_EVICT) == BUS_WRITE_BACK && !h->is_write_through_all;
}

/* The valid state of a line in a core: that of the innermost level. 0: the core does not have the line. */
static unsigned state_of(struct hierarchy *h, unsigned cpu, uint64_t line)
{
    for (unsigned i = 0; i < h->private_levels; i++) {
        const uint64_t *e = cache_find(&h->cpu[cpu].level[i], line);
        if (e)
            return cache_state(*e);
    }
    return PROTOCOL_ABSENT;
}

/* A transaction of another core is about to look at a line of this core, and perhaps to change it. */
static void hierarchy_before_snoop(struct hierarchy *h, unsigned cpu, uint64_t line, unsigned op)
{
    if (h->snoop_hook)
        h->snoop_hook(h->snoop_self, cpu, line, op == BUS_READ && h->remote_read_keeps_readable);
}

/* The access that is simulated has removed a line from all private caches of a core. */
static void remove_line(struct hierarchy *h, struct line_info *info, uint64_t line, unsigned cpu, enum line_removal how)
{
    line_info_remove(&h->line_table, info, cpu, how, h->tag);
    if (h->programs && how == REMOVED_EVICTED)
        program_counts_evict(h->programs, line, h->programs->private);
    if (h->shadow && how == REMOVED_INVALIDATED)
        shadow_tags_drop(&h->shadow[cpu], line);
}

/* A transaction of another core has changed the state of a line. */
static void change_state(struct hierarchy *h, unsigned cpu, uint64_t line, unsigned state)
{
    struct core_caches *core = &h->cpu[cpu];

    core->filter.epoch++; /* after the pre-snoop hook */
    for (unsigned i = 0; i < h->private_levels; i++) {
        uint64_t *e = cache_find(&core->level[i], line);
        if (e && state)
            set_state(e, state);
        else if (e)
            cache_drop(&core->level[i], e);
    }
    l1_filter_refresh(core, cache_set(&core->level[0], line));
}

static unsigned home_of(struct hierarchy *h, unsigned cpu, uint64_t line)
{
    uint64_t page = line << h->cpu[0].level[0].shift >> h->page_shift;

    if (!h->has_directory)
        return 0;
    if (!h->config.first_touch)
        return (unsigned)(page % h->cpus);
    uint32_t *home = map_put(&h->homes, page, 0);
    assert(home);
    if (!*home)
        *home = 1 + cpu;
    return *home - 1;
}

/* ---- shared levels and memory ---- */

/* A shared level evicts a line. If the level is inclusive, all caches before it lose the line. */
static void evict_shared(struct hierarchy *h, unsigned level, uint64_t entry)
{
    uint64_t line = entry >> CACHE_STATE_BITS;
    struct line_info *info = NULL;

    if (h->programs && level + 1 == h->levels)
        program_counts_evict(h->programs, line, h->programs->shared);
    if (h->config.level[level].inclusion == INCLUSION_INCLUSIVE) {
        for (unsigned i = h->private_levels; i < level; i++) {
            uint64_t *e = cache_find(&h->shared[i], line);
            if (e)
                cache_drop(&h->shared[i], e);
        }
        info = line_info_at(&h->line_table, line);
        for (uint64_t left = info->present; left; left &= left - 1) {
            unsigned cpu = (unsigned)__builtin_ctzll(left);
            hierarchy_before_snoop(h, cpu, line, BUS_READ_OWN);
            unsigned state = state_of(h, cpu, line);
            h->cpu[cpu].counts.write_backs += is_written_back(h, state);
            change_state(h, cpu, line, PROTOCOL_ABSENT);
            remove_line(h, info, line, cpu, REMOVED_EVICTED);
            if (state_is_unsafe(h, state))
                speculative_violate(h, cpu, VIOLATION_eviction);
        }
    }
    if (level + 1 < h->levels && cache_state(entry) == SHARED_DIRTY) {
        uint64_t *e = cache_find(&h->shared[level + 1], line);
        if (e) /* else it goes to memory, where there is always room */
            set_state(e, SHARED_DIRTY);
    }
}

static void put_shared(struct hierarchy *h, unsigned level, uint64_t line, unsigned state)
{
    uint64_t victim = cache_put(&h->shared[level], line, state);

    if (victim)
        evict_shared(h, level, victim);
}

/* A core writes a line back: the first shared level takes it, or memory. */
static void accept_writeback(struct hierarchy *h, uint64_t line)
{
    if (h->private_levels == h->levels)
        return; /* memory has room for all of them */
    struct cache *c = &h->shared[h->private_levels];
    uint64_t *e = cache_find(c, line);
    if (e)
        set_state(cache_touch(c, e), SHARED_DIRTY);
    else
        put_shared(h, h->private_levels, line, SHARED_DIRTY);
}

/* A shared level, or memory, supplies a line; returns the cycles that it takes. The line is in all shared levels then. */
static uint32_t hierarchy_supply(struct hierarchy *h, unsigned cpu, uint64_t line, struct access_outcome *outcome)
{
    unsigned found = h->private_levels;
    uint32_t latency = h->fabric.config.memory;

    for (; found < h->levels; found++) {
        uint64_t *e = cache_find(&h->shared[found], line);
        if (!e)
            continue;
        cache_touch(&h->shared[found], e);
        latency = h->config.level[found].latency;
        h->cpu[cpu].counts.hits[found]++;
        outcome->level = (uint8_t)found;
        break;
    }
    for (unsigned i = found; i-- > h->private_levels;)
        put_shared(h, i, line, SHARED_CLEAN);
    return latency;
}

/* A line goes to memory, and no core waits for it. */
static void write_back(struct hierarchy *h, unsigned cpu, uint64_t line, uint64_t now)
{
    struct transaction t = { .op = BUS_WRITE_BACK,
                             .cpu = cpu,
                             .line = line,
                             .supplier = FABRIC_MEMORY,
                             .bytes = h->config.level[0].line,
                             .home = home_of(h, cpu, line) };

    h->cpu[cpu].counts.write_backs++;
    fabric_transact(&h->fabric, &t, now);
    accept_writeback(h, line);
}

/* ---- steps of the protocol ---- */

/* A step of one core's cache on a line: what the interpreter of the protocol (sim/coherence/step.h) works on. */
struct protocol_step {
    struct hierarchy *h;
    struct line_info *info;         /* of the line */
    uint64_t line;                  /* number of the line */
    unsigned cpu;                   /* of the core */
    bool is_present;                /* the core has the line */
    uint64_t now, stall;            /* cycle in which the step begins; cycles that the core has waited for it since */
    struct line_bytes bytes;        /* that a write writes */
    uint64_t updated;               /* a bit for each cache that has taken the word of the current update */
    struct transaction bus;         /* the current transaction */
    struct access_outcome *outcome; /* of the core's access; NULL: an eviction */
};

static uint64_t step_holders(void *caches, unsigned cpu, unsigned op)
{
    const struct protocol_step *s = caches;

    return s->h->ignored_ops >> op & 1 ? 0 : s->info->present & ~((uint64_t)1 << cpu);
}

static unsigned step_snooped(void *caches, unsigned other, unsigned op)
{
    struct protocol_step *s = caches;

    hierarchy_before_snoop(s->h, other, s->line, op);
    s->bus.sharers |= (uint64_t)1 << other;
    return state_of(s->h, other, s->line) & STATE_MASK;
}

static void step_supply(void *caches, unsigned other)
{
    struct protocol_step *s = caches;

    s->bus.supplier = (int)other;
}

static void step_flush(void *caches, unsigned other)
{
    struct protocol_step *s = caches;

    (void)other;
    accept_writeback(s->h, s->line);
}

static void step_update(void *caches, unsigned other)
{
    struct protocol_step *s = caches;

    s->updated |= (uint64_t)1 << other;
}

static void step_enter(void *caches, unsigned other, unsigned state)
{
    struct protocol_step *s = caches;

    change_state(s->h, other, s->line, state);
    if (state_is_expiring(s->h, state)) {
        s->h->cpu[other].is_marked = true;
        line_info_expire(&s->h->line_table, s->info, other);
    }
    if (state != PROTOCOL_ABSENT)
        return;
    remove_line(s->h, s->info, s->line, other, REMOVED_INVALIDATED);
    s->h->cpu[other].counts.invalidations++;
}

/* The speculation of a core fails: of the core whose step this is, or of another one. */
static void step_roll_back(void *caches, unsigned cpu)
{
    const struct protocol_step *s = caches;

    speculative_violate(s->h, cpu,
                        cpu != s->cpu   ? VIOLATION_write
                        : s->is_present ? VIOLATION_expired
                                        : VIOLATION_read);
}

static void step_issue(void *caches, unsigned cpu, const struct coherence_bus *bus)
{
    struct protocol_step *s = caches;
    struct hierarchy *h = s->h;
    struct memory_counts *n = &h->cpu[cpu].counts;
    struct transaction *t = &s->bus;
    uint64_t now = s->now + s->stall;
    unsigned op = coherence_untagged(bus->op);

    if (op == BUS_WRITE_BACK) { /* the core does not wait */
        write_back(h, cpu, s->line, now);
        s->bus = (struct transaction){ .supplier = FABRIC_MEMORY };
        return;
    }
    t->op = (uint8_t)op;
    t->cpu = cpu;
    t->line = s->line;
    t->home = home_of(h, cpu, s->line);
    t->writes_memory = bus->writes_memory;
    if (op == BUS_READ || op == BUS_READ_OWN) {
        t->bytes = h->config.level[0].line;
        t->latency =
            t->supplier == FABRIC_MEMORY ? hierarchy_supply(h, cpu, s->line, s->outcome) : h->fabric.config.transfer;
        n->from_caches += t->supplier != FABRIC_MEMORY;
        s->outcome->from_cache |= t->supplier != FABRIC_MEMORY;
    } else if (op == BUS_UPDATE) {
        assert(s->updated == (s->info->present & ~((uint64_t)1 << cpu))); /* a copy that stays is up to date */
        t->bytes = 8;
        n->updates++;
        s->outcome->is_update = true;
    }
    struct fabric_time time = fabric_transact(&h->fabric, t, now);
    n->waited += time.waited;
    s->outcome->contention += time.waited;
    s->stall = time.done - s->now;
    s->bus = (struct transaction){ .supplier = FABRIC_MEMORY };
}

static void step_write(void *caches, unsigned cpu)
{
    struct protocol_step *s = caches;

    line_info_write(&s->h->line_table, s->info, cpu, s->bytes);
}

static const struct coherence_ops STEP = { step_holders, step_snooped, step_supply, step_flush,    step_update,
                                           step_enter,   step_issue,   step_write,  step_roll_back };

/* ---- evictions ---- */

static void evict_issue(void *caches, unsigned cpu, const struct coherence_bus *bus)
{
    const struct protocol_step *s = caches;

    assert(bus->op == BUS_WRITE_BACK);
    write_back(s->h, cpu, s->line, s->now);
}

static void evict_roll_back(void *caches, unsigned cpu)
{
    speculative_violate(((const struct protocol_step *)caches)->h, cpu, VIOLATION_eviction);
}

static const struct coherence_ops EVICT = { step_holders, step_snooped, step_supply, step_flush,     step_update,
                                            step_enter,   evict_issue,  step_write,  evict_roll_back };

/* A line leaves a core's private caches. */
static void evict_line(struct hierarchy *h, unsigned cpu, uint64_t line, unsigned state, uint64_t now)
{
    struct line_info *info = line_info_at(&h->line_table, line);

    remove_line(h, info, line, cpu, REMOVED_EVICTED);
    if (!is_written_back(h, state) && !state_is_unsafe(h, state))
        return;
    struct protocol_step s = {
        .h = h, .info = info, .line = line, .cpu = cpu, .now = now, .bus.supplier = FABRIC_MEMORY
    };
    unsigned next = coherence_step(h->protocol, &EVICT, &s, cpu, state & STATE_MASK, OWN_EVICT);
    assert(next == PROTOCOL_ABSENT);
}

/* A private level has evicted an entry. */
static void evict_entry(struct hierarchy *h, unsigned cpu, unsigned level, uint64_t entry, uint64_t now)
{
    struct core_caches *core = &h->cpu[cpu];
    uint64_t line = entry >> CACHE_STATE_BITS;
    unsigned state = cache_state(entry);

    /* A level after this one may have evicted the line, too, so that the core has lost it already. */
    if (level + 1 < h->private_levels && !(line_info_at(&h->line_table, line)->present >> cpu & 1))
        return;
    for (unsigned i = level; i-- > 0;) { /* the innermost comes last, and its state is the valid one */
        uint64_t *e = cache_find(&core->level[i], line);
        if (!e)
            continue;
        if (h->config.level[level].inclusion != INCLUSION_INCLUSIVE)
            return; /* the core still has it */
        state = cache_state(*e);
        cache_drop(&core->level[i], e);
        l1_filter_refresh(core, cache_set(&core->level[0], line));
        core->filter.epoch++;
    }
    for (unsigned i = level + 1; i < h->private_levels; i++) {
        uint64_t *e = cache_find(&core->level[i], line);
        if (e) {
            set_state(e, state);
            return;
        }
    }
    if ((is_dirty(h, state) || state_is_unsafe(h, state)) && level + 1 < h->private_levels) {
        uint64_t victim = cache_put(&core->level[level + 1], line, state);
        if (victim)
            evict_entry(h, cpu, level + 1, victim, now);
        return;
    }
    evict_line(h, cpu, line, state, now);
}

/* A line was just filled into both levels: notes its entry in the second. Returns the entry that the second level had for the first level's
 * victim when that was filled; it may have another line now. */
static uint64_t *hierarchy_swap_with_l2(struct core_caches *core, uint64_t line)
{
    const struct cache *first = &core->level[0], *second = &core->level[1];
    uint64_t set = cache_set(first, line), set2 = cache_set(second, line);
    uint32_t *at = &core->l2_entry[set * first->ways + cache_recent(first, set)], before = *at;

    *at = (uint32_t)(set2 * second->ways + cache_recent(second, set2));
    return second->entry + before;
}

/* Fills a line into the private levels before `level`. Victims leave when all of them have the line: a write-back may make a shared level
 * evict a line, and so remove this one. */
static void fill_private(struct hierarchy *h, unsigned cpu, unsigned level, uint64_t line, unsigned state, uint64_t now)
{
    uint64_t victim[CONFIG_LEVELS];

    for (unsigned i = 0; i < level; i++)
        victim[i] = cache_put(&h->cpu[cpu].level[i], line, state);
    uint64_t *hint = h->cpu[cpu].l2_entry && level == 2 ? hierarchy_swap_with_l2(&h->cpu[cpu], line) : NULL;
    /* The innermost state is the valid one, also of a line that several levels evict. A victim of the first level that another level has needs
     * no more than that, which is the frequent case. */
    for (unsigned i = 0; i < level; i++) {
        bool is_in_next = false;
        for (unsigned k = i + 1; victim[i] && k < h->private_levels; k++) {
            uint64_t *e = hint && *hint >> CACHE_STATE_BITS == victim[i] >> CACHE_STATE_BITS && cache_state(*hint)
                              ? hint
                              : cache_find(&h->cpu[cpu].level[k], victim[i] >> CACHE_STATE_BITS);
            if (e)
                set_state(e, cache_state(victim[i]));
            if (k < level && victim[k] && victim[k] >> CACHE_STATE_BITS == victim[i] >> CACHE_STATE_BITS)
                victim[k] = victim[i];
            is_in_next |= e != NULL;
        }
        victim[i] = i == 0 && is_in_next ? 0 : victim[i];
    }
    for (unsigned i = level; i-- > 0;)
        if (victim[i])
            evict_entry(h, cpu, i, victim[i], now);
}

/* Fills a line from private level `level` into those before it. Returns its entry in the first level; NULL: it was removed again. */
static uint64_t *hierarchy_fill_inner(struct hierarchy *h, unsigned cpu, unsigned level, uint64_t line, unsigned state,
                                      uint64_t now)
{
    struct core_caches *core = &h->cpu[cpu];
    struct cache *first = &core->level[0];

    if (level > 1) {
        fill_private(h, cpu, level, line, state, now);
        return cache_find(first, line);
    }
    uint64_t victim = cache_put(first, line, state);
    uint64_t *next_entry = victim ? cache_find(&core->level[1], victim >> CACHE_STATE_BITS) : NULL;
    bool is_in_next = next_entry != NULL;
    if (next_entry)
        set_state(next_entry, cache_state(victim));
    for (unsigned i = 2; victim && i < h->private_levels; i++) {
        uint64_t *e = cache_find(&core->level[i], victim >> CACHE_STATE_BITS);
        if (e)
            set_state(e, cache_state(victim));
        is_in_next |= e != NULL;
    }
    if (victim && !is_in_next) {
        evict_entry(h, cpu, 0, victim, now);
        return cache_find(first, line);
    }
    return cache_last(first, line);
}

/* ---- references ---- */

/* Sends a written word to memory. */
static void write_through(struct hierarchy *h, unsigned cpu, uint64_t line, uint64_t now)
{
    struct transaction t = { .op = BUS_WRITE_BACK,
                             .cpu = cpu,
                             .line = line,
                             .supplier = FABRIC_MEMORY,
                             .bytes = 8,
                             .home = home_of(h, cpu, line) };

    h->cpu[cpu].counts.write_throughs++;
    fabric_transact(&h->fabric, &t, now);
}

/* A store that misses a first level that does not allocate: the word goes to memory, and every copy is invalidated. The one dirty copy
 * is written back first. */
static void store_around(struct hierarchy *h, unsigned cpu, uint64_t line, struct line_info *info,
                         struct line_bytes bytes, uint64_t now)
{
    int owner = FABRIC_MEMORY;

    for (uint64_t left = info->present; left; left &= left - 1) {
        unsigned other = (unsigned)__builtin_ctzll(left);
        hierarchy_before_snoop(h, other, line, BUS_READ_OWN);
        if (is_written_back(h, state_of(h, other, line)))
            owner = (int)other;
        change_state(h, other, line, PROTOCOL_ABSENT);
        remove_line(h, info, line, other, REMOVED_INVALIDATED);
        h->cpu[other].counts.invalidations++;
    }
    if (owner != FABRIC_MEMORY)
        write_back(h, (unsigned)owner, line, now);
    line_info_write(&h->line_table, info, cpu, bytes);
    write_through(h, cpu, line, now);
}

/* An access that the L1 filter does not answer, while it is simulated. */
struct ongoing_access {
    struct hierarchy *h;
    unsigned cpu; /* core */
    enum peet_kind kind;
    bool is_write;   /* kind is PEET_STORE or PEET_UPDATE */
    bool speculates; /* the core did when the access began */
    struct line_access part;
    struct access_outcome
        *outcome; /* what is known of it so far; a pointer, so that its bytes are not copied as words soon after */
};

static struct protocol_step access_step(struct ongoing_access *a, uint64_t now)
{
    return (struct protocol_step){
        .h = a->h, .line = a->part.line, .cpu = a->cpu, .now = now, .bus.supplier = FABRIC_MEMORY, .outcome = a->outcome
    };
}

/* An access to a line that no private level of the core has; returns the cycles that the core waits. */
static uint64_t access_miss(struct ongoing_access *a, uint64_t now)
{
    struct hierarchy *h = a->h;
    unsigned cpu = a->cpu;
    enum own_event event = coherence_event(a->is_write, a->speculates);
    uint64_t line = a->part.line;
    struct line_info *info = line_info_at(&h->line_table, line);
    struct memory_counts *n = &h->cpu[cpu].counts;
    struct protocol_step s = access_step(a, now);

    s.info = info;
    s.bytes = line_access_bytes(h, &a->part);
    for (uint64_t left = info->present; left; left &= left - 1) /* writes of lookahead are rolled back first */
        hierarchy_before_snoop(h, (unsigned)__builtin_ctzll(left), line,
                               coherence_op(h->protocol, PROTOCOL_ABSENT, event));
    a->outcome->level = LEVEL_BEYOND;
    a->outcome->cause = (uint8_t)line_info_cause(&h->line_table, info, cpu, s.bytes);
    a->outcome->removed_by = line_info_removed_by(&h->line_table, info, cpu);
    n->misses++;
    n->causes[a->outcome->cause]++;
    if (h->speculative)
        speculative_miss(h, cpu, line);
    if (a->kind == PEET_STORE && !h->config.level[0].allocates) {
        store_around(h, cpu, line, info, s.bytes, now);
        return 0;
    }
    unsigned state = coherence_step(h->protocol, &STEP, &s, cpu, PROTOCOL_ABSENT, event);
    if (state == PROTOCOL_ABSENT) /* the core was rolled back */
        return s.stall;
    line_info_fill(info, cpu);
    if (state_is_expiring(h, state)) {
        h->cpu[cpu].is_marked = true;
        line_info_expire(&h->line_table, info, cpu);
    }
    if (h->programs)
        program_counts_fill(h->programs, cpu, line);
    /* also for a read: the line may be written silently later */
    bool tracked = line_info_is_tracked(&h->line_table, info, cpu);
    fill_private(h, cpu, h->private_levels, line, state | (tracked ? TRACKED : 0u), now);
    if (a->is_write && h->is_write_through_all)
        write_through(h, cpu, line, now);
    return s.stall;
}

/* An access to a line that the core has, in a state that the access may change; its innermost entry is given. Returns the cycles that
 * the core waits. */
static uint64_t access_present(struct ongoing_access *a, uint64_t *entry, uint64_t now)
{
    struct hierarchy *h = a->h;
    enum own_event event = coherence_event(a->is_write, a->speculates);
    unsigned state = cache_state(*entry), op = coherence_op(h->protocol, state & STATE_MASK, event), next;
    struct protocol_step s = access_step(a, now);
    bool tracked = state & TRACKED;

    if (op != BUS_NONE || (a->is_write && tracked) || !coherence_silent(h->protocol, state & STATE_MASK, event)) {
        s.is_present = true;
        s.info = line_info_at(&h->line_table, a->part.line);
        s.bytes = line_access_bytes(h, &a->part);
        next = coherence_step(h->protocol, &STEP, &s, a->cpu, state & STATE_MASK, event);
        h->cpu[a->cpu].counts.upgrades += coherence_untagged(op) == BUS_INVALIDATE;
        a->outcome->is_upgrade = coherence_untagged(op) == BUS_INVALIDATE;
        if (next == PROTOCOL_ABSENT) { /* the core was rolled back */
            assert(a->speculates && !h->cpu[a->cpu].speculates);
            return s.stall;
        }
        tracked = line_info_is_tracked(&h->line_table, s.info, a->cpu);
    } else {
        next = coherence_silent(h->protocol, state & STATE_MASK, event);
    }
    set_state(entry, next | (tracked ? TRACKED : 0u)); /* no transaction moves entries of the core that issues it */
    if (a->is_write && h->is_write_through_all)
        write_through(h, a->cpu, a->part.line, now);
    return s.stall;
}

/* Accesses a line below the fast paths; returns the cycles that the core waits. e: its entry in `level`; NULL: no level up to `level` has it. */
static uint64_t access_line(struct ongoing_access *a, uint64_t *e, unsigned level, uint64_t now)
{
    struct hierarchy *h = a->h;
    struct core_caches *core = &h->cpu[a->cpu];
    uint64_t stall;

    if (h->programs)
        h->programs->actor = a->cpu;
    while (!e && ++level < h->private_levels)
        e = cache_find(&core->level[level], a->part.line);
    if (!e)
        return access_miss(a, now);
    core->counts.hits[level]++;
    a->outcome->level = (uint8_t)level;
    stall = h->config.level[level].latency;
    e = cache_touch(&core->level[level], e);
    if (level > 0)
        e = hierarchy_fill_inner(h, a->cpu, level, a->part.line, cache_state(*e), now);
    if (!a->is_write && e && core->hit_states[PEET_LOAD] >> cache_state(*e) & 1)
        return stall;
    if (a->speculates && !core->speculates) /* the fill evicted an unsafe line */
        return stall;
    return stall + (e ? access_present(a, e, now) : access_miss(a, now));
}

/* Whether the TLB has the page of an address, and uses it; true without a TLB. */
static inline bool is_translated(const struct hierarchy *h, struct core_caches *core, uint64_t addr)
{
    uint64_t page = (addr + core->filter.page_offset) >> core->tlb.shift;

    if (!h->config.tlb.entries)
        return true;
    core->tlb_page[cache_set(&core->tlb, page)] = page; /* the TLB has it, or is about to fill it */
    return cache_use(&core->tlb, page);
}

static uint64_t hierarchy_translate(struct hierarchy *h, unsigned cpu, uint64_t addr)
{
    struct core_caches *core = &h->cpu[cpu];

    if (is_translated(h, core, addr))
        return 0;
    cache_put(&core->tlb, (addr + core->filter.page_offset) >> core->tlb.shift, 1);
    core->counts.tlb_misses++;
    core->counts.tlb_stall += h->config.tlb.cost;
    return h->config.tlb.cost;
}

/* Does and counts a hit that only changes the LRU order, and whose page the TLB has, if there is one. */
static inline bool core_reorder_hit(const struct hierarchy *h, struct core_caches *core, uint64_t addr, uint64_t set,
                                    uint64_t *e, enum peet_kind kind)
{
    if (!e || !(core->hit_states[kind] >> cache_state(*e) & 1) || !is_translated(h, core, addr))
        return false;
    const struct cache *c = &core->level[0];
    if (!c->replacement->mru_touch_is_noop || e != c->entry + set * c->ways + cache_recent(c, set))
        core_touch(core, set, e);
    core->filter.hits[kind]++;
    core->filter.reorder_hits++;
    return true;
}

bool hierarchy_reorder_hit(struct hierarchy *h, unsigned cpu, uint64_t addr, uint64_t size, enum peet_kind kind)
{
    struct core_caches *core = &h->cpu[cpu];
    uint64_t line = addr >> core->filter.shift, set;

    if (h->levels == 0 || (addr & (core->filter.line - 1)) + size > core->filter.line)
        return false;
    set = cache_set(&core->level[0], line);
    return core_reorder_hit(h, core, addr, set, cache_last(&core->level[0], line), kind);
}

/* An access to one line that changes more than the LRU order of a set. Entry e of the first level has the line; NULL: no entry there has. */
static __attribute__((noinline)) void access_slow(struct hierarchy *h, const struct memory_access *m, uint64_t *e,
                                                  struct access_outcome *ret)
{
    struct core_caches *core = &h->cpu[m->core];
    struct ongoing_access a = { .h = h,
                                .cpu = m->core,
                                .kind = (enum peet_kind)m->kind,
                                .is_write = m->kind == PEET_STORE || m->kind == PEET_UPDATE,
                                .speculates = core->speculates,
                                .part = { m->addr >> core->filter.shift, m->addr, m->size },
                                .outcome = ret };
    uint64_t line = a.part.line;
    unsigned level = !e && core->l2_entry;

    h->tag = m->tag;
    e = level ? cache_find_in(&core->level[1], line & core->level[1].mask, line) : e;
    if (!h->config.tlb.entries && e) {
        enum local_hit n = level ? core_fill_from_l2(core, line, e, a.kind, false)
                                 : core_write_hit(h, core, e, &a.part, a.kind, false);
        if (n != LOCAL_NONE) {
            ret->level = n == LOCAL_L2_HIT;
            ret->latency = a.kind == PEET_PREFETCH ? 0 : h->config.level[n == LOCAL_L2_HIT].latency;
            return;
        }
    }
    uint64_t waited = core->counts.waited, tlb_stall = core->counts.tlb_stall;
    uint64_t stall = h->config.tlb.entries ? hierarchy_translate(h, a.cpu, a.part.addr) : 0;
    core->counts.writes += a.is_write;
    core->counts.reads += a.kind != PEET_STORE;
    stall += access_line(&a, e, level, m->now + stall);
    l1_filter_refresh(core, cache_set(&core->level[0], line));
    if (a.kind == PEET_PREFETCH) { /* the core does not wait */
        stall = ret->contention = 0;
        core->counts.waited = waited;
        core->counts.tlb_stall = tlb_stall;
    }
    core->counts.stall += stall;
    ret->latency = stall;
}

/* On a machine without caches, each access goes to memory, without contention. Returns its latency. */
static uint64_t access_memory(struct hierarchy *h, const struct memory_access *a)
{
    struct memory_counts *n = &h->cpu[a->core].counts;
    uint64_t latency = a->kind == PEET_PREFETCH ? 0 : h->config.fabric.memory;

    n->writes += a->kind == PEET_STORE || a->kind == PEET_UPDATE;
    n->reads += a->kind != PEET_STORE;
    n->stall += latency;
    return latency;
}

void hierarchy_access_into(struct hierarchy *h, const struct memory_access *a, struct access_outcome *ret)
{
    *ret = (struct access_outcome){ .cause = MISS_KINDS };
    if (h->levels == 0) {
        ret->latency = access_memory(h, a);
    } else {
        assert(a->size <= h->config.level[0].line);
        struct core_caches *core = &h->cpu[a->core];
        uint64_t line = a->addr >> core->filter.shift, set = cache_set(&core->level[0], line);
        uint64_t *e = h->config.tlb.entries ? cache_last(&core->level[0], line) /* the fast paths have not found it */
                                            : cache_find_in(&core->level[0], set, line);
        bool is_hit = core_reorder_hit(h, core, a->addr, set, e, (enum peet_kind)a->kind);
        if (is_hit)
            ret->latency = a->kind == PEET_PREFETCH ? 0 : core->filter.latency;
        else
            access_slow(h, a, e, ret);
        if (core->filter.shadow)
            ret->is_conflict = shadow_tags_use(core->filter.shadow, line) && ret->cause == MISS_replaced;
    }
}

struct access_outcome hierarchy_access(struct hierarchy *h, const struct memory_access *a)
{
    struct access_outcome o;

    hierarchy_access_into(h, a, &o);
    return o;
}

uint64_t hierarchy_fetch(struct hierarchy *h, unsigned cpu, uint64_t addr, uint64_t size, uint64_t now)
{
    struct core_caches *core = &h->cpu[cpu];
    struct cache *c = &core->instructions;
    uint64_t stall = 0;

    if (!c->entry)
        return 0;
    for (uint64_t line = addr >> c->shift; line <= (addr + size - 1) >> c->shift; line++) {
        core->counts.fetches++;
        if (line == core->last_fetch && c->replacement->mru_touch_is_noop) {
            stall += h->config.instructions.latency;
            continue;
        }
        core->last_fetch = line;
        if (cache_use(c, line)) {
            stall += h->config.instructions.latency;
            continue;
        }
        cache_put(c, line, 1);
        core->counts.fetch_misses++;
        if (h->config.instructions.miss) {
            stall += h->config.instructions.miss;
            continue;
        }
        struct transaction t = { .op = BUS_READ,
                                 .cpu = cpu,
                                 .line = line,
                                 .supplier = FABRIC_MEMORY,
                                 .latency = h->fabric.config.memory,
                                 .bytes = h->config.instructions.line,
                                 .home = home_of(h, cpu, line << c->shift >> h->cpu[0].level[0].shift) };
        stall += fabric_transact(&h->fabric, &t, now + stall).done - (now + stall);
    }
    core->counts.fetch_stall += stall;
    return stall;
}

unsigned hierarchy_state(struct hierarchy *h, unsigned cpu, uint64_t addr)
{
    return state_of(h, cpu, addr >> h->cpu[cpu].level[0].shift) & STATE_MASK;
}
