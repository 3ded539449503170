/* SPDX-License-Identifier: MIT */
/* A stream that is made of parts is the stream that is written in a row: random items, cut anywhere, encoded by several threads in
 * any order, with registers that live across the cuts, and with items that are put into the stream itself between them. */
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"
#include "tests/synthetic.h"

enum { STREAMS = 3, ITEMS = 30000, WORKERS = 4, CUT = 900 };

static char folder[] = "/tmp/peet-part.XXXXXX";
static char in_a_row[100], in_parts[100];

static const struct synthetic_style STYLE = { .regular = 10, .wander = 40, .loops = 20, .events = 100 };

static bool fine(int r, const struct peet_err *err)
{
    if (r < 0)
        printf("# %s\n", err->text);
    return CHECK(r >= 0);
}

static bool write_in_a_row(struct synthetic *s, size_t chunk_words)
{
    struct peet_err err;
    struct peet_writer *w;
    struct peet_stream *stream;
    struct synthetic_thread *t = malloc(sizeof *t);
    struct synthetic_step x;
    bool ok =
        fine(peet_writer_open(in_a_row, &(struct peet_writer_config){ .chunk_words = chunk_words }, &w, &err), &err)
        && fine(synthetic_define(s, w, &err), &err);

    for (uint32_t i = 0; ok && i < STREAMS; i++) {
        ok = fine(peet_stream_open(w, &(struct peet_thread){ .id = i, .name = "" }, &stream, &err), &err);
        synthetic_thread_init(t, s, i);
        for (int n = 0; ok && n < ITEMS; n++) {
            synthetic_next(t, &x);
            ok = fine(peet_stream_put(stream, x.item, x.slot, &err), &err);
        }
        ok = ok && fine(peet_stream_close(stream, &err), &err);
    }
    free(t);
    return ok && fine(peet_writer_close(w, &err), &err);
}

/* ---- pieces ---- */

struct piece {
    uint32_t stream;
    bool apart; /* else it is put into the stream itself */
    uint64_t registers[PEET_REGISTERS];
    uint64_t *words;
    size_t count;
    struct peet_part *part;
};

struct pieces {
    struct piece *at;
    size_t count;
    struct peet_writer *writer;
    struct peet_stream *stream[STREAMS];
    unsigned *order; /* in which they are encoded */
    atomic_uint next;
};

static void add_item(struct pieces *p, uint32_t item, const uint64_t *slots, size_t n)
{
    struct piece *x = &p->at[p->count - 1];

    x->words = realloc(x->words, (x->count + 1 + n) * sizeof *x->words);
    if (!x->words)
        abort();
    x->words[x->count] = item;
    if (n)
        memcpy(x->words + x->count + 1, slots, n * sizeof *slots);
    x->count += 1 + n;
}

static void add_piece(struct pieces *p, uint32_t stream, const uint64_t *registers, bool apart)
{
    p->at = realloc(p->at, (p->count + 1) * sizeof *p->at);
    if (!p->at)
        abort();
    p->at[p->count] = (struct piece){ .stream = stream, .apart = apart };
    memcpy(p->at[p->count++].registers, registers, sizeof p->at->registers);
}

static unsigned slots_of(const struct peet_trace *t, uint32_t item)
{
    const struct peet_block *b = peet_trace_block(t, item);
    const struct peet_loop *l = peet_trace_loop(t, item);

    return b   ? b->slots
           : l ? (unsigned)(l->values + l->counts)
               : (unsigned)peet_event_arity(peet_trace_event(t, item)->kind);
}

/* Cuts the streams at random, where the reader has the registers. */
static void cut(struct pieces *p, struct peet_trace *t, uint64_t *random)
{
    struct peet_cursor *c;
    struct peet_err err;
    uint32_t item;
    const uint64_t *slots;

    for (uint32_t i = 0; i < STREAMS && fine(peet_cursor_open(t, i, 0, &c, &err), &err); i++) {
        for (unsigned left = 0; peet_cursor_item(c, &item, &slots, &err) > 0; left--) {
            if (left == 0) {
                add_piece(p, i, peet_cursor_registers(c), synthetic_below(random, 5) > 0);
                left = 1 + synthetic_below(random, CUT);
            }
            add_item(p, item, slots, slots_of(t, item));
        }
        peet_cursor_free(c);
    }
}

static void shuffle(struct pieces *p, uint64_t *random)
{
    p->order = calloc(p->count + 1, sizeof *p->order);
    for (unsigned i = 0; i < p->count; i++) {
        unsigned k = synthetic_below(random, i + 1);
        p->order[i] = p->order[k];
        p->order[k] = i;
    }
}

static void *encode(void *argument)
{
    struct pieces *p = argument;
    struct peet_err err;

    for (unsigned i; (i = atomic_fetch_add(&p->next, 1)) < p->count;) {
        struct piece *x = &p->at[p->order[i]];
        if (!x->apart || !fine(peet_part_new(p->writer, &x->part, &err), &err))
            continue;
        peet_part_begin(x->part, p->stream[x->stream], x->registers);
        fine(peet_part_put_named(x->part, x->words, x->count, NULL, &err), &err);
        if (i % 3)
            fine(peet_part_finish(x->part, &err), &err);
    }
    return NULL;
}

static bool write_in_parts(struct synthetic *s, struct pieces *p, size_t chunk_words)
{
    struct peet_err err;
    pthread_t worker[WORKERS];
    bool ok =
        fine(peet_writer_open(in_parts, &(struct peet_writer_config){ .chunk_words = chunk_words }, &p->writer, &err),
             &err)
        && fine(synthetic_define(s, p->writer, &err), &err);

    for (uint32_t i = 0; ok && i < STREAMS; i++)
        ok = fine(peet_stream_open(p->writer, &(struct peet_thread){ .id = i, .name = "" }, &p->stream[i], &err), &err);
    if (!ok)
        return false;
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&worker[i], NULL, encode, p);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(worker[i], NULL);
    for (size_t i = 0; ok && i < p->count; i++) {
        struct piece *x = &p->at[i];
        ok = fine(x->apart ? peet_part_commit(x->part, &err)
                           : peet_stream_put_words(p->stream[x->stream], x->words, x->count, &err),
                  &err);
        peet_part_free(x->part);
    }
    for (uint32_t i = 0; ok && i < STREAMS; i++)
        ok = fine(peet_stream_close(p->stream[i], &err), &err);
    return ok && fine(peet_writer_close(p->writer, &err), &err);
}

/* ---- comparing ---- */

struct reader {
    struct peet_cursor *c;
    struct peet_batch batch;
    size_t at;
};

static const struct peet_record *next_record(struct reader *r)
{
    struct peet_err err;

    if (r->at == r->batch.count) {
        int n = peet_cursor_next(r->c, &r->batch, &err);
        if (n <= 0)
            return fine(n, &err), NULL;
        r->at = 0;
    }
    return &r->batch.records[r->at++];
}

static bool same(const struct reader *a, const struct peet_record *x, const struct reader *b,
                 const struct peet_record *y)
{
    if (x->kind != y->kind || x->addr != y->addr)
        return false;
    if (x->kind != PEET_EVENT)
        return x->id == y->id && x->size == y->size;
    const struct peet_event *e = &a->batch.events[x->id], *f = &b->batch.events[y->id];
    return e->kind == f->kind && e->site == f->site && e->args == f->args && !memcmp(e->arg, f->arg, e->args * 8ul);
}

static void compare(struct peet_trace *ta, struct peet_trace *tb)
{
    const struct peet_record *x, *y;
    struct peet_totals total_a, total_b;
    struct peet_err err;

    CHECK(peet_trace_problem(tb, 0) == NULL);
    for (uint32_t i = 0; i < STREAMS; i++) {
        struct reader a = { 0 }, b = { 0 };
        if (!fine(peet_cursor_open(ta, i, 0, &a.c, &err), &err) || !fine(peet_cursor_open(tb, i, 0, &b.c, &err), &err))
            return;
        do {
            x = next_record(&a);
            y = next_record(&b);
        } while (x && y && CHECK(same(&a, x, &b, y)));
        CHECK(!x && !y);
        peet_cursor_free(a.c);
        peet_cursor_free(b.c);
        peet_trace_totals(ta, i, &total_a);
        peet_trace_totals(tb, i, &total_b);
        CHECK_EQ(total_a.instructions, total_b.instructions);
        CHECK_EQ(total_a.references, total_b.references);
        CHECK_EQ(total_a.events, total_b.events);
        CHECK(total_b.whole);
    }
}

static void try(uint64_t seed, size_t chunk_words)
{
    struct synthetic *s = synthetic_new(seed, &STYLE);
    struct peet_trace *a = NULL, *b = NULL;
    struct pieces p = { 0 };
    struct peet_err err;

    if (write_in_a_row(s, chunk_words) && fine(peet_trace_open(in_a_row, &a, &err), &err)) {
        cut(&p, a, &seed);
        shuffle(&p, &seed);
        if (write_in_parts(s, &p, chunk_words) && fine(peet_trace_open(in_parts, &b, &err), &err))
            compare(a, b);
    }
    for (size_t i = 0; i < p.count; i++)
        free(p.at[i].words);
    free(p.at);
    free(p.order);
    peet_trace_free(a);
    peet_trace_free(b);
    free(s);
}

static void parts_in_their_order_are_the_stream_in_a_row(void)
{
    for (uint64_t seed = 1; seed <= 3; seed++)
        try(seed, 0);
}

static void a_part_that_is_larger_than_a_chunk_becomes_several(void)
{
    try(4, 1000);
    try(5, 37);
}

static void what_makes_no_sense_is_told_with_its_thread(void)
{
    static const uint64_t none[PEET_REGISTERS];
    struct peet_err err;
    struct peet_writer *w;
    struct peet_stream *s;
    struct peet_part *p;

    if (!fine(peet_writer_open(in_parts, NULL, &w, &err), &err)
        || !fine(peet_stream_open(w, &(struct peet_thread){ .id = 7, .name = "" }, &s, &err), &err)
        || !fine(peet_part_new(w, &p, &err), &err))
        return;
    peet_part_begin(p, s, none);
    CHECK(peet_part_put_named(p, (uint64_t[]){ 12345 }, 1, NULL, &err) < 0);
    CHECK_EQ(err.text, "thread 7: item 12345 is not defined");
    peet_part_free(p);
    fine(peet_writer_close(w, &err), &err);
}

static void a_disk_that_is_full_is_told_by_the_commit_and_ever_after(void)
{
    static const uint64_t none[PEET_REGISTERS];
    struct synthetic *syn = synthetic_new(6, &STYLE);
    struct peet_err err;
    struct peet_writer *w;
    struct peet_stream *s;
    struct peet_part *p;
    struct rlimit before, little;

    getrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_IGN);
    if (!fine(peet_writer_open(in_parts, NULL, &w, &err), &err) || !fine(synthetic_define(syn, w, &err), &err)
        || !fine(peet_stream_open(w, &(struct peet_thread){ .id = 1, .name = "" }, &s, &err), &err)
        || !fine(peet_part_new(w, &p, &err), &err))
        return;
    little = (struct rlimit){ 1000, before.rlim_max };
    setrlimit(RLIMIT_FSIZE, &little);
    uint64_t words[] = { syn->set_register, 3, 4 };
    peet_part_begin(p, s, none);
    fine(peet_part_put_named(p, words, 3, NULL, &err), &err);
    fine(peet_part_finish(p, &err), &err);
    CHECK_EQ(peet_part_commit(p, &err), PEET_ERR_IO);
    CHECK(strstr(err.text, "cannot write") != NULL);
    setrlimit(RLIMIT_FSIZE, &before);
    peet_part_begin(p, s, none);
    CHECK_EQ(peet_part_put_named(p, words, 3, NULL, &err), PEET_ERR_IO);
    CHECK_EQ(peet_part_commit(p, &err), PEET_ERR_IO);
    peet_part_free(p);
    CHECK_EQ(peet_writer_close(w, &err), PEET_ERR_IO);
    free(syn);
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    snprintf(in_a_row, sizeof in_a_row, "%s/row.peet", folder);
    snprintf(in_parts, sizeof in_parts, "%s/parts.peet", folder);
    RUN(parts_in_their_order_are_the_stream_in_a_row);
    RUN(a_part_that_is_larger_than_a_chunk_becomes_several);
    RUN(what_makes_no_sense_is_told_with_its_thread);
    RUN(a_disk_that_is_full_is_told_by_the_commit_and_ever_after);
    unlink(in_a_row);
    unlink(in_parts);
    rmdir(folder);
    return check_done();
}
