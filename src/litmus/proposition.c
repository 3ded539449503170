/* SPDX-License-Identifier: MIT */
/* Propositions about the final state: disjunction binds least, then conjunction, implication, negation, as in herd. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "litmus/test.h"

enum { PROPOSITION_DEPTH = 100 };

static struct litmus_term *term_new(struct litmus_test *t, enum litmus_term_kind kind, struct litmus_term *left,
                                    struct litmus_term *right)
{
    struct litmus_term *term = arena_alloc(&t->arena, sizeof *term);

    if (term)
        *term = (struct litmus_term){ .kind = kind, .left = left, .right = right };
    return term;
}

struct litmus_term *proposition_join(struct litmus_test *t, enum litmus_term_kind kind, struct litmus_term *left,
                                     struct litmus_term *right)
{
    return !left ? right : !right ? left : term_new(t, kind, left, right);
}

static int term_memory(const struct litmus_lexer *l)
{
    return err_set(l->err, PEET_ERR_MEMORY, "%s: no memory for the condition", l->file);
}

/* THREAD:REGISTER, from the number of the thread on. */
static int proposition_register(struct litmus_lexer *l, struct litmus_test *t, uint32_t *ret)
{
    int32_t thread = l->number;
    uint32_t line = l->word_line;

    lex_next(l);
    if (lex_expect(l, ":") < 0)
        return l->err->code;
    const char *name = l->kind == LEX_NAME ? test_register_name(l->word, l->length) : NULL;
    if (!name)
        return lex_expected(l, "a register, EAX to ESP");
    if (thread < 0 || (uint32_t)thread >= t->threads)
        return lex_fail(l, line, "expected one of %u threads, found thread %d", t->threads, thread);
    lex_next(l);
    *ret = test_observe(t, true, (uint32_t)thread, test_register(t, (uint32_t)thread, name));
    return 0;
}

int proposition_observed(struct litmus_lexer *l, struct litmus_test *t, uint32_t *ret)
{
    if (l->kind == LEX_NUMBER)
        return proposition_register(l, t, ret);
    bool in_brackets = lex_accept(l, "[");
    if (l->kind != LEX_NAME)
        return lex_expected(l, "a location or THREAD:REGISTER");
    uint32_t location = test_location(t, l->word, l->length);
    if (location == UINT32_MAX)
        return lex_fail(l, l->word_line, "more than %d locations", LITMUS_MAX_LOCATIONS);
    lex_next(l);
    if (in_brackets && lex_expect(l, "]") < 0)
        return l->err->code;
    *ret = test_observe(t, false, 0, location);
    return 0;
}

int proposition_atom(struct litmus_lexer *l, struct litmus_test *t, struct litmus_term **ret)
{
    struct litmus_term *term = term_new(t, LITMUS_EQUAL, NULL, NULL);

    if (!term)
        return term_memory(l);
    if (proposition_observed(l, t, &term->observed) < 0)
        return l->err->code;
    bool differs = lex_is(l, "!=") || lex_is(l, "<>");
    if (!differs && !lex_is(l, "=") && !lex_is(l, "=="))
        return lex_expected(l, "'='");
    lex_next(l);
    if (lex_number(l, &term->value) < 0)
        return l->err->code;
    *ret = differs ? term_new(t, LITMUS_NOT, term, NULL) : term;
    return *ret ? 0 : term_memory(l);
}

static int proposition_or(struct litmus_lexer *l, struct litmus_test *t, unsigned depth, struct litmus_term **ret);

static int proposition_unary(struct litmus_lexer *l, struct litmus_test *t, unsigned depth, struct litmus_term **ret)
{
    if (depth > PROPOSITION_DEPTH)
        return lex_fail(l, l->word_line, "the condition is nested more than %d deep", PROPOSITION_DEPTH);
    if (lex_is(l, "~") || lex_is_name(l, "not")) {
        struct litmus_term *term;
        lex_next(l);
        if (proposition_unary(l, t, depth + 1, &term) < 0)
            return l->err->code;
        *ret = term_new(t, LITMUS_NOT, term, NULL);
        return *ret ? 0 : term_memory(l);
    }
    if (lex_accept(l, "("))
        return proposition_or(l, t, depth + 1, ret) < 0 ? l->err->code : lex_expect(l, ")");
    if (lex_is_name(l, "true") || lex_is_name(l, "false")) {
        *ret = term_new(t, lex_is_name(l, "true") ? LITMUS_TRUE : LITMUS_FALSE, NULL, NULL);
        lex_next(l);
        return *ret ? 0 : term_memory(l);
    }
    return proposition_atom(l, t, ret);
}

/* The operators, the loosest first. */
static const struct {
    const char *sign;
    enum litmus_term_kind kind;
    bool to_the_right;
} OPERATORS[] = { { "\\/", LITMUS_OR, false }, { "/\\", LITMUS_AND, false }, { "=>", LITMUS_IMPLIES, true } };

static int proposition_binary(struct litmus_lexer *l, struct litmus_test *t, size_t level, unsigned depth,
                              struct litmus_term **ret)
{
    struct litmus_term *left, *right;

    if (level == sizeof OPERATORS / sizeof *OPERATORS)
        return proposition_unary(l, t, depth, ret);
    if (depth > PROPOSITION_DEPTH)
        return lex_fail(l, l->word_line, "the condition is nested more than %d deep", PROPOSITION_DEPTH);
    if (proposition_binary(l, t, level + 1, depth, &left) < 0)
        return l->err->code;
    for (unsigned n = 1; lex_accept(l, OPERATORS[level].sign); n++) {
        bool again = OPERATORS[level].to_the_right;
        if (proposition_binary(l, t, again ? level : level + 1, depth + n, &right) < 0)
            return l->err->code;
        left = term_new(t, OPERATORS[level].kind, left, right);
        if (!left)
            return term_memory(l);
        if (n > PROPOSITION_DEPTH)
            return lex_fail(l, l->word_line, "the condition has more than %d terms side by side", PROPOSITION_DEPTH);
    }
    *ret = left;
    return 0;
}

static int proposition_or(struct litmus_lexer *l, struct litmus_test *t, unsigned depth, struct litmus_term **ret)
{
    return proposition_binary(l, t, 0, depth, ret);
}

int proposition_parse(struct litmus_lexer *l, struct litmus_test *t, const struct litmus_term **ret)
{
    struct litmus_term *term;
    int r = proposition_or(l, t, 0, &term);

    if (r == 0)
        *ret = term;
    return r;
}

bool litmus_satisfies(const struct litmus_term *term, const int32_t *outcome)
{
    switch (term->kind) {
    case LITMUS_TRUE: return true;
    case LITMUS_FALSE: return false;
    case LITMUS_EQUAL: return outcome[term->observed] == term->value;
    case LITMUS_NOT: return !litmus_satisfies(term->left, outcome);
    case LITMUS_AND: return litmus_satisfies(term->left, outcome) && litmus_satisfies(term->right, outcome);
    case LITMUS_OR: return litmus_satisfies(term->left, outcome) || litmus_satisfies(term->right, outcome);
    case LITMUS_IMPLIES: return !litmus_satisfies(term->left, outcome) || litmus_satisfies(term->right, outcome);
    }
    return false;
}

const char *litmus_quantifier_name(enum litmus_quantifier q)
{
    return q == LITMUS_EXISTS ? "exists" : q == LITMUS_NOT_EXISTS ? "~exists" : "forall";
}

/* How strongly a term's operator binds; terms that bind less than their operator are in parentheses, and so is an implication in another
 * term, for people. */
static int term_binding(const struct litmus_term *term)
{
    switch (term->kind) {
    case LITMUS_OR: return 1;
    case LITMUS_AND: return 2;
    case LITMUS_IMPLIES: return 3;
    case LITMUS_NOT: return 4;
    default: return 5;
    }
}

static void term_print(const struct litmus_test *t, const struct litmus_term *term, int binding, FILE *out)
{
    int own = term_binding(term);
    bool in_parentheses = own < binding || (binding && term->kind == LITMUS_IMPLIES);

    if (in_parentheses)
        fputc('(', out);
    if (term->kind == LITMUS_TRUE || term->kind == LITMUS_FALSE) {
        fputs(term->kind == LITMUS_TRUE ? "true" : "false", out);
    } else if (term->kind == LITMUS_EQUAL) {
        fprintf(out, "%s=%d", t->observed[term->observed].name, term->value);
    } else if (term->kind == LITMUS_NOT) {
        fputc('~', out);
        term_print(t, term->left, own, out);
    } else {
        bool to_the_right = term->kind == LITMUS_IMPLIES;
        term_print(t, term->left, own + to_the_right, out);
        fputs(term->kind == LITMUS_OR ? " \\/ " : term->kind == LITMUS_AND ? " /\\ " : " => ", out);
        term_print(t, term->right, own + !to_the_right, out);
    }
    if (in_parentheses)
        fputc(')', out);
}

char *litmus_condition_text(const struct litmus_test *t)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return mem_string("");
    fprintf(out, "%s ", litmus_quantifier_name(t->quantifier));
    term_print(t, t->condition, 0, out);
    if (t->filter) {
        fputs(" filter ", out);
        term_print(t, t->filter, 0, out);
    }
    fclose(out);
    return text;
}
