/* SPDX-License-Identifier: MIT */
/* Finds the functions that the runtime wraps.
 * The dynamic linker calls the program's malloc before any other code of it runs, and dlsym may call calloc.
 * Allocations made while the real allocator is looked for come from a small arena (heap.c). */
#include <dlfcn.h>
#include <stdbool.h>

#include "capture/runtime/real.h"
#include "capture/runtime/rt.h"

#ifdef RT_STATIC

#define X(name) extern __typeof__(name) __real_##name;
RT_REALS(X)
#undef X

struct peet_rt_real peet_rt_real_functions = {
#define X(name) .real_##name = __real_##name,
    RT_REALS(X)
#undef X
};

bool peet_rt_find_all(void)
{
    return true;
}

/* The entry point of position-independent static programs. The C library's entry point calls through the global offset
 * table, which is not filled yet. It relies on linkers to make that a direct call, and --no-relax forbids it. */
__asm__(".pushsection .text\n"
        ".globl peet_rt_start\n"
        ".type peet_rt_start, @function\n"
        "peet_rt_start:\n"
        ".cfi_startproc\n"
        ".cfi_undefined rip\n"
        "xorl %ebp, %ebp\n"
        "movq %rdx, %r9\n"
        "popq %rsi\n"
        "movq %rsp, %rdx\n"
        "andq $-16, %rsp\n"
        "pushq %rax\n"
        "pushq %rsp\n"
        "xorl %r8d, %r8d\n"
        "xorl %ecx, %ecx\n"
        "leaq main(%rip), %rdi\n"
        "call __libc_start_main\n"
        "hlt\n"
        ".cfi_endproc\n"
        ".size peet_rt_start, .-peet_rt_start\n"
        ".popsection");

#else

struct peet_rt_real peet_rt_real_functions;

/* Written out, because strcmp is not found yet. */
static bool name_is_same(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

/* Of a function with several versions, dlsym may return an old one. A missing function must not be looked for: to
 * report that, the dynamic linker allocates, perhaps from the program's allocator. */
static void *real_find(const char *name)
{
    static const char *const old[] = { "pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_signal",
                                       "pthread_cond_broadcast" };

    for (unsigned i = 0; i < sizeof old / sizeof *old; i++)
        if (name_is_same(name, old[i]))
            return dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
    return dlsym(RTLD_NEXT, name);
}

bool peet_rt_find_all(void)
{
    static RT_TLS bool at_work;

    if (at_work)
        return false;
    at_work = true;
#define X(name) *(void **)&peet_rt_real_functions.real_##name = real_find(#name);
    RT_REALS(X)
#undef X
    at_work = false;
    return true;
}

#endif
