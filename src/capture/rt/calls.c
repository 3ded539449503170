/* SPDX-License-Identifier: MIT */
/* System calls in which a thread would wait, and with it all that the host runs. Where the program's libraries make them stands an instruction
 * that the processor does not know (capture/live/traps.c), and what it would have done is done here: as long as the call would wait, the thread
 * gives way to others, in simulated time, and tries again.
 *
 * A nanosecond is a cycle: that is how long sleeps and limits of time are. Where nobody else has anything to do, the thread really sleeps for
 * a moment before it looks again, for then it waits for something outside of the program. */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>

#include "capture/rt/real.h"
#include "capture/rt/rt.h"

enum { LEAST = 1000, MOST = 1000000, A_MOMENT_MS = 1, SYSCALL_BYTES = 2 };
#define FOR_EVER UINT64_MAX

static const uint64_t *traps;
static size_t trap_count;

void peet_rt_set_traps(const uint64_t *site, size_t count)
{
    traps = site;
    trap_count = count;
    peet_rt_traps_begin();
}

bool peet_rt_give_way(uint64_t cycles)
{
    peet_rt_event(PEET_EV_yield, 0, 1, &cycles);
    if (!peet_rt_stop())
        return true;
    peet_rt_call(SYS_poll, 0, 0, A_MOMENT_MS, 0, 0, 0);
    return false;
}

/* How long somebody waits: a little longer each time. */
struct patience {
    uint64_t next, left; /* cycles */
};

static bool is_over(struct patience *p)
{
    if (p->left == 0)
        return true;
    uint64_t cycles = p->next < p->left ? p->next : p->left;
    peet_rt_give_way(cycles);
    peet_rt_cancel_here();
    p->next = p->next < MOST ? p->next * 2 : MOST;
    if (p->left != FOR_EVER)
        p->left -= cycles;
    return false;
}

static struct patience patience(uint64_t limit)
{
    return (struct patience){ LEAST, limit };
}

static uint64_t cycles_of(const struct timespec *t)
{
    return t ? (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec : FOR_EVER;
}

/* ---- each call ---- */

struct call {
    long number, a[6];
};

static long make(const struct call *c)
{
    return peet_rt_call(c->number, c->a[0], c->a[1], c->a[2], c->a[3], c->a[4], c->a[5]);
}

static long on_file(const struct call *c, short events)
{
    struct patience p = patience(FOR_EVER);
    struct pollfd file = { .fd = (int)c->a[0], .events = events };

    while (peet_rt_call(SYS_poll, (long)&file, 1, 0, 0, 0, 0) == 0)
        is_over(&p);
    return make(c);
}

/* A call that says 0 when its time is over, which then is none. */
static long again_and_again(struct call c, int limit_at, long limit, uint64_t cycles)
{
    struct patience p = patience(cycles);
    long r;

    c.a[limit_at] = limit;
    while ((r = make(&c)) == 0 && !is_over(&p))
        ;
    return r;
}

/* select forgets what it was asked: it is asked again. */
static long again_select(const struct call *c, uint64_t cycles)
{
    struct patience p = patience(cycles);
    struct timespec none = { 0, 0 };
    fd_set asked[3];
    long r;

    for (int i = 0; i < 3; i++)
        if (c->a[i + 1])
            asked[i] = *(fd_set *)(uintptr_t)c->a[i + 1];
    for (;;) {
        for (int i = 0; i < 3; i++)
            if (c->a[i + 1])
                *(fd_set *)(uintptr_t)c->a[i + 1] = asked[i];
        r = peet_rt_call(SYS_pselect6, c->a[0], c->a[1], c->a[2], c->a[3], (long)&none, 0);
        if (r != 0 || is_over(&p))
            return r;
    }
}

static uint64_t cycles_of_timeval(const struct timeval *t)
{
    return t ? (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_usec * 1000u : FOR_EVER;
}

static uint64_t cycles_of_ms(long ms)
{
    return (int)ms < 0 ? FOR_EVER : (uint64_t)ms * 1000000u;
}

static long sleep_for(const struct call *c)
{
    const struct timespec *t = (const struct timespec *)(uintptr_t)(c->number == SYS_nanosleep ? c->a[0] : c->a[2]);
    uint64_t cycles = cycles_of(t);
    struct timespec now;

    if (c->number == SYS_clock_nanosleep && (c->a[1] & TIMER_ABSTIME)
        && peet_rt_call(SYS_clock_gettime, c->a[0], (long)&now, 0, 0, 0, 0) == 0)
        cycles = cycles > cycles_of(&now) ? cycles - cycles_of(&now) : 0;
    peet_rt_event(PEET_EV_yield, 0, 1, &cycles);
    peet_rt_stop();
    peet_rt_cancel_here();
    return 0;
}

static long wait_for_child(struct call c, int options_at)
{
    struct patience p = patience(FOR_EVER);
    long r;

    if (c.a[options_at] & WNOHANG)
        return make(&c);
    c.a[options_at] |= WNOHANG;
    siginfo_t *info = c.number == SYS_waitid ? (siginfo_t *)(uintptr_t)c.a[2] : NULL;
    if (info)
        info->si_pid = 0;
    while ((r = make(&c)) == 0 && !(info && info->si_pid))
        is_over(&p);
    return r;
}

/* Between the look at the word and the wait nobody else runs: all that was said before has happened. */
static long futex_wait(const struct call *c)
{
    const volatile uint32_t *word = (const volatile uint32_t *)(uintptr_t)c->a[0];
    const struct timespec *limit = (const struct timespec *)(uintptr_t)c->a[3];
    uint64_t addr = (uint64_t)c->a[0];

    peet_rt_stop();
    if (*word != (uint32_t)c->a[2])
        return -EAGAIN;
    if (!limit) {
        peet_rt_event(PEET_EV_futex_wait, 0, 1, &addr);
        peet_rt_stop();
        return 0;
    }
    uint64_t cycles = cycles_of(limit);
    struct timespec now;
    if ((c->a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET) { /* until, not for */
        long clock = c->a[1] & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;
        peet_rt_call(SYS_clock_gettime, clock, (long)&now, 0, 0, 0, 0);
        cycles = cycles > cycles_of(&now) ? cycles - cycles_of(&now) : 0;
    }
    struct patience p = patience(cycles);
    while (*word == (uint32_t)c->a[2])
        if (is_over(&p))
            return -ETIMEDOUT;
    return 0;
}

static long futex(const struct call *c)
{
    switch (c->a[1] & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET: return futex_wait(c);
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET: {
        const uint64_t arg[] = { (uint64_t)c->a[0], (uint64_t)c->a[2] };
        peet_rt_event(PEET_EV_futex_wake, 0, 2, arg);
        return make(c); /* for those that are not lent */
    }
    default: return make(c);
    }
}

static long perform(const struct call *c)
{
    switch (c->number) {
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_accept:
    case SYS_accept4: return on_file(c, POLLIN);
    case SYS_write:
    case SYS_writev:
    case SYS_sendto:
    case SYS_sendmsg: return on_file(c, POLLOUT);
    case SYS_poll: return again_and_again(*c, 2, 0, cycles_of_ms(c->a[2]));
    case SYS_epoll_wait:
    case SYS_epoll_pwait: return again_and_again(*c, 3, 0, cycles_of_ms(c->a[3]));
    case SYS_ppoll: {
        struct timespec none = { 0, 0 };
        return again_and_again(*c, 2, (long)&none, cycles_of((const struct timespec *)(uintptr_t)c->a[2]));
    }
    case SYS_select: return again_select(c, cycles_of_timeval((const struct timeval *)(uintptr_t)c->a[4]));
    case SYS_pselect6: return again_select(c, cycles_of((const struct timespec *)(uintptr_t)c->a[4]));
    case SYS_nanosleep:
    case SYS_clock_nanosleep: return sleep_for(c);
    case SYS_sched_yield: return peet_rt_give_way(LEAST), 0;
    case SYS_wait4: return wait_for_child(*c, 2);
    case SYS_waitid: return wait_for_child(*c, 3);
    case SYS_futex: return futex(c);
    default: return make(c);
    }
}

/* ---- traps ---- */

static void at_trap(struct rt_registers *r)
{
    struct call c = { (long)r->rax,
                      { (long)r->rdi, (long)r->rsi, (long)r->rdx, (long)r->r10, (long)r->r8, (long)r->r9 } };

    r->rax = (uint64_t)perform(&c);
}

static bool is_known(uint64_t address)
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

bool peet_rt_is_trap(void *context)
{
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;

    if (!is_known((uint64_t)r[REG_RIP]))
        return false;
    r[REG_RIP] += SYSCALL_BYTES;
    if (peet_rt_inside && peet_rt_self.is_lent && peet_rt_self.place && peet_rt_self.handlers == 0)
        peet_rt_detour(context, at_trap);
    else
        r[REG_RAX] = peet_rt_call(r[REG_RAX], r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], r[REG_R9]);
    return true;
}
