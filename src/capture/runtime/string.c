/* SPDX-License-Identifier: MIT */
/* Functions that move, search and compare bytes, as events over ranges. Compilers expand many of them inline; that code
 * is instrumented. Sizes follow from the results: of a comparison, up to the first difference. */
#include "capture/runtime/real.h"
#include "capture/runtime/rt.h"
#include "capture/runtime/skip.h"

static void note_copy(uint64_t site, const void *to, const void *from, size_t n)
{
    if (n)
        RT_EVENT_IF(peet_rt_is_recording() && !peet_rt_skips_bytes(n, to, from), range_copy, site, RT_ADDR(to),
                    RT_ADDR(from), n);
}

static void note_read(uint64_t site, const void *p, size_t n)
{
    if (n)
        RT_EVENT_IF(peet_rt_is_recording() && !peet_rt_skips_bytes(n, p, NULL), range_read, site, RT_ADDR(p), n);
}

static void note_write(uint64_t site, const void *p, size_t n)
{
    if (n)
        RT_EVENT_IF(peet_rt_is_recording() && !peet_rt_skips_bytes(n, p, NULL), range_write, site, RT_ADDR(p), n);
}

static void note_compare(uint64_t site, const void *a, const void *b, size_t n)
{
    if (n)
        RT_EVENT_IF(peet_rt_is_recording() && !peet_rt_skips_bytes(n, a, b), range_compare, site, RT_ADDR(a),
                    RT_ADDR(b), n);
}

/* ---- bytes: may be called before the real functions are found ---- */

RT_WRAPPER void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    note_copy(RT_SITE, to, from, n);
    if (__builtin_expect(RT_REAL(memcpy) != NULL, 1))
        return RT_REAL(memcpy)(to, from, n);
    for (size_t i = 0; i < n; i++)
        ((volatile char *)to)[i] = ((const char *)from)[i];
    return to;
}

RT_WRAPPER void *memset(void *to, int byte, size_t n)
{
    note_write(RT_SITE, to, n);
    if (__builtin_expect(RT_REAL(memset) != NULL, 1))
        return RT_REAL(memset)(to, byte, n);
    for (size_t i = 0; i < n; i++)
        ((volatile char *)to)[i] = (char)byte;
    return to;
}

RT_WRAPPER void *memmove(void *to, const void *from, size_t n)
{
    note_copy(RT_SITE, to, from, n);
    return RT_FOUND(memmove) ? RT_REAL(memmove)(to, from, n) : NULL;
}

RT_WRAPPER void *mempcpy(void *restrict to, const void *restrict from, size_t n)
{
    note_copy(RT_SITE, to, from, n);
    return RT_FOUND(mempcpy) ? RT_REAL(mempcpy)(to, from, n) : NULL;
}

static size_t common_length(const unsigned char *a, const unsigned char *b, size_t n, bool to_zero)
{
    size_t i = 0;

    while (i < n && a[i] == b[i] && (a[i] || !to_zero))
        i++;
    return i < n ? i + 1 : n;
}

RT_WRAPPER int memcmp(const void *a, const void *b, size_t n)
{
    if (peet_rt_is_recording())
        note_compare(RT_SITE, a, b, common_length(a, b, n, false));
    return RT_FOUND(memcmp) ? RT_REAL(memcmp)(a, b, n) : 0;
}

RT_WRAPPER void *memchr(const void *p, int byte, size_t n)
{
    void *r = RT_FOUND(memchr) ? RT_REAL(memchr)(p, byte, n) : NULL;

    note_read(RT_SITE, p, r ? (size_t)((char *)r - (const char *)p) + 1 : n);
    return r;
}

/* ---- strings ---- */

RT_WRAPPER size_t strlen(const char *s)
{
    size_t n = 0;

    if (__builtin_expect(RT_REAL(strlen) != NULL, 1))
        n = RT_REAL(strlen)(s);
    else
        while (((const volatile char *)s)[n])
            n++;
    note_read(RT_SITE, s, n + 1);
    return n;
}

RT_WRAPPER size_t strnlen(const char *s, size_t limit)
{
    size_t n = RT_FOUND(strnlen) ? RT_REAL(strnlen)(s, limit) : 0;

    note_read(RT_SITE, s, n < limit ? n + 1 : limit);
    return n;
}

RT_WRAPPER char *strcpy(char *restrict to, const char *restrict from)
{
    if (!RT_FOUND(strcpy))
        return NULL;
    if (peet_rt_is_recording())
        note_copy(RT_SITE, to, from, RT_REAL(strlen)(from) + 1);
    return RT_REAL(strcpy)(to, from);
}

RT_WRAPPER char *stpcpy(char *restrict to, const char *restrict from)
{
    char *end = RT_FOUND(stpcpy) ? RT_REAL(stpcpy)(to, from) : NULL;

    note_copy(RT_SITE, to, from, (size_t)(end - to) + 1);
    return end;
}

/* The rest of the n bytes is filled with zeros. */
static void note_padded_copy(uint64_t site, char *to, const char *from, size_t n)
{
    if (!peet_rt_is_recording())
        return;
    size_t length = RT_REAL(strnlen)(from, n);
    size_t read = length < n ? length + 1 : n;
    note_copy(site, to, from, read);
    note_write(site, to + read, n - read);
}

RT_WRAPPER char *strncpy(char *restrict to, const char *restrict from, size_t n)
{
    if (!RT_FOUND(strncpy))
        return NULL;
    note_padded_copy(RT_SITE, to, from, n);
    return RT_REAL(strncpy)(to, from, n);
}

RT_WRAPPER char *stpncpy(char *restrict to, const char *restrict from, size_t n)
{
    if (!RT_FOUND(stpncpy))
        return NULL;
    note_padded_copy(RT_SITE, to, from, n);
    return RT_REAL(stpncpy)(to, from, n);
}

/* At most n bytes, and a zero. */
static void note_append(uint64_t site, char *to, const char *from, size_t n)
{
    if (!peet_rt_is_recording())
        return;
    size_t length = RT_REAL(strlen)(to), more = RT_REAL(strnlen)(from, n);
    note_read(site, to, length + 1);
    note_copy(site, to + length, from, more < n ? more + 1 : n);
    if (more == n)
        note_write(site, to + length + more, 1);
}

RT_WRAPPER char *strcat(char *restrict to, const char *restrict from)
{
    if (!RT_FOUND(strcat))
        return NULL;
    note_append(RT_SITE, to, from, SIZE_MAX);
    return RT_REAL(strcat)(to, from);
}

RT_WRAPPER char *strncat(char *restrict to, const char *restrict from, size_t n)
{
    if (!RT_FOUND(strncat))
        return NULL;
    note_append(RT_SITE, to, from, n);
    return RT_REAL(strncat)(to, from, n);
}

RT_WRAPPER int strcmp(const char *a, const char *b)
{
    if (peet_rt_is_recording())
        note_compare(RT_SITE, a, b, common_length((const unsigned char *)a, (const unsigned char *)b, SIZE_MAX, true));
    return RT_FOUND(strcmp) ? RT_REAL(strcmp)(a, b) : 0;
}

RT_WRAPPER int strncmp(const char *a, const char *b, size_t n)
{
    if (peet_rt_is_recording())
        note_compare(RT_SITE, a, b, common_length((const unsigned char *)a, (const unsigned char *)b, n, true));
    return RT_FOUND(strncmp) ? RT_REAL(strncmp)(a, b, n) : 0;
}

RT_WRAPPER char *strchr(const char *s, int c)
{
    char *r = RT_FOUND(strchr) ? RT_REAL(strchr)(s, c) : NULL;

    if (peet_rt_is_recording())
        note_read(RT_SITE, s, (r ? (size_t)(r - s) : RT_REAL(strlen)(s)) + 1);
    return r;
}

RT_WRAPPER char *strrchr(const char *s, int c)
{
    if (!RT_FOUND(strrchr))
        return NULL;
    if (peet_rt_is_recording())
        note_read(RT_SITE, s, RT_REAL(strlen)(s) + 1);
    return RT_REAL(strrchr)(s, c);
}

/* Its allocation has been an event. */
static void note_duplicate(uint64_t site, const char *copy, const char *s)
{
    if (!copy || !peet_rt_is_recording())
        return;
    size_t n = RT_REAL(strlen)(copy);
    note_copy(site, copy, s, n);
    note_write(site, copy + n, 1);
}

RT_WRAPPER char *strdup(const char *s)
{
    char *r;

    if (!RT_FOUND(strdup))
        return NULL;
    RT_QUIET(r, RT_REAL(strdup)(s));
    note_duplicate(RT_SITE, r, s);
    return r;
}

RT_WRAPPER char *strndup(const char *s, size_t n)
{
    char *r;

    if (!RT_FOUND(strndup))
        return NULL;
    RT_QUIET(r, RT_REAL(strndup)(s, n));
    note_duplicate(RT_SITE, r, s);
    return r;
}

/* ---- with a check by _FORTIFY_SOURCE; where it fails, the event is the program's last one ---- */

RT_WRAPPER void *__memcpy_chk(void *to, const void *from, size_t n, size_t room)
{
    note_copy(RT_SITE, to, from, n);
    return RT_FOUND(__memcpy_chk) ? RT_REAL(__memcpy_chk)(to, from, n, room) : NULL;
}

RT_WRAPPER void *__memmove_chk(void *to, const void *from, size_t n, size_t room)
{
    note_copy(RT_SITE, to, from, n);
    return RT_FOUND(__memmove_chk) ? RT_REAL(__memmove_chk)(to, from, n, room) : NULL;
}

RT_WRAPPER void *__mempcpy_chk(void *to, const void *from, size_t n, size_t room)
{
    note_copy(RT_SITE, to, from, n);
    return RT_FOUND(__mempcpy_chk) ? RT_REAL(__mempcpy_chk)(to, from, n, room) : NULL;
}

RT_WRAPPER void *__memset_chk(void *to, int byte, size_t n, size_t room)
{
    note_write(RT_SITE, to, n);
    return RT_FOUND(__memset_chk) ? RT_REAL(__memset_chk)(to, byte, n, room) : NULL;
}

RT_WRAPPER char *__strcpy_chk(char *to, const char *from, size_t room)
{
    if (!RT_FOUND(__strcpy_chk))
        return NULL;
    if (peet_rt_is_recording())
        note_copy(RT_SITE, to, from, RT_REAL(strlen)(from) + 1);
    return RT_REAL(__strcpy_chk)(to, from, room);
}

RT_WRAPPER char *__stpcpy_chk(char *to, const char *from, size_t room)
{
    if (!RT_FOUND(__stpcpy_chk))
        return NULL;
    if (peet_rt_is_recording())
        note_copy(RT_SITE, to, from, RT_REAL(strlen)(from) + 1);
    return RT_REAL(__stpcpy_chk)(to, from, room);
}

RT_WRAPPER char *__strncpy_chk(char *to, const char *from, size_t n, size_t room)
{
    if (!RT_FOUND(__strncpy_chk))
        return NULL;
    note_padded_copy(RT_SITE, to, from, n);
    return RT_REAL(__strncpy_chk)(to, from, n, room);
}

RT_WRAPPER char *__stpncpy_chk(char *to, const char *from, size_t n, size_t room)
{
    if (!RT_FOUND(__stpncpy_chk))
        return NULL;
    note_padded_copy(RT_SITE, to, from, n);
    return RT_REAL(__stpncpy_chk)(to, from, n, room);
}

RT_WRAPPER char *__strcat_chk(char *to, const char *from, size_t room)
{
    if (!RT_FOUND(__strcat_chk))
        return NULL;
    note_append(RT_SITE, to, from, SIZE_MAX);
    return RT_REAL(__strcat_chk)(to, from, room);
}

RT_WRAPPER char *__strncat_chk(char *to, const char *from, size_t n, size_t room)
{
    if (!RT_FOUND(__strncat_chk))
        return NULL;
    note_append(RT_SITE, to, from, n);
    return RT_REAL(__strncat_chk)(to, from, n, room);
}
