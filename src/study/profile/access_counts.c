/* SPDX-License-Identifier: MIT */
/* Places that refer to data, and what data belong to. */
#include "base/mem.h"
#include "study/profile/profiler.h"

uint64_t profile_leaf_wait(const struct profile_leaf *l)
{
    uint64_t sum = 0;

    for (unsigned kind = 0; kind < TIME_COUNT; kind++)
        sum += l->wait[kind];
    return sum;
}

uint64_t profile_place_addr(const struct profile *p, uint32_t place)
{
    return place < p->insns ? peet_trace_insn(p->trace, place)->addr : p->call[place - p->insns] - 1;
}

/* As long as it is not known how many instructions there are, calls have numbers from CALLS on. */
static uint64_t place_addr(const struct profile *p, uint32_t place)
{
    return place < CALLS ? peet_trace_insn(p->trace, place)->addr : p->call[place - CALLS] - 1;
}

static uint64_t near_addr(struct running *x, uint32_t place)
{
    struct near_place *near = &x->places_near[place % PLACES_NEAR];

    if (near->next != place + 1)
        *near = (struct near_place){ place + 1, place_addr(&x->p, place) };
    return near->addr;
}

static uint32_t final_place(const struct profile *p, uint32_t place)
{
    return place < CALLS || place == NOBODY ? place : place - CALLS + p->insns;
}

void profile_number_calls(struct profile *p)
{
    p->insns = peet_trace_insns(p->trace);
    for (size_t i = 0; i < p->cells; i++)
        p->cell[i].place = final_place(p, p->cell[i].place);
    for (size_t i = 0; i < p->waits; i++)
        p->wait[i].place = final_place(p, p->wait[i].place);
    for (size_t i = 0; i < p->pairs; i++) {
        p->pair[i].of = final_place(p, p->pair[i].of);
        p->pair[i].by = final_place(p, p->pair[i].by);
    }
}

uint32_t profile_call_place(struct running *x, uint64_t addr)
{
    uint32_t *number = room(map_put(&x->calls, addr, 0));

    if (*number == 0) {
        x->p.call = mem_room(x->p.call, x->p.calls, sizeof *x->p.call);
        x->p.call[x->p.calls++] = addr;
        *number = x->p.calls;
    }
    return CALLS + *number - 1;
}

static struct site *site_at(struct running *x, uint32_t place)
{
    bool is_call = place >= CALLS;
    struct site **site = &x->site[is_call];

    place -= is_call ? CALLS : 0;
    *site = mem_reach(*site, &x->sites[is_call], place, 2 * sizeof **site);
    return &(*site)[2 * (size_t)place];
}

static uint32_t cell_number(struct running *x, uint32_t place, uint32_t object)
{
    size_t before = x->cells.count;
    uint32_t *number = room(map_put(&x->cells, place, object));

    if (x->cells.count != before) {
        x->p.cell = mem_room(x->p.cell, x->p.cells, sizeof *x->p.cell);
        x->p.cell[x->p.cells] = (struct profile_cell){ .place = place, .object = object };
        *number = (uint32_t)x->p.cells++;
    }
    return *number;
}

static void settle(struct running *x, struct site *s)
{
    if (s->references) {
        x->p.cell[s->cell - 1].references += s->references;
        x->p.cell[s->cell - 1].writes += s->writes;
    }
    s->references = s->writes = 0;
}

void profile_settle_sites(struct running *x)
{
    for (unsigned i = 0; i < 2; i++)
        for (size_t k = 0; k < 2 * (size_t)x->sites[i]; k++)
            settle(x, &x->site[i][k]);
}

/* Before anything of a thread is looked up. */
static void hear_pointer(struct running *x, uint32_t context)
{
    while (x->tellers <= context) {
        x->has_told = mem_room(x->has_told, x->tellers, sizeof *x->has_told);
        x->has_told[x->tellers++] = false;
    }
    if (x->has_told[context])
        return;
    x->has_told[context] = true;
    uint64_t pointer = source_pointer(x->source, context);
    if (pointer)
        objects_thread(x->p.objects, x->source->thread[context].process, pointer);
}

static void look_up(struct running *x, const struct source_thread *c, uint64_t addr, uint64_t insn,
                    struct near_block *ret)
{
    struct objects *objects = x->p.objects;

    ret->object = objects_find(objects, c->process, c->id, addr, insn, &ret->start, &ret->end);
    ret->since = objects_changes(objects)->count;
    ret->origin = addr - objects_offset(objects, c->process, addr);
    ret->stride = objects_stride(objects, ret->object);
    if (x->p.stride && objects_info(objects, ret->object)->kind == OBJECT_NAMED)
        ret->stride = x->p.stride;
    ret->process = c->process;
}

static inline bool is_near(struct near_block *b, uint32_t process, uint64_t addr, const struct change_log *c)
{
    return b->process == process && addr >= b->start && addr < b->end
           && change_log_revalidate(c, &b->since, b->start, b->end);
}

struct site *profile_find_site(struct running *x, uint32_t context, uint64_t addr, uint32_t place)
{
    struct site *two = site_at(x, place), *s = two + two->is_second;
    const struct source_thread *c = &x->source->thread[context];
    const struct change_log *changes = x->changes;

    if (profile_is_in(s, c->process, addr, changes))
        return s;
    two->is_second ^= 1;
    s = two + two->is_second;
    if (profile_is_in(s, c->process, addr, changes))
        return s;
    hear_pointer(x, context);
    struct near_block *near = &x->blocks_near[(addr >> 6) * 0x9e3779b97f4a7c15u >> (64 - BLOCK_BITS)], other,
                      *found = near;
    if (!is_near(near, c->process, addr, changes)) {
        look_up(x, c, addr, near_addr(x, place), &other);
        found = &other;
        enum object_kind kind = objects_info(x->p.objects, other.object)->kind;
        if (kind == OBJECT_HEAP || kind == OBJECT_VARIABLE) /* of others it hangs on who asks */
            *near = other;
    }
    if (s->cell == 0 || x->p.cell[s->cell - 1].object != found->object) {
        settle(x, s);
        s->cell = 1 + cell_number(x, place, found->object);
    }
    s->start = found->start;
    s->end = found->end;
    s->since = found->since;
    s->process = found->process;
    s->origin = found->origin;
    s->stride = found->stride;
    return s;
}
