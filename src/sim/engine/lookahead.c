/* SPDX-License-Identifier: MIT */
/* Blocks ahead of the global clock.
 *
 * While private caches answer all references of a core (sim/memory/core_caches.h), other cores cannot observe it. So it need not wait for
 * cores with a smaller clock: it continues until a reference needs more than that. Steps of other cores matter only if they change a line
 * to which it referred, or that was evicted: then it is rolled back, and repeats what precedes that step. docs/design/engine.md,
 * "Lookahead". */
#include <assert.h>
#include <string.h>

#include "sim/engine/checkpoint.h"
#include "sim/engine/loop.h"

enum { LOOKAHEAD_FIRST = 64, LOOKAHEAD_LEAST = 4, LOOKAHEAD_MOST = 4096, LOOKAHEAD_REST = 32 };

/* MRU hits are counted by kind in one word (kind_count_one), which stays in a register. */
static const uint64_t KINDS_ARE_MANY = 0x8000800080008000; /* a count has no room for KIND_COUNT_MAX more */

static inline uint64_t kind_count(uint64_t kinds, unsigned kind)
{
    return kinds >> KIND_COUNT_BITS * (kind - PEET_LOAD) & UINT16_MAX;
}

/* Blocks whose references were core-local. */
struct lookahead_run {
    uint64_t kinds;        /* MRU hits, as a word of counts */
    uint64_t references;   /* all of them */
    uint64_t others;       /* references that were no MRU hits */
    uint64_t hits, stall;  /* cycles of the others: as first-level hits, and beyond */
    uint64_t cost;         /* cycles of instructions */
    uint64_t instructions; /* executed */
};

static void lookahead_account(struct sim *s, struct hw_thread *hw, const struct lookahead_run *d)
{
    uint64_t mru_hits = d->references - d->others - kind_count(d->kinds, PEET_PREFETCH);
    uint64_t compute = d->cost + d->hits + hw->filter->latency * mru_hits;

    hw->clock += compute + d->stall;
    hw->account.time[TIME_compute] += compute;
    hw->account.time[TIME_stall] += d->stall;
    hw->account.instructions += d->instructions;
    s->counts.references += d->references;
    for (unsigned kind = PEET_LOAD; kind <= PEET_PREFETCH; kind++)
        hw->filter->hits[kind] += kind_count(d->kinds, kind);
}

/* A reference, if it is core-local; LOCAL_NONE: it is not, and was not made. */
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
    return access_stall(&s->config, r->kind, local_hit_cycles(s, r, hit));
}

/* The block at record `from` and its references, if all are core-local; step: of a strided loop, else NULL. Returns the record after them,
 * or `from`: nothing was done. */
static inline __attribute__((always_inline)) size_t lookahead_any_block(struct sim *s, struct hw_thread *hw,
                                                                        const struct peet_record *record,
                                                                        const uint64_t *step, size_t from, size_t end,
                                                                        uint64_t iteration, struct lookahead_run *d)
{
    size_t undo_length = hw->filter->undo_length, i = from + 1;
    uint64_t kinds = 0, cycles = 0, stall = 0, others = 0;
    const struct peet_record *block = &record[from];

    if (block->kind != PEET_BLOCK || block->id >= s->blocks.count || !s->blocks.info[block->id].has_fixed_cost)
        return from;
    for (; i < end && peet_is_reference(&record[i]); i++) {
        const struct peet_record *r = &record[i];
        uint64_t addr = r->addr + (step ? step[i] * iteration : 0);
        enum local_hit n = lookahead_access(s, hw, r, addr);
        if (n == LOCAL_NONE) {
            undo_log_roll_back(hw->filter, undo_length);
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
    assert(i - from
           <= KIND_COUNT_MAX); /* a block has fewer operands, and a reference longer than a line is not core-local */
    d->kinds += kinds;
    d->references += i - from - 1;
    d->others += others;
    d->hits += cycles - stall;
    d->stall += stall;
    d->cost += s->blocks.info[block->id].cost;
    d->instructions += block->size;
    return i;
}

/* The block at record `from`, which has fixed references. Returns as lookahead_any_block. */
static inline __attribute__((always_inline)) size_t lookahead_fixed_block(struct sim *s, struct hw_thread *hw,
                                                                          const struct peet_record *block,
                                                                          const struct block_info *f, size_t from,
                                                                          struct lookahead_run *d)
{
    const struct peet_record *r = block + 1, *end = r + f->references;
    size_t undo_length = hw->filter->undo_length;
    uint64_t kinds = f->kinds, others = 0, cycles = 0, stall = 0;

    for (; r < end; r++) {
        enum local_hit n = lookahead_access(s, hw, r, r->addr);
        if (n == LOCAL_REORDER_HIT)
            continue;
        if (n == LOCAL_NONE) {
            undo_log_roll_back(hw->filter, undo_length);
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

/* The block at record `at`. Returns as lookahead_any_block. */
static inline size_t lookahead_block(struct sim *s, struct hw_thread *hw, const struct peet_record *record, size_t at,
                                     size_t end, struct lookahead_run *d)
{
    const struct peet_record *block = &record[at];

    if (block->kind != PEET_BLOCK || block->id >= s->blocks.count || !s->blocks.info[block->id].has_fixed_references)
        return lookahead_any_block(s, hw, record, NULL, at, end, 0, d);
    return lookahead_fixed_block(s, hw, block, &s->blocks.info[block->id], at, d);
}

/* The next blocks of the batch; false: the next one is not core-local, or is no block. */
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

/* Iterations of the lookahead may be counted because the one before it was steady: its lines belong to the signature. */
static void lookahead_sign_iteration(struct sim *s, struct hw_thread *hw)
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

/* Core-local references of iterations that were no MRU hits. */
struct slow_hits {
    uint64_t kinds; /* as a word of counts */
    int64_t longer; /* cycles beyond those of as many MRU hits */
};

static inline void slow_hits_add(const struct sim *s, const struct peet_record *r, enum local_hit hit,
                                 struct slow_hits *u)
{
    u->kinds += kind_count_one(r->kind);
    u->longer += (int64_t)(local_hit_cycles(s, r, hit) - local_hit_cycles(s, r, LOCAL_SILENT_UPGRADE));
}

/* A reference of an iteration; false: it is not core-local, and was not made. */
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

/* The next iteration, which is one block; false: a reference is not core-local. */
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

/* The next iteration, after a steady one: only references in sets with crossings. False: one is not core-local. */
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

/* The next iteration; false: it is not core-local, and was undone. */
static bool lookahead_try_iteration(struct sim *s, struct hw_thread *hw, bool crosses_only, struct slow_hits *u)
{
    size_t undo_length = hw->filter->undo_length;
    const struct slow_hits before = *u;

    if (crosses_only ? lookahead_crossings(s, hw, u) : lookahead_iteration(s, hw, u))
        return true;
    undo_log_roll_back(hw->filter, undo_length);
    hw->thread->loop.misses_next = !crosses_only; /* else the iteration before is no longer known to be steady */
    hw->thread->loop.filled = 0;
    *u = before;
    return false;
}

/* Number of iterations without crossings that end before cycle `until`. */
static uint64_t lookahead_steady_iterations(struct sim *s, const struct hw_thread *hw, uint64_t clock, uint64_t until)
{
    uint64_t most = loop_iterations_to_crossing(s, hw), cycles = hw->thread->loop.hit.cycles;

    if (cycles == 0 || until == UINT64_MAX)
        return most;
    uint64_t fit = until > clock ? (until - clock - 1) / cycles : 0;
    return fit < most ? fit : most;
}

/* Whether an iteration would end before cycle `until` even if all its references took longest; u: slow hits since iteration `first`. */
static bool lookahead_ends_before(const struct sim *s, const struct hw_thread *hw, uint64_t first,
                                  const struct slow_hits *u, uint64_t until)
{
    const struct hit_iteration *t = &hw->thread->loop.hit;
    uint64_t slowest = t->cycles + t->references * s->config.level[1].latency;

    return until == UINT64_MAX
           || hw->clock + (uint64_t)u->longer + (hw->thread->loop.iteration - first) * t->cycles + slowest < until;
}

/* Iterations of one block that is streaming: none of them is steady. */
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
        size_t undo_length = hw->filter->undo_length;
        const struct slow_hits before = *u;
        for (size_t i = 1; i < n->count; i++) {
            const struct peet_record *r = &n->records[i];
            enum local_hit hit = lookahead_access(s, hw, r, r->addr + n->step[i] * t->loop.iteration);
            if (hit == LOCAL_NONE) {
                undo_log_roll_back(hw->filter, undo_length);
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

/* Iterations that are steady, or one block. */
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

/* Iterations that end before cycle `until`, while they are steady or one block. False: the next one is not core-local. */
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
        (uint64_t)u.longer; /* negative if the second level is the faster one */
    for (unsigned kind = PEET_LOAD; kind <= PEET_PREFETCH; kind++)
        hw->filter->hits[kind] -= kind_count(u.kinds, kind);
    thread_end_iteration(t);
    return is_local;
}

/* The next block of a loop, or iterations up to cycle `until`. False: it is not core-local. */
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
        t->loop.misses_next += next == 0; /* the iteration before is not steady */
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

/* The next blocks: up to *left; with a cycle `until`, one block, or iterations up to it. False: the next one is not core-local. */
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
    checkpoint_take(&hw->lookahead.start, hw);
    hw->lookahead.references = s->counts.references;
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
    lookahead_sign_iteration(s, hw);
    hw->thread->loop.misses_next +=
        hw->thread->loop.record > 0; /* lines of the iteration so far are not in the signature */
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
    checkpoint_restore(&l->start, hw);
    if (thread_is_in_loop(t))
        loop_refresh(s, t); /* the lookahead may have reached another loop */
    s->counts.references -= l->references;
    while (hw->clock < time || (hw->clock == time && hw->number < number)) {
        size_t at = t->at;
        uint32_t left = UINT32_MAX;
        hw->filter->undo_length = 0; /* this is final: the log starts again */
        bool goes_on = lookahead_next(s, hw, time, &left);
        assert(
            goes_on
            || at
                   == t->batch
                          .count); /* the caches are as they were in the lookahead, so the block is core-local again */
        if (!goes_on)
            break;
    }
    s->order.needs_sort = true;
}
