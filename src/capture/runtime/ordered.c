/* SPDX-License-Identifier: MIT */
/* Accesses by the memory order of a simulated machine (docs/design/live-orders.md). A hook precedes each shared access: other threads may run,
 * then the access is made by the program's own instruction.
 *
 * A domain's overlay has its pending stores. While a thread of the domain runs, memory shows the overlay; while none does, memory is
 * what all domains share. So an instruction reads what its domain holds, and the program's code and addresses stay as they are. The old bytes of
 * a store are saved by its hook, the new ones are read by the next hook or stop. */
#include "capture/runtime/host.h"
#include "capture/runtime/rt.h"
#include "sim/order/order.h"

enum { BYTES = ORDER_MAX_BYTES, STACK_GUARD = 4096 };

/* A pending store. Bytes that uninstrumented code has written since then are dead: that code's stores perform at once. */
struct overlay_store {
    uint64_t live;        /* a bit for each byte that is not dead */
    uint8_t value[BYTES]; /* what the store writes */
    uint8_t below[BYTES]; /* memory without it, while the domain's overlay is shown */
};

/* The overlay of a domain. */
struct overlay {
    struct order_buffer buffer;
    struct overlay_store store[ORDER_SLOTS]; /* by slot */
    uint64_t code[ORDER_SLOTS];              /* by slot: address of the instruction */
    bool is_begun, is_shown;
};

/* The store that the running thread's last hook has announced. */
struct announced_store {
    uint64_t addr;
    uint32_t size; /* bytes; 0: there is none */
    uint64_t code; /* address of the instruction */
    uint8_t below[BYTES];
};

static struct overlay overlay[RAW_THREADS];
static RT_TLS struct announced_store announced;

/* Lines that one thread alone has referred to, by a hash of the line. */
enum { LINE_SHIFT = 6, OWNERS = 1 << 16, OWNER_SHARED = UINT32_MAX };
static struct {
    uint64_t line;
    uint32_t thread; /* its number; OWNER_SHARED: several threads; 0: the entry is empty */
} owner[OWNERS];

bool peet_rt_is_ordered;

static uint32_t ordered_random(uint32_t below)
{
    struct raw_order *o = &peet_rt_header->order;

    o->random = o->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((o->random >> 33) % below);
}

static struct overlay *overlay_of(const struct raw_thread *entry)
{
    const struct raw_order *o = &peet_rt_header->order;
    struct overlay *d = &overlay[(entry->number - 1) / o->group % RAW_THREADS];
    const struct order_config config = { .stores = o->stores,
                                         .drain = o->drains_randomly ? ORDER_DRAIN_RANDOM : ORDER_DRAIN_OLDEST };

    if (!d->is_begun)
        order_init(&d->buffer, memory_orders[o->model - 1], &config);
    d->is_begun = true;
    return d;
}

static uint8_t *ordered_byte(uint64_t addr)
{
    return (uint8_t *)(uintptr_t)addr;
}

/* ---- overlays ---- */

/* Pending stores, oldest first. Returns their number. */
static unsigned overlay_list(const struct overlay *d, int slot[ORDER_SLOTS])
{
    unsigned n = 0;

    for (unsigned i = 0; i < ORDER_SLOTS; i++) {
        unsigned at = (d->buffer.next + i) % ORDER_SLOTS;
        if (d->buffer.pending >> at & 1)
            slot[n++] = (int)at;
    }
    return n;
}

/* Uninstrumented code has written a byte: no pending store may change it any more. */
static void overlay_kill_byte(struct overlay *d, uint64_t addr)
{
    for (uint64_t left = d->buffer.pending; left; left &= left - 1) {
        int i = __builtin_ctzll(left);
        if (addr - d->buffer.op[i].address < d->buffer.op[i].size)
            d->store[i].live &= ~(UINT64_C(1) << (addr - d->buffer.op[i].address));
    }
}

/* Takes the overlay out of memory. */
static void overlay_hide(struct overlay *d)
{
    int slot[ORDER_SLOTS];

    if (!d->is_shown)
        return;
    d->is_shown = false;
    for (unsigned n = overlay_list(d, slot); n-- > 0;) {
        struct overlay_store *x = &d->store[slot[n]];
        const struct order_op *op = &d->buffer.op[slot[n]];
        for (unsigned i = 0; i < op->size; i++) {
            uint8_t *at = ordered_byte(op->address + i);
            if (!(x->live >> i & 1))
                continue;
            if (*at == x->value[i])
                *at = x->below[i];
            else
                overlay_kill_byte(d, op->address + i);
        }
    }
}

/* Puts it into memory. */
static void overlay_show(struct overlay *d)
{
    int slot[ORDER_SLOTS];
    unsigned count = overlay_list(d, slot);

    if (d->is_shown)
        return;
    d->is_shown = true;
    for (unsigned n = 0; n < count; n++) {
        struct overlay_store *x = &d->store[slot[n]];
        const struct order_op *op = &d->buffer.op[slot[n]];
        for (unsigned i = 0; i < op->size; i++)
            if (x->live >> i & 1) {
                x->below[i] = *ordered_byte(op->address + i);
                *ordered_byte(op->address + i) = x->value[i];
            }
    }
}

/* The store performs: what the overlay hides has its value now. The overlay is shown. */
static void overlay_perform(struct overlay *d, int slot)
{
    const struct order_op op = d->buffer.op[slot];
    struct overlay_store *x = &d->store[slot];
    int list[ORDER_SLOTS];

    order_retire(&d->buffer, slot);
    unsigned count = overlay_list(d, list);
    for (unsigned i = 0; i < op.size; i++)
        for (unsigned n = 0; (x->live >> i & 1) && n < count; n++) {
            uint64_t k = op.address + i - d->buffer.op[list[n]].address;
            if (k < d->buffer.op[list[n]].size && d->store[list[n]].live >> k & 1) {
                d->store[list[n]].below[k] = x->value[i];
                break; /* the oldest one that hides the byte */
            }
        }
}

/* ---- stops ---- */

/* The announced store has been made by its instruction: it becomes pending. */
static void ordered_settle(struct overlay *d)
{
    if (announced.size == 0)
        return;
    const struct order_op op = { .address = announced.addr, .size = (uint8_t)announced.size, .access = ORDER_STORE };
    int slot = order_issue(&d->buffer, &op);
    struct overlay_store *x = &d->store[slot];
    d->code[slot] = announced.code;
    x->live = UINT64_MAX >> (64 - announced.size);
    for (unsigned i = 0; i < announced.size; i++) {
        x->value[i] = *ordered_byte(announced.addr + i);
        x->below[i] = announced.below[i];
    }
    announced.size = 0;
}

void peet_rt_order_leave(struct raw_thread *entry)
{
    struct overlay *d = overlay_of(entry);

    ordered_settle(d);
    overlay_hide(d);
}

void peet_rt_order_enter(struct raw_thread *entry)
{
    overlay_show(overlay_of(entry));
}

void peet_rt_order_continue(struct raw_thread *entry)
{
    peet_rt_is_ordered = peet_rt_header->controlled && peet_rt_header->order.model != 0;
    if (peet_rt_is_ordered)
        peet_rt_order_enter(entry);
}

/* Other threads may run, as the machine decides. */
static void ordered_yield(struct raw_thread *entry)
{
    peet_rt_order_leave(entry);
    peet_rt_stop_as(entry, RAW_ACCESS);
    peet_rt_order_enter(entry);
}

/* A store of the domain performs, or none: the order and chance decide. */
static void ordered_drain_some(struct overlay *d)
{
    int slot;

    if (ordered_random(peet_rt_header->order.delay + 2) == 0
        && (slot = order_drain(&d->buffer, UINT64_MAX, ordered_random(1 << 20))) != ORDER_NONE)
        overlay_perform(d, slot);
}

/* Waits until all stores of the domain have performed; other threads run in between. */
static void ordered_perform_all(struct raw_thread *entry)
{
    struct overlay *d = overlay_of(entry);

    while (d->buffer.pending) {
        ordered_drain_some(d);
        ordered_yield(entry);
    }
}

void peet_rt_order_event(unsigned kind)
{
    bool is_sync = kind <= PEET_EV_thread_end /* the first kinds */
                   || (kind >= PEET_EV_mutex_lock && kind <= PEET_EV_doall_join)
                   || (kind >= PEET_EV_range_read && kind <= PEET_EV_syscall)
                   || (kind >= PEET_EV_fork && kind <= PEET_EV_exec)
                   || (kind >= PEET_EV_futex_wait && kind <= PEET_EV_thread_cancel);
    struct raw_thread *entry = peet_rt_self.entry;

    if (!is_sync || !entry || peet_rt_self.handlers.active
        || memory_orders[peet_rt_header->order.model - 1] == &order_sc)
        return;
    ordered_settle(overlay_of(entry));
    ordered_perform_all(entry);
}

/* ---- hooks ---- */

/* Whether only the calling thread has referred to the line, which is noted. */
static bool ordered_is_private(const struct raw_thread *entry, uint64_t addr, uint32_t size)
{
    uint64_t line = addr >> LINE_SHIFT, at = (line ^ line >> 16) % OWNERS;

    if ((addr + size - 1) >> LINE_SHIFT != line)
        return false;
    if (owner[at].thread == 0) {
        owner[at].line = line;
        owner[at].thread = entry->number;
    }
    if (owner[at].line != line || owner[at].thread != entry->number) {
        owner[at].thread = OWNER_SHARED;
        return false;
    }
    return true;
}

static bool ordered_is_own_stack(const struct raw_thread *entry, uint64_t addr, uint64_t sp)
{
    return addr >= sp - STACK_GUARD && addr < entry->stack_high && sp >= entry->stack_low && sp < entry->stack_high;
}

/* The domain's stores for which an access waits perform. */
static void ordered_wait(struct overlay *d, const struct order_op *op)
{
    int slot;

    while ((slot = order_wait(&d->buffer, op, ordered_random(1 << 20))) != ORDER_NONE)
        overlay_perform(d, slot);
}

static void ordered_announce(struct overlay *d, const struct order_op *op, uint64_t code)
{
    ordered_wait(d, op);
    announced.code = code;
    announced.addr = op->address;
    announced.size = op->size;
    for (unsigned i = 0; i < op->size; i++)
        announced.below[i] = *ordered_byte(op->address + i);
}

static void ordered_note(uint64_t load, uint64_t store)
{
    struct raw_overtaken *list = peet_rt_header->order.overtaken;
    unsigned i = 0;

    while (i < RAW_OVERTAKEN && list[i].times && (list[i].load != load || list[i].store != store))
        i++;
    if (i == RAW_OVERTAKEN)
        return; /* those that were found first are reported */
    list[i].load = load;
    list[i].store = store;
    list[i].times++;
}

/* Notes the pending stores of other domains that a load does not see. */
static void ordered_note_pending(const struct overlay *own, const struct order_op *load, uint64_t code)
{
    for (unsigned i = 0; i < RAW_THREADS && overlay[i].is_begun; i++) {
        const struct overlay *d = &overlay[i];
        int slot = d == own || !d->buffer.pending ? ORDER_NONE : order_first_covering(&d->buffer, load);
        if (slot != ORDER_NONE)
            ordered_note(code, d->code[slot]);
    }
}

/* The access or fence that follows, under an order with store buffers. */
static void ordered_take(struct raw_thread *entry, struct overlay *d, uint64_t addr, uint32_t what, uint64_t code)
{
    uint32_t kind = what >> RAW_HOOK_KIND & 0xf;
    struct order_op op = { .address = addr, .size = (uint8_t)(what & RAW_HOOK_SIZE) };

    if (what & RAW_HOOK_FULL)
        ordered_perform_all(entry);
    else if (what & (RAW_HOOK_STORES | RAW_HOOK_LOADS))
        order_fence(&d->buffer, what & RAW_HOOK_STORES ? ORDER_FENCE_STORES : ORDER_FENCE_LOADS);
    else {
        op.access = what & RAW_HOOK_ATOMIC ? ORDER_ATOMIC : kind == PEET_LOAD ? ORDER_LOAD : ORDER_STORE;
        if (op.access == ORDER_STORE)
            ordered_announce(d, &op, code);
        else
            ordered_wait(d, &op);
        if (op.access != ORDER_STORE)
            ordered_note_pending(d, &op, code);
    }
}

void peet_rt_ordered_access(struct rt_registers *r)
{
    struct raw_thread *entry = peet_rt_self.entry;
    uint32_t what = (uint32_t)(&r->rip)[1];
    uint64_t addr = r->r14;
    bool is_fence = what & (RAW_HOOK_FULL | RAW_HOOK_STORES | RAW_HOOK_LOADS);

    if (!peet_rt_is_ordered || !peet_rt_is_controlled())
        return;
    struct overlay *d = overlay_of(entry);
    ordered_settle(d);
    if (!is_fence && ordered_is_own_stack(entry, addr, RT_ADDR(r))) {
        peet_rt_header->order.alone++;
        return;
    }
    bool may_skip = !(what & RAW_HOOK_ATOMIC) && ((what >> RAW_HOOK_KIND & 0xf) == PEET_LOAD || !d->buffer.pending);
    if (!is_fence && ordered_is_private(entry, addr, what & RAW_HOOK_SIZE) && may_skip) {
        peet_rt_header->order.alone++;
        return;
    }
    peet_rt_header->order.consulted++;
    do { /* each store that performs can be seen by others before the access */
        ordered_drain_some(d);
        ordered_yield(entry);
    } while (d->buffer.pending && ordered_random(2));
    if (d->buffer.order != &order_sc)
        ordered_take(entry, d, addr, what, r->rip);
}
