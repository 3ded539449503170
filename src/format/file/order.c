/* SPDX-License-Identifier: MIT */
/* Whether a trace has content, and the events by which its threads wait for each other. A recording of a guest, by single steps, or imported, may lack
 * them; its threads then appear to be independent. */
#include "base/map.h"
#include "peet/trace.h"

/* Events by which one thread waits for another. */
static bool is_wait(uint32_t kind)
{
    switch (kind) {
    case PEET_EV_thread_join:
    case PEET_EV_mutex_lock:
    case PEET_EV_mutex_trylock:
    case PEET_EV_rwlock_rdlock:
    case PEET_EV_rwlock_tryrdlock:
    case PEET_EV_rwlock_wrlock:
    case PEET_EV_rwlock_trywrlock:
    case PEET_EV_spin_lock:
    case PEET_EV_spin_trylock:
    case PEET_EV_spin_wait:
    case PEET_EV_cond_wait:
    case PEET_EV_cond_timedwait:
    case PEET_EV_barrier_wait:
    case PEET_EV_sem_wait:
    case PEET_EV_sem_trywait:
    case PEET_EV_once:
    case PEET_EV_wait: return true;
    default: return false;
    }
}

static bool has_several_threads(const struct peet_trace *t)
{
    struct map threads = { .value_size = sizeof(uint32_t) };
    const struct peet_thread *th;
    struct peet_totals totals;
    bool several = false;

    for (size_t i = 0; !several && (th = peet_trace_thread(t, i)); i++) {
        if (peet_trace_totals(t, th->id, &totals) < 0 || totals.instructions == 0)
            continue;
        uint32_t *n = map_put(&threads, th->process, 0);
        several = n && ++*n > 1;
    }
    map_release(&threads);
    return several;
}

const char *peet_trace_lacks_order(const struct peet_trace *t)
{
    const struct peet_event_item *e;

    if (!has_several_threads(t))
        return NULL;
    for (uint32_t i = 1; i < peet_trace_items(t); i++)
        if ((e = peet_trace_event(t, i)) && is_wait(e->kind))
            return NULL;
    return "this trace has no synchronisation events: threads are taken as independent, so times and speed-ups are at "
           "best bounds";
}

const char *peet_trace_lacks_content(const struct peet_trace *t)
{
    const struct peet_event_item *e;
    const struct peet_thread *th;
    struct peet_totals totals;

    for (size_t i = 0; (th = peet_trace_thread(t, i)); i++)
        if (peet_trace_totals(t, th->id, &totals) == 0 && totals.instructions)
            return NULL;
    for (uint32_t i = 1; i < peet_trace_items(t); i++)
        if ((e = peet_trace_event(t, i)) && e->kind != PEET_EV_thread_start && e->kind != PEET_EV_thread_end)
            return NULL;
    return "nothing was recorded: the trace has no instructions, and no events but the begins and ends of threads";
}
