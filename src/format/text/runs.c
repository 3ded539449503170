/* SPDX-License-Identifier: MIT */
/* Reads definitions of the environment: meta data, processes, modules with their segments and symbols, ranges, threads. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "format/text/read.h"

int text_no_memory(struct text_reader *r)
{
    return err_set(r->scan.err, PEET_ERR_MEMORY, "%s:%" PRIu64 ": no memory", r->scan.name, r->scan.line);
}

int text_at_line(struct text_reader *r, uint64_t line, int code)
{
    if (code < 0 && code != PEET_ERR_IO)
        err_prefix(r->scan.err, "%s:%" PRIu64, r->scan.name, line);
    if (code == PEET_ERR_USAGE) /* of the writer; here it is the text that makes no sense */
        r->scan.err->code = code = PEET_ERR_FORMAT;
    return code;
}

int text_meta_line(struct text_reader *r)
{
    const char *key, *value;
    int e;

    if ((e = text_scan_quoted(&r->scan, "a key in quotes", &r->arena, &key)) < 0
        || (e = text_scan_quoted(&r->scan, "a value in quotes", &r->arena, &value)) < 0
        || (e = text_scan_end(&r->scan)) < 0)
        return e;
    return text_at_line(r, r->scan.line, peet_writer_meta(r->writer, key, value, r->scan.err));
}

/* The word `before` and a string. */
static int scan_text(struct text_reader *r, const char *before, const char **ret)
{
    char what[60];
    int e = text_scan_need(&r->scan, before);

    snprintf(what, sizeof what, "a %s in quotes", before);
    return e < 0 ? e : text_scan_quoted(&r->scan, what, &r->arena, ret);
}

static int scan_id(struct text_reader *r, const char *before, uint32_t *ret)
{
    uint64_t v;
    int e = text_scan_field(&r->scan, before, UINT32_MAX, &v);

    if (e == 0)
        *ret = (uint32_t)v;
    return e;
}

int text_process_line(struct text_reader *r)
{
    struct peet_process p;
    uint64_t id;
    int e;

    if ((e = text_scan_number(&r->scan, UINT32_MAX, "a process's number", &id)) < 0
        || (e = scan_id(r, "parent", &p.parent)) < 0 || (e = scan_text(r, "program", &p.program)) < 0
        || (e = scan_text(r, "command", &p.command)) < 0 || (e = text_scan_end(&r->scan)) < 0)
        return e;
    uint64_t *line = map_put(&r->processes, id, 0);
    if (!line)
        return text_no_memory(r);
    if (*line)
        return text_scan_wrong(&r->scan, "process %" PRIu64 " found again, it is defined in line %" PRIu64, id, *line);
    *line = r->scan.line;
    p.id = (uint32_t)id;
    return text_at_line(r, r->scan.line, peet_writer_process(r->writer, &p, r->scan.err));
}

/* rwx, with '-' for what is not allowed, or a number. */
static int scan_protection(struct text_reader *r, uint32_t *ret)
{
    static const char *const NAMES[] = { "---", "--x", "-w-", "-wx", "r--", "r-x", "rw-", "rwx" };
    uint64_t v;

    for (uint32_t i = 0; i < 8; i++)
        if (text_scan_take(&r->scan, NAMES[i])) {
            *ret = i;
            return 0;
        }
    int e = text_scan_number(&r->scan, UINT32_MAX, "a protection like rw-", &v);
    if (e == 0)
        *ret = (uint32_t)v;
    return e;
}

int text_range_line(struct text_reader *r)
{
    struct peet_range range;
    int e;

    if ((e = scan_id(r, "process", &range.process)) < 0
        || (e = text_scan_number(&r->scan, UINT64_MAX, "an address", &range.start)) < 0
        || (e = text_scan_number(&r->scan, UINT64_MAX, "a size", &range.size)) < 0
        || (e = scan_protection(r, &range.protection)) < 0 || (e = scan_text(r, "name", &range.name)) < 0
        || (e = text_scan_end(&r->scan)) < 0)
        return e;
    return text_at_line(r, r->scan.line, peet_writer_range(r->writer, &range, r->scan.err));
}

int text_thread_line(struct text_reader *r)
{
    struct peet_thread t;
    uint64_t id;
    int e;

    if ((e = text_scan_number(&r->scan, UINT32_MAX - 1, "a thread's number", &id)) < 0
        || (e = scan_id(r, "process", &t.process)) < 0 || (e = scan_id(r, "parent", &t.parent)) < 0
        || (e = scan_id(r, "ordinal", &t.ordinal)) < 0 || (e = scan_text(r, "name", &t.name)) < 0
        || (e = text_scan_end(&r->scan)) < 0)
        return e;
    struct text_thread **known = map_put(&r->threads, id, 0);
    if (!known)
        return text_no_memory(r);
    if (*known)
        return text_scan_wrong(&r->scan, "thread %" PRIu64 " found again, it is defined in line %" PRIu64, id,
                               (*known)->line);
    t.id = (uint32_t)id;
    struct text_thread *th = *known = calloc(1, sizeof *th);
    if (!th) {
        map_remove(&r->threads, id, 0);
        return text_no_memory(r);
    }
    *r->last = th;
    r->last = &th->next;
    th->line = r->scan.line;
    th->frame.value_size = sizeof(struct text_frame);
    return text_at_line(r, r->scan.line, peet_stream_open(r->writer, &t, &th->stream, r->scan.err));
}

/* ---- modules ---- */

int text_module_line(struct text_reader *r)
{
    struct peet_module m = { 0 };
    int e;

    if ((e = scan_id(r, "process", &m.process)) < 0 || (e = scan_text(r, "path", &m.path)) < 0
        || (e = scan_text(r, "build", &m.build_id)) < 0
        || (e = text_scan_field(&r->scan, "bias", UINT64_MAX, &m.bias)) < 0 || (e = text_scan_end(&r->scan)) < 0)
        return e;
    r->module = m;
    r->module_line = r->scan.line;
    r->now = TEXT_MODULE;
    return 0;
}

/* Makes room for one more element of an array with `count` elements. */
static int text_grow(struct text_reader *r, void **array, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return 0;
    size_t more = *room * 2 + 64;
    void *bigger = realloc(*array, more * size);
    if (!bigger)
        return text_no_memory(r);
    *array = bigger;
    *room = more;
    return 0;
}

static int segment_line(struct text_reader *r)
{
    struct peet_segment s;
    void *array = r->segment;
    int e;

    if ((e = text_scan_number(&r->scan, UINT64_MAX, "an address", &s.start)) < 0
        || (e = text_scan_number(&r->scan, UINT64_MAX, "a size", &s.size)) < 0
        || (e = text_scan_field(&r->scan, "offset", UINT64_MAX, &s.offset)) < 0
        || (e = scan_protection(r, &s.protection)) < 0 || (e = text_scan_end(&r->scan)) < 0)
        return e;
    if ((e = text_grow(r, &array, r->module.segments, &r->segment_room, sizeof s)) == 0) {
        r->segment = array;
        r->segment[r->module.segments++] = s;
    }
    return e;
}

static int symbol_line(struct text_reader *r)
{
    struct peet_symbol s;
    void *array = r->symbol;
    int e;

    if ((e = text_scan_number(&r->scan, UINT64_MAX, "an address", &s.addr)) < 0
        || (e = text_scan_number(&r->scan, UINT64_MAX, "a size", &s.size)) < 0)
        return e;
    s.code = text_scan_take(&r->scan, "code");
    if (!s.code && !text_scan_take(&r->scan, "data"))
        return text_scan_expected(&r->scan, "'code' or 'data'");
    if ((e = text_scan_quoted(&r->scan, "a name in quotes", &r->arena, &s.name)) < 0
        || (e = text_scan_end(&r->scan)) < 0)
        return e;
    if ((e = text_grow(r, &array, r->module.symbols, &r->symbol_room, sizeof s)) == 0) {
        r->symbol = array;
        r->symbol[r->module.symbols++] = s;
    }
    return e;
}

int text_module_inner_line(struct text_reader *r)
{
    int e;

    if (text_scan_take(&r->scan, "segment"))
        e = segment_line(r);
    else if (text_scan_take(&r->scan, "symbol"))
        e = symbol_line(r);
    else
        return 0;
    return e < 0 ? e : 1;
}

int text_module_end(struct text_reader *r)
{
    r->module.segment = r->segment;
    r->module.symbol = r->symbol;
    return text_at_line(r, r->module_line, peet_writer_module(r->writer, &r->module, r->scan.err));
}
