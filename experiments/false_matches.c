/* SPDX-License-Identifier: MIT */
/* usage: false_matches TRACE PATTERN…
 * How often patterns are found in what was executed, though no program placed them (Ji et al. 2013 say that longer ones are found
 * less often; J16). The trace is one of x86-64, and knows the modules whose files have the bytes of the instructions;
 * patterns are as in peet record --pattern. Each thread is a processor. Writes a line for each pattern: its matches and the
 * instructions that were looked at; and at the end how many had no bytes, and are in none of them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/qemu/pattern.h"
#include "peet/trace.h"

enum { PATTERNS = 1024, INSN_BYTES = 16 };

/* An instruction that some pattern may have. */
struct candidate {
    uint64_t pc;
    uint8_t bytes[INSN_BYTES];
    size_t length;
    uint16_t *pattern; /* which ones */
    unsigned patterns;
};

/* What is of interest in a block. */
struct code {
    struct candidate *at;
    unsigned count, insns, unknown; /* unknown: instructions without bytes */
    bool is_ready;
};

static struct pattern pattern[PATTERNS];
static uint64_t matches[PATTERNS];
static unsigned patterns;
static struct peet_trace *trace;

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "false_matches: %s: %s\n", what, why);
    exit(2);
}

static void *allocate(size_t n, size_t bytes)
{
    void *p = calloc(n ? n : 1, bytes);

    if (!p)
        fail("memory", "there is none");
    return p;
}

/* ---- bytes ---- */

static bool bytes_at(uint32_t process, uint64_t addr, uint8_t *bytes, size_t n)
{
    static const struct peet_module *open;
    static FILE *file;
    const struct peet_module *m;

    for (size_t i = 0; (m = peet_trace_module(trace, i)); i++)
        for (uint32_t j = 0; m->process == process && j < m->segments; j++) {
            const struct peet_segment *s = &m->segment[j];
            if (!(s->protection & 1) || addr < s->start || addr - s->start + n > s->size)
                continue;
            if (open != m) {
                if (file)
                    fclose(file);
                file = fopen(m->path, "rb");
                open = m;
            }
            return file && fseek(file, (long)(s->offset + (addr - s->start)), SEEK_SET) == 0
                   && fread(bytes, 1, n, file) == n;
        }
    return false;
}

static void add_candidate(struct code *c, const struct peet_insn *insn, const uint8_t *bytes)
{
    struct candidate *k = &c->at[c->count];

    *k = (struct candidate){ .pc = insn->addr, .length = insn->length };
    memcpy(k->bytes, bytes, insn->length);
    k->pattern = allocate(patterns, sizeof *k->pattern);
    for (unsigned i = 0; i < patterns; i++)
        if (pattern_has(&pattern[i], k->bytes, k->length))
            k->pattern[k->patterns++] = (uint16_t)i;
    if (k->patterns)
        c->count++;
    else
        free(k->pattern);
}

static void read_code(struct code *c, uint32_t process, const struct peet_block *b)
{
    uint8_t bytes[INSN_BYTES];

    c->is_ready = true;
    c->insns = b->insns;
    c->at = allocate(b->insns, sizeof *c->at);
    for (unsigned i = 0; i < b->insns; i++) {
        const struct peet_insn *insn = &b->insn[i];
        if (insn->length <= INSN_BYTES && bytes_at(process, insn->addr, bytes, insn->length))
            add_candidate(c, insn, bytes);
        else
            c->unknown++;
    }
}

/* ---- what was executed ---- */

static void execute(const struct code *c, struct pattern_search *search)
{
    for (unsigned i = 0; i < c->count; i++) {
        const struct candidate *k = &c->at[i];
        struct pattern_insn insn = { .pc = k->pc, .bytes = k->bytes, .length = k->length };
        for (unsigned j = 0; j < k->patterns; j++)
            matches[k->pattern[j]] += pattern_step(&search[k->pattern[j]], &pattern[k->pattern[j]], &insn);
    }
}

/* Blocks are a process's own: the same addresses are other instructions in another one. */
static void look_at_thread(const struct peet_thread *t, uint64_t *ret_insns, uint64_t *ret_unknown)
{
    struct pattern_search *search = allocate(patterns, sizeof *search);
    struct code *code = allocate(peet_trace_items(trace), sizeof *code);
    struct peet_cursor *cursor;
    struct peet_err err;
    const uint64_t *slots;
    uint32_t item;
    int r;

    if (peet_cursor_open(trace, t->id, 0, &cursor, &err) < 0)
        fail(peet_trace_path(trace), err.text);
    while ((r = peet_cursor_item(cursor, &item, &slots, &err)) > 0) {
        const struct peet_block *b = peet_trace_block(trace, item);
        if (!b)
            continue;
        if (!code[item].is_ready)
            read_code(&code[item], t->process, b);
        *ret_insns += code[item].insns;
        *ret_unknown += code[item].unknown;
        execute(&code[item], search);
    }
    if (r < 0)
        fail(peet_trace_path(trace), err.text);
    peet_cursor_free(cursor);
    free(code); /* its content is not needed and ends with this process */
    free(search);
}

int main(int argc, char **argv)
{
    struct peet_err err;
    uint64_t insns = 0, unknown = 0;

    if (argc < 3 || argc - 2 > PATTERNS)
        fail("usage", "false_matches TRACE PATTERN…");
    for (int i = 2; i < argc; i++)
        if (pattern_parse(argv[i], "x86_64", &pattern[patterns++], &err) < 0)
            fail(argv[i], err.text);
    if (peet_trace_open(argv[1], &trace, &err) < 0)
        fail(argv[1], err.text);
    const struct peet_thread *t;
    for (size_t i = 0; (t = peet_trace_thread(trace, i)); i++)
        look_at_thread(t, &insns, &unknown);
    for (unsigned i = 0; i < patterns; i++)
        printf("%s %" PRIu64 " %" PRIu64 "\n", argv[i + 2], matches[i], insns);
    printf("unknown %" PRIu64 " %" PRIu64 "\n", unknown, insns);
    peet_trace_free(trace);
    return 0;
}
