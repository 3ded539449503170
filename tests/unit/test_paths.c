/* SPDX-License-Identifier: MIT */
/* Call paths (study/profile/paths.h) of threads that call, return and jump as they are told to here. */
#include "study/profile/paths.h"

#include "check.h"
#include "random.h"

enum { MAIN = 0x1000, CALLEE = 0x2000, OTHER = 0x3000, LENGTH = 5, DEEP = 14, STEPS = 20000, SITES = 6 };

static struct paths paths;
static struct solo_way way;
static enum solo_turn turn; /* of the last block */

/* A block at that address whose last instruction is of a class: its node. */
static uint32_t block(uint64_t addr, enum peet_class class)
{
    struct peet_insn last = { .addr = addr, .length = LENGTH, .class = (uint8_t) class };

    paths_turn(&paths, 0, addr, &last, turn, &way);
    turn = class == PEET_CL_call || class == PEET_CL_return ? SOLO_MOVES : class == PEET_CL_jump ? SOLO_JUMPS : SOLO_ON;
    return way.node;
}

static void begin(void)
{
    paths_init(&paths, NULL);
    turn = SOLO_ON;
}

static void a_call_leads_to_a_node_of_its_own_and_a_return_back(void)
{
    begin();
    uint32_t home = block(MAIN, PEET_CL_call), there = block(CALLEE, PEET_CL_plain);
    CHECK(there != home);
    CHECK_EQ(paths.node[there].parent, home);
    CHECK_EQ(paths.node[there].call, MAIN);
    CHECK_EQ(way.back, MAIN + LENGTH);
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
    CHECK_EQ(way.back, 0);
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

/* What sim/solo does: a block that goes on as it was to is not told. */
struct follower {
    struct paths paths;
    struct solo_way way;
    enum solo_turn turn;
    uint32_t node;
};

static void follow(struct follower *f, uint64_t addr, const struct peet_insn *last, enum solo_turn to)
{
    if (f->turn == SOLO_MOVES && to == SOLO_ON && (addr == f->way.there) != f->way.is_call) {
        f->node = f->way.next;
    } else if (f->turn == SOLO_MOVES || to == SOLO_MOVES || f->turn == SOLO_JUMPS) {
        paths_turn(&f->paths, 0, addr, last, f->turn, &f->way);
        f->node = f->way.node;
    }
    f->turn = to;
}

static void blocks_that_go_on_as_they_were_to_need_not_be_told(void)
{
    static const enum peet_class CLASSES[] = { PEET_CL_plain, PEET_CL_plain, PEET_CL_jump, PEET_CL_call,
                                               PEET_CL_return };
    struct follower f = { .turn = SOLO_ON };
    uint64_t random = 3, back[STEPS + 1], addr = MAIN, wrong = 0;
    unsigned depth = 0;

    begin();
    paths_init(&f.paths, NULL);
    for (unsigned i = 0; i < STEPS; i++) {
        enum peet_class class = CLASSES[draw(&random, 5)];
        struct peet_insn last = { .addr = addr, .length = LENGTH, .class = (uint8_t) class };
        uint32_t node = block(addr, class);
        follow(&f, addr, &last, turn);
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

int main(void)
{
    RUN(a_call_leads_to_a_node_of_its_own_and_a_return_back);
    RUN(calls_into_what_is_not_recorded_return_at_once);
    RUN(jumps_out_of_several_calls_go_back_to_the_one_that_continues);
    RUN(what_recursion_does_is_added_up);
    RUN(blocks_that_go_on_as_they_were_to_need_not_be_told);
    return check_done();
}
