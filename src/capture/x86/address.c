/* SPDX-License-Identifier: MIT */
/* Addresses of memory operands, from the registers before the instruction. */
#include <string.h>

#include "capture/x86/insn.h"

static uint64_t segment_base(const struct x86_memory *m, const struct x86_state *s)
{
    return m->segment == X86_FS ? s->fs_base : m->segment == X86_GS ? s->gs_base : 0;
}

static uint64_t address_with_index(const struct x86_memory *m, const struct x86_state *s, uint64_t index)
{
    uint64_t a = (m->base == X86_NONE ? 0 : s->gpr[m->base]) + (index << m->scale) + (uint64_t)m->disp;

    return (m->narrow ? (uint32_t)a : a) + segment_base(m, s);
}

/* Byte offset of the word that holds bit number `bit`, a signed number as wide as the operand. */
static int64_t bit_offset(const struct x86_memory *m, uint64_t bit)
{
    switch (m->size) {
    case 2: return ((int16_t)bit >> 4) * (int64_t)2;
    case 4: return ((int32_t)bit >> 5) * (int64_t)4;
    default: return ((int64_t)bit >> 6) * 8;
    }
}

uint64_t x86_address(const struct x86_memory *m, const struct x86_state *s)
{
    uint64_t index = m->index == X86_NONE || m->form == X86_GATHERED ? 0 : s->gpr[m->index];
    struct x86_memory moved = *m;

    if (m->form == X86_BYTE)
        index &= 0xff;
    if (m->form == X86_BIT)
        moved.disp += bit_offset(m, s->gpr[m->bit]);
    return address_with_index(&moved, s, index);
}

uint64_t x86_mask(const struct x86_memory *m, const struct x86_vectors *v)
{
    uint64_t mask = 0;

    if (m->mask_kind == X86_MASK_K)
        return m->elements == 64 ? v->k[m->mask] : v->k[m->mask] & (((uint64_t)1 << m->elements) - 1);
    const uint8_t *bytes = m->mask_kind == X86_MASK_MM ? v->mm[m->mask] : v->zmm[m->mask];
    for (unsigned i = 0; i < m->elements; i++)
        mask |= (uint64_t)(bytes[(i + 1) * m->size - 1] >> 7) << i;
    return mask;
}

uint64_t x86_element(const struct x86_memory *m, const struct x86_state *s, const struct x86_vectors *v, unsigned i)
{
    const uint8_t *at = v->zmm[m->index] + (size_t)i * m->index_size;
    int32_t narrow;
    int64_t wide;

    memcpy(&narrow, at, sizeof narrow);
    if (m->index_size == 4)
        return address_with_index(m, s, (uint64_t)(int64_t)narrow);
    memcpy(&wide, at, sizeof wide);
    return address_with_index(m, s, (uint64_t)wide);
}
