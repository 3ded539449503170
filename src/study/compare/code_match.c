/* SPDX-License-Identifier: MIT */
#include "study/compare/code_match.h"

#include <assert.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"

const char *const compare_unit_names[] = { "instructions", "blocks", "calls", "events" };

/* Functions that wait for other threads, without leading underscores. */
static const char *const SYNC_FUNCTIONS[] = {
    "pthread_barrier_*",
    "pthread_mutex_*",
    "pthread_cond_*",
    "pthread_rwlock_*",
    "pthread_spin_*",
    "pthread_join*",
    "pthread_clockjoin_ex",
    "pthread_once*",
    "sem_*",
    "new_sem_*",
    "lll_*",
    "futex_*",
    "gomp_*barrier*",
    "gomp_*mutex*",
    "GOMP_barrier*",
    "GOMP_critical*",
    "pthread_enable_asynccancel",
    "pthread_disable_asynccancel",
    "clone_internal",
    NULL,
};
/* The lists of an allocator depend on the order of calls of all threads. */
static const char *const ALLOCATOR_FUNCTIONS[] = {
    "malloc*",      "free",       "calloc",    "realloc",      "libc_malloc*",  "libc_free*",
    "libc_calloc*", "int_malloc", "int_free*", "int_memalign", "unlink_chunk*", "tcache_*",
    "arena_*",      "sysmalloc*", "systrim*",  "heap_*",       "cfree",         NULL,
};

static bool name_is_among(const char *name, const char *const *patterns)
{
    name += strspn(name, "_");
    while (*patterns && fnmatch(*patterns, name, 0) != 0)
        patterns++;
    return *patterns != NULL;
}

bool function_synchronizes(const char *name)
{
    return name_is_among(name, SYNC_FUNCTIONS);
}

bool function_waits(const char *name)
{
    return function_synchronizes(name) || name_is_among(name, ALLOCATOR_FUNCTIONS);
}

/* ---- state ---- */

/* A module of one trace, with a number that it shares with its equal in the other one. */
struct matched_module {
    const struct peet_module *module;
    uint32_t
        number; /* the same for modules that count as one (BY_ADDRESS: also by path); 0: its code is recognized by source */
};

/* Events of a block. */
struct block_classes {
    uint32_t first, count; /* in the list of all blocks */
    bool is_known;
};

struct code_side {
    struct peet_trace *trace;
    struct symbols *symbols;
    uint32_t process;
    struct matched_module *module;
    size_t modules;
    uint32_t *line_of; /* by instruction of the schema: 1 + index of its line in `lines`; 0: by address */
    uint32_t insns;
    struct block_classes *block; /* by item */
    uint32_t blocks;
    uint32_t *event; /* by block, the events of all blocks */
    size_t events;
};

/* An instruction of another build, in its function and line. */
struct placed_insn {
    uint32_t function, line; /* function: number of its name */
    uint64_t addr, kind;     /* kind: a hash of what it does */
    uint32_t insn;           /* number in the schema */
    uint8_t side;
};

struct placed_insns {
    struct placed_insn *insn;
    size_t count;
};

/* A line of a function in one trace. */
struct code_line {
    uint64_t contents; /* hash of its instructions */
    uint32_t function, line;
    uint32_t number; /* equal for matching lines of both traces */
};

struct code_match {
    enum compare_unit unit;
    enum compare_by by;
    struct code_side side[2];
    bool is_by_source;
    struct event_class *class;
    size_t classes;
    struct map numbers;   /* uint32_t: 1 + class, by key and tag */
    struct map functions; /* uint32_t: 1 + index in `function`, by hash of the name */
    const char **function;
    size_t functions_count;
    struct code_line *line[2]; /* by side, rising by function and line */
    size_t lines[2];
    uint32_t line_numbers;
};

/* ---- modules ---- */

/* Whether symbols of two modules lie at the same offsets. */
static bool modules_have_equal_symbols(const struct peet_module *a, const struct peet_module *b)
{
    if (a->symbols != b->symbols || a->symbols == 0)
        return false;
    for (uint32_t i = 0; i < a->symbols; i++)
        if (a->symbol[i].addr - a->bias != b->symbol[i].addr - b->bias
            || strcmp(a->symbol[i].name, b->symbol[i].name) != 0)
            return false;
    return true;
}

static bool modules_are_equal(const struct peet_module *a, const struct peet_module *b)
{
    return *a->build_id && *b->build_id ? strcmp(a->build_id, b->build_id) == 0 : modules_have_equal_symbols(a, b);
}

static void code_match_list_modules(struct code_side *s)
{
    const struct peet_module *module;

    for (size_t i = 0; (module = peet_trace_module(s->trace, i)); i++)
        if (module->process == s->process) {
            s->module = mem_room(s->module, s->modules, sizeof *s->module);
            s->module[s->modules++] = (struct matched_module){ module, 0 };
        }
}

static void code_match_modules(struct code_match *m)
{
    struct code_side *a = &m->side[0], *b = &m->side[1];
    uint32_t next = 1;

    code_match_list_modules(a);
    code_match_list_modules(b);
    for (size_t i = 0; m->by != BY_SOURCE && i < a->modules; i++)
        for (size_t j = 0; j < b->modules && a->module[i].number == 0; j++)
            if (b->module[j].number == 0
                && (modules_are_equal(a->module[i].module, b->module[j].module)
                    || (m->by == BY_ADDRESS && strcmp(a->module[i].module->path, b->module[j].module->path) == 0)))
                a->module[i].number = b->module[j].number = next++;
    for (unsigned side = 0; m->by == BY_ADDRESS && side < 2; side++)
        for (size_t i = 0; i < m->side[side].modules; i++)
            if (m->side[side].module[i].number == 0)
                m->side[side].module[i].number = next++;
}

static const struct matched_module *code_side_module(const struct code_side *s, uint64_t addr)
{
    for (size_t i = 0; i < s->modules; i++)
        for (uint32_t k = 0; k < s->module[i].module->segments; k++)
            if (addr - s->module[i].module->segment[k].start < s->module[i].module->segment[k].size)
                return &s->module[i];
    return NULL;
}

/* ---- classes ---- */

/* Keys of classes: tags of modules are below; those of lines, callees and events have one of these bits. */
enum { TAG_LINE = 1 << 28, TAG_CALL = 1 << 29, TAG_EVENT = 1 << 30, TAG_SIDE = 1 << 27 };

static uint32_t code_match_number(struct code_match *m, uint64_t key, uint32_t tag, const struct event_class *class)
{
    uint32_t *number = map_put(&m->numbers, key, tag);

    assert(number);
    if (*number == 0) {
        m->class = mem_room(m->class, m->classes, sizeof *m->class);
        m->class[m->classes++] = *class;
        *number = (uint32_t)m->classes;
    }
    return *number - 1;
}

/* The number of a function's name, equal in both traces. */
static uint32_t code_match_function(struct code_match *m, const char *name)
{
    uint64_t key = XXH3_64bits(name, strlen(name));

    for (uint32_t tag = 0;; tag++) {
        uint32_t *number = map_put(&m->functions, key, tag);
        assert(number);
        if (*number == 0) {
            m->function = mem_room(m->function, m->functions_count, sizeof *m->function);
            m->function[m->functions_count++] = name;
            *number = (uint32_t)m->functions_count;
        }
        if (strcmp(m->function[*number - 1], name) == 0)
            return *number - 1;
    }
}

/* The name of the function at an address, by the trace's symbols. */
static const char *code_side_symbol(const struct code_side *s, uint64_t addr)
{
    const struct peet_symbol *symbol = peet_trace_symbol(s->trace, s->process, addr);

    return symbol ? symbol->name : "?";
}

/* Whether the function or one that is inlined at an address waits. */
static bool code_side_waits(const struct code_side *s, uint64_t addr, bool is_by_source)
{
    struct symbols_frame frame[SYMBOLS_FRAMES];
    size_t frames = is_by_source ? symbols_code(s->symbols, s->process, addr, frame) : 0;
    bool waits = function_waits(code_side_symbol(s, addr));

    for (size_t i = 0; i < frames; i++)
        waits |= function_waits(frame[i].function);
    return waits;
}

static uint32_t code_match_insn(struct code_match *m, unsigned side, uint32_t insn_number, const struct peet_insn *insn)
{
    const struct code_side *s = &m->side[side];
    uint32_t line = s->line_of ? s->line_of[insn_number] : 0;
    struct event_class class = { .addr = insn->addr,
                                 .process = s->process,
                                 .side = (uint8_t)side,
                                 .kind = insn->class };

    if (line == 0) {
        const struct matched_module *module = code_side_module(s, insn->addr);
        uint64_t offset = module ? insn->addr - module->module->bias : insn->addr;
        uint32_t tag = !module ? 0 : module->number ? module->number : TAG_SIDE + side;
        uint32_t *known = map_find(&m->numbers, offset, tag);
        if (known)
            return *known - 1;
        class.waits = code_side_waits(s, insn->addr, false);
        return code_match_number(m, offset, tag, &class);
    }
    const struct code_line *of = &m->line[side][line - 1];
    uint64_t key = (uint64_t)of->function << 32 | of->number;
    if (m->unit == UNIT_CALLS) {
        const char *callee = insn->class == PEET_CL_return ? NULL
                             : insn->target                ? code_side_symbol(s, insn->target)
                                                           : "?";
        class.callee = callee;
        key = (uint64_t)of->function << 32 | (callee ? 1 + code_match_function(m, callee) : 0);
    }
    uint32_t tag = m->unit == UNIT_CALLS ? TAG_CALL : TAG_LINE, *known = map_find(&m->numbers, key, tag);
    if (known)
        return *known - 1;
    class.waits = code_side_waits(s, insn->addr, true);
    return code_match_number(m, key, tag, &class);
}

/* ---- lines of other builds ---- */

static int placed_insn_order(const void *a, const void *b)
{
    const struct placed_insn *x = a, *y = b;

    if (x->function != y->function)
        return x->function < y->function ? -1 : 1;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    return (x->addr > y->addr) - (x->addr < y->addr);
}

/* Instructions of the schema that are recognized by source, sorted by function and line. */
static void code_match_place(struct code_match *m, unsigned side, struct placed_insns *ret)
{
    struct code_side *s = &m->side[side];
    struct symbols_frame frame[SYMBOLS_FRAMES];
    const struct peet_block *block;

    for (uint32_t item = 1; item < peet_trace_items(s->trace); item++) {
        if (!(block = peet_trace_block(s->trace, item)))
            continue;
        for (unsigned i = 0; i < block->insns; i++) {
            const struct peet_insn *insn = &block->insn[i];
            const struct matched_module *module = code_side_module(s, insn->addr);
            if (!module || module->number)
                continue;
            symbols_code(s->symbols, s->process, insn->addr, frame);
            uint64_t kind = insn->class;
            if (insn->target && (insn->class == PEET_CL_call))
                kind = kind << 32 | (1 + code_match_function(m, code_side_symbol(s, insn->target)));
            ret->insn = mem_room(ret->insn, ret->count, sizeof *ret->insn);
            ret->insn[ret->count++] = (struct placed_insn){ code_match_function(m, frame[0].function),
                                                            frame[0].line,
                                                            insn->addr,
                                                            kind,
                                                            block->first_insn + i,
                                                            (uint8_t)side };
        }
    }
    if (ret->count)
        qsort(ret->insn, ret->count, sizeof *ret->insn, placed_insn_order);
}

/* Makes lines of sorted instructions, and notes the line of each instruction. */
static void code_match_make_lines(struct code_match *m, unsigned side, const struct placed_insns *of)
{
    struct code_side *s = &m->side[side];

    for (size_t i = 0, end; i < of->count; i = end) {
        const struct placed_insn *first = &of->insn[i];
        uint64_t hash = 0, last = 0;
        for (end = i; end < of->count && of->insn[end].function == first->function && of->insn[end].line == first->line;
             end++) {
            const struct placed_insn *p = &of->insn[end];
            if (p->addr != last) /* an instruction can be part of several blocks */
                hash = XXH3_64bits_withSeed(&p->kind, sizeof p->kind, hash);
            last = p->addr;
            s->line_of[p->insn] = (uint32_t)m->lines[side] + 1;
        }
        m->line[side] = mem_room(m->line[side], m->lines[side], sizeof *m->line[side]);
        m->line[side][m->lines[side]++] = (struct code_line){ hash, first->function, first->line, UINT32_MAX };
    }
}

static uint32_t code_match_contents(struct map *numbers, uint64_t contents)
{
    uint32_t *number = map_put(numbers, contents, 0);

    assert(number);
    if (*number == 0)
        *number = (uint32_t)numbers->count;
    return *number - 1;
}

/* Lines of both builds between two that match. */
struct line_gap {
    struct code_line *a, *b;
    size_t n, m;
    int64_t shift_before, shift_after; /* of the line before, of the line after: its number in B − that in A */
};

/* Gives lines of a gap numbers. They match if there are equally many, or if a line moved as far as the matching line before or after it. */
static void code_match_gap(struct code_match *m, const struct line_gap *g)
{
    for (size_t i = 0; i < g->n; i++)
        g->a[i].number = m->line_numbers++;
    for (size_t j = 0, i = 0; j < g->m; j++) {
        size_t k = i;
        if (g->n == g->m)
            k = j;
        else
            while (k < g->n
                   && (g->a[k].line == 0
                       || (g->a[k].line + g->shift_before != g->b[j].line
                           && g->a[k].line + g->shift_after != g->b[j].line)))
                k++;
        bool is_match = k < g->n;
        g->b[j].number = is_match ? g->a[k].number : m->line_numbers++;
        i = is_match ? k + 1 : i;
    }
}

/* Gives matching lines of a function equal numbers; a and b are its lines. */
static int code_match_align(struct code_match *m, struct code_line *a, size_t n, struct code_line *b, size_t count)
{
    const struct distance_effort effort = { vector_width_best(), DISTANCE_CELLS };
    uint32_t *string = mem_alloc(n + count + 1, sizeof *string);
    struct map numbers = { .value_size = sizeof(uint32_t) };
    struct edit_script script;
    size_t i = 0, j = 0;
    int64_t shift = n && count ? (int64_t)b[0].line - a[0].line : 0;

    for (size_t k = 0; k < n; k++)
        string[k] = code_match_contents(&numbers, a[k].contents);
    for (size_t k = 0; k < count; k++)
        string[n + k] = code_match_contents(&numbers, b[k].contents);
    int r = edit_script_make((struct string32){ string, n }, (struct string32){ string + n, count },
                             (uint32_t)numbers.count, &effort, &script);
    for (size_t k = 0; r == 0 && k <= script.count; k++) {
        struct edit_hunk end = { n, count, 0, 0 }, h = k < script.count ? script.hunk[k] : end;
        while (i < h.a) {
            shift = (int64_t)b[j].line - a[i].line;
            a[i++].number = b[j++].number = m->line_numbers++;
        }
        size_t after_a = h.a + h.a_count, after_b = h.b + h.b_count;
        int64_t next = after_a < n && after_b < count ? (int64_t)b[after_b].line - a[after_a].line : shift;
        code_match_gap(m, &(struct line_gap){ a + i, b + j, h.a_count, h.b_count, shift, next });
        i += h.a_count;
        j += h.b_count;
    }
    if (r == 0)
        edit_script_release(&script);
    map_release(&numbers);
    free(string);
    return r;
}

static size_t code_lines_end(const struct code_line *line, size_t count, size_t first)
{
    size_t end = first;

    while (end < count && line[end].function == line[first].function)
        end++;
    return end;
}

static int code_match_lines(struct code_match *m)
{
    struct placed_insns placed[2] = { { 0 } };
    size_t i = 0, j = 0;
    int r = 0;

    for (unsigned side = 0; side < 2; side++) {
        struct code_side *s = &m->side[side];
        s->insns = peet_trace_insns(s->trace);
        s->line_of = mem_alloc((size_t)s->insns + 1, sizeof *s->line_of);
        code_match_place(m, side, &placed[side]);
        code_match_make_lines(m, side, &placed[side]);
        m->is_by_source |= placed[side].count > 0;
        free(placed[side].insn);
    }
    while (r == 0 && (i < m->lines[0] || j < m->lines[1])) {
        struct code_line *a = m->line[0] + i, *b = m->line[1] + j;
        uint32_t function =
            j == m->lines[1] || (i < m->lines[0] && a->function < b->function) ? a->function : b->function;
        size_t a_end = i < m->lines[0] && a->function == function ? code_lines_end(m->line[0], m->lines[0], i) : i;
        size_t b_end = j < m->lines[1] && b->function == function ? code_lines_end(m->line[1], m->lines[1], j) : j;
        r = code_match_align(m, a, a_end - i, b, b_end - j);
        i = a_end;
        j = b_end;
    }
    return r;
}

/* ---- interface ---- */

int code_match_new(struct peet_trace *const trace[2], const uint32_t process[2], enum compare_unit unit,
                   enum compare_by by, struct code_match **ret, struct peet_err *err)
{
    struct code_match *m = mem_alloc(1, sizeof *m);
    int r = 0;

    m->unit = unit;
    m->by = by;
    m->numbers.value_size = m->functions.value_size = sizeof(uint32_t);
    for (unsigned side = 0; r == 0 && side < 2; side++) {
        struct code_side *s = &m->side[side];
        s->trace = trace[side];
        s->process = process[side];
        s->blocks = peet_trace_items(trace[side]);
        s->block = mem_alloc((size_t)s->blocks + 1, sizeof *s->block);
        r = symbols_open(trace[side], &s->symbols, err);
    }
    if (r == 0) {
        code_match_modules(m);
        if (code_match_lines(m) < 0)
            r = err_set(err, PEET_ERR_MEMORY, "no memory");
    }
    if (r < 0) {
        code_match_free(m);
        return r;
    }
    *ret = m;
    return 0;
}

void code_match_free(struct code_match *m)
{
    if (!m)
        return;
    for (unsigned side = 0; side < 2; side++) {
        struct code_side *s = &m->side[side];
        symbols_free(s->symbols);
        free(s->module);
        free(s->line_of);
        free(s->block);
        free(s->event);
        free(m->line[side]);
    }
    free(m->class);
    free(m->function);
    map_release(&m->numbers);
    map_release(&m->functions);
    free(m);
}

bool code_match_is_by_source(const struct code_match *m)
{
    return m->is_by_source;
}

static bool insn_is_call(const struct peet_insn *insn)
{
    return insn->class == PEET_CL_call || insn->class == PEET_CL_call_indirect || insn->class == PEET_CL_return;
}

/* Whether instruction i of a block is an event. In other builds, instructions of a line that follow each other are one event. */
static bool code_match_is_event(const struct code_match *m, const struct code_side *s, const struct peet_block *block,
                                unsigned i)
{
    const struct peet_insn *insn = &block->insn[i];
    const uint32_t *line = &s->line_of[block->first_insn + i];

    if (insn->flags & PEET_FL_KERNEL)
        return false;
    switch (m->unit) {
    case UNIT_INSTRUCTIONS: return i == 0 || line[0] == 0 || line[0] != line[-1];
    case UNIT_BLOCKS: return i == 0;
    case UNIT_CALLS: return insn_is_call(insn);
    case UNIT_EVENTS: break;
    }
    return false;
}

/* Lists the events of a block. */
static void code_match_list(struct code_match *m, unsigned side, uint32_t item, struct block_classes *ret)
{
    struct code_side *s = &m->side[side];
    const struct peet_block *block = peet_trace_block(s->trace, item);

    ret->first = (uint32_t)s->events;
    for (unsigned i = 0; block && i < block->insns; i++)
        if (code_match_is_event(m, s, block, i)) {
            uint32_t class = code_match_insn(m, side, block->first_insn + i, &block->insn[i]);
            s->event = mem_room(s->event, s->events, sizeof *s->event);
            s->event[s->events++] = class;
        }
    ret->count = (uint32_t)s->events - ret->first;
    ret->is_known = true;
}

size_t code_match_events_before(struct code_match *m, unsigned side, uint32_t item, unsigned insn)
{
    const struct peet_block *block = peet_trace_block(m->side[side].trace, item);
    size_t count = 0;

    for (unsigned i = 0; i < insn; i++)
        count += code_match_is_event(m, &m->side[side], block, i);
    return count;
}

const uint32_t *code_match_block(struct code_match *m, unsigned side, uint32_t item, size_t *ret_count)
{
    struct block_classes *b = &m->side[side].block[item];

    if (!b->is_known)
        code_match_list(m, side, item, b);
    *ret_count = b->count;
    return m->side[side].event + b->first;
}

/* Whether an event stands for waiting or for waking others. */
static bool event_is_synchronisation(uint32_t kind)
{
    return (kind >= PEET_EV_mutex_init && kind <= PEET_EV_wait)
           || (kind >= PEET_EV_futex_wait && kind <= PEET_EV_arc_head) || kind == PEET_EV_thread_join;
}

uint32_t code_match_event(struct code_match *m, unsigned side, const struct peet_event *event)
{
    const struct code_side *s = &m->side[side];
    const struct matched_module *module = event->site ? code_side_module(s, event->site) : NULL;
    struct event_class class = { .addr = event->site, .process = s->process, .side = (uint8_t)side };
    uint64_t key = 0;
    uint32_t tag = TAG_EVENT + event->kind;

    class.kind = (uint8_t)(EVENT_CLASS + event->kind);
    class.waits = event_is_synchronisation(event->kind);
    if (module && module->number) {
        key = event->site - module->module->bias;
        tag += module->number << 8;
    } else if (event->site) {
        key = code_match_function(m, code_side_symbol(s, event->site));
    }
    return code_match_number(m, key, tag, &class);
}

uint32_t code_match_classes(const struct code_match *m)
{
    return (uint32_t)m->classes;
}

const struct event_class *code_match_class(const struct code_match *m, uint32_t number)
{
    return &m->class[number];
}

struct symbols_frame code_match_frame(struct code_match *m, uint32_t number)
{
    const struct event_class *class = &m->class[number];
    struct symbols_frame frame[SYMBOLS_FRAMES] = { { "?", NULL, 0 } };

    if (class->addr)
        symbols_code(m->side[class->side].symbols, class->process, class->addr, frame);
    return frame[0];
}
