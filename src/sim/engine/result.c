/* SPDX-License-Identifier: MIT */
/* The result of a simulation. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/engine/executor.h"
#include "sim/spec/speculation.h"

const char *sync_object_kind_name(const struct sync_summary *o)
{
    static const char *const names[] = {
#define X(name, text) text,
        SYNC_OBJECT_KINDS(X)
#undef X
    };

    return names[o->kind];
}

const char *time_kind_title(enum time_kind kind)
{
    static const char *const titles[] = {
#define X(name, title) title,
        TIME_KINDS(X)
#undef X
    };

    return titles[kind];
}

const char *order_wait_title(enum order_wait kind)
{
    static const char *const titles[] = {
#define X(name, title) title,
        ORDER_WAITS(X) ORDER_NOTES(X)
#undef X
    };

    return titles[kind];
}

static int summary_compare(const void *a, const void *b)
{
    const struct sync_summary *x = a, *y = b;

    if (x->waited != y->waited)
        return x->waited > y->waited ? -1 : 1;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return x->addr != y->addr ? (x->addr < y->addr ? -1 : 1) : (int)x->kind - (int)y->kind;
}

/* The variable in which an object lies. */
static void summary_name(const struct sim *s, struct sync_summary *o)
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

static void result_list_objects(struct sim *s, struct sim_result *ret)
{
    struct sync_object **o;
    size_t at = 0;
    uint64_t key;
    uint32_t tag;

    ret->sync_object = mem_alloc(s->sync.object.count + 1, sizeof *ret->sync_object);
    while ((o = map_next(&s->sync.object, &at, &key, &tag)))
        if ((*o)->summary.kind != SYNC_OBJECT_ARC) /* waits at arcs are counted at their conditions */
            ret->sync_object[ret->sync_objects++] = (*o)->summary;
    qsort(ret->sync_object, ret->sync_objects, sizeof *ret->sync_object, summary_compare);
    for (uint32_t i = 0; i < ret->sync_objects; i++)
        summary_name(s, &ret->sync_object[i]);
}

void sim_result(struct sim *s, struct sim_result *ret)
{
    *ret = (struct sim_result){ .references = s->counts.references,
                                .sync_references = s->counts.sync_references,
                                .threads = s->threads,
                                .hw_threads = s->hw_threads,
                                .cpus = s->config.cpus,
                                .forced_wakeups = s->counts.forced_wakeups,
                                .is_interrupted = s->hooks.is_stopped,
                                .hw_thread = mem_alloc(s->hw_threads, sizeof *ret->hw_thread),
                                .memory = mem_alloc(s->config.cpus, sizeof *ret->memory) };
    s->executor->flush(s, ret);
    ret->stops.has_stops = s->source->stops_at_accesses;
    if (ret->stops.has_stops)
        source_count_accesses(s->source, &ret->stops.consulted, &ret->stops.alone);
    sim_list_programs(s, ret);
    if (s->sync.speculation)
        speculation_result(s, ret);
    for (uint32_t i = 0; i < s->hw_threads; i++)
        ret->cycles = s->hw_thread[i].clock > ret->cycles ? s->hw_thread[i].clock : ret->cycles;
    for (uint32_t i = 0; i < s->hw_threads; i++) {
        ret->hw_thread[i] = s->hw_thread[i].account;
        ret->hw_thread[i].time[TIME_idle] += ret->cycles - s->hw_thread[i].clock;
        ret->instructions += ret->hw_thread[i].instructions;
    }
    result_list_objects(s, ret);
}
