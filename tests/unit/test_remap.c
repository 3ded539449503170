/* SPDX-License-Identifier: MIT */
/* Addresses as rules move them (map/remap.h), without a machine. */
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "format/text/text.h"
#include "map/remap.h"

static const char PROGRAM[] = "peet text 1\n"
                              "process 1 parent 0 program \"p\" command \"p\"\n"
                              "module process 1 path \"/p\" build \"\" bias 0\n"
                              "  segment 0x400000 0x8000 offset 0 r-x\n"
                              "  symbol 0x401000 64 code \"make\"\n"
                              "  symbol 0x404000 4096 data \"table\"\n"
                              "thread 0 process 1 parent 0 ordinal 0 name \"main\"\n"
                              "0 - thread_end 0 0\n"
                              "end\n";

static char path[] = "/tmp/peet-remap-XXXXXX";
static struct peet_trace *trace;

static void make_trace(void)
{
    struct peet_writer *w;
    struct peet_err err;
    int fd = mkstemp(path);
    FILE *in = fmemopen((void *)(uintptr_t)PROGRAM, sizeof PROGRAM - 1, "r");

    if (CHECK(fd >= 0) && CHECK_EQ(peet_writer_open_fd(fd, NULL, &w, &err), 0)) {
        if (CHECK_EQ(text_read(in, "program", w, &err), 0) && CHECK_EQ(peet_writer_close(w, &err), 0))
            CHECK_EQ(peet_trace_open(path, &trace, &err), 0);
        close(fd);
    }
    fclose(in);
}

/* NULL: the rules are refused. */
static struct remap *read_rules(const char *rules)
{
    char name[] = "/tmp/peet-rules-XXXXXX";
    struct remap *r = NULL;
    struct peet_err err;
    int fd = mkstemp(name);

    if (!CHECK(fd >= 0) || !CHECK(write(fd, rules, strlen(rules)) == (ssize_t)strlen(rules)))
        return NULL;
    close(fd);
    if (remap_read(name, trace, &r, &err) < 0)
        CHECK(err.text[0]);
    unlink(name);
    return r;
}

static void allocate(struct remap *r, uint64_t addr, uint64_t size)
{
    struct peet_event e = { .kind = PEET_EV_malloc, .args = 2, .site = 0x401010, .arg = { addr, size } };

    remap_event(r, 1, &e);
}

static void a_variable_moves_as_a_whole(void)
{
    struct remap *r = read_rules("move table to 0x900000\n");

    CHECK_EQ(remap_addr(r, 1, 0x404000), 0x900000);
    CHECK_EQ(remap_addr(r, 1, 0x404fff), 0x900fff);
    CHECK_EQ(remap_addr(r, 1, 0x405000), 0x405000);
    remap_free(r);
}

/* The first block comes while nothing is known to be anywhere. */
static void blocks_move_when_they_are_allocated(void)
{
    struct remap *r = read_rules("spread heap:make every 8 to 64 at 0x900000\n");

    CHECK_EQ(remap_addr(r, 1, 0x10008), 0x10008);
    allocate(r, 0x10000, 32);
    CHECK_EQ(remap_addr(r, 1, 0x10009), 0x900041);
    CHECK(remap_unused(r, 0) == NULL);
    remap_free(r);
}

static void a_block_that_wraps_around_memory_is_not_moved(void)
{
    struct remap *r = read_rules("move heap:make to 0x900000\n");

    allocate(r, 0xfffffffffffffff0, 64);
    CHECK_EQ(remap_addr(r, 1, 0xfffffffffffffff8), 0xfffffffffffffff8);
    CHECK_EQ(remap_addr(r, 1, 8), 8);
    allocate(r, 0x10000, 32);
    CHECK_EQ(remap_addr(r, 1, 0x10008), 0x900008);
    remap_free(r);
}

static void what_is_no_rule_is_refused(void)
{
    static const char *const RULES[] = { "move\n",
                                         "spread table every 0 to 8\n",
                                         "split table every 8 from 4 for 8\n",
                                         "spread table every 8 to 4\n",
                                         "move 0x1000+0 to 0x2000\n",
                                         "move heap:make#x to 0x2000\n",
                                         "split table every 8 from 0xffffffffffffffff for 2\n" };

    for (size_t i = 0; i < sizeof RULES / sizeof *RULES; i++) {
        struct remap *r = read_rules(RULES[i]);
        if (!CHECK(r == NULL))
            printf("# %s", RULES[i]);
        remap_free(r);
    }
}

int main(void)
{
    make_trace();
    if (trace) {
        RUN(a_variable_moves_as_a_whole);
        RUN(blocks_move_when_they_are_allocated);
        RUN(a_block_that_wraps_around_memory_is_not_moved);
        RUN(what_is_no_rule_is_refused);
    }
    peet_trace_free(trace);
    unlink(path);
    return check_done();
}
