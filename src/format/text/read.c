/* SPDX-License-Identifier: MIT */
/* Reads text as a trace. A definition ends at the first line that is not part of it.
 *
 * If a position is greater than the number of instructions before it, the text lacks instructions (text of --calls, --from, a damaged trace).
 * A `gap` event replaces them, so that the trace does not appear to be complete. In text, a `page` event is valid up to the next one of
 * its page, in a trace to the end of its chunk. So page events are repeated before a block that refers to their pages; but
 * not if its addresses depend on registers. */
#include "format/text/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "format/text/put.h"
#include "format/text/read.h"

enum { PAGE_BITS = 12 }; /* of a `page` event: 4 KiB */

/* ---- ends of definitions ---- */

/* Defines the name b<number> or l<number>. */
static int name_item(struct text_reader *r, char letter, uint64_t number, const struct text_item *item)
{
    struct text_item *place = map_put(&r->names, number, (uint32_t)letter);

    if (!place)
        return text_no_memory(r);
    *place = *item;
    return 0;
}

/* Whether a block's addresses do not depend on registers. */
static bool is_open(const struct peet_block *b)
{
    for (unsigned i = 0; i < b->operands; i++) {
        const struct peet_operand *o = &b->operand[i];
        const uint8_t src[] = { o->base, o->index, o->size_src, o->predicate };
        for (size_t j = 0; j < sizeof src; j++)
            if (src[j] && (src[j] < PEET_SRC_SLOT || src[j] >= PEET_SRC_TEMP))
                return false;
    }
    return true;
}

static int block_end(struct text_reader *r)
{
    struct text_item item = { .line = r->block.line };
    struct peet_block b;
    int e = text_block_end(&r->scan, &r->block, &b);

    if (e == 0)
        e = text_at_line(r, r->block.line, peet_writer_block(r->writer, &b, &item.item, r->scan.err));
    if (e < 0)
        return e;
    item.slots = b.slots;
    item.insns = b.insns;
    if (b.operands && is_open(&b)) {
        struct peet_operand *operand = arena_alloc(&r->kept, b.operands * sizeof *operand);
        if (!operand)
            return text_no_memory(r);
        item.operands = b.operands;
        item.operand = memcpy(operand, b.operand, b.operands * sizeof *operand);
    }
    return name_item(r, 'b', r->block.name, &item);
}

static int loop_end(struct text_reader *r)
{
    struct text_item item = { .line = r->loop.line };
    struct peet_loop l;
    int e = text_loop_end(&r->scan, &r->loop, &l);

    if (e == 0)
        e = text_at_line(r, r->loop.line, peet_writer_loop(r->writer, &l, &item.item, r->scan.err));
    if (e < 0)
        return e;
    struct text_size *size = arena_alloc(&r->kept, l.nodes * sizeof *size);
    if (!size)
        return text_no_memory(r);
    item.slots = (uint16_t)(l.values + l.counts);
    item.values = l.values;
    item.nodes = l.nodes;
    item.size = memcpy(size, r->loop.size, l.nodes * sizeof *size);
    return name_item(r, 'l', r->loop.name, &item);
}

/* Ends the definition that is being read, if there is one. */
static int end_definition(struct text_reader *r)
{
    int e = 0;

    if (r->now == TEXT_MODULE)
        e = text_module_end(r);
    else if (r->now == TEXT_BLOCK)
        e = block_end(r);
    else if (r->now == TEXT_LOOP)
        e = loop_end(r);
    r->now = TEXT_NOTHING;
    arena_reset(&r->arena);
    return e;
}

/* ---- lines of execution ---- */

static int read_put_item(struct text_reader *r, struct text_thread *th, uint32_t item, const uint64_t *slots)
{
    return text_at_line(r, r->scan.line, peet_stream_put(th->stream, item, slots, r->scan.err));
}

static int read_put_event(struct text_reader *r, struct text_thread *th, uint32_t kind, uint64_t site,
                          const uint64_t *arg)
{
    uint32_t item;
    int e = text_at_line(r, r->scan.line, peet_writer_event(r->writer, kind, site, &item, r->scan.err));

    return e < 0 ? e : read_put_item(r, th, item, arg);
}

/* Repeats the page event of a page that has a frame, unless the current chunk has it. */
static int say_page(struct text_reader *r, struct text_thread *th, uint64_t page)
{
    struct text_frame *f = map_find(&th->frame, page, 0);

    if (!f || f->chunk == peet_stream_chunk(th->stream))
        return 0;
    f->chunk = peet_stream_chunk(th->stream);
    return read_put_event(r, th, PEET_EV_page, 0, (uint64_t[]){ page, f->number });
}

static int say_pages(struct text_reader *r, struct text_thread *th, const struct text_item *b, const uint64_t *slots)
{
    uint64_t src[PEET_SOURCES] = { 0 };
    int e = 0;

    memcpy(src + PEET_SRC_SLOT, slots, b->slots * sizeof *slots);
    for (unsigned i = 0; i < b->operands; i++) {
        const struct peet_operand *o = &b->operand[i];
        uint64_t bytes = operand_bytes(o, src), addr = src[o->base] + (src[o->index] << o->scale) + (uint64_t)o->disp;
        if (bytes == 0 || bytes >= OPERAND_MAX_BYTES)
            continue;
        addr -= o->down ? bytes - o->size : 0;
        for (uint64_t page = addr >> PAGE_BITS, n = 0; e == 0 && n <= bytes >> PAGE_BITS; n++)
            e = say_page(r, th, page + n);
    }
    return e;
}

/* Handles the position of a line: puts a gap if instructions are missing before it. A "-" in the text: no position. */
static int read_position(struct text_reader *r, struct text_thread *th, uint64_t position)
{
    if (position < th->reached)
        return text_scan_wrong(&r->scan, "position %" PRIu64 " found, %" PRIu64 " or more expected", position,
                               th->reached);
    if (position == th->reached)
        return 0;
    uint64_t missing = position - th->reached;
    th->left_out += missing;
    th->reached = position;
    return read_put_event(r, th, PEET_EV_gap, 0, (uint64_t[]){ missing, 0 });
}

static int item_line(struct text_reader *r, struct text_thread *th, char letter, uint64_t number)
{
    const struct text_item *item = map_find(&r->names, number, (uint32_t)letter);
    const char *what = letter == 'b' ? "block" : "loop";
    uint64_t slots[PEET_SLOTS];
    int e;

    if (!item)
        return text_scan_wrong(&r->scan, "%c%" PRIu64 " found, a %s that is defined expected", letter, number, what);
    for (unsigned i = 0; i < item->slots; i++) {
        if (text_scan_at_end(&r->scan))
            return text_scan_wrong(&r->scan, "%u numbers found, %u expected behind %c%" PRIu64, i, item->slots, letter,
                                   number);
        if ((e = text_scan_word64(&r->scan, "a number", &slots[i])) < 0)
            return e;
    }
    if ((e = text_scan_end(&r->scan)) < 0)
        return e;
    uint64_t insns = text_item_insns(item, slots);
    if (insns >= (uint64_t)1 << 63 || insns > UINT64_MAX - th->reached)
        return text_scan_wrong(&r->scan, "more than 2^63 instructions found");
    if (th->frame.count && item->operands && (e = say_pages(r, th, item, slots)) < 0)
        return e;
    th->reached += insns;
    th->ended = false;
    return read_put_item(r, th, item->item, slots);
}

static int time_line(struct text_reader *r, struct text_thread *th, uint64_t position)
{
    struct peet_time t;
    uint64_t cpu;
    int e;

    if ((e = text_scan_number(&r->scan, UINT64_MAX, "nanoseconds", &t.ns)) < 0
        || (e = text_scan_field(&r->scan, "cpu", UINT32_MAX, &cpu)) < 0 || (e = text_scan_end(&r->scan)) < 0)
        return e;
    t.cpu = (uint32_t)cpu;
    t.position = position > th->left_out ? position - th->left_out : 0;
    return text_at_line(r, r->scan.line, peet_stream_time(th->stream, &t, r->scan.err));
}

/* Reads an event, after its name. */
static int event_line(struct text_reader *r, struct text_thread *th, uint32_t kind)
{
    uint64_t arg[PEET_EVENT_ARGS] = { 0 }, site = 0;
    int first = 0, e;

    if (text_event_has_string(kind)) {
        const char *text;
        uint32_t number;
        if ((e = text_scan_quoted(&r->scan, "a string in quotes", &r->arena, &text)) < 0)
            return e;
        if ((e = text_at_line(r, r->scan.line, peet_writer_string(r->writer, text, &number, r->scan.err))) < 0)
            return e;
        arg[first++] = number;
    }
    for (int i = first; i < peet_event_arity(kind); i++)
        if ((e = text_scan_word64(&r->scan, peet_event_args(kind), &arg[i])) < 0)
            return e;
    if (text_scan_take(&r->scan, "@") && (e = text_scan_number(&r->scan, UINT64_MAX, "an address", &site)) < 0)
        return e;
    if ((e = text_scan_end(&r->scan)) < 0)
        return e;
    if (kind == PEET_EV_page) {
        struct text_frame *f = map_put(&th->frame, arg[0], 0);
        if (!f)
            return text_no_memory(r);
        *f = (struct text_frame){ arg[1], peet_stream_chunk(th->stream) };
    }
    th->ended = kind == PEET_EV_thread_end;
    arena_reset(&r->arena);
    return read_put_event(r, th, kind, site, arg);
}

static int execution_line(struct text_reader *r)
{
    uint64_t id, position = 0, number;
    char name[40];
    int e = text_scan_number(&r->scan, UINT32_MAX, "a thread's number", &id);

    if (e < 0)
        return e;
    if (!r->thread || r->thread_id != id) {
        struct text_thread **th = map_find(&r->threads, id, 0);
        if (!th)
            return text_scan_wrong(&r->scan, "thread %" PRIu64 " found, a thread that is defined expected", id);
        r->thread = *th;
        r->thread_id = (uint32_t)id;
    }
    struct text_thread *th = r->thread;
    bool said = !text_scan_take(&r->scan, "-");
    if (said && (e = text_scan_number(&r->scan, UINT64_MAX, "a position or '-'", &position)) < 0)
        return e;
    if (text_scan_take(&r->scan, "time"))
        return time_line(r, th, said ? position : th->reached);
    if (said && (e = read_position(r, th, position)) < 0)
        return e;
    if (text_scan_name(&r->scan, 'b', &number))
        return item_line(r, th, 'b', number);
    if (text_scan_name(&r->scan, 'l', &number))
        return item_line(r, th, 'l', number);
    const char *before = r->scan.at;
    e = text_scan_identifier(&r->scan, "a block, a loop or an event", name, sizeof name);
    int kind = e < 0 ? -1 : peet_event_find(name);
    if (e == 0 && kind < 0) {
        r->scan.at = before;
        return text_scan_expected(&r->scan, "a block, a loop or the name of an event");
    }
    return e < 0 ? e : event_line(r, th, (uint32_t)kind);
}

/* ---- lines ---- */

static int new_name(struct text_reader *r, char letter, uint64_t number)
{
    const struct text_item *known = map_find(&r->names, number, (uint32_t)letter);

    if (known)
        return text_scan_wrong(&r->scan, "%c%" PRIu64 " found again, it is defined in line %" PRIu64, letter, number,
                               known->line);
    return 0;
}

static int block_line(struct text_reader *r)
{
    int e = text_block_begin(&r->scan, &r->block);

    r->now = TEXT_BLOCK;
    return e < 0 ? e : new_name(r, 'b', r->block.name);
}

static int loop_line(struct text_reader *r)
{
    int e = text_loop_begin(&r->scan, &r->loop);

    r->now = TEXT_LOOP;
    return e < 0 ? e : new_name(r, 'l', r->loop.name);
}

static int read_end_line(struct text_reader *r)
{
    r->ended = true;
    return text_scan_end(&r->scan);
}

/* Reads a line of the current definition: 1; 0: the line is not part of it; or an error. */
static int inner_line(struct text_reader *r)
{
    switch (r->now) {
    case TEXT_MODULE: return text_module_inner_line(r);
    case TEXT_BLOCK: return text_block_line(&r->scan, &r->block);
    case TEXT_LOOP: return text_loop_line(&r->scan, &r->loop, &r->names, &r->arena);
    default: return 0;
    }
}

static int outer_line(struct text_reader *r)
{
    static const struct {
        const char *word;
        int (*read)(struct text_reader *r);
    } LINES[] = {
        { "block", block_line },          { "loop", loop_line },          { "meta", text_meta_line },
        { "process", text_process_line }, { "module", text_module_line }, { "range", text_range_line },
        { "thread", text_thread_line },   { "end", read_end_line },
    };

    if (r->ended)
        return text_scan_wrong(&r->scan, "a line found behind 'end', nothing expected");
    if (text_scan_is_digit(&r->scan) && !(r->scan.at[0] == '0' && r->scan.at[1] == 'x'))
        return execution_line(r);
    for (size_t i = 0; i < sizeof LINES / sizeof *LINES; i++)
        if (text_scan_take(&r->scan, LINES[i].word))
            return LINES[i].read(r);
    return text_scan_expected(&r->scan, "a definition, a thread's number or 'end'");
}

static int read_all(struct text_reader *r)
{
    int e = text_scan_line(&r->scan);

    if (e < 0)
        return e;
    if (e == 0 || !text_scan_take(&r->scan, TEXT_FIRST_LINE) || !text_scan_at_end(&r->scan))
        return text_scan_expected(&r->scan, "'" TEXT_FIRST_LINE "'");
    while ((e = text_scan_line(&r->scan)) > 0) {
        int inner = inner_line(r);
        if (inner < 0 || (inner == 0 && ((e = end_definition(r)) < 0 || (e = outer_line(r)) < 0)))
            return inner < 0 ? inner : e;
    }
    if (e < 0)
        return e;
    if (!r->ended)
        return text_scan_wrong(&r->scan, "the end of the file found, 'end' expected: the text is cut off");
    for (struct text_thread *th = r->first; th; th = th->next)
        if (th->ended && (e = text_at_line(r, r->scan.line, peet_stream_close(th->stream, r->scan.err))) < 0)
            return e;
    return 0;
}

int text_read(FILE *in, const char *name, struct peet_writer *w, struct peet_err *err)
{
    struct text_reader *r = calloc(1, sizeof *r);
    struct peet_err own;

    if (!r)
        return err_set(err, PEET_ERR_MEMORY, "%s: no memory", name);
    r->writer = w;
    r->last = &r->first;
    r->names.value_size = sizeof(struct text_item);
    r->threads.value_size = sizeof(struct text_thread *);
    r->processes.value_size = sizeof(uint64_t);
    int e = text_scan_init(&r->scan, in, name, err ? err : &own);
    if (e == 0)
        e = read_all(r);
    for (struct text_thread *th = r->first, *next; th; th = next) {
        next = th->next;
        map_release(&th->frame);
        free(th);
    }
    map_release(&r->names);
    map_release(&r->threads);
    map_release(&r->processes);
    arena_release(&r->kept);
    arena_release(&r->arena);
    free(r->segment);
    free(r->symbol);
    text_scan_release(&r->scan);
    free(r);
    return e;
}
