/* SPDX-License-Identifier: MIT */
/* System calls that are events, and calls by which a process forks, changes its program or ends. exec reports the
 * process's end before it is tried, and takes that back if it fails. vfork is fork: a child in its parent's memory
 * would write into the parent's stream. exit needs no wrapper (core.c). */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "capture/runtime/real.h"
#include "capture/runtime/rt.h"
#include "capture/runtime/host.h"

extern char **environ;

/* ---- memory, files ---- */

static uint64_t mmap_protection(int p)
{
    return (p & PROT_EXEC ? 1u : 0u) | (p & PROT_WRITE ? 2u : 0u) | (p & PROT_READ ? 4u : 0u);
}

static void *system_map(void *at, size_t size, int protection, int flags, int fd, off_t offset, uint64_t site)
{
    void *p;

    if (!RT_FOUND(mmap)) {
        long r = peet_rt_call(SYS_mmap, (long)at, (long)size, protection, flags, fd, offset);
        return r < 0 && r > -4096 ? MAP_FAILED : (void *)r;
    }
    RT_QUIET(p, RT_REAL(mmap)(at, size, protection, flags, fd, offset));
    if (p != MAP_FAILED)
        RT_EVENT(map, site, RT_ADDR(p), size, mmap_protection(protection));
    return p;
}

#ifndef RT_STATIC /* static programs load no libraries */

/* Address ranges of the loaded libraries. */
struct library_ranges {
    unsigned count;
    struct {
        uintptr_t start, end;
    } at[256];
};

static int add_library_range(struct dl_phdr_info *info, size_t size, void *user)
{
    struct library_ranges *p = user;
    uintptr_t start = UINTPTR_MAX, end = 0, page = (uintptr_t)sysconf(_SC_PAGESIZE);

    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + h->p_vaddr;
        if (h->p_type != PT_LOAD)
            continue;
        start = from < start ? from : start;
        end = from + h->p_memsz > end ? from + h->p_memsz : end;
    }
    if (start < end) {
        p->at[p->count].start = start & -page;
        p->at[p->count++].end = (end + page - 1) & -page;
    }
    return p->count == sizeof p->at / sizeof *p->at;
}

/* Words of the library's code are read while it is mapped. Its addresses are not used again, because recorder and
 * simulator identify code by its address. */
RT_WRAPPER int dlclose(void *library)
{
    int (*real)(void *);
    struct library_ranges ranges = { .count = 0 };

    *(void **)&real = dlsym(RTLD_NEXT, "dlclose");
    if (!peet_rt_on)
        return real(library);
    dl_iterate_phdr(add_library_range, &ranges);
    peet_rt_drain();
    int r = real(library);
    for (unsigned i = 0; i < ranges.count; i++) /* fails where a library is still mapped */
        peet_rt_call(SYS_mmap, (long)ranges.at[i].start, (long)(ranges.at[i].end - ranges.at[i].start), PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    return r;
}

#endif

RT_WRAPPER void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    return system_map(at, size, protection, flags, fd, offset, RT_SITE);
}

/* mmap with _FILE_OFFSET_BITS 64. */
RT_WRAPPER void *mmap64(void *at, size_t size, int protection, int flags, int fd, off64_t offset)
{
    return system_map(at, size, protection, flags, fd, offset, RT_SITE);
}

RT_WRAPPER void *mremap(void *at, size_t size, size_t now, int flags, ...)
{
    va_list ap;

    va_start(ap, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(ap, void *) : NULL, *p;
    va_end(ap);
    if (!RT_FOUND(mremap))
        return MAP_FAILED;
    RT_QUIET(p, RT_REAL(mremap)(at, size, now, flags, to));
    if (p != MAP_FAILED) {
        RT_EVENT(unmap, RT_SITE, RT_ADDR(at), size);
        RT_EVENT(map, RT_SITE, RT_ADDR(p), now, 6);
    }
    return p;
}

RT_WRAPPER int munmap(void *at, size_t size)
{
    int r;

    if (!RT_FOUND(munmap))
        return -1;
    RT_EVENT(unmap, RT_SITE, RT_ADDR(at), size);
    RT_QUIET(r, RT_REAL(munmap)(at, size));
    return r;
}

RT_WRAPPER ssize_t read(int fd, void *to, size_t n)
{
    ssize_t r;

    if (!RT_FOUND(read))
        return -1;
    RT_QUIET_WAIT(r, RT_REAL(read)(fd, to, n));
    RT_EVENT(syscall, RT_SITE, SYS_read, (uint64_t)fd, RT_ADDR(to), n, (uint64_t)r);
    if (r > 0)
        RT_EVENT(range_write, RT_SITE, RT_ADDR(to), (uint64_t)r);
    return r;
}

RT_WRAPPER ssize_t __read_chk(int fd, void *to, size_t n, size_t room)
{
    ssize_t r;

    if (!RT_FOUND(__read_chk))
        return -1;
    RT_QUIET_WAIT(r, RT_REAL(__read_chk)(fd, to, n, room));
    RT_EVENT(syscall, RT_SITE, SYS_read, (uint64_t)fd, RT_ADDR(to), n, (uint64_t)r);
    if (r > 0)
        RT_EVENT(range_write, RT_SITE, RT_ADDR(to), (uint64_t)r);
    return r;
}

RT_WRAPPER ssize_t write(int fd, const void *from, size_t n)
{
    ssize_t r;

    if (!RT_FOUND(write))
        return -1;
    RT_QUIET_WAIT(r, RT_REAL(write)(fd, from, n));
    RT_EVENT(syscall, RT_SITE, SYS_write, (uint64_t)fd, RT_ADDR(from), n, (uint64_t)r);
    if (r > 0)
        RT_EVENT(range_read, RT_SITE, RT_ADDR(from), (uint64_t)r);
    return r;
}

/* ---- fork ---- */

/* The child of the fork in which the calling thread is. */
static RT_TLS struct {
    struct raw_thread *entry;
    uint32_t number;
    bool is_told; /* fork_child writes the fork event */
} child;

static void before_fork(void)
{
    child.entry =
        peet_rt_self.entry && !peet_rt_header->controlled ? peet_rt_take_entry(peet_rt_self.number, 0, 0) : NULL;
    child.number = child.entry ? child.entry->number : 0;
    if (child.entry)
        child.entry->parent = peet_rt_self.number;
}

/* Says once that children of a simulated program are separate processes, which run natively. */
static void say_native(void)
{
    static _Atomic bool is_said;
    static const char text[] =
        "peet: note: child processes are not simulated: they run natively, and a wait for them takes simulated time\n";

    if (peet_rt_header && peet_rt_header->controlled && !atomic_exchange(&is_said, true))
        peet_rt_call(SYS_write, 2, (long)text, sizeof text - 1, 0, 0, 0);
}

static void in_parent(void)
{
    say_native();
    if (child.entry && !child.is_told)
        RT_EVENT_ALWAYS(fork, 0, child.number);
}

static void in_child(void)
{
    peet_rt_new_process(child.entry);
}

/* Some functions of the C library fork without calling the wrappers (daemon, forkpty). In the child, handlers that the
 * program registers run after these, which were registered first, and write into the child's buffers. */
void peet_rt_processes_begin(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

static pid_t fork_child(uint64_t site)
{
    pid_t pid;

    if (!RT_FOUND(fork))
        return -1;
    child.is_told = true;
    RT_QUIET(pid, RT_REAL(fork)());
    child.is_told = false;
    if (pid < 0 && child.entry) {
        atomic_store(&child.entry->life, RAW_FREE);
    } else if (pid > 0 && child.entry) {
        child.entry->pid = pid; /* so that the recorder waits for it even if it has not begun */
        RT_EVENT(fork, site, child.number);
    }
    return pid;
}

RT_WRAPPER pid_t fork(void)
{
    return fork_child(RT_SITE);
}

RT_WRAPPER pid_t vfork(void)
{
    return fork_child(RT_SITE);
}

/* These create children without the handlers of pthread_atfork. */

RT_WRAPPER int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                           const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
    say_native();
    return RT_FOUND(posix_spawn) ? RT_REAL(posix_spawn)(pid, path, actions, attr, argv, envp) : ENOSYS;
}

RT_WRAPPER int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                            const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
    say_native();
    return RT_FOUND(posix_spawnp) ? RT_REAL(posix_spawnp)(pid, file, actions, attr, argv, envp) : ENOSYS;
}

RT_WRAPPER int system(const char *command)
{
    if (command)
        say_native();
    return RT_FOUND(system) ? RT_REAL(system)(command) : -1;
}

RT_WRAPPER FILE *popen(const char *command, const char *mode)
{
    say_native();
    return RT_FOUND(popen) ? RT_REAL(popen)(command, mode) : NULL;
}

/* ---- exec ---- */

static void before_exec(const char *path)
{
    struct raw_thread *entry = peet_rt_self.entry;

    if (!entry || !path)
        return;
    entry->program = peet_rt_string(path);
    peet_rt_set_end(PEET_END_EXEC, 0);
    peet_rt_drain();
}

static void after_failed_exec(void)
{
    if (peet_rt_self.entry)
        peet_rt_set_end(-1, 0);
}

RT_WRAPPER int execve(const char *path, char *const argv[], char *const envp[])
{
    before_exec(path);
    int r = RT_REAL(execve)(path, argv, envp);
    after_failed_exec();
    return r;
}

RT_WRAPPER int execvpe(const char *path, char *const argv[], char *const envp[])
{
    before_exec(path);
    int r = RT_REAL(execvpe)(path, argv, envp);
    after_failed_exec();
    return r;
}

RT_WRAPPER int fexecve(int fd, char *const argv[], char *const envp[])
{
    before_exec(argv[0]);
    int r = RT_REAL(fexecve)(fd, argv, envp);
    after_failed_exec();
    return r;
}

RT_WRAPPER int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

RT_WRAPPER int execvp(const char *path, char *const argv[])
{
    return execvpe(path, argv, environ);
}

enum { ARGUMENTS = 1024 };

/* Collects at most ARGUMENTS arguments, up to NULL; further ones are dropped. */
#define COLLECT(argv, first, ap) \
    char *argv[ARGUMENTS + 1]; \
    size_t count_ = 0; \
    for (const char *a_ = first; a_ && count_ < ARGUMENTS; a_ = va_arg(ap, const char *)) \
        argv[count_++] = (char *)(uintptr_t)a_; \
    argv[count_] = NULL

RT_WRAPPER int execl(const char *path, const char *first, ...)
{
    va_list ap;

    va_start(ap, first);
    COLLECT(argv, first, ap);
    va_end(ap);
    return execve(path, argv, environ);
}

RT_WRAPPER int execlp(const char *path, const char *first, ...)
{
    va_list ap;

    va_start(ap, first);
    COLLECT(argv, first, ap);
    va_end(ap);
    return execvpe(path, argv, environ);
}

RT_WRAPPER int execle(const char *path, const char *first, ...)
{
    va_list ap;

    va_start(ap, first);
    COLLECT(argv, first, ap);
    char *const *envp = va_arg(ap, char *const *);
    va_end(ap);
    return execve(path, argv, envp);
}

/* ---- the end ---- */

static void system_at_end(uint32_t status)
{
    peet_rt_self.depth = 0;
    peet_rt_set_end(PEET_END_PROCESS_EXIT, status);
    peet_rt_drain();
}

RT_WRAPPER void _exit(int status)
{
    system_at_end((uint32_t)status);
    peet_rt_call(SYS_exit_group, status, 0, 0, 0, 0, 0);
    __builtin_unreachable();
}

RT_WRAPPER void _Exit(int status)
{
    system_at_end((uint32_t)status);
    peet_rt_call(SYS_exit_group, status, 0, 0, 0, 0, 0);
    __builtin_unreachable();
}

RT_WRAPPER void quick_exit(int status)
{
    system_at_end((uint32_t)status); /* the recorder reads the words of its handlers from the unfinished buffer */
    RT_REAL(quick_exit)(status);
    __builtin_unreachable();
}

RT_WRAPPER void abort(void)
{
    if (peet_rt_in_process)
        peet_rt_set_end(PEET_END_SIGNAL, SIGABRT);
    peet_rt_drain();
    RT_REAL(abort)();
    __builtin_unreachable();
}
