/* SPDX-License-Identifier: MIT */
/* Passes the records of a trace to all families of rules. */
#include "format/check/check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "format/check/family.h"

static const struct check_family *const FAMILIES[] = {
#define X(name) &check_family_##name,
    CHECK_FAMILIES(X)
#undef X
};

static const struct {
    const char *name, *summary;
} RULES[] = {
#define X(name, summary) { #name, summary },
    CHECK_RULES(X)
#undef X
};

const char *check_rule_name(enum check_rule rule)
{
    return RULES[rule].name;
}

const char *check_rule_summary(enum check_rule rule)
{
    return RULES[rule].summary;
}

/* ---- what families use ---- */

static void check_report(struct check *c, struct check_finding *f, const struct check_thread *th, const char *format,
                         va_list ap) __attribute__((format(printf, 4, 0)));

static void check_report(struct check *c, struct check_finding *f, const struct check_thread *th, const char *format,
                         va_list ap)
{
    char text[300];

    if (c->totals.found[f->rule][f->severity]++ >= c->config->most)
        return;
    vsnprintf(text, sizeof text, format, ap);
    f->thread = th ? th->id : CHECK_NO_THREAD;
    f->text = text;
    c->config->found(f, c->config->context);
}

void check_found(struct check *c, enum check_rule rule, enum check_severity severity, struct check_position at,
                 const char *format, ...)
{
    struct check_finding f = { .rule = rule, .severity = severity, .position = at.position };
    va_list ap;

    va_start(ap, format);
    check_report(c, &f, at.thread, format, ap);
    va_end(ap);
}

void check_found_at(struct check *c, enum check_rule rule, enum check_severity severity, struct check_position at,
                    uint64_t addr, const char *format, ...)
{
    struct check_finding f = {
        .rule = rule, .severity = severity, .position = at.position, .has_addr = true, .addr = addr
    };
    va_list ap;

    va_start(ap, format);
    check_report(c, &f, at.thread, format, ap);
    va_end(ap);
}

void check_note(struct check *c, const char *format, ...)
{
    char text[300];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (c->config->note)
        c->config->note(text, c->config->context);
}

int check_no_memory(struct check *c)
{
    return err_set(c->err, PEET_ERR_MEMORY, "%s: no memory to check it", peet_trace_path(c->trace));
}

uint32_t check_parent(const struct check *c, uint32_t process)
{
    const struct peet_process *p;

    for (size_t i = 0; (p = peet_trace_process(c->trace, i)); i++)
        if (p->id == process)
            return p->parent == process ? 0 : p->parent;
    return 0;
}

void *check_room(void *array, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return array;
    void *bigger = realloc(array, (*room * 2 + 16) * size);
    if (bigger)
        *room = *room * 2 + 16;
    return bigger;
}

/* ---- threads ---- */

static const struct peet_thread *find_info(const struct check *c, uint32_t id)
{
    const struct peet_thread *t;

    for (size_t i = 0; (t = peet_trace_thread(c->trace, i)); i++)
        if (t->id == id)
            return t;
    return NULL;
}

static void thread_free(struct check_thread *th)
{
    for (int i = 0; i < CHECK_FAMILY_COUNT; i++) {
        if (th->local[i] && FAMILIES[i]->release_local)
            FAMILIES[i]->release_local(th->local[i]);
        free(th->local[i]);
    }
    free(th);
}

static struct check_thread *thread_new(struct check *c, uint32_t id)
{
    struct check_thread *th = calloc(1, sizeof *th);

    if (!th)
        return NULL;
    th->id = id;
    th->info = find_info(c, id);
    th->process = th->info ? th->info->process : 0;
    /* The first thread of a process that was forked has inherited its maker's locks and calls. */
    const struct peet_thread *parent = th->info ? find_info(c, th->info->parent) : NULL;
    th->sure = th->info && !(check_parent(c, th->process) && (!parent || parent->process != th->process));
    for (int i = 0; i < CHECK_FAMILY_COUNT; i++)
        if (FAMILIES[i]->local_size && !(th->local[i] = calloc(1, FAMILIES[i]->local_size))) {
            thread_free(th);
            return NULL;
        }
    return th;
}

/* The thread, which is made if it is new. */
static int get_thread(struct check *c, uint32_t id, struct check_thread **ret)
{
    struct check_thread **th = map_put(&c->threads, id, 0);

    if (!th)
        return check_no_memory(c);
    if (!*th && !(*th = thread_new(c, id))) {
        map_remove(&c->threads, id, 0);
        return check_no_memory(c);
    }
    *ret = *th;
    return 0;
}

/* The end of a stream: calls the families, and frees the thread. */
static int end_thread(struct check *c, struct check_thread *th)
{
    struct peet_totals totals;
    int r = 0;

    th->whole = peet_trace_totals(c->trace, th->id, &totals) == 0 && totals.whole;
    for (int i = 0; r == 0 && i < CHECK_FAMILY_COUNT; i++)
        if (FAMILIES[i]->end)
            r = FAMILIES[i]->end(c, c->state[i], th, th->local[i]);
    c->totals.threads++;
    map_remove(&c->threads, th->id, 0);
    thread_free(th);
    return r;
}

/* ---- records ---- */

/* Records of the thread could not be read. */
static void check_lose(struct check *c, struct check_thread *th)
{
    th->sure = false;
    for (int i = 0; i < CHECK_FAMILY_COUNT; i++)
        if (FAMILIES[i]->lost)
            FAMILIES[i]->lost(c, th->local[i]);
}

static int check_event(struct check *c, struct check_thread *th, const struct peet_event *e, uint64_t position)
{
    int r = 0;

    c->totals.events++;
    if (e->kind == PEET_EV_gap) {
        c->has_gaps = true;
        th->sure = false;
    }
    for (int i = 0; r == 0 && i < CHECK_FAMILY_COUNT; i++)
        if (FAMILIES[i]->event)
            r = FAMILIES[i]->event(c, c->state[i], th, th->local[i], e, position);
    return r;
}

static int check_batch(struct check *c, struct check_thread *th, const struct peet_batch *b)
{
    uint64_t position = b->position, references = 0;
    int r = 0;

    for (int i = 0; r == 0 && i < CHECK_FAMILY_COUNT; i++)
        if (FAMILIES[i]->batch)
            r = FAMILIES[i]->batch(c, c->state[i], th, th->local[i], b);
    for (size_t i = 0; r == 0 && i < b->count; i++) {
        const struct peet_record *x = &b->records[i];
        if (x->kind == PEET_BLOCK)
            position += x->size;
        else if (x->kind == PEET_EVENT)
            r = check_event(c, th, &b->events[x->id], position);
        else
            references++;
    }
    c->totals.instructions += position - b->position;
    c->totals.references += references;
    th->position = position;
    if (c->config->progress)
        progress_at(c->config->progress, c->totals.instructions);
    return r;
}

/* Checks all records of a cursor: of one thread, or of all threads of a pipe. */
static int check_cursor(struct check *c, struct peet_cursor *cursor, struct check_thread *th)
{
    struct peet_batch b;
    int r;

    while ((r = peet_cursor_next(cursor, &b, c->err)) != 0) {
        if (r == PEET_ERR_DAMAGED) {
            c->totals.damaged++;
            uint64_t key;
            uint32_t tag;
            struct check_thread **each;
            for (size_t at = 0; (each = map_next(&c->threads, &at, &key, &tag));)
                check_lose(c, *each); /* of a pipe, the thread of a damaged chunk is unknown */
            continue;
        }
        if (r < 0)
            return r;
        if ((!th || th->id != b.thread) && (r = get_thread(c, b.thread, &th)) < 0)
            return r;
        if ((r = check_batch(c, th, &b)) < 0)
            return r;
    }
    return 0;
}

/* ---- passes ---- */

/* Passes the events of a thread to the families that scan. */
static int scan_thread(struct check *c, const struct check_thread *th)
{
    struct peet_cursor *cursor;
    struct peet_batch b;
    int r = peet_cursor_open(c->trace, th->id, PEET_WANT_LOOPS, &cursor, c->err);

    if (r < 0)
        return r;
    while ((r = peet_cursor_next(cursor, &b, c->err)) != 0) {
        if (r < 0 && r != PEET_ERR_DAMAGED)
            break;
        for (size_t i = 0; r > 0 && i < b.count; i++)
            for (int j = 0; b.records[i].kind == PEET_EVENT && j < CHECK_FAMILY_COUNT && r > 0; j++)
                if (FAMILIES[j]->scan && FAMILIES[j]->scan(c, c->state[j], th, &b.events[b.records[i].id]) < 0)
                    r = PEET_ERR_MEMORY;
        if (r == PEET_ERR_MEMORY)
            break;
    }
    peet_cursor_free(cursor);
    return r;
}

static int check_file(struct check *c)
{
    const struct peet_thread *t;
    struct check_thread *th;
    struct peet_cursor *cursor;
    bool scan = false;
    int r = 0;

    for (int i = 0; r >= 0 && i < CHECK_FAMILY_COUNT; i++)
        if (FAMILIES[i]->wants_scan && (r = FAMILIES[i]->wants_scan(c, c->state[i])) > 0)
            scan = true;
    if (r > 0)
        r = 0;
    for (size_t i = 0; scan && r == 0 && (t = peet_trace_thread(c->trace, i)); i++)
        r = scan_thread(c, &(struct check_thread){ .id = t->id, .process = t->process, .info = t });
    for (size_t i = 0; r == 0 && (t = peet_trace_thread(c->trace, i)); i++) {
        if ((r = get_thread(c, t->id, &th)) < 0 || (r = peet_cursor_open(c->trace, t->id, 0, &cursor, c->err)) < 0)
            break;
        r = check_cursor(c, cursor, th);
        peet_cursor_free(cursor);
        if (r == 0)
            r = end_thread(c, th);
    }
    return r;
}

static int check_pipe(struct check *c)
{
    struct peet_cursor *cursor;
    const struct peet_thread *t;
    struct check_thread *th;
    int r = peet_cursor_open(c->trace, PEET_ALL_THREADS, 0, &cursor, c->err);

    if (r < 0)
        return r;
    r = check_cursor(c, cursor, NULL);
    peet_cursor_free(cursor);
    /* Now all threads are known, also those without records. */
    for (size_t i = 0; r == 0 && (t = peet_trace_thread(c->trace, i)); i++)
        if ((r = get_thread(c, t->id, &th)) == 0)
            r = end_thread(c, th);
    return r;
}

/* Whether a thread was created by one that was left out. */
static bool lacks_parents(const struct check *c)
{
    const struct peet_thread *t;

    for (size_t i = 0; (t = peet_trace_thread(c->trace, i)); i++)
        if (t->parent && !find_info(c, t->parent))
            return true;
    return false;
}

static int check_finish(struct check *c)
{
    int r = 0;

    c->whole = !peet_trace_problem(c->trace, 0) && c->totals.damaged == 0 && !lacks_parents(c)
               && !peet_trace_meta_get(c->trace, "stopped");
    if (!c->whole)
        check_note(c, "parts of the trace are missing: what several threads must do together was not checked");
    else if (c->has_gaps)
        check_note(c, "the trace has gaps: what may have happened in them counts as a warning only");
    if (peet_trace_lacks_order(c->trace))
        check_note(c, "%s", peet_trace_lacks_order(c->trace));
    for (int i = 0; r == 0 && i < CHECK_FAMILY_COUNT; i++)
        if (FAMILIES[i]->finish)
            r = FAMILIES[i]->finish(c, c->state[i]);
    return r;
}

int check_trace(struct peet_trace *t, const struct check_config *config, struct check_totals *ret, struct peet_err *err)
{
    struct peet_err own;
    struct check c = { .trace = t, .config = config, .err = err ? err : &own };
    struct check_thread **th;
    uint64_t key;
    uint32_t tag;
    int r = 0;

    c.knows_memory = !peet_trace_meta_get(t, "memory");
    c.threads.value_size = sizeof(struct check_thread *);
    for (int i = 0; r == 0 && i < CHECK_FAMILY_COUNT; i++)
        if (FAMILIES[i]->state_size && !(c.state[i] = calloc(1, FAMILIES[i]->state_size)))
            r = check_no_memory(&c);
    if (r == 0)
        r = peet_trace_is_pipe(t) ? check_pipe(&c) : check_file(&c);
    if (r == 0)
        r = check_finish(&c);
    for (size_t at = 0; (th = map_next(&c.threads, &at, &key, &tag));)
        thread_free(*th);
    map_release(&c.threads);
    for (int i = 0; i < CHECK_FAMILY_COUNT; i++) {
        if (c.state[i] && FAMILIES[i]->release)
            FAMILIES[i]->release(c.state[i]);
        free(c.state[i]);
    }
    if (r == 0)
        *ret = c.totals;
    return r;
}
