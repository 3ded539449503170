/* SPDX-License-Identifier: MIT */
/* The short notation of litmus tests: threads with | between them; Wx1 stores, Rx loads, Xx1 exchanges, F, SF and LF are fences; .acq,
 * .rel and .acqrel give an access acquire and release. The n-th load of a thread has the n-th register. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "litmus/test.h"

enum { SHORT_LINE = 40 };

/* A program in the short notation that is being read. */
struct short_reader {
    struct litmus_test *t;
    const char *name;       /* of the test, for messages */
    uint32_t thread, loads; /* index of the current thread; its loads so far */
    struct peet_err *err;
};

/* Adds an instruction that is given in the standard format. */
static int short_add(struct short_reader *r, const char *line)
{
    struct litmus_lexer l;

    lex_init(&l, line, strlen(line), r->name, r->err);
    return x86_parse(&l, r->t, r->thread, true);
}

static const char *short_flags(const char *at)
{
    static const char *const FLAGS[] = { ".acqrel", ".acq", ".rel" };

    for (size_t i = 0; i < sizeof FLAGS / sizeof *FLAGS; i++)
        if (strncmp(at, FLAGS[i], strlen(FLAGS[i])) == 0)
            return FLAGS[i];
    return "";
}

static const char *short_fence(struct short_reader *r, const char *at)
{
    static const char *const FENCES[][2] = { { "SF", "SFENCE" }, { "LF", "LFENCE" }, { "F", "MFENCE" } };

    for (size_t i = 0; i < sizeof FENCES / sizeof *FENCES; i++)
        if (strncmp(at, FENCES[i][0], strlen(FENCES[i][0])) == 0)
            return short_add(r, FENCES[i][1]) < 0 ? NULL : at + strlen(FENCES[i][0]);
    return NULL;
}

/* Reads an instruction; returns where it ends, or NULL: r->err says why, or it is none. */
static const char *short_instruction(struct short_reader *r, const char *at)
{
    char line[SHORT_LINE], kind = at[0], location = at[0] ? at[1] : '\0', value = '0';
    const char *reg = test_register_at(r->loads), *flags;

    if (!strchr("RWX", kind) || location < 'a' || location > 'z' || (kind != 'W' && !reg))
        return short_fence(r, at);
    at += 2;
    if (kind != 'R') {
        value = *at++;
        if (value < '0' || value > '9')
            return NULL;
    }
    flags = short_flags(at);
    r->loads += kind != 'W';
    if (kind == 'W')
        snprintf(line, sizeof line, "MOV%s [%c],$%c", flags, location, value);
    else if (kind == 'R')
        snprintf(line, sizeof line, "MOV%s %s,[%c]", flags, reg, location);
    else
        snprintf(line, sizeof line, "MOV %s,$%c", reg, value);
    if (short_add(r, line) < 0)
        return NULL;
    snprintf(line, sizeof line, "XCHG%s [%c],%s", flags, location, reg);
    return kind == 'X' && short_add(r, line) < 0 ? NULL : at + strlen(flags);
}

static int short_program(struct short_reader *r, const char *at)
{
    test_reach_threads(r->t, 1);
    while (*at) {
        if (*at == ' ') {
            at++;
        } else if (*at == '|') {
            at++;
            r->thread++;
            r->loads = 0;
            if (!test_reach_threads(r->t, r->thread + 1))
                return err_set(r->err, PEET_ERR_FORMAT, "%s: more than %d threads", r->name, LITMUS_MAX_THREADS);
        } else {
            const char *from = at;
            r->err->code = 0;
            at = short_instruction(r, at);
            if (!at && r->err->code)
                return r->err->code;
            if (!at || !strchr(" |", *at))
                return err_set(r->err, PEET_ERR_FORMAT, "%s: expected an instruction, found '%.20s'", r->name, from);
        }
    }
    return 0;
}

int litmus_parse_short(const char *name, const char *program, const char *condition, struct litmus_test **ret,
                       struct peet_err *err)
{
    struct peet_err own;
    struct short_reader r = { .t = test_new(name, strlen(name)), .name = name, .err = err ? err : &own };
    struct litmus_lexer l;

    if (short_program(&r, program) < 0)
        goto fail;
    lex_init(&l, condition, strlen(condition), name, r.err);
    if (proposition_parse(&l, r.t, &r.t->condition) < 0)
        goto fail;
    if (l.kind != LEX_END) {
        lex_expected(&l, "the end of the condition");
        goto fail;
    }
    *ret = r.t;
    return 0;
fail:
    litmus_free(r.t);
    return r.err->code;
}
