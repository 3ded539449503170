/* SPDX-License-Identifier: MIT */
/* A program built with peet cc that runs as somebody else says: one thread at a time, as far as its next stop (docs/design/instrumentation.md, STEERED
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
struct control;

/* Makes the program ready, a process of its own: its first thread has stopped at its beginning. want: 0 or PEET_WANT_REPEATS. */
int control_start(char *const *argv, uint32_t ahead, unsigned want, struct control **ret, struct peet_err *err);
/* The same for the program in whose process this is (docs/design/controlled-execution.md). */
int control_attach(const struct raw_host *host, unsigned want, struct control **ret, struct peet_err *err);
void control_free(struct control *s); /* ends the program if it still runs, and is another process */

const struct peet_trace *control_schema(const struct control *s);
uint32_t control_threads(const struct control *s);                        /* so far */
uint32_t control_thread_number(const struct control *s, uint32_t thread); /* what events call it */
uint32_t control_thread_process(const struct control *s, uint32_t thread);
uint64_t control_thread_pointer(const struct control *s, uint32_t thread); /* its thread pointer, when it began */

/* The next batch of a thread, which runs if all that it said has been read; `reply` answers the event before. 1, 0 at its end, or an error. */
int control_next(struct control *s, uint32_t thread, uint64_t reply, struct peet_batch *ret, struct peet_err *err);

/* The same as words, for who asks for nothing else. Those before must have been used. *ret_pointer: the thread pointer, of a thread's first words; else 0. */
int control_next_words(struct control *s, uint32_t thread, uint64_t reply, uint64_t **ret_word, uint64_t **ret_end,
                       const struct peet_names **ret_names, uint64_t *ret_pointer, struct peet_err *err);

/* The thread may leave out about so many references when it goes on (docs/design/instrumentation.md); of what library code moves, each line counts as one. */
void control_skip(struct control *s, uint32_t thread, uint64_t references, uint32_t line_bytes);

/* The calls that have led to where a thread stands that has stopped behind a gap, the innermost first: where they stand in the code that is recorded, and the
 * block to which they return. *ret_whole: they lead to its beginning. Returns how many they are; 0: it does not stand so, or in another process. */
unsigned control_calls(struct control *s, uint32_t thread, uint64_t *ret_site, uint64_t *ret_back, unsigned most,
                       bool *ret_whole);

/* Whether the program has come to its end, and all that was said by the thread in which it has was read: no thread goes on any more. */
bool control_is_over(const struct control *s);

/* How the program has ended, as waitpid tells it; it must have. */
int control_status(struct control *s);

#endif
