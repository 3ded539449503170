/* SPDX-License-Identifier: MIT */
/* Marks of threads of POSIX programs for `peet record --system`; programs include peet/mark.h.
 *
 * The marker is that of peet/mark_bare.h, with the address of the thread's card: thread-local memory
 * with a word that no other thread has.
 *
 * While no thread is marked, QEMU does not instrument code, which would cost time. So in a guest of peet the first thread to mark itself
 * sends a request before: to the console, which has the name PEET_MARK_ASK, too. The answer comes when all code is
 * instrumented; then the thread removes the name, so that others send no request. Other systems have no such name. */
#ifndef PEET_MARK_GUEST_H
#define PEET_MARK_GUEST_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <peet/mark_bare.h>

enum { PEET_MARK_MAPS_ROOM = 1 << 17 };
enum { PEET_MARK_CLOEXEC = 02000000, PEET_MARK_ANONYMOUS = 0x20 }; /* of open and mmap: strict modes hide their names */
#define PEET_MARK_ASK "/peet/ask"
#define PEET_MARK_APPLICATION "PEET_APPLICATION" /* environment: the number of the --app */
enum { PEET_MARK_TRIES = 200, PEET_MARK_TRY_MS = 100 };

/* By which a thread of a guest identifies itself; a marker has its address. Pointers are 64 bits wide here; 0: not known. */
struct peet_mark_card {
    uint64_t cookie;                  /* random, not 0: by it the thread is found again */
    uint64_t process, parent, thread; /* as the guest's kernel numbers them */
    uint64_t program, command;        /* addresses of strings: path; command line */
    uint64_t handle;                  /* result of pthread_self */
    uint64_t application;             /* number of the --app that the process comes from; 0: of none */
};

#ifdef __cplusplus
extern "C" {
#endif
#ifndef __USE_GNU
extern int pthread_getattr_np(pthread_t, pthread_attr_t *); /* strict modes of the language hide these */
extern int pthread_attr_getstack(const pthread_attr_t *, void **, size_t *);
extern long syscall(long, ...);
#endif
#ifdef __cplusplus
}
#endif
extern char *program_invocation_name __attribute__((weak));

/* The stack of the thread that asks; 0 bytes: it could not be found out, and is guessed from the stack pointer. */
static inline uint64_t peet_mark_stack(uint64_t *bytes)
{
    pthread_attr_t attributes;
    void *lowest = 0;
    size_t size = 0;

    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        pthread_attr_getstack(&attributes, &lowest, &size);
        pthread_attr_destroy(&attributes);
    }
    *bytes = size;
    return size ? (uint64_t)(uintptr_t)lowest + size - 1 : (uint64_t)(uintptr_t)__builtin_frame_address(0);
}

/* Functions that are not inlined, so that the thread's code after its mark is not theirs; `inline`, so that unused ones are not emitted. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"

/* Sends the request. It can be lost among messages of the kernel, so it is repeated; after PEET_MARK_TRIES requests the thread continues without. */
__attribute__((noinline)) static inline void peet_mark_ask(void)
{
    static const char question[] = "\npeet: ask\n";
    int before = errno, fd = open(PEET_MARK_ASK, O_RDWR | O_NOCTTY | O_NONBLOCK | PEET_MARK_CLOEXEC);
    char answer = 0;

    for (int i = 0; fd >= 0 && i < PEET_MARK_TRIES && answer != '+' && access(PEET_MARK_ASK, F_OK) == 0; i++) {
        struct pollfd p = { fd, POLLIN, 0 };
        ssize_t asked = write(fd, question, sizeof question - 1);
        while (asked > 0 && answer != '+' && poll(&p, 1, PEET_MARK_TRY_MS) > 0 && read(fd, &answer, 1) == 1)
            ;
    }
    if (answer == '+')
        unlink(PEET_MARK_ASK);
    if (fd >= 0)
        close(fd);
    errno = before;
}

/* Number of the process that has reported its mappings; one variable for all files of a program. */
__attribute__((weak, visibility("hidden"))) uint64_t peet_mark_told;

/* Before the first mark of a process: what lies where in it, so that functions and variables have names. The number is that
 * of the process, and the card is the text of /proc/self/maps. */
__attribute__((noinline)) static inline void peet_mark_maps(void)
{
    uint64_t process = (uint64_t)getpid(), bytes = 0;

    if (peet_mark_told == process)
        return;
    peet_mark_told = process;
    int before = errno, fd = open("/proc/self/maps", O_RDONLY | PEET_MARK_CLOEXEC);
    char *text = (char *)mmap(0, PEET_MARK_MAPS_ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | PEET_MARK_ANONYMOUS, -1, 0);
    ssize_t n;
    if (fd >= 0 && text != (char *)MAP_FAILED) {
        while (bytes + 1 < PEET_MARK_MAPS_ROOM && (n = read(fd, text + bytes, PEET_MARK_MAPS_ROOM - 1 - bytes)) > 0)
            bytes += (uint64_t)n;
        peet_marker(PEET_MARK_MAPS, process, (uint64_t)(uintptr_t)text, bytes, (uint64_t)(uintptr_t)text);
    }
    if (text != (char *)MAP_FAILED)
        munmap(text, PEET_MARK_MAPS_ROOM);
    if (fd >= 0)
        close(fd);
    errno = before;
}

#pragma GCC diagnostic pop

static inline uint64_t peet_mark_application(void)
{
    const char *text = getenv(PEET_MARK_APPLICATION);
    uint64_t n = 0;

    for (; text && *text >= '0' && *text <= '9'; text++)
        n = 10 * n + (uint64_t)(*text - '0');
    return n;
}

static inline uint64_t peet_mark_handle(void)
{
    pthread_t self = pthread_self();
    uint64_t handle = 0;

    memcpy(&handle, &self, sizeof self < sizeof handle ? sizeof self : sizeof handle);
    return handle;
}

static inline void peet_mark_begin(uint64_t number, const char *command)
{
    static __thread struct peet_mark_card card;
    uint64_t now[2] = { 0, 0 };
    uint64_t bytes, bottom = peet_mark_stack(&bytes);

    peet_mark_ask();
    peet_mark_maps();
    mlock((void *)(uintptr_t)(bottom & ~(uint64_t)4095), 4096); /* as far as the limits allow it */
    syscall(SYS_clock_gettime, 1, now);                         /* the monotonic one */
    card.process = (uint64_t)getpid();
    card.parent = (uint64_t)getppid();
    card.thread = (uint64_t)syscall(SYS_gettid);
    card.program = (uint64_t)(uintptr_t)(&program_invocation_name ? program_invocation_name : 0);
    card.command = (uint64_t)(uintptr_t)command;
    card.handle = peet_mark_handle();
    card.application = peet_mark_application();
    card.cookie = (now[1] << 32 ^ now[0] << 20 ^ card.thread) * UINT64_C(0x9e3779b97f4a7c15);
    card.cookie |= 1;
    peet_marker(PEET_MARK_BEGIN, number, bottom, bytes, (uint64_t)(uintptr_t)&card);
}

static inline void peet_mark_end(void)
{
    uint64_t here = 0;

    peet_marker(PEET_MARK_END, 0, (uint64_t)(uintptr_t)&here, 0, 0);
}

#undef PEET_THREAD_BEGIN /* of a program that has included peet/mark_bare.h before */
#undef PEET_THREAD_END
#define PEET_THREAD_BEGIN(number) peet_mark_begin((uint64_t)(number), 0)
#define PEET_THREAD_END() peet_mark_end()

#endif
