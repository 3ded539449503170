/* SPDX-License-Identifier: MIT */
/* Blocks before their time.
 *
 * A place whose references are all answered by its own caches (sim/memory/core_caches.h) does nothing that others can see.
 * So it need not wait for those that are behind it: it goes on until something else comes. What others do meanwhile matters only if
 * they change a line to which it referred, or one that made room for another: it is then taken back to where it was, and comes again as far as
 * it is before them. Everything else may as well happen in this order: lines that are not its own do not change the order of those that are. */
#include <assert.h>
#include <string.h>

#include "sim/engine/state.h"

enum { LOOKAHEAD_FIRST = 64, LOOKAHEAD_LEAST = 4, LOOKAHEAD_MOST = 4096, LOOKAHEAD_REST = 32 };

/* Easy references are counted by kind in one word, which stays in a register. */
static const uint64_t KINDS_ARE_MANY = 0x8000800080008000; /* LEAD_KIND_MOST more would be too many */

static inline uint64_t count_of(uint64_t kinds, unsigned kind)
{
    return kinds >> KIND_COUNT_BITS * (kind - PEET_LOAD) & UINT16_MAX;
}

/* Blocks that were near, and their references. */
struct lookahead_run {
    uint64_t kinds;              /* of those that were easy */
    uint64_t references, others; /* all of them; those that were not easy */
    uint64_t hits, stall;        /* how long these took: as a hit in the first cache, and beyond that */
    uint64_t cost, instructions;
};

static void spend(struct sim *s, struct hw_thread *hw, const struct lookahead_run *d)
{
    uint64_t easy = d->references - d->others - count_of(d->kinds, PEET_PREFETCH);
    uint64_t compute = d->cost + d->hits + hw->front->latency * easy;

    hw->clock += compute + d->stall;
    hw->seen.time[TIME_compute] += compute;
    hw->seen.time[TIME_stall] += d->stall;
    hw->seen.instructions += d->instructions;
    s->references += d->references;
    for (unsigned kind = PEET_LOAD; kind <= PEET_PREFETCH; kind++)
        hw->front->easy[kind] += count_of(d->kinds, kind);
}

/* A reference, if it is near. */
static inline __attribute__((always_inline)) enum local_hit lookahead_access(struct sim *s, struct hw_thread *hw,
                                                                             const struct peet_record *r, uint64_t addr)
{
    if (!l1_filter_has(hw->front, addr, r->size, r->kind))
        return undo_log_access(s->memory, hw->front, addr, r->size, (enum peet_kind)r->kind);
    signature_add(hw->front, addr >> hw->front->shift, r->kind);
    return LOCAL_REORDER_HIT;
}

static inline uint64_t local_hit_cycles(const struct sim *s, const struct peet_record *r, enum local_hit near)
{
    return r->kind == PEET_PREFETCH ? 0 : s->config.level[near == LOCAL_L2_HIT].latency;
}

static inline uint64_t local_hit_stall(const struct sim *s, const struct peet_record *r, enum local_hit near)
{
    return sim_beyond(&s->config, r->kind, local_hit_cycles(s, r, near));
}

/* A block of these records and its references in that trip (without steps there is one only), if all of these are near; else nothing
 * has happened. Returns where the next one is. */
static inline __attribute__((always_inline)) size_t lookahead_any_block(struct sim *s, struct hw_thread *hw,
                                                                        const struct peet_record *record,
                                                                        const uint64_t *step, size_t from, size_t end,
                                                                        uint64_t trip, struct lookahead_run *d)
{
    size_t kept = hw->front->kept, i = from + 1;
    uint64_t kinds = 0, cycles = 0, stall = 0, others = 0;
    const struct peet_record *block = &record[from];

    if (block->kind != PEET_BLOCK || block->id >= s->blocks || !s->block[block->id].is_plain)
        return from;
    for (; i < end && peet_is_reference(&record[i]); i++) {
        const struct peet_record *r = &record[i];
        uint64_t addr = r->addr + (step ? step[i] * trip : 0);
        enum local_hit n = lookahead_access(s, hw, r, addr);
        if (n == LOCAL_NONE) {
            undo_log_roll_back(hw->front, kept);
            return from;
        }
        if (n == LOCAL_REORDER_HIT) {
            kinds += kind_count_one(r->kind);
        } else {
            others++;
            cycles += local_hit_cycles(s, r, n);
            stall += local_hit_stall(s, r, n);
            if (step)
                thread_note_slow_hit(s, hw->context, hw, r, addr);
        }
    }
    assert(i - from <= KIND_COUNT_MAX); /* a block has fewer operands, and what is longer than a line is not near */
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
static inline __attribute__((always_inline)) size_t lookahead_fixed_block(struct sim *s, struct hw_thread *hw,
                                                                          const struct peet_record *block,
                                                                          const struct block_info *f, size_t from,
                                                                          struct lookahead_run *d)
{
    const struct peet_record *r = block + 1, *end = r + f->references;
    size_t kept = hw->front->kept;
    uint64_t kinds = f->kinds, others = 0, cycles = 0, stall = 0;

    for (; r < end; r++) {
        enum local_hit n = lookahead_access(s, hw, r, r->addr);
        if (n == LOCAL_REORDER_HIT)
            continue;
        if (n == LOCAL_NONE) {
            undo_log_roll_back(hw->front, kept);
            return from;
        }
        kinds -= kind_count_one(r->kind);
        others++;
        cycles += local_hit_cycles(s, r, n);
        stall += local_hit_stall(s, r, n);
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
static inline size_t lookahead_block(struct sim *s, struct hw_thread *hw, const struct peet_record *record, size_t at,
                                     size_t end, struct lookahead_run *d)
{
    const struct peet_record *block = &record[at];

    if (block->kind != PEET_BLOCK || block->id >= s->blocks || !s->block[block->id].is_fixed)
        return lookahead_any_block(s, hw, record, NULL, at, end, 0, d);
    return lookahead_fixed_block(s, hw, block, &s->block[block->id], at, d);
}

/* The next blocks; false: others would see what is next, or it is no block. */
static bool lookahead_blocks(struct sim *s, struct hw_thread *hw, uint32_t *left)
{
    struct sim_thread *t = hw->context;
    const struct peet_record *r = t->batch.records;
    size_t first = t->at, at = first, next = first, end = t->batch.count;
    struct lookahead_run d = { 0 };

    while (*left > 0 && at < end && !(d.kinds & KINDS_ARE_MANY)
           && (next = lookahead_block(s, hw, r, at, end, &d)) != at) {
        at = next;
        --*left;
    }
    spend(s, hw, &d);
    t->at = at;
    return at != first && (*left == 0 || at == end || d.kinds & KINDS_ARE_MANY || r[at].kind != PEET_BLOCK);
}

/* The trip before the lead may have been such that those behind it are easy where they stay on its lines. */
static void lookahead_mark_iteration(struct sim *s, struct hw_thread *hw)
{
    const struct sim_thread *t = hw->context;

    if (!thread_is_in_loop(t) || !thread_is_steady(s, hw))
        return;
    const struct peet_repeat *n = thread_loop(t);
    for (size_t i = 0; i < n->count; i++)
        if (n->records[i].kind != PEET_BLOCK)
            signature_add(hw->front, (n->records[i].addr + n->step[i] * (t->trip - 1)) >> hw->front->shift,
                          n->records[i].kind);
}

/* What was not easy in trips. */
struct slow_hits {
    uint64_t kinds; /* references, */
    int64_t longer; /*   and how many cycles more they took than easy ones */
};

static inline void add_slow_hit(const struct sim *s, const struct peet_record *r, enum local_hit near,
                                struct slow_hits *u)
{
    u->kinds += kind_count_one(r->kind);
    u->longer += (int64_t)(local_hit_cycles(s, r, near) - local_hit_cycles(s, r, LOCAL_SILENT_UPGRADE));
}

/* A reference of a trip, if it is near. */
static inline __attribute__((always_inline)) bool lookahead_loop_access(struct sim *s, struct hw_thread *hw,
                                                                        const struct peet_record *r, uint64_t addr,
                                                                        struct slow_hits *u)
{
    enum local_hit near = lookahead_access(s, hw, r, addr);

    if (near > LOCAL_REORDER_HIT) {
        add_slow_hit(s, r, near, u);
        thread_note_slow_hit(s, hw->context, hw, r, addr);
    }
    return near != LOCAL_NONE;
}

/* The next trip, all of it, which is one block. False: others would see it. */
static bool lookahead_iteration(struct sim *s, struct hw_thread *hw, struct slow_hits *u)
{
    const struct sim_thread *t = hw->context;
    const struct peet_repeat *n = thread_loop(t);

    thread_begin_iteration(hw->context, hw);
    for (size_t i = 1; i < n->count; i++)
        if (!lookahead_loop_access(s, hw, &n->records[i], n->records[i].addr + n->step[i] * t->trip, u))
            return false;
    return true;
}

/* The next trip, behind a settled one: only what matters. */
static bool lookahead_crossings(struct sim *s, struct hw_thread *hw, struct slow_hits *u)
{
    struct sim_thread *t = hw->context;
    const struct peet_repeat *n = thread_loop(t);
    struct line_crossings *m = &t->moves;
    uint64_t kinds = line_crossings_next(m, n), done = 0;

    for (uint32_t i = 0; i < m->count; i++) {
        if (!line_crossings_touch(m, kinds, i))
            continue;
        uint32_t at = m->move[i].record;
        done++;
        if (lookahead_loop_access(s, hw, &n->records[at], n->records[at].addr + n->step[at] * t->trip, u))
            continue;
        line_crossings_undo(m, n);
        return false;
    }
    if (done <= hw->front->ways)
        t->brought = 0;
    return true;
}

/* The next trip; false: nothing has happened. */
static bool lookahead_try_iteration(struct sim *s, struct hw_thread *hw, bool moves, struct slow_hits *u)
{
    size_t kept = hw->front->kept;
    const struct slow_hits before = *u;

    if (moves ? lookahead_crossings(s, hw, u) : lookahead_iteration(s, hw, u))
        return true;
    undo_log_roll_back(hw->front, kept);
    hw->context->hard = !moves; /* or nobody knows any more */
    hw->context->brought = 0;
    *u = before;
    return false;
}

/* How many trips in which nothing moves end before a time. */
static uint64_t steady_iterations(struct sim *s, const struct hw_thread *hw, uint64_t clock, uint64_t until)
{
    uint64_t most = loop_iterations_to_crossing(s, hw), cycles = hw->context->easy.cycles;

    if (cycles == 0 || until == UINT64_MAX)
        return most;
    uint64_t fit = until > clock ? (until - clock - 1) / cycles : 0;
    return fit < most ? fit : most;
}

/* Whether a trip of which nothing is known would end before a time; u: what was not easy since trip `first`. */
static bool ends_before(const struct sim *s, const struct hw_thread *hw, uint64_t first, const struct slow_hits *u,
                        uint64_t until)
{
    const struct hit_iteration *t = &hw->context->easy;
    uint64_t slowest = t->cycles + t->references * s->config.level[1].latency;

    return until == UINT64_MAX
           || hw->clock + (uint64_t)u->longer + (hw->context->trip - first) * t->cycles + slowest < until;
}

/* Trips of one block whose lines change each time: nothing is known of the next one in any case. */
static bool lookahead_streaming_loop(struct sim *s, struct hw_thread *hw, uint64_t until, uint32_t *left,
                                     struct slow_hits *u)
{
    struct sim_thread *t = hw->context;
    const struct peet_repeat *n = thread_loop(t);
    uint64_t first = t->trip;

    thread_begin_iteration(t, hw);
    t->hard = 1;
    for (; *left > 0 && t->trip < n->times && !(u->kinds & KINDS_ARE_MANY) && ends_before(s, hw, first, u, until);
         --*left) {
        size_t kept = hw->front->kept;
        const struct slow_hits before = *u;
        for (size_t i = 1; i < n->count; i++) {
            const struct peet_record *r = &n->records[i];
            enum local_hit near = lookahead_access(s, hw, r, r->addr + n->step[i] * t->trip);
            if (near == LOCAL_NONE) {
                undo_log_roll_back(hw->front, kept);
                *u = before;
                return false;
            }
            if (near > LOCAL_REORDER_HIT)
                add_slow_hit(s, r, near, u);
        }
        t->trip++;
    }
    return true;
}

/* Trips that are settled, or of one block. */
static bool lookahead_steady_loop(struct sim *s, struct hw_thread *hw, uint64_t until, uint32_t *left,
                                  struct slow_hits *u)
{
    struct sim_thread *t = hw->context;
    uint64_t first = t->trip, times = thread_loop(t)->times;
    bool is_near = true;

    for (; is_near && *left > 0 && !(u->kinds & KINDS_ARE_MANY); --*left) {
        bool is_settled = thread_is_steady(s, hw);
        if (is_settled)
            thread_skip_iterations(
                t,
                steady_iterations(s, hw, hw->clock + (uint64_t)u->longer + (t->trip - first) * t->easy.cycles, until));
        bool moves = is_settled && !t->is_small;
        if (t->trip == times || (!moves && t->easy.blocks > 1) || !ends_before(s, hw, first, u, until))
            break;
        is_near = lookahead_try_iteration(s, hw, moves, u);
        t->trip += is_near;
    }
    return is_near;
}

/* Trips that end before a time, as long as they are settled or of one block. False: others would see the next one. */
static bool lookahead_iterations(struct sim *s, struct hw_thread *hw, uint64_t until, uint32_t *left)
{
    struct sim_thread *t = hw->context;
    uint64_t first = t->trip;
    struct slow_hits u = { 0 };
    bool is_near = t->is_streaming && t->easy.blocks == 1 ? lookahead_streaming_loop(s, hw, until, left, &u)
                                                          : lookahead_steady_loop(s, hw, until, left, &u);

    loop_account(s, hw, t->trip - first);
    hw->clock += (uint64_t)u.longer;
    hw->seen.time[u.longer < 0 ? TIME_compute : TIME_stall] +=
        (uint64_t)u.longer; /* the second cache may be the faster one */
    for (unsigned kind = PEET_LOAD; kind <= PEET_PREFETCH; kind++)
        hw->front->easy[kind] -= count_of(u.kinds, kind);
    thread_end_iteration(t);
    return is_near;
}

/* The next block of what is repeated, or trips, up to that time. False: others would see it. */
static bool lookahead_loop(struct sim *s, struct hw_thread *hw, uint64_t until, uint32_t *left)
{
    struct sim_thread *t = hw->context;
    const struct peet_repeat *n = thread_loop(t);
    size_t at = t->at;
    uint64_t trip = t->trip;

    loop_begin(s, t);
    if (t->in_trip == 0) {
        if (!lookahead_iterations(s, hw, until, left))
            return false;
        if (t->at != at || t->trip != trip)
            return true;
        thread_begin_iteration(hw->context, hw);
    }
    struct lookahead_run d = { 0 };
    size_t next = lookahead_any_block(s, hw, n->records, n->step, t->in_trip, n->count, t->trip, &d);
    if (next == t->in_trip) {
        t->hard += next == 0; /* the trip before it was not settled */
        return false;
    }
    --*left;
    spend(s, hw, &d);
    t->in_trip = next;
    if (next < n->count)
        return true;
    t->in_trip = 0;
    t->trip++;
    thread_end_iteration(t);
    return true;
}

/* The next blocks, wherever they are; where there is a time, not more than one, or trips up to it. */
static bool lookahead_next(struct sim *s, struct hw_thread *hw, uint64_t until, uint32_t *left)
{
    const struct sim_thread *t = hw->context;
    uint32_t one = 1;

    if (t->at == t->batch.count)
        return false;
    if (t->batch.records[t->at].kind == PEET_REPEAT)
        return lookahead_loop(s, hw, until, left);
    return lookahead_blocks(s, hw, until < UINT64_MAX ? &one : left);
}

static void remember(const struct sim *s, struct hw_thread *hw)
{
    const struct sim_thread *t = hw->context;
    struct lookahead *l = &hw->lead;

    l->at = t->at;
    l->in_trip = t->in_trip;
    l->trip = t->trip;
    l->hard = t->hard;
    l->brought = t->brought;
    l->changes = t->changes;
    l->clock = hw->clock;
    l->compute = hw->seen.time[TIME_compute];
    l->stall = hw->seen.time[TIME_stall];
    l->instructions = hw->seen.instructions;
    l->references = s->references;
    memcpy(l->easy, hw->front->easy, sizeof l->easy);
    memcpy(l->silent, hw->front->silent, sizeof l->silent);
    memcpy(l->behind, hw->front->behind, sizeof l->behind);
    undo_log_begin(s->memory, hw->cpu);
}

void sim_look_ahead(struct sim *s, struct hw_thread *hw)
{
    struct lookahead *l = &hw->lead;
    uint32_t left = l->most = l->most ? l->most : LOOKAHEAD_FIRST;

    if (l->rest > 0) {
        l->rest--;
        return;
    }
    remember(s, hw);
    lookahead_mark_iteration(s, hw);
    hw->context->hard += hw->context->in_trip > 0; /* lines of what it has done of this trip are not marked */
    while (left > 0 && lookahead_next(s, hw, UINT64_MAX, &left))
        ;
    l->is_on = left < l->most || hw->context->at != l->at || hw->context->trip != l->trip;
    l->failed = l->is_on ? 0 : l->failed < LOOKAHEAD_REST ? 2 * l->failed + 1 : LOOKAHEAD_REST;
    l->rest = l->failed;
    l->most = left == 0 && l->most < LOOKAHEAD_MOST ? 2 * l->most : l->most;
    l->references = s->references - l->references;
}

void lookahead_roll_back(struct sim *s, struct hw_thread *hw, uint64_t time, unsigned number)
{
    struct sim_thread *t = hw->context;
    struct lookahead *l = &hw->lead;

    l->is_on = false;
    l->most = l->most / 2 > LOOKAHEAD_LEAST ? l->most / 2 : LOOKAHEAD_LEAST;
    undo_log_roll_back(hw->front, 0);
    t->at = l->at;
    t->in_trip = l->in_trip;
    t->trip = l->trip;
    t->hard = l->hard;
    t->brought = l->brought;
    t->changes = l->changes;
    if (thread_is_in_loop(t))
        loop_refresh(s, t); /* it may have come to another one */
    hw->clock = l->clock;
    hw->seen.time[TIME_compute] = l->compute;
    hw->seen.time[TIME_stall] = l->stall;
    hw->seen.instructions = l->instructions;
    s->references -= l->references;
    memcpy(hw->front->easy, l->easy, sizeof l->easy);
    memcpy(hw->front->silent, l->silent, sizeof l->silent);
    memcpy(hw->front->behind, l->behind, sizeof l->behind);
    while (hw->clock < time || (hw->clock == time && hw->number < number)) {
        size_t at = t->at;
        uint32_t left = UINT32_MAX;
        hw->front->kept = 0; /* it is not taken back any more */
        bool goes_on = lookahead_next(s, hw, time, &left);
        assert(goes_on || at == t->batch.count); /* nothing has changed since it was done before */
        if (!goes_on)
            break;
    }
    s->is_changed = true;
}
