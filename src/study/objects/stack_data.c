/* SPDX-License-Identifier: MIT */
/* See stack_data.h. The CFA of a function follows from the address at which its call stored the return address. If the call is known to go to other code,
 * the function was called by code that is not recorded, and its CFA is unknown. */
#include "study/objects/stack_data.h"

#include <stdlib.h>

#include "base/mem.h"

void stack_data_init(struct stack_data *d, const struct peet_trace *t)
{
    d->trace = t;
    d->targets.value_size = sizeof(uint64_t);
    d->objects.value_size = sizeof(uint32_t);
}

void stack_data_release(struct stack_data *d)
{
    map_release(&d->targets);
    map_release(&d->objects);
    free(d->area);
}

void stack_data_add(struct stack_data *d, const struct stack_area *area)
{
    for (uint32_t i = 0; i < d->areas; i++)
        if (d->area[i].process == area->process && d->area[i].start == area->start) { /* it served another thread */
            d->area[i] = *area;
            return;
        }
    d->area = mem_room(d->area, d->areas, sizeof *d->area);
    d->area[d->areas++] = *area;
}

static const struct stack_area *stack_area_of(const struct stack_data *d, uint32_t process, uint64_t addr)
{
    for (uint32_t i = d->areas; i-- > 0;)
        if (d->area[i].process == process && addr >= d->area[i].start && addr < d->area[i].end)
            return &d->area[i];
    return NULL;
}

/* The thread whose stack that is: its index in the source; UINT32_MAX: unknown. */
static uint32_t stack_owner(const struct stack_data *d, uint32_t process, const struct stack_area *area)
{
    for (uint32_t i = 0; i < d->source->threads && i < d->paths->threads; i++) {
        const struct source_thread *t = &d->source->thread[i];
        if (area ? t->id == area->thread : t->process == process) /* the first stack was there before any event */
            return i;
    }
    return UINT32_MAX;
}

/* The target of the call at an address; 0: it is indirect, or not known. */
static uint64_t stack_call_target(struct stack_data *d, uint64_t call)
{
    for (uint32_t items = peet_trace_items(d->trace); d->items < items; d->items++) {
        const struct peet_block *b = peet_trace_block(d->trace, d->items);
        const struct peet_insn *last = b && b->insns ? &b->insn[b->insns - 1] : NULL;
        uint64_t *target = last && last->class == PEET_CL_call ? map_put(&d->targets, last->addr, 0) : NULL;
        if (target)
            *target = last->target;
    }
    const uint64_t *target = map_find(&d->targets, call, 0);
    return target ? *target : 0;
}

void stack_data_find(struct stack_data *d, struct symbols *sym, const struct stack_area *in, uint64_t addr,
                     uint64_t insn)
{
    const struct stack_area *area = stack_area_of(d, in->process, addr);
    uint32_t owner = d->paths ? stack_owner(d, in->process, area) : UINT32_MAX;
    struct stack_place *p = &d->found;
    struct frame_extent f;

    *p = (struct stack_place){ in->start, in->end, in->start, in->end, .code = insn };
    d->has_found = true;
    if (owner == UINT32_MAX || !paths_frame(d->paths->thread[owner], addr, &f))
        return;
    bool is_own = f.is_current && d->source->thread[owner].id == in->thread;
    if (!is_own && !f.code)
        return;
    p->low = f.low > in->start ? f.low : in->start;
    p->high = f.high < in->end ? f.high : in->end;
    p->code = is_own ? insn : f.code;
    p->is_known = true;
    p->is_other = !is_own;
    uint64_t target = f.call ? stack_call_target(d, f.call) : 0;
    if (f.high == UINT64_MAX && f.sp)
        p->cfa = symbols_frame_end(sym, in->process, f.code, f.sp);
    if (f.high <= (area ? area->end : UINT64_MAX - 1)
        && (!target || symbols_is_same_function(sym, in->process, target, p->code)))
        p->cfa = f.high;
}
