/* SPDX-License-Identifier: MIT */
/* Decodes bytes by Zydis. Adds what Zydis leaves open: the stack address of a push, the number of elements of a gather,
 * its mask, the index of xlat, the registers that string instructions change. */
#include <Zydis/Zydis.h>
#include <string.h>

#include "capture/x86/insn.h"

/* An instruction under construction. */
struct decoding {
    ZydisDecodedInstruction in;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
    struct x86_insn *ret;
};

/* Number of the general register that contains reg, or X86_NONE. */
static uint8_t gpr_of(ZydisRegister reg)
{
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

    if (ZydisRegisterGetClass(whole) != ZYDIS_REGCLASS_GPR64)
        return X86_NONE;
    return (uint8_t)ZydisRegisterGetId(whole);
}

static bool is_gpr64(const ZydisDecodedOperand *op)
{
    return op->type == ZYDIS_OPERAND_TYPE_REGISTER && ZydisRegisterGetClass(op->reg.value) == ZYDIS_REGCLASS_GPR64;
}

static uint8_t vector_of(const ZydisDecodedOperand *op)
{
    return (uint8_t)ZydisRegisterGetId(op->reg.value);
}

static unsigned register_bytes(ZydisRegister reg)
{
    return ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg) / 8u;
}

/* ---- memory operands ---- */

static bool is_reference(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *op)
{
    if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->actions == 0 || op->size == 0)
        return false;
    if (op->mem.type != ZYDIS_MEMOP_TYPE_MEM && op->mem.type != ZYDIS_MEMOP_TYPE_VSIB)
        return false;
    switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_NOP:
    case ZYDIS_MNEMONIC_CLFLUSH:
    case ZYDIS_MNEMONIC_CLFLUSHOPT:
    case ZYDIS_MNEMONIC_CLWB:
    case ZYDIS_MNEMONIC_CLDEMOTE: return false;
    default: return in->meta.category != ZYDIS_CATEGORY_WIDENOP;
    }
}

static uint8_t kind_of(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *op)
{
    if (in->meta.category == ZYDIS_CATEGORY_PREFETCH || in->meta.category == ZYDIS_CATEGORY_PREFETCHWT1)
        return PEET_PREFETCH;
    if (!(op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
        return PEET_LOAD;
    return op->actions & ZYDIS_OPERAND_ACTION_MASK_READ ? PEET_UPDATE : PEET_STORE;
}

static struct x86_memory plain_memory(const struct decoding *d, const ZydisDecodedOperand *op)
{
    const ZydisDecodedOperandMem *mem = &op->mem;
    struct x86_memory m = { .disp = mem->disp.value, .size = op->size / 8u, .kind = kind_of(&d->in, op) };

    m.base = gpr_of(mem->base);
    m.index = mem->index == ZYDIS_REGISTER_NONE ? X86_NONE : gpr_of(mem->index);
    for (unsigned scale = mem->scale; scale > 1; scale /= 2)
        m.scale++;
    m.narrow =
        /* stack operands are never narrow */
        d->in.address_width == 32 && ZydisRegisterGetClass(mem->base) != ZYDIS_REGCLASS_GPR64;
    if (mem->base == ZYDIS_REGISTER_RIP || mem->base == ZYDIS_REGISTER_EIP)
        m.disp += (int64_t)(d->ret->insn.addr + d->in.length);
    if (mem->segment == ZYDIS_REGISTER_FS)
        m.segment = X86_FS;
    if (mem->segment == ZYDIS_REGISTER_GS)
        m.segment = X86_GS;
    if (m.kind == PEET_PREFETCH)
        m.size = 1; /* a prefetch names a line: the one that holds this byte */
    return m;
}

/* %rsp changes before a store and after a load. A pop to memory computes its address in between. */
static void adjust_stack(const struct decoding *d, const ZydisDecodedOperand *op, struct x86_memory *m)
{
    bool is_implicit = op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN && op->mem.base == ZYDIS_REGISTER_RSP;

    if (is_implicit && m->kind == PEET_STORE)
        m->disp -= (int64_t)m->size;
    if (d->in.mnemonic == ZYDIS_MNEMONIC_POP && !is_implicit && m->base == X86_RSP)
        m->disp += (int64_t)m->size;
}

static void set_mask_register(const struct decoding *d, const ZydisDecodedOperand *vector, struct x86_memory *m)
{
    if (d->in.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX) {
        m->mask_kind = X86_MASK_K;
        m->mask = (uint8_t)ZydisRegisterGetId(d->in.avx.mask.reg);
    } else {
        m->mask_kind = ZydisRegisterGetClass(vector->reg.value) == ZYDIS_REGCLASS_MMX ? X86_MASK_MM : X86_MASK_SIGNS;
        m->mask = vector_of(vector);
    }
}

static void set_gather(const struct decoding *d, const ZydisDecodedOperand *op, struct x86_memory *m)
{
    /* the first operand of a scatter is the memory */
    const ZydisDecodedOperand *data = &d->op[op == &d->op[0] ? 2 : 0];
    unsigned indices = register_bytes(op->mem.index), values = register_bytes(data->reg.value) / m->size;

    switch (d->in.mnemonic) {
    case ZYDIS_MNEMONIC_VPGATHERQD:
    case ZYDIS_MNEMONIC_VPGATHERQQ:
    case ZYDIS_MNEMONIC_VGATHERQPS:
    case ZYDIS_MNEMONIC_VGATHERQPD:
    case ZYDIS_MNEMONIC_VPSCATTERQD:
    case ZYDIS_MNEMONIC_VPSCATTERQQ:
    case ZYDIS_MNEMONIC_VSCATTERQPS:
    case ZYDIS_MNEMONIC_VSCATTERQPD: m->index_size = 8; break;
    default: m->index_size = 4;
    }
    indices /= m->index_size;
    m->form = X86_GATHERED;
    m->index = (uint8_t)ZydisRegisterGetId(op->mem.index);
    m->elements = (uint8_t)(indices < values ? indices : values);
    set_mask_register(d, &d->op[2], m);
}

static void set_elements(struct x86_memory *m, unsigned element_bytes)
{
    m->form = X86_MASKED;
    m->elements = (uint8_t)(m->size / element_bytes);
    m->size = element_bytes;
}

static void set_masked(const struct decoding *d, const ZydisDecodedOperand *op, struct x86_memory *m)
{
    switch (d->in.mnemonic) {
    case ZYDIS_MNEMONIC_VMASKMOVPS:
    case ZYDIS_MNEMONIC_VMASKMOVPD:
    case ZYDIS_MNEMONIC_VPMASKMOVD:
    case ZYDIS_MNEMONIC_VPMASKMOVQ: set_elements(m, op->element_size / 8u); break;
    case ZYDIS_MNEMONIC_MASKMOVQ:
    case ZYDIS_MNEMONIC_MASKMOVDQU:
    case ZYDIS_MNEMONIC_VMASKMOVDQU: set_elements(m, 1); break;
    default:
        if (d->in.encoding != ZYDIS_INSTRUCTION_ENCODING_EVEX || d->in.avx.mask.reg == ZYDIS_REGISTER_K0
            || d->in.avx.mask.reg == ZYDIS_REGISTER_NONE || d->in.meta.category != ZYDIS_CATEGORY_DATAXFER
            || op->element_count < 2)
            return;
        set_elements(m, op->element_size / 8u);
    }
    set_mask_register(d, &d->op[1], m);
}

static void set_form(const struct decoding *d, const ZydisDecodedOperand *op, struct x86_memory *m)
{
    if (d->ret->is_repeated) {
        m->form = X86_REPEATED;
    } else if (op->mem.type == ZYDIS_MEMOP_TYPE_VSIB) {
        set_gather(d, op, m);
    } else if (d->in.mnemonic == ZYDIS_MNEMONIC_XLAT) {
        m->form = X86_BYTE;
        m->index = X86_RAX;
    } else if ((d->in.mnemonic == ZYDIS_MNEMONIC_BT || d->in.mnemonic == ZYDIS_MNEMONIC_BTS
                || d->in.mnemonic == ZYDIS_MNEMONIC_BTR || d->in.mnemonic == ZYDIS_MNEMONIC_BTC)
               && d->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER) {
        m->form = X86_BIT;
        m->bit = gpr_of(d->op[1].reg.value);
    } else {
        set_masked(d, op, m);
    }
}

/* Order of references: loads, updates, stores. */
static int kind_rank(const struct x86_memory *m)
{
    return m->kind == PEET_STORE ? 2 : m->kind == PEET_UPDATE ? 1 : 0;
}

static void add_memories(struct decoding *d)
{
    struct x86_insn *x = d->ret;

    for (unsigned i = 0; i < d->in.operand_count && x->memories < X86_MAX_MEMORIES; i++) {
        if (!is_reference(&d->in, &d->op[i]))
            continue;
        struct x86_memory m = plain_memory(d, &d->op[i]);
        adjust_stack(d, &d->op[i], &m);
        set_form(d, &d->op[i], &m);
        x->needs_vectors |= m.form == X86_MASKED || m.form == X86_GATHERED;
        x->memory[x->memories++] = m;
    }
    if (x->memories == 2 && kind_rank(&x->memory[0]) > kind_rank(&x->memory[1])) {
        struct x86_memory swap = x->memory[0];
        x->memory[0] = x->memory[1];
        x->memory[1] = swap;
    }
}

/* ---- registers ---- */

static void add_move(struct x86_insn *x, uint8_t to, uint8_t from, int64_t add)
{
    x->move[x->moves++] = (struct x86_move){ .add = add, .to = to, .from = from, .other = X86_NONE };
}

/* Bytes by which push and pop change %rsp. */
static int64_t stack_step(const struct decoding *d)
{
    for (unsigned i = 0; i < d->in.operand_count; i++) {
        const ZydisDecodedOperand *op = &d->op[i];
        if (op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN)
            return op->size / 8;
    }
    return 0;
}

static void add_stack_moves(struct decoding *d)
{
    struct x86_insn *x = d->ret;

    switch (d->in.mnemonic) {
    case ZYDIS_MNEMONIC_LEAVE: add_move(x, X86_RSP, X86_RBP, 8); return;
    case ZYDIS_MNEMONIC_ENTER:
        if (d->op[1].imm.value.u == 0) {
            add_move(x, X86_RBP, X86_RSP, -8);
            add_move(x, X86_RSP, X86_RSP, -8 - (int64_t)d->op[0].imm.value.u);
        }
        return;
    default: break;
    }
    if (d->in.meta.category == ZYDIS_CATEGORY_PUSH)
        add_move(x, X86_RSP, X86_RSP, -stack_step(d));
    else if (d->in.meta.category == ZYDIS_CATEGORY_POP
             && !(d->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER
                  && d->op[0].visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT && gpr_of(d->op[0].reg.value) == X86_RSP))
        add_move(x, X86_RSP, X86_RSP, stack_step(d));
}

static void add_sum(struct decoding *d, uint8_t to, uint8_t from, uint8_t other, unsigned shift)
{
    add_move(d->ret, to, from, 0);
    d->ret->move[d->ret->moves - 1].other = other;
    d->ret->move[d->ret->moves - 1].shift = (uint8_t)shift;
}

static void add_lea(struct decoding *d)
{
    if (d->in.address_width != 64)
        return;
    struct x86_memory m = plain_memory(d, &d->op[1]);
    add_sum(d, gpr_of(d->op[0].reg.value), m.base, m.index, m.scale);
    d->ret->move[d->ret->moves - 1].add = m.disp;
}

/* Sums of two registers, and shifted registers. */
static void add_sums(struct decoding *d, uint8_t reg)
{
    const ZydisDecodedOperand *from = &d->op[1];

    switch (d->in.mnemonic) {
    case ZYDIS_MNEMONIC_ADD:
    case ZYDIS_MNEMONIC_SUB:
        if (is_gpr64(from)) {
            add_sum(d, reg, reg, gpr_of(from->reg.value), 0);
            d->ret->move[d->ret->moves - 1].minus = d->in.mnemonic == ZYDIS_MNEMONIC_SUB;
        }
        break;
    case ZYDIS_MNEMONIC_SHL:
        if (from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
            add_sum(d, reg, X86_NONE, reg, from->imm.value.u & 63);
        break;
    default: break;
    }
}

/* Known changes of 32-bit registers. */
static void add_narrow_move(struct decoding *d, uint8_t reg, bool has_immediate)
{
    int64_t add = 0;

    switch (d->in.mnemonic) {
    case ZYDIS_MNEMONIC_ADD: add = has_immediate ? d->op[1].imm.value.s : 0; break;
    case ZYDIS_MNEMONIC_SUB: add = has_immediate ? -d->op[1].imm.value.s : 0; break;
    case ZYDIS_MNEMONIC_INC: add = 1; break;
    case ZYDIS_MNEMONIC_DEC: add = -1; break;
    default: break;
    }
    if (add == 0)
        return;
    add_move(d->ret, reg, reg, add);
    d->ret->move[d->ret->moves - 1].narrow = true;
}

static void add_moves(struct decoding *d)
{
    const ZydisDecodedOperand *to = &d->op[0], *from = &d->op[1];
    bool has_immediate = d->in.operand_count_visible == 2 && from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
    uint8_t reg = to->type == ZYDIS_OPERAND_TYPE_REGISTER ? gpr_of(to->reg.value) : X86_NONE;

    if (d->in.mnemonic == ZYDIS_MNEMONIC_XOR && reg != X86_NONE && to->size >= 32
        && from->type == ZYDIS_OPERAND_TYPE_REGISTER && from->reg.value == to->reg.value)
        add_move(d->ret, reg, X86_NONE, 0);
    if (d->in.mnemonic == ZYDIS_MNEMONIC_MOV && reg != X86_NONE && to->size == 32 && has_immediate)
        add_move(d->ret, reg, X86_NONE, (int64_t)(uint32_t)from->imm.value.u);
    if (reg != X86_NONE && to->size == 32 && !d->ret->moves)
        add_narrow_move(d, reg, has_immediate);
    if (!is_gpr64(to) || d->ret->moves)
        return;
    switch (d->in.mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
        if (has_immediate)
            add_move(d->ret, reg, X86_NONE, from->imm.value.s);
        else if (is_gpr64(from))
            add_move(d->ret, reg, gpr_of(from->reg.value), 0);
        break;
    case ZYDIS_MNEMONIC_ADD:
        if (has_immediate)
            add_move(d->ret, reg, reg, from->imm.value.s);
        break;
    case ZYDIS_MNEMONIC_SUB:
        if (has_immediate)
            add_move(d->ret, reg, reg, -from->imm.value.s);
        break;
    case ZYDIS_MNEMONIC_INC: add_move(d->ret, reg, reg, 1); break;
    case ZYDIS_MNEMONIC_DEC: add_move(d->ret, reg, reg, -1); break;
    case ZYDIS_MNEMONIC_LEA: add_lea(d); break;
    default: break;
    }
    if (!d->ret->moves)
        add_sums(d, reg);
}

static void add_register_changes(struct decoding *d)
{
    struct x86_insn *x = d->ret;
    unsigned changes = 0, reads = 0;

    for (unsigned i = 0; i < d->in.operand_count; i++) {
        const ZydisDecodedOperand *op = &d->op[i];
        uint8_t reg = op->type == ZYDIS_OPERAND_TYPE_REGISTER ? gpr_of(op->reg.value) : X86_NONE;
        if (reg != X86_NONE && op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
            changes |= 1u << reg;
        if (reg != X86_NONE && op->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
            reads |= 1u << reg;
    }
    if (d->in.meta.category == ZYDIS_CATEGORY_STRINGOP || d->in.meta.category == ZYDIS_CATEGORY_IOSTRINGOP)
        changes |= 1u << X86_RSI | 1u << X86_RDI | 1u << X86_RCX;
    for (unsigned i = 0; i < x->moves; i++)
        changes |= 1u << x->move[i].to;
    x->changes = (uint16_t)changes;
    x->reads = (uint16_t)reads;
}

static void find_flags(const struct decoding *d, struct x86_insn *x)
{
    static const ZydisAccessedFlagsMask STATUS =
        ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF | ZYDIS_CPUFLAG_AF | ZYDIS_CPUFLAG_ZF | ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_OF;
    const ZydisAccessedFlags *f = d->in.cpu_flags;
    ZydisAccessedFlagsMask set = f ? (f->modified | f->set_0 | f->set_1 | f->undefined) & STATUS : 0;

    x->sets_flags = set != 0;
    x->reads_flags = f && f->tested & STATUS;
    switch (d->in.meta.category) {
    case ZYDIS_CATEGORY_SHIFT: /* no flag changes if the count is 0 */
    case ZYDIS_CATEGORY_ROTATE:
    case ZYDIS_CATEGORY_STRINGOP: break;
    default: x->sets_all_flags = set == STATUS; break;
    }
}

/* Whether a register other than %rsp, or memory, receives %rsp or a value made of it. */
static bool leaks_stack(const struct decoding *d, int64_t *ret_taken)
{
    bool moves_stack = d->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER && gpr_of(d->op[0].reg.value) == X86_RSP;

    for (unsigned i = 0; i < d->in.operand_count_visible; i++) {
        const ZydisDecodedOperand *op = &d->op[i];
        if (op->type == ZYDIS_OPERAND_TYPE_REGISTER && op->actions & ZYDIS_OPERAND_ACTION_MASK_READ
            && gpr_of(op->reg.value) == X86_RSP && !moves_stack)
            return true;
        if (d->in.mnemonic == ZYDIS_MNEMONIC_LEA && op->type == ZYDIS_OPERAND_TYPE_MEMORY && !moves_stack
            && (gpr_of(op->mem.base) == X86_RSP || gpr_of(op->mem.index) == X86_RSP)) {
            *ret_taken = op->mem.index == ZYDIS_REGISTER_NONE ? op->mem.disp.value : 0;
            return true;
        }
    }
    return false;
}

static uint8_t loaded_register(const struct decoding *d)
{
    bool is_load = d->in.mnemonic == ZYDIS_MNEMONIC_MOV && d->ret->memories == 1 && is_gpr64(&d->op[0]);

    return is_load && d->ret->memory[0].kind == PEET_LOAD && d->ret->memory[0].size == 8 ? gpr_of(d->op[0].reg.value)
                                                                                         : X86_NONE;
}

/* ---- the instruction ---- */

static uint8_t special_of(const struct decoding *d)
{
    switch (d->in.mnemonic) {
    case ZYDIS_MNEMONIC_SYSCALL: return X86_SYSCALL;
    case ZYDIS_MNEMONIC_PUSHF:
    case ZYDIS_MNEMONIC_PUSHFD:
    case ZYDIS_MNEMONIC_PUSHFQ: return X86_PUSHF;
    case ZYDIS_MNEMONIC_INT3:
    case ZYDIS_MNEMONIC_INT1: return X86_TRAP_SIGNAL;
    case ZYDIS_MNEMONIC_INT: return d->op[0].imm.value.u == 3 ? X86_TRAP_SIGNAL : X86_ORDINARY;
    default: return X86_ORDINARY;
    }
}

/* Whether no instruction may follow in a block: control is transferred, an event may follow, or the meaning of segments
 * changes. */
static bool decoded_ends_block(const struct decoding *d)
{
    if (d->ret->insn.class >= PEET_CL_branch && d->ret->insn.class <= PEET_CL_syscall)
        return true;
    return d->ret->insn.class == PEET_CL_trap || d->in.meta.category == ZYDIS_CATEGORY_RDWRFSGS
           || (d->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER && d->in.operand_count > 0
               && ZydisRegisterGetClass(d->op[0].reg.value) == ZYDIS_REGCLASS_SEGMENT);
}

static void decode_fields(struct decoding *d)
{
    struct x86_insn *x = d->ret;
    const ZydisInstructionAttributes any_rep = ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE;

    x86_classify(&d->in, d->op, &x->insn);
    x->is_repeated = d->in.meta.category == ZYDIS_CATEGORY_STRINGOP && d->in.attributes & any_rep;
    x->narrow_count = x->is_repeated && d->in.address_width == 32;
    if (x->is_repeated)
        x->insn.flags |= PEET_FL_STRING;
    x->special = special_of(d);
    x->ends_block = decoded_ends_block(d);
    add_memories(d);
    add_stack_moves(d);
    add_moves(d);
    add_register_changes(d);
    find_flags(d, x);
    x->leaks_sp = leaks_stack(d, &x->leak_offset);
    x->load_reg = loaded_register(d);
}

void x86_decode(const uint8_t *bytes, size_t n, uint64_t addr, struct x86_insn *ret)
{
    ZydisDecoder decoder;
    ZydisDecoderContext context;
    struct decoding d = { .ret = ret };

    *ret = (struct x86_insn){ .insn = { .addr = addr, .length = 1, .class = PEET_CL_trap },
                              .special = X86_UNKNOWN,
                              .load_reg = X86_NONE,
                              .ends_block = true };
    memcpy(ret->bytes, bytes, n < X86_MAX_BYTES ? n : X86_MAX_BYTES);
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(&decoder, &context, bytes, n, &d.in))
        || ZYAN_FAILED(ZydisDecoderDecodeOperands(&decoder, &context, &d.in, d.op, d.in.operand_count)))
        return;
    ret->insn.length = d.in.length;
    decode_fields(&d);
}
