/* SPDX-License-Identifier: MIT */
/* The recorder of instrumented programs: reads event words from shared memory and writes streams (docs/design/recording.md).
 *
 * One thread, the loop, does in this order: commit encoded buffers, add new threads, take full buffers, close ended threads. Workers
 * (workers.c) encode; a worker touches only its buffer and the code tables. Workers, the thread that waits for child processes, and the
 * program wake the loop by a doorbell. After an error the program continues: it stops recording (raw_header.stop), and the recorder waits
 * for its end. */
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

struct recorder;

/* ---- code.c: schema entries and their items ---- */

/* A schema entry, with the entries on the path from the root of its tree to it. */
struct live_item {
    uint32_t item;  /* of the trace; at level `calls`: of the last instruction alone, or 0 */
    uint32_t entry; /* at level `calls`: item of the first instruction alone, if a function begins with it; or 0 */
    uint16_t slots; /* number of words after the key */
    _Atomic bool is_defined; /* the trace has the item; then all fields above are final */
    bool is_function_entry;  /* a function begins with the root of its tree */
    bool sp_in_register;     /* it reads %rsp from a register of the trace */
    bool has_strings;        /* its number of references depends on its slots */
    uint8_t
        selection;  /* whether --only and --skip select its function: LIVE_SELECTED, LIVE_SKIPPED; 0: not known yet */
    uint8_t loops;  /* number of loops on the path; 0: a block */
    bool is_simple; /* `trips` describes its iteration counts */
    struct peet_trips trips;
    struct x86_node *_Atomic node; /* the plan; NULL: not planned yet, and all other fields are invalid */
};

enum { LIVE_SELECTED = 1, LIVE_SKIPPED };

/* Addresses of a block's first and last instruction in memory. */
struct live_block_range {
    uint64_t start, last;
};

/* A function symbol. */
struct live_function {
    uint64_t start, size; /* address in memory; bytes, 0: not known */
    const char *name;     /* in the file's image */
};

/* A file with instrumented code, mapped at one address; shared by all processes that have it there. */
struct live_module {
    char *path;
    uint64_t device, inode;
    uint64_t bias;                  /* difference between addresses in memory and in the file */
    uint8_t *image;                 /* the whole file */
    size_t size;                    /* bytes */
    uint64_t schema, schema_end;    /* addresses of .peet.schema in memory */
    const uint8_t *entries;         /* the section in the image */
    struct live_item *items;        /* one for each RAW_ALIGN bytes of the section */
    struct live_block_range *range; /* by rising address */
    size_t ranges;
    unsigned levels;                 /* bit n: it has blocks of level n */
    struct live_function *functions; /* by rising address */
    size_t function_count;
    bool needs_others; /* it loads libraries that are not of the system */
};

/* The code tables. Protected by recorder.code_lock, as are the modules of processes; fields of items may be read without it where
 * struct live_item says so. */
struct live_code {
    struct schema_builder *schema; /* where items are defined */
    enum level level;              /* the greatest level to be recorded; LEVEL_NONE: as built */
    struct live_module **module;
    size_t modules;
    struct x86_layout layout;               /* plans with the fewest slots */
    struct x86_layout all_addresses_layout; /* RAW_ALL_ADDRESSES */
    struct x86_layout no_operands_layout;   /* RAW_NO_OPERANDS */
    struct arena arena;
    struct map events; /* uint32_t item by key */
};

/* level: of --level; LEVEL_NONE: as built. */
void code_init(struct live_code *c, enum level level);

/* Adds the instrumented files among a process's mappings to its modules. */
int code_scan(struct live_code *c, pid_t pid, const struct mappings *m, struct live_module ***modules, size_t *count,
              struct peet_err *err);
void code_release(struct live_code *c);

/* Plans the block of an entry: live_item.node, slots, loops. */
int code_plan(struct live_code *c, struct live_module *m, uint64_t key, struct peet_err *err);

/* Plans the block of an entry and defines it in the trace. */
int code_define(struct live_code *c, struct live_module *m, uint64_t key, struct live_item *ret, struct peet_err *err);
/* Finds the call before an address, with only inserted code between, and the block after it. False: none. */
bool code_call(const struct live_module *m, uint64_t address, uint64_t *ret_site, uint64_t *ret_next);
int code_event(struct live_code *c, uint64_t key, uint32_t *ret_item, struct peet_err *err);

/* ---- elf.c: files with instrumented code ---- */

/* *ret: NULL: it has no instrumented code. */
int module_open(pid_t pid, const struct mapping *code, struct live_module **ret, struct peet_err *err);
void module_free(struct live_module *m);
/* Number of functions that begin at or before an address. */
size_t module_functions_up_to(const struct live_module *m, uint64_t address);
const uint8_t *module_bytes(const struct live_module *m, uint64_t address, size_t *ret_left);

/* A decoded entry of .peet.schema. */
struct live_entry {
    uint64_t start, parent; /* parent: key of its parent's entry; 0: a root */
    unsigned kind, insns, slots, flags;
    const uint8_t *rest, *end; /* the entry's rest: offsets of instructions, then slots */
};
bool module_entry(const struct live_module *m, uint64_t key, struct live_entry *ret);
/* Finds the first entry at or after *key, and advances *key past it. False: none. */
bool module_next_entry(const struct live_module *m, uint64_t *key, struct live_entry *ret);

/* The part of a loop's entry after its slots. */
enum { LIVE_LOOP_BLOCKS = 8 };
/* The rest of an entry of kind RAW_LOOP. */
struct live_loop {
    unsigned blocks, insns[LIVE_LOOP_BLOCKS]; /* number of blocks; number of instructions of each */
    uint64_t jump_count;
    struct byte_reader jumps;  /* offsets of inserted jumps */
    struct byte_reader copies; /* offsets of the instructions' copies */
    struct byte_reader rest;   /* bytes after them */
};
bool module_loop(const struct live_entry *e, struct live_loop *ret); /* false: the entry is malformed */

/* ---- processes.c ---- */

/* A recorded process. */
struct live_process {
    uint32_t number; /* in the trace */
    pid_t pid;
    struct live_module **module;    /* instrumented files in its memory */
    size_t modules;                 /* elements of `module` */
    struct modules modules_written; /* modules that the trace has */
    bool is_ending;                 /* a thread has begun its end */
    uint64_t stack_low, stack_high; /* greatest extent of the first thread's stack */
};

int processes_add(struct recorder *s, const struct raw_thread *first);
struct live_process *processes_find(struct recorder *s, uint32_t number); /* NULL: there is none */
/* Looks for new files in its memory. Under recorder.code_lock. */
int processes_scan(struct recorder *s, struct live_process *p, bool is_new, struct peet_err *err);
void processes_release(struct recorder *s);

/* ---- threads ---- */

/* A reader of event words: a thread's, or that of a buffer which a worker encodes. */
struct live_reader {
    struct live_thread *thread;
    struct live_module *last; /* module of the last key; NULL: none yet */
    struct live_job *job;     /* the worker's job; NULL: the thread's reader */
};

/* State of the filter for one thread: event words that passed it, and what was left out. */
struct live_filter {
    uint64_t *word; /* LIVE_FILTER_WORDS of them; NULL: not in use yet */
    size_t words;
    unsigned open_regions;             /* number of selected regions that have begun and not ended */
    uint64_t instructions, references; /* numbers that were left out since the last recorded word */
    uint64_t stack, recorded_stack;    /* the trace's register for %rsp: its value, and the value in the stream */
};

/* A thread of the program, in the entry of the shared table with the same index. */
struct live_thread {
    uint32_t number;      /* in the trace; 0: the entry is free */
    unsigned next_buffer; /* index of the buffer that is read next */
    bool began;           /* words of it were read */
    struct recorder *recorder;
    struct live_process *process;
    struct peet_stream *stream;
    unsigned pending;                      /* number of buffers given to workers and not committed yet */
    _Atomic bool with_worker[RAW_BUFFERS]; /* a worker reads the buffer, which is RAW_FULL or was until now */
    struct live_reader reader;
    struct live_filter filter;
};

/* A child process that has ended. */
struct live_child {
    pid_t pid;
    int status; /* as waitpid has it */
};

/* A recording of an instrumented program. The controller (capture/control) uses it, too, without a writer. */
struct recorder {
    const struct producer_config *config;
    struct schema_builder *schema; /* definitions: the writer's, or the controller's */
    struct peet_writer *writer;    /* NULL: nothing is recorded (capture/control) */
    struct recording *ret;
    struct peet_err *err; /* the first error */
    int failed;           /* its code; 0: none */
    pid_t pid;            /* of the program; 0: not started, or waited for */
    int fd;               /* of the shared memory */
    struct raw_header *header;
    char *data;   /* buffers in the shared memory */
    size_t bytes; /* of the shared memory */
    struct live_code code;
    pthread_mutex_t code_lock;
    struct live_workers *workers; /* NULL: not started yet */
    struct live_process **process;
    size_t processes;
    struct live_thread thread[RAW_THREADS];
    bool aslr_kept; /* ASLR could not be switched off */
    struct {
        uint64_t instructions; /* number recorded; counted if config.max is set */
        bool is_cut;           /* words of a thread were left out because of config.max */
        bool is_last;          /* the last buffers of all threads are being read: config.max no longer applies */
    } limit;
    uint32_t strings; /* number of strings in the trace */
    struct {
        unsigned recorded; /* bit n: the trace has level n, and its meta entry */
        unsigned built;    /* bit n: a module was built for level n */
    } levels;
    uint8_t region[RAW_STRINGS]; /* REGION_ flags of region names (filter.c), by string number - 1 */
    struct {
        pthread_mutex_t lock; /* for the rest */
        struct live_child *ended;
        size_t count;
        bool main_has_ended;
    } children;
};

/* ---- keys.c: the key resolver ---- */

/* Finds the planned item of a key that is no event. Its module is r->last. */
int live_find(struct live_reader *r, uint64_t key, struct live_item **ret, struct peet_err *err);

struct peet_names live_names(struct live_reader *r); /* resolves keys of the reader's words */

/* ---- drain.c: from buffers to streams ---- */

/* Writes words of the program to a thread's stream. */
int live_put(struct live_thread *t, uint64_t *words, size_t n, struct peet_err *err);

/* Writes new strings of the program to the trace. */
int live_strings(struct recorder *s);

/* Whether no more words of the thread are recorded: config.max is reached and no other thread exists. With several threads, all that they
 * wrote until then is recorded, because their events depend on each other. */
bool live_is_enough(const struct live_thread *t);

/* After each write to the file: handles its error, or shows progress. */
void live_did_put(struct recorder *s, int code);

/* Returns a buffer to the program: its words were read. */
void live_empty(struct raw_buffer *b, uint64_t *words, size_t bytes);

/* Buffer i of an entry of the table. */
uint64_t *live_buffer(struct recorder *s, uint32_t entry, unsigned i);

/* Examines each entry of the table once. True: there was something to do. */
bool drain_all(struct recorder *s);
/* Closes threads of processes that have ended; `all`: of all processes, when the recorder ends first. */
void drain_rest(struct recorder *s, bool all);
/* Whether a recorded process still runs. */
bool drain_is_any_alive(struct recorder *s);

/* Stops recording; the program no longer waits for the recorder. */
void live_stop(struct recorder *s, int code);

/* ---- workers.c: parallel encoding ----
 *
 * Workers encode buffers of any threads, several of one thread at the same time. Chunks are committed to streams, and new items are
 * numbered, in the order in which the buffers were taken. So two recordings of a program with one thread are equal. Only the loop calls
 * these functions, except workers_await_turn. */

enum { LIVE_LARGE = RAW_BUFFER_BYTES / 4 }; /* bytes; smaller buffers are encoded by the loop */

/* A full buffer of a thread. */
struct live_buffer {
    struct raw_buffer *raw;    /* its header */
    _Atomic bool *with_worker; /* element of live_thread.with_worker */
    uint64_t *words;
    size_t bytes; /* of `words` */
};

/* Whether workers_take would have to wait. */
bool workers_are_busy(const struct recorder *s);
/* Gives a worker the next buffer of a thread. The worker returns it to the program when it has read it. */
void workers_take(struct recorder *s, struct live_thread *t, const struct live_buffer *b, uint64_t thread_pointer);
/* Commits encoded buffers in order, up to the first that is not encoded yet. True: there was one. */
bool workers_commit(struct recorder *s);
/* Waits until all buffers are committed. True: there was one. */
bool workers_settle(struct recorder *s);
/* Called by a worker: waits until all buffers that were taken before its job's have been read to their ends. */
void workers_await_turn(const struct live_job *j);
void workers_release(struct recorder *s);

/* ---- live.c ---- */

/* Wakes the loop by the doorbell. Called by any thread. */
void live_notify(struct recorder *s);
/* Sleeps until the doorbell's count differs from `count`, at most PATIENCE_NS. */
void live_wait(struct recorder *s, uint32_t count);

enum { LIVE_SIGNALS = 4 };
/* Handlers of SIGINT, SIGQUIT, SIGTERM and SIGHUP before live_take_signals. */
struct live_signals {
    struct sigaction action[LIVE_SIGNALS];
};
/* From now on the program gets these signals: from the keyboard by the kernel, others are forwarded. */
void live_take_signals(pid_t pid, struct live_signals *old);
uint32_t live_asked(void); /* the last such signal since then; 0: none */
void live_give_signals_back(const struct live_signals *old);

/* ---- uninstrumented.c ---- */

/* Warns, after the program's end, if most of its work was done by uninstrumented code. */
void live_warn_of_uninstrumented_code(struct recorder *s);

/* ---- capture/control/control.c ---- */

/* An error if the program, which was just started, is linked statically: such a program cannot be controlled. */
int live_refuse_static(pid_t pid, const char *name, struct peet_err *err);

/* ---- filter.c: --level, --region, --only, --skip ---- */

enum { LIVE_FILTER_WORDS = 1 << 14 };
enum {
    LIVE_ENTRY = 1,
    LIVE_LAST = 2
}; /* added to a key at level `calls`: the first, the last instruction of its block */

bool filter_is_wanted(const struct recorder *s);
int filter_put(struct live_thread *t, const uint64_t *words, size_t n, struct peet_err *err);
int filter_end(struct live_thread *t, struct peet_err *err); /* at the thread's end: records the last gap */
/* Number of instructions of an item with these slots. */
uint64_t filter_instructions(const struct live_item *item, const uint64_t *slots);
void filter_warn(struct recorder *s); /* of regions and functions that were selected and did not occur */
/* An error, before the program runs, if it cannot have a function of --only. */
int filter_foresee(struct recorder *s, struct peet_err *err);
void filter_release(struct live_filter *f);

/* ---- start.c ---- */

#define LIVE_NAME "peet-record"
#define LIVE_MEMORY "/memfd:" LIVE_NAME /* its name in the program's memory map */

/* Starts the program, stopped before its first instruction. */
int live_start(struct recorder *s, struct peet_err *err);
/* Maps memory that another process shares with the program. */
int live_share(struct recorder *s, const char *file, struct peet_err *err);
void live_let_go(struct recorder *s); /* lets the program run */

#endif
