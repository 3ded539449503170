/* SPDX-License-Identifier: MIT */
/* The precedence graph as tables of nodes and arcs, and as a drawing for Graphviz: threads are columns, rounds of barriers are nodes
 * of their own, so that n threads that meet have 2 n arcs and not n^2.
 *
 * Collapsed, pieces that only follow each other are one node. If that is still too much to look at, the run is cut into windows
 * (pieces in the order of their ends on an ideal machine, as many in each), what a thread does in a window is one node, and arcs inside
 * of a window are left out: what is left has no cycles, for arcs go to later windows only. */
#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "study/graph/schedule.h"
#include "study/study.h"

enum { NODES_MOST = 400, NODES_OF_WINDOWS = 200 };

/* clang-format off */
enum { N_NODE, N_KIND, N_THREAD, N_NAME, N_POSITION, N_INSTRUCTIONS, N_REFERENCES, N_PIECES, N_START, N_FINISH, N_EVENT, N_OBJECT,
       N_PLACE, N_FUNCTION, N_CRITICAL, N_COLUMNS };
static const struct column NODES[] = {
    [N_NODE]         = { "node",         "node",         CELL_COUNT, false },
    [N_KIND]         = { "kind",         "kind",         CELL_TEXT,  false },
    [N_THREAD]       = { "thread",       "thread",       CELL_COUNT, false },
    [N_NAME]         = { "name",         "name",         CELL_TEXT,  false },
    [N_POSITION]     = { "position",     "from",         CELL_COUNT, false },
    [N_INSTRUCTIONS] = { "instructions", "instructions", CELL_COUNT, false },
    [N_REFERENCES]   = { "references",   "references",   CELL_COUNT, false },
    [N_PIECES]       = { "pieces",       "pieces",       CELL_COUNT, false },
    [N_START]        = { "start",        "start",        CELL_COUNT, false },
    [N_FINISH]       = { "finish",       "finish",       CELL_COUNT, false },
    [N_EVENT]        = { "event",        "ends with",    CELL_TEXT,  false },
    [N_OBJECT]       = { "object",       "object",       CELL_TEXT,  false },
    [N_PLACE]        = { "place",        "place",        CELL_TEXT,  false },
    [N_FUNCTION]     = { "function",     "mostly in",    CELL_TEXT,  false },
    [N_CRITICAL]     = { "critical",     "critical",     CELL_TEXT,  false },
    [N_COLUMNS]      = { 0 },
};
enum { A_FROM, A_TO, A_EVENT, A_KIND, A_COUNT, A_COLUMNS };
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

struct edge {
    uint32_t from, to;
    uint8_t event, kind;
    uint64_t count;
};

struct node {
    uint32_t first, last; /* pieces; PIECE_NONE: a meeting */
    uint64_t instructions, references, pieces, start, finish;
    uint32_t longest; /* piece */
    bool critical, used;
};

struct drawing {
    const struct precedence *p;
    const struct schedule *s;
    uint32_t *of_piece, *of_meeting; /* numbers of nodes; PIECE_NONE: the meeting is not shown */
    uint32_t *window;                /* by piece; NULL: no windows */
    struct node *node;
    size_t nodes;
    struct edge *edge;
    size_t edges, edge_room;
    uint64_t hidden; /* arcs inside of windows */
    struct peet_err *err;
};

static int no_memory(struct peet_err *err)
{
    return err_set(err, PEET_ERR_MEMORY, "no memory for a drawing of the precedence graph");
}

/* ---- which piece goes to which node ---- */

static bool follows(const struct precedence *p, uint32_t piece)
{
    const struct lane *l = &p->lane[p->piece[piece].lane];

    return piece > l->first && !p->piece[piece].detached;
}

/* Numbers the pieces; with `merge`, one that only follows another has its number. */
static int number_pieces(struct drawing *d, bool merge)
{
    const struct precedence *p = d->p;
    bool *entered = calloc((size_t)p->pieces + 1, sizeof *entered);

    if (!entered)
        return no_memory(d->err);
    for (size_t i = 0; i < p->arcs; i++)
        entered[p->arc[i].to] = true;
    d->nodes = 0;
    for (uint32_t i = 0; i < p->pieces; i++) {
        bool alone = !follows(p, i) || entered[i] || d->s->meeting[i - 1] != PIECE_NONE
                     || p->first_arc[i] > p->first_arc[i - 1] || !merge;
        d->nodes += alone;
        d->of_piece[i] = (uint32_t)d->nodes - 1;
    }
    free(entered);
    for (uint32_t i = 0; i < d->s->meetings; i++)
        d->of_meeting[i] = (uint32_t)d->nodes++;
    return 0;
}

/* Which window each piece is in. A window ends where one of the meetings is complete, if that comes soon enough: then nobody is on
 * both sides of it. Returns how many there are. */
static size_t cut_windows(struct drawing *d)
{
    const struct schedule *s = d->s;
    size_t most = d->p->lanes < NODES_OF_WINDOWS ? NODES_OF_WINDOWS / d->p->lanes : 1, windows = 0;
    uint32_t each = (uint32_t)(d->p->pieces / most + 1), inside = 0;

    for (uint32_t i = 0; i < d->p->pieces; i++) {
        uint32_t piece = s->order[i], m = s->meeting[piece];
        d->window[piece] = (uint32_t)windows;
        inside++;
        if (inside >= 2 * each || (inside >= each && m != PIECE_NONE && s->met[m].last == piece)) {
            windows++;
            inside = 0;
        }
    }
    return windows + 1;
}

static int number_windows(struct drawing *d)
{
    const struct precedence *p = d->p;

    d->window = calloc((size_t)p->pieces + 1, sizeof *d->window);
    size_t windows = d->window ? cut_windows(d) : 0;
    uint32_t *node = calloc(p->lanes * windows + 1, sizeof *node);
    if (!node || !d->window) {
        free(node);
        return no_memory(d->err);
    }
    d->nodes = 0;
    for (uint32_t i = 0; i < p->pieces; i++) {
        uint32_t *n = &node[p->piece[i].lane * windows + d->window[i]];
        if (*n == 0)
            *n = (uint32_t)++d->nodes;
        d->of_piece[i] = *n - 1;
    }
    free(node);
    for (uint32_t i = 0; i < d->s->meetings; i++)
        d->of_meeting[i] = PIECE_NONE;
    for (uint32_t i = 0; i < p->pieces; i++) {
        uint32_t m = d->s->meeting[i];
        if (m != PIECE_NONE && d->of_meeting[m] == PIECE_NONE && d->window[i + 1] > d->window[d->s->met[m].last])
            d->of_meeting[m] = (uint32_t)d->nodes++;
    }
    return 0;
}

static int make_nodes(struct drawing *d)
{
    const struct precedence *p = d->p;
    const struct schedule *s = d->s;

    d->node = calloc(d->nodes + 1, sizeof *d->node);
    if (!d->node)
        return no_memory(d->err);
    for (uint32_t i = 0; i < p->pieces; i++) {
        struct node *n = &d->node[d->of_piece[i]];
        if (!n->used || s->start[i] < n->start)
            n->start = s->start[i];
        if (!n->used || p->piece[i].instructions > p->piece[n->longest].instructions)
            n->longest = i;
        n->first = n->used ? n->first : i;
        n->last = i;
        n->used = true;
        n->finish = s->finish[i] > n->finish ? s->finish[i] : n->finish;
        n->instructions += p->piece[i].instructions;
        n->references += p->piece[i].references;
        n->pieces++;
    }
    for (uint32_t i = 0; i < s->meetings; i++) {
        if (d->of_meeting[i] != PIECE_NONE)
            d->node[d->of_meeting[i]] = (struct node){ .first = PIECE_NONE,
                                                       .last = s->met[i].last,
                                                       .start = s->met[i].time,
                                                       .finish = s->met[i].time,
                                                       .used = true };
    }
    for (uint32_t i = s->last; i != PIECE_NONE; i = s->cause[i])
        d->node[d->of_piece[i]].critical = true;
    return 0;
}

/* ---- arcs between nodes ---- */

static int add_edge(struct drawing *d, uint32_t from, uint32_t to, uint8_t event, uint8_t kind)
{
    struct edge *bigger = study_room(d->edge, d->edges, &d->edge_room, sizeof *bigger);

    if (!bigger)
        return no_memory(d->err);
    d->edge = bigger;
    d->edge[d->edges++] = (struct edge){ from, to, event, kind, 1 };
    return 0;
}

/* Between two pieces, unless they are in one node or one window. */
static int add_between(struct drawing *d, uint32_t from, uint32_t to, uint8_t event, uint8_t kind)
{
    uint32_t a = d->of_piece[from], b = d->of_piece[to];

    if (a == b && kind == EDGE_PROGRAM)
        return 0;
    if (d->window && d->window[from] >= d->window[to]) {
        d->hidden++;
        return 0;
    }
    return add_edge(d, a, b, event, kind);
}

/* From an arrival to its meeting, and from there to the piece behind. */
static int add_meeting(struct drawing *d, uint32_t piece)
{
    uint32_t meeting = d->s->meeting[piece];
    const struct meeting *m = &d->s->met[meeting];
    const struct object *o = &d->p->object[m->object];
    uint8_t kind = o->users > m->parties ? EDGE_ASSUMED : EDGE_CERTAIN;
    uint32_t node = d->of_meeting[meeting];

    if (node == PIECE_NONE) {
        d->hidden++;
        return 0;
    }
    int r = add_edge(d, d->of_piece[piece], node, PEET_EV_barrier_wait, kind);
    if (r < 0 || (d->window && d->window[piece + 1] <= d->window[m->last]))
        return r;
    return add_edge(d, node, d->of_piece[piece + 1], PEET_EV_barrier_wait, kind);
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

    for (uint32_t i = 0; r == 0 && i < p->pieces; i++) {
        if (d->s->meeting[i] != PIECE_NONE)
            r = add_meeting(d, i);
        else if (i + 1 < p->pieces && p->piece[i + 1].lane == p->piece[i].lane && follows(p, i + 1))
            r = add_between(d, i, i + 1, p->piece[i].end, EDGE_PROGRAM);
        for (uint64_t k = p->first_arc[i]; r == 0 && k < p->first_arc[i + 1]; k++)
            r = add_between(d, i, p->arc[k].to, p->arc[k].kind, LEVEL_EDGES[p->arc[k].level]);
    }
    merge_edges(d);
    return r;
}

/* ---- tables ---- */

static void add_object(struct table *t, const struct precedence *p, uint32_t piece)
{
    const struct piece *x = &p->piece[piece];
    char buffer[120];

    if (x->object == PIECE_NONE) {
        table_none(t);
    } else {
        const struct object *o = &p->object[x->object];
        table_text(t, study_place(p->trace, o->process, o->addr, buffer));
    }
    table_text(t, x->site ? study_place(p->trace, p->lane[x->lane].process, x->site, buffer) : NULL);
}

static void add_node(struct table *t, const struct precedence *p, const struct node *n, size_t number)
{
    bool is_piece = n->first != PIECE_NONE;
    const struct lane *l = is_piece ? &p->lane[p->piece[n->first].lane] : NULL;

    table_count(t, number);
    table_text(t, is_piece ? "piece" : "barrier");
    l ? table_count(t, l->id) : table_none(t);
    table_text(t, l ? l->name : NULL);
    is_piece ? table_count(t, p->piece[n->first].position) : table_none(t);
    table_count(t, n->instructions);
    table_count(t, n->references);
    table_count(t, n->pieces);
    table_count(t, n->start);
    table_count(t, n->finish);
    table_text(t, peet_event_name(p->piece[n->last].end));
    add_object(t, p, n->last);
    table_text(t, is_piece && n->instructions ? piece_function(p, n->longest) : NULL);
    table_text(t, n->critical ? "yes" : "no");
}

static void add_tables(struct result *r, const struct drawing *d)
{
    struct table *nodes = result_table(r, "nodes", "Nodes", NODES), *arcs = result_table(r, "arcs", "Arcs", ARCS);

    for (size_t i = 0; i < d->nodes; i++)
        add_node(nodes, d->p, &d->node[i], i);
    for (size_t i = 0; i < d->edges; i++) {
        table_count(arcs, d->edge[i].from);
        table_count(arcs, d->edge[i].to);
        table_text(arcs, peet_event_name(d->edge[i].event));
        table_text(arcs, EDGE_NAMES[d->edge[i].kind]);
        table_count(arcs, d->edge[i].count);
    }
    study_notes(nodes, d->p, d->s);
    table_note(nodes, "start and finish are times on a machine with a processor for each thread, locks left out");
    if (d->nodes < (size_t)d->p->pieces + d->s->meetings)
        table_note(nodes, "%" PRIu32 " pieces and %" PRIu32 " rounds of barriers have become %zu nodes", d->p->pieces,
                   d->s->meetings, d->nodes);
    table_note(
        arcs,
        "program: the thread goes on; certain: events force it; counted: a wait at a condition that was not needed, as late as counting says; assumed: one possibility of several");
    if (d->hidden)
        table_note(arcs, "%" PRIu64 " arcs inside of windows are not shown", d->hidden);
}

static int draw(struct drawing *d, bool collapse)
{
    d->of_piece = calloc((size_t)d->p->pieces + 1, sizeof *d->of_piece);
    d->of_meeting = calloc((size_t)d->s->meetings + 1, sizeof *d->of_meeting);
    int r = d->of_piece && d->of_meeting ? number_pieces(d, collapse) : no_memory(d->err);

    if (r == 0 && collapse && d->nodes > NODES_MOST)
        r = number_windows(d);
    if (r == 0)
        r = make_nodes(d);
    return r < 0 ? r : make_edges(d);
}

static int run(struct peet_trace *t, const struct study_config *config, struct study_answer *answer,
               struct progress *progress, struct peet_err *err)
{
    struct precedence p;
    struct schedule s = { 0 };
    struct drawing d = { .p = &p, .s = &s, .err = err };
    int r = precedence_read(&p, t, progress, err);

    if (r == 0)
        r = schedule_make(&s, &p, SCHEDULE_KNOWN, err);
    if (r == 0)
        r = draw(&d, config->collapse);
    if (r == 0) {
        answer->damaged = p.damaged;
        add_tables(&answer->result, &d);
    }
    free(d.of_piece);
    free(d.of_meeting);
    free(d.window);
    free(d.node);
    free(d.edge);
    schedule_release(&s);
    precedence_release(&p);
    return r;
}

/* ---- the drawing, from the tables ---- */

static const struct cell *at(const struct table *t, size_t row, size_t column)
{
    return &t->cell[row * t->columns + column];
}

/* Text inside of quotes; what would end them, or is no letter, does not. */
static void quote(const char *text, FILE *out)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        fputc(iscntrl((unsigned char)*text) ? '?' : *text, out);
    }
}

static void dot_node(const struct table *t, size_t row, FILE *out)
{
    bool is_piece = !strcmp(at(t, row, N_KIND)->text, "piece"), critical = !strcmp(at(t, row, N_CRITICAL)->text, "yes");

    fprintf(out, "    n%zu [label=\"", row);
    if (is_piece) {
        fprintf(out, "%" PRIu64 "\\n", at(t, row, N_INSTRUCTIONS)->count);
        quote(at(t, row, N_FUNCTION)->empty ? "" : at(t, row, N_FUNCTION)->text, out);
        fprintf(out, "\"%s];\n", critical ? ", color=red" : "");
    } else {
        quote(at(t, row, N_OBJECT)->empty ? "barrier" : at(t, row, N_OBJECT)->text, out);
        fputs("\", shape=ellipse];\n", out);
    }
}

/* A thread's nodes are next to each other unless windows mix them: each column looks for its own. */
static void dot_threads(const struct table *t, FILE *out)
{
    bool *done = mem_alloc(t->rows + 1, sizeof *done);

    for (size_t i = 0; i < t->rows; i++) {
        if (done[i] || at(t, i, N_THREAD)->empty)
            continue;
        uint64_t thread = at(t, i, N_THREAD)->count;
        fprintf(out, "  subgraph cluster_%" PRIu64 " {\n    label=\"thread %" PRIu64 " ", thread, thread);
        quote(at(t, i, N_NAME)->empty ? "" : at(t, i, N_NAME)->text, out);
        fputs("\";\n", out);
        for (size_t k = i; k < t->rows; k++) {
            if (at(t, k, N_THREAD)->empty || at(t, k, N_THREAD)->count != thread)
                continue;
            dot_node(t, k, out);
            done[k] = true;
        }
        fputs("  }\n", out);
    }
    for (size_t i = 0; i < t->rows; i++)
        if (at(t, i, N_THREAD)->empty)
            dot_node(t, i, out);
    free(done);
}

static void dot_arc(const struct table *t, size_t row, FILE *out)
{
    const char *kind = at(t, row, A_KIND)->text;
    uint64_t count = at(t, row, A_COUNT)->count;

    fprintf(out, "  n%" PRIu64 " -> n%" PRIu64 " [label=\"", at(t, row, A_FROM)->count, at(t, row, A_TO)->count);
    quote(at(t, row, A_EVENT)->text, out);
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
        quote(t->note[i], out);
        fputc('\n', out);
    }
}

static void text(const struct result *r, FILE *out)
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

const struct study study_graph = {
    .name = "graph",
    .summary = "the precedence graph, for Graphviz or as tables",
    .run = run,
    .text = text,
};
