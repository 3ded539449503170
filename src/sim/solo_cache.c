/* SPDX-License-Identifier: MIT */
/* Where lines are: the caches of one processor, as memory.h describes them, without anybody else. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "sim/solo_state.h"

/* What can be done with a line in each state without anything else. */
static void know_states(struct solo *s)
{
    const struct protocol *p = s->config.protocol;

    for (unsigned i = 1; i < p->states; i++) {
        const struct own_cell *w = &p->own[i][OWN_WRITE];
        s->seen_as[i][0] = (p->flags[i] & STATE_READABLE) != 0;
        s->seen_as[i][1] = p->flags[i] & STATE_WRITABLE && w->op == BUS_NONE && w->alone == i;
        s->is_dirty[i] = (p->flags[i] & STATE_DIRTY) != 0;
    }
}

int solo_caches_init(struct solo *s, struct peet_err *err)
{
    uint64_t entries = 0;

    know_states(s);
    s->is_ideal = s->config.fabric_kind == &fabric_ideal;
    for (; s->levels < CONFIG_LEVELS && s->config.level[s->levels].bytes; s->levels++) {
        const struct level_config *c = &s->config.level[s->levels];
        struct solo_level *l = &s->level[s->levels];
        entries = c->bytes / c->line;
        l->ways = c->ways;
        l->latency = c->latency;
        l->mask = entries / c->ways - 1;
        l->line = malloc(entries * sizeof *l->line);
        l->stamp = calloc(entries, sizeof *l->stamp);
        l->state = calloc(entries, 1);
        if (!l->line || !l->stamp || !l->state)
            return err_set(err, PEET_ERR_MEMORY, "no memory for the caches of the machine");
        memset(l->line, 0xff, entries * sizeof *l->line);
    }
    uint64_t first = s->config.level[0].bytes / s->config.level[0].line;
    for (unsigned i = 0; i < 2; i++) {
        s->seen[i] = malloc(first * sizeof *s->seen[i]);
        if (!s->seen[i])
            return err_set(err, PEET_ERR_MEMORY, "no memory for the caches of the machine");
        memset(s->seen[i], 0xff, first * sizeof *s->seen[i]);
    }
    s->record = calloc(first, sizeof(struct solo_line *));
    if (!s->record)
        return err_set(err, PEET_ERR_MEMORY, "no memory for the caches of the machine");
    struct fabric_config fabric = s->config.fabric;
    fabric.cpus = 1;
    fabric.line = s->config.level[0].line;
    solo_lines_init(s, entries);
    if (fabric_init(&s->fabric, s->config.fabric_kind, &fabric) < 0)
        return err_set(err, PEET_ERR_MEMORY, "no memory for the caches of the machine");
    return 0;
}

void solo_caches_release(struct solo *s)
{
    for (unsigned i = 0; i < CONFIG_LEVELS; i++) {
        free(s->level[i].line);
        free(s->level[i].stamp);
        free(s->level[i].state);
    }
    free(s->seen[0]);
    free(s->seen[1]);
    free(s->record);
    fabric_release(&s->fabric);
    solo_lines_release(s);
}

/* An entry of the first cache as it can be seen, by its state. */
static void show(struct solo *s, uint32_t entry)
{
    uint64_t line = s->level[0].line[entry];
    const uint8_t *as = s->seen_as[s->level[0].state[entry]];

    s->seen[0][entry] = as[0] ? line : SOLO_NONE;
    s->seen[1][entry] = as[1] ? line : SOLO_NONE;
}

/* ---- the fabric ---- */

static uint64_t transact(struct solo *s, uint64_t line, unsigned op, uint64_t now)
{
    struct transaction t = { .op = (uint8_t)op, .line = line, .supplier = FABRIC_MEMORY };

    if (op == BUS_READ || op == BUS_READ_OWN) {
        t.bytes = (uint32_t)s->length;
        t.latency = s->fabric.config.memory;
    } else {
        t.bytes = op == BUS_UPDATE ? 8 : op == BUS_WRITE_BACK ? (uint32_t)s->length : 0;
        s->counts.updates += op == BUS_UPDATE;
    }
    if (s->is_ideal) {
        s->fabric.use.transactions++;
        s->fabric.use.by_op[op]++;
        s->fabric.use.moved += t.bytes;
        return t.latency;
    }
    struct fabric_time time = fabric_transact(&s->fabric, &t, now);
    if (op != BUS_WRITE_BACK)
        s->counts.waited += time.waited;
    return time.done - now;
}

/* ---- what comes and what goes ---- */

struct gone {
    uint64_t line; /* SOLO_NONE: nothing had to go */
    unsigned state;
};

/* A line comes into a level, in place of the one that was not used for the longest time. */
static uint32_t put(struct solo *s, unsigned level, uint64_t line, unsigned state, struct gone *ret)
{
    struct solo_level *l = &s->level[level];
    uint32_t first = (uint32_t)(line & l->mask) * l->ways, e = first;

    for (uint32_t i = first + 1; i < first + l->ways && l->line[e] != SOLO_NONE; i++)
        if (l->line[i] == SOLO_NONE || l->stamp[i] < l->stamp[e])
            e = i;
    *ret = (struct gone){ l->line[e], l->state[e] };
    if (level == 0 && ret->line != SOLO_NONE) {
        s->gone = s->record[e];
        s->gone->stamp = l->stamp[e];
        s->gone->entry = 0;
    }
    l->line[e] = line;
    l->state[e] = (uint8_t)state;
    l->stamp[e] = level ? ++s->touches : s->number;
    if (level == 0) {
        s->record[e] = s->line;
        s->line->entry = e + 1;
        show(s, e);
    }
    return e;
}

/* A line has gone out of a level. */
static void push_out(struct solo *s, unsigned level, struct gone gone, uint64_t now)
{
    struct solo_line *l = solo_line_at(&s->lines, gone.line);

    if (level + 1 < s->levels && l->is_lost) /* a level behind gave it up, too, and it has left */
        return;
    for (unsigned i = level; i-- > 0;)
        if (solo_find(&s->level[i], gone.line) != UINT32_MAX)
            return; /* the processor still has it */
    for (unsigned i = level + 1; i < s->levels; i++) {
        uint32_t e = solo_find(&s->level[i], gone.line);
        if (e != UINT32_MAX) {
            s->level[i].state[e] = (uint8_t)gone.state;
            return;
        }
    }
    if (s->is_dirty[gone.state] && level + 1 < s->levels) {
        struct gone next;
        put(s, level + 1, gone.line, gone.state, &next);
        if (next.line != SOLO_NONE)
            push_out(s, level + 1, next, now);
        return;
    }
    l->is_lost = true;
    l->by = s->cell ? s->cell : l->by;
    if (s->is_dirty[gone.state]) {
        s->counts.write_backs++;
        transact(s, gone.line, BUS_WRITE_BACK, now);
    }
}

/* Puts a line into the levels before `level`, and lets go what has to. The innermost state is the valid one, also of a line that several levels give up. */
static uint32_t fill(struct solo *s, unsigned level, uint64_t line, unsigned state, uint64_t now)
{
    struct gone gone[CONFIG_LEVELS];
    uint32_t entry = 0;

    for (unsigned i = level; i-- > 0;)
        entry = put(s, i, line, state, &gone[i]);
    for (unsigned i = 0; i < level; i++) {
        bool is_behind = false;
        for (unsigned k = i + 1; gone[i].line != SOLO_NONE && k < s->levels; k++) {
            uint32_t e = solo_find(&s->level[k], gone[i].line);
            if (e != UINT32_MAX)
                s->level[k].state[e] = (uint8_t)gone[i].state;
            if (k < level && gone[k].line == gone[i].line)
                gone[k] = gone[i];
            is_behind |= e != UINT32_MAX;
        }
        if (i == 0 && is_behind)
            gone[i].line = SOLO_NONE;
    }
    for (unsigned i = level; i-- > 0;)
        if (gone[i].line != SOLO_NONE)
            push_out(s, i, gone[i], now);
    return entry;
}

/* The same where there is one level. */
static uint32_t fill_only(struct solo *s, uint64_t line, unsigned state, uint64_t now)
{
    struct gone gone;
    uint32_t e = put(s, 0, line, state, &gone);

    if (gone.line == SOLO_NONE)
        return e;
    s->gone->by = s->cell ? s->cell : s->gone->by;
    if (s->is_dirty[gone.state]) {
        s->counts.write_backs++;
        transact(s, gone.line, BUS_WRITE_BACK, now);
    }
    return e;
}

/* ---- references ---- */

static uint64_t write_here(struct solo *s, uint32_t entry, uint64_t line, uint64_t now, bool *ret_upgrade)
{
    const struct own_cell *cell = &s->config.protocol->own[s->level[0].state[entry]][OWN_WRITE];
    uint64_t stall = 0;

    if (cell->op != BUS_NONE) {
        stall = transact(s, line, cell->op, now);
        s->counts.upgrades++;
        *ret_upgrade = true;
    }
    s->level[0].state[entry] = cell->alone;
    show(s, entry);
    return stall;
}

static void miss(struct solo *s, uint64_t line, bool is_write, uint64_t now, struct solo_outcome *ret)
{
    const struct own_cell *cell = &s->config.protocol->own[PROTOCOL_ABSENT][is_write ? OWN_WRITE : OWN_READ];
    struct solo_line *l = s->line;

    s->counts.misses++;
    ret->cause = l->was_here ? MISS_replaced : MISS_cold;
    s->counts.causes[ret->cause]++;
    ret->level = SIM_BEYOND;
    ret->stall = transact(s, line, cell->op, now);
    l->was_here = true;
    l->is_lost = false;
    ret->entry = s->levels == 1 ? fill_only(s, line, cell->alone, now) : fill(s, s->levels, line, cell->alone, now);
}

struct solo_outcome solo_touch(struct solo *s, uint64_t line, enum peet_kind kind, uint64_t now)
{
    bool is_write = kind == PEET_STORE || kind == PEET_UPDATE;
    struct solo_outcome o = { .cause = MISS_KINDS };
    uint64_t waited = s->counts.waited;
    uint32_t e = UINT32_MAX;

    s->counts.writes += is_write;
    s->counts.reads += kind != PEET_STORE;
    while (o.level < s->levels && (e = solo_find(&s->level[o.level], line)) == UINT32_MAX)
        o.level++;
    if (e == UINT32_MAX) {
        miss(s, line, is_write, now, &o);
    } else {
        s->counts.hits[o.level]++;
        o.stall = s->level[o.level].latency;
        s->level[o.level].stamp[e] = o.level ? ++s->touches : s->number;
        o.entry = o.level ? fill(s, o.level, line, s->level[o.level].state[e], now) : e;
        if (is_write)
            o.stall += write_here(s, o.entry, line, now, &o.is_upgrade);
    }
    if (kind == PEET_PREFETCH) { /* nobody waits for it */
        o.stall = 0;
        s->counts.waited = waited;
    }
    s->counts.stall += o.stall;
    return o;
}
