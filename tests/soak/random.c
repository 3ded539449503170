/* SPDX-License-Identifier: MIT */
/* A program of random threads, locks, conditions, signals, calls that block, changes of user and forks. What each thread does depends on
 * the seed alone. Prints how many threads it had, its first one included, how
 * many times they took mutexes, how many children it forked, how many handlers of signals ran, and how many steps of work were done.
 * usage: random SEED */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TEAM = 4, MUTEXES = 3, ROUNDS = 3, OPERATIONS = 12, DEEPEST = 2, MOST_FORKS = 3 };

struct member {
    uint64_t random;
    int number, depth;
    int end[2];
    long work;
    pthread_t thread;
};

static pthread_mutex_t mutex[MUTEXES] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                          PTHREAD_MUTEX_INITIALIZER };
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t turnstile;
static volatile long protected[MUTEXES];
static atomic_long threads = 1, locks, forks, handled, errors, work;
static int semaphores, file;
static char path[] = "/tmp/peet-random-XXXXXX";

static uint64_t next_random(struct member *p)
{
    p->random = p->random * 6364136223846793005u + 1442695040888963407u;
    return p->random >> 33;
}

static void complain(const char *what, long found)
{
    errors++;
    fprintf(stderr, "%s: %ld, errno %d\n", what, found, errno);
}

static void expect(const char *what, long found, long wanted)
{
    if (found != wanted)
        complain(what, found);
}

/* The result of a call that a handler may end. */
static void expect_or_interrupted(const char *what, long found, long wanted)
{
    if (found != wanted && !(found == -1 && errno == EINTR))
        complain(what, found);
}

static void on_signal(int number)
{
    (void)number;
    handled++;
}

static void work_for(struct member *p, long steps)
{
    for (volatile long i = 0; i < steps; i++)
        p->work++;
}

static void take(int i)
{
    pthread_mutex_lock(&mutex[i]);
    locks++;
}

/* ---- operations ---- */

static void do_work(struct member *p)
{
    work_for(p, 100 + (long)(next_random(p) % 3000));
}

static void do_lock(struct member *p)
{
    int i = (int)(next_random(p) % MUTEXES);

    take(i);
    protected[i]++;
    work_for(p, (long)(next_random(p) % 200));
    pthread_mutex_unlock(&mutex[i]);
}

static void do_signal_condition(struct member *p)
{
    (void)p;
    take(0);
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex[0]);
}

static void do_wait_condition(struct member *p)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)(next_random(p) % 2000000);
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    take(0);
    int r = pthread_cond_timedwait(&condition, &mutex[0], &until);
    if (r != 0 && r != ETIMEDOUT)
        complain("pthread_cond_timedwait", r);
    pthread_mutex_unlock(&mutex[0]);
}

static void do_pipe(struct member *p)
{
    struct pollfd f = { p->end[0], POLLIN, 0 };
    char c = 0;

    expect("write", write(p->end[1], "x", 1), 1);
    expect_or_interrupted("poll", poll(&f, 1, -1), 1);
    expect("read", read(p->end[0], &c, 1), 1);
}

static void do_select(struct member *p)
{
    struct timeval limit = { 0, (long)(next_random(p) % 1000) };
    struct epoll_event e = { .events = EPOLLIN };
    int epoll = epoll_create1(0);
    fd_set s;

    FD_ZERO(&s);
    FD_SET(p->end[0], &s);
    expect_or_interrupted("select", select(p->end[0] + 1, &s, NULL, NULL, &limit), 0);
    epoll_ctl(epoll, EPOLL_CTL_ADD, p->end[0], &e);
    expect_or_interrupted("epoll_wait", epoll_wait(epoll, &e, 1, 1), 0);
    close(epoll);
}

static void do_read_nonblocking(struct member *p)
{
    int ends[2];
    char c;

    (void)p;
    expect("pipe2", pipe2(ends, O_NONBLOCK), 0);
    expect("read of nothing", read(ends[0], &c, 1), -1);
    expect("its error", errno, EAGAIN);
    close(ends[0]);
    close(ends[1]);
}

static void do_kill_self(struct member *p)
{
    expect("pthread_kill", pthread_kill(pthread_self(), next_random(p) % 2 ? SIGUSR1 : SIGUSR2), 0);
}

static void do_raise(struct member *p)
{
    (void)p;
    expect("raise", raise(SIGUSR1), 0);
}

static void do_kill_process(struct member *p)
{
    (void)p;
    expect("kill", kill(getpid(), SIGUSR2), 0);
}

static void do_sigwait(struct member *p)
{
    sigset_t s;
    int number = 0;

    (void)p;
    sigemptyset(&s);
    sigaddset(&s, SIGRTMIN + 1);
    expect("pthread_kill", pthread_kill(pthread_self(), SIGRTMIN + 1), 0);
    expect("sigwait", sigwait(&s, &number), 0);
    expect("its signal", number, SIGRTMIN + 1);
}

static void do_semaphores(struct member *p)
{
    unsigned short own = (unsigned short)(p->number % TEAM);

    expect("semop", semop(semaphores, &(struct sembuf){ own, 1, 0 }, 1), 0);
    int r;
    while ((r = semop(semaphores, &(struct sembuf){ own, -1, 0 }, 1)) != 0 && errno == EINTR)
        ;
    expect("semop", r, 0);
    sem_wait(&turnstile);
    work_for(p, 50);
    sem_post(&turnstile);
}

static void do_file_lock(struct member *p)
{
    int fd = open(path, O_RDWR);

    if (fd < 0 || flock(fd, LOCK_EX) != 0)
        complain("flock", fd);
    work_for(p, 100);
    flock(fd, LOCK_UN);
    close(fd);
}

static void do_sleep(struct member *p)
{
    struct timespec t = { 0, (long)(next_random(p) % 300000) };

    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
    sched_yield();
}

/* While no thread begins or ends: setuid of the GNU C library 2.36 can wait for ever for a thread that ends. */
static void change_ids(struct member *p)
{
    if (next_random(p) % 2)
        expect("setuid", setuid(getuid()), 0);
    else
        expect("setgid", setgid(getgid()), 0);
}

static void do_fork(struct member *p)
{
    int status = 0, code = (int)(next_random(p) % 100);

    if (atomic_fetch_add(&forks, 1) >= MOST_FORKS) {
        forks--;
        return;
    }
    pid_t pid = fork();
    if (pid == 0) {
        work_for(p, 500);
        _exit(code);
    }
    pid_t r;
    while ((r = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
        ;
    expect("waitpid", r, pid);
    expect("its status", WEXITSTATUS(status), code);
}

static void *pause_for_ever(void *of)
{
    char c;

    (void)!read(((int *)of)[0], &c, 1);
    return NULL;
}

static void do_cancel(struct member *p)
{
    int ends[2];
    pthread_t t;
    void *result = NULL;

    (void)p;
    expect("pipe", pipe(ends), 0);
    threads++;
    expect("pthread_create", pthread_create(&t, NULL, pause_for_ever, ends), 0);
    pthread_cancel(t);
    expect("pthread_join", pthread_join(t, &result), 0);
    expect("of a cancelled thread", (long)result, (long)PTHREAD_CANCELED);
    close(ends[0]);
    close(ends[1]);
}

static void operate(struct member *p, int count);

static void *run_child(void *of)
{
    operate(of, 4);
    return NULL;
}

static void do_child(struct member *p)
{
    struct member child = { .random = next_random(p), .number = p->number, .depth = p->depth + 1 };
    pthread_t t;

    if (child.depth > DEEPEST)
        return;
    expect("pipe", pipe(child.end), 0);
    threads++;
    expect("pthread_create", pthread_create(&t, NULL, run_child, &child), 0);
    work_for(p, 100);
    expect("pthread_join", pthread_join(t, NULL), 0);
    work += child.work;
    close(child.end[0]);
    close(child.end[1]);
}

/* ---- the program ---- */

static void (*const operation[])(struct member *) = {
    do_work,
    do_work,
    do_lock,
    do_lock,
    do_signal_condition,
    do_wait_condition,
    do_pipe,
    do_select,
    do_raise,
    do_kill_self,
    do_sigwait,
    do_kill_process,
    do_read_nonblocking,
    do_semaphores,
    do_file_lock,
    do_sleep,
    do_work,
    do_fork,
    do_cancel,
    do_child,
    do_child,
};

static void operate(struct member *p, int count)
{
    for (int i = 0; i < count; i++)
        operation[next_random(p) % (sizeof operation / sizeof *operation)](p);
}

static struct member team[TEAM];

static void *run_member(void *of)
{
    struct member *p = of;
    char c;

    for (int round = 0; round < ROUNDS; round++) {
        operate(p, OPERATIONS);
        pthread_barrier_wait(&barrier);
        if (p->number == 0)
            change_ids(p);
        expect("write to the next", write(team[(p->number + 1) % TEAM].end[1], "x", 1), 1);
        expect("read", read(p->end[0], &c, 1), 1);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    struct sigaction a = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    sigset_t blocked;

    sigaction(SIGUSR1, &a, NULL);
    sigaction(SIGUSR2, &a, NULL);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGRTMIN + 1);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    pthread_barrier_init(&barrier, NULL, TEAM);
    sem_init(&turnstile, 0, 2);
    semaphores = semget(IPC_PRIVATE, TEAM, 0600);
    file = mkstemp(path);
    for (int i = 0; i < TEAM; i++) {
        team[i] = (struct member){ .random = seed * 1000003 + (uint64_t)i * 7919 + 1, .number = i };
        expect("pipe", pipe(team[i].end), 0);
    }
    for (int i = 0; i < TEAM; i++) {
        threads++;
        expect("pthread_create", pthread_create(&team[i].thread, NULL, run_member, &team[i]), 0);
    }
    for (int i = 0; i < TEAM; i++) {
        expect("pthread_join", pthread_join(team[i].thread, NULL), 0);
        work += team[i].work;
    }
    unlink(path);
    semctl(semaphores, 0, IPC_RMID);
    printf("threads %ld locks %ld forks %ld handled %ld work %ld errors %ld\n", threads, locks, forks, handled, work,
           errors);
    return errors != 0;
}
