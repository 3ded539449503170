/* SPDX-License-Identifier: MIT */
#include "sim/fabric/fabric.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define X(name) &fabric_##name,
const struct fabric_kind *const fabrics[] = { FABRICS(X) NULL };
#undef X

const struct fabric_kind *fabric_find(const char *name)
{
    for (size_t i = 0; fabrics[i]; i++)
        if (!strcmp(fabrics[i]->name, name))
            return fabrics[i];
    return NULL;
}

uint64_t fabric_cycles_of(const struct fabric_config *c, uint32_t bytes)
{
    return ((uint64_t)bytes + c->width - 1) / c->width * c->clock;
}

int fabric_init(struct fabric *f, const struct fabric_kind *kind, const struct fabric_config *config)
{
    struct fabric_state *state = NULL;

    assert(config->cpus > 0 && config->cpus <= FABRIC_MAX_CPUS && config->width > 0);
    if (kind->state_size) {
        state = calloc(1, kind->state_size(config));
        if (!state)
            return -1;
    }
    *f = (struct fabric){ .kind = kind, .config = *config, .state = state, .use = { .bin = 1, .parallel = 1 } };
    f->line_cycles = fabric_cycles_of(config, config->line);
    if (kind->init)
        kind->init(f);
    return 0;
}

void fabric_release(struct fabric *f)
{
    free(f->state);
    *f = (struct fabric){ 0 };
}

struct fabric_time fabric_transact(struct fabric *f, const struct transaction *t, uint64_t now)
{
    assert(t->op > BUS_NONE && t->op < BUS_BASE_OPS && t->cpu < f->config.cpus && t->home < f->config.cpus);
    assert(t->supplier < (int)f->config.cpus && t->supplier != (int)t->cpu);
    struct fabric_time time = f->kind->transact(f, t, now);
    assert(time.done >= now && time.waited <= time.done - now);
    f->use.transactions++;
    f->use.by_op[t->op]++;
    f->use.memory_updates += t->writes_memory;
    f->use.bytes += t->bytes;
    f->use.waited += time.waited;
    return time;
}

/* Doubles the length of the bins: the first half of them then holds all cycles. */
static void fabric_use_lengthen(struct fabric_use *u)
{
    enum { HALF = FABRIC_BINS / 2 };

    for (size_t i = 0; i < HALF; i++)
        u->busy[i] = u->busy[2 * i] + u->busy[2 * i + 1];
    memset(u->busy + HALF, 0, HALF * sizeof u->busy[0]);
    u->bin *= 2;
}

void fabric_use_any(struct fabric_use *u, uint64_t from, uint64_t to)
{
    if (from >= to)
        return;
    if (u->bin == 0)
        u->bin = 1;
    while ((to - 1) >> __builtin_ctzll(u->bin) >= FABRIC_BINS)
        fabric_use_lengthen(u);
    unsigned shift = (unsigned)__builtin_ctzll(u->bin); /* a shift is faster than a division */
    u->total += to - from;
    while (from < to) {
        uint64_t left = u->bin - (from & (u->bin - 1)), here = left < to - from ? left : to - from;
        u->busy[from >> shift] += here;
        from += here;
    }
}
