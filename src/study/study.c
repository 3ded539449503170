/* SPDX-License-Identifier: MIT */
#include "study/study.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

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

const struct study_format *study_format_find(const struct study *s, const char *name)
{
    for (const struct study_format *f = s->formats; f && f->name; f++)
        if (!strcmp(f->name, name))
            return f;
    return NULL;
}

/* ---- options and state ---- */

struct study_state *study_state_new(const struct study *s)
{
    struct study_state *state = mem_alloc(s->state_size ? s->state_size : 1, 1);

    if (s->defaults)
        memcpy(state, s->defaults, s->state_size);
    return state;
}

void study_state_free(struct study_state *state)
{
    free(state);
}

void *study_option(const struct study *s, struct study_state *state, const char *name)
{
    const struct opt *o = s->options;

    for (; strcmp(o->name, name) != 0; o++)
        assert(o[1].name);
    return (char *)state + (uintptr_t)o->value;
}

int study_check(const struct study *s, struct study_state *state, const struct study_use *use, struct peet_err *err)
{
    return s->check ? s->check(state, use, err) : 0;
}

/* ---- answers ---- */

/* Gives the answer away after success, and releases it after failure. */
static int study_answer_return(int code, struct study_answer *answer, struct study_answer *ret)
{
    if (code < 0)
        study_release(answer);
    else
        *ret = *answer;
    return code < 0 ? code : 0;
}

int study_run(const struct study *s, struct study_state *state, struct peet_trace *t, struct study_answer *ret,
              struct progress *progress, struct peet_err *err)
{
    struct study_answer answer = { 0 };
    struct peet_totals totals;
    const struct peet_thread *th;
    uint64_t instructions = 0;
    int r = study_check(s, state, &(struct study_use){ 0 }, err);

    if (r < 0)
        return r;
    for (size_t n = 0; !peet_trace_is_pipe(t) && (th = peet_trace_thread(t, n)); n++)
        instructions += peet_trace_totals(t, th->id, &totals) == 0 ? totals.instructions : 0;
    progress_total(progress, instructions);
    r = s->run(state, t, &answer, progress, err);
    const char *caveat[] = { peet_trace_lacks_order(t), peet_trace_is_pipe(t) ? NULL : peet_trace_lacks_content(t) };
    for (size_t i = 0; i < 2; i++)
        if (r >= 0 && caveat[i] && answer.result.first)
            table_note(answer.result.first, "%s", caveat[i]);
    return study_answer_return(r, &answer, ret);
}

int study_compare(const struct study *s, struct study_state *state, struct peet_trace *const *t, size_t traces,
                  struct study_answer *ret, struct progress *progress, struct peet_err *err)
{
    struct study_answer answer = { 0 };

    return study_answer_return(s->compare(state, t, traces, &answer, progress, err), &answer, ret);
}

int study_program(const struct study *s, struct study_state *state, char *const *argv, struct study_answer *ret,
                  struct peet_err *err)
{
    struct study_answer answer = { 0 };

    return study_answer_return(s->program(state, argv, &answer, err), &answer, ret);
}

void study_release(struct study_answer *a)
{
    result_release(&a->result);
    *a = (struct study_answer){ 0 };
}
