/* SPDX-License-Identifier: MIT */
/* usage: rounds TRACE
 * How far the threads of subjects/ends.c are in a trace. Per thread: its number, process, instructions, references, rounds (stores to
 * the page of counters), which counter that was, and the arguments of its thread_end; "-" where there is none. A damaged part is reported
 * on standard error, and left out. */
#include <inttypes.h>
#include <stdio.h>

#include "peet/trace.h"

static const uint64_t PLACE = 0x200000000000;
enum { COUNTER = 64, COUNTERS_END = 504 * 8 };

int main(int argc, char **argv)
{
    struct peet_trace *trace;
    const struct peet_thread *t;
    struct peet_err err;
    int status = 0;

    if (argc != 2 || peet_trace_open(argv[1], &trace, &err) < 0) {
        fprintf(stderr, "rounds: %s\n", argc == 2 ? err.text : "one trace is wanted");
        return 2;
    }
    for (size_t i = 0; (t = peet_trace_thread(trace, i)); i++) {
        uint64_t instructions = 0, references = 0, rounds = 0, which = 0;
        struct peet_event end = { 0 };
        struct peet_cursor *c;
        struct peet_batch batch;
        int r;
        if (peet_cursor_open(trace, t->id, 0, &c, &err) < 0)
            return 2;
        while ((r = peet_cursor_next(c, &batch, &err)) != 0) {
            if (r < 0) {
                fprintf(stderr, "rounds: %s\n", err.text);
                status = 1;
                if (r != PEET_ERR_DAMAGED)
                    break;
                continue;
            }
            for (size_t k = 0; k < batch.count; k++) {
                const struct peet_record *x = &batch.records[k];
                if (x->kind == PEET_BLOCK)
                    instructions += x->size;
                if (x->kind == PEET_EVENT && batch.events[x->id].kind == PEET_EV_thread_end)
                    end = batch.events[x->id];
                references += peet_is_reference(x) != 0;
                if (x->kind == PEET_STORE && x->addr >= PLACE && x->addr < PLACE + COUNTERS_END) {
                    rounds++;
                    which = (x->addr - PLACE) / COUNTER;
                }
            }
        }
        peet_cursor_free(c);
        printf("%u %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, t->id, t->process, instructions, references,
               rounds, which);
        if (end.args)
            printf(" %" PRIu64 " %" PRIu64 "\n", end.arg[0], end.arg[1]);
        else
            printf(" - -\n");
    }
    peet_trace_free(trace);
    return status;
}
