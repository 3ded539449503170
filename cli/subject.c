/* SPDX-License-Identifier: MIT */
#include "cli/subject.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "peet/trace.h"

bool subject_is_trace(const char *name)
{
    const char *end = strrchr(name, '.');

    return end && !strcmp(end, ".peet");
}

bool subject_is_program(int operands, const char *name)
{
    struct stat st;

    if (operands > 1)
        return true;
    if (stat(name, &st) == 0)
        return S_ISREG(st.st_mode) && access(name, X_OK) == 0;
    return strcmp(name, "-") != 0 && !subject_is_trace(name);
}

int subject_check_output(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? mem_format("%.*s", (int)(slash - path + 1), path) : mem_string(".");
    struct stat st;
    bool exists = stat(path, &st) == 0;
    int r = !strcmp(path, "-") ? 0 : exists ? access(path, W_OK) : access(folder, W_OK | X_OK);

    free(folder);
    if (r == 0 && !(exists && S_ISDIR(st.st_mode)))
        return EXIT_OK;
    complain("%s: cannot be written: %s", path, strerror(r == 0 ? EISDIR : errno));
    return EXIT_FAILED;
}

int subject_exit_code(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

bool subject_was_stopped(int status)
{
    return WIFSIGNALED(status)
           && (WTERMSIG(status) == SIGINT || WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGKILL);
}

volatile uint32_t subject_want_end;

int subject_stopped_code(uint32_t number)
{
    return 128 + (int)(number ? number : SIGINT);
}

static void subject_on_signal(int number)
{
    if (subject_want_end) /* the second time at the latest */
        _exit(128 + number);
    subject_want_end = (uint32_t)number;
}

void subject_expect_end(void)
{
    struct sigaction a = { .sa_handler = subject_on_signal }, old;

    if (sigaction(SIGINT, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

int subject_machine(struct machine_config *ret, const char *machine, const struct opt_list *settings, const char *cpus)
{
    const char **set = mem_alloc(settings->count + 1, sizeof *set);
    char *count = cpus ? mem_format("cpus=%s", cpus) : NULL;
    struct peet_err err;
    size_t n = 0;

    for (; n < settings->count; n++)
        set[n] = settings->item[n];
    if (count)
        set[n++] = count;
    int r = config_load(ret, machine, set, n, &err);
    free(set);
    free(count);
    return r < 0 ? fail(&err) : EXIT_OK;
}

enum { PROBLEMS_SHOWN = 20 };

int subject_warn_problems(const struct peet_trace *t, uint64_t damaged)
{
    const char *problem;
    size_t n = 0;

    for (; (problem = peet_trace_problem(t, n)); n++)
        if (n < PROBLEMS_SHOWN)
            warn("%s: %s", peet_trace_path(t), problem);
    if (n > PROBLEMS_SHOWN)
        warn("and %zu more", n - PROBLEMS_SHOWN);
    if (damaged)
        warn("%s: %" PRIu64 " damaged parts were left out", peet_trace_path(t), damaged);
    return n || damaged ? EXIT_DAMAGED : EXIT_OK;
}

uint64_t subject_references(const struct peet_trace *t)
{
    struct peet_totals totals;
    uint64_t references = 0;

    for (size_t i = 0; peet_trace_thread(t, i); i++)
        if (peet_trace_totals(t, peet_trace_thread(t, i)->id, &totals) == 0)
            references += totals.references;
    return references;
}
