/* SPDX-License-Identifier: MIT */
/* What a program's author calls the places in it: functions, lines and inlined calls of instructions, variables with their types.
 *
 * From the DWARF of the modules that the trace names, where these files are still there and have the build-id of then; else from
 * the trace's own symbols; else by module and address. Separate debug files are looked for where the system keeps them. C++ and Fortran names
 * are made readable. All strings live as long as the where. */
#ifndef STUDY_SYMBOLS_SYMBOLS_H
#define STUDY_SYMBOLS_SYMBOLS_H

#include "peet/trace.h"

struct symbols;

struct symbols_frame {
    const char *function; /* never NULL: "?" at worst */
    const char *file;     /* as the compiler was told, made absolute if that is known; NULL: unknown */
    uint32_t line;        /* 0: unknown */
};

enum { SYMBOLS_FRAMES = 16 };

int symbols_open(const struct peet_trace *t, struct symbols **ret, struct peet_err *err);
void symbols_free(struct symbols *sym);

/* Whether what is known of the code at an address, and of what it allocates, is at hand: it is the program's own, or somebody has asked about that library. Else
 * its debug file has to be opened first, which takes a while. */
bool symbols_is_loaded(struct symbols *sym, uint32_t process, uint64_t addr);

/* An instruction's frames: the innermost inlined call first, the function that has a symbol last; at least one. A frame's line is the
 * one that is executed there: in outer frames, that of the call. */
size_t symbols_code(struct symbols *sym, uint32_t process, uint64_t addr, struct symbols_frame frame[SYMBOLS_FRAMES]);

/* A variable that always lies at the same place: global, static, of a function, common block. */
struct symbols_variable {
    const char *
        name; /* "grid"; static ones of functions "function::name"; C++ with namespaces; Fortran module variables "module::name" */
    const char *type; /* "double [512][512]"; NULL: unknown */
    const char *file;
    uint32_t line;
    uint64_t start, size;
};
/* False: there is none; then start and size tell up to where that holds. */
bool symbols_variable(struct symbols *sym, uint32_t process, uint64_t addr, struct symbols_variable *ret);

/* The same for data of which each thread has its own: the program's are so many bytes below a thread pointer (0: there are none, or it is not known), and
 * `offset` counts from there. */
uint64_t symbols_local_size(struct symbols *sym, uint32_t process);
bool symbols_local(struct symbols *sym, uint32_t process, uint64_t offset, struct symbols_variable *ret);

/* What a reader of names must know: a program that was built again since the recording, a source that is gone or was changed since the program was
 * built. Programs are known from the beginning, sources when they have been looked for. NULL at the end. */
const char *symbols_problem(struct symbols *sym, size_t i);

/* Whether a source is what it was when the program was built, as far as the times of the files tell; if not, that is a problem. */
bool symbols_source_is_current(struct symbols *sym, const char *path);

/* What lies at an offset in a variable or type: "[].x", "[3].next", "mass"; "" when it is a scalar. Elements of arrays are not told apart if
 * `any` holds: "[]". False: the type is unknown. `type` is the text that symbols_variable or symbols_allocation gave. */
bool symbols_member(struct symbols *sym, const char *type, uint64_t offset, bool any, char *ret, size_t room);

/* The same for many offsets: two offsets whose texts would differ (`any` holds) have different numbers, most probably; 0: the type is unknown. */
uint64_t symbols_member_hash(struct symbols *sym, const char *type, uint64_t offset);

/* The size of such a type in bytes; 0: unknown. */
uint64_t symbols_size(struct symbols *sym, const char *type);

/* The size of what has members in it: of the type, or, of arrays, of their elements; 0: there are no members, or it is not known. */
uint64_t symbols_element_size(struct symbols *sym, const char *type);

/* What an allocating call is for: what the source assigns its value to, and that thing's type. `call` is an address in the call: its own, or
 * one before where it returns to, as of the `site` of events. False: nothing is known, not even a function with source. */
struct symbols_allocation {
    const char *name;            /* "s->cells", "table", "new Node", "std::vector<double>"; NULL: unknown */
    const char *type;            /* of an element of it: "struct cell"; NULL: unknown */
    const char *function, *file; /* that of the statement: inlined allocators are skipped */
    uint32_t line;
    const char *container; /* the class of the C++ library that asked for it; NULL: none */
    bool handed_on;        /* the function gives the memory to its caller, who knows better what it is for */
    bool is_raw;           /* and as a void *: the type is what it keeps its books in, should nobody know better */
};
/* inner: what was found for the call inside this one, if that one handed it on; else NULL. */
bool symbols_allocation(struct symbols *sym, uint32_t process, uint64_t call, const struct symbols_allocation *inner,
                        struct symbols_allocation *ret);

#endif
