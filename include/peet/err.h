/* SPDX-License-Identifier: MIT */
/* How functions say what went wrong: they return 0 or a negative code, and fill in a peet_err that the caller owns. */
#ifndef PEET_ERR_H
#define PEET_ERR_H

enum peet_err_code {
    PEET_ERR_USAGE = -1,       /* the caller asked for something that makes no sense */
    PEET_ERR_IO = -2,          /* the system refused: open, read, write, no space */
    PEET_ERR_FORMAT = -3,      /* not a trace, or a version or feature that this reader does not know */
    PEET_ERR_DAMAGED = -4,     /* a trace, but this part of it is missing or not what was written */
    PEET_ERR_MEMORY = -5,      /* no memory */
    PEET_ERR_LIMIT = -6,       /* more than the format can hold */
    PEET_ERR_INTERRUPTED = -7, /* the user asked to stop */
};

/* An error. */
struct peet_err {
    int code;       /* 0, or one of the above */
    char text[500]; /* one line, no newline: where, what was found, what was expected */
};

#endif
