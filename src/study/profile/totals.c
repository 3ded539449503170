/* SPDX-License-Identifier: MIT */
#include "study/profile/totals.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/mem.h"

uint64_t total_stall(const struct total *x)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < CAUSES; i++)
        sum += x->stall[i];
    return sum;
}

uint64_t total_cost(const struct total *x)
{
    return total_stall(x) + x->wait;
}

static uint64_t hash_of_text(const char *text)
{
    return XXH3_64bits(text, strlen(text));
}

static uint32_t *number_at(struct map *m, uint64_t key, uint32_t tag)
{
    uint32_t *number = map_put(m, key, tag);

    assert(number);
    return number;
}

/* Functions of a process are the same if their names and files are. */
static uint32_t function_number(struct totals *t, uint32_t process, const struct symbols_frame *f)
{
    uint64_t key = hash_of_text(f->function) ^ (f->file ? hash_of_text(f->file) * 31 : 0);
    uint32_t *number = number_at(&t->names, key, process);

    if (*number == 0) {
        t->function = mem_room(t->function, t->functions, sizeof *t->function);
        t->function[t->functions++] =
            (struct total_function){ .name = f->function, .file = f->file, .process = process };
        *number = t->functions;
    }
    return *number - 1;
}

static uint32_t line_number(struct totals *t, const struct symbols_frame *f, uint32_t function)
{
    uint64_t key = (f->file ? hash_of_text(f->file) : 0) + f->line * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t *number = number_at(&t->line_numbers, key, function);

    if (*number == 0) {
        t->line = mem_room(t->line, t->lines, sizeof *t->line);
        t->line[t->lines++] = (struct total_line){ f->file, f->line, function };
        *number = t->lines;
    }
    return *number - 1;
}

uint32_t totals_line(struct totals *t, uint32_t process, const struct symbols_frame *f)
{
    return line_number(t, f, function_number(t, process, f));
}

const struct total_place *totals_place(const struct totals *t, uint32_t place, uint32_t object)
{
    return &t->place[profile_object_process(t->p, object)][place];
}

static void totals_find_place(struct totals *t, uint32_t process, uint32_t place)
{
    struct total_place *at = &t->place[process][place];
    struct symbols_frame frame[SYMBOLS_FRAMES];

    if (at->is_known)
        return;
    profile_symbols(t->p, process, profile_place_addr(t->p, place), frame);
    at->line = totals_line(t, process, &frame[0]);
    at->function = t->line[at->line].function;
    at->is_known = true;
}

/* All instructions of the blocks that a process has executed. */
static void totals_find_code(struct totals *t, uint32_t process)
{
    const struct process_code *c = &t->p->code[process];

    for (uint32_t item = 0; item < c->items; item++) {
        const struct peet_block *b = c->block[item].runs ? peet_trace_block(t->p->trace, item) : NULL;
        for (uint32_t i = 0; b && i < b->insns; i++)
            totals_find_place(t, process, b->first_insn + i);
    }
}

static void totals_find_places(struct totals *t)
{
    const struct profile *p = t->p;
    uint32_t places = p->places.insns + p->places.calls;

    t->place = mem_alloc(p->paths.processes, sizeof *t->place);
    for (uint32_t i = 0; i < p->paths.processes; i++)
        t->place[i] = mem_alloc(places + 1, sizeof **t->place);
    for (uint32_t i = 0; p->paths.processes == 1 && i < places; i++) /* all in the order of their numbers */
        totals_find_place(t, 0, i);
    for (uint32_t i = 0; i < p->codes && i < p->paths.processes; i++) /* there is room for more codes than processes */
        totals_find_code(t, i);
    for (size_t i = 0; i < p->accesses; i++)
        totals_find_place(t, profile_object_process(p, p->access[i].object), p->access[i].place);
    for (size_t i = 0; i < p->waits; i++)
        totals_find_place(t, p->wait[i].process, p->wait[i].place);
}

/* What instructions cost by themselves, where they belong. */
static void totals_add_compute(struct totals *t, uint32_t process)
{
    const struct profile *p = t->p;
    const struct process_code *c = &p->code[process];
    const struct total_place *place = t->place[process];

    for (uint32_t item = 0; item < c->items; item++) {
        const struct peet_block *b = c->block[item].runs ? peet_trace_block(p->trace, item) : NULL;
        if (b)
            t->function[place[b->first_insn].function].fetch += c->block[item].fetch;
        for (uint32_t i = 0; b && i < b->insns; i++)
            t->function[place[b->first_insn + i].function].compute +=
                c->block[item].runs * p->machine.cost[b->insn[i].class];
    }
}

static void total_add_counts(struct total *to, const struct access_counts *c)
{
    to->references += c->references;
    to->writes += c->writes;
    to->misses += c->misses;
    for (unsigned i = 0; i < CAUSES; i++) {
        to->cause[i] += c->cause[i];
        to->stall[i] += c->stall[i];
    }
}

static void totals_add_library(struct totals *t)
{
    for (size_t i = 0; i < t->p->accesses; i++)
        t->function[totals_place(t, t->p->access[i].place, t->p->access[i].object)->function].compute +=
            t->p->access[i].compute;
}

static void totals_add_waits(struct totals *t)
{
    for (size_t i = 0; i < t->p->waits; i++)
        t->function[t->place[t->p->wait[i].process][t->p->wait[i].place].function].wait += t->p->wait[i].cycles;
}

enum by { BY_FUNCTION, BY_OBJECT, BY_BOTH, BY_LINE };

/* Totals on their way to a list. */
struct total_list {
    enum by by;
    struct map numbers;
    struct total *total;
    size_t count;
};

/* The total of a place and an object. */
static struct total *gathered_total(const struct totals *t, struct total_list *g, uint32_t place, uint32_t object)
{
    const struct total_place *at = totals_place(t, place, object);
    struct total x = { .function = at->function, .line = at->line, .object = object };
    uint64_t key = g->by == BY_OBJECT ? 0 : g->by == BY_LINE ? x.line + 1 : x.function + 1;
    uint32_t *number = number_at(&g->numbers, key, g->by == BY_FUNCTION ? 0 : x.object);

    if (*number == 0) {
        g->total = mem_room(g->total, g->count, sizeof *g->total);
        g->total[g->count++] = x;
        *number = (uint32_t)g->count;
    }
    return &g->total[*number - 1];
}

/* Of what lies nowhere, as the ends of threads, there is no data to wait for. */
static struct total *totals_gather(const struct totals *t, enum by by, size_t *ret_count)
{
    struct total_list g = { .by = by, .numbers.value_size = sizeof(uint32_t) };
    const struct profile *p = t->p;

    for (size_t i = 0; i < p->accesses; i++)
        total_add_counts(gathered_total(t, &g, p->access[i].place, p->access[i].object), &p->access[i]);
    for (size_t i = 0; i < p->waits; i++)
        if (p->wait[i].object != UINT32_MAX)
            gathered_total(t, &g, p->wait[i].place, p->wait[i].object)->wait += p->wait[i].cycles;
    map_release(&g.numbers);
    *ret_count = g.count;
    return g.total;
}

/* Functions that never refer to memory have their time all the same. */
static void totals_add_rest(struct totals *t)
{
    uint8_t *is_there = mem_alloc(t->functions + 1, 1);

    for (size_t i = 0; i < t->by_function_count; i++)
        is_there[t->by_function[i].function] = 1;
    for (uint32_t i = 0; i < t->functions; i++)
        if (!is_there[i] && t->function[i].compute + t->function[i].fetch + t->function[i].wait) {
            t->by_function = mem_room(t->by_function, t->by_function_count, sizeof *t->by_function);
            t->by_function[t->by_function_count++] = (struct total){ .function = i };
        }
    free(is_there);
}

/* ---- order ---- */

static int compare_falling_counts(uint64_t a, uint64_t b)
{
    return a > b ? -1 : a < b;
}

static int compare_totals_by_stall(const void *a, const void *b)
{
    const struct total *x = a, *y = b;
    int r = compare_falling_counts(total_cost(x), total_cost(y));

    r = r ? r : compare_falling_counts(x->misses, y->misses);
    r = r ? r : compare_falling_counts(x->references, y->references);
    r = r ? r : -compare_falling_counts(x->object, y->object);
    r = r ? r : -compare_falling_counts(x->function, y->function);
    return r ? r : -compare_falling_counts(x->line, y->line);
}

static int compare_totals_by_misses(const void *a, const void *b)
{
    int r = compare_falling_counts(((const struct total *)a)->misses, ((const struct total *)b)->misses);

    return r ? r : compare_totals_by_stall(a, b);
}

static int compare_totals_by_references(const void *a, const void *b)
{
    int r = compare_falling_counts(((const struct total *)a)->references, ((const struct total *)b)->references);

    return r ? r : compare_totals_by_stall(a, b);
}

static int compare_totals_by_time(const void *a, const void *b)
{
    const struct total *x = a, *y = b;
    int r = compare_falling_counts(total_stall(x) + x->other, total_stall(y) + y->other);

    return r ? r : compare_totals_by_stall(a, b);
}

static void totals_sort(struct total *total, size_t count, int (*order)(const void *, const void *))
{
    if (count)
        qsort(total, count, sizeof *total, order);
}

void totals_make(struct totals *t, const struct profile *p, const char *sort)
{
    int (*order)(const void *, const void *) = sort && !strcmp(sort, "misses")       ? compare_totals_by_misses
                                               : sort && !strcmp(sort, "references") ? compare_totals_by_references
                                                                                     : compare_totals_by_stall;

    *t = (struct totals){ .p = p, .names.value_size = sizeof(uint32_t), .line_numbers.value_size = sizeof(uint32_t) };
    totals_find_places(t);
    for (uint32_t i = 0; i < p->codes && i < p->paths.processes; i++)
        totals_add_compute(t, i);
    totals_add_library(t);
    totals_add_waits(t);
    t->by_function = totals_gather(t, BY_FUNCTION, &t->by_function_count);
    t->by_object = totals_gather(t, BY_OBJECT, &t->by_object_count);
    t->by_both = totals_gather(t, BY_BOTH, &t->by_both_count);
    t->by_line = totals_gather(t, BY_LINE, &t->by_line_count);
    totals_add_rest(t);
    for (size_t i = 0; i < t->by_function_count; i++) {
        const struct total_function *f = &t->function[t->by_function[i].function];
        t->by_function[i].other = f->compute + f->fetch + f->wait;
    }
    totals_sort(t->by_function, t->by_function_count,
                order == compare_totals_by_stall ? compare_totals_by_time : order);
    totals_sort(t->by_object, t->by_object_count, order);
    totals_sort(t->by_both, t->by_both_count, order);
    totals_sort(t->by_line, t->by_line_count, order);
}

void totals_release(struct totals *t)
{
    free(t->function);
    free(t->line);
    for (uint32_t i = 0; t->place && i < t->p->paths.processes; i++)
        free(t->place[i]);
    free(t->place);
    free(t->by_function);
    free(t->by_object);
    free(t->by_both);
    free(t->by_line);
    map_release(&t->names);
    map_release(&t->line_numbers);
    *t = (struct totals){ 0 };
}
