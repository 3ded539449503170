/* SPDX-License-Identifier: MIT */
/* usage: lives WAY: a program that lives and ends in the way that is asked for, for tests/e2e/record.sh. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

enum { SIZE = 4096 };

static int cell[SIZE];

__attribute__((noinline)) static long work(int rounds)
{
    long sum = 0;

    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < SIZE; i++)
            sum += cell[i] += (i ^ r) & 7;
    return sum;
}

static int by_return(char **argv)
{
    (void)argv;
    return work(200) == 0 ? 1 : 7;
}

static int by_exit(char **argv)
{
    (void)argv;
    work(3);
    exit(7);
}

static int by_fast_exit(char **argv)
{
    (void)argv;
    work(3);
    _exit(7);
}

static int by_quick_exit(char **argv)
{
    (void)argv;
    work(3);
    quick_exit(7);
}

static int by_abort(char **argv)
{
    (void)argv;
    work(3);
    abort();
}

static int by_crash(char **argv)
{
    (void)argv;
    work(300);
    *(volatile int *)16 = 1;
    return 0;
}

static int by_kill(char **argv)
{
    (void)argv;
    work(300);
    kill(getpid(), SIGKILL);
    return 0;
}

static int by_term(char **argv)
{
    (void)argv;
    work(300);
    raise(SIGTERM);
    return 0;
}

/* ---- threads ---- */

static void *returns(void *argument)
{
    work(2);
    return argument;
}

static void *exits(void *argument)
{
    work(2);
    pthread_exit(argument);
}

static void *waits_for_ever(void *argument)
{
    work(50);
    for (;;)
        pause();
    return argument;
}

static int many(char **argv)
{
    pthread_t thread[3];
    void *value;

    (void)argv;
    for (int round = 0; round < 300; round++) {
        pthread_create(&thread[0], NULL, returns, NULL);
        pthread_create(&thread[1], NULL, exits, NULL);
        pthread_create(&thread[2], NULL, returns, NULL);
        pthread_detach(thread[2]);
        pthread_join(thread[0], &value);
        pthread_join(thread[1], &value);
    }
    return 7;
}

static int cancelled(char **argv)
{
    pthread_t thread;
    void *value;

    (void)argv;
    pthread_create(&thread, NULL, waits_for_ever, NULL);
    pthread_cancel(thread);
    pthread_join(thread, &value);
    return value == PTHREAD_CANCELED ? 7 : 1;
}

static int left_behind(char **argv)
{
    pthread_t thread[2];

    (void)argv;
    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, waits_for_ever, NULL);
    work(50);
    return 7;
}

static mtx_t lock;
static cnd_t condition;
static int ready;

static int c11_thread(void *argument)
{
    work(5);
    mtx_lock(&lock);
    ready = *(int *)argument;
    cnd_signal(&condition);
    mtx_unlock(&lock);
    return 7;
}

static int c11(char **argv)
{
    thrd_t thread;
    int value = 1, result;

    (void)argv;
    mtx_init(&lock, mtx_plain);
    cnd_init(&condition);
    thrd_create(&thread, c11_thread, &value);
    mtx_lock(&lock);
    while (!ready)
        cnd_wait(&condition, &lock);
    mtx_unlock(&lock);
    thrd_join(thread, &result);
    mtx_destroy(&lock);
    return result;
}

/* ---- signals ---- */

static volatile sig_atomic_t ticks;
static sigjmp_buf out;

static void tick(int number)
{
    (void)number;
    ticks++;
    cell[ticks % SIZE]++;
}

static void leave(int number)
{
    ticks++;
    siglongjmp(out, number);
}

static int alarmed(char **argv)
{
    struct itimerval fast = { { 0, 2000 }, { 0, 2000 } }, none = { 0 };
    struct sigaction act = { .sa_handler = tick };
    sigset_t all;

    (void)argv;
    sigfillset(&act.sa_mask);
    sigaction(SIGALRM, &act, NULL);
    sigfillset(&all);
    sigdelset(&all, SIGALRM);
    sigprocmask(SIG_BLOCK, &all, NULL); /* SIGSEGV, too */
    setitimer(ITIMER_REAL, &fast, NULL);
    while (ticks < 50) {
        work(50);
        free(malloc(10));
    }
    setitimer(ITIMER_REAL, &none, NULL);
    return 7;
}

static int jumps(char **argv)
{
    struct itimerval soon = { { 0, 0 }, { 0, 2000 } };

    (void)argv;
    signal(SIGALRM, leave);
    while (ticks < 20) {
        if (sigsetjmp(out, 1) == 0) {
            setitimer(ITIMER_REAL, &soon, NULL);
            for (;;)
                work(10);
        }
    }
    return 7;
}

static int own_fault(char **argv)
{
    volatile int *nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)argv;
    signal(SIGSEGV, leave);
    for (volatile int i = 0; i < 10; i++)
        if (sigsetjmp(out, 1) == 0) {
            work(100);
            *nowhere = 1;
        }
    return ticks == 10 ? 7 : 1;
}

/* Under the names that old and strict programs know. SIGSEGV is what ends a buffer. */
static int old_signals(char **argv)
{
    sighandler_t (*set[])(int, sighandler_t) = { sysv_signal, ssignal };

    (void)argv;
    for (int i = 0; i < 2; i++) {
        set[i](SIGSEGV, leave);
        set[i](SIGUSR1, tick);
        work(200);
        raise(SIGUSR1);
    }
    return ticks == 2 && signal(SIGUSR1, SIG_DFL) == tick ? 7 : 1;
}

/* Out of a function in which a thread may be cancelled; then it ends as if it were. */
static void *reads(void *argument)
{
    char word;

    for (volatile int i = 0; i < 3; i++)
        if (sigsetjmp(out, 1) == 0) {
            ticks++;
            (void)!read(*(int *)argument, &word, 1);
        }
    pthread_exit(argument);
}

static int jump_read(char **argv)
{
    pthread_t thread;
    int pipes[2];
    void *value;

    (void)argv;
    signal(SIGUSR1, leave);
    if (pipe(pipes) < 0 || pthread_create(&thread, NULL, reads, pipes) != 0)
        return 1;
    for (int i = 0; i < 3; i++) {
        while (ticks != 2 * i + 1)
            usleep(1000);
        usleep(20000);
        pthread_kill(thread, SIGUSR1);
    }
    pthread_join(thread, &value);
    return value == pipes ? 7 : 1;
}

/* ---- processes ---- */

static int forks(char **argv)
{
    int status;

    (void)argv;
    work(10);
    pid_t pid = fork();
    work(100);
    if (pid == 0)
        exit(5);
    waitpid(pid, &status, 0);
    return WEXITSTATUS(status) == 5 ? 7 : 1;
}

static int orphan(char **argv)
{
    (void)argv;
    if (fork() == 0) {
        usleep(100000);
        work(100);
        exit(5);
    }
    return 7;
}

static volatile sig_atomic_t forked = -1;

static void fork_now(int number)
{
    (void)number;
    forked = fork();
    work(5);
}

/* The child continues where the handler interrupted its parent. */
static int handler_forks(char **argv)
{
    struct itimerval soon = { { 0, 0 }, { 0, 3000 } };
    int status;

    (void)argv;
    signal(SIGALRM, fork_now);
    setitimer(ITIMER_REAL, &soon, NULL);
    while (forked < 0)
        work(10);
    work(300);
    if (forked == 0)
        exit(5);
    waitpid(forked, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 5 ? 7 : 1;
}

static void in_child(void)
{
    free(malloc((size_t)work(100) % 1000)); /* more than one buffer is left of its parent's */
}

static int atfork(char **argv)
{
    pthread_atfork(NULL, NULL, in_child);
    return forks(argv);
}

static int daemons(char **argv)
{
    int status, pipes[2];
    char word = 0;

    (void)argv;
    if (pipe(pipes) < 0)
        return 1;
    pid_t pid = fork();
    if (pid == 0) {
        work(10);
        if (daemon(1, 1) < 0)
            exit(1);
        word = work(100) ? 'x' : 0;
        exit(write(pipes[1], &word, 1) == 1 ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    return read(pipes[0], &word, 1) == 1 && word == 'x' ? 7 : 1;
}

static int execs(char **argv)
{
    work(100);
    execl("/nonexistent", "x", (char *)NULL);
    work(100);
    execl(argv[0], argv[0], "return", (char *)NULL);
    return 1;
}

static int spawns(char **argv)
{
    char command[5000];

    snprintf(command, sizeof command, "%s return", argv[0]);
    return WEXITSTATUS(system(command));
}

static int compare(const void *a, const void *b)
{
    const int *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static int sorts(char **argv)
{
    (void)argv;
    for (int round = 0; round < 30; round++) {
        for (int i = 0; i < SIZE; i++)
            cell[i] = (int)((unsigned)(i + round) * 2654435761u >> 8);
        qsort(cell, SIZE, sizeof *cell, compare);
    }
    return cell[0] <= cell[SIZE - 1] ? 7 : 1;
}

static const struct {
    const char *name;
    int (*run)(char **argv);
} ways[] = {
    { "return", by_return },
    { "exit", by_exit },
    { "_exit", by_fast_exit },
    { "quick_exit", by_quick_exit },
    { "abort", by_abort },
    { "crash", by_crash },
    { "kill", by_kill },
    { "term", by_term },
    { "many", many },
    { "cancel", cancelled },
    { "left_behind", left_behind },
    { "c11", c11 },
    { "alarm", alarmed },
    { "jump", jumps },
    { "old_signals", old_signals },
    { "jump_read", jump_read },
    { "own_fault", own_fault },
    { "fork", forks },
    { "orphan", orphan },
    { "handler_fork", handler_forks },
    { "atfork", atfork },
    { "daemon", daemons },
    { "exec", execs },
    { "system", spawns },
    { "sort", sorts },
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof ways / sizeof *ways; i++)
        if (!strcmp(argv[1], ways[i].name))
            return ways[i].run(argv);
    return 2;
}
