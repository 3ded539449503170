/* SPDX-License-Identifier: MIT */
/* Blocks before their time.
 *
 * A place whose references are all answered by its own caches (sim/memory/core_caches.h) does nothing that others can see.
 * So it need not wait for those that are behind it: it goes on until something else comes. What others do meanwhile matters only if
 * they change a line to which it referred, or one that made room for another: it is then taken back to where it was, and comes again as far as
 * it is before them. Everything else may as well happen in this order: lines that are not its own do not change the order of those that are. */
#include <assert.h>
#include <string.h>

#include "sim/engine/loop.h"

enum { LOOKAHEAD_FIRST = 64, LOOKAHEAD_LEAST = 4, LOOKAHEAD_MOST = 4096, LOOKAHEAD_REST = 32 };

/* Easy references are counted by kind in one word, which stays in a register. */
static const uint64_t KINDS_ARE_MANY = 0x8000800080008000; /* LEAD_KIND_MOST more would be too many */

static inline uint64_t kind_count(uint64_t kinds, unsigned kind)
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

static void lookahead_account(struct sim *s, struct hw_thread *hw, const struct lookahead_run *d)
{
    uint64_t easy = d->references - d->others - kind_count(d->kinds, PEET_PREFETCH);
    uint64_t compute = d->cost + d->hits + hw->filter->latency * easy;

    hw->clock += compute + d->stall;
    hw->account.time[TIME_compute] += compute;
    hw->account.time[TIME_stall] += d->stall;
    hw->account.instructions += d->instructions;
    s->counts.references += d->references;
    for (unsigned kind = PEET_LOAD; kind <= PEET_PREFETCH; kind++)
        hw->filter->easy[kind] += kind_count(d->kinds, kind);
}

/* A reference, if it is near. */
static inline __attribute__((always_inline)) enum local_hit lookahead_access(struct sim *s, struct hw_thread *hw,
                                                                             const struct peet_record *r, uint64_t addr)
{
    if (!l1_filter_has(hw->filter, addr, r->size, r->kind))
        return undo_log_access(s->memory, hw->filter, addr, r->size, (enum peet_kind)r->kind);
    signature_add(hw->filter, addr >> hw->filter->shift, r->kind);
    return LOCAL_REORDER_HIT;
}

static inline uint64_t local_hit_cycles(const struct sim *s, const struct peet_record *r, enum local_hit hit)
{
    return r->kind == PEET_PREFETCH ? 0 : s->config.level[hit == LOCAL_L2_HIT].latency;
}

static inline uint64_t local_hit_stall(const struct sim *s, const struct peet_record *r, enum local_hit hit)
{
    return sim_beyond(&s->config, r->kind, local_hit_cycles(s, r, hit));
}

/* A block of these records and its references in that iteration (without steps there is one only), if all of these are near; else nothing
 * has happened. Returns where the next one is. */
static inline __attribute__((always_inline)) size_t lookahead_any_block(struct sim *s, struct hw_thread *hw,
                                                                        const struct peet_record *record,
                                                                        const uint64_t *step, size_t from, size_t end,
                                                                        uint64_t iteration, struct lookahead_run *d)
{
    size_t undo_mark = hw->filter->kept, i = from + 1;
    uint64_t kinds = 0, cycles = 0, stall = 0, others = 0;
    const struct peet_record *block = &record[from];

    if (block->kind != PEET_BLOCK || block->id >= s->blocks.count || !s->blocks.info[block->id].has_fixed_cost)
        return from;
    for (; i < end && peet_is_reference(&record[i]); i++) {
        const struct peet_record *r = &record[i];
        uint64_t addr = r->addr + (step ? step[i] * iteration : 0);
        enum local_hit n = lookahead_access(s, hw, r, addr);
        if (n == LOCAL_NONE) {
            undo_log_roll_back(hw->filter, undo_mark);
            return from;
        }
        if (n == LOCAL_REORDER_HIT) {
            kinds += kind_count_one(r->kind);
        } else {
            others++;
            cycles += local_hit_cycles(s, r, n);
            stall += local_hit_stall(s, r, n);
            if (step)
                thread_note_slow_hit(s, hw->thread, hw, r, addr);
        }
    }
    assert(i - from <= KIND_COUNT_MAX); /* a block has fewer operands, and what is longer than a line is not near */
    d->kinds += kinds;
    d->references += i - from - 1;
    d->others += others;
    d->hits += cycles - stall;
    d->stall += stall;
    d->cost += s->blocks.info[block->id].cost;
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
    size_t undo_mark = hw->filter->kept;
    uint64_t kinds = f->kinds, others = 0, cycles = 0, stall = 0;

    for (; r < end; r++) {
        enum local_hit n = lookahead_access(s, hw, r, r->addr);
        if (n == LOCAL_REORDER_HIT)
            continue;
        if (n == LOCAL_NONE) {
            undo_log_roll_back(hw->filter, undo_mark);
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

    if (block->kind != PEET_BLOCK || block->id >= s->blocks.count || !s->blocks.info[block->id].has_fixed_references)
        return lookahead_any_block(s, hw, record, NULL, at, end, 0, d);
    return lookahead_fixed_block(s, hw, block, &s->blocks.info[block->id], at, d);
}

/* The next blocks; false: others would see what is next, or it is no block. */
static bool lookahead_blocks(struct sim *s, struct hw_thread *hw, uint32_t *left)
{
    struct sim_thread *t = hw->thread;
    const struct peet_record *r = t->batch.records;
    size_t first = t->at, at = first, next = first, end = t->batch.count;
    struct lookahead_run d = { 0 };

    while (*left > 0 && at < end && !(d.kinds & KINDS_ARE_MANY)
           && (next = lookahead_block(s, hw, r, at, end, &d)) != at) {
        at = next;
        --*left;
    }
    lookahead_account(s, hw, &d);
    t->at = at;
    return at != first && (*left == 0 || at == end || d.kinds & KINDS_ARE_MANY || r[at].kind != PEET_BLOCK);
}

/* The iteration before the lead may have been such that those behind it are easy where they stay on its lines. */
static void lookahead_mark_iteration(struct sim *s, struct hw_thread *hw)
{
    const struct sim_thread *t = hw->thread;

    if (!thread_is_in_loop(t) || !thread_is_steady(s, hw))
        return;
    const struct peet_repeat *n = thread_loop(t);
    for (size_t i = 0; i < n->count; i++)
        if (n->records[i].kind != PEET_BLOCK)
            signature_add(hw->filter, (n->records[i].addr + n->step[i] * (t->loop.iteration - 1)) >> hw->filter->shift,
                          n->records[i].kind);
}

/* What was not easy in iterations. */
struct slow_hits {
    uint64_t kinds; /* references, */
    int64_t longer; /*   and how many cycles more they took than easy ones */
};

static inline void slow_hits_add(const struct sim *s, const struct peet_record *r, enum local_hit hit,
                                 struct slow_hits *u)
{
    u->kinds += kind_count_one(r->kind);
    u->longer += (int64_t)(local_hit_cycles(s, r, hit) - local_hit_cycles(s, r, LOCAL_SILENT_UPGRADE));
}

/* A reference of a iteration, if it is near. */
static inline __attribute__((always_inline)) bool lookahead_loop_access(struct sim *s, struct hw_thread *hw,
                                                                        const struct peet_record *r, uint64_t addr,
                                                                        struct slow_hits *u)
{
    enum local_hit hit = lookahead_access(s, hw, r, addr);

    if (hit > LOCAL_REORDER_HIT) {
        slow_hits_add(s, r, hit, u);
        thread_note_slow_hit(s, hw->thread, hw, r, addr);
    }
    return hit != LOCAL_NONE;
}

/* The next iteration, all of it, which is one block. False: others would see it. */
static bool lookahead_iteration(struct sim *s, struct hw_thread *hw, struct slow_hits *u)
{
    const struct sim_thread *t = hw->thread;
    const struct peet_repeat *n = thread_loop(t);

    thread_begin_iteration(hw->thread, hw);
    for (size_t i = 1; i < n->count; i++)
        if (!lookahead_loop_access(s, hw, &n->records[i], n->records[i].addr + n->step[i] * t->loop.iteration, u))
            return false;
    return true;
}

/* The next iteration, behind a settled one: only what matters. */
static bool lookahead_crossings(struct sim *s, struct hw_thread *hw, struct slow_hits *u)
{
    struct sim_thread *t = hw->thread;
    const struct peet_repeat *n = thread_loop(t);
    struct line_crossings *m = &t->loop.crossings;
    uint64_t kinds = line_crossings_next(m, n), done = 0;

    for (uint32_t i = 0; i < m->count; i++) {
        if (!line_crossings_touch(m, kinds, i))
            continue;
        uint32_t at = m->crossing[i].record;
        done++;
        if (lookahead_loop_access(s, hw, &n->records[at], n->records[at].addr + n->step[at] * t->loop.iteration, u))
            continue;
        line_crossings_undo(m, n);
        return false;
    }
    if (done <= hw->filter->ways)
        t->loop.filled = 0;
    return true;
}

/* The next iteration; false: nothing has happened. */
static bool lookahead_try_iteration(struct sim *s, struct hw_thread *hw, bool crosses_only, struct slow_hits *u)
{
    size_t undo_mark = hw->filter->kept;
    const struct slow_hits before = *u;

    if (crosses_only ? lookahead_crossings(s, hw, u) : lookahead_iteration(s, hw, u))
        return true;
    undo_log_roll_back(hw->filter, undo_mark);
    hw->thread->loop.misses_next = !crosses_only; /* or nobody knows any more */
    hw->thread->loop.filled = 0;
    *u = before;
    return false;
}

/* How many iterations in which nothing moves end before a time. */
static uint64_t lookahead_steady_iterations(struct sim *s, const struct hw_thread *hw, uint64_t clock, uint64_t until)
{
    uint64_t most = loop_iterations_to_crossing(s, hw), cycles = hw->thread->loop.hit.cycles;

    if (cycles == 0 || until == UINT64_MAX)
        return most;
    uint64_t fit = until > clock ? (until - clock - 1) / cycles : 0;
    return fit < most ? fit : most;
}

/* Whether a iteration of which nothing is known would end before a time; u: what was not easy since iteration `first`. */
static bool lookahead_ends_before(const struct sim *s, const struct hw_thread *hw, uint64_t first,
                                  const struct slow_hits *u, uint64_t until)
{
    const struct hit_iteration *t = &hw->thread->loop.hit;
    uint64_t slowest = t->cycles + t->references * s->config.level[1].latency;

    return until == UINT64_MAX
           || hw->clock + (uint64_t)u->longer + (hw->thread->loop.iteration - first) * t->cycles + slowest < until;
}

/* Trips of one block whose lines change each time: nothing is known of the next one in any case. */
static bool lookahead_streaming_loop(struct sim *s, struct hw_thread *hw, uint64_t until, uint32_t *left,
                                     struct slow_hits *u)
{
    struct sim_thread *t = hw->thread;
    const struct peet_repeat *n = thread_loop(t);
    uint64_t first = t->loop.iteration;

    thread_begin_iteration(t, hw);
    t->loop.misses_next = 1;
    for (; *left > 0 && t->loop.iteration < n->times && !(u->kinds & KINDS_ARE_MANY)
           && lookahead_ends_before(s, hw, first, u, until);
         --*left) {
        size_t undo_mark = hw->filter->kept;
        const struct slow_hits before = *u;
        for (size_t i = 1; i < n->count; i++) {
            const struct peet_record *r = &n->records[i];
            enum local_hit hit = lookahead_access(s, hw, r, r->addr + n->step[i] * t->loop.iteration);
            if (hit == LOCAL_NONE) {
                undo_log_roll_back(hw->filter, undo_mark);
                *u = before;
                return false;
            }
            if (hit > LOCAL_REORDER_HIT)
                slow_hits_add(s, r, hit, u);
        }
        t->loop.iteration++;
    }
    return true;
}

/* Trips that are settled, or of one block. */
static bool lookahead_steady_loop(struct sim *s, struct hw_thread *hw, uint64_t until, uint32_t *left,
                                  struct slow_hits *u)
{
    struct sim_thread *t = hw->thread;
    uint64_t first = t->loop.iteration, times = thread_loop(t)->times;
    bool is_local = true;

    for (; is_local && *left > 0 && !(u->kinds & KINDS_ARE_MANY); --*left) {
        bool is_steady = thread_is_steady(s, hw);
        if (is_steady)
            thread_skip_iterations(
                t,
                lookahead_steady_iterations(
                    s, hw, hw->clock + (uint64_t)u->longer + (t->loop.iteration - first) * t->loop.hit.cycles, until));
        bool crosses_only = is_steady && !t->loop.is_small;
        if (t->loop.iteration == times || (!crosses_only && t->loop.hit.blocks > 1)
            || !lookahead_ends_before(s, hw, first, u, until))
            break;
        is_local = lookahead_try_iteration(s, hw, crosses_only, u);
        t->loop.iteration += is_local;
    }
    return is_local;
}

/* Trips that end before a time, as long as they are settled or of one block. False: others would see the next one. */
static bool lookahead_iterations(struct sim *s, struct hw_thread *hw, uint64_t until, uint32_t *left)
{
    struct sim_thread *t = hw->thread;
    uint64_t first = t->loop.iteration;
    struct slow_hits u = { 0 };
    bool is_local = t->loop.is_streaming && t->loop.hit.blocks == 1 ? lookahead_streaming_loop(s, hw, until, left, &u)
                                                                    : lookahead_steady_loop(s, hw, until, left, &u);

    loop_account(s, hw, t->loop.iteration - first);
    hw->clock += (uint64_t)u.longer;
    hw->account.time[u.longer < 0 ? TIME_compute : TIME_stall] +=
        (uint64_t)u.longer; /* the second cache may be the faster one */
    for (unsigned kind = PEET_LOAD; kind <= PEET_PREFETCH; kind++)
        hw->filter->easy[kind] -= kind_count(u.kinds, kind);
    thread_end_iteration(t);
    return is_local;
}

/* The next block of what is repeated, or iterations, up to that time. False: others would see it. */
static bool lookahead_loop(struct sim *s, struct hw_thread *hw, uint64_t until, uint32_t *left)
{
    struct sim_thread *t = hw->thread;
    const struct peet_repeat *n = thread_loop(t);
    size_t at = t->at;
    uint64_t iteration = t->loop.iteration;

    loop_begin(s, t);
    if (t->loop.record == 0) {
        if (!lookahead_iterations(s, hw, until, left))
            return false;
        if (t->at != at || t->loop.iteration != iteration)
            return true;
        thread_begin_iteration(hw->thread, hw);
    }
    struct lookahead_run d = { 0 };
    size_t next = lookahead_any_block(s, hw, n->records, n->step, t->loop.record, n->count, t->loop.iteration, &d);
    if (next == t->loop.record) {
        t->loop.misses_next += next == 0; /* the iteration before it was not settled */
        return false;
    }
    --*left;
    lookahead_account(s, hw, &d);
    t->loop.record = next;
    if (next < n->count)
        return true;
    t->loop.record = 0;
    t->loop.iteration++;
    thread_end_iteration(t);
    return true;
}

/* The next blocks, wherever they are; where there is a time, not more than one, or iterations up to it. */
static bool lookahead_next(struct sim *s, struct hw_thread *hw, uint64_t until, uint32_t *left)
{
    const struct sim_thread *t = hw->thread;
    uint32_t one = 1;

    if (t->at == t->batch.count)
        return false;
    if (t->batch.records[t->at].kind == PEET_REPEAT)
        return lookahead_loop(s, hw, until, left);
    return lookahead_blocks(s, hw, until < UINT64_MAX ? &one : left);
}

static void lookahead_begin(const struct sim *s, struct hw_thread *hw)
{
    const struct sim_thread *t = hw->thread;
    struct lookahead *l = &hw->lookahead;

    l->start.at = t->at;
    l->start.loop_record = t->loop.record;
    l->start.loop_iteration = t->loop.iteration;
    l->start.misses_next = t->loop.misses_next;
    l->start.filled = t->loop.filled;
    l->start.changes = t->loop.changes;
    l->start.clock = hw->clock;
    l->start.compute = hw->account.time[TIME_compute];
    l->start.stall = hw->account.time[TIME_stall];
    l->start.instructions = hw->account.instructions;
    l->references = s->counts.references;
    memcpy(l->start.mru_hits, hw->filter->easy, sizeof l->start.mru_hits);
    memcpy(l->start.silent_upgrades, hw->filter->silent, sizeof l->start.silent_upgrades);
    memcpy(l->start.l2_hits, hw->filter->behind, sizeof l->start.l2_hits);
    undo_log_begin(s->memory, hw->cpu);
}

void sim_look_ahead(struct sim *s, struct hw_thread *hw)
{
    struct lookahead *l = &hw->lookahead;
    uint32_t left = l->most = l->most ? l->most : LOOKAHEAD_FIRST;

    if (l->rest > 0) {
        l->rest--;
        return;
    }
    lookahead_begin(s, hw);
    lookahead_mark_iteration(s, hw);
    hw->thread->loop.misses_next +=
        hw->thread->loop.record > 0; /* lines of what it has done of this iteration are not marked */
    while (left > 0 && lookahead_next(s, hw, UINT64_MAX, &left))
        ;
    l->is_on = left < l->most || hw->thread->at != l->start.at || hw->thread->loop.iteration != l->start.loop_iteration;
    l->failed = l->is_on ? 0 : l->failed < LOOKAHEAD_REST ? 2 * l->failed + 1 : LOOKAHEAD_REST;
    l->rest = l->failed;
    l->most = left == 0 && l->most < LOOKAHEAD_MOST ? 2 * l->most : l->most;
    l->references = s->counts.references - l->references;
}

void lookahead_roll_back(struct sim *s, struct hw_thread *hw, uint64_t time, unsigned number)
{
    struct sim_thread *t = hw->thread;
    struct lookahead *l = &hw->lookahead;

    l->is_on = false;
    l->most = l->most / 2 > LOOKAHEAD_LEAST ? l->most / 2 : LOOKAHEAD_LEAST;
    undo_log_roll_back(hw->filter, 0);
    t->at = l->start.at;
    t->loop.record = l->start.loop_record;
    t->loop.iteration = l->start.loop_iteration;
    t->loop.misses_next = l->start.misses_next;
    t->loop.filled = l->start.filled;
    t->loop.changes = l->start.changes;
    if (thread_is_in_loop(t))
        loop_refresh(s, t); /* it may have come to another one */
    hw->clock = l->start.clock;
    hw->account.time[TIME_compute] = l->start.compute;
    hw->account.time[TIME_stall] = l->start.stall;
    hw->account.instructions = l->start.instructions;
    s->counts.references -= l->references;
    memcpy(hw->filter->easy, l->start.mru_hits, sizeof l->start.mru_hits);
    memcpy(hw->filter->silent, l->start.silent_upgrades, sizeof l->start.silent_upgrades);
    memcpy(hw->filter->behind, l->start.l2_hits, sizeof l->start.l2_hits);
    while (hw->clock < time || (hw->clock == time && hw->number < number)) {
        size_t at = t->at;
        uint32_t left = UINT32_MAX;
        hw->filter->kept = 0; /* it is not taken back any more */
        bool goes_on = lookahead_next(s, hw, time, &left);
        assert(goes_on || at == t->batch.count); /* nothing has changed since it was done before */
        if (!goes_on)
            break;
    }
    s->order.is_stale = true;
}
