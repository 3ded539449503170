/* SPDX-License-Identifier: MIT */
/* What the watcher is told, and asked: counts are kept where they arise, and told when what they are of changes, and in the end. */
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "sim/exec/miss_buffer.h"
#include "sim/exec/uses.h"

void solo_tell_far(struct solo *s, const struct solo_site *site, struct solo_far *f)
{
    uint32_t lost = (uint32_t)(f->what >> 1);
    uint64_t who = (uint64_t)site->data.cell << 32 | ((lost & ~SOLO_LOST) - 1);
    unsigned cause = lost ? MISS_replaced : MISS_cold;

    if (f->count)
        solo_meet(s, who, solo_how(SIM_BEYOND, cause, !(f->what & 1), false), (f->what >> SOLO_OFFSET_AT) - 1, f->count,
                  f->stall);
    s->counts.misses += f->count;
    s->counts.causes[cause] += f->count;
    s->counts.hits[0] -= f->count; /* as what they were counted with their runs */
    s->counts.stall += f->stall;
    f->count = f->stall = 0;
}

static void tell_site(struct solo *s, const struct solo_stretch *x, struct solo_site *site)
{
    uint64_t references = (x->is_varying ? 0 : x->runs - site->since) + site->extra;
    uint64_t latency = site->kind == PEET_PREFETCH ? 0 : s->level[0].latency;

    if (site->has_cell && references)
        s->watch.refer(s->watch.context, site->data.cell, references, site->is_write ? references : 0,
                       references * latency);
    site->since = x->runs;
    site->extra = 0;
    for (uint32_t left = site->memos; left; left &= left - 1) {
        struct solo_memo *m = &site->memo[__builtin_ctz(left)];
        if (m->count)
            solo_tell_memo(s, site, m);
    }
    for (unsigned i = 0; site->has_far && i < SOLO_FAR; i++)
        solo_tell_far(s, site, &site->far[i]);
    site->has_far = false;
}

/* What was run up to here was on this path. */
static void count_path(struct solo_stretch *x)
{
    if (x->path) {
        x->path->runs += x->runs - x->settled;
        x->path->part[0].lean += x->lean;
    }
    x->settled = x->runs;
    x->lean = 0;
}

static void tell_path(struct solo *s, struct solo_path *p)
{
    const struct solo_stretch *x = p->stretch;

    for (unsigned i = 0; i < x->parts; i++) {
        struct solo_leaf *l = &p->part[i];
        l->misses += s->is_lean ? l->lean : 0;
        l->stall += l->lean * s->lean_stall;
        if (p->runs | l->misses | l->stall)
            s->watch.run(s->watch.context, l->leaf, p->runs, p->runs * x->part[i].cycles, l->misses, l->stall);
        l->misses = l->stall = l->lean = 0;
    }
    p->runs = 0;
}

static struct solo_path *make_path(struct solo *s, struct solo_stretch *x, uint32_t node)
{
    struct solo_path **known = map_put(&s->paths, x->number, node);

    assert(known); /* these tables are small beside what is simulated */
    struct solo_path *p = *known;
    if (p)
        return p;
    p = arena_alloc(&s->arena, sizeof *p + x->parts * sizeof *p->part);
    assert(p);
    *p = (struct solo_path){ .stretch = x, .node = node, .next = s->all_paths };
    for (unsigned i = 0; i < x->parts; i++)
        p->part[i] = (struct solo_leaf){ .leaf = s->watch.leaf(s->watch.context, node, x->part[i].head.id) };
    return *known = s->all_paths = p;
}

static void take_path(struct solo *s, struct solo_stretch *x)
{
    uint64_t who = (uint64_t)x->number << 32 | s->node, k = who * SOLO_FACTOR >> (64 - SOLO_PATH_BITS);

    count_path(x);
    if (s->path_near[k].who != who) {
        s->path_near[k].path = make_path(s, x, s->node);
        s->path_near[k].who = who;
    }
    x->path = s->path_near[k].path;
}

static void tell_met(struct solo *s, struct solo_met *m)
{
    const struct solo_miss miss = { .cell = (uint32_t)(m->who >> 32),
                                    .by = (uint32_t)m->who,
                                    .level = (uint8_t)m->how,
                                    .cause = (uint8_t)(m->how >> 8),
                                    .was_recent = m->how >> 16 & 1,
                                    .is_upgrade = m->how >> 24 & 1,
                                    .offset = m->offset,
                                    .count = m->count,
                                    .stall = m->stall };

    if (m->count)
        s->watch.miss(s->watch.context, &miss);
    m->count = m->stall = 0;
}

void solo_meet(struct solo *s, uint64_t who, uint64_t how, uint64_t offset, uint64_t count, uint64_t stall)
{
    uint64_t hash = (who ^ offset << 20 ^ how << 40) * 0x9e3779b97f4a7c15u;
    struct solo_met *met = &s->met[hash >> (64 - SOLO_MET_BITS)];

    if (met->who != who || met->offset != offset || met->how != how) {
        tell_met(s, met);
        met->who = who;
        met->offset = offset;
        met->how = how;
    }
    met->count += count;
    met->stall += stall;
}

void solo_tell_memo(struct solo *s, const struct solo_site *site, struct solo_memo *m)
{
    uint32_t lost = (uint32_t)(m->what >> 1);
    uint64_t who = (uint64_t)site->data.cell << 32 | ((lost & ~SOLO_LOST) - 1);
    uint64_t offset = (m->what >> SOLO_OFFSET_AT) - 1, how = solo_how(1, MISS_KINDS, false, false);

    if (s->is_lean) {
        s->lean[site->is_write][lost != 0] += m->count;
        how = solo_how(SIM_BEYOND, lost ? MISS_replaced : MISS_cold, !(m->what & 1), false);
    } else {
        s->second += m->count;
    }
    if (m->count)
        solo_meet(s, who, how, offset, m->count, m->count * s->lean_stall);
    m->count = 0;
}

void solo_tell_moved(struct solo *s)
{
    struct solo_moved *m = &s->moved;

    if (m->references) {
        s->watch.refer(s->watch.context, m->data.cell, m->references, m->writes, m->compute);
        s->watch.run(s->watch.context, m->leaf, 0, m->compute, m->misses, m->stall);
    }
    m->references = m->writes = m->compute = m->misses = m->stall = 0;
}

void solo_tell_seen(struct solo *s)
{
    assert(s->seen_at <= s->seen_end);
    if (s->seen_at != s->seen)
        s->watch.see(s->watch.context, s->seen, (size_t)(s->seen_at - s->seen));
    s->seen_at = s->seen;
}

void solo_tell_missed(struct solo *s)
{
    if (!s->missed || s->choice.limit == UINT32_MAX) /* all sets are told */
        return;
    s->watch.missed(s->watch.context, s->missed, s->missed_cells, s->seen_new ? s->missed_new : 0);
    memset(s->missed, 0, s->missed_cells * sizeof *s->missed);
    s->missed_new = 0;
}

void solo_end_window(struct solo *s, uint64_t reference)
{
    s->window_end = s->watch.window(s->watch.context, reference, s->window_misses + (s->is_lean ? s->window_lean : 0),
                                    s->window_stall + s->window_lean * s->lean_stall);
    s->window_misses = s->window_stall = s->window_lean = 0;
    uint64_t end = s->window_end + s->apart;
    s->window_low = end > SOLO_WINDOW_REST ? end - SOLO_WINDOW_REST : 0;
}

/* What runs add up to if all is found at once; where it was not, that is taken off already. */
static void count_runs(struct solo *s, struct solo_stretch *x)
{
    uint64_t runs = x->runs - x->counted, stall = (x->cycles - x->cost) * runs; /* of hits, which is compute */

    x->counted = x->runs;
    s->time.compute += x->cost * runs;
    s->time.instructions += x->insns * runs;
    if (x->is_varying)
        return;
    for (unsigned k = PEET_LOAD; k <= PEET_PREFETCH; k++) {
        s->counts.reads += k == PEET_STORE ? 0 : x->kinds[k] * runs;
        s->counts.writes += k == PEET_STORE || k == PEET_UPDATE ? x->kinds[k] * runs : 0;
    }
    s->counts.hits[0] += x->sites * runs;
    s->counts.stall += stall;
    s->time.compute += stall;
}

void solo_settle(struct solo *s)
{
    for (struct solo_stretch *x = s->stretches; x; x = x->next) {
        for (unsigned i = 0; i < x->sites; i++)
            tell_site(s, x, &x->site[i]);
        count_path(x);
        count_runs(s, x);
    }
    for (struct solo_path *p = s->all_paths; p; p = p->next)
        tell_path(s, p);
    solo_tell_moved(s);
    solo_tell_seen(s);
    solo_tell_missed(s);
    solo_count_lean(s);
    for (unsigned i = 0; i < SOLO_MET; i++)
        tell_met(s, &s->met[i]);
    solo_end_window(s, solo_references(s));
    solo_end_transaction(s);
}

void solo_counts(const struct solo *s, struct memory_counts *ret)
{
    *ret = s->counts;
}

/* It is to be looked up again which data are referred to: all of them, */
static void forget_all(const struct solo *s, struct solo_stretch *x)
{
    for (unsigned i = 0; i < x->groups; i++)
        x->extent[x->group[i].extent].span = 0;
    for (unsigned i = 0; i < x->sites; i++)
        x->site[i].data.end = x->site[i].data.start; /* they are nowhere */
    x->moves = s->moves;
}

/*   or where that has changed. */
static void forget_data(const struct solo *s, struct solo_stretch *x)
{
    for (unsigned i = 0; i < x->groups; i++) {
        const struct solo_group *g = &x->group[i];
        struct solo_extent *e = &x->extent[g->extent];
        uint64_t start = e->low + g->least, end = e->low + e->span + g->most;
        if (g->owner == i && e->span && (end <= start || change_log_touches(s->watch.changes, x->version, start, end)))
            e->span = 0;
    }
    x->version = s->version;
}

/* What the stretch was told is of another path, or of other data. */
void solo_renew(struct solo *s, struct solo_stretch *x)
{
    if (x->moves != s->moves)
        forget_all(s, x);
    if (x->version != s->version)
        forget_data(s, x);
    if (!x->path || x->path->node != s->node)
        take_path(s, x);
    x->current = s->current;
}

void solo_locate_site(struct solo *s, struct solo_stretch *x, struct solo_site *site, uint64_t addr)
{
    struct solo_data now;

    s->watch.data(s->watch.context, s->thread, site->insn, 0, addr, &now);
    if (!site->has_cell || now.cell != site->data.cell) /* data of one kind come one after the other */
        tell_site(s, x, site);
    if (now.stride != site->data.stride) /* a division takes long */
        site->inverse = now.stride && now.stride <= SOLO_MOST_STRIDE ? UINT64_MAX / now.stride + 1 : 0;
    site->data = now;
    site->loses = now.cell + 1;
    site->has_cell = true;
    site->located = s->watch.changes->count;
    if (s->seen)
        s->missed = mem_reach(s->missed, &s->missed_cells, now.cell, sizeof *s->missed);
    solo_see_version(s);
}

void solo_locate(struct solo *s, struct solo_stretch *x, struct solo_group *owner, uint64_t base)
{
    uint64_t below = UINT64_MAX, above = UINT64_MAX, version = s->version;

    for (struct solo_group *g = owner; g < x->group + x->groups; g++)
        for (unsigned i = g->from; &x->group[g->owner] == owner && i < g->from + g->sites; i++) {
            struct solo_site *site = &x->site[i];
            uint64_t addr = base + (uint64_t)site->disp;
            const struct solo_data *d = &site->data;
            if (!solo_is_located(s, site, addr))
                solo_locate_site(s, x, site, addr);
            below = addr - d->start < below ? addr - d->start : below;
            above = d->end - addr < above ? d->end - addr : above;
        }
    x->extent[owner->extent] = (struct solo_extent){ base - below, below + above ? below + above : UINT64_MAX };
    if (s->version != version)
        forget_data(s, x); /* what was looked up before may be something else now */
}
