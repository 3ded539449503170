/* SPDX-License-Identifier: MIT */
/* The libraries of a program, found as the dynamic loader does, without executing anything: the program may be for another instruction
 * set. Uses RPATH, LD_LIBRARY_PATH, RUNPATH, $ORIGIN, $LIB, /etc/ld.so.conf, and the usual folders of Debian, of its cross compilers and
 * of other distributions. Leaves out: /etc/ld.so.cache (the folders of ld.so.conf are searched instead), variants for newer
 * processors (glibc-hwcaps), and libraries opened by dlopen. */
#ifndef CAPTURE_SYSTEM_LIBRARIES_H
#define CAPTURE_SYSTEM_LIBRARIES_H

#include <stdbool.h>
#include <stddef.h>

#include "peet/err.h"

/* Where to look. */
struct library_search {
    int machine;         /* EM_… of all files */
    const char *triplet; /* "x86_64-linux-gnu" */
    bool native;         /* this machine's own: its ld.so.conf and LD_LIBRARY_PATH count */
    const char *sysroot; /* NULL: none; else only folders in it count, but for those that programs name themselves */
};

/* A shared library. */
struct library {
    char *name; /* by which programs need it: "libm.so.6", or the loader's whole path */
    char *path; /* of the file on the host */
};

/* The libraries that a program needs. */
struct libraries {
    struct library *item;
    size_t count;
    bool dynamic; /* the program has a loader, which is the first item */
};

/* Adds what the ELF file needs, and what that needs. An ELF file of another kind is an error that says of which. */
int libraries_find(const char *program, const struct library_search *search, struct libraries *ret,
                   struct peet_err *err);

/* Adds a library that no object names, if it exists. */
void libraries_also(const char *name, const struct library_search *search, struct libraries *ret);

void libraries_release(struct libraries *l);

const char *machine_name(int machine); /* "x86_64"; "another machine" */

#endif
