/* SPDX-License-Identifier: MIT */
/* Litmus tests: small parallel programs with a condition on their final state.
 *
 * A test is straight-line code: every register holds a constant or what one load of its thread read. docs/litmus.md has the
 * notations, docs/design/orders.md the exploration. */
#ifndef LITMUS_LITMUS_H
#define LITMUS_LITMUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "peet/err.h"
#include "sim/order/order.h"

enum { LITMUS_MAX_THREADS = 16, LITMUS_MAX_LOCATIONS = 64, LITMUS_MAX_ACCESSES = 32 }; /* accesses: of a thread */

/* A register's value at a place in a thread. */
struct litmus_operand {
    bool is_loaded;   /* the value of a load; else a constant */
    int32_t constant; /* the value, if not is_loaded */
    uint32_t load;    /* number of the load in its thread */
};

/* What an instruction does to memory. */
enum litmus_kind {
    LITMUS_REGISTER, /* only registers change */
    LITMUS_LOAD,
    LITMUS_STORE,
    LITMUS_ATOMIC,
    LITMUS_FENCE,
};

/* What an atomic stores, from what it loaded (old), its value and its other operand. */
#define LITMUS_ATOMICS(X) \
    X(xchg) /* value */ \
    X(add) \
    X(sub) \
    X(and) \
    X(or) \
    X(xor) \
    X(not ) \
    X(neg) \
    X(cmpxchg) /* value if old is `other`, else old */

enum litmus_atomic {
#define X(name) LITMUS_ATOMIC_##name,
    LITMUS_ATOMICS(X)
#undef X
};

/* An instruction of a thread. */
struct litmus_instruction {
    const char *text; /* as it was written */
    enum litmus_kind kind;
    uint32_t location;           /* index in litmus_test.location; of loads, stores and atomics */
    uint32_t load;               /* of loads and atomics: its number in the thread */
    enum litmus_atomic atomic;   /* kind is LITMUS_ATOMIC */
    enum order_fence fence;      /* kind is LITMUS_FENCE */
    uint32_t flags;              /* ORDER_ACQUIRE, ORDER_RELEASE */
    struct litmus_operand value; /* of stores and atomics: operand */
    struct litmus_operand other; /* of cmpxchg: what the old value is compared with */
};

/* A register of a thread: what it holds at the end. */
struct litmus_register {
    const char *name;
    struct litmus_operand value;
};

/* A thread of a test: straight-line code. */
struct litmus_thread {
    struct litmus_instruction *instruction;
    uint32_t instructions, loads; /* loads: with those of atomics */
    struct litmus_register *reg;  /* those that occur in the test */
    uint32_t registers;
};

/* A shared variable of 32 bits. */
struct litmus_location {
    const char *name;
    int32_t initial;
};

/* A part of the final state that the test names. */
struct litmus_observed {
    const char *name; /* "x", "0:EAX" */
    bool is_register; /* else a location */
    uint32_t thread;  /* is_register: index */
    uint32_t index;   /* of the register in its thread, or of the location */
};

/* An operator or a leaf of a proposition. */
enum litmus_term_kind {
    LITMUS_TRUE,
    LITMUS_FALSE,
    LITMUS_EQUAL,
    LITMUS_NOT,
    LITMUS_AND,
    LITMUS_OR,
    LITMUS_IMPLIES,
};

/* A proposition about the final state. */
struct litmus_term {
    enum litmus_term_kind kind;
    uint32_t observed; /* LITMUS_EQUAL: index in litmus_test.observed, whose value is `value` */
    int32_t value;
    struct litmus_term *left, *right; /* operands; NULL: the kind has none */
};

/* What a condition claims of the outcomes. */
enum litmus_quantifier {
    LITMUS_EXISTS,     /* some outcome satisfies the proposition */
    LITMUS_NOT_EXISTS, /* none does */
    LITMUS_FORALL,     /* all do */
};

/* A litmus test. */
struct litmus_test {
    const char *name;
    struct litmus_thread *thread;
    uint32_t threads;
    struct litmus_location *location;
    uint32_t locations;
    struct litmus_observed *observed; /* in the order in which the test names them */
    uint32_t observables;
    enum litmus_quantifier quantifier;
    const struct litmus_term *condition, *filter; /* filter: outcomes without it do not count; or NULL */
    bool has_flags;                               /* some access has release or acquire */
    struct arena arena;                           /* holds names, texts and terms */
};

/* Reads the standard format for X86, and the same with release and acquire under the name PEET. `file` is for messages: "FILE:LINE:
 * expected …, found …". To be freed. */
int litmus_parse(const char *text, size_t size, const char *file, struct litmus_test **ret, struct peet_err *err);
int litmus_read(const char *path, struct litmus_test **ret, struct peet_err *err);

/* Reads the short notation: "Wx1 Ry | Wy1 Rx" and "0:EAX=0 /\ 1:EAX=0". */
int litmus_parse_short(const char *name, const char *program, const char *condition, struct litmus_test **ret,
                       struct peet_err *err);

void litmus_free(struct litmus_test *t);

/* Whether the outcome, a value for each observed, satisfies the proposition. */
bool litmus_satisfies(const struct litmus_term *term, const int32_t *outcome);

/* "exists 0:EAX=0 /\ 1:EAX=0"; to be freed by free(). */
char *litmus_condition_text(const struct litmus_test *t);

/* What an atomic stores. */
int32_t litmus_atomic_result(enum litmus_atomic atomic, int32_t old, int32_t value, int32_t other);

const char *litmus_quantifier_name(enum litmus_quantifier q);

/* The built-in tests: the last one has no name. */
struct litmus_builtin {
    const char *name, *program, *condition; /* in the short notation */
};
extern const struct litmus_builtin litmus_builtins[];

#endif
