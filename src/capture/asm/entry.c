/* SPDX-License-Identifier: MIT */
/* Code at the border of instrumented code (docs/design/instrumentation.md), and the schema section. */
#include "capture/asm/unit.h"
#include "capture/protocol/schema_section.h"

#define CURSOR "%fs:peet_rt_cursor@tpoff"
#define CURSOR_OFFSET "peet_rt_cursor@gottpoff(%rip)"

void asm_emit_spill(const struct asm_unit *u, FILE *out, bool for_callee)
{
    if (u->options->model == ASM_LIBRARY)
        fputs("\tmovq\t" CURSOR_OFFSET ", %r14\n\tmovq\t%r15, %fs:(%r14)\n", out);
    else
        fputs("\tmovq\t%r15, " CURSOR "\n", out);
    if (for_callee)
        fputs("\tmovq\t%r15, %r14\n", out);
}

void asm_emit_reload(const struct asm_unit *u, FILE *out)
{
    if (u->options->model == ASM_LIBRARY)
        fputs("\tmovq\t" CURSOR_OFFSET ", %r15\n\tmovq\t%fs:(%r15), %r15\n", out);
    else
        fputs("\tmovq\t" CURSOR ", %r15\n", out);
}

/* Most calls leave the cursor in %r15 or unchanged in memory: a comparison and a branch avoid the wait for the load. */
void asm_emit_return(const struct asm_unit *u, enum asm_label label, uint32_t insn, FILE *out)
{
    const char *at = u->options->model == ASM_LIBRARY ? "%fs:(%r14)" : CURSOR;

    if (u->options->model == ASM_LIBRARY)
        fputs("\tmovq\t" CURSOR_OFFSET ", %r14\n", out);
    fprintf(out, "\tcmpq\t%s, %%r15\n\tje\t%s%u\n\tmovq\t%s, %%r15\n%s%u:\n", at, asm_label_text[label], insn, at,
            asm_label_text[label], insn);
}

/* While peet_rt_on is 0 the original copy runs, which preserves all callee-saved registers. */
static void emit_recording_test(const struct asm_unit *u, uint32_t function, FILE *out)
{
    const struct asm_symbol *y = &u->text.symbol[u->function[function].symbol];

    if (u->options->model == ASM_LIBRARY)
        fputs("\tmovq\t%r14, -8(%rsp)\n"
              "\tmovq\tpeet_rt_on@GOTPCREL(%rip), %r14\n"
              "\tcmpb\t$0, (%r14)\n"
              "\tmovq\t-8(%rsp), %r14\n",
              out);
    else
        fputs("\tcmpb\t$0, peet_rt_on(%rip)\n", out);
    fprintf(out, "\tje\t" ASM_ORIGINAL "%.*s\n", (int)y->length, y->name);
}

void asm_emit_entry(const struct asm_unit *u, uint32_t function, FILE *out)
{
    const struct asm_symbol *y = &u->text.symbol[u->function[function].symbol];

    if (u->function[function].has_label_table && asm_has_original_copy(u, function))
        emit_recording_test(u, function, out);
    if (u->function[function].has_stub) {
        fprintf(out, "\tcmpq\t%%r14, %%r15\n\tjne\t%s%u\n", asm_label_text[LABEL_STUB], function);
        if (u->options->model == ASM_LIBRARY)
            fprintf(out, "\tmovq\tpeet_rt_cursor@gottpoff(%%rip), %%r14\n\tcmpq\t%%r15, %%fs:(%%r14)\n\tjne\t%s%u\n",
                    asm_label_text[LABEL_STUB_LIBRARY], function);
        else
            fprintf(out, "\tcmpq\t%%r15, %%fs:peet_rt_cursor@tpoff\n\tjne\t%s%u\n", asm_label_text[LABEL_STUB],
                    function);
    }
    if (u->function[function].has_stub && asm_has_counting_copy(u, function))
        fprintf(out, "\ttestq\t%%r15, %%r15\n\tjs\t" ASM_COUNTING "%.*s\n", (int)y->length, y->name);
    fprintf(out, "%s%u:\n", asm_label_text[LABEL_BODY], function);
}

/* The caller is uninstrumented: its %r14 and %r15 are saved, and what may be arguments on the stack is copied to where
 * the function expects it. The stack pointer is aligned as at a function's entry. */
void asm_emit_stub(const struct asm_unit *u, uint32_t function, FILE *out)
{
    const struct asm_symbol *y = &u->text.symbol[u->function[function].symbol];

    fprintf(out, "\t.cfi_startproc\n%s%u:\n", asm_label_text[LABEL_STUB_LIBRARY], function);
    if (u->options->model == ASM_LIBRARY)
        fputs("\tmovq\t%r15, %r14\n", out);
    fprintf(out, "%s%u:\n", asm_label_text[LABEL_STUB], function);
    if (asm_has_original_copy(u, function))
        emit_recording_test(u, function, out);
    fprintf(out,
            "\tpushq\t%%rbp\n"
            "\t.cfi_def_cfa_offset 16\n"
            "\t.cfi_offset 6, -16\n"
            "\tmovq\t%%rsp, %%rbp\n"
            "\t.cfi_def_cfa_register 6\n"
            "\tpushq\t%%r14\n"
            "\tpushq\t%%r15\n"
            "\t.cfi_offset 14, -24\n"
            "\t.cfi_offset 15, -32\n"
            "\tsubq\t$%d, %%rsp\n",
            RAW_STACK_ARGUMENTS);
    for (int i = 0; i < RAW_STACK_ARGUMENTS; i += 8)
        fprintf(out, "\tmovq\t%d(%%rbp), %%r14\n\tmovq\t%%r14, %d(%%rsp)\n", 16 + i, i);
    asm_emit_reload(u, out);
    if (asm_has_counting_copy(u, function))
        fprintf(out, "\ttestq\t%%r15, %%r15\n\tjns\t%s%u\n\tcall\t" ASM_COUNTING "%.*s\n\tjmp\t%s%u\n%s%u:\n",
                asm_label_text[LABEL_STUB_CALL], function, (int)y->length, y->name, asm_label_text[LABEL_STUB_RETURN],
                function, asm_label_text[LABEL_STUB_CALL], function);
    fprintf(out,
            "\tcall\t%s%u\n"
            "%s%u:\n"
            "\tmovq\t-16(%%rbp), %%r15\n"
            "\tmovq\t-8(%%rbp), %%r14\n"
            "\tleave\n"
            "\t.cfi_def_cfa 7, 8\n"
            "\tret\n"
            "\t.cfi_endproc\n",
            asm_label_text[LABEL_BODY], function, asm_label_text[LABEL_STUB_RETURN], function);
}

/* ---- the schema ---- */

enum { ENTRY_PARENT = 16 }; /* offset of the parent's field in an entry */

/* One section for each code section, in the same group, so that linkers keep or drop both. */
static void emit_schema_section(const struct asm_unit *u, uint32_t section, FILE *out)
{
    const struct asm_section *s = &u->text.section[section];

    if (s->group)
        fprintf(out, "\t.section\t" RAW_SECTION ",\"aG\",@progbits,%.*s,comdat,unique,%u\n", (int)s->group_length,
                s->group, section + 1);
    else
        fprintf(out, "\t.section\t" RAW_SECTION ",\"a\",@progbits,unique,%u\n", section + 1);
}

static unsigned entry_flags(const struct asm_unit *u, const struct asm_block *b)
{
    enum level level = asm_level(u);

    return (b->sp_in_register ? RAW_SP_IN_REGISTER : 0u) | (u->options->all_addresses ? RAW_ALL_ADDRESSES : 0u)
           | ((b->loop ? b->loop->private_words : 0u) << RAW_PRIVATE_SHIFT)
           | (level < LEVEL_memory ? RAW_NO_OPERANDS : 0u) | (level < LEVEL_blocks ? RAW_CALLS_ONLY : 0u)
           | (b->is_entry ? RAW_FUNCTION_ENTRY : 0u);
}

/* The first fields of a schema entry. */
struct schema_entry {
    char label[24];
    unsigned kind, insns, slots, flags;
    uint32_t start;    /* instruction from which offsets count */
    uint32_t parent;   /* block of the parent's entry, or ASM_NONE */
    uint32_t counting; /* block where the record begins in the counting copy, or ASM_NONE */
};

static void emit_entry_head(const struct schema_entry *x, FILE *out)
{
    fprintf(out, "\t.balign %d\n%s:\n\t.long %u, %s%u-.\n\t.value %u, %u\n\t.long %u\n", RAW_ALIGN, x->label, x->kind,
            asm_label_text[LABEL_INSN], x->start, x->insns, x->slots, x->flags);
    if (x->parent == ASM_NONE)
        fputs("\t.long 0\n", out);
    else
        fprintf(out, "\t.long %s%u-.+%d\n", asm_label_text[LABEL_ENTRY], x->parent, ENTRY_PARENT);
    if (x->counting == ASM_NONE)
        fputs("\t.long 0\n", out);
    else
        fprintf(out, "\t.long %s%u-.\n", asm_label_text[LABEL_COUNTING_ROOT], x->counting);
}

static void emit_offsets(const struct asm_block *b, uint32_t start, FILE *out)
{
    for (uint32_t i = b->first; i < b->first + b->count; i++)
        fprintf(out, "\t.uleb128 %s%u-%s%u\n", asm_label_text[LABEL_INSN], i, asm_label_text[LABEL_INSN], start);
}

/* The slots of a block whose first instruction has index n in its entry. */
static void emit_slots(const struct asm_unit *u, const struct asm_block *b, unsigned n, FILE *out)
{
    for (uint32_t i = 0; i < b->count; i++) {
        const struct x86_node *node = u->insn[b->first + i].node;
        for (unsigned k = 0; k < node->own_slots; k++)
            fprintf(out, "\t.uleb128 %u\n\t.byte %u, %u, %u\n", n + i, node->fill[k].kind, node->fill[k].memory,
                    node->fill[k].which);
    }
}

/* The entry of a shared block as part of the record of block `number`; `jump` labels the inserted jump to it. */
static void emit_shared_entry(const struct asm_unit *u, uint32_t number, uint32_t shared, enum asm_label entry,
                              enum asm_label jump, bool has_jump, FILE *out)
{
    if (shared == ASM_NONE)
        return;
    const struct asm_block *b = &u->block[shared], *from = &u->block[number];
    struct schema_entry x = { .kind = RAW_BLOCK,
                              .insns = b->count,
                              .flags = entry_flags(u, b) | RAW_IN_PREDECESSOR,
                              .start = b->first,
                              .parent = number,
                              .counting = ASM_NONE };
    snprintf(x.label, sizeof x.label, "%s%u", asm_label_text[entry], number);
    emit_entry_head(&x, out);
    emit_offsets(b, b->first, out);
    if (has_jump)
        fprintf(out, "\t.uleb128 %s%u-%s%u\n", asm_label_text[jump], number, asm_label_text[LABEL_INSN],
                from->loop ? from->loop->lowest : from->first);
    else
        fputs("\t.uleb128 0\n", out);
}

static void emit_loop_jumps(const struct asm_unit *u, const struct asm_loop *loop, FILE *out)
{
    unsigned jumps = 0;

    for (unsigned i = 0; i < loop->count; i++)
        jumps += (unsigned)(asm_loop_has_jump(u, loop->block[i], false) + asm_loop_has_jump(u, loop->block[i], true)
                            + (asm_loop_exit_of(u, loop->block[i]) == ASM_EXIT_BY_BRANCH));
    fprintf(out, "\t.uleb128 %u\n", jumps);
    for (unsigned i = 0; i < loop->count; i++) {
        if (asm_loop_has_jump(u, loop->block[i], false))
            fprintf(out, "\t.uleb128 %s%u-%s%u\n", asm_label_text[LABEL_LOOP_JUMP], loop->block[i],
                    asm_label_text[LABEL_INSN], loop->lowest);
        if (asm_loop_has_jump(u, loop->block[i], true))
            fprintf(out, "\t.uleb128 %s%u-%s%u\n", asm_label_text[LABEL_LOOP_COPY_JUMP], loop->block[i],
                    asm_label_text[LABEL_INSN], loop->lowest);
        if (asm_loop_exit_of(u, loop->block[i]) == ASM_EXIT_BY_BRANCH)
            fprintf(out, "\t.uleb128 %s%u-%s%u\n", asm_label_text[LABEL_LOOP_EXIT_JUMP], loop->block[i],
                    asm_label_text[LABEL_INSN], loop->lowest);
    }
}

/* A loop's entry is that of its last block; the entries of the other blocks are loop exits. */
static void emit_loop_entry(const struct asm_unit *u, uint32_t number, struct schema_entry *x, FILE *out)
{
    const struct asm_block *b = &u->block[number];
    const struct asm_loop *loop = b->loop;
    unsigned upto = 0, n = 0;
    bool is_whole = loop->block[loop->count - 1] == number;

    if (!is_whole && asm_loop_exit_of(u, number) == ASM_NO_EXIT)
        return;
    do
        x->insns += u->block[loop->block[upto]].count;
    while (loop->block[upto++] != number);
    x->kind = is_whole ? RAW_LOOP : RAW_LOOP_EXIT;
    x->start = loop->lowest;
    x->slots = is_whole ? loop->node->slots : 0;
    x->parent = is_whole ? b->parent : loop->block[loop->count - 1];
    emit_entry_head(x, out);
    for (unsigned i = 0; i < upto; i++)
        emit_offsets(&u->block[loop->block[i]], loop->lowest, out);
    if (!is_whole)
        return;
    for (unsigned i = 0; i < upto; n += u->block[loop->block[i++]].count)
        emit_slots(u, &u->block[loop->block[i]], n, out);
    fprintf(out, "\t.uleb128 %u\n", loop->count);
    for (unsigned i = 0; i < upto; i++)
        fprintf(out, "\t.uleb128 %u\n", u->block[loop->block[i]].count);
    emit_loop_jumps(u, loop, out);
    for (unsigned i = 0; i < upto; i++)
        for (uint32_t k = 0; k < u->block[loop->block[i]].count; k++)
            fprintf(out, "\t.uleb128 %s%u-%s%u\n", asm_label_text[LABEL_LOOP_COPY], u->block[loop->block[i]].first + k,
                    asm_label_text[LABEL_INSN], loop->lowest);
}

static void emit_block_entry(const struct asm_unit *u, uint32_t number, FILE *out)
{
    const struct asm_block *b = &u->block[number];
    struct schema_entry x = {
        .kind = RAW_BLOCK, .slots = b->node->slots, .flags = entry_flags(u, b), .start = b->first
    };
    uint32_t begins = b->loop ? b->loop->block[0] : number;

    x.counting = asm_has_counting_copy(u, u->insn[b->first].function) && b->parent == ASM_NONE ? begins : ASM_NONE;
    snprintf(x.label, sizeof x.label, "%s%u", asm_label_text[LABEL_ENTRY], number);
    if (b->loop) {
        emit_loop_entry(u, number, &x, out);
    } else {
        x.insns = b->count;
        x.parent = b->parent;
        x.slots -= b->parent == ASM_NONE ? 0 : u->block[b->parent].node->slots;
        emit_entry_head(&x, out);
        emit_offsets(b, b->first, out);
        emit_slots(u, b, 0, out);
    }
    emit_shared_entry(u, number, b->shared_next, LABEL_ENTRY_NEXT, LABEL_NEXT_JUMP, asm_has_shared_jump(u, b), out);
    emit_shared_entry(u, number, b->shared_branch, LABEL_ENTRY_BRANCH, LABEL_BRANCH_JUMP, true, out);
}

void asm_emit_schema(const struct asm_unit *u, FILE *out)
{
    uint32_t section = ASM_NONE;

    for (uint32_t i = 0; i < u->blocks; i++) {
        uint32_t of = u->text.statement[u->insn[u->block[i].first].statement].section;
        if (of != section)
            emit_schema_section(u, of, out);
        section = of;
        emit_block_entry(u, i, out);
    }
}
