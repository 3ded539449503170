/* SPDX-License-Identifier: MIT */
/* A summarised loop has a second copy of its instructions, for all trips but the first. These give which instruction of the
 * trace one of the program is a copy of, and which jumps were inserted. */
#ifndef TESTS_E2E_COPIES_H
#define TESTS_E2E_COPIES_H

#include <unistd.h>

#include "base/bytes.h"
#include "base/map.h"
#include "capture/recorder/live.h"
#include "peet/trace.h"

struct copies {
    struct map original; /* uint64_t, by the copy's address; 0: a jump that was inserted */
};

static inline void copies_add(struct copies *c, uint64_t copy, uint64_t original)
{
    uint64_t *at = map_put(&c->original, copy, 0);

    if (at)
        *at = original;
}

static inline void copies_of_module(struct copies *c, const struct live_module *m)
{
    struct live_entry e, parent;
    struct live_loop loop;

    for (uint64_t key = m->schema; module_next_entry(m, &key, &e);) {
        struct byte_reader own = { e.rest, e.end, 0 };
        if (!module_loop(&e, &loop))
            continue;
        uint64_t offset = e.flags & RAW_IN_PREDECESSOR ? reader_leb(&loop.rest) : 0;
        if (offset && module_entry(m, e.parent, &parent))
            copies_add(c, parent.start + offset, 0);
        for (uint64_t i = 0; i < loop.jump_count; i++)
            copies_add(c, e.start + reader_leb(&loop.jumps), 0);
        for (unsigned i = 0; e.kind == RAW_LOOP && i < e.insns; i++)
            copies_add(c, e.start + reader_leb(&loop.copies), e.start + reader_leb(&own));
    }
}

/* Reads the programs of a trace where they stood when they were recorded. */
static inline void copies_find(struct copies *c, const struct peet_trace *t)
{
    const struct peet_module *m;
    struct peet_err err;

    c->original.value_size = sizeof(uint64_t);
    for (size_t i = 0; (m = peet_trace_module(t, i)); i++)
        for (uint32_t k = 0; k < m->segments; k++) {
            const struct peet_segment *s = &m->segment[k];
            struct mapping code = { s->start, s->start + s->size, s->offset, s->protection, false, m->path };
            struct live_module *found;
            if (!(s->protection & 1) || module_open(getpid(), &code, &found, &err) < 0 || !found)
                continue;
            copies_of_module(c, found);
            module_free(found);
        }
}

/* The instruction that the one at addr is a copy of, or addr. */
static inline uint64_t copies_original(const struct copies *c, uint64_t addr)
{
    const uint64_t *at = map_find(&c->original, addr, 0);

    return at && *at ? *at : addr;
}

static inline bool copies_is_inserted(const struct copies *c, uint64_t addr)
{
    const uint64_t *at = map_find(&c->original, addr, 0);

    return at && !*at;
}

#endif
