/* SPDX-License-Identifier: MIT */
#include "map/source/touched.h"

#include <stdlib.h>

enum { PAGE_LINES = 512 };

/* PAGE_LINES consecutive lines. */
struct touched_page {
    uint64_t bits[PAGE_LINES / 64]; /* a bit for each line: it was added */
};

void touched_init(struct touched_lines *t)
{
    *t = (struct touched_lines){ .pages.value_size = sizeof(struct touched_page *) };
}

void touched_release(struct touched_lines *t)
{
    struct touched_page **page;
    uint64_t key;
    uint32_t tag;

    for (size_t at = 0; (page = map_next(&t->pages, &at, &key, &tag)) != NULL;)
        free(*page);
    map_release(&t->pages);
}

static struct touched_page *find_page(struct touched_lines *t, uint32_t process, uint64_t number)
{
    size_t at = number % TOUCHED_AT_HAND;

    if (t->at_hand[at].number == number + 1 && t->at_hand[at].process == process)
        return t->at_hand[at].page;
    struct touched_page **page = map_put(&t->pages, number, process);
    if (page && !*page)
        *page = calloc(1, sizeof **page);
    if (!page || !*page)
        return NULL;
    t->at_hand[at].number = number + 1;
    t->at_hand[at].process = process;
    t->at_hand[at].page = *page;
    return *page;
}

int touched_add_range(struct touched_lines *t, uint32_t process, uint64_t first, uint64_t last)
{
    for (uint64_t line = first; line <= last; line++) {
        struct touched_page *p = find_page(t, process, line / PAGE_LINES);
        if (!p)
            return -1;
        p->bits[line % PAGE_LINES / 64] |= (uint64_t)1 << line % 64;
    }
    if (first == last) {
        t->recent[first % TOUCHED_RECENT].line = first + 1;
        t->recent[first % TOUCHED_RECENT].process = process;
    }
    return 0;
}

bool touched_has(const struct touched_lines *t, uint32_t process, uint64_t line)
{
    struct touched_page *const *page = map_find(&t->pages, line / PAGE_LINES, process);

    return page && *page && ((*page)->bits[line % PAGE_LINES / 64] >> line % 64 & 1);
}
