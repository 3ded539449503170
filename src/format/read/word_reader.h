/* SPDX-License-Identifier: MIT */
/* Reads a thread of a trace as event words: of each item its number, and its slots. Items are decoded into the words; no records are made. */
#ifndef FORMAT_READ_WORD_READER_H
#define FORMAT_READ_WORD_READER_H

#include "format/file/trace.h"

struct word_reader;

/* Words of whole items, valid until the next call for the same reader. */
struct read_words {
    uint64_t *word, *end;
    const uint64_t *registers; /* all trace registers before the first word; NULL: as the words before have left them */
};

int word_reader_open(struct peet_trace *t, uint32_t thread, struct word_reader **ret, struct peet_err *err);
void word_reader_free(struct word_reader *r); /* NULL: does nothing */

/* The next words, of one chunk: 1, 0 at the end of the thread, or an error. After PEET_ERR_DAMAGED the next call continues after the damage. Events of
 * later versions of the format are left out. */
int word_reader_next(struct word_reader *r, struct read_words *ret, struct peet_err *err);

#endif
