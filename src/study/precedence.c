/* SPDX-License-Identifier: MIT */
/* Reading: streams are cut into pieces at the events that matter to other threads, and what these events are about is numbered.
 * A lock that its thread holds already is not taken again, so that recursive locks need no care later. */
#include "study/precedence.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

/* What an event does to the piece that it ends; those that are not here end none. */
enum role { ROLE_NONE, ROLE_PLAIN, ROLE_TAKE, ROLE_TRY, ROLE_GIVE, ROLE_MEET, ROLE_VALUE, ROLE_CONDITION, ROLE_LOOP };

/* clang-format off */
static const struct {
    uint8_t role;
    uint8_t class; /* enum object_class */
    bool shared;
} CUT[PEET_EVENT_KINDS] = {
    [PEET_EV_thread_create]    = { ROLE_PLAIN,     0,                false },
    [PEET_EV_thread_join]      = { ROLE_PLAIN,     0,                false },
    [PEET_EV_fork]             = { ROLE_PLAIN,     0,                false },
    [PEET_EV_mutex_lock]       = { ROLE_TAKE,      OBJECT_LOCK,      false },
    [PEET_EV_mutex_trylock]    = { ROLE_TRY,       OBJECT_LOCK,      false },
    [PEET_EV_mutex_unlock]     = { ROLE_GIVE,      OBJECT_LOCK,      false },
    [PEET_EV_rwlock_rdlock]    = { ROLE_TAKE,      OBJECT_LOCK,      true  },
    [PEET_EV_rwlock_tryrdlock] = { ROLE_TRY,       OBJECT_LOCK,      true  },
    [PEET_EV_rwlock_wrlock]    = { ROLE_TAKE,      OBJECT_LOCK,      false },
    [PEET_EV_rwlock_trywrlock] = { ROLE_TRY,       OBJECT_LOCK,      false },
    [PEET_EV_rwlock_unlock]    = { ROLE_GIVE,      OBJECT_LOCK,      false },
    [PEET_EV_spin_lock]        = { ROLE_TAKE,      OBJECT_LOCK,      false },
    [PEET_EV_spin_trylock]     = { ROLE_TRY,       OBJECT_LOCK,      false },
    [PEET_EV_spin_unlock]      = { ROLE_GIVE,      OBJECT_LOCK,      false },
    [PEET_EV_cond_wait]        = { ROLE_CONDITION, OBJECT_CONDITION, false },
    [PEET_EV_cond_timedwait]   = { ROLE_CONDITION, OBJECT_CONDITION, false },
    [PEET_EV_cond_signal]      = { ROLE_VALUE,     OBJECT_CONDITION, false },
    [PEET_EV_cond_broadcast]   = { ROLE_VALUE,     OBJECT_CONDITION, false },
    [PEET_EV_barrier_wait]     = { ROLE_MEET,      OBJECT_BARRIER,   false },
    [PEET_EV_sem_wait]         = { ROLE_VALUE,     OBJECT_SEMAPHORE, false },
    [PEET_EV_sem_trywait]      = { ROLE_VALUE,     OBJECT_SEMAPHORE, false },
    [PEET_EV_sem_post]         = { ROLE_VALUE,     OBJECT_SEMAPHORE, false },
    [PEET_EV_once]             = { ROLE_VALUE,     OBJECT_ONCE,      false },
    [PEET_EV_post]             = { ROLE_VALUE,     OBJECT_POST,      false },
    [PEET_EV_wait]             = { ROLE_VALUE,     OBJECT_POST,      false },
    [PEET_EV_doall_fork]       = { ROLE_LOOP,      0,                false },
    [PEET_EV_doall_start]      = { ROLE_LOOP,      0,                false },
    [PEET_EV_doall_finish]     = { ROLE_LOOP,      0,                false },
    [PEET_EV_doall_join]       = { ROLE_LOOP,      0,                false },
};
/* clang-format on */

enum { NAMED_BYTES = 4096 }; /* smaller allocations have no name of their own: there may be billions */

struct held {
    uint32_t object, depth;
    bool shared;
};

/* A parallel loop, or an iteration of it, that has begun in this thread. */
struct open_loop {
    bool is_loop;
    uint32_t fork;   /* the piece that ended with it */
    size_t finished; /* where its iterations begin in track.finished */
};

/* A thread while it is read. Numbers of pieces are its own. */
struct track {
    struct lane lane;
    struct piece *piece;
    size_t pieces, piece_room;
    struct share *share;
    size_t shares, share_room;
    struct arc *arc;
    size_t arcs, arc_room;
    struct held *held;
    size_t helds, held_room;
    struct open_loop *open;
    size_t opens, open_room;
    uint32_t *finished; /* last pieces of iterations whose loop goes on */
    size_t finisheds, finished_room;
    uint64_t begun, begun_references; /* where the piece at hand began */
    uint64_t *count;                  /* instructions of the piece at hand, by function */
    size_t counts;
    uint32_t *touched; /* functions whose count is not 0 */
    size_t touches, touched_room;
};

/* Which function a block is in, by process: 0 is not known yet, else one more than the function's number. */
struct code {
    uint32_t process, *of_block;
    uint32_t blocks;
};

struct reader {
    struct precedence *p;
    struct track **track;
    size_t tracks, track_room, last;
    struct code *code;
    size_t codes, code_room;
    struct map uses;  /* by barrier and lane: somebody was there */
    struct map waits; /* by condition and thread: how often it waited there */
    struct peet_err *err;
};

static int no_memory(struct peet_err *err)
{
    return err_set(err, PEET_ERR_MEMORY, "no memory for the precedence graph");
}

void *study_room(void *array, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return array;
    void *bigger = realloc(array, (*room * 2 + 16) * size);
    if (bigger)
        *room = *room * 2 + 16;
    return bigger;
}

/* Makes room for one more element of an array that is called NAME, whose number is NAMEs and whose capacity is ROOM. */
#define GROW(owner, name, number, capacity, error) \
    __extension__({ \
        void *bigger_ = study_room((owner)->name, (owner)->number, &(owner)->capacity, sizeof *(owner)->name); \
        if (!bigger_) \
            return no_memory(error); \
        (owner)->name = bigger_; \
        &(owner)->name[(owner)->number++]; \
    })

/* ---- what events are about ---- */

static int object_find(struct precedence *p, enum object_class class, uint32_t process, uint64_t addr, uint32_t *ret,
                       struct peet_err *err)
{
    /* Addresses have 48 or 57 bits: the class goes on top. */
    uint64_t key = addr ^ (uint64_t) class << 60;
    uint32_t *number;

    if ((number = map_find(&p->objects_by_name, key, process))) {
        *ret = *number;
        return 0;
    }
    *ret = (uint32_t)p->objects;
    *GROW(p, object, objects, object_room, err) = (struct object){ .addr = addr, .process = process, .class = class };
    if (!(number = map_put(&p->objects_by_name, key, process)))
        return no_memory(err);
    *number = *ret;
    return 0;
}

static int name_bytes(struct reader *r, const struct track *t, const struct peet_event *e)
{
    struct named n = {
        .process = t->lane.process, .thread = t->lane.id, .kind = (uint8_t)e->kind, .site = e->site, .start = e->arg[0]
    };

    switch (e->kind) {
    case PEET_EV_name_data:
        n.string = e->arg[0];
        n.start = e->arg[1];
        n.size = e->arg[2];
        break;
    case PEET_EV_calloc: n.size = e->arg[1] * e->arg[2]; break;
    case PEET_EV_realloc:
    case PEET_EV_memalign: n.size = e->arg[2]; break;
    default: n.size = e->arg[1]; break;
    }
    bool told = e->kind == PEET_EV_name_data || e->kind == PEET_EV_map;
    if (n.start && n.size && (told || n.size >= NAMED_BYTES))
        *GROW(r->p, named, nameds, named_room, r->err) = n;
    return 0;
}

/* ---- pieces ---- */

/* Ends the piece at hand with the event. */
static int cut(struct reader *r, struct track *t, const struct peet_event *e, uint32_t object, uint64_t value)
{
    struct lane *l = &t->lane;

    *GROW(t, piece, pieces, piece_room, r->err) = (struct piece){
        .instructions = l->instructions - t->begun,
        .references = l->references - t->begun_references,
        .position = t->begun,
        .events = l->events,
        .object = object,
        .lock = PIECE_NONE,
        .value = value,
        .site = e->site,
        .end = (uint8_t)e->kind,
        .share = t->shares,
    };
    t->begun = l->instructions;
    t->begun_references = l->references;
    for (size_t i = 0; i < t->touches; i++) {
        *GROW(t, share, shares, share_room, r->err) = (struct share){ t->count[t->touched[i]], t->touched[i] };
        t->count[t->touched[i]] = 0;
    }
    t->touches = 0;
    return 0;
}

static struct held *held_find(const struct track *t, uint32_t object)
{
    for (size_t i = t->helds; i-- > 0;)
        if (t->held[i].object == object)
            return &t->held[i];
    return NULL;
}

static int take(struct reader *r, struct track *t, const struct peet_event *e)
{
    uint32_t object;
    int code = object_find(r->p, OBJECT_LOCK, t->lane.process, e->arg[0], &object, r->err);
    struct held *held = code < 0 ? NULL : held_find(t, object);
    bool shared = CUT[e->kind].shared;

    if (code < 0 || (CUT[e->kind].role == ROLE_TRY && e->arg[1] != 0))
        return code;
    if (held) {
        held->depth++;
        return 0;
    }
    *GROW(t, held, helds, held_room, r->err) = (struct held){ object, 1, shared };
    return cut(r, t, e, object, !shared);
}

static int give(struct reader *r, struct track *t, const struct peet_event *e)
{
    uint32_t object;
    int code = object_find(r->p, OBJECT_LOCK, t->lane.process, e->arg[0], &object, r->err);
    struct held *held = code < 0 ? NULL : held_find(t, object);

    if (!held || --held->depth > 0)
        return code; /* taken before the recording began, or not for the last time */
    bool shared = held->shared;
    *held = t->held[--t->helds];
    return cut(r, t, e, object, !shared);
}

static int wait_at_condition(struct reader *r, struct track *t, const struct peet_event *e)
{
    uint32_t condition, lock;
    int code = object_find(r->p, OBJECT_CONDITION, t->lane.process, e->arg[0], &condition, r->err);

    if (code == 0)
        code = object_find(r->p, OBJECT_LOCK, t->lane.process, e->arg[1], &lock, r->err);
    if (code < 0)
        return code;
    bool woken = e->kind == PEET_EV_cond_wait || e->arg[2] == 0;
    uint64_t *waits = map_put(&r->waits, condition, t->lane.id);
    if (!waits)
        return no_memory(r->err);
    *waits += woken;
    code = cut(r, t, e, condition, woken ? *waits : 0);
    if (code == 0 && held_find(t, lock))
        t->piece[t->pieces - 1].lock = lock;
    return code;
}

static int meet(struct reader *r, struct track *t, const struct peet_event *e)
{
    uint32_t object;
    int code = object_find(r->p, OBJECT_BARRIER, t->lane.process, e->arg[0], &object, r->err);

    if (code < 0)
        return code;
    struct object *o = &r->p->object[object];
    uint8_t *used = map_put(&r->uses, object, t->lane.id);
    if (!used)
        return no_memory(r->err);
    o->users += !*used;
    *used = 1;
    o->parties = o->parties == 0 || e->arg[1] < o->parties ? e->arg[1] : o->parties;
    return cut(r, t, e, object, e->arg[1]);
}

static int value(struct reader *r, struct track *t, const struct peet_event *e)
{
    uint32_t object;
    int code = object_find(r->p, CUT[e->kind].class, t->lane.process, e->arg[0], &object, r->err);

    if (code < 0 || (e->kind == PEET_EV_sem_trywait && e->arg[1] != 0))
        return code;
    return cut(r, t, e, object, e->arg[1]);
}

/* The piece between two iterations, or behind the last one, that has just ended: it needs the fork and nothing else, and who
 * waits for the loop waits for the iteration before it. */
static int detach(struct reader *r, struct track *t, const struct open_loop *loop)
{
    uint32_t control = (uint32_t)t->pieces - 1;

    t->piece[control].detached = true;
    *GROW(t, arc, arcs, arc_room, r->err) = (struct arc){ loop->fork, control, PEET_EV_doall_fork, true };
    *GROW(t, finished, finisheds, finished_room, r->err) = control - 1;
    return 0;
}

static int loop(struct reader *r, struct track *t, const struct peet_event *e)
{
    int code = cut(r, t, e, PIECE_NONE, e->arg[0]);
    uint32_t piece = (uint32_t)t->pieces - 1;

    if (code < 0)
        return code;
    bool behind = t->pieces > 1 && t->piece[piece - 1].end == PEET_EV_doall_finish;
    if (behind && t->opens && t->open[t->opens - 1].is_loop
        && (e->kind == PEET_EV_doall_start || e->kind == PEET_EV_doall_join))
        code = detach(r, t, &t->open[t->opens - 1]);
    if (code < 0)
        return code;
    if (e->kind == PEET_EV_doall_fork || e->kind == PEET_EV_doall_start) {
        *GROW(t, open, opens, open_room, r->err) =
            (struct open_loop){ e->kind == PEET_EV_doall_fork, piece, t->finisheds };
    } else if (e->kind == PEET_EV_doall_finish) {
        t->opens -= t->opens && !t->open[t->opens - 1].is_loop;
    } else {
        while (t->opens && !t->open[t->opens - 1].is_loop) /* left by a jump */
            t->opens--;
        if (!t->opens)
            return 0;
        size_t from = t->open[--t->opens].finished;
        for (size_t i = from; i < t->finisheds; i++)
            *GROW(t, arc, arcs, arc_room, r->err) = (struct arc){ t->finished[i], piece + 1, PEET_EV_doall_join, true };
        t->finisheds = from;
    }
    return 0;
}

static int other_event(struct reader *r, struct track *t, const struct peet_event *e)
{
    uint32_t object;
    int code;

    switch (e->kind) {
    case PEET_EV_gap:
        r->p->gaps++;
        r->p->missing += e->arg[0];
        return 0;
    case PEET_EV_spin_wait: r->p->spins++; return 0;
    case PEET_EV_sem_init:
        code = object_find(r->p, OBJECT_SEMAPHORE, t->lane.process, e->arg[0], &object, r->err);
        if (code == 0) {
            r->p->object[object].inits++;
            r->p->object[object].initial += e->arg[1];
        }
        return code;
    case PEET_EV_malloc:
    case PEET_EV_calloc:
    case PEET_EV_realloc:
    case PEET_EV_memalign:
    case PEET_EV_map:
    case PEET_EV_name_data: return name_bytes(r, t, e);
    default: return 0;
    }
}

static int event(struct reader *r, struct track *t, const struct peet_event *e)
{
    t->lane.events++;
    switch (e->kind < PEET_EVENT_KINDS ? CUT[e->kind].role : ROLE_NONE) {
    case ROLE_PLAIN: return cut(r, t, e, PIECE_NONE, e->arg[0]);
    case ROLE_TAKE:
    case ROLE_TRY: return take(r, t, e);
    case ROLE_GIVE: return give(r, t, e);
    case ROLE_MEET: return meet(r, t, e);
    case ROLE_VALUE: return value(r, t, e);
    case ROLE_CONDITION: return wait_at_condition(r, t, e);
    case ROLE_LOOP: return loop(r, t, e);
    default: return other_event(r, t, e);
    }
}

/* ---- instructions ---- */

static int function_find(struct reader *r, uint32_t process, uint64_t addr, uint32_t *ret)
{
    struct precedence *p = r->p;
    const struct peet_symbol *s = peet_trace_symbol(p->trace, process, addr);
    uint32_t *number = s ? map_find(&p->functions_by_name, (uint64_t)(uintptr_t)s, 0) : NULL;

    *ret = number ? *number : s ? (uint32_t)p->functions : 0;
    if (!s || number)
        return 0;
    *GROW(p, function, functions, function_room, r->err) = s->name;
    if (!(number = map_put(&p->functions_by_name, (uint64_t)(uintptr_t)s, 0)))
        return no_memory(r->err);
    *number = *ret;
    return 0;
}

/* The cache of the process, with room for all blocks that there are by now: a pipe may bring more. */
static int code_find(struct reader *r, uint32_t process, struct code **ret)
{
    uint32_t items = peet_trace_items(r->p->trace);
    struct code *c = NULL;

    for (size_t i = 0; i < r->codes && !c; i++)
        c = r->code[i].process == process ? &r->code[i] : NULL;
    if (!c)
        *(c = GROW(r, code, codes, code_room, r->err)) = (struct code){ .process = process };
    if (c->blocks < items) {
        uint32_t *bigger = realloc(c->of_block, items * sizeof *bigger);
        if (!bigger)
            return no_memory(r->err);
        memset(bigger + c->blocks, 0, (items - c->blocks) * sizeof *bigger);
        c->of_block = bigger;
        c->blocks = items;
    }
    *ret = c;
    return 0;
}

static int learn_block(struct reader *r, struct code *c, uint32_t block)
{
    const struct peet_block *b = peet_trace_block(r->p->trace, block);
    uint32_t function = 0;
    int code = b && b->insns ? function_find(r, c->process, b->insn[0].addr, &function) : 0;

    c->of_block[block] = function + 1;
    return code;
}

static int add_instructions(struct reader *r, struct track *t, struct code *c, uint32_t block, uint64_t number)
{
    int code = c->of_block[block] ? 0 : learn_block(r, c, block);
    uint32_t function = c->of_block[block] - 1;

    if (code < 0)
        return code;
    if (function >= t->counts) {
        size_t more = function + 64;
        uint64_t *bigger = realloc(t->count, more * sizeof *bigger);
        if (!bigger)
            return no_memory(r->err);
        memset(bigger + t->counts, 0, (more - t->counts) * sizeof *bigger);
        t->count = bigger;
        t->counts = more;
    }
    if (t->count[function] == 0 && number)
        *GROW(t, touched, touches, touched_room, r->err) = function;
    t->count[function] += number;
    t->lane.instructions += number;
    return 0;
}

/* A loop is as much as its blocks times their trips: which blocks it has does not hang on values. */
static int add_loop(struct reader *r, struct track *t, struct code *c, const struct peet_loop_run *run)
{
    uint64_t times[PEET_LOOP_DEPTH + 1] = { 1 };
    uint16_t end[PEET_LOOP_DEPTH + 1];
    int depth = 0, code = 0;

    for (uint16_t i = 0; code == 0 && i < run->loop->nodes; i++) {
        const struct peet_loop_node *n = &run->loop->node[i];
        while (depth > 0 && end[depth] <= i)
            depth--;
        if (n->block) {
            const struct peet_block *b = peet_trace_block(r->p->trace, n->block);
            code = add_instructions(r, t, c, n->block, b->insns * times[depth]);
            t->lane.references += b->operands * times[depth];
        } else {
            times[depth + 1] = times[depth] * (n->counted ? run->count[n->trips] : n->trips);
            end[++depth] = n->end;
        }
    }
    return code;
}

static int add_batch(struct reader *r, struct track *t, const struct peet_batch *b)
{
    struct code *c = NULL;
    int code = code_find(r, t->lane.process, &c);

    for (size_t i = 0; code == 0 && i < b->count; i++) {
        const struct peet_record *x = &b->records[i];
        if (peet_is_reference(x))
            t->lane.references++;
        else if (x->kind == PEET_BLOCK)
            code = add_instructions(r, t, c, x->id, x->size);
        else if (x->kind == PEET_LOOP)
            code = add_loop(r, t, c, &b->loops[x->id]);
        else if (x->kind == PEET_EVENT)
            code = event(r, t, &b->events[x->id]);
    }
    return code;
}

/* ---- threads ---- */

static int track_find(struct reader *r, uint32_t id, struct track **ret)
{
    const struct peet_thread *th;

    if (r->last < r->tracks && r->track[r->last]->lane.id == id) {
        *ret = r->track[r->last];
        return 0;
    }
    for (r->last = 0; r->last < r->tracks && r->track[r->last]->lane.id != id;)
        r->last++;
    if (r->last == r->tracks) {
        struct track *t = calloc(1, sizeof *t);
        if (!t)
            return no_memory(r->err);
        void *bigger = study_room(r->track, r->tracks, &r->track_room, sizeof *r->track);
        if (!bigger) {
            free(t);
            return no_memory(r->err);
        }
        r->track = bigger;
        r->track[r->tracks++] = t;
        t->lane.id = id;
        for (size_t i = 0; (th = peet_trace_thread(r->p->trace, i)); i++) {
            if (th->id == id) {
                t->lane.process = th->process;
                t->lane.name = *th->name ? th->name : NULL;
            }
        }
    }
    *ret = r->track[r->last];
    return 0;
}

static int compare_tracks(const void *a, const void *b)
{
    const struct track *x = *(struct track *const *)a, *y = *(struct track *const *)b;

    return x->lane.id < y->lane.id ? -1 : x->lane.id > y->lane.id;
}

/* Gives the pieces, shares and arcs of all threads their numbers in the whole. */
static void place(struct precedence *p, struct track *t)
{
    uint32_t first = p->pieces;

    t->lane.first = first;
    t->lane.pieces = (uint32_t)t->pieces;
    for (size_t i = 0; i < t->pieces; i++) {
        t->piece[i].lane = (uint32_t)p->lanes;
        t->piece[i].share += p->shares;
    }
    memcpy(p->piece + first, t->piece, t->pieces * sizeof *t->piece);
    if (t->shares)
        memcpy(p->share + p->shares, t->share, t->shares * sizeof *t->share);
    for (size_t i = 0; i < t->arcs; i++)
        p->arc[p->arcs++] =
            (struct arc){ t->arc[i].from + first, t->arc[i].to + first, t->arc[i].kind, t->arc[i].certain };
    p->pieces += (uint32_t)t->pieces;
    p->shares += t->shares;
    p->instructions += t->lane.instructions;
    p->references += t->lane.references;
    p->lane[p->lanes++] = t->lane;
}

static int place_all(struct reader *r)
{
    struct precedence *p = r->p;
    uint64_t pieces = 0, shares = 0, arcs = 0;

    for (size_t i = 0; i < r->tracks; i++) {
        struct track *t = r->track[i];
        int code = cut(r, t, &(struct peet_event){ .kind = PEET_EV_thread_end }, PIECE_NONE, 0);
        if (code < 0)
            return code;
        pieces += t->pieces;
        shares += t->shares;
        arcs += t->arcs;
    }
    if (pieces >= PIECE_NONE)
        return err_set(r->err, PEET_ERR_LIMIT, "%s: the precedence graph has %" PRIu64 " pieces; it can have 2^32 - 2",
                       peet_trace_path(p->trace), pieces);
    p->lane = calloc(r->tracks + 1, sizeof *p->lane);
    p->piece = calloc(pieces + 1, sizeof *p->piece);
    p->share = calloc(shares + 1, sizeof *p->share);
    p->arc = calloc(arcs + 1, sizeof *p->arc);
    p->arc_room = arcs + 1;
    if (!p->lane || !p->piece || !p->share || !p->arc)
        return no_memory(r->err);
    if (r->tracks)
        qsort(r->track, r->tracks, sizeof *r->track, compare_tracks);
    for (size_t i = 0; i < r->tracks; i++) {
        uint32_t *lane = map_put(&p->lanes_by_id, r->track[i]->lane.id, 0);
        if (!lane)
            return no_memory(r->err);
        *lane = (uint32_t)i;
        place(p, r->track[i]);
    }
    return 0;
}

static void reader_release(struct reader *r)
{
    for (size_t i = 0; i < r->tracks; i++) {
        struct track *t = r->track[i];
        free(t->piece);
        free(t->share);
        free(t->arc);
        free(t->held);
        free(t->open);
        free(t->finished);
        free(t->count);
        free(t->touched);
        free(t);
    }
    for (size_t i = 0; i < r->codes; i++)
        free(r->code[i].of_block);
    free(r->track);
    free(r->code);
    map_release(&r->uses);
    map_release(&r->waits);
}

static int read_all(struct reader *r, struct progress *progress)
{
    struct peet_cursor *c;
    struct peet_batch batch;
    struct track *t = NULL;
    uint64_t done = 0;
    int code = peet_cursor_open(r->p->trace, PEET_ALL_THREADS, PEET_WANT_LOOPS, &c, r->err);

    if (code < 0)
        return code;
    while ((code = peet_cursor_next(c, &batch, r->err)) > 0 || code == PEET_ERR_DAMAGED) {
        if (code == PEET_ERR_DAMAGED) {
            r->p->damaged++;
            continue;
        }
        if ((code = track_find(r, batch.thread, &t)) < 0)
            break;
        uint64_t before = t->lane.instructions;
        if ((code = add_batch(r, t, &batch)) < 0)
            break;
        done += t->lane.instructions - before;
        progress_at(progress, done);
    }
    peet_cursor_free(c);
    return code;
}

int precedence_read(struct precedence *p, struct peet_trace *t, struct progress *progress, struct peet_err *err)
{
    struct reader r = { .p = p, .err = err };

    *p = (struct precedence){ .trace = t };
    p->objects_by_name.value_size = p->functions_by_name.value_size = p->lanes_by_id.value_size = sizeof(uint32_t);
    r.uses.value_size = sizeof(uint8_t);
    r.waits.value_size = sizeof(uint64_t);
    void *first = study_room(NULL, 0, &p->function_room, sizeof *p->function);
    if (!first)
        return no_memory(err);
    p->function = first;
    p->function[p->functions++] = NULL;
    int code = read_all(&r, progress);
    if (code == 0)
        code = place_all(&r);
    reader_release(&r);
    return code < 0 ? code : precedence_connect(p, err);
}

void precedence_release(struct precedence *p)
{
    free(p->lane);
    free(p->piece);
    free(p->arc);
    free(p->first_arc);
    free(p->object);
    free(p->share);
    free(p->function);
    free(p->named);
    map_release(&p->objects_by_name);
    map_release(&p->functions_by_name);
    map_release(&p->lanes_by_id);
    *p = (struct precedence){ 0 };
}

const struct lane *precedence_lane(const struct precedence *p, uint64_t id)
{
    const uint32_t *n = map_find(&p->lanes_by_id, id, 0);

    return n ? &p->lane[*n] : NULL;
}

const char *piece_function(const struct precedence *p, uint32_t piece)
{
    size_t n, best = 0;
    const struct share *s = piece_shares(p, piece, &n);

    for (size_t i = 1; i < n; i++)
        best = s[i].instructions > s[best].instructions ? i : best;
    return n && p->function[s[best].function] ? p->function[s[best].function] : "?";
}

const char *study_place(const struct peet_trace *t, uint32_t process, uint64_t addr, char buffer[120])
{
    const struct peet_symbol *s = addr ? peet_trace_symbol(t, process, addr) : NULL;

    if (s && s->addr == addr)
        snprintf(buffer, 120, "%.100s", s->name);
    else if (s)
        snprintf(buffer, 120, "%.100s+0x%" PRIx64, s->name, addr - s->addr);
    else
        snprintf(buffer, 120, "0x%" PRIx64, addr);
    return buffer;
}
