/* SPDX-License-Identifier: MIT */
/* Executes threads record by record, on the caches of the hierarchy. */
#include <assert.h>

#include "base/mem.h"
#include "base/err.h"
#include "sim/engine/executor.h"
#include "sim/engine/ordered.h"
#include "sim/spec/speculation.h"

/* Cycles that a thread is ahead of the records of a shared access, at most. */
enum { ACCESS_CYCLES = 4 };

/* ---- memory ---- */

/* Pre-snoop hook: another core is about to change the caches of this one. */
static void sim_before_snoop(void *self, unsigned cpu, uint64_t line, bool reads)
{
    struct sim *s = self;

    if (s->config.core_threads > 1)
        return;
    struct hw_thread *hw = &s->hw_thread[cpu];
    if (hw->forward.iterations || (hw->lookahead.is_on && signature_has(s->memory, cpu, line, reads)))
        sim_roll_back(s, hw, s->step.now, s->step.number);
}

static int records_begin(struct sim *s, struct peet_err *err)
{
    if (s->observer && config_has_store_buffers(&s->config))
        return err_set(err, PEET_ERR_USAGE,
                       "order.model: %s has store buffers, and this command looks at each reference: sc was expected",
                       s->config.order.model->name);
    int r = hierarchy_new(&s->config, &s->memory, err);

    if (r == 0)
        r = store_buffers_init(s, err);
    if (r == 0 && s->spaces.count > 1)
        r = hierarchy_set_programs(s->memory, s->spaces.count, err);
    if (r < 0)
        return r;
    hierarchy_set_snoop_hook(s->memory, sim_before_snoop, s);
    if (s->observer && s->observer->tag)
        hierarchy_keep_removals(s->memory);
    for (uint32_t i = 0; i < s->hw_threads; i++) {
        s->hw_thread[i].filter = hierarchy_filter(s->memory, s->hw_thread[i].cpu);
        s->hw_thread[i].counts = hierarchy_counts(s->memory, s->hw_thread[i].cpu);
    }
    if (s->sync.speculation && (r = speculation_begin(s, err)) < 0)
        return r;
    s->mode.looks_ahead &= !s->buffers.buffer && !s->sync.speculation && !s->source->stops_at_accesses
                           && s->config.core_threads == 1 && s->config.slack == 0 && !s->config.by_reference
                           && !s->mode.translates && !s->config.instructions.bytes && hierarchy_can_undo(s->memory);
    s->mode.keeps_recent = s->mode.looks_ahead && hierarchy_l1_is_lru(s->memory);
    return 0;
}

static void records_flush(struct sim *s, struct sim_result *ret)
{
    if (!s->memory)
        return;
    hierarchy_flush_counts(s->memory);
    ret->fabric = *hierarchy_fabric(s->memory);
    for (unsigned i = 0; i < s->config.cpus; i++)
        ret->memory[i] = *hierarchy_counts(s->memory, i);
    store_buffers_result(s, ret);
}

static void records_release(struct sim *s)
{
    hierarchy_free(s->memory);
    store_buffers_release(&s->buffers);
}

/* ---- blocks ---- */

/* The code ranges of a block, and the number of their lines. */
static void block_find_ranges(struct sim *s, const struct peet_block *b, struct block_info *f)
{
    uint64_t line = s->config.instructions.line;

    f->range = arena_alloc(&s->arena, b->insns * sizeof *f->range);
    assert(f->range);
    for (uint32_t i = 0; i < b->insns; i++) {
        struct code_range *last = f->ranges ? &f->range[f->ranges - 1] : NULL;
        if (last && b->insn[i].addr == last->addr + last->bytes)
            last->bytes += b->insn[i].length;
        else
            f->range[f->ranges++] = (struct code_range){ b->insn[i].addr, b->insn[i].length };
    }
    for (uint32_t i = 0; i < f->ranges; i++)
        f->fetches += (f->range[i].addr + f->range[i].bytes - 1) / line - f->range[i].addr / line + 1;
}

/* The references of a block, and whether each execution makes all of them. */
static void block_find_references(const struct peet_block *b, struct block_info *f)
{
    f->has_fixed_references = f->has_fixed_cost && b->operands <= KIND_COUNT_MAX;
    f->references = b->operands;
    for (uint32_t i = 0; i < b->operands; i++) {
        f->has_fixed_references &= !b->operand[i].size_src && !b->operand[i].predicate;
        f->kinds += kind_count_one(b->operand[i].kind);
    }
}

const struct block_info *sim_block(struct sim *s, const struct peet_record *block)
{
    s->blocks.info = mem_reach(s->blocks.info, &s->blocks.count, block->id,
                               sizeof *s->blocks.info); /* a live program can have new blocks at any time */
    struct block_info *f = &s->blocks.info[block->id];
    if (f->is_known)
        return f;
    const struct peet_block *b = peet_trace_block(s->source->trace, block->id);
    for (uint32_t i = 0; i < b->insns; i++)
        f->cost += s->config.cost[b->insn[i].class];
    if (s->config.instructions.bytes)
        block_find_ranges(s, b, f);
    f->is_known = true;
    f->has_fixed_cost = f->ranges == 0 && s->config.core_threads == 1 && !s->observer;
    block_find_references(b, f);
    if (s->buffers.buffer)
        ordered_find_insns(s, b, f);
    return f;
}

/* ---- references ---- */

/* An access to bytes of one line, or any bytes if there are no caches. Cycles beyond a hit in the first level are stall time, but for those
 * in which the fabric was busy. */
static inline __attribute__((always_inline)) struct access_outcome sim_access_line(struct sim *s, struct hw_thread *hw,
                                                                                   uint64_t addr, uint64_t size,
                                                                                   unsigned kind, uint32_t tag)
{
    const struct memory_access a = { .addr = addr,
                                     .now = hw->clock,
                                     .size = (uint32_t)size,
                                     .tag = tag,
                                     .kind = (uint8_t)kind,
                                     .core = (uint8_t)hw->cpu };
    struct access_outcome o;
    hierarchy_access_into(s->memory, &a, &o);
    uint64_t stall = access_stall(&s->config, kind, o.latency), bus = o.contention < stall ? o.contention : stall;

    hw->clock += o.latency;
    hw->account.time[TIME_compute] += o.latency - stall;
    hw->account.time[TIME_bus] += bus;
    hw->account.time[TIME_stall] += stall - bus;
    return o;
}

uint64_t sim_translate(struct sim *s, unsigned cpu, uint32_t space, uint64_t addr)
{
    if (s->remap)
        addr = remap_addr(s->remap, s->spaces.process[space], addr);
    uint64_t at = spaces_addr(&s->spaces, space, addr);
    hierarchy_filter(s->memory, cpu)->page_offset = spaces_tag(&s->spaces, space, addr) - at;
    return at;
}

/* The machine's address of byte `done` of a reference whose first byte is at `addr`. A page may be anywhere; a line is within one page. */
static uint64_t sim_part_addr(struct sim *s, const struct hw_thread *hw, const struct peet_record *r, uint64_t addr,
                              uint64_t done)
{
    return done && s->spaces.by_frame ? sim_translate(s, hw->cpu, hw->thread->space, r->addr + done) : addr + done;
}

/* Number of bytes of a reference in the line of an address; left: bytes from that address on. */
static uint64_t sim_bytes_in_line(const struct sim *s, uint64_t addr, uint64_t left)
{
    uint64_t length = s->config.level[0].bytes ? s->config.level[0].line : UINT64_C(1) << 63;
    uint64_t here = length - (addr & (length - 1));

    return here < left ? here : left;
}

/* A reference of the observed thread, before its first line. */
static struct sim_reference sim_observed_reference(const struct sim *s, const struct hw_thread *hw,
                                                   const struct peet_record *r)
{
    bool is_library = r->id == SIM_NO_INSN;
    struct sim_reference ref = { .thread = hw->thread->sched.number,
                                 .cpu = hw->cpu,
                                 .insn = r->id,
                                 .site = is_library ? s->step.site : 0,
                                 .addr = r->addr,
                                 .data = r->addr,
                                 .now = hw->clock,
                                 .own_line = sim_line(s, r->addr),
                                 .is_first = true,
                                 .kind = r->kind,
                                 .outcome.cause = MISS_KINDS };

    ref.issue = is_library ? (uint64_t)((r->size + 15u) / 16) * s->config.cost[PEET_CL_plain] : 0;
    ref.tag = s->observer->tag ? s->observer->tag(s->observer->self, &ref) : 0;
    return ref;
}

/* Executes a reference line by line, or as a whole if there are no caches, and reports each part to the observer. */
static __attribute__((noinline)) void sim_observed_access(struct sim *s, struct hw_thread *hw,
                                                          const struct peet_record *r, uint64_t addr)
{
    struct sim_reference ref = sim_observed_reference(s, hw, r);

    for (uint64_t done = 0; ref.is_first || (done < r->size && !hw->is_undone); ref.is_first = false, ref.issue = 0) {
        uint64_t here = sim_bytes_in_line(s, addr + done, r->size - done), part = sim_part_addr(s, hw, r, addr, done);
        ref.line = sim_line(s, part);
        ref.own_line = sim_line(s, r->addr + done);
        ref.now = hw->clock;
        ref.outcome = sim_access_line(s, hw, part, here, r->kind, ref.tag);
        s->observer->reference(s->observer->self, &ref);
        done += here;
    }
}

/* Counts the cycles of a first-level hit of library code, and reports it. */
static __attribute__((noinline)) void sim_observed_library_hit(struct sim *s, struct hw_thread *hw,
                                                               const struct peet_record *r, uint64_t addr)
{
    struct sim_reference ref = sim_observed_reference(s, hw, r);

    ref.line = sim_line(s, addr);
    hw_thread_hit(hw, r->kind);
    ref.outcome.latency = hw->clock - ref.now;
    s->observer->reference(s->observer->self, &ref);
}

/* Executes a reference of an observed run. An instruction's hit that changes at most the LRU order goes to `hit`, all else to `reference`. */
static inline void sim_refer_observed(struct sim *s, struct hw_thread *hw, const struct peet_record *r, uint64_t addr)
{
    const struct sim_observer *o = s->observer;

    if (!l1_filter_hit_tlb(hw->filter, addr, r->size, r->kind)
        && !hierarchy_reorder_hit(s->memory, hw->cpu, addr, r->size, (enum peet_kind)r->kind)) {
        sim_observed_access(s, hw, r, addr);
        return;
    }
    l1_filter_use_shadow(hw->filter, addr);
    if (r->id == SIM_NO_INSN) {
        sim_observed_library_hit(s, hw, r, addr);
        return;
    }
    hw_thread_hit(hw, r->kind);
    o->hit(o->self, hw->thread->sched.number, hw->cpu, r, addr);
}

bool sim_refer(struct sim *s, struct hw_thread *hw, const struct peet_record *r)
{
    uint64_t addr = s->mode.translates ? sim_translate(s, hw->cpu, hw->thread->space, r->addr) : r->addr;

    s->counts.references++;
    if (s->observer) {
        sim_refer_observed(s, hw, r, addr);
        return false; /* only the fast-forward asks, which observed runs do not have */
    }
    if (l1_filter_hit_tlb(hw->filter, addr, r->size, r->kind)) {
        hw_thread_hit(hw, r->kind);
        return true;
    }
    uint64_t reorder_hits = hw->filter->reorder_hits, done = 0;
    do {
        uint64_t here = sim_bytes_in_line(s, addr + done, r->size - done);
        sim_access_line(s, hw, sim_part_addr(s, hw, r, addr, done), here, r->kind, 0);
        done += here;
    } while (done < r->size && !hw->is_undone);
    return hw->filter->reorder_hits != reorder_hits && hw->filter->tlb_hit_states[PEET_LOAD]
           && (addr & (hw->filter->line - 1)) + r->size <= hw->filter->line;
}

/* ---- locks and barriers ---- */

/* Physical address of the word at a program's address. A word that no program has (sync_word) is at the same address. */
static uint64_t records_sync_addr(struct sim *s, unsigned cpu, uint64_t addr, uint32_t space)
{
    if (s->mode.translates && !sync_is_word(addr))
        return sim_translate(s, cpu, space, spaces_untag(&s->spaces, addr, &space));
    if (s->mode.translates)
        hierarchy_filter(s->memory, cpu)->page_offset = 0;
    return addr;
}

static uint64_t records_sync_access(struct sim *s, const struct sim_thread *t, uint64_t object,
                                    const struct peet_record *r, uint64_t now, struct sync_time *ret)
{
    const struct sim_observer *o = s->observer;
    unsigned cpu = t->waiter.cpu;
    uint32_t space;
    uint64_t data = spaces_untag(&s->spaces, object, &space);

    /* the access changes the caches of the core, possibly for a thread that does not run there any more */
    if (s->config.core_threads == 1)
        sim_roll_back(s, &s->hw_thread[cpu], s->step.now, s->step.number);
    hierarchy_filter(s->memory, cpu)->epoch++;
    uint64_t addr = records_sync_addr(s, cpu, r->addr, space);
    struct sim_reference ref = { .thread = t->sched.number,
                                 .cpu = cpu,
                                 .insn = SIM_NO_INSN,
                                 .site = t->site,
                                 .addr = addr,
                                 .data = data,
                                 .now = now,
                                 .line = sim_line(s, addr),
                                 .own_line = sim_line(s, data),
                                 .is_first = true,
                                 .is_sync = true,
                                 .kind = r->kind,
                                 .issue = t->hw ? s->config.cost[PEET_CL_plain] : 0 };
    ref.tag = o && o->tag ? o->tag(o->self, &ref) : 0;
    ref.outcome = hierarchy_access(
        s->memory,
        &(struct memory_access){
            .addr = addr, .now = now, .size = r->size, .tag = ref.tag, .kind = r->kind, .core = (uint8_t)cpu });
    uint64_t cycles = ref.outcome.latency, stall = access_stall(&s->config, r->kind, cycles);
    uint64_t bus = ref.outcome.contention < stall ? ref.outcome.contention : stall;
    *ret = (struct sync_time){ .compute = cycles - stall, .stall = stall - bus, .bus = bus };
    ref.outcome.latency = t->hw ? cycles : 0;
    if (o)
        o->reference(o->self, &ref);
    return cycles;
}

/* ---- steps ---- */

void sim_issue_other(struct sim *s, struct hw_thread *hw, const struct peet_record *block)
{
    const struct block_info *f = sim_block(s, block);

    hw_thread_issue(s, hw, f->cost);
    hw->account.instructions += block->size;
    uint64_t issued = hw->clock;
    for (uint32_t i = 0; i < f->ranges; i++) {
        uint64_t addr = spaces_tag(&s->spaces, hw->thread->space, f->range[i].addr);
        uint64_t cycles = hierarchy_fetch(s->memory, hw->cpu, addr, f->range[i].bytes, hw->clock);
        hw_thread_spend(hw, hw->clock + cycles, TIME_fetch);
    }
    if (s->observer)
        s->observer->block(s->observer->self, hw->thread->sched.number, block, f->cost, hw->clock - issued);
}

/* References up to another record or the end; with turn = "reference", one. Returns the next record. */
static const struct peet_record *sim_refer_all(struct sim *s, struct hw_thread *hw, const struct peet_record *r,
                                               const struct peet_record *end)
{
    const struct peet_record *first = r;
    uint64_t others = 0;

    if (s->observer && !s->mode.translates && !s->config.by_reference) {
        for (; r < end && peet_is_reference(r) && !hw->is_undone; r++)
            sim_refer_observed(s, hw, r, r->addr);
        s->counts.references += (uint64_t)(r - first);
        return r;
    }
    if (s->mode.translates || s->config.by_reference) {
        for (; r < end && peet_is_reference(r); r++) {
            sim_refer(s, hw, r);
            if (s->config.by_reference || hw->is_undone)
                return r + 1;
        }
        return r;
    }
    for (; r < end && peet_is_reference(r) && !hw->is_undone; r++)
        if (l1_filter_hit(hw->filter, r->addr, r->size, r->kind)) {
            hw_thread_hit(hw, r->kind);
        } else {
            sim_refer(s, hw, r);
            others++;
        }
    s->counts.references += (uint64_t)(r - first) - others;
    return r;
}

/* Blocks and their references, from the next record on, until another hardware thread has the least local time. */
static void sim_execute(struct sim *s, struct hw_thread *hw, struct sim_thread *t, uint64_t limit)
{
    const struct peet_record *r = t->batch.records + t->at, *end = t->batch.records + t->batch.count;

    for (;;) {
        if (r->kind == PEET_BLOCK)
            sim_issue(s, hw, r++);
        r = sim_refer_all(s, hw, r, end);
        if (r >= end || r->kind > PEET_PREFETCH || !sim_may_continue(s, hw, limit))
            break;
        s->step.now = hw->clock; /* the first step began with the call, possibly before a lock was taken */
    }
    t->at = (size_t)(r - t->batch.records);
    if (r < end && sim_may_look_ahead(s, hw, limit))
        sim_look_ahead(s, hw);
}

static void records_library_access(struct sim *s, struct hw_thread *hw, const struct peet_record *r)
{
    if (s->buffers.buffer)
        ordered_refer(s, hw, r, 0);
    else
        sim_refer(s, hw, r);
}

/* The thread is at a shared access, whose record comes later: other threads run up to the same cycle. */
static void records_pause(struct sim *s, struct hw_thread *hw, struct sim_thread *t)
{
    uint64_t cycles = 1 + store_buffers_random(s) % ACCESS_CYCLES;

    t->advanced += cycles;
    hw->clock += cycles;
    hw->account.time[TIME_compute] += cycles;
}

/* Takes cycles that were spent at accesses off the step that began at cycle `begin`. */
static void records_take_off(struct hw_thread *hw, struct sim_thread *t, uint64_t begin)
{
    uint64_t cycles = hw->clock - begin < t->advanced ? hw->clock - begin : t->advanced;

    t->advanced -= cycles;
    hw->clock -= cycles;
    hw->account.time[TIME_compute] -= cycles;
}

static int records_advance(struct sim *s, struct hw_thread *hw, uint64_t limit, struct peet_err *err)
{
    struct sim_thread *t = hw->thread;

    while (t->at == t->batch.count) {
        int answer = s->sync.speculation ? speculation_next(s, hw, err)
                                         : source_next(s->source, t->sched.number, t->reply, &t->batch, err);
        t->at = 0;
        if (!hw->runs) /* its speculative records have ended */
            return 0;
        if (answer == 0 && s->buffers.buffer)
            ordered_event(s, hw, t, NULL);
        int r = sim_take_answer(s, hw, answer, err);
        if (r <= 0)
            return r;
        if (t->batch.count == 0 && s->source->stops_at_accesses) {
            records_pause(s, hw, t);
            return 0;
        }
    }
    uint64_t begin = hw->clock;
    const struct peet_record *r = &t->batch.records[t->at];
    if (r->kind == PEET_EVENT) {
        if (s->sync.speculation && speculation_holds(s, hw, &t->batch.events[r->id]))
            return 0;
        t->at++;
        if (s->buffers.buffer)
            ordered_event(s, hw, t, &t->batch.events[r->id]);
        sim_reach_event(s, hw, &t->batch.events[r->id]);
        return 0;
    }
    assert(!s->sync.speculation || r->kind != PEET_REPEAT);
    if (r->kind == PEET_REPEAT)
        sim_run_loop(s, hw, limit);
    else if (s->buffers.buffer)
        ordered_execute(s, hw, t, limit);
    else
        sim_execute(s, hw, t, limit);
    if (t->advanced)
        records_take_off(hw, t, begin);
    sim_check_quantum(s, hw);
    return 0;
}

static int records_step(struct sim *s, struct hw_thread *hw, uint64_t limit, struct peet_err *err)
{
    return s->sync.speculation ? speculation_step(s, hw, limit, records_advance, err)
                               : records_advance(s, hw, limit, err);
}

static void records_event(struct sim *s, uint32_t thread, const struct peet_event *e)
{
    if (s->observer)
        s->observer->event(s->observer->self, thread, e);
}

static uint32_t records_path_counts(struct sim *s, uint32_t thread)
{
    (void)s, (void)thread;
    return UINT32_MAX;
}

static uint64_t records_clock(const struct sim *s)
{
    (void)s;
    return 0;
}

/* Hardware threads that looked ahead do not reach what they have done there. */
static int records_end(struct sim *s, struct peet_err *err)
{
    (void)err;
    for (uint32_t i = 0; i < s->hw_threads; i++)
        sim_roll_back(s, &s->hw_thread[i], s->step.now, s->step.number);
    return 0;
}

const struct executor executor_records = { .name = "records",
                                           .progress_steps = 1 << 12,
                                           .begin = records_begin,
                                           .step = records_step,
                                           .library_access = records_library_access,
                                           .sync_access = records_sync_access,
                                           .event = records_event,
                                           .path_counts = records_path_counts,
                                           .clock = records_clock,
                                           .end = records_end,
                                           .flush = records_flush,
                                           .release = records_release };
