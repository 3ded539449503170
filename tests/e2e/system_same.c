/* SPDX-License-Identifier: MIT */
/* usage: system_same GUEST STEPS [THREAD]
 * Whether a recording of a guest is what single-stepping of the same program recorded, from the guest's first instruction on:
 * the same instructions, each with the same references. Addresses of references are compared below 4 GiB, where a
 * static program's data are; stacks lie elsewhere in every system. Prefetches are left out, as QEMU does not report them, and so
 * is what a kernel executed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "peet/trace.h"

#define LOW UINT64_C(0x100000000)

/* A thread's instructions one by one. */
struct walk {
    struct peet_trace *trace;
    struct peet_cursor *cursor;
    struct peet_batch batch;
    size_t at;
    const struct peet_block *block; /* the one that is being walked through, from its record on */
    unsigned index;
    uint64_t executed;
};

struct moment {
    const struct peet_insn *insn;
    struct peet_record reference[512];
    unsigned references;
};

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "system_same: %s: %s\n", what, why);
    exit(2);
}

static void open_walk(struct walk *w, const char *path, uint32_t thread)
{
    struct peet_err err;

    *w = (struct walk){ 0 };
    if (peet_trace_open(path, &w->trace, &err) < 0 || peet_cursor_open(w->trace, thread, 0, &w->cursor, &err) < 0)
        fail(path, err.text);
}

static const struct peet_record *peek(struct walk *w)
{
    struct peet_err err;

    while (w->at == w->batch.count) {
        int r = peet_cursor_next(w->cursor, &w->batch, &err);
        if (r < 0)
            fail("reading", err.text);
        if (r == 0)
            return NULL;
        w->at = 0;
    }
    return &w->batch.records[w->at];
}

static bool next(struct walk *w, struct moment *m)
{
    const struct peet_record *r;

    m->references = 0;
    while (!w->block || w->index == w->block->insns) {
        if ((r = peek(w)) == NULL)
            return false;
        w->at++;
        if (r->kind == PEET_BLOCK) {
            const struct peet_block *b = peet_trace_block(w->trace, r->id);
            w->block = b->insn[0].flags & PEET_FL_KERNEL ? NULL : b;
            w->index = 0;
        }
    }
    m->insn = &w->block->insn[w->index];
    uint32_t number = w->block->first_insn + w->index++;
    w->executed++;
    while ((r = peek(w)) != NULL && peet_is_reference(r) && r->id == number) {
        if (r->kind != PEET_PREFETCH && m->references < 512)
            m->reference[m->references++] = *r;
        w->at++;
    }
    return true;
}

static bool is_same(const struct moment *a, const struct moment *b)
{
    if (a->insn->addr != b->insn->addr || a->references != b->references)
        return false;
    for (unsigned i = 0; i < a->references; i++) {
        const struct peet_record *x = &a->reference[i], *y = &b->reference[i];
        bool elsewhere = x->addr >= LOW && y->addr >= LOW;
        if (x->kind != y->kind || x->size != y->size || (x->addr != y->addr && !elsewhere))
            return false;
    }
    return true;
}

static void show(const char *who, const struct walk *w, const struct moment *m)
{
    printf("%s: instruction %" PRIu64 " at %#" PRIx64 " class %d", who, w->executed, m->insn->addr, m->insn->class);
    for (unsigned i = 0; i < m->references; i++)
        printf(" [kind %u size %u addr %#" PRIx64 "]", m->reference[i].kind, m->reference[i].size,
               m->reference[i].addr);
    printf("\n");
}

int main(int argc, char **argv)
{
    static struct walk guest, steps;
    static struct moment a, b;

    if (argc < 3)
        fail("usage", "system_same GUEST STEPS [THREAD]");
    open_walk(&guest, argv[1], argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 0) : 0);
    open_walk(&steps, argv[2], 0);
    if (!next(&guest, &a))
        fail(argv[1], "no instructions");
    do {
        if (!next(&steps, &b))
            fail(argv[2], "the guest's first instruction is not there");
    } while (a.insn->addr != b.insn->addr);
    uint64_t references = 0;
    for (;;) {
        references += a.references;
        if (!is_same(&a, &b)) {
            show("guest", &guest, &a);
            show("steps", &steps, &b);
            return 1;
        }
        if (!next(&guest, &a))
            break;
        if (!next(&steps, &b))
            fail(argv[2], "ends before the guest's");
    }
    printf("same: %" PRIu64 " instructions, %" PRIu64 " references\n", guest.executed, references);
    return 0;
}
