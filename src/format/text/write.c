/* SPDX-License-Identifier: MIT */
/* Writes a trace as text (docs/text-format.md). The compact form has blocks, loops and registers as in the trace. The expanded form
 * evaluates them, so that each number in a line of execution is an address.
 *
 * Names are numbered in the order of first use, so that text that is read and written again is the same text.
 * Left out: times of traces from a pipe; in the expanded form also `page` events that repeat a frame of their
 * thread. Traces repeat them for each chunk, and text has no chunks. */
#include "format/text/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "format/schema/schema.h"
#include "format/text/expand.h"
#include "format/text/put.h"
#include "format/text/used.h"

/* A thread of the text. A reader of the text knows registers by set_register lines and by effects of blocks. */
struct thread_out {
    uint32_t id, process;
    bool nameless;                /* its definition was missing, and one was made up */
    bool in_step;                 /* compact: a reader of the text so far has the thread's registers */
    bool lost;                    /* compact: registers of a reader are unknown, since a chunk was damaged */
    uint64_t reg[PEET_REGISTERS]; /* registers of a reader; if neither in_step nor lost */
    struct map frames;            /* expanded: frames of pages, as written last */
    struct peet_time *time;       /* its times, and the index of the next one to write */
    size_t times, next_time;
};

/* Writes a trace as text. */
struct dump {
    struct peet_trace *trace;
    const struct text_options *o;
    FILE *out;
    struct peet_err *err;
    uint64_t limit;                                    /* position at which each thread's text ends */
    uint64_t damaged;                                  /* chunks */
    const struct text_used *used;                      /* symbols to write; NULL: all */
    size_t metas, processes, modules, ranges, threads; /* definitions written so far */
    struct arena arena;
    uint32_t items;                   /* elements of name and expansion */
    uint32_t *name;                   /* compact: by item, number of its name; 0: not written yet */
    struct text_expansion *expansion; /* expanded: by item; 0 pieces: not used yet */
    uint32_t blocks, loops;           /* names so far */
    struct map thread_out;            /* struct thread_out *, by thread */
};

static int dump_no_memory(struct peet_err *err)
{
    return err_set(err, PEET_ERR_MEMORY, "no memory to write a trace as text");
}

/* ---- definitions ---- */

static bool is_wanted_thread(const struct dump *d, uint32_t id)
{
    bool wanted = d->o->threads == 0;

    for (size_t i = 0; i < d->o->threads; i++)
        wanted |= d->o->thread[i] == id;
    return wanted;
}

static int dump_put_module(struct dump *d, const struct peet_module *module)
{
    struct peet_module piece = *module;
    struct peet_symbol *symbol = NULL;
    int r = d->used ? text_used_module(d->used, module, &piece, &symbol, d->err) : 0;

    if (r == 0)
        text_put_module(d->out, &piece);
    free(symbol);
    return r;
}

/* Writes definitions that are new since the last call. */
static int put_definitions(struct dump *d)
{
    int r = 0;

    const char *key, *value;
    const struct peet_process *process;
    const struct peet_module *module;
    const struct peet_range *range;
    const struct peet_thread *thread;

    for (; (key = peet_trace_meta(d->trace, d->metas, &value)); d->metas++)
        text_put_meta(d->out, key, value);
    for (; (process = peet_trace_process(d->trace, d->processes)); d->processes++)
        text_put_process(d->out, process);
    for (; r == 0 && (module = peet_trace_module(d->trace, d->modules)); d->modules++)
        r = dump_put_module(d, module);
    for (; (range = peet_trace_range(d->trace, d->ranges)); d->ranges++)
        text_put_range(d->out, range);
    for (; (thread = peet_trace_thread(d->trace, d->threads)); d->threads++) {
        struct thread_out **th = map_find(&d->thread_out, thread->id, 0);
        if (is_wanted_thread(d, thread->id) && (!th || !(*th)->nameless))
            text_put_thread(d->out, thread);
    }
    return r;
}

/* "name+0x10" in buffer, or NULL when no symbol covers addr. */
static const char *dump_symbol(const struct dump *d, uint32_t process, uint64_t addr, char *buffer, size_t size)
{
    const struct peet_symbol *s = d->o->symbols ? peet_trace_symbol(d->trace, process, addr) : NULL;

    if (!s)
        return NULL;
    snprintf(buffer, size, "%s+0x%" PRIx64, s->name, addr - s->addr);
    for (char *c = buffer; *c; c++)
        if ((unsigned char)*c < 32 || *c == 127)
            *c = '?';
    return buffer;
}

/* Writes the end of a line, perhaps with a comment: the symbols of the address and of a call's target. */
static void dump_end_line(const struct dump *d, uint32_t process, uint64_t addr, uint64_t target)
{
    char buffer[200];
    const char *symbol = dump_symbol(d, process, addr, buffer, sizeof buffer);

    if (symbol)
        fprintf(d->out, "  # %s", symbol);
    if (target && (symbol = dump_symbol(d, process, target, buffer, sizeof buffer)))
        fprintf(d->out, " -> %s", symbol);
    putc('\n', d->out);
}

/* Target address of a block that ends in a direct call; 0: of another block. */
static uint64_t dump_callee(const struct peet_block *b)
{
    const struct peet_insn *last = &b->insn[b->insns - 1];

    return last->class == PEET_CL_call ? last->target : 0;
}

/* Makes room for all items that the trace has so far. */
static int dump_make_room(struct dump *d)
{
    uint32_t items = peet_trace_items(d->trace), room = d->items * 2 > items ? d->items * 2 : items;

    if (items <= d->items)
        return 0;
    uint32_t *name = realloc(d->name, room * sizeof *name);
    if (name)
        d->name = name;
    struct text_expansion *expansion = realloc(d->expansion, room * sizeof *expansion);
    if (expansion)
        d->expansion = expansion;
    if (!name || !expansion)
        return dump_no_memory(d->err);
    memset(name + d->items, 0, (room - d->items) * sizeof *name);
    memset(expansion + d->items, 0, (room - d->items) * sizeof *expansion);
    d->items = room;
    return 0;
}

/* Writes the block and returns its name. */
static uint32_t dump_put_block(struct dump *d, uint32_t process, const struct peet_block *b)
{
    char buffer[200];

    text_put_block(d->out, b, ++d->blocks, dump_symbol(d, process, b->insn[0].addr, buffer, sizeof buffer));
    return d->blocks;
}

/* Compact: writes the definition of a block, unless it was written, and sets d->name. */
static void define_block(struct dump *d, uint32_t process, const struct peet_block *b)
{
    if (!d->name[b->id])
        d->name[b->id] = dump_put_block(d, process, b);
}

static void define_loop(struct dump *d, uint32_t process, const struct peet_loop *l)
{
    if (d->name[l->id])
        return;
    for (unsigned i = 0; i < l->nodes; i++)
        if (l->node[i].block)
            define_block(d, process, peet_trace_block(d->trace, l->node[i].block));
    d->name[l->id] = ++d->loops;
    text_put_loop(d->out, l, d->loops, d->name);
}

/* ---- lines of execution ---- */

static void begin_line(const struct dump *d, const struct thread_out *th, uint64_t position)
{
    text_put_decimal(d->out, th->id);
    putc(' ', d->out);
    text_put_decimal(d->out, position);
    putc(' ', d->out);
}

/* Writes times up to the position of the next line. */
static void put_times(struct dump *d, struct thread_out *th, uint64_t position)
{
    for (; th->next_time < th->times && th->time[th->next_time].position <= position; th->next_time++) {
        const struct peet_time *t = &th->time[th->next_time];
        if (t->position < d->o->from || t->position >= d->limit)
            continue;
        begin_line(d, th, t->position);
        fprintf(d->out, "time %" PRIu64 " cpu %" PRIu32 "\n", t->ns, t->cpu);
    }
}

/* Whether a page event gives the page a new frame; notes the frame. */
static int is_new_frame(struct dump *d, struct thread_out *th, const uint64_t *arg, bool *ret)
{
    size_t before = th->frames.count;
    uint64_t *frame = map_put(&th->frames, arg[0], 0);

    if (!frame)
        return dump_no_memory(d->err);
    *ret = th->frames.count != before || *frame != arg[1];
    *frame = arg[1];
    return 0;
}

static int dump_put_event(struct dump *d, struct thread_out *th, const struct peet_event_item *e, const uint64_t *arg,
                          uint64_t position)
{
    bool wanted = position >= d->o->from && position < d->limit;
    int first = 0, r;

    if (e->kind == PEET_EV_set_register && (!d->o->compact || !th->in_step))
        return 0; /* expanded: evaluated; compact: registers are written before the next block */
    if (wanted && e->kind == PEET_EV_page && !d->o->compact && (r = is_new_frame(d, th, arg, &wanted)) < 0)
        return r;
    if (!wanted)
        return 0;
    put_times(d, th, position);
    begin_line(d, th, position);
    fputs(peet_event_name(e->kind), d->out);
    if (text_event_has_string(e->kind)) {
        const char *s = peet_trace_string(d->trace, arg[0]);
        char missing[60];
        snprintf(missing, sizeof missing, "(string %" PRIu64 " is missing)", arg[0]);
        putc(' ', d->out);
        text_put_quoted(d->out, s ? s : missing);
        first = 1;
    }
    text_put_arguments(d->out, e->kind, arg, first);
    if (e->site) {
        fputs(" @", d->out);
        text_put_hex(d->out, e->site);
    }
    dump_end_line(d, th->process, e->site, 0);
    return 0;
}

static bool is_wanted_block(const struct dump *d, const struct peet_block *b)
{
    uint8_t class = b->insn[b->insns - 1].class;

    if (d->o->calls)
        return class == PEET_CL_call || class == PEET_CL_call_indirect || class == PEET_CL_return;
    return !d->o->events;
}

static bool is_wanted_loop(const struct dump *d, const struct peet_loop *l)
{
    for (unsigned i = 0; i < l->nodes; i++)
        if (l->node[i].block && is_wanted_block(d, peet_trace_block(d->trace, l->node[i].block)))
            return true;
    return false;
}

/* Writes an execution of a block, expanded. src: its registers and slots. */
static int put_expanded(struct dump *d, struct thread_out *th, const struct peet_block *b, uint64_t *src,
                        uint64_t position)
{
    struct text_expansion *e = &d->expansion[b->id];
    uint64_t slots[PEET_SLOTS];

    if (!is_wanted_block(d, b) || position + b->insns <= d->o->from || position >= d->limit)
        return 0;
    int r = e->pieces ? 0 : text_expand(b, &d->arena, e, d->err);
    if (r < 0)
        return r;
    block_compute(b, src);
    for (struct text_piece *piece = e->piece; piece < e->piece + e->pieces; position += piece->block.insns, piece++) {
        if (!is_wanted_block(d, &piece->block))
            continue;
        if (!piece->name)
            piece->name = dump_put_block(d, th->process, &piece->block);
        text_expand_slots(b, piece, src, slots);
        put_times(d, th, position);
        begin_line(d, th, position);
        putc('b', d->out);
        text_put_decimal(d->out, piece->name);
        for (unsigned i = 0; i < piece->block.slots; i++) {
            putc(' ', d->out);
            text_put_hex(d->out, slots[i]);
        }
        dump_end_line(d, th->process, piece->block.insn[0].addr, dump_callee(&piece->block));
    }
    return 0;
}

static int put_expanded_loop(struct dump *d, struct thread_out *th, const struct peet_loop *l, const uint64_t *slots,
                             uint64_t *src, uint64_t position)
{
    struct peet_loop_walk w;
    const struct peet_block *b;
    const uint64_t *s;
    int r = 0;

    if (!is_wanted_loop(d, l))
        return 0;
    peet_loop_walk_init(&w, d->trace, &(struct peet_loop_run){ l, slots, slots + l->values });
    while (r == 0 && position < d->limit && (b = peet_loop_walk_next(&w, &s))) {
        memcpy(src + PEET_SRC_SLOT, s, b->slots * sizeof *s);
        r = put_expanded(d, th, b, src, position);
        position += b->insns;
    }
    return r;
}

/* Writes set_register lines for registers that differ from those of a reader of the text. */
static void get_in_step(struct dump *d, struct thread_out *th, const uint64_t *reg, uint64_t position)
{
    for (unsigned i = 0; i < PEET_REGISTERS && !th->in_step; i++)
        if (th->lost || th->reg[i] != reg[i]) {
            begin_line(d, th, position);
            fputs("set_register", d->out);
            text_put_arguments(d->out, PEET_EV_set_register, (uint64_t[]){ i, reg[i] }, 0);
            putc('\n', d->out);
        }
    th->in_step = true;
    th->lost = false;
}

/* Writes an execution of a block or loop, compact: its name, values in hexadecimal, counts in decimal. */
static void put_compact(struct dump *d, struct thread_out *th, uint32_t item, const uint64_t *slots,
                        const uint64_t *reg, uint64_t position)
{
    const struct peet_block *b = peet_trace_block(d->trace, item);
    const struct peet_loop *l = peet_trace_loop(d->trace, item);
    bool wanted = position < d->limit
                  && (b ? is_wanted_block(d, b) && position + b->insns > d->o->from
                        : is_wanted_loop(d, l) && (position >= d->o->from || !peet_trace_is_pipe(d->trace)));

    if (!wanted) {
        if (th->in_step)
            memcpy(th->reg, reg, sizeof th->reg);
        th->in_step = false;
        return;
    }
    if (b)
        define_block(d, th->process, b);
    else
        define_loop(d, th->process, l);
    put_times(d, th, position);
    get_in_step(d, th, reg, position);
    begin_line(d, th, position);
    putc(b ? 'b' : 'l', d->out);
    text_put_decimal(d->out, d->name[item]);
    for (unsigned i = 0, n = b ? b->slots : (unsigned)l->values + l->counts; i < n; i++) {
        putc(' ', d->out);
        b || i < l->values ? text_put_hex(d->out, slots[i]) : text_put_decimal(d->out, slots[i]);
    }
    dump_end_line(d, th->process, b ? b->insn[0].addr : 0, b ? dump_callee(b) : 0);
}

static int put_item(struct dump *d, struct thread_out *th, uint32_t item, const uint64_t *slots, const uint64_t *reg,
                    uint64_t position)
{
    const struct peet_block *b = peet_trace_block(d->trace, item);
    const struct peet_loop *l = peet_trace_loop(d->trace, item);
    uint64_t src[PEET_SOURCES] = { 0 };

    if (!b && !l)
        return dump_put_event(d, th, peet_trace_event(d->trace, item), slots, position);
    int r = dump_make_room(d);
    if (r < 0)
        return r;
    if (d->o->compact) {
        put_compact(d, th, item, slots, reg, position);
        return 0;
    }
    memcpy(src + PEET_SRC_REGISTER, reg, PEET_REGISTERS * sizeof *reg);
    if (l)
        return put_expanded_loop(d, th, l, slots, src, position);
    memcpy(src + PEET_SRC_SLOT, slots, b->slots * sizeof *slots);
    return put_expanded(d, th, b, src, position);
}

/* ---- threads ---- */

static const struct peet_thread *find_thread(const struct dump *d, uint32_t id)
{
    const struct peet_thread *t;

    for (size_t i = 0; (t = peet_trace_thread(d->trace, i)); i++)
        if (t->id == id)
            return t;
    return NULL;
}

static int thread_out(struct dump *d, uint32_t id, struct thread_out **ret)
{
    struct thread_out **place_of = map_put(&d->thread_out, id, 0);

    if (!place_of)
        return dump_no_memory(d->err);
    if (!*place_of) {
        const struct peet_thread *t = find_thread(d, id);
        struct thread_out *th = calloc(1, sizeof *th);
        if (!th) {
            map_remove(&d->thread_out, id, 0);
            return dump_no_memory(d->err);
        }
        th->id = id;
        th->process = t ? t->process : 0;
        th->nameless = !t;
        if (!t)
            text_put_thread(d->out, &(struct peet_thread){ .id = id, .name = "(its definition is lost)" });
        th->frames.value_size = sizeof(uint64_t);
        *place_of = th;
    }
    *ret = *place_of;
    return 0;
}

static void thread_out_free(struct thread_out *th)
{
    map_release(&th->frames);
    free(th->time);
    free(th);
}

/* A chunk was damaged: registers are unknown; of a pipe, those of all threads. */
static void note_damage(struct dump *d)
{
    struct thread_out **th;
    uint64_t key;
    uint32_t tag;

    fprintf(d->out, "# damaged: %s\n", d->err->text);
    d->damaged++;
    for (size_t at = 0; (th = map_next(&d->thread_out, &at, &key, &tag));) {
        (*th)->in_step = false;
        (*th)->lost = true;
    }
}

/* Writes all items of a cursor: of one thread, or of all threads of a pipe. */
static int put_items(struct dump *d, struct peet_cursor *c, bool pipe)
{
    struct thread_out *th = NULL;
    const uint64_t *slots;
    uint32_t item;
    int r = 0, more;

    while (r == 0 && !ferror(d->out)) {
        more = peet_cursor_item(c, &item, &slots, d->err);
        if (more == PEET_ERR_DAMAGED) {
            note_damage(d);
            continue;
        }
        if (more <= 0)
            return more;
        uint32_t id = peet_cursor_thread(c);
        if (pipe && (r = put_definitions(d)) < 0)
            return r;
        if (!is_wanted_thread(d, id))
            continue;
        if ((!th || th->id != id) && (r = thread_out(d, id, &th)) < 0)
            return r;
        if (!pipe && peet_cursor_position(c) >= d->limit)
            return 0;
        r = put_item(d, th, item, slots, peet_cursor_registers(c), peet_cursor_position(c));
    }
    return r;
}

static int put_thread(struct dump *d, const struct peet_thread *t)
{
    struct peet_cursor *c;
    struct thread_out *th;
    int r = thread_out(d, t->id, &th);

    if (r < 0)
        return r;
    if (!d->o->calls && !d->o->events)
        r = peet_trace_times(d->trace, t->id, &th->time, &th->times, d->err);
    if (r == PEET_ERR_DAMAGED)
        note_damage(d);
    else if (r < 0)
        return r;
    if ((r = peet_cursor_open(d->trace, t->id, 0, &c, d->err)) < 0)
        return r;
    if (d->o->from == 0 || (r = peet_cursor_seek(c, d->o->from, d->err)) == 0)
        r = put_items(d, c, false);
    if (r == 0)
        put_times(d, th, UINT64_MAX);
    peet_cursor_free(c);
    map_remove(&d->thread_out, t->id, 0);
    thread_out_free(th);
    return r;
}

static int put_pipe(struct dump *d)
{
    struct peet_cursor *c;
    int r = peet_cursor_open(d->trace, PEET_ALL_THREADS, 0, &c, d->err);

    if (r < 0)
        return r;
    r = put_items(d, c, true);
    if (r == 0)
        r = put_definitions(d);
    peet_cursor_free(c);
    return r;
}

static int put_all(struct dump *d)
{
    const struct peet_thread *t;
    fputs(TEXT_FIRST_LINE "\n", d->out);
    int r = put_definitions(d);
    if (r == 0 && peet_trace_is_pipe(d->trace))
        r = put_pipe(d);
    for (size_t i = 0; i < d->o->threads && r == 0; i++)
        if (!find_thread(d, d->o->thread[i]))
            return err_set(d->err, PEET_ERR_USAGE, "%s: no thread %" PRIu32, peet_trace_path(d->trace),
                           d->o->thread[i]);
    if (!peet_trace_is_pipe(d->trace))
        for (size_t i = 0; r == 0 && (t = peet_trace_thread(d->trace, i)); i++)
            if (is_wanted_thread(d, t->id))
                r = put_thread(d, t);
    if (r == 0)
        fputs("end\n", d->out);
    if (r == 0 && (fflush(d->out) || ferror(d->out)))
        r = err_sys(d->err, errno, "cannot write text");
    return r;
}

int text_write(struct peet_trace *t, const struct text_options *o, FILE *out, uint64_t *ret_damaged,
               struct peet_err *err)
{
    struct peet_err own;
    struct dump d = { .trace = t, .o = o, .out = out, .err = err ? err : &own };
    struct thread_out **th;
    uint64_t key;
    uint32_t tag;

    d.limit = o->count > UINT64_MAX - o->from ? UINT64_MAX : o->from + o->count;
    d.thread_out.value_size = sizeof(struct thread_out *);
    struct text_used used = { 0 };
    int r = 0;
    if (o->count < UINT64_MAX && !peet_trace_is_pipe(t)) {
        r = text_used_read(&used, t, o, d.limit, d.err);
        d.used = &used;
    }
    if (r == 0)
        r = put_all(&d);
    text_used_release(&used);
    for (size_t at = 0; (th = map_next(&d.thread_out, &at, &key, &tag));)
        thread_out_free(*th);
    map_release(&d.thread_out);
    arena_release(&d.arena);
    free(d.name);
    free(d.expansion);
    if (r == 0)
        *ret_damaged = d.damaged;
    return r;
}
