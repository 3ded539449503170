/* SPDX-License-Identifier: MIT */
#include "map/sched/sched.h"

#include <assert.h>
#include <string.h>

#define X(name) &sched_##name,
const struct sched_kind *const schedulers[] = { SCHEDULERS(X) NULL };
#undef X

const struct sched_kind *sched_find(const char *name)
{
    for (size_t i = 0; schedulers[i]; i++)
        if (!strcmp(schedulers[i]->name, name))
            return schedulers[i];
    return NULL;
}

void sched_init(struct scheduler *s, const struct sched_kind *kind, const struct sched_config *config)
{
    *s = (struct scheduler){ .kind = kind, .config = *config };
}

void sched_ready(struct scheduler *s, struct sched_thread *c, uint64_t now)
{
    c->ready_at = now;
    c->next = NULL;
    if (s->first)
        s->last->next = c;
    else
        s->first = c;
    s->last = c;
    s->count++;
}

struct sched_thread *sched_remove(struct scheduler *s, struct sched_thread *c)
{
    struct sched_thread *before = NULL, *at = s->first;

    for (; at && at != c; at = at->next)
        before = at;
    assert(at);
    if (before)
        before->next = c->next;
    else
        s->first = c->next;
    if (s->last == c)
        s->last = before;
    c->next = NULL;
    s->count--;
    return c;
}

struct sched_thread *sched_pick(struct scheduler *s, unsigned hw_thread, uint64_t now)
{
    return s->first ? s->kind->pick(s, hw_thread, now) : NULL;
}

bool sched_is_over(struct scheduler *s, const struct sched_thread *c, unsigned hw_thread, uint64_t ran, uint64_t now)
{
    if (!s->first)
        return false;
    if (s->kind->is_over)
        return s->kind->is_over(s, c, hw_thread, ran, now);
    return s->config.quantum > 0 && ran >= s->config.quantum;
}
