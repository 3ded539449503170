/* SPDX-License-Identifier: MIT */
/* Classes of instructions. `fp` is arithmetic on single floating-point numbers, in SSE or x87 registers. `vector` is
 * everything else that uses a vector register, moves included. A division or square root is `fpdiv` in both. What only
 * loads or stores a single number from or to a vector register is `plain`. */
#include <Zydis/Zydis.h>

#include "capture/x86/insn.h"

static bool is_relative(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *op)
{
    return in->operand_count_visible > 0 && op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && op[0].imm.is_relative;
}

static bool is_vector(const ZydisDecodedOperand *op)
{
    if (op->type != ZYDIS_OPERAND_TYPE_REGISTER)
        return false;
    switch (ZydisRegisterGetClass(op->reg.value)) {
    case ZYDIS_REGCLASS_MMX:
    case ZYDIS_REGCLASS_XMM:
    case ZYDIS_REGCLASS_YMM:
    case ZYDIS_REGCLASS_ZMM:
    case ZYDIS_REGCLASS_MASK: return true;
    default: return false;
    }
}

/* Whether the operand is one element of 32 or 64 bits. */
static bool is_single(const ZydisDecodedOperand *op)
{
    return op->element_count == 1 && (op->size == 32 || op->size == 64);
}

static bool is_float(const ZydisDecodedOperand *op)
{
    return op->element_type == ZYDIS_ELEMENT_TYPE_FLOAT32 || op->element_type == ZYDIS_ELEMENT_TYPE_FLOAT64;
}

static uint8_t control_class(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *op)
{
    switch (in->meta.category) {
    case ZYDIS_CATEGORY_COND_BR: return is_relative(in, op) ? PEET_CL_branch : PEET_CL_plain;
    case ZYDIS_CATEGORY_UNCOND_BR: return is_relative(in, op) ? PEET_CL_jump : PEET_CL_jump_indirect;
    case ZYDIS_CATEGORY_CALL: return is_relative(in, op) ? PEET_CL_call : PEET_CL_call_indirect;
    case ZYDIS_CATEGORY_RET:
        return in->mnemonic == ZYDIS_MNEMONIC_RET && in->meta.branch_type != ZYDIS_BRANCH_TYPE_FAR
                   ? PEET_CL_return
                   : PEET_CL_jump_indirect;
    case ZYDIS_CATEGORY_SYSCALL: return PEET_CL_syscall;
    case ZYDIS_CATEGORY_INTERRUPT:
        return in->mnemonic == ZYDIS_MNEMONIC_INT && op[0].imm.value.u == 0x80 ? PEET_CL_syscall : PEET_CL_trap;
    case ZYDIS_CATEGORY_NOP:
    case ZYDIS_CATEGORY_WIDENOP: return PEET_CL_nop;
    default: return PEET_CL_plain;
    }
}

static uint8_t mnemonic_class(const ZydisDecodedInstruction *in)
{
    switch (in->mnemonic) {
    case ZYDIS_MNEMONIC_MFENCE:
    case ZYDIS_MNEMONIC_LFENCE:
    case ZYDIS_MNEMONIC_SFENCE: return PEET_CL_fence;
    case ZYDIS_MNEMONIC_PAUSE: return PEET_CL_pause;
    case ZYDIS_MNEMONIC_ENDBR32:
    case ZYDIS_MNEMONIC_ENDBR64: return PEET_CL_nop;
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_HLT: return PEET_CL_trap;
    case ZYDIS_MNEMONIC_MUL:
    case ZYDIS_MNEMONIC_IMUL:
    case ZYDIS_MNEMONIC_MULX: return PEET_CL_mul;
    case ZYDIS_MNEMONIC_DIV:
    case ZYDIS_MNEMONIC_IDIV: return PEET_CL_div;
    case ZYDIS_MNEMONIC_FDIV:
    case ZYDIS_MNEMONIC_FDIVP:
    case ZYDIS_MNEMONIC_FDIVR:
    case ZYDIS_MNEMONIC_FDIVRP:
    case ZYDIS_MNEMONIC_FIDIV:
    case ZYDIS_MNEMONIC_FIDIVR:
    case ZYDIS_MNEMONIC_FSQRT:
    case ZYDIS_MNEMONIC_DIVSS:
    case ZYDIS_MNEMONIC_DIVSD:
    case ZYDIS_MNEMONIC_DIVPS:
    case ZYDIS_MNEMONIC_DIVPD:
    case ZYDIS_MNEMONIC_SQRTSS:
    case ZYDIS_MNEMONIC_SQRTSD:
    case ZYDIS_MNEMONIC_SQRTPS:
    case ZYDIS_MNEMONIC_SQRTPD:
    case ZYDIS_MNEMONIC_VDIVSS:
    case ZYDIS_MNEMONIC_VDIVSD:
    case ZYDIS_MNEMONIC_VDIVPS:
    case ZYDIS_MNEMONIC_VDIVPD:
    case ZYDIS_MNEMONIC_VSQRTSS:
    case ZYDIS_MNEMONIC_VSQRTSD:
    case ZYDIS_MNEMONIC_VSQRTPS:
    case ZYDIS_MNEMONIC_VSQRTPD: return PEET_CL_fpdiv;
    default: return PEET_CL_plain;
    }
}

static uint8_t data_class(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *op)
{
    bool vector = false, single = false, floating = false;

    if (in->meta.category == ZYDIS_CATEGORY_X87_ALU)
        return PEET_CL_fp;
    for (unsigned i = 0; i < in->operand_count_visible; i++) {
        bool is_data = is_vector(&op[i]) || op[i].type == ZYDIS_OPERAND_TYPE_MEMORY;
        vector |= is_vector(&op[i]);
        single |= is_data && is_single(&op[i]);
        floating |= is_float(&op[i]);
    }
    if (!vector)
        return PEET_CL_plain;
    if (single && in->meta.category == ZYDIS_CATEGORY_DATAXFER)
        return PEET_CL_plain;
    return single && floating && in->meta.category != ZYDIS_CATEGORY_BROADCAST ? PEET_CL_fp : PEET_CL_vector;
}

static uint16_t insn_flags(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *op)
{
    unsigned flags = 0;

    if (in->attributes & ZYDIS_ATTRIB_HAS_LOCK)
        flags |= PEET_FL_ATOMIC;
    if (in->mnemonic == ZYDIS_MNEMONIC_XCHG && op[0].type == ZYDIS_OPERAND_TYPE_MEMORY)
        flags |= PEET_FL_ATOMIC;
    if (in->mnemonic == ZYDIS_MNEMONIC_MFENCE)
        flags |= PEET_FL_FENCE_FULL;
    if (in->mnemonic == ZYDIS_MNEMONIC_LFENCE)
        flags |= PEET_FL_FENCE_LL;
    if (in->mnemonic == ZYDIS_MNEMONIC_SFENCE)
        flags |= PEET_FL_FENCE_SS;
    return (uint16_t)flags;
}

void x86_classify(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *op, struct peet_insn *ret)
{
    ret->class = control_class(in, op);
    if (ret->class == PEET_CL_plain)
        ret->class = mnemonic_class(in);
    if (ret->class == PEET_CL_plain)
        ret->class = data_class(in, op);
    ret->flags = insn_flags(in, op);
    ret->target = 0;
    if (ret->class == PEET_CL_branch || ret->class == PEET_CL_jump || ret->class == PEET_CL_call)
        ZydisCalcAbsoluteAddress(in, op, ret->addr, &ret->target);
}
