/* SPDX-License-Identifier: MIT */
/* Blocks before their time.
 *
 * A place whose references are all answered by its own caches (sim/memory/core_local.h) does nothing that others can see.
 * So it need not wait for those that are behind it: it goes on until something else comes. What others do meanwhile matters only if
 * they change a line to which it referred, or one that made room for another: it is then taken back to where it was, and comes again as far as
 * it is before them. Everything else may as well happen in this order: lines that are not its own do not change the order of those that are. */
#include <assert.h>
#include <string.h>

#include "sim/engine/state.h"

enum { LEAD_FIRST = 64, LEAD_LEAST = 4, LEAD_MOST = 4096, LEAD_REST = 32 };

/* Easy references are counted by kind in one word, which stays in a register. */
static const uint64_t KINDS_ARE_MANY = 0x8000800080008000; /* LEAD_KIND_MOST more would be too many */

static inline uint64_t count_of(uint64_t kinds, unsigned kind)
{
    return kinds >> LEAD_KIND_BITS * (kind - PEET_LOAD) & UINT16_MAX;
}

/* Blocks that were near, and their references. */
struct done {
    uint64_t kinds;              /* of those that were easy */
    uint64_t references, others; /* all of them; those that were not easy */
    uint64_t hits, stall;        /* how long these took: as a hit in the first cache, and beyond that */
    uint64_t cost, instructions;
};

static void spend(struct sim *s, struct place *p, const struct done *d)
{
    uint64_t easy = d->references - d->others - count_of(d->kinds, PEET_PREFETCH);
    uint64_t compute = d->cost + d->hits + p->front->latency * easy;

    p->clock += compute + d->stall;
    p->seen.time[TIME_compute] += compute;
    p->seen.time[TIME_stall] += d->stall;
    p->seen.instructions += d->instructions;
    s->references += d->references;
    for (unsigned kind = PEET_LOAD; kind <= PEET_PREFETCH; kind++)
        p->front->easy[kind] += count_of(d->kinds, kind);
}

/* A reference, if it is near. */
static inline __attribute__((always_inline)) enum near lead_refer(struct sim *s, struct place *p,
                                                                  const struct peet_record *r, uint64_t addr)
{
    if (!memory_is_found(p->front, addr, r->size, r->kind))
        return memory_lead(s->memory, p->front, addr, r->size, (enum peet_kind)r->kind);
    memory_mark(p->front, addr >> p->front->shift, r->kind);
    return NEAR_SMOOTH;
}

static inline uint64_t near_cycles(const struct sim *s, const struct peet_record *r, enum near near)
{
    return r->kind == PEET_PREFETCH ? 0 : s->config.level[near == NEAR_BEHIND].latency;
}

static inline uint64_t near_stall(const struct sim *s, const struct peet_record *r, enum near near)
{
    return sim_beyond(&s->config, r->kind, near_cycles(s, r, near));
}

/* A block of these records and its references in that trip (without steps there is one only), if all of these are near; else nothing
 * has happened. Returns where the next one is. */
static inline __attribute__((always_inline)) size_t lead_block(struct sim *s, struct place *p,
                                                               const struct peet_record *record, const uint64_t *step,
                                                               size_t from, size_t end, uint64_t trip, struct done *d)
{
    size_t kept = p->front->kept, i = from + 1;
    uint64_t kinds = 0, cycles = 0, stall = 0, others = 0;
    const struct peet_record *block = &record[from];

    if (block->kind != PEET_BLOCK || block->id >= s->blocks || !s->block[block->id].is_plain)
        return from;
    for (; i < end && peet_is_reference(&record[i]); i++) {
        const struct peet_record *r = &record[i];
        uint64_t addr = r->addr + (step ? step[i] * trip : 0);
        enum near n = lead_refer(s, p, r, addr);
        if (n == NEAR_NOT) {
            memory_lead_back(p->front, kept);
            return from;
        }
        if (n == NEAR_SMOOTH) {
            kinds += lead_kind(r->kind);
        } else {
            others++;
            cycles += near_cycles(s, r, n);
            stall += near_stall(s, r, n);
            if (step)
                context_refers(s, p->context, p, r, addr);
        }
    }
    assert(i - from <= LEAD_KIND_MOST); /* a block has fewer operands, and what is longer than a line is not near */
    d->kinds += kinds;
    d->references += i - from - 1;
    d->others += others;
    d->hits += cycles - stall;
    d->stall += stall;
    d->cost += s->block[block->id].cost;
    d->instructions += block->size;
    return i;
}

/* The same for one that makes all its references each time, as all of a row do, most often. */
static inline __attribute__((always_inline)) size_t lead_fixed(struct sim *s, struct place *p,
                                                               const struct peet_record *block,
                                                               const struct block_facts *f, size_t from, struct done *d)
{
    const struct peet_record *r = block + 1, *end = r + f->references;
    size_t kept = p->front->kept;
    uint64_t kinds = f->kinds, others = 0, cycles = 0, stall = 0;

    for (; r < end; r++) {
        enum near n = lead_refer(s, p, r, r->addr);
        if (n == NEAR_SMOOTH)
            continue;
        if (n == NEAR_NOT) {
            memory_lead_back(p->front, kept);
            return from;
        }
        kinds -= lead_kind(r->kind);
        others++;
        cycles += near_cycles(s, r, n);
        stall += near_stall(s, r, n);
    }
    d->kinds += kinds;
    d->references += f->references;
    d->others += others;
    d->hits += cycles - stall;
    d->stall += stall;
    d->cost += f->cost;
    d->instructions += block->size;
    return from + 1 + f->references;
}

/* The next block of a row. */
static inline size_t lead_in_row(struct sim *s, struct place *p, const struct peet_record *record, size_t at,
                                 size_t end, struct done *d)
{
    const struct peet_record *block = &record[at];

    if (block->kind != PEET_BLOCK || block->id >= s->blocks || !s->block[block->id].is_fixed)
        return lead_block(s, p, record, NULL, at, end, 0, d);
    return lead_fixed(s, p, block, &s->block[block->id], at, d);
}

/* The next blocks; false: others would see what is next, or it is no block. */
static bool lead_row(struct sim *s, struct place *p, uint32_t *left)
{
    struct context *c = p->context;
    const struct peet_record *r = c->batch.records;
    size_t first = c->at, at = first, next = first, end = c->batch.count;
    struct done d = { 0 };

    while (*left > 0 && at < end && !(d.kinds & KINDS_ARE_MANY) && (next = lead_in_row(s, p, r, at, end, &d)) != at) {
        at = next;
        --*left;
    }
    spend(s, p, &d);
    c->at = at;
    return at != first && (*left == 0 || at == end || d.kinds & KINDS_ARE_MANY || r[at].kind != PEET_BLOCK);
}

/* The trip before the lead may have been such that those behind it are easy where they stay on its lines. */
static void lead_on(struct sim *s, struct place *p)
{
    const struct context *c = p->context;

    if (!context_repeats(c) || !context_is_settled(s, p))
        return;
    const struct peet_repeat *n = context_repeat(c);
    for (size_t i = 0; i < n->count; i++)
        if (n->records[i].kind != PEET_BLOCK)
            memory_mark(p->front, (n->records[i].addr + n->step[i] * (c->trip - 1)) >> p->front->shift,
                        n->records[i].kind);
}

/* What was not easy in trips. */
struct uneasy {
    uint64_t kinds; /* references, */
    int64_t longer; /*   and how many cycles more they took than easy ones */
};

static inline void be_uneasy(const struct sim *s, const struct peet_record *r, enum near near, struct uneasy *u)
{
    u->kinds += lead_kind(r->kind);
    u->longer += (int64_t)(near_cycles(s, r, near) - near_cycles(s, r, NEAR_SILENT));
}

/* A reference of a trip, if it is near. */
static inline __attribute__((always_inline)) bool lead_one(struct sim *s, struct place *p, const struct peet_record *r,
                                                           uint64_t addr, struct uneasy *u)
{
    enum near near = lead_refer(s, p, r, addr);

    if (near > NEAR_SMOOTH) {
        be_uneasy(s, r, near, u);
        context_refers(s, p->context, p, r, addr);
    }
    return near != NEAR_NOT;
}

/* The next trip, all of it, which is one block. False: others would see it. */
static bool lead_all(struct sim *s, struct place *p, struct uneasy *u)
{
    const struct context *c = p->context;
    const struct peet_repeat *n = context_repeat(c);

    context_begin_trip(p->context, p);
    for (size_t i = 1; i < n->count; i++)
        if (!lead_one(s, p, &n->records[i], n->records[i].addr + n->step[i] * c->trip, u))
            return false;
    return true;
}

/* The next trip, behind a settled one: only what matters. */
static bool lead_moved(struct sim *s, struct place *p, struct uneasy *u)
{
    struct context *c = p->context;
    const struct peet_repeat *n = context_repeat(c);
    struct moves *m = &c->moves;
    uint64_t kinds = moves_take(m, n), done = 0;

    for (uint32_t i = 0; i < m->count; i++) {
        if (!moves_matter(m, kinds, i))
            continue;
        uint32_t at = m->move[i].record;
        done++;
        if (lead_one(s, p, &n->records[at], n->records[at].addr + n->step[at] * c->trip, u))
            continue;
        moves_back(m, n);
        return false;
    }
    if (done <= p->front->ways)
        c->brought = 0;
    return true;
}

/* The next trip; false: nothing has happened. */
static bool lead_whole(struct sim *s, struct place *p, bool moves, struct uneasy *u)
{
    size_t kept = p->front->kept;
    const struct uneasy before = *u;

    if (moves ? lead_moved(s, p, u) : lead_all(s, p, u))
        return true;
    memory_lead_back(p->front, kept);
    p->context->hard = !moves; /* or nobody knows any more */
    p->context->brought = 0;
    *u = before;
    return false;
}

/* How many trips in which nothing moves end before a time. */
static uint64_t still_trips(struct sim *s, const struct place *p, uint64_t clock, uint64_t until)
{
    uint64_t most = repeat_still(s, p), cycles = p->context->easy.cycles;

    if (cycles == 0 || until == UINT64_MAX)
        return most;
    uint64_t fit = until > clock ? (until - clock - 1) / cycles : 0;
    return fit < most ? fit : most;
}

/* Whether a trip of which nothing is known would end before a time; u: what was not easy since trip `first`. */
static bool ends_before(const struct sim *s, const struct place *p, uint64_t first, const struct uneasy *u,
                        uint64_t until)
{
    const struct easy_trip *t = &p->context->easy;
    uint64_t slowest = t->cycles + t->references * s->config.level[1].latency;

    return until == UINT64_MAX
           || p->clock + (uint64_t)u->longer + (p->context->trip - first) * t->cycles + slowest < until;
}

/* Trips of one block whose lines change each time: nothing is known of the next one in any case. */
static bool lead_restless(struct sim *s, struct place *p, uint64_t until, uint32_t *left, struct uneasy *u)
{
    struct context *c = p->context;
    const struct peet_repeat *n = context_repeat(c);
    uint64_t first = c->trip;

    context_begin_trip(c, p);
    c->hard = 1;
    for (; *left > 0 && c->trip < n->times && !(u->kinds & KINDS_ARE_MANY) && ends_before(s, p, first, u, until);
         --*left) {
        size_t kept = p->front->kept;
        const struct uneasy before = *u;
        for (size_t i = 1; i < n->count; i++) {
            const struct peet_record *r = &n->records[i];
            enum near near = lead_refer(s, p, r, r->addr + n->step[i] * c->trip);
            if (near == NEAR_NOT) {
                memory_lead_back(p->front, kept);
                *u = before;
                return false;
            }
            if (near > NEAR_SMOOTH)
                be_uneasy(s, r, near, u);
        }
        c->trip++;
    }
    return true;
}

/* Trips that are settled, or of one block. */
static bool lead_restful(struct sim *s, struct place *p, uint64_t until, uint32_t *left, struct uneasy *u)
{
    struct context *c = p->context;
    uint64_t first = c->trip, times = context_repeat(c)->times;
    bool is_near = true;

    for (; is_near && *left > 0 && !(u->kinds & KINDS_ARE_MANY); --*left) {
        bool is_settled = context_is_settled(s, p);
        if (is_settled)
            context_stay(c,
                         still_trips(s, p, p->clock + (uint64_t)u->longer + (c->trip - first) * c->easy.cycles, until));
        bool moves = is_settled && !c->is_small;
        if (c->trip == times || (!moves && c->easy.blocks > 1) || !ends_before(s, p, first, u, until))
            break;
        is_near = lead_whole(s, p, moves, u);
        c->trip += is_near;
    }
    return is_near;
}

/* Trips that end before a time, as long as they are settled or of one block. False: others would see the next one. */
static bool lead_trips(struct sim *s, struct place *p, uint64_t until, uint32_t *left)
{
    struct context *c = p->context;
    uint64_t first = c->trip;
    struct uneasy u = { 0 };
    bool is_near = c->is_restless && c->easy.blocks == 1 ? lead_restless(s, p, until, left, &u)
                                                         : lead_restful(s, p, until, left, &u);

    repeat_count(s, p, c->trip - first);
    p->clock += (uint64_t)u.longer;
    p->seen.time[u.longer < 0 ? TIME_compute : TIME_stall] +=
        (uint64_t)u.longer; /* the second cache may be the faster one */
    for (unsigned kind = PEET_LOAD; kind <= PEET_PREFETCH; kind++)
        p->front->easy[kind] -= count_of(u.kinds, kind);
    context_end_trip(c);
    return is_near;
}

/* The next block of what is repeated, or trips, up to that time. False: others would see it. */
static bool lead_trip(struct sim *s, struct place *p, uint64_t until, uint32_t *left)
{
    struct context *c = p->context;
    const struct peet_repeat *n = context_repeat(c);
    size_t at = c->at;
    uint64_t trip = c->trip;

    repeat_begin(s, c);
    if (c->in_trip == 0) {
        if (!lead_trips(s, p, until, left))
            return false;
        if (c->at != at || c->trip != trip)
            return true;
        context_begin_trip(p->context, p);
    }
    struct done d = { 0 };
    size_t next = lead_block(s, p, n->records, n->step, c->in_trip, n->count, c->trip, &d);
    if (next == c->in_trip) {
        c->hard += next == 0; /* the trip before it was not settled */
        return false;
    }
    --*left;
    spend(s, p, &d);
    c->in_trip = next;
    if (next < n->count)
        return true;
    c->in_trip = 0;
    c->trip++;
    context_end_trip(c);
    return true;
}

/* The next blocks, wherever they are; where there is a time, not more than one, or trips up to it. */
static bool lead_next(struct sim *s, struct place *p, uint64_t until, uint32_t *left)
{
    const struct context *c = p->context;
    uint32_t one = 1;

    if (c->at == c->batch.count)
        return false;
    if (c->batch.records[c->at].kind == PEET_REPEAT)
        return lead_trip(s, p, until, left);
    return lead_row(s, p, until < UINT64_MAX ? &one : left);
}

static void remember(const struct sim *s, struct place *p)
{
    const struct context *c = p->context;
    struct lead *l = &p->lead;

    l->at = c->at;
    l->in_trip = c->in_trip;
    l->trip = c->trip;
    l->hard = c->hard;
    l->brought = c->brought;
    l->changes = c->changes;
    l->clock = p->clock;
    l->compute = p->seen.time[TIME_compute];
    l->stall = p->seen.time[TIME_stall];
    l->instructions = p->seen.instructions;
    l->references = s->references;
    memcpy(l->easy, p->front->easy, sizeof l->easy);
    memcpy(l->silent, p->front->silent, sizeof l->silent);
    memcpy(l->behind, p->front->behind, sizeof l->behind);
    memory_lead_begin(s->memory, p->cpu);
}

void sim_lead(struct sim *s, struct place *p)
{
    struct lead *l = &p->lead;
    uint32_t left = l->most = l->most ? l->most : LEAD_FIRST;

    if (l->rest > 0) {
        l->rest--;
        return;
    }
    remember(s, p);
    lead_on(s, p);
    p->context->hard += p->context->in_trip > 0; /* lines of what it has done of this trip are not marked */
    while (left > 0 && lead_next(s, p, UINT64_MAX, &left))
        ;
    l->is_on = left < l->most || p->context->at != l->at || p->context->trip != l->trip;
    l->failed = l->is_on ? 0 : l->failed < LEAD_REST ? 2 * l->failed + 1 : LEAD_REST;
    l->rest = l->failed;
    l->most = left == 0 && l->most < LEAD_MOST ? 2 * l->most : l->most;
    l->references = s->references - l->references;
}

void lead_take_back(struct sim *s, struct place *p, uint64_t time, unsigned number)
{
    struct context *c = p->context;
    struct lead *l = &p->lead;

    l->is_on = false;
    l->most = l->most / 2 > LEAD_LEAST ? l->most / 2 : LEAD_LEAST;
    memory_lead_back(p->front, 0);
    c->at = l->at;
    c->in_trip = l->in_trip;
    c->trip = l->trip;
    c->hard = l->hard;
    c->brought = l->brought;
    c->changes = l->changes;
    if (context_repeats(c))
        repeat_know(s, c); /* it may have come to another one */
    p->clock = l->clock;
    p->seen.time[TIME_compute] = l->compute;
    p->seen.time[TIME_stall] = l->stall;
    p->seen.instructions = l->instructions;
    s->references -= l->references;
    memcpy(p->front->easy, l->easy, sizeof l->easy);
    memcpy(p->front->silent, l->silent, sizeof l->silent);
    memcpy(p->front->behind, l->behind, sizeof l->behind);
    while (p->clock < time || (p->clock == time && p->number < number)) {
        size_t at = c->at;
        uint32_t left = UINT32_MAX;
        p->front->kept = 0; /* it is not taken back any more */
        bool goes_on = lead_next(s, p, time, &left);
        assert(goes_on || at == c->batch.count); /* nothing has changed since it was done before */
        if (!goes_on)
            break;
    }
    s->is_changed = true;
}
