/* SPDX-License-Identifier: MIT */
/* usage: guest_cpu CONSOLE COMMAND…
 * For bench/fullsystem: runs peet record --system and prints the CPU seconds that it and QEMU took from the moment on at which the guest's
 * program said "begin", as it stands in the file CONSOLE, to the end of all. Booting is not in it, and what writes the trace
 * is. QEMU's addresses are the same each time, for they change how fast it is by some percent. Its status is the command's; what that says goes to standard error. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_NANOSECONDS = 2000000 };

static double cpu_of(pid_t pid)
{
    struct timespec t = { 0, 0 };
    clockid_t clock;

    if (clock_getcpuclockid(pid, &clock) == 0)
        clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The process, and its children, of which the last one is QEMU. */
static double cpu_of_all(pid_t pid)
{
    char path[64];
    double sum = cpu_of(pid);
    int child;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    FILE *f = fopen(path, "r");
    while (f && fscanf(f, "%d", &child) == 1)
        sum += cpu_of(child);
    if (f)
        fclose(f);
    return sum;
}

static bool has_begun(const char *console)
{
    static char text[1 << 16];
    int fd = open(console, O_RDONLY);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);

    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return strstr(text, "|begin\n") != NULL;
}

int main(int argc, char **argv)
{
    const struct timespec nap = { .tv_nsec = LOOK_NANOSECONDS };
    struct rusage all;
    double begin = -1;
    int status = 0;

    if (argc < 3)
        return 2;
    unlink(argv[1]);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(STDERR_FILENO, STDOUT_FILENO);
        personality(ADDR_NO_RANDOMIZE);
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    while (waitpid(pid, &status, WNOHANG) == 0) {
        nanosleep(&nap, NULL);
        if (begin < 0 && has_begun(argv[1]))
            begin = cpu_of_all(pid);
    }
    getrusage(RUSAGE_CHILDREN, &all);
    double total = (double)(all.ru_utime.tv_sec + all.ru_stime.tv_sec)
                   + (double)(all.ru_utime.tv_usec + all.ru_stime.tv_usec) / 1e6;
    if (begin < 0)
        return 3;
    printf("%.3f\n", total - begin);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
