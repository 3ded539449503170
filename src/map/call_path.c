/* SPDX-License-Identifier: MIT */
#include "map/call_path.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Calls for which a stack has room at first, and at most; deeper calls count for the innermost call that is kept. */
enum { SHALLOW = 64, DEEPEST = 1 << 14 };

static uint32_t path_new_node(struct paths *p, const struct path_node *node)
{
    p->node = mem_room(p->node, p->nodes, sizeof *p->node);
    p->node[p->nodes] = *node;
    return p->nodes++;
}

uint32_t paths_process(struct paths *p, uint32_t number)
{
    uint32_t *index = map_put(&p->indices, number, 0);

    assert(index); /* processes are few */
    if (*index == 0) {
        uint32_t root = path_new_node(p, &(struct path_node){ .parent = p->nodes, .process = p->processes });
        p->process = mem_room(p->process, p->processes, sizeof *p->process);
        p->process[p->processes++] = (struct path_process){ .number = number, .root = root };
        *index = p->processes;
    }
    return *index - 1;
}

void paths_init(struct paths *p, const struct peet_trace *t, const struct source *source)
{
    *p = (struct paths){ .trace = t,
                         .source = source,
                         .indices.value_size = sizeof(uint32_t),
                         .entries.value_size = sizeof(uint64_t),
                         .children.value_size = sizeof(uint32_t) };
    paths_process(p, source && source->threads ? source->thread[0].process : 0); /* so that node 0 is its root */
}

void paths_release(struct paths *p)
{
    for (uint32_t i = 0; i < p->threads; i++) {
        free(p->thread[i]->call);
        free(p->thread[i]);
    }
    free(p->thread);
    free(p->node);
    free(p->process);
    free(p->cache);
    map_release(&p->indices);
    map_release(&p->children);
    map_release(&p->entries);
    *p = (struct paths){ 0 };
}

/* Makes room for `calls` calls, the sentinel, and one call that is too deep. */
static void path_make_room(struct path_thread *t, size_t calls)
{
    struct path_call *more = mem_alloc(calls + 2, sizeof *more);
    size_t top = (size_t)(t->top - t->call), last = (size_t)(t->last - t->call);

    if (t->call)
        memcpy(more, t->call, (size_t)(t->end - t->call + 1) * sizeof *more);
    free(t->call);
    t->call = more;
    t->top = more + top;
    t->last = more + last;
    t->end = more + calls + 1;
}

struct path_thread *paths_thread(struct paths *p, uint32_t thread)
{
    while (p->threads <= thread) {
        struct path_thread *t = mem_alloc(1, sizeof *t);
        p->thread = mem_room(p->thread, p->threads, sizeof(struct path_thread *));
        path_make_room(t, SHALLOW);
        t->exit = PATH_UNKNOWN;
        t->process = p->source ? paths_process(p, p->source->thread[p->threads].process) : 0;
        t->top->node = p->process[t->process].root;
        p->thread[p->threads++] = t;
    }
    return p->thread[thread];
}

/* ---- calls ---- */

/* The node itself or its nearest ancestor that was reached by a call from `site`; 0: none. */
static uint32_t path_ancestor(const struct paths *p, uint32_t node, uint64_t site)
{
    while (p->node[node].parent != node && p->node[node].call != site)
        node = p->node[node].parent;
    return p->node[node].parent != node ? node : 0;
}

/* A recursive call leads to the node of the call that has not returned: counts of a recursion are summed up. Else there would be as many
 * paths as the recursion has branches. */
uint32_t paths_child(struct paths *p, uint32_t parent, uint64_t site)
{
    if (p->node[parent].last_call == site)
        return p->node[parent].last;
    uint32_t *node = map_put(&p->children, site, parent);

    assert(node);
    if (*node == 0)
        *node = path_ancestor(p, parent, site);
    if (*node == 0)
        *node =
            path_new_node(p, &(struct path_node){ .parent = parent, .process = p->node[parent].process, .call = site });
    p->node[parent].last_call = site;
    return p->node[parent].last = *node;
}

void paths_call(struct path_thread *t, const struct path_call *call)
{
    size_t room = (size_t)(t->end - t->call - 1);

    if (t->top + 1 == t->end && room < DEEPEST)
        path_make_room(t, 2 * room);
    t->exit = PATH_CALLS;
    t->last = t->top + 1;
    *t->last = *call;
    if (t->last == t->end)
        t->lost++;
    else
        t->top = t->last;
}

static void path_pop(struct path_thread *t)
{
    if (t->lost > 0)
        t->lost--;
    else if (t->top > t->call)
        t->top--;
}

void paths_return(struct path_thread *t)
{
    t->exit = t->top > t->call ? PATH_RETURNS : PATH_UNKNOWN;
    t->last = t->lost ? t->call : t->top;
    path_pop(t);
}

/* Pops all calls down to the innermost one that returns to `back`; false: there is none, and nothing changes. */
static bool path_unwind(struct path_thread *t, uint64_t back)
{
    for (struct path_call *call = t->top; call > t->call; call--)
        if (call->back == back) {
            t->top = call - 1;
            t->lost = 0;
            return true;
        }
    return false;
}

/* ---- functions ---- */

/* Length of a function's name without the suffix ".cold" of its split-off part; 0: no symbol. */
static size_t name_length(const struct peet_symbol *s)
{
    const char *cold = s ? strstr(s->name, ".cold") : NULL;

    return !s ? 0 : cold ? (size_t)(cold - s->name) : strlen(s->name);
}

static bool is_cold(const struct peet_symbol *s)
{
    return s->name[name_length(s)] != 0;
}

static bool is_same(const struct peet_symbol *a, const struct peet_symbol *b)
{
    size_t n = name_length(a);

    return n > 0 && n == name_length(b) && memcmp(a->name, b->name, n) == 0;
}

static const struct peet_symbol *path_function_at(const struct paths *p, uint32_t process, uint64_t addr)
{
    return p->trace ? peet_trace_symbol(p->trace, p->process[process].number, addr) : NULL;
}

/* Notes the lowest block address of each function, among items that are new since the last call. */
static void learn_entries(struct paths *p, uint32_t process)
{
    uint32_t *known = &p->process[process].items;

    for (uint32_t items = peet_trace_items(p->trace); *known < items; ++*known) {
        const struct peet_block *b = peet_trace_block(p->trace, *known);
        const struct peet_symbol *s = b && b->insns ? path_function_at(p, process, b->insn[0].addr) : NULL;
        uint64_t *entry = s ? map_put(&p->entries, s->addr, process) : NULL;
        if (entry && (*entry == 0 || b->insn[0].addr < *entry))
            *entry = b->insn[0].addr;
    }
}

bool paths_is_entry(struct paths *p, uint32_t process, uint64_t addr)
{
    const struct peet_symbol *s = path_function_at(p, process, addr);

    if (!s || is_cold(s))
        return !s;
    learn_entries(p, process);
    const uint64_t *entry = map_find(&p->entries, s->addr, process);
    return !entry || addr <= *entry;
}

/* Control enters the middle of a function (longjmp, exception): pops the innermost call that this function made, and all calls inside it. */
static void path_return_into(const struct paths *p, struct path_thread *t, uint64_t addr)
{
    const struct peet_symbol *there = path_function_at(p, t->process, addr);

    for (struct path_call *call = t->top; call > t->call; call--)
        if (is_same(there, path_function_at(p, t->process, call->site))) {
            t->top = call - 1;
            t->lost = 0;
            return;
        }
}

/* ---- blocks ---- */

/* Control does not continue where the last block's exit leads in traced code: corrects the call stack. */
static void path_correct(const struct paths *p, struct path_thread *t, uint64_t addr, bool is_entry)
{
    if (t->exit == PATH_CALLS && addr == t->last->back)
        path_pop(t); /* the called function was not recorded */
    else if (t->exit == PATH_CALLS && !is_entry)
        path_return_into(p, t, addr);
    else if (t->exit == PATH_JUMPS && !t->lost && addr == t->top->back)
        path_pop(t); /* a tail call led to a function that was not recorded */
    else if (t->exit == PATH_RETURNS && t->last > t->call && addr != t->last->back && !path_unwind(t, addr))
        t->top++; /* its caller was not recorded, and calls back again */
}

uint32_t paths_arrive(struct paths *p, struct path_thread *t, uint64_t addr, bool is_entry)
{
    if (t->exit != PATH_NEXT)
        path_correct(p, t, addr, is_entry);
    p->unknown_paths += t->is_unknown;
    t->is_unknown = false;
    return t->top->node;
}

void paths_leave(struct paths *p, struct path_thread *t, enum path_exit how, const struct path_call *by)
{
    if (how == PATH_CALLS)
        paths_call(t, &(struct path_call){ by->site, by->back, paths_child(p, t->top->node, by->site), by->slot });
    else if (how == PATH_RETURNS)
        paths_return(t);
    else
        t->exit = (uint8_t)how;
}

enum path_exit paths_exit_of(enum peet_class last)
{
    switch (last) {
    case PEET_CL_call:
    case PEET_CL_call_indirect: return PATH_CALLS;
    case PEET_CL_return: return PATH_RETURNS;
    case PEET_CL_jump:
    case PEET_CL_jump_indirect: return PATH_JUMPS;
    default: return PATH_NEXT;
    }
}

/* Whether a function begins at the block. Later items of the schema may have lower addresses, so that the answer is valid for a number of items. */
static bool path_begins_function(struct paths *p, struct path_cache *cache, uint32_t process, uint64_t addr)
{
    if (cache->items != peet_trace_items(p->trace) || cache->process != process) {
        cache->is_entry = paths_is_entry(p, process, addr);
        cache->process = process;
        cache->items = peet_trace_items(p->trace);
    }
    return cache->is_entry;
}

static uint32_t path_callee_of(struct paths *p, struct path_cache *cache, uint32_t node, uint64_t site)
{
    if (cache->child == 0 || cache->node != node) {
        cache->child = paths_child(p, node, site);
        cache->node = node;
    }
    return cache->child;
}

const struct peet_operand *paths_slot_operand(const struct peet_block *b)
{
    const struct peet_operand *o = b->operands ? &b->operand[b->operands - 1] : NULL;
    bool is_call = paths_exit_of((enum peet_class)b->insn[b->insns - 1].class) == PATH_CALLS;

    return o && is_call && o->insn + 1 == b->insns && o->kind == PEET_STORE && !o->size_src && !o->predicate ? o : NULL;
}

const struct peet_operand *paths_entry_operand(const struct peet_block *b)
{
    for (uint16_t i = 0; i < b->operands; i++) {
        const struct peet_operand *o = &b->operand[i];
        if (o->base == PEET_SRC_SLOT && o->index == PEET_SRC_ZERO && !o->size_src && !o->predicate)
            return o;
        if (o->size_src || o->predicate) /* references of later operands have no fixed number */
            return NULL;
    }
    return NULL;
}

/* The address to which a block's call stores. Operands may have any number of references, except the last. */
static uint64_t path_slot_of(const struct peet_record *block, const struct peet_block *b)
{
    const struct peet_record *r = block + 1;

    while (peet_is_reference(r) && (r->id != b->first_insn + b->insns - 1u || r->kind != PEET_STORE))
        r++;
    return peet_is_reference(r) ? r->addr : 0;
}

/* A thread begins with a block, at which a function begins: its stack pointer. */
static void path_begin_stack(struct path_thread *t, const struct peet_record *block, const struct peet_block *b)
{
    const struct peet_operand *o = paths_entry_operand(b);

    paths_begin(t, o ? block[1 + (o - b->operand)].addr - (uint64_t)o->disp : 0);
}

uint32_t paths_block(struct paths *p, uint32_t thread, const struct peet_record *block)
{
    const struct peet_block *b = peet_trace_block(p->trace, block->id);
    const struct peet_insn *last = &b->insn[b->insns - 1];
    struct path_thread *t = paths_thread(p, thread);

    p->cache = mem_reach(p->cache, &p->caches, block->id, sizeof *p->cache);
    struct path_cache *cache = &p->cache[block->id];
    bool is_call = t->exit == PATH_CALLS && block->addr != t->last->back, begins = paths_begins(t);
    bool is_entry = !(is_call || begins) || path_begins_function(p, cache, t->process, block->addr);
    if (begins && is_entry && !p->lacks_references)
        path_begin_stack(t, block, b);
    uint32_t node = paths_arrive(p, t, block->addr, is_entry);
    enum path_exit how = paths_exit_of((enum peet_class)last->class);
    struct path_call by = { .site = last->addr, .back = last->addr + last->length };
    if (how == PATH_CALLS) {
        by.node = path_callee_of(p, cache, node, last->addr);
        if (!p->lacks_references && paths_slot_operand(b))
            by.slot = path_slot_of(block, b);
        paths_call(t, &by);
    } else {
        paths_leave(p, t, how, &by);
    }
    return node;
}

/* ---- frames ---- */

/* The stack pointer before a call; UINT64_MAX: unknown. */
static uint64_t path_frame_end(const struct path_call *call)
{
    return call->slot ? call->slot + sizeof call->slot : UINT64_MAX;
}

bool paths_frame(const struct path_thread *t, uint64_t addr, struct frame_extent *ret)
{
    const struct path_call *call = paths_current(t);
    bool is_known = call->slot || call == t->call;

    *ret = (struct frame_extent){ .high = path_frame_end(call), .call = call->site };
    if (is_known && addr < ret->high) {
        bool has_made = t->last && t->last == call + 1 && t->last < t->end;
        ret->code = has_made ? t->last->site : 0;
        ret->sp = has_made && t->last->slot ? path_frame_end(t->last) : 0;
        ret->is_current = true;
        return true;
    }
    for (; call > t->call && call->slot; call--) {
        const struct path_call *around = call - 1;
        uint64_t sp = path_frame_end(call);
        *ret = (struct frame_extent){
            .low = sp, .high = path_frame_end(around), .code = call->site, .sp = sp, .call = around->site
        };
        is_known = around->slot || around == t->call;
        if (is_known && addr < ret->high)
            return true;
    }
    return false;
}

/* ---- gaps ---- */

static uint32_t path_unknown_node(struct paths *p, uint32_t process)
{
    struct path_process *x = &p->process[process];

    if (!x->unknown)
        x->unknown = path_new_node(p, &(struct path_node){ .parent = x->root, .process = process });
    return x->unknown;
}

void paths_find_again(struct paths *p, uint32_t thread, struct source *source)
{
    struct path_thread *t = paths_thread(p, thread);
    struct source_calls calls;
    unsigned n = source->kind->calls ? source->kind->calls(source, thread, &calls) : 0;
    bool is_whole = source->kind->calls && calls.is_whole;
    uint32_t node = is_whole ? p->process[t->process].root : path_unknown_node(p, t->process);

    t->top = t->call;
    *t->top = (struct path_call){ .node = node, .slot = is_whole ? calls.root_slot : 0 };
    t->lost = 0;
    while (n-- > 0) {
        node = paths_child(p, node, calls.site[n]);
        paths_call(t, &(struct path_call){ calls.site[n], calls.back[n], node, calls.slot[n] });
    }
    t->exit = PATH_UNKNOWN;
    t->is_unknown = !is_whole;
}

void paths_calls(const struct paths *p, uint32_t thread, uint64_t *ret, unsigned most)
{
    const struct path_thread *t = thread < p->threads ? p->thread[thread] : NULL;
    unsigned n = 0;

    for (const struct path_call *call = t ? t->top : NULL; t && call > t->call && n < most; call--)
        ret[n++] = call->site;
    if (n < most)
        ret[n] = 0;
}
