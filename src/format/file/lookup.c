/* SPDX-License-Identifier: MIT */
/* Lookups in an open trace: problems, definitions, symbols, times. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"
#include "format/file/trace.h"

const char *peet_trace_problem(const struct peet_trace *t, size_t i)
{
    return i < t->problems ? t->problem[i] : NULL;
}

const char *peet_trace_path(const struct peet_trace *t)
{
    return t->path;
}

bool peet_trace_is_pipe(const struct peet_trace *t)
{
    return t->is_pipe;
}

uint64_t peet_trace_bytes(const struct peet_trace *t)
{
    return t->bytes;
}

uint64_t peet_trace_time_chunks(const struct peet_trace *t)
{
    return t->times;
}

static const void *trace_element(const struct vector *v, size_t i)
{
    return i < v->count ? v->at[i] : NULL;
}

const char *peet_trace_meta(const struct peet_trace *t, size_t i, const char **ret_value)
{
    const struct meta *m = trace_element(&t->schema->metas, i);

    if (m && ret_value)
        *ret_value = m->value;
    return m ? m->key : NULL;
}

const char *peet_trace_meta_get(const struct peet_trace *t, const char *key)
{
    const char *value, *k;

    for (size_t i = 0; (k = peet_trace_meta(t, i, &value)); i++)
        if (!strcmp(k, key))
            return value;
    return NULL;
}

const struct peet_process *peet_trace_process(const struct peet_trace *t, size_t i)
{
    return trace_element(&t->schema->processes, i);
}

const struct peet_module *peet_trace_module(const struct peet_trace *t, size_t i)
{
    return trace_element(&t->schema->modules, i);
}

const struct peet_range *peet_trace_range(const struct peet_trace *t, size_t i)
{
    return trace_element(&t->schema->ranges, i);
}

const struct peet_thread *peet_trace_thread(const struct peet_trace *t, size_t i)
{
    return trace_element(&t->schema->threads, i);
}

int peet_trace_totals(const struct peet_trace *t, uint32_t thread, struct peet_totals *ret)
{
    const struct thread_index *x = trace_thread(t, thread);

    if (!x && !schema_thread(t->schema, thread))
        return -1;
    *ret = x ? x->totals : (struct peet_totals){ 0 };
    return 0;
}

uint32_t peet_trace_items(const struct peet_trace *t)
{
    return atomic_load(&t->schema->items);
}

uint32_t peet_trace_insns(const struct peet_trace *t)
{
    return t->schema->insns;
}

static const struct item *item_of(const struct peet_trace *t, uint32_t number, enum item_kind kind)
{
    const struct item *item = schema_item(t->schema, number);

    return item && item->kind == kind ? item : NULL;
}

const struct peet_block *peet_trace_block(const struct peet_trace *t, uint32_t number)
{
    const struct item *item = item_of(t, number, ITEM_BLOCK);

    return item ? item->block : NULL;
}

const struct peet_loop *peet_trace_loop(const struct peet_trace *t, uint32_t number)
{
    const struct item *item = item_of(t, number, ITEM_LOOP);

    return item ? item->loop : NULL;
}

const struct peet_event_item *peet_trace_event(const struct peet_trace *t, uint32_t number)
{
    const struct item *item = item_of(t, number, ITEM_EVENT);

    return item ? item->event : NULL;
}

const struct peet_block *peet_trace_insn_block(const struct peet_trace *t, uint32_t number)
{
    const struct vector *blocks = &t->schema->blocks; /* in the order of their first instruction's number */
    size_t low = 0, high = blocks->count;

    if (number >= t->schema->insns)
        return NULL;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (((const struct peet_block *)blocks->at[middle])->first_insn <= number)
            low = middle;
        else
            high = middle;
    }
    return blocks->at[low];
}

const struct peet_insn *peet_trace_insn(const struct peet_trace *t, uint32_t number)
{
    const struct peet_block *b = peet_trace_insn_block(t, number);

    return b ? &b->insn[number - b->first_insn] : NULL;
}

const char *peet_trace_string(const struct peet_trace *t, uint64_t number)
{
    return trace_element(&t->schema->strings, number);
}

static const struct peet_symbol *find_symbol(const struct peet_module *m, uint64_t addr)
{
    size_t low = 0, high = m->symbols;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (m->symbol[middle].addr <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    /* Symbols can lie inside others, so the nearest one below need not be the one that covers addr. */
    for (size_t i = low, tries = 16; i-- > 0 && tries > 0; tries--)
        if (addr - m->symbol[i].addr < m->symbol[i].size || addr == m->symbol[i].addr)
            return &m->symbol[i];
    return NULL;
}

const struct peet_symbol *peet_trace_symbol(const struct peet_trace *t, uint32_t process, uint64_t addr)
{
    const struct peet_module *m;

    for (size_t i = 0; (m = peet_trace_module(t, i)); i++) {
        const struct peet_symbol *s = m->process == process ? find_symbol(m, addr) : NULL;
        if (s)
            return s;
    }
    return NULL;
}

/* ---- the timing stream ---- */

static int trace_read_times(const uint8_t *bytes, size_t n, struct peet_time **list, size_t *count,
                            struct peet_err *err)
{
    struct byte_reader w = { bytes, bytes + n, 0 };
    uint64_t more = reader_leb(&w), position = 0, ns = 0;

    if (more > n)
        return err_set(err, PEET_ERR_DAMAGED, "times make no sense");
    struct peet_time *bigger = realloc(*list, (*count + more + 1) * sizeof *bigger);
    if (!bigger)
        return err_set(err, PEET_ERR_MEMORY, "no memory for times");
    *list = bigger;
    for (uint64_t i = 0; i < more; i++) {
        position += (uint64_t)reader_sleb(&w);
        ns += (uint64_t)reader_sleb(&w);
        bigger[*count + i] = (struct peet_time){ position, ns, (uint32_t)reader_leb(&w) };
    }
    if (w.bad)
        return err_set(err, PEET_ERR_DAMAGED, "times make no sense");
    *count += more;
    return 0;
}

int peet_trace_times(struct peet_trace *t, uint32_t thread, struct peet_time **ret, size_t *ret_count,
                     struct peet_err *err)
{
    struct buf payload = { 0 }, out = { 0 };
    struct unpacker *u = unpacker_new();
    struct peet_time *list = NULL;
    size_t count = 0, from, n;
    int r = u ? 0 : err_set(err, PEET_ERR_MEMORY, "no memory for times");

    for (size_t i = 0; r == 0 && i < t->times; i++) {
        if (t->time[i].header.thread != thread || (r = trace_load(t, &t->time[i], &payload, err)) < 0)
            continue;
        struct byte_reader w = { payload.data, payload.data + payload.size, 0 };
        out.size = 0;
        r = unpacker_append(u, &w, CHUNK_MAX_PAYLOAD, &out, &from, &n, err);
        if (r == 0)
            r = trace_read_times(out.data + from, n, &list, &count, err);
    }
    unpacker_free(u);
    buf_release(&payload);
    buf_release(&out);
    if (r < 0) {
        free(list);
        return r;
    }
    *ret = list;
    *ret_count = count;
    return 0;
}
