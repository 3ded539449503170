/* SPDX-License-Identifier: MIT */
/* What an instrumented program and its recorder say to each other: the words that the program writes, the schema that the
 * assembler put into it, and the memory that both share.
 *
 * WORDS. Each thread of the program fills buffers with 64-bit words: a key, then the slots of what it stands for.
 *   key 0                  nothing more has been written
 *   key below 2^63         the address of a schema entry, in the program's memory: a block was executed, and before it those
 *                          that lead to it from the root of its tree
 *   key 2^63 and above     an abstract event: RAW_EVENT | kind << 48 | address of the call (48 bits); its arguments follow
 *
 * REGISTERS OF THE PROGRAM. %r15 is the cursor: where the next key goes. %r14 is scratch. Only lea and mov are inserted, so
 * that flags and the red zone stay as they are. The cursor moves behind a block's words only after all of them are written:
 * until then it points to the block's key. A block that is not the root of its tree is reached from its parent only, with the
 * cursor behind the parent's words: it writes its own slots there, then its key in the place of the parent's, and moves the
 * cursor. So what stands in front of the cursor is whole at any time. Before that, a root looks at the last word that its tree
 * can come to: if a buffer ends in front of it, it ends in front of the whole record. Instrumented code keeps the cursor in %r15; everybody else finds it in the
 * thread-local variable peet_rt_cursor:
 *   before a call that may leave instrumented code (direct calls of functions of other files, indirect calls, tail jumps to
 *   either): movq %r15,%r14; movq %r15,%fs:peet_rt_cursor@tpoff   and after it, if they differ: movq %fs:peet_rt_cursor@tpoff,%r15
 *   before every ret: movq %r15,%fs:peet_rt_cursor@tpoff
 *   at the entry of a function that others can call (global, or its address is taken): if %r14 == %r15 ==
 *   %fs:peet_rt_cursor the caller is instrumented, and the body begins. Otherwise the caller is foreign: %r14 and %r15 are
 *   its own. A stub then saves them (push %rbp; mov %rsp,%rbp; push %r14; push %r15), loads the cursor, copies
 *   RAW_STACK_ARGUMENTS bytes from above its return address as the arguments that may lie on the stack, calls the body,
 *   restores and returns; with .cfi, so that unwinding works.
 * In position-independent code for shared libraries the variable is reached through its GOT entry (@gottpoff).
 *
 * COPIES. Functions have a plain copy besides, as the compiler wrote it: it leaves %r14 and %r15 alone, so that anybody can call it. If
 * a caller is foreign and the byte peet_rt_on is 0, that one runs, and calls plain copies of its file directly; others it reaches by their
 * names. The byte is set at the beginning of a program that finds RAW_VARIABLE, whether or not there is a recorder behind it: what is set to
 * nothing shows what instrumented code does by itself. Where a function has one copy, its stub is always taken.
 * A third copy counts, for threads of which nothing is recorded for a while. It follows the protocol above, but in %r15 and
 * peet_rt_cursor there is minus the number of references that are left; it may pass 0 before anybody looks. Where entries find the cursor in all three places and
 * it has a sign, this copy begins. It looks for the sign at the beginning of blocks that are roots and behind calls. When it is gone, control goes to the same
 * place in the instrumented copy, through peet_rt_cross, which finds that place on the stack, a red zone behind it, and says what was left out (gap) and
 * %rsp (set_register 0) in words. The other way leads through a fault: who writes a root's key to an address with a sign goes on in
 * the copy that counts, and a thread to which a buffer's end comes when it has to leave something out.
 *
 * SCHEMA. Section .peet.schema ("a"), entries aligned to RAW_ALIGN:
 *   u32 RAW_BLOCK, RAW_LOOP or RAW_LEFT
 *   i32 address of the block's first instruction, of a loop's lowest one, minus the address of this field
 *   u16 instructions, u16 slots, u32 flags (RAW_CARRIED, …)
 *   i32 address of the parent's entry, minus the address of this one; 0: it is a root
 *   i32 address of the same place in the copy that counts, minus the address of this field; 0: there is none
 *   then, per instruction: uleb128 its offset from that one (between them stand inserted ones);
 *   then, per slot: uleb128 index of the instruction before which it is written, u8 kind (enum x86_fill_kind), u8 operand,
 *   u8 which: as capture/x86/layout plans them; the recorder plans again from the linked bytes and compares.
 *   and of a RAW_LOOP: uleb128 number of its blocks, per block: uleb128 instructions; uleb128 number of jumps that were inserted, per
 *   jump: uleb128 offset; per instruction: uleb128 offset of its copy;
 *   and of one that is RAW_SHARED: uleb128 offset, from the parent's first instruction, of a jump to it that was inserted, or 0.
 * A block that is RAW_CARRIED finds the stack pointer in register 0 of the trace, as the block before it left it. All others
 * have %rsp as their first slot (a function's entry, a return point of a call, a landing pad). One that is RAW_BRUTE was planned
 * with a slot for the address of each operand.
 * A RAW_LOOP is a row of blocks that goes back to its beginning as often as it likes: its words are the slots of the first trip and the registers
 * that capture/x86/affine asks for as they were before it, but for what capture/x86/path knows, and the one that counts as it was
 * when the loop was left. Its slots are described as if it were a root. A RAW_LEFT has its loop as parent, and its words: it was left
 * behind these instructions of its last trip. Bits 8 to 23 of a loop's flags: so many words of the stack, from %rsp up, are its function's own, no pointer leads there.
 * One that is RAW_BARE was planned without operands, so that it has no slots, not even %rsp; of a loop, there are only the
 * registers that tell how often. One that is RAW_CALLS besides is one instruction: calls, returns and the entries of functions are
 * all that its file tells. RAW_ENTRY: a function begins with it.
 * One that is RAW_SHARED has no slots and an entry of its own besides: from its parent, control goes on behind what that one's root
 * would write. */
#ifndef CAPTURE_PROTOCOL_RAW_H
#define CAPTURE_PROTOCOL_RAW_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RAW_BLOCK = 1,
    RAW_LOOP = 2,
    RAW_LEFT = 3,
    RAW_ALIGN = 16,
    RAW_CARRIED = 1,
    RAW_BRUTE = 2,
    RAW_BARE = 8,
    RAW_CALLS = 16,
    RAW_ENTRY = 32,
    RAW_SHARED = 64,
    RAW_PRIVATE_SHIFT = 8,
    RAW_PRIVATE_MAX = 0xffff,
    RAW_STACK_ARGUMENTS = 128
};

#define RAW_SECTION ".peet.schema"
#define RAW_EVENT ((uint64_t)1 << 63)

static inline uint64_t raw_event_key(unsigned kind, uint64_t site)
{
    return RAW_EVENT | (uint64_t)kind << 48 | (site & 0xffffffffffff);
}

/* The longest row of words that one block or event can be: the guard behind a buffer is larger. */
enum { RAW_MAX_WORDS = 80, RAW_GUARD = 65536 };

/* SHARED MEMORY. A file that the recorder makes and names in the environment variable RAW_VARIABLE: a header, a table of
 * threads, and for each place in it RAW_BUFFERS buffers. The file is sparse; buffers exist once somebody writes to them.
 * A thread takes the lowest place that is free and a number that no thread had before it, fills its buffers in turn, and
 * waits only when the recorder has not yet emptied the next one. All buffers are zero when they are handed to a thread, so
 * that what a killed program has written can be told from what it has not: up to the first key 0, but for the last
 * block, whose slots may be missing (an event's key is written behind its arguments).
 * A new program waits until the recorder has looked at its mappings (`seen`), and at its end until its words are taken,
 * so that keys can be looked up while it exists.
 * So that each buffer can be read without those before it, the program says what %rsp was when the record that stands first in it
 * began. That counts if a block that is RAW_CARRIED stands there, and such a record begins a buffer only where the one before was
 * full, in the guard: every other way to the next buffer leads through a call, and behind calls %rsp is a slot. At the fault %rsp
 * still is what it was when the record began: a root that is carried, and has a slot to write behind an instruction that changes
 * %rsp, looks at its last word first.
 * Strings are numbered from 1, by the programs, each text once: the recorder tells them to the trace in this order, so that
 * words can hold their numbers. */
#define RAW_VARIABLE "PEET_RECORD"
#define RAW_MAGIC 0x3174726563657065u /* "epecert1" */
enum { RAW_VERSION = 7, RAW_THREADS = 4096, RAW_BUFFERS = 4, RAW_BUFFER_BYTES = 1 << 20 };
enum { RAW_STRINGS = 1024, RAW_STRING_BYTES = 128, RAW_PATH = 512 };

enum raw_state {
    RAW_EMPTY,
    RAW_FILLING,
    RAW_FULL
}; /* of a buffer; the program makes FULL of FILLING, the recorder EMPTY of FULL */

/* Of a place in the table: the program makes TAKEN of FREE, then LIVE, then ENDED; the recorder FREE of ENDED. */
enum raw_life { RAW_FREE, RAW_TAKEN, RAW_LIVE, RAW_ENDED };

struct raw_buffer {
    _Atomic uint32_t state; /* a futex: the program waits for EMPTY here */
    uint32_t bytes;         /* written, when FULL */
    uint64_t stack;         /* %rsp when the first record began; 0: that does not matter */
};

struct raw_thread {
    _Atomic uint32_t life;
    _Atomic uint32_t seen; /* a futex: the recorder knows the thread and the mappings of its process */
    uint32_t number;       /* from 1; the trace's, too */
    uint32_t parent;       /* number of the thread that made it, or its own: none */
    uint32_t ordinal;      /* the parent's how-many-th child */
    uint32_t process;      /* number of the first thread of the process; of a process it is the number in the trace */
    int32_t pid, tid;
    uint32_t how;            /* of its end: 1 + enum peet_end, 0: not known (yet) */
    uint32_t code;           /* exit status */
    uint64_t thread_pointer; /* %fs */
    uint64_t stack_low, stack_high;
    uint32_t program;         /* that exec starts: a string */
    _Atomic uint32_t stopped; /* STEERED, see below: enum raw_stop; a futex */
    _Atomic uint32_t go;      /* a futex */
    uint32_t reserved;
    uint64_t reply;
    uint64_t off; /* so many references are to be left out when it goes on; the program takes it */
    /* Of a thread that has stopped, with a gap before: where it goes on, %rsp and %rbp there, and whether that is behind a call; 0: it does not say. */
    uint64_t stands[4];
    struct raw_buffer buffer[RAW_BUFFERS];
};

struct raw_header {
    uint64_t magic;
    uint32_t version;
    uint32_t level;               /* how much is recorded; the recorder sets it */
    int32_t recorder;             /* its process */
    _Atomic uint32_t threads;     /* numbers that are given out */
    _Atomic uint32_t places;      /* of the table that have ever been taken */
    _Atomic uint32_t bell;        /* a futex: counted up when a buffer is FULL, a thread begins or ends, */
    _Atomic uint32_t listening;   /*   and woken when this is 1 */
    _Atomic uint32_t stop;        /* the recorder cannot go on: threads record nothing more and wait for nobody */
    _Atomic uint32_t unrecorded;  /* threads that found no place in the table */
    _Atomic uint32_t strings;     /* that are numbered */
    _Atomic uint32_t string_lock; /* held by who makes a new one */
    uint32_t steered;             /* the recorder says when threads run */
    uint32_t inside;              /*   and it is in the program's process: see INSIDE, below */
    uint32_t window;              /* bytes of a buffer that are used; 0: all */
    uint32_t
        line; /* so many bytes that library code moves count as a reference that is left out; 0: they are always told */
    uint64_t
        off; /* references that a thread leaves out after each buffer; if it is steered: after each `off` of its own */
    char library[RAW_PATH], job[RAW_PATH];
    char string[RAW_STRINGS][RAW_STRING_BYTES]; /* longer ones lose their ends */
    struct raw_thread thread[RAW_THREADS];
    /* Threads that had a place, and could not map its buffers: nothing of them is recorded. */
    _Atomic uint32_t unmapped;
    /* INSIDE: the signal with which the user wants the end; 0: none came. The program's process sets it, or the recorder when the
     * program handles that signal itself and goes on. */
    volatile uint32_t want_end;
    /* INSIDE: 1 once the machine comes to its end because the user wants that; it makes its report then. */
    _Atomic uint32_t ending;
};

/* STEERED PROGRAMS. If the recorder wants it, no more than one thread runs at a time, and it says which. A thread stops when it has
 * begun, when it has said an event that others have a say in (it wants a lock, it comes to a barrier), when it has handed over
 * a buffer, and when it has ended: it says so in `stopped` and waits for `go`, with which comes a reply to its event. Who
 * creates a thread waits until that one has stopped at its beginning. Such events are told before they happen, not afterwards. */
enum { RAW_CANCELLED = 2 }; /* a reply: the wait was ended, for the thread is to end */
enum raw_stop { RAW_RUNS, RAW_STOPPED, RAW_OVER, RAW_GOES_HOME };

/* INSIDE. Who steers can be in the program's process, so that no stop needs another process or another thread of the kernel. The runtime
 * makes one more thread, the host, which loads `library` into a namespace of its own and calls RAW_MACHINE there. All that runs runs on the host,
 * the machine as well as the program: a thread that stops leaves its stack, its registers and its thread pointer to the host and sleeps; the
 * host takes them when the machine says so, for as long as it takes to change the stack. Threads begin and end on their own (RAW_GOES_HOME: it wants to),
 * for that is where the C library's part of a thread's life has to happen. One buffer of each is used, up to `window`, and again and again. */
struct raw_host {
    struct raw_header *header;
    const char *file;               /* that the header is in */
    void (*resume)(uint32_t place); /* returns when the thread has stopped */
    /* Where a system call was that is none any more: there stands ud2 now, and the runtime does what it has to. Rising; stays ours. */
    void (*set_traps)(const uint64_t *site, size_t count);
    /* The thread leaves out about so many references from its next resume on, or what it comes to before it stops for an event. The words
     * that follow begin with a gap that tells how many they were. */
    void (*set_off)(uint32_t place, uint64_t references);
    uint64_t syscall;                  /* where the program's C library has the function of that name */
    const volatile uint32_t *want_end; /* the header's */
};
#define RAW_MACHINE "peet_machine"
/* Returns a status for the process to end with, or RAW_GO_ON: who stopped last goes on to the program's own end. */
typedef int raw_machine(const struct raw_host *host);
enum { RAW_GO_ON = -1 };

enum { RAW_DATA_OFFSET = 1 << 20 }; /* where the buffers of place 0 begin; those of place n: n * RAW_BUFFERS further */

_Static_assert(sizeof(struct raw_header) <= RAW_DATA_OFFSET, "the table fits in front of the buffers");

#endif
