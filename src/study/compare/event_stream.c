/* SPDX-License-Identifier: MIT */
#include "study/compare/event_stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

/* The calls of a thread that have not returned, by the addresses to which they return. Calls of code that was not recorded return without
 * a return instruction. */
struct open_calls {
    uint64_t *back;
    size_t depth;
    enum { AFTER_NOTHING, AFTER_CALL, AFTER_RETURN } after; /* how the last block ended */
};

/* Notes that a block is executed: first the return to it, then the call at its end. */
static void open_calls_enter(struct open_calls *c, const struct peet_block *block)
{
    const struct peet_insn *last = &block->insn[block->insns - 1];
    size_t depth = c->after == AFTER_NOTHING ? 0 : c->depth;

    while (c->after == AFTER_RETURN && depth > 0 && c->back[depth - 1] != block->insn[0].addr)
        depth--;
    if (depth > 0 && c->back[depth - 1] == block->insn[0].addr)
        c->depth = depth - 1;
    c->after = last->class == PEET_CL_return ? AFTER_RETURN : AFTER_NOTHING;
    if (last->class != PEET_CL_call && last->class != PEET_CL_call_indirect)
        return;
    c->back = mem_room(c->back, c->depth, sizeof *c->back);
    c->back[c->depth++] = last->addr + last->length;
    c->after = AFTER_CALL;
}

/* What a block is to the begin of the part that is wanted: it belongs to one of the functions, or has one of the instructions. */
enum block_start { START_UNKNOWN, START_NOT, START_FUNCTION, START_INSTRUCTION };

/* A stream that is being read. */
struct stream_reading {
    struct event_stream *stream;
    struct code_match *match;
    unsigned side;
    struct peet_trace *trace;
    const struct stream_wants *wants;
    struct open_calls calls;
    uint8_t *starts;    /* by item: 1 + whether the block belongs to one of the functions; 0: unknown */
    size_t base;        /* calls that were open when the function was entered */
    bool is_open;       /* the function has not returned; no second instruction was executed */
    bool is_by_address; /* it began at an instruction */
};

/* Whether a word of stream_wants.from is an address. */
static bool from_is_address(const char *word, uint64_t *ret)
{
    *ret = strncmp(word, "0x", 2) == 0 ? strtoull(word, NULL, 16) : 0;
    return *ret != 0;
}

/* The first instruction from `first` on that is among the addresses; block->insns: none. */
static unsigned block_find_address(const struct stream_wants *w, const struct peet_block *block, unsigned first)
{
    uint64_t addr;

    for (; first < block->insns; first++)
        for (size_t i = 0; i < w->froms; i++)
            if (from_is_address(w->from[i], &addr) && block->insn[first].addr == addr)
                return first;
    return first;
}

static enum block_start stream_block_start(struct stream_reading *r, uint32_t item, const struct peet_block *block)
{
    uint64_t addr = block->insn[0].addr, unused;

    if (r->starts[item] != START_UNKNOWN)
        return r->starts[item];
    const struct peet_symbol *symbol = peet_trace_symbol(r->trace, r->stream->thread->process, addr);
    r->starts[item] = block_find_address(r->wants, block, 0) < block->insns ? START_INSTRUCTION : START_NOT;
    for (size_t i = 0; symbol && i < r->wants->froms; i++)
        if (!from_is_address(r->wants->from[i], &unused) && strcmp(symbol->name, r->wants->from[i]) == 0)
            r->starts[item] = START_FUNCTION;
    return r->starts[item];
}

/* Whether a block is in the part of the thread that is wanted. */
static bool stream_has_block(struct stream_reading *r, uint32_t item, const struct peet_block *block)
{
    if (r->wants->froms == 0)
        return true;
    open_calls_enter(&r->calls, block);
    size_t depth = r->calls.depth - (r->calls.after == AFTER_CALL);
    if (!r->stream->is_cut && stream_block_start(r, item, block) == START_FUNCTION) {
        r->is_open = r->stream->is_cut = true;
        r->base = depth;
        r->stream->count = 0; /* what precedes it */
    }
    bool is_open = r->is_open;
    if (!r->is_by_address && (depth < r->base || (r->calls.after == AFTER_RETURN && depth == r->base)))
        r->is_open = false;
    return is_open || !r->stream->is_cut;
}

static int event_stream_add(struct event_stream *s, const uint32_t *event, size_t count)
{
    if (count == 0)
        return 0; /* event may be NULL */
    if (s->count + count > s->room) {
        size_t room = s->room ? 2 * s->room : 4096;
        while (room < s->count + count)
            room *= 2;
        uint32_t *at = realloc(s->at, room * sizeof *at);
        if (!at)
            return PEET_ERR_MEMORY;
        s->at = at;
        s->room = room;
    }
    memcpy(s->at + s->count, event, count * sizeof *event);
    s->count += count;
    return 0;
}

static int stream_take(struct stream_reading *r, const uint32_t *event, size_t count)
{
    if (!r->wants->is_abstract)
        return event_stream_add(r->stream, event, count);
    for (size_t i = 0; i < count; i++)
        if (!code_match_class(r->match, event[i])->waits && event_stream_add(r->stream, &event[i], 1) < 0)
            return PEET_ERR_MEMORY;
    return 0;
}

/* Events for the decoder are no events of the program. */
static int stream_take_event(struct stream_reading *r, const struct peet_event *event)
{
    if (event->kind == PEET_EV_page || event->kind == PEET_EV_gap)
        return 0;
    uint32_t number = code_match_event(r->match, r->side, event);
    return stream_take(r, &number, 1);
}

/* A block with some of the instructions that begin and end the part that is wanted. */
static int stream_take_cut_block(struct stream_reading *r, uint32_t item, const struct peet_block *block)
{
    size_t count, first = 0;
    const uint32_t *event = code_match_block(r->match, r->side, item, &count);
    int code = 0;

    for (unsigned at = 0; code == 0 && at <= block->insns; at++) {
        at = block_find_address(r->wants, block, at);
        size_t end = at < block->insns ? code_match_events_before(r->match, r->side, item, at) : count;
        if (r->is_open || !r->stream->is_cut)
            code = stream_take(r, event + first, end - first);
        first = at < block->insns ? code_match_events_before(r->match, r->side, item, at + 1) : count;
        if (at < block->insns && !r->stream->is_cut) {
            r->is_open = r->stream->is_cut = r->is_by_address = true;
            r->stream->count = 0;
        } else if (at < block->insns) {
            r->is_open = false;
        }
    }
    return code;
}

static int stream_take_block(struct stream_reading *r, uint32_t item)
{
    const struct peet_block *block = peet_trace_block(r->trace, item);
    size_t count;

    if (r->wants->froms && stream_block_start(r, item, block) == START_INSTRUCTION)
        return stream_take_cut_block(r, item, block);
    if (!stream_has_block(r, item, block))
        return 0;
    const uint32_t *event = code_match_block(r->match, r->side, item, &count);
    return stream_take(r, event, count);
}

static int stream_take_batch(struct stream_reading *r, const struct peet_batch *b)
{
    for (size_t i = 0; i < b->count; i++) {
        const struct peet_record *record = &b->records[i];
        int code = 0;
        if (record->kind == PEET_BLOCK) {
            code = stream_take_block(r, record->id);
        } else if (record->kind == PEET_EVENT && r->wants->unit == UNIT_EVENTS && (r->is_open || !r->stream->is_cut)) {
            code = stream_take_event(r, &b->events[record->id]);
        }
        if (code < 0)
            return code;
    }
    return 0;
}

int event_stream_read(struct event_stream *s, struct code_match *m, unsigned side, struct peet_trace *t,
                      const struct stream_wants *wants, struct progress *progress, uint64_t *done, struct peet_err *err)
{
    struct stream_reading reading = { .stream = s, .match = m, .side = side, .trace = t, .wants = wants };
    struct peet_cursor *cursor;
    struct peet_batch batch;
    uint64_t position = 0;
    int r = peet_cursor_open(t, s->thread->id, 0, &cursor, err);

    if (r < 0)
        return r;
    reading.starts = mem_alloc((size_t)peet_trace_items(t) + 1, 1);
    while ((r = peet_cursor_next(cursor, &batch, err)) != 0) {
        s->damaged += r == PEET_ERR_DAMAGED;
        if (r == PEET_ERR_DAMAGED)
            continue;
        if (r < 0)
            break;
        if (stream_take_batch(&reading, &batch) < 0) {
            r = err_set(err, PEET_ERR_MEMORY, "no memory for the events of thread %u; --calls needs less",
                        s->thread->id);
            break;
        }
        if (s->count >= INT32_MAX) {
            r = err_set(err, PEET_ERR_LIMIT, "thread %u has more than 2^31 events; --calls has less", s->thread->id);
            break;
        }
        position = batch.position;
        if (progress)
            progress_at(progress, *done + position);
    }
    *done += position;
    free(reading.starts);
    free(reading.calls.back);
    peet_cursor_free(cursor);
    return r;
}

void event_stream_release(struct event_stream *s)
{
    free(s->at);
    s->at = NULL;
    s->count = s->room = 0;
}
