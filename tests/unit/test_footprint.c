/* SPDX-License-Identifier: MIT */
/* Whether all that was ever allocated fits into a cache, against a count of lines by set. */
#include <stdlib.h>

#include "check.h"
#include "study/profile/sampling/footprint.h"
#include "tests/unit/random.h"

enum { SETS = 1024, WAYS = 8, LINE = 64, BYTES = SETS * WAYS * LINE };

static uint64_t state = 1;

static void allocate(struct footprint *f, uint64_t addr, uint64_t bytes)
{
    footprint_event(f, 0, &(struct peet_event){ .kind = PEET_EV_malloc, .args = 2, .arg = { addr, bytes } });
}

static void what_fits_with_ways_to_spare_is_told(void)
{
    struct footprint f;

    footprint_init(&f, BYTES, WAYS);
    allocate(&f, 1 << 20, BYTES / WAYS * (WAYS - FOOTPRINT_SPARE));
    CHECK(!f.is_larger);
    allocate(&f, 1 << 20, BYTES / WAYS * (WAYS - FOOTPRINT_SPARE)); /* the same memory once more */
    CHECK(!f.is_larger);
    allocate(&f, 1 << 30, 1);
    CHECK(f.is_larger);
    footprint_release(&f);
}

static void direct_mapped_caches_never_have_room(void)
{
    struct footprint f;

    footprint_init(&f, BYTES, 1);
    CHECK(f.is_larger);
    footprint_release(&f);
}

/* If it fits, no set has more lines than ways, whatever was allocated. */
static void no_set_is_overfull_if_all_fits(void)
{
    unsigned fit = 0;

    for (unsigned round = 0; round < 300; round++) {
        static bool is_used[1 << 16]; /* by line, of 4 MB */
        unsigned lines[SETS] = { 0 }, most = 0;
        struct footprint f;
        memset(is_used, 0, sizeof is_used);
        footprint_init(&f, BYTES, WAYS);
        for (uint64_t left = 1 + draw(&state, 30); left > 0; left--) {
            uint64_t addr = draw(&state, 4 << 20), bytes = 1 + draw(&state, 40000);
            bytes = addr + bytes < 4 << 20 ? bytes : 1;
            allocate(&f, addr, bytes);
            for (uint64_t i = addr / LINE; i <= (addr + bytes - 1) / LINE; i++)
                is_used[i] = true;
        }
        for (uint64_t i = 0; i < 1 << 16; i++)
            lines[i % SETS] += is_used[i];
        for (unsigned i = 0; i < SETS; i++)
            most = lines[i] > most ? lines[i] : most;
        CHECK(f.is_larger || most <= WAYS - FOOTPRINT_SPARE);
        fit += !f.is_larger;
        footprint_release(&f);
    }
    CHECK(fit > 30 && fit < 270);
}

int main(void)
{
    RUN(what_fits_with_ways_to_spare_is_told);
    RUN(direct_mapped_caches_never_have_room);
    RUN(no_set_is_overfull_if_all_fits);
    return check_done();
}
