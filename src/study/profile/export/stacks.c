/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "study/profile/export/export.h"

/* A line of output: a call path, and its cycles. */
struct path_stack {
    char *text;                                /* functions, the outermost first, joined by ';' */
    uint64_t compute, stall, wait[TIME_COUNT]; /* cycles; wait: by enum time_kind */
};

/* Frames of an address, the outermost first. Characters that end a frame or line, or control a terminal, are replaced. */
static void stack_put_frames(const struct profile *p, uint32_t process, uint64_t addr, bool is_first, FILE *out)
{
    struct symbols_frame frame[SYMBOLS_FRAMES];

    for (size_t i = profile_symbols(p, process, addr, frame); i-- > 0; is_first = false) {
        if (!is_first)
            fputc(';', out);
        for (const char *c = frame[i].function; *c; c++)
            fputc(*c == ';' || iscntrl((unsigned char)*c) ? ':' : *c, out);
    }
}

static bool node_is_root(const struct profile *p, uint32_t node)
{
    return p->paths.node[node].parent == node;
}

/* Paths of several processes begin with their programs. */
static void stack_put_process(const struct profile *p, uint32_t process, FILE *out)
{
    char name[PROFILE_PROGRAM];

    if (p->paths.processes < 2)
        return;
    for (const char *c = profile_process_name(p, process, name); *c; c++)
        fputc(*c == ';' || iscntrl((unsigned char)*c) ? ':' : *c, out);
    fputc(';', out);
}

static void stack_put_path(const struct profile *p, uint32_t node, FILE *out)
{
    const struct path_node *n = &p->paths.node[node];

    if (node_is_root(p, node)) {
        stack_put_process(p, n->process, out);
        return;
    }
    stack_put_path(p, n->parent, out);
    if (n->call)
        stack_put_frames(p, n->process, n->call, node_is_root(p, n->parent), out);
    else
        fputs("[unknown]", out);
}

/* The path to a block, and its own function. To be freed; NULL: no memory. */
static char *stack_text(const struct profile *p, const struct path_counts *l)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    stack_put_path(p, l->node, out);
    if (l->block == PROFILE_NO_BLOCK)
        fputs("[library]", out);
    else
        stack_put_frames(p, p->paths.node[l->node].process, peet_trace_block(p->trace, l->block)->insn[0].addr,
                         node_is_root(p, l->node), out);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static int compare_stacks(const void *a, const void *b)
{
    return strcmp(((const struct path_stack *)a)->text, ((const struct path_stack *)b)->text);
}

static void stack_put(const struct path_stack *s, FILE *out)
{
    if (s->compute)
        fprintf(out, "%s %" PRIu64 "\n", s->text, s->compute);
    if (s->stall)
        fprintf(out, "%s;[memory] %" PRIu64 "\n", s->text, s->stall);
    for (unsigned kind = 0; kind < TIME_COUNT; kind++)
        if (s->wait[kind])
            fprintf(out, "%s;[%s] %" PRIu64 "\n", s->text, time_kind_title((enum time_kind)kind), s->wait[kind]);
}

static void stack_add(struct path_stack *to, const struct path_stack *s)
{
    to->compute += s->compute;
    to->stall += s->stall;
    for (unsigned kind = 0; kind < TIME_COUNT; kind++)
        to->wait[kind] += s->wait[kind];
}

/* Blocks of one function on one path become one line. */
static void stacks_put(struct path_stack *stack, size_t count, FILE *out)
{
    if (count)
        qsort(stack, count, sizeof *stack, compare_stacks);
    for (size_t i = 0; i < count; i++)
        if (i + 1 < count && strcmp(stack[i].text, stack[i + 1].text) == 0)
            stack_add(&stack[i + 1], &stack[i]);
        else
            stack_put(&stack[i], out);
}

int profile_stacks(const struct profile *p, FILE *out)
{
    struct path_stack *stack = mem_alloc(p->by_paths + 1, sizeof *stack);
    size_t count = 0;
    bool is_whole = true;

    for (size_t i = 0; i < p->by_paths && is_whole; i++) {
        const struct path_counts *l = &p->by_path[i];
        if (l->compute + l->stall + path_counts_wait(l) == 0)
            continue;
        stack[count] = (struct path_stack){ stack_text(p, l), l->compute, l->stall, { 0 } };
        memcpy(stack[count].wait, l->wait, sizeof l->wait);
        is_whole = stack[count].text != NULL;
        count += is_whole;
    }
    if (is_whole)
        stacks_put(stack, count, out);
    for (size_t i = 0; i < count; i++)
        free(stack[i].text);
    free(stack);
    return !is_whole || ferror(out) ? -1 : 0;
}
