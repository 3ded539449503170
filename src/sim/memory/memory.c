/* SPDX-License-Identifier: MIT */
#include "sim/memory/memory.h"

#include <assert.h>
#include <string.h>

#include "sim/memory/core_local.h"

enum { SHARED_CLEAN = 1, SHARED_DIRTY = 2 }; /* of a line in a shared level */

/* ---- lines and states ---- */

static bool is_dirty(const struct memory *m, unsigned state)
{
    return m->protocol->flags[state & STATE_MASK] & STATE_DIRTY;
}

/* Memory does not have what is in it. */
static bool must_be_written(const struct memory *m, unsigned state)
{
    return is_dirty(m, state) && !m->goes_through;
}

/* The valid state of a line that a processor has: that of the innermost level. 0: it has not. */
static unsigned state_of(struct memory *m, unsigned cpu, uint64_t line)
{
    for (unsigned i = 0; i < m->private_levels; i++) {
        const uint64_t *e = cache_find(&m->cpu[cpu].level[i], line);
        if (e)
            return cache_state(*e);
    }
    return PROTOCOL_ABSENT;
}

/* Another processor is about to change the state of a line here by a transaction, and will look at it before. */
static void announce(struct memory *m, unsigned cpu, uint64_t line, unsigned op)
{
    if (m->watcher)
        m->watcher(m->watching, cpu, line, op == BUS_READ && m->reads_stay);
}

/* A processor has a line no more. */
static void lose(struct memory *m, struct history *h, uint64_t line, unsigned cpu, enum lost how)
{
    history_go(&m->histories, h, cpu, how);
    if (m->programs && how == REPLACED)
        programs_evict(m->programs, line, m->programs->private);
    if (m->loser)
        m->loser(m->losing, cpu, line, how);
}

/* It has. */
static void change_state(struct memory *m, unsigned cpu, uint64_t line, unsigned state)
{
    struct processor *p = &m->cpu[cpu];

    p->front.changes++; /* behind what the watcher still does */
    for (unsigned i = 0; i < m->private_levels; i++) {
        uint64_t *e = cache_find(&p->level[i], line);
        if (e && state)
            set_state(e, state);
        else if (e)
            cache_drop(&p->level[i], e);
    }
    near_refresh(p, cache_set(&p->level[0], line));
}

static unsigned home_of(struct memory *m, unsigned cpu, uint64_t line)
{
    uint64_t page = line << m->cpu[0].level[0].shift >> m->page_shift;

    if (!m->has_directory)
        return 0;
    if (!m->config.first_touch)
        return (unsigned)(page % m->cpus);
    uint32_t *home = map_put(&m->homes, page, 0);
    assert(home);
    if (!*home)
        *home = 1 + cpu;
    return *home - 1;
}

/* ---- shared levels and memory ---- */

/* A line goes out of a shared level. If that is inclusive, it goes out of everybody's caches. */
static void leave_shared(struct memory *m, unsigned level, uint64_t entry)
{
    uint64_t line = entry >> CACHE_STATE_BITS;
    struct history *h = NULL;

    if (m->programs && level + 1 == m->levels)
        programs_evict(m->programs, line, m->programs->shared);
    if (m->config.level[level].inclusion == INCLUSION_INCLUSIVE) {
        for (unsigned i = m->private_levels; i < level; i++) {
            uint64_t *e = cache_find(&m->shared[i], line);
            if (e)
                cache_drop(&m->shared[i], e);
        }
        h = history_at(&m->histories, line);
        for (uint64_t left = h->present; left; left &= left - 1) {
            unsigned cpu = (unsigned)__builtin_ctzll(left);
            announce(m, cpu, line, BUS_READ_OWN);
            m->cpu[cpu].counts.write_backs += must_be_written(m, state_of(m, cpu, line));
            change_state(m, cpu, line, PROTOCOL_ABSENT);
            lose(m, h, line, cpu, REPLACED);
        }
    }
    if (level + 1 < m->levels && cache_state(entry) == SHARED_DIRTY) {
        uint64_t *e = cache_find(&m->shared[level + 1], line);
        if (e) /* else it goes to memory, where there is always room */
            set_state(e, SHARED_DIRTY);
    }
}

static void put_shared(struct memory *m, unsigned level, uint64_t line, unsigned state)
{
    uint64_t gone = cache_put(&m->shared[level], line, state);

    if (gone)
        leave_shared(m, level, gone);
}

/* A line comes out of a private cache: the first shared level takes it, or memory. */
static void take_back(struct memory *m, uint64_t line)
{
    if (m->private_levels == m->levels)
        return; /* memory has room for all of them */
    struct cache *c = &m->shared[m->private_levels];
    uint64_t *e = cache_find(c, line);
    if (e)
        set_state(cache_touch(c, e), SHARED_DIRTY);
    else
        put_shared(m, m->private_levels, line, SHARED_DIRTY);
}

/* What is behind the private caches gives a line; returns how long that takes. It is in all shared levels then. */
static uint32_t give(struct memory *m, unsigned cpu, uint64_t line)
{
    unsigned found = m->private_levels;
    uint32_t latency = m->fabric.config.memory;

    for (; found < m->levels; found++) {
        uint64_t *e = cache_find(&m->shared[found], line);
        if (!e)
            continue;
        cache_touch(&m->shared[found], e);
        latency = m->config.level[found].latency;
        m->cpu[cpu].counts.hits[found]++;
        break;
    }
    for (unsigned i = found; i-- > m->private_levels;)
        put_shared(m, i, line, SHARED_CLEAN);
    return latency;
}

/* ---- transactions ---- */

/* What a transaction heard, and how long it took. */
struct heard {
    bool shared;
    uint64_t stall;
};

/* All others see it and do what their tables say. */
static void snoop(struct memory *m, unsigned cpu, uint64_t line, unsigned op, struct history *h, struct transaction *t,
                  bool *ret_shared)
{
    for (uint64_t left = h->present & ~((uint64_t)1 << cpu); left; left &= left - 1) {
        unsigned other = (unsigned)__builtin_ctzll(left);
        announce(m, other, line, op);
        unsigned state = state_of(m, other, line) & STATE_MASK;
        const struct snoop_cell *cell = &m->protocol->snoop[state][op];
        assert(state);
        t->sharers |= (uint64_t)1 << other;
        *ret_shared |= (cell->acts & SNOOP_SHARED) != 0;
        if (cell->acts & SNOOP_SUPPLY)
            t->supplier = (int)other;
        if (cell->acts & SNOOP_FLUSH)
            take_back(m, line);
        if (cell->next != state)
            change_state(m, other, line, cell->next);
        if (cell->next == PROTOCOL_ABSENT) {
            lose(m, h, line, other, INVALIDATED);
            m->cpu[other].counts.invalidations++;
        }
    }
}

static struct heard transact(struct memory *m, unsigned cpu, uint64_t line, unsigned op, struct history *h,
                             uint64_t now)
{
    struct transaction t = { .op = (uint8_t)op, .cpu = cpu, .line = line, .supplier = FABRIC_MEMORY };
    struct heard heard = { 0 };

    snoop(m, cpu, line, op, h, &t, &heard.shared);
    t.home = home_of(m, cpu, line);
    if (op == BUS_READ || op == BUS_READ_OWN) {
        t.bytes = m->config.level[0].line;
        t.latency = t.supplier == FABRIC_MEMORY ? give(m, cpu, line) : m->fabric.config.transfer;
        m->cpu[cpu].counts.from_caches += t.supplier != FABRIC_MEMORY;
    } else {
        t.bytes = op == BUS_UPDATE ? 8 : op == BUS_WRITE_BACK ? m->config.level[0].line : 0;
        m->cpu[cpu].counts.updates += op == BUS_UPDATE;
    }
    struct fabric_time time = fabric_transact(&m->fabric, &t, now);
    m->cpu[cpu].counts.waited += time.waited;
    heard.stall = time.done - now;
    return heard;
}

/* ---- filling and pushing out ---- */

/* A line goes to memory, and nobody waits. */
static void write_back(struct memory *m, unsigned cpu, uint64_t line, uint64_t now)
{
    struct transaction t = { .op = BUS_WRITE_BACK,
                             .cpu = cpu,
                             .line = line,
                             .supplier = FABRIC_MEMORY,
                             .bytes = m->config.level[0].line,
                             .home = home_of(m, cpu, line) };

    m->cpu[cpu].counts.write_backs++;
    fabric_transact(&m->fabric, &t, now);
    take_back(m, line);
}

/* An entry has gone out of a private level. */
static void push_out(struct memory *m, unsigned cpu, unsigned level, uint64_t entry, uint64_t now)
{
    struct processor *p = &m->cpu[cpu];
    uint64_t line = entry >> CACHE_STATE_BITS;
    unsigned state = cache_state(entry);

    /* If a level behind this one gave it up, too, it may have left already. */
    if (level + 1 < m->private_levels && !(history_at(&m->histories, line)->present >> cpu & 1))
        return;
    for (unsigned i = level; i-- > 0;) { /* the innermost comes last, and its state is the valid one */
        uint64_t *e = cache_find(&p->level[i], line);
        if (!e)
            continue;
        if (m->config.level[level].inclusion != INCLUSION_INCLUSIVE)
            return; /* the processor still has it */
        state = cache_state(*e);
        cache_drop(&p->level[i], e);
        near_refresh(p, cache_set(&p->level[0], line));
        p->front.changes++;
    }
    for (unsigned i = level + 1; i < m->private_levels; i++) {
        uint64_t *e = cache_find(&p->level[i], line);
        if (e) {
            set_state(e, state);
            return;
        }
    }
    if (is_dirty(m, state) && level + 1 < m->private_levels) {
        uint64_t gone = cache_put(&p->level[level + 1], line, state);
        if (gone)
            push_out(m, cpu, level + 1, gone, now);
        return;
    }
    lose(m, history_at(&m->histories, line), line, cpu, REPLACED);
    if (must_be_written(m, state))
        write_back(m, cpu, line, now);
}

/* A line has just come into both levels. Where the one that made room for it in the first is in the second, if it was there when it came; else
 * where another one is. */
static uint64_t *exchange(struct processor *p, uint64_t line)
{
    const struct cache *first = &p->level[0], *second = &p->level[1];
    uint64_t set = cache_set(first, line), behind = cache_set(second, line);
    uint32_t *at = &p->behind[set * first->ways + cache_recent(first, set)], before = *at;

    *at = (uint32_t)(behind * second->ways + cache_recent(second, behind));
    return second->entry + before;
}

/* Puts a line into the private levels before `level`. What has to go for it goes when it is in all of them, for that may push a
 * line out of a shared level, and so this one again. */
static void fill(struct memory *m, unsigned cpu, unsigned level, uint64_t line, unsigned state, uint64_t now)
{
    uint64_t gone[CONFIG_LEVELS];

    for (unsigned i = 0; i < level; i++)
        gone[i] = cache_put(&m->cpu[cpu].level[i], line, state);
    uint64_t *guess = m->cpu[cpu].behind && level == 2 ? exchange(&m->cpu[cpu], line) : NULL;
    /* The innermost state is the valid one, also of a line that several levels give up. What the first level gave up and another one
     * still has needs no more than that: most often there is nothing else to do. */
    for (unsigned i = 0; i < level; i++) {
        bool is_behind = false;
        for (unsigned k = i + 1; gone[i] && k < m->private_levels; k++) {
            uint64_t *e = guess && *guess >> CACHE_STATE_BITS == gone[i] >> CACHE_STATE_BITS && cache_state(*guess)
                              ? guess
                              : cache_find(&m->cpu[cpu].level[k], gone[i] >> CACHE_STATE_BITS);
            if (e)
                set_state(e, cache_state(gone[i]));
            if (k < level && gone[k] && gone[k] >> CACHE_STATE_BITS == gone[i] >> CACHE_STATE_BITS)
                gone[k] = gone[i];
            is_behind |= e != NULL;
        }
        gone[i] = i == 0 && is_behind ? 0 : gone[i];
    }
    for (unsigned i = level; i-- > 0;)
        if (gone[i])
            push_out(m, cpu, i, gone[i], now);
}

/* A line that another private level has comes into those before it; returns its entry in the first, or NULL if it is gone again. Most
 * often that is the only one before it, and what has to go is in the next one still. */
static uint64_t *bring(struct memory *m, unsigned cpu, unsigned level, uint64_t line, unsigned state, uint64_t now)
{
    struct processor *p = &m->cpu[cpu];
    struct cache *first = &p->level[0];

    if (level > 1) {
        fill(m, cpu, level, line, state, now);
        return cache_find(first, line);
    }
    uint64_t gone = cache_put(first, line, state);
    uint64_t *behind = gone ? cache_find(&p->level[1], gone >> CACHE_STATE_BITS) : NULL;
    bool is_behind = behind != NULL;
    if (behind)
        set_state(behind, cache_state(gone));
    for (unsigned i = 2; gone && i < m->private_levels; i++) {
        uint64_t *e = cache_find(&p->level[i], gone >> CACHE_STATE_BITS);
        if (e)
            set_state(e, cache_state(gone));
        is_behind |= e != NULL;
    }
    if (gone && !is_behind) {
        push_out(m, cpu, 0, gone, now);
        return cache_find(first, line);
    }
    return cache_last(first, line);
}

/* ---- references ---- */

/* The word goes on to memory. */
static void write_through(struct memory *m, unsigned cpu, uint64_t line, uint64_t now)
{
    struct transaction t = { .op = BUS_WRITE_BACK,
                             .cpu = cpu,
                             .line = line,
                             .supplier = FABRIC_MEMORY,
                             .bytes = 8,
                             .home = home_of(m, cpu, line) };

    m->cpu[cpu].counts.throughs++;
    fabric_transact(&m->fabric, &t, now);
}

/* A processor has to ask others. */
static uint64_t miss(struct memory *m, unsigned cpu, const struct part *part, enum peet_kind kind, uint64_t now)
{
    bool is_write = kind == PEET_STORE || kind == PEET_UPDATE;
    uint64_t line = part->line;
    struct line_bytes bytes = bytes_of(m, part);
    const struct own_cell *cell = &m->protocol->own[PROTOCOL_ABSENT][is_write ? OWN_WRITE : OWN_READ];
    struct history *h = history_at(&m->histories, line);
    struct memory_counts *n = &m->cpu[cpu].counts;

    for (uint64_t left = h->present; left; left &= left - 1) /* what they wrote before their time is no cause */
        announce(m, (unsigned)__builtin_ctzll(left), line, cell->op);
    n->misses++;
    n->causes[history_cause(&m->histories, h, cpu, bytes)]++;
    if (kind == PEET_STORE && !m->config.level[0].allocates) { /* the word goes to memory; nobody keeps what it was */
        int owner = FABRIC_MEMORY;                             /* the only one who has what others wrote before */
        for (uint64_t left = h->present; left; left &= left - 1) {
            unsigned other = (unsigned)__builtin_ctzll(left);
            announce(m, other, line, BUS_READ_OWN);
            if (must_be_written(m, state_of(m, other, line)))
                owner = (int)other;
            change_state(m, other, line, PROTOCOL_ABSENT);
            lose(m, h, line, other, INVALIDATED);
            m->cpu[other].counts.invalidations++;
        }
        if (owner != FABRIC_MEMORY)
            write_back(m, (unsigned)owner, line, now);
        history_write(&m->histories, h, cpu, bytes);
        write_through(m, cpu, line, now);
        return 0;
    }
    struct heard heard = transact(m, cpu, line, cell->op, h, now);
    uint64_t stall = heard.stall;
    if (cell->then && heard.shared) {
        heard = transact(m, cpu, line, cell->then, h, now + stall);
        stall += heard.stall;
    }
    history_come(h, cpu);
    if (m->programs)
        programs_bring(m->programs, cpu, line);
    if (is_write)
        history_write(&m->histories, h, cpu, bytes);
    bool watched = history_is_watched(&m->histories, h, cpu); /* also if it is read: it may be written silently later */
    fill(m, cpu, m->private_levels, line, (heard.shared ? cell->shared : cell->alone) | (watched ? WATCHED : 0u), now);
    if (is_write && m->goes_through)
        write_through(m, cpu, line, now);
    return stall;
}

/* A write to a line that the processor has; its innermost entry is given. */
static uint64_t write_here(struct memory *m, unsigned cpu, const struct part *part, uint64_t *entry, uint64_t now)
{
    uint64_t line = part->line;
    unsigned state = cache_state(*entry), next;
    const struct own_cell *cell = &m->protocol->own[state & STATE_MASK][OWN_WRITE];
    uint64_t stall = 0;
    bool watched = false;

    if (cell->op == BUS_NONE) {
        next = cell->alone;
        if (state & WATCHED) {
            struct history *h = history_at(&m->histories, line);
            history_write(&m->histories, h, cpu, bytes_of(m, part));
            watched = history_is_watched(&m->histories, h, cpu);
        }
    } else {
        struct history *h = history_at(&m->histories, line);
        struct heard heard = transact(m, cpu, line, cell->op, h, now);
        next = heard.shared ? cell->shared : cell->alone;
        stall = heard.stall;
        m->cpu[cpu].counts.upgrades +=
            cell->op == BUS_INVALIDATE; /* else it is an update, which transact has counted */
        history_write(&m->histories, h, cpu, bytes_of(m, part));
        watched = history_is_watched(&m->histories, h, cpu);
    }
    set_state(entry, next | (watched ? WATCHED : 0u)); /* no transaction moves entries of who asks */
    if (m->goes_through)
        write_through(m, cpu, line, now);
    return stall;
}

/* The entry of the line in one of the first two levels is given, or NULL. */
static uint64_t access_line(struct memory *m, unsigned cpu, const struct part *part, uint64_t *e, unsigned level,
                            enum peet_kind kind, uint64_t now)
{
    struct processor *p = &m->cpu[cpu];
    bool is_write = kind == PEET_STORE || kind == PEET_UPDATE;
    uint64_t stall;

    if (m->programs)
        m->programs->actor = cpu;
    while (!e && ++level < m->private_levels)
        e = cache_find(&p->level[level], part->line);
    if (!e)
        return miss(m, cpu, part, kind, now);
    p->counts.hits[level]++;
    stall = m->config.level[level].latency;
    e = cache_touch(&p->level[level], e);
    if (level > 0)
        e = bring(m, cpu, level, part->line, cache_state(*e), now);
    if (!is_write)
        return stall;
    return stall + (e ? write_here(m, cpu, part, e, now) : miss(m, cpu, part, kind, now));
}

/* Whether the TLB has the page of an address, if there is one; that is used then. */
static inline bool is_translated(const struct memory *m, struct processor *p, uint64_t addr)
{
    uint64_t page = (addr + p->front.page_offset) >> p->tlb.shift;

    if (!m->config.tlb.entries)
        return true;
    p->page[cache_set(&p->tlb, page)] = page; /* or it is about to come */
    return cache_use(&p->tlb, page);
}

static uint64_t translate(struct memory *m, unsigned cpu, uint64_t addr)
{
    struct processor *p = &m->cpu[cpu];

    if (is_translated(m, p, addr))
        return 0;
    cache_put(&p->tlb, (addr + p->front.page_offset) >> p->tlb.shift, 1);
    p->counts.tlb_misses++;
    p->counts.tlb_stall += m->config.tlb.cost;
    return m->config.tlb.cost;
}

/* A reference that is smooth, or would be if there were no TLB, and whose page that has. */
static inline bool refer_smoothly(const struct memory *m, struct processor *p, uint64_t addr, uint64_t set, uint64_t *e,
                                  enum peet_kind kind)
{
    if (!e || !(p->found[kind] >> cache_state(*e) & 1) || !is_translated(m, p, addr))
        return false;
    const struct cache *c = &p->level[0];
    if (!c->replacement->is_calm || e != c->entry + set * c->ways + cache_recent(c, set))
        near_touch(p, set, e);
    p->front.easy[kind]++;
    p->front.smooth++;
    return true;
}

bool memory_refer_smoothly(struct memory *m, unsigned cpu, uint64_t addr, uint64_t size, enum peet_kind kind)
{
    struct processor *p = &m->cpu[cpu];
    uint64_t line = addr >> p->front.shift, set;

    if (m->levels == 0 || (addr & (p->front.line - 1)) + size > p->front.line)
        return false;
    set = cache_set(&p->level[0], line);
    return refer_smoothly(m, p, addr, set, cache_last(&p->level[0], line), kind);
}

/* A reference to one line that is not smooth; its entry in the first level is given, or NULL. */
static __attribute__((noinline)) uint64_t refer_other(struct memory *m, struct processor *p, const struct part *part,
                                                      uint64_t *e, enum peet_kind kind, uint64_t now)
{
    bool is_write = kind == PEET_STORE || kind == PEET_UPDATE;
    uint64_t line = part->line;
    unsigned level = !e && p->behind;

    e = level ? cache_find_in(&p->level[1], line & p->level[1].mask, line) : e;
    if (!m->config.tlb.entries && e) {
        enum near n = level ? near_bring(m, p, line, e, kind, false) : near_write(m, p, e, part, kind, false);
        if (n != NEAR_NOT)
            return kind == PEET_PREFETCH ? 0 : m->config.level[n == NEAR_BEHIND].latency;
    }
    uint64_t waited = p->counts.waited, tlb_stall = p->counts.tlb_stall;
    uint64_t stall = m->config.tlb.entries ? translate(m, p->number, part->addr) : 0;
    p->counts.writes += is_write;
    p->counts.reads += kind != PEET_STORE;
    stall += access_line(m, p->number, part, e, level, kind, now + stall);
    near_refresh(p, cache_set(&p->level[0], line));
    if (kind == PEET_PREFETCH) { /* nobody waits for it */
        stall = 0;
        p->counts.waited = waited;
        p->counts.tlb_stall = tlb_stall;
    }
    p->counts.stall += stall;
    return stall;
}

/* A reference to one line. */
static inline uint64_t refer(struct memory *m, struct processor *p, uint64_t addr, uint64_t size, enum peet_kind kind,
                             uint64_t now)
{
    uint64_t line = addr >> p->front.shift, set = cache_set(&p->level[0], line);
    uint64_t *e = m->config.tlb.entries ? cache_last(&p->level[0], line) /* which was not looked at yet */
                                        : cache_find_in(&p->level[0], set, line);

    if (!refer_smoothly(m, p, addr, set, e, kind))
        return refer_other(m, p, &(struct part){ line, addr, size }, e, kind, now);
    return kind == PEET_PREFETCH ? 0 : p->front.latency;
}

/* A machine without caches: every reference goes to memory, and nobody is in the way. */
static uint64_t refer_directly(struct memory *m, unsigned cpu, enum peet_kind kind)
{
    struct memory_counts *n = &m->cpu[cpu].counts;
    uint64_t stall = kind == PEET_PREFETCH ? 0 : m->config.fabric.memory;

    n->writes += kind == PEET_STORE || kind == PEET_UPDATE;
    n->reads += kind != PEET_STORE;
    n->stall += stall;
    return stall;
}

uint64_t memory_access(struct memory *m, unsigned cpu, uint64_t addr, uint64_t size, enum peet_kind kind, uint64_t now)
{
    uint64_t length = m->config.level[0].line, stall = 0;
    struct processor *p = &m->cpu[cpu];

    if (m->levels == 0)
        return refer_directly(m, cpu, kind);
    do { /* line by line */
        uint64_t here = length - (addr & (length - 1));
        here = here < size ? here : size;
        stall += refer(m, p, addr, here, kind, now + stall);
        addr += here;
        size -= here;
    } while (size > 0);
    return stall;
}

uint64_t memory_fetch(struct memory *m, unsigned cpu, uint64_t addr, uint64_t size, uint64_t now)
{
    struct processor *p = &m->cpu[cpu];
    struct cache *c = &p->instructions;
    uint64_t stall = 0;

    if (!c->entry)
        return 0;
    for (uint64_t line = addr >> c->shift; line <= (addr + size - 1) >> c->shift; line++) {
        p->counts.fetches++;
        if (line == p->last_fetch && c->replacement->is_calm) {
            stall += m->config.instructions.latency;
            continue;
        }
        p->last_fetch = line;
        if (cache_use(c, line)) {
            stall += m->config.instructions.latency;
            continue;
        }
        cache_put(c, line, 1);
        p->counts.fetch_misses++;
        if (m->config.instructions.miss) {
            stall += m->config.instructions.miss;
            continue;
        }
        struct transaction t = { .op = BUS_READ,
                                 .cpu = cpu,
                                 .line = line,
                                 .supplier = FABRIC_MEMORY,
                                 .latency = m->fabric.config.memory,
                                 .bytes = m->config.instructions.line,
                                 .home = home_of(m, cpu, line << c->shift >> m->cpu[0].level[0].shift) };
        stall += fabric_transact(&m->fabric, &t, now + stall).done - (now + stall);
    }
    p->counts.fetch_stall += stall;
    return stall;
}

unsigned memory_state(struct memory *m, unsigned cpu, uint64_t addr)
{
    return state_of(m, cpu, addr >> m->cpu[cpu].level[0].shift) & STATE_MASK;
}
