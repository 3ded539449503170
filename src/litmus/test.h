/* SPDX-License-Identifier: MIT */
/* Making a litmus test, for the parsers of its notations. */
#ifndef LITMUS_TEST_H
#define LITMUS_TEST_H

#include "litmus/lex.h"

struct litmus_test *test_new(const char *name, size_t length);

/* The number of a location, of a thread's register, of a part of the final state; it is added if there is none. The location
 * and the register must be within the limits: UINT32_MAX says that they are not. */
uint32_t test_location(struct litmus_test *t, const char *name, size_t length);
uint32_t test_register(struct litmus_test *t, uint32_t thread, const char *canonical);
uint32_t test_observe(struct litmus_test *t, bool is_register, uint32_t thread, uint32_t index);

/* How a register is spelled in outcomes; NULL: it is none. */
const char *test_register_name(const char *word, size_t length);

/* The registers in the order in which the short notation uses them; NULL at the end. */
const char *test_register_at(uint32_t i);

/* Adds threads up to this number of them; false: these are too many. */
bool test_reach_threads(struct litmus_test *t, uint32_t threads);

/* Adds an instruction; false: the thread has too many accesses. */
bool test_add(struct litmus_test *t, uint32_t thread, const struct litmus_instruction *i);

/* A proposition, from the current word on. */
int proposition_parse(struct litmus_lexer *l, struct litmus_test *t, const struct litmus_term **ret);

/* The conjunction or disjunction of two; a NULL one is left out. */
struct litmus_term *proposition_join(struct litmus_test *t, enum litmus_term_kind kind, struct litmus_term *left,
                                     struct litmus_term *right);

/* A location's name in brackets or without, or THREAD:REGISTER, as a part of the final state. */
int proposition_observed(struct litmus_lexer *l, struct litmus_test *t, uint32_t *ret);

/* One equality, LOCATION=NUMBER. */
int proposition_atom(struct litmus_lexer *l, struct litmus_test *t, struct litmus_term **ret);

/* An instruction of x86, from the current word to the `|` or `;` that ends it. has_flags: it may have release and acquire. */
int x86_parse(struct litmus_lexer *l, struct litmus_test *t, uint32_t thread, bool has_flags);

#endif
