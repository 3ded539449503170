/* SPDX-License-Identifier: MIT */
#include "capture/control/in_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/recorder/live.h"
#include "capture/control/traps.h"

enum { HWCAP2_FSGSBASE_ = 1 << 1 };

bool in_process_is_possible(void)
{
    return (getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE_) && traps_are_possible();
}

static char *path_of(int fd)
{
    return mem_format("/proc/%d/fd/%d", (int)getpid(), fd);
}

/* Makes the job file and the answer file. A descriptor is -1 if its file was not made. */
static int in_process_make_files(const struct in_process_job *job, int *ret_job, int *ret_answer, struct peet_err *err)
{
    *ret_job = memfd_create("peet-job", MFD_CLOEXEC);
    *ret_answer = memfd_create("peet-answer", MFD_CLOEXEC);
    char *answer = *ret_answer >= 0 ? path_of(*ret_answer) : NULL;
    bool ok = *ret_job >= 0 && answer && ftruncate(*ret_answer, (off_t)IN_PROCESS_ANSWER_BYTES) == 0
              && write(*ret_job, answer, strlen(answer) + 1) == (ssize_t)strlen(answer) + 1
              && write(*ret_job, job->job, job->bytes) == (ssize_t)job->bytes;

    free(answer);
    return ok ? 0 : err_sys(err, errno, "no memory to tell the program what to simulate");
}

/* Time limits after the user has asked for the end. For OWN_MS a program that handles the signal may end by itself. The simulator notices the
 * request when a thread stops; a thread in a loop of uninstrumented code never stops. After GRACE_MS the process is killed. */
enum { OWN_MS = 700, GRACE_MS = 1500, LOOK_MS = 100, LONG_LOOK_MS = 1000 };

/* Waits for the end of the process with pidfd `fd`. True: the user has asked for its end, and it did not end within GRACE_MS. */
static bool in_process_is_stuck(const struct recorder *s, int fd)
{
    struct pollfd process = { .fd = fd, .events = POLLIN };

    for (int waited = 0; waited <= GRACE_MS;) {
        bool is_asked = live_asked() > 0 && !atomic_load(&s->header->ending);
        if (poll(&process, 1, is_asked ? LOOK_MS : LONG_LOOK_MS) > 0)
            return false;
        waited += is_asked ? LOOK_MS : 0;
        if (waited >= OWN_MS)
            s->header->want_end = live_asked();
    }
    return true;
}

/* Waits for the end of a program that has been started. An error: it did not end when the user wanted it to, and was killed. */
static int in_process_await(struct recorder *s, int *ret_status, struct peet_err *err)
{
    bool is_stuck;
    int fd = (int)syscall(SYS_pidfd_open, s->pid, 0);
    struct live_signals old;

    live_take_signals(s->pid, &old);
    live_let_go(s);
    is_stuck = fd >= 0 && in_process_is_stuck(s, fd);
    if (is_stuck)
        kill(s->pid, SIGKILL);
    while (waitpid(s->pid, ret_status, 0) < 0 && errno == EINTR)
        ;
    live_give_signals_back(&old);
    if (fd >= 0)
        close(fd);
    s->pid = 0;
    return is_stuck ? err_set(err, PEET_ERR_INTERRUPTED,
                              "%s: killed, for it did not come to an end: a thread is in code that was not recorded",
                              s->config->argv[0])
                    : 0;
}

static int in_process_run_job(const struct in_process_job *job, const char *path, int *ret_status, struct peet_err *err)
{
    struct producer_in_process in_process = { job->library, path };
    struct producer_config config = {
        .argv = job->argv, .controlled = true, .ahead = job->ahead, .in_process = &in_process
    };
    struct recorder *s = mem_alloc(1, sizeof *s);
    const char *name = job->argv[0];

    s->config = &config;
    s->fd = -1;
    int r = live_start(s, err);
    if (r == 0)
        r = live_refuse_static(s->pid, name, err);
    if (r == 0)
        r = in_process_await(s, ret_status, err);
    if (r == 0 && atomic_load(&s->header->threads) == 0)
        r = err_set(err, PEET_ERR_USAGE, "%s: it was not built with peet cc, or ended at once", name);
    if (s->pid > 0) {
        kill(s->pid, SIGKILL);
        while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (s->header)
        munmap(s->header, s->bytes);
    if (s->fd >= 0)
        close(s->fd);
    free(s);
    return r;
}

struct in_process_answer *in_process_answer_map(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *p = fd < 0 ? MAP_FAILED
                     : mmap(NULL, IN_PROCESS_ANSWER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    int kept = errno;

    if (fd >= 0)
        close(fd);
    errno = kept;
    return p == MAP_FAILED ? NULL : p;
}

/* The answer's file, cut to what was left in it and at the beginning of that; NULL with errno set. */
static FILE *in_process_open_answer(int fd)
{
    struct in_process_answer head = { 0 };

    if (pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head || head.bytes > IN_PROCESS_ANSWER_BYTES - sizeof head
        || ftruncate(fd, (off_t)(sizeof head + head.bytes)) < 0)
        return NULL;
    FILE *f = fdopen(fd, "r");
    if (f)
        fseek(f, (long)sizeof head, SEEK_SET);
    return f;
}

int in_process_run(const struct in_process_job *job, int *ret_status, FILE **ret_answer, struct peet_err *err)
{
    int fd, answer;
    int r = in_process_make_files(job, &fd, &answer, err);

    if (r == 0) {
        char *path = path_of(fd);
        r = in_process_run_job(job, path, ret_status, err);
        free(path);
    }
    if (fd >= 0)
        close(fd);
    FILE *f = r == 0 ? in_process_open_answer(answer) : NULL;
    if (f) {
        *ret_answer = f;
        return 0;
    }
    if (answer >= 0)
        close(answer);
    return r < 0 ? r : err_sys(err, errno, "the answer of the program");
}
