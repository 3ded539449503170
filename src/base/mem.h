/* SPDX-License-Identifier: MIT */
/* Memory for small things (cells of tables, lists of messages). If there is none, these functions end the program by an assertion,
 * since no caller could do better. Memory that grows with a trace uses malloc and PEET_ERR_MEMORY instead. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

void *mem_alloc(size_t count, size_t size); /* zeroed */
char *mem_string(const char *s);
char *mem_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *mem_vformat(const char *format, va_list ap) __attribute__((format(printf, 1, 0)));

/* Makes room for element number `count` of an array that is grown by this function only. Its capacity is always the
 * next power of two, so that appending takes linear time. Returns the array. */
void *mem_room(void *array, size_t count, size_t size);

/* Makes room for element `number` of an array with *count elements, which are indexed in any order. New elements are zeroed, and
 * *count grows by half at least. Returns the array. */
void *mem_grow(void *array, uint32_t *count, uint32_t number, size_t size);
static inline void *mem_reach(void *array, uint32_t *count, uint32_t number, size_t size)
{
    return number < *count ? array : mem_grow(array, count, number, size);
}

#endif
