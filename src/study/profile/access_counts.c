/* SPDX-License-Identifier: MIT */
/* Places, and lookup of the data object of an address. */
#include "base/mem.h"
#include "study/profile/profiler_in.h"

/* The code address of a place; while the profiler runs, calls have places from FIRST_CALL on. */
static uint64_t place_addr(const struct profile *p, uint32_t place)
{
    return place < FIRST_CALL ? peet_trace_insn(p->trace, place)->addr : p->places.call[place - FIRST_CALL] - 1;
}

static uint64_t profiler_place_addr(struct profiler *x, uint32_t place)
{
    struct place_addr *last = &x->lookup.addr[place % ADDR_LOOKUP];

    if (last->next != place + 1)
        *last = (struct place_addr){ place + 1, place_addr(x->p, place) };
    return last->addr;
}

static uint32_t profile_final_place(const struct profile *p, uint32_t place)
{
    return place < FIRST_CALL || place == NO_PLACE ? place : place - FIRST_CALL + p->places.insns;
}

void profiler_number_calls(struct profile *p)
{
    p->places.insns = peet_trace_insns(p->trace);
    for (size_t i = 0; i < p->accesses; i++)
        p->access[i].place = profile_final_place(p, p->access[i].place);
    for (size_t i = 0; i < p->waits; i++)
        p->wait[i].place = profile_final_place(p, p->wait[i].place);
    for (size_t i = 0; i < p->pairs; i++) {
        p->pair[i].of = profile_final_place(p, p->pair[i].of);
        p->pair[i].by = profile_final_place(p, p->pair[i].by);
    }
}

uint32_t profiler_call_place(struct profiler *x, uint64_t addr)
{
    uint32_t *number = checked_memory(map_put(&x->number.calls, addr, 0));

    if (*number == 0) {
        x->p->places.call = mem_room(x->p->places.call, x->p->places.calls, sizeof *x->p->places.call);
        x->p->places.call[x->p->places.calls++] = addr;
        *number = x->p->places.calls;
    }
    return FIRST_CALL + *number - 1;
}

static struct object_cache *object_cache_at(struct profiler *x, uint32_t place)
{
    bool is_call = place >= FIRST_CALL;
    struct object_cache **site = &x->lookup.cache[is_call];

    place -= is_call ? FIRST_CALL : 0;
    *site = mem_reach(*site, &x->lookup.caches[is_call], place, 2 * sizeof **site);
    return &(*site)[2 * (size_t)place];
}

static uint32_t access_number(struct profiler *x, uint32_t place, uint32_t object)
{
    size_t before = x->number.access.count;
    uint32_t *number = checked_memory(map_put(&x->number.access, place, object));

    if (x->number.access.count != before) {
        x->p->access = mem_room(x->p->access, x->p->accesses, sizeof *x->p->access);
        x->p->access[x->p->accesses] = (struct access_counts){ .place = place, .object = object };
        *number = (uint32_t)x->p->accesses++;
    }
    return *number;
}

static void object_cache_flush(struct profiler *x, struct object_cache *s)
{
    if (s->references) {
        x->p->access[s->access - 1].references += s->references;
        x->p->access[s->access - 1].writes += s->writes;
    }
    s->references = s->writes = 0;
}

void profiler_flush_counts(struct profiler *x)
{
    for (unsigned i = 0; i < 2; i++)
        for (size_t k = 0; k < 2 * (size_t)x->lookup.caches[i]; k++)
            object_cache_flush(x, &x->lookup.cache[i][k]);
}

/* Before the first lookup for a thread: its thread-local data. */
static void profiler_find_thread_data(struct profiler *x, uint32_t thread)
{
    while (x->lookup.threads <= thread) {
        x->lookup.pointer_known = mem_room(x->lookup.pointer_known, x->lookup.threads, sizeof *x->lookup.pointer_known);
        x->lookup.pointer_known[x->lookup.threads++] = false;
    }
    if (x->lookup.pointer_known[thread])
        return;
    x->lookup.pointer_known[thread] = true;
    uint64_t pointer = source_pointer(x->source, thread);
    if (pointer)
        objects_thread(x->p->objects, x->source->thread[thread].process, pointer);
}

static void profiler_look_up(struct profiler *x, const struct source_thread *c, uint64_t addr, uint64_t insn,
                             struct object_range *ret)
{
    struct objects *objects = x->p->objects;

    ret->object = objects_find(objects, c->process, c->id, addr, insn, &ret->start, &ret->end);
    ret->since = objects_changes(objects)->count;
    ret->origin = addr - objects_offset(objects, c->process, addr);
    ret->stride = objects_stride(objects, ret->object);
    if (x->debug.member_stride && objects_info(objects, ret->object)->kind == OBJECT_NAMED)
        ret->stride = x->debug.member_stride;
    ret->process = c->process;
}

static inline bool object_range_holds(struct object_range *b, uint32_t process, uint64_t addr,
                                      const struct change_log *c)
{
    return b->process == process && addr >= b->start && addr < b->end
           && change_log_revalidate(c, &b->since, b->start, b->end);
}

struct object_cache *profiler_find_object(struct profiler *x, uint32_t thread, uint64_t addr, uint32_t place)
{
    struct object_cache *two = object_cache_at(x, place), *s = two + two->is_second;
    const struct source_thread *c = &x->source->thread[thread];
    const struct change_log *changes = x->lookup.changes;

    if (object_cache_holds(s, c->process, addr, changes))
        return s;
    two->is_second ^= 1;
    s = two + two->is_second;
    if (object_cache_holds(s, c->process, addr, changes))
        return s;
    profiler_find_thread_data(x, thread);
    struct object_range *last = &x->lookup.range[(addr >> 6) * 0x9e3779b97f4a7c15u >> (64 - OBJECT_LOOKUP_BITS)], other,
                        *found = last;
    if (!object_range_holds(last, c->process, addr, changes)) {
        profiler_look_up(x, c, addr, profiler_place_addr(x, place), &other);
        found = &other;
        enum object_kind kind = objects_info(x->p->objects, other.object)->kind;
        if (kind == OBJECT_HEAP || kind == OBJECT_VARIABLE) /* other objects depend on the instruction or thread */
            *last = other;
    }
    if (s->access == 0 || x->p->access[s->access - 1].object != found->object) {
        object_cache_flush(x, s);
        s->access = 1 + access_number(x, place, found->object);
    }
    s->start = found->start;
    s->end = found->end;
    s->since = found->since;
    s->process = found->process;
    s->origin = found->origin;
    s->stride = found->stride;
    return s;
}
