/* SPDX-License-Identifier: MIT */
/* For tests that need traces from text and text from traces. The traces are "a" and "b", in a separate folder. */
#ifndef TESTS_UNIT_TEXT_H
#define TESTS_UNIT_TEXT_H

#include <stdlib.h>
#include <unistd.h>

#include "format/text/text.h"
#include "tests/unit/check.h"

static char folder[200];
static const struct text_options EXPANDED = { .count = UINT64_MAX };
static const struct text_options COMPACT = { .count = UINT64_MAX, .compact = true };

static inline const char *path_of(const char *name)
{
    static char path[2][300];
    static int which;

    which = !which;
    snprintf(path[which], sizeof path[which], "%s/%s", folder, name);
    return path[which];
}

static inline bool fine(int r, const struct peet_err *err)
{
    if (r < 0)
        printf("# %s\n", err->text);
    return CHECK(r >= 0);
}

/* Text of n bytes as the trace `name`; chunk_words: words of a chunk; 0: the default. */
static inline int import_bytes(const char *text, size_t n, const char *name, size_t chunk_words, struct peet_err *err)
{
    struct peet_writer_config config = { .chunk_words = chunk_words };
    struct peet_writer *w;
    FILE *in = n ? fmemopen((void *)(uintptr_t)text, n, "r") : fopen("/dev/null", "r");
    int r = peet_writer_open(path_of(name), &config, &w, err);

    if (r == 0) {
        struct peet_err later;
        r = text_read(in, "in", w, err);
        if (peet_writer_close(w, &later) < 0 && r == 0) {
            *err = later;
            r = later.code;
        }
    }
    fclose(in);
    return r;
}

static inline bool import(const char *text, const char *name)
{
    struct peet_err err;

    return fine(import_bytes(text, strlen(text), name, 0, &err), &err);
}

/* The trace `name` as text, to be freed; NULL when that fails. */
static inline char *dump(const char *name, const struct text_options *o, uint64_t *ret_damaged)
{
    struct peet_err err;
    struct peet_trace *t;
    char *text = NULL;
    size_t size;
    uint64_t damaged = 0;

    if (!fine(peet_trace_open(path_of(name), &t, &err), &err))
        return NULL;
    FILE *out = open_memstream(&text, &size);
    int r = text_write(t, o, out, &damaged, &err);
    fclose(out);
    peet_trace_free(t);
    if (ret_damaged)
        *ret_damaged = damaged;
    if (!fine(r, &err)) {
        free(text);
        return NULL;
    }
    return text;
}

/* Where two texts differ, for people. */
static inline bool same_text(const char *a, const char *b)
{
    if (a && b && strcmp(a, b) == 0)
        return CHECK(true);
    size_t line = 1;
    for (; a && b && *a && *a == *b; a++, b++)
        line += *a == '\n';
    printf("# texts differ in line %zu: '%.60s' and '%.60s'\n", line, a ? a : "(none)", b ? b : "(none)");
    return CHECK(false);
}

/* Makes the folder; false when that is not possible. */
static inline bool begin(void)
{
    const char *tmp = getenv("TMP");

    snprintf(folder, sizeof folder, "%s/peet-text.XXXXXX", tmp ? tmp : "/tmp");
    return mkdtemp(folder) != NULL;
}

/* What main returns. */
static inline int end(void)
{
    unlink(path_of("a"));
    unlink(path_of("b"));
    rmdir(folder);
    return check_done();
}

/* One of everything that a schema can hold. */
static const char EVERYTHING[] =
    "peet text 1\n"
    "meta \"key\" \"a \\\"quoted\\\" value\\n\\t\\\\ \\x01\xc3\xa4\"\n"
    "process 1 parent 0 program \"/bin/a\" command \"a -p 2\"\n"
    "process 2 parent 1 program \"\" command \"\"\n"
    "module process 1 path \"/bin/a\" build \"ab12\" bias 0xffffffffffff0000\n"
    "  segment 0x401000 0x1000 offset 0x1000 r-x\n"
    "  segment 0x402000 0x1000 offset 0x2000 9\n"
    "  symbol 0x401000 0x40 code \"main\"\n"
    "  symbol 0x404000 0x8 data \"x\"\n"
    "range process 1 0x7ffe0000 0x21000 rw- name \"[stack]\"\n"
    "thread 1 process 1 parent 0 ordinal 0 name \"main\"\n"
    "thread 4294967294 process 2 parent 1 ordinal 7 name \"\"\n"
    "block b1 slots 4\n"
    "  t0 = and s0 0xff\n"
    "  t1 = add r0 s1*8+16 width 4\n"
    "  t2 = sub 0 t1-1\n"
    "  t3 = mul t1 r15\n"
    "  t4 = or t1 0xffffffffffffffff\n"
    "  t5 = xor t1 0x0\n"
    "  t6 = shl t1 0x3\n"
    "  t7 = shr t1 0x3\n"
    "  t8 = sar t1 s3\n"
    "  t9 = sext t1 0x20\n"
    "  t10 = zext t1 0x8\n"
    "  0x401000 4 plain\n"
    "  0x401004 3 mul atomic acquire release, load 8 [s0+16], store 8 [r0-8] if s2.63\n"
    "  0x401007 4 vector string, load 4*t0 [s1+s2*8+0x4000] down, update 4 [t1], prefetch 64 [s2*1-0x400] if t0.0\n"
    "  0x40100b 9 fence fence_ll fence_ss fence_full kernel flags 0x8100, load 8 [s2+s1] value s3\n"
    "  0x401014 255 div, store 16777215 [0x0]\n"
    "  0x401113 0 call -> 0x401200, store 8 [0xffffffffffffff00]\n"
    "  r0 = r0-32\n"
    "  r15 = t0\n"
    "  r2 = 0x1234\n"
    "1 0 b1 0x1003 0x2000 0x8 0xffffffffffffffff\n"
    "block b2 slots 2\n"
    "  0x401200 4 fp, load 8 [s0]\n"
    "  0x401204 4 branch -> 0x401200, load 4 [s1+0x1000]\n"
    "loop l1 values 3 counts 2\n"
    "  repeat c0, enter v1 = v0+8, enter v2 = 0xfffffffffffffff8, step v0 = v0+64, step v1 = v1-0x1000\n"
    "    b2, s0 = v0, s1 = v1+16\n"
    "    repeat 2, step v2 = v2+1\n"
    "      b2, s0 = 0x1000, s1 = v2\n"
    "    done\n"
    "    repeat c1\n"
    "      b2, s0 = v0, s1 = v1\n"
    "    done\n"
    "  done\n"
    "1 6 l1 0x5000 0x0 0x0 2 3\n"
    "1 30 thread_end 0 0\n"
    "end\n";

#endif
