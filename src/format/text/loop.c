/* SPDX-License-Identifier: MIT */
/* A loop's lines: nested `repeat … done`, and blocks with their slots as sums of the loop's values. */
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "format/text/def.h"

/* Instructions of one iteration through nodes [first, end); UINT64_MAX when there are too many. */
static uint64_t body_insns(const struct text_item *l, unsigned first, unsigned end, const uint64_t *counts)
{
    uint64_t sum = 0;

    for (unsigned i = first; i < end; i = l->size[i].insns ? i + 1 : l->size[i].end) {
        const struct text_size *n = &l->size[i];
        uint64_t one = n->insns;
        if (!n->insns) {
            uint64_t body = body_insns(l, i + 1, n->end, counts);
            if (body == UINT64_MAX || __builtin_mul_overflow(body, n->counted ? counts[n->trips] : n->trips, &one))
                return UINT64_MAX;
        }
        if (__builtin_add_overflow(sum, one, &sum))
            return UINT64_MAX;
    }
    return sum;
}

uint64_t text_item_insns(const struct text_item *i, const uint64_t *slots)
{
    return i->size ? body_insns(i, 0, i->nodes, slots + i->values) : i->insns;
}

int text_loop_begin(struct text_scan *s, struct text_loop_def *l)
{
    uint64_t values, counts;
    int r;

    l->nodes = l->depth = 0;
    l->line = s->line;
    if (!text_scan_name(s, 'l', &l->name))
        return text_scan_expected(s, "a loop's name (l1)");
    if ((r = text_scan_field(s, "values", PEET_SLOTS, &values)) < 0
        || (r = text_scan_field(s, "counts", PEET_SLOTS, &counts)) < 0)
        return r;
    l->values = (uint16_t)values;
    l->counts = (uint16_t)counts;
    return text_scan_end(s);
}

/* The number of a value, if there is one. */
static int scan_value(struct text_scan *s, uint64_t *ret, bool *ret_there)
{
    *ret_there = text_scan_name(s, 'v', ret);
    if (*ret_there && *ret >= PEET_SLOTS)
        return text_scan_wrong(s, "v%" PRIu64 " found, v0 to v%d expected", *ret, PEET_SLOTS - 1);
    return 0;
}

/* Reads what may follow the first value: "+v2+8", "+8", "-8", or nothing. */
static int scan_addends(struct text_scan *s, struct peet_assign *a)
{
    uint64_t add = 0, plus;
    bool negative = text_scan_take(s, "-"), there;
    int r;

    if (!negative && !text_scan_take(s, "+"))
        return 0;
    if (!negative) {
        if ((r = scan_value(s, &plus, &there)) < 0)
            return r;
        if (there) {
            a->plus = (uint8_t)(plus + 1);
            negative = text_scan_take(s, "-");
            if (!negative && !text_scan_take(s, "+"))
                return 0;
        }
    }
    if ((r = text_scan_number(s, UINT64_MAX, "a number", &add)) < 0)
        return r;
    a->add = (int64_t)(negative ? -add : add);
    return 0;
}

/* "v1 = v0+8" or "v1 = v0+v2+8", of which the left side begins with the letter. */
static int scan_assign(struct text_scan *s, char letter, struct peet_assign *ret)
{
    struct peet_assign a = { .src = PEET_LOOP_ZERO };
    uint64_t dst, src, add = 0;
    bool there;
    int r;

    if (!text_scan_name(s, letter, &dst) || dst >= PEET_SLOTS)
        return text_scan_expected(s, letter == 'v' ? "a value (v0 to v63)" : "a slot (s0 to s63)");
    if ((r = text_scan_need(s, "=")) < 0)
        return r;
    a.dst = (uint8_t)dst;
    if ((r = scan_value(s, &src, &there)) < 0)
        return r;
    if (there) {
        a.src = (uint8_t)src;
        r = scan_addends(s, &a);
    } else if ((r = text_scan_word64(s, "a value or a number", &add)) == 0) {
        a.add = (int64_t)add;
    }
    if (r == 0)
        *ret = a;
    return r;
}

/* The assignments of a node, up to the end of the line; *ret_enters of a loop's are done on entry. */
static int scan_assigns(struct text_scan *s, struct text_loop_def *l, bool is_loop, uint16_t *ret_count,
                        uint16_t *ret_enters)
{
    uint16_t n = 0, enters = 0;
    int r;

    while (text_scan_take(s, ",")) {
        if (n == UINT16_MAX)
            return text_scan_wrong(s, "more than %d assignments found", UINT16_MAX);
        bool enter = is_loop && text_scan_take(s, "enter");
        if (is_loop && !enter && (r = text_scan_need(s, "step")) < 0)
            return r;
        if (enter && enters < n)
            return text_scan_wrong(s, "'enter' found behind 'step', the other order expected");
        if ((r = scan_assign(s, is_loop ? 'v' : 's', &l->assign[n])) < 0)
            return r;
        enters = (uint16_t)(enters + enter);
        n++;
    }
    *ret_count = n;
    *ret_enters = enters;
    return text_scan_at_end(s) ? 0 : text_scan_expected(s, "',' or the end of the line");
}

static int done_line(struct text_scan *s, struct text_loop_def *l)
{
    if (l->depth == 0)
        return text_scan_wrong(s, "'done' found without a 'repeat'");
    uint16_t node = l->open[--l->depth];
    l->node[node].end = l->size[node].end = l->nodes;
    return text_scan_end(s);
}

/* Reads the rest of a block node, after its name b<name>. */
static int block_node(struct text_scan *s, const struct map *names, uint64_t name, struct peet_loop_node *n,
                      struct text_size *size)
{
    const struct text_item *b = map_find(names, name, 'b');

    if (!b)
        return text_scan_wrong(s, "b%" PRIu64 " found, a block that is defined expected", name);
    n->block = b->item;
    size->insns = b->insns;
    return 0;
}

static int loop_node(struct text_scan *s, struct text_loop_def *l, struct peet_loop_node *n)
{
    if (l->depth == PEET_LOOP_DEPTH)
        return text_scan_wrong(s, "loops inside each other found, at most %d expected", PEET_LOOP_DEPTH);
    l->open[l->depth++] = l->nodes;
    n->counted = text_scan_name(s, 'c', &n->trips);
    return n->counted ? 0 : text_scan_number(s, UINT64_MAX, "a trip count (c0 or a number)", &n->trips);
}

int text_loop_line(struct text_scan *s, struct text_loop_def *l, const struct map *names, struct arena *arena)
{
    struct peet_loop_node n = { 0 };
    struct text_size size = { 0 };
    uint64_t name;
    int r;

    if (text_scan_take(s, "done"))
        return (r = done_line(s, l)) < 0 ? r : 1;
    bool is_loop = text_scan_take(s, "repeat");
    if (!is_loop && !text_scan_name(s, 'b', &name))
        return 0;
    if (l->nodes == LOOP_MAX_NODES)
        return text_scan_wrong(s, "loop l%" PRIu64 " has more than %d nodes", l->name, LOOP_MAX_NODES);
    if (l->depth == 0 && (!is_loop || l->nodes > 0))
        return text_scan_wrong(s, "a loop begins with one 'repeat' that holds all else");
    r = is_loop ? loop_node(s, l, &n) : block_node(s, names, name, &n, &size);
    if (r < 0 || (r = scan_assigns(s, l, is_loop, &n.assigns, &n.enters)) < 0)
        return r;
    struct peet_assign *assign = arena_alloc(arena, n.assigns * sizeof *assign);
    if (!assign)
        return err_set(s->err, PEET_ERR_MEMORY, "%s:%" PRIu64 ": no memory for a loop", s->name, s->line);
    if (n.assigns)
        memcpy(assign, l->assign, n.assigns * sizeof *assign);
    n.assign = assign;
    size.trips = n.trips;
    size.counted = n.counted;
    l->size[l->nodes] = size;
    l->node[l->nodes++] = n;
    return 1;
}

int text_loop_end(struct text_scan *s, const struct text_loop_def *l, struct peet_loop *ret)
{
    if (l->depth)
        return err_set(s->err, PEET_ERR_FORMAT, "%s:%" PRIu64 ": loop l%" PRIu64 ": 'done' is missing %u times",
                       s->name, l->line, l->name, l->depth);
    *ret = (struct peet_loop){ .values = l->values, .counts = l->counts, .nodes = l->nodes, .node = l->node };
    return 0;
}
