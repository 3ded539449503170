/* SPDX-License-Identifier: MIT */
/* Memory and registers of tracees. */
#include <cpuid.h>
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <unistd.h>

#include "capture/step/step.h"

enum { CODE_64 = 0x33 }; /* the code segment of 64-bit programs */

size_t memory_read(const struct tracee_process *p, uint64_t addr, void *into, size_t n)
{
    ssize_t got = pread(p->memory, into, n, (off_t)addr);

    return got > 0 ? (size_t)got : 0;
}

void memory_write(const struct tracee_process *p, uint64_t addr, const void *from, size_t n)
{
    (void)!pwrite(p->memory, from, n, (off_t)addr);
}

int registers_read(pid_t tid, struct x86_state *ret, int64_t *ret_call, bool *ret_is_64)
{
    struct user_regs_struct u;

    if (ptrace(PTRACE_GETREGS, tid, 0, &u) < 0)
        return -1;
    *ret = (struct x86_state){ .gpr = { u.rax, u.rcx, u.rdx, u.rbx, u.rsp, u.rbp, u.rsi, u.rdi, u.r8, u.r9, u.r10,
                                        u.r11, u.r12, u.r13, u.r14, u.r15 },
                               .rip = u.rip,
                               .flags = u.eflags,
                               .fs_base = u.fs_base,
                               .gs_base = u.gs_base };
    *ret_call = (int64_t)u.orig_rax;
    *ret_is_64 = u.cs == CODE_64;
    return 0;
}

/* ---- vectors ---- */

/* Components of the state that XSAVE stores, by number, and the bytes of its oldest part. */
enum { XS_SSE = 1, XS_AVX = 2, XS_K = 5, XS_ZMM_HIGH = 6, XS_ZMM_MORE = 7 };
enum { AT_MM = 32, AT_XMM = 160, AT_PRESENT = 512, STATE_MAX = 16384 };

/* Address of a component; NULL: the processor does not have it, or the thread has not used it, and it is 0. */
static const uint8_t *xsave_component(const uint8_t *state, size_t size, unsigned number)
{
    unsigned bytes, offset, c, d;
    uint64_t present;

    memcpy(&present, state + AT_PRESENT, sizeof present);
    if (!(present >> number & 1) || !__get_cpuid_count(0xd, number, &bytes, &offset, &c, &d))
        return NULL;
    return bytes && (size_t)offset + bytes <= size ? state + offset : NULL;
}

/* Copies n bytes to each of 16 registers from `first` on, at byte `at` of each. from: NULL: nothing. */
static void spread_registers(struct x86_vectors *v, const uint8_t *from, unsigned first, unsigned at, unsigned n)
{
    for (unsigned i = 0; from && i < 16; i++)
        memcpy(v->zmm[first + i] + at, from + (size_t)i * n, n);
}

int vectors_read(pid_t tid, struct x86_vectors *ret)
{
    uint8_t state[STATE_MAX];
    struct iovec iov = { state, sizeof state };
    uint64_t present;

    *ret = (struct x86_vectors){ 0 };
    if (ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &iov) < 0 || iov.iov_len < AT_PRESENT + sizeof present)
        return -1;
    memcpy(&present, state + AT_PRESENT, sizeof present);
    for (unsigned i = 0; i < 8; i++)
        memcpy(ret->mm[i], state + AT_MM + (size_t)i * 16, 8);
    if (present >> XS_SSE & 1)
        spread_registers(ret, state + AT_XMM, 0, 0, 16);
    spread_registers(ret, xsave_component(state, iov.iov_len, XS_AVX), 0, 16, 16);
    spread_registers(ret, xsave_component(state, iov.iov_len, XS_ZMM_HIGH), 0, 32, 32);
    spread_registers(ret, xsave_component(state, iov.iov_len, XS_ZMM_MORE), 16, 0, 64);
    const uint8_t *k = xsave_component(state, iov.iov_len, XS_K);
    if (k)
        memcpy(ret->k, k, sizeof ret->k);
    return 0;
}
