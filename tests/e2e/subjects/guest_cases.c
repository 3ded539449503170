/* SPDX-License-Identifier: MIT */
/* usage: guest_cases CASE
 * Threads and processes whose instructions could be attributed to another thread. Marked work is `little`, which is the same number of
 * instructions each time; unmarked work is `much`. */
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>

#include <peet/mark.h>

enum { THREADS = 16, SHORT = 200, CHILDREN = 10, MANY = 1000 };

__attribute__((noipa)) static int fib(int n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static void little(void)
{
    fib(14);
}

static void much(void)
{
    fib(27);
}

static void *marked(void *number)
{
    PEET_THREAD_BEGIN((uintptr_t)number);
    little();
    PEET_THREAD_END();
    return NULL;
}

static void *longer(void *number)
{
    PEET_THREAD_BEGIN((uintptr_t)number);
    fib(22);
    PEET_THREAD_END();
    return NULL;
}

static void together(int n, void *(*function)(void *), size_t stack)
{
    pthread_t thread[MANY];
    pthread_attr_t attributes;

    pthread_attr_init(&attributes);
    if (stack)
        pthread_attr_setstacksize(&attributes, stack);
    for (int i = 0; i < n; i++)
        pthread_create(&thread[i], &attributes, function, (void *)(uintptr_t)i);
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
}

static void one_after_another(void)
{
    for (uintptr_t i = 0; i < SHORT; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, marked, (void *)i);
        pthread_join(thread, NULL);
    }
}

/* A child that has its parent's stack, and no mark. */
static void forks(void)
{
    PEET_THREAD_BEGIN(1);
    pid_t child = fork();
    if (child == 0) {
        much();
        _exit(0);
    }
    waitpid(child, NULL, 0);
    PEET_THREAD_END();
}

/* A child that has its parent's stack and addresses, and no mark, while the parent sleeps. */
static void vforks(void)
{
    PEET_THREAD_BEGIN(1);
    pid_t child = vfork();
    if (child == 0) {
        getppid();
        much();
        getppid();
        much();
        _exit(0);
    }
    waitpid(child, NULL, 0);
    PEET_THREAD_END();
}

/* As the C library does it: on a separate stack, with the parent's thread pointer. */
static void spawns(char *self)
{
    char *const argv[] = { self, (char[]){ "other" }, NULL }, *const environment[] = { NULL };
    pid_t child = 0;

    PEET_THREAD_BEGIN(1);
    int r = posix_spawn(&child, self, NULL, NULL, argv, environment);
    PEET_THREAD_END();
    if (r != 0 || waitpid(child, NULL, 0) != child)
        exit(4);
}

/* Threads that die without an end are followed by others, in the same frames, with the same addresses. */
static void dies(void)
{
    for (int i = 0; i < 2 * CHILDREN; i++) {
        pid_t child = fork();
        if (child == 0) {
            if (i % 2 == 0) {
                PEET_THREAD_BEGIN(i);
                little();
                raise(SIGKILL);
            }
            much();
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
}

static void handler(int signal)
{
    (void)signal;
    fib(20);
}

static void on_another_stack(void)
{
    static char stack[65536];
    stack_t other = { .ss_sp = stack, .ss_size = sizeof stack };
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };

    sigaltstack(&other, NULL);
    sigaction(SIGUSR1, &action, NULL);
    PEET_THREAD_BEGIN(1);
    raise(SIGUSR1);
    PEET_THREAD_END();
}

static ucontext_t back, there;

static void routine(void)
{
    for (int i = 0; i < 20; i++) {
        little();
        getppid();
    }
    swapcontext(&there, &back);
}

static void in_a_coroutine(void)
{
    static char stack[65536];

    getcontext(&there);
    there.uc_stack = (stack_t){ .ss_sp = stack, .ss_size = sizeof stack };
    makecontext(&there, routine, 0);
    PEET_THREAD_BEGIN(1);
    swapcontext(&back, &there);
    PEET_THREAD_END();
}

int main(int argc, char **argv)
{
    const char *which = argc > 1 ? argv[1] : "";

    if (strcmp(which, "threads") == 0)
        together(THREADS, longer, 0);
    else if (strcmp(which, "small") == 0)
        together(THREADS, longer, 64 << 10);
    else if (strcmp(which, "large") == 0)
        together(THREADS, longer, 64 << 20);
    else if (strcmp(which, "many") == 0)
        together(MANY, marked, 64 << 10);
    else if (strcmp(which, "short") == 0)
        one_after_another();
    else if (strcmp(which, "fork") == 0)
        forks();
    else if (strcmp(which, "vfork") == 0)
        vforks();
    else if (strcmp(which, "spawn") == 0)
        spawns(argv[0]);
    else if (strcmp(which, "dies") == 0)
        dies();
    else if (strcmp(which, "handler") == 0)
        on_another_stack();
    else if (strcmp(which, "coroutine") == 0)
        in_a_coroutine();
    else
        much();
    return 0;
}
