/* SPDX-License-Identifier: MIT */
/* Traps: in libraries of the program, system calls that can wait have been replaced by an invalid instruction
 * (capture/control/traps.c). waits.c makes the call if the host runs the thread; otherwise the kernel makes it. */
#include <ucontext.h>

#include "capture/runtime/real.h"
#include "capture/runtime/rt.h"
#include "capture/runtime/host.h"

enum { SYSCALL_BYTES = 2 };

static const uint64_t *traps; /* addresses, in rising order */
static size_t trap_count;

void peet_rt_set_traps(const uint64_t *site, size_t count)
{
    traps = site;
    trap_count = count;
    peet_rt_traps_begin();
}

static void trap_perform(struct rt_registers *r)
{
    struct rt_call c = { (long)r->rax,
                         { (long)r->rdi, (long)r->rsi, (long)r->rdx, (long)r->r10, (long)r->r8, (long)r->r9 } };

    r->rax = (uint64_t)peet_rt_wait(&c);
}

static bool trap_is_known(uint64_t address)
{
    size_t low = 0, high = trap_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (traps[middle] < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < trap_count && traps[low] == address;
}

/* Whether the machine decides how long the call takes. Once the process has reported its end, no machine is left. */
static bool trap_is_simulated(void)
{
    const struct rt_self *s = &peet_rt_self;

    return peet_rt_in_process && s->hosted.is_borrowed && s->place && s->place->end_kind == 0
           && s->handlers.active == 0;
}

bool peet_rt_is_trap(void *context)
{
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;

    if (!trap_is_known((uint64_t)r[REG_RIP]))
        return false;
    r[REG_RIP] += SYSCALL_BYTES;
    if (trap_is_simulated())
        peet_rt_divert(context, trap_perform);
    else
        r[REG_RAX] = peet_rt_call(r[REG_RAX], r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], r[REG_R9]);
    return true;
}
