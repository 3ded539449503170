/* SPDX-License-Identifier: MIT */
/* Windows of stacks and the list of target threads (J08 to J14, J18); the list against a slow one. */
#include "capture/qemu/threads.h"
#include "tests/unit/check.h"

static uint64_t random_state = 88172645463325252u;

static unsigned dice(unsigned n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state >> 33) % n;
}

static const struct window_config usual = { .page = 4096, .stack = 8 << 20, .pages = 1 };

/* A page table of one page. */
struct one_page {
    uint64_t virtual, physical;
};

static bool translate_one(void *context, uint64_t addr, uint64_t *ret)
{
    const struct one_page *p = context;

    if (addr >> 12 != p->virtual >> 12)
        return false;
    *ret = p->physical + addr % 4096;
    return true;
}

static struct translation through(struct one_page *p)
{
    return (struct translation){ translate_one, p };
}

static struct target *add(struct targets *t, uint64_t space, struct window w, uint64_t frame, uint64_t tid)
{
    struct target model = { .window = w, .frame = frame, .space = space, .tid = tid };

    return targets_add(t, &model, NULL, NULL);
}

static void equations_1_and_2_give_the_papers_numbers(void)
{
    struct window w = window_of(&usual, 0x7ffff7d8ae50); /* J10 */

    CHECK_EQ(w.start, 0x7ffff7d8afff);
    CHECK_EQ(w.end, 0x7ffff758b000);
    CHECK(window_has(w, w.start) && window_has(w, w.end) && window_has(w, 0x7ffff7d8ae50));
    CHECK(!window_has(w, w.start + 1) && !window_has(w, w.end - 1));
}

static void sizes_of_pages_and_stacks_are_settings(void)
{
    struct window_config c = { .page = 16384, .stack = 64 << 10, .pages = 1 }; /* J18 */
    struct window w = window_of(&c, 0x10008123);

    CHECK_EQ(w.start, 0x1000bfff);
    CHECK_EQ(w.end, 0xfffc000);
    c.stack = 64 << 20;
    CHECK_EQ(window_of(&c, 0x10008123).end, 0x1000c000 - (64 << 20));
}

static void stacks_that_grow_upwards_are_mirrored(void)
{
    struct window_config c = usual; /* J12 */

    c.up = true;
    struct window w = window_of(&c, 0x20001234);
    CHECK_EQ(w.start, 0x20001000);
    CHECK_EQ(w.end, 0x20001000 + (8 << 20) - 1);
    c.pages = 3;
    CHECK_EQ(window_of(&c, 0x20003234).start, 0x20001000);
    struct targets t = { 0 };
    struct target *one = add(&t, 7, w, TARGET_NO_FRAME, 1);
    CHECK(targets_find(&t, 7, 0x20001000, NULL) == one);
    CHECK(targets_find(&t, 7, 0x20800fff, NULL) == one);
    CHECK(targets_find(&t, 7, 0x20801000, NULL) == NULL);
    CHECK(targets_find(&t, 7, 0x20000fff, NULL) == NULL);
    CHECK(targets_near(&t, 7, 0x20000ff8, 65536) == one);
    targets_release(&t);
}

/* J11: main calls a function whose frame has 10 KB, and the pattern stands there. */
static void a_large_first_frame_needs_a_larger_k(void)
{
    uint64_t bottom = 0x7fffffffe000, pattern = bottom - 10240, main_sp = bottom - 64;
    struct window_config c = usual;
    struct targets t = { 0 };

    struct target *one = add(&t, 7, window_of(&c, pattern), TARGET_NO_FRAME, 1);
    CHECK(targets_find(&t, 7, pattern, NULL) == one);
    CHECK(targets_find(&t, 7, main_sp, NULL) == NULL);
    CHECK(targets_near(&t, 7, main_sp, 65536) == one); /* and the callback reports it */
    CHECK(targets_near(&t, 7, main_sp + 1000000, 65536) == NULL);
    CHECK(targets_near(&t, 8, main_sp, 65536) == NULL);
    c.pages = 4;
    struct target *two = add(&t, 7, window_of(&c, pattern), TARGET_NO_FRAME, 2);
    CHECK(!one->live);
    CHECK(targets_find(&t, 7, pattern, NULL) == two && targets_find(&t, 7, main_sp, NULL) == two);
    targets_release(&t);
}

/* J14, figure 1: T1 and T2 of App1 are targets; T3 of App2 has a stack that overlaps T1's. */
static void overlapping_stacks_are_told_apart_by_their_frames(void)
{
    struct one_page app1_t1 = { 0x7ffff7d8a000, 0x111000 }, app1_t2 = { 0x7ffff6d8a000, 0x222000 };
    struct one_page app2_t3 = { 0x7ffff7d8a000, 0x333000 };
    struct translation in_t1 = through(&app1_t1), in_t2 = through(&app1_t2), in_t3 = through(&app2_t3);
    struct targets t = { 0 };

    struct target *t1 = add(&t, 0, window_of(&usual, 0x7ffff7d8ae50), 0x111fff, 1);
    struct target *t2 = add(&t, 0, window_of(&usual, 0x7ffff6d8ae50), 0x222fff, 2);
    uint64_t sp3 = 0x7ffff7d8a100;
    CHECK(window_has(t1->window, sp3)); /* the stack pointer alone would be wrong */
    CHECK(targets_find(&t, 0, sp3, &in_t3) == NULL);
    CHECK(targets_find(&t, 0, sp3, &in_t1) == t1);
    CHECK(targets_find(&t, 0, 0x7ffff6d8a100, &in_t2) == t2);
    struct target *t3 = add(&t, 0, window_of(&usual, sp3), 0x333fff, 3); /* now it is a target, too */
    CHECK(t1->live && t2->live);
    CHECK(targets_find(&t, 0, sp3, &in_t3) == t3);
    CHECK(targets_find(&t, 0, sp3, &in_t1) == t1);
    targets_release(&t);
}

static void a_page_that_is_not_there_is_nobodys(void)
{
    struct one_page elsewhere = { 0x1000, 0x2000 };
    struct translation tr = through(&elsewhere);
    struct targets t = { 0 };

    add(&t, 0, window_of(&usual, 0x7ffff7d8ae50), 0x111fff, 1);
    CHECK(targets_find(&t, 0, 0x7ffff7d8ae50, &tr) == NULL);
    targets_release(&t);
}

/* A forked child has its parent's page until one of them writes. */
static void a_fork_is_not_its_parent(void)
{
    struct one_page shared = { 0x7ffff7d8a000, 0x111000 };
    struct translation tr = through(&shared);
    struct targets t = { 0 };

    struct target *parent = add(&t, 0xa000, window_of(&usual, 0x7ffff7d8ae50), 0x111fff, 1);
    CHECK(targets_find(&t, 0xb000, 0x7ffff7d8ae50, &tr) == NULL);
    CHECK(targets_find(&t, 0xa000, 0x7ffff7d8ae50, &tr) == parent);
    struct target *child = add(&t, 0xb000, window_of(&usual, 0x7ffff7d8ae50), 0x111fff, 2); /* it says so itself */
    CHECK(parent->live);
    CHECK(targets_find(&t, 0xb000, 0x7ffff7d8ae50, &tr) == child);
    targets_release(&t);
}

static void keep_last(struct target *over, void *context)
{
    *(struct target **)context = over;
}

static void a_frame_that_is_used_again_is_another_thread(void) /* J13 */
{
    struct one_page page = { 0x7ffff7d8a000, 0x111000 };
    struct translation tr = through(&page);
    struct target *over = NULL, model = { .window = window_of(&usual, 0x7ffff7d8ae50), .frame = 0x111fff, .tid = 1 };
    struct targets t = { 0 };

    struct target *first = targets_add(&t, &model, keep_last, &over);
    model.tid = 2;
    struct target *second = targets_add(&t, &model, keep_last, &over);
    CHECK(over == first && !first->live && first->number != second->number);
    CHECK(targets_find(&t, 0, 0x7ffff7d8ae50, &tr) == second);
    model.window = window_of(&usual, 0x7fff12345678); /* the frame, at another address */
    struct target *third = targets_add(&t, &model, keep_last, &over);
    CHECK(over == second && !second->live);
    targets_retire(&t, third);
    CHECK(targets_find(&t, 0, 0x7fff12345678, NULL) == NULL);
    model.space = 0xa000; /* where spaces are known, whatever the frame says */
    first = targets_add(&t, &model, keep_last, &over);
    model.frame = TARGET_NO_FRAME;
    second = targets_add(&t, &model, keep_last, &over);
    CHECK(over == first && !first->live && second->live);
    targets_release(&t);
}

static void a_thread_pointer_tells_who_is_on_a_foreign_stack(void)
{
    struct target model = { .window = window_of(&usual, 0x7ffff7d8ae50), .space = 7, .pointer = 0x7f00 };
    struct targets t = { 0 };
    struct target *one = targets_add(&t, &model, NULL, NULL);

    CHECK(targets_find(&t, 7, 0x5000, NULL) == NULL);
    CHECK(targets_find_pointer(&t, 7, 0x7f00) == one);
    CHECK(targets_find_pointer(&t, 8, 0x7f00) == NULL);
    CHECK(targets_find_pointer(&t, 7, 0x7f08) == NULL);
    CHECK(targets_find_pointer(&t, 7, 0) == NULL);
    targets_release(&t);
}

/* ---- against a slow list ---- */

enum { MANY = 400, SPACES = 3 };

struct slow {
    struct window window;
    uint64_t space;
    bool live;
};

static uint64_t low_of(struct window w)
{
    return w.end; /* stacks grow down here */
}

static void slow_add(struct slow *all, size_t n, struct window w, uint64_t space)
{
    for (size_t i = 0; i < n; i++)
        if (all[i].space == space && low_of(all[i].window) <= w.start && low_of(w) <= all[i].window.start)
            all[i].live = false;
    all[n] = (struct slow){ w, space, true };
}

static size_t slow_find(const struct slow *all, size_t n, uint64_t space, uint64_t sp)
{
    for (size_t i = 0; i < n; i++)
        if (all[i].live && all[i].space == space && sp >= all[i].window.end && sp <= all[i].window.start)
            return i;
    return n;
}

static void the_list_answers_as_a_slow_one(void)
{
    static struct slow all[MANY];
    struct window_config c = { .page = 4096, .stack = 65536, .pages = 1 };
    struct targets t = { 0 };
    uint64_t found = 0;

    for (size_t n = 0; n < MANY; n++) {
        uint64_t space = 1 + dice(SPACES);
        struct window w = window_of(&c, 0x100000 + 1024ull * dice(8000));
        slow_add(all, n, w, space);
        add(&t, space, w, TARGET_NO_FRAME, n);
        if (dice(5) == 0) {
            unsigned over = dice((unsigned)n + 1);
            all[over].live = false;
            targets_retire(&t, t.all[over]);
        }
        for (int i = 0; i < 200; i++) {
            uint64_t asked = 1 + dice(SPACES), sp = 0xf0000 + dice(9000000);
            size_t slow = slow_find(all, n + 1, asked, sp);
            struct target *fast = targets_find(&t, asked, sp, NULL);
            found += fast != NULL;
            if (!CHECK_EQ(fast ? fast->number : n + 1, slow))
                return;
        }
    }
    CHECK(found > 1000);
    targets_release(&t);
}

int main(void)
{
    RUN(equations_1_and_2_give_the_papers_numbers);
    RUN(sizes_of_pages_and_stacks_are_settings);
    RUN(stacks_that_grow_upwards_are_mirrored);
    RUN(a_large_first_frame_needs_a_larger_k);
    RUN(overlapping_stacks_are_told_apart_by_their_frames);
    RUN(a_page_that_is_not_there_is_nobodys);
    RUN(a_fork_is_not_its_parent);
    RUN(a_frame_that_is_used_again_is_another_thread);
    RUN(a_thread_pointer_tells_who_is_on_a_foreign_stack);
    RUN(the_list_answers_as_a_slow_one);
    return check_done();
}
