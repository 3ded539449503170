/* SPDX-License-Identifier: MIT */
/* Whether the exploration of protocols can be trusted: protocols with one mistake run with real values, and those with which a
 * program would see an old word or lose a write must be found. */
#include "check.h"
#include "coherence_explore.h"

/* ---- a machine with values ---- */

/* Real versions of words instead of bits, nothing explored, nothing known of what is sound: only what programs can see counts. */
enum { VALUE_CACHES = 4, VALUE_WORDS = 3, NO_VALUE = 0 };

struct values {
    unsigned caches, words;
    unsigned state[VALUE_CACHES];
    unsigned in[VALUE_CACHES][VALUE_WORDS], memory[VALUE_WORDS];
    unsigned last[VALUE_WORDS]; /* that was written to each word */
    unsigned writes;
};

static void forget(struct values *v, unsigned cpu)
{
    for (unsigned w = 0; w < VALUE_WORDS; w++)
        v->in[cpu][w] = NO_VALUE;
}

static bool announce(struct values *v, const struct protocol *p, unsigned cpu, unsigned op, unsigned word)
{
    unsigned line[VALUE_WORDS];
    bool shared = false;

    memcpy(line, v->memory, sizeof line);
    for (unsigned i = 0; i < v->caches; i++) {
        struct snoop_cell c = p->snoop[v->state[i]][op];
        if (i == cpu || !v->state[i])
            continue;
        if (c.acts & SNOOP_SUPPLY)
            memcpy(line, v->in[i], sizeof line);
        if (c.acts & SNOOP_FLUSH)
            memcpy(v->memory, v->in[i], sizeof line);
        if (c.acts & SNOOP_UPDATE && op == BUS_UPDATE)
            v->in[i][word] = v->in[cpu][word];
        shared = shared || c.acts & SNOOP_SHARED;
        v->state[i] = c.next;
        if (!c.next)
            forget(v, i);
    }
    switch (op) {
    case BUS_READ:
    case BUS_READ_OWN: memcpy(v->in[cpu], line, sizeof line); break;
    case BUS_WRITE_BACK: memcpy(v->memory, v->in[cpu], sizeof line); break;
    default: break;
    }
    return shared;
}

/* False: the processor has got an old word. */
static bool act(struct values *v, const struct protocol *p, unsigned cpu, enum own_event event, unsigned word)
{
    struct own_cell c = p->own[v->state[cpu]][event];
    unsigned op[] = { c.op, c.then }, value = ++v->writes;
    bool shared = false, fresh = true;

    for (unsigned i = 0; i < 2 && (i == 0 || (shared && event == OWN_WRITE && c.then)); i++) {
        if (event == OWN_WRITE && (i == 1 || op[i] == BUS_UPDATE)) /* what is sent is the new word */
            v->in[cpu][word] = v->last[word] = value;
        if (op[i] != BUS_NONE)
            shared = announce(v, p, cpu, op[i], word);
        if (op[i] == BUS_UPDATE && c.acts & OWN_WRITES_MEMORY)
            v->memory[word] = v->in[cpu][word];
        if (event == OWN_WRITE && i == 0 && op[i] != BUS_UPDATE)
            v->in[cpu][word] = v->last[word] = value;
    }
    for (unsigned w = 0; event == OWN_READ && w < v->words; w++)
        fresh &= v->in[cpu][w] == v->last[w];
    v->state[cpu] = shared ? c.shared : c.alone;
    if (!v->state[cpu])
        forget(v, cpu);
    return fresh;
}

static struct values begin(unsigned caches, unsigned words)
{
    struct values v = { .caches = caches, .words = words, .writes = 1 };

    for (unsigned w = 0; w < VALUE_WORDS; w++)
        v.memory[w] = v.last[w] = v.writes;
    return v;
}

static uint64_t dice = 1;

static unsigned draw(unsigned n)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((dice >> 33) % n);
}

static bool act_somehow(struct values *v, const struct protocol *p, unsigned *ret_cpu, enum own_event *ret_event,
                        unsigned *ret_word)
{
    do {
        *ret_cpu = draw(v->caches);
        *ret_event = draw(OWN_BASE_EVENTS);
        *ret_word = draw(v->words);
    } while (*ret_event == OWN_EVICT && !v->state[*ret_cpu]);
    return act(v, p, *ret_cpu, *ret_event, *ret_word);
}

/* Whether a program can see that the protocol is wrong: by an old word, or in memory when all caches are empty. */
static bool does_harm(const struct protocol *p)
{
    for (unsigned round = 0; round < 300; round++) {
        struct values v = begin(VALUE_CACHES, VALUE_WORDS);
        unsigned cpu, word, first = draw(VALUE_CACHES);
        enum own_event event;
        for (unsigned i = 0; i < 5 + round / 4; i++)
            if (!act_somehow(&v, p, &cpu, &event, &word))
                return true;
        for (unsigned i = 0; i < VALUE_CACHES; i++)
            if (v.state[(first + i) % VALUE_CACHES])
                act(&v, p, (first + i) % VALUE_CACHES, OWN_EVICT, 0);
        if (memcmp(v.memory, v.last, sizeof v.last))
            return true;
    }
    return false;
}

/* Whether the bits of coherence.h are the truth about real values. */
static bool bits_follow_values(const struct protocol *p)
{
    bool same = true;

    for (unsigned round = 0; round < 20; round++) {
        struct values v = begin(CACHES, COHERENT_WORDS);
        struct coherent s = coherent_begin(CACHES);
        for (unsigned step = 0; step < 30; step++) {
            unsigned cpu, word;
            enum own_event event;
            bool fresh = act_somehow(&v, p, &cpu, &event, &word);
            struct coherent_did did = coherent_step(p, &s, cpu, event, word);
            same &= event != OWN_READ || fresh == (did.got == COHERENT_ALL);
            for (unsigned w = 0; w < COHERENT_WORDS; w++)
                same &= (s.memory >> w & 1) == (v.memory[w] == v.last[w]);
            for (unsigned i = 0; i < CACHES; i++)
                for (unsigned w = 0; w < COHERENT_WORDS; w++)
                    same &= s.state[i] == v.state[i] && (s.newest[i] >> w & 1) == (v.in[i][w] == v.last[w]);
        }
    }
    return same;
}

static void protocols_do_no_harm_to_real_values(void)
{
    for (size_t i = 0; protocols[i]; i++)
        if (!CHECK(!does_harm(protocols[i])) || !CHECK(bits_follow_values(protocols[i])))
            printf("# %s\n", protocols[i]->name);
}

/* ---- mistakes ---- */

struct tally {
    struct judge judge;
    struct exploration *e;
    unsigned mistakes, harmful, found, missed;
};

static void try_mistake(struct judge *j, const struct protocol *wrong)
{
    struct tally *t = (struct tally *)j;
    bool harmful = does_harm(wrong);

    explore(t->e, wrong, CACHES);
    t->mistakes++;
    t->harmful += harmful;
    t->found += t->e->complaint != NULL;
    t->missed += harmful && !t->e->complaint;
    CHECK(bits_follow_values(wrong));
}

/* The others that are not found cost a transaction or a miss, or make a signal that no cache uses. test_coherence compares all that is
 * said with the document. */
static void mistakes_that_do_harm_are_found(void)
{
    for (size_t i = 0; protocols[i]; i++) {
        const struct protocol *p = protocols[i];
        struct tally t = { .judge = { try_mistake }, .e = new_exploration(p, CACHES) };
        struct used used = t.e->used;
        make_mistakes(&t.judge, p, &used);
        printf("# %s: of %u mistakes %u do harm, of which %u are found (%u %%), and %u of the others\n", p->name,
               t.mistakes, t.harmful, t.harmful - t.missed, 100 * (t.harmful - t.missed) / t.harmful,
               t.found + t.missed - t.harmful);
        CHECK(t.mistakes > 100 && t.harmful * 3 > t.mistakes);
        CHECK_EQ(t.missed, 0);
        free(t.e);
    }
}

int main(void)
{
    RUN(protocols_do_no_harm_to_real_values);
    RUN(mistakes_that_do_harm_are_found);
    return check_done();
}
