/* SPDX-License-Identifier: MIT */
#include "study/slack/follow.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "map/call_path.h"
#include "study/slack/follow_in.h"
#include "study/sync_names.h"

enum { FIRST_BIN = 1 << 10 /* cycles */, FOLLOW_NAME = 256 };

/* ---- objects and units ---- */

struct follow_object *follow_object_at(struct follower *f, uint32_t process, enum relax_class class, uint64_t addr)
{
    struct follow_object **o = map_put(&f->objects_by_addr, addr, process << 4 | (uint32_t) class);

    assert(o);
    if (!*o) {
        *o = mem_alloc(1, sizeof **o);
        (*o)->unit = UNIT_NONE;
    }
    return *o;
}

uint32_t follow_unit(struct follower *f, uint32_t thread, enum relax_class class, uint64_t addr, uint64_t site)
{
    const struct source_thread *c = &f->source.thread[thread];
    char name[FOLLOW_NAME];
    uint32_t unit = units_find(f->units, class, addr, site, c->process);

    if (unit == UNIT_NONE) {
        bool is_named =
            class != RELAX_JOIN && sync_name_find(f->objects, c->process, c->id, addr, true, name, sizeof name);
        unit = units_add(f->units, class, addr, site, c->process, is_named ? name : NULL);
    }
    return unit;
}

/* ---- names of data ---- */

/* The name of the data object at an address; its bytes end at *ret_end. A stack is named after its thread. */
static uint32_t follow_object_name(struct follower *f, uint32_t thread, uint64_t addr, uint32_t *ret_number,
                                   uint64_t *ret_end)
{
    const struct source_thread *c = &f->source.thread[thread];
    uint64_t start;
    uint32_t number = objects_find(f->objects, c->process, c->id, addr, 0, &start, ret_end);
    const struct object_info *o = objects_info(f->objects, number);
    char name[FOLLOW_NAME];

    *ret_number = number;
    if (o->kind == OBJECT_STACK) {
        uint32_t owner = dependences_stack_of(f->dependences, addr);
        if (owner == UNIT_NONE)
            return units_name(f->units, "stack of the main thread", true);
        snprintf(name, sizeof name, "stack of thread %" PRIu32, f->source.thread[owner].id);
        return units_name(f->units, name, true);
    }
    f->name_of = mem_reach(f->name_of, &f->names, number, sizeof *f->name_of);
    if (f->name_of[number] == 0)
        f->name_of[number] = 1 + units_name(f->units, o->name, false);
    return f->name_of[number] - 1;
}

/* The name of a member of an object at an address, for the address that was looked up last. */
static uint32_t follow_member_name(struct follower *f, uint32_t process, uint32_t number, uint64_t addr)
{
    char member[FOLLOW_NAME];

    if (objects_info(f->objects, number)->kind == OBJECT_STACK
        || !objects_member(f->objects, number, objects_offset(f->objects, process, addr), true, member, sizeof member))
        return units_name(f->units, "", false);
    return units_name(f->units, member, false);
}

/* ---- dependences ---- */

static void follow_line(struct follower *f, struct sync_unit *x, const struct dependence *d, unsigned line)
{
    uint64_t addr = d->addr + ((uint64_t)line << LINE_SHIFT), bytes = 0, end;
    uint32_t number;
    uint64_t any =
        (*d->bytes)[DEPENDENCE_FLOW][line] | (*d->bytes)[DEPENDENCE_ANTI][line] | (*d->bytes)[DEPENDENCE_OUTPUT][line];
    struct unit_line *l = map_find(&x->lines, addr >> LINE_SHIFT, d->process);

    if (!any)
        return;
    for (int k = 0; k < DEPENDENCE_KINDS; k++) {
        uint64_t n = (uint64_t)__builtin_popcountll((*d->bytes)[k][line]);
        x->sum.bytes[k] += n;
        bytes += n;
    }
    struct unit_pair *pair = map_put(&x->pairs, (uint64_t)d->from << 32 | d->to, 0);
    assert(pair);
    pair->bytes += bytes;
    if (!l && x->lines.count >= UNIT_LINES) {
        x->sum.unlisted += bytes;
        return;
    }
    l = l ? l : map_put(&x->lines, addr >> LINE_SHIFT, d->process);
    assert(l);
    if (l->object == 0) {
        uint64_t first = addr + (uint64_t)__builtin_ctzll(any);
        l->object = 1 + follow_object_name(f, d->to, first, &number, &end);
        l->member = follow_member_name(f, d->process, number, first);
    }
    for (int k = 0; k < DEPENDENCE_KINDS; k++)
        l->bytes[k] += (uint64_t)__builtin_popcountll((*d->bytes)[k][line]);
}

static void follow_found(void *self, const struct dependence *d)
{
    struct follower *f = self;
    struct sync_unit *x = units_at(f->units, d->unit);

    unit_relied_on(x, d);
    for (unsigned i = 0; i < PAGE_WORDS; i++)
        follow_line(f, x, d, i);
}

/* A thread that holds locks used a page: its critical sections used the data objects there. */
static void follow_used(void *self, const struct page_use *u)
{
    struct follower *f = self;
    const struct follow_thread *t = &f->thread[u->thread];
    uint64_t end = 0;
    uint32_t name = 0, number;

    for (unsigned i = 0; i < PAGE_WORDS; i++)
        for (uint64_t rest = u->read[i] | u->wrote[i], part; rest; rest &= ~part) {
            uint64_t addr = u->addr + 64 * (uint64_t)i + (uint64_t)__builtin_ctzll(rest),
                     word_end = u->addr + 64 * (i + 1);
            if (end <= addr)
                name = follow_object_name(f, u->thread, addr, &number, &end);
            part = end >= word_end ? UINT64_MAX : (UINT64_C(1) << (end & 63)) - 1;
            if (units_name_is_stack(f->units, name) && !u->is_shared)
                continue;
            for (size_t k = 0; k < t->helds; k++) {
                struct unit_thread *ut = unit_thread_at(units_at(f->units, t->held[k].unit), u->thread);
                unit_use_object(ut, name);
                ut->has_written |= (u->wrote[i] & part) != 0;
            }
        }
}

static const struct dependence_observer FOLLOW_OBSERVER = { .found = follow_found, .used = follow_used };

/* ---- waits ---- */

/* Makes bins twice as long until the run fits. */
static void follow_fit_bins(struct follower *f, uint64_t until)
{
    while (until / f->bin_cycles >= FOLLOW_BINS) {
        for (uint32_t i = 0; i < f->source.max_threads; i++) {
            uint64_t *w = f->bins[i].waited;
            for (int k = 0; k < FOLLOW_BINS; k++)
                w[k] = k < FOLLOW_BINS / 2 ? w[2 * k] + w[2 * k + 1] : 0;
        }
        f->bin_cycles *= 2;
    }
}

/* The thread waited for the cycles that end now. */
static void follow_add_bins(struct follower *f, uint32_t thread, uint64_t cycles)
{
    uint64_t to = sim_thread_clock(f->sim, thread), from = to > cycles ? to - cycles : 0;

    if (to == 0)
        return;
    follow_fit_bins(f, to);
    while (from < to) {
        uint64_t bin = from / f->bin_cycles, next = (bin + 1) * f->bin_cycles;
        next = next < to ? next : to;
        f->bins[thread].waited[bin] += next - from;
        from = next;
    }
}

static void follow_waiter(void *self, const struct sim_wait *w)
{
    struct follower *f = self;
    bool is_lock = w->kind == SYNC_OBJECT_LOCK || w->kind == SYNC_OBJECT_RWLOCK;
    uint32_t unit = f->thread[w->thread].waits_at[is_lock ? 0 : 1];

    if (unit == UNIT_NONE)
        return;
    unit_waited(units_at(f->units, unit), w->thread, w->cycles);
    follow_add_bins(f, w->thread, w->cycles);
}

/* ---- records ---- */

static void follow_reference(struct follower *f, uint32_t thread, const struct peet_record *r, uint64_t addr)
{
    if (r->kind != PEET_PREFETCH)
        dependences_access(f->dependences, thread, addr, r->size, r->kind != PEET_STORE, r->kind != PEET_LOAD);
}

/* A strided loop; references to successive bytes are one. */
static void follow_repeat(struct follower *f, uint32_t thread, const struct peet_repeat *loop)
{
    for (size_t i = 0; i < loop->count; i++) {
        const struct peet_record *r = &loop->records[i];
        if (r->kind == PEET_BLOCK)
            paths_block(&f->paths, thread, r);
        if (!peet_is_reference(r) || r->kind == PEET_PREFETCH)
            continue;
        if (loop->step[i] == r->size) {
            dependences_access(f->dependences, thread, r->addr, loop->times * r->size, r->kind != PEET_STORE,
                               r->kind != PEET_LOAD);
            continue;
        }
        for (uint64_t k = 0; k < (loop->step[i] ? loop->times : 1); k++)
            follow_reference(f, thread, r, r->addr + k * loop->step[i]);
    }
}

/* Takes the records of a thread up to its next event; NULL: to the end of the batch. */
static const struct peet_event *follow_records(struct follower *f, uint32_t thread)
{
    struct follow_thread *t = &f->thread[thread];

    follow_begin(f, thread);
    follow_continue(f, thread);
    while (t->at < t->batch.count) {
        const struct peet_record *r = &t->batch.records[t->at++];
        if (peet_is_reference(r))
            follow_reference(f, thread, r, r->addr);
        else if (r->kind == PEET_BLOCK)
            paths_block(&f->paths, thread, r);
        else if (r->kind == PEET_REPEAT)
            follow_repeat(f, thread, &t->batch.repeats[r->id]);
        else if (r->kind == PEET_EVENT)
            return &t->batch.events[r->id];
    }
    return NULL;
}

/* ---- the source ---- */

static int follow_next(struct source *s, uint32_t thread, uint64_t reply, struct peet_batch *ret, struct peet_err *err)
{
    struct follower *f = (struct follower *)(void *)s;
    struct follow_thread *t = &f->thread[thread];

    if (t->batch.count) {
        const struct peet_event *e = follow_records(f, thread);
        assert(!e); /* all events were reported */
    }
    t->batch.count = t->at = 0;
    int r = source_next(f->inner, thread, reply, ret, err);
    if (r > 0) {
        t->batch = *ret;
        t->at = 0;
    } else {
        follow_end(f, thread);
    }
    return r;
}

static uint64_t follow_pointer(struct source *s, uint32_t thread)
{
    return source_pointer(((struct follower *)(void *)s)->inner, thread);
}

static void follow_source_free(struct source *s)
{
    (void)s; /* follower_free does it */
}

static const struct source_kind FOLLOW_SOURCE = { .next = follow_next,
                                                  .free = follow_source_free,
                                                  .pointer = follow_pointer };

/* ---- the listener ---- */

static void follow_listener_event(void *self, uint32_t thread, const struct peet_event *e)
{
    struct follower *f = self;
    const struct peet_event *own = follow_records(f, thread);

    assert(own && own->kind == e->kind);
    (void)own;
    follow_event(f, thread, e);
}

static void follow_listener_object(void *self, uint32_t thread, struct sync_summary *ret)
{
    (void)self;
    (void)thread;
    (void)ret;
}

/* ---- life ---- */

int follower_new(struct source *inner, struct units *units, struct symbols *symbols, struct follower **ret,
                 struct peet_err *err)
{
    struct follower *f = mem_alloc(1, sizeof *f);
    int r = objects_new(inner->trace, symbols, &f->objects, err);

    if (r < 0) {
        source_free(inner);
        free(f);
        return r;
    }
    f->source = *inner;
    f->source.kind = &FOLLOW_SOURCE;
    f->inner = inner;
    f->units = units;
    f->observer = FOLLOW_OBSERVER;
    f->observer.self = f;
    f->dependences = dependences_new(&f->observer);
    f->thread = mem_alloc((size_t)inner->max_threads + 1, sizeof *f->thread);
    f->bins = mem_alloc((size_t)inner->max_threads + 1, sizeof *f->bins);
    f->bin_cycles = FIRST_BIN;
    f->objects_by_addr.value_size = sizeof(struct follow_object *);
    f->arcs.value_size = sizeof(struct sync_channel);
    f->sizes.value_size = sizeof(uint64_t);
    f->thread_by_id.value_size = sizeof(uint32_t);
    paths_init(&f->paths, inner->trace, inner);
    for (uint32_t i = 0; i < inner->threads; i++) {
        uint32_t *number = map_put(&f->thread_by_id, inner->thread[i].id, 0);
        assert(number);
        *number = i;
        f->thread[i].waits_at[0] = f->thread[i].waits_at[1] = UNIT_NONE;
    }
    for (uint32_t i = 0; i < inner->threads; i++)
        if (inner->thread[i].birth == BIRTH_FIRST)
            follow_begin(f, i);
    f->listener = (struct sim_listener){ .self = f, .event = follow_listener_event, .object = follow_listener_object };
    *ret = f;
    return 0;
}

void follower_free(struct follower *f)
{
    struct follow_object **o;
    struct sync_channel *c;
    uint64_t key;
    uint32_t tag;

    if (!f)
        return;
    for (size_t at = 0; (o = map_next(&f->objects_by_addr, &at, &key, &tag));) {
        channel_release(&(*o)->channel);
        channel_release(&(*o)->readers);
        free(*o);
    }
    for (size_t at = 0; (c = map_next(&f->arcs, &at, &key, &tag));)
        channel_release(c);
    for (uint32_t i = 0; i < f->source.max_threads; i++) {
        channel_release(&f->thread[i].end);
        free(f->thread[i].held);
    }
    follow_free_rounds(f);
    map_release(&f->objects_by_addr);
    map_release(&f->arcs);
    map_release(&f->sizes);
    map_release(&f->thread_by_id);
    dependences_free(f->dependences);
    paths_release(&f->paths);
    objects_free(f->objects);
    source_free(f->inner);
    free(f->mapping);
    free(f->name_of);
    free(f->bins);
    free(f->thread);
    free(f);
}

struct source *follower_source(struct follower *f)
{
    return &f->source;
}

void follower_attach(struct follower *f, struct sim *sim)
{
    f->sim = sim;
    sim_set_listener(sim, &f->listener);
    sim_set_waiter(sim, follow_waiter, f);
}

void follower_finish(struct follower *f, struct follow_result *ret)
{
    for (uint32_t i = 0; i < f->source.threads; i++)
        follow_end(f, i);
    *ret = (struct follow_result){ dependences_races(f->dependences), f->bin_cycles, f->source.threads, f->bins };
}
