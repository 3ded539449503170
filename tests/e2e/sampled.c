/* SPDX-License-Identifier: MIT */
/* usage: sampled WINDOW OFF TRACE PROGRAM [ARGUMENT…]
 *        sampled --inside WINDOW OFF LIBRARY PROGRAM [ARGUMENT…]
 * Records a program as `peet record` does, but after every WINDOW bytes of words a thread leaves OFF references out. Says how many were recorded,
 * and the program's own time. --inside: runs it with the machine in this library (subjects/off_machine.c), and shows its answer. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "capture/control/in_process.h"
#include "capture/recorder/live.h"
#include "capture/producer.h"

/* Processor time of the program. */
static double seconds(void)
{
    struct rusage u;

    getrusage(RUSAGE_CHILDREN, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static int run_inside(char **argv)
{
    const struct in_process_job job = { .argv = argv + 3,
                                        .ahead = (uint32_t)strtoul(argv[0], NULL, 0),
                                        .library = argv[2],
                                        .job = argv[1],
                                        .bytes = strlen(argv[1]) };
    struct peet_err err = { 0 };
    FILE *answer;
    int status;

    if (in_process_run(&job, &status, &answer, &err) < 0) {
        fprintf(stderr, "sampled: %s\n", err.text);
        return 1;
    }
    for (int c; (c = getc(answer)) != EOF;)
        putchar(c);
    fclose(answer);
    return status != 0;
}

int main(int argc, char **argv)
{
    if (argc > 5 && !strcmp(argv[1], "--inside"))
        return run_inside(argv + 2);
    struct peet_err err = { 0 };
    struct peet_writer *w = NULL;
    struct recording recording = { 0 };

    if (argc < 5) {
        fprintf(stderr, "usage: sampled WINDOW OFF TRACE PROGRAM [ARGUMENT…]\n");
        return 2;
    }
    struct producer_config config = { .argv = argv + 4 };
    struct producer_state *s = mem_alloc(1, producer_live.state_size);
    struct recorder *recorder = (struct recorder *)s; /* its only member */
    int r = producer_live.start(s, &config, &err);
    if (r == 0) {
        recorder->header->buffer_limit = (uint32_t)strtoul(argv[1], NULL, 0);
        recorder->header->skip = strtoull(argv[2], NULL, 0);
        r = peet_writer_open(argv[3], NULL, &w, &err);
    }
    if (r == 0)
        r = producer_live.run(s, w, &recording, &err);
    if (w && peet_writer_close(w, r == 0 ? &err : NULL) < 0 && r == 0)
        r = err.code;
    producer_live.release(s);
    free(s);
    if (r < 0)
        fprintf(stderr, "sampled: %s\n", err.text);
    else
        printf("%" PRIu64 " references, status %d, %.3f s\n", recording.references, recording.status, seconds());
    recording_release(&recording);
    return r < 0;
}
