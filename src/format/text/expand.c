/* SPDX-License-Identifier: MIT */
/* The slots of a piece, in order: per operand its address, its element count if it has one, the words of its value;
 * then, if there are predicates, one slot with a bit for each predicated operand, from bit 0 on.
 * An instruction that needs more slots than a block may have is a piece whose operands share an address where they differ by a constant. */
#include "format/text/expand.h"

#include <inttypes.h>

#include "base/err.h"
#include "format/schema/schema.h"

static unsigned value_words(const struct peet_operand *o)
{
    return o->value ? (o->size + 7) / 8 : 0;
}

/* Whether operand i differs from the one before by a constant. */
static bool follows_operand(const struct peet_block *b, unsigned first, unsigned i)
{
    const struct peet_operand *o = &b->operand[i], *before = o - 1;

    return i > first && o->base == before->base && o->index == before->index && o->scale == before->scale;
}

/* Slots of the operands [first, end) of b; is_shared: those that follow another one have its address slot. */
static unsigned slots_of(const struct peet_block *b, unsigned first, unsigned end, bool is_shared)
{
    unsigned slots = 0, mask = 0;

    for (unsigned i = first; i < end; i++) {
        const struct peet_operand *o = &b->operand[i];
        slots += (is_shared && follows_operand(b, first, i) ? 0u : 1u) + (o->size_src != 0) + value_words(o);
        mask |= o->predicate != 0;
    }
    return slots + mask;
}

/* Index of the first operand, from `from` on, that does not belong to the first `insns` instructions. */
static unsigned operands_before(const struct peet_block *b, unsigned from, unsigned insns)
{
    while (from < b->operands && b->operand[from].insn < insns)
        from++;
    return from;
}

/* Number of instructions from `first` on that fit into a piece; 0: not even one does. */
static unsigned piece_length(const struct peet_block *b, unsigned first, unsigned first_operand)
{
    unsigned n = 0, end = first_operand;

    while (first + n < b->insns) {
        end = operands_before(b, end, first + n + 1);
        if (slots_of(b, first_operand, end, n == 0) > PEET_SLOTS)
            break;
        n++;
    }
    return n;
}

static int expansion_add_piece(const struct peet_block *b, unsigned first, unsigned insns, unsigned first_operand,
                               struct arena *arena, struct text_piece *ret, struct peet_err *err)
{
    unsigned end = operands_before(b, first_operand, first + insns), slot = PEET_SRC_SLOT;
    bool is_shared = slots_of(b, first_operand, end, false) > PEET_SLOTS;
    uint8_t bit = 0;
    struct peet_operand *operand = arena_alloc(arena, (end - first_operand) * sizeof *operand);

    if (!operand)
        return err_set(err, PEET_ERR_MEMORY, "no memory to write a block as text");
    for (unsigned i = first_operand; i < end; i++) {
        const struct peet_operand *o = &b->operand[i];
        struct peet_operand n = {
            .insn = (uint16_t)(o->insn - first), .kind = o->kind, .size = o->size, .down = o->down
        };
        if (is_shared && follows_operand(b, first_operand, i)) {
            const struct peet_operand *before = &operand[i - first_operand - 1];
            n.base = before->base;
            n.disp = before->disp + o->disp - b->operand[i - 1].disp;
        } else {
            n.base = (uint8_t)slot++;
        }
        if (o->size_src)
            n.size_src = (uint8_t)slot++;
        if (o->value)
            n.value = (uint8_t)slot;
        slot += value_words(o);
        operand[i - first_operand] = n;
    }
    for (unsigned i = first_operand; i < end; i++)
        if (b->operand[i].predicate) {
            operand[i - first_operand].predicate = (uint8_t)slot;
            operand[i - first_operand].predicate_bit = bit++;
        }
    slot += bit > 0;
    ret->first_operand = (uint16_t)first_operand;
    ret->block = (struct peet_block){
        .insns = (uint16_t)insns,
        .operands = (uint16_t)(end - first_operand),
        .slots = (uint16_t)(slot - PEET_SRC_SLOT),
        .insn = b->insn + first,
        .operand = operand,
    };
    return 0;
}

int text_expand(const struct peet_block *b, struct arena *arena, struct text_expansion *ret, struct peet_err *err)
{
    struct text_expansion e = { 0 };
    unsigned first_operand = 0, n;

    for (unsigned first = 0; first < b->insns; first += n, e.pieces++) {
        n = piece_length(b, first, first_operand);
        if (n == 0)
            return err_set(err, PEET_ERR_LIMIT,
                           "the instruction at 0x%" PRIx64
                           " needs more than %d addresses and values: use the compact form",
                           b->insn[first].addr, PEET_SLOTS);
        first_operand = operands_before(b, first_operand, first + n);
    }
    e.piece = arena_alloc(arena, e.pieces * sizeof *e.piece);
    if (!e.piece)
        return err_set(err, PEET_ERR_MEMORY, "no memory to write a block as text");
    first_operand = 0;
    for (unsigned i = 0, first = 0; i < e.pieces; i++, first += n) {
        n = piece_length(b, first, first_operand);
        int r = expansion_add_piece(b, first, n, first_operand, arena, &e.piece[i], err);
        if (r < 0)
            return r;
        first_operand += e.piece[i].block.operands;
    }
    *ret = e;
    return 0;
}

void text_expand_slots(const struct peet_block *b, const struct text_piece *piece, const uint64_t *src,
                       uint64_t *ret_slots)
{
    for (unsigned i = 0; i < piece->block.slots; i++)
        ret_slots[i] = 0;
    for (unsigned i = 0; i < piece->block.operands; i++) {
        const struct peet_operand *o = &b->operand[piece->first_operand + i], *n = &piece->block.operand[i];
        if (n->value)
            for (unsigned j = 0; j < value_words(o); j++)
                ret_slots[n->value - PEET_SRC_SLOT + j] = src[o->value + j];
        if (n->predicate && src[o->predicate] >> o->predicate_bit & 1)
            ret_slots[n->predicate - PEET_SRC_SLOT] |= (uint64_t)1 << n->predicate_bit;
        if (operand_bytes(o, src) == 0)
            continue;
        ret_slots[n->base - PEET_SRC_SLOT] =
            src[o->base] + (src[o->index] << o->scale) + (uint64_t)o->disp - (uint64_t)n->disp;
        if (n->size_src)
            ret_slots[n->size_src - PEET_SRC_SLOT] = src[o->size_src];
    }
}
