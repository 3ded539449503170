/* SPDX-License-Identifier: MIT */
/* Levels of detail of a trace, from the least to the most: each level includes those before it. */
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
    LEVEL_NONE, /* not given */
#define X(name, adds) LEVEL_##name,
    LEVELS(X) LEVEL_END
#undef X
};

extern const char *const LEVEL_NAMES[]; /* events, …, NULL: those of options, and of the meta key `level` of traces */

const char *level_name(enum level level);
enum level level_find(const char *name); /* LEVEL_NONE: no such level */

#endif
