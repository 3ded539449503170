/* SPDX-License-Identifier: MIT */
#include "sim/exec/exec_blocks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "format/codec/item_state.h"
#include "format/file/trace.h"
#include "sim/exec/miss_buffer.h"

/* ---- making one ---- */

bool solo_can(const struct machine_config *c)
{
    unsigned levels = 0;

    for (; levels < CONFIG_LEVELS && c->level[levels].bytes; levels++) {
        const struct level_config *l = &c->level[levels];
        uint64_t sets = l->bytes / l->line / level_ways(l);
        if (l->is_shared || l->is_write_through || !l->allocates || l->inclusion != INCLUSION_NONE
            || (l->replacement != &replacement_lru && level_ways(l) > 1) || (sets & (sets - 1)))
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
    s->watch.often = w->often ? w->often : SOLO_OFTEN;
    s->length = c->level[0].line;
    s->shift = (uint32_t)__builtin_ctzll(s->length);
    s->number = s->apart = 1;
    s->version = w->changes->count;
    s->items.value_size = sizeof(struct solo_item *);
    s->blocks.value_size = sizeof(struct solo_stretch *);
    s->paths.value_size = sizeof(struct solo_path *);
    int r = solo_caches_init(s, err);
    if (r < 0) {
        solo_free(s);
        return r;
    }
    if (w->see && s->is_lean && s->level[0].ways == 1) {
        s->seen = s->seen_at = malloc(SOLO_SEEN * sizeof *s->seen);
        if (!s->seen) {
            solo_free(s);
            return err_set(err, PEET_ERR_MEMORY, "no memory for a simulation");
        }
        s->seen_end = s->seen + SOLO_SEEN;
        s->choice = (struct solo_choice){ 0, UINT32_MAX };
    }
    solo_code_init(s);
    s->nobody.name = UINT64_MAX;
    for (unsigned i = 0; i < SOLO_NAMES; i++)
        s->by_name[i] = &s->nobody;
    *ret = s;
    return 0;
}

void solo_free(struct solo *s)
{
    if (!s)
        return;
    solo_code_release(s);
    solo_caches_release(s);
    loop_plans_release(&s->plans);
    map_release(&s->items);
    map_release(&s->blocks);
    map_release(&s->paths);
    arena_release(&s->arena);
    free(s->threads);
    free(s->seen);
    free(s->missed);
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
    if (is_gap)
        solo_begin_sample(s);
    if (is_gap && thread < s->thread_count && s->words && s->words->turn)
        s->words->turn(s->words); /* it is somewhere else now, and perhaps in a window */
    solo_see_version(s);
}

/* ---- most often ---- */

/* A stretch on its path: where it calls is known to that. */
static void leave(struct solo *s, const struct solo_stretch *x)
{
    struct solo_path *p = x->path;

    if (x->turn == TURN_CALLS) {
        p->callee = p->callee ? p->callee : paths_child(s->watch.paths, p->node, x->call.site);
        paths_call(s->calls, &(struct path_call){ x->call.site, x->call.back, p->callee });
    } else {
        paths_leave(s->watch.paths, s->calls, x->turn, &x->call);
    }
    solo_set_easy(s);
}

void solo_enter(struct solo *s, struct solo_stretch *x)
{
    bool turns = x->turn | s->calls->turn;

    if (turns)
        solo_set_node(s, paths_arrive(s->watch.paths, s->calls, x->addr, x->is_entry));
    if (__builtin_expect(x->current != s->current, 0))
        solo_renew(s, x);
    if (turns)
        leave(s, x);
    s->last = x;
}

/* The references of a stretch, whose sources are there. */
static void refer_all(struct solo *s, struct solo_stretch *x)
{
    for (unsigned i = 0; i < x->groups; i++) {
        struct solo_group *g = &x->group[i];
        uint64_t base = s->src[g->base] + (s->src[g->index] << g->scale);
        g->places |= UINT64_C(1) << base % 64;
        if (!solo_is_easy(s, x, g, base))
            solo_run_group(s, x, g, base);
    }
    s->time.clock += x->cycles;
    x->runs++;
}

/* Of a run that nobody looks at: calls. */
static void follow(struct solo *s, struct solo_stretch *x)
{
    if (x->turn | s->calls->turn) {
        solo_set_node(s, paths_arrive(s->watch.paths, s->calls, x->addr, x->is_entry));
        paths_leave(s->watch.paths, s->calls, x->turn, &x->call);
        solo_set_easy(s);
    }
    s->last = x;
}

static void pass_stretch(struct solo *s, struct solo_stretch *x)
{
    follow(s, x);
    solo_pass(s, x->is_varying ? 0 : x->sites);
}

static void run_or_pass(struct solo *s, struct solo_stretch *x)
{
    if (solo_passes(s)) {
        pass_stretch(s, x);
    } else {
        solo_enter(s, x);
        refer_all(s, x);
    }
}

/* ---- loops ---- */

/* One run of several, which may be on either side of a border. */
static void run_one_of(struct solo *s, struct solo_stretch *x)
{
    run_or_pass(s, x);
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

/* All trips of a loop whose body is a stretch; borders may lie between them. */
static void run_flat(struct solo *s, struct solo_stretch *x, const struct plan_node *n, uint64_t trips)
{
    while (trips > 0) {
        uint64_t now = solo_passes(s) ? solo_trips_now(s, x, trips) : 1;
        if (solo_passes(s)) {
            follow(s, x);
            solo_pass(s, now * x->sites);
        } else {
            solo_enter(s, x);
            refer_all(s, x);
        }
        go_on(s, n->node, now);
        trips -= now;
        if (solo_is_turn(s))
            solo_turn(s);
    }
}

static void run_loop(struct solo *s, const struct solo_item *it)
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
            run_one_of(s, solo_stretch_of(s, b));
        }
        return;
    }
    loop_run_init(&run, it->plan, s->src);
    while ((n = loop_run_next(&run, s->src))) {
        struct solo_stretch *x = it->node[n - it->plan->node];
        if (n->kind == PLAN_FLAT)
            run_flat(s, x, n, run.trips);
        else
            run_one_of(s, x);
    }
}

/* Where the bases of a stretch are, for whoever makes code of it. */
static void see_places(const struct solo *s, struct solo_stretch *x)
{
    for (unsigned i = 0; i < x->groups; i++) {
        struct solo_group *g = &x->group[i];
        g->places |= UINT64_C(1) << (s->src[g->base] + (s->src[g->index] << g->scale)) % 64;
    }
}

/* A loop that is long becomes machine code before it is executed at all; where its references will be is seen from some trips. */
static void foresee(struct solo *s, struct solo_item *it, const uint64_t *slots, const struct peet_names *names)
{
    const struct peet_loop *l = it->item->loop;
    uint64_t insns, references;
    struct loop_run run;
    const struct plan_node *n;

    memcpy(s->src + PEET_SRC_SLOT, slots, it->slots * sizeof *slots);
    words_settle(it->trips, it->slots, names, it->name, s->src + PEET_SRC_SLOT);
    if (!it->plan
        || (loop_totals(s->trace->schema, l, s->src + PEET_SRC_SLOT + l->values, &insns, &references)
            && references < (uint64_t)s->watch.often * SOLO_LONG))
        return;
    loop_run_init(&run, it->plan, s->src);
    for (unsigned i = 0; i < SOLO_FORESEEN && (n = loop_run_next(&run, s->src)); i++) {
        uint64_t trips = n->kind == PLAN_FLAT ? run.trips : 1;
        for (unsigned k = 0; k < SOLO_FORESEEN && trips > 0; k++, trips--) {
            see_places(s, it->node[n - it->plan->node]);
            if (n->kind == PLAN_FLAT)
                go_on(s, n->node, 1);
        }
        if (trips > 0)
            go_on(s, n->node, trips);
    }
    solo_code_make(s, it);
    it->executed = s->watch.often;
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
    uint32_t process = s->watch.source->context[thread].process;
    s->moves += process != s->process;
    s->process = process;
    s->thread = thread;
    s->calls = paths_thread(s->watch.paths, thread);
    s->last = t->last;
    solo_set_node(s, t->node);
    solo_set_easy(s);
}

static void leave_thread(struct solo *s)
{
    struct solo_thread *t = &s->threads[s->thread];

    memcpy(t->register_, s->src + PEET_SRC_REGISTER, sizeof t->register_);
    t->node = s->node;
    t->last = s->last;
}

static int run_other(struct solo *s, const struct solo_item *it, const uint64_t *slots, const struct peet_names *names,
                     struct peet_event *ret, struct peet_err *err)
{
    const struct item *item = it->item;

    memcpy(s->src + PEET_SRC_SLOT, slots, it->slots * sizeof *slots);
    if (it->kind == SOLO_LOOP) {
        words_settle(it->trips, it->slots, names, it->name, s->src + PEET_SRC_SLOT);
        run_loop(s, it);
        return 0;
    }
    if (it->kind == SOLO_VARYING) {
        int r = 0;
        block_compute(item->block, s->src);
        if (solo_passes(s)) {
            pass_stretch(s, it->stretch);
            solo_pass_varying(s, item->block);
        } else {
            solo_enter(s, it->stretch);
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

static inline void run_block(struct solo *s, const struct solo_item *it, const uint64_t *slots)
{
    memcpy(s->src + PEET_SRC_SLOT, slots, it->slots * sizeof *slots);
    block_compute(it->item->block, s->src);
    run_or_pass(s, it->stretch);
    block_effects(it->item->block, s->src);
}

/* The item with that name. */
static inline struct solo_item *item_named(struct solo *s, const struct peet_names *names, uint64_t name,
                                           struct peet_err *err)
{
    struct solo_item **known = &s->by_name[name * SOLO_FACTOR >> (64 - SOLO_NAME_BITS)];

    if (__builtin_expect((*known)->name != name, 0)) {
        struct solo_item *it = solo_item_named(s, names, name, err);
        if (!it)
            return NULL;
        *known = it;
    }
    return *known;
}

/* Up to an event, or a border. */
static int run_words(struct solo *s, struct source_words *w, uint64_t limit, struct peet_event *ret,
                     struct peet_err *err)
{
    int r = 0;

    while (w->word < w->end && r == 0 && s->time.clock < limit && !solo_is_turn(s)) {
        struct solo_item *it = item_named(s, w->names, *w->word, err);
        if (!it)
            return err->code;
        if ((size_t)(w->end - w->word) <= it->slots)
            return err_set(err, PEET_ERR_USAGE, "the words of an item are not whole");
        const uint64_t *slots = w->word + 1;
        if (it->kind == SOLO_LOOP && it->executed < s->watch.often && !solo_passes(s))
            foresee(s, it, slots, w->names);
        if (it->has_code && !solo_passes(s)) {
            uint64_t *next = solo_code_run(s, it, w->word, w->end, limit);
            bool has_run = next != w->word;
            w->word = next;
            if (has_run)
                continue;
        }
        w->word += it->slots + 1;
        if (it->kind > SOLO_MACHINE)
            r = run_other(s, it, slots, w->names, ret, err);
        else
            run_block(s, it, slots);
        if (++it->executed == s->watch.often)
            solo_code_make(s, it);
    }
    return r;
}

int solo_run(struct solo *s, uint32_t thread, struct source_words *w, uint64_t limit, struct peet_event *ret,
             struct peet_err *err)
{
    take_thread(s, thread, w);
    w->registers = NULL;
    solo_begin_words(s, w);
    int r = 0;
    do {
        if (solo_is_turn(s))
            solo_turn(s);
        r = run_words(s, w, limit, ret, err);
    } while (r == 0 && w->turn && w->word < w->end && s->time.clock < limit);
    solo_end_words(s);
    s->time.references = solo_references(s);
    leave_thread(s);
    return r;
}
