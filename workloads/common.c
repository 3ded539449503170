/* SPDX-License-Identifier: MIT */
#include "common.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *name = "workload";

void wl_usage_error(const char *format, ...)
{
    va_list ap;

    fflush(stdout);
    fprintf(stderr, "%s: ", name);
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fprintf(stderr, "; see %s --help\n", name);
    exit(2);
}

static void help(const char *summary, const struct wl_option *options)
{
    printf("%s: %s\n\nusage: %s [-p THREADS]", name, summary, name);
    for (const struct wl_option *o = options; o->letter; o++)
        printf(" [-%c N]", o->letter);
    printf("\n\n  -p  threads, 1 to %d (4)\n", WL_MAX_THREADS);
    for (const struct wl_option *o = options; o->letter; o++)
        printf("  -%c  %s (%lld)\n", o->letter, o->help, (long long)*o->value);
    printf(
        "\nNumbers may end in k, m or g. "
        "The exit status is 0 when the self-check holds, 1 when not, 2 for wrong usage, 3 when\nmemory or threads are lacking.\n");
    exit(0);
}

static int64_t number(char letter, const char *text, int64_t least, int64_t most)
{
    char *end;

    errno = 0;
    long long v = strtoll(text, &end, 0);
    int shift = *end == 'k' ? 10 : *end == 'm' ? 20 : *end == 'g' ? 30 : 0;
    if (end == text || end[shift != 0] || errno || v > INT64_MAX >> shift || v < INT64_MIN >> shift)
        wl_usage_error("-%c: '%s' is not a number", letter, text);
    v *= 1LL << shift;
    if (v < least || v > most)
        wl_usage_error("-%c: %lld is not between %lld and %lld", letter, v, (long long)least, (long long)most);
    return v;
}

int wl_parse(int argc, char **argv, const char *summary, const struct wl_option *options)
{
    int threads = 4;
    const char *slash = strrchr(argv[0], '/');

    name = slash ? slash + 1 : argv[0];
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        if (!strcmp(a, "--help") || !strcmp(a, "-h"))
            help(summary, options);
        if (a[0] != '-' || !a[1])
            wl_usage_error("'%s' is not an option", a);
        const char *text = a[2] ? a + 2 : i + 1 < argc ? argv[++i] : NULL;
        if (!text)
            wl_usage_error("-%c wants a number", a[1]);
        if (a[1] == 'p') {
            threads = (int)number('p', text, 1, WL_MAX_THREADS);
            continue;
        }
        const struct wl_option *o = options;
        while (o->letter && o->letter != a[1])
            o++;
        if (!o->letter)
            wl_usage_error("no option -%c", a[1]);
        *o->value = number(o->letter, text, o->least, o->most);
    }
    return threads;
}

struct start {
    int id;
    void (*body)(int, void *);
    void *arg;
};

static void *run(void *p)
{
    struct start *s = p;

    s->body(s->id, s->arg);
    return NULL;
}

void wl_parallel(int threads, void (*body)(int id, void *arg), void *arg)
{
    pthread_t thread[WL_MAX_THREADS];
    struct start start[WL_MAX_THREADS];

    for (int i = 1; i < threads; i++) {
        start[i] = (struct start){ i, body, arg };
        int e = pthread_create(&thread[i], NULL, run, &start[i]);
        if (e) {
            fprintf(stderr, "%s: cannot start thread %d: %s\n", name, i, strerror(e));
            exit(3);
        }
    }
    body(0, arg);
    for (int i = 1; i < threads; i++)
        pthread_join(thread[i], NULL);
}

void wl_share(int64_t total, int threads, int id, int64_t *ret_first, int64_t *ret_end)
{
    int64_t each = total / threads, more = total % threads;

    *ret_first = id * each + (id < more ? id : more);
    *ret_end = *ret_first + each + (id < more);
}

void *wl_alloc(size_t bytes)
{
    size_t rounded = (bytes + 63) & ~(size_t)63;
    void *p = rounded >= bytes ? aligned_alloc(64, rounded ? rounded : 64) : NULL;

    if (!p) {
        fprintf(stderr, "%s: no memory for %zu bytes\n", name, bytes);
        exit(3);
    }
    memset(p, 0, rounded);
    return p;
}

int wl_verdict(bool ok, const char *format, ...)
{
    va_list ap;

    printf("%s: %s: ", name, ok ? "ok" : "FAILED");
    va_start(ap, format);
    vprintf(format, ap);
    va_end(ap);
    putchar('\n');
    return ok ? 0 : 1;
}
