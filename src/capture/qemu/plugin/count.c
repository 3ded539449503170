/* SPDX-License-Identifier: MIT */
/* mode=count: numbers of instructions and references per thread. QEMU adds inline, block by block; the plugin is called only when a processor
 * enters or leaves the kernel. The sum since the thread arrived is the thread's, except for the rest of a block that was left before its end.
 * References are counted by decoding: a masked one counts as a whole, an operand of a string instruction once. */
#include "capture/qemu/plugin/plugin.h"

static uint64_t block_weight(const struct block *b, uint32_t first, uint32_t end)
{
    uint64_t references = 0;

    for (uint32_t i = first; i < end; i++)
        references += b->insn[i].guest.operands;
    return (uint64_t)(end - first) | references << 32;
}

static void count_exclude(struct vcpu *v, uint64_t sum)
{
    v->count_base += sum;
}

static void count_add(struct vcpu *v, struct guest_thread *t)
{
    uint64_t sum = v->count - v->count_base;

    t->count.instructions += sum & UINT32_MAX;
    t->count.references += sum >> 32;
}

static uint64_t repeated_pc(const struct block *b)
{
    return b->repeats ? b->insn[b->insns - 1].guest.insn.addr : 0;
}

/* Called before QEMU adds the block's numbers. */
static void on_counted_block(unsigned cpu, void *block)
{
    struct vcpu *v = vcpu_of(cpu);
    struct block *b = block;
    struct guest_thread *t = thread_here(v, vcpu_register(v, plugin.isa->pc));

    v->thread = t;
    if (!t)
        return;
    v->count_base = v->count;
    v->counted = NULL;
    if (t->count.repeats_at && t->count.repeats_at == b->pc)
        count_exclude(v, block_weight(b, 0, 1));
    t->count.repeats_at = 0;
}

/* A string instruction that is entered again was counted already. */
static void on_counted_repeat(unsigned cpu, void *block)
{
    struct vcpu *v = vcpu_of(cpu);
    const struct block *b = block;

    if (v->counted && repeated_pc(v->counted) == b->pc)
        count_exclude(v, block_weight(b, 0, 1));
}

static uint32_t block_index_at(const struct block *b, uint64_t pc)
{
    uint32_t i = 0;

    while (i < b->insns && (b->insn[i].guest.insn.addr - pc) % 4096 != 0) /* wherever the page is mapped */
        i++;
    return i;
}

static void end_count(struct vcpu *v, const struct block *b, const struct guest_entry *e)
{
    uint32_t at = block_index_at(b, e->pc), last = b->insns - 1;

    if (e->is_call || at == b->insns)
        return;
    bool fails = e->is_fault || (e->is_vague && b->insn[at].guest.access == GUEST_FAULTS);
    if (at == last && b->repeats)
        v->thread->count.repeats_at = b->insn[last].guest.insn.addr;
    else if (fails)
        count_exclude(v, block_weight(b, at, b->insns));
}

void on_counted_kernel(unsigned cpu, void *unused)
{
    struct vcpu *v = vcpu_of(cpu);
    struct guest_thread *t = v->thread;
    struct guest_entry e;

    (void)unused;
    v->state = STATE_UNKNOWN;
    if (!t)
        return;
    t->kernel.has_resume = plugin.isa->read_entry(vcpu_probe(v), &e);
    if (!t->kernel.has_resume)
        e = (struct guest_entry){ 0 };
    t->kernel.resume = e.pc;
    if (v->counted)
        end_count(v, v->counted, &e);
    count_add(v, t);
    v->counted = NULL;
    enum guest_call call = e.is_call && !plugin.settings.other_os
                               ? plugin.isa->call_kind(vcpu_register(v, plugin.isa->number))
                               : GUEST_CALL_OTHER;
    t->kernel.is_cloning = call == GUEST_CALL_CLONE;
    t->kernel.is_context_borrowed = false;
    if (call == GUEST_CALL_EXIT_ALL)
        t->process->has_ended = true;
    if (call == GUEST_CALL_EXIT || call == GUEST_CALL_EXIT_ALL)
        thread_end(v, PEET_END_EXIT);
    else
        vcpu_leave(v);
}

/* The block was added when it began; its instructions after the marker are the thread's. */
static void begin_count(struct vcpu *v, const struct block_insn *at)
{
    const struct block *b = at->block;
    bool again;

    if (thread_is_marked(v))
        return;
    if (v->state == STATE_TARGET && v->thread) {
        count_exclude(v, block_weight(b, at->index, b->insns));
        count_add(v, v->thread);
        vcpu_leave(v);
    }
    thread_announced(v, &again);
    v->count_base = v->count - block_weight(b, at->index + 1u, b->insns);
    plugin_arm();
}

void on_counted_pattern(unsigned cpu, void *candidate)
{
    struct vcpu *v = vcpu_of(cpu);
    const struct candidate *c = candidate;
    const struct guest_isa *g = plugin.isa;
    const struct block *b = c->insn->block;
    uint64_t operation = vcpu_register(v, g->arg[0]);

    if (!plugin.settings.pattern.is_marker) {
        struct pattern_insn step = { c->insn->guest.insn.addr, vcpu_register(v, g->sp),
                                     vcpu_register(v, g->root) & g->root_mask, c->bytes, c->length };
        if (pattern_step(&v->rest->search, &plugin.settings.pattern, &step))
            begin_count(v, c->insn);
    } else if (operation == 1) {
        begin_count(v, c->insn);
    } else if (operation == 2 && v->state == STATE_TARGET && v->thread) {
        count_exclude(v, block_weight(b, c->insn->index, b->insns));
        count_add(v, v->thread);
        thread_suspend(v);
    }
}

void translate_counted(struct qemu_plugin_tb *tb, bool is_armed, bool may_mark)
{
    struct block *b = block_new(tb, false);

    if (is_armed) {
        qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, on_counted_block, QEMU_READS_REGISTERS, QEMU_EQ,
                                                  plugin.word_state, STATE_UNKNOWN, b);
        if (b->repeats && b->insns == 1)
            qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, on_counted_repeat, QEMU_NO_REGISTERS, QEMU_EQ,
                                                      plugin.word_state, STATE_TARGET, b);
    }
    qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, QEMU_ADD, plugin.word_count, block_weight(b, 0, b->insns));
    qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, QEMU_STORE, plugin.word_counted, (uint64_t)(uintptr_t)b);
    for (uint32_t i = 0; may_mark && i < b->insns; i++)
        watch_pattern(qemu_plugin_tb_get_insn(tb, i), &b->insn[i]);
}
