/* SPDX-License-Identifier: MIT */
/* What the authors of programs call things: this test asks about itself, through a trace that has it as a module; and how statements are
 * read that allocate. */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "study/symbols/symbols_in.h"

struct cell {
    double position[3];
    struct cell *next;
    union {
        int small;
        char text[16];
    } tag;
};

static double grid[16][32];
static struct cell cells[10];
static struct flags {
    char kind;
    unsigned a : 3, b : 5, c : 16; /* in the unit of kind */
    unsigned d : 20, e : 12;
    unsigned f : 4;
    char text[3];
    long g : 40;
} flags;
static int h256[256], h65536[65536];
static char h255[255];
static short deep[3][200];
static __thread int own;

struct world {
    struct cell *cells;
    double **rows;
};

/* ---- a trace with this program in it ---- */

static char trace_path[] = "/tmp/peet-where-XXXXXX", program[4096], build_id[129];
static struct peet_trace *trace;
static struct symbols *where;
static uint64_t bias;
static struct peet_segment segment[16];
static uint32_t segments;

static int look(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    (void)context;
    bias = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        const char *at = (const char *)(bias + p->p_vaddr);
        if (p->p_type == PT_LOAD && segments < 16)
            segment[segments++] = (struct peet_segment){ bias + p->p_vaddr, p->p_memsz, p->p_offset, p->p_flags };
        for (size_t k = 0; p->p_type == PT_NOTE && k + sizeof(ElfW(Nhdr)) < p->p_memsz;) {
            const ElfW(Nhdr) *n = (const void *)(at + k);
            const unsigned char *bytes = (const unsigned char *)(n + 1) + (n->n_namesz + 3) / 4 * 4;
            for (unsigned b = 0; n->n_type == NT_GNU_BUILD_ID && b < n->n_descsz && b < 64; b++)
                snprintf(build_id + 2 * (size_t)b, 3, "%02x", bytes[b]);
            k += sizeof *n + (n->n_namesz + 3) / 4 * 4 + (n->n_descsz + 3) / 4 * 4;
        }
    }
    return 1; /* the first is the program */
}

static void make_trace(const char *id)
{
    struct peet_writer *w;
    struct peet_err err;
    struct peet_symbol symbol = { segment[0].start, 16, "_ZN3sim4Grid4stepEi", 1 };
    struct peet_module module = { 1, program, id, bias, segments, 1, segment, &symbol };

    if (peet_writer_open(trace_path, NULL, &w, &err) < 0)
        abort();
    (void)peet_writer_process(w, &(struct peet_process){ 1, 0, program, program }, &err);
    (void)peet_writer_module(w, &module, &err);
    if (peet_writer_close(w, &err) < 0 || peet_trace_open(trace_path, &trace, &err) < 0
        || symbols_open(trace, &where, &err) < 0)
        abort();
}

static void drop_trace(void)
{
    symbols_free(where);
    peet_trace_free(trace);
}

/* ---- places ---- */

static uint64_t here(void) __attribute__((noinline));
static uint64_t here(void)
{
    return (uint64_t)(uintptr_t)__builtin_return_address(0) - 1;
}

static inline __attribute__((always_inline)) uint64_t inlined(void)
{
    return here() + 0 * (uint64_t)own;
}

static __attribute__((noinline)) uint64_t with_inlined(uint32_t *ret_line)
{
    *ret_line = __LINE__ + 1;
    uint64_t v = inlined();
    own++;
    return v;
}

static void instructions_have_their_inlined_frames(void)
{
    struct symbols_frame f[SYMBOLS_FRAMES];
    uint32_t line;
    uint64_t at = with_inlined(&line);

    if (!CHECK_EQ(symbols_code(where, 1, at, f), 2))
        return;
    CHECK_EQ(f[0].function, "inlined");
    CHECK_EQ(f[1].function, "with_inlined");
    CHECK_EQ(f[1].line, line);
    CHECK(f[0].file && f[0].file[0] == '/' && strstr(f[0].file, "tests/unit/test_where.c"));
    CHECK_EQ(symbols_code(where, 1, 1, f), 1);
    CHECK_EQ(f[0].function, "?");
}

/* Differences between compilers: clang's DWARF names the function around a static variable only with sanitizers. */
#ifdef __clang__
#define SHORT "short"
enum { SHORT_NAME_OF_STATIC = 1 };
#else
#define SHORT "short int"
enum { SHORT_NAME_OF_STATIC = 0 };
#endif

static void variables_have_their_types_and_members(void)
{
    static int counter;
    struct symbols_variable v;
    char text[100];

    counter += (int)grid[0][0] + (int)sizeof cells;
    if (CHECK(symbols_variable(where, 1, (uint64_t)(uintptr_t)&grid[3][4], &v))) {
        CHECK_EQ(v.name, "grid");
        CHECK_EQ(v.type, "double [16][32]");
        CHECK_EQ(v.start, (uint64_t)(uintptr_t)grid);
        CHECK_EQ(v.size, sizeof grid);
        CHECK(symbols_member(where, v.type, (3 * 32 + 4) * sizeof(double), false, text, sizeof text));
        CHECK_EQ((const char *)text, "[3][4]");
    }
    if (CHECK(symbols_variable(where, 1, (uint64_t)(uintptr_t)&cells[2].next, &v))) {
        CHECK_EQ(v.type, "struct cell [10]");
        CHECK(symbols_member(where, v.type, sizeof(struct cell) * 2 + 16, true, text, sizeof text));
        CHECK_EQ((const char *)text, "[].position[]");
        CHECK(symbols_member(where, v.type, sizeof(struct cell) * 2 + 24, false, text, sizeof text));
        CHECK_EQ((const char *)text, "[2].next");
        CHECK(symbols_member(where, v.type, 32 + 8, false, text, sizeof text));
        CHECK_EQ((const char *)text, "[0].tag.text[8]");
    }
    if (CHECK(symbols_variable(where, 1, (uint64_t)(uintptr_t)&counter, &v)))
        CHECK_EQ(v.name, SHORT_NAME_OF_STATIC && !strchr(v.name, ':')
                             ? "counter"
                             : "variables_have_their_types_and_members::counter");
    CHECK(!symbols_member(where, "struct nowhere", 0, true, text, sizeof text));
}

static void check_bounds(const void *at, size_t size, const char *type)
{
    struct symbols_variable v;

    if (!CHECK(symbols_variable(where, 1, (uint64_t)(uintptr_t)at, &v)))
        return;
    CHECK_EQ(v.type, type);
    CHECK_EQ(v.size, size);
    CHECK_EQ(symbols_size(where, v.type), size);
}

static void arrays_have_their_bounds_however_long(void)
{
    char text[100];

    check_bounds(h256, sizeof h256, "int [256]");
    check_bounds(h255, sizeof h255, "char [255]");
    check_bounds(h65536, sizeof h65536, "int [65536]");
    check_bounds(deep, sizeof deep, SHORT " [3][200]");
    CHECK(symbols_member(where, SHORT " [3][200]", 2 * (2 * 200 + 150), false, text, sizeof text));
    CHECK_EQ((const char *)text, "[2][150]");
}

static void bit_fields_of_a_unit_are_not_told_apart(void)
{
    /* Of a byte, all names there or after it in the unit are accepted. */
    static const char *const WANT[] = { "kind", "a…c", "c", "c", "d…e", "d…e", "d…e", "e", "f", "text[0]", "text[1]" };
    struct symbols_variable v;
    char text[100];

    flags.kind++;
    if (!CHECK(symbols_variable(where, 1, (uint64_t)(uintptr_t)&flags, &v)))
        return;
    for (unsigned i = 0; i < sizeof WANT / sizeof *WANT; i++) {
        CHECK(symbols_member(where, v.type, i, false, text, sizeof text));
        CHECK_EQ((const char *)text, WANT[i]);
    }
    CHECK(symbols_member(where, v.type, sizeof flags - 8, false, text, sizeof text));
    CHECK_EQ((const char *)text, "g");
}

/* Of a variable, from an offset on. */
static void check_marks(const void *variable, uint64_t from, uint64_t bytes)
{
    char one[100], other[100];
    struct symbols_variable v;

    if (!CHECK(symbols_variable(where, 1, (uint64_t)(uintptr_t)variable, &v)))
        return;
    const char *type = v.type;
    for (uint64_t i = from; i < from + bytes; i++)
        for (uint64_t k = from; k <= i; k++) {
            CHECK(symbols_member(where, type, i, true, one, sizeof one));
            CHECK(symbols_member(where, type, k, true, other, sizeof other));
            bool is_same = symbols_member_hash(where, type, i) == symbols_member_hash(where, type, k);
            if (is_same != (strcmp(one, other) == 0))
                printf("# %s: bytes %d and %d, %s and %s\n", type, (int)i, (int)k, one, other);
            CHECK_EQ(is_same, strcmp(one, other) == 0);
        }
}

static void offsets_have_the_same_mark_where_they_have_the_same_text(void)
{
    check_marks(cells, 0, 2 * sizeof(struct cell));
    check_marks(cells, sizeof cells - 8, 16); /* a block of several such arrays */
    check_marks(&flags, 0, sizeof flags);
    check_marks(deep, 0, 20);
    CHECK_EQ(symbols_member_hash(where, "struct nowhere", 0), 0);
}

static uint64_t walks; /* of children of entries in the debugging information */

int dwarf_child(Dwarf_Die *die, Dwarf_Die *ret)
{
    static int (*real)(Dwarf_Die *, Dwarf_Die *);

    walks++;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "dwarf_child");
    return real(die, ret);
}

static void debugging_information_is_read_once_for_each_type(void)
{
    char text[100];

    CHECK(symbols_member(where, "struct cell [10]", 0, true, text, sizeof text));
    CHECK(symbols_member(where, "struct cell [10]", 32, true, text, sizeof text));
    uint64_t before = walks;
    CHECK(before > 0);
    for (uint64_t i = 0; i < sizeof cells; i++)
        CHECK(symbols_member(where, "struct cell [10]", i, false, text, sizeof text));
    CHECK_EQ(walks, before);
}

/* ---- allocating calls ---- */

static __attribute__((noinline)) void *take(uint64_t *ret)
{
    void *volatile memory = cells; /* what is returned is not known where it is called */

    *ret = (uint64_t)(uintptr_t)__builtin_return_address(0) - 1;
    return memory;
}

static void check_allocated(uint64_t call, const char *name, const char *type, bool handed_on)
{
    struct symbols_allocation a;

    if (!CHECK(symbols_allocation(where, 1, call, NULL, &a)))
        return;
    CHECK_EQ(a.name, name);
    CHECK_EQ(a.type, type);
    CHECK_EQ(a.handed_on, handed_on);
}

static __attribute__((noinline)) void *wrapper(uint64_t *call)
{
    void *p = take(call);

    if (!p)
        abort();
    return p;
}

static inline __attribute__((always_inline)) void *inlined_wrapper(uint64_t *call)
{
    return take(call);
}

static void allocating_calls_have_the_names_that_they_are_assigned_to(void)
{
    static struct world world;
    struct world *w = &world;
    uint64_t a, b, c, d, e;

    w->cells = take(&a);
    world.rows = take(&b);
    double *first = take(&c), **second = take(&d);
    struct cell *list = inlined_wrapper(&e);
    own += first && second && list;
    check_allocated(a, "w->cells", "struct cell", false);
    check_allocated(b, "world.rows", "double *", false);
    check_allocated(c, "first", "double", false);
    check_allocated(d, "second", "double *", false);
    check_allocated(e, "list", "struct cell", false);
    own += wrapper(&a) != NULL;
    check_allocated(a, "p", NULL, true);
}

/* ---- statements ---- */

static const struct {
    const char *text; /* the call is at the @ */
    const char *name, *created;
    bool is_return, returned;
} STATEMENTS[] = {
    { "s->cells = @malloc(n);", "s->cells", "", false, false },
    { "if (!(table [ i ] = (int *)@malloc(n)))", "table[i]", "", false, false },
    { "{ if (a == b) ; int x = 3, *p = @malloc(n);", "p", "", false, false },
    { "*out = @malloc(n);", "*out", "", false, false },
    { "char *text = @malloc(n); use(text); return text; }", "text", "", false, true },
    { "return @malloc(n);", "", "", true, true },
    { "use(@malloc(n));", "", "", false, false },
    { "x = 1; use(@malloc(n));", "", "", false, false },
    { "list = @new Node(1);", "list", "Node", false, false },
    { "list.push_back(@new sim::Node<int>(1));", "", "sim::Node<int>", false, false },
    { "Node *n = new Node{ 1, { 2 } @};", "n", "Node", false, false },
    { "this->weights_ = @new double[n];", "weights_", "double", false, false },
    { "*grid = (struct grid){ .size = 3, .at = @malloc(n) };", "grid->at", "", false, false },
    { "struct grid g = { .at = @malloc(n) };", "g.at", "", false, false },
    { "window_of(a, (int)b)->at = @malloc(n);", "window_of(…)->at", "", false, false },
    { "p = /* q = \"}\" */ @malloc(n);", "p", "", false, false },
    { "p = n > 0 ? @malloc(n) : NULL;", "p", "", false, false },
    { "r = @posix_memalign(&s->data, 64, n);", "s->data", "", false, false },
};

static const struct {
    const char *text, *name;
} CONTAINERS[] = {
    { "std::vector<double> field@(n);", "field" },       { "for (;;) { keys.push_back@(i); other(); }", "keys" },
    { "world->names.emplace@(i, j);", "world->names" },  { "names[i@] = \"text\";", "names" },
    { "Grid(int n) : a_(1), @cells_(n) { }", "cells_" }, { "auto one = std::make_unique<Node>@();", "one" },
};

static const struct symbols_source *source_of(const char *text, uint32_t *ret_column)
{
    static char name[] = "/tmp/peet-where-XXXXXX";
    static unsigned number;
    char path[64];
    const char *at = strchr(text, '@');

    if (number++ == 0)
        close(mkstemp(name));
    snprintf(path, sizeof path, "%s.%u.cc", name, number);
    FILE *f = fopen(path, "we");
    if (!f)
        abort();
    fprintf(f, "%.*s%s\n}\n", (int)(at - text), text, at + 1);
    fclose(f);
    utimensat(AT_FDCWD, path, (struct timespec[2]){ { 0 } }, 0); /* older than this program, as its sources are */
    *ret_column = (uint32_t)(at - text) + 1;
    const struct symbols_source *s = symbols_source(where, symbols_keep(where, path));
    unlink(path);
    unlink(name);
    return s;
}

static void statements_tell_what_they_assign_to(void)
{
    struct symbols_target t;
    uint32_t column;

    for (size_t i = 0; i < sizeof STATEMENTS / sizeof *STATEMENTS; i++) {
        const struct symbols_source *s = source_of(STATEMENTS[i].text, &column);
        if (!CHECK(s))
            return;
        symbols_target(s, 1, column, &t);
        CHECK_EQ((const char *)t.name, STATEMENTS[i].name);
        CHECK_EQ((const char *)t.created, STATEMENTS[i].created);
        CHECK_EQ(t.is_return, STATEMENTS[i].is_return);
        CHECK_EQ(t.returned, STATEMENTS[i].returned);
    }
    for (size_t i = 0; i < sizeof CONTAINERS / sizeof *CONTAINERS; i++) {
        const struct symbols_source *s = source_of(CONTAINERS[i].text, &column);
        symbols_container(s, 1, column, &t);
        CHECK_EQ((const char *)t.name, CONTAINERS[i].name);
    }
}

static void fortran_statements_tell_what_they_allocate(void)
{
    static const struct {
        const char *text, *name; /* @ is where the call is said to be */
    } ALLOCATED[] = {
        { "  ALLOCATE(grid(n,m), s%list(2 * f(n)), stat=i)@", "grid, s%list" },
        { "  @allocate(grid(n,m)); allocate(list(n))", "grid" },
        { "  allocate(grid(n,m))@; allocate(list(n)); allocate(work(n))", "grid" },
        { "  allocate(grid(n,m)); allocate(list(n))@; allocate(work(n))", "list" },
        { "  allocate(grid(n,m)) ; allocate (list(n)) @; allocate(work(n))", "list" },
        { "  allocate(grid(n,m)); allocate(list(n), stat=i@)", "list" },
        { "  deallocate(grid); allocate(list(n))@", "list" },
        { "  allocate(grid(n), &\n    list(n))@; allocate(work(n))", "grid, list" },
        { "  @if (n > 3) allocate(grid(n))", "grid" },
        { "  allocate(grid(n)); list = [1, 2, 3]@", "" },
        { "  allocate(grid(n))\n  list = [1, 2, 3]@", "" },
    };

    for (size_t i = 0; i < sizeof ALLOCATED / sizeof *ALLOCATED; i++) {
        const char *break_at = strchr(ALLOCATED[i].text, '\n');
        struct symbols_target t;
        uint32_t column;
        const struct symbols_source *s = source_of(ALLOCATED[i].text, &column);
        column -= break_at ? (uint32_t)(break_at - ALLOCATED[i].text) + 1 : 0;
        symbols_allocate(s, break_at ? 2 : 1, column, &t);
        CHECK_EQ((const char *)t.name, ALLOCATED[i].name);
    }
    struct symbols_target t;
    uint32_t unused;
    symbols_allocate(source_of("  allocate(grid(n)); allocate(list(n))@", &unused), 1, 0, &t);
    CHECK_EQ((const char *)t.name, "grid"); /* the column is unknown: the first one */
}

static void cpp_symbols_are_readable(void)
{
    struct symbols_frame f[SYMBOLS_FRAMES];

    CHECK_EQ(symbols_code(where, 1, segment[0].start + 1, f), 1);
    CHECK(strcmp(f[0].function, "sim::Grid::step") == 0 || strcmp(f[0].function, "_ZN3sim4Grid4stepEi") == 0);
}

static void a_program_that_was_built_anew_is_not_believed(void)
{
    struct symbols_variable v;
    struct symbols_frame f[SYMBOLS_FRAMES];

    drop_trace();
    make_trace("0123456789");
    CHECK(!symbols_variable(where, 1, (uint64_t)(uintptr_t)grid, &v));
    CHECK_EQ(symbols_code(where, 1, here(), f), 1);
    CHECK_EQ(f[0].file, NULL);
}

int main(void)
{
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);

    if (n <= 0)
        return 1;
    close(mkstemp(trace_path));
    dl_iterate_phdr(look, NULL);
    make_trace(build_id);
    RUN(instructions_have_their_inlined_frames);
    RUN(variables_have_their_types_and_members);
    RUN(arrays_have_their_bounds_however_long);
    RUN(bit_fields_of_a_unit_are_not_told_apart);
    RUN(offsets_have_the_same_mark_where_they_have_the_same_text);
    RUN(debugging_information_is_read_once_for_each_type);
    RUN(allocating_calls_have_the_names_that_they_are_assigned_to);
    RUN(statements_tell_what_they_assign_to);
    RUN(fortran_statements_tell_what_they_allocate);
    RUN(cpp_symbols_are_readable);
    RUN(a_program_that_was_built_anew_is_not_believed);
    drop_trace();
    unlink(trace_path);
    return check_done();
}
