/* SPDX-License-Identifier: MIT */
/* Parents of threads. A creating thread gets the child's handle when the function returns; the child passes its handle with its mark, before or
 * after that. So a child may have its number before its mark; a child that never marks itself gets an empty stream. Values of a process's
 * barriers and spin locks are here, too. */
#include "base/mem.h"
#include "capture/qemu/plugin/plugin.h"

/* ---- under plugin.lock ---- */

struct guest_thread *thread_reserve(struct guest_process *p)
{
    struct guest_thread *t = mem_alloc(1, sizeof *t);

    t->id = (uint32_t)plugin.threads;
    t->process = p;
    t->owner = -1;
    plugin.thread = mem_room(plugin.thread, plugin.threads, sizeof *plugin.thread);
    plugin.thread[plugin.threads++] = t;
    return t;
}

static void set_parent(struct guest_thread *child, struct guest_thread *parent)
{
    int unknown = PARENT_UNKNOWN;

    child->family.parent = parent->id;
    child->family.ordinal = parent->family.children;
    if (atomic_compare_exchange_strong(&child->family.parentage, &unknown, PARENT_KNOWN))
        parent->family.children++;
}

struct guest_thread *child_expected(struct guest_process *p, uint64_t handle)
{
    for (size_t i = plugin.threads; handle && i-- > 0;) {
        struct guest_thread *t = plugin.thread[i];
        if (t->process == p && !t->target && !t->end.has_ended && t->handle == handle)
            return t;
    }
    return NULL;
}

/* If one thread of the process alone is creating another, that is the parent. */
void child_announced(struct guest_thread *child)
{
    struct guest_thread *parent = NULL;
    unsigned creating = 0;

    for (size_t i = 0; i < plugin.threads; i++) {
        struct guest_thread *t = plugin.thread[i];
        if (t->process != child->process || t == child || !t->family.is_creating)
            continue;
        parent = t;
        creating++;
    }
    if (creating != 1 || parent->family.made)
        return;
    parent->family.made = child;
    set_parent(child, parent);
}

/* ---- for calls.c ---- */

void child_expect(struct guest_thread *parent)
{
    pthread_mutex_lock(&plugin.lock);
    parent->family.is_creating = true;
    parent->family.made = NULL;
    pthread_mutex_unlock(&plugin.lock);
}

void child_forget(struct guest_thread *parent)
{
    pthread_mutex_lock(&plugin.lock);
    parent->family.is_creating = false;
    parent->family.made = NULL;
    pthread_mutex_unlock(&plugin.lock);
}

static struct guest_thread *newest_thread(struct guest_process *p, uint64_t handle)
{
    for (size_t i = plugin.threads; handle && i-- > 0;) {
        struct guest_thread *t = plugin.thread[i];
        if (t->process == p && t->handle == handle && !t->family.is_joined)
            return t;
    }
    return NULL;
}

/* The child with this handle; reserved if it has not marked itself. NULL: its stream has begun without a parent. */
static struct guest_thread *created_child(struct guest_thread *parent, uint64_t handle)
{
    struct guest_thread *child = parent->family.made;

    if (child && child->handle == handle)
        return child;
    child = newest_thread(parent->process, handle);
    bool is_new = child && !child->end.has_ended && atomic_load(&child->family.parentage) == PARENT_UNKNOWN;
    if (child && !is_new && !child->end.has_ended && !child->is_suspended && child->target)
        return NULL; /* its stream has begun without a parent, or the value is not a handle */
    if (!is_new) {
        child = thread_reserve(parent->process);
        child->handle = handle;
    }
    set_parent(child, parent);
    return atomic_load(&child->family.parentage) == PARENT_KNOWN ? child : NULL;
}

bool child_created(struct vcpu *v, uint64_t at, uint64_t *ret_number)
{
    uint64_t handle;

    if (!vcpu_memory(v, at, &handle, sizeof handle) || handle == 0)
        return false;
    pthread_mutex_lock(&plugin.lock);
    struct guest_thread *child = created_child(v->thread, handle);
    pthread_mutex_unlock(&plugin.lock);
    *ret_number = child ? child->id : 0;
    return child != NULL;
}

struct guest_thread *child_of_handle(struct guest_process *p, uint64_t handle)
{
    pthread_mutex_lock(&plugin.lock);
    struct guest_thread *t = newest_thread(p, handle);
    pthread_mutex_unlock(&plugin.lock);
    return t && atomic_load(&t->family.parentage) == PARENT_KNOWN ? t : NULL;
}

/* ---- barriers and spin locks ---- */

void object_set(struct guest_process *p, uint64_t addr, uint64_t value)
{
    pthread_mutex_lock(&plugin.lock);
    p->objects.value_size = sizeof(uint64_t);
    uint64_t *place = map_put(&p->objects, addr, 0);
    if (place)
        *place = value;
    pthread_mutex_unlock(&plugin.lock);
}

uint64_t object_get(struct guest_process *p, uint64_t addr)
{
    pthread_mutex_lock(&plugin.lock);
    const uint64_t *place = map_find(&p->objects, addr, 0);
    uint64_t value = place ? *place : 0;
    pthread_mutex_unlock(&plugin.lock);
    return value;
}
