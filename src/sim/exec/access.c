/* SPDX-License-Identifier: MIT */
/* References that are not easy, one by one, as the machine with several processors would do them. */
#include "base/err.h"
#include "sim/exec/miss_buffer.h"
#include "sim/exec/uses.h"

/* ---- a reference ---- */

/* Whether all caches have lost a line. */
static bool is_replaced(const struct solo *s, const struct solo_line *l, uint64_t line)
{
    for (unsigned i = 0; i < s->levels; i++)
        if (solo_in(s, l, line, i))
            return false;
    return solo_was_here(l);
}

/* Whether a sample does not know if a line that is nowhere was missed. */
static inline bool is_unknown(struct solo *s, uint32_t cell, uint32_t leaf, uint64_t line, unsigned cause)
{
    if (__builtin_expect(s->watch.knows == NULL, 1))
        return false;
    solo_tell_seen(s);
    return !s->watch.knows(s->watch.context, s, cell, leaf, line, cause == MISS_cold, s->number);
}

/* What a reference did, line by line: cycles that it took, and of these, cycles of hits in the first cache, and beyond these, cycles in which
 * the fabric was busy; lines that the watcher was told were missed, and for how many cycles it was told that the reference waited. */
struct touched {
    uint64_t stall, hits, bus, misses, told;
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* A reference at a line that may have waited: tells the watcher, unless nothing happened. */
static void tell_line(struct solo *s, const struct solo_outcome *o, uint64_t hit, uint64_t reference,
                      const struct solo_miss *m, struct touched *t)
{
    uint64_t stall = o->stall > hit ? o->stall - hit : 0;
    bool is_miss = o->cause != MISS_KINDS;

    if (!is_miss && !o->is_upgrade && stall == 0)
        return;
    solo_meet(s, (uint64_t)m->cell << 32 | m->by, solo_how(o->level, o->cause, m->was_recent, o->is_upgrade), m->offset,
              1, stall);
    solo_see_window(s, reference, is_miss, stall);
    t->misses += is_miss;
    t->told += stall;
}

/* All lines of a reference; m: what the watcher is to know of each of them. A lock's reference (s->cell is 0) it is not told. */
static struct touched touch(struct solo *s, uint64_t addr, uint64_t size, enum peet_kind kind, uint64_t now,
                            struct solo_miss *m)
{
    struct touched t = { 0 };
    uint64_t hit = kind == PEET_PREFETCH ? 0 : s->level[0].latency, reference = solo_references(s);
    uint64_t first = addr >> s->shift, more = ((addr & (s->length - 1)) + (size ? size : 1) - 1) >> s->shift;

    for (uint64_t k = 0; k <= more; k++) {
        uint64_t line = (first + k) & (UINT64_MAX >> s->shift); /* behind the last one comes the first */
        struct solo_line *l = solo_line_at(&s->lines, line);
        m->was_recent = is_replaced(s, l, line) && solo_is_recent(s, l); /* of others nobody asks */
        m->by = solo_lost_to(l);
        if (__builtin_expect(s->watch.use != NULL, 0) && solo_was_here(l) && !is_replaced(s, l, line))
            solo_see_use(s, l, line, 1);
        uint64_t waited = s->counts.waited;
        struct solo_outcome o = solo_touch(s, l, line, kind, now + t.stall);
        bool unknown = o.cause != MISS_KINDS && s->cell && is_unknown(s, s->cell - 1, m->leaf, line, o.cause);
        solo_use_untold(s, l, line);
        s->number++;
        solo_uses_end(s);
        t.stall += o.stall;
        t.hits += least(o.stall, hit);
        t.bus += least(o.stall - least(o.stall, hit), s->counts.waited - waited);
        if (s->cell && !unknown)
            tell_line(s, &o, hit, reference, m, &t);
    }
    solo_count_apart(s, more);
    return t;
}

/* The time of a reference. */
static void spend(struct solo *s, const struct touched *t)
{
    s->time.compute += t->hits;
    s->time.bus += t->bus;
    s->time.stall += t->stall - t->hits - t->bus;
}

/* A reference at that time. */
static uint64_t refer(struct solo *s, struct solo_stretch *x, struct solo_site *site, uint64_t addr, uint64_t size,
                      uint64_t now)
{
    uint64_t hit = site->kind == PEET_PREFETCH ? 0 : s->level[0].latency;
    struct solo_leaf *part = &x->path->part[site->part];
    struct solo_miss m = { .cell = site->data.cell, .leaf = part->leaf, .offset = solo_offset_in(&site->data, addr) };

    s->cell = site->data.cell + 1;
    struct touched t = touch(s, addr, size, (enum peet_kind)site->kind, now, &m);
    spend(s, &t);
    part->misses += t.misses;
    part->stall += t.told;
    if (t.hits != hit) { /* several lines, or a level that is farther away and faster: what was told is one hit */
        s->watch.refer(s->watch.context, site->data.cell, 0, 0, t.hits - hit);
        s->watch.run(s->watch.context, part->leaf, 0, t.hits - hit, 0, 0);
    }
    return t.stall;
}

/* A line comes into the first cache, which is the only one, on its way to the cell that is. */
static inline uint32_t put_leanly(struct solo *s, struct solo_line *l, uint64_t line, bool is_write)
{
    struct solo_level *level = &s->level[0];
    uint32_t e = level->ways == 1 ? (uint32_t)(line & level->mask) : solo_oldest(s, line);
    struct solo_entry *at = &s->first[e];
    struct solo_line *gone = at->record;
    uint8_t state = s->lean_state[is_write];

    if (__builtin_expect(gone != NULL, 1)) {
        gone->stamp = at->stamp;
        gone->lost = s->cell;
        s->lean_write_backs += s->is_dirty[solo_state(s, e)];
    } else {
        level->full[level->filled++] = e;
    }
    solo_show(s, at, line, state);
    at->stamp = s->number;
    at->record = l;
    level->line[e] = line;
    level->state[e] = state;
    solo_comes_to(s, l, e);
    s->lean[is_write][solo_was_here(l)]++;
    return e;
}

/* A reference to a line that is not in the only cache; returns where it is then. */
static inline uint32_t miss_leanly(struct solo *s, struct solo_stretch *x, struct solo_site *site, struct solo_line *l,
                                   uint64_t addr)
{
    uint64_t line = addr >> s->shift, who = (uint64_t)site->data.cell << 32 | solo_lost_to(l);
    unsigned cause = solo_was_here(l) ? MISS_replaced : MISS_cold;
    bool was_recent = solo_is_recent(s, l);
    const struct solo_entry *at = &s->first[line & s->level[0].mask];
    bool is_seen = s->seen && at->record;

    s->cell = site->data.cell + 1;
    s->time.clock += s->lean_stall;
    if (is_seen)
        solo_see(s, line, at->stamp, site->data.cell | (l->lost ? 0 : s->seen_new));
    uint32_t e = put_leanly(s, l, line, site->is_write);
    bool unknown = !is_seen && is_unknown(s, site->data.cell, x->path->part[site->part].leaf, line, cause);
    solo_use_untold(s, l, line);
    if (unknown)
        return e;
    solo_meet(s, who, solo_how(SIM_BEYOND, cause, was_recent, false), solo_offset_in(&site->data, addr), 1,
              s->lean_stall);
    solo_see_window(s, solo_references(s), 1, s->lean_stall);
    x->path->part[site->part].lean++;
    return e;
}

/* A reference was counted, and is so again with its run, as if it were easy. */
static inline void uncount_hit(struct solo *s, const struct solo_site *site)
{
    s->counts.reads -= site->kind != PEET_STORE;
    s->counts.writes -= site->is_write;
    s->counts.hits[0]--;
    s->counts.stall -= site->kind == PEET_PREFETCH ? 0 : s->level[0].latency;
}

/* The same for a line that is read, and that the second cache has. */
static inline uint64_t refer_second(struct solo *s, struct solo_stretch *x, const struct solo_site *site,
                                    struct solo_line *l, uint64_t addr, uint64_t now)
{
    uint64_t stall = s->level[1].latency - s->level[0].latency;
    uint64_t who = (uint64_t)site->data.cell << 32 | solo_lost_to(l), line = addr >> s->shift;

    s->cell = site->data.cell + 1;
    solo_see_use(s, l, line, 1);
    solo_take_second(s, l, line, now);
    solo_use_untold(s, l, line);
    if (stall) {
        solo_meet(s, who, solo_how(1, MISS_KINDS, false, false), solo_offset_in(&site->data, addr), 1, stall);
        solo_see_window(s, solo_references(s), 0, stall);
        x->path->part[site->part].stall += stall;
    }
    return stall;
}

/* The same for a line that no cache has; returns where it is then. */
static inline uint32_t miss_far(struct solo *s, struct solo_stretch *x, const struct solo_site *site,
                                struct solo_line *l, uint64_t addr)
{
    uint64_t line = addr >> s->shift, who = (uint64_t)site->data.cell << 32 | solo_lost_to(l);
    uint64_t waited = s->counts.waited, hit = s->level[0].latency;
    bool was_recent = solo_is_recent(s, l);

    s->cell = site->data.cell + 1;
    struct solo_outcome o = solo_touch(s, l, line, (enum peet_kind)site->kind, s->time.clock + site->issued);
    bool unknown = is_unknown(s, site->data.cell, x->path->part[site->part].leaf, line, o.cause);
    solo_use_untold(s, l, line);
    uint64_t stall = o.stall - hit;
    waited = least(stall, s->counts.waited - waited);
    s->time.bus += waited;
    s->time.stall += stall - waited;
    s->time.clock += stall;
    uncount_hit(s, site);
    if (!unknown) {
        struct solo_leaf *part = &x->path->part[site->part];
        solo_meet(s, who, solo_how(SIM_BEYOND, o.cause, was_recent, false), solo_offset_in(&site->data, addr), 1,
                  stall);
        solo_see_window(s, solo_references(s), 1, stall);
        part->misses++;
        part->stall += stall;
    }
    return solo_in_first(s, l, line) - 1;
}

/* A reference that is not easy, at that time, in a run that is counted as if all were: returns how long it took beyond that and what is counted already. */
static uint64_t refer_site(struct solo *s, struct solo_stretch *x, struct solo_site *site, uint64_t addr, uint64_t now)
{
    if (s->is_lean && addr >> s->shift == (addr + site->size - 1) >> s->shift && site->kind != PEET_PREFETCH) {
        struct solo_line *l = solo_line_at(&s->lines, addr >> s->shift);
        if (!solo_in_first(s, l, addr >> s->shift)) {
            miss_leanly(s, x, site, l, addr);
            s->number++;
            solo_uses_end(s);
            return 0;
        }
    }
    if (s->has_second && site->kind == PEET_LOAD && addr >> s->shift == (addr + site->size - 1) >> s->shift) {
        struct solo_line *l = solo_line_at(&s->lines, addr >> s->shift);
        if (!solo_in_first(s, l, addr >> s->shift) && l->entry[1]) {
            uint64_t stall = refer_second(s, x, site, l, addr, now);
            s->number++;
            solo_uses_end(s);
            return stall;
        }
    }
    uint64_t hit = site->kind == PEET_PREFETCH ? 0 : s->level[0].latency;
    uint64_t stall = refer(s, x, site, addr, site->size, now);

    uncount_hit(s, site);
    s->time.compute -= hit;
    return stall - hit;
}

/* A line that was found is used for the first time in a while. */
static __attribute__((noinline)) void use_old(struct solo *s, struct solo_entry *at, uint64_t line)
{
    solo_use(s, at->record, line);
    at->stamp = s->number++;
    solo_uses_end(s);
}

/* A reference whose line is known where it is, if it is anywhere. */
static inline void touch_entry(struct solo *s, struct solo_entry *at, uint64_t line)
{
    if (__builtin_expect(at->stamp < s->recent.since, 0))
        use_old(s, at, line);
    else
        at->stamp = s->number++;
}

/* Whether a reference is found at once; then its line is stamped. */
static inline bool is_found(struct solo *s, const struct solo_site *site, uint64_t addr)
{
    uint64_t line = addr >> s->shift;
    uint32_t e = solo_entry_of(s, line, site->is_write);

    if (e == UINT32_MAX || (addr + site->size - 1) >> s->shift != line
        || (!solo_is_seen(s, e, line, site->is_write) && !(site->is_write && solo_write_silently(s, e, line))))
        return false;
    touch_entry(s, &s->first[e], line);
    return true;
}

static void run_site(struct solo *s, struct solo_stretch *x, unsigned i, uint64_t base)
{
    struct solo_site *site = &x->site[i];
    uint64_t addr = base + (uint64_t)site->disp;

    if (!is_found(s, site, addr))
        s->time.clock += refer_site(s, x, site, addr, s->time.clock + site->issued);
}

void solo_run_group(struct solo *s, struct solo_stretch *x, struct solo_group *g, uint64_t base)
{
    struct solo_group *owner = &x->group[g->owner];

    if (!solo_is_inside(x, owner, base))
        solo_locate(s, x, owner, base);
    for (unsigned i = g->from; i < g->from + g->sites; i++)
        run_site(s, x, i, base);
}

/* All but the first of them, which was a miss. */
static __attribute__((noinline)) void run_rest(struct solo *s, struct solo_stretch *x, struct solo_group *g,
                                               uint64_t base)
{
    s->number -= g->sites - 1u;
    s->first[s->level[0].mask & (base + g->first) >> s->shift].stamp = s->number - 1;
    solo_uses_end(s);
    for (unsigned i = g->from + 1u; i < g->from + g->sites; i++)
        run_site(s, x, i, base);
}

/* Whether a line that comes from the second cache for a group can then be used by all of it. */
static inline bool is_usable(const struct solo *s, const struct solo_group *g, const struct solo_line *l)
{
    unsigned state = s->level[1].state[l->entry[1] - 1];

    return !g->is_write || s->seen_as[state][1] || (s->silent[state] && s->seen_as[s->silent[state]][1]);
}

static inline bool is_nowhere(const struct solo *s, const struct solo_line *l, uint64_t line)
{
    return !solo_in_first(s, l, line) && (s->levels < 2 || !l->entry[1]) && (s->levels < 3 || !l->entry[2]);
}

void solo_run_elsewhere(struct solo *s, struct solo_stretch *x, struct solo_group *g, uint64_t base)
{
    struct solo_site *site = &x->site[g->from];
    uint64_t addr = base + (uint64_t)site->disp, line = addr >> s->shift;
    struct solo_line *l = solo_line_at(&s->lines, line);
    uint32_t e = solo_in_first(s, l, line) - 1;

    if (e != UINT32_MAX && (solo_is_seen(s, e, line, g->is_write) || solo_write_silently(s, e, line))) {
        if (s->first[e].stamp < s->recent.since)
            solo_use(s, l, line);
    } else if (e == UINT32_MAX && s->is_lean && solo_is_enough(s, g, site)) {
        e = miss_leanly(s, x, site, l, addr);
    } else if (e == UINT32_MAX && s->has_second && l->entry[1] && is_usable(s, g, l)) {
        s->time.clock += refer_second(s, x, site, l, addr, s->time.clock + site->issued);
        e = solo_in_first(s, l, line) - 1;
    } else if (is_nowhere(s, l, line) && s->is_far && solo_is_enough(s, g, site)) {
        e = miss_far(s, x, site, l, addr);
    } else {
        solo_run_group(s, x, g, base);
        return;
    }
    if (g->is_write && !solo_is_seen(s, e, line, true))
        solo_write_silently(s, e, line);
    solo_is_at(s, line, e);
    s->number += g->sites;
    s->first[e].stamp = s->number - 1; /* all others have found it */
    solo_uses_end(s);
}

/* A group in a set of which a sample knows nothing yet: perhaps it has missed its line. */
static inline void run_unknown(struct solo *s, struct solo_stretch *x, struct solo_group *g, uint64_t base,
                               struct solo_line *l)
{
    const struct solo_site *site = &x->site[g->from];
    uint64_t line = (base + g->first) >> s->shift, is_new = solo_was_here(l) ? 0 : SOLO_MAYBE_COLD;

    s->cell = site->data.cell + 1;
    s->time.clock += s->lean_stall;
    uint32_t e = put_leanly(s, l, line, site->is_write);
    solo_see(s, line, x->path->part[site->part].leaf, SOLO_UNKNOWN | is_new | site->data.cell);
    solo_use_untold(s, l, line);
    s->number += g->sites;
    s->first[e].stamp = s->number - 1;
    if (g->is_write && !site->is_write && !solo_write_silently(s, e, line))
        run_rest(s, x, g, base);
    else
        solo_uses_end(s);
}

void solo_run_direct(struct solo *s, struct solo_stretch *x, struct solo_group *g, uint64_t base)
{
    struct solo_site *site = &x->site[g->from];
    uint64_t line = (base + g->first) >> s->shift;
    struct solo_line *l = solo_line_at(&s->lines, line);
    uint32_t e = (uint32_t)(line & s->level[0].mask), cell = site->data.cell;
    struct solo_entry *at = &s->first[e];
    struct solo_line *gone = at->record;

    uint64_t what = (uint64_t)l->lost << 1 | !solo_is_recent(s, l);
    if (!gone && s->seen && (s->seen_new || solo_was_here(l))) {
        run_unknown(s, x, g, base, l);
        return;
    }
    if (__builtin_expect(gone == l || !gone || !solo_memo_offset(site, base, &what), 0)) {
        solo_run_elsewhere(s, x, g, base);
        return;
    }
    solo_count_memo(s, x, site, what);
    if (s->seen) {
        solo_see(s, line, at->stamp, cell | (l->lost ? 0 : s->seen_new));
        s->recent.told++;
    }
    gone->stamp = at->stamp;
    gone->lost = cell + 1;
    s->lean_write_backs += s->is_dirty[solo_state(s, e)];
    uint8_t state = s->level[0].state[e] = s->lean_state[site->is_write];
    at->record = l; /* which line that is, nobody asks a cache of this kind */
    solo_show(s, at, line, state);
    s->number += g->sites;
    at->stamp = s->number - 1;
    if (!solo_is_used(s, l))
        solo_use_anew(s, l, line);
    if (g->is_write && !site->is_write && !solo_write_silently(s, e, line))
        run_rest(s, x, g, base);
    else
        solo_uses_end(s);
}

int solo_run_varying(struct solo *s, struct solo_stretch *x, const struct peet_block *b, struct peet_err *err)
{
    uint64_t stall = 0, hits = 0;

    for (unsigned i = 0; i < b->operands; i++) {
        const struct peet_operand *o = &b->operand[i];
        struct solo_site *site = &x->site[i];
        uint64_t bytes = operand_bytes(o, s->src);
        uint64_t addr = s->src[site->base] + (s->src[site->index] << site->scale) + (uint64_t)site->disp;
        if (bytes >= OPERAND_MAX_BYTES)
            return err_set(err, PEET_ERR_DAMAGED, "an operand of 4 GiB or more");
        addr -= o->down && bytes ? bytes - o->size : 0;
        for (uint64_t here; bytes > 0; bytes -= here, addr += here) {
            here = bytes < PEET_MAX_SIZE ? bytes : PEET_MAX_SIZE;
            if (!solo_is_located(s, site, addr))
                solo_locate_site(s, x, site, addr);
            site->extra++;
            hits += site->kind == PEET_PREFETCH ? 0 : s->level[0].latency;
            stall += refer(s, x, site, addr, here, s->time.clock + x->cost + stall);
        }
    }
    s->watch.run(s->watch.context, x->path->part[0].leaf, 0, hits, 0, 0);
    s->time.clock += x->cost + stall;
    x->runs++;
    return 0;
}

/* ---- references that no words tell ---- */

/* A reference of a lock of which nobody is told. */
static uint64_t touch_apart(struct solo *s, const struct peet_record *r)
{
    struct solo_miss unused = { 0 };

    s->cell = 0;
    solo_count_apart(s, 1); /* it is no reference of the program */
    struct touched t = touch(s, r->addr, r->size, (enum peet_kind)r->kind, s->time.clock, &unused);
    spend(s, &t);
    return t.stall;
}

/* That block may have been passed over. */
uint32_t solo_leaf(struct solo *s, uint32_t thread)
{
    const struct solo_thread *t = thread < s->thread_count ? &s->threads[thread] : NULL;
    const struct solo_stretch *last = t ? t->last : NULL;

    if (!last)
        return UINT32_MAX;
    if (last->path && last->path->node == t->node)
        return last->path->part[last->parts - 1].leaf;
    return s->watch.leaf(s->watch.context, t->node, last->part[last->parts - 1].head.id);
}

/* The data that library code refers to at an address, for a call: most often the same as before. */
static void find_data(struct solo *s, uint32_t thread, uint32_t insn, uint64_t addr, uint64_t site)
{
    struct solo_moved *m = &s->moved;
    const struct solo_data *d = &m->data;

    if (m->thread == thread && m->site == site && m->insn == insn && m->version == s->watch.changes->count
        && addr - d->start < d->end - d->start)
        return;
    struct solo_data data;
    s->watch.data(s->watch.context, thread, insn, site, addr, &data);
    if (data.cell != m->data.cell)
        solo_tell_moved(s);
    m->data = data;
    m->thread = thread;
    m->site = site;
    m->insn = insn;
    m->version = s->watch.changes->count;
    solo_see_version(s);
}

/* A reference to a line that is not in the only cache. */
static uint64_t move_leanly(struct solo *s, const struct peet_record *r, struct solo_line *l)
{
    struct solo_moved *m = &s->moved;
    uint64_t line = r->addr >> s->shift, who = (uint64_t)m->data.cell << 32 | solo_lost_to(l);
    uint64_t how = solo_how(SIM_BEYOND, solo_was_here(l) ? MISS_replaced : MISS_cold, solo_is_recent(s, l), false);
    bool is_write = r->kind == PEET_STORE || r->kind == PEET_UPDATE;

    put_leanly(s, l, line, is_write);
    solo_use_untold(s, l, line);
    solo_meet(s, who, how, solo_offset_in(&m->data, m->addr), 1, s->lean_stall);
    solo_see_window(s, solo_references(s), 1, s->lean_stall);
    s->number++;
    solo_uses_end(s);
    s->counts.reads += r->kind != PEET_STORE; /* as if it were found, which solo_count_lean knows */
    s->counts.writes += is_write;
    s->counts.hits[0]++;
    s->counts.stall += s->level[0].latency;
    s->time.compute += s->level[0].latency;
    m->misses++;
    m->stall += s->lean_stall;
    return s->level[0].latency + s->lean_stall;
}

/* A reference that was found at once. */
static uint64_t move_easily(struct solo *s, const struct peet_record *r)
{
    uint64_t hit = s->level[0].latency;

    s->counts.reads += r->kind != PEET_STORE;
    s->counts.writes += r->kind == PEET_STORE || r->kind == PEET_UPDATE;
    s->counts.hits[0]++;
    s->counts.stall += hit;
    s->time.compute += hit;
    return hit;
}

/* Another one; *ret_hits: cycles of hits in the first cache. */
static uint64_t move(struct solo *s, const struct peet_record *r, uint64_t *ret_hits)
{
    struct solo_moved *m = &s->moved;
    struct solo_miss miss = { .cell = m->data.cell, .leaf = m->leaf, .offset = solo_offset_in(&m->data, m->addr) };
    struct touched t = touch(s, r->addr, r->size, (enum peet_kind)r->kind, s->time.clock, &miss);

    spend(s, &t);
    m->misses += t.misses;
    m->stall += t.told;
    *ret_hits = t.hits;
    return t.stall;
}

/* A reference of library code, or of a lock, which is to the data at that address. */
static uint64_t refer_for(struct solo *s, uint32_t thread, const struct peet_record *r, uint64_t data, uint64_t site,
                          uint64_t issue)
{
    struct solo_moved *m = &s->moved;
    uint64_t hits = s->level[0].latency;
    uint32_t leaf = solo_leaf(s, thread);

    s->thread = thread;
    find_data(s, thread, r->id, data, site);
    m->addr = data;
    s->cell = m->data.cell + 1;
    if (leaf != m->leaf) {
        solo_tell_moved(s);
        m->leaf = leaf;
    }
    uint64_t first = r->addr >> s->shift, last = (r->addr + (r->size ? r->size : 1) - 1) >> s->shift, stall;
    bool is_write = r->kind == PEET_STORE || r->kind == PEET_UPDATE, is_one = first == last && r->kind != PEET_PREFETCH;
    uint32_t e = is_one ? solo_entry_of(s, first, is_write) : UINT32_MAX;
    if (e != UINT32_MAX && solo_is_seen(s, e, first, is_write) && s->first[e].stamp >= s->recent.since) {
        s->first[e].stamp = s->number++;
        stall = move_easily(s, r);
    } else if (is_one && s->is_lean && !s->watch.knows && !solo_in_first(s, solo_line_at(&s->lines, first), first)) {
        stall = move_leanly(s, r, solo_line_at(&s->lines, first));
    } else {
        stall = move(s, r, &hits);
    }
    m->references++;
    m->writes += is_write;
    m->compute += issue + hits;
    if (s->watch.knows) /* samples may end here */
        solo_tell_moved(s);
    s->time.references = solo_references(s);
    return stall;
}

uint64_t solo_refer(struct solo *s, uint32_t thread, const struct peet_record *r, uint64_t site, uint64_t issue)
{
    return refer_for(s, thread, r, r->addr, site, issue);
}

uint64_t solo_sync(struct solo *s, uint32_t thread, const struct peet_record *r, uint64_t data, uint64_t site,
                   uint64_t issue)
{
    return s->watch.knows ? touch_apart(s, r) : refer_for(s, thread, r, data, site, issue);
}
