/* SPDX-License-Identifier: MIT */
/* Store buffers in time. The state of a buffer changes when a store leaves it, and when that store has performed. Its memory access is made
 * when it leaves: then other caches lose their copies. docs/design/orders.md, "Time". */
#include "sim/engine/store_buffer.h"

#include <assert.h>
#include <stdlib.h>

#include "base/err.h"
#include "sim/engine/simulation.h"

enum { LINE_BITS = 6 };

/* ---- making ---- */

static uint32_t store_buffers_number(const struct machine_config *c, uint32_t hw_thread)
{
    switch (c->order.domain) {
    case ORDER_DOMAIN_CORE: return hw_thread / c->core_threads;
    case ORDER_DOMAIN_GROUP: return hw_thread / (c->core_threads * c->order.group);
    default: return hw_thread;
    }
}

int store_buffers_init(struct sim *s, struct peet_err *err)
{
    struct store_buffers *b = &s->buffers;
    const struct order_config config = { .stores = s->config.order.stores,
                                         .drain = (enum order_drain)s->config.order.drain,
                                         .no_forwarding = !s->config.order.forwards };

    b->random = s->config.seed * 2 + 1;
    if (!config_has_store_buffers(&s->config))
        return 0;
    b->count = store_buffers_number(&s->config, s->hw_threads - 1) + 1;
    b->next_at = UINT64_MAX;
    b->location.value_size = sizeof(struct order_location);
    b->buffer = calloc(b->count, sizeof *b->buffer);
    b->counts = calloc(s->hw_threads, sizeof *b->counts);
    if (!b->buffer || !b->counts)
        return err_set(err, PEET_ERR_MEMORY, "no memory for store buffers");
    for (uint32_t i = 0; i < b->count; i++) {
        order_init(&b->buffer[i].order, s->config.order.model, &config);
        b->buffer[i].next_at = UINT64_MAX;
    }
    return 0;
}

void store_buffers_release(struct store_buffers *b)
{
    free(b->buffer);
    free(b->counts);
    map_release(&b->location);
}

static struct store_buffer *store_buffer_of(struct sim *s, const struct hw_thread *hw)
{
    return &s->buffers.buffer[store_buffers_number(&s->config, hw->number)];
}

static uint64_t store_buffer_line(uint64_t addr)
{
    return UINT64_C(1) << ((addr >> LINE_BITS ^ addr >> 2 * LINE_BITS) & 63);
}

/* ---- locations ---- */

/* Counts an execution of an instruction, and cycles waited for it. insn SIM_NO_INSN: at the call site. */
static void store_buffer_note(struct sim *s, const struct hw_thread *hw, enum order_wait kind, uint32_t insn,
                              uint64_t site, uint64_t cycles)
{
    uint64_t key = insn == SIM_NO_INSN ? site : insn;
    struct order_location *p = map_put(&s->buffers.location, key, kind << 1 | (insn == SIM_NO_INSN));

    if (!p)
        return; /* it is not reported */
    if (p->times == 0) {
        p->kind = (uint8_t)kind;
        p->addr = insn == SIM_NO_INSN ? site : peet_trace_insn(s->source->trace, insn)->addr;
        p->process = s->source->thread[hw->thread->sched.number].process;
    }
    p->times++;
    p->cycles += cycles;
    if (kind < ORDER_WAIT_KINDS) {
        s->buffers.counts[hw->number].waits[kind] += cycles > 0;
        s->buffers.counts[hw->number].waited[kind] += cycles;
    }
}

/* ---- time ---- */

uint64_t store_buffers_random(struct sim *s)
{
    s->buffers.random = s->buffers.random * 6364136223846793005u + 1442695040888963407u;
    return s->buffers.random >> 33;
}

static void store_buffers_find_next(struct store_buffers *all)
{
    all->next_at = UINT64_MAX;
    for (uint32_t i = 0; i < all->count; i++)
        if (all->buffer[i].next_at < all->next_at)
            all->next_at = all->buffer[i].next_at;
}

/* Finds the next change: the end of a store, or else the store that leaves next. */
static void store_buffer_find_next(struct sim *s, struct store_buffer *b)
{
    const struct memory_order_config *c = &s->config.order;
    bool may_leave = (uint32_t)__builtin_popcountll(b->leaving) < c->outstanding;
    int slot = ORDER_NONE;

    b->next_at = UINT64_MAX;
    for (uint64_t left = b->leaving; left; left &= left - 1)
        if (b->store[__builtin_ctzll(left)].end < b->next_at) {
            b->next = __builtin_ctzll(left);
            b->next_at = b->store[b->next].end;
        }
    if (may_leave && b->order.stores & ~b->leaving)
        slot = order_drain(&b->order, ~b->leaving, c->drain == ORDER_DRAIN_RANDOM ? store_buffers_random(s) : 0);
    if (slot != ORDER_NONE) {
        uint64_t at = b->store[slot].issued + c->delay;
        at = at > b->at ? at : b->at;
        at = at > b->free_at ? at : b->free_at;
        if (at < b->next_at) {
            b->next = slot;
            b->next_at = at;
        }
    }
    store_buffers_find_next(&s->buffers);
}

/* An access at cycle `now` for a hardware thread. Returns its outcome. */
static struct access_outcome store_buffer_refer(struct sim *s, const struct hw_thread *hw, uint64_t now, uint64_t addr,
                                                uint64_t page_offset, uint32_t size, unsigned kind)
{
    hw->filter->page_offset = page_offset;
    if (l1_filter_hit_tlb(hw->filter, addr, size, kind))
        return (struct access_outcome){ .latency = kind == PEET_PREFETCH ? 0 : hw->filter->latency,
                                        .cause = MISS_KINDS };
    return hierarchy_access(
        s->memory, &(struct memory_access){
                       .addr = addr, .now = now, .size = size, .kind = (uint8_t)kind, .core = (uint8_t)hw->cpu });
}

/* A store leaves: it occupies the way out for a cycle, and has performed when the line is there. */
static void store_buffer_leave(struct sim *s, struct store_buffer *b, int slot)
{
    const struct order_op *op = &b->order.op[slot];
    struct buffered_store *w = &b->store[slot];
    struct access_outcome o =
        store_buffer_refer(s, &s->hw_thread[w->number], b->next_at, op->address, w->page_offset, op->size, PEET_STORE);

    b->leaving |= UINT64_C(1) << slot;
    b->free_at = b->next_at + 1;
    w->end = b->next_at + 1 + access_stall(&s->config, PEET_STORE, o.latency);
}

static void store_buffer_end(struct sim *s, struct store_buffer *b, int slot)
{
    const struct buffered_store *w = &b->store[slot];

    b->leaving &= ~(UINT64_C(1) << slot);
    order_retire(&b->order, slot);
    s->buffers.counts[w->number].occupied += w->end - w->issued;
    b->lines = 0;
    for (uint64_t left = b->order.stores; left; left &= left - 1)
        b->lines |= store_buffer_line(b->order.op[__builtin_ctzll(left)].address);
}

/* The next change of a buffer. */
static void store_buffer_step(struct sim *s, struct store_buffer *b)
{
    int slot = b->next;

    assert(b->next_at != UINT64_MAX);
    if (b->leaving >> slot & 1)
        store_buffer_end(s, b, slot);
    else
        store_buffer_leave(s, b, slot);
    b->at = b->next_at > b->at ? b->next_at : b->at;
    store_buffer_find_next(s, b);
}

void store_buffers_advance_all(struct sim *s, uint64_t now)
{
    struct store_buffers *all = &s->buffers;

    while (all->next_at <= now) {
        uint32_t first = 0;
        while (all->buffer[first].next_at != all->next_at)
            first++;
        store_buffer_step(s, &all->buffer[first]);
    }
}

static void store_buffer_advance(struct sim *s, struct store_buffer *b, uint64_t now)
{
    while (b->next_at <= now)
        store_buffer_step(s, b);
}

/* The hardware thread waits until the next change of its buffer. */
static void store_buffer_wait(struct sim *s, struct hw_thread *hw, struct store_buffer *b)
{
    hw_thread_spend(hw, b->next_at, TIME_stall);
    store_buffer_step(s, b);
}

static void store_buffer_wait_for(struct sim *s, struct hw_thread *hw, struct store_buffer *b, int slot)
{
    while (b->order.pending >> slot & 1)
        store_buffer_wait(s, hw, b);
}

/* ---- accesses ---- */

/* A reference that the hardware thread waits for. */
static void store_buffer_refer_now(struct sim *s, struct hw_thread *hw, const struct ordered_access *a, unsigned kind)
{
    struct access_outcome o = store_buffer_refer(s, hw, hw->clock, a->addr, a->page_offset, a->size, kind);
    uint64_t stall = access_stall(&s->config, kind, o.latency), bus = o.contention < stall ? o.contention : stall;

    hw->clock += o.latency;
    hw->account.time[TIME_compute] += o.latency - stall;
    hw->account.time[TIME_bus] += bus;
    hw->account.time[TIME_stall] += stall - bus;
}

/* A load is about to read memory: notes where other domains have pending stores to its bytes. */
static void store_buffer_note_pending(struct sim *s, const struct hw_thread *hw, const struct store_buffer *own,
                                      const struct ordered_access *a)
{
    const struct order_op load = { .address = a->addr, .size = (uint8_t)a->size, .access = ORDER_LOAD };
    uint64_t line = store_buffer_line(a->addr);

    for (uint32_t i = 0; i < s->buffers.count; i++) {
        const struct store_buffer *b = &s->buffers.buffer[i];
        if (b == own || !(b->lines & line))
            continue;
        int slot = order_first_covering(&b->order, &load);
        if (slot == ORDER_NONE)
            continue;
        if (!a->is_atomic && a->insn != SIM_NO_INSN)
            store_buffer_note(s, hw, ORDER_WAIT_early_load, a->insn, 0, 0);
        if (b->order.op[slot].tag != SIM_NO_INSN)
            store_buffer_note(s, hw, ORDER_WAIT_overtaken_store, b->order.op[slot].tag, 0, 0);
    }
}

static void store_buffer_load(struct sim *s, struct hw_thread *hw, struct store_buffer *b,
                              const struct ordered_access *a)
{
    const struct order_op op = {
        .address = a->addr, .size = (uint8_t)a->size, .access = ORDER_LOAD, .flags = a->flags
    };
    uint64_t before = hw->clock;
    enum order_covered covered = ORDER_COVERED_NOT;
    int slot;

    if (b->order.pending) {
        while ((slot = order_wait(&b->order, &op, 0)) != ORDER_NONE)
            store_buffer_wait_for(s, hw, b, slot);
        while ((covered = order_covers(&b->order, &op)) == ORDER_COVERED_PARTLY)
            store_buffer_wait(s, hw, b);
        if (hw->clock > before)
            store_buffer_note(s, hw, ORDER_WAIT_load, a->insn, s->step.site, hw->clock - before);
    }
    if (covered == ORDER_COVERED) {
        s->buffers.counts[hw->number].forwarded++;
        hw_thread_hit(hw, PEET_LOAD);
        return;
    }
    if (s->buffers.count > 1)
        store_buffer_note_pending(s, hw, b, a);
    store_buffer_refer_now(s, hw, a, PEET_LOAD);
}

static void store_buffer_store(struct sim *s, struct hw_thread *hw, struct store_buffer *b,
                               const struct ordered_access *a)
{
    const struct order_op op = {
        .address = a->addr, .tag = a->insn, .size = (uint8_t)a->size, .access = ORDER_STORE, .flags = a->flags
    };
    struct order_counts *n = &s->buffers.counts[hw->number];
    uint64_t before = hw->clock, pending;

    while (order_wait(&b->order, &op, 0) != ORDER_NONE)
        store_buffer_wait(s, hw, b);
    if (hw->clock > before)
        store_buffer_note(s, hw, ORDER_WAIT_full, a->insn, s->step.site, hw->clock - before);
    int slot = order_issue(&b->order, &op);
    b->store[slot] =
        (struct buffered_store){ .issued = hw->clock, .page_offset = a->page_offset, .number = hw->number };
    b->lines |= store_buffer_line(a->addr);
    pending = (uint64_t)__builtin_popcountll(b->order.stores);
    n->stores++;
    n->most = pending > n->most ? pending : n->most;
    store_buffer_find_next(s, b);
    store_buffer_advance(s, b, hw->clock);
}

static void store_buffer_atomic(struct sim *s, struct hw_thread *hw, struct store_buffer *b,
                                const struct ordered_access *a)
{
    const struct order_op op = {
        .address = a->addr, .size = (uint8_t)a->size, .access = ORDER_ATOMIC, .flags = a->flags
    };
    uint64_t before = hw->clock;
    int slot;

    while ((slot = order_wait(&b->order, &op, 0)) != ORDER_NONE)
        store_buffer_wait_for(s, hw, b, slot);
    hw_thread_spend(hw, hw->clock + s->config.order.atomic, TIME_stall);
    store_buffer_note(s, hw, ORDER_WAIT_atomic, a->insn, s->step.site, hw->clock - before);
    store_buffer_refer_now(s, hw, a, a->kind);
}

void store_buffer_access(struct sim *s, struct hw_thread *hw, const struct ordered_access *a)
{
    struct store_buffer *b = store_buffer_of(s, hw);

    store_buffer_advance(s, b, hw->clock);
    if (a->is_atomic && a->kind != PEET_LOAD) {
        store_buffer_atomic(s, hw, b, a);
        return;
    }
    if (a->kind == PEET_PREFETCH)
        store_buffer_refer_now(s, hw, a, PEET_PREFETCH);
    else if (a->kind != PEET_STORE)
        store_buffer_load(s, hw, b, a);
    if (a->kind == PEET_STORE || a->kind == PEET_UPDATE)
        store_buffer_store(s, hw, b, a);
}

static uint64_t store_buffer_wait_empty(struct sim *s, struct hw_thread *hw, struct store_buffer *b)
{
    uint64_t before = hw->clock;

    store_buffer_advance(s, b, hw->clock);
    while (b->order.pending)
        store_buffer_wait(s, hw, b);
    return hw->clock - before;
}

void store_buffer_fence(struct sim *s, struct hw_thread *hw, enum order_fence fence, uint32_t insn)
{
    struct store_buffer *b = store_buffer_of(s, hw);
    uint64_t before = hw->clock;

    if (fence == ORDER_FENCE_FULL) {
        store_buffer_wait_empty(s, hw, b);
        hw_thread_spend(hw, hw->clock + s->config.order.fence, TIME_stall);
    } else {
        order_fence(&b->order, fence);
    }
    store_buffer_note(s, hw, ORDER_WAIT_fence, insn, 0, hw->clock - before);
}

void store_buffer_drain(struct sim *s, struct hw_thread *hw, uint64_t site)
{
    struct store_buffer *b = store_buffer_of(s, hw);

    if (b->order.pending)
        store_buffer_note(s, hw, ORDER_WAIT_sync, SIM_NO_INSN, site, store_buffer_wait_empty(s, hw, b));
}

/* ---- the result ---- */

enum { LOCATIONS_REPORTED = 1000, LIVE_TAG = 1000 };

static int order_location_compare(const void *a, const void *b)
{
    const struct order_location *x = a, *y = b;

    if (x->cycles != y->cycles)
        return x->cycles > y->cycles ? -1 : 1;
    if (x->times != y->times)
        return x->times > y->times ? -1 : 1;
    if (x->addr != y->addr)
        return x->addr < y->addr ? -1 : 1;
    return (int)x->kind - (int)y->kind;
}

/* A program whose accesses the order decided: the loads and stores to which it applied are those of the program, not of the times. */
static void store_buffers_take_live(struct sim *s)
{
    uint64_t code[2], times;
    size_t at = 0;
    uint64_t key;
    uint32_t tag;

    for (struct order_location *p; (p = map_next(&s->buffers.location, &at, &key, &tag));)
        p->times = p->kind >= ORDER_WAIT_KINDS ? 0 : p->times;
    for (uint32_t i = 0; (times = source_overtaken(s->source, i, &code[0], &code[1])); i++)
        for (unsigned k = 0; k < 2; k++) {
            unsigned kind = k == 0 ? ORDER_WAIT_early_load : ORDER_WAIT_overtaken_store;
            struct order_location *p = map_put(&s->buffers.location, code[k], LIVE_TAG + kind);
            if (!p)
                continue;
            p->kind = (uint8_t)kind;
            p->addr = code[k];
            p->process = s->source->thread[0].process;
            p->times += times;
        }
}

void store_buffers_result(struct sim *s, struct sim_result *ret)
{
    const struct store_buffers *b = &s->buffers;
    const struct order_location *p;
    size_t at = 0;
    uint64_t key;
    uint32_t tag;

    if (!b->buffer)
        return;
    if (s->source->stops_at_accesses)
        store_buffers_take_live(s);
    ret->order = calloc(s->hw_threads, sizeof *ret->order);
    ret->order_location = calloc(b->location.count + 1, sizeof *ret->order_location);
    assert(ret->order && ret->order_location);
    ret->orders = s->hw_threads;
    for (uint32_t i = 0; i < s->hw_threads; i++)
        ret->order[i] = b->counts[i];
    while ((p = map_next(&b->location, &at, &key, &tag)))
        if (p->times)
            ret->order_location[ret->order_locations++] = *p;
    qsort(ret->order_location, ret->order_locations, sizeof *ret->order_location, order_location_compare);
    if (ret->order_locations > LOCATIONS_REPORTED)
        ret->order_locations = LOCATIONS_REPORTED;
    for (uint32_t i = 0; s->hooks.listener && s->hooks.listener->location && i < ret->order_locations; i++)
        s->hooks.listener->location(s->hooks.listener->self, &ret->order_location[i]);
}
