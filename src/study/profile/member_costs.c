/* SPDX-License-Identifier: MIT */
#include "study/profile/member_costs.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

void member_costs_init(struct member_costs *m)
{
    *m = (struct member_costs){ .numbers.value_size = sizeof(uint32_t) };
}

void member_costs_release(struct member_costs *m)
{
    map_release(&m->numbers);
    free(m->cost);
}

void member_costs_add(struct member_costs *m, uint32_t object, uint64_t offset, uint64_t misses, uint64_t stall)
{
    uint32_t *number = map_put(&m->numbers, offset, object);

    assert(number);
    if (*number == 0) {
        m->cost = mem_room(m->cost, m->count, sizeof *m->cost);
        m->cost[m->count++] = (struct member_cost){ .object = object, .offset = offset };
        *number = (uint32_t)m->count;
    }
    m->cost[*number - 1].misses += misses;
    m->cost[*number - 1].stall += stall;
}
