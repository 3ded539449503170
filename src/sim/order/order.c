/* SPDX-License-Identifier: MIT */
#include "sim/order/order.h"

#include <assert.h>
#include <string.h>

#define X(name) &order_##name,
const struct order_model *const memory_orders[] = { MEMORY_ORDERS(X) NULL };
#undef X

const struct order_model *order_find(const char *name)
{
    for (const struct order_model *const *o = memory_orders; *o; o++)
        if (strcmp((*o)->name, name) == 0)
            return *o;
    return NULL;
}

void order_init(struct order_buffer *b, const struct order_model *order, const struct order_config *config)
{
    memset(b, 0, sizeof *b);
    b->order = order;
    if (config)
        b->config = *config;
    if (!b->config.stores || b->config.stores > ORDER_SLOTS)
        b->config.stores = ORDER_SLOTS;
}

static uint64_t order_bit(int slot)
{
    return UINT64_C(1) << slot;
}

/* The youngest of some slots: b->next is the oldest one, the slot before it the youngest. */
static int order_youngest(const struct order_buffer *b, uint64_t slots)
{
    uint64_t by_age = b->next ? slots >> b->next | slots << (ORDER_SLOTS - b->next) : slots;

    return (int)((63 - (unsigned)__builtin_clzll(by_age) + b->next) % ORDER_SLOTS);
}

static int order_oldest(const struct order_buffer *b, uint64_t slots)
{
    uint64_t by_age = b->next ? slots >> b->next | slots << (ORDER_SLOTS - b->next) : slots;

    return (int)(((unsigned)__builtin_ctzll(by_age) + b->next) % ORDER_SLOTS);
}

/* A bit for each of the first `size` bytes, 1 to 64. */
static uint64_t order_bytes(uint32_t size)
{
    return UINT64_MAX >> (64 - size);
}

/* The bytes of [address, address + size) that an operation covers: bit 0 is the byte at address. */
static uint64_t order_cover(const struct order_op *op, uint64_t address, uint32_t size)
{
    uint64_t ahead = op->address - address, back = address - op->address;

    if (ahead < size)
        return order_bytes(op->size) << ahead & order_bytes(size);
    return back < op->size ? order_bytes(op->size) >> back & order_bytes(size) : 0;
}

/* What an access waits for because of earlier accesses to its bytes; *ret_sources: earlier stores to them. A load waits for
 * a load of bytes that no store between the two writes, and, where it reads a pending store, for what that one's value needs. */
static uint64_t order_coherence(const struct order_buffer *b, const struct order_op *op, uint64_t *ret_sources)
{
    uint64_t open = order_bytes(op->size), wait = 0, sources = 0;

    for (uint64_t left = b->pending; left;) {
        int slot = order_youngest(b, left);
        const struct order_op *d = &b->op[slot];
        uint64_t cover = order_cover(d, op->address, op->size);
        left &= ~order_bit(slot);
        if (op->access & ORDER_STORE && cover) {
            wait |= order_bit(slot);
            sources |= d->access & ORDER_STORE ? order_bit(slot) : 0;
        }
        if (!(op->access & ORDER_LOAD) || !(cover & open))
            continue;
        if (!(d->access & ORDER_STORE) || b->config.no_forwarding)
            wait |= order_bit(slot);
        if (d->access & ORDER_STORE) {
            wait |= d->needs;
            sources |= order_bit(slot);
            open &= ~cover;
        }
    }
    *ret_sources = sources;
    return wait;
}

/* All for which an access waits if it is issued now. */
static uint64_t order_blockers(const struct order_buffer *b, const struct order_op *op, uint64_t *ret_sources)
{
    const struct order_model *o = b->order;
    uint64_t wait = op->needs | order_coherence(b, op, ret_sources);

    if (op->access & ORDER_LOAD)
        wait |= b->before_loads;
    if (op->access & ORDER_STORE)
        wait |= b->before_stores;
    if (op->access & o->keeps[ORDER_LOAD])
        wait |= b->loads;
    if (op->access & o->keeps[ORDER_STORE])
        wait |= b->stores;
    if (o->atomic_is_fence && op->access == ORDER_ATOMIC)
        wait |= b->pending;
    if (o->has_release && op->flags & ORDER_RELEASE && op->access & ORDER_STORE)
        wait |= b->pending;
    if (o->release_before_acquire && op->flags & ORDER_ACQUIRE && op->access & ORDER_LOAD)
        wait |= b->releases;
    return wait & b->pending;
}

/* Puts a load, a store, or an atomic that is a fence into the next slot. */
static int order_append(struct order_buffer *b, const struct order_op *op)
{
    const struct order_model *o = b->order;
    int slot = (int)b->next;
    uint64_t bit = order_bit(slot);

    assert(!(b->pending & bit) && op->size >= 1 && op->size <= ORDER_MAX_BYTES);
    for (uint64_t left = b->pending; left; left &= left - 1) {
        int i = __builtin_ctzll(left);
        b->blockers[i] &= ~bit; /* the slot was another operation's */
        b->sources[i] &= ~bit;
        b->op[i].needs &= ~bit;
    }
    b->blockers[slot] = order_blockers(b, op, &b->sources[slot]);
    b->op[slot] = *op;
    b->pending |= bit;
    b->loads |= op->access & ORDER_LOAD ? bit : 0;
    b->stores |= op->access & ORDER_STORE ? bit : 0;
    b->releases |= op->access & ORDER_STORE && op->flags & ORDER_RELEASE ? bit : 0;
    if ((o->has_release && op->access & ORDER_LOAD && op->flags & ORDER_ACQUIRE)
        || (o->atomic_is_fence && op->access == ORDER_ATOMIC)) {
        b->before_loads |= bit;
        b->before_stores |= bit;
    }
    b->halves &= ~bit;
    b->next = (b->next + 1) % ORDER_SLOTS;
    return slot;
}

int order_issue(struct order_buffer *b, const struct order_op *op)
{
    struct order_op part = *op;

    if (op->access != ORDER_ATOMIC || b->order->atomic_is_fence)
        return order_append(b, op);
    part.access = ORDER_LOAD;
    part.needs = 0;
    int load = order_append(b, &part);
    part.access = ORDER_STORE;
    part.needs = op->needs;
    int store = order_append(b, &part);
    b->halves |= order_bit(store);
    return load;
}

uint64_t order_fence(struct order_buffer *b, enum order_fence fence)
{
    uint64_t wait = fence == ORDER_FENCE_FULL ? b->pending : fence == ORDER_FENCE_STORES ? b->stores : b->loads;

    if (fence != ORDER_FENCE_STORES)
        b->before_loads |= wait;
    if (fence != ORDER_FENCE_LOADS)
        b->before_stores |= wait;
    return wait;
}

void order_retire(struct order_buffer *b, int slot)
{
    uint64_t *sets[] = { &b->pending, &b->loads, &b->stores, &b->releases, &b->before_loads, &b->before_stores };

    assert(b->pending & order_bit(slot) && order_may_perform(b, slot));
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        *sets[i] &= ~order_bit(slot);
}

int order_drain(const struct order_buffer *b, uint64_t among, uint64_t random)
{
    uint64_t may = 0;

    for (uint64_t left = b->stores & among; left; left &= left - 1)
        may |= order_may_perform(b, __builtin_ctzll(left)) ? left & -left : 0;
    if (!may)
        return ORDER_NONE;
    if (b->config.drain == ORDER_DRAIN_RANDOM) {
        for (uint64_t n = random % (unsigned)__builtin_popcountll(may); n; n--)
            may &= may - 1;
        return __builtin_ctzll(may);
    }
    return order_oldest(b, may);
}

int order_wait(const struct order_buffer *b, const struct order_op *op, uint64_t random)
{
    uint64_t sources, wait = order_blockers(b, op, &sources);

    if (op->access == ORDER_STORE) {
        if (b->pending & order_bit((int)b->next))
            wait = order_bit((int)b->next);
        else
            return (uint32_t)__builtin_popcountll(b->stores) < b->config.stores ? ORDER_NONE
                                                                                : order_drain(b, UINT64_MAX, random);
    }
    if (!wait)
        return ORDER_NONE;
    int slot = order_oldest(b, wait);
    while (!order_may_perform(b, slot))
        slot = order_oldest(b, b->blockers[slot] & b->pending);
    return slot;
}

int order_source(const struct order_buffer *b, uint64_t sources)
{
    sources &= b->pending;
    return sources ? order_youngest(b, sources) : ORDER_NONE;
}

enum order_covered order_covers(const struct order_buffer *b, const struct order_op *load)
{
    uint64_t covered = 0;

    for (uint64_t left = b->stores; left; left &= left - 1)
        covered |= order_cover(&b->op[__builtin_ctzll(left)], load->address, load->size);
    return covered == order_bytes(load->size) ? ORDER_COVERED : covered ? ORDER_COVERED_PARTLY : ORDER_COVERED_NOT;
}

int order_first_covering(const struct order_buffer *b, const struct order_op *load)
{
    uint64_t covering = 0;

    for (uint64_t left = b->stores; left; left &= left - 1)
        covering |= order_cover(&b->op[__builtin_ctzll(left)], load->address, load->size) ? left & -left : 0;
    return order_source(b, covering);
}

uint64_t order_value(const struct order_buffer *b, const struct order_op *load, uint64_t memory)
{
    uint64_t open = order_bytes(load->size);

    assert(load->size <= ORDER_VALUE_BYTES);

    for (uint64_t left = b->stores; left && open;) {
        int slot = order_youngest(b, left);
        const struct order_op *d = &b->op[slot];
        uint64_t bytes = order_cover(d, load->address, load->size) & open;
        left &= ~order_bit(slot);
        open &= ~bytes;
        for (; bytes; bytes &= bytes - 1) {
            unsigned byte = (unsigned)__builtin_ctzll(bytes), shift = 8 * byte;
            uint64_t from = d->value >> 8 * (load->address + byte - d->address) & 0xff;
            memory = (memory & ~(UINT64_C(0xff) << shift)) | from << shift;
        }
    }
    return memory;
}

bool order_reserves(const struct order_buffer *b, uint64_t address, uint32_t size)
{
    for (uint64_t left = b->pending & b->halves; left; left &= left - 1) {
        int store = __builtin_ctzll(left), load = (store + ORDER_SLOTS - 1) % ORDER_SLOTS;
        bool has_read = !(b->blockers[store] & b->pending & order_bit(load));
        if (has_read && !(b->sources[store] & b->pending) && order_cover(&b->op[store], address, size))
            return true;
    }
    return false;
}
