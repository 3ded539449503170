/* SPDX-License-Identifier: MIT */
/* Whether most of a program's work was done by uninstrumented code, such as a library that was not built with peet cc. The recorder does not
 * observe that code. But instrumented code executes hundreds of millions of instructions per second; far fewer in much time are a sign of it. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "capture/recorder/live.h"

enum { LEAST_MS = 200, INSTRUCTIONS_PER_MS = 40000, NAMES_ROOM = 300 };

/* Libraries of the compiler and the C library, which are in every process: their work is recorded as events, or is little. */
static const char *const COMMON[] = { "libc.so",    "ld-linux",       "libm.so",        "libpthread.so",
                                      "libdl.so",   "librt.so",       "libgcc_s.so",    "libstdc++",
                                      "libgomp.so", "libgfortran.so", "libquadmath.so", "libmvec.so" };

static const char *uninstrumented_base(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static bool uninstrumented_is_common(const char *path)
{
    for (size_t i = 0; i < sizeof COMMON / sizeof *COMMON; i++)
        if (strncmp(uninstrumented_base(path), COMMON[i], strlen(COMMON[i])) == 0)
            return true;
    return path[0] != '/';
}

static bool uninstrumented_is_recorded(const struct recorder *s, const char *path)
{
    for (size_t i = 0; i < s->code.modules; i++)
        if (s->code.module[i]->schema_end > s->code.module[i]->schema && strcmp(s->code.module[i]->path, path) == 0)
            return true;
    return false;
}

/* The names of libraries in memory without a schema, separated by commas; "": none. */
static void uninstrumented_names(const struct recorder *s, char names[NAMES_ROOM])
{
    const struct peet_trace *t = peet_writer_schema(s->writer);
    const struct peet_module *m;
    size_t used = 0;

    names[0] = '\0';
    for (size_t i = 0; (m = peet_trace_module(t, i)); i++) {
        const char *base = uninstrumented_base(m->path);
        if (uninstrumented_is_common(m->path) || uninstrumented_is_recorded(s, m->path) || strstr(names, base))
            continue;
        if (used + strlen(base) + 8 > NAMES_ROOM) {
            snprintf(names + used, NAMES_ROOM - used, ", …");
            break;
        }
        used += (size_t)snprintf(names + used, NAMES_ROOM - used, "%s%s", used ? ", " : "", base);
    }
}

void live_warn_of_uninstrumented_code(struct recorder *s)
{
    const struct producer_config *c = s->config;
    char names[NAMES_ROOM];
    struct rusage used;

    if (c->max || s->ret->stopped || filter_is_wanted(s) || getrusage(RUSAGE_CHILDREN, &used) < 0)
        return;
    uint64_t ms = (uint64_t)used.ru_utime.tv_sec * 1000 + (uint64_t)used.ru_utime.tv_usec / 1000;
    if (ms < LEAST_MS || s->ret->instructions / ms >= INSTRUCTIONS_PER_MS)
        return;
    uninstrumented_names(s, names);
    recording_warn(
        s->ret,
        "most of %.1f s of computing was in code that was not recorded%s%s: build it with peet cc, too, or use --step",
        (double)ms / 1000, names[0] ? ", perhaps of " : "", names);
}
