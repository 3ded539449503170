/* SPDX-License-Identifier: MIT */
/* Reads the threads of a trace: instructions by function, and the segments into which events cut them (precedence_cut.c). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "map/source/conditions.h"
#include "study/graph/precedence_in.h"

void *array_room(void *array, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return array;
    void *bigger = realloc(array, (*room * 2 + 16) * size);
    if (bigger)
        *room = *room * 2 + 16;
    return bigger;
}

/* ---- instructions ---- */

static int graph_function_find(struct graph_reader *r, uint32_t process, uint64_t addr, uint32_t *ret)
{
    struct precedence *p = r->p;
    const struct peet_symbol *s = peet_trace_symbol(p->trace, process, addr);
    uint32_t *number = s ? map_find(&p->index.functions, (uint64_t)(uintptr_t)s, 0) : NULL;

    *ret = number ? *number : s ? (uint32_t)p->functions : 0;
    if (!s || number)
        return 0;
    *GROW(p, function, functions, function_room, r->err) = s->name;
    if (!(number = map_put(&p->index.functions, (uint64_t)(uintptr_t)s, 0)))
        return precedence_no_memory(r->err);
    *number = *ret;
    return 0;
}

/* Finds the block functions of a process, with room for all blocks defined so far: a pipe can define more later. */
static int block_functions_find(struct graph_reader *r, uint32_t process, struct block_functions **ret)
{
    uint32_t items = peet_trace_items(r->p->trace);
    struct block_functions *c = NULL;

    for (size_t i = 0; i < r->codes && !c; i++)
        c = r->code[i].process == process ? &r->code[i] : NULL;
    if (!c)
        *(c = GROW(r, code, codes, code_room, r->err)) = (struct block_functions){ .process = process };
    if (c->blocks < items) {
        uint32_t *bigger = realloc(c->of_block, items * sizeof *bigger);
        if (!bigger)
            return precedence_no_memory(r->err);
        memset(bigger + c->blocks, 0, (items - c->blocks) * sizeof *bigger);
        c->of_block = bigger;
        c->blocks = items;
    }
    *ret = c;
    return 0;
}

static int block_functions_learn(struct graph_reader *r, struct block_functions *c, uint32_t block)
{
    const struct peet_block *b = peet_trace_block(r->p->trace, block);
    uint32_t function = 0;
    int code = b && b->insns ? graph_function_find(r, c->process, b->insn[0].addr, &function) : 0;

    c->of_block[block] = function + 1;
    return code;
}

static int thread_reader_add_instructions(struct graph_reader *r, struct thread_reader *t, struct block_functions *c,
                                          uint32_t block, uint64_t number)
{
    int code = c->of_block[block] ? 0 : block_functions_learn(r, c, block);
    uint32_t function = c->of_block[block] - 1;

    if (code < 0)
        return code;
    if (function >= t->counts) {
        size_t more = function + 64;
        uint64_t *bigger = realloc(t->count, more * sizeof *bigger);
        if (!bigger)
            return precedence_no_memory(r->err);
        memset(bigger + t->counts, 0, (more - t->counts) * sizeof *bigger);
        t->count = bigger;
        t->counts = more;
    }
    if (t->count[function] == 0 && number)
        *GROW(t, touched, touches, touched_room, r->err) = function;
    t->count[function] += number;
    t->thread.instructions += number;
    return 0;
}

/* Counts a loop: its blocks times their iterations. The blocks do not depend on values. */
static int thread_reader_add_loop(struct graph_reader *r, struct thread_reader *t, struct block_functions *c,
                                  const struct peet_loop_run *run)
{
    uint64_t times[PEET_LOOP_DEPTH + 1] = { 1 };
    uint16_t end[PEET_LOOP_DEPTH + 1];
    int depth = 0, code = 0;

    for (uint16_t i = 0; code == 0 && i < run->loop->nodes; i++) {
        const struct peet_loop_node *n = &run->loop->node[i];
        while (depth > 0 && end[depth] <= i)
            depth--;
        if (n->block) {
            const struct peet_block *b = peet_trace_block(r->p->trace, n->block);
            code = thread_reader_add_instructions(r, t, c, n->block, b->insns * times[depth]);
            t->thread.references += b->operands * times[depth];
        } else {
            times[depth + 1] = times[depth] * (n->counted ? run->count[n->trips] : n->trips);
            end[++depth] = n->end;
        }
    }
    return code;
}

static int thread_reader_add_batch(struct graph_reader *r, struct thread_reader *t, const struct peet_batch *b)
{
    struct block_functions *c = NULL;
    int code = block_functions_find(r, t->thread.process, &c);

    for (size_t i = 0; code == 0 && i < b->count; i++) {
        const struct peet_record *x = &b->records[i];
        if (peet_is_reference(x))
            t->thread.references++;
        else if (x->kind == PEET_BLOCK)
            code = thread_reader_add_instructions(r, t, c, x->id, x->size);
        else if (x->kind == PEET_LOOP)
            code = thread_reader_add_loop(r, t, c, &b->loops[x->id]);
        else if (x->kind == PEET_EVENT)
            code = precedence_event(r, t, &b->events[x->id]);
    }
    return code;
}

/* ---- threads ---- */

static int thread_reader_find(struct graph_reader *r, uint32_t id, struct thread_reader **ret)
{
    const struct peet_thread *th;

    if (r->last < r->readers && r->reader[r->last]->thread.id == id) {
        *ret = r->reader[r->last];
        return 0;
    }
    for (r->last = 0; r->last < r->readers && r->reader[r->last]->thread.id != id;)
        r->last++;
    if (r->last == r->readers) {
        struct thread_reader *t = calloc(1, sizeof *t);
        if (!t)
            return precedence_no_memory(r->err);
        void *bigger = array_room(r->reader, r->readers, &r->reader_room, sizeof *r->reader);
        if (!bigger) {
            free(t);
            return precedence_no_memory(r->err);
        }
        r->reader = bigger;
        r->reader[r->readers++] = t;
        t->thread.id = id;
        for (size_t i = 0; (th = peet_trace_thread(r->p->trace, i)); i++) {
            if (th->id == id) {
                t->thread.process = th->process;
                t->thread.name = *th->name ? th->name : NULL;
            }
        }
    }
    *ret = r->reader[r->last];
    return 0;
}

static int compare_thread_readers(const void *a, const void *b)
{
    const struct thread_reader *x = *(struct thread_reader *const *)a, *y = *(struct thread_reader *const *)b;

    return x->thread.id < y->thread.id ? -1 : x->thread.id > y->thread.id;
}

/* Moves segments, shares and arcs of a thread into the graph, and renumbers them. */
static void precedence_place(struct precedence *p, struct thread_reader *t)
{
    uint32_t first = p->segments;

    t->thread.first = first;
    t->thread.segments = (uint32_t)t->segments;
    for (size_t i = 0; i < t->segments; i++) {
        t->segment[i].thread = (uint32_t)p->threads;
        t->segment[i].share += p->shares;
    }
    memcpy(p->segment + first, t->segment, t->segments * sizeof *t->segment);
    if (t->shares)
        memcpy(p->share + p->shares, t->share, t->shares * sizeof *t->share);
    for (size_t i = 0; i < t->arcs; i++)
        p->arc[p->arcs++] =
            (struct graph_arc){ t->arc[i].from + first, t->arc[i].to + first, t->arc[i].kind, t->arc[i].level };
    p->segments += (uint32_t)t->segments;
    p->shares += t->shares;
    p->instructions += t->thread.instructions;
    p->references += t->thread.references;
    p->thread[p->threads++] = t->thread;
}

static int precedence_place_all(struct graph_reader *r)
{
    struct precedence *p = r->p;
    uint64_t segments = 0, shares = 0, arcs = 0;

    for (size_t i = 0; i < r->readers; i++) {
        struct thread_reader *t = r->reader[i];
        int code = precedence_cut(r, t, &(struct peet_event){ .kind = PEET_EV_thread_end }, SEGMENT_NONE, 0);
        if (code < 0)
            return code;
        segments += t->segments;
        shares += t->shares;
        arcs += t->arcs;
    }
    if (segments >= SEGMENT_NONE)
        return err_set(r->err, PEET_ERR_LIMIT, "%s: the precedence graph has %" PRIu64 " pieces; it can have 2^32 - 2",
                       peet_trace_path(p->trace), segments);
    p->thread = calloc(r->readers + 1, sizeof *p->thread);
    p->segment = calloc(segments + 1, sizeof *p->segment);
    p->share = calloc(shares + 1, sizeof *p->share);
    p->arc = calloc(arcs + 1, sizeof *p->arc);
    p->arc_room = arcs + 1;
    if (!p->thread || !p->segment || !p->share || !p->arc)
        return precedence_no_memory(r->err);
    if (r->readers)
        qsort(r->reader, r->readers, sizeof *r->reader, compare_thread_readers);
    for (size_t i = 0; i < r->readers; i++) {
        uint32_t *thread = map_put(&p->index.threads, r->reader[i]->thread.id, 0);
        if (!thread)
            return precedence_no_memory(r->err);
        *thread = (uint32_t)i;
        precedence_place(p, r->reader[i]);
    }
    return 0;
}

/* ---- conditions ---- */

/* The segment that ends with the n-th event of a thread; SEGMENT_NONE: none. */
static uint32_t segment_of_event(const struct precedence *p, uint32_t thread, uint64_t event)
{
    const struct graph_thread *l = precedence_thread(p, thread);
    uint32_t low = l ? l->first : 0, high = l ? l->first + l->segments : 0;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (p->segment[middle].events < event)
            low = middle + 1;
        else
            high = middle;
    }
    return l && low < l->first + l->segments - 1 && p->segment[low].events == event ? low : SEGMENT_NONE;
}

/* Adds the arcs that follow from waits at conditions. A wait whose end is known then needs no signal in a schedule. */
static int precedence_order_conditions(struct precedence *p, struct peet_err *err)
{
    struct condition_order o;
    int code = condition_order_read(&o, p->trace, err);

    for (size_t i = 0; code == 0 && i < o.arcs; i++) {
        const struct condition_arc *x = &o.arc[i];
        uint32_t from = segment_of_event(p, x->from_thread, x->from_event),
                 to = segment_of_event(p, x->to_thread, x->to_event);
        uint8_t level = x->level == CONDITION_CERTAIN   ? ARC_CERTAIN
                        : x->level == CONDITION_COUNTED ? ARC_COUNTED
                                                        : ARC_ASSUMED;
        if (from != SEGMENT_NONE && to != SEGMENT_NONE)
            code = precedence_arc(
                p, (struct graph_arc){ from, to + 1, x->meets ? PEET_EV_cond_broadcast : PEET_EV_cond_wait, level },
                err);
    }
    for (size_t i = 0; code == 0 && i < o.waits; i++) {
        uint32_t segment = segment_of_event(p, o.wait[i].thread, o.wait[i].event);
        if (segment != SEGMENT_NONE)
            p->segment[segment].value = 0;
    }
    if (code == 0) {
        p->unknown.unneeded_waits = o.unneeded;
        p->unknown.has_unknown_order = false;
        for (size_t i = 0; o.is_unknown && i < p->objects; i++)
            p->unknown.has_unknown_order |= p->object[i].class == GRAPH_CONDITION;
    }
    condition_order_release(&o);
    return code;
}

static void graph_reader_release(struct graph_reader *r)
{
    for (size_t i = 0; i < r->readers; i++) {
        struct thread_reader *t = r->reader[i];
        free(t->segment);
        free(t->share);
        free(t->arc);
        free(t->held);
        free(t->open);
        free(t->finished);
        free(t->count);
        free(t->touched);
        free(t);
    }
    for (size_t i = 0; i < r->codes; i++)
        free(r->code[i].of_block);
    free(r->reader);
    free(r->code);
    map_release(&r->uses);
    map_release(&r->waits);
}

static int precedence_read_threads(struct graph_reader *r, struct progress *progress)
{
    struct peet_cursor *c;
    struct peet_batch batch;
    struct thread_reader *t = NULL;
    uint64_t done = 0;
    int code = peet_cursor_open(r->p->trace, PEET_ALL_THREADS, PEET_WANT_LOOPS, &c, r->err);

    if (code < 0)
        return code;
    while ((code = peet_cursor_next(c, &batch, r->err)) > 0 || code == PEET_ERR_DAMAGED) {
        if (code == PEET_ERR_DAMAGED) {
            r->p->unknown.damaged++;
            continue;
        }
        if ((code = thread_reader_find(r, batch.thread, &t)) < 0)
            break;
        uint64_t before = t->thread.instructions;
        if ((code = thread_reader_add_batch(r, t, &batch)) < 0)
            break;
        done += t->thread.instructions - before;
        progress_at(progress, done);
    }
    peet_cursor_free(c);
    return code;
}

int precedence_read(struct precedence *p, struct peet_trace *t, struct progress *progress, struct peet_err *err)
{
    struct graph_reader r = { .p = p, .err = err };

    *p = (struct precedence){ .trace = t };
    p->index.objects.value_size = p->index.functions.value_size = p->index.threads.value_size = sizeof(uint32_t);
    r.uses.value_size = sizeof(uint8_t);
    r.waits.value_size = sizeof(uint64_t);
    void *first = array_room(NULL, 0, &p->function_room, sizeof *p->function);
    if (!first)
        return precedence_no_memory(err);
    p->function = first;
    p->function[p->functions++] = NULL;
    int code = precedence_read_threads(&r, progress);
    if (code == 0)
        code = precedence_place_all(&r);
    if (code == 0)
        code = precedence_order_conditions(p, err);
    graph_reader_release(&r);
    return code < 0 ? code : precedence_connect(p, err);
}

void precedence_release(struct precedence *p)
{
    free(p->thread);
    free(p->segment);
    free(p->arc);
    free(p->first_arc);
    free(p->object);
    free(p->share);
    free(p->function);
    free(p->named);
    map_release(&p->index.objects);
    map_release(&p->index.functions);
    map_release(&p->index.threads);
    *p = (struct precedence){ 0 };
}

const struct graph_thread *precedence_thread(const struct precedence *p, uint64_t id)
{
    const uint32_t *n = map_find(&p->index.threads, id, 0);

    return n ? &p->thread[*n] : NULL;
}

const char *segment_function(const struct precedence *p, uint32_t segment)
{
    size_t n, best = 0;
    const struct function_share *s = segment_shares(p, segment, &n);

    for (size_t i = 1; i < n; i++)
        best = s[i].instructions > s[best].instructions ? i : best;
    return n && p->function[s[best].function] ? p->function[s[best].function] : "?";
}

const char *addr_text(const struct peet_trace *t, uint32_t process, uint64_t addr, char buffer[120])
{
    const struct peet_symbol *s = addr ? peet_trace_symbol(t, process, addr) : NULL;

    if (s && s->addr == addr)
        snprintf(buffer, 120, "%.100s", s->name);
    else if (s)
        snprintf(buffer, 120, "%.100s+0x%" PRIx64, s->name, addr - s->addr);
    else
        snprintf(buffer, 120, "0x%" PRIx64, addr);
    return buffer;
}
