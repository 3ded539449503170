/* SPDX-License-Identifier: MIT */
/* An error in a text is reported with its line, what was found and what was expected. */
#include <stdlib.h>

#include "tests/synthetic.h"
#include "tests/unit/text.h"

#define HEAD "peet text 1\nthread 1 process 0 parent 0 ordinal 0 name \"\"\n"
#define BLOCK HEAD "block b1 slots 1\n  0x1000 4 plain, load 8 [s0]\n"

/* clang-format off */
static const struct { const char *text, *error; } MISTAKES[] = {
    { "", "in:1: the end of the line found, 'peet text 1' expected" },
    { "hello\n", "in:1: 'hello' found, 'peet text 1' expected" },
    { "peet text 2\n", "in:1: 'peet' found, 'peet text 1' expected" },
    { "peet text 1\n", "in:2: the end of the file found, 'end' expected" },
    { HEAD "1 0 mutex_lock 5\n", "'end' expected" },
    { HEAD "end\nend\n", "in:4: a line found behind 'end'" },
    { HEAD "end now\n", "in:3: 'now' found, the end of the line expected" },
    { HEAD "zebra\n", "in:3: 'zebra' found, a definition, a thread's number or 'end' expected" },
    { HEAD "1 0 b7 1 2\n", "in:3: b7 found, a block that is defined expected" },
    { HEAD "1 0 l7 1 2\n", "in:3: l7 found, a loop that is defined expected" },
    { HEAD "2 0 mutex_lock 5\n", "in:3: thread 2 found, a thread that is defined expected" },
    { HEAD "1 0 mutex_lokc 5\n", "in:3: 'mutex_lokc' found, a block, a loop or the name of an event expected" },
    { HEAD "1 0 mutex_lock\n", "in:3: the end of the line found, lock expected" },
    { HEAD "1 0 mutex_lock 1 2\n", "in:3: '2' found, the end of the line expected" },
    { HEAD "1 0 mutex_lock 18446744073709551616\n", "in:3: '18446744073709551616' found, lock expected" },
    { HEAD "1 0 set_register 16 5\n", "in:3: thread 1: set_register: there is no register 16" },
    { BLOCK "block b2\n  0x1000 4 plain, load 8*s0 [0]\n1 0 b2 0x20000000\n", "in:7: thread 1: block" },
    { HEAD "1 0 region_begin 5\n", "in:3: '5' found, a string in quotes expected" },
    { HEAD "1 0 region_begin \"abc\n", "in:3: the end of the line found, '\"' at the end of a string expected" },
    { HEAD "1 0 region_begin \"a\\qc\"\n", "in:3: '\\q' found in a string" },
    { HEAD "1 0 region_begin \"a\\x00c\"\n", "found in a string" },
    { HEAD "1 zero mutex_lock 5\n", "in:3: 'zero' found, a position or '-' expected" },
    { HEAD "thread 1 process 0 parent 0 ordinal 0 name \"\"\n", "in:3: thread 1 found again, it is defined in line 2" },
    { HEAD "thread 4294967295 process 0 parent 0 ordinal 0 name \"\"\n",
      "a thread's number, at most 4294967294, expected" },
    { HEAD "process 1 parent 0 program \"\" command \"\"\nprocess 1 parent 0 program \"\" command \"\"\n",
      "in:4: process 1 found again, it is defined in line 3" },
    { HEAD "process 1 program \"\" command \"\"\n", "in:3: 'program' found, 'parent' expected" },
    { HEAD "meta \"a\"\n", "in:3: the end of the line found, a value in quotes expected" },
    { HEAD "range process 1 0x1000 0x1000 rwz name \"\"\n", "in:3: 'rwz' found, a protection like rw- expected" },
    { HEAD "segment 1 2 offset 0 r--\n", "in:3: 'segment' found, a definition" },
    { HEAD "module process 1 path \"\" build \"\" bias 0\n symbol 1 2 text \"a\"\n",
      "in:4: 'text' found, 'code' or 'data' expected" },
    { HEAD "module process 1 path \"\" build \"\" bias 0\n symbol 2 2 code \"a\"\n symbol 1 2 code \"b\"\nend\n",
      "in:3: module" },
    { BLOCK "1 0 b1\n", "in:5: 0 numbers found, 1 expected behind b1" },
    { BLOCK "1 0 b1 1 2\n", "in:5: '2' found, the end of the line expected" },
    { BLOCK "1 0 b1 0x\n", "in:5: '0x' found, a number expected" },
    { BLOCK "block b1 slots 0\n", "in:5: b1 found again, it is defined in line 3" },
    { BLOCK "1 0 b1 1\n1 0 b1 1\n", "in:6: position 0 found, 1 or more expected" },
    { BLOCK "loop l1 values 0 counts 0\n  repeat 3\n    b9\n", "in:7: b9 found, a block that is defined expected" },
    { BLOCK "loop l1 values 0 counts 0\n  repeat 3\n    b1, s0 = 0\nend\n",
      "in:5: loop l1: 'done' is missing 1 times" },
    { BLOCK "loop l1 values 0 counts 0\n  done\n", "in:6: 'done' found without a 'repeat'" },
    { BLOCK "loop l1 values 0 counts 0\n  b1, s0 = 0\n", "in:6: a loop begins with one 'repeat'" },
    { BLOCK "loop l1 values 0 counts 0\n  repeat 3\n  done\nend\n", "in:5: loop" },
    { BLOCK "loop l1 values 0 counts 0\n  repeat c5\n    b1, s0 = 0\n  done\nend\n", "in:5: loop" },
    { BLOCK "loop l1 values 1 counts 0\n  repeat 1, step v0 = v0, enter v0 = v0\n", "'enter' found behind 'step'" },
    { BLOCK "loop l1 values 99 counts 0\n", "in:5: '99' found, a number behind 'values', at most 64, expected" },
    { BLOCK "loop l1 values 0 counts 1\n  repeat c0\n    b1, s0 = 0\n  done\n1 0 l1 18446744073709551615\n",
      "more than 2^63 instructions" },
    { HEAD "block b1 slots 65\n", "in:3: '65' found, the number of slots, at most 64, expected" },
    { HEAD "block b1 slots 1\n  0x1000 4 plain, load 8 [s1]\nend\n",
      "in:3: block b1 uses s1, but says that it has 1 slots" },
    { HEAD "block b1\nend\n", "in:3: block" },
    { HEAD "block b1\n  0x1000 4 plane\n", "in:4: 'plane' found, an instruction's class" },
    { HEAD "block b1\n  0x1000 70000 plain\n", "in:4: '70000' found, an instruction's length, at most 65535, expected" },
    { HEAD "block b1\n  0x1000 4 plain load 8 [s0]\n",
      "in:4: 'load' found, a flag, '->', ',' or the end of the line expected" },
    { HEAD "block b1\n  0x1000 4 plain, lode 8 [s0]\n",
      "in:4: 'lode' found, load, store, update or prefetch expected" },
    { HEAD "block b1\n  0x1000 4 plain, load 16777216 [s0]\n", "a size in bytes, at most 16777215, expected" },
    { HEAD "block b1\n  0x1000 4 plain, load 8 s0\n", "in:4: 's0' found, '[' expected" },
    { HEAD "block b1\n  0x1000 4 plain, load 8 [s64]\n", "in:4: s64 found, s0 to s63 expected" },
    { HEAD "block b1\n  0x1000 4 plain, load 8 [s0*3]\n", "in:4: the factor 3 found, a power of two expected" },
    { HEAD "block b1\n  0x1000 4 plain, load 8 [s0+s1+s2]\n", "in:4: a third source found in a sum" },
    { HEAD "block b1\n  0x1000 4 plain, load 8 [s0-s1]\n", "in:4: 's1]' found, a number expected" },
    { HEAD "block b1\n  0x1000 4 plain, load 8 [s0] if s1.64\n", "a bit's number, at most 63, expected" },
    { HEAD "block b1\n  0x1000 4 plain, load 8 [s0] value r1\nend\n", "in:3: block" },
    { HEAD "block b1\n  t1 = add s0 1\n", "in:4: t1 found, t0 expected" },
    { HEAD "block b1\n  t0 = frob s0 1\n", "in:4: 'frob' found, an operation" },
    { HEAD "block b1\n  t0 = add s0 1 width 5\n  0x1000 4 plain\nend\n", "in:3: block" },
    { HEAD "block b1\n  r16 = s0\n", "in:4: r16 found, r0 to r15 expected" },
    { HEAD "  0x1000 4 plain\n", "in:3: '0x1000' found, a definition" },
};
/* clang-format on */

static void mistakes_are_told_with_line_and_what_was_expected(void)
{
    for (size_t i = 0; i < sizeof MISTAKES / sizeof *MISTAKES; i++) {
        struct peet_err err = { 0 };
        int r = import_bytes(MISTAKES[i].text, strlen(MISTAKES[i].text), "a", 0, &err);
        if (!CHECK(r == PEET_ERR_FORMAT || r == PEET_ERR_LIMIT) || !CHECK(strstr(err.text, MISTAKES[i].error)))
            printf("# text:\n%s\n# error: %s\n# expected: %s\n", MISTAKES[i].text, r < 0 ? err.text : "none",
                   MISTAKES[i].error);
    }
}

static void lines_without_end_and_NULs_are_mistakes(void)
{
    size_t n = 3 << 20;
    char *text = malloc(n);
    struct peet_err err;

    memset(text, 'x', n);
    memcpy(text, "peet text 1\n", 12);
    CHECK_EQ(import_bytes(text, n, "a", 0, &err), PEET_ERR_FORMAT);
    CHECK_EQ(err.text, "in:2: a line of more than 1048576 bytes found");
    text[20] = '\0';
    CHECK_EQ(import_bytes(text, n, "a", 0, &err), PEET_ERR_FORMAT);
    CHECK_EQ(err.text, "in:2: a NUL byte found, text expected");
    free(text);
}

static void text_with_random_mistakes_is_read_or_refused(void)
{
    size_t n = sizeof EVERYTHING - 1;
    char *text = malloc(n + 1);
    uint64_t random = 1;
    struct peet_err err;

    for (int i = 0; i < 5000; i++) {
        memcpy(text, EVERYTHING, n + 1);
        for (unsigned k = 1 + synthetic_below(&random, 3); k > 0; k--) {
            size_t at = synthetic_below(&random, (unsigned)n), from = synthetic_below(&random, (unsigned)n);
            size_t size = synthetic_below(&random, 30);
            size = size > n - at ? n - at : size;
            size = size > n - from ? n - from : size;
            if (synthetic_below(&random, 2))
                text[at] = (char)synthetic_below(&random, 128);
            else
                memmove(text + at, text + from, size); /* words and lines in the wrong place */
        }
        err.text[0] = '\0';
        if (import_bytes(text, n, "a", 0, &err) < 0)
            CHECK(strncmp(err.text, "in:", 3) == 0);
        else
            free(dump("a", &COMPACT, NULL)); /* expanded, a loop could become a very long text */
    }
    free(text);
}

int main(void)
{
    if (!begin())
        return 1;
    RUN(mistakes_are_told_with_line_and_what_was_expected);
    RUN(lines_without_end_and_NULs_are_mistakes);
    RUN(text_with_random_mistakes_is_read_or_refused);
    return end();
}
