/* SPDX-License-Identifier: MIT */
/* A producer that steps through a program, instruction by instruction, with ptrace. It needs no help from the program,
 * sees everything that the program executes outside the kernel, and is slow: some stops and switches of context for each
 * instruction. What it writes is exact, but for what stops.c and code.c leave out: other producers are measured by it.
 *
 * Threads run side by side; of those that have stopped, each is taken once before one is taken again. Their streams do
 * not depend on the order. Switching to single steps changes the timing, of course: locks are contended differently. */
#include "capture/step/step.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/err.h"
#include "base/mem.h"

enum { STEPS_PER_PROGRESS = 256 };

/* ---- our own signals ---- */

/* What a terminal sends goes to the subject by itself, for it is in our process group: we go on, to write down how it
 * ends. What is sent to us alone we hand on. A file that is too large is an error of writing, not the end. */
static const int SIGNALS[] = { SIGINT, SIGQUIT, SIGXFSZ, SIGTERM, SIGHUP };
enum { SIGNAL_COUNT = sizeof SIGNALS / sizeof SIGNALS[0], FIRST_HANDED_ON = 3 };

static volatile sig_atomic_t hand_on_to;

static void hand_on(int signal)
{
    int kept = errno;

    if (hand_on_to > 0)
        kill((pid_t)hand_on_to, signal);
    errno = kept;
}

static void take_signals(pid_t root, struct sigaction *old)
{
    hand_on_to = root;
    for (int i = 0; i < SIGNAL_COUNT; i++) {
        struct sigaction now = { .sa_handler = i < FIRST_HANDED_ON ? SIG_IGN : hand_on, .sa_flags = SA_RESTART };
        sigaction(SIGNALS[i], NULL, &old[i]);
        if (old[i].sa_handler != SIG_IGN)
            sigaction(SIGNALS[i], &now, NULL);
    }
}

static void give_signals_back(const struct sigaction *old)
{
    for (int i = 0; i < SIGNAL_COUNT; i++)
        sigaction(SIGNALS[i], &old[i], NULL);
    hand_on_to = 0;
}

/* ---- the loop ---- */

static void enqueue(struct producer_state *r, pid_t tid, int status)
{
    if (r->queued == r->queue_room) {
        size_t room = r->queue_room * 2 + 16;
        struct stop *bigger = realloc(r->queue, room * sizeof *bigger);
        assert(bigger); /* it is as short as there are threads */
        r->queue = bigger;
        r->queue_room = room;
    }
    r->queue[r->queued++] = (struct stop){ tid, status };
}

/* Waits for a stop, and takes all others that are there. False: there is nobody left to stop. */
static bool gather(struct producer_state *r)
{
    int status;
    pid_t tid;

    r->queue_at = r->queued = 0;
    while ((tid = waitpid(-1, &status, __WALL)) < 0)
        if (errno != EINTR)
            return false;
    enqueue(r, tid, status);
    while (r->threads.count > 1 && (tid = waitpid(-1, &status, __WALL | WNOHANG)) > 0)
        enqueue(r, tid, status);
    return true;
}

static int loop(struct producer_state *r)
{
    int done = 0;

    while (done == 0 && r->threads.count > 0 && !r->ret->stopped && gather(r))
        while (done == 0 && r->queue_at < r->queued && !r->ret->stopped) {
            done = stop_take(r, r->queue[r->queue_at++]);
            if (++r->steps % STEPS_PER_PROGRESS == 0)
                progress_at(r->config->progress, r->executed);
        }
    return done;
}

static int begin(struct producer_state *r)
{
    struct process *p;
    struct thread *t;
    int done = process_new(r, r->root, 0, &p);

    if (done < 0 || (done = thread_new(r, r->root, (struct family){ .process = p }, &t)) < 0)
        return done;
    thread_resume(t); /* it stops once more, behind exec, with nothing executed */
    return 0;
}

/* ---- the producer ---- */

static int start(struct producer_state *s, const struct producer_config *config, struct peet_err *err)
{
    bool moved = false;
    if (config->regions.count || config->only.count || config->skip.count)
        return err_set(err, PEET_ERR_USAGE,
                       "--region, --only and --skip are for programs that were built with peet cc, not for --step");
    int done = start_subject(config, &s->root, &moved, err);

    if (done < 0)
        return done;
    s->config = config;
    s->started = true;
    s->moved = moved;
    s->level = config->level ? config->level : LEVEL_memory;
    s->layout.record_values = s->level == LEVEL_all;
    s->layout.strips_operands = s->level < LEVEL_memory;
    s->next_process = 1;
    return 0;
}

static int run(struct producer_state *s, struct peet_writer *w, struct recording *ret, struct peet_err *err)
{
    struct sigaction old[SIGNAL_COUNT];
    struct peet_err own;

    s->writer = w;
    s->ret = ret;
    s->err = err ? err : &own;
    *ret = (struct recording){ .ran = true, .aslr_kept = s->moved };
    s->started = false;
    take_signals(s->root, old);
    int done = peet_writer_meta(w, "level", level_name(s->level), s->err);
    if (done == 0)
        done = begin(s);
    if (done == 0)
        done = loop(s);
    struct peet_err first = *s->err;
    release_all(s);
    if (done < 0)
        *s->err = first;
    give_signals_back(old);
    return done;
}

static void release(struct producer_state *s)
{
    struct process **p;
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
    .start = start,
    .run = run,
    .release = release,
};
