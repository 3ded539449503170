/* SPDX-License-Identifier: MIT */
/* Call paths (map/call_path.h) of threads that call, return and jump as each test says. */
#include "map/call_path.h"

#include "check.h"
#include "random.h"

enum { MAIN = 0x1000, CALLEE = 0x2000, OTHER = 0x3000, LENGTH = 5, DEEP = 14, STEPS = 20000, SITES = 6 };

static struct paths paths;
static struct path_thread *thread;

/* A block at that address whose last instruction is of a class: its node. */
static uint32_t block(uint64_t addr, enum peet_class class)
{
    uint32_t node = paths_arrive(&paths, thread, addr, true);

    paths_leave(&paths, thread, paths_exit_of(class), &(struct path_call){ .site = addr, .back = addr + LENGTH });
    return node;
}

static void begin(void)
{
    paths_init(&paths, NULL, NULL);
    thread = paths_thread(&paths, 0);
}

static void a_call_leads_to_a_node_of_its_own_and_a_return_back(void)
{
    begin();
    uint32_t home = block(MAIN, PEET_CL_call), there = block(CALLEE, PEET_CL_plain);
    CHECK(there != home);
    CHECK_EQ(paths.node[there].parent, home);
    CHECK_EQ(paths.node[there].call, MAIN);
    CHECK_EQ(thread->top->back, MAIN + LENGTH);
    CHECK_EQ(block(CALLEE + LENGTH, PEET_CL_return), there);
    CHECK_EQ(block(MAIN + LENGTH, PEET_CL_call), home);
    CHECK(block(CALLEE, PEET_CL_plain) != there); /* it is another call */
    paths_release(&paths);
}

static void calls_into_what_is_not_recorded_return_at_once(void)
{
    begin();
    uint32_t home = block(MAIN, PEET_CL_call);
    CHECK_EQ(block(MAIN + LENGTH, PEET_CL_plain), home);
    uint32_t there = (block(MAIN + 2 * LENGTH, PEET_CL_call), block(CALLEE, PEET_CL_jump)); /* a call at its end */
    CHECK(there != home);
    CHECK_EQ(block(MAIN + 3 * LENGTH, PEET_CL_plain), home);
    paths_release(&paths);
}

static void jumps_out_of_several_calls_go_back_to_the_one_that_continues(void)
{
    begin();
    uint32_t home = block(MAIN, PEET_CL_call);
    block(CALLEE, PEET_CL_call);
    block(OTHER, PEET_CL_return); /* of longjmp, say */
    CHECK_EQ(block(MAIN + LENGTH, PEET_CL_plain), home);
    CHECK(thread->top == thread->call);
    paths_release(&paths);
}

/* Calls itself from two places, as often as it is deep. */
static void recur(unsigned depth)
{
    if (depth > 0) {
        block(CALLEE, PEET_CL_call);
        recur(depth - 1);
        block(CALLEE + LENGTH, PEET_CL_call);
        recur(depth - 1);
    }
    block(CALLEE + 2 * LENGTH, PEET_CL_return);
}

static void what_recursion_does_is_added_up(void)
{
    begin();
    uint32_t home = block(MAIN, PEET_CL_call);
    recur(DEEP);
    CHECK_EQ(block(MAIN + LENGTH, PEET_CL_plain), home);
    CHECK_EQ(paths.nodes, 6); /* main; called by it; by either place; and by the other one from there */
    paths_release(&paths);
}

static void calls_that_are_too_deep_return_all_the_same(void)
{
    enum { LEVELS = 40000, APART = 16 };
    static uint32_t node[LEVELS];
    uint64_t path[2], wrong = 0;

    begin();
    uint32_t home = block(MAIN, PEET_CL_call);
    for (uint64_t i = 0; i < LEVELS; i++)
        node[i] = block(CALLEE + APART * i, PEET_CL_call);
    CHECK_EQ(node[LEVELS - 1], node[LEVELS / 2]); /* as if the last that was not called them all */
    CHECK(node[LEVELS / 4] != node[LEVELS / 4 + 1]);
    paths_calls(&paths, 0, path, 2);
    CHECK_EQ(path[0] - path[1], APART);
    CHECK_EQ(block(OTHER, PEET_CL_return), node[LEVELS - 1]);
    for (uint64_t i = LEVELS; i-- > 0;)
        wrong += block(CALLEE + APART * i + LENGTH, PEET_CL_return) != node[i];
    CHECK_EQ(wrong, 0);
    CHECK_EQ(block(MAIN + LENGTH, PEET_CL_plain), home);
    paths_release(&paths);
}

/* A block that ends without a jump, after another such block, is not passed on. */
struct follower {
    struct paths paths;
    struct path_thread *thread;
    uint32_t node;
};

static void follow(struct follower *f, uint64_t addr, enum path_exit turn)
{
    if (turn == PATH_NEXT && f->thread->exit == PATH_NEXT)
        return;
    f->node = paths_arrive(&f->paths, f->thread, addr, true);
    paths_leave(&f->paths, f->thread, turn, &(struct path_call){ .site = addr, .back = addr + LENGTH });
}

static void blocks_that_go_on_as_they_were_to_need_not_be_told(void)
{
    static const enum peet_class CLASSES[] = { PEET_CL_plain, PEET_CL_plain, PEET_CL_jump, PEET_CL_call,
                                               PEET_CL_return };
    struct follower f = { 0 };
    uint64_t random = 3, back[STEPS + 1], addr = MAIN, wrong = 0;
    unsigned depth = 0;

    begin();
    paths_init(&f.paths, NULL, NULL);
    f.thread = paths_thread(&f.paths, 0);
    for (unsigned i = 0; i < STEPS; i++) {
        enum peet_class class = CLASSES[draw(&random, 5)];
        uint32_t node = block(addr, class);
        follow(&f, addr, paths_exit_of(class));
        wrong += f.node != node;
        uint64_t next = addr + LENGTH, anywhere = MAIN + LENGTH * draw(&random, SITES);
        if (class == PEET_CL_call) {
            back[depth++] = next;
            next = draw(&random, 4) ? anywhere : back[--depth]; /* or it was not recorded */
        } else if (class == PEET_CL_return) {
            for (unsigned pops = 1 + (draw(&random, 9) == 0); pops > 0 && depth > 0; pops--)
                next = back[--depth];
        } else if (class == PEET_CL_jump) {
            next = depth && !draw(&random, 4) ? back[--depth] : anywhere;
        }
        addr = next;
    }
    CHECK_EQ(wrong, 0);
    CHECK_EQ(f.paths.nodes, paths.nodes);
    CHECK(paths.nodes > 10);
    paths_release(&f.paths);
    paths_release(&paths);
}

/* An open call as the test keeps it. */
struct open_call {
    uint64_t site, slot;
};

/* The frame of an address by definition: that of the function which made the innermost call whose return address lies below it. */
static void check_frame(const struct open_call *open, unsigned calls, uint64_t addr)
{
    struct frame_extent f;
    unsigned made = calls;

    while (made > 0 && open[made].slot + 8 <= addr)
        made--;
    if (made == 0 && open[0].slot + 8 <= addr) {
        CHECK(!paths_frame(thread, addr, &f));
        return;
    }
    CHECK(paths_frame(thread, addr, &f));
    CHECK_EQ(f.is_current, made == calls);
    CHECK_EQ(f.high, open[made].slot + 8);
    CHECK_EQ(f.call, open[made].site);
    if (made < calls) {
        CHECK_EQ(f.low, open[made + 1].slot + 8);
        CHECK_EQ(f.code, open[made + 1].site);
    }
}

static void an_address_of_a_stack_lies_in_the_frame_of_the_innermost_function_below_whose_call_it_is(void)
{
    enum { TOP = 0x7fff0000, MOST = 200 };
    struct open_call open[MOST + 1] = { { 0, TOP } };
    uint64_t random = 5;
    unsigned calls = 0;

    begin();
    paths_begin(thread, TOP);
    for (int i = 0; i < STEPS; i++) {
        bool calls_now = calls == 0 || (calls < MOST && draw(&random, 2));
        uint64_t here = MAIN * (1 + draw(&random, SITES));
        if (calls_now) {
            block(here, PEET_CL_call);
            open[calls + 1] = (struct open_call){ here, open[calls].slot - 8 * (1 + draw(&random, 30)) };
            paths_set_slot(thread, open[calls + 1].slot);
            for (int k = 0; k < 3; k++) /* the call is made, but the caller's block still refers */
                check_frame(open, calls, open[calls].slot - 8 + 8 * draw(&random, 3));
            calls++;
            block(here + CALLEE, PEET_CL_plain);
        } else {
            block(here, PEET_CL_return);
            check_frame(open, calls, open[calls].slot); /* the return itself refers */
            block(open[calls].site + LENGTH, PEET_CL_plain);
            calls--;
        }
        for (int k = 0; k < 5; k++)
            check_frame(open, calls, open[calls].slot - 64 + draw(&random, TOP + 96 - open[calls].slot));
    }
    paths_release(&paths);
}

int main(void)
{
    RUN(a_call_leads_to_a_node_of_its_own_and_a_return_back);
    RUN(calls_into_what_is_not_recorded_return_at_once);
    RUN(jumps_out_of_several_calls_go_back_to_the_one_that_continues);
    RUN(what_recursion_does_is_added_up);
    RUN(calls_that_are_too_deep_return_all_the_same);
    RUN(blocks_that_go_on_as_they_were_to_need_not_be_told);
    RUN(an_address_of_a_stack_lies_in_the_frame_of_the_innermost_function_below_whose_call_it_is);
    return check_done();
}
