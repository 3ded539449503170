/* SPDX-License-Identifier: MIT */
#include "capture/x86/path.h"

#include <string.h>

#include "base/err.h"
#include "format/schema/schema_builder.h"

/* ---- appending a loop ---- */

/* A loop that is being appended to a path. */
struct path_step {
    struct x86_node *from; /* the node before the loop */
    struct x86_pass *pass;
    struct x86_track before[X86_GPRS]; /* values of the registers when the loop begins */
    unsigned slots;                    /* of the path so far */
};

/* Whether other values grow by value i, so that it has to be a slot. */
static bool is_added(const struct x86_affine *a, unsigned i)
{
    for (unsigned k = 0; k < a->values; k++)
        if (a->value[k].plus == i + 1)
            return true;
    return false;
}

static unsigned slot_of(const struct x86_pass *p, unsigned value)
{
    return p->value[value].source - PEET_SRC_SLOT;
}

/* The growth that a slot needs for a value to follow from it. */
static struct x86_pass_growth needed_growth(const struct x86_pass *p, const struct x86_affine_value *v)
{
    return (struct x86_pass_growth){ .step = v->step,
                                     .plus = (uint8_t)(v->plus ? slot_of(p, v->plus - 1u) + 1 : 0),
                                     .is_set = true };
}

static bool is_same_growth(const struct x86_pass_growth *a, const struct x86_pass_growth *b)
{
    return a->step == b->step && a->plus == b->plus;
}

/* Whether value i follows from what is known before the loop; then sets its source. */
static bool follows_from_before(struct path_step *s, unsigned i)
{
    struct x86_pass *p = s->pass;
    const struct x86_affine_value *v = &p->loop->value[i];
    const struct x86_track *t = v->reg == X86_NONE ? NULL : &s->before[v->reg];
    bool is_start = i >= p->loop->slots && !is_added(p->loop, i); /* used only when the loop is left */

    if (!t || !t->known || v->times != 1)
        return false;
    int64_t add = (int64_t)((uint64_t)t->add + (uint64_t)v->add);
    bool is_slot = t->source >= PEET_SRC_SLOT;
    if ((!is_slot && t->source != PEET_SRC_ZERO) || (is_added(p->loop, i) && (!is_slot || add)))
        return false;
    if (!is_start && is_slot) {
        struct x86_pass_growth *g = &p->growth[t->source - PEET_SRC_SLOT], wanted = needed_growth(p, v);
        if (g->is_set && !is_same_growth(g, &wanted))
            return false;
        *g = wanted;
    } else if (!is_start && (v->step || v->plus)) {
        return false; /* a constant does not grow */
    }
    p->value[i] = (struct x86_pass_value){ add, t->source, false };
    return true;
}

static void add_loop_slot(struct path_step *s, unsigned i)
{
    struct x86_pass *p = s->pass;
    const struct x86_affine_value *v = &p->loop->value[i];

    p->value[i] = (struct x86_pass_value){ 0, (uint8_t)(PEET_SRC_SLOT + s->slots), true };
    if (!(i == p->loop->counted && p->loop->narrow))
        p->growth[s->slots] = needed_growth(p, v);
    if (v->reg != X86_NONE && !s->before[v->reg].known && v->times == 1)
        s->before[v->reg] =
            (struct x86_track){ (int64_t)(0 - (uint64_t)v->add), (uint8_t)(PEET_SRC_SLOT + s->slots), true };
    s->slots++;
}

/* The value of a register after the loop. */
static struct x86_track track_after_loop(const struct path_step *s, unsigned reg)
{
    static const struct x86_track UNKNOWN = { 0 };
    const struct x86_affine *a = s->pass->loop;
    const struct x86_growth *g = &a->growth[reg];
    const struct x86_track *t = &s->before[reg];
    struct x86_pass_growth has = { 0 }, needs = { .step = (int64_t)g->step };

    if (!g->known || !t->known)
        return UNKNOWN;
    for (unsigned i = a->slots; g->times && i < a->values; i++)
        if (a->value[i].reg == g->reg && a->value[i].times == g->times)
            needs.plus = (uint8_t)(slot_of(s->pass, i) + 1);
    if (g->times && !needs.plus)
        return UNKNOWN;
    if (t->source >= PEET_SRC_SLOT)
        has = s->pass->growth[t->source - PEET_SRC_SLOT];
    return is_same_growth(&has, &needs) ? *t : UNKNOWN;
}

/* Whether the source is a slot that is written after the exit: if the first iteration was left there, the slot has no
 * value. */
static bool is_written_after_exit(const struct path_step *s, uint8_t source)
{
    const struct x86_pass *p = s->pass;

    for (const struct x86_node *n = p->block; n->depth > p->exit->depth; n = n->parent)
        for (unsigned i = n->slots - n->own_slots; i < n->slots; i++)
            if (p->value[i].has_slot && p->value[i].source == source)
                return true;
    return false;
}

/* The value of a register at an exit. */
static struct x86_track track_after_exit(const struct path_step *s, const struct x86_affine_register *r)
{
    struct x86_track t = { 0 };

    if (r->reg != X86_NONE)
        t = track_after_loop(s, r->reg);
    t.known &= !is_written_after_exit(s, t.source);
    t.add = (int64_t)((uint64_t)t.add + (uint64_t)r->add);
    return t;
}

static struct x86_node *pass_node_new(struct x86_layout *l, const struct path_step *s)
{
    const struct x86_affine_exit *exit = s->pass->exit;
    struct x86_node *n = arena_alloc(&l->arena, sizeof *n);

    if (!n)
        return NULL;
    *n = (struct x86_node){ .insn = s->pass->block->insn,
                            .parent = s->from,
                            .variant = X86_SP_IN_REGISTER,
                            .slots = (uint8_t)s->slots,
                            .pass = s->pass };
    for (unsigned i = 0; i < X86_GPRS; i++)
        n->track[i] = exit ? track_after_exit(s, &exit->after[i]) : track_after_loop(s, i);
    return n;
}

static int add_pass(struct x86_layout *l, struct x86_node *from, const struct x86_pass *pass, struct x86_node **ret)
{
    const struct x86_pass *before[X86_PASSES];
    const struct x86_affine *loop = pass->loop;
    struct path_step s = { .from = from, .slots = from ? from->slots : 0 };

    if (from && (from->pass || !x86_path_can_extend(l, from) || x86_path_loops(from, before) == X86_PASSES))
        return 0;
    if (!(s.pass = arena_alloc(&l->arena, sizeof *s.pass)))
        return PEET_ERR_MEMORY;
    *s.pass = *pass;
    if (from)
        memcpy(s.before, from->track, sizeof s.before);
    else if (!l->no_operands)
        s.before[X86_RSP] = (struct x86_track){ 0, PEET_SRC_REGISTER + X86_SP_REGISTER, true };
    if (s.slots + loop->values + 1 > PEET_SLOTS)
        return 0;
    for (unsigned i = 0; i < loop->values; i++) /* first those by which others grow */
        if (is_added(loop, i) && !follows_from_before(&s, i))
            add_loop_slot(&s, i);
    if (loop->exits
        /* then the induction register's initial value, which has to be known at each exit */
        && !follows_from_before(&s, loop->counted))
        add_loop_slot(&s, loop->counted);
    for (unsigned i = 0; i < loop->values; i++)
        if (!is_added(loop, i) && !(loop->exits && i == loop->counted) && !follows_from_before(&s, i))
            add_loop_slot(&s, i);
    s.pass->counter = (uint8_t)s.slots++;
    *ret = pass_node_new(l, &s);
    return *ret ? 1 : PEET_ERR_MEMORY;
}

int x86_path_step(struct x86_layout *l, struct x86_node *from, struct x86_node *block, const struct x86_affine *loop,
                  struct x86_node **ret)
{
    return add_pass(l, from, &(struct x86_pass){ .loop = loop, .block = block }, ret);
}

int x86_path_leave(struct x86_layout *l, const struct x86_node *pass, unsigned depth, struct x86_node **ret)
{
    const struct x86_affine *loop = pass->pass->loop;
    struct x86_pass p = { .loop = loop, .block = pass->pass->block, .exit_node = pass->pass->block };

    for (unsigned i = 0; i < loop->exits; i++)
        if (loop->exit[i].depth == depth)
            p.exit = &loop->exit[i];
    while (p.exit_node && p.exit_node->depth != depth)
        p.exit_node = p.exit_node->parent;
    return p.exit && p.exit_node ? add_pass(l, pass->parent, &p, ret) : 0;
}

bool x86_path_can_extend(const struct x86_layout *l, const struct x86_node *n)
{
    const struct x86_track *rsp = &n->track[X86_RSP];
    const struct x86_node *root = n;

    for (; !root->pass; root = root->parent) {
        for (unsigned i = 0; i < root->own_operands; i++)
            if (root->operand[i].size_src || root->operand[i].predicate)
                return false;
        if (!root->parent)
            break;
    }
    return root->variant == X86_SP_IN_REGISTER
           && (l->no_operands || (rsp->known && rsp->add == 0 && rsp->source == PEET_SRC_REGISTER + X86_SP_REGISTER));
}

/* ---- paths ---- */

unsigned x86_path_loops(const struct x86_node *n, const struct x86_pass *ret[X86_PASSES])
{
    unsigned loops = 0, left;

    for (const struct x86_node *i = n; i; i = i->parent)
        loops += i->pass != NULL;
    left = loops;
    for (const struct x86_node *i = n; i; i = i->parent)
        if (i->pass)
            ret[--left] = i->pass;
    return loops;
}

static uint64_t trip_count(const struct x86_pass *p, const uint64_t *words)
{
    const struct x86_affine *a = p->loop;
    const struct x86_affine_value *counted = &a->value[a->counted];
    const struct x86_pass_value *start = &p->value[a->counted];
    struct peet_trips t = a->trips;
    uint64_t distance = words[p->counter] - (uint64_t)start->add - (p->exit ? p->exit->delta : 0)
                        - (start->source == PEET_SRC_ZERO ? 0 : words[start->source - PEET_SRC_SLOT]);

    if (counted->plus) {
        uint64_t by = (uint64_t)counted->step + words[slot_of(p, counted->plus - 1u)];
        if (by == 0) /* then there was one iteration */
            return 1;
        t = x86_affine_trips(by, false);
    }
    return (distance >> t.shift) * t.inverse & t.mask;
}

/* Adds the loop's growth to the slots, as the blocks after it use them. */
static void grow_slots(const struct x86_pass *p, uint64_t trips, uint64_t *now)
{
    for (unsigned i = 0; i < p->counter; i++) {
        const struct x86_pass_growth *g = &p->growth[i];
        now[i] +=
            trips * ((uint64_t)g->step + (g->plus ? now[g->plus - 1] : 0)); /* slots by which others grow do not grow */
    }
}

/* Whether the path refers to memory. */
static bool path_refers(const struct x86_node *n)
{
    for (; n; n = n->parent)
        if (n->pass ? n->pass->block->operands > 0 : n->own_operands > 0)
            return true;
    return false;
}

void x86_path_resolve(const struct x86_node *n, uint64_t *words)
{
    const struct x86_pass *pass[X86_PASSES];
    unsigned loops = x86_path_loops(n, pass), values = 0, at = 0;
    uint64_t trips[X86_PASSES], now[PEET_SLOTS];

    memcpy(now, words, n->slots * sizeof *now);
    for (unsigned i = 0; i < loops; i++) {
        const struct x86_affine *a = pass[i]->loop;
        for (unsigned k = a->slots; k < a->values; k++)
            if (a->value[k].times != 1)
                now[slot_of(pass[i], k)] = words[slot_of(pass[i], k)] *= a->value[k].times;
        trips[i] = trip_count(pass[i], now);
        grow_slots(pass[i], trips[i], now);
    }
    if (!path_refers(n)) /* the values have no use, and zeros take no room in the trace */
        memset(words, 0, n->slots * sizeof *words);
    for (unsigned i = 0; i < n->slots; i++) {
        if (at < loops && pass[at]->counter == i)
            at++;
        else
            words[values++] = words[i];
    }
    memcpy(words + values, trips, loops * sizeof *trips);
}

bool x86_path_simple_trips(const struct x86_node *n, struct peet_trips *ret)
{
    const struct x86_pass *pass[X86_PASSES];

    if (x86_path_loops(n, pass) != 1)
        return false;
    const struct x86_affine *a = pass[0]->loop;
    const struct x86_pass_value *start = &pass[0]->value[a->counted];
    for (unsigned i = a->slots; i < a->values; i++)
        if (a->value[i].times != 1)
            return false;
    *ret = a->trips;
    ret->end = pass[0]->counter;
    ret->start = start->source == PEET_SRC_ZERO ? PEET_LOOP_ZERO : (uint8_t)(start->source - PEET_SRC_SLOT);
    ret->add = (uint64_t)start->add + (pass[0]->exit ? pass[0]->exit->delta : 0);
    return !a->value[a->counted].plus && path_refers(n);
}

void x86_path_totals(const struct x86_node *n, const uint64_t *trips, uint64_t *ret_insns, uint64_t *ret_operands)
{
    const struct x86_pass *pass[X86_PASSES];
    unsigned loops = x86_path_loops(n, pass);

    *ret_insns = *ret_operands = 0;
    for (; n; n = n->parent) {
        if (n->pass) {
            loops--;
            *ret_insns += trips[loops] * n->pass->block->depth;
            *ret_operands += trips[loops] * n->pass->block->operands;
            *ret_insns += n->pass->exit_node ? n->pass->exit_node->depth : 0;
            *ret_operands += n->pass->exit_node ? n->pass->exit_node->operands : 0;
        } else {
            *ret_insns += 1;
            *ret_operands += n->own_operands;
        }
    }
}

/* ---- in the trace ---- */

enum { NODES = 2 + 4 * X86_PASSES };

/* A path with loops as the definition of a loop in the trace. */
struct nest {
    struct x86_layout *layout;
    struct schema_builder *to;
    const struct x86_pass *pass[X86_PASSES];
    unsigned loops, counted_loops; /* loops defined so far */
    unsigned nodes;                /* elements of `node` in use */
    struct peet_loop_node node[NODES];
    struct peet_assign assign[NODES][PEET_SLOTS];
};

/* The value in the trace that corresponds to a slot of the path. */
static uint8_t slot_value(const struct nest *x, unsigned slot)
{
    unsigned before = 0;

    while (before < x->loops && x->pass[before]->counter < slot)
        before++;
    return (uint8_t)(slot - before);
}

static struct peet_assign *nest_begin_node(struct nest *x, const struct peet_loop_node *n)
{
    x->node[x->nodes] = *n;
    x->node[x->nodes].assign = x->assign[x->nodes];
    return x->assign[x->nodes++];
}

static int nest_add_block(struct nest *x, struct x86_node *n, struct peet_err *err)
{
    uint64_t used = x->layout->strips_operands || x->layout->no_operands ? 0 : x86_layout_slots(n);
    uint8_t slots = 0;
    int r = x86_layout_define(x->layout, n, x->to, err);

    if (r < 0)
        return r;
    struct peet_assign *assign = nest_begin_node(x, &(struct peet_loop_node){ .block = n->item });
    for (; used; used &= used - 1, slots++)
        assign[slots] = (struct peet_assign){ .dst = slots, .src = slot_value(x, (unsigned)__builtin_ctzll(used)) };
    x->node[x->nodes - 1].assigns = slots;
    return 0;
}

/* An iteration of the loop up to n. */
static void nest_add_iteration(struct nest *x, const struct x86_pass *p, const struct x86_node *n)
{
    uint8_t slots = x->layout->strips_operands || x->layout->no_operands ? 0 : n->slots;
    struct peet_assign *assign = nest_begin_node(x, &(struct peet_loop_node){ .block = n->item, .assigns = slots });

    for (uint8_t i = 0; i < slots; i++) {
        const struct x86_pass_value *v = &p->value[i];
        bool is_constant = v->source == PEET_SRC_ZERO;
        assign[i] = (struct peet_assign){
            .add = v->add, .dst = i, .src = is_constant ? PEET_LOOP_ZERO : slot_value(x, v->source - PEET_SRC_SLOT)
        };
    }
}

static int nest_add_loop(struct nest *x, const struct x86_node *n, struct peet_err *err)
{
    const struct x86_pass *p = n->pass;
    bool no_operands = x->layout->strips_operands || x->layout->no_operands;
    uint16_t growing = 0;
    int r = x86_layout_define(x->layout, p->block, x->to, err);

    if (r < 0)
        return r;
    struct peet_loop_node loop = { .end = (uint16_t)(x->nodes + 2), .counted = 1, .trips = x->counted_loops++ };
    struct peet_assign *assign = nest_begin_node(x, &loop);
    for (unsigned i = 0; !no_operands && i < n->slots; i++) {
        const struct x86_pass_growth *g = &p->growth[i];
        if (g->step || g->plus)
            assign[growing++] =
                (struct peet_assign){ .add = g->step,
                                      .dst = slot_value(x, i),
                                      .src = slot_value(x, i),
                                      .plus = g->plus ? (uint8_t)(slot_value(x, g->plus - 1u) + 1) : 0 };
    }
    x->node[x->nodes - 1].assigns = growing;
    nest_add_iteration(x, p, p->block);
    if (!p->exit_node)
        return 0;
    if ((r = x86_layout_define(x->layout, p->exit_node, x->to, err)) == 0)
        nest_add_iteration(x, p, p->exit_node);
    return r;
}

/* The path up to n. */
static int nest_add_path(struct nest *x, struct x86_node *n, struct peet_err *err)
{
    struct x86_node *before = n->parent;

    while (!n->pass && before && !before->pass)
        before = before->parent;
    int r = before ? nest_add_path(x, before, err) : 0;
    if (r < 0)
        return r;
    return n->pass ? nest_add_loop(x, n, err) : nest_add_block(x, n, err);
}

int x86_path_define(struct x86_layout *l, struct x86_node *n, struct schema_builder *to, uint32_t *ret_item,
                    struct peet_err *err)
{
    struct nest x = { .layout = l, .to = to };

    x.loops = x86_path_loops(n, x.pass);
    if (n->parent || n->pass->exit_node) /* a single loop needs no outer loop */
        nest_begin_node(&x, &(struct peet_loop_node){ .trips = 1 });
    int r = nest_add_path(&x, n, err);
    if (r < 0)
        return r;
    x.node[0].end = (uint16_t)x.nodes;
    struct peet_loop loop = { .values = (uint16_t)(l->strips_operands ? 0 : n->slots - x.loops),
                              .counts = (uint16_t)x.loops,
                              .nodes = (uint16_t)x.nodes,
                              .node = x.node };
    return schema_builder_loop(to, &loop, ret_item, err);
}
