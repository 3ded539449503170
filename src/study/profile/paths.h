/* SPDX-License-Identifier: MIT */
/* Call paths: how each thread got to where it is, as a tree of calls that all threads share.
 *
 * Streams say which blocks end in a call or a return, and which block came next. Calls into code that was not recorded return at once; call-backs out
 * of it are called from the call that led there; longjmp and exceptions go back to the call whose return address comes next. Where a stream has left out
 * what a thread called, its source may find its calls on its stack. Else its path begins again, at a node of which nobody knows how it was reached. */
#ifndef STUDY_PROFILE_PATHS_H
#define STUDY_PROFILE_PATHS_H

#include "base/map.h"
#include "map/source.h"
#include "peet/trace.h"
#include "sim/solo/solo.h"

struct path_node {
    uint32_t parent;    /* 0 is the root, where threads begin */
    uint64_t call;      /* address of the call that led here; 0: nobody knows (or it is the root) */
    uint64_t last_call; /* from here; 0: none, */
    uint32_t last;      /*   and where it led */
};

struct path_thread;

struct paths {
    const struct peet_trace *trace;
    struct path_node *node;
    uint32_t nodes;
    struct map children; /* uint32_t: node, by call and parent */
    uint32_t unknown;    /* node; 0: there is none */
    uint64_t lost;       /* how often a thread went on of which that was not known */
    struct path_thread *thread;
    uint32_t threads;
};

void paths_init(struct paths *p, const struct peet_trace *t);
void paths_release(struct paths *p);

/* A thread executes a block: the node of the path on which it does. */
uint32_t paths_block(struct paths *p, uint32_t thread, const struct peet_record *block);

/* A thread has called and returned, and nobody has seen it; perhaps the source knows where it is now. */
void paths_lose(struct paths *p, uint32_t thread, struct source *source);

/* The same for who knows where the block begins, its last instruction, and how the one before it was left; of a block behind one that neither called,
 * jumped nor returned, and that does not either, nobody has to tell. */
void paths_turn(struct paths *p, uint32_t thread, uint64_t addr, const struct peet_insn *last, enum solo_turn before,
                struct solo_way *ret);

/* The calls that have led to where a thread is, the innermost first, 0 at the end. */
void paths_calls(const struct paths *p, uint32_t thread, uint64_t *ret, unsigned most);

#endif
