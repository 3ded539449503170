/* SPDX-License-Identifier: MIT */
/* The memory map of a running process, from /proc/PID/maps and ELF files. Programs and libraries become modules of the trace, with build-id
 * and symbols (.symtab and .dynsym); other memory becomes ranges. */
#ifndef CAPTURE_MODULES_H
#define CAPTURE_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "peet/trace.h"

/* A line of /proc/PID/maps. */
struct mapping {
    uint64_t start, end, offset; /* addresses; bytes in the file */
    uint32_t protection;         /* 1 execute, 2 write, 4 read */
    bool shared;
    const char *name; /* a path, "[stack]" and the like, or "" */
};

/* A memory map. */
struct mappings {
    struct mapping *at; /* rising addresses */
    size_t count;
    struct arena names;
};

/* The path of a process's program, and its command line with blanks between the words; "": it has ended. To be freed. */
char *process_program(pid_t pid);
char *process_command(pid_t pid);

int mappings_read(pid_t pid, struct mappings *ret, struct peet_err *err);
void mappings_parse(const char *text,
                    struct mappings *ret); /* as it stands in /proc/PID/maps; lines that are none are left out */
void mappings_release(struct mappings *m);

/* The modules of one process that are in the trace. Begins as zeros. */
struct modules {
    struct module_key {
        char *path;
        uint64_t bias;
    } * written;
    size_t count;
};

void modules_release(struct modules *m);

struct schema_builder;

/* A memory map to be written to a trace. */
struct module_scan {
    pid_t pid;        /* 0: a process of a guest; path and vdso are used */
    uint32_t process; /* number in the trace */
    const struct mappings *mappings;
    bool ranges;                                          /* write other memory as ranges, too */
    const char *(*path)(void *context, const char *name); /* path on the host; NULL: there is no such file */
    const char *vdso;                                     /* copy of the vDSO, of its mapping's size; NULL: none */
    void *context;
};
/* Writes an ELF file that is mapped at the addresses in the file: the program of a guest without memory maps. */
int modules_write_alone(struct modules *m, uint32_t process, const char *path, struct schema_builder *b,
                        struct peet_err *err);
/* Writes new modules among the mappings of a process to the trace; with `ranges` also other memory, as ranges. Files that cannot be read,
 * or are not ELF files, are other memory. */
int modules_write(struct modules *m, const struct module_scan *scan, struct schema_builder *b, struct peet_err *err);

/* A function symbol of an ELF file's .symtab or .dynsym; a function with several names has several. */
struct module_function {
    const char *name;
    uint64_t addr, offset; /* virtual address in the file; offset in the file */
    const uint8_t *code;   /* the bytes at the offset */
    uint64_t bytes;        /* number of bytes from there to the end of the segment */
};
/* Calls `each` for each function of the file. A file that cannot be read, or is not an ELF file, has none. */
void module_functions(const char *path, void (*each)(void *context, const struct module_function *f), void *context);

#endif
