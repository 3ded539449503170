/* SPDX-License-Identifier: MIT */
/* Traps: in libraries of the program, system calls that can wait have been replaced by an invalid instruction
 * (capture/control/traps.c). waits.c makes the call if the host runs the thread; otherwise the kernel makes it. */
#include <fcntl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "capture/runtime/real.h"
#include "capture/runtime/rt.h"
#include "capture/runtime/host.h"

enum { SYSCALL_BYTES = 2 };

static const struct raw_trap *traps; /* in the order of their addresses */
static size_t trap_count;

void peet_rt_set_traps(const struct raw_trap *trap, size_t count)
{
    traps = trap;
    trap_count = count;
    peet_rt_traps_begin();
}

/* In a child process, which runs natively, the system calls are made where they stand: the C library cancels only threads that are in
 * its own code. Where the code cannot be written, the traps stay, and the kernel makes their calls. */
void peet_rt_remove_traps(void)
{
    static const uint8_t call[SYSCALL_BYTES] = { 0x0f, 0x05 };

    if (!trap_count)
        return;
    int memory = (int)peet_rt_call(SYS_openat, AT_FDCWD, (long)"/proc/self/mem", O_RDWR | O_CLOEXEC, 0, 0, 0);
    for (size_t i = 0; memory >= 0 && i < trap_count; i++)
        peet_rt_call(SYS_pwrite64, memory, (long)call, sizeof call, (long)traps[i].address, 0, 0);
    if (memory >= 0)
        peet_rt_call(SYS_close, memory, 0, 0, 0, 0, 0);
}

static void trap_perform(struct rt_registers *r)
{
    struct rt_call c = { (long)r->rax,
                         { (long)r->rdi, (long)r->rsi, (long)r->rdx, (long)r->r10, (long)r->r8, (long)r->r9 } };

    r->rax = (uint64_t)peet_rt_wait(&c);
}

/* NULL: there is none at that address. */
static const struct raw_trap *trap_find(uint64_t address)
{
    size_t low = 0, high = trap_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (traps[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < trap_count && traps[low].address == address ? &traps[low] : NULL;
}

/* Whether the machine decides how long the call takes. Once the process has reported its end, no machine is left. */
static bool trap_is_simulated(const struct raw_trap *trap, long number)
{
    const struct rt_self *s = &peet_rt_self;

    return (number != SYS_futex || trap->has_futex) && peet_rt_in_process && s->hosted.is_borrowed && s->entry
           && s->entry->end_kind == 0 && s->handlers.active == 0;
}

bool peet_rt_is_trap(void *context)
{
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;

    const struct raw_trap *trap = trap_find((uint64_t)r[REG_RIP]);
    if (!trap)
        return false;
    r[REG_RIP] += SYSCALL_BYTES;
    if (trap_is_simulated(trap, r[REG_RAX]))
        peet_rt_divert(context, trap_perform);
    else
        r[REG_RAX] = peet_rt_call(r[REG_RAX], r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], r[REG_R9]);
    return true;
}
