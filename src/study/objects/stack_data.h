/* SPDX-License-Identifier: MIT */
/* Stacks of threads: in which function's frame an address lies, by the calls that are open in the thread whose stack it is. */
#ifndef STUDY_OBJECTS_STACK_DATA_H
#define STUDY_OBJECTS_STACK_DATA_H

#include "map/call_path.h"
#include "map/source/source.h"
#include "study/symbols/symbols.h"

/* The stack of a thread. */
struct stack_area {
    uint64_t start, end;
    uint32_t process, thread; /* numbers in the trace */
};

/* The frame of an address in a stack. */
struct stack_place {
    uint64_t low, high;           /* bytes [low, high) of the frame; those of the stack if is_known is not set */
    uint64_t area_low, area_high; /* bytes of the stack */
    uint64_t code;                /* address in the function whose frame it is */
    uint64_t cfa;                 /* stack pointer before the call of the function; 0: unknown */
    bool is_known;                /* if not, `code` is the instruction that refers */
    bool is_other;                /* the frame is not that of the function that refers */
};

struct stack_data {
    const struct paths *paths; /* calls of the threads of `source`; NULL: frames are unknown */
    const struct source *source;
    const struct peet_trace *trace;
    struct stack_area *area;
    uint32_t areas;
    struct map targets; /* uint64_t: target of a direct call, by its address */
    uint32_t items;     /* items of the schema whose calls are in `targets` */
    struct map objects; /* uint32_t: 1 + number of an object, by address of a frame_variable, and process */
    struct stack_place found;
    bool has_found; /* objects_find found `found` last */
};

void stack_data_init(struct stack_data *d, const struct peet_trace *t);
void stack_data_release(struct stack_data *d);

void stack_data_add(struct stack_data *d, const struct stack_area *area); /* a thread has a stack */

/* Finds the frame of an address to which an instruction refers: d->found. in: the bytes around it that belong to the stack, and the thread that
 * refers. */
void stack_data_find(struct stack_data *d, struct symbols *sym, const struct stack_area *in, uint64_t addr,
                     uint64_t insn);

#endif
