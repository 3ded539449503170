/* SPDX-License-Identifier: MIT */
#include "base/arena.h"

#include "tests/unit/check.h"
#include "tests/unit/random.h"

enum { PIECES = 400, LONGEST = 100000 };

static struct arena arena;

static bool is_all(const unsigned char *p, size_t n, unsigned char value)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != value)
            return false;
    return true;
}

/* Pieces of any size, each filled with a different value after a check that it is zero. */
static void take_and_fill(uint64_t *random)
{
    static unsigned char *piece[PIECES];
    static size_t size[PIECES];

    for (unsigned i = 0; i < PIECES; i++) {
        size[i] = draw(random, draw(random, 8) ? 600 : LONGEST);
        piece[i] = arena_alloc(&arena, size[i]);
        if (!CHECK(piece[i]) || !CHECK_EQ((uintptr_t)piece[i] % 16, 0) || !CHECK(is_all(piece[i], size[i], 0)))
            return;
        memset(piece[i], (int)(1 + i % 255), size[i]);
    }
    for (unsigned i = 0; i < PIECES; i++)
        CHECK(is_all(piece[i], size[i], (unsigned char)(1 + i % 255)));
}

static void pieces_are_zero_also_where_others_were_and_lie_apart(void)
{
    uint64_t random = 1;

    for (unsigned round = 0; round < 30; round++) {
        take_and_fill(&random);
        arena_reset(&arena);
    }
    arena_release(&arena);
}

static void strings_end(void)
{
    char *s = arena_string(&arena, "abcdef", 3);

    CHECK_EQ(s, "abc");
    CHECK_EQ(arena_string(&arena, "", 0), "");
    arena_release(&arena);
}

static void what_cannot_be_had_is_refused(void)
{
    CHECK(!arena_alloc(&arena, SIZE_MAX));
    CHECK(!arena_alloc(&arena, SIZE_MAX / 2 + 1));
    arena_release(&arena);
}

int main(void)
{
    RUN(pieces_are_zero_also_where_others_were_and_lie_apart);
    RUN(strings_end);
    RUN(what_cannot_be_had_is_refused);
    return check_done();
}
