/* SPDX-License-Identifier: MIT */
/* usage: statuses code | signal | stop FILE | own FILE
 * Ends with status 3; by SIGSEGV; by SIGINT, which it does not handle; or with 5 after SIGINT. FILE is made when it has begun. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t wanted;
static volatile long cell[64];

static void handle(int number)
{
    wanted = number;
}

int main(int argc, char **argv)
{
    for (long i = 0; i < 64; i++)
        cell[i]++;
    if (argc < 2 || !strcmp(argv[1], "code"))
        return 3;
    if (!strcmp(argv[1], "signal"))
        raise(SIGSEGV);
    if (!strcmp(argv[1], "own"))
        signal(SIGINT, handle);
    close(open(argv[2], O_CREAT | O_WRONLY, 0600));
    for (long i = 0; !wanted; i++)
        cell[i % 64]++;
    return 5;
}
