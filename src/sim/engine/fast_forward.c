/* SPDX-License-Identifier: MIT */
/* What a program repeats, and trips in which nothing can happen.
 *
 * If all references of a trip were easy (sim/memory/hierarchy.h), and those of the next trips are to
 * the same lines, these are easy, too: each set then has its lines in the order in which a trip touches them last, and another trip
 * leaves them so; the same holds for a TLB. No other processor has changed anything here since the trip began. So whole trips are only
 * counted.
 *
 * Nobody sees such trips, so they can also be counted before their time, while others are still behind. Should one of these then
 * change what is in the caches here, those that come after it are taken back, and done one by one. */
#include <assert.h>
#include <string.h>

#include "sim/engine/state.h"

enum { SMALL_ITERATION = 7 }; /* records */

/* A record but for its address. */
static uint64_t what(const struct peet_record *r)
{
    uint64_t word;

    static_assert(sizeof *r == sizeof r->addr + sizeof word, "a record is an address and a word");
    memcpy(&word, (const char *)r + sizeof r->addr, sizeof word);
    return word;
}

static bool is_iteration_of(const struct hit_iteration *t, const struct peet_repeat *n)
{
    if (t->records != n->count)
        return false;
    for (size_t i = 0; i < n->count; i++)
        if (t->record[i] != what(&n->records[i]))
            return false;
    return true;
}

/* What one trip is if it is easy. */
static void find_iteration(struct sim *s, const struct peet_repeat *n, struct hit_iteration *t)
{
    *t = (struct hit_iteration){ .records = n->count <= HIT_ITERATION_RECORDS ? n->count : 0 };
    for (size_t i = 0; i < n->count; i++) {
        const struct peet_record *r = &n->records[i];
        if (i < HIT_ITERATION_RECORDS)
            t->record[i] = what(r);
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

/* So many trips that are easy; also less than none. */
void loop_account(struct sim *s, struct hw_thread *hw, uint64_t trips)
{
    const struct hit_iteration *t = &hw->context->easy;

    hw->clock += trips * t->cycles;
    hw->seen.time[TIME_compute] += trips * t->compute;
    hw->seen.time[TIME_fetch] += trips * t->fetch;
    hw->seen.instructions += trips * t->instructions;
    s->references += trips * t->references;
    if (t->fetches)
        hierarchy_add_fetches(s->memory, hw->cpu, trips * t->fetches);
    for (unsigned i = PEET_LOAD; i <= PEET_PREFETCH; i++)
        hw->front->easy[i] += trips * t->kinds[i];
}

/* How many cycles there are for trips that are only counted. */
static uint64_t cycles_for_iterations(const struct sim *s, const struct hw_thread *hw, uint64_t limit)
{
    uint64_t room = limit > hw->clock ? limit - hw->clock : 0;

    if (s->scheduler.count > 0 && s->config.quantum) { /* somebody waits for the place */
        uint64_t left = hw->began + s->config.quantum > hw->clock ? hw->began + s->config.quantum - hw->clock : 0;
        return left < room ? left : room;
    }
    /* With slack the order is not the one of time, and what comes behind something cannot be told. */
    return s->scheduler.count > 0 || s->config.slack > 0 || limit == 0 || s->leads ? room : UINT64_MAX;
}

/* Whether all lines of the trip that is just over are there. */
static bool has_lines(const struct sim *s, const struct hw_thread *hw)
{
    const struct sim_thread *t = hw->context;
    const struct peet_repeat *n = thread_loop(t);

    for (size_t i = 0; i < n->count; i++)
        if (n->records[i].kind != PEET_BLOCK
            && !hierarchy_l1_has(s->memory, hw->cpu,
                                 (n->records[i].addr + n->step[i] * (t->trip - 1)) >> hw->front->shift))
            return false;
    return true;
}

bool loop_lines_present(const struct sim *s, const struct hw_thread *hw)
{
    struct sim_thread *t = hw->context;

    if (t->easy.references <= hw->front->ways || has_lines(s, hw))
        t->brought = 0;
    else
        t->hard++;
    return t->hard == 0;
}

/* For how many more trips all references stay in their lines, at most. */
static uint64_t iterations_on_lines(const struct peet_repeat *n, uint64_t trip, uint32_t line, uint64_t most)
{
    for (size_t i = 0; most > 0 && i < n->count; i++) {
        const struct peet_record *r = &n->records[i];
        if (r->kind == PEET_BLOCK)
            continue;
        uint64_t trips = iterations_in_line((r->addr + n->step[i] * trip) & (line - 1), r->size, n->step[i], line);
        most = trips < most ? trips : most;
    }
    return most;
}

uint64_t loop_iterations_to_crossing(struct sim *s, const struct hw_thread *hw)
{
    struct sim_thread *t = hw->context;
    const struct peet_repeat *n = thread_loop(t);
    uint64_t most = n->times - t->trip;

    if (t->is_small)
        return iterations_on_lines(n, t->trip - 1, s->config.level[0].line, most);
    line_crossings_find(&t->moves, n, t->trip, hw->front->shift, hw->front->mask + 1, &s->arena);
    return t->moves.soonest - t->trip < most ? t->moves.soonest - t->trip : most;
}

/* Trips behind the one that is just over, which was easy. */
static void skip(struct sim *s, struct hw_thread *hw, uint64_t limit)
{
    struct sim_thread *t = hw->context;
    uint64_t cycles = t->easy.cycles, room = cycles_for_iterations(s, hw, limit), most;

    if (room == 0 || room < cycles || !s->config.level[0].bytes || s->config.contexts > 1 || !thread_is_steady(s, hw))
        return;
    most = loop_iterations_to_crossing(s, hw);
    if (room < UINT64_MAX && cycles) { /* the last one ends before: steps of no cycles may be behind the end */
        uint64_t fit = (room - 1) / cycles;
        most = fit < most ? fit : most;
    }
    hw->ahead = room == UINT64_MAX ? most : 0;
    hw->ahead_from = hw->clock;
    hw->ahead_at = t->at;
    thread_skip_iterations(t, most);
    loop_account(s, hw, most);
}

/* The references behind a block, from record i on; returns where they end. Those that are not easy are counted. */
static size_t refer(struct sim *s, struct hw_thread *hw, struct sim_thread *t, size_t i)
{
    const struct peet_repeat *n = thread_loop(t);
    struct l1_filter *f = hw->front;

    for (; i < n->count && peet_is_reference(&n->records[i]); i++) {
        const struct peet_record *from = &n->records[i];
        uint64_t addr = from->addr + n->step[i] * t->trip;
        if (l1_filter_hit(f, addr, from->size, from->kind)) {
            hw_thread_hit(hw, from->kind);
            s->references++;
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

/* The same behind a trip that would have been easy once more: those that are where they were are only counted, unless others
 * change something meanwhile. */
static void refer_crossings(struct sim *s, struct hw_thread *hw)
{
    struct sim_thread *t = hw->context;
    const struct peet_repeat *n = thread_loop(t);
    uint64_t kinds = line_crossings_next(&t->moves, n), others = 0;

    for (uint32_t i = 0; i < t->moves.count; i++) {
        struct peet_record r = n->records[t->moves.move[i].record];
        if (!line_crossings_touch(&t->moves, kinds, i)) {
            hw->front->easy[r.kind]++;
            hw_thread_hit(hw, r.kind);
            continue;
        }
        r.addr += n->step[t->moves.move[i].record] * t->trip;
        others++;
        if (!sim_refer(s, hw, &r))
            thread_note_slow_hit(s, t, hw, &r, r.addr);
        if (t->changes != hw->front->changes)
            kinds = UINT64_MAX;
    }
    s->references += t->moves.count - others;
}

/* The trip is one block, so that nobody comes between its references, and behind one that would have been easy once more. */
static bool crosses_only(struct sim *s, const struct hw_thread *hw)
{
    const struct sim_thread *t = hw->context;

    if (!s->leads || t->is_small || t->easy.blocks != 1 || !thread_is_steady(s, hw))
        return false;
    loop_iterations_to_crossing(s, hw);
    return true;
}

/* The next block of the trip, and its references. If that was all of it, and nothing new: trips behind it. */
static void step(struct sim *s, struct hw_thread *hw, uint64_t limit)
{
    struct sim_thread *t = hw->context;
    const struct peet_repeat *n = thread_loop(t);
    bool moved = crosses_only(s, hw);

    if (t->in_trip == 0)
        thread_begin_iteration(hw->context, hw);
    if (n->records[t->in_trip].kind == PEET_BLOCK) {
        const uint64_t *misses = &hw->counts->fetch_misses, before = *misses;
        sim_issue(s, hw, &n->records[t->in_trip++]);
        t->hard += *misses != before;
    }
    if (moved)
        refer_crossings(s, hw);
    else if ((t->in_trip = refer(s, hw, t, t->in_trip)) < n->count)
        return;
    t->in_trip = 0;
    t->trip++;
    if (t->trip < n->times)
        skip(s, hw, limit);
    thread_end_iteration(t);
}

/* Whether some reference is to another line in each trip. */
static bool is_streaming(const struct peet_repeat *n, uint64_t line)
{
    for (size_t i = 0; i < n->count; i++)
        if (n->step[i] + line - 1 >= 2 * line - 1)
            return true;
    return false;
}

void loop_refresh(struct sim *s, struct sim_thread *t)
{
    const struct peet_repeat *n = thread_loop(t);

    t->moves.trip = 0;
    t->is_small = n->count <= SMALL_ITERATION;
    t->is_streaming = t->is_small && is_streaming(n, s->config.level[0].line);
    if (!is_iteration_of(&t->easy, n))
        find_iteration(s, n, &t->easy);
}

void loop_begin(struct sim *s, struct sim_thread *t)
{
    if (t->in_trip == 0 && t->trip == 0)
        loop_refresh(s, t);
}

void sim_run_loop(struct sim *s, struct hw_thread *hw, uint64_t limit)
{
    struct sim_thread *t = hw->context;
    size_t at = t->at;

    loop_begin(s, t);
    step(s, hw, limit);
    bool leads = s->leads && hw->lead.rest == 0; /* which is as fast for trips, also before the limit */
    while (t->at == at && !leads && sim_may_continue(s, hw, limit)) {
        hw->ahead = 0;
        s->now = hw->clock;
        step(s, hw, limit);
    }
    if (t->at < t->batch.count && sim_may_look_ahead(s, hw, leads ? 0 : limit))
        sim_look_ahead(s, hw);
}

void sim_roll_back(struct sim *s, struct hw_thread *hw, uint64_t time, unsigned number)
{
    struct sim_thread *t = hw->context;
    uint64_t trips = hw->ahead, before = time > hw->ahead_from ? time - hw->ahead_from - 1 : 0;

    if (hw->lead.is_on)
        lookahead_roll_back(s, hw, time, number);
    hw->ahead = 0;
    if (trips == 0 || t->easy.cycles == 0)
        return;
    uint64_t kept = before / t->easy.cycles;
    if (kept >= trips)
        return;
    t->moves.trip = 0;
    if (t->at != hw->ahead_at) { /* it had come to the end of what is repeated */
        t->at = hw->ahead_at;
        t->trip = thread_loop(t)->times;
    }
    t->trip += kept - trips;
    loop_account(s, hw, kept - trips);
    s->is_changed = true;
    while (hw->clock < time || (hw->clock == time && hw->number < number))
        step(s, hw, 0);
}
