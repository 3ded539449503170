/* SPDX-License-Identifier: MIT */
/* The precedence graph as a place/transition net in PNML (ISO/IEC 15909-2): the load of a program as tokens that flow.
 *
 * A node of the graph is a transition, which fires once. An arc of the graph is a place that is empty at first; its inscriptions are the number
 * of arcs that have become this one. A node that no arc enters has a separate place with one token. A lock is a place with one token for each
 * thread; a writer takes all of them, a reader takes one. It is taken by the node after the one that ends with the event that takes it, and
 * returned by the node that ends with the event that releases it. Merged nodes hide such events: then there are no places of locks. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "study/graph/graph_tables.h"

enum lock_action { LOCK_NONE, LOCK_WRITER, LOCK_READER, LOCK_RELEASE, LOCK_WAIT };

/* What an event that ends a node does to the lock that it names. */
static enum lock_action lock_action_of(const char *event)
{
    static const struct {
        const char *event;
        enum lock_action action;
    } ACTIONS[] = {
        { "mutex_lock", LOCK_WRITER },    { "mutex_trylock", LOCK_WRITER },    { "spin_lock", LOCK_WRITER },
        { "spin_trylock", LOCK_WRITER },  { "rwlock_wrlock", LOCK_WRITER },    { "rwlock_trywrlock", LOCK_WRITER },
        { "rwlock_rdlock", LOCK_READER }, { "rwlock_tryrdlock", LOCK_READER }, { "mutex_unlock", LOCK_RELEASE },
        { "spin_unlock", LOCK_RELEASE },  { "rwlock_unlock", LOCK_RELEASE },   { "cond_wait", LOCK_WAIT },
        { "cond_timedwait", LOCK_WAIT },
    };

    for (size_t i = 0; i < sizeof ACTIONS / sizeof *ACTIONS; i++)
        if (!strcmp(event, ACTIONS[i].event))
            return ACTIONS[i].action;
    return LOCK_NONE;
}

/* A lock, and how a thread holds it while the thread's nodes are gone through. */
struct net_lock {
    const char *name; /* text of its column */
    uint64_t process;
    uint64_t depth;   /* times that the current thread has taken it and not released it */
    uint64_t taken;   /* tokens that it holds; 0: none */
    uint64_t threads; /* threads that take it: its initial tokens */
    uint64_t last;    /* the last of these threads, as the index of its first node + 1; 0: none */
};

struct net {
    const struct table *nodes, *arcs;
    FILE *out;
    struct net_lock *lock;
    uint32_t locks, room;
    uint64_t next_arc; /* number of the next arc of the net */
};

/* ---- PNML ---- */

static void net_text(const char *text, FILE *out)
{
    for (; *text; text++)
        switch (*text) {
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '&': fputs("&amp;", out); break;
        default: fputc(iscntrl((unsigned char)*text) ? '?' : *text, out);
        }
}

static void net_name(const char *text, FILE *out)
{
    fputs("<name><text>", out);
    net_text(text, out);
    fputs("</text></name>", out);
}

static void net_place(struct net *n, const char *id, uint64_t number, const char *name, uint64_t tokens)
{
    fprintf(n->out, "    <place id=\"%s%" PRIu64 "\">", id, number);
    net_name(name, n->out);
    if (tokens)
        fprintf(n->out, "<initialMarking><text>%" PRIu64 "</text></initialMarking>", tokens);
    fputs("</place>\n", n->out);
}

/* An arc between a place and a transition. */
static void net_arc(struct net *n, const char *place, uint64_t number, uint64_t node, bool enters_node, uint64_t tokens)
{
    fprintf(n->out, "    <arc id=\"a%" PRIu64 "\" ", n->next_arc++);
    if (enters_node)
        fprintf(n->out, "source=\"%s%" PRIu64 "\" target=\"t%" PRIu64 "\">", place, number, node);
    else
        fprintf(n->out, "source=\"t%" PRIu64 "\" target=\"%s%" PRIu64 "\">", node, place, number);
    fprintf(n->out, "<inscription><text>%" PRIu64 "</text></inscription></arc>\n", tokens);
}

/* ---- transitions, and places between them ---- */

static void net_transition(struct net *n, size_t node)
{
    bool is_barrier = graph_cell(n->nodes, node, N_THREAD)->empty;
    char name[200];

    if (is_barrier)
        snprintf(name, sizeof name, "barrier %s", graph_cell_text(n->nodes, node, N_OBJECT, ""));
    else
        snprintf(name, sizeof name, "thread %" PRIu64 ": %s", graph_cell(n->nodes, node, N_THREAD)->count,
                 graph_cell_text(n->nodes, node, N_FUNCTION, graph_cell_text(n->nodes, node, N_EVENT, "")));
    fprintf(n->out, "    <transition id=\"t%zu\">", node);
    net_name(name, n->out);
    fprintf(n->out,
            "<toolspecific tool=\"peet\" version=\"1\"><instructions>%" PRIu64 "</instructions><references>%" PRIu64
            "</references></toolspecific></transition>\n",
            graph_cell(n->nodes, node, N_INSTRUCTIONS)->count, graph_cell(n->nodes, node, N_REFERENCES)->count);
}

static void net_transitions(struct net *n)
{
    bool *is_entered = mem_alloc(n->nodes->rows + 1, sizeof *is_entered);

    for (size_t i = 0; i < n->arcs->rows; i++)
        is_entered[graph_cell(n->arcs, i, A_TO)->count] = true;
    for (size_t i = 0; i < n->nodes->rows; i++) {
        net_transition(n, i);
        if (is_entered[i])
            continue;
        net_place(n, "s", i, "start", 1);
        net_arc(n, "s", i, i, true, 1);
    }
    free(is_entered);
}

static void net_places(struct net *n)
{
    for (size_t i = 0; i < n->arcs->rows; i++) {
        uint64_t count = graph_cell(n->arcs, i, A_COUNT)->count;
        char name[100];
        snprintf(name, sizeof name, "%s (%s)", graph_cell_text(n->arcs, i, A_EVENT, ""),
                 graph_cell_text(n->arcs, i, A_KIND, ""));
        net_place(n, "p", i, name, 0);
        net_arc(n, "p", i, graph_cell(n->arcs, i, A_FROM)->count, false, count);
        net_arc(n, "p", i, graph_cell(n->arcs, i, A_TO)->count, true, count);
    }
}

/* ---- locks ---- */

/* The lock that a column of a node names; NULL: none. */
static struct net_lock *net_lock_of(struct net *n, size_t node, size_t column)
{
    const char *name = graph_cell_text(n->nodes, node, column, NULL);
    uint64_t process = graph_cell(n->nodes, node, N_PROCESS)->count;

    if (!name)
        return NULL;
    for (size_t i = 0; i < n->locks; i++)
        if (n->lock[i].process == process && !strcmp(n->lock[i].name, name))
            return &n->lock[i];
    n->lock = mem_reach(n->lock, &n->room, n->locks, sizeof *n->lock);
    n->lock[n->locks] = (struct net_lock){ .name = name, .process = process };
    return &n->lock[n->locks++];
}

/* A thread takes or releases a lock; the arcs are written in the second pass only. */
static void net_lock_take(struct net *n, struct net_lock *l, size_t node, bool is_writer, bool writes)
{
    if (l->depth++ > 0)
        return;
    l->taken = is_writer ? l->threads : 1;
    if (writes)
        net_arc(n, "l", (uint64_t)(l - n->lock), node, true, l->taken);
}

static void net_lock_release(struct net *n, struct net_lock *l, size_t node, bool writes)
{
    if (l->depth == 0 || --l->depth > 0)
        return;
    if (writes)
        net_arc(n, "l", (uint64_t)(l - n->lock), node, false, l->taken);
    l->taken = 0;
}

/* The event that ends a node; `next` is the node after it in the thread. */
static void net_lock_event(struct net *n, size_t node, size_t next, size_t thread, bool writes)
{
    enum lock_action action = lock_action_of(graph_cell_text(n->nodes, node, N_EVENT, ""));
    struct net_lock *l = action == LOCK_NONE ? NULL : net_lock_of(n, node, action == LOCK_WAIT ? N_LOCK : N_OBJECT);

    if (!l)
        return;
    if (!writes && l->last != thread + 1) {
        l->threads++;
        l->last = thread + 1;
    }
    if (action == LOCK_RELEASE || action == LOCK_WAIT)
        net_lock_release(n, l, node, writes);
    if (action != LOCK_RELEASE && next < n->nodes->rows)
        net_lock_take(n, l, next, action != LOCK_READER, writes);
}

/* The last node of a thread in the trace returns the locks that the thread holds: a trace that was cut off lacks what releases them. */
static void net_end_thread(struct net *n, size_t node, bool writes)
{
    for (uint32_t i = 0; i < n->locks; i++) {
        n->lock[i].depth = n->lock[i].depth > 0;
        net_lock_release(n, &n->lock[i], node, writes);
    }
}

/* Goes through the nodes of all threads. Nodes of a thread follow each other in the table; rounds of barriers are last. */
static void net_walk_locks(struct net *n, bool writes)
{
    size_t thread = 0;

    for (size_t i = 0; i < n->nodes->rows && !graph_cell(n->nodes, i, N_THREAD)->empty; i++) {
        const struct cell *next = i + 1 < n->nodes->rows ? graph_cell(n->nodes, i + 1, N_THREAD) : NULL;
        bool continues = next && !next->empty && next->count == graph_cell(n->nodes, i, N_THREAD)->count;
        net_lock_event(n, i, continues ? i + 1 : n->nodes->rows, thread, writes);
        if (!continues) {
            net_end_thread(n, i, writes);
            thread = i + 1;
        }
    }
}

static bool net_has_merged_nodes(const struct net *n)
{
    for (size_t i = 0; i < n->nodes->rows; i++)
        if (graph_cell(n->nodes, i, N_SEGMENTS)->count > 1)
            return true;
    return false;
}

static void net_locks(struct net *n)
{
    if (net_has_merged_nodes(n))
        return;
    net_walk_locks(n, false);
    for (size_t i = 0; i < n->locks; i++) {
        char name[200];
        snprintf(name, sizeof name, "lock %s", n->lock[i].name);
        net_place(n, "l", i, name, n->lock[i].threads);
    }
    net_walk_locks(n, true);
    free(n->lock);
}

void graph_petri_net(const struct result *r, FILE *out)
{
    struct net n = { .nodes = r->first, .arcs = r->first->next, .out = out };

    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
          "<pnml xmlns=\"http://www.pnml.org/version-2009/grammar/pnml\">\n"
          "  <net id=\"run\" type=\"http://www.pnml.org/version-2009/grammar/ptnet\">\n"
          "    <name><text>precedence graph</text></name>\n"
          "    <page id=\"page\">\n",
          out);
    net_transitions(&n);
    net_places(&n);
    net_locks(&n);
    fputs("    </page>\n  </net>\n</pnml>\n", out);
}
