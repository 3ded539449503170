/* SPDX-License-Identifier: MIT */
/* Blocks before their time.
 *
 * A place whose references are all found in its first cache, in states in which nothing else happens, does nothing that others can see.
 * So it need not wait for those that are behind it: it goes on until something else comes. What others do meanwhile matters only if
 * they change a line to which it referred: it is then taken back to where it was, and comes again as far as it is before them. Everything
 * else may as well happen in this order: lines that are not its own do not change the order of those that are. */
#include <assert.h>

#include "sim/state.h"

enum { LEAD_FIRST = 64, LEAD_LEAST = 4, LEAD_MOST = 4096, LEAD_REST = 32 };

/* A block and its references if all of these are easy or smooth; else nothing has happened. Returns what comes next. */
static inline const struct peet_record *lead_block(struct sim *s, struct place *p, const struct peet_record *block,
                                                   const struct peet_record *end)
{
    struct memory_front *f = p->front;
    size_t touches = f->touches;
    uint64_t prefetches = f->easy[PEET_PREFETCH];
    const struct peet_record *r = block + 1;

    if (block->kind != PEET_BLOCK || block->id >= s->blocks || !s->block[block->id].is_plain)
        return block;
    for (; r < end && peet_is_reference(r); r++)
        if (!memory_is_easy(f, r->addr, r->size, r->kind)
            && !memory_is_smooth(s->memory, p->cpu, r->addr, r->size, r->kind)) {
            for (const struct peet_record *x = r; x < end && peet_is_reference(x); x++)
                memory_expect(s->memory, p->cpu, x->addr);
            memory_untouch(s->memory, p->cpu, touches);
            while (--r > block)
                f->easy[r->kind]--;
            return block;
        }
    uint64_t cost = s->block[block->id].cost, references = (uint64_t)(r - block - 1);
    uint64_t stall = f->latency * (references - (f->easy[PEET_PREFETCH] - prefetches));
    p->clock += cost + stall;
    p->seen.time[TIME_compute] += cost;
    p->seen.time[TIME_stall] += stall;
    p->seen.instructions += block->size;
    s->references += references;
    return r;
}

static void remember(const struct sim *s, struct place *p)
{
    struct lead *l = &p->lead;

    l->at = p->context->at;
    l->clock = p->clock;
    l->compute = p->seen.time[TIME_compute];
    l->stall = p->seen.time[TIME_stall];
    l->instructions = p->seen.instructions;
    l->references = s->references;
    for (unsigned i = 0; i <= PEET_PREFETCH; i++)
        l->easy[i] = p->front->easy[i];
    p->front->touches = 0;
}

void sim_lead(struct sim *s, struct place *p)
{
    struct context *c = p->context;
    struct lead *l = &p->lead;
    const struct peet_record *r = c->batch.records + c->at, *end = c->batch.records + c->batch.count, *next;
    uint32_t left = l->most = l->most ? l->most : LEAD_FIRST;

    if (l->rest > 0) {
        l->rest--;
        return;
    }
    remember(s, p);
    for (; left > 0 && r < end && (next = lead_block(s, p, r, end)) != r; left--)
        r = next;
    l->is_on = left < l->most;
    l->failed = l->is_on ? 0 : l->failed < LEAD_REST ? 2 * l->failed + 1 : LEAD_REST;
    l->rest = l->failed;
    l->most = left == 0 && l->most < LEAD_MOST ? 2 * l->most : l->most;
    l->references = s->references - l->references;
    c->at = (size_t)(r - c->batch.records);
}

bool lead_has(const struct place *p, uint64_t line)
{
    const struct context *c = p->context;
    const struct peet_record *r = c->batch.records + p->lead.at, *end = c->batch.records + c->at;

    for (; r < end; r++)
        if (r->addr >> p->front->shift == line && r->kind != PEET_BLOCK)
            return true;
    return false;
}

void lead_take_back(struct sim *s, struct place *p, uint64_t time, unsigned number)
{
    struct context *c = p->context;
    struct lead *l = &p->lead;
    const struct peet_record *r = c->batch.records + l->at, *end = c->batch.records + c->at;

    l->is_on = false;
    l->most = l->most / 2 > LEAD_LEAST ? l->most / 2 : LEAD_LEAST;
    memory_untouch(s->memory, p->cpu, 0);
    p->clock = l->clock;
    p->seen.time[TIME_compute] = l->compute;
    p->seen.time[TIME_stall] = l->stall;
    p->seen.instructions = l->instructions;
    s->references -= l->references;
    for (unsigned i = 0; i <= PEET_PREFETCH; i++)
        p->front->easy[i] = l->easy[i];
    while (r < end && (p->clock < time || (p->clock == time && p->number < number))) {
        const struct peet_record *next = lead_block(s, p, r, end);
        assert(next > r); /* nothing has changed since it was done before */
        r = next;
    }
    c->at = (size_t)(r - c->batch.records);
    s->is_changed = true;
}
