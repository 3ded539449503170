/* SPDX-License-Identifier: MIT */
/* The code of the subject, decoded once.
 *
 * What stands at an address can change: by mmap, munmap, mprotect and exec, which begin a new generation of the process's
 * code, in which each instruction is read again when it is executed first; or by stores into pages that are executable
 * and writable, or shared with somebody: there the bytes are read at each execution. A version of an instruction that was
 * known before is used again, so that a block stays the same block as long as its bytes are.
 *
 * Leaves out: code that is changed through /proc/PID/mem or by another tracer, or a private mapping of a file that
 * somebody writes. */
#include <string.h>

#include "base/err.h"
#include "capture/step/step.h"

struct version {
    struct x86_insn insn;
    struct version *older;
};

static bool is_unsteady(const struct process *p, uint64_t addr)
{
    for (size_t i = 0; i < p->codes; i++)
        if (addr >= p->code[i].start && addr < p->code[i].end)
            return p->code[i].unsteady;
    return true; /* nobody knows what that is */
}

/* Behind the n bytes that could be read stand zeros. What could not be decoded counts with all of them. */
static bool is_same(const struct x86_insn *insn, const uint8_t *bytes, size_t n)
{
    if (insn->special == X86_UNKNOWN)
        return memcmp(insn->bytes, bytes, X86_MAX_BYTES) == 0;
    return insn->insn.length <= n && memcmp(insn->bytes, bytes, insn->insn.length) == 0;
}

/* The version of what stands at addr that has these bytes. */
static int find_version(struct producer_state *r, uint64_t addr, const uint8_t *bytes, size_t n,
                        const struct x86_insn **ret)
{
    r->versions.value_size = sizeof(struct version *);
    struct version **newest = map_put(&r->versions, addr, 0);
    struct version *v = newest ? *newest : NULL;

    while (v && !is_same(&v->insn, bytes, n))
        v = v->older;
    if (!v) {
        v = arena_alloc(&r->arena, sizeof *v);
        if (!v || !newest)
            return err_set(r->err, PEET_ERR_MEMORY, "no memory for the program's instructions");
        x86_decode(bytes, n, addr, &v->insn);
        v->older = *newest;
        *newest = v;
    }
    *ret = &v->insn;
    return 0;
}

int code_at(struct producer_state *r, struct process *p, uint64_t addr, const struct x86_insn **ret)
{
    uint8_t bytes[X86_MAX_BYTES] = { 0 };

    p->seen.value_size = sizeof(struct seen);
    struct seen *s = map_put(&p->seen, addr, 0);
    if (!s)
        return err_set(r->err, PEET_ERR_MEMORY, "no memory for the program's instructions");
    if (s->insn && s->generation == p->generation) {
        *ret = s->insn;
        return 0;
    }
    size_t n = memory_read(p, addr, bytes, sizeof bytes);
    if (!s->insn || !is_same(s->insn, bytes, n)) {
        int result = find_version(r, addr, bytes, n, &s->insn);
        if (result < 0)
            return result;
    }
    s->generation = is_unsteady(p, addr) ? 0 : p->generation;
    *ret = s->insn;
    return 0;
}
