/* SPDX-License-Identifier: MIT */
/* Patterns: instruction sequences by which threads mark themselves (Ji et al., NPC 2013, steps 1 and 5), and the search for them in the
 * instructions that a processor executes.
 *
 * A pattern is a sequence of bytes with a mask; there may be alternatives. Consecutive instructions match consecutive bytes. A search
 * belongs to one processor. It distinguishes threads by stack pointer and address space, so that each can be interrupted anywhere. An
 * instruction of the same thread that does not continue a match ends it. */
#ifndef CAPTURE_QEMU_PATTERN_H
#define CAPTURE_QEMU_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "peet/err.h"

enum { PATTERN_BYTES = 64, PATTERN_ALTERNATIVES = 4, PATTERN_SEARCHES = 16 };

/* A sequence of bytes; only bits in the mask are compared. */
struct pattern_alternative {
    uint8_t byte[PATTERN_BYTES], mask[PATTERN_BYTES];
    size_t length; /* bytes */
};

/* A marker: any of its alternatives. */
struct pattern {
    struct pattern_alternative alternative[PATTERN_ALTERNATIVES];
    unsigned alternatives;
    bool is_marker; /* the marker of peet/mark.h, which has its arguments in registers */
};

/* `machine` is x86_64, aarch64 or riscv64. The text is `default` (the marker of peet/mark.h), `ji` (the paper's three
 * instructions) or `hex:BYTES[/MASK][,BYTES[/MASK]…]`, whose masks are of the same length as their bytes. */
int pattern_parse(const char *text, const char *machine, struct pattern *ret, struct peet_err *err);

/* Compares an instruction with the bytes from index `at`. Returns its length; 0: it differs. */
size_t pattern_fits(const struct pattern_alternative *c, size_t at, const uint8_t *bytes, size_t length);

/* Whether the instruction can be a part of the pattern. Callers need not pass other instructions to pattern_step. */
bool pattern_has(const struct pattern *p, const uint8_t *bytes, size_t length);

/* The search on one processor. Begins as zeros. */
struct pattern_search {
    struct pattern_partial {
        uint64_t pc, sp, space; /* of the next instruction of the match */
        uint8_t alternative;    /* index */
        uint8_t at;             /* number of bytes that have matched; 0: not in use */
    } partial[PATTERN_SEARCHES];
    unsigned next; /* index of the partial match that is replaced when all are in use */
};

/* An instruction that a processor executes. */
struct pattern_insn {
    uint64_t pc, sp;
    uint64_t space; /* root of the address space; 0: not known */
    const uint8_t *bytes;
    size_t length;
};

/* Continues the search with the next instruction. True: the pattern is complete. */
bool pattern_step(struct pattern_search *s, const struct pattern *p, const struct pattern_insn *insn);

#endif
