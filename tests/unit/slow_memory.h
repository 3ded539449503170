/* SPDX-License-Identifier: MIT */
/* A reference model of the memory hierarchy of sim/memory/hierarchy.h, simple and slow. It shares no code with src/sim/memory/hierarchy.c and src/sim/cache:
 * a cache is a list of lines with times. The model has one state of a line for each core, and the time of each core's last write to each byte.
 * Protocols are the tables of src/sim. Fabrics have a separate model (slow_fabric.h), so that the fabrics of src/sim are used here: machines that
 * differ in one transaction differ in its time and in the use of the fabric.
 *
 * Whether a line in a shared level is dirty has no effect, and is left out. */
#ifndef TESTS_SLOW_MEMORY_H
#define TESTS_SLOW_MEMORY_H

#include <assert.h>
#include <stdlib.h>

#include "sim/memory/hierarchy.h"

enum { SLOW_CPUS = 8 };

static inline uint64_t slow_page(const struct machine_config *c)
{
    return c->tlb.page ? c->tlb.page : 4096;
}

/* A place for a line. Its times stay when the line goes, and matter to plru then. */
struct slow_line {
    uint64_t line, used, came;
    unsigned expected; /* rrip: 0 soon … 3 never */
    bool is_there;
};

struct slow_cache {
    uint64_t sets;
    unsigned ways;
    const struct replacement *replacement;
    uint64_t random;       /* xorshift64, as every cache has one */
    struct slow_line *way; /* NULL: there is no such cache */
};

/* A line in a processor's eyes. */
struct slow_view {
    uint8_t state;
    bool was_here, was_invalidated;
    uint64_t lost_at;
    uint32_t removed_by;  /* tag of the access that removed the line last; 0: none has */
    uint64_t shadow_used; /* time of its last use in the shadow directory; 0: it is not there */
};

/* What a reference to one line did. */
struct slow_outcome {
    uint64_t latency, contention; /* cycles; those of them in which the fabric was busy */
    unsigned level;               /* that had the line; CONFIG_LEVELS: another core's cache, or memory */
    unsigned cause;               /* enum miss_cause; MISS_KINDS: a private level had the line */
    uint32_t removed_by;          /* of a miss: tag of the access that removed the line; 0: none */
    bool is_conflict;             /* of a miss: a fully associative LRU directory of equal size has the line */
    bool is_upgrade, is_update, from_cache;
};

struct slow_memory {
    struct machine_config config;
    const struct protocol *protocol;
    unsigned cpus, levels, private_levels;
    bool goes_through; /* all private levels let writes through: memory has them all */
    uint64_t first_line, lines, line;
    struct slow_cache level[SLOW_CPUS][CONFIG_LEVELS], shared[CONFIG_LEVELS], tlb[SLOW_CPUS], instructions[SLOW_CPUS];
    struct slow_view *view; /* by line and processor */
    uint64_t *written;      /* by byte and processor: when it wrote there last */
    unsigned *home;         /* by page: 1 + node */
    struct fabric fabric;
    struct memory_counts counts[SLOW_CPUS];
    uint64_t now;                       /* counts references to lines */
    uint64_t uses;                      /* counts what caches are asked for */
    uint32_t tag;                       /* of the access that is simulated */
    uint64_t shadow_lines, shadow_uses; /* lines of each core's shadow directory; uses of all directories */
};

/* ---- one cache ---- */

static inline struct slow_cache slow_cache(uint64_t bytes, uint32_t ways, uint32_t line, const struct replacement *r,
                                           uint64_t seed)
{
    struct slow_cache c = { .ways = ways ? ways : (unsigned)(bytes / line), .replacement = r, .random = seed * 2 + 1 };

    c.sets = bytes / line / c.ways;
    c.way = calloc(c.sets * c.ways, sizeof *c.way);
    assert(c.way);
    return c;
}

static inline struct slow_line *slow_find(const struct slow_cache *c, uint64_t line)
{
    for (unsigned i = 0; i < c->ways; i++) {
        struct slow_line *l = &c->way[line % c->sets * c->ways + i];
        if (l->is_there && l->line == line)
            return l;
    }
    return NULL;
}

static inline bool slow_use(struct slow_memory *m, struct slow_cache *c, uint64_t line)
{
    struct slow_line *l = slow_find(c, line);

    if (l) {
        l->used = ++m->uses;
        l->expected = 0;
    }
    return l;
}

static inline void slow_drop(struct slow_cache *c, uint64_t line)
{
    struct slow_line *l = slow_find(c, line);

    if (l)
        l->is_there = false;
}

static inline uint64_t slow_latest(const struct slow_line *way, unsigned ways)
{
    uint64_t latest = 0;

    for (unsigned i = 0; i < ways; i++)
        latest = way[i].used > latest ? way[i].used : latest;
    return latest;
}

/* The first that is not expected any more; until there is one, all are expected later. */
static inline struct slow_line *slow_unexpected(const struct slow_cache *c, struct slow_line *set)
{
    for (;;) {
        for (unsigned i = 0; i < c->ways; i++)
            if (set[i].expected == 3)
                return &set[i];
        for (unsigned i = 0; i < c->ways; i++)
            set[i].expected++;
    }
}

static inline struct slow_line *slow_any(struct slow_cache *c, struct slow_line *set)
{
    uint64_t x = c->random;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    c->random = x;
    return &set[(x >> 16) % c->ways];
}

/* Of a full set. The tree of plru knows of each half, and of each half of that, whether it was used later than the other one. */
static inline struct slow_line *slow_victim(struct slow_cache *c, struct slow_line *set)
{
    struct slow_line *oldest = set;
    unsigned size = 1, low = 0;

    if (c->replacement == &replacement_rrip)
        return slow_unexpected(c, set);
    if (c->replacement == &replacement_random)
        return slow_any(c, set);
    if (c->replacement != &replacement_plru) {
        bool is_fifo = c->replacement == &replacement_fifo;
        assert(is_fifo || c->replacement == &replacement_lru); /* a new policy needs its rule here */
        for (unsigned i = 1; i < c->ways; i++)
            if (is_fifo ? set[i].came < oldest->came : set[i].used < oldest->used)
                oldest = &set[i];
        return oldest;
    }
    while (size < c->ways)
        size *= 2;
    while (size /= 2) {
        unsigned behind = low + size < c->ways ? c->ways - low - size : 0;
        if (behind && slow_latest(set + low, size) > slow_latest(set + low + size, behind < size ? behind : size))
            low += size;
    }
    return set + low;
}

/* Puts a line that is not there; returns the one that has to go. */
static inline struct slow_line slow_put(struct slow_memory *m, struct slow_cache *c, uint64_t line)
{
    struct slow_line *set = &c->way[line % c->sets * c->ways], *place = NULL, gone;

    assert(!slow_find(c, line));
    for (unsigned i = 0; !place && i < c->ways; i++)
        place = set[i].is_there ? NULL : &set[i];
    place = place ? place : slow_victim(c, set);
    gone = *place;
    m->uses++;
    *place = (struct slow_line){ .line = line, .used = m->uses, .came = m->uses, .expected = 2, .is_there = true };
    return gone;
}

/* ---- making one ---- */

static inline struct slow_cache slow_level(const struct level_config *l, uint64_t seed)
{
    return slow_cache(l->bytes, l->ways, l->line, l->replacement, seed);
}

/* For references to the addresses [first, first + bytes). */
static inline struct slow_memory *slow_new(const struct machine_config *config, uint64_t first, uint64_t bytes)
{
    struct slow_memory *m = calloc(1, sizeof *m);

    assert(m && config->cpus <= SLOW_CPUS);
    *m = (struct slow_memory){
        .config = *config, .protocol = config->protocol, .cpus = config->cpus, .line = config->level[0].line
    };
    m->goes_through = true;
    for (; m->levels < CONFIG_LEVELS && config->level[m->levels].bytes; m->levels++) {
        const struct level_config *l = &config->level[m->levels];
        if (l->is_shared) {
            m->shared[m->levels] = slow_level(l, config->seed + m->levels);
            continue;
        }
        m->private_levels++;
        m->goes_through = m->goes_through && l->is_write_through;
        for (unsigned i = 0; i < m->cpus; i++)
            m->level[i][m->levels] = slow_level(l, config->seed + i * CONFIG_LEVELS + m->levels);
    }
    for (unsigned i = 0; i < m->cpus; i++) {
        if (config->tlb.entries)
            m->tlb[i] = slow_cache((uint64_t)config->tlb.entries * config->tlb.page, config->tlb.ways, config->tlb.page,
                                   config->tlb.replacement, config->seed + i);
        if (config->instructions.bytes)
            m->instructions[i] = slow_level(&config->instructions, config->seed + i);
    }
    m->first_line = first / m->line;
    m->lines = bytes / m->line;
    m->shadow_lines = config->level[m->private_levels - 1].bytes / m->line;
    m->view = calloc(m->lines * m->cpus, sizeof *m->view);
    m->written = calloc(bytes * m->cpus, sizeof *m->written);
    m->home = calloc(bytes / slow_page(config) + 2, sizeof *m->home);
    m->config.fabric.cpus = m->cpus;
    m->config.fabric.line = (uint32_t)m->line;
    assert(m->view && m->written && m->home && fabric_init(&m->fabric, config->fabric_kind, &m->config.fabric) == 0);
    return m;
}

static inline void slow_free(struct slow_memory *m)
{
    for (unsigned i = 0; i < m->cpus; i++) {
        for (unsigned k = 0; k < m->private_levels; k++)
            free(m->level[i][k].way);
        free(m->tlb[i].way);
        free(m->instructions[i].way);
    }
    for (unsigned k = 0; k < CONFIG_LEVELS; k++)
        free(m->shared[k].way);
    fabric_release(&m->fabric);
    free(m->view);
    free(m->written);
    free(m->home);
    free(m);
}

/* ---- lines ---- */

static inline struct slow_view *slow_view(const struct slow_memory *m, unsigned cpu, uint64_t line)
{
    assert(line - m->first_line < m->lines);
    return &m->view[(line - m->first_line) * m->cpus + cpu];
}

/* Whether the core's line is dirty and memory does not have it, so that its eviction writes it back. */
static inline bool slow_owes(const struct slow_memory *m, unsigned cpu, uint64_t line)
{
    return m->protocol->flags[slow_view(m, cpu, line)->state] & STATE_DIRTY && !m->goes_through;
}

static inline void slow_lose(struct slow_memory *m, unsigned cpu, uint64_t line, bool is_invalidated)
{
    struct slow_view *v = slow_view(m, cpu, line);

    for (unsigned i = 0; i < m->private_levels; i++)
        slow_drop(&m->level[cpu][i], line);
    v->state = PROTOCOL_ABSENT;
    v->was_invalidated = is_invalidated;
    v->lost_at = m->now;
    v->removed_by = m->tag;
    v->shadow_used = is_invalidated ? 0 : v->shadow_used;
    m->counts[cpu].invalidations += is_invalidated;
}

static inline void slow_write_bytes(struct slow_memory *m, unsigned cpu, uint64_t addr, uint64_t size)
{
    for (uint64_t at = addr - m->first_line * m->line; size > 0; at++, size--)
        m->written[at * m->cpus + cpu] = m->now;
}

static inline enum miss_cause slow_cause(const struct slow_memory *m, unsigned cpu, uint64_t addr, uint64_t size)
{
    const struct slow_view *v = slow_view(m, cpu, addr / m->line);

    if (!v->was_here)
        return MISS_cold;
    if (!v->was_invalidated)
        return MISS_replaced;
    for (uint64_t at = addr - m->first_line * m->line; size > 0; at++, size--)
        for (unsigned i = 0; i < m->cpus; i++)
            if (i != cpu && m->written[at * m->cpus + i] >= v->lost_at)
                return MISS_true_sharing;
    return MISS_false_sharing;
}

/* ---- shared levels ---- */

static inline void slow_put_shared(struct slow_memory *m, unsigned level, uint64_t line)
{
    struct slow_line gone = slow_put(m, &m->shared[level], line);

    if (!gone.is_there || m->config.level[level].inclusion != INCLUSION_INCLUSIVE)
        return;
    for (unsigned i = m->private_levels; i < level; i++)
        slow_drop(&m->shared[i], gone.line);
    for (unsigned i = 0; i < m->cpus; i++)
        if (slow_view(m, i, gone.line)->state) {
            m->counts[i].write_backs += slow_owes(m, i, gone.line);
            slow_lose(m, i, gone.line, false);
        }
}

/* A processor's cache gives a line to memory: the first shared level has it then. */
static inline void slow_take_back(struct slow_memory *m, uint64_t line)
{
    unsigned level = m->private_levels;

    if (level < m->levels && !slow_use(m, &m->shared[level], line))
        slow_put_shared(m, level, line);
}

/* Memory, or the first shared level that has it, gives a line. Returns after how long. */
static inline uint32_t slow_give(struct slow_memory *m, unsigned cpu, uint64_t line)
{
    unsigned found = m->private_levels;

    while (found < m->levels && !slow_use(m, &m->shared[found], line))
        found++;
    for (unsigned i = found; i-- > m->private_levels;)
        slow_put_shared(m, i, line);
    if (found == m->levels)
        return m->config.fabric.memory;
    m->counts[cpu].hits[found]++;
    return m->config.level[found].latency;
}

/* ---- transactions ---- */

static inline unsigned slow_home(struct slow_memory *m, unsigned cpu, uint64_t line)
{
    uint64_t size = slow_page(&m->config), page = line * m->line / size;
    unsigned *home = &m->home[page - m->first_line * m->line / size];

    if (!m->config.fabric_kind->has_directory)
        return 0;
    if (!m->config.first_touch)
        return (unsigned)(page % m->cpus);
    *home = *home ? *home : 1 + cpu;
    return *home - 1;
}

/* Writes a line or a word to memory; no core waits. */
static inline void slow_send(struct slow_memory *m, unsigned cpu, uint64_t line, uint32_t bytes, uint64_t when)
{
    struct transaction t = {
        .op = BUS_WRITE_BACK, .cpu = cpu, .line = line, .supplier = FABRIC_MEMORY, .bytes = bytes
    };

    t.home = slow_home(m, cpu, line);
    fabric_transact(&m->fabric, &t, when);
}

static inline void slow_write_back(struct slow_memory *m, unsigned cpu, uint64_t line, uint64_t when)
{
    m->counts[cpu].write_backs++;
    slow_send(m, cpu, line, (uint32_t)m->line, when);
    slow_take_back(m, line);
}

static inline void slow_write_through(struct slow_memory *m, unsigned cpu, uint64_t line, uint64_t when)
{
    m->counts[cpu].write_throughs++;
    slow_send(m, cpu, line, 8, when);
}

/* All other cores snoop a transaction. Of several that supply the line, the last one counts. */
static inline bool slow_snoop(struct slow_memory *m, struct transaction *t)
{
    bool is_shared = false;

    for (unsigned i = 0; i < m->cpus; i++) {
        struct slow_view *v = slow_view(m, i, t->line);
        const struct snoop_cell *cell = &m->protocol->snoop[v->state][t->op];
        if (i == t->cpu || v->state == PROTOCOL_ABSENT)
            continue;
        t->sharers |= (uint64_t)1 << i;
        t->supplier = cell->acts & SNOOP_SUPPLY ? (int)i : t->supplier;
        is_shared = is_shared || cell->acts & SNOOP_SHARED;
        if (cell->acts & SNOOP_FLUSH)
            slow_take_back(m, t->line);
        v->state = cell->next;
        if (cell->next == PROTOCOL_ABSENT)
            slow_lose(m, i, t->line, true);
    }
    return is_shared;
}

/* Returns how long it takes. */
static inline uint64_t slow_transact(struct slow_memory *m, unsigned cpu, uint64_t line, unsigned op, uint64_t when,
                                     bool *ret_shared)
{
    struct transaction t = { .op = (uint8_t)op, .cpu = cpu, .line = line, .supplier = FABRIC_MEMORY };

    *ret_shared = slow_snoop(m, &t);
    t.home = slow_home(m, cpu, line);
    if (op == BUS_READ || op == BUS_READ_OWN) {
        t.bytes = (uint32_t)m->line;
        t.latency = t.supplier == FABRIC_MEMORY ? slow_give(m, cpu, line) : m->config.fabric.transfer;
        m->counts[cpu].from_caches += t.supplier != FABRIC_MEMORY;
    }
    if (op == BUS_UPDATE) {
        t.bytes = 8;
        m->counts[cpu].updates++;
    }
    struct fabric_time time = fabric_transact(&m->fabric, &t, when);
    m->counts[cpu].waited += time.waited;
    return time.done - when;
}

/* ---- private levels ---- */

static inline bool slow_has(const struct slow_memory *m, unsigned cpu, unsigned from, unsigned to, uint64_t line)
{
    for (unsigned i = from; i < to; i++)
        if (slow_find(&m->level[cpu][i], line))
            return true;
    return false;
}

/* A level has given up a line. */
static inline void slow_push_out(struct slow_memory *m, unsigned cpu, unsigned level, uint64_t line, uint64_t when)
{
    bool is_inclusive = m->config.level[level].inclusion == INCLUSION_INCLUSIVE;

    if (slow_view(m, cpu, line)->state == PROTOCOL_ABSENT)
        return; /* another level gave it up at the same time, and it has left already */
    if (!is_inclusive && slow_has(m, cpu, 0, level, line))
        return;
    for (unsigned i = 0; i < level; i++)
        slow_drop(&m->level[cpu][i], line);
    if (slow_has(m, cpu, level + 1, m->private_levels, line))
        return;
    bool is_dirty = m->protocol->flags[slow_view(m, cpu, line)->state] & STATE_DIRTY, owes = slow_owes(m, cpu, line);
    if (is_dirty && level + 1 < m->private_levels) {
        struct slow_line gone = slow_put(m, &m->level[cpu][level + 1], line);
        if (gone.is_there)
            slow_push_out(m, cpu, level + 1, gone.line, when);
        return;
    }
    slow_lose(m, cpu, line, false);
    if (owes)
        slow_write_back(m, cpu, line, when);
}

/* A line comes into the levels before `level`. What they give up goes from the outermost on. */
static inline void slow_fill(struct slow_memory *m, unsigned cpu, unsigned level, uint64_t line, uint64_t when)
{
    struct slow_line gone[CONFIG_LEVELS];

    for (unsigned i = 0; i < level; i++)
        gone[i] = slow_put(m, &m->level[cpu][i], line);
    for (unsigned i = level; i-- > 0;)
        if (gone[i].is_there)
            slow_push_out(m, cpu, i, gone[i].line, when);
}

/* ---- references ---- */

/* A write without fill: the word is written to memory, and no cache keeps the line. */
static inline void slow_write_around(struct slow_memory *m, unsigned cpu, uint64_t line, uint64_t when)
{
    int owner = -1;

    for (unsigned i = 0; i < m->cpus; i++) {
        if (!slow_view(m, i, line)->state)
            continue;
        owner = slow_owes(m, i, line) ? (int)i : owner;
        slow_lose(m, i, line, true);
    }
    if (owner >= 0)
        slow_write_back(m, (unsigned)owner, line, when);
    slow_write_through(m, cpu, line, when);
}

static inline uint64_t slow_miss(struct slow_memory *m, unsigned cpu, uint64_t addr, uint64_t size, enum peet_kind kind,
                                 uint64_t when)
{
    bool is_write = kind == PEET_STORE || kind == PEET_UPDATE, is_shared;
    const struct own_cell *cell = &m->protocol->own[PROTOCOL_ABSENT][is_write ? OWN_WRITE : OWN_READ];
    uint64_t line = addr / m->line, stall;

    m->counts[cpu].misses++;
    m->counts[cpu].causes[slow_cause(m, cpu, addr, size)]++;
    if (kind == PEET_STORE && !m->config.level[0].allocates) {
        slow_write_around(m, cpu, line, when);
        return 0;
    }
    stall = slow_transact(m, cpu, line, cell->op, when, &is_shared);
    if (is_write && is_shared && cell->then)
        stall += slow_transact(m, cpu, line, cell->then, when + stall, &is_shared);
    struct slow_view *v = slow_view(m, cpu, line);
    v->state = is_shared ? cell->shared : cell->alone;
    v->was_here = true;
    v->was_invalidated = false;
    v->lost_at = 0;
    slow_fill(m, cpu, m->private_levels, line, when);
    if (is_write && m->goes_through)
        slow_write_through(m, cpu, line, when);
    return stall;
}

/* A write to a line that the processor has. */
static inline uint64_t slow_write(struct slow_memory *m, unsigned cpu, uint64_t line, uint64_t when)
{
    struct slow_view *v = slow_view(m, cpu, line);
    const struct own_cell *cell = &m->protocol->own[v->state][OWN_WRITE];
    bool is_shared = false;
    uint64_t stall = 0;

    if (cell->op != BUS_NONE) {
        stall = slow_transact(m, cpu, line, cell->op, when, &is_shared);
        m->counts[cpu].upgrades += cell->op == BUS_INVALIDATE;
    }
    v->state = is_shared ? cell->shared : cell->alone;
    if (m->goes_through)
        slow_write_through(m, cpu, line, when);
    return stall;
}

static inline uint64_t slow_access_line(struct slow_memory *m, unsigned cpu, uint64_t addr, uint64_t size,
                                        enum peet_kind kind, uint64_t when)
{
    bool is_write = kind == PEET_STORE || kind == PEET_UPDATE;
    uint64_t line = addr / m->line, stall;
    unsigned level = 0;

    while (level < m->private_levels && !slow_use(m, &m->level[cpu][level], line))
        level++;
    assert((level < m->private_levels) == (slow_view(m, cpu, line)->state != PROTOCOL_ABSENT));
    if (level == m->private_levels) {
        stall = slow_miss(m, cpu, addr, size, kind, when);
    } else {
        m->counts[cpu].hits[level]++;
        stall = m->config.level[level].latency;
        slow_fill(m, cpu, level, line, when);
        assert(slow_view(m, cpu, line)->state); /* what makes room here takes nothing away from the shared levels */
        stall += is_write ? slow_write(m, cpu, line, when) : 0;
    }
    if (is_write)
        slow_write_bytes(m, cpu, addr, size);
    return stall;
}

/* A reference to one line. No core waits for a prefetch. */
static inline uint64_t slow_refer(struct slow_memory *m, unsigned cpu, uint64_t addr, uint64_t size,
                                  enum peet_kind kind, uint64_t when)
{
    struct memory_counts *n = &m->counts[cpu];
    uint64_t stall = 0, waited = n->waited;

    m->now++;
    n->reads += kind != PEET_STORE;
    n->writes += kind == PEET_STORE || kind == PEET_UPDATE;
    if (m->config.tlb.entries && !slow_use(m, &m->tlb[cpu], addr / m->config.tlb.page)) {
        slow_put(m, &m->tlb[cpu], addr / m->config.tlb.page);
        stall = m->config.tlb.cost;
        n->tlb_misses++;
        n->tlb_stall += kind == PEET_PREFETCH ? 0 : stall;
    }
    stall += slow_access_line(m, cpu, addr, size, kind, when + stall);
    if (kind == PEET_PREFETCH) {
        n->waited = waited;
        return 0;
    }
    n->stall += stall;
    return stall;
}

/* Uses a line in the core's shadow directory, and returns whether it was there. The line that was used least recently makes room. */
static inline bool slow_shadow_use(struct slow_memory *m, unsigned cpu, uint64_t line)
{
    struct slow_view *v = slow_view(m, cpu, line), *oldest = NULL;
    bool was_there = v->shadow_used != 0;
    uint64_t count = 0;

    v->shadow_used = ++m->shadow_uses;
    for (uint64_t i = 0; i < m->lines; i++) {
        struct slow_view *other = &m->view[i * m->cpus + cpu];
        count += other->shadow_used != 0;
        if (other->shadow_used && (!oldest || other->shadow_used < oldest->shadow_used))
            oldest = other;
    }
    if (count > m->shadow_lines)
        oldest->shadow_used = 0;
    return was_there;
}

/* A reference to bytes of one line, and what it did, by what the core has counted before and after it. */
static inline struct slow_outcome slow_outcome(struct slow_memory *m, unsigned cpu, uint64_t addr, uint64_t size,
                                               enum peet_kind kind, uint64_t when, uint32_t tag)
{
    const struct memory_counts before = m->counts[cpu], *after = &m->counts[cpu];
    struct slow_outcome o = { .cause = MISS_KINDS, .removed_by = slow_view(m, cpu, addr / m->line)->removed_by };

    m->tag = tag;
    o.latency = slow_refer(m, cpu, addr, size, kind, when);
    o.contention = after->waited - before.waited;
    for (unsigned i = 0; i < CONFIG_LEVELS; i++)
        o.level = after->hits[i] != before.hits[i] ? i : o.level;
    if (after->misses != before.misses && !m->config.level[o.level].is_shared)
        o.level = CONFIG_LEVELS;
    for (unsigned i = 0; i < MISS_KINDS; i++)
        o.cause = after->causes[i] != before.causes[i] ? i : o.cause;
    o.is_upgrade = after->upgrades != before.upgrades;
    o.is_update = after->updates != before.updates;
    o.from_cache = after->from_caches != before.from_caches;
    bool was_there = slow_shadow_use(m, cpu, addr / m->line);
    o.is_conflict = o.cause == MISS_replaced && was_there;
    o.removed_by = o.cause == MISS_KINDS ? 0 : o.removed_by;
    return o;
}

static inline uint64_t slow_access(struct slow_memory *m, unsigned cpu, uint64_t addr, uint64_t size,
                                   enum peet_kind kind, uint64_t when)
{
    uint64_t stall = 0, end = addr + size;

    while (addr < end) {
        uint64_t next = (addr / m->line + 1) * m->line, to = next < end ? next : end;
        stall += slow_refer(m, cpu, addr, to - addr, kind, when + stall);
        addr = to;
    }
    return stall;
}

static inline uint64_t slow_fetch(struct slow_memory *m, unsigned cpu, uint64_t addr, uint64_t size, uint64_t when)
{
    uint64_t bytes = m->config.instructions.line, stall = 0;

    if (!m->config.instructions.bytes)
        return 0;
    for (uint64_t line = addr / bytes; line <= (addr + size - 1) / bytes; line++) {
        m->counts[cpu].fetches++;
        if (slow_use(m, &m->instructions[cpu], line)) {
            stall += m->config.instructions.latency;
            continue;
        }
        slow_put(m, &m->instructions[cpu], line);
        m->counts[cpu].fetch_misses++;
        if (m->config.instructions.miss) {
            stall += m->config.instructions.miss;
            continue;
        }
        struct transaction t = { .op = BUS_READ, .cpu = cpu, .line = line, .supplier = FABRIC_MEMORY };
        t.latency = m->config.fabric.memory;
        t.bytes = m->config.instructions.line;
        t.home = slow_home(m, cpu, line * bytes / m->line);
        stall += fabric_transact(&m->fabric, &t, when + stall).done - (when + stall);
    }
    m->counts[cpu].fetch_stall += stall;
    return stall;
}

/* ---- what must hold whatever happened ---- */

/* What is wrong with a line; NULL: nothing. */
static inline const char *slow_complaint(const struct slow_memory *m, uint64_t line)
{
    unsigned copies = 0, writable = 0, dirty = 0;

    for (unsigned i = 0; i < m->cpus; i++) {
        unsigned state = slow_view(m, i, line)->state;
        copies += state != PROTOCOL_ABSENT;
        writable += (m->protocol->flags[state] & STATE_WRITABLE) != 0;
        dirty += (m->protocol->flags[state] & STATE_DIRTY) != 0;
        if ((state != PROTOCOL_ABSENT) != slow_has(m, i, 0, m->private_levels, line))
            return "a processor has a state and no line, or a line and no state";
        for (unsigned k = 1; k < m->private_levels; k++)
            if (m->config.level[k].inclusion == INCLUSION_INCLUSIVE && slow_has(m, i, 0, k, line)
                && !slow_has(m, i, k, k + 1, line))
                return "an inclusive level does not have what those before it have";
    }
    bool is_before = copies > 0;
    for (unsigned k = m->private_levels; k < m->levels; k++) {
        bool is_here = slow_find(&m->shared[k], line);
        if (m->config.level[k].inclusion == INCLUSION_INCLUSIVE && is_before && !is_here)
            return "an inclusive shared level does not have what those before it have";
        is_before = is_before || is_here;
    }
    if (writable && copies > 1)
        return "others have a line that one may write silently";
    return dirty > 1 ? "two caches would write the line back" : NULL;
}

#endif
