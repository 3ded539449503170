/* SPDX-License-Identifier: MIT */
/* The QEMU plugin: records the user code of chosen threads (targets) of a guest. docs/design/full-system.md has the design. */
#ifndef CAPTURE_QEMU_PLUGIN_PLUGIN_H
#define CAPTURE_QEMU_PLUGIN_PLUGIN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "capture/modules.h"
#include "capture/qemu/calls.h"
#include "capture/qemu/guest.h"
#include "capture/qemu/pattern.h"
#include "capture/qemu/plugin/qemu.h"
#include "capture/qemu/threads.h"
#include "peet/trace.h"

/* ---- settings ---- */

/* The plugin's options; plugin.c describes them. */
struct settings {
    const char *out, *report; /* paths; report: NULL: none */
    const char *files;        /* list of the guest's files and their copies on the host; NULL: not known */
    const char **symbols;     /* ELF files with names of code and data, for a guest whose files are not listed */
    size_t symbol_files;
    uint64_t applications; /* number of applications; application n gets process number n, from 1 */
    const char *console,
        *answer;   /* file with the guest's output, FIFO for its input; NULL: programs do not ask before they mark */
    bool counts;   /* mode=count: numbers per thread, no trace */
    bool kernel;   /* record kernel code on the stacks of targets */
    bool physical; /* record physical addresses */
    bool all_unreported; /* for tests: all x86-64 blocks are translated as unreported blocks */
    bool stack_only;     /* for tests: threads are identified by their stacks alone, as in the paper */
    bool given_stack;    /* `window` replaces what markers say of stacks */
    bool other_os;       /* not Linux: numbers of system calls and frames of signals are not known */
    struct pattern pattern;
    struct window_config window;
};

/* ---- blocks ---- */

enum { SLOTS_NONE = 0xffff };

/* An instruction of a block; the argument of call-backs for accesses. */
struct block_insn {
    struct guest_insn guest;
    uint16_t index;        /* in the block */
    uint16_t slots;        /* number of slots of the regular block that it fills */
    uint16_t before;       /* number of slots that the instructions before it fill */
    uint16_t last_in_page; /* the greatest offset in a page at which its access stays in the page */
    bool
        is_computable; /* in an unreported block: its addresses follow from registers; QEMU does not report its accesses */
    struct block *block;
};

/* An instruction that can be a part of a marker. */
struct candidate {
    struct block_insn *insn;
    uint8_t bytes[GUEST_BYTES];
    size_t length; /* bytes */
};

/* An item of the trace: instructions of a block with certain accesses, or an event at a call site. The key of its event words is its
 * address. */
struct trace_item {
    uint32_t item;       /* its number in the trace; 0: not defined yet */
    uint32_t kind;       /* of an event: enum peet_event_kind */
    uint64_t call_site;  /* of an event: address of the call; 0: not known */
    struct block *block; /* NULL: an event */
    struct trace_item *next;
    uint16_t first, end; /* indexes of its instructions: first … end - 1 */
    uint16_t operands, slots;
    struct item_operand {
        uint32_t size;  /* bytes */
        uint16_t index; /* of the instruction in the block */
        uint8_t kind, slot;
        uint8_t count; /* 1 + the slot with the number of elements; 0: one element */
        bool down;     /* elements at falling addresses */
    } operand[];
};

/* A translation block of QEMU. It is never freed, because QEMU may execute it at any time. A block is regular when each execution to its
 * end makes the same accesses; then its event words are addresses only. QEMU reuses a translation where the same page is mapped at
 * another address; such an alias is a block, too, and shares the instructions of its origin. */
struct block {
    uint64_t pc;
    uint32_t insns;
    uint32_t page;                   /* number of the page of code in which it begins (plugin.pages) */
    uint16_t slots;                  /* of `regular_item`; SLOTS_NONE: it is not regular */
    bool is_irregular;               /* it never becomes regular */
    bool repeats;                    /* its last instruction is a string instruction */
    bool is_call;                    /* its last instruction is a system call */
    bool is_kernel;                  /* code of the kernel */
    bool is_planned;                 /* is_computable of its instructions is set */
    _Atomic bool is_found_late;      /* unreported, and executed by a target; its page is in target_pages */
    uint64_t host_page;              /* number of its page in QEMU's memory; 0: not known */
    struct trace_item *regular_item; /* a whole execution; NULL: not regular yet */
    struct trace_item *other_items;  /* list of all other executions */
    struct block_insn *insn;
    uint64_t moved_by;                 /* an alias: its address minus that of its origin */
    struct block *next_alias, *origin; /* list of aliases; origin: NULL in the block that was translated */
};

/* An access that QEMU has reported. */
struct access {
    uint64_t addr;
    uint16_t index; /* of the instruction in the block */
    uint8_t shift;  /* size: 1 << shift bytes */
    bool is_store;
};

enum { JOURNAL_ROOM = 4096 };

/* The accesses of one execution of a block that is not regular. */
struct journal {
    unsigned count;
    bool is_full;     /* accesses were lost */
    bool is_computed; /* some accesses were computed, not reported */
    struct {
        uint64_t first, second, last; /* addresses */
        uint64_t count;
    } repeated[2]; /* of the string instruction at the end: loads, stores */
    struct access access[JOURNAL_ROOM];
};

struct block *block_new(const struct qemu_plugin_tb *tb, bool is_kernel);
/* The alias of a block at another address. */
struct block *block_alias(struct block *b, uint64_t pc);
/* Writes event words for instructions first … end - 1 with the accesses of the journal. Returns the number of words; `words` has room for
 * WORDS_MAX. After a whole execution the block becomes regular or irregular. */
enum { WORDS_MAX = 16384 };
size_t block_describe(struct block *b, uint32_t first, uint32_t end, const struct journal *j, uint64_t *words);
/* The item of a regular block that was left before instruction `end`. */
struct trace_item *block_item_before(struct block *b, uint32_t end);
/* The item of a whole execution; NULL: the block is not regular. */
struct trace_item *block_regular_item(struct block *b);
int item_define(struct trace_item *s, struct peet_writer *w, struct peet_err *err);

/* ---- threads and processes ---- */

/* A process of the guest with targets. */
struct guest_process {
    uint64_t root;   /* of its address space */
    uint64_t number; /* in the guest's kernel; 0: not known */
    uint32_t id;     /* in the trace; 0: none of its threads is marked yet */
    bool has_ended;
    bool is_recorded;             /* the trace has its definition */
    bool has_ranges;              /* the memory that it had at its first mark is in the trace */
    bool is_named;                /* its files are in the trace: those of its maps, or those of symbols= */
    _Atomic uint64_t end_of_data; /* address set by brk; 0: not known */
    struct map entries;           /* const struct call_rule * by address of the function; under plugin.lock */
    struct map
        objects; /* uint64_t by address: of a barrier its number of threads, of a held spin lock 1; under plugin.lock */
    char *program, *command;
    struct maps *maps;        /* memory map that is not in the trace yet; NULL: none (maps.c) */
    struct peet_range *range; /* memory that libraries have mapped for their use (maps.c) */
    size_t ranges, ranges_written;
    struct modules modules; /* files in the trace; for the writer thread only */
    /* By number of a page of code: its address minus that at which it was translated, or UNKNOWN_OFFSET. */
    _Atomic(uint64_t *) page_offsets;
    _Atomic uint32_t page_offsets_room;
    struct guest_process *next;
};

#define UNKNOWN_OFFSET UINT64_MAX

/* A signal handler that a thread has entered and not left. */
struct signal_frame {
    unsigned signal;
    uint64_t resume; /* address of the interrupted instruction */
};
enum { SIGNAL_FRAMES_MAX = 32 };

/* A call of a function in CALL_RULES that has not returned (calls.c). */
struct call {
    const struct call_rule *rule;
    uint64_t arg[CALL_ARGUMENTS];
    uint64_t back, sp;          /* return address; stack pointer at the entry */
    unsigned level;             /* number of signal handlers that had been entered */
    bool is_recorded;           /* the event was written at the entry */
    struct guest_thread *child; /* the thread whose handle is the first argument; NULL: not known */
};
enum { CALLS_MAX = 8 };

/* State of a thread's parent. NONE: the trace has a stream of the thread without parent. */
enum { PARENT_UNKNOWN, PARENT_KNOWN, PARENT_NONE };

/* A thread of the guest that has marked itself, or whose creation was recorded. */
struct guest_thread {
    struct target *target; /* NULL: it has not marked itself */
    struct guest_process *process;
    uint32_t id;                /* in the trace */
    uint64_t cookie, cookie_at; /* of its card; cookie_at: address of the cookie, 0: no card */
    bool is_window_given; /* the mark has given its stack; otherwise the window is estimated from the stack pointer */
    struct buffer *buffer;
    int owner;         /* number of the processor that executes it; -1: none */
    uint64_t native;   /* number in the guest's kernel; 0: not known */
    uint64_t handle;   /* value of pthread_self; 0: not known */
    bool is_suspended; /* it has marked its end, and may mark a beginning again */
    struct {
        _Atomic int parentage;     /* PARENT_UNKNOWN … */
        uint32_t parent;           /* its number in the trace */
        uint32_t ordinal;          /* number of children that the parent had created before it */
        uint32_t children;         /* number of threads that it has created */
        bool is_joined;            /* thread_join of it was recorded */
        bool is_creating;          /* it is in a function that creates a thread */
        struct guest_thread *made; /* while is_creating: the created thread; NULL: not known yet */
    } family;
    struct call call[CALLS_MAX];
    unsigned calls;
    struct {                                       /* its last entry of the kernel */
        bool has_resume;                           /* `resume` is known */
        uint64_t resume;                           /* address at which user code resumes */
        bool is_cloning, is_returning, is_in_exec; /* the system call is clone, sigreturn, exec */
        bool is_context_borrowed;    /* while is_cloning: its child uses its stack or thread pointer (vfork) */
        enum guest_call memory_call; /* system call that changes memory; GUEST_CALL_OTHER: none (memory.c) */
        uint64_t memory_arg[3];
    } kernel;
    struct {               /* a string instruction that was interrupted */
        bool is_suspended; /* false: none; the rest is not valid */
        struct block *block;
        uint32_t first;          /* index of the block's first instruction to be recorded */
        struct journal *journal; /* accesses until the interruption; otherwise a spare, or NULL */
    } string_insn;
    struct signal_frame signal_frame[SIGNAL_FRAMES_MAX];
    unsigned signal_frames;
    struct {                               /* mode=count */
        uint64_t instructions, references; /* numbers */
        uint64_t repeats_at;               /* address of the string instruction that was interrupted; 0: none */
    } count;
    struct {
        bool has_ended;
        uint64_t how, code; /* arguments of thread_end */
    } end;
    struct peet_stream *stream; /* for the writer thread only */
};

/* ---- processors ---- */

/* What a processor executes. UNKNOWN: the thread has to be found at the next block of user code. */
enum { STATE_UNKNOWN, STATE_OTHER, STATE_TARGET };
enum { PAGE_TAGS = 512, REGISTERS_KNOWN = 24 };

/* A virtual processor: an entry of QEMU's scoreboard. Begins with the words that QEMU changes itself. Its size is a power of two. */
struct vcpu {
    uint64_t state;
    uint64_t count;               /* mode=count: number of instructions in bits 0 to 31, of references from bit 32 */
    uint64_t *at;                 /* where the next event word is written; NULL: nothing is recorded */
    uint64_t *start, *limit;      /* beginning of the open block's words; end of the buffer */
    struct block *open;           /* the block that is being executed; NULL: none */
    uint64_t epoch;               /* changes with the buffer; part of each tag */
    uint64_t *tag;                /* direct-mapped set of pages whose frames the buffer has: page ^ epoch */
    const uint64_t *page_offsets; /* of the process */
    uint32_t page_offsets_room;   /* 0: all blocks take the slow path */
    bool logs;                    /* accesses of the open block go to the journal */
    bool is_reentered;            /* the open block's string instruction was interrupted and resumed */
    struct journal *journal;
    struct guest_thread *thread; /* the target; NULL: none */
    struct vcpu_rest *rest;
    uint32_t first;                     /* index of the open block's first instruction to be recorded */
    uint32_t index;                     /* of the processor */
    struct block *counted;              /* mode=count: the block that began last; NULL: none since the thread arrived */
    uint64_t count_base;                /* mode=count: value of `count` when the thread arrived */
    uint64_t kernel_stack;              /* number of the kernel stack in use (kernel.c) */
    struct guest_thread *kernel_thread; /* the target of that stack; NULL: none */
    struct guest_thread
        *entering; /* the target that has just entered the kernel, while its kernel stack is not known */
    uint64_t unused[13];
};

/* The part of a processor's state that call-backs use rarely. */
struct vcpu_rest {
    struct {
        const char *name;
        struct qemu_plugin_register *handle;
    } reg[REGISTERS_KNOWN]; /* cache of registers by name */
    unsigned regs;
    struct qemu_bytes *bytes;
    struct pattern_search search;
    struct guest_probe probe;
    uint32_t info; /* QEMU's description of the last load in user code; 0: none yet */
    uint64_t words[WORDS_MAX];
};

uint64_t vcpu_register(struct vcpu *v, const char *name); /* 0: no such register */
bool vcpu_memory(struct vcpu *v, uint64_t addr, void *into, size_t n);
char *vcpu_string(struct vcpu *v, uint64_t addr); /* to be freed; "" if the memory cannot be read */
struct vcpu *vcpu_of(unsigned cpu);
const struct guest_probe *vcpu_probe(struct vcpu *v);

/* vcpu.c: call-backs */
void on_vcpu(uint64_t id, unsigned cpu);
void on_block(unsigned cpu, void *block);
void on_unreported_block(unsigned cpu, void *block);
void on_kernel(unsigned cpu, void *unused);
void on_access(unsigned cpu, uint32_t info, uint64_t addr, void *insn);
void on_virtual_access(unsigned cpu, uint32_t info, uint64_t addr, void *insn);
void on_first_access(unsigned cpu, uint32_t info, uint64_t addr, void *insn);
void on_repeated_access(unsigned cpu, uint32_t info, uint64_t addr, void *insn);
void on_pattern(unsigned cpu, void *candidate);

void vcpu_open(struct vcpu *v, struct block *b, uint32_t first);
void vcpu_use_journal(struct vcpu *v); /* for the block that was just opened */
/* Whether `next` re-enters the string instruction of the open block, after an interrupt. */
bool vcpu_reenters(struct vcpu *v, const struct block *next);
void vcpu_close_before(struct vcpu *v, const struct block *next);
void vcpu_interrupt(struct vcpu *v); /* a target enters the kernel */
void vcpu_close(struct vcpu *v, uint32_t end);
void vcpu_put(struct vcpu *v, const struct trace_item *item, const uint64_t *slots, size_t n);
/* Inserts an item before the open block. */
void vcpu_put_before(struct vcpu *v, const struct trace_item *item, const uint64_t *slots, size_t n);
void vcpu_event(struct vcpu *v, uint32_t kind, const uint64_t *args);
#define VCPU_EVENT(v, kind, ...) vcpu_event(v, PEET_EV_##kind, (const uint64_t[]){ __VA_ARGS__ })

/* count.c: call-backs of mode=count */
void translate_counted(struct qemu_plugin_tb *tb, bool is_armed, bool may_mark);
void on_counted_kernel(unsigned cpu, void *unused);
void on_counted_pattern(unsigned cpu, void *candidate);

/* maps.c */
int maps_open(struct peet_err *err);
void maps_announced(struct vcpu *v); /* a program passes its memory map */
/* Adds a range of memory; `name` is never freed. */
void maps_add(struct guest_process *p, uint64_t addr, uint64_t size, const char *name);
size_t maps_ranges(struct guest_process *p); /* number of ranges added until now */
/* Writes the memory map and the first `ranges` ranges to the trace. The number makes the trace independent of when this is called. */
int maps_write(struct guest_process *p, size_t ranges, struct peet_writer *w, struct peet_err *err);

/* calls.c */
void calls_add_file(const char *path); /* before the guest runs */
bool calls_may_begin(
    const struct qemu_plugin_tb *tb); /* whether the block may be the first of a function in CALL_RULES */
/* Adds the functions of a mapped file; under plugin.lock. */
void calls_map(struct guest_process *p, const char *file, const struct mapping *code);
/* Adds the functions of the files of symbols=, at the addresses in the files; under plugin.lock. */
void calls_map_alone(struct guest_process *p);
const struct call *calls_current(const struct guest_thread *t); /* the function that the thread is in; NULL: none */
void calls_return(struct vcpu *v, const struct block *b);       /* the block begins; it may be a return point */
void on_call(unsigned cpu, void *unused);

/* family.c; the first three under plugin.lock */
struct guest_thread *thread_reserve(struct guest_process *p); /* makes a thread with a new number */
/* The thread with this handle that was created and has not marked itself; NULL: none. */
struct guest_thread *child_expected(struct guest_process *p, uint64_t handle);
void child_announced(struct guest_thread *child);
void child_expect(struct guest_thread *parent);
void child_forget(struct guest_thread *parent);
bool child_created(struct vcpu *v, uint64_t at, uint64_t *ret_number); /* at: address of the child's handle */
struct guest_thread *child_of_handle(struct guest_process *p, uint64_t handle);
void object_set(struct guest_process *p, uint64_t addr, uint64_t value); /* value: as in guest_process.objects */
uint64_t object_get(struct guest_process *p, uint64_t addr);             /* 0: not known */

/* memory.c */
void memory_called(struct vcpu *v, enum guest_call call);
void memory_returned(struct vcpu *v);

/* kernel.c */
void on_kernel_block(unsigned cpu, void *block);
void kernel_forget(const struct guest_thread *t); /* under plugin.lock */

/* unreported.c */
/* Whether no target has code in the block's page. Then its accesses that can be computed are not reported. root: of the address space. */
bool unreported_plan(struct block *b, const struct qemu_plugin_tb *tb, uint64_t root);
void unreported_note_frames(struct vcpu *v); /* notes the frames of computed accesses, after the block */
void unreported_open(struct vcpu *v);        /* a target has opened an unreported block: computes its accesses */

/* plugin.c */
void watch_pattern(struct qemu_plugin_insn *insn, struct block_insn *s);

/* classify.c */
bool vcpu_arrive(struct vcpu *v, struct block *b, uint64_t *ret_pc); /* finds the target; false: other user code */
void vcpu_leave(struct vcpu *v); /* the target no longer runs on this processor; its words are complete */
void thread_begin(struct vcpu *v, struct block_insn *at);
void thread_end(struct vcpu *v, uint64_t how);
void thread_suspend(struct vcpu *v);   /* the thread has marked its end */
bool thread_is_marked(struct vcpu *v); /* whether the mark is of the target that runs here already */
struct guest_thread *thread_here(struct vcpu *v, uint64_t pc); /* binds the target to the processor; NULL: none */
struct guest_thread *thread_announced(struct vcpu *v, bool *ret_again); /* ret_again: it was recorded before */
struct guest_process *process_of_maps(uint64_t root,
                                      uint64_t number);     /* that passes its memory map; under plugin.lock */
void threads_finish(void);                                  /* the guest has ended */
struct block *block_at_pc(struct vcpu *v, struct block *b); /* the block, or its alias at the program counter */

/* ---- output ---- */

enum { BUFFER_WORDS = 96 << 10, BUFFER_FIRST = 8 << 10, BUFFER_LIMIT = 120000, BLOCK_ROOM = 80 };

/* The physical frames of a page in a buffer: 1 + the number of the first frame, and of the last one. */
struct frames {
    uint64_t first, now;
};

/* Event words of a thread; becomes a chunk. */
struct buffer {
    struct buffer *next;
    struct guest_thread *thread;
    size_t count, room; /* words */
    struct map pages;   /* struct frames by page */
    bool is_last;       /* of its thread */
    size_t ranges;      /* maps_ranges of the process when the buffer was handed over */
    uint64_t *words;
};

int output_open(struct peet_err *err);
void output_close(void);
void output_totals(struct peet_totals *ret); /* of what is in the file so far; of all of it after output_close */
const char *output_error(void);              /* NULL: none */
void buffer_attach(struct vcpu *v);          /* binds the thread's buffer to the processor */
void buffer_detach(struct vcpu *v);
void buffer_next(struct vcpu *v);           /* hands over the complete items */
void buffer_finish(struct guest_thread *t); /* hands over the thread's last buffer */
void buffer_pass(struct guest_thread *t);   /* hands over the buffer of a thread that runs on no processor */
void buffer_page(struct vcpu *v, uint32_t info, uint64_t addr);
const struct trace_item *event_item(uint32_t kind);
const struct trace_item *event_item_at(uint32_t kind, uint64_t call_site);

/* ---- the plugin ---- */

/* State of the plugin; there is one. */
struct plugin {
    uint64_t id; /* given by QEMU */
    struct settings settings;
    const struct guest_isa *isa;
    struct qemu_plugin_scoreboard *score;
    struct qemu_word word_state, word_count, word_counted; /* members of struct vcpu that QEMU changes */
    char *vcpus;                                           /* the scoreboard's entries */
    _Atomic bool is_armed;                                 /* a thread has marked itself, or a program has asked */
    _Atomic bool is_ready;                                 /* all code was translated again since then */
    pthread_mutex_t lock;                                  /* for threads, processes, targets, and changes of blocks */
    struct targets targets;
    struct guest_process *processes;
    uint32_t process_count;       /* number of processes with marked threads */
    uint32_t last_process;        /* the greatest process number in the trace */
    struct guest_thread **thread; /* by number in the trace */
    size_t threads, marked;       /* marked: number of threads that have marked themselves */
    struct map pages;  /* uint32_t number of a page of code, by a hash of its addresses in QEMU and in the guest */
    struct map blocks; /* struct block *, by a hash of its instructions */
    struct {
        _Atomic uint64_t lost;             /* instructions or accesses that were not recorded */
        _Atomic uint64_t blocks;           /* translated */
        _Atomic uint64_t irregular_blocks; /* of these */
        _Atomic uint64_t unknown_entries;  /* entries of the kernel whose cause is not known */
        _Atomic uint64_t near_misses;      /* stack pointers just outside of a target's window */
        _Atomic uint64_t stale;            /* targets of threads that no longer exist */
        _Atomic uint64_t collisions;       /* targets that seemed to run on two processors */
    } count;
};

extern struct plugin plugin;

/* ask.c */
int ask_open(struct peet_err *err);
void ask_answer(void); /* all code was translated again */

void report_write(bool is_over);
int counts_write(struct peet_err *err);
void plugin_look(void); /* from now on QEMU calls the plugin when it translates: a thread will mark itself */
void plugin_arm(void);  /* a thread has marked itself, or a program has asked: instruments all code */
void plugin_retranslate(void);

#endif
