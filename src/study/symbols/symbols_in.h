/* SPDX-License-Identifier: MIT */
/* What the parts of `where` share. A unit of DWARF is walked once, when somebody asks about an address in it; variables make all units of
 * their module be walked. */
#ifndef STUDY_SYMBOLS_SYMBOLS_IN_H
#define STUDY_SYMBOLS_SYMBOLS_IN_H

#include <elfutils/libdw.h>

#include "base/arena.h"
#include "base/map.h"
#include "study/symbols/symbols.h"

/* A piece of code of a function or of an inlined call; those inside stand behind those around. Addresses are those of the file. */
struct where_scope {
    uint64_t low, high;
    size_t around; /* index, or SIZE_MAX */
    uint32_t depth;
    Dwarf_Die die;
};

struct where_module;

struct where_unit {
    Dwarf_Die die;
    struct where_module *module; /* NULL: it only lends to others */
    bool walked, has_classes, is_fortran;
    struct where_scope *scope;
    size_t scopes;
};

struct where_extent {
    uint64_t low, high;
    struct where_unit *unit;
};

/* A variable with a fixed place; names and types are made when somebody asks. */
struct where_static {
    uint64_t start, size;
    Dwarf_Die die;
    struct where_variable made;
};

struct where_module {
    const struct peet_module *module;
    bool opened, listed;
    int fd;
    Dwarf *dwarf;                /* NULL: it has none */
    struct where_extent *extent; /* rising */
    size_t extents;
    struct where_unit **unit;
    size_t units;
    struct where_static *variable; /* rising */
    size_t variables;
    struct where_static *local; /* rising: of threads, by their places in the program's part */
    size_t locals;
    uint64_t local_size;
};

struct where_segment {
    uint32_t process;
    uint64_t start, end;
    struct where_module *module;
};

struct where_source {
    const char *path;
    char *text, *bare; /* bare: comments, strings and preprocessor lines are blanks */
    size_t size;
    size_t *line; /* where each begins */
    size_t lines;
};

struct where {
    const struct peet_trace *trace;
    struct arena arena;
    struct where_module **module;
    size_t modules;
    struct where_segment *segment; /* rising by process and start */
    size_t segments;
    struct map units;   /* struct where_unit *, by the address of their DIE in memory */
    struct map parents; /* Dwarf_Die, by the address of the child: the next thing around it that has a name */
    struct map names;   /* const char *, by the address of a DIE or symbol */
    struct map files;   /* const char *, by the address of what the compiler wrote */
    struct map types;   /* struct where_type, by the hash of their text */
    struct map layouts; /* struct where_layout *, by the address of the DIE of their type */
    struct map sources; /* struct where_source, by the address of their name */
    struct map texts;   /* const char *, by hash: texts that are kept once */
    void *demangler;    /* a library */
    char *(*demangle)(const char *, char *, size_t *, int *);
    bool looked_for_demangler, looked_for_problems;
    const char **problem;
    size_t problems;
};

struct where_layout;

struct where_type {
    const char *text;
    Dwarf_Die die;
};

/* An inlined call or function at an address, as DWARF knows it. */
struct where_spot {
    Dwarf_Die die;
    struct where_unit *unit;
    const char *file;
    uint32_t line, column;
};

const char *where_keep(struct where *w, const char *text); /* one copy of each text */

/* where_dwarf.c */
struct where_module *where_module_at(struct where *w, uint32_t process, uint64_t addr);
void where_module_open(struct where *w, struct where_module *m);
void where_module_list(struct where *w, struct where_module *m); /* its variables */
void where_module_release(struct where_module *m);
bool where_module_is_anew(const struct peet_module *m); /* its file is there, and another one */
void where_unit_walk(struct where *w, struct where_unit *u);
struct where_unit *where_unit_of(struct where *w, Dwarf_Die *die);

/* The frames at an address, the innermost first; 0 when DWARF does not know it. */
size_t where_spots(struct where *w, uint32_t process, uint64_t addr, struct where_spot spot[WHERE_FRAMES]);

/* where_name.c */
const char *where_die_name(struct where *w, Dwarf_Die *die); /* qualified; NULL: it has none */
const char *where_symbol_name(struct where *w, const struct peet_symbol *s);
const char *where_file_name(struct where *w, Dwarf_Die *unit, const char *file);
bool where_origin(Dwarf_Die *die, Dwarf_Die *ret); /* what declares it; false: it does itself */
void where_tidy(char *text);                       /* without default allocators and versioned namespaces */

/* where_type.c */
bool where_die_type(Dwarf_Die *die, Dwarf_Die *ret);   /* of a variable or member, or what a type is made of */
bool where_type_peel(Dwarf_Die *type, Dwarf_Die *ret); /* without typedefs and qualifiers */
const char *where_type_text(struct where *w, Dwarf_Die *type);
bool where_type_member(struct where *w, Dwarf_Die *type, const char *name, Dwarf_Die *ret_type);
bool where_type_element(Dwarf_Die *type, Dwarf_Die *ret);              /* of an array, pointer, or C++ container */
struct where_type *where_type_find(struct where *w, const char *text); /* NULL: no type has that text */
uint64_t where_type_size(Dwarf_Die *type);                             /* bytes; 0: unknown */
bool where_is_class(int tag);                                          /* structs and unions, too */

/* Elements of each dimension of an array, the outermost first, 0 where that is unknown: how many dimensions there are. */
enum { WHERE_DIMENSIONS = 8 };
size_t where_dimensions(Dwarf_Die *array, uint64_t ret[WHERE_DIMENSIONS]);

/* where_source.c */
/* NULL: it is not there, or another one than when the program was built. */
const struct where_source *where_source(struct where *w, const char *path);

/* What a reader of names must know: each text once. */
void where_add_problem(struct where *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What a statement does with what a call in it returns. */
struct where_target {
    char name[200];    /* "s->cells"; "": it is not assigned */
    bool returned;     /* the statement is a return, or the name is returned before the function ends */
    bool is_return;    /* the former */
    char created[200]; /* of `new T`: T */
};
void where_target(const struct where_source *s, uint32_t line, uint32_t column, struct where_target *ret);
/* The same, for a statement that calls or declares a C++ container. */
void where_container(const struct where_source *s, uint32_t line, uint32_t column, struct where_target *ret);
/* And for Fortran's allocate(…). */
void where_allocate(const struct where_source *s, uint32_t line, uint32_t column, struct where_target *ret);

#endif
