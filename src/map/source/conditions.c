/* SPDX-License-Identifier: MIT */
/* Reads critical sections from a trace. The first pass reads events: turns at mutexes, signals, and the mutexes of conditions. The
 * second pass reads the bytes of turns at mutexes that have conditions. */
#include "map/source/conditions.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "map/source/conditions_in.h"

enum {
    MOST_RANGES = 1 << 16, /* byte ranges of a turn; if it has more, they are merged into one */
    MOST_OPEN = 64         /* mutexes that a thread holds at a time; further ones are left out */
};

void *sections_room(void *array, size_t count, size_t size)
{
    if (count & (count - 1))
        return array;
    return realloc(array, (count ? 2 * count : 1) * size);
}

/* Appends an element to array NAME with count NAMEs. */
#define ADD(owner, name, err) \
    __extension__({ \
        void *bigger_ = sections_room((owner)->name, (owner)->name##s, sizeof *(owner)->name); \
        if (!bigger_) \
            return sections_no_memory(err); \
        (owner)->name = bigger_; \
        &(owner)->name[(owner)->name##s++]; \
    })

/* A pass over the stream of a thread. */
struct section_reader {
    struct sections *s;
    uint32_t thread, process;  /* index of the thread; number of its process */
    uint64_t events;           /* read so far */
    uint32_t open[MOST_OPEN];  /* open turns, the newest last */
    uint32_t depth[MOST_OPEN]; /* of each: acquisitions of its mutex that were not released */
    uint32_t opens;            /* open turns */
    uint32_t last;             /* turn that ended last; CONDITION_NONE: none */
    /* second pass: */
    size_t next;                     /* turn that begins next */
    struct byte_range *read, *wrote; /* bytes of all open turns */
    size_t reads, wrotes;
    size_t first_read[MOST_OPEN], first_wrote[MOST_OPEN]; /* of each open turn: its first element in read, wrote */
};

/* ---- the first pass ---- */

static int sections_mutex(struct sections *s, uint64_t addr, uint32_t process, uint32_t *ret)
{
    uint32_t *index = map_put(&s->mutex_by_addr, addr, process);

    if (!index)
        return sections_no_memory(s->err);
    if (!*index) {
        *ADD(s, mutexe, s->err) = (struct mutex){ .addr = addr, .process = process };
        *index = (uint32_t)s->mutexes;
    }
    *ret = *index - 1;
    return 0;
}

static int sections_condition(struct sections *s, uint64_t addr, uint32_t process, uint32_t *ret)
{
    uint32_t *index = map_put(&s->condition_by_addr, addr, process);

    if (!index)
        return sections_no_memory(s->err);
    if (!*index) {
        *ADD(s, condition, s->err) = (struct condition){ .addr = addr, .process = process, .mutex = CONDITION_NONE };
        *index = (uint32_t)s->conditions;
    }
    *ret = *index - 1;
    return 0;
}

/* Notes that a section of a thread and call site has waited at a condition with a known mutex, or has signalled it. */
static int sections_note(struct sections *s, uint64_t site, uint32_t condition, uint32_t thread, bool waits)
{
    struct site_info *all = map_put(&s->info, site, condition),
                     *own = map_put(&s->info_of_thread, site_key(site, condition), thread),
                     *any = map_put(&s->info_of_mutex, site_key(site, s->condition[condition].mutex), thread);

    if (!all || !own || !any)
        return -1;
    all->waits |= waits;
    own->waits |= waits;
    any->waits |= waits;
    all->signals |= !waits;
    own->signals |= !waits;
    any->signals |= !waits;
    return 0;
}

static struct turn *section_open_turn(const struct section_reader *r, uint32_t mutex, uint32_t *ret_at)
{
    for (uint32_t i = r->opens; i-- > 0;) {
        if (r->s->turn[r->open[i]].mutex == mutex) {
            *ret_at = i;
            return &r->s->turn[r->open[i]];
        }
    }
    return NULL;
}

static int section_begin(struct section_reader *r, const struct turn *turn)
{
    if (r->opens == MOST_OPEN)
        return 0;
    *ADD(r->s, turn, r->s->err) = *turn;
    r->depth[r->opens] = 1;
    r->open[r->opens++] = (uint32_t)r->s->turns - 1;
    return 0;
}

static void section_end(struct section_reader *r, uint32_t at)
{
    r->last = r->open[at];
    r->s->turn[r->last].end = r->events;
    r->opens--;
    memmove(&r->open[at], &r->open[at + 1], (r->opens - at) * sizeof *r->open);
    memmove(&r->depth[at], &r->depth[at + 1], (r->opens - at) * sizeof *r->depth);
}

static int section_lock(struct section_reader *r, const struct peet_event *e)
{
    uint32_t mutex = 0, at = 0;
    int code = sections_mutex(r->s, e->arg[0], r->process, &mutex);

    if (code < 0)
        return code;
    if (section_open_turn(r, mutex, &at)) {
        r->depth[at]++;
        return 0;
    }
    return section_begin(r, &(struct turn){ .begin = r->events,
                                            .site = e->site,
                                            .thread = r->thread,
                                            .mutex = mutex,
                                            .woken = CONDITION_NONE,
                                            .waits = CONDITION_NONE });
}

static int section_unlock(struct section_reader *r, const struct peet_event *e)
{
    uint32_t mutex = 0, at = 0;
    int code = sections_mutex(r->s, e->arg[0], r->process, &mutex);

    if (code == 0 && section_open_turn(r, mutex, &at) && --r->depth[at] == 0)
        section_end(r, at);
    return code;
}

static int section_wait(struct section_reader *r, const struct peet_event *e)
{
    struct sections *s = r->s;
    bool is_woken = e->kind == PEET_EV_cond_wait || e->arg[2] == 0;
    uint32_t mutex = 0, condition = 0, at = 0;
    int code = sections_mutex(s, e->arg[1], r->process, &mutex);
    struct turn *before = code < 0 ? NULL : section_open_turn(r, mutex, &at);

    if (code == 0)
        code = sections_condition(s, e->arg[0], r->process, &condition);
    if (code < 0 || !before)
        return code;
    s->condition[condition].mutex = mutex;
    s->condition[condition].has_waits = true;
    before->waits = condition;
    uint64_t site = before->site;
    section_end(r, at);
    if (sections_note(s, site, condition, r->thread, true) < 0)
        return sections_no_memory(s->err);
    return section_begin(r, &(struct turn){ .begin = r->events,
                                            .site = site,
                                            .thread = r->thread,
                                            .mutex = mutex,
                                            .woken = is_woken ? condition : CONDITION_NONE,
                                            .waits = CONDITION_NONE,
                                            .continues = true });
}

static int section_signal(struct section_reader *r, const struct peet_event *e)
{
    struct sections *s = r->s;
    uint32_t condition = 0;
    int code = sections_condition(s, e->arg[0], r->process, &condition);

    if (code < 0)
        return code;
    s->condition[condition].is_broadcast |= e->kind == PEET_EV_cond_broadcast;
    *ADD(s, signal, s->err) = (struct signal){ .event = r->events,
                                               .thread = r->thread,
                                               .condition = condition,
                                               .turn = r->opens ? r->open[r->opens - 1] : r->last };
    return 0;
}

/* Event lock_turn, which follows the event that acquired the mutex. */
static int section_number(struct section_reader *r, const struct peet_event *e)
{
    uint32_t mutex = 0, at = 0;
    int code = sections_mutex(r->s, e->arg[0], r->process, &mutex);
    struct turn *turn = code < 0 ? NULL : section_open_turn(r, mutex, &at);

    if (turn && turn->begin == r->events - 1)
        turn->number = e->arg[1];
    return code;
}

static int section_event(struct section_reader *r, const struct peet_event *e)
{
    r->events++;
    switch (e->kind) {
    case PEET_EV_mutex_trylock: return e->arg[1] ? 0 : section_lock(r, e);
    case PEET_EV_mutex_lock: return section_lock(r, e);
    case PEET_EV_mutex_unlock: return section_unlock(r, e);
    case PEET_EV_cond_wait:
    case PEET_EV_cond_timedwait: return section_wait(r, e);
    case PEET_EV_cond_signal:
    case PEET_EV_cond_broadcast: return section_signal(r, e);
    case PEET_EV_lock_turn: return section_number(r, e);
    default: return 0;
    }
}

static int section_read_events(struct section_reader *r, struct peet_cursor *c)
{
    struct peet_batch b;
    int code;

    while ((code = peet_cursor_next(c, &b, r->s->err)) != 0) {
        if (code < 0 && code != PEET_ERR_DAMAGED)
            return code;
        for (size_t i = 0; code > 0 && i < b.count; i++) {
            int failed = b.records[i].kind == PEET_EVENT ? section_event(r, &b.events[b.records[i].id]) : 0;
            if (failed < 0)
                return failed;
        }
    }
    return 0;
}

/* ---- between the passes ---- */

/* The thread's last turn at a mutex that began before an event, or CONDITION_NONE. */
static uint32_t sections_turn_before(const struct sections *s, uint32_t thread, uint32_t mutex, uint64_t event)
{
    size_t low = s->first_turn[thread], high = s->first_turn[thread + 1];

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (s->turn[middle].begin < event)
            low = middle + 1;
        else
            high = middle;
    }
    while (low-- > s->first_turn[thread])
        if (s->turn[low].mutex == mutex)
            return (uint32_t)low;
    return CONDITION_NONE;
}

/* A signal belongs to the last turn of its thread at the condition's mutex that began before it. A condition without waits has the mutex
 * that the thread of its first signal holds, or released last. */
static int sections_connect(struct sections *s)
{
    for (size_t i = 0; i < s->signals; i++) {
        struct condition *c = &s->condition[s->signal[i].condition];
        if (c->mutex == CONDITION_NONE && s->signal[i].turn != CONDITION_NONE)
            c->mutex = s->turn[s->signal[i].turn].mutex;
    }
    for (size_t i = 0; i < s->conditions; i++)
        if (s->condition[i].mutex != CONDITION_NONE)
            s->mutexe[s->condition[i].mutex].has_conditions = true;
    for (size_t i = 0; i < s->signals; i++) {
        struct signal *x = &s->signal[i];
        const struct condition *c = &s->condition[x->condition];
        uint32_t turn =
            c->mutex == CONDITION_NONE ? CONDITION_NONE : sections_turn_before(s, x->thread, c->mutex, x->event);
        if (turn == CONDITION_NONE)
            continue;
        x->next = s->turn[turn].signals;
        s->turn[turn].signals = (uint32_t)i + 1;
        if (sections_note(s, s->turn[turn].site, x->condition, x->thread, false) < 0)
            return sections_no_memory(s->err);
    }
    return 0;
}

/* ---- the second pass: bytes ---- */

static bool range_has(const struct byte_range *x, uint64_t from, uint64_t to)
{
    return x->from <= from && to <= x->to;
}

static int section_add_range(struct section_reader *r, bool writes, uint64_t from, uint64_t to)
{
    struct byte_range **range = writes ? &r->wrote : &r->read;
    size_t *count = writes ? &r->wrotes : &r->reads;
    size_t first = writes ? r->first_wrote[r->opens - 1] : r->first_read[r->opens - 1]; /* of the innermost turn */

    for (size_t i = *count, n = 0; i-- > first && n < 8; n++)
        if (range_has(&(*range)[i], from, to))
            return 0;
    if (*count > first && (*range)[*count - 1].to == from) {
        (*range)[*count - 1].to = to;
        return 0;
    }
    if (*count == MOST_RANGES) {
        struct byte_range *whole = *range;
        for (size_t i = 1; i < *count; i++) {
            whole->from = (*range)[i].from < whole->from ? (*range)[i].from : whole->from;
            whole->to = (*range)[i].to > whole->to ? (*range)[i].to : whole->to;
        }
        *count = 1;
        memset(writes ? r->first_wrote : r->first_read, 0, sizeof r->first_read);
    }
    void *bigger = sections_room(*range, *count, sizeof **range);
    if (!bigger)
        return sections_no_memory(r->s->err);
    *range = bigger;
    (*range)[(*count)++] = (struct byte_range){ from, to };
    return 0;
}

static int section_touch(struct section_reader *r, unsigned kind, uint64_t addr, uint64_t size)
{
    int code = 0;

    if (r->opens == 0 || size == 0 || addr + size < addr)
        return 0;
    bool own = false;
    for (size_t i = r->wrotes, n = 0; kind != PEET_STORE && !own && i-- > 0 && n < 64; n++)
        own = range_has(&r->wrote[i], addr, addr + size);
    if ((kind == PEET_LOAD || kind == PEET_UPDATE) && !own)
        code = section_add_range(r, false, addr, addr + size);
    if (code == 0 && (kind == PEET_STORE || kind == PEET_UPDATE))
        code = section_add_range(r, true, addr, addr + size);
    return code;
}

static int section_touch_range(struct section_reader *r, const struct peet_event *e)
{
    const uint64_t *arg = e->arg;
    int code = 0;

    switch (e->kind) {
    case PEET_EV_range_read: return section_touch(r, PEET_LOAD, arg[0], arg[1]);
    case PEET_EV_range_write: return section_touch(r, PEET_STORE, arg[0], arg[1]);
    case PEET_EV_range_copy:
        code = section_touch(r, PEET_LOAD, arg[1], arg[2]);
        return code < 0 ? code : section_touch(r, PEET_STORE, arg[0], arg[2]);
    case PEET_EV_range_compare:
        code = section_touch(r, PEET_LOAD, arg[0], arg[2]);
        return code < 0 ? code : section_touch(r, PEET_LOAD, arg[1], arg[2]);
    default: return 0;
    }
}

static int range_rising(const void *a, const void *b)
{
    const struct byte_range *x = a, *y = b;

    return x->from != y->from ? (x->from < y->from ? -1 : 1) : x->to < y->to ? -1 : x->to > y->to;
}

/* Sorts ranges, merges those that overlap, and appends them to s->range. */
static int sections_keep(struct sections *s, struct byte_range *all, size_t first, size_t end, struct byte_ranges *ret)
{
    size_t count = end - first;
    struct byte_range *from = count ? all + first : NULL; /* all is NULL while there is none */

    *ret = (struct byte_ranges){ s->ranges, 0 };
    if (count)
        qsort(from, count, sizeof *from, range_rising);
    for (size_t i = 0; i < count; i++) {
        if (ret->count && from[i].from <= s->range[s->ranges - 1].to) {
            struct byte_range *last = &s->range[s->ranges - 1];
            last->to = from[i].to > last->to ? from[i].to : last->to;
            continue;
        }
        *ADD(s, range, s->err) = from[i];
        ret->count++;
    }
    return 0;
}

/* A turn ends: keeps its bytes. This sorts bytes of the turns around it, which have no order. */
static int section_keep_turn(struct section_reader *r, uint32_t at)
{
    struct sections *s = r->s;
    struct turn *turn = &s->turn[r->open[at]];
    int code = sections_keep(s, r->read, r->first_read[at], r->reads, &turn->read);

    if (code == 0)
        code = sections_keep(s, r->wrote, r->first_wrote[at], r->wrotes, &turn->wrote);
    for (uint32_t i = at + 1; i < r->opens; i++) {
        r->open[i - 1] = r->open[i];
        r->first_read[i - 1] = r->first_read[i];
        r->first_wrote[i - 1] = r->first_wrote[i];
    }
    if (--r->opens == 0)
        r->reads = r->wrotes = 0;
    return code;
}

/* The next event: ends and begins turns at mutexes with conditions. */
static int section_step(struct section_reader *r)
{
    struct sections *s = r->s;
    int code = 0;

    r->events++;
    for (uint32_t i = r->opens; code == 0 && i-- > 0;)
        if (s->turn[r->open[i]].end == r->events)
            code = section_keep_turn(r, i);
    for (; r->next < s->first_turn[r->thread + 1] && s->turn[r->next].begin <= r->events; r->next++) {
        const struct turn *turn = &s->turn[r->next];
        if (turn->end && s->mutexe[turn->mutex].has_conditions && r->opens < MOST_OPEN) {
            r->open[r->opens] = (uint32_t)r->next;
            r->first_read[r->opens] = r->reads;
            r->first_wrote[r->opens++] = r->wrotes;
        }
    }
    return code;
}

static int section_repeat(struct section_reader *r, const struct peet_repeat *x)
{
    int code = 0;

    for (uint64_t iteration = 0; r->opens && code == 0 && iteration < x->times; iteration++)
        for (size_t i = 0; code == 0 && i < x->count; i++)
            if (peet_is_reference(&x->records[i]))
                code = section_touch(r, x->records[i].kind, x->records[i].addr + iteration * x->step[i],
                                     x->records[i].size);
    return code;
}

static int section_read_bytes(struct section_reader *r, struct peet_cursor *c)
{
    struct peet_batch b;
    int code;

    while ((code = peet_cursor_next(c, &b, r->s->err)) != 0) {
        if (code < 0 && code != PEET_ERR_DAMAGED)
            return code;
        int failed = 0;
        for (size_t i = 0; code > 0 && failed == 0 && i < b.count; i++) {
            const struct peet_record *x = &b.records[i];
            if (x->kind == PEET_EVENT) {
                failed = section_touch_range(r, &b.events[x->id]);
                failed = failed < 0 ? failed : section_step(r);
            } else if (x->kind == PEET_REPEAT) {
                failed = section_repeat(r, &b.repeats[x->id]);
            } else if (peet_is_reference(x)) {
                failed = section_touch(r, x->kind, x->addr, x->size);
            }
        }
        if (failed < 0)
            return failed;
    }
    return 0;
}

/* ---- both passes ---- */

static int sections_read_thread(struct sections *s, uint32_t index, const struct peet_thread *th, bool bytes)
{
    struct section_reader r = { .s = s, .thread = index, .process = th->process, .last = CONDITION_NONE };
    struct peet_cursor *c;
    int code = peet_cursor_open(s->trace, th->id, bytes ? PEET_WANT_REPEATS : PEET_WANT_LOOPS, &c, s->err);

    if (code < 0)
        return code;
    r.next = bytes ? s->first_turn[index] : 0;
    code = bytes ? section_read_bytes(&r, c) : section_read_events(&r, c);
    peet_cursor_free(c);
    free(r.read);
    free(r.wrote);
    return code;
}

static int sections_read(struct sections *s)
{
    const struct peet_thread *th;
    int code = 0;

    while (peet_trace_thread(s->trace, s->threads))
        s->threads++;
    s->first_turn = calloc((size_t)s->threads + 1, sizeof *s->first_turn);
    if (!s->first_turn)
        return sections_no_memory(s->err);
    for (uint32_t i = 0; code == 0 && (th = peet_trace_thread(s->trace, i)); i++) {
        code = sections_read_thread(s, i, th, false);
        s->first_turn[i + 1] = s->turns;
    }
    if (code == 0)
        code = sections_connect(s);
    for (uint32_t i = 0; code == 0 && (th = peet_trace_thread(s->trace, i)); i++)
        if (s->first_turn[i] < s->first_turn[i + 1])
            code = sections_read_thread(s, i, th, true);
    return code;
}

static void sections_release(struct sections *s)
{
    free(s->turn);
    free(s->first_turn);
    free(s->signal);
    free(s->condition);
    free(s->mutexe);
    free(s->range);
    map_release(&s->condition_by_addr);
    map_release(&s->mutex_by_addr);
    map_release(&s->info);
    map_release(&s->info_of_thread);
    map_release(&s->info_of_mutex);
}

static bool trace_has_event(struct peet_trace *t, const uint8_t *kinds, size_t count)
{
    for (uint32_t i = 1; i < peet_trace_items(t); i++) {
        const struct peet_event_item *e = peet_trace_event(t, i);
        for (size_t k = 0; e && k < count; k++)
            if (e->kind == kinds[k])
                return true;
    }
    return false;
}

int condition_order_read(struct condition_order *o, struct peet_trace *t, struct peet_err *err)
{
    static const uint8_t CONDITIONS[] = { PEET_EV_cond_wait, PEET_EV_cond_timedwait, PEET_EV_cond_signal,
                                          PEET_EV_cond_broadcast },
                         TURN[] = { PEET_EV_lock_turn };
    struct sections s = { .trace = t, .err = err };
    int r = 0;

    *o = (struct condition_order){ 0 };
    if (!peet_trace_is_pipe(t) && !trace_has_event(t, CONDITIONS, sizeof CONDITIONS))
        return 0;
    o->is_unknown = peet_trace_is_pipe(t) || !trace_has_event(t, TURN, sizeof TURN);
    if (o->is_unknown)
        return 0;
    s.condition_by_addr.value_size = s.mutex_by_addr.value_size = sizeof(uint32_t);
    s.info.value_size = s.info_of_thread.value_size = s.info_of_mutex.value_size = sizeof(struct site_info);
    r = sections_read(&s);
    if (r == 0)
        r = condition_arcs_find(o, &s);
    sections_release(&s);
    if (r < 0)
        condition_order_release(o);
    return r;
}

void condition_order_release(struct condition_order *o)
{
    free(o->arc);
    free(o->wait);
    *o = (struct condition_order){ 0 };
}
