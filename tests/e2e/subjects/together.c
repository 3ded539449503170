/* SPDX-License-Identifier: MIT */
/* Four threads wait in system calls at the same time, each for another thing. The first thread works, and then ends the waits
 * from the last thread to the first. Prints what each call returned, and in which order the calls ended.
 * usage: together CALL | mixed | list */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, LARGE = 1 << 18, WORK = 100000 };

static struct waiter {
    const struct call *call;
    int number;
    int end[2], file;
    char path[32];
    pthread_t thread;
    atomic_int handled; /* signals */
    atomic_int is_done;
    long result;
    char bytes[LARGE];
} waiters[THREADS];
static int queue, semaphores;
static volatile long work;

static int signal_of(const struct waiter *w)
{
    return SIGRTMIN + w->number;
}

static void on_signal(int number)
{
    struct waiter *w = &waiters[number - SIGRTMIN];

    w->handled += pthread_equal(pthread_self(), w->thread) ? 1 : 100;
}

static sigset_t only(int number)
{
    sigset_t s;

    sigemptyset(&s);
    sigaddset(&s, number);
    return s;
}

static void wake_pipe(struct waiter *w)
{
    (void)!write(w->end[1], "x", 1);
}
static long do_read(struct waiter *w)
{
    return read(w->end[0], w->bytes, 1);
}
static long do_poll(struct waiter *w)
{
    return poll(&(struct pollfd){ w->end[0], POLLIN, 0 }, 1, -1);
}
static long do_poll_limit(struct waiter *w)
{
    return poll(&(struct pollfd){ w->end[0], POLLIN, 0 }, 1, 1000000);
}

static long do_select(struct waiter *w)
{
    fd_set s;

    FD_ZERO(&s);
    FD_SET(w->end[0], &s);
    return select(w->end[0] + 1, &s, NULL, NULL, NULL);
}

static long do_epoll(struct waiter *w)
{
    struct epoll_event e = { .events = EPOLLIN };
    int fd = epoll_create1(0);

    epoll_ctl(fd, EPOLL_CTL_ADD, w->end[0], &e);
    return epoll_wait(fd, &e, 1, -1);
}

static long do_write(struct waiter *w)
{
    return write(w->end[1], w->bytes, LARGE);
}
static void wake_write(struct waiter *w)
{
    for (long n = 0, r; n < LARGE && (r = read(w->end[0], w->bytes, LARGE - (size_t)n)) > 0; n += r)
        ;
}

static void prepare_flock(struct waiter *w)
{
    flock(w->file, LOCK_EX);
}
static long do_flock(struct waiter *w)
{
    return flock(open(w->path, O_RDONLY), LOCK_EX);
}
static void wake_flock(struct waiter *w)
{
    flock(w->file, LOCK_UN);
}

struct message {
    long type;
    char text[8];
};
static long do_message(struct waiter *w)
{
    struct message m;

    return msgrcv(queue, &m, sizeof m.text, w->number + 1, 0);
}
static void wake_message(struct waiter *w)
{
    msgsnd(queue, &(struct message){ w->number + 1, "hello" }, 6, 0);
}

static long do_semaphore(struct waiter *w)
{
    return semop(semaphores, &(struct sembuf){ (unsigned short)w->number, -1, 0 }, 1);
}
static void wake_semaphore(struct waiter *w)
{
    semop(semaphores, &(struct sembuf){ (unsigned short)w->number, 1, 0 }, 1);
}

static void block(struct waiter *w)
{
    sigset_t s = only(signal_of(w));

    pthread_sigmask(SIG_BLOCK, &s, NULL);
}
static long do_sigwait(struct waiter *w)
{
    sigset_t s = only(signal_of(w));
    int number = 0;

    sigwait(&s, &number);
    return number - SIGRTMIN;
}
static long do_sigtimedwait(struct waiter *w)
{
    sigset_t s = only(signal_of(w));
    siginfo_t i;

    return sigtimedwait(&s, &i, &(struct timespec){ 1000, 0 }) - SIGRTMIN + (i.si_pid == getpid() ? 0 : 1000);
}
static void wake_process(struct waiter *w)
{
    kill(getpid(), signal_of(w));
}
static void wake_thread(struct waiter *w)
{
    pthread_kill(w->thread, signal_of(w));
}

static void handle(struct waiter *w)
{
    struct sigaction a = { .sa_handler = on_signal };

    sigaction(signal_of(w), &a, NULL);
}
static void handle_blocked(struct waiter *w)
{
    handle(w);
    block(w);
}
static long do_sigsuspend(struct waiter *w)
{
    sigset_t s;

    pthread_sigmask(SIG_SETMASK, NULL, &s);
    sigdelset(&s, signal_of(w));
    return sigsuspend(&s) == -1 && errno == EINTR ? w->handled : -2;
}
static long do_pause(struct waiter *w)
{
    return pause() == -1 && errno == EINTR ? w->handled : -2;
}
static long do_interrupted(struct waiter *w)
{
    return read(w->end[0], w->bytes, 1) == -1 && errno == EINTR ? w->handled : -2;
}
static long do_sleep(struct waiter *w)
{
    return nanosleep(&(struct timespec){ 1000, 0 }, NULL) == -1 && errno == EINTR ? w->handled : -2;
}
static void nothing(struct waiter *w)
{
    (void)w;
}

static const struct call {
    const char *name;
    void (*prepare)(struct waiter *);
    long (*wait)(struct waiter *);
    void (*wake)(struct waiter *);
} calls[] = {
    { "read", nothing, do_read, wake_pipe },
    { "poll", nothing, do_poll, wake_pipe },
    { "poll-limit", nothing, do_poll_limit, wake_pipe },
    { "select", nothing, do_select, wake_pipe },
    { "epoll", nothing, do_epoll, wake_pipe },
    { "write", nothing, do_write, wake_write },
    { "flock", prepare_flock, do_flock, wake_flock },
    { "msgrcv", nothing, do_message, wake_message },
    { "semop", nothing, do_semaphore, wake_semaphore },
    { "sigwait", block, do_sigwait, wake_process },
    { "sigwait-thread", block, do_sigwait, wake_thread },
    { "sigtimedwait", block, do_sigtimedwait, wake_process },
    { "sigsuspend", handle_blocked, do_sigsuspend, wake_thread },
    { "sigsuspend-process", handle_blocked, do_sigsuspend, wake_process },
    { "pause", handle, do_pause, wake_thread },
    { "interrupted", handle, do_interrupted, wake_thread },
    { "nanosleep", handle, do_sleep, wake_thread },
};
enum { CALLS = sizeof calls / sizeof *calls };
static const char *const mixed[][THREADS] = {
    { "sigwait", "read", "poll", "flock" },
    { "semop", "sigsuspend-process", "write", "sigwait" },
    { "sigtimedwait", "pause", "msgrcv", "epoll" },
    { "nanosleep", "interrupted", "sigwait-thread", "sigsuspend" },
};
enum { MIXTURES = sizeof mixed / sizeof *mixed };

static const struct call *find(const char *name)
{
    for (int i = 0; i < CALLS; i++)
        if (!strcmp(calls[i].name, name))
            return &calls[i];
    return NULL;
}

static void *wait_in(void *of)
{
    struct waiter *w = of;

    w->result = w->call->wait(w);
    w->is_done = 1;
    return NULL;
}

/* names: of the calls of the threads */
static void run(const char *title, const char *const *names)
{
    sigset_t none;

    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    for (int i = 0; i < THREADS; i++) {
        struct waiter *w = &waiters[i];
        w->call = find(names[i]);
        w->number = i;
        w->handled = w->is_done = 0;
        strcpy(w->path, "/tmp/peet-together-XXXXXX");
        if (!w->call || pipe(w->end) || (w->file = mkstemp(w->path)) < 0)
            exit(1);
        w->call->prepare(w);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_create(&waiters[i].thread, NULL, wait_in, &waiters[i]);
    usleep(50000);
    for (int k = 0; k < WORK; k++)
        work += k;
    printf("%s", title);
    for (int i = THREADS - 1; i >= 0; i--) {
        waiters[i].call->wake(&waiters[i]);
        pthread_join(waiters[i].thread, NULL);
        int early = 0;
        for (int k = 0; k < i; k++)
            early += waiters[k].is_done;
        printf(" %ld%s", waiters[i].result, early ? " early" : "");
        unlink(waiters[i].path);
    }
    puts("");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "list";

    queue = msgget(IPC_PRIVATE, 0600);
    semaphores = semget(IPC_PRIVATE, THREADS, 0600);
    for (int i = 0; i < CALLS && !strcmp(name, "list"); i++)
        puts(calls[i].name);
    for (int i = 0; i < MIXTURES && !strcmp(name, "mixed"); i++)
        run("mixed", mixed[i]);
    if (find(name))
        run(name, (const char *[]){ name, name, name, name });
    msgctl(queue, IPC_RMID, NULL);
    semctl(semaphores, 0, IPC_RMID);
    return 0;
}
