/* SPDX-License-Identifier: MIT */
/* The memory of random machines against slow_memory.h, on random references: private strides of cores, lines that all cores use, private bytes and
 * words of one line, blocks that migrate from core to core, references that straddle lines. References are made as the simulator makes them, with and
 * without an observer: hits of the L1 filter are counted there, all others go through memory_access.
 *
 * After each reference the time that it took and the states of its line are the same, now and then all counts and the states of all
 * lines, and in the end what the fabric did. PEET_REFERENCES says how many references there are in all (10^7; `make soak` has 10^9): the
 * more, the more machines. PEET_MACHINE takes only the machine of that number, and compares all counts after each reference. */
#include <stdlib.h>

#include "check.h"
#include "slow_memory.h"

enum { PER_MACHINE = 80000, BAD = 3, COUNTS = sizeof(struct memory_counts) / sizeof(uint64_t), SPACE = 1 << 17 };

static uint64_t seed;

static uint64_t draw(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed >> 33;
}

static uint32_t between(uint32_t low, uint32_t high)
{
    return low + (uint32_t)(draw() % (high - low + 1));
}

static bool one_in(uint32_t n)
{
    return draw() % n == 0;
}

/* ---- machines ---- */

static const struct replacement *random_replacement(void)
{
    static const struct replacement *const others[] = { &replacement_plru, &replacement_fifo, &replacement_rrip,
                                                        &replacement_random };

    return one_in(3) ? &replacement_lru : others[draw() % 4];
}

static struct level_config random_level(uint32_t line, uint32_t most_sets)
{
    struct level_config l = { .ways = one_in(6) ? between(9, 32) : between(1, 8),
                              .line = line,
                              .latency = between(0, 20),
                              .is_write_through = one_in(3),
                              .allocates = !one_in(4),
                              .inclusion = one_in(2) ? INCLUSION_INCLUSIVE : INCLUSION_NONE,
                              .replacement = random_replacement() };

    l.bytes = (uint64_t)line * l.ways * (one_in(2) ? (uint32_t)1 << draw() % 5 : between(1, most_sets));
    if (one_in(16) && l.bytes / line <= (l.replacement->most_ways ? l.replacement->most_ways : 64))
        l.ways = 0; /* rrip has bits for 32 ways */
    return l;
}

/* The number says which protocol and which fabric; all else is random. */
static struct machine_config random_machine(unsigned number)
{
    uint32_t line = (uint32_t)4 << draw() % 11;
    unsigned levels = between(1, CONFIG_LEVELS), private_levels = between(1, levels), kinds = 0, fabric_kinds = 0;
    struct machine_config c = { .cpus = between(1, SLOW_CPUS), .first_touch = one_in(2), .seed = number };

    while (protocols[kinds])
        kinds++;
    while (fabrics[fabric_kinds])
        fabric_kinds++;
    c.protocol = protocols[number % kinds];
    c.fabric_kind = fabrics[(number + number / kinds) % fabric_kinds];
    c.fabric = (struct fabric_config){ .width = between(1, 32),
                                       .clock = between(1, 3),
                                       .address = between(0, 3),
                                       .hop = between(0, 4),
                                       .port = between(0, 4),
                                       .memory = between(10, 100),
                                       .transfer = between(5, 50),
                                       .banks = between(1, 4) };
    for (unsigned i = 0; i < levels; i++) {
        c.level[i] = random_level(line, 12 + 24 * i);
        c.level[i].is_shared = i >= private_levels;
    }
    if (one_in(3)) {
        c.instructions = random_level((uint32_t)8 << draw() % 5, 8);
        c.instructions.miss = one_in(2) ? between(1, 40) : 0;
    }
    if (one_in(3)) {
        c.tlb =
            (struct tlb_config){ .ways = between(1, 4), .page = (uint32_t)512 << draw() % 4, .cost = between(1, 40) };
        c.tlb.entries = c.tlb.ways * between(1, 5);
        c.tlb.replacement = random_replacement();
    }
    return c;
}

static void describe(unsigned number, const struct machine_config *c)
{
    printf("# machine %u: %u processors, %s, %s, tlb %u, i %" PRIu64, number, c->cpus, c->protocol->name,
           c->fabric_kind->name, c->tlb.entries, c->instructions.bytes);
    for (unsigned i = 0; i < CONFIG_LEVELS && c->level[i].bytes; i++) {
        const struct level_config *l = &c->level[i];
        printf("; %" PRIu64 " lines of %u, %u ways, %s%s%s%s%s", l->bytes / l->line, l->line, l->ways,
               l->replacement->name, l->is_shared ? ", shared" : "", l->is_write_through ? ", through" : "",
               l->allocates ? "" : ", around", l->inclusion ? ", inclusive" : "");
    }
    printf("\n");
}

/* ---- references ---- */

struct stream {
    uint64_t first, bytes; /* where all of them go */
    uint32_t cpus, line;
    unsigned cpu, left; /* the current core; references that it still makes */
    uint64_t clock[SLOW_CPUS], walk[SLOW_CPUS], block;
};

struct reference {
    unsigned cpu;
    uint64_t addr, size;
    enum peet_kind kind;
    bool is_fetch, is_seen;
};

/* Chooses the next core: mostly, the one with the least time. */
static void next_cpu(struct stream *s)
{
    s->cpu = (unsigned)(draw() % s->cpus);
    for (unsigned i = 0; i < s->cpus && !one_in(4); i++)
        s->cpu = s->clock[i] < s->clock[s->cpu] ? i : s->cpu;
    s->left = one_in(4) ? between(1, 40) : between(1, 4);
    if (one_in(8))
        s->block = draw() % s->bytes;
}

static uint64_t random_offset(struct stream *s, uint64_t *size)
{
    uint64_t part = s->bytes / s->cpus;

    switch (draw() % 16) {
    case 0:
    case 1:
    case 2:
    case 3: s->walk[s->cpu] += 8; return s->cpu * part + s->walk[s->cpu] % part;
    case 4: s->walk[s->cpu] += 3 * s->line; return s->cpu * part + s->walk[s->cpu] % part;
    case 5:
    case 6:
    case 7: return draw() % (2 * s->line);
    case 8: *size = 1; return s->line * (3 + draw() % 2) + s->cpu % s->line; /* neighbouring bytes */
    case 9: return s->line * (3 + draw() % 2) + s->cpu * 4 % s->line;
    case 10:
    case 11:
    case 12: return s->block + draw() % 64;
    case 13:
        *size = one_in(8) ? between(1, 3 * s->line) : 8;
        return draw() % s->bytes / s->line * s->line + s->line - 4;
    default: return draw() % s->bytes;
    }
}

static struct reference next_reference(struct stream *s)
{
    static const enum peet_kind kinds[] = {
        PEET_LOAD,  PEET_LOAD,  PEET_LOAD,  PEET_LOAD,   PEET_LOAD,   PEET_STORE,
        PEET_STORE, PEET_STORE, PEET_STORE, PEET_UPDATE, PEET_UPDATE, PEET_PREFETCH
    };
    uint64_t size = (uint64_t)1 << draw() % 5, offset;

    if (s->left == 0)
        next_cpu(s);
    s->left--;
    offset = random_offset(s, &size) % s->bytes;
    if (!one_in(8) && size <= 16)
        offset -= offset % size;
    size = size <= s->bytes - offset ? size : s->bytes - offset;
    return (struct reference){ .cpu = s->cpu,
                               .addr = s->first + offset,
                               .size = size,
                               .kind = kinds[draw() % (sizeof kinds / sizeof kinds[0])],
                               .is_fetch = one_in(32),
                               .is_seen = one_in(2) };
}

/* ---- both ---- */

static uint64_t real_reference(struct hierarchy *m, const struct reference *r, uint64_t now)
{
    struct l1_filter *f = hierarchy_filter(m, r->cpu);

    if (r->is_fetch)
        return hierarchy_fetch(m, r->cpu, r->addr, r->size, now);
    if (r->is_seen ? l1_filter_hit_tlb(f, r->addr, r->size, r->kind)
                         || hierarchy_reorder_hit(m, r->cpu, r->addr, r->size, r->kind)
                   : l1_filter_hit(f, r->addr, r->size, r->kind))
        return r->kind == PEET_PREFETCH ? 0 : f->latency;
    uint64_t stall = 0, line = (uint64_t)1 << f->shift, end = r->addr + r->size;
    for (uint64_t addr = r->addr, next; addr < end; addr = next) {
        next = (addr / line + 1) * line < end ? (addr / line + 1) * line : end;
        stall += hierarchy_access(m, &(struct memory_access){ .addr = addr,
                                                              .now = now + stall,
                                                              .size = (uint32_t)(next - addr),
                                                              .kind = (uint8_t)r->kind,
                                                              .core = (uint8_t)r->cpu })
                     .latency;
    }
    return stall;
}

static uint64_t slow_reference(struct slow_memory *m, const struct reference *r, uint64_t now)
{
    return r->is_fetch ? slow_fetch(m, r->cpu, r->addr, r->size, now)
                       : slow_access(m, r->cpu, r->addr, r->size, r->kind, now);
}

static bool same_states(struct hierarchy *real, const struct slow_memory *slow, uint64_t line)
{
    for (unsigned i = 0; i < slow->cpus; i++)
        if (hierarchy_state(real, i, line * slow->line) != slow_view(slow, i, line)->state) {
            printf("# line %#" PRIx64 ", processor %u:\n", line, i);
            return CHECK_EQ(hierarchy_state(real, i, line * slow->line), slow_view(slow, i, line)->state);
        }
    return true;
}

static bool same_counts(struct hierarchy *real, const struct slow_memory *slow)
{
    static const char *const name[] = { "reads",       "writes",       "hits 1",     "hits 2",        "hits 3",
                                        "misses",      "cold",         "replaced",   "true sharing",  "false sharing",
                                        "from caches", "upgrades",     "updates",    "invalidations", "write-backs",
                                        "throughs",    "stall",        "waited",     "TLB misses",    "TLB stall",
                                        "fetches",     "fetch misses", "fetch stall" };
    bool ok = true;

    _Static_assert(sizeof name / sizeof name[0] == COUNTS, "every count has a name");
    hierarchy_flush_counts(real);
    for (unsigned i = 0; i < slow->cpus; i++) {
        uint64_t a[COUNTS], b[COUNTS];
        memcpy(a, hierarchy_counts(real, i), sizeof a);
        memcpy(b, &slow->counts[i], sizeof b);
        for (unsigned k = 0; k < COUNTS; k++)
            if (a[k] != b[k]) {
                printf("# processor %u, %s:\n", i, name[k]);
                ok = CHECK_EQ(a[k], b[k]);
            }
    }
    return ok;
}

/* All lines, and that all is well with each. */
static bool same_lines(struct hierarchy *real, const struct slow_memory *slow)
{
    bool ok = true;

    for (uint64_t i = 0; ok && i < slow->lines; i++)
        ok =
            same_states(real, slow, slow->first_line + i) && CHECK_EQ(slow_complaint(slow, slow->first_line + i), NULL);
    return ok;
}

static bool same_fabric(struct hierarchy *real, const struct slow_memory *slow)
{
    const struct fabric_use *a = hierarchy_fabric(real), *b = &slow->fabric.use;
    bool ok = CHECK_EQ(memcmp(a->busy, b->busy, sizeof a->busy), 0);

    for (unsigned i = 0; i < BUS_BASE_OPS; i++)
        ok = CHECK_EQ(a->by_op[i], b->by_op[i]) && ok;
    return CHECK_EQ(a->bytes, b->bytes) && CHECK_EQ(a->total, b->total) && CHECK_EQ(a->waited, b->waited) && ok;
}

/* What is true of all machines: a miss has one cause, and a reference to a line is found once or missed. */
static void check_counts(const struct machine_config *c, const struct memory_counts *n)
{
    uint64_t causes = 0, hits = 0;

    for (unsigned i = 0; i < MISS_KINDS; i++)
        causes += n->causes[i];
    for (unsigned i = 0; i < CONFIG_LEVELS; i++)
        hits += c->level[i].is_shared ? 0 : n->hits[i];
    CHECK_EQ(causes, n->misses);
    CHECK(hits + n->misses <= n->reads + n->writes && hits + n->misses >= n->reads);
    CHECK(n->waited <= n->stall && n->tlb_stall <= n->stall && n->from_caches <= n->misses);
}

static bool compare(unsigned number, bool is_careful)
{
    struct machine_config c;
    struct hierarchy *real;
    struct peet_err err;
    bool ok = true;

    seed = number * 7919;
    c = random_machine(number);
    uint64_t bytes = (uint64_t)c.level[0].line * (16u << draw() % 7);
    bytes = bytes < 1024 ? 1024 : bytes > SPACE ? SPACE : bytes;
    struct stream s = {
        .first = one_in(3) ? 0 : 0x7ff12340000, .bytes = bytes, .cpus = c.cpus, .line = c.level[0].line
    };
    struct slow_memory *slow = slow_new(&c, s.first, s.bytes);
    if (!CHECK_EQ(hierarchy_new(&c, &real, &err), 0))
        return false;
    for (uint64_t i = 0; ok && i < PER_MACHINE; i++) {
        struct reference r = next_reference(&s);
        uint64_t *now = &s.clock[r.cpu], a = real_reference(real, &r, *now), b = slow_reference(slow, &r, *now);
        ok = CHECK_EQ(a, b) && same_states(real, slow, r.addr / slow->line);
        if (is_careful || i % 1000 == 999)
            ok = same_counts(real, slow) && ok;
        if (i % 5000 == 4999)
            ok = same_lines(real, slow) && ok;
        if (!ok)
            printf("# … by reference %" PRIu64 ": processor %u, kind %d%s, addr %#" PRIx64 ", %" PRIu64 " bytes\n", i,
                   r.cpu, (int)r.kind, r.is_fetch ? " (a fetch)" : "", r.addr, r.size);
        *now += 1 + b + (one_in(4) ? draw() % 30 : 0);
    }
    ok = ok && same_counts(real, slow) && same_lines(real, slow) && same_fabric(real, slow);
    for (unsigned i = 0; ok && i < c.cpus; i++)
        check_counts(&c, hierarchy_counts(real, i));
    if (!ok)
        describe(number, &c);
    hierarchy_free(real);
    slow_free(slow);
    return ok;
}

static void memory_is_as_it_is_told(void)
{
    const char *only = getenv("PEET_MACHINE"), *all = getenv("PEET_REFERENCES");
    uint64_t machines = (all ? strtoull(all, NULL, 10) : 10000000) / PER_MACHINE;
    unsigned bad = 0;

    if (only)
        compare((unsigned)strtoul(only, NULL, 10), true);
    for (unsigned i = 0; !only && bad < BAD && i < machines; i++)
        bad += !compare(i, false);
}

int main(void)
{
    RUN(memory_is_as_it_is_told);
    return check_done();
}
