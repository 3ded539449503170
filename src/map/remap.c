/* SPDX-License-Identifier: MIT */
#include "map/remap.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "format/text/scan.h"

/* Addresses of moved objects without `at`: above all that programs use. Objects do not share pages. */
#define OWN_START 0x600000000000u
#define OWN_ALIGN 0x10000u

enum verb { VERB_MOVE, VERB_SPREAD, VERB_SPLIT };

/* A line of the file of rules. */
struct rule {
    enum verb verb;
    char *object;    /* its name, as it was written */
    char *function;  /* of heap:FUNCTION; NULL: the object is no heap block */
    uint64_t which;  /* index of the heap block to move; UINT64_MAX: all blocks */
    uint64_t blocks; /* heap blocks of the function so far */
    uint64_t every;  /* bytes of an element; VERB_SPREAD, VERB_SPLIT */
    uint64_t to;     /* bytes from an element to the next one after the move; VERB_SPREAD */
    uint64_t from;   /* bytes from an element's begin to the member; VERB_SPLIT */
    uint64_t size;   /* bytes of the member; VERB_SPLIT */
    uint64_t at;     /* new address; 0: the next free one above OWN_START */
    bool used;       /* an object of the rule has appeared */
};

/* Bytes [start, end) of a process that the machine sees at other addresses. */
struct remap_span {
    uint32_t process; /* number in the trace */
    uint64_t start, end;
    const struct rule *rule; /* by which they moved */
    uint64_t dest;           /* new address of `start` */
};

/* All rules, and what they have moved. */
struct remap {
    const struct peet_trace *trace; /* borrowed: names of functions */
    struct rule *rule;              /* in the order of the file */
    size_t rules;
    struct remap_span *span; /* by process, and then by rising addresses; none of one process overlap */
    size_t spans;
    struct map taken; /* bool, by rule and process: an object of the rule is at the address `at` of the rule */
    uint64_t next;    /* next free address above OWN_START */
};

/* ---- spans ---- */

/* Index of the first span that ends after an address of a process; r->spans: there is none. */
static size_t find_span(const struct remap *r, uint32_t process, uint64_t addr)
{
    size_t low = 0, high = r->spans;

    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct remap_span *s = &r->span[middle];
        if (s->process != process ? s->process < process : s->end <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void remove_spans(struct remap *r, uint32_t process, uint64_t start, uint64_t end)
{
    size_t first = find_span(r, process, start), last = first;

    while (last < r->spans && r->span[last].process == process && r->span[last].start < end)
        last++;
    if (last > first)
        memmove(r->span + first, r->span + last, (r->spans - last) * sizeof *r->span);
    r->spans -= last - first;
}

static uint64_t rule_elements(const struct rule *u, uint64_t size)
{
    return (size + u->every - 1) / u->every;
}

/* Bytes that an object of `size` bytes takes at its new address. */
static uint64_t rule_room(const struct rule *u, uint64_t size)
{
    return u->verb == VERB_MOVE ? size : rule_elements(u, size) * (u->verb == VERB_SPREAD ? u->to : u->size);
}

static void add_span(struct remap *r, struct rule *u, uint32_t process, uint64_t start, uint64_t size)
{
    uint64_t dest = u->at;

    if (size == 0 || start + size < start) /* no object is like that, but events can say so */
        return;
    bool *is_taken = map_put(&r->taken, (uint64_t)(u - r->rule), process);
    assert(is_taken);         /* a rule and a process, which are few */
    if (!dest || *is_taken) { /* the second object of a rule in a process cannot have the same address */
        dest = r->next;
        r->next += (rule_room(u, size) + OWN_ALIGN - 1) / OWN_ALIGN * OWN_ALIGN + OWN_ALIGN;
    }
    u->used = *is_taken = true;
    remove_spans(r, process, start, start + size);
    r->span = mem_room(r->span, r->spans, sizeof *r->span);
    size_t at = find_span(r, process, start);
    memmove(r->span + at + 1, r->span + at, (r->spans - at) * sizeof *r->span);
    r->span[at] = (struct remap_span){ process, start, start + size, u, dest };
    r->spans++;
}

uint64_t remap_addr(const struct remap *r, uint32_t process, uint64_t addr)
{
    size_t at = find_span(r, process, addr);

    if (at == r->spans || r->span[at].process != process || addr < r->span[at].start)
        return addr;
    const struct remap_span *s = &r->span[at];
    const struct rule *u = s->rule;
    uint64_t offset = addr - s->start;
    if (u->verb == VERB_MOVE)
        return s->dest + offset;
    uint64_t number = offset / u->every, within = offset % u->every;
    if (u->verb == VERB_SPREAD)
        return s->dest + number * u->to + within;
    return within >= u->from && within < u->from + u->size ? s->dest + number * u->size + within - u->from : addr;
}

/* ---- objects ---- */

static void find_symbols(struct remap *r, struct rule *u)
{
    const struct peet_module *m;

    for (size_t i = 0; (m = peet_trace_module(r->trace, i)); i++)
        for (uint32_t k = 0; k < m->symbols; k++)
            if (!m->symbol[k].code && !strcmp(m->symbol[k].name, u->object))
                add_span(r, u, m->process, m->symbol[k].addr, m->symbol[k].size);
}

/* Bytes that a rule names by their address, in each process. */
static void add_bytes(struct remap *r, struct rule *u, uint64_t start, uint64_t size)
{
    const struct peet_process *p = peet_trace_process(r->trace, 0);

    if (!p) /* a program that has not begun: its process has number 1 */
        add_span(r, u, 1, start, size);
    for (size_t i = 0; (p = peet_trace_process(r->trace, i)); i++)
        add_span(r, u, p->id, start, size);
}

static void see_block(struct remap *r, uint32_t process, uint64_t site, uint64_t addr, uint64_t size)
{
    const struct peet_symbol *f = peet_trace_symbol(r->trace, process, site);

    remove_spans(r, process, addr, addr + size); /* of objects that were freed */
    for (size_t i = 0; f && i < r->rules; i++) {
        struct rule *u = &r->rule[i];
        if (!u->function || strcmp(u->function, f->name) != 0)
            continue;
        if (u->which == UINT64_MAX || u->which == u->blocks)
            add_span(r, u, process, addr, size);
        u->blocks++;
    }
}

static void see_name(struct remap *r, uint32_t process, const struct peet_event *e)
{
    const char *name = peet_trace_string(r->trace, e->arg[0]);

    for (size_t i = 0; name && i < r->rules; i++)
        if (!r->rule[i].function && !strcmp(r->rule[i].object, name))
            add_span(r, &r->rule[i], process, e->arg[1], e->arg[2]);
}

void remap_event(struct remap *r, uint32_t process, const struct peet_event *e)
{
    switch (e->kind) {
    case PEET_EV_malloc: see_block(r, process, e->site, e->arg[0], e->arg[1]); break;
    case PEET_EV_calloc: see_block(r, process, e->site, e->arg[0], e->arg[1] * e->arg[2]); break;
    case PEET_EV_realloc:
    case PEET_EV_memalign: see_block(r, process, e->site, e->arg[0], e->arg[2]); break;
    case PEET_EV_name_data: see_name(r, process, e); break;
    default: break;
    }
}

/* ---- the file ---- */

static int read_object(struct text_scan *s, struct rule *u)
{
    const char *hash;
    uint64_t start, size;

    if (text_scan_at_end(s))
        return text_scan_expected(s, "an object");
    size_t length = strcspn(s->at, " \t"); /* s->at is at the first character of the word */
    u->object = mem_format("%.*s", (int)length, s->at);
    s->at += length;
    u->which = UINT64_MAX;
    if (!strncmp(u->object, "heap:", 5)) {
        u->function = mem_string(u->object + 5);
        if ((hash = strchr(u->function, '#'))) {
            char *end;
            u->which = strtoull(hash + 1, &end, 10);
            if (!hash[1] || *end)
                return text_scan_wrong(s, "'%s': behind # stands which of the function's blocks it is, from 0",
                                       u->object);
            u->function[hash - u->function] = '\0';
        }
    } else if (u->object[0] >= '0' && u->object[0] <= '9') {
        char *end;
        start = strtoull(u->object, &end, 0);
        size = *end == '+' ? strtoull(end + 1, &end, 0) : 0;
        if (*end || size == 0)
            return text_scan_wrong(s, "'%s': bytes in memory are ADDRESS+BYTES", u->object);
        u->from = start; /* until the rule has been read */
        u->size = size;
    }
    return 0;
}

static int read_number(struct text_scan *s, const char *word, uint64_t least, uint64_t *ret)
{
    int code = text_scan_field(s, word, UINT64_MAX, ret);

    return code < 0 || *ret >= least ? code : text_scan_wrong(s, "%s: it must be at least 1", word);
}

static int read_rule(struct text_scan *s, struct remap *r, struct rule *u)
{
    bool moves = text_scan_take(s, "move"), spreads = !moves && text_scan_take(s, "spread");
    int code;

    if (!moves && !spreads && !text_scan_take(s, "split"))
        return text_scan_expected(s, "'move', 'spread' or 'split'");
    u->verb = moves ? VERB_MOVE : spreads ? VERB_SPREAD : VERB_SPLIT;
    if ((code = read_object(s, u)) < 0)
        return code;
    uint64_t start = u->from, size = u->size;
    u->from = u->size = 0;
    if (moves) {
        if ((code = read_number(s, "to", 1, &u->at)) < 0)
            return code;
    } else {
        if ((code = read_number(s, "every", 1, &u->every)) < 0)
            return code;
        if (spreads && (code = read_number(s, "to", 1, &u->to)) < 0)
            return code;
        if (!spreads
            && ((code = read_number(s, "from", 0, &u->from)) < 0 || (code = read_number(s, "for", 1, &u->size)) < 0))
            return code;
        if (spreads && u->to < u->every)
            return text_scan_wrong(s, "rule_elements of %lu bytes do not fit into %lu", (unsigned long)u->every,
                                   (unsigned long)u->to);
        if (!spreads && (u->from >= u->every || u->size > u->every - u->from))
            return text_scan_wrong(s, "the member ends behind its element of %lu bytes", (unsigned long)u->every);
        if (!text_scan_at_end(s) && (code = read_number(s, "at", 1, &u->at)) < 0)
            return code;
    }
    if ((code = text_scan_end(s)) < 0)
        return code;
    if (size)
        add_bytes(r, u, start, size);
    else if (!u->function)
        find_symbols(r, u);
    return 0;
}

/* Rules point into the array from spans, so that it is made before. */
static int count_lines(FILE *in)
{
    int lines = 1, c;

    while ((c = getc(in)) != EOF)
        lines += c == '\n';
    rewind(in);
    return lines;
}

int remap_read(const char *path, const struct peet_trace *t, struct remap **ret, struct peet_err *err)
{
    struct remap *r = mem_alloc(1, sizeof *r);
    FILE *in = fopen(path, "r");
    struct text_scan s;

    r->trace = t;
    r->taken.value_size = sizeof(bool);
    r->next = OWN_START;
    if (!in) {
        free(r);
        return err_sys(err, errno, "%s", path);
    }
    r->rule = mem_alloc((size_t)count_lines(in), sizeof *r->rule);
    int code = text_scan_init(&s, in, path, err);
    while (code >= 0 && (code = text_scan_line(&s)) > 0) {
        code = read_rule(&s, r, &r->rule[r->rules]);
        r->rules++;
    }
    text_scan_release(&s);
    fclose(in);
    if (code < 0) {
        remap_free(r);
        return code;
    }
    *ret = r;
    return 0;
}

void remap_free(struct remap *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->rules; i++) {
        free(r->rule[i].object);
        free(r->rule[i].function);
    }
    free(r->rule);
    map_release(&r->taken);
    free(r->span);
    free(r);
}

const char *remap_unused(const struct remap *r, size_t i)
{
    for (size_t k = 0; k < r->rules; k++)
        if (!r->rule[k].used && i-- == 0)
            return r->rule[k].object;
    return NULL;
}
