/* SPDX-License-Identifier: MIT */
#include "study/sharing/data_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/err.h"
#include "base/mem.h"

enum name_class { GIVEN, SYMBOL, ALLOCATED, MAPPED, RANGE, SEGMENT, CLASSES };

enum { NESTED = 16 }; /* nested ranges of one class that are searched */

/* Bytes with a name. */
struct name_range {
    uint64_t start, end;    /* end: after the last byte */
    size_t number;          /* position among the events */
    uint32_t process, name; /* numbers: in the trace; in data_names */
    uint8_t name_class;     /* enum name_class */
};

static int names_no_memory(struct peet_err *err)
{
    return err_set(err, PEET_ERR_MEMORY, "no memory for the names of data");
}

/* The number of a text in a process, which is new or not. */
static int name_number(struct data_names *n, uint32_t process, const char *text, uint32_t *ret, struct peet_err *err)
{
    uint64_t hash = XXH3_64bits(text, strlen(text));
    uint32_t *number;

    for (; (number = map_find(&n->by_text, hash, process)); hash++) {
        if (!strcmp(n->name[*number], text)) {
            *ret = *number;
            return 0;
        }
    }
    char **name = array_room(n->name, n->count, &n->room, sizeof *name);
    n->name = name ? name : n->name;
    uint32_t *of = array_room(n->process, n->count, &n->process_room, sizeof *of);
    n->process = of ? of : n->process;
    if (!name || !of || !(number = map_put(&n->by_text, hash, process)))
        return names_no_memory(err);
    *ret = *number = (uint32_t)n->count;
    n->process[n->count] = process;
    n->name[n->count++] = mem_string(text);
    return 0;
}

static int names_add(struct data_names *n, enum name_class name_class, uint32_t process, uint64_t start, uint64_t size,
                     const char *text, struct peet_err *err)
{
    struct name_range x = { .start = start,
                            .end = start + size < start ? UINT64_MAX : start + size,
                            .number = n->ranges,
                            .process = process,
                            .name_class = (uint8_t)name_class };
    struct name_range *bigger = array_room(n->range, n->ranges, &n->range_room, sizeof *bigger);

    if (!bigger)
        return names_no_memory(err);
    n->range = bigger;
    int r = name_number(n, process, text, &x.name, err);
    if (r == 0)
        n->range[n->ranges++] = x;
    return r;
}

static int names_add_told(struct data_names *n, const struct precedence *p, const struct named_range *x,
                          struct peet_err *err)
{
    char text[200], place[120];
    const char *string = x->kind == PEET_EV_name_data ? peet_trace_string(p->trace, x->string) : NULL;
    enum name_class name_class = x->kind == PEET_EV_name_data ? GIVEN : x->kind == PEET_EV_map ? MAPPED : ALLOCATED;

    if (name_class == GIVEN)
        snprintf(text, sizeof text, "%.190s", string ? string : "?");
    else if (x->site == 0 && x->kind == PEET_EV_map) /* only stacks come without a call */
        snprintf(text, sizeof text, "stack of thread %" PRIu32, x->thread);
    else if (x->site == 0)
        snprintf(text, sizeof text, "%s by thread %" PRIu32, peet_event_name(x->kind), x->thread);
    else
        snprintf(text, sizeof text, "%s in %s", peet_event_name(x->kind),
                 addr_text(p->trace, x->process, x->site, place));
    return names_add(n, name_class, x->process, x->start, x->size, text, err);
}

static int names_add_module(struct data_names *n, const struct peet_module *m, struct peet_err *err)
{
    const char *slash = strrchr(m->path, '/');
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < m->symbols; i++)
        if (!m->symbol[i].code && m->symbol[i].size)
            r = names_add(n, SYMBOL, m->process, m->symbol[i].addr, m->symbol[i].size, m->symbol[i].name, err);
    for (uint32_t i = 0; r == 0 && i < m->segments; i++)
        r = names_add(n, SEGMENT, m->process, m->segment[i].start, m->segment[i].size, slash ? slash + 1 : m->path,
                      err);
    return r;
}

static int names_add_range(struct data_names *n, const struct peet_range *x, struct peet_err *err)
{
    char text[40];

    snprintf(text, sizeof text, "range 0x%" PRIx64, x->start);
    return x->size ? names_add(n, RANGE, x->process, x->start, x->size, *x->name ? x->name : text, err) : 0;
}

static int compare_ranges(const void *a, const void *b)
{
    const struct name_range *x = a, *y = b;

    if (x->name_class != y->name_class)
        return x->name_class - y->name_class;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

int data_names_init(struct data_names *n, const struct precedence *p, struct peet_err *err)
{
    const struct peet_module *m;
    const struct peet_range *range;
    uint32_t other;

    *n = (struct data_names){ .by_text.value_size = sizeof(uint32_t) };
    int r = name_number(n, 0, "(no name)", &other, err);
    for (size_t i = 0; r == 0 && i < p->named_count; i++)
        r = names_add_told(n, p, &p->named[i], err);
    for (size_t i = 0; r == 0 && (m = peet_trace_module(p->trace, i)); i++)
        r = names_add_module(n, m, err);
    for (size_t i = 0; r == 0 && (range = peet_trace_range(p->trace, i)); i++)
        r = names_add_range(n, range, err);
    if (n->ranges)
        qsort(n->range, n->ranges, sizeof *n->range, compare_ranges);
    for (size_t i = 0, name_class = 0; name_class <= CLASSES; name_class++) {
        while (i < n->ranges && n->range[i].name_class < name_class)
            i++;
        n->first[name_class] = i;
    }
    return r;
}

void data_names_release(struct data_names *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->name[i]);
    free(n->name);
    free(n->process);
    free(n->range);
    map_release(&n->by_text);
    *n = (struct data_names){ 0 };
}

/* The first range of a class that begins after addr, or belongs to a later process. */
static size_t names_first_after(const struct data_names *n, size_t name_class, uint32_t process, uint64_t addr)
{
    size_t low = n->first[name_class], high = n->first[name_class + 1];

    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct name_range *x = &n->range[middle];
        if (x->process < process || (x->process == process && x->start <= addr))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t data_names_find(const struct data_names *n, uint32_t process, uint64_t addr, uint64_t *ret_until)
{
    uint64_t until = UINT64_MAX;

    for (size_t name_class = 0; name_class < CLASSES; name_class++) {
        size_t i = names_first_after(n, name_class, process, addr);
        if (i < n->first[name_class + 1] && n->range[i].process == process && n->range[i].start < until)
            until = n->range[i].start;
        for (size_t tries = NESTED; i-- > n->first[name_class] && tries > 0; tries--) {
            const struct name_range *x = &n->range[i];
            if (x->process == process && addr < x->end) {
                *ret_until = x->end < until ? x->end : until;
                return x->name;
            }
        }
    }
    *ret_until = until;
    return 0;
}
