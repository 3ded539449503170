/* SPDX-License-Identifier: MIT */
/* The ways in which threads and processes begin, end and are interrupted, for a simulation of the running program. argv[1] says how the
 * process ends. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_key_t key;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int destroyed, cleaned, handled;

static void destroy(void *value)
{
    pthread_mutex_lock(&lock);
    destroyed += (int)(long)value;
    pthread_mutex_unlock(&lock);
}

static void clean(void *unused)
{
    (void)unused;
    cleaned++;
}

static void handle(int number)
{
    (void)number;
    handled++;
}

static void *leaver(void *value)
{
    pthread_setspecific(key, (void *)1);
    pthread_cleanup_push(clean, NULL);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    pthread_exit(value);
    pthread_cleanup_pop(0);
}

static void *wait_for_ever(void *unused)
{
    char byte;
    int ends[2];

    if (pipe(ends) == 0 && read(ends[0], &byte, 1) == 1)
        cleaned = 100;
    return unused;
}

/* The child's threads are cancelled where they wait, too. */
static void *forker(void *unused)
{
    pthread_t waiting;
    void *result = NULL;
    int status = 0;
    pid_t pid = fork();

    (void)unused;
    if (pid == 0) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        pthread_create(&waiting, NULL, wait_for_ever, NULL);
        usleep(10000);
        pthread_cancel(waiting);
        pthread_join(waiting, &result);
        _exit(result == PTHREAD_CANCELED ? 7 : 8);
    }
    waitpid(pid, &status, 0);
    return (void *)(long)WEXITSTATUS(status);
}

static void *raiser(void *unused)
{
    raise(SIGUSR1);
    return unused;
}

static void *late(void *unused)
{
    usleep(1000);
    pthread_mutex_lock(&lock);
    printf("destroyed %d, cleaned %d, handled %d\n", destroyed, cleaned, handled);
    pthread_mutex_unlock(&lock);
    return unused;
}

static long run(void *(*function)(void *))
{
    pthread_t thread;
    void *value;

    pthread_create(&thread, NULL, function, (void *)5);
    pthread_join(thread, &value);
    return (long)value;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "return";
    pthread_t thread;

    pthread_key_create(&key, destroy);
    signal(SIGUSR1, handle);
    printf("%ld ", run(leaver));
    printf("%ld ", run(forker));
    printf("%ld\n", run(raiser));
    fflush(stdout);
    if (!strcmp(how, "crash"))
        *(volatile int *)8 = 1;
    if (!strcmp(how, "abort"))
        abort();
    if (!strcmp(how, "exec"))
        execlp("true", "true", (char *)NULL);
    if (!strcmp(how, "kill"))
        kill(getpid(), SIGKILL);
    pthread_create(&thread, NULL, late, NULL);
    pthread_detach(thread);
    if (!strcmp(how, "leave"))
        pthread_exit(NULL);
    usleep(100000);
    return 9;
}
