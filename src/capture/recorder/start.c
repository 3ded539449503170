/* SPDX-License-Identifier: MIT */
/* Starts the recorded program. It is loaded, and none of it has run: it asks to be traced, which stops it after exec, and is detached when the
 * trace is open. An error of exec comes through a pipe, which a successful exec closes. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "capture/recorder/live.h"

enum { SAYS_ASLR = -1 };

#define RAW_ALL_BYTES (RAW_DATA_OFFSET + (size_t)RAW_THREADS * RAW_BUFFERS * RAW_BUFFER_BYTES)

static int start_map_memory(struct recorder *s, struct peet_err *err)
{
    void *p = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, s->fd, 0);

    if (p == MAP_FAILED)
        return err_sys(err, errno, "cannot map memory to share with the program");
    s->header = p;
    s->data = (char *)p + RAW_DATA_OFFSET;
    return 0;
}

/* Bytes of a buffer that are used. With --max, threads hand over small buffers often, because a word stands for several instructions. */
static uint32_t window_for(const struct producer_config *c)
{
    uint64_t bytes = c->max / 512 / PRODUCER_AHEAD_LEAST * PRODUCER_AHEAD_LEAST;

    if (c->controlled)
        return c->ahead ? c->ahead : PRODUCER_AHEAD;
    if (!c->max)
        return 0;
    return bytes < PRODUCER_AHEAD_LEAST ? PRODUCER_AHEAD_LEAST
           : bytes > PRODUCER_AHEAD     ? PRODUCER_AHEAD
                                        : (uint32_t)bytes;
}

static int share_memory(struct recorder *s, struct peet_err *err)
{
    const struct producer_config *c = s->config;

    s->bytes = RAW_ALL_BYTES;
    s->fd = memfd_create(LIVE_NAME, MFD_CLOEXEC);
    if (s->fd < 0 || ftruncate(s->fd, (off_t)s->bytes) < 0)
        return err_sys(err, errno, "no memory to share with the program");
    if (start_map_memory(s, err) < 0)
        return err->code;
    s->header->magic = RAW_MAGIC;
    s->header->version = RAW_VERSION;
    s->header->recorder = (int32_t)getpid();
    s->header->controlled = c->controlled;
    s->header->buffer_limit = window_for(c);
    if (c->in_process) {
        s->header->in_process = 1;
        snprintf(s->header->library, sizeof s->header->library, "%s", c->in_process->library);
        snprintf(s->header->job, sizeof s->header->job, "%s", c->in_process->job);
    }
    return 0;
}

int live_share(struct recorder *s, const char *file, struct peet_err *err)
{
    s->bytes = RAW_ALL_BYTES;
    s->fd = open(file, O_RDWR | O_CLOEXEC);
    if (s->fd < 0)
        return err_sys(err, errno, "%s: no memory to share with the program", file);
    return start_map_memory(s, err);
}

static _Noreturn void start_become(const struct producer_config *config, const char *file, int say)
{
    int word = SAYS_ASLR;

    if (!config->aslr && personality(ADDR_NO_RANDOMIZE | (unsigned long)personality(0xffffffff)) < 0)
        (void)!write(say, &word, sizeof word);
    if (config->controlled) { /* one heap for all threads, in the order of their calls; waiting threads do not spin */
        setenv("GLIBC_TUNABLES", "glibc.malloc.arena_max=1", 1);
        setenv("OMP_WAIT_POLICY", "passive", 1);
        setenv("GOMP_SPINCOUNT", "0", 1);
    }
    if (config->in_process) /* it ends with the process that reads its result */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (setenv(RAW_VARIABLE, file, 1) == 0 && ptrace(PTRACE_TRACEME, 0, 0, 0) == 0)
        execvp(config->argv[0], config->argv);
    word = errno;
    (void)!write(say, &word, sizeof word);
    for (;;)
        kill(getpid(), SIGKILL); /* never returns to the library's caller */
}

/* Waits until the child has executed the program. Returns 0, or -1 if it has ended. */
static int start_await_exec(pid_t pid)
{
    int status;

    for (;;) {
        if (waitpid(pid, &status, 0) < 0) {
            if (errno == EINTR)
                continue;
            return -1;
        }
        if (!WIFSTOPPED(status))
            return -1;
        if (WSTOPSIG(status) == SIGTRAP)
            return 0;
        ptrace(PTRACE_CONT, pid, 0, WSTOPSIG(status));
    }
}

static int start_child(struct recorder *s, struct peet_err *err)
{
    int fd[2], word, failure = 0;
    char file[64], path[64];
    const char *name = s->config->argv[0];

    /* always of the same length, because it is on the program's stack: additional slashes have no effect */
    int n = snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), s->fd);
    memset(file, '/', sizeof file);
    memcpy(file + sizeof file - 1 - n, path, (size_t)n + 1);
    if (pipe2(fd, O_CLOEXEC) < 0)
        return err_sys(err, errno, "%s: cannot be started", name);
    pid_t pid = fork();
    if (pid == 0)
        start_become(s->config, file, fd[1]);
    close(fd[1]);
    if (pid < 0) {
        close(fd[0]);
        return err_sys(err, errno, "%s: cannot be started", name);
    }
    int r = start_await_exec(pid);
    while (read(fd[0], &word, sizeof word) == sizeof word) {
        s->aslr_kept |= word == SAYS_ASLR;
        failure = word == SAYS_ASLR ? failure : word;
    }
    close(fd[0]);
    if (r == 0) {
        s->pid = pid;
        return 0;
    }
    if (failure)
        return err_sys(err, failure, "%s: cannot be run", name);
    return err_set(err, PEET_ERR_IO, "%s: was killed before it could begin", name);
}

int live_start(struct recorder *s, struct peet_err *err)
{
    int r = share_memory(s, err);

    return r < 0 ? r : start_child(s, err);
}

void live_let_go(struct recorder *s)
{
    ptrace(PTRACE_DETACH, s->pid, 0, 0);
}
