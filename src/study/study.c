/* SPDX-License-Identifier: MIT */
#include "study/study.h"

#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "study/graph/schedule.h"

static const struct study *const studies[] = {
#define X(name) &study_##name,
    STUDIES(X)
#undef X
};

#define X(name) +1
enum { COUNT = STUDIES(X) };
#undef X

const struct study *study_at(size_t i)
{
    return i < COUNT ? studies[i] : NULL;
}

const struct study *study_find(const char *name)
{
    for (size_t i = 0; i < COUNT; i++)
        if (!strcmp(studies[i]->name, name))
            return studies[i];
    return NULL;
}

int study_run(const struct study *s, struct peet_trace *t, const struct study_config *config, struct study_answer *ret,
              struct progress *progress, struct peet_err *err)
{
    struct study_answer answer = { 0 };
    struct peet_totals totals;
    const struct peet_thread *th;
    uint64_t instructions = 0;

    if (config->grain == 0 || config->grain > STUDY_MAX_GRAIN || (config->grain & (config->grain - 1)))
        return err_set(err, PEET_ERR_USAGE,
                       "a granule cannot have %" PRIu64 " bytes; a power of two up to %d was expected", config->grain,
                       STUDY_MAX_GRAIN);
    for (size_t n = 0; !peet_trace_is_pipe(t) && (th = peet_trace_thread(t, n)); n++)
        instructions += peet_trace_totals(t, th->id, &totals) == 0 ? totals.instructions : 0;
    progress_total(progress, instructions);
    int r = s->run(t, config, &answer, progress, err);
    const char *caveat = peet_trace_lacks_order(t);
    if (r < 0) {
        study_release(&answer);
        return r;
    }
    if (caveat && answer.result.first)
        table_note(answer.result.first, "%s", caveat);
    *ret = answer;
    return 0;
}

int study_compare(const struct study *s, struct peet_trace *const *t, size_t traces, const struct study_config *config,
                  struct study_answer *ret, struct progress *progress, struct peet_err *err)
{
    struct study_answer answer = { 0 };
    int r = s->compare(t, traces, config, &answer, progress, err);

    if (r < 0) {
        study_release(&answer);
        return r;
    }
    *ret = answer;
    return 0;
}

void study_release(struct study_answer *a)
{
    result_release(&a->result);
    *a = (struct study_answer){ 0 };
}

/* Barriers at which more threads wait than one round takes. */
static uint64_t study_ambiguous_barriers(const struct precedence *p)
{
    uint64_t n = 0;

    for (size_t i = 0; i < p->objects; i++)
        n += p->object[i].class == GRAPH_BARRIER && p->object[i].users > p->object[i].arrivals;
    return n;
}

void study_notes(struct table *table, const struct precedence *p, const struct schedule *s)
{
    uint64_t ambiguous = study_ambiguous_barriers(p);

    table_note(table,
               "time is counted in instructions of a thread; events, and what happens inside of them, take none");
    table_note(
        table,
        "certain: program order, thread_create, thread_join, fork, barriers, wait for a posted value, semaphores where "
        "counting leaves no choice, parallel loops, what ended a wait at a condition; not certain: which of two "
        "critical sections came first, once");
    if (ambiguous)
        table_note(table,
                   "at %" PRIu64 " barriers more threads wait than meet: who meets whom is taken from a machine with a "
                   "processor for each thread",
                   ambiguous);
    if (p->unknown.unmatched_waits)
        table_note(table,
                   "%" PRIu64 " waits have no arc: whom they waited for is not in the trace, or could be several",
                   p->unknown.unmatched_waits);
    if (p->unknown.spin_waits)
        table_note(table, "%" PRIu64 " waits on a word of memory (spin_wait) have no arc", p->unknown.spin_waits);
    if (p->unknown.gaps)
        table_note(table, "%" PRIu64 " instructions in %" PRIu64 " gaps were not recorded and are not counted",
                   p->unknown.missing_instructions, p->unknown.gaps);
    if (p->unknown.damaged)
        table_note(table, "%" PRIu64 " damaged parts are missing; threads go on behind them at once",
                   p->unknown.damaged);
    if (s->forced)
        table_note(table,
                   "%" PRIu64
                   " waits would never have ended and were left out; 'peet check' tells whether the trace is sound",
                   s->forced);
}
