/* SPDX-License-Identifier: MIT */
/* Both sides of a verb in the program's process. The job that the library gets is the number of the run and the command line of the user's
 * command. */
#include "cli/in_process_verb.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "cli/cli.h"

static struct in_process_verb here; /* host is NULL: this is the user's command */

const struct in_process_verb *in_process_verb(void)
{
    return here.host ? &here : NULL;
}

/* The bytes of a small file and a zero; to be freed. NULL: it cannot be read. */
static char *in_process_verb_read(const char *path, size_t *ret_bytes)
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

/* ---- in the user's command ---- */

static char *in_process_verb_library(void)
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

bool in_process_verb_is_possible(void)
{
    char *library = in_process_is_possible() ? in_process_verb_library() : NULL;
    bool yes = library != NULL;

    free(library);
    return yes;
}

/* Reads the code with which an answer begins; without one the process ended before it left an answer. */
static int in_process_verb_read_code(FILE *answer, int status, const char *name, int *ret_code, struct peet_err *err)
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

int in_process_verb_ask(char *const *program, uint32_t ahead, size_t run, FILE **ret_answer, int *ret_code,
                        int *ret_status, struct peet_err *err)
{
    size_t bytes;
    char *line = in_process_verb_read("/proc/self/cmdline", &bytes), *library = in_process_verb_library();

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
    if (r == 0 && (r = in_process_verb_read_code(*ret_answer, *ret_status, program[0], ret_code, err)) < 0)
        fclose(*ret_answer);
    free(line);
    free(library);
    free(job);
    return r;
}

int in_process_verb_simulate(char *const *program, uint32_t ahead, size_t run, struct sim_result *ret, int *ret_code,
                             int *ret_status, struct peet_err *err)
{
    FILE *answer;
    int r = in_process_verb_ask(program, ahead, run, &answer, ret_code, ret_status, err);

    if (r < 0)
        return r;
    if (*ret_code < 0)
        r = sim_result_read(ret, answer, err);
    fclose(answer);
    return r;
}

/* ---- in the program's process ---- */

/* Leaves a code and bytes. failed: the bytes could not be made. */
static int in_process_verb_leave(int code, const char *bytes, size_t count, int failed, struct peet_err *err)
{
    struct in_process_answer *to = here.answer;
    int32_t word = code;

    if (failed || count > IN_PROCESS_ANSWER_BYTES - sizeof *to - sizeof word)
        return err_set(err, PEET_ERR_IO, "the result cannot be handed over");
    memcpy(to->text, &word, sizeof word);
    if (count)
        memcpy(to->text + sizeof word, bytes, count);
    to->bytes = sizeof word + count;
    return 0;
}

int in_process_verb_answer_result(int code, const struct sim_result *r, struct peet_err *err)
{
    char *bytes = NULL;
    size_t count = 0;
    FILE *f = code < 0 ? open_memstream(&bytes, &count) : NULL;
    int failed = code < 0 ? (f ? sim_result_write(r, f, err) : PEET_ERR_MEMORY) : 0;

    if (f && fclose(f) != 0)
        failed = PEET_ERR_IO;
    int done = in_process_verb_leave(code, bytes, count, failed, err);
    free(bytes);
    return done;
}

int in_process_verb_answer_bytes(int code, const char *bytes, size_t count, struct peet_err *err)
{
    return in_process_verb_leave(code, bytes, count, 0, err);
}

/* After a simulation without error the program continues to its own end; otherwise the process ends with the verb's code. */
static int in_process_verb_run(const struct raw_host *host)
{
    size_t bytes;
    char *job = in_process_verb_read(host->header->job, &bytes), *end = job ? job + bytes : NULL;
    char *argv[1024];
    int argc = 0;

    if (!job)
        return EXIT_FAILED;
    here = (struct in_process_verb){ .host = host, .answer = in_process_answer_map(job) };
    if (!here.answer) {
        fprintf(stderr, "peet: the result could not be handed over: %s\n", strerror(errno));
        free(job);
        return EXIT_FAILED;
    }
    char *p = job + strlen(job) + 1;
    here.run = strtoul(p, NULL, 10);
    for (p += strlen(p) + 1; p < end && argc < 1023; p += strlen(p) + 1)
        argv[argc++] = p;
    argv[argc] = NULL;
    int code = command_main(argc, argv);
    fflush(stderr);
    return code == EXIT_OK ? RAW_CONTINUE : code;
}

/* RAW_MACHINE */
__attribute__((visibility("default"))) raw_machine peet_machine_2;

int peet_machine_2(const struct raw_host *host)
{
    return in_process_verb_run(host);
}

/* RAW_MACHINE_OLD */
__attribute__((visibility("default"))) raw_machine peet_machine;

int peet_machine(const struct raw_host *host)
{
    (void)host; /* of another layout */
    fputs("peet: this program was built by another version of peet: build it again with peet cc\n", stderr);
    return EXIT_FAILED;
}
