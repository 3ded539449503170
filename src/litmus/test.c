/* SPDX-License-Identifier: MIT */
#include "litmus/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

static const char *const REGISTERS[] = { "EAX", "EBX", "ECX", "EDX", "ESI", "EDI", "EBP", "ESP" };
enum { REGISTER_COUNT = sizeof REGISTERS / sizeof *REGISTERS };

static const char *test_string(struct litmus_test *t, const char *s, size_t length)
{
    char *copy = arena_string(&t->arena, s, length);

    return copy ? copy : "";
}

struct litmus_test *test_new(const char *name, size_t length)
{
    struct litmus_test *t = mem_alloc(1, sizeof *t);

    t->name = test_string(t, name, length);
    return t;
}

void litmus_free(struct litmus_test *t)
{
    if (!t)
        return;
    for (uint32_t i = 0; i < t->threads; i++) {
        free(t->thread[i].instruction);
        free(t->thread[i].reg);
    }
    free(t->thread);
    free(t->location);
    free(t->observed);
    arena_release(&t->arena);
    free(t);
}

uint32_t test_location(struct litmus_test *t, const char *name, size_t length)
{
    for (uint32_t i = 0; i < t->locations; i++)
        if (strlen(t->location[i].name) == length && memcmp(t->location[i].name, name, length) == 0)
            return i;
    if (t->locations == LITMUS_MAX_LOCATIONS)
        return UINT32_MAX;
    t->location = mem_room(t->location, t->locations, sizeof *t->location);
    t->location[t->locations] = (struct litmus_location){ .name = test_string(t, name, length) };
    return t->locations++;
}

const char *test_register_at(uint32_t i)
{
    return i < REGISTER_COUNT ? REGISTERS[i] : NULL;
}

const char *test_register_name(const char *word, size_t length)
{
    for (uint32_t i = 0; i < REGISTER_COUNT; i++)
        if (length == 3 && strncasecmp(word, REGISTERS[i], 3) == 0)
            return REGISTERS[i];
    return NULL;
}

bool test_reach_threads(struct litmus_test *t, uint32_t threads)
{
    if (threads > LITMUS_MAX_THREADS)
        return false;
    while (t->threads < threads) {
        t->thread = mem_room(t->thread, t->threads, sizeof *t->thread);
        t->thread[t->threads++] = (struct litmus_thread){ 0 };
    }
    return true;
}

uint32_t test_register(struct litmus_test *t, uint32_t thread, const char *canonical)
{
    struct litmus_thread *h = &t->thread[thread];

    for (uint32_t i = 0; i < h->registers; i++)
        if (strcmp(h->reg[i].name, canonical) == 0)
            return i;
    h->reg = mem_room(h->reg, h->registers, sizeof *h->reg);
    h->reg[h->registers] = (struct litmus_register){ .name = canonical };
    return h->registers++;
}

uint32_t test_observe(struct litmus_test *t, bool is_register, uint32_t thread, uint32_t index)
{
    struct litmus_observed o = { .is_register = is_register, .thread = thread, .index = index };
    char name[16];

    for (uint32_t i = 0; i < t->observables; i++) {
        const struct litmus_observed *p = &t->observed[i];
        if (p->is_register == is_register && p->thread == thread && p->index == index)
            return i;
    }
    snprintf(name, sizeof name, "%u:%s", thread, is_register ? t->thread[thread].reg[index].name : "");
    o.name = is_register ? test_string(t, name, strlen(name)) : t->location[index].name;
    t->observed = mem_room(t->observed, t->observables, sizeof *t->observed);
    t->observed[t->observables] = o;
    return t->observables++;
}

bool test_add(struct litmus_test *t, uint32_t thread, const struct litmus_instruction *i)
{
    struct litmus_thread *h = &t->thread[thread];
    uint32_t accesses = 1;

    for (uint32_t j = 0; j < h->instructions; j++)
        accesses += h->instruction[j].kind != LITMUS_REGISTER;
    if (accesses > LITMUS_MAX_ACCESSES)
        return false;
    h->instruction = mem_room(h->instruction, h->instructions, sizeof *h->instruction);
    struct litmus_instruction *copy = &h->instruction[h->instructions++];
    *copy = *i;
    copy->text = test_string(t, i->text, strlen(i->text));
    t->has_flags |= i->flags != 0;
    return true;
}

int32_t litmus_atomic_result(enum litmus_atomic atomic, int32_t old, int32_t value, int32_t other)
{
    uint32_t a = (uint32_t)old, b = (uint32_t)value;

    switch (atomic) {
    case LITMUS_ATOMIC_xchg: return value;
    case LITMUS_ATOMIC_add: return (int32_t)(a + b);
    case LITMUS_ATOMIC_sub: return (int32_t)(a - b);
    case LITMUS_ATOMIC_and: return (int32_t)(a & b);
    case LITMUS_ATOMIC_or: return (int32_t)(a | b);
    case LITMUS_ATOMIC_xor: return (int32_t)(a ^ b);
    case LITMUS_ATOMIC_not: return (int32_t)~a;
    case LITMUS_ATOMIC_neg: return (int32_t)(0 - a);
    case LITMUS_ATOMIC_cmpxchg: return old == other ? value : old;
    }
    return old;
}
