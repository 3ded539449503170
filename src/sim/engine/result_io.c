/* SPDX-License-Identifier: MIT */
/* Transfer of a result between two processes of the same build: the bytes of the struct, then those of each array. */
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "sim/engine/sim.h"

enum { MOST = 1 << 20 }; /* elements of an array */

void sim_result_release(struct sim_result *r)
{
    free(r->hw_thread);
    free(r->memory);
    free(r->sync_object);
    free(r->program);
    free(r->evictions);
    free(r->order);
    free(r->order_location);
    free(r->speculation);
    *r = (struct sim_result){ 0 };
}

static bool result_put(FILE *out, const void *from, size_t size, size_t count)
{
    return count == 0 || fwrite(from, size, count, out) == count;
}

int sim_result_write(const struct sim_result *r, FILE *out, struct peet_err *err)
{
    struct sim_result numbers = *r;

    numbers.hw_thread = NULL;
    numbers.memory = NULL;
    numbers.sync_object = NULL;
    numbers.program = NULL;
    numbers.evictions = NULL;
    numbers.order = NULL;
    numbers.order_location = NULL;
    numbers.speculation = NULL;
    if (!result_put(out, &numbers, sizeof numbers, 1)
        || !result_put(out, r->hw_thread, sizeof *r->hw_thread, r->hw_threads)
        || !result_put(out, r->memory, sizeof *r->memory, r->cpus)
        || !result_put(out, r->sync_object, sizeof *r->sync_object, r->sync_objects)
        || !result_put(out, r->program, sizeof *r->program, r->programs)
        || !result_put(out, r->evictions, sizeof *r->evictions, (size_t)r->programs * r->programs)
        || !result_put(out, r->order, sizeof *r->order, r->orders)
        || !result_put(out, r->order_location, sizeof *r->order_location, r->order_locations)
        || !result_put(out, r->speculation, sizeof *r->speculation, r->speculations))
        return err_set(err, PEET_ERR_IO, "the result of the simulation cannot be written");
    return 0;
}

/* An array, or NULL. */
static void *result_get(FILE *in, size_t size, size_t count)
{
    void *row = count <= MOST ? mem_alloc(count + 1, size) : NULL;

    if (row && fread(row, size, count, in) == count)
        return row;
    free(row);
    return NULL;
}

int sim_result_read(struct sim_result *ret, FILE *in, struct peet_err *err)
{
    struct sim_result r;

    if (fread(&r, sizeof r, 1, in) != 1)
        return err_set(err, PEET_ERR_IO, "the simulation has left no result");
    r.hw_thread = result_get(in, sizeof *r.hw_thread, r.hw_threads);
    r.memory = result_get(in, sizeof *r.memory, r.cpus);
    r.sync_object = result_get(in, sizeof *r.sync_object, r.sync_objects);
    r.program = result_get(in, sizeof *r.program, r.programs);
    r.evictions = result_get(in, sizeof *r.evictions, (size_t)r.programs * r.programs);
    r.order = result_get(in, sizeof *r.order, r.orders);
    r.order_location = result_get(in, sizeof *r.order_location, r.order_locations);
    r.speculation = result_get(in, sizeof *r.speculation, r.speculations);
    if (!r.hw_thread || !r.memory || !r.sync_object || !r.program || !r.evictions || !r.order || !r.order_location
        || !r.speculation) {
        sim_result_release(&r);
        return err_set(err, PEET_ERR_IO, "the simulation has left a part of its result only");
    }
    *ret = r;
    return 0;
}
