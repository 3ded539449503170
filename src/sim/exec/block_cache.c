/* SPDX-License-Identifier: MIT */
/* The levels of the core, with the model of docs/design/memory.md; and its split bus. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "sim/fabric/kind.h"
#include "sim/exec/uses.h"

enum { ORDER_WAYS = 16 }; /* ways whose order fits a word */

/* Tabulates by state what the protocol allows without a transaction. */
static void tabulate_states(struct exec_blocks *s)
{
    const struct protocol *p = s->config.protocol;

    s->cache.is_readable = true;
    for (unsigned i = 1; i < p->states; i++) {
        const struct own_cell *w = &p->own[i][OWN_WRITE];
        s->cache.allows[i][0] = (p->flags[i] & STATE_READABLE) != 0;
        s->cache.allows[i][1] = p->flags[i] & STATE_WRITABLE && w->op == BUS_NONE && w->alone == i;
        s->cache.silent[i] = p->flags[i] & STATE_READABLE && w->op == BUS_NONE ? w->alone : 0;
        s->cache.is_readable &= s->cache.allows[i][0] || !s->cache.allows[i][1];
        s->cache.is_dirty[i] = (p->flags[i] & STATE_DIRTY) != 0;
        for (unsigned k = 0; k < 2; k++)
            s->cache.perm_mask[i][k] = s->cache.allows[i][k] ? 0 : NO_LINE;
    }
}

static bool write_allocates(const struct own_cell *c)
{
    return c->op == BUS_READ || c->op == BUS_READ_OWN;
}

/* Whether all misses take the same time, and change no line but the one that they fill and the victim. */
static bool has_fixed_miss_cost(const struct exec_blocks *s)
{
    const struct own_cell *absent = s->config.protocol->own[PROTOCOL_ABSENT];

    return s->cache.is_ideal && s->cache.levels == 1 && s->memory.fabric.config.memory >= s->cache.level[0].latency
           && write_allocates(&absent[OWN_READ]) && write_allocates(&absent[OWN_WRITE]);
}

/* Whether each line is either clean and not writable without a transaction, or dirty and writable. */
static bool has_implied_state(const struct exec_blocks *s)
{
    uint8_t clean = s->fill.state[0], dirty = s->fill.state[1];

    return s->cache.fixed_miss_cost && s->cache.level[0].ways == 1 && s->cache.allows[clean][0]
           && !s->cache.allows[clean][1] && !s->cache.is_dirty[clean] && s->cache.allows[dirty][1]
           && s->cache.is_dirty[dirty] && s->config.protocol->own[clean][OWN_WRITE].alone == dirty;
}

static int no_memory(struct peet_err *err)
{
    return err_set(err, PEET_ERR_MEMORY, "no memory for the caches of the machine");
}

static int init_level(struct exec_blocks *s, const struct level_config *c, struct exec_level *l, struct peet_err *err)
{
    uint64_t entries = c->bytes / c->line;

    l->ways = level_ways(c);
    l->latency = c->latency;
    l->mask = entries / l->ways - 1;
    l->line = malloc(entries * sizeof *l->line);
    l->state = calloc(entries, 1);
    l->full = malloc(entries * sizeof *l->full);
    if (!l->line || !l->state || !l->full)
        return no_memory(err);
    memset(l->line, 0xff, entries * sizeof *l->line);
    if (l == &s->cache.level[0]) {
        s->cache.first = calloc(entries, sizeof *s->cache.first);
        for (uint64_t i = 0; s->cache.first && i < entries; i++)
            s->cache.first[i].tag[0] = s->cache.first[i].tag[1] = NO_LINE;
        return s->cache.first ? 0 : no_memory(err);
    }
    l->info = calloc(entries, sizeof(struct exec_line *));
    if (l->ways > ORDER_WAYS)
        l->stamp = calloc(entries, sizeof *l->stamp);
    else
        l->order = malloc((l->mask + 1) * sizeof *l->order);
    for (uint64_t i = 0; l->order && i <= l->mask; i++)
        l->order[i] = UINT64_C(0xfedcba9876543210) & (UINT64_MAX >> (64 - 4 * l->ways)); /* any order will do */
    return l->info && (l->stamp || l->order) ? 0 : no_memory(err);
}

static void know_bus(struct exec_blocks *s)
{
    const struct fabric_config *c = &s->memory.fabric.config;
    struct lone_bus *b = &s->memory.bus;

    b->address = fabric_address_cycles(c);
    b->data = s->memory.fabric.line_cycles;
    b->reads = b->address + c->memory + b->data;
    b->returns = 2 * b->address + b->data; /* after the other request */
    bool is_known =
        s->memory.fabric.kind == &fabric_split && b->address > 0 && b->data > 0 && b->address + b->data <= c->memory;
    b->idle = is_known ? 0 : UINT64_MAX;
}

int blocks_caches_init(struct exec_blocks *s, struct peet_err *err)
{
    uint64_t entries = 0;
    int r;

    tabulate_states(s);
    s->cache.is_ideal = s->config.fabric_kind == &fabric_ideal;
    for (; s->cache.levels < CONFIG_LEVELS && s->config.level[s->cache.levels].bytes; s->cache.levels++) {
        const struct level_config *c = &s->config.level[s->cache.levels];
        entries = c->bytes / c->line;
        if ((r = init_level(s, c, &s->cache.level[s->cache.levels], err)) < 0)
            return r;
    }
    struct fabric_config fabric = s->config.fabric;
    fabric.cpus = 1;
    fabric.line = s->config.level[0].line;
    if (exec_lines_init(s, entries) < 0 || fabric_init(&s->memory.fabric, s->config.fabric_kind, &fabric) < 0)
        return no_memory(err);
    know_bus(s);
    s->cache.fixed_miss_cost = has_fixed_miss_cost(s);
    s->cache.has_second = s->cache.levels > 1 && s->cache.level[1].latency >= s->cache.level[0].latency;
    s->fill.fixed_stall =
        (s->cache.has_second ? s->cache.level[1].latency : s->memory.fabric.config.memory) - s->cache.level[0].latency;
    for (unsigned i = 0; i < 2; i++)
        s->fill.state[i] = s->config.protocol->own[PROTOCOL_ABSENT][i ? OWN_WRITE : OWN_READ].alone;
    uint8_t alone = s->fill.state[0], written = s->cache.silent[alone];
    s->fill.read_is_exclusive = s->cache.allows[alone][1] || (written && s->cache.allows[written][1]);
    s->fill.memory_not_faster = s->memory.fabric.config.memory >= s->cache.level[0].latency;
    s->cache.state_from_tags = has_implied_state(s);
    s->memory.lines.bits = s->cache.state_from_tags ? EXEC_SHORT_LINE_BITS : EXEC_LINE_BITS;
    for (uint64_t i = 0; s->cache.state_from_tags && !s->observer.classify && i < entries; i++)
        s->cache.first[i].info = &s->sentinel.empty; /* it can go as any other */
    return 0;
}

void blocks_caches_release(struct exec_blocks *s)
{
    for (unsigned i = 0; i < CONFIG_LEVELS; i++) {
        free(s->cache.level[i].line);
        free(s->cache.level[i].stamp);
        free(s->cache.level[i].order);
        free(s->cache.level[i].state);
        free(s->cache.level[i].full);
        free(s->cache.level[i].info);
    }
    free(s->cache.first);
    fabric_release(&s->memory.fabric);
    exec_lines_release(s);
}

/* Sets read tag and write tag of an entry of the first level by its state. */
static void l1_update_tags(struct exec_blocks *s, uint32_t entry, uint64_t line)
{
    l1_set_tags(s, &s->cache.first[entry], line, s->cache.level[0].state[entry]);
}

bool blocks_silent_upgrade(struct exec_blocks *s, uint32_t entry, uint64_t line)
{
    uint8_t to = s->cache.silent[l1_state(s, entry)];

    if (!to || !s->cache.allows[to][1] || !l1_tag_matches(s, entry, line, false))
        return false;
    s->cache.level[0].state[entry] = to;
    l1_update_tags(s, entry, line);
    return true;
}

/* ---- the fabric ---- */

void lone_bus_end(struct exec_blocks *s)
{
    struct fabric_use *use = &s->memory.fabric.use;
    struct lone_bus *b = &s->memory.bus;
    uint64_t back = b->has_back, requests = b->last + b->address + back * (b->address + b->data);

    if (!b->has_last)
        return;
    fabric_use_add(use, b->last, requests);
    fabric_use_add(use, b->idle - b->data, b->idle);
    use->transactions += 1 + back;
    use->by_op[b->op]++;
    use->by_op[BUS_WRITE_BACK] += back;
    use->bytes += (1 + back) * s->cache.length;
    use->waited += back * b->address;
    b->has_last = b->has_back = false;
}

static struct transaction transaction_of(const struct exec_blocks *s, uint64_t line, unsigned op)
{
    bool is_answered = op == BUS_READ || op == BUS_READ_OWN, has_line = is_answered || op == BUS_WRITE_BACK;

    return (struct transaction){ .op = (uint8_t)op,
                                 .line = line,
                                 .supplier = FABRIC_MEMORY,
                                 .latency = is_answered ? s->memory.fabric.config.memory : 0,
                                 .bytes = has_line           ? (uint32_t)s->cache.length
                                          : op == BUS_UPDATE ? 8
                                                             : 0 };
}

/* Gives the kept pair to the fabric, since another transaction overlaps with it. */
static void tell_fabric(struct exec_blocks *s)
{
    struct lone_bus *b = &s->memory.bus;

    if (!b->has_last)
        return;
    struct transaction read = transaction_of(s, b->line, b->op), back = transaction_of(s, b->back, BUS_WRITE_BACK);
    fabric_transact(&s->memory.fabric, &read, b->last);
    if (b->has_back)
        fabric_transact(&s->memory.fabric, &back, b->last);
    b->has_last = b->has_back = false;
}

uint64_t lone_bus_transact_any(struct exec_blocks *s, uint64_t line, unsigned op, uint64_t now)
{
    struct transaction t = transaction_of(s, line, op);

    s->memory.counts.updates += op == BUS_UPDATE;
    if (s->cache.is_ideal) {
        s->memory.fabric.use.transactions++;
        s->memory.fabric.use.by_op[op]++;
        s->memory.fabric.use.bytes += t.bytes;
        return t.latency;
    }
    tell_fabric(s);
    struct fabric_time time = fabric_transact(&s->memory.fabric, &t, now);
    s->memory.bus.idle = time.done > s->memory.bus.idle ? time.done : s->memory.bus.idle;
    if (op != BUS_WRITE_BACK)
        s->memory.counts.waited += time.waited;
    return time.done - now;
}

/* ---- fills and evictions ---- */

/* The victim of a fill. */
struct victim {
    struct exec_line *info; /* NULL: the entry was empty */
    uint64_t line;          /* its number */
    unsigned state;         /* of the protocol */
};

static inline uint64_t lesser_stamp(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline __attribute__((always_inline)) uint64_t least_of_4(const uint64_t *stamp, uint32_t stride, uint32_t way)
{
    uint64_t a = stamp[0] << STAMP_WAY_BITS | way, b = stamp[stride] << STAMP_WAY_BITS | (way + 1);
    uint64_t c = stamp[2ul * stride] << STAMP_WAY_BITS | (way + 2),
             d = stamp[3ul * stride] << STAMP_WAY_BITS | (way + 3);

    return lesser_stamp(lesser_stamp(a, b), lesser_stamp(c, d));
}

/* The way with the least stamp; of equal ones, the first. Stamps are `stride` words apart. Stamp and way are compared in one word, in pairs, so that
 * no comparison depends on all earlier ones. */
static inline __attribute__((always_inline)) uint32_t lru_way(const uint64_t *stamp, uint32_t stride, uint32_t ways)
{
    if (ways % 4 == 0 && ways < 1 << STAMP_WAY_BITS) {
        uint64_t least = least_of_4(stamp, stride, 0);
        for (uint32_t i = 4; i < ways; i += 4)
            least = lesser_stamp(least, least_of_4(stamp + (size_t)i * stride, stride, i));
        return least & ((1 << STAMP_WAY_BITS) - 1);
    }
    uint32_t least = 0;
    for (uint32_t i = 1; i < ways; i++)
        least = stamp[i * stride] < stamp[least * stride] ? i : least;
    return least;
}

uint32_t l1_victim(const struct exec_blocks *s, uint64_t line)
{
    uint32_t ways = s->cache.level[0].ways, e = (uint32_t)(line & s->cache.level[0].mask) * ways;

    return e + lru_way(&s->cache.first[e].stamp, sizeof *s->cache.first / sizeof(uint64_t), ways);
}

uint32_t exec_level_victim(const struct exec_level *l, uint64_t line)
{
    uint64_t set = line & l->mask;
    uint32_t e = (uint32_t)set * l->ways;

    return e + (l->order ? (uint32_t)(l->order[set] >> 4 * (l->ways - 1)) & 15 : lru_way(&l->stamp[e], 1, l->ways));
}

/* Fills a line into the first level; returns its victim. */
static struct victim l1_put(struct exec_blocks *s, struct exec_line *info, uint64_t line, unsigned state)
{
    struct exec_level *l = &s->cache.level[0];
    uint32_t e = l1_victim(s, line);
    struct l1_entry *at = &s->cache.first[e];
    struct victim victim = { at->info, l->line[e], l1_state(s, e) };

    if (victim.info)
        victim.info->stamp = at->stamp;
    else
        l->full[l->filled++] = e;
    l->line[e] = line;
    l->state[e] = (uint8_t)state;
    at->stamp = s->number;
    at->info = info;
    line_enters_l1(s, info, e);
    way_hint_set(s, line, e);
    l1_update_tags(s, e, line);
    return victim;
}

/* Fills a line into a level after the first. */
static struct victim put_behind(struct exec_blocks *s, unsigned level, struct exec_line *info, uint64_t line,
                                unsigned state)
{
    struct exec_level *l = &s->cache.level[level];
    uint32_t e = exec_level_victim(l, line);
    struct victim victim = { l->info[e], l->line[e], l->state[e] };

    if (victim.info)
        victim.info->entry[level] = 0;
    else
        l->full[l->filled++] = e;
    l->line[e] = line;
    l->state[e] = (uint8_t)state;
    exec_level_touch(s, l, line, e);
    l->info[e] = info;
    info->entry[level] = e + 1;
    return victim;
}

/* A level has evicted a line: its state goes to the next level that has the line, or a write-back is made. */
static void exec_evict(struct exec_blocks *s, unsigned level, struct victim victim, uint64_t now)
{
    struct exec_line *l = victim.info;

    if (level + 1 < s->cache.levels && l->remover & REMOVER_UNKNOWN) /* a level after this one has evicted it, too */
        return;
    for (unsigned i = level; i-- > 0;)
        if (line_in_level(s, l, victim.line, i))
            return; /* the processor still has it */
    for (unsigned i = level + 1; i < s->cache.levels; i++)
        if (l->entry[i]) {
            s->cache.level[i].state[l->entry[i] - 1] = (uint8_t)victim.state;
            return;
        }
    if (s->cache.is_dirty[victim.state] && level + 1 < s->cache.levels) {
        struct victim next = put_behind(s, level + 1, l, victim.line, victim.state);
        if (next.info)
            exec_evict(s, level + 1, next, now);
        return;
    }
    l->remover = (s->memory.removal_tag ? s->memory.removal_tag : l->remover) | REMOVER_UNKNOWN;
    if (s->cache.is_dirty[victim.state]) {
        s->memory.counts.write_backs++;
        lone_bus_transact(s, victim.line, BUS_WRITE_BACK, now);
    }
}

/* Whether another level has the victim of the first level; copies its state there. */
static bool update_victim_below(struct exec_blocks *s, const struct victim *victim)
{
    bool is_there = false;

    for (unsigned k = 1; k < s->cache.levels; k++)
        if (victim->info->entry[k]) {
            s->cache.level[k].state[victim->info->entry[k] - 1] = (uint8_t)victim->state;
            is_there = true;
        }
    return is_there;
}

/* Fills a line that another level has into the first level. */
static void fill_first(struct exec_blocks *s, struct exec_line *l, uint64_t line, unsigned state, uint64_t now)
{
    struct victim victim = l1_put(s, l, line, state);

    if (victim.info && !update_victim_below(s, &victim))
        exec_evict(s, 0, victim, now);
}

void blocks_fill_from_l2(struct exec_blocks *s, struct exec_line *l, uint64_t line, uint64_t now)
{
    uint32_t e = l->entry[1] - 1;

    s->fill.l2_hits++;
    exec_level_touch(s, &s->cache.level[1], line, e);
    fill_first(s, l, line, s->cache.level[1].state[e], now);
}

/* Fills a line into the levels before `level`, and evicts the victims. The state in the innermost level is the valid one, also of a line that several
 * levels evict. */
static void levels_fill(struct exec_blocks *s, unsigned level, struct exec_line *l, uint64_t line, unsigned state,
                        uint64_t now)
{
    struct victim victim[CONFIG_LEVELS];

    for (unsigned i = level; i-- > 1;)
        victim[i] = put_behind(s, i, l, line, state);
    victim[0] = l1_put(s, l, line, state);
    for (unsigned i = 0; i < level; i++) {
        bool is_there = false;
        for (unsigned k = i + 1; victim[i].info && k < s->cache.levels; k++) {
            uint32_t e = victim[i].info->entry[k];
            if (e)
                s->cache.level[k].state[e - 1] = (uint8_t)victim[i].state;
            if (k < level && victim[k].info == victim[i].info)
                victim[k] = victim[i];
            is_there |= e != 0;
        }
        if (i == 0 && is_there)
            victim[i].info = NULL;
    }
    for (unsigned i = level; i-- > 0;)
        if (victim[i].info)
            exec_evict(s, i, victim[i], now);
}

/* Fills a line into the only level. */
static void fill_only(struct exec_blocks *s, struct exec_line *l, uint64_t line, unsigned state, uint64_t now)
{
    struct victim victim = l1_put(s, l, line, state);

    if (!victim.info)
        return;
    victim.info->remover = s->memory.removal_tag ? s->memory.removal_tag : victim.info->remover | REMOVER_UNKNOWN;
    if (s->cache.is_dirty[victim.state]) {
        s->memory.counts.write_backs++;
        lone_bus_transact(s, victim.line, BUS_WRITE_BACK, now);
    }
}

void blocks_flush_fixed_misses(struct exec_blocks *s)
{
    const struct own_cell *absent = s->config.protocol->own[PROTOCOL_ABSENT];
    struct fabric_use *use = &s->memory.fabric.use;
    uint64_t backs = s->fixed_write_backs, misses = 0;

    for (unsigned i = 0; i < 2; i++) {
        uint64_t of_kind = s->fill.fixed_misses[i][0] + s->fill.fixed_misses[i][1];
        use->by_op[absent[i ? OWN_WRITE : OWN_READ].op] += of_kind;
        s->memory.counts.causes[MISS_cold] += s->fill.fixed_misses[i][0];
        s->memory.counts.causes[MISS_replaced] += s->fill.fixed_misses[i][1];
        misses += of_kind;
    }
    uint64_t farther = s->fill.l2_hits * (s->cache.level[1].latency - s->cache.level[0].latency);
    s->memory.counts.hits[0] -= misses + s->fill.l2_hits;
    s->memory.counts.hits[1] += s->fill.l2_hits;
    s->memory.counts.stall += farther;
    s->time.stall += farther;
    s->memory.counts.misses += misses;
    s->memory.counts.stall += misses * s->fill.fixed_stall;
    s->time.stall += misses * s->fill.fixed_stall;
    s->memory.counts.write_backs += backs;
    use->by_op[BUS_WRITE_BACK] += backs;
    use->transactions += misses + backs;
    use->bytes += (misses + backs) * s->cache.length;
    memset(s->fill.fixed_misses, 0, sizeof s->fill.fixed_misses);
    s->fixed_write_backs = s->fill.l2_hits = 0;
}

/* ---- references ---- */

static uint64_t write_here(struct exec_blocks *s, uint32_t entry, uint64_t line, uint64_t now, bool *ret_upgrade)
{
    const struct own_cell *cell = &s->config.protocol->own[l1_state(s, entry)][OWN_WRITE];
    uint64_t stall = 0;

    if (cell->op != BUS_NONE) {
        stall = lone_bus_transact(s, line, cell->op, now);
        assert(cell->op == BUS_INVALIDATE); /* no other processor has a copy to which a word could be sent */
        s->memory.counts.upgrades++;
        *ret_upgrade = true;
    }
    s->cache.level[0].state[entry] = cell->alone;
    l1_update_tags(s, entry, line);
    return stall;
}

static void levels_miss(struct exec_blocks *s, struct exec_line *l, uint64_t line, bool is_write, uint64_t now,
                        struct exec_outcome *ret)
{
    const struct own_cell *cell = &s->config.protocol->own[PROTOCOL_ABSENT][is_write ? OWN_WRITE : OWN_READ];

    s->memory.counts.misses++;
    ret->cause = line_was_used(l) ? MISS_replaced : MISS_cold;
    s->memory.counts.causes[ret->cause]++;
    ret->level = LEVEL_BEYOND;
    ret->latency = lone_bus_transact(s, line, cell->op, now);
    l->remover &= ~REMOVER_UNKNOWN;
    if (s->cache.levels == 1)
        fill_only(s, l, line, cell->alone, now);
    else
        levels_fill(s, s->cache.levels, l, line, cell->alone, now);
}

/* A line that some level has. */
static void levels_hit(struct exec_blocks *s, struct exec_line *l, uint64_t line, bool is_write, uint64_t now,
                       struct exec_outcome *ret)
{
    struct exec_level *at = &s->cache.level[ret->level];
    uint32_t e = line_in_level(s, l, line, ret->level) - 1;

    s->memory.counts.hits[ret->level]++;
    ret->latency = at->latency;
    if (ret->level == 0) {
        s->cache.first[e].stamp = s->number;
    } else {
        exec_level_touch(s, at, line, e);
        if (ret->level == 1)
            fill_first(s, l, line, at->state[e], now);
        else
            levels_fill(s, ret->level, l, line, at->state[e], now);
    }
    if (is_write)
        ret->latency += write_here(s, line_in_l1(s, l, line) - 1, line, now, &ret->is_upgrade);
}

struct exec_outcome blocks_touch(struct exec_blocks *s, struct exec_line *l, uint64_t line, enum peet_kind kind,
                                 uint64_t now)
{
    bool is_write = kind == PEET_STORE || kind == PEET_UPDATE;
    struct exec_outcome o = { .cause = MISS_KINDS };
    uint64_t waited = s->memory.counts.waited;

    s->memory.counts.writes += is_write;
    s->memory.counts.reads += kind != PEET_STORE;
    while (o.level < s->cache.levels && !line_in_level(s, l, line, o.level))
        o.level++;
    if (o.level == s->cache.levels)
        levels_miss(s, l, line, is_write, now, &o);
    else
        levels_hit(s, l, line, is_write, now, &o);
    if (kind == PEET_PREFETCH) { /* the core does not wait */
        o.latency = 0;
        s->memory.counts.waited = waited;
    }
    s->memory.counts.stall += o.latency;
    return o;
}
