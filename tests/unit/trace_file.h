/* SPDX-License-Identifier: MIT */
/* Traces of what synthetic.h makes up: written, and read back, in a separate folder. */
#ifndef TESTS_UNIT_TRACE_FILE_H
#define TESTS_UNIT_TRACE_FILE_H

#include <stdlib.h>
#include <unistd.h>

#include "tests/synthetic.h"
#include "tests/unit/check.h"

static char folder[] = "/tmp/peet-trace.XXXXXX";
static char path[100];

static const struct synthetic_style FULL = { .regular = 10, .wander = 40, .loops = 20, .events = 200 };

static inline bool fine(int r, const struct peet_err *err)
{
    if (r < 0)
        printf("# %s\n", err->text);
    return CHECK(r >= 0);
}

/* Writes `threads` streams of `items` items each, in turn, a few items at a time. */
static inline bool write_trace(struct synthetic *s, unsigned threads, unsigned items,
                               const struct peet_writer_config *config)
{
    struct peet_err err;
    struct peet_writer *w;
    struct peet_stream *stream[16];
    struct synthetic_thread *t = calloc(threads, sizeof *t);
    struct synthetic_step x;
    bool ok = fine(peet_writer_open(path, config, &w, &err), &err) && fine(synthetic_define(s, w, &err), &err);

    for (unsigned i = 0; ok && i < threads; i++) {
        struct peet_thread thread = { .id = i, .name = "worker" };
        ok = fine(peet_stream_open(w, &thread, &stream[i], &err), &err);
        synthetic_thread_init(&t[i], s, i);
    }
    for (unsigned n = 0; ok && n < items; n++)
        for (unsigned i = 0; ok && i < threads; i++) {
            synthetic_next(&t[i], &x);
            ok = fine(peet_stream_put(stream[i], x.item, x.slot, &err), &err);
        }
    for (unsigned i = 0; ok && i < threads; i++)
        ok = fine(peet_stream_close(stream[i], &err), &err);
    free(t);
    return ok && fine(peet_writer_close(w, &err), &err);
}

/* A reader's records in a row, across batches. */
struct reader {
    struct peet_cursor *c;
    struct peet_batch batch;
    size_t at;
    struct peet_err err;
};

static inline const struct peet_record *next_record(struct reader *r)
{
    if (r->at == r->batch.count) {
        int n = peet_cursor_next(r->c, &r->batch, &r->err);
        if (n <= 0) {
            if (n < 0)
                printf("# %s\n", r->err.text);
            return NULL;
        }
        r->at = 0;
    }
    return &r->batch.records[r->at++];
}

static inline bool same(const struct reader *r, const struct peet_record *a, const struct peet_record *b,
                        const struct synthetic_step *x)
{
    if (a->kind != b->kind || a->addr != b->addr)
        return false;
    if (a->kind != PEET_EVENT)
        return a->id == b->id && a->size == b->size;
    const struct peet_event *e = &r->batch.events[a->id];
    return e->kind == x->s_kind && e->site == x->s_site && e->args == x->slots
           && !memcmp(e->arg, x->slot, x->slots * 8);
}

/* The stream of one thread equals the oracle's, record for record. */
static inline bool thread_is_same(struct synthetic *s, struct peet_trace *trace, uint32_t thread, unsigned items)
{
    static struct peet_record expected[SYN_RECORDS];
    struct reader r = { 0 };
    struct synthetic_thread *t = malloc(sizeof *t);
    struct synthetic_step x;
    bool ok = fine(peet_cursor_open(trace, thread, 0, &r.c, &r.err), &r.err);

    synthetic_thread_init(t, s, thread);
    for (unsigned n = 0; ok && n < items; n++) {
        synthetic_next(t, &x);
        if (x.kind == 'e') {
            x.s_kind = s->event[x.index].kind;
            x.s_site = s->event[x.index].site;
        }
        size_t count = synthetic_expand(t, trace, &x, expected);
        for (size_t i = 0; ok && i < count; i++) {
            const struct peet_record *got = next_record(&r);
            ok = CHECK(got && same(&r, got, &expected[i], &x));
            if (!ok)
                printf("# thread %u item %u (%c%u) record %zu of %zu\n", thread, n, x.kind, x.index, i, count);
        }
    }
    ok = ok && CHECK(next_record(&r) == NULL);
    peet_cursor_free(r.c);
    free(t);
    return ok;
}

static inline struct peet_trace *open_trace(size_t problems)
{
    struct peet_err err;
    struct peet_trace *t;
    size_t n = 0;

    if (!fine(peet_trace_open(path, &t, &err), &err))
        return NULL;
    while (peet_trace_problem(t, n))
        n++;
    if (!CHECK_EQ(n, problems))
        for (size_t i = 0; i < n; i++)
            printf("# problem: %s\n", peet_trace_problem(t, i));
    return t;
}

static inline bool folder_begin(void)
{
    if (!mkdtemp(folder))
        return false;
    snprintf(path, sizeof path, "%s/t.peet", folder);
    return true;
}

static inline void folder_end(void)
{
    unlink(path);
    rmdir(folder);
}

#endif
