/* SPDX-License-Identifier: MIT */
/* Starts the recorded program: it is loaded, and none of it has run.
 *
 * The child waits until it is seized, so that no stop is missed, and then executes the program. An error of exec comes through a pipe, which a
 * successful exec closes. The child inherits the recorder's signals and files. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "capture/step/step.h"

/* Messages of the child: an errno of exec, or that ASLR could not be switched off. */
enum { SAYS_ASLR = -1 };

static _Noreturn void subject_become(const struct producer_config *config, int go, int say)
{
    char byte;
    int word = SAYS_ASLR;

    if (read(go, &byte, 1) == 1) {
        if (!config->aslr && personality(ADDR_NO_RANDOMIZE | (unsigned long)personality(0xffffffff)) < 0)
            (void)!write(say, &word, sizeof word);
        execvp(config->argv[0], config->argv);
        word = errno;
        (void)!write(say, &word, sizeof word);
    }
    for (;;)
        kill(getpid(), SIGKILL); /* never returns to the library's caller */
}

/* Resumes the child until its exec. Returns 0, or -1 if it has ended. A sanitizer may have given it threads; exec waits until their ends were
 * waited for here. */
static int subject_await_exec(pid_t pid)
{
    int status;
    pid_t tid;

    for (;;) {
        if ((tid = waitpid(-1, &status, __WALL)) < 0) {
            if (errno == EINTR)
                continue;
            return -1;
        }
        if (!WIFSTOPPED(status) && tid == pid)
            return -1;
        if (!WIFSTOPPED(status))
            continue;
        if (status >> 16 == PTRACE_EVENT_EXEC)
            return 0;
        /* A signal that came early is delivered; it is for the program. */
        ptrace(PTRACE_CONT, tid, 0, status >> 16 ? 0 : WSTOPSIG(status));
    }
}

static int let_go(const struct producer_config *config, pid_t pid, int go, int hear, bool *ret_moved,
                  struct peet_err *err)
{
    unsigned long options =
        PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC;
    int word, failure = 0;

    if (ptrace(PTRACE_SEIZE, pid, 0, options) < 0)
        return err_sys(err, errno, "%s: this system does not let us trace it (ptrace)", config->argv[0]);
    if (write(go, "g", 1) != 1)
        return err_sys(err, errno, "%s: cannot start", config->argv[0]);
    int r = subject_await_exec(pid);
    while (read(hear, &word, sizeof word) == sizeof word) {
        *ret_moved |= word == SAYS_ASLR;
        failure = word == SAYS_ASLR ? failure : word;
    }
    if (r == 0)
        return 0;
    if (failure)
        return err_sys(err, failure, "%s: cannot be run", config->argv[0]);
    return err_set(err, PEET_ERR_IO, "%s: was killed before it could begin", config->argv[0]);
}

static void close_all(const int *fds, int n)
{
    for (int i = 0; i < n; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

int start_subject(const struct producer_config *config, pid_t *ret, bool *ret_moved, struct peet_err *err)
{
    int fd[4] = { -1, -1, -1, -1 }; /* go: read, write; say: read, write */
    pid_t pid = -1;

    if (pipe2(fd, O_CLOEXEC) < 0 || pipe2(fd + 2, O_CLOEXEC) < 0 || (pid = fork()) < 0) {
        int r = err_sys(err, errno, "%s: cannot be started", config->argv[0]);
        close_all(fd, 4);
        return r;
    }
    if (pid == 0) {
        close(fd[1]);
        close(fd[2]);
        subject_become(config, fd[0], fd[3]);
    }
    close_all((int[]){ fd[0], fd[3] }, 2);
    int r = let_go(config, pid, fd[1], fd[2], ret_moved, err);
    close_all((int[]){ fd[1], fd[2] }, 2);
    if (r < 0) {
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
            ;
        return r;
    }
    *ret = pid;
    return 0;
}
