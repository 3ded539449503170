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
    const struct symbols_segment *x = a, *y = b;

    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return x->start < y->start ? -1 : x->start > y->start;
}

static void symbols_add_segments(struct symbols *sym, struct symbols_module *m)
{
    for (uint32_t i = 0; i < m->module->segments; i++) {
        const struct peet_segment *s = &m->module->segment[i];
        sym->segment = mem_room(sym->segment, sym->segments, sizeof *sym->segment);
        sym->segment[sym->segments++] = (struct symbols_segment){ m->module->process, s->start, s->start + s->size, m };
    }
}

/* Those that are new: a program that runs may load more. */
static void symbols_add_new_modules(struct symbols *sym)
{
    const struct peet_module *m;
    size_t before = sym->segments;

    while ((m = peet_trace_module(sym->trace, sym->modules))) {
        struct symbols_module *x = mem_alloc(1, sizeof *x);
        x->module = m;
        sym->module = mem_room(sym->module, sym->modules, sizeof(struct symbols_module *));
        sym->module[sym->modules++] = x;
        symbols_add_segments(sym, x);
    }
    if (sym->segments > before)
        qsort(sym->segment, sym->segments, sizeof *sym->segment, compare_segments);
}

int symbols_open(const struct peet_trace *t, struct symbols **ret, struct peet_err *err)
{
    struct symbols *sym = calloc(1, sizeof *sym);

    if (!sym)
        return err_set(err, PEET_ERR_MEMORY, "no memory for the names of the program");
    sym->trace = t;
    sym->units.value_size = sizeof(struct symbols_unit *);
    sym->parents.value_size = sizeof(Dwarf_Die);
    sym->names.value_size = sym->files.value_size = sym->texts.value_size = sizeof(const char *);
    sym->types.value_size = sizeof(struct symbols_type);
    sym->layouts.value_size = sizeof(struct symbols_layout *);
    sym->frame_sizes.value_size = sizeof(uint64_t);
    sym->frames.value_size = sizeof(struct frame_function *);
    sym->sources.value_size = sizeof(struct symbols_source *);
    elf_version(EV_CURRENT);
    symbols_add_new_modules(sym);
    *ret = sym;
    return 0;
}

void symbols_free(struct symbols *sym)
{
    struct symbols_source **s;
    size_t at = 0;
    uint64_t key;
    uint32_t tag;

    if (!sym)
        return;
    while ((s = map_next(&sym->sources, &at, &key, &tag)))
        if (*s) {
            free((*s)->text);
            free((*s)->bare);
            free((*s)->line);
        }
    for (size_t i = 0; i < sym->modules; i++) {
        symbols_module_release(sym->module[i]);
        free(sym->module[i]);
    }
    free(sym->module);
    free(sym->segment);
    free(sym->problem);
    map_release(&sym->units);
    map_release(&sym->parents);
    map_release(&sym->names);
    map_release(&sym->files);
    map_release(&sym->types);
    map_release(&sym->layouts);
    map_release(&sym->sources);
    map_release(&sym->texts);
    symbols_frames_release(sym);
    arena_release(&sym->arena);
    if (sym->demangler)
        dlclose(sym->demangler);
    free(sym);
}

struct symbols_module *symbols_module_at(struct symbols *sym, uint32_t process, uint64_t addr)
{
    symbols_add_new_modules(sym);
    size_t low = 0, high = sym->segments;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct symbols_segment *s = &sym->segment[middle];
        if (s->process < process || (s->process == process && s->start <= addr))
            low = middle + 1;
        else
            high = middle;
    }
    const struct symbols_segment *s = low ? &sym->segment[low - 1] : NULL;
    return s && s->process == process && addr < s->end ? s->module : NULL;
}

/* ---- code ---- */

static const char *symbols_module_only(struct symbols *sym, const struct symbols_module *m)
{
    char text[300];

    if (!m)
        return "?";
    const char *slash = strrchr(m->module->path, '/');
    snprintf(text, sizeof text, "(%.200s)", slash ? slash + 1 : m->module->path);
    return symbols_keep(sym, text);
}

/* Fortran's main program has the symbol MAIN__ and the name that its author gave it. */
size_t symbols_code(struct symbols *sym, uint32_t process, uint64_t addr, struct symbols_frame frame[SYMBOLS_FRAMES])
{
    struct src_loc loc[SYMBOLS_FRAMES];
    size_t n = symbols_locations(sym, process, addr, loc);
    const struct peet_symbol *symbol = n ? NULL : peet_trace_symbol(sym->trace, process, addr);

    for (size_t i = 0; i < n; i++) {
        const char *name = symbols_die_name(sym, &loc[i].die);
        frame[i] = (struct symbols_frame){ name ? name : "?", loc[i].file, loc[i].line };
    }
    if (n > 0)
        return n;
    frame[0] = (struct symbols_frame){ symbol ? symbols_symbol_name(sym, symbol)
                                              : symbols_module_only(sym, symbols_module_at(sym, process, addr)),
                                       NULL, 0 };
    return 1;
}

/* ---- variables ---- */

static void symbols_make_variable(struct symbols *sym, uint64_t base, struct symbols_static *v)
{
    Dwarf_Die type;
    int line = 0;
    struct symbols_unit *u = symbols_unit_of(sym, &v->die);

    v->made.name = symbols_die_name(sym, &v->die);
    v->made.type = symbols_die_type(&v->die, &type) ? symbols_type_text(sym, &type) : NULL;
    v->made.file = u ? symbols_file_name(sym, &u->die, dwarf_decl_file(&v->die)) : NULL;
    v->made.line = dwarf_decl_line(&v->die, &line) == 0 ? (uint32_t)line : 0;
    v->made.start = v->start + base;
    v->made.size = v->size;
}

static struct symbols_static *symbols_static_at(struct symbols_static *list, size_t count, uint64_t at)
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
static bool symbols_data_symbol(struct symbols *sym, const struct symbols_module *m, uint64_t addr,
                                struct symbols_variable *ret)
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
    *ret = (struct symbols_variable){ .start = start, .size = end - start };
    if (s)
        *ret = (struct symbols_variable){ .name = symbols_symbol_name(sym, s), .start = s->addr, .size = s->size };
    return s != NULL;
}

/* Makes what is known to hold nothing smaller by the variables of DWARF. */
static void symbols_narrow_gap(const struct symbols_static *list, size_t count, uint64_t bias, uint64_t at,
                               struct symbols_variable *ret)
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

bool symbols_variable(struct symbols *sym, uint32_t process, uint64_t addr, struct symbols_variable *ret)
{
    struct symbols_module *m = symbols_module_at(sym, process, addr);

    if (!m) {
        *ret = (struct symbols_variable){ .start = addr, .size = 1 };
        return false;
    }
    symbols_module_list(sym, m);
    uint64_t at = addr - m->module->bias;
    struct symbols_static *v = symbols_static_at(m->variable, m->variables, at);
    if (v && !v->made.name)
        symbols_make_variable(sym, m->module->bias, v);
    if (v && v->made.name) {
        *ret = v->made;
        return true;
    }
    if (symbols_data_symbol(sym, m, addr, ret))
        return true;
    symbols_narrow_gap(m->variable, m->variables, m->module->bias, at, ret);
    return false;
}

/* ---- variables of threads ---- */

/* The program itself, whose part of each thread's data is next to the thread pointer. */
static struct symbols_module *symbols_program(struct symbols *sym, uint32_t process)
{
    const struct peet_process *p = NULL;
    struct symbols_module *m = NULL;

    for (size_t i = 0; (p = peet_trace_process(sym->trace, i)) && p->id != process; i++)
        ;
    for (size_t i = 0; p && !m && i < sym->modules; i++)
        if (sym->module[i]->module->process == process && strcmp(sym->module[i]->module->path, p->program) == 0)
            m = sym->module[i];
    if (m)
        symbols_module_list(sym, m);
    return m;
}

uint64_t symbols_local_size(struct symbols *sym, uint32_t process)
{
    const struct symbols_module *m = symbols_program(sym, process);

    return m ? m->local_size : 0;
}

bool symbols_local(struct symbols *sym, uint32_t process, uint64_t offset, struct symbols_variable *ret)
{
    const struct symbols_module *m = symbols_program(sym, process);

    *ret = (struct symbols_variable){ .start = 0, .size = m ? m->local_size : UINT64_MAX };
    if (!m)
        return false;
    struct symbols_static *v = symbols_static_at(m->local, m->locals, offset);
    if (v && !v->made.name)
        symbols_make_variable(sym, 0, v);
    if (v && v->made.name) {
        *ret = v->made;
        return true;
    }
    symbols_narrow_gap(m->local, m->locals, 0, offset, ret);
    return false;
}

/* ---- what has changed ---- */

void symbols_add_problem(struct symbols *sym, const char *format, ...)
{
    char text[600];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    const char *kept = symbols_keep(sym, text);
    for (size_t i = 0; i < sym->problems; i++)
        if (sym->problem[i] == kept)
            return;
    sym->problem = mem_room(sym->problem, sym->problems, sizeof *sym->problem);
    sym->problem[sym->problems++] = kept;
}

static void symbols_find_problems(struct symbols *sym)
{
    sym->looked_for_problems = true;
    for (size_t i = 0; i < sym->modules; i++) {
        const struct peet_module *m = sym->module[i]->module;
        if (symbols_module_is_rebuilt(m))
            symbols_add_problem(sym,
                                "%.400s was built anew since this was recorded: its lines, types and variables are not "
                                "known; record it again",
                                m->path);
    }
}

const char *symbols_problem(struct symbols *sym, size_t i)
{
    if (!sym->looked_for_problems)
        symbols_find_problems(sym);
    return i < sym->problems ? sym->problem[i] : NULL;
}
