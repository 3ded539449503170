/* SPDX-License-Identifier: MIT */
/* Data objects: classes of a program's memory, and the map from addresses to them as the program runs. See docs/design/profile.md.
 *
 * An object is a variable with a symbol or DWARF, the heap blocks of one allocating call, the stack of a function, a mapped file, or data that
 * the program named (PEET_NAME_DATA). Where several contain a byte, named data comes first, then heap blocks, then variables. Other bytes
 * belong to their mapping; without a mapping, to "unknown". */
#ifndef STUDY_OBJECTS_OBJECTS_H
#define STUDY_OBJECTS_OBJECTS_H

#include "base/change_log.h"
#include "map/call_path.h"
#include "study/symbols/symbols.h"

enum object_kind {
    OBJECT_UNKNOWN,
    OBJECT_NAMED,
    OBJECT_HEAP,
    OBJECT_VARIABLE,
    OBJECT_THREAD_LOCAL,
    OBJECT_STACK,
    OBJECT_FILE,
    OBJECT_MAPPED /* memory that the program mapped, with or without a file: named as heap blocks are */
};

enum { OBJECT_PATH = 16 }; /* calls of a path that are kept: C++ containers without inlining are ten calls deep */

/* A data object, as reports show it. */
struct object_info {
    enum object_kind kind;
    const char *name;       /* unique among the objects: with a place where needed */
    const char *type;       /* of the variable, or of an element of the block; NULL: unknown */
    const char *file;       /* where it is declared or allocated; NULL: unknown */
    uint32_t line, process; /* line in `file`, 0: unknown; number of the process in the trace */
    /* Heap blocks: addresses in the allocating call and its callers, the innermost first; 0 at the end. */
    uint64_t path[OBJECT_PATH];
    uint64_t blocks, bytes; /* heap blocks: number and sum of all that were allocated; other objects: 1 and the size */
    double squares;         /* heap blocks and named data: sum of the squares of their bytes; other objects: 0 */
};

struct objects;
struct stack_place; /* stack_data.h */

int objects_new(const struct peet_trace *t, struct symbols *sym, struct objects **ret, struct peet_err *err);
void objects_free(struct objects *o);

/* Before the first event. Heap blocks are distinguished by the calls up to the one whose statement names them, and by `calls` (0) calls above it,
 * whose functions are then in their names. */
void objects_set_depth(struct objects *o, unsigned calls);

/* Before the first event: bytes that belong to nothing else are looked up among blocks that other threads allocate later in the trace. The trace
 * must outlive the objects. */
void objects_look_ahead(struct objects *o, struct peet_trace *t);

/* Before the first event: calls of the threads, by which data in stacks belongs to the function whose frame it is; otherwise it belongs to the function that
 * refers. Both must outlive the objects. */
void objects_use_paths(struct objects *o, const struct paths *paths, const struct source *source);

/* An event of a thread that may change the address-to-object map. path: addresses of its calls, the innermost first, 0 at the end. The
 * event's own call may be missing: the event has it as its site. */
void objects_event(struct objects *o, uint32_t process, uint32_t thread, const struct peet_event *e,
                   const uint64_t path[OBJECT_PATH]);

bool objects_wants(uint32_t kind); /* whether an event of that kind may change the map */

/* A thread with that thread pointer has begun: its thread-local data lies below it. */
void objects_thread(struct objects *o, uint32_t process, uint64_t pointer);

/* The object of a byte to which an instruction refers. It is that of all bytes in [*ret_start, *ret_end) until the map changes there
 * (objects_changes); of a stack, while the frames stay (objects_stack). */
uint32_t objects_find(struct objects *o, uint32_t process, uint32_t thread, uint64_t addr, uint64_t insn,
                      uint64_t *ret_start, uint64_t *ret_end);

/* The frame of the byte that objects_find found last; NULL: it is in no stack. */
const struct stack_place *objects_stack(const struct objects *o);

const struct change_log *objects_changes(const struct objects *o); /* of the address-to-object map */
uint32_t objects_count(const struct objects *o); /* numbers are below it; an object keeps its number */
const struct object_info *objects_info(const struct objects *o, uint32_t number);

/* The offset of a byte in its heap block or variable; objects_find must have found that object last. */
uint64_t objects_offset(const struct objects *o, uint32_t process, uint64_t addr);

/* The bytes after which the members of an object repeat; 0: its type is unknown, or has no members. */
uint64_t objects_stride(struct objects *o, uint32_t number);

/* The member at an offset, as symbols_member gives it; in blocks of several elements after "[]". */
bool objects_member(struct objects *o, uint32_t number, uint64_t offset, bool any, char *ret, size_t room);
/* A hash of the text of objects_member (with `any`), without making the text; 0: the type is unknown. */
uint64_t objects_member_hash(struct objects *o, uint32_t number, uint64_t offset);

#endif
