/* SPDX-License-Identifier: MIT */
/* Data objects: classes of a program's memory, and to which of them a byte belongs, as the program runs.
 *
 * An object is a variable that has a symbol or is known by DWARF; all blocks that one call allocates (told apart by the call path, as deep as was asked for);
 * the stack of a function; a mapped file; what the program itself named (PEET_NAME_DATA). Where several hold, what the program named counts, then heap
 * blocks, then variables. Bytes of which nothing is known belong to their mapping, and if there is none, to "unknown". */
#ifndef STUDY_OBJECTS_OBJECTS_H
#define STUDY_OBJECTS_OBJECTS_H

#include "base/change_log.h"
#include "study/symbols/symbols.h"

enum object_kind {
    OBJECT_UNKNOWN,
    OBJECT_NAMED,
    OBJECT_HEAP,
    OBJECT_VARIABLE,
    OBJECT_THREAD_LOCAL,
    OBJECT_STACK,
    OBJECT_FILE,
    OBJECT_MAPPED /* memory that the program mapped, a file's or not: as blocks of the heap */
};

enum { OBJECT_PATH = 16 }; /* calls of a path that are kept: C++ containers that nobody inlined are ten calls deep */

struct object_info {
    enum object_kind kind;
    const char *name; /* unique among the objects: the place is added where it has to be */
    const char *type; /* of the variable, or of an element of the block; NULL: unknown */
    const char *file; /* where it is declared or allocated; NULL: unknown */
    uint32_t line, process;
    uint64_t path
        [OBJECT_PATH]; /* of heap blocks: the allocating call first (an address in it), then its callers; 0 at the end */
    uint64_t blocks, bytes; /* of heap blocks: how many there were, and their sum; else 1 and its size */
    double squares;         /* of heap blocks and named data: the sum of the squares of their bytes; else 0 */
};

struct objects;

int objects_new(const struct peet_trace *t, struct symbols *sym, struct objects **ret, struct peet_err *err);
void objects_free(struct objects *o);

/* Blocks of the heap are told apart by the calls up to the one whose statement names them (a wrapper of malloc does not), and by so many
 * calls above it (0), whose functions are then in their names. To be said before the first event. */
void objects_set_depth(struct objects *o, unsigned calls);

/* An event of a thread that may change what is where. path: the calls that led to it, by the addresses of their instructions, the
 * innermost first, 0 at the end. The event's own call may stand first, or not: it is known by the event's site. */
void objects_event(struct objects *o, uint32_t process, uint32_t thread, const struct peet_event *e,
                   const uint64_t path[OBJECT_PATH]);

bool objects_wants(uint32_t kind); /* whether an event of that kind may do so */

/* A thread that has begun has its own data below that address. */
void objects_thread(struct objects *o, uint32_t process, uint64_t pointer);

/* The object of a byte that an instruction refers to. What it is holds for all bytes from *ret_start to before *ret_end, as long as
 * nothing changes there (objects_changes); of a stack it holds for instructions of that function. */
uint32_t objects_find(struct objects *o, uint32_t process, uint32_t thread, uint64_t addr, uint64_t insn,
                      uint64_t *ret_start, uint64_t *ret_end);

const struct change_log *objects_changes(const struct objects *o); /* of what is where */
uint32_t objects_count(const struct objects *o); /* numbers are below; they never change their meaning */
const struct object_info *objects_info(const struct objects *o, uint32_t number);

/* For a heap block or variable: how far into it a byte is, in the object whose number objects_find gave just now. */
uint64_t objects_offset(const struct objects *o, uint32_t process, uint64_t addr);

/* After so many bytes of such an object its members come again; 0: its type is unknown, or has none. */
uint64_t objects_stride(struct objects *o, uint32_t number);

/* What lies there: as symbols_member, for blocks that hold several elements with "[]" in front. */
bool objects_member(struct objects *o, uint32_t number, uint64_t offset, bool any, char *ret, size_t room);
/* The same for many offsets: a number that differs, most probably, where those texts (`any` holds) do; 0: the type is unknown. */
uint64_t objects_member_hash(struct objects *o, uint32_t number, uint64_t offset);

#endif
