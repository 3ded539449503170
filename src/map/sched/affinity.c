/* SPDX-License-Identifier: MIT */
/* Affinity: a hardware thread takes who ran there last, since its caches may still hold that one's lines, else who waits longest. A hw_thread
 * is never idle while somebody is ready.
 *
 * Taken strictly, two that share a hw_thread could keep a third one waiting for ever. So patience ends: who has waited for PATIENCE times
 * the time that everybody would wait if all took turns goes first, wherever it ran. Without a quantum there is no such time, and
 * contexts run until they wait. */
#include "map/sched/sched.h"

enum { PATIENCE = 4 };

static bool is_impatient(const struct scheduler *s, const struct sched_thread *c, uint64_t now)
{
    uint64_t turns = 1 + s->count / (s->config.hw_threads ? s->config.hw_threads : 1);

    return s->config.quantum > 0 && now > c->ready_at && (now - c->ready_at) / s->config.quantum >= PATIENCE * turns;
}

static struct sched_thread *at_home(const struct scheduler *s, unsigned hw_thread)
{
    struct sched_thread *c = s->first;

    while (c && c->last != (int)hw_thread)
        c = c->next;
    return c;
}

static struct sched_thread *pick(struct scheduler *s, unsigned hw_thread, uint64_t now)
{
    struct sched_thread *c = is_impatient(s, s->first, now) ? NULL : at_home(s, hw_thread);

    return sched_remove(s, c ? c : s->first);
}

/* It would be picked again if nobody else is at home here, so it may as well stay. */
static bool is_over(struct scheduler *s, const struct sched_thread *c, unsigned hw_thread, uint64_t ran, uint64_t now)
{
    (void)c;
    return s->config.quantum > 0 && ran >= s->config.quantum
           && (at_home(s, hw_thread) || is_impatient(s, s->first, now));
}

const struct sched_kind sched_affinity = {
    .name = "affinity", .summary = "who ran here last, else who waits longest", .pick = pick, .is_over = is_over
};
