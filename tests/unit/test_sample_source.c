/* SPDX-License-Identifier: MIT */
/* Sampled sources: against the whole stream, cut by slow and obvious code. */
#include "base/map.h"
#include "map/source/source_sample.h"
#include "tests/unit/loops.h"

enum { THREADS = 3, MOST = 1 << 18, LINE = 32 };

/* A program with loops, memory that library code moves, allocations and locks. */
static struct peet_trace *make_program(unsigned steps)
{
    program_begin(THREADS);
    for (unsigned i = 0; i < steps; i++) {
        unsigned thread = 1 + (unsigned)draw(THREADS);
        uint64_t addr = 0x10000 + draw(1 << 16);
        switch (draw(8)) {
        case 0: line("%u - l1 0x%" PRIx64 " %" PRIu64, thread, addr, 1 + draw(draw(8) ? 60 : 3000)); break;
        case 1: line("%u - malloc 0x%" PRIx64 " 64", thread, addr); break;
        case 2: line("%u - range_write 0x%" PRIx64 " %" PRIu64, thread, addr, draw(300)); break;
        case 3:
            line("%u - range_copy 0x%" PRIx64 " 0x%" PRIx64 " %" PRIu64, thread, addr, addr + 4096, draw(90));
            break;
        case 4: line("%u - b1", thread); break;
        default: line("%u - b%u 0x%" PRIx64, thread, 2 + (unsigned)draw(2), addr); break;
        }
    }
    return program_end(THREADS);
}

static struct source *sample(struct peet_trace *t, const struct sample_config *config)
{
    struct source *inner, *s = NULL;
    struct peet_err err;

    if (fine(source_open_trace(t, draw(2), &inner, &err), &err))
        fine(source_take_sample(inner, config, &s, &err), &err);
    return s;
}

/* ---- a stream in one row: what is seen, and how long gaps are ---- */

struct item {
    uint32_t kind; /* of a record; PEET_KINDS + kind of an event */
    uint64_t a, b; /* an address and a size; a gap's arguments */
};

struct row {
    struct item item[MOST];
    size_t count;
};

static void put(struct row *w, uint32_t kind, uint64_t a, uint64_t b)
{
    if (CHECK(w->count < MOST))
        w->item[w->count++] = (struct item){ kind, a, b };
}

/* Gaps that follow each other are one: where an event that passes stands between them, they do not follow each other. */
static void put_gap(struct row *w, uint64_t instructions, uint64_t references)
{
    struct item *last = w->count ? &w->item[w->count - 1] : NULL;

    if (last && last->kind == PEET_KINDS + PEET_EV_gap) {
        last->a += instructions;
        last->b += references;
    } else {
        put(w, PEET_KINDS + PEET_EV_gap, instructions, references);
    }
}

static uint64_t lines_of(uint64_t addr, uint64_t size)
{
    uint64_t n = 0;

    for (uint64_t i = 0; i < size; i++)
        n += i == 0 || (addr + i) % LINE == 0;
    return n;
}

static uint64_t references_of(const struct peet_record *r, const struct peet_event *e)
{
    if (!e)
        return r->kind != PEET_BLOCK;
    if (e->kind == PEET_EV_range_write)
        return lines_of(e->arg[0], e->arg[1]);
    return e->kind == PEET_EV_range_copy ? lines_of(e->arg[0], e->arg[2]) + lines_of(e->arg[1], e->arg[2]) : 0;
}

static bool is_range(const struct peet_event *e)
{
    return e->kind == PEET_EV_range_write || e->kind == PEET_EV_range_copy;
}

static void mark_lines(struct map *touched, uint64_t addr, uint64_t size)
{
    for (uint64_t i = 0; i < size; i++)
        map_put(touched, (addr + i) / LINE, 0);
}

static void mark_touched(struct map *touched, const struct peet_record *r, const struct peet_event *e)
{
    if (!e && r->kind != PEET_BLOCK)
        mark_lines(touched, r->addr, r->size);
    if (e && e->kind == PEET_EV_range_write)
        mark_lines(touched, e->arg[0], e->arg[1]);
    if (e && e->kind == PEET_EV_range_copy) {
        mark_lines(touched, e->arg[0], e->arg[2]);
        mark_lines(touched, e->arg[1], e->arg[2]);
    }
}

/* What a thread must show, with windows in the middle of each period. */
static void expect(struct peet_trace *t, uint32_t thread, const struct sample_config *c, struct row *w,
                   struct map *touched)
{
    struct peet_cursor *cursor;
    struct peet_batch b;
    struct peet_err err;
    uint64_t now = 0, before = (c->every - c->length) / 2;
    bool is_on = before == 0;

    w->count = 0;
    if (!fine(peet_cursor_open(t, thread, 0, &cursor, &err), &err))
        return;
    while (peet_cursor_next(cursor, &b, &err) == 1)
        for (size_t i = 0; i < b.count; i++) {
            const struct peet_record *r = &b.records[i];
            const struct peet_event *e = r->kind == PEET_EVENT ? &b.events[r->id] : NULL;
            uint64_t n = references_of(r, e);
            if (r->kind == PEET_BLOCK)
                is_on = now % c->every >= before && now % c->every < before + c->length;
            if (is_on || (e && !is_range(e)))
                put(w, e ? PEET_KINDS + e->kind : r->kind, r->addr, e ? e->arg[1] : r->size);
            else
                put_gap(w, r->kind == PEET_BLOCK ? r->size : 0, n);
            if (!is_on)
                mark_touched(touched, r, e);
            now += n;
        }
    peet_cursor_free(cursor);
}

static void read_row(struct source *s, uint32_t context, struct row *w)
{
    struct peet_batch b;
    struct peet_err err;
    int r;

    w->count = 0;
    while ((r = source_next(s, context, 0, &b, &err)) == 1)
        for (size_t i = 0; i < b.count; i++) {
            const struct peet_record *x = &b.records[i];
            const struct peet_event *e = x->kind == PEET_EVENT ? &b.events[x->id] : NULL;
            CHECK(x->kind != PEET_REPEAT && (!e || x->id < b.event_count));
            put(w, e ? PEET_KINDS + e->kind : x->kind, x->addr, e ? e->arg[1] : x->size);
        }
    CHECK_EQ(r, 0);
}

static bool same_rows(const struct row *a, const struct row *b)
{
    bool same = CHECK_EQ(a->count, b->count);

    for (size_t i = 0; same && i < a->count; i++)
        if (a->item[i].kind != b->item[i].kind || a->item[i].a != b->item[i].a || a->item[i].b != b->item[i].b) {
            printf("# item %zu: kinds %u %u, %" PRIx64 " %" PRIx64 ", %" PRIu64 " %" PRIu64 "\n", i, a->item[i].kind,
                   b->item[i].kind, a->item[i].a, b->item[i].a, a->item[i].b, b->item[i].b);
            same = CHECK(false);
        }
    return same;
}

/* ---- time ---- */

static struct row is, should;

static void check_counts(const struct source *s, uint32_t context, const struct row *w)
{
    struct sample_counts c = sample_counts(s, context);
    uint64_t instructions = 0, between = 0, gap_instructions = 0;

    for (size_t i = 0; i < w->count; i++) {
        instructions += w->item[i].kind == PEET_BLOCK ? w->item[i].b : 0;
        if (w->item[i].kind == PEET_KINDS + PEET_EV_gap) {
            gap_instructions += w->item[i].a;
            between += w->item[i].b;
        }
    }
    CHECK_EQ(c.instructions, instructions);
    CHECK_EQ(c.gap_instructions, gap_instructions);
    CHECK_EQ(c.between, between);
}

static void windows_show_what_is_in_them_and_gaps_stand_for_the_rest(void)
{
    static const uint64_t LENGTH[] = { 1, 7, 50, 100, 1000 }, EVERY[] = { 2, 100, 100, 100, 5000 };

    for (unsigned round = 0; round < 40; round++) {
        struct sample_config config = { LENGTH[round % 5], EVERY[round % 5], .line_bytes = LINE };
        struct peet_trace *t = make_program(1500);
        struct source *s = sample(t, &config);
        struct map touched = { .value_size = 1 };
        if (!s)
            return;
        for (uint32_t i = 0; i < THREADS; i++) {
            expect(t, i + 1, &config, &should, &touched);
            read_row(s, i, &is);
            same_rows(&is, &should);
            check_counts(s, i, &should);
        }
        for (uint64_t l = 0; l < 0x40000 / LINE; l++)
            if (!CHECK_EQ(sample_was_touched(s, 0, l), map_find(&touched, l, 0) != NULL))
                break;
        map_release(&touched);
        source_free(s);
        peet_trace_free(t);
    }
}

/* Where windows begin: in references of the thread. Returns how many there are. */
static unsigned windows_of(const struct row *w, uint64_t *from, uint64_t *length, unsigned most)
{
    uint64_t now = 0;
    bool is_on = false;
    unsigned n = 0;

    for (size_t i = 0; i < w->count && n < most; i++) {
        const struct item *x = &w->item[i];
        if (x->kind == PEET_BLOCK && !is_on) {
            is_on = true;
            from[n] = now;
            length[n++] = 0;
        }
        if (x->kind == PEET_KINDS + PEET_EV_gap) {
            is_on = false;
            now += x->b;
        } else if (x->kind != PEET_BLOCK && x->kind < PEET_EVENT) {
            now++;
            length[n - 1]++;
        }
    }
    return n;
}

static struct peet_trace *make_loads(unsigned count)
{
    program_begin(1);
    line("1 - l1 0x10000 %u", count);
    return program_end(1);
}

static void random_windows_begin_in_each_period_and_follow_the_seed(void)
{
    static uint64_t from[2][1000], length[2][1000];
    struct peet_trace *t = make_loads(100000);
    bool differs[2] = { false, false };

    for (unsigned seed = 0; seed < 3; seed++) {
        struct sample_config config = { 100, 1000, true, seed == 2 ? 1 : 0, LINE, 0, 0, 0 };
        struct source *s = sample(t, &config);
        unsigned which = seed > 0;
        uint64_t seen = 0;
        read_row(s, 0, &is);
        unsigned n = windows_of(&is, from[which], length[which], 1000);
        CHECK(n > 80 && n <= 100); /* some meet */
        for (unsigned i = 0; i < n; i++) {
            CHECK(i == 0 || from[which][i] / 1000 > from[which][i - 1] / 1000);
            CHECK(length[which][i] >= 100 || i == n - 1);
            seen += length[which][i];
            if (seed > 0)
                differs[seed - 1] |= from[0][i] != from[1][i];
        }
        CHECK_EQ(sample_counts(s, SAMPLE_ALL).windows, n);
        CHECK_EQ(sample_counts(s, SAMPLE_ALL).observed, seen);
        CHECK_EQ(sample_counts(s, SAMPLE_ALL).between, 100000 - seen);
        source_free(s);
    }
    CHECK(!differs[0] && differs[1]);
    peet_trace_free(t);
}

/* How often each tenth of a period is seen. */
/* From where they begin on, they are a 250th of that, and a tenth is in windows. */
static void windows_grow_with_the_thread(void)
{
    struct sample_config config = { 10, 100, .line_bytes = LINE, .most = 40 };
    struct peet_trace *t = make_loads(20000);
    struct source *s = t ? sample(t, &config) : NULL;
    static uint64_t from[2000], length[2000];

    if (!s)
        return;
    CHECK_EQ(sample_window_length(s, 0), 0);
    read_row(s, 0, &is);
    unsigned n = windows_of(&is, from, length, 2000);
    uint64_t begin = 0, seen = 0;
    for (unsigned i = 0; i < n; i++) {
        uint64_t wanted = begin / 250 < 10 ? 10 : begin / 250 < 40 ? begin / 250 : 40;
        CHECK_EQ(length[i], wanted);
        CHECK_EQ(from[i], begin + (10 * wanted - wanted) / 2);
        begin += 10 * wanted;
        seen += wanted;
    }
    CHECK(n > 60 && length[n - 1] == 40 && seen > 1950 && seen < 2050);
    CHECK_EQ(sample_window_length(s, 0), 40);
    source_free(s);
    peet_trace_free(t);
}

static void random_windows_see_all_of_a_period_alike(void)
{
    struct peet_trace *t = make_loads(4000000);
    struct sample_config config = { 10, 100, true, 5, LINE, 0, 0, 0 };
    struct source *s = sample(t, &config);
    struct peet_batch b;
    struct peet_err err;
    uint64_t now = 0, seen[10] = { 0 };

    while (source_next(s, 0, 0, &b, &err) == 1)
        for (size_t i = 0; i < b.count; i++) {
            if (b.records[i].kind == PEET_LOAD)
                seen[now++ % 100 / 10]++;
            else if (b.records[i].kind == PEET_EVENT)
                now += b.events[b.records[i].id].arg[1];
        }
    CHECK_EQ(now, 4000000);
    for (unsigned i = 0; i < 10; i++)
        if (!CHECK(seen[i] > 38000 && seen[i] < 42000))
            printf("# tenth %u: %" PRIu64 "\n", i, seen[i]);
    source_free(s);
    peet_trace_free(t);
}

static uint64_t passed;

static void count_passed(void *user, uint32_t context, const struct peet_record *block)
{
    CHECK(user == &passed && context < THREADS && block->kind == PEET_BLOCK);
    passed++;
}

static void blocks_between_windows_are_told(void)
{
    struct peet_trace *t;
    struct sample_config config = { 1, 1000, .line_bytes = LINE };

    program_begin(1);
    for (unsigned i = 0; i < 5000; i++)
        line("1 - b%u%s", 1 + i % 2, i % 2 ? " 0x10000" : "");
    line("1 - l1 0x10000 300"); /* a row that is repeated: as often as it is taken up */
    t = program_end(1);
    struct source *s = sample(t, &config);
    sample_set_gap_observer(s, count_passed, &passed);
    passed = 0;
    read_row(s, 0, &is);
    uint64_t seen = 0;
    for (size_t i = 0; i < is.count; i++)
        seen += is.item[i].kind == PEET_BLOCK;
    CHECK(seen >= 2 && seen <= 6);
    CHECK(passed > 5000 - seen && passed <= 5300 - seen);
    source_free(s);
    peet_trace_free(t);
}

/* ---- a source that leaves out ---- */

/* A source before a trace: it passes unwanted records as a gap, of which only references are known, up to the next event that passes. */
struct leaver {
    struct source source;
    struct source *inner;
    uint64_t left[THREADS], asked[THREADS];
    struct peet_record record[MOST];
    struct peet_event event[MOST];
};

/* Appends a gap, and the rest of a batch after it, to the records that are there. */
static void put_rest(struct leaver *v, size_t n, bool has_gap, uint64_t gap, size_t at, struct peet_batch *b)
{
    memcpy(v->event, b->events, b->event_count * sizeof *v->event);
    v->event[b->event_count] = (struct peet_event){ .kind = PEET_EV_gap, .args = 2, .arg = { 0, gap } };
    if (has_gap)
        v->record[n++] = (struct peet_record){ .kind = PEET_EVENT, .id = (uint32_t)b->event_count & 0xffffff };
    memcpy(v->record + n, b->records + at, (b->count - at) * sizeof *v->record);
    b->count += n - at;
    b->records = v->record;
    b->events = v->event;
    b->event_count++;
}

/* How many records of a batch, from `at` on, are left out. */
static size_t leave_out(const struct peet_batch *b, size_t at, uint64_t *left, uint64_t *gap)
{
    for (; at < b->count; at++) {
        const struct peet_record *r = &b->records[at];
        const struct peet_event *e = r->kind == PEET_EVENT ? &b->events[r->id] : NULL;
        uint64_t here = references_of(r, e);
        if ((r->kind == PEET_BLOCK && *left == 0) || (e && !is_range(e)))
            break;
        *gap += here;
        *left -= here < *left ? here : *left;
    }
    return at;
}

static int leaver_next(struct source *s, uint32_t context, uint64_t reply, struct peet_batch *ret, struct peet_err *err)
{
    struct leaver *v = (struct leaver *)(void *)s;
    uint64_t gap = 0, left = v->left[context];
    size_t n = 0, at;
    int r = source_next(v->inner, context, reply, ret, err);

    if (left == 0 || r != 1)
        return r;
    for (; n < ret->count && ret->records[n].kind != PEET_BLOCK; n++) /* the rest of a block that has begun */
        if (ret->records[n].kind == PEET_EVENT)
            return r;
    memcpy(v->record, ret->records, n * sizeof *v->record);
    at = leave_out(ret, n, &left, &gap);
    bool has_gap = at > n;
    while (at == ret->count && (r = source_next(v->inner, context, reply, ret, err)) == 1)
        has_gap |= (at = leave_out(ret, 0, &left, &gap)) > 0;
    if (r < 0)
        return r;
    if (r == 0)
        *ret = (struct peet_batch){ .count = at = 0 };
    put_rest(v, n, has_gap, gap, at, ret);
    return ret->count > 0;
}

static void leaver_skip(struct source *s, uint32_t context, uint64_t references, uint32_t line_bytes)
{
    struct leaver *v = (struct leaver *)(void *)s;

    CHECK_EQ(line_bytes, LINE);
    v->left[context] = references;
    v->asked[context] += references > 0;
}

static void leaver_free(struct source *s)
{
    source_free(((struct leaver *)(void *)s)->inner);
}

static void what_a_source_leaves_out_counts_as_if_it_had_been_seen(void)
{
    static const struct source_kind LEAVER = { .next = leaver_next, .free = leaver_free, .skip = leaver_skip };
    static struct leaver v;
    uint64_t asked = 0;

    for (unsigned round = 0; round < 20; round++) {
        struct sample_config config = { round % 2 ? 50 : 700, 4000 + 1000 * round, .line_bytes = LINE };
        struct peet_trace *t = make_program(1500);
        struct map touched = { .value_size = 1 };
        struct source *s;
        struct peet_err err;
        v = (struct leaver){ 0 };
        if (!fine(source_open_trace(t, false, &v.inner, &err), &err))
            return;
        v.source = *v.inner;
        v.source.kind = &LEAVER;
        if (!fine(source_take_sample(&v.source, &config, &s, &err), &err))
            return;
        for (uint32_t i = 0; i < THREADS; i++) {
            expect(t, i + 1, &config, &should, &touched);
            read_row(s, i, &is);
            for (size_t k = 0; k < should.count; k++) /* the number of instructions that were left out is unknown */
                if (should.item[k].kind == PEET_KINDS + PEET_EV_gap && k < is.count)
                    should.item[k].a = is.item[k].a = 0;
            same_rows(&is, &should);
            asked += v.asked[i];
            struct sample_counts c = sample_counts(s, i);
            uint64_t between = 0;
            for (size_t k = 0; k < should.count; k++)
                between += should.item[k].kind == PEET_KINDS + PEET_EV_gap ? should.item[k].b : 0;
            CHECK_EQ(c.between, between);
        }
        CHECK(sample_has_gaps(s) && sample_was_touched(s, 0, 1)); /* as far as is known */
        map_release(&touched);
        source_free(s);
        peet_trace_free(t);
    }
    CHECK(asked > 100);
}

/* A source that does one thing after the other, as if each were a loop: it is left out or shown as a whole. */
struct runner {
    struct source source;
    struct source *inner;
    uint64_t length, runs, left;
    struct peet_record *record; /* a block before each reference */
    struct peet_event event;
};

static int runner_next(struct source *s, uint32_t context, uint64_t reply, struct peet_batch *ret, struct peet_err *err)
{
    struct runner *v = (struct runner *)(void *)s;
    uint64_t gap = 0;

    (void)context, (void)reply, (void)err;
    *ret = (struct peet_batch){ .records = v->record, .count = 2 * v->length, .thread = 1 };
    for (; v->left > gap && v->runs > 0; v->runs--)
        gap += v->length;
    if (gap) {
        v->event = (struct peet_event){ .kind = PEET_EV_gap, .args = 2, .arg = { 0, gap } };
        ret->records = &v->record[2 * v->length];
        ret->count = ret->event_count = 1;
        ret->events = &v->event;
        return 1;
    }
    return v->runs > 0 && v->runs-- > 0;
}

static void runner_skip(struct source *s, uint32_t context, uint64_t references, uint32_t line_bytes)
{
    (void)context, (void)line_bytes;
    ((struct runner *)(void *)s)->left = references;
}

static void runner_free(struct source *s)
{
    source_free(((struct runner *)(void *)s)->inner);
}

static void a_source_that_comes_late_for_windows_is_seen_as_much_as_others(void)
{
    static const struct source_kind RUNNER = { .next = runner_next, .free = runner_free, .skip = runner_skip };
    static const uint64_t LENGTH[] = { 10, 1000, 7000, 40000, 90000, 400000 };

    for (unsigned i = 0; i < sizeof LENGTH / sizeof *LENGTH; i++) {
        struct runner v = { .length = LENGTH[i], .runs = 20000000 / LENGTH[i] };
        struct sample_config config = { 2000, 20000, .line_bytes = LINE };
        struct peet_trace *t = make_program(1);
        struct peet_batch b;
        struct source *s;
        struct peet_err err;
        v.record = calloc(2 * v.length + 1, sizeof *v.record);
        for (uint64_t k = 0; k < v.length; k++) {
            v.record[2 * k] = (struct peet_record){ .kind = PEET_BLOCK, .size = 1 };
            v.record[2 * k + 1] = (struct peet_record){ .kind = PEET_LOAD, .size = 4, .addr = 64 * k };
        }
        v.record[2 * v.length] = (struct peet_record){ .kind = PEET_EVENT };
        if (!fine(source_open_trace(t, false, &v.inner, &err), &err))
            return;
        v.source = *v.inner;
        v.source.kind = &RUNNER;
        if (!fine(source_take_sample(&v.source, &config, &s, &err), &err))
            return;
        while (source_next(s, 0, 0, &b, &err) == 1)
            ;
        struct sample_counts c = sample_counts(s, 0);
        CHECK_EQ(c.observed + c.between, 20000000 / LENGTH[i] * LENGTH[i]);
        if (!CHECK(c.observed > 1800000 && c.observed <= 2010000))
            printf("# %" PRIu64 " of runs of %" PRIu64 " references\n", c.observed, LENGTH[i]);
        CHECK(c.late <= LENGTH[i] && c.observed + c.missed >= 1998000 && c.observed + c.missed <= 2002000);
        source_free(s);
        peet_trace_free(t);
        free(v.record);
    }
}

/* ---- sets ---- */

/* Each byte of each reference in turn. With a source: only those that it should show. */
static void mix_bytes(uint64_t *hash, const struct source *s, uint64_t sets, uint64_t addr, uint64_t size)
{
    for (uint64_t i = 0; i < size; i++)
        if (!s || sample_has_set(s, (addr + i) / LINE % sets))
            mix(hash, addr + i);
}

static uint64_t hash_bytes(struct source *in, uint32_t context, const struct source *s, uint64_t sets,
                           uint64_t *ret_blocks)
{
    struct peet_batch b;
    struct peet_err err;
    uint64_t hash = 1;

    while (source_next(in, context, 0, &b, &err) == 1)
        for (size_t i = 0; i < b.count; i++) {
            const struct peet_record *r = &b.records[i];
            const struct peet_event *e = r->kind == PEET_EVENT ? &b.events[r->id] : NULL;
            *ret_blocks += r->kind == PEET_BLOCK;
            if (r->kind == PEET_LOAD || r->kind == PEET_STORE)
                mix_bytes(&hash, s, sets, r->addr, r->size);
            else if (e && (e->kind == PEET_EV_range_read || e->kind == PEET_EV_range_write))
                mix_bytes(&hash, s, sets, e->arg[0], e->arg[1]);
            else if (e && e->kind == PEET_EV_range_copy) {
                mix_bytes(&hash, s, sets, e->arg[1], e->arg[2]);
                mix_bytes(&hash, s, sets, e->arg[0], e->arg[2]);
            } else if (e)
                mix(&hash, e->kind);
        }
    return hash;
}

static void sets_that_are_chosen_are_seen_whole_and_no_others(void)
{
    static const uint64_t SETS[] = { 1, 16, 64, 1024 };
    static const uint32_t ONE_IN[] = { 1, 2, 16, 16 };

    for (unsigned round = 0; round < 20; round++) {
        uint64_t sets = SETS[round % 4], chosen = 0;
        struct sample_config config = { .line_bytes = LINE, .sets = sets, .one_in = ONE_IN[round % 4], .seed = round };
        struct peet_trace *t = make_program(800);
        struct source *s = sample(t, &config), *whole;
        struct peet_err err;
        if (!s || !fine(source_open_trace(t, false, &whole, &err), &err))
            return;
        for (uint64_t i = 0; i < sets; i++)
            chosen += sample_has_set(s, i);
        CHECK_EQ(chosen, sets / config.one_in);
        CHECK_EQ(sample_counts(s, SAMPLE_ALL).sampled_sets, chosen);
        for (uint32_t i = 0; i < THREADS; i++) {
            uint64_t blocks[2] = { 0, 0 };
            uint64_t expected = hash_bytes(whole, i, s, sets, &blocks[0]);
            CHECK_EQ(hash_bytes(s, i, NULL, sets, &blocks[1]), expected);
            CHECK_EQ(blocks[0], blocks[1]);
        }
        source_free(s);
        source_free(whole);
        peet_trace_free(t);
    }
}

/* Lines in a row: as many references in chosen sets as there are chosen sets. */
static void references_to_other_sets_are_counted(void)
{
    struct peet_trace *t = make_loads(64 * LINE / 8 * 5); /* 64 lines, five times 64 sets */
    struct sample_config config = { .line_bytes = LINE, .sets = 64, .one_in = 4 };
    struct source *s = sample(t, &config);
    uint64_t references = 0;

    read_row(s, 0, &is);
    for (size_t i = 0; i < is.count; i++)
        references += is.item[i].kind == PEET_LOAD;
    struct sample_counts c = sample_counts(s, SAMPLE_ALL);
    CHECK_EQ(references, 64 * LINE / 8 * 5 / 4);
    CHECK_EQ(c.observed, 64 * LINE / 8 * 5);
    CHECK_EQ(c.other_sets, c.observed - references);
    CHECK_EQ(c.between, 0);
    source_free(s);
    peet_trace_free(t);
}

static void samples_that_make_no_sense_are_refused(void)
{
    static const struct sample_config BAD[] = {
        { 0, 10, .line_bytes = 16 },
        { 11, 10, .line_bytes = 16 },
        { 10, 100, .line_bytes = 16, .most = 9 },
        { 10, 105, .line_bytes = 16, .most = 20 },
        { 1, 10, .line_bytes = 24 },
        { .line_bytes = 0 },
        { .line_bytes = 16, .sets = 3, .one_in = 2 },
        { .line_bytes = 16, .sets = 4, .one_in = 8 },
        { .line_bytes = 16, .sets = 4 },
    };
    struct peet_trace *t = make_loads(10);

    for (unsigned i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        struct source *inner, *s = NULL;
        struct peet_err err;
        if (fine(source_open_trace(t, false, &inner, &err), &err)) {
            CHECK_EQ(source_take_sample(inner, &BAD[i], &s, &err), PEET_ERR_USAGE);
            CHECK(!s && strstr(err.text, "expected"));
        }
    }
    peet_trace_free(t);
}

int main(void)
{
    if (!begin())
        return 1;
    RUN(windows_show_what_is_in_them_and_gaps_stand_for_the_rest);
    RUN(random_windows_begin_in_each_period_and_follow_the_seed);
    RUN(windows_grow_with_the_thread);
    RUN(random_windows_see_all_of_a_period_alike);
    RUN(blocks_between_windows_are_told);
    RUN(what_a_source_leaves_out_counts_as_if_it_had_been_seen);
    RUN(a_source_that_comes_late_for_windows_is_seen_as_much_as_others);
    RUN(sets_that_are_chosen_are_seen_whole_and_no_others);
    RUN(references_to_other_sets_are_counted);
    RUN(samples_that_make_no_sense_are_refused);
    return end();
}
