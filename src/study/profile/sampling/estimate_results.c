/* SPDX-License-Identifier: MIT */
/* The estimators. Intervals that end in an unknown reference are dead as often as unknown references are misses, which is found by turns. Sums over all objects are
 * made when somebody asks. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/sample.h"
#include "study/profile/sampling/estimate_in.h"
#include "study/profile/sampling/interval.h"

enum {
    FEW = 8,    /* generations of an object: fewer say nothing */
    ROUNDS = 8, /* until it is known how open intervals end */
    UNSEEN = 3, /* chosen sets: if as many as they stand for are different, 1 of 20 choices has none of these */
    SURE = 3,   /* deviations */
    PRIOR = 4,  /* short intervals: what is known of all objects counts as much as that for one of them */
};

/* ---- sums over all objects ---- */

static void interval_mass_sum(struct interval_mass *to, const struct interval_mass *m)
{
    to->sum += m->sum;
    to->squares += m->squares;
}

static void object_tally_sum(const struct estimate *e, struct object_tally *to, const struct object_tally *t)
{
    to->references += t->references;
    to->misses += t->misses;
    to->unknown += t->unknown;
    to->generations += t->generations;
    to->dead += t->dead;
    to->generation += t->generation;
    to->fresh += t->fresh;
    interval_mass_sum(&to->dead_mass, &t->dead_mass);
    interval_mass_sum(&to->live_mass, &t->live_mass);
    for (size_t i = 0; t->ages.dead && i < e->config.ways * (e->bins + 1); i++) {
        to->ages.dead[i] += t->ages.dead[i];
        to->ages.live[i] += t->ages.live[i];
        to->ages.open[i] += t->ages.open[i];
        to->ages.unknown[i] += t->ages.unknown[i];
    }
    for (unsigned i = 0; i < ESTIMATE_GROUPS; i++) {
        to->group[i].references += t->group[i].references;
        to->group[i].misses += t->group[i].misses;
        to->group[i].unknown += t->group[i].unknown;
    }
}

/* ---- estimators ---- */

/* What covers a bin: its weight, and how much of it is dead. Of what is open, so much is. */
struct cover {
    double dead, live, open;
};

static void cover_add(struct cover *c, const struct age_bins *a, size_t at)
{
    c->dead += a->dead[at];
    c->live += a->live[at];
    c->open += a->open[at];
}

static double not_below_0(double x)
{
    return x > 0 ? x : 0;
}

static double cover_dead(const struct cover *c, double of_open)
{
    return not_below_0(c->dead) + of_open * not_below_0(c->open);
}

static double cover_all(const struct cover *c)
{
    return not_below_0(c->dead) + not_below_0(c->live) + not_below_0(c->open);
}

/* Of an object's unknown references behind j others in their sets, how many are expected to miss. `last` is what was found for the last
 * bin, of j - 1 at first, for times of which nothing is known. */
static double age_misses(const struct estimate *e, const struct object_tally *t, const struct object_tally *all,
                         uint32_t j, double of_open, double *last)
{
    struct cover own = { 0 }, others = { 0 };
    double least = 0.5 / (double)e->config.length, prior = PRIOR / (double)e->config.length, sum = 0;

    for (size_t i = 0, at = j * (e->bins + 1); i < e->bins; i++, at++) {
        cover_add(&own, &t->ages, at);
        cover_add(&others, &all->ages, at);
        if (cover_all(&others) > least) /* what is less is rounding */
            *last = cover_dead(&others, all->of_open) / cover_all(&others);
        double p = *last, known = cover_all(&own);
        if (known > least)
            p = (cover_dead(&own, of_open) + prior * p) / (known + prior);
        sum += p * (double)t->ages.unknown[at];
    }
    return sum;
}

/* The part of the unknown references that miss. Of those behind others it is what of_open should be. */
static double age_round(const struct estimate *e, const struct object_tally *t, const struct object_tally *all,
                        double *of_open)
{
    double sum = 0, after_first = 0, last = 0.5;
    uint64_t unknown = t->unknown, first = 0;

    for (size_t i = 0; i < e->bins; i++)
        first += t->ages.unknown[i];
    for (uint32_t j = 0; j < e->config.ways; j++) {
        double here = age_misses(e, t, all, j, *of_open, &last);
        sum += here;
        after_first += j > 0 ? here : 0;
    }
    if (unknown > first)
        *of_open = after_first / (double)(unknown - first);
    return sum / (double)unknown;
}

static double age_mu(const struct estimate *e, const struct object_tally *t, const struct object_tally *all)
{
    double of_open = all->of_open, mu = 0.5;

    if (t->unknown == 0)
        return mu;
    for (unsigned i = 0; i < (e->config.ways > 1 ? ROUNDS : 1); i++)
        mu = age_round(e, t, all, &of_open);
    return mu;
}

/* Batches are summed at the end of each sample; all else here. */
static const struct object_tally *estimate_all(struct estimate *e)
{
    struct object_tally *a = &e->all;
    size_t n = e->config.ways * (e->bins + 1);

    if (e->has_all)
        return a;
    a->references = a->misses = a->unknown = a->generations = 0;
    a->dead = a->generation = a->fresh = 0;
    a->dead_mass = a->live_mass = (struct interval_mass){ 0 };
    memset(a->ages.dead, 0, n * sizeof *a->ages.dead);
    memset(a->ages.live, 0, n * sizeof *a->ages.live);
    memset(a->ages.open, 0, n * sizeof *a->ages.open);
    memset(a->ages.unknown, 0, n * sizeof *a->ages.unknown);
    memset(a->group, 0, sizeof a->group);
    for (uint32_t i = 0; i < e->objects; i++)
        object_tally_sum(e, a, &e->tally[i]);
    a->of_open = 0.5;
    for (unsigned i = 0; i < ROUNDS && a->unknown > 0 && e->config.ways > 1; i++)
        age_round(e, a, a, &a->of_open);
    e->has_all = true;
    return a;
}

double estimate_pooled_age(struct estimate *e)
{
    const struct object_tally *all = estimate_all(e);

    return age_mu(e, all, all);
}

static double generation_mu(const struct object_tally *t, const struct object_tally *all)
{
    if (t->generations >= FEW)
        return (double)t->dead / (double)t->generation;
    return all->generations > 0 ? (double)all->dead / (double)all->generation : 0.5;
}

/* All objects together miss what each of them misses. */
static double sum_of_ages(struct estimate *e, const struct object_tally *all)
{
    double sum = 0;

    for (uint32_t i = 0; i < e->objects; i++)
        if (e->tally[i].unknown > 0)
            sum += age_mu(e, &e->tally[i], all) * (double)e->tally[i].unknown;
    return all->unknown > 0 ? sum / (double)all->unknown : 0.5;
}

static double estimate_mu(struct estimate *e, const struct object_tally *t, const struct object_tally *all,
                          enum estimator which)
{
    switch (which) {
    case ESTIMATE_generation: return generation_mu(t, all);
    case ESTIMATE_age: return t == all ? sum_of_ages(e, all) : age_mu(e, t, all);
    default: return 0.5;
    }
}

/* ---- results ---- */

static double ratio_or_0(double a, double b)
{
    return b > 0 ? a / b : 0;
}

void estimate_set_run(struct estimate *e, const struct estimate_run *run)
{
    e->run = *run;
}

/* Half of the interval of what a reference holds, from what batches hold. */
static double estimate_spread(const struct estimate *e, const double *held, double most)
{
    return interval_error(&(struct interval_windows){ e->batches, e->sample, e->batch_references, held, e->largest,
                                                      e->run.observed, e->run.missed, most });
}

/* Of the misses of an object. If no sample has seen one, in what is not seen its references are taken to miss as those of all objects do; if
 * no sample has seen a reference, there may be as many misses as of all. */
static double estimate_spread_of_misses(const struct estimate *e, const struct object_tally *t,
                                        const struct object_tally *all, double mu)
{
    double held[ESTIMATE_BATCHES], n = (double)e->references;
    double rate = ratio_or_0((double)all->misses + 0.5 * (double)all->unknown, n);

    for (uint32_t i = 0; i < e->batches; i++)
        held[i] = (double)t->batch[i].misses + mu * (double)t->batch[i].unknown;
    return estimate_spread(e, held, rate * (t->references ? ratio_or_0((double)t->references, n) : 1));
}

double estimate_time(struct estimate *e, double mu, double less, double *ret_spread)
{
    double held[ESTIMATE_BATCHES], sum = 0;

    for (uint32_t i = 0; i < e->batches; i++) {
        held[i] = not_below_0(e->batch_time[i] - (1 - mu) * (double)e->all.batch[i].unknown * less);
        sum += held[i];
    }
    *ret_spread = estimate_spread(e, held, 0);
    return ratio_or_0(sum, (double)e->references);
}

/* Unknown references for which intervals stand that are known to have ended so: at least. Both what was seen whole and what was cut off are there by chance. */
static double interval_mass_least(const struct interval_mass *m)
{
    return not_below_0(m->sum - SURE * sqrt(m->squares + m->sum));
}

/* Of the unknown references, some are as intervals that were seen whole, which ended in misses or hits. Of the rest, which end longer intervals than windows show,
 * nothing is known: all or none of them may miss. */
static void estimate_find_range(const struct object_tally *t, struct estimate_result *ret)
{
    double dead = interval_mass_least(&t->dead_mass), live = interval_mass_least(&t->live_mass);
    double whole = fmax((double)t->unknown, dead + live);

    ret->mu_low = ratio_or_0(dead, whole);
    ret->mu_high = t->unknown ? 1 - ratio_or_0(live, whole) : 0;
}

void estimate_result(struct estimate *e, uint32_t object, struct estimate_result *ret)
{
    static const struct object_tally NOTHING;
    const struct object_tally *all = estimate_all(e), *t = object == ESTIMATE_ALL ? all : &NOTHING;
    double frames = (double)(e->config.sets * e->config.ways) * e->sample, n = (double)e->references;

    assert(!e->is_open);
    if (object != ESTIMATE_ALL && object < e->objects)
        t = &e->tally[object];
    *ret = (struct estimate_result){ .samples = e->sample,
                                     .references = t->references,
                                     .misses = t->misses,
                                     .unknown = t->unknown,
                                     .generations = t->generations };
    double k = (double)t->misses, u = (double)t->unknown;
    ret->quality = ratio_or_0((double)t->generations, frames);
    ret->touched = ratio_or_0(u, frames);
    ret->low = ratio_or_0(k, (double)t->references);
    ret->high = ratio_or_0(k + u, (double)t->references);
    ret->fresh = t->fresh;
    estimate_find_range(t, ret);
    for (enum estimator i = 0; i < ESTIMATORS_COUNT; i++) {
        ret->mu[i] = estimate_mu(e, t, all, i);
        ret->rate[i] = ratio_or_0(k + ret->mu[i] * u, (double)t->references);
        ret->share[i] = ratio_or_0(k + ret->mu[i] * u, n);
        ret->spread[i] = estimate_spread_of_misses(e, t, all, ret->mu[i]);
    }
}

uint64_t estimate_references(struct estimate *e)
{
    return estimate_all(e)->references;
}

double estimate_largest(const struct estimate *e)
{
    return e->largest;
}

uint32_t estimate_objects(const struct estimate *e)
{
    return e->objects;
}

/* ---- samples of sets ---- */

void estimate_sets(struct estimate *e, uint32_t object, enum estimator by_which, double fraction, double run,
                   struct estimate_sets *ret)
{
    const struct object_tally *all = estimate_all(e), *t = object == ESTIMATE_ALL ? all : &e->tally[object];
    double mu = estimate_mu(e, t, all, by_which), misses = (double)t->misses + mu * (double)t->unknown;
    double n = (double)e->references, window = n + (double)e->others; /* references of the samples to whatever set */
    double ratio = ratio_or_0(misses, n), squares = 0, ratio_squares = 0;
    double width = sample_student(0.95, ESTIMATE_GROUPS - 1) * sqrt((double)ESTIMATE_GROUPS / (ESTIMATE_GROUPS - 1));

    assert(!e->is_open && (object == ESTIMATE_ALL || object < e->objects));
    for (unsigned i = 0; i < ESTIMATE_GROUPS; i++) {
        double here = (double)t->group[i].misses + mu * (double)t->group[i].unknown;
        double off = here - misses / ESTIMATE_GROUPS, ratio_off = here - ratio * (double)all->group[i].references;
        squares += off * off;
        ratio_squares += ratio_off * ratio_off;
    }
    *ret = (struct estimate_sets){ .ratio = ratio * run, .fraction = ratio_or_0(misses / fraction * run, window) };
    ret->ratio_error = ratio_or_0(width * sqrt(ratio_squares) * run, n);
    ret->fraction_error = ratio_or_0(width * sqrt(squares) / fraction * run, window);
    /* Regular programs do the same to all chosen sets, and yet to some of the others they do not: data ends somewhere, and has a line less from there on. Where a part p of the
     * sets is different, none of n chosen ones shows it with (1 - p)^n, which is 5 % for p = 3/n. What is different is taken to miss not at all, or twice as often. */
    double unseen = fmin(1, UNSEEN / fmax(1, fraction * (double)e->config.sets));
    ret->ratio_error = fmax(ret->ratio_error, unseen * ret->ratio);
    ret->fraction_error = fmax(ret->fraction_error, unseen * ret->fraction);
    double larger = fmax(ret->ratio, ret->fraction), smaller = fmin(ret->ratio, ret->fraction);
    ret->disagree = larger > smaller / 0.9;
}
