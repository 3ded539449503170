/* SPDX-License-Identifier: MIT */
#include "capture/recorder/live.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "format/file/writer.h"
#include "base/mem.h"

enum { PATIENCE_NS = 50000000 };

/* The state of the producer `live`. */
struct producer_state {
    struct recorder recorder;
};

static int producer_live_start(struct producer_state *state, const struct producer_config *config, struct peet_err *err)
{
    struct recorder *s = &state->recorder;

    s->config = config;
    s->fd = -1;
    pthread_mutex_init(&s->children.lock, NULL);
    pthread_mutex_init(&s->code_lock, NULL);
    if (config->level == LEVEL_all)
        return err_set(err, PEET_ERR_USAGE, "values need --step: a program does not tell them by itself");
    code_init(&s->code, config->level);
    int r = live_start(s, err);
    return r < 0 ? r : filter_foresee(s, err);
}

/* ---- waiting for children ---- */

void live_notify(struct recorder *s)
{
    atomic_fetch_add(&s->header->doorbell, 1);
    if (atomic_exchange(&s->header->recorder_waits, 0))
        syscall(SYS_futex, &s->header->doorbell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* A separate thread: waits for the ends of children, and of orphans, for which the recorder is the subreaper. */
static void *wait_for_children(void *argument)
{
    struct recorder *s = argument;
    int status;

    for (;;) {
        pid_t pid = waitpid(-1, &status, __WALL);
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid < 0)
            break;
        pthread_mutex_lock(&s->children.lock);
        s->children.ended = mem_room(s->children.ended, s->children.count, sizeof *s->children.ended);
        s->children.ended[s->children.count++] = (struct live_child){ pid, status };
        if (pid == s->pid) {
            s->children.main_has_ended = true;
            s->ret->status = status;
        }
        pthread_mutex_unlock(&s->children.lock);
        live_notify(s);
    }
    return NULL;
}

static bool main_has_ended(struct recorder *s)
{
    pthread_mutex_lock(&s->children.lock);
    bool yes = s->children.main_has_ended;
    pthread_mutex_unlock(&s->children.lock);
    return yes;
}

void live_wait(struct recorder *s, uint32_t count)
{
    struct timespec limit = { 0, PATIENCE_NS };

    atomic_store(&s->header->recorder_waits, 1);
    if (atomic_load(&s->header->doorbell) == count)
        syscall(SYS_futex, &s->header->doorbell, FUTEX_WAIT, count, &limit, NULL, 0);
    atomic_store(&s->header->recorder_waits, 0);
}

static void live_loop(struct recorder *s)
{
    for (;;) {
        bool over = main_has_ended(s);
        uint32_t count = atomic_load(&s->header->doorbell);
        if (drain_all(s))
            continue;
        if (over && !drain_is_any_alive(s))
            break;
        live_wait(s, count);
    }
    drain_rest(s, false);
    drain_rest(s, true);
    workers_release(s);
}

/* ---- signals: those from the keyboard are for the program ---- */

static volatile pid_t forward_to;
static volatile uint32_t end_asked; /* the last of these signals since live_take_signals; 0: none came */

/* Forwards a signal. The kernel sends those of the keyboard to the program, too. */
static void live_forward(int number, siginfo_t *info, void *context)
{
    bool is_from_keyboard = (number == SIGINT || number == SIGQUIT) && info->si_code > 0;
    int kept = errno;

    (void)context;
    end_asked = (uint32_t)number;
    if (forward_to > 0 && !is_from_keyboard)
        kill(forward_to, number);
    errno = kept;
}

static const int SIGNALS[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP };
enum { SIGNAL_COUNT = sizeof SIGNALS / sizeof *SIGNALS };
_Static_assert((int)SIGNAL_COUNT == (int)LIVE_SIGNALS, "there is room for all");

void live_take_signals(pid_t pid, struct live_signals *old)
{
    forward_to = pid;
    end_asked = 0;
    for (int i = 0; i < SIGNAL_COUNT; i++) {
        struct sigaction a = { .sa_sigaction = live_forward, .sa_flags = SA_RESTART | SA_SIGINFO };
        sigaction(SIGNALS[i], &a, &old->action[i]);
    }
}

uint32_t live_asked(void)
{
    return end_asked;
}

void live_give_signals_back(const struct live_signals *old)
{
    forward_to = 0;
    for (int i = 0; i < SIGNAL_COUNT; i++)
        sigaction(SIGNALS[i], &old->action[i], NULL);
}

/* ---- what the user should know ---- */

static void warn_of_levels(struct recorder *s)
{
    enum level asked = s->config->level, least = LEVEL_events;

    while (least < LEVEL_memory && !(s->levels.built >> least & 1))
        least++;
    if (least < asked)
        recording_warn(s->ret, "%s built with --peet-level=%s: %s no more than that",
                       s->levels.built >> (least + 1) ? "parts of the program were" : "the program was",
                       level_name(least), s->levels.built >> (least + 1) ? "of them there is" : "there is");
}

static void warn_of_all(struct recorder *s)
{
    uint32_t unrecorded = atomic_load(&s->header->unrecorded), unmapped = atomic_load(&s->header->unmapped);

    if (unrecorded)
        recording_warn(s->ret, "%u thread%s not recorded: there is room for %d at a time", unrecorded,
                       unrecorded == 1 ? " was" : "s were", RAW_THREADS);
    if (unmapped)
        recording_warn(s->ret, "%u thread%s not recorded: the program could not map the memory for that (ulimit -v?)",
                       unmapped, unmapped == 1 ? " was" : "s were");
    s->ret->unrecorded = (uint64_t)unrecorded + unmapped;
    warn_of_levels(s);
    filter_warn(s);
    live_warn_of_uninstrumented_code(s);
}

/* ---- the producer ---- */

static int producer_live_run(struct producer_state *state, struct peet_writer *w, struct recording *ret,
                             struct peet_err *err)
{
    struct recorder *s = &state->recorder;
    struct live_signals old;
    struct peet_err own;
    pthread_t waiter;

    s->writer = w;
    s->schema = s->code.schema = writer_builder(w);
    s->ret = ret;
    s->err = err ? err : &own;
    ret->ran = true;
    ret->aslr_kept = s->aslr_kept;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    live_take_signals(s->pid, &old);
    live_let_go(s);
    int r = pthread_create(&waiter, NULL, wait_for_children, s);
    if (r != 0) {
        live_give_signals_back(&old);
        return err_sys(s->err, r, "cannot wait for the program");
    }
    live_loop(s);
    pthread_cancel(waiter); /* it may wait for an unrecorded child */
    pthread_join(waiter, NULL);
    live_give_signals_back(&old);
    struct peet_totals totals;
    peet_writer_totals(w, &totals);
    ret->instructions = totals.instructions;
    ret->references = totals.references;
    s->pid = 0;
    if (ret->threads)
        warn_of_all(s);
    if (!s->failed && ret->threads == 0)
        return err_set(s->err, PEET_ERR_USAGE,
                       "%s: nothing to record: it was not built with peet cc (--step records any program)",
                       s->config->argv[0]);
    return s->failed;
}

static void producer_live_release(struct producer_state *state)
{
    struct recorder *s = &state->recorder;

    if (s->pid > 0) {
        kill(s->pid, SIGKILL);
        while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    workers_release(s);
    processes_release(s);
    code_release(&s->code);
    if (s->header)
        munmap(s->header, s->bytes);
    if (s->fd >= 0)
        close(s->fd);
    free(s->children.ended);
    pthread_mutex_destroy(&s->children.lock);
    pthread_mutex_destroy(&s->code_lock);
}

const struct producer producer_live = {
    .name = "live",
    .state_size = sizeof(struct producer_state),
    .start = producer_live_start,
    .run = producer_live_run,
    .release = producer_live_release,
};
