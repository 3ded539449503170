/* SPDX-License-Identifier: MIT */
/* usage: valgrind --tool=lackey --trace-mem=yes PROGRAM 2>&1 | lackey TRACE
 * Compares the references in the trace of a program with those that lackey, which shares no code with us, saw in another run of the
 * same program; the program must not be position-independent, so that its code has the same addresses in both.
 *
 * What lackey sees is separated by the instruction that does it:
 *   recorded     instructions that the trace's schema knows: these are compared, instruction by instruction
 *   inserted     all others in functions of which the schema knows instructions: what peet cc put there
 *   runtime      the rest of the executable: the runtime of the recording, and the start of programs
 *   libraries    everything elsewhere
 * Three things lackey counts otherwise: each element of a repeated string instruction is a reference, or two; a locked instruction
 * is a load and an update; bt and kin put the register that they test into memory. Differences in these are listed apart.
 * Where the program faults, as it does at the end of each of its buffers, lackey may lose a few references before the fault.
 * Prints a table and the instructions that differ most; status 1 when the sums of recorded code differ by more than 0.5 %. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "peet/trace.h"
#include "tests/e2e/code.h"
#include "tests/e2e/copies.h"

enum group { RECORDED, INSERTED, RUNTIME, LIBRARIES, GROUPS };
static const char *const GROUP[] = { "recorded", "inserted", "runtime", "libraries" };
enum { MOST = 5, LINE = 400 };
static const double TOLERANCE = 0.005;

struct place { /* per address of an instruction */
    uint64_t ours, theirs;
    bool is_known, is_string, is_locked;
};

static struct peet_trace *trace;
static struct copies copies;
static uint32_t process;
static struct map places = { .value_size = sizeof(struct place) };
static struct map functions = { .value_size = 1 }; /* that have recorded instructions */
static uint64_t instructions[GROUPS], references[GROUPS];
static const struct peet_module *executable;

static void read_schema(void)
{
    const struct peet_process *p = peet_trace_process(trace, 0);
    const struct peet_module *m;

    process = p ? p->id : 0;
    for (uint32_t i = 0; i < peet_trace_insns(trace); i++) {
        const struct peet_insn *in = peet_trace_insn(trace, i);
        const struct peet_symbol *y = in ? peet_trace_symbol(trace, process, in->addr) : NULL;
        struct place *at = in ? map_put(&places, in->addr, 0) : NULL;
        if (!at)
            continue;
        at->is_known = true;
        at->is_string = in->flags & PEET_FL_STRING;
        at->is_locked = in->flags & PEET_FL_ATOMIC;
        if (y)
            map_put(&functions, y->addr, 0);
    }
    copies_find(&copies, trace);
    for (size_t i = 0; p && (m = peet_trace_module(trace, i)); i++)
        if (!strcmp(m->path, p->program))
            executable = m;
}

static int read_trace(void)
{
    uint64_t *count = mem_alloc(peet_trace_insns(trace) + 1, sizeof *count);
    const struct peet_thread *t;
    struct peet_cursor *c;
    struct peet_batch batch;
    struct peet_err err;
    int r = 0;

    for (size_t i = 0; r == 0 && (t = peet_trace_thread(trace, i)); i++) {
        if ((r = peet_cursor_open(trace, t->id, 0, &c, &err)) < 0)
            break;
        while ((r = peet_cursor_next(c, &batch, &err)) == 1)
            for (size_t k = 0; k < batch.count; k++)
                if (peet_is_reference(&batch.records[k]))
                    count[batch.records[k].id]++;
        peet_cursor_free(c);
    }
    if (r < 0)
        fprintf(stderr, "lackey: %s\n", err.text);
    for (uint32_t i = 0; i < peet_trace_insns(trace); i++) {
        const struct peet_insn *in = peet_trace_insn(trace, i);
        struct place *at = in ? map_find(&places, in->addr, 0) : NULL;
        if (at)
            at->ours += count[i];
    }
    free(count);
    return r;
}

/* bt, bts, btr and btc of two registers, or of one and a number. */
static bool is_bit_test(uint64_t addr)
{
    uint8_t bytes[8];
    size_t n = code_read(trace, addr, bytes, sizeof bytes), i = 0;

    while (i < n && (bytes[i] == 0x66 || (bytes[i] & 0xf0) == 0x40))
        i++;
    if (i + 2 >= n || bytes[i] != 0x0f || bytes[i + 2] < 0xc0)
        return false;
    return bytes[i + 1] == 0xba || (bytes[i + 1] & 0xe7) == 0xa3;
}

static bool is_executable(uint64_t addr)
{
    for (uint32_t i = 0; executable && i < executable->segments; i++)
        if (addr - executable->segment[i].start < executable->segment[i].size)
            return true;
    return false;
}

static enum group group_of(uint64_t addr, const struct place *at)
{
    if (at && at->is_known)
        return RECORDED;
    if (!is_executable(addr))
        return LIBRARIES;
    const struct peet_symbol *y = peet_trace_symbol(trace, process, addr);
    return y && map_find(&functions, y->addr, 0) ? INSERTED : RUNTIME;
}

static void read_lackey(void)
{
    char line[LINE];
    uint64_t addr = 0;
    struct place *at = NULL;
    enum group group = LIBRARIES;

    while (fgets(line, sizeof line, stdin)) {
        if (line[0] == 'I' && line[1] == ' ') {
            uint64_t next = strtoull(line + 3, NULL, 16);
            if (next != addr) {
                addr = next;
                at = map_find(&places, copies_original(&copies, addr), 0);
                group = group_of(addr, at);
            }
            instructions[group]++;
        } else if (line[0] == ' ' && (line[1] == 'L' || line[1] == 'S' || line[1] == 'M')) {
            references[group]++;
            if (group == RECORDED)
                at->theirs++;
        }
    }
}

static int compare_places(const void *x, const void *y)
{
    const struct place *p = map_find(&places, *(const uint64_t *)x, 0), *q = map_find(&places, *(const uint64_t *)y, 0);
    uint64_t m = p->ours > p->theirs ? p->ours - p->theirs : p->theirs - p->ours;
    uint64_t n = q->ours > q->theirs ? q->ours - q->theirs : q->theirs - q->ours;

    return m > n ? -1 : m < n;
}

int main(int argc, char **argv)
{
    struct peet_err err;
    uint64_t ours = 0, strings = 0, locked = 0, bits = 0, key, differing = 0;
    uint64_t *by = NULL;
    const struct place *at;
    uint32_t tag;

    if (argc != 2 || peet_trace_open(argv[1], &trace, &err) < 0) {
        fprintf(stderr, "lackey: %s\n", argc == 2 ? err.text : "one trace is wanted");
        return 2;
    }
    read_schema();
    if (read_trace() < 0)
        return 2;
    read_lackey();
    for (size_t i = 0; (at = map_next(&places, &i, &key, &tag));) {
        ours += at->ours;
        strings += at->is_string ? at->theirs - at->ours : 0;
        locked += at->is_locked && !at->is_string ? at->theirs - at->ours : 0;
        if (at->ours == at->theirs || at->is_string || at->is_locked)
            continue;
        if (is_bit_test(key)) {
            bits += at->theirs - at->ours;
            continue;
        }
        by = mem_room(by, differing, sizeof *by);
        by[differing++] = key;
    }
    uint64_t theirs = references[RECORDED];
    double apart = theirs ? ((double)ours - (double)(theirs - strings - locked - bits)) / (double)theirs : 1;
    printf("%-12s %14s %14s\n", "lackey", "instructions", "references");
    for (int g = 0; g < GROUPS; g++)
        printf("%-12s %14" PRIu64 " %14" PRIu64 "\n", GROUP[g], instructions[g], references[g]);
    printf("references of recorded code: %" PRIu64 " in the trace, %" PRIu64 " by lackey, which counts %" PRId64
           " more in strings, %" PRId64 " in locked instructions and %" PRId64 " in tests of bits; apart by %.4f %%\n",
           ours, theirs, (int64_t)strings, (int64_t)locked, (int64_t)bits, 100 * apart);
    qsort(by, differing, sizeof *by, compare_places);
    for (uint64_t i = 0; i < differing && i < MOST; i++) {
        const struct peet_symbol *y = peet_trace_symbol(trace, process, by[i]);
        at = map_find(&places, by[i], 0);
        printf("  0x%" PRIx64 " %s+0x%" PRIx64 ": %" PRIu64 ", lackey %" PRIu64 "\n", by[i], y ? y->name : "?",
               y ? by[i] - y->addr : 0, at->ours, at->theirs);
    }
    printf("%" PRIu64 " instructions differ\n", differing);
    free(by);
    return fabs(apart) > TOLERANCE || theirs == 0 ? 1 : 0;
}
