/* SPDX-License-Identifier: MIT */
/* Records instrumented programs while they run: takes the words that they leave in shared memory (docs/design/instrumentation.md) and
 * makes streams of them.
 *
 * One loop sees to everything, in this order: buffers that are encoded, threads that have begun, full buffers, threads that have
 * ended. What takes time, encoding, it leaves to workers (workers.c), which touch nothing but the buffer that they were given, and
 * what keys stand for. A thread that only waits for children to end rings the bell like everybody else, and so do they. Whatever goes wrong here, the program runs on: it is
 * told to stop recording (`stop`), and waited for. */
#ifndef CAPTURE_RECORDER_LIVE_H
#define CAPTURE_RECORDER_LIVE_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/map.h"
#include "capture/modules.h"
#include "capture/producer.h"
#include "capture/protocol/schema_section.h"
#include "capture/protocol/shared_memory.h"
#include "capture/protocol/words.h"
#include "base/bytes.h"
#include "capture/x86/path.h"
#include "capture/x86/layout.h"

/* ---- code.c: what keys stand for ---- */

/* A block as the program knows it, with those that lead to it; by the address of its schema entry. */
struct live_item {
    uint32_t item;           /* of the trace; at level `calls`, the last instruction alone, or 0 */
    uint32_t entry;          /* at level `calls`: the first instruction alone, if a function begins with it; or 0 */
    uint16_t slots;          /* as the program writes them */
    _Atomic bool is_defined; /* the trace knows it: all above is right and stays so */
    bool begins_here;        /* a function does, with the root of its tree */
    bool is_carried;         /* it looks for %rsp in the trace's register */
    bool has_strings;        /* how many references it has depends on its slots */
    uint8_t choice;          /* whether its function was asked for: 0 is not known yet, LIVE_CHOSEN, LIVE_SKIPPED */
    uint8_t loops;           /* on the way; 0: it is a block */
    bool is_simple;          /* `trips` is all there is to do with its words */
    struct peet_trips trips;
    struct x86_node *_Atomic node; /* NULL: not planned yet, and nothing else is right */
};

enum { LIVE_CHOSEN = 1, LIVE_SKIPPED };

struct live_row { /* where a block begins and where its last instruction stands, at run time */
    uint64_t start, last;
};

struct live_function {
    uint64_t start, size;
    const char *name; /* in the file */
};

/* A file with instrumented code, at one place in memory; of all processes that have it there. */
struct live_module {
    char *path;
    uint64_t device, inode, bias;
    uint8_t *image; /* the whole file */
    size_t size;
    uint64_t schema, schema_end; /* run-time addresses */
    const uint8_t *entries;
    struct live_item *items; /* one for each RAW_ALIGN bytes of the section */
    struct live_row *rows;   /* rising */
    size_t row_count;
    unsigned levels;                 /* that its blocks have, as bits */
    struct live_function *functions; /* rising */
    size_t function_count;
    bool needs_others; /* libraries that are not of the system */
};

/* All of it, and the modules of processes, under producer_state.code_lock; items can be read without where they say so. */
struct live_code {
    struct schema_builder *schema; /* where items are defined */
    enum level level;              /* nothing is told beyond it */
    struct live_module **module;
    size_t modules;
    struct x86_layout layout, brute, bare; /* with as few slots as possible; with all addresses; with none */
    struct arena arena;
    struct map events; /* uint32_t: items, by their keys */
};

/* level: what was asked for, or LEVEL_NONE. */
void code_init(struct live_code *c, enum level level);

/* Adds what is new among the mappings of a process to the modules that it can use. */
int code_scan(struct live_code *c, pid_t pid, const struct mappings *m, struct live_module ***modules, size_t *count,
              struct peet_err *err);
void code_release(struct live_code *c);

/* Plans the block of an entry, so that its slots are known. */
int code_plan(struct live_code *c, struct live_module *m, uint64_t key, struct peet_err *err);

/* Defines it. */
int code_define(struct live_code *c, struct live_module *m, uint64_t key, struct live_item *ret, struct peet_err *err);
/* The call behind which an address stands, with nothing but inserted code between, and the block that follows; false: there is none. */
bool code_call(const struct live_module *m, uint64_t address, uint64_t *ret_site, uint64_t *ret_next);
int code_event(struct live_code *c, uint64_t key, uint32_t *ret_item, struct peet_err *err);

/* ---- elf.c: what stands in a file ---- */

int module_open(pid_t pid, const struct mapping *code, struct live_module **ret,
                struct peet_err *err); /* NULL: not ours */
void module_free(struct live_module *m);
/* How many of its functions begin at or in front of an address. */
size_t module_functions_up_to(const struct live_module *m, uint64_t address);
const uint8_t *module_bytes(const struct live_module *m, uint64_t address, size_t *ret_left);

/* An entry of the schema, as it stands there. */
struct live_entry {
    uint64_t start, parent; /* parent: the key of another entry, or 0 */
    unsigned kind, insns, slots, flags;
    const uint8_t *rest, *end; /* offsets of instructions, then slots */
};
bool module_entry(const struct live_module *m, uint64_t key, struct live_entry *ret);
/* The first entry at *key or behind it; *key is then behind that. */
bool module_next_entry(const struct live_module *m, uint64_t *key, struct live_entry *ret);

/* What an entry has behind its slots, if it is a loop. */
enum { LIVE_LOOP_BLOCKS = 8 };
struct live_loop {
    unsigned blocks, insns[LIVE_LOOP_BLOCKS]; /* of each block */
    uint64_t jump_count;
    struct byte_reader jumps, copies,
        rest; /* offsets of inserted jumps; of the instructions' copies; and what follows */
};
bool module_loop(const struct live_entry *e, struct live_loop *ret); /* false: it makes no sense */

/* ---- processes.c ---- */

struct live_process {
    uint32_t number;
    pid_t pid;
    struct live_module **module;
    size_t modules;
    struct modules told;
    bool ending;
    uint64_t stack_low, stack_high; /* of the first thread, at most */
};

int processes_add(struct producer_state *s, const struct raw_thread *first);
struct live_process *processes_find(struct producer_state *s, uint32_t number); /* NULL: there is none */
/* Looks for what is new in its memory. With the code's lock held. */
int processes_scan(struct producer_state *s, struct live_process *p, bool is_new, struct peet_err *err);
void processes_release(struct producer_state *s);

/* ---- drain.c: from buffers to streams ---- */

/* Who looks up keys: a thread, and each buffer of it that is encoded apart. */
struct live_reader {
    struct live_thread *thread;
    struct live_module *last; /* where the last key was found */
    struct live_job *job;     /* NULL: the thread's own */
};

/* Words on their way to a stream: what is left of those that the program wrote. */
struct live_filter {
    uint64_t *word; /* LIVE_FILTER_WORDS of them */
    size_t words;
    unsigned inside;                   /* regions that were asked for, and have begun */
    uint64_t instructions, references; /* that were left out since something was kept */
    uint64_t stack, told;              /* the trace's register for %rsp: as it is, and as the stream has it */
};

struct live_thread {
    uint32_t number; /* 0: nobody is in this place */
    unsigned turn;
    bool began; /* has said something */
    struct producer_state *recorder;
    struct live_process *process;
    struct peet_stream *stream;
    unsigned pending;                      /* buffers that workers have, or had, and that are not in the stream yet */
    _Atomic bool with_worker[RAW_BUFFERS]; /* it is FULL, or was until now, and somebody reads it */
    struct live_reader reader;
    struct live_filter filter;
};

struct live_subject { /* a child of ours that has ended */
    pid_t pid;
    int status;
};

struct producer_state {
    const struct producer_config *config;
    struct schema_builder *schema; /* definitions: the writer's, or the controller's */
    struct peet_writer *writer;    /* NULL: nothing is recorded (capture/control) */
    struct recording *ret;
    struct peet_err *err; /* the first error */
    int failed;           /* its code */
    pid_t pid;
    int fd;
    struct raw_header *header;
    char *data;
    size_t bytes;
    struct live_code code;
    pthread_mutex_t code_lock;
    struct live_workers *workers; /* NULL: there was nothing to do for them */
    struct live_process **process;
    size_t processes;
    struct live_thread thread[RAW_THREADS];
    bool moved;
    uint64_t kept;               /* with `max`: instructions that were put into streams */
    bool is_cut;                 /* words of a thread were left out, for there was enough */
    bool is_last;                /* nothing comes behind what is put now: all of it is wanted */
    uint32_t strings;            /* that the trace knows */
    unsigned levels;             /* that the trace holds, as bits; it has been told */
    unsigned built;              /* those of the program's modules */
    uint8_t region[RAW_STRINGS]; /* what is known of regions, by the numbers of their names */
    pthread_mutex_t lock;        /* for what follows */
    struct live_subject *ended;
    size_t ended_count;
    bool main_ended;
};

/* What a key that is no event stands for, planned; its module is then r->last. */
int live_find(struct live_reader *r, uint64_t key, struct live_item **ret, struct peet_err *err);

/* Puts words of the program into a thread's stream. */
int live_put(struct live_thread *t, uint64_t *words, size_t n, struct peet_err *err);

struct peet_names live_names(struct live_reader *r); /* for words of the program */

/* Tells the trace what strings the program has. */
int live_strings(struct producer_state *s);

/* Whether nothing more of a thread is wanted. Of one that is alone that is so where `max` is reached. Where there are others, what each has
 * said until then belongs together: it may have created them, or they have met. */
bool live_is_enough(const struct live_thread *t);

/* Behind all that was put into the file, or could not be: how far we are. */
void live_did_put(struct producer_state *s, int code);

/* The words of a buffer have been read: the program may have it again. */
void live_empty(struct raw_buffer *b, uint64_t *words, size_t bytes);

uint64_t *live_buffer(struct producer_state *s, uint32_t place, unsigned i);

/* Looks at every place of the table once; true: something was there to be done. */
bool drain_all(struct producer_state *s);
/* What is left of threads whose processes are gone, or all: when we go first. */
void drain_rest(struct producer_state *s, bool all);
/* Whether a recorded process still runs. */
bool drain_anybody(struct producer_state *s);

/* Nothing more is recorded; the program is not to wait for us. */
void live_stop(struct producer_state *s, int code);

/* ---- workers.c: buffers that are encoded at the same time ----
 *
 * Buffers of any threads, and several of one, each by a worker. What is done with them has the order in which they were taken:
 * they are committed to their streams in it, and items that are new to the trace are numbered in it, so that of a program
 * with one thread two recordings are the same. All but workers_await_turn is for the one loop. */

enum { LIVE_LARGE = RAW_BUFFER_BYTES / 4 }; /* what is smaller is not worth a chunk */

struct live_buffer {
    struct raw_buffer *raw;
    _Atomic bool *with_worker;
    uint64_t *words;
    size_t bytes;
};

/* Whether workers_take would have to wait. */
bool workers_are_busy(const struct producer_state *s);
/* Gives them a buffer, the next one of its thread; whoever has read it empties it. */
void workers_take(struct producer_state *s, struct live_thread *t, const struct live_buffer *b,
                  uint64_t thread_pointer);
/* Commits what is encoded, as far as that is possible; true: there was something. */
bool workers_commit(struct producer_state *s);
/* Waits until everything is committed; true: there was something. */
bool workers_settle(struct producer_state *s);
/* Waits until all buffers that were taken before have been read to their ends. */
void workers_await_turn(const struct live_job *j);
void workers_release(struct producer_state *s);

/* ---- live.c ---- */

/* Wakes the loop; by anybody. */
void live_ring(struct producer_state *s);
/* Sleeps until somebody rings who has not been heard, or a little while. */
void live_listen(struct producer_state *s, uint32_t heard);

/* Signals from the keyboard are for the program from now on, and others go to it. */
enum { LIVE_SIGNALS = 4 };
struct live_signals {
    struct sigaction action[LIVE_SIGNALS];
};
void live_warn_of_foreign_code(
    struct producer_state *s); /* foreign.c: at the end, when the program has been waited for */
void live_take_signals(pid_t pid, struct live_signals *old);
uint32_t live_asked(void); /* the signal that has asked for the end last since then; 0: none */
void live_give_signals_back(const struct live_signals *old);

/* ---- steer.c ---- */

/* A program whose C library is its own cannot be steered; it has just been started. */
int live_refuse_static(pid_t pid, const char *name, struct peet_err *err);

/* ---- filter.c: less than the program says ---- */

enum { LIVE_FILTER_WORDS = 1 << 14 };
enum { LIVE_ENTRY = 1, LIVE_LAST = 2 }; /* added to a key: one instruction of its block, at level `calls` */

bool filter_is_wanted(const struct producer_state *s);
int filter_put(struct live_thread *t, const uint64_t *words, size_t n, struct peet_err *err);
int filter_end(struct live_thread *t, struct peet_err *err); /* nothing more comes: tells the last gap */
/* How many instructions a record of the program stands for. */
uint64_t filter_instructions(const struct live_item *item, const uint64_t *slots);
void filter_warn(struct producer_state *s); /* of what was asked for and did not occur */
/* Whether functions that were asked for can be there, before the program runs. */
int filter_foresee(struct producer_state *s, struct peet_err *err);
void filter_release(struct live_filter *f);

/* ---- start.c ---- */

#define LIVE_NAME "peet-record"
#define LIVE_MEMORY "/memfd:" LIVE_NAME /* what the kernel calls it in the program's mappings */

int live_start(struct producer_state *s, struct peet_err *err);
/* Memory that somebody else shares with the program. */
int live_share(struct producer_state *s, const char *file, struct peet_err *err);
void live_let_go(struct producer_state *s);

#endif
