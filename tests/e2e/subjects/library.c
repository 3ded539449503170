/* SPDX-License-Identifier: MIT */
/* With -DLIBRARY a shared library that calls back and has variables of threads; else the program that uses it. */
#ifdef LIBRARY
#include <stdlib.h>
__thread int lt;
static __thread int ls = 4;
static int cnt;
int lib_inc(int x)
{
    lt += x;
    ls++;
    return lt + ls + ++cnt;
}
static int c2(const void *a, const void *b)
{
    return *(const int *)b - *(const int *)a;
}
void lib_sort(int *a, int n)
{
    qsort(a, (size_t)n, sizeof *a, c2);
}
int lib_call(int (*f)(int), int x)
{
    return f(x) + lib_inc(x);
}
#else
#include <stdio.h>
int lib_inc(int);
void lib_sort(int *, int);
int lib_call(int (*)(int), int);
extern __thread int lt;
static int cb(int x)
{
    return x * lt;
}
int main(void)
{
    int a[50];
    for (int i = 0; i < 50; i++)
        a[i] = (i * 37) % 50;
    lib_sort(a, 50);
    for (int i = 1; i < 50; i++)
        if (a[i - 1] < a[i])
            return 1;
    int s = 0;
    for (int i = 0; i < 1000; i++)
        s += lib_call(cb, i);
    printf("%d %d\n", s, lib_inc(1));
    return 0;
}
#endif
