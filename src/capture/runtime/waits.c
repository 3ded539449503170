/* SPDX-License-Identifier: MIT */
/* System calls in which a thread would wait, and with it all threads that the host runs. Instead, a form of the call
 * that does not wait is tried. While it would wait, the thread yields for some simulated time, and tries again. A call
 * without such a form is made by the carrier of the thread.
 * A nanosecond is a cycle: sleeps and time limits last that long. While no other thread can run, the host sleeps for a
 * millisecond of real time between two tries: then the thread waits for something outside of the program. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "capture/runtime/real.h"
#include "capture/runtime/rt.h"
#include "capture/runtime/host.h"
#include "capture/protocol/waits.h"

/* Not in every version of the headers. */
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

enum { SHORTEST_LOOK = 1000, LONGEST_LOOK = 1000000, A_MOMENT_MS = 1, SIGNAL_MASK_BYTES = 8, MOST_SEMAPHORES = 500 };
#define FOR_EVER UINT64_MAX

/* Lets other threads run for this number of cycles. False: there was none. */
static bool yield_cycles(uint64_t cycles)
{
    peet_rt_event(PEET_EV_yield, 0, 1, &cycles);
    return !peet_rt_stop();
}

bool peet_rt_yield(uint64_t cycles)
{
    if (yield_cycles(cycles))
        return true;
    peet_rt_call(SYS_poll, 0, 0, A_MOMENT_MS, 0, 0, 0);
    return false;
}

/* ---- patience: the time until a waiting call is tried again, which doubles from try to try ---- */

/* Signal handlers of the program that end a waiting call. */
enum wait_interruption {
    BY_NO_RESTART, /* those without SA_RESTART; after others the call continues */
    BY_ANY,        /* all */
    BY_NONE
};

/* A wait of the runtime in simulated time: tries again and again. */
struct patience {
    uint64_t next;             /* cycles until the next try */
    uint64_t left;             /* cycles until the limit; FOR_EVER: none */
    enum wait_interruption by; /* handlers that end it */
    uint64_t handled, firm; /* handlers that the thread had run when the call began; firm: those without SA_RESTART */
};

static struct patience patience_new(uint64_t limit, enum wait_interruption by)
{
    return (struct patience){ SHORTEST_LOOK, limit, by, peet_rt_self.hosted.handlers_run,
                              peet_rt_self.hosted.handlers_firm };
}

static bool patience_is_interrupted(const struct patience *p)
{
    return (p->by == BY_ANY && p->handled != peet_rt_self.hosted.handlers_run)
           || (p->by == BY_NO_RESTART && p->firm != peet_rt_self.hosted.handlers_firm);
}

/* Lets other threads run until the next try. Returns 0, or why the call ends: -ETIMEDOUT or -EINTR. */
static int patience_wait(struct patience *p)
{
    if (p->left == 0)
        return -ETIMEDOUT;
    uint64_t cycles = p->next < p->left ? p->next : p->left;
    peet_rt_yield(cycles);
    peet_rt_cancel_here();
    p->next = p->next < LONGEST_LOOK ? p->next * 2 : LONGEST_LOOK;
    if (p->left != FOR_EVER)
        p->left -= cycles;
    return patience_is_interrupted(p) ? -EINTR : 0;
}

static uint64_t cycles_of(const struct timespec *t)
{
    return t ? (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec : FOR_EVER;
}

/* Cycles from now to that time of a clock. */
static uint64_t cycles_until(const struct timespec *t, long clock)
{
    struct timespec now;

    if (!t || peet_rt_call(SYS_clock_gettime, clock, (long)&now, 0, 0, 0, 0) != 0)
        return cycles_of(t);
    return cycles_of(t) > cycles_of(&now) ? cycles_of(t) - cycles_of(&now) : 0;
}

static uint64_t cycles_of_ms(long ms)
{
    return (int)ms < 0 ? FOR_EVER : (uint64_t)ms * 1000000u;
}

/* ---- calls ---- */

#define POINTER(type, word) ((type *)(uintptr_t)(word))

static long call_make(const struct rt_call *c)
{
    return peet_rt_call(c->number, c->a[0], c->a[1], c->a[2], c->a[3], c->a[4], c->a[5]);
}

/* Has the carrier make the call. Other threads run until it is done. */
static long wait_elsewhere(const struct rt_call *c, long unused)
{
    struct patience p = patience_new(FOR_EVER, BY_NONE);
    long result;

    (void)unused;
    peet_rt_request(c);
    while (!peet_rt_is_done(&result)) {
        peet_rt_yield(p.next);
        p.next = p.next < LONGEST_LOOK ? p.next * 2 : LONGEST_LOOK;
    }
    return result;
}

/* Repeats a call while it returns `busy`. late: what to return when its limit has passed. */
static long call_again(const struct rt_call *c, long busy, long late, struct patience p)
{
    long r;
    int end;

    while ((r = call_make(c)) == busy)
        if ((end = patience_wait(&p)) != 0)
            return end == -ETIMEDOUT ? late : end;
    return r;
}

/* ---- files ---- */

static bool file_waits(const struct rt_call *c)
{
    long flags = peet_rt_call(SYS_fcntl, c->a[0], F_GETFL, 0, 0, 0, 0);

    return flags >= 0 && !(flags & O_NONBLOCK);
}

/* The time limit that the program set for calls on a socket. */
static uint64_t file_limit(long file, short events)
{
    struct timeval limit = { 0, 0 };
    socklen_t bytes = sizeof limit;
    int option = events == POLLIN ? SO_RCVTIMEO : SO_SNDTIMEO;

    if (peet_rt_call(SYS_getsockopt, file, SOL_SOCKET, option, (long)&limit, (long)&bytes, 0) != 0)
        return FOR_EVER;
    uint64_t cycles = (uint64_t)limit.tv_sec * 1000000000u + (uint64_t)limit.tv_usec * 1000u;
    return cycles ? cycles : FOR_EVER;
}

/* Waits until a file is ready: 0, or why the call ends. */
static long file_await(long file, short events, uint64_t limit)
{
    struct pollfd f = { .fd = (int)file, .events = events };
    struct patience p = patience_new(limit, BY_NO_RESTART);
    int end;

    while (peet_rt_call(SYS_poll, (long)&f, 1, 0, 0, 0, 0) == 0)
        if ((end = patience_wait(&p)) != 0)
            return end == -ETIMEDOUT ? -EAGAIN : end;
    return 0;
}

static bool file_is_ready(long file, short events)
{
    struct pollfd f = { .fd = (int)file, .events = events };

    return peet_rt_call(SYS_poll, (long)&f, 1, 0, 0, 0, 0) != 0;
}

static long wait_file(const struct rt_call *c, long events)
{
    if (!file_is_ready(c->a[0], (short)events) && file_waits(c)) {
        long end = file_await(c->a[0], (short)events, file_limit(c->a[0], (short)events));
        if (end < 0)
            return end;
    }
    return call_make(c);
}

/* A pipe or socket with some room may have too little for all bytes. */
static long wait_written(const struct rt_call *c, long size_at)
{
    struct stat s;
    bool fits = (unsigned long)c->a[size_at] <= PIPE_BUF;

    if (!fits && file_waits(c) && peet_rt_call(SYS_fstat, c->a[0], (long)&s, 0, 0, 0, 0) == 0
        && (S_ISFIFO(s.st_mode) || S_ISSOCK(s.st_mode)))
        return wait_elsewhere(c, 0);
    return wait_file(c, POLLOUT);
}

static long wait_received(const struct rt_call *c, long flags_at)
{
    return c->a[flags_at] & MSG_DONTWAIT ? call_make(c) : wait_file(c, POLLIN);
}

static long wait_sent(const struct rt_call *c, long flags_at)
{
    if (c->a[flags_at] & MSG_DONTWAIT)
        return call_make(c);
    return c->number == SYS_sendto ? wait_written(c, 2) : wait_file(c, POLLOUT);
}

static long wait_connect(const struct rt_call *c, long unused)
{
    return file_waits(c) ? wait_elsewhere(c, unused) : call_make(c);
}

/* A thread that opens one end of a named pipe waits until the other one is open. path_at: index of the path among the
 * arguments. */
static long wait_open(const struct rt_call *c, long path_at)
{
    struct stat s;
    long folder = path_at ? c->a[0] : AT_FDCWD;

    if (!(c->a[path_at + 1] & (O_NONBLOCK | O_PATH))
        && peet_rt_call(SYS_newfstatat, folder, c->a[path_at], (long)&s, 0, 0, 0) == 0 && S_ISFIFO(s.st_mode))
        return wait_elsewhere(c, 0);
    return call_make(c);
}

static long wait_flock(const struct rt_call *c, long unused)
{
    struct rt_call now = *c;

    (void)unused;
    now.a[1] |= LOCK_NB;
    return c->a[1] & LOCK_NB ? call_make(c) : call_again(&now, -EAGAIN, 0, patience_new(FOR_EVER, BY_NO_RESTART));
}

static long wait_record_lock(const struct rt_call *c, long unused)
{
    struct rt_call now = *c;

    (void)unused;
    if (c->a[1] != F_SETLKW && c->a[1] != F_OFD_SETLKW)
        return call_make(c);
    now.a[1] = c->a[1] == F_SETLKW ? F_SETLK : F_OFD_SETLK;
    return call_again(&now, -EAGAIN, 0, patience_new(FOR_EVER, BY_NO_RESTART));
}

static long wait_queue(const struct rt_call *c, long events)
{
    const struct timespec *until = POINTER(const struct timespec, c->a[4]);

    if (!file_is_ready(c->a[0], (short)events) && file_waits(c)) {
        long end = file_await(c->a[0], (short)events, cycles_until(until, CLOCK_REALTIME));
        if (end < 0)
            return end == -EAGAIN ? -ETIMEDOUT : end;
    }
    return call_make(c);
}

/* ---- many files ---- */

/* Repeats a call that returns 0 when its time limit has passed, with `limit` in place of that limit. */
static long wait_many(const struct rt_call *c, int limit_at, long limit, uint64_t cycles)
{
    struct rt_call now = *c;

    now.a[limit_at] = limit;
    return call_again(&now, 0, 0, patience_new(cycles, BY_ANY));
}

static long wait_poll(const struct rt_call *c, long unused)
{
    (void)unused;
    return wait_many(c, 2, 0, cycles_of_ms(c->a[2]));
}

static long wait_epoll(const struct rt_call *c, long unused)
{
    (void)unused;
    return wait_many(c, 3, 0, cycles_of_ms(c->a[3]));
}

static const struct timespec no_time;

static long wait_epoll2(const struct rt_call *c, long unused)
{
    (void)unused;
    return wait_many(c, 3, (long)&no_time, cycles_of(POINTER(const struct timespec, c->a[3])));
}

static long wait_ppoll(const struct rt_call *c, long unused)
{
    struct timespec none = no_time; /* the kernel writes to it */

    (void)unused;
    return wait_many(c, 2, (long)&none, cycles_of(POINTER(const struct timespec, c->a[2])));
}

/* select overwrites its arguments with the result. */
static long select_again(const struct rt_call *c, uint64_t cycles, long mask)
{
    struct patience p = patience_new(cycles, BY_ANY);
    struct timespec none = no_time;
    fd_set asked[3];
    long r;

    for (int i = 0; i < 3; i++)
        if (c->a[i + 1])
            asked[i] = *POINTER(fd_set, c->a[i + 1]);
    for (;;) {
        for (int i = 0; i < 3; i++)
            if (c->a[i + 1])
                *POINTER(fd_set, c->a[i + 1]) = asked[i];
        r = peet_rt_call(SYS_pselect6, c->a[0], c->a[1], c->a[2], c->a[3], (long)&none, mask);
        int end = r == 0 ? patience_wait(&p) : 0;
        if (r != 0 || end != 0)
            return r != 0 ? r : end == -ETIMEDOUT ? 0 : end;
    }
}

static long wait_select(const struct rt_call *c, long unused)
{
    const struct timeval *limit = POINTER(const struct timeval, c->a[4]);

    (void)unused;
    return select_again(c, limit ? (uint64_t)limit->tv_sec * 1000000000u + (uint64_t)limit->tv_usec * 1000u : FOR_EVER,
                        0);
}

static long wait_pselect(const struct rt_call *c, long unused)
{
    (void)unused;
    return select_again(c, cycles_of(POINTER(const struct timespec, c->a[4])), c->a[5]);
}

/* ---- time ---- */

/* Sleeps in steps of 1/32 of the time that is left, and at least LONGEST_LOOK, because signals and cancellation take effect
 * between two steps. Only the first step takes real time: the machine has the time of the end. */
static int sleep_in_steps(struct patience *p)
{
    bool is_first = true;

    while (p->left > 0) {
        uint64_t part = p->left / 32, cycles = part > LONGEST_LOOK      ? part
                                               : p->left < LONGEST_LOOK ? p->left
                                                                        : LONGEST_LOOK;
        if (is_first)
            peet_rt_yield(cycles);
        else
            yield_cycles(cycles);
        is_first = false;
        p->left -= cycles;
        peet_rt_cancel_here();
        if (patience_is_interrupted(p))
            return -EINTR;
    }
    return 0;
}

static struct timespec timespec_of(uint64_t cycles)
{
    return (struct timespec){ (time_t)(cycles / 1000000000u), (long)(cycles % 1000000000u) };
}

/* span_at: index of the duration among the arguments. A handler ends a sleep, which then returns the time that is
 * left. */
static long wait_sleep(const struct rt_call *c, long span_at)
{
    const struct timespec *span = POINTER(const struct timespec, c->a[span_at]);
    bool is_until = c->number == SYS_clock_nanosleep && (c->a[1] & TIMER_ABSTIME);
    uint64_t cycles = is_until ? cycles_until(span, c->a[0]) : cycles_of(span);
    struct patience p = patience_new(cycles, BY_ANY);

    int end = sleep_in_steps(&p);
    struct timespec *rest = is_until ? NULL : POINTER(struct timespec, c->a[span_at + 1]);
    if (end == -EINTR && rest)
        *rest = timespec_of(p.left);
    return end;
}

static long wait_yield(const struct rt_call *c, long unused)
{
    (void)c;
    (void)unused;
    peet_rt_yield(SHORTEST_LOOK);
    return 0;
}

/* ---- children ---- */

static long wait_child(const struct rt_call *c, long options_at)
{
    struct patience p = patience_new(FOR_EVER, BY_NO_RESTART);
    struct rt_call now = *c;
    siginfo_t *info = c->number == SYS_waitid ? POINTER(siginfo_t, c->a[2]) : NULL;
    long r;
    int end;

    if (c->a[options_at] & WNOHANG)
        return call_make(c);
    now.a[options_at] |= WNOHANG;
    if (info)
        info->si_pid = 0;
    while ((r = call_make(&now)) == 0 && !(info && info->si_pid))
        if ((end = patience_wait(&p)) != 0)
            return end;
    return r;
}

/* ---- signals ---- */

/* pause and sigsuspend: wait until a handler has run. has_mask: the first argument points to the signals to block until
 * then. */
static long wait_signal(const struct rt_call *c, long has_mask)
{
    struct patience p = patience_new(FOR_EVER, BY_ANY);
    uint64_t old = has_mask ? peet_rt_set_mask(*POINTER(const uint64_t, c->a[0])) : 0;

    while (p.handled == peet_rt_self.hosted.handlers_run && patience_wait(&p) == 0)
        ;
    if (has_mask)
        peet_rt_set_mask(old);
    return -EINTR;
}

/* sigwait and related calls: take a blocked signal out of the pending ones. */
static long wait_signal_of(const struct rt_call *c, long unused)
{
    struct rt_call now = *c;
    struct patience p = patience_new(cycles_of(POINTER(const struct timespec, c->a[2])), BY_ANY);
    siginfo_t *info = POINTER(siginfo_t, c->a[1]);
    long r;
    int number, end;

    (void)unused;
    now.a[2] = (long)&no_time;
    for (;;) {
        if ((number = peet_rt_take_signal(*POINTER(const uint64_t, c->a[0]))) != 0) {
            if (info)
                *info = (siginfo_t){ .si_signo = number, .si_code = SI_TKILL };
            return number;
        }
        if ((r = call_make(&now)) != -EAGAIN)
            return r;
        if ((end = patience_wait(&p)) != 0)
            return end == -ETIMEDOUT ? -EAGAIN : end;
    }
}

/* ---- System V ---- */

static long wait_message(const struct rt_call *c, long flags_at)
{
    struct rt_call now = *c;

    now.a[flags_at] |= IPC_NOWAIT;
    if (c->a[flags_at] & IPC_NOWAIT)
        return call_make(c);
    return call_again(&now, c->number == SYS_msgrcv ? -ENOMSG : -EAGAIN, 0, patience_new(FOR_EVER, BY_ANY));
}

/* limit_at: index of the time limit among the arguments; 0: no limit. */
static long wait_semaphore(const struct rt_call *c, long limit_at)
{
    const struct sembuf *asked = POINTER(const struct sembuf, c->a[1]);
    uint64_t cycles = limit_at ? cycles_of(POINTER(const struct timespec, c->a[limit_at])) : FOR_EVER;
    struct sembuf now[MOST_SEMAPHORES];
    struct rt_call again = { SYS_semop, { c->a[0], (long)now, c->a[2] } };

    if (c->a[2] <= 0 || c->a[2] > MOST_SEMAPHORES)
        return call_make(c);
    for (long i = 0; i < c->a[2]; i++) {
        if (asked[i].sem_flg & IPC_NOWAIT)
            return call_make(c);
        now[i] = asked[i];
        now[i].sem_flg |= IPC_NOWAIT;
    }
    return call_again(&again, -EAGAIN, -EAGAIN, patience_new(cycles, BY_ANY));
}

/* ---- futexes ---- */

/* No other thread runs between the test of the word and the wait. */
static long waits_on_futex(const struct rt_call *c)
{
    const volatile uint32_t *word = POINTER(const volatile uint32_t, c->a[0]);
    const struct timespec *limit = POINTER(const struct timespec, c->a[3]);
    uint64_t addr = (uint64_t)c->a[0], cycles = cycles_of(limit);

    if (*word != (uint32_t)c->a[2])
        return -EAGAIN;
    if (!limit) {
        peet_rt_event(PEET_EV_futex_wait, 0, 1, &addr);
        peet_rt_stop();
        return 0;
    }
    if ((c->a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET) /* an absolute time */
        cycles = cycles_until(limit, c->a[1] & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC);
    struct patience p = patience_new(cycles, BY_NO_RESTART);
    int end = 0;
    while (end == 0 && *word == (uint32_t)c->a[2])
        end = patience_wait(&p);
    return end;
}

static long wait_futex(const struct rt_call *c, long unused)
{
    switch (c->a[1] & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET: return waits_on_futex(c);
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET: {
        const uint64_t arg[] = { (uint64_t)c->a[0], (uint64_t)c->a[2] };
        peet_rt_event(PEET_EV_futex_wake, 0, 2, arg);
        return call_make(c); /* for kernel threads that the host does not run */
    }
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
    case FUTEX_UNLOCK_PI: return wait_elsewhere(c, unused); /* the owner is the carrier */
    default: return call_make(c);
    }
}

/* ---- the table of calls ---- */

enum { NUMBERS = 512 };
static const struct wait_method {
    long (*how)(const struct rt_call *c, long argument);
    long argument;
} waits[NUMBERS] = {
#define X(name, how, argument) [SYS_##name] = { wait_##how, argument },
    RT_WAITS(X) RT_WAITS_OUTSIDE(X)
#undef X
};

long peet_rt_wait(const struct rt_call *c)
{
    const struct wait_method *w = c->number >= 0 && c->number < NUMBERS ? &waits[c->number] : NULL;

    if (!w || !w->how)
        return call_make(c);
    peet_rt_stop(); /* what other threads do earlier in simulated time comes before the call */
    return w->how(c, w->argument);
}
