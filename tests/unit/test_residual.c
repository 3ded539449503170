/* SPDX-License-Identifier: MIT */
/* Differences go to their planes as docs/trace-format.md says, and come back, whatever mix of sizes they are. */
#include "base/bytes.h"
#include "base/cpu.h"
#include "check.h"
#include "format/codec/residual.h"

enum { MOST = 3000, SLACK = 16 };

static uint64_t state = 1;

static uint64_t draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state ^ state >> 29;
}

/* n numbers, of which `odd` in 16 have another number of bits than most. */
static void make(uint64_t *v, size_t n, unsigned bits, unsigned odd)
{
    for (size_t i = 0; i < n; i++)
        v[i] = draw() >> (draw() % 16 < odd ? draw() % 64 : 64 - bits);
}

struct planes {
    uint8_t byte[RESIDUAL_PLANES][4 * MOST + SLACK];
    size_t size[RESIDUAL_PLANES];
};

/* The document, word for word. */
static void split_slowly(const uint64_t *v, size_t n, struct planes *p)
{
    memset(p, 0, sizeof *p);
    for (size_t i = 0; i < n; i++) {
        unsigned class = v[i] < 1u << 16 ? 0 : v[i] < 1u << 24 ? 1 : v[i] >> 32 == 0 ? 2 : 3;
        p->byte[0][i / 4] |= (uint8_t)(class << 2 * (i % 4));
        p->size[0] = i / 4 + 1;
        for (unsigned k = 0; k < 4; k++)
            if (k < 2 || class + 1 >= k)
                p->byte[1 + k][p->size[1 + k]++] = (uint8_t)(v[i] >> 8 * k);
        for (unsigned k = 4; class == 3 && k < 8; k++)
            p->byte[5][p->size[5]++] = (uint8_t)(v[i] >> 8 * k);
    }
}

static void split_in_pieces(const uint64_t *v, size_t n, struct planes *p)
{
    struct residual_writer to = { p->byte[0], p->byte[1], p->byte[2], p->byte[3], p->byte[4], p->byte[5] };

    while (n > 0) {
        size_t some = draw() % 200 * 4;
        some = some < n ? some : n;
        residuals_split(v, some, &to);
        v += some;
        n -= some;
    }
    const uint8_t *end[] = { to.classes, to.b0, to.b1, to.b2, to.b3, to.high };
    for (int i = 0; i < RESIDUAL_PLANES; i++)
        p->size[i] = (size_t)(end[i] - p->byte[i]);
}

static bool come_back(const uint64_t *v, size_t n, const struct planes *p)
{
    struct residual_reader from = { p->byte[0], p->byte[1], p->byte[2], p->byte[3], p->byte[4], p->byte[5] };
    static uint64_t out[MOST];
    bool same = true;

    for (size_t at = 0; at < n;) {
        size_t some = draw() % 200 * 4;
        some = some < n - at ? some : n - at;
        residuals_join(&from, some, out + at);
        at += some;
    }
    for (size_t i = 0; i < n; i++)
        same &= out[i] == (uint64_t)zigzag_decode(v[i]);
    return same;
}

static void differences_go_to_planes_and_come_back(void)
{
    static const unsigned BITS[] = { 3, 16, 20, 24, 31, 32, 40, 64 };
    static struct planes fast, slow;
    static uint64_t v[MOST];

    for (unsigned round = 0; round < 400; round++) {
        size_t n = draw() % MOST;
        make(v, n, BITS[round % 8], round % 5);
        split_slowly(v, n, &slow);
        split_in_pieces(v, n, &fast);
        bool same = true;
        for (int i = 0; i < RESIDUAL_PLANES; i++)
            same &= fast.size[i] == slow.size[i] && !memcmp(fast.byte[i], slow.byte[i], slow.size[i]);
        if (!CHECK(same) || !CHECK(come_back(v, n, &slow)))
            printf("# round %u, %zu differences\n", round, n);
    }
}

static void planes_that_do_not_belong_together_are_refused(void)
{
    static struct planes p;
    static uint64_t v[MOST];

    for (unsigned round = 0; round < 50; round++) {
        size_t n = 1 + draw() % (MOST - 1);
        make(v, n, 31, 4);
        split_slowly(v, n, &p);
        struct residual_reader from = { p.byte[0], p.byte[1], p.byte[2], p.byte[3], p.byte[4], p.byte[5] };
        CHECK(residuals_fit(&from, p.size, n));
        for (int i = 0; i < RESIDUAL_PLANES; i++) {
            p.size[i]++;
            CHECK(!residuals_fit(&from, p.size, n));
            p.size[i]--;
        }
        CHECK(!residuals_fit(&from, p.size, n + 1));
    }
}

int main(void)
{
    RUN(differences_go_to_planes_and_come_back);
    cpu_force_scalar = true;
    RUN(differences_go_to_planes_and_come_back);
    RUN(planes_that_do_not_belong_together_are_refused);
    return check_done();
}
