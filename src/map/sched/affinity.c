/* SPDX-License-Identifier: MIT */
/* Affinity: a hardware thread runs the ready thread that ran on it last, since its caches may still hold that thread's lines. If there
 * is none, it runs the thread that has waited longest. A hardware thread is never idle while a thread is ready.
 *
 * Two threads that share a hardware thread could starve a third one. So a thread that has waited for PATIENCE times the round-robin
 * waiting time runs next, wherever it ran before. Without a quantum there is no such time, and threads run until they wait. */
#include "map/sched/sched.h"

enum { PATIENCE = 4 };

static bool affinity_is_due(const struct scheduler *s, const struct sched_thread *c, uint64_t now)
{
    uint64_t turns = 1 + s->count / (s->config.hw_threads ? s->config.hw_threads : 1);

    return s->config.quantum > 0 && now > c->ready_at && (now - c->ready_at) / s->config.quantum >= PATIENCE * turns;
}

static struct sched_thread *affinity_thread_of(const struct scheduler *s, unsigned hw_thread)
{
    struct sched_thread *c = s->first;

    while (c && c->last != (int)hw_thread)
        c = c->next;
    return c;
}

static struct sched_thread *affinity_pick(struct scheduler *s, unsigned hw_thread, uint64_t now)
{
    struct sched_thread *c = affinity_is_due(s, s->first, now) ? NULL : affinity_thread_of(s, hw_thread);

    return sched_remove(s, c ? c : s->first);
}

/* If no other ready thread ran here last, the running thread would be picked again, so its quantum does not end. */
static bool affinity_is_over(struct scheduler *s, const struct sched_thread *c, unsigned hw_thread, uint64_t ran,
                             uint64_t now)
{
    (void)c;
    return s->config.quantum > 0 && ran >= s->config.quantum
           && (affinity_thread_of(s, hw_thread) || affinity_is_due(s, s->first, now));
}

const struct sched_kind sched_affinity = { .name = "affinity",
                                           .summary = "the thread that ran here last, else the one that waits longest",
                                           .pick = affinity_pick,
                                           .is_over = affinity_is_over };
