/* SPDX-License-Identifier: MIT */
/* What two levels do most often: a line comes from the second one, or from memory, and what goes out of the first is in the second. All else is refer.c's. */
#include "sim/exec/miss_buffer.h"
#include "sim/exec/uses.h"

/* Where a line comes to, and what goes. */
struct place {
    uint32_t first, second;          /* entries; second: if it comes there, too */
    struct solo_line *gone, *behind; /* behind: out of the second level */
};

static inline uint8_t state_for(const struct solo *s, const struct solo_group *g, uint8_t state)
{
    return g->is_write && !s->seen_as[state][1] ? s->silent[state] : state;
}

/* Into the first level; what was there is in the second. */
static inline void put_first(struct solo *s, const struct solo_group *g, const struct place *p, struct solo_line *l,
                             uint64_t line, uint8_t state)
{
    struct solo_level *level = s->level;
    struct solo_entry *at = &s->first[p->first];

    p->gone->stamp = at->stamp;
    level[1].state[p->gone->entry[1] - 1] = level[0].state[p->first];
    level[0].line[p->first] = line;
    level[0].state[p->first] = state;
    solo_show(s, at, line, state);
    at->record = l;
    l->entry[0] = p->first + 1;
    solo_is_at(s, line, p->first);
    s->number += g->sites;
    at->stamp = s->number - 1;
    if (!solo_is_used(s, l))
        solo_use_anew(s, l, line);
    solo_uses_end(s);
}

static inline bool from_second(struct solo *s, struct solo_stretch *x, struct solo_group *g, struct solo_line *l,
                               uint64_t line, uint64_t base)
{
    struct solo_site *site = &x->site[g->from];
    uint32_t second = l->entry[1] - 1;
    uint8_t state = s->level[1].state[second], now = state_for(s, g, state);
    struct place p = { .first = solo_oldest(s, line) };
    uint64_t what = (uint64_t)l->lost << 1;

    p.gone = s->first[p.first].record;
    if (!p.gone || !p.gone->entry[1] || (g->is_write && (!now || !s->seen_as[now][1]))
        || !solo_memo_offset(site, base, &what))
        return false;
    solo_count_memo(s, x, site, what);
    solo_touch_behind(s, &s->level[1], line, second);
    put_first(s, g, &p, l, line, now);
    return true;
}

static inline bool from_memory(struct solo *s, struct solo_stretch *x, struct solo_group *g, struct solo_line *l,
                               uint64_t line, uint64_t base)
{
    struct solo_site *site = &x->site[g->from];
    const struct own_cell *cell = &s->config.protocol->own[PROTOCOL_ABSENT][site->is_write ? OWN_WRITE : OWN_READ];
    struct place p = { solo_oldest(s, line), solo_oldest_behind(&s->level[1], line), NULL, NULL };
    struct solo_level *second = &s->level[1];

    p.gone = s->first[p.first].record;
    p.behind = second->record[p.second];
    uint64_t what = (uint64_t)l->lost << 1 | !solo_is_recent(s, l);
    if (!p.gone || !p.behind || p.behind == p.gone || !p.gone->entry[1] || !solo_memo_offset(site, base, &what))
        return false;
    uint64_t waited = s->counts.waited, now = s->time.clock + site->issued;
    uint64_t stall = solo_transact(s, line, cell->op, now) - s->level[0].latency;

    waited = s->counts.waited - waited;
    s->time.bus += waited;
    s->time.stall += stall - waited;
    s->time.clock += stall;
    solo_count_far(s, x, site, what, stall);

    uint64_t old = second->line[p.second];
    uint8_t old_state = second->state[p.second];
    l->lost &= ~SOLO_LOST;
    p.behind->entry[1] = 0;
    second->line[p.second] = line;
    second->state[p.second] = cell->alone;
    solo_touch_behind(s, second, line, p.second);
    second->record[p.second] = l;
    l->entry[1] = p.second + 1;
    if (!solo_in_first(s, p.behind, old)) {
        p.behind->lost = (site->data.cell + 1) | SOLO_LOST;
        if (s->is_dirty[old_state]) {
            s->counts.write_backs++;
            solo_transact(s, old, BUS_WRITE_BACK, now);
        }
    }
    put_first(s, g, &p, l, line, state_for(s, g, cell->alone));
    return true;
}

bool solo_has_two(const struct solo *s)
{
    return s->levels == 2 && s->has_second && s->is_far && s->lean_stall && !s->watch.knows && !s->watch.use;
}

void solo_run_two(struct solo *s, struct solo_stretch *x, struct solo_group *g, uint64_t base)
{
    uint64_t line = (base + g->first) >> s->shift;
    struct solo_line *l = solo_line_at(&s->lines, line);

    if (solo_in_first(s, l, line)
        || !(l->entry[1] ? from_second(s, x, g, l, line, base)
                         : solo_is_enough(s, g, &x->site[g->from]) && from_memory(s, x, g, l, line, base)))
        solo_run_elsewhere(s, x, g, base);
}
