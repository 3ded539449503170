/* SPDX-License-Identifier: MIT */
/* Functions of a guest's programs and libraries whose calls are events of the trace: those of POSIX and C11 threads, and the allocator.
 * They are found by their symbols. What an event tells comes from the registers of arguments and results (struct guest_isa), so that
 * a row is for all architectures. Nothing here needs QEMU. */
#ifndef CAPTURE_QEMU_CALLS_H
#define CAPTURE_QEMU_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CALL_ARGUMENTS = 3, CALL_WORDS = 4 /* of an event, and the 0 behind them */ };

/* When the event comes. */
enum call_moment {
    CALL_BEFORE,    /* at the function's entry */
    CALL_NO_RETURN, /* so, of a function that does not come back */
    CALL_SUCCESS,   /* behind the function, if it returned 0, EOWNERDEAD, or that it was a barrier's last thread */
    CALL_RESULT,    /* behind the function, whatever it returned */
    CALL_POINTER,   /* behind the function, if it returned a pointer that is not NULL */
};

struct call_rule {
    const char *function; /* its symbol */
    uint16_t event;       /* enum peet_event_kind */
    uint8_t moment;       /* enum call_moment */
    /* The event's arguments, a letter each: '0' to '2' is that argument of the function, 'n' the third of 32 bits, 'r' its result (of 32 bits), 'p' its
     * result as a pointer, '*' the word that argument 0 points to, 'b' the count of the barrier that is argument 0, 'c' the
     * number of the thread whose handle lies where argument 0 points to, 't' that of the thread with handle argument 0. */
    char words[CALL_WORDS];
};

extern const struct call_rule CALL_RULES[];
extern const size_t CALL_RULE_COUNT;

const struct call_rule *call_rule_find(const char *function); /* NULL: none */

#endif
