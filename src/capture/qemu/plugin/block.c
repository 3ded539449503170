/* SPDX-License-Identifier: MIT */
/* Translation blocks and their items. At first all accesses of a block go to the journal. After an execution to its end the block is regular if
 * each instruction made the accesses of its kind; from then on its event words are addresses. Other blocks are irregular and keep using the
 * journal: gathers, store-conditionals, blocks with more references than an item can hold. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "capture/qemu/plugin/plugin.h"

/* ---- from QEMU ---- */

static uint64_t block_hash_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* The number of a page of code at the address at which it was translated; 0: no memory for a number. */
static uint32_t page_number(const void *host, uint64_t pc)
{
    plugin.pages.value_size = sizeof(uint32_t);
    uint32_t *number = map_put(&plugin.pages, block_hash_mix((uint64_t)(uintptr_t)host >> 12, pc >> 12), 0);

    if (!number)
        return 0; /* shared by all pages without a number */
    if (*number == 0)
        *number = (uint32_t)plugin.pages.count;
    return *number;
}

static void read_site(const struct qemu_plugin_tb *tb, size_t i, struct block *b, uint64_t *hash)
{
    struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
    uint8_t bytes[GUEST_BYTES] = { 0 };
    size_t n = qemu_plugin_insn_size(insn);
    struct block_insn *s = &b->insn[i];
    uint64_t words[2];

    n = n < sizeof bytes ? n : sizeof bytes;
    qemu_plugin_insn_data(insn, bytes, n);
    memcpy(words, bytes, sizeof words);
    *hash = block_hash_mix(block_hash_mix(block_hash_mix(*hash, words[0]), words[1]), n);
    plugin.isa->decode(bytes, n, qemu_plugin_insn_vaddr(insn), &s->guest);
    s->index = (uint16_t)i;
    s->block = b;
    uint32_t size =
        s->guest.operand[0].size > s->guest.operand[1].size ? s->guest.operand[0].size : s->guest.operand[1].size;
    s->last_in_page = size && size <= 16 ? (uint16_t)(4096 - size) : 4080;
}

static void block_characterize(struct block *b)
{
    for (uint32_t i = 0; i < b->insns; i++) {
        const struct guest_insn *g = &b->insn[i].guest;
        bool is_last = i + 1 == b->insns;
        if (g->access == GUEST_IRREGULAR || (g->access == GUEST_REPEATED && !is_last))
            b->is_irregular = true;
        if (is_last) {
            b->repeats = g->access == GUEST_REPEATED;
            b->is_call = g->is_call;
        }
    }
}

static void block_free(struct block *b)
{
    free(b->insn);
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
    b->insn = mem_alloc(b->insns, sizeof *b->insn);
    for (uint32_t i = 0; i < b->insns; i++)
        read_site(tb, i, b, &hash);
    block_characterize(b);
    pthread_mutex_lock(&plugin.lock);
    const void *host = qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(tb, 0));
    b->page = page_number(host, b->pc);
    b->host_page = (uint64_t)(uintptr_t)host >> 12;
    plugin.blocks.value_size = sizeof b;
    struct block **known = map_put(&plugin.blocks, block_hash_mix(hash, b->page), b->insns);
    if (known && *known && (*known)->pc == b->pc) {
        block_free(b);
        b = *known;
    } else if (known) {
        *known = b;
    }
    pthread_mutex_unlock(&plugin.lock);
    atomic_fetch_add_explicit(&plugin.count.blocks, 1, memory_order_relaxed);
    return b;
}

struct block *block_alias(struct block *b, uint64_t pc)
{
    struct block *origin = b->origin ? b->origin : b, *at;

    pthread_mutex_lock(&plugin.lock);
    for (at = origin; at && at->pc != pc; at = at->next_alias)
        ;
    if (!at) {
        at = mem_alloc(1, sizeof *at);
        *at = *origin;
        at->pc = pc;
        at->moved_by = pc - origin->pc;
        at->origin = origin;
        at->regular_item = at->other_items = NULL;
        at->slots = SLOTS_NONE;
        at->next_alias = origin->next_alias;
        origin->next_alias = at;
    }
    pthread_mutex_unlock(&plugin.lock);
    return at;
}

/* ---- items ---- */

/* An item under construction, with the values of its slots. */
struct item_draft {
    uint16_t first, end, operands, slots;
    struct item_operand operand[PEET_SLOTS];
    uint64_t value[PEET_SLOTS];
};

static bool item_equals_draft(const struct trace_item *s, const struct item_draft *d)
{
    if (s->first != d->first || s->end != d->end || s->operands != d->operands || s->slots != d->slots)
        return false;
    for (unsigned i = 0; i < d->operands; i++) {
        const struct item_operand *a = &s->operand[i], *b = &d->operand[i];
        if (a->size != b->size || a->index != b->index || a->kind != b->kind || a->slot != b->slot
            || a->count != b->count || a->down != b->down)
            return false;
    }
    return true;
}

static struct trace_item *item_new(struct block *b, const struct item_draft *d)
{
    struct trace_item *s = mem_alloc(1, sizeof *s + d->operands * sizeof *s->operand);

    s->block = b;
    s->first = d->first;
    s->end = d->end;
    s->operands = d->operands;
    s->slots = d->slots;
    memcpy(s->operand, d->operand, d->operands * sizeof *d->operand);
    return s;
}

static struct trace_item *block_find_item(struct block *b, const struct item_draft *d)
{
    struct trace_item *s;

    pthread_mutex_lock(&plugin.lock);
    if (b->regular_item && item_equals_draft(b->regular_item, d)) {
        s = b->regular_item;
    } else {
        for (s = b->other_items; s && !item_equals_draft(s, d); s = s->next)
            ;
        if (!s) {
            s = item_new(b, d);
            s->next = b->other_items;
            b->other_items = s;
        }
    }
    pthread_mutex_unlock(&plugin.lock);
    return s;
}

struct trace_item *block_item_before(struct block *b, uint32_t end)
{
    const struct trace_item *regular_item = b->regular_item;
    struct item_draft d = { .end = (uint16_t)end };

    for (unsigned i = 0; i < regular_item->operands && regular_item->operand[i].index < end; i++)
        d.operand[d.operands++] = regular_item->operand[i];
    d.slots = d.operands;
    return block_find_item(b, &d);
}

/* ---- from a journal ---- */

/* The accesses of one instruction. */
struct insn_accesses {
    const struct access *at;
    unsigned count;
};

static struct insn_accesses accesses_of(const struct journal *j, uint32_t index, unsigned *from)
{
    struct insn_accesses t = { j->access + *from, 0 };

    while (*from < j->count && j->access[*from].index == index) {
        ++*from;
        t.count++;
    }
    return t;
}

static void draft_operand(struct item_draft *d, uint32_t index, uint8_t kind, uint32_t size, uint64_t addr)
{
    if (d->slots == PEET_SLOTS) {
        atomic_fetch_add(&plugin.count.lost, 1);
        return;
    }
    d->operand[d->operands++] =
        (struct item_operand){ .size = size, .index = (uint16_t)index, .kind = kind, .slot = (uint8_t)d->slots };
    d->value[d->slots++] = addr;
}

static uint64_t lowest_address(struct insn_accesses t)
{
    uint64_t low = t.at[0].addr;

    for (unsigned i = 1; i < t.count; i++)
        low = t.at[i].addr < low ? t.at[i].addr : low;
    return low;
}

/* Adds each access as an operand; a load and a store of the same bytes are an update. */
static void draft_each(struct item_draft *d, uint32_t index, struct insn_accesses t)
{
    for (unsigned i = 0; i < t.count; i++) {
        const struct access *a = &t.at[i], *b = i + 1 < t.count ? &t.at[i + 1] : a;
        bool is_update = !a->is_store && b->is_store && a->addr == b->addr && a->shift == b->shift;
        uint8_t kind = is_update ? PEET_UPDATE : a->is_store ? PEET_STORE : PEET_LOAD;
        draft_operand(d, index, kind, 1u << a->shift, a->addr);
        i += is_update;
    }
}

static void draft_repeated(struct item_draft *d, const struct block_insn *s, const struct journal *j)
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

static void draft_insn(struct item_draft *d, const struct block_insn *s, struct insn_accesses t,
                       const struct journal *j)
{
    const struct guest_insn *g = &s->guest;

    if (g->access == GUEST_REPEATED && s->index + 1u == s->block->insns) {
        draft_repeated(d, s, j);
    } else if (t.count == 0) {
        return;
    } else if (g->access == GUEST_SEVERAL && g->operands == 2 && t.count == 2) {
        draft_operand(d, s->index, g->operand[0].kind, g->operand[0].size, t.at[0].addr);
        draft_operand(d, s->index, g->operand[1].kind, g->operand[1].size, t.at[1].addr);
    } else if (g->operands == 1 && (g->access != GUEST_IRREGULAR || g->operand[0].size)) {
        uint32_t size = g->operand[0].size ? g->operand[0].size : 1u << t.at[0].shift;
        draft_operand(d, s->index, g->operand[0].kind, size, lowest_address(t));
    } else {
        draft_each(d, s->index, t);
    }
}

static size_t draft_put(struct block *b, const struct item_draft *d, uint64_t *words)
{
    if (d->end == d->first)
        return 0;
    words[0] = (uint64_t)(uintptr_t)block_find_item(b, d);
    memcpy(words + 1, d->value, d->slots * sizeof *words);
    return 1u + d->slots;
}

/* Number of slots of the instruction in a regular block; -1: it made other accesses than its kind. */
static int regular_slots(const struct block_insn *s, struct insn_accesses t)
{
    switch (s->guest.access) {
    case GUEST_ONE: return t.count == 1 ? 1 : -1;
    case GUEST_SEVERAL: return t.count == s->guest.operands ? (int)t.count : -1;
    case GUEST_WIDE: return t.count > 0 && lowest_address(t) == t.at[0].addr ? 1 : -1;
    case GUEST_NONE:
    case GUEST_FAULTS: return t.count == 0 ? 0 : -1;
    default: return -1;
    }
}

/* Makes the block regular or irregular. The draft is of a whole execution. */
static void block_decide_regular(struct block *b, const struct item_draft *d, const struct journal *j)
{
    struct block *origin = b->origin ? b->origin : b;
    unsigned from = 0, before = 0;
    uint32_t i;

    for (i = 0; i < b->insns; i++) {
        struct block_insn *s = &origin->insn[i];
        int slots = regular_slots(s, accesses_of(j, i, &from));
        if (slots < 0)
            break;
        s->before = (uint16_t)before;
        s->slots = (uint16_t)slots;
        before += (unsigned)slots;
    }
    if (i < b->insns || before != d->slots) {
        b->is_irregular = origin->is_irregular = true;
        atomic_fetch_add(&plugin.count.irregular_blocks, 1);
        return;
    }
    struct trace_item *regular_item = block_find_item(b, d);
    b->slots = d->slots;
    __atomic_store_n(&b->regular_item, regular_item, __ATOMIC_RELEASE);
}

size_t block_describe(struct block *b, uint32_t first, uint32_t end, const struct journal *j, uint64_t *words)
{
    struct item_draft d = { .first = (uint16_t)first };
    unsigned from = 0;
    size_t n = 0;
    bool in_pieces = false;

    for (uint32_t i = first; i < end; i++) {
        const struct block_insn *s = &b->insn[i];
        while (from < j->count && j->access[from].index < i)
            from++;
        struct insn_accesses t = accesses_of(j, i, &from);
        if (d.slots + t.count + 4 > PEET_SLOTS && i > d.first) {
            d.end = (uint16_t)i;
            n += draft_put(b, &d, words + n);
            d = (struct item_draft){ .first = (uint16_t)i };
            in_pieces = true;
        }
        draft_insn(&d, s, t, j);
        if (n + 2 * PEET_SLOTS > WORDS_MAX)
            break;
    }
    d.end = (uint16_t)end;
    bool is_whole = first == 0 && end == b->insns && !j->is_full && !j->is_computed && !b->repeats;
    if (is_whole && !b->is_irregular && !b->regular_item) {
        if (in_pieces)
            b->is_irregular = true;
        else
            block_decide_regular(b, &d, j);
    }
    return n + draft_put(b, &d, words + n);
}

struct trace_item *block_regular_item(struct block *b)
{
    struct trace_item *regular_item = __atomic_load_n(&b->regular_item, __ATOMIC_ACQUIRE), *model;

    if (regular_item || !b->origin || (model = __atomic_load_n(&b->origin->regular_item, __ATOMIC_ACQUIRE)) == NULL)
        return regular_item;
    struct item_draft d = { .end = model->end, .operands = model->operands, .slots = model->slots };
    memcpy(d.operand, model->operand, model->operands * sizeof *d.operand);
    regular_item = block_find_item(b, &d);
    b->slots = model->slots;
    __atomic_store_n(&b->regular_item, regular_item, __ATOMIC_RELEASE);
    return regular_item;
}

/* ---- to the trace ---- */

int item_define(struct trace_item *s, struct peet_writer *w, struct peet_err *err)
{
    static struct peet_insn insn[4096]; /* there is one writer */
    static struct peet_operand operand[PEET_SLOTS];
    struct peet_block b = { .insns = (uint16_t)(s->end - s->first),
                            .operands = s->operands,
                            .slots = s->slots,
                            .insn = insn,
                            .operand = operand };

    for (unsigned i = 0; i < b.insns; i++) {
        insn[i] = s->block->insn[s->first + i].guest.insn;
        insn[i].addr += s->block->moved_by;
        insn[i].target += insn[i].target ? s->block->moved_by : 0;
        insn[i].flags |= s->block->is_kernel ? PEET_FL_KERNEL : 0;
    }
    for (unsigned i = 0; i < s->operands; i++) {
        const struct item_operand *o = &s->operand[i];
        operand[i] = (struct peet_operand){ .size = o->size,
                                            .insn = (uint16_t)(o->index - s->first),
                                            .kind = o->kind,
                                            .base = (uint8_t)(PEET_SRC_SLOT + o->slot),
                                            .size_src = o->count ? (uint8_t)(PEET_SRC_SLOT + o->count - 1) : 0,
                                            .down = o->down };
    }
    return peet_writer_block(w, &b, &s->item, err);
}
