/* SPDX-License-Identifier: MIT */
/* What a program repeats, and trips in which nothing can happen.
 *
 * If all references of a trip were easy (sim/memory/memory.h), and those of the next trips are to
 * the same lines, these are easy, too: each set then has its lines in the order in which a trip touches them last, and another trip
 * leaves them so; the same holds for a TLB. No other processor has changed anything here since the trip began. So whole trips are only
 * counted.
 *
 * Nobody sees such trips, so they can also be counted before their time, while others are still behind. Should one of these then
 * change what is in the caches here, those that come after it are taken back, and done one by one. */
#include <assert.h>
#include <string.h>

#include "sim/engine/state.h"

enum { SMALL_TRIP = 7 }; /* records */

/* A record but for its address. */
static uint64_t what(const struct peet_record *r)
{
    uint64_t word;

    static_assert(sizeof *r == sizeof r->addr + sizeof word, "a record is an address and a word");
    memcpy(&word, (const char *)r + sizeof r->addr, sizeof word);
    return word;
}

static bool is_trip_of(const struct easy_trip *t, const struct peet_repeat *n)
{
    if (t->records != n->count)
        return false;
    for (size_t i = 0; i < n->count; i++)
        if (t->record[i] != what(&n->records[i]))
            return false;
    return true;
}

/* What one trip is if it is easy. */
static void find_trip(struct sim *s, const struct peet_repeat *n, struct easy_trip *t)
{
    *t = (struct easy_trip){ .records = n->count <= TRIP_RECORDS ? n->count : 0 };
    for (size_t i = 0; i < n->count; i++) {
        const struct peet_record *r = &n->records[i];
        if (i < TRIP_RECORDS)
            t->record[i] = what(r);
        if (r->kind == PEET_BLOCK) {
            const struct block_facts *f = sim_block(s, r);
            t->blocks++;
            t->compute += f->cost;
            t->instructions += r->size;
            t->fetches += f->fetches;
        } else {
            t->kinds[r->kind]++;
            t->references++;
        }
    }
    t->compute += (t->references - t->kinds[PEET_PREFETCH]) * s->config.level[0].latency;
    t->fetch = t->fetches * s->config.instructions.latency;
    t->cycles = t->compute + t->fetch;
}

/* So many trips that are easy; also less than none. */
void repeat_count(struct sim *s, struct place *p, uint64_t trips)
{
    const struct easy_trip *t = &p->context->easy;

    p->clock += trips * t->cycles;
    p->seen.time[TIME_compute] += trips * t->compute;
    p->seen.time[TIME_fetch] += trips * t->fetch;
    p->seen.instructions += trips * t->instructions;
    s->references += trips * t->references;
    if (t->fetches)
        memory_add_fetches(s->memory, p->cpu, trips * t->fetches);
    for (unsigned i = PEET_LOAD; i <= PEET_PREFETCH; i++)
        p->front->easy[i] += trips * t->kinds[i];
}

/* How many cycles there are for trips that are only counted. */
static uint64_t room_for_trips(const struct sim *s, const struct place *p, uint64_t limit)
{
    uint64_t room = limit > p->clock ? limit - p->clock : 0;

    if (s->scheduler.count > 0 && s->config.quantum) { /* somebody waits for the place */
        uint64_t left = p->began + s->config.quantum > p->clock ? p->began + s->config.quantum - p->clock : 0;
        return left < room ? left : room;
    }
    /* With slack the order is not the one of time, and what comes behind something cannot be told. */
    return s->scheduler.count > 0 || s->config.slack > 0 || limit == 0 || s->leads ? room : UINT64_MAX;
}

/* Whether all lines of the trip that is just over are there. */
static bool has_lines(const struct sim *s, const struct place *p)
{
    const struct context *c = p->context;
    const struct peet_repeat *n = context_repeat(c);

    for (size_t i = 0; i < n->count; i++)
        if (n->records[i].kind != PEET_BLOCK
            && !memory_has(s->memory, p->cpu, (n->records[i].addr + n->step[i] * (c->trip - 1)) >> p->front->shift))
            return false;
    return true;
}

bool repeat_has_lines(const struct sim *s, const struct place *p)
{
    struct context *c = p->context;

    if (c->easy.references <= p->front->ways || has_lines(s, p))
        c->brought = 0;
    else
        c->hard++;
    return c->hard == 0;
}

/* For how many more trips all references stay in their lines, at most. */
static uint64_t trips_on_lines(const struct peet_repeat *n, uint64_t trip, uint32_t line, uint64_t most)
{
    for (size_t i = 0; most > 0 && i < n->count; i++) {
        const struct peet_record *r = &n->records[i];
        if (r->kind == PEET_BLOCK)
            continue;
        uint64_t trips = trips_in_line((r->addr + n->step[i] * trip) & (line - 1), r->size, n->step[i], line);
        most = trips < most ? trips : most;
    }
    return most;
}

uint64_t repeat_still(struct sim *s, const struct place *p)
{
    struct context *c = p->context;
    const struct peet_repeat *n = context_repeat(c);
    uint64_t most = n->times - c->trip;

    if (c->is_small)
        return trips_on_lines(n, c->trip - 1, s->config.level[0].line, most);
    moves_know(&c->moves, n, c->trip, p->front->shift, p->front->mask + 1, &s->arena);
    return c->moves.soonest - c->trip < most ? c->moves.soonest - c->trip : most;
}

/* Trips behind the one that is just over, which was easy. */
static void skip(struct sim *s, struct place *p, uint64_t limit)
{
    struct context *c = p->context;
    uint64_t cycles = c->easy.cycles, room = room_for_trips(s, p, limit), most;

    if (room == 0 || room < cycles || !s->config.level[0].bytes || s->config.contexts > 1 || !context_is_settled(s, p))
        return;
    most = repeat_still(s, p);
    if (room < UINT64_MAX && cycles) { /* the last one ends before: steps of no cycles may be behind the end */
        uint64_t fit = (room - 1) / cycles;
        most = fit < most ? fit : most;
    }
    p->ahead = room == UINT64_MAX ? most : 0;
    p->ahead_from = p->clock;
    p->ahead_at = c->at;
    context_stay(c, most);
    repeat_count(s, p, most);
}

/* The references behind a block, from record i on; returns where they end. Those that are not easy are counted. */
static size_t refer(struct sim *s, struct place *p, struct context *c, size_t i)
{
    const struct peet_repeat *n = context_repeat(c);
    struct memory_front *f = p->front;

    for (; i < n->count && peet_is_reference(&n->records[i]); i++) {
        const struct peet_record *from = &n->records[i];
        uint64_t addr = from->addr + n->step[i] * c->trip;
        if (memory_is_easy(f, addr, from->size, from->kind)) {
            place_be_easy(p, from->kind);
            s->references++;
        } else {
            struct peet_record r = *from;
            r.addr = addr;
            if (!sim_refer(s, p, &r))
                context_refers(s, c, p, &r, addr);
        }
        if (s->config.by_reference)
            return i + 1;
    }
    return i;
}

/* The same behind a trip that would have been easy once more: those that are where they were are only counted, unless others
 * change something meanwhile. */
static void refer_moved(struct sim *s, struct place *p)
{
    struct context *c = p->context;
    const struct peet_repeat *n = context_repeat(c);
    uint64_t kinds = moves_take(&c->moves, n), others = 0;

    for (uint32_t i = 0; i < c->moves.count; i++) {
        struct peet_record r = n->records[c->moves.move[i].record];
        if (!moves_matter(&c->moves, kinds, i)) {
            p->front->easy[r.kind]++;
            place_be_easy(p, r.kind);
            continue;
        }
        r.addr += n->step[c->moves.move[i].record] * c->trip;
        others++;
        if (!sim_refer(s, p, &r))
            context_refers(s, c, p, &r, r.addr);
        if (c->changes != p->front->changes)
            kinds = UINT64_MAX;
    }
    s->references += c->moves.count - others;
}

/* The trip is one block, so that nobody comes between its references, and behind one that would have been easy once more. */
static bool is_moved(struct sim *s, const struct place *p)
{
    const struct context *c = p->context;

    if (!s->leads || c->is_small || c->easy.blocks != 1 || !context_is_settled(s, p))
        return false;
    repeat_still(s, p);
    return true;
}

/* The next block of the trip, and its references. If that was all of it, and nothing new: trips behind it. */
static void step(struct sim *s, struct place *p, uint64_t limit)
{
    struct context *c = p->context;
    const struct peet_repeat *n = context_repeat(c);
    bool moved = is_moved(s, p);

    if (c->in_trip == 0)
        context_begin_trip(p->context, p);
    if (n->records[c->in_trip].kind == PEET_BLOCK) {
        const uint64_t *misses = &p->counts->fetch_misses, before = *misses;
        sim_issue(s, p, &n->records[c->in_trip++]);
        c->hard += *misses != before;
    }
    if (moved)
        refer_moved(s, p);
    else if ((c->in_trip = refer(s, p, c, c->in_trip)) < n->count)
        return;
    c->in_trip = 0;
    c->trip++;
    if (c->trip < n->times)
        skip(s, p, limit);
    context_end_trip(c);
}

/* Whether some reference is to another line in each trip. */
static bool is_restless(const struct peet_repeat *n, uint64_t line)
{
    for (size_t i = 0; i < n->count; i++)
        if (n->step[i] + line - 1 >= 2 * line - 1)
            return true;
    return false;
}

void repeat_know(struct sim *s, struct context *c)
{
    const struct peet_repeat *n = context_repeat(c);

    c->moves.trip = 0;
    c->is_small = n->count <= SMALL_TRIP;
    c->is_restless = c->is_small && is_restless(n, s->config.level[0].line);
    if (!is_trip_of(&c->easy, n))
        find_trip(s, n, &c->easy);
}

void repeat_begin(struct sim *s, struct context *c)
{
    if (c->in_trip == 0 && c->trip == 0)
        repeat_know(s, c);
}

void sim_repeat(struct sim *s, struct place *p, uint64_t limit)
{
    struct context *c = p->context;
    size_t at = c->at;

    repeat_begin(s, c);
    step(s, p, limit);
    bool leads = s->leads && p->lead.rest == 0; /* which is as fast for trips, also before the limit */
    while (c->at == at && !leads && sim_may_go_on(s, p, limit)) {
        p->ahead = 0;
        s->now = p->clock;
        step(s, p, limit);
    }
    if (c->at < c->batch.count && sim_may_lead(s, p, leads ? 0 : limit))
        sim_lead(s, p);
}

void sim_take_back(struct sim *s, struct place *p, uint64_t time, unsigned number)
{
    struct context *c = p->context;
    uint64_t trips = p->ahead, before = time > p->ahead_from ? time - p->ahead_from - 1 : 0;

    if (p->lead.is_on)
        lead_take_back(s, p, time, number);
    p->ahead = 0;
    if (trips == 0 || c->easy.cycles == 0)
        return;
    uint64_t kept = before / c->easy.cycles;
    if (kept >= trips)
        return;
    c->moves.trip = 0;
    if (c->at != p->ahead_at) { /* it had come to the end of what is repeated */
        c->at = p->ahead_at;
        c->trip = context_repeat(c)->times;
    }
    c->trip += kept - trips;
    repeat_count(s, p, kept - trips);
    s->is_changed = true;
    while (p->clock < time || (p->clock == time && p->number < number))
        step(s, p, 0);
}
