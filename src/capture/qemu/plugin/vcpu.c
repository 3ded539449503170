/* SPDX-License-Identifier: MIT */
/* Call-backs while a processor executes. All functions run on that processor's thread. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "capture/qemu/plugin/plugin.h"
#include "peet/mark_guest.h"

/* ---- registers and memory ---- */

struct vcpu *vcpu_of(unsigned cpu)
{
    return (struct vcpu *)(void *)(plugin.vcpus + cpu * sizeof(struct vcpu));
}

/* Compares names by address first: nearly all of them are strings of the guest_isa. */
static struct qemu_plugin_register *find_register(struct vcpu_rest *r, const char *name)
{
    for (unsigned i = 0; i < r->regs; i++)
        if (r->reg[i].name == name)
            return r->reg[i].handle;
    struct qemu_array *all = qemu_plugin_get_registers();
    struct qemu_register *at = (struct qemu_register *)(void *)all->data;
    for (unsigned i = 0; i < all->len; i++)
        if (strcmp(at[i].name, name) == 0) {
            if (r->regs < REGISTERS_KNOWN) {
                r->reg[r->regs].name = name;
                r->reg[r->regs++].handle = at[i].handle;
            }
            return at[i].handle;
        }
    return NULL;
}

uint64_t vcpu_register(struct vcpu *v, const char *name)
{
    struct vcpu_rest *r = v->rest;
    struct qemu_plugin_register *handle = find_register(r, name);
    uint64_t value = 0;

    if (!handle)
        return 0;
    g_byte_array_set_size(r->bytes, 0);
    int n = qemu_plugin_read_register(handle, r->bytes);
    if (n > 0)
        memcpy(&value, r->bytes->data, n < 8 ? (size_t)n : 8);
    return value;
}

bool vcpu_memory(struct vcpu *v, uint64_t addr, void *into, size_t n)
{
    struct qemu_bytes *bytes = v->rest->bytes;

    if (!qemu_plugin_read_memory_vaddr(addr, bytes, n) || bytes->len < n)
        return false;
    memcpy(into, bytes->data, n);
    return true;
}

/* Reads byte by byte: the string may be at the end of a mapping. */
char *vcpu_string(struct vcpu *v, uint64_t addr)
{
    char text[512];
    size_t n = 0;

    while (addr && n + 1 < sizeof text && vcpu_memory(v, addr + n, text + n, 1) && text[n])
        n++;
    text[n] = '\0';
    return mem_string(text);
}

static uint64_t probe_register(void *context, const char *name)
{
    return vcpu_register(context, name);
}

static bool probe_memory(void *context, uint64_t addr, void *into, size_t n)
{
    return vcpu_memory(context, addr, into, n);
}

void on_vcpu(uint64_t id, unsigned cpu)
{
    (void)id;
    plugin.vcpus = qemu_plugin_scoreboard_find(plugin.score, 0);
    struct vcpu *v = vcpu_of(cpu);
    if (v->rest)
        return; /* again, after a reset */
    v->index = cpu;
    v->rest = mem_alloc(1, sizeof *v->rest);
    v->rest->bytes = g_byte_array_new();
    v->journal = mem_alloc(1, sizeof *v->journal);
    v->tag = mem_alloc(PAGE_TAGS, sizeof *v->tag);
    v->epoch = 1;
}

const struct guest_probe *vcpu_probe(struct vcpu *v)
{
    v->rest->probe = (struct guest_probe){ probe_register, probe_memory, v }; /* entries of a scoreboard can move */
    return &v->rest->probe;
}

/* ---- words ---- */

void vcpu_put(struct vcpu *v, const struct trace_item *name, const uint64_t *slots, size_t n)
{
    if (v->limit - v->at < (ptrdiff_t)n + 1)
        buffer_next(v);
    *v->at++ = (uint64_t)(uintptr_t)name;
    memcpy(v->at, slots, n * sizeof *slots);
    v->at += n;
}

void vcpu_put_before(struct vcpu *v, const struct trace_item *name, const uint64_t *slots, size_t n)
{
    if (v->limit - v->at < BLOCK_ROOM)
        buffer_next(v);
    size_t open = v->open && !v->logs ? (size_t)(v->at - v->start) : 0;
    uint64_t *at = v->at - open;
    memmove(at + n + 1, at, open * sizeof *at);
    *at = (uint64_t)(uintptr_t)name;
    memcpy(at + 1, slots, n * sizeof *slots);
    v->at += n + 1;
    v->start = v->at - open;
}

void vcpu_event(struct vcpu *v, uint32_t kind, const uint64_t *args)
{
    vcpu_put(v, event_item(kind), args, (size_t)peet_event_arity(kind));
}

void vcpu_use_journal(struct vcpu *v)
{
    struct journal *j = v->journal;

    v->at = v->start;
    v->logs = true;
    j->count = 0;
    j->is_full = j->is_computed = false;
    if (v->open->repeats)
        memset(j->repeated, 0, sizeof j->repeated);
}

void vcpu_open(struct vcpu *v, struct block *b, uint32_t first)
{
    if (v->limit - v->at < BLOCK_ROOM)
        buffer_next(v);
    v->open = b;
    v->first = first;
    v->start = v->at;
    struct trace_item *regular_item = block_regular_item(b);
    if (!regular_item || first > 0) {
        vcpu_use_journal(v);
    } else {
        v->logs = false;
        *v->at++ = (uint64_t)(uintptr_t)regular_item;
    }
}

static void put_journal(struct vcpu *v, uint32_t end)
{
    uint64_t *words = v->rest->words;
    size_t n = block_describe(v->open, v->first, end, v->journal, words);

    if (v->journal->is_full)
        atomic_fetch_add(&plugin.count.lost, 1);
    for (size_t i = 0; i < n;) {
        const struct trace_item *s = (const struct trace_item *)(uintptr_t)words[i];
        vcpu_put(v, s, words + i + 1, s->slots);
        i += 1u + s->slots;
    }
}

void vcpu_close(struct vcpu *v, uint32_t end)
{
    struct block *b = v->open;

    if (v->logs) {
        v->at = v->start;
        if (end > v->first)
            put_journal(v, end);
    } else if (end == 0) {
        v->at = v->start;
    } else if (end < b->insns) {
        struct trace_item *cut = block_item_before(b, end);
        *v->start = (uint64_t)(uintptr_t)cut;
        v->at = v->start + 1 + cut->slots;
    } else if (v->at - v->start - 1 != b->slots) { /* other accesses than those of the regular block: not recorded */
        v->at = v->start;
        atomic_fetch_add(&plugin.count.lost, b->insns);
    }
    v->open = NULL;
    v->is_reentered = false;
}

/* ---- where a block was left ---- */

/* Whether QEMU has reported accesses of the instruction. */
static bool has_accessed(const struct vcpu *v, const struct block_insn *s)
{
    if (!v->logs)
        return v->at - v->start - 1 > s->before;
    for (unsigned i = 0; i < v->journal->count; i++)
        if (v->journal->access[i].index == s->index)
            return true;
    return false;
}

/* Index of the open block's instruction at pc; b->insns: none. */
static uint32_t open_index_at(const struct vcpu *v, uint64_t pc)
{
    const struct block *b = v->open;
    uint32_t i = v->first;

    while (i < b->insns && b->insn[i].guest.insn.addr + b->moved_by != pc)
        i++;
    return i;
}

/* Number of instructions of the open block that were executed before the kernel was entered. */
static uint32_t insns_executed(const struct vcpu *v, const struct guest_entry *e)
{
    const struct block *b = v->open;
    uint32_t at = open_index_at(v, e->pc);

    if (e->is_call || v->is_reentered || at == b->insns)
        return b->insns;
    bool fails = e->is_fault || (e->is_vague && b->insn[at].guest.access == GUEST_FAULTS);
    return fails ? at : b->insns;
}

/* Closes an open block that is not regular, or was not executed as a regular one. QEMU may have left it, without entering the kernel, to execute
 * one of its instructions alone: the one at which `next` begins, if it has made no access. */
void vcpu_close_before(struct vcpu *v, const struct block *next)
{
    const struct block *b = v->open;
    uint32_t at = v->is_reentered ? b->insns : open_index_at(v, next->pc), end = b->insns;

    if (at < b->insns && b->insn[at].guest.operands > 0 && b->insn[at].guest.access != GUEST_REPEATED
        && !has_accessed(v, &b->insn[at]))
        end = at;
    vcpu_close(v, end);
}

/* ---- call-backs ---- */

bool vcpu_reenters(struct vcpu *v, const struct block *next)
{
    const struct block *b = v->open;

    if (!b->repeats || next->pc != b->insn[b->insns - 1].guest.insn.addr + b->moved_by)
        return false;
    v->is_reentered = true;
    return true;
}

__attribute__((noinline)) static void begin_block_slow(struct vcpu *v, struct block *b)
{
    uint64_t pc;

    if (v->state != STATE_TARGET && !vcpu_arrive(v, b, &pc))
        return;
    if (v->open && v->open->is_kernel)
        vcpu_close(v, v->open->insns);
    if (b->page >= v->page_offsets_room || v->page_offsets[b->page] != 0)
        b = block_at_pc(v, b);
    if (v->open && v->at - v->start - 1 != v->open->slots) {
        if (vcpu_reenters(v, b))
            return;
        if (v->logs && v->journal->is_computed)
            unreported_note_frames(v);
        vcpu_close_before(v, b);
    }
    if (v->thread->calls)
        calls_return(v, b);
    vcpu_open(v, b, 0);
    if (v->thread->calls) /* the next block takes the slow path, too */
        v->page_offsets_room = 0;
}

/* The fast path: opens a regular block after another one that was executed as a regular block. */
void on_block(unsigned cpu, void *block)
{
    struct vcpu *v = vcpu_of(cpu);
    struct block *b = block;
    struct trace_item *regular_item = __atomic_load_n(&b->regular_item, __ATOMIC_ACQUIRE);
    uint64_t *at = v->at;

    if (__builtin_expect(v->state != STATE_TARGET || !v->open || at - v->start - 1 != v->open->slots || !regular_item
                             || b->page >= v->page_offsets_room || v->page_offsets[b->page] != 0
                             || v->limit - at < BLOCK_ROOM,
                         0)) {
        begin_block_slow(v, b);
        return;
    }
    v->open = b;
    v->first = 0;
    v->logs = false;
    v->start = at;
    *at = (uint64_t)(uintptr_t)regular_item;
    v->at = at + 1;
}

void on_unreported_block(unsigned cpu, void *block)
{
    struct vcpu *v = vcpu_of(cpu);

    begin_block_slow(v, block);
    if (v->state == STATE_TARGET && v->open && !v->is_reentered)
        unreported_open(v);
}

/* Keeps the open string instruction and its accesses in the thread until the thread resumes. */
static void save_string_insn(struct vcpu *v)
{
    struct guest_thread *t = v->thread;

    t->string_insn.is_suspended = true;
    t->string_insn.block = v->open;
    t->string_insn.first = v->first;
    if (!t->string_insn.journal)
        t->string_insn.journal = mem_alloc(1, sizeof *t->string_insn.journal);
    struct journal *free_one = t->string_insn.journal;
    t->string_insn.journal = v->journal;
    v->journal = free_one;
    const struct guest_insn *last = &t->string_insn.block->insn[t->string_insn.block->insns - 1].guest;
    if (last->operands == 2 && last->operand[1].kind == PEET_LOAD)
        t->string_insn.journal->repeated[0].count &=
            ~UINT64_C(1); /* the first of two loads, which will be done again */
    v->at = v->start;
    v->open = NULL;
    v->is_reentered = false;
}

/* Notes the system call by which the thread has entered the kernel. */
static void note_call(struct vcpu *v)
{
    struct guest_thread *t = v->thread;
    enum guest_call call = plugin.isa->call_kind(vcpu_register(v, plugin.isa->number));

    memory_called(v, call);
    t->kernel.is_cloning = call == GUEST_CALL_CLONE;
    t->kernel.is_returning = call == GUEST_CALL_SIGRETURN;
    t->kernel.is_in_exec = call == GUEST_CALL_EXEC;
    if (call == GUEST_CALL_EXIT_ALL)
        t->process->has_ended = true;
    if (call == GUEST_CALL_EXIT || call == GUEST_CALL_EXIT_ALL)
        thread_end(v, call == GUEST_CALL_EXIT ? PEET_END_EXIT : PEET_END_PROCESS_EXIT);
}

void vcpu_interrupt(struct vcpu *v)
{
    struct block *b = v->open;
    struct guest_thread *t = v->thread;
    struct guest_entry e;

    t->kernel.is_cloning = t->kernel.is_returning = t->kernel.is_in_exec = t->kernel.is_context_borrowed = false;
    t->kernel.has_resume = plugin.isa->read_entry(vcpu_probe(v), &e);
    if (!t->kernel.has_resume) {
        atomic_fetch_add(&plugin.count.unknown_entries, 1);
        e = (struct guest_entry){ 0 };
    }
    t->kernel.resume = e.pc;
    if (b->repeats && !e.is_call && e.pc == b->insn[b->insns - 1].guest.insn.addr + b->moved_by)
        save_string_insn(v);
    else
        vcpu_close(v, insns_executed(v, &e));
    if (e.is_call && !plugin.settings.other_os)
        note_call(v);
}

void on_kernel(unsigned cpu, void *unused)
{
    struct vcpu *v = vcpu_of(cpu);

    (void)unused;
    if (v->open && v->thread)
        vcpu_interrupt(v);
    if (v->thread)
        vcpu_leave(v);
    v->state = STATE_UNKNOWN;
}

/* ---- accesses ---- */

static void log_access(struct vcpu *v, uint32_t info, uint64_t addr, const struct block_insn *s)
{
    struct journal *j = v->journal;

    if (s->index < v->first)
        return;
    if (j->count == JOURNAL_ROOM) {
        j->is_full = true;
        return;
    }
    unsigned at = j->count++;
    for (; at > 0 && j->access[at - 1].index > s->index;
         at--) /* accesses of later instructions were computed already */
        j->access[at] = j->access[at - 1];
    j->access[at] = (struct access){ .addr = addr,
                                     .index = s->index,
                                     .shift = (uint8_t)qemu_plugin_mem_size_shift(info),
                                     .is_store = qemu_plugin_mem_is_store(info) };
}

static void note_page(struct vcpu *v, uint32_t info, uint64_t addr, const struct block_insn *s)
{
    uint64_t page = addr >> 12;

    if (v->tag[page % PAGE_TAGS] != (page ^ v->epoch))
        buffer_page(v, info, addr);
    if ((addr & 4095) > s->last_in_page && (addr & 4095) + (UINT64_C(1) << qemu_plugin_mem_size_shift(info)) > 4096)
        buffer_page(v, info, (addr | 4095) + 1);
}

/* The slow path: the page has no frame in the buffer, or the block is not regular. */
__attribute__((noinline)) static void access_slow(struct vcpu *v, uint32_t info, uint64_t addr,
                                                  const struct block_insn *s)
{
    if (plugin.settings.physical)
        note_page(v, info, addr, s);
    if (v->logs)
        log_access(v, info, addr, s);
    else
        *v->at++ = addr;
}

/* on_access and on_virtual_access are most of the cost of recording, and the whole cost for programs that are no targets. So they read no
 * registers. */
void on_access(unsigned cpu, uint32_t info, uint64_t addr, void *insn)
{
    struct vcpu *v = vcpu_of(cpu);
    const struct block_insn *s = insn;
    uint64_t *at = v->at, page = addr >> 12;

    if (!at)
        return;
    if (__builtin_expect(v->tag[page % PAGE_TAGS] != (page ^ v->epoch) || (addr & 4095) > s->last_in_page || v->logs,
                         0)) {
        access_slow(v, info, addr, s);
        return;
    }
    *at = addr;
    v->at = at + 1;
}

void on_virtual_access(unsigned cpu, uint32_t info, uint64_t addr, void *insn)
{
    struct vcpu *v = vcpu_of(cpu);
    uint64_t *at = v->at;

    if (!at)
        return;
    if (__builtin_expect(v->logs, 0)) {
        access_slow(v, info, addr, insn);
        return;
    }
    *at = addr;
    v->at = at + 1;
}

void on_first_access(unsigned cpu, uint32_t info, uint64_t addr, void *insn)
{
    struct vcpu *v = vcpu_of(cpu);
    const struct block_insn *s = insn;

    if (!v->at)
        return;
    if (plugin.settings.physical)
        note_page(v, info, addr, s);
    if (v->logs)
        log_access(v, info, addr, s);
    else if (v->at - v->start - 1 == s->before)
        *v->at++ = addr;
}

void on_repeated_access(unsigned cpu, uint32_t info, uint64_t addr, void *insn)
{
    struct vcpu *v = vcpu_of(cpu);
    bool is_store = qemu_plugin_mem_is_store(info);

    if (!v->at)
        return;
    if (plugin.settings.physical)
        note_page(v, info, addr, insn);
    struct journal *j = v->journal;
    if (j->repeated[is_store].count == 0)
        j->repeated[is_store].first = addr;
    else if (j->repeated[is_store].count == 1)
        j->repeated[is_store].second = addr;
    j->repeated[is_store].last = addr;
    j->repeated[is_store].count++;
}

/* ---- patterns ---- */

void on_pattern(unsigned cpu, void *candidate)
{
    struct vcpu *v = vcpu_of(cpu);
    const struct candidate *c = candidate;
    const struct guest_isa *g = plugin.isa;
    struct pattern_insn step = { .bytes = c->bytes, .length = c->length };

    if (!plugin.settings.pattern.is_marker) {
        step.pc = c->insn->guest.insn.addr;
        step.sp = vcpu_register(v, g->sp);
        step.space = vcpu_register(v, g->root) & g->root_mask;
        if (!pattern_step(&v->rest->search, &plugin.settings.pattern, &step))
            return;
        thread_begin(v, c->insn);
        return;
    }
    uint64_t operation = vcpu_register(v, g->arg[0]);
    if (operation == PEET_MARK_BEGIN) {
        thread_begin(v, c->insn);
    } else if (operation == PEET_MARK_END && v->state == STATE_TARGET && v->open) {
        vcpu_close(v, c->insn->index);
        thread_suspend(v);
    } else if (operation == PEET_MARK_MAPS) {
        maps_announced(v);
    }
}
