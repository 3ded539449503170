/* SPDX-License-Identifier: MIT */
/* The row of instructions by which a thread makes itself known (Ji et al., NPC 2013, steps 1 and 5), and the search for it
 * in what a processor executes.
 *
 * A pattern is a row of bytes with a mask, and there may be several of which any will do. Instructions match it one after
 * the other: each begins where the one before ended, in the program as in the pattern. A search belongs to one processor.
 * Threads that take turns on it are told apart by stack pointer and address space, so that each can be interrupted
 * anywhere; an instruction of the same thread that does not continue a match ends it. */
#ifndef CAPTURE_QEMU_PATTERN_H
#define CAPTURE_QEMU_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "peet/err.h"

enum { PATTERN_BYTES = 64, PATTERN_ALTERNATIVES = 4, PATTERN_SEARCHES = 16 };

struct pattern_alternative {
    uint8_t byte[PATTERN_BYTES], mask[PATTERN_BYTES];
    size_t length;
};

struct pattern {
    struct pattern_alternative alternative[PATTERN_ALTERNATIVES];
    unsigned alternatives;
    bool is_marker; /* peet's own: what it tells is in registers (peet/mark.h) */
};

/* `machine` is x86_64, aarch64 or riscv64. The text is `default` (the marker of peet/mark.h), `ji` (the paper's three
 * instructions) or `hex:BYTES[/MASK][,BYTES[/MASK]…]`, whose masks are of the same length as their bytes. */
int pattern_parse(const char *text, const char *machine, struct pattern *ret, struct peet_err *err);

/* How much of the choice stands at `at`, for an instruction: its length, or 0 if it does not fit there. */
size_t pattern_fits(const struct pattern_alternative *c, size_t at, const uint8_t *bytes, size_t length);

/* Whether the instruction can be a part of the pattern at all. All others can be kept from pattern_step, as they cannot
 * stand between two that follow each other without a gap. */
bool pattern_has(const struct pattern *p, const uint8_t *bytes, size_t length);

/* Begins as zeros. */
struct pattern_search {
    struct pattern_partial {
        uint64_t pc, sp, space; /* of the instruction that has to come */
        uint8_t alternative;
        uint8_t at; /* bytes that have matched; 0: not in use */
    } partial[PATTERN_SEARCHES];
    unsigned next; /* to be given up when all are in use */
};

struct pattern_insn {
    uint64_t pc, sp;
    uint64_t space; /* the address space's root, or 0 where nobody knows */
    const uint8_t *bytes;
    size_t length;
};

/* The processor executes an instruction; true: with it the pattern is complete. */
bool pattern_step(struct pattern_search *s, const struct pattern *p, const struct pattern_insn *insn);

#endif
