/* SPDX-License-Identifier: MIT */
/* The code of the recorded program, decoded once.
 *
 * The bytes at an address can change. System calls (mmap, munmap, mprotect, exec) begin a new generation of the process's code, in which each
 * instruction is read again at its first execution. Pages that are executable and writable, or shared, can be stored to; there bytes are read at
 * each execution. An instruction with the same bytes as before is the same version, so that a block stays the same block.
 *
 * Leaves out: code changed through /proc/PID/mem or by another tracer, and private mappings of files that another process writes. */
#include <string.h>

#include "base/err.h"
#include "capture/step/step.h"

/* An instruction at an address, for one sequence of bytes. */
struct code_version {
    struct x86_insn insn;
    struct code_version *older;
};

static bool is_writable_code(const struct tracee_process *p, uint64_t addr)
{
    for (size_t i = 0; i < p->codes; i++)
        if (addr >= p->code[i].start && addr < p->code[i].end)
            return p->code[i].is_writable;
    return true; /* no known mapping */
}

/* Compares bytes of which n could be read; the rest are zeros. Of an instruction that could not be decoded all bytes are compared. */
static bool has_bytes(const struct x86_insn *insn, const uint8_t *bytes, size_t n)
{
    if (insn->special == X86_UNKNOWN)
        return memcmp(insn->bytes, bytes, X86_MAX_BYTES) == 0;
    return insn->insn.length <= n && memcmp(insn->bytes, bytes, insn->insn.length) == 0;
}

/* The version of the instruction at addr with these bytes. */
static int find_version(struct stepper *r, uint64_t addr, const uint8_t *bytes, size_t n, const struct x86_insn **ret)
{
    r->versions.value_size = sizeof(struct code_version *);
    struct code_version **newest = map_put(&r->versions, addr, 0);
    struct code_version *v = newest ? *newest : NULL;

    while (v && !has_bytes(&v->insn, bytes, n))
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

int code_at(struct stepper *r, struct tracee_process *p, uint64_t addr, const struct x86_insn **ret)
{
    uint8_t bytes[X86_MAX_BYTES] = { 0 };

    p->insns.value_size = sizeof(struct cached_insn);
    struct cached_insn *s = map_put(&p->insns, addr, 0);
    if (!s)
        return err_set(r->err, PEET_ERR_MEMORY, "no memory for the program's instructions");
    if (s->insn && s->generation == p->generation) {
        *ret = s->insn;
        return 0;
    }
    size_t n = memory_read(p, addr, bytes, sizeof bytes);
    if (!s->insn || !has_bytes(s->insn, bytes, n)) {
        int result = find_version(r, addr, bytes, n, &s->insn);
        if (result < 0)
            return result;
    }
    s->generation = is_writable_code(p, addr) ? 0 : p->generation;
    *ret = s->insn;
    return 0;
}
