/* SPDX-License-Identifier: MIT */
/* Functions of guest programs and libraries whose calls are events of the trace: POSIX and C11 threads, and the allocator. They are found by
 * their symbols. The allocator includes functions that map memory. The arguments of an event come from the registers for arguments and results (struct guest_isa), so that one table is for
 * all architectures. Independent of QEMU. */
#ifndef CAPTURE_QEMU_CALLS_H
#define CAPTURE_QEMU_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CALL_ARGUMENTS = 3, CALL_WORDS = 4 /* arguments of an event, and a terminating 0 */ };

/* When the event is recorded. */
enum call_moment {
    CALL_BEFORE,    /* at the function's entry */
    CALL_NO_RETURN, /* at the entry of a function that does not return */
    CALL_SUCCESS, /* after the return, if the result is 0, EOWNERDEAD, or PTHREAD_BARRIER_SERIAL_THREAD of a barrier */
    CALL_RESULT,  /* after the return */
    CALL_POINTER, /* after the return, if the result is not NULL */
    CALL_SITE,    /* never: the system call in the function is an event, which gets the site of the function's call */
};

/* A function, and its event. */

/* How calls of a library function become events. */
struct call_rule {
    const char *function; /* its symbol */
    uint16_t event;       /* enum peet_event_kind */
    uint8_t moment;       /* enum call_moment */
    /* The event's arguments, a letter for each. '0' to '2': that argument of the function. 'n': the third argument, 32 bits. 'r': the result, 32
     * bits. 'p': the result as a pointer. '*': the word at address argument 0. 'b': the number of threads of barrier argument 0. 'c': the number
     * of the thread whose handle is at address argument 0. 't': the number of the thread with handle argument 0. */
    char words[CALL_WORDS];
};

extern const struct call_rule CALL_RULES[];
extern const size_t CALL_RULE_COUNT;

const struct call_rule *call_rule_find(const char *function); /* NULL: none */

#endif
