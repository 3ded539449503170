/* SPDX-License-Identifier: MIT */
/* Events of system calls by which targets map and unmap memory. Arguments are read when the thread enters the kernel, results when it resumes. Memory that an
 * allocator maps is a range named "[heap]". Memory mapped by other functions of CALL_RULES (pthread_create maps a stack) is a range without
 * a name: the function's event has its purpose. */
#include "capture/qemu/plugin/plugin.h"

enum { PAGE = 4096, ERRNO_MAX = 4095 };

static uint64_t guest_whole_pages(uint64_t size)
{
    return (size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

/* Converts protection bits of Linux to those of the trace: 1 execute, 2 write, 4 read. */
static uint64_t guest_protection(uint64_t bits)
{
    return (bits & 1 ? 4u : 0u) | (bits & 2 ? 2u : 0u) | (bits & 4 ? 1u : 0u);
}

void memory_called(struct vcpu *v, enum guest_call call)
{
    struct guest_thread *t = v->thread;

    t->kernel.memory_call = call >= GUEST_CALL_MMAP ? call : GUEST_CALL_OTHER;
    for (unsigned i = 0; t->kernel.memory_call && i < 3; i++)
        t->kernel.memory_arg[i] = vcpu_register(v, plugin.isa->arg[i]);
}

static bool rule_allocates(const struct call_rule *rule)
{
    return rule->event >= PEET_EV_malloc && rule->event <= PEET_EV_free;
}

/* Where the program called the function that maps or unmaps memory (CALL_SITE). Without such a function, it is the instruction after the system
 * call. */
static uint64_t memory_call_site(const struct guest_thread *t, const struct call *c)
{
    return c ? c->back : t->kernel.resume;
}

static void put_map(struct vcpu *v, uint64_t addr, uint64_t size, uint64_t protection)
{
    const struct call *c = calls_current(v->thread);

    if (c && c->rule->moment != CALL_SITE && size)
        maps_add(v->thread->process, addr, size, rule_allocates(c->rule) ? "[heap]" : "");
    else if (size)
        vcpu_put(v, event_item_at(PEET_EV_map, memory_call_site(v->thread, c)),
                 (const uint64_t[]){ addr, size, protection }, 3);
}

static void put_unmap(struct vcpu *v, uint64_t addr, uint64_t size)
{
    const struct call *c = calls_current(v->thread);

    if (size && (!c || c->rule->moment == CALL_SITE))
        vcpu_put(v, event_item_at(PEET_EV_unmap, memory_call_site(v->thread, c)), (const uint64_t[]){ addr, size }, 2);
}

static void put_change(struct vcpu *v, uint64_t old_end, uint64_t end)
{
    if (end > old_end)
        put_map(v, old_end, end - old_end, 6);
    else
        put_unmap(v, end, old_end - end);
}

void memory_returned(struct vcpu *v)
{
    struct guest_thread *t = v->thread;
    const uint64_t *arg = t->kernel.memory_arg;
    enum guest_call call = t->kernel.memory_call;
    uint64_t result = vcpu_register(v, plugin.isa->result), old;

    t->kernel.memory_call = GUEST_CALL_OTHER;
    if (result > -(uint64_t)ERRNO_MAX - 1)
        return;
    switch (call) {
    case GUEST_CALL_MMAP: put_map(v, result, guest_whole_pages(arg[1]), guest_protection(arg[2])); break;
    case GUEST_CALL_MUNMAP: put_unmap(v, arg[0], guest_whole_pages(arg[1])); break;
    case GUEST_CALL_MREMAP:
        put_unmap(v, arg[0], guest_whole_pages(arg[1]));
        put_map(v, result, guest_whole_pages(arg[2]), 6);
        break;
    case GUEST_CALL_BRK:
        old = atomic_exchange(&t->process->end_of_data, result);
        if (old)
            put_change(v, guest_whole_pages(old), guest_whole_pages(result));
        break;
    default: break;
    }
}
