/* SPDX-License-Identifier: MIT */
/* The verbs cc, c++ and fortran: a compiler's command line, with the options that call `peet as` and link the runtime.
 * Whether the compiler will link is derived from its options. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/asm/asm.h"

enum { MAX_RESPONSE_DEPTH = 8 }; /* response files within response files */

/* A compiler's command line, and what its options say. */
struct driver_line {
    char **word; /* as it is executed */
    size_t words;
    bool has_input;                           /* a source, an object or a library is named */
    bool stops_early;                         /* nothing is linked: -c, -S, -E … */
    bool is_shared, is_static, is_static_pie; /* the result of linking: -shared, -static, -static-pie */
    bool is_part;                             /* -r: an object is the result */
    bool has_lto;                             /* link-time optimization */
    bool is_other_machine;                    /* code for another machine than x86-64, as by -m32 */
    bool is_absolute, is_library;             /* the last option of the code model: -fno-pie; -fpic */
    bool has_no_plt;                          /* -fno-plt */
};

static void driver_add_take(struct driver_line *l, char *text)
{
    l->word = mem_room(l->word, l->words + 1, sizeof *l->word);
    l->word[l->words++] = text;
    l->word[l->words] = NULL;
}

static void driver_add(struct driver_line *l, const char *text)
{
    driver_add_take(l, mem_string(text));
}

static bool driver_is_one_of(const char *text, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(text, *list))
            return true;
    return false;
}

static bool driver_begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

static bool driver_takes_value(const char *option)
{
    static const char *const those[] = {
        "-o",
        "-I",
        "-x",
        "-include",
        "-L",
        "-D",
        "-U",
        "-T",
        "-u",
        "-z",
        "-Xlinker",
        "-MF",
        "-MT",
        "-MQ",
        "-isystem",
        "-idirafter",
        "-iquote",
        "-imacros",
        "-iprefix",
        "--param",
        "-l",
        "-aux-info",
        "-Xassembler",
        "-isysroot",
        "-e",
        "-A",
        "-B",
        "-wrapper",
        "-J",
        "-G",
        "--sysroot",
        "-imultilib",
        "-dumpbase",
        "-dumpdir",
        "-dumpbase-ext",
        "-Xpreprocessor",
        NULL,
    };

    return driver_is_one_of(option, those);
}

static void driver_note_code_model(struct driver_line *l, const char *option)
{
    static const char *const library[] = { "-fPIC", "-fpic", NULL }, *const executable[] = { "-fPIE", "-fpie", NULL };
    static const char *const neither[] = { "-fno-pic", "-fno-PIC", "-fno-pie", "-fno-PIE", NULL };

    if (!driver_is_one_of(option, library) && !driver_is_one_of(option, executable)
        && !driver_is_one_of(option, neither))
        return;
    l->is_library = driver_is_one_of(option, library);
    l->is_absolute = driver_is_one_of(option, neither);
}

static void driver_note_option(struct driver_line *l, const char *option)
{
    static const char *const early[] = { "-c", "-S", "-E", "-M", "-MM", "-fsyntax-only", NULL };
    static const char *const other[] = { "-m32", "-mx32", "-m16", NULL };
    static const char *const fixed[] = { "-static", "-static-pie", NULL };

    l->stops_early |= driver_is_one_of(option, early);
    l->is_shared |= !strcmp(option, "-shared");
    l->is_static |= driver_is_one_of(option, fixed);
    l->is_static_pie |= !strcmp(option, "-static-pie");
    l->is_part |= !strcmp(option, "-r");
    l->has_no_plt |= !strcmp(option, "-fno-plt");
    l->is_other_machine |= driver_is_one_of(option, other);
    if (driver_begins(option, "-flto"))
        l->has_lto = true;
    else if (!strcmp(option, "-fno-lto"))
        l->has_lto = false;
    driver_note_code_model(l, option);
}

static void driver_note_response_file(struct driver_line *l, const char *path, unsigned depth);

/* Notes one word; returns whether the next word is its value. */
static bool driver_note_word(struct driver_line *l, const char *word, unsigned depth)
{
    if (word[0] == '@' && depth < MAX_RESPONSE_DEPTH)
        driver_note_response_file(l, word + 1, depth + 1);
    else if (word[0] != '-' || !word[1])
        l->has_input = true;
    else
        driver_note_option(l, word);
    return driver_takes_value(word);
}

/* Notes the words of a response file, with its quotes and backslashes. */
static void driver_note_response_file(struct driver_line *l, const char *path, unsigned depth)
{
    FILE *in = fopen(path, "r");
    char word[4096], quote = 0;
    size_t n = 0;
    bool is_word = false, is_value = false;

    for (int c = 0; in && c != EOF;) {
        c = getc(in);
        if (c == EOF || (!quote && isspace(c))) {
            word[n] = 0;
            if (is_word)
                is_value = !is_value && driver_note_word(l, word, depth);
            n = 0;
            is_word = false;
        } else if (quote ? c == quote : c == '"' || c == '\'') {
            quote = quote ? 0 : (char)c;
            is_word = true;
        } else {
            if (c == '\\' && (c = getc(in)) == EOF)
                break;
            if (n + 1 < sizeof word)
                word[n++] = (char)c;
            is_word = true;
        }
    }
    if (in)
        fclose(in);
}

/* Clang has a built-in assembler and cannot reserve registers. */
static int driver_refuse_clang(const char *compiler, struct peet_err *err)
{
    const char *path = getenv("PATH"), *slash = strrchr(compiler, '/');
    char *real = strchr(compiler, '/') ? realpath(compiler, NULL) : NULL;

    for (const char *p = path ? path : ""; !real && *p && !slash; p += p[strcspn(p, ":")] == ':') {
        size_t n = strcspn(p, ":");
        char *name = mem_format("%.*s/%s", (int)n, p, compiler);
        real = access(name, X_OK) == 0 ? realpath(name, NULL) : NULL;
        free(name);
        p += n;
    }
    const char *base = real ? strrchr(real, '/') + 1 : compiler;
    int r =
        strstr(base, "clang") || strstr(slash ? slash : compiler, "clang")
            ? err_set(err, PEET_ERR_USAGE, "'%s' is Clang, which cannot leave registers free: GCC is needed", compiler)
            : 0;
    free(real);
    return r;
}

/* The compiler's name may consist of a wrapper, the compiler and its arguments, separated by blanks. */
static int driver_add_compiler(struct driver_line *l, const char *compiler, struct peet_err *err)
{
    for (const char *p = compiler; *(p += strspn(p, " "));) {
        size_t n = strcspn(p, " ");
        char *word = mem_format("%.*s", (int)n, p);
        driver_add(l, word);
        int r = *word == '-' ? 0 : driver_refuse_clang(word, err);
        free(word);
        if (r < 0)
            return r;
        p += n;
    }
    return l->words ? 0 : err_set(err, PEET_ERR_USAGE, "no compiler is named");
}

/* The runtime, and the wrappers of OpenMP's library if the program links it. They are linker options, because a file
 * name would be read as -x says. */
static void driver_add_runtime(struct driver_line *l, const char *folder)
{
    const char *kind = l->is_static ? "-static" : "";

    driver_add_take(l, mem_format("-Wl,--whole-archive,%s/libpeet-rt%s.a,--no-whole-archive,%s/libpeet-omp%s.a", folder,
                                  kind, folder, kind));
    if (l->is_static) {
        driver_add_take(l, mem_format("-Wl,@%s/wrap", folder));
        if (l->is_static_pie) /* see runtime/real.c */
            driver_add(l, "-Wl,-e,peet_rt_start");
        return;
    }
    driver_add(l, "-Wl,--export-dynamic-symbol=peet_rt_*");
    driver_add(l, "-lpthread");
    driver_add(l, "-ldl");
}

/* Options for code that records itself. */
static void driver_add_options(struct driver_line *l, const struct asm_driver *d)
{
    static const char *const compile[] = { "-ffixed-r14", "-ffixed-r15", "-fident", "-masm=att" };

    for (size_t i = 0; i < sizeof compile / sizeof *compile; i++)
        driver_add(l, compile[i]);
    if (!l->has_no_plt) /* with -fno-plt, linkers need relaxable relocations of thread-local variables */
        driver_add(l, "-Wa,-mrelax-relocations=no");
    if (l->is_library || l->is_absolute)
        driver_add(l, l->is_library ? "-Wa,--peet-library" : "-Wa,--peet-absolute");
    if (d->level)
        driver_add_take(l, mem_format("-Wa,--peet-level=%s", level_name(d->level)));
    if (d->all_addresses)
        driver_add(l, "-Wa,--peet-brute");
    if (d->has_hooks)
        driver_add(l, "-Wa,--peet-order");
    if (l->has_lto)
        driver_add(l, "-fno-lto");
    if (!l->stops_early && !l->is_part)
        driver_add(l, "-Wl,--no-relax");
}

int asm_driver_arguments(const struct asm_driver *d, int arguments, char **argument, char ***ret, struct peet_err *err)
{
    struct driver_line l = { 0 };
    bool is_value = false;
    int r = driver_add_compiler(&l, d->compiler, err);

    if (r < 0) {
        asm_arguments_free(l.word);
        return r;
    }
    if (d->level != LEVEL_events)
        driver_add_take(&l, mem_format("-B%s", d->folder));
    for (int i = 0; i < arguments; i++) {
        is_value = !is_value && driver_note_word(&l, argument[i], 0);
        driver_add(&l, argument[i]);
    }
    if (l.is_other_machine)
        d->warn("nothing is recorded: only x86-64 code can be");
    else if (l.has_input) {
        if (l.has_lto && d->level != LEVEL_events)
            d->warn("-flto is left out: code must pass through the assembler");
        driver_add(&l, "-D__PEET__=1"); /* for peet/mark.h */
        if (d->level != LEVEL_events)
            driver_add_options(&l, d);
        if (!l.stops_early && !l.is_part && !l.is_shared)
            driver_add_runtime(&l, d->folder);
    }
    *ret = l.word;
    return 0;
}

void asm_arguments_free(char **list)
{
    for (char **p = list; p && *p; p++)
        free(*p);
    free(list);
}
