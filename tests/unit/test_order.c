/* SPDX-License-Identifier: MIT */
/* Memory orders as executors use them whose loads return at once: bytes against flat memory, and litmus tests under random schedules. */
#include <stdlib.h>

#include "check.h"
#include "litmus/explore.h"
#include "litmus/test.h"
#include "random.h"
#include "sim/order/order.h"

static uint64_t load_bytes(const uint8_t *memory, uint64_t address, uint32_t size)
{
    uint64_t value = 0;

    for (uint32_t i = 0; i < size; i++)
        value |= (uint64_t)memory[address + i] << 8 * i;
    return value;
}

static void store_bytes(uint8_t *memory, uint64_t address, uint32_t size, uint64_t value)
{
    for (uint32_t i = 0; i < size; i++)
        memory[address + i] = (uint8_t)(value >> 8 * i);
}

/* Lets a pending store perform. */
static void perform(struct order_buffer *b, int slot, uint8_t *memory)
{
    const struct order_op *op = &b->op[slot];

    CHECK(order_may_perform(b, slot));
    store_bytes(memory, op->address, op->size, op->value);
    order_retire(b, slot);
}

static void make_room(struct order_buffer *b, const struct order_op *op, uint8_t *memory, uint64_t *state)
{
    for (int slot; (slot = order_wait(b, op, draw(state, 1 << 20))) != ORDER_NONE;)
        perform(b, slot, memory);
}

static void every_order_has_a_name_and_says_what_it_is(void)
{
    for (size_t i = 0; memory_orders[i]; i++) {
        CHECK_EQ(order_find(memory_orders[i]->name), memory_orders[i]);
        CHECK(strlen(memory_orders[i]->summary) > 20);
        for (size_t j = 0; j < i; j++)
            CHECK(strcmp(memory_orders[i]->name, memory_orders[j]->name) != 0);
    }
    CHECK_EQ(order_find("no such order"), NULL);
}

/* One step of a thread alone; `flat` is memory in which stores perform when they issue. */
static void step_alone(struct order_buffer *b, uint8_t *memory, uint8_t *flat, uint64_t *state)
{
    struct order_op op = { .size = (uint8_t)(1 + draw(state, 8)),
                           .address = draw(state, 24),
                           .flags = (uint8_t)draw(state, 4) };

    op.value = draw(state, 1 << 30) * draw(state, 1 << 30);
    switch (draw(state, 6)) {
    case 0:
    case 1:
        op.access = ORDER_STORE;
        make_room(b, &op, memory, state);
        order_issue(b, &op);
        store_bytes(flat, op.address, op.size, op.value);
        break;
    case 2:
        op.access = ORDER_ATOMIC;
        make_room(b, &op, memory, state);
        CHECK_EQ(load_bytes(memory, op.address, op.size), load_bytes(flat, op.address, op.size));
        store_bytes(memory, op.address, op.size, op.value);
        store_bytes(flat, op.address, op.size, op.value);
        break;
    case 3: order_fence(b, (enum order_fence)draw(state, 3)); break;
    case 4:
        for (int slot = order_drain(b, UINT64_MAX, draw(state, 1 << 20)); slot != ORDER_NONE; slot = ORDER_NONE)
            perform(b, slot, memory);
        break;
    default:
        op.access = ORDER_LOAD;
        make_room(b, &op, memory, state);
        CHECK_EQ(order_value(b, &op, load_bytes(memory, op.address, op.size)), load_bytes(flat, op.address, op.size));
    }
    CHECK((uint32_t)__builtin_popcountll(b->stores) <= b->config.stores);
}

/* However bytes of accesses overlap, and whatever drains when. */
static void a_thread_alone_reads_what_it_wrote_under_every_order(void)
{
    uint64_t state = 1;

    for (size_t i = 0; memory_orders[i]; i++)
        for (int run = 0; run < 60; run++) {
            struct order_config config = { .stores = (uint32_t)draw(&state, 3) * 13,
                                           .drain = draw(&state, 2) ? ORDER_DRAIN_RANDOM : ORDER_DRAIN_OLDEST,
                                           .no_forwarding = draw(&state, 4) == 0 };
            struct order_buffer b;
            uint8_t memory[32] = { 0 }, flat[32] = { 0 };
            order_init(&b, memory_orders[i], &config);
            for (int step = 0; step < 1000; step++)
                step_alone(&b, memory, flat, &state);
            for (int slot; (slot = order_drain(&b, UINT64_MAX, 0)) != ORDER_NONE;)
                perform(&b, slot, memory);
            CHECK_EQ(b.pending, 0);
            CHECK_EQ(memcmp(memory, flat, sizeof memory), 0);
        }
}

static void stores_drain_in_the_order_of_the_model(void)
{
    struct order_config config = { .drain = ORDER_DRAIN_RANDOM };
    struct order_op x = { .address = 0, .size = 8, .access = ORDER_STORE },
                    y = { .address = 8, .size = 8, .access = ORDER_STORE };

    for (size_t i = 0; memory_orders[i]; i++)
        for (int fenced = 0; fenced < 2; fenced++) {
            bool is_late = false;
            for (uint64_t random = 0; random < 8; random++) {
                struct order_buffer b;
                order_init(&b, memory_orders[i], &config);
                int first = order_issue(&b, &x);
                if (fenced)
                    order_fence(&b, ORDER_FENCE_STORES);
                order_issue(&b, &y);
                is_late |= order_drain(&b, UINT64_MAX, random) != first;
            }
            CHECK_EQ(is_late, !fenced && !(memory_orders[i]->keeps[ORDER_STORE] & ORDER_STORE));
        }
}

static void an_atomic_reserves_its_bytes_between_its_load_and_its_store(void)
{
    struct order_buffer b;
    struct order_op store = { .address = 8, .size = 4, .access = ORDER_STORE }, atomic = store;

    order_init(&b, &order_pso, NULL);
    atomic.access = ORDER_ATOMIC;
    int earlier = order_issue(&b, &store), load = order_issue(&b, &atomic);
    CHECK_EQ(__builtin_popcountll(b.pending), 3);
    CHECK(!order_reserves(&b, 8, 4));
    order_retire(&b, load); /* it reads the earlier store */
    CHECK(!order_reserves(&b, 8, 4));
    order_retire(&b, earlier);
    CHECK(order_reserves(&b, 8, 4));
    CHECK(order_reserves(&b, 11, 1));
    CHECK(!order_reserves(&b, 12, 4));
    order_retire(&b, load + 1);
    CHECK(!order_reserves(&b, 8, 4));
}

/* ---- litmus tests by an executor whose loads return at once ---- */

struct live_thread {
    struct order_buffer buffer;
    uint32_t next; /* instruction */
    int32_t loaded[LITMUS_MAX_ACCESSES];
};

struct live {
    const struct litmus_test *t;
    struct live_thread thread[4];
    uint8_t memory[8 * 8];
    uint64_t state;
};

static int32_t live_operand(const struct live_thread *h, const struct litmus_operand *o)
{
    return o->is_loaded ? h->loaded[o->load] : o->constant;
}

static void live_instruction(struct live *v, struct live_thread *h, const struct litmus_instruction *i)
{
    struct order_op op = { .address = (uint64_t)i->location * 8, .size = 4, .flags = (uint8_t)i->flags };

    if (i->kind == LITMUS_FENCE)
        order_fence(&h->buffer, i->fence);
    if (i->kind == LITMUS_FENCE || i->kind == LITMUS_REGISTER)
        return;
    op.access = i->kind == LITMUS_LOAD ? ORDER_LOAD : i->kind == LITMUS_STORE ? ORDER_STORE : ORDER_ATOMIC;
    op.value = (uint32_t)live_operand(h, &i->value);
    make_room(&h->buffer, &op, v->memory, &v->state);
    uint64_t memory = load_bytes(v->memory, op.address, op.size);
    if (i->kind == LITMUS_STORE)
        order_issue(&h->buffer, &op);
    else
        h->loaded[i->load] = (int32_t)order_value(&h->buffer, &op, memory);
    if (i->kind == LITMUS_ATOMIC) {
        int32_t value = (int32_t)(uint32_t)op.value, other = live_operand(h, &i->other);
        value = litmus_atomic_result(i->atomic, h->loaded[i->load], value, other);
        store_bytes(v->memory, op.address, op.size, (uint32_t)value);
    }
}

/* One schedule: a thread at a time has its next instruction, or a store drains. */
static void live_run(struct live *v, const struct order_model *order)
{
    struct order_config config = { .stores = 1 + (uint32_t)draw(&v->state, 4), .drain = ORDER_DRAIN_RANDOM };
    uint64_t eagerness = draw(&v->state, 4);
    bool runs = true;

    for (uint32_t u = 0; u < v->t->threads; u++) {
        v->thread[u].next = 0;
        order_init(&v->thread[u].buffer, order, &config);
    }
    for (uint32_t i = 0; i < v->t->locations; i++)
        store_bytes(v->memory, i * 8, 4, (uint32_t)v->t->location[i].initial);
    while (runs) {
        struct live_thread *h = &v->thread[draw(&v->state, v->t->threads)];
        const struct litmus_thread *from = &v->t->thread[h - v->thread];
        int slot = order_drain(&h->buffer, UINT64_MAX, draw(&v->state, 1 << 20));
        bool has_ended = h->next == from->instructions;
        if (slot != ORDER_NONE && (has_ended || draw(&v->state, 4) < eagerness))
            perform(&h->buffer, slot, v->memory);
        else if (!has_ended)
            live_instruction(v, h, &from->instruction[h->next++]);
        runs = false;
        for (uint32_t u = 0; u < v->t->threads; u++)
            runs |= v->thread[u].next < v->t->thread[u].instructions || v->thread[u].buffer.pending;
    }
}

/* The number of the outcome among those that the explorer found; count: it is none of them. */
static size_t live_outcome(const struct live *v, const struct litmus_outcomes *o)
{
    uint32_t n = v->t->observables;
    int32_t outcome[16];
    size_t k = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct litmus_observed *p = &v->t->observed[i];
        const struct live_thread *h = &v->thread[p->is_register ? p->thread : 0];
        outcome[i] = p->is_register ? live_operand(h, &v->t->thread[p->thread].reg[p->index].value)
                                    : (int32_t)load_bytes(v->memory, p->index * 8, 4);
    }
    while (k < o->count && memcmp(o->value + k * n, outcome, n * sizeof *outcome))
        k++;
    return k;
}

static void live_test(const struct litmus_builtin *builtin, const struct order_model *order)
{
    static struct live v;
    struct litmus_outcomes o;
    bool seen[64] = { false }, delays_loads = order->keeps[ORDER_LOAD] != ORDER_ATOMIC;
    size_t count = 0;
    struct peet_err err;
    struct litmus_test *t;

    if (!CHECK_EQ(litmus_parse_short(builtin->name, builtin->program, builtin->condition, &t, &err), 0)
        || !CHECK_EQ(litmus_explore(t, &(struct explore_config){ .order = order }, &o, &err), 0))
        return;
    v = (struct live){ .t = t, .state = 1 };
    for (int run = 0; run < 3000 || (run < 100000 && count < o.count && !delays_loads); run++) {
        live_run(&v, order);
        size_t k = live_outcome(&v, &o);
        if (!CHECK(k < o.count && k < 64)) {
            printf("# %s under %s\n", t->name, order->name);
            break;
        }
        count += !seen[k];
        seen[k] = true;
    }
    /* Only stores are delayed here: not loads, nor the stores of atomics. */
    if (!delays_loads && !strchr(builtin->program, 'X') && !CHECK_EQ(count, o.count))
        printf("# %s under %s\n", t->name, order->name);
    CHECK(count <= o.count);
    litmus_outcomes_release(&o);
    litmus_free(t);
}

static void loads_that_return_at_once_show_only_allowed_outcomes_and_all_of_delayed_stores(void)
{
    for (size_t i = 0; memory_orders[i]; i++)
        for (const struct litmus_builtin *b = litmus_builtins; b->name; b++)
            live_test(b, memory_orders[i]);
}

int main(void)
{
    RUN(every_order_has_a_name_and_says_what_it_is);
    RUN(a_thread_alone_reads_what_it_wrote_under_every_order);
    RUN(stores_drain_in_the_order_of_the_model);
    RUN(an_atomic_reserves_its_bytes_between_its_load_and_its_store);
    RUN(loads_that_return_at_once_show_only_allowed_outcomes_and_all_of_delayed_stores);
    return check_done();
}
