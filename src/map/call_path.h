/* SPDX-License-Identifier: MIT */
/* Call paths: the chain of calls that has led each thread to its current block, as a calling context tree.
 * docs/design/mapper.md describes how calls and returns are found in a stream, and what happens at gaps. */
#ifndef MAP_CALL_PATH_H
#define MAP_CALL_PATH_H

#include "base/map.h"
#include "map/source/source.h"
#include "peet/trace.h"

/* A node of the calling context tree: a chain of call sites from a root of the tree. */
struct path_node {
    uint32_t parent;    /* node number; of a root: the node's own number */
    uint32_t process;   /* index of the process; 0 of a node that all processes share */
    uint64_t call;      /* address of the call instruction that led here; 0: unknown, or the node is a root */
    uint64_t last_call; /* lookup cache: address of the last call from here; 0: none */
    uint32_t last;      /* node that last_call led to; valid if last_call is not 0 */
};

/* A call that has not returned. */
struct path_call {
    uint64_t site, back; /* address of the call instruction; return address */
    uint32_t node;       /* node of the called function */
    uint64_t slot;       /* address at which the call stored its return address; 0: unknown */
};

/* The stack frame of a function: the bytes between the return address of the function's last call and the end of the return address of the function itself. */
struct frame_extent {
    uint64_t low,
        high; /* bytes [low, high): high is the stack pointer before its call, UINT64_MAX: unknown; low is 0 of the innermost frame */
    uint64_t code,
        sp; /* address of the last call that the function has made, and the stack pointer before it; 0: unknown */
    uint64_t call;   /* address of the call that called the function; 0: unknown */
    bool is_current; /* the thread executes this function */
};

/* How control leaves a block. UNKNOWN: records are missing after it. */
enum path_exit { PATH_NEXT, PATH_JUMPS, PATH_CALLS, PATH_RETURNS, PATH_UNKNOWN };

/* The call stack of a thread: elements [call, top] of an array with room for elements [call, end]. Its address is constant. */
struct path_thread {
    struct path_call *top;  /* innermost call that has not returned */
    struct path_call *last; /* call that the last block made or returned from */
    struct path_call *call; /* element 0, a sentinel that holds the root node of the path, and the root's slot */
    struct path_call *end;  /* last element of the array; takes a call that is too deep to be kept */
    uint32_t process;       /* index of its process */
    uint32_t lost;          /* open calls deeper than the array; they count for the innermost call that is kept */
    uint8_t exit;           /* enum path_exit of the last block */
    bool is_unknown; /* records were missing, the source could not supply the stack, and no block has run since */
};

/* Lookup cache of a block: results of its last execution. */
struct path_cache {
    uint32_t items;   /* items of the schema when is_entry was determined; 0: not yet */
    uint32_t process; /* index of the process for which is_entry is valid */
    uint32_t node;    /* node for which child is valid */
    uint32_t child;   /* node that the block's call leads to from `node`; 0: not yet determined */
    bool is_entry;    /* a function begins at the block */
};

/* A process of the call paths: its roots, and how far its functions are known. */
struct path_process {
    uint32_t number;  /* in the trace */
    uint32_t items;   /* items of the schema that have been searched for entries of functions */
    uint32_t root;    /* node at which its threads begin */
    uint32_t unknown; /* node of threads whose call stack is unknown; 0: not made yet */
};

/* The calling context tree of a run, and the call stacks of its threads. */
struct paths {
    const struct peet_trace *trace; /* schema and symbols; NULL: functions are unknown */
    const struct source *source;    /* the source of the threads; NULL: one process with number 0 */
    struct path_process *process;   /* by index: in order of appearance */
    uint32_t processes;             /* so far */
    struct map indices;             /* uint32_t: 1 + index of a process, by its number */
    struct map
        entries; /* uint64_t: address of a function's first block, by the function's symbol address and process */
    struct path_node *node; /* by number */
    uint32_t nodes;
    struct map children;         /* uint32_t: node, by call address and parent node */
    uint64_t unknown_paths;      /* executions of a first block after a gap, by threads whose call stack was unknown */
    struct path_thread **thread; /* by index in the source; NULL: not seen yet */
    uint32_t threads;
    struct path_cache *cache; /* by block */
    uint32_t caches;
    bool lacks_references; /* blocks come without some of their references, so that slots are unknown */
};

void paths_init(struct paths *p, const struct peet_trace *t, const struct source *source);
void paths_release(struct paths *p);
struct path_thread *paths_thread(struct paths *p, uint32_t thread);
uint32_t paths_process(struct paths *p, uint32_t number); /* its index, which is new if the process is */

/* Notes that a thread executes a block. Returns the node of the call path on which it does. */
uint32_t paths_block(struct paths *p, uint32_t thread, const struct peet_record *block);

/* paths_block in two halves, for callers that have the block's address and exit at hand. A block that falls through to a block
 * without a function entry needs neither. */
bool paths_is_entry(struct paths *p, uint32_t process, uint64_t addr);                       /* process: its index */
uint32_t paths_arrive(struct paths *p, struct path_thread *t, uint64_t addr, bool is_entry); /* the node */
void paths_leave(struct paths *p, struct path_thread *t, enum path_exit how, const struct path_call *by);
enum path_exit paths_exit_of(enum peet_class last); /* by a block's last instruction */

/* The node to which a call leads from a node. paths_call pushes a call on the thread's stack, paths_return pops the innermost one. */
uint32_t paths_child(struct paths *p, uint32_t parent, uint64_t site);
void paths_call(struct path_thread *t, const struct path_call *call);
void paths_return(struct path_thread *t);

/* Whether a function that begins now is the thread's outermost one. Its stack pointer is noted then; 0: unknown. */
static inline bool paths_begins(const struct path_thread *t)
{
    return t->exit == PATH_UNKNOWN && t->top == t->call;
}
static inline void paths_begin(struct path_thread *t, uint64_t stack_pointer)
{
    t->call->slot = stack_pointer;
}

/* After paths_call: the address at which the call stores its return address. */
static inline void paths_set_slot(struct path_thread *t, uint64_t slot)
{
    t->last->slot = slot;
}

/* The call that called the function which a thread executes, also after the call or return with which the thread's block ends. Its node is that of the
 * block. */
static inline const struct path_call *paths_current(const struct path_thread *t)
{
    if (t->exit == PATH_CALLS && t->last == t->top && t->top > t->call)
        return t->top - 1;
    return t->exit == PATH_RETURNS && !t->lost ? t->last : t->top;
}

/* The frame of a thread's stack that contains an address. False: unknown. */
bool paths_frame(const struct path_thread *t, uint64_t addr, struct frame_extent *ret);

/* The operand of a block by which its call stores the return address; NULL: none is known. */
const struct peet_operand *paths_slot_operand(const struct peet_block *b);
/* Whether the block's first slot is the stack pointer, and one of its operands shows it; that operand. NULL: no. */
const struct peet_operand *paths_entry_operand(const struct peet_block *b);

/* After a gap, in which calls and returns were not recorded: takes the thread's call stack from the source, if it can supply it. */
void paths_find_again(struct paths *p, uint32_t thread, struct source *source);

/* The calls that have led to where a thread is, the innermost first, 0 at the end. */
void paths_calls(const struct paths *p, uint32_t thread, uint64_t *ret, unsigned most);

#endif
