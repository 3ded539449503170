/* SPDX-License-Identifier: MIT */
/* Iterations that the machine only counts, also ahead of the global clock (sim/engine/fast_forward.c), and blocks that it simulates ahead of it
 * (sim/engine/lookahead.c), against the same iterations and blocks one by one: random threads whose batches have something that is repeated, once or several times, on random machines, once so,
 * once expanded, and once expanded and in order. All times and counts are the same. */
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "sim/engine/sim.h"

enum { BLOCKS = 6, BATCHES = 60, THREADS = 6, RECORDS = 16384, TRIP = 48, REPEATS = 4 };
#ifdef __SANITIZE_ADDRESS__ /* which takes ten times as long */
enum { MACHINES = 80 };
#else
enum { MACHINES = 250 };
#endif

static const uint64_t STEPS[] = { 0, 0, 4, 8, 8, 16, 24, 64, (uint64_t)-8, (uint64_t)-4 };

struct made {
    struct source source;
    struct source_thread context[THREADS];
    uint64_t seed;
    bool is_expanded;
    uint32_t block[BLOCKS];
    struct thread {
        unsigned batch;
        struct peet_record record[RECORDS], trip[REPEATS][TRIP];
        uint64_t step[REPEATS][TRIP];
        struct peet_repeat repeat[REPEATS];
        size_t count;
        uint32_t repeats;
        struct peet_event event;
    } thread[THREADS];
};

static uint64_t draw(uint64_t *state, uint64_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % below;
}

/* Every other block makes the same references each time: number and kinds. */
static bool is_fixed(unsigned block)
{
    return block % 2;
}

static unsigned fixed_references(unsigned block)
{
    return block * 5 % 12;
}

static uint8_t fixed_kind(unsigned block, unsigned reference)
{
    unsigned n = block + reference * 3;

    return (uint8_t)(PEET_LOAD + (n % 3 ? 0 : n % 4));
}

/* A block with a random number of instructions, and references after it; returns the number of records. Few bytes are shared. */
static size_t add_block(const struct made *m, uint64_t *random, uint32_t thread, struct peet_record *r)
{
    unsigned insns = (unsigned)draw(random, BLOCKS);
    size_t n = 1, references = draw(random, draw(random, 4) ? 4 : 14);

    references = is_fixed(insns) ? fixed_references(insns) : references;
    r[0] = (struct peet_record){ .id = m->block[insns], .size = (insns + 1) & PEET_MAX_SIZE, .kind = PEET_BLOCK };
    for (; n <= references; n++) {
        uint64_t home = draw(random, 3) ? 0x100000u + 0x4000u * thread : 0x80000;
        r[n] = (struct peet_record){ .addr = home + draw(random, draw(random, 2) ? 256 : 8192),
                                     .size = 1u << draw(random, 4),
                                     .kind = (uint8_t)(PEET_LOAD + (draw(random, 3) ? 0 : draw(random, 4))) };
        r[n].kind = is_fixed(insns) ? fixed_kind(insns, (unsigned)n - 1) & 15 : r[n].kind;
    }
    return n;
}

static void add_repeat(const struct made *m, struct thread *t, uint32_t thread, uint64_t *random)
{
    struct peet_record *trip = t->trip[t->repeats];
    uint64_t *step = t->step[t->repeats], times = 1 + draw(random, 60);
    size_t n = 0;

    for (unsigned blocks = 1 + (unsigned)draw(random, 3); blocks > 0; blocks--)
        n += add_block(m, random, thread, trip + n);
    for (size_t i = 0; i < n; i++)
        step[i] = trip[i].kind == PEET_BLOCK ? 0 : STEPS[draw(random, sizeof STEPS / sizeof *STEPS)];
    for (uint64_t k = 0; m->is_expanded && k < times; k++)
        for (size_t i = 0; i < n; i++) {
            t->record[t->count] = trip[i];
            t->record[t->count++].addr += step[i] * k;
        }
    if (m->is_expanded)
        return;
    t->repeat[t->repeats] = (struct peet_repeat){ times, n, trip, step };
    t->record[t->count++] = (struct peet_record){ .id = t->repeats++, .kind = PEET_REPEAT };
}

static int next(struct source *s, uint32_t context, uint64_t reply, struct peet_batch *ret, struct peet_err *err)
{
    struct made *m = (struct made *)(void *)s;
    struct thread *t = &m->thread[context];
    uint64_t random = m->seed + 1000 * context + 7 * t->batch;

    (void)reply;
    (void)err;
    if (t->batch++ == BATCHES)
        return 0;
    t->count = t->repeats = 0;
    t->event = t->batch % 16 == 0  ? (struct peet_event){ PEET_EV_barrier_wait, 2, 0, { 0x90000, s->threads } }
               : t->batch % 8 == 3 ? (struct peet_event){ PEET_EV_mutex_lock, 1, 0, { 0x91000 } }
                                   : (struct peet_event){ PEET_EV_mutex_unlock, 1, 0, { 0x91000 } };
    if (t->batch % 16 == 0 || t->batch % 8 == 3 || t->batch % 8 == 4)
        t->record[t->count++] = (struct peet_record){ .kind = PEET_EVENT };
    for (uint64_t parts = 1 + draw(&random, REPEATS); parts > 0; parts--) {
        for (uint64_t blocks = draw(&random, 4); blocks > 0; blocks--)
            t->count += add_block(m, &random, context, t->record + t->count);
        add_repeat(m, t, context, &random);
    }
    for (uint64_t blocks = draw(&random, 4); blocks > 0; blocks--)
        t->count += add_block(m, &random, context, t->record + t->count);
    *ret = (struct peet_batch){
        .count = t->count, .records = t->record, .events = &t->event, .event_count = 1, .repeats = t->repeat
    };
    return 1;
}

static void free_nothing(struct source *s)
{
    (void)s;
}

static const struct source_kind MADE = { .next = next, .free = free_nothing };

static void define(struct made *m, struct peet_writer *w)
{
    static struct peet_insn insn[BLOCKS];
    struct peet_operand operand[RECORDS];
    struct peet_err err;

    for (unsigned i = 0; i < BLOCKS; i++) {
        for (unsigned k = 0; k <= i; k++)
            insn[k] = (struct peet_insn){ .addr = 0x1000 + 0x400 * (uint64_t)i + 40 * (uint64_t)k, .length = 4 };
        struct peet_block b = { .insns = (uint16_t)(i + 1), .insn = insn, .slots = 1, .operand = operand };
        b.operands = (uint16_t)(is_fixed(i) ? fixed_references(i) : 1);
        for (unsigned k = 0; k < b.operands; k++)
            operand[k] = (struct peet_operand){ .size = 1, .kind = fixed_kind(i, k), .base = PEET_SRC_SLOT };
        operand[0].predicate = is_fixed(i) ? 0 : PEET_SRC_SLOT;
        CHECK_EQ(peet_writer_block(w, &b, &m->block[i], &err), 0);
    }
    m->source = (struct source){ .kind = &MADE, .trace = peet_writer_schema(w), .thread = m->context };
}

static struct machine_config random_machine(uint64_t *random)
{
    static const struct replacement *const REPLACEMENT[] = { &replacement_lru, &replacement_plru, &replacement_fifo,
                                                             &replacement_rrip };
    struct machine_config c;

    config_defaults(&c);
    c.cpus = 1 + (uint32_t)draw(random, 5);
    c.by_reference = draw(random, 3) == 0;
    c.waits_busily = false;
    c.lock = &lock_ideal;
    c.quantum = draw(random, 2) ? 200 + draw(random, 2000) : 0;
    c.slack = draw(random, 8) == 0 ? 50 : 0;
    c.level[0].bytes = (uint64_t)1024 << draw(random, 3);
    c.level[0].ways = 1u << draw(random, 4);
    c.level[0].allocates = draw(random, 6) != 0;
    c.level[0].latency = (uint32_t)draw(random, 2);
    c.level[0].replacement = REPLACEMENT[draw(random, 4)];
    if (draw(random, 2)) {
        c.level[1] = c.level[0];
        c.level[1].bytes = c.level[0].bytes << draw(random, 3);
        c.level[1].latency = 5;
        c.level[1].is_shared = draw(random, 2);
        c.level[1].inclusion = draw(random, 2) ? INCLUSION_INCLUSIVE : INCLUSION_NONE;
        if (!c.level[1].is_shared && draw(random, 3) == 0) {
            c.level[2] = c.level[1];
            c.level[2].bytes = 16384;
            c.level[2].latency = 9;
        }
    }
    if (draw(random, 3) == 0) {
        c.instructions = c.level[0];
        c.instructions.bytes = 512;
        c.instructions.ways = 2;
    }
    if (draw(random, 3) == 0)
        c.tlb = (struct tlb_config){ .entries = 2u << draw(random, 4),
                                     .ways = 2,
                                     .page = 256,
                                     .cost = 20,
                                     .replacement = REPLACEMENT[draw(random, 4)] };
    for (unsigned i = draw(random, 3) ? PEET_CLASS_COUNT : 0; i < PEET_CLASS_COUNT; i++)
        c.cost[i] = 0;
    for (uint64_t n = draw(random, 6); protocols[n] && n > 0; n = 0)
        c.protocol = protocols[n];
    return c;
}

static struct sim *play(struct made *m, const struct machine_config *config, bool is_expanded, bool leads)
{
    struct sim *sim = NULL;
    struct peet_err err = { 0 };

    m->is_expanded = is_expanded;
    for (unsigned i = 0; i < THREADS; i++) {
        m->thread[i].batch = 0;
        m->context[i] = (struct source_thread){ i, 1, true };
    }
    if (!CHECK_EQ(sim_new(config, &m->source, &sim, &err), 0))
        return NULL;
    sim_set_lookahead(sim, leads);
    if (!CHECK_EQ(sim_run(sim, NULL, &err), 0))
        printf("# %s\n", err.text);
    return sim;
}

static bool are_same(struct sim *first, struct sim *second)
{
    struct sim_result a, b;

    sim_result(first, &a);
    sim_result(second, &b);
    bool same = a.cycles == b.cycles && a.references == b.references && a.sync_objects == b.sync_objects
                && !memcmp(a.hw_thread, b.hw_thread, a.hw_threads * sizeof *a.hw_thread)
                && !memcmp(a.memory, b.memory, a.cpus * sizeof *a.memory)
                && !memcmp(&a.fabric, &b.fabric, sizeof a.fabric);
    sim_result_release(&a);
    sim_result_release(&b);
    return same;
}

static void what_is_done_before_its_time_is_as_if_in_order(void)
{
    static struct made m;
    char path[] = "/tmp/peet-test.XXXXXX";
    int fd = mkstemp(path);
    struct peet_writer *w;
    struct peet_err err;

    if (!CHECK(fd >= 0) || !CHECK_EQ(peet_writer_open_fd(fd, NULL, &w, &err), 0))
        return;
    define(&m, w);
    for (uint64_t i = 0; i < MACHINES; i++) {
        uint64_t random = 77 * i + 5;
        struct machine_config config = random_machine(&random);
        m.seed = i << 32;
        m.source.threads = m.source.max_threads = 1 + (uint32_t)draw(&random, THREADS);
        struct sim *counted = play(&m, &config, false, true), *made = play(&m, &config, true, true);
        struct sim *in_order = play(&m, &config, true, false);
        if (!CHECK(are_same(counted, in_order)) || !CHECK(are_same(made, in_order)))
            printf("# machine %" PRIu64 ": %u processors, %u threads, %s, %s\n", i, config.cpus, m.source.threads,
                   config.protocol->name, config.by_reference ? "by reference" : "by block");
        sim_free(counted);
        sim_free(made);
        sim_free(in_order);
    }
    peet_writer_close(w, NULL);
    unlink(path);
}

int main(void)
{
    RUN(what_is_done_before_its_time_is_as_if_in_order);
    return check_done();
}
