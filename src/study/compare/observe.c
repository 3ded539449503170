/* SPDX-License-Identifier: MIT */
#include "study/compare/observe.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 32;
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    for (; text && *text; text++)
        hash = mix(hash, (unsigned char)*text);
    return hash;
}

/* ---- threads ---- */

static const struct peet_thread *thread_of(const struct peet_trace *t, uint32_t id)
{
    const struct peet_thread *th;

    for (size_t i = 0; (th = peet_trace_thread(t, i)); i++)
        if (th->id == id)
            return th;
    return NULL;
}

/* From the first thread of all down to this one, each as its parent's how-many-th child. */
static uint64_t lineage(const struct peet_trace *t, uint32_t id, unsigned depth)
{
    const struct peet_thread *th = thread_of(t, id);

    if (!th || depth > 1000)
        return 1;
    const struct peet_thread *parent = th->parent == id ? NULL : thread_of(t, th->parent);
    uint64_t before = parent ? lineage(t, th->parent, depth + 1) : 1;
    return mix(mix(before, th->ordinal), parent && parent->process != th->process); /* forked, or created */
}

static void see_threads(struct observer *o, const struct source *s)
{
    for (; o->threads < s->threads; o->threads++) {
        uint32_t i = o->threads, id = s->thread[i].id;
        uint64_t name = s->is_live ? i : lineage(s->trace, id, 0);
        while (observer_find(o, name)) /* what timing can change has no better name than its turn */
            name = mix(name, 5);
        o->thread = mem_room(o->thread, i, sizeof *o->thread);
        o->thread[i] = (struct observed){
            .name = name, .thread = id, .process = s->thread[i].process, .hash = 1, .wanted = UINT64_MAX
        };
        for (size_t k = 0; k < o->wants; k++)
            if (o->want[k].name == name)
                o->thread[i].wanted = o->want[k].stretch;
        uint32_t *at = map_put(&o->numbers, id, 0);
        assert(at);
        *at = i + 1;
    }
}

void observer_begin(struct observer *o, const struct source *s, const struct observe_want *want, size_t wants)
{
    observer_release(o);
    o->want = want;
    o->wants = wants;
    o->numbers.value_size = sizeof(uint32_t);
    o->trace = s->trace;
    see_threads(o, s);
}

void observer_release(struct observer *o)
{
    for (uint32_t i = 0; i < o->threads; i++) {
        free(o->thread[i].stretch);
        free(o->thread[i].kept);
    }
    free(o->thread);
    free(o->code);
    map_release(&o->numbers);
    *o = (struct observer){ 0 };
}

struct observed *observer_find(const struct observer *o, uint64_t name)
{
    for (uint32_t i = 0; i < o->threads; i++)
        if (o->thread[i].name == name)
            return &o->thread[i];
    return NULL;
}

/* ---- records ---- */

/* A block is known by where its instructions are. */
static uint64_t hash_block(struct observer *o, uint32_t item)
{
    o->code = mem_reach(o->code, &o->codes, item, sizeof *o->code);
    if (!o->code[item]) {
        const struct peet_block *b = peet_trace_block(o->trace, item);
        uint64_t hash = 1;
        for (uint32_t i = 0; i < b->insns; i++)
            hash = mix(hash, b->insn[i].addr);
        o->code[item] = hash | 1;
    }
    return o->code[item];
}

/* A thread by the name that it has in all runs. */
static uint64_t name_of(const struct observer *o, uint64_t number)
{
    const uint32_t *at = map_find(&o->numbers, number, 0);

    return at ? o->thread[*at - 1].name : number;
}

static uint64_t hash_event(const struct observer *o, const struct peet_event *e)
{
    uint64_t hash = mix(2, e->kind);
    unsigned from = 0, args = e->args;

    switch (e->kind) {
    case PEET_EV_thread_create:
    case PEET_EV_thread_start:
    case PEET_EV_thread_join:
    case PEET_EV_thread_detach: return mix(hash, name_of(o, e->arg[0]));
    case PEET_EV_exec:
    case PEET_EV_region_begin:
    case PEET_EV_region_end:
    case PEET_EV_mark:
    case PEET_EV_name_data:
        hash = mix_text(hash, peet_trace_string(o->trace, e->arg[0]));
        from = 1;
        break;
    case PEET_EV_syscall: args = 1; break; /* which one; what the system answers is not the threads' doing */
    case PEET_EV_fork: args = 0; break;
    default: break;
    }
    for (unsigned i = from; i < args; i++)
        hash = mix(hash, e->arg[i]);
    return hash;
}

static uint64_t hash_record(struct observer *o, const struct peet_record *r, const struct peet_batch *b)
{
    if (r->kind == PEET_BLOCK)
        return hash_block(o, r->id);
    if (r->kind == PEET_EVENT)
        return hash_event(o, &b->events[r->id]);
    return mix(mix(3 + r->kind, r->size), r->addr);
}

static void keep(const struct observer *o, struct observed *t, const struct peet_record *r, const struct peet_batch *b,
                 uint64_t hash)
{
    const struct peet_insn *insn = peet_is_reference(r) ? peet_trace_insn(o->trace, r->id) : NULL;
    struct seen *s;

    if (!t->kept)
        t->kept = mem_alloc(OBSERVE_STRETCH, sizeof *t->kept);
    s = &t->kept[t->count++];
    *s = (struct seen){ .record = *r, .hash = hash, .instruction = t->instructions };
    if (r->kind == PEET_EVENT)
        s->event = b->events[r->id];
    s->code = r->kind == PEET_BLOCK ? r->addr : r->kind == PEET_EVENT ? s->event.site : insn ? insn->addr : 0;
}

void observer_take(struct observer *o, const struct source *s, uint32_t context, const struct peet_batch *b)
{
    see_threads(o, s);
    struct observed *t = &o->thread[context];
    for (size_t i = 0; i < b->count; i++) {
        const struct peet_record *r = &b->records[i];
        uint64_t hash = hash_record(o, r, b);
        assert(r->kind != PEET_REPEAT && r->kind != PEET_LOOP);
        if (t->records / OBSERVE_STRETCH == t->wanted)
            keep(o, t, r, b, hash);
        t->instructions += r->kind == PEET_BLOCK ? r->size : 0;
        t->hash = mix(t->hash, hash);
        if (++t->records % OBSERVE_STRETCH == 0) {
            t->stretch = mem_room(t->stretch, t->stretches, sizeof *t->stretch);
            t->stretch[t->stretches++] = t->hash;
        }
    }
}

uint64_t observed_differ(const struct observed *a, const struct observed *b)
{
    uint64_t i = 0;

    if (a->records == b->records && a->hash == b->hash)
        return UINT64_MAX;
    while (i < a->stretches && i < b->stretches && a->stretch[i] == b->stretch[i])
        i++;
    return i;
}
