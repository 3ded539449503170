/* SPDX-License-Identifier: MIT */
/* Writes archives that a kernel unpacks into its first file system: cpio in the form "newc" (Linux, Documentation/driver-api/early-
 * userspace/buffer-format.rst). Equal contents give equal bytes: there are no times and no owners in it. Names may begin with
 * a slash; the folders that they need come by themselves. */
#ifndef CAPTURE_SYSTEM_CPIO_H
#define CAPTURE_SYSTEM_CPIO_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "peet/err.h"

/* An archive of files that is being written. */
struct cpio {
    FILE *out;
    char *path;
    void *names;     /* tree (tsearch) of struct name: entries so far */
    uint32_t inodes; /* numbers given to entries */
    uint64_t bytes;  /* written so far */
};

int cpio_open(struct cpio *c, const char *path, struct peet_err *err);

/* Each may be given twice with the same source; two sources for one name are an error. */
int cpio_folder(struct cpio *c, const char *name, struct peet_err *err);
int cpio_file(struct cpio *c, const char *name, const char *source,
              struct peet_err *err); /* keeps its permissions to execute */
int cpio_text(struct cpio *c, const char *name, const char *text, size_t bytes, struct peet_err *err);
int cpio_link(struct cpio *c, const char *name, const char *target, struct peet_err *err); /* a symbolic one */
int cpio_device(struct cpio *c, const char *name, uint32_t major, uint32_t minor, struct peet_err *err);

/* A file, or a folder with all that is in it. */
int cpio_tree(struct cpio *c, const char *name, const char *source, struct peet_err *err);

/* Writes which file is which file here: lines of name, tabulator and source. */
int cpio_list(const struct cpio *c, const char *path, struct peet_err *err);

int cpio_close(struct cpio *c, struct peet_err *err); /* writes the end */
void cpio_release(struct cpio *c);                    /* also of one that was never opened, or failed */

#endif
