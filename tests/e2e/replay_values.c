/* SPDX-License-Identifier: MIT */
/* usage: replay_values TRACE
 * Whether a trace with values makes sense: each load of a thread that is alone brings what was stored there last. What the
 * kernel writes is unknown, so that a system call or a signal makes us forget all; what a string operation writes is not
 * recorded, and an update has only what was there before. Prints how many loaded bytes were compared and how many differ. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/map.h"
#include "peet/trace.h"

static struct map memory = { .value_size = 1 };
static uint64_t compared, wrong;

static void forget(uint64_t addr, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        map_remove(&memory, addr + i, 0);
}

static void refer(const struct peet_record *x, const uint64_t *words)
{
    for (uint32_t i = 0; words && i < x->size; i++) {
        uint8_t byte = (uint8_t)(words[i / 8] >> 8 * (i % 8));
        uint8_t *known = map_find(&memory, x->addr + i, 0);
        if (known && x->kind != PEET_STORE) {
            compared++;
            wrong += *known != byte;
        }
        known = map_put(&memory, x->addr + i, 0);
        if (known)
            *known = byte;
    }
    if ((!words && x->kind == PEET_STORE) || x->kind == PEET_UPDATE)
        forget(x->addr, x->size);
}

int main(int argc, char **argv)
{
    struct peet_trace *t = NULL;
    struct peet_cursor *c = NULL;
    struct peet_err err;
    struct peet_batch b;
    int r = argc == 2 ? peet_trace_open(argv[1], &t, &err) : -1;

    if (r < 0 || peet_cursor_open(t, 0, PEET_WANT_VALUES, &c, &err) < 0)
        return 3;
    while ((r = peet_cursor_next(c, &b, &err)) > 0)
        for (size_t i = 0; i < b.count; i++) {
            const struct peet_record *x = &b.records[i];
            if (x->kind == PEET_EVENT)
                map_clear(&memory);
            else if (x->kind == PEET_LOAD || x->kind == PEET_STORE || x->kind == PEET_UPDATE)
                refer(x, b.value_index[i] == PEET_NO_VALUE ? NULL : b.values + b.value_index[i]);
        }
    printf("%" PRIu64 " bytes compared, %" PRIu64 " wrong\n", compared, wrong);
    peet_cursor_free(c);
    peet_trace_free(t);
    map_release(&memory);
    return r < 0 || wrong || compared < 1000 ? 1 : 0;
}
