/* SPDX-License-Identifier: MIT */
/* The paper's method as it stands there (Ji et al., NPC 2013), for whatever executes instructions one by one: a machine model,
 * a mixed trace. It needs nothing but each instruction's processor, address, bytes and stack pointer, physical
 * addresses, and at the end of a pattern the register that holds the thread's number. */
#ifndef CAPTURE_QEMU_EXTRACT_H
#define CAPTURE_QEMU_EXTRACT_H

#include "capture/qemu/pattern.h"
#include "capture/qemu/threads.h"

struct extract_insn {
    unsigned core;
    uint64_t pc, sp;
    const uint8_t *bytes;
    size_t length;
    struct translation translation; /* in the context of the core */
    uint64_t tid;                   /* the register that a pattern leaves it in */
};

/* pattern and window are to be set, all else begins as zeros. */
struct extractor {
    struct pattern pattern;
    struct window_config window;
    struct targets targets;
    struct pattern_search *search; /* one per core */
    unsigned cores;
};

void extractor_release(struct extractor *x);

/* Whose instruction this is; NULL: no target's. The pattern's last instruction is not yet one of its thread. */
struct target *extract(struct extractor *x, const struct extract_insn *insn);

#endif
