/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "study/profile/export.h"

/* Frames of an address, the outermost first; what would end a frame is replaced. */
static void put_frames(const struct profile *p, uint64_t addr, bool is_first, FILE *out)
{
    struct where_frame frame[WHERE_FRAMES];

    for (size_t i = where_code(p->where, p->process, addr, frame); i-- > 0; is_first = false) {
        if (!is_first)
            fputc(';', out);
        for (const char *c = frame[i].function; *c; c++)
            fputc(*c == ';' || *c == '\n' ? ':' : *c, out);
    }
}

static void put_path(const struct profile *p, uint32_t node, FILE *out)
{
    if (node == 0)
        return;
    const struct path_node *n = &p->paths.node[node];
    put_path(p, n->parent, out);
    put_frames(p, n->call, n->parent == 0, out);
}

/* Where a block's own function is. */
static uint64_t home_of(const struct profile *p, const struct profile_leaf *l)
{
    return peet_trace_block(p->trace, l->block)->insn[0].addr;
}

int profile_stacks(const struct profile *p, FILE *out)
{
    for (size_t i = 0; i < p->leaves; i++) {
        const struct profile_leaf *l = &p->leaf[i];
        if (l->compute + l->stall == 0)
            continue;
        put_path(p, l->node, out);
        put_frames(p, home_of(p, l), l->node == 0, out);
        fprintf(out, "%s %" PRIu64 "\n", "", l->compute);
        if (l->stall) {
            put_path(p, l->node, out);
            put_frames(p, home_of(p, l), l->node == 0, out);
            fprintf(out, ";[memory] %" PRIu64 "\n", l->stall);
        }
    }
    return ferror(out) ? -1 : 0;
}
