/* SPDX-License-Identifier: MIT */
/* What the code_*.c make machine code with. */
#ifndef SIM_EXEC_JIT_CODE_H
#define SIM_EXEC_JIT_CODE_H

#include "sim/exec/jit/emit.h"
#include "sim/exec/exec_state.h"

enum { CODE_GROUPS = 512, CODE_DETOURS = 2 * (4 * CODE_GROUPS + LOOP_MAX_NODES) };
enum { CODE_ENTRY_BITS = 5 };
_Static_assert(sizeof(struct solo_entry) == 1 << CODE_ENTRY_BITS, "what an entry's number is shifted by");

#define AT(member) ((int64_t)offsetof(struct solo, member))
#define STRETCH_AT(member) ((int64_t)offsetof(struct solo_stretch, member))
#define ENTRY_AT(member) ((int64_t)offsetof(struct solo_entry, member))
#define LINE_AT(member) ((int64_t)offsetof(struct solo_line, member))
#define CALLS_AT(member) ((int64_t)offsetof(struct path_thread, member))
#define CALL_AT(member) ((int64_t)offsetof(struct path_call, member))
#define PATH_AT(member) ((int64_t)offsetof(struct solo_path, member))
#define SITE_AT(member) ((int64_t)offsetof(struct solo_site, member))

/* Behind an item: what does not happen often in it. */
enum detour_kind {
    DETOUR_ENTER,     /* a stretch is to be entered */
    DETOUR_TRIPS,     /* in trips of a loop, some bases do not stay in their data */
    DETOUR_LOCATE,    /* a group's base is not where it was: its data are to be looked up */
    DETOUR_GROUP,     /* a group is to be run, of which nothing is known */
    DETOUR_ELSEWHERE, /*   or which is not easy only for where its line is, */
    DETOUR_STALE,     /*   and that is at rcx, and was not used for a while; it begins at rdx */
    DETOUR_FIND,      /*   and that is not at rcx, or is to be written there; it begins at rdx; */
    DETOUR_MISS,      /*   where there is code for misses */
};
struct detour {
    size_t way;             /* the last jump here, in which the one before it is written, 0: none; */
    size_t back;            /*   and where it goes on then */
    size_t found;           /*   or, if its line was at rcx */
    size_t begin;           /* where it is, */
    struct detour *instead; /*   and one before it, if it could do nothing */
    struct solo_stretch *stretch;
    const struct solo_group *group;
    const struct peet_loop_node *node; /* of trips, */
    unsigned depth;                    /*   and where they are counted */
    uint8_t kind;                      /* enum detour_kind */
    bool keeps_base;                   /* the next group has the same */
    bool is_even;                      /* as in struct gen */
};

struct gen {
    struct solo *s;
    struct emit e;
    bool has_misses;            /* there is code for them, */
    bool has_second;            /*   or for those that the second cache has, */
    bool has_stale;             /*   and for lines that were not used for a while */
    bool in_words;              /* slots are where the words are, not among the sources; */
    unsigned end, count;        /*   of a loop: all before its `end`, which is not one of them, nor is its count */
    bool is_located;            /* bases are known to stay in their data */
    int64_t step[PEET_SOURCES]; /* how much sources grow by in each trip of a loop, */
    bool is_even;               /*   and trips are to be made together */
    unsigned detours;
    struct detour detour[CODE_DETOURS];
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
struct code_place {
    unsigned base;
    int64_t disp;
};
static inline struct code_place code_place(const struct gen *g, unsigned source)
{
    unsigned slot = source - PEET_SRC_SLOT;

    if (g->in_words && source >= PEET_SRC_SLOT && source < PEET_SRC_TEMP && slot != g->count)
        return (struct code_place){ R12, 8 * (1 + (int64_t)slot + (slot >= g->end)) };
    return (struct code_place){ RBX, AT(src) + 8 * (int64_t)source };
}

static inline void code_load(struct gen *g, unsigned reg, unsigned source)
{
    struct code_place at = code_place(g, source);

    if (source == PEET_SRC_ZERO)
        emit_constant(&g->e, reg, 0);
    else
        emit_at(&g->e, EMIT_LOAD, reg, at.base, at.disp);
}

static inline void code_store(struct gen *g, unsigned reg, unsigned source)
{
    struct code_place at = code_place(g, source);

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
struct detour *code_detour(struct gen *g, enum detour_kind kind, struct solo_stretch *x, const struct solo_group *of);

/* A stretch begins (code_enter.c): its path is known, and whose data are where. What all that are left so use: returns if that was easy, and else goes on behind. */
void code_enter(struct gen *g, struct solo_stretch *x);
void code_make_enter(struct gen *g, enum path_turn turn);
/* Behind this, its groups are what they are. */
void code_join(struct gen *g, struct solo_stretch *x);
/* Its references; and these, and that it was run. */
void code_refer(struct gen *g, struct solo_stretch *x);
void code_run(struct gen *g, struct solo_stretch *x);
/* What a jump, if that holds, leads to. */
void code_detour_if(struct gen *g, struct detour *detour, enum emit_condition c);
/* Whether the base in rax, of a group that owns it, is below where its data end; rdx: by how much it is behind where they begin. */
void code_compare_base(struct gen *g, const struct solo_group *of);
void code_compare_span(struct gen *g, const struct solo_group *of);
/* rax: the base of a group; what it grows by in a trip. */
void code_load_base(struct gen *g, const struct solo_group *of);
int64_t code_step(const struct gen *g, const struct solo_group *of);

/* reg: where it is said where the line at rdx was last, of a first cache of several ways. */
void code_guess(struct gen *g, unsigned reg);

/* Goes back to where the group was left; in trips that are made together, those behind it are to be made anew, or not. */
void code_return(struct gen *g, const struct detour *detour);
void code_return_even(struct gen *g, const struct detour *detour);

/* Misses (code_miss.c): whether there is code for them; that, with where what it cannot do is done; the same for a line that is perhaps somewhere else, and for one that was not used for a while; and what all misses
 * use: the line in rsi, whose last use is in r9, is used anew, which leaves a comparison of lines that were used with how many may be; and the offset of the site in r11, whose base is
 * in rax, is put into r8, and what solo_memo_of makes of that into r10, which leaves "not equal" if it cannot be done. */
bool code_has_misses(const struct solo *s);
void code_miss(struct gen *g, const struct detour *detour, size_t slow);
void code_find(struct gen *g, const struct detour *detour, size_t slow);
void code_stale(struct gen *g, const struct detour *detour, size_t slow);
/* Counts in a memo and in the window what is in r8, without its offset, by the site in r11, whose base is in rax; or leaves it to `slow`. */
void code_count_memo(struct gen *g, size_t slow);
void code_make_anew(struct gen *g);
void code_make_offset(struct gen *g);

/* Lines that the second cache has (code_second.c): whether there is code for them; and that. In rdx where the line begins, in rsi the line, which the first cache does not
 * have, in r11 the site, whose base is in rax, in r9 the number of the last reference. Leaves "not equal" if it cannot be done; else the line is in the first cache, and was counted
 * for the site and the window. Of registers, rax, rdx, rsi and rdi are kept. */
bool code_has_second(const struct solo *s);
size_t code_make_second(struct gen *g, bool is_write); /* where it begins */

/* An item that is a loop (code_loops.c); and trips that can be made in any way. */
void code_loop(struct gen *g, const struct solo_item *it);
void code_trips(struct gen *g, const struct detour *detour);

#endif
