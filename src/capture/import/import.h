/* SPDX-License-Identifier: MIT */
/* Importers: traces from other programs' files. A new importer is one file in this folder that defines `const struct importer
 * importer_NAME` as its last thing, and one line in IMPORTERS (ARCHITECTURE.md, "Adding a thing"); the verb `import` then has an option --NAME. */
#ifndef CAPTURE_IMPORT_IMPORT_H
#define CAPTURE_IMPORT_IMPORT_H

#include <stddef.h>
#include <stdio.h>

#include "peet/trace.h"

/* X(name, summary): the first one is the default. */
#define IMPORTERS(X) X(text, "the text form that peet dump prints")

/* A format of files that can be imported. */
struct importer {
    const char *name;
    /* Reads all of `in` and writes it to w. path: for errors. Streams that are not closed are truncated. */
    int (*import)(FILE *in, const char *path, struct peet_writer *w, struct peet_err *err);
};

#define X(name, summary) extern const struct importer importer_##name;
IMPORTERS(X)
#undef X

/* Reads the file at path ("-": standard input) and makes the trace at `out` ("-": standard output) of it. When that
 * fails, no file is left at `out`; what went to a pipe has threads that are cut off. */
int import_trace(const struct importer *importer, const char *path, const char *out, struct peet_err *err);

#endif
