/* SPDX-License-Identifier: MIT */
/* Writes the records of a trace as rows for other programs: CSV, or one JSON object per line. They cannot be read back as a trace.
 *
 * Columns: thread; position (instructions of the thread before); kind of record, or name of the event; pc (address of the instruction, of an
 * event: of the call); addr (of the first byte); size (bytes; of a block: instructions). An event has arguments instead of the last
 * two: in CSV one field with blanks between them, in JSON by name. A string argument, which is always the first, is written in full. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "format/text/put.h"
#include "format/text/text.h"

static const char *const KINDS[PEET_KINDS] = {
    "block", "load", "store", "update", "prefetch", "event", "loop", "repeat"
};

/* Writes records as rows of a table. */
struct rows {
    struct peet_trace *trace;
    const struct text_options *o;
    bool json; /* JSON; else CSV */
    FILE *out;
    uint64_t limit; /* position at which each thread's rows end */
};

/* The string that is an event's first argument; NULL: that is a number, or the string is missing. */
static const char *string_of(const struct rows *x, const struct peet_event *e)
{
    return text_event_has_string(e->kind) ? peet_trace_string(x->trace, e->arg[0]) : NULL;
}

static void put_json_arguments(const struct rows *x, const struct peet_event *e)
{
    const char *name = peet_event_args(e->kind), *text = string_of(x, e);

    for (unsigned i = 0; i < e->args; i++) {
        int n = (int)strcspn(name, " ");
        fprintf(x->out, "%s\"%.*s\":", i ? "," : "", n, name);
        if (i == 0 && text)
            utf8_json(text, x->out);
        else
            fprintf(x->out, "%" PRIu64, e->arg[i]);
        name += n + (name[n] == ' ');
    }
}

/* One field. */
static void put_csv_arguments(const struct rows *x, const struct peet_event *e)
{
    const char *text = string_of(x, e);
    char numbers[PEET_EVENT_ARGS * 24] = "";
    size_t n = 0;

    for (unsigned i = text != NULL; i < e->args; i++)
        n += (size_t)snprintf(numbers + n, sizeof numbers - n, "%s%" PRIu64, i ? " " : "", e->arg[i]);
    if (!text) {
        fputs(numbers, x->out);
        return;
    }
    char *all = mem_format("%s%s", text, numbers);
    utf8_csv(all, x->out);
    free(all);
}

static void rows_put(const struct rows *x, const struct peet_batch *b, const struct peet_record *r, uint64_t position)
{
    const struct peet_event *e = r->kind == PEET_EVENT ? &b->events[r->id] : NULL;
    const char *kind = e ? peet_event_name(e->kind) : KINDS[r->kind];
    uint64_t pc = e ? e->site : r->kind == PEET_BLOCK ? r->addr : peet_trace_insn(x->trace, r->id)->addr;

    if (x->json) {
        fprintf(x->out, "{\"thread\":%" PRIu32 ",\"position\":%" PRIu64 ",\"kind\":\"%s\",\"pc\":%" PRIu64, b->thread,
                position, kind, pc);
        if (!e)
            fprintf(x->out, ",\"addr\":%" PRIu64 ",\"size\":%u", r->addr, r->size);
        if (e)
            fputs(",\"arguments\":{", x->out), put_json_arguments(x, e), putc('}', x->out);
        fputs("}\n", x->out);
    } else {
        fprintf(x->out, "%" PRIu32 ",%" PRIu64 ",%s,%" PRIu64 ",", b->thread, position, kind, pc);
        if (e)
            fputs(",,", x->out), put_csv_arguments(x, e);
        else
            fprintf(x->out, "%" PRIu64 ",%u,", r->addr, r->size);
        putc('\n', x->out);
    }
}

/* Whether a block ends in a call or a return. */
static bool is_call(const struct rows *x, const struct peet_record *r)
{
    const struct peet_block *b = peet_trace_block(x->trace, r->id);
    unsigned class = b->insn[b->insns - 1].class;

    return class == PEET_CL_call || class == PEET_CL_call_indirect || class == PEET_CL_return;
}

/* Writes the wanted records of a batch; false: the thread has no more of them. */
static bool put_batch(const struct rows *x, const struct peet_batch *b)
{
    uint64_t position = b->position, at = position;
    bool wanted = false;

    for (size_t i = 0; i < b->count; i++) {
        const struct peet_record *r = &b->records[i];
        if (r->kind == PEET_BLOCK || r->kind == PEET_EVENT) {
            at = position;
            if (at >= x->limit)
                return false;
            wanted = r->kind == PEET_EVENT || (!x->o->events && (!x->o->calls || is_call(x, r)));
            wanted &= r->kind == PEET_EVENT ? at >= x->o->from : at + r->size > x->o->from;
            position += r->kind == PEET_BLOCK ? r->size : 0;
        }
        if (wanted)
            rows_put(x, b, r, at);
    }
    return true;
}

static bool is_wanted(const struct text_options *o, uint32_t thread)
{
    for (size_t i = 0; i < o->threads; i++)
        if (o->thread[i] == thread)
            return true;
    return o->threads == 0;
}

static int put_cursor(const struct rows *x, uint32_t thread, uint64_t *damaged, struct peet_err *err)
{
    struct peet_cursor *c;
    struct peet_batch b;
    int r = peet_cursor_open(x->trace, thread, 0, &c, err);

    if (r == 0 && thread != PEET_ALL_THREADS && x->o->from)
        r = peet_cursor_seek(c, x->o->from, err);
    if (r < 0)
        return r;
    for (;;) {
        r = peet_cursor_next(c, &b, err);
        *damaged += r == PEET_ERR_DAMAGED;
        if (r == PEET_ERR_DAMAGED)
            continue;
        if (r <= 0)
            break;
        if (is_wanted(x->o, b.thread) && !put_batch(x, &b) && thread != PEET_ALL_THREADS)
            break;
    }
    peet_cursor_free(c);
    return r < 0 ? r : 0;
}

int text_records(struct peet_trace *t, const struct text_options *o, bool json, FILE *out, uint64_t *ret_damaged,
                 struct peet_err *err)
{
    struct rows x = { t, o, json, out, o->count > UINT64_MAX - o->from ? UINT64_MAX : o->from + o->count };
    const struct peet_thread *thread;
    uint64_t damaged = 0;
    int r = 0;

    for (size_t i = 0; i < o->threads && !peet_trace_is_pipe(t); i++) {
        struct peet_totals totals;
        if (peet_trace_totals(t, o->thread[i], &totals) < 0)
            return err_set(err, PEET_ERR_USAGE, "%s: there is no thread %" PRIu32, peet_trace_path(t), o->thread[i]);
    }
    if (!json)
        fputs("thread,position,kind,pc,addr,size,arguments\n", out);
    if (peet_trace_is_pipe(t))
        r = put_cursor(&x, PEET_ALL_THREADS, &damaged, err);
    for (size_t i = 0; r == 0 && !peet_trace_is_pipe(t) && (thread = peet_trace_thread(t, i)); i++)
        if (is_wanted(o, thread->id))
            r = put_cursor(&x, thread->id, &damaged, err);
    if (r == 0 && (fflush(out) < 0 || ferror(out)))
        r = err_sys(err, errno, "cannot write");
    *ret_damaged = damaged;
    return r;
}
