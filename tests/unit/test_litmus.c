/* SPDX-License-Identifier: MIT */
/* Litmus tests: what each model allows, how files are read, and what is said of those that are wrong. */
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "litmus/batch.h"
#include "litmus/explore.h"

/* clang-format off */
/* By an axiomatic checker (herd), for sc, tso, pso, rmo: whether the condition's outcome is allowed, and how many outcomes there are. */
static const struct {
    const char *name;
    struct { bool allowed; size_t outcomes; } by_order[4];
} EXPECTED[] = {
    { "CoRR", { { false, 3 }, { false, 3 }, { false, 3 }, { false, 3 } } },
    { "CoWW", { { false, 1 }, { false, 1 }, { false, 1 }, { false, 1 } } },
    { "CoWR", { { false, 3 }, { false, 3 }, { false, 3 }, { false, 3 } } },
    { "CoRW1", { { false, 1 }, { false, 1 }, { false, 1 }, { false, 1 } } },
    { "CoRW2", { { false, 3 }, { false, 3 }, { false, 3 }, { false, 3 } } },
    { "CoIRIW", { { false, 47 }, { false, 47 }, { false, 47 }, { false, 47 } } },
    { "n5(CoSB)", { { false, 3 }, { false, 3 }, { false, 3 }, { false, 3 } } },
    { "n4b(CoLB)", { { false, 3 }, { false, 3 }, { false, 3 }, { false, 3 } } },
    { "SB", { { false, 3 }, { true, 4 }, { true, 4 }, { true, 4 } } },
    { "SB+F+po", { { false, 3 }, { true, 4 }, { true, 4 }, { true, 4 } } },
    { "SB+FF", { { false, 3 }, { false, 3 }, { false, 3 }, { false, 3 } } },
    { "SB+xchgs", { { false, 3 }, { false, 3 }, { true, 4 }, { true, 4 } } },
    { "SB+rfi", { { false, 3 }, { true, 4 }, { true, 4 }, { true, 4 } } },
    { "MP", { { false, 3 }, { false, 3 }, { true, 4 }, { true, 4 } } },
    { "MP+SF+po", { { false, 3 }, { false, 3 }, { false, 3 }, { true, 4 } } },
    { "MP+po+LF", { { false, 3 }, { false, 3 }, { true, 4 }, { true, 4 } } },
    { "MP+SF+LF", { { false, 3 }, { false, 3 }, { false, 3 }, { false, 3 } } },
    { "MP+FF", { { false, 3 }, { false, 3 }, { false, 3 }, { false, 3 } } },
    { "LB", { { false, 3 }, { false, 3 }, { false, 3 }, { true, 4 } } },
    { "LB+FF", { { false, 3 }, { false, 3 }, { false, 3 }, { false, 3 } } },
    { "S", { { false, 3 }, { false, 3 }, { true, 4 }, { true, 4 } } },
    { "S+SF+po", { { false, 3 }, { false, 3 }, { false, 3 }, { true, 4 } } },
    { "S+FF", { { false, 3 }, { false, 3 }, { false, 3 }, { false, 3 } } },
    { "R", { { false, 3 }, { true, 4 }, { true, 4 }, { true, 4 } } },
    { "R+po+F", { { false, 3 }, { false, 3 }, { true, 4 }, { true, 4 } } },
    { "R+SF+F", { { false, 3 }, { false, 3 }, { false, 3 }, { false, 3 } } },
    { "R+FF", { { false, 3 }, { false, 3 }, { false, 3 }, { false, 3 } } },
    { "2+2W", { { false, 3 }, { false, 3 }, { true, 4 }, { true, 4 } } },
    { "2+2W+SFSF", { { false, 3 }, { false, 3 }, { false, 3 }, { false, 3 } } },
    { "WRC", { { false, 7 }, { false, 7 }, { false, 7 }, { true, 8 } } },
    { "WRC+FF", { { false, 7 }, { false, 7 }, { false, 7 }, { false, 7 } } },
    { "WWC", { { false, 9 }, { false, 9 }, { false, 9 }, { true, 12 } } },
    { "RWC", { { false, 7 }, { true, 8 }, { true, 8 }, { true, 8 } } },
    { "RWC+po+F", { { false, 7 }, { false, 7 }, { false, 7 }, { true, 8 } } },
    { "RWC+FF", { { false, 7 }, { false, 7 }, { false, 7 }, { false, 7 } } },
    { "IRIW", { { false, 15 }, { false, 15 }, { false, 15 }, { true, 16 } } },
    { "IRIW+FF", { { false, 15 }, { false, 15 }, { false, 15 }, { false, 15 } } },
    { "n6", { { false, 4 }, { true, 5 }, { true, 6 }, { true, 6 } } },
    { "n7", { { false, 7 }, { true, 8 }, { true, 8 }, { true, 8 } } },
    { "3.SB", { { false, 7 }, { true, 8 }, { true, 8 }, { true, 8 } } },
    { "ISA2", { { false, 7 }, { false, 7 }, { true, 8 }, { true, 8 } } },
    { "Z6.3", { { false, 7 }, { false, 7 }, { true, 8 }, { true, 8 } } },
    { "W+RWC", { { false, 7 }, { true, 8 }, { true, 8 }, { true, 8 } } },
};

/* Tests with release and acquire: whether rcsc and rcpc allow the outcome. */
static const struct {
    const char *name;
    bool rcsc, rcpc;
} EXPECTED_RELEASE[] = {
    { "MP+rel+acq", false, false },
    { "MP+rel+po", true, true },
    { "MP+po+acq", true, true },
    { "S+rel+acq", false, false },
    { "ISA2+rel+acq-rel+acq", false, false },
    { "WRC+acq-rel+acq", false, false },
    { "LB+acqs", false, false },
    { "LB+rels", false, false },
    { "LB+acq-rels", false, false },
    { "IRIW+acqs", false, false },
    { "2+2W+rels", false, false },
    { "SB+rel-acqs", false, true },
    { "SB+rels", true, true },
    { "R+rel+rel-acq", false, true },
    { "SB+xchg-acqrels", false, true },
};
/* clang-format on */

enum {
    EXPECTED_COUNT = sizeof EXPECTED / sizeof *EXPECTED,
    RELEASE_COUNT = sizeof EXPECTED_RELEASE / sizeof *EXPECTED_RELEASE
};

static struct litmus_test *builtin_test(const char *name)
{
    struct litmus_test *t = NULL;
    struct peet_err err;

    for (const struct litmus_builtin *b = litmus_builtins; b->name; b++)
        if (strcmp(b->name, name) == 0)
            CHECK_EQ(litmus_parse_short(b->name, b->program, b->condition, &t, &err), 0);
    CHECK(t != NULL);
    return t;
}

static void check_outcomes(const char *name, const struct order_model *order, bool allowed, size_t outcomes)
{
    struct litmus_test *t = builtin_test(name);
    struct litmus_outcomes o;
    struct peet_err err;

    if (!t || !CHECK_EQ(litmus_explore(t, &(struct explore_config){ .order = order }, &o, &err), 0))
        return;
    bool ok = CHECK_EQ(o.matching > 0, allowed);
    if (outcomes)
        ok &= CHECK_EQ(o.count, outcomes);
    if (!ok)
        printf("# %s under %s\n", name, order->name);
    CHECK_EQ(o.steps > 0, allowed);
    litmus_outcomes_release(&o);
    litmus_free(t);
}

static void the_four_models_allow_what_the_axioms_do(void)
{
    static const struct order_model *const ORDERS[] = { &order_sc, &order_tso, &order_pso, &order_rmo };

    for (size_t i = 0; i < EXPECTED_COUNT; i++)
        for (size_t k = 0; k < 4; k++)
            check_outcomes(EXPECTED[i].name, ORDERS[k], EXPECTED[i].by_order[k].allowed,
                           EXPECTED[i].by_order[k].outcomes);
}

static void release_and_acquire_forbid_what_they_should(void)
{
    for (size_t i = 0; i < RELEASE_COUNT; i++) {
        check_outcomes(EXPECTED_RELEASE[i].name, &order_rcsc, EXPECTED_RELEASE[i].rcsc, 0);
        check_outcomes(EXPECTED_RELEASE[i].name, &order_rcpc, EXPECTED_RELEASE[i].rcpc, 0);
    }
}

static void every_builtin_test_has_an_expectation(void)
{
    for (const struct litmus_builtin *b = litmus_builtins; b->name; b++) {
        bool known = false;
        for (size_t i = 0; i < EXPECTED_COUNT; i++)
            known |= strcmp(EXPECTED[i].name, b->name) == 0;
        for (size_t i = 0; i < RELEASE_COUNT; i++)
            known |= strcmp(EXPECTED_RELEASE[i].name, b->name) == 0;
        if (!CHECK(known))
            printf("# %s\n", b->name);
    }
}

/* ---- the standard format ---- */

static struct litmus_test *parsed(const char *text)
{
    struct litmus_test *t = NULL;
    struct peet_err err;

    if (!CHECK_EQ(litmus_parse(text, strlen(text), "file", &t, &err), 0))
        printf("# %s\n", err.text);
    return t;
}

/* "0:EAX=0;x=1; 0:EAX=1;x=1;": all outcomes under a model, in order. */
static void check_final(const char *text, const struct order_model *order, const char *expected)
{
    struct litmus_test *t = parsed(text);
    struct litmus_outcomes o;
    struct peet_err err;
    char found[1000] = "";

    if (!t || !CHECK_EQ(litmus_explore(t, &(struct explore_config){ .order = order }, &o, &err), 0))
        return;
    for (size_t i = 0, n = 0; i < o.count; i++) {
        n += (size_t)snprintf(found + n, sizeof found - n, "%s", i ? " " : "");
        for (uint32_t k = 0; k < t->observables; k++)
            n += (size_t)snprintf(found + n, sizeof found - n, "%s=%d;", t->observed[k].name,
                                  o.value[i * t->observables + k]);
    }
    CHECK_EQ((const char *)found, expected);
    litmus_outcomes_release(&o);
    litmus_free(t);
}

static void a_file_has_all_that_the_format_has(void)
{
    struct litmus_test *t = parsed("(* a comment (* in a comment *) *)\n"
                                   "X86 \"SB in quotes\"\n"
                                   "\"Fre PodWR\n Fre PodWR\"\n"
                                   "Cycle=Fre PodWR Fre PodWR\n"
                                   "Prefetch=0:x=F,0:y=T\n"
                                   "{ x=0; int y=-3; [z]=0x10; uint32_t 1:EBX=4; ; w; }\n"
                                   " P0          | P1           ;\n"
                                   " MOV [x],$1  | mov (y), ebx ; (* lower case *)\n"
                                   "             | MFENCE       ;\n"
                                   " MOVL EAX,[y]| MOV EAX,[x]  ;\n"
                                   "locations [x; 1:EBX; z int;]\n"
                                   "filter (not x=9)\n"
                                   "exists (0:EAX=0 /\\ ~(1:EAX=0 \\/ y<>4) => z==0x10);\n"
                                   "with tso: exists; sc: ~exists;\n");
    if (!t)
        return;
    CHECK_EQ(t->name, "SB in quotes");
    CHECK_EQ(t->threads, 2);
    CHECK_EQ(t->thread[0].instructions, 2);
    CHECK_EQ(t->thread[1].instructions, 3);
    CHECK_EQ(t->thread[1].instruction[0].text, "mov (y), ebx");
    CHECK_EQ(t->locations, 4);
    CHECK_EQ(t->location[1].initial, -3);
    CHECK_EQ(t->location[2].initial, 16);
    CHECK_EQ(t->observables, 6);
    CHECK_EQ(t->observed[1].name, "1:EBX");
    CHECK(t->quantifier == LITMUS_EXISTS);
    char *condition = litmus_condition_text(t);
    CHECK_EQ((const char *)condition, "exists 0:EAX=0 /\\ (~(1:EAX=0 \\/ ~y=4) => z=16) filter ~x=9");
    free(condition);
    litmus_free(t);
}

#define HEAD "X86 t\n{ }\n P0 ;\n"
#define TWO "X86 t\n{ x=5; 0:EBX=3; }\n P0 | P1 ;\n"

static void instructions_do_what_x86_does(void)
{
    check_final(HEAD "MOV [x],$7; MOV EAX,[x]; MOV EBX,EAX; MOV [y],EBX; exists (y=0 /\\ 0:EAX=0)", &order_sc,
                "y=7;0:EAX=7;");
    check_final(TWO "XCHG [x],EBX | ; exists (x=0 /\\ 0:EBX=0)", &order_tso, "x=3;0:EBX=5;");
    check_final(TWO "XCHG EBX,[x] | ; exists (x=0 /\\ 0:EBX=0)", &order_rmo, "x=3;0:EBX=5;");
    check_final(TWO "MOV EAX,$9 | ; XCHG EAX,EBX | ; exists (0:EAX=0 /\\ 0:EBX=0)", &order_sc, "0:EAX=3;0:EBX=9;");
    check_final(TWO "LOCK XADD [x],EBX | ; exists (x=0 /\\ 0:EBX=0)", &order_pso, "x=8;0:EBX=5;");
    check_final(TWO "LOCK CMPXCHG [x],EBX | ; exists (x=0 /\\ 0:EAX=0)", &order_rmo, "x=5;0:EAX=5;");
    check_final(TWO "MOV EAX,$5 | ; LOCK CMPXCHG [x],EBX | ; exists (x=0 /\\ 0:EAX=0)", &order_rmo, "x=3;0:EAX=5;");
    check_final(TWO "LOCK ADD [x],$2 | LOCK SUB [x],$4 ; exists (x=0)", &order_rmo, "x=3;");
    check_final(TWO "LOCK INC [x] | LOCK DEC [y] ; exists (x=0 /\\ y=0)", &order_tso, "x=6;y=-1;");
    check_final(TWO "LOCK OR [x],$8 | ; LOCK AND [x],$12 | ; LOCK XOR [x],$1 | ; exists (x=0)", &order_pso, "x=13;");
    check_final(TWO "LOCK NOT [x] | ; exists (x=0)", &order_sc, "x=-6;");
    check_final(TWO "LOCK NEG [x] | ; lock xchg [x],ebx | ; exists (x=0 /\\ 0:EBX=0)", &order_sc, "x=3;0:EBX=-5;");
    check_final(HEAD "MOV [x],$-2147483648; LOCK SUB [x],$1; exists (x=0)", &order_sc, "x=2147483647;");
    check_final(HEAD "MOV [x],$0xffffffff; exists (x=0)", &order_sc, "x=-1;");
}

static void no_increment_is_lost(void)
{
    for (size_t i = 0; memory_orders[i]; i++)
        check_final(
            "X86 t\n{ }\n P0 | P1 | P2 ;\n LOCK INC [x] | LOCK INC [x] | LOCK XADD [x],EAX ;\n LOCK INC [x] | MOV [y],$1 | "
            "LOCK INC [x];\n exists (x=5)",
            memory_orders[i], "x=4;");
}

static void a_value_does_not_come_from_nowhere(void)
{
    const char *text =
        "X86 LB+datas\n{ }\n P0 | P1 ;\n MOV EAX,[x] | MOV EAX,[y] ;\n MOV [y],EAX | MOV [x],EAX ;\nexists (0:EAX=1)";

    for (size_t i = 0; memory_orders[i]; i++)
        check_final(text, memory_orders[i], "0:EAX=0;");
}

static void quantifiers_and_filters_count_outcomes(void)
{
    static const struct {
        const char *condition;
        enum litmus_quantifier quantifier;
        size_t count, matching;
        bool holds;
    } CASES[] = {
        { "exists (0:EAX=0)", LITMUS_EXISTS, 2, 1, true },
        { "exists (0:EAX=2)", LITMUS_EXISTS, 2, 0, false },
        { "~exists (0:EAX=2)", LITMUS_NOT_EXISTS, 2, 0, true },
        { "not exists (0:EAX=1)", LITMUS_NOT_EXISTS, 2, 1, false },
        { "~ exists 0:EAX=1", LITMUS_NOT_EXISTS, 2, 1, false },
        { "forall (0:EAX=0 \\/ 0:EAX=1)", LITMUS_FORALL, 2, 2, true },
        { "forall (0:EAX=0)", LITMUS_FORALL, 2, 1, false },
        { "filter 0:EAX=0 forall (0:EAX=0)", LITMUS_FORALL, 1, 1, true },
        { "final (true)", LITMUS_EXISTS, 1, 1, true },
        { "(0:EAX=0 /\\ false)", LITMUS_EXISTS, 2, 0, false },
        { "observed 0:EAX=1; x=1; and 0:EAX=0; x=1;", LITMUS_EXISTS, 2, 2, true },
        { "locations [0:EAX; x;]", LITMUS_FORALL, 2, 2, true },
        { "", LITMUS_FORALL, 1, 1, true },
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char text[300];
        struct litmus_outcomes o;
        struct peet_err err;
        snprintf(text, sizeof text, "X86 t\n{ }\n P0 | P1 ;\n MOV EAX,[x] | MOV [x],$1 ;\n%s\n", CASES[i].condition);
        struct litmus_test *t = parsed(text);
        if (!t || !CHECK_EQ(litmus_explore(t, &(struct explore_config){ .order = &order_tso }, &o, &err), 0))
            return;
        bool ok = CHECK_EQ(t->quantifier, CASES[i].quantifier);
        ok &= CHECK_EQ(o.count, CASES[i].count);
        ok &= CHECK_EQ(o.matching, CASES[i].matching);
        ok &= CHECK_EQ(litmus_holds(t, &o), CASES[i].holds);
        if (!ok)
            printf("# %s\n", CASES[i].condition);
        litmus_outcomes_release(&o);
        litmus_free(t);
    }
}

static void a_mistake_has_its_line_and_what_was_expected(void)
{
    static const struct {
        const char *text, *message;
    } MISTAKES[] = {
        { "", "file:1: expected X86 or PEET, and the test's name, found the end of the text" },
        { "AArch64 SB\n{}", "file:1: expected X86 or PEET, and the test's name, found 'AArch64'" },
        { "\n X86 \n{}", "file:2: expected the test's name after the architecture, found the end of the line" },
        { "X86 t\n(* open",
          "file:2: expected '{' and the initial state, or KEY=VALUE, found a comment without an end" },
        { "X86 t\n\"open", "file:2: expected '{' and the initial state, or KEY=VALUE, found a string without an end" },
        { "X86 t\nCycle Fre\n{}", "file:2: expected '=' of KEY=VALUE, found 'Fre'" },
        { "X86 t\n{ x=y; }", "file:2: expected a number, found 'y'" },
        { "X86 t\n{ x=1 y=2; }", "file:2: expected ';' or '}' after a part of the initial state, found 'y'" },
        { "X86 t\n{ x=4294967296; }", "file:2: expected a number, found a number of more than 32 bits" },
        { "X86 t\n{ 0:R1=1; }", "file:2: expected THREAD:REGISTER, with EAX to ESP, found 'R1'" },
        { "X86 t\n{ 16:EAX=1; }", "file:2: expected a thread from 0 to 15, found 16" },
        { "X86 t\n{ 2:EAX=1; }\n P0 | P1 ;", "file:3: expected 3 threads, as in the initial state, found 2" },
        { "X86 t\n{}\n P1 ;", "file:3: expected P0, found 'P1'" },
        { "X86 t\n{}\n P0 | P2 ;", "file:3: expected P1, found 'P2'" },
        { HEAD "MOV [x],$1 | MOV [y],$1 ;", "file:4: expected an instruction for each of 1 threads, found more" },
        { HEAD "MOV [x],$1 | ;", "file:4: expected 1 columns, found 2" },
        { HEAD "MOV [x] $1 ;", "file:4: expected ',', found '$'" },
        { HEAD "MOV [x,$1 ;", "file:4: expected ']', found ','" },
        { HEAD "MOV [x],[y] ;", "file:4: expected MOV to or from a register, found 'MOV [x],[y]'" },
        { HEAD "XCHG [x],$1 ;", "file:4: expected XCHG with a register, found 'XCHG [x],$1'" },
        { HEAD "MOV [EAX],$1 ;", "file:4: addresses in registers are not supported, found 'EAX'" },
        { HEAD "MOV EAX,\n[x] \nMOV ;", "file:6: expected '|' or ';' after an instruction, found 'MOV'" },
        { HEAD "LOCK XADD [x],$1 ;",
          "file:4: expected LOCK XADD with a location and a register, found 'LOCK XADD [x],$1'" },
        { HEAD "LOCK INC EAX ;", "file:4: expected LOCK INC with a location, found 'LOCK INC EAX'" },
        { HEAD "MOV.ACQ EAX,[x] ;",
          "file:4: acquire and release are for tests that begin with PEET, found 'MOV.ACQ EAX,[x]'" },
        { "PEET t\n{}\n P0 ;\n MOV.REL EAX,[x] ;",
          "file:4: only loads acquire and only stores release, found 'MOV.REL EAX,[x]'" },
        { HEAD "MOV [x],$1 ;\nexists (1:EAX=0)", "file:5: expected one of 1 threads, found thread 1" },
        { HEAD "MOV [x],$1 ;\nexists (0:RAX=0)", "file:5: expected a register, EAX to ESP, found 'RAX'" },
        { HEAD "MOV [x],$1 ;\nexists (x=0", "file:5: expected ')', found the end of the text" },
        { HEAD "MOV [x],$1 ;\nexists (x=0) /\\",
          "file:5: expected a location or THREAD:REGISTER, found the end of the text" },
        { HEAD "MOV [x],$1 ;\nexists (x=0) x", "file:5: expected the end of the test, found 'x'" },
        { HEAD "MOV [x],$1 ;\n~forall (x=0)", "file:5: expected exists, found 'forall'" },
        { HEAD "MOV [x],$1 ;\nlocations x", "file:5: expected '[', found 'x'" },
    };

    for (size_t i = 0; i < sizeof MISTAKES / sizeof *MISTAKES; i++) {
        struct litmus_test *t = NULL;
        struct peet_err err = { 0 };
        CHECK_EQ(litmus_parse(MISTAKES[i].text, strlen(MISTAKES[i].text), "file", &t, &err), PEET_ERR_FORMAT);
        CHECK_EQ((const char *)err.text, MISTAKES[i].message);
        CHECK_EQ(t, NULL);
    }
}

static void an_instruction_that_is_not_supported_is_named(void)
{
    static const char *const INSTRUCTIONS[] = {
        "CMP EAX,$1",        "JNE L0",      "INC [x]",       "ADD EAX,$1", "MOVQ [x],$1", "LOCK MOV [x],$1",
        "LOCK XCHG EAX,EBX", "CLFLUSH [x]", "MOV.SC [x],$1", "NOP"
    };

    for (size_t i = 0; i < sizeof INSTRUCTIONS / sizeof *INSTRUCTIONS; i++) {
        struct litmus_test *t = NULL;
        struct peet_err err;
        char text[100], expected[100];
        snprintf(text, sizeof text, HEAD "MFENCE ;\n%s ;\nexists (x=0)", INSTRUCTIONS[i]);
        snprintf(expected, sizeof expected, "file:5: the instruction '%s' is not supported", INSTRUCTIONS[i]);
        CHECK_EQ(litmus_parse(text, strlen(text), "file", &t, &err), PEET_ERR_FORMAT);
        err.text[strlen(expected)] = '\0';
        CHECK_EQ((const char *)err.text, (const char *)expected);
    }
}

static void every_beginning_of_a_file_is_read_or_refused(void)
{
    static const char TEXT[] =
        "PEET t\n\"doc\" K=V\n{ int x=-1; 1:EAX=0x2; [y]=3; }\n P0 | P1 ;\n LOCK XADD.ACQREL [x],EAX | MOV.REL [y],$1 ;\n"
        "locations [x; 0:EAX;]\nfilter ~x=1 exists (x=0 \\/ (0:EAX=1 => not y=2) /\\ true)\nwith a: exists;";
    size_t accepted = 0;

    for (size_t n = 0; n <= strlen(TEXT); n++) {
        char *copy = malloc(n ? n : 1); /* so that a sanitizer sees reads after its end */
        struct litmus_test *t = NULL;
        struct peet_err err = { 0 };
        if (!copy)
            return;
        memcpy(copy, TEXT, n);
        if (litmus_parse(copy, n, "file", &t, &err) == 0)
            accepted++;
        else
            CHECK(strncmp(err.text, "file:", 5) == 0 && !t);
        litmus_free(t);
        free(copy);
    }
    CHECK(accepted > 5);
}

static void limits_are_said(void)
{
    char text[20000];
    struct litmus_test *t = NULL;
    struct peet_err err;
    size_t n = (size_t)snprintf(text, sizeof text, HEAD);

    for (int i = 0; i < LITMUS_MAX_ACCESSES; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "LOCK INC [x] ;");
    CHECK_EQ(litmus_parse(text, n, "file", &t, &err), 0);
    litmus_free(t);
    n += (size_t)snprintf(text + n, sizeof text - n, "MOV [x],$1 ;");
    CHECK_EQ(litmus_parse(text, n, "file", &t, &err), PEET_ERR_FORMAT);
    CHECK_EQ((const char *)err.text, "file:4: more than 32 accesses and fences in thread 0");
    n = (size_t)snprintf(text, sizeof text, HEAD "MFENCE ; exists ");
    for (int i = 0; i < 5000; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "(");
    CHECK_EQ(litmus_parse(text, n, "file", &t, &err), PEET_ERR_FORMAT);
    CHECK_EQ((const char *)err.text, "file:4: the condition is nested more than 100 deep");
}

static void a_search_that_is_too_long_is_given_up(void)
{
    struct litmus_test *t = builtin_test("IRIW");
    struct litmus_outcomes o;
    struct peet_err err;

    CHECK_EQ(litmus_explore(t, &(struct explore_config){ .order = &order_rmo, .most_states = 50 }, &o, &err),
             PEET_ERR_LIMIT);
    CHECK_EQ((const char *)err.text, "IRIW: more than 50 states under rmo");
    litmus_free(t);
}

/* ---- witnesses ---- */

/* Replays a witness: loads read from memory or from a store of their thread that waits, and the result satisfies the condition. */
static void check_witness(const char *name, const struct order_model *order)
{
    struct litmus_test *t = builtin_test(name);
    struct litmus_outcomes o;
    struct peet_err err;
    int32_t memory[8] = { 0 }, outcome[16], loaded[4][8] = { 0 };
    size_t count = 0;

    if (!t || !CHECK_EQ(litmus_explore(t, &(struct explore_config){ .order = order }, &o, &err), 0))
        return;
    for (uint32_t i = 0; i < o.steps; i++) {
        const struct litmus_step *s = &o.step[i];
        const struct litmus_instruction *n = &t->thread[s->thread].instruction[s->instruction];
        if (s->access & ORDER_LOAD) {
            CHECK(s->forwarded || s->read == memory[n->location]);
            loaded[s->thread][n->load] = s->read;
        }
        if (s->access & ORDER_STORE)
            memory[n->location] = s->wrote;
    }
    for (uint32_t i = 0; i < t->observables; i++) {
        const struct litmus_observed *p = &t->observed[i];
        const struct litmus_operand *v = p->is_register ? &t->thread[p->thread].reg[p->index].value : NULL;
        outcome[i] = !v ? memory[p->index] : v->is_loaded ? loaded[p->thread][v->load] : v->constant;
    }
    if (o.steps)
        CHECK(litmus_satisfies(t->condition, outcome));
    struct witness_line *line = litmus_witness(t, o.step, o.steps, &count);
    CHECK_EQ(count >= o.steps, true);
    free(line);
    litmus_outcomes_release(&o);
    litmus_free(t);
}

static void a_witness_leads_to_an_outcome_that_satisfies_the_condition(void)
{
    for (const struct litmus_builtin *b = litmus_builtins; b->name; b++)
        for (size_t i = 0; memory_orders[i]; i++)
            check_witness(b->name, memory_orders[i]);
}

static void a_witness_says_what_is_late(void)
{
    static const char *const LINES[] = {
        "MOV [x],$1: the store waits in the store buffer",
        "MOV EAX,[y]: reads y=0 from memory",
        "MOV [y],$1: stores, memory has y=1",
        "MOV EAX,[x]: reads x=0 from memory",
        "MOV [x],$1: the store leaves the store buffer, memory has x=1",
    };
    struct litmus_test *t = builtin_test("SB");
    struct litmus_outcomes o;
    struct peet_err err;
    size_t count = 0;

    if (!t || !CHECK_EQ(litmus_explore(t, &(struct explore_config){ .order = &order_tso }, &o, &err), 0))
        return;
    struct witness_line *line = litmus_witness(t, o.step, o.steps, &count);
    CHECK_EQ(count, 5);
    for (size_t i = 0; i < count && i < 5; i++)
        CHECK_EQ((const char *)line[i].text, LINES[i]);
    free(line);
    litmus_outcomes_release(&o);
    litmus_free(t);
}

/* ---- batches ---- */

#define X(name) +1
enum { ORDERS = MEMORY_ORDERS(X) };
#undef X

static void jobs_change_nothing_and_bad_files_do_not_matter_to_others(void)
{
    struct litmus_batch one = { .order = memory_orders, .orders = ORDERS, .jobs = 1 }, many = one;
    struct peet_err err;

    many.jobs = 7;
    for (struct litmus_batch *b = &one; b; b = b == &one ? &many : NULL) {
        CHECK_EQ(batch_add(b, "/dev/null/none.litmus", &err), 0);
        batch_add_builtins(b);
        CHECK_EQ(batch_add(b, "/dev/null/@list", &err), PEET_ERR_IO);
        batch_run(b);
    }
    CHECK_EQ(one.entries, many.entries);
    CHECK(one.entries > 50);
    CHECK_EQ(one.entry[0].err.code, PEET_ERR_IO);
    for (size_t i = 1; i < one.entries; i++)
        for (size_t k = 0; k < ORDERS; k++) {
            const struct litmus_outcomes *a = &one.entry[i].outcome[k], *b = &many.entry[i].outcome[k];
            CHECK_EQ(one.entry[i].err.code, 0);
            CHECK(a->states && a->states == b->states && a->count == b->count && a->matching == b->matching);
            CHECK_EQ(memcmp(a->value, b->value, a->count * one.entry[i].test->observables * sizeof *a->value), 0);
        }
    batch_release(&one);
    batch_release(&many);
}

int main(void)
{
    RUN(the_four_models_allow_what_the_axioms_do);
    RUN(release_and_acquire_forbid_what_they_should);
    RUN(every_builtin_test_has_an_expectation);
    RUN(a_file_has_all_that_the_format_has);
    RUN(instructions_do_what_x86_does);
    RUN(no_increment_is_lost);
    RUN(a_value_does_not_come_from_nowhere);
    RUN(quantifiers_and_filters_count_outcomes);
    RUN(a_mistake_has_its_line_and_what_was_expected);
    RUN(an_instruction_that_is_not_supported_is_named);
    RUN(every_beginning_of_a_file_is_read_or_refused);
    RUN(limits_are_said);
    RUN(a_search_that_is_too_long_is_given_up);
    RUN(a_witness_leads_to_an_outcome_that_satisfies_the_condition);
    RUN(a_witness_says_what_is_late);
    RUN(jobs_change_nothing_and_bad_files_do_not_matter_to_others);
    return check_done();
}
