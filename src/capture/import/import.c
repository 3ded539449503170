/* SPDX-License-Identifier: MIT */
#include "capture/import/import.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

/* What was written of a trace that could not be made. Pipes and devices stay, and so do links to the file. */
static void remove_output(const char *out)
{
    struct stat st;
    char *file = strcmp(out, "-") != 0 ? realpath(out, NULL) : NULL;

    if (file && stat(file, &st) == 0 && S_ISREG(st.st_mode))
        unlink(file);
    free(file);
}

static int import_convert(const struct importer *importer, FILE *in, const char *name, const char *out,
                          struct peet_err *err)
{
    struct peet_writer *w;
    struct peet_err later;
    int r = peet_writer_open(out, NULL, &w, err);

    if (r < 0)
        return r;
    r = importer->import(in, name, w, err);
    int closed = peet_writer_close(w, &later); /* the first error is reported */
    if (r == 0 && closed < 0)
        r = err_set(err, closed, "%s", later.text);
    if (r < 0)
        remove_output(out);
    return r;
}

int import_trace(const struct importer *importer, const char *path, const char *out, struct peet_err *err)
{
    bool is_stdin = !strcmp(path, "-");
    FILE *in = is_stdin ? stdin : fopen(path, "re");
    struct stat from, to;
    int r;

    if (!in)
        return err_sys(err, errno, "%s: cannot open", path);
    if (fstat(fileno(in), &from) == 0 && strcmp(out, "-") != 0 && stat(out, &to) == 0 && from.st_dev == to.st_dev
        && from.st_ino == to.st_ino && S_ISREG(from.st_mode))
        r = err_set(err, PEET_ERR_USAGE, "%s: cannot be both what is read and what is written", path);
    else
        r = import_convert(importer, in, is_stdin ? "standard input" : path, out, err);
    if (!is_stdin)
        fclose(in);
    return r;
}
