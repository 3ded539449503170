/* SPDX-License-Identifier: MIT */
/* usage: count_steps [-p] PROGRAM [ARGUMENT…]
 * Counts the instructions that a program with one thread executes, in the plainest way: step, look at the program counter,
 * step. Knows nothing of peet. Elements of a repeated string instruction count as one instruction; one that stops for a
 * signal has not been executed. With -p, padding (nop) is not counted: how much of it is executed depends on where code
 * stands. Prints the number on standard error, and ends as the program did.
 *
 * A signal's handler is entered without executing anything, which a stop with the program counter elsewhere shows. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* Whether a repeated string instruction stands there: prefixes, one of them f2 or f3, and the opcode. */
static int repeats(pid_t pid, uint64_t at)
{
    uint64_t word = (uint64_t)ptrace(PTRACE_PEEKTEXT, pid, at, 0);
    int rep = 0;

    for (int i = 0; i < 8; i++, word >>= 8) {
        unsigned char b = word & 0xff;
        if (b == 0xf2 || b == 0xf3)
            rep = 1;
        else if (b == 0x66 || b == 0x67 || (b & 0xf0) == 0x40 || b == 0x64 || b == 0x65)
            continue;
        else
            return rep && ((b >= 0xa4 && b <= 0xa7) || (b >= 0xaa && b <= 0xaf));
    }
    return 0;
}

/* Whether a nop stands there: prefixes, and 90 or 0f 1f. */
static int pads(pid_t pid, uint64_t at)
{
    uint64_t word = (uint64_t)ptrace(PTRACE_PEEKTEXT, pid, at, 0);

    while ((word & 0xff) == 0x66 || (word & 0xff) == 0x2e)
        word >>= 8;
    return (word & 0xff) == 0x90 || (word & 0xffff) == 0x1f0f;
}

int main(int argc, char **argv)
{
    struct user_regs_struct regs = { 0 };
    siginfo_t info;
    uint64_t count = 0, at;
    int status, deliver = 0, unpadded = argc > 1 && !strcmp(argv[1], "-p");

    argc -= unpadded;
    argv += unpadded;
    pid_t pid = argc > 1 ? fork() : -1;

    if (pid == 0) {
        personality(ADDR_NO_RANDOMIZE);
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
        return 3;
    ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_EXITKILL);
    ptrace(PTRACE_GETREGS, pid, 0, &regs);
    for (;;) {
        at = regs.rip;
        int is_padding = unpadded && pads(pid, at);
        int sent = deliver;
        if (ptrace(PTRACE_SINGLESTEP, pid, 0, deliver) < 0 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
            break;
        deliver = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
        ptrace(PTRACE_GETREGS, pid, 0, &regs);
        if (deliver)
            continue;
        if (sent && ptrace(PTRACE_GETSIGINFO, pid, 0, &info) == 0 && info.si_code == SIGTRAP)
            continue;
        if (!is_padding && (regs.rip != at || !repeats(pid, at)))
            count++;
    }
    count += WIFEXITED(status); /* the system call that ended it */
    fprintf(stderr, "%llu\n", (unsigned long long)count);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
