/* SPDX-License-Identifier: MIT */
/* Uninstrumented blocks: code of programs that are no targets. QEMU would report each of their accesses in vain. So the plugin does not request accesses
 * whose addresses follow from the registers at the beginning of the block. But processes that share a page (a library, a program started twice,
 * parent and child) share QEMU's translation, so that a target may execute such a block. Then the call-back of the block computes its accesses from
 * the registers: slow and exact. From then on the page counts as a target's; after LATE_BLOCKS_MAX such events all code is translated again.
 * For x86-64; of other guests all accesses are requested. Frames of computed accesses are read after the block, while QEMU still has them; after a
 * block that the kernel interrupts, the next access to the page gives its frame.
 * Assumes that the block's code is not changed while it is executed. */
#include "capture/qemu/plugin/plugin.h"
#include "capture/x86/insn.h"

enum { LATE_BLOCKS_MAX = 1024 };

static const char *const NAMES[X86_GPRS] = { "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                             "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15" };

static struct map target_pages;      /* set of pages with code of targets, by block.host_page; under plugin.lock */
static _Atomic unsigned late_blocks; /* number of executions of unreported blocks by targets */

/* ---- computable addresses ---- */

/* Which general registers follow from those at the beginning of a block, and their values. */
struct knowledge {
    struct x86_state state; /* only gpr is used; meaningless while a block is planned */
    unsigned known;         /* bit n: register n follows from the registers at the beginning of the block */
};

static bool is_register_known(const struct knowledge *k, uint8_t reg)
{
    return reg == X86_NONE || (k->known >> reg & 1);
}

static uint64_t register_value(const struct knowledge *k, uint8_t reg)
{
    return reg == X86_NONE ? 0 : k->state.gpr[reg];
}

static void knowledge_execute(struct knowledge *k, const struct x86_insn *in)
{
    const struct knowledge before = *k;

    k->known &= ~(unsigned)in->changes;
    for (unsigned i = 0; i < in->moves; i++) {
        const struct x86_move *m = &in->move[i];
        if (!is_register_known(&before, m->from) || !is_register_known(&before, m->other))
            continue;
        uint64_t other = register_value(&before, m->other) << m->shift, from = register_value(&before, m->from);
        uint64_t value = (m->minus ? from - other : from + other) + (uint64_t)m->add;
        k->state.gpr[m->to] = m->narrow ? (uint32_t)value : value;
        k->known |= 1u << m->to;
    }
}

/* Whether the instruction accesses exactly its operands, at known addresses. Updates are excluded: QEMU may leave the block to execute one alone,
 * which is visible only in the accesses that it has reported. */
static bool is_computable(const struct knowledge *k, const struct guest_insn *g, const struct x86_insn *in)
{
    bool is_plain =
        g->access == GUEST_ONE || g->access == GUEST_WIDE || (g->access == GUEST_SEVERAL && g->operands == 2);

    for (unsigned i = 0; is_plain && i < in->memories; i++) {
        const struct x86_memory *m = &in->memory[i];
        is_plain = (m->kind == PEET_LOAD || m->kind == PEET_STORE) && m->form == X86_PLAIN && m->segment == X86_FLAT
                   && is_register_known(k, m->base) && is_register_known(k, m->index);
    }
    return is_plain && in->memories == g->operands && g->operands > 0;
}

static void plan_computable(struct block *b, const struct qemu_plugin_tb *tb)
{
    struct knowledge k = { .known = (1u << X86_GPRS) - 1 };

    for (uint32_t i = 0; i < b->insns; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint8_t bytes[GUEST_BYTES] = { 0 };
        struct x86_insn in;
        size_t n = qemu_plugin_insn_data(insn, bytes, sizeof bytes);
        x86_decode(bytes, n, qemu_plugin_insn_vaddr(insn), &in);
        b->insn[i].is_computable = is_computable(&k, &b->insn[i].guest, &in);
        knowledge_execute(&k, &in);
    }
    b->is_planned = true;
}

/* ---- pages of targets ---- */

/* Under plugin.lock. */
static bool is_of_target(uint64_t root)
{
    const struct guest_process *p = plugin.processes;

    while (p && (p->root != root || p->has_ended))
        p = p->next;
    return p != NULL;
}

bool unreported_plan(struct block *b, const struct qemu_plugin_tb *tb, uint64_t root)
{
    bool is_unreported = plugin.settings.all_unreported;

    if (plugin.isa != &guest_x86_64 || b->host_page == 0)
        return false;
    pthread_mutex_lock(&plugin.lock);
    target_pages.value_size = 1;
    if (is_of_target(root))
        map_put(&target_pages, b->host_page, 0);
    else if (!map_find(&target_pages, b->host_page, 0))
        is_unreported = true;
    pthread_mutex_unlock(&plugin.lock);
    if (is_unreported && !b->is_planned)
        plan_computable(b, tb);
    return is_unreported;
}

/* ---- a target executes it ---- */

static void log_operands(struct vcpu *v, const struct knowledge *k, const struct x86_insn *in,
                         const struct block_insn *s)
{
    struct journal *j = v->journal;

    for (unsigned i = 0; i < in->memories; i++) {
        const struct x86_memory *m = &in->memory[i];
        if (j->count == JOURNAL_ROOM) {
            j->is_full = true;
            return;
        }
        j->access[j->count++] = (struct access){ .addr = x86_address(m, &k->state),
                                                 .index = s->index,
                                                 .shift = (uint8_t)__builtin_ctz(m->size),
                                                 .is_store = m->kind == PEET_STORE };
    }
}

static void compute_accesses(struct vcpu *v)
{
    const struct block *b = v->open;
    struct knowledge k = { .known = (1u << X86_GPRS) - 1 };

    for (unsigned i = 0; i < X86_GPRS; i++)
        k.state.gpr[i] = vcpu_register(v, NAMES[i]);
    for (uint32_t i = 0; i < b->insns; i++) {
        const struct block_insn *s = &b->insn[i];
        uint64_t pc = s->guest.insn.addr + b->moved_by;
        uint8_t bytes[GUEST_BYTES] = { 0 };
        struct x86_insn in;
        if (!vcpu_memory(v, pc, bytes, s->guest.insn.length)) {
            atomic_fetch_add(&plugin.count.lost, b->insns - i);
            return;
        }
        x86_decode(bytes, s->guest.insn.length, pc, &in);
        if (s->is_computable)
            log_operands(v, &k, &in, s);
        knowledge_execute(&k, &in);
    }
}

/* Uses the description of a load for stores, too: a page that can be written can be read. */
void unreported_note_frames(struct vcpu *v)
{
    const struct journal *j = v->journal;
    uint32_t info = plugin.settings.physical ? v->rest->info : 0;

    for (unsigned i = 0; info && i < j->count; i++) {
        uint64_t page = j->access[i].addr >> 12;
        if (v->tag[page % PAGE_TAGS] != (page ^ v->epoch))
            buffer_page(v, info, j->access[i].addr);
    }
}

void unreported_open(struct vcpu *v)
{
    struct block *b = v->open;

    vcpu_use_journal(v);
    v->journal->is_computed = true;
    compute_accesses(v);
    if (!atomic_exchange_explicit(&b->is_found_late, true, memory_order_relaxed)) {
        pthread_mutex_lock(&plugin.lock);
        map_put(&target_pages, b->host_page, 0);
        pthread_mutex_unlock(&plugin.lock);
    }
    if (atomic_fetch_add(&late_blocks, 1) % LATE_BLOCKS_MAX == LATE_BLOCKS_MAX - 1 && !plugin.settings.all_unreported)
        plugin_retranslate();
}
