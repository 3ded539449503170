/* SPDX-License-Identifier: MIT */
/* Speculation on the simulator's hierarchy, step by step beside a slow machine with values (slow_speculation.h): random programs without data
 * races, with false sharing and evictions. The slow machine says whether each committed read and the final memory are right; the hierarchy
 * has to have the same states after each step. A protocol with one wrong cell is found.
 *
 * usage: test_speculation [PROGRAMS]: of each option */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "sim/memory/hierarchy.h"
#include "sim/memory/speculative.h"
#include "slow_speculation.h"
#include "speculative.h"

enum { LINE_BYTES = 16, WORD_BYTES = 8, BASE = 0x10000 };

static unsigned programs = 1500;

/* A machine of the simulator beside the slow one. */
struct beside {
    struct slow_machine slow;
    struct slow_program program;
    struct hierarchy *h;
    unsigned rolled_back; /* by the hierarchy, in the last step: a bit for each core */
    unsigned epoch[SLOW_CPUS], at[SLOW_CPUS];
    struct slow_op log[SLOW_CPUS][SLOW_LOG]; /* speculative reads: what was read */
    uint32_t expected[SLOW_CPUS][SLOW_LOG];
    unsigned logged[SLOW_CPUS];
    unsigned roll_backs;
    const char *complaint;
};

static void beside_violated(void *self, unsigned cpu, enum violation why)
{
    (void)why;
    ((struct beside *)self)->rolled_back |= 1u << cpu;
}

static struct hierarchy *beside_machine(struct beside *b, const struct protocol *base)
{
    struct machine_config c = { .cpus = b->slow.cpus,
                                .level = { { .bytes = (uint64_t)b->slow.sets * b->slow.ways * LINE_BYTES,
                                             .ways = b->slow.ways,
                                             .line = LINE_BYTES,
                                             .allocates = true,
                                             .replacement = &replacement_lru } },
                                .protocol = base,
                                .fabric_kind = &fabric_ideal,
                                .fabric = { .width = 8, .clock = 1, .memory = 20, .transfer = 20, .banks = 1 } };
    struct hierarchy *h = NULL;
    struct peet_err err;

    if (hierarchy_new(&c, &h, &err) < 0 || hierarchy_set_speculation(h, b->slow.keeps_read, beside_violated, b) < 0)
        abort();
    return h;
}

/* Both machines have the same states, and have rolled back the same processors; these begin their section again. */
static void beside_compare(struct beside *b)
{
    struct slow_machine *m = &b->slow;

    slow_check(m);
    b->complaint = b->complaint ? b->complaint : m->complaint;
    if (b->rolled_back != m->rolled_back && !b->complaint)
        b->complaint = "other processors are rolled back";
    for (unsigned l = 0; l < SLOW_LINES && !b->complaint; l++) {
        b->complaint = hierarchy_check_line(b->h, BASE + l * LINE_BYTES);
        for (unsigned p = 0; p < m->cpus; p++)
            if (hierarchy_state(b->h, p, BASE + l * LINE_BYTES) != m->cache[p].state[l])
                b->complaint = "a state differs";
    }
    for (unsigned p = 0; p < m->cpus; p++)
        if (m->rolled_back >> p & 1) {
            b->at[p] = b->logged[p] = 0;
            b->roll_backs++;
        }
    b->rolled_back = m->rolled_back = 0;
}

static void beside_access(struct beside *b, unsigned p)
{
    struct slow_machine *m = &b->slow;
    const struct slow_op *op = &b->program.op[p][b->epoch[p]][b->at[p]];
    bool speculates = m->mode[p] == SLOW_RUNS;
    bool done = op->is_write ? slow_write(m, p, op->line, op->word, op->value) : slow_read(m, p, op->line);
    uint64_t addr = BASE + (uint64_t)op->line * LINE_BYTES + (uint64_t)op->word * WORD_BYTES;
    unsigned kind = op->is_write ? PEET_STORE : PEET_LOAD;

    if (!l1_filter_hit(hierarchy_filter(b->h, p), addr, WORD_BYTES, kind))
        hierarchy_access(b->h, &(struct memory_access){
                                   .addr = addr, .size = WORD_BYTES, .kind = (uint8_t)kind, .core = (uint8_t)p });
    if (done && !op->is_write) {
        uint32_t value = m->cache[p].value[op->line][op->word];
        if (!speculates && value != op->value)
            b->complaint = "a read returns a wrong value";
        if (speculates) {
            b->expected[p][b->logged[p]] = op->value;
            b->log[p][b->logged[p]++].value = value;
        }
    }
    b->at[p] += done;
    beside_compare(b);
}

static void beside_confirm(struct beside *b)
{
    for (unsigned p = 0; p < b->slow.cpus; p++) {
        for (unsigned i = 0; i < b->logged[p]; i++)
            if (b->log[p][i].value != b->expected[p][i])
                b->complaint = "a committed section has read a wrong value";
        b->logged[p] = 0;
        hierarchy_confirm(b->h, p);
    }
    slow_confirm(&b->slow);
    beside_compare(b);
}

static void beside_finish(struct beside *b)
{
    uint64_t from_caches = 0, write_backs = 0;

    for (unsigned l = 0; l < SLOW_LINES; l++) {
        const uint32_t *final = b->slow.memory[l];
        for (unsigned p = 0; p < b->slow.cpus; p++)
            final = b->slow.cache[p].state[l] == SLOW_M ? b->slow.cache[p].value[l] : final;
        if (memcmp(final, b->program.final[l], sizeof b->program.final[l]))
            b->complaint = "the final memory is wrong";
    }
    hierarchy_flush_counts(b->h);
    for (unsigned p = 0; p < b->slow.cpus; p++) {
        from_caches += hierarchy_counts(b->h, p)->from_caches;
        write_backs += hierarchy_counts(b->h, p)->write_backs;
    }
    if (!b->complaint && (from_caches != b->slow.from_caches || write_backs != b->slow.write_backs))
        b->complaint = "other lines move to memory, or between caches";
}

/* One program on both machines. Returns a complaint, or NULL. */
static const char *beside_run(uint64_t seed, bool mesi, bool keeps_read, const struct protocol *base,
                              unsigned *ret_roll_backs)
{
    static struct beside b;
    uint64_t random = seed * 2654435761 + 88172645463325252;
    unsigned finished = 0, arrived = 0, steps = 0, pace[SLOW_CPUS];

    for (int i = 0; i < 4; i++)
        slow_draw(&random, 2);
    b = (struct beside){ .slow = { .cpus = 2 + (unsigned)slow_draw(&random, SLOW_CPUS - 1),
                                   .sets = 1 + (unsigned)slow_draw(&random, 2),
                                   .ways = 1 + (unsigned)slow_draw(&random, 3),
                                   .mesi = mesi,
                                   .keeps_read = keeps_read } };
    for (unsigned p = 0; p < SLOW_CPUS; p++)
        pace[p] = 1 + (unsigned)slow_draw(&random, 8);
    slow_make_program(&b.program, b.slow.cpus, &random);
    b.h = beside_machine(&b, base);
    while (finished < b.slow.cpus && !b.complaint) {
        unsigned p = (unsigned)slow_draw(&random, b.slow.cpus);
        if (++steps > 20000)
            b.complaint = "the program does not end";
        if (slow_draw(&random, 8) >= pace[p])
            continue;
        if (b.slow.mode[p] == SLOW_WAITS || b.epoch[p] == SLOW_EPOCHS)
            continue;
        if (b.at[p] < b.program.ops[p][b.epoch[p]]) {
            beside_access(&b, p);
            continue;
        }
        if (b.slow.mode[p] == SLOW_RUNS)
            continue;
        b.at[p] = 0;
        if (++b.epoch[p] == SLOW_EPOCHS) {
            finished++;
            continue;
        }
        bool speculates = slow_draw(&random, 8) > 0;
        slow_arrive(&b.slow, p, speculates);
        hierarchy_arrive(b.h, p, speculates);
        beside_compare(&b);
        if (++arrived == b.slow.cpus) {
            arrived = 0;
            beside_confirm(&b);
        }
    }
    if (!b.complaint)
        beside_finish(&b);
    hierarchy_free(b.h);
    *ret_roll_backs += b.roll_backs;
    return b.complaint;
}

static void programs_without_races_read_what_they_wrote(void)
{
    for (unsigned option = 0; option < 4; option++) {
        bool mesi = option & 1, keeps_read = option & 2;
        unsigned wrong = 0, roll_backs = 0;
        for (unsigned i = 0; i < programs && wrong < 5; i++) {
            const char *complaint = beside_run(i, mesi, keeps_read, mesi ? &protocol_mesi : &protocol_msi, &roll_backs);
            wrong += complaint != NULL;
            if (!CHECK_EQ(complaint, NULL))
                printf("# program %u, %s, option %u\n", i, complaint, option);
        }
        printf("# %s, %s: %u programs, %u roll-backs\n", mesi ? "MESI" : "MSI",
               keeps_read ? "written lines are dropped" : "all lines are dropped", programs, roll_backs);
        CHECK(roll_backs > programs / 4);
    }
}

/* ---- mistakes ---- */

struct speculation_tally {
    struct spec_judge judge;
    const struct protocol *base;
    unsigned mistakes, found, missed;
};

/* Whether the protocol has other next states, or rolls back elsewhere, in a cell that the hierarchy reads: it evicts clean lines without the
 * table, and does bulk operations by bits. Without values, it does not see which version of a line moves; exploration does. */
static bool beside_sees(const struct protocol *wrong, const struct protocol *right)
{
    bool sees = false;

    for (unsigned s = 0; s < right->states; s++) {
        for (unsigned k = 0; k < OWN_EVENTS; k++) {
            const struct own_cell *a = &wrong->own[s][k], *b = &right->own[s][k];
            sees |= k != OWN_EVICT
                    && (a->alone != b->alone || a->shared != b->shared || a->old != b->old || a->acts != b->acts);
        }
        for (unsigned op = 0; op < BUS_OPS; op++) {
            const struct snoop_cell *a = &wrong->snoop[s][op], *b = &right->snoop[s][op];
            sees |= a->next != b->next || (a->acts ^ b->acts) & (SNOOP_ROLLS_BACK | SNOOP_OLD | SNOOP_SHARED);
        }
    }
    return sees;
}

/* A wrong protocol may also break an assertion of the hierarchy: it runs in another process. */
static void speculation_try_mistake(struct spec_judge *j, const struct protocol *wrong)
{
    enum { TRIES = 150 };
    static struct spec_exploration e;
    struct speculation_tally *t = (struct speculation_tally *)j;
    struct protocol base = *t->base;
    int status = 0;
    bool harmful = false;

    base.extension = wrong;
    pid_t child = fork();
    if (child == 0) {
        unsigned roll_backs = 0;
        const char *complaint = NULL;
        if (!freopen("/dev/null", "w", stderr))
            _exit(2);
        alarm(20);
        for (unsigned i = 0; i < TRIES && !complaint; i++)
            complaint = beside_run(i, t->base == &protocol_mesi, i & 1, &base, &roll_backs);
        _exit(complaint != NULL);
    }
    waitpid(child, &status, 0);
    for (unsigned caches = 2; caches <= SPEC_CACHES && status == 0 && !harmful; caches++) {
        spec_explore(&e, wrong, caches, BULK_ROLL_BACK);
        harmful = e.complaint != NULL;
    }
    t->mistakes++;
    t->found += status != 0;
    t->missed += harmful && beside_sees(wrong, t->base->extension);
}

/* Of those that exploration says to be harmful, and that the hierarchy can see. */
static void programs_find_mistakes_that_do_harm(void)
{
    static const struct protocol *const BASES[] = { &protocol_msi, &protocol_mesi };
    static struct spec_exploration e;

    for (unsigned i = 0; i < 2; i++) {
        struct speculation_tally t = { .judge = { speculation_try_mistake }, .base = BASES[i] };
        spec_explore(&e, BASES[i]->extension, SPEC_CACHES, BULK_ROLL_BACK);
        struct spec_used used = e.used;
        spec_make_mistakes(&t.judge, BASES[i]->extension, &used);
        printf("# %s: of %u mistakes, programs find %u\n", BASES[i]->extension->name, t.mistakes, t.found);
        CHECK_EQ(t.missed, 0);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        programs = (unsigned)strtoul(argv[1], NULL, 10);
    RUN(programs_without_races_read_what_they_wrote);
    if (argc == 1)
        RUN(programs_find_mistakes_that_do_harm);
    return check_done();
}
