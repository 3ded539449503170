/* SPDX-License-Identifier: MIT */
/* Calls that _FORTIFY_SOURCE gives other names, of sizes that no compiler knows: for tests/e2e/runtime.sh. With an argument
 * it writes too much. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char to[256], from[256];
static jmp_buf out;

static void leave(int value)
{
    longjmp(out, value);
}

int main(int argc, char **argv)
{
    volatile int rounds = 0, hundred = 100;
    size_t n = argc > 1 ? 1000 : (size_t)hundred;
    int pipes[2];

    (void)argv;
    memset(from, 'x', n - 1); /* __memset_chk */
    memcpy(to, from, n);
    memmove(to + 1, to, n);
    char *end = mempcpy(to, from, n);
    strcpy(to, from);
    end = stpcpy(end, from);
    strncpy(to, from, n);
    stpncpy(to, from, n);
    strcat(to, from + n - 20);
    strncat(to, from, n / 10);
    if (pipe(pipes) == 0 && write(pipes[1], from, n) == (ssize_t)n)
        n = (size_t)read(pipes[0], to, n);
    while (setjmp(out) < 5) {
        rounds++;
        leave(rounds);
    }
    printf("%d %zu %zu %d\n", rounds, strlen(to), n, (int)(end - to));
    return 7;
}
