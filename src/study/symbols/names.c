/* SPDX-License-Identifier: MIT */
#include "study/symbols/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/err.h"
#include "base/mem.h"

enum class { TOLD, SYMBOL, ALLOCATED, MAPPED, RANGE, SEGMENT, CLASSES };

enum { NESTED = 16 }; /* extents of one class that may lie in each other and are looked at */

struct names_extent {
    uint64_t start, end; /* end: the byte behind it */
    size_t number;       /* in which it came */
    uint32_t process, name;
    uint8_t class;
};

static int no_memory(struct peet_err *err)
{
    return err_set(err, PEET_ERR_MEMORY, "no memory for the names of data");
}

/* The number of a text in a process, which is new or not. */
static int name_number(struct names *n, uint32_t process, const char *text, uint32_t *ret, struct peet_err *err)
{
    uint64_t hash = XXH3_64bits(text, strlen(text));
    uint32_t *number;

    for (; (number = map_find(&n->by_text, hash, process)); hash++) {
        if (!strcmp(n->name[*number], text)) {
            *ret = *number;
            return 0;
        }
    }
    char **name = study_room(n->name, n->count, &n->room, sizeof *name);
    n->name = name ? name : n->name;
    uint32_t *of = study_room(n->process, n->count, &n->process_room, sizeof *of);
    n->process = of ? of : n->process;
    if (!name || !of || !(number = map_put(&n->by_text, hash, process)))
        return no_memory(err);
    *ret = *number = (uint32_t)n->count;
    n->process[n->count] = process;
    n->name[n->count++] = mem_string(text);
    return 0;
}

static int add(struct names *n, enum class class, uint32_t process, uint64_t start, uint64_t size, const char *text,
               struct peet_err *err)
{
    struct names_extent x = { .start = start,
                              .end = start + size < start ? UINT64_MAX : start + size,
                              .number = n->extents,
                              .process = process,
                              .class = (uint8_t) class };
    struct names_extent *bigger = study_room(n->extent, n->extents, &n->extent_room, sizeof *bigger);

    if (!bigger)
        return no_memory(err);
    n->extent = bigger;
    int r = name_number(n, process, text, &x.name, err);
    if (r == 0)
        n->extent[n->extents++] = x;
    return r;
}

static int add_told(struct names *n, const struct precedence *p, const struct named *x, struct peet_err *err)
{
    char text[200], place[120];
    const char *string = x->kind == PEET_EV_name_data ? peet_trace_string(p->trace, x->string) : NULL;
    enum class class = x->kind == PEET_EV_name_data ? TOLD : x->kind == PEET_EV_map ? MAPPED : ALLOCATED;

    if (class == TOLD)
        snprintf(text, sizeof text, "%.190s", string ? string : "?");
    else if (x->site == 0 && x->kind == PEET_EV_map) /* only stacks come without a call */
        snprintf(text, sizeof text, "stack of thread %" PRIu32, x->thread);
    else if (x->site == 0)
        snprintf(text, sizeof text, "%s by thread %" PRIu32, peet_event_name(x->kind), x->thread);
    else
        snprintf(text, sizeof text, "%s in %s", peet_event_name(x->kind),
                 study_place(p->trace, x->process, x->site, place));
    return add(n, class, x->process, x->start, x->size, text, err);
}

static int add_module(struct names *n, const struct peet_module *m, struct peet_err *err)
{
    const char *slash = strrchr(m->path, '/');
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < m->symbols; i++)
        if (!m->symbol[i].code && m->symbol[i].size)
            r = add(n, SYMBOL, m->process, m->symbol[i].addr, m->symbol[i].size, m->symbol[i].name, err);
    for (uint32_t i = 0; r == 0 && i < m->segments; i++)
        r = add(n, SEGMENT, m->process, m->segment[i].start, m->segment[i].size, slash ? slash + 1 : m->path, err);
    return r;
}

static int add_range(struct names *n, const struct peet_range *x, struct peet_err *err)
{
    char text[40];

    snprintf(text, sizeof text, "range 0x%" PRIx64, x->start);
    return x->size ? add(n, RANGE, x->process, x->start, x->size, *x->name ? x->name : text, err) : 0;
}

static int compare(const void *a, const void *b)
{
    const struct names_extent *x = a, *y = b;

    if (x->class != y->class)
        return x->class - y->class;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

int names_init(struct names *n, const struct precedence *p, struct peet_err *err)
{
    const struct peet_module *m;
    const struct peet_range *range;
    uint32_t other;

    *n = (struct names){ .by_text.value_size = sizeof(uint32_t) };
    int r = name_number(n, 0, "(no name)", &other, err);
    for (size_t i = 0; r == 0 && i < p->nameds; i++)
        r = add_told(n, p, &p->named[i], err);
    for (size_t i = 0; r == 0 && (m = peet_trace_module(p->trace, i)); i++)
        r = add_module(n, m, err);
    for (size_t i = 0; r == 0 && (range = peet_trace_range(p->trace, i)); i++)
        r = add_range(n, range, err);
    if (n->extents)
        qsort(n->extent, n->extents, sizeof *n->extent, compare);
    for (size_t i = 0, class = 0; class <= CLASSES; class ++) {
        while (i < n->extents && n->extent[i].class < class)
            i++;
        n->first[class] = i;
    }
    return r;
}

void names_release(struct names *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->name[i]);
    free(n->name);
    free(n->process);
    free(n->extent);
    map_release(&n->by_text);
    *n = (struct names){ 0 };
}

/* The first extent of a class that begins behind addr, or that is of a later process. */
static size_t first_behind(const struct names *n, size_t class, uint32_t process, uint64_t addr)
{
    size_t low = n->first[class], high = n->first[class + 1];

    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct names_extent *x = &n->extent[middle];
        if (x->process < process || (x->process == process && x->start <= addr))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t names_find(const struct names *n, uint32_t process, uint64_t addr, uint64_t *ret_until)
{
    uint64_t until = UINT64_MAX;

    for (size_t class = 0; class < CLASSES; class ++) {
        size_t i = first_behind(n, class, process, addr);
        if (i < n->first[class + 1] && n->extent[i].process == process && n->extent[i].start < until)
            until = n->extent[i].start;
        for (size_t tries = NESTED; i-- > n->first[class] && tries > 0; tries--) {
            const struct names_extent *x = &n->extent[i];
            if (x->process == process && addr < x->end) {
                *ret_until = x->end < until ? x->end : until;
                return x->name;
            }
        }
    }
    *ret_until = until;
    return 0;
}
