/* SPDX-License-Identifier: MIT */
/* x86-64 guests. Operands come from capture/x86, so that recordings of a guest and recordings by single-stepping agree; QEMU reports only
 * addresses.
 * Leaves out: prefetches, which QEMU does not report. */
#include <string.h>

#include "capture/qemu/guest.h"
#include "capture/x86/insn.h"

enum { ALWAYS_IN_FLAGS = 2, FLAGS_BITS = 22, FRAME_BYTES = 40, WIDEST_ACCESS = 16, WIDEST_VECTOR = 64 };

static bool x86_guest_is_user(uint64_t cs)
{
    return (cs & 3) == 3;
}

static bool is_simple(const struct x86_memory *m)
{
    return m->form == X86_PLAIN || m->form == X86_BIT || m->form == X86_BYTE;
}

static uint8_t access_of_one(const struct x86_insn *in)
{
    const struct x86_memory *m = &in->memory[0];

    if (m->form == X86_REPEATED)
        return GUEST_REPEATED;
    if (!is_simple(m) || m->size > WIDEST_VECTOR)
        return GUEST_IRREGULAR;
    if (m->size > WIDEST_ACCESS || m->size == 10) /* and what the x87 has in ten bytes */
        return GUEST_WIDE;
    bool may_fail_later = m->kind == PEET_UPDATE || in->insn.class == PEET_CL_div || in->insn.class == PEET_CL_trap;
    return may_fail_later ? GUEST_SEVERAL : GUEST_ONE;
}

static uint8_t access_of_two(const struct x86_insn *in)
{
    const struct x86_memory *m = in->memory;

    if (m[0].form == X86_REPEATED && m[1].form == X86_REPEATED)
        return GUEST_REPEATED;
    bool in_order = m[0].kind == PEET_LOAD && m[1].kind == PEET_STORE;
    bool simple = is_simple(&m[0]) && is_simple(&m[1]) && m[0].size <= 8 && m[1].size <= 8;
    return in_order && simple ? GUEST_SEVERAL : GUEST_IRREGULAR;
}

static uint8_t access_of_none(const struct x86_insn *in)
{
    bool may_fail = in->special == X86_UNKNOWN || in->insn.class == PEET_CL_div || in->insn.class == PEET_CL_trap;

    return may_fail ? GUEST_FAULTS : GUEST_NONE;
}

static void x86_guest_decode(const uint8_t *bytes, size_t n, uint64_t addr, struct guest_insn *ret)
{
    struct x86_insn in;

    x86_decode(bytes, n, addr, &in);
    *ret = (struct guest_insn){ .insn = in.insn, .is_call = in.special == X86_SYSCALL };
    ret->insn.length = (uint16_t)n;
    for (unsigned i = 0; i < in.memories; i++) {
        const struct x86_memory *m = &in.memory[i];
        if (m->kind == PEET_PREFETCH)
            continue;
        bool whole = is_simple(m) || m->form == X86_REPEATED;
        ret->operand[ret->operands++] = (struct guest_operand){ whole ? m->size : 0, m->kind };
        ret->loads = ret->loads || m->kind != PEET_STORE;
        ret->stores = ret->stores || m->kind == PEET_STORE;
    }
    if (ret->operands == 0)
        ret->access = access_of_none(&in);
    else
        ret->access = ret->operands == 1 ? access_of_one(&in) : access_of_two(&in);
}

static bool x86_guest_leaves_kernel(const uint8_t *bytes, size_t n)
{
    if (n > 1 && (bytes[0] & 0xf8) == 0x48) {
        bytes++;
        n--;
    }
    bool iret = n == 1 && bytes[0] == 0xcf;
    return iret || (n == 2 && bytes[0] == 0x0f && (bytes[1] == 0x07 || bytes[1] == 0x35)); /* sysret, sysexit */
}

/* Whether these words are a frame that the processor pushes when it leaves user mode: rip, cs, rflags, rsp, ss. */
static bool is_user_frame(const uint64_t word[5])
{
    return (word[1] & 3) == 3 && word[1] >> 16 == 0 && (word[4] & 3) == 3 && word[4] >> 16 == 0
           && (word[2] & ALWAYS_IN_FLAGS) && word[2] >> FLAGS_BITS == 0;
}

/* A system call leaves the stack pointer unchanged. Otherwise the processor has pushed a frame, and then, for page faults and most other
 * faults, an error code; for interrupts none. */
static bool x86_guest_read_entry(const struct guest_probe *p, struct guest_entry *ret)
{
    uint64_t word[6], sp = p->reg(p->context, "rsp");

    *ret = (struct guest_entry){ 0 };
    if (p->memory(p->context, sp, word, FRAME_BYTES) && is_user_frame(word)) { /* memory above it may not be mapped */
        ret->is_vague = true;
        ret->pc = word[0];
        return true;
    }
    if (p->memory(p->context, sp, word, sizeof word) && is_user_frame(word + 1)) {
        ret->is_fault = true;
        ret->pc = word[1];
        return true;
    }
    ret->is_call = !(sp >> 63); /* kernels whose stacks lie low push a frame there, too */
    ret->pc = ret->is_call ? p->reg(p->context, "rcx") : 0;
    return ret->is_call;
}

/* A signal handler returns to code that calls rt_sigreturn, and has the signal's number as its first argument. */
static unsigned x86_guest_entered_handler(const struct guest_probe *p)
{
    static const uint8_t back[] = { 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05 };
    uint8_t found[sizeof back];
    uint64_t to, number = p->reg(p->context, "rdi");

    if (number == 0 || number > 64 || !p->memory(p->context, p->reg(p->context, "rsp"), &to, sizeof to))
        return 0;
    if (!p->memory(p->context, to, found, sizeof found) || memcmp(found, back, sizeof back) != 0)
        return 0;
    return (unsigned)number;
}

static enum guest_call x86_guest_call_kind(uint64_t number)
{
    switch (number) {
    case 60: return GUEST_CALL_EXIT;
    case 231: return GUEST_CALL_EXIT_ALL;
    case 56:
    case 57:
    case 58:
    case 435: return GUEST_CALL_CLONE;
    case 15: return GUEST_CALL_SIGRETURN;
    case 59: return GUEST_CALL_EXEC;
    case 9: return GUEST_CALL_MMAP;
    case 11: return GUEST_CALL_MUNMAP;
    case 12: return GUEST_CALL_BRK;
    case 25: return GUEST_CALL_MREMAP;
    default: return GUEST_CALL_OTHER;
    }
}

const struct guest_isa guest_x86_64 = {
    .name = "x86_64",
    .sp = "rsp",
    .pc = "rip",
    .root = "cr3",
    .pointer = "fs_base",
    .level = "cs",
    .number = "rax",
    .tid = "rax",
    .result = "rax",
    .arg = { "rdi", "rsi", "rdx", "rcx", "r8" },
    .root_mask = 0x000ffffffffff000,
    .is_user = x86_guest_is_user,
    .decode = x86_guest_decode,
    .leaves_kernel = x86_guest_leaves_kernel,
    .read_entry = x86_guest_read_entry,
    .entered_handler = x86_guest_entered_handler,
    .call_kind = x86_guest_call_kind,
};
