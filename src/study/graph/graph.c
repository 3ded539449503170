/* SPDX-License-Identifier: MIT */
/* The precedence graph as tables of nodes and arcs, and as a drawing for Graphviz. Threads are columns. Rounds of barriers are nodes, so
 * that a round of n threads has 2 n arcs and not n^2.
 *
 * With --collapse, segments without arcs between them are one node. If more than NODES_MOST nodes are left, the run is cut into windows: equal
 * numbers of segments in the order of their ends on an ideal machine. A node is then what a thread does in a window; arcs within a window are
 * left out. There are no cycles, because arcs lead to later windows only. */
#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "study/graph/delays.h"
#include "study/graph/graph_tables.h"
#include "study/study.h"

enum { NODES_MOST = 400, NODES_OF_WINDOWS = 200 };

/* clang-format off */
static const struct column NODES[] = {
    [N_NODE]         = { "node",         "node",         CELL_COUNT, false },
    [N_KIND]         = { "kind",         "kind",         CELL_TEXT,  false },
    [N_PROCESS]      = { "process",      "process",      CELL_COUNT, true  },
    [N_THREAD]       = { "thread",       "thread",       CELL_COUNT, false },
    [N_NAME]         = { "name",         "name",         CELL_TEXT,  false },
    [N_POSITION]     = { "position",     "from",         CELL_COUNT, false },
    [N_INSTRUCTIONS] = { "instructions", "instructions", CELL_COUNT, false },
    [N_REFERENCES]   = { "references",   "references",   CELL_COUNT, false },
    [N_SEGMENTS]       = { "pieces",       "pieces",       CELL_COUNT, false },
    [N_START]        = { "start",        "start",        CELL_COUNT, false },
    [N_FINISH]       = { "finish",       "finish",       CELL_COUNT, false },
    [N_EVENT]        = { "event",        "ends with",    CELL_TEXT,  false },
    [N_OBJECT]       = { "object",       "object",       CELL_TEXT,  false },
    [N_LOCK]         = { "lock",         "gives up",     CELL_TEXT,  false },
    [N_PLACE]        = { "place",        "place",        CELL_TEXT,  false },
    [N_FUNCTION]     = { "function",     "mostly in",    CELL_TEXT,  false },
    [N_CRITICAL]     = { "critical",     "critical",     CELL_TEXT,  false },
    [N_COLUMNS]      = { 0 },
};
static const struct column ARCS[] = {
    [A_FROM]    = { "from",  "from",  CELL_COUNT, false },
    [A_TO]      = { "to",    "to",    CELL_COUNT, false },
    [A_EVENT]   = { "event", "event", CELL_TEXT,  false },
    [A_KIND]    = { "kind",  "kind",  CELL_TEXT,  false },
    [A_COUNT]   = { "count", "count", CELL_COUNT, false },
    [A_COLUMNS] = { 0 },
};
/* clang-format on */

enum edge_kind { EDGE_PROGRAM, EDGE_CERTAIN, EDGE_COUNTED, EDGE_ASSUMED };
static const char *const EDGE_NAMES[] = { "program", "certain", "counted", "assumed" };
static const uint8_t LEVEL_EDGES[] = {
    [ARC_CERTAIN] = EDGE_CERTAIN, [ARC_COUNTED] = EDGE_COUNTED, [ARC_ASSUMED] = EDGE_ASSUMED
};

/* An arc of the drawing, between nodes. */
struct edge {
    uint32_t from, to;   /* nodes */
    uint8_t event, kind; /* enum peet_event_kind; index in EDGE_NAMES */
    uint64_t count;      /* arcs of the graph for which it stands */
};

/* A node of the drawing: segments of one thread, or a round of a barrier. */
struct node {
    uint32_t first, last;                        /* segments; SEGMENT_NONE: a round */
    uint64_t instructions, references, segments; /* counts */
    uint64_t start, finish;                      /* time units of the schedule */
    uint32_t longest;                            /* segment with most instructions */
    bool critical, used;                         /* on the critical path; shown */
};

/* A drawing while it is made. */
struct drawing {
    const struct precedence *p;
    const struct schedule *s;
    uint32_t *of_segment, *of_round; /* node, by segment and by round; SEGMENT_NONE: the round is not shown */
    uint32_t *window;                /* number of the window, by segment; NULL: no windows */
    struct node *node;
    size_t nodes;
    struct edge *edge;
    size_t edges, edge_room;
    uint64_t hidden; /* arcs within windows */
    struct peet_err *err;
};

static int graph_no_memory(struct peet_err *err)
{
    return err_set(err, PEET_ERR_MEMORY, "no memory for a drawing of the precedence graph");
}

/* ---- nodes of segments ---- */

static bool segment_follows(const struct precedence *p, uint32_t segment)
{
    const struct graph_thread *l = &p->thread[p->segment[segment].thread];

    return segment > l->first && !p->segment[segment].detached;
}

/* Assigns segments to nodes; with `merge`, a segment whose only neighbours are those of program order joins the node before it. */
static int number_segments(struct drawing *d, bool merge)
{
    const struct precedence *p = d->p;
    bool *entered = calloc((size_t)p->segments + 1, sizeof *entered);

    if (!entered)
        return graph_no_memory(d->err);
    for (size_t i = 0; i < p->arcs; i++)
        entered[p->arc[i].to] = true;
    d->nodes = 0;
    for (uint32_t i = 0; i < p->segments; i++) {
        bool alone = !segment_follows(p, i) || entered[i] || d->s->round_of[i - 1] != SEGMENT_NONE
                     || p->first_arc[i] > p->first_arc[i - 1] || !merge;
        d->nodes += alone;
        d->of_segment[i] = (uint32_t)d->nodes - 1;
    }
    free(entered);
    for (uint32_t i = 0; i < d->s->rounds; i++)
        d->of_round[i] = (uint32_t)d->nodes++;
    return 0;
}

/* Assigns segments to windows, and returns the number of windows. A window ends with a round of a barrier if one comes soon enough: then no thread
 * is on both sides of the border. */
static size_t cut_windows(struct drawing *d)
{
    const struct schedule *s = d->s;
    size_t most = d->p->threads < NODES_OF_WINDOWS ? NODES_OF_WINDOWS / d->p->threads : 1, windows = 0;
    uint32_t each = (uint32_t)(d->p->segments / most + 1), in_window = 0;

    for (uint32_t i = 0; i < d->p->segments; i++) {
        uint32_t segment = s->order[i], m = s->round_of[segment];
        d->window[segment] = (uint32_t)windows;
        in_window++;
        if (in_window >= 2 * each || (in_window >= each && m != SEGMENT_NONE && s->round[m].last == segment)) {
            windows++;
            in_window = 0;
        }
    }
    return windows + 1;
}

static int number_windows(struct drawing *d)
{
    const struct precedence *p = d->p;

    d->window = calloc((size_t)p->segments + 1, sizeof *d->window);
    size_t windows = d->window ? cut_windows(d) : 0;
    uint32_t *node = calloc(p->threads * windows + 1, sizeof *node);
    if (!node || !d->window) {
        free(node);
        return graph_no_memory(d->err);
    }
    d->nodes = 0;
    for (uint32_t i = 0; i < p->segments; i++) {
        uint32_t *n = &node[p->segment[i].thread * windows + d->window[i]];
        if (*n == 0)
            *n = (uint32_t)++d->nodes;
        d->of_segment[i] = *n - 1;
    }
    free(node);
    for (uint32_t i = 0; i < d->s->rounds; i++)
        d->of_round[i] = SEGMENT_NONE;
    for (uint32_t i = 0; i < p->segments; i++) {
        uint32_t m = d->s->round_of[i];
        if (m != SEGMENT_NONE && d->of_round[m] == SEGMENT_NONE && d->window[i + 1] > d->window[d->s->round[m].last])
            d->of_round[m] = (uint32_t)d->nodes++;
    }
    return 0;
}

static int make_nodes(struct drawing *d)
{
    const struct precedence *p = d->p;
    const struct schedule *s = d->s;

    d->node = calloc(d->nodes + 1, sizeof *d->node);
    if (!d->node)
        return graph_no_memory(d->err);
    for (uint32_t i = 0; i < p->segments; i++) {
        struct node *n = &d->node[d->of_segment[i]];
        if (!n->used || s->start[i] < n->start)
            n->start = s->start[i];
        if (!n->used || p->segment[i].instructions > p->segment[n->longest].instructions)
            n->longest = i;
        n->first = n->used ? n->first : i;
        n->last = i;
        n->used = true;
        n->finish = s->finish[i] > n->finish ? s->finish[i] : n->finish;
        n->instructions += p->segment[i].instructions;
        n->references += p->segment[i].references;
        n->segments++;
    }
    for (uint32_t i = 0; i < s->rounds; i++) {
        if (d->of_round[i] != SEGMENT_NONE)
            d->node[d->of_round[i]] = (struct node){ .first = SEGMENT_NONE,
                                                     .last = s->round[i].last,
                                                     .start = s->round[i].time,
                                                     .finish = s->round[i].time,
                                                     .used = true };
    }
    for (uint32_t i = s->last; i != SEGMENT_NONE; i = s->cause[i])
        d->node[d->of_segment[i]].critical = true;
    return 0;
}

/* ---- arcs between nodes ---- */

static int graph_add_edge(struct drawing *d, uint32_t from, uint32_t to, uint8_t event, uint8_t kind)
{
    struct edge *bigger = array_room(d->edge, d->edges, &d->edge_room, sizeof *bigger);

    if (!bigger)
        return graph_no_memory(d->err);
    d->edge = bigger;
    d->edge[d->edges++] = (struct edge){ from, to, event, kind, 1 };
    return 0;
}

/* Adds an arc between two segments, unless they are in one node or one window. */
static int graph_add_arc(struct drawing *d, uint32_t from, uint32_t to, uint8_t event, uint8_t kind)
{
    uint32_t a = d->of_segment[from], b = d->of_segment[to];

    if (a == b && kind == EDGE_PROGRAM)
        return 0;
    if (d->window && d->window[from] >= d->window[to]) {
        d->hidden++;
        return 0;
    }
    return graph_add_edge(d, a, b, event, kind);
}

/* Adds arcs from an arrival to its round, and from there to the segment after it. */
static int graph_add_round(struct drawing *d, uint32_t segment)
{
    uint32_t round = d->s->round_of[segment];
    const struct barrier_round *m = &d->s->round[round];
    const struct graph_object *o = &d->p->object[m->object];
    uint8_t kind = o->users > m->arrivals ? EDGE_ASSUMED : EDGE_CERTAIN;
    uint32_t node = d->of_round[round];

    if (node == SEGMENT_NONE) {
        d->hidden++;
        return 0;
    }
    int r = graph_add_edge(d, d->of_segment[segment], node, PEET_EV_barrier_wait, kind);
    if (r < 0 || (d->window && d->window[segment + 1] <= d->window[m->last]))
        return r;
    return graph_add_edge(d, node, d->of_segment[segment + 1], PEET_EV_barrier_wait, kind);
}

static int compare_edges(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;

    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    return x->kind != y->kind ? x->kind - y->kind : x->event - y->event;
}

static void merge_edges(struct drawing *d)
{
    size_t n = 0;

    if (d->edges)
        qsort(d->edge, d->edges, sizeof *d->edge, compare_edges);
    for (size_t i = 0; i < d->edges; i++) {
        if (n && compare_edges(&d->edge[n - 1], &d->edge[i]) == 0)
            d->edge[n - 1].count += d->edge[i].count;
        else
            d->edge[n++] = d->edge[i];
    }
    d->edges = n;
}

static int make_edges(struct drawing *d)
{
    const struct precedence *p = d->p;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < p->segments; i++) {
        if (d->s->round_of[i] != SEGMENT_NONE)
            r = graph_add_round(d, i);
        else if (i + 1 < p->segments && p->segment[i + 1].thread == p->segment[i].thread && segment_follows(p, i + 1))
            r = graph_add_arc(d, i, i + 1, p->segment[i].end, EDGE_PROGRAM);
        for (uint64_t k = p->first_arc[i]; r == 0 && k < p->first_arc[i + 1]; k++)
            r = graph_add_arc(d, i, p->arc[k].to, p->arc[k].kind, LEVEL_EDGES[p->arc[k].level]);
    }
    merge_edges(d);
    return r;
}

/* ---- tables ---- */

static void graph_add_object(struct table *t, const struct precedence *p, uint32_t object)
{
    char buffer[120];

    if (object == SEGMENT_NONE)
        table_none(t);
    else
        table_text(t, addr_text(p->trace, p->object[object].process, p->object[object].addr, buffer));
}

/* What the event at the end of a segment is about: its object, the lock that a wait gives up, its code address. */
static void graph_add_event(struct table *t, const struct precedence *p, uint32_t segment)
{
    const struct graph_segment *x = &p->segment[segment];
    char buffer[120];

    table_text(t, peet_event_name(x->end));
    graph_add_object(t, p, x->object);
    graph_add_object(t, p, x->lock);
    table_text(t, x->site ? addr_text(p->trace, p->thread[x->thread].process, x->site, buffer) : NULL);
}

static void graph_add_node(struct table *t, const struct precedence *p, const struct node *n, size_t number)
{
    bool is_segment = n->first != SEGMENT_NONE;
    const struct graph_thread *l = is_segment ? &p->thread[p->segment[n->first].thread] : NULL;

    table_count(t, number);
    table_text(t, is_segment ? "piece" : "barrier");
    table_count(t, p->thread[p->segment[n->last].thread].process);
    l ? table_count(t, l->id) : table_none(t);
    table_text(t, l ? l->name : NULL);
    is_segment ? table_count(t, p->segment[n->first].position) : table_none(t);
    table_count(t, n->instructions);
    table_count(t, n->references);
    table_count(t, n->segments);
    table_count(t, n->start);
    table_count(t, n->finish);
    graph_add_event(t, p, n->last);
    table_text(t, is_segment && n->instructions ? segment_function(p, n->longest) : NULL);
    table_text(t, n->critical ? "yes" : "no");
}

static void graph_add_tables(struct result *r, const struct drawing *d)
{
    struct table *nodes = result_table(r, "nodes", "Nodes", NODES), *arcs = result_table(r, "arcs", "Arcs", ARCS);

    for (size_t i = 0; i < d->nodes; i++)
        graph_add_node(nodes, d->p, &d->node[i], i);
    for (size_t i = 0; i < d->edges; i++) {
        table_count(arcs, d->edge[i].from);
        table_count(arcs, d->edge[i].to);
        table_text(arcs, peet_event_name(d->edge[i].event));
        table_text(arcs, EDGE_NAMES[d->edge[i].kind]);
        table_count(arcs, d->edge[i].count);
    }
    schedule_notes(nodes, d->p, d->s);
    table_note(nodes, "start and finish are times on a machine with a processor for each thread, locks left out");
    if (d->nodes < (size_t)d->p->segments + d->s->rounds)
        table_note(nodes, "%" PRIu32 " pieces and %" PRIu32 " rounds of barriers have become %zu nodes", d->p->segments,
                   d->s->rounds, d->nodes);
    table_note(
        arcs,
        "program: the thread continues; certain: events force it; counted: a wait at a condition that was not needed, as late as counting says; assumed: one possibility of several");
    if (d->hidden)
        table_note(arcs, "%" PRIu64 " arcs inside of windows are not shown", d->hidden);
}

static int graph_draw(struct drawing *d, bool collapse)
{
    d->of_segment = calloc((size_t)d->p->segments + 1, sizeof *d->of_segment);
    d->of_round = calloc((size_t)d->s->rounds + 1, sizeof *d->of_round);
    int r = d->of_segment && d->of_round ? number_segments(d, collapse) : graph_no_memory(d->err);

    if (r == 0 && collapse && d->nodes > NODES_MOST)
        r = number_windows(d);
    if (r == 0)
        r = make_nodes(d);
    return r < 0 ? r : make_edges(d);
}

/* Options. */
struct study_state {
    bool collapse; /* segments are merged until there are at most NODES_MOST nodes */
};

static int graph_run(struct study_state *state, struct peet_trace *t, struct study_answer *answer,
                     struct progress *progress, struct peet_err *err)
{
    struct precedence p;
    struct schedule s = { 0 };
    struct drawing d = { .p = &p, .s = &s, .err = err };
    int r = precedence_read(&p, t, progress, err);

    if (r == 0)
        r = schedule_make(&s, &p, SCHEDULE_KNOWN, err);
    if (r == 0)
        r = graph_draw(&d, state->collapse);
    if (r == 0) {
        answer->damaged = p.unknown.damaged;
        graph_add_tables(&answer->result, &d);
    }
    free(d.of_segment);
    free(d.of_round);
    free(d.window);
    free(d.node);
    free(d.edge);
    schedule_release(&s);
    precedence_release(&p);
    return r;
}

/* ---- the drawing, from the tables ---- */

/* Text inside of quotes; what would end them, or is no letter, does not. */
static void dot_quote(const char *text, FILE *out)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        fputc(iscntrl((unsigned char)*text) ? '?' : *text, out);
    }
}

static void dot_node(const struct table *t, size_t row, FILE *out)
{
    bool is_segment = !strcmp(graph_cell(t, row, N_KIND)->text, "piece"),
         critical = !strcmp(graph_cell(t, row, N_CRITICAL)->text, "yes");

    fprintf(out, "    n%zu [label=\"", row);
    if (is_segment) {
        fprintf(out, "%" PRIu64 "\\n", graph_cell(t, row, N_INSTRUCTIONS)->count);
        dot_quote(graph_cell(t, row, N_FUNCTION)->empty ? "" : graph_cell(t, row, N_FUNCTION)->text, out);
        fprintf(out, "\"%s];\n", critical ? ", color=red" : "");
    } else {
        dot_quote(graph_cell(t, row, N_OBJECT)->empty ? "barrier" : graph_cell(t, row, N_OBJECT)->text, out);
        fputs("\", shape=ellipse];\n", out);
    }
}

/* A thread's nodes are next to each other unless windows mix them: each column looks for its own. */
static void dot_threads(const struct table *t, FILE *out)
{
    bool *done = mem_alloc(t->rows + 1, sizeof *done);

    for (size_t i = 0; i < t->rows; i++) {
        if (done[i] || graph_cell(t, i, N_THREAD)->empty)
            continue;
        uint64_t thread = graph_cell(t, i, N_THREAD)->count;
        fprintf(out, "  subgraph cluster_%" PRIu64 " {\n    label=\"thread %" PRIu64 " ", thread, thread);
        dot_quote(graph_cell(t, i, N_NAME)->empty ? "" : graph_cell(t, i, N_NAME)->text, out);
        fputs("\";\n", out);
        for (size_t k = i; k < t->rows; k++) {
            if (graph_cell(t, k, N_THREAD)->empty || graph_cell(t, k, N_THREAD)->count != thread)
                continue;
            dot_node(t, k, out);
            done[k] = true;
        }
        fputs("  }\n", out);
    }
    for (size_t i = 0; i < t->rows; i++)
        if (graph_cell(t, i, N_THREAD)->empty)
            dot_node(t, i, out);
    free(done);
}

static void dot_arc(const struct table *t, size_t row, FILE *out)
{
    const char *kind = graph_cell(t, row, A_KIND)->text;
    uint64_t count = graph_cell(t, row, A_COUNT)->count;

    fprintf(out, "  n%" PRIu64 " -> n%" PRIu64 " [label=\"", graph_cell(t, row, A_FROM)->count,
            graph_cell(t, row, A_TO)->count);
    dot_quote(graph_cell(t, row, A_EVENT)->text, out);
    if (count > 1)
        fprintf(out, " x %" PRIu64, count);
    fprintf(out, "\", %s];\n",
            !strcmp(kind, "program")   ? "weight=8"
            : !strcmp(kind, "certain") ? "style=bold"
                                       : "style=dashed");
}

static void dot_notes(const struct table *t, FILE *out)
{
    for (size_t i = 0; i < t->notes; i++) {
        fputs("// ", out);
        dot_quote(t->note[i], out);
        fputc('\n', out);
    }
}

static void graph_dot(const struct result *r, FILE *out)
{
    const struct table *nodes = r->first, *arcs = nodes->next;

    assert(nodes->columns == N_COLUMNS && arcs->columns == A_COLUMNS);
    dot_notes(nodes, out);
    dot_notes(arcs, out);
    fputs("digraph run {\n  node [shape=box, fontsize=10];\n  edge [fontsize=8];\n", out);
    dot_threads(nodes, out);
    for (size_t i = 0; i < arcs->rows; i++)
        dot_arc(arcs, i, out);
    fputs("}\n", out);
}

static const struct opt options[] = {
    { .name = "collapse",
      .type = OPT_FLAG,
      .value = STUDY_OPTION(collapse),
      .help = "graph: merge nodes until it can be looked at" },
    { 0 },
};

static const struct study_format formats[] = { { "text", graph_dot }, { "pnml", graph_petri_net }, { 0 } };

const struct study study_graph = {
    .name = "graph",
    .summary = "the precedence graph, for Graphviz or as tables",
    .options = options,
    .state_size = sizeof(struct study_state),
    .run = graph_run,
    .formats = formats,
};
