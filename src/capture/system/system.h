/* SPDX-License-Identifier: MIT */
/* Programs in a guest: a whole machine that QEMU emulates, with a kernel, whose first file system is made here. What its threads do
 * is recorded by a plugin inside QEMU (capture/qemu), which writes the trace. */
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

/* What `peet record` was asked for beyond a producer_config; its argv, if it has any words, is one more application. */
struct system_config {
    const char *folder;        /* lib/peet: get-system, the plugin, ARCH/init, ARCH/libpeet-mark.so */
    const char *arch;          /* NULL: this machine's */
    uint64_t cpus, memory;     /* 0: what is usual */
    struct opt_list apps;      /* command lines */
    struct opt_list files;     /* HOST or HOST:GUEST */
    struct opt_list symbols;   /* ELF files that name code and data of a guest whose files are not here */
    struct opt_list qemu_args; /* more words for QEMU's command line, each item cut as a shell does it */
    const char *sysroot;
    const char *image, *kernel, *initrd, *append; /* image: a disk with a system of the user's own */
    bool is_other;                                /* the kernel is not Linux; system.c finds that out */
    bool is_own; /* the system starts its programs itself: it is on a disk, or the kernel is not Linux; from system.c */
    uint64_t timeout; /* seconds; 0: none */
    bool deterministic, count, offline;
    bool marked; /* the programs mark their threads themselves */
    /* for the plugin; NULL or 0: what it does by itself */
    const char *pattern, *grows;
    uint64_t k, page, stack;
    bool include_kernel, no_physical;
    /* Called with what application n (from 1 on) writes. */
    void (*output)(void *context, unsigned app, const char *text, size_t bytes);
    void *context;
};

/* ---- words.c ---- */

struct words {
    char **item; /* ends with NULL once there was one */
    size_t count;
};

void words_add(struct words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Cuts what the option was given as a shell does: blanks, quotes, backslashes; nothing is expanded. */
int words_split(const char *option, const char *line, struct words *ret, struct peet_err *err);
void words_release(struct words *w);

/* ---- apps.c: what is to run ---- */

struct app {
    struct words environment; /* NAME=VALUE in front of the program */
    struct words argv;
    char *program; /* the file here, and its name in the guest */
};

struct apps {
    struct app *item;
    size_t count;
};

/* Finds the programs of config->apps, and argv as one more if it has words. */
int apps_find(const struct system_config *config, char *const *argv, struct apps *ret, struct peet_err *err);
void apps_release(struct apps *a);

/* What to call all of them: the first program's name without its folder. To be freed. */
char *apps_name(const struct system_config *config, char *const *argv);

/* The path of a file that exists, with its folder's real name, so that it means the same in the guest. NULL: there is none. */
char *guest_path(const char *path);

struct guest_files {
    const char *initrd, *plugin, *trace, *report, *console; /* initrd and plugin may be NULL */
    uint64_t initrd_bytes;
    uint64_t apps;      /* how many applications it runs */
    const char *list;   /* which of the guest's files is which file here; NULL: nobody knows */
    const char *answer; /* a FIFO, the console's input; NULL: programs do not ask before they mark themselves */
};

/* ---- guest.c: the first file system ---- */

/* Whether programs of the guest ask before they mark themselves (peet/mark_guest.h), so that nobody looks at code before: they do, but
 * for patterns of the user's, in systems of the user's, and where an answer would come at another moment each time. */
bool guest_asks(const struct system_config *config);

/* Writes it to files->initrd, and to files->list where its files come from; *ret_bytes: its size. Programs have somebody to ask if there
 * is files->answer. Warnings go to `recording`. */
int guest_build(const struct system_config *config, const struct apps *apps, const struct guest_files *files,
                struct recording *recording, uint64_t *ret_bytes, struct peet_err *err);

/* ---- get.c: what runs the guest ---- */

struct emulator {
    char *qemu, *library, *kernel; /* library: for LD_LIBRARY_PATH, or NULL */
    struct words data;             /* folders for -L */
};

/* Finds, or gets, QEMU and a kernel; install: as root into the system, where that is possible. */
int emulator_find(const struct system_config *config, bool install, struct emulator *ret, struct peet_err *err);
void emulator_release(struct emulator *e);

/* ---- kernel.c: what boots ---- */

int kernel_is_linux(const char *path, bool *ret, struct peet_err *err);

/* ---- qemu.c: its command line ---- */

const char *guest_arch(const struct system_config *config);
int qemu_check(const struct system_config *config, struct peet_err *err); /* whether there is such a guest */
int qemu_command(const struct system_config *config, bool aslr, const struct emulator *e,
                 const struct guest_files *files, struct words *ret, struct peet_err *err);

/* ---- console.c: what the guest says ---- */

struct console {
    bool up, done;
    char *line; /* the one that has not ended yet */
    size_t bytes;
    char *last; /* the last line that came from neither init nor an application */
    size_t apps;
    struct console_app {
        bool ended;
        int status; /* as waitpid tells it */
    } * app;
    void (*output)(void *context, unsigned app, const char *text, size_t bytes);
    void *context;
};

void console_init(struct console *c, size_t apps);
void console_take(struct console *c, const char *bytes, size_t n); /* reads what is there of the guest's output */
void console_release(struct console *c);

/* ---- report.c: what the plugin says ---- */

struct report {
    bool there;
    uint64_t armed, threads, processes, instructions, references, lost;
    struct words warnings, errors; /* an error: the trace could not be written any more */
};

void report_read(const char *path, struct report *ret); /* *ret begins as zeros; may be read again */
void report_release(struct report *r);

/* ---- run.c ---- */

struct guest_run {
    int status;                    /* of QEMU, as waitpid tells it */
    bool timed_out, never_started; /* ended by us for that */
    int interrupted;               /* the signal that we got; 0: none */
};

struct guest_job {
    const struct words *command;
    const struct emulator *emulator;
    const struct guest_files *files;
    const char *log; /* what QEMU says itself */
    uint64_t timeout;
    bool own_system; /* the user's: it does not say when it is up */
    struct console *console;
    struct progress *progress; /* may be NULL */
};

/* Runs QEMU to its end. */
int guest_run(const struct guest_job *job, struct guest_run *ret, struct peet_err *err);

#endif
