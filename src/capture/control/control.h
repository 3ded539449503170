/* SPDX-License-Identifier: MIT */
/* Controlled execution of an instrumented program: the caller chooses a thread, which runs alone to its next stop
 * (docs/design/controlled-execution.md). No trace is written; the caller receives the records.
 *
 * Threads have indexes from 0 in the order of their creation. Two runs with the same choices have the same order and the same
 * addresses: all threads use one heap, and address space layout randomization is off. */
#ifndef CAPTURE_CONTROL_CONTROL_H
#define CAPTURE_CONTROL_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "peet/trace.h"

struct raw_host;
struct control;

/* Starts the program in another process. Its first thread has stopped at its beginning. ahead: producer_config.ahead; want: 0 or
 * PEET_WANT_REPEATS. */
int control_start(char *const *argv, uint32_t ahead, unsigned want, struct control **ret, struct peet_err *err);
/* Takes control of the program in this process; for the in-process simulator. */
int control_attach(const struct raw_host *host, unsigned want, struct control **ret, struct peet_err *err);
void control_free(struct control *s); /* kills the program if it still runs and is another process */

const struct peet_trace *control_schema(const struct control *s);
uint32_t control_threads(const struct control *s);                        /* number of threads created until now */
uint32_t control_thread_number(const struct control *s, uint32_t thread); /* its number in events */
uint32_t control_thread_process(const struct control *s, uint32_t thread);
uint64_t control_thread_pointer(const struct control *s, uint32_t thread); /* its thread pointer at its beginning */

/* Lets threads of a program with hooks stop at shared accesses, and decides when their stores perform (docs/design/live-orders.md). Before the first call of
 * control_next. */
struct raw_order;
void control_set_order(struct control *s, const struct raw_order *order);
/* The same, with what was counted and found so far. */
const struct raw_order *control_order(const struct control *s);

/* Reads the next batch of a thread. The thread runs when the caller has read all its records; `reply` then answers its last event.
 * Returns 1, 0 at the thread's end, or an error. An empty batch: the thread is at a shared access, and the next call lets it continue. */
int control_next(struct control *s, uint32_t thread, uint64_t reply, struct peet_batch *ret, struct peet_err *err);

/* Reads the next event words of a thread; for callers that do not call control_next. The words of the call before are no longer
 * valid. *ret_pointer: the thread pointer, with a thread's first words; otherwise 0. */
int control_next_words(struct control *s, uint32_t thread, uint64_t reply, uint64_t **ret_word, uint64_t **ret_end,
                       const struct peet_names **ret_names, uint64_t *ret_pointer, struct peet_err *err);

/* Lets the thread skip about `references` references when it resumes (skip mode). Of memory that library code moves, each line of
 * line_bytes counts as one reference. */
void control_skip(struct control *s, uint32_t thread, uint64_t references, uint32_t line_bytes);

/* An open call: its address in instrumented code, the address of the block to which it returns, and that of the return address. */
struct control_call {
    uint64_t site, back, slot;
};
/* Unwinds the stack of a thread that has stopped after a gap: its calls, innermost first. *ret_root: the address of the return address of
 * the function with which the thread began; 0: the calls do not reach it. Returns the number of calls; 0: the thread has not stopped after a gap, or
 * is in another process. */
unsigned control_calls(struct control *s, uint32_t thread, struct control_call *ret, unsigned most, uint64_t *ret_root);

/* Whether the program has ended, and the caller has read all records of the thread in which it ended. Then no thread runs. */
bool control_is_over(const struct control *s);

/* Waits for the program's process; returns its status as waitpid has it. The program must be at its end. */
int control_status(struct control *s);

#endif
