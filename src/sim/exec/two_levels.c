/* SPDX-License-Identifier: MIT */
/* Groups on two levels, in the frequent case: a line is filled from the second level or from memory, and the victim of the first level is in the second.
 * All other cases are left to access.c. */
#include "sim/exec/miss_buffer.h"
#include "sim/exec/uses.h"

/* The entries of a new line, and their victims. */
struct l1_slot {
    uint32_t first, second;             /* entries; second: set if the line is filled there, too */
    struct exec_line *victim, *victim2; /* victims of the first level, of the second level */
};

static inline uint8_t state_for(const struct exec_blocks *s, const struct base_group *g, uint8_t state)
{
    return g->is_write && !s->cache.allows[state][1] ? s->cache.silent[state] : state;
}

/* Fills a line into the first level; the victim is in the second level. */
static inline void two_levels_fill_l1(struct exec_blocks *s, const struct base_group *g, const struct l1_slot *p,
                                      struct exec_line *l, uint64_t line, uint8_t state)
{
    struct exec_level *level = s->cache.level;
    struct l1_entry *at = &s->cache.first[p->first];

    p->victim->stamp = at->stamp;
    level[1].state[p->victim->entry[1] - 1] = level[0].state[p->first];
    level[0].line[p->first] = line;
    level[0].state[p->first] = state;
    l1_set_tags(s, at, line, state);
    at->info = l;
    l->entry[0] = p->first + 1;
    way_hint_set(s, line, p->first);
    s->number += g->operands;
    at->stamp = s->number - 1;
    if (!line_used_in_epoch(s, l))
        epoch_shadow_first_use(s, l, line);
    epoch_shadow_end_access(s);
}

static inline bool from_second(struct exec_blocks *s, struct tblock *x, struct base_group *g, struct exec_line *l,
                               uint64_t line, uint64_t base)
{
    struct tb_operand *operand = &x->operand[g->from];
    uint32_t second = l->entry[1] - 1;
    uint8_t state = s->cache.level[1].state[second], now = state_for(s, g, state);
    struct l1_slot p = { .first = l1_victim(s, line) };
    uint64_t what = (uint64_t)l->remover << 1;

    p.victim = s->cache.first[p.first].info;
    if (!p.victim || !p.victim->entry[1] || (g->is_write && (!now || !s->cache.allows[now][1]))
        || !miss_key_add_offset(operand, base, &what))
        return false;
    miss_buffer_count_fixed(s, x, operand, what);
    exec_level_touch(s, &s->cache.level[1], line, second);
    two_levels_fill_l1(s, g, &p, l, line, now);
    return true;
}

static inline bool from_memory(struct exec_blocks *s, struct tblock *x, struct base_group *g, struct exec_line *l,
                               uint64_t line, uint64_t base)
{
    struct tb_operand *operand = &x->operand[g->from];
    const struct own_cell *cell = &s->config.protocol->own[PROTOCOL_ABSENT][operand->is_write ? OWN_WRITE : OWN_READ];
    struct l1_slot p = { l1_victim(s, line), exec_level_victim(&s->cache.level[1], line), NULL, NULL };
    struct exec_level *second = &s->cache.level[1];

    p.victim = s->cache.first[p.first].info;
    p.victim2 = second->info[p.second];
    uint64_t what = (uint64_t)l->remover << 1 | !epoch_shadow_has(s, l);
    if (!p.victim || !p.victim2 || p.victim2 == p.victim || !p.victim->entry[1]
        || !miss_key_add_offset(operand, base, &what))
        return false;
    uint64_t waited = s->memory.counts.waited, now = s->time.clock + operand->issued;
    uint64_t stall = lone_bus_transact(s, line, cell->op, now) - s->cache.level[0].latency;

    waited = s->memory.counts.waited - waited;
    s->time.bus += waited;
    s->time.stall += stall - waited;
    s->time.clock += stall;
    miss_buffer_count_variable(s, x, operand, what, stall);

    uint64_t old = second->line[p.second];
    uint8_t old_state = second->state[p.second];
    l->remover &= ~REMOVER_UNKNOWN;
    p.victim2->entry[1] = 0;
    second->line[p.second] = line;
    second->state[p.second] = cell->alone;
    exec_level_touch(s, second, line, p.second);
    second->info[p.second] = l;
    l->entry[1] = p.second + 1;
    if (!line_in_l1(s, p.victim2, old)) {
        p.victim2->remover = (operand->data.access + 1) | REMOVER_UNKNOWN;
        if (s->cache.is_dirty[old_state]) {
            s->memory.counts.write_backs++;
            lone_bus_transact(s, old, BUS_WRITE_BACK, now);
        }
    }
    two_levels_fill_l1(s, g, &p, l, line, state_for(s, g, cell->alone));
    return true;
}

bool blocks_has_two_levels(const struct exec_blocks *s)
{
    return s->cache.levels == 2 && s->cache.has_second && s->fill.memory_not_faster && s->fill.fixed_stall
           && !s->observer.classify && !s->observer.use;
}

void group_run_two_levels(struct exec_blocks *s, struct tblock *x, struct base_group *g, uint64_t base)
{
    uint64_t line = (base + g->first) >> s->cache.shift;
    struct exec_line *l = exec_line_at(&s->memory.lines, line);

    if (line_in_l1(s, l, line)
        || !(l->entry[1] ? from_second(s, x, g, l, line, base)
                         : fill_serves_group(s, g, &x->operand[g->from]) && from_memory(s, x, g, l, line, base)))
        group_run_hint_miss(s, x, g, base);
}
