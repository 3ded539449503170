/* SPDX-License-Identifier: MIT */
/* Conditions order threads by what was decided under their mutexes, whether or not a thread had to wait when the run
 * was recorded: in programs whose span is known, and in random ones, each of which is run by its meaning in a random
 * order. */
#include "sim/config/config.h"
#include "sim/engine/sim.h"
#include "tests/unit/random.h"
#include "tests/unit/study_program.h"

static uint64_t state = 11;

enum { MUTEX = 0x600000, CONDITION = 0x610000, DATA = 0x500000, EACH = 64, BARRIER = 0x620000 };
enum { MOST_COUNTERS = 4, MOST_THREADS = 5 };

static unsigned turns[MOST_COUNTERS]; /* at each mutex */
static bool tells_turns;

static void begin_run(unsigned threads)
{
    memset(turns, 0, sizeof turns);
    tells_turns = true;
    program_begin(threads);
    create_all(threads);
}

static void tell_turn(unsigned thread, unsigned x)
{
    turns[x]++;
    if (tells_turns)
        does(thread, "lock_turn 0x%x %u", MUTEX + EACH * x, turns[x]);
}

static void take(unsigned thread, unsigned x)
{
    does(thread, "mutex_lock 0x%x @0x%x", MUTEX + EACH * x, 0x401000 + 16 * x);
    tell_turn(thread, x);
}

static void give(unsigned thread, unsigned x)
{
    does(thread, "mutex_unlock 0x%x", MUTEX + EACH * x);
}

/* The wait is over, and the thread looks again. */
static void wake(unsigned thread, unsigned x)
{
    does(thread, "cond_wait 0x%x 0x%x", CONDITION + EACH * x, MUTEX + EACH * x);
    tell_turn(thread, x);
    does(thread, "b2 0x%x", DATA + 8 * x);
}

static void look(unsigned thread, unsigned x)
{
    take(thread, x);
    does(thread, "b2 0x%x", DATA + 8 * x);
}

static void produce(unsigned thread, unsigned x, bool broadcast)
{
    take(thread, x);
    does(thread, "b4 0x%x", DATA + 8 * x);
    does(thread, "%s 0x%x", broadcast ? "cond_broadcast" : "cond_signal", CONDITION + EACH * x);
    give(thread, x);
}

/* Cycles of the trace on a machine on which only instructions take time, with a processor for each thread. */
static uint64_t replay(void)
{
    struct machine_config config;
    struct sim_result result = { 0 };
    struct source *source;
    struct peet_trace *t;
    struct peet_err err;
    struct sim *sim;
    uint64_t cycles = 0;

    if (!fine(config_load(&config, "ideal", NULL, 0, &err), &err)
        || !fine(peet_trace_open(path_of("a"), &t, &err), &err))
        return 0;
    if (fine(source_open_trace(t, true, &source, &err), &err) && fine(source_keep_conditions(source, &err), &err)
        && fine(sim_new(&config, source, &sim, &err), &err)) {
        fine(sim_run(sim, NULL, &err), &err);
        sim_result(sim, &result);
        cycles = result.cycles;
        CHECK_EQ(result.forced_wakeups, 0);
        sim_result_release(&result);
        sim_free(sim);
        source_free(source);
    }
    peet_trace_free(t);
    return cycles;
}

/* ---- known spans ---- */

enum { STAGES = 4, ITEMS = 20, W = 1000 };

/* Stage s is thread s + 2, and waits for counter s - 1. By stages: each has done all its items before the next one
 * begins, so that no wait is needed. Otherwise each reaches its next item before the stage before it has done it. */
static void make_pipeline(bool by_stages)
{
    begin_run(STAGES + 1);
    for (unsigned step = 0; step < STAGES * ITEMS; step++) {
        unsigned stage = by_stages ? step / ITEMS : step % STAGES;
        if (stage && by_stages)
            look(stage + 2, stage - 1);
        else if (stage)
            wake(stage + 2, stage - 1);
        if (stage)
            give(stage + 2, stage - 1);
        work(stage + 2, W);
        if (stage + 1 == STAGES)
            continue;
        if (!by_stages)
            look(stage + 3, stage);
        produce(stage + 2, stage, false);
    }
    join_all(STAGES + 1);
    program_end(STAGES + 1);
}

static bool is_about(uint64_t value, uint64_t expected)
{
    return value >= expected && value <= expected + expected / 50;
}

static void a_pipeline_whose_waits_were_not_needed_has_the_span_of_its_diagonal(void)
{
    uint64_t diagonal = (STAGES + ITEMS - 1) * W, all = STAGES * ITEMS * W;

    make_pipeline(true);
    if (!ask("parallelism"))
        return;
    CHECK(is_about(number("summary", 0, "span"), diagonal));
    CHECK(is_about(number("summary", 0, "span_least"), ITEMS * W)); /* no wait says that there is more */
    CHECK(is_about(number("summary", 0, "span_most"), all));        /* as recorded */
    CHECK(has_note("summary", "60 times a thread did not wait at a condition"));
    CHECK(is_about(replay(), diagonal));
    study_release(&answer);
}

static void a_pipeline_whose_waits_were_needed_has_the_span_of_its_diagonal(void)
{
    uint64_t diagonal = (STAGES + ITEMS - 1) * W;

    make_pipeline(false);
    if (!ask("parallelism"))
        return;
    CHECK(is_about(number("summary", 0, "span"), diagonal));
    CHECK(is_about(number("summary", 0, "span_least"), diagonal));
    CHECK(is_about(number("summary", 0, "span_most"), diagonal));
    CHECK(is_about(replay(), diagonal));
    study_release(&answer);
}

static void order_that_is_not_recorded_is_called_unknown_and_bounded_by_all_work(void)
{
    begin_run(3);
    tells_turns = false;
    work(2, W);
    produce(2, 0, false);
    look(3, 0);
    give(3, 0);
    work(3, W);
    if (!program_end(3) || !ask("parallelism"))
        return;
    CHECK(has_note("summary", "order unknown"));
    CHECK_EQ(number("summary", 0, "span_most"), number("summary", 0, "work"));
    study_release(&answer);
}

/* Thread t does t units in the first round, and the others the rest in the second; the last one to come opens the
 * barrier. */
static void a_barrier_made_of_a_condition_orders_all_that_come_to_it(void)
{
    enum { THREADS = 4 };

    begin_run(THREADS + 1);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned t = 0; t < THREADS; t++) {
            work(t + 2, W * (round ? THREADS - t : t + 1));
            does(t + 2, "b3 0x%x", 0x700000 + 0x1000 * round + 8 * t); /* what it hands to the others */
            take(t + 2, 0);
            does(t + 2, "b4 0x%x", DATA);
            if (t + 1 == THREADS) {
                does(t + 2, "b3 0x%x", DATA + 8);
                does(t + 2, "cond_broadcast 0x%x", CONDITION);
                give(t + 2, 0);
            }
        }
        for (unsigned t = 0; t + 1 < THREADS; t++) {
            does(t + 2, "cond_wait 0x%x 0x%x", CONDITION, MUTEX);
            tell_turn(t + 2, 0);
            does(t + 2, "b2 0x%x", DATA + 8);
            give(t + 2, 0);
        }
        for (unsigned t = 0; t < THREADS; t++)
            does(t + 2, "b2 0x%x", 0x700000 + 0x1000 * round + 8 * ((t + 1) % THREADS));
    }
    join_all(THREADS + 1);
    if (!program_end(THREADS + 1) || !ask("parallelism"))
        return;
    CHECK(is_about(number("summary", 0, "span"), 2 * THREADS * W));
    CHECK(is_about(number("summary", 0, "span_least"), 2 * THREADS * W));
    CHECK(is_about(replay(), 2 * THREADS * W));
    study_release(&answer);
    uint64_t others = 0;
    if (!ask("sharing"))
        return;
    for (size_t i = 0; i < table_of("data")->rows; i++)
        if (strcmp(cell_of("data", i, "data")->text, "table") != 0) /* that is the barrier's own */
            others += number("data", i, "unordered");
    CHECK_EQ(number("summary", 0, "ordered"), 2 * THREADS * 8);
    CHECK_EQ(others, 0);
    study_release(&answer);
}

/* ---- random programs ---- */

enum op_kind { OP_WORK, OP_PRODUCE, OP_AWAIT, OP_BARRIER };

struct op {
    enum op_kind kind;
    unsigned counter, value; /* OP_WORK: value is instructions */
    unsigned looks;          /* OP_AWAIT: how often it looked when it was recorded */
    uint64_t end;            /* on an ideal machine */
};

enum { MOST_OPS = 200 };

/* Counter x is counted up by thread x % threads alone. */
struct random_program {
    unsigned threads, counters, ops[MOST_THREADS], produced[MOST_COUNTERS];
    struct op op[MOST_THREADS][MOST_OPS];
    bool broadcasts[MOST_COUNTERS];
    bool counts; /* the k-th await of a thread at a counter waits for k */
    unsigned awaited[MOST_THREADS][MOST_COUNTERS];
};

static void add_op(struct random_program *p, unsigned thread, enum op_kind kind, unsigned counter, unsigned value)
{
    p->op[thread][p->ops[thread]++] = (struct op){ .kind = kind, .counter = counter, .value = value };
}

static void add_await(struct random_program *p, unsigned thread, unsigned x)
{
    unsigned next = p->awaited[thread][x] + 1;

    if (thread == x % p->threads || p->produced[x] < next)
        return;
    unsigned value = p->counts ? next : next + (unsigned)draw(&state, p->produced[x] - next + 1);
    p->awaited[thread][x] = value;
    add_op(p, thread, OP_AWAIT, x, value);
}

/* In the order in which operations are made here, none has to wait. */
static void make_program(struct random_program *p, bool counts)
{
    memset(p, 0, sizeof *p);
    p->threads = 2 + (unsigned)draw(&state, MOST_THREADS - 1);
    p->counters = 1 + (unsigned)draw(&state, MOST_COUNTERS);
    p->counts = counts;
    for (unsigned x = 0; x < p->counters; x++)
        p->broadcasts[x] = p->threads > 2 || draw(&state, 2);
    for (unsigned n = 20 + (unsigned)draw(&state, 200); n > 0; n--) {
        unsigned thread = (unsigned)draw(&state, p->threads), x = (unsigned)draw(&state, p->counters);
        if (draw(&state, 40) == 0) {
            for (unsigned t = 0; t < p->threads; t++)
                add_op(p, t, OP_BARRIER, 0, 0);
        } else if (draw(&state, 3) == 0) {
            add_op(p, thread, OP_WORK, 0, 1 + (unsigned)draw(&state, 100));
        } else if (draw(&state, 2)) {
            p->produced[x]++;
            add_op(p, x % p->threads, OP_PRODUCE, x, p->produced[x]);
        } else {
            add_await(p, thread, x);
        }
        for (unsigned t = 0; t < p->threads; t++)
            if (p->ops[t] > MOST_OPS - 20)
                n = 1;
    }
}

/* A run of it, while it is recorded. */
struct random_recording {
    unsigned at[MOST_THREADS], counted[MOST_COUNTERS];
    bool waits[MOST_THREADS], is_at_barrier[MOST_THREADS];
    unsigned looked_at[MOST_THREADS]; /* of one that waits: what it saw */
};

static bool all_are_at_barrier(const struct random_program *p, const struct random_recording *r)
{
    for (unsigned t = 0; t < p->threads; t++)
        if (!r->is_at_barrier[t])
            return false;
    return true;
}

/* A thread that does not wait takes its next operation; one that waits looks again if there is something new. */
static void step_thread(struct random_program *p, struct random_recording *r, unsigned t)
{
    struct op *op = &p->op[t][r->at[t]];
    unsigned name = t + 2, x = op->counter;

    if (r->at[t] == p->ops[t] || r->is_at_barrier[t] || (r->waits[t] && r->looked_at[t] == r->counted[x]))
        return;
    if (op->kind == OP_AWAIT) {
        op->looks++;
        r->waits[t] ? wake(name, x) : look(name, x);
        r->looked_at[t] = r->counted[x];
        r->waits[t] = r->counted[x] < op->value;
        r->at[t] += !r->waits[t];
        if (!r->waits[t])
            give(name, x);
        return;
    }
    if (op->kind == OP_WORK)
        work(name, op->value);
    else if (op->kind == OP_PRODUCE)
        produce(name, x, p->broadcasts[x]);
    else
        does(name, "barrier_wait 0x%x %u", BARRIER, p->threads);
    r->counted[x] += op->kind == OP_PRODUCE;
    r->is_at_barrier[t] = op->kind == OP_BARRIER;
    r->at[t]++;
}

/* The more a thread is preferred, the more waits are not needed. */
static bool record_program(struct random_program *p)
{
    struct random_recording r = { 0 };
    bool goes_on = true;

    begin_run(p->threads + 1);
    while (goes_on) {
        unsigned t = (unsigned)draw(&state, p->threads);
        for (uint64_t steps = 1 + draw(&state, 30); steps > 0; steps--)
            step_thread(p, &r, t);
        if (all_are_at_barrier(p, &r))
            memset(r.is_at_barrier, 0, sizeof r.is_at_barrier);
        goes_on = false;
        for (unsigned i = 0; i < p->threads; i++)
            goes_on = goes_on || r.at[i] < p->ops[i];
    }
    join_all(p->threads + 1);
    return program_end(p->threads + 1);
}

/* When the operation before it has ended, and all that it needs. */
static uint64_t begin_of(const struct random_program *p, unsigned t, unsigned i, unsigned *barriers)
{
    const struct op *op = &p->op[t][i];
    uint64_t begin = i ? p->op[t][i - 1].end : 0;

    *barriers += op->kind == OP_BARRIER;
    for (unsigned o = 0; o < p->threads; o++) {
        unsigned met = 0;
        for (unsigned k = 0; k < p->ops[o]; k++) {
            const struct op *other = &p->op[o][k];
            met += other->kind == OP_BARRIER;
            bool is_it = op->kind == OP_AWAIT && other->kind == OP_PRODUCE && other->counter == op->counter
                         && other->value == op->value;
            bool meets = op->kind == OP_BARRIER && other->kind == OP_BARRIER && met == *barriers;
            uint64_t end = is_it ? other->end : meets && k ? p->op[o][k - 1].end : 0;
            begin = end > begin ? end : begin;
        }
    }
    return begin;
}

/* The longest way by what the program means; if each await looks once, or as often as it did. */
static uint64_t true_span(struct random_program *p, bool looks_once)
{
    uint64_t span = 0;
    bool changes = true;

    for (unsigned t = 0; t < p->threads; t++)
        for (unsigned i = 0; i < p->ops[t]; i++)
            p->op[t][i].end = 0;
    while (changes) {
        changes = false;
        for (unsigned t = 0; t < p->threads; t++) {
            unsigned barriers = 0;
            for (unsigned i = 0; i < p->ops[t]; i++) {
                struct op *op = &p->op[t][i];
                uint64_t own = op->kind == OP_WORK      ? op->value
                               : op->kind == OP_PRODUCE ? 1
                               : op->kind == OP_AWAIT   ? (looks_once ? 1 : op->looks)
                                                        : 0;
                uint64_t end = begin_of(p, t, i, &barriers) + own;
                changes = changes || end != op->end;
                op->end = end;
                span = end > span ? end : span;
            }
        }
    }
    return span;
}

static void the_range_of_spans_holds_the_true_one_whatever_threads_wait_for(void)
{
    static struct random_program p;
    unsigned known = 0;

    for (unsigned trial = 0; trial < 150; trial++) {
        make_program(&p, false);
        if (!record_program(&p) || !ask("parallelism"))
            return;
        uint64_t least = number("summary", 0, "span_least"), most = number("summary", 0, "span_most");
        CHECK(least <= true_span(&p, false));
        CHECK(most >= true_span(&p, true));
        known += least < most;
        study_release(&answer);
    }
    CHECK(known > 20); /* there was something to be wrong about */
}

static void a_replay_never_beats_the_span_of_a_program_that_counts(void)
{
    static struct random_program p;

    for (unsigned trial = 0; trial < 150; trial++) {
        make_program(&p, true);
        if (!record_program(&p) || !ask("parallelism"))
            return;
        uint64_t span = true_span(&p, true);
        CHECK(number("summary", 0, "span") >= span);
        CHECK(number("summary", 0, "span_most") >= span);
        CHECK(replay() >= span);
        study_release(&answer);
    }
}

int main(void)
{
    if (!begin())
        return 1;
    RUN(a_pipeline_whose_waits_were_not_needed_has_the_span_of_its_diagonal);
    RUN(a_pipeline_whose_waits_were_needed_has_the_span_of_its_diagonal);
    RUN(order_that_is_not_recorded_is_called_unknown_and_bounded_by_all_work);
    RUN(a_barrier_made_of_a_condition_orders_all_that_come_to_it);
    RUN(the_range_of_spans_holds_the_true_one_whatever_threads_wait_for);
    RUN(a_replay_never_beats_the_span_of_a_program_that_counts);
    return end();
}
