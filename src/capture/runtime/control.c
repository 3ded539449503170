/* SPDX-License-Identifier: MIT */
/* Stops of controlled threads (docs/design/controlled-execution.md). Threads keep their stacks and variables; they only
 * wait for each other here. A waiting thread spins for a while before it sleeps, because the answer often comes
 * fast. */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

#include "capture/runtime/rt.h"
#include "capture/runtime/host.h"
#include "capture/runtime/skip.h"

enum { SPINS = 400 };

static void control_wait(_Atomic uint32_t *word, uint32_t value)
{
    const struct timespec limit = { 1, 0 };

    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != value)
            return;
        __builtin_ia32_pause();
    }
    while (atomic_load_explicit(word, memory_order_acquire) == value) {
        long r = peet_rt_call(SYS_futex, (long)word, FUTEX_WAIT, value, (long)&limit, 0, 0);
        if (r == -110 /* ETIMEDOUT */
            && peet_rt_call(SYS_kill, peet_rt_header->recorder, 0, 0, 0, 0, 0) == -3 /* ESRCH */)
            peet_rt_call(SYS_exit_group, 1, 0, 0, 0, 0, 0); /* the recorder is gone */
    }
}

uint64_t peet_rt_stop_as(struct raw_thread *entry, enum raw_stop how)
{
    if (peet_rt_in_process) {
        peet_rt_yield_to_host(entry, how);
        return entry->reply;
    }
    atomic_store_explicit(&entry->stopped, how, memory_order_release);
    peet_rt_call(SYS_futex, (long)&entry->stopped, FUTEX_WAKE, 2, 0, 0, 0);
    if (how == RAW_FINISHED)
        return 0;
    control_wait(&entry->go, 0);
    atomic_store_explicit(&entry->go, 0, memory_order_relaxed);
    return entry->reply;
}

uint64_t peet_rt_stop(void)
{
    struct raw_thread *entry = peet_rt_self.entry;

    peet_rt_skip_end();
    if (peet_rt_self.skip.spilled.start)
        peet_rt_next_buffer(peet_rt_cursor, 0);
    peet_rt_next_buffer(peet_rt_cursor, 0); /* which stops the thread */
    if (peet_rt_self.skip.pending)
        peet_rt_skip_resume();
    return entry->reply;
}

RT_PUBLIC void peet_rt_synchronize(void)
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

void peet_rt_await_child(struct raw_thread *entry)
{
    control_wait(&entry->stopped, RAW_RUNS);
}
