/* SPDX-License-Identifier: MIT */
/* kernel=on: kernel code that runs for a target is recorded in the target's stream, labelled (PEET_FL_KERNEL). Kernel code runs for a
 * target if it uses the target's kernel stack, or runs between user code and that stack; interrupt handlers on separate stacks do not. Each kernel
 * block reads the stack pointer, which is slow.
 * Assumes that kernel stacks have 16 KiB and are aligned to that, as in Linux. A block whose last instruction fails counts as a whole. */
#include "capture/qemu/plugin/plugin.h"

enum { STACK_SHIFT = 14 };

static struct map stacks; /* struct guest_thread *, by the number of its kernel stack; under the lock */

void kernel_forget(const struct guest_thread *t)
{
    uint64_t key;
    uint32_t tag;
    struct guest_thread **holder;

    for (size_t at = 0; (holder = map_next(&stacks, &at, &key, &tag)) != NULL;)
        if (*holder == t) {
            map_remove(&stacks, key, 0);
            return;
        }
}

/* Whether it is one of the processor's stacks for kernel entries (x86). */
static bool is_entry_stack(uint64_t sp)
{
    return sp >> 39 == UINT64_C(0xfffffe0000000000) >> 39;
}

static struct guest_thread *thread_of_stack(struct vcpu *v, uint64_t sp)
{
    struct guest_thread *entering = v->entering;

    if (entering && (!(sp >> 63) || is_entry_stack(sp)))
        return entering;
    if (sp >> STACK_SHIFT == v->kernel_stack && !entering)
        return v->kernel_thread;
    pthread_mutex_lock(&plugin.lock);
    stacks.value_size = sizeof(struct guest_thread *);
    struct guest_thread **holder =
        entering ? map_put(&stacks, sp >> STACK_SHIFT, 0) : map_find(&stacks, sp >> STACK_SHIFT, 0);
    if (holder && entering)
        *holder = entering;
    struct guest_thread *t = holder ? *holder : NULL;
    pthread_mutex_unlock(&plugin.lock);
    v->entering = NULL;
    v->kernel_stack = sp >> STACK_SHIFT;
    v->kernel_thread = t;
    return t;
}

/* Binds another target to the processor. False: none. */
static bool change_thread(struct vcpu *v, struct guest_thread *t)
{
    if (v->thread) {
        if (v->open)
            vcpu_close(v, v->open->insns);
        vcpu_leave(v);
    }
    if (!t || t->end.has_ended || t->owner >= 0)
        return false;
    t->owner = (int)v->index;
    v->thread = t;
    v->open = NULL;
    buffer_attach(v);
    return true;
}

void on_kernel_block(unsigned cpu, void *block)
{
    struct vcpu *v = vcpu_of(cpu);
    struct block *b = block;

    if (v->state == STATE_TARGET) {
        v->state = STATE_UNKNOWN;
        v->entering = v->thread;
        if (v->thread && v->open)
            vcpu_interrupt(v);
        if (!v->thread) /* vcpu_interrupt has ended it */
            v->entering = NULL;
        v->open = NULL;
    }
    struct guest_thread *t = thread_of_stack(v, vcpu_register(v, plugin.isa->sp));
    if (t != v->thread && !change_thread(v, t))
        return;
    if (!v->thread)
        return;
    if (v->open && v->at - v->start - 1 != v->open->slots) {
        if (vcpu_reenters(v, b))
            return;
        vcpu_close_before(v, b);
    }
    vcpu_open(v, b, 0);
}
