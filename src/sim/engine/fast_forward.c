/* SPDX-License-Identifier: MIT */
/* Strided loops, and iterations that are counted without being simulated.
 *
 * If all references of an iteration were MRU hits, and the next iterations refer to the same lines, they hit, too: each set and the TLB
 * have their lines in the order in which an iteration touches them last, and another iteration leaves them so. Remote changes since the
 * iteration began exclude this. So whole iterations are only counted.
 *
 * Other cores cannot observe such iterations, so they may be counted ahead of the global clock. If another core then changes the caches
 * here, the iterations after that step are rolled back and simulated one by one. docs/design/engine.md, "Fast-forward". */
#include <assert.h>
#include <string.h>

#include "sim/engine/loop.h"

enum { SMALL_ITERATION = 7 }; /* records */

/* All of a record except its address. */
static uint64_t record_without_addr(const struct peet_record *r)
{
    uint64_t word;

    static_assert(sizeof *r == sizeof r->addr + sizeof word, "a record is an address and a word");
    memcpy(&word, (const char *)r + sizeof r->addr, sizeof word);
    return word;
}

static bool hit_iteration_is_of(const struct hit_iteration *t, const struct peet_repeat *n)
{
    if (t->records != n->count)
        return false;
    for (size_t i = 0; i < n->count; i++)
        if (t->record[i] != record_without_addr(&n->records[i]))
            return false;
    return true;
}

/* An iteration whose references are all MRU hits. */
static void hit_iteration_find(struct sim *s, const struct peet_repeat *n, struct hit_iteration *t)
{
    *t = (struct hit_iteration){ .records = n->count <= HIT_ITERATION_RECORDS ? n->count : 0 };
    for (size_t i = 0; i < n->count; i++) {
        const struct peet_record *r = &n->records[i];
        if (i < HIT_ITERATION_RECORDS)
            t->record[i] = record_without_addr(r);
        if (r->kind == PEET_BLOCK) {
            const struct block_info *f = sim_block(s, r);
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

void loop_account(struct sim *s, struct hw_thread *hw, uint64_t iterations)
{
    const struct hit_iteration *t = &hw->thread->loop.hit;

    hw->clock += iterations * t->cycles;
    hw->account.time[TIME_compute] += iterations * t->compute;
    hw->account.time[TIME_fetch] += iterations * t->fetch;
    hw->account.instructions += iterations * t->instructions;
    s->counts.references += iterations * t->references;
    if (t->fetches)
        hierarchy_add_fetches(s->memory, hw->cpu, iterations * t->fetches);
    for (unsigned i = PEET_LOAD; i <= PEET_PREFETCH; i++)
        hw->filter->hits[i] += iterations * t->kinds[i];
}

/* Cycles for which iterations may be counted; UINT64_MAX: no limit, since they can be rolled back. */
static uint64_t loop_cycles_to_skip(const struct sim *s, const struct hw_thread *hw, uint64_t limit)
{
    uint64_t room = limit > hw->clock ? limit - hw->clock : 0;

    if (s->scheduler.count > 0 && s->config.quantum) { /* up to the end of the quantum */
        uint64_t left = hw->began + s->config.quantum > hw->clock ? hw->began + s->config.quantum - hw->clock : 0;
        return left < room ? left : room;
    }
    /* With bounded lag, steps are not in order of time, so that "the iterations after a step" is not defined and none could be rolled back. */
    return s->scheduler.count > 0 || s->config.slack > 0 || limit == 0 || s->mode.looks_ahead ? room : UINT64_MAX;
}

/* Whether all lines of the iteration that has just ended are present. */
static bool loop_has_lines(const struct sim *s, const struct hw_thread *hw)
{
    const struct sim_thread *t = hw->thread;
    const struct peet_repeat *n = thread_loop(t);

    for (size_t i = 0; i < n->count; i++)
        if (n->records[i].kind != PEET_BLOCK
            && !hierarchy_l1_has(s->memory, hw->cpu,
                                 (n->records[i].addr + n->step[i] * (t->loop.iteration - 1)) >> hw->filter->shift))
            return false;
    return true;
}

bool loop_lines_present(const struct sim *s, const struct hw_thread *hw)
{
    struct sim_thread *t = hw->thread;

    if (t->loop.hit.references <= hw->filter->ways || loop_has_lines(s, hw))
        t->loop.filled = 0;
    else
        t->loop.misses_next++;
    return t->loop.misses_next == 0;
}

/* Number of next iterations in which all references stay in their lines, at most `most`. */
static uint64_t loop_iterations_on_lines(const struct peet_repeat *n, uint64_t iteration, uint32_t line, uint64_t most)
{
    for (size_t i = 0; most > 0 && i < n->count; i++) {
        const struct peet_record *r = &n->records[i];
        if (r->kind == PEET_BLOCK)
            continue;
        uint64_t iterations =
            iterations_in_line((r->addr + n->step[i] * iteration) & (line - 1), r->size, n->step[i], line);
        most = iterations < most ? iterations : most;
    }
    return most;
}

uint64_t loop_iterations_to_crossing(struct sim *s, const struct hw_thread *hw)
{
    struct sim_thread *t = hw->thread;
    const struct peet_repeat *n = thread_loop(t);
    uint64_t most = n->times - t->loop.iteration;

    if (t->loop.is_small)
        return loop_iterations_on_lines(n, t->loop.iteration - 1, s->config.level[0].line, most);
    line_crossings_find(&t->loop.crossings, n, t->loop.iteration, hw->filter->shift, hw->filter->mask + 1, &s->arena);
    return t->loop.crossings.soonest - t->loop.iteration < most ? t->loop.crossings.soonest - t->loop.iteration : most;
}

/* Counts the iterations that follow the one that has just ended, if that was steady. */
static void loop_skip(struct sim *s, struct hw_thread *hw, uint64_t limit)
{
    struct sim_thread *t = hw->thread;
    uint64_t cycles = t->loop.hit.cycles, room = loop_cycles_to_skip(s, hw, limit), most;

    if (room == 0 || room < cycles || !s->config.level[0].bytes || s->config.core_threads > 1
        || !thread_is_steady(s, hw))
        return;
    most = loop_iterations_to_crossing(s, hw);
    if (room < UINT64_MAX
        && cycles) { /* the last one ends before the limit: steps without cycles may follow at its end */
        uint64_t fit = (room - 1) / cycles;
        most = fit < most ? fit : most;
    }
    hw->forward.iterations = room == UINT64_MAX ? most : 0;
    hw->forward.since = hw->clock;
    hw->forward.at = t->at;
    thread_skip_iterations(t, most);
    loop_account(s, hw, most);
}

/* References of the iteration from record i on; returns the record at which they end. */
static size_t loop_refer(struct sim *s, struct hw_thread *hw, struct sim_thread *t, size_t i)
{
    const struct peet_repeat *n = thread_loop(t);
    struct l1_filter *f = hw->filter;

    for (; i < n->count && peet_is_reference(&n->records[i]); i++) {
        const struct peet_record *from = &n->records[i];
        uint64_t addr = from->addr + n->step[i] * t->loop.iteration;
        if (l1_filter_hit(f, addr, from->size, from->kind)) {
            hw_thread_hit(hw, from->kind);
            s->counts.references++;
        } else {
            struct peet_record r = *from;
            r.addr = addr;
            if (!sim_refer(s, hw, &r))
                thread_note_slow_hit(s, t, hw, &r, addr);
        }
        if (s->config.by_reference)
            return i + 1;
    }
    return i;
}

/* References of an iteration after a steady one: those that stay in their lines are only counted, until a remote change. */
static void loop_refer_crossings(struct sim *s, struct hw_thread *hw)
{
    struct sim_thread *t = hw->thread;
    const struct peet_repeat *n = thread_loop(t);
    uint64_t kinds = line_crossings_next(&t->loop.crossings, n), others = 0;

    for (uint32_t i = 0; i < t->loop.crossings.count; i++) {
        struct peet_record r = n->records[t->loop.crossings.crossing[i].record];
        if (!line_crossings_touch(&t->loop.crossings, kinds, i)) {
            hw->filter->hits[r.kind]++;
            hw_thread_hit(hw, r.kind);
            continue;
        }
        r.addr += n->step[t->loop.crossings.crossing[i].record] * t->loop.iteration;
        others++;
        if (!sim_refer(s, hw, &r))
            thread_note_slow_hit(s, t, hw, &r, r.addr);
        if (t->loop.changes != hw->filter->epoch)
            kinds = UINT64_MAX;
    }
    s->counts.references += t->loop.crossings.count - others;
}

/* Whether only crossings matter: the iteration is one block, so that no other core takes a step within it, and the last one was steady. */
static bool loop_only_crosses(struct sim *s, const struct hw_thread *hw)
{
    const struct sim_thread *t = hw->thread;

    if (!s->mode.looks_ahead || t->loop.is_small || t->loop.hit.blocks != 1 || !thread_is_steady(s, hw))
        return false;
    loop_iterations_to_crossing(s, hw);
    return true;
}

/* The next block of the iteration and its references. At the end of a steady iteration, those that follow are counted. */
static void loop_step(struct sim *s, struct hw_thread *hw, uint64_t limit)
{
    struct sim_thread *t = hw->thread;
    const struct peet_repeat *n = thread_loop(t);
    bool crosses = loop_only_crosses(s, hw);

    if (t->loop.record == 0)
        thread_begin_iteration(hw->thread, hw);
    if (n->records[t->loop.record].kind == PEET_BLOCK) {
        const uint64_t *misses = &hw->counts->fetch_misses, before = *misses;
        sim_issue(s, hw, &n->records[t->loop.record++]);
        t->loop.misses_next += *misses != before;
    }
    if (crosses)
        loop_refer_crossings(s, hw);
    else if ((t->loop.record = loop_refer(s, hw, t, t->loop.record)) < n->count)
        return;
    t->loop.record = 0;
    t->loop.iteration++;
    if (t->loop.iteration < n->times)
        loop_skip(s, hw, limit);
    thread_end_iteration(t);
}

/* Whether a reference has another line in each iteration. */
static bool loop_is_streaming(const struct peet_repeat *n, uint64_t line)
{
    for (size_t i = 0; i < n->count; i++)
        if (n->step[i] + line - 1 >= 2 * line - 1)
            return true;
    return false;
}

void loop_refresh(struct sim *s, struct sim_thread *t)
{
    const struct peet_repeat *n = thread_loop(t);

    t->loop.crossings.iteration = 0;
    t->loop.is_small = n->count <= SMALL_ITERATION;
    t->loop.is_streaming = t->loop.is_small && loop_is_streaming(n, s->config.level[0].line);
    if (!hit_iteration_is_of(&t->loop.hit, n))
        hit_iteration_find(s, n, &t->loop.hit);
}

void loop_begin(struct sim *s, struct sim_thread *t)
{
    if (t->loop.record == 0 && t->loop.iteration == 0)
        loop_refresh(s, t);
}

void sim_run_loop(struct sim *s, struct hw_thread *hw, uint64_t limit)
{
    struct sim_thread *t = hw->thread;
    size_t at = t->at;

    loop_begin(s, t);
    loop_step(s, hw, limit);
    bool looks_ahead = s->mode.looks_ahead
                       && hw->lookahead.rest == 0; /* as fast for iterations as counting them, also before the limit */
    while (t->at == at && !looks_ahead && sim_may_continue(s, hw, limit)) {
        hw->forward.iterations = 0;
        s->step.now = hw->clock;
        loop_step(s, hw, limit);
    }
    if (t->at < t->batch.count && sim_may_look_ahead(s, hw, looks_ahead ? 0 : limit))
        sim_look_ahead(s, hw);
}

void sim_roll_back(struct sim *s, struct hw_thread *hw, uint64_t time, unsigned number)
{
    struct sim_thread *t = hw->thread;
    uint64_t iterations = hw->forward.iterations, before = time > hw->forward.since ? time - hw->forward.since - 1 : 0;

    if (hw->lookahead.is_on)
        lookahead_roll_back(s, hw, time, number);
    hw->forward.iterations = 0;
    if (iterations == 0 || t->loop.hit.cycles == 0)
        return;
    uint64_t remaining = before / t->loop.hit.cycles;
    if (remaining >= iterations)
        return;
    t->loop.crossings.iteration = 0;
    if (t->at != hw->forward.at) { /* it had counted the loop to its end */
        t->at = hw->forward.at;
        t->loop.iteration = thread_loop(t)->times;
    }
    t->loop.iteration += remaining - iterations;
    loop_account(s, hw, remaining - iterations);
    s->order.needs_sort = true;
    while (hw->clock < time || (hw->clock == time && hw->number < number))
        loop_step(s, hw, 0);
}
