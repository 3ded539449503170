/* SPDX-License-Identifier: MIT */
/* Several observers of a simulation: one observer that passes on what it receives to each of them, in the order in which they were added. */
#include "sim/engine/simulation.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "sim/engine/executor.h"

/* The observers of a run, as one. */
struct sim_observers {
    struct sim_observer all;                                /* its functions are below; `self` is this struct */
    const struct sim_observer *observer[SIM_MAX_OBSERVERS]; /* borrowed */
    const struct sim_observer *tagger;                      /* the one that has tags; NULL: none */
    size_t count;
};

static void observers_block(void *self, uint32_t thread, const struct peet_record *block, uint64_t cycles,
                            uint64_t fetch)
{
    const struct sim_observers *x = self;

    for (size_t i = 0; i < x->count; i++)
        x->observer[i]->block(x->observer[i]->self, thread, block, cycles, fetch);
}

static uint32_t observers_tag(void *self, const struct sim_reference *r)
{
    const struct sim_observers *x = self;

    return x->tagger->tag(x->tagger->self, r);
}

static void observers_reference(void *self, const struct sim_reference *r)
{
    const struct sim_observers *x = self;

    for (size_t i = 0; i < x->count; i++)
        x->observer[i]->reference(x->observer[i]->self, r);
}

static void observers_hit(void *self, uint32_t thread, unsigned cpu, const struct peet_record *r, uint64_t at)
{
    const struct sim_observers *x = self;

    for (size_t i = 0; i < x->count; i++)
        x->observer[i]->hit(x->observer[i]->self, thread, cpu, r, at);
}

static void observers_event(void *self, uint32_t thread, const struct peet_event *e)
{
    const struct sim_observers *x = self;

    for (size_t i = 0; i < x->count; i++)
        x->observer[i]->event(x->observer[i]->self, thread, e);
}

static void observers_add(struct sim_observers *x, const struct sim_observer *o)
{
    assert(x->count < SIM_MAX_OBSERVERS && !(o->tag && x->tagger));
    x->observer[x->count++] = o;
    if (o->tag) {
        x->tagger = o;
        x->all.tag = observers_tag;
    }
}

void sim_add_observer(struct sim *s, const struct sim_observer *o)
{
    assert(s->executor == &executor_records);
    if (s->observer && !s->hooks.observers) {
        s->hooks.observers = mem_alloc(1, sizeof *s->hooks.observers);
        s->hooks.observers->all = (struct sim_observer){ .self = s->hooks.observers,
                                                         .block = observers_block,
                                                         .reference = observers_reference,
                                                         .hit = observers_hit,
                                                         .event = observers_event };
        observers_add(s->hooks.observers, s->observer);
    }
    if (s->hooks.observers)
        observers_add(s->hooks.observers, o);
    s->observer = s->hooks.observers ? &s->hooks.observers->all : o;
    sim_set_lookahead(s, false);
}
