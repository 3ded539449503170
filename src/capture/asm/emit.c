/* SPDX-License-Identifier: MIT */
/* The new text. A root begins with its key, a block has its slots written in front of the instructions that need them, and
 * moves the cursor behind its last word. A block that goes on in the record of another puts its key in the place of that
 * one's when its slots are there. Inserted are mov and lea alone, but at entries, where flags mean nothing. */
#include <assert.h>
#include <limits.h>
#include <string.h>

#include "capture/asm/unit.h"

static const char *const NAMES[X86_GPRS] = { "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                             "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15" };

struct emitter {
    const struct asm_unit *u;
    FILE *out;
    uint32_t pending_entry; /* the function whose label has just been written, or ASM_NONE */
    bool pending_reload,
        falls_through;     /* a landing pad's label has just been written; control comes from the instruction before */
    uint32_t tls_sequence; /* the last instruction of a sequence around an opaque call */
    uint32_t copies_done;  /* functions whose plain copies are there, or that have none */
};

static void emit_statement(struct emitter *e, const struct asm_statement *s)
{
    fprintf(e->out, "%s%.*s\n", s->kind == ASM_LABEL ? "" : "\t", (int)s->length, s->text);
}

/* ---- addresses ---- */

/* The memory operand that the text shows, up to its closing parenthesis; NULL: none, it is implicit. */
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

/* "disp(base,index,scale)" with the base of %fs in %r14: two steps, as an address has only two registers. */
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
    const char *text = in->x.repeats ? NULL : shown_operand(u, in, &length);
    /* push, call and pop have another one on the stack */
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

/* A bit for each element that an instruction refers to goes to %r14. */
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

/* The address of an element goes to %r14. The indices are put where the slots of the elements go: those of four bytes into the
 * second half, so that none is written over before its turn. The first one's slot is at `offset`. */
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

/* Bytes of the record that stand in front of the cursor when the block begins. */
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
    default: assert(false); /* values are not recorded so */
    }
    fprintf(e->out, "\tmovq\t%%r14, %d(%%r15)\n", offset);
}

/* The key of a block, or of the way from there to a shared one: kind is "S", "TN" (next) or "TM" (branch). */
static void emit_key(struct emitter *e, uint32_t block, const char *kind, int offset)
{
    if (e->u->options->model == ASM_ABSOLUTE)
        fprintf(e->out, "\tmovq\t$.Lpeet%s%u, %d(%%r15)\n", kind, block, offset);
    else
        fprintf(e->out, "\tleaq\t.Lpeet%s%u(%%rip), %%r14\n\tmovq\t%%r14, %d(%%r15)\n", kind, block, offset);
}

static const char *key_label(const struct asm_block *b)
{
    return b->next_is_only ? "TN" : "S";
}

/* A loop has two copies: one for the first trip, which writes its slots, and one for all others, which is as it was. Behind it,
 * the register is written that tells how often. */

/* Where in the record a value of the loop goes; INT_MIN: it follows from others. */
static int loop_offset(const struct asm_unit *u, const struct asm_block *b, unsigned value)
{
    const struct x86_pass_value *v = &b->pass->value[value];

    return v->is_told ? 8 * (v->source - PEET_SRC_SLOT + 1) - bytes_before(u, b) : INT_MIN;
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

static void emit_retargeted(struct emitter *e, const struct asm_statement *s, const char *label, uint32_t number)
{
    size_t n = s->length;

    while (s->text[n - 1] != ' ' && s->text[n - 1] != '\t')
        n--;
    fprintf(e->out, "\t%.*s%s%u\n", (int)n, s->text, label, number);
}

/* Where a loop is left. */
static void emit_loop_exit(struct emitter *e, uint32_t number)
{
    const struct asm_block *b = &e->u->block[number];
    int before = bytes_before(e->u, b), end = 8 * (b->pass->counter + 1) - before;

    fprintf(e->out, ".LpeetX%u:\n\tmovq\t%%%s, %d(%%r15)\n", number, NAMES[b->pass->loop->counter], end);
    if (b->parent != ASM_NONE || b->loop->count > 1)
        emit_key(e, number, key_label(b), -before);
    fprintf(e->out, "\tleaq\t%d(%%r15), %%r15\n", end + 8);
}

/* Whether the loop's blocks, as they stand, are in the order in which control goes from this one to the next. */
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

static void emit_labelled_jump(struct emitter *e, char kind, uint32_t number, const char *label, uint32_t to)
{
    fprintf(e->out, ".Lpeet%c%u:\n\tjmp\t%s%u\n", kind, number, label, to);
}

/* A block's copy, and behind it what leads to the next one or out of the loop. */
static void emit_loop_copy(struct emitter *e, uint32_t number)
{
    const struct asm_block *b = &e->u->block[number];
    uint32_t last = b->first + b->count - 1, next = e->u->block[asm_loop_next(b, number)].first;
    enum asm_loop_exit leaves = asm_loop_exit_of(e->u, number);
    bool is_jump = e->u->insn[last].x.insn.class == PEET_CL_jump;

    for (uint32_t i = b->first; i <= last; i++) {
        const struct asm_statement *s = &e->u->text.statement[e->u->insn[i].statement];
        fprintf(e->out, ".LpeetC%u:\n", i);
        if (i < last || (leaves == ASM_NO_EXIT && !is_jump))
            emit_statement(e, s);
        else if (leaves == ASM_EXIT_BY_BRANCH)
            emit_retargeted(e, s, ".LpeetX", number);
        else
            emit_retargeted(e, s, ".LpeetC", next);
    }
    if (!asm_loop_has_jump(e->u, number, true))
        return;
    if (leaves == ASM_EXIT_BY_FALL_THROUGH)
        emit_labelled_jump(e, 'Q', number, ".LpeetX", number);
    else
        emit_labelled_jump(e, 'Q', number, ".LpeetC", next);
}

/* The end of a loop's block in the first trip. A loop of one block has its copy here, others behind the function. */
static void emit_loop_end(struct emitter *e, const struct asm_statement *s, uint32_t number)
{
    const struct asm_block *b = &e->u->block[number];
    uint32_t head = b->loop->block[0];
    bool goes_back = asm_loop_next(b, number) == head;
    enum asm_loop_exit leaves = asm_loop_exit_of(e->u, number);

    if (leaves == ASM_EXIT_BY_BRANCH)
        emit_retargeted(e, s, ".LpeetX", number);
    else if (goes_back && e->u->insn[s->insn].target != ASM_NONE)
        emit_retargeted(e, s, ".LpeetC", e->u->block[head].first);
    else
        emit_statement(e, s);
    if (b->loop->count == 1) {
        emit_labelled_jump(e, 'J', number, ".LpeetX", number);
        fputs("\t.p2align 4,,10\n", e->out);
        emit_loop_copy(e, number);
    } else if (asm_loop_has_jump(e->u, number, false)) {
        emit_labelled_jump(e, 'J', number, ".LpeetC", e->u->block[head].first);
    }
    if (leaves == ASM_EXIT_BY_FALL_THROUGH)
        emit_loop_exit(e, number);
}

/* Whether a slot is written where %rsp is not what it was when the block began, and nothing but the trace knows that. */
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

/* What stands in front of an instruction: the key, its slots, and behind the block's last word the cursor moves. A root looks
 * at the last word that its tree may come to, so that a buffer never ends behind its key; also one that would end the buffer
 * where %rsp has changed, for the next buffer is told the one with which its first record began. */
static void emit_words(struct emitter *e, const struct asm_insn *in, uint32_t number)
{
    const struct asm_block *b = &e->u->block[in->block];
    const struct x86_node *n = in->node;
    bool is_first = number == b->first, is_root = b->parent == ASM_NONE;
    int before = bytes_before(e->u, b), after = 8 * (b->node->slots + 1);

    if (is_first && b->loop && b->loop->block[0] != in->block)
        is_first = false; /* its loop has begun before */
    if (is_first && is_root && asm_has_counting_copy(e->u, in->function))
        fprintf(e->out, ".LpeetH%u:\n", in->block);
    if (is_first && is_root && b->loop && b->loop->count > 1)
        emit_key(e, b->loop->block[b->loop->count - 1], "S", 0);
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

/* A direct call or jump to a function of this file goes behind the check at its entry, and a loop's branch to its other copy. */
static void emit_transfer(struct emitter *e, const struct asm_statement *s, const struct asm_insn *in, uint32_t own)
{
    const struct asm_block *b = in->block == ASM_NONE ? NULL : &e->u->block[in->block];

    if (b && b->loop && s->insn == b->first + b->count - 1) {
        emit_loop_end(e, s, in->block);
    } else if (b && b->shared_next != ASM_NONE && s->insn == b->first + b->count - 1
               && in->x.insn.class == PEET_CL_jump) {
        emit_retargeted(e, s, ".LpeetK", b->shared_next);
    } else if (b && b->shared_branch != ASM_NONE && s->insn == b->first + b->count - 1) {
        emit_retargeted(e, s, ".LpeetV", in->block);
    } else if (own != ASM_NONE) {
        emit_retargeted(e, s, ".LpeetB", own);
    } else {
        emit_statement(e, s);
    }
}

bool asm_has_shared_jump(const struct asm_unit *u, const struct asm_block *b)
{
    return b->shared_next != ASM_NONE && u->insn[b->first + b->count - 1].x.insn.class != PEET_CL_jump;
}

/* Control goes on to a shared block, which is told here, and not where it stands. */
static void emit_shared_next(struct emitter *e, const struct asm_insn *in)
{
    const struct asm_block *b = &e->u->block[in->block];

    if (!b->next_is_only)
        emit_key(e, in->block, "TN", -8 * (b->node->slots + 1));
    if (asm_has_shared_jump(e->u, b))
        fprintf(e->out, ".LpeetN%u:\n\tjmp\t.LpeetK%u\n", in->block, b->shared_next);
}

/* The same where control goes by a branch, which goes here, and on. */
static void emit_shared_branch(struct emitter *e, uint32_t number)
{
    const struct asm_block *b = &e->u->block[number];

    fprintf(e->out, ".LpeetV%u:\n", number);
    emit_key(e, number, "TM", -8 * (b->node->slots + 1));
    emit_labelled_jump(e, 'M', number, ".LpeetK", b->shared_branch);
}

/* A loop of several blocks: its copy, from its first block to its last as they stand, and where branches leave it. */
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
        fprintf(e->out, ".LpeetZ%u:\n\tjmp\t%.*s\n", number, (int)to->length, to->name);
    }
}

/* What stands behind a function. */
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

/* Behind a call, control may come from the copy that counts. */
static void emit_crossing_target(struct emitter *e, const struct asm_insn *in, uint32_t number)
{
    if (asm_has_counting_copy(e->u, in->function))
        fprintf(e->out, ".LpeetA%u:\n", number);
}

static void emit_recorded(struct emitter *e, const struct asm_insn *in, uint32_t number)
{
    const struct asm_statement *s = &e->u->text.statement[in->statement];
    uint32_t own = in->target == ASM_NONE ? ASM_NONE : asm_local_target(e->u, in->target);
    bool for_callee;

    const struct asm_block *b = in->block == ASM_NONE ? NULL : &e->u->block[in->block];
    if (b) /* else there is too little in it for the level */
        emit_words(e, in, number);
    if (b && b->is_shared && number == b->first)
        fprintf(e->out, ".LpeetK%u:\n", in->block);
    if (asm_needs_spill(e->u, in, own, &for_callee))
        asm_emit_spill(e->u, e->out, for_callee);
    fprintf(e->out, ".LpeetI%u:\n", number);
    emit_transfer(e, s, in, own);
    if ((in->x.insn.class == PEET_CL_call && (own == ASM_NONE || !asm_keeps_cursor(e->u, own)))
        || in->x.insn.class == PEET_CL_call_indirect)
        asm_emit_return(e->u, 'R', number, e->out);
    if (in->x.insn.class == PEET_CL_call || in->x.insn.class == PEET_CL_call_indirect)
        emit_crossing_target(e, in, number);
    if (b && b->shared_next != ASM_NONE && number == b->first + b->count - 1)
        emit_shared_next(e, in);
}

/* As it is; the instructions of a sequence that ends with a call stay together. */
static void emit_opaque(struct emitter *e, const struct asm_insn *in, uint32_t number)
{
    bool is_call =
        !in->is_uninterpreted && (in->x.insn.class == PEET_CL_call || in->x.insn.class == PEET_CL_call_indirect);

    if (in->in_tls_sequence && e->tls_sequence == ASM_NONE)
        asm_emit_spill(e->u, e->out, true);
    e->tls_sequence = in->in_tls_sequence && !is_call ? number : ASM_NONE;
    emit_statement(e, &e->u->text.statement[in->statement]);
    if (is_call) {
        asm_emit_return(e->u, 'R', number, e->out);
        emit_crossing_target(e, in, number);
    }
}

/* What is owed to a label before control can come from elsewhere. */
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

/* Behind the function that ends here. */
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
