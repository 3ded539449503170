/* SPDX-License-Identifier: MIT */
/* Counts pages of allocated memory by colour (docs/design/sampling.md). */
#include "study/profile/sampling/footprint.h"

#include <stdlib.h>

#include "base/mem.h"

void footprint_init(struct footprint *f, uint64_t bytes, uint32_t ways)
{
    uint64_t way = bytes / ways;

    *f = (struct footprint){ .ways = ways, .colours = way > FOOTPRINT_PAGE ? way / FOOTPRINT_PAGE : 1 };
    f->is_larger = ways <= FOOTPRINT_SPARE;
    f->of_colour = mem_alloc(f->colours, sizeof *f->of_colour);
}

void footprint_release(struct footprint *f)
{
    map_release(&f->pages);
    free(f->of_colour);
    *f = (struct footprint){ 0 };
}

static void footprint_add(struct footprint *f, uint32_t process, uint64_t addr, uint64_t bytes)
{
    uint64_t page = addr / FOOTPRINT_PAGE, last = (addr + (bytes ? bytes - 1 : 0)) / FOOTPRINT_PAGE;

    for (; page <= last && !f->is_larger; page++) {
        size_t before = f->pages.count;
        if (!map_put(&f->pages, page, process)) { /* no memory to count */
            f->is_larger = true;
        } else if (f->pages.count != before) {
            uint32_t *n = &f->of_colour[page % f->colours];
            f->is_larger = ++*n > f->ways - FOOTPRINT_SPARE;
        }
    }
}

void footprint_event(struct footprint *f, uint32_t process, const struct peet_event *e)
{
    if (f->is_larger)
        return;
    switch (e->kind) {
    case PEET_EV_malloc: footprint_add(f, process, e->arg[0], e->arg[1]); break;
    case PEET_EV_calloc: footprint_add(f, process, e->arg[0], e->arg[1] * e->arg[2]); break;
    case PEET_EV_memalign:
    case PEET_EV_realloc: footprint_add(f, process, e->arg[0], e->arg[2]); break;
    case PEET_EV_map:
        if (e->site) /* only stacks come without a call */
            footprint_add(f, process, e->arg[0], e->arg[1]);
        break;
    default: break;
    }
}
