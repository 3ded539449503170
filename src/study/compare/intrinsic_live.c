/* SPDX-License-Identifier: MIT */
/* Live runs for `intrinsic`: a program on a machine with the seeds 1, 2, …. A source passes each batch to an observer. */
#include <stdio.h>
#include <stdlib.h>

#include "sim/engine/sim.h"
#include "study/compare/intrinsic.h"

/* A source that shows its batches to an observer. */
struct observed_source {
    struct source source, *inner;     /* inner: borrowed */
    struct stream_observer *observer; /* gets each batch */
};

static int observed_source_next(struct source *s, uint32_t thread, uint64_t reply, struct peet_batch *ret,
                                struct peet_err *err)
{
    struct observed_source *w = (struct observed_source *)(void *)s;
    int r = source_next(w->inner, thread, reply, ret, err);

    w->source.threads = w->inner->threads;
    w->source.has_ended = w->inner->has_ended;
    if (r == 1)
        stream_observer_take(w->observer, &w->source, thread, ret);
    return r;
}

static void observed_source_free(struct source *s)
{
    (void)s; /* it lives in the caller that opened it */
}

static const struct source_kind OBSERVED_SOURCE = { .next = observed_source_next, .free = observed_source_free };

/* A program that runs once with each seed. */
struct seeded_program {
    char *const *argv;
    struct machine_config machine; /* of run 0; other runs have other seeds */
    char name[40];                 /* seed_name */
};

static const char *seed_name(void *context, size_t run)
{
    struct seeded_program *p = context;

    snprintf(p->name, sizeof p->name, "seed %zu", run + 1);
    return p->name;
}

static int play_program(void *context, size_t run, const struct wanted_block *want, size_t wants,
                        struct stream_observer *o, void (*done)(void *argument), void *argument, struct peet_err *err)
{
    struct seeded_program *p = context;
    struct observed_source w = { .observer = o };
    struct sim *sim;
    int r = source_open_program(p->argv, 0, false, &w.inner, err);

    if (r < 0)
        return r;
    w.source = *w.inner;
    w.source.kind = &OBSERVED_SOURCE;
    stream_observer_begin(o, &w.source, want, wants);
    p->machine.seed = run + 1;
    r = sim_new(&p->machine, &w.source, &sim, err);
    if (r == 0) {
        r = sim_run(sim, NULL, err);
        if (r == 0)
            done(argument);
        sim_free(sim);
    }
    source_free(w.inner);
    return r;
}

int intrinsic_program(char *const *argv, const struct machine_config *machine, uint64_t seeds,
                      struct study_answer *answer, struct peet_err *err)
{
    struct seeded_program p = { .argv = argv, .machine = *machine };
    struct intrinsic_runs runs = { (size_t)seeds, &p, seed_name, play_program, NULL };

    return intrinsic_compare(&runs, &answer->result, &answer->differs, err);
}
