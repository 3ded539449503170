/* SPDX-License-Identifier: MIT */
/* What a program may say about itself. Built by `peet cc`, each of these is one abstract event in the thread's stream; built
 * by any other compiler, each is nothing at all, and the header needs nothing to link. C and C++.
 *
 *     PEET_REGION_BEGIN("solve");                        names a part of the execution; regions nest
 *     PEET_REGION_END("solve");
 *     PEET_MARK("iteration", i);                         a point, with a number
 *     PEET_NAME_DATA("grid", grid, sizeof *grid * n);    what to call these bytes in a report
 *
 * Synchronisation that a program does with atomic instructions, without a library, is marked by
 *
 *     PEET_SPIN_WAIT(&flag);                             this thread has just spun until *(&flag) changed
 *     PEET_SPIN_LOCK(&lock);                             it has just taken this lock, however long it spun
 *     PEET_SPIN_TRYLOCK(&lock, result);                  it has tried to: 0 is success
 *     PEET_SPIN_UNLOCK(&lock);                           it is about to give it back
 *
 * Parallel loops that run one iteration after another, and are simulated in parallel:
 *
 *     PEET_DOALL(long, i, 0, n) { a[i] = f(i); }         iterations are independent
 *     PEET_DOALL(long, i, 1, n) {                        DOACROSS: iteration i needs something of iteration i - 1
 *         PEET_WAIT(a, i - 1);
 *         a[i] = a[i - 1] + b[i];
 *         PEET_POST(a, i);
 *     }
 *
 * `peet simulate` deals the iterations out to the machine's processors; for each, a wait is over when that value was posted.
 * Leaving such a loop by break, goto or return leaves its events without their ends.
 *
 * A thread of a guest that `peet record --system` is to record says so where it begins; any compiler will do:
 *
 *     PEET_THREAD_BEGIN(number);                         this thread is recorded from here on, under this number
 *     PEET_THREAD_END();                                 and up to here; needed only if it is to end before the thread does
 *
 * in main and in the function of each other thread. That locks the page at the bottom of the thread's stack and executes one
 * instruction that does nothing. Only these two need libraries: the C library, with POSIX threads. Linux on x86-64, aarch64
 * and riscv64; elsewhere they are nothing. A freestanding program, and one of another operating system, has the same two from
 * peet/mark_bare.h, which needs no library. */
#ifndef PEET_MARK_H
#define PEET_MARK_H

#if !__STDC_HOSTED__
#include <peet/mark_bare.h>
#elif defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__) || (defined(__riscv) && __riscv_xlen == 64))
#include <peet/mark_guest.h>
#else
#define PEET_THREAD_BEGIN(number) ((void)sizeof(number))
#define PEET_THREAD_END() ((void)0)
#endif

#ifdef __PEET__

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* In the runtime: kind is one of the numbers below, which are the runtime's own. */
void peet_rt_mark(unsigned kind, uint64_t a, uint64_t b, uint64_t c);

#ifdef __cplusplus
}
#endif

enum {
    PEET_RT_REGION_BEGIN = 1,
    PEET_RT_REGION_END,
    PEET_RT_MARK,
    PEET_RT_NAME_DATA,
    PEET_RT_SPIN_WAIT,
    PEET_RT_DOALL_FORK,
    PEET_RT_DOALL_START,
    PEET_RT_DOALL_FINISH,
    PEET_RT_DOALL_JOIN,
    PEET_RT_POST,
    PEET_RT_WAIT,
    PEET_RT_SPIN_LOCK,
    PEET_RT_SPIN_TRYLOCK,
    PEET_RT_SPIN_UNLOCK,
};

#define PEET_SAY(kind, a, b, c) peet_rt_mark(kind, (uint64_t)(a), (uint64_t)(b), (uint64_t)(c))

#else

#define PEET_SAY(kind, a, b, c) ((void)sizeof(((void)(a), (void)(b), (void)(c), 0))) /* nothing is evaluated */

#endif

#define PEET_REGION_BEGIN(name) PEET_SAY(PEET_RT_REGION_BEGIN, name, 0, 0)
#define PEET_REGION_END(name) PEET_SAY(PEET_RT_REGION_END, name, 0, 0)
#define PEET_MARK(name, value) PEET_SAY(PEET_RT_MARK, name, value, 0)
#define PEET_NAME_DATA(name, addr, bytes) PEET_SAY(PEET_RT_NAME_DATA, name, addr, bytes)
#define PEET_SPIN_WAIT(addr) PEET_SAY(PEET_RT_SPIN_WAIT, addr, 0, 0)
#define PEET_SPIN_LOCK(lock) PEET_SAY(PEET_RT_SPIN_LOCK, lock, 0, 0)
#define PEET_SPIN_TRYLOCK(lock, result) PEET_SAY(PEET_RT_SPIN_TRYLOCK, lock, result, 0)
#define PEET_SPIN_UNLOCK(lock) PEET_SAY(PEET_RT_SPIN_UNLOCK, lock, 0, 0)
#define PEET_POST(object, value) PEET_SAY(PEET_RT_POST, object, value, 0)
#define PEET_WAIT(object, value) PEET_SAY(PEET_RT_WAIT, object, value, 0)
#define PEET_DOALL_FORK(iterations) PEET_SAY(PEET_RT_DOALL_FORK, iterations, 0, 0)
#define PEET_DOALL_START(iteration) PEET_SAY(PEET_RT_DOALL_START, iteration, 0, 0)
#define PEET_DOALL_FINISH(iteration) PEET_SAY(PEET_RT_DOALL_FINISH, iteration, 0, 0)
#define PEET_DOALL_JOIN(iterations) PEET_SAY(PEET_RT_DOALL_JOIN, iterations, 0, 0)

/* A loop over i in [first, end), with its events around it and around each iteration. `end` is evaluated each time. */
#define PEET_DOALL(type, i, first, end) \
    for (type i = (PEET_DOALL_FORK((end) > (first) ? (end) - (first) : 0), (first)); \
         i < (end) ? (PEET_DOALL_START(i), 1) : (PEET_DOALL_JOIN((end) > (first) ? (end) - (first) : 0), 0); \
         PEET_DOALL_FINISH(i), i++)

#endif
