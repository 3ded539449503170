/* SPDX-License-Identifier: MIT */
/* A slow and obvious machine whose processors speculate past barriers, with the values of words; and random programs without data races, which
 * know what each read has to return. It shares no code and no table with the simulator: what happens in each state is written down as in the
 * paper's text (Sato, Nakashima and Ohno, 1999). Codes of states are those of table 2. */
#ifndef TESTS_SLOW_SPECULATION_H
#define TESTS_SLOW_SPECULATION_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { SLOW_CPUS = 4, SLOW_LINES = 4, SLOW_WORDS = 2, SLOW_EPOCHS = 5, SLOW_OPS = 24, SLOW_LOG = SLOW_OPS };
enum { SLOW_I, SLOW_S, SLOW_M, SLOW_E, SLOW_XP, SLOW_US, SLOW_UM, SLOW_UE };
enum { SLOW_NORMAL, SLOW_RUNS, SLOW_WAITS };

struct slow_op {
    bool is_write;
    uint8_t line, word;
    uint32_t value; /* written, or expected */
};
struct slow_program {
    unsigned cpus, epochs;
    struct slow_op op[SLOW_CPUS][SLOW_EPOCHS][SLOW_OPS];
    unsigned ops[SLOW_CPUS][SLOW_EPOCHS];
    uint32_t final[SLOW_LINES][SLOW_WORDS];
};
struct slow_cache {
    uint8_t state[SLOW_LINES];
    uint32_t value[SLOW_LINES][SLOW_WORDS];
    uint64_t used[SLOW_LINES]; /* step of its last use */
};
struct slow_machine {
    unsigned cpus, sets, ways;
    bool mesi, keeps_read;
    struct slow_cache cache[SLOW_CPUS];
    uint32_t memory[SLOW_LINES][SLOW_WORDS];
    uint8_t mode[SLOW_CPUS];
    unsigned rolled_back; /* in the last step: a bit for each processor */
    uint64_t steps, from_caches, write_backs;
    const char *complaint; /* NULL: none */
};

static inline bool slow_unsafe(unsigned s)
{
    return s == SLOW_US || s == SLOW_UM || s == SLOW_UE;
}

static inline void slow_roll_back(struct slow_machine *m, unsigned p)
{
    if (m->mode[p] != SLOW_RUNS)
        m->complaint = "a processor rolls back that does not speculate";
    for (unsigned l = 0; l < SLOW_LINES; l++) {
        uint8_t *s = &m->cache[p].state[l];
        if (*s == SLOW_UM || *s == SLOW_XP)
            *s = SLOW_I;
        else if (*s == SLOW_US)
            *s = m->keeps_read ? SLOW_S : SLOW_I;
        else if (*s == SLOW_UE)
            *s = m->keeps_read ? SLOW_E : SLOW_I;
    }
    m->mode[p] = SLOW_WAITS;
    m->rolled_back |= 1u << p;
}

static inline void slow_to_memory(struct slow_machine *m, unsigned p, unsigned l)
{
    memcpy(m->memory[l], m->cache[p].value[l], sizeof m->memory[l]);
}

/* A cache has filled the line: another one of its set may have to go. */
static inline void slow_make_room(struct slow_machine *m, unsigned p, unsigned line)
{
    unsigned n = 0, victim = line;

    for (unsigned l = 0; l < SLOW_LINES; l++)
        if (l % m->sets == line % m->sets && m->cache[p].state[l] != SLOW_I) {
            n++;
            victim = l != line && (victim == line || m->cache[p].used[l] < m->cache[p].used[victim]) ? l : victim;
        }
    if (n <= m->ways)
        return;
    unsigned s = m->cache[p].state[victim];
    m->cache[p].state[victim] = SLOW_I;
    if (s == SLOW_M) {
        slow_to_memory(m, p, victim);
        m->write_backs++;
    }
    if (slow_unsafe(s))
        slow_roll_back(m, p);
}

/* Returns whether the read took place; false: the processor was rolled back. */
static inline bool slow_read(struct slow_machine *m, unsigned p, unsigned l)
{
    uint8_t *s = &m->cache[p].state[l];
    bool speculates = m->mode[p] == SLOW_RUNS, others = false, unsafe = false;

    m->cache[p].used[l] = ++m->steps;
    if (*s == SLOW_I) {
        for (unsigned q = 0; q < m->cpus; q++) {
            uint8_t *t = &m->cache[q].state[l];
            if (q == p || *t == SLOW_I)
                continue;
            others = true;
            unsafe |= *t == SLOW_UM;
            if (*t == SLOW_M) {
                slow_to_memory(m, q, l);
                m->from_caches++;
                *t = SLOW_S;
            } else if (*t == SLOW_E) {
                *t = SLOW_S;
            } else if (*t == SLOW_UE) {
                *t = SLOW_US;
            }
        }
        if (unsafe && speculates) {
            slow_roll_back(m, p);
            return false;
        }
        memcpy(m->cache[p].value[l], m->memory[l], sizeof m->memory[l]);
        if (unsafe)
            *s = SLOW_XP;
        else if (m->mesi && !others)
            *s = speculates ? SLOW_UE : SLOW_E;
        else
            *s = speculates ? SLOW_US : SLOW_S;
        slow_make_room(m, p, l);
        return !speculates || m->mode[p] == SLOW_RUNS;
    }
    if (!speculates)
        return true;
    if (*s == SLOW_XP) {
        slow_roll_back(m, p);
        return false;
    }
    if (*s == SLOW_M) {
        slow_to_memory(m, p, l);
        m->write_backs++;
        *s = m->mesi ? SLOW_UE : SLOW_US;
    } else if (*s == SLOW_S) {
        *s = SLOW_US;
    } else if (*s == SLOW_E) {
        *s = SLOW_UE;
    }
    return true;
}

static inline bool slow_write(struct slow_machine *m, unsigned p, unsigned l, unsigned word, uint32_t value)
{
    uint8_t *s = &m->cache[p].state[l];
    bool speculates = m->mode[p] == SLOW_RUNS, was_here = *s != SLOW_I;
    bool alone = *s == SLOW_M || *s == SLOW_E || *s == SLOW_UM || *s == SLOW_UE;

    m->cache[p].used[l] = ++m->steps;
    if (*s == SLOW_M && speculates) {
        slow_to_memory(m, p, l);
        m->write_backs++;
    }
    if (!was_here)
        memcpy(m->cache[p].value[l], m->memory[l], sizeof m->memory[l]);
    for (unsigned q = 0; q < m->cpus && !alone; q++) {
        uint8_t *t = &m->cache[q].state[l];
        unsigned before = *t;
        if (q == p || before == SLOW_I)
            continue;
        if (before == SLOW_M) {
            memcpy(m->cache[p].value[l], m->cache[q].value[l], sizeof m->memory[l]);
            m->from_caches++;
            if (speculates)
                slow_to_memory(m, q, l);
        }
        *t = !slow_unsafe(before) && speculates ? SLOW_XP : SLOW_I;
        if (slow_unsafe(before))
            slow_roll_back(m, q);
    }
    m->cache[p].value[l][word] = value;
    *s = speculates ? SLOW_UM : SLOW_M;
    if (!was_here)
        slow_make_room(m, p, l);
    return !speculates || m->mode[p] == SLOW_RUNS;
}

static inline void slow_arrive(struct slow_machine *m, unsigned p, bool speculates)
{
    for (unsigned l = 0; l < SLOW_LINES; l++) {
        if (slow_unsafe(m->cache[p].state[l]))
            m->complaint = "a line is unsafe at an arrival";
        if (m->cache[p].state[l] == SLOW_XP)
            m->cache[p].state[l] = SLOW_I;
    }
    m->mode[p] = speculates ? SLOW_RUNS : SLOW_WAITS;
}

static inline void slow_confirm(struct slow_machine *m)
{
    for (unsigned p = 0; p < m->cpus; p++) {
        for (unsigned l = 0; l < SLOW_LINES; l++) {
            uint8_t *s = &m->cache[p].state[l];
            *s = *s == SLOW_US ? SLOW_S : *s == SLOW_UE ? SLOW_E : *s == SLOW_UM ? SLOW_M : *s == SLOW_XP ? SLOW_I : *s;
        }
        m->mode[p] = SLOW_NORMAL;
    }
}

/* Invariants: exclusive lines are alone, beside UM only XP, memory has the committed value of UM, no unsafe line outside of speculation. */
static inline void slow_check(struct slow_machine *m)
{
    for (unsigned l = 0; l < SLOW_LINES; l++) {
        unsigned copies = 0, exclusive = 0, written = 0, expiring = 0;
        for (unsigned p = 0; p < m->cpus; p++) {
            unsigned s = m->cache[p].state[l];
            copies += s != SLOW_I;
            exclusive += s == SLOW_M || s == SLOW_E || s == SLOW_UE;
            written += s == SLOW_UM;
            expiring += s == SLOW_XP;
            if (slow_unsafe(s) && m->mode[p] != SLOW_RUNS)
                m->complaint = "a line is unsafe in a processor that does not speculate";
        }
        if ((exclusive && copies > 1) || written > 1 || (written && copies > 1 + expiring))
            m->complaint = "a line has copies that exclude each other";
    }
}

/* ---- programs ---- */

static inline uint64_t slow_draw(uint64_t *random, uint64_t n)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return (*random >> 11) % n;
}

/* In each epoch a word has one processor that may read and write it, or all may read it. */
static inline void slow_make_program(struct slow_program *prog, unsigned cpus, uint64_t *random)
{
    uint32_t now[SLOW_LINES][SLOW_WORDS] = { 0 }, before[SLOW_LINES][SLOW_WORDS], value = 1;
    int owner[SLOW_LINES][SLOW_WORDS];

    memset(prog, 0, sizeof *prog);
    prog->cpus = cpus;
    prog->epochs = SLOW_EPOCHS;
    for (unsigned e = 0; e < SLOW_EPOCHS; e++) {
        memcpy(before, now, sizeof now);
        for (unsigned l = 0; l < SLOW_LINES; l++)
            for (unsigned w = 0; w < SLOW_WORDS; w++)
                owner[l][w] = (int)slow_draw(random, cpus + 1) - 1;
        for (unsigned p = 0; p < cpus; p++)
            for (unsigned n = (unsigned)slow_draw(random, SLOW_OPS); n > 0; n--) {
                unsigned l = (unsigned)slow_draw(random, SLOW_LINES), w = (unsigned)slow_draw(random, SLOW_WORDS);
                struct slow_op *op = &prog->op[p][e][prog->ops[p][e]];
                if (owner[l][w] >= 0 && owner[l][w] != (int)p)
                    continue;
                *op = (struct slow_op){ owner[l][w] == (int)p && slow_draw(random, 2), (uint8_t)l, (uint8_t)w,
                                        now[l][w] };
                if (owner[l][w] < 0)
                    op->value = before[l][w];
                if (op->is_write)
                    op->value = now[l][w] = value++;
                prog->ops[p][e]++;
            }
    }
    memcpy(prog->final, now, sizeof now);
}

#endif
