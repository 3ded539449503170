/* SPDX-License-Identifier: MIT */
/* Classification: which target's user code a processor executes; how threads begin and end.
 *
 * A thread is identified by its address space and the window of its stack (capture/qemu/threads.h). A stale target (the thread has ended, and another
 * one has its root and addresses) is found by the cookie in the thread's card, compared each time that the thread leaves the kernel. On another
 * stack (of a signal, of a coroutine) the thread pointer identifies the thread. Patterns other than the marker have no card; then a thread is
 * retired by its exit, or by the next mark with an overlapping window.
 * A child of vfork shares all of this with its suspended parent: it is recognized by the result of the system call.
 * Leaves out: a signal handler that the parent enters when it resumes after vfork is taken for one of the child. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "capture/qemu/plugin/plugin.h"
#include "peet/mark_guest.h"

enum { NEAR_BYTES = 64 << 10 };

/* ---- processes ---- */

static struct guest_process *process_of(uint64_t root, uint64_t number)
{
    struct guest_process *p = plugin.processes;

    while (p && (p->root != root || p->number != number || p->has_ended))
        p = p->next;
    return p;
}

static struct guest_process *process_new(uint64_t root, uint64_t number)
{
    struct guest_process *p = mem_alloc(1, sizeof *p);

    p->root = root;
    p->number = number;
    p->next = plugin.processes;
    plugin.processes = p;
    return p;
}

static bool is_in_exec(const struct guest_process *p)
{
    for (size_t i = plugin.threads; i-- > 0;)
        if (plugin.thread[i]->process == p && plugin.thread[i]->kernel.is_in_exec)
            return true;
    return false;
}

/* After exec it is another program, with the same number and possibly the same root. */
struct guest_process *process_of_maps(uint64_t root, uint64_t number)
{
    struct guest_process *p = process_of(root, number);

    if (p && is_in_exec(p)) {
        p->has_ended = true;
        p = NULL;
    }
    return p ? p : process_new(root, number);
}

/* The table of page offsets, with room for this page; under plugin.lock. Old tables are not freed: other processors may read them. */
static uint64_t *page_offsets_for(struct guest_process *p, uint32_t page)
{
    uint64_t *old = atomic_load(&p->page_offsets);
    uint32_t room = atomic_load(&p->page_offsets_room);

    if (page < room)
        return old;
    uint32_t more = (page + 64) * 2;
    uint64_t *page_offsets = mem_alloc(more, sizeof *page_offsets);
    memset(page_offsets, 0xff, more * sizeof *page_offsets);
    if (room)
        memcpy(page_offsets, old, room * sizeof *page_offsets);
    atomic_store(&p->page_offsets, page_offsets);
    atomic_store(&p->page_offsets_room, more);
    return page_offsets;
}

static void refresh_page_offsets(struct vcpu *v)
{
    v->page_offsets_room = atomic_load(&v->thread->process->page_offsets_room);
    v->page_offsets = atomic_load(&v->thread->process->page_offsets);
}

static void set_page_offset(struct vcpu *v, uint32_t page, uint64_t moved_by)
{
    pthread_mutex_lock(&plugin.lock);
    __atomic_store_n(&page_offsets_for(v->thread->process, page)[page], moved_by, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&plugin.lock);
    refresh_page_offsets(v);
}

struct block *block_at_pc(struct vcpu *v, struct block *b)
{
    if (b->page >= v->page_offsets_room)
        refresh_page_offsets(v);
    if (b->page >= v->page_offsets_room || v->page_offsets[b->page] == UNKNOWN_OFFSET)
        set_page_offset(v, b->page, vcpu_register(v, plugin.isa->pc) - b->pc);
    uint64_t moved_by = v->page_offsets[b->page];
    return moved_by ? block_alias(b, b->pc + moved_by) : b;
}

/* ---- identification ---- */

static struct guest_thread *target_still_valid(struct vcpu *v, struct target *target)
{
    struct guest_thread *t = target->user;
    uint64_t cookie = 0;

    if (t->process->has_ended)
        return NULL;
    if (t->cookie_at == 0 || (vcpu_memory(v, t->cookie_at, &cookie, sizeof cookie) && cookie == t->cookie))
        return t;
    atomic_fetch_add(&plugin.count.stale, 1);
    targets_retire(&plugin.targets, target);
    return NULL;
}

static bool translate_vaddr(void *context, uint64_t addr, uint64_t *ret)
{
    (void)context;
    return qemu_plugin_translate_vaddr(addr, ret);
}

/* Whether the running thread is not t, but its child of vfork, in the same space with the same stack or thread pointer. */
static bool is_vfork_child(struct vcpu *v, struct guest_thread *t, uint64_t pc)
{
    if (!t->kernel.is_cloning || !t->kernel.has_resume)
        return false;
    if (pc == t->kernel.resume)
        t->kernel.is_context_borrowed = vcpu_register(v, plugin.isa->result) == 0;
    return t->kernel.is_context_borrowed;
}

/* Under plugin.lock. */
static struct guest_thread *target_thread(struct vcpu *v, uint64_t pc)
{
    const struct guest_isa *g = plugin.isa;
    uint64_t root = vcpu_register(v, g->root) & g->root_mask, sp = vcpu_register(v, g->sp);
    struct translation tr = { qemu_plugin_translate_vaddr ? translate_vaddr : NULL, NULL };
    struct target *target = targets_find(&plugin.targets, root, sp, &tr), *near;

    if (!target) {
        target = targets_find_pointer(&plugin.targets, root, vcpu_register(v, g->pointer));
        near = target ? NULL : targets_near(&plugin.targets, root, sp, NEAR_BYTES);
        if (near && !((const struct guest_thread *)near->user)->is_window_given)
            atomic_fetch_add(&plugin.count.near_misses, 1);
    }
    if (target && is_vfork_child(v, target->user, pc))
        return NULL;
    return target ? target_still_valid(v, target) : NULL;
}

/* ---- arrival and departure ---- */

/* Records why the thread resumes at another address: a signal handler, its end, or a jump. */
static void put_move(struct vcpu *v, uint64_t pc)
{
    struct guest_thread *t = v->thread;
    bool is_register_known = !t->kernel.is_returning && !plugin.settings.other_os;
    unsigned signal = !is_register_known ? 0 : plugin.isa->entered_handler(vcpu_probe(v));

    if (signal) {
        if (t->signal_frames == SIGNAL_FRAMES_MAX)
            memmove(t->signal_frame, t->signal_frame + 1, --t->signal_frames * sizeof *t->signal_frame);
        t->signal_frame[t->signal_frames++] = (struct signal_frame){ signal, t->kernel.resume };
        VCPU_EVENT(v, signal_enter, signal);
        return;
    }
    if (t->kernel.is_returning && t->signal_frames) {
        struct signal_frame i = t->signal_frame[--t->signal_frames];
        VCPU_EVENT(v, signal_exit, i.signal);
        if (i.resume == pc)
            return;
    }
    VCPU_EVENT(v, jump, pc);
}

/* Reopens a string instruction that was interrupted. If the thread does not resume it, records the part that was executed. */
static void resume_string_insn(struct vcpu *v, uint64_t pc)
{
    struct guest_thread *t = v->thread;
    struct block *b = t->string_insn.block;
    struct journal *free_one = v->journal;
    const struct block_insn *last = &b->insn[b->insns - 1];

    v->journal = t->string_insn.journal;
    t->string_insn.journal = free_one;
    t->string_insn.is_suspended = false;
    v->open = b;
    v->first = t->string_insn.first;
    v->logs = true;
    v->is_reentered = true;
    v->start = v->at;
    if (pc == last->guest.insn.addr + b->moved_by)
        return;
    const struct journal *j = v->journal;
    bool did_some = last->guest.stores ? j->repeated[1].count > 0 : j->repeated[0].count > 0;
    vcpu_close(v, did_some ? b->insns : b->insns - 1);
}

struct guest_thread *thread_here(struct vcpu *v, uint64_t pc)
{
    pthread_mutex_lock(&plugin.lock);
    struct guest_thread *t = target_thread(v, pc);
    if (t && t->owner >= 0 && t->owner != (int)v->index) {
        atomic_fetch_add(&plugin.count.collisions, 1);
        t = NULL;
    }
    if (t)
        t->owner = (int)v->index;
    pthread_mutex_unlock(&plugin.lock);
    v->state = t ? STATE_TARGET : STATE_OTHER;
    if (v->thread && v->thread != t) { /* the kernel has switched threads */
        if (v->open)
            vcpu_close(v, v->open->insns);
        vcpu_leave(v);
    }
    return t;
}

bool vcpu_arrive(struct vcpu *v, struct block *b, uint64_t *ret_pc)
{
    uint64_t pc = *ret_pc = vcpu_register(v, plugin.isa->pc);
    struct guest_thread *t = thread_here(v, pc);

    if (!t)
        return false;
    if (v->thread) { /* kernel=on: the thread stayed bound in the kernel */
        if (v->open)
            vcpu_close(v, v->open->insns);
        buffer_detach(v);
    }
    v->thread = t;
    v->entering = NULL;
    buffer_attach(v);
    refresh_page_offsets(v);
    if (b->page < v->page_offsets_room && v->page_offsets[b->page] != UNKNOWN_OFFSET
        && v->page_offsets[b->page] != pc - b->pc)
        set_page_offset(v, b->page, pc - b->pc); /* the page was mapped at another address since */
    v->open = NULL;
    if (t->string_insn.is_suspended)
        resume_string_insn(v, pc);
    if (t->kernel.has_resume && pc != t->kernel.resume)
        put_move(v, pc);
    else if (t->kernel.is_returning && t->signal_frames)
        VCPU_EVENT(v, signal_exit, t->signal_frame[--t->signal_frames].signal);
    else if (t->kernel.memory_call != GUEST_CALL_OTHER)
        memory_returned(v);
    t->kernel.memory_call = GUEST_CALL_OTHER;
    return true;
}

void vcpu_leave(struct vcpu *v)
{
    struct guest_thread *t = v->thread;

    if (!plugin.settings.counts)
        buffer_detach(v);
    v->thread = NULL;
    v->open = NULL;
    v->page_offsets = NULL;
    v->page_offsets_room = 0;
    __atomic_store_n(&t->owner, -1, __ATOMIC_RELEASE);
}

/* ---- beginning and end ---- */

static void end_of_thread(struct guest_thread *t, uint64_t how)
{
    if (t->end.has_ended)
        return;
    t->end.has_ended = true;
    t->end.how = how;
    if (!plugin.settings.counts)
        buffer_finish(t);
}

static void target_retired(struct target *over, void *context)
{
    struct guest_thread *t = over->user;

    (void)context;
    if (t->owner < 0)
        end_of_thread(t, t->kernel.is_in_exec ? PEET_END_EXEC : PEET_END_STOPPED);
}

/* Stops recording the thread. */
static void leave_targets(struct vcpu *v, struct guest_thread *t)
{
    vcpu_leave(v);
    v->state = STATE_UNKNOWN;
    pthread_mutex_lock(&plugin.lock);
    targets_retire(&plugin.targets, t->target);
    kernel_forget(t);
    pthread_mutex_unlock(&plugin.lock);
}

void thread_suspend(struct vcpu *v)
{
    struct guest_thread *t = v->thread;

    if (!t->native) { /* another mark of it could not be recognized */
        thread_end(v, PEET_END_STOPPED);
        return;
    }
    leave_targets(v, t);
    t->calls = 0;
    t->kernel.has_resume = false;
    if (!plugin.settings.counts)
        buffer_pass(t);
    __atomic_store_n(&t->is_suspended, true, __ATOMIC_RELEASE);
}

void thread_end(struct vcpu *v, uint64_t how)
{
    struct guest_thread *t = v->thread;

    leave_targets(v, t);
    end_of_thread(t, how);
}

/* The contents of a mark. */
struct announcement {
    struct target target;
    bool is_window_given; /* the mark has given the stack */
    uint64_t card_at;     /* address of the card; 0: none */
    struct peet_mark_card card;
};

static void read_announcement(struct vcpu *v, struct announcement *a)
{
    const struct guest_isa *g = plugin.isa;
    uint64_t sp = vcpu_register(v, g->sp);

    *a = (struct announcement){ .target.frame = TARGET_NO_FRAME };
    a->target.space = vcpu_register(v, g->root) & g->root_mask;
    a->target.pointer = plugin.settings.stack_only ? 0 : vcpu_register(v, g->pointer);
    a->target.window = window_of(&plugin.settings.window, sp);
    if (!plugin.settings.pattern.is_marker) {
        a->target.tid = (uint32_t)vcpu_register(v, g->tid);
        return;
    }
    a->target.tid = vcpu_register(v, g->arg[1]);
    uint64_t bottom = vcpu_register(v, g->arg[2]), bytes = vcpu_register(v, g->arg[3]);
    a->is_window_given = bytes && !plugin.settings.given_stack;
    if (a->is_window_given)
        a->target.window = (struct window){ bottom, bottom + 1 - bytes };
    a->card_at = vcpu_register(v, g->arg[4]);
    if (a->card_at && !vcpu_memory(v, a->card_at, &a->card, sizeof a->card))
        a->card_at = 0;
}

/* The first process of application N gets number N; others get numbers above those of all applications. */
static uint32_t process_number(uint64_t application)
{
    const struct guest_process *p = plugin.processes;

    while (p && p->id != application)
        p = p->next;
    return application > 0 && application <= plugin.settings.applications && !p ? (uint32_t)application
                                                                                : ++plugin.last_process;
}

/* The process of a mark; made at its first mark. */
static struct guest_process *process_announced(struct vcpu *v, const struct announcement *a)
{
    struct guest_process *p = process_of(a->target.space, a->card.process);

    if (!p)
        p = process_new(a->target.space, a->card.process);
    if (p->id)
        return p;
    p->id = process_number(a->card.application);
    plugin.process_count++;
    p->program = vcpu_string(v, a->card.program);
    if (!*p->program && plugin.settings.symbol_files == 1) {
        free(p->program);
        p->program = mem_string(plugin.settings.symbols[0]);
    }
    p->command = vcpu_string(v, a->card.command);
    if (!p->maps)
        calls_map_alone(p);
    return p;
}

/* The known thread of a mark: suspended by an end mark, or retired because an interrupt came while it wrote its card. NULL: a new thread.
 * Ends suspended threads with the same thread pointer. */
static struct guest_thread *thread_suspended(const struct guest_process *p, const struct announcement *a)
{
    struct guest_thread *found = NULL;

    for (size_t i = 0; a->card.thread && i < plugin.threads; i++) {
        struct guest_thread *t = plugin.thread[i];
        if (t->process != p || t->end.has_ended || !t->target || t->target->live)
            continue;
        if (t->native == a->card.thread)
            found = t;
        else if (__atomic_load_n(&t->is_suspended, __ATOMIC_ACQUIRE) && t->target->pointer == a->target.pointer)
            end_of_thread(t, PEET_END_STOPPED);
    }
    return found;
}

static void take_announcement(struct guest_thread *t, const struct vcpu *v, const struct announcement *a)
{
    t->native = a->card.thread;
    t->cookie = a->card.cookie;
    t->cookie_at = a->card_at;
    t->is_window_given = a->is_window_given;
    t->owner = (int)v->index;
    t->is_suspended = false;
}

static struct guest_thread *announced_thread(struct guest_process *p, const struct announcement *a)
{
    uint64_t handle = a->card.handle ? a->card.handle : a->target.pointer;
    struct guest_thread *t = child_expected(p, handle);

    if (t)
        return t;
    t = thread_reserve(p);
    t->handle = handle;
    child_announced(t);
    return t;
}

/* The block, or alias, that has the marker. QEMU's program counter may be that of the block's beginning. */
static struct block *marked_block(struct vcpu *v, const struct block_insn *at)
{
    struct block *b = at->block;
    uint64_t pc = vcpu_register(v, plugin.isa->pc), moved_by = pc - b->pc;

    if (moved_by % 4096)
        moved_by = pc - at->guest.insn.addr;
    if (moved_by % 4096)
        moved_by = 0;
    set_page_offset(v, b->page, moved_by);
    return moved_by ? block_alias(b, b->pc + moved_by) : b;
}

/* A mark of a thread that is recorded already: takes the new cookie. */
bool thread_is_marked(struct vcpu *v)
{
    struct guest_thread *t = v->state == STATE_TARGET ? v->thread : NULL;
    struct announcement a;

    if (!t || !plugin.settings.pattern.is_marker)
        return false;
    read_announcement(v, &a);
    bool is_same = t->native == a.card.thread && t->target->space == a.target.space
                   && (t->native || t->target->window.start == a.target.window.start);
    if (is_same) {
        t->cookie = a.card.cookie;
        t->cookie_at = a.card_at;
    }
    return is_same;
}

struct guest_thread *thread_announced(struct vcpu *v, bool *ret_again)
{
    struct announcement a;

    read_announcement(v, &a);
    pthread_mutex_lock(&plugin.lock);
    struct guest_process *p = process_announced(v, &a);
    struct guest_thread *t = thread_suspended(p, &a);
    *ret_again = t != NULL;
    if (!t) {
        t = announced_thread(p, &a);
        plugin.marked++;
    }
    take_announcement(t, v, &a);
    a.target.user = t;
    t->target = targets_add(&plugin.targets, &a.target, target_retired, NULL);
    pthread_mutex_unlock(&plugin.lock);
    v->thread = t;
    v->state = STATE_TARGET;
    return t;
}

/* Records, as the first event, a gap since the last mark or the thread's stack. */
static void put_beginning(struct vcpu *v, bool again)
{
    const struct guest_thread *t = v->thread;
    struct window w = t->target->window;
    uint64_t low = w.start < w.end ? w.start : w.end, high = w.start < w.end ? w.end : w.start;

    if (again)
        VCPU_EVENT(v, gap, 0, 0);
    else if (t->is_window_given)
        VCPU_EVENT(v, map, low, high - low + 1, 6);
}

void thread_begin(struct vcpu *v, struct block_insn *at)
{
    bool again;

    if (thread_is_marked(v))
        return;
    if (v->state == STATE_TARGET && v->thread) {
        if (v->open)
            vcpu_close(v, at->index);
        vcpu_leave(v);
    }
    thread_announced(v, &again);
    v->open = NULL;
    buffer_attach(v);
    put_beginning(v, again);
    refresh_page_offsets(v);
    vcpu_open(v, marked_block(v, at), at->index + 1u);
    plugin_arm();
}

void threads_finish(void)
{
    for (int i = 0; plugin.vcpus && i < qemu_plugin_num_vcpus(); i++) {
        struct vcpu *v = vcpu_of((unsigned)i);
        if (!v->thread)
            continue;
        if (v->open)
            v->at = v->start; /* it is not known how many of its instructions were executed */
        vcpu_leave(v);
    }
    for (size_t i = 0; i < plugin.threads; i++) {
        struct guest_thread *t = plugin.thread[i];
        end_of_thread(t, t->is_suspended         ? PEET_END_STOPPED
                         : t->process->has_ended ? PEET_END_PROCESS_EXIT
                         : t->kernel.is_in_exec  ? PEET_END_EXEC
                                                 : PEET_END_STOPPED);
    }
}
