/* SPDX-License-Identifier: MIT */
/* Loops of many kinds, with trip counts from one up: what `peet cc` makes of them has to be what each trip does. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define APART __attribute__((noinline, noclone))
enum { N = 256 };

static double a[N][N], b[N][N], c[N];
static int32_t small[N * 4];
static uint64_t sum;

static void take(double x)
{
    sum = sum * 31 + (uint64_t)(int64_t)(x * 64);
}

APART static double up(const double *p, long n)
{
    double s = 0;
    for (long i = 0; i < n; i++)
        s += p[i];
    return s;
}

APART static void down(double *p, long n)
{
    while (n-- > 0)
        p[n] += 1;
}

APART static double by_stride(const double *p, long n, long stride)
{
    double s = 0;
    for (long i = 0; i < n; i++, p += stride)
        s += *p;
    return s;
}

APART static double two_strides(const double *p, const double *q, long n, long u, long v)
{
    double s = 0;
    for (long i = 0; i < n; i++)
        s += p[i * u] * q[i * v];
    return s;
}

APART static int32_t counts_in_ints(const int32_t *p, int n)
{
    int32_t s = 0;
    for (int i = 0; i < n; i += 3)
        s += p[i] ^ i;
    return s;
}

APART static unsigned counts_unsigned(const int32_t *p, unsigned from, unsigned n)
{
    unsigned s = 0;
    do
        s += (unsigned)p[from & 1023] + from;
    while (++from != n);
    return s;
}

APART static void stencil(double *to, const double *from, long n)
{
    long before = n - 1;
    for (long i = 0; i < n; i++) {
        to[i] = from[i] + 0.5 * from[before];
        before = i;
    }
}

APART static void multiply(long n)
{
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) {
            double s = 0;
            for (long k = 0; k < n; k++)
                s += a[i][k] * b[k][j];
            c[j] += s;
        }
}

APART static void triangle(double m[N][N], long n)
{
    for (long k = 0; k < n; k++)
        for (long i = k + 1; i < n; i++) {
            double f = m[i][k] / (m[k][k] + 3);
            for (long j = k; j < n; j++)
                m[i][j] -= f * m[k][j];
        }
}

APART static long chase(const int32_t *next, long at, long n)
{
    while (n-- > 0)
        at = next[at] & (N - 1);
    return at;
}

APART static long until(const int32_t *p, int32_t what)
{
    long i = 0;
    while (p[i] != what)
        i++;
    return i;
}

APART static double many(double *p, double *q, double *r, double *s, double *t, double *u, long n)
{
    double x = 0;
    for (long i = 1; i < n; i++) {
        p[i] = q[i] + r[i - 1] * s[i] - t[i];
        u[i] += p[i] + p[i - 1] + q[i - 1];
        x += u[i];
    }
    return x;
}

APART static void bounded_by_memory(int32_t *p, const int32_t *bound)
{
    for (int32_t i = 0; i < *bound; i++)
        p[i + 1] = i;
}

/* The compiler may count by what wraps around. */
APART static uint64_t wraps(uint64_t *p, uint64_t from, long n)
{
    uint64_t s = 0;
    for (long i = 0; i < n; i++) {
        from += 0x9e3779b97f4a7c15u;
        s ^= p[i & 15] + from;
    }
    return s;
}

APART static void copies(char *to, const char *from, long n)
{
    for (long i = 0; i < n; i += 16)
        __builtin_memcpy(to + i, from + n - 16 - i, 16);
}

/* A pointer that the loop itself changes, through another one. */
APART static double changed_meanwhile(double *p, long n)
{
    double s = 0, *q = p, **hold = &q;
    for (long i = 0; i < n; i++) {
        s += **(double *volatile *)hold;
        q = p + (i * 7 & 31);
    }
    return s;
}

/* Two ways out, both by counting. */
APART static double two_ends(const double *p, const double *q, long n, long m)
{
    double s = 0;
    long i = 0;
    for (; i < n && i < m; i++)
        s += p[i] * q[i];
    return s + p[i] + q[i + 1];
}

APART static double three_ends(const double *p, const double *q, long from, long skip, long limit)
{
    double s = 0;
    long i = from;
    for (;; i += 2) {
        s += p[i];
        if (i == skip)
            break;
        s -= q[i];
        if (i >= limit)
            break;
        s += p[i + 1];
        if (i > from + 60)
            break;
    }
    return s + q[i];
}

/* The second begins where the first has ended, and a third where both have. */
APART static double in_a_row(const double *p, long n, long m)
{
    double s = 0;
    long i = 0;
    for (; i < n; i++)
        s += p[i];
    s *= p[i];
    for (; i < m; i += 3)
        s -= p[i];
    s += p[i] * 2;
    while (i > 1)
        s += p[--i];
    return s + p[i];
}

/* A loop with something before and after it, in a loop. */
APART static double rows(double (*x)[N], const double (*y)[N], double *f, long k, long n)
{
    double s = 0;
    for (long r = 0; r < k; r++) {
        double by = f[r];
        for (long i = 0; i < n; i++)
            x[r][i] -= by * y[i][r];
        f[r] = x[r][n] + by;
        s += by;
    }
    return s;
}

/* Several ways lead to what counts, with nothing to say there. */
APART static double joins(const double *p, const int32_t *q, long n)
{
    double s = 0;
    for (long i = 0; i < n; i++) {
        if (q[i] & 1)
            s += p[i];
        else if (q[i] & 2)
            s -= p[i + 1];
        if (q[i] & 4)
            continue;
        s += 1;
    }
    return s;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 3;

    for (long i = 0; i < N; i++)
        for (long j = 0; j < N; j++) {
            a[i][j] = (double)(i * 3 % 7 + j);
            b[i][j] = (double)(j * 5 % 11 - i);
        }
    for (long i = 0; i < N * 4; i++)
        small[i] = (int32_t)(i * 37 % 251 + 1);
    for (long r = 1; r <= rounds; r++)
        for (long n = 1; n < 40; n = n * 3 / 2 + 1) {
            take(up(a[n], n) + up(b[r], 1));
            down(a[r], n);
            take(by_stride(a[0], n, r) + by_stride(a[9] + 200, n, -r) + by_stride(a[1], n, 0));
            take(two_strides(a[0], b[0], n, r, 3 * r + 1));
            take(counts_in_ints(small, (int)n * 5));
            take(counts_unsigned(small, (unsigned)-n, (unsigned)n));
            stencil(c, a[n], n);
            multiply(n);
            triangle(b, n);
            take((double)chase(small, r, n));
            small[n * 2] = -1;
            take((double)until(small, -1));
            take(many(a[1], a[2], a[3], b[1], b[2], c, n + 1));
            int32_t bound = (int32_t)n;
            bounded_by_memory(small, &bound);
            bounded_by_memory(small + n, small + n + 1 + n / 2);
            copies((char *)a[5], (const char *)b[6], n * 16);
            take((double)(wraps((uint64_t *)c, (uint64_t)r << 60, n) >> 40));
            take(changed_meanwhile(a[7], n));
            take(two_ends(a[2], b[3], n, 2 * r + 7) + two_ends(a[3], b[2], 0, n) + two_ends(a[4], b[4], n, n));
            take(three_ends(a[1], b[1], r, r + 2 * (n / 3), n) + three_ends(a[1], b[1], 0, 999, n + r));
            take(in_a_row(a[6], n / 2, n) + in_a_row(a[6], 0, r) + in_a_row(a[6], n, 3 * n));
            take(rows(a + 20, (const double(*)[N])b, c + 3, r + 2, n) + rows(a + 30, (const double(*)[N])b, c, 5, 1));
            take(joins(a[8], small, n));
        }
    for (long i = 0; i < N; i++)
        take(c[i] + a[i][i] + b[1][i] + small[i]);
    printf("%016llx\n", (unsigned long long)sum);
    return 0;
}
