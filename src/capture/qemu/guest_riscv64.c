/* SPDX-License-Identifier: MIT */
/* riscv64 guests, with compressed instructions. Sizes of references are those that QEMU reports. Vector accesses, store-conditionals and
 * unknown instructions are GUEST_IRREGULAR. */
#include "base/bytes.h"
#include "capture/qemu/guest.h"

enum { RA = 1, T0 = 5 };

static bool rv_is_user(uint64_t level)
{
    return level == 0;
}

static uint32_t rv_field(uint32_t w, unsigned from, unsigned bits)
{
    return w >> from & ((UINT32_C(1) << bits) - 1);
}

static uint64_t sign_extended(uint32_t value, unsigned bits)
{
    return (uint64_t)((int64_t)((uint64_t)value << (64 - bits)) >> (64 - bits));
}

static void rv_set_access(struct guest_insn *g, enum guest_access access, uint8_t kind)
{
    g->access = (uint8_t)access;
    g->operands = 1;
    g->operand[0] = (struct guest_operand){ 0, kind };
    g->loads = kind != PEET_STORE;
    g->stores = kind == PEET_STORE;
}

static void rv_set_irregular(struct guest_insn *g)
{
    g->access = GUEST_IRREGULAR;
    g->loads = g->stores = true;
}

static void rv_set_trap(struct guest_insn *g)
{
    g->insn.class = PEET_CL_trap;
    g->access = GUEST_FAULTS;
}

/* ---- 16 bits ---- */

static uint64_t compressed_jump(uint32_t w)
{
    uint32_t v = rv_field(w, 12, 1) << 11 | rv_field(w, 11, 1) << 4 | rv_field(w, 9, 2) << 8 | rv_field(w, 8, 1) << 10
                 | rv_field(w, 7, 1) << 6 | rv_field(w, 6, 1) << 7 | rv_field(w, 3, 3) << 1 | rv_field(w, 2, 1) << 5;

    return sign_extended(v, 12);
}

static uint64_t compressed_branch(uint32_t w)
{
    uint32_t v = rv_field(w, 12, 1) << 8 | rv_field(w, 10, 2) << 3 | rv_field(w, 5, 2) << 6 | rv_field(w, 3, 2) << 1
                 | rv_field(w, 2, 1) << 5;

    return sign_extended(v, 9);
}

/* jr, jalr, ebreak among mv and add. */
static void decode_compressed_register(uint32_t w, struct guest_insn *g)
{
    uint32_t from = rv_field(w, 7, 5), links = rv_field(w, 12, 1);

    if (rv_field(w, 2, 5) != 0)
        return;
    if (links && from == 0)
        rv_set_trap(g);
    else if (links)
        g->insn.class = PEET_CL_call_indirect;
    else
        g->insn.class = from == RA || from == T0 ? PEET_CL_return : PEET_CL_jump_indirect;
}

static void decode_compressed(uint32_t w, struct guest_insn *g)
{
    uint32_t quadrant = w & 3, operation = rv_field(w, 13, 3);

    if (w == 0) {
        rv_set_trap(g);
    } else if (quadrant == 1) {
        if (operation >= 6) {
            g->insn.class = PEET_CL_branch;
            g->insn.target = g->insn.addr + compressed_branch(w);
        } else if (operation == 5) {
            g->insn.class = PEET_CL_jump;
            g->insn.target = g->insn.addr + compressed_jump(w);
        } else if (w == 1) {
            g->insn.class = PEET_CL_nop;
        }
    } else if (operation == 4) {
        if (quadrant == 2)
            decode_compressed_register(w, g);
        else
            rv_set_irregular(g); /* bytes and halves of Zcb */
    } else if (operation != 0) {
        rv_set_access(g, GUEST_ONE, operation < 4 ? PEET_LOAD : PEET_STORE);
    }
}

/* ---- 32 bits ---- */

static void decode_jump(uint32_t w, struct peet_insn *i)
{
    uint32_t to = rv_field(w, 7, 5), from = rv_field(w, 15, 5);
    bool links = to == RA || to == T0;

    if ((w & 0x7f) == 0x67) {
        i->class = links ? PEET_CL_call_indirect : from == RA || from == T0 ? PEET_CL_return : PEET_CL_jump_indirect;
        return;
    }
    uint32_t v =
        rv_field(w, 31, 1) << 20 | rv_field(w, 12, 8) << 12 | rv_field(w, 20, 1) << 11 | rv_field(w, 21, 10) << 1;
    i->class = links ? PEET_CL_call : PEET_CL_jump;
    i->target = i->addr + sign_extended(v, 21);
}

static void decode_branch(uint32_t w, struct peet_insn *i)
{
    uint32_t v = rv_field(w, 31, 1) << 12 | rv_field(w, 7, 1) << 11 | rv_field(w, 25, 6) << 5 | rv_field(w, 8, 4) << 1;

    i->class = PEET_CL_branch;
    i->target = i->addr + sign_extended(v, 13);
}

static void decode_atomic(uint32_t w, struct guest_insn *g)
{
    uint32_t operation = rv_field(w, 27, 5);

    g->insn.flags = (uint16_t)(PEET_FL_ATOMIC | (rv_field(w, 26, 1) ? PEET_FL_ACQUIRE : 0)
                               | (rv_field(w, 25, 1) ? PEET_FL_RELEASE : 0));
    if (operation == 2)
        rv_set_access(g, GUEST_ONE, PEET_LOAD);
    else if (operation == 3)
        rv_set_irregular(g);
    else
        rv_set_access(g, GUEST_SEVERAL, PEET_UPDATE);
}

static void rv_decode_system(uint32_t w, struct guest_insn *g)
{
    g->is_call = w == 0x73;
    if (g->is_call)
        g->insn.class = PEET_CL_syscall;
    else if (rv_field(w, 12, 3) == 0)
        rv_set_trap(g);
    else
        g->access = GUEST_FAULTS;
}

static uint8_t rv_class_of(uint32_t w)
{
    switch (w & 0x7f) {
    case 0x33:
    case 0x3b: return rv_field(w, 25, 7) != 1 ? PEET_CL_plain : rv_field(w, 14, 1) ? PEET_CL_div : PEET_CL_mul;
    case 0x43:
    case 0x47:
    case 0x4b:
    case 0x4f: return PEET_CL_fp;
    case 0x53: return rv_field(w, 27, 5) == 3 || rv_field(w, 27, 5) == 11 ? PEET_CL_fpdiv : PEET_CL_fp;
    case 0x57: return PEET_CL_vector;
    case 0x0f: return PEET_CL_fence;
    default: return PEET_CL_plain;
    }
}

static bool is_vector_width(uint32_t w)
{
    uint32_t width = rv_field(w, 12, 3);

    return width == 0 || width >= 5;
}

static void decode_long(uint32_t w, struct guest_insn *g)
{
    g->insn.class = rv_class_of(w);
    switch (w & 0x7f) {
    case 0x03: rv_set_access(g, GUEST_ONE, PEET_LOAD); break;
    case 0x23: rv_set_access(g, GUEST_ONE, PEET_STORE); break;
    case 0x07:
    case 0x27:
        if (is_vector_width(w))
            rv_set_irregular(g);
        else
            rv_set_access(g, GUEST_ONE, (w & 0x7f) == 0x07 ? PEET_LOAD : PEET_STORE);
        break;
    case 0x2f: decode_atomic(w, g); break;
    case 0x63: decode_branch(w, &g->insn); break;
    case 0x67:
    case 0x6f: decode_jump(w, &g->insn); break;
    case 0x73: rv_decode_system(w, g); break;
    case 0x57: g->access = GUEST_FAULTS; break; /* the kernel gives a thread its vectors when it uses them */
    case 0x0f: g->insn.flags = PEET_FL_FENCE_FULL; break;
    case 0x0b:
    case 0x2b:
    case 0x5b:
    case 0x7b: rv_set_irregular(g); break; /* custom ones */
    default: break;
    }
}

static void rv_decode(const uint8_t *bytes, size_t n, uint64_t addr, struct guest_insn *ret)
{
    *ret = (struct guest_insn){ .insn = { .addr = addr, .length = (uint16_t)n } };
    if (n == 2)
        decode_compressed((uint32_t)bytes[0] | (uint32_t)bytes[1] << 8, ret);
    else if (n == 4)
        decode_long(get_le32(bytes), ret);
    else
        rv_set_trap(ret);
}

static bool rv_leaves_kernel(const uint8_t *bytes, size_t n)
{
    uint32_t w = n == 4 ? get_le32(bytes) : 0;

    return w == 0x10200073 || w == 0x30200073; /* sret, mret */
}

static bool rv_read_entry(const struct guest_probe *p, struct guest_entry *ret)
{
    bool is_machine = p->reg(p->context, "priv") == 3; /* firmware */
    uint64_t cause = p->reg(p->context, is_machine ? "mcause" : "scause");

    *ret = (struct guest_entry){ .pc = p->reg(p->context, is_machine ? "mepc" : "sepc") };
    ret->is_call = cause == 8;
    ret->is_fault = !(cause >> 63) && !ret->is_call;
    ret->pc += ret->is_call ? 4 : 0;
    return true;
}

static unsigned rv_entered_handler(const struct guest_probe *p)
{
    static const uint8_t back[] = { 0x93, 0x08, 0xb0, 0x08, 0x73, 0x00, 0x00, 0x00 };
    uint8_t found[sizeof back];
    uint64_t number = p->reg(p->context, "a0");

    if (number == 0 || number > 64 || !p->memory(p->context, p->reg(p->context, "ra"), found, sizeof found))
        return 0;
    return memcmp(found, back, sizeof back) == 0 ? (unsigned)number : 0;
}

static enum guest_call rv_call_kind(uint64_t number)
{
    return guest_aarch64.call_kind(number); /* the generic numbers */
}

const struct guest_isa guest_riscv64 = {
    .name = "riscv64",
    .sp = "sp",
    .pc = "pc",
    .root = "satp",
    .pointer = "tp",
    .level = "priv",
    .number = "a7",
    .tid = "a0",
    .result = "a0",
    .arg = { "a0", "a1", "a2", "a3", "a4" },
    .link = "ra",
    .root_mask = 0x00000fffffffffff,
    .is_user = rv_is_user,
    .decode = rv_decode,
    .leaves_kernel = rv_leaves_kernel,
    .read_entry = rv_read_entry,
    .entered_handler = rv_entered_handler,
    .call_kind = rv_call_kind,
};
