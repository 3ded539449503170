/* SPDX-License-Identifier: MIT */
#include "study/run_study.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const struct run_study *const run_studies[] = {
#define X(name) &run_study_##name,
    RUN_STUDIES(X)
#undef X
};

const struct run_study *run_study_at(size_t i)
{
    return i < sizeof run_studies / sizeof *run_studies ? run_studies[i] : NULL;
}

struct run_study_state *run_study_state_new(const struct run_study *s, const struct run_study_state *like)
{
    struct run_study_state *state = mem_alloc(s->state_size, 1);

    if (like || s->defaults)
        memcpy(state, like ? like : s->defaults, s->state_size);
    return state;
}

void run_study_state_free(const struct run_study *s, struct run_study_state *state)
{
    if (state && s->release)
        s->release(state);
    free(state);
}

int run_studies_open(const struct run_observer *observers, size_t n, const struct machine_config *machine,
                     struct source *source, struct source **ret, struct peet_err *err)
{
    *ret = source;
    for (size_t i = 0; i < n; i++) {
        const struct run_observer *o = &observers[i];
        int r = o->study->open ? o->study->open(o->state, machine, *ret, &source, err) : 0;
        if (r < 0) {
            source_free(source);
            *ret = NULL;
            return r;
        }
        *ret = source;
    }
    return 0;
}

int run_studies_play(const struct run_observer *observers, size_t n, struct observed_run *run,
                     const struct run_play *play, struct peet_err *err)
{
    int r = sim_new(run->machine, run->source, &run->sim, err);

    for (size_t i = 0; r == 0 && i < n; i++)
        r = observers[i].study->begin(observers[i].state, run, err);
    if (r == 0) {
        sim_set_remap(run->sim, play->remap);
        sim_set_stop(run->sim, play->stop);
        r = sim_run(run->sim, play->progress, err);
    }
    if (r == 0) {
        sim_result(run->sim, &run->result);
        return 0;
    }
    sim_free(run->sim);
    run->sim = NULL;
    return r;
}

void run_studies_end(const struct run_observer *observers, size_t n, struct observed_run *run)
{
    for (size_t i = 0; i < n; i++)
        observers[i].study->end(observers[i].state, run);
    sim_free(run->sim);
    run->sim = NULL;
    sim_result_release(&run->result);
}
