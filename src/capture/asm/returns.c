/* SPDX-License-Identifier: MIT */
/* Where the cursor stays in %r15, so that it is neither stored nor loaded (docs/design/instrumentation.md). */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "capture/asm/unit.h"

/* ---- which indirect jumps stay in their functions ---- */

/* A rule for the frame address, from unwinding directives: register plus offset. */
struct cfi_frame {
    bool is_known;    /* the other fields are set */
    long reg, offset; /* DWARF number of the register; bytes */
};

enum { DWARF_RSP = 7, RETURN_BYTES = 8, REMEMBERED = 8 };

/* The state of unwinding directives at a statement. */
struct cfi_state {
    struct cfi_frame now, remembered[REMEMBERED]; /* remembered: by .cfi_remember_state */
    unsigned depth;                               /* elements of `remembered` in use */
};

static void update_frame(struct cfi_state *f, const struct asm_statement *s)
{
    char text[64];
    char *end;

    if (asm_is(s, ".cfi_startproc")) {
        *f = (struct cfi_state){ .now = { true, DWARF_RSP, RETURN_BYTES } };
    } else if (asm_is(s, ".cfi_remember_state") && f->depth < REMEMBERED) {
        f->remembered[f->depth++] = f->now;
    } else if (asm_is(s, ".cfi_restore_state") && f->depth > 0) {
        f->now = f->remembered[--f->depth];
    } else if (asm_is_one_of(s, " .cfi_endproc .cfi_escape .cfi_remember_state .cfi_restore_state ")) {
        f->now.is_known = false;
    } else if (asm_is_one_of(s, " .cfi_def_cfa .cfi_def_cfa_register .cfi_def_cfa_offset .cfi_adjust_cfa_offset ")) {
        size_t word = asm_word(s), length = s->length - word;
        if (length >= sizeof text)
            length = sizeof text - 1;
        memcpy(text, s->text + word, length);
        text[length] = '\0';
        long first = strtol(text, &end, 0);
        f->now.is_known &= end > text;
        if (asm_is(s, ".cfi_def_cfa_offset")) {
            f->now.offset = first;
        } else if (asm_is(s, ".cfi_adjust_cfa_offset")) {
            f->now.offset += first;
        } else {
            f->now.reg = first;
            if (asm_is(s, ".cfi_def_cfa"))
                f->now.offset = *end ? strtol(end + 1, NULL, 0) : -1;
        }
    }
}

/* Marks instructions that run while the frame is set up. A jump that ends a function finds the stack as its caller left
 * it. Any other indirect jump is a switch, or leads to a label whose address was stored. */
static void find_framed_insns(struct asm_unit *u)
{
    struct cfi_state *of_section = mem_alloc(u->text.sections, sizeof *of_section);

    memset(of_section, 0, u->text.sections * sizeof *of_section);
    for (size_t i = 0; i < u->text.statements; i++) {
        const struct asm_statement *s = &u->text.statement[i];
        struct cfi_state *f = &of_section[s->section];
        if (s->kind == ASM_DIRECTIVE)
            update_frame(f, s);
        else if (s->insn != ASM_NONE)
            u->insn[s->insn].has_frame = f->now.is_known && (f->now.reg != DWARF_RSP || f->now.offset != RETURN_BYTES);
    }
    free(of_section);
}

/* ---- which functions keep the cursor ---- */

static struct asm_function *family_head(const struct asm_unit *u, uint32_t function)
{
    return &u->function[u->function[function].family];
}

/* Propagates keeps_cursor and skips_spill along a jump between functions. Returns whether something changed. */
static bool propagate_jump(const struct asm_unit *u, const struct asm_insn *in)
{
    struct asm_function *from = family_head(u, in->function), *to;
    const struct asm_symbol *y = in->target == ASM_NONE ? NULL : &u->text.symbol[in->target];
    uint32_t own = y ? asm_local_target(u, in->target) : ASM_NONE;
    bool returned = from->keeps_cursor;

    if (own != ASM_NONE) {
        to = family_head(u, own);
        bool was_silent = to->skips_spill;
        from->keeps_cursor &= to->keeps_cursor;
        to->skips_spill &= from->skips_spill;
        return to->skips_spill != was_silent || from->keeps_cursor != returned;
    }
    bool is_label = y && y->statement != ASM_NONE && (y->function == ASM_NONE || u->function[y->function].is_cold);
    from->keeps_cursor &= is_label;
    return from->keeps_cursor != returned;
}

void asm_unit_find_returns(struct asm_unit *u)
{
    bool more = true;

    find_framed_insns(u);
    for (size_t i = 0; i < u->functions; i++) {
        u->function[i].keeps_cursor = asm_is_recorded(u, (uint32_t)i);
        u->function[i].skips_spill = u->function[i].keeps_cursor && !u->function[i].has_stub;
    }
    while (more) {
        more = false;
        for (size_t i = 0; i < u->text.insns; i++) {
            const struct asm_insn *in = &u->insn[i];
            uint8_t class = in->x.insn.class;
            if (in->function == ASM_NONE || in->is_uninterpreted || !asm_is_recorded(u, in->function))
                continue;
            if (class == PEET_CL_branch || class == PEET_CL_jump
                || (class == PEET_CL_jump_indirect && !asm_jumps_within_function(u, in)))
                more |= propagate_jump(u, in);
        }
        for (size_t i = 0; i < u->functions; i++) {
            struct asm_function *f = &u->function[i];
            more |= f->skips_spill && !f->keeps_cursor;
            f->skips_spill &= f->keeps_cursor;
        }
    }
}

bool asm_jumps_within_function(const struct asm_unit *u, const struct asm_insn *in)
{
    return in->has_frame && !u->has_stored_labels;
}

bool asm_keeps_cursor(const struct asm_unit *u, uint32_t function)
{
    return family_head(u, function)->keeps_cursor;
}

bool asm_skips_spill(const struct asm_unit *u, uint32_t function)
{
    return family_head(u, function)->skips_spill;
}
