/* SPDX-License-Identifier: MIT */
/* The block engine (sim/exec/exec_blocks.h) against the record engine, which reports every reference: profiles of random programs on random machines.
 * Both profiles have equal counts for each instruction and object, interference pair, path, block and time bin, and equal totals. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cpu.h"
#include "capture/modules.h"
#include "sim/engine/sim.h"
#include "sim/exec/jit/code_memory.h"
#include "sim/exec/lines.h"
#include "sim/exec/exec_blocks.h"
#include "block_program.h"
#include "study/profile/sampling/estimate_profile.h"
#include "study/profile/profiler.h"
#include "study/profile/profile.h"

enum {
    PROGRAMS = 170,
    MACHINES = 2,
    SHARED_PROGRAMS = 40,
    SAMPLED_PROGRAMS = 150,
    THREADS = 3,
    HOT = 112,
    USES = 50000
};

/* ---- machines ---- */

static unsigned registered(const void *const *all)
{
    unsigned n = 0;

    while (all[n])
        n++;
    return n;
}

static struct machine_config random_machine(uint64_t *r)
{
    static const struct fabric_kind *const FABRICS_HERE[] = { &fabric_ideal, &fabric_ideal, &fabric_bus,
                                                              &fabric_split };
    struct machine_config c;
    unsigned levels = 1 + (unsigned)draw(r, 3);
    uint64_t lines = UINT64_C(4) << draw(r, 5);

    config_defaults(&c);
    c.cpus = c.core_threads = 1;
    c.by_reference = false;
    c.jitter = 0;
    c.tlb.entries = 0;
    c.instructions.bytes = 0;
    c.quantum = draw(r, 3) ? 500 : 0;
    c.protocol = protocols[draw(r, registered((const void *const *)protocols))];
    c.lock = lock_kinds[draw(r, registered((const void *const *)lock_kinds))];
    c.fabric_kind = FABRICS_HERE[draw(r, 4)];
    for (unsigned i = 0; i < PEET_CLASS_COUNT; i++)
        c.cost[i] = (uint32_t)draw(r, 4);
    memset(c.level, 0, sizeof c.level);
    for (unsigned i = 0, line = 16u << draw(r, 4); i < levels; i++) {
        c.level[i] = (struct level_config){ .line = line, .replacement = &replacement_lru, .allocates = true };
        c.level[i].ways = (uint32_t)(draw(r, 3) ? 1u << draw(r, 4) : draw(r, 4) ? 1 + draw(r, 8) : 9 + draw(r, 16));
        c.level[i].bytes = lines * c.level[i].ways * line;
        if (draw(r, 16) == 0)
            c.level[i].ways = 0; /* one set */
        c.level[i].latency = (uint32_t)draw(r, 6);
        lines <<= draw(r, 3);
    }
    return c;
}

static void describe(const struct machine_config *c)
{
    printf("# %s, %s;", c->protocol->name, c->fabric_kind->name);
    for (unsigned i = 0; i < CONFIG_LEVELS && c->level[i].bytes; i++)
        printf(" %" PRIu64 " bytes in %u ways of %u, latency %u;", c->level[i].bytes, c->level[i].ways,
               c->level[i].line, c->level[i].latency);
    printf("\n");
}

/* ---- both ---- */

/* A profile as sorted lines of text. The order does not depend on the numbers of access counts, pairs and path counts, which differ between engines. */
struct text {
    char *bytes, **line;
    size_t lines;
};

static int by_text(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;

    return strcmp(*x, *y);
}

static void print_object(FILE *out, const struct profile *p, uint32_t object)
{
    fprintf(out, " %s", object == UINT32_MAX ? "none" : objects_info(p->objects, object)->name);
}

/* Of a sample: without estimates, which depend on when first uses of lines are reported. */
static void print_cells(FILE *out, const struct profile *p)
{
    for (size_t i = 0; i < p->accesses; i++) {
        const struct access_counts *c = &p->access[i];
        fprintf(out, "cell %" PRIx64, profile_place_addr(p, c->place));
        print_object(out, p, c->object);
        fprintf(out, ": %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, c->references, c->writes,
                p->sampled ? 0 : c->misses, c->unknown, c->compute);
        for (unsigned k = 0; k < CAUSES; k++)
            if (!p->sampled || (k != CAUSE_unknown && k != CAUSE_farther))
                fprintf(out, " %" PRIu64 "/%" PRIu64, c->cause[k], c->stall[k]);
        fputc('\n', out);
    }
    for (size_t i = 0; i < p->pairs; i++) {
        const struct interference_pair *x = &p->pair[i];
        fprintf(out, "pair %" PRIx64 " %" PRIx64, profile_place_addr(p, x->of),
                x->by == UINT32_MAX ? 0 : profile_place_addr(p, x->by));
        print_object(out, p, x->object);
        print_object(out, p, x->by_object);
        fprintf(out, " %u: %" PRIu64 " %" PRIu64 "\n", x->cause, x->misses, x->stall);
    }
}

static void print_rest(FILE *out, const struct profile *p)
{
    const struct sim_result *r = &p->result;

    for (size_t i = 0; i < p->members.count; i++) {
        const struct member_cost *m = &p->members.cost[i];
        fprintf(out, "member %" PRIu64 " of", m->offset);
        print_object(out, p, m->object);
        fprintf(out, ": %" PRIu64 " %" PRIu64 "\n", m->misses, m->stall);
    }
    for (size_t i = 0; i < p->by_paths; i++) {
        const struct path_counts *l = &p->by_path[i];
        fprintf(out, "leaf %u of %" PRIx64 ", %u: %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", l->node,
                p->paths.node[l->node].call, l->block, l->compute, l->stall, l->misses, path_counts_wait(l));
    }
    for (size_t i = 0; i < p->waits; i++) {
        const struct profile_wait *w = &p->wait[i];
        fprintf(out, "wait %" PRIx64, profile_place_addr(p, w->place));
        print_object(out, p, w->object);
        fprintf(out, " %u %u: %" PRIu64 "\n", w->kind, w->as, w->cycles);
    }
    for (uint32_t k = 0; k < p->codes; k++)
        for (uint32_t i = 0; i < p->code[k].items; i++) {
            const struct block_counts *b = &p->code[k].block[i];
            if (b->runs || b->fetch)
                fprintf(out, "block %u of %u: %" PRIu64 " %" PRIu64 "\n", i, k, b->runs, b->fetch);
        }
    for (unsigned i = 0; i < TIME_BINS; i++)
        fprintf(out, "window %u of %" PRIu64 ": %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", i, p->over_time.length,
                p->over_time.bin[i].references, p->over_time.bin[i].misses, p->over_time.bin[i].stall);
    fprintf(out, "totals: %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", p->references, p->misses,
            p->compute, p->stall, p->fetch);
    fprintf(out, "result: %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %u\n", r->cycles, r->instructions,
            r->references, r->forced_wakeups, r->threads);
    for (unsigned i = 0; i < TIME_COUNT; i++)
        fprintf(out, "time %u: %" PRIu64 "\n", i, r->hw_thread[0].time[i]);
    for (size_t i = 0; i < sizeof *r->memory / sizeof(uint64_t); i++)
        fprintf(out, "count %zu: %" PRIu64 "\n", i, ((const uint64_t *)r->memory)[i]);
    for (uint32_t i = 0; i < r->sync_objects; i++)
        fprintf(out, "object %" PRIx64 ": %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", r->sync_object[i].addr,
                r->sync_object[i].uses, r->sync_object[i].waited, r->sync_object[i].held);
}

static struct text text_of(const struct profile *p)
{
    struct text t = { 0 };
    size_t size;
    FILE *out = open_memstream(&t.bytes, &size);

    print_cells(out, p);
    if (!p->sampled)
        print_rest(out, p);
    fclose(out);
    t.line = calloc(size + 1, sizeof *t.line);
    for (char *save = NULL, *l = strtok_r(t.bytes, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
        t.line[t.lines++] = l;
    qsort(t.line, t.lines, sizeof *t.line, by_text);
    return t;
}

static bool are_same(const struct profile *a, const struct profile *b)
{
    struct text x = text_of(a), y = text_of(b);
    size_t i = 0;

    while (i < x.lines && i < y.lines && !strcmp(x.line[i], y.line[i]))
        i++;
    bool same = i == x.lines && i == y.lines;
    if (!same)
        printf("# counted: %s\n# told:    %s\n", i < x.lines ? x.line[i] : "(nothing)",
               i < y.lines ? y.line[i] : "(nothing)");
    free(x.bytes);
    free(x.line);
    free(y.bytes);
    free(y.line);
    return same && !memcmp(&a->result.fabric, &b->result.fabric, sizeof a->result.fabric);
}

/* How often an item is executed before it becomes machine code; UINT32_MAX: it never does. */
static const uint32_t OFTEN[] = { 0, 1, 2, UINT32_MAX };

/* After how many bytes members of objects with names come again; 0: they have none. */
static const uint64_t STRIDES[] = { 0, 0, 1, 4, 24, 40, 1000, UINT64_C(1) << 33 };

struct way {
    bool is_slow;
    uint32_t often;
    uint64_t stride;
};

static struct profile *profile_of(struct peet_trace *t, const struct machine_config *c, const struct way *way,
                                  struct source **ret)
{
    struct profiler *p = NULL;
    struct peet_err err;

    if (!CHECK_EQ(source_open_trace(t, false, ret, &err), 0) || !CHECK_EQ(profiler_new(c, *ret, &p, &err), 0))
        return NULL;
    profiler_set_debug(p, &(struct profiler_debug){ way->is_slow, way->often, way->stride });
    profiler_set_calls(p, 2);
    if (!CHECK_EQ(profiler_run(p, NULL, NULL, &err), 0))
        printf("# %s\n", err.text);
    return profiler_take(p);
}

/* Whether both engines make equal profiles of the program on the machine. */
static bool compare(struct peet_trace *t, const struct machine_config *c, uint32_t often, uint64_t stride,
                    bool (*is_good)(const struct profile *counted, const struct profile *told))
{
    struct source *source[2] = { NULL, NULL };
    struct profile *p[2];

    CHECK(blocks_can_run(c));
    for (unsigned i = 0; i < 2; i++)
        p[i] = profile_of(t, c, &(struct way){ i == 1, often, stride }, &source[i]);
    bool good = p[0] && p[1] && is_good(p[0], p[1]);
    for (unsigned i = 0; i < 2; i++) {
        profile_free(p[i]);
        source_free(source[i]);
    }
    return CHECK(good);
}

static void compare_all(uint64_t programs, unsigned threads,
                        bool (*is_good)(const struct profile *counted, const struct profile *told))
{
    char path[] = "/tmp/peet-test.XXXXXX";
    int fd = mkstemp(path);

    if (!CHECK(fd >= 0))
        return;
    close(fd);
    for (uint64_t i = 0; i < programs; i++) {
        struct peet_trace *t = write_program(path, 3 * i + 1, threads);
        uint64_t random = 77 * i + 5;
        for (unsigned k = 0; t && k < MACHINES; k++) {
            struct machine_config c = random_machine(&random);
            uint32_t often = OFTEN[draw(&random, 4)];
            uint64_t stride = STRIDES[draw(&random, 8)];
            exec_short_epochs = (i + k) % 2; /* numbers of uses are renumbered often */
            cpu_force_scalar = (i + k) % 4 == 3;
            if (!compare(t, &c, often, stride, is_good)) {
                printf("# program %" PRIu64 ", machine %u, machine code after %" PRIu32 ", members after %" PRIu64
                       ":\n",
                       i, k, often, stride);
                describe(&c);
            }
        }
        peet_trace_free(t);
    }
    exec_short_epochs = cpu_force_scalar = false;
    unlink(path);
}

static void what_is_counted_is_what_is_told(void)
{
    compare_all(PROGRAMS, 1, are_same);
}

/* When a turn ends is not the same, and so are misses, and what locks refer to. */
static bool have_same_totals(const struct profile *a, const struct profile *b)
{
    bool same = a->references == b->references && a->result.instructions == b->result.instructions
                && a->result.threads == b->result.threads;

    const struct process_code none = { 0 }, *x = a->codes ? a->code : &none, *y = b->codes ? b->code : &none;
    for (uint32_t i = 0; i < x->items || i < y->items; i++)
        same &= (i < x->items ? x->block[i].runs : 0) == (i < y->items ? y->block[i].runs : 0);
    return same;
}

/* ---- samples ---- */

/* A trace as a program that could leave things out, and never does. */
static void never_skip(struct source *s, uint32_t context, uint64_t references, uint32_t line_bytes)
{
    (void)s, (void)context, (void)references, (void)line_bytes;
}

static struct profile *sample_of(struct peet_trace *t, const struct machine_config *c, uint64_t length, uint32_t often,
                                 struct source_kind *kind, struct source **ret)
{
    struct sample_config sampling = { .length = length, .every = 3 * length, .seed = 1 };
    struct profiler *p = NULL;
    struct source *inner;
    struct peet_err err;

    if (!CHECK_EQ(sampled_geometry(c, &sampling, &err), 0) || !CHECK_EQ(source_open_trace(t, false, &inner, &err), 0))
        return NULL;
    *kind = *inner->kind;
    kind->skip = never_skip;
    inner->kind = kind;
    if (!CHECK_EQ(profiler_open_source(inner, c, &sampling, ret, &p, &err), 0))
        return NULL;
    profiler_set_debug(p, &(struct profiler_debug){ .jit_threshold = often });
    CHECK_EQ(profiler_run(p, NULL, NULL, &err), 0);
    return profiler_take(p);
}

/* With machine code and without; adds to what was estimated and unknown. */
static void compare_samples(struct peet_trace *t, const struct machine_config *c, uint64_t length, double misses[2],
                            uint64_t *unknown)
{
    struct source *source[2] = { NULL, NULL };
    struct source_kind kind[2];
    struct profile *p[2] = { NULL, NULL };

    for (unsigned i = 0; t && i < 2; i++)
        p[i] = sample_of(t, c, length, i ? UINT32_MAX : 1, &kind[i], &source[i]);
    if (!CHECK(p[0] && p[1] && are_same(p[0], p[1])))
        describe(c);
    for (size_t i = 0; p[0] && i < p[0]->accesses; i++)
        *unknown += p[0]->access[i].unknown;
    for (unsigned i = 0; i < 2; i++) {
        misses[i] += p[i] ? (double)p[i]->misses : 0;
        profile_free(p[i]);
        source_free(source[i]);
    }
}

/* One level, direct-mapped: there is machine code for its misses. */
static void make_direct(struct machine_config *c, uint64_t lines)
{
    c->fabric_kind = &fabric_ideal;
    c->level[0].ways = 1;
    c->level[0].bytes = c->level[0].line * lines;
    c->level[1].bytes = c->level[2].bytes = 0;
}

/* A sample gets the same reports with and without machine code. */
static void samples_are_the_same_with_machine_code(void)
{
    char path[] = "/tmp/peet-test.XXXXXX";
    int fd = mkstemp(path);
    double misses[2] = { 0, 0 };
    uint64_t unknown = 0;

    if (!CHECK(fd >= 0))
        return;
    close(fd);
    for (uint64_t i = 0; i < SAMPLED_PROGRAMS; i++) {
        struct peet_trace *t = write_program(path, 5 * i + 2, 1);
        uint64_t random = 7 * i + 3, length = UINT64_C(100) << draw(&random, 7);
        struct machine_config c = random_machine(&random);
        if (draw(&random, 2))
            make_direct(&c, UINT64_C(1) << draw(&random, 8));
        compare_samples(t, &c, length, misses, &unknown);
        peet_trace_free(t);
    }
    unlink(path);
    CHECK(unknown > 10000 && misses[0] > 10000 && fabs(misses[0] - misses[1]) < 0.0001 * misses[0]);
}

static void threads_that_share_the_processor_refer_as_often(void)
{
    compare_all(SHARED_PROGRAMS, THREADS, have_same_totals);
}

/* Lines of which nearly as many as the cache can have are used again and again, in no order, and seldom one of a few others: whether a cache of any lines would have
 * one of these is decided by uses that are more intervals ago than there is room for. */
static void write_uses(struct program *p)
{
    struct peet_insn insn = { .addr = 0x401000, .length = 4 };
    struct peet_operand operand = { .kind = PEET_LOAD, .size = 8, .base = PEET_SRC_SLOT };
    struct peet_block b = { .slots = 1, .insns = 1, .operands = 1, .insn = &insn, .operand = &operand };
    uint64_t hot[HOT];
    struct peet_stream *s;
    struct peet_err err;

    CHECK_EQ(peet_writer_block(p->w, &b, &p->block[0], &err), 0);
    CHECK_EQ(peet_stream_open(p->w, &(struct peet_thread){ .id = 1, .process = 1, .name = "t" }, &s, &err), 0);
    for (unsigned i = 0; i < HOT; i++)
        hot[i] = HOME + 16 * (2 * i + draw(&p->random, 2));
    for (unsigned i = 0; i < USES; i++) {
        uint64_t addr = i < HOT                 ? hot[i]
                        : draw(&p->random, 800) ? hot[draw(&p->random, HOT)]
                                                : FAR + 16 * draw(&p->random, 32);
        put(s, p->block[0], &addr);
    }
    CHECK_EQ(peet_stream_close(s, &err), 0);
}

static struct peet_trace *trace_of_uses(char *path)
{
    struct program p = { .random = 5 };
    struct peet_trace *t = NULL;
    struct peet_err err;
    int fd = mkstemp(path);

    if (!CHECK(fd >= 0) || !CHECK_EQ(peet_writer_open_fd(fd, NULL, &p.w, &err), 0))
        return NULL;
    write_uses(&p);
    CHECK_EQ(peet_writer_close(p.w, &err), 0);
    CHECK_EQ(peet_trace_open(path, &t, &err), 0);
    unlink(path);
    return t;
}

/* Most references miss, always by the same instruction, so that most is done in machine code. */
static void samples_of_many_misses_are_the_same(void)
{
    char path[] = "/tmp/peet-test.XXXXXX";
    struct peet_trace *t = trace_of_uses(path);
    double misses[2] = { 0, 0 };
    uint64_t random = 1, unknown = 0;

    for (uint64_t lines = 16; t && lines <= 256; lines *= 2)
        for (uint64_t length = 200; length <= 12800; length *= 4) {
            struct machine_config c = random_machine(&random);
            c.level[0].line = 16;
            make_direct(&c, lines);
            compare_samples(t, &c, length, misses, &unknown);
        }
    CHECK(unknown > 1000 && misses[0] > 10000);
    CHECK_EQ((uint64_t)misses[0], (uint64_t)misses[1]);
    peet_trace_free(t);
}

/* A machine with shadow tags: its last level has `ways` ways; one level before it is small. */
static struct machine_config make_recent(unsigned levels, unsigned ways, uint64_t *random)
{
    struct machine_config c = random_machine(random);
    struct level_config *last = &c.level[levels - 1];

    memset(c.level, 0, sizeof c.level);
    for (unsigned i = 0; i < levels; i++)
        c.level[i] = (struct level_config){ .line = 16,
                                            .ways = 2,
                                            .bytes = 16 * 16,
                                            .latency = i * 5,
                                            .replacement = &replacement_lru,
                                            .allocates = true };
    last->ways = ways;
    last->bytes = 128 * 16;
    return c;
}

static void lines_that_are_used_again_stay_recent(void)
{
    char path[] = "/tmp/peet-test.XXXXXX";
    struct peet_trace *t = trace_of_uses(path);
    uint64_t random = 1;

    for (unsigned levels = 1; t && levels <= 2; levels++)
        for (unsigned ways = 1; ways <= 8; ways *= 8) {
            struct machine_config c = make_recent(levels, ways, &random);
            for (unsigned i = 0; i < 4; i++)
                compare(t, &c, OFTEN[i], 0, are_same);
        }
    peet_trace_free(t);
}

/* ---- memory that is executable ---- */

static unsigned mappings_named(const struct mappings *m, const char *name, uint32_t protection)
{
    unsigned n = 0;

    for (size_t i = 0; i < m->count; i++)
        n += strstr(m->at[i].name, name) && m->at[i].protection == protection;
    return n;
}

static const struct source_kind *looked_behind;
static struct mappings seen;

/* The words of a source; what is mapped is looked at each time, after code was made for the words of before. */
static int look_words(struct source *s, uint32_t context, uint64_t reply, struct source_words *ret,
                      struct peet_err *err)
{
    mappings_release(&seen);
    CHECK_EQ(mappings_read(getpid(), &seen, err), 0);
    return looked_behind->words(s, context, reply, ret, err);
}

/* Protection is 1 for executable, 2 for writable, 4 for readable. */
static void generated_code_is_written_at_one_address_and_executed_at_another(void)
{
    char path[] = "/tmp/peet-test.XXXXXX";
    struct peet_trace *t = trace_of_uses(path);
    uint64_t random = 1;
    struct machine_config c = make_recent(1, 2, &random);
    struct source *source = NULL;
    struct profiler *p = NULL;
    struct peet_err err;

    if (!t || !CHECK_EQ(source_open_trace(t, false, &source, &err), 0))
        return;
    struct source_kind kind = *source->kind;
    looked_behind = source->kind;
    kind.words = look_words;
    source->kind = &kind;
    if (CHECK_EQ(profiler_new(&c, source, &p, &err), 0)) {
        profiler_set_debug(p, &(struct profiler_debug){ .jit_threshold = 1 });
        CHECK_EQ(profiler_run(p, NULL, NULL, &err), 0);
    }
    for (size_t i = 0; i < seen.count; i++)
        if (!CHECK((seen.at[i].protection & 3) != 3))
            printf("# %" PRIx64 " %s\n", seen.at[i].start, seen.at[i].name);
    CHECK_EQ(mappings_named(&seen, CODE_MEMORY_NAME, 5), 1);
    CHECK_EQ(mappings_named(&seen, CODE_MEMORY_NAME, 6), 1);
    mappings_release(&seen);
    profiler_free(p);
    source_free(source);
    peet_trace_free(t);
}

int main(void)
{
    RUN(what_is_counted_is_what_is_told);
    RUN(threads_that_share_the_processor_refer_as_often);
    RUN(samples_are_the_same_with_machine_code);
    RUN(lines_that_are_used_again_stay_recent);
    RUN(samples_of_many_misses_are_the_same);
#ifdef __x86_64__
    RUN(generated_code_is_written_at_one_address_and_executed_at_another);
#endif
    return check_done();
}
