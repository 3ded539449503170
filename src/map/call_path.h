/* SPDX-License-Identifier: MIT */
/* Call paths: how each thread got to where it is, as a tree of calls that all threads of a process share.
 *
 * Streams say which blocks end in a call or a return, and which block came next. Calls into code that was not recorded return at once; call-backs out
 * of it are called from the call that led there. Where a call leads into the middle of a function that has called, longjmp or an exception has gone back there: to the
 * innermost call that this function has made. Where a stream has left out
 * what a thread called, its source may find its calls on its stack. Else its path begins again, at a node of which nobody knows how it was reached. */
#ifndef MAP_CALL_PATH_H
#define MAP_CALL_PATH_H

#include "base/map.h"
#include "map/source/source.h"
#include "peet/trace.h"

struct path_node {
    uint32_t parent;    /* of a root, where threads of a process begin: itself */
    uint32_t process;   /* index of its process; 0 of a node that is used for all */
    uint64_t call;      /* address of the call that led here; 0: it is not known (or the node is a root) */
    uint64_t last_call; /* from here; 0: none, */
    uint32_t last;      /*   and where it led */
};

struct path_call {
    uint64_t site, back; /* the call; where it returns to */
    uint32_t node;       /* where it led */
};

/* How a block is left. LOST: the thread has been elsewhere since. */
enum path_exit { PATH_NEXT, PATH_JUMPS, PATH_CALLS, PATH_RETURNS, PATH_UNKNOWN };

/* Where a thread is. It stays where it is in memory. */
struct path_thread {
    struct path_call *top;        /* the innermost call that has not returned, */
    struct path_call *last;       /* the one that the last block has made, or has returned from; */
    struct path_call *call, *end; /*   and all: the first is nobody's, and has the node where the path begins */
    uint32_t process;             /* index of its process */
    uint32_t lost;                /* calls inside the innermost one that were too deep: as if that made them */
    uint8_t turn;                 /* enum path_exit: of its last block */
    bool is_unknown;              /* nobody knows where it is, and it has done nothing since */
};

/* What is known of a block from when it was executed last. */
struct path_cache {
    uint32_t items;   /* that were looked at when it was known whether a function begins there; 0: it is not known */
    uint32_t process; /* index of the process for which that holds */
    uint32_t node, child; /* the node, and where its call led from there; child 0: it has not called */
    bool is_entry;
};

/* A process that has threads. */
struct path_process {
    uint32_t number;  /* in the trace */
    uint32_t items;   /* those below were looked at for the entries of its functions */
    uint32_t root;    /* node where its threads begin */
    uint32_t unknown; /* node of threads of which it is not known how they came where they are; 0: there is none */
};

struct paths {
    const struct peet_trace *trace; /* NULL: of functions nothing is known */
    const struct source *source;    /* whose contexts threads are; NULL: all are of one process, whose number is 0 */
    struct path_process *process;   /* by index: in the order in which they came */
    uint32_t processes;
    struct map indices; /* uint32_t: 1 + index of a process, by its number */
    struct map entries; /* uint64_t: the first block of a function, by where that begins, and process */
    struct path_node *node;
    uint32_t nodes;
    struct map children; /* uint32_t: node, by call and parent */
    uint64_t lost;       /* how often a thread went on of which it was not known where it was */
    struct path_thread **thread;
    uint32_t threads;
    struct path_cache *spot; /* by block */
    uint32_t spots;
};

void paths_init(struct paths *p, const struct peet_trace *t, const struct source *source);
void paths_release(struct paths *p);
struct path_thread *paths_thread(struct paths *p, uint32_t thread);
uint32_t paths_process(struct paths *p, uint32_t number); /* its index, which is new if the process is */

/* A thread executes a block: the node of the path on which it does. */
uint32_t paths_block(struct paths *p, uint32_t thread, const struct peet_record *block);

/* The same for who knows where the block begins, whether a function begins there, and how it is left: by the call that stands there and returns there, say. Of a
 * block that goes on where one begins that does so, too, nobody has to tell. */
bool paths_is_entry(struct paths *p, uint32_t process, uint64_t addr);                       /* process: its index */
uint32_t paths_arrive(struct paths *p, struct path_thread *t, uint64_t addr, bool is_entry); /* the node */
void paths_leave(struct paths *p, struct path_thread *t, enum path_exit turn, const struct path_call *by);
enum path_exit paths_exit_of(enum peet_class last); /* by a block's last instruction */

/* Where a call leads from a node. It is made, or the innermost one returns. */
uint32_t paths_child(struct paths *p, uint32_t parent, uint64_t site);
void paths_call(struct path_thread *t, const struct path_call *call);
void paths_return(struct path_thread *t);

/* A thread has called and returned, and nobody has seen it; perhaps the source knows where it is now. */
void paths_find_again(struct paths *p, uint32_t thread, struct source *source);

/* The calls that have led to where a thread is, the innermost first, 0 at the end. */
void paths_calls(const struct paths *p, uint32_t thread, uint64_t *ret, unsigned most);

#endif
