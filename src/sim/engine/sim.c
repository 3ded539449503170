/* SPDX-License-Identifier: MIT */
/* How time goes on: the place that is farthest behind takes its next turn. */
#include "sim/engine/sim.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "map/source/source_sample.h"
#include "sim/engine/state.h"

enum { PROGRESS_STEPS = 1 << 12 };                     /* of up to a batch each, */
enum { WORDS_STEPS = 1 << 4, WORDS_CYCLES = 1 << 26 }; /*   or of words, which may stand for any number of references */

/* ---- making one ---- */

/* Before a processor's caches are changed by what another one does. */
static void watch(void *context, unsigned cpu, uint64_t line, bool reads)
{
    struct sim *s = context;

    if (s->config.contexts > 1)
        return;
    struct hw_thread *hw = &s->place[cpu];
    if (hw->ahead || (hw->lead.is_on && signature_has(s->memory, cpu, line, reads)))
        sim_roll_back(s, hw, s->now, s->actor);
}

/* Those that the source has and we have not. */
static int see_threads(struct sim *s, struct peet_err *err)
{
    for (; s->contexts < s->source->threads; s->contexts++) {
        uint32_t i = s->contexts;
        const struct source_thread *from = &s->source->thread[i];
        uint32_t *at = map_put(&s->threads, from->id, 0);
        if (!at)
            return err_set(err, PEET_ERR_MEMORY, "no memory for %" PRIu32 " contexts", i);
        *at = i + 1;
        int r = sim_add_program(s, from->process, &s->context[i].space, err);
        if (r < 0)
            return r;
        s->context[i].sched = (struct sched_thread){ .number = i, .group = from->process, .last = -1 };
        s->context[i].party = (struct sync_waiter){ .number = i, .priority = i };
    }
    return 0;
}

static int make_threads(struct sim *s, struct peet_err *err)
{
    s->context = calloc(s->source->max_threads + 1, sizeof *s->context);
    s->heap = calloc(s->source->max_threads + 1, sizeof *s->heap);
    s->threads.value_size = sizeof(uint32_t);
    if (!s->context || !s->heap)
        return err_set(err, PEET_ERR_MEMORY, "no memory for %" PRIu32 " contexts", s->source->max_threads);
    return see_threads(s, err);
}

static int make_hw_threads(struct sim *s, struct peet_err *err)
{
    s->places = s->config.cpus * s->config.contexts;
    s->place = calloc(s->places, sizeof *s->place);
    s->order = calloc(s->places, sizeof *s->order);
    s->issue = calloc(s->config.cpus, sizeof *s->issue);
    if (!s->place || !s->order || !s->issue)
        return err_set(err, PEET_ERR_MEMORY, "no memory for %" PRIu32 " processors", s->places);
    for (uint32_t i = 0; i < s->places; i++) {
        s->place[i].number = i;
        s->place[i].cpu = i / s->config.contexts;
        s->place[i].program = NO_PROGRAM;
        s->place[i].front = hierarchy_filter(s->memory, s->place[i].cpu);
        s->place[i].counts = hierarchy_counts(s->memory, s->place[i].cpu);
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
    s->objects.value_size = sizeof(struct sync_object *);
    s->object_names.value_size = sizeof(uint64_t);
    spaces_init(&s->spaces, source->trace);
    s->spaces.by_frame &= !source_samples_sets(source);
    if ((r = hierarchy_new(config, &s->memory, err)) < 0 || (r = make_threads(s, err)) < 0
        || (r = make_hw_threads(s, err)) < 0) {
        sim_free(s);
        return r;
    }
    if (s->spaces.count > 1 && (r = hierarchy_set_programs(s->memory, s->spaces.count, err)) < 0) {
        sim_free(s);
        return r;
    }
    hierarchy_set_snoop_hook(s->memory, watch, s);
    sim_set_lookahead(s, true);
    sched_init(&s->scheduler, config->scheduler,
               &(struct sched_config){ .hw_threads = s->places, .quantum = config->quantum, .seed = config->seed });
    *ret = s;
    return 0;
}

void sim_set_remap(struct sim *s, struct remap *r)
{
    s->remap = r;
    sim_set_lookahead(s, true);
}

void sim_set_lookahead(struct sim *s, bool leads)
{
    s->translates = s->remap || spaces_translate(&s->spaces);
    s->leads = leads && s->config.contexts == 1 && s->config.slack == 0 && !s->config.by_reference && !s->translates
               && !s->config.instructions.bytes && hierarchy_can_undo(s->memory);
    s->settles = s->leads && hierarchy_l1_is_lru(s->memory);
}

static void lose(void *context, unsigned cpu, uint64_t line, enum line_removal how)
{
    const struct sim *s = context;

    s->observer->lost(s->observer->context, cpu, line, how);
}

void sim_set_observer(struct sim *s, const struct sim_observer *o)
{
    s->observer = o;
    hierarchy_set_removal_hook(s->memory, o ? lose : NULL, s);
    sim_set_lookahead(s, !o);
}

bool sim_set_block_observer(struct sim *s, const struct block_observer *w, struct peet_err *err)
{
    return !s->translates && s->source->kind->words && blocks_can_run(&s->config)
           && blocks_new(&s->config, s->source->trace, w, &s->block_exec, err) == 0;
}

void sim_set_waiter(struct sim *s, void (*waiter)(void *context, const struct sim_wait *w), void *context)
{
    s->waiter = waiter;
    s->waiting = context;
}

void sim_set_listener(struct sim *s, const struct sim_listener *l)
{
    s->listener = l;
}

void sim_set_stop(struct sim *s, const volatile uint32_t *stop)
{
    s->stop = stop;
}

void sim_free(struct sim *s)
{
    if (!s)
        return;
    hierarchy_free(s->memory);
    blocks_free(s->block_exec);
    sim_loop_release(s);
    map_release(&s->objects);
    map_release(&s->object_names);
    map_release(&s->threads);
    arena_release(&s->arena);
    spaces_release(&s->spaces);
    free(s->program);
    free(s->context);
    free(s->heap);
    free(s->place);
    free(s->order);
    free(s->issue);
    free(s->block);
    free(s);
}

/* ---- one turn ---- */

/* Where the block's instructions stand, and how many lines that are. */
static void find_code_ranges(struct sim *s, const struct peet_block *b, struct block_info *f)
{
    uint64_t line = s->config.instructions.line;

    f->stretch = arena_alloc(&s->arena, b->insns * sizeof *f->stretch);
    assert(f->stretch);
    for (uint32_t i = 0; i < b->insns; i++) {
        struct code_range *last = f->stretches ? &f->stretch[f->stretches - 1] : NULL;
        if (last && b->insn[i].addr == last->addr + last->bytes)
            last->bytes += b->insn[i].length;
        else
            f->stretch[f->stretches++] = (struct code_range){ b->insn[i].addr, b->insn[i].length };
    }
    for (uint32_t i = 0; i < f->stretches; i++)
        f->fetches += (f->stretch[i].addr + f->stretch[i].bytes - 1) / line - f->stretch[i].addr / line + 1;
}

/* Its references, if it makes them all each time. */
static void find_references(const struct peet_block *b, struct block_info *f)
{
    f->is_fixed = f->is_plain && b->operands <= KIND_COUNT_MAX;
    f->references = b->operands;
    for (uint32_t i = 0; i < b->operands; i++) {
        f->is_fixed &= !b->operand[i].size_src && !b->operand[i].predicate;
        f->kinds += kind_count_one(b->operand[i].kind);
    }
}

const struct block_info *sim_block(struct sim *s, const struct peet_record *block)
{
    s->block =
        mem_reach(s->block, &s->blocks, block->id, sizeof *s->block); /* a program that runs has new ones at any time */
    struct block_info *f = &s->block[block->id];
    if (f->is_known)
        return f;
    const struct peet_block *b = peet_trace_block(s->source->trace, block->id);
    for (uint32_t i = 0; i < b->insns; i++)
        f->cost += s->config.cost[b->insn[i].class];
    if (s->config.instructions.bytes)
        find_code_ranges(s, b, f);
    f->is_known = true;
    f->is_plain = f->stretches == 0 && s->config.contexts == 1 && !s->observer;
    find_references(b, f);
    return f;
}

/* Instructions are issued one after the other, whoever of a processor's contexts they are of. */
static void issue(struct sim *s, struct hw_thread *hw, uint64_t cycles)
{
    uint64_t *free_at = &s->issue[hw->cpu];

    if (s->config.contexts > 1) {
        hw_thread_spend(hw, *free_at, TIME_issue);
        *free_at = hw->clock + cycles;
    }
    hw->clock += cycles;
    hw->seen.time[TIME_compute] += cycles;
}

/* A reference to bytes of one line, or of any if there are no caches: beyond a hit in the first cache it is stall, some of it for the fabric. */
static void refer_line(struct sim *s, struct hw_thread *hw, uint64_t addr, uint64_t size, unsigned kind)
{
    uint64_t waited = hw->counts->waited;
    uint64_t cycles = hierarchy_access(s->memory, hw->cpu, addr, size, (enum peet_kind)kind, hw->clock);
    uint64_t beyond = sim_beyond(&s->config, kind, cycles);

    waited = hw->counts->waited - waited;
    waited = waited < beyond ? waited : beyond;
    hw->clock += cycles;
    hw->seen.time[TIME_compute] += cycles - beyond;
    hw->seen.time[TIME_bus] += waited;
    hw->seen.time[TIME_stall] += beyond - waited;
}

uint64_t sim_translate(struct sim *s, unsigned cpu, uint32_t space, uint64_t addr)
{
    if (s->remap)
        addr = remap_addr(s->remap, s->spaces.process[space], addr);
    uint64_t at = spaces_addr(&s->spaces, space, addr);
    hierarchy_filter(s->memory, cpu)->page_offset = spaces_tag(&s->spaces, space, addr) - at;
    return at;
}

/* Where a part of a reference is for the machine: its first byte is at `addr`, and no line is in two frames. */
static uint64_t part_at(struct sim *s, const struct hw_thread *hw, const struct peet_record *r, uint64_t addr,
                        uint64_t done)
{
    return done && s->spaces.by_frame ? sim_translate(s, hw->cpu, hw->context->space, r->addr + done) : addr + done;
}

/* How many bytes of a reference lie in its line from an address on. */
static uint64_t bytes_here(const struct sim *s, uint64_t addr, uint64_t left)
{
    uint64_t length = s->config.level[0].bytes ? s->config.level[0].line : UINT64_C(1) << 63;
    uint64_t here = length - (addr & (length - 1));

    return here < left ? here : left;
}

/* A reference that is not easy, for the observer: line by line, if there are caches. */
static __attribute__((noinline)) void see_access(struct sim *s, struct hw_thread *hw, const struct peet_record *r,
                                                 uint64_t addr)
{
    struct observed_line at = { .is_first = true };

    for (uint64_t done = 0; at.is_first || done < r->size; at.is_first = false) {
        const struct memory_counts before = *hw->counts;
        uint64_t behind = hw->front->behind[r->kind], here = bytes_here(s, addr + done, r->size - done);
        uint64_t part = part_at(s, hw, r, addr, done);
        at.line = sim_line(s, part);
        at.own_line = sim_line(s, r->addr + done);
        at.now = hw->clock;
        at.before = &before;
        refer_line(s, hw, part, here, r->kind);
        at.is_behind = hw->front->behind[r->kind] != behind;
        sim_observe(s, hw, r, &at);
        done += here;
    }
}

/* Any reference. */
static inline void refer_seen(struct sim *s, struct hw_thread *hw, const struct peet_record *r, uint64_t addr)
{
    const struct sim_observer *o = s->observer;
    uint64_t now = hw->clock;

    if (!l1_filter_hit_tlb(hw->front, addr, r->size, r->kind)
        && !hierarchy_reorder_hit(s->memory, hw->cpu, addr, r->size, (enum peet_kind)r->kind)) {
        see_access(s, hw, r, addr);
        return;
    }
    hw_thread_hit(hw, r->kind);
    if (r->id != SIM_NO_INSN)
        o->hit(o->context, hw->context->sched.number, hw->cpu, r, addr);
    else
        sim_observe(s, hw, r,
                    &(struct observed_line){
                        .line = sim_line(s, addr), .own_line = sim_line(s, r->addr), .now = now, .is_first = true });
}

bool sim_refer(struct sim *s, struct hw_thread *hw, const struct peet_record *r)
{
    uint64_t addr = s->translates ? sim_translate(s, hw->cpu, hw->context->space, r->addr) : r->addr;

    s->references++;
    if (s->block_exec) {
        struct source_words *w = &hw->context->words;
        w->used += w->turn && w->is_on;
        w->passed += w->turn && !w->is_on;
        if (w->turn && !w->is_on)
            return false;
        blocks_clock(s->block_exec)->clock = hw->clock;
        hw->clock += blocks_libcall_access(s->block_exec, hw->context->sched.number, r, s->site,
                                           (uint64_t)((r->size + 15u) / 16) * s->config.cost[PEET_CL_plain]);
        return false;
    }
    if (s->observer) {
        refer_seen(s, hw, r, addr);
        return false; /* nobody asks */
    }
    if (l1_filter_hit_tlb(hw->front, addr, r->size, r->kind)) {
        hw_thread_hit(hw, r->kind);
        return true;
    }
    uint64_t smooth = hw->front->smooth, done = 0;
    do {
        uint64_t here = bytes_here(s, addr + done, r->size - done);
        refer_line(s, hw, part_at(s, hw, r, addr, done), here, r->kind);
        done += here;
    } while (done < r->size);
    return hw->front->smooth != smooth && hw->front->calm[PEET_LOAD]
           && (addr & (hw->front->line - 1)) + r->size <= hw->front->line;
}

void sim_range(struct sim *s, struct hw_thread *hw, uint64_t addr, uint64_t size, enum peet_kind kind)
{
    uint32_t line = s->config.level[0].bytes ? s->config.level[0].line : 64;

    for (uint64_t done = 0, here; done < size && !s->is_stopped; done += here) {
        here = line - ((addr + done) & (line - 1));
        here = here < size - done ? here : size - done;
        if (s->remap && here > 8) /* elements may go to different places */
            here = 8 - ((addr + done) & 7);
        issue(s, hw, (here + 15) / 16 * s->config.cost[PEET_CL_plain]);
        sim_refer(s, hw,
                  &(struct peet_record){
                      .addr = addr + done, .id = SIM_NO_INSN, .size = (uint32_t)here & 0xffffff, .kind = kind });
        s->is_stopped = s->stop && *s->stop; /* a range may be as long as memory */
    }
}

void sim_issue_other(struct sim *s, struct hw_thread *hw, const struct peet_record *block)
{
    const struct block_info *f = sim_block(s, block);

    issue(s, hw, f->cost);
    hw->seen.instructions += block->size;
    uint64_t issued = hw->clock;
    for (uint32_t i = 0; i < f->stretches; i++) {
        uint64_t addr = spaces_tag(&s->spaces, hw->context->space, f->stretch[i].addr);
        uint64_t cycles = hierarchy_fetch(s->memory, hw->cpu, addr, f->stretch[i].bytes, hw->clock);
        hw_thread_spend(hw, hw->clock + cycles, TIME_fetch);
    }
    if (s->observer)
        s->observer->block(s->observer->context, hw->context->sched.number, block, f->cost, hw->clock - issued);
}

/* References, up to the end or to another record, or the first of them; returns what comes behind. */
static const struct peet_record *refer(struct sim *s, struct hw_thread *hw, const struct peet_record *r,
                                       const struct peet_record *end)
{
    const struct peet_record *first = r;
    uint64_t others = 0;

    if (s->observer && !s->translates && !s->config.by_reference) {
        for (; r < end && peet_is_reference(r); r++)
            refer_seen(s, hw, r, r->addr);
        s->references += (uint64_t)(r - first);
        return r;
    }
    if (s->translates || s->config.by_reference) {
        for (; r < end && peet_is_reference(r); r++) {
            sim_refer(s, hw, r);
            if (s->config.by_reference)
                return r + 1;
        }
        return r;
    }
    for (; r < end && peet_is_reference(r); r++)
        if (l1_filter_hit(hw->front, r->addr, r->size, r->kind)) {
            hw_thread_hit(hw, r->kind);
        } else {
            sim_refer(s, hw, r);
            others++;
        }
    s->references += (uint64_t)(r - first) - others;
    return r;
}

/* The block at the beginning of the records, and its references; or the references that are left of one. And so on, as long as
 * nobody else has a say in it. */
static void execute(struct sim *s, struct hw_thread *hw, struct sim_thread *t, uint64_t limit)
{
    const struct peet_record *r = t->batch.records + t->at, *end = t->batch.records + t->batch.count;

    for (;;) {
        if (r->kind == PEET_BLOCK)
            sim_issue(s, hw, r++);
        r = refer(s, hw, r, end);
        if (r >= end || r->kind > PEET_PREFETCH || !sim_may_continue(s, hw, limit))
            break;
        s->now = hw->clock; /* the first step began when the turn did, also if a lock was taken before it */
    }
    t->at = (size_t)(r - t->batch.records);
    if (r < end && sim_may_look_ahead(s, hw, limit))
        sim_look_ahead(s, hw);
}

static bool is_quantum_over(struct sim *s, const struct hw_thread *hw)
{
    return s->scheduler.count > 0
           && sched_is_over(&s->scheduler, &hw->context->sched, hw->number, hw->clock - hw->began, hw->clock);
}

static void see_quantum(struct sim *s, struct hw_thread *hw)
{
    if (is_quantum_over(s, hw))
        sim_yield(s, hw);
}

/* An event at which a context has come. */
static void meet_event(struct sim *s, struct hw_thread *hw, const struct peet_event *e)
{
    spaces_event(&s->spaces, hw->context->space, e);
    if (s->remap)
        remap_event(s->remap, hw->context->sched.group, e);
    if (s->listener)
        s->listener->event(s->listener->context, hw->context->sched.number, e);
    if (s->observer)
        s->observer->event(s->observer->context, hw->context->sched.number, e);
    if (s->block_exec)
        blocks_event(s->block_exec, hw->context->sched.number, e);
    s->site = hw->context->site = e->site;
    sim_event(s, hw, e);
}

/* How long nobody else has a say, if threads take turns. Where a turn has come to its end in an event, the next step is its last. */
static uint64_t end_of_turn(struct sim *s, const struct hw_thread *hw, uint64_t limit)
{
    uint64_t quantum = s->config.quantum ? s->config.quantum : limit - hw->clock;
    uint64_t over = hw->began + quantum > hw->clock ? hw->began + quantum
                    : is_quantum_over(s, hw)        ? hw->clock + 1
                                                    : hw->clock + quantum;

    return s->scheduler.count > 0 && over < limit ? over : limit;
}

/* What the source has said when the place's context wanted to go on, which is handed on: 1, 0 at the context's end, or an error. */
static int see_more(struct sim *s, struct hw_thread *hw, int said, struct peet_err *err)
{
    hw->context->yields = false;
    hw->context->reply = 0;
    int r = said < 0 ? said : see_threads(s, err);
    if (r < 0)
        return r;
    if (said == 0)
        sim_end_thread(s, hw);
    return said;
}

/* The same for a machine that takes words: up to an event, or to the end of its turn. */
static int sim_run_blocks(struct sim *s, struct hw_thread *hw, uint64_t limit, struct peet_err *err)
{
    struct sim_thread *thread = hw->context;

    while (thread->words.word == thread->words.end) {
        int r = see_more(s, hw, source_words(s->source, thread->sched.number, thread->reply, &thread->words, err), err);
        if (r <= 0)
            return r;
    }
    struct exec_clock *t = blocks_clock(s->block_exec);
    uint64_t references = t->references;
    t->clock = hw->clock;
    limit = limit - hw->clock > WORDS_CYCLES ? hw->clock + WORDS_CYCLES : limit;
    int r =
        blocks_run(s->block_exec, thread->sched.number, &thread->words, end_of_turn(s, hw, limit), &thread->event, err);
    hw->clock = t->clock;
    s->references += t->references - references;
    if (r > 0) {
        meet_event(s, hw, &thread->event);
        blocks_take_used(s->block_exec, thread->sched.number, &thread->words);
    } else if (r == 0) {
        see_quantum(s, hw);
    }
    return r < 0 ? r : 0;
}

/* One turn of a place. */
static int go_on(struct sim *s, struct hw_thread *hw, uint64_t limit, struct peet_err *err)
{
    struct sim_thread *t = hw->context;

    sim_see_program(s, hw);
    hw->ahead = 0; /* nobody is behind it any more */
    hw->lead.is_on = false;
    s->now = hw->clock;
    s->actor = hw->number;
    if (t->pending && !sim_pending(s, hw)) {
        if (hw->context == t && hw->runs) /* who tries again and again may keep the one away whom it waits for */
            see_quantum(s, hw);
        return 0;
    }
    if (s->block_exec)
        return sim_run_blocks(s, hw, limit, err);
    while (t->at == t->batch.count) {
        int said = source_next(s->source, t->sched.number, t->reply, &t->batch, err);
        t->at = 0;
        int r = see_more(s, hw, said, err);
        if (r <= 0)
            return r;
    }
    const struct peet_record *r = &t->batch.records[t->at];
    if (r->kind == PEET_EVENT) {
        t->at++;
        meet_event(s, hw, &t->batch.events[r->id]);
        return 0;
    }
    if (r->kind == PEET_REPEAT)
        sim_run_loop(s, hw, limit);
    else
        execute(s, hw, t, limit);
    see_quantum(s, hw);
    return 0;
}

/* ---- all turns ---- */

static bool is_behind(const struct hw_thread *a, const struct hw_thread *b)
{
    return a->clock != b->clock ? a->clock < b->clock : a->number < b->number;
}

/* The first of the places that run has gone on: puts it where it belongs now. */
static void put_in_order(struct sim *s)
{
    struct hw_thread *hw = s->order[0];
    uint32_t i = 1;

    for (; i < s->running && is_behind(s->order[i], hw); i++)
        s->order[i - 1] = s->order[i];
    s->order[i - 1] = hw;
}

/* Others have begun to run, or do not any more, or are at another time. */
static void find_order(struct sim *s)
{
    s->running = 0;
    for (uint32_t i = 0; i < s->places; i++)
        if (s->place[i].runs) {
            uint32_t at = s->running++;
            for (; at > 0 && is_behind(&s->place[i], s->order[at - 1]); at--)
                s->order[at] = s->order[at - 1];
            s->order[at] = &s->place[i];
        }
    s->is_changed = false;
}

/* The place that is farthest behind goes on until another one is, or until something has happened to another one. */
static int take_turn(struct sim *s, struct hw_thread *hw, struct progress *progress, struct peet_err *err)
{
    uint64_t limit = s->running > 1 ? s->order[1]->clock + s->config.slack : UINT64_MAX;
    int r;

    if (s->heap_count && s->heap[0]->wake_at < limit)
        limit = s->heap[0]->wake_at;
    do {
        r = go_on(s, hw, limit, err);
        if (++s->steps % (s->block_exec ? WORDS_STEPS : PROGRESS_STEPS) == 0) {
            if (progress)
                progress_at(progress, s->references);
            s->is_stopped = s->stop && *s->stop;
        }
    } while (r == 0 && hw->runs && hw->clock < limit && !s->is_changed && !s->is_stopped);
    return r;
}

/* The program has ended in the step that was taken last. What others have done before their time they do not come to any more; who has
 * given them words learns what became of these. */
static int end_all(struct sim *s, struct peet_err *err)
{
    int r = 0;

    for (uint32_t i = 0; i < s->places; i++)
        sim_roll_back(s, &s->place[i], s->now, s->actor);
    for (uint32_t i = 0; s->block_exec && r >= 0 && i < s->contexts; i++)
        r = source_words(s->source, i, 0, &s->context[i].words, err);
    return r < 0 ? r : 0;
}

static int run(struct sim *s, struct progress *progress, struct peet_err *err)
{
    int r = 0;

    while (r == 0 && !s->is_stopped && !s->source->has_ended) {
        if (s->is_changed)
            find_order(s);
        struct hw_thread *hw = s->running ? s->order[0] : NULL;
        if (s->heap_count && (!hw || s->heap[0]->wake_at <= hw->clock)) {
            sim_ready_next(s);
            continue;
        }
        if (!hw && s->alive > 0 && sim_force_wakeup(s))
            continue;
        if (!hw)
            return s->alive > 0 ? sim_report_deadlock(s, err) : 0;
        r = take_turn(s, hw, progress, err);
        if (!s->is_changed)
            put_in_order(s);
    }
    return r == 0 && s->source->has_ended ? end_all(s, err) : r;
}

uint64_t sim_clock(const struct sim *s, unsigned cpu)
{
    uint64_t clock =
        s->block_exec ? blocks_clock(s->block_exec)->clock : 0; /* it is ahead of its place while it executes words */

    for (uint32_t i = 0; i < s->places; i++)
        if (s->place[i].cpu == cpu && s->place[i].clock > clock)
            clock = s->place[i].clock;
    return clock;
}

int sim_run(struct sim *s, struct progress *progress, struct peet_err *err)
{
    for (uint32_t i = 0; i < s->contexts; i++)
        if (s->source->thread[i].birth == BIRTH_FIRST) {
            s->alive++;
            s->context[i].wake_at = sim_start_jitter(s);
            s->context[i].status = STATUS_READY;
            sim_ready_later(s, &s->context[i]);
        }
    int r = run(s, progress, err);
    sim_end_times(s);
    return r;
}
