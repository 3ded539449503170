/* SPDX-License-Identifier: MIT */
#include "base/mem.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *mem_check(void *p)
{
    assert(p && "no memory");
    return p;
}

void *mem_alloc(size_t count, size_t size)
{
    return mem_check(calloc(count ? count : 1, size ? size : 1));
}

char *mem_string(const char *s)
{
    return mem_check(strdup(s));
}

char *mem_vformat(const char *format, va_list ap)
{
    char *s = NULL;

    if (vasprintf(&s, format, ap) < 0)
        s = NULL;
    return mem_check(s);
}

char *mem_format(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    char *s = mem_vformat(format, ap);
    va_end(ap);
    return s;
}

void *mem_room(void *array, size_t count, size_t size)
{
    if (count & (count - 1)) /* 0 and powers of two are full */
        return array;
    size_t capacity = count ? 2 * count : 1;
    if (capacity <= count || capacity > SIZE_MAX / size)
        mem_check(NULL);
    return mem_check(realloc(array, capacity * size));
}

void *mem_grow(void *array, uint32_t *count, uint32_t number, size_t size)
{
    size_t more = (size_t)number + number / 2 + 256;
    if (more > UINT32_MAX)
        mem_check(NULL);
    char *all = mem_check(realloc(array, more * size));
    memset(all + *count * size, 0, (more - *count) * size);
    *count = (uint32_t)more;
    return all;
}
