/* SPDX-License-Identifier: MIT */
/* Translated blocks and their shapes. A block begins unknown: its accesses are written down one by one. After an execution to
 * its end it is regular, if each of its instructions did what its kind promises, and from then on addresses alone are
 * enough. Odd blocks (gathers, store-conditionals, more references than an item can hold) stay as they were. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "capture/qemu/plugin/plugin.h"

/* ---- from QEMU ---- */

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* Of a page of code and the address at which it was translated. */
static uint32_t page_number(const void *host, uint64_t pc)
{
    plugin.pages.value_size = sizeof(uint32_t);
    uint32_t *number = map_put(&plugin.pages, mix((uint64_t)(uintptr_t)host >> 12, pc >> 12), 0);

    if (!number)
        return 0; /* shared by what had no room */
    if (*number == 0)
        *number = (uint32_t)plugin.pages.count;
    return *number;
}

static void read_site(const struct qemu_plugin_tb *tb, size_t i, struct block *b, uint64_t *hash)
{
    struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
    uint8_t bytes[GUEST_BYTES] = { 0 };
    size_t n = qemu_plugin_insn_size(insn);
    struct site *s = &b->site[i];
    uint64_t words[2];

    n = n < sizeof bytes ? n : sizeof bytes;
    qemu_plugin_insn_data(insn, bytes, n);
    memcpy(words, bytes, sizeof words);
    *hash = mix(mix(mix(*hash, words[0]), words[1]), n);
    plugin.guest->decode(bytes, n, qemu_plugin_insn_vaddr(insn), &s->guest);
    s->index = (uint16_t)i;
    s->block = b;
    uint32_t size =
        s->guest.operand[0].size > s->guest.operand[1].size ? s->guest.operand[0].size : s->guest.operand[1].size;
    s->last_inside = size && size <= 16 ? (uint16_t)(4096 - size) : 4080;
}

static void characterize(struct block *b)
{
    for (uint32_t i = 0; i < b->insns; i++) {
        const struct guest_insn *g = &b->site[i].guest;
        bool is_last = i + 1 == b->insns;
        if (g->access == GUEST_ODD || (g->access == GUEST_REPEATED && !is_last))
            b->is_odd = true;
        if (is_last) {
            b->repeats = g->access == GUEST_REPEATED;
            b->is_call = g->is_call;
        }
    }
}

static void block_free(struct block *b)
{
    free(b->site);
    free(b);
}

struct block *block_new(const struct qemu_plugin_tb *tb, bool is_kernel)
{
    struct block *b = mem_alloc(1, sizeof *b);
    uint64_t hash = qemu_plugin_tb_vaddr(tb);

    b->pc = qemu_plugin_tb_vaddr(tb);
    b->insns = (uint32_t)qemu_plugin_tb_n_insns(tb);
    b->slots = SLOTS_NONE;
    b->is_kernel = is_kernel;
    b->site = mem_alloc(b->insns, sizeof *b->site);
    for (uint32_t i = 0; i < b->insns; i++)
        read_site(tb, i, b, &hash);
    characterize(b);
    pthread_mutex_lock(&plugin.lock);
    const void *host = qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(tb, 0));
    b->page = page_number(host, b->pc);
    b->host_page = (uint64_t)(uintptr_t)host >> 12;
    plugin.seen.value_size = sizeof b;
    struct block **known = map_put(&plugin.seen, mix(hash, b->page), b->insns);
    if (known && *known && (*known)->pc == b->pc) {
        block_free(b);
        b = *known;
    } else if (known) {
        *known = b;
    }
    pthread_mutex_unlock(&plugin.lock);
    atomic_fetch_add_explicit(&plugin.blocks, 1, memory_order_relaxed);
    return b;
}

struct block *block_at(struct block *b, uint64_t pc)
{
    struct block *origin = b->origin ? b->origin : b, *at;

    pthread_mutex_lock(&plugin.lock);
    for (at = origin; at && at->pc != pc; at = at->elsewhere)
        ;
    if (!at) {
        at = mem_alloc(1, sizeof *at);
        *at = *origin;
        at->pc = pc;
        at->moved_by = pc - origin->pc;
        at->origin = origin;
        at->normal = at->shapes = NULL;
        at->slots = SLOTS_NONE;
        at->elsewhere = origin->elsewhere;
        origin->elsewhere = at;
    }
    pthread_mutex_unlock(&plugin.lock);
    return at;
}

/* ---- shapes ---- */

/* A shape that is being made, with the values of its slots. */
struct draft {
    uint16_t first, end, operands, slots;
    struct shape_operand operand[PEET_SLOTS];
    uint64_t value[PEET_SLOTS];
};

static bool is_shape(const struct shape *s, const struct draft *d)
{
    if (s->first != d->first || s->end != d->end || s->operands != d->operands || s->slots != d->slots)
        return false;
    for (unsigned i = 0; i < d->operands; i++) {
        const struct shape_operand *a = &s->operand[i], *b = &d->operand[i];
        if (a->size != b->size || a->index != b->index || a->kind != b->kind || a->slot != b->slot
            || a->count != b->count || a->down != b->down)
            return false;
    }
    return true;
}

static struct shape *make_shape(struct block *b, const struct draft *d)
{
    struct shape *s = mem_alloc(1, sizeof *s + d->operands * sizeof *s->operand);

    s->block = b;
    s->first = d->first;
    s->end = d->end;
    s->operands = d->operands;
    s->slots = d->slots;
    memcpy(s->operand, d->operand, d->operands * sizeof *d->operand);
    return s;
}

static struct shape *find_shape(struct block *b, const struct draft *d)
{
    struct shape *s;

    pthread_mutex_lock(&plugin.lock);
    if (b->normal && is_shape(b->normal, d)) {
        s = b->normal;
    } else {
        for (s = b->shapes; s && !is_shape(s, d); s = s->next)
            ;
        if (!s) {
            s = make_shape(b, d);
            s->next = b->shapes;
            b->shapes = s;
        }
    }
    pthread_mutex_unlock(&plugin.lock);
    return s;
}

struct shape *block_cut(struct block *b, uint32_t end)
{
    const struct shape *normal = b->normal;
    struct draft d = { .end = (uint16_t)end };

    for (unsigned i = 0; i < normal->operands && normal->operand[i].index < end; i++)
        d.operand[d.operands++] = normal->operand[i];
    d.slots = d.operands;
    return find_shape(b, &d);
}

/* ---- from a journal ---- */

/* The accesses of one instruction. */
struct told {
    const struct access *at;
    unsigned count;
};

static struct told told_of(const struct journal *j, uint32_t index, unsigned *from)
{
    struct told t = { j->access + *from, 0 };

    while (*from < j->count && j->access[*from].index == index) {
        ++*from;
        t.count++;
    }
    return t;
}

static void draft_operand(struct draft *d, uint32_t index, uint8_t kind, uint32_t size, uint64_t addr)
{
    if (d->slots == PEET_SLOTS) {
        atomic_fetch_add(&plugin.lost, 1);
        return;
    }
    d->operand[d->operands++] =
        (struct shape_operand){ .size = size, .index = (uint16_t)index, .kind = kind, .slot = (uint8_t)d->slots };
    d->value[d->slots++] = addr;
}

static uint64_t lowest(struct told t)
{
    uint64_t low = t.at[0].addr;

    for (unsigned i = 1; i < t.count; i++)
        low = t.at[i].addr < low ? t.at[i].addr : low;
    return low;
}

/* As QEMU told them; a load and a store of the same bytes is an update. */
static void draft_each(struct draft *d, uint32_t index, struct told t)
{
    for (unsigned i = 0; i < t.count; i++) {
        const struct access *a = &t.at[i], *b = i + 1 < t.count ? &t.at[i + 1] : a;
        bool is_update = !a->is_store && b->is_store && a->addr == b->addr && a->shift == b->shift;
        uint8_t kind = is_update ? PEET_UPDATE : a->is_store ? PEET_STORE : PEET_LOAD;
        draft_operand(d, index, kind, 1u << a->shift, a->addr);
        i += is_update;
    }
}

static void draft_repeated(struct draft *d, const struct site *s, const struct journal *j)
{
    const struct guest_insn *g = &s->guest;
    bool two_loads = g->operands == 2 && g->operand[1].kind == PEET_LOAD;
    uint64_t loads = j->repeated[0].count, stores = j->repeated[1].count;
    uint64_t count = two_loads ? loads / 2 : g->stores ? stores : loads;
    uint64_t begin = two_loads ? j->repeated[0].second : j->repeated[g->stores].first;
    uint8_t number = (uint8_t)(d->slots + g->operands);

    for (unsigned i = 0; i < g->operands; i++) {
        uint64_t first = j->repeated[g->operand[i].kind == PEET_STORE].first;
        if (two_loads && i == 0)
            first = begin; /* QEMU loads from %rdi before it loads from %rsi */
        draft_operand(d, s->index, g->operand[i].kind, g->operand[i].size, first);
        d->operand[d->operands - 1].count = (uint8_t)(1 + number);
        d->operand[d->operands - 1].down = count > 1 && j->repeated[g->stores].last < begin;
    }
    d->value[d->slots++] = count;
}

static void draft_insn(struct draft *d, const struct site *s, struct told t, const struct journal *j)
{
    const struct guest_insn *g = &s->guest;

    if (g->access == GUEST_REPEATED && s->index + 1u == s->block->insns) {
        draft_repeated(d, s, j);
    } else if (t.count == 0) {
        return;
    } else if (g->access == GUEST_SEVERAL && g->operands == 2 && t.count == 2) {
        draft_operand(d, s->index, g->operand[0].kind, g->operand[0].size, t.at[0].addr);
        draft_operand(d, s->index, g->operand[1].kind, g->operand[1].size, t.at[1].addr);
    } else if (g->operands == 1 && (g->access != GUEST_ODD || g->operand[0].size)) {
        uint32_t size = g->operand[0].size ? g->operand[0].size : 1u << t.at[0].shift;
        draft_operand(d, s->index, g->operand[0].kind, size, lowest(t));
    } else {
        draft_each(d, s->index, t);
    }
}

static size_t draft_put(struct block *b, const struct draft *d, uint64_t *words)
{
    if (d->end == d->first)
        return 0;
    words[0] = (uint64_t)(uintptr_t)find_shape(b, d);
    memcpy(words + 1, d->value, d->slots * sizeof *words);
    return 1u + d->slots;
}

/* Slots that an instruction adds when the block is regular; -1: it did something else than its kind promises. */
static int regular_slots(const struct site *s, struct told t)
{
    switch (s->guest.access) {
    case GUEST_ONE: return t.count == 1 ? 1 : -1;
    case GUEST_SEVERAL: return t.count == s->guest.operands ? (int)t.count : -1;
    case GUEST_WIDE: return t.count > 0 && lowest(t) == t.at[0].addr ? 1 : -1;
    case GUEST_NONE:
    case GUEST_FAULTS: return t.count == 0 ? 0 : -1;
    default: return -1;
    }
}

/* The draft is of a whole execution: from now on the block is regular, or odd. */
static void settle(struct block *b, const struct draft *d, const struct journal *j)
{
    struct block *origin = b->origin ? b->origin : b;
    unsigned from = 0, before = 0;
    uint32_t i;

    for (i = 0; i < b->insns; i++) {
        struct site *s = &origin->site[i];
        int slots = regular_slots(s, told_of(j, i, &from));
        if (slots < 0)
            break;
        s->before = (uint16_t)before;
        s->slots = (uint16_t)slots;
        before += (unsigned)slots;
    }
    if (i < b->insns || before != d->slots) {
        b->is_odd = origin->is_odd = true;
        atomic_fetch_add(&plugin.odd_blocks, 1);
        return;
    }
    struct shape *normal = find_shape(b, d);
    b->slots = d->slots;
    __atomic_store_n(&b->normal, normal, __ATOMIC_RELEASE);
}

size_t block_say(struct block *b, uint32_t first, uint32_t end, const struct journal *j, uint64_t *words)
{
    struct draft d = { .first = (uint16_t)first };
    unsigned from = 0;
    size_t n = 0;
    bool in_pieces = false;

    for (uint32_t i = first; i < end; i++) {
        const struct site *s = &b->site[i];
        while (from < j->count && j->access[from].index < i)
            from++;
        struct told t = told_of(j, i, &from);
        if (d.slots + t.count + 4 > PEET_SLOTS && i > d.first) {
            d.end = (uint16_t)i;
            n += draft_put(b, &d, words + n);
            d = (struct draft){ .first = (uint16_t)i };
            in_pieces = true;
        }
        draft_insn(&d, s, t, j);
        if (n + 2 * PEET_SLOTS > WORDS_MAX)
            break;
    }
    d.end = (uint16_t)end;
    bool is_whole = first == 0 && end == b->insns && !j->is_full && !j->is_computed && !b->repeats;
    if (is_whole && !b->is_odd && !b->normal) {
        if (in_pieces)
            b->is_odd = true;
        else
            settle(b, &d, j);
    }
    return n + draft_put(b, &d, words + n);
}

struct shape *block_normal(struct block *b)
{
    struct shape *normal = __atomic_load_n(&b->normal, __ATOMIC_ACQUIRE), *model;

    if (normal || !b->origin || (model = __atomic_load_n(&b->origin->normal, __ATOMIC_ACQUIRE)) == NULL)
        return normal;
    struct draft d = { .end = model->end, .operands = model->operands, .slots = model->slots };
    memcpy(d.operand, model->operand, model->operands * sizeof *d.operand);
    normal = find_shape(b, &d);
    b->slots = model->slots;
    __atomic_store_n(&b->normal, normal, __ATOMIC_RELEASE);
    return normal;
}

/* ---- to the trace ---- */

int shape_define(struct shape *s, struct peet_writer *w, struct peet_err *err)
{
    static struct peet_insn insn[4096]; /* there is one writer */
    static struct peet_operand operand[PEET_SLOTS];
    struct peet_block b = { .insns = (uint16_t)(s->end - s->first),
                            .operands = s->operands,
                            .slots = s->slots,
                            .insn = insn,
                            .operand = operand };

    for (unsigned i = 0; i < b.insns; i++) {
        insn[i] = s->block->site[s->first + i].guest.insn;
        insn[i].addr += s->block->moved_by;
        insn[i].target += insn[i].target ? s->block->moved_by : 0;
        insn[i].flags |= s->block->is_kernel ? PEET_FL_KERNEL : 0;
    }
    for (unsigned i = 0; i < s->operands; i++) {
        const struct shape_operand *o = &s->operand[i];
        operand[i] = (struct peet_operand){ .size = o->size,
                                            .insn = (uint16_t)(o->index - s->first),
                                            .kind = o->kind,
                                            .base = (uint8_t)(PEET_SRC_SLOT + o->slot),
                                            .size_src = o->count ? (uint8_t)(PEET_SRC_SLOT + o->count - 1) : 0,
                                            .down = o->down };
    }
    return peet_writer_block(w, &b, &s->item, err);
}
