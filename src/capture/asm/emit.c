/* SPDX-License-Identifier: MIT */
/* The new text. A root begins with its key. A block's slots are written before the instructions that need them, and
 * after its last word the cursor advances. A block that extends a record replaces the key once its slots are written.
 * Only mov and lea are inserted, except where no flags are live. */
#include <assert.h>
#include <limits.h>
#include <string.h>

#include "capture/asm/unit.h"

static const char *const NAMES[X86_GPRS] = { "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                             "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15" };

/* Writes the new text of an assembly file. */
struct emitter {
    const struct asm_unit *u;
    FILE *out;
    uint32_t pending_entry; /* function whose entry code is still to be written, or ASM_NONE */
    bool pending_reload;    /* after a landing pad's label: the cursor is still to be loaded */
    bool falls_through;     /* control may continue from the instruction before */
    uint32_t tls_sequence;  /* last instruction of the open sequence around a thread-local call, or ASM_NONE */
    uint32_t copies_done;   /* functions, from the first, whose copies are written or that have none */
};

const char *const asm_label_text[] = {
#define X(name, letter, what) ".Lpeet" letter,
    ASM_LABELS(X)
#undef X
};

static void emit_statement(struct emitter *e, const struct asm_statement *s)
{
    fprintf(e->out, "%s%.*s\n", s->kind == ASM_LABEL ? "" : "\t", (int)s->length, s->text);
}

/* ---- addresses ---- */

/* The memory operand in the instruction's text, up to its closing parenthesis; NULL: it is implicit. */
static const char *shown_operand(const struct asm_unit *u, const struct asm_insn *in, size_t *ret_length)
{
    const struct asm_statement *s = &u->text.statement[in->statement];
    const char *p = s->text, *end = s->text + s->length;

    if (in->target != ASM_NONE)
        return NULL;
    p += asm_operands(s);
    for (int depth = 0; p < end; p++) {
        while (p < end && (*p == ' ' || *p == '\t' || *p == '*'))
            p++;
        const char *start = p;
        for (; p < end && (depth || *p != ','); p++)
            depth += (*p == '(') - (*p == ')');
        bool is_memory = *start == '%' ? p - start > 3 && start[3] == ':' : *start != '$' && *start != '{';
        const char *close = memrchr(start, ')', (size_t)(p - start));
        *ret_length = (size_t)((close ? close + 1 : p) - start);
        if (is_memory && p > start && (close || memchr(start, ':', (size_t)(p - start)) || in->x.memories))
            return start;
    }
    return NULL;
}

/* Computes disp(base,index,scale) plus the base of %fs in two steps, because an address has only two registers. */
static void emit_fs_address(const char *text, size_t length, FILE *out)
{
    const char *open = memchr(text, '(', length), *end = text + length;
    const char *comma = open ? memchr(open, ',', (size_t)(end - open)) : NULL;
    size_t disp = (size_t)((open ? open : end) - text);

    fputs("\tmovq\t%fs:0, %r14\n", out);
    if (open && open[1] == '%')
        fprintf(out, "\tleaq\t%.*s(%%r14,%.*s), %%r14\n", (int)disp, text, (int)((comma ? comma : end - 1) - open - 1),
                open + 1);
    else
        fprintf(out, "\tleaq\t%.*s(%%r14), %%r14\n", (int)disp, text);
    if (comma)
        fprintf(out, "\tleaq\t(%%r14%.*s, %%r14\n", (int)(end - comma), comma);
}

void asm_emit_address(const struct asm_unit *u, const struct asm_insn *in, unsigned memory, FILE *out)
{
    const struct x86_memory *m = &in->x.memory[memory];
    const struct asm_statement *s = &u->text.statement[in->statement];
    size_t length = 0;
    const char *text = in->x.is_repeated ? NULL : shown_operand(u, in, &length);
    /* push, call and pop have an implicit operand on the stack */
    bool is_pop = s->length > 3 && !memcmp(s->text, "pop", 3);
    bool is_implicit = in->x.memories == 2 && m->base == X86_RSP && m->kind == (is_pop ? PEET_LOAD : PEET_STORE);

    if (!text || is_implicit || (is_pop && m->base == X86_RSP)) {
        assert(m->base != X86_NONE && m->index == X86_NONE);
        fprintf(out, "\tleaq\t%lld(%%%s), %%r14\n", (long long)m->disp, NAMES[m->base]);
    } else if (m->segment == X86_FS) {
        assert(length > 4 && text[3] == ':');
        emit_fs_address(text + 4, length - 4, out);
    } else if (m->narrow) {
        fprintf(out, "\tleal\t%.*s, %%r14d\n", (int)length, text);
    } else {
        fprintf(out, "\tleaq\t%.*s, %%r14\n", (int)length, text);
    }
}

/* Puts a bit for each element to which the instruction refers into %r14. */
static void emit_mask(const struct x86_memory *m, FILE *out)
{
    char size = m->elements * m->size > 16 ? 'y' : 'x';

    if (m->mask_kind == X86_MASK_MM)
        fprintf(out, "\tpmovmskb\t%%mm%u, %%r14d\n", m->mask);
    else if (m->size == 1)
        fprintf(out, "\tpmovmskb\t%%xmm%u, %%r14d\n", m->mask);
    else
        fprintf(out, "\tvmovmskp%c\t%%%cmm%u, %%r14d\n", m->size == 8 ? 'd' : 's', size, m->mask);
}

/* Puts the address of an element into %r14. The indices are stored where the slots of the elements will be. Indices of
 * four bytes go to the second half of that space, so that none is overwritten before it is used. `offset` is that of
 * the element's slot. */
static void emit_element(const struct asm_unit *u, const struct asm_insn *in, const struct x86_fill *f, int offset,
                         FILE *out)
{
    const struct x86_memory *m = &in->x.memory[f->memory];
    int bytes = m->elements * m->index_size, start = offset - 8 * f->which + (m->index_size == 4 ? bytes : 0);
    size_t length;
    const char *text = shown_operand(u, in, &length), *open = memchr(text, '(', length);
    const char *index = memchr(open, ',', length - (size_t)(open - text)), *end = text + length;
    const char *scale = memchr(index + 1, ',', (size_t)(end - index - 1));

    if (f->which == 0)
        fprintf(out, "\t%s\t%%%cmm%u, %d(%%r15)\n", bytes == 8 ? "vmovq" : "vmovdqu", bytes > 16 ? 'y' : 'x', m->index,
                start);
    fprintf(out, "\t%s\t%d(%%r15), %%r14\n", m->index_size == 4 ? "movslq" : "movq", start + m->index_size * f->which);
    fprintf(out, "\tleaq\t%.*s,%%r14%.*s, %%r14\n", (int)(index - text), text, (int)(end - (scale ? scale : end - 1)),
            scale ? scale : end - 1);
}

/* ---- blocks ---- */

/* Bytes of the record before the cursor when the block begins. */
static int bytes_before(const struct asm_unit *u, const struct asm_block *b)
{
    return b->parent == ASM_NONE ? 0 : 8 * (u->block[b->parent].node->slots + 1);
}

static void emit_fill(struct emitter *e, const struct asm_insn *in, const struct x86_fill *f, int offset)
{
    switch (f->kind) {
    case X86_FILL_REGISTER: fprintf(e->out, "\tmovq\t%%%s, %d(%%r15)\n", NAMES[f->which], offset); return;
    case X86_FILL_ADDRESS: asm_emit_address(e->u, in, f->memory, e->out); break;
    case X86_FILL_COUNT:
        fprintf(e->out, in->x.narrow_count ? "\tmovl\t%%ecx, %%r14d\n" : "\tmovq\t%%rcx, %%r14\n");
        break;
    case X86_FILL_MASK: emit_mask(&in->x.memory[f->memory], e->out); break;
    case X86_FILL_ELEMENT: emit_element(e->u, in, f, offset, e->out); break;
    default: assert(false); /* the assembler records no values */
    }
    fprintf(e->out, "\tmovq\t%%r14, %d(%%r15)\n", offset);
}

/* Writes the address of a schema entry as key of the record. */
static void emit_key(struct emitter *e, uint32_t block, enum asm_label entry, int offset)
{
    if (e->u->options->model == ASM_ABSOLUTE)
        fprintf(e->out, "\tmovq\t$%s%u, %d(%%r15)\n", asm_label_text[entry], block, offset);
    else
        fprintf(e->out, "\tleaq\t%s%u(%%rip), %%r14\n\tmovq\t%%r14, %d(%%r15)\n", asm_label_text[entry], block, offset);
}

static enum asm_label key_label(const struct asm_block *b)
{
    return b->next_is_only ? LABEL_ENTRY_NEXT : LABEL_ENTRY;
}

/* A loop has two copies. The first iteration writes the slots; all others run the copy as the compiler wrote it. After
 * the loop, the counting register is written. */

/* Offset of a loop value's word from the cursor; INT_MIN: it follows from other words. */
static int loop_offset(const struct asm_unit *u, const struct asm_block *b, unsigned value)
{
    const struct x86_pass_value *v = &b->pass->value[value];

    return v->has_slot ? 8 * (v->source - PEET_SRC_SLOT + 1) - bytes_before(u, b) : INT_MIN;
}

static void emit_loop_registers(struct emitter *e, const struct asm_block *b)
{
    const struct x86_affine *a = b->pass->loop;

    for (unsigned i = a->slots; i < a->values; i++) {
        int offset = loop_offset(e->u, b, i);
        if (offset != INT_MIN)
            fprintf(e->out, "\tmovq\t%%%s, %d(%%r15)\n", NAMES[a->value[i].reg], offset);
    }
}

static void emit_retargeted(struct emitter *e, const struct asm_statement *s, enum asm_label label, uint32_t number)
{
    size_t n = s->length;

    while (s->text[n - 1] != ' ' && s->text[n - 1] != '\t')
        n--;
    fprintf(e->out, "\t%.*s%s%u\n", (int)n, s->text, asm_label_text[label], number);
}

/* Code at a loop's exit. */
static void emit_loop_exit(struct emitter *e, uint32_t number)
{
    const struct asm_block *b = &e->u->block[number];
    int before = bytes_before(e->u, b), end = 8 * (b->pass->counter + 1) - before;

    fprintf(e->out, "%s%u:\n\tmovq\t%%%s, %d(%%r15)\n", asm_label_text[LABEL_LOOP_EXIT], number,
            NAMES[b->pass->loop->counter], end);
    if (b->parent != ASM_NONE || b->loop->count > 1)
        emit_key(e, number, key_label(b), -before);
    fprintf(e->out, "\tleaq\t%d(%%r15), %%r15\n", end + 8);
}

/* Whether `next` follows this block in the text, with no block of the loop in between. */
static bool precedes_in_text(const struct asm_unit *u, uint32_t number, uint32_t next)
{
    const struct asm_loop *loop = u->block[number].loop;

    for (unsigned i = 0; i < loop->count; i++)
        if (loop->block[i] > number && loop->block[i] < next)
            return false;
    return number < next;
}

bool asm_loop_has_jump(const struct asm_unit *u, uint32_t number, bool is_copy)
{
    const struct asm_block *b = &u->block[number];
    uint32_t next = asm_loop_next(b, number);
    enum asm_loop_exit leaves = asm_loop_exit_of(u, number);
    bool is_jump = u->insn[b->first + b->count - 1].x.insn.class == PEET_CL_jump;

    if (b->loop->count == 1)
        return !is_copy;
    if (is_copy)
        return leaves == ASM_EXIT_BY_FALL_THROUGH || (!is_jump && !precedes_in_text(u, number, next));
    return next == b->loop->block[0] && leaves != ASM_EXIT_BY_FALL_THROUGH && !is_jump;
}

static void emit_labelled_jump(struct emitter *e, enum asm_label at, uint32_t number, enum asm_label to,
                               uint32_t to_number)
{
    fprintf(e->out, "%s%u:\n\tjmp\t%s%u\n", asm_label_text[at], number, asm_label_text[to], to_number);
}

/* Writes a block's copy, and the jump to the next block or out of the loop. */
static void emit_loop_copy(struct emitter *e, uint32_t number)
{
    const struct asm_block *b = &e->u->block[number];
    uint32_t last = b->first + b->count - 1, next = e->u->block[asm_loop_next(b, number)].first;
    enum asm_loop_exit leaves = asm_loop_exit_of(e->u, number);
    bool is_jump = e->u->insn[last].x.insn.class == PEET_CL_jump;

    for (uint32_t i = b->first; i <= last; i++) {
        const struct asm_statement *s = &e->u->text.statement[e->u->insn[i].statement];
        fprintf(e->out, "%s%u:\n", asm_label_text[LABEL_LOOP_COPY], i);
        if (i < last || (leaves == ASM_NO_EXIT && !is_jump))
            emit_statement(e, s);
        else if (leaves == ASM_EXIT_BY_BRANCH)
            emit_retargeted(e, s, LABEL_LOOP_EXIT, number);
        else
            emit_retargeted(e, s, LABEL_LOOP_COPY, next);
    }
    if (!asm_loop_has_jump(e->u, number, true))
        return;
    if (leaves == ASM_EXIT_BY_FALL_THROUGH)
        emit_labelled_jump(e, LABEL_LOOP_COPY_JUMP, number, LABEL_LOOP_EXIT, number);
    else
        emit_labelled_jump(e, LABEL_LOOP_COPY_JUMP, number, LABEL_LOOP_COPY, next);
}

/* Writes the end of a loop's block in the first iteration. The copy of a loop of one block is placed here, that of
 * others after the function. */
static void emit_loop_end(struct emitter *e, const struct asm_statement *s, uint32_t number)
{
    const struct asm_block *b = &e->u->block[number];
    uint32_t head = b->loop->block[0];
    bool goes_back = asm_loop_next(b, number) == head;
    enum asm_loop_exit leaves = asm_loop_exit_of(e->u, number);

    if (leaves == ASM_EXIT_BY_BRANCH)
        emit_retargeted(e, s, LABEL_LOOP_EXIT, number);
    else if (goes_back && e->u->insn[s->insn].target != ASM_NONE)
        emit_retargeted(e, s, LABEL_LOOP_COPY, e->u->block[head].first);
    else
        emit_statement(e, s);
    if (b->loop->count == 1) {
        emit_labelled_jump(e, LABEL_LOOP_JUMP, number, LABEL_LOOP_EXIT, number);
        fputs("\t.p2align 4,,10\n", e->out);
        emit_loop_copy(e, number);
    } else if (asm_loop_has_jump(e->u, number, false)) {
        emit_labelled_jump(e, LABEL_LOOP_JUMP, number, LABEL_LOOP_COPY, e->u->block[head].first);
    }
    if (leaves == ASM_EXIT_BY_FALL_THROUGH)
        emit_loop_exit(e, number);
}

/* Whether a slot is written where %rsp differs from its value at the block's beginning, and only the trace has that
 * value. */
static bool moves_sp_before_slot(const struct asm_unit *u, const struct asm_block *b)
{
    bool moved = false;

    for (uint32_t i = b->first; b->sp_in_register && i < b->first + b->count; i++) {
        if (moved && u->insn[i].node->own_slots)
            return true;
        moved |= u->insn[i].x.changes >> X86_RSP & 1;
    }
    return false;
}

/* Writes the code before an instruction: the key, its slots, and after the block's last word the advance of the cursor.
 * A root reads the last word that its tree can reach, so that no buffer ends within a record. A root also does so if
 * %rsp changes before a slot, because the next buffer is given the %rsp with which its first record began. */
static void emit_words(struct emitter *e, const struct asm_insn *in, uint32_t number)
{
    const struct asm_block *b = &e->u->block[in->block];
    const struct x86_node *n = in->node;
    bool is_first = number == b->first, is_root = b->parent == ASM_NONE;
    int before = bytes_before(e->u, b), after = 8 * (b->node->slots + 1);

    if (is_first && b->loop && b->loop->block[0] != in->block)
        is_first = false; /* an earlier block of its loop has begun the record */
    if (is_first && is_root && asm_has_counting_copy(e->u, in->function))
        fprintf(e->out, "%s%u:\n", asm_label_text[LABEL_ROOT], in->block);
    if (is_first && is_root && b->loop && b->loop->count > 1)
        emit_key(e, b->loop->block[b->loop->count - 1], LABEL_ENTRY, 0);
    else if (is_first && is_root)
        emit_key(e, in->block, key_label(b), 0);
    if (is_first && is_root && (b->max_slots > b->node->slots || moves_sp_before_slot(e->u, b) || b->loop))
        fprintf(e->out, "\tmovq\t%u(%%r15), %%r14\n", 8 * b->max_slots);
    if (is_first && b->pass)
        emit_loop_registers(e, b);
    for (unsigned i = 0; i < n->own_slots; i++) {
        unsigned slot = n->slots - n->own_slots + i;
        int offset = b->pass ? loop_offset(e->u, b, slot) : 8 * ((int)slot + 1) - before;
        if (offset != INT_MIN)
            emit_fill(e, in, &n->fill[i], offset);
    }
    if (b->pass || n->slots < b->node->slots || !(is_first || n->own_slots))
        return;
    if (!is_root)
        emit_key(e, in->block, key_label(b), -before);
    if (after != before)
        fprintf(e->out, "\tleaq\t%d(%%r15), %%r15\n", after - before);
}

/* ---- control ---- */

/* Writes a call, jump or branch. One to a function of this file leads past the test at its entry, and that of a loop to
 * the loop's copy. */
static void emit_transfer(struct emitter *e, const struct asm_statement *s, const struct asm_insn *in, uint32_t own)
{
    const struct asm_block *b = in->block == ASM_NONE ? NULL : &e->u->block[in->block];

    if (b && b->loop && s->insn == b->first + b->count - 1) {
        emit_loop_end(e, s, in->block);
    } else if (b && b->shared_next != ASM_NONE && s->insn == b->first + b->count - 1
               && in->x.insn.class == PEET_CL_jump) {
        emit_retargeted(e, s, LABEL_SHARED, b->shared_next);
    } else if (b && b->shared_branch != ASM_NONE && s->insn == b->first + b->count - 1) {
        emit_retargeted(e, s, LABEL_SHARED_BRANCH, in->block);
    } else if (own != ASM_NONE) {
        emit_retargeted(e, s, LABEL_BODY, own);
    } else {
        emit_statement(e, s);
    }
}

bool asm_has_shared_jump(const struct asm_unit *u, const struct asm_block *b)
{
    return b->shared_next != ASM_NONE && u->insn[b->first + b->count - 1].x.insn.class != PEET_CL_jump;
}

/* Control continues to a shared block, which this record includes. */
static void emit_shared_next(struct emitter *e, const struct asm_insn *in)
{
    const struct asm_block *b = &e->u->block[in->block];

    if (!b->next_is_only)
        emit_key(e, in->block, LABEL_ENTRY_NEXT, -8 * (b->node->slots + 1));
    if (asm_has_shared_jump(e->u, b))
        fprintf(e->out, "%s%u:\n\tjmp\t%s%u\n", asm_label_text[LABEL_NEXT_JUMP], in->block,
                asm_label_text[LABEL_SHARED], b->shared_next);
}

/* Control branches to a shared block: the code that writes the key for both. */
static void emit_shared_branch(struct emitter *e, uint32_t number)
{
    const struct asm_block *b = &e->u->block[number];

    fprintf(e->out, "%s%u:\n", asm_label_text[LABEL_SHARED_BRANCH], number);
    emit_key(e, number, LABEL_ENTRY_BRANCH, -8 * (b->node->slots + 1));
    emit_labelled_jump(e, LABEL_BRANCH_JUMP, number, LABEL_SHARED, b->shared_branch);
}

/* A loop of several blocks: its copy, in the order of the text, and the exits of its branches. */
static void emit_loop_tail(struct emitter *e, uint32_t number)
{
    const struct asm_block *b = &e->u->block[number];
    const struct asm_insn *last = &e->u->insn[b->first + b->count - 1];
    const struct asm_loop *loop = b->loop;
    uint32_t lowest = loop->block[0], highest = loop->block[0];

    for (unsigned i = 1; i < loop->count; i++) {
        lowest = loop->block[i] < lowest ? loop->block[i] : lowest;
        highest = loop->block[i] > highest ? loop->block[i] : highest;
    }
    if (number == lowest) {
        fputs("\t.p2align 4,,10\n", e->out);
        for (uint32_t i = lowest; i <= highest; i++)
            if (e->u->block[i].loop == loop)
                emit_loop_copy(e, i);
    }
    if (asm_loop_exit_of(e->u, number) == ASM_EXIT_BY_BRANCH) {
        const struct asm_symbol *to = &e->u->text.symbol[last->target];
        emit_loop_exit(e, number);
        fprintf(e->out, "%s%u:\n\tjmp\t%.*s\n", asm_label_text[LABEL_LOOP_EXIT_JUMP], number, (int)to->length,
                to->name);
    }
}

/* Writes the code after a function. */
static void emit_function_tail(struct emitter *e, uint32_t function)
{
    const struct asm_function *f = &e->u->function[function];

    for (uint32_t i = f->tail_first; f->tail_last != ASM_NONE && i <= f->tail_last; i++) {
        const struct asm_block *b = &e->u->block[i];
        if (e->u->insn[b->first].function != function)
            continue;
        if (b->shared_branch != ASM_NONE)
            emit_shared_branch(e, i);
        if (b->loop && b->loop->count > 1)
            emit_loop_tail(e, i);
    }
}

bool asm_needs_spill(const struct asm_unit *u, const struct asm_insn *in, uint32_t own, bool *ret_for_callee)
{
    const struct asm_symbol *y = in->target == ASM_NONE ? NULL : &u->text.symbol[in->target];

    *ret_for_callee = true;
    switch (in->x.insn.class) {
    case PEET_CL_call: return own == ASM_NONE;
    case PEET_CL_call_indirect: return true;
    case PEET_CL_jump_indirect: return !asm_jumps_within_function(u, in);
    case PEET_CL_return: *ret_for_callee = false; return !asm_skips_spill(u, in->function);
    case PEET_CL_branch:
    case PEET_CL_jump:
        if (own != ASM_NONE)
            return false;
        if (!y || y->statement == ASM_NONE || (y->function != ASM_NONE && !u->function[y->function].is_cold))
            return true;
        *ret_for_callee = false;
        return y->is_landing_pad;
    default: return false;
    }
}

/* Labels the place after a call to which the counting copy may cross. */
static void emit_crossing_target(struct emitter *e, const struct asm_insn *in, uint32_t number)
{
    if (asm_has_counting_copy(e->u, in->function))
        fprintf(e->out, "%s%u:\n", asm_label_text[LABEL_AFTER_CALL], number);
}

static void emit_recorded(struct emitter *e, const struct asm_insn *in, uint32_t number)
{
    const struct asm_statement *s = &e->u->text.statement[in->statement];
    uint32_t own = in->target == ASM_NONE ? ASM_NONE : asm_local_target(e->u, in->target);
    bool for_callee;

    const struct asm_block *b = in->block == ASM_NONE ? NULL : &e->u->block[in->block];
    if (b) /* NULL: not recorded at this level */
        emit_words(e, in, number);
    if (b && b->is_shared && number == b->first)
        fprintf(e->out, "%s%u:\n", asm_label_text[LABEL_SHARED], in->block);
    if (asm_needs_spill(e->u, in, own, &for_callee))
        asm_emit_spill(e->u, e->out, for_callee);
    if (e->u->options->has_hooks)
        asm_emit_hooks(e->u, in, e->out);
    fprintf(e->out, "%s%u:\n", asm_label_text[LABEL_INSN], number);
    emit_transfer(e, s, in, own);
    if ((in->x.insn.class == PEET_CL_call && (own == ASM_NONE || !asm_keeps_cursor(e->u, own)))
        || in->x.insn.class == PEET_CL_call_indirect)
        asm_emit_return(e->u, LABEL_RELOADED, number, e->out);
    if (in->x.insn.class == PEET_CL_call || in->x.insn.class == PEET_CL_call_indirect)
        emit_crossing_target(e, in, number);
    if (b && b->shared_next != ASM_NONE && number == b->first + b->count - 1)
        emit_shared_next(e, in);
}

/* Writes an instruction unchanged. The instructions of a sequence that ends with a call stay together. */
static void emit_opaque(struct emitter *e, const struct asm_insn *in, uint32_t number)
{
    bool is_call =
        !in->is_uninterpreted && (in->x.insn.class == PEET_CL_call || in->x.insn.class == PEET_CL_call_indirect);

    if (in->in_tls_sequence && e->tls_sequence == ASM_NONE)
        asm_emit_spill(e->u, e->out, true);
    e->tls_sequence = in->in_tls_sequence && !is_call ? number : ASM_NONE;
    emit_statement(e, &e->u->text.statement[in->statement]);
    if (is_call) {
        asm_emit_return(e->u, LABEL_RELOADED, number, e->out);
        emit_crossing_target(e, in, number);
    }
}

/* Writes the pending code after a label, before control can enter at another one. */
static void emit_pending(struct emitter *e)
{
    if (e->pending_entry != ASM_NONE)
        asm_emit_entry(e->u, e->pending_entry, e->out);
    if (e->pending_reload)
        asm_emit_reload(e->u, e->out);
    e->pending_entry = ASM_NONE;
    e->pending_reload = false;
}

static void emit_unit_insn(struct emitter *e, const struct asm_statement *s)
{
    const struct asm_insn *in = &e->u->insn[s->insn];

    emit_pending(e);
    e->falls_through = false;
    if (!asm_is_recorded(e->u, in->function)) {
        emit_statement(e, s);
        return;
    }
    if (in->is_opaque)
        emit_opaque(e, in, s->insn);
    else
        emit_recorded(e, in, s->insn);
    e->falls_through = asm_following(e->u, s->insn) != ASM_NONE;
}

static void emit_unit_label(struct emitter *e, const struct asm_statement *s)
{
    const struct asm_symbol *y = &e->u->text.symbol[s->symbol];
    uint32_t f = y->function;

    if (!e->u->text.section[s->section].is_code || (!y->is_target && !y->is_landing_pad && f == ASM_NONE)) {
        emit_statement(e, s);
        return;
    }
    emit_pending(e);
    if (y->is_landing_pad && f == ASM_NONE && e->falls_through)
        asm_emit_spill(e->u, e->out, false);
    emit_statement(e, s);
    if (f != ASM_NONE && asm_is_recorded(e->u, f) && !e->u->function[f].is_cold)
        e->pending_entry = f;
    e->pending_reload = y->is_landing_pad && f == ASM_NONE;
}

/* Writes the code after the function that ends with this .size. */
static void emit_function_end(struct emitter *e, uint32_t statement)
{
    const struct asm_statement *s = &e->u->text.statement[statement];
    const char *at = s->text + asm_word(s);
    size_t length;
    const char *name = asm_next_name(&at, s->text + s->length, &length);
    uint32_t symbol = name ? asm_symbol_find(&e->u->text, name, length) : ASM_NONE;
    uint32_t f = symbol == ASM_NONE ? ASM_NONE : e->u->text.symbol[symbol].function;

    if (f == ASM_NONE || e->u->function[f].end != statement)
        return;
    emit_function_tail(e, f);
    if (e->u->function[f].has_stub)
        asm_emit_stub(e->u, f, e->out);
}

void asm_unit_emit(struct asm_unit *u, FILE *out)
{
    struct emitter e = { .u = u, .out = out, .pending_entry = ASM_NONE, .tls_sequence = ASM_NONE };

    for (size_t i = 0; i < u->text.statements; i++) {
        const struct asm_statement *s = &u->text.statement[i];
        if (asm_is_recorded(u, s->uninterpreted_begins)) {
            emit_pending(&e);
            asm_emit_spill(u, out, true);
        }
        if (s->insn != ASM_NONE)
            emit_unit_insn(&e, s);
        else if (s->kind == ASM_LABEL)
            emit_unit_label(&e, s);
        else
            emit_statement(&e, s);
        if (asm_is_recorded(u, s->uninterpreted_ends))
            asm_emit_reload(u, out);
        while (e.copies_done < u->functions
               && (u->function[e.copies_done].is_cold || !asm_has_original_copy(u, e.copies_done)))
            e.copies_done++;
        if (e.copies_done < u->functions && u->function[e.copies_done].copy_after == i)
            asm_emit_copies(u, e.copies_done++, out);
        if (s->kind == ASM_DIRECTIVE && asm_is(s, ".size") && u->text.section[s->section].is_code)
            emit_function_end(&e, (uint32_t)i);
    }
    asm_emit_schema(u, out);
}
