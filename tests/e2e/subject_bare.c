/* SPDX-License-Identifier: MIT */
/* A subject without a C library (-DBARE -static -nostdlib), so that it does the same on every processor, also on the one
 * that valgrind pretends to be: loops over matrices, recursion, strings, atomic operations. Ends with 0. */
#include <stdint.h>

enum { N = 16, FIELD = 256 };

static double a[N][N], b[N][N], c[N][N];
static uint32_t field[FIELD];
static uint64_t shared;

static void multiply(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = i + j;
            b[i][j] = i - j;
            c[i][j] = 0;
        }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            for (int k = 0; k < N; k++)
                c[i][j] += a[i][k] * b[k][j];
}

__attribute__((noinline)) static uint64_t fibonacci(unsigned n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static void sort(uint32_t *at, int n)
{
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && at[j] < at[j - 1]; j--) {
            uint32_t swap = at[j];
            at[j] = at[j - 1];
            at[j - 1] = swap;
        }
}

static void copy(void *to, const void *from, uint64_t n)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n)::"memory");
}

static int work(void)
{
    uint32_t seed = 1;

    multiply();
    for (int i = 0; i < FIELD; i++)
        field[i] = seed = seed * 1664525 + 1013904223;
    sort(field, FIELD / 4);
    copy(field + FIELD / 2, field, 40);
    for (int i = 0; i < 10; i++)
        __atomic_fetch_add(&shared, 3, __ATOMIC_SEQ_CST);
    return fibonacci(14) == 377 && c[1][2] == 1088 && shared == 30 ? 0 : 1;
}

#ifdef BARE
void _start(void);
__attribute__((naked)) void _start(void)
{
    __asm__("and $-16, %%rsp; call begin" ::);
}

__attribute__((used)) static void begin(void) __asm__("begin");
static void begin(void)
{
    uint64_t code = (uint64_t)work();

    __asm__ volatile("syscall" : : "a"(231), "D"(code) : "rcx", "r11", "memory");
}
#else
int main(void)
{
    return work();
}
#endif
