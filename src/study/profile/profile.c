/* SPDX-License-Identifier: MIT */
#include "study/profile/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "map/spaces.h"
#include "study/profile/profiler.h"

/* ---- making one ---- */

const char *profile_cause_title(enum profile_cause c)
{
    static const char *const titles[] = {
#define X(name, title) title,
        PROFILE_CAUSES(X)
#undef X
    };

    return titles[c];
}

/* How many lines a processor's own caches can have. */
static uint32_t own_lines(const struct machine_config *c)
{
    uint64_t lines = 1;

    for (unsigned i = 0; i < CONFIG_LEVELS && c->level[i].bytes && !c->level[i].is_shared; i++)
        lines = c->level[i].bytes / c->level[i].line;
    return (uint32_t)lines;
}

int profile_new(const struct machine_config *machine, struct source *source, struct profile **ret, struct peet_err *err)
{
    struct running *x = mem_alloc(1, sizeof *x);
    struct profile *p = &x->p;
    int r;

    *ret = p;
    p->machine = *machine;
    p->trace = source->trace;
    x->source = source;
    x->cells.value_size = x->pairs.value_size = x->calls.value_size = x->leaves.value_size = x->waits.value_size =
        sizeof(uint32_t);
    x->losses.value_size = sizeof(struct loss);
    x->shift = machine->level[0].bytes ? (uint32_t)__builtin_ctz(machine->level[0].line) : 6;
    x->recent = mem_alloc(machine->cpus, sizeof *x->recent);
    for (unsigned i = 0; i < machine->cpus; i++)
        recent_init(&x->recent[i], own_lines(machine));
    members_init(&p->members);
    p->window_length = FIRST_WINDOW;
    paths_init(&p->paths, p->trace, source);
    if ((r = symbols_open(p->trace, &p->symbols, err)) < 0
        || (r = objects_new(p->trace, p->symbols, &p->objects, err)) < 0) {
        profile_free(p);
        *ret = NULL;
        return r;
    }
    x->changes = objects_changes(p->objects);
    return 0;
}

void profile_free(struct profile *p)
{
    struct running *x = (struct running *)p;

    if (!p)
        return;
    for (unsigned i = 0; i < p->machine.cpus; i++)
        recent_release(&x->recent[i]);
    free(x->recent);
    free(x->site[0]);
    free(x->site[1]);
    free(x->leaf);
    free(x->spot);
    free(x->has_told);
    free(x->lost);
    map_release(&x->cells);
    map_release(&x->losses);
    map_release(&x->pairs);
    map_release(&x->calls);
    map_release(&x->leaves);
    map_release(&x->waits);
    objects_free(p->objects);
    symbols_free(p->symbols);
    paths_release(&p->paths);
    sim_result_release(&p->result);
    members_release(&p->members);
    free(p->cell);
    free(p->pair);
    free(p->leaf);
    for (uint32_t i = 0; i < p->codes; i++)
        free(p->code[i].block);
    free(p->code);
    free(p->wait);
    free(p->call);
    sampled_free(p->sampled);
    free(x);
}

/* ---- who met whom ---- */

static uint32_t pair_number(struct running *x, const struct profile_pair *met)
{
    uint64_t key = ((uint64_t)met->of << 32 | met->by) * UINT64_C(0x9e3779b97f4a7c15)
                   ^ ((uint64_t)met->object << 32 | met->by_object) * UINT64_C(0xc2b2ae3d27d4eb4f);
    uint32_t *number;

    for (;; key++) {
        size_t before = x->pairs.count;
        number = room(map_put(&x->pairs, key, met->cause));
        if (x->pairs.count != before) {
            x->p.pair = mem_room(x->p.pair, x->p.pairs, sizeof *x->p.pair);
            x->p.pair[x->p.pairs] = *met;
            x->p.pair[x->p.pairs].misses = x->p.pair[x->p.pairs].stall = 0;
            *number = (uint32_t)x->p.pairs++;
            break;
        }
        const struct profile_pair *other = &x->p.pair[*number];
        if (other->of == met->of && other->by == met->by && other->object == met->object
            && other->by_object == met->by_object)
            break;
    }
    return *number;
}

static bool are_same(const struct profile_pair *a, const struct profile_pair *b)
{
    return a->of == b->of && a->by == b->by && a->object == b->object && a->by_object == b->by_object
           && a->cause == b->cause;
}

static void meet(struct running *x, const struct profile_pair *met)
{
    uint32_t *near = &x->pairs_near[(met->of * 31 + met->by * 7 + met->object) % PAIRS_NEAR];

    if (*near == 0 || !are_same(&x->p.pair[*near - 1], met))
        *near = 1 + pair_number(x, met);
    x->p.pair[*near - 1].misses += met->misses;
    x->p.pair[*near - 1].stall += met->stall;
}

static void see_loss(void *context, unsigned cpu, uint64_t line, enum lost how)
{
    struct running *x = context;

    if (how == INVALIDATED)
        recent_drop(&x->recent[cpu], line);
    if (x->losses_now == x->losses_room) {
        x->losses_room = x->losses_room * 2 + 64;
        x->lost = room(realloc(x->lost, x->losses_room * sizeof *x->lost));
    }
    x->lost[x->losses_now++] = (struct lost_line){ cpu, line };
}

/* What was lost meanwhile was lost to this one. */
static void blame(struct running *x, uint32_t place, uint32_t object)
{
    for (unsigned i = 0; i < x->losses_now; i++)
        *(struct loss *)room(map_put(&x->losses, x->lost[i].line, x->lost[i].cpu)) = (struct loss){ place, object };
    x->losses_now = 0;
}

/* ---- what is seen ---- */

enum profile_cause profile_cause_of(const struct running *x, const struct sim_reference *r, bool was_recent)
{
    switch (r->cause) {
    case MISS_cold: /* but not if it was used where nobody looked */
        return x->p.sampled && sampled_was_touched(x->p.sampled, r) ? CAUSE_unknown : CAUSE_cold;
    case MISS_replaced: return was_recent ? CAUSE_conflict : CAUSE_capacity;
    case MISS_true_sharing: return CAUSE_true_sharing;
    case MISS_false_sharing: return CAUSE_false_sharing;
    default:
        return r->is_upgrade                      ? CAUSE_upgrade
               : r->is_update                     ? CAUSE_update
               : x->p.machine.level[0].bytes == 0 ? CAUSE_uncached
                                                  : CAUSE_farther;
    }
}

struct profile_window *profile_window_now(struct profile *p)
{
    while (p->references >= p->window_length * PROFILE_WINDOWS) { /* half as many, twice as long */
        for (unsigned i = 0; i < PROFILE_WINDOWS / 2; i++) {
            const struct profile_window *a = &p->window[2 * i], *b = a + 1;
            p->window[i] =
                (struct profile_window){ a->references + b->references, a->misses + b->misses, a->stall + b->stall };
        }
        memset(p->window + PROFILE_WINDOWS / 2, 0, sizeof p->window / 2);
        p->window_length *= 2;
    }
    return &p->window[p->references / p->window_length];
}

void profile_see_miss(struct running *x, struct profile_cell *c, const struct loss *by, enum profile_cause cause,
                      uint64_t misses, uint64_t count, uint64_t stall)
{
    c->misses += misses;
    c->cause[cause] += count;
    c->stall[cause] += stall;
    if (misses == 0 || cause == CAUSE_cold)
        return;
    meet(x, &(struct profile_pair){ c->place, by ? by->place : NOBODY, c->object, by ? by->object : NOBODY,
                                    (uint8_t)cause, misses, stall });
}

/* One that was not found at once. */
static void add_miss(struct running *x, const struct sim_reference *r, struct profile_cell *c,
                     struct profile_leaf *leaf, const struct loss *by, bool was_recent, uint64_t stall)
{
    struct profile *p = &x->p;
    struct profile_window *w = x->window;

    p->misses += r->cause != MISS_KINDS;
    p->stall += stall;
    w->misses += r->cause != MISS_KINDS;
    w->stall += stall;
    profile_see_miss(x, c, by, profile_cause_of(x, r, was_recent), r->cause != MISS_KINDS, 1, stall);
    leaf->stall += stall;
    leaf->misses += r->cause != MISS_KINDS;
    uint32_t object = c->object;
    const struct site *s = profile_site_of(x, r->context, r->data, c->place); /* which may move cells */
    if (s->stride && p->cell[s->cell - 1].object == object)
        members_add(&p->members, object, (r->data - s->origin) % s->stride, r->cause != MISS_KINDS, stall);
}

static uint32_t leaf_number(struct running *x, uint32_t node, uint32_t block)
{
    struct profile *p = &x->p;
    size_t before = x->leaves.count;
    uint32_t *number = room(map_put(&x->leaves, block, node));

    if (x->leaves.count != before) {
        p->leaf = mem_room(p->leaf, p->leaves, sizeof *p->leaf);
        p->leaf[p->leaves] = (struct profile_leaf){ .node = node, .block = block };
        *number = (uint32_t)p->leaves++;
    }
    return *number;
}

uint32_t profile_near_leaf(struct running *x, uint32_t node, uint32_t block)
{
    const struct profile *p = &x->p;
    uint32_t *near = &x->near[(node * 0x9e3779b9u ^ block * 0x85ebca6bu) >> 18];

    if (*near == 0 || p->leaf[*near - 1].node != node || p->leaf[*near - 1].block != block)
        *near = 1 + leaf_number(x, node, block);
    return *near;
}

/* Where a thread is. */
static uint32_t leaf_of(struct running *x, uint32_t thread)
{
    if (thread < x->threads && x->leaf[thread])
        return x->leaf[thread] - 1;
    return profile_near_leaf(x, paths_thread(&x->p.paths, thread)->top->node, PROFILE_NO_BLOCK) - 1;
}

void profile_see_unknown(struct running *x, struct profile_cell *c, uint32_t leaf)
{
    c->unknown++;
    sampled_unknown(x->p.sampled, c->object, leaf);
}

/* A line of a reference, whose first one counts the reference. */
static void see_reference(void *context, const struct sim_reference *r)
{
    struct running *x = context;
    struct profile *p = &x->p;
    bool was_recent = recent_use(&x->recent[r->cpu], r->line);
    if (r->is_sync && p->sampled) { /* samples are of what the program does by itself */
        x->losses_now = 0;
        return;
    }
    uint32_t place = r->insn == SIM_NO_INSN ? profile_call_place(x, r->site) : r->insn;
    uint32_t cell = profile_site_of(x, r->context, r->data, place)->cell - 1; /* which may move them */
    struct profile_cell *c = &x->p.cell[cell];
    uint64_t stall = sim_beyond(&p->machine, r->kind, r->stall);
    x->window = r->is_first ? profile_window_now(p) : x->window;
    uint32_t number = leaf_of(x, r->context);
    struct profile_leaf *leaf = &p->leaf[number];

    const struct loss *by = stall > 0 || r->cause != MISS_KINDS ? map_find(&x->losses, r->line, r->cpu) : NULL;
    struct loss lost_to = by ? *by : (struct loss){ 0 }; /* before it may push out its own line */

    blame(x, place, c->object);
    c->references += r->is_first;
    c->writes += r->is_first && (r->kind == PEET_STORE || r->kind == PEET_UPDATE);
    p->references += r->is_first;
    c->compute += r->issue + r->stall - stall;
    p->compute += r->issue + r->stall - stall;
    leaf->compute += r->issue + r->stall - stall;
    const struct sampled_reference part = { r->context, r->cpu, r->line, r->own_line, r->is_first };
    if (p->sampled && sampled_refer(p->sampled, &part, c->object) == OUTCOME_UNKNOWN) {
        profile_see_unknown(x, c, number); /* whatever the machine, which knows nothing of gaps, takes it for */
        return;
    }
    if (r->cause != MISS_KINDS || r->is_upgrade || r->is_update || stall > 0)
        add_miss(x, r, c, leaf, by ? &lost_to : NULL, was_recent, stall);
}

static void see_hit(void *context, uint32_t thread, unsigned cpu, const struct peet_record *r, uint64_t at)
{
    struct running *x = context;
    struct profile *p = &x->p;
    struct site *s = profile_site_of(x, thread, r->addr, r->id);
    uint64_t cycles = r->kind == PEET_PREFETCH ? 0 : p->machine.level[0].latency;

    recent_use(&x->recent[cpu], at >> x->shift);
    if (x->losses_now)
        blame(x, r->id, p->cell[s->cell - 1].object);
    s->writes += r->kind == PEET_STORE || r->kind == PEET_UPDATE;
    if (++s->references == UINT32_MAX)
        profile_settle_sites(x);
    p->references++;
    if (cycles) {
        p->cell[s->cell - 1].compute += cycles;
        p->compute += cycles;
        p->leaf[leaf_of(x, thread)].compute += cycles;
    }
    if (p->sampled) {
        struct profile_cell *c = &p->cell[s->cell - 1];
        const struct sampled_reference part = { thread, cpu, at >> x->shift, r->addr >> x->shift, true };
        if (sampled_refer(p->sampled, &part, c->object) == OUTCOME_UNKNOWN)
            profile_see_unknown(x, c, leaf_of(x, thread));
    }
}

struct profile_block *profile_block_at(struct profile *p, uint32_t process, uint32_t block)
{
    p->code = mem_reach(p->code, &p->codes, process, sizeof *p->code);
    struct profile_code *c = &p->code[process];
    c->block = mem_reach(c->block, &c->items, block, sizeof *c->block);
    return &c->block[block];
}

uint32_t profile_object_process(const struct profile *p, uint32_t object)
{
    const uint32_t *index = map_find(&p->paths.indices, objects_info(p->objects, object)->process, 0);

    return index ? *index - 1 : 0;
}

const char *profile_process_name(const struct profile *p, uint32_t process, char ret[PROFILE_PROGRAM])
{
    ret[0] = '\0';
    if (p->paths.processes > 1)
        process_label(p->trace, p->paths.process[process].number, ret, PROFILE_PROGRAM);
    return ret;
}

size_t profile_symbols(const struct profile *p, uint32_t process, uint64_t addr, struct symbols_frame *ret)
{
    return symbols_code(p->symbols, p->paths.process[process].number, addr, ret);
}

static struct spot *spot_of(struct running *x, uint32_t block)
{
    x->spot = mem_reach(x->spot, &x->spots, block, sizeof *x->spot);
    return &x->spot[block];
}

/* The leaf in which a thread is with that block. */
static uint32_t arrive(struct running *x, uint32_t thread, const struct peet_record *block)
{
    struct paths *paths = &x->p.paths;
    const struct path_thread *t = paths_thread(paths, thread);
    struct spot *s = spot_of(x, block->id);

    if (s->leaf && s->goes_on && t->turn == PATH_NEXT && !t->is_unknown && t->top->node == s->node)
        return s->leaf;
    uint32_t node = paths_block(paths, thread, block);
    if (s->leaf == 0 || s->node != node)
        *s = (struct spot){ node, profile_near_leaf(x, node, block->id), t->turn == PATH_NEXT };
    return s->leaf;
}

static void see_block(void *context, uint32_t thread, const struct peet_record *block, uint64_t cycles, uint64_t fetch)
{
    struct running *x = context;
    struct profile *p = &x->p;
    struct profile_block *b = profile_block_at(p, paths_thread(&p->paths, thread)->process, block->id);

    b->runs++;
    b->fetch += fetch;
    p->fetch += fetch;
    p->compute += cycles;
    while (x->threads <= thread) {
        x->leaf = mem_room(x->leaf, x->threads, sizeof *x->leaf);
        x->leaf[x->threads++] = 0;
    }
    x->leaf[thread] = arrive(x, thread, block);
    p->leaf[x->leaf[thread] - 1].compute += cycles + fetch;
}

void profile_see_event(void *context, uint32_t thread, const struct peet_event *e)
{
    struct running *x = context;
    const struct source_thread *c = &x->source->thread[thread];
    uint64_t path[OBJECT_PATH];

    if (e->kind == PEET_EV_gap && x->p.sampled)
        sampled_gap(x->p.sampled, thread, e);
    if (!objects_wants(e->kind))
        return;
    if (x->p.sampled)
        sampled_event(x->p.sampled, c->process, e);
    paths_calls(&x->p.paths, thread, path, OBJECT_PATH);
    objects_event(x->p.objects, c->process, c->id, e, path);
}

static uint32_t wait_number(struct running *x, uint32_t place, uint32_t object, const struct sim_wait *w)
{
    struct profile *p = &x->p;
    uint32_t process = paths_thread(&p->paths, w->thread)->process;

    for (uint32_t tag = 0;; tag++) { /* those of one place, most often one */
        size_t before = x->waits.count;
        uint32_t *number = room(map_put(&x->waits, place, tag));
        if (x->waits.count != before) {
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

static void see_wait(void *context, const struct sim_wait *w)
{
    struct running *x = context;
    struct profile *p = &x->p;

    if (p->sampled) /* what lies between windows takes no simulated time, so that waits are as long as nothing */
        return;
    uint32_t place = profile_call_place(x, w->site);
    uint32_t cell = w->addr ? profile_site_of(x, w->thread, w->addr, place)->cell : 0;
    uint32_t number = wait_number(x, place, cell ? p->cell[cell - 1].object : NOBODY, w);
    p->wait[number].cycles += w->cycles;
    uint32_t leaf = w->leaf == UINT32_MAX ? leaf_of(x, w->thread) : w->leaf;
    p->leaf[leaf].wait[w->as] += w->cycles;
}

/* ---- running ---- */

static int run_machine(struct running *x, struct sim *sim, bool is_watched, struct progress *progress,
                       struct peet_err *err)
{
    struct profile *p = &x->p;
    int r = sim_run(sim, progress, err);

    if (r < 0)
        return r;
    profile_settle_sites(x);
    sim_result(sim, &p->result);
    profile_number_calls(p);
    if (is_watched) {
        p->references = 0;
        for (size_t i = 0; i < p->cells; i++)
            p->references += p->cell[i].references;
    }
    profile_fill_windows(p);
    if (p->sampled)
        sampled_scale(p->sampled, p);
    return 0;
}

int profile_run(struct profile *p, const volatile uint32_t *stop, struct progress *progress, struct peet_err *err)
{
    struct running *x = (struct running *)p;
    const struct sim_observer observer = { x, see_block, see_reference, see_hit, profile_see_event, see_loss };
    const struct block_observer watch = profile_watch(x);
    struct sim *sim = NULL;
    int r = sim_new(&p->machine, x->source, &sim, err);

    if (r < 0)
        return r;
    bool is_watched =
        !p->is_slow && (!p->sampled || x->source->kind->words) && sim_set_block_observer(sim, &watch, err);
    if (is_watched && p->sampled)
        sampled_watch(p->sampled);
    if (p->sampled)
        sampled_begin(p->sampled, sim);
    if (!is_watched)
        sim_set_observer(sim, &observer);
    sim_set_waiter(sim, see_wait, x);
    sim_set_stop(sim, stop);
    r = run_machine(x, sim, is_watched, progress, err);
    sim_free(sim);
    return r;
}

/* Calls and returns between windows. */
static void see_passed(void *user, uint32_t thread, const struct peet_record *block)
{
    struct running *x = user;
    const struct path_thread *t = paths_thread(&x->p.paths, thread);

    if (!block) {
        paths_find_again(&x->p.paths, thread, x->source);
        return;
    }
    struct spot *s = spot_of(x, block->id);
    if (s->goes_on && t->turn == PATH_NEXT && !t->is_unknown)
        return;
    paths_block(&x->p.paths, thread, block);
    s->goes_on = t->turn == PATH_NEXT;
}

int profile_set_sample(struct profile *p, const struct sample_config *config, struct peet_err *err)
{
    struct running *x = (struct running *)p;

    sample_set_gap_observer(x->source, see_passed, x);
    return sampled_new(&p->machine, x->source, p->objects, config, &p->sampled, err);
}
