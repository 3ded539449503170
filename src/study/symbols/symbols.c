/* SPDX-License-Identifier: MIT */
#include "study/symbols/symbols.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dwarf.h>

#include "base/err.h"
#include "base/mem.h"
#include "study/symbols/symbols_in.h"

/* ---- modules ---- */

static int compare_segments(const void *a, const void *b)
{
    const struct where_segment *x = a, *y = b;

    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return x->start < y->start ? -1 : x->start > y->start;
}

static void add_segments(struct where *w, struct where_module *m)
{
    for (uint32_t i = 0; i < m->module->segments; i++) {
        const struct peet_segment *s = &m->module->segment[i];
        w->segment = mem_room(w->segment, w->segments, sizeof *w->segment);
        w->segment[w->segments++] = (struct where_segment){ m->module->process, s->start, s->start + s->size, m };
    }
}

/* Those that are new: a program that runs may load more. */
static void see_modules(struct where *w)
{
    const struct peet_module *m;
    size_t before = w->segments;

    while ((m = peet_trace_module(w->trace, w->modules))) {
        struct where_module *x = mem_alloc(1, sizeof *x);
        x->module = m;
        w->module = mem_room(w->module, w->modules, sizeof(struct where_module *));
        w->module[w->modules++] = x;
        add_segments(w, x);
    }
    if (w->segments > before)
        qsort(w->segment, w->segments, sizeof *w->segment, compare_segments);
}

int where_open(const struct peet_trace *t, struct where **ret, struct peet_err *err)
{
    struct where *w = calloc(1, sizeof *w);

    if (!w)
        return err_set(err, PEET_ERR_MEMORY, "no memory for the names of the program");
    w->trace = t;
    w->units.value_size = sizeof(struct where_unit *);
    w->parents.value_size = sizeof(Dwarf_Die);
    w->names.value_size = w->files.value_size = w->texts.value_size = sizeof(const char *);
    w->types.value_size = sizeof(struct where_type);
    w->layouts.value_size = sizeof(struct where_layout *);
    w->sources.value_size = sizeof(struct where_source *);
    elf_version(EV_CURRENT);
    see_modules(w);
    *ret = w;
    return 0;
}

void where_free(struct where *w)
{
    struct where_source **s;
    size_t at = 0;
    uint64_t key;
    uint32_t tag;

    if (!w)
        return;
    while ((s = map_next(&w->sources, &at, &key, &tag)))
        if (*s) {
            free((*s)->text);
            free((*s)->bare);
            free((*s)->line);
        }
    for (size_t i = 0; i < w->modules; i++) {
        where_module_release(w->module[i]);
        free(w->module[i]);
    }
    free(w->module);
    free(w->segment);
    free(w->problem);
    map_release(&w->units);
    map_release(&w->parents);
    map_release(&w->names);
    map_release(&w->files);
    map_release(&w->types);
    map_release(&w->layouts);
    map_release(&w->sources);
    map_release(&w->texts);
    arena_release(&w->arena);
    if (w->demangler)
        dlclose(w->demangler);
    free(w);
}

struct where_module *where_module_at(struct where *w, uint32_t process, uint64_t addr)
{
    see_modules(w);
    size_t low = 0, high = w->segments;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct where_segment *s = &w->segment[middle];
        if (s->process < process || (s->process == process && s->start <= addr))
            low = middle + 1;
        else
            high = middle;
    }
    const struct where_segment *s = low ? &w->segment[low - 1] : NULL;
    return s && s->process == process && addr < s->end ? s->module : NULL;
}

/* ---- code ---- */

static const char *unknown_code(struct where *w, const struct where_module *m)
{
    char text[300];

    if (!m)
        return "?";
    const char *slash = strrchr(m->module->path, '/');
    snprintf(text, sizeof text, "(%.200s)", slash ? slash + 1 : m->module->path);
    return where_keep(w, text);
}

/* Fortran's main program has the symbol MAIN__ and the name that its author gave it. */
size_t where_code(struct where *w, uint32_t process, uint64_t addr, struct where_frame frame[WHERE_FRAMES])
{
    struct where_spot spot[WHERE_FRAMES];
    size_t n = where_spots(w, process, addr, spot);
    const struct peet_symbol *symbol = n ? NULL : peet_trace_symbol(w->trace, process, addr);

    for (size_t i = 0; i < n; i++) {
        const char *name = where_die_name(w, &spot[i].die);
        frame[i] = (struct where_frame){ name ? name : "?", spot[i].file, spot[i].line };
    }
    if (n > 0)
        return n;
    frame[0] = (struct where_frame){ symbol ? where_symbol_name(w, symbol)
                                            : unknown_code(w, where_module_at(w, process, addr)),
                                     NULL, 0 };
    return 1;
}

/* ---- variables ---- */

static void make_variable(struct where *w, uint64_t base, struct where_static *v)
{
    Dwarf_Die type;
    int line = 0;
    struct where_unit *u = where_unit_of(w, &v->die);

    v->made.name = where_die_name(w, &v->die);
    v->made.type = where_die_type(&v->die, &type) ? where_type_text(w, &type) : NULL;
    v->made.file = u ? where_file_name(w, &u->die, dwarf_decl_file(&v->die)) : NULL;
    v->made.line = dwarf_decl_line(&v->die, &line) == 0 ? (uint32_t)line : 0;
    v->made.start = v->start + base;
    v->made.size = v->size;
}

static struct where_static *static_at(struct where_static *list, size_t count, uint64_t at)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list[middle].start <= at)
            low = middle + 1;
        else
            high = middle;
    }
    /* Several may begin at one place: the largest stands first. */
    while (low > 1 && list[low - 2].start == list[low - 1].start)
        low--;
    return low > 0 && at - list[low - 1].start < list[low - 1].size ? &list[low - 1] : NULL;
}

/* The data symbol of a byte, or between which it lies. */
static bool symbol_variable(struct where *w, const struct where_module *m, uint64_t addr, struct where_variable *ret)
{
    const struct peet_symbol *list = m->module->symbol, *s = NULL;
    size_t low = 0, high = m->module->symbols;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list[middle].addr <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    uint64_t end = low < m->module->symbols ? list[low].addr : UINT64_MAX, start = 0;
    for (size_t i = low, steps = 0; i-- > 0 && !s && steps < 64; steps++) {
        if (!list[i].code && addr - list[i].addr < list[i].size)
            s = &list[i];
        start = list[i].addr + list[i].size > start && list[i].addr + list[i].size <= addr ? list[i].addr + list[i].size
                                                                                           : start;
    }
    *ret = (struct where_variable){ .start = start, .size = end - start };
    if (s)
        *ret = (struct where_variable){ .name = where_symbol_name(w, s), .start = s->addr, .size = s->size };
    return s != NULL;
}

/* Makes what is known to hold nothing smaller by the variables of DWARF. */
static void narrow(const struct where_static *list, size_t count, uint64_t bias, uint64_t at,
                   struct where_variable *ret)
{
    uint64_t start = ret->start, end = ret->start + ret->size;
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list[middle].start <= at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < count && list[low].start + bias < end)
        end = list[low].start + bias;
    if (low > 0 && list[low - 1].start + list[low - 1].size + bias > start)
        start = list[low - 1].start + list[low - 1].size + bias;
    if (start > at + bias || end <= at + bias) { /* larger ones around smaller ones */
        start = at + bias;
        end = start + 1;
    }
    ret->start = start;
    ret->size = end - start;
}

bool where_variable(struct where *w, uint32_t process, uint64_t addr, struct where_variable *ret)
{
    struct where_module *m = where_module_at(w, process, addr);

    if (!m) {
        *ret = (struct where_variable){ .start = addr, .size = 1 };
        return false;
    }
    where_module_list(w, m);
    uint64_t at = addr - m->module->bias;
    struct where_static *v = static_at(m->variable, m->variables, at);
    if (v && !v->made.name)
        make_variable(w, m->module->bias, v);
    if (v && v->made.name) {
        *ret = v->made;
        return true;
    }
    if (symbol_variable(w, m, addr, ret))
        return true;
    narrow(m->variable, m->variables, m->module->bias, at, ret);
    return false;
}

/* ---- variables of threads ---- */

/* The program itself, whose part of each thread's data is next to the thread pointer. */
static struct where_module *program_of(struct where *w, uint32_t process)
{
    const struct peet_process *p = NULL;
    struct where_module *m = NULL;

    for (size_t i = 0; (p = peet_trace_process(w->trace, i)) && p->id != process; i++)
        ;
    for (size_t i = 0; p && !m && i < w->modules; i++)
        if (w->module[i]->module->process == process && strcmp(w->module[i]->module->path, p->program) == 0)
            m = w->module[i];
    if (m)
        where_module_list(w, m);
    return m;
}

uint64_t where_local_size(struct where *w, uint32_t process)
{
    const struct where_module *m = program_of(w, process);

    return m ? m->local_size : 0;
}

bool where_local(struct where *w, uint32_t process, uint64_t offset, struct where_variable *ret)
{
    const struct where_module *m = program_of(w, process);

    *ret = (struct where_variable){ .start = 0, .size = m ? m->local_size : UINT64_MAX };
    if (!m)
        return false;
    struct where_static *v = static_at(m->local, m->locals, offset);
    if (v && !v->made.name)
        make_variable(w, 0, v);
    if (v && v->made.name) {
        *ret = v->made;
        return true;
    }
    narrow(m->local, m->locals, 0, offset, ret);
    return false;
}

/* ---- what has changed ---- */

void where_add_problem(struct where *w, const char *format, ...)
{
    char text[600];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    const char *kept = where_keep(w, text);
    for (size_t i = 0; i < w->problems; i++)
        if (w->problem[i] == kept)
            return;
    w->problem = mem_room(w->problem, w->problems, sizeof *w->problem);
    w->problem[w->problems++] = kept;
}

static void find_problems(struct where *w)
{
    w->looked_for_problems = true;
    for (size_t i = 0; i < w->modules; i++) {
        const struct peet_module *m = w->module[i]->module;
        if (where_module_is_anew(m))
            where_add_problem(w,
                              "%.400s was built anew since this was recorded: its lines, types and variables are not "
                              "known; record it again",
                              m->path);
    }
}

const char *where_problem(struct where *w, size_t i)
{
    if (!w->looked_for_problems)
        find_problems(w);
    return i < w->problems ? w->problem[i] : NULL;
}
