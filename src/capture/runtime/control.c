/* SPDX-License-Identifier: MIT */
/* A thread whose turn it is: docs/design/controlled-execution.md. Threads stay what they are, with their stacks and their variables; they
 * only wait for each other here. Who waits looks for a while before it sleeps, for the other side is often fast. */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

#include "capture/runtime/rt.h"

enum { LOOKS = 400 };

static void wait_for(_Atomic uint32_t *word, uint32_t value)
{
    const struct timespec limit = { 1, 0 };

    for (int i = 0; i < LOOKS; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != value)
            return;
        __builtin_ia32_pause();
    }
    while (atomic_load_explicit(word, memory_order_acquire) == value) {
        long r = peet_rt_call(SYS_futex, (long)word, FUTEX_WAIT, value, (long)&limit, 0, 0);
        if (r == -110 /* ETIMEDOUT */
            && peet_rt_call(SYS_kill, peet_rt_header->recorder, 0, 0, 0, 0, 0) == -3 /* ESRCH */)
            peet_rt_call(SYS_exit_group, 1, 0, 0, 0, 0, 0); /* nobody will ever say go */
    }
}

uint64_t peet_rt_stop_as(struct raw_thread *place, enum raw_stop how)
{
    if (peet_rt_inside) {
        peet_rt_lend(place, how);
        return place->reply;
    }
    atomic_store_explicit(&place->stopped, how, memory_order_release);
    peet_rt_call(SYS_futex, (long)&place->stopped, FUTEX_WAKE, 2, 0, 0, 0);
    if (how == RAW_FINISHED)
        return 0;
    wait_for(&place->go, 0);
    atomic_store_explicit(&place->go, 0, memory_order_relaxed);
    return place->reply;
}

uint64_t peet_rt_stop(void)
{
    struct raw_thread *place = peet_rt_self.place;

    peet_rt_wake();
    if (peet_rt_self.whole.start)
        peet_rt_turn(peet_rt_cursor, 0);
    peet_rt_turn(peet_rt_cursor, 0); /* which stops */
    if (peet_rt_self.wish)
        peet_rt_go_on();
    return place->reply;
}

RT_PUBLIC void peet_rt_settle(void)
{
    if (peet_rt_is_controlled())
        peet_rt_stop();
}

RT_PUBLIC bool peet_rt_ask(unsigned kind, uint64_t site, unsigned n, const uint64_t *arg, uint64_t *ret_reply)
{
    if (!peet_rt_is_controlled())
        return false;
    peet_rt_event(kind, site, n, arg);
    *ret_reply = peet_rt_stop();
    return true;
}

void peet_rt_await_child(struct raw_thread *place)
{
    wait_for(&place->stopped, RAW_RUNS);
}
