/* SPDX-License-Identifier: MIT */
/* A thread waits in a system call until main has done some work and ends its wait. Prints what the call returned.
 * usage: sleepers CALL | list */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LARGE = 1 << 18, WORK = 200000 };

static int end[2], file, queue, semaphores;
static char path[] = "/tmp/peet-sleepers-XXXXXX", bytes[LARGE];
static pthread_t sleeper;
static volatile int handled;
static volatile long work;

static void on_signal(int number)
{
    handled += number == SIGUSR1;
}

static void handle(int flags)
{
    struct sigaction a = { .sa_handler = on_signal, .sa_flags = flags };

    sigaction(SIGUSR1, &a, NULL);
}

static sigset_t only(int number)
{
    sigset_t s;

    sigemptyset(&s);
    if (number)
        sigaddset(&s, number);
    return s;
}

/* ---- what the thread does, and how main ends it ---- */

static long do_read(void) { return read(end[0], bytes, 1); }
static long do_poll(void) { return poll(&(struct pollfd){ end[0], POLLIN, 0 }, 1, -1); }
static void wake_pipe(void) { (void)!write(end[1], "x", 1); }

static long do_select(void)
{
    fd_set s;

    FD_ZERO(&s);
    FD_SET(end[0], &s);
    return select(end[0] + 1, &s, NULL, NULL, NULL);
}

static long do_epoll(void)
{
    struct epoll_event e = { .events = EPOLLIN };
    int fd = epoll_create1(0);

    epoll_ctl(fd, EPOLL_CTL_ADD, end[0], &e);
    return epoll_wait(fd, &e, 1, -1);
}

/* More than a pipe holds. */
static long do_write(void) { return write(end[1], bytes, LARGE); }
static void wake_reader(void)
{
    for (long n = 0, r; n < LARGE && (r = read(end[0], bytes, LARGE - (size_t)n)) > 0; n += r)
        ;
}

static long do_open(void) { return open(path, O_RDONLY) >= 0; }
static void wake_open(void) { (void)!open(path, O_WRONLY); }
static void prepare_open(void)
{
    unlink(path);
    mkfifo(path, 0600);
}

static long do_flock(void) { return flock(open(path, O_RDONLY), LOCK_EX); }
static void prepare_flock(void) { flock(file, LOCK_EX); }
static void wake_flock(void) { flock(file, LOCK_UN); }

static struct flock whole = { .l_type = F_WRLCK };
static long do_record_lock(void) { return fcntl(open(path, O_RDWR), F_OFD_SETLKW, &whole); }
static void prepare_record_lock(void) { fcntl(file, F_OFD_SETLK, &whole); }
static void wake_record_lock(void)
{
    struct flock none = { .l_type = F_UNLCK };

    fcntl(file, F_OFD_SETLK, &none);
}

struct message { long type; char text[8]; };
static long do_message(void)
{
    struct message m;
    long r = msgrcv(queue, &m, sizeof m.text, 0, 0);

    msgctl(queue, IPC_RMID, NULL);
    return r;
}
static void prepare_message(void) { queue = msgget(IPC_PRIVATE, 0600); }
static void wake_message(void) { msgsnd(queue, &(struct message){ 1, "hello" }, 6, 0); }

static long do_semaphore(void)
{
    long r = semop(semaphores, &(struct sembuf){ 0, -1, 0 }, 1);

    semctl(semaphores, 0, IPC_RMID);
    return r;
}
static void prepare_semaphore(void) { semaphores = semget(IPC_PRIVATE, 1, 0600); }
static void wake_semaphore(void) { semop(semaphores, &(struct sembuf){ 0, 1, 0 }, 1); }

static long do_sigwait(void)
{
    sigset_t s = only(SIGUSR1);
    int number = 0;

    sigwait(&s, &number);
    return number == SIGUSR1;
}
static void block(void)
{
    sigset_t s = only(SIGUSR1);

    pthread_sigmask(SIG_BLOCK, &s, NULL);
}
static void wake_process(void) { kill(getpid(), SIGUSR1); }
static void wake_thread(void) { pthread_kill(sleeper, SIGUSR1); }

static long do_sigsuspend(void)
{
    sigset_t s = only(0);
    long r = sigsuspend(&s);

    return r == -1 && errno == EINTR ? handled : -2;
}
static void prepare_sigsuspend(void)
{
    handle(SA_RESTART);
    block();
}
static void handle_firmly(void) { handle(0); }
static void handle_gently(void) { handle(SA_RESTART); }
static long do_pause(void) { return pause() == -1 && errno == EINTR ? handled : -2; }
static long do_sleep(void)
{
    return nanosleep(&(struct timespec){ 1000, 0 }, NULL) == -1 && errno == EINTR ? handled : -2;
}
static long do_interrupted(void) { return read(end[0], bytes, 1) == -1 && errno == EINTR ? handled : -2; }
static long do_restarted(void) { return read(end[0], bytes, 1) + handled; }
static void wake_restarted(void)
{
    pthread_kill(sleeper, SIGUSR1);
    for (int i = 0; i < WORK && !handled; i++)
        sched_yield();
    wake_pipe();
}

/* A socket that waits a millisecond and no longer. */
static long do_limit(void)
{
    int pair[2];

    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ 0, 1000 }, sizeof(struct timeval));
    return recv(pair[0], bytes, 1, 0) == -1 && errno == EAGAIN;
}
static void nothing(void) {}

static mqd_t messages;
static long do_queue(void) { return mq_receive(messages, bytes, LARGE, NULL); }
static void prepare_queue(void)
{
    char name[32];
    struct mq_attr a = { .mq_maxmsg = 2, .mq_msgsize = 16 };

    snprintf(name, sizeof name, "/peet-%d", (int)getpid());
    messages = mq_open(name, O_RDWR | O_CREAT, 0600, &a);
    mq_unlink(name);
}
static void wake_queue(void) { mq_send(messages, "four", 4, 0); }

static const struct call {
    const char *name;
    void (*prepare)(void);
    long (*wait)(void);
    void (*wake)(void);
} calls[] = {
    { "read", nothing, do_read, wake_pipe },
    { "poll", nothing, do_poll, wake_pipe },
    { "select", nothing, do_select, wake_pipe },
    { "epoll", nothing, do_epoll, wake_pipe },
    { "write", nothing, do_write, wake_reader },
    { "open", prepare_open, do_open, wake_open },
    { "flock", prepare_flock, do_flock, wake_flock },
    { "record-lock", prepare_record_lock, do_record_lock, wake_record_lock },
    { "msgrcv", prepare_message, do_message, wake_message },
    { "semop", prepare_semaphore, do_semaphore, wake_semaphore },
    { "mq", prepare_queue, do_queue, wake_queue },
    { "sigwait", block, do_sigwait, wake_process },
    { "sigwait-thread", block, do_sigwait, wake_thread },
    { "sigsuspend", prepare_sigsuspend, do_sigsuspend, wake_thread },
    { "pause", handle_gently, do_pause, wake_thread },
    { "nanosleep", handle_gently, do_sleep, wake_thread },
    { "interrupted", handle_firmly, do_interrupted, wake_thread },
    { "restarted", handle_gently, do_restarted, wake_restarted },
    { "limit", nothing, do_limit, nothing },
};
enum { CALLS = sizeof calls / sizeof *calls };

static void *sleep_in(void *call)
{
    return (void *)((const struct call *)call)->wait();
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "list";
    void *result;

    for (int i = 0; i < CALLS; i++) {
        if (!strcmp(name, "list"))
            puts(calls[i].name);
        if (strcmp(name, calls[i].name))
            continue;
        if (pipe(end) || (file = mkstemp(path)) < 0)
            return 1;
        calls[i].prepare();
        pthread_create(&sleeper, NULL, sleep_in, (void *)&calls[i]);
        usleep(50000);
        for (int k = 0; k < WORK; k++)
            work += k;
        calls[i].wake();
        pthread_join(sleeper, &result);
        unlink(path);
        printf("%s %ld\n", name, (long)result);
    }
    return 0;
}
