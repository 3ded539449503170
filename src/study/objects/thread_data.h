/* SPDX-License-Identifier: MIT */
/* Thread-local data, which lies below thread pointers. Some recorders give thread pointers. Otherwise they are learnt from instructions whose
 * address is the thread pointer plus a constant. References of a thread before its first such instruction belong to its stack or to "unknown". */
#ifndef STUDY_OBJECTS_THREAD_DATA_H
#define STUDY_OBJECTS_THREAD_DATA_H

#include "base/map.h"
#include "study/objects/mem_spans.h"
#include "study/symbols/symbols.h"

/* The thread-local data of threads. */
struct thread_data {
    struct map numbers;     /* int64_t: constant that is added to the thread pointer, by address of the instruction */
    uint32_t items;         /* items of the schema that are in `numbers` */
    struct mem_spans spans; /* data of threads with known thread pointers */
};

void thread_data_init(struct thread_data *d);
void thread_data_release(struct thread_data *d);

/* A thread of a process has that thread pointer. Returns whether it is new. */
bool thread_data_add(struct thread_data *d, struct symbols *sym, uint32_t process, uint64_t pointer);

/* An instruction refers to a byte. Returns whether that gave a new thread pointer. */
bool thread_data_learn(struct thread_data *d, const struct peet_trace *t, struct symbols *sym, uint32_t process,
                       uint64_t addr, uint64_t insn);

#endif
