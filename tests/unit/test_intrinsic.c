/* SPDX-License-Identifier: MIT */
/* Runs that differ where we made them differ, and what was read unordered against slow and obvious code. */
#include <stdarg.h>

#include "study/compare/intrinsic.h"
#include "study/compare/unordered.h"
#include "tests/unit/random.h"
#include "tests/unit/text.h"

static uint64_t state = 5;

/* ---- programs ---- */

static char *program;
static size_t program_size;
static FILE *out;

/* b1 computes, b2 loads, b3 stores, b4 updates and b5 does so atomically; all of 8 bytes. */
static const char *const BLOCKS[] = {
    "block b1\n  0x401000 4 plain\n",
    "block b2 slots 1\n  0x401010 4 plain, load 8 [s0]\n",
    "block b3 slots 1\n  0x401020 4 plain, store 8 [s0]\n",
    "block b4 slots 1\n  0x401030 4 plain, update 8 [s0]\n",
    "block b5 slots 1\n  0x401040 4 plain atomic, update 8 [s0]\n",
    "block b6 slots 1\n  0x401050 4 plain, load 4 [s0]\n",
    "block b7 slots 1\n  0x401060 4 plain, store 4 [s0]\n",
};

/* Threads have these numbers, and the first one makes all others. `turned`: what is numbered is defined in another order. */
static void program_begin(unsigned threads, const unsigned *number, bool turned)
{
    out = open_memstream(&program, &program_size);
    fputs(
        "peet text 1\nprocess 1 parent 0 program \"a\" command \"a\"\n"
        "module process 1 path \"/bin/a\" build \"\" bias 0\n  segment 0x401000 0x1000 offset 0 r-x\n"
        "  symbol 0x401000 0x10 code \"think\"\n  symbol 0x401010 0x100 code \"work\"\n  symbol 0x500000 0x1000 data \"table\"\n",
        out);
    for (unsigned i = 0; i < threads; i++)
        fprintf(out, "thread %u process 1 parent %u ordinal %u name \"t\"\n", number[i], i ? number[0] : 0,
                i ? i - 1 : 0);
    for (unsigned i = 0; i < 7; i++)
        fputs(BLOCKS[turned ? 6 - i : i], out);
}

__attribute__((format(printf, 1, 2))) static void line(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vfprintf(out, format, ap);
    va_end(ap);
    fputc('\n', out);
}

static struct peet_trace *program_end(const char *name)
{
    struct peet_trace *t = NULL;
    struct peet_err err;

    fputs("end\n", out);
    fclose(out);
    if (fine(import_bytes(program, program_size, name, 256, &err), &err))
        fine(peet_trace_open(path_of(name), &t, &err), &err);
    free(program);
    return t;
}

static const struct cell *cell_of(const struct study_answer *a, const char *table, size_t row, const char *column)
{
    static const struct cell NOTHING = { .empty = true };

    for (const struct table *t = a->result.first; t; t = t->next)
        for (size_t i = 0; !strcmp(t->name, table) && i < t->columns && row < t->rows; i++)
            if (!strcmp(t->column[i].name, column))
                return &t->cell[row * t->columns + i];
    CHECK(false);
    return &NOTHING;
}

static const char *text_of(const struct study_answer *a, const char *table, size_t row, const char *column)
{
    const struct cell *c = cell_of(a, table, row, column);

    return c->empty ? "" : c->text;
}

static bool compare(struct peet_trace *a, struct peet_trace *b, struct study_answer *ret)
{
    struct peet_trace *both[] = { a, b };
    struct peet_err err;
    struct study_state *asked = study_state_new(&study_intrinsic);
    bool ok = a && b && fine(study_compare(&study_intrinsic, asked, both, 2, ret, NULL, &err), &err);

    study_state_free(asked);
    return ok;
}

/* ---- where streams part ---- */

/* A stream of that number of records, of which number `at` differs. */
enum change { CHANGE_NOTHING, CHANGE_ADDRESS, CHANGE_BLOCK, CHANGE_EVENT, CHANGE_KIND, CHANGE_END };

static void write_stream(unsigned thread, uint64_t records, uint64_t at, enum change change)
{
    for (uint64_t n = 0; n < records;) {
        bool here = change != CHANGE_NOTHING && at == n, next = change == CHANGE_ADDRESS && at == n + 1;
        unsigned kind = (unsigned)(n * 7 / 3 % 5);
        if (here && change == CHANGE_END)
            return;
        if (kind == 0) {
            if (here && change == CHANGE_KIND)
                line("%u - b1", thread);
            else
                line("%u - mutex_trylock 0x500000 %d", thread, here ? 16 : 0);
            n++;
        } else if (kind < 3) {
            line("%u - %s", thread, here ? "mutex_unlock 0x500000" : "b1");
            n++;
        } else {
            line("%u - %s 0x%x", thread, here && change == CHANGE_BLOCK ? "b4" : "b2",
                 (unsigned)(0x500000 + n % 99 * 8 + (next ? 8 : 0)));
            n += 2;
        }
    }
}

/* Which of the changes can be made at record n, and what is to be said of it; NULL: none. */
static const char *verdict_at(uint64_t at, uint64_t records, enum change change)
{
    uint64_t n = 0;

    while (n < at)
        n += n * 7 / 3 % 5 < 3 ? 1 : 2;
    unsigned kind = (unsigned)(n * 7 / 3 % 5);
    if (at >= records)
        return NULL;
    if (n > at) /* a reference */
        return change == CHANGE_ADDRESS ? "address" : NULL;
    switch (change) {
    case CHANGE_ADDRESS: return NULL;
    case CHANGE_BLOCK: return kind >= 3 ? "control" : NULL;
    case CHANGE_EVENT: return kind == 0 ? "event" : NULL;
    case CHANGE_KIND: return kind == 0 ? "control" : NULL;
    case CHANGE_END: return "control";
    default: return NULL;
    }
}

static struct peet_trace *two_threads(const char *name, uint64_t records, uint64_t at, enum change change, bool turned)
{
    static const unsigned NUMBERS[][2] = { { 1, 2 }, { 7, 4 } };
    const unsigned *number = NUMBERS[turned];

    program_begin(2, number, turned);
    line("%u - thread_create %u", number[0], number[1]);
    line("%u - mark \"%s\" 1", number[0], "one");
    write_stream(number[1], records, at, change);
    line("%u - thread_join %u", number[0], number[1]);
    for (int i = 0; i < 2; i++)
        line("%u - thread_end 0 0", number[i]);
    return program_end(name);
}

static void numbers_of_threads_and_blocks_do_not_matter(void)
{
    struct peet_trace *a = two_threads("a", 5000, 0, CHANGE_NOTHING, false);
    struct peet_trace *b = two_threads("b", 5000, 0, CHANGE_NOTHING, true);
    struct study_answer answer;

    if (compare(a, b, &answer)) {
        CHECK_EQ(answer.differs, false);
        CHECK_EQ(cell_of(&answer, "summary", 0, "same")->count, 2);
        CHECK_EQ(text_of(&answer, "threads", 1, "stream"), "same");
        CHECK(!strncmp(text_of(&answer, "summary", 0, "intrinsic"), "yes", 3));
        study_release(&answer);
    }
    peet_trace_free(a);
    peet_trace_free(b);
}

static void check_change(uint64_t records, uint64_t at, enum change change)
{
    const char *verdict = verdict_at(at, records, change);
    struct study_answer answer;

    if (!verdict)
        return;
    struct peet_trace *a = two_threads("a", records, 0, CHANGE_NOTHING, false);
    struct peet_trace *b = two_threads("b", records, at, change, true);
    if (compare(a, b, &answer)) {
        size_t row = cell_of(&answer, "threads", 0, "thread")->count == 2 ? 0 : 1;
        CHECK_EQ(answer.differs, true);
        CHECK_EQ(cell_of(&answer, "summary", 0, "same")->count, 1);
        CHECK_EQ(text_of(&answer, "threads", row, "stream"), verdict);
        CHECK_EQ(cell_of(&answer, "threads", row, "record")->count, at);
        CHECK_EQ(cell_of(&answer, "threads", row, "differs")->count, 1);
        CHECK_EQ(text_of(&answer, "threads", 1 - row, "stream"), "same");
        if (change == CHANGE_ADDRESS)
            CHECK_EQ(text_of(&answer, "threads", row, "place"), "work");
        study_release(&answer);
    }
    peet_trace_free(a);
    peet_trace_free(b);
}

static void streams_part_where_one_record_is_another_one(void)
{
    static const uint64_t BORDERS[] = { 0, 1, 2, 3, 4094, 4095, 4096, 4097, 4098, 8190, 8191, 8192, 8193 };

    for (enum change change = CHANGE_ADDRESS; change <= CHANGE_END; change++) {
        for (size_t i = 0; i < sizeof BORDERS / sizeof *BORDERS; i++)
            check_change(9000, BORDERS[i], change);
        for (int i = 0; i < 10; i++)
            check_change(9000, draw(&state, 9000), change);
    }
}

/* ---- what was read unordered ---- */

/* Adds main's records in `text`, and those of two threads that it creates one after the other; finds the unordered read of thread 3. */
static bool ask(struct unordered_read *ret, const char *before, const char *between, const char *two, const char *three)
{
    static const unsigned NUMBER[] = { 1, 2, 3 };
    struct unordered u = { 0 };
    struct peet_err err;

    program_begin(3, NUMBER, false);
    fprintf(out, "%s1 - thread_create 2\n%s1 - thread_create 3\n%s%s", before, between, two, three);
    for (int i = 2; i <= 3; i++)
        line("1 - thread_join %d", i);
    for (int i = 1; i <= 3; i++)
        line("%d - thread_end 0 0", i);
    struct peet_trace *t = program_end("a");
    if (!t)
        return false;
    bool ok = fine(unordered_init(&u, t, &err), &err) && fine(unordered_find(&u, 3, UINT64_MAX, ret, &err), &err);
    unordered_release(&u);
    peet_trace_free(t);
    return ok;
}

static void a_value_that_a_thread_was_given_is_ordered(void)
{
    struct unordered_read r;

    if (ask(&r, "1 - b3 0x500000\n", "1 - b3 0x500008\n", "2 - b2 0x500000\n", "3 - b2 0x500008\n3 - b2 0x500000\n"))
        CHECK_EQ(r.kind, UNORDERED_NONE);
}

static void two_threads_without_a_lock_race(void)
{
    struct unordered_read r;

    if (ask(&r, "", "", "2 - b3 0x500010\n", "3 - b1\n3 - b2 0x500010\n3 - b2 0x500018\n")) {
        CHECK_EQ(r.kind, UNORDERED_RACE);
        CHECK_EQ(r.record, 2);
        CHECK_EQ(r.addr, 0x500010);
        CHECK_EQ(r.code, 0x401010);
        CHECK_EQ(r.writer, 2);
    }
    if (ask(&r, "", "", "2 - range_write 0x500000 64\n", "3 - range_read 0x500038 16\n"))
        CHECK_EQ(r.kind, UNORDERED_RACE);
    if (ask(&r, "", "1 - b2 0x0\n", "2 - b2 0x500010\n", "3 - b2 0x500010\n3 - b3 0x500010\n"))
        CHECK_EQ(r.kind, UNORDERED_NONE); /* no other thread writes */
}

static void who_writes_next_to_it_does_not(void)
{
    struct unordered_read r;

    if (ask(&r, "", "", "2 - b7 0x500014\n", "3 - b6 0x500010\n"))
        CHECK_EQ(r.kind, UNORDERED_NONE);
    if (ask(&r, "", "", "2 - b7 0x500012\n", "3 - b6 0x500010\n"))
        CHECK_EQ(r.kind, UNORDERED_RACE);
}

static void locks_and_atomics_leave_a_choice(void)
{
    static const char LOCKED[] = "2 - mutex_lock 0x600000\n2 - b3 0x500010\n2 - mutex_unlock 0x600000\n";
    struct unordered_read r;

    if (ask(&r, "", "", LOCKED, "3 - mutex_lock 0x600000\n3 - b2 0x500010\n3 - mutex_unlock 0x600000\n"))
        CHECK_EQ(r.kind, UNORDERED_SYNCHRONIZED);
    if (ask(&r, "", "", LOCKED, "3 - mutex_lock 0x600008\n3 - b2 0x500010\n3 - mutex_unlock 0x600008\n"))
        CHECK_EQ(r.kind, UNORDERED_RACE);
    if (ask(&r, "", "", LOCKED, "3 - mutex_trylock 0x600000 16\n3 - b2 0x500010\n"))
        CHECK_EQ(r.kind, UNORDERED_RACE);
    if (ask(&r, "", "", "2 - b5 0x500010\n", "3 - b5 0x500010\n"))
        CHECK_EQ(r.kind, UNORDERED_SYNCHRONIZED);
    if (ask(&r, "", "", "2 - b4 0x500010\n", "3 - b5 0x500010\n"))
        CHECK_EQ(r.kind, UNORDERED_RACE);
}

static void a_barrier_orders(void)
{
    struct unordered_read r;

    if (ask(&r, "", "", "2 - b3 0x500010\n2 - barrier_wait 0x600000 2\n",
            "3 - barrier_wait 0x600000 2\n3 - b2 0x500010\n"))
        CHECK_EQ(r.kind, UNORDERED_NONE);
    if (ask(&r, "", "", "2 - barrier_wait 0x600000 2\n2 - b3 0x500010\n",
            "3 - b2 0x500010\n3 - barrier_wait 0x600000 2\n"))
        CHECK_EQ(r.kind, UNORDERED_NONE);
    if (ask(&r, "", "", "2 - barrier_wait 0x600000 2\n2 - b3 0x500010\n",
            "3 - barrier_wait 0x600000 2\n3 - b2 0x500010\n"))
        CHECK_EQ(r.kind, UNORDERED_RACE);
}

/* ---- the slow way: all pairs of accesses, and all ways through the pieces ---- */

enum { PIECES = 200, ACCESSES = 400 };

struct slow {
    bool precedes[PIECES][PIECES];
    struct {
        uint32_t thread, segment;
        uint64_t record, addr, held;
        bool reads, writes;
    } access[ACCESSES];
    size_t accesses;
};

static void slow_order(struct slow *s, const struct unordered *u)
{
    uint32_t n = u->p.segments;

    memset(s->precedes, 0, sizeof s->precedes);
    for (uint32_t i = 0; i < n; i++) {
        for (uint64_t k = u->p.first_arc[i]; k < u->p.first_arc[i + 1]; k++)
            if (arc_is_known(&u->p.arc[k]))
                s->precedes[i][u->p.arc[k].to] = true;
        for (uint32_t k = 0; k + 1 < n; k++) {
            bool goes_on = u->p.segment[k + 1].thread == u->p.segment[k].thread;
            bool meet = u->s.round_of[i] != SEGMENT_NONE && u->s.round_of[i] == u->s.round_of[k];
            if (goes_on && (k == i || meet))
                s->precedes[i][k + 1] = true;
        }
    }
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; s->precedes[i][k] && j < n; j++)
                s->precedes[i][j] = s->precedes[i][j] || s->precedes[k][j];
}

static void slow_read(struct slow *s, const struct unordered *u)
{
    s->accesses = 0;
    for (size_t i = 0; i < u->p.threads; i++) {
        const struct graph_thread *l = &u->p.thread[i];
        struct peet_cursor *c;
        struct peet_batch b;
        struct peet_err err;
        uint64_t record = 0, events = 0, held = 0;
        uint32_t segment = l->first;
        if (!fine(peet_cursor_open(u->p.trace, l->id, 0, &c, &err), &err))
            return;
        while (peet_cursor_next(c, &b, &err) == 1)
            for (size_t k = 0; k < b.count; k++, record++) {
                const struct peet_record *r = &b.records[k];
                if (r->kind == PEET_EVENT) {
                    const struct peet_event *e = &b.events[r->id];
                    if (e->kind == PEET_EV_mutex_lock)
                        held |= UINT64_C(1) << (e->arg[0] & 0xf);
                    if (e->kind == PEET_EV_mutex_unlock)
                        held &= ~(UINT64_C(1) << (e->arg[0] & 0xf));
                    events++;
                    segment += segment + 1 < l->first + l->segments && events == u->p.segment[segment].events;
                } else if (r->kind != PEET_BLOCK && CHECK(s->accesses < ACCESSES)) {
                    bool atomic = peet_trace_insn(u->p.trace, r->id)->flags & PEET_FL_ATOMIC;
                    size_t n = s->accesses++;
                    s->access[n].thread = l->id;
                    s->access[n].segment = segment;
                    s->access[n].record = record;
                    s->access[n].addr = r->addr;
                    s->access[n].held = held | (atomic ? UINT64_C(1) << 20 : 0);
                    s->access[n].reads = r->kind != PEET_STORE;
                    s->access[n].writes = r->kind != PEET_LOAD;
                }
            }
        peet_cursor_free(c);
    }
}

static void slow_find(const struct slow *s, uint32_t thread, uint64_t before, struct unordered_read *ret)
{
    *ret = (struct unordered_read){ 0 };
    for (size_t i = 0; i < s->accesses; i++) {
        if (s->access[i].thread != thread || !s->access[i].reads || s->access[i].record >= before)
            continue;
        for (size_t k = 0; k < s->accesses; k++) {
            uint32_t a = s->access[i].segment, b = s->access[k].segment;
            if (s->access[k].thread == thread || !s->access[k].writes || s->access[k].addr != s->access[i].addr
                || s->precedes[a][b] || s->precedes[b][a])
                continue;
            enum unordered_kind kind = s->access[i].held & s->access[k].held ? UNORDERED_SYNCHRONIZED : UNORDERED_RACE;
            if (kind > ret->kind || (kind == ret->kind && s->access[i].record >= ret->record))
                *ret = (struct unordered_read){ .kind = kind, .record = s->access[i].record };
        }
    }
}

/* Few granules and few pieces in a row, so that nothing is forgotten that the fast code forgets by design. */
static struct peet_trace *random_program(unsigned threads)
{
    unsigned number[8], left[8], granule = 0;

    for (unsigned i = 0; i < threads; i++)
        number[i] = i + 1;
    program_begin(threads, number, false);
    for (unsigned i = 2; i <= threads; i++) {
        line("1 - b%u 0x%x", 2 + (unsigned)draw(&state, 3), 0x500000 + (unsigned)draw(&state, 30) * 8);
        line("1 - thread_create %u", i);
    }
    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 1; i <= threads; i++)
            left[i - 1] = 3 + (unsigned)draw(&state, 3);
        for (unsigned i = 1; i <= threads; i++)
            for (; left[i - 1] > 0; left[i - 1]--) {
                unsigned lock = 0x600000 + (unsigned)draw(&state, 3);
                bool locked = draw(&state, 2);
                granule = (unsigned)draw(&state, 30);
                if (locked)
                    line("%u - mutex_lock 0x%x", i, lock);
                line("%u - b%u 0x%x", i, 2 + (unsigned)draw(&state, 4), 0x500000 + granule * 8);
                if (locked)
                    line("%u - mutex_unlock 0x%x", i, lock);
            }
        for (unsigned i = 1; draw(&state, 3) && i <= threads; i++)
            line("%u - barrier_wait 0x700000 %u", i, threads);
    }
    for (unsigned i = 2; i <= threads; i++) {
        line("1 - thread_join %u", i);
        line("1 - b2 0x%x", 0x500000 + (unsigned)draw(&state, 30) * 8);
    }
    for (unsigned i = 1; i <= threads; i++)
        line("%u - thread_end 0 0", i);
    return program_end("a");
}

static void what_is_found_is_what_all_pairs_of_accesses_say(void)
{
    struct slow *s = calloc(1, sizeof *s);
    unsigned kinds[3] = { 0 };

    for (unsigned round = 0; s && round < 150; round++) {
        struct unordered u = { 0 };
        struct unordered_read fast, slow;
        struct peet_err err;
        unsigned threads = 2 + (unsigned)draw(&state, 2);
        struct peet_trace *t = random_program(threads);
        if (!t || !fine(unordered_init(&u, t, &err), &err) || !CHECK(u.p.segments < PIECES))
            break;
        slow_order(s, &u);
        slow_read(s, &u);
        for (uint32_t thread = 1; thread <= threads; thread++) {
            uint64_t before = draw(&state, 2) ? UINT64_MAX : draw(&state, 40);
            fine(unordered_find(&u, thread, before, &fast, &err), &err);
            slow_find(s, thread, before, &slow);
            CHECK_EQ(fast.kind, slow.kind);
            CHECK_EQ(fast.record, slow.record);
            kinds[fast.kind]++;
        }
        unordered_release(&u);
        peet_trace_free(t);
    }
    for (int i = 0; i < 3; i++)
        CHECK(kinds[i] > 10);
    free(s);
}

int main(void)
{
    if (!begin())
        return 1;
    RUN(numbers_of_threads_and_blocks_do_not_matter);
    RUN(streams_part_where_one_record_is_another_one);
    RUN(a_value_that_a_thread_was_given_is_ordered);
    RUN(two_threads_without_a_lock_race);
    RUN(who_writes_next_to_it_does_not);
    RUN(locks_and_atomics_leave_a_choice);
    RUN(a_barrier_orders);
    RUN(what_is_found_is_what_all_pairs_of_accesses_say);
    return end();
}
