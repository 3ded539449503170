/* SPDX-License-Identifier: MIT */
/* Liveness of flags: where an instruction may still read the flags, so that nothing that changes them can be inserted.
 * It is propagated backwards along the control flow until nothing changes. Flags are dead at calls, at returns and at
 * jumps to other functions. An indirect jump may lead to all labels of its function whose addresses are taken. */
#include <stdlib.h>

#include "base/mem.h"
#include "capture/asm/plan.h"

/* The search for instructions at which flags are live. */
struct flag_search {
    struct asm_unit *u;
    uint32_t *target; /* instructions to which indirect jumps may lead */
    size_t targets;
    bool *at_targets; /* by family of functions: flags are live at one of its targets */
};

static void find_indirect_targets(struct flag_search *s)
{
    for (size_t i = 0; i < s->u->text.symbols; i++) {
        const struct asm_symbol *y = &s->u->text.symbol[i];
        uint32_t insn = y->address_taken || y->is_landing_pad ? plan_insn_at(s->u, y) : ASM_NONE;
        if (insn != ASM_NONE && s->u->insn[insn].function != ASM_NONE)
            s->target[s->targets++] = insn;
    }
}

static void update_indirect_targets(struct flag_search *s)
{
    for (size_t i = 0; i < s->targets; i++) {
        const struct asm_insn *in = &s->u->insn[s->target[i]];
        s->at_targets[s->u->function[in->function].family] |= in->needs_flags;
    }
}

static bool is_needed_after(const struct asm_unit *u, uint32_t insn)
{
    uint32_t next = asm_following(u, insn);

    return next == ASM_NONE || u->insn[next].needs_flags; /* unknown code follows */
}

static bool is_needed_at(const struct asm_unit *u, uint32_t symbol)
{
    uint32_t insn = symbol == ASM_NONE ? ASM_NONE : plan_insn_at(u, &u->text.symbol[symbol]);

    if (insn != ASM_NONE)
        return u->insn[insn].needs_flags;
    /* a symbol of another file is a function */
    return symbol == ASM_NONE || u->text.symbol[symbol].statement != ASM_NONE;
}

/* Whether the instruction or a later one reads flags from before. */
static bool insn_needs_flags(const struct flag_search *s, uint32_t insn)
{
    const struct asm_insn *in = &s->u->insn[insn];

    if (in->x.reads_flags)
        return true;
    if (in->x.sets_all_flags)
        return false;
    switch (in->x.insn.class) {
    case PEET_CL_call:
    case PEET_CL_call_indirect:
    case PEET_CL_return: return false;
    case PEET_CL_jump: return is_needed_at(s->u, in->target);
    case PEET_CL_jump_indirect:
        return in->function == ASM_NONE || s->u->has_stored_labels
               || s->at_targets[s->u->function[in->function].family];
    case PEET_CL_branch: return is_needed_at(s->u, in->target) || is_needed_after(s->u, insn);
    default: return is_needed_after(s->u, insn);
    }
}

static bool propagate_flags(struct flag_search *s)
{
    bool more = false;

    update_indirect_targets(s);
    for (size_t i = s->u->text.insns; i-- > 0;) {
        struct asm_insn *in = &s->u->insn[i];
        if (in->needs_flags || !insn_needs_flags(s, (uint32_t)i))
            continue;
        in->needs_flags = more = true;
    }
    return more;
}

void asm_unit_find_flags(struct asm_unit *u)
{
    struct flag_search s = { .u = u,
                             .target = mem_alloc(u->text.symbols + 1, sizeof *s.target),
                             .at_targets = mem_alloc(u->functions + 1, sizeof *s.at_targets) };

    find_indirect_targets(&s);
    while (propagate_flags(&s))
        ;
    free(s.target);
    free(s.at_targets);
}
