/* SPDX-License-Identifier: MIT */
/* Control flow: forms blocks from executed instructions, and records transfers of control that the instructions do not explain.
 *
 * A call is a frame: the return address and its address on the stack. These are recorded as `jump` events: a return to another address than
 * its call's; an indirect jump that drops frames (longjmp, unwinding, a switch of stacks); any other change of the program counter (a handler that
 * changes the interrupted context, rseq). */
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

static int put_one(struct stepper *r, struct tracee *t, const struct x86_insn *insn)
{
    uint32_t item;
    int result = x86_layout_define_one(&r->layout, insn, writer_builder(r->writer), &item, r->err);

    r->ret->instructions++;
    return result < 0 ? result : peet_stream_put(t->stream, item, t->slot, r->err);
}

/* Records the part of a block that belongs to level `calls`: the entry of a function, a call, a return. */
static int put_calls(struct stepper *r, struct tracee *t, const struct x86_node *last)
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

int flow_close(struct stepper *r, struct tracee *t)
{
    struct x86_node *last = t->node;
    int result;

    if (!last || r->level < LEVEL_blocks) {
        t->node = NULL;
        return last && r->level == LEVEL_calls ? put_calls(r, t, last) : 0;
    }
    if (r->level >= LEVEL_memory && t->block_fs != t->recorded_fs) {
        if ((result = PUT_EVENT(r, t, set_register, 0, X86_FS_REGISTER, t->block_fs)) < 0)
            return result;
        t->recorded_fs = t->block_fs;
    }
    if ((result = x86_layout_define(&r->layout, last, writer_builder(r->writer), r->err)) < 0)
        return result;
    t->node = NULL;
    return peet_stream_put(t->stream, last->item, t->slot, r->err);
}

/* Advances to the node of the pending instruction; closes the block first if it has no room. */
static int flow_advance(struct stepper *r, struct tracee *t, unsigned variant)
{
    int result = x86_layout_step(&r->layout, t->node, t->pending, variant, &t->node);

    if (result == 0) {
        if ((result = flow_close(r, t)) < 0)
            return result;
        result = x86_layout_step(&r->layout, NULL, t->pending, variant, &t->node);
    }
    return result < 0 ? err_set(r->err, result, "no memory for the program's blocks") : 0;
}

/* Records that the kernel grew the stack for a reference to this address. */
static int grow_stack(struct stepper *r, struct tracee *t, uint64_t lowest)
{
    struct tracee_process *p = t->process;
    uint64_t low = lowest & ~(PAGE - 1), size = p->stack_low - low;
    int result = flow_close(r, t);

    p->stack_low = low;
    return result < 0 ? result : PUT_EVENT(r, t, map, 0, low, size, 6);
}

int flow_commit(struct stepper *r, struct tracee *t, unsigned variant)
{
    const struct x86_insn *insn = t->pending;
    int result;

    if ((result = flow_advance(r, t, variant)) < 0)
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

static void push_frame(struct tracee *t, struct call_frame f)
{
    if (t->frames == FRAMES_MAX) { /* drops the outer half */
        t->frames /= 2;
        memmove(t->frame, t->frame + t->frames, t->frames * sizeof f);
    }
    if (t->frames == t->frame_room) {
        size_t room = t->frame_room * 2 + 64;
        struct call_frame *bigger = mem_alloc(room, sizeof f);
        if (t->frames)
            memcpy(bigger, t->frame, t->frames * sizeof f);
        free(t->frame);
        t->frame = bigger;
        t->frame_room = room;
    }
    t->frame[t->frames++] = f;
}

/* Drops the frames with return addresses below sp. Returns whether there was one. */
static bool drop_frames(struct tracee *t, uint64_t sp)
{
    size_t before = t->frames;

    while (t->frames && t->frame[t->frames - 1].slot < sp)
        t->frames--;
    return t->frames < before;
}

/* Handles a return to `to` with the return address at `slot`. Returns whether it returned to its call, or no frame is known. */
static bool return_to_call(struct tracee *t, uint64_t slot, uint64_t to)
{
    drop_frames(t, slot);
    if (t->frames == 0)
        return true;
    const struct call_frame *top = &t->frame[t->frames - 1];
    if (top->slot == slot && top->is_signal)
        return true; /* to the code that ends the handler; flow_exit_signal drops the frame */
    if (top->slot == slot) {
        t->frames--;
        return top->back == to;
    }
    for (size_t i = t->frames; i-- > 0;) /* from another stack, at lower addresses */
        if (t->frame[i].slot == slot && t->frame[i].back == to) {
            t->frames = i;
            break;
        }
    return false;
}

/* Whether the instruction explains that control is at `after`. Maintains the frames. */
static bool is_natural(struct tracee *t, const struct x86_insn *from, const struct x86_state *after)
{
    uint64_t end = from->insn.addr + from->insn.length, sp = after->gpr[X86_RSP];

    switch (from->insn.class) {
    case PEET_CL_branch: return after->rip == from->insn.target || after->rip == end;
    case PEET_CL_jump: return after->rip == from->insn.target;
    case PEET_CL_jump_indirect: return !drop_frames(t, sp);
    case PEET_CL_call: push_frame(t, (struct call_frame){ end, sp, false }); return after->rip == from->insn.target;
    case PEET_CL_call_indirect: push_frame(t, (struct call_frame){ end, sp, false }); return true;
    case PEET_CL_return: return return_to_call(t, t->before.gpr[X86_RSP], after->rip);
    case PEET_CL_trap: return true;
    default: return after->rip == end;
    }
}

int flow_arrive(struct stepper *r, struct tracee *t, const struct x86_insn *from, const struct x86_state *after)
{
    if (is_natural(t, from, after))
        return 0;
    int result = flow_close(r, t);
    return result < 0 ? result : PUT_EVENT(r, t, jump, from->insn.addr, after->rip);
}

/* ---- signals ---- */

int flow_enter_signal(struct stepper *r, struct tracee *t, int signal, uint64_t resume, const struct x86_state *after)
{
    int result = flow_close(r, t);

    if (t->handlers == HANDLERS_MAX) /* handlers that never return: drops the outermost */
        memmove(t->handler, t->handler + 1, --t->handlers * sizeof *t->handler);
    t->handler[t->handlers++] = (struct handler_frame){ signal, resume };
    push_frame(t, (struct call_frame){ 0, after->gpr[X86_RSP], true });
    t->called = true;
    return result < 0 ? result : PUT_EVENT(r, t, signal_enter, 0, (uint64_t)signal);
}

int flow_exit_signal(struct stepper *r, struct tracee *t, const struct x86_state *after)
{
    struct handler_frame i = { 0, after->rip };

    if (t->handlers)
        i = t->handler[--t->handlers];
    for (size_t f = t->frames; f-- > 0;)
        if (t->frame[f].is_signal) {
            t->frames = f;
            break;
        }
    int result = PUT_EVENT(r, t, signal_exit, 0, (uint64_t)i.signal);
    if (result < 0 || i.resume == after->rip)
        return result;
    return PUT_EVENT(r, t, jump, 0, after->rip);
}
