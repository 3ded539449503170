/* SPDX-License-Identifier: MIT */
/* Tables of store buffers: what a memory order costs against sequential consistency, and at which lines. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "study/run_report.h"

enum { LOCATIONS_SHOWN = 100 };

static const struct column ORDERS[] = { { "order", "Order", CELL_TEXT, false },
                                        { "processors", "Processors", CELL_COUNT, true },
                                        { "seed", "Seed", CELL_COUNT, true },
                                        { "cycles", "Cycles", CELL_COUNT, false },
                                        { "against_sc", "÷ sc", CELL_REAL, false },
                                        { "stores", "Stores", CELL_COUNT, false },
                                        { "forwarded", "Loads forwarded", CELL_COUNT, false },
                                        { "occupancy", "Stores in a buffer", CELL_REAL, false },
                                        { "most", "at most", CELL_COUNT, false },
#define X(name, title) { #name "_stall", "Waited: " title, CELL_COUNT, false },
                                        ORDER_WAITS(X)
#undef X
                                            { 0 } };

static const struct column LOCATIONS[] = { { "why", "Why", CELL_TEXT, false },
                                           { "location", "Location", CELL_TEXT, false },
                                           { "address", "Address", CELL_HEX, false },
                                           { "times", "Times", CELL_COUNT, false },
                                           { "cycles", "Cycles waited", CELL_COUNT, false },
                                           { 0 } };

static struct order_counts order_counts_sum(const struct sim_result *r)
{
    struct order_counts sum = { 0 };

    for (uint32_t i = 0; i < r->orders; i++) {
        const struct order_counts *n = &r->order[i];
        sum.stores += n->stores;
        sum.forwarded += n->forwarded;
        sum.occupied += n->occupied;
        sum.most = n->most > sum.most ? n->most : sum.most;
        for (unsigned k = 0; k < ORDER_WAIT_KINDS; k++)
            sum.waited[k] += n->waited[k];
    }
    return sum;
}

static struct table *run_report_orders(struct run_report *m)
{
    if (m->orders)
        return m->orders;
    m->orders = result_table(&m->result, "orders", "Memory orders and store buffers", ORDERS);
    table_note(m->orders,
               "Stores in a buffer: the mean over the run's cycles and all hardware threads. Cycles waited for a "
               "buffer are those of all hardware threads, and part of miss stall.");
    table_note(
        m->orders,
        "Locks, barriers, joins, conditions and semaphores are acquire and release: they wait until the buffer is "
        "empty. So are atomics, as far as they are LOCK-prefixed or marked. A release store of C11 is a plain MOV "
        "on x86, and under an order weaker than tso it is a plain store.");
    return m->orders;
}

void run_report_add_order(struct run_report *m, const struct machine_config *c, const struct sim_result *r,
                          uint64_t run)
{
    uint64_t which = m->seeds ? run % m->seeds : 0;

    if (!config_has_store_buffers(c)) {
        m->sc_cycles[which] = r->is_interrupted ? 0 : (double)r->cycles;
        m->sc_cpus = c->cpus;
        return;
    }
    struct order_counts sum = order_counts_sum(r);
    double time = (double)r->cycles * r->hw_threads, sc = m->sc_cpus == c->cpus ? m->sc_cycles[which] : 0;
    struct table *t = run_report_orders(m);
    table_text(t, c->order.model->name);
    table_count(t, c->cpus);
    table_count(t, c->seed);
    table_count(t, r->cycles);
    sc > 0 && !r->is_interrupted ? table_real(t, (double)r->cycles / sc) : table_none(t);
    table_count(t, sum.stores);
    table_count(t, sum.forwarded);
    table_real(t, time > 0 ? (double)sum.occupied / time : 0);
    table_count(t, sum.most);
    for (unsigned k = 0; k < ORDER_WAIT_KINDS; k++)
        table_count(t, sum.waited[k]);
}

static int run_report_compare_locations(const void *a, const void *b)
{
    const struct order_location *x = a, *y = b;

    if ((x->kind < ORDER_WAIT_KINDS) != (y->kind < ORDER_WAIT_KINDS))
        return x->kind < ORDER_WAIT_KINDS ? -1 : 1;
    if (x->cycles != y->cycles)
        return x->cycles > y->cycles ? -1 : 1;
    if (x->times != y->times)
        return x->times > y->times ? -1 : 1;
    return x->addr != y->addr ? (x->addr < y->addr ? -1 : 1) : (int)x->kind - (int)y->kind;
}

/* Adds up the instructions of each line. Returns the number of places that are left. */
static uint32_t order_locations_join(struct order_location *at, uint32_t count)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t k = 0;
        while (k < kept && (at[k].kind != at[i].kind || !at[i].name[0] || strcmp(at[k].name, at[i].name)))
            k++;
        if (k == kept) {
            at[kept++] = at[i];
        } else {
            at[k].times += at[i].times;
            at[k].cycles += at[i].cycles;
        }
    }
    return kept;
}

void run_report_add_order_locations(struct run_report *m, const struct sim_result *r)
{
    if (r->order_locations == 0)
        return;
    struct order_location *at = mem_alloc(r->order_locations, sizeof *at);
    struct table *t = result_table(&m->result, "order_locations", "Where the memory order matters, by line", LOCATIONS);
    memcpy(at, r->order_location, r->order_locations * sizeof *at);
    uint32_t count = order_locations_join(at, r->order_locations);
    qsort(at, count, sizeof *at, run_report_compare_locations);
    for (uint32_t i = 0; i < count && i < LOCATIONS_SHOWN; i++) {
        table_text(t, order_wait_title((enum order_wait)at[i].kind));
        table_text(t, at[i].name[0] ? at[i].name : NULL);
        at[i].addr ? table_count(t, at[i].addr) : table_none(t);
        table_count(t, at[i].times);
        table_count(t, at[i].cycles);
    }
    table_note(t, "Times are executions of fences and atomics, and waits otherwise.");
    table_note(
        t,
        "A %s read memory while the store of another domain to its bytes was pending; a %s is that store. To these "
        "plain accesses the memory order applied.",
        order_wait_title(ORDER_WAIT_early_load), order_wait_title(ORDER_WAIT_overtaken_store));
    if (count > LOCATIONS_SHOWN)
        table_note(t, "%u more are not shown.", count - LOCATIONS_SHOWN);
    free(at);
}
