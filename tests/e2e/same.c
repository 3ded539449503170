/* SPDX-License-Identifier: MIT */
/* usage: same [OPTION…] A B
 * Whether two traces say the same, thread by thread: the same instructions in the same order, each with the same references
 * (kind, address, size), and the same events between them. How instructions are grouped into blocks and loops does not count.
 * Threads are matched by creator and by order of creation, not by their numbers.
 *
 *   --moved      A and B are recordings of two builds of one program, whose code and constants stand elsewhere. An instruction of
 *                A belongs to the instruction of B that it met first, and to no other; both have the same class and flags, and are in
 *                functions of the same name; in a function, the order of addresses is the same. What a reference finds in the
 *                executable's own sections may have moved, each section by one distance. All else (stacks, heap) may not.
 *   --within     A was single-stepped, B says what instrumented code said of itself: of A count the instructions that B's schema
 *                knows. Events are not compared. What was executed of B's functions and is neither known nor inserted (that is, uses
 *                %r14 or %r15) nor a nop is a difference, too.
 *   --stacks     stacks of threads may stand elsewhere; what is in them may not have moved in them
 *   --arenas     the same for what the C library's malloc gives to threads other than the first: which thread gets which of its
 *                arenas (64 MiB, at multiples of that) is a race in the C library
 *   --prefix     each thread of A may end anywhere, and threads of B may be missing in A
 *   --no-code    where instructions stand is not compared
 *   --no-events  events are not compared
 *   --functions  (with --within) lists the functions of the executable that A executed and B does not know
 *
 * Status 0: the same, 1: not, 2: unknown. The memory that it takes depends on the schemas, not on the lengths of streams.
 * Takes for granted that all processes of a trace that have code at one address have the same code there. */
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <Zydis/Zydis.h>

#include "base/map.h"
#include "base/mem.h"
#include "peet/trace.h"
#include "tests/e2e/code.h"
#include "tests/e2e/copies.h"

enum { SKIPPED = UINT32_MAX, ARENA = 1 << 26, DISTANCES = 16, SHOWN = 6, NAME = 200 };
enum item { ITEM_END, ITEM_INSN, ITEM_EVENT };

static struct {
    bool moved, within, stacks, arenas, prefix, no_code, no_events, functions;
} option;

struct side {
    const char *path;
    struct peet_trace *trace;
    uint32_t distinct;
    uint64_t *addr;     /* of all instructions, each once, rising */
    uint32_t *sample;   /* per address: an instruction of the schema that stands there */
    uint32_t *mate;     /* per address: 1 + which one of the other trace it belongs to */
    bool *skipped;      /* per address: executed and left out */
    uint32_t *uid;      /* per instruction of the schema: which address; SKIPPED: does not count */
    struct map site;    /* of events: address in the other trace */
    uint64_t low, high; /* the executable */

    /* the thread that is being read */
    struct peet_cursor *cursor;
    struct peet_batch batch;
    const struct peet_record *at, *end;
    uint32_t now, last, block; /* instructions of the schema that are to come of the block; now == last: none */
    uint32_t before;           /* the instruction before */
    uint32_t process;
    bool is_over;
    uint64_t instructions, references, events;
};

static struct side a, b;
static uint32_t *pair; /* per item of a: the block of b that has the same instructions */

struct distance {
    uint64_t by, low, high; /* in a */
};
static struct distance moved[DISTANCES];
static unsigned distances;

struct stack {
    uint64_t low, high, by; /* low and high in a */
};
static struct stack *stack;
static size_t stacks;

static _Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
static _Noreturn void fail(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    fputs("same: ", stderr);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(2);
}

/* ---- the schema ---- */

static int compare_numbers(const void *x, const void *y)
{
    uint64_t p = *(const uint64_t *)x, q = *(const uint64_t *)y;

    return p < q ? -1 : p > q;
}

static uint32_t find_address(const struct side *s, uint64_t addr)
{
    uint32_t low = 0, high = s->distinct;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (s->addr[middle] < addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->distinct && s->addr[low] == addr ? low : SKIPPED;
}

static void find_executable(struct side *s)
{
    const struct peet_process *p = peet_trace_process(s->trace, 0);
    const struct peet_module *m;

    for (size_t i = 0; p && (m = peet_trace_module(s->trace, i)); i++)
        for (uint32_t k = 0; m->process == p->id && !strcmp(m->path, p->program) && k < m->segments; k++) {
            if (!s->high || m->segment[k].start < s->low)
                s->low = m->segment[k].start;
            if (m->segment[k].start + m->segment[k].size > s->high)
                s->high = m->segment[k].start + m->segment[k].size;
        }
}

static struct copies copies; /* of what b says */

static void side_open(struct side *s, const char *path)
{
    struct peet_err err;

    s->path = path;
    if (peet_trace_open(path, &s->trace, &err) < 0)
        fail("%s", err.text);
    uint32_t n = peet_trace_insns(s->trace), kept = 0;
    s->addr = mem_alloc(n + 1, sizeof *s->addr);
    s->uid = mem_alloc(n + 1, sizeof *s->uid);
    for (uint32_t i = 0; i < n; i++) {
        const struct peet_insn *in = peet_trace_insn(s->trace, i);
        if (in)
            s->addr[kept++] = copies_original(&copies, in->addr);
    }
    qsort(s->addr, kept, sizeof *s->addr, compare_numbers);
    for (uint32_t i = 0; i < kept; i++)
        if (i == 0 || s->addr[i] != s->addr[i - 1])
            s->addr[s->distinct++] = s->addr[i];
    s->mate = mem_alloc(s->distinct + 1, sizeof *s->mate);
    s->sample = mem_alloc(s->distinct + 1, sizeof *s->sample);
    s->skipped = mem_alloc(s->distinct + 1, sizeof *s->skipped);
    for (uint32_t i = 0; i < n; i++) {
        const struct peet_insn *in = peet_trace_insn(s->trace, i);
        s->uid[i] = in ? find_address(s, copies_original(&copies, in->addr)) : SKIPPED;
        if (in)
            s->sample[s->uid[i]] = i;
    }
    s->site.value_size = sizeof(uint64_t);
    find_executable(s);
}

/* ---- the stream ---- */

static void side_begin(struct side *s, uint32_t thread, uint32_t process)
{
    struct peet_err err;

    if (peet_cursor_open(s->trace, thread, 0, &s->cursor, &err) < 0)
        fail("%s: thread %u: %s", s->path, thread, err.text);
    s->at = s->end = NULL;
    s->now = s->last = 0;
    s->before = SKIPPED;
    s->process = process;
    s->is_over = false;
    s->instructions = s->references = s->events = 0;
}

/* The record that comes, or NULL at the end. */
static const struct peet_record *side_peek(struct side *s)
{
    struct peet_err err;

    while (s->at == s->end && !s->is_over) {
        int r = peet_cursor_next(s->cursor, &s->batch, &err);
        if (r < 0)
            fail("%s: %s", s->path, err.text);
        s->is_over = r == 0;
        s->at = r ? s->batch.records : NULL;
        s->end = r ? s->at + s->batch.count : NULL;
    }
    return s->at == s->end ? NULL : s->at;
}

/* The next reference of the instruction that is `now`, or NULL. */
static const struct peet_record *side_reference(struct side *s)
{
    const struct peet_record *r = s->at != s->end ? s->at : side_peek(s);

    return r && peet_is_reference(r) && r->id == s->now ? r : NULL;
}

static void side_done(struct side *s) /* with the instruction, of which all references are taken */
{
    s->instructions++;
    s->before = s->now++;
}

static enum item side_item(struct side *s)
{
    for (;;) {
        while (s->now < s->last) {
            if (s->uid[s->now] != SKIPPED && !(option.within && s == &a && !s->mate[s->uid[s->now]]))
                return ITEM_INSN;
            if (s->uid[s->now] != SKIPPED)
                s->skipped[s->uid[s->now]] = true;
            while (side_reference(s))
                s->at++;
            s->now++;
        }
        const struct peet_record *r = side_peek(s);
        if (!r)
            return ITEM_END;
        if (r->kind == PEET_EVENT && !option.no_events)
            return ITEM_EVENT;
        if (r->kind == PEET_BLOCK) {
            const struct peet_block *k = peet_trace_block(s->trace, r->id);
            if (!k || r->size > k->insns)
                fail("%s: a record of block %u, which has no %u instructions", s->path, r->id, r->size);
            s->now = k->first_insn;
            s->last = k->first_insn + r->size;
            s->block = r->id;
        } else if (r->kind != PEET_EVENT) {
            fail("%s: a reference of instruction %u, which is not in the block before it", s->path, r->id);
        }
        s->at++;
    }
}

/* ---- what is the same ---- */

static const char *function_of(const struct side *s, uint64_t addr)
{
    const struct peet_symbol *y = peet_trace_symbol(s->trace, s->process, addr);

    return y && y->code ? y->name : "";
}

/* Whether an address that the program computed may be x in a and y in b: those of one section have moved by one distance. */
static bool same_moved(uint64_t x, uint64_t y)
{
    unsigned i = 0;

    while (i < distances && moved[i].by != y - x)
        i++;
    if (i < distances && x >= moved[i].low && x <= moved[i].high)
        return true;
    struct distance d = i < distances ? moved[i] : (struct distance){ y - x, x, x };
    d.low = x < d.low ? x : d.low;
    d.high = x > d.high ? x : d.high;
    for (unsigned k = 0; k < distances; k++)
        if (k != i && d.low <= moved[k].high && d.high >= moved[k].low)
            return false;
    if (i == DISTANCES)
        return false;
    distances += i == distances;
    moved[i] = d;
    return true;
}

static const struct stack *find_stack(uint64_t x)
{
    for (size_t i = 0; i < stacks; i++)
        if (x >= stack[i].low && x < stack[i].high)
            return &stack[i];
    return NULL;
}

static inline bool same_data(uint64_t x, uint64_t y)
{
    if (stacks) { /* those that stand elsewhere */
        const struct stack *s = find_stack(x);
        if (s)
            return x + s->by == y;
    }
    if (!option.moved || x < a.low || x >= a.high)
        return x == y;
    return y >= b.low && y < b.high && same_moved(x, y);
}

static bool same_insn(uint32_t x, uint32_t y)
{
    uint32_t p = a.uid[x], q = b.uid[y];

    if (option.no_code || option.within)
        return option.no_code || a.addr[p] == b.addr[q];
    if (a.mate[p] || b.mate[q])
        return a.mate[p] == q + 1 && b.mate[q] == p + 1;
    const struct peet_insn *in = peet_trace_insn(a.trace, x), *other = peet_trace_insn(b.trace, y);
    if (in->class != other->class || in->flags != other->flags)
        return false;
    if (option.moved ? strcmp(function_of(&a, in->addr), function_of(&b, other->addr)) != 0 : in->addr != other->addr)
        return false;
    a.mate[p] = q + 1;
    b.mate[q] = p + 1;
    return true;
}

static bool same_site(uint64_t x, uint64_t y)
{
    if (!option.moved || !x || !y || option.no_code)
        return option.no_code || x == y;
    uint64_t *p = map_put(&a.site, x, 0), *q = map_put(&b.site, y, 0);
    if (!p || !q)
        fail("no memory");
    if (!*p && !*q) {
        *p = y;
        *q = x;
    }
    return *p == y && *q == x;
}

/* ---- threads ---- */

static const struct peet_thread *find_thread(const struct side *s, uint64_t id)
{
    const struct peet_thread *t;

    for (size_t i = 0; (t = peet_trace_thread(s->trace, i)); i++)
        if (t->id == id)
            return t;
    return NULL;
}

static const struct peet_process *find_process(const struct side *s, uint32_t id)
{
    const struct peet_process *p;

    for (size_t i = 0; (p = peet_trace_process(s->trace, i)); i++)
        if (p->id == id)
            return p;
    return NULL;
}

/* "1" is the first process, "1/2" the second one that it made. */
static void name_process(const struct side *s, uint32_t id, char *ret, size_t room)
{
    const struct peet_process *p = find_process(s, id), *o;
    size_t n = 0, among = 1;

    if (!p) {
        snprintf(ret, room, "?");
        return;
    }
    bool is_root = p->parent == p->id || !find_process(s, p->parent);
    if (!is_root && strlen(ret) < room - 10) {
        name_process(s, p->parent, ret, room);
        n = strlen(ret);
    }
    for (size_t i = 0; (o = peet_trace_process(s->trace, i)); i++) {
        bool other_root = o->parent == o->id || !find_process(s, o->parent);
        among += o->id < p->id && (is_root ? other_root : !other_root && o->parent == p->parent);
    }
    snprintf(ret + n, room - n, "%s%zu", n ? "/" : "", among);
}

/* "1.0.2" is the third child of the first child of process 1's first thread. */
static void name_thread(const struct side *s, uint64_t id, char *ret, size_t room)
{
    const struct peet_thread *t = find_thread(s, id), *parent;

    ret[0] = 0;
    if (!t) {
        snprintf(ret, room, "no thread");
        return;
    }
    parent = t->parent != t->id ? find_thread(s, t->parent) : NULL;
    if (!parent || parent->process != t->process) {
        name_process(s, t->process, ret, room);
        return;
    }
    name_thread(s, parent->id, ret, room);
    size_t n = strlen(ret);
    snprintf(ret + n, room - n, ".%u", t->ordinal);
}

static const struct peet_thread *find_name(const struct side *s, const char *name)
{
    const struct peet_thread *t;
    char other[NAME];

    for (size_t i = 0; (t = peet_trace_thread(s->trace, i)); i++) {
        name_thread(s, t->id, other, sizeof other);
        if (!strcmp(name, other))
            return t;
    }
    return NULL;
}

/* ---- events ---- */

enum role { IS_WORD, IS_THREAD, IS_STRING, IS_ANY };

static enum role role_of(uint32_t kind, unsigned arg)
{
    switch (kind) {
    case PEET_EV_thread_create:
    case PEET_EV_thread_start:
    case PEET_EV_thread_join:
    case PEET_EV_thread_detach: return IS_THREAD;
    case PEET_EV_exec:
    case PEET_EV_region_begin:
    case PEET_EV_region_end:
    case PEET_EV_mark:
    case PEET_EV_name_data: return arg == 0 ? IS_STRING : IS_WORD;
    case PEET_EV_fork: return IS_ANY;
    default: return IS_WORD;
    }
}

static bool same_argument(enum role role, uint64_t x, uint64_t y)
{
    char one[NAME], other[NAME];

    switch (role) {
    case IS_THREAD:
        name_thread(&a, x, one, sizeof one);
        name_thread(&b, y, other, sizeof other);
        return !strcmp(one, other);
    case IS_STRING: {
        const char *p = peet_trace_string(a.trace, x), *q = peet_trace_string(b.trace, y);
        return p && q && !strcmp(p, q);
    }
    case IS_ANY: return true;
    default: return x == y || same_data(x, y); /* a number, or an address */
    }
}

static bool same_event(const struct peet_event *e, const struct peet_event *f)
{
    if (e->kind != f->kind || e->args != f->args || !same_site(e->site, f->site))
        return false;
    for (unsigned i = 0; i < e->args; i++)
        if (!same_argument(role_of(e->kind, i), e->arg[i], f->arg[i]))
            return false;
    return true;
}

/* ---- what differs ---- */

static void put_place(const struct side *s, uint64_t addr)
{
    const struct peet_symbol *y = peet_trace_symbol(s->trace, s->process, addr);
    const struct peet_module *m;
    char command[600], line[400];

    printf("0x%" PRIx64, addr);
    if (y)
        printf(" %s+0x%" PRIx64, y->name, addr - y->addr);
    for (size_t i = 0; (m = peet_trace_module(s->trace, i)); i++)
        for (uint32_t k = 0; k < m->segments; k++) {
            if (m->process != s->process || addr < m->segment[k].start
                || addr >= m->segment[k].start + m->segment[k].size || !y || !y->code || strchr(m->path, '\''))
                continue;
            snprintf(command, sizeof command, "addr2line -e '%s' 0x%" PRIx64 " 2>/dev/null", m->path, addr - m->bias);
            FILE *f = popen(command, "r");
            if (f && fgets(line, sizeof line, f) && line[0] != '?') {
                line[strcspn(line, "\n")] = 0;
                printf(" (%s)", strrchr(line, '/') ? strrchr(line, '/') + 1 : line);
            }
            if (f)
                pclose(f);
            return;
        }
}

static void put_event(const struct side *s, const struct peet_event *e)
{
    printf("    event %s", peet_event_name(e->kind));
    for (unsigned i = 0; i < e->args; i++) {
        const char *text = role_of(e->kind, i) == IS_STRING ? peet_trace_string(s->trace, e->arg[i]) : NULL;
        if (text)
            printf(" \"%s\"", text);
        else
            printf(" 0x%" PRIx64, e->arg[i]);
    }
    if (e->site) {
        printf(" at ");
        put_place(s, e->site);
    }
    putchar('\n');
}

static void put_rest(struct side *s)
{
    static const char *const KIND[] = { "block", "load", "store", "update", "prefetch", "event", "loop" };

    printf("  %s goes on, behind %" PRIu64 " instructions and %" PRIu64 " references:\n", s->path, s->instructions,
           s->references);
    if (s->before != SKIPPED) {
        printf("    (before it: ");
        put_place(s, peet_trace_insn(s->trace, s->before)->addr);
        printf(")\n");
    }
    for (int i = 0; i < SHOWN; i++) {
        const struct peet_record *r;
        switch (side_item(s)) {
        case ITEM_END: printf("    its end\n"); return;
        case ITEM_EVENT:
            put_event(s, &s->batch.events[s->at->id]);
            s->at++;
            break;
        case ITEM_INSN:
            printf("    ");
            put_place(s, peet_trace_insn(s->trace, s->now)->addr);
            for (; (r = side_reference(s)); s->at++)
                printf(", %s %u 0x%" PRIx64, KIND[r->kind], (unsigned)r->size, r->addr);
            putchar('\n');
            side_done(s);
            break;
        }
    }
}

static bool differ(const char *name, const char *what)
{
    printf("thread %s: %s\n", name, what);
    put_rest(&a);
    put_rest(&b);
    return false;
}

/* ---- streams ---- */

static inline bool same_reference(const struct peet_record *r, const struct peet_record *o)
{
    return r->kind == o->kind && r->size == o->size && (r->addr == o->addr || option.moved || stacks)
           && same_data(r->addr, o->addr);
}

/* Both stand before blocks that are known to have the same instructions: compares their references. Stops before what it
 * cannot compare, in the middle of a block or at an instruction's later reference, for same_thread to look at it. */
static void run_pairs(void)
{
    while (a.end - a.at > 1 && b.end - b.at > 1 && a.at->kind == PEET_BLOCK && b.at->kind == PEET_BLOCK
           && pair[a.at->id] == b.at->id && a.at->size == b.at->size) {
        const struct peet_record *r = a.at + 1, *o = b.at + 1;
        uint32_t first = peet_trace_block(a.trace, a.at->id)->first_insn, size = a.at->size;
        uint32_t other = peet_trace_block(b.trace, b.at->id)->first_insn, upto = 0;
        while (r < a.end && o < b.end && peet_is_reference(r) && peet_is_reference(o) && r->id - first == o->id - other
               && same_reference(r, o)) {
            upto = r->id - first;
            r++, o++;
        }
        uint64_t references = (uint64_t)(r - a.at) - 1;
        a.references += references;
        b.references += references;
        bool is_whole = r < a.end && o < b.end && !peet_is_reference(r) && !peet_is_reference(o);
        uint32_t done = is_whole ? size : upto;
        a.at = r;
        b.at = o;
        a.now = first + done, a.last = first + size;
        b.now = other + done, b.last = other + size;
        a.instructions += done;
        b.instructions += done;
        if (done) {
            a.before = a.now - 1;
            b.before = b.now - 1;
        }
        if (!is_whole)
            return;
    }
}

/* Whether the record is a reference of the instruction. */
static inline bool is_of(const struct peet_record *r, uint32_t insn)
{
    return r->id == insn && peet_is_reference(r);
}

/* Both stand in blocks: continues to the end of one of them, through instructions that have met before, up to what same_thread has
 * to look at. */
static void run_insns(void)
{
    const struct peet_record *r = a.at, *o = b.at;
    uint32_t x = a.now, y = b.now;
    uint64_t done = 0, references = 0;

    while (x < a.last && y < b.last) {
        uint32_t p = a.uid[x];
        if (p == SKIPPED)
            break;
        if (option.within && !a.mate[p]) {
            while (r < a.end && is_of(r, x))
                r++;
            if (r == a.end)
                break;
            a.skipped[p] = true;
            x++;
            continue;
        }
        if (a.mate[p] != b.uid[y] + 1)
            break;
        while (r < a.end && o < b.end && is_of(r, x) && is_of(o, y) && same_reference(r, o))
            r++, o++, references++;
        if (r == a.end || o == b.end || is_of(r, x) || is_of(o, y))
            break;
        a.before = x++;
        b.before = y++;
        done++;
    }
    a.at = r, b.at = o;
    a.now = x, b.now = y;
    a.instructions += done, b.instructions += done;
    a.references += references, b.references += references;
}

/* Remembers that the blocks before both are the same, if they are. */
static void learn_pair(void)
{
    const struct peet_record *r = side_peek(&a), *o = side_peek(&b);

    if (option.within || !r || !o || r->kind != PEET_BLOCK || o->kind != PEET_BLOCK || r->size != o->size
        || pair[r->id] == o->id)
        return;
    const struct peet_block *k = peet_trace_block(a.trace, r->id), *l = peet_trace_block(b.trace, o->id);
    if (!k || !l || k->insns != r->size || l->insns != o->size)
        return;
    for (uint32_t i = 0; i < r->size; i++) /* what they have not met yet, they learn one by one */
        if (!option.no_code && a.mate[a.uid[k->first_insn + i]] != b.uid[l->first_insn + i] + 1)
            return;
    pair[r->id] = o->id;
}

static bool same_thread(const char *name)
{
    for (;;) {
        if (a.now == a.last && b.now == b.last) {
            learn_pair();
            run_pairs();
        }
        if (a.now < a.last && b.now < b.last)
            run_insns();
        enum item x = side_item(&a), y = side_item(&b);
        if (option.prefix
            && (x == ITEM_END || (x == ITEM_EVENT && a.batch.events[a.at->id].kind == PEET_EV_thread_end)))
            return true;
        if (x != y)
            return differ(name, "one is at something else than the other");
        if (x == ITEM_END)
            return true;
        if (x == ITEM_EVENT) {
            if (!same_event(&a.batch.events[a.at->id], &b.batch.events[b.at->id]))
                return differ(name, "events differ");
            a.at++, b.at++;
            a.events++, b.events++;
            continue;
        }
        if (!same_insn(a.now, b.now))
            return differ(name, "instructions differ");
        for (;;) {
            const struct peet_record *r = side_reference(&a), *o = side_reference(&b);
            if (!r && !o)
                break;
            if (!r || !o)
                return differ(name, r ? "a reference is only in the first" : "a reference is only in the second");
            if (!same_reference(r, o))
                return differ(name, "references differ");
            a.at++, b.at++;
            a.references++, b.references++;
        }
        side_done(&a);
        side_done(&b);
    }
}

/* ---- code ---- */

/* In each function the instructions that belong together stand in the same order. */
static bool same_order(void)
{
    uint64_t before = 0;
    const char *function = "";

    for (uint32_t i = 0; i < a.distinct; i++) {
        if (!a.mate[i])
            continue;
        uint64_t other = b.addr[a.mate[i] - 1];
        const char *now = function_of(&a, a.addr[i]);
        if (now[0] && !strcmp(function, now) && other <= before) {
            printf("%s: instructions in another order\n  ", now);
            put_place(&a, a.addr[i]);
            printf("\n  ");
            put_place(&b, other);
            putchar('\n');
            return false;
        }
        function = now;
        before = other;
    }
    return true;
}

/* Whether it uses one of the two registers that are not the program's. */
static bool is_inserted(const struct side *s, uint64_t addr)
{
    ZydisDecoder decoder;
    ZydisDecodedInstruction in;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
    uint8_t bytes[16];
    size_t n = code_read(s->trace, addr, bytes, sizeof bytes);

    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, n, &in, op)))
        return false;
    for (unsigned i = 0; i < in.operand_count; i++) {
        ZydisRegister used[3] = { ZYDIS_REGISTER_NONE };
        if (op[i].type == ZYDIS_OPERAND_TYPE_REGISTER) {
            used[0] = op[i].reg.value;
        } else if (op[i].type == ZYDIS_OPERAND_TYPE_MEMORY) {
            used[0] = op[i].mem.base;
            used[1] = op[i].mem.index;
        }
        for (unsigned k = 0; k < 2; k++) {
            ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, used[k]);
            if (whole == ZYDIS_REGISTER_R14 || whole == ZYDIS_REGISTER_R15)
                return true;
        }
    }
    return false;
}

/* What was executed of functions that b knows, and is not in b: inserted instructions, the branches after them, and padding
 * between blocks, which the assembler makes of .p2align and which are not recorded. */
static bool all_known(void)
{
    struct map known = { .value_size = 1 };
    bool was_inserted = false, ok = true;
    uint64_t next = 0, nops = 0;
    char *function = mem_string("");

    for (uint32_t i = 0; i < b.distinct; i++) {
        const struct peet_symbol *y = peet_trace_symbol(b.trace, b.process, b.addr[i]);
        if (y && y->code)
            map_put(&known, y->addr, 0);
    }
    for (uint32_t i = 0; i < a.distinct; i++) {
        const struct peet_insn *in = peet_trace_insn(a.trace, a.sample[i]);
        const struct peet_symbol *y = a.skipped[i] ? peet_trace_symbol(a.trace, a.process, a.addr[i]) : NULL;
        bool is_next = was_inserted && a.addr[i] == next;
        next = in->addr + in->length;
        was_inserted = copies_is_inserted(&copies, in->addr);
        if (was_inserted)
            continue;
        if (!y || !y->code)
            continue;
        if (!map_find(&known, y->addr, 0)) {
            if (option.functions && a.addr[i] >= a.low && a.addr[i] < a.high && strcmp(function, y->name) != 0)
                printf("# function only in the first: %s\n", y->name);
            free(function);
            function = mem_string(y->name);
            continue;
        }
        was_inserted = is_inserted(&a, a.addr[i]);
        if (was_inserted || (is_next && in->class == PEET_CL_branch))
            continue;
        if (in->class == PEET_CL_nop) {
            nops++;
            continue;
        }
        printf("%s only in the first: ", ok ? "instructions that are not inserted and" : " ");
        put_place(&a, a.addr[i]);
        putchar('\n');
        ok = false;
    }
    if (nops)
        printf("# padding that is executed: %" PRIu64 " places\n", nops);
    free(function);
    map_release(&known);
    return ok;
}

/* ---- stacks and arenas ---- */

/* The stack of a thread that another one made: the map event among its first. */
static bool read_stack(struct side *s, const struct peet_thread *t, struct stack *ret)
{
    const struct peet_record *r;
    bool found = false;

    side_begin(s, t->id, t->process);
    while (t->parent != t->id && !found && (r = side_peek(s)) && r->kind == PEET_EVENT) {
        const struct peet_event *e = &s->batch.events[r->id];
        found = e->kind == PEET_EV_map;
        *ret = (struct stack){ e->arg[0], e->arg[0] + e->arg[1], 0 };
        s->at++;
    }
    peet_cursor_free(s->cursor);
    return found;
}

static void add_stack(struct stack x, uint64_t other)
{
    if (x.low == other)
        return;
    x.by = other - x.low;
    stack = mem_room(stack, stacks, sizeof *stack);
    stack[stacks++] = x;
}

/* The address that the next allocation gives, or 0. */
static uint64_t next_allocation(struct side *s)
{
    const struct peet_record *r;

    for (; (r = side_peek(s)); s->at++) {
        const struct peet_event *e = r->kind == PEET_EVENT ? &s->batch.events[r->id] : NULL;
        if (e && e->arg[0]
            && (e->kind == PEET_EV_malloc || e->kind == PEET_EV_calloc || e->kind == PEET_EV_realloc
                || e->kind == PEET_EV_memalign)) {
            s->at++;
            return e->arg[0];
        }
    }
    return 0;
}

static void find_arenas(const struct peet_thread *t, const struct peet_thread *u)
{
    const uint64_t within = ARENA - 1;
    uint64_t x, y;

    side_begin(&a, t->id, t->process);
    side_begin(&b, u->id, u->process);
    while ((x = next_allocation(&a)) && (y = next_allocation(&b)))
        if ((x & within) == (y & within) && !find_stack(x))
            add_stack((struct stack){ x & ~within, (x & ~within) + ARENA, 0 }, y & ~within);
    peet_cursor_free(a.cursor);
    peet_cursor_free(b.cursor);
}

static void find_stacks(void)
{
    const struct peet_thread *t, *u;
    struct stack x, y;
    char name[NAME];

    for (size_t i = 0; (t = peet_trace_thread(a.trace, i)); i++) {
        name_thread(&a, t->id, name, sizeof name);
        u = find_name(&b, name);
        if (!u || !read_stack(&a, t, &x) || !read_stack(&b, u, &y))
            continue;
        if (option.stacks)
            add_stack(x, y.low);
        if (option.arenas)
            find_arenas(t, u);
    }
}

/* ---- main ---- */

static void take_options(int argc, char **argv)
{
    static const struct option LONG[] = { { "moved", 0, NULL, 'm' },     { "within", 0, NULL, 'w' },
                                          { "prefix", 0, NULL, 'p' },    { "no-code", 0, NULL, 'c' },
                                          { "no-events", 0, NULL, 'e' }, { "functions", 0, NULL, 'f' },
                                          { "stacks", 0, NULL, 's' },    { "arenas", 0, NULL, 'a' },
                                          { NULL, 0, NULL, 0 } };
    int o;

    while ((o = getopt_long(argc, argv, "", LONG, NULL)) != -1) {
        option.moved |= o == 'm';
        option.within |= o == 'w';
        option.stacks |= o == 's';
        option.arenas |= o == 'a';
        option.prefix |= o == 'p';
        option.no_code |= o == 'c';
        option.no_events |= o == 'e' || o == 'w';
        option.functions |= o == 'f';
        if (o == '?')
            exit(2);
    }
    if (argc - optind != 2)
        fail("two traces are wanted");
}

/* Marks what b knows; everything else of a is left out. */
static void restrict_to_known(void)
{
    for (uint32_t i = 0; i < a.distinct; i++) {
        uint32_t other = find_address(&b, a.addr[i]);
        a.mate[i] = other == SKIPPED ? 0 : other + 1;
    }
}

int main(int argc, char **argv)
{
    const struct peet_thread *t, *u;
    struct timespec start, end;
    uint64_t instructions = 0, references = 0, events = 0, threads = 0;
    char name[NAME];
    bool ok = true;

    take_options(argc, argv);
    side_open(&b, argv[optind + 1]);
    if (option.within)
        copies_find(&copies, b.trace);
    side_open(&a, argv[optind]);
    pair = mem_alloc(peet_trace_items(a.trace) + 1, sizeof *pair);
    if (option.within)
        restrict_to_known();
    if (option.stacks || option.arenas)
        find_stacks();
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (size_t i = 0; !option.prefix && (t = peet_trace_thread(b.trace, i)); i++) {
        name_thread(&b, t->id, name, sizeof name);
        if (find_name(&a, name))
            continue;
        printf("thread %s is only in %s\n", name, b.path);
        ok = false;
    }
    for (size_t i = 0; (t = peet_trace_thread(a.trace, i)); i++) {
        name_thread(&a, t->id, name, sizeof name);
        u = find_name(&b, name);
        if (!u) {
            printf("thread %s is only in %s\n", name, a.path);
            ok = false;
            continue;
        }
        side_begin(&a, t->id, t->process);
        side_begin(&b, u->id, u->process);
        ok &= same_thread(name);
        peet_cursor_free(a.cursor);
        peet_cursor_free(b.cursor);
        instructions += b.instructions;
        references += b.references;
        events += b.events;
        threads++;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (ok && option.moved)
        ok = same_order();
    if (option.within)
        ok &= all_known();
    double s = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
    printf("%s: %" PRIu64 " threads, %" PRIu64 " instructions, %" PRIu64 " references, %" PRIu64
           " events; %.1f million instructions and %.1f million references a second\n",
           ok ? "the same" : "different", threads, instructions, references, events, (double)instructions / s / 1e6,
           (double)references / s / 1e6);
    if (stacks)
        printf("# stacks and arenas that stand elsewhere: %zu\n", stacks);
    for (unsigned i = 0; i < distances; i++)
        printf("# from 0x%" PRIx64 " to 0x%" PRIx64 " of %s: %+" PRId64 " bytes in %s\n", moved[i].low, moved[i].high,
               a.path, (int64_t)moved[i].by, b.path);
    return ok ? 0 : 1;
}
