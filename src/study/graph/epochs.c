/* SPDX-License-Identifier: MIT */
/* Epochs of a run (docs/design/studies.md, "Epochs"). One pass over the segments, in the order of their ends, finds cuts and the cuts that
 * segments follow; one pass back finds the cuts that segments precede. A cut is a round of a barrier, a signal that depends on what waiting
 * threads wrote, or a point through which all paths lead; the last kind is found by counting paths from ended to open segments. */
#include <stdlib.h>

#include "base/err.h"
#include "study/graph/schedule.h"

/* Finds cuts: the state of the forward and the backward pass over segments. */
struct cutter {
    struct epochs *e;           /* result */
    const struct schedule *s;   /* order of segments, rounds of barriers */
    const struct precedence *p; /* graph */
    uint32_t *arcs_in;          /* by segment: known arcs to it, program order included */
    uint32_t *follows;          /* by segment: last cut that its predecessors follow, of those passed so far */
    uint32_t *round_follows;    /* forward pass, by round: last cut that its arrivals follow */
    uint32_t *round_precedes;   /* backward pass, by round: first cut that its successors precede */
    uint32_t *cut_of_round;     /* by round: its number as a cut; 0: none */
    uint32_t *begin_cut;        /* by segment: number of the cut that is its begin; 0: none */
    bool *is_signal;            /* by segment: it gives a signal that depends on what waiting threads wrote */
    uint32_t *
        whole_cut; /* by position in the order: number of the cut between all earlier and all later segments; 0: none */
    uint64_t
        open; /* arcs from segments that have ended to segments that have not; at least one out of each last segment */
    uint32_t cut;   /* number of the newest cut; 0: the begin of the run */
    uint32_t floor; /* number of the newest cut that all later segments follow */
    bool is_new;    /* no segment follows the newest cut yet, so that a further condition adds no cut */
    uint32_t alone; /* thread that runs alone at the current position; SEGMENT_NONE: none */
};

static uint32_t cutter_lower(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t cutter_higher(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* The round after which a segment begins; SEGMENT_NONE: none. */
static uint32_t cutter_round_before(const struct cutter *c, uint32_t segment)
{
    return segment > 0 && segment_has_next(c->p, segment - 1) ? c->s->round_of[segment - 1] : SEGMENT_NONE;
}

static void cutter_cut(struct cutter *c)
{
    c->cut += !c->is_new;
    c->is_new = true;
    c->alone = SEGMENT_NONE;
}

static void cutter_count_arcs(struct cutter *c)
{
    const struct precedence *p = c->p;

    for (uint32_t i = 0; i < p->segments; i++)
        if (segment_has_next(p, i))
            c->arcs_in[i + 1]++;
    for (size_t i = 0; i < p->arcs; i++) {
        c->arcs_in[p->arc[i].to] += arc_is_known(&p->arc[i]);
        c->is_signal[p->arc[i].to] |= p->arc[i].kind == PEET_EV_cond_broadcast && arc_is_known(&p->arc[i]);
    }
    for (uint32_t i = 0; i < p->segments; i++)
        c->open += c->arcs_in[i] == 0;
}

static uint64_t cutter_arcs_out(const struct precedence *p, uint32_t segment)
{
    uint64_t n = segment_has_next(p, segment);

    for (uint64_t i = p->first_arc[segment]; i < p->first_arc[segment + 1]; i++)
        n += arc_is_known(&p->arc[i]);
    return n ? n : 1;
}

/* Successors of the segment follow the cuts that it follows. */
static void cutter_pass_on(struct cutter *c, uint32_t segment, uint32_t cut)
{
    const struct precedence *p = c->p;
    uint32_t m = c->s->round_of[segment];

    if (m != SEGMENT_NONE)
        c->round_follows[m] = cutter_higher(c->round_follows[m], cut);
    else if (segment_has_next(p, segment))
        c->follows[segment + 1] = cutter_higher(c->follows[segment + 1], cut);
    for (uint64_t i = p->first_arc[segment]; i < p->first_arc[segment + 1]; i++)
        if (arc_is_known(&p->arc[i]))
            c->follows[p->arc[i].to] = cutter_higher(c->follows[p->arc[i].to], cut);
}

static void cutter_pass(struct cutter *c, uint32_t position)
{
    uint32_t segment = c->s->order[position], thread = c->p->segment[segment].thread;
    uint32_t arcs = c->arcs_in[segment] ? c->arcs_in[segment] : 1, before = cutter_round_before(c, segment);
    bool is_alone = c->open == arcs;

    if (is_alone ? c->alone != thread : c->alone != SEGMENT_NONE) {
        cutter_cut(c);
        c->floor = c->whole_cut[position] = c->cut;
    }
    uint32_t from = cutter_higher(c->follows[segment], c->floor);
    if (before != SEGMENT_NONE)
        from = cutter_higher(from, c->round_follows[before]);
    if (c->is_signal[segment] && from == c->cut && !c->is_new) {
        cutter_cut(c);
        from = c->begin_cut[segment] = c->cut;
    }
    c->e->from[segment] = from;
    c->is_new = c->is_new && from < c->cut;
    c->alone = is_alone ? thread : SEGMENT_NONE;
    c->open += cutter_arcs_out(c->p, segment) - arcs;
    cutter_pass_on(c, segment, from);
    uint32_t m = c->s->round_of[segment];
    if (m != SEGMENT_NONE && c->s->round[m].last == segment && c->round_follows[m] == c->cut && !c->is_new) {
        cutter_cut(c);
        c->round_follows[m] = c->cut_of_round[m] = c->cut;
    }
}

/* The first cut that the predecessors of a segment precede. */
static uint32_t cutter_limit(const struct cutter *c, uint32_t segment)
{
    return c->begin_cut[segment] ? c->begin_cut[segment] : c->e->until[segment];
}

/* The pass from the last segment to the first. */
static void cutter_go_back(struct cutter *c)
{
    const struct precedence *p = c->p;
    uint32_t *until = c->e->until, least = c->cut + 1;

    for (uint32_t i = 0; i < c->s->rounds; i++)
        c->round_precedes[i] = c->cut_of_round[i] ? c->cut_of_round[i] : least;
    for (uint32_t n = p->segments; n-- > 0;) {
        uint32_t segment = c->s->order[n], m = c->s->round_of[segment], before = cutter_round_before(c, segment);
        until[segment] = least;
        if (m != SEGMENT_NONE)
            until[segment] = cutter_lower(until[segment], c->round_precedes[m]);
        else if (segment_has_next(p, segment))
            until[segment] = cutter_lower(until[segment], cutter_limit(c, segment + 1));
        for (uint64_t i = p->first_arc[segment]; i < p->first_arc[segment + 1]; i++)
            if (arc_is_known(&p->arc[i]))
                until[segment] = cutter_lower(until[segment], cutter_limit(c, p->arc[i].to));
        if (before != SEGMENT_NONE)
            c->round_precedes[before] = cutter_lower(c->round_precedes[before], cutter_limit(c, segment));
        if (c->whole_cut[n])
            least = cutter_lower(least, c->whole_cut[n]);
    }
}

/* Within a thread, neither number decreases: also not among iterations of a parallel loop, which could have run in another order. */
static void cutter_straighten(struct cutter *c)
{
    const struct epochs *e = c->e;

    for (size_t i = 0; i < c->p->threads; i++) {
        const struct graph_thread *l = &c->p->thread[i];
        for (uint32_t k = l->first + 1; k < l->first + l->segments; k++) {
            e->from[k] = cutter_higher(e->from[k], e->from[k - 1]);
            e->until[k] = cutter_higher(cutter_higher(e->until[k], e->until[k - 1]), e->from[k] + 1);
        }
    }
}

int epochs_make(struct epochs *e, const struct schedule *s, const struct precedence *p, struct peet_err *err)
{
    size_t n = (size_t)p->segments + 1, rounds = (size_t)s->rounds + 1;
    struct cutter c = { .e = e, .s = s, .p = p, .is_new = true, .alone = SEGMENT_NONE };

    *e = (struct epochs){ calloc(n, sizeof *e->from), calloc(n, sizeof *e->until), 1 };
    c.arcs_in = calloc(n, sizeof *c.arcs_in);
    c.follows = calloc(n, sizeof *c.follows);
    c.round_follows = calloc(rounds, sizeof *c.round_follows);
    c.round_precedes = calloc(rounds, sizeof *c.round_precedes);
    c.cut_of_round = calloc(rounds, sizeof *c.cut_of_round);
    c.whole_cut = calloc(n, sizeof *c.whole_cut);
    c.begin_cut = calloc(n, sizeof *c.begin_cut);
    c.is_signal = calloc(n, sizeof *c.is_signal);
    bool fits = e->from && e->until && c.arcs_in && c.follows && c.round_follows && c.round_precedes && c.cut_of_round
                && c.whole_cut && c.begin_cut && c.is_signal;
    if (fits && s->forced) { /* waits were left out, so that no order is certain */
        for (uint32_t i = 0; i < p->segments; i++)
            e->until[i] = 1;
    } else if (fits) {
        cutter_count_arcs(&c);
        for (uint32_t i = 0; i < p->segments; i++)
            cutter_pass(&c, i);
        cutter_go_back(&c);
        cutter_straighten(&c);
        e->count = c.cut + 1;
    }
    free(c.arcs_in);
    free(c.follows);
    free(c.round_follows);
    free(c.round_precedes);
    free(c.cut_of_round);
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
