/* SPDX-License-Identifier: MIT */
/* What fuzz targets share. An error without a text, and output without an end, are findings. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/text/text.h"
#include "peet/trace.h"

enum { FUZZ_PATH = 40 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Puts the bytes into a file in memory, and its name into path. Returns its descriptor, which is to be closed. */
static inline int fuzz_file(const void *data, size_t size, char path[FUZZ_PATH])
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, FUZZ_PATH, "/proc/self/fd/%d", fd);
    return fd;
}

/* What fails has to say why. */
static inline int fuzz_check(int result, const struct peet_err *err)
{
    if (result < 0 && !err->text[0])
        abort();
    return result;
}

/* The trace that a text stands for (docs/trace-format.md); its file is gone when it is closed. */
static inline struct peet_trace *fuzz_trace(const char *text)
{
    struct peet_writer *w;
    struct peet_trace *t;
    struct peet_err err;
    char path[FUZZ_PATH];
    int fd = fuzz_file("", 0, path);
    FILE *in = fmemopen((void *)(uintptr_t)text, strlen(text), "r");

    if (!in || peet_writer_open_fd(fd, NULL, &w, &err) < 0 || text_read(in, "text", w, &err) < 0
        || peet_writer_close(w, &err) < 0 || peet_trace_open(path, &t, &err) < 0)
        abort();
    fclose(in);
    close(fd);
    return t;
}

#endif
