/* SPDX-License-Identifier: MIT */
/* Programs of one case each, written as text, on a machine with one core: the block engine (sim/exec) counts what the record engine reports, in whole
 * runs and in samples. */
#include <stdarg.h>

#include "map/source/source_sample.h"
#include "study/profile/sampling/estimate_profile.h"
#include "study/profile/profiler.h"
#include "study/profile/profile.h"
#include "tests/unit/text.h"

/* ---- programs ---- */

static char *program;
static size_t program_size;
static FILE *out;

/* b1 calls, and its call returns to b2, where the loop l1 begins, too; b3 is after the loop; b4 is called, and returns; b5 calls itself, and its call
 * returns to b6, which returns. b1 to b4 load 8 bytes, b5 and b6 nothing, b7 16; b8, the body of l2, loads and stores 4. */
static void program_begin(void)
{
    out = open_memstream(&program, &program_size);
    fputs(
        "peet text 1\nprocess 1 parent 0 program \"a\" command \"a\"\nprocess 2 parent 1 program \"a\" command \"a\"\n"
        "thread 1 process 1 parent 0 ordinal 0 name \"t\"\nthread 2 process 2 parent 0 ordinal 0 name \"u\"\n"
        "block b1 slots 1\n  0x1000 4 call, load 8 [s0]\nblock b2 slots 1\n  0x1004 4 branch, load 8 [s0]\n"
        "block b3 slots 1\n  0x1008 4 branch, load 8 [s0]\nblock b4 slots 1\n  0x2000 4 return, load 8 [s0]\n"
        "block b5\n  0x3000 4 call\nblock b6\n  0x3004 4 return\nblock b7 slots 1\n  0x4000 4 plain, load 16 [s0]\n"
        "block b8 slots 2\n  0x5000 4 plain, load 4 [s0]\n  0x5004 4 branch, store 4 [s1]\n"
        "loop l1 values 1 counts 1\n  repeat c0, step v0 = v0+8\n    b2, s0 = v0\n  done\n"
        "loop l2 values 2 counts 1\n  repeat c0, step v0 = v0+4, step v1 = v1+4\n    b8, s0 = v0, s1 = v1\n  done\n",
        out);
}

static void __attribute__((format(printf, 2, 3))) does(unsigned times, const char *format, ...)
{
    va_list ap;

    for (; times > 0; times--) {
        va_start(ap, format);
        fputs("1 - ", out);
        vfprintf(out, format, ap);
        fputc('\n', out);
        va_end(ap);
    }
}

static struct peet_trace *program_end(void)
{
    struct peet_trace *t = NULL;
    struct peet_err err;

    fputs("end\n", out);
    fclose(out);
    if (import(program, "a"))
        fine(peet_trace_open(path_of("a"), &t, &err), &err);
    free(program);
    return t;
}

/* ---- profiles ---- */

static void never_skip(struct source *s, uint32_t context, uint64_t references, uint32_t line_bytes)
{
    (void)s, (void)context, (void)references, (void)line_bytes;
}

struct run {
    struct source *source;
    struct source_kind kind; /* of one that could leave things out, and never does */
    struct profile *profile;
};

/* Runs the block engine, or, if observes_all, the record engine. length: references of a window of a sample, of which there is one in 3 * length; 0: no
 * sample. */
static bool run(struct peet_trace *t, bool observes_all, uint64_t length, struct run *ret)
{
    struct sample_config sampling = { .length = length, .every = 3 * length, .seed = 1 };
    struct machine_config c;
    struct source *inner;
    struct profiler *x;
    struct peet_err err;

    *ret = (struct run){ 0 };
    if (!t || !fine(config_load(&c, "memspy-16k", NULL, 0, &err), &err)
        || !fine(sampled_geometry(&c, &sampling, &err), &err) || !fine(source_open_trace(t, false, &inner, &err), &err))
        return false;
    ret->kind = *inner->kind;
    if (length)
        ret->kind.skip = never_skip;
    inner->kind = &ret->kind;
    if (!fine(profiler_open_source(inner, &c, length ? &sampling : NULL, &ret->source, &x, &err), &err))
        return false;
    profiler_set_debug(x, &(struct profiler_debug){ .observe_all = observes_all, .jit_threshold = 1 });
    bool ok = fine(profiler_run(x, NULL, NULL, &err), &err);
    ret->profile = profiler_take(x);
    return ok;
}

static void drop(struct run *r)
{
    profile_free(r->profile);
    source_free(r->source);
}

/* Cycles of a block, by the number of calls on its path. */
static uint64_t compute_of(const struct profile *p, uint32_t block, unsigned calls)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < p->by_paths; i++) {
        unsigned depth = 0;
        for (uint32_t n = p->by_path[i].node; n; n = p->paths.node[n].parent)
            depth++;
        sum += p->by_path[i].block == block && depth == calls ? p->by_path[i].compute : 0;
    }
    return sum;
}

/* ---- cases ---- */

static void calls_are_followed_into_loops_that_are_passed_over(void)
{
    program_begin();
    for (unsigned i = 0; i < 3; i++) { /* windows of 40 in 120, the last ones */
        does(1, "b1 0x100000");
        does(1, "b4 0x100000");
        does(1, "l1 0x100000 38");
        does(80, "b3 0x100000");
    }
    struct peet_trace *t = program_end();
    for (unsigned observes_all = 0; observes_all < 2; observes_all++) {
        struct run r;
        if (!run(t, observes_all, 40, &r))
            return;
        CHECK(compute_of(r.profile, 3, 0) > 0);
        CHECK_EQ(compute_of(r.profile, 3, 1), 0);
        drop(&r);
    }
    peet_trace_free(t);
}

static void what_library_code_refers_to_moves_windows(void)
{
    static const unsigned CASES[][3] = { { 50, 60, 200 }, { 250, 160, 100 }, { 150, 60, 150 }, { 10, 500, 10 } };

    for (unsigned i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct sample_counts counts[2];
        program_begin();
        does(CASES[i][0], "b3 0x100000");
        does(1, "range_write 0x200000 %u", 32 * CASES[i][1]);
        does(CASES[i][2], "b3 0x100000");
        struct peet_trace *t = program_end();
        for (unsigned observes_all = 0; observes_all < 2; observes_all++) {
            struct run r;
            if (!run(t, observes_all, 100, &r))
                return;
            counts[observes_all] = sample_counts(r.source, SAMPLE_ALL);
            drop(&r);
        }
        CHECK_EQ(counts[0].observed, counts[1].observed);
        CHECK_EQ(counts[0].between, counts[1].between);
        CHECK_EQ(counts[0].windows, counts[1].windows);
        peet_trace_free(t);
    }
}

static void samples_of_what_was_cut_off_end(void)
{
    program_begin();
    does(1000, "b3 0x100000");
    struct peet_trace *t = program_end();
    for (unsigned observes_all = 0; observes_all < 2; observes_all++) {
        struct run r;
        if (!run(t, observes_all, 7, &r))
            return;
        struct sample_counts counts = sample_counts(r.source, SAMPLE_ALL);
        CHECK_EQ(counts.observed + counts.between, 1000);
        drop(&r);
    }
    peet_trace_free(t);
}

static void recursion_that_is_too_deep_comes_back(void)
{
    enum { DEPTH = 20000 };

    program_begin();
    does(1, "b1 0x100000");
    does(DEPTH, "b5");
    does(1, "b4 0x100000");
    does(DEPTH, "b6");
    does(1, "b3 0x100000");
    struct peet_trace *t = program_end();
    for (unsigned observes_all = 0; observes_all < 2; observes_all++) {
        struct run r;
        if (!run(t, observes_all, 0, &r))
            return;
        CHECK_EQ(compute_of(r.profile, 6, 2), DEPTH - 1);
        CHECK_EQ(compute_of(r.profile, 6, 1), 1);
        drop(&r);
    }
    peet_trace_free(t);
}

static void what_goes_over_the_end_of_memory_is_in_two_lines(void)
{
    program_begin();
    does(20, "b7 0xfffffffffffffff8");
    struct peet_trace *t = program_end();
    for (unsigned observes_all = 0; observes_all < 2; observes_all++) {
        struct run r;
        if (!run(t, observes_all, 0, &r))
            return;
        CHECK_EQ(r.profile->references, 20);
        CHECK_EQ(r.profile->result.memory->misses, 2);
        drop(&r);
    }
    peet_trace_free(t);
}

static void processes_have_data_of_their_own(void)
{
    program_begin();
    does(1, "name_data \"mine\" 0x100000 4096");
    for (unsigned i = 0; i < 100; i++) {
        does(1, "b3 0x100000");
        fputs("2 - b3 0x100000\n", out);
    }
    struct peet_trace *t = program_end();
    for (unsigned observes_all = 0; observes_all < 2; observes_all++) {
        struct run r;
        uint64_t mine = 0, all = 0;
        if (!run(t, observes_all, 0, &r))
            return;
        for (size_t i = 0; i < r.profile->accesses; i++) {
            const struct access_counts *c = &r.profile->access[i];
            all += c->references;
            mine += strcmp(objects_info(r.profile->objects, c->object)->name, "mine") ? 0 : c->references;
        }
        CHECK_EQ(all, 200);
        CHECK_EQ(mine, 100);
        drop(&r);
    }
    peet_trace_free(t);
}

/* Lines of 16 bytes, so that four trips stay on each, in a cache of 16 KB. */
static void lines_of_one_loop_push_each_other_out(void)
{
    static const struct {
        unsigned second, misses, again; /* misses in the first run, and in each later run */
    } CASES[] = {
        { 0x104000, 80, 80 }, /* in one set in all iterations */
        { 0x104008, 60,
          58 }, /* in one set in two of four iterations, after which each hits once; the first and the last line stay */
        { 0x104010, 20, 18 }, /* never in one set in one iteration */
        { 0x100000, 10, 0 },  /* the same */
    };
    enum { RUNS = 4000 }; /* so that it becomes machine code, and windows of time are long enough for misses of that */

    for (unsigned i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        program_begin();
        does(RUNS, "l2 0x100000 0x%x 40", CASES[i].second);
        struct peet_trace *t = program_end();
        for (unsigned observes_all = 0; observes_all < 2; observes_all++) {
            struct run r;
            if (!run(t, observes_all, 0, &r))
                return;
            CHECK_EQ(r.profile->references, RUNS * 80);
            CHECK_EQ(r.profile->result.memory->misses, CASES[i].misses + (RUNS - 1) * CASES[i].again);
            drop(&r);
        }
        peet_trace_free(t);
    }
}

int main(void)
{
    if (!begin())
        return 1;
    RUN(calls_are_followed_into_loops_that_are_passed_over);
    RUN(what_library_code_refers_to_moves_windows);
    RUN(samples_of_what_was_cut_off_end);
    RUN(recursion_that_is_too_deep_comes_back);
    RUN(what_goes_over_the_end_of_memory_is_in_two_lines);
    RUN(processes_have_data_of_their_own);
    RUN(lines_of_one_loop_push_each_other_out);
    return end();
}
