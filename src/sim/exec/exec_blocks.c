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

bool blocks_can_run(const struct machine_config *c)
{
    unsigned levels = 0;

    for (; levels < CONFIG_LEVELS && c->level[levels].bytes; levels++) {
        const struct level_config *l = &c->level[levels];
        uint64_t sets = l->bytes / l->line / level_ways(l);
        if (l->is_shared || l->is_write_through || !l->allocates || l->inclusion != INCLUSION_NONE
            || (l->replacement != &replacement_lru && level_ways(l) > 1) || (sets & (sets - 1)))
            return false;
    }
    return levels > 0 && c->cpus == 1 && c->core_threads == 1 && !c->tlb.entries && !c->instructions.bytes
           && !c->by_reference && !c->jitter && c->speculation.policy == SPECULATE_NONE;
}

int blocks_new(const struct machine_config *c, const struct peet_trace *t, const struct block_observer *observer,
               struct exec_blocks **ret, struct peet_err *err)
{
    struct exec_blocks *s = calloc(1, sizeof *s);

    assert(blocks_can_run(c));
    if (!s)
        return err_set(err, PEET_ERR_MEMORY, "no memory for a simulation");
    s->config = *c;
    s->trace = t;
    s->observer = *observer;
    s->observer.jit_threshold = observer->jit_threshold ? observer->jit_threshold : JIT_RUNS;
    s->cache.length = c->level[0].line;
    s->cache.shift = (uint32_t)__builtin_ctzll(s->cache.length);
    s->number = s->non_program_touches = 1;
    s->binding.version = observer->changes->count;
    s->translated.items.value_size = sizeof(struct tb_item *);
    s->translated.blocks.value_size = sizeof(struct tblock *);
    s->translated.paths.value_size = sizeof(struct tb_path *);
    int r = blocks_caches_init(s, err);
    if (r < 0) {
        blocks_free(s);
        return r;
    }
    if (observer->log && s->cache.fixed_miss_cost && s->cache.level[0].ways == 1) {
        s->sample.log = s->log.at = malloc(SAMPLE_LOG_ENTRIES * sizeof *s->sample.log);
        if (!s->sample.log) {
            blocks_free(s);
            return err_set(err, PEET_ERR_MEMORY, "no memory for a simulation");
        }
        s->log.end = s->sample.log + SAMPLE_LOG_ENTRIES;
        s->log.sets = (struct logged_sets){ 0, UINT32_MAX };
    }
    jit_init(s);
    s->sentinel.no_item.key = UINT64_MAX;
    for (unsigned i = 0; i < ITEM_CACHE; i++)
        s->translated.by_key[i] = &s->sentinel.no_item;
    *ret = s;
    return 0;
}

void blocks_free(struct exec_blocks *s)
{
    if (!s)
        return;
    jit_release(s);
    blocks_caches_release(s);
    loop_plans_release(&s->translated.plans);
    map_release(&s->translated.items);
    map_release(&s->translated.blocks);
    map_release(&s->translated.paths);
    arena_release(&s->translated.arena);
    free(s->threads.thread);
    free(s->sample.log);
    free(s->log.missed);
    free(s);
}

struct exec_clock *blocks_clock(struct exec_blocks *s)
{
    return &s->time;
}

const struct fabric_use *blocks_fabric(const struct exec_blocks *s)
{
    return &s->memory.fabric.use;
}

void blocks_event(struct exec_blocks *s, uint32_t thread, const struct peet_event *e)
{
    bool is_gap = s->observer.classify && e->kind == PEET_EV_gap;

    if (is_gap)
        blocks_invalidate_all(s);
    s->observer.event(s->observer.self, thread, e);
    if (is_gap)
        blocks_begin_sample(s);
    if (is_gap && thread < s->threads.count && s->sample.words && s->sample.words->advance)
        s->sample.words->advance(s->sample.words); /* it is somewhere else now, and perhaps in a window */
    blocks_check_map_version(s);
}

/* ---- translated blocks ---- */

/* Leaves a translated block on its path, which caches the node that its call enters. */
static void tblock_leave(struct exec_blocks *s, const struct tblock *x)
{
    struct tb_path *p = x->path;

    if (x->exit == PATH_CALLS) {
        p->callee = p->callee ? p->callee : paths_child(s->observer.paths, p->node, x->call.site);
        paths_call(s->path.calls, &(struct path_call){ x->call.site, x->call.back, p->callee, 0 });
    } else {
        paths_leave(s->observer.paths, s->path.calls, x->exit, &x->call);
    }
    blocks_set_fast_entry(s);
}

/* Before it is entered: if the thread's outermost function begins, its stack. */
static void tblock_begin_stack(struct exec_blocks *s, const struct tblock *x)
{
    if (paths_begins(s->path.calls) && x->entry.is_function)
        paths_begin(s->path.calls, x->stack.has_entry ? s->path.stack_pointer : 0);
}

void tblock_enter(struct exec_blocks *s, struct tblock *x)
{
    bool changes_path = x->exit | s->path.calls->exit;

    tblock_begin_stack(s, x);
    if (changes_path)
        blocks_set_node(s, paths_arrive(s->observer.paths, s->path.calls, x->entry.addr, x->entry.is_function));
    if (__builtin_expect(x->current != s->binding.current, 0))
        tblock_rebind(s, x);
    if (changes_path)
        tblock_leave(s, x);
    s->path.last = x;
}

/* Before and after a block is entered whose sources are in `src`: what it shows of the stack. */
static inline void tblock_note_entry(struct exec_blocks *s, const struct tblock *x)
{
    if (x->stack.has_entry)
        s->path.stack_pointer = s->src[PEET_SRC_SLOT];
}
static inline void tblock_note_slot(const struct exec_blocks *s, const struct tblock *x)
{
    if (x->stack.slot != NO_OPERAND) {
        const struct tb_operand *o = &x->operand[x->stack.slot];
        paths_set_slot(s->path.calls, s->src[o->base] + (s->src[o->index] << o->scale) + (uint64_t)o->disp);
    }
}

static void tblock_enter_noted(struct exec_blocks *s, struct tblock *x)
{
    tblock_note_entry(s, x);
    tblock_enter(s, x);
    tblock_note_slot(s, x);
}

/* Executes the references of a translated block; its sources are in `src`. */
static void refer_all(struct exec_blocks *s, struct tblock *x)
{
    for (unsigned i = 0; i < x->groups; i++) {
        struct base_group *g = &x->group[i];
        uint64_t base = s->src[g->base] + (s->src[g->index] << g->scale);
        g->base_residues |= UINT64_C(1) << base % 64;
        if (!group_hits(s, x, g, base))
            group_run(s, x, g, base);
    }
    s->time.clock += x->cost.all_hit;
    x->runs++;
}

/* Follows calls and returns of a block that is skipped. */
static void skip_follow_path(struct exec_blocks *s, struct tblock *x)
{
    if (x->exit | s->path.calls->exit) {
        tblock_note_entry(s, x);
        tblock_begin_stack(s, x);
        blocks_set_node(s, paths_arrive(s->observer.paths, s->path.calls, x->entry.addr, x->entry.is_function));
        paths_leave(s->observer.paths, s->path.calls, x->exit, &x->call);
        tblock_note_slot(s, x);
        blocks_set_fast_entry(s);
    }
    s->path.last = x;
}

static void skip_tblock(struct exec_blocks *s, struct tblock *x)
{
    skip_follow_path(s, x);
    blocks_skip(s, x->is_varying ? 0 : x->operands);
}

static void run_or_pass(struct exec_blocks *s, struct tblock *x)
{
    if (blocks_skips(s)) {
        skip_tblock(s, x);
    } else {
        tblock_enter_noted(s, x);
        refer_all(s, x);
    }
}

/* ---- loops ---- */

/* Executes or skips one iteration, and crosses the border if it is reached. */
static void run_one_of(struct exec_blocks *s, struct tblock *x)
{
    run_or_pass(s, x);
    if (blocks_at_border(s))
        blocks_cross_border(s);
}

/* Advances the values of a loop by that number of iterations. */
static void loop_advance(struct exec_blocks *s, const struct peet_loop_node *n, uint64_t iterations)
{
    uint64_t *value = s->src + PEET_SRC_SLOT;

    for (unsigned i = n->enters; i < n->assigns; i++) {
        const struct peet_assign *a = &n->assign[i];
        value[a->dst] += ((uint64_t)a->add + (a->plus ? value[a->plus - 1] : 0)) * iterations;
    }
}

/* All iterations of a loop whose body is a translated block; borders may lie between them. */
static void run_flat(struct exec_blocks *s, struct tblock *x, const struct plan_node *n, uint64_t iterations)
{
    while (iterations > 0) {
        uint64_t now = blocks_skips(s) ? blocks_iterations_to_border(s, x, iterations) : 1;
        if (blocks_skips(s)) {
            skip_follow_path(s, x);
            blocks_skip(s, now * x->operands);
        } else {
            tblock_enter_noted(s, x);
            refer_all(s, x);
        }
        loop_advance(s, n->node, now);
        iterations -= now;
        if (blocks_at_border(s))
            blocks_cross_border(s);
    }
}

static void run_loop(struct exec_blocks *s, const struct tb_item *it)
{
    struct loop_run run;
    const struct plan_node *n;

    if (!it->plan) {
        const uint64_t *slot = s->src + PEET_SRC_SLOT, *slots;
        struct peet_loop_run all = { it->item->loop, slot, slot + it->item->loop->values };
        const struct peet_block *b;
        peet_loop_walk_init(&s->translated.walk, s->trace, &all);
        while ((b = peet_loop_walk_next(&s->translated.walk, &slots))) {
            memcpy(s->src + PEET_SRC_SLOT, slots, b->slots * sizeof *slots);
            block_compute(b, s->src);
            run_one_of(s, tblock_of(s, b));
        }
        return;
    }
    loop_run_init(&run, it->plan, s->src);
    while ((n = loop_run_next(&run, s->src))) {
        struct tblock *x = it->node[n - it->plan->node];
        if (n->kind == PLAN_FLAT)
            run_flat(s, x, n, run.trips);
        else
            run_one_of(s, x);
    }
}

/* Notes the bases of a translated block, for tblock_join_groups. */
static void see_bases(const struct exec_blocks *s, struct tblock *x)
{
    for (unsigned i = 0; i < x->groups; i++) {
        struct base_group *g = &x->group[i];
        g->base_residues |= UINT64_C(1) << (s->src[g->base] + (s->src[g->index] << g->scale)) % 64;
    }
}

/* Compiles a long loop before its first execution. The residues of its bases are taken from its first JIT_PREVIEW iterations. */
static void compile_long_loop(struct exec_blocks *s, struct tb_item *it, const uint64_t *slots,
                              const struct peet_names *names)
{
    const struct peet_loop *l = it->item->loop;
    uint64_t insns, references;
    struct loop_run run;
    const struct plan_node *n;

    memcpy(s->src + PEET_SRC_SLOT, slots, it->slots * sizeof *slots);
    loop_words_to_slots(it->iterations, it->slots, names, it->key, s->src + PEET_SRC_SLOT);
    if (!it->plan
        || (loop_totals(s->trace->schema, l, s->src + PEET_SRC_SLOT + l->values, &insns, &references)
            && references < (uint64_t)s->observer.jit_threshold * JIT_LOOP_REFERENCES))
        return;
    loop_run_init(&run, it->plan, s->src);
    for (unsigned i = 0; i < JIT_PREVIEW && (n = loop_run_next(&run, s->src)); i++) {
        uint64_t iterations = n->kind == PLAN_FLAT ? run.trips : 1;
        for (unsigned k = 0; k < JIT_PREVIEW && iterations > 0; k++, iterations--) {
            see_bases(s, it->node[n - it->plan->node]);
            if (n->kind == PLAN_FLAT)
                loop_advance(s, n->node, 1);
        }
        if (iterations > 0)
            loop_advance(s, n->node, iterations);
    }
    jit_compile(s, it);
    it->executed = s->observer.jit_threshold;
}

/* ---- words ---- */

static void take_thread(struct exec_blocks *s, uint32_t thread, const struct source_words *w)
{
    while (s->threads.count <= thread) {
        struct block_thread *more = realloc(s->threads.thread, (s->threads.count + 16u) * sizeof *more);
        assert(more);
        memset(more + s->threads.count, 0, 16 * sizeof *more);
        s->threads.thread = more;
        s->threads.count += 16;
    }
    struct block_thread *t = &s->threads.thread[thread];
    if (w->registers)
        memcpy(t->register_, w->registers, sizeof t->register_);
    memcpy(s->src + PEET_SRC_REGISTER, t->register_, sizeof t->register_);
    uint32_t process = s->observer.source->thread[thread].process;
    s->binding.process_switches += process != s->binding.process;
    s->binding.process = process;
    s->binding.thread = thread;
    s->path.calls = paths_thread(s->observer.paths, thread);
    s->path.last = t->last;
    blocks_set_node(s, t->node);
    blocks_set_fast_entry(s);
}

static void leave_thread(struct exec_blocks *s)
{
    struct block_thread *t = &s->threads.thread[s->binding.thread];

    memcpy(t->register_, s->src + PEET_SRC_REGISTER, sizeof t->register_);
    t->node = s->binding.node;
    t->last = s->path.last;
}

static int run_other(struct exec_blocks *s, const struct tb_item *it, const uint64_t *slots,
                     const struct peet_names *names, struct peet_event *ret, struct peet_err *err)
{
    const struct item *item = it->item;

    memcpy(s->src + PEET_SRC_SLOT, slots, it->slots * sizeof *slots);
    if (it->kind == TB_LOOP) {
        loop_words_to_slots(it->iterations, it->slots, names, it->key, s->src + PEET_SRC_SLOT);
        run_loop(s, it);
        return 0;
    }
    if (it->kind == TB_VARYING) {
        int r = 0;
        block_compute(item->block, s->src);
        if (blocks_skips(s)) {
            skip_tblock(s, it->tblock);
            blocks_skip_varying(s, item->block);
        } else {
            tblock_enter_noted(s, it->tblock);
            r = tblock_run_varying(s, it->tblock, item->block, err);
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

static inline void run_block(struct exec_blocks *s, const struct tb_item *it, const uint64_t *slots)
{
    memcpy(s->src + PEET_SRC_SLOT, slots, it->slots * sizeof *slots);
    block_compute(it->item->block, s->src);
    run_or_pass(s, it->tblock);
    block_effects(it->item->block, s->src);
}

/* The item of a key. */
static inline struct tb_item *item_of_key(struct exec_blocks *s, const struct peet_names *names, uint64_t key,
                                          struct peet_err *err)
{
    struct tb_item **known = &s->translated.by_key[key * EXEC_HASH_FACTOR >> (64 - ITEM_CACHE_BITS)];

    if (__builtin_expect((*known)->key != key, 0)) {
        struct tb_item *it = tb_item_find(s, names, key, err);
        if (!it)
            return NULL;
        *known = it;
    }
    return *known;
}

/* Executes event words up to an event, a limit, or the border. */
static int run_words(struct exec_blocks *s, struct source_words *w, uint64_t limit, struct peet_event *ret,
                     struct peet_err *err)
{
    int r = 0;

    while (w->word < w->end && r == 0 && s->time.clock < limit && !blocks_at_border(s)) {
        struct tb_item *it = item_of_key(s, w->names, *w->word, err);
        if (!it)
            return err->code;
        if ((size_t)(w->end - w->word) <= it->slots)
            return err_set(err, PEET_ERR_USAGE, "the words of an item are not whole");
        const uint64_t *slots = w->word + 1;
        if (it->kind == TB_LOOP && it->executed < s->observer.jit_threshold && !blocks_skips(s))
            compile_long_loop(s, it, slots, w->names);
        if (it->has_code && !blocks_skips(s)) {
            uint64_t *next = jit_run(s, it, w->word, w->end, limit);
            bool has_run = next != w->word;
            w->word = next;
            if (has_run)
                continue;
        }
        w->word += it->slots + 1;
        if (it->kind > TB_COMPUTE)
            r = run_other(s, it, slots, w->names, ret, err);
        else
            run_block(s, it, slots);
        if (++it->executed == s->observer.jit_threshold)
            jit_compile(s, it);
    }
    return r;
}

int blocks_run(struct exec_blocks *s, uint32_t thread, struct source_words *w, uint64_t limit, struct peet_event *ret,
               struct peet_err *err)
{
    take_thread(s, thread, w);
    w->registers = NULL;
    blocks_begin_words(s, w);
    int r = 0;
    do {
        if (blocks_at_border(s))
            blocks_cross_border(s);
        r = run_words(s, w, limit, ret, err);
    } while (r == 0 && w->advance && w->word < w->end && s->time.clock < limit);
    blocks_end_words(s);
    s->time.references = blocks_references(s);
    leave_thread(s);
    return r;
}
