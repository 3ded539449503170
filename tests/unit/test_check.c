/* SPDX-License-Identifier: MIT */
/* peet check: for every rule a smallest trace that keeps it and one that breaks it, and what may look like a violation
 * but is none. Traces are made from text. */
#include <stdlib.h>

#include "format/check/check.h"
#include "tests/unit/text.h"

/* ---- running ---- */

struct outcome {
    struct check_totals totals;
    struct check_finding first; /* its text is not kept */
    char text[300];
    char notes[1000];
    unsigned told;
};

static void found(const struct check_finding *f, void *context)
{
    struct outcome *o = context;

    if (o->told++ == 0) {
        o->first = *f;
        snprintf(o->text, sizeof o->text, "%s", f->text);
    }
}

static void note(const char *text, void *context)
{
    struct outcome *o = context;
    size_t n = strlen(o->notes);

    snprintf(o->notes + n, sizeof o->notes - n, "%s\n", text);
}

static struct outcome judge_file(uint64_t most)
{
    struct outcome o = { 0 };
    struct check_config config = { .most = most, .found = found, .note = note, .context = &o };
    struct peet_trace *t;
    struct peet_err err;

    if (fine(peet_trace_open(path_of("a"), &t, &err), &err)) {
        fine(check_trace(t, &config, &o.totals, &err), &err);
        peet_trace_free(t);
    }
    return o;
}

static struct outcome judge(const char *text)
{
    return import(text, "a") ? judge_file(20) : (struct outcome){ 0 };
}

static uint64_t all(const struct outcome *o, enum check_severity severity)
{
    uint64_t n = 0;

    for (int i = 0; i < CHECK_RULE_COUNT; i++)
        n += o->totals.found[i][severity];
    return n;
}

/* The text keeps all rules. */
static void good(const char *text)
{
    struct outcome o = judge(text);

    if (!CHECK(all(&o, CHECK_VIOLATION) + all(&o, CHECK_WARNING) == 0))
        printf("# text:\n%s# found: %s: %s\n", text, check_rule_name(o.first.rule), o.text);
}

/* The text breaks this rule once, there, and no other. */
static void bad(enum check_rule rule, enum check_severity severity, uint32_t thread, uint64_t position,
                const char *text)
{
    struct outcome o = judge(text);
    uint64_t n = all(&o, CHECK_VIOLATION) + all(&o, CHECK_WARNING);

    if (!CHECK_EQ(n, 1) || !CHECK_EQ((int)o.first.rule, (int)rule) || !CHECK_EQ((int)o.first.severity, (int)severity)
        || !CHECK_EQ(o.first.thread, thread) || !CHECK_EQ(o.first.position, position))
        printf("# text:\n%s# found: %s: %s\n", text, n ? check_rule_name(o.first.rule) : "nothing", o.text);
}

#define THREAD1 \
    "peet text 1\nprocess 1 parent 0 program \"\" command \"\"\nthread 1 process 1 parent 0 ordinal 0 name \"\"\n"
#define THREAD2 THREAD1 "thread 2 process 1 parent 1 ordinal 0 name \"\"\n"
#define END1 "1 - thread_end 0 0\nend\n"
#define BORN "1 - thread_create 2\n2 - thread_start 1\n"
#define END2 "2 - thread_end 0 0\n" END1

/* Code of a program: b1 b2 b3 follow each other; b4 is a function with a body, b5, that it may skip. */
#define CODE \
    THREAD1 \
    "block b1\n 0x1000 4 plain\n" \
    "block b2\n 0x1004 4 nop\n 0x1008 4 call -> 0x2000\n" \
    "block b3\n 0x100c 4 plain\n 0x1010 4 jump -> 0x1000\n" \
    "block b4\n 0x2000 4 branch -> 0x2008\n" \
    "block b5\n 0x2004 4 div\n" \
    "block b6\n 0x2008 4 return\n" \
    "block b7\n 0x3000 4 call_indirect\n" \
    "block b8\n 0x3004 4 jump_indirect\n" \
    "block b9\n 0x3008 4 syscall\n" \
    "block b10\n 0x300c 4 call -> 0x9000\n" \
    "block b11\n 0x3010 4 return\n" \
    "block b12\n 0x4000 4 jump -> 0x9000\n" \
    "block b13\n 0x5000 4 plain kernel\n" \
    "block b14\n 0x6000 4 branch -> 0x9000\n" \
    "block b15\n 0x6004 4 trap\n"

#define B(n) "1 - b" #n "\n"

/* ---- control flow ---- */

static void blocks_hold_instructions_that_follow_each_other(void)
{
    good(THREAD1 "block b1\n 0x1000 4 plain\n 0x1004 2 syscall\n 0x1006 2 jump -> 0x1000\n1 0 b1\n1 3 b1\n" END1);
    bad(CHECK_block, CHECK_VIOLATION, 1, 0,
        THREAD1 "block b1\n 0x1000 4 plain\n 0x1005 2 jump -> 0x1000\n1 0 b1\n1 2 b1\n" END1);
    good(THREAD1 "block b1\n 0x1000 4 branch -> 0x2000\n 0x1004 2 jump -> 0x3000\n 0x3000 2 plain\n1 0 b1\n" END1);
    good(THREAD1 "block b1\n 0x1000 4 branch -> 0x2000\n 0x2000 2 plain\n1 0 b1\n" END1);
    bad(CHECK_block, CHECK_VIOLATION, 1, 0,
        THREAD1 "block b1\n 0x1000 4 branch -> 0x2000\n 0x3000 2 plain\n1 0 b1\n" END1);
    bad(CHECK_block, CHECK_VIOLATION, 1, 0,
        THREAD1 "block b1\n 0x1000 4 jump -> 0x2000\n 0x1004 2 plain\n1 0 b1\n" END1);
    bad(CHECK_block, CHECK_VIOLATION, 1, 0,
        THREAD1 "block b1\n 0x1000 4 call -> 0x1004\n 0x1004 2 plain\n1 0 b1\n" END1);
}

static void control_continues_from_block_to_block(void)
{
    good(CODE B(1) B(2) B(4) B(5) B(6) B(3) B(1) B(2) B(4) B(6) B(3) END1);
    bad(CHECK_flow, CHECK_VIOLATION, 1, 1, CODE B(1) B(3) END1);           /* plain */
    bad(CHECK_flow, CHECK_VIOLATION, 1, 2, CODE B(2) B(6) END1);           /* call */
    bad(CHECK_flow, CHECK_VIOLATION, 1, 2, CODE B(3) B(2) END1);           /* jump */
    bad(CHECK_flow, CHECK_VIOLATION, 1, 3, CODE B(2) B(4) B(1) END1);      /* branch */
    bad(CHECK_flow, CHECK_VIOLATION, 1, 4, CODE B(2) B(4) B(5) B(5) END1); /* any other */
    bad(CHECK_flow, CHECK_VIOLATION, 1, 1, CODE B(9) B(1) END1);           /* system call */
}

static void indirect_jumps_and_calls_go_anywhere(void)
{
    good(CODE B(8) B(1) END1);
    good(CODE B(8) B(8) END1);
    good(CODE B(7) B(4) B(6) B(8) B(1) END1);
    good(CODE B(7) B(8) END1);
    good(CODE B(15) B(1) END1);
}

static void events_do_not_disturb_the_flow(void)
{
    good(CODE B(1) "1 - malloc 0x100 8 @0x1004\n1 - syscall 1 2 3 4 5\n" B(2) "1 - free 0x100\n" B(4) END1);
    bad(CHECK_flow, CHECK_VIOLATION, 1, 1, CODE B(1) "1 - malloc 0x100 8\n" B(3) END1);
}

static void returns_match_calls(void)
{
    good(CODE B(2) B(4) B(6) B(3) END1);
    good(CODE B(6) B(1) B(2) B(4) B(6) B(3) END1); /* began inside a function */
    good(CODE B(6) B(6) B(11) B(1) END1);
    bad(CHECK_return, CHECK_VIOLATION, 1, 4, CODE B(2) B(4) B(6) B(1) END1);
    bad(CHECK_return, CHECK_VIOLATION, 1, 4, CODE B(2) B(4) B(6) B(2) B(4) B(6) B(3) END1);
}

static void a_return_over_several_calls_is_told_once(void)
{
    bad(CHECK_return, CHECK_VIOLATION, 1, 3,
        THREAD1 "block b1\n 0x1000 4 call -> 0x2000\nblock b2\n 0x2000 4 call -> 0x3000\nblock b3\n 0x3000 4 return\n"
                "block b4\n 0x1004 4 return\nblock b5\n 0x5000 4 plain\n" B(1) B(2) B(3) B(4) B(5) END1);
}

static void foreign_code_may_return_and_call_back(void)
{
    good(CODE B(10) B(11) END1);                          /* called and returned */
    good(CODE B(10) B(4) B(6) B(11) END1);                /* called back once */
    good(CODE B(10) B(4) B(6) B(4) B(5) B(6) B(11) END1); /* and again */
    good(CODE B(10) B(1) B(2) B(4) B(6) B(3) B(1) END1);  /* with private calls */
    good(CODE B(7) B(4) B(6) B(4) B(6) B(8) END1);        /* through an indirect call */
    good(CODE B(2) B(4) B(5) B(6) B(3) END1);
    /* The same, but foreign code was reached by a jump: it returns for the one that jumped. */
    good(THREAD1 "block b1\n 0x1000 4 call -> 0x4000\nblock b2\n 0x1004 4 plain\nblock b3\n 0x4000 4 jump -> 0x9000\n"
                 "block b4\n 0x5000 4 return\n" B(1) B(3) B(2) END1);
    good(THREAD1 "block b1\n 0x1000 4 call -> 0x4000\nblock b2\n 0x1004 4 plain\nblock b3\n 0x4000 4 jump -> 0x9000\n"
                 "block b4\n 0x5000 4 return\n" B(1) B(3) B(4) B(4) B(2) END1);
    good(THREAD1 "block b1\n 0x1000 4 call -> 0x4000\nblock b2\n 0x1004 4 plain\nblock b3\n 0x4000 4 jump_indirect\n"
                 "block b4\n 0x5000 4 return\n" B(1) B(3) B(4) B(4) B(2) END1);
}

static void foreign_code_calls_back_at_the_beginning_of_a_function(void)
{
    bad(CHECK_return, CHECK_VIOLATION, 1, 3,
        THREAD1 "module process 1 path \"\" build \"\" bias 0\n symbol 0x5000 0x20 code \"f\"\n"
                "block b1\n 0x1000 4 call -> 0x4000\nblock b2\n 0x5010 4 plain\nblock b3\n 0x4000 4 jump_indirect\n"
                "block b4\n 0x5000 4 return\n" B(1) B(3) B(4) B(2) END1);
}

static void signals_nest_in_the_flow(void)
{
    /* In the middle of b1 b2: a handler, b4 b6, in which another one runs. */
    good(CODE B(1) "1 - signal_enter 10\n" B(4) "1 - signal_enter 11\n" B(6) "1 - signal_exit 11\n" B(5)
             B(6) "1 - signal_exit 10\n" B(2) B(4) B(6) B(3) END1);
    bad(CHECK_flow, CHECK_VIOLATION, 1, 3,
        CODE B(1) "1 - signal_enter 10\n" B(4) B(6) "1 - signal_exit 10\n" B(3) END1);
    good(CODE "1 - signal_exit 10\n" B(1) END1);
}

static void jumps_leave_calls_behind(void)
{
    /* Two calls deep, a jump back to b3 in the outermost function; its own return is then the next. */
    good(THREAD1
         "block b1\n 0x1000 4 call -> 0x2000\nblock b2\n 0x2000 4 call -> 0x3000\nblock b3\n 0x3000 4 call -> 0x4000\n"
         "block b4\n 0x4000 4 plain\nblock b5\n 0x2004 4 return\nblock b6\n 0x1004 4 plain\n" B(1) B(2) B(3)
             B(4) "1 - jump 0x2004\n" B(5) B(6) END1);
    bad(CHECK_flow, CHECK_VIOLATION, 1, 1, CODE B(1) "1 - jump 0x2000\n" B(3) END1);
}

static void gaps_and_exec_forget_the_flow(void)
{
    good(CODE B(1) "1 - gap 100 10\n" B(3) END1);
    good(CODE B(2) B(4) "1 - gap 100 10\n" B(6) B(2) END1);
    good(CODE B(1) "1 - exec \"/bin/b\"\n" B(3) END1);
}

static void what_the_kernel_does_is_passed_over(void)
{
    good(CODE B(1) B(13) B(13) B(2) B(13) B(4) END1);
}

/* Deeper than the shadow stack, too. */
static void deep_recursion_is_followed(void)
{
    static const char RECURSION[] = THREAD1
        "block b1\n 0x1000 4 call -> 0x1000\nblock b2\n 0x1004 4 return\nblock b3\n 0x1000 4 branch -> 0x1004\n"
        "block b4\n 0x2000 4 plain\n"
        "loop l1 values 0 counts 1\n repeat c0\n  b1\n done\nloop l2 values 0 counts 1\n repeat c0\n  b2\n done\n";
    char text[1000];

    snprintf(text, sizeof text, "%s1 - l1 5000\n1 - b3\n1 - l2 5001\n1 - b4\n%s", RECURSION, END1);
    good(text);
    snprintf(text, sizeof text, "%s1 - l1 5000\n1 - b3\n1 - l2 4000\n1 - b4\n%s", RECURSION, END1);
    bad(CHECK_return, CHECK_VIOLATION, 1, 9001, text);
    snprintf(text, sizeof text, "%s1 - l1 3000000\n1 - b3\n1 - l2 3000001\n1 - b4\n%s", RECURSION, END1);
    good(text);
}

/* ---- locks ---- */

static void locks_are_given_back_by_who_holds_them(void)
{
    good(THREAD1 "1 - mutex_lock 16\n1 - mutex_lock 16\n1 - mutex_unlock 16\n1 - mutex_unlock 16\n"
                 "1 - rwlock_rdlock 16\n1 - rwlock_unlock 16\n1 - rwlock_wrlock 16\n1 - rwlock_unlock 16\n"
                 "1 - spin_lock 16\n1 - spin_unlock 16\n1 - mutex_trylock 16 0\n1 - mutex_unlock 16\n"
                 "1 - rwlock_tryrdlock 16 0\n1 - rwlock_trywrlock 16 0\n1 - rwlock_unlock 16\n1 - rwlock_unlock 16\n"
                 "1 - spin_trylock 16 0\n1 - spin_unlock 16\n" END1);
    bad(CHECK_lock, CHECK_VIOLATION, 1, 0, THREAD1 "1 - mutex_unlock 16\n" END1);
    bad(CHECK_lock, CHECK_VIOLATION, 1, 0,
        THREAD1 "1 - mutex_lock 16\n1 - mutex_unlock 16\n1 - mutex_unlock 16\n" END1);
    bad(CHECK_lock, CHECK_VIOLATION, 1, 0, THREAD1 "1 - mutex_trylock 16 16\n1 - mutex_unlock 16\n" END1);
    bad(CHECK_lock, CHECK_VIOLATION, 1, 0, THREAD1 "1 - rwlock_unlock 16\n" END1);
    bad(CHECK_lock, CHECK_VIOLATION, 1, 0, THREAD1 "1 - rwlock_tryrdlock 16 16\n1 - rwlock_unlock 16\n" END1);
    bad(CHECK_lock, CHECK_VIOLATION, 1, 0, THREAD1 "1 - spin_unlock 16\n" END1);
    bad(CHECK_lock, CHECK_VIOLATION, 1, 0, THREAD1 "1 - spin_trylock 16 16\n1 - spin_unlock 16\n" END1);
}

static void another_thread_cannot_give_a_lock_back(void)
{
    struct outcome o = judge(THREAD2 BORN "1 - mutex_lock 16\n2 - mutex_unlock 16\n" END2);

    CHECK_EQ(o.totals.found[CHECK_lock][CHECK_VIOLATION], 1);
    CHECK_EQ(o.totals.found[CHECK_held][CHECK_WARNING], 1);
    CHECK_EQ(all(&o, CHECK_VIOLATION) + all(&o, CHECK_WARNING), 2);
}

static void a_lock_that_may_have_been_taken_in_a_gap_is_a_warning(void)
{
    bad(CHECK_lock, CHECK_WARNING, 1, 0, THREAD1 "1 - gap 5 5\n1 - mutex_unlock 16\n" END1);
}

static void a_forked_process_has_its_makers_locks(void)
{
    bad(CHECK_lock, CHECK_WARNING, 2, 0,
        THREAD1 "process 2 parent 1 program \"\" command \"\"\nthread 2 process 2 parent 0 ordinal 0 name \"\"\n"
                "1 - fork 2\n2 - mutex_unlock 16\n2 - thread_end 0 0\n" END1);
}

static void who_waits_for_a_condition_holds_its_lock(void)
{
    good(THREAD1 "1 - mutex_lock 16\n1 - cond_wait 32 16\n1 - cond_timedwait 32 16 110\n1 - mutex_unlock 16\n" END1);
    bad(CHECK_condition, CHECK_VIOLATION, 1, 0, THREAD1 "1 - cond_wait 32 16\n" END1);
    bad(CHECK_condition, CHECK_VIOLATION, 1, 0,
        THREAD1 "1 - spin_lock 16\n1 - cond_timedwait 32 16 0\n1 - spin_unlock 16\n" END1);
}

static void locks_held_at_the_end_are_warnings(void)
{
    bad(CHECK_held, CHECK_WARNING, 1, 1, CODE B(1) "1 - mutex_lock 16\n" B(2) END1);
    good(THREAD1 "1 - mutex_lock 16\n1 - exec \"b\"\n" END1);
}

/* A wait at a condition is recorded when it is over. */
static void a_thread_that_the_process_ends_may_wait_at_a_condition_and_hold_no_mutex(void)
{
    good(THREAD2 BORN "2 - mutex_lock 16\n2 - thread_end 1 0\n1 - mutex_lock 16\n1 - mutex_unlock 16\n" END1);
    good(THREAD2 BORN "2 - mutex_lock 16\n2 - thread_end 4 0\n" END1);
    bad(CHECK_held, CHECK_WARNING, 2, 0, THREAD2 BORN "2 - mutex_lock 16\n" END2);
    bad(CHECK_held, CHECK_WARNING, 2, 0, THREAD2 BORN "2 - spin_lock 16\n2 - thread_end 1 0\n" END1);
}

/* ---- what begins and ends ---- */

static void regions_nest(void)
{
    good(THREAD1 "1 - region_begin \"a\"\n1 - region_begin \"b\"\n1 - region_end \"b\"\n1 - region_end \"a\"\n" END1);
    bad(CHECK_region, CHECK_VIOLATION, 1, 0, THREAD1 "1 - region_end \"a\"\n" END1);
    bad(CHECK_region, CHECK_VIOLATION, 1, 0,
        THREAD1 "1 - region_begin \"a\"\n1 - region_begin \"b\"\n1 - region_end \"a\"\n" END1);
    bad(CHECK_region, CHECK_VIOLATION, 1, 0, THREAD1 "1 - region_begin \"a\"\n" END1);
    bad(CHECK_region, CHECK_WARNING, 1, 0, THREAD1 "1 - region_begin \"a\"\n1 - thread_end 1 0\nend\n");
}

static void parallel_loops_and_iterations_pair_up(void)
{
    good(THREAD1 "1 - doall_fork 2\n1 - doall_start 0\n1 - doall_finish 0\n1 - doall_start 1\n1 - doall_finish 1\n"
                 "1 - doall_join 0\n" END1);
    good(THREAD2 BORN "1 - doall_fork 1\n2 - doall_start 0\n2 - doall_finish 0\n1 - doall_join 1\n" END2);
    bad(CHECK_doall, CHECK_VIOLATION, 1, 0, THREAD1 "1 - doall_join 2\n" END1);
    bad(CHECK_doall, CHECK_VIOLATION, 1, 0, THREAD1 "1 - doall_fork 2\n" END1);
    bad(CHECK_doall, CHECK_VIOLATION, 1, 0, THREAD1 "1 - doall_finish 2\n" END1);
    bad(CHECK_doall, CHECK_VIOLATION, 1, 0, THREAD1 "1 - doall_start 2\n" END1);
    bad(CHECK_doall, CHECK_VIOLATION, 1, 0, THREAD1 "1 - doall_start 2\n1 - doall_finish 3\n1 - doall_finish 2\n" END1);
}

/* ---- meetings ---- */

static void all_threads_of_a_barrier_agree_and_arrive(void)
{
    good(THREAD2 BORN "1 - barrier_init 16 2\n1 - barrier_wait 16 2\n2 - barrier_wait 16 2\n" END2);
    good(THREAD2 BORN "1 - barrier_wait 16 2\n2 - barrier_wait 16 2\n" END2);
    /* The same memory serves two barriers. */
    good(THREAD2 BORN "1 - barrier_init 16 2\n1 - barrier_wait 16 2\n2 - barrier_wait 16 2\n1 - barrier_destroy 16\n"
                      "1 - barrier_init 16 1\n1 - barrier_wait 16 1\n" END2);
    bad(CHECK_barrier, CHECK_VIOLATION, CHECK_NO_THREAD, 0, THREAD2 BORN "1 - barrier_wait 16 2\n" END2);
    bad(CHECK_barrier, CHECK_VIOLATION, CHECK_NO_THREAD, 0,
        THREAD2 BORN "1 - barrier_wait 16 2\n2 - barrier_wait 16 2\n2 - barrier_wait 16 2\n" END2);
    bad(CHECK_barrier, CHECK_VIOLATION, 2, 0,
        THREAD2 BORN "1 - barrier_init 16 1\n1 - barrier_wait 16 1\n2 - barrier_wait 16 2\n" END2);
    bad(CHECK_barrier, CHECK_VIOLATION, 2, 0, THREAD2 BORN "1 - barrier_wait 16 1\n2 - barrier_wait 16 2\n" END2);
    bad(CHECK_barrier, CHECK_VIOLATION, 1, 0, THREAD1 "1 - barrier_wait 16 0\n" END1);
}

static void a_barrier_that_threads_were_cut_off_from_is_a_warning(void)
{
    bad(CHECK_barrier, CHECK_WARNING, CHECK_NO_THREAD, 0,
        THREAD2 BORN "1 - barrier_wait 16 2\n2 - thread_end 1 0\n1 - thread_end 1 0\nend\n");
    bad(CHECK_barrier, CHECK_WARNING, CHECK_NO_THREAD, 0, THREAD2 BORN "1 - gap 1 1\n1 - barrier_wait 16 2\n" END2);
    good(THREAD1 "1 - barrier_wait 16 2\nend\n"); /* its end is missing */
}

static void semaphores_are_not_taken_more_often_than_given(void)
{
    good(THREAD1
         "1 - sem_init 16 1\n1 - sem_wait 16\n1 - sem_post 16\n1 - sem_trywait 16 0\n1 - sem_trywait 16 11\n" END1);
    good(THREAD1 "1 - sem_wait 16\n" END1); /* its first value is unknown */
    bad(CHECK_semaphore, CHECK_VIOLATION, CHECK_NO_THREAD, 0,
        THREAD1 "1 - sem_init 16 1\n1 - sem_wait 16\n1 - sem_wait 16\n" END1);
}

/* ---- threads ---- */

static void threads_are_created_started_and_joined_once(void)
{
    good(THREAD2 BORN "1 - thread_join 2\n" END2);
    good(THREAD2 BORN "1 - thread_detach 2\n" END2);
    bad(CHECK_thread, CHECK_VIOLATION, 1, 0, THREAD1 "1 - thread_create 9\n" END1);
    bad(CHECK_thread, CHECK_VIOLATION, CHECK_NO_THREAD, 0, THREAD1 "1 - thread_join 9\n" END1);
    bad(CHECK_thread, CHECK_VIOLATION, 1, 0, THREAD2 "1 - thread_create 2\n" END2);
    bad(CHECK_thread, CHECK_VIOLATION, 2, 0, THREAD2 "2 - thread_start 1\n" END2);
    bad(CHECK_thread, CHECK_VIOLATION, 1, 0, THREAD2 BORN "1 - thread_create 2\n" END2);
    bad(CHECK_thread, CHECK_VIOLATION, 1, 0, THREAD2 BORN "1 - thread_join 2\n1 - thread_join 2\n" END2);
    bad(CHECK_thread, CHECK_VIOLATION, 1, 0, THREAD2 BORN "1 - thread_detach 2\n1 - thread_join 2\n" END2);
    bad(CHECK_thread, CHECK_VIOLATION, 1, 0, THREAD2 BORN "1 - thread_detach 2\n1 - thread_detach 2\n" END2);
    bad(CHECK_thread, CHECK_VIOLATION, 2, 0, THREAD2 BORN "2 - thread_join 2\n" END2);
    good(THREAD2 BORN "2 - thread_detach 2\n" END2);
    bad(CHECK_thread, CHECK_VIOLATION, 2, 0, THREAD2 "1 - thread_create 2\n2 - thread_start 7\n" END2);
    bad(CHECK_thread, CHECK_VIOLATION, 2, 0,
        THREAD2 "1 - thread_create 2\n2 - mark \"m\" 1\n2 - thread_start 1\n" END2);
    bad(CHECK_thread, CHECK_VIOLATION, 3, 0,
        THREAD2 "thread 3 process 1 parent 2 ordinal 0 name \"\"\n" BORN
                "3 - thread_start 2\n3 - thread_end 0 0\n" END2);
    bad(CHECK_thread, CHECK_VIOLATION, 1, 0,
        THREAD2 "thread 3 process 1 parent 2 ordinal 0 name \"\"\n" BORN
                "1 - thread_create 3\n3 - thread_start 2\n3 - thread_end 0 0\n" END2);
}

static void nothing_follows_the_end_of_a_thread(void)
{
    good(CODE B(1) END1);
    good(CODE B(1) "end\n"); /* cut off: no end is expected */
    bad(CHECK_end, CHECK_VIOLATION, 1, 1, CODE B(1) "1 - thread_end 0 0\n1 - mark \"m\" 1\n" END1);
    bad(CHECK_end, CHECK_VIOLATION, 1, 1, CODE B(1) "1 - thread_end 0 0\n" B(2) "end\n");
    bad(CHECK_end, CHECK_VIOLATION, 1, 1, CODE B(1) "1 - thread_end 0 0\n" END1);
}

/* The stream of thread 1 has no end: what is not in it may have been lost. */
static void a_thread_whose_creation_was_cut_off_is_told_as_such(void)
{
    struct outcome o = judge(THREAD2 "1 - mark \"m\" 1\n2 - thread_start 1\n2 - thread_end 0 0\nend\n");

    CHECK_EQ(all(&o, CHECK_VIOLATION), 0);
    CHECK_EQ(o.totals.found[CHECK_thread][CHECK_WARNING], 1);
    CHECK(strstr(o.text, "the recording was cut off before"));
    o = judge(THREAD2 "2 - thread_start 1\n" END2);
    CHECK(strstr(o.text, "no thread of the trace creates it"));
}

/* A whole stream without thread_end cannot be said in text. */
static void a_whole_stream_has_an_end(void)
{
    struct peet_stream *s;
    struct peet_writer *w;
    struct peet_err err;

    if (!fine(peet_writer_open(path_of("a"), NULL, &w, &err), &err))
        return;
    fine(peet_stream_open(w, &(struct peet_thread){ .id = 1, .name = "" }, &s, &err), &err);
    fine(peet_stream_close(s, &err), &err);
    fine(peet_writer_close(w, &err), &err);
    struct outcome o = judge_file(20);
    CHECK_EQ(o.totals.found[CHECK_end][CHECK_VIOLATION], 1);
    CHECK_EQ(all(&o, CHECK_VIOLATION), 1);
}

/* ---- memory ---- */

static void memory_is_freed_as_often_as_allocated(void)
{
    good(THREAD1
         "1 - malloc 16 8\n1 - free 16\n1 - calloc 16 2 4\n1 - realloc 32 16 99\n1 - free 32\n1 - memalign 64 64 8\n"
         "1 - free 64\n1 - free 0\n1 - malloc 0 99999\n1 - malloc 48 1\n" END1);
    good(THREAD1 "1 - malloc 16 8\n1 - realloc 0 16 0\n" END1);                   /* frees it */
    good(THREAD1 "1 - malloc 16 8\n1 - realloc 0 16 999999\n1 - free 16\n" END1); /* fails */
    good(THREAD2 BORN "1 - free 16\n2 - malloc 16 8\n" END2);                     /* the order is unknown */
    bad(CHECK_free, CHECK_VIOLATION, 1, 0, THREAD1 "1 - free 16\n" END1);
    bad(CHECK_free, CHECK_VIOLATION, 1, 0, THREAD1 "1 - malloc 16 8\n1 - free 16\n1 - free 16\n" END1);
    bad(CHECK_free, CHECK_VIOLATION, 1, 0, THREAD1 "1 - malloc 16 8\n1 - realloc 32 16 9\n1 - free 16\n" END1);
    bad(CHECK_free, CHECK_WARNING, 1, 0, THREAD1 "1 - gap 1 1\n1 - free 16\n" END1);
    good(THREAD1 "1 - free 16\nend\n");
    good(THREAD1 "process 2 parent 1 program \"\" command \"\"\nthread 2 process 2 parent 0 ordinal 0 name \"\"\n"
                 "1 - malloc 16 8\n1 - fork 2\n2 - free 16\n2 - thread_end 0 0\n" END1);
}

#define STACK "range process 1 0x7000000 0x2000 rw- name \"[stack]\"\n"
#define CODE_SEGMENT "module process 1 path \"\" build \"\" bias 0\n segment 0x1000 0x10 offset 0 r-x\n"
#define ACCESS "block b1\n 0x1000 4 plain\n 0x1004 4 plain, load 8 [s0]\n 0x1008 4 jump -> 0x1000\n"

static void references_lie_in_memory(void)
{
    good(THREAD1 STACK ACCESS "1 - b1 0x7000000\n1 - b1 0x7001ff8\n1 - b1 0x7000ffc\n" END1);
    bad(CHECK_mapped, CHECK_VIOLATION, 1, 1, THREAD1 STACK ACCESS "1 - b1 0x6ffffff\n" END1);
    bad(CHECK_mapped, CHECK_VIOLATION, 1, 4, THREAD1 STACK ACCESS "1 - b1 0x7000000\n1 - b1 0x7001ff9\n" END1);
    bad(CHECK_mapped, CHECK_VIOLATION, 1, 1, THREAD1 STACK ACCESS "1 - b1 0\n" END1);
    bad(CHECK_mapped, CHECK_VIOLATION, 1, 1, THREAD1 STACK ACCESS "1 - b1 0xfffffffffffffff9\n" END1);
}

static void modules_maps_and_allocations_are_memory(void)
{
    good(THREAD1 CODE_SEGMENT STACK ACCESS "1 - b1 0x1008\n" END1);
    good(THREAD2 STACK ACCESS BORN
         "1 - b1 0x9000000\n2 - map 0x9000000 4096 3\n" END2); /* in another thread, whenever */
    good(THREAD1 STACK ACCESS "1 - malloc 0x9000010 8\n1 - b1 0x9000010\n1 - free 0x9000010\n1 - b1 0x9000010\n" END1);
    good(THREAD1 STACK ACCESS "1 - calloc 0x9000010 2 8000\n1 - b1 0x9002000\n" END1);
    good(THREAD1 STACK ACCESS "1 - memalign 0x9000010 16 8000\n1 - realloc 0x9100000 0 8000\n1 - b1 0x9100100\n" END1);
    good(THREAD1 "process 2 parent 1 program \"\" command \"\"\nthread 2 process 2 parent 0 ordinal 0 name \"\"\n" STACK
                 "range process 2 0x8000000 0x1000 rw- name \"\"\n" ACCESS
                 "1 - fork 2\n2 - b1 0x7000000\n2 - b1 0x8000000\n2 - thread_end 0 0\n" END1);
    bad(CHECK_mapped, CHECK_VIOLATION, 1, 1, THREAD1 STACK ACCESS "1 - malloc 0x9000010 8\n1 - b1 0x9001000\n" END1);
}

static void ranges_that_library_code_touches_are_memory(void)
{
    good(THREAD1 STACK
         "1 - range_read 0x7000000 8192\n1 - range_write 0x7000000 1\n1 - range_copy 0x7000000 0x7001000 4096\n"
         "1 - range_compare 0x7000000 0x7001000 4096\n1 - range_read 0 0\n" END1);
    bad(CHECK_mapped, CHECK_VIOLATION, 1, 0, THREAD1 STACK "1 - range_read 0x7000000 8193\n" END1);
    bad(CHECK_mapped, CHECK_VIOLATION, 1, 0, THREAD1 STACK "1 - range_write 0x7000000 0xffffffffffffffff\n" END1);
    bad(CHECK_mapped, CHECK_VIOLATION, 1, 0, THREAD1 STACK "1 - range_copy 0x7000000 0x7001001 4096\n" END1);
    bad(CHECK_mapped, CHECK_VIOLATION, 1, 0, THREAD1 STACK "1 - range_compare 0 0x7001000 4096\n" END1);
}

static void prefetches_and_the_kernel_may_go_anywhere(void)
{
    good(THREAD1 STACK "block b1\n 0x1000 4 plain, prefetch 64 [s0]\n1 - b1 5\n" END1);
    good(THREAD1 STACK "block b1\n 0x1000 4 plain kernel, load 8 [s0]\n1 - b1 5\n" END1);
}

static void where_memory_is_unknown_nothing_is_said_about_it(void)
{
    struct outcome o = judge(THREAD1 CODE_SEGMENT ACCESS "1 - b1 0x7000000\n" END1);

    CHECK_EQ(all(&o, CHECK_VIOLATION), 0);
    CHECK(strstr(o.notes, "the memory of process 1 is not known"));
}

/* ---- the rest ---- */

static void at_most_so_many_are_told_but_all_are_counted(void)
{
    struct outcome o;

    import(THREAD1 "1 - mutex_unlock 16\n1 - mutex_unlock 16\n1 - mutex_unlock 16\n1 - spin_unlock 16\n" END1, "a");
    o = judge_file(2);
    CHECK_EQ(o.told, 2);
    CHECK_EQ(o.totals.found[CHECK_lock][CHECK_VIOLATION], 4);
    CHECK_EQ(o.totals.threads, 1);
    CHECK_EQ(o.totals.events, 5);
}

static void findings_say_where(void)
{
    struct outcome o = judge(CODE B(1) B(3) END1);

    CHECK_EQ(o.first.addr, 0x100c);
    CHECK_EQ(o.text, "the plain instruction at 0x1000 goes to 0x100c; 0x1004 was expected");
    CHECK(o.first.has_addr);
}

static void every_rule_has_a_name_and_a_summary(void)
{
    for (int i = 0; i < CHECK_RULE_COUNT; i++) {
        CHECK(*check_rule_summary((enum check_rule)i));
        for (int j = 0; j < i; j++)
            CHECK(strcmp(check_rule_name((enum check_rule)i), check_rule_name((enum check_rule)j)));
    }
}

static void damage_forgets_the_flow_and_is_counted(void)
{
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    fputs(THREAD1 "block b1\n 0x1000 4 jump -> 0x1000, load 8 [s0]\n", f);
    for (uint32_t i = 0, x = 1; i < 200000; i++, x ^= x << 13, x ^= x >> 17, x ^= x << 5)
        fprintf(f, "1 - b1 0x%x\n", x);
    fputs("1 - mutex_unlock 16\n" END1, f);
    fclose(f);
    if (import(text, "a")) {
        FILE *trace = fopen(path_of("a"), "r+");
        fseek(trace, 20000, SEEK_SET);
        fputs("damage", trace);
        fclose(trace);
        struct outcome o = judge_file(20);
        CHECK_EQ(o.totals.damaged, 1);
        CHECK_EQ(all(&o, CHECK_VIOLATION), 0);
        CHECK_EQ(o.totals.found[CHECK_lock][CHECK_WARNING], 1);
        CHECK(strstr(o.notes, "parts of the trace are missing"));
    }
    free(text);
}

int main(void)
{
    if (!begin())
        return 1;
    RUN(blocks_hold_instructions_that_follow_each_other);
    RUN(control_continues_from_block_to_block);
    RUN(indirect_jumps_and_calls_go_anywhere);
    RUN(events_do_not_disturb_the_flow);
    RUN(returns_match_calls);
    RUN(a_return_over_several_calls_is_told_once);
    RUN(foreign_code_may_return_and_call_back);
    RUN(foreign_code_calls_back_at_the_beginning_of_a_function);
    RUN(signals_nest_in_the_flow);
    RUN(jumps_leave_calls_behind);
    RUN(gaps_and_exec_forget_the_flow);
    RUN(what_the_kernel_does_is_passed_over);
    RUN(deep_recursion_is_followed);
    RUN(locks_are_given_back_by_who_holds_them);
    RUN(another_thread_cannot_give_a_lock_back);
    RUN(a_lock_that_may_have_been_taken_in_a_gap_is_a_warning);
    RUN(a_forked_process_has_its_makers_locks);
    RUN(who_waits_for_a_condition_holds_its_lock);
    RUN(locks_held_at_the_end_are_warnings);
    RUN(a_thread_that_the_process_ends_may_wait_at_a_condition_and_hold_no_mutex);
    RUN(regions_nest);
    RUN(parallel_loops_and_iterations_pair_up);
    RUN(all_threads_of_a_barrier_agree_and_arrive);
    RUN(a_barrier_that_threads_were_cut_off_from_is_a_warning);
    RUN(semaphores_are_not_taken_more_often_than_given);
    RUN(threads_are_created_started_and_joined_once);
    RUN(nothing_follows_the_end_of_a_thread);
    RUN(a_thread_whose_creation_was_cut_off_is_told_as_such);
    RUN(a_whole_stream_has_an_end);
    RUN(memory_is_freed_as_often_as_allocated);
    RUN(references_lie_in_memory);
    RUN(modules_maps_and_allocations_are_memory);
    RUN(ranges_that_library_code_touches_are_memory);
    RUN(prefetches_and_the_kernel_may_go_anywhere);
    RUN(where_memory_is_unknown_nothing_is_said_about_it);
    RUN(at_most_so_many_are_told_but_all_are_counted);
    RUN(findings_say_where);
    RUN(every_rule_has_a_name_and_a_summary);
    RUN(damage_forgets_the_flow_and_is_counted);
    return end();
}
