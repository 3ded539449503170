/* SPDX-License-Identifier: MIT */
/* Hooks: calls of the runtime before accesses that other threads may see, and before fences (docs/design/live-orders.md). Accesses relative to
 * %rsp and to %fs are the thread's own. Left out: repeated, masked and gathered operands, and those of jumps and calls; their accesses
 * are made at once. */
#include "capture/asm/unit.h"
#include "capture/protocol/shared_memory.h"

enum { LARGEST = 64, RED_ZONE = 128 };

static bool may_be_shared(const struct x86_memory *m)
{
    return m->form == X86_PLAIN && m->segment == X86_FLAT && m->base != X86_RSP && m->kind != PEET_PREFETCH
           && m->size >= 1 && m->size <= LARGEST;
}

static bool transfers_control(const struct asm_insn *in)
{
    switch (in->x.insn.class) {
    case PEET_CL_branch:
    case PEET_CL_jump:
    case PEET_CL_jump_indirect:
    case PEET_CL_call:
    case PEET_CL_call_indirect:
    case PEET_CL_return: return true;
    default: return false;
    }
}

/* Calls the hook; %r14 has the address. Flags and the red zone are kept. */
static void emit_hook(const struct asm_unit *u, unsigned what, FILE *out)
{
    fprintf(out, "\tleaq\t-%d(%%rsp), %%rsp\n\tmovq\t$%u, (%%rsp)\n", RED_ZONE + 8, what);
    fputs(u->options->model == ASM_LIBRARY ? "\tcall\t*peet_rt_access@GOTPCREL(%rip)\n" : "\tcall\tpeet_rt_access\n",
          out);
    fputs("\tleaq\t8(%rsp), %rsp\n", out); /* it has taken the red zone's bytes */
}

void asm_emit_hooks(const struct asm_unit *u, const struct asm_insn *in, FILE *out)
{
    uint16_t flags = in->x.insn.flags;
    unsigned fence = (flags & PEET_FL_FENCE_FULL ? RAW_HOOK_FULL : 0) | (flags & PEET_FL_FENCE_SS ? RAW_HOOK_STORES : 0)
                     | (flags & PEET_FL_FENCE_LL ? RAW_HOOK_LOADS : 0);

    if (fence)
        emit_hook(u, fence, out);
    for (unsigned i = 0; i < in->x.memories && !transfers_control(in); i++) {
        const struct x86_memory *m = &in->x.memory[i];
        if (!may_be_shared(m))
            continue;
        asm_emit_address(u, in, i, out);
        emit_hook(u, m->size | (unsigned)m->kind << RAW_HOOK_KIND | (flags & PEET_FL_ATOMIC ? RAW_HOOK_ATOMIC : 0),
                  out);
    }
}
