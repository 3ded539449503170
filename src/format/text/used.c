/* SPDX-License-Identifier: MIT */
#include "format/text/used.h"

#include <stdlib.h>

#include "base/err.h"

static int used_no_memory(struct peet_err *err)
{
    return err_set(err, PEET_ERR_MEMORY, "no memory for the symbols of a part of a trace");
}

static int used_add(struct text_used *u, const struct peet_trace *t, uint32_t process, uint64_t addr,
                    struct peet_err *err)
{
    const struct peet_symbol *s = peet_trace_symbol(t, process, addr);

    return !s || map_put(&u->symbols, (uint64_t)(uintptr_t)s, 0) ? 0 : used_no_memory(err);
}

/* A block's instructions may be those of several functions. */
static int used_add_block(struct text_used *u, const struct peet_trace *t, uint32_t process, uint32_t item,
                          struct peet_err *err)
{
    const struct peet_block *b = peet_trace_block(t, item);
    int r = 0;

    for (uint32_t i = 0; b && r == 0 && i < b->insns; i++) {
        r = used_add(u, t, process, b->insn[i].addr, err);
        if (r == 0 && b->insn[i].target)
            r = used_add(u, t, process, b->insn[i].target, err);
    }
    return r;
}

static int used_add_event(struct text_used *u, const struct peet_trace *t, uint32_t process, const struct peet_event *e,
                          struct peet_err *err)
{
    int r = used_add(u, t, process, e->site, err);

    for (uint32_t i = 0; r == 0 && i < e->args && i < PEET_EVENT_ARGS; i++)
        r = used_add(u, t, process, e->arg[i], err);
    return r;
}

static int used_read_batch(struct text_used *u, const struct peet_trace *t, uint32_t process,
                           const struct peet_batch *b, uint64_t limit, struct peet_err *err)
{
    uint64_t position = b->position;
    int r = 0;

    for (size_t i = 0; r == 0 && i < b->count && position < limit; i++) {
        const struct peet_record *x = &b->records[i];
        if (x->kind == PEET_BLOCK) {
            r = used_add_block(u, t, process, x->id, err);
            position += x->size;
        } else if (x->kind == PEET_EVENT) {
            r = used_add_event(u, t, process, &b->events[x->id], err);
        } else {
            r = used_add(u, t, process, x->addr, err);
        }
    }
    return r;
}

static int used_read_thread(struct text_used *u, struct peet_trace *t, const struct peet_thread *th, uint64_t from,
                            uint64_t limit, struct peet_err *err)
{
    struct peet_cursor *c;
    struct peet_batch b;
    int r = peet_cursor_open(t, th->id, 0, &c, err);

    if (r < 0)
        return r;
    if (from > 0)
        r = peet_cursor_seek(c, from, err);
    while (r == 0) {
        int more = peet_cursor_next(c, &b, err);
        if (more == PEET_ERR_DAMAGED)
            continue;
        if (more <= 0 || b.position >= limit) {
            r = more < 0 ? more : 0;
            break;
        }
        r = used_read_batch(u, t, th->process, &b, limit, err);
    }
    peet_cursor_free(c);
    return r;
}

int text_used_read(struct text_used *u, struct peet_trace *t, const struct text_options *o, uint64_t limit,
                   struct peet_err *err)
{
    const struct peet_thread *th;
    int r = 0;

    *u = (struct text_used){ .symbols = { .value_size = 1 } };
    for (size_t i = 0; r == 0 && (th = peet_trace_thread(t, i)); i++) {
        bool wanted = o->threads == 0;
        for (size_t k = 0; k < o->threads; k++)
            wanted = wanted || o->thread[k] == th->id;
        if (wanted)
            r = used_read_thread(u, t, th, o->from, limit, err);
    }
    return r;
}

void text_used_release(struct text_used *u)
{
    map_release(&u->symbols);
}

int text_used_module(const struct text_used *u, const struct peet_module *module, struct peet_module *ret,
                     struct peet_symbol **ret_symbol, struct peet_err *err)
{
    struct peet_symbol *symbol = calloc((size_t)module->symbols + 1, sizeof *symbol);

    if (!symbol)
        return used_no_memory(err);
    *ret = *module;
    ret->symbol = *ret_symbol = symbol;
    ret->symbols = 0;
    for (uint32_t i = 0; i < module->symbols; i++)
        if (map_find(&u->symbols, (uint64_t)(uintptr_t)&module->symbol[i], 0))
            symbol[ret->symbols++] = module->symbol[i];
    return 0;
}
