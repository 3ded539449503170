/* SPDX-License-Identifier: MIT */
/* Gives up what a recorder may need, then makes two threads that each work on a separate array, and says what they computed.
 * usage: gives_up nothing | user | root | descriptors | child | exec */
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 2, ELEMENTS = 1 << 14, ROUNDS = 10, NOBODY = 65534, DESCRIPTORS = 64 };

static long value[THREADS][ELEMENTS];

static void *work(void *number)
{
    long id = (long)number;

    for (int round = 0; round < ROUNDS; round++)
        for (long i = 0; i < ELEMENTS; i++)
            value[id][i] += i ^ id;
    return NULL;
}

static int give_up_user(void)
{
    return setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY);
}

static int give_up_root(void)
{
    return chroot("/tmp") || chdir("/"); /* /proc is not there */
}

static int give_up_descriptors(void)
{
    struct rlimit limit = { DESCRIPTORS, DESCRIPTORS };

    if (setrlimit(RLIMIT_NOFILE, &limit))
        return 1;
    while (open("/dev/null", O_RDONLY) >= 0)
        ;
    return 0;
}

static int run_threads(void)
{
    pthread_t thread[THREADS];

    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, work, (void *)i))
            return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    printf("%ld %d\n", value[0][77] + value[1][99], (int)getuid());
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "nothing";
    int failed = 0;

    if (!strcmp(what, "user") || !strcmp(what, "child") || !strcmp(what, "exec"))
        failed = give_up_user();
    if (!strcmp(what, "root"))
        failed = give_up_root();
    if (!strcmp(what, "descriptors"))
        failed = give_up_descriptors();
    if (failed) {
        perror(what);
        return 1;
    }
    if (!strcmp(what, "exec")) {
        execl(argv[0], argv[0], "nothing", (char *)NULL);
        return 1;
    }
    if (!strcmp(what, "child") && fork() > 0) {
        wait(NULL);
        return 0;
    }
    return run_threads();
}
