/* SPDX-License-Identifier: MIT */
/* Memory for machine code, mapped twice: once to be written and once to be executed, never both at one address. */
#ifndef SIM_EXEC_JIT_CODE_MEMORY_H
#define SIM_EXEC_JIT_CODE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CODE_MEMORY_NAME "peet-code" /* of the file in memory; the kernel lists both mappings as /memfd:peet-code */

/* Memory for machine code, mapped twice. */
struct code_memory {
    uint8_t *write;     /* this mapping is readable and writable */
    const uint8_t *run; /* the same bytes, readable and executable */
    size_t size;        /* bytes of each mapping */
    bool has_sync;      /* the kernel makes processors drop code that they fetched before (membarrier) */
};

/* False: the system refuses executable memory, and *ret is all zero. */
bool code_memory_map(struct code_memory *ret, size_t size);
/* Both mappings go. All zero is fine. */
void code_memory_release(struct code_memory *m);
/* What was written is what will be executed, also where the processor has fetched the bytes of before. */
void code_memory_sync(const struct code_memory *m);

#endif
