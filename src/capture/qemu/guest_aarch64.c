/* SPDX-License-Identifier: MIT */
/* aarch64 guests. Decodes control flow, and which instructions access memory with which number of accesses. Sizes are those that QEMU
 * reports, except of pairs, which are one reference. Instructions that are not known to be regular are GUEST_IRREGULAR.
 * Leaves out: prefetches, which QEMU does not report. */
#include "base/bytes.h"
#include "capture/qemu/guest.h"

static bool a64_is_user(uint64_t cpsr)
{
    return (cpsr & 0x1c) == 0; /* level 0, 64 bits */
}

static uint64_t a64_field(uint32_t w, unsigned from, unsigned bits)
{
    return w >> from & ((UINT32_C(1) << bits) - 1);
}

/* A signed number of instructions, in bytes. */
static uint64_t a64_word_offset(uint32_t w, unsigned from, unsigned bits)
{
    return (uint64_t)((int64_t)(a64_field(w, from, bits) << (64 - bits)) >> (64 - bits)) * 4;
}

/* ---- control ---- */

static bool decode_direct(uint32_t w, struct peet_insn *i)
{
    if ((w & 0x7c000000) == 0x14000000) {
        i->class = w >> 31 ? PEET_CL_call : PEET_CL_jump;
        i->target = i->addr + a64_word_offset(w, 0, 26);
    } else if ((w & 0xff000000) == 0x54000000 || (w & 0x7e000000) == 0x34000000) {
        i->class = PEET_CL_branch;
        i->target = i->addr + a64_word_offset(w, 5, 19);
    } else if ((w & 0x7e000000) == 0x36000000) {
        i->class = PEET_CL_branch;
        i->target = i->addr + a64_word_offset(w, 5, 14);
    } else {
        return false;
    }
    return true;
}

static bool decode_indirect(uint32_t w, struct peet_insn *i)
{
    if ((w & 0xfe000000) != 0xd6000000)
        return false;
    switch (a64_field(w, 21, 4)) {
    case 1:
    case 9: i->class = PEET_CL_call_indirect; break;
    case 2: i->class = PEET_CL_return; break;
    default: i->class = PEET_CL_jump_indirect;
    }
    return true;
}

/* Exceptions, barriers, hints, system registers, cache maintenance. */
static bool a64_decode_system(uint32_t w, struct guest_insn *g)
{
    if ((w & 0xff000000) == 0xd4000000) {
        g->is_call = (w & 0xffe0001f) == 0xd4000001;
        g->insn.class = g->is_call ? PEET_CL_syscall : PEET_CL_trap;
        g->access = g->is_call ? GUEST_NONE : GUEST_FAULTS;
        return true;
    }
    if ((w & 0xffc00000) != 0xd5000000)
        return false;
    if ((w & 0xfffff01f) == 0xd503201f) {
        g->insn.class = w == 0xd503203f ? PEET_CL_pause : PEET_CL_nop;
    } else if ((w & 0xfffff01f) == 0xd503301f) {
        g->insn.class = PEET_CL_fence;
        g->insn.flags = PEET_FL_FENCE_FULL;
    } else if ((w & 0xffffffe0) == 0xd50b7420) { /* dc zva */
        g->access = GUEST_IRREGULAR;
        g->stores = true;
    } else {
        g->access = GUEST_FAULTS;
    }
    return true;
}

/* ---- memory ---- */

static void a64_set_access(struct guest_insn *g, enum guest_access access, uint8_t kind, uint32_t size)
{
    g->access = (uint8_t)access;
    g->operands = 1;
    g->operand[0] = (struct guest_operand){ size, kind };
    g->loads = kind != PEET_STORE;
    g->stores = kind == PEET_STORE;
}

static void a64_set_irregular(struct guest_insn *g)
{
    g->access = GUEST_IRREGULAR;
    g->loads = g->stores = true;
}

static uint8_t load_or_store(bool loads)
{
    return loads ? PEET_LOAD : PEET_STORE;
}

static void decode_exclusive(uint32_t w, struct guest_insn *g)
{
    bool ordered = a64_field(w, 23, 1), loads = a64_field(w, 22, 1), swaps = a64_field(w, 21, 1);

    g->insn.flags = PEET_FL_ATOMIC;
    if (ordered && swaps)
        a64_set_access(g, GUEST_SEVERAL, PEET_UPDATE, 0); /* cas */
    else if (ordered || (loads && !swaps))
        a64_set_access(g, GUEST_ONE, load_or_store(loads), 0);
    else
        a64_set_irregular(g);
    if (ordered && !swaps)
        g->insn.flags = loads ? PEET_FL_ACQUIRE : PEET_FL_RELEASE;
}

static void decode_pair(uint32_t w, struct guest_insn *g)
{
    uint32_t size = a64_field(w, 26, 1) ? 4u << a64_field(w, 30, 2) : a64_field(w, 31, 1) ? 8u : 4u;

    a64_set_access(g, GUEST_WIDE, load_or_store(a64_field(w, 22, 1)), 2 * size);
}

/* One register. */
static void decode_single(uint32_t w, struct guest_insn *g)
{
    bool is_vector = a64_field(w, 26, 1), is_scaled = a64_field(w, 24, 1), bit_21 = a64_field(w, 21, 1);
    uint64_t operation = a64_field(w, 22, 2), form = a64_field(w, 10, 2);

    if (!is_scaled && bit_21 && form == 0 && !is_vector) {
        g->insn.flags = PEET_FL_ATOMIC;
        if (a64_field(w, 12, 4) == 12 || a64_field(w, 12, 4) == 9 || a64_field(w, 12, 4) == 10
            || a64_field(w, 12, 4) == 11)
            a64_set_irregular(g); /* ldapr, ld64b and kin */
        else
            a64_set_access(g, GUEST_SEVERAL, PEET_UPDATE, 0);
    } else if (!is_scaled && bit_21 && form != 2) {
        a64_set_irregular(g);
    } else if (!is_vector && operation == 2 && a64_field(w, 30, 2) == 3) {
        g->access = GUEST_NONE; /* prfm */
    } else {
        a64_set_access(g, GUEST_ONE, load_or_store(is_vector ? operation & 1 : operation != 0), 0);
    }
}

static void decode_memory(uint32_t w, struct guest_insn *g)
{
    if ((w & 0x3f000000) == 0x08000000)
        decode_exclusive(w, g);
    else if ((w & 0x3b000000) == 0x18000000 && a64_field(w, 30, 2) == 3 && !a64_field(w, 26, 1))
        g->access = GUEST_NONE; /* prfm */
    else if ((w & 0x3b000000) == 0x18000000)
        a64_set_access(g, GUEST_ONE, PEET_LOAD, 0);
    else if ((w & 0x3a000000) == 0x28000000)
        decode_pair(w, g);
    else if ((w & 0x3a000000) == 0x38000000)
        decode_single(w, g);
    else
        a64_set_irregular(g);
}

static uint8_t a64_class_of(uint32_t w)
{
    if ((w & 0x7fe0f800) == 0x1ac00800)
        return PEET_CL_div;
    if ((w & 0x7f000000) == 0x1b000000)
        return PEET_CL_mul;
    if ((w & 0x5f20fc00) == 0x1e201800)
        return PEET_CL_fpdiv;
    if ((w & 0x5e000000) == 0x1e000000)
        return PEET_CL_fp;
    return (w & 0x0e000000) == 0x0e000000 || (w & 0x1e000000) == 0x04000000 ? PEET_CL_vector : PEET_CL_plain;
}

static void a64_decode(const uint8_t *bytes, size_t n, uint64_t addr, struct guest_insn *ret)
{
    uint32_t w = n >= 4 ? get_le32(bytes) : 0;

    *ret = (struct guest_insn){ .insn = { .addr = addr, .length = (uint16_t)n } };
    if (decode_direct(w, &ret->insn) || decode_indirect(w, &ret->insn) || a64_decode_system(w, ret))
        return;
    ret->insn.class = a64_class_of(w);
    if ((w & 0x0a000000) == 0x08000000)
        decode_memory(w, ret);
    else if ((w & 0x9e000000) == 0x84000000)
        a64_set_irregular(ret); /* SVE */
    else if ((w & 0x1e000000) == 0x04000000)
        ret->access = GUEST_FAULTS; /* SVE: the kernel gives a thread its registers when it uses them */
    else if (w >> 16 == 0) {
        ret->insn.class = PEET_CL_trap;
        ret->access = GUEST_FAULTS;
    }
}

static bool a64_leaves_kernel(const uint8_t *bytes, size_t n)
{
    uint32_t w = n == 4 ? get_le32(bytes) : 0;

    return w == 0xd69f03e0 || (w & 0xfffffbff) == 0xd69f0bff; /* eret, eretaa, eretab */
}

/* The kernel's exception vector has the kind of the exception; for synchronous ones, the syndrome register has the cause. */
static bool a64_read_entry(const struct guest_probe *p, struct guest_entry *ret)
{
    bool is_synchronous = (p->reg(p->context, "pc") & 0x780) == 0x400;
    uint64_t class = p->reg(p->context, "ESR_EL1") >> 26 & 0x3f;

    *ret = (struct guest_entry){ .pc = p->reg(p->context, "ELR_EL1") };
    ret->is_call = is_synchronous && class == 0x15;
    ret->is_fault = is_synchronous && !ret->is_call;
    return true;
}

static unsigned a64_entered_handler(const struct guest_probe *p)
{
    static const uint8_t back[] = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 };
    uint8_t found[sizeof back];
    uint64_t number = p->reg(p->context, "x0");

    if (number == 0 || number > 64 || !p->memory(p->context, p->reg(p->context, "x30"), found, sizeof found))
        return 0;
    return memcmp(found, back, sizeof back) == 0 ? (unsigned)number : 0;
}

static enum guest_call a64_call_kind(uint64_t number)
{
    switch (number) {
    case 93: return GUEST_CALL_EXIT;
    case 94: return GUEST_CALL_EXIT_ALL;
    case 220:
    case 435: return GUEST_CALL_CLONE;
    case 139: return GUEST_CALL_SIGRETURN;
    case 221: return GUEST_CALL_EXEC;
    case 222: return GUEST_CALL_MMAP;
    case 215: return GUEST_CALL_MUNMAP;
    case 214: return GUEST_CALL_BRK;
    case 216: return GUEST_CALL_MREMAP;
    default: return GUEST_CALL_OTHER;
    }
}

const struct guest_isa guest_aarch64 = {
    .name = "aarch64",
    .sp = "sp",
    .pc = "pc",
    .root = "TTBR0_EL1",
    .pointer = "TPIDR_EL0",
    .level = "cpsr",
    .number = "x8",
    .tid = "x0",
    .result = "x0",
    .arg = { "x0", "x1", "x2", "x3", "x4" },
    .link = "x30",
    .root_mask = 0x0000fffffffffffe,
    .is_user = a64_is_user,
    .decode = a64_decode,
    .leaves_kernel = a64_leaves_kernel,
    .read_entry = a64_read_entry,
    .entered_handler = a64_entered_handler,
    .call_kind = a64_call_kind,
};
