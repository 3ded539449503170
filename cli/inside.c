/* SPDX-License-Identifier: MIT */
/* peet in the process of a program that is simulated: the library that the program's runtime loads (docs/design/controlled-execution.md) begins here. The
 * job is the command line of the peet that waits outside, and the number of the run that is asked for; the verb is run once more, and finds that
 * it is inside. */
#include "cli/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "cli/cli.h"

static struct inside inside;
static bool is_inside;

const struct inside *inside_here(void)
{
    return is_inside ? &inside : NULL;
}

/* A small file as a string, with one zero more at its end. */
static char *read_all(const char *path, size_t *ret_bytes)
{
    FILE *f = fopen(path, "r");
    char *text = NULL;
    size_t n = 0, got;

    if (!f)
        return NULL;
    do {
        char *more = realloc(text, n + 4097);
        got = more ? fread(more + n, 1, 4096, f) : 0;
        text = more ? more : text;
        n += got;
    } while (got > 0);
    fclose(f);
    if (text)
        text[n] = 0;
    *ret_bytes = n;
    return text;
}

/* ---- outside ---- */

static char *find_library(void)
{
    struct peet_err err;
    char *folder = library_folder(&err);
    char *library = folder ? mem_format("%s/libpeet-machine.so", folder) : NULL;

    free(folder);
    if (library && access(library, R_OK) == 0)
        return library;
    free(library);
    return NULL;
}

bool inside_is_here_to_run(void)
{
    char *library = in_process_is_possible() ? find_library() : NULL;
    bool yes = library != NULL;

    free(library);
    return yes;
}

/* What the machine has left begins with a code. */
static int read_code(FILE *answer, int status, const char *name, int *ret_code, struct peet_err *err)
{
    int32_t code;

    if (fread(&code, sizeof code, 1, answer) == 1) {
        *ret_code = code;
        return 0;
    }
    if (WIFSIGNALED(status))
        return err_set(err, PEET_ERR_IO, "%s: it was ended by signal %d, and the simulation with it", name,
                       WTERMSIG(status));
    return err_set(err, PEET_ERR_IO, "%s: it ended, and the simulation with it, without a result", name);
}

int inside_ask(char *const *program, uint32_t ahead, size_t run, FILE **ret_answer, int *ret_code, int *ret_status,
               struct peet_err *err)
{
    size_t bytes;
    char *line = read_all("/proc/self/cmdline", &bytes), *library = find_library();

    if (!line || !library) {
        free(line);
        free(library);
        return err_set(err, PEET_ERR_IO, "the machine for programs that run is not where peet is");
    }
    char *job = mem_alloc(bytes + 32, 1);
    size_t n = (size_t)snprintf(job, 32, "%zu", run) + 1;
    memcpy(job + n, line, bytes);
    int r = in_process_run(&(struct in_process_job){ program, ahead, library, job, n + bytes }, ret_status, ret_answer,
                           err);
    if (r == 0 && (r = read_code(*ret_answer, *ret_status, program[0], ret_code, err)) < 0)
        fclose(*ret_answer);
    free(line);
    free(library);
    free(job);
    return r;
}

int inside_simulate(char *const *program, uint32_t ahead, size_t run, struct sim_result *ret, int *ret_code,
                    int *ret_status, struct peet_err *err)
{
    FILE *answer;
    int r = inside_ask(program, ahead, run, &answer, ret_code, ret_status, err);

    if (r < 0)
        return r;
    if (*ret_code < 0)
        r = sim_result_read(ret, answer, err);
    fclose(answer);
    return r;
}

/* ---- inside ---- */

/* Leaves a code and what stands behind it for the command that waits outside; `failed`: it could not be put together. */
static int inside_leave(int code, const char *bytes, size_t count, int failed, struct peet_err *err)
{
    struct in_process_answer *to = inside.answer;
    int32_t word = code;

    if (failed || count > IN_PROCESS_ANSWER_BYTES - sizeof *to - sizeof word)
        return err_set(err, PEET_ERR_IO, "the result cannot be handed over");
    memcpy(to->text, &word, sizeof word);
    if (count)
        memcpy(to->text + sizeof word, bytes, count);
    to->bytes = sizeof word + count;
    return 0;
}

int inside_answer(int code, const struct sim_result *r, struct peet_err *err)
{
    char *bytes = NULL;
    size_t count = 0;
    FILE *f = code < 0 ? open_memstream(&bytes, &count) : NULL;
    int failed = code < 0 ? (f ? sim_result_write(r, f, err) : PEET_ERR_MEMORY) : 0;

    if (f && fclose(f) != 0)
        failed = PEET_ERR_IO;
    int done = inside_leave(code, bytes, count, failed, err);
    free(bytes);
    return done;
}

int inside_answer_bytes(int code, const char *bytes, size_t count, struct peet_err *err)
{
    return inside_leave(code, bytes, count, 0, err);
}

/* Our errors are not the program's end: it goes on to it only after a simulation that came to its own. */
static int run_job(const struct raw_host *host)
{
    size_t bytes;
    char *job = read_all(host->header->job, &bytes), *end = job ? job + bytes : NULL;
    char *argv[1024];
    int argc = 0;

    if (!job)
        return EXIT_FAILED;
    inside = (struct inside){ .host = host, .answer = in_process_answer_map(job) };
    if (!inside.answer) {
        fprintf(stderr, "peet: the result could not be handed over: %s\n", strerror(errno));
        free(job);
        return EXIT_FAILED;
    }
    char *p = job + strlen(job) + 1;
    inside.run = strtoul(p, NULL, 10);
    for (p += strlen(p) + 1; p < end && argc < 1023; p += strlen(p) + 1)
        argv[argc++] = p;
    argv[argc] = NULL;
    is_inside = true;
    int code = command_main(argc, argv);
    fflush(stderr);
    return code == EXIT_OK ? RAW_CONTINUE : code;
}

__attribute__((visibility("default"))) raw_machine peet_machine;

int peet_machine(const struct raw_host *host)
{
    return run_job(host);
}
