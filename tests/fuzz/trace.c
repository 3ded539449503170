/* SPDX-License-Identifier: MIT */
/* Any bytes as a trace: opened, read in every way that there is, and sought in. When built for a fuzzer, checksums always
 * match, so that what follows them is reached. */
#include <sys/mman.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "peet/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BATCHES = 200 }; /* a few bytes can stand for a loop without end */

static void read_cursor(struct peet_trace *t, uint32_t thread, unsigned want, uint64_t seek)
{
    struct peet_cursor *c;
    struct peet_batch b;
    struct peet_err err;
    uint64_t sum = 0;

    if (peet_cursor_open(t, thread, want, &c, &err) < 0)
        return;
    if (seek)
        peet_cursor_seek(c, seek, &err);
    int r = 1;
    for (int i = 0; i < BATCHES && r != 0; i++) {
        r = peet_cursor_next(c, &b, &err);
        for (size_t k = 0; r == 1 && k < b.count; k++) {
            const struct peet_record *x = &b.records[k];
            sum += x->addr + (b.physical ? b.physical[k] : 0);
            if (b.value_index && b.value_index[k] != PEET_NO_VALUE)
                sum += b.values[b.value_index[k]];
            if (peet_is_reference(x) && !peet_trace_insn(t, x->id))
                abort();
            if (x->kind == PEET_EVENT)
                sum += b.events[x->id].arg[0];
        }
    }
    peet_cursor_free(c);
    if (sum == 42)
        putchar('!');
}

static void read_items(struct peet_trace *t)
{
    struct peet_cursor *c;
    struct peet_err err;
    const uint64_t *slots;
    uint32_t item;

    if (peet_cursor_open(t, PEET_ALL_THREADS, 0, &c, &err) < 0)
        return;
    int r = 1;
    for (int i = 0; i < 100000 && r != 0; i++)
        r = peet_cursor_item(c, &item, &slots, &err);
    peet_cursor_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct peet_trace *t;
    struct peet_err err;
    const struct peet_thread *thread;
    char path[40];
    int fd = memfd_create("trace", 0);

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (peet_trace_open(path, &t, &err) == 0) {
        for (size_t i = 0; i < 4 && (thread = peet_trace_thread(t, i)); i++) {
            struct peet_totals totals;
            peet_trace_totals(t, thread->id, &totals);
            read_cursor(t, thread->id, 0, totals.instructions / 2);
            read_cursor(t, thread->id, PEET_WANT_LOOPS, 0);
        }
        read_cursor(t, PEET_ALL_THREADS, PEET_WANT_PHYSICAL | PEET_WANT_VALUES, 0);
        read_items(t);
        peet_trace_free(t);
    }
    close(fd);
    return 0;
}
