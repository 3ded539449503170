/* SPDX-License-Identifier: MIT */
/* Makes a child process in one of many ways, waits for it, and says how it ended. Without arguments it is the child: it ends with status 7.
 * usage: children [system | popen | spawn | fork | exec] */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STATUS = 7, ROUNDS = 100000 };

extern char **environ;
static volatile long sum;

static int work(void)
{
    for (int i = 0; i < ROUNDS; i++)
        sum += i;
    return STATUS;
}

static int await(pid_t pid)
{
    int status = -1;

    return waitpid(pid, &status, 0) == pid ? status : -1;
}

static int run(const char *how, char *self)
{
    char *arguments[] = { self, NULL };
    pid_t pid;

    if (!strcmp(how, "system"))
        return system(self);
    if (!strcmp(how, "popen"))
        return pclose(popen(self, "r"));
    if (!strcmp(how, "spawn"))
        return posix_spawn(&pid, self, NULL, NULL, arguments, environ) ? -1 : await(pid);
    pid = !strcmp(how, "fork") ? fork() : vfork();
    if (pid == 0 && !strcmp(how, "fork"))
        _exit(work());
    if (pid == 0) {
        execv(self, arguments);
        _exit(1);
    }
    return await(pid);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return work();
    int status = run(argv[1], argv[0]);
    printf("%s %d\n", argv[1], WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return 0;
}
