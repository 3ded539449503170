/* SPDX-License-Identifier: MIT */
/* Places, and lookup of the data object of an address. */
#include "base/mem.h"
#include "study/objects/stack_data.h"
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

/* Notes that a place refers to an object in a frame. Returns whether it refers to no other one, in all frames of the stack. */
static bool stack_binding_note(struct profiler *x, uint32_t place, uint32_t node, uint32_t object, uint64_t frame)
{
    struct stack_binding *b = checked_memory(map_put(&x->number.stacks, place, node));

    if (b->state == BINDING_NEW)
        *b = (struct stack_binding){ frame, object, BINDING_FIRST };
    else if (b->object != object)
        b->state = BINDING_MIXED;
    else if (b->state == BINDING_FIRST && b->frame != frame)
        b->state = BINDING_STEADY;
    return b->state == BINDING_STEADY;
}

/* In a stack: for how long, and for which bytes around it, a place refers to the object. */
static void profiler_bind_stack(struct profiler *x, uint32_t thread, uint32_t place, const struct stack_place *in,
                                struct object_range *ret)
{
    uint32_t group = in->is_other ? OTHER_NODES : ANY_NODE;

    ret->node = in->is_other ? paths_current(paths_thread(&x->p->paths, thread))->node : ANY_NODE;
    if (!in->is_known)
        return;
    bool is_steady = stack_binding_note(x, place, group, ret->object, in->high);
    if (in->is_other)
        is_steady |= stack_binding_note(x, place, ret->node, ret->object, in->high);
    if (is_steady) {
        ret->start = in->area_low;
        ret->end = in->area_high;
    }
}

static void profiler_look_up(struct profiler *x, uint32_t thread, uint64_t addr, uint32_t place,
                             struct object_range *ret)
{
    const struct source_thread *c = &x->source->thread[thread];
    struct objects *objects = x->p->objects;

    *ret = (struct object_range){ .node = ANY_NODE };
    ret->object = objects_find(objects, c->process, c->id, addr, profiler_place_addr(x, place), &ret->start, &ret->end);
    if (objects_stack(objects))
        profiler_bind_stack(x, thread, place, objects_stack(objects), ret);
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

/* What was found for a place in stacks. half: the node of a call path; or ~thread, for a range that holds on all call paths of the thread. */
static struct stack_range *stack_range_at(struct profiler *x, uint32_t half, uint32_t place)
{
    uint64_t key = (uint64_t)place << 32 | half;

    return &x->lookup.stack[key * 0x9e3779b97f4a7c15u >> (64 - STACK_LOOKUP_BITS)];
}

/* The object of an address, by address or by lookup. has_stack: the place referred to frames of other functions last. */
static const struct object_range *profiler_find_range(struct profiler *x, uint32_t thread, uint64_t addr,
                                                      uint32_t place, bool has_stack, struct object_range *buffer)
{
    uint32_t process = x->source->thread[thread].process,
             node = paths_current(paths_thread(&x->p->paths, thread))->node;
    struct stack_range *stack = stack_range_at(x, node, place), *own = stack_range_at(x, ~thread, place);
    struct object_range *last = &x->lookup.range[(addr >> 6) * 0x9e3779b97f4a7c15u >> (64 - OBJECT_LOOKUP_BITS)];

    profiler_find_thread_data(x, thread);
    if (has_stack && stack->place == place && stack->range.node == node
        && object_range_holds(&stack->range, process, addr, x->lookup.changes))
        return &stack->range;
    if (own->place == place && own->range.node == ANY_NODE
        && object_range_holds(&own->range, process, addr, x->lookup.changes))
        return &own->range;
    if (object_range_holds(last, process, addr, x->lookup.changes))
        return last;
    profiler_look_up(x, thread, addr, place, buffer);
    enum object_kind kind = objects_info(x->p->objects, buffer->object)->kind;
    if (kind == OBJECT_HEAP || kind == OBJECT_VARIABLE) /* other objects depend on the instruction or thread */
        *last = *buffer;
    else if (buffer->node != ANY_NODE)
        *stack = (struct stack_range){ place, *buffer };
    else if (objects_stack(x->p->objects))
        *own = (struct stack_range){ place, *buffer };
    return buffer;
}

struct object_cache *profiler_find_object(struct profiler *x, uint32_t thread, uint64_t addr, uint32_t place)
{
    struct object_cache *two = object_cache_at(x, place), *s = two + two->is_second;
    struct object_range buffer;

    if (object_cache_holds(x, s, thread, addr))
        return s;
    two->is_second ^= 1;
    s = two + two->is_second;
    if (object_cache_holds(x, s, thread, addr))
        return s;
    bool has_stack = two[0].node != ANY_NODE || two[1].node != ANY_NODE;
    const struct object_range *found = profiler_find_range(x, thread, addr, place, has_stack, &buffer);
    if (s->access == 0 || x->p->access[s->access - 1].object != found->object) {
        object_cache_flush(x, s);
        s->access = 1 + access_number(x, place, found->object);
    }
    s->start = found->start;
    s->end = found->end;
    s->since = found->since;
    s->process = found->process;
    s->node = found->node;
    s->origin = found->origin;
    s->stride = found->stride;
    return s;
}
