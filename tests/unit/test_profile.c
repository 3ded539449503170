/* SPDX-License-Identifier: MIT */
/* The profile of a random program against a naive one: for each instruction and data object, references, misses, causes, and
 * evicting objects; one processor, one cache. Some references touch several lines, each with a separate outcome. The naive cache is a list of lines for each set; the naive
 * shadow tags are one list. */
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "random.h"
#include "study/profile/profile.h"
#include "study/profile/profiler.h"
#include "sim/memory/shadow_tags.h"

enum { BLOCKS = 5, INSNS = 4, OBJECTS = 6, SIZE = 2000, RECORDS = 400, BATCHES = 60, MOST = 256, MACHINES = 40 };
#define HOME UINT64_C(0x100000)

/* ---- a program ---- */

struct made {
    struct source source;
    struct source_thread context;
    uint64_t random;
    unsigned batch;
    uint32_t block[BLOCKS], first_insn[BLOCKS], name[OBJECTS];
    struct peet_record record[RECORDS + INSNS + OBJECTS + 1];
    struct peet_event event[OBJECTS];
    size_t count;
};

/* Objects are contiguous, and do not begin at lines. */
static uint64_t start_of(uint32_t object)
{
    return HOME + (uint64_t)object * (SIZE + 24) + 8;
}

static int next(struct source *s, uint32_t context, uint64_t reply, struct peet_batch *ret, struct peet_err *err)
{
    struct made *m = (struct made *)(void *)s;

    (void)context;
    (void)reply;
    (void)err;
    if (m->batch == BATCHES)
        return 0;
    m->count = 0;
    for (uint32_t i = 0; m->batch == 0 && i < OBJECTS; i++) {
        m->event[i] = (struct peet_event){ PEET_EV_name_data, 3, 0, { m->name[i], start_of(i), SIZE } };
        m->record[m->count++] = (struct peet_record){ .id = i, .kind = PEET_EVENT };
    }
    while (m->count < RECORDS) {
        unsigned b = (unsigned)draw(&m->random, BLOCKS);
        m->record[m->count++] = (struct peet_record){
            .addr = 0x1000 + 0x100 * (uint64_t)b, .id = m->block[b], .size = INSNS, .kind = PEET_BLOCK
        };
        for (unsigned i = 0; i < INSNS; i++) {
            uint32_t object = (uint32_t)draw(&m->random, draw(&m->random, 2) ? OBJECTS : 2);
            uint64_t offset = draw(&m->random, draw(&m->random, 3) ? 200 : SIZE);
            uint64_t most = draw(&m->random, 3) ? 8 : 150; /* bytes of a reference, which may go beyond its object */
            m->record[m->count++] = (struct peet_record){ .addr = start_of(object) + offset,
                                                          .id = m->first_insn[b] + i,
                                                          .size = (1 + (unsigned)draw(&m->random, most)) & 0xffffff,
                                                          .kind = draw(&m->random, 4) ? PEET_LOAD : PEET_STORE };
        }
    }
    m->batch++;
    *ret = (struct peet_batch){ .count = m->count, .records = m->record, .events = m->event };
    return 1;
}

static void free_nothing(struct source *s)
{
    (void)s;
}

static const struct source_kind MADE = { .next = next, .free = free_nothing };

static void define(struct made *m, struct peet_writer *w)
{
    struct peet_err err;

    for (unsigned i = 0; i < BLOCKS; i++) {
        struct peet_insn insn[INSNS];
        for (unsigned k = 0; k < INSNS; k++)
            insn[k] = (struct peet_insn){ .addr = 0x1000 + 0x100 * (uint64_t)i + 4 * (uint64_t)k, .length = 4 };
        struct peet_block b = { .insns = INSNS, .insn = insn };
        CHECK_EQ(peet_writer_block(w, &b, &m->block[i], &err), 0);
        m->first_insn[i] = peet_trace_block(peet_writer_schema(w), m->block[i])->first_insn;
    }
    for (uint32_t i = 0; i < OBJECTS; i++) {
        char name[] = "object A";
        name[7] = (char)('A' + i);
        CHECK_EQ(peet_writer_string(w, name, &m->name[i], &err), 0);
    }
    m->source = (struct source){
        .kind = &MADE, .trace = peet_writer_schema(w), .thread = &m->context, .threads = 1, .max_threads = 1
    };
}

/* ---- the naive one ---- */

struct list { /* of lines, the newest first */
    uint64_t line[MOST + 1];
    unsigned count;
};

/* Returns whether the line was there, and makes it the first. A line that was evicted is after the last one. */
static bool use(struct list *l, uint64_t line, unsigned most, uint64_t *gone)
{
    unsigned i = 0;

    while (i < l->count && l->line[i] != line)
        i++;
    bool was_there = i < l->count;
    *gone = 0;
    if (!was_there && l->count == most)
        *gone = l->line[--i];
    l->count += !was_there && l->count < most;
    for (; i > 0; i--)
        l->line[i] = l->line[i - 1];
    l->line[0] = line;
    return was_there;
}

struct naive {
    struct list set[MOST], all;
    uint64_t references[BLOCKS * INSNS][OBJECTS], misses[BLOCKS * INSNS][OBJECTS],
        causes[BLOCKS * INSNS][OBJECTS][CAUSES];
    uint64_t evictions[OBJECTS][OBJECTS]; /* misses of an object, by the object that evicted its lines */
    struct {
        uint64_t line;
        bool was_here;
        unsigned by;
    } line[OBJECTS * SIZE];
};

/* A reference at one of its lines. */
static void refer(struct naive *n, const struct machine_config *c, unsigned insn, unsigned object, uint64_t line)
{
    uint64_t gone, unused, base = HOME / c->level[0].line;
    unsigned lines = (unsigned)(c->level[0].bytes / c->level[0].line), sets = lines / c->level[0].ways;
    bool hit = use(&n->set[line % sets], line, c->level[0].ways, &gone), recent = use(&n->all, line, lines, &unused);

    if (gone)
        n->line[gone - base].by = object;
    if (hit)
        return;
    n->misses[insn][object]++;
    n->causes[insn][object][!n->line[line - base].was_here ? CAUSE_cold : recent ? CAUSE_conflict : CAUSE_capacity]++;
    if (n->line[line - base].was_here)
        n->evictions[object][n->line[line - base].by]++;
    n->line[line - base].was_here = true;
}

static void play_naively(struct made *m, const struct machine_config *c, struct naive *n)
{
    struct peet_batch b;

    while (next(&m->source, 0, 0, &b, NULL) > 0)
        for (size_t i = 0; i < b.count; i++)
            if (peet_is_reference(&b.records[i])) {
                const struct peet_record *r = &b.records[i];
                unsigned object = 0;
                while (r->addr >= start_of(object + 1))
                    object++;
                unsigned insn = r->id - m->first_insn[0];
                uint32_t length = c->level[0].line;
                n->references[insn][object]++;
                for (uint64_t line = r->addr / length; line <= (r->addr + r->size - 1) / length; line++)
                    refer(n, c, insn, object, line);
            }
}

/* ---- both ---- */

static int object_of(const struct profile *p, uint32_t number)
{
    const char *name = objects_info(p->objects, number)->name;

    return !strncmp(name, "object ", 7) ? name[7] - 'A' : -1;
}

static void compare(const struct profile *p, const struct made *m, const struct naive *n)
{
    uint64_t references = 0, evictions[OBJECTS][OBJECTS] = { { 0 } };

    for (size_t i = 0; i < p->accesses; i++) {
        const struct access_counts *c = &p->access[i];
        int object = object_of(p, c->object);
        unsigned insn = c->place - m->first_insn[0];
        if (!CHECK(object >= 0 && object < OBJECTS))
            return;
        CHECK_EQ(c->references, n->references[insn][object]);
        CHECK_EQ(c->misses, n->misses[insn][object]);
        for (unsigned k = 0; k < CAUSES; k++)
            CHECK_EQ(c->cause[k], n->causes[insn][object][k]);
        references += c->references;
    }
    CHECK_EQ(references, p->references);
    for (size_t i = 0; i < p->pairs; i++)
        if (CHECK(p->pair[i].by_object != UINT32_MAX))
            evictions[object_of(p, p->pair[i].object)][object_of(p, p->pair[i].by_object)] += p->pair[i].misses;
    CHECK(!memcmp(evictions, n->evictions, sizeof evictions));
}

static void every_reference_belongs_where_a_naive_profile_puts_it(void)
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
        uint64_t random = 99 * i + 7;
        struct machine_config config;
        struct naive *n = calloc(1, sizeof *n);
        struct profiler *x = NULL;
        config_defaults(&config);
        config.cpus = 1;
        memset(config.level + 1, 0, sizeof config.level - sizeof config.level[0]);
        config.level[0].line = 32u << draw(&random, 2);
        config.level[0].ways = 1u << draw(&random, 4);
        config.level[0].bytes = (uint64_t)1024 << draw(&random, 3);
        config.level[0].replacement = &replacement_lru;
        m.context = (struct source_thread){ 1, 1, BIRTH_FIRST };
        m.batch = 0;
        m.random = i;
        play_naively(&m, &config, n);
        m.batch = 0;
        m.random = i;
        if (CHECK_EQ(profiler_new(&config, &m.source, &x, &err), 0) && CHECK_EQ(profiler_run(x, NULL, NULL, &err), 0))
            compare(profiler_profile(x), &m, n);
        profiler_free(x);
        free(n);
    }
    peet_writer_close(w, NULL);
    unlink(path);
}

/* Against the list. */
static void what_was_used_recently_is_there(void)
{
    struct shadow_tags r;
    static struct list l;
    uint64_t random = 3, gone;

    shadow_tags_init(&r, 50);
    for (unsigned i = 0; i < 200000; i++) {
        uint64_t line = draw(&random, draw(&random, 3) ? 60 : 400);
        if (draw(&random, 20) == 0) {
            shadow_tags_drop(&r, line);
            unsigned k = 0;
            while (k < l.count && l.line[k] != line)
                k++;
            if (k < l.count)
                memmove(l.line + k, l.line + k + 1, (--l.count - k) * sizeof *l.line);
            continue;
        }
        bool was_there = use(&l, line, 50, &gone);
        if (!CHECK_EQ(shadow_tags_use(&r, line), was_there))
            break;
    }
    shadow_tags_release(&r);
}

int main(void)
{
    RUN(every_reference_belongs_where_a_naive_profile_puts_it);
    RUN(what_was_used_recently_is_there);
    return check_done();
}
