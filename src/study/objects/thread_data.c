/* SPDX-License-Identifier: MIT */
/* Learns thread pointers from blocks of the schema (thread_data.h). */
#include "study/objects/thread_data.h"

#include <assert.h>

#include "peet/schema.h"

enum { THREAD_POINTER = PEET_SRC_REGISTER + 1 }; /* the number that all recorders use */

void thread_data_init(struct thread_data *d)
{
    *d = (struct thread_data){ .numbers.value_size = sizeof(int64_t) };
}

void thread_data_release(struct thread_data *d)
{
    map_release(&d->numbers);
    mem_spans_release(&d->spans);
}

static void thread_data_add_block(struct thread_data *d, const struct peet_block *b)
{
    for (uint16_t i = 0; i < b->operands; i++) {
        const struct peet_operand *o = &b->operand[i];
        bool is_alone = (i == 0 || o[-1].insn != o->insn) && (i + 1 == b->operands || o[1].insn != o->insn);
        if (!is_alone || o->base != THREAD_POINTER || o->index || o->size_src)
            continue;
        int64_t *number = map_put(&d->numbers, b->insn[o->insn].addr, 0);
        assert(number);
        *number = o->disp;
    }
}

bool thread_data_add(struct thread_data *d, struct symbols *sym, uint32_t process, uint64_t pointer)
{
    uint64_t low = 0, high = UINT64_MAX, size = symbols_local_size(sym, process);

    if (size == 0 || size > pointer || mem_spans_find(&d->spans, process, pointer - 1, &low, &high))
        return false;
    mem_spans_set(&d->spans, &(struct mem_span){ process, 0, pointer - size, pointer, pointer - size, NULL });
    return true;
}

bool thread_data_learn(struct thread_data *d, const struct peet_trace *t, struct symbols *sym, uint32_t process,
                       uint64_t addr, uint64_t insn)
{
    for (uint32_t items = peet_trace_items(t); d->items < items; d->items++) {
        const struct peet_block *b = peet_trace_block(t, d->items);
        if (b)
            thread_data_add_block(d, b);
    }
    const int64_t *number = map_find(&d->numbers, insn, 0);
    return number && thread_data_add(d, sym, process, addr - (uint64_t)*number);
}
