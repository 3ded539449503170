/* SPDX-License-Identifier: MIT */
/* usage: forbid nothing|both|executable PROGRAM [ARGUMENT…]
 *
 * Runs the program under a filter for system calls, which its children inherit.
 *   nothing      no filter: the same environment without one
 *   both         a call that would make memory writable and executable kills the process
 *   executable   memory that is no private mapping of a file cannot become executable (EACCES), as under SELinux or
 *                systemd's MemoryDenyWriteExecute; where a program is loaded, nothing changes */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARGUMENT(n) (offsetof(struct seccomp_data, args) + 8 * (n))
#define LOAD(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (at))
#define IS(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (yes), (no))
#define HAS(bits, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), (yes), (no))
#define END(with) BPF_STMT(BPF_RET | BPF_K, (with))

static const struct sock_filter both[] = {
    LOAD(offsetof(struct seccomp_data, nr)),
    IS(SYS_mmap, 3, 0),
    IS(SYS_mprotect, 2, 0),
    IS(SYS_pkey_mprotect, 1, 0),
    END(SECCOMP_RET_ALLOW),
    LOAD(ARGUMENT(2)),
    HAS(PROT_WRITE, 0, 2),
    HAS(PROT_EXEC, 0, 1),
    END(SECCOMP_RET_KILL_PROCESS),
    END(SECCOMP_RET_ALLOW),
};

static const struct sock_filter executable[] = {
    LOAD(offsetof(struct seccomp_data, nr)),
    IS(SYS_mmap, 3, 0),
    IS(SYS_mprotect, 6, 0),
    IS(SYS_pkey_mprotect, 5, 0),
    END(SECCOMP_RET_ALLOW),
    LOAD(ARGUMENT(2)),
    HAS(PROT_EXEC, 0, 5),
    LOAD(ARGUMENT(3)),
    HAS(MAP_SHARED | MAP_ANONYMOUS, 2, 3),
    LOAD(ARGUMENT(2)),
    HAS(PROT_EXEC, 0, 1),
    END(SECCOMP_RET_ERRNO | EACCES),
    END(SECCOMP_RET_ALLOW),
};

static int forbid(const struct sock_filter *filter, size_t length)
{
    struct sock_fprog program = { (unsigned short)length, (struct sock_filter *)(uintptr_t)filter };

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -1 : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
    int r = 0;

    if (argc < 3)
        return 2;
    if (!strcmp(argv[1], "both"))
        r = forbid(both, sizeof both / sizeof *both);
    else if (!strcmp(argv[1], "executable"))
        r = forbid(executable, sizeof executable / sizeof *executable);
    if (r < 0) {
        perror("forbid");
        return 77;
    }
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
