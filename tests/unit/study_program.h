/* SPDX-License-Identifier: MIT */
/* Programs of which tests of studies know the answers, and what these say. */
#ifndef TESTS_UNIT_STUDY_PROGRAM_H
#define TESTS_UNIT_STUDY_PROGRAM_H

#include <stdarg.h>

#include "study/study.h"
#include "tests/unit/text.h"

/* ---- programs ---- */

static char *program;
static size_t program_size;
static FILE *out;

/* The begin of a program with that number of threads; the first one creates all others. b1 is one instruction, l1 a sequence of them;
 * b2, b3 and b4 load, store and update 8 bytes, b5 loads 4, b6 stores 64; b7 loads and b8 stores a number of bytes that a slot gives. */
static inline void program_begin(unsigned threads)
{
    out = open_memstream(&program, &program_size);
    fputs("peet text 1\nprocess 1 parent 0 program \"a\" command \"a\"\n"
          "module process 1 path \"/bin/a\" build \"\" bias 0\n  segment 0x401000 0x1000 offset 0 r-x\n"
          "  symbol 0x401000 0x10 code \"work\"\n  symbol 0x401010 0x40 code \"share\"\n"
          "  symbol 0x500000 0x100 data \"table\"\n",
          out);
    for (unsigned i = 1; i <= threads; i++)
        fprintf(out, "thread %u process 1 parent %d ordinal %u name \"t%u\"\n", i, i > 1, i > 1 ? i - 2 : 0, i);
    fputs(
        "block b1\n  0x401000 4 plain\nblock b2 slots 1\n  0x401010 4 plain, load 8 [s0]\n"
        "block b3 slots 1\n  0x401014 4 plain, store 8 [s0]\nblock b4 slots 1\n  0x401018 4 plain, update 8 [s0]\n"
        "block b5 slots 1\n  0x40101c 4 plain, load 4 [s0]\nblock b6 slots 1\n  0x401020 4 plain, store 64 [s0]\n"
        "block b7 slots 2\n  0x401024 4 plain, load 1*s1 [s0]\nblock b8 slots 2\n  0x401028 4 plain, store 1*s1 [s0]\n"
        "loop l1 values 1 counts 1\n  repeat c0, step v0 = v0+1\n    b1\n  done\n",
        out);
    for (unsigned i = 2; i <= threads; i++)
        fprintf(out, "%u - thread_start 1\n", i);
}

static inline void work(unsigned thread, uint64_t instructions)
{
    if (instructions)
        fprintf(out, "%u - l1 0 %" PRIu64 "\n", thread, instructions);
}

static inline void __attribute__((format(printf, 2, 3))) does(unsigned thread, const char *format, ...)
{
    va_list ap;

    fprintf(out, "%u - ", thread);
    va_start(ap, format);
    vfprintf(out, format, ap);
    va_end(ap);
    fputc('\n', out);
}

static inline void create_all(unsigned threads)
{
    for (unsigned i = 2; i <= threads; i++)
        does(1, "thread_create %u", i);
}

static inline void join_all(unsigned threads)
{
    for (unsigned i = 2; i <= threads; i++)
        does(1, "thread_join %u", i);
}

/* Ends the program; it is then the trace "a". */
static inline bool program_end(unsigned threads)
{
    for (unsigned i = 1; i <= threads; i++)
        does(i, "thread_end 0 0");
    fputs("end\n", out);
    fclose(out);
    bool ok = import(program, "a");
    free(program);
    return ok;
}

/* ---- answers ---- */

static struct study_answer answer;

/* Runs a study on the program, with an option (a flag or a number) set; option NULL: with granules of 8 bytes. */
static inline bool ask_with(const char *name, const char *option, uint64_t value)
{
    const struct study *s = study_find(name);
    struct study_state *asked = study_state_new(s);
    struct peet_trace *t;
    struct peet_err err;

    for (const struct opt *o = s->options; o && o->name; o++) {
        bool is_usual = !option && strcmp(o->name, "grain") == 0;
        if (!is_usual && !(option && strcmp(o->name, option) == 0))
            continue;
        if (o->type == OPT_FLAG)
            *(bool *)study_option(s, asked, o->name) = value;
        else
            *(uint64_t *)study_option(s, asked, o->name) = is_usual ? 8 : value;
    }
    bool ok = fine(peet_trace_open(path_of("a"), &t, &err), &err);
    if (ok) {
        ok = fine(study_run(s, asked, t, &answer, NULL, &err), &err);
        peet_trace_free(t);
    }
    study_state_free(asked);
    return ok;
}

static inline bool ask(const char *name)
{
    return ask_with(name, NULL, 0);
}

static inline const struct table *table_of(const char *name)
{
    for (const struct table *t = answer.result.first; t; t = t->next)
        if (!strcmp(t->name, name))
            return t;
    CHECK_EQ(name, "a table of the answer");
    return answer.result.first;
}

static inline const struct cell *cell_of(const char *table, size_t row, const char *column)
{
    static const struct cell NONE;
    const struct table *t = table_of(table);

    for (size_t i = 0; i < t->columns; i++)
        if (!strcmp(t->column[i].name, column) && CHECK(row < t->rows))
            return &t->cell[row * t->columns + i];
    CHECK_EQ(column, "a cell of the table");
    return &NONE;
}

static inline uint64_t number(const char *table, size_t row, const char *column)
{
    return cell_of(table, row, column)->count;
}

static inline uint64_t sum(const char *table, const char *column)
{
    uint64_t n = 0;

    for (size_t i = 0; i < table_of(table)->rows; i++)
        n += number(table, i, column);
    return n;
}

static inline bool has_note(const char *table, const char *words)
{
    const struct table *t = table_of(table);

    for (size_t i = 0; i < t->notes; i++)
        if (strstr(t->note[i], words))
            return true;
    return false;
}

#endif
