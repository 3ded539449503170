/* SPDX-License-Identifier: MIT */
/* usage: speculation_run TRACE POLICY FAST
 * Simulates a trace on machine sato1999 with a policy of speculation, and prints cycles and CPU seconds. FAST 0: the record executor without strided
 * loops and lookahead, which speculation does not have; 1: with both. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "peet/trace.h"
#include "sim/engine/sim.h"

int main(int argc, char **argv)
{
    char policy[80];
    const char *set[] = { policy };
    struct machine_config config;
    struct sim_result result;
    struct peet_trace *t;
    struct source *source;
    struct sim *sim;
    struct peet_err err;

    if (argc != 4) {
        fputs("usage: speculation_run TRACE POLICY FAST\n", stderr);
        return 2;
    }
    bool fast = strcmp(argv[3], "0") != 0;
    snprintf(policy, sizeof policy, "speculation.policy=%.40s", argv[2]);
    if (config_load(&config, "sato1999", set, 1, &err) < 0 || peet_trace_open(argv[1], &t, &err) < 0
        || source_open_trace(t, fast, &source, &err) < 0 || sim_new(&config, source, &sim, &err) < 0) {
        fprintf(stderr, "speculation_run: %s\n", err.text);
        return 1;
    }
    sim_set_lookahead(sim, fast);
    clock_t began = clock();
    if (sim_run(sim, NULL, &err) < 0) {
        fprintf(stderr, "speculation_run: %s\n", err.text);
        return 1;
    }
    double seconds = (double)(clock() - began) / CLOCKS_PER_SEC;
    sim_result(sim, &result);
    printf("%" PRIu64 " %.3f\n", result.cycles, seconds);
    sim_result_release(&result);
    sim_free(sim);
    source_free(source);
    peet_trace_free(t);
    return 0;
}
