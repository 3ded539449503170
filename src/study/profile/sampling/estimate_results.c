/* SPDX-License-Identifier: MIT */
/* The estimators (docs/design/sampling.md). Open intervals end in a miss as often as unknown references are misses: a fixed point, found by iteration. Sums over
 * all objects are made on demand. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/sample.h"
#include "study/profile/sampling/estimate_in.h"
#include "study/profile/sampling/interval.h"

enum {
    FEW = 8,    /* generations of an object; with fewer, those of all objects are taken */
    ROUNDS = 8, /* iterations of the fixed point */
    UNSEEN =
        3, /* rule of three: with n sampled sets, a part 3 / n of all sets can be different and not sampled, in 1 of 20 cases */
    SURE = 3,  /* standard deviations */
    PRIOR = 4, /* short intervals as which the estimate of all objects counts for one object */
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

/* Weights of the intervals that contain a bin, by how they end. */
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

/* The expected misses of an object's unknown references that are preceded by j known lines of their set. *last: probability of the last bin, first
 * that of j - 1; it stands for bins that no interval contains. */
static double age_misses(const struct estimate *e, const struct object_tally *t, const struct object_tally *all,
                         uint32_t j, double of_open, double *last)
{
    struct cover own = { 0 }, others = { 0 };
    double least = 0.5 / (double)e->config.length, prior = PRIOR / (double)e->config.length, sum = 0;

    for (size_t i = 0, at = j * (e->bins + 1); i < e->bins; i++, at++) {
        cover_add(&own, &t->ages, at);
        cover_add(&others, &all->ages, at);
        if (cover_all(&others) > least) /* less is a rounding error */
            *last = cover_dead(&others, all->of_open) / cover_all(&others);
        double p = *last, known = cover_all(&own);
        if (known > least)
            p = (cover_dead(&own, of_open) + prior * p) / (known + prior);
        sum += p * (double)t->ages.unknown[at];
    }
    return sum;
}

/* One iteration: returns the part of the unknown references that miss; *of_open becomes that part of those preceded by known lines. */
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

/* The sums over all objects. Batches are summed at the end of each sample, all other counts here. */
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

/* mu of all objects together: the mean of theirs, by unknown references. */
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

/* Half of the interval of 95 % of a mean by reference. held: sums by batch; most: what one reference can hold at most. */
static double estimate_spread(const struct estimate *e, const double *held, double most)
{
    return interval_error(&(struct interval_windows){ e->batches.count, e->sample, e->batches.references, held,
                                                      e->batches.largest, e->run.observed, e->run.missed, most });
}

/* Half of the interval of an object's misses by reference. An object without misses in samples can miss, between them, as often as all objects do; an
 * object without references in samples can have as many misses as all objects together. */
static double estimate_spread_of_misses(const struct estimate *e, const struct object_tally *t,
                                        const struct object_tally *all, double mu)
{
    double held[ESTIMATE_BATCHES], n = (double)e->references;
    double rate = ratio_or_0((double)all->misses + 0.5 * (double)all->unknown, n);

    for (uint32_t i = 0; i < e->batches.count; i++)
        held[i] = (double)t->batch[i].misses + mu * (double)t->batch[i].unknown;
    return estimate_spread(e, held, rate * (t->references ? ratio_or_0((double)t->references, n) : 1));
}

double estimate_time(struct estimate *e, double mu, double less, double *ret_spread)
{
    double held[ESTIMATE_BATCHES], sum = 0;

    for (uint32_t i = 0; i < e->batches.count; i++) {
        held[i] = not_below_0(e->batches.cycles[i] - (1 - mu) * (double)e->all.batch[i].unknown * less);
        sum += held[i];
    }
    *ret_spread = estimate_spread(e, held, 0);
    return ratio_or_0(sum, (double)e->references);
}

/* A lower bound of the unknown references for which intervals stand: the sum less SURE deviations of intervals and of references. */
static double interval_mass_least(const struct interval_mass *m)
{
    return not_below_0(m->sum - SURE * sqrt(m->squares + m->sum));
}

/* Finds the bounds of mu. Intervals within samples stand for some of the unknown references, with a known end. The rest ends longer intervals than
 * samples can contain: all or none of them may miss. */
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
    return e->batches.largest;
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
    double n = (double)e->references, window = n + (double)e->others; /* references of the samples to all sets */
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
    /* A regular program can do the same to all sampled sets and not to some others: data ends in some set. If a part p of the sets is different,
     * none of n sampled sets is with probability (1 - p)^n, 5 % for p = 3/n. Different sets are taken to miss never, or twice as often. */
    double unseen = fmin(1, UNSEEN / fmax(1, fraction * (double)e->config.sets));
    ret->ratio_error = fmax(ret->ratio_error, unseen * ret->ratio);
    ret->fraction_error = fmax(ret->fraction_error, unseen * ret->fraction);
    double larger = fmax(ret->ratio, ret->fraction), smaller = fmin(ret->ratio, ret->fraction);
    ret->disagree = larger > smaller / 0.9;
}
