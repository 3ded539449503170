/* SPDX-License-Identifier: MIT */
/* Which code of two traces is the same: gives instructions of both traces numbers that are equal for equal code.
 *
 * Modules with the same build-id have equal code at equal offsets. Other modules are different builds: there, code is the same if it belongs to the same function
 * and to matching lines. Lines of a function match if they have the same kinds of instructions and callees; they are aligned by an edit script, so that lines
 * may be inserted or removed. See docs/design/compare.md. */
#ifndef STUDY_COMPARE_CODE_MATCH_H
#define STUDY_COMPARE_CODE_MATCH_H

#include "study/compare/distance.h"
#include "study/symbols/symbols.h"

/* What events of a stream are. */
enum compare_unit { UNIT_INSTRUCTIONS, UNIT_BLOCKS, UNIT_CALLS, UNIT_EVENTS };
extern const char *const compare_unit_names[]; /* "instructions" */

/* How code is recognized. */
enum compare_by { BY_AUTO, BY_ADDRESS, BY_SOURCE };

/* What the events of one number have in common. */
struct event_class {
    uint64_t addr;      /* of an instruction of the class */
    const char *callee; /* of a call in another build: name of the called function; or NULL */
    uint32_t process;   /* number of the process in its trace */
    uint8_t side;       /* trace that has `addr`: 0 or 1 */
    uint8_t kind;       /* enum peet_class of an instruction; EVENT_CLASS + enum peet_event_kind */
    bool waits;         /* code whose path depends on other threads: it waits for them, or allocates memory */
};
enum { EVENT_CLASS = 64 };

struct code_match;

/* The processes with these numbers. The traces must outlive it. */
int code_match_new(struct peet_trace *const trace[2], const uint32_t process[2], enum compare_unit unit,
                   enum compare_by by, struct code_match **ret, struct peet_err *err);
void code_match_free(struct code_match *m);

/* Whether some code is recognized by function and line. */
bool code_match_is_by_source(const struct code_match *m);

/* Numbers of the events of a block, in order; valid until the next call. `count` may be 0. */
const uint32_t *code_match_block(struct code_match *m, unsigned side, uint32_t item, size_t *ret_count);
size_t code_match_events_before(struct code_match *m, unsigned side, uint32_t item,
                                unsigned insn); /* of the block, before an instruction */
uint32_t code_match_event(struct code_match *m, unsigned side, const struct peet_event *event);

uint32_t code_match_classes(const struct code_match *m); /* numbers are below */
const struct event_class *code_match_class(const struct code_match *m, uint32_t number);

/* The function and line of a class; its strings live as long as m. */
struct symbols_frame code_match_frame(struct code_match *m, uint32_t number);

/* Whether a function waits for other threads, or is part of an allocator. */
bool function_waits(const char *name);
bool function_synchronizes(const char *name); /* without allocators */

#endif
