/* SPDX-License-Identifier: MIT */
/* Every way in which functions are called that an instrumenting assembler has to get right: call-backs from the C library,
 * also through a tail call, arguments on the stack, variable arguments, jump tables, computed goto, setjmp and longjmp,
 * alloca, variables of threads, nested functions, signals, inline assembly; with an argument __builtin_longjmp, of which no trace can
 * know. Prints the same with every compiler. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdarg.h>
#include <setjmp.h>
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
static int cmp(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}
static int many(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j)
{
    return a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7 + h * 8 + i * 9 + j * 10;
}
int (*fp)(int, int, int, int, int, int, int, int, int, int) = many;
static double va(int n, ...)
{
    va_list ap;
    va_start(ap, n);
    double s = 0;
    for (int i = 0; i < n; i++)
        s += i & 1 ? va_arg(ap, int) : va_arg(ap, double);
    va_end(ap);
    return s;
}
static int sw(int x)
{
    switch (x) {
    case 0: return 5;
    case 1: return many(1, 2, 3, 4, 5, 6, 7, 8, 9, x);
    case 2: return 77;
    case 3: puts("three"); return 1;
    case 4: return x * x;
    case 5: return x << 3;
    case 6: return -1;
    case 9: return 12;
    }
    return 0;
}
static int goto_(const char *p)
{
    static void *t[] = { &&a, &&b, &&c, &&d };
    int acc = 0;
    goto *t[*p - 'a'];
a:
    acc += 1;
    p++;
    goto *t[*p - 'a'];
b:
    acc *= 3;
    p++;
    goto *t[*p - 'a'];
c:
    acc -= 7;
    p++;
    goto *t[*p - 'a'];
d:
    return acc;
}
static jmp_buf jb;
static int deep(int n)
{
    if (!n)
        longjmp(jb, 42);
    int r = deep(n - 1);
    return r + 1;
}
static __thread int tl = 3;
static int al(int n)
{
    int *p = alloca((size_t)n * sizeof *p);
    int s = 0;
    for (int i = 0; i < n; i++)
        p[i] = i * tl;
    for (int i = 0; i < n; i++)
        s += p[i];
    tl++;
    return s;
}
static void *th(void *x)
{
    int s = 0;
    for (int i = 0; i < 1000; i++)
        s += al(i % 50);
    return (void *)(long)(s + (long)x);
}
static int fib(int n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
static int tail_cb(void *a, size_t n, size_t s)
{
    qsort(a, n, s, cmp);
    return 0;
}
__attribute__((noinline)) static void tail_q(int *a, int n)
{
    qsort(a, (size_t)n, sizeof *a, cmp);
}
static _Complex double cx(_Complex double a, int n)
{
    while (n--)
        a = a * a + 0.1;
    return a;
}
struct big {
    long a[14];
};
static long bigf(struct big b, int i)
{
    return b.a[i] + b.a[13];
}
long (*bigp)(struct big, int) = bigf;
static volatile int hits;
static void onalrm(int s)
{
    (void)s;
    hits++;
}
static void *bs(int *a, int n, int k)
{
    return bsearch(&k, a, (size_t)n, sizeof *a, cmp);
}
static int nest(int n)
{
    int r = 0;
    int cb(const void *a, const void *b)
    {
        r++;
        return cmp(a, b);
    }
    int v[20];
    for (int i = 0; i < 20; i++)
        v[i] = (i * 7) % 20;
    qsort(v, 20, sizeof *v, cb);
    return v[n];
}
static void bj(void **b)
{
    __builtin_longjmp(b, 1);
}
static int bsj(void)
{
    void *b[5];
    volatile int x = 1;
    if (__builtin_setjmp(b) == 0) {
        x = 5;
        bj(b);
    }
    return x + fib(5);
}
static int inline_asm(void)
{
    int x = 5;
    __asm__ volatile("lock; addl $3,%0" : "+m"(x));
    printf("%d\n", x);
    __asm__ volatile("1: decl %0\n jnz 1b" : "+r"(x));
    return x;
}
int main(int c, char **v)
{
    (void)v;
    int a[1000];
    unsigned r = 1;
    for (int i = 0; i < 1000; i++) {
        r = r * 1103515245u + 12345u;
        a[i] = (int)(r >> 16 & 32767);
    }
    qsort(a, 1000, sizeof *a, cmp);
    int ok = 1;
    for (int i = 1; i < 1000; i++)
        ok &= a[i - 1] <= a[i];
    printf("sorted %d\n", ok);
    for (int i = 0; i < 1000; i++) {
        r = r * 1103515245u + 12345u;
        a[i] = (int)(r >> 16 & 32767);
    }
    tail_q(a, 1000);
    tail_cb(a, 1000, sizeof *a);
    long h = 0;
    for (int i = 0; i < 1000; i++)
        h = h * 31 + a[i];
    printf("%ld\n", h);
    printf("%d %d\n", fp(1, 2, 3, 4, 5, 6, 7, 8, 9, 10), many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
    printf("%g\n", va(9, 1.5, 2, 3.5, 4, 5.5, 6, 7.5, 8, 9.5));
    for (int i = 0; i < 11; i++)
        printf("%d ", sw(i));
    puts("");
    printf("%d\n", goto_("abcabcbad"));
    int j = setjmp(jb);
    if (j == 0)
        deep(20);
    printf("jmp %d\n", j);
    for (int k = 0; k < 3; k++) {
        if (setjmp(jb) == 0)
            deep(k * 5 + 1);
    }
    pthread_t t[8];
    long tot = 0;
    for (long i = 0; i < 8; i++)
        pthread_create(&t[i], 0, th, (void *)i);
    for (int i = 0; i < 8; i++) {
        void *p;
        pthread_join(t[i], &p);
        tot += (long)p;
    }
    printf("tot %ld\n", tot);
    printf("fib %d\n", fib(22));
    char buf[300];
    memset(buf, 'x', 299);
    buf[299] = 0;
    char *d = strdup(buf);
    printf("%zu %d\n", strlen(d), strcmp(d, buf));
    free(d);
    _Complex double z = cx(0.3 + 0.2i, 10);
    printf("%.6f %.6f\n", __real__ z, __imag__ z);
    struct big b;
    for (int i = 0; i < 14; i++)
        b.a[i] = i * i;
    printf("%ld\n", bigp(b, 5));
    signal(SIGALRM, onalrm);
    raise(SIGALRM);
    raise(SIGALRM);
    printf("hits %d\n", hits);
    printf("%d nest %d bsj %d\n", bs(a, 1000, -5) == NULL, nest(3), c > 1 ? bsj() : 0);
    printf("%d\n", inline_asm());
    return 0;
}
