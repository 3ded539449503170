/* SPDX-License-Identifier: MIT */
/* The memory of machines small enough to say what has to happen: numbers of misses that can be derived, and rules of sim/memory/hierarchy.h one by
 * one. Random machines are in test_memory_random.c. */
#include "check.h"
#include "sim/memory/hierarchy.h"

enum { X = 0x10000, LINE = 64, WORD = 8 };

/* ---- machines ---- */

static struct level_config level(uint64_t lines, uint32_t ways)
{
    return (struct level_config){ .bytes = lines * LINE,
                                  .ways = ways,
                                  .line = LINE,
                                  .latency = 1,
                                  .allocates = true,
                                  .replacement = &replacement_lru };
}

/* A machine with a first level of `lines` lines. */
static struct machine_config machine(uint32_t cpus, const struct protocol *protocol, uint64_t lines, uint32_t ways)
{
    return (struct machine_config){
        .cpus = cpus,
        .level = { level(lines, ways) },
        .protocol = protocol,
        .fabric_kind = &fabric_ideal,
        .fabric = { .width = 64, .clock = 1, .address = 1, .hop = 3, .memory = 100, .transfer = 40, .banks = 1 },
    };
}

static struct hierarchy *start(const struct machine_config *c)
{
    struct hierarchy *m = NULL;
    struct peet_err err;

    CHECK_EQ(hierarchy_new(c, &m, &err), 0);
    return m;
}

/* As the simulator does it. */
static uint64_t refer(struct hierarchy *m, unsigned cpu, uint64_t addr, enum peet_kind kind)
{
    struct l1_filter *f = hierarchy_filter(m, cpu);

    if (l1_filter_hit(f, addr, WORD, kind))
        return kind == PEET_PREFETCH ? 0 : f->latency;
    return hierarchy_access(
               m, &(struct memory_access){ .addr = addr, .size = WORD, .kind = (uint8_t)kind, .core = (uint8_t)cpu })
        .latency;
}

static uint64_t load(struct hierarchy *m, unsigned cpu, uint64_t addr)
{
    return refer(m, cpu, addr, PEET_LOAD);
}

static uint64_t store(struct hierarchy *m, unsigned cpu, uint64_t addr)
{
    return refer(m, cpu, addr, PEET_STORE);
}

static struct memory_counts counts(struct hierarchy *m, unsigned cpu)
{
    hierarchy_flush_counts(m);
    return *hierarchy_counts(m, cpu);
}

static struct memory_counts finish(struct hierarchy *m)
{
    struct memory_counts n = counts(m, 0);

    hierarchy_free(m);
    return n;
}

/* ---- misses that can be derived ---- */

/* Reads the five points around each inner point of an array of n * n doubles, row by row. */
static uint64_t stencil_misses(uint64_t n, uint64_t lines, uint32_t ways)
{
    struct machine_config c = machine(1, &protocol_msi, lines, ways);
    struct hierarchy *m = start(&c);

    for (uint64_t i = 1; i + 1 < n; i++)
        for (uint64_t k = 1; k + 1 < n; k++) {
            uint64_t at = X + (i * n + k) * 8;
            load(m, 0, at - n * 8);
            load(m, 0, at - 8);
            load(m, 0, at);
            load(m, 0, at + 8);
            load(m, 0, at + n * 8);
        }
    struct memory_counts counted = finish(m);
    CHECK_EQ(counted.reads, 5 * (n - 2) * (n - 2));
    CHECK_EQ(counted.hits[0] + counted.misses, counted.reads);
    return counted.misses;
}

/* A row has r = n / 8 lines. Rows follow each other, so that three of them have lines of 3r successive numbers.
 *
 * Three rows fit. With 3r sets of one way the first touch of a line in row i + 1 pushes the same part of row i - 2 out, which is not
 * used again; with 2r sets of two ways, rows i - 1 and i + 1 share sets, and the oldest there is of row i - 3. All n * r lines
 * are touched (even the corners' lines, for a line has 8 points) and missed once.
 *
 * Two rows fit, one way: rows i - 1 and i + 1 share sets, row i does not share with them. The middle row is there: it came as the
 * lower one of the last sweep, whose last touch of each set it was. So was the upper row, one sweep before, and it is there when a
 * sweep enters its line; from then on upper and lower push each other out at each point. With c points in the line, upper misses
 * c - 1 and lower c times. The lines of a row have n - 2 points: (n - 2) * (2(n - 2) - r). The first sweep also misses r
 * lines of the middle row and r of the upper.
 *
 * Two rows fit, two ways: all rows share sets, and three lines take turns in a set for two: upper, middle, lower. At the first point of
 * a line upper and middle are there from the last sweep (where they were middle and lower), and lower misses and pushes upper out. At
 * all others the three miss, each pushing out the next; the points beside the middle find its line. So 3c - 2 for each line, and 3c
 * in the first sweep. That the left neighbour touches the middle's line once more from the next line on leaves both there. */
static void a_stencil_misses_as_often_as_can_be_derived(void)
{
    for (uint64_t n = 8; n <= 64; n += 8) {
        uint64_t r = n / 8, inner = n - 2;
        CHECK_EQ(stencil_misses(n, 3 * r, 1), n * r);
        CHECK_EQ(stencil_misses(n, 4 * r, 2), n * r);
        CHECK_EQ(stencil_misses(n, 4 * r, 0), n * r);
        CHECK_EQ(stencil_misses(n, 2 * r, 1), inner * (2 * inner - r) + 2 * r);
        CHECK_EQ(stencil_misses(n, 2 * r, 2), inner * 3 * inner - 2 * r * (inner - 1));
    }
}

/* Misses of a walk down the columns of an array of doubles; `stride`: lines from one row to the next. */
static uint64_t column_misses(uint64_t rows, uint64_t columns, uint64_t stride, uint64_t lines, uint32_t ways)
{
    struct machine_config c = machine(1, &protocol_mesi, lines, ways);
    struct hierarchy *m = start(&c);

    for (uint64_t k = 0; k < columns; k++)
        for (uint64_t i = 0; i < rows; i++)
            load(m, 0, X + i * stride * LINE + k * 8);
    return finish(m).misses;
}

/* With a stride that is a multiple of the number of sets all lines of a column are in one set: if there are more of them than ways,
 * each is evicted before the next column uses it. With one line more from row to row, each line has a separate set, and is missed
 * once. The same holds if the number of sets and the stride have no common factor. */
static void a_walk_down_columns_misses_always_or_once_per_line(void)
{
    CHECK_EQ(column_misses(64, 64, 64, 64, 1), 64 * 64);
    CHECK_EQ(column_misses(64, 64, 65, 64, 1), 64 * 8);
    CHECK_EQ(column_misses(8, 64, 64, 512, 8), 8 * 8);
    CHECK_EQ(column_misses(9, 64, 64, 512, 8), 9 * 64);
    CHECK_EQ(column_misses(63, 64, 64, 63, 1), 63 * 8);
    CHECK_EQ(column_misses(63, 64, 42, 63, 1), 63 * 64);
}

/* Round and round over k successive lines, in s sets of w ways. A set gets q of them, k / s or one more; if q <= w each is missed
 * once, else in every round, for the oldest is always the one that is wanted next. */
static void a_cyclic_walk_misses_all_of_a_set_or_nothing(void)
{
    enum { ROUNDS = 5 };

    for (uint32_t s = 1; s <= 7; s++)
        for (uint32_t w = 1; w <= 4; w++)
            for (uint64_t k = 1; k <= 40; k++) {
                struct machine_config c = machine(1, &protocol_moesi, (uint64_t)s * w, w);
                struct hierarchy *m = start(&c);
                uint64_t misses = 0;
                for (uint64_t i = 0; i < ROUNDS * k; i++)
                    load(m, 0, X + i % k * LINE);
                for (uint64_t set = 0; set < s; set++) {
                    uint64_t q = k / s + (set < k % s);
                    misses += q <= w ? q : q * ROUNDS;
                }
                CHECK_EQ(finish(m).misses, misses);
            }
}

/* Cores write different words of one line in turn: all but the first write of each core miss, by false sharing, because the core before took the line
 * and wrote another word. If all write the same word, it is true sharing. */
static void processors_that_take_turns_in_a_line_share_it_truly_or_falsely(void)
{
    enum { CPUS = 4, ROUNDS = 10 };

    for (unsigned apart = 0; apart <= 1; apart++) {
        struct machine_config c = machine(CPUS, &protocol_mesi, 8, 2);
        struct hierarchy *m = start(&c);
        uint64_t invalidations = 0;
        for (unsigned i = 0; i < CPUS * ROUNDS; i++)
            store(m, i % CPUS, X + i % CPUS * WORD * apart);
        for (unsigned i = 0; i < CPUS; i++) {
            struct memory_counts n = counts(m, i);
            CHECK_EQ(n.misses, ROUNDS);
            CHECK_EQ(n.causes[MISS_cold], 1);
            CHECK_EQ(n.causes[apart ? MISS_false_sharing : MISS_true_sharing], ROUNDS - 1);
            CHECK_EQ(n.from_caches, i == 0 ? ROUNDS - 1 : ROUNDS);
            invalidations += n.invalidations;
        }
        CHECK_EQ(invalidations, CPUS * ROUNDS - 1);
        hierarchy_free(m);
    }
}

/* The same for elements of any size, next to each other at the beginning, in the middle and at the end of a line of any length. */
static void elements_of_any_size_in_lines_of_any_length_are_shared_byte_by_byte(void)
{
    enum { CPUS = 4, ROUNDS = 3 };

    for (uint32_t line = 4; line <= 4096; line *= 2)
        for (uint32_t size = 1; size <= 16 && size * CPUS <= line; size *= 2)
            for (unsigned i = 0; i < 3 * 2; i++) {
                bool is_apart = i % 2;
                uint64_t first = X + (line - size * CPUS) * (i / 2) / 2;
                struct machine_config c = machine(CPUS, &protocol_mesi, 8, 2);
                c.level[0].bytes = 8 * line;
                c.level[0].line = line;
                struct hierarchy *m = start(&c);
                for (unsigned k = 0; k < CPUS * ROUNDS; k++)
                    hierarchy_access(m, &(struct memory_access){ .addr = first + is_apart * (k % CPUS) * size,
                                                                 .size = size,
                                                                 .kind = PEET_STORE,
                                                                 .core = (uint8_t)(k % CPUS) });
                struct memory_counts n = finish(m);
                CHECK_EQ(n.causes[MISS_cold], 1);
                CHECK_EQ(n.causes[is_apart ? MISS_false_sharing : MISS_true_sharing], ROUNDS - 1);
            }
}

/* ---- rules ---- */

static void a_line_that_two_levels_give_up_at_once_leaves_once(void)
{
    for (unsigned is_inclusive = 0; is_inclusive <= 1; is_inclusive++) {
        struct machine_config c = machine(2, &protocol_mesi, 4, 1);
        c.level[1] = level(4, 1);
        c.level[1].inclusion = is_inclusive ? INCLUSION_INCLUSIVE : INCLUSION_NONE;
        struct hierarchy *m = start(&c);
        load(m, 0, X);
        store(m, 0, X);
        load(m, 0, X + 4 * LINE);
        CHECK_EQ(counts(m, 0).write_backs, 1);
        CHECK_EQ(hierarchy_state(m, 0, X), PROTOCOL_ABSENT);
        CHECK(hierarchy_state(m, 0, X + 4 * LINE) != PROTOCOL_ABSENT);
        load(m, 1, X);
        CHECK_EQ(counts(m, 1).from_caches, 0);
        hierarchy_free(m);
    }
}

/* A core that reads a line alone may write it without a transaction; the core that lost the line before misses because of that write. */
static void silent_writes_are_true_sharing_for_who_lost_the_line_before(void)
{
    for (size_t i = 0; protocols[i]; i++) {
        struct machine_config c = machine(2, protocols[i], 1, 1);
        struct hierarchy *m = start(&c);
        load(m, 0, X);
        store(m, 1, X);
        bool was_lost = hierarchy_state(m, 0, X) == PROTOCOL_ABSENT;
        load(m, 1, X + LINE);
        load(m, 1, X);
        store(m, 1, X + WORD);
        load(m, 0, X + WORD);
        CHECK_EQ(finish(m).causes[MISS_true_sharing], was_lost ? 1 : 0);
    }
}

static void an_inclusive_shared_level_takes_lines_from_shared_ones_before_it(void)
{
    struct machine_config c = machine(1, &protocol_mesi, 1, 1);

    c.level[1] = level(4, 0);
    c.level[2] = level(1, 1);
    c.level[1].is_shared = c.level[2].is_shared = true;
    c.level[2].inclusion = INCLUSION_INCLUSIVE;
    struct hierarchy *m = start(&c);
    load(m, 0, X);
    load(m, 0, X + LINE);
    CHECK_EQ(load(m, 0, X), 100);
    CHECK_EQ(finish(m).hits[1], 0);
}

static void every_write_goes_through_where_all_levels_let_it(void)
{
    for (unsigned is_inclusive = 0; is_inclusive <= 1; is_inclusive++) {
        struct machine_config c = machine(1, &protocol_mesi, 1, 1);
        c.level[0].is_write_through = true;
        c.level[1] = level(1, 1);
        c.level[1].is_shared = true;
        c.level[1].inclusion = is_inclusive ? INCLUSION_INCLUSIVE : INCLUSION_NONE;
        struct hierarchy *m = start(&c);
        store(m, 0, X); /* misses */
        store(m, 0, X);
        store(m, 0, X);
        load(m, 0, X + LINE);
        struct memory_counts n = finish(m);
        CHECK_EQ(n.write_throughs, 3);
        CHECK_EQ(n.write_backs, 0);
    }
}

static void a_level_that_writes_back_keeps_writes_from_one_behind_it(void)
{
    for (unsigned through = 0; through <= 1; through++) {
        struct machine_config c = machine(1, &protocol_mesi, 1, 1);
        c.level[1] = level(1, 1);
        c.level[through].is_write_through = true;
        struct hierarchy *m = start(&c);
        store(m, 0, X);
        store(m, 0, X);
        load(m, 0, X + LINE);
        struct memory_counts n = finish(m);
        CHECK_EQ(n.write_throughs, 0);
        CHECK_EQ(n.write_backs, 1);
    }
}

static void a_write_around_the_cache_loses_nothing_that_others_wrote(void)
{
    for (size_t i = 0; protocols[i]; i++) {
        struct machine_config c = machine(2, protocols[i], 4, 1);
        c.level[0].allocates = false;
        struct hierarchy *m = start(&c);
        load(m, 0, X);
        store(m, 0, X);
        CHECK_EQ(store(m, 1, X + WORD), 0);
        CHECK_EQ(hierarchy_state(m, 0, X), PROTOCOL_ABSENT);
        CHECK_EQ(hierarchy_state(m, 1, X), PROTOCOL_ABSENT);
        CHECK_EQ(counts(m, 1).write_throughs, 1);
        CHECK_EQ(counts(m, 0).write_backs, 1);
        CHECK_EQ(counts(m, 0).invalidations, 1);
        load(m, 0, X + WORD);
        CHECK_EQ(finish(m).causes[MISS_true_sharing], 1);
    }
}

static void an_update_waits_for_its_line_even_if_writes_bring_none(void)
{
    struct machine_config c = machine(1, &protocol_mesi, 4, 1);

    c.level[0].allocates = false;
    struct hierarchy *m = start(&c);
    CHECK_EQ(refer(m, 0, X, PEET_UPDATE), 100);
    CHECK(hierarchy_state(m, 0, X) != PROTOCOL_ABSENT);
    hierarchy_free(m);
}

/* own_cell.acts: Firefly's memory takes the words of updates, Dragon's does not. */
static void memory_takes_updates_where_the_table_says_so(void)
{
    static const struct protocol *const P[] = { &protocol_firefly, &protocol_dragon };

    for (unsigned i = 0; i < 2; i++) {
        struct machine_config c = machine(2, P[i], 4, 1);
        struct hierarchy *m = start(&c);
        load(m, 0, X);
        load(m, 1, X);
        store(m, 0, X);
        CHECK_EQ(hierarchy_fabric(m)->by_op[BUS_UPDATE], 1);
        CHECK_EQ(hierarchy_fabric(m)->memory_updates, i == 0);
        hierarchy_free(m);
    }
}

/* own[state][OWN_EVICT]: MSI in which modified lines are dropped loses no cycle to write-backs. own[state][OWN_READ]: a read of a
 * shared line that invalidates the other copies. */
static void evictions_and_reads_do_what_the_table_says(void)
{
    struct protocol drops = protocol_msi, grabs = protocol_msi;

    drops.own[2][OWN_EVICT].op = BUS_NONE;
    for (unsigned i = 0; i < 2; i++) {
        struct machine_config c = machine(1, i ? &drops : &protocol_msi, 4, 1);
        struct hierarchy *m = start(&c);
        store(m, 0, X);
        load(m, 0, X + 4 * LINE);
        CHECK_EQ(counts(m, 0).write_backs, i == 0);
        hierarchy_free(m);
    }
    grabs.own[1][OWN_READ] = (struct own_cell){ .op = BUS_INVALIDATE, .alone = 1, .shared = 1 };
    for (unsigned i = 0; i < 2; i++) {
        struct machine_config c = machine(2, i ? &grabs : &protocol_msi, 4, 1);
        struct hierarchy *m = start(&c);
        load(m, 0, X);
        load(m, 1, X);
        load(m, 1, X);
        CHECK_EQ(counts(m, 0).invalidations, i == 1);
        hierarchy_free(m);
    }
}

static void nobody_waits_for_a_prefetch(void)
{
    struct machine_config c = machine(2, &protocol_mesi, 4, 1);

    c.fabric_kind = &fabric_bus;
    c.tlb = (struct tlb_config){ .entries = 1, .ways = 1, .page = 4096, .cost = 30, .replacement = &replacement_lru };
    struct hierarchy *m = start(&c);
    load(m, 1, X);
    CHECK_EQ(refer(m, 0, X + LINE, PEET_PREFETCH), 0);
    struct memory_counts n = finish(m);
    CHECK_EQ(n.misses, 1);
    CHECK_EQ(n.tlb_misses, 1);
    CHECK_EQ(n.stall, 0);
    CHECK_EQ(n.waited, 0);
    CHECK_EQ(n.tlb_stall, 0);
}

static void without_caches_every_reference_goes_to_memory(void)
{
    struct machine_config c = machine(1, &protocol_mesi, 1, 1);

    c.level[0].bytes = 0;
    struct hierarchy *m = start(&c);
    for (unsigned i = 0; i < 3; i++)
        CHECK_EQ(load(m, 0, X), 100);
    CHECK_EQ(refer(m, 0, X, PEET_UPDATE), 100);
    CHECK_EQ(refer(m, 0, X, PEET_PREFETCH), 0);
    struct memory_counts n = finish(m);
    CHECK_EQ(n.reads, 5);
    CHECK_EQ(n.writes, 1);
    CHECK_EQ(n.stall, 400);
}

/* A processor fetches instructions from its own node's memory, whatever the lines of data are like. */
static void instructions_are_fetched_from_the_node_of_their_page(void)
{
    struct machine_config c = machine(2, &protocol_mesi, 4, 1);

    c.fabric_kind = &fabric_mesh;
    c.instructions = level(4, 1);
    for (uint32_t bytes = 16; bytes <= LINE; bytes *= 2) {
        c.instructions.line = bytes;
        struct hierarchy *m = start(&c);
        uint64_t near = hierarchy_fetch(m, 1, 0x1000, 4, 0), far = hierarchy_fetch(m, 1, 0x2000, 4, 10000);
        CHECK_EQ(near, 101); /* memory, and a line on the way to its node */
        CHECK(far > near);
        hierarchy_free(m);
    }
}

int main(void)
{
    RUN(a_stencil_misses_as_often_as_can_be_derived);
    RUN(a_walk_down_columns_misses_always_or_once_per_line);
    RUN(a_cyclic_walk_misses_all_of_a_set_or_nothing);
    RUN(processors_that_take_turns_in_a_line_share_it_truly_or_falsely);
    RUN(elements_of_any_size_in_lines_of_any_length_are_shared_byte_by_byte);
    RUN(a_line_that_two_levels_give_up_at_once_leaves_once);
    RUN(silent_writes_are_true_sharing_for_who_lost_the_line_before);
    RUN(an_inclusive_shared_level_takes_lines_from_shared_ones_before_it);
    RUN(every_write_goes_through_where_all_levels_let_it);
    RUN(a_level_that_writes_back_keeps_writes_from_one_behind_it);
    RUN(a_write_around_the_cache_loses_nothing_that_others_wrote);
    RUN(an_update_waits_for_its_line_even_if_writes_bring_none);
    RUN(memory_takes_updates_where_the_table_says_so);
    RUN(evictions_and_reads_do_what_the_table_says);
    RUN(nobody_waits_for_a_prefetch);
    RUN(without_caches_every_reference_goes_to_memory);
    RUN(instructions_are_fetched_from_the_node_of_their_page);
    return check_done();
}
