/* SPDX-License-Identifier: MIT */
/* What a unit test needs. A test is a function whose name is a sentence; main runs them and ends with check_done():
 *
 *     static void an_empty_cache_misses(void) { CHECK_EQ(cache_misses(&c), 1); }
 *     int main(void) { RUN(an_empty_cache_misses); return check_done(); }
 *
 * A failed check says where and with which values, and the test continues; the checks yield true when they hold, so that
 * `if (!CHECK(p)) return;` ends a test that cannot continue. Checks may be made by several threads at a time. */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define CHECK(condition) check_true((condition) ? true : false, #condition, __FILE__, __LINE__)

/* Equality of numbers by value, whatever their types; of strings by content; of other pointers by address. */
#define CHECK_EQ(a, b) check_equal(CHECK_VALUE(a), CHECK_VALUE(b), #a, #b, __FILE__, __LINE__)

#define RUN(function) check_run(#function, function)

enum { CHECK_SHOWN = 20 }; /* failures of one test that are printed */

static atomic_uint check_failures; /* of the test that runs */
static unsigned check_failed;      /* tests */

static inline bool check_true(bool ok, const char *condition, const char *file, int line)
{
    if (!ok && atomic_fetch_add(&check_failures, 1) < CHECK_SHOWN)
        printf("# %s:%d: does not hold: %s\n", file, line, condition);
    return ok;
}

enum { CHECK_SIGNED, CHECK_UNSIGNED, CHECK_REAL, CHECK_TEXT, CHECK_POINTER };

struct check_value {
    int kind;      /* CHECK_SIGNED … */
    uint64_t bits; /* of an integer, in two's complement */
    double real;
    const void *pointer;
};

static inline struct check_value check_signed(int64_t v)
{
    int kind = v < 0 ? CHECK_SIGNED : CHECK_UNSIGNED;

    return (struct check_value){ .kind = kind, .bits = (uint64_t)v, .real = (double)v };
}

static inline struct check_value check_unsigned(uint64_t v)
{
    return (struct check_value){ .kind = CHECK_UNSIGNED, .bits = v, .real = (double)v };
}

static inline struct check_value check_real(double v)
{
    return (struct check_value){ .kind = CHECK_REAL, .real = v };
}

static inline struct check_value check_text(const char *v)
{
    return (struct check_value){ .kind = CHECK_TEXT, .pointer = v };
}

static inline struct check_value check_pointer(const void *v)
{
    return (struct check_value){ .kind = CHECK_POINTER, .pointer = v };
}

/* The conditional is never evaluated: it promotes bit-fields and small types and turns arrays into pointers. */
/* clang-format off */
#define CHECK_VALUE(x) \
    _Generic(1 ? (x) : (x), \
        int: check_signed, long: check_signed, long long: check_signed, \
        unsigned: check_unsigned, unsigned long: check_unsigned, unsigned long long: check_unsigned, \
        float: check_real, double: check_real, \
        char *: check_text, const char *: check_text, \
        default: check_pointer)(x)
/* clang-format on */

static inline bool check_same(struct check_value a, struct check_value b)
{
    if (a.kind == CHECK_TEXT && b.kind == CHECK_TEXT && a.pointer && b.pointer)
        return strcmp(a.pointer, b.pointer) == 0;
    if (a.kind >= CHECK_TEXT || b.kind >= CHECK_TEXT)
        return a.kind >= CHECK_TEXT && b.kind >= CHECK_TEXT && a.pointer == b.pointer;
    if (a.kind == CHECK_REAL || b.kind == CHECK_REAL)
        return !(a.real < b.real) && !(a.real > b.real) && a.real - a.real <= 0 && b.real - b.real <= 0;
    return a.kind == b.kind && a.bits == b.bits;
}

static inline void check_print(struct check_value v)
{
    if (v.kind == CHECK_SIGNED)
        printf("%" PRId64, (int64_t)v.bits);
    else if (v.kind == CHECK_UNSIGNED)
        v.bits > 0xffff ? printf("%" PRIu64 " (0x%" PRIx64 ")", v.bits, v.bits) : printf("%" PRIu64, v.bits);
    else if (v.kind == CHECK_REAL)
        printf("%.17g", v.real);
    else if (v.kind == CHECK_TEXT && v.pointer)
        printf("\"%s\"", (const char *)v.pointer);
    else if (v.pointer)
        printf("%p", v.pointer);
    else
        printf("NULL");
}

static inline bool check_equal(struct check_value a, struct check_value b, const char *a_text, const char *b_text,
                               const char *file, int line)
{
    bool ok = check_same(a, b);

    if (!ok && atomic_fetch_add(&check_failures, 1) < CHECK_SHOWN) {
        flockfile(stdout);
        printf("# %s:%d: %s is ", file, line, a_text);
        check_print(a);
        printf(", but %s is ", b_text);
        check_print(b);
        printf("\n");
        funlockfile(stdout);
    }
    return ok;
}

static inline void check_name(const char *verdict, const char *name)
{
    printf("%s ", verdict);
    for (; *name; name++)
        putchar(*name == '_' ? ' ' : *name);
}

static inline void check_run(const char *name, void (*test)(void))
{
    atomic_store(&check_failures, 0);
    test();
    unsigned n = atomic_load(&check_failures);
    if (n > CHECK_SHOWN)
        printf("# … and %u more\n", n - CHECK_SHOWN);
    check_failed += n > 0;
    check_name(n ? "not ok" : "ok", name);
    printf("\n");
    fflush(stdout);
}

/* Instead of RUN, where the machine lacks something. */
static inline void check_skip(const char *name, const char *reason)
{
    check_name("skip", name);
    printf(": %s\n", reason);
}

static inline int check_done(void)
{
    return check_failed ? 1 : 0;
}

#endif
