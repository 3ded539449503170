/* SPDX-License-Identifier: MIT */
#include "study/slack/plan.h"

#include <stdlib.h>

#include "base/mem.h"

/* ---- sets that are joined ---- */

static uint32_t plan_root(const uint32_t *parent, uint32_t i)
{
    while (parent[i] != i)
        i = parent[i];
    return i;
}

static void plan_unite(uint32_t *parent, uint32_t a, uint32_t b)
{
    a = plan_root(parent, a);
    b = plan_root(parent, b);
    parent[a > b ? a : b] = a > b ? b : a;
}

static uint32_t *plan_singles(uint32_t n)
{
    uint32_t *parent = mem_alloc((size_t)n + 1, sizeof *parent);

    for (uint32_t i = 0; i < n; i++)
        parent[i] = i;
    return parent;
}

/* ---- groups of threads ---- */

/* The group of each thread that used the unit, from 1; 0: it did not. To be freed. */
static uint32_t *plan_thread_groups(const struct sync_unit *x, uint32_t *ret_groups)
{
    uint32_t *parent = plan_singles(x->threads), *group = mem_alloc((size_t)x->threads + 1, sizeof *group);
    const struct unit_pair *pair;
    uint64_t key;
    uint32_t tag;

    *ret_groups = 0;
    for (size_t at = 0; (pair = map_next(&x->pairs, &at, &key, &tag));)
        if (key >> 32 < x->threads && (uint32_t)key < x->threads)
            plan_unite(parent, (uint32_t)(key >> 32), (uint32_t)key);
    for (uint32_t i = 0; i < x->threads; i++) {
        uint32_t root = plan_root(parent, i);
        if (x->thread[i].first_uses == 0)
            continue;
        if (group[root] == 0)
            group[root] = ++*ret_groups;
        group[i] = group[root];
    }
    for (uint32_t i = 0; i < x->threads; i++)
        if (x->thread[i].first_uses == 0)
            group[i] = 0;
    free(parent);
    return group;
}

/* Whether all threads that use a barrier meet in every round. */
static bool plan_all_meet(const struct sync_unit *x)
{
    uint32_t users = 0, uses = 0;

    for (uint32_t i = 0; i < x->threads; i++) {
        uint32_t n = x->thread[i].first_uses;
        if (n && uses && n != uses)
            return false;
        uses = n ? n : uses;
        users += n > 0;
    }
    return users == x->most_members;
}

/* ---- data objects of a lock ---- */

/* Whether a name is that of an object that carried a dependence. */
static bool *plan_carriers(const struct units *u, const struct sync_unit *x)
{
    bool *carries = mem_alloc((size_t)u->name_count + 1, sizeof *carries);
    const struct unit_line *l;
    uint64_t key;
    uint32_t tag;

    for (size_t at = 0; (l = map_next(&x->lines, &at, &key, &tag));)
        carries[l->object - 1] = true;
    return carries;
}

uint32_t *slack_object_parts(struct units *u, const struct sync_unit *x, uint32_t *ret_parts)
{
    uint32_t *parent = plan_singles(u->name_count), *part = mem_alloc((size_t)u->name_count + 1, sizeof *part);
    bool *carries = plan_carriers(u, x);
    bool is_whole = false; /* a section has used more objects than are known */

    for (uint32_t i = 0; i < x->threads; i++)
        for (uint32_t k = 0; k < x->thread[i].sections; k++) {
            const struct section_objects *s = &u->set[x->thread[i].section[k]];
            uint32_t first = UINT32_MAX;
            is_whole |= s->is_full;
            for (uint32_t n = 0; n < s->count; n++)
                if (carries[s->object[n]]) {
                    first = first == UINT32_MAX ? s->object[n] : first;
                    plan_unite(parent, first, s->object[n]);
                }
        }
    *ret_parts = 0;
    for (uint32_t i = 0; i < u->name_count; i++) {
        uint32_t root = is_whole ? 0 : plan_root(parent, i);
        if (!carries[i])
            continue;
        if (is_whole)
            part[i] = *ret_parts = 1;
        else
            part[i] = part[root] = part[root] ? part[root] : ++*ret_parts;
    }
    for (uint32_t i = 0; i < u->name_count; i++)
        if (!carries[i])
            part[i] = 0;
    free(carries);
    free(parent);
    return part;
}

/* The part of each acquisition of a thread. */
static void plan_section_parts(const struct units *u, const struct unit_thread *t, const uint32_t *part_of,
                               struct relax_thread *ret)
{
    ret->parts = t->sections;
    ret->part = mem_alloc((size_t)t->sections + 1, sizeof *ret->part);
    for (uint32_t i = 0; i < t->sections; i++) {
        const struct section_objects *s = &u->set[t->section[i]];
        ret->part[i] = RELAX_NO_PART;
        for (uint32_t n = 0; n < s->count && ret->part[i] == RELAX_NO_PART; n++)
            if (part_of[s->object[n]])
                ret->part[i] = part_of[s->object[n]] - 1;
        if (s->is_full)
            ret->part[i] = 0;
    }
}

/* ---- plans ---- */

static void plan_add(struct slack_plan *ret, unsigned *count, struct slack_plan plan)
{
    ret[(*count)++] = plan;
}

static unsigned plan_barrier(const struct sync_unit *x, struct slack_plan *ret)
{
    uint32_t groups;
    unsigned n = 0;
    uint32_t *group = plan_thread_groups(x, &groups);

    if (x->needed_runs && !x->has_unknown_need)
        plan_add(ret, &n, (struct slack_plan){ .change = RELAX_POINT_TO_POINT, .keeps = true });
    if (x->needed_runs && groups > 1 && plan_all_meet(x))
        plan_add(ret, &n, (struct slack_plan){ .change = RELAX_GROUPS, .keeps = true, .parts = groups });
    free(group);
    return n;
}

static unsigned plan_lock(struct units *u, const struct sync_unit *x, struct slack_plan *ret)
{
    uint32_t parts, groups;
    unsigned n = 0;
    uint32_t *part = slack_object_parts(u, x, &parts), *group = plan_thread_groups(x, &groups);
    bool is_mutex = x->class == RELAX_LOCK;

    if (is_mutex && x->needed_runs && parts > 1)
        plan_add(ret, &n, (struct slack_plan){ .change = RELAX_SPLIT, .keeps = true, .parts = parts });
    else if (is_mutex && x->needed_runs && groups > 1)
        plan_add(ret, &n,
                 (struct slack_plan){ .change = RELAX_SPLIT, .keeps = true, .parts = groups, .is_by_thread = true });
    if (is_mutex && x->sum.wrote < x->sum.uses)
        plan_add(ret, &n, (struct slack_plan){ .change = RELAX_READERS, .keeps = true });
    free(part);
    free(group);
    return n;
}

unsigned slack_plans(struct units *u, uint32_t unit, struct slack_plan ret[SLACK_PLANS])
{
    const struct sync_unit *x = units_at(u, unit);
    unsigned n = x->class == RELAX_BARRIER                            ? plan_barrier(x, ret)
                 : x->class == RELAX_LOCK || x->class == RELAX_RWLOCK ? plan_lock(u, x, ret)
                                                                      : 0;

    plan_add(ret, &n, (struct slack_plan){ .change = RELAX_REMOVE, .keeps = x->needed_runs == 0 });
    return n;
}

/* ---- relaxations ---- */

static void relax_needs(const struct sync_unit *x, struct relaxation *ret)
{
    for (uint32_t i = 0; i < x->threads; i++) {
        ret->thread[i].need = x->thread[i].need; /* borrowed */
        ret->thread[i].needs = x->thread[i].needs;
        for (uint32_t k = 0; k < x->thread[i].needs; k++)
            ret->thread[x->thread[i].need[k].from].is_needed = true;
    }
}

static void relax_groups(const struct sync_unit *x, struct relaxation *ret)
{
    uint32_t groups, *group = plan_thread_groups(x, &groups);

    for (uint32_t i = 0; i < x->threads; i++)
        for (uint32_t k = 0; k < x->threads; k++)
            ret->thread[i].members += group[i] && group[i] == group[k];
    for (uint32_t i = 0; i < x->threads; i++)
        ret->thread[i].group = group[i];
    free(group);
}

static void relax_split(struct units *u, const struct sync_unit *x, bool is_by_thread, struct relaxation *ret)
{
    uint32_t parts, groups;
    uint32_t *part = slack_object_parts(u, x, &parts), *group = plan_thread_groups(x, &groups);

    for (uint32_t i = 0; i < x->threads; i++) {
        struct relax_thread *t = &ret->thread[i];
        plan_section_parts(u, &x->thread[i], part, t);
        for (size_t k = 0; is_by_thread && k < t->parts; k++)
            t->part[k] = group[i];
    }
    free(part);
    free(group);
}

static void relax_readers(const struct sync_unit *x, struct relaxation *ret)
{
    for (uint32_t i = 0; i < x->threads; i++) {
        struct relax_thread *t = &ret->thread[i];
        t->parts = x->thread[i].sections;
        t->part = mem_alloc(t->parts + 1, sizeof *t->part);
        for (size_t k = 0; k < t->parts; k++)
            t->part[k] = !x->thread[i].wrote[k];
    }
}

void slack_relax(struct units *u, uint32_t unit, const struct slack_plan *plan, struct relaxation *ret)
{
    const struct sync_unit *x = units_at(u, unit);

    *ret = (struct relaxation){ .class = x->class, .change = plan->change, .threads = x->threads };
    ret->addrs = x->addrs;
    ret->sites = x->sites;
    ret->thread = mem_alloc((size_t)x->threads + 1, sizeof *ret->thread);
    if (plan->change == RELAX_POINT_TO_POINT)
        relax_needs(x, ret);
    else if (plan->change == RELAX_GROUPS)
        relax_groups(x, ret);
    else if (plan->change == RELAX_SPLIT)
        relax_split(u, x, plan->is_by_thread, ret);
    else if (plan->change == RELAX_READERS)
        relax_readers(x, ret);
}

void slack_relax_release(struct relaxation *r)
{
    for (uint32_t i = 0; i < r->threads; i++)
        free(r->thread[i].part);
    free(r->thread);
    *r = (struct relaxation){ 0 };
}
