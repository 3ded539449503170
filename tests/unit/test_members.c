/* SPDX-License-Identifier: MIT */
/* Misses by members: adding up. */
#include <stdlib.h>
#include <string.h>

#include "study/profile/member_costs.h"
#include "tests/unit/check.h"

enum { OBJECTS = 7, OFFSETS = 50, TIMES = 20000 };

static void what_is_told_is_added_up_by_object_and_offset(void)
{
    static uint64_t misses[OBJECTS][OFFSETS], stall[OBJECTS][OFFSETS];
    struct member_costs m;

    member_costs_init(&m);
    srand(1);
    for (int i = 0; i < TIMES; i++) {
        uint32_t object = (uint32_t)(rand() % OBJECTS);
        uint64_t offset = (uint64_t)(rand() % OFFSETS), cycles = (uint64_t)(rand() % 100);
        bool is_miss = rand() % 3 != 0;
        misses[object][offset] += is_miss;
        stall[object][offset] += cycles;
        member_costs_add(&m, object, offset, is_miss, cycles);
    }
    CHECK(m.count <= OBJECTS * OFFSETS);
    for (size_t i = 0; i < m.count; i++) {
        const struct member_cost *c = &m.cost[i];
        CHECK_EQ(c->misses, misses[c->object][c->offset]);
        CHECK_EQ(c->stall, stall[c->object][c->offset]);
        misses[c->object][c->offset] = stall[c->object][c->offset] = 0;
    }
    for (size_t i = 0; i < OBJECTS * OFFSETS; i++)
        CHECK_EQ(misses[i / OFFSETS][i % OFFSETS] + stall[i / OFFSETS][i % OFFSETS], 0);
    member_costs_release(&m);
}

int main(void)
{
    RUN(what_is_told_is_added_up_by_object_and_offset);
    return check_done();
}
