/* SPDX-License-Identifier: MIT */
/* Callgrind's format: self costs by line, and calls with inclusive costs (export.h). */
#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/mem.h"
#include "study/profile/export/export.h"
#include "study/profile/totals.h"

/* A cost vector. */
struct callgrind_cost {
    uint64_t cycles;      /* compute, stall and wait */
    uint64_t stall, wait; /* parts of `cycles` */
    uint64_t misses;      /* lines missed */
    uint64_t references;  /* in callgrind_arc.cost 0: the column is left out there */
};

/* Calls from a line to a function, with the inclusive cost of the function. */
struct callgrind_arc {
    uint32_t line, function; /* indices in totals */
    struct callgrind_cost cost;
    uint64_t calls; /* executions */
};

/* A file of callgrind while it is made. */
struct callgrind {
    struct totals t;
    struct callgrind_cost **place; /* self costs by index of the process, and place */
    struct callgrind_cost *line;   /* self costs by line */
    struct callgrind_arc *arc;
    size_t arcs;
    struct map numbers; /* uint32_t: 1 + index of an arc, by line and function */
    struct map sites;   /* struct call_site, by address and index of the process */
    struct map files;   /* uint32_t: number, by hash */
    bool *is_named;     /* by function: its name was written, so that its number is enough */
};

/* A call instruction, with the number of its executions and its target. */
struct call_site {
    uint64_t runs;     /* executions */
    uint32_t arc;      /* 1 + its index; 0: none so far */
    bool is_ambiguous; /* it has several targets */
};

static void callgrind_cost_add(struct callgrind_cost *to, const struct callgrind_cost *c)
{
    to->cycles += c->cycles;
    to->stall += c->stall;
    to->wait += c->wait;
    to->misses += c->misses;
    to->references += c->references;
}

static bool callgrind_cost_is_zero(const struct callgrind_cost *c)
{
    return c->cycles + c->stall + c->misses + c->references == 0;
}

static void *checked_put(struct map *m, uint64_t key, uint32_t tag)
{
    void *value = map_put(m, key, tag);

    assert(value);
    return value;
}

/* ---- self costs of places ---- */

static void callgrind_add_code(struct callgrind *c, uint32_t process)
{
    const struct profile *p = c->t.p;
    const struct process_code *code = &p->code[process];

    for (uint32_t item = 0; item < code->items; item++) {
        const struct block_counts *x = &code->block[item];
        const struct peet_block *b = x->runs ? peet_trace_block(p->trace, item) : NULL;
        for (uint32_t i = 0; b && i < b->insns; i++) {
            const struct peet_insn *insn = &b->insn[i];
            uint64_t fetch = i == 0 ? x->fetch : 0;
            struct callgrind_cost cost = { .cycles = x->runs * p->machine.cost[insn->class] + fetch, .stall = fetch };
            callgrind_cost_add(&c->place[process][b->first_insn + i], &cost);
            if (insn->class == PEET_CL_call || insn->class == PEET_CL_call_indirect)
                ((struct call_site *)checked_put(&c->sites, insn->addr, process))->runs += x->runs;
        }
    }
}

static void callgrind_add_places(struct callgrind *c)
{
    const struct profile *p = c->t.p;

    c->place = mem_alloc(p->paths.processes, sizeof *c->place);
    for (uint32_t i = 0; i < p->paths.processes; i++)
        c->place[i] = mem_alloc(p->places.insns + p->places.calls + 1, sizeof **c->place);
    for (uint32_t i = 0; i < p->codes; i++)
        callgrind_add_code(c, i);
    for (size_t i = 0; i < p->accesses; i++) {
        const struct access_counts *x = &p->access[i];
        struct callgrind_cost cost = { .cycles = x->compute, .misses = x->misses, .references = x->references };
        for (unsigned k = 0; k < CAUSES; k++)
            cost.stall += x->stall[k];
        cost.cycles += cost.stall;
        callgrind_cost_add(&c->place[profile_object_process(p, x->object)][x->place], &cost);
    }
    for (size_t i = 0; i < p->waits; i++)
        callgrind_cost_add(&c->place[p->wait[i].process][p->wait[i].place],
                           &(struct callgrind_cost){ .cycles = p->wait[i].cycles, .wait = p->wait[i].cycles });
}

/* ---- calls ---- */

static uint32_t callgrind_arc(struct callgrind *c, uint32_t line, uint32_t function)
{
    uint32_t *number = checked_put(&c->numbers, line, function);

    if (*number == 0) {
        c->arc = mem_room(c->arc, c->arcs, sizeof *c->arc);
        c->arc[c->arcs++] = (struct callgrind_arc){ .line = line, .function = function };
        *number = (uint32_t)c->arcs;
    }
    return *number - 1;
}

/* A walk from a cost to the outermost function. A cost counts once in the inclusive cost of a function, also if the function occurs several times on
 * the walk: readers add up self costs and the costs of calls. */
struct path_walk {
    uint32_t *walk_of,
        room;        /* by function: number of the last walk on which it occurred; functions from `room` on: none */
    uint32_t number; /* of the current walk */
};

/* Whether the function occurs for the first time on this walk. */
static bool path_walk_enter(struct path_walk *w, uint32_t function)
{
    w->walk_of = mem_reach(w->walk_of, &w->room, function, sizeof *w->walk_of);
    bool is_first = w->walk_of[function] != w->number;
    w->walk_of[function] = w->number;
    return is_first;
}

/* Adds a step of the walk: a call from a line to function `to`. */
static void path_walk_call(struct path_walk *w, struct callgrind *c, uint32_t line, uint32_t to,
                           const struct callgrind_cost *cost)
{
    uint32_t function = c->t.line[line].function;
    uint32_t number = callgrind_arc(c, line, to);

    if (path_walk_enter(w, function))
        callgrind_cost_add(&c->arc[number].cost, cost);
}

/* Adds the cost of an instruction to all functions that are inlined there. */
static void callgrind_add_inlined(struct callgrind *c, struct path_walk *w, uint32_t process,
                                  const struct symbols_frame *frame, size_t frames, const struct callgrind_cost *cost)
{
    uint32_t function = c->t.line[totals_line(&c->t, process, &frame[0])].function;

    w->number++;
    path_walk_enter(w, function);
    for (size_t k = 1; k < frames; k++) {
        uint32_t line = totals_line(&c->t, process, &frame[k]);
        path_walk_call(w, c, line, function, cost);
        function = c->t.line[line].function;
    }
}

static void callgrind_add_inlined_places(struct callgrind *c, struct path_walk *w)
{
    const struct profile *p = c->t.p;

    for (uint32_t k = 0; k < p->paths.processes; k++)
        for (uint32_t i = 0; i < p->places.insns + p->places.calls; i++) {
            const struct callgrind_cost *cost = &c->place[k][i];
            struct symbols_frame frame[SYMBOLS_FRAMES];
            if (!callgrind_cost_is_zero(cost))
                callgrind_add_inlined(c, w, k, frame, profile_symbols(p, k, profile_place_addr(p, i), frame), cost);
        }
}

/* A node of the calling context tree: its function, and the lines of its call, of which the first is that of the innermost inlined call. */
struct path_frame {
    uint32_t function; /* 1 + its number; 0: unknown */
    uint32_t lines, line[SYMBOLS_FRAMES];
};

static uint32_t callgrind_block_function(struct callgrind *c, const struct path_counts *l)
{
    const struct profile *p = c->t.p;
    uint32_t process = p->paths.node[l->node].process;
    struct symbols_frame frame[SYMBOLS_FRAMES];
    size_t n = profile_symbols(p, process, peet_trace_block(p->trace, l->block)->insn[0].addr, frame);

    return c->t.line[totals_line(&c->t, process, &frame[n - 1])].function;
}

/* Adds the executions of a call to its arc; 0 if the call has several arcs. */
static void callgrind_count_calls(struct callgrind *c, uint32_t process, uint64_t call, uint32_t number)
{
    struct call_site *site = checked_put(&c->sites, call, process);

    site->is_ambiguous |= site->arc && site->arc != number + 1;
    if (site->arc == 0)
        c->arc[number].calls += site->runs;
    site->arc = number + 1;
    if (site->is_ambiguous)
        c->arc[number].calls = 0;
}

static struct path_frame *callgrind_make_frames(struct callgrind *c)
{
    const struct profile *p = c->t.p;
    struct path_frame *step = mem_alloc(p->paths.nodes + 1, sizeof *step);

    for (size_t i = 0; i < p->by_paths; i++) {
        const struct path_counts *l = &p->by_path[i];
        if (!step[l->node].function && l->block != PROFILE_NO_BLOCK)
            step[l->node].function = 1 + callgrind_block_function(c, l);
    }
    for (uint32_t i = p->paths.nodes; i-- > 1;) {
        const struct path_node *n = &p->paths.node[i];
        struct symbols_frame frame[SYMBOLS_FRAMES];
        if (!step[i].function || !n->call)
            continue;
        step[i].lines = (uint32_t)profile_symbols(p, n->process, n->call, frame);
        for (uint32_t k = 0; k < step[i].lines; k++)
            step[i].line[k] = totals_line(&c->t, n->process, &frame[k]);
        callgrind_count_calls(c, n->process, n->call, callgrind_arc(c, step[i].line[0], step[i].function - 1));
    }
    return step;
}

/* Adds the cost of a call path to all its callers. */
static void callgrind_add_path(struct callgrind *c, struct path_walk *w, const struct path_frame *step,
                               const struct path_counts *l)
{
    const struct profile *p = c->t.p;
    uint64_t wait = path_counts_wait(l);
    struct callgrind_cost cost = { l->compute + l->stall + wait, l->stall, wait, .misses = l->misses };
    uint32_t process = p->paths.node[l->node].process, i = l->node;
    struct symbols_frame frame[SYMBOLS_FRAMES];
    size_t n = l->block == PROFILE_NO_BLOCK
                   ? 0
                   : profile_symbols(p, process, peet_trace_block(p->trace, l->block)->insn[0].addr, frame);

    w->number++;
    for (size_t k = 0; k < n; k++)
        path_walk_enter(w, c->t.line[totals_line(&c->t, process, &frame[k])].function);
    for (;; i = p->paths.node[i].parent) {
        uint32_t function = step[i].function;
        if (function)
            path_walk_enter(w, function - 1);
        for (uint32_t k = 0; k < step[i].lines; k++) {
            path_walk_call(w, c, step[i].line[k], function - 1, &cost);
            function = 1 + c->t.line[step[i].line[k]].function;
        }
        if (p->paths.node[i].parent == i)
            return;
    }
}

static void callgrind_add_calls(struct callgrind *c)
{
    const struct profile *p = c->t.p;
    struct path_frame *step = callgrind_make_frames(c);
    struct path_walk w = { 0 };

    callgrind_add_inlined_places(c, &w);
    for (size_t i = 0; i < p->by_paths; i++)
        callgrind_add_path(c, &w, step, &p->by_path[i]);
    free(w.walk_of);
    free(step);
}

/* ---- writing ---- */

static int compare_line_functions(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return x[0] != y[0] ? (x[0] < y[0] ? -1 : 1) : x[1] < y[1] ? -1 : x[1] > y[1];
}

static int compare_callgrind_arcs(const void *a, const void *b)
{
    const struct callgrind_arc *x = a, *y = b;

    return x->line != y->line          ? (x->line < y->line ? -1 : 1)
           : x->function < y->function ? -1
                                       : x->function > y->function;
}

/* A name must not end its line. */
static void callgrind_put_name(const char *name, FILE *out)
{
    fputc(' ', out);
    for (const char *s = name; *s; s++)
        fputc(iscntrl((unsigned char)*s) ? ' ' : *s, out);
}

/* Names have numbers, and are written once. */
static void callgrind_put_file(struct callgrind *c, const char *key, const char *file, FILE *out)
{
    const char *name = file ? file : "???";
    size_t before = c->files.count;
    uint32_t *number = checked_put(&c->files, XXH3_64bits(name, strlen(name)), 0);
    bool is_new = c->files.count != before;

    if (is_new)
        *number = (uint32_t)c->files.count;
    fprintf(out, "%s=(%" PRIu32 ")", key, *number);
    if (is_new)
        callgrind_put_name(name, out);
    fputc('\n', out);
}

static void callgrind_put_function(struct callgrind *c, const char *key, uint32_t function, FILE *out)
{
    fprintf(out, "%s=(%" PRIu32 ")", key, function + 1);
    if (!c->is_named[function])
        callgrind_put_name(c->t.function[function].name, out);
    c->is_named[function] = true;
    fputc('\n', out);
}

static size_t callgrind_first_arc(const struct callgrind *c, uint32_t line)
{
    size_t low = 0, high = c->arcs;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c->arc[middle].line < line)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* file: the current one; a target in it needs no file name. */
static void callgrind_put_arcs(struct callgrind *c, uint32_t line, const char *file, FILE *out)
{
    for (size_t i = callgrind_first_arc(c, line); i < c->arcs && c->arc[i].line == line; i++) {
        const struct callgrind_arc *a = &c->arc[i];
        if (callgrind_cost_is_zero(&a->cost) && a->calls == 0)
            continue;
        const char *its = c->t.function[a->function].file;
        if (!file || !its || strcmp(file, its) != 0)
            callgrind_put_file(c, "cfl", its, out);
        callgrind_put_function(c, "cfn", a->function, out);
        fprintf(out, "calls=%" PRIu64 " 0\n%" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                a->calls ? a->calls : 1, /* readers leave out 0 calls */
                c->t.line[line].line, a->cost.cycles, a->cost.stall, a->cost.wait, a->cost.misses);
    }
}

/* Functions of several processes are distinguished by their programs, which are written as object files. */
static void callgrind_put_process(const struct totals *t, uint32_t process, FILE *out)
{
    char name[PROFILE_PROGRAM];

    if (t->p->paths.processes < 2)
        return;
    profile_process_name(t->p, process, name);
    for (char *c = name; *c; c++)
        *c = iscntrl((unsigned char)*c) ? ' ' : *c;
    fprintf(out, "ob=%s\n", name);
}

static void callgrind_put_lines(struct callgrind *c, uint64_t (*order)[2], FILE *out)
{
    const struct totals *t = &c->t;
    const char *file = NULL;

    for (uint32_t i = 0, last = UINT32_MAX, process = UINT32_MAX; i < t->lines; i++) {
        uint32_t line = (uint32_t)order[i][1], function = t->line[line].function;
        const struct callgrind_cost *x = &c->line[line];
        const char *own = t->line[line].file ? t->line[line].file : t->function[function].file;
        if (function != last) {
            fputc('\n', out);
            if (t->function[function].process != process)
                callgrind_put_process(t, process = t->function[function].process, out);
            file = t->function[function].file;
            callgrind_put_file(c, "fl", file, out);
            callgrind_put_function(c, "fn", function, out);
        }
        if (own && file && strcmp(own, file) != 0)
            callgrind_put_file(c, "fi", own, out);
        file = own;
        last = function;
        if (!callgrind_cost_is_zero(x))
            fprintf(out, "%" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                    t->line[line].line, x->cycles, x->stall, x->wait, x->misses, x->references);
        callgrind_put_arcs(c, line, file, out);
    }
}

static void callgrind_write(struct callgrind *c, FILE *out)
{
    struct totals *t = &c->t;
    uint64_t(*order)[2] = mem_alloc(t->lines + 1, sizeof *order);
    struct callgrind_cost all = { 0 };

    c->line = mem_alloc(t->lines + 1, sizeof *c->line);
    c->is_named = mem_alloc(t->functions + 1, sizeof *c->is_named);
    for (uint32_t k = 0; k < t->p->paths.processes; k++)
        for (uint32_t i = 0; i < t->p->places.insns + t->p->places.calls; i++) {
            if (!t->place[k][i].is_known)
                continue;
            callgrind_cost_add(&c->line[t->place[k][i].line], &c->place[k][i]);
            callgrind_cost_add(&all, &c->place[k][i]);
        }
    for (uint32_t i = 0; i < t->lines; i++) {
        order[i][0] = t->line[i].function;
        order[i][1] = i;
    }
    qsort(order, t->lines, sizeof *order, compare_line_functions);
    if (c->arcs)
        qsort(c->arc, c->arcs, sizeof *c->arc, compare_callgrind_arcs);
    fprintf(out, "# callgrind format\nversion: 1\ncreator: peet profile\npositions: line\n");
    fprintf(out, "event: Cycles : compute, memory stall and waits\nevent: Stall : memory stall\n");
    fprintf(out, "event: Wait : waits for other threads\nevents: Cycles Stall Wait Misses References\n");
    callgrind_put_lines(c, order, out);
    fprintf(out, "\ntotals: %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", all.cycles, all.stall,
            all.wait, all.misses, all.references);
    free(order);
    free(c->is_named);
    free(c->line);
}

int profile_callgrind(const struct profile *p, FILE *out)
{
    struct callgrind c = { .numbers.value_size = sizeof(uint32_t),
                           .sites.value_size = sizeof(struct call_site),
                           .files.value_size = sizeof(uint32_t) };

    totals_make(&c.t, p, NULL);
    callgrind_add_places(&c);
    callgrind_add_calls(&c);
    callgrind_write(&c, out);
    for (uint32_t i = 0; i < p->paths.processes; i++)
        free(c.place[i]);
    free(c.place);
    free(c.arc);
    map_release(&c.numbers);
    map_release(&c.sites);
    map_release(&c.files);
    totals_release(&c.t);
    return ferror(out) ? -1 : 0;
}
