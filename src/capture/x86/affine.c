/* SPDX-License-Identifier: MIT */
/* Finds affine loops by symbolic execution of one iteration. The value of a register is a linear sum of the registers'
 * values at the beginning of the iteration and of stack words that no instruction of the loop stores. */
#include "capture/x86/affine.h"

#include <string.h>

enum { MAX_INSNS = 256, STACK_WORDS = 8, SYMBOLS = X86_GPRS + STACK_WORDS };

/* A value as a sum of symbols: registers and words of the stack at the beginning of an iteration. */
struct linear_sum {
    uint64_t times[SYMBOLS], add; /* factor of each symbol; constant */
    bool known, low;              /* known: all 64 bits; low: the lower 32 bits */
};

/* The analysis of a loop. */
struct affine_search {
    const struct x86_node *node[MAX_INSNS]; /* of the loop's instructions, in order */
    unsigned insns;                         /* elements of `node` in use */
    uint64_t private_bytes;                 /* of the stack, from %rsp up, to which no pointer leads */
    bool branch_reads_memory;               /* the branch at the end depends on a memory operand */
    int64_t word[STACK_WORDS];       /* offsets from %rsp of the words for which the symbols from X86_GPRS on stand */
    unsigned words;                  /* elements of `word` in use */
    struct linear_sum end[X86_GPRS]; /* after the last instruction */
    struct linear_sum at[X86_EXITS][X86_GPRS]; /* at each exit */
    struct x86_growth growth[SYMBOLS];         /* of the symbols, per iteration */
    struct x86_growth low[X86_GPRS];           /* of the lower 32 bits */
    struct x86_affine *ret;
};

/* ---- sums ---- */

static void begin_sums(struct linear_sum *now)
{
    for (unsigned i = 0; i < X86_GPRS; i++) {
        now[i] = (struct linear_sum){ .known = true, .low = true };
        now[i].times[i] = 1;
    }
}

static void add_to(struct linear_sum *to, const struct linear_sum *more, uint64_t times)
{
    for (unsigned i = 0; i < SYMBOLS; i++)
        to->times[i] += more->times[i] * times;
    to->add += more->add * times;
    to->known &= more->known;
    to->low &= more->low;
}

static struct linear_sum sum_after_move(const struct linear_sum *now, const struct x86_move *m)
{
    struct linear_sum s = { .add = (uint64_t)m->add, .known = true, .low = true };
    uint64_t times = (uint64_t)1 << m->shift;

    if (m->from != X86_NONE)
        add_to(&s, &now[m->from], 1);
    if (m->other != X86_NONE)
        add_to(&s, &now[m->other], m->minus ? -times : times);
    s.known &= !m->narrow;
    return s;
}

/* The symbol of the stack word that an instruction loads, or SYMBOLS. */
static unsigned stack_word(struct affine_search *s, const struct x86_insn *in)
{
    const struct x86_memory *m = &in->memory[0];

    if (in->load_reg == X86_NONE || m->disp < 0 || (uint64_t)m->disp + 8 > s->private_bytes || m->base != X86_RSP
        || m->index != X86_NONE || m->form != X86_PLAIN || m->segment != X86_FLAT || m->narrow)
        return SYMBOLS;
    for (unsigned i = 0; i < s->insns; i++)
        for (unsigned k = 0; k < s->node[i]->insn->memories; k++) {
            const struct x86_memory *other = &s->node[i]->insn->memory[k];
            bool is_disjoint = other->disp >= m->disp + 8 || other->disp + (int64_t)other->size <= m->disp;
            if (other->kind != PEET_LOAD && (other->base == X86_RSP || other->index == X86_RSP)
                && !(is_disjoint && other->index == X86_NONE && other->form == X86_PLAIN))
                return SYMBOLS;
        }
    for (unsigned i = 0; i < s->words; i++)
        if (s->word[i] == m->disp)
            return X86_GPRS + i;
    if (s->words == STACK_WORDS)
        return SYMBOLS;
    s->word[s->words] = m->disp;
    return X86_GPRS + s->words++;
}

static void sums_step(struct affine_search *s, struct linear_sum *now, const struct x86_insn *in)
{
    struct linear_sum made[X86_MAX_MOVES];
    unsigned word = stack_word(s, in);

    for (unsigned i = 0; i < in->moves; i++)
        made[i] = sum_after_move(now, &in->move[i]);
    for (unsigned i = 0; i < X86_GPRS; i++)
        if (in->changes >> i & 1)
            now[i] = (struct linear_sum){ 0 };
    for (unsigned i = 0; i < in->moves; i++)
        now[in->move[i].to] = made[i];
    if (word < SYMBOLS) {
        now[in->load_reg] = (struct linear_sum){ .known = true, .low = true };
        now[in->load_reg].times[word] = 1;
    }
}

/* ---- growth ---- */

/* The growth of a register in an iteration, if only invariant registers are added to it. */
static struct x86_growth register_growth(const struct affine_search *s, unsigned reg, bool low)
{
    const struct linear_sum *e = &s->end[reg];
    struct x86_growth g = { .step = e->add, .reg = X86_NONE, .known = low ? e->low : e->known };

    for (uint8_t i = 0; i < SYMBOLS; i++) {
        uint64_t times = e->times[i] - (i == reg);
        if (times == 0)
            continue;
        g.known &= g.reg == X86_NONE && i < X86_GPRS && i != reg && !low;
        g.reg = i;
        g.times = times;
    }
    return g;
}

static bool is_invariant(const struct x86_growth *g)
{
    return g->known && g->step == 0 && g->times == 0;
}

static void find_growth(struct affine_search *s)
{
    for (unsigned i = 0; i < SYMBOLS; i++)
        s->growth[i] =
            i < X86_GPRS ? register_growth(s, i, false) : (struct x86_growth){ .reg = X86_NONE, .known = true };
    for (unsigned i = 0; i < X86_GPRS; i++) {
        s->low[i] = register_growth(s, i, true);
        if (s->growth[i].times && !is_invariant(&s->growth[s->growth[i].reg]))
            s->growth[i].known = false;
    }
}

/* The growth of a sum from iteration to iteration. */
static struct x86_growth growth_of(const struct affine_search *s, const struct linear_sum *x, bool low)
{
    struct x86_growth g = { .reg = X86_NONE, .known = low ? x->low : x->known };

    for (unsigned i = 0; i < SYMBOLS; i++) {
        const struct x86_growth *part = low && i < X86_GPRS && !s->growth[i].known ? &s->low[i] : &s->growth[i];
        if (x->times[i] == 0)
            continue;
        g.known &= part->known;
        g.step += x->times[i] * part->step;
        if (part->times == 0)
            continue;
        g.known &= g.times == 0 || g.reg == part->reg;
        g.reg = part->reg;
        g.times += x->times[i] * part->times;
    }
    return g;
}

/* ---- values ---- */

/* Adds a register's initial value, times a factor, to the values; false: there is no room. */
static bool add_register(struct affine_search *s, uint8_t reg, uint64_t times, uint8_t *ret)
{
    struct x86_affine *a = s->ret;

    for (unsigned i = a->slots; i < a->values; i++)
        if (a->value[i].reg == reg && a->value[i].times == times) {
            *ret = (uint8_t)i;
            return true;
        }
    if (a->values + 1 >= PEET_SLOTS) /* the induction register's final value needs a word, too */
        return false;
    a->value[a->values] = (struct x86_affine_value){ .reg = reg, .times = times };
    *ret = (uint8_t)a->values++;
    return true;
}

static bool set_growth(struct affine_search *s, struct x86_affine_value *v, const struct x86_growth *g)
{
    uint8_t plus = 0;

    if (!g->known || (g->times && !add_register(s, g->reg, g->times, &plus)))
        return false;
    v->step = (int64_t)g->step;
    v->plus = g->times ? (uint8_t)(plus + 1) : 0;
    return true;
}

static struct linear_sum slot_sum(const struct affine_search *s, const struct linear_sum *now, unsigned insn,
                                  const struct x86_fill *f)
{
    const struct x86_memory *m = &s->node[insn]->insn->memory[f->memory];
    struct linear_sum x = { .known = true, .low = true };

    if (f->kind == X86_FILL_REGISTER)
        return now[f->which];
    if (f->kind != X86_FILL_ADDRESS || m->form != X86_PLAIN || m->narrow || m->segment == X86_GS)
        return (struct linear_sum){ 0 };
    if (m->base != X86_NONE)
        add_to(&x, &now[m->base], 1);
    if (m->index != X86_NONE)
        add_to(&x, &now[m->index], (uint64_t)1 << m->scale);
    return x;
}

/* The register of a sum of one register and a constant, or X86_NONE. */
static uint8_t register_of(const struct linear_sum *x, bool low)
{
    uint8_t reg = X86_NONE;
    unsigned parts = 0;

    for (uint8_t i = 0; i < SYMBOLS; i++)
        if (x->times[i]) {
            reg = i < X86_GPRS && x->times[i] == 1 ? i : X86_NONE;
            parts++;
        }
    return parts == 1 && (low ? x->low : x->known) ? reg : X86_NONE;
}

static void set_beginning(struct x86_affine_value *v, const struct linear_sum *x)
{
    v->reg = register_of(x, false);
    v->times = 1;
    v->add = (int64_t)x->add;
}

static bool add_slots(struct affine_search *s)
{
    struct linear_sum now[X86_GPRS];
    unsigned slot = 0;

    begin_sums(now);
    for (unsigned i = 0; i < s->insns; i++) {
        const struct x86_node *n = s->node[i];
        for (unsigned k = 0; k < n->own_slots; k++) {
            struct linear_sum x = slot_sum(s, now, i, &n->fill[k]);
            struct x86_growth g = growth_of(s, &x, false);
            set_beginning(&s->ret->value[slot], &x);
            if (!set_growth(s, &s->ret->value[slot++], &g))
                return false;
        }
        sums_step(s, now, n->insn);
    }
    return true;
}

/* ---- exits and trip count ---- */

/* Whether the registers that an instruction reads are known, and one of them is an induction register. */
static bool reads_counter(const struct affine_search *s, const struct linear_sum *now, const struct x86_insn *in)
{
    bool counts = false;

    for (unsigned r = 0; r < X86_GPRS; r++) {
        if (!(in->reads >> r & 1))
            continue;
        struct x86_growth g = growth_of(s, &now[r], true);
        if (!g.known)
            return false;
        counts |= g.step != 0 || g.times != 0;
    }
    return counts;
}

static bool add_loop_exit(struct affine_search *s, unsigned depth, const struct linear_sum *now)
{
    if (depth == s->insns) /* the exit after the last instruction is implied */
        return true;
    if (s->ret->exits == X86_EXITS)
        return false;
    struct x86_affine_exit *e = &s->ret->exit[s->ret->exits];
    e->depth = depth;
    for (unsigned i = 0; i < X86_GPRS; i++)
        e->after[i] = (struct x86_affine_register){ (int64_t)now[i].add, register_of(&now[i], false) };
    memcpy(s->at[s->ret->exits++], now, X86_GPRS * sizeof *now);
    return true;
}

/* Whether each branch depends on an induction register. */
static bool all_branches_count(struct affine_search *s)
{
    struct linear_sum now[X86_GPRS];
    bool counts = false, at_memory = false, has_branch = false;

    begin_sums(now);
    for (unsigned i = 0; i < s->insns; i++) {
        const struct x86_insn *in = s->node[i]->insn;
        if (in->insn.class == PEET_CL_branch) {
            if (!counts || in->changes || in->reads || !add_loop_exit(s, i + 1, now))
                return false;
            has_branch = true;
            s->branch_reads_memory |= at_memory;
        }
        if (in->sets_flags) {
            counts = reads_counter(s, now, in);
            at_memory = in->memories > 0;
        }
        sums_step(s, now, in);
    }
    return has_branch;
}

/* Registers wrap around, and compilers rely on it: the trip count is the least number with trips * by = distance,
 * modulo 2^bits. An odd number has an inverse modulo 2^bits; each step of Newton's method doubles its valid bits. */
struct peet_trips x86_affine_trips(uint64_t by, bool narrow)
{
    unsigned shift = (unsigned)__builtin_ctzll(by), bits = (narrow ? 32 : 64) - shift;
    uint64_t factor = by >> shift, inverse = factor;

    for (int i = 0; i < 5; i++)
        inverse *= 2 - factor * inverse;
    return (struct peet_trips){ .inverse = inverse,
                                .mask = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1,
                                .shift = (uint8_t)shift };
}

/* Whether the register's value determines the trip count at each exit. */
static bool counts_at_all_exits(struct affine_search *s, uint8_t reg, bool low)
{
    for (unsigned i = 0; i < s->ret->exits; i++) {
        if (register_of(&s->at[i][reg], low) != reg)
            return false;
        s->ret->exit[i].delta = s->at[i][reg].add;
    }
    return true;
}

/* Chooses the register whose final value determines the trip count. A register that may grow by 0 is chosen only if the
 * loop then ends after one iteration. */
static bool choose_counter(struct affine_search *s)
{
    struct x86_affine *a = s->ret;

    for (unsigned kind = 0; kind < 3; kind++) /* growth by a constant, by a register, by a constant in 32 bits */
        for (uint8_t r = 0; r < X86_GPRS; r++) {
            const struct x86_growth *g = kind == 2 ? &s->low[r] : &s->growth[r];
            bool counts = kind == 1 ? g->times != 0 && !s->branch_reads_memory : g->step != 0 && g->times == 0;
            if (!g->known || !counts || !counts_at_all_exits(s, r, kind == 2) || !add_register(s, r, 1, &a->counted))
                continue;
            a->counter = r;
            a->narrow = kind == 2;
            if (g->times == 0)
                a->trips = x86_affine_trips(g->step, a->narrow);
            return set_growth(s, &a->value[a->counted], g);
        }
    return false;
}

static bool is_simple_insn(const struct x86_insn *in)
{
    uint8_t class = in->insn.class;

    return !in->is_repeated && !(in->insn.flags & PEET_FL_ATOMIC) && class != PEET_CL_pause
           && class != PEET_CL_jump_indirect && !(in->changes >> X86_RSP & 1);
}

bool x86_affine_find(const struct x86_node *n, uint64_t private_bytes, struct x86_affine *ret)
{
    struct affine_search s = { .insns = n->depth, .private_bytes = private_bytes, .ret = ret };

    if (n->depth > MAX_INSNS || n->slots + 1 >= PEET_SLOTS)
        return false;
    *ret = (struct x86_affine){ .slots = n->slots, .values = n->slots };
    for (; n; n = n->parent) {
        s.node[n->depth - 1] = n;
        if (!is_simple_insn(n->insn))
            return false;
    }
    if (s.node[0]->variant != X86_SP_IN_REGISTER)
        return false;
    begin_sums(s.end);
    for (unsigned i = 0; i < s.insns; i++)
        sums_step(&s, s.end, s.node[i]->insn);
    find_growth(&s);
    memcpy(ret->growth, s.growth, sizeof ret->growth);
    return all_branches_count(&s) && add_slots(&s) && choose_counter(&s);
}
