/* SPDX-License-Identifier: MIT */
/* Detaches from the program, which continues unrecorded: --max was reached, or the trace cannot be written.
 *
 * A thread must be in a stop to be detached, and no SIGTRAP of a step may be pending in it, which would kill it. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "capture/step/step.h"

enum { PENDING_MAX = 16 };

/* Waits for a stop of one thread: its status, or -1. */
static int await_stop(pid_t tid)
{
    int status;

    while (waitpid(tid, &status, __WALL) < 0)
        if (errno != EINTR)
            return -1;
    return status;
}

/* Whether the SIGTRAP of a step is pending in a stopped thread. */
static bool has_trap_pending(pid_t tid)
{
    siginfo_t info[PENDING_MAX];
    struct __ptrace_peeksiginfo_args args = { .nr = PENDING_MAX };
    long n = ptrace(PTRACE_PEEKSIGINFO, tid, &args, info);

    for (long i = 0; i < n; i++)
        if (info[i].si_signo == SIGTRAP && (info[i].si_code == TRAP_TRACE || info[i].si_code == TRAP_BRKPT))
            return true;
    return false;
}

static void release_detach(pid_t tid, int deliver)
{
    if (has_trap_pending(tid) && ptrace(PTRACE_CONT, tid, 0, deliver) == 0) {
        await_stop(tid);
        deliver = 0;
    }
    ptrace(PTRACE_DETACH, tid, 0, deliver);
}

void release_thread(struct stepper *r, struct tracee *t)
{
    pid_t tid = t->tid;
    int deliver = t->deliver;

    tracee_end(r, t, PEET_END_STOPPED, 0); /* if that fails, there is nothing more to be done */
    release_detach(tid, deliver);
}

/* Detaches from a new thread or process whose creation was not handled yet. */
static void release_newborn(struct stepper *r, pid_t maker)
{
    unsigned long tid;

    if (ptrace(PTRACE_GETEVENTMSG, maker, 0, &tid) < 0)
        return;
    if (!map_find(&r->early, tid, 0) && await_stop((pid_t)tid) < 0)
        return;
    map_remove(&r->early, tid, 0);
    release_detach((pid_t)tid, 0);
}

/* Notes a stop that will not be handled. */
static void release_note_stop(struct stepper *r, struct tracee *t, int status)
{
    int event = status >> 16;

    t->running = false;
    if (!WIFSTOPPED(status)) {
        if (t->tid == r->root) {
            r->root_ended = true;
            r->ret->status = status;
        }
    } else if (event == 0 && WSTOPSIG(status) != SIGTRAP) {
        t->deliver = WSTOPSIG(status);
    } else if (event == PTRACE_EVENT_CLONE || event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK) {
        release_newborn(r, t->tid);
    }
}

/* Stops a running thread. */
static void catch_thread(struct stepper *r, struct tracee *t)
{
    if (ptrace(PTRACE_INTERRUPT, t->tid, 0, 0) < 0)
        return;
    int status = await_stop(t->tid);
    if (status >= 0)
        release_note_stop(r, t, status);
}

static void release_threads(struct stepper *r)
{
    struct tracee **t, *known;
    uint64_t tid;
    uint32_t tag;

    for (; r->queue_at < r->queued; r->queue_at++)
        if ((known = tracee_find(r, r->queue[r->queue_at].tid)))
            release_note_stop(r, known, r->queue[r->queue_at].status);
    for (size_t at = 0; (t = map_next(&r->threads, &at, &tid, &tag));)
        if ((*t)->running)
            catch_thread(r, *t);
    for (size_t at = 0; (t = map_next(&r->threads, &at, &tid, &tag)); at = 0)
        release_thread(r, *t);
    for (size_t at = 0; map_next(&r->early, &at, &tid, &tag);)
        release_detach((pid_t)tid, 0);
    map_clear(&r->early);
}

void release_all(struct stepper *r)
{
    int status;
    pid_t pid;

    release_threads(r);
    while (!r->root_ended) {
        if ((pid = waitpid(-1, &status, __WALL)) < 0) {
            if (errno == EINTR)
                continue;
            break;
        }
        if (WIFSTOPPED(status)) { /* an unknown thread */
            release_detach(pid, status >> 16 || WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status));
        } else if (pid == r->root) {
            r->root_ended = true;
            r->ret->status = status;
        }
    }
}
