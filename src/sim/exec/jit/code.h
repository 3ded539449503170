/* SPDX-License-Identifier: MIT */
/* What the code_*.c make machine code with. */
#ifndef SIM_EXEC_JIT_CODE_H
#define SIM_EXEC_JIT_CODE_H

#include "sim/exec/jit/emit.h"
#include "sim/exec/exec_state.h"

enum { CODE_GROUPS = 512, CODE_SLOW_PATHS = 2 * (4 * CODE_GROUPS + LOOP_MAX_NODES) };
enum { CODE_ENTRY_BITS = 5 };
_Static_assert(sizeof(struct l1_entry) == 1 << CODE_ENTRY_BITS, "what an entry's number is shifted by");

#define AT(member) ((int64_t)offsetof(struct exec_blocks, member))
#define TBLOCK_AT(member) ((int64_t)offsetof(struct tblock, member))
#define ENTRY_AT(member) ((int64_t)offsetof(struct l1_entry, member))
#define LINE_AT(member) ((int64_t)offsetof(struct exec_line, member))
#define CALLS_AT(member) ((int64_t)offsetof(struct path_thread, member))
#define CALL_AT(member) ((int64_t)offsetof(struct path_call, member))
#define PATH_AT(member) ((int64_t)offsetof(struct tb_path, member))
#define OPERAND_AT(member) ((int64_t)offsetof(struct tb_operand, member))

/* Behind an item: what does not happen often in it. */
enum slow_path_kind {
    SLOW_PATH_ENTER,      /* a translated block is to be entered */
    SLOW_PATH_ITERATIONS, /* in iterations of a loop, some bases do not stay in their data */
    SLOW_PATH_BIND,       /* a group's base is not where it was: its data are to be looked up */
    SLOW_PATH_GROUP,      /* a group is to be run, of which nothing is known */
    SLOW_PATH_HINT_MISS,  /*   or which is not easy only for where its line is, */
    SLOW_PATH_OLD_EPOCH,  /*   and that is at rcx, and was not used for a while; it begins at rdx */
    SLOW_PATH_FIND,       /*   and that is not at rcx, or is to be written there; it begins at rdx; */
    SLOW_PATH_MISS,       /*   where there is code for misses */
};
struct slow_path {
    size_t way;                /* the last jump here, in which the one before it is written, 0: none; */
    size_t back;               /*   and where it goes on then */
    size_t found;              /*   or, if its line was at rcx */
    size_t begin;              /* where it is, */
    struct slow_path *instead; /*   and one before it, if it could do nothing */
    struct tblock *tblock;
    const struct base_group *group;
    const struct peet_loop_node *node; /* of iterations, */
    unsigned depth;                    /*   and where they are counted */
    uint8_t kind;                      /* enum detour_kind */
    bool keeps_base;                   /* the next group has the same */
    bool is_fast_forward;              /* as in struct gen */
};

struct gen {
    struct exec_blocks *s;
    struct emit e;
    bool has_misses;            /* there is code for them, */
    bool has_second;            /*   or for those that the second cache has, */
    bool has_old_epoch;         /*   and for lines that were not used for a while */
    bool in_words;              /* slots are where the words are, not among the sources; */
    unsigned end, count;        /*   of a loop: all before its `end`, which is not one of them, nor is its count */
    bool is_bound;              /* bases are known to stay in their data */
    int64_t step[PEET_SOURCES]; /* how much sources grow by in each iteration of a loop, */
    bool is_fast_forward;       /*   and iterations are to be made together */
    unsigned slow_paths;
    struct slow_path slow_path[CODE_SLOW_PATHS];
};

static inline bool code_fits(uint64_t value)
{
    return (uint64_t)(int32_t)value == value;
}

static inline bool code_is_power(uint64_t value) /* of two, or 0 */
{
    return (value & (value - 1)) == 0;
}

/* Where a source is. */
struct code_source {
    unsigned base;
    int64_t disp;
};
static inline struct code_source code_source(const struct gen *g, unsigned source)
{
    unsigned slot = source - PEET_SRC_SLOT;

    if (g->in_words && source >= PEET_SRC_SLOT && source < PEET_SRC_TEMP && slot != g->count)
        return (struct code_source){ R12, 8 * (1 + (int64_t)slot + (slot >= g->end)) };
    return (struct code_source){ RBX, AT(src) + 8 * (int64_t)source };
}

static inline void code_load(struct gen *g, unsigned reg, unsigned source)
{
    struct code_source at = code_source(g, source);

    if (source == PEET_SRC_ZERO)
        emit_constant(&g->e, reg, 0);
    else
        emit_at(&g->e, EMIT_LOAD, reg, at.base, at.disp);
}

static inline void code_store(struct gen *g, unsigned reg, unsigned source)
{
    struct code_source at = code_source(g, source);

    emit_at(&g->e, EMIT_STORE, reg, at.base, at.disp);
}

/* to = from + value */
static inline void code_sum(struct gen *g, unsigned to, unsigned from, uint64_t value)
{
    if (value == 0) {
        emit_registers(&g->e, EMIT_LOAD, to, from);
    } else if (code_fits(value)) {
        emit_at(&g->e, EMIT_LEA, to, from, (int64_t)value);
    } else {
        emit_constant(&g->e, to, value);
        emit_registers(&g->e, EMIT_ADD, to, from);
    }
}

static inline void code_call(struct gen *g, uintptr_t function)
{
    emit_constant(&g->e, RAX, function);
    emit_call_register(&g->e, RAX);
}

/* What is done behind the item. */
struct slow_path *code_slow_path(struct gen *g, enum slow_path_kind kind, struct tblock *x,
                                 const struct base_group *of);

/* A translated block begins (code_enter.c): its path is known, and whose data are where. What all that are left so use: returns if that was easy, and else goes on behind. */
void code_enter(struct gen *g, struct tblock *x);
void code_make_enter(struct gen *g, enum path_exit turn);
/* Behind this, its groups are what they are. */
void code_join(struct gen *g, struct tblock *x);
/* Its references; and these, and that it was run. */
void code_refer(struct gen *g, struct tblock *x);
void code_run(struct gen *g, struct tblock *x);
/* What a jump, if that holds, leads to. */
void code_slow_path_if(struct gen *g, struct slow_path *slow_path, enum emit_condition c);
/* Whether the base in rax, of a group that owns it, is below where its data end; rdx: by how much it is behind where they begin. */
void code_compare_base(struct gen *g, const struct base_group *of);
void code_compare_span(struct gen *g, const struct base_group *of);
/* rax: the base of a group; what it grows by in a iteration. */
void code_load_base(struct gen *g, const struct base_group *of);
int64_t code_step(const struct gen *g, const struct base_group *of);

/* reg: where it is said where the line at rdx was last, of a first cache of several ways. */
void code_way_hint(struct gen *g, unsigned reg);

/* Goes back to where the group was left; in iterations that are made together, those behind it are to be made anew, or not. */
void code_return(struct gen *g, const struct slow_path *slow_path);
void code_return_fast_forward(struct gen *g, const struct slow_path *slow_path);

/* Misses (code_miss.c): whether there is code for them; that, with where what it cannot do is done; the same for a line that is perhaps somewhere else, and for one that was not used for a while; and what all misses
 * use: the line in rsi, whose last use is in r9, is used anew, which leaves a comparison of lines that were used with how many may be; and the offset of the operand in r11, whose base is
 * in rax, is put into r8, and what miss_bucket_index makes of that into r10, which leaves "not equal" if it cannot be done. */
bool code_has_misses(const struct exec_blocks *s);
void code_miss(struct gen *g, const struct slow_path *slow_path, size_t slow);
void code_find(struct gen *g, const struct slow_path *slow_path, size_t slow);
void code_old_epoch(struct gen *g, const struct slow_path *slow_path, size_t slow);
/* Counts in a memo and in the window what is in r8, without its offset, by the operand in r11, whose base is in rax; or leaves it to `slow`. */
void code_count_fixed(struct gen *g, size_t slow);
void code_make_first_use(struct gen *g);
void code_make_offset(struct gen *g);

/* Lines that the second cache has (code_second.c): whether there is code for them; and that. In rdx where the line begins, in rsi the line, which the first cache does not
 * have, in r11 the operand, whose base is in rax, in r9 the number of the last reference. Leaves "not equal" if it cannot be done; else the line is in the first cache, and was counted
 * for the operand and the window. Of registers, rax, rdx, rsi and rdi are kept. */
bool code_has_second(const struct exec_blocks *s);
size_t code_make_second(struct gen *g, bool is_write); /* where it begins */

/* An item that is a loop (code_loops.c); and iterations that can be made in any way. */
void code_loop(struct gen *g, const struct tb_item *it);
void code_iterations(struct gen *g, const struct slow_path *slow_path);

#endif
