/* SPDX-License-Identifier: MIT */
/* What came of a simulation, or why it cannot go on. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/engine/state.h"

const char *sim_object_name(const struct sim_object *o)
{
    static const char *const names[] = {
#define X(name, text) text,
        OBJECT_KINDS(X)
#undef X
    };

    return names[o->kind];
}

const char *sim_time_title(enum time_kind kind)
{
    static const char *const titles[] = {
#define X(name, title) title,
        TIME_KINDS(X)
#undef X
    };

    return titles[kind];
}

/* Says who waits for what, as far as there is room. */
int sim_report_deadlock(struct sim *s, struct peet_err *err)
{
    char text[400] = "";
    size_t n = 0;

    for (uint32_t i = 0; i < s->contexts && n < sizeof text - 100; i++) {
        const struct context *c = &s->context[i];
        if (c->status != STATUS_WAITING)
            continue;
        n += (size_t)snprintf(text + n, sizeof text - n, "%sthread %" PRIu32 " waits for ", n ? "; " : "",
                              s->source->thread[i].id);
        if (c->joins)
            n += (size_t)snprintf(text + n, sizeof text - n, "the end of thread %" PRIu32,
                                  s->source->thread[c->joins - 1].id);
        else
            n += (size_t)snprintf(text + n, sizeof text - n, "%s 0x%" PRIx64, sim_object_name(&c->object->seen),
                                  c->object->seen.addr);
        if (!c->joins && c->object->holder)
            n += (size_t)snprintf(text + n, sizeof text - n, ", which thread %" PRIu32 " holds",
                                  s->source->thread[c->object->holder->sched.number].id);
    }
    return err_set(err, PEET_ERR_FORMAT, "deadlock: nobody can go on: %s", text);
}

static int by_waiting(const void *a, const void *b)
{
    const struct sim_object *x = a, *y = b;

    if (x->waited != y->waited)
        return x->waited > y->waited ? -1 : 1;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return x->addr != y->addr ? (x->addr < y->addr ? -1 : 1) : (int)x->kind - (int)y->kind;
}

/* The variable in which an object lies. */
static void name_object(const struct sim *s, struct sim_object *o)
{
    if (o->addr == 0 || o->name[0])
        return;
    const struct peet_symbol *y = peet_trace_symbol(s->source->trace, o->process, o->addr);

    if (!y || y->code)
        return;
    if (o->addr == y->addr)
        snprintf(o->name, sizeof o->name, "%s", y->name);
    else
        snprintf(o->name, sizeof o->name, "%.*s+0x%" PRIx64, SIM_NAME - 24, y->name, o->addr - y->addr);
}

static void list_objects(struct sim *s, struct sim_result *ret)
{
    struct object **o;
    size_t at = 0;
    uint64_t key;
    uint32_t tag;

    ret->object = mem_alloc(s->objects.count + 1, sizeof *ret->object);
    while ((o = map_next(&s->objects, &at, &key, &tag)))
        if ((*o)->seen.kind != OBJECT_ARC) /* what waits there waits for a condition */
            ret->object[ret->objects++] = (*o)->seen;
    qsort(ret->object, ret->objects, sizeof *ret->object, by_waiting);
    for (uint32_t i = 0; i < ret->objects; i++)
        name_object(s, &ret->object[i]);
}

/* The machine with one processor has counted for itself. */
static void result_add_blocks(struct sim *s, struct sim_result *ret)
{
    struct exec_clock *t = blocks_clock(s->block_exec);
    struct sim_place *p = &s->place[0].seen;

    blocks_flush(s->block_exec);
    ret->fabric = *blocks_fabric(s->block_exec);
    blocks_counts(s->block_exec, &ret->memory[0]);
    p->time[TIME_compute] += t->compute;
    p->time[TIME_stall] += t->stall;
    p->time[TIME_bus] += t->bus;
    p->instructions += t->instructions;
    t->compute = t->stall = t->bus = t->instructions = 0;
}

void sim_result(struct sim *s, struct sim_result *ret)
{
    *ret = (struct sim_result){ .references = s->references,
                                .sync_references = s->sync_references,
                                .contexts = s->contexts,
                                .places = s->places,
                                .cpus = s->config.cpus,
                                .broken = s->broken,
                                .is_part = s->is_stopped,
                                .place = mem_alloc(s->places, sizeof *ret->place),
                                .memory = mem_alloc(s->config.cpus, sizeof *ret->memory) };
    memory_settle(s->memory);
    ret->fabric = *memory_fabric(s->memory);
    for (unsigned i = 0; i < s->config.cpus; i++)
        ret->memory[i] = *memory_counts(s->memory, i);
    if (s->block_exec)
        result_add_blocks(s, ret);
    sim_list_programs(s, ret);
    for (uint32_t i = 0; i < s->places; i++)
        ret->cycles = s->place[i].clock > ret->cycles ? s->place[i].clock : ret->cycles;
    for (uint32_t i = 0; i < s->places; i++) {
        ret->place[i] = s->place[i].seen;
        ret->place[i].time[TIME_idle] += ret->cycles - s->place[i].clock;
        ret->instructions += ret->place[i].instructions;
    }
    list_objects(s, ret);
}
