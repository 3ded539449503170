/* SPDX-License-Identifier: MIT */
/* See objects.h. Heap blocks and named data follow events. Variables and mappings are looked up at the first reference to them. A block is named by the
 * innermost call whose function does not return the memory to its caller. */
#include "study/objects/objects.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "study/objects/heap_blocks.h"
#include "study/objects/later_blocks.h"
#include "study/objects/mem_spans.h"
#include "study/objects/stack_data.h"
#include "study/objects/thread_data.h"

enum { NO_OBJECT = UINT32_MAX, LONGEST_CALL = 15, GROWTH = 8 << 20, NAME_ROOM = 400 };

/* mem_span.what of an area: the number of an object, or a kind of area whose objects depend on the address. */
enum { AREA_STACK = UINT32_MAX - 1, AREA_MODULE = UINT32_MAX - 2, AREA_RANGE = UINT32_MAX - 3 };

/* heap_block.object of a block whose object is not known yet: this bit, and the number of a struct deferred. */
enum { DEFERRED = 1u << 30 };

/* Blocks of one call path whose object is found at the first reference to one of them. */
struct deferred {
    uint64_t path[OBJECT_PATH]; /* as in objects_event */
    uint64_t blocks, bytes;     /* not yet counted in the object */
    double squares;             /* sum of the squares of the bytes of blocks */
    uint32_t process;           /* number in the trace */
    uint32_t event;             /* enum peet_event_kind: which call allocated them */
    uint32_t object;            /* index in objects.object; NO_OBJECT: no reference yet */
};

/* A data object with what the lookup keeps of it. */
struct data_object {
    struct object_info info;
    const char *base;     /* the name without its place */
    uint64_t stride;      /* as objects_stride returns it; valid if is_stride_known */
    bool is_stride_known; /* objects_stride was called */
};

/* All data objects of a run, and where their bytes are now. */
struct objects {
    const struct peet_trace *trace;
    struct symbols *symbols;
    unsigned depth; /* calls above the naming one that distinguish heap blocks */
    struct arena arena;
    struct data_object **object; /* by number */
    uint32_t count;
    struct change_log changes; /* of the address-to-object map */
    size_t modules;            /* modules of the trace whose areas are in `areas` */
    uint64_t last_start;       /* begin of the block, variable or thread data that objects_find found last */
    struct heap_blocks blocks; /* live now */
    struct later_blocks later;
    struct mem_spans named, areas; /* named by events; modules, stacks and mappings */
    struct thread_data threads;
    struct stack_data stack;
    struct map paths;            /* number of an object, by hash of a call path */
    struct map variables;        /* number of an object, by address and process */
    struct map locals;           /* number of an object, by offset below the thread pointer, and process */
    struct map texts;            /* number of an object, by hash of kind and name */
    struct map uses;             /* 1 + number of the first object with a name, by hash of the name */
    struct map functions;        /* number of the object of a function's frames, by address of code and process */
    struct map deferred_by_path; /* 1 + index in `deferred`, by hash of a call path */
    struct deferred *deferred;
    uint32_t deferreds;
};

/* ---- objects and their names ---- */

static const char *objects_keep(struct objects *o, const char *text)
{
    const char *kept = arena_string(&o->arena, text, strlen(text));

    assert(kept);
    return kept;
}

/* The place where a number is kept under a name; 0 in it: under none so far. */
static uint32_t *name_owner(struct objects *o, const char *name)
{
    for (uint32_t tag = 0;; tag++) {
        uint32_t *n = map_put(&o->uses, XXH3_64bits(name, strlen(name)), tag);
        assert(n);
        if (*n == 0 || strcmp(o->object[*n - 1]->base, name) == 0 || strcmp(o->object[*n - 1]->info.name, name) == 0)
            return n;
    }
}

static void put_place(const struct object_info *f, bool process, char *out, size_t room)
{
    const char *slash = f->file ? strrchr(f->file, '/') : NULL;
    char place[200] = "", more[32] = "";

    if (f->file)
        snprintf(place, sizeof place, "%.180s:%" PRIu32, slash ? slash + 1 : f->file, f->line);
    if (process || !f->file)
        snprintf(more, sizeof more, "%sprocess %" PRIu32, f->file ? ", " : "", f->process);
    snprintf(out, room, "%s%s", place, more);
}

/* Makes an object's name unique: adds its place, its process where there are several, then a number. */
static void name_with_place(struct objects *o, uint32_t number)
{
    struct data_object *x = o->object[number];
    bool is_alone = !peet_trace_process(o->trace, 1);
    char place[256], text[NAME_ROOM + 300];

    for (unsigned i = 0;; i++) {
        char count[16] = "";
        put_place(&x->info, i > 0 && !is_alone, place, sizeof place);
        if (i > 1)
            snprintf(count, sizeof count, " #%u", i);
        if (strstr(x->base, place)) /* what has no name is called by its place */
            snprintf(text, sizeof text, "%s%s", x->base, count);
        else
            snprintf(text, sizeof text, "%s (%s)%s", x->base, place, count);
        uint32_t *use = name_owner(o, text);
        if (*use == 0) {
            x->info.name = objects_keep(o, text);
            *use = number + 1;
            return;
        }
    }
}

static uint32_t object_new(struct objects *o, const struct object_info *info, const char *name)
{
    struct data_object *x = arena_alloc(&o->arena, sizeof *x);
    uint32_t number = o->count;

    assert(x);
    x->info = *info;
    x->base = x->info.name = objects_keep(o, name);
    o->object = mem_room(o->object, o->count, sizeof *o->object);
    o->object[o->count++] = x;
    uint32_t *use = name_owner(o, x->base);
    if (*use == 0) {
        *use = number + 1;
        return number;
    }
    uint32_t first = *use - 1;
    if (strcmp(o->object[first]->info.name, o->object[first]->base) == 0 && o->object[first]->info.file)
        name_with_place(o, first);
    name_with_place(o, number);
    return number;
}

/* The object of that kind, name and process, made when it is new. */
static uint32_t object_of_text(struct objects *o, enum object_kind kind, uint32_t process, const char *name)
{
    uint32_t *n = map_put(&o->texts, XXH3_64bits_withSeed(name, strlen(name), kind), process);

    assert(n);
    if (*n == 0)
        *n = object_new(o, &(struct object_info){ .kind = kind, .process = process, .blocks = 1 }, name) + 1;
    return *n - 1;
}

/* ---- what a path allocates ---- */

/* What a call path allocates. */
struct alloc_site {
    struct symbols_allocation what;
    char name
        [NAME_ROOM]; /* of the object, with its callers if they are asked for; with a place if the source has no name for it */
    unsigned calls; /* calls of the path, innermost first, up to the one that `what` is of; 1: DWARF knows none */
};

/* Without a name: where it is allocated, by the last function that DWARF knows, or the first that it does not. */
static void name_by_code(struct objects *o, uint32_t process, const char *event, const uint64_t *path,
                         struct alloc_site *ret)
{
    struct symbols_frame frame[SYMBOLS_FRAMES] = { { "?", NULL, 0 } };
    char place[256] = "";

    if (!ret->what.function) {
        if (path[0])
            symbols_code(o->symbols, process, path[0], frame);
        ret->what.function = frame[0].function;
        ret->what.file = frame[0].file;
        ret->what.line = frame[0].line;
    }
    const char *slash = ret->what.file ? strrchr(ret->what.file, '/') : NULL;
    if (ret->what.file)
        snprintf(place, sizeof place, " (%.180s:%" PRIu32 ")", slash ? slash + 1 : ret->what.file, ret->what.line);
    snprintf(ret->name, sizeof ret->name, "%s in %.120s%s", event, ret->what.function, place);
}

/* Up the path, to the first call that does not only hand on what it gets. */
static void alloc_site_resolve(struct objects *o, uint32_t process, const char *event, const uint64_t *path,
                               struct alloc_site *ret)
{
    struct symbols_allocation best = { 0 }, now = { 0 };

    ret->calls = 1;
    for (unsigned i = 0; i < OBJECT_PATH && path[i]; i++) {
        if (!symbols_allocation(o->symbols, process, path[i], i ? &now : NULL, &now))
            continue;
        if (now.name || !best.name) { /* a callee with a name precedes a caller without one */
            best = now;
            ret->calls = i + 1;
        }
        if (!now.handed_on)
            break;
    }
    ret->what = best;
    ret->what.type = now.type ? now.type : best.type;
    if (best.name || best.container)
        snprintf(ret->name, sizeof ret->name, "%s", best.name ? best.name : best.container);
    else
        name_by_code(o, process, event, path, ret);
}

#define FOR_CALLERS " for "

/* Whether an object has that name, with or without names of callers. */
static bool object_is_named(const struct data_object *x, const char *name)
{
    size_t n = strlen(name);

    return strncmp(x->base, name, n) == 0 && (x->base[n] == 0 || strncmp(x->base + n, FOR_CALLERS, 5) == 0);
}

/* Adds the names of `depth` callers, inlined ones included. */
static void name_callers(struct objects *o, uint32_t process, const uint64_t path[OBJECT_PATH], struct alloc_site *to)
{
    struct symbols_frame frame[SYMBOLS_FRAMES];
    unsigned named = 0;

    for (unsigned i = to->calls - 1; i < OBJECT_PATH && path[i] && named < o->depth; i++) {
        size_t frames = symbols_code(o->symbols, process, path[i], frame);
        for (size_t k = i < to->calls; k < frames && named < o->depth; k++, named++) {
            size_t used = strlen(to->name);
            snprintf(to->name + used, sizeof to->name - used, "%s%.100s", named ? " < " : FOR_CALLERS,
                     frame[k].function);
        }
    }
}

/* The object of what is allocated by a path; `old` is taken if it has the same name and type. */
static uint32_t object_of_path(struct objects *o, uint32_t process, uint32_t event, const uint64_t path[OBJECT_PATH],
                               uint32_t old)
{
    struct alloc_site a;
    struct object_info info = { .kind = event == PEET_EV_map ? OBJECT_MAPPED : OBJECT_HEAP, .process = process };
    uint32_t *whole = map_put(&o->paths, XXH3_64bits_withSeed(path, OBJECT_PATH * sizeof *path, event), process);

    assert(whole);
    if (*whole)
        return *whole - 1;
    alloc_site_resolve(o, process, peet_event_name(event), path, &a);
    if (old != NO_OBJECT && object_is_named(o->object[old], a.name) && o->object[old]->info.type == a.what.type)
        return old;
    name_callers(o, process, path, &a);
    unsigned calls = a.calls + o->depth < OBJECT_PATH ? a.calls + o->depth : OBJECT_PATH;
    memcpy(info.path, path, OBJECT_PATH * sizeof *path);
    uint32_t *known =
        map_put(&o->paths, XXH3_64bits_withSeed(path, calls * sizeof *path, PEET_EVENT_KINDS + calls), process);
    assert(known);
    if (*known == 0) {
        info.type = a.what.type;
        info.file = a.what.file;
        info.line = a.what.line;
        *known = object_new(o, &info, a.name) + 1;
    }
    uint32_t number = *known;
    whole = map_put(&o->paths, XXH3_64bits_withSeed(path, OBJECT_PATH * sizeof *path, event), process);
    assert(whole);
    *whole = number;
    return number - 1;
}

static void add_blocks(struct objects *o, uint32_t number, uint64_t blocks, uint64_t bytes, double squares)
{
    o->object[number]->info.blocks += blocks;
    o->object[number]->info.bytes += bytes;
    o->object[number]->info.squares += squares;
}

static double square_of(uint64_t bytes)
{
    return (double)bytes * (double)bytes;
}

/* To what libraries allocate for themselves, such as buffers of stdio, most programs never refer; but their debug files may be large. */
static uint32_t deferred_of_path(struct objects *o, uint32_t process, uint32_t event, const uint64_t path[OBJECT_PATH])
{
    uint32_t *known =
        map_put(&o->deferred_by_path, XXH3_64bits_withSeed(path, OBJECT_PATH * sizeof *path, event), process);

    assert(known);
    if (*known == 0) {
        o->deferred = mem_room(o->deferred, o->deferreds, sizeof *o->deferred);
        struct deferred *l = &o->deferred[o->deferreds++];
        *l = (struct deferred){ .process = process, .object = NO_OBJECT, .event = event };
        memcpy(l->path, path, sizeof l->path);
        *known = o->deferreds;
    }
    return *known - 1;
}

/* Once a library's debug file is open, all that it allocated may be known, so that objects have all their blocks. */
static void resolve_deferred(struct objects *o)
{
    for (uint32_t i = 0; i < o->deferreds; i++) {
        struct deferred *l = &o->deferred[i];
        if (l->object != NO_OBJECT || !l->blocks || !symbols_is_loaded(o->symbols, l->process, l->path[0]))
            continue;
        l->object = object_of_path(o, l->process, l->event, l->path, NO_OBJECT);
        add_blocks(o, l->object, l->blocks, l->bytes, l->squares);
    }
}

/* The object of a block, which is found now if it was deferred. */
static uint32_t object_of_block(struct objects *o, uint32_t number)
{
    if (number == NO_OBJECT || !(number & DEFERRED))
        return number;
    struct deferred *l = &o->deferred[number & ~(uint32_t)DEFERRED];
    if (l->object == NO_OBJECT) {
        l->object = object_of_path(o, l->process, l->event, l->path, NO_OBJECT);
        add_blocks(o, l->object, l->blocks, l->bytes, l->squares);
        resolve_deferred(o);
    }
    return l->object;
}

/* ---- events ---- */

static void forget_block(struct objects *o, uint32_t process, uint64_t addr, struct heap_block *ret)
{
    *ret = (struct heap_block){ .object = NO_OBJECT };
    if (!addr || !heap_blocks_take(&o->blocks, process, addr, ret))
        return;
    mem_spans_clear(&o->named, process, ret->start, ret->end);
    change_log_add(&o->changes, ret->start, ret->room);
}

/* The end of the bytes that the GNU C library lets a program use of a block of `size` bytes. Chunks are multiples of 16 bytes, 8 of which are the
 * allocator's; chunks in separate mappings are whole pages, 16 bytes of which are. Other allocators give other room, so that a following block
 * ends it. */
static uint64_t objects_room(uint64_t addr, uint64_t size)
{
    enum { LEAST = 24, CHUNK = 16, PAGE = 4096, OWN = 16, MAPPING = 128 << 10 };

    if (size >= MAPPING && addr % PAGE == OWN)
        return (addr + size + PAGE - 1) / PAGE * PAGE;
    uint64_t bytes = (size + 8 + CHUNK - 1) / CHUNK * CHUNK - 8;
    return addr + (bytes < LEAST ? LEAST : bytes);
}

static void give_block(struct objects *o, uint32_t process, const struct peet_event *e, const uint64_t *path,
                       uint64_t size, uint32_t old)
{
    uint64_t addr = e->arg[0], start, end;

    if (!addr || addr + size < addr)
        return;
    uint32_t number;
    if (old == NO_OBJECT && path[0] && !symbols_is_loaded(o->symbols, process, path[0])) {
        number = deferred_of_path(o, process, e->kind, path);
        o->deferred[number].blocks++;
        o->deferred[number].bytes += size;
        o->deferred[number].squares += square_of(size);
        number |= DEFERRED;
    } else {
        number = object_of_path(o, process, e->kind, path, old);
        add_blocks(o, number, 1, size, square_of(size));
    }
    heap_blocks_add(&o->blocks, process, &(struct heap_block){ addr, addr + size, objects_room(addr, size), number },
                    &start, &end);
    mem_spans_clear(&o->named, process, addr, addr + size);
    change_log_add(&o->changes, start, end);
}

static void resize_block(struct objects *o, uint32_t process, const struct peet_event *e, const uint64_t *path)
{
    struct heap_block old = { .object = NO_OBJECT };

    if (e->arg[0] == 0 && e->arg[2] > 0) /* it failed, and the old block stays */
        return;
    forget_block(o, process, e->arg[1], &old);
    give_block(o, process, e, path, e->arg[2], object_of_block(o, old.object));
}

static void objects_map_memory(struct objects *o, uint32_t process, uint32_t thread, const struct peet_event *e,
                               const uint64_t *path)
{
    struct mem_span s = { process, AREA_STACK, e->arg[0], e->arg[0] + e->arg[1], e->arg[0], NULL };

    if (s.end < s.start)
        return;
    if (e->site) { /* only stacks are mapped without a call */
        s.what = object_of_path(o, process, e->kind, path, NO_OBJECT);
        add_blocks(o, s.what, 1, e->arg[1], square_of(e->arg[1]));
    } else {
        stack_data_add(&o->stack, &(struct stack_area){ s.start, s.end, process, thread });
    }
    mem_spans_set(&o->areas, &s);
    change_log_add(&o->changes, s.start, s.end);
}

static void objects_name_data(struct objects *o, uint32_t process, const struct peet_event *e)
{
    const char *name = peet_trace_string(o->trace, e->arg[0]);
    uint64_t start = e->arg[1], end = start + e->arg[2];
    uint32_t n = object_of_text(o, OBJECT_NAMED, process, name && *name ? name : "unnamed");

    if (end <= start)
        return;
    o->object[n]->info.bytes += end - start;
    o->object[n]->info.squares += square_of(end - start);
    mem_spans_set(&o->named, &(struct mem_span){ process, n, start, end, start, NULL });
    change_log_add(&o->changes, start, end);
}

/* The call that the event itself is, and those above it. The site is where it returns to. */
static void objects_join_path(uint64_t site, const uint64_t path[OBJECT_PATH], uint64_t ret[OBJECT_PATH])
{
    bool is_first = !site || (path[0] < site && site - path[0] <= LONGEST_CALL);
    unsigned n = 0;

    memset(ret, 0, OBJECT_PATH * sizeof *ret);
    if (!is_first)
        ret[n++] = site - 1;
    for (unsigned i = 0; n < OBJECT_PATH && i < OBJECT_PATH && path[i]; i++)
        ret[n++] = path[i];
}

bool objects_wants(uint32_t kind)
{
    switch (kind) {
    case PEET_EV_malloc:
    case PEET_EV_calloc:
    case PEET_EV_realloc:
    case PEET_EV_memalign:
    case PEET_EV_free:
    case PEET_EV_map:
    case PEET_EV_unmap:
    case PEET_EV_name_data: return true;
    default: return false;
    }
}

void objects_event(struct objects *o, uint32_t process, uint32_t thread, const struct peet_event *e,
                   const uint64_t path[OBJECT_PATH])
{
    uint64_t whole[OBJECT_PATH];
    struct heap_block freed;

    later_blocks_pass(&o->later, thread);
    objects_join_path(e->site, path, whole);
    switch (e->kind) {
    case PEET_EV_malloc: give_block(o, process, e, whole, e->arg[1], NO_OBJECT); break;
    case PEET_EV_calloc: give_block(o, process, e, whole, e->arg[1] * e->arg[2], NO_OBJECT); break;
    case PEET_EV_memalign: give_block(o, process, e, whole, e->arg[2], NO_OBJECT); break;
    case PEET_EV_realloc: resize_block(o, process, e, whole); break;
    case PEET_EV_free: forget_block(o, process, e->arg[0], &freed); break;
    case PEET_EV_map: objects_map_memory(o, process, thread, e, whole); break;
    case PEET_EV_unmap:
        mem_spans_clear(&o->areas, process, e->arg[0], e->arg[0] + e->arg[1]);
        mem_spans_clear(&o->named, process, e->arg[0], e->arg[0] + e->arg[1]);
        change_log_add(&o->changes, e->arg[0], e->arg[0] + e->arg[1]);
        break;
    case PEET_EV_name_data: objects_name_data(o, process, e); break;
    default: break;
    }
}

void objects_use_paths(struct objects *o, const struct paths *paths, const struct source *source)
{
    o->stack.paths = paths;
    o->stack.source = source;
}

const struct stack_place *objects_stack(const struct objects *o)
{
    return o->stack.has_found ? &o->stack.found : NULL;
}

void objects_look_ahead(struct objects *o, struct peet_trace *t)
{
    later_blocks_init(&o->later, t);
}

void objects_thread(struct objects *o, uint32_t process, uint64_t pointer)
{
    if (thread_data_add(&o->threads, o->symbols, process, pointer))
        change_log_add(&o->changes, 0, UINT64_MAX);
}

/* ---- looking up ---- */

/* What a function has in its frames beside variables. */
static uint32_t function_object(struct objects *o, uint32_t process, uint64_t code)
{
    uint32_t *known = map_put(&o->functions, code, process);
    struct symbols_frame frame[SYMBOLS_FRAMES];
    char text[NAME_ROOM];

    assert(known);
    if (*known)
        return *known - 1;
    size_t n = symbols_code(o->symbols, process, code, frame);
    snprintf(text, sizeof text, "stack of %.300s", frame[n - 1].function);
    uint32_t number = object_of_text(o, OBJECT_STACK, process, text);
    *known = number + 1;
    return number;
}

static uint32_t frame_object(struct objects *o, uint32_t process, struct frame_variable *variable)
{
    uint32_t *known = map_put(&o->stack.objects, (uintptr_t)variable, process);
    struct symbols_variable v;
    const char *function;
    char text[NAME_ROOM];

    assert(known);
    if (*known)
        return *known - 1;
    symbols_frame_describe(o->symbols, variable, &v, &function);
    int n = snprintf(text, sizeof text, "%.200s in %.190s", v.name, function ? function : "?");
    uint32_t *same = map_put(&o->texts, XXH3_64bits_withSeed(text, (size_t)n, v.line), process); /* in another copy */
    assert(same);
    if (*same == 0) {
        struct object_info info = { .kind = OBJECT_STACK,
                                    .type = v.type,
                                    .file = v.file,
                                    .line = v.line,
                                    .process = process,
                                    .blocks = 1,
                                    .bytes = v.size };
        *same = object_new(o, &info, text) + 1;
    }
    return (*known = *same) - 1;
}

/* A variable in a frame of the stack, or the rest of that function's frames. */
static uint32_t object_in_stack(struct objects *o, uint32_t process, uint32_t thread, uint64_t addr, uint64_t insn,
                                uint64_t *low, uint64_t *high)
{
    const struct stack_place *p = &o->stack.found;
    struct symbols_frame_span v = { NULL, INT64_MIN, INT64_MAX };

    stack_data_find(&o->stack, o->symbols, &(struct stack_area){ *low, *high, process, thread }, addr, insn);
    *low = p->low;
    *high = p->high;
    if (p->cfa)
        v = symbols_frame_variable(o->symbols, process, p->code, (int64_t)(addr - p->cfa));
    if (v.low > INT64_MIN && p->cfa + (uint64_t)v.low > *low)
        *low = p->cfa + (uint64_t)v.low;
    if (v.high < INT64_MAX && p->cfa + (uint64_t)v.high < *high)
        *high = p->cfa + (uint64_t)v.high;
    return v.variable ? frame_object(o, process, v.variable) : function_object(o, process, p->code);
}

static uint32_t variable_object(struct objects *o, enum object_kind kind, uint32_t process,
                                const struct symbols_variable *v)
{
    uint32_t *known = map_put(kind == OBJECT_VARIABLE ? &o->variables : &o->locals, v->start, process);

    assert(known);
    if (*known == 0)
        *known = object_new(o,
                            &(struct object_info){ .kind = kind,
                                                   .type = v->type,
                                                   .file = v->file,
                                                   .line = v->line,
                                                   .process = process,
                                                   .blocks = 1,
                                                   .bytes = v->size },
                            v->name)
                 + 1;
    return *known - 1;
}

static uint32_t object_in_module(struct objects *o, uint32_t process, uint64_t addr, const struct mem_span *area,
                                 uint64_t *low, uint64_t *high)
{
    struct symbols_variable v;
    uint64_t start, end;
    uint32_t number;

    if (symbols_variable(o->symbols, process, addr, &v)) {
        start = v.start;
        end = v.start + v.size;
        number = variable_object(o, OBJECT_VARIABLE, process, &v);
        o->last_start = start;
    } else {
        number = object_of_text(o, OBJECT_FILE, process, area->name);
        start = v.start;
        end = v.start + v.size;
    }
    *low = start > *low ? start : *low;
    *high = end < *high ? end : *high;
    return number;
}

/* In what each thread has for itself. */
static uint32_t object_in_thread(struct objects *o, uint32_t process, uint64_t addr, const struct mem_span *own,
                                 uint64_t *low, uint64_t *high)
{
    struct symbols_variable v;
    bool is_known = symbols_local(o->symbols, process, addr - own->origin, &v);
    uint64_t start = own->origin + v.start, end = start + v.size;

    *low = start > *low ? start : *low;
    *high = end < *high ? end : *high;
    o->last_start = start;
    if (is_known)
        return variable_object(o, OBJECT_THREAD_LOCAL, process, &v);
    return object_of_text(o, OBJECT_THREAD_LOCAL, process, "other data of threads");
}

static uint32_t note_later_block(void *context, const struct peet_event *e, const uint64_t path[OBJECT_PATH])
{
    struct objects *o = context;
    uint64_t whole[OBJECT_PATH];

    objects_join_path(e->site, path, whole);
    return deferred_of_path(o, peet_trace_process(o->trace, 0)->id, e->kind, whole) | DEFERRED;
}

/* The block that another thread allocates later in the replay; NO_OBJECT: there is none. */
static uint32_t object_of_later_block(struct objects *o, uint32_t thread, uint64_t addr, uint64_t *low, uint64_t *high)
{
    struct heap_block block;
    bool found = later_blocks_find(&o->later, thread, addr, note_later_block, o, &block);

    *low = block.start > *low ? block.start : *low;
    *high = block.end < *high ? block.end : *high;
    if (!found)
        return NO_OBJECT;
    o->last_start = block.start;
    return object_of_block(o, block.object);
}

/* In memory that was mapped when the recording began. */
static uint32_t object_in_range(struct objects *o, uint32_t process, const char *name)
{
    if (strcmp(name, "[heap]") == 0)
        return object_of_text(o, OBJECT_HEAP, process, "heap");
    if (!*name)
        return object_of_text(o, OBJECT_MAPPED, process, "mapped");
    return object_of_text(o, name[0] == '/' ? OBJECT_FILE : OBJECT_UNKNOWN, process, name);
}

static void objects_add_modules(struct objects *o);

static uint32_t object_in_area(struct objects *o, uint32_t process, uint32_t thread, uint64_t addr, uint64_t insn,
                               uint64_t *low, uint64_t *high)
{
    if (thread_data_learn(&o->threads, o->trace, o->symbols, process, addr, insn))
        change_log_add(&o->changes, 0, UINT64_MAX);
    if (peet_trace_module(o->trace, o->modules)) { /* a library was loaded */
        objects_add_modules(o);
        change_log_add(&o->changes, 0, UINT64_MAX);
    }
    const struct mem_span *own = mem_spans_find(&o->threads.spans, process, addr, low, high);
    if (own)
        return object_in_thread(o, process, addr, own, low, high);
    const struct mem_span *area = mem_spans_find(&o->areas, process, addr, low, high);
    o->last_start = area ? area->origin : addr;
    if (!area || area->what == AREA_RANGE) {
        uint32_t later = object_of_later_block(o, thread, addr, low, high);
        if (later != NO_OBJECT)
            return later;
    }
    if (!area)
        return object_of_text(o, OBJECT_UNKNOWN, process, "unknown");
    if (area->what == AREA_STACK)
        return object_in_stack(o, process, thread, addr, insn, low, high);
    if (area->what == AREA_MODULE)
        return object_in_module(o, process, addr, area, low, high);
    if (area->what == AREA_RANGE)
        return object_in_range(o, process, area->name);
    return area->what;
}

uint32_t objects_find(struct objects *o, uint32_t process, uint32_t thread, uint64_t addr, uint64_t insn,
                      uint64_t *ret_start, uint64_t *ret_end)
{
    uint64_t low = 0, high = UINT64_MAX;
    struct heap_block block;
    o->stack.has_found = false;
    const struct mem_span *named = mem_spans_find(&o->named, process, addr, &low, &high);
    uint32_t number;

    if (named) {
        number = named->what;
        o->last_start = named->origin;
    } else {
        bool found = heap_blocks_find(&o->blocks, process, addr, &block);
        low = block.start > low ? block.start : low;
        high = block.end < high ? block.end : high;
        number = found ? object_of_block(o, block.object) : object_in_area(o, process, thread, addr, insn, &low, &high);
        if (found)
            o->last_start = block.start;
    }
    *ret_start = low;
    *ret_end = high;
    return number;
}

uint64_t objects_offset(const struct objects *o, uint32_t process, uint64_t addr)
{
    (void)process;
    return addr - o->last_start;
}

uint64_t objects_stride(struct objects *o, uint32_t number)
{
    struct data_object *x = o->object[number];

    if (!x->is_stride_known
        && x->info.kind != OBJECT_STACK) /* a variable of a frame lies at another address each time */
        x->stride = symbols_element_size(o->symbols, x->info.type);
    x->is_stride_known = true;
    return x->stride;
}

/* Whether members of an object come again, for its blocks are many of its type: after how many bytes; 0: they do not. */
static uint64_t objects_repeat(const struct objects *o, const struct object_info *f)
{
    uint64_t size = symbols_size(o->symbols, f->type);
    bool repeats = (f->kind == OBJECT_HEAP || f->kind == OBJECT_MAPPED) && size && f->bytes >= 2 * size * f->blocks;

    return repeats ? size : 0;
}

bool objects_member(struct objects *o, uint32_t number, uint64_t offset, bool any, char *ret, size_t room)
{
    const struct object_info *f = objects_info(o, number);
    uint64_t size = f->type ? objects_repeat(o, f) : 0;

    if (!f->type || room == 0)
        return false;
    if (!size)
        return symbols_member(o->symbols, f->type, offset, any, ret, room);
    char inner[NAME_ROOM];
    if (!symbols_member(o->symbols, f->type, offset % size, any, inner, sizeof inner))
        return false;
    char index[32] = "[]";
    if (!any)
        snprintf(index, sizeof index, "[%" PRIu64 "]", offset / size);
    snprintf(ret, room, "%s%s%s", index, inner[0] && inner[0] != '[' ? "." : "", inner);
    return true;
}

uint64_t objects_member_hash(struct objects *o, uint32_t number, uint64_t offset)
{
    const struct object_info *f = objects_info(o, number);
    uint64_t size = f->type ? objects_repeat(o, f) : 0;

    return f->type ? symbols_member_hash(o->symbols, f->type, size ? offset % size : offset) : 0;
}

const struct change_log *objects_changes(const struct objects *o)
{
    return &o->changes;
}

uint32_t objects_count(const struct objects *o)
{
    return o->count;
}

const struct object_info *objects_info(const struct objects *o, uint32_t number)
{
    assert(number < o->count);
    return &o->object[number]->info;
}

void objects_set_depth(struct objects *o, unsigned calls)
{
    o->depth = calls;
}

/* ---- what was there when the recording began, and what is loaded ---- */

static void objects_add_ranges(struct objects *o)
{
    const struct peet_range *r;

    for (size_t i = 0; (r = peet_trace_range(o->trace, i)); i++) {
        bool is_stack = strcmp(r->name, "[stack]") == 0;
        uint64_t start = r->start;
        if (is_stack) /* it grows downwards, as far as there is nothing */
            start -= start > GROWTH ? GROWTH : start;
        struct mem_span s = {
            r->process, is_stack ? AREA_STACK : AREA_RANGE, start, r->start + r->size, start, r->name
        };
        if (s.end > s.start)
            mem_spans_set(&o->areas, &s);
    }
}

static void objects_add_modules(struct objects *o)
{
    const struct peet_module *m;

    for (; (m = peet_trace_module(o->trace, o->modules)); o->modules++)
        for (uint32_t k = 0; k < m->segments; k++) {
            const struct peet_segment *s = &m->segment[k];
            const char *slash = strrchr(m->path, '/');
            char text[NAME_ROOM];
            snprintf(text, sizeof text, "%s of %.300s",
                     s->protection & 2   ? "other data"
                     : s->protection & 1 ? "code"
                                         : "constants",
                     slash ? slash + 1 : m->path);
            mem_spans_set(&o->areas, &(struct mem_span){ m->process, AREA_MODULE, s->start, s->start + s->size,
                                                         s->start, objects_keep(o, text) });
        }
}

int objects_new(const struct peet_trace *t, struct symbols *w, struct objects **ret, struct peet_err *err)
{
    struct objects *o = calloc(1, sizeof *o);

    if (!o)
        return err_set(err, PEET_ERR_MEMORY, "no memory for the objects of the program");
    o->trace = t;
    o->symbols = w;
    change_log_add(&o->changes, 0, UINT64_MAX);
    heap_blocks_init(&o->blocks);
    thread_data_init(&o->threads);
    stack_data_init(&o->stack, t);
    o->paths.value_size = o->variables.value_size = o->locals.value_size = o->texts.value_size = o->uses.value_size =
        o->functions.value_size = o->deferred_by_path.value_size = sizeof(uint32_t);
    objects_add_ranges(o);
    objects_add_modules(o);
    *ret = o;
    return 0;
}

void objects_free(struct objects *o)
{
    if (!o)
        return;
    heap_blocks_release(&o->blocks);
    later_blocks_release(&o->later);
    mem_spans_release(&o->named);
    mem_spans_release(&o->areas);
    map_release(&o->paths);
    thread_data_release(&o->threads);
    stack_data_release(&o->stack);
    map_release(&o->variables);
    map_release(&o->locals);
    map_release(&o->texts);
    map_release(&o->uses);
    map_release(&o->functions);
    map_release(&o->deferred_by_path);
    free(o->deferred);
    arena_release(&o->arena);
    free(o->object);
    free(o);
}
