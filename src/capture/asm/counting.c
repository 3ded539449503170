/* SPDX-License-Identifier: MIT */
/* The counting copy of a function, for threads in skip mode (docs/design/instrumentation.md). %r15 holds minus the
 * number of references left to skip. Each block adds its number of references when it begins. At root blocks and after
 * calls, the copy tests the sign and crosses to the instrumented copy.
 * A root block can test if no flags are live at its beginning (flags.c). Others only count, and the sign is seen a
 * little later. */
#include "capture/asm/unit.h"

enum { RED_ZONE = 128 };

/* Writes the counting copy of a function. */
struct counting {
    struct asm_copy copy;
    bool pending_reload;   /* after a landing pad's label: the counter is still to be loaded */
    bool falls_through;    /* control may continue from the instruction before */
    uint32_t landing;      /* symbol of that landing pad */
    uint32_t tls_sequence; /* last instruction of the open sequence around a thread-local call, or ASM_NONE */
};

bool asm_has_counting_copy(const struct asm_unit *u, uint32_t function)
{
    return asm_has_original_copy(u, function) && asm_level(u) == LEVEL_memory
           && !u->function[u->function[function].family].has_uninterpreted;
}

bool asm_begins_record(const struct asm_block *b, uint32_t number)
{
    return b->parent == ASM_NONE && (!b->loop || b->loop->block[0] == number);
}

static bool checks_sign(const struct asm_unit *u, uint32_t number)
{
    const struct asm_block *b = &u->block[number];

    return asm_begins_record(b, number) && (b->is_entry || !u->insn[b->first].needs_flags);
}

static unsigned count_references(const struct asm_unit *u, const struct asm_block *b)
{
    unsigned n = 0;

    for (uint32_t i = b->first; i < b->first + b->count; i++)
        n += u->insn[i].node->own_operands;
    return n;
}

static void emit_counter(const struct counting *c, uint32_t number)
{
    const struct asm_unit *u = c->copy.u;
    unsigned n = count_references(u, &u->block[number]);
    FILE *out = c->copy.out;

    if (asm_begins_record(&u->block[number], number))
        fprintf(out, "%s%u:\n", asm_label_text[LABEL_COUNTING_ROOT], number);
    if (!checks_sign(u, number)) {
        if (n)
            fprintf(out, "\tleaq\t%u(%%r15), %%r15\n", n);
        return;
    }
    if (n)
        fprintf(out, "\taddq\t$%u, %%r15\n", n);
    else
        fputs("\ttestq\t%r15, %r15\n", out);
    fprintf(out, "\tjns\t%s%u\n", asm_label_text[LABEL_CROSS_ROOT], number);
}

static void settle_landing(struct counting *c)
{
    if (!c->pending_reload)
        return;
    asm_emit_reload(c->copy.u, c->copy.out);
    fprintf(c->copy.out, "\ttestq\t%%r15, %%r15\n\tjns\t%s%u\n", asm_label_text[LABEL_CROSS_LANDING_PAD], c->landing);
    c->pending_reload = false;
}

/* Whether control may enter at a label with the counter in memory and not in %r15. */
static bool is_reload_label(const struct asm_unit *u, const struct asm_statement *s)
{
    const struct asm_symbol *y = s->kind == ASM_LABEL ? &u->text.symbol[s->symbol] : NULL;

    return y && y->is_landing_pad && y->function == ASM_NONE && u->text.section[s->section].is_code;
}

static bool is_understood_call(const struct asm_insn *in)
{
    return !in->is_uninterpreted && (in->x.insn.class == PEET_CL_call || in->x.insn.class == PEET_CL_call_indirect);
}

static void emit_counting_insn(struct counting *c, const struct asm_statement *s)
{
    const struct asm_unit *u = c->copy.u;
    const struct asm_insn *in = &u->insn[s->insn];
    uint32_t own = asm_copy_target(&c->copy, in);
    FILE *out = c->copy.out;
    bool for_callee = true;

    settle_landing(c);
    if (in->block != ASM_NONE && u->block[in->block].first == s->insn)
        emit_counter(c, in->block);
    if (in->is_opaque ? in->in_tls_sequence && c->tls_sequence == ASM_NONE : asm_needs_spill(u, in, own, &for_callee))
        asm_emit_spill(u, out, for_callee);
    c->tls_sequence = in->is_opaque && in->in_tls_sequence && !is_understood_call(in) ? s->insn : ASM_NONE;
    asm_copy_statement(&c->copy, s);
    if (is_understood_call(in)) {
        if (own == ASM_NONE || !asm_keeps_cursor(u, own))
            asm_emit_return(u, LABEL_COUNTING_RELOADED, s->insn, out);
        fprintf(out, "\ttestq\t%%r15, %%r15\n\tjns\t%s%u\n", asm_label_text[LABEL_CROSS_CALL], s->insn);
    }
    c->falls_through = asm_following(u, s->insn) != ASM_NONE;
}

static void emit_counting_label(struct counting *c, const struct asm_statement *s)
{
    bool is_landing = is_reload_label(c->copy.u, s);

    if (is_landing || c->copy.u->text.symbol[s->symbol].is_target)
        settle_landing(c);
    if (is_landing && c->falls_through)
        asm_emit_spill(c->copy.u, c->copy.out, false);
    asm_copy_statement(&c->copy, s);
    if (is_landing) {
        c->pending_reload = true;
        c->landing = s->symbol;
    }
}

/* A crossing: passes the place in the instrumented copy to the runtime, on the stack below a red zone. */
static void emit_crossing(const struct asm_unit *u, const char *label, int length, FILE *out)
{
    fprintf(out, "\tleaq\t-%d(%%rsp), %%rsp\n\tleaq\t%.*s(%%rip), %%r14\n\tpushq\t%%r14\n", RED_ZONE, length, label);
    fputs(u->options->model == ASM_LIBRARY ? "\tjmp\t*peet_rt_cross@GOTPCREL(%rip)\n" : "\tjmp\tpeet_rt_cross\n", out);
}

static void emit_crossings_of(const struct asm_unit *u, const struct asm_statement *s, FILE *out)
{
    const struct asm_insn *in = s->insn == ASM_NONE ? NULL : &u->insn[s->insn];
    char label[32];

    if (in && in->block != ASM_NONE && u->block[in->block].first == s->insn && checks_sign(u, in->block)) {
        unsigned n = count_references(u, &u->block[in->block]);
        fprintf(out, "%s%u:\n", asm_label_text[LABEL_CROSS_ROOT], in->block);
        if (n) /* the block has not begun: take its references back */
            fprintf(out, "\tleaq\t-%u(%%r15), %%r15\n", n);
        emit_crossing(u, label, snprintf(label, sizeof label, "%s%u", asm_label_text[LABEL_ROOT], in->block), out);
    }
    if (in && is_understood_call(in)) {
        fprintf(out, "%s%u:\n", asm_label_text[LABEL_CROSS_CALL], s->insn);
        emit_crossing(u, label, snprintf(label, sizeof label, "%s%u", asm_label_text[LABEL_AFTER_CALL], s->insn), out);
    }
    if (is_reload_label(u, s)) {
        fprintf(out, "%s%u:\n", asm_label_text[LABEL_CROSS_LANDING_PAD], s->symbol);
        emit_crossing(u, s->text, (int)s->length - 1, out);
    }
}

void asm_emit_counting(const struct asm_unit *u, uint32_t function, FILE *out)
{
    const struct asm_function *f = &u->function[function];
    uint32_t start = u->text.symbol[f->symbol].statement;
    struct counting c = { .copy = { .u = u, .f = f, .prefix = ASM_COUNTING, .is_counting = true, .out = out },
                          .tls_sequence = ASM_NONE };

    fputs("\t.pushsection .text\n\t.previous\n\t.p2align 4\n", out);
    for (uint32_t i = start; i < f->end; i++) {
        const struct asm_statement *s = &u->text.statement[i];
        if (s->insn != ASM_NONE)
            emit_counting_insn(&c, s);
        else if (s->kind == ASM_LABEL)
            emit_counting_label(&c, s);
        else
            asm_copy_statement(&c.copy, s);
    }
    fputs("\t.popsection\n", out);
    for (uint32_t i = start; i < f->end; i++)
        emit_crossings_of(u, &u->text.statement[i], out);
}
