/* SPDX-License-Identifier: MIT */
/* Misses and stall by members of types. In a sampled profile, a member has the share of its object's costs that it has in the samples. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "study/profile/report/report_in.h"

static const struct column MEMBERS[] = { { "object", "Data", CELL_TEXT, false },
                                         { "member", "Member", CELL_TEXT, false },
                                         { "stall_share", "Of stall", CELL_SHARE, false },
                                         { "object_share", "Of its data's", CELL_PERCENT, false },
                                         { "misses", "Misses", CELL_COUNT, false },
                                         { "offset", "At byte", CELL_COUNT, false },
                                         { "type", "Type", CELL_TEXT, false },
                                         { 0 } };

/* A member of an object's type. */
struct member {
    uint32_t object;        /* index of the data object */
    char *name;             /* its path in an element */
    uint64_t offset;        /* least offset that was missed; bytes in an element */
    uint64_t misses, stall; /* lines missed; cycles */
    double share;           /* of the stall of all members of its object */
};

/* Sums over the members of an object. */
struct whole {
    uint64_t misses, stall; /* lines missed; cycles */
};

static int compare_members_by_name(const void *a, const void *b)
{
    const struct member *x = a, *y = b;

    if (x->object != y->object)
        return x->object < y->object ? -1 : 1;
    int r = strcmp(x->name, y->name);
    return r ? r : x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int compare_members_by_stall(const void *a, const void *b)
{
    const struct member *x = a, *y = b;

    if (x->stall != y->stall)
        return x->stall < y->stall ? 1 : -1;
    if (x->misses != y->misses)
        return x->misses < y->misses ? 1 : -1;
    return compare_members_by_name(a, b);
}

/* Adds up offsets of the same member, by its hash, so that each name is looked up once. Returns the number of members. */
static size_t members_by_hash(const struct profile_report *r, struct member *member)
{
    const struct member_costs *from = &r->p->members;
    struct map numbers = { .value_size = sizeof(size_t) }; /* 1 + index in `member`, by hash and object */
    size_t count = 0;

    for (size_t i = 0; i < from->count; i++) {
        const struct member_cost *c = &from->cost[i];
        uint64_t hash = objects_member_hash(r->p->objects, c->object, c->offset);
        size_t *number = hash ? map_put(&numbers, hash, c->object) : NULL;
        if (!number)
            continue;
        if (*number == 0) {
            member[count++] = (struct member){ .object = c->object, .offset = c->offset };
            *number = count;
        }
        struct member *m = &member[*number - 1];
        m->offset = c->offset < m->offset ? c->offset : m->offset;
        m->misses += c->misses;
        m->stall += c->stall;
    }
    map_release(&numbers);
    return count;
}

/* Makes members of offsets; members with equal names are added up. Returns their number. */
static size_t members_find(const struct profile_report *r, struct member *member)
{
    size_t count = members_by_hash(r, member), n = 0;
    char text[REPORT_TEXT];

    for (size_t i = 0; i < count; i++) {
        bool is_known = objects_member(r->p->objects, member[i].object, member[i].offset, true, text, sizeof text);
        member[i].name = mem_string(is_known ? text : "");
    }
    if (count)
        qsort(member, count, sizeof *member, compare_members_by_name);
    for (size_t i = 1; i < count; i++) {
        if (member[i].object != member[n].object || strcmp(member[i].name, member[n].name) != 0) {
            member[++n] = member[i];
            continue;
        }
        member[n].misses += member[i].misses;
        member[n].stall += member[i].stall;
        free(member[i].name);
    }
    return count ? n + 1 : 0;
}

static uint64_t scale_part(uint64_t part, uint64_t whole, uint64_t to)
{
    return whole ? (uint64_t)((double)part / (double)whole * (double)to + 0.5) : 0;
}

/* Scales members, so that those of an object add up to the object's total. */
static void members_scale(const struct profile_report *r, struct member *member, size_t count)
{
    uint32_t objects = objects_count(r->p->objects);
    struct whole *sum = mem_alloc(objects + 1, sizeof *sum), *all = mem_alloc(objects + 1, sizeof *all);

    for (size_t i = 0; i < count; i++) {
        sum[member[i].object].misses += member[i].misses;
        sum[member[i].object].stall += member[i].stall;
    }
    for (size_t i = 0; i < r->t.by_object_count; i++) {
        const struct total *x = &r->t.by_object[i];
        all[x->object] = (struct whole){ x->misses, total_stall(x) };
    }
    for (size_t i = 0; i < count; i++) {
        struct member *m = &member[i];
        m->share = report_part(m->stall, sum[m->object].stall);
        m->misses = scale_part(m->misses, sum[m->object].misses, all[m->object].misses);
        m->stall = scale_part(m->stall, sum[m->object].stall, all[m->object].stall);
    }
    free(sum);
    free(all);
}

static void report_put_member(struct table *t, const struct profile_report *r, const struct member *m)
{
    const struct object_info *f = objects_info(r->p->objects, m->object);

    table_text(t, f->name);
    table_text(t, m->name);
    table_real(t, report_part(m->stall, r->p->stall));
    table_real(t, m->share);
    table_count(t, m->misses);
    table_count(t, m->offset);
    table_text(t, f->type);
}

void report_add_members(struct profile_report *r)
{
    struct member *member = mem_alloc(r->p->members.count + 1, sizeof *member);
    size_t n = members_find(r, member);
    struct table *t = n ? result_table(r->result, "members", "Members", MEMBERS) : NULL;

    members_scale(r, member, n);
    if (n)
        qsort(member, n, sizeof *member, compare_members_by_stall);
    for (size_t i = 0; i < n; i++) {
        bool is_small = r->wants->top && member[i].stall * 2000 < r->p->stall;
        if (t->rows < report_rows(r) && !is_small && report_wants(r, report_object(r, member[i].object), NULL))
            report_put_member(t, r, &member[i]);
        free(member[i].name);
    }
    free(member);
}
