/* SPDX-License-Identifier: MIT */
/* Executed instructions become blocks; where control goes by other ways than instructions say, events tell.
 *
 * Calls are kept as frames: the return address and the slot of the stack that holds it. A return that does not go back to
 * its call, and an indirect jump that leaves frames behind (longjmp, unwinding, a switch of stacks), get a `jump` event,
 * and so does whatever else moves control (a handler that changes the interrupted context, rseq). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "format/file/writer.h"
#include "base/mem.h"
#include "capture/step/step.h"

#define PAGE ((uint64_t)4096)

enum { FRAMES_MAX = 1 << 20 };

/* ---- blocks ---- */

static int put_one(struct producer_state *r, struct thread *t, const struct x86_insn *insn)
{
    uint32_t item;
    int result = x86_layout_define_one(&r->layout, insn, writer_builder(r->writer), &item, r->err);

    r->ret->instructions++;
    return result < 0 ? result : peet_stream_put(t->stream, item, t->slot, r->err);
}

/* Of a block, what the level `calls` has: where a function was entered, a call, a return. */
static int put_calls(struct producer_state *r, struct thread *t, const struct x86_node *last)
{
    const struct x86_node *first = last;
    uint8_t class = last->insn->insn.class;
    int result = 0;

    while (first->parent)
        first = first->parent;
    if (t->entry)
        result = put_one(r, t, first->insn);
    bool leaves = class == PEET_CL_call || class == PEET_CL_call_indirect || class == PEET_CL_return;
    return result == 0 && leaves && !(t->entry && first == last) ? put_one(r, t, last->insn) : result;
}

int flow_close(struct producer_state *r, struct thread *t)
{
    struct x86_node *last = t->node;
    int result;

    if (!last || r->level < LEVEL_blocks) {
        t->node = NULL;
        return last && r->level == LEVEL_calls ? put_calls(r, t, last) : 0;
    }
    if (r->level >= LEVEL_memory && t->block_fs != t->told_fs) {
        if ((result = EVENT(r, t, set_register, 0, X86_FS_REGISTER, t->block_fs)) < 0)
            return result;
        t->told_fs = t->block_fs;
    }
    if ((result = x86_layout_define(&r->layout, last, writer_builder(r->writer), r->err)) < 0)
        return result;
    t->node = NULL;
    return peet_stream_put(t->stream, last->item, t->slot, r->err);
}

/* The next node for the pending instruction; a block that has no room for it ends here. */
static int advance(struct producer_state *r, struct thread *t, unsigned variant)
{
    int result = x86_layout_step(&r->layout, t->node, t->pending, variant, &t->node);

    if (result == 0) {
        if ((result = flow_close(r, t)) < 0)
            return result;
        result = x86_layout_step(&r->layout, NULL, t->pending, variant, &t->node);
    }
    return result < 0 ? err_set(r->err, result, "no memory for the program's blocks") : 0;
}

/* The kernel made the stack larger, for a reference to this address. */
static int grow_stack(struct producer_state *r, struct thread *t, uint64_t lowest)
{
    struct process *p = t->process;
    uint64_t low = lowest & ~(PAGE - 1), size = p->stack_low - low;
    int result = flow_close(r, t);

    p->stack_low = low;
    return result < 0 ? result : EVENT(r, t, map, 0, low, size, 6);
}

int flow_commit(struct producer_state *r, struct thread *t, unsigned variant)
{
    const struct x86_insn *insn = t->pending;
    int result;

    if ((result = advance(r, t, variant)) < 0)
        return result;
    if (t->node->depth == 1) {
        t->block_fs = t->before.fs_base;
        t->entry = t->called;
    }
    t->called = insn->insn.class == PEET_CL_call || insn->insn.class == PEET_CL_call_indirect;
    struct x86_reference_sum touched = x86_node_fill(t->node, &t->moment, t->slot);
    t->pending = NULL;
    r->executed++;
    r->ret->instructions += r->level >= LEVEL_blocks;
    r->ret->references += r->level >= LEVEL_memory ? touched.references : 0;
    r->ret->undecoded += insn->special == X86_UNKNOWN;
    if (touched.lowest < t->process->stack_low && touched.lowest >= t->process->stack_limit)
        return grow_stack(r, t, touched.lowest);
    return insn->ends_block || variant & X86_INTERRUPTED ? flow_close(r, t) : 0;
}

/* ---- calls and returns ---- */

static void push_frame(struct thread *t, struct frame f)
{
    if (t->frames == FRAMES_MAX) { /* the outer half is forgotten */
        t->frames /= 2;
        memmove(t->frame, t->frame + t->frames, t->frames * sizeof f);
    }
    if (t->frames == t->frame_room) {
        size_t room = t->frame_room * 2 + 64;
        struct frame *bigger = mem_alloc(room, sizeof f);
        if (t->frames)
            memcpy(bigger, t->frame, t->frames * sizeof f);
        free(t->frame);
        t->frame = bigger;
        t->frame_room = room;
    }
    t->frame[t->frames++] = f;
}

/* Leaves the frames whose place on the stack is given up; whether there was one. */
static bool drop_frames(struct thread *t, uint64_t sp)
{
    size_t before = t->frames;

    while (t->frames && t->frame[t->frames - 1].slot < sp)
        t->frames--;
    return t->frames < before;
}

/* A return to `to` from the slot; whether it went back to its call, as far as anybody knows. */
static bool go_back(struct thread *t, uint64_t slot, uint64_t to)
{
    drop_frames(t, slot);
    if (t->frames == 0)
        return true;
    const struct frame *top = &t->frame[t->frames - 1];
    if (top->slot == slot && top->is_signal)
        return true; /* to the code that ends the handler; the frame ends with it */
    if (top->slot == slot) {
        t->frames--;
        return top->back == to;
    }
    for (size_t i = t->frames; i-- > 0;) /* from another stack, which lies lower than this one */
        if (t->frame[i].slot == slot && t->frame[i].back == to) {
            t->frames = i;
            break;
        }
    return false;
}

/* Whether control can have come from the instruction to where it is, without an event that says why. */
static bool is_natural(struct thread *t, const struct x86_insn *from, const struct x86_state *after)
{
    uint64_t end = from->insn.addr + from->insn.length, sp = after->gpr[X86_RSP];

    switch (from->insn.class) {
    case PEET_CL_branch: return after->rip == from->insn.target || after->rip == end;
    case PEET_CL_jump: return after->rip == from->insn.target;
    case PEET_CL_jump_indirect: return !drop_frames(t, sp);
    case PEET_CL_call: push_frame(t, (struct frame){ end, sp, false }); return after->rip == from->insn.target;
    case PEET_CL_call_indirect: push_frame(t, (struct frame){ end, sp, false }); return true;
    case PEET_CL_return: return go_back(t, t->before.gpr[X86_RSP], after->rip);
    case PEET_CL_trap: return true;
    default: return after->rip == end;
    }
}

int flow_arrive(struct producer_state *r, struct thread *t, const struct x86_insn *from, const struct x86_state *after)
{
    if (is_natural(t, from, after))
        return 0;
    int result = flow_close(r, t);
    return result < 0 ? result : EVENT(r, t, jump, from->insn.addr, after->rip);
}

/* ---- signals ---- */

int flow_enter_signal(struct producer_state *r, struct thread *t, int signal, uint64_t resume,
                      const struct x86_state *after)
{
    int result = flow_close(r, t);

    if (t->interruptions == INTERRUPTIONS_MAX) /* handlers that never return: the outermost is forgotten */
        memmove(t->interruption, t->interruption + 1, --t->interruptions * sizeof *t->interruption);
    t->interruption[t->interruptions++] = (struct interruption){ signal, resume };
    push_frame(t, (struct frame){ 0, after->gpr[X86_RSP], true });
    t->called = true;
    return result < 0 ? result : EVENT(r, t, signal_enter, 0, (uint64_t)signal);
}

int flow_exit_signal(struct producer_state *r, struct thread *t, const struct x86_state *after)
{
    struct interruption i = { 0, after->rip };

    if (t->interruptions)
        i = t->interruption[--t->interruptions];
    for (size_t f = t->frames; f-- > 0;)
        if (t->frame[f].is_signal) {
            t->frames = f;
            break;
        }
    int result = EVENT(r, t, signal_exit, 0, (uint64_t)i.signal);
    if (result < 0 || i.resume == after->rip)
        return result;
    return EVENT(r, t, jump, 0, after->rip);
}
