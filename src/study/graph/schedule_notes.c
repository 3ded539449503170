/* SPDX-License-Identifier: MIT */
/* Notes for tables of times: what is certain, what was left out, what the trace lacks. */
#include <inttypes.h>

#include "study/graph/delays.h"

/* Barriers at which more threads wait than one round takes. */
static uint64_t schedule_ambiguous_barriers(const struct precedence *p)
{
    uint64_t n = 0;

    for (size_t i = 0; i < p->objects; i++)
        n += p->object[i].class == GRAPH_BARRIER && p->object[i].users > p->object[i].arrivals;
    return n;
}

void schedule_notes(struct table *table, const struct precedence *p, const struct schedule *s)
{
    uint64_t ambiguous = schedule_ambiguous_barriers(p);

    table_note(table,
               "time is counted in instructions of a thread; events, and what happens inside of them, take none");
    table_note(
        table,
        "certain: program order, thread_create, thread_join, fork, barriers, wait for a posted value, semaphores where "
        "counting leaves no choice, parallel loops, what ended a wait at a condition; not certain: which of two "
        "critical sections came first, once");
    if (ambiguous)
        table_note(table,
                   "at %" PRIu64
                   " barriers more threads wait than one round takes: rounds are those of a machine with a "
                   "processor for each thread",
                   ambiguous);
    if (p->unknown.unmatched_waits)
        table_note(table,
                   "%" PRIu64
                   " waits have no arc: the thread that ended them is not in the trace, or could be one of several",
                   p->unknown.unmatched_waits);
    if (p->unknown.spin_waits)
        table_note(table, "%" PRIu64 " waits on a word of memory (spin_wait) have no arc", p->unknown.spin_waits);
    if (p->unknown.gaps)
        table_note(table, "%" PRIu64 " instructions in %" PRIu64 " gaps were not recorded and are not counted",
                   p->unknown.missing_instructions, p->unknown.gaps);
    if (p->unknown.damaged)
        table_note(table, "%" PRIu64 " damaged parts are missing; threads continue after them at once",
                   p->unknown.damaged);
    if (s->forced)
        table_note(table,
                   "%" PRIu64
                   " waits would never have ended and were left out; 'peet check' shows whether the trace is sound",
                   s->forced);
}
