/* SPDX-License-Identifier: MIT */
#include "sim/solo.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "format/contexts.h"
#include "format/trace.h"
#include "sim/solo_state.h"

/* ---- making one ---- */

bool solo_can(const struct machine_config *c)
{
    unsigned levels = 0;

    for (; levels < CONFIG_LEVELS && c->level[levels].bytes; levels++) {
        const struct level_config *l = &c->level[levels];
        uint64_t sets = l->bytes / l->line / l->ways;
        if (l->is_shared || l->is_write_through || !l->allocates || l->inclusion != INCLUSION_NONE
            || (l->replacement != &replacement_lru && l->ways > 1) || (sets & (sets - 1)))
            return false;
    }
    return levels > 0 && c->cpus == 1 && c->contexts == 1 && !c->tlb.entries && !c->instructions.bytes
           && !c->by_reference && !c->jitter;
}

int solo_new(const struct machine_config *c, const struct peet_trace *t, const struct solo_watch *w, struct solo **ret,
             struct peet_err *err)
{
    struct solo *s = calloc(1, sizeof *s);

    assert(solo_can(c));
    if (!s)
        return err_set(err, PEET_ERR_MEMORY, "no memory for a simulation");
    s->config = *c;
    s->trace = t;
    s->watch = *w;
    s->length = c->level[0].line;
    s->shift = (uint32_t)__builtin_ctzll(s->length);
    s->number = 1;
    s->version = 1;
    s->items.value_size = sizeof(struct solo_item *);
    s->blocks.value_size = sizeof(struct solo_stretch *);
    int r = solo_caches_init(s, err);
    if (r < 0) {
        solo_free(s);
        return r;
    }
    *ret = s;
    return 0;
}

void solo_free(struct solo *s)
{
    if (!s)
        return;
    solo_caches_release(s);
    loop_plans_release(&s->plans);
    map_release(&s->items);
    map_release(&s->blocks);
    arena_release(&s->arena);
    free(s->threads);
    free(s);
}

struct solo_time *solo_time(struct solo *s)
{
    return &s->time;
}

const struct fabric_use *solo_fabric(const struct solo *s)
{
    return &s->fabric.use;
}

void solo_event(struct solo *s, uint32_t thread, const struct peet_event *e)
{
    if (s->watch.event(s->watch.context, thread, e))
        s->version++;
}

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
static void renew(struct solo *s, struct solo_stretch *x)
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
static void locate_site(struct solo *s, struct solo_stretch *x, struct solo_site *site, uint64_t addr, uint64_t place)
{
    tell_site(s, x, site);
    site->cell = s->watch.cell(s->watch.context, s->thread, site->insn, place, addr, &site->start, &site->end);
    site->has_cell = true;
}

void solo_locate(struct solo *s, struct solo_stretch *x, struct solo_cluster *c, uint64_t base)
{
    uint64_t below = UINT64_MAX, above = UINT64_MAX;

    for (unsigned i = 0; i < c->sites; i++) {
        struct solo_site *site = &x->site[c->site[i]];
        uint64_t addr = base + (uint64_t)site->disp;
        if (!site->has_cell || c->span == 0 || addr - site->start >= site->end - site->start)
            locate_site(s, x, site, addr, 0);
        below = addr - site->start < below ? addr - site->start : below;
        above = site->end - addr < above ? site->end - addr : above;
    }
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

/* ---- most often ---- */

/* A line of a cluster elsewhere in its set, where it can be seen. */
static __attribute__((noinline)) bool search(struct solo *s, struct solo_cluster *c, unsigned which, uint64_t line)
{
    uint32_t e = solo_find(&s->level[0], line);

    if (e == UINT32_MAX || s->seen[c->is_write][e] != line)
        return false;
    c->hint[which] = e;
    return true;
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

/* The lines of a cluster that has two: whichever site touched one last. Whether one of them was not used in this interval. */
static bool stamp_two(struct solo *s, const struct solo_stretch *x, const struct solo_cluster *c, uint64_t base,
                      uint32_t first_entry, uint32_t last_entry)
{
    uint64_t first = (base + c->first) >> s->shift;
    bool is_new = false;

    for (unsigned i = 0; i < c->sites; i++) {
        uint64_t line = (base + (uint64_t)x->site[c->site[i]].disp) >> s->shift;
        uint32_t e = line == first ? first_entry : last_entry;
        uint64_t *stamp = &s->level[0].stamp[e];
        if (*stamp < s->recent.since) {
            solo_use(s, s->record[e]);
            is_new = true;
        }
        *stamp = *stamp < s->number + c->site[i] ? s->number + c->site[i] : *stamp;
    }
    return is_new;
}

/* Where bases come from: one source, or two. */
enum bases { BASES_PLAIN, BASES_INDEXED };

static inline __attribute__((always_inline)) uint64_t base_of(const struct solo *s, const struct solo_cluster *c,
                                                              enum bases bases)
{
    return s->src[c->base] + (bases == BASES_INDEXED ? s->src[c->index] << c->scale : 0);
}

/* The same for a run in which some clusters have two lines; all of them have been found. */
static __attribute__((noinline)) bool stamp_all(struct solo *s, const struct solo_stretch *x, enum bases bases)
{
    const struct solo_level *l = &s->level[0];
    bool is_new = false;

    for (unsigned i = 0; i < x->clusters; i++) {
        const struct solo_cluster *c = &x->cluster[i];
        uint64_t base = base_of(s, c, bases);
        uint64_t first = (base + c->first) >> s->shift, last = (base + c->last) >> s->shift;
        bool direct = l->ways == 1;
        is_new |= stamp_two(s, x, c, base, direct ? (uint32_t)(first & l->mask) : c->hint[0],
                            direct ? (uint32_t)(last & l->mask) : c->hint[1]);
    }
    return is_new;
}

/* The second line of a cluster: whether it can be seen, and no reference is in both. */
static __attribute__((noinline)) bool is_second_seen(struct solo *s, const struct solo_stretch *x,
                                                     struct solo_cluster *c, uint64_t base)
{
    uint64_t last = (base + c->last) >> s->shift;
    uint32_t e = s->level[0].ways == 1 ? (uint32_t)(last & s->level[0].mask) : c->hint[1];

    if (s->seen[c->is_write][e] != last && (s->level[0].ways == 1 || !search(s, c, 1, last)))
        return false;
    return !solo_straddles(s, x, c, base);
}

enum { NEAR_CLUSTERS = 8 };

/* Whether all references of a run were found at once; then they are counted. */
static inline __attribute__((always_inline)) bool run_easily(struct solo *s, struct solo_stretch *x, unsigned clusters,
                                                             bool direct, enum bases bases)
{
    uint64_t number = s->number, since = s->recent.since, *stamp = s->level[0].stamp, mask = s->level[0].mask;
    uint64_t *const seen[2] = { s->seen[0], s->seen[1] };
    uint32_t shift = s->shift, own[NEAR_CLUSTERS], *entry = clusters <= NEAR_CLUSTERS ? own : s->entry;
    struct solo_cluster *cluster = x->cluster;
    bool has_two = false, is_new = false;

    for (unsigned i = 0; i < clusters; i++) {
        struct solo_cluster *c = &cluster[i];
        uint64_t base = base_of(s, c, bases);
        if (__builtin_expect(base - c->low >= c->span, 0))
            solo_locate(s, x, c, base);
        uint64_t first = (base + c->first) >> shift, last = (base + c->last) >> shift;
        uint32_t e = direct ? (uint32_t)(first & mask) : c->hint[0];
        if (__builtin_expect(seen[c->is_write][e] != first, 0)) {
            if (direct || !search(s, c, 0, first))
                return false;
            e = c->hint[0];
        }
        if (__builtin_expect(first != last, 0)) {
            if (!is_second_seen(s, x, c, base))
                return false;
            has_two = true;
        }
        entry[i] = e;
    }
    if (__builtin_expect(has_two, 0))
        is_new = stamp_all(s, x, bases);
    for (unsigned i = 0; !has_two && i < clusters; i++) { /* their numbers rise */
        uint64_t *at = &stamp[entry[i]];
        if (__builtin_expect(*at < since, 0)) {
            solo_use(s, s->record[entry[i]]);
            is_new = true;
        }
        *at = number + cluster[i].order;
    }
    s->number = number + x->sites;
    s->time.references += x->sites;
    s->time.clock += x->cycles;
    x->runs++;
    if (is_new)
        solo_uses_end(s);
    return true;
}

/* Where calls and returns lead to. */
static __attribute__((noinline)) void follow(struct solo *s, const struct solo_stretch *x)
{
    s->node = s->watch.path(s->watch.context, s->thread, &x->part[0].head);
    s->current = s->version << 32 | s->node;
    s->may_move = x->moves;
}

static inline __attribute__((always_inline)) void enter(struct solo *s, struct solo_stretch *x)
{
    if (x->moves | s->may_move)
        follow(s, x);
    if (__builtin_expect(x->current != s->current, 0))
        renew(s, x);
    s->last = x;
}

/* The rest of the bases, for a run that is not easy. */
static void find_bases(struct solo *s, const struct solo_stretch *x)
{
    for (unsigned i = 0; i < x->clusters; i++) {
        const struct solo_cluster *c = &x->cluster[i];
        s->base[i] = s->src[c->base] + (s->src[c->index] << c->scale);
    }
}

/* Loops of a length that is known have no end that could be guessed wrong. */
static inline __attribute__((always_inline)) bool run_shape(struct solo *s, struct solo_stretch *x, bool direct)
{
    switch (x->is_indexed ? 8 : x->clusters < 8 ? x->clusters : 9) {
    case 0: return run_easily(s, x, 0, direct, BASES_PLAIN);
    case 1: return run_easily(s, x, 1, direct, BASES_PLAIN);
    case 2: return run_easily(s, x, 2, direct, BASES_PLAIN);
    case 3: return run_easily(s, x, 3, direct, BASES_PLAIN);
    case 4: return run_easily(s, x, 4, direct, BASES_PLAIN);
    case 5: return run_easily(s, x, 5, direct, BASES_PLAIN);
    case 6: return run_easily(s, x, 6, direct, BASES_PLAIN);
    case 7: return run_easily(s, x, 7, direct, BASES_PLAIN);
    case 8: return run_easily(s, x, x->clusters, direct, BASES_INDEXED);
    default: return run_easily(s, x, x->clusters, direct, BASES_PLAIN);
    }
}

static inline __attribute__((always_inline)) void run_stretch(struct solo *s, struct solo_stretch *x, bool direct)
{
    enter(s, x);
    if (!run_shape(s, x, direct)) {
        find_bases(s, x);
        solo_run_slowly(s, x);
    }
}

/* ---- loops ---- */

/* All trips of a loop whose body is a stretch. */
static void run_flat(struct solo *s, struct solo_stretch *x, const struct plan_node *n, const struct loop_run *run)
{
    struct flat_loop *f = &s->flat;

    enter(s, x);
    loop_run_flatten(run, n, s->src, f);
    unsigned site = 0;
    for (unsigned i = 0; i < f->records; i++) {
        if (f->record[i].kind == PEET_BLOCK)
            continue;
        unsigned cluster = x->site[site].cluster;
        s->base[cluster] = f->record[i].addr - (uint64_t)x->site[site++].disp;
        s->step[cluster] = f->step[i];
    }
    solo_run_trips(s, x, f->trips);
    f->trips = 0;
}

static void run_loop(struct solo *s, const struct solo_item *it, bool direct)
{
    struct loop_run run;
    const struct plan_node *n;

    if (!it->plan) {
        const uint64_t *slot = s->src + PEET_SRC_SLOT, *slots;
        struct peet_loop_run all = { it->item->loop, slot, slot + it->item->loop->values };
        const struct peet_block *b;
        peet_loop_walk_init(&s->walk, s->trace, &all);
        while ((b = peet_loop_walk_next(&s->walk, &slots))) {
            memcpy(s->src + PEET_SRC_SLOT, slots, b->slots * sizeof *slots);
            block_compute(b, s->src);
            run_stretch(s, solo_stretch_of(s, b), direct);
        }
        return;
    }
    loop_run_init(&run, it->plan, s->src);
    while ((n = loop_run_next(&run, s->src))) {
        struct solo_stretch *x = it->node[n - it->plan->node];
        if (n->kind == PLAN_FLAT)
            run_flat(s, x, n, &run);
        else
            run_stretch(s, x, direct);
    }
}

/* ---- words ---- */

/* A block of whose references some vary in size, or do not happen. */
static int run_varying(struct solo *s, struct solo_stretch *x, const struct peet_block *b, struct peet_err *err)
{
    uint64_t stall = 0, hits = 0;

    enter(s, x);
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
                locate_site(s, x, site, addr, 0);
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

static void take_thread(struct solo *s, uint32_t thread, const struct source_words *w)
{
    while (s->thread_count <= thread) {
        struct solo_thread *more = realloc(s->threads, (s->thread_count + 16u) * sizeof *more);
        assert(more);
        memset(more + s->thread_count, 0, 16 * sizeof *more);
        s->threads = more;
        s->thread_count += 16;
    }
    struct solo_thread *t = &s->threads[thread];
    if (w->registers)
        memcpy(t->register_, w->registers, sizeof t->register_);
    memcpy(s->src + PEET_SRC_REGISTER, t->register_, sizeof t->register_);
    s->thread = thread;
    s->node = t->node;
    s->may_move = t->may_move;
    s->last = t->last;
    s->current = s->version << 32 | s->node;
}

static void leave_thread(struct solo *s)
{
    struct solo_thread *t = &s->threads[s->thread];

    memcpy(t->register_, s->src + PEET_SRC_REGISTER, sizeof t->register_);
    t->node = s->node;
    t->may_move = s->may_move;
    t->last = s->last;
}

static int run_other(struct solo *s, const struct solo_item *it, uint64_t *slots, const struct peet_names *names,
                     bool direct, struct peet_event *ret, struct peet_err *err)
{
    const struct item *item = it->item;

    if (it->kind == SOLO_LOOP) {
        words_settle(it->trips, it->slots, names, it->name, slots);
        memcpy(s->src + PEET_SRC_SLOT, slots, it->slots * sizeof *slots);
        run_loop(s, it, direct);
        return 0;
    }
    memcpy(s->src + PEET_SRC_SLOT, slots, it->slots * sizeof *slots);
    if (it->kind == SOLO_VARYING) {
        block_compute(item->block, s->src);
        int r = run_varying(s, it->stretch, item->block, err);
        block_effects(item->block, s->src);
        return r;
    }
    if (item->event->kind >= PEET_EVENT_KINDS)
        return 0;
    if (item->event->kind == PEET_EV_set_register) {
        if (slots[0] >= PEET_REGISTERS)
            return err_set(err, PEET_ERR_DAMAGED, "it sets a register that there is not");
        s->src[PEET_SRC_REGISTER + slots[0]] = slots[1];
        return 0;
    }
    *ret = (struct peet_event){ .kind = item->event->kind, .args = item->slots, .site = item->event->site };
    for (unsigned i = 0; i < PEET_EVENT_ARGS && i < item->slots; i++)
        ret->arg[i] = slots[i];
    return 1;
}

static inline __attribute__((always_inline)) int run_words(struct solo *s, struct source_words *w, uint64_t limit,
                                                           bool direct, struct peet_event *ret, struct peet_err *err)
{
    uint64_t *word = w->word, *end = w->end;
    int r = 0;

    while (word < end && r == 0 && s->time.clock < limit) {
        struct solo_item **known = &s->by_name[*word * 0x9e3779b97f4a7c15u >> (64 - SOLO_NAME_BITS)], *it = *known;
        if (__builtin_expect(!it || it->name != *word, 0)) {
            it = *known = solo_item_named(s, w->names, *word, err);
            if (!it)
                return err->code;
        }
        if ((size_t)(end - word) <= it->slots)
            return err_set(err, PEET_ERR_USAGE, "the words of an item are not whole");
        uint64_t *slots = word + 1;
        word += it->slots + 1;
        if (it->kind > SOLO_MACHINE) {
            r = run_other(s, it, slots, w->names, direct, ret, err);
            continue;
        }
        uint64_t *to = s->src + PEET_SRC_SLOT;
        if (it->slots <= 4 && end - slots >= 4) /* most often, and faster than a call */
            memcpy(to, slots, 4 * sizeof *slots);
        else
            for (unsigned i = 0; i < it->slots; i++)
                to[i] = slots[i];
        if (it->kind == SOLO_MACHINE)
            block_compute(it->item->block, s->src);
        run_stretch(s, it->stretch, direct);
        if (it->kind == SOLO_MACHINE)
            block_effects(it->item->block, s->src);
    }
    w->word = word;
    return r;
}

int solo_run(struct solo *s, uint32_t thread, struct source_words *w, uint64_t limit, struct peet_event *ret,
             struct peet_err *err)
{
    take_thread(s, thread, w);
    w->registers = NULL;
    int r = s->level[0].ways == 1 ? run_words(s, w, limit, true, ret, err) : run_words(s, w, limit, false, ret, err);
    leave_thread(s);
    return r;
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
