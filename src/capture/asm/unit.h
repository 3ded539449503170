/* SPDX-License-Identifier: MIT */
/* A compiler's assembly file on its way to an instrumented one: text (text.c), the instructions' bytes, which the real
 * assembler knows (object.c), functions and blocks (flow.c), slots (plan.c), new text (emit.c, entry.c). */
#ifndef CAPTURE_ASM_UNIT_H
#define CAPTURE_ASM_UNIT_H

#include <stdio.h>

#include "capture/asm/asm.h"
#include "capture/asm/text.h"
#include "capture/x86/path.h"

/* An instruction of an executable section. */
struct asm_insn {
    struct x86_insn x;
    uint32_t statement;
    uint32_t function; /* in which it stands, or ASM_NONE */
    uint32_t target;   /* the symbol that a direct call or jump goes to, or ASM_NONE */
    uint32_t block;    /* that records it, or ASM_NONE */
    const struct x86_node *node;
    bool is_opaque;        /* stays as it is, unrecorded: control comes and goes only at its ends */
    bool is_uninterpreted; /* part of inline assembly that is not understood */
    bool in_tls_sequence;  /* it or its like up to the next call calls a foreign function */
    bool has_frame;        /* the function still has its frame: no jump from here ends it */
    bool needs_flags;      /* it, or what comes behind it, may look at flags that were set before it */
};

/* A symbol of the type function, from its label to its .size. A cold part belongs to its function's family. */
struct asm_function {
    uint32_t symbol, end; /* end: the statement .size, or ASM_NONE */
    uint32_t family;      /* a function: itself, but for cold parts */
    bool is_cold;         /* cold part: nobody calls it */
    bool has_stub;        /* foreign code may call it */
    bool keeps_cursor;    /* with the cursor in its register; of the family's head */
    bool skips_spill;     /* all who may call it know that: the cursor need not be put down; of the family's head */
    uint32_t tail_first,
        tail_last;              /* blocks that have something behind the function; last is ASM_NONE if there are none */
    bool stack_escapes;         /* anything may lead to its stack; of the family's head */
    int64_t escape_offset;      /* if not, what does leads to %rsp plus this, or more; of the family's head */
    const char *why_unrecorded; /* it stays as it is, for this reason; of the family's head */
    const char *why_one_copy;   /* it has no other copies, for this reason; of the family's head */
    uint32_t copy_after;        /* the statement behind which they stand */
    bool has_uninterpreted;     /* inline assembly that is not understood; of the family's head */
    bool has_label_table;       /* of its labels, outside */
};

/* A row of instructions that are executed one after the other. If control comes to it from one other block only, it may go on
 * in that one's record instead of beginning its own: then that one is its parent, and what is recorded is the way from the
 * root of this tree down to the block that is left. */
struct asm_block {
    uint32_t first, count; /* instructions */
    bool is_entry;         /* a function's first */
    bool needs_sp;         /* control comes from where %rsp is not known to the trace */
    bool sp_in_register;
    bool sp_known_at_end;    /* %rsp at its end follows from %rsp at its beginning */
    bool is_indirect_target; /* control may come by an indirect jump */
    uint8_t planned;         /* enum asm_plan_state */
    uint8_t depth;           /* blocks from the root to here */
    bool is_self_loop;       /* to itself */
    uint32_t predecessors;   /* how many other blocks come here, */
    uint32_t from, other;    /*   and the last two of them */
    uint32_t parent;         /* or ASM_NONE: it is a root */
    unsigned max_slots;      /* slots of the longest way that goes through here */
    struct x86_node *node;
    const struct asm_loop *loop; /* NULL, or: of which it is one, and which is told in a few words, */
    const struct x86_pass *pass; /*   when it is left from here */
    bool is_shared;              /* it has no slots, and may be told in the records of those that go on to it */
    bool next_is_only;           /* next is the only way to go on from here */
    uint32_t shared_next,
        shared_branch; /* shared blocks that are told here if control goes on to them, by the last instruction's
                                    branch or otherwise; or ASM_NONE */
};

/* A row of blocks that goes back to its beginning. */
enum { ASM_LOOP_BLOCKS = 4 };
struct asm_loop {
    unsigned count;
    uint32_t block[ASM_LOOP_BLOCKS]; /* as control goes */
    uint32_t lowest;                 /* instruction */
    uint32_t private_words;          /* of the stack, from %rsp up, to which no pointer leads */
    struct x86_node *node;           /* the last instruction, if all are planned by themselves */
    struct x86_affine affine;
};

struct asm_unit {
    const struct asm_options *options;
    struct asm_text text;
    struct asm_insn *insn;
    struct asm_function *function;
    struct asm_block *block;
    size_t functions, blocks;
    bool has_stored_labels; /* code takes the addresses of labels, to which jumps from elsewhere may lead */
    struct x86_layout layout;
};

/* How much the code is to say; everything, unless somebody asked for less. */
static inline enum level asm_level(const struct asm_unit *u)
{
    return u->options->level ? u->options->level : LEVEL_memory;
}

/* The bytes of all instructions, by assembling a copy of the text with labels around them. */
int asm_unit_assemble(struct asm_unit *u, struct peet_err *err);

void asm_unit_find_functions(struct asm_unit *u);
void asm_unit_find_references(struct asm_unit *u);

/* Which functions have copies besides, and their text (copies.c, counting.c). Labels there have these in front of their names. */
#define ASM_ORIGINAL ".LpeetP"
#define ASM_COUNTING ".LpeetW"
void asm_unit_find_copies(struct asm_unit *u);
bool asm_has_original_copy(const struct asm_unit *u, uint32_t function);
bool asm_has_counting_copy(const struct asm_unit *u, uint32_t function); /* one that counts, too */
void asm_emit_copies(const struct asm_unit *u, uint32_t function, FILE *out);
void asm_emit_counting(const struct asm_unit *u, uint32_t function, FILE *out);

struct asm_copy {
    const struct asm_unit *u;
    const struct asm_function *f;
    const char *prefix;
    bool is_counting;
    FILE *out;
};
/* The function whose copy of the same kind a call or jump goes to, or ASM_NONE. */
uint32_t asm_copy_target(const struct asm_copy *c, const struct asm_insn *in);
void asm_copy_statement(const struct asm_copy *c, const struct asm_statement *s);

/* Whether a record begins with the block, so that control can come here from the copy that counts. */
bool asm_begins_record(const struct asm_block *b, uint32_t number);

/* Whether control leaves for a place that looks for the cursor in memory; own: the function that it certainly reaches, or ASM_NONE. */
bool asm_needs_spill(const struct asm_unit *u, const struct asm_insn *in, uint32_t own, bool *ret_for_callee);

/* Where the cursor stays in its register (returns.c): a jump's target, a function's caller. */
void asm_unit_find_returns(struct asm_unit *u);
bool asm_jumps_within_function(const struct asm_unit *u, const struct asm_insn *in); /* an indirect jump */
bool asm_keeps_cursor(const struct asm_unit *u, uint32_t function);
bool asm_skips_spill(const struct asm_unit *u, uint32_t function);

/* Where flags mean something (flags.c). */
void asm_unit_find_flags(struct asm_unit *u);

/* A thread-local variable's offset, which may come from the instruction itself in the end. */
bool asm_is_rewritten_by_linkers(const struct asm_unit *u, const struct asm_insn *in);

/* Cuts what is to be recorded into blocks. */
int asm_unit_plan(struct asm_unit *u, struct peet_err *err);

/* The instruction that is executed behind this one if it does not jump, or ASM_NONE. */
uint32_t asm_following(const struct asm_unit *u, uint32_t insn);

void asm_unit_emit(struct asm_unit *u, FILE *out);

bool asm_is_recorded(const struct asm_unit *u, uint32_t function); /* ASM_NONE: no */

/* The function of this file that a call or jump to the symbol certainly reaches, and that is instrumented; or ASM_NONE. */
uint32_t asm_local_target(const struct asm_unit *u, uint32_t symbol);

/* What an instrumented function does with the cursor; docs/design/instrumentation.md. */
void asm_emit_spill(const struct asm_unit *u, FILE *out, bool for_callee); /* for_callee: %r14 tells it, too */
void asm_emit_reload(const struct asm_unit *u, FILE *out);
/* Behind a call, where flags mean nothing; the label that it needs is of this kind. */
void asm_emit_return(const struct asm_unit *u, char kind, uint32_t insn, FILE *out);
void asm_emit_entry(const struct asm_unit *u, uint32_t function, FILE *out);
void asm_emit_stub(const struct asm_unit *u, uint32_t function, FILE *out);

/* The address of a memory operand goes to %r14. */
void asm_emit_address(const struct asm_unit *u, const struct asm_insn *in, unsigned memory, FILE *out);

/* The one behind a block in its loop; how it is left from there: not at all, by a branch, or by going on. */
enum asm_loop_exit { ASM_NO_EXIT, ASM_EXIT_BY_BRANCH, ASM_EXIT_BY_FALL_THROUGH };
uint32_t asm_loop_next(const struct asm_block *b, uint32_t number);
enum asm_loop_exit asm_loop_exit_of(const struct asm_unit *u, uint32_t number);

/* Whether the block's last instruction does not lead to the next one of its loop in the copy, where blocks stand as they did. */
bool asm_loop_has_jump(const struct asm_unit *u, uint32_t number, bool is_copy);

/* Whether the block goes on to `next` by a jump that is inserted. To `branch` it always does. */
bool asm_has_shared_jump(const struct asm_unit *u, const struct asm_block *b);

/* The entries of all blocks. */
void asm_emit_schema(const struct asm_unit *u, FILE *out);

/* A new file where temporary files go (TMPDIR); *ret_path, which ends in .s, is to be freed. NULL: an error. */
FILE *asm_temporary_file(char **ret_path, struct peet_err *err);

/* Runs a program with these arguments, looked up in PATH, and waits; its exit status, 128 + signal, or an error. */
int asm_run(char *const *argv, struct peet_err *err);

#endif
