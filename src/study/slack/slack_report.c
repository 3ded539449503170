/* SPDX-License-Identifier: MIT */
/* Tables of a slack analysis. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "study/slack/slack_in.h"

enum { REPORT_NAME = 300, REPORT_PLACE = 200, UNIT_OBJECTS = 8 };

/* clang-format off */
static const struct column UNITS[] = {
    { "kind",        "Kind",          CELL_TEXT,    false },
    { "object",      "Object",        CELL_TEXT,    true  },
    { "place",       "Place",         CELL_TEXT,    false },
    { "address",     "Address",       CELL_HEX,     true  },
    { "uses",        "Uses",          CELL_COUNT,   false },
    { "waits",       "Waits",         CELL_COUNT,   false },
    { "waited",      "Waited",        CELL_COUNT,   false },
    { "share",       "of all time",   CELL_SHARE,   false },
    { "needed",      "Needed",        CELL_PERCENT, false },
    { "verdict",     "Verdict",       CELL_TEXT,    false },
    { "needed_runs", "needed in",     CELL_COUNT,   true  },
    { "runs",        "of schedules",  CELL_COUNT,   true  },
    { 0 },
};
static const struct column LOCKS[] = {
    { "object",     "Lock",                  CELL_TEXT,    false },
    { "place",      "Place",                 CELL_TEXT,    false },
    { "uses",       "Acquisitions",          CELL_COUNT,   false },
    { "conflicted", "that conflicted",       CELL_PERCENT, false },
    { "wrote",      "that wrote",            CELL_PERCENT, false },
    { "parts",      "Independent parts",     CELL_COUNT,   false },
    { "candidate",  "Candidate for",         CELL_TEXT,    false },
    { "objects",    "Data",                  CELL_TEXT,    false },
    { 0 },
};
static const struct column OBJECTS[] = {
    { "kind",   "Kind",         CELL_TEXT,  false },
    { "unit",   "Needed at",    CELL_TEXT,  false },
    { "object", "for Data",     CELL_TEXT,  false },
    { "member", "Member",       CELL_TEXT,  true  },
    { "lines",  "Lines",        CELL_COUNT, false },
    { "flow",   "Flow",         CELL_BYTES, false },
    { "anti",   "Anti",         CELL_BYTES, false },
    { "output", "Output",       CELL_BYTES, false },
    { 0 },
};
static const struct column LINES[] = {
    { "unit",   "Needed at",    CELL_TEXT,  false },
    { "line",   "Line",         CELL_HEX,   false },
    { "object", "Data",         CELL_TEXT,  false },
    { "member", "Member",       CELL_TEXT,  true  },
    { "flow",   "Flow",         CELL_BYTES, false },
    { "anti",   "Anti",         CELL_BYTES, false },
    { "output", "Output",       CELL_BYTES, false },
    { 0 },
};
static const struct column PREDICTIONS[] = {
    { "kind",   "Kind",             CELL_TEXT,    false },
    { "unit",   "Synchronization",  CELL_TEXT,    false },
    { "change", "Change",           CELL_TEXT,    false },
    { "keeps",  "keeps all order",  CELL_TEXT,    false },
    { "cycles", "Cycles",           CELL_COUNT,   false },
    { "gain",   "Gain",             CELL_PERCENT, false },
    { "forced", "Forced",           CELL_COUNT,   true  },
    { 0 },
};
static const struct column TIMELINE[] = {
    { "thread", "Thread",     CELL_TEXT,    false },
    { "from",   "From cycle", CELL_TEXT,    false },
    { "cycles", "Cycles",     CELL_COUNT,   false },
    { "waited", "Waiting",    CELL_PERCENT, false },
    { 0 },
};
static const struct column PAIRS[] = {
    { "unit",  "Needed at",   CELL_TEXT,  true  },
    { "from",  "From thread", CELL_TEXT,  false },
    { "to",    "To thread",   CELL_TEXT,  false },
    { "bytes", "Bytes",       CELL_BYTES, false },
    { 0 },
};
static const struct plot TIMELINE_PLOT[] = {
    { .kind = PLOT_MATRIX, .title = "Waiting, by thread and time", .over = "thread from", .of = "waited", .least = 2, .most = 0 },
    { .kind = PLOT_NONE },
};
static const struct plot PAIRS_PLOT[] = {
    { .kind = PLOT_MATRIX, .title = "Dependences that required order, by thread", .over = "from to", .of = "bytes", .least = 2, .most = 0 },
    { .kind = PLOT_NONE },
};
static const struct plot UNITS_PLOT[] = {
    { .kind = PLOT_BARS, .title = "Waited cycles", .over = "kind place", .of = "waited", .least = 2, .most = 20 },
    { .kind = PLOT_NONE },
};
/* clang-format on */

static const char *slack_class_name(uint8_t class)
{
    static const char *const names[] = { "barrier", "lock", "rwlock", "join", "condition", "semaphore", "post" };

    return names[class];
}

/* ---- names ---- */

/* "function file:line" of a call; "": unknown. */
static void slack_place(struct slack *s, uint32_t process, uint64_t site, char ret[REPORT_PLACE])
{
    struct symbols_frame frame[SYMBOLS_FRAMES];

    ret[0] = 0;
    if (!site || !symbols_code(s->symbols, process, site - 1, frame))
        return;
    const char *slash = frame[0].file ? strrchr(frame[0].file, '/') : NULL;
    if (frame[0].file)
        snprintf(ret, REPORT_PLACE, "%s %s:%" PRIu32, frame[0].function, slash ? slash + 1 : frame[0].file,
                 frame[0].line);
    else
        snprintf(ret, REPORT_PLACE, "%s", frame[0].function);
}

static void slack_unit_name(struct slack *s, const struct sync_unit *x, char ret[REPORT_NAME])
{
    char place[REPORT_PLACE];

    slack_place(s, x->process, x->site, place);
    if (x->class == RELAX_BARRIER || x->class == RELAX_JOIN)
        snprintf(ret, REPORT_NAME, "%s", place[0] ? place : x->name ? x->name : "?");
    else if (x->name)
        snprintf(ret, REPORT_NAME, "%s", x->name);
    else
        snprintf(ret, REPORT_NAME, "0x%" PRIx64 "%s%s", x->addr, place[0] ? " at " : "", place);
}

/* ---- the verdict ---- */

static bool slack_is_lock(const struct sync_unit *x)
{
    return x->class == RELAX_LOCK || x->class == RELAX_RWLOCK;
}

static const char *slack_verdict(const struct sync_unit *x)
{
    if (x->needed_runs)
        return "needed";
    if (slack_is_lock(x))
        return "never conflicted";
    return x->class == RELAX_JOIN ? "no data needed it" : "not needed"; /* a join also keeps the program from ending */
}

static void report_units(struct slack *s, const uint32_t *order, size_t count, const struct slack_wants *wants,
                         struct result *ret)
{
    struct table *t = result_table(ret, "synchronization", "Synchronization", UNITS);
    char place[REPORT_PLACE];

    t->plot = UNITS_PLOT;
    for (size_t i = 0; i < count && i < wants->rows; i++) {
        const struct sync_unit *x = &s->units.unit[order[i]];
        slack_place(s, x->process, x->site, place);
        table_text(t, slack_class_name(x->class));
        table_text(t, x->name);
        table_text(t, place[0] ? place : NULL);
        if (x->name || x->class == RELAX_JOIN)
            table_none(t);
        else
            table_count(t, x->addr);
        table_count(t, x->sum.uses);
        table_count(t, x->sum.waits);
        table_count(t, x->sum.waited);
        table_real(t, s->thread_cycles ? (double)x->sum.waited / (double)s->thread_cycles : 0);
        if (x->sum.waited)
            table_real(t, (double)x->sum.needed / (double)x->sum.waited);
        else
            table_none(t);
        table_text(t, slack_verdict(x));
        table_count(t, x->needed_runs);
        table_count(t, x->runs);
    }
    if (count > wants->rows)
        table_note(t, "%zu more; --rows N shows N", count - (size_t)wants->rows);
    table_note(t,
               "Verdicts hold for this run and this input, and for %" PRIu32
               " schedule%s. Other input may need what this one did not.",
               s->runs, s->runs == 1 ? "" : "s");
    table_note(
        t,
        "Each verdict is for one synchronization taken out alone. Output, time and atomic flags are no dependences.");
    if (s->races)
        table_note(t, "%" PRIu64 " pairs of accesses have no order at all: data races, or order that the trace lacks.",
                   s->races);
    if (s->forced_wakeups)
        table_note(t, "%" PRIu64 " waits were ended by force, since the recorded order could not be kept.",
                   s->forced_wakeups);
}

/* ---- locks ---- */

/* Names of the data objects of each part: "a, b | c". */
static char *slack_parts_text(struct slack *s, const struct sync_unit *x, const uint32_t *part, uint32_t parts)
{
    char *text = mem_string("");

    for (uint32_t p = 1; p <= parts; p++) {
        bool is_first = true;
        for (uint32_t i = 0; i < s->units.name_count; i++) {
            if (part[i] != p)
                continue;
            char *longer = mem_format("%s%s%s", text, !is_first ? ", " : p > 1 ? " | " : "", s->units.name[i].text);
            free(text);
            text = longer;
            is_first = false;
        }
    }
    (void)x;
    return text;
}

static const char *slack_lock_candidate(const struct sync_unit *x, uint32_t parts)
{
    if (x->sum.wrote == 0)
        return "reader lock";
    if (x->needed_runs == 0)
        return "splitting or removal";
    if (parts > 1)
        return "splitting";
    return NULL;
}

static void report_locks(struct slack *s, const uint32_t *order, size_t count, const struct slack_wants *wants,
                         struct result *ret)
{
    struct table *t = NULL;
    char name[REPORT_NAME], place[REPORT_PLACE];

    for (size_t i = 0, rows = 0; i < count && rows < wants->rows; i++) {
        const struct sync_unit *x = &s->units.unit[order[i]];
        uint32_t parts;
        if (!slack_is_lock(x))
            continue;
        t = t ? t : result_table(ret, "locks", "Locks", LOCKS);
        rows++;
        uint32_t *part = slack_object_parts(&s->units, x, &parts);
        char *objects = slack_parts_text(s, x, part, parts);
        slack_unit_name(s, x, name);
        slack_place(s, x->process, x->site, place);
        table_text(t, name);
        table_text(t, place);
        table_count(t, x->sum.uses);
        table_real(t, (double)x->sum.relied / (double)x->sum.uses);
        table_real(t, (double)x->sum.wrote / (double)x->sum.uses);
        table_count(t, parts);
        table_text(t, slack_lock_candidate(x, parts));
        table_text(t, objects);
        free(objects);
        free(part);
    }
}

/* ---- data ---- */

/* Dependences of a unit at a data object and member. */
struct carrier_sum {
    uint32_t object, member;
    uint64_t lines, bytes[DEPENDENCE_KINDS];
};

static uint64_t carrier_sum_total(const struct carrier_sum *o)
{
    return o->bytes[DEPENDENCE_FLOW] + o->bytes[DEPENDENCE_ANTI] + o->bytes[DEPENDENCE_OUTPUT];
}

static int slack_compare_sums(const void *a, const void *b)
{
    const struct carrier_sum *x = a, *y = b;

    if (carrier_sum_total(x) != carrier_sum_total(y))
        return carrier_sum_total(x) < carrier_sum_total(y) ? 1 : -1;
    return x->object != y->object ? (x->object < y->object ? -1 : 1)
                                  : (x->member > y->member) - (x->member < y->member);
}

static struct carrier_sum *slack_sums(const struct sync_unit *x, size_t *ret_count)
{
    struct map sums = { .value_size = sizeof(struct carrier_sum) };
    const struct unit_line *l;
    const struct carrier_sum *each;
    uint64_t key;
    uint32_t tag;
    size_t n = 0;

    for (size_t at = 0; (l = map_next(&x->lines, &at, &key, &tag));) {
        struct carrier_sum *o = map_put(&sums, (uint64_t)l->object << 32 | l->member, 0);
        if (!o)
            break;
        o->object = l->object - 1;
        o->member = l->member;
        o->lines++;
        for (int k = 0; k < DEPENDENCE_KINDS; k++)
            o->bytes[k] += l->bytes[k];
    }
    struct carrier_sum *sum = mem_alloc(sums.count + 1, sizeof *sum);
    for (size_t at = 0; (each = map_next(&sums, &at, &key, &tag));)
        sum[n++] = *each;
    map_release(&sums);
    qsort(sum, n, sizeof *sum, slack_compare_sums);
    *ret_count = n;
    return sum;
}

static void report_bytes(struct table *t, const uint64_t bytes[DEPENDENCE_KINDS])
{
    table_count(t, bytes[DEPENDENCE_FLOW]);
    table_count(t, bytes[DEPENDENCE_ANTI]);
    table_count(t, bytes[DEPENDENCE_OUTPUT]);
}

static void report_objects(struct slack *s, const uint32_t *order, size_t count, const struct slack_wants *wants,
                           struct result *ret)
{
    struct table *t = result_table(ret, "data", "Data that required order", OBJECTS);
    char name[REPORT_NAME];
    bool has_more = false;

    for (size_t i = 0; i < count && i < wants->rows; i++) {
        const struct sync_unit *x = &s->units.unit[order[i]];
        size_t sums;
        struct carrier_sum *sum = slack_sums(x, &sums);
        slack_unit_name(s, x, name);
        for (size_t k = 0; k < sums && k < UNIT_OBJECTS; k++) {
            table_text(t, slack_class_name(x->class));
            table_text(t, name);
            table_text(t, s->units.name[sum[k].object].text);
            table_text(t, s->units.name[sum[k].member].text);
            table_count(t, sum[k].lines);
            report_bytes(t, sum[k].bytes);
        }
        has_more |= x->sum.unlisted > 0;
        free(sum);
    }
    if (has_more)
        table_note(t, "Of each synchronization, the first %d lines are listed; later ones only count for its verdict.",
                   UNIT_LINES);
}

static void report_lines(struct slack *s, const uint32_t *order, size_t count, const struct slack_wants *wants,
                         struct result *ret)
{
    struct table *t = result_table(ret, "lines", "Lines that required order", LINES);
    char name[REPORT_NAME];

    for (size_t i = 0; i < count && i < wants->rows; i++) {
        const struct sync_unit *x = &s->units.unit[order[i]];
        const struct unit_line *l;
        uint64_t key;
        uint32_t tag;
        slack_unit_name(s, x, name);
        for (size_t at = 0, n = 0; n < wants->rows && (l = map_next(&x->lines, &at, &key, &tag)); n++) {
            table_text(t, name);
            table_count(t, key << LINE_SHIFT);
            table_text(t, s->units.name[l->object - 1].text);
            table_text(t, s->units.name[l->member].text);
            report_bytes(t, l->bytes);
        }
    }
}

static void report_pair(struct table *t, const char *unit, uint64_t key, uint64_t bytes)
{
    char from[32], to[32];

    snprintf(from, sizeof from, "%" PRIu64, key >> 32);
    snprintf(to, sizeof to, "%" PRIu32, (uint32_t)key);
    table_text(t, unit);
    table_text(t, from);
    table_text(t, to);
    table_count(t, bytes);
}

/* Bytes of all units from thread to thread, for the plot of a page. */
static void report_all_pairs(struct slack *s, const uint32_t *order, size_t count, struct table *t)
{
    for (uint64_t from = 0; from < s->threads; from++)
        for (uint64_t to = 0; to < s->threads; to++) {
            uint64_t bytes = 0;
            for (size_t i = 0; i < count; i++) {
                const struct unit_pair *pair = map_find(&s->units.unit[order[i]].pairs, from << 32 | to, 0);
                bytes += pair ? pair->bytes : 0;
            }
            if (bytes)
                report_pair(t, "all", from << 32 | to, bytes);
        }
}

static void report_pairs(struct slack *s, const uint32_t *order, size_t count, const struct slack_wants *wants,
                         struct result *ret)
{
    struct table *t = result_table(ret, "pairs", "Dependences between threads", PAIRS);
    char name[REPORT_NAME];

    t->plot = PAIRS_PLOT;
    if (wants->is_page) {
        report_all_pairs(s, order, count, t);
        return;
    }
    for (size_t i = 0; i < count && i < wants->rows; i++) {
        const struct sync_unit *x = &s->units.unit[order[i]];
        const struct unit_pair *pair;
        uint64_t key;
        uint32_t tag;
        slack_unit_name(s, x, name);
        for (size_t at = 0; (pair = map_next(&x->pairs, &at, &key, &tag));)
            report_pair(t, name, key, pair->bytes);
    }
}

static void report_timeline(const struct slack *s, struct result *ret)
{
    struct table *t = result_table(ret, "timeline", "Waiting over time", TIMELINE);
    char thread[32], from[32];

    t->plot = TIMELINE_PLOT;
    for (uint32_t i = 0; i < s->threads; i++)
        for (uint64_t k = 0; k < FOLLOW_BINS && k * s->bin_cycles < s->cycles; k++) {
            uint64_t rest = s->cycles - k * s->bin_cycles, cycles = rest < s->bin_cycles ? rest : s->bin_cycles;
            double share = (double)s->bins[i].waited[k] / (double)cycles;
            snprintf(thread, sizeof thread, "%" PRIu32, i);
            snprintf(from, sizeof from, "%" PRIu64, k * s->bin_cycles);
            table_text(t, thread);
            table_text(t, from);
            table_count(t, cycles);
            table_real(t, share < 1 ? share : 1);
        }
}

/* ---- predictions ---- */

static void slack_change_text(const struct slack_prediction *p, const struct sync_unit *x, char *ret, size_t room)
{
    const struct slack_plan *plan = &p->plan;

    switch (plan->change) {
    case RELAX_POINT_TO_POINT: snprintf(ret, room, "wait only for the threads that are needed"); break;
    case RELAX_GROUPS: snprintf(ret, room, "a barrier for each of %" PRIu32 " groups of threads", plan->parts); break;
    case RELAX_SPLIT:
        snprintf(ret, room, "a lock for each of %" PRIu32 " %s", plan->parts,
                 plan->is_by_thread ? "groups of threads" : "groups of data objects");
        break;
    case RELAX_READERS: snprintf(ret, room, "a reader-writer lock"); break;
    default: snprintf(ret, room, "%s", slack_is_lock(x) ? "no lock" : "removed"); break;
    }
}

static void report_predictions(struct slack *s, struct result *ret)
{
    struct table *t = NULL;
    char name[REPORT_NAME], change[100];

    for (size_t i = 0; i < s->predictions; i++) {
        const struct slack_prediction *p = &s->prediction[i];
        const struct sync_unit *x = units_at(&s->units, p->unit);
        if (!p->cycles)
            continue;
        t = t ? t : result_table(ret, "predictions", "Predictions: simulated runs with one change", PREDICTIONS);
        slack_unit_name(s, x, name);
        slack_change_text(p, x, change, sizeof change);
        table_text(t, slack_class_name(x->class));
        table_text(t, name);
        table_text(t, change);
        table_text(t, p->plan.keeps ? "yes" : "no");
        table_count(t, p->cycles);
        table_real(t, s->cycles ? 1 - (double)p->cycles / (double)s->cycles : 0);
        table_count(t, p->forced_wakeups);
    }
    if (t)
        table_note(t,
                   "The run took %" PRIu64
                   " cycles. A change that does not keep all order is a bound of the gain, not a proposal.",
                   s->cycles);
}

void slack_report(struct slack *s, const struct slack_wants *wants, struct result *ret)
{
    size_t count;
    uint32_t *order = slack_order(s, &count);

    report_units(s, order, count, wants, ret);
    report_locks(s, order, count, wants, ret);
    report_predictions(s, ret);
    report_objects(s, order, count, wants, ret);
    if (wants->is_data || wants->is_page) {
        report_timeline(s, ret);
        report_pairs(s, order, count, wants, ret);
    }
    if (wants->is_data)
        report_lines(s, order, count, wants, ret);
    free(order);
}
