/* SPDX-License-Identifier: MIT */
/* For the programs here: the bytes of a recorded program's code, from its file. */
#ifndef TESTS_E2E_CODE_H
#define TESTS_E2E_CODE_H

#include <stdio.h>

#include "peet/trace.h"

/* Up to n bytes that stood at addr; returns how many. */
static inline size_t code_read(const struct peet_trace *t, uint64_t addr, uint8_t *ret, size_t n)
{
    const struct peet_module *m;

    for (size_t i = 0; (m = peet_trace_module(t, i)); i++)
        for (uint32_t k = 0; k < m->segments; k++) {
            const struct peet_segment *g = &m->segment[k];
            if (addr < g->start || addr >= g->start + g->size)
                continue;
            FILE *f = fopen(m->path, "rb");
            size_t got = 0;
            if (f && fseek(f, (long)(g->offset + (addr - g->start)), SEEK_SET) == 0)
                got = fread(ret, 1, n, f);
            if (f)
                fclose(f);
            return got;
        }
    return 0;
}

#endif
