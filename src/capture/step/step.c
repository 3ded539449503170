/* SPDX-License-Identifier: MIT */
/* The producer that steps through a program, instruction by instruction, with ptrace. It records any program, and all that it executes
 * outside of the kernel. It is slow: some stops and context switches for each instruction. The trace is exact, except for what stops.c and
 * code.c leave out; other producers are compared with it.
 *
 * Threads run in parallel; stops are handled in rounds, one of each thread. Streams do not depend on the order. Single-stepping changes the
 * timing, so that locks are contended differently. */
#include "capture/step/step.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/err.h"
#include "base/mem.h"

enum { STEPS_PER_PROGRESS = 256 };

/* The state of the producer `step`. */
struct producer_state {
    struct stepper stepper;
};

/* ---- signals to the recorder ---- */

/* The program is in the recorder's process group and gets the terminal's signals from the kernel; the recorder ignores these and records the
 * program's end. Other signals are forwarded. SIGXFSZ is ignored, so that a file that is too large is a write error. */
static const int SIGNALS[] = { SIGINT, SIGQUIT, SIGXFSZ, SIGTERM, SIGHUP };
enum { SIGNAL_COUNT = sizeof SIGNALS / sizeof SIGNALS[0], FIRST_FORWARDED = 3 };

static volatile sig_atomic_t forward_to;

static void forward_signal(int signal)
{
    int kept = errno;

    if (forward_to > 0)
        kill((pid_t)forward_to, signal);
    errno = kept;
}

static void step_take_signals(pid_t root, struct sigaction *old)
{
    forward_to = root;
    for (int i = 0; i < SIGNAL_COUNT; i++) {
        struct sigaction now = { .sa_handler = i < FIRST_FORWARDED ? SIG_IGN : forward_signal, .sa_flags = SA_RESTART };
        sigaction(SIGNALS[i], NULL, &old[i]);
        if (old[i].sa_handler != SIG_IGN)
            sigaction(SIGNALS[i], &now, NULL);
    }
}

static void step_restore_signals(const struct sigaction *old)
{
    for (int i = 0; i < SIGNAL_COUNT; i++)
        sigaction(SIGNALS[i], &old[i], NULL);
    forward_to = 0;
}

/* ---- the loop ---- */

static void stop_enqueue(struct stepper *r, pid_t tid, int status)
{
    if (r->queued == r->queue_room) {
        size_t room = r->queue_room * 2 + 16;
        struct tracee_stop *bigger = realloc(r->queue, room * sizeof *bigger);
        assert(bigger); /* it has one element for each thread */
        r->queue = bigger;
        r->queue_room = room;
    }
    r->queue[r->queued++] = (struct tracee_stop){ tid, status };
}

/* Waits for a stop, and queues all stops that are there. False: there is no thread left. */
static bool stops_gather(struct stepper *r)
{
    int status;
    pid_t tid;

    r->queue_at = r->queued = 0;
    while ((tid = waitpid(-1, &status, __WALL)) < 0)
        if (errno != EINTR)
            return false;
    stop_enqueue(r, tid, status);
    while (r->threads.count > 1 && (tid = waitpid(-1, &status, __WALL | WNOHANG)) > 0)
        stop_enqueue(r, tid, status);
    return true;
}

static int step_loop(struct stepper *r)
{
    int done = 0;

    while (done == 0 && r->threads.count > 0 && !r->ret->stopped && stops_gather(r))
        while (done == 0 && r->queue_at < r->queued && !r->ret->stopped) {
            done = stop_take(r, r->queue[r->queue_at++]);
            if (++r->steps % STEPS_PER_PROGRESS == 0)
                progress_at(r->config->progress, r->executed);
        }
    return done;
}

static int step_begin(struct stepper *r)
{
    struct tracee_process *p;
    struct tracee *t;
    int done = process_new(r, r->root, 0, &p);

    if (done < 0 || (done = tracee_new(r, r->root, (struct tracee_parent){ .process = p }, &t)) < 0)
        return done;
    tracee_resume(t); /* it stops once more after exec, with nothing executed */
    return 0;
}

/* ---- the producer ---- */

static int producer_step_start(struct producer_state *state, const struct producer_config *config, struct peet_err *err)
{
    struct stepper *s = &state->stepper;
    bool moved = false;
    if (config->regions.count || config->only.count || config->skip.count)
        return err_set(err, PEET_ERR_USAGE,
                       "--region, --only and --skip are for programs that were built with peet cc, not for --step");
    int done = start_subject(config, &s->root, &moved, err);

    if (done < 0)
        return done;
    s->config = config;
    s->started = true;
    s->aslr_kept = moved;
    s->level = config->level ? config->level : LEVEL_memory;
    s->layout.record_values = s->level == LEVEL_all;
    s->layout.strips_operands = s->level < LEVEL_memory;
    s->next_process = 1;
    return 0;
}

static int producer_step_run(struct producer_state *state, struct peet_writer *w, struct recording *ret,
                             struct peet_err *err)
{
    struct stepper *s = &state->stepper;
    struct sigaction old[SIGNAL_COUNT];
    struct peet_err own;

    s->writer = w;
    s->ret = ret;
    s->err = err ? err : &own;
    *ret = (struct recording){ .ran = true, .aslr_kept = s->aslr_kept };
    s->started = false;
    step_take_signals(s->root, old);
    int done = peet_writer_meta(w, "level", level_name(s->level), s->err);
    if (done == 0)
        done = step_begin(s);
    if (done == 0)
        done = step_loop(s);
    struct peet_err first = *s->err;
    release_all(s);
    if (done < 0)
        *s->err = first;
    step_restore_signals(old);
    return done;
}

static void producer_step_release(struct producer_state *state)
{
    struct stepper *s = &state->stepper;
    struct tracee_process **p;
    uint64_t pid;
    uint32_t tag;

    if (s->started) {
        kill(s->root, SIGKILL);
        while (waitpid(s->root, NULL, __WALL) < 0 && errno == EINTR)
            ;
    }
    for (size_t at = 0; (p = map_next(&s->processes, &at, &pid, &tag));)
        process_free(*p);
    map_release(&s->threads);
    map_release(&s->processes);
    map_release(&s->early);
    map_release(&s->numbers);
    map_release(&s->versions);
    x86_layout_release(&s->layout);
    arena_release(&s->arena);
    free(s->queue);
}

const struct producer producer_step = {
    .name = "step",
    .state_size = sizeof(struct producer_state),
    .start = producer_step_start,
    .run = producer_step_run,
    .release = producer_step_release,
};
