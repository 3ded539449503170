/* SPDX-License-Identifier: MIT */
/* Symbols of a program as its sources have them: functions, lines and inlined calls of instructions; variables and their types.
 *
 * They come from DWARF of the modules that the trace names, if these files exist and have the recorded build-id; otherwise from the symbols in the
 * trace; otherwise they are module and address. Separate debug files are found where the system keeps them. C++ and Fortran names are demangled.
 * All strings live as long as struct symbols. */
#ifndef STUDY_SYMBOLS_SYMBOLS_H
#define STUDY_SYMBOLS_SYMBOLS_H

#include "peet/trace.h"

struct symbols;

/* A function at an address: one frame of a call, or of inlined calls. */
struct symbols_frame {
    const char *function; /* never NULL: "?" at worst */
    const char *file;     /* as given to the compiler, made absolute if its folder is known; NULL: unknown */
    uint32_t line;        /* 0: unknown */
};

enum { SYMBOLS_FRAMES = 16 };

int symbols_open(const struct peet_trace *t, struct symbols **ret, struct peet_err *err);
void symbols_free(struct symbols *sym);

/* Whether the symbols for an address are loaded: those of the program, and of libraries that were asked for before. Loading a library's debug file is
 * slow. */
bool symbols_is_loaded(struct symbols *sym, uint32_t process, uint64_t addr);

/* An instruction's frames: the innermost inlined call first, the function that has a symbol last; at least one. A frame's line is the
 * one that is executed there: in outer frames, that of the call. */
size_t symbols_code(struct symbols *sym, uint32_t process, uint64_t addr, struct symbols_frame frame[SYMBOLS_FRAMES]);

/* A variable that always lies at the same place: global, static, of a function, common block. */
struct symbols_variable {
    const char *
        name; /* "grid"; static ones of functions "function::name"; C++ with namespaces; Fortran module variables "module::name" */
    const char *type;     /* "double [512][512]"; NULL: unknown */
    const char *file;     /* NULL: unknown */
    uint32_t line;        /* 0: unknown */
    uint64_t start, size; /* address in the process; bytes */
};
/* False: there is none; ret->start and size are then the bounds of the gap. */
bool symbols_variable(struct symbols *sym, uint32_t process, uint64_t addr, struct symbols_variable *ret);

/* Thread-local variables of the program lie symbols_local_size bytes below a thread pointer (0: none, or unknown); `offset` counts from there. */
uint64_t symbols_local_size(struct symbols *sym, uint32_t process);
bool symbols_local(struct symbols *sym, uint32_t process, uint64_t offset, struct symbols_variable *ret);

/* The bytes of a variable in a stack frame. Offsets are from the CFA: the stack pointer before the call of the function. */
struct frame_variable;
struct symbols_frame_span {
    struct frame_variable *variable; /* NULL: there is none between low and high */
    int64_t low, high;               /* its bytes [low, high) */
};
/* The variable at an offset in the frame of the function that executes, or has called from, an address. */
struct symbols_frame_span symbols_frame_variable(struct symbols *sym, uint32_t process, uint64_t code, int64_t offset);
/* Its name, type and place; *ret_function: the function that declares it, perhaps inlined. */
void symbols_frame_describe(struct symbols *sym, struct frame_variable *v, struct symbols_variable *ret,
                            const char **ret_function);

/* The CFA of the function that makes a call, by the stack pointer before the call; 0: unknown. */
uint64_t symbols_frame_end(struct symbols *sym, uint32_t process, uint64_t call, uint64_t sp);

/* Whether DWARF has two addresses of code in one function. */
bool symbols_is_same_function(struct symbols *sym, uint32_t process, uint64_t code, uint64_t other);

/* A warning about symbols: a program was rebuilt since the recording, a source file is gone or was changed since the program was built. Programs are
 * checked at once, sources when they are first needed. NULL at the end. */
const char *symbols_problem(struct symbols *sym, size_t i);

/* Whether a source is older than the program, by the times of the files; if not, that is a problem. */
bool symbols_source_is_current(struct symbols *sym, const char *path);

/* What lies at an offset in a variable or type: "[].x", "[3].next", "mass"; "" when it is a scalar. With `any`, all elements of an
 * array are "[]". False: the type is unknown. `type` is the text that symbols_variable or symbols_allocation gave. */
bool symbols_member(struct symbols *sym, const char *type, uint64_t offset, bool any, char *ret, size_t room);

/* A hash of the text of symbols_member (with `any`), without making the text; 0: the type is unknown. */
uint64_t symbols_member_hash(struct symbols *sym, const char *type, uint64_t offset);

/* The size of such a type in bytes; 0: unknown. */
uint64_t symbols_size(struct symbols *sym, const char *type);

/* The size in bytes of a class, or of the elements of an array of classes; 0: there are no members, or the type is unknown. */
uint64_t symbols_element_size(struct symbols *sym, const char *type);

/* The target of an allocating call: what the source assigns its value to, and the target's type. call: address of the call, or return address − 1, as the
 * `site` of events. False: unknown, also the function. */
struct symbols_allocation {
    const char *name;            /* "s->cells", "table", "new Node", "std::vector<double>"; NULL: unknown */
    const char *type;            /* of an element of it: "struct cell"; NULL: unknown */
    const char *function, *file; /* that of the statement: inlined allocators are skipped */
    uint32_t line;
    const char *container; /* the class of the C++ library that asked for it; NULL: none */
    bool handed_on;        /* the function returns the memory to its caller, whose statement names it better */
    bool is_raw;           /* it returns a void *: `type` may be the allocator's, and holds only if no caller has one */
};
/* inner: the allocation found for the call inside this one, if it was handed on; otherwise NULL. */
bool symbols_allocation(struct symbols *sym, uint32_t process, uint64_t call, const struct symbols_allocation *inner,
                        struct symbols_allocation *ret);

#endif
