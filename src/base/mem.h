/* SPDX-License-Identifier: MIT */
/* Memory for small things (cells of tables, lists of messages): these functions end the program, by an assertion,
 * when there is none, as nobody could do better. What grows with a trace uses malloc and PEET_ERR_MEMORY instead. */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

void *mem_alloc(size_t count, size_t size); /* zeroed */
char *mem_string(const char *s);
char *mem_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *mem_vformat(const char *format, va_list ap) __attribute__((format(printf, 1, 0)));

/* Room for element number `count` of an array that has been grown by this function only: its capacity is always the
 * next power of two, so that adding one by one takes linear time. Returns where the array is now. */
void *mem_room(void *array, size_t count, size_t size);

/* The same for who comes to any number: if there are not so many, there are more then, half as many again, and zeroed. */
void *mem_grow(void *array, uint32_t *count, uint32_t number, size_t size);
static inline void *mem_reach(void *array, uint32_t *count, uint32_t number, size_t size)
{
    return number < *count ? array : mem_grow(array, count, number, size);
}

#endif
