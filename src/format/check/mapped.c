/* SPDX-License-Identifier: MIT */
/* References are to memory of their process: its ranges, segments of its modules, `map` events, allocations, and the memory of
 * the processes from which it was forked.
 *
 * Assumes: pages of 4 KiB. Memory stays mapped: unmap events are ignored, since the order of threads is unknown. Prefetches and code of a
 * kernel may refer to any address. Leaves out: traces from a pipe, which would have to be read twice; traces with incomplete
 * memory (meta key `memory`); processes without ranges and map events, since their stacks are unknown. */
#include <inttypes.h>
#include <stdlib.h>

#include "format/check/family.h"

#define PAGE ((uint64_t)4096)

/* The bytes [first, last]: whole pages. */
struct extent {
    uint64_t first, last;
};

/* The memory of a process. */
struct memory {
    struct extent *at; /* elements [0, sorted): sorted, with gaps between them; then new ones in order of arrival */
    size_t count, sorted, room;
    bool known;       /* it has more than segments of modules */
    bool is_reported; /* the note that it is not known was made */
};

/* The state of the family. */
struct check_state {
    struct map memories; /* struct memory, by process */
};

/* The state of a thread. */
struct check_local {
    struct extent recent[2]; /* lookup cache: extents of the last references, the latest first; empty: first > last */
    bool begun;              /* `recent` is set */
};

/* ---- collecting ---- */

static int extent_compare(const void *a, const void *b)
{
    const struct extent *x = a, *y = b;

    return x->first < y->first ? -1 : x->first > y->first;
}

/* Sorts extents, and merges those that overlap or touch. */
static void memory_sort(struct memory *m)
{
    size_t n = 0;

    if (m->sorted == m->count)
        return;
    qsort(m->at, m->count, sizeof *m->at, extent_compare);
    for (size_t i = 0; i < m->count; i++) {
        struct extent *last = n ? &m->at[n - 1] : NULL;
        if (last && (last->last == UINT64_MAX || m->at[i].first <= last->last + 1))
            last->last = m->at[i].last > last->last ? m->at[i].last : last->last;
        else
            m->at[n++] = m->at[i];
    }
    m->count = m->sorted = n;
}

static int memory_add(struct check *c, struct check_state *s, uint32_t process, uint64_t start, uint64_t size,
                      bool is_segment)
{
    s->memories.value_size = sizeof(struct memory);
    struct memory *m = map_put(&s->memories, process, 0);
    if (!m)
        return check_no_memory(c);
    m->known |= !is_segment;
    if (size == 0)
        return 0;
    uint64_t last = size - 1 > UINT64_MAX - start ? UINT64_MAX : start + (size - 1);
    struct extent e = { start & ~(PAGE - 1), last | (PAGE - 1) };
    /* Most allocations are in known pages: sorting frees their elements, so that the array grows with the memory only. */
    if (m->count > m->sorted && m->at[m->count - 1].first <= e.first && m->at[m->count - 1].last >= e.last)
        return 0;
    if (m->count == m->room && m->count > 2 * m->sorted)
        memory_sort(m);
    struct extent *at = check_room(m->at, m->count, &m->room, sizeof *at);
    if (!at)
        return check_no_memory(c);
    m->at = at;
    at[m->count++] = e;
    return 0;
}

static int mapped_wants_scan(struct check *c, struct check_state *s)
{
    const struct peet_range *range;
    const struct peet_module *module;
    int r = 0;

    if (!c->knows_memory)
        return 0;
    for (size_t i = 0; r == 0 && (range = peet_trace_range(c->trace, i)); i++)
        r = memory_add(c, s, range->process, range->start, range->size, false);
    for (size_t i = 0; r == 0 && (module = peet_trace_module(c->trace, i)); i++)
        for (uint32_t j = 0; r == 0 && j < module->segments; j++)
            r = memory_add(c, s, module->process, module->segment[j].start, module->segment[j].size, true);
    return r < 0 ? r : s->memories.count > 0;
}

static int mapped_scan(struct check *c, struct check_state *s, const struct check_thread *th,
                       const struct peet_event *e)
{
    uint64_t size;

    switch (e->kind) {
    case PEET_EV_map: return memory_add(c, s, th->process, e->arg[0], e->arg[1], false);
    case PEET_EV_malloc: return e->arg[0] ? memory_add(c, s, th->process, e->arg[0], e->arg[1], true) : 0;
    case PEET_EV_calloc:
        if (!e->arg[0] || __builtin_mul_overflow(e->arg[1], e->arg[2], &size))
            return 0;
        return memory_add(c, s, th->process, e->arg[0], size, true);
    case PEET_EV_realloc:
    case PEET_EV_memalign: return e->arg[0] ? memory_add(c, s, th->process, e->arg[0], e->arg[2], true) : 0;
    default: return 0;
    }
}

/* ---- looking up ---- */

static const struct extent *memory_find(struct memory *m, uint64_t addr)
{
    size_t low = 0, high;

    memory_sort(m);
    high = m->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (m->at[middle].last < addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low < m->count && m->at[low].first <= addr ? &m->at[low] : NULL;
}

/* Whether [addr, last] is mapped; updates the lookup cache. */
static bool mapped_has(struct check *c, struct check_state *s, const struct check_thread *th, struct check_local *l,
                       uint64_t addr, uint64_t last)
{
    struct extent *recent = l->recent;

    if (addr >= recent[0].first && last <= recent[0].last)
        return true;
    if (addr >= recent[1].first && last <= recent[1].last) {
        struct extent swap = recent[0];
        recent[0] = recent[1];
        recent[1] = swap;
        return true;
    }
    int generations = 0;
    for (uint32_t process = th->process; generations == 0 || process; process = check_parent(c, process)) {
        struct memory *m = map_find(&s->memories, process, 0);
        const struct extent *e = m ? memory_find(m, addr) : NULL;
        if (e && last <= e->last) {
            recent[1] = recent[0];
            recent[0] = *e;
            return true;
        }
        if (++generations > 1000) /* a cycle of parents, which is reported elsewhere */
            break;
    }
    return false;
}

/* Makes a note, once for each process, if its memory is not known. */
static int mapped_note_unknown(struct check *c, struct check_state *s, uint32_t process)
{
    s->memories.value_size = sizeof(struct memory);
    struct memory *m = map_put(&s->memories, process, 0);
    if (!m)
        return check_no_memory(c);
    if (!m->known && !m->is_reported)
        check_note(c, "the memory of process %" PRIu32 " is not known: where its references go was not checked",
                   process);
    m->is_reported = true;
    return 0;
}

/* ---- references ---- */

static void mapped_report(struct check *c, struct check_position at, const char *what, uint64_t addr, uint64_t size)
{
    check_found_at(c, CHECK_mapped, CHECK_VIOLATION, at, addr,
                   "a %s of %" PRIu64 " bytes at 0x%" PRIx64 " is outside of all memory", what, size, addr);
}

static void mapped_check_range(struct check *c, struct check_state *s, struct check_position at, struct check_local *l,
                               const char *what, uint64_t addr, uint64_t size)
{
    if (size && (size - 1 > UINT64_MAX - addr || !mapped_has(c, s, at.thread, l, addr, addr + (size - 1))))
        mapped_report(c, at, what, addr, size);
}

static void mapped_check_event(struct check *c, struct check_state *s, struct check_position at, struct check_local *l,
                               const struct peet_event *e)
{
    switch (e->kind) {
    case PEET_EV_range_read: mapped_check_range(c, s, at, l, "read", e->arg[0], e->arg[1]); break;
    case PEET_EV_range_write: mapped_check_range(c, s, at, l, "write", e->arg[0], e->arg[1]); break;
    case PEET_EV_range_copy:
        mapped_check_range(c, s, at, l, "write", e->arg[0], e->arg[2]);
        mapped_check_range(c, s, at, l, "read", e->arg[1], e->arg[2]);
        break;
    case PEET_EV_range_compare:
        mapped_check_range(c, s, at, l, "read", e->arg[0], e->arg[2]);
        mapped_check_range(c, s, at, l, "read", e->arg[1], e->arg[2]);
        break;
    default: break;
    }
}

static void mapped_check_reference(struct check *c, struct check_state *s, struct check_position at,
                                   struct check_local *l, const struct peet_record *x)
{
    static const char *const KINDS[] = { [PEET_LOAD] = "load", [PEET_STORE] = "store", [PEET_UPDATE] = "update" };
    uint64_t last = x->addr + (uint64_t)x->size - 1;

    if (last >= x->addr && mapped_has(c, s, at.thread, l, x->addr, last))
        return;
    const struct peet_block *b = peet_trace_insn_block(c->trace, x->id);
    if (b->insn[x->id - b->first_insn].flags & PEET_FL_KERNEL)
        return;
    at.position += x->id - b->first_insn;
    mapped_report(c, at, KINDS[x->kind], x->addr, x->size);
}

static void mapped_check_records(struct check *c, struct check_state *s, const struct check_thread *th,
                                 struct check_local *l, const struct peet_batch *b)
{
    struct check_position at = { th, b->position };
    uint64_t next = b->position; /* of the block after the current one */

    for (size_t i = 0; i < b->count; i++) {
        const struct peet_record *x = &b->records[i];
        uint64_t last = x->addr + (uint64_t)x->size - 1;
        if (x->kind == PEET_BLOCK) {
            at.position = next;
            next += x->size;
        } else if (x->kind == PEET_EVENT) {
            at.position = next;
            mapped_check_event(c, s, at, l, &b->events[x->id]);
        } else if (x->kind != PEET_PREFETCH
                   && (x->addr < l->recent[0].first || last > l->recent[0].last || last < x->addr)) {
            mapped_check_reference(c, s, at, l, x);
        }
    }
}

static int mapped_batch(struct check *c, struct check_state *s, const struct check_thread *th, struct check_local *l,
                        const struct peet_batch *b)
{
    if (peet_trace_is_pipe(c->trace))
        return 0;
    if (!l->begun) {
        int r = mapped_note_unknown(c, s, th->process);
        if (r < 0)
            return r;
        l->recent[0] = l->recent[1] = (struct extent){ 1, 0 };
        l->begun = true;
    }
    const struct memory *m = map_find(&s->memories, th->process, 0);
    if (m && m->known)
        mapped_check_records(c, s, th, l, b);
    return 0;
}

static int mapped_finish(struct check *c, struct check_state *s)
{
    (void)s;
    if (peet_trace_is_pipe(c->trace))
        check_note(c, "the trace came through a pipe: whether references lie in the program's memory was not checked");
    return 0;
}

static void mapped_release(struct check_state *s)
{
    struct memory *m;
    uint64_t process;
    uint32_t tag;

    for (size_t at = 0; (m = map_next(&s->memories, &at, &process, &tag));)
        free(m->at);
    map_release(&s->memories);
}

const struct check_family check_family_mapped = {
    .name = "mapped",
    .state_size = sizeof(struct check_state),
    .local_size = sizeof(struct check_local),
    .wants_scan = mapped_wants_scan,
    .scan = mapped_scan,
    .batch = mapped_batch,
    .finish = mapped_finish,
    .release = mapped_release,
};
