/* SPDX-License-Identifier: MIT */
/* How much a trace tells, from the least to the most: each level holds what those before it hold. */
#ifndef CAPTURE_LEVEL_H
#define CAPTURE_LEVEL_H

/* X(name, what it adds) */
#define LEVELS(X) \
    X(events, "threads, locks, allocations …: abstract events alone") \
    X(calls, "entries of functions, calls and returns, as blocks of one instruction") \
    X(blocks, "every instruction") \
    X(memory, "every reference to memory") \
    X(all, "the values that references move")

enum level {
    LEVEL_NONE, /* nobody has asked for one */
#define X(name, adds) LEVEL_##name,
    LEVELS(X) LEVEL_END
#undef X
};

extern const char *const LEVEL_NAMES[]; /* events, …, NULL: those of options, and of the meta key `level` of traces */

const char *level_name(enum level level);
enum level level_find(const char *name); /* LEVEL_NONE: there is none of that name */

#endif
