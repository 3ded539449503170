/* SPDX-License-Identifier: MIT */
#include "study/compare/stream_observer.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

static uint64_t hash_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 32;
}

static uint64_t hash_mix_text(uint64_t hash, const char *text)
{
    for (; text && *text; text++)
        hash = hash_mix(hash, (unsigned char)*text);
    return hash;
}

/* ---- threads ---- */

static const struct peet_thread *trace_thread_by_id(const struct peet_trace *t, uint32_t id)
{
    const struct peet_thread *th;

    for (size_t i = 0; (th = peet_trace_thread(t, i)); i++)
        if (th->id == id)
            return th;
    return NULL;
}

/* A hash of the chain of creators of a thread, each with its number among the children of the one before. */
static uint64_t thread_lineage(const struct peet_trace *t, uint32_t id, unsigned depth)
{
    const struct peet_thread *th = trace_thread_by_id(t, id);

    if (!th || depth > 1000)
        return 1;
    const struct peet_thread *parent = th->parent == id ? NULL : trace_thread_by_id(t, th->parent);
    uint64_t before = parent ? thread_lineage(t, th->parent, depth + 1) : 1;
    return hash_mix(hash_mix(before, th->ordinal), parent && parent->process != th->process); /* forked, or created */
}

static void stream_observer_add_threads(struct stream_observer *o, const struct source *s)
{
    for (; o->threads < s->threads; o->threads++) {
        uint32_t i = o->threads, id = s->thread[i].id;
        uint64_t name = s->is_live ? i : thread_lineage(s->trace, id, 0);
        while (stream_observer_find(o, name)) /* equal names: the order of creation, which timing can change, decides */
            name = hash_mix(name, 5);
        o->thread = mem_room(o->thread, i, sizeof *o->thread);
        o->thread[i] = (struct observed_thread){
            .name = name, .thread = id, .process = s->thread[i].process, .hash = 1, .wanted = UINT64_MAX
        };
        for (size_t k = 0; k < o->wants; k++)
            if (o->want[k].name == name)
                o->thread[i].wanted = o->want[k].hash_block;
        uint32_t *at = map_put(&o->numbers, id, 0);
        assert(at);
        *at = i + 1;
    }
}

void stream_observer_begin(struct stream_observer *o, const struct source *s, const struct wanted_block *want,
                           size_t wants)
{
    stream_observer_release(o);
    o->want = want;
    o->wants = wants;
    o->numbers.value_size = sizeof(uint32_t);
    o->trace = s->trace;
    stream_observer_add_threads(o, s);
}

void stream_observer_release(struct stream_observer *o)
{
    for (uint32_t i = 0; i < o->threads; i++) {
        free(o->thread[i].hash_block);
        free(o->thread[i].kept);
    }
    free(o->thread);
    free(o->code);
    map_release(&o->numbers);
    *o = (struct stream_observer){ 0 };
}

struct observed_thread *stream_observer_find(const struct stream_observer *o, uint64_t name)
{
    for (uint32_t i = 0; i < o->threads; i++)
        if (o->thread[i].name == name)
            return &o->thread[i];
    return NULL;
}

/* ---- records ---- */

/* A block is known by where its instructions are. */
static uint64_t block_hash(struct stream_observer *o, uint32_t item)
{
    o->code = mem_reach(o->code, &o->codes, item, sizeof *o->code);
    if (!o->code[item]) {
        const struct peet_block *b = peet_trace_block(o->trace, item);
        uint64_t hash = 1;
        for (uint32_t i = 0; i < b->insns; i++)
            hash = hash_mix(hash, b->insn[i].addr);
        o->code[item] = hash | 1;
    }
    return o->code[item];
}

/* A thread by the name that it has in all runs. */
static uint64_t stream_observer_name(const struct stream_observer *o, uint64_t number)
{
    const uint32_t *at = map_find(&o->numbers, number, 0);

    return at ? o->thread[*at - 1].name : number;
}

static uint64_t stream_observer_hash_event(const struct stream_observer *o, const struct peet_event *e)
{
    uint64_t hash = hash_mix(2, e->kind);
    unsigned from = 0, args = e->args;

    switch (e->kind) {
    case PEET_EV_thread_create:
    case PEET_EV_thread_start:
    case PEET_EV_thread_join:
    case PEET_EV_thread_detach: return hash_mix(hash, stream_observer_name(o, e->arg[0]));
    case PEET_EV_exec:
    case PEET_EV_region_begin:
    case PEET_EV_region_end:
    case PEET_EV_mark:
    case PEET_EV_name_data:
        hash = hash_mix_text(hash, peet_trace_string(o->trace, e->arg[0]));
        from = 1;
        break;
    case PEET_EV_syscall: args = 1; break; /* its number; the results depend on the system */
    case PEET_EV_fork: args = 0; break;
    default: break;
    }
    for (unsigned i = from; i < args; i++)
        hash = hash_mix(hash, e->arg[i]);
    return hash;
}

static uint64_t stream_observer_hash_record(struct stream_observer *o, const struct peet_record *r,
                                            const struct peet_batch *b)
{
    if (r->kind == PEET_BLOCK)
        return block_hash(o, r->id);
    if (r->kind == PEET_EVENT)
        return stream_observer_hash_event(o, &b->events[r->id]);
    return hash_mix(hash_mix(3 + r->kind, r->size), r->addr);
}

static void stream_observer_keep(const struct stream_observer *o, struct observed_thread *t,
                                 const struct peet_record *r, const struct peet_batch *b, uint64_t hash)
{
    const struct peet_insn *insn = peet_is_reference(r) ? peet_trace_insn(o->trace, r->id) : NULL;
    struct compared_record *s;

    if (!t->kept)
        t->kept = mem_alloc(HASH_BLOCK_RECORDS, sizeof *t->kept);
    s = &t->kept[t->count++];
    *s = (struct compared_record){ .record = *r, .hash = hash, .instruction = t->instructions };
    if (r->kind == PEET_EVENT)
        s->event = b->events[r->id];
    s->code = r->kind == PEET_BLOCK ? r->addr : r->kind == PEET_EVENT ? s->event.site : insn ? insn->addr : 0;
}

void stream_observer_take(struct stream_observer *o, const struct source *s, uint32_t thread,
                          const struct peet_batch *b)
{
    stream_observer_add_threads(o, s);
    struct observed_thread *t = &o->thread[thread];
    for (size_t i = 0; i < b->count; i++) {
        const struct peet_record *r = &b->records[i];
        uint64_t hash = stream_observer_hash_record(o, r, b);
        assert(r->kind != PEET_REPEAT && r->kind != PEET_LOOP);
        if (t->records / HASH_BLOCK_RECORDS == t->wanted)
            stream_observer_keep(o, t, r, b, hash);
        t->instructions += r->kind == PEET_BLOCK ? r->size : 0;
        t->hash = hash_mix(t->hash, hash);
        if (++t->records % HASH_BLOCK_RECORDS == 0) {
            t->hash_block = mem_room(t->hash_block, t->hash_blocks, sizeof *t->hash_block);
            t->hash_block[t->hash_blocks++] = t->hash;
        }
    }
}

uint64_t observed_thread_first_difference(const struct observed_thread *a, const struct observed_thread *b)
{
    uint64_t i = 0;

    if (a->records == b->records && a->hash == b->hash)
        return UINT64_MAX;
    while (i < a->hash_blocks && i < b->hash_blocks && a->hash_block[i] == b->hash_block[i])
        i++;
    return i;
}
