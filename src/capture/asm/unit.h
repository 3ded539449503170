/* SPDX-License-Identifier: MIT */
/* A compiler's assembly file and its plan for instrumentation. Steps: statements (text.c), bytes of instructions
 * (object.c), functions and symbols (flow.c), copies (copies.c), functions that keep the cursor in %r15 (returns.c),
 * live flags (flags.c), blocks and slots (plan.c, loops.c, shared.c), new text (emit.c, entry.c, counting.c). See
 * docs/design/instrumentation.md. */
#ifndef CAPTURE_ASM_UNIT_H
#define CAPTURE_ASM_UNIT_H

#include <stdio.h>

#include "capture/asm/asm.h"
#include "capture/asm/text.h"
#include "capture/x86/path.h"

/* An instruction of an executable section. */
struct asm_insn {
    struct x86_insn x;
    uint32_t statement;          /* index in asm_unit.text.statement */
    uint32_t function;           /* that contains it: index in asm_unit.function; ASM_NONE: none */
    uint32_t target;             /* symbol of a direct call or jump, or ASM_NONE */
    uint32_t block;              /* that contains it: index in asm_unit.block; ASM_NONE: none */
    const struct x86_node *node; /* layout after this instruction: slots so far on the path; NULL: it is not recorded */
    bool is_opaque;              /* copied unchanged and not recorded; control enters and leaves it only at its ends */
    bool is_uninterpreted;       /* part of inline assembly that cannot be instrumented; is_opaque, too */
    /* in a sequence that ends with a call for a thread-local variable's address, which linkers rewrite as a whole */
    bool in_tls_sequence;
    bool has_frame;   /* by .cfi, the CFA is not %rsp + 8 here: an indirect jump is no tail jump */
    bool needs_flags; /* this instruction or a later one may read flags that were set before it */
};

/* A symbol of type function, from its label to its .size. "name.cold" is the cold part of "name" and belongs to its
 * family. Fields marked (head) are valid in the family's head only. */
struct asm_function {
    uint32_t symbol, end;           /* end: statement of .size, or ASM_NONE */
    uint32_t family;                /* the head: the function itself, or the one of which it is the cold part */
    bool is_cold;                   /* a cold part, to which no call leads */
    bool has_stub;                  /* uninstrumented code may call it */
    bool keeps_cursor;              /* (head) it returns with the cursor in %r15 */
    bool skips_spill;               /* (head) all callers rely on keeps_cursor, so that ret does not store the cursor */
    uint32_t tail_first, tail_last; /* first and last block with code after the function; tail_last is ASM_NONE: none */
    bool stack_escapes;             /* (head) any pointer may lead to its stack frame */
    int64_t escape_offset;          /* (head) if not stack_escapes: pointers lead to %rsp plus this offset, or higher */
    const char *why_unrecorded;     /* (head) why it is not instrumented; NULL: it is */
    const char *why_one_copy;       /* (head) why it has the instrumented copy only; NULL: it has an original copy */
    uint32_t copy_after;            /* statement after which the copies are placed */
    /* (head) has uninterpreted inline assembly or a table of its labels; it gets no counting copy */
    bool has_uninterpreted;
    bool has_label_table; /* data outside lists its labels */
};

/* A basic block: instructions that are executed one after the other. If control enters it from one other block only, it
 * may extend that block's record, and that block is its parent. A record stands for the path from a root to the block
 * that is left. */
struct asm_block {
    uint32_t first, count; /* instructions */
    bool is_entry;         /* a function begins with it */
    /* control enters from where the trace does not have %rsp: entries, after calls, landing pads */
    bool needs_sp;
    bool sp_in_register;     /* its record takes %rsp from a register of the trace */
    bool sp_known_at_end;    /* %rsp at its end follows from %rsp at its beginning */
    bool is_indirect_target; /* an indirect jump may lead to it */
    uint8_t planned;         /* enum asm_plan_state */
    uint8_t depth;           /* blocks before it on the path from the root */
    bool is_self_loop;       /* its branch leads to its beginning */
    uint32_t predecessors;   /* edges from other blocks */
    uint32_t from, other;    /* blocks at the last two of these edges, or ASM_NONE */
    uint32_t parent;         /* block whose record it extends; ASM_NONE: it is a root */
    unsigned max_slots;      /* slots of the longest record that goes through it */
    struct x86_node *node;
    const struct asm_loop *loop; /* recorded loop to which it belongs, or NULL */
    const struct x86_pass *pass; /* the loop as it is left after this block, or NULL */
    bool is_shared;              /* it has no slots and may be recorded by its predecessors (shared.c) */
    bool next_is_only;           /* shared_next is the only successor */
    /* shared successors that this block's record includes: by fall-through or jump, and by branch; or ASM_NONE */
    uint32_t shared_next, shared_branch;
};

/* A sequence of blocks that returns to its beginning, and is recorded with a trip count. */
enum { ASM_LOOP_BLOCKS = 4 };
/* A loop that is one record: its iterations follow from their number. */
struct asm_loop {
    unsigned count;                  /* elements of `block` in use */
    uint32_t block[ASM_LOOP_BLOCKS]; /* in the order of control */
    uint32_t lowest;                 /* lowest of its blocks' first instructions */
    uint32_t private_words;          /* words of the stack, from %rsp up, to which no pointer leads */
    struct x86_node *node;           /* its last instruction, planned without what precedes the loop */
    struct x86_affine affine;
};

/* An assembly file. */
struct asm_unit {
    const struct asm_options *options;
    struct asm_text text;
    struct asm_insn *insn;
    struct asm_function *function;
    struct asm_block *block;
    size_t functions, blocks;
    /* code takes addresses of labels, so that an indirect jump may come from another function */
    bool has_stored_labels;
    struct x86_layout layout;
};

/* Level of the recording; LEVEL_memory unless the options say otherwise. */
static inline enum level asm_level(const struct asm_unit *u)
{
    return u->options->level ? u->options->level : LEVEL_memory;
}

/* Local labels that the assembler adds: ".Lpeet", these letters, and the number of an instruction, block, function or symbol.
 * X(name, letters, place). Original and counting copies add ASM_ORIGINAL and ASM_COUNTING to the program's labels instead. */
/* clang-format off */
#define ASM_LABELS(X) \
    X(INSN, "I", "instrumented copy: an instruction of the program") \
    X(ROOT, "H", "instrumented copy: a root block, before its inserted code; the counting copy crosses to it") \
    X(AFTER_CALL, "A", "instrumented copy: after a call and the reload of the cursor; the counting copy crosses to it") \
    X(RELOADED, "R", "instrumented copy: after the reload of the cursor that follows a call") \
    X(BODY, "B", "a function's body, after the test at its entry") \
    X(STUB, "F", "a function's stub for uninstrumented callers") \
    X(STUB_LIBRARY, "G", "the same stub, where the test has changed %r14") \
    X(STUB_CALL, "O", "in a stub: the call of the instrumented copy") \
    X(STUB_RETURN, "_", "in a stub: after the call") \
    X(LOOP_COPY, "C", "an instruction in a loop's copy, which runs all iterations but the first") \
    X(LOOP_EXIT, "X", "code at a loop's exit, which writes the counting register") \
    X(LOOP_JUMP, "J", "inserted jump at the end of a loop's first iteration") \
    X(LOOP_COPY_JUMP, "Q", "inserted jump in a loop's copy") \
    X(LOOP_EXIT_JUMP, "Z", "inserted jump from a loop's exit to where its branch leads") \
    X(SHARED, "K", "a shared block, after the code that writes a record of its own") \
    X(SHARED_BRANCH, "V", "code between a branch and the shared block to which it leads; writes the key for both") \
    X(NEXT_JUMP, "N", "inserted jump to the shared block that follows") \
    X(BRANCH_JUMP, "M", "inserted jump to the shared block to which a branch leads") \
    X(COUNTING_ROOT, "L", "counting copy: a root block") \
    X(COUNTING_RELOADED, "U", "counting copy: after the reload of the counter that follows a call") \
    X(CROSS_ROOT, "Y", "counting copy: crossing at a root block") \
    X(CROSS_CALL, "D", "counting copy: crossing after a call") \
    X(CROSS_LANDING_PAD, "E", "counting copy: crossing at a landing pad") \
    X(ENTRY, "S", "schema: entry of a block, loop or loop exit") \
    X(ENTRY_NEXT, "TN", "schema: entry of the shared block that follows, as part of this block's record") \
    X(ENTRY_BRANCH, "TM", "schema: entry of the shared block to which the branch leads, as part of this block's record")
/* clang-format on */
enum asm_label {
#define X(name, letters, place) LABEL_##name,
    ASM_LABELS(X)
#undef X
};
extern const char *const asm_label_text[]; /* ".LpeetI", … */

/* Decodes all instructions, by assembling a copy of the text with labels around them. */
int asm_unit_assemble(struct asm_unit *u, struct peet_err *err);

void asm_unit_find_functions(struct asm_unit *u);
void asm_unit_find_references(struct asm_unit *u);

/* Copies of functions (copies.c, counting.c), and the prefixes of the labels in them. */
#define ASM_ORIGINAL ".LpeetP"
#define ASM_COUNTING ".LpeetW"
void asm_unit_find_copies(struct asm_unit *u);
bool asm_has_original_copy(const struct asm_unit *u, uint32_t function);
bool asm_has_counting_copy(const struct asm_unit *u, uint32_t function);
void asm_emit_copies(const struct asm_unit *u, uint32_t function, FILE *out);
void asm_emit_counting(const struct asm_unit *u, uint32_t function, FILE *out);

/* A further copy of a function, as it is written. */
struct asm_copy {
    const struct asm_unit *u;
    const struct asm_function *f;
    const char *prefix;
    bool is_counting;
    FILE *out;
};
/* The function whose copy of the same kind a call or jump leads to, or ASM_NONE. */
uint32_t asm_copy_target(const struct asm_copy *c, const struct asm_insn *in);
void asm_copy_statement(const struct asm_copy *c, const struct asm_statement *s);

/* Whether the block begins a record, so that the counting copy can cross to it. */
bool asm_begins_record(const struct asm_block *b, uint32_t number);

/* Whether the instruction may lead to code that loads the cursor from memory. own: the instrumented function that it
 * certainly reaches, or ASM_NONE. *ret_for_callee: %r14 has to hold the cursor, too. */
bool asm_needs_spill(const struct asm_unit *u, const struct asm_insn *in, uint32_t own, bool *ret_for_callee);

/* Where the cursor stays in %r15 (returns.c). */
void asm_unit_find_returns(struct asm_unit *u);
bool asm_jumps_within_function(const struct asm_unit *u, const struct asm_insn *in); /* of an indirect jump */
bool asm_keeps_cursor(const struct asm_unit *u, uint32_t function);
bool asm_skips_spill(const struct asm_unit *u, uint32_t function);

/* Sets needs_flags of all instructions (flags.c). */
void asm_unit_find_flags(struct asm_unit *u);

/* Whether it loads the offset of a thread-local variable. Linkers may replace the load by an immediate. */
bool asm_is_rewritten_by_linkers(const struct asm_unit *u, const struct asm_insn *in);

/* Divides recorded instructions into blocks, and plans their slots. */
int asm_unit_plan(struct asm_unit *u, struct peet_err *err);

/* The instruction that is executed next if this one does not jump, or ASM_NONE. */
uint32_t asm_following(const struct asm_unit *u, uint32_t insn);

void asm_unit_emit(struct asm_unit *u, FILE *out);

bool asm_is_recorded(const struct asm_unit *u, uint32_t function); /* false for ASM_NONE */

/* The instrumented function of this file that a call or jump to the symbol certainly reaches, or ASM_NONE. */
uint32_t asm_local_target(const struct asm_unit *u, uint32_t symbol);

/* Code that moves the cursor between %r15 and peet_rt_cursor (docs/design/instrumentation.md). */
void asm_emit_spill(const struct asm_unit *u, FILE *out, bool for_callee); /* for_callee: also to %r14 */
void asm_emit_reload(const struct asm_unit *u, FILE *out);
/* After a call, where no flags are live: loads the cursor if it has changed. Defines the label of this kind and
 * number. */
void asm_emit_return(const struct asm_unit *u, enum asm_label label, uint32_t insn, FILE *out);
void asm_emit_entry(const struct asm_unit *u, uint32_t function, FILE *out);
void asm_emit_stub(const struct asm_unit *u, uint32_t function, FILE *out);

/* Code that puts the address of a memory operand into %r14. */
void asm_emit_address(const struct asm_unit *u, const struct asm_insn *in, unsigned memory, FILE *out);

/* Calls of the runtime before an instruction whose accesses other threads may see, or a fence (hooks.c). */
void asm_emit_hooks(const struct asm_unit *u, const struct asm_insn *in, FILE *out);

/* How control leaves the loop after a block, and the next block of the loop. */
enum asm_loop_exit { ASM_NO_EXIT, ASM_EXIT_BY_BRANCH, ASM_EXIT_BY_FALL_THROUGH };
uint32_t asm_loop_next(const struct asm_block *b, uint32_t number);
enum asm_loop_exit asm_loop_exit_of(const struct asm_unit *u, uint32_t number);

/* Whether a jump is inserted after the block's last instruction: in the loop's copy, or in its first iteration. */
bool asm_loop_has_jump(const struct asm_unit *u, uint32_t number, bool is_copy);

/* Whether a jump to shared_next is inserted. To shared_branch there always is one. */
bool asm_has_shared_jump(const struct asm_unit *u, const struct asm_block *b);

/* Schema entries of all blocks. */
void asm_emit_schema(const struct asm_unit *u, FILE *out);

/* Makes a file in TMPDIR whose name ends in .s. *ret_path is to be freed. NULL: an error. */
FILE *asm_temporary_file(char **ret_path, struct peet_err *err);

/* Runs a program, looked up in PATH, and waits. Returns its exit status, 128 + its signal, or an error. */
int asm_run(char *const *argv, struct peet_err *err);

#endif
