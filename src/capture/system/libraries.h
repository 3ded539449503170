/* SPDX-License-Identifier: MIT */
/* Which libraries a program needs, found as the dynamic loader would find them, but without running anything: the program may be
 * one for another instruction set. It knows RPATH, LD_LIBRARY_PATH, RUNPATH, $ORIGIN and $LIB, /etc/ld.so.conf, and the usual
 * folders of Debian, of its cross compilers and of other distributions. It leaves out: /etc/ld.so.cache (the folders of ld.so.conf
 * are looked at instead), variants for newer processors (glibc-hwcaps), and what a program opens by dlopen. */
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

struct library {
    char *name; /* as programs call it: "libm.so.6", or the loader's whole path */
    char *path; /* the file that it is here */
};

struct libraries {
    struct library *item;
    size_t count;
    bool dynamic; /* the program has a loader, which is the first item */
};

/* Adds what the ELF file needs, and what that needs. An ELF file of another kind is an error that says of which. */
int libraries_find(const char *program, const struct library_search *search, struct libraries *ret,
                   struct peet_err *err);

/* Adds a library that nobody names, if it is there. */
void libraries_also(const char *name, const struct library_search *search, struct libraries *ret);

void libraries_release(struct libraries *l);

const char *machine_name(int machine); /* "x86_64"; "another machine" */

#endif
