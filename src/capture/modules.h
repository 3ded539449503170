/* SPDX-License-Identifier: MIT */
/* What lies where in a running process, from /proc/PID/maps and from the ELF files in it: programs and libraries become
 * modules of the trace, with build-id and symbols (.symtab and .dynsym), everything else becomes ranges. */
#ifndef CAPTURE_MODULES_H
#define CAPTURE_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "peet/trace.h"

struct mapping {
    uint64_t start, end, offset;
    uint32_t protection; /* 1 execute, 2 write, 4 read */
    bool shared;
    const char *name; /* a path, "[stack]" and the like, or "" */
};

struct mappings {
    struct mapping *at; /* rising addresses */
    size_t count;
    struct arena names;
};

/* The program that a process runs, and the words of its command line with blanks between them; "" when it is gone. To be
 * freed. */
char *process_program(pid_t pid);
char *process_command(pid_t pid);

int mappings_read(pid_t pid, struct mappings *ret, struct peet_err *err);
void mappings_parse(const char *text,
                    struct mappings *ret); /* as it stands in /proc/PID/maps; lines that are none are left out */
void mappings_release(struct mappings *m);

/* The modules that a trace has been told of, for one process. Begins as zeros. */
struct modules {
    struct module_key {
        char *path;
        uint64_t bias;
    } * written;
    size_t count;
};

void modules_release(struct modules *m);

/* Tells w the modules among the mappings of process `process` of the trace, which is `pid`, that are new; with `ranges` also
 * the rest, as ranges. Files that cannot be read, or that are not ELF files, have no symbols and count as the rest. */
struct schema_builder;

struct module_scan {
    pid_t pid; /* 0: it is not here, but in a guest, and these tell of it */
    uint32_t process;
    const struct mappings *mappings;
    bool ranges;
    const char *(*path)(void *context, const char *name); /* where such a file lies here; NULL: it does not */
    const char *vdso;                                     /* a copy, as large as its mapping; NULL: there is none */
    void *context;
};
/* One ELF file that lies where it says itself, without a mapping: the program of a guest whose kernel tells nothing. */
int modules_write_alone(struct modules *m, uint32_t process, const char *path, struct schema_builder *b,
                        struct peet_err *err);
int modules_write(struct modules *m, const struct module_scan *scan, struct schema_builder *b, struct peet_err *err);

/* A function of an ELF file, by a symbol of .symtab or .dynsym; one with several names comes several times. */
struct module_function {
    const char *name;
    uint64_t addr, offset; /* in memory, if the file lies where it says itself, and in the file */
    const uint8_t *code;   /* what stands there in the file, of `bytes` bytes up to the end of its segment */
    uint64_t bytes;
};
/* Calls `each` for every function that is in the file. A file that cannot be read, or is not an ELF file, has none. */
void module_functions(const char *path, void (*each)(void *context, const struct module_function *f), void *context);

#endif
