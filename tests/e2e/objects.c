/* SPDX-License-Identifier: MIT */
/* usage: objects TRACE
 * Prints the data objects that a trace refers to, tab-separated: references, kind, name, type, blocks, bytes, and the member that most of the
 * references are to. A thread is read where another one joins it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "peet/trace.h"
#include "study/objects/objects.h"

enum { STACK = 4096, THREADS = 256, MEMBERS = 64 };

struct stack {
    uint64_t call[STACK], back[STACK]; /* calls, and where control continues after them */
    unsigned depth;
};

struct count {
    uint64_t all, times[MEMBERS];
    char member[MEMBERS][80];
};

static struct stack stacks[THREADS];
static struct count *counts;
static uint32_t counted;

static void walk(struct stack *s, const struct peet_block *b)
{
    for (unsigned k = s->depth, n = 0; k > 0 && n < 64; k--, n++)
        if (s->back[k - 1] == b->insn[0].addr) {
            s->depth = k - 1;
            break;
        }
    for (unsigned i = 0; i < b->insns; i++) {
        const struct peet_insn *x = &b->insn[i];
        if ((x->class == PEET_CL_call || x->class == PEET_CL_call_indirect) && s->depth < STACK)
            s->call[s->depth] = x->addr, s->back[s->depth++] = x->addr + x->length;
        else if (x->class == PEET_CL_return && s->depth > 0)
            s->depth--;
    }
}

static void tell(struct objects *o, uint32_t process, uint32_t thread, const struct peet_event *e)
{
    struct stack *s = &stacks[thread % THREADS];
    uint64_t path[OBJECT_PATH] = { 0 };

    for (unsigned i = 0; i < OBJECT_PATH && i < s->depth; i++)
        path[i] = s->call[s->depth - 1 - i];
    objects_event(o, process, thread, e, path);
}

static void count_member(struct objects *o, uint32_t n, uint64_t offset)
{
    char text[80];

    if (!objects_member(o, n, offset, true, text, sizeof text))
        return;
    for (int i = 0; i < MEMBERS; i++)
        if (counts[n].times[i] == 0 || strcmp(counts[n].member[i], text) == 0) {
            memcpy(counts[n].member[i], text, sizeof text);
            counts[n].times[i]++;
            return;
        }
}

static void refer(struct peet_trace *t, struct objects *o, uint32_t process, uint32_t thread,
                  const struct peet_record *r)
{
    const struct peet_insn *insn = peet_trace_insn(t, r->id);
    uint64_t start, end;
    uint32_t n = objects_find(o, process, thread, r->addr, insn ? insn->addr : 0, &start, &end);

    while (counted <= n) {
        counts = mem_room(counts, counted, sizeof *counts);
        memset(&counts[counted++], 0, sizeof *counts);
    }
    counts[n].all++;
    if (counts[n].all < 100000)
        count_member(o, n, objects_offset(o, process, r->addr));
}

static int by_count(const void *a, const void *b)
{
    uint64_t x = counts[*(const uint32_t *)a].all, y = counts[*(const uint32_t *)b].all;

    return x > y ? -1 : x < y;
}

static void print(struct objects *o)
{
    static const char *const kinds[] = { "unknown",      "named", "heap", "variable",
                                         "thread-local", "stack", "file", "mapped" };
    uint32_t *order = mem_alloc(counted + 1, sizeof *order);

    for (uint32_t i = 0; i < counted; i++)
        order[i] = i;
    qsort(order, counted, sizeof *order, by_count);
    for (uint32_t i = 0; i < counted; i++) {
        const struct object_info *f = objects_info(o, order[i]);
        const struct count *c = &counts[order[i]];
        int best = 0;
        for (int k = 1; k < MEMBERS; k++)
            best = c->times[k] > c->times[best] ? k : best;
        if (c->all)
            printf("%" PRIu64 "\t%s\t%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t%s\n", c->all, kinds[f->kind], f->name,
                   f->type ? f->type : "-", f->blocks, f->bytes, c->times[best] ? c->member[best] : "-");
    }
    free(order);
}

static bool was_read[THREADS];

static int run(struct peet_trace *t, struct objects *o, uint32_t number, struct peet_err *err)
{
    const struct peet_thread *thread = NULL;
    struct peet_cursor *c;
    struct peet_batch b;

    for (size_t i = 0; (thread = peet_trace_thread(t, i)) && thread->id != number; i++)
        ;
    if (!thread || was_read[number % THREADS])
        return 0;
    was_read[number % THREADS] = true;
    int r = peet_cursor_open(t, number, 0, &c, err);
    while (r >= 0 && (r = peet_cursor_next(c, &b, err)) > 0)
        for (size_t i = 0; i < b.count && r >= 0; i++) {
            const struct peet_record *x = &b.records[i];
            if (x->kind == PEET_BLOCK)
                walk(&stacks[number % THREADS], peet_trace_block(t, x->id));
            else if (x->kind == PEET_EVENT && b.events[x->id].kind == PEET_EV_thread_join)
                r = run(t, o, (uint32_t)b.events[x->id].arg[0], err);
            else if (x->kind == PEET_EVENT)
                tell(o, thread->process, number, &b.events[x->id]);
            else if (peet_is_reference(x))
                refer(t, o, thread->process, number, x);
        }
    peet_cursor_free(c);
    return r;
}

int main(int argc, char **argv)
{
    struct peet_err err = { 0 };
    struct peet_trace *t = NULL;
    struct symbols *w = NULL;
    struct objects *o = NULL;

    if (argc != 2) {
        fprintf(stderr, "usage: objects TRACE\n");
        return 2;
    }
    if (peet_trace_open(argv[1], &t, &err) < 0 || symbols_open(t, &w, &err) < 0 || objects_new(t, w, &o, &err) < 0) {
        fprintf(stderr, "objects: %s\n", err.text);
    } else {
        const struct peet_thread *thread;
        for (size_t i = 0; (thread = peet_trace_thread(t, i)) && run(t, o, thread->id, &err) == 0; i++)
            ;
        print(o);
    }
    objects_free(o);
    symbols_free(w);
    peet_trace_free(t);
    free(counts);
    return err.code ? 1 : 0;
}
