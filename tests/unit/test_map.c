/* SPDX-License-Identifier: MIT */
/* The hash table against a plain array, on random operations over few keys, so that cells collide and move. */
#include "base/map.h"
#include "tests/unit/check.h"

enum { KEYS = 300, TAGS = 3 };

static uint64_t random_word(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Keys that are alike: small numbers, addresses of objects, and some at the ends. */
static uint64_t key_of(unsigned i)
{
    return i < 100 ? i : i < 200 ? 0x7f0000000000 + i * 4096ul : UINT64_MAX - i * 16ul;
}

static void a_map_holds_what_was_put_and_not_removed(void)
{
    static uint64_t expected[KEYS][TAGS];
    struct map m = { .value_size = 12 }; /* not a multiple of 8 */
    uint64_t random = 88172645463325252u;
    size_t count = 0;

    for (int step = 0; step < 200000; step++) {
        uint64_t dice = random_word(&random);
        unsigned i = (unsigned)(dice % KEYS), tag = (unsigned)(dice >> 32) % TAGS, bias = step / 20000 % 2 ? 5 : 3;
        uint64_t *cell = &expected[i][tag];
        uint32_t *found = map_find(&m, key_of(i), tag);
        if (!CHECK_EQ(found != NULL, *cell != 0) || (found && !CHECK_EQ(found[2], (uint32_t)*cell)))
            break;
        if (dice >> 40 & 7 && (dice >> 50 & 7) < bias) {
            uint32_t *value = map_put(&m, key_of(i), tag);
            if (!*cell)
                CHECK(value[0] == 0 && value[1] == 0 && value[2] == 0);
            count += *cell == 0;
            *cell = value[2] = (uint32_t)step + 1;
        } else {
            map_remove(&m, key_of(i), tag);
            count -= *cell != 0;
            *cell = 0;
        }
        CHECK_EQ(m.count, count);
    }
    map_release(&m);
}

static void each_value_comes_once(void)
{
    struct map m = { .value_size = sizeof(uint64_t) };
    uint64_t key, *value, sum = 0;
    uint32_t tag;
    size_t n = 0;

    for (uint64_t i = 0; i < 1000; i++)
        *(uint64_t *)map_put(&m, i, (uint32_t)(i % 7)) = i;
    for (size_t at = 0; (value = map_next(&m, &at, &key, &tag)); n++) {
        CHECK(*value == key && tag == key % 7);
        sum += *value;
    }
    CHECK_EQ(n, 1000);
    CHECK_EQ(sum, 999 * 1000 / 2);
    map_clear(&m);
    CHECK_EQ(m.count, 0);
    CHECK(!map_find(&m, 5, 5));
    CHECK(map_put(&m, 5, 5));
    CHECK_EQ(m.count, 1);
    map_release(&m);
}

static void an_empty_map_has_nothing(void)
{
    struct map m = { .value_size = 8 };
    uint64_t key;
    uint32_t tag;
    size_t at = 0;

    CHECK(!map_find(&m, 0, 0));
    map_remove(&m, 0, 0);
    map_clear(&m);
    CHECK(!map_next(&m, &at, &key, &tag));
    map_release(&m);
}

int main(void)
{
    RUN(a_map_holds_what_was_put_and_not_removed);
    RUN(each_value_comes_once);
    RUN(an_empty_map_has_nothing);
    return check_done();
}
