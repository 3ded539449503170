/* SPDX-License-Identifier: MIT */
/* Sharing in runs with known answers, and against a naive model that handles granules one by one. */
#include "tests/unit/random.h"
#include "tests/unit/study_program.h"

static uint64_t state = 7;

/* ---- sharing ---- */

static void check_sums(void)
{
    static const char *const KINDS[] = { "bytes", "private", "read_only", "shared", "many", "ordered", "unordered" };

    for (unsigned i = 0; i < 7; i++)
        CHECK_EQ(sum("data", KINDS[i]), number("summary", 0, KINDS[i]));
    CHECK_EQ(sum("threads", "private"), number("summary", 0, "private"));
    CHECK_EQ(sum("threads", "references"), number("summary", 0, "references"));
    CHECK_EQ(sum("pairs", "ordered"), number("summary", 0, "ordered"));
    CHECK_EQ(sum("pairs", "unordered"), number("summary", 0, "unordered"));
    CHECK_EQ(sum("threads", "read"), sum("pairs", "ordered"));
    CHECK_EQ(sum("threads", "written"), sum("pairs", "ordered"));
    CHECK_EQ(number("summary", 0, "bytes"),
             number("summary", 0, "private") + number("summary", 0, "read_only") + number("summary", 0, "shared"));
}

static void what_one_writes_and_others_read_later_goes_to_each_of_them(void)
{
    enum { THREADS = 4, WORDS = 100 };

    for (unsigned grain = 4; grain <= 64; grain *= 2) {
        program_begin(THREADS);
        for (unsigned i = 0; i < WORDS; i++)
            does(1, "b3 0x%x", 0x700000 + 8 * i);
        create_all(THREADS);
        for (unsigned i = 2; i <= THREADS; i++)
            for (unsigned k = 0; k < 2 * WORDS; k++)
                does(i, "b2 0x%x", 0x700000 + 8 * (k % WORDS));
        if (!program_end(THREADS) || !ask_with("sharing", "grain", grain))
            return;
        uint64_t bytes = (8 * WORDS + grain - 1) / grain * grain;
        CHECK_EQ(number("summary", 0, "bytes"), bytes);
        CHECK_EQ(number("summary", 0, "shared"), bytes);
        CHECK_EQ(number("summary", 0, "many"), 0);
        CHECK_EQ(table_of("pairs")->rows, THREADS - 1);
        for (unsigned i = 0; i < THREADS - 1; i++) {
            CHECK_EQ(number("pairs", i, "writer"), 1);
            CHECK_EQ(number("pairs", i, "reader"), i + 2);
            CHECK_EQ(number("pairs", i, "ordered"), bytes);
            CHECK_EQ(number("pairs", i, "unordered"), 0);
        }
        check_sums();
        study_release(&answer);
    }
}

static void what_has_no_order_is_told_as_unordered(void)
{
    program_begin(3);
    create_all(3);
    does(2, "b3 0x500000");
    does(3, "b2 0x500000");
    does(2, "b2 0x500008"); /* only read */
    does(3, "b2 0x500008");
    does(3, "b3 0x500010"); /* private: written, then read */
    does(3, "b2 0x500010");
    does(2, "b4 0x500018"); /* both count on it */
    does(3, "b4 0x500018");
    does(2, "range_write 0x500020 16");
    does(3, "range_copy 0x500040 0x500020 16");
    if (!program_end(3) || !ask("sharing"))
        return;
    CHECK_EQ(number("summary", 0, "read_only"), 8);
    CHECK_EQ(number("summary", 0, "private"), 8 + 16);
    CHECK_EQ(number("summary", 0, "shared"), 8 + 8 + 16);
    CHECK_EQ(number("summary", 0, "many"), 8);
    CHECK_EQ(number("summary", 0, "ordered"), 0);
    CHECK_EQ(number("pairs", 0, "unordered"), 8 + 8 + 16);
    CHECK_EQ(number("pairs", 1, "unordered"), 8);
    CHECK_EQ(cell_of("data", 0, "data")->text, "table");
    check_sums();
    study_release(&answer);
}

static void what_is_joined_or_met_by_all_is_in_order_and_nothing_else(void)
{
    program_begin(4);
    create_all(4);
    does(2, "b3 0x500000");
    does(2, "barrier_wait 0x500080 2"); /* thread 4 is not there, so that it orders nothing for all */
    does(3, "barrier_wait 0x500080 2");
    does(3, "b3 0x500008");
    does(4, "b2 0x500000");
    join_all(4);
    does(1, "b2 0x500000");
    does(1, "b2 0x500008");
    if (!program_end(4) || !ask("sharing"))
        return;
    CHECK_EQ(table_of("pairs")->rows, 3);
    CHECK_EQ(number("pairs", 0, "reader"), 1);
    CHECK_EQ(number("pairs", 0, "ordered"), 8);
    CHECK_EQ(number("pairs", 1, "reader"), 4);
    CHECK_EQ(number("pairs", 1, "unordered"), 8);
    CHECK_EQ(number("pairs", 1, "ordered"), 0);
    CHECK_EQ(number("pairs", 2, "writer"), 3);
    CHECK_EQ(number("pairs", 2, "ordered"), 8);
    check_sums();
    study_release(&answer);
}

/* Worker 2 writes, and all others read after a barrier; thread 1 does not use it. */
static void barriers_order_workers_whose_maker_only_waits_for_their_end(void)
{
    enum { THREADS = 5, WORDS = 1000 };

    program_begin(THREADS);
    create_all(THREADS);
    for (unsigned k = 0; k < WORDS; k++)
        does(2, "b3 0x%x", 0x700000 + 8 * k);
    for (unsigned i = 2; i <= THREADS; i++)
        does(i, "barrier_wait 0x900000 %u", THREADS - 1);
    for (unsigned i = 3; i <= THREADS; i++)
        for (unsigned k = 0; k < WORDS; k++)
            does(i, "b2 0x%x", 0x700000 + 8 * k);
    join_all(THREADS);
    if (!program_end(THREADS) || !ask("sharing"))
        return;
    CHECK_EQ(number("summary", 0, "ordered"), 24000);
    CHECK_EQ(number("summary", 0, "unordered"), 0);
    check_sums();
    study_release(&answer);
}

static void a_thread_beside_a_barrier_has_no_order_with_either_side_of_it(void)
{
    program_begin(3);
    create_all(3);
    does(1, "b3 0x500000"); /* thread 1 may do this before, between or after the rounds */
    does(1, "b2 0x500008");
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 2; i <= 3; i++) {
            does(i, "b2 0x500000");
            does(i, "barrier_wait 0x900000 2");
        }
    }
    does(2, "b3 0x500008");
    does(2, "barrier_wait 0x900000 2");
    does(3, "barrier_wait 0x900000 2");
    does(3, "b2 0x500008");
    join_all(3);
    does(1, "b2 0x500008");
    if (!program_end(3) || !ask("sharing"))
        return;
    CHECK_EQ(table_of("pairs")->rows, 4);
    CHECK_EQ(number("pairs", 0, "unordered"),
             16); /* 1 to 2 and 3, in each of three epochs: perhaps before the write, and once after it */
    CHECK_EQ(number("pairs", 1, "unordered"), 16); /* the second reader of the same */
    CHECK_EQ(number("pairs", 0, "ordered") + number("pairs", 1, "ordered"), 0);
    CHECK_EQ(number("pairs", 2, "reader"), 1); /* 2 to 1: beside, and after the join */
    CHECK_EQ(number("pairs", 2, "unordered"), 8);
    CHECK_EQ(number("pairs", 2, "ordered"), 8);
    CHECK_EQ(number("pairs", 3, "writer"), 2);
    CHECK_EQ(number("pairs", 3, "reader"), 3);
    CHECK_EQ(number("pairs", 3, "ordered"), 8);
    CHECK_EQ(number("pairs", 3, "unordered"), 0);
    check_sums();
    study_release(&answer);
}

/* The same by definition: granules one by one, threads one by one. */
enum { AREA = 4096, MOST_THREADS = 5 };

struct oracle {
    unsigned threads;
    uint64_t grain;
    bool reads[AREA][MOST_THREADS], writes[AREA][MOST_THREADS]; /* in this epoch; reads: before its own write */
    bool read_ever[AREA][MOST_THREADS], wrote_ever[AREA][MOST_THREADS];
    bool wrote_last[AREA][MOST_THREADS], has_seen[AREA][MOST_THREADS];
    uint64_t ordered[MOST_THREADS][MOST_THREADS], unordered[MOST_THREADS][MOST_THREADS];
};

static void oracle_touch(struct oracle *o, unsigned thread, bool reads, bool writes, uint64_t offset, uint64_t size)
{
    for (uint64_t g = offset / o->grain; g <= (offset + size - 1) / o->grain; g++) {
        if (reads && !o->writes[g][thread])
            o->reads[g][thread] = true;
        if (writes)
            o->writes[g][thread] = true;
    }
}

static void oracle_granule(struct oracle *o, unsigned g)
{
    unsigned owners = 0;
    bool written = false;

    for (unsigned t = 0; t < o->threads; t++) {
        owners += o->wrote_last[g][t];
        written = written || o->writes[g][t];
    }
    for (unsigned r = 0; r < o->threads; r++) {
        bool others_write = false;
        for (unsigned t = 0; t < o->threads; t++)
            others_write = others_write || (t != r && o->writes[g][t]);
        for (unsigned w = 0; w < o->threads && o->reads[g][r]; w++) {
            bool old = o->wrote_last[g][w] && !o->has_seen[g][r] && !others_write;
            if (w != r && old && owners == 1)
                o->ordered[w][r]++;
            if (w != r && ((old && owners > 1) || o->writes[g][w]))
                o->unordered[w][r]++;
        }
    }
    for (unsigned t = 0; t < o->threads; t++) {
        o->has_seen[g][t] = !written && (o->has_seen[g][t] || o->reads[g][t]);
        o->wrote_last[g][t] = written ? o->writes[g][t] : o->wrote_last[g][t];
        o->read_ever[g][t] = o->read_ever[g][t] || o->reads[g][t];
        o->wrote_ever[g][t] = o->wrote_ever[g][t] || o->writes[g][t];
        o->reads[g][t] = o->writes[g][t] = false;
    }
}

static void oracle_compare(const struct oracle *o)
{
    uint64_t private = 0, read_only = 0, shared = 0, many = 0, flows = 0;

    for (unsigned g = 0; g < AREA; g++) {
        unsigned users = 0, writers = 0;
        for (unsigned t = 0; t < o->threads; t++) {
            users += o->read_ever[g][t] || o->wrote_ever[g][t];
            writers += o->wrote_ever[g][t];
        }
        private += users == 1;
        read_only += users > 1 && !writers;
        shared += users > 1 && writers;
        many += users > 1 && writers > 1;
    }
    CHECK_EQ(number("summary", 0, "private"), private * o->grain);
    CHECK_EQ(number("summary", 0, "read_only"), read_only * o->grain);
    CHECK_EQ(number("summary", 0, "shared"), shared * o->grain);
    CHECK_EQ(number("summary", 0, "many"), many * o->grain);
    for (unsigned w = 0; w < o->threads; w++)
        for (unsigned r = 0; r < o->threads; r++)
            flows += o->ordered[w][r] || o->unordered[w][r];
    CHECK_EQ(table_of("pairs")->rows, flows);
    for (size_t i = 0; i < table_of("pairs")->rows; i++) {
        uint64_t w = number("pairs", i, "writer") - 1, r = number("pairs", i, "reader") - 1;
        CHECK_EQ(number("pairs", i, "ordered"), o->ordered[w][r] * o->grain);
        CHECK_EQ(number("pairs", i, "unordered"), o->unordered[w][r] * o->grain);
    }
}

static void sharing_is_what_granules_one_by_one_tell(void)
{
    static struct oracle o;
    static const char *const KINDS[] = { "b7", "b8" };

    for (unsigned trial = 0; trial < 30; trial++) {
        unsigned epochs = 1 + (unsigned)draw(&state, 6), most = trial % 3 ? 20 : 200;
        memset(&o, 0, sizeof o);
        o.threads = 2 + (unsigned)draw(&state, MOST_THREADS - 1);
        o.grain = UINT64_C(1) << draw(&state, 7);
        program_begin(o.threads);
        create_all(o.threads);
        /* All threads begin in one epoch: the first has created them before it did anything. */
        for (unsigned e = 0; e < epochs; e++) {
            for (unsigned t = 0; t < o.threads; t++) {
                for (unsigned n = (unsigned)draw(&state, most); n > 0; n--) {
                    uint64_t size = draw(&state, 8) ? 1 + draw(&state, 16) : 1 + draw(&state, 300),
                             at = draw(&state, AREA - size);
                    bool writes = draw(&state, 3) == 0;
                    does(t + 1, "%s 0x%" PRIx64 " %" PRIu64, KINDS[writes], 0x4ff800 + at, size);
                    oracle_touch(&o, t, !writes, writes, at, size);
                }
                does(t + 1, "barrier_wait 0x900000 %u", o.threads);
            }
            for (unsigned g = 0; g < AREA; g++)
                oracle_granule(&o, g);
        }
        if (!program_end(o.threads) || !ask_with("sharing", "grain", o.grain))
            return;
        oracle_compare(&o);
        check_sums();
        study_release(&answer);
    }
}

int main(void)
{
    if (!begin())
        return 1;
    RUN(what_one_writes_and_others_read_later_goes_to_each_of_them);
    RUN(what_has_no_order_is_told_as_unordered);
    RUN(what_is_joined_or_met_by_all_is_in_order_and_nothing_else);
    RUN(barriers_order_workers_whose_maker_only_waits_for_their_end);
    RUN(a_thread_beside_a_barrier_has_no_order_with_either_side_of_it);
    RUN(sharing_is_what_granules_one_by_one_tell);
    return end();
}
