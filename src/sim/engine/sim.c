/* SPDX-License-Identifier: MIT */
/* The event loop: the hardware thread with the least local time takes the next step. */
#include "sim/engine/sim.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "map/source/source_sample.h"
#include "sim/engine/simulation.h"

/* Steps between two looks at progress and `stop`: of a batch of records, or of up to WORDS_CYCLES of event words. */
enum { PROGRESS_STEPS = 1 << 12, WORDS_STEPS = 1 << 4, WORDS_CYCLES = 1 << 26 };

/* ---- making one ---- */

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

/* Threads that the source has created since the last call. */
static int sim_add_threads(struct sim *s, struct peet_err *err)
{
    for (; s->threads < s->source->threads; s->threads++) {
        uint32_t i = s->threads;
        const struct source_thread *from = &s->source->thread[i];
        uint32_t *at = map_put(&s->thread_by_id, from->id, 0);
        if (!at)
            return err_set(err, PEET_ERR_MEMORY, "no memory for %" PRIu32 " contexts", i);
        *at = i + 1;
        int r = sim_add_program(s, from->process, &s->thread[i].space, err);
        if (r < 0)
            return r;
        s->thread[i].sched = (struct sched_thread){ .number = i, .group = from->process, .last = -1 };
        s->thread[i].waiter = (struct sync_waiter){ .number = i, .priority = i };
    }
    return 0;
}

static int sim_make_threads(struct sim *s, struct peet_err *err)
{
    s->thread = calloc(s->source->max_threads + 1, sizeof *s->thread);
    s->wakeups.thread = calloc(s->source->max_threads + 1, sizeof *s->wakeups.thread);
    s->thread_by_id.value_size = sizeof(uint32_t);
    if (!s->thread || !s->wakeups.thread)
        return err_set(err, PEET_ERR_MEMORY, "no memory for %" PRIu32 " contexts", s->source->max_threads);
    return sim_add_threads(s, err);
}

static int sim_make_hw_threads(struct sim *s, struct peet_err *err)
{
    s->hw_threads = s->config.cpus * s->config.core_threads;
    s->hw_thread = calloc(s->hw_threads, sizeof *s->hw_thread);
    s->order.hw = calloc(s->hw_threads, sizeof *s->order.hw);
    s->issue_at = calloc(s->config.cpus, sizeof *s->issue_at);
    if (!s->hw_thread || !s->order.hw || !s->issue_at)
        return err_set(err, PEET_ERR_MEMORY, "no memory for %" PRIu32 " processors", s->hw_threads);
    for (uint32_t i = 0; i < s->hw_threads; i++) {
        s->hw_thread[i].number = i;
        s->hw_thread[i].cpu = i / s->config.core_threads;
        s->hw_thread[i].program = NO_PROGRAM;
        s->hw_thread[i].filter = hierarchy_filter(s->memory, s->hw_thread[i].cpu);
        s->hw_thread[i].counts = hierarchy_counts(s->memory, s->hw_thread[i].cpu);
    }
    return 0;
}

int sim_new(const struct machine_config *config, struct source *source, struct sim **ret, struct peet_err *err)
{
    struct sim *s = calloc(1, sizeof *s);
    int r;

    if (!s)
        return err_set(err, PEET_ERR_MEMORY, "no memory for a simulation");
    s->config = *config;
    s->source = source;
    sim_init_sync_host(s);
    s->random = config->seed * 2 + 1;
    s->sync.object.value_size = sizeof(struct sync_object *);
    s->sync.name.value_size = sizeof(uint64_t);
    spaces_init(&s->spaces, source->trace);
    s->spaces.by_frame &= !source_samples_sets(source);
    if ((r = hierarchy_new(config, &s->memory, err)) < 0 || (r = sim_make_threads(s, err)) < 0
        || (r = sim_make_hw_threads(s, err)) < 0) {
        sim_free(s);
        return r;
    }
    if (s->spaces.count > 1 && (r = hierarchy_set_programs(s->memory, s->spaces.count, err)) < 0) {
        sim_free(s);
        return r;
    }
    hierarchy_set_snoop_hook(s->memory, sim_before_snoop, s);
    sim_set_lookahead(s, true);
    sched_init(&s->scheduler, config->scheduler,
               &(struct sched_config){ .hw_threads = s->hw_threads, .quantum = config->quantum, .seed = config->seed });
    *ret = s;
    return 0;
}

void sim_set_remap(struct sim *s, struct remap *r)
{
    s->remap = r;
    sim_set_lookahead(s, true);
}

void sim_set_lookahead(struct sim *s, bool enabled)
{
    s->mode.translates = s->remap || spaces_translate(&s->spaces);
    s->mode.looks_ahead = enabled && s->config.core_threads == 1 && s->config.slack == 0 && !s->config.by_reference
                          && !s->mode.translates && !s->config.instructions.bytes && hierarchy_can_undo(s->memory);
    s->mode.keeps_recent = s->mode.looks_ahead && hierarchy_l1_is_lru(s->memory);
}

void sim_set_observer(struct sim *s, const struct sim_observer *o)
{
    s->observer = o;
    if (o->tag)
        hierarchy_keep_removals(s->memory);
    sim_set_lookahead(s, false);
}

bool sim_set_block_observer(struct sim *s, const struct block_observer *w, struct peet_err *err)
{
    return !s->mode.translates && s->source->kind->words && blocks_can_run(&s->config)
           && blocks_new(&s->config, s->source->trace, w, &s->block_exec, err) == 0;
}

void sim_set_waiter(struct sim *s, void (*waiter)(void *self, const struct sim_wait *w), void *self)
{
    s->hooks.waiter = waiter;
    s->hooks.waiter_self = self;
}

void sim_set_listener(struct sim *s, const struct sim_listener *l)
{
    s->hooks.listener = l;
}

void sim_set_stop(struct sim *s, const volatile uint32_t *stop)
{
    s->hooks.stop = stop;
}

void sim_free(struct sim *s)
{
    if (!s)
        return;
    hierarchy_free(s->memory);
    blocks_free(s->block_exec);
    sim_loop_release(s);
    map_release(&s->sync.object);
    map_release(&s->sync.name);
    map_release(&s->thread_by_id);
    arena_release(&s->arena);
    spaces_release(&s->spaces);
    free(s->program);
    free(s->thread);
    free(s->wakeups.thread);
    free(s->hw_thread);
    free(s->order.hw);
    free(s->issue_at);
    free(s->blocks.info);
    free(s);
}

/* ---- one step ---- */

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
    return f;
}

/* The hardware threads of a core issue in turn: one waits until the core is free. */
static void hw_thread_issue(struct sim *s, struct hw_thread *hw, uint64_t cycles)
{
    uint64_t *free_at = &s->issue_at[hw->cpu];

    if (s->config.core_threads > 1) {
        hw_thread_spend(hw, *free_at, TIME_issue);
        *free_at = hw->clock + cycles;
    }
    hw->clock += cycles;
    hw->account.time[TIME_compute] += cycles;
}

/* An access to bytes of one line, or any bytes if there are no caches. Cycles beyond a hit in the first level are stall time, but for those
 * in which the fabric was busy. */
static struct access_outcome sim_access_line(struct sim *s, struct hw_thread *hw, uint64_t addr, uint64_t size,
                                             unsigned kind, uint32_t tag)
{
    const struct memory_access a = { .addr = addr,
                                     .now = hw->clock,
                                     .size = (uint32_t)size,
                                     .tag = tag,
                                     .kind = (uint8_t)kind,
                                     .core = (uint8_t)hw->cpu };
    struct access_outcome o = hierarchy_access(s->memory, &a);
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
                                 .site = is_library ? s->site : 0,
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

/* Reports a reference line by line, if there are caches. */
static __attribute__((noinline)) void sim_observed_access(struct sim *s, struct hw_thread *hw,
                                                          const struct peet_record *r, uint64_t addr)
{
    struct sim_reference ref = sim_observed_reference(s, hw, r);

    for (uint64_t done = 0; ref.is_first || done < r->size; ref.is_first = false, ref.issue = 0) {
        uint64_t here = sim_bytes_in_line(s, addr + done, r->size - done), part = sim_part_addr(s, hw, r, addr, done);
        ref.line = sim_line(s, part);
        ref.own_line = sim_line(s, r->addr + done);
        ref.now = hw->clock;
        ref.outcome = sim_access_line(s, hw, part, here, r->kind, ref.tag);
        s->observer->reference(s->observer->self, &ref);
        done += here;
    }
}

/* Reports a hit of library code. */
static __attribute__((noinline)) void sim_observed_library_hit(struct sim *s, struct hw_thread *hw,
                                                               const struct peet_record *r, uint64_t addr)
{
    struct sim_reference ref = sim_observed_reference(s, hw, r);

    ref.line = sim_line(s, addr);
    hw_thread_hit(hw, r->kind);
    ref.outcome.latency = hw->clock - ref.now;
    s->observer->reference(s->observer->self, &ref);
}

/* Any reference. */
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
    if (s->block_exec) {
        struct source_words *w = &hw->thread->words;
        w->used += w->turn && w->is_on;
        w->passed += w->turn && !w->is_on;
        if (w->turn && !w->is_on)
            return false;
        blocks_clock(s->block_exec)->clock = hw->clock;
        hw->clock += blocks_libcall_access(s->block_exec, hw->thread->sched.number, r, s->site,
                                           (uint64_t)((r->size + 15u) / 16) * s->config.cost[PEET_CL_plain]);
        return false;
    }
    if (s->observer) {
        sim_refer_observed(s, hw, r, addr);
        return false; /* only the fast-forward asks, which observed runs do not have */
    }
    if (l1_filter_hit_tlb(hw->filter, addr, r->size, r->kind)) {
        hw_thread_hit(hw, r->kind);
        return true;
    }
    uint64_t smooth = hw->filter->smooth, done = 0;
    do {
        uint64_t here = sim_bytes_in_line(s, addr + done, r->size - done);
        sim_access_line(s, hw, sim_part_addr(s, hw, r, addr, done), here, r->kind, 0);
        done += here;
    } while (done < r->size);
    return hw->filter->smooth != smooth && hw->filter->calm[PEET_LOAD]
           && (addr & (hw->filter->line - 1)) + r->size <= hw->filter->line;
}

void sim_range(struct sim *s, struct hw_thread *hw, uint64_t addr, uint64_t size, enum peet_kind kind)
{
    uint32_t line = s->config.level[0].bytes ? s->config.level[0].line : 64;

    for (uint64_t done = 0, here; done < size && !s->is_stopped; done += here) {
        here = line - ((addr + done) & (line - 1));
        here = here < size - done ? here : size - done;
        if (s->remap && here > 8) /* remap rules move elements separately */
            here = 8 - ((addr + done) & 7);
        hw_thread_issue(s, hw, (here + 15) / 16 * s->config.cost[PEET_CL_plain]);
        sim_refer(s, hw,
                  &(struct peet_record){
                      .addr = addr + done, .id = SIM_NO_INSN, .size = (uint32_t)here & 0xffffff, .kind = kind });
        s->is_stopped = s->hooks.stop && *s->hooks.stop; /* a range may be as long as memory */
    }
}

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
        for (; r < end && peet_is_reference(r); r++)
            sim_refer_observed(s, hw, r, r->addr);
        s->counts.references += (uint64_t)(r - first);
        return r;
    }
    if (s->mode.translates || s->config.by_reference) {
        for (; r < end && peet_is_reference(r); r++) {
            sim_refer(s, hw, r);
            if (s->config.by_reference)
                return r + 1;
        }
        return r;
    }
    for (; r < end && peet_is_reference(r); r++)
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

static bool hw_thread_quantum_is_over(struct sim *s, const struct hw_thread *hw)
{
    return s->scheduler.count > 0
           && sched_is_over(&s->scheduler, &hw->thread->sched, hw->number, hw->clock - hw->began, hw->clock);
}

static void sim_check_quantum(struct sim *s, struct hw_thread *hw)
{
    if (hw_thread_quantum_is_over(s, hw))
        sim_yield(s, hw);
}

/* The thread of a hardware thread has reached an event. */
static void sim_reach_event(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    spaces_event(&s->spaces, hw->thread->space, e);
    if (s->remap)
        remap_event(s->remap, hw->thread->sched.group, e);
    if (s->hooks.listener)
        s->hooks.listener->event(s->hooks.listener->self, hw->thread->sched.number, e);
    if (s->observer)
        s->observer->event(s->observer->self, hw->thread->sched.number, e);
    if (s->block_exec)
        blocks_event(s->block_exec, hw->thread->sched.number, e);
    s->site = hw->thread->site = e->site;
    sim_event(s, hw, e);
}

/* Cycle at which the quantum of the thread ends, if others are ready, or `limit`. A quantum that ended within an event ends with the next step. */
static uint64_t sim_end_of_quantum(struct sim *s, const struct hw_thread *hw, uint64_t limit)
{
    uint64_t quantum = s->config.quantum ? s->config.quantum : limit - hw->clock;
    uint64_t over = hw->began + quantum > hw->clock    ? hw->began + quantum
                    : hw_thread_quantum_is_over(s, hw) ? hw->clock + 1
                                                       : hw->clock + quantum;

    return s->scheduler.count > 0 && over < limit ? over : limit;
}

/* Takes the answer of the source to a request for more records, and returns it: 1, 0 at the thread's end, or an error. */
static int sim_take_answer(struct sim *s, struct hw_thread *hw, int said, struct peet_err *err)
{
    hw->thread->is_idle = false;
    hw->thread->reply = 0;
    int r = said < 0 ? said : sim_add_threads(s, err);
    if (r < 0)
        return r;
    if (said == 0)
        sim_end_thread(s, hw);
    return said;
}

/* A step of the block executor: up to an event, or to the end of the quantum. */
static int sim_run_blocks(struct sim *s, struct hw_thread *hw, uint64_t limit, struct peet_err *err)
{
    struct sim_thread *thread = hw->thread;

    while (thread->words.word == thread->words.end) {
        int r = sim_take_answer(s, hw,
                                source_words(s->source, thread->sched.number, thread->reply, &thread->words, err), err);
        if (r <= 0)
            return r;
    }
    struct exec_clock *t = blocks_clock(s->block_exec);
    uint64_t references = t->references;
    t->clock = hw->clock;
    limit = limit - hw->clock > WORDS_CYCLES ? hw->clock + WORDS_CYCLES : limit;
    int r = blocks_run(s->block_exec, thread->sched.number, &thread->words, sim_end_of_quantum(s, hw, limit),
                       &thread->event, err);
    hw->clock = t->clock;
    s->counts.references += t->references - references;
    if (r > 0) {
        sim_reach_event(s, hw, &thread->event);
        blocks_take_used(s->block_exec, thread->sched.number, &thread->words);
    } else if (r == 0) {
        sim_check_quantum(s, hw);
    }
    return r < 0 ? r : 0;
}

/* One step of a hardware thread. */
static int sim_take_step(struct sim *s, struct hw_thread *hw, uint64_t limit, struct peet_err *err)
{
    struct sim_thread *t = hw->thread;

    sim_enter_program(s, hw);
    hw->forward.iterations = 0; /* it has the least local time: this is final */
    hw->lookahead.is_on = false;
    s->step.now = hw->clock;
    s->step.number = hw->number;
    if (t->pending && !sim_pending(s, hw)) {
        if (hw->thread == t && hw->runs) /* a thread that spins may occupy the hardware thread that the holder needs */
            sim_check_quantum(s, hw);
        return 0;
    }
    if (s->block_exec)
        return sim_run_blocks(s, hw, limit, err);
    while (t->at == t->batch.count) {
        int said = source_next(s->source, t->sched.number, t->reply, &t->batch, err);
        t->at = 0;
        int r = sim_take_answer(s, hw, said, err);
        if (r <= 0)
            return r;
    }
    const struct peet_record *r = &t->batch.records[t->at];
    if (r->kind == PEET_EVENT) {
        t->at++;
        sim_reach_event(s, hw, &t->batch.events[r->id]);
        return 0;
    }
    if (r->kind == PEET_REPEAT)
        sim_run_loop(s, hw, limit);
    else
        sim_execute(s, hw, t, limit);
    sim_check_quantum(s, hw);
    return 0;
}

/* ---- the loop ---- */

static bool hw_thread_precedes(const struct hw_thread *a, const struct hw_thread *b)
{
    return a->clock != b->clock ? a->clock < b->clock : a->number < b->number;
}

/* The first hardware thread of the order has another clock: moves it to its position. */
static void order_move_first(struct sim *s)
{
    struct hw_thread *hw = s->order.hw[0];
    uint32_t i = 1;

    for (; i < s->order.count && hw_thread_precedes(s->order.hw[i], hw); i++)
        s->order.hw[i - 1] = s->order.hw[i];
    s->order.hw[i - 1] = hw;
}

/* Sorts the hardware threads that can take a step. */
static void order_rebuild(struct sim *s)
{
    s->order.count = 0;
    for (uint32_t i = 0; i < s->hw_threads; i++)
        if (s->hw_thread[i].runs) {
            uint32_t at = s->order.count++;
            for (; at > 0 && hw_thread_precedes(&s->hw_thread[i], s->order.hw[at - 1]); at--)
                s->order.hw[at] = s->order.hw[at - 1];
            s->order.hw[at] = &s->hw_thread[i];
        }
    s->order.needs_sort = false;
}

/* Steps of the hardware thread with the least local time, until another one has it, or a step has changed another one. */
static int sim_take_steps(struct sim *s, struct hw_thread *hw, struct progress *progress, struct peet_err *err)
{
    uint64_t limit = s->order.count > 1 ? s->order.hw[1]->clock + s->config.slack : UINT64_MAX;
    int r;

    if (s->wakeups.count && s->wakeups.thread[0]->wakeup.at < limit)
        limit = s->wakeups.thread[0]->wakeup.at;
    do {
        r = sim_take_step(s, hw, limit, err);
        if (++s->step.count % (s->block_exec ? WORDS_STEPS : PROGRESS_STEPS) == 0) {
            if (progress)
                progress_at(progress, s->counts.references);
            s->is_stopped = s->hooks.stop && *s->hooks.stop;
        }
    } while (r == 0 && hw->runs && hw->clock < limit && !s->order.needs_sort && !s->is_stopped);
    return r;
}

/* The program ended in the last step: rolls back what others did ahead of that step. The source learns which event words were used. */
static int sim_end_all(struct sim *s, struct peet_err *err)
{
    int r = 0;

    for (uint32_t i = 0; i < s->hw_threads; i++)
        sim_roll_back(s, &s->hw_thread[i], s->step.now, s->step.number);
    for (uint32_t i = 0; s->block_exec && r >= 0 && i < s->threads; i++)
        r = source_words(s->source, i, 0, &s->thread[i].words, err);
    return r < 0 ? r : 0;
}

static int sim_run_all(struct sim *s, struct progress *progress, struct peet_err *err)
{
    int r = 0;

    while (r == 0 && !s->is_stopped && !s->source->has_ended) {
        if (s->order.needs_sort)
            order_rebuild(s);
        struct hw_thread *hw = s->order.count ? s->order.hw[0] : NULL;
        if (s->wakeups.count && (!hw || s->wakeups.thread[0]->wakeup.at <= hw->clock)) {
            sim_ready_next(s);
            continue;
        }
        if (!hw && s->counts.alive > 0 && sim_force_wakeup(s))
            continue;
        if (!hw)
            return s->counts.alive > 0 ? sim_report_deadlock(s, err) : 0;
        r = sim_take_steps(s, hw, progress, err);
        if (!s->order.needs_sort)
            order_move_first(s);
    }
    return r == 0 && s->source->has_ended ? sim_end_all(s, err) : r;
}

uint64_t sim_clock(const struct sim *s, unsigned cpu)
{
    uint64_t clock = s->block_exec ? blocks_clock(s->block_exec)->clock
                                   : 0; /* ahead of its hardware thread's while it executes event words */

    for (uint32_t i = 0; i < s->hw_threads; i++)
        if (s->hw_thread[i].cpu == cpu && s->hw_thread[i].clock > clock)
            clock = s->hw_thread[i].clock;
    return clock;
}

int sim_run(struct sim *s, struct progress *progress, struct peet_err *err)
{
    for (uint32_t i = 0; i < s->threads; i++)
        if (s->source->thread[i].birth == BIRTH_FIRST) {
            s->counts.alive++;
            s->thread[i].wakeup.at = sim_start_jitter(s);
            s->thread[i].status = STATUS_READY;
            sim_ready_later(s, &s->thread[i]);
        }
    int r = sim_run_all(s, progress, err);
    sim_end_times(s);
    return r;
}
