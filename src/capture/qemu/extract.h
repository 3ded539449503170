/* SPDX-License-Identifier: MIT */
/* The paper's method (Ji et al., NPC 2013), for any source of single instructions: a machine model, a mixed trace. It needs of each
 * instruction processor, address, bytes, stack pointer and physical addresses, and at the end of a pattern the register with the
 * thread's number. */
#ifndef CAPTURE_QEMU_EXTRACT_H
#define CAPTURE_QEMU_EXTRACT_H

#include "capture/qemu/pattern.h"
#include "capture/qemu/threads.h"

/* An executed instruction. */
struct extract_insn {
    unsigned core;
    uint64_t pc, sp;
    const uint8_t *bytes;
    size_t length;
    struct translation translation; /* in the context of the core */
    uint64_t tid;                   /* value of the register that holds the thread's number after a pattern */
};

/* State of the method. The caller sets pattern and window; the rest begins as zeros. */
struct extractor {
    struct pattern pattern;
    struct window_config window;
    struct targets targets;
    struct pattern_search *search; /* one per core */
    unsigned cores;
};

void extractor_release(struct extractor *x);

/* The target that executes the instruction; NULL: none. The last instruction of a pattern does not belong to its target. */
struct target *extract(struct extractor *x, const struct extract_insn *insn);

#endif
