/* SPDX-License-Identifier: MIT */
/* What references do, for the observer of a run and in its profile, against slow_memory.h: level, cause of a miss, capacity or conflict,
 * the access that removed the line, upgrades, updates, and cycles. Threads of random programs run on random machines, with locks and library calls.
 *
 * The observer's references, in their order, are given to the slow memory, which says what each of them did. The interference pairs of the
 * profile are added up from that as well. Where the block executor can run the program, its profile has the same pairs. */
#include <stdlib.h>

#include "sim/engine/sim.h"
#include "sim/exec/exec_blocks.h"
#include "sim/sync/sync.h"
#include "slow_memory.h"
#include "study/profile/profile.h"
#include "study/profile/profiler.h"
#include "tests/unit/random.h"
#include "tests/unit/text.h"

enum { RUNS_OF_ALL = 240, THREADS = 4, EXECUTIONS = 900, KINDS = 12, SPACE = 1 << 14, PER_RUN = 1 << 16 };
#define FIRST UINT64_C(0x100000)

/* ---- programs: block k has one instruction, at CODE + 16 * k ---- */

enum { CODE = 0x1000, CALL = 0x9000 };
static const struct {
    const char *kind;
    unsigned size;
} REFERENCES[KINDS] = { { "load", 8 },  { "load", 4 },  { "load", 1 },   { "load", 64 },
                        { "load", 8 },  { "load", 2 },  { "store", 8 },  { "store", 16 },
                        { "store", 4 }, { "store", 1 }, { "update", 8 }, { "prefetch", 8 } };

static uint64_t random_addr(uint64_t *r, unsigned thread)
{
    switch (draw(r, 8)) {
    case 0:
    case 1: return FIRST + draw(r, 128);                  /* all threads want it */
    case 2: return FIRST + 512 + 4 * thread + draw(r, 4); /* false sharing */
    case 3:
    case 4:
    case 5: return FIRST + SPACE / 8 * (1 + thread) + draw(r, 512) * 2;
    default: return FIRST + draw(r, SPACE - 64);
    }
}

static void write_event(FILE *out, uint64_t *r, unsigned thread, uint32_t line)
{
    uint64_t lock = FIRST + 1024 + 8 * draw(r, 4);
    unsigned site = CALL + 16 * (unsigned)draw(r, 5);

    if (draw(r, 2))
        fprintf(out, "%u - range_%s 0x%" PRIx64 " %u @0x%x\n", thread + 1, draw(r, 2) ? "read" : "write",
                FIRST + draw(r, SPACE / line - 4) * line, line * (1 + (unsigned)draw(r, 3)), site);
    else
        fprintf(out, "%u - mutex_lock 0x%" PRIx64 " @0x%x\n%u - mutex_unlock 0x%" PRIx64 " @0x%x\n", thread + 1, lock,
                site, thread + 1, lock, site + 4);
}

/* Threads take turns in the trace; the simulated machine interleaves them by its own time. */
static struct peet_trace *program(uint64_t *r, unsigned threads, uint32_t line)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct peet_trace *t = NULL;
    struct peet_err err;

    fputs("peet text 1\nprocess 1 parent 0 program \"a\" command \"a\"\n", out);
    for (unsigned i = 0; i < threads; i++)
        fprintf(out, "thread %u process 1 parent 0 ordinal 0 name \"t\"\n", i + 1);
    for (unsigned i = 0; i < KINDS; i++)
        fprintf(out, "block b%u slots 1\n  0x%x 4 plain, %s %u [s0]\n", i + 1, CODE + 16 * i, REFERENCES[i].kind,
                REFERENCES[i].size);
    for (unsigned i = 0; i < threads * EXECUTIONS; i++)
        if (draw(r, 40) == 0)
            write_event(out, r, i % threads, line);
        else
            fprintf(out, "%u - b%u 0x%" PRIx64 "\n", i % threads + 1, 1 + (unsigned)draw(r, KINDS),
                    random_addr(r, i % threads));
    fputs("end\n", out);
    fclose(out);
    if (import(text, "a"))
        fine(peet_trace_open(path_of("a"), &t, &err), &err);
    free(text);
    return t;
}

/* ---- machines ---- */

static unsigned registered(const void *const *all)
{
    unsigned n = 0;

    while (all[n])
        n++;
    return n;
}

static struct level_config random_level(uint64_t *r, uint32_t line, unsigned level, bool has_blocks)
{
    struct level_config l = { .line = line,
                              .ways = 1u << draw(r, 4),
                              .latency = 1 + (uint32_t)draw(r, 4) * (1 + 3 * level),
                              .allocates = has_blocks || draw(r, 4),
                              .is_write_through = !has_blocks && draw(r, 4) == 0,
                              .inclusion = has_blocks || draw(r, 2) ? INCLUSION_NONE : INCLUSION_INCLUSIVE,
                              .replacement = &replacement_lru };

    if (!has_blocks && draw(r, 4) == 0)
        l.replacement = replacements[draw(r, registered((const void *const *)replacements))];
    l.bytes = (UINT64_C(1) << draw(r, 4)) * l.ways * line << 2 * level;
    return l;
}

/* has_blocks: one that the block executor can simulate. */
static struct machine_config random_machine(uint64_t *r, bool has_blocks)
{
    unsigned levels = 1 + (unsigned)draw(r, 3), private_levels = has_blocks ? levels : 1 + (unsigned)draw(r, levels);
    uint32_t line = 16u << draw(r, 3);
    struct machine_config c;

    config_defaults(&c);
    c.cpus = has_blocks ? 1 : 1 + (unsigned)draw(r, THREADS);
    c.core_threads = 1;
    c.jitter = 0;
    c.quantum = draw(r, 2) ? 300 : 0;
    c.by_reference = !has_blocks && draw(r, 3) == 0;
    c.first_touch = draw(r, 2);
    c.lock = &lock_tas;
    c.instructions.bytes = 0;
    c.tlb.entries = 0;
    c.seed = draw(r, 1000);
    if (!has_blocks && draw(r, 4) == 0)
        c.tlb =
            (struct tlb_config){ .entries = 4, .ways = 2, .page = 1024, .cost = 7, .replacement = &replacement_lru };
    c.protocol = protocols[draw(r, registered((const void *const *)protocols))];
    c.fabric_kind = fabrics[draw(r, has_blocks ? 2 : registered((const void *const *)fabrics))];
    memset(c.level, 0, sizeof c.level);
    for (unsigned i = 0; i < levels; i++) {
        c.level[i] = random_level(r, line, i, has_blocks);
        c.level[i].is_shared = i >= private_levels;
    }
    c.fabric.cpus = c.cpus;
    c.fabric.line = line;
    return c;
}

static void describe(const struct machine_config *c)
{
    printf("# %u cores, %s, %s, tlb %u;", c->cpus, c->protocol->name, c->fabric_kind->name, c->tlb.entries);
    for (unsigned i = 0; i < CONFIG_LEVELS && c->level[i].bytes; i++)
        printf(" %" PRIu64 " bytes in %u ways of %u, %s%s%s%s%s;", c->level[i].bytes, c->level[i].ways,
               c->level[i].line, c->level[i].replacement->name, c->level[i].is_shared ? ", shared" : "",
               c->level[i].is_write_through ? ", through" : "", c->level[i].allocates ? "" : ", around",
               c->level[i].inclusion ? ", inclusive" : "");
    printf("\n");
}

/* ---- a run, as the slow memory sees it ---- */

struct pair {
    uint64_t of, by; /* code addresses; by: 0, no access of the program has removed the line */
    unsigned cause;  /* enum profile_cause */
    uint64_t misses, stall;
};

struct watch {
    const struct machine_config *config;
    struct peet_trace *trace;
    struct slow_memory *slow;
    uint64_t place[PER_RUN]; /* code addresses of references, by tag */
    uint32_t tags;
    struct pair pair[PER_RUN];
    size_t pairs;
    uint64_t conflicts, removals; /* misses of that kind, to see that there are some */
    bool ok;
};

static void add_pair(struct pair *all, size_t *n, struct pair x)
{
    size_t i = 0;

    while (i < *n && (all[i].of != x.of || all[i].by != x.by || all[i].cause != x.cause))
        i++;
    if (i == *n)
        all[(*n)++] = (struct pair){ x.of, x.by, x.cause, 0, 0 };
    all[i].misses += x.misses;
    all[i].stall += x.stall;
}

static enum profile_cause cause_of(const struct slow_outcome *o)
{
    static const enum profile_cause causes[] = { [MISS_cold] = CAUSE_cold,
                                                 [MISS_replaced] = CAUSE_capacity,
                                                 [MISS_true_sharing] = CAUSE_true_sharing,
                                                 [MISS_false_sharing] = CAUSE_false_sharing };

    return o->is_conflict ? CAUSE_conflict : causes[o->cause];
}

/* What the slow memory says of bytes [addr, addr + size) in the line with that number. tag: index in w->place. */
static struct slow_outcome watch_line(struct watch *w, unsigned cpu, uint64_t line, uint64_t addr, uint64_t size,
                                      unsigned kind, uint64_t now, uint32_t tag)
{
    uint64_t from = line * w->slow->line, to = from + w->slow->line;

    from = addr > from ? addr : from;
    to = addr + size < to ? addr + size : to;
    struct slow_outcome o = slow_outcome(w->slow, cpu, from, to - from, (enum peet_kind)kind, now, tag);
    if (o.cause == MISS_KINDS)
        return o;
    w->conflicts += o.is_conflict;
    w->removals += o.removed_by != 0;
    if (o.cause != MISS_cold)
        add_pair(w->pair, &w->pairs,
                 (struct pair){ w->place[tag], o.removed_by ? w->place[o.removed_by] : 0, cause_of(&o), 1,
                                access_stall(w->config, kind, o.latency) });
    return o;
}

/* Each reference has its own tag. */
static uint32_t watch_tag(void *context, const struct sim_reference *r)
{
    struct watch *w = context;

    w->tags += w->tags + 1 < PER_RUN;
    w->place[w->tags] = r->insn == SIM_NO_INSN ? r->site - 1 : peet_trace_insn(w->trace, r->insn)->addr;
    return w->tags;
}

static void watch_reference(void *context, const struct sim_reference *r)
{
    struct watch *w = context;
    uint64_t size = r->is_sync               ? SYNC_WORD
                    : r->insn == SIM_NO_INSN ? w->slow->line
                                             : REFERENCES[(w->place[r->tag] - CODE) / 16].size;
    struct slow_outcome o = watch_line(w, r->cpu, r->line, r->addr, size, r->kind, r->now, r->tag);
    const struct access_outcome *got = &r->outcome;

    if (!w->ok)
        return;
    w->ok = CHECK_EQ(got->cause, o.cause) && CHECK_EQ(got->level, o.level) && CHECK_EQ(got->is_upgrade, o.is_upgrade)
            && CHECK_EQ(got->is_update, o.is_update) && CHECK_EQ(got->from_cache, o.from_cache)
            && CHECK_EQ(got->is_conflict, o.is_conflict) && CHECK_EQ(got->removed_by, o.removed_by)
            && CHECK_EQ(got->contention, o.contention) && (r->is_sync || CHECK_EQ(got->latency, o.latency));
    if (!w->ok)
        printf("# … by reference %u: core %u, kind %u, addr %#" PRIx64 ", line %#" PRIx64 "\n", r->tag, r->cpu, r->kind,
               r->addr, r->line);
}

static void watch_hit(void *context, uint32_t thread, unsigned cpu, const struct peet_record *r, uint64_t at)
{
    struct watch *w = context;

    (void)thread;
    struct slow_outcome o = watch_line(w, cpu, at / w->slow->line, r->addr, r->size, r->kind, 0, 0);
    w->ok = w->ok && CHECK_EQ(o.level, 0) && CHECK_EQ(o.cause, MISS_KINDS) && CHECK(!o.is_upgrade && !o.is_update);
}

static void watch_block(void *context, uint32_t thread, const struct peet_record *block, uint64_t cycles,
                        uint64_t fetch)
{
    (void)context, (void)thread, (void)block, (void)cycles, (void)fetch;
}

static void watch_event(void *context, uint32_t thread, const struct peet_event *e)
{
    (void)context, (void)thread, (void)e;
}

static bool watch_run(struct watch *w)
{
    const struct sim_observer o = { w, watch_block, watch_tag, watch_reference, watch_hit, watch_event };
    struct source *source = NULL;
    struct sim *sim = NULL;
    struct peet_err err;

    w->slow = slow_new(w->config, FIRST, SPACE + 4096);
    w->ok = fine(source_open_trace(w->trace, false, &source, &err), &err)
            && fine(sim_new(w->config, source, &sim, &err), &err);
    if (w->ok) {
        sim_add_observer(sim, &o);
        w->ok = fine(sim_run(sim, NULL, &err), &err) && w->ok;
    }
    sim_free(sim);
    source_free(source);
    slow_free(w->slow);
    return w->ok;
}

/* ---- profiles ---- */

static int by_pair(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;

    return x->of != y->of   ? (x->of < y->of ? -1 : 1)
           : x->by != y->by ? (x->by < y->by ? -1 : 1)
                            : (int)x->cause - (int)y->cause;
}

/* The pairs of a profile, whatever their objects are. */
static bool has_pairs(const struct profile *p, const struct pair *expected, size_t n)
{
    struct pair *got = calloc(p->pairs + 1, sizeof *got);
    size_t count = 0;
    bool ok = true;

    for (size_t i = 0; i < p->pairs; i++) {
        const struct interference_pair *x = &p->pair[i];
        add_pair(got, &count,
                 (struct pair){ profile_place_addr(p, x->of), x->by == UINT32_MAX ? 0 : profile_place_addr(p, x->by),
                                x->cause, x->misses, x->stall });
    }
    qsort(got, count, sizeof *got, by_pair);
    ok = CHECK_EQ(count, n);
    for (size_t i = 0; ok && i < n; i++) {
        ok = CHECK_EQ(got[i].of, expected[i].of) && CHECK_EQ(got[i].by, expected[i].by)
             && CHECK_EQ(got[i].cause, expected[i].cause) && CHECK_EQ(got[i].misses, expected[i].misses)
             && CHECK_EQ(got[i].stall, expected[i].stall);
    }
    free(got);
    return ok;
}

/* by_blocks: by the block executor, with machine code from the first execution on. */
static bool profile_agrees(const struct watch *w, bool by_blocks)
{
    struct source *source = NULL;
    struct profiler *x = NULL;
    struct peet_err err;
    bool ok = fine(source_open_trace(w->trace, false, &source, &err), &err)
              && fine(profiler_new(w->config, source, &x, &err), &err);

    if (ok) {
        profiler_set_debug(x, &(struct profiler_debug){ .observe_all = !by_blocks, .jit_threshold = 1 });
        ok = fine(profiler_run(x, NULL, NULL, &err), &err) && has_pairs(profiler_profile(x), w->pair, w->pairs);
    }
    profiler_free(x);
    source_free(source);
    return ok;
}

static bool compare(uint64_t number, uint64_t *conflicts, uint64_t *removals)
{
    uint64_t r = 31 * number + 7;
    bool has_blocks = number % 3 == 0;
    struct machine_config c = random_machine(&r, has_blocks);
    struct watch *w = calloc(1, sizeof *w);
    struct peet_trace *t = program(&r, has_blocks ? 1 : 1 + (unsigned)draw(&r, THREADS), c.level[0].line);

    w->config = &c;
    w->trace = t;
    bool ok = t && watch_run(w);
    qsort(w->pair, w->pairs, sizeof *w->pair, by_pair);
    ok = ok && profile_agrees(w, false) && (!has_blocks || (CHECK(blocks_can_run(&c)) && profile_agrees(w, true)));
    if (!ok) {
        printf("# run %" PRIu64 ": ", number);
        describe(&c);
    }
    *conflicts += w->conflicts;
    *removals += w->removals;
    peet_trace_free(t);
    free(w);
    return ok;
}

static void outcomes_are_those_of_the_slow_memory(void)
{
    uint64_t conflicts = 0, removals = 0;
    unsigned bad = 0;

    for (uint64_t i = 0; i < RUNS_OF_ALL && bad < 3; i++)
        bad += !compare(i, &conflicts, &removals);
    CHECK(conflicts > RUNS_OF_ALL && removals > RUNS_OF_ALL);
}

int main(void)
{
    if (!begin())
        return 1;
    RUN(outcomes_are_those_of_the_slow_memory);
    return end();
}
