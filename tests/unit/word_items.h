/* SPDX-License-Identifier: MIT */
/* Compares the words of word_reader with the items that a cursor returns one by one. */
#ifndef TESTS_UNIT_WORD_ITEMS_H
#define TESTS_UNIT_WORD_ITEMS_H

#include <string.h>

#include "format/file/trace.h"
#include "format/read/word_reader.h"
#include "tests/unit/check.h"

/* Compares a buffer of words with the next items of a cursor. Returns the number of items; -1: they differ. */
static inline long word_items_same(struct peet_cursor *c, const struct peet_trace *t, const struct read_words *w)
{
    long items = 0;

    for (const uint64_t *word = w->word; word < w->end; items++) {
        const uint64_t *slots;
        uint32_t item;
        struct peet_err err;
        if (peet_cursor_item(c, &item, &slots, &err) != 1 || item != *word++)
            return -1;
        size_t bytes = schema_item(t->schema, item)->slots * sizeof *slots;
        if (items == 0 && w->registers
            && memcmp(w->registers, peet_cursor_registers(c), PEET_REGISTERS * sizeof *slots))
            return -1;
        if (memcmp(word, slots, bytes))
            return -1;
        word += bytes / sizeof *slots;
    }
    return items;
}

/* Reads a thread both ways. Returns the number of items, and counts errors, each of which both readers must have at the same item. */
static inline long word_items_compare(struct peet_trace *t, uint32_t thread, unsigned *errors)
{
    struct peet_err err, other;
    struct peet_cursor *c;
    struct word_reader *w;
    struct read_words words;
    const uint64_t *slots;
    uint32_t item;
    long items = 0, more = 0;
    int r;

    if (!CHECK(peet_cursor_open(t, thread, 0, &c, &err) == 0) || !CHECK(word_reader_open(t, thread, &w, &err) == 0))
        return -1;
    while (more >= 0 && (r = word_reader_next(w, &words, &err)) != 0) {
        if (r < 0 && (peet_cursor_item(c, &item, &slots, &other) != r || strcmp(err.text, other.text)))
            more = -1;
        else if (r > 0)
            more = word_items_same(c, t, &words);
        *errors += r < 0;
        items += more;
    }
    more = more < 0 || peet_cursor_item(c, &item, &slots, &err) != 0 ? -1 : items;
    word_reader_free(w);
    peet_cursor_free(c);
    return more;
}

#endif
