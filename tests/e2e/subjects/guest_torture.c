/* SPDX-License-Identifier: MIT */
/* Whatever makes it hard to see from outside which instructions a thread executed: page faults inside blocks, reads and then writes of
 * fresh pages, string instructions over many of them, in both directions, system calls by the thousand, signals, a SIGSEGV
 * handler that repairs, loops long enough for timer ticks. Between the marks nothing of the C library is used, as that
 * depends on the processor. x86-64 only: the oracle is single-stepping there. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <peet/mark.h>

enum { PAGE = 4096 };

static volatile int signals;

static long call(long n, long a, long b, long c)
{
    long r;

    __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return r;
}

static void repair(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    signals++;
    call(SYS_mprotect, (long)info->si_addr & -PAGE, PAGE, PROT_READ | PROT_WRITE);
}

static void count_signal(int signal)
{
    (void)signal;
    signals += 100;
}

__attribute__((noipa)) static int fib(int n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

__attribute__((noipa)) static void touch(volatile char *p, long pages)
{
    for (long i = 0; i < pages; i++)
        p[i * PAGE]++;
}

__attribute__((noipa)) static double flops(double *a, int n, int times)
{
    double sum = 0;

    for (int k = 0; k < times; k++)
        for (int i = 0; i < n; i++) {
            a[i] = a[i] * 1.0001 + k;
            sum += a[i];
        }
    return sum;
}

__attribute__((noipa)) static long strings(char *m)
{
    void *to = m, *from = m + 1;
    long n = 3 * PAGE + 17;

    __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(7) : "memory");
    to = m + 8 * PAGE + 5;
    n = 1400;
    __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
    from = m;
    to = m + 5000;
    n = 3000;
    __asm__ volatile("repe cmpsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory", "cc");
    to = m + 20 * PAGE;
    long left = 1500;
    __asm__ volatile("std; rep stosq; cld" : "+D"(to), "+c"(left) : "a"(1) : "memory");
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(left) : "a"(1) : "memory"); /* of nothing */
    __asm__ volatile("lock addq $1, %0; lock cmpxchg16b %1"
                     : "+m"(m[64]), "+m"(m[128])
                     :
                     : "rax", "rdx", "cc", "memory");
    return n;
}

static char *map(uintptr_t at, long pages, int protection)
{
    return mmap((void *)at, (size_t)pages * PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* The frame of a page, as the kernel reports it. */
static uint64_t frame_of(const void *page)
{
    uint64_t entry = 0;
    FILE *f = fopen("/proc/self/pagemap", "r");

    if (!f || fseek(f, (long)((uintptr_t)page / PAGE * 8), SEEK_SET) != 0 || fread(&entry, 8, 1, f) != 1)
        entry = 0;
    return entry & 0x7fffffffffffff;
}

int main(void)
{
    static double grid[500];
    struct sigaction repairs = { .sa_sigaction = repair, .sa_flags = SA_SIGINFO };
    long sum = 0, self = getpid();

    sigaction(SIGSEGV, &repairs, NULL);
    signal(SIGUSR1, count_signal);
    char *fresh = map(0x10000000, 256, PROT_READ | PROT_WRITE), *closed = map(0x20000000, 16, PROT_READ);
    PEET_THREAD_BEGIN(7);
    sum += fib(15);
    touch(fresh, 64);
    sum += strings(fresh + 64 * PAGE);
    for (int i = 0; i < 2000; i++)
        sum += call(SYS_getppid, 0, 0, 0) == 0;
    touch(closed, 16);
    for (int i = 0; i < 20; i++)
        call(SYS_kill, self, SIGUSR1, 0);
    sum += flops(grid, 500, 8) > 0;
    PEET_THREAD_END();
    printf("%ld %d\n", sum, signals);
    for (int i = 0; i < 64; i++)
        printf("page %#lx %#lx\n", (unsigned long)((uintptr_t)fresh / PAGE + (unsigned)i),
               (unsigned long)frame_of(fresh + i * PAGE));
    return signals == 2016 ? 0 : 1;
}
