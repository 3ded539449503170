/* SPDX-License-Identifier: MIT */
/* For tests of parallel loops: programs with such loops, and the source that deals their iterations out. */
#ifndef TESTS_UNIT_LOOPS_H
#define TESTS_UNIT_LOOPS_H

#include <stdarg.h>

#include "map/source/source_doall.h"
#include "tests/unit/text.h"

static uint64_t state = 11;

static inline uint64_t draw(uint64_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
}

/* ---- programs ---- */

static char *program;
static size_t program_size;
static FILE *out;

/* b1 computes, b2 loads, b3 stores; l1 is a row of loads, as many as its second word says. */
static inline void program_begin(unsigned threads)
{
    out = open_memstream(&program, &program_size);
    fputs("peet text 1\nprocess 1 parent 0 program \"a\" command \"a\"\n", out);
    for (unsigned i = 1; i <= threads; i++)
        fprintf(out, "thread %u process 1 parent 0 ordinal %u name \"t%u\"\n", i, i - 1, i);
    fputs("block b1\n  0x401000 4 plain\nblock b2 slots 1\n  0x401010 4 plain, load 8 [s0]\n"
          "block b3 slots 1\n  0x401014 4 plain, store 8 [s0]\n"
          "loop l1 values 1 counts 1\n  repeat c0, step v0 = v0+8\n    b2, s0 = v0\n  done\n",
          out);
}

__attribute__((format(printf, 1, 2))) static inline void line(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vfprintf(out, format, ap);
    va_end(ap);
    fputc('\n', out);
}

static inline struct peet_trace *program_end(unsigned threads)
{
    struct peet_trace *t = NULL;
    struct peet_err err;

    for (unsigned i = 1; i <= threads; i++)
        line("%u - thread_end 0 0", i);
    fputs("end\n", out);
    fclose(out);
    if (fine(import_bytes(program, program_size, "a", 64, &err), &err))
        fine(peet_trace_open(path_of("a"), &t, &err), &err);
    free(program);
    return t;
}

static inline void mix(uint64_t *hash, uint64_t value)
{
    *hash = (*hash ^ value) * 0x9e3779b97f4a7c15;
    *hash ^= *hash >> 29;
}

static inline struct source *deal(struct peet_trace *t, uint32_t window, uint64_t limit)
{
    struct source *inner, *s = NULL;
    struct peet_err err;
    struct doall_config config = { .window = window, .limit = limit };

    if (fine(source_open_trace(t, true, &inner, &err), &err))
        fine(source_take_doall(inner, &config, &s, &err), &err);
    return s;
}

/* A loop of `count` iterations with `records` records each. */
static inline struct peet_trace *long_loop(unsigned count, unsigned records)
{
    program_begin(1);
    line("1 - doall_fork %u", count);
    for (unsigned i = 0; i < count; i++) {
        line("1 - doall_start %u", i);
        for (unsigned k = 0; k < records / 2; k++)
            line("1 - b2 0x%x", 0x500000 + k * 8);
        line("1 - doall_finish %u", i);
    }
    line("1 - doall_join %u", count);
    return program_end(1);
}

#endif
