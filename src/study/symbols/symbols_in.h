/* SPDX-License-Identifier: MIT */
/* Symbols, shared by the files of this folder. A unit of DWARF is read when an address in it is first looked up; looking up a variable reads
 * all units of its module. */
#ifndef STUDY_SYMBOLS_SYMBOLS_IN_H
#define STUDY_SYMBOLS_SYMBOLS_IN_H

#include <elfutils/libdw.h>

#include "base/arena.h"
#include "base/map.h"
#include "study/symbols/symbols.h"

/* A code range of a function or of an inlined call; inner ones come after outer ones. Addresses are those of the file. */
struct symbols_scope {
    uint64_t low, high; /* [low, high) */
    size_t around;      /* index of the enclosing scope; SIZE_MAX: none */
    uint32_t depth;     /* enclosing scopes */
    Dwarf_Die die;
};

struct symbols_module;

/* A unit of DWARF: one compiled source file. */
struct symbols_unit {
    Dwarf_Die die;
    struct symbols_module *module; /* NULL: a partial unit, whose DIEs others refer to */
    bool walked;                   /* `scope` and the module's variables have what is in it */
    bool has_classes, is_fortran;  /* names need a namespace; arrays have Fortran's order */
    struct symbols_scope *scope;
    size_t scopes;
};

/* Code of a unit. */
struct symbols_unit_range {
    uint64_t low, high; /* addresses of the file: [low, high) */
    struct symbols_unit *unit;
};

/* A variable at a fixed address; name and type are made on demand. */
struct symbols_static {
    uint64_t start, size; /* address in the file, or offset of a thread-local one; bytes */
    Dwarf_Die die;
    struct symbols_variable made; /* name is NULL: not made yet */
};

/* A file with code: program or library. */
struct symbols_module {
    const struct peet_module *module;
    bool opened, listed;               /* its file was opened; units and variables were listed */
    int fd;                            /* of its debug file; -1: none */
    Dwarf *dwarf;                      /* NULL: it has none */
    Dwarf_CFI *cfi;                    /* NULL: it was not read, or there is none */
    struct symbols_unit_range *extent; /* rising */
    size_t extents;
    struct symbols_unit **unit;
    size_t units;
    struct symbols_static *variable; /* rising */
    size_t variables;
    struct symbols_static *local; /* rising by offset: thread-local variables */
    size_t locals;
    uint64_t local_size; /* bytes of its thread-local block */
};

/* Addresses at which a module is loaded in a process. */
struct symbols_segment {
    uint32_t process;    /* number in the trace */
    uint64_t start, end; /* addresses [start, end) */
    struct symbols_module *module;
};

/* A source file. */
struct symbols_source {
    const char *path;
    char *text, *bare; /* bare: comments, strings and preprocessor lines are blanks. NULL: it cannot be read */
    size_t size;
    size_t *line; /* by line: offset of its first character */
    size_t lines;
};

/* The symbols of all modules of a trace. */
struct symbols {
    const struct peet_trace *trace;
    struct arena arena;
    struct symbols_module **module;
    size_t modules;
    struct symbols_segment *segment; /* rising by process and start */
    size_t segments;
    struct map units;   /* struct symbols_unit *, by the address of their DIE in memory */
    struct map parents; /* Dwarf_Die, by the address of the child: the next thing around it that has a name */
    struct map names;   /* const char *, by the address of a DIE or symbol */
    struct map files;   /* const char *, by the address of what the compiler wrote */
    struct map types;   /* struct symbols_type, by the hash of their text */
    struct map layouts; /* struct symbols_layout *, by the address of the DIE of their type */
    struct map sources; /* struct symbols_source, by the address of their name */
    struct map texts;   /* const char *, by hash: texts that are kept once */
    struct map
        frame_sizes; /* uint64_t: bytes from the stack pointer to the CFA, by code address and process; 0: unknown */
    struct map
        frames; /* struct frame_function *, by the address of their DIE (tag 0), and by code address and 1 + process */
    void *demangler;                                          /* library that has `demangle`; NULL: not loaded */
    char *(*demangle)(const char *, char *, size_t *, int *); /* __cxa_demangle; NULL: there is none */
    bool looked_for_demangler, looked_for_problems;
    const char **problem; /* modules without usable symbols, one text each */
    size_t problems;
};

struct symbols_layout;

/* A type by its text. */
struct symbols_type {
    const char *text;
    Dwarf_Die die;
};

/* An inlined call or function at an address, as DWARF knows it. */
struct src_loc {
    Dwarf_Die die;
    struct symbols_unit *unit;
    const char *file;      /* NULL: unknown */
    uint32_t line, column; /* 0: unknown */
};

const char *symbols_keep(struct symbols *sym, const char *text); /* one copy of each text */

/* symbols/dwarf.c */
struct symbols_module *symbols_module_at(struct symbols *sym, uint32_t process, uint64_t addr);
void symbols_module_open(struct symbols *sym, struct symbols_module *m);
void symbols_module_list(struct symbols *sym, struct symbols_module *m); /* its variables */
void symbols_module_release(struct symbols_module *m);
bool symbols_module_is_rebuilt(const struct peet_module *m); /* its file exists, with another build-id */
void symbols_unit_walk(struct symbols *sym, struct symbols_unit *u);
struct symbols_unit *symbols_unit_of(struct symbols *sym, Dwarf_Die *die);

/* The frames at an address, the innermost first; 0 when DWARF does not know it. */
size_t symbols_locations(struct symbols *sym, uint32_t process, uint64_t addr, struct src_loc loc[SYMBOLS_FRAMES]);

/* symbols/name.c */
const char *symbols_die_name(struct symbols *sym, Dwarf_Die *die); /* qualified; NULL: it has none */
const char *symbols_symbol_name(struct symbols *sym, const struct peet_symbol *s);
const char *symbols_file_name(struct symbols *sym, Dwarf_Die *unit, const char *file);
bool symbols_origin(Dwarf_Die *die, Dwarf_Die *ret); /* the declaring DIE; false: it is the DIE itself */
void symbols_tidy(char *text);                       /* without default allocators and versioned namespaces */

/* symbols/type.c */
bool symbols_die_type(Dwarf_Die *die, Dwarf_Die *ret);   /* of a variable or member, or what a type is made of */
bool symbols_type_peel(Dwarf_Die *type, Dwarf_Die *ret); /* without typedefs and qualifiers */
const char *symbols_type_text(struct symbols *sym, Dwarf_Die *type);
bool symbols_type_member(struct symbols *sym, Dwarf_Die *type, const char *name, Dwarf_Die *ret_type);
bool symbols_type_element(Dwarf_Die *type, Dwarf_Die *ret); /* of an array, pointer, or C++ container */
struct symbols_type *symbols_type_find(struct symbols *sym, const char *text); /* NULL: no type has that text */
uint64_t symbols_type_size(Dwarf_Die *type);                                   /* bytes; 0: unknown */
bool symbols_is_class(int tag);                                                /* structs and unions, too */

/* Elements of each dimension of an array, the outermost first, 0 where that is unknown: how many dimensions there are. */
enum { SYMBOLS_DIMENSIONS = 8 };
size_t symbols_dimensions(Dwarf_Die *array, uint64_t ret[SYMBOLS_DIMENSIONS]);

/* symbols/frame.c */
void symbols_frames_release(struct symbols *sym);

/* symbols/source_text.c */
/* The text of a source; NULL: it is gone, or newer than the program. */
const struct symbols_source *symbols_source(struct symbols *sym, const char *path);

/* Adds a warning (symbols_problem), each text once. */
void symbols_add_problem(struct symbols *sym, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What a statement does with the value of a call in it. */
struct symbols_target {
    char name[200];    /* "s->cells"; "": it is not assigned */
    bool returned;     /* the statement is a return, or the name is returned before the function ends */
    bool is_return;    /* the former */
    char created[200]; /* of `new T`: T */
};
void symbols_target(const struct symbols_source *s, uint32_t line, uint32_t column, struct symbols_target *ret);
/* The target of a statement that calls or declares a C++ container. */
void symbols_container(const struct symbols_source *s, uint32_t line, uint32_t column, struct symbols_target *ret);
/* The targets of Fortran's allocate(…). */
void symbols_allocate(const struct symbols_source *s, uint32_t line, uint32_t column, struct symbols_target *ret);

#endif
