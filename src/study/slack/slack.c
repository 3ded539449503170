/* SPDX-License-Identifier: MIT */
#include "study/slack/slack.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "study/slack/slack_in.h"

int slack_new(struct peet_trace *trace, struct slack **ret, struct peet_err *err)
{
    struct slack *s = mem_alloc(1, sizeof *s);
    int r = symbols_open(trace, &s->symbols, err);

    if (r < 0) {
        free(s);
        return r;
    }
    s->trace = trace;
    *ret = s;
    return 0;
}

void slack_free(struct slack *s)
{
    if (!s)
        return;
    units_release(&s->units);
    symbols_free(s->symbols);
    free(s->bins);
    free(s->prediction);
    free(s);
}

/* ---- simulations ---- */

static int slack_open_source(const struct slack *s, const struct machine_config *machine, struct source **ret,
                             struct peet_err *err)
{
    int r = source_open_trace(s->trace, true, ret, err);

    if (r < 0 || machine->cpus * machine->core_threads < 2)
        return r;
    r = source_keep_conditions(*ret, err);
    if (r < 0)
        source_free(*ret);
    return r;
}

static int slack_play_sim(struct sim *sim, const struct slack_play *play, struct sim_result *ret, struct peet_err *err)
{
    sim_set_stop(sim, play->stop);
    int r = sim_run(sim, play->progress, err);
    if (r == 0)
        sim_result(sim, ret);
    return r < 0 ? r : ret->is_interrupted;
}

/* Keeps what the report shows of the first run. */
static void slack_keep_first(struct slack *s, const struct machine_config *machine, const struct sim_result *result,
                             const struct follow_result *followed)
{
    s->machine = *machine;
    s->cycles = result->cycles;
    s->forced_wakeups = result->forced_wakeups;
    s->threads = followed->threads;
    s->bin_cycles = followed->bin_cycles;
    s->bins = mem_alloc((size_t)followed->threads + 1, sizeof *s->bins);
    memcpy(s->bins, followed->bins, followed->threads * sizeof *s->bins);
}

int slack_run(struct slack *s, const struct machine_config *machine, const struct slack_play *play,
              struct peet_err *err)
{
    struct sim_result result = { 0 };
    struct follow_result followed;
    struct follower *f;
    struct source *source;
    struct sim *sim;
    int r = slack_open_source(s, machine, &source, err);

    if (r < 0 || (r = follower_new(source, &s->units, s->symbols, &f, err)) < 0)
        return r;
    r = sim_new(machine, follower_source(f), &sim, err);
    if (r == 0) {
        follower_attach(f, sim);
        r = slack_play_sim(sim, play, &result, err);
        follower_finish(f, &followed);
        units_end_run(&s->units);
        if (r == 0 && s->runs == 0)
            slack_keep_first(s, machine, &result, &followed);
        s->runs += r == 0;
        s->races += followed.races;
        s->thread_cycles += result.cycles * (result.hw_threads < result.threads ? result.hw_threads : result.threads);
        sim_free(sim);
        sim_result_release(&result);
    }
    follower_free(f);
    return r;
}

/* ---- predictions ---- */

/* A unit while units are sorted. */
struct unit_rank {
    uint64_t waited, uses;
    uint32_t unit;
};

static int slack_compare_ranks(const void *a, const void *b)
{
    const struct unit_rank *x = a, *y = b;

    if (x->waited != y->waited)
        return x->waited < y->waited ? 1 : -1;
    if (x->uses != y->uses)
        return x->uses < y->uses ? 1 : -1;
    return x->unit < y->unit ? -1 : x->unit > y->unit;
}

uint32_t *slack_order(struct slack *s, size_t *ret_count)
{
    struct unit_rank *rank = mem_alloc((size_t)s->units.count + 1, sizeof *rank);
    uint32_t *order = mem_alloc((size_t)s->units.count + 1, sizeof *order);
    size_t n = 0;

    for (uint32_t i = 0; i < s->units.count; i++) {
        const struct sync_unit *x = &s->units.unit[i];
        if (x->same_as == UNIT_NONE && x->sum.uses)
            rank[n++] = (struct unit_rank){ x->sum.waited, x->sum.uses, i };
    }
    qsort(rank, n, sizeof *rank, slack_compare_ranks);
    for (size_t i = 0; i < n; i++)
        order[i] = rank[i].unit;
    free(rank);
    *ret_count = n;
    return order;
}

size_t slack_predictions(struct slack *s, uint64_t most)
{
    struct slack_plan plan[SLACK_PLANS];
    size_t count;
    uint32_t *order = slack_order(s, &count);

    s->predictions = 0;
    for (size_t i = 0; i < count && i < most && s->units.unit[order[i]].sum.waited; i++) {
        unsigned plans = slack_plans(&s->units, order[i], plan);
        for (unsigned k = 0; k < plans; k++) {
            s->prediction = mem_room(s->prediction, s->predictions, sizeof *s->prediction);
            s->prediction[s->predictions++] = (struct slack_prediction){ .unit = order[i], .plan = plan[k] };
        }
    }
    free(order);
    return s->predictions;
}

int slack_predict(struct slack *s, size_t i, const struct slack_play *play, struct peet_err *err)
{
    struct slack_prediction *p = &s->prediction[i];
    struct sim_result result = { 0 };
    struct relaxation relaxation;
    struct source *source;
    struct sim *sim;
    int r = slack_open_source(s, &s->machine, &source, err);

    if (r < 0)
        return r;
    slack_relax(&s->units, p->unit, &p->plan, &relaxation);
    source = source_take_relaxed(source, &relaxation);
    r = sim_new(&s->machine, source, &sim, err);
    if (r == 0) {
        r = slack_play_sim(sim, play, &result, err);
        if (r == 0) {
            p->cycles = result.cycles;
            p->forced_wakeups = result.forced_wakeups;
        }
        sim_free(sim);
        sim_result_release(&result);
    }
    source_free(source);
    slack_relax_release(&relaxation);
    return r;
}
