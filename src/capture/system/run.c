/* SPDX-License-Identifier: MIT */
/* QEMU's process: a child in a separate process group, so that signals of the terminal reach peet only. When an end is requested, QEMU gets
 * SIGTERM, and the plugin closes its trace. A second Ctrl-C kills QEMU, unless it comes at once: timeout(1) sends each signal twice. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "capture/system/system.h"

enum { LOOK_MS = 100, BOOT_SECONDS = 300, AT_ONCE_SECONDS = 1 };

static const int SIGNALS[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
enum { SIGNAL_COUNT = sizeof SIGNALS / sizeof *SIGNALS };

static volatile sig_atomic_t caught, times_caught;

static void catch (int number)
{
    caught = number;
    times_caught++;
}

static void run_take_signals(struct sigaction *old)
{
    struct sigaction a = { .sa_handler = catch };

    caught = times_caught = 0;
    for (int i = 0; i < SIGNAL_COUNT; i++)
        sigaction(SIGNALS[i], &a, &old[i]);
}

static void run_restore_signals(const struct sigaction *old)
{
    for (int i = 0; i < SIGNAL_COUNT; i++)
        sigaction(SIGNALS[i], &old[i], NULL);
}

static double run_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static _Noreturn void run_become(const struct guest_job *job, pid_t parent, int say)
{
    int in = open("/dev/null", O_RDONLY), out = open(job->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* no guest outlives us */
    if (getppid() == parent && dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0
        && dup2(out, STDERR_FILENO) >= 0
        && (!job->emulator->library || setenv("LD_LIBRARY_PATH", job->emulator->library, 1) == 0))
        execv(job->command->item[0], job->command->item);
    int failure = errno;
    (void)!write(say, &failure, sizeof failure);
    for (;;)
        kill(getpid(), SIGKILL); /* the library never exits; this is not its program any more */
}

static int run_start(const struct guest_job *job, pid_t *ret, struct peet_err *err)
{
    int fd[2], failure = 0;
    pid_t self = getpid();

    if (pipe2(fd, O_CLOEXEC) < 0)
        return err_sys(err, errno, "%s: cannot be started", job->command->item[0]);
    pid_t pid = fork();
    if (pid == 0)
        run_become(job, self, fd[1]);
    int why = errno;
    close(fd[1]);
    if (pid > 0 && read(fd[0], &failure, sizeof failure) == sizeof failure) {
        waitpid(pid, NULL, 0);
        why = failure;
    }
    close(fd[0]);
    if (pid < 0 || failure)
        return err_sys(err, why, "%s: cannot be run", job->command->item[0]);
    *ret = pid;
    return 0;
}

/* Takes what has been written to the console since last time. */
static void run_watch_console(int *fd, const char *path, struct console *console)
{
    char buffer[1 << 14];
    ssize_t n;

    if (*fd < 0)
        *fd = open(path, O_RDONLY | O_CLOEXEC);
    while (*fd >= 0 && (n = read(*fd, buffer, sizeof buffer)) > 0)
        console_take(console, buffer, (size_t)n);
}

/* Watches QEMU while it runs. */
struct run_watch {
    const struct guest_job *job;
    pid_t pid;              /* of QEMU */
    int pidfd, console_fd;  /* -1: not open */
    double begin, asked_at; /* seconds on the clock; seconds since `begin` */
    bool asked;             /* SIGTERM was sent */
    int answered;           /* signals that were passed on */
};

/* Ends QEMU at the user's request or at a limit of time: SIGTERM first, SIGKILL at a second request. */
static void look_after(struct run_watch *w, struct guest_run *ret)
{
    const struct guest_job *job = w->job;
    double seconds = run_now() - w->begin;

    ret->timed_out |= !w->asked && job->timeout && seconds >= (double)job->timeout;
    ret->never_started |= !w->asked && !job->own_system && !job->console->up && seconds >= BOOT_SECONDS;
    if (times_caught > w->answered) {
        ret->interrupted = caught;
        if (w->asked && seconds - w->asked_at > AT_ONCE_SECONDS)
            kill(w->pid, SIGKILL);
        w->answered = times_caught;
    }
    if (!w->asked && (ret->timed_out || ret->never_started || ret->interrupted)) {
        kill(w->pid, SIGTERM);
        w->asked = true;
        w->asked_at = seconds;
    }
}

static void show_progress(const struct guest_job *job, const char *what, struct report *report)
{
    if (!job->progress || !job->progress->active)
        return;
    report_read(job->files->report, report);
    job->progress->what = job->console->up || job->own_system ? what : "the guest boots";
    progress_at(job->progress, report->instructions);
}

static void run_watch(struct run_watch *w, struct guest_run *ret)
{
    const struct guest_job *job = w->job;
    const char *what = job->progress ? job->progress->what : NULL;
    struct report report = { 0 };
    pid_t ended = 0;

    while (ended == 0) {
        struct pollfd p = { .fd = w->pidfd, .events = POLLIN };
        poll(&p, 1, LOOK_MS);
        ended = waitpid(w->pid, &ret->status, WNOHANG);
        run_watch_console(&w->console_fd, job->files->console, job->console);
        look_after(w, ret);
        show_progress(job, what, &report);
        if (ended < 0 && errno == EINTR)
            ended = 0;
    }
    report_release(&report);
}

int guest_run(const struct guest_job *job, struct guest_run *ret, struct peet_err *err)
{
    struct sigaction old[SIGNAL_COUNT];
    struct run_watch w = { .job = job, .pidfd = -1, .console_fd = -1, .begin = run_now() };

    *ret = (struct guest_run){ 0 };
    unlink(job->files->console); /* an old one would be read */
    run_take_signals(old);
    int r = run_start(job, &w.pid, err);
    if (r == 0) {
        w.pidfd = (int)syscall(SYS_pidfd_open, w.pid, 0); /* without it, poll is a nap */
        run_watch(&w, ret);
    }
    run_restore_signals(old);
    if (w.pidfd >= 0)
        close(w.pidfd);
    if (w.console_fd >= 0)
        close(w.console_fd);
    return r;
}
