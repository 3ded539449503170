/* SPDX-License-Identifier: MIT */
/* The standard format of litmus tests: a line with architecture and name, information, initial state, a column of instructions for
 * each thread, and the condition. PEET for an architecture is x86 with release and acquire. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "base/mem.h"
#include "litmus/test.h"

enum { PARSE_MAX_BYTES = 1 << 20 };

/* A test in the standard format that is being read. */
struct litmus_parser {
    struct litmus_lexer l;
    struct litmus_test *t;
    bool has_flags; /* the format has release and acquire */
};

/* The rest of the line after the current word, without blanks around it. */
static void parse_rest_of_line(struct litmus_lexer *l, const char **ret, size_t *ret_length)
{
    const char *from = l->word + l->length, *to = memchr(from, '\n', (size_t)(l->end - from));

    to = to ? to : l->end;
    l->at = to;
    while (from < to && strchr(" \t\r", *from))
        from++;
    while (to > from && strchr(" \t\r", to[-1]))
        to--;
    *ret = from;
    *ret_length = (size_t)(to - from);
}

/* ARCHITECTURE NAME, to the end of the line; the name may be in quotes. */
static int parse_head(struct litmus_parser *p)
{
    const char *name;
    size_t length;

    if (!lex_is_name(&p->l, "X86") && !lex_is_name(&p->l, "PEET"))
        return lex_expected(&p->l, "X86 or PEET, and the test's name");
    p->has_flags = lex_is_name(&p->l, "PEET");
    parse_rest_of_line(&p->l, &name, &length);
    if (length >= 2 && name[0] == '"' && name[length - 1] == '"') {
        name++;
        length -= 2;
    }
    if (!length)
        return lex_fail(&p->l, p->l.word_line,
                        "expected the test's name after the architecture, found the end of the line");
    p->t = test_new(name, length);
    lex_next(&p->l);
    return 0;
}

/* A text in quotes and lines KEY=VALUE, up to the initial state. */
static int parse_information(struct litmus_parser *p)
{
    struct litmus_lexer *l = &p->l;

    while (!lex_is(l, "{")) {
        const char *rest;
        size_t length;
        if (l->kind == LEX_STRING) {
            lex_next(l);
            continue;
        }
        if (l->kind != LEX_NAME)
            return lex_expected(l, "'{' and the initial state, or KEY=VALUE");
        struct litmus_lexer ahead = *l;
        lex_next(&ahead);
        if (!lex_is(&ahead, "="))
            return lex_expected(&ahead, "'=' of KEY=VALUE");
        parse_rest_of_line(l, &rest, &length);
        lex_next(l);
    }
    return 0;
}

/* Skips the name of a type, if there is one; all values have 32 bits here. */
static void parse_type(struct litmus_lexer *l)
{
    struct litmus_lexer ahead = *l;

    lex_next(&ahead);
    if (l->kind == LEX_NAME && (ahead.kind == LEX_NAME || ahead.kind == LEX_NUMBER || lex_is(&ahead, "[")))
        *l = ahead;
}

/* [TYPE] LOCATION or THREAD:REGISTER [= NUMBER]. */
static int parse_initial(struct litmus_parser *p)
{
    struct litmus_lexer *l = &p->l;
    int32_t value = 0;
    uint32_t index;

    parse_type(l);
    int32_t thread = l->number;
    bool is_register = l->kind == LEX_NUMBER;
    if (is_register) {
        uint32_t line = l->word_line;
        lex_next(l);
        const char *name = lex_accept(l, ":") && l->kind == LEX_NAME ? test_register_name(l->word, l->length) : NULL;
        if (!name)
            return lex_expected(l, "THREAD:REGISTER, with EAX to ESP");
        if (thread < 0 || !test_reach_threads(p->t, (uint32_t)thread + 1))
            return lex_fail(l, line, "expected a thread from 0 to %d, found %d", LITMUS_MAX_THREADS - 1, thread);
        index = test_register(p->t, (uint32_t)thread, name);
    } else {
        bool in_brackets = lex_accept(l, "[");
        if (l->kind != LEX_NAME)
            return lex_expected(l, "a location or THREAD:REGISTER");
        index = test_location(p->t, l->word, l->length);
        if (index == UINT32_MAX)
            return lex_fail(l, l->word_line, "more than %d locations", LITMUS_MAX_LOCATIONS);
        if (in_brackets) {
            lex_next(l);
            if (!lex_is(l, "]"))
                return lex_expected(l, "']'");
        }
    }
    lex_next(l);
    if (lex_accept(l, "=") && lex_number(l, &value) < 0)
        return l->err->code;
    if (is_register)
        p->t->thread[thread].reg[index].value.constant = value;
    else
        p->t->location[index].initial = value;
    return 0;
}

static int parse_initials(struct litmus_parser *p)
{
    lex_next(&p->l);
    while (!lex_accept(&p->l, "}")) {
        if (lex_accept(&p->l, ";"))
            continue;
        if (parse_initial(p) < 0)
            return p->l.err->code;
        if (!lex_is(&p->l, "}") && !lex_is(&p->l, ";"))
            return lex_expected(&p->l, "';' or '}' after a part of the initial state");
    }
    return 0;
}

/* P0 | P1 ; */
static int parse_threads(struct litmus_parser *p)
{
    struct litmus_lexer *l = &p->l;
    uint32_t threads = 0;

    do {
        char name[16];
        if (threads)
            lex_next(l);
        snprintf(name, sizeof name, "P%u", threads);
        if (!lex_is_name(l, name))
            return lex_expected(l, name);
        if (threads == LITMUS_MAX_THREADS)
            return lex_fail(l, l->word_line, "more than %d threads", LITMUS_MAX_THREADS);
        threads++;
        lex_next(l);
    } while (lex_is(l, "|"));
    if (threads < p->t->threads)
        return lex_fail(l, l->word_line, "expected %u threads, as in the initial state, found %u", p->t->threads,
                        threads);
    test_reach_threads(p->t, threads);
    return lex_expect(l, ";");
}

/* Whether the condition, or what stands before it, begins here. */
static bool parse_at_final(const struct litmus_lexer *l)
{
    static const char *const WORDS[] = { "exists", "forall", "not", "final", "locations", "filter", "observed" };

    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (lex_is_name(l, WORDS[i]))
            return true;
    return l->kind == LEX_END || lex_is(l, "~") || lex_is(l, "(");
}

static int parse_rows(struct litmus_parser *p)
{
    struct litmus_lexer *l = &p->l;

    while (!parse_at_final(l)) {
        uint32_t thread = 0;
        for (;; thread++) {
            if (!lex_is(l, "|") && !lex_is(l, ";")) {
                if (thread >= p->t->threads)
                    return lex_fail(l, l->word_line, "expected an instruction for each of %u threads, found more",
                                    p->t->threads);
                if (x86_parse(l, p->t, thread, p->has_flags) < 0)
                    return l->err->code;
            }
            if (!lex_is(l, "|"))
                break;
            lex_next(l);
        }
        if (!lex_is(l, ";"))
            return lex_expected(l, "'|' or ';' after an instruction");
        if (thread >= p->t->threads)
            return lex_fail(l, l->word_line, "expected %u columns, found %u", p->t->threads, thread + 1);
        lex_next(l);
    }
    return 0;
}

/* locations [ x; 0:EAX; ] */
static int parse_locations(struct litmus_parser *p)
{
    struct litmus_lexer *l = &p->l;

    lex_next(l);
    if (lex_expect(l, "[") < 0)
        return l->err->code;
    while (!lex_accept(l, "]")) {
        uint32_t observed;
        if (proposition_observed(l, p->t, &observed) < 0)
            return l->err->code;
        if (l->kind == LEX_NAME)
            lex_next(l); /* its type */
        if (!lex_is(l, "]") && lex_expect(l, ";") < 0)
            return l->err->code;
    }
    return 0;
}

/* observed x=1; 0:EAX=1; and x=0; : one of these final states. */
static int parse_observed(struct litmus_parser *p)
{
    struct litmus_lexer *l = &p->l;
    struct litmus_term *any = NULL;

    do {
        struct litmus_term *all = NULL, *one;
        lex_next(l);
        while (l->kind != LEX_END && !lex_is_name(l, "and")) {
            if (proposition_atom(l, p->t, &one) < 0 || lex_expect(l, ";") < 0)
                return l->err->code;
            all = proposition_join(p->t, LITMUS_AND, all, one);
        }
        if (!all)
            return lex_expected(l, "a final state, LOCATION=NUMBER;");
        any = proposition_join(p->t, LITMUS_OR, any, all);
    } while (lex_is_name(l, "and"));
    p->t->quantifier = LITMUS_EXISTS;
    p->t->condition = any;
    return 0;
}

/* with MODEL: exists; …: what another tool expects. */
static int parse_expectations(struct litmus_parser *p)
{
    struct litmus_lexer *l = &p->l;

    lex_next(l);
    while (l->kind == LEX_NAME) {
        lex_next(l);
        if (lex_expect(l, ":") < 0)
            return l->err->code;
        if (lex_is(l, "~") || lex_is_name(l, "not"))
            lex_next(l);
        if (!lex_is_name(l, "exists") && !lex_is_name(l, "forall"))
            return lex_expected(l, "exists, ~exists or forall");
        lex_next(l);
        lex_accept(l, ";");
    }
    return 0;
}

static int parse_condition(struct litmus_parser *p)
{
    static const struct litmus_term NO_CONDITION = { .kind = LITMUS_TRUE };
    struct litmus_lexer *l = &p->l;
    struct litmus_test *t = p->t;

    t->quantifier = LITMUS_EXISTS;
    if (l->kind == LEX_END) {
        t->quantifier = LITMUS_FORALL;
        t->condition = &NO_CONDITION;
        return 0;
    }
    if (lex_is_name(l, "observed"))
        return parse_observed(p);
    if (lex_is(l, "~") || lex_is_name(l, "not")) {
        t->quantifier = LITMUS_NOT_EXISTS;
        lex_next(l);
        if (!lex_is_name(l, "exists"))
            return lex_expected(l, "exists");
    } else if (lex_is_name(l, "forall")) {
        t->quantifier = LITMUS_FORALL;
    } else if (!lex_is_name(l, "exists") && !lex_is_name(l, "final") && !lex_is(l, "(")) {
        return lex_expected(l, "a condition: exists, ~exists, forall");
    }
    if (!lex_is(l, "("))
        lex_next(l);
    return proposition_parse(l, t, &t->condition);
}

static int parse_final(struct litmus_parser *p)
{
    struct litmus_lexer *l = &p->l;

    if (lex_is_name(l, "locations") && parse_locations(p) < 0)
        return l->err->code;
    if (lex_is_name(l, "filter")) {
        lex_next(l);
        if (proposition_parse(l, p->t, &p->t->filter) < 0)
            return l->err->code;
    }
    if (parse_condition(p) < 0)
        return l->err->code;
    lex_accept(l, ";");
    if (lex_is_name(l, "with") && parse_expectations(p) < 0)
        return l->err->code;
    return l->kind == LEX_END ? 0 : lex_expected(l, "the end of the test");
}

int litmus_parse(const char *text, size_t size, const char *file, struct litmus_test **ret, struct peet_err *err)
{
    struct litmus_parser p = { 0 };
    struct peet_err own;

    lex_init(&p.l, text, size, file, err ? err : &own);
    if (parse_head(&p) < 0 || parse_information(&p) < 0 || parse_initials(&p) < 0 || parse_threads(&p) < 0
        || parse_rows(&p) < 0 || parse_final(&p) < 0) {
        litmus_free(p.t);
        return p.l.err->code;
    }
    *ret = p.t;
    return 0;
}

int litmus_read(const char *path, struct litmus_test **ret, struct peet_err *err)
{
    FILE *in = fopen(path, "r");
    char *text = NULL;
    int r;

    if (!in)
        return err_sys(err, errno, "cannot open %s", path);
    text = mem_alloc(PARSE_MAX_BYTES + 1, 1);
    size_t size = fread(text, 1, PARSE_MAX_BYTES + 1, in);
    if (ferror(in))
        r = err_sys(err, errno, "cannot read %s", path);
    else if (size > PARSE_MAX_BYTES)
        r = err_set(err, PEET_ERR_FORMAT, "%s: more than 1 MiB; expected a litmus test", path);
    else
        r = litmus_parse(text, size, path, ret, err);
    fclose(in);
    free(text);
    return r;
}
