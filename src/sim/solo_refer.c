/* SPDX-License-Identifier: MIT */
/* References one by one, as the machine with several processors would do them; and what the watcher is told. */
#include <assert.h>

#include "base/err.h"
#include "sim/solo_state.h"

/* ---- telling ---- */

static void tell_site(struct solo *s, const struct solo_stretch *x, struct solo_site *site)
{
    uint64_t references = (x->is_varying ? 0 : x->runs - site->since) + site->extra;
    bool is_write = site->kind == PEET_STORE || site->kind == PEET_UPDATE;
    uint64_t latency = site->kind == PEET_PREFETCH ? 0 : s->level[0].latency;

    if (site->has_cell && references)
        s->watch.refer(s->watch.context, site->cell, references, is_write ? references : 0, references * latency);
    site->since = x->runs;
    site->extra = 0;
}

static void tell_leaves(struct solo *s, struct solo_stretch *x)
{
    for (unsigned i = 0; i < x->parts && x->runs > x->settled; i++)
        s->watch.run(s->watch.context, x->part[i].leaf, x->runs - x->settled,
                     (x->runs - x->settled) * x->part[i].cycles);
    x->settled = x->runs;
}

/* What runs add up to if all is found at once; where it was not, that is taken off already. */
static void count_runs(struct solo *s, struct solo_stretch *x)
{
    uint64_t runs = x->runs - x->counted, stall = (x->cycles - x->cost) * runs;

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
    s->time.stall += stall;
}

void solo_settle(struct solo *s)
{
    for (struct solo_stretch *x = s->stretches; x; x = x->next) {
        for (unsigned i = 0; i < x->sites; i++)
            tell_site(s, x, &x->site[i]);
        tell_leaves(s, x);
        count_runs(s, x);
    }
}

void solo_counts(const struct solo *s, struct memory_counts *ret)
{
    *ret = s->counts;
}

/* What the stretch was told is of another path, or of other data. */
void solo_renew(struct solo *s, struct solo_stretch *x)
{
    if (x->current >> 32 != s->version)
        for (unsigned i = 0; i < x->clusters; i++)
            x->cluster[i].span = 0;
    if ((uint32_t)x->current != s->node || !x->current) {
        tell_leaves(s, x);
        for (unsigned i = 0; i < x->parts; i++)
            x->part[i].leaf = s->watch.leaf(s->watch.context, s->node, x->part[i].head.id);
    }
    x->current = s->current;
}

/* The data to which a site refers. */
static void locate_site(struct solo *s, struct solo_stretch *x, struct solo_site *site, uint64_t addr)
{
    tell_site(s, x, site);
    site->cell = s->watch.cell(s->watch.context, s->thread, site->insn, 0, addr, &site->start, &site->end);
    site->has_cell = true;
    solo_see_version(s);
}

void solo_locate(struct solo *s, struct solo_stretch *x, struct solo_cluster *c, uint64_t base)
{
    uint64_t below = UINT64_MAX, above = UINT64_MAX, version = s->version;

    for (unsigned i = 0; i < c->sites; i++) {
        struct solo_site *site = &x->site[c->site[i]];
        uint64_t addr = base + (uint64_t)site->disp;
        if (!site->has_cell || c->span == 0 || addr - site->start >= site->end - site->start)
            locate_site(s, x, site, addr);
        below = addr - site->start < below ? addr - site->start : below;
        above = site->end - addr < above ? site->end - addr : above;
    }
    for (unsigned i = 0; s->version != version && i < x->clusters; i++)
        x->cluster[i].span = 0; /* what was looked up before may be something else now */
    c->low = base - below;
    c->span = below + above ? below + above : UINT64_MAX;
}

/* ---- one by one ---- */

/* All lines of a reference; what the watcher is to know of it, but who it is. */
static struct solo_outcome touch(struct solo *s, uint64_t addr, uint64_t size, enum peet_kind kind, uint64_t now,
                                 bool *ret_recent, uint32_t *ret_by)
{
    struct solo_outcome all = { .cause = MISS_KINDS };
    uint64_t first = addr >> s->shift, last = (addr + (size ? size : 1) - 1) >> s->shift;

    for (uint64_t line = first; line <= last; line++) {
        struct solo_line *l = s->line = solo_line_at(&s->lines, line);
        if (line == first) {
            *ret_recent = solo_is_recent(s, l);
            *ret_by = l->by - 1;
        }
        struct solo_outcome o = solo_touch(s, line, kind, now + all.stall);
        solo_use(s, l);
        s->number++;
        solo_uses_end(s);
        all.stall += o.stall;
        all.level = o.level > all.level ? o.level : all.level;
        all.cause = o.cause == MISS_KINDS                            ? all.cause
                    : all.cause == MISS_KINDS || o.cause > all.cause ? o.cause
                                                                     : all.cause;
        all.is_upgrade |= o.is_upgrade;
    }
    return all;
}

static void see(struct solo *s, const struct solo_outcome *o, uint64_t hit, uint32_t cell, uint32_t leaf,
                struct sim_reference *r, bool was_recent, uint32_t by)
{
    if (o->level == 0 && !o->is_upgrade && o->stall <= hit)
        return;
    if (o->stall < hit) { /* a level that is farther away may be faster: less than what was told */
        s->watch.refer(s->watch.context, cell, 0, 0, o->stall - hit);
        s->watch.run(s->watch.context, leaf, 0, o->stall - hit);
    }
    r->context = s->thread;
    r->level = o->level;
    r->cause = o->cause;
    r->is_upgrade = o->is_upgrade;
    r->stall = o->stall;
    s->watch.miss(s->watch.context, cell, leaf, r, was_recent, by, s->time.references);
}

/* A reference at that time. */
static uint64_t refer(struct solo *s, struct solo_stretch *x, struct solo_site *site, uint64_t addr, uint64_t size,
                      uint64_t now)
{
    uint64_t waited = s->counts.waited, hit = site->kind == PEET_PREFETCH ? 0 : s->level[0].latency;
    bool was_recent = false;
    uint32_t by = 0;

    s->cell = site->cell + 1;
    struct solo_outcome o = touch(s, addr, size, (enum peet_kind)site->kind, now, &was_recent, &by);
    struct sim_reference r = {
        .insn = site->insn, .addr = addr, .now = now, .size = (uint32_t)size, .kind = site->kind
    };
    r.waited = s->counts.waited - waited;
    s->time.bus += r.waited;
    s->time.stall += o.stall - r.waited;
    see(s, &o, hit, site->cell, x->part[site->part].leaf, &r, was_recent, by);
    return o.stall;
}

uint64_t solo_refer_site(struct solo *s, struct solo_stretch *x, struct solo_site *site, uint64_t addr, uint64_t now)
{
    uint64_t hit = site->kind == PEET_PREFETCH ? 0 : s->level[0].latency;
    uint64_t stall = refer(s, x, site, addr, site->size, now);

    s->counts.reads -= site->kind != PEET_STORE;
    s->counts.writes -= site->kind == PEET_STORE || site->kind == PEET_UPDATE;
    s->counts.hits[0]--;
    s->counts.stall -= hit;
    s->time.stall -= hit;
    return stall - hit;
}

void solo_run_slowly(struct solo *s, struct solo_stretch *x)
{
    uint64_t references = s->time.references, waited = 0;

    for (unsigned i = 0; i < x->clusters; i++)
        if (s->base[i] - x->cluster[i].low >= x->cluster[i].span)
            solo_locate(s, x, &x->cluster[i], s->base[i]);
    for (unsigned i = 0; i < x->sites; i++) {
        struct solo_site *site = &x->site[i];
        uint64_t addr = s->base[site->cluster] + (uint64_t)site->disp;
        if (solo_is_easy(s, x, site, addr))
            continue;
        s->time.references = references + i;
        waited += solo_refer_site(s, x, site, addr, s->time.clock + site->issued + waited);
    }
    s->time.references = references + x->sites;
    s->time.clock += x->cycles + waited;
    x->runs++;
}

bool solo_straddles(const struct solo *s, const struct solo_stretch *x, const struct solo_cluster *c, uint64_t base)
{
    for (unsigned i = 0; i < c->sites; i++) {
        const struct solo_site *site = &x->site[c->site[i]];
        uint64_t addr = base + (uint64_t)site->disp;
        if (addr >> s->shift != (addr + site->size - 1) >> s->shift)
            return true;
    }
    return false;
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
            if (!site->has_cell || site->version != s->version || addr - site->start >= site->end - site->start) {
                locate_site(s, x, site, addr);
                site->version = s->version;
            }
            site->extra++;
            hits += site->kind == PEET_PREFETCH ? 0 : s->level[0].latency;
            stall += refer(s, x, site, addr, here, s->time.clock + x->cost + stall);
            s->time.references++;
        }
    }
    s->watch.run(s->watch.context, x->part[0].leaf, 0, hits);
    s->time.clock += x->cost + stall;
    x->runs++;
    return 0;
}

/* ---- references that no words tell ---- */

uint64_t solo_access(struct solo *s, uint64_t addr, uint64_t size, enum peet_kind kind, uint64_t now)
{
    uint32_t unused_by;
    bool unused;

    s->cell = 0;
    return touch(s, addr, size, kind, now, &unused, &unused_by).stall;
}

uint64_t solo_refer(struct solo *s, uint32_t thread, const struct peet_record *r, uint64_t site, uint64_t issue)
{
    uint64_t waited = s->counts.waited, hit = s->level[0].latency, start, end;
    const struct solo_stretch *last = thread < s->thread_count ? s->threads[thread].last : NULL;
    uint32_t leaf = last ? last->part[last->parts - 1].leaf : UINT32_MAX;
    bool was_recent = false;
    uint32_t by = 0;
    struct sim_reference seen = { .insn = r->id,
                                  .site = site,
                                  .addr = r->addr,
                                  .now = s->time.clock,
                                  .size = r->size,
                                  .kind = r->kind,
                                  .issue = issue };

    s->thread = thread;
    uint32_t cell = s->watch.cell(s->watch.context, thread, r->id, site, r->addr, &start, &end);
    solo_see_version(s);
    s->cell = cell + 1;
    struct solo_outcome o = touch(s, r->addr, r->size, (enum peet_kind)r->kind, s->time.clock, &was_recent, &by);
    seen.waited = s->counts.waited - waited;
    s->watch.refer(s->watch.context, cell, 1, r->kind == PEET_STORE || r->kind == PEET_UPDATE, issue + hit);
    s->watch.run(s->watch.context, leaf, 0, issue + hit);
    see(s, &o, hit, cell, leaf, &seen, was_recent, by);
    s->time.references++;
    s->time.bus += seen.waited;
    s->time.stall += o.stall - seen.waited;
    return o.stall;
}
