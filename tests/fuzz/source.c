/* SPDX-License-Identifier: MIT */
/* Any bytes as a source in C or Fortran; of places in a few of its lines it is asked what the statement there allocates
 * for. */
#include "fuzz.h"

#include "study/symbols/symbols_in.h"

enum { LINES = 4, COLUMNS = 80 };

static void ask(const struct symbols_source *s)
{
    struct symbols_target target;

    uint32_t first = s->size ? (uint32_t)(s->size * 31 + (unsigned char)s->text[0]) % (uint32_t)(s->lines + 1) : 0;

    for (uint32_t line = first; line <= s->lines + 1 && line < first + LINES; line++)
        for (uint32_t column = 0; column < COLUMNS; column += 1 + column / 3) {
            symbols_target(s, line, column, &target);
            if (strlen(target.name) >= sizeof target.name || strlen(target.created) >= sizeof target.created)
                abort();
            symbols_container(s, line, column, &target);
            symbols_allocate(s, line, column, &target);
        }
}

static const char *folder(void)
{
    static char name[] = "/tmp/peet-fuzz-XXXXXX";
    static bool is_made;

    if (!is_made && !mkdtemp(name))
        abort();
    is_made = true;
    return name;
}

static void remove_folder(void)
{
    rmdir(folder());
}

/* The name gives the language. */
static void ask_as(const char *path)
{
    static struct peet_trace *t;
    struct symbols *w;
    struct peet_err err;

    t = t ? t
          : fuzz_trace("peet text 1\nthread 0 process 0 parent 0 ordinal 0 name \"main\"\n0 0 thread_end 0 0\nend\n");
    if (symbols_open(t, &w, &err) < 0)
        abort();
    const struct symbols_source *s = symbols_source(w, path);
    if (s)
        ask(s);
    symbols_free(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[FUZZ_PATH], fortran[2 * FUZZ_PATH];
    int fd = fuzz_file(data, size, path);
    static bool is_expected;

    if (!is_expected)
        atexit(remove_folder);
    is_expected = true;
    snprintf(fortran, sizeof fortran, "%s/x.f", folder());
    if (symlink(path, fortran) < 0)
        abort();
    ask_as(path);
    ask_as(fortran);
    unlink(fortran);
    close(fd);
    return 0;
}
