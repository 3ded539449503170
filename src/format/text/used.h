/* SPDX-License-Identifier: MIT */
/* Which symbols a part of a trace needs: those of the instructions, data and calls in it. */
#ifndef FORMAT_TEXT_USED_H
#define FORMAT_TEXT_USED_H

#include "base/map.h"
#include "format/text/text.h"

/* The symbols that a text names. */
struct text_used {
    struct map symbols; /* uint8_t, by the address of a struct peet_symbol of the trace */
};

/* Reads the records that `o` wants of a file; they end with instruction limit - 1 of each thread. */
int text_used_read(struct text_used *u, struct peet_trace *t, const struct text_options *o, uint64_t limit,
                   struct peet_err *err);
void text_used_release(struct text_used *u); /* also after a failure, and of zeros */

/* The module with these symbols alone, which are in *ret_symbol, to be freed; or an error. */
int text_used_module(const struct text_used *u, const struct peet_module *module, struct peet_module *ret,
                     struct peet_symbol **ret_symbol, struct peet_err *err);

#endif
