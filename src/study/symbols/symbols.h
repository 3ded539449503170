/* SPDX-License-Identifier: MIT */
/* What a program's author calls the places in it: functions, lines and inlined calls of instructions, variables with their types.
 *
 * From the DWARF of the modules that the trace names, where these files are still there and have the build-id of then; else from
 * the trace's own symbols; else by module and address. Separate debug files are looked for where the system keeps them. C++ and Fortran names
 * are made readable. All strings live as long as the where. */
#ifndef STUDY_SYMBOLS_SYMBOLS_H
#define STUDY_SYMBOLS_SYMBOLS_H

#include "peet/trace.h"

struct where;

struct where_frame {
    const char *function; /* never NULL: "?" at worst */
    const char *file;     /* as the compiler was told, made absolute if that is known; NULL: unknown */
    uint32_t line;        /* 0: unknown */
};

enum { WHERE_FRAMES = 16 };

int where_open(const struct peet_trace *t, struct where **ret, struct peet_err *err);
void where_free(struct where *w);

/* Whether what is known of the code at an address, and of what it allocates, is at hand: it is the program's own, or somebody has asked about that library. Else
 * its debug file has to be opened first, which takes a while. */
bool where_is_open(struct where *w, uint32_t process, uint64_t addr);

/* An instruction's frames: the innermost inlined call first, the function that has a symbol last; at least one. A frame's line is the
 * one that is executed there: in outer frames, that of the call. */
size_t where_code(struct where *w, uint32_t process, uint64_t addr, struct where_frame frame[WHERE_FRAMES]);

/* A variable that always lies at the same place: global, static, of a function, common block. */
struct where_variable {
    const char *
        name; /* "grid"; static ones of functions "function::name"; C++ with namespaces; Fortran module variables "module::name" */
    const char *type; /* "double [512][512]"; NULL: unknown */
    const char *file;
    uint32_t line;
    uint64_t start, size;
};
/* False: there is none; then start and size tell up to where that holds. */
bool where_variable(struct where *w, uint32_t process, uint64_t addr, struct where_variable *ret);

/* The same for data of which each thread has its own: the program's are so many bytes below a thread pointer (0: there are none, or it is not known), and
 * `offset` counts from there. */
uint64_t where_local_size(struct where *w, uint32_t process);
bool where_local(struct where *w, uint32_t process, uint64_t offset, struct where_variable *ret);

/* What a reader of names must know: a program that was built again since the recording, a source that is gone or was changed since the program was
 * built. Programs are known from the beginning, sources when they have been looked for. NULL at the end. */
const char *where_problem(struct where *w, size_t i);

/* Whether a source is what it was when the program was built, as far as the times of the files tell; if not, that is a problem. */
bool where_source_is_current(struct where *w, const char *path);

/* What lies at an offset in a variable or type: "[].x", "[3].next", "mass"; "" when it is a scalar. Elements of arrays are not told apart if
 * `any` holds: "[]". False: the type is unknown. `type` is the text that where_variable or where_allocated gave. */
bool where_member(struct where *w, const char *type, uint64_t offset, bool any, char *ret, size_t room);

/* The same for many offsets: two offsets whose texts would differ (`any` holds) have different numbers, most probably; 0: the type is unknown. */
uint64_t where_member_mark(struct where *w, const char *type, uint64_t offset);

/* The size of such a type in bytes; 0: unknown. */
uint64_t where_size(struct where *w, const char *type);

/* The size of what has members in it: of the type, or, of arrays, of their elements; 0: there are no members, or it is not known. */
uint64_t where_element_size(struct where *w, const char *type);

/* What an allocating call is for: what the source assigns its value to, and that thing's type. `call` is an address in the call: its own, or
 * one before where it returns to, as of the `site` of events. False: nothing is known, not even a function with source. */
struct where_allocated {
    const char *name;            /* "s->cells", "table", "new Node", "std::vector<double>"; NULL: unknown */
    const char *type;            /* of an element of it: "struct cell"; NULL: unknown */
    const char *function, *file; /* that of the statement: inlined allocators are skipped */
    uint32_t line;
    const char *container; /* the class of the C++ library that asked for it; NULL: none */
    bool handed_on;        /* the function gives the memory to its caller, who knows better what it is for */
    bool is_raw;           /* and as a void *: the type is what it keeps its books in, should nobody know better */
};
/* inner: what was found for the call inside this one, if that one handed it on; else NULL. */
bool where_allocated(struct where *w, uint32_t process, uint64_t call, const struct where_allocated *inner,
                     struct where_allocated *ret);

#endif
