/* SPDX-License-Identifier: MIT */
/* Tables of delays. The bound by a lock: its critical sections follow each other; before the first one comes the shortest path to any of them, and after the
 * last one the shortest path from the end of any of them. */
#include "study/graph/delays.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"

#define MORE_ROWS "; --rows N shows up to N"

/* clang-format off */
static const struct column PATH[] = {
    { "thread",       "thread",       CELL_COUNT,   false },
    { "position",     "from",         CELL_COUNT,   false },
    { "instructions", "instructions", CELL_COUNT,   false },
    { "share",        "of the span",  CELL_PERCENT, false },
    { "pieces",       "pieces",       CELL_COUNT,   false },
    { "function",     "mostly in",    CELL_TEXT,    false },
    { "entered_by",   "entered by",   CELL_TEXT,    false },
    { 0 },
};
static const struct column FUNCTIONS[] = {
    { "function",     "function",     CELL_TEXT,    false },
    { "instructions", "instructions", CELL_COUNT,   false },
    { "share",        "of the span",  CELL_PERCENT, false },
    { "work",         "of all work",  CELL_PERCENT, false },
    { 0 },
};
static const struct column BARRIERS[] = {
    { "place",   "place",         CELL_TEXT,    false },
    { "site",    "site",          CELL_HEX,     false },
    { "process", "process",       CELL_COUNT,   true  },
    { "rounds",  "rounds",        CELL_COUNT,   false },
    { "waits",   "waits",         CELL_COUNT,   false },
    { "lost",    "lost",          CELL_COUNT,   false },
    { "longest", "longest wait",  CELL_COUNT,   false },
    { "share",   "lost per work", CELL_PERCENT, false },
    { 0 },
};
static const struct column LOCKS[] = {
    { "lock",         "lock",            CELL_TEXT,    false },
    { "address",      "address",         CELL_HEX,     false },
    { "process",      "process",         CELL_COUNT,   true  },
    { "taken",        "taken",           CELL_COUNT,   false },
    { "shared",       "shared",          CELL_COUNT,   false },
    { "instructions", "held",            CELL_COUNT,   false },
    { "longest",      "longest section", CELL_COUNT,   false },
    { "share",        "of all work",     CELL_PERCENT, false },
    { "bound",        "span at least",   CELL_COUNT,   false },
    { 0 },
};
/* clang-format on */

static int delays_no_memory(struct peet_err *err)
{
    return err_set(err, PEET_ERR_MEMORY, "no memory for a table of delays");
}

static double ratio_of(uint64_t a, uint64_t b)
{
    return b ? (double)a / (double)b : 0;
}

/* ---- the critical path ---- */

/* Consecutive segments of the critical path in one thread. */
struct path_interval {
    uint32_t first, last; /* indices in precedence.segment, inclusive; segments of other threads may lie between */
    uint64_t instructions, segments; /* of those on the path */
};

/* Finds the segments of the critical path in their order; *ret is to be freed. A run without segments has none. */
static int find_path(const struct schedule *s, uint32_t **ret, size_t *ret_count, struct peet_err *err)
{
    size_t n = 0;

    for (uint32_t i = s->last; i != SEGMENT_NONE; i = s->cause[i])
        n++;
    uint32_t *path = calloc(n + 1, sizeof *path);
    if (!path)
        return delays_no_memory(err);
    *ret_count = n;
    for (uint32_t i = s->last; i != SEGMENT_NONE; i = s->cause[i])
        path[--n] = i;
    *ret = path;
    return 0;
}

static size_t find_intervals(const struct precedence *p, const uint32_t *path, size_t segments,
                             struct path_interval *interval)
{
    size_t n = 0;

    for (size_t i = 0; i < segments; i++) {
        if (n == 0 || p->segment[path[i - 1]].thread != p->segment[path[i]].thread || path[i] < path[i - 1])
            interval[n++] = (struct path_interval){ .first = path[i] };
        interval[n - 1].last = path[i];
        interval[n - 1].instructions += p->segment[path[i]].instructions;
        interval[n - 1].segments++;
    }
    return n;
}

/* The kind of the event through which the path enters a segment. */
static const char *entered_by(const struct precedence *p, const struct schedule *s, uint32_t segment)
{
    if (s->cause[segment] == SEGMENT_NONE)
        return NULL;
    if (segment == p->thread[p->segment[segment].thread].first)
        return peet_event_name(p->segment[s->cause[segment]].end);
    return peet_event_name(p->segment[segment].detached ? PEET_EV_doall_fork : p->segment[segment - 1].end);
}

/* Adds the instructions of a segment to the counts of functions. */
static void delays_add_shares(const struct precedence *p, uint32_t segment, uint64_t *count)
{
    size_t n;
    const struct function_share *s = segment_shares(p, segment, &n);

    for (size_t i = 0; i < n; i++)
        count[s[i].function] += s[i].instructions;
}

static uint32_t longest_segment(const struct precedence *p, const uint32_t *path, size_t n)
{
    size_t best = 0;

    for (size_t i = 1; i < n; i++)
        best = p->segment[path[i]].instructions > p->segment[path[best]].instructions ? i : best;
    return path[best];
}

static int compare_falling(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x > *y ? -1 : *x < *y;
}

/* Finds the length in instructions from which intervals are shown: at most `most` of n are longer. */
static int find_limit(const struct path_interval *x, size_t n, size_t most, uint64_t *ret, struct peet_err *err)
{
    uint64_t *length = calloc(n + 1, sizeof *length);

    if (!length)
        return delays_no_memory(err);
    for (size_t i = 0; i < n; i++)
        length[i] = x[i].instructions;
    qsort(length, n, sizeof *length, compare_falling);
    *ret = n > most ? length[most - 1] : 0;
    free(length);
    return 0;
}

static void delays_add_path(struct table *table, const struct precedence *p, const struct schedule *s,
                            const uint32_t *path, const struct path_interval *interval, size_t intervals,
                            uint64_t limit, size_t most)
{
    size_t rows = 0, at = 0;

    for (size_t i = 0; i < intervals; at += interval[i++].segments) {
        const struct path_interval *x = &interval[i];
        const struct graph_segment *first = &p->segment[x->first];
        if (x->instructions < limit || rows == most)
            continue;
        rows++;
        table_count(table, p->thread[first->thread].id);
        table_count(table, first->position);
        table_count(table, x->instructions);
        table_real(table, ratio_of(x->instructions, s->span));
        table_count(table, x->segments);
        table_text(table, segment_function(p, longest_segment(p, path + at, x->segments)));
        table_text(table, entered_by(p, s, x->first));
    }
    if (rows < intervals)
        table_note(table, "the %zu longest of %zu intervals, in their order" MORE_ROWS, rows, intervals);
    table_note(
        table,
        "an interval is the part of the path in one thread before it enters another; position is in instructions of the thread");
}

/* ---- functions on it ---- */

/* The instructions of a function. */
struct function_row {
    uint64_t on_path, all; /* instructions: of the critical path; of all threads */
    const char *name;
};

static int compare_function_rows(const void *a, const void *b)
{
    const struct function_row *x = a, *y = b;

    if (x->on_path != y->on_path)
        return x->on_path > y->on_path ? -1 : 1;
    return x->all > y->all ? -1 : x->all < y->all;
}

static int delays_add_functions(struct result *r, const struct precedence *p, const struct schedule *s,
                                const uint32_t *path, size_t segments, size_t most, struct peet_err *err)
{
    struct table *table = result_table(r, "functions", "Functions on the critical path", FUNCTIONS);
    uint64_t *on_path = calloc(p->functions, sizeof *on_path), *all = calloc(p->functions, sizeof *all);
    struct function_row *row = calloc(p->functions, sizeof *row);
    size_t rows = 0;
    bool fits = on_path && all && row;

    for (size_t i = 0; fits && i < segments; i++)
        delays_add_shares(p, path[i], on_path);
    for (uint32_t i = 0; fits && i < p->segments; i++)
        delays_add_shares(p, i, all);
    for (size_t i = 0; fits && i < p->functions; i++)
        if (on_path[i])
            row[rows++] = (struct function_row){ on_path[i], all[i], p->function[i] ? p->function[i] : "?" };
    if (rows)
        qsort(row, rows, sizeof *row, compare_function_rows);
    for (size_t i = 0; i < rows && i < most; i++) {
        table_text(table, row[i].name);
        table_count(table, row[i].on_path);
        table_real(table, ratio_of(row[i].on_path, s->span));
        table_real(table, ratio_of(row[i].all, p->instructions));
    }
    if (rows > most)
        table_note(table, "the first %zu of %zu functions" MORE_ROWS, most, rows);
    free(on_path);
    free(all);
    free(row);
    return fits ? 0 : delays_no_memory(err);
}

int delays_path(struct result *r, const struct precedence *p, const struct schedule *s, size_t rows,
                struct peet_err *err)
{
    struct table *table = result_table(r, "critical", "Critical path", PATH);
    struct path_interval *interval = NULL;
    uint32_t *path = NULL;
    uint64_t limit = 0;
    size_t segments = 0, intervals = 0;
    int code = find_path(s, &path, &segments, err);

    if (code == 0 && !(interval = calloc(segments + 1, sizeof *interval)))
        code = delays_no_memory(err);
    if (code == 0) {
        intervals = find_intervals(p, path, segments, interval);
        code = find_limit(interval, intervals, rows, &limit, err);
    }
    if (code == 0) {
        delays_add_path(table, p, s, path, interval, intervals, limit, rows);
        code = delays_add_functions(r, p, s, path, segments, rows, err);
    }
    free(interval);
    free(path);
    return code;
}

/* ---- barriers ---- */

/* Waits at barriers by one call. */
struct barrier_site {
    uint64_t site;            /* code address */
    uint64_t rounds, waits;   /* rounds whose last thread waits here; arrivals */
    uint64_t waited, longest; /* instructions that waiting threads could have executed: sum, and of one wait */
    uint32_t process;         /* number in the trace */
};

static int compare_barrier_sites(const void *a, const void *b)
{
    const struct barrier_site *x = a, *y = b;

    if (x->waited != y->waited)
        return x->waited > y->waited ? -1 : 1;
    return x->site < y->site ? -1 : x->site > y->site;
}

static int delays_add_wait(struct map *sites, const struct precedence *p, const struct schedule *s, uint32_t segment,
                           struct peet_err *err)
{
    const struct barrier_round *m = &s->round[s->round_of[segment]];
    uint32_t process = p->thread[p->segment[segment].thread].process;
    uint64_t waited = m->time - s->finish[segment];
    struct barrier_site *x = map_put(sites, p->segment[segment].site, process);

    if (!x)
        return delays_no_memory(err);
    x->site = p->segment[segment].site;
    x->process = process;
    x->rounds += m->last == segment;
    x->waits++;
    x->waited += waited;
    x->longest = waited > x->longest ? waited : x->longest;
    return 0;
}

static void delays_add_sites(struct table *table, const struct precedence *p, const struct barrier_site *x, size_t n)
{
    char buffer[120];

    for (size_t i = 0; i < n; i++) {
        table_text(table, x[i].site ? addr_text(p->trace, x[i].process, x[i].site, buffer) : "?");
        table_count(table, x[i].site);
        table_count(table, x[i].process);
        table_count(table, x[i].rounds);
        table_count(table, x[i].waits);
        table_count(table, x[i].waited);
        table_count(table, x[i].longest);
        table_real(table, ratio_of(x[i].waited, p->instructions));
    }
}

int delays_barriers(struct result *r, const struct precedence *p, const struct schedule *s, struct peet_err *err)
{
    struct table *table = result_table(r, "barriers", "Barriers", BARRIERS);
    struct map sites = { .value_size = sizeof(struct barrier_site) };
    const struct barrier_site *x;
    size_t n = 0;
    uint64_t key;
    uint32_t tag;
    int code = 0;

    for (uint32_t i = 0; code == 0 && i < p->segments; i++)
        if (s->round_of[i] != SEGMENT_NONE)
            code = delays_add_wait(&sites, p, s, i, err);
    struct barrier_site *row = calloc(sites.count + 1, sizeof *row);
    if (code == 0 && !row)
        code = delays_no_memory(err);
    for (size_t at = 0; code == 0 && (x = map_next(&sites, &at, &key, &tag));)
        row[n++] = *x;
    if (n) {
        qsort(row, n, sizeof *row, compare_barrier_sites);
        delays_add_sites(table, p, row, n);
        table_note(
            table,
            "lost: what threads that came earlier could have done until the last one came, on an ideal machine; a round "
            "counts where the last one waits");
    }
    free(row);
    map_release(&sites);
    return code;
}

/* ---- locks ---- */

/* Critical sections of one lock. */
struct lock_use {
    uint64_t taken, shared; /* sections, and those of them that are shared */
    uint64_t held, longest; /* instructions in exclusive sections: sum, and of one section */
    uint64_t head, tail;    /* instructions of the shortest path to a section, and from the end of one */
    uint32_t object;        /* index in precedence.object */
    uint32_t begin, thread; /* of the open section: first segment; index of the thread */
    bool open, exclusive;   /* a section has begun and not ended; it is exclusive */
};

static uint64_t lock_bound(const struct lock_use *x)
{
    return x->held ? x->head + x->held + x->tail : 0;
}

static int compare_lock_uses(const void *a, const void *b)
{
    const struct lock_use *x = a, *y = b;

    if (x->held != y->held)
        return x->held > y->held ? -1 : 1;
    if (x->taken != y->taken)
        return x->taken > y->taken ? -1 : 1;
    return x->object < y->object ? -1 : x->object > y->object;
}

static void open_section(struct lock_use *x, uint32_t segment, uint32_t thread, bool exclusive)
{
    x->open = true;
    x->begin = segment;
    x->thread = thread;
    x->exclusive = exclusive;
}

static void close_section(struct lock_use *x, const struct precedence *p, const struct schedule *s,
                          const uint64_t *tail, uint32_t segment)
{
    if (!x->open || x->thread != p->segment[segment].thread)
        return;
    const struct graph_segment *last = &p->segment[segment];
    uint64_t length = last->position + last->instructions - p->segment[x->begin].position;
    uint64_t head = s->start[x->begin];
    x->open = false;
    if (!x->exclusive)
        return;
    x->head = x->held == 0 || head < x->head ? head : x->head;
    x->tail = x->held == 0 || tail[segment] < x->tail ? tail[segment] : x->tail;
    x->held += length;
    x->longest = length > x->longest ? length : x->longest;
}

/* Segments are sorted by thread, so that a lock has one open section at a time. */
static void delays_add_sections(struct lock_use *use, const struct precedence *p, const struct schedule *s,
                                const uint64_t *tail)
{
    for (uint32_t i = 0; i < p->segments; i++) {
        const struct graph_segment *x = &p->segment[i];
        bool waits = x->end == PEET_EV_cond_wait || x->end == PEET_EV_cond_timedwait;
        if (waits && x->lock != SEGMENT_NONE) {
            close_section(&use[x->lock], p, s, tail, i);
            open_section(&use[x->lock], i + 1, x->thread, true);
        }
        if (x->object == SEGMENT_NONE || p->object[x->object].class != GRAPH_LOCK)
            continue;
        struct lock_use *u = &use[x->object];
        if (x->end == PEET_EV_mutex_unlock || x->end == PEET_EV_rwlock_unlock || x->end == PEET_EV_spin_unlock) {
            close_section(u, p, s, tail, i);
        } else {
            u->taken++;
            u->shared += x->value == 0;
            open_section(u, i + 1, x->thread, x->value == 1);
        }
    }
}

static void delays_add_locks(struct table *table, const struct precedence *p, const struct lock_use *use, size_t n,
                             size_t most)
{
    char buffer[120];

    for (size_t i = 0; i < n && i < most; i++) {
        const struct lock_use *u = &use[i];
        const struct graph_object *o = &p->object[u->object];
        table_text(table, addr_text(p->trace, o->process, o->addr, buffer));
        table_count(table, o->addr);
        table_count(table, o->process);
        table_count(table, u->taken);
        table_count(table, u->shared);
        table_count(table, u->held);
        table_count(table, u->longest);
        table_real(table, ratio_of(u->held, p->instructions));
        table_count(table, lock_bound(u));
    }
    if (n > most)
        table_note(table, "the first %zu of %zu locks" MORE_ROWS, most, n);
    if (n)
        table_note(
            table,
            "held: instructions in critical sections that exclude each other; sections for reading only do not. They cannot "
            "overlap, so that the span is at least their sum with what comes before and after");
}

int delays_locks(struct result *r, const struct precedence *p, const struct schedule *s, size_t rows,
                 uint64_t *ret_bound, struct peet_err *err)
{
    struct table *table = result_table(r, "locks", "Locks", LOCKS);
    struct lock_use *use = calloc(p->objects + 1, sizeof *use);
    uint64_t *tail = NULL, bound = 0;
    size_t n = 0;
    int code = use ? schedule_tails(s, p, &tail, err) : delays_no_memory(err);

    if (code == 0) {
        delays_add_sections(use, p, s, tail);
        for (size_t i = 0; i < p->objects; i++) {
            use[i].object = (uint32_t)i;
            bound = lock_bound(&use[i]) > bound ? lock_bound(&use[i]) : bound;
            if (use[i].taken)
                use[n++] = use[i];
        }
        if (n)
            qsort(use, n, sizeof *use, compare_lock_uses);
        delays_add_locks(table, p, use, n, rows);
        *ret_bound = bound;
    }
    free(tail);
    free(use);
    return code;
}
