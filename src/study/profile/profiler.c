/* SPDX-License-Identifier: MIT */
/* The profiler (profiler.h), and its observers of single references. */
#include "study/profile/profiler.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "study/profile/profiler_in.h"

/* ---- making one ---- */

int profiler_new(const struct machine_config *machine, struct source *source, struct profiler **ret,
                 struct peet_err *err)
{
    struct profiler *x = mem_alloc(1, sizeof *x);
    struct profile *p = x->p = mem_alloc(1, sizeof *p);
    int r;

    p->machine = *machine;
    p->trace = source->trace;
    x->source = source;
    x->number.access.value_size = x->number.pairs.value_size = x->number.calls.value_size = sizeof(uint32_t);
    x->number.paths.value_size = x->number.waits.value_size = sizeof(uint32_t);
    x->number.stacks.value_size = sizeof(struct stack_binding);
    x->line_shift = machine->level[0].bytes ? (uint32_t)__builtin_ctz(machine->level[0].line) : 6;
    member_costs_init(&p->members);
    p->over_time.length = FIRST_BIN;
    paths_init(&p->paths, p->trace, source);
    if ((r = symbols_open(p->trace, &p->symbols, err)) < 0
        || (r = objects_new(p->trace, p->symbols, &p->objects, err)) < 0) {
        profiler_free(x);
        return r;
    }
    p->paths.lacks_references = source_samples_sets(source);
    objects_use_paths(p->objects, &p->paths, source);
    x->lookup.changes = objects_changes(p->objects);
    *ret = x;
    return 0;
}

void profiler_set_calls(struct profiler *x, unsigned calls)
{
    objects_set_depth(x->p->objects, calls);
}

void profiler_set_debug(struct profiler *x, const struct profiler_debug *debug)
{
    x->debug = *debug;
}

struct profile *profiler_profile(struct profiler *x)
{
    return x->p;
}

struct profile *profiler_take(struct profiler *x)
{
    struct profile *p = x->p;

    free(x->lookup.cache[0]);
    free(x->lookup.cache[1]);
    free(x->lookup.pointer_known);
    free(x->path_of);
    free(x->block_path);
    map_release(&x->number.access);
    map_release(&x->number.pairs);
    map_release(&x->number.calls);
    map_release(&x->number.paths);
    map_release(&x->number.stacks);
    map_release(&x->number.waits);
    free(x);
    return p;
}

void profiler_free(struct profiler *x)
{
    if (x)
        profile_free(profiler_take(x));
}

/* ---- interference pairs ---- */

static uint32_t pair_number(struct profiler *x, const struct interference_pair *pair)
{
    uint64_t key = ((uint64_t)pair->of << 32 | pair->by) * UINT64_C(0x9e3779b97f4a7c15)
                   ^ ((uint64_t)pair->object << 32 | pair->by_object) * UINT64_C(0xc2b2ae3d27d4eb4f);
    uint32_t *number;

    for (;; key++) {
        size_t before = x->number.pairs.count;
        number = checked_memory(map_put(&x->number.pairs, key, pair->cause));
        if (x->number.pairs.count != before) {
            x->p->pair = mem_room(x->p->pair, x->p->pairs, sizeof *x->p->pair);
            x->p->pair[x->p->pairs] = *pair;
            x->p->pair[x->p->pairs].misses = x->p->pair[x->p->pairs].stall = 0;
            *number = (uint32_t)x->p->pairs++;
            break;
        }
        const struct interference_pair *other = &x->p->pair[*number];
        if (other->of == pair->of && other->by == pair->by && other->object == pair->object
            && other->by_object == pair->by_object)
            break;
    }
    return *number;
}

static bool interference_is_same(const struct interference_pair *a, const struct interference_pair *b)
{
    return a->of == b->of && a->by == b->by && a->object == b->object && a->by_object == b->by_object
           && a->cause == b->cause;
}

static void profiler_add_pair(struct profiler *x, const struct interference_pair *pair)
{
    uint32_t *last = &x->pair_lookup[(pair->of * 31 + pair->by * 7 + pair->object) % PAIR_LOOKUP];

    if (*last == 0 || !interference_is_same(&x->p->pair[*last - 1], pair))
        *last = 1 + pair_number(x, pair);
    x->p->pair[*last - 1].misses += pair->misses;
    x->p->pair[*last - 1].stall += pair->stall;
}

/* ---- references ---- */

enum profile_cause profile_cause_of(const struct profiler *x, const struct sim_reference *r)
{
    const struct access_outcome *o = &r->outcome;

    switch (o->cause) {
    case MISS_cold: /* unknown if a reference between windows used the line */
        return x->p->sampled && sampled_was_touched(x->p->sampled, r) ? CAUSE_unknown : CAUSE_cold;
    case MISS_replaced: return o->is_conflict ? CAUSE_conflict : CAUSE_capacity;
    case MISS_true_sharing: return CAUSE_true_sharing;
    case MISS_false_sharing: return CAUSE_false_sharing;
    default:
        return o->is_upgrade                       ? CAUSE_upgrade
               : o->is_update                      ? CAUSE_update
               : x->p->machine.level[0].bytes == 0 ? CAUSE_uncached
                                                   : CAUSE_farther;
    }
}

struct time_bin *profile_bin_now(struct profile *p)
{
    while (p->references >= p->over_time.length * TIME_BINS) { /* half the bins, of twice the length */
        for (unsigned i = 0; i < TIME_BINS / 2; i++) {
            const struct time_bin *a = &p->over_time.bin[2 * i], *b = a + 1;
            p->over_time.bin[i] =
                (struct time_bin){ a->references + b->references, a->misses + b->misses, a->stall + b->stall };
        }
        memset(p->over_time.bin + TIME_BINS / 2, 0, sizeof p->over_time.bin / 2);
        p->over_time.length *= 2;
    }
    return &p->over_time.bin[p->references / p->over_time.length];
}

void profiler_add_miss(struct profiler *x, struct access_counts *c, uint32_t removed_by, enum profile_cause cause,
                       uint64_t misses, uint64_t count, uint64_t stall)
{
    const struct access_counts *by = removed_by ? &x->p->access[removed_by - 1] : NULL;

    c->misses += misses;
    c->cause[cause] += count;
    c->stall[cause] += stall;
    if (misses == 0 || cause == CAUSE_cold)
        return;
    profiler_add_pair(x, &(struct interference_pair){ c->place, by ? by->place : NO_PLACE, c->object,
                                                      by ? by->object : NO_PLACE, (uint8_t)cause, misses, stall });
}

/* Counts a line of a reference that was no plain hit. */
static void profiler_add_reference(struct profiler *x, const struct sim_reference *r, struct access_counts *c,
                                   struct path_counts *path, uint64_t stall)
{
    struct profile *p = x->p;
    struct time_bin *w = x->bin;
    bool is_miss = r->outcome.cause != MISS_KINDS;

    p->misses += is_miss;
    p->stall += stall;
    w->misses += is_miss;
    w->stall += stall;
    profiler_add_miss(x, c, r->outcome.removed_by, profile_cause_of(x, r), is_miss, 1, stall);
    path->stall += stall;
    path->misses += is_miss;
    uint32_t object = c->object;
    const struct object_cache *s = profiler_object_of(x, r->thread, r->data, c->place); /* may move access counts */
    if (s->stride && p->access[s->access - 1].object == object)
        member_costs_add(&p->members, object, (r->data - s->origin) % s->stride, is_miss, stall);
}

static uint32_t path_number(struct profiler *x, uint32_t node, uint32_t block)
{
    struct profile *p = x->p;
    size_t before = x->number.paths.count;
    uint32_t *number = checked_memory(map_put(&x->number.paths, block, node));

    if (x->number.paths.count != before) {
        p->by_path = mem_room(p->by_path, p->by_paths, sizeof *p->by_path);
        p->by_path[p->by_paths] = (struct path_counts){ .node = node, .block = block };
        *number = (uint32_t)p->by_paths++;
    }
    return *number;
}

uint32_t profiler_path(struct profiler *x, uint32_t node, uint32_t block)
{
    const struct profile *p = x->p;
    uint32_t *last = &x->path_lookup[(node * 0x9e3779b9u ^ block * 0x85ebca6bu) >> 18];

    if (*last == 0 || p->by_path[*last - 1].node != node || p->by_path[*last - 1].block != block)
        *last = 1 + path_number(x, node, block);
    return *last;
}

/* The index of the path counts of a thread's current block. */
static uint32_t profiler_path_of(struct profiler *x, uint32_t thread)
{
    if (thread < x->threads && x->path_of[thread])
        return x->path_of[thread] - 1;
    return profiler_path(x, paths_thread(&x->p->paths, thread)->top->node, PROFILE_NO_BLOCK) - 1;
}

void profiler_add_unknown(struct profiler *x, struct access_counts *c, uint32_t path)
{
    c->unknown++;
    sampled_unknown(x->p->sampled, c->object, path);
}

/* The tag of a reference is 1 + the index of its access counts, which say what removed a line. */
static uint32_t profiler_tag(void *context, const struct sim_reference *r)
{
    struct profiler *x = context;

    if (r->is_sync && x->p->sampled) /* samples leave out references of locks and barriers */
        return 0;
    uint32_t place = r->insn == SIM_NO_INSN ? profiler_call_place(x, r->site) : r->insn;
    return profiler_object_of(x, r->thread, r->data, place)->access;
}

/* A line of a reference. The first line counts the reference. */
static void profiler_reference(void *context, const struct sim_reference *r)
{
    struct profiler *x = context;
    struct profile *p = x->p;
    const struct access_outcome *o = &r->outcome;

    if (r->tag == 0)
        return;
    struct access_counts *c = &p->access[r->tag - 1];
    uint64_t stall = access_stall(&p->machine, r->kind, o->latency), compute = r->issue + o->latency - stall;
    x->bin = r->is_first ? profile_bin_now(p) : x->bin;
    uint32_t number = profiler_path_of(x, r->thread);
    struct path_counts *path = &p->by_path[number];

    c->references += r->is_first;
    c->writes += r->is_first && (r->kind == PEET_STORE || r->kind == PEET_UPDATE);
    p->references += r->is_first;
    c->compute += compute;
    p->compute += compute;
    path->compute += compute;
    const struct sampled_reference part = { r->thread, r->cpu, r->line, r->own_line, r->is_first };
    if (p->sampled && sampled_refer(p->sampled, &part, c->object) == OUTCOME_UNKNOWN) {
        profiler_add_unknown(x, c,
                             number); /* the simulated outcome is not used: it ignores references between windows */
        return;
    }
    if (o->cause != MISS_KINDS || o->is_upgrade || o->is_update || stall > 0)
        profiler_add_reference(x, r, c, path, stall);
}

static void profiler_hit(void *context, uint32_t thread, unsigned cpu, const struct peet_record *r, uint64_t at)
{
    struct profiler *x = context;
    struct profile *p = x->p;
    struct object_cache *s = profiler_object_of(x, thread, r->addr, r->id);
    uint64_t cycles = r->kind == PEET_PREFETCH ? 0 : p->machine.level[0].latency;

    s->writes += r->kind == PEET_STORE || r->kind == PEET_UPDATE;
    if (++s->references == UINT32_MAX)
        profiler_flush_counts(x);
    p->references++;
    if (cycles) {
        p->access[s->access - 1].compute += cycles;
        p->compute += cycles;
        p->by_path[profiler_path_of(x, thread)].compute += cycles;
    }
    if (p->sampled) {
        struct access_counts *c = &p->access[s->access - 1];
        const struct sampled_reference part = { thread, cpu, at >> x->line_shift, r->addr >> x->line_shift, true };
        if (sampled_refer(p->sampled, &part, c->object) == OUTCOME_UNKNOWN)
            profiler_add_unknown(x, c, profiler_path_of(x, thread));
    }
}

struct block_counts *profile_block_counts(struct profile *p, uint32_t process, uint32_t block)
{
    p->code = mem_reach(p->code, &p->codes, process, sizeof *p->code);
    struct process_code *c = &p->code[process];
    c->block = mem_reach(c->block, &c->items, block, sizeof *c->block);
    return &c->block[block];
}

static struct block_path *block_path_of(struct profiler *x, uint32_t block)
{
    x->block_path = mem_reach(x->block_path, &x->block_paths, block, sizeof *x->block_path);
    return &x->block_path[block];
}

/* 1 + the index of the path counts of a thread that executes a block. */
static uint32_t profiler_enter_block(struct profiler *x, uint32_t thread, const struct peet_record *block)
{
    struct paths *paths = &x->p->paths;
    const struct path_thread *t = paths_thread(paths, thread);
    struct block_path *s = block_path_of(x, block->id);

    if (s->path && s->stays && t->exit == PATH_NEXT && !t->is_unknown && t->top->node == s->node)
        return s->path;
    uint32_t node = paths_block(paths, thread, block);
    if (s->path == 0 || s->node != node)
        *s = (struct block_path){ node, profiler_path(x, node, block->id), t->exit == PATH_NEXT };
    return s->path;
}

static void profiler_block(void *context, uint32_t thread, const struct peet_record *block, uint64_t cycles,
                           uint64_t fetch)
{
    struct profiler *x = context;
    struct profile *p = x->p;
    struct block_counts *b = profile_block_counts(p, paths_thread(&p->paths, thread)->process, block->id);

    b->runs++;
    b->fetch += fetch;
    p->fetch += fetch;
    p->compute += cycles;
    while (x->threads <= thread) {
        x->path_of = mem_room(x->path_of, x->threads, sizeof *x->path_of);
        x->path_of[x->threads++] = 0;
    }
    x->path_of[thread] = profiler_enter_block(x, thread, block);
    p->by_path[x->path_of[thread] - 1].compute += cycles + fetch;
}

void profiler_event(void *context, uint32_t thread, const struct peet_event *e)
{
    struct profiler *x = context;
    const struct source_thread *c = &x->source->thread[thread];
    uint64_t path[OBJECT_PATH];

    if (e->kind == PEET_EV_gap && x->p->sampled)
        sampled_gap(x->p->sampled, thread, e);
    if (!objects_wants(e->kind))
        return;
    if (x->p->sampled)
        sampled_event(x->p->sampled, c->process, e);
    paths_calls(&x->p->paths, thread, path, OBJECT_PATH);
    objects_event(x->p->objects, c->process, c->id, e, path);
}

static uint32_t profiler_wait_number(struct profiler *x, uint32_t place, uint32_t object, const struct sim_wait *w)
{
    struct profile *p = x->p;
    uint32_t process = paths_thread(&p->paths, w->thread)->process;

    for (uint32_t tag = 0;; tag++) { /* the waits of one place, mostly one */
        size_t before = x->number.waits.count;
        uint32_t *number = checked_memory(map_put(&x->number.waits, place, tag));
        if (x->number.waits.count != before) {
            p->wait = mem_room(p->wait, p->waits, sizeof *p->wait);
            p->wait[p->waits] = (struct profile_wait){
                .place = place, .object = object, .process = process, .kind = w->kind, .as = w->as
            };
            *number = (uint32_t)p->waits++;
        }
        const struct profile_wait *there = &p->wait[*number];
        if (there->object == object && there->process == process && there->kind == w->kind && there->as == w->as)
            return *number;
    }
}

/* The program's call in which a thread waits. Where a library waits on behalf of its caller, that is the last call of recorded code:
 * the last block made it, or was called by the library and has returned. */
static uint64_t profiler_wait_site(struct profiler *x, const struct sim_wait *w)
{
    const struct path_thread *t = paths_thread(&x->p->paths, w->thread);
    bool is_in_call = t->exit == PATH_CALLS || (t->exit == PATH_RETURNS && w->site == 0);

    return is_in_call && !t->is_unknown && t->last && t->last->site ? t->last->site : w->site;
}

static void profiler_wait(void *context, const struct sim_wait *w)
{
    struct profiler *x = context;
    struct profile *p = x->p;

    if (p->sampled) /* references between windows take no simulated time, so that waits have no length */
        return;
    uint32_t place = profiler_call_place(x, profiler_wait_site(x, w));
    uint32_t access = w->addr ? profiler_object_of(x, w->thread, w->addr, place)->access : 0;
    uint32_t number = profiler_wait_number(x, place, access ? p->access[access - 1].object : NO_PLACE, w);
    p->wait[number].cycles += w->cycles;
    uint32_t path = w->path_counts == UINT32_MAX ? profiler_path_of(x, w->thread) : w->path_counts;
    p->by_path[path].wait[w->as] += w->cycles;
}

/* ---- running ---- */

void profiler_attach(struct profiler *x, struct sim *sim)
{
    struct sampled *sampled = x->p->sampled;
    bool has_words = !sampled || x->source->kind->words;
    struct peet_err err; /* not reported: where the block engine cannot run, references are observed one by one */

    x->observer =
        (struct sim_observer){ x, profiler_block, profiler_tag, profiler_reference, profiler_hit, profiler_event };
    x->block_observer = profiler_block_observer(x);
    x->by_blocks = !x->debug.observe_all && has_words && sim_set_block_observer(sim, &x->block_observer, &err);
    if (x->by_blocks && sampled)
        sampled_observe_blocks(sampled);
    if (sampled)
        sampled_begin(sampled, sim);
    if (!x->by_blocks)
        sim_add_observer(sim, &x->observer);
    sim_set_waiter(sim, profiler_wait, x);
}

void profiler_finish(struct profiler *x, struct sim *sim)
{
    struct profile *p = x->p;

    profiler_flush_counts(x);
    sim_result(sim, &p->result);
    profiler_number_calls(p);
    if (x->by_blocks) {
        p->references = 0;
        for (size_t i = 0; i < p->accesses; i++)
            p->references += p->access[i].references;
    }
    profile_fill_bins(p);
    if (p->sampled)
        sampled_scale(p->sampled, p);
}

int profiler_run(struct profiler *x, const volatile uint32_t *stop, struct progress *progress, struct peet_err *err)
{
    struct sim *sim = NULL;
    int r = sim_new(&x->p->machine, x->source, &sim, err);

    if (r < 0)
        return r;
    profiler_attach(x, sim);
    sim_set_stop(sim, stop);
    r = sim_run(sim, progress, err);
    if (r == 0)
        profiler_finish(x, sim);
    sim_free(sim);
    return r;
}

/* Follows calls and returns between windows. block: NULL if the source left some out. */
static void profiler_passed_block(void *user, uint32_t thread, const struct peet_record *block)
{
    struct profiler *x = user;
    const struct path_thread *t = paths_thread(&x->p->paths, thread);

    if (!block) {
        paths_find_again(&x->p->paths, thread, x->source);
        return;
    }
    struct block_path *s = block_path_of(x, block->id);
    if (s->stays && t->exit == PATH_NEXT && !t->is_unknown)
        return;
    paths_block(&x->p->paths, thread, block);
    s->stays = t->exit == PATH_NEXT;
}

int profiler_set_sample(struct profiler *x, const struct sample_config *config, struct peet_err *err)
{
    sample_set_gap_observer(x->source, profiler_passed_block, x);
    return sampled_new(&x->p->machine, x->source, x->p->objects, config, &x->p->sampled, err);
}
