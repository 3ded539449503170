/* SPDX-License-Identifier: MIT */
/* ldd is the oracle: it runs the loader itself. */
#include "capture/system/libraries.h"

#include <dirent.h>
#include <elf.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/check.h"

#if defined __x86_64__
static const struct library_search own = { EM_X86_64, "x86_64-linux-gnu", true, NULL };
#elif defined __aarch64__
static const struct library_search own = { EM_AARCH64, "aarch64-linux-gnu", true, NULL };
#else
static const struct library_search own = { EM_RISCV, "riscv64-linux-gnu", true, NULL };
#endif

enum { MOST = 300, LOOK_AT = 40 };

static char folder[200];
static struct peet_err err;
static char *expected[MOST];
static size_t expected_count;
static bool expected_whole; /* ldd found all */

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* What ldd finds, as real paths in order; false: ldd knows nothing of such a program. */
static bool ask_ldd(const char *program)
{
    char command[500], line[1000];

    for (size_t i = 0; i < expected_count; i++)
        free(expected[i]);
    expected_count = 0;
    expected_whole = true;
    snprintf(command, sizeof command, "ldd %s 2>/dev/null", program);
    FILE *f = popen(command, "r");
    while (f && fgets(line, sizeof line, f)) {
        expected_whole &= !strstr(line, "not found");
        char *arrow = strstr(line, "=> "), *file = arrow ? arrow + 3 : line + strspn(line, " \t");
        file[strcspn(file, " \n")] = 0;
        if (!strchr(file, '/')) /* the kernel's own, or not found */
            continue;
        char *real = realpath(file, NULL);
        if (CHECK(real != NULL) && expected_count < MOST)
            expected[expected_count++] = real;
    }
    if (expected_count)
        qsort(expected, expected_count, sizeof *expected, compare);
    return f && pclose(f) == 0 && expected_count > 0;
}

static void agrees_with_ldd(const char *program)
{
    struct libraries l;
    char *found[MOST];
    size_t n = 0;
    int r = libraries_find(program, &own, &l, &err);

    if (!expected_whole) {
        if (!CHECK_EQ(r, PEET_ERR_IO))
            printf("# %s\n", program);
        CHECK(strstr(err.text, "which is not found") != NULL);
        return;
    }
    if (!CHECK_EQ(r, 0)) {
        printf("# %s: %s\n", program, err.text);
        return;
    }
    CHECK(l.dynamic);
    for (size_t i = 0; i < l.count && n < MOST; i++)
        found[n++] = realpath(l.item[i].path, NULL);
    qsort(found, n, sizeof *found, compare);
    if (!CHECK_EQ(n, expected_count))
        printf("# %s\n", program);
    for (size_t i = 0; i < n; i++) {
        if (n == expected_count && !CHECK_EQ((const char *)found[i], (const char *)expected[i]))
            printf("# %s\n", program);
        free(found[i]);
    }
    libraries_release(&l);
}

static void programs_of_this_machine_need_what_ldd_says(void)
{
    struct dirent **list;
    int n = scandir("/usr/bin", &list, NULL, alphasort), seen = 0;

    for (int i = 0; i < n; i++) {
        char path[400];
        snprintf(path, sizeof path, "/usr/bin/%s", list[i]->d_name);
        /* ldd takes the place of a link for $ORIGIN, and a program that runs does not */
        char *real = i % (n / LOOK_AT + 1) == 0 ? realpath(path, NULL) : NULL; /* not all: ldd is slow */
        if (real && ask_ldd(real)) {
            agrees_with_ldd(real);
            seen++;
        }
        free(real);
        free(list[i]);
    }
    if (n >= 0)
        free(list);
    CHECK(seen > 3);
    char *self = realpath("/proc/self/exe", NULL);
    if (CHECK(self != NULL) && CHECK(ask_ldd(self)))
        agrees_with_ldd(self);
    free(self);
}

/* Programs and libraries whose folders are named in every way. a/liby.so and b/liby.so are two; liby needs libpeetz in c. */
static const char BUILD[] =
    "set -e; mkdir -p a b c; echo 'int z(void) { return 1; }' >z.c; echo 'int z(void); int y(void) { return z(); }' >y.c;"
    "echo 'int y(void); int main(void) { return y(); }' >m.c;"
    "cc='gcc -w -shared -fPIC'; $cc -o c/libpeetz.so z.c -Wl,-soname,libpeetz.so;"
    "$cc -o a/liby.so y.c -Wl,-soname,liby.so -Lc -lpeetz;"
    "$cc -o b/liby.so y.c -Wl,-soname,liby.so -Lc -lpeetz -Wl,-rpath,'$ORIGIN/../c';"
    "link='gcc -w m.c -Wl,--allow-shlib-undefined -La';"
    "$link -o run_a -ly -Wl,--enable-new-dtags,-rpath,'$ORIGIN/a';"
    "$link -o run_b -ly -Wl,--enable-new-dtags,-rpath,'$ORIGIN/none:${ORIGIN}/b:$ORIGIN/a';"
    "$link -o old_ac -ly -Wl,--disable-new-dtags,-rpath,'$ORIGIN/a:$ORIGIN/c';"
    "$link -o bare -ly; $link -o here ./a/liby.so";

static void folders_that_programs_name_are_looked_at_in_the_loaders_order(void)
{
    static const char *const programs[] = { "run_a", "run_b", "old_ac", "bare", "here" };
    static const char *const paths[] = { NULL, "b", "c", "b:c", "a:c:b" };
    char from[PATH_MAX], program[300];
    int whole = 0, broken = 0;

    if (!CHECK(getcwd(from, sizeof from) != NULL) || !CHECK_EQ(chdir(folder), 0))
        return;
    CHECK_EQ(system(BUILD), 0);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        for (size_t j = 0; j < sizeof paths / sizeof *paths; j++) {
            snprintf(program, sizeof program, "./%s", programs[i]);
            if (paths[j])
                setenv("LD_LIBRARY_PATH", paths[j], 1);
            if (CHECK(ask_ldd(program))) {
                agrees_with_ldd(program);
                *(expected_whole ? &whole : &broken) += 1;
            }
            unsetenv("LD_LIBRARY_PATH");
        }
    }
    CHECK(whole > 8 && broken > 4); /* both kinds are among them */
    CHECK_EQ(chdir(from), 0);
}

static void a_static_program_needs_nothing(void)
{
    struct libraries l;
    char command[1000], path[300];

    snprintf(path, sizeof path, "%s/static", folder);
    snprintf(command, sizeof command, "echo 'int main(void) { return 0; }' >%s.c && gcc -static -o %s %s.c", path, path,
             path);
    CHECK_EQ(system(command), 0);
    if (!CHECK_EQ(libraries_find(path, &own, &l, &err), 0))
        return;
    CHECK_EQ(l.count, 0);
    CHECK(!l.dynamic);
    libraries_release(&l);
}

static void a_program_of_another_kind_is_refused_by_name(void)
{
    struct libraries l;
    struct library_search other = own;

    other.machine = own.machine == EM_RISCV ? EM_X86_64 : EM_RISCV;
    CHECK_EQ(libraries_find("/bin/sh", &other, &l, &err), PEET_ERR_USAGE);
    CHECK(strstr(err.text, machine_name(own.machine)) && strstr(err.text, machine_name(other.machine))
          && strstr(err.text, "--arch"));
    CHECK_EQ(libraries_find("/etc/passwd", &own, &l, &err), PEET_ERR_USAGE);
    CHECK_EQ(libraries_find("/no/such/program", &own, &l, &err), PEET_ERR_IO);
}

int main(void)
{
    const char *tmp = getenv("TMP");

    snprintf(folder, sizeof folder, "%s", tmp ? tmp : "/tmp");
    if (access("/usr/bin/ldd", X_OK) < 0) {
        printf("skip libraries are those of ldd: needs ldd\n");
        return 0;
    }
    RUN(programs_of_this_machine_need_what_ldd_says);
    RUN(folders_that_programs_name_are_looked_at_in_the_loaders_order);
    RUN(a_static_program_needs_nothing);
    RUN(a_program_of_another_kind_is_refused_by_name);
    for (size_t i = 0; i < expected_count; i++)
        free(expected[i]);
    return check_done();
}
