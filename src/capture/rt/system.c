/* SPDX-License-Identifier: MIT */
/* System calls that are events, and the ways in which a process multiplies, changes or ends.
 *
 * exec tells the recorder of its end before it tries; when it fails, that is taken back. vfork is fork: a child that runs
 * in the memory of its parent would write into its stream. exit needs no wrapper, see core.c. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "capture/rt/real.h"
#include "capture/rt/rt.h"

extern char **environ;

/* ---- memory, files ---- */

static uint64_t protection_of(int p)
{
    return (p & PROT_EXEC ? 1u : 0u) | (p & PROT_WRITE ? 2u : 0u) | (p & PROT_READ ? 4u : 0u);
}

RT_PUBLIC void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    void *p;

    if (!RT_FOUND(mmap)) {
        long r = peet_rt_call(SYS_mmap, (long)at, (long)size, protection, flags, fd, offset);
        return r < 0 && r > -4096 ? MAP_FAILED : (void *)r;
    }
    RT_QUIET(p, RT_REAL(mmap)(at, size, protection, flags, fd, offset));
    if (p != MAP_FAILED)
        RT_EVENT(map, RT_SITE, RT_ADDR(p), size, protection_of(protection));
    return p;
}

RT_PUBLIC int munmap(void *at, size_t size)
{
    int r;

    if (!RT_FOUND(munmap))
        return -1;
    RT_EVENT(unmap, RT_SITE, RT_ADDR(at), size);
    RT_QUIET(r, RT_REAL(munmap)(at, size));
    return r;
}

RT_PUBLIC ssize_t read(int fd, void *to, size_t n)
{
    ssize_t r;

    if (!RT_FOUND(read))
        return -1;
    RT_QUIET(r, RT_REAL(read)(fd, to, n));
    RT_EVENT(syscall, RT_SITE, SYS_read, (uint64_t)fd, RT_ADDR(to), n, (uint64_t)r);
    if (r > 0)
        RT_EVENT(range_write, RT_SITE, RT_ADDR(to), (uint64_t)r);
    return r;
}

RT_PUBLIC ssize_t write(int fd, const void *from, size_t n)
{
    ssize_t r;

    if (!RT_FOUND(write))
        return -1;
    RT_QUIET(r, RT_REAL(write)(fd, from, n));
    RT_EVENT(syscall, RT_SITE, SYS_write, (uint64_t)fd, RT_ADDR(from), n, (uint64_t)r);
    if (r > 0)
        RT_EVENT(range_read, RT_SITE, RT_ADDR(from), (uint64_t)r);
    return r;
}

/* ---- fork ---- */

static pid_t make_child(uint64_t site)
{
    if (!RT_FOUND(fork))
        return -1;
    struct raw_thread *place = NULL;
    if (peet_rt_self.place)
        place = peet_rt_take_place(peet_rt_self.number, 0, 0);
    if (place)
        place->parent = peet_rt_self.number;
    uint32_t number = place ? place->number : 0;
    int depth = peet_rt_self.depth;
    pid_t pid;
    RT_QUIET(pid, RT_REAL(fork)());
    if (pid == 0) {
        int handlers = peet_rt_self.handlers;
        peet_rt_new_process(place);
        peet_rt_self.depth = depth;
        if (handlers) /* its outermost handler goes on in the child; what it writes is no handler's to the recorder */
            peet_rt_self.handlers = 0;
    } else if (pid < 0 && place) {
        atomic_store(&place->life, RAW_FREE);
    } else if (place) {
        place->pid = pid; /* so that the recorder waits for it even if it has not begun */
        RT_EVENT(fork, site, number);
    }
    return pid;
}

RT_PUBLIC pid_t fork(void)
{
    return make_child(RT_SITE);
}

RT_PUBLIC pid_t vfork(void)
{
    return make_child(RT_SITE);
}

/* ---- exec ---- */

static void before_exec(const char *path)
{
    struct raw_thread *place = peet_rt_self.place;

    if (!place || !path)
        return;
    place->program = peet_rt_string(path);
    peet_rt_tell_end(PEET_END_EXEC, 0);
    peet_rt_drain();
}

static void after_failed_exec(void)
{
    if (peet_rt_self.place)
        peet_rt_tell_end(-1, 0);
}

RT_PUBLIC int execve(const char *path, char *const argv[], char *const envp[])
{
    before_exec(path);
    int r = RT_REAL(execve)(path, argv, envp);
    after_failed_exec();
    return r;
}

RT_PUBLIC int execvpe(const char *path, char *const argv[], char *const envp[])
{
    before_exec(path);
    int r = RT_REAL(execvpe)(path, argv, envp);
    after_failed_exec();
    return r;
}

RT_PUBLIC int fexecve(int fd, char *const argv[], char *const envp[])
{
    before_exec(argv[0]);
    int r = RT_REAL(fexecve)(fd, argv, envp);
    after_failed_exec();
    return r;
}

RT_PUBLIC int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

RT_PUBLIC int execvp(const char *path, char *const argv[])
{
    return execvpe(path, argv, environ);
}

enum { ARGUMENTS = 1024 };

/* The arguments up to NULL, and where they end; too many of them are an error, as they are to the kernel. */
#define COLLECT(argv, first, ap) \
    char *argv[ARGUMENTS + 1]; \
    size_t count_ = 0; \
    for (const char *a_ = first; a_ && count_ < ARGUMENTS; a_ = va_arg(ap, const char *)) \
        argv[count_++] = (char *)(uintptr_t)a_; \
    argv[count_] = NULL

RT_PUBLIC int execl(const char *path, const char *first, ...)
{
    va_list ap;

    va_start(ap, first);
    COLLECT(argv, first, ap);
    va_end(ap);
    return execve(path, argv, environ);
}

RT_PUBLIC int execlp(const char *path, const char *first, ...)
{
    va_list ap;

    va_start(ap, first);
    COLLECT(argv, first, ap);
    va_end(ap);
    return execvpe(path, argv, environ);
}

RT_PUBLIC int execle(const char *path, const char *first, ...)
{
    va_list ap;

    va_start(ap, first);
    COLLECT(argv, first, ap);
    char *const *envp = va_arg(ap, char *const *);
    va_end(ap);
    return execve(path, argv, envp);
}

/* ---- the end ---- */

static void at_end(uint32_t status)
{
    peet_rt_self.depth = 0;
    peet_rt_tell_end(PEET_END_PROCESS_EXIT, status);
    peet_rt_drain();
}

RT_PUBLIC void _exit(int status)
{
    at_end((uint32_t)status);
    peet_rt_call(SYS_exit_group, status, 0, 0, 0, 0, 0);
    __builtin_unreachable();
}

RT_PUBLIC void _Exit(int status)
{
    at_end((uint32_t)status);
    peet_rt_call(SYS_exit_group, status, 0, 0, 0, 0, 0);
    __builtin_unreachable();
}

RT_PUBLIC void quick_exit(int status)
{
    at_end((uint32_t)status); /* its handlers are recorded up to the last block */
    RT_REAL(quick_exit)(status);
    __builtin_unreachable();
}

RT_PUBLIC void abort(void)
{
    peet_rt_drain();
    RT_REAL(abort)();
    __builtin_unreachable();
}
