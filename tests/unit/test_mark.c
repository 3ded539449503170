/* SPDX-License-Identifier: MIT */
/* mark.h without peet: everything compiles, nothing is called, loops do what loops do. */
#include "check.h"
#include "peet/mark.h"

static int evaluated;

static int evaluate(void)
{
    return ++evaluated;
}

static void marks_are_nothing_to_other_compilers(void)
{
    int data[4] = { 0 };

    PEET_REGION_BEGIN(evaluate() ? "a" : "b");
    PEET_MARK("b", evaluate());
    PEET_NAME_DATA("c", data, sizeof data);
    PEET_SPIN_WAIT(&data[evaluate()]);
    PEET_REGION_END("a");
    CHECK_EQ(evaluated, 0);
    CHECK_EQ(evaluate(), 1);
}

static void a_doall_loop_runs_each_iteration_once_and_in_order(void)
{
    long order[5] = { 0 }, n = 0;

    PEET_DOALL(long, i, 2, 7)
    {
        PEET_WAIT(order, i - 1);
        order[n++] = i;
        PEET_POST(order, i);
    }
    CHECK_EQ(n, 5);
    for (long i = 0; i < 5; i++)
        CHECK_EQ(order[i], i + 2);
    PEET_DOALL(int, i, 3, 3)
    n++;
    PEET_DOALL(unsigned, i, 3, 1)
    n++;
    CHECK_EQ(n, 5);
}

int main(void)
{
    RUN(marks_are_nothing_to_other_compilers);
    RUN(a_doall_loop_runs_each_iteration_once_and_in_order);
    return check_done();
}
