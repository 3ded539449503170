/* SPDX-License-Identifier: MIT */
/* The cycles of all hardware threads are divided into parts, so that parts add up to the difference of cycles times hardware threads. Each part is
 * divided by what it is about: instructions by function, stall by data and cause, waiting by lock or barrier. What a part has beyond its
 * rows is the row "elsewhere". */
#include "study/compare/why.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/mem.h"
#include "study/profile/totals.h"

/* X(name, title, whether it can be a reason): parts of the cycles of hardware threads. Waiting for the end of threads, and idle time, follow from others. */
/* clang-format off */
#define WHY_PARTS(X) \
    X(INSTRUCTIONS, "instructions", true) X(MISSES, "misses", true) X(FETCH, "instruction fetch", true) \
    X(LOCK, "lock", true) X(BARRIER, "barrier", true) X(OTHER, "other waits", true) X(ENDS, "ends of threads", false) \
    X(ISSUE, "issue", true) X(CHANGE, "switching", true) X(IDLE, "idle", false)
/* clang-format on */
enum why_part {
#define X(name, title, is_reason) WHY_##name,
    WHY_PARTS(X) WHY_PART_COUNT
#undef X
};

/* Part of a barrier's change that another change has to explain. */
static const double BARRIER_PART = 0.75;

static const char *const TITLES[] = {
#define X(name, title, is_reason) title,
    WHY_PARTS(X)
#undef X
};

static const bool IS_REASON[] = {
#define X(name, title, is_reason) is_reason,
    WHY_PARTS(X)
#undef X
};

/* clang-format off */
static const struct column WHY[] = {
    { "verdict",  "Verdict",        CELL_VERDICT, false },
    { "before",   "Cycles before",  CELL_COUNT,   false },
    { "after",    "after",          CELL_COUNT,   false },
    { "change",   "Change",         CELL_PERCENT, false },
    { "part",     "Most of it",     CELL_TEXT,    false },
    { "data",     "Data",           CELL_TEXT,    false },
    { "cause",    "Cause",          CELL_TEXT,    false },
    { "function", "Procedure",      CELL_TEXT,    false },
    { "share",    "Part of the change", CELL_PERCENT, false },
    { 0 },
};
static const struct column PARTS[] = {
    { "part",   "Part",     CELL_TEXT,    false },
    { "before", "Before",   CELL_COUNT,   false },
    { "after",  "After",    CELL_COUNT,   false },
    { "more",   "More",     CELL_REAL,    false },
    { "share",  "Part of the change", CELL_PERCENT, false },
    { 0 },
};
static const struct column DETAILS[] = {
    { "part",     "Part",      CELL_TEXT,    false },
    { "data",     "Data",      CELL_TEXT,    false },
    { "cause",    "Cause",     CELL_TEXT,    false },
    { "function", "Procedure", CELL_TEXT,    false },
    { "before",   "Before",    CELL_COUNT,   false },
    { "after",    "After",     CELL_COUNT,   false },
    { "more",     "More",      CELL_REAL,    false },
    { "share",    "Part of the change", CELL_PERCENT, false },
    { 0 },
};
/* clang-format on */

/* Cycles of one part, and what they are about. Strings belong to the profiles; NULL: not known, or not of interest. */
struct why_row {
    enum why_part part;
    const char *data, *cause, *function;
    uint64_t cycles[2]; /* before, after */
};

struct why_rows {
    struct why_row *row;
    size_t count;
    struct map numbers; /* uint32_t: 1 + index, by what the row is about */
};

/* The change of two runs. */
struct why_change {
    const struct profile *p[2];
    uint64_t part[WHY_PART_COUNT][2];
    double total;             /* cycles of all hardware threads that the second run has more; may be below 0 */
    struct why_rows subjects; /* by part, data and cause; of instructions and fetches by function */
    struct why_rows details;  /* by function, too */
};

static uint64_t why_hash(const char *text)
{
    return text ? XXH3_64bits(text, strlen(text)) : 0;
}

static bool why_texts_are_equal(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static void why_add(struct why_rows *rows, const struct why_row *what, unsigned side, uint64_t cycles)
{
    uint64_t key = (why_hash(what->data) * 31 + why_hash(what->cause)) * 31 + why_hash(what->function) + what->part;

    if (cycles == 0)
        return;
    for (uint32_t tag = 0;; tag++) {
        uint32_t *number = map_put(&rows->numbers, key, tag);
        assert(number);
        if (*number == 0) {
            rows->row = mem_room(rows->row, rows->count, sizeof *rows->row);
            rows->row[rows->count++] = *what;
            *number = (uint32_t)rows->count;
        }
        struct why_row *r = &rows->row[*number - 1];
        if (r->part == what->part && why_texts_are_equal(r->data, what->data)
            && why_texts_are_equal(r->cause, what->cause) && why_texts_are_equal(r->function, what->function)) {
            r->cycles[side] += cycles;
            return;
        }
    }
}

/* Adds cycles to both lists. */
static void why_account(struct why_change *c, const struct why_row *what, unsigned side, uint64_t cycles)
{
    struct why_row subject = *what;

    why_add(&c->details, what, side, cycles);
    if (what->data || what->cause)
        subject.function = NULL;
    why_add(&c->subjects, &subject, side, cycles);
}

static enum why_part why_part_of_wait(const struct profile_wait *w)
{
    if (w->kind == SYNC_OBJECT_JOIN)
        return WHY_ENDS;
    return w->as == TIME_lock ? WHY_LOCK : w->as == TIME_barrier ? WHY_BARRIER : WHY_OTHER;
}

static void why_read_side(struct why_change *c, unsigned side)
{
    const struct profile *p = c->p[side];
    struct totals t;

    totals_make(&t, p, NULL);
    for (uint32_t i = 0; i < t.functions; i++) {
        why_account(c, &(struct why_row){ WHY_INSTRUCTIONS, NULL, NULL, t.function[i].name, { 0 } }, side,
                    t.function[i].compute);
        why_account(c, &(struct why_row){ WHY_FETCH, NULL, NULL, t.function[i].name, { 0 } }, side,
                    t.function[i].fetch);
    }
    for (size_t i = 0; i < t.by_both_count; i++)
        for (unsigned cause = 0; cause < CAUSES; cause++) {
            const struct total *x = &t.by_both[i];
            const struct why_row what = { WHY_MISSES,
                                          objects_info(p->objects, x->object)->name,
                                          profile_cause_title((enum profile_cause)cause),
                                          t.function[x->function].name,
                                          { 0 } };
            why_account(c, &what, side, x->stall[cause]);
        }
    for (size_t i = 0; i < p->waits; i++) {
        const struct profile_wait *w = &p->wait[i];
        const struct why_row what = { why_part_of_wait(w),
                                      w->object == UINT32_MAX ? NULL : objects_info(p->objects, w->object)->name,
                                      sync_object_kind_name(&(const struct sync_summary){ .kind = w->kind }),
                                      t.function[t.place[w->process][w->place].function].name,
                                      { 0 } };
        why_account(c, &what, side, w->cycles);
        c->part[why_part_of_wait(w)][side] += w->cycles;
    }
    totals_release(&t);
}

/* Cycles of the parts, by what hardware threads did. Waits are known from the calls that waited. */
static void why_read_accounts(struct why_change *c, unsigned side)
{
    const struct sim_result *r = &c->p[side]->result;
    uint64_t time[TIME_COUNT] = { 0 }, waits = 0;

    for (uint32_t i = 0; i < r->hw_threads; i++)
        for (unsigned k = 0; k < TIME_COUNT; k++)
            time[k] += r->hw_thread[i].time[k];
    for (enum why_part k = WHY_LOCK; k <= WHY_ENDS; k++)
        waits += c->part[k][side];
    c->part[WHY_INSTRUCTIONS][side] = time[TIME_compute];
    c->part[WHY_MISSES][side] = time[TIME_stall] + time[TIME_bus];
    c->part[WHY_FETCH][side] = time[TIME_fetch];
    c->part[WHY_OTHER][side] += time[TIME_lock] + time[TIME_barrier] + time[TIME_other] - waits;
    c->part[WHY_ISSUE][side] = time[TIME_issue];
    c->part[WHY_CHANGE][side] = time[TIME_change];
    c->part[WHY_IDLE][side] = time[TIME_idle];
    c->total += (side ? 1 : -1) * (double)r->cycles * r->hw_threads;
}

/* Adds what the parts have beyond their rows. */
static void why_add_rest(struct why_change *c)
{
    for (enum why_part k = 0; k < WHY_PART_COUNT; k++)
        for (unsigned side = 0; side < 2; side++) {
            uint64_t sum = 0;
            for (size_t i = 0; i < c->details.count; i++)
                if (c->details.row[i].part == k)
                    sum += c->details.row[i].cycles[side];
            why_account(c, &(struct why_row){ k, NULL, "elsewhere", NULL, { 0 } }, side,
                        c->part[k][side] > sum ? c->part[k][side] - sum : 0);
        }
}

static double why_more(const struct why_row *r)
{
    return (double)r->cycles[1] - (double)r->cycles[0];
}

static double why_size(const struct why_row *r)
{
    double more = why_more(r);

    return more < 0 ? -more : more;
}

static int why_row_order(const void *a, const void *b)
{
    const struct why_row *x = a, *y = b;
    double dx = why_size(x), dy = why_size(y);

    if (dx < dy || dx > dy)
        return dx > dy ? -1 : 1;
    if (x->part != y->part)
        return x->part < y->part ? -1 : 1;
    int r = strcmp(x->data ? x->data : "", y->data ? y->data : "");
    r = r ? r : strcmp(x->cause ? x->cause : "", y->cause ? y->cause : "");
    return r ? r : strcmp(x->function ? x->function : "", y->function ? y->function : "");
}

static void why_sort(struct why_rows *rows)
{
    if (rows->count)
        qsort(rows->row, rows->count, sizeof *rows->row, why_row_order);
}

static void why_put_change(struct table *t, double more, double total)
{
    table_real(t, more);
    if (total != 0)
        table_real(t, more / total);
    else
        table_none(t);
}

/* Whether a change in one thread is enough for the change of waiting at a barrier, where all other threads wait for that thread. */
static bool why_explains(const struct why_change *c, const struct why_row *subject, const struct why_row *barrier)
{
    uint32_t threads = c->p[1]->result.threads;

    return subject->part != WHY_BARRIER && threads > 1
           && why_size(subject) * (threads - 1) >= BARRIER_PART * why_size(barrier);
}

/* The subject that changes most in the direction of the whole change; a barrier only if no other subject explains it. NULL: none. */
static const struct why_row *why_reason(const struct why_change *c, bool is_more)
{
    const struct why_row *reason = NULL;

    for (size_t i = 0; i < c->subjects.count; i++) {
        const struct why_row *r = &c->subjects.row[i];
        if (!IS_REASON[r->part] || why_size(r) <= 0 || (why_more(r) > 0) != is_more)
            continue;
        if (!reason)
            reason = r;
        if (reason->part != WHY_BARRIER)
            break;
        if (why_explains(c, r, reason))
            return r;
    }
    return reason;
}

/* The function with most of a subject's change. */
static const char *why_function(const struct why_change *c, const struct why_row *subject)
{
    for (size_t i = 0; i < c->details.count && !subject->function; i++) {
        const struct why_row *r = &c->details.row[i];
        if (r->part == subject->part && why_texts_are_equal(r->data, subject->data)
            && why_texts_are_equal(r->cause, subject->cause) && (why_more(r) > 0) == (why_more(subject) > 0))
            return r->function;
    }
    return subject->function;
}

static void why_put_verdict(const struct why_change *c, bool is_worse, double allow, struct result *ret)
{
    uint64_t before = c->p[0]->result.cycles, after = c->p[1]->result.cycles;
    const struct why_row *reason = why_reason(c, after > before);
    double change = before ? ((double)after - (double)before) / (double)before : 0;
    struct table *t = result_table(ret, "why", "Why", WHY);

    t->records = true;
    table_text(t, is_worse ? "worse" : after < before ? "better" : after == before ? "same" : "within what is allowed");
    table_count(t, before);
    table_count(t, after);
    table_real(t, change);
    table_text(t, reason && after != before ? TITLES[reason->part] : NULL);
    table_text(t, reason && after != before ? reason->data : NULL);
    table_text(t, reason && after != before ? reason->cause : NULL);
    table_text(t, reason && after != before ? why_function(c, reason) : NULL);
    if (reason && c->total != 0)
        table_real(t, why_more(reason) / c->total);
    else
        table_none(t);
    if (allow > 0)
        table_note(t, "%g %% more cycles are allowed (--allow)", 100 * allow);
}

static void why_put_parts(const struct why_change *c, struct result *ret)
{
    struct table *t =
        result_table(ret, "parts", "What the change consists of, in cycles of all hardware threads", PARTS);

    for (enum why_part k = 0; k < WHY_PART_COUNT; k++) {
        if (c->part[k][0] + c->part[k][1] == 0)
            continue;
        table_text(t, TITLES[k]);
        table_count(t, c->part[k][0]);
        table_count(t, c->part[k][1]);
        why_put_change(t, (double)c->part[k][1] - (double)c->part[k][0], c->total);
    }
}

static void why_put_details(const struct why_change *c, uint64_t top, struct result *ret)
{
    struct table *t = result_table(ret, "details", "By function, data, cause and lock", DETAILS);
    struct why_row rest = { 0 };
    size_t left = 0;

    for (size_t i = 0; i < c->details.count; i++) {
        const struct why_row *r = &c->details.row[i];
        if (why_size(r) <= 0)
            continue; /* it adds nothing */
        if (top && t->rows >= top) {
            rest.cycles[0] += r->cycles[0];
            rest.cycles[1] += r->cycles[1];
            left++;
            continue;
        }
        table_text(t, TITLES[r->part]);
        table_text(t, r->data);
        table_text(t, r->cause);
        table_text(t, r->function);
        table_count(t, r->cycles[0]);
        table_count(t, r->cycles[1]);
        why_put_change(t, why_more(r), c->total);
    }
    if (left == 0)
        return;
    table_text(t, "all others");
    table_none(t);
    table_none(t);
    table_none(t);
    table_count(t, rest.cycles[0]);
    table_count(t, rest.cycles[1]);
    why_put_change(t, why_more(&rest), c->total);
}

bool why_report(const struct profile *before, const struct profile *after, double allow, uint64_t top,
                struct result *ret)
{
    struct why_change c = { .p = { before, after } };
    bool is_worse = (double)after->result.cycles > (double)before->result.cycles * (1 + allow);

    c.subjects.numbers.value_size = c.details.numbers.value_size = sizeof(uint32_t);
    for (unsigned side = 0; side < 2; side++) {
        why_read_side(&c, side);
        why_read_accounts(&c, side);
    }
    why_add_rest(&c);
    why_sort(&c.subjects);
    why_sort(&c.details);
    why_put_verdict(&c, is_worse, allow, ret);
    why_put_parts(&c, ret);
    why_put_details(&c, top, ret);
    free(c.subjects.row);
    free(c.details.row);
    map_release(&c.subjects.numbers);
    map_release(&c.details.numbers);
    return is_worse;
}
