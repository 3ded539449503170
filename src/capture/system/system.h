/* SPDX-License-Identifier: MIT */
/* The producer for programs in a guest: a machine that QEMU emulates, with a kernel, and a first file system that is made here. A plugin in
 * QEMU (capture/qemu) records threads and writes the trace. docs/design/full-system.md has the design. */
#ifndef CAPTURE_SYSTEM_SYSTEM_H
#define CAPTURE_SYSTEM_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/opt.h"
#include "capture/producer.h"
#include "peet/err.h"

/* X(name, machine of ELF files, triplet of Debian): what a guest can be */
#define GUEST_ARCHES(X) \
    X(x86_64, EM_X86_64, "x86_64-linux-gnu") \
    X(aarch64, EM_AARCH64, "aarch64-linux-gnu") \
    X(riscv64, EM_RISCV, "riscv64-linux-gnu")

extern const char *const GUEST_ARCH_NAMES[]; /* ends with NULL */

/* Options of `peet record --system` beyond producer_config. producer_config.argv, if it has words, is one more application. */
struct system_config {
    const char *folder;        /* lib/peet: get-system, the plugin, ARCH/init, ARCH/libpeet-mark.so */
    const char *arch;          /* NULL: the host's */
    uint64_t cpus, memory;     /* number; bytes; 0: the default */
    struct opt_list apps;      /* command lines */
    struct opt_list files;     /* HOST or HOST:GUEST */
    struct opt_list symbols;   /* ELF files that name code and data of a guest whose files are not here */
    struct opt_list qemu_args; /* more words for QEMU's command line, each item cut as a shell does it */
    const char *sysroot;
    const char *image, *kernel, *initrd, *append; /* image: a disk with the user's system */
    bool is_other;                                /* the kernel is not Linux; system.c finds that out */
    bool is_own; /* the system starts its programs itself: it is on a disk, or the kernel is not Linux; from system.c */
    uint64_t timeout; /* seconds; 0: none */
    bool deterministic, count, offline;
    bool marked; /* the programs mark their threads themselves */
    struct {     /* options of the plugin (capture/qemu/plugin/plugin.c); NULL, 0: its defaults */
        const char *pattern, *grows;
        uint64_t k, page, stack;
        bool include_kernel, no_physical;
    } plugin;
    /* Called with the output of application n, from 1. */
    void (*output)(void *context, unsigned app, const char *text, size_t bytes);
    void *context;
};

/* ---- words.c ---- */

/* The words of a command line. */
struct words {
    char **item; /* ends with NULL if there is any word */
    size_t count;
};

void words_add(struct words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Splits the value of an option as a shell does: blanks, quotes, backslashes; without expansion. */
int words_split(const char *option, const char *line, struct words *ret, struct peet_err *err);
void words_release(struct words *w);

/* ---- apps.c: applications ---- */

/* A program to be run in the guest. */
struct app {
    struct words environment; /* NAME=VALUE before the program */
    struct words argv;
    char *program; /* path on the host, and in the guest */
};

/* The applications, numbered from 1. */
struct apps {
    struct app *item;
    size_t count;
};

/* Makes the applications of config->apps, and of argv if it has words. */
int apps_find(const struct system_config *config, char *const *argv, struct apps *ret, struct peet_err *err);
void apps_release(struct apps *a);

/* A name for all applications: the first program's, without its folder. To be freed. */
char *apps_name(const struct system_config *config, char *const *argv);

/* The path of an existing file with its folder's real name, so that it is valid in the guest. NULL: no such file. */
char *guest_path(const char *path);

/* Files of a run, on the host, and values for QEMU's command. */
struct guest_files {
    const char *initrd;    /* the guest's first file system; NULL: the user's system has its own */
    const char *plugin;    /* for QEMU; NULL: nothing is recorded */
    const char *trace;     /* written by the plugin; NULL in guest_job, which needs report and console only */
    const char *report;    /* the plugin's report */
    const char *console;   /* the guest's output */
    uint64_t initrd_bytes; /* size of initrd; 0: none */
    uint64_t apps;         /* number of applications */
    const char *list;      /* the guest's files and their copies on the host; NULL: not known */
    const char *answer;    /* a FIFO, the console's input; NULL: not guest_asks() */
};

/* ---- guest.c: the first file system ---- */

/* Whether programs of the guest ask before they mark themselves (peet/mark_guest.h), so that no code is instrumented before. Not with a
 * user's pattern, in a user's system, or in deterministic runs: there the moment of the answer would vary. */
bool guest_asks(const struct system_config *config);

/* Writes the file system to files->initrd, and the origins of its files to files->list. *ret_bytes: its size. If there is files->answer, the
 * file system has the device by which programs ask. Warnings go to `recording`. */
int guest_build(const struct system_config *config, const struct apps *apps, const struct guest_files *files,
                struct recording *recording, uint64_t *ret_bytes, struct peet_err *err);

/* ---- get.c: QEMU and a kernel ---- */

/* Files that run the guest. */
struct emulator {
    char *qemu, *library, *kernel; /* library: for LD_LIBRARY_PATH; NULL: none */
    struct words data;             /* folders for -L */
};

/* Finds, or gets, QEMU and a kernel. install: as root into the host's system, where possible. */
int emulator_find(const struct system_config *config, bool install, struct emulator *ret, struct peet_err *err);
void emulator_release(struct emulator *e);

/* ---- kernel.c: kinds of kernels ---- */

int kernel_is_linux(const char *path, bool *ret, struct peet_err *err);

/* ---- qemu.c: QEMU's command line ---- */

const char *guest_arch(const struct system_config *config);
int qemu_check(const struct system_config *config, struct peet_err *err); /* an error if there is no such guest */
int qemu_command(const struct system_config *config, bool aslr, const struct emulator *e,
                 const struct guest_files *files, struct words *ret, struct peet_err *err);

/* ---- console.c: the guest's output ---- */

/* The state of the guest, from its console. */
struct console {
    bool up, done; /* init has begun; all applications have ended */
    char *line;    /* the incomplete line at the end */
    size_t bytes;  /* of it */
    char *last;    /* the last line of the kernel or the firmware */
    size_t apps;
    struct console_app {
        bool ended;
        int status; /* as waitpid has it */
    } * app;
    void (*output)(void *context, unsigned app, const char *text, size_t bytes);
    void *context;
};

void console_init(struct console *c, size_t apps);
void console_take(struct console *c, const char *bytes, size_t n); /* handles the next bytes of the guest's output */
void console_release(struct console *c);

/* ---- report.c: the plugin's report ---- */

/* The plugin's report. */
struct report {
    bool there;                                            /* the file exists */
    uint64_t armed;                                        /* 1: a thread marked itself */
    uint64_t threads, processes, instructions, references; /* recorded */
    uint64_t lost;                                         /* instructions or accesses that were not recorded */
    struct words warnings, errors;                         /* an error: the trace could not be written */
};

void report_read(const char *path, struct report *ret); /* *ret begins as zeros; may be read again */
void report_release(struct report *r);

/* ---- run.c ---- */

/* The end of a run. */
struct guest_run {
    int status;                    /* of QEMU, as waitpid has it */
    bool timed_out, never_started; /* why peet has ended QEMU */
    int interrupted;               /* the signal that peet got; 0: none */
};

/* A run of QEMU. */
struct guest_job {
    const struct words *command;
    const struct emulator *emulator;
    const struct guest_files *files;
    const char *log;  /* file for QEMU's messages */
    uint64_t timeout; /* seconds; 0: none */
    bool own_system;  /* the user's, which does not report that it is up */
    struct console *console;
    struct progress *progress; /* may be NULL */
};

/* Runs QEMU to its end. */
int guest_run(const struct guest_job *job, struct guest_run *ret, struct peet_err *err);

#endif
