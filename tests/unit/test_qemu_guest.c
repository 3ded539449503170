/* SPDX-License-Identifier: MIT */
/* Decoding of guests' instructions: control flow, and the accesses that QEMU reports. */
#include "capture/qemu/guest.h"
#include "tests/unit/check.h"

struct expected {
    const char *text;
    uint64_t bytes;
    unsigned length, class, access;
    uint64_t target; /* from address 0x10000 on */
};

static void decodes(const struct guest_isa *g, const struct expected *e, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t bytes[8];
        struct guest_insn in;
        memcpy(bytes, &e[i].bytes, sizeof bytes);
        g->decode(bytes, e[i].length, 0x10000, &in);
        bool ok = CHECK_EQ(in.insn.class, e[i].class);
        ok = CHECK_EQ(in.access, e[i].access) && ok;
        ok = CHECK_EQ(in.insn.target, e[i].target) && ok;
        ok = CHECK_EQ(in.insn.length, e[i].length) && ok;
        if (!ok)
            printf("# that was %s\n", e[i].text);
    }
}
#define DECODES(g, list) decodes(g, list, sizeof(list) / sizeof *(list))

/* clang-format off */
static void instructions_of_aarch64_are_known(void)
{
    static const struct expected list[] = {
        { "b .+8",              0x14000002, 4, PEET_CL_jump,          GUEST_NONE,    0x10008 },
        { "bl .-4",             0x97ffffff, 4, PEET_CL_call,          GUEST_NONE,    0xfffc },
        { "b.eq .+16",          0x54000080, 4, PEET_CL_branch,        GUEST_NONE,    0x10010 },
        { "cbnz x0, .-8",       0xb5ffffc0, 4, PEET_CL_branch,        GUEST_NONE,    0xfff8 },
        { "tbz w1, #3, .+32",   0x36180101, 4, PEET_CL_branch,        GUEST_NONE,    0x10020 },
        { "ret",                0xd65f03c0, 4, PEET_CL_return,        GUEST_NONE,    0 },
        { "blr x3",             0xd63f0060, 4, PEET_CL_call_indirect, GUEST_NONE,    0 },
        { "br x16",             0xd61f0200, 4, PEET_CL_jump_indirect, GUEST_NONE,    0 },
        { "svc #0",             0xd4000001, 4, PEET_CL_syscall,       GUEST_NONE,    0 },
        { "brk #1",             0xd4200020, 4, PEET_CL_trap,          GUEST_FAULTS,  0 },
        { "dmb ish",            0xd5033bbf, 4, PEET_CL_fence,         GUEST_NONE,    0 },
        { "nop",                0xd503201f, 4, PEET_CL_nop,           GUEST_NONE,    0 },
        { "dc zva, x0",         0xd50b7420, 4, PEET_CL_plain,         GUEST_IRREGULAR,     0 },
        { "ldr x0, [x1, #8]",   0xf9400420, 4, PEET_CL_plain,         GUEST_ONE,     0 },
        { "strb w0, [x1], #1",  0x38001420, 4, PEET_CL_plain,         GUEST_ONE,     0 },
        { "ldp x0, x1, [sp]",   0xa94007e0, 4, PEET_CL_plain,         GUEST_WIDE,    0 },
        { "ldr x0, .+8",        0x58000040, 4, PEET_CL_plain,         GUEST_ONE,     0 },
        { "prfm pldl1keep, [x0]", 0xf9800000, 4, PEET_CL_plain,       GUEST_NONE,    0 },
        { "ldxr x0, [x1]",      0xc85f7c20, 4, PEET_CL_plain,         GUEST_ONE,     0 },
        { "stxr w2, x0, [x1]",  0xc8027c20, 4, PEET_CL_plain,         GUEST_IRREGULAR,     0 },
        { "ldadd x0, x1, [x2]", 0xf8200041, 4, PEET_CL_plain,         GUEST_SEVERAL, 0 },
        { "cas x0, x1, [x2]",   0xc8a07c41, 4, PEET_CL_plain,         GUEST_SEVERAL, 0 },
        { "stlr x0, [x1]",      0xc89ffc20, 4, PEET_CL_plain,         GUEST_ONE,     0 },
        { "sdiv x0, x1, x2",    0x9ac20c20, 4, PEET_CL_div,           GUEST_NONE,    0 },
        { "madd x0, x1, x2, x3", 0x9b020c20, 4, PEET_CL_mul,          GUEST_NONE,    0 },
        { "fdiv d0, d1, d2",    0x1e621820, 4, PEET_CL_fpdiv,         GUEST_NONE,    0 },
        { "fadd d0, d1, d2",    0x1e622820, 4, PEET_CL_fp,            GUEST_NONE,    0 },
        { "ptrue p0.b",         0x2518e3e0, 4, PEET_CL_vector,        GUEST_FAULTS,  0 },
        { "udf #0",             0x00000000, 4, PEET_CL_trap,          GUEST_FAULTS,  0 },
    };

    DECODES(&guest_aarch64, list);
}

static void instructions_of_riscv64_are_known(void)
{
    static const struct expected list[] = {
        { "c.nop",              0x0001, 2, PEET_CL_nop,               GUEST_NONE,    0 },
        { "c.j .+8",            0xa021, 2, PEET_CL_jump,              GUEST_NONE,    0x10008 },
        { "c.beqz a0, .+8",     0xc501, 2, PEET_CL_branch,            GUEST_NONE,    0x10008 },
        { "c.bnez a0, .-4",     0xfd75, 2, PEET_CL_branch,            GUEST_NONE,    0xfffc },
        { "ret",                0x8082, 2, PEET_CL_return,            GUEST_NONE,    0 },
        { "c.jalr a5",          0x9782, 2, PEET_CL_call_indirect,     GUEST_NONE,    0 },
        { "c.mv a0, a1",        0x852e, 2, PEET_CL_plain,             GUEST_NONE,    0 },
        { "c.ld a0, 0(a1)",     0x6188, 2, PEET_CL_plain,             GUEST_ONE,     0 },
        { "c.sdsp ra, 8(sp)",   0xe406, 2, PEET_CL_plain,             GUEST_ONE,     0 },
        { "jal ra, .+16",       0x010000ef, 4, PEET_CL_call,          GUEST_NONE,    0x10010 },
        { "j .-4",              0xffdff06f, 4, PEET_CL_jump,          GUEST_NONE,    0xfffc },
        { "jalr zero, 0(a0)",   0x00050067, 4, PEET_CL_jump_indirect, GUEST_NONE,    0 },
        { "bne a0, a1, .+12",   0x00b51663, 4, PEET_CL_branch,        GUEST_NONE,    0x1000c },
        { "lw a0, 4(a1)",       0x0045a503, 4, PEET_CL_plain,         GUEST_ONE,     0 },
        { "fsd fa0, 0(a0)",     0x00a53027, 4, PEET_CL_plain,         GUEST_ONE,     0 },
        { "amoadd.d a0, a1, (a2)", 0x00b6352f, 4, PEET_CL_plain,      GUEST_SEVERAL, 0 },
        { "lr.d a0, (a1)",      0x1005b52f, 4, PEET_CL_plain,         GUEST_ONE,     0 },
        { "sc.d a0, a1, (a2)",  0x18b6352f, 4, PEET_CL_plain,         GUEST_IRREGULAR,     0 },
        { "ecall",              0x00000073, 4, PEET_CL_syscall,       GUEST_NONE,    0 },
        { "ebreak",             0x00100073, 4, PEET_CL_trap,          GUEST_FAULTS,  0 },
        { "rdtime a0",          0xc0102573, 4, PEET_CL_plain,         GUEST_FAULTS,  0 },
        { "mul a0, a1, a2",     0x02c58533, 4, PEET_CL_mul,           GUEST_NONE,    0 },
        { "divu a0, a1, a2",    0x02c5d533, 4, PEET_CL_div,           GUEST_NONE,    0 },
        { "fdiv.d fa0, fa1, fa2", 0x1ac5f553, 4, PEET_CL_fpdiv,       GUEST_NONE,    0 },
        { "fence rw, rw",       0x0330000f, 4, PEET_CL_fence,         GUEST_NONE,    0 },
        { "vle64.v v1, (a0)",   0x02057087, 4, PEET_CL_plain,         GUEST_IRREGULAR,     0 },
    };

    DECODES(&guest_riscv64, list);
}

static void instructions_of_x86_64_are_known(void)
{
    static const struct expected list[] = {
        { "push %rax",          0x50, 1, PEET_CL_plain,               GUEST_ONE,     0 },
        { "add %eax, (%rdi)",   0x0701, 2, PEET_CL_plain,             GUEST_SEVERAL, 0 },
        { "movsb",              0xa4, 1, PEET_CL_plain,               GUEST_SEVERAL, 0 },
        { "rep movsb",          0xa4f3, 2, PEET_CL_plain,             GUEST_REPEATED, 0 },
        { "call *(%rdi)",       0x17ff, 2, PEET_CL_call_indirect,     GUEST_SEVERAL, 0 },
        { "div %ecx",           0xf1f7, 2, PEET_CL_div,               GUEST_FAULTS,  0 },
        { "ud2",                0x0b0f, 2, PEET_CL_trap,              GUEST_FAULTS,  0 },
        { "syscall",            0x050f, 2, PEET_CL_syscall,           GUEST_NONE,    0 },
        { "vmovdqu (%rdi), %ymm0", 0x076ffec5, 4, PEET_CL_vector,     GUEST_WIDE,    0 },
        { "movdqu (%rdi), %xmm0", 0x076f0ff3, 4, PEET_CL_vector,      GUEST_ONE,     0 },
        { "fxsave (%rdi)",      0x07ae0f, 3, PEET_CL_plain,           GUEST_IRREGULAR,     0 },
        { "lea (%rdi), %rax",   0x078d48, 3, PEET_CL_plain,           GUEST_NONE,    0 },
        { "jmp .+5",            0x03eb, 2, PEET_CL_jump,              GUEST_NONE,    0x10005 },
    };

    DECODES(&guest_x86_64, list);
}
/* clang-format on */

static void what_leaves_the_kernel_is_known(void)
{
    CHECK(guest_x86_64.leaves_kernel((const uint8_t *)"\x48\xcf", 2));
    CHECK(guest_x86_64.leaves_kernel((const uint8_t *)"\x48\x0f\x07", 3));
    CHECK(!guest_x86_64.leaves_kernel((const uint8_t *)"\xc3", 1));
    CHECK(guest_aarch64.leaves_kernel((const uint8_t *)"\xe0\x03\x9f\xd6", 4));
    CHECK(!guest_aarch64.leaves_kernel((const uint8_t *)"\xc0\x03\x5f\xd6", 4));
    CHECK(guest_riscv64.leaves_kernel((const uint8_t *)"\x73\x00\x20\x10", 4));
    CHECK(!guest_riscv64.leaves_kernel((const uint8_t *)"\x73\x00\x00\x00", 4));
}

/* A kernel's stack as the processor leaves it. */
struct entry {
    uint64_t rsp, rcx, word[6];
};

static uint64_t entry_register(void *context, const char *name)
{
    const struct entry *e = context;

    return strcmp(name, "rsp") == 0 ? e->rsp : strcmp(name, "rcx") == 0 ? e->rcx : 0;
}

static bool entry_memory(void *context, uint64_t addr, void *into, size_t n)
{
    const struct entry *e = context;

    if (addr != e->rsp || n > sizeof e->word)
        return false;
    memcpy(into, e->word, n);
    return true;
}

static void it_is_known_how_the_kernel_of_x86_64_was_entered(void)
{
    struct entry e = { .rsp = 0x7ffff0001230, .rcx = 0x401002 };
    struct guest_probe p = { entry_register, entry_memory, &e };
    struct guest_entry ret;

    CHECK(guest_x86_64.read_entry(&p, &ret) && ret.is_call && ret.pc == 0x401002);
    e = (struct entry){ .rsp = 0xfffffe0000002fd0, .word = { 0x401234, 0x33, 0x246, 0x7ffff0001230, 0x2b } };
    CHECK(guest_x86_64.read_entry(&p, &ret) && !ret.is_call && !ret.is_fault && ret.pc == 0x401234);
    e = (struct entry){ .rsp = e.rsp,
                        .word = { 6, 0x401240, 0x33, 0x246, 0x7ffff0001230, 0x2b } }; /* of a page fault */
    CHECK(guest_x86_64.read_entry(&p, &ret) && !ret.is_call && ret.is_fault && ret.pc == 0x401240);
    e.word[2] = 0x10; /* the kernel's own */
    CHECK(!guest_x86_64.read_entry(&p, &ret));
}

/* Other kernels have other selectors, and their stacks may lie in the lower half. */
static void so_it_is_of_kernels_that_are_not_linux(void)
{
    struct entry e = { .rsp = 0x10bfd8, .rcx = 5, .word = { 0x101234, 0x1b, 0x202, 0x10b000, 0x23 } };
    struct guest_probe p = { entry_register, entry_memory, &e };
    struct guest_entry ret;

    CHECK(guest_x86_64.read_entry(&p, &ret) && !ret.is_call && !ret.is_fault && ret.pc == 0x101234);
    e.word[4] = 0x10; /* not a selector of user mode: the stack is a program's own */
    CHECK(guest_x86_64.read_entry(&p, &ret) && ret.is_call && ret.pc == 5);
}

int main(void)
{
    RUN(instructions_of_aarch64_are_known);
    RUN(instructions_of_riscv64_are_known);
    RUN(instructions_of_x86_64_are_known);
    RUN(what_leaves_the_kernel_is_known);
    RUN(it_is_known_how_the_kernel_of_x86_64_was_entered);
    RUN(so_it_is_of_kernels_that_are_not_linux);
    return check_done();
}
