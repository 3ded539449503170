/* SPDX-License-Identifier: MIT */
/* Trips of a loop whose references grow by fixed steps. A cluster is looked at when one of its references comes to another line, or its base to another object; in
 * all other trips it does what it did, as long as nobody takes its lines away, and is only counted. Its lines are stamped when it leaves
 * them, and before anybody wants to know. */
#include <string.h>

#include "sim/solo_state.h"

enum { MOST_SITES = 64 }; /* of stretches that are done so: a bit each */

static uint64_t base_at(const struct solo *s, unsigned cluster, uint64_t trip)
{
    return s->way[cluster].base + trip * s->way[cluster].step;
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
        if (s->way[i].is_known)
            stamp_cluster(s, x, &x->cluster[i], base_at(s, i, trip - 1), s->number - x->sites, x->sites);
}

/* All clusters have to be looked at in that trip. */
static void look_at_all(struct solo *s, const struct solo_stretch *x, uint64_t trip)
{
    for (unsigned i = 0; i < x->clusters; i++) {
        s->way[i].next = trip;
        s->way[i].is_known = false;
    }
}

/* ---- how long nothing changes ---- */

/* A cluster that is not looked at has a line in that set, up to that trip. Other sets may have the same number. */
static uint64_t *claim_of(struct solo *s, uint32_t set)
{
    return &s->claim[set % SOLO_CLAIMS];
}

static inline void claim(struct solo *s, uint32_t entry, uint64_t trip)
{
    uint64_t *at = claim_of(s, s->level[0].ways == 1 ? entry : entry / s->level[0].ways);

    *at = *at < s->trips_before + trip ? s->trips_before + trip : *at;
}

/* Whether it matters to a cluster that is not looked at who goes for that line, or when it was used. */
static inline bool is_claimed(struct solo *s, uint64_t line, uint64_t trip)
{
    return *claim_of(s, (uint32_t)(line & s->level[0].mask)) >= s->trips_before + trip
           || s->recent.border >= s->recent.now; /* lines of all sets are compared */
}

static inline uint64_t steps_in(const struct solo_way *w, uint64_t bytes)
{
    return w->log < 64 ? bytes >> w->log : bytes / w->by;
}

/* In how many more trips all its references stay on their lines. */
static uint64_t trips_on_lines(const struct solo *s, const struct solo_stretch *x, const struct solo_cluster *c,
                               uint64_t base, const struct solo_way *w)
{
    uint64_t inside = s->length - 1, least = UINT64_MAX, first = base + c->first, last = base + c->last;
    bool is_down = (int64_t)w->step < 0;

    if (first >> s->shift == last >> s->shift)
        return steps_in(w, is_down ? first & inside : inside - (last & inside));
    for (unsigned i = 0; i < c->sites; i++) {
        const struct solo_site *site = &x->site[c->site[i]];
        uint64_t addr = base + (uint64_t)site->disp;
        uint64_t way = is_down ? addr & inside : inside - ((addr + site->size - 1) & inside);
        least = way < least ? way : least;
    }
    return steps_in(w, least);
}

static uint64_t further(const struct solo *s, const struct solo_stretch *x, unsigned cluster, uint64_t base)
{
    const struct solo_cluster *c = &x->cluster[cluster];
    const struct solo_way *w = &s->way[cluster];

    if (w->step == 0)
        return UINT64_MAX / 4;
    uint64_t trips = trips_on_lines(s, x, c, base, w),
             way = (int64_t)w->step < 0 ? base - c->low : c->low + c->span - 1 - base;
    return trips * w->by <= way ? trips : steps_in(w, way);
}

/* A cluster has done its references in this trip, and its lines are where the hints say: when it has to be looked at again. */
static void expect(struct solo *s, const struct solo_stretch *x, unsigned cluster, uint64_t trip, unsigned lines)
{
    uint64_t more = s->way[cluster].is_far ? 0 : further(s, x, cluster, base_at(s, cluster, trip));

    s->way[cluster].next = trip + 1 + more;
    s->way[cluster].is_known = more > 0;
    for (unsigned i = 0; more > 0 && i < lines; i++)
        claim(s, x->cluster[cluster].hint[i], trip + 1 + more);
}

/* The same if it is not known where its lines are. */
static void find_and_expect(struct solo *s, const struct solo_stretch *x, unsigned cluster, uint64_t trip)
{
    struct solo_cluster *c = &x->cluster[cluster];
    uint64_t base = base_at(s, cluster, trip),
             line[2] = { (base + c->first) >> s->shift, (base + c->last) >> s->shift };

    s->way[cluster].next = trip + 1;
    s->way[cluster].is_known = false;
    s->way[cluster].is_shaky = s->way[cluster].is_shaky && s->way[cluster].has_missed;
    s->way[cluster].has_missed = false;
    if (s->way[cluster].is_shaky)
        return;
    for (unsigned i = 0; i < (line[0] == line[1] ? 1 : 2); i++) {
        uint32_t e = solo_entry_of(s, line[i], s->level[0].ways == 1);
        if (e == UINT32_MAX || s->first[e].seen[c->is_write] != line[i])
            return;
        c->hint[i] = e;
    }
    expect(s, x, cluster, trip, line[0] == line[1] ? 1 : 2);
}

/* ---- trips ---- */

/* Before a site misses: what clusters have done that were not looked at, in this trip, too, where it matters to who has to go. */
static void prepare(struct solo *s, const struct solo_stretch *x, unsigned site, uint64_t line, uint64_t number,
                    uint64_t trip)
{
    bool all = s->recent.border >= s->recent.now;
    uint32_t ways = s->level[0].ways, first = (uint32_t)(line & s->level[0].mask) * ways;

    for (unsigned i = 0; i < x->clusters; i++) {
        const struct solo_cluster *c = &x->cluster[i];
        if (!s->way[i].is_known || !(all || c->hint[0] - first < ways || c->hint[1] - first < ways))
            continue;
        bool is_due = s->way[i].next <= trip; /* and has not had its turn */
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
        if (s->way[i].next <= trip)
            continue;
        uint64_t base = base_at(s, i, trip), first = (base + c->first) >> s->shift, last = (base + c->last) >> s->shift;
        if (s->first[c->hint[0]].seen[c->is_write] != first
            || (last != first && s->first[c->hint[1]].seen[c->is_write] != last)) {
            s->way[i].next = trip;
            s->way[i].is_known = false;
            s->way[i].is_shaky = true;
            sites |= c->mask;
        }
    }
    return sites;
}

/* What clusters that are due have to do in a trip. */
struct due {
    uint64_t sites;
    bool straddles; /* a reference is in two lines */
    bool is_easy;   /* all of their lines can be seen, and their hints are right */
};

/* Whether the lines of a cluster can be seen. */
static inline bool sees(const struct solo *s, struct solo_cluster *c, uint64_t first, uint64_t last)
{
    bool direct = s->level[0].ways == 1;
    uint32_t e = solo_entry_of(s, first, direct);

    if (e == UINT32_MAX || s->first[e].seen[c->is_write] != first)
        return false;
    c->hint[0] = e;
    if (first == last)
        return true;
    e = solo_entry_of(s, last, direct);
    if (e == UINT32_MAX || s->first[e].seen[c->is_write] != last)
        return false;
    c->hint[1] = e;
    return true;
}

static struct due begin_trip(struct solo *s, struct solo_stretch *x, uint64_t trip)
{
    struct due due = { .is_easy = true };

    for (unsigned i = 0; i < x->clusters; i++) {
        struct solo_cluster *c = &x->cluster[i];
        struct solo_way *w = &s->way[i];
        if (w->next > trip)
            continue;
        uint64_t base = base_at(s, i, trip);
        if (w->is_known)
            stamp_cluster(s, x, c, base - w->step, s->number - x->sites, x->sites);
        w->is_known = false;
        if (base - c->low >= c->span)
            solo_locate(s, x, c, base);
        uint64_t first = (base + c->first) >> s->shift, last = (base + c->last) >> s->shift;
        if (first != last)
            due.straddles |= solo_straddles(s, x, c, base);
        due.is_easy = due.is_easy && sees(s, c, first, last);
        due.sites |= c->mask;
    }
    return due;
}

/* A trip is done. */
static void count_trip(struct solo *s, struct solo_stretch *x, uint64_t number, uint64_t references, uint64_t waited)
{
    s->number = number + x->sites;
    s->time.references = references + x->sites;
    s->time.clock += x->cycles + waited;
    x->runs++;
}

/* A trip in which all that is due is found. */
static void run_easily(struct solo *s, struct solo_stretch *x, uint64_t trip)
{
    for (unsigned i = 0; i < x->clusters; i++) {
        const struct solo_cluster *c = &x->cluster[i];
        if (s->way[i].next > trip)
            continue;
        uint64_t base = base_at(s, i, trip);
        unsigned lines = (base + c->first) >> s->shift == (base + c->last) >> s->shift ? 1 : 2;
        for (unsigned k = 0; k < lines; k++)
            if (s->first[c->hint[k]].stamp < s->recent.since)
                solo_use(s, s->first[c->hint[k]].record);
        stamp_cluster(s, x, c, base, s->number, x->sites);
        expect(s, x, i, trip, lines);
    }
    count_trip(s, x, s->number, s->time.references, 0);
}

/* A trip in which some sites are done one by one; all others do what they did. */
static void run_sites(struct solo *s, struct solo_stretch *x, uint64_t sites, uint64_t trip)
{
    uint64_t number = s->number, references = s->time.references, waited = 0;

    s->is_held = true;
    for (; sites; sites &= sites - 1) {
        unsigned i = (unsigned)__builtin_ctzll(sites);
        struct solo_site *site = &x->site[i];
        uint64_t addr = base_at(s, site->cluster, trip) + (uint64_t)site->disp, line = addr >> s->shift;
        s->number = number + i;
        if (solo_is_easy(s, site, addr, x->cluster[site->cluster].hint[0], s->level[0].ways == 1))
            continue;
        bool matters = is_claimed(s, line, trip);
        if (matters)
            prepare(s, x, i, line, number, trip);
        s->way[site->cluster].has_missed = true;
        s->time.references = references + i;
        waited += solo_refer_site(s, x, site, addr, s->time.clock + site->issued + waited);
        if (matters)
            sites |= look_again(s, x, trip) & ~(((uint64_t)2 << i) - 1);
    }
    s->is_held = false;
    count_trip(s, x, number, references, waited);
    for (unsigned i = 0; i < x->clusters; i++)
        if (s->way[i].next <= trip)
            find_and_expect(s, x, i, trip);
}

/* The same where a reference is in two lines. */
static void run_all(struct solo *s, struct solo_stretch *x, uint64_t trip)
{
    stamp_all(s, x, trip);
    for (unsigned i = 0; i < x->clusters; i++)
        s->base[i] = base_at(s, i, trip);
    solo_run_slowly(s, x);
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
static bool is_single(const struct solo *s, const struct solo_stretch *x)
{
    uint64_t both = 0;

    if (x->sites != x->clusters)
        return false;
    for (unsigned i = 0; i < x->clusters; i++) {
        uint64_t size = x->site[i].size;
        both |= (size & (size - 1)) | (size > s->length)
                | ((size - 1) & ((s->way[i].base + x->cluster[i].first) | s->way[i].step));
    }
    return both == 0;
}

/* The reference of a cluster misses; returns how long it took beyond what is counted. Others may have lost their lines then. */
static __attribute__((noinline)) uint64_t miss_one(struct solo *s, struct solo_stretch *x, unsigned i, uint64_t addr,
                                                   uint64_t number, uint64_t trip, uint64_t waited)
{
    bool matters = is_claimed(s, addr >> s->shift, trip);

    if (matters)
        prepare(s, x, i, addr >> s->shift, number, trip);
    s->time.references += i;
    uint64_t took = solo_refer_site(s, x, &x->site[i], addr, s->time.clock + x->site[i].issued + waited);
    s->time.references -= i;
    if (matters)
        look_again(s, x, trip);
    return took;
}

/* When the one reference of a cluster, at an address whose line is in that entry, has to be looked at again. */
static inline __attribute__((always_inline)) void expect_one(struct solo *s, const struct solo_cluster *c,
                                                             struct solo_way *w, uint32_t entry, uint64_t base,
                                                             uint64_t trip)
{
    uint64_t inside = s->length - 1, more = UINT64_MAX / 4;
    bool is_down = (int64_t)w->step < 0;

    if (w->step) {
        uint64_t on_line = is_down ? (base + c->first) & inside : inside - ((base + c->last) & inside);
        uint64_t in_object = is_down ? base - c->low : c->low + c->span - 1 - base;
        more = steps_in(w, on_line < in_object ? on_line : in_object);
    }
    w->next = trip + 1 + more;
    w->is_known = more > 0;
    if (more > 0)
        claim(s, entry, w->next);
}

/* The reference of a cluster that is due; returns how long it took beyond what is counted. */
static inline __attribute__((always_inline)) uint64_t run_one(struct solo *s, struct solo_stretch *x, unsigned i,
                                                              uint64_t number, uint64_t trip, uint64_t waited,
                                                              bool direct)
{
    struct solo_cluster *c = &x->cluster[i];
    struct solo_way *w = &s->way[i];
    uint64_t base = w->base + trip * w->step, line = (base + c->first) >> s->shift, took = 0;

    if (w->is_known)
        stamp(s, c->hint[0], number + i - x->sites);
    w->is_known = false;
    w->next = trip + 1;
    if (__builtin_expect(base - c->low >= c->span, 0))
        solo_locate(s, x, c, base);
    uint32_t e = solo_entry_of(s, line, direct);
    s->number = number + i;
    if (__builtin_expect((direct || e != UINT32_MAX) && s->first[e].seen[c->is_write] == line, 1)) {
        struct solo_entry *at = &s->first[e];
        if (__builtin_expect(at->stamp < s->recent.since, 0))
            solo_use(s, at->record);
        at->stamp = number + i;
        w->is_shaky = false;
    } else {
        w->next = trip; /* it is not looked at for lines that others have lost */
        took = miss_one(s, x, i, base + c->first, number, trip, waited);
        w->next = trip + 1;
        if (w->is_far || w->is_shaky)
            return took;
        e = solo_entry_of(s, line, direct);
        if ((!direct && e == UINT32_MAX) || s->first[e].seen[c->is_write] != line)
            return took;
    }
    c->hint[0] = e;
    if (!w->is_far)
        expect_one(s, c, w, e, base, trip);
    return took;
}

/* A trip; returns the next one in which something is due. */
static inline __attribute__((always_inline)) uint64_t run_single(struct solo *s, struct solo_stretch *x, uint64_t trip,
                                                                 bool direct)
{
    uint64_t number = s->number, waited = 0, least = UINT64_MAX;

    s->is_held = true;
    for (unsigned i = 0; i < x->clusters; i++)
        if (s->way[i].next <= trip)
            waited += run_one(s, x, i, number, trip, waited, direct);
    s->is_held = false;
    count_trip(s, x, number, s->time.references, waited);
    for (unsigned i = 0; i < x->clusters; i++)
        least = s->way[i].next < least ? s->way[i].next : least;
    return least;
}

static inline __attribute__((always_inline)) void run_singles(struct solo *s, struct solo_stretch *x, uint64_t trips,
                                                              bool direct)
{
    for (uint64_t t = 0; t < trips;) {
        uint64_t next = run_single(s, x, t++, direct);
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

/* ---- any number of references to a cluster ---- */

static void run_plainly(struct solo *s, struct solo_stretch *x, uint64_t trips)
{
    for (uint64_t t = 0; t < trips; t++) {
        for (unsigned i = 0; i < x->clusters; i++)
            s->base[i] = base_at(s, i, t);
        solo_run_slowly(s, x);
    }
}

static void run_several(struct solo *s, struct solo_stretch *x, uint64_t trips)
{
    for (uint64_t t = 0; t < trips;) {
        uint64_t least = trips;
        for (unsigned i = 0; i < x->clusters; i++)
            least = s->way[i].next < least ? s->way[i].next : least;
        if (least > t) {
            skip(s, x, least - t);
            t = least;
            continue;
        }
        struct due due = begin_trip(s, x, t);
        if (due.straddles)
            run_all(s, x, t);
        else if (due.is_easy)
            run_easily(s, x, t);
        else
            run_sites(s, x, due.sites, t);
        t++;
        if (solo_uses_are_many(s)) { /* the interval ends with this trip: all lines are used anew */
            stamp_all(s, x, t);
            solo_end_interval(s);
            look_at_all(s, x, t);
        }
    }
    stamp_all(s, x, trips);
}

static void know_steps(struct solo *s, const struct solo_stretch *x)
{
    for (unsigned i = 0; i < x->clusters; i++) {
        struct solo_way *w = &s->way[i];
        w->by = (int64_t)w->step < 0 ? -w->step : w->step;
        w->log = (uint8_t)(w->by && !(w->by & (w->by - 1)) ? __builtin_ctzll(w->by) : 64);
        w->is_far = w->by >= s->length; /* each trip has another line */
        w->is_known = w->is_shaky = w->has_missed = false;
        w->next = 0;
    }
}

void solo_run_trips(struct solo *s, struct solo_stretch *x, uint64_t trips)
{
    know_steps(s, x);
    if (x->sites > MOST_SITES)
        run_plainly(s, x, trips);
    else if (!is_single(s, x))
        run_several(s, x, trips);
    else if (s->level[0].ways == 1)
        run_singles(s, x, trips, true);
    else
        run_singles(s, x, trips, false);
    s->trips_before += trips + 1;
}
