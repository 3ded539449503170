/* SPDX-License-Identifier: MIT */
/* usage: sampled WINDOW OFF TRACE PROGRAM [ARGUMENT…]
 * Records a program as `peet record` does, but after every WINDOW bytes of words a thread leaves OFF references out. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "capture/live/live.h"
#include "capture/producer.h"

int main(int argc, char **argv)
{
    struct peet_err err = { 0 };
    struct peet_writer *w = NULL;
    struct recording recording = { 0 };

    if (argc < 5) {
        fprintf(stderr, "usage: sampled WINDOW OFF TRACE PROGRAM [ARGUMENT…]\n");
        return 2;
    }
    struct producer_config config = { .argv = argv + 4 };
    struct producer_state *s = mem_alloc(1, producer_live.state_size);
    int r = producer_live.start(s, &config, &err);
    if (r == 0) {
        s->header->window = (uint32_t)strtoul(argv[1], NULL, 0);
        s->header->off = strtoull(argv[2], NULL, 0);
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
        printf("%" PRIu64 " references, status %d\n", recording.references, recording.status);
    recording_release(&recording);
    return r < 0;
}
