/* SPDX-License-Identifier: MIT */
/* Control flow within a thread: each block begins at a successor of the block before it, and returns match calls.
 *
 * A program may have uninstrumented code, without blocks in the schema. A call of it returns to the instruction after the call, or it calls traced
 * functions before it does; the return address of these is unknown. So is that of a function that was called before the stream began. An
 * indirect call may call uninstrumented code. Code of a kernel (PEET_FL_KERNEL) is skipped, since it can begin and end anywhere.
 *
 * In traces of the level `calls`, which lack most instructions, control flow is not checked.
 *
 * The shadow stack has room for STACK_MAX calls; when it is full, the older half is dropped. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/check/family.h"

enum { STACK_MAX = 1 << 20, SIGNALS_MAX = 64 };

/* What the checks need of a block; by item number. */
struct flow_block {
    uint64_t start, last, end; /* addresses: of its first and last instruction, and after the last */
    uint64_t target;           /* peet_insn.target of the last instruction */
    uint8_t class;             /* enum peet_class of the last instruction */
    bool seen, kernel;         /* the other fields are set; it is code of a kernel */
};

/* The state of the family. */
struct check_state {
    struct flow_block *info;
    size_t room;
    struct map starts; /* addresses at which blocks begin; no values */
    uint32_t started;  /* items up to here are in it */
    bool excused;      /* the trace has too few instructions, and the note about it was made */
};

/* How control left the last block. */
struct departure {
    bool known;                 /* the other fields are set */
    uint8_t class;              /* enum peet_class of the block's last instruction */
    uint64_t from, end, target; /* addresses: of that instruction, after it, and its target */
};

enum frame_kind {
    INSTRUMENTED,   /* traced code was called */
    UNINSTRUMENTED, /* uninstrumented code was or may have been called: it may call back */
    SIGNAL,         /* a handler was entered */
};

/* A call that has not returned. */
struct frame {
    uint64_t back; /* the return address */
    uint8_t kind;  /* enum frame_kind */
    uint8_t saved; /* SIGNAL: index in `saved` of the departure before the signal */
    bool jumped;   /* the called function made an indirect jump */
};

/* The state of a thread. */
struct check_local {
    struct departure last;               /* from the last block */
    struct departure saved[SIGNALS_MAX]; /* before each signal handler that has not returned */
    unsigned signals;                    /* elements of `saved` in use */
    struct frame *stack;                 /* the innermost call last */
    size_t count, room;                  /* frames; elements allocated */
    size_t loose;                        /* frames below this index may have been left by a jump */
};

static const char *const CLASSES[] = {
#define X(name) #name,
    PEET_CLASSES(X)
#undef X
};

/* ---- blocks ---- */

/* Whether an instruction of a class ends a block: control leaves to an unknown address, or returns. */
static bool ends_block(uint8_t class)
{
    return class == PEET_CL_jump_indirect || class == PEET_CL_call || class == PEET_CL_call_indirect
           || class == PEET_CL_return;
}

/* Whether the instruction `next` can be executed after `in`. */
static bool flow_can_follow(const struct peet_insn *in, const struct peet_insn *next)
{
    bool jumps = in->class == PEET_CL_branch || in->class == PEET_CL_jump;

    if (jumps && next->addr == in->target)
        return true;
    return in->class != PEET_CL_jump && next->addr == in->addr + in->length;
}

static void check_shape(struct check *c, struct check_position at, const struct peet_block *b)
{
    for (unsigned i = 0; i + 1 < b->insns; i++) {
        const struct peet_insn *in = &b->insn[i], *next = in + 1;
        if (ends_block(in->class))
            check_found_at(c, CHECK_block, CHECK_VIOLATION, at, in->addr, "a %s stands inside a block, not at its end",
                           CLASSES[in->class]);
        else if (!flow_can_follow(in, next))
            check_found_at(c, CHECK_block, CHECK_VIOLATION, at, next->addr,
                           "inside a block the %s at 0x%" PRIx64 " of %u bytes is followed by one at 0x%" PRIx64,
                           in->class == PEET_CL_branch || in->class == PEET_CL_jump ? CLASSES[in->class]
                                                                                    : "instruction",
                           in->addr, in->length, next->addr);
    }
}

/* The block with an item number; checked at its first execution. NULL: no memory. */
static struct flow_block *flow_block_of(struct check *c, struct check_state *s, struct check_position at, uint32_t id)
{
    if (id >= s->room) {
        size_t room = (size_t)peet_trace_items(c->trace) + s->room / 2;
        struct flow_block *info = realloc(s->info, room * sizeof *info);
        if (!info)
            return NULL;
        memset(info + s->room, 0, (room - s->room) * sizeof *info);
        s->info = info;
        s->room = room;
    }
    struct flow_block *info = &s->info[id];
    if (!info->seen) {
        const struct peet_block *b = peet_trace_block(c->trace, id);
        const struct peet_insn *last = &b->insn[b->insns - 1];
        *info = (struct flow_block){ b->insn[0].addr,
                                     last->addr,
                                     last->addr + last->length,
                                     last->target,
                                     last->class,
                                     true,
                                     (b->insn[0].flags & PEET_FL_KERNEL) != 0 };
        check_shape(c, at, b);
    }
    return info;
}

/* Whether the schema has a block that begins at addr. Without memory for the answer, all code counts as uninstrumented. */
static bool flow_is_traced(struct check *c, struct check_state *s, uint64_t addr)
{
    for (; s->started < peet_trace_items(c->trace); s->started++) {
        const struct peet_block *b = peet_trace_block(c->trace, s->started);
        if (b && !map_put(&s->starts, b->insn[0].addr, 0))
            return false;
    }
    return map_find(&s->starts, addr, 0) != NULL;
}

/* ---- the shadow stack ---- */

static struct frame *flow_top(struct check_local *l)
{
    return l->count ? &l->stack[l->count - 1] : NULL;
}

static int flow_push(struct check *c, struct check_local *l, struct frame f)
{
    if (l->count == STACK_MAX) {
        l->count /= 2;
        memmove(l->stack, l->stack + l->count, l->count * sizeof *l->stack);
        l->loose = l->loose > l->count ? l->loose - l->count : 0;
    }
    struct frame *stack = check_room(l->stack, l->count, &l->room, sizeof *stack);
    if (!stack)
        return check_no_memory(c);
    l->stack = stack;
    stack[l->count++] = f;
    return 0;
}

static void flow_pop_to(struct check_local *l, size_t count)
{
    l->count = count;
    if (l->loose > count)
        l->loose = count;
}

static void flow_forget(struct check *c, struct check_local *l)
{
    (void)c;
    l->last.known = false;
    l->signals = 0;
    flow_pop_to(l, 0);
}

/* Pops all frames down to the one with return address addr; false: there is none. */
static bool flow_unwind_to(struct check_local *l, uint64_t addr)
{
    for (size_t i = l->count; i-- > 0;)
        if (l->stack[i].kind != SIGNAL && l->stack[i].back == addr) {
            flow_pop_to(l, i);
            return true;
        }
    return false;
}

/* Control may have been in uninstrumented code instead of the function that was called last. */
static void flow_note_uninstrumented(struct check_local *l, uint64_t to)
{
    struct frame *f = flow_top(l);

    if (!f || f->kind == SIGNAL)
        return;
    if (f->back == to)
        flow_pop_to(l, l->count - 1);
    else
        f->kind = UNINSTRUMENTED;
}

/* ---- from block to block ---- */

static void flow_report(struct check *c, struct check_position at, const struct departure *d, uint64_t to)
{
    if (d->class == PEET_CL_branch || d->class == PEET_CL_call)
        check_found_at(c, CHECK_flow, CHECK_VIOLATION, at, to,
                       "the %s at 0x%" PRIx64 " goes to 0x%" PRIx64 "; 0x%" PRIx64 " or 0x%" PRIx64 " was expected",
                       CLASSES[d->class], d->from, to, d->target, d->end);
    else
        check_found_at(c, CHECK_flow, CHECK_VIOLATION, at, to,
                       "the %s instruction at 0x%" PRIx64 " goes to 0x%" PRIx64 "; 0x%" PRIx64 " was expected",
                       CLASSES[d->class], d->from, to, d->class == PEET_CL_jump ? d->target : d->end);
}

static int flow_after_call(struct check *c, struct check_state *s, struct check_position at, struct check_local *l,
                           uint64_t to)
{
    const struct departure *d = &l->last;
    struct frame f = { .back = d->end, .kind = INSTRUMENTED };

    if (to == d->end)
        return 0; /* the callee is uninstrumented, and has returned */
    if (d->class == PEET_CL_call_indirect) {
        f.kind = UNINSTRUMENTED;
    } else if (d->target && to != d->target) {
        if (flow_is_traced(c, s, d->target))
            flow_report(c, at, d, to);
        else
            f.kind = UNINSTRUMENTED;
    }
    return flow_push(c, l, f);
}

/* Whether a call-back could begin at addr: at the beginning of a function, as far as functions are known. */
static bool flow_is_entry(struct check *c, const struct check_thread *th, uint64_t addr)
{
    const struct peet_symbol *s = peet_trace_symbol(c->trace, th->process, addr);

    return !s || s->addr == addr;
}

static void flow_after_return(struct check *c, struct check_position at, struct check_local *l, uint64_t to)
{
    struct frame *f = flow_top(l);

    if (!f || f->kind == SIGNAL)
        return;
    if (f->back == to) {
        flow_pop_to(l, l->count - 1);
    } else if (f->kind == INSTRUMENTED && f->jumped && flow_is_entry(c, at.thread, to)) {
        f->kind = UNINSTRUMENTED; /* the indirect jump was a tail call of uninstrumented code, which calls back */
    } else if (f->kind == INSTRUMENTED) {
        uint64_t expected = f->back;
        bool excused = l->count <= l->loose;
        if (!flow_unwind_to(l, to))
            flow_pop_to(l, excused ? 0 : l->count - 1);
        if (!excused)
            check_found_at(c, CHECK_return, CHECK_VIOLATION, at, to,
                           "the return at 0x%" PRIx64 " goes to 0x%" PRIx64 "; 0x%" PRIx64 " was expected",
                           l->last.from, to, expected);
    }
}

static int flow_arrive(struct check *c, struct check_state *s, struct check_position at, struct check_local *l,
                       uint64_t to)
{
    const struct departure *d = &l->last;

    switch (d->class) {
    case PEET_CL_call:
    case PEET_CL_call_indirect: return flow_after_call(c, s, at, l, to);
    case PEET_CL_return: flow_after_return(c, at, l, to); break;
    case PEET_CL_jump_indirect:
        if (l->count && flow_top(l)->back == to && flow_top(l)->kind != SIGNAL)
            flow_pop_to(l, l->count - 1);
        else if (l->count)
            flow_top(l)->jumped = true;
        break;
    case PEET_CL_trap: break;
    case PEET_CL_branch:
    case PEET_CL_jump:
        if (d->target == 0 || to == d->target || (d->class == PEET_CL_branch && to == d->end))
            break;
        if (flow_is_traced(c, s, d->target))
            flow_report(c, at, d, to);
        else
            flow_note_uninstrumented(l, to);
        break;
    default:
        if (to != d->end)
            flow_report(c, at, d, to);
    }
    return 0;
}

/* ---- events ---- */

static int enter_signal(struct check *c, struct check_local *l)
{
    if (l->signals == SIGNALS_MAX)
        flow_forget(c, l);
    struct frame f = { .kind = SIGNAL, .saved = (uint8_t)l->signals };
    l->saved[l->signals++] = l->last;
    l->last.known = false;
    return flow_push(c, l, f);
}

static void exit_signal(struct check_local *l)
{
    l->last.known = false;
    for (size_t i = l->count; i-- > 0;)
        if (l->stack[i].kind == SIGNAL) {
            l->signals = l->stack[i].saved;
            l->last = l->saved[l->signals];
            flow_pop_to(l, i);
            return;
        }
    l->signals = 0;
}

static int flow_event(struct check *c, struct check_local *l, const struct peet_event *e)
{
    switch (e->kind) {
    case PEET_EV_signal_enter: return enter_signal(c, l);
    case PEET_EV_signal_exit: exit_signal(l); break;
    case PEET_EV_jump:
        l->last = (struct departure){ e->arg[0] != 0, PEET_CL_jump, e->site, 0, e->arg[0] };
        l->loose = l->count;
        break;
    case PEET_EV_gap:
    case PEET_EV_exec: flow_forget(c, l); break;
    default: break;
    }
    return 0;
}

/* Whether the trace lacks the instructions between calls. */
static bool is_sparse(const struct check *c)
{
    const char *value, *key;

    for (size_t i = 0; (key = peet_trace_meta(c->trace, i, &value)); i++)
        if (!strcmp(key, "level") && !strcmp(value, "calls"))
            return true;
    return false;
}

static int flow_batch(struct check *c, struct check_state *s, const struct check_thread *th, struct check_local *l,
                      const struct peet_batch *b)
{
    struct check_position at = { th, b->position };
    int r = 0;

    if (is_sparse(c)) {
        if (!s->excused)
            check_note(c, "the trace has calls, not all instructions: flow and returns were not checked");
        s->excused = true;
        return 0;
    }
    for (size_t i = 0; r == 0 && i < b->count; i++) {
        const struct peet_record *x = &b->records[i];
        if (x->kind == PEET_EVENT) {
            r = flow_event(c, l, &b->events[x->id]);
        } else if (x->kind == PEET_BLOCK) {
            const struct flow_block *info = flow_block_of(c, s, at, x->id);
            if (!info)
                return check_no_memory(c);
            if (l->last.known && !info->kernel)
                r = flow_arrive(c, s, at, l, info->start);
            if (!info->kernel)
                l->last = (struct departure){ true, info->class, info->last, info->end, info->target };
            at.position += x->size;
        }
    }
    return r;
}

static void flow_release_local(struct check_local *l)
{
    free(l->stack);
}

static void flow_release(struct check_state *s)
{
    free(s->info);
    map_release(&s->starts);
}

const struct check_family check_family_flow = {
    .name = "flow",
    .state_size = sizeof(struct check_state),
    .local_size = sizeof(struct check_local),
    .batch = flow_batch,
    .lost = flow_forget,
    .release_local = flow_release_local,
    .release = flow_release,
};
