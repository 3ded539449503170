/* SPDX-License-Identifier: MIT */
/* The inside of the QEMU plugin.
 *
 *   plugin.c     options, and what is asked of QEMU when it translates code
 *   ask.c        programs of the guest that ask to be looked at
 *   block.c      translated blocks, and the shapes in which they are executed
 *   vcpu.c       what happens while a processor executes: call-backs
 *   classify.c   whose user code a processor executes now
 *   output.c     buffers of words on their way to the trace
 *   maps.c       programs and libraries, and where they lie
 *   calls.c      calls of functions that are events: locks, threads, the allocator
 *   family.c     who created whom
 *   memory.c     system calls that change what memory there is
 *   kernel.c     the kernel, where it works for a target
 *   uninstrumented.c code of programs that are no targets
 *   report.c     what came of it, for the command
 *
 * A processor (`vcpu`) is in one of three states. It is UNKNOWN from the instruction on that leaves the kernel; the next block
 * of user code looks who it is, and then it is OTHER, and nothing more is asked, or TARGET. A target's block is open while it
 * is executed: its name stands in the thread's buffer, and the addresses of its references follow as QEMU tells them. The next
 * block closes it, or the first block of the kernel: only there can it turn out that it was left before its end. So between
 * two stays in the kernel a thread's words are those of put_named (peet/trace.h), and nobody looks at them again. */
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

struct settings {
    const char *out, *report;
    const char *files;    /* which of the guest's files is which file here; NULL: that is not known */
    const char **symbols; /* ELF files that name code and data of a guest whose files are not listed */
    size_t symbol_files;
    uint64_t applications;        /* of the guest: their processes have the numbers from 1 on */
    const char *console, *answer; /* programs ask at the one and are answered by the other; NULL: they do not */
    bool counts;                  /* mode=count */
    bool kernel;                  /* record the kernel, too, where it works for a target */
    bool physical;
    bool all_uninstrumented; /* for tests: targets find no translation of their own */
    bool stack_only;         /* for tests: threads are known by their stacks alone, as the paper has it */
    bool given_stack;        /* the window is the user's, whatever a marker says */
    bool other_os;           /* the kernel is not Linux: numbers of system calls and signal handlers are not known */
    struct pattern pattern;
    struct window_config window;
};

/* ---- blocks ---- */

enum { SLOTS_NONE = 0xffff };

/* An instruction of a block, as call-backs get it. */
struct block_insn {
    struct guest_insn guest;
    uint16_t index;
    uint16_t slots, before; /* its own, and of those before it; once the block is regular */
    uint16_t last_in_page;  /* greatest offset in a page at which its access does not reach into the next */
    bool is_computable;     /* in a foreign block: QEMU is not asked for its accesses */
    struct block *block;
};

/* An instruction that can be a part of the pattern. */
struct candidate {
    struct block_insn *insn;
    uint8_t bytes[GUEST_BYTES];
    size_t length;
};

/* One way to execute a block, or an event at a site: its name in a thread's words is a pointer to this. */
struct trace_item {
    uint32_t item;       /* 0: not defined yet */
    uint32_t kind;       /* of an event */
    uint64_t call_site;  /* of an event; 0: not known */
    struct block *block; /* NULL: an event */
    struct trace_item *next;
    uint16_t first, end; /* its instructions */
    uint16_t operands, slots;
    struct item_operand {
        uint32_t size;
        uint16_t index; /* of the instruction in the block of QEMU */
        uint8_t kind, slot;
        uint8_t count; /* not 0: 1 + the slot that holds the number of elements */
        bool down;
    } operand[];
};

/* What QEMU has translated; it stays for ever, for it can be in use. Regular blocks do the same accesses each time that they
 * are executed to their end. QEMU uses a block again where the same page is mapped elsewhere: such a place is a block of
 * its own, which shares the sites of the first. */
struct block {
    uint64_t pc;
    uint32_t insns, page; /* page: number of the page of code that it begins in */
    uint16_t slots;       /* of `normal`; SLOTS_NONE: none yet, or never */
    bool is_irregular;    /* never regular */
    bool repeats;         /* its last instruction does */
    bool is_call;         /* its last instruction is a system call */
    bool is_kernel;
    bool is_planned;                 /* its sites know whether they follow */
    _Atomic bool is_found_late;      /* it was found to be foreign, and a target's: its page is known for it */
    uint64_t host_page;              /* number of the page in QEMU's memory, or 0 */
    struct trace_item *regular_item; /* NULL as long as the block is not regular */
    struct trace_item *other_items;  /* all others */
    struct block_insn *insn;
    uint64_t moved_by;                 /* address here minus that of the sites */
    struct block *next_alias, *origin; /* the other places; NULL, or the one that was translated */
};

/* An access as QEMU told it. */
struct access {
    uint64_t addr;
    uint16_t index;
    uint8_t shift;
    bool is_store;
};

enum { JOURNAL_ROOM = 4096 };

/* What a block did, if that is not known before. */
struct journal {
    unsigned count;
    bool is_full;
    bool is_computed; /* some of it */
    struct {
        uint64_t first, second, last; /* addresses */
        uint64_t count;
    } repeated[2]; /* loads and stores of the string instruction at the end */
    struct access access[JOURNAL_ROOM];
};

struct block *block_new(const struct qemu_plugin_tb *tb, bool is_kernel);
/* The same code at another address. */
struct block *block_alias(struct block *b, uint64_t pc);
/* Says what the journal tells of instructions first … end-1: shapes, and their slots one behind the other. Returns the number of
 * words; `words` has room for WORDS_MAX. A whole execution makes the block regular, if it can be. */
enum { WORDS_MAX = 16384 };
size_t block_describe(struct block *b, uint32_t first, uint32_t end, const struct journal *j, uint64_t *words);
/* The regular block, left before instruction `end`. */
struct trace_item *block_item_before(struct block *b, uint32_t end);
/* The normal shape, if the block is regular by now. */
struct trace_item *block_regular_item(struct block *b);
int item_define(struct trace_item *s, struct peet_writer *w, struct peet_err *err);

/* ---- threads and processes ---- */

struct guest_process {
    uint64_t root, number;        /* as the guest's kernel numbers it; 0: not known */
    uint32_t id;                  /* 0: none of its threads was marked yet */
    bool has_ended, is_recorded;  /* told: to the trace */
    bool has_ranges;              /* what memory it had at its first mark has been told */
    _Atomic uint64_t end_of_data; /* where brk has set it; 0: not known */
    struct map entries; /* const struct call_rule *, by the address at which such a function begins; under the lock */
    struct map
        objects; /* uint64_t by address: of a barrier, how many threads meet; of a held spin lock, 1; under the lock */
    bool is_named; /* the files of --symbols have been told for it, or it has told its maps */
    char *program, *command;
    struct maps *maps;        /* what lies where, and is not told yet; NULL: nothing. Of maps.c */
    struct peet_range *range; /* what libraries have mapped for their own use. Of maps.c */
    size_t ranges, ranges_written;
    struct modules modules; /* of who writes: what is told */
    /* By the number of a page of code: by how much it lies elsewhere than where it was translated; UNKNOWN_PLACE. */
    _Atomic(uint64_t *) page_offsets;
    _Atomic uint32_t page_offsets_room;
    struct guest_process *next;
};

#define UNKNOWN_OFFSET UINT64_MAX

struct signal_frame {
    unsigned signal;
    uint64_t resume;
};
enum { SIGNAL_FRAMES_MAX = 32 };

/* A function that the thread is in (calls.c). */
struct call {
    const struct call_rule *rule;
    uint64_t arg[CALL_ARGUMENTS];
    uint64_t back, sp;          /* where it returns to, and the stack pointer at its entry */
    unsigned level;             /* handlers of signals that had been entered and not left */
    bool is_recorded;           /* its event came before it */
    struct guest_thread *child; /* that its first argument is the handle of; NULL: not known */
};
enum { CALLS_MAX = 8 };

/* What is known of a thread's parent. NONE: its stream has begun without. */
enum { PARENT_UNKNOWN, PARENT_KNOWN, PARENT_NONE };

struct guest_thread {
    struct target *target; /* NULL: it was created, but has not marked itself */
    struct guest_process *process;
    uint32_t id;
    uint64_t cookie, cookie_at;
    bool is_window_given; /* by its mark; else it was made from the stack pointer, and may be too small */
    struct buffer *buffer;
    int owner;                          /* the processor that executes it, or -1 */
    uint64_t native;                    /* its number in the guest's kernel; 0: not known */
    uint64_t handle;                    /* what pthread_self says; 0: not known */
    bool is_suspended;                  /* it has marked its end, and may mark a beginning again */
    _Atomic int parentage;              /* PARENT_UNKNOWN … */
    uint32_t parent, ordinal, children; /* the parent's number, the how-many-th child of it, and how many of its own */
    bool is_joined, is_creating;        /* creating: it is in a function that makes a thread, */
    struct guest_thread *made;          /* which is this one, if that is known already */
    struct call call[CALLS_MAX];
    unsigned calls;
    enum guest_call memory_call; /* that it has made and not returned from (memory.c); GUEST_CALL_OTHER: none */
    uint64_t memory_arg[3];
    bool has_ended, is_cloning, is_returning, is_in_exec;
    bool is_context_borrowed; /* while it is cloning: its stack, or its thread pointer, is its child's */
    bool is_in_string_insn;   /* inside a string instruction */
    struct block *open;       /* paused: the block, and what it did so far */
    uint32_t first;
    struct journal *journal;
    bool has_resume;
    uint64_t resume; /* where it goes on */
    struct signal_frame signal_frame[SIGNAL_FRAMES_MAX];
    unsigned signal_frames;
    uint64_t instructions, references; /* mode=count */
    uint64_t repeats_at;               /* the string instruction that it was interrupted in, or 0 */
    uint64_t end_how, end_code;
    struct peet_stream *stream; /* of who writes */
};

/* ---- processors ---- */

enum { STATE_UNKNOWN, STATE_OTHER, STATE_TARGET };
enum { PAGE_TAGS = 512, REGISTERS_KNOWN = 24 };

/* Begins with the words that QEMU changes itself. Its size is a power of two. */
struct vcpu {
    uint64_t state;
    uint64_t count; /* mode=count: instructions, and from bit 32 on references */
    uint64_t *at;   /* where the next word goes; NULL: nothing is recorded */
    uint64_t *start, *limit;
    struct block *open;
    uint64_t epoch; /* of the tags */
    uint64_t *tag;  /* pages that the buffer knows */
    const uint64_t *page_offsets;
    uint32_t page_offsets_room;
    bool logs;         /* the open block is not regular: its accesses go to the journal */
    bool is_reentered; /* it is a string instruction's that was entered again */
    struct journal *journal;
    struct guest_thread *thread;
    struct vcpu_rest *rest;
    uint32_t first; /* instruction of the open block that counts */
    uint32_t index;
    struct block *counted; /* mode=count: the block that began last */
    uint64_t count_base;   /* what `count` was when the thread came */
    uint64_t kernel_stack; /* where it is now, and whose that is */
    struct guest_thread *kernel_thread;
    struct guest_thread *entering; /* it has come from user code, and its stack is not known yet */
    uint64_t unused[13];
};

struct vcpu_rest {
    struct {
        const char *name;
        struct qemu_plugin_register *handle;
    } reg[REGISTERS_KNOWN];
    unsigned regs;
    struct qemu_bytes *bytes;
    struct pattern_search search;
    struct guest_probe probe;
    uint32_t info; /* of a load in user code, as QEMU told the last one; 0: none yet */
    uint64_t words[WORDS_MAX];
};

uint64_t vcpu_register(struct vcpu *v, const char *name);
bool vcpu_memory(struct vcpu *v, uint64_t addr, void *into, size_t n);
char *vcpu_string(struct vcpu *v, uint64_t addr); /* to be freed; "" if nothing is there */
struct vcpu *vcpu_of(unsigned cpu);
const struct guest_probe *vcpu_probe(struct vcpu *v);

/* vcpu.c: call-backs */
void on_vcpu(uint64_t id, unsigned cpu);
void on_block(unsigned cpu, void *block);
void on_uninstrumented_block(unsigned cpu, void *block);
void on_kernel(unsigned cpu, void *unused);
void on_access(unsigned cpu, uint32_t info, uint64_t addr, void *insn);
void on_virtual_access(unsigned cpu, uint32_t info, uint64_t addr, void *insn);
void on_first_access(unsigned cpu, uint32_t info, uint64_t addr, void *insn);
void on_repeated_access(unsigned cpu, uint32_t info, uint64_t addr, void *insn);
void on_pattern(unsigned cpu, void *candidate);

void vcpu_open(struct vcpu *v, struct block *b, uint32_t first);
void vcpu_use_journal(struct vcpu *v);                        /* for the block that was just opened */
bool vcpu_reenters(struct vcpu *v, const struct block *next); /* with the string instruction of the open block */
void vcpu_close_before(struct vcpu *v, const struct block *next);
void vcpu_interrupt(struct vcpu *v); /* a target comes into the kernel */
void vcpu_close(struct vcpu *v, uint32_t end);
void vcpu_put(struct vcpu *v, const struct trace_item *name, const uint64_t *slots, size_t n);
void vcpu_put_before(struct vcpu *v, const struct trace_item *name, const uint64_t *slots,
                     size_t n); /* of the open block */
void vcpu_event(struct vcpu *v, uint32_t kind, const uint64_t *args);
#define EVENT(v, kind, ...) vcpu_event(v, PEET_EV_##kind, (const uint64_t[]){ __VA_ARGS__ })

/* count.c: call-backs of mode=count */
void translate_counted(struct qemu_plugin_tb *tb, bool is_armed, bool may_mark);
void on_counted_kernel(unsigned cpu, void *unused);
void on_counted_pattern(unsigned cpu, void *candidate);

/* maps.c */
int maps_open(struct peet_err *err);
void maps_announced(struct vcpu *v); /* a program says what lies where */
void maps_add(struct guest_process *p, uint64_t addr, uint64_t size, const char *name); /* that lives for ever */
size_t maps_ranges(struct guest_process *p); /* that have been added so far */
/* Tells what lies where, and of the ranges that were added the first `ranges`, so that it does not matter when that is done. */
int maps_write(struct guest_process *p, size_t ranges, struct peet_writer *w, struct peet_err *err);

/* calls.c */
void calls_add_file(const char *path);                 /* before the guest runs */
bool calls_may_begin(const struct qemu_plugin_tb *tb); /* whether on_call is to be called for it */
void calls_map(struct guest_process *p, const char *file, const struct mapping *code); /* under the lock */
void calls_map_alone(struct guest_process *p); /* the same, of files that lie where they say themselves */
const struct call_rule *calls_current(const struct guest_thread *t); /* the function that it is in; NULL: none */
void calls_return(struct vcpu *v, const struct block *b);            /* the block begins, and may be behind a call */
void on_call(unsigned cpu, void *unused);

/* family.c; the first three under the lock */
struct guest_thread *thread_reserve(struct guest_process *p); /* a new number */
struct guest_thread *child_expected(struct guest_process *p,
                                    uint64_t handle); /* that was created and has not marked itself; or NULL */
void child_announced(struct guest_thread *child);
void child_expect(struct guest_thread *parent);
void child_forget(struct guest_thread *parent);
bool child_created(struct vcpu *v, uint64_t at, uint64_t *ret_number); /* its handle lies at `at` */
struct guest_thread *child_of_handle(struct guest_process *p, uint64_t handle);
void object_set(struct guest_process *p, uint64_t addr, uint64_t value); /* value: as in process.objects */
uint64_t object_get(struct guest_process *p, uint64_t addr);             /* 0: nothing is known */

/* memory.c */
void memory_called(struct vcpu *v, enum guest_call call);
void memory_returned(struct vcpu *v);

/* kernel.c */
void on_kernel_block(unsigned cpu, void *block);
void kernel_forget(const struct guest_thread *t); /* under the lock */

/* uninstrumented.c */
bool uninstrumented_plan(struct block *b, const struct qemu_plugin_tb *tb,
                         uint64_t root);         /* whether nobody's but others' */
void uninstrumented_note_frames(struct vcpu *v); /* it was executed */
void uninstrumented_open(struct vcpu *v);        /* the block that a target has just opened was translated so */

/* plugin.c */
void watch_pattern(struct qemu_plugin_insn *insn, struct block_insn *s);

/* classify.c */
bool vcpu_arrive(struct vcpu *v, struct block *b, uint64_t *ret_pc); /* in user code: whether it is a target's */
void vcpu_leave(struct vcpu *v); /* the thread's words are complete: it no longer runs here */
void thread_begin(struct vcpu *v, struct block_insn *at);
void thread_end(struct vcpu *v, uint64_t how);
void thread_suspend(struct vcpu *v);   /* it has marked its end */
bool thread_is_marked(struct vcpu *v); /* the mark at hand is of the thread that is recorded here already */
struct guest_thread *thread_here(struct vcpu *v, uint64_t pc);          /* takes it, or NULL */
struct guest_thread *thread_announced(struct vcpu *v, bool *ret_again); /* again: it had been recorded before */
struct guest_process *process_of_maps(uint64_t root, uint64_t number);  /* that speaks now; under the lock */
void threads_finish(void);                                              /* the guest is off */
struct block *block_at_pc(struct vcpu *v, struct block *b);

/* ---- output ---- */

enum { BUFFER_WORDS = 96 << 10, BUFFER_FIRST = 8 << 10, BUFFER_LIMIT = 120000, BLOCK_ROOM = 80 };

/* Of a page in a buffer: 1 + the number of the first frame that it had there, and of the one that it has. */
struct frames {
    uint64_t first, now;
};

struct buffer {
    struct buffer *next;
    struct guest_thread *thread;
    size_t count, room;
    struct map pages; /* struct frames, by page */
    bool is_last;
    size_t ranges; /* of the process (maps_ranges), when the buffer was handed over */
    uint64_t *words;
};

int output_open(struct peet_err *err);
void output_close(void);
void output_totals(struct peet_totals *ret); /* of what is in the file so far; of all of it after output_close */
const char *output_error(void);              /* NULL: none */
void buffer_attach(struct vcpu *v);          /* the thread's buffer becomes the processor's */
void buffer_detach(struct vcpu *v);
void buffer_next(struct vcpu *v);           /* hands over what is complete */
void buffer_finish(struct guest_thread *t); /* hands over the thread's last */
void buffer_pass(struct guest_thread *t);   /* hands over what there is of a thread that runs nowhere */
void buffer_page(struct vcpu *v, uint32_t info, uint64_t addr);
const struct trace_item *event_item(uint32_t kind);
const struct trace_item *event_item_at(uint32_t kind, uint64_t call_site);

/* ---- all of it ---- */

struct plugin {
    uint64_t id;
    struct settings settings;
    const struct guest_isa *isa;
    struct qemu_plugin_scoreboard *score;
    struct qemu_word word_state, word_count, word_counted;
    char *vcpus;                     /* the scoreboard's entries */
    _Atomic bool is_armed, is_ready; /* ready: everything was translated anew since */
    pthread_mutex_t lock;            /* for threads, processes, targets, and blocks that change */
    struct targets targets;
    struct guest_process *processes;
    uint32_t process_count, last_process; /* that have marked threads; the last number behind those of applications */
    struct guest_thread **thread;         /* all that have a number; some have not marked themselves */
    size_t threads, marked;
    struct map pages; /* uint32_t number of a page of code, by its address in QEMU */
    struct map seen;  /* struct block *, by a hash of all its instructions */
    _Atomic uint64_t lost, irregular_blocks, blocks, unknown_entries, near_misses, stale, collisions;
};

extern struct plugin plugin;

/* ask.c */
int ask_open(struct peet_err *err);
void ask_answer(void); /* everything was translated anew */

void report_write(bool is_over);
int counts_write(struct peet_err *err);
void plugin_look(void); /* somebody will be marked: QEMU is to call when it translates */
void plugin_arm(void);  /* somebody was marked, or has asked */
void plugin_retranslate(void);

#endif
