/* SPDX-License-Identifier: MIT */
/* Functions that move, search and compare bytes, as events over ranges. Compilers put many of them inline; what they put
 * there is instrumented. The sizes are those that the results tell: of a comparison, up to the first difference. */
#include "capture/rt/real.h"
#include "capture/rt/rt.h"

static void copied(uint64_t site, const void *to, const void *from, size_t n)
{
    if (n)
        RT_EVENT(range_copy, site, RT_ADDR(to), RT_ADDR(from), n);
}

static void was_read(uint64_t site, const void *p, size_t n)
{
    if (n)
        RT_EVENT(range_read, site, RT_ADDR(p), n);
}

static void was_written(uint64_t site, const void *p, size_t n)
{
    if (n)
        RT_EVENT(range_write, site, RT_ADDR(p), n);
}

static void compared(uint64_t site, const void *a, const void *b, size_t n)
{
    if (n)
        RT_EVENT(range_compare, site, RT_ADDR(a), RT_ADDR(b), n);
}

/* ---- bytes; these may be called before the real ones are known ---- */

RT_PUBLIC void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    copied(RT_SITE, to, from, n);
    if (__builtin_expect(RT_REAL(memcpy) != NULL, 1))
        return RT_REAL(memcpy)(to, from, n);
    for (size_t i = 0; i < n; i++)
        ((volatile char *)to)[i] = ((const char *)from)[i];
    return to;
}

RT_PUBLIC void *memset(void *to, int byte, size_t n)
{
    was_written(RT_SITE, to, n);
    if (__builtin_expect(RT_REAL(memset) != NULL, 1))
        return RT_REAL(memset)(to, byte, n);
    for (size_t i = 0; i < n; i++)
        ((volatile char *)to)[i] = (char)byte;
    return to;
}

RT_PUBLIC void *memmove(void *to, const void *from, size_t n)
{
    copied(RT_SITE, to, from, n);
    return RT_FOUND(memmove) ? RT_REAL(memmove)(to, from, n) : NULL;
}

RT_PUBLIC void *mempcpy(void *restrict to, const void *restrict from, size_t n)
{
    copied(RT_SITE, to, from, n);
    return RT_FOUND(mempcpy) ? RT_REAL(mempcpy)(to, from, n) : NULL;
}

static size_t common(const unsigned char *a, const unsigned char *b, size_t n, bool to_zero)
{
    size_t i = 0;

    while (i < n && a[i] == b[i] && (a[i] || !to_zero))
        i++;
    return i < n ? i + 1 : n;
}

RT_PUBLIC int memcmp(const void *a, const void *b, size_t n)
{
    if (peet_rt_listens())
        compared(RT_SITE, a, b, common(a, b, n, false));
    return RT_FOUND(memcmp) ? RT_REAL(memcmp)(a, b, n) : 0;
}

RT_PUBLIC void *memchr(const void *p, int byte, size_t n)
{
    void *r = RT_FOUND(memchr) ? RT_REAL(memchr)(p, byte, n) : NULL;

    was_read(RT_SITE, p, r ? (size_t)((char *)r - (const char *)p) + 1 : n);
    return r;
}

/* ---- strings ---- */

RT_PUBLIC size_t strlen(const char *s)
{
    size_t n = 0;

    if (__builtin_expect(RT_REAL(strlen) != NULL, 1))
        n = RT_REAL(strlen)(s);
    else
        while (((const volatile char *)s)[n])
            n++;
    was_read(RT_SITE, s, n + 1);
    return n;
}

RT_PUBLIC size_t strnlen(const char *s, size_t limit)
{
    size_t n = RT_FOUND(strnlen) ? RT_REAL(strnlen)(s, limit) : 0;

    was_read(RT_SITE, s, n < limit ? n + 1 : limit);
    return n;
}

RT_PUBLIC char *strcpy(char *restrict to, const char *restrict from)
{
    if (!RT_FOUND(strcpy))
        return NULL;
    if (peet_rt_listens())
        copied(RT_SITE, to, from, RT_REAL(strlen)(from) + 1);
    return RT_REAL(strcpy)(to, from);
}

RT_PUBLIC char *stpcpy(char *restrict to, const char *restrict from)
{
    char *end = RT_FOUND(stpcpy) ? RT_REAL(stpcpy)(to, from) : NULL;

    copied(RT_SITE, to, from, (size_t)(end - to) + 1);
    return end;
}

RT_PUBLIC char *strncpy(char *restrict to, const char *restrict from, size_t n)
{
    if (!RT_FOUND(strncpy))
        return NULL;
    size_t length = RT_REAL(strnlen)(from, n);
    size_t read = length < n ? length + 1 : n;
    copied(RT_SITE, to, from, read);
    was_written(RT_SITE, to + read, n - read);
    return RT_REAL(strncpy)(to, from, n);
}

RT_PUBLIC char *strcat(char *restrict to, const char *restrict from)
{
    if (!RT_FOUND(strcat))
        return NULL;
    if (peet_rt_listens()) {
        size_t length = RT_REAL(strlen)(to);
        was_read(RT_SITE, to, length + 1);
        copied(RT_SITE, to + length, from, RT_REAL(strlen)(from) + 1);
    }
    return RT_REAL(strcat)(to, from);
}

RT_PUBLIC int strcmp(const char *a, const char *b)
{
    if (peet_rt_listens())
        compared(RT_SITE, a, b, common((const unsigned char *)a, (const unsigned char *)b, SIZE_MAX, true));
    return RT_FOUND(strcmp) ? RT_REAL(strcmp)(a, b) : 0;
}

RT_PUBLIC int strncmp(const char *a, const char *b, size_t n)
{
    if (peet_rt_listens())
        compared(RT_SITE, a, b, common((const unsigned char *)a, (const unsigned char *)b, n, true));
    return RT_FOUND(strncmp) ? RT_REAL(strncmp)(a, b, n) : 0;
}

RT_PUBLIC char *strchr(const char *s, int c)
{
    char *r = RT_FOUND(strchr) ? RT_REAL(strchr)(s, c) : NULL;

    if (peet_rt_listens())
        was_read(RT_SITE, s, (r ? (size_t)(r - s) : RT_REAL(strlen)(s)) + 1);
    return r;
}

RT_PUBLIC char *strrchr(const char *s, int c)
{
    if (!RT_FOUND(strrchr))
        return NULL;
    if (peet_rt_listens())
        was_read(RT_SITE, s, RT_REAL(strlen)(s) + 1);
    return RT_REAL(strrchr)(s, c);
}

RT_PUBLIC char *strdup(const char *s)
{
    char *r;

    if (!RT_FOUND(strdup))
        return NULL;
    RT_QUIET(r, RT_REAL(strdup)(s));
    if (r && peet_rt_listens()) {
        size_t n = RT_REAL(strlen)(s) + 1;
        RT_EVENT(malloc, RT_SITE, RT_ADDR(r), n);
        copied(RT_SITE, r, s, n);
    }
    return r;
}
