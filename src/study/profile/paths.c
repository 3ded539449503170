/* SPDX-License-Identifier: MIT */
#include "study/profile/paths.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { DEEPEST = 1 << 14 }; /* calls below are as if their callers made them */

struct path_call {
    uint64_t site, back; /* the call; where it returns to */
    uint32_t node;
};

struct path_thread {
    struct path_call *call;
    uint32_t depth, deepest; /* so far: there is room for as many */
    uint32_t lost;           /* calls that were too deep */
    bool has_called;         /* the last block did, */
    bool has_returned;       /*   or has returned from this one: */
    bool has_jumped;         /*   or has jumped */
    uint32_t base;           /* where its path begins */
    bool is_lost;            /* nobody knows where it is, and it has done nothing since */
    struct path_call last;
};

void paths_init(struct paths *p, const struct peet_trace *t)
{
    *p = (struct paths){ .trace = t, .children.value_size = sizeof(uint32_t) };
    p->node = mem_room(NULL, 0, sizeof *p->node);
    p->node[p->nodes++] = (struct path_node){ 0 };
}

void paths_release(struct paths *p)
{
    for (uint32_t i = 0; i < p->threads; i++)
        free(p->thread[i].call);
    free(p->thread);
    free(p->node);
    map_release(&p->children);
    *p = (struct paths){ 0 };
}

static struct path_thread *thread_at(struct paths *p, uint32_t thread)
{
    while (p->threads <= thread) {
        p->thread = mem_room(p->thread, p->threads, sizeof *p->thread);
        p->thread[p->threads++] = (struct path_thread){ 0 };
    }
    return &p->thread[thread];
}

static uint32_t top(const struct path_thread *t)
{
    return t->depth ? t->call[t->depth - 1].node : t->base;
}

/* The node to which a call led on the way to this one; 0: none. */
static uint32_t before(const struct paths *p, uint32_t node, uint64_t site)
{
    while (node && p->node[node].call != site)
        node = p->node[node].parent;
    return node;
}

/* Where a call leads. One that led here before, and has not returned, leads there again: what recursion does is added up, else there would be as many paths as
 * it has branches. */
static uint32_t child(struct paths *p, uint32_t parent, uint64_t site)
{
    if (p->node[parent].last_call == site)
        return p->node[parent].last;
    uint32_t *node = map_put(&p->children, site, parent);

    assert(node);
    if (*node == 0)
        *node = before(p, parent, site);
    if (*node == 0) {
        p->node = mem_room(p->node, p->nodes, sizeof *p->node);
        p->node[p->nodes] = (struct path_node){ parent, site, 0, 0 };
        *node = p->nodes++;
    }
    p->node[parent].last_call = site;
    return p->node[parent].last = *node;
}

static void push(struct path_thread *t, const struct path_call *call)
{
    if (t->depth == DEEPEST) {
        t->lost++;
        return;
    }
    if (t->depth == t->deepest)
        t->call = mem_room(t->call, t->deepest++, sizeof *t->call);
    t->call[t->depth++] = *call;
}

static void pop(struct path_thread *t)
{
    if (t->lost > 0)
        t->lost--;
    else if (t->depth > 0)
        t->depth--;
}

/* Back to the call that returns there; false: there is none. */
static bool unwind(struct path_thread *t, uint64_t back)
{
    for (uint32_t i = t->depth; i-- > 0;)
        if (t->call[i].back == back) {
            t->depth = i;
            t->lost = 0;
            return true;
        }
    return false;
}

uint32_t paths_block(struct paths *p, uint32_t thread, const struct peet_record *block)
{
    const struct peet_block *b = peet_trace_block(p->trace, block->id);
    const struct path_thread *t = thread_at(p, thread);
    struct solo_way way;

    paths_turn(p, thread, block->addr, &b->insn[b->insns - 1],
               t->has_called || t->has_returned ? SOLO_MOVES
               : t->has_jumped                  ? SOLO_JUMPS
                                                : SOLO_ON,
               &way);
    return way.node;
}

/* Where a thread is that does not go on as it was to. */
static void go_elsewhere(struct path_thread *t, uint64_t addr, enum solo_turn before)
{
    bool has_moved = before == SOLO_MOVES;

    if (has_moved && t->has_called && addr == t->last.back)
        pop(t); /* what it called was not recorded */
    else if (before == SOLO_JUMPS && t->depth && !t->lost && addr == t->call[t->depth - 1].back)
        pop(t); /* its last call was a jump to what was not recorded */
    else if (has_moved && t->has_returned && addr != t->last.back && !unwind(t, addr) && t->last.node)
        push(t, &t->last); /* who called it is not recorded, and calls back again */
}

void paths_turn(struct paths *p, uint32_t thread, uint64_t addr, const struct peet_insn *last, enum solo_turn before,
                struct solo_way *ret)
{
    struct path_thread *t = thread < p->threads ? &p->thread[thread] : thread_at(p, thread);

    p->lost += t->is_lost;
    t->is_lost = false;
    if (before != SOLO_ON)
        go_elsewhere(t, addr, before);
    ret->node = top(t);
    t->has_called = last->class == PEET_CL_call || last->class == PEET_CL_call_indirect;
    t->has_returned = last->class == PEET_CL_return;
    t->has_jumped = last->class == PEET_CL_jump || last->class == PEET_CL_jump_indirect;
    if (t->has_called) {
        t->last = (struct path_call){ last->addr, last->addr + last->length, child(p, ret->node, last->addr) };
        push(t, &t->last);
    } else if (t->has_returned) {
        t->last = t->depth && !t->lost ? t->call[t->depth - 1] : (struct path_call){ 0 };
        pop(t);
    }
    ret->next = top(t);
    ret->back = t->depth && !t->lost ? t->call[t->depth - 1].back : 0;
    ret->there = t->last.back;
    ret->is_call = t->has_called;
}

static uint32_t unknown_node(struct paths *p)
{
    if (!p->unknown) {
        p->node = mem_room(p->node, p->nodes, sizeof *p->node);
        p->node[p->nodes] = (struct path_node){ 0 };
        p->unknown = p->nodes++;
    }
    return p->unknown;
}

void paths_lose(struct paths *p, uint32_t thread, struct source *source)
{
    struct path_thread *t = thread_at(p, thread);
    struct source_calls calls;
    unsigned n = source->kind->calls ? source->kind->calls(source, thread, &calls) : 0;
    bool is_whole = source->kind->calls && calls.is_whole;
    uint32_t node = is_whole ? 0 : unknown_node(p);

    *t = (struct path_thread){ .call = t->call, .deepest = t->deepest, .base = node, .is_lost = !is_whole };
    while (n-- > 0) {
        node = child(p, node, calls.site[n]);
        push(t, &(struct path_call){ calls.site[n], calls.back[n], node });
    }
}

void paths_calls(const struct paths *p, uint32_t thread, uint64_t *ret, unsigned most)
{
    const struct path_thread *t = thread < p->threads ? &p->thread[thread] : NULL;
    unsigned n = 0;

    for (uint32_t i = t ? t->depth : 0; i-- > 0 && n < most;)
        ret[n++] = t->call[i].site;
    if (n < most)
        ret[n] = 0;
}
