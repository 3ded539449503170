/* SPDX-License-Identifier: MIT */
/* The functions that the runtime wraps. In a dynamic program, dlsym finds the real ones after the runtime's functions
 * of the same names. A static program is linked with --wrap: malloc is here __wrap_malloc, and the real one is
 * __real_malloc. What the C library moves and compares makes events there, too. */
#ifndef CAPTURE_RUNTIME_REAL_H
#define CAPTURE_RUNTIME_REAL_H

#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <threads.h>
#include <unistd.h>

/* Functions to which _FORTIFY_SOURCE redirects calls; headers declare them only then. room: bytes of the
 * destination. */
void *__memcpy_chk(void *to, const void *from, size_t n, size_t room);
void *__memmove_chk(void *to, const void *from, size_t n, size_t room);
void *__mempcpy_chk(void *to, const void *from, size_t n, size_t room);
void *__memset_chk(void *to, int byte, size_t n, size_t room);
char *__strcpy_chk(char *to, const char *from, size_t room);
char *__stpcpy_chk(char *to, const char *from, size_t room);
char *__strncpy_chk(char *to, const char *from, size_t n, size_t room);
char *__stpncpy_chk(char *to, const char *from, size_t n, size_t room);
char *__strcat_chk(char *to, const char *from, size_t room);
char *__strncat_chk(char *to, const char *from, size_t n, size_t room);
ssize_t __read_chk(int fd, void *to, size_t n, size_t room);
void __longjmp_chk(struct __jmp_buf_tag buf[1], int value) __attribute__((noreturn));

/* clang-format off */
#define RT_REALS(X) \
    X(malloc) X(calloc) X(realloc) X(free) X(aligned_alloc) X(posix_memalign) X(memalign) X(reallocarray) X(valloc) \
    X(memcpy) X(memmove) X(memset) X(memcmp) X(memchr) X(mempcpy) X(strlen) X(strnlen) X(strcpy) X(strncpy) X(stpcpy) \
    X(stpncpy) X(strcat) X(strncat) X(strcmp) X(strncmp) X(strchr) X(strrchr) X(strdup) X(strndup) \
    X(__memcpy_chk) X(__memmove_chk) X(__mempcpy_chk) X(__memset_chk) X(__strcpy_chk) X(__stpcpy_chk) X(__strncpy_chk) \
    X(__stpncpy_chk) X(__strcat_chk) X(__strncat_chk) X(__read_chk) X(__longjmp_chk) \
    X(pthread_create) X(pthread_join) X(pthread_tryjoin_np) X(pthread_timedjoin_np) X(pthread_clockjoin_np) X(pthread_detach) X(pthread_exit) X(pthread_cancel) X(pthread_testcancel) X(pthread_kill) X(pthread_once) \
    X(pthread_mutex_init) X(pthread_mutex_destroy) X(pthread_mutex_lock) X(pthread_mutex_trylock) \
    X(pthread_mutex_timedlock) X(pthread_mutex_clocklock) X(pthread_mutex_unlock) \
    X(pthread_rwlock_rdlock) X(pthread_rwlock_tryrdlock) X(pthread_rwlock_wrlock) X(pthread_rwlock_trywrlock) \
    X(pthread_rwlock_timedrdlock) X(pthread_rwlock_timedwrlock) X(pthread_rwlock_clockrdlock) X(pthread_rwlock_clockwrlock) \
    X(pthread_rwlock_unlock) X(pthread_spin_lock) X(pthread_spin_trylock) X(pthread_spin_unlock) \
    X(pthread_cond_wait) X(pthread_cond_timedwait) X(pthread_cond_clockwait) X(pthread_cond_signal) X(pthread_cond_broadcast) \
    X(pthread_barrier_init) X(pthread_barrier_wait) X(pthread_barrier_destroy) \
    X(sem_init) X(sem_wait) X(sem_trywait) X(sem_timedwait) X(sem_clockwait) X(sem_post) \
    X(thrd_create) X(thrd_join) X(thrd_detach) X(thrd_exit) X(call_once) \
    X(mtx_init) X(mtx_destroy) X(mtx_lock) X(mtx_trylock) X(mtx_timedlock) X(mtx_unlock) \
    X(cnd_wait) X(cnd_timedwait) X(cnd_signal) X(cnd_broadcast) \
    X(mmap) X(munmap) X(mremap) X(read) X(write) X(fork) X(posix_spawn) X(posix_spawnp) X(system) X(popen) X(execve) X(execvpe) X(fexecve) X(_exit) X(quick_exit) X(abort) \
    X(sigaction) X(sigprocmask) X(pthread_sigmask) X(sigaltstack) X(longjmp) X(_longjmp) X(siglongjmp)
/* clang-format on */

/* The functions that wrappers call. */
struct peet_rt_real {
#define X(name) __typeof__(name) *real_##name; /* some names are macros of the C library */
    RT_REALS(X)
#undef X
};

extern struct peet_rt_real peet_rt_real_functions;

/* Finds all of them. Safe to call at any time; false if it is called while it runs. */
bool peet_rt_find_all(void);

/* The real function. RT_FOUND: false while the functions are being looked for. */
#define RT_REAL(name) (peet_rt_real_functions.real_##name)
#define RT_FOUND(name) (__builtin_expect(RT_REAL(name) != NULL, 1) || peet_rt_find_all())

#endif
