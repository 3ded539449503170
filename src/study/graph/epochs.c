/* SPDX-License-Identifier: MIT */
/* Epochs of a run. One pass over the pieces, in the order of their ends, finds cuts and what follows them; one pass
 * back finds what precedes them.
 *
 * A round of a barrier is a cut if it follows the cut before it; so is a signal that is given because of what waiting
 * threads had written, as in a barrier that is made of a condition. Other threads may be beside it, as one that only
 * joins the others is; their pieces then lie in several epochs. A point through which all paths go is found by
 * counting ways from what has ended to what has not: a piece to which all of them lead is alone. A piece that begins
 * by itself, and one that ends without being waited for, has one way of its own, so that nothing can be said to lie
 * behind the one or before the other. */
#include <stdlib.h>

#include "base/err.h"
#include "study/graph/schedule.h"

struct cutter {
    struct epochs *e;
    const struct schedule *s;
    const struct precedence *p;
    uint32_t *ways_in;   /* by piece: how many ways lead to it */
    uint32_t *follows;   /* by piece: the last cut that its predecessors found so far follow */
    uint32_t *met;       /* by meeting: the same; on the way back, the first cut that what follows it precedes */
    uint32_t *met_cut;   /* by meeting: the cut that it is, or 0 */
    uint32_t *begin_cut; /* by piece: the cut before it, which it follows and all that it needs precedes, or 0 */
    bool *is_signal;     /* by piece: a signal is given in it because of what waiting threads had written */
    uint32_t *
        whole_cut; /* by position in the order: all pieces before it precede this cut, which all others follow; 0: there is none */
    uint64_t open;       /* ways from what has ended to what has not */
    uint32_t cut, floor; /* the newest cut; the newest that all that is to come follows */
    bool is_new;         /* no piece follows the newest cut yet */
    uint32_t alone;      /* the thread that has the run for itself, or PIECE_NONE */
};

static uint32_t cutter_lower(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t cutter_higher(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* The meeting behind which a piece begins, or PIECE_NONE. */
static uint32_t cutter_meeting_before(const struct cutter *c, uint32_t piece)
{
    return piece > 0 && piece_has_next(c->p, piece - 1) ? c->s->meeting[piece - 1] : PIECE_NONE;
}

static void cutter_cut(struct cutter *c)
{
    c->cut += !c->is_new;
    c->is_new = true;
    c->alone = PIECE_NONE;
}

static void cutter_count_ways(struct cutter *c)
{
    const struct precedence *p = c->p;

    for (uint32_t i = 0; i < p->pieces; i++)
        if (piece_has_next(p, i))
            c->ways_in[i + 1]++;
    for (size_t i = 0; i < p->arcs; i++) {
        c->ways_in[p->arc[i].to] += arc_is_known(&p->arc[i]);
        c->is_signal[p->arc[i].to] |= p->arc[i].kind == PEET_EV_cond_broadcast && arc_is_known(&p->arc[i]);
    }
    for (uint32_t i = 0; i < p->pieces; i++)
        c->open += c->ways_in[i] == 0;
}

static uint64_t cutter_ways_out(const struct precedence *p, uint32_t piece)
{
    uint64_t n = piece_has_next(p, piece);

    for (uint64_t i = p->first_arc[piece]; i < p->first_arc[piece + 1]; i++)
        n += arc_is_known(&p->arc[i]);
    return n ? n : 1;
}

/* All that the piece precedes follows what it follows. */
static void cutter_tell(struct cutter *c, uint32_t piece, uint32_t cut)
{
    const struct precedence *p = c->p;
    uint32_t m = c->s->meeting[piece];

    if (m != PIECE_NONE)
        c->met[m] = cutter_higher(c->met[m], cut);
    else if (piece_has_next(p, piece))
        c->follows[piece + 1] = cutter_higher(c->follows[piece + 1], cut);
    for (uint64_t i = p->first_arc[piece]; i < p->first_arc[piece + 1]; i++)
        if (arc_is_known(&p->arc[i]))
            c->follows[p->arc[i].to] = cutter_higher(c->follows[p->arc[i].to], cut);
}

static void cutter_pass(struct cutter *c, uint32_t position)
{
    uint32_t piece = c->s->order[position], lane = c->p->piece[piece].lane;
    uint32_t ways = c->ways_in[piece] ? c->ways_in[piece] : 1, before = cutter_meeting_before(c, piece);
    bool is_alone = c->open == ways;

    if (is_alone ? c->alone != lane : c->alone != PIECE_NONE) {
        cutter_cut(c);
        c->floor = c->whole_cut[position] = c->cut;
    }
    uint32_t from = cutter_higher(c->follows[piece], c->floor);
    if (before != PIECE_NONE)
        from = cutter_higher(from, c->met[before]);
    if (c->is_signal[piece] && from == c->cut && !c->is_new) {
        cutter_cut(c);
        from = c->begin_cut[piece] = c->cut;
    }
    c->e->from[piece] = from;
    c->is_new = c->is_new && from < c->cut;
    c->alone = is_alone ? lane : PIECE_NONE;
    c->open += cutter_ways_out(c->p, piece) - ways;
    cutter_tell(c, piece, from);
    uint32_t m = c->s->meeting[piece];
    if (m != PIECE_NONE && c->s->met[m].last == piece && c->met[m] == c->cut && !c->is_new) {
        cutter_cut(c);
        c->met[m] = c->met_cut[m] = c->cut;
    }
}

/* The first cut that all that a piece needs precedes. */
static uint32_t cutter_limit(const struct cutter *c, uint32_t piece)
{
    return c->begin_cut[piece] ? c->begin_cut[piece] : c->e->until[piece];
}

/* From the last piece to the first. */
static void cutter_go_back(struct cutter *c)
{
    const struct precedence *p = c->p;
    uint32_t *until = c->e->until, least = c->cut + 1;

    for (uint32_t i = 0; i < c->s->meetings; i++)
        c->met[i] = c->met_cut[i] ? c->met_cut[i] : least;
    for (uint32_t n = p->pieces; n-- > 0;) {
        uint32_t piece = c->s->order[n], m = c->s->meeting[piece], before = cutter_meeting_before(c, piece);
        until[piece] = least;
        if (m != PIECE_NONE)
            until[piece] = cutter_lower(until[piece], c->met[m]);
        else if (piece_has_next(p, piece))
            until[piece] = cutter_lower(until[piece], cutter_limit(c, piece + 1));
        for (uint64_t i = p->first_arc[piece]; i < p->first_arc[piece + 1]; i++)
            if (arc_is_known(&p->arc[i]))
                until[piece] = cutter_lower(until[piece], cutter_limit(c, p->arc[i].to));
        if (before != PIECE_NONE)
            c->met[before] = cutter_lower(c->met[before], cutter_limit(c, piece));
        if (c->whole_cut[n])
            least = cutter_lower(least, c->whole_cut[n]);
    }
}

/* A thread is one thing after another, also where its pieces need not be: those of iterations that it recorded. */
static void cutter_straighten(struct cutter *c)
{
    const struct epochs *e = c->e;

    for (size_t i = 0; i < c->p->lanes; i++) {
        const struct lane *l = &c->p->lane[i];
        for (uint32_t k = l->first + 1; k < l->first + l->pieces; k++) {
            e->from[k] = cutter_higher(e->from[k], e->from[k - 1]);
            e->until[k] = cutter_higher(cutter_higher(e->until[k], e->until[k - 1]), e->from[k] + 1);
        }
    }
}

int epochs_make(struct epochs *e, const struct schedule *s, const struct precedence *p, struct peet_err *err)
{
    size_t n = (size_t)p->pieces + 1, meetings = (size_t)s->meetings + 1;
    struct cutter c = { .e = e, .s = s, .p = p, .is_new = true, .alone = PIECE_NONE };

    *e = (struct epochs){ calloc(n, sizeof *e->from), calloc(n, sizeof *e->until), 1 };
    c.ways_in = calloc(n, sizeof *c.ways_in);
    c.follows = calloc(n, sizeof *c.follows);
    c.met = calloc(meetings, sizeof *c.met);
    c.met_cut = calloc(meetings, sizeof *c.met_cut);
    c.whole_cut = calloc(n, sizeof *c.whole_cut);
    c.begin_cut = calloc(n, sizeof *c.begin_cut);
    c.is_signal = calloc(n, sizeof *c.is_signal);
    bool fits = e->from && e->until && c.ways_in && c.follows && c.met && c.met_cut && c.whole_cut && c.begin_cut
                && c.is_signal;
    if (fits && s->broken) { /* some order is not what it should be, and nothing is certain */
        for (uint32_t i = 0; i < p->pieces; i++)
            e->until[i] = 1;
    } else if (fits) {
        cutter_count_ways(&c);
        for (uint32_t i = 0; i < p->pieces; i++)
            cutter_pass(&c, i);
        cutter_go_back(&c);
        cutter_straighten(&c);
        e->count = c.cut + 1;
    }
    free(c.ways_in);
    free(c.follows);
    free(c.met);
    free(c.met_cut);
    free(c.whole_cut);
    free(c.begin_cut);
    free(c.is_signal);
    if (fits)
        return 0;
    epochs_release(e);
    return err_set(err, PEET_ERR_MEMORY, "no memory for the epochs of a run");
}

void epochs_release(struct epochs *e)
{
    free(e->from);
    free(e->until);
    *e = (struct epochs){ 0 };
}
