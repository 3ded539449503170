/* SPDX-License-Identifier: MIT */
/* A program built with peet cc that runs as somebody else says: one thread at a time, as far as its next stop (capture/protocol/raw.h, STEERED
 * PROGRAMS). Nothing is written: its records go to who steers it.
 *
 * Threads are numbered from 0, in the order in which they were created, which is the same in every run that is steered in the same way:
 * there is one heap for all threads, and addresses are not left to chance. */
#ifndef CAPTURE_CONTROL_CONTROL_H
#define CAPTURE_CONTROL_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "peet/trace.h"

struct raw_host;
struct steer;

/* Makes the program ready, a process of its own: its first thread has stopped at its beginning. want: 0 or PEET_WANT_REPEATS. */
int steer_start(char *const *argv, uint32_t ahead, unsigned want, struct steer **ret, struct peet_err *err);
/* The same for the program in whose process this is (capture/protocol/raw.h, INSIDE). */
int steer_attach(const struct raw_host *host, unsigned want, struct steer **ret, struct peet_err *err);
void steer_free(struct steer *s); /* ends the program if it still runs, and is another process */

const struct peet_trace *steer_schema(const struct steer *s);
uint32_t steer_threads(const struct steer *s);                 /* so far */
uint32_t steer_number(const struct steer *s, uint32_t thread); /* what events call it */
uint32_t steer_process(const struct steer *s, uint32_t thread);
uint64_t steer_pointer(const struct steer *s, uint32_t thread); /* its thread pointer, when it began */

/* The next batch of a thread, which runs if all that it said has been read; `reply` answers the event before. 1, 0 at its end, or an error. */
int steer_next(struct steer *s, uint32_t thread, uint64_t reply, struct peet_batch *ret, struct peet_err *err);

/* The same as words, for who asks for nothing else. Those before must have been used. *ret_pointer: the thread pointer, of a thread's first words; else 0. */
int steer_words(struct steer *s, uint32_t thread, uint64_t reply, uint64_t **ret_word, uint64_t **ret_end,
                const struct peet_names **ret_names, uint64_t *ret_pointer, struct peet_err *err);

/* The thread may leave out about so many references when it goes on (capture/protocol/raw.h, COPIES); of what library code moves, each line counts as one. */
void steer_skip(struct steer *s, uint32_t thread, uint64_t references, uint32_t line_bytes);

/* The calls that have led to where a thread stands that has stopped behind a gap, the innermost first: where they stand in the code that is recorded, and the
 * block to which they return. *ret_whole: they lead to its beginning. Returns how many they are; 0: it does not stand so, or in another process. */
unsigned steer_calls(struct steer *s, uint32_t thread, uint64_t *ret_site, uint64_t *ret_back, unsigned most,
                     bool *ret_whole);

/* Whether the program has come to its end, and all that was said by the thread in which it has was read: no thread goes on any more. */
bool steer_is_over(const struct steer *s);

/* How the program has ended, as waitpid tells it; it must have. */
int steer_status(struct steer *s);

#endif
