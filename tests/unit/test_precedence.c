/* SPDX-License-Identifier: MIT */
/* Certain arcs and times of random runs, by slow and obvious code; and the graph. */
#include "study/graph/schedule.h"
#include "tests/unit/random.h"
#include "tests/unit/study_program.h"

static uint64_t state = 7;

/* ---- random runs ---- */

/* A run as one possible order of its steps, which then fall to threads. `when` is the number of the step that ends a piece. */
enum { RUN_THREADS = 6, RUN_OBJECTS = 3, RUN_PIECES = 400 };

struct random_run {
    unsigned threads; /* that have been created */
    bool ended[RUN_THREADS + 1], joined[RUN_THREADS + 1];
    uint64_t units[RUN_OBJECTS], posted[RUN_OBJECTS];
    unsigned steps, when[RUN_THREADS + 1][RUN_PIECES], cuts[RUN_THREADS + 1];
};

static void run_cut(struct random_run *r, unsigned thread)
{
    r->when[thread][r->cuts[thread]++] = r->steps++;
}

static void run_meet(struct random_run *r)
{
    unsigned alive = 0;

    for (unsigned t = 1; t <= r->threads; t++)
        alive += !r->ended[t];
    for (unsigned t = 1; t <= r->threads; t++) {
        if (!r->ended[t]) {
            does(t, "barrier_wait 0x%x %u", 0x800000 + r->steps, alive);
            r->when[t][r->cuts[t]++] = r->steps;
        }
    }
    r->steps++;
}

static void run_threads(struct random_run *r, unsigned thread)
{
    unsigned other = 2 + (unsigned)draw(&state, RUN_THREADS - 1);

    if (draw(&state, 2) && r->threads < RUN_THREADS) {
        does(thread, "thread_create %u", ++r->threads);
        run_cut(r, thread);
    } else if (other <= r->threads && other != thread && !r->joined[other] && draw(&state, 2)) {
        r->ended[other] = r->joined[other] = true;
        does(thread, "thread_join %u", other);
        run_cut(r, thread);
    }
}

static void run_step(struct random_run *r)
{
    unsigned thread = 1 + (unsigned)draw(&state, r->threads), object = (unsigned)draw(&state, RUN_OBJECTS),
             what = (unsigned)draw(&state, 20);

    if (r->ended[thread] || r->cuts[thread] > RUN_PIECES - 10)
        return;
    work(thread, draw(&state, 2) ? draw(&state, 50) : 0);
    if (what == 0) {
        run_meet(r);
    } else if (what < 4) {
        run_threads(r, thread);
    } else if (what < 8
               && (thread == 1 + object || draw(&state, 16) == 0)) { /* mostly one gives: then arcs are forced */
        does(thread, "sem_post 0x%x", 0x600000 + object);
        r->units[object]++;
        run_cut(r, thread);
    } else if (what >= 8 && what < 12 && r->units[object] && thread != 1 + object) {
        does(thread, "sem_wait 0x%x", 0x600000 + object);
        r->units[object]--;
        run_cut(r, thread);
    } else if (what >= 12 && what < 15) {
        does(thread, "post 0x%x %" PRIu64, 0x610000 + object, ++r->posted[object]);
        run_cut(r, thread);
    } else if (what >= 15 && r->posted[object]) {
        does(thread, "wait 0x%x %" PRIu64, 0x610000 + object, 1 + draw(&state, r->posted[object]));
        run_cut(r, thread);
    }
}

static bool make_random_run(struct random_run *r)
{
    memset(r, 0, sizeof *r);
    program_begin(RUN_THREADS);
    for (unsigned i = 0; i < RUN_OBJECTS; i++) {
        r->units[i] = draw(&state, 2);
        does(1, "sem_init 0x%x %" PRIu64, 0x600000 + i, r->units[i]);
    }
    r->threads = 1;
    for (unsigned n = 20 + (unsigned)draw(&state, 150); n > 0; n--)
        run_step(r);
    while (r->threads < RUN_THREADS) {
        does(1, "thread_create %u", ++r->threads);
        run_cut(r, 1);
    }
    return program_end(RUN_THREADS);
}

/* By the arcs: which segments precede which, and the length of the longest path. */
static void check_schedule(const struct precedence *p, const struct schedule *s, const struct epochs *e,
                           const uint64_t *tail)
{
    uint32_t n = p->segments;
    bool *reach = calloc((size_t)n * n, 1), changed = true;
    uint64_t *ends = calloc(n + 1, sizeof *ends), span = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (i + 1 < n && p->segment[i + 1].thread == p->segment[i].thread)
            reach[(size_t)i * n + i + 1] = true;
        for (uint32_t k = 0; k < n && s->round_of[i] != SEGMENT_NONE; k++)
            if (s->round_of[k] == s->round_of[i])
                reach[(size_t)i * n + k + 1] = true;
    }
    for (size_t i = 0; i < p->arcs; i++)
        reach[(size_t)p->arc[i].from * n + p->arc[i].to] = true;
    for (unsigned rounds = 0; changed && rounds <= n; rounds++) {
        changed = false;
        for (uint32_t i = 0; i < n; i++) {
            uint64_t begins = 0;
            for (uint32_t k = 0; k < n; k++)
                if (reach[(size_t)k * n + i] && ends[k] > begins)
                    begins = ends[k];
            changed = changed || ends[i] != begins + p->segment[i].instructions;
            ends[i] = begins + p->segment[i].instructions;
            span = ends[i] > span ? ends[i] : span;
        }
    }
    CHECK(!changed);
    CHECK_EQ(s->span, span);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n && reach[(size_t)i * n + k]; j++)
                reach[(size_t)i * n + j] |= reach[(size_t)k * n + j];
    for (uint32_t i = 0; i < n; i++) {
        uint64_t behind = 0;
        CHECK_EQ(s->finish[i], ends[i]);
        CHECK(e->from[i] < e->until[i] && e->until[i] <= e->count);
        CHECK(i == 0 || p->segment[i - 1].thread != p->segment[i].thread
              || (e->from[i - 1] <= e->from[i] && e->until[i - 1] <= e->until[i]));
        for (uint32_t j = 0; j < n; j++) {
            CHECK(i == j || e->until[i] > e->from[j] || reach[(size_t)i * n + j]);
            behind = reach[(size_t)i * n + j] && tail[j] + p->segment[j].instructions > behind
                         ? tail[j] + p->segment[j].instructions
                         : behind;
        }
        CHECK_EQ(tail[i], behind);
    }
    free(reach);
    free(ends);
}

/* An arc is certain if it holds in every run that has these streams; so it holds in the one that they come from. */
static void check_arcs(const struct precedence *p, const struct random_run *r)
{
    for (size_t i = 0; i < p->arcs; i++) {
        const struct graph_segment *from = &p->segment[p->arc[i].from], *to = &p->segment[p->arc[i].to];
        const struct graph_thread *a = &p->thread[from->thread], *b = &p->thread[to->thread];
        if (p->arc[i].to == b->first || from->end == PEET_EV_thread_end)
            continue;
        CHECK(r->when[a->id][p->arc[i].from - a->first] < r->when[b->id][p->arc[i].to - 1 - b->first]);
    }
}

static void certain_arcs_hold_in_the_run_and_times_are_longest_ways(void)
{
    static struct random_run r;
    uint64_t semaphores = 0, epochs = 0;

    for (unsigned trial = 0; trial < 100; trial++) {
        struct precedence p;
        struct schedule s;
        struct peet_trace *t;
        struct peet_err err;
        struct epochs e;
        uint64_t *tail = NULL;

        if (!make_random_run(&r) || !fine(peet_trace_open(path_of("a"), &t, &err), &err))
            return;
        if (!fine(precedence_read(&p, t, NULL, &err), &err) || !fine(schedule_make(&s, &p, SCHEDULE_KNOWN, &err), &err)
            || !fine(epochs_make(&e, &s, &p, &err), &err) || !fine(schedule_tails(&s, &p, &tail, &err), &err))
            return;
        CHECK_EQ(s.forced, 0);
        check_arcs(&p, &r);
        check_schedule(&p, &s, &e, tail);
        for (size_t i = 0; i < p.arcs; i++)
            semaphores += p.arc[i].kind == PEET_EV_sem_wait;
        epochs += e.count;
        epochs_release(&e);
        free(tail);
        schedule_release(&s);
        precedence_release(&p);
        peet_trace_free(t);
    }
    CHECK(semaphores > 100 && epochs > 200); /* there was something to look at */
}

/* ---- the graph ---- */

/* Nodes in an order in which every arc goes forward: false when there is none. */
static bool is_acyclic(void)
{
    size_t nodes = table_of("nodes")->rows, arcs = table_of("arcs")->rows, left = nodes;
    bool *gone = calloc(nodes + 1, 1), progress = true;

    while (left && progress) {
        bool *entered = calloc(nodes + 1, 1);
        progress = false;
        for (size_t i = 0; i < arcs; i++)
            if (!gone[number("arcs", i, "from")])
                entered[number("arcs", i, "to")] = true;
        for (size_t i = 0; i < nodes; i++) {
            if (!gone[i] && !entered[i]) {
                gone[i] = progress = true;
                left--;
            }
        }
        free(entered);
    }
    free(gone);
    return left == 0;
}

/* A run of many rounds with a lock in each. */
static bool make_rounds(unsigned threads, unsigned rounds)
{
    program_begin(threads);
    create_all(threads);
    for (unsigned i = 1; i <= threads; i++) {
        for (unsigned r = 0; r < rounds; r++) {
            work(i, 10 + draw(&state, 10));
            does(i, "mutex_lock 0x500020");
            work(i, 1);
            does(i, "mutex_unlock 0x500020");
            does(i, "barrier_wait 0x500010 %u", threads);
        }
    }
    join_all(threads);
    return program_end(threads);
}

static void merging_nodes_keeps_the_work_and_makes_no_cycle(void)
{
    static const unsigned ROUNDS[] = { 3, 30, 500 };

    for (unsigned i = 0; i < 3; i++) {
        if (!make_rounds(4, ROUNDS[i]) || !ask("graph"))
            return;
        size_t nodes = table_of("nodes")->rows;
        uint64_t all = sum("nodes", "instructions");
        CHECK_EQ(nodes, 4 * (3 * ROUNDS[i] + 1) + 6 + ROUNDS[i]);
        CHECK(i > 1 || is_acyclic());
        study_release(&answer);
        if (!ask_with("graph", "collapse", true))
            return;
        CHECK(table_of("nodes")->rows < nodes && table_of("nodes")->rows <= 400);
        CHECK_EQ(sum("nodes", "instructions"), all);
        CHECK_EQ(sum("nodes", "pieces"), 4 * (3 * ROUNDS[i] + 1) + 6);
        CHECK(is_acyclic());
        study_release(&answer);
    }
}

static void the_drawing_has_every_node_and_arc(void)
{
    char *text = NULL;
    size_t size, nodes = 0, arcs = 0;

    if (!make_rounds(3, 2) || !ask("graph"))
        return;
    FILE *drawing = open_memstream(&text, &size);
    study_format_find(&study_graph, "text")->show(&answer.result, drawing);
    fclose(drawing);
    for (const char *p = text; (p = strstr(p, "[label=")); p++)
        nodes++;
    for (const char *p = text; (p = strstr(p, " -> ")); p++)
        arcs++;
    CHECK_EQ(arcs, table_of("arcs")->rows);
    CHECK_EQ(nodes - arcs, table_of("nodes")->rows);
    CHECK(strstr(text, "subgraph cluster_3") && strstr(text, "thread_create") && strstr(text, "color=red"));
    free(text);
    study_release(&answer);
}

int main(void)
{
    if (!begin())
        return 1;
    RUN(certain_arcs_hold_in_the_run_and_times_are_longest_ways);
    RUN(merging_nodes_keeps_the_work_and_makes_no_cycle);
    RUN(the_drawing_has_every_node_and_arc);
    return end();
}
