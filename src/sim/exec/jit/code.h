/* SPDX-License-Identifier: MIT */
/* The generator of machine code, and what its files ask of each other. Registers: docs/design/blocks.md, "Machine code". */
#ifndef SIM_EXEC_JIT_CODE_H
#define SIM_EXEC_JIT_CODE_H

#include "sim/exec/jit/emit.h"
#include "sim/exec/exec_state.h"

enum { CODE_GROUPS = 512, CODE_SLOW_PATHS = 2 * (4 * CODE_GROUPS + LOOP_MAX_NODES) };
enum { CODE_ENTRY_BITS = 5 };
_Static_assert(sizeof(struct l1_entry) == 1 << CODE_ENTRY_BITS, "entries are addressed by shifts");

#define AT(member) ((int64_t)offsetof(struct exec_blocks, member))
#define TBLOCK_AT(member) ((int64_t)offsetof(struct tblock, member))
#define ENTRY_AT(member) ((int64_t)offsetof(struct l1_entry, member))
#define LINE_AT(member) ((int64_t)offsetof(struct exec_line, member))
#define CALLS_AT(member) ((int64_t)offsetof(struct path_thread, member))
#define CALL_AT(member) ((int64_t)offsetof(struct path_call, member))
#define PATH_AT(member) ((int64_t)offsetof(struct tb_path, member))
#define OPERAND_AT(member) ((int64_t)offsetof(struct tb_operand, member))

/* Slow-path stubs: code after an item, for what is rare in it. In all of them rdi is the translated block. */
enum slow_path_kind {
    SLOW_PATH_ENTER,      /* enters a translated block by tblock_enter */
    SLOW_PATH_ITERATIONS, /* iterations of a loop in which some bases leave their bounds */
    SLOW_PATH_BIND,       /* a base is not in its bounds: binds its operands */
    SLOW_PATH_GROUP,      /* executes a group by group_run */
    SLOW_PATH_HINT_MISS,  /* executes a group by group_run_hint_miss */
    SLOW_PATH_OLD_EPOCH,  /* rcx: the entry of the line, its first use in the epoch; rdx: address of the line */
    SLOW_PATH_FIND,       /* the line is not at rcx, or cannot be written there; rdx: address of the line */
    SLOW_PATH_MISS,       /* executes a miss, with generated code */
};
/* A slow-path stub. */
struct slow_path {
    size_t jumps;              /* displacement of the last jump to it (emit_link); 0: none */
    size_t back;               /* offset at which the item continues */
    size_t found;              /* offset at which it continues if the line of the group is in the entry at rcx */
    size_t begin;              /* offset of the stub */
    struct slow_path *instead; /* executed if this one can do nothing; NULL: none */
    struct tblock *tblock;
    const struct base_group *group;
    const struct peet_loop_node *node; /* SLOW_PATH_ITERATIONS: of the loop */
    unsigned depth;                    /* SLOW_PATH_ITERATIONS: position of the count on the stack */
    uint8_t kind;                      /* enum slow_path_kind */
    bool keeps_base;                   /* the next group has the same base */
    bool is_fast_forward;              /* gen.is_fast_forward, where it was made */
};

/* The generator, while it makes the code of an item. */
struct gen {
    struct exec_blocks *s;
    struct emit e;              /* the code of the item so far */
    bool has_misses;            /* of the run: generated code handles misses; else a call does */
    bool has_second;            /* of the run: generated code fills from the second level; else a call does */
    bool has_old_epoch;         /* of the run: generated code handles first uses in an epoch; else a call does */
    bool in_words;              /* slots are read from the event words, not from `src` */
    unsigned end;               /* in_words: the word of slot i is 1 + i, from i = `end` on 2 + i; the word between has
                                   the end address of a loop (peet_trips.end); PEET_SLOTS: of a block, which has none */
    unsigned count;             /* in_words: the slot that is in `src`: iterations of a loop; PEET_SLOTS: none */
    bool is_bound;              /* bases are known to be in their bounds */
    int64_t step[PEET_SOURCES]; /* of a loop, by source: increment per iteration; 0: constant */
    bool is_fast_forward;       /* iterations may be counted together */
    unsigned slow_paths;        /* elements of `slow_path` in use */
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

/* The memory location of an operand's source (PEET_SRC_…: slot, register, temporary): the event words or exec_blocks.src. */
struct code_source {
    unsigned base; /* register: R12, event words; RBX, struct exec_blocks */
    int64_t disp;  /* bytes from the address in `base` */
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

/* A new slow-path stub of the item. */
struct slow_path *code_slow_path(struct gen *g, enum slow_path_kind kind, struct tblock *x,
                                 const struct base_group *of);

/* Enters a translated block (code_enter.c). The second function makes the routine for blocks that end in that way: it returns after a fast entry. */
void code_enter(struct gen *g, struct tblock *x);
void code_make_enter(struct gen *g, enum path_exit how);
/* Joins the groups of a block; they are final then. */
void code_join(struct gen *g, struct tblock *x);
/* The references of a block; the same, and the count of its execution. */
void code_refer(struct gen *g, struct tblock *x);
void code_run(struct gen *g, struct tblock *x);
/* A conditional jump to a slow path. */
void code_slow_path_if(struct gen *g, struct slow_path *slow_path, enum emit_condition c);
/* Compares the base in rax with the bounds of a leader; rdx: its distance from their start. */
void code_compare_base(struct gen *g, const struct base_group *of);
void code_compare_span(struct gen *g, const struct base_group *of);
/* Loads the base of a group into rax; its increment per iteration. */
void code_load_base(struct gen *g, const struct base_group *of);
int64_t code_step(const struct gen *g, const struct base_group *of);

/* reg: address of the way hint of the line at rdx. */
void code_way_hint(struct gen *g, unsigned reg);

/* Jumps from a slow path back into the item; the second function within iterations that are counted together, where later ones may have to be repeated. */
void code_return(struct gen *g, const struct slow_path *slow_path);
void code_return_fast_forward(struct gen *g, const struct slow_path *slow_path);

/* Misses (code_miss.c), in one direct-mapped level. `slow`: offset of the code for cases that this code leaves.
 * code_find: the line may be in another way. code_old_epoch: first use of a line in the epoch.
 * code_make_first_use: rsi the line, r9 its exec_line.use; sets the flags by comparing the next use with epoch_shadow.end.
 * code_make_offset: r11 the operand, rax its base; adds the member offset to r8, and leaves in r10 miss_bucket_index before its modulo
 * FIXED_COST_BUCKETS; "not equal": not possible. */
bool code_has_misses(const struct exec_blocks *s);
void code_miss(struct gen *g, const struct slow_path *slow_path, size_t slow);
void code_find(struct gen *g, const struct slow_path *slow_path, size_t slow);
void code_old_epoch(struct gen *g, const struct slow_path *slow_path, size_t slow);
/* Counts a miss of fixed cost in its operand and its time bin: r8 the key without offset, r11 the operand, rax its base; otherwise jumps to `slow`. */
void code_count_fixed(struct gen *g, size_t slow);
void code_make_first_use(struct gen *g);
void code_make_offset(struct gen *g);

/* Fills from the second level (code_second.c): rdx address of the line, rsi the line, which the first level does not have, r11 the operand, rax its
 * base, r9 number of the group's last touch. "Not equal": nothing was done; otherwise the line is filled and counted. Keeps rax, rdx, rsi, rdi. */
bool code_has_second(const struct exec_blocks *s);
size_t code_make_second(struct gen *g, bool is_write); /* returns its offset */

/* The code of a loop (code_loops.c); iterations of a slow path. */
void code_loop(struct gen *g, const struct tb_item *it);
void code_iterations(struct gen *g, const struct slow_path *slow_path);

#endif
