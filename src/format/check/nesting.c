/* SPDX-License-Identifier: MIT */
/* Nesting within a thread: regions, parallel loops, iterations of parallel loops. The three kinds need not nest in
 * each other. Other threads than the forking one may execute the iterations of a loop, so their number is not
 * compared with that of the fork. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/check/family.h"

enum nest { REGIONS, LOOPS, ITERATIONS, NESTS };

/* A region, loop or iteration that has begun and not ended. */
struct opened {
    uint64_t what;     /* number of a string; number of iterations; number of an iteration */
    uint64_t position; /* of the begin: instructions of the thread before it */
};

/* The state of a thread. */
struct check_local {
    struct stack {
        struct opened *at;
        size_t count, room;
    } stack[NESTS];
    bool exited; /* the thread returned or called its exit function */
};

static int nesting_begin(struct check *c, struct stack *s, uint64_t what, uint64_t position)
{
    struct opened *at = check_room(s->at, s->count, &s->room, sizeof *at);

    if (!at)
        return check_no_memory(c);
    s->at = at;
    at[s->count++] = (struct opened){ what, position };
    return 0;
}

/* Strings may be defined twice, so their texts count. */
static bool nest_is_same(const struct check *c, enum nest nest, uint64_t a, uint64_t b)
{
    if (nest == LOOPS || a == b)
        return true;
    const char *x = nest == REGIONS ? peet_trace_string(c->trace, a) : NULL;
    const char *y = nest == REGIONS ? peet_trace_string(c->trace, b) : NULL;
    return x && y && strcmp(x, y) == 0;
}

/* A name for messages, in a buffer of at least 100 bytes. */
static const char *nest_name(const struct check *c, enum nest nest, uint64_t what, char *buffer)
{
    const char *s = nest == REGIONS ? peet_trace_string(c->trace, what) : NULL;

    if (nest == REGIONS)
        snprintf(buffer, 100, "region '%.70s'", s ? s : "?");
    else if (nest == ITERATIONS)
        snprintf(buffer, 100, "iteration %" PRIu64 " of a parallel loop", what);
    else
        snprintf(buffer, 100, "a parallel loop");
    return buffer;
}

static void nesting_finish(struct check *c, struct check_position at, struct stack *s, enum nest nest, uint64_t what)
{
    enum check_rule rule = nest == REGIONS ? CHECK_region : CHECK_doall;
    char ends[100], open[100];
    size_t i = s->count;

    if (s->count && nest_is_same(c, nest, s->at[s->count - 1].what, what)) {
        s->count--;
        return;
    }
    nest_name(c, nest, what, ends);
    if (s->count == 0)
        check_found(c, rule, check_severity(at.thread), at, "%s ends without having begun", ends);
    else
        check_found(c, rule, check_severity(at.thread), at, "%s ends, but the one that began last is %s", ends,
                    nest_name(c, nest, s->at[s->count - 1].what, open));
    while (i > 0 && !nest_is_same(c, nest, s->at[i - 1].what, what))
        i--;
    if (i > 0)
        s->count = i - 1; /* continue outside the one that ends */
}

static int nesting_event(struct check *c, struct check_state *s, const struct check_thread *th, struct check_local *l,
                         const struct peet_event *e, uint64_t position)
{
    struct check_position at = { th, position };

    (void)s;
    switch (e->kind) {
    case PEET_EV_region_begin: return nesting_begin(c, &l->stack[REGIONS], e->arg[0], position);
    case PEET_EV_doall_fork: return nesting_begin(c, &l->stack[LOOPS], e->arg[0], position);
    case PEET_EV_doall_start: return nesting_begin(c, &l->stack[ITERATIONS], e->arg[0], position);
    case PEET_EV_region_end: nesting_finish(c, at, &l->stack[REGIONS], REGIONS, e->arg[0]); break;
    case PEET_EV_doall_join: nesting_finish(c, at, &l->stack[LOOPS], LOOPS, e->arg[0]); break;
    case PEET_EV_doall_finish: nesting_finish(c, at, &l->stack[ITERATIONS], ITERATIONS, e->arg[0]); break;
    case PEET_EV_exec:
        for (int i = 0; i < NESTS; i++)
            l->stack[i].count = 0;
        break;
    case PEET_EV_thread_end: l->exited = e->arg[0] == PEET_END_EXIT; break;
    default: break;
    }
    return 0;
}

/* Reports what is open at the end of a thread that was not cut off. */
static int nesting_end(struct check *c, struct check_state *s, const struct check_thread *th, struct check_local *l)
{
    enum check_severity severity = l->exited ? check_severity(th) : CHECK_WARNING;
    char open[100];

    (void)s;
    for (int i = 0; i < NESTS && th->whole; i++)
        for (size_t j = 0; j < l->stack[i].count; j++) {
            const struct opened *o = &l->stack[i].at[j];
            check_found(
                c, i == REGIONS ? CHECK_region : CHECK_doall, severity, (struct check_position){ th, o->position },
                "%s begins here and does not end before the thread does", nest_name(c, (enum nest)i, o->what, open));
        }
    return 0;
}

static void nesting_release_local(struct check_local *l)
{
    for (int i = 0; i < NESTS; i++)
        free(l->stack[i].at);
}

const struct check_family check_family_nesting = {
    .name = "nesting",
    .local_size = sizeof(struct check_local),
    .event = nesting_event,
    .end = nesting_end,
    .release_local = nesting_release_local,
};
