/* SPDX-License-Identifier: MIT */
/* The predictor states of a chunk. Encoder and decoder share them: both must find the same states in the same order. */
#include "format/codec/item_state.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"

int item_states_init(struct item_states *x)
{
    *x = (struct item_states){ .none = calloc(1, sizeof(struct item_state)) };
    if (!x->none)
        return -1;
    for (int i = 0; i < RANKS; i++)
        x->none->next[i] = x->none;
    x->none->key = UINT64_MAX;
    x->none->special = SPECIAL_STATE | SPECIAL_OTHER;
    return 0;
}

void item_states_release(struct item_states *x)
{
    arena_release(&x->arena);
    free(x->of);
    free(x->used);
    free(x->none);
    *x = (struct item_states){ 0 };
}

void item_states_forget(struct item_states *x)
{
    for (size_t i = 0; i < x->used_count; i++)
        x->of[x->used[i]->number] = NULL;
    x->used_count = 0;
    memset(x->by_key, 0, sizeof x->by_key);
    arena_reset(&x->arena);
    for (int i = 0; i < RANKS; i++)
        x->none->next[i] = x->none;
    x->none->executions = 0;
}

static int item_states_make_room(struct item_states *x, uint64_t number)
{
    if (number >= x->room) {
        size_t room = (number + 1) * 2;
        struct item_state **of = realloc(x->of, room * sizeof(struct item_state *));
        if (!of)
            return -1;
        memset(of + x->room, 0, (room - x->room) * sizeof(struct item_state *));
        x->of = of;
        x->room = room;
    }
    if (x->used_count == x->used_room) {
        size_t room = x->used_room * 2 + 64;
        struct item_state **used = realloc(x->used, room * sizeof(struct item_state *));
        if (!used)
            return -1;
        x->used = used;
        x->used_room = room;
    }
    return 0;
}

static unsigned item_special(const struct item *item)
{
    bool state = item->kind == ITEM_LOOP || item->dynamic || item->effects
                 || (item->kind == ITEM_EVENT && item->event->kind == PEET_EV_set_register);
    bool machine = item->kind == ITEM_BLOCK && (item->block->computes > 0 || item->effects);
    bool other = item->kind != ITEM_BLOCK || item->dynamic;
    bool moves = !other && item->block->computes == 0 && item->block->effects == 1;

    return (state ? SPECIAL_STATE : 0u) | (machine ? SPECIAL_MACHINE : 0u) | (other ? SPECIAL_OTHER : 0u)
           | (moves ? SPECIAL_ONE_EFFECT : 0u);
}

static uint64_t low_bits(unsigned n)
{
    return n < 64 ? ((uint64_t)1 << n) - 1 : UINT64_MAX;
}

static void item_state_set_number(struct item_state *c, uint64_t number)
{
    uint8_t bytes[10] = { 0 };

    c->leb_bytes = (uint8_t)(leb_put(bytes, number) - bytes);
    c->leb = get_le32(bytes);
}

struct item_state *item_states_get(struct item_states *x, const struct schema *s, uint64_t number)
{
    if (number < x->room && x->of[number])
        return x->of[number];
    const struct item *item = schema_item(s, number);
    if (!item || item_states_make_room(x, number) < 0)
        return NULL;
    uint32_t padded = (item->slots + SLOT_PAD - 1u) / SLOT_PAD * SLOT_PAD;
    struct item_state *c = arena_alloc(&x->arena, sizeof *c + 2 * padded * sizeof(uint64_t));
    if (!c)
        return NULL;
    for (int i = 0; i < RANKS; i++)
        c->next[i] = x->none;
    c->item = item;
    c->number = (uint32_t)number;
    c->key = number;
    c->slots = item->slots;
    c->padded = (uint16_t)padded;
    c->special = (uint8_t)item_special(item);
    c->mask_bytes = (uint8_t)((item->slots + 7) / 8);
    c->all = low_bits(item->slots);
    item_state_set_number(c, number);
    if (item->kind == ITEM_BLOCK) {
        c->operands = item->block->operands;
        c->indexed = item->indexed;
        c->plan = item->plan;
        c->head = block_record(item->block);
    }
    x->of[number] = x->used[x->used_count++] = c;
    return c;
}

struct item_state *item_states_resolve(struct item_states *x, const struct schema *s, const struct peet_names *names,
                                       uint64_t key, struct peet_err *err)
{
    uint64_t number = key;
    uint32_t item;

    if (names) {
        if (names->item(names->context, key, &item, err) < 0)
            return NULL;
        number = item;
    }
    struct item_state *c = item_states_get(x, s, number);
    if (!c) {
        err_set(err, PEET_ERR_USAGE, "item %" PRIu64 " is not defined", key);
        return NULL;
    }
    c->key = key;
    if (c->item->kind == ITEM_LOOP && names && names->trips) {
        c->trips = names->trips(names->context, key);
        bool is_simple = c->trips && c->item->linear && c->trips->end + 1u == c->slots;
        c->special = (uint8_t)(is_simple ? c->special | SPECIAL_COUNTED_LOOP : c->special & ~SPECIAL_COUNTED_LOOP);
    }
    return c;
}

void loop_words_to_slots(const struct peet_trips *t, unsigned count, const struct peet_names *names, uint64_t key,
                         uint64_t *slots)
{
    if (t) {
        uint64_t trips = loop_iterations(t, slots);
        for (unsigned i = t->end; i + 1u < count; i++)
            slots[i] = slots[i + 1];
        slots[count - 1] = trips;
    } else if (names && names->loop) {
        names->loop(names->context, key, slots);
    }
}

void item_state_complete_loop(const struct item_state *c, const struct peet_names *names, uint64_t *slots)
{
    loop_words_to_slots(c->trips, c->slots, names, c->key, slots);
}
