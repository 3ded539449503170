/* SPDX-License-Identifier: MIT */
/* All is done with sums: what a register holds, as a sum of multiples of what the registers held when the trip began, and of
 * words of the stack that nothing changes meanwhile. */
#include "capture/x86/affine.h"

#include <string.h>

enum { MAX_INSNS = 256, STACK_WORDS = 8, SYMBOLS = X86_GPRS + STACK_WORDS };

struct sum {
    uint64_t times[SYMBOLS], add;
    bool known, low; /* all of it; its lower 32 bits */
};

struct search {
    const struct x86_node *row[MAX_INSNS]; /* the block's instructions */
    unsigned insns;
    uint64_t private_bytes;
    bool looks_at_memory;      /* the branch at the end does */
    int64_t word[STACK_WORDS]; /* what the symbols stand for: words at this distance from %rsp */
    unsigned words;
    struct sum end[X86_GPRS];           /* behind the last instruction */
    struct sum at[X86_EXITS][X86_GPRS]; /* where the loop may be left */
    struct x86_growth growth[SYMBOLS];  /* of what was there when the trip began */
    struct x86_growth low[X86_GPRS];    /* of the lower 32 bits */
    struct x86_affine *ret;
};

/* ---- sums ---- */

static void begin(struct sum *now)
{
    for (unsigned i = 0; i < X86_GPRS; i++) {
        now[i] = (struct sum){ .known = true, .low = true };
        now[i].times[i] = 1;
    }
}

static void add_to(struct sum *to, const struct sum *more, uint64_t times)
{
    for (unsigned i = 0; i < SYMBOLS; i++)
        to->times[i] += more->times[i] * times;
    to->add += more->add * times;
    to->known &= more->known;
    to->low &= more->low;
}

static struct sum moved(const struct sum *now, const struct x86_move *m)
{
    struct sum s = { .add = (uint64_t)m->add, .known = true, .low = true };
    uint64_t times = (uint64_t)1 << m->shift;

    if (m->from != X86_NONE)
        add_to(&s, &now[m->from], 1);
    if (m->other != X86_NONE)
        add_to(&s, &now[m->other], m->minus ? -times : times);
    s.known &= !m->narrow;
    return s;
}

/* The symbol of a word on the stack that an instruction loads, or SYMBOLS. */
static unsigned stack_word(struct search *s, const struct x86_insn *in)
{
    const struct x86_memory *m = &in->memory[0];

    if (in->loaded == X86_NONE || m->disp < 0 || (uint64_t)m->disp + 8 > s->private_bytes || m->base != X86_RSP
        || m->index != X86_NONE || m->form != X86_PLAIN || m->segment != X86_FLAT || m->narrow)
        return SYMBOLS;
    for (unsigned i = 0; i < s->insns; i++)
        for (unsigned k = 0; k < s->row[i]->insn->memories; k++) {
            const struct x86_memory *other = &s->row[i]->insn->memory[k];
            bool apart = other->disp >= m->disp + 8 || other->disp + (int64_t)other->size <= m->disp;
            if (other->kind != PEET_LOAD && (other->base == X86_RSP || other->index == X86_RSP)
                && !(apart && other->index == X86_NONE && other->form == X86_PLAIN))
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

static void step(struct search *s, struct sum *now, const struct x86_insn *in)
{
    struct sum made[X86_MAX_MOVES];
    unsigned word = stack_word(s, in);

    for (unsigned i = 0; i < in->moves; i++)
        made[i] = moved(now, &in->move[i]);
    for (unsigned i = 0; i < X86_GPRS; i++)
        if (in->changes >> i & 1)
            now[i] = (struct sum){ 0 };
    for (unsigned i = 0; i < in->moves; i++)
        now[in->move[i].to] = made[i];
    if (word < SYMBOLS) {
        now[in->loaded] = (struct sum){ .known = true, .low = true };
        now[in->loaded].times[word] = 1;
    }
}

/* ---- growth ---- */

/* By what a register has grown at the end, if nothing but registers that stay as they are has been added to it. */
static struct x86_growth grown(const struct search *s, unsigned reg, bool low)
{
    const struct sum *e = &s->end[reg];
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

static bool stays(const struct x86_growth *g)
{
    return g->known && g->step == 0 && g->times == 0;
}

static void find_growth(struct search *s)
{
    for (unsigned i = 0; i < SYMBOLS; i++)
        s->growth[i] = i < X86_GPRS ? grown(s, i, false) : (struct x86_growth){ .reg = X86_NONE, .known = true };
    for (unsigned i = 0; i < X86_GPRS; i++) {
        s->low[i] = grown(s, i, true);
        if (s->growth[i].times && !stays(&s->growth[s->growth[i].reg]))
            s->growth[i].known = false;
    }
}

/* What a sum grows by from trip to trip. */
static struct x86_growth growth_of(const struct search *s, const struct sum *x, bool low)
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

/* The value of a register when the loop begins, times a number; false: there is no room. */
static bool add_register(struct search *s, uint8_t reg, uint64_t times, uint8_t *ret)
{
    struct x86_affine *a = s->ret;

    for (unsigned i = a->slots; i < a->values; i++)
        if (a->value[i].reg == reg && a->value[i].times == times) {
            *ret = (uint8_t)i;
            return true;
        }
    if (a->values + 1 >= PEET_SLOTS) /* the trip count needs one, too */
        return false;
    a->value[a->values] = (struct x86_affine_value){ .reg = reg, .times = times };
    *ret = (uint8_t)a->values++;
    return true;
}

static bool set_growth(struct search *s, struct x86_affine_value *v, const struct x86_growth *g)
{
    uint8_t plus = 0;

    if (!g->known || (g->times && !add_register(s, g->reg, g->times, &plus)))
        return false;
    v->step = (int64_t)g->step;
    v->plus = g->times ? (uint8_t)(plus + 1) : 0;
    return true;
}

static struct sum filled(const struct search *s, const struct sum *now, unsigned insn, const struct x86_fill *f)
{
    const struct x86_memory *m = &s->row[insn]->insn->memory[f->memory];
    struct sum x = { .known = true, .low = true };

    if (f->kind == X86_FILL_REGISTER)
        return now[f->which];
    if (f->kind != X86_FILL_ADDRESS || m->form != X86_PLAIN || m->narrow || m->segment == X86_GS)
        return (struct sum){ 0 };
    if (m->base != X86_NONE)
        add_to(&x, &now[m->base], 1);
    if (m->index != X86_NONE)
        add_to(&x, &now[m->index], (uint64_t)1 << m->scale);
    return x;
}

/* The register of a sum of one and a constant, or X86_NONE. */
static uint8_t register_of(const struct sum *x, bool low)
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

static void set_beginning(struct x86_affine_value *v, const struct sum *x)
{
    v->reg = register_of(x, false);
    v->times = 1;
    v->add = (int64_t)x->add;
}

static bool add_slots(struct search *s)
{
    struct sum now[X86_GPRS];
    unsigned slot = 0;

    begin(now);
    for (unsigned i = 0; i < s->insns; i++) {
        const struct x86_node *n = s->row[i];
        for (unsigned k = 0; k < n->own_slots; k++) {
            struct sum x = filled(s, now, i, &n->fill[k]);
            struct x86_growth g = growth_of(s, &x, false);
            set_beginning(&s->ret->value[slot], &x);
            if (!set_growth(s, &s->ret->value[slot++], &g))
                return false;
        }
        step(s, now, n->insn);
    }
    return true;
}

/* ---- what ends it ---- */

/* Whether the registers that an instruction reads are known, and one of them counts. */
static bool looks_at_counter(const struct search *s, const struct sum *now, const struct x86_insn *in)
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

static bool adds_exit(struct search *s, unsigned depth, const struct sum *now)
{
    if (depth == s->insns) /* this one is there anyway */
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

/* All branches have to look at something that counts. */
static bool counts_to_its_end(struct search *s)
{
    struct sum now[X86_GPRS];
    bool counts = false, at_memory = false, has_branch = false;

    begin(now);
    for (unsigned i = 0; i < s->insns; i++) {
        const struct x86_insn *in = s->row[i]->insn;
        if (in->insn.class == PEET_CL_branch) {
            if (!counts || in->changes || in->reads || !adds_exit(s, i + 1, now))
                return false;
            has_branch = true;
            s->looks_at_memory |= at_memory;
        }
        if (in->sets_flags) {
            counts = looks_at_counter(s, now, in);
            at_memory = in->memories > 0;
        }
        step(s, now, in);
    }
    return has_branch;
}

/* Registers wrap around, and compilers let them: trips is the least number with trips * by = way, in so many bits. An odd
 * number has an inverse there, which every step of Newton's knows twice as many bits of. */
struct peet_trips x86_affine_trips(uint64_t by, bool narrow)
{
    unsigned shift = (unsigned)__builtin_ctzll(by), bits = (narrow ? 32 : 64) - shift;
    uint64_t odd = by >> shift, inverse = odd;

    for (int i = 0; i < 5; i++)
        inverse *= 2 - odd * inverse;
    return (struct peet_trips){ .inverse = inverse,
                                .mask = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1,
                                .shift = (uint8_t)shift };
}

/* Whether a register tells how often wherever the loop is left. */
static bool tells_everywhere(struct search *s, uint8_t reg, bool low)
{
    for (unsigned i = 0; i < s->ret->exits; i++) {
        if (register_of(&s->at[i][reg], low) != reg)
            return false;
        s->ret->exit[i].delta = s->at[i][reg].add;
    }
    return true;
}

/* The register whose value at the end tells how often. One that may grow by 0 does only if the loop then ends at once. */
static bool choose_counter(struct search *s)
{
    struct x86_affine *a = s->ret;

    for (unsigned way = 0; way < 3; way++) /* by a constant, by a register, by a constant in 32 bits */
        for (uint8_t r = 0; r < X86_GPRS; r++) {
            const struct x86_growth *g = way == 2 ? &s->low[r] : &s->growth[r];
            bool counts = way == 1 ? g->times != 0 && !s->looks_at_memory : g->step != 0 && g->times == 0;
            if (!g->known || !counts || !tells_everywhere(s, r, way == 2) || !add_register(s, r, 1, &a->counted))
                continue;
            a->counter = r;
            a->narrow = way == 2;
            if (g->times == 0)
                a->trips = x86_affine_trips(g->step, a->narrow);
            return set_growth(s, &a->value[a->counted], g);
        }
    return false;
}

static bool is_simple(const struct x86_insn *in)
{
    uint8_t class = in->insn.class;

    return !in->repeats && !(in->insn.flags & PEET_FL_ATOMIC) && class != PEET_CL_pause
           && class != PEET_CL_jump_indirect && !(in->changes >> X86_RSP & 1);
}

bool x86_affine_find(const struct x86_node *n, uint64_t private_bytes, struct x86_affine *ret)
{
    struct search s = { .insns = n->depth, .private_bytes = private_bytes, .ret = ret };

    if (n->depth > MAX_INSNS || n->slots + 1 >= PEET_SLOTS)
        return false;
    *ret = (struct x86_affine){ .slots = n->slots, .values = n->slots };
    for (; n; n = n->parent) {
        s.row[n->depth - 1] = n;
        if (!is_simple(n->insn))
            return false;
    }
    if (s.row[0]->variant != X86_STACK_CARRIED)
        return false;
    begin(s.end);
    for (unsigned i = 0; i < s.insns; i++)
        step(&s, s.end, s.row[i]->insn);
    find_growth(&s);
    memcpy(ret->growth, s.growth, sizeof ret->growth);
    return counts_to_its_end(&s) && add_slots(&s) && choose_counter(&s);
}
