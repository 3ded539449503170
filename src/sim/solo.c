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
    s->paths.value_size = sizeof(struct solo_path *);
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
    map_release(&s->paths);
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
    bool is_gap = s->watch.knows && e->kind == PEET_EV_gap;

    if (is_gap)
        solo_forget(s);
    s->watch.event(s->watch.context, thread, e);
    if (is_gap && thread < s->thread_count) {
        s->threads[thread].turn = SOLO_MOVES; /* it is somewhere else now, */
        if (s->words && s->words->turn)
            s->words->turn(s->words); /*   and perhaps in a window */
    }
    solo_see_version(s);
}

/* ---- most often ---- */

/* A line of a cluster elsewhere in its set, where it can be seen. */
static __attribute__((noinline)) bool search(struct solo *s, struct solo_cluster *c, unsigned which, uint64_t line)
{
    uint32_t e = solo_find(&s->level[0], line);

    if (e == UINT32_MAX || s->first[e].seen[c->is_write] != line)
        return false;
    c->hint[which] = e;
    return true;
}

/* A line was touched last with that number, unless it was later. Whether it was not used in this interval. */
static inline bool stamp_one(struct solo *s, uint32_t entry, uint64_t number)
{
    struct solo_entry *at = &s->first[entry];
    bool is_new = at->stamp < s->recent.since;

    if (__builtin_expect(is_new, 0))
        solo_use(s, at->record);
    at->stamp = at->stamp < number ? number : at->stamp;
    return is_new;
}

/* The lines of a cluster that has two: whichever site touched one last. */
static inline bool stamp_two(struct solo *s, const struct solo_stretch *x, const struct solo_cluster *c, uint64_t base,
                             uint32_t first_entry, uint32_t last_entry)
{
    uint64_t last = (base + c->last) >> s->shift, final = (base + (uint64_t)x->site[c->order].disp) >> s->shift;
    unsigned i = c->sites - 1u;

    while (i > 0 && (base + (uint64_t)x->site[c->site[i]].disp) >> s->shift == final)
        i--;
    bool is_new = stamp_one(s, final == last ? first_entry : last_entry, s->number + c->site[i]);
    return stamp_one(s, final == last ? last_entry : first_entry, s->number + c->order) || is_new;
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
        uint32_t e = direct ? (uint32_t)(first & l->mask) : c->hint[0];
        if (first == last)
            is_new |= stamp_one(s, e, s->number + c->order);
        else
            is_new |= stamp_two(s, x, c, base, e, direct ? (uint32_t)(last & l->mask) : c->hint[1]);
    }
    return is_new;
}

/* The second line of a cluster: whether it can be seen, and no reference is in both. */
static __attribute__((noinline)) bool is_second_seen(struct solo *s, const struct solo_stretch *x,
                                                     struct solo_cluster *c, uint64_t base)
{
    uint64_t last = (base + c->last) >> s->shift;
    uint32_t e = s->level[0].ways == 1 ? (uint32_t)(last & s->level[0].mask) : c->hint[1];

    if (s->first[e].seen[c->is_write] != last && (s->level[0].ways == 1 || !search(s, c, 1, last)))
        return false;
    return !solo_straddles(s, x, c, base);
}

enum { NEAR_CLUSTERS = 8 };

/* Whether all references of a run were found at once; then they are counted. */
static inline __attribute__((always_inline)) bool run_easily(struct solo *s, struct solo_stretch *x, unsigned clusters,
                                                             bool direct, enum bases bases)
{
    uint64_t number = s->number, since = s->recent.since, mask = s->level[0].mask;
    struct solo_entry *all = s->first;
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
        if (__builtin_expect(all[e].seen[c->is_write] != first, 0)) {
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
        struct solo_entry *at = &all[entry[i]];
        if (__builtin_expect(at->stamp < since, 0)) {
            solo_use(s, at->record);
            is_new = true;
        }
        at->stamp = number + cluster[i].order;
    }
    s->number = number + x->sites;
    s->time.references += x->sites;
    s->time.clock += x->cycles;
    x->runs++;
    if (is_new)
        solo_uses_end(s);
    return true;
}

/* Where calls and returns lead to. A jump matters only if it goes where somebody returns to. */
static inline void follow(struct solo *s, const struct solo_stretch *x)
{
    uint64_t addr = x->part[0].head.addr;
    bool has_jumped = s->turn == SOLO_JUMPS;

    if (s->turn == SOLO_MOVES || x->turn == SOLO_MOVES || (has_jumped && addr == s->back)) {
        s->node = s->watch.path(s->watch.context, s->thread, addr, &x->last, has_jumped, &s->back);
        s->current = s->version << 32 | s->node;
    }
    s->turn = x->turn;
}

static inline __attribute__((always_inline)) void enter(struct solo *s, struct solo_stretch *x)
{
    if (x->turn | s->turn)
        follow(s, x);
    if (__builtin_expect(x->current != s->current, 0))
        solo_renew(s, x);
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

/* A run that nobody looks at; calls are followed. */
static void pass_stretch(struct solo *s, struct solo_stretch *x)
{
    if (x->turn | s->turn)
        follow(s, x);
    s->last = x;
    solo_pass(s, x->is_varying ? 0 : x->sites);
}

/* ---- loops ---- */

enum { FEW_TRIPS = 3 }; /* that are faster one by one */

/* One run of several, which may be on either side of a border. */
static inline __attribute__((always_inline)) void run_one_of(struct solo *s, struct solo_stretch *x, bool direct)
{
    if (solo_passes(s))
        pass_stretch(s, x);
    else
        run_stretch(s, x, direct);
    if (solo_is_turn(s))
        solo_turn(s);
}

/* The values of a loop after so many trips. */
static void go_on(struct solo *s, const struct peet_loop_node *n, uint64_t trips)
{
    uint64_t *value = s->src + PEET_SRC_SLOT;

    for (unsigned i = n->enters; i < n->assigns; i++) {
        const struct peet_assign *a = &n->assign[i];
        value[a->dst] += ((uint64_t)a->add + (a->plus ? value[a->plus - 1] : 0)) * trips;
    }
}

/* The steps of a stretch's clusters, where they hang on values: what these grow by in a trip. */
static void find_steps(struct solo *s, const struct solo_stretch *x, const struct peet_loop_node *n)
{
    uint64_t step[PEET_SOURCES] = { 0 }, *value = s->src + PEET_SRC_SLOT;

    for (unsigned i = n->enters; i < n->assigns; i++)
        step[PEET_SRC_SLOT + n->assign[i].dst] +=
            (uint64_t)n->assign[i].add + (n->assign[i].plus ? value[n->assign[i].plus - 1] : 0);
    for (unsigned i = 0; i < x->clusters; i++)
        s->way[i].step = step[x->cluster[i].base] + (step[x->cluster[i].index] << x->cluster[i].scale);
}

static inline void run_trips(struct solo *s, struct solo_stretch *x, const struct plan_node *n, uint64_t trips)
{
    for (unsigned i = 0; i < x->clusters; i++) {
        s->way[i].base = base_of(s, &x->cluster[i], BASES_INDEXED);
        s->way[i].step = x->cluster[i].step;
    }
    if (!n->step)
        find_steps(s, x, n->node);
    solo_run_trips(s, x, trips);
    go_on(s, n->node, trips);
}

/* Trips on both sides of borders. */
static void run_parts(struct solo *s, struct solo_stretch *x, const struct plan_node *n, uint64_t trips)
{
    while (trips > 0) {
        uint64_t now = solo_trips_now(s, x, trips);
        if (solo_passes(s)) {
            solo_pass(s, now * x->sites);
            go_on(s, n->node, now);
        } else {
            enter(s, x);
            run_trips(s, x, n, now);
        }
        trips -= now;
        if (solo_is_turn(s))
            solo_turn(s);
    }
}

/* All trips of a loop whose body is a stretch. */
static inline __attribute__((always_inline)) void run_flat(struct solo *s, struct solo_stretch *x,
                                                           const struct plan_node *n, uint64_t trips, bool direct)
{
    if (s->border != UINT64_MAX) {
        run_parts(s, x, n, trips);
        return;
    }
    if (trips <= FEW_TRIPS) {
        for (uint64_t i = 0; i < trips; i++) {
            run_stretch(s, x, direct);
            go_on(s, n->node, 1);
        }
        return;
    }
    enter(s, x);
    run_trips(s, x, n, trips);
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
            run_one_of(s, solo_stretch_of(s, b), direct);
        }
        return;
    }
    loop_run_init(&run, it->plan, s->src);
    while ((n = loop_run_next(&run, s->src))) {
        struct solo_stretch *x = it->node[n - it->plan->node];
        if (n->kind == PLAN_FLAT)
            run_flat(s, x, n, run.trips, direct);
        else
            run_one_of(s, x, direct);
    }
}

/* ---- words ---- */

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
    s->turn = t->turn;
    s->back = t->back;
    s->last = t->last;
    s->current = s->version << 32 | s->node;
}

static void leave_thread(struct solo *s)
{
    struct solo_thread *t = &s->threads[s->thread];

    memcpy(t->register_, s->src + PEET_SRC_REGISTER, sizeof t->register_);
    t->node = s->node;
    t->turn = s->turn;
    t->back = s->back;
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
        int r = 0;
        block_compute(item->block, s->src);
        if (solo_passes(s)) {
            pass_stretch(s, it->stretch);
            solo_pass_varying(s, item->block);
        } else {
            enter(s, it->stretch);
            r = solo_run_varying(s, it->stretch, item->block, err);
        }
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

/* Up to the border, if there is one. */
static inline __attribute__((always_inline)) int run_words(struct solo *s, struct source_words *w, uint64_t limit,
                                                           bool direct, bool has_border, struct peet_event *ret,
                                                           struct peet_err *err)
{
    uint64_t *word = w->word, *end = w->end;
    int r = 0;

    while (word < end && r == 0 && s->time.clock < limit && !(has_border && solo_is_turn(s))) {
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
        if (has_border && solo_passes(s))
            pass_stretch(s, it->stretch);
        else
            run_stretch(s, it->stretch, direct);
        if (it->kind == SOLO_MACHINE)
            block_effects(it->item->block, s->src);
    }
    w->word = word;
    return r;
}

/* All of them, on whatever side of borders. */
static int run_sampled(struct solo *s, struct source_words *w, uint64_t limit, struct peet_event *ret,
                       struct peet_err *err)
{
    int r = 0;

    while (r == 0 && w->word < w->end && s->time.clock < limit) {
        if (solo_is_turn(s))
            solo_turn(s);
        r = s->level[0].ways == 1 ? run_words(s, w, limit, true, true, ret, err)
                                  : run_words(s, w, limit, false, true, ret, err);
    }
    return r;
}

int solo_run(struct solo *s, uint32_t thread, struct source_words *w, uint64_t limit, struct peet_event *ret,
             struct peet_err *err)
{
    take_thread(s, thread, w);
    w->registers = NULL;
    solo_begin_words(s, w);
    int r = w->turn                 ? run_sampled(s, w, limit, ret, err)
            : s->level[0].ways == 1 ? run_words(s, w, limit, true, false, ret, err)
                                    : run_words(s, w, limit, false, false, ret, err);
    solo_end_words(s);
    leave_thread(s);
    return r;
}
