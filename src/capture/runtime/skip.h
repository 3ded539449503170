/* SPDX-License-Identifier: MIT */
/* Skip mode: a thread leaves out references, which are counted by the counting copies of functions. The cursor and %r15 hold minus the
 * number of references left. docs/design/instrumentation.md has the table of states. */
#ifndef CAPTURE_RUNTIME_SKIP_H
#define CAPTURE_RUNTIME_SKIP_H

#include "capture/runtime/rt.h"

struct rt_registers;

/* The calling thread enters skip mode. */
void peet_rt_skip_begin(uint64_t references);
/* The calling thread leaves skip mode, if it is in it: a gap event is written, and the cursor is restored. */
void peet_rt_skip_end(void);
/* peet_rt_skip_suspend leaves skip mode before an event, peet_rt_skip_resume enters it again after it (declared in rt.h). */

/* Begins the pending skip of a thread whose buffer ended at the instruction *rip, with `words` words of a record written. True:
 * *rip and *ret_r15 say where it continues; either in the counting copy, or with the rest of the record on the spill page. */
bool peet_rt_skip_at_fault(const uint64_t *record, size_t words, uint64_t r14, uint64_t *rip, uint64_t *ret_r15);
/* The place in the counting copy of a root that is about to write its key at `rip`, with a counter in %r15; 0: none. */
uint64_t peet_rt_counting_copy(uint64_t rip, uint64_t r14);
/* Leaves skip mode at a crossing from the counting copy. */
void peet_rt_crossed(struct rt_registers *r);
/* Leaves skip mode with this counter, and writes %rsp. Returns the cursor. */
uint64_t peet_rt_skip_end_at(uint64_t counter, uint64_t sp);

/* Counts bytes at one or two addresses that library code moves; false: they are an event. Only in skip mode. */
bool peet_rt_skip_bytes(size_t n, const void *a, const void *b);
/* After an allocation in skip mode: stops, so that a simulator in the process can look at the calls. frame: of the allocation
 * function; it holds %rbp and the return address. */
void peet_rt_show_callers(const void *frame);
/* The return address in the instrumented copy that corresponds to one in the counting copy (declared in rt.h). */

static inline bool peet_rt_skips_bytes(size_t n, const void *a, const void *b)
{
    return __builtin_expect(peet_rt_self.skip.budget != 0, 0) && peet_rt_skip_bytes(n, a, b);
}

#endif
