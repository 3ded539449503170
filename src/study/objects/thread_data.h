/* SPDX-License-Identifier: MIT */
/* Where threads have their own data: below their thread pointers. Not all who record tell them, but instructions that refer to memory by nothing else than the
 * thread pointer and a number do. Where nobody has told, a thread has to execute one before its data is known: all that it refers to before, by an index on
 * the thread pointer, is taken for its stack's or for unknown. */
#ifndef STUDY_OBJECTS_THREAD_DATA_H
#define STUDY_OBJECTS_THREAD_DATA_H

#include "base/map.h"
#include "study/objects/mem_spans.h"
#include "study/symbols/symbols.h"

struct thread_data {
    struct map numbers;     /* int64_t: what is added to the thread pointer, by the instruction's address */
    uint32_t items;         /* of the schema, that are in it */
    struct mem_spans spans; /* of each thread that was seen: what is below its thread pointer */
};

void thread_data_init(struct thread_data *d);
void thread_data_release(struct thread_data *d);

/* A thread of a process has that thread pointer: whether it was not known. */
bool thread_data_add(struct thread_data *d, struct symbols *sym, uint32_t process, uint64_t pointer);

/* An instruction refers to a byte: whether that tells of a thread that was not known. */
bool thread_data_learn(struct thread_data *d, const struct peet_trace *t, struct symbols *sym, uint32_t process,
                       uint64_t addr, uint64_t insn);

#endif
