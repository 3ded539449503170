/* SPDX-License-Identifier: MIT */
/* The heap of each process: over the whole trace, no address is freed more often than it was allocated. For each address
 * only the difference is kept, and only while it is not 0.
 *
 * A forked process may free blocks that its parent allocated, so forked processes are left out. */
#include <inttypes.h>

#include "format/check/family.h"

/* Allocations and releases of heap blocks at one address, beyond those that match. */
struct balance {
    uint64_t allocated, freed; /* events; one of the two is 0 */
    uint32_t thread;           /* id of the thread of the last free */
    uint64_t position;         /* of that event: instructions of the thread before it */
};

/* The state of the family. */
struct check_state {
    struct map balances; /* struct balance, by address and process */
};

static int heap_allocate(struct check *c, struct check_state *s, uint32_t process, uint64_t addr)
{
    if (addr == 0)
        return 0;
    struct balance *b = map_put(&s->balances, addr, process);
    if (!b)
        return check_no_memory(c);
    if (b->freed == 0)
        b->allocated++;
    else if (--b->freed == 0)
        map_remove(&s->balances, addr, process);
    return 0;
}

static int heap_free(struct check *c, struct check_state *s, struct check_position at, uint64_t addr)
{
    if (addr == 0)
        return 0;
    struct balance *b = map_put(&s->balances, addr, at.thread->process);
    if (!b)
        return check_no_memory(c);
    if (b->allocated == 0) {
        b->freed++;
        b->thread = at.thread->id;
        b->position = at.position;
    } else if (--b->allocated == 0) {
        map_remove(&s->balances, addr, at.thread->process);
    }
    return 0;
}

static int heap_event(struct check *c, struct check_state *s, const struct check_thread *th, struct check_local *l,
                      const struct peet_event *e, uint64_t position)
{
    struct check_position at = { th, position };
    int r = 0;

    (void)l;
    s->balances.value_size = sizeof(struct balance);
    switch (e->kind) {
    case PEET_EV_malloc:
    case PEET_EV_calloc:
    case PEET_EV_memalign: return heap_allocate(c, s, th->process, e->arg[0]);
    case PEET_EV_realloc:
        if (e->arg[0] || e->arg[2] == 0) /* otherwise it failed, and the old memory stays */
            r = heap_free(c, s, at, e->arg[1]);
        return r < 0 ? r : heap_allocate(c, s, th->process, e->arg[0]);
    case PEET_EV_free: return heap_free(c, s, at, e->arg[0]);
    default: return 0;
    }
}

static int heap_finish(struct check *c, struct check_state *s)
{
    const struct balance *b;
    uint64_t addr;
    uint32_t process;

    if (!c->knows_memory) {
        check_note(c, "memory may have been allocated before the recording began: what is freed was not checked");
        return 0;
    }
    for (size_t at = 0; c->whole && (b = map_next(&s->balances, &at, &addr, &process));) {
        if (b->freed == 0 || check_parent(c, process))
            continue;
        struct check_position last_free = { &(struct check_thread){ .id = b->thread }, b->position };
        check_found_at(c, CHECK_free, c->has_gaps ? CHECK_WARNING : CHECK_VIOLATION, last_free, addr,
                       "the memory at 0x%" PRIx64 " is freed %" PRIu64 " times more often than it was allocated", addr,
                       b->freed);
    }
    return 0;
}

static void heap_release(struct check_state *s)
{
    map_release(&s->balances);
}

const struct check_family check_family_heap = {
    .name = "heap",
    .state_size = sizeof(struct check_state),
    .event = heap_event,
    .finish = heap_finish,
    .release = heap_release,
};
