/* SPDX-License-Identifier: MIT */
/* Trips of a loop whose references grow by fixed steps. A cluster is looked at when one of its references comes to another line, or its base to another object; in
 * all other trips it does what it did, as long as nobody takes its lines away, and is only counted. Its lines are stamped when it leaves
 * them, and before anybody wants to know. */
#include <string.h>

#include "sim/solo_state.h"

enum { MOST_SITES = 64 }; /* of stretches that are done so: a bit each */

static uint64_t base_at(const struct solo *s, unsigned cluster, uint64_t trip)
{
    return s->base[cluster] + trip * s->step[cluster];
}

/* ---- stamps ---- */

static void stamp(struct solo *s, uint32_t entry, uint64_t number)
{
    uint64_t *at = &s->first[entry].stamp;

    *at = *at < number ? number : *at;
}

/* The lines of a cluster whose base that is, in the trip that begins with that number; those of its sites that are below `sites`. */
static void stamp_cluster(struct solo *s, const struct solo_stretch *x, const struct solo_cluster *c, uint64_t base,
                          uint64_t number, unsigned sites)
{
    uint64_t first = (base + c->first) >> s->shift;

    if (c->order < sites && (base + c->last) >> s->shift == first) {
        stamp(s, c->hint[0], number + c->order);
        return;
    }
    for (unsigned i = 0; i < c->sites && c->site[i] < sites; i++) {
        uint64_t line = (base + (uint64_t)x->site[c->site[i]].disp) >> s->shift;
        stamp(s, c->hint[line != first], number + c->site[i]);
    }
}

/* Those that are known, up to the trip before this one. */
static void stamp_all(struct solo *s, const struct solo_stretch *x, uint64_t trip)
{
    for (unsigned i = 0; i < x->clusters; i++)
        if (s->is_known[i])
            stamp_cluster(s, x, &x->cluster[i], base_at(s, i, trip - 1), s->number - x->sites, x->sites);
}

/* All clusters have to be looked at in that trip. */
static void look_at_all(struct solo *s, const struct solo_stretch *x, uint64_t trip)
{
    for (unsigned i = 0; i < x->clusters; i++) {
        s->next[i] = trip;
        s->is_known[i] = false;
    }
}

/* ---- how long nothing changes ---- */

/* In how many more trips all its references stay on their lines. */
static uint64_t trips_on_lines(const struct solo *s, const struct solo_stretch *x, const struct solo_cluster *c,
                               uint64_t base, int64_t step, uint64_t by)
{
    uint64_t inside = s->length - 1, least = UINT64_MAX;

    if (by > inside)
        return 0;
    for (unsigned i = 0; i < c->sites; i++) {
        const struct solo_site *site = &x->site[c->site[i]];
        uint64_t addr = base + (uint64_t)site->disp;
        uint64_t way = step < 0 ? addr & inside : inside - ((addr + site->size - 1) & inside);
        least = way < least ? way : least;
    }
    return (by & (by - 1)) == 0 ? least >> __builtin_ctzll(by) : (uint32_t)least / (uint32_t)by;
}

static uint64_t further(const struct solo *s, const struct solo_stretch *x, unsigned cluster, uint64_t base)
{
    const struct solo_cluster *c = &x->cluster[cluster];
    int64_t step = (int64_t)s->step[cluster];
    uint64_t by = (uint64_t)(step < 0 ? -step : step);

    if (step == 0)
        return UINT64_MAX / 2;
    uint64_t trips = trips_on_lines(s, x, c, base, step, by),
             way = step < 0 ? base - c->low : c->low + c->span - 1 - base;
    return trips * by <= way ? trips : way / by;
}

/* A cluster has done its references in this trip: when it has to be looked at again. */
static void expect(struct solo *s, const struct solo_stretch *x, unsigned cluster, uint64_t trip)
{
    struct solo_cluster *c = &x->cluster[cluster];
    uint64_t base = base_at(s, cluster, trip),
             line[2] = { (base + c->first) >> s->shift, (base + c->last) >> s->shift };

    s->next[cluster] = trip + 1;
    s->is_known[cluster] = false;
    for (unsigned i = 0; i < (line[0] == line[1] ? 1 : 2); i++) {
        uint32_t e = solo_entry_of(s, line[i], s->level[0].ways == 1);
        if (e == UINT32_MAX || s->first[e].seen[c->is_write] != line[i])
            return;
        c->hint[i] = e;
    }
    uint64_t more = further(s, x, cluster, base);
    s->next[cluster] += more;
    s->is_known[cluster] = more > 0;
}

/* ---- trips ---- */

/* Before a site misses: what clusters have done that were not looked at, in this trip, too, where it matters to who has to go. */
static void prepare(struct solo *s, const struct solo_stretch *x, unsigned site, uint64_t line, uint64_t number,
                    uint64_t trip)
{
    bool direct =
        s->level[0].ways == 1 && s->recent.border < s->recent.now; /* nobody compares with lines of other sets */
    uint32_t e = (uint32_t)(line & s->level[0].mask);

    for (unsigned i = 0; i < x->clusters; i++) {
        const struct solo_cluster *c = &x->cluster[i];
        if (!s->is_known[i] || (direct && c->hint[0] != e && c->hint[1] != e))
            continue;
        bool is_due = s->next[i] <= trip; /* and has not had its turn */
        stamp_cluster(s, x, c, base_at(s, i, trip - is_due), number - x->sites, x->sites);
        if (!is_due)
            stamp_cluster(s, x, c, base_at(s, i, trip), number, site);
    }
}

/* Clusters that have lost a line have to be looked at: their sites. */
static uint64_t look_again(struct solo *s, const struct solo_stretch *x, uint64_t trip)
{
    uint64_t sites = 0;

    for (unsigned i = 0; i < x->clusters; i++) {
        const struct solo_cluster *c = &x->cluster[i];
        if (s->next[i] <= trip)
            continue;
        uint64_t base = base_at(s, i, trip), first = (base + c->first) >> s->shift, last = (base + c->last) >> s->shift;
        if (s->first[c->hint[0]].seen[c->is_write] != first
            || (last != first && s->first[c->hint[1]].seen[c->is_write] != last)) {
            s->next[i] = trip;
            s->is_known[i] = false;
            sites |= c->mask;
        }
    }
    return sites;
}

/* Clusters that are due: their sites. Whether one of these is in two lines. */
static bool begin_trip(struct solo *s, struct solo_stretch *x, uint64_t trip, uint64_t *ret)
{
    bool straddles = false;

    *ret = 0;
    for (unsigned i = 0; i < x->clusters; i++) {
        struct solo_cluster *c = &x->cluster[i];
        if (s->next[i] > trip)
            continue;
        uint64_t base = base_at(s, i, trip);
        if (s->is_known[i])
            stamp_cluster(s, x, c, base - s->step[i], s->number - x->sites, x->sites);
        s->is_known[i] = false;
        if (base - c->low >= c->span)
            solo_locate(s, x, c, base);
        if ((base + c->first) >> s->shift != (base + c->last) >> s->shift)
            straddles |= solo_straddles(s, x, c, base);
        *ret |= c->mask;
    }
    return straddles;
}

/* A trip in which some sites are done one by one; all others do what they did. */
static void run_sites(struct solo *s, struct solo_stretch *x, uint64_t sites, uint64_t trip)
{
    uint64_t number = s->number, references = s->time.references, waited = 0;

    s->is_held = true;
    for (; sites; sites &= sites - 1) {
        unsigned i = (unsigned)__builtin_ctzll(sites);
        struct solo_site *site = &x->site[i];
        uint64_t addr = base_at(s, site->cluster, trip) + (uint64_t)site->disp;
        s->number = number + i;
        if (solo_is_easy(s, site, addr, s->level[0].ways == 1))
            continue;
        prepare(s, x, i, addr >> s->shift, number, trip);
        s->time.references = references + i;
        waited += solo_refer_site(s, x, site, addr, s->time.clock + site->issued + waited);
        sites |= look_again(s, x, trip) & ~(((uint64_t)2 << i) - 1);
    }
    s->is_held = false;
    s->number = number + x->sites;
    s->time.references = references + x->sites;
    s->time.clock += x->cycles + waited;
    x->runs++;
    for (unsigned i = 0; i < x->clusters; i++)
        if (s->next[i] <= trip)
            expect(s, x, i, trip);
}

/* The same where a reference is in two lines. */
static void run_all(struct solo *s, struct solo_stretch *x, uint64_t trip)
{
    uint64_t base[MOST_SITES];

    stamp_all(s, x, trip);
    memcpy(base, s->base, x->clusters * sizeof *base);
    for (unsigned i = 0; i < x->clusters; i++)
        s->base[i] = base_at(s, i, trip);
    solo_run_slowly(s, x);
    memcpy(s->base, base, x->clusters * sizeof *base);
    look_at_all(s, x, trip + 1);
}

/* So many trips in which nothing changes. */
static void skip(struct solo *s, struct solo_stretch *x, uint64_t trips)
{
    s->number += trips * x->sites;
    s->time.references += trips * x->sites;
    s->time.clock += trips * x->cycles;
    x->runs += trips;
}

/* ---- one reference to a cluster ---- */

/* Whether each cluster is one reference, and none is ever in two lines: then clusters are in the order of their references. Most loops are so. */
static bool is_single(struct solo *s, const struct solo_stretch *x)
{
    uint64_t both = 0;

    if (x->sites != x->clusters)
        return false;
    for (unsigned i = 0; i < x->clusters; i++) {
        uint64_t size = x->site[i].size;
        both |=
            (size & (size - 1)) | (size > s->length) | ((size - 1) & ((s->base[i] + x->cluster[i].first) | s->step[i]));
        s->is_far[i] = s->step[i] + s->length - 1 > 2 * (s->length - 1); /* each trip has another line */
    }
    return both == 0;
}

/* The reference of a cluster that is due; returns how long it took beyond what is counted. */
static inline __attribute__((always_inline)) uint64_t run_one(struct solo *s, struct solo_stretch *x, unsigned i,
                                                              uint64_t number, uint64_t trip, uint64_t waited)
{
    struct solo_cluster *c = &x->cluster[i];
    struct solo_level *l = &s->level[0];
    uint64_t base = base_at(s, i, trip), line = (base + c->first) >> s->shift;

    if (s->is_known[i])
        stamp(s, c->hint[0], number + i - x->sites);
    s->is_known[i] = false;
    if (__builtin_expect(base - c->low >= c->span, 0))
        solo_locate(s, x, c, base);
    uint32_t e = l->ways == 1 ? (uint32_t)(line & l->mask) : solo_find(l, line);
    s->number = number + i;
    if (__builtin_expect(e != UINT32_MAX && s->first[e].seen[c->is_write] == line, 1)) {
        if (s->first[e].stamp < s->recent.since)
            solo_use(s, s->first[e].record);
        s->first[e].stamp = number + i;
        c->hint[0] = e;
        return 0;
    }
    prepare(s, x, i, line, number, trip);
    s->time.references += i;
    uint64_t took = solo_refer_site(s, x, &x->site[i], base + c->first, s->time.clock + x->site[i].issued + waited);
    s->time.references -= i;
    c->hint[0] = l->ways == 1 ? e : solo_find(l, line);
    look_again(s, x, trip);
    return took;
}

/* As expect, for the one reference of a cluster, which knows where its line is. */
static inline __attribute__((always_inline)) void expect_one(struct solo *s, const struct solo_stretch *x, unsigned i,
                                                             uint64_t trip)
{
    const struct solo_cluster *c = &x->cluster[i];
    uint64_t base = base_at(s, i, trip), inside = s->length - 1, addr = base + c->first;
    int64_t step = (int64_t)s->step[i];

    s->next[i] = trip + 1;
    s->is_known[i] = false;
    if (s->first[c->hint[0]].seen[c->is_write] != addr >> s->shift)
        return;
    uint64_t by = (uint64_t)(step < 0 ? -step : step), more = UINT64_MAX / 2;
    if (by) {
        uint64_t on_line = step < 0 ? addr & inside : inside - ((base + c->last) & inside);
        uint64_t in_object = step < 0 ? base - c->low : c->low + c->span - 1 - base;
        more = on_line < in_object ? (uint32_t)on_line / (uint32_t)by : in_object / by;
    }
    s->next[i] += more;
    s->is_known[i] = more > 0;
}

/* A trip; returns the next one in which something is due. */
static uint64_t run_single(struct solo *s, struct solo_stretch *x, uint64_t trip)
{
    uint64_t number = s->number, waited = 0, least = UINT64_MAX;

    s->is_held = true;
    for (unsigned i = 0; i < x->clusters; i++)
        if (s->next[i] <= trip)
            waited += run_one(s, x, i, number, trip, waited);
    s->is_held = false;
    s->number = number + x->sites;
    s->time.references += x->sites;
    s->time.clock += x->cycles + waited;
    x->runs++;
    for (unsigned i = 0; i < x->clusters; i++) {
        if (s->is_far[i])
            s->next[i] = trip + 1;
        else if (s->next[i] <= trip)
            expect_one(s, x, i, trip);
        least = s->next[i] < least ? s->next[i] : least;
    }
    return least;
}

static void run_singles(struct solo *s, struct solo_stretch *x, uint64_t trips)
{
    look_at_all(s, x, 0);
    for (uint64_t t = 0; t < trips;) {
        uint64_t next = run_single(s, x, t++);
        if (solo_uses_are_many(s)) { /* as below */
            stamp_all(s, x, t);
            solo_end_interval(s);
            look_at_all(s, x, t);
        } else if (next > t) {
            next = next < trips ? next : trips;
            skip(s, x, next - t);
            t = next;
        }
    }
    stamp_all(s, x, trips);
}

static void run_plainly(struct solo *s, struct solo_stretch *x, uint64_t trips)
{
    for (uint64_t t = 0; t < trips; t++) {
        solo_run_slowly(s, x);
        for (unsigned i = 0; i < x->clusters; i++)
            s->base[i] += s->step[i];
    }
}

void solo_run_trips(struct solo *s, struct solo_stretch *x, uint64_t trips)
{
    uint64_t sites;

    if (x->sites > MOST_SITES) {
        run_plainly(s, x, trips);
        return;
    }
    if (is_single(s, x)) {
        run_singles(s, x, trips);
        return;
    }
    look_at_all(s, x, 0);
    for (uint64_t t = 0; t < trips;) {
        uint64_t least = trips;
        for (unsigned i = 0; i < x->clusters; i++)
            least = s->next[i] < least ? s->next[i] : least;
        if (least > t) {
            skip(s, x, least - t);
            t = least;
            continue;
        }
        if (begin_trip(s, x, t, &sites))
            run_all(s, x, t);
        else
            run_sites(s, x, sites, t);
        t++;
        if (solo_uses_are_many(s)) { /* the interval ends with this trip: all lines are used anew */
            stamp_all(s, x, t);
            solo_end_interval(s);
            look_at_all(s, x, t);
        }
    }
    stamp_all(s, x, trips);
}
