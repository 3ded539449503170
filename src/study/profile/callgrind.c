/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "study/profile/export.h"
#include "study/profile/totals.h"

/* What a line costs by itself. */
struct cost {
    uint64_t compute, stall, references, misses;
};

static int by_function(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return x[0] != y[0] ? (x[0] < y[0] ? -1 : 1) : x[1] < y[1] ? -1 : x[1] > y[1];
}

static struct cost *add_up(const struct totals *t)
{
    const struct profile *p = t->p;
    struct cost *cost = mem_alloc(t->lines + 1, sizeof *cost);

    for (uint32_t item = 0; item < p->items; item++) {
        const struct peet_block *b = p->block[item].runs ? peet_trace_block(p->trace, item) : NULL;
        if (b)
            cost[t->place[b->first_insn].line].stall += p->block[item].fetch;
        for (uint32_t i = 0; b && i < b->insns; i++)
            cost[t->place[b->first_insn + i].line].compute += p->block[item].runs * p->machine.cost[b->insn[i].class];
    }
    for (size_t i = 0; i < p->cells; i++) {
        const struct profile_cell *c = &p->cell[i];
        struct cost *to = &cost[t->place[c->place].line];
        to->compute += c->compute;
        to->references += c->references;
        to->misses += c->misses;
        for (unsigned k = 0; k < CAUSES; k++)
            to->stall += c->stall[k];
    }
    return cost;
}

int profile_callgrind(const struct profile *p, FILE *out)
{
    struct totals t;

    totals_make(&t, p, NULL);
    struct cost *cost = add_up(&t);
    uint64_t(*order)[2] = mem_alloc(t.lines + 1, sizeof *order);
    for (uint32_t i = 0; i < t.lines; i++) {
        order[i][0] = t.line[i].function;
        order[i][1] = i;
    }
    qsort(order, t.lines, sizeof *order, by_function);
    fprintf(out, "# callgrind format\nversion: 1\ncreator: peet profile\npositions: line\n");
    fprintf(out, "event: Cycles : compute and memory stall\nevent: Stall : memory stall\n");
    fprintf(out, "events: Cycles Stall References Misses\n");
    for (uint32_t i = 0, last = UINT32_MAX; i < t.lines; i++) {
        uint32_t line = (uint32_t)order[i][1], function = t.line[line].function;
        const struct cost *c = &cost[line];
        if (c->compute + c->stall + c->references == 0)
            continue;
        if (function != last)
            fprintf(out, "\nfl=%s\nfn=%s\n", t.function[function].file ? t.function[function].file : "???",
                    t.function[function].name);
        last = function;
        fprintf(out, "%" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", t.line[line].line,
                c->compute + c->stall, c->stall, c->references, c->misses);
    }
    free(order);
    free(cost);
    totals_release(&t);
    return ferror(out) ? -1 : 0;
}
