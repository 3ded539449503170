/* SPDX-License-Identifier: MIT */
/* The text form: what it says can be read back. */
#include <stdlib.h>

#include "tests/synthetic.h"
#include "tests/unit/text.h"

static bool write_synthetic(uint64_t seed, const struct synthetic_style *style, unsigned items, const char *name)
{
    struct synthetic *s = synthetic_new(seed, style);
    struct synthetic_thread *t = malloc(sizeof *t);
    struct synthetic_step x;
    struct peet_err err;
    struct peet_writer *w;
    bool ok = fine(peet_writer_open(path_of(name), NULL, &w, &err), &err) && fine(synthetic_define(s, w, &err), &err);

    for (uint32_t i = 0; ok && i < 3; i++) {
        struct peet_stream *stream;
        ok = fine(peet_stream_open(w, &(struct peet_thread){ .id = i, .name = "worker" }, &stream, &err), &err);
        synthetic_thread_init(t, s, i);
        for (unsigned n = 0; ok && n < items; n++) {
            synthetic_next(t, &x);
            ok = fine(peet_stream_put(stream, x.item, x.slot, &err), &err);
        }
        struct peet_time time = { .position = 10 * (i + 1), .ns = 1000, .cpu = i };
        ok = ok && fine(peet_stream_time(stream, &time, &err), &err) && fine(peet_stream_close(stream, &err), &err);
    }
    ok = fine(peet_writer_close(w, &err), &err) && ok;
    free(t);
    free(s);
    return ok;
}

/* ---- two traces, record by record ---- */

struct side {
    struct peet_trace *trace;
    struct peet_cursor *cursor;
    struct peet_batch batch;
    size_t at;
};

static const struct peet_record *next(struct side *s)
{
    struct peet_err err;

    if (s->at == s->batch.count) {
        int r = peet_cursor_next(s->cursor, &s->batch, &err);
        if (r <= 0) {
            fine(r, &err);
            return NULL;
        }
        s->at = 0;
    }
    return &s->batch.records[s->at++];
}

static bool same_event(const struct side *a, const struct peet_event *x, const struct side *b,
                       const struct peet_event *y)
{
    for (uint32_t i = 0; i < x->args; i++) {
        const char *s = peet_trace_string(a->trace, x->arg[i]), *t = peet_trace_string(b->trace, y->arg[i]);
        if (x->arg[i] != y->arg[i] && !(i == 0 && s && t && !strcmp(s, t)))
            return i == 0 && !s && t; /* a string that was missing has been given a text */
    }
    return x->kind == y->kind && x->site == y->site && x->args == y->args;
}

static bool same_record(const struct side *a, const struct peet_record *x, const struct side *b,
                        const struct peet_record *y)
{
    if (x->kind != y->kind || x->size != y->size)
        return false;
    if (x->kind == PEET_EVENT)
        return same_event(a, &a->batch.events[x->id], b, &b->batch.events[y->id]);
    if (x->addr != y->addr)
        return false;
    if (x->kind == PEET_BLOCK)
        return true;
    const struct peet_insn *i = peet_trace_insn(a->trace, x->id), *j = peet_trace_insn(b->trace, y->id);
    uint32_t v = a->batch.value_index[a->at - 1], w = b->batch.value_index[b->at - 1];
    if ((v == PEET_NO_VALUE) != (w == PEET_NO_VALUE) || a->batch.physical[a->at - 1] != b->batch.physical[b->at - 1])
        return false;
    if (v != PEET_NO_VALUE && memcmp(a->batch.values + v, b->batch.values + w, (x->size + 7u) / 8 * 8))
        return false;
    return i->addr == j->addr && i->class == j->class && i->flags == j->flags && i->target == j->target
           && i->length == j->length;
}

static void same_records(const char *a_name, const char *b_name, uint32_t threads)
{
    unsigned want = PEET_WANT_VALUES | PEET_WANT_PHYSICAL;
    struct side a = { 0 }, b = { 0 };
    struct peet_err err;

    if (!fine(peet_trace_open(path_of(a_name), &a.trace, &err), &err)
        || !fine(peet_trace_open(path_of(b_name), &b.trace, &err), &err))
        return;
    for (uint32_t i = 0; i < threads; i++) {
        const struct peet_record *x, *y;
        uint64_t n = 0;
        if (!fine(peet_cursor_open(a.trace, i, want, &a.cursor, &err), &err)
            || !fine(peet_cursor_open(b.trace, i, want, &b.cursor, &err), &err))
            return;
        a.at = a.batch.count = b.at = b.batch.count = 0;
        do {
            x = next(&a);
            y = next(&b);
            /* A page that is said again for a new chunk is no difference. */
            while (y && (!x || x->kind != PEET_EVENT) && y->kind == PEET_EVENT
                   && b.batch.events[y->id].kind == PEET_EV_page)
                y = next(&b);
            n++;
        } while (x && y && same_record(&a, x, &b, y));
        if (!CHECK(!x && !y))
            printf("# thread %u: record %llu differs\n", i, (unsigned long long)n);
        peet_cursor_free(a.cursor);
        peet_cursor_free(b.cursor);
    }
    peet_trace_free(a.trace);
    peet_trace_free(b.trace);
}

/* ---- round trips ---- */

static const struct synthetic_style RICH = { .regular = 8, .wander = 60, .loops = 40, .events = 300 };

static void expanded_text_reads_back_as_the_same_records(void)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        write_synthetic(seed, seed % 2 ? &RICH : &SYN_RANDOM, 3000, "a");
        char *text = dump("a", &EXPANDED, NULL);
        if (text && import(text, "b"))
            same_records("a", "b", 3);
        free(text);
    }
}

static void expanded_text_that_is_read_back_is_the_same_text(void)
{
    for (uint64_t seed = 5; seed <= 8; seed++) {
        write_synthetic(seed, seed % 2 ? &RICH : &SYN_TYPICAL, 3000, "a");
        char *text = dump("a", &EXPANDED, NULL), *again = text && import(text, "b") ? dump("b", &EXPANDED, NULL) : NULL;
        same_text(text, again);
        free(text);
        free(again);
    }
}

static void compact_text_says_the_same_as_the_trace(void)
{
    for (uint64_t seed = 9; seed <= 12; seed++) {
        write_synthetic(seed, &RICH, 3000, "a");
        char *text = dump("a", &COMPACT, NULL), *again = text && import(text, "b") ? dump("b", &COMPACT, NULL) : NULL;
        same_text(text, again);
        same_records("a", "b", 3);
        free(text);
        free(again);
    }
}

static void everything_that_a_schema_can_hold_can_be_said(void)
{
    if (!import(EVERYTHING, "a"))
        return;
    char *text = dump("a", &COMPACT, NULL), *expanded = dump("a", &EXPANDED, NULL);
    same_text(EVERYTHING, text);
    char *again = expanded && import(expanded, "b") ? dump("b", &EXPANDED, NULL) : NULL;
    same_text(expanded, again);
    free(text);
    free(expanded);
    free(again);
}

static void every_class_and_every_event_can_be_said(void)
{
    char text[20000];
    size_t n = (size_t)snprintf(text, sizeof text,
                                "peet text 1\nthread 0 process 0 parent 0 ordinal 0 name \"\"\nblock b1 slots 0\n");
    unsigned addr = 0x1000;

#define X(name) n += (size_t)snprintf(text + n, sizeof text - n, "  0x%x 1 " #name "\n", addr++);
    PEET_CLASSES(X)
#undef X
    n += (size_t)snprintf(text + n, sizeof text - n, "0 0 b1\n");
    for (uint32_t kind = 0; kind < PEET_EV_set_register; kind++) {
        bool string = kind == PEET_EV_exec || kind == PEET_EV_region_begin || kind == PEET_EV_region_end
                      || kind == PEET_EV_mark || kind == PEET_EV_name_data;
        n +=
            (size_t)snprintf(text + n, sizeof text - n, "0 - %s%s", peet_event_name(kind), string ? " \"a name\"" : "");
        for (int i = string; i < peet_event_arity(kind); i++)
            n += (size_t)snprintf(text + n, sizeof text - n, " %d", 100 + i);
        n += (size_t)snprintf(text + n, sizeof text - n, kind % 2 ? " @0x40%04x\n" : "\n", kind);
    }
    snprintf(text + n, sizeof text - n, "end\n");
    if (!import(text, "a"))
        return;
    char *once = dump("a", &EXPANDED, NULL), *again = once && import(once, "b") ? dump("b", &EXPANDED, NULL) : NULL;
    same_text(once, again);
    same_records("a", "b", 1);
    for (uint32_t kind = 0; once && kind < PEET_EV_set_register; kind++) {
        char name[50];
        snprintf(name, sizeof name, " %s ", peet_event_name(kind));
        if (!CHECK(strstr(once, name)))
            printf("# %s is missing\n", name);
    }
    free(once);
    free(again);
}

static void blocks_with_too_many_addresses_become_several(void)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    fputs("peet text 1\nthread 0 process 0 parent 0 ordinal 0 name \"\"\nblock b1 slots 1\n", f);
    for (int i = 0; i < 100; i++)
        fprintf(f, "  0x%x 4 plain, load 8 [r0+%d] if s0.%d, store 4*s0 [r1-%d]\n", 0x1000 + 4 * i, 8 * i, i % 64, i);
    fputs("  0x1190 2 return\n0 0 set_register 0 0x7000\n0 0 b1 3\n0 101 thread_end 0 0\nend\n", f);
    fclose(f);
    import(text, "a");
    char *once = dump("a", &EXPANDED, NULL), *again = once && import(once, "b") ? dump("b", &EXPANDED, NULL) : NULL;
    same_text(once, again);
    CHECK(once && strstr(once, "\nblock b5 ") && !strstr(once, "\nblock b6 "));
    CHECK(once && strstr(once, "\n0 84 b5 ") && strstr(once, "\n0 101 thread_end"));
    free(text);
    free(once);
    free(again);
}

static void one_instruction_with_too_many_addresses_needs_the_compact_form(void)
{
    char *text = NULL;
    size_t size;
    uint64_t damaged;
    struct peet_err err;
    struct peet_trace *t;
    FILE *f = open_memstream(&text, &size);

    fputs("peet text 1\nthread 0 process 0 parent 0 ordinal 0 name \"\"\nblock b1\n  0x1000 4 vector", f);
    for (int i = 0; i < 65; i++)
        fprintf(f, ", load 8 [r%d+%d]", i % 2, 8 * i); /* each from another register than the one before */
    fputs("\n0 0 b1\nend\n", f);
    fclose(f);
    import(text, "a");
    if (fine(peet_trace_open(path_of("a"), &t, &err), &err)) {
        FILE *null = fopen("/dev/null", "w");
        CHECK_EQ(text_write(t, &EXPANDED, null, &damaged, &err), PEET_ERR_LIMIT);
        CHECK(strstr(err.text, "0x1000") && strstr(err.text, "compact"));
        fine(text_write(t, &COMPACT, null, &damaged, &err), &err);
        fclose(null);
        peet_trace_free(t);
    }
    free(text);
}

static void physical_addresses_survive_other_chunks(void)
{
    char *text = NULL;
    size_t size;
    struct peet_err err;
    FILE *f = open_memstream(&text, &size);

    fputs("peet text 1\nthread 0 process 0 parent 0 ordinal 0 name \"\"\n"
          "block b1 slots 1\n  0x1000 4 plain, load 8 [s0]\n",
          f);
    for (unsigned i = 0; i < 20; i++)
        fprintf(f, "0 - page 0x%x 0x%x\n", 100 + i, 5000 + 3 * i);
    for (unsigned i = 0; i < 20000; i++)
        fprintf(f, "0 - b1 0x%x\n", (100 + i % 20) * 4096 + i % 4000);
    fputs("0 - thread_end 0 0\nend\n", f);
    fclose(f);
    /* One chunk holds the first trace, many the second. */
    if (fine(import_bytes(text, size, "a", 1000000, &err), &err)
        && fine(import_bytes(text, size, "b", 1000, &err), &err))
        same_records("a", "b", 1);
    char *one = dump("a", &EXPANDED, NULL), *many = dump("b", &EXPANDED, NULL);
    same_text(one, many);
    free(text);
    free(one);
    free(many);
}

/* ---- parts of a trace ---- */

static void parts_can_be_read_back(void)
{
    static const struct text_options PARTS[] = {
        { .count = UINT64_MAX, .calls = true },
        { .count = UINT64_MAX, .events = true },
        { .count = UINT64_MAX, .calls = true, .compact = true },
        { .count = UINT64_MAX, .events = true, .compact = true },
        { .from = 1000, .count = 500 },
        { .from = 1001, .count = 5000, .compact = true },
        { .from = 3, .count = 1 },
        { .from = UINT64_MAX, .count = UINT64_MAX },
        { .count = 0 },
    };

    write_synthetic(20, &RICH, 3000, "a");
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++) {
        char *text = dump("a", &PARTS[i], NULL);
        CHECK(text && import(text, "b"));
        free(text);
    }
}

/* Each line of thread 0 has its thread and position in the whole text, too. */
static void part_is_cut_out_of(const char *whole, const char *part)
{
    for (const char *line = strstr(part, "\n0 "); line; line = strstr(line + 1, "\n0 ")) {
        size_t n = strcspn(line + 1, " ") + 1;
        n += strcspn(line + 1 + n, " ") + 2; /* the position; names of blocks differ */
        char key[60];
        snprintf(key, sizeof key, "%.*s", (int)n, line);
        if (!CHECK(strstr(whole, key)))
            printf("# not in the whole text: %s\n", key + 1);
    }
}

static void a_part_has_the_positions_and_addresses_of_the_whole(void)
{
    write_synthetic(21, &RICH, 2000, "a");
    char *whole = dump("a", &EXPANDED, NULL),
         *part = dump("a", &(struct text_options){ .from = 2000, .count = 100 }, NULL);
    if (CHECK(whole && part)) {
        part_is_cut_out_of(whole, part);
        CHECK(strstr(part, "\n0 20"));
    }
    free(whole);
    free(part);
}

static void compact_parts_have_the_registers_that_they_need(void)
{
    static const char TEXT[] = "peet text 1\n"
                               "thread 1 process 0 parent 0 ordinal 0 name \"\"\n"
                               "block b1 slots 0\n  0x1000 4 plain, store 8 [r0-8]\n  r0 = r0-8\n"
                               "block b2 slots 0\n  0x1004 4 call -> 0x1000, store 8 [r0-8]\n  r0 = r0-8\n"
                               "1 0 set_register 0 0x8000\n"
                               "1 0 b1\n1 1 b2\n1 2 b1\n1 3 b1\n1 4 b2\n1 5 thread_end 0 0\nend\n";
    struct text_options calls = { .count = UINT64_MAX, .calls = true, .compact = true };

    import(TEXT, "a");
    char *text = dump("a", &calls, NULL);
    char *expanded = text && import(text, "b") ? dump("b", &EXPANDED, NULL) : NULL;
    CHECK(text && strstr(text, "1 1 set_register 0 0x7ff8\n1 1 b1\n1 4 set_register 0 0x7fe0\n1 4 b1\n"));
    CHECK(expanded && strstr(expanded, " b1 0x7ff0\n") && strstr(expanded, " b1 0x7fd8\n"));
    free(text);
    free(expanded);
}

static void what_a_part_leaves_out_becomes_a_gap(void)
{
    static const char TEXT[] = "peet text 1\nthread 1 process 0 parent 0 ordinal 0 name \"\"\n"
                               "block b1\n  0x1000 4 plain\n  0x1004 4 plain\n"
                               "1 10 b1\n1 12 b1\n1 20 b1\nend\n";

    import(TEXT, "a");
    char *text = dump("a", &EXPANDED, NULL);
    CHECK(text && strstr(text, "1 0 gap 10 0\n") && strstr(text, "1 0 b1\n1 2 b1\n1 4 gap 6 0\n1 4 b1\n"));
    free(text);
}

static void threads_without_an_end_are_cut_off(void)
{
    struct peet_totals totals;
    struct peet_trace *t;
    struct peet_err err;

    import("peet text 1\nthread 1 process 0 parent 0 ordinal 0 name \"\"\n"
           "thread 2 process 0 parent 0 ordinal 0 name \"\"\n"
           "1 0 thread_end 0 0\n2 0 mutex_lock 1\nend\n",
           "a");
    if (!fine(peet_trace_open(path_of("a"), &t, &err), &err))
        return;
    CHECK(peet_trace_totals(t, 1, &totals) == 0 && totals.whole);
    CHECK(peet_trace_totals(t, 2, &totals) == 0 && !totals.whole);
    peet_trace_free(t);
}

/* ---- damage ---- */

static void damaged_parts_are_left_out_and_become_gaps(void)
{
    uint64_t damaged = 0;

    write_synthetic(30, &RICH, 3000, "a");
    FILE *f = fopen(path_of("a"), "r+");
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    fseek(f, size / 2, SEEK_SET);
    fputs("damage", f);
    fclose(f);
    char *text = dump("a", &EXPANDED, &damaged);
    CHECK_EQ(damaged, 1);
    CHECK(text && strstr(text, "\n# damaged: "));
    CHECK(text && import(text, "b"));
    free(text);
    text = dump("a", &COMPACT, &damaged);
    CHECK_EQ(damaged, 1);
    CHECK(text && import(text, "b"));
    free(text);
}

int main(void)
{
    if (!begin())
        return 1;
    RUN(expanded_text_reads_back_as_the_same_records);
    RUN(expanded_text_that_is_read_back_is_the_same_text);
    RUN(compact_text_says_the_same_as_the_trace);
    RUN(everything_that_a_schema_can_hold_can_be_said);
    RUN(every_class_and_every_event_can_be_said);
    RUN(blocks_with_too_many_addresses_become_several);
    RUN(one_instruction_with_too_many_addresses_needs_the_compact_form);
    RUN(physical_addresses_survive_other_chunks);
    RUN(parts_can_be_read_back);
    RUN(a_part_has_the_positions_and_addresses_of_the_whole);
    RUN(compact_parts_have_the_registers_that_they_need);
    RUN(what_a_part_leaves_out_becomes_a_gap);
    RUN(threads_without_an_end_are_cut_off);
    RUN(damaged_parts_are_left_out_and_become_gaps);
    return end();
}
