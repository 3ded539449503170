/* SPDX-License-Identifier: MIT */
/* Caches against models that follow each policy's definition: lists of lines with the times at which they came and were used.
 * They share no code with src/sim/cache. */
#include <stdlib.h>

#include "check.h"
#include "sim/cache/cache.h"

static uint64_t state = 1;

static uint64_t draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

/* ---- the models ---- */

/* A way of a set. Times belong to the way: they stay when its line goes. */
struct way {
    uint64_t line, state; /* state 0: empty */
    uint64_t came, used;  /* when something was last put there; put there or touched */
    unsigned interval;    /* of rrip */
};

struct model {
    const struct replacement *policy;
    struct way *way;
    uint64_t sets, now;
    unsigned ways;
};

static struct way *set_of(struct model *m, uint64_t line)
{
    return m->way + line % m->sets * m->ways;
}

static struct way *model_find(struct model *m, uint64_t line)
{
    struct way *set = set_of(m, line);

    for (unsigned i = 0; i < m->ways; i++)
        if (set[i].state && set[i].line == line)
            return &set[i];
    return NULL;
}

static struct way *first_used(struct way *set, unsigned ways)
{
    struct way *first = set;

    for (unsigned i = 1; i < ways; i++)
        first = set[i].used < first->used ? &set[i] : first;
    return first;
}

static struct way *first_come(struct way *set, unsigned ways)
{
    struct way *first = set;

    for (unsigned i = 1; i < ways; i++)
        first = set[i].came < first->came ? &set[i] : first;
    return first;
}

/* When something in ways [from, to) was last used. */
static uint64_t last_used(const struct way *set, unsigned from, unsigned to)
{
    uint64_t last = 0;

    for (unsigned i = from; i < to; i++)
        last = set[i].used > last ? set[i].used : last;
    return last;
}

/* Of two halves that one goes in which nothing has been used for longer, and so on; the left one before anything was. Halves of the
 * power of two that all ways fit into: the right one may be empty. */
static struct way *in_older_half(struct way *set, unsigned ways)
{
    unsigned half = 1, from = 0, to = ways;

    while (2 * half < ways)
        half *= 2;
    for (; to - from > 1; half /= 2) {
        unsigned middle = from + half;
        if (middle >= to)
            continue;
        if (last_used(set, middle, to) < last_used(set, from, middle))
            from = middle;
        else
            to = middle;
    }
    return set + from;
}

/* All grow by as much as it takes for the greatest to be 3, and of those that are 3 the first goes. */
static struct way *not_expected(struct way *set, unsigned ways)
{
    unsigned most = 0, first = ways;

    for (unsigned i = 0; i < ways; i++)
        most = set[i].interval > most ? set[i].interval : most;
    for (unsigned i = ways; i-- > 0;) {
        set[i].interval += 3 - most;
        first = set[i].interval == 3 ? i : first;
    }
    return set + first;
}

static void model_touch(struct model *m, struct way *w)
{
    w->used = ++m->now;
    w->interval = 0;
}

/* Puts a line. The way of a random victim is not to be foreseen: any line of the set is right, but it must be there. Returns what
 * went, as an entry; 0: nothing. NULL of *ret_way: `gone` was not there. */
static uint64_t model_put(struct model *m, uint64_t line, unsigned state_bits, uint64_t gone, struct way **ret_way)
{
    struct way *set = set_of(m, line), *w = NULL;

    for (unsigned i = m->ways; i-- > 0;)
        w = set[i].state ? w : &set[i];
    if (!w && m->policy == &replacement_lru)
        w = first_used(set, m->ways);
    else if (!w && m->policy == &replacement_fifo)
        w = first_come(set, m->ways);
    else if (!w && m->policy == &replacement_plru)
        w = in_older_half(set, m->ways);
    else if (!w && m->policy == &replacement_rrip)
        w = not_expected(set, m->ways);
    else if (!w && CHECK(m->policy == &replacement_random)) /* a new policy needs its rule here */
        w = model_find(m, gone >> CACHE_STATE_BITS);
    *ret_way = w;
    if (!w)
        return 0;
    uint64_t went = w->state ? w->line << CACHE_STATE_BITS | w->state : 0;
    m->now++;
    *w = (struct way){ .line = line, .state = state_bits, .came = m->now, .used = m->now, .interval = 2 };
    return went;
}

/* ---- both together ---- */

struct pair {
    struct cache cache;
    struct model model;
    uint64_t hits, references;
};

static bool pair_init(struct pair *p, const struct replacement *policy, uint64_t sets, unsigned ways, bool is_one_set)
{
    struct cache_config c = { .bytes = sets * ways * 64, .ways = is_one_set ? 0 : ways, .line = 64, .seed = draw() };

    c.replacement = policy;
    *p = (struct pair){ .model = { .policy = policy, .sets = sets, .ways = ways } };
    p->model.way = calloc(sets * ways, sizeof *p->model.way);
    if (!CHECK(p->model.way) || !CHECK_EQ(cache_init(&p->cache, &c), 0))
        return false;
    return CHECK_EQ(p->cache.sets, sets) && CHECK_EQ(p->cache.ways, ways) && CHECK_EQ(p->cache.shift, 6);
}

static void pair_release(struct pair *p)
{
    cache_release(&p->cache);
    CHECK(!p->cache.entry);
    free(p->model.way);
}

/* A reference to a line, after which it is in that state. False: they do not agree. */
static bool refer(struct pair *p, uint64_t line, unsigned state_bits)
{
    uint64_t *entry = cache_find(&p->cache, line);
    struct way *w = model_find(&p->model, line);

    p->references++;
    if (!entry != !w)
        return false;
    if (entry) {
        p->hits++;
        entry = cache_touch(&p->cache, entry);
        model_touch(&p->model, w);
        if (*entry != (line << CACHE_STATE_BITS | w->state))
            return false;
        if (p->model.policy->touch_reorders && !p->cache.is_ranked
            && entry != p->cache.entry + cache_set(&p->cache, line) * p->cache.ways)
            return false; /* others rely on its being the first */
        *entry = line << CACHE_STATE_BITS | state_bits;
        w->state = state_bits;
        return true;
    }
    uint64_t gone = cache_put(&p->cache, line, state_bits);
    return model_put(&p->model, line, state_bits, gone, &w) == gone && w;
}

static bool drop(struct pair *p, uint64_t line)
{
    uint64_t *entry = cache_find(&p->cache, line);
    struct way *w = model_find(&p->model, line);

    if (!entry != !w)
        return false;
    if (entry) {
        cache_drop(&p->cache, entry);
        w->state = 0;
    }
    return !cache_find(&p->cache, line);
}

/* All that one has the other has, in the same state. */
static bool have_the_same(struct pair *p)
{
    uint64_t lines = p->model.sets * p->model.ways, here = 0, there = 0;

    for (uint64_t i = 0; i < lines; i++) {
        const struct way *w = &p->model.way[i];
        const uint64_t *entry = w->state ? cache_find(&p->cache, w->line) : NULL;
        if (w->state && (!entry || *entry != (w->line << CACHE_STATE_BITS | w->state)))
            return false;
        here += w->state != 0;
        there += cache_state(p->cache.entry[i]) != 0;
    }
    return here == there;
}

static unsigned some_state(void)
{
    return 1 + (unsigned)draw() % (CACHE_STATES - 1);
}

/* Lines of a range of one to three times the cache: any, the first ones more often, or the next of a row. */
static bool refer_at_random(struct pair *p, unsigned n)
{
    uint64_t lines = p->model.sets * p->model.ways, range = lines + draw() % (2 * lines) + 1, row = 0;
    uint64_t base = draw() % 2 ? 0 : ((uint64_t)1 << (64 - CACHE_STATE_BITS)) - range; /* also the last lines of all */
    unsigned drops = (unsigned)draw() % 4 * 8;                                         /* of 256 */

    for (unsigned i = 0; i < n; i++) {
        uint64_t at = draw() % range, kind = draw() % 4;
        if (kind == 0)
            at = at * (draw() % range) / range;
        else if (kind == 1)
            at = row++ % range;
        if (draw() % 256 < drops ? !drop(p, base + at) : !refer(p, base + at, some_state()))
            return false;
    }
    return have_the_same(p);
}

struct geometry {
    uint64_t sets;
    unsigned ways;
};

/* Every fourth has one set, every fourth a power of two of sets, or of ways. Only levels of up to 32 ways have separate bits in rrip. */
static struct geometry some_geometry(unsigned round, const struct replacement *policy)
{
    struct geometry g = { .sets = 1 + draw() % 70, .ways = 1 + (unsigned)draw() % 32 };

    if (round % 4 == 0)
        g = (struct geometry){ .sets = 1, .ways = 1 + (unsigned)draw() % (policy == &replacement_rrip ? 32 : 64) };
    else if (round % 4 == 1)
        g.sets = (uint64_t)1 << draw() % 8;
    else if (round % 4 == 2)
        g.ways = 1u << draw() % 6;
    return g;
}

static void caches_agree_with_the_definitions_of_their_policies(void)
{
    enum { ROUNDS = 60, REFERENCES = 36000 };
    uint64_t references = 0;

    for (size_t k = 0; replacements[k]; k++)
        for (unsigned round = 0; round < ROUNDS; round++) {
            struct geometry g = some_geometry(round, replacements[k]);
            struct pair p;
            if (!pair_init(&p, replacements[k], g.sets, g.ways, g.sets == 1 && round % 8 == 0))
                return;
            if (!CHECK(refer_at_random(&p, REFERENCES)))
                printf("# %s, %" PRIu64 " sets of %u ways, reference %" PRIu64 "\n", replacements[k]->name, g.sets,
                       g.ways, p.references);
            CHECK(p.hits > 0 && p.hits < p.references);
            references += p.references;
            pair_release(&p);
        }
    CHECK(references > 10 * 1000 * 1000);
}

/* ---- the random one ---- */

/* Any line that was there is right in the test above: here each goes as often as the others, and by its seed. */
static void random_victims_are_all_as_likely_and_come_from_the_seed(void)
{
    enum { WAYS = 12, N = 120000 };
    uint64_t count[3][WAYS] = { 0 };
    unsigned same[3] = { 0 };
    struct cache c[3];

    for (unsigned k = 0; k < 3; k++)
        CHECK_EQ(cache_init(&c[k], &(struct cache_config){ .bytes = (uint64_t)WAYS * 64,
                                                           .line = 64,
                                                           .replacement = &replacement_random,
                                                           .seed = k / 2 }),
                 0);
    for (uint64_t line = 0; line < WAYS + N; line++) {
        long way[3];
        for (unsigned k = 0; k < 3; k++) {
            cache_put(&c[k], line, 1);
            way[k] = (long)(cache_find(&c[k], line) - c[k].entry);
            count[k][way[k]] += line >= WAYS;
        }
        same[1] += line >= WAYS && way[0] == way[1];
        same[2] += line >= WAYS && way[0] == way[2];
    }
    CHECK_EQ(same[1], N);
    CHECK(same[2] < N / WAYS * 11 / 10);
    for (unsigned i = 0; i < WAYS; i++) /* 10000 on average, with a deviation of 96 */
        CHECK(count[0][i] > 9500 && count[0][i] < 10500 && count[2][i] > 9500 && count[2][i] < 10500);
    for (unsigned k = 0; k < 3; k++)
        cache_release(&c[k]);
}

/* ---- closed forms ---- */

/* Hits of `rounds` walks over lines 0 to lines - 1 of one set, from an empty cache on. */
static uint64_t hits_of_walks(const struct replacement *policy, unsigned ways, uint64_t lines, unsigned rounds)
{
    struct cache c;
    uint64_t hits = 0;

    if (!CHECK_EQ(cache_init(&c, &(struct cache_config){ .bytes = ways * 64, .line = 64, .replacement = policy }), 0))
        return 0;
    for (unsigned i = 0; i < rounds; i++)
        for (uint64_t line = 0; line < lines; line++) {
            uint64_t *entry = cache_find(&c, line);
            hits += entry != NULL;
            if (entry)
                cache_touch(&c, entry);
            else
                cache_put(&c, line, 1);
        }
    cache_release(&c);
    return hits;
}

static void what_fits_is_missed_once(void)
{
    for (size_t k = 0; replacements[k]; k++)
        for (unsigned ways = 1; ways <= 32; ways++)
            CHECK_EQ(hits_of_walks(replacements[k], ways, ways, 10), 9 * ways);
}

/* Round and round over one line more than there is room for. lru, fifo: the next one is always the one that went. rrip: all are
 * expected as late, and go in the order of their ways. */
static void a_walk_over_one_line_too_many_never_hits_in_order_of_age(void)
{
    for (unsigned ways = 1; ways <= 32; ways++) {
        CHECK_EQ(hits_of_walks(&replacement_lru, ways, ways + 1, 50), 0);
        CHECK_EQ(hits_of_walks(&replacement_fifo, ways, ways + 1, 50), 0);
        CHECK_EQ(hits_of_walks(&replacement_rrip, ways, ways + 1, 50), 0);
    }
}

/* If `ways` is a power of two, misses go through all ways in turn, each node alternating: after `ways` consecutive misses, all references miss. With one
 * way more, that way is one half of the tree: two lines that are not consecutive evict each other from it, and all others stay. */
static void a_tree_ends_with_no_hits_or_with_all_but_two(void)
{
    enum { ROUNDS = 200 };

    for (unsigned ways = 1; ways <= 32; ways *= 2)
        CHECK_EQ(hits_of_walks(&replacement_plru, ways, ways + 1, 2 * ROUNDS),
                 hits_of_walks(&replacement_plru, ways, ways + 1, ROUNDS));
    for (unsigned ways = 3; ways <= 33; ways = 2 * ways - 1)
        CHECK_EQ(hits_of_walks(&replacement_plru, ways, ways + 1, 2 * ROUNDS),
                 hits_of_walks(&replacement_plru, ways, ways + 1, ROUNDS) + (uint64_t)ROUNDS * (ways - 1));
}

/* The line that went is 1 to `ways` steps ahead, each as likely, so a miss comes every (ways + 1) / 2 steps: twice a round. */
static void a_random_victim_makes_two_misses_a_round(void)
{
    enum { ROUNDS = 10000 };

    for (unsigned ways = 2; ways <= 32; ways++) {
        uint64_t misses = (uint64_t)ROUNDS * (ways + 1) - hits_of_walks(&replacement_random, ways, ways + 1, ROUNDS);
        CHECK(misses > 2 * ROUNDS - 410 && misses < 2 * ROUNDS + 410); /* five deviations */
    }
}

/* A set is filled, its first line used again, and then only new lines come: how many until it goes? */
static unsigned outlives(const struct replacement *policy, unsigned ways)
{
    struct cache c;
    unsigned n = 0;

    if (!CHECK_EQ(cache_init(&c, &(struct cache_config){ .bytes = ways * 64, .line = 64, .replacement = policy }), 0))
        return 0;
    for (uint64_t line = 1; line <= ways; line++)
        CHECK_EQ(cache_put(&c, line, 3), 0);
    cache_touch(&c, cache_find(&c, 1));
    while (n < 1000 && cache_put(&c, 1000 + n, 5) != (1 << CACHE_STATE_BITS | 3))
        n++;
    cache_release(&c);
    return n;
}

/* rrip: what was used is three steps from going, all others one, and each step lasts for as many lines as there are others. */
static void a_line_that_was_used_outlives_as_many_as_its_policy_says(void)
{
    for (unsigned ways = 1; ways <= 32; ways++) {
        CHECK_EQ(outlives(&replacement_lru, ways), ways - 1);
        CHECK_EQ(outlives(&replacement_fifo, ways), 0);
        CHECK_EQ(outlives(&replacement_rrip, ways), 2 * (ways - 1));
        if ((ways & (ways - 1)) == 0) /* it is the last in the turn of all */
            CHECK_EQ(outlives(&replacement_plru, ways), ways - 1);
    }
}

static void replacements_have_names_of_their_own_and_summaries(void)
{
    size_t n = 0;

    for (; replacements[n]; n++) {
        CHECK(replacements[n]->name[0] && replacements[n]->summary[0] && !strchr(replacements[n]->summary, '\n'));
        CHECK(replacements[n]->victim && replacements[n]->touch && replacements[n]->fill);
        CHECK(replacement_find(replacements[n]->name) == replacements[n]); /* the first of that name */
    }
    CHECK_EQ(n, 5);
    CHECK(!replacement_find("oldest"));
}

int main(void)
{
    RUN(replacements_have_names_of_their_own_and_summaries);
    RUN(caches_agree_with_the_definitions_of_their_policies);
    RUN(random_victims_are_all_as_likely_and_come_from_the_seed);
    RUN(what_fits_is_missed_once);
    RUN(a_walk_over_one_line_too_many_never_hits_in_order_of_age);
    RUN(a_tree_ends_with_no_hits_or_with_all_but_two);
    RUN(a_random_victim_makes_two_misses_a_round);
    RUN(a_line_that_was_used_outlives_as_many_as_its_policy_says);
    return check_done();
}
