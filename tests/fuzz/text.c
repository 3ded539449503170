/* SPDX-License-Identifier: MIT */
/* Any bytes as text: read into a trace, and what it made is listed again. */
#include <sys/mman.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "format/text/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void list(const char *path)
{
    struct peet_trace *t;
    struct peet_err err;
    uint64_t damaged;
    FILE *null = fopen("/dev/null", "w");
    struct text_options compact = { .compact = true, .count = UINT64_MAX }, some = { .symbols = true, .count = 2000 };

    if (!null || peet_trace_open(path, &t, &err) < 0)
        abort(); /* what the writer has closed must open */
    text_write(t, &compact, null, &damaged, &err);
    text_write(t, &some, null, &damaged, &err);
    peet_trace_free(t);
    fclose(null);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct peet_writer *w;
    struct peet_err err;
    char path[40];
    int fd = memfd_create("trace", 0);
    FILE *in = size ? fmemopen((void *)(uintptr_t)data, size, "r") : NULL;

    if (fd < 0)
        abort();
    if (in) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (peet_writer_open_fd(fd, NULL, &w, &err) < 0)
            abort();
        int r = text_read(in, "input", w, &err);
        if (r < 0 && !err.text[0])
            abort(); /* every refusal has a reason */
        if (peet_writer_close(w, &err) == 0 && r == 0)
            list(path);
        fclose(in);
    }
    close(fd);
    return 0;
}
