/* SPDX-License-Identifier: MIT */
/* Events of locks, threads and the allocator: calls of functions in CALL_RULES (capture/qemu/calls.h).
 *
 * Entries of functions come from the symbols of the guest's files. A block is instrumented if it begins at an entry's offset in a page with the
 * same bytes. When a target executes it, its address must be an entry in the process's memory map. Until the function returns, all blocks of the
 * thread take the slow path, which compares address and stack pointer with those of the return. Nested calls make no events, except in
 * signal handlers. Instructions in the function are recorded like all others. Calls that libraries make internally are events, too.
 * Leaves out: inlined functions, programs without symbols, libraries loaded after the first mark. A function left by longjmp hides the events of
 * functions called deeper in the stack. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "capture/qemu/calls.h"
#include "capture/qemu/plugin/plugin.h"

enum { SIGN_BYTES = 8, PAGE = 4096, OWNER_DIED = 130, SERIAL_THREAD = -1 };

/* The entry of a function in a file. */
struct entry {
    const char *file;      /* path on the host */
    uint64_t addr, offset; /* virtual address, and offset in the file */
    const struct call_rule *rule;
};

static struct {
    struct entry *entry;
    size_t count;
    struct map signs; /* set of signatures of entries (sign_of); constant while the guest runs */
} calls;

/* ---- entries of functions ---- */

static uint64_t sign_of(uint64_t addr, const uint8_t *code)
{
    uint64_t in_page = addr % PAGE, word = 0;

    memcpy(&word, code, in_page + SIGN_BYTES > PAGE ? PAGE - in_page : SIGN_BYTES);
    return (word ^ in_page << 52) * UINT64_C(0x9e3779b97f4a7c15);
}

static void calls_add_entry(void *context, const struct module_function *f)
{
    const struct call_rule *rule = call_rule_find(f->name);

    if (!rule || f->bytes < SIGN_BYTES)
        return;
    calls.entry = mem_room(calls.entry, calls.count, sizeof *calls.entry);
    calls.entry[calls.count++] = (struct entry){ context, f->addr, f->offset, rule };
    map_put(&calls.signs, sign_of(f->addr, f->code), 0);
}

void calls_add_file(const char *path)
{
    module_functions(path, calls_add_entry, mem_string(path));
}

bool calls_may_begin(const struct qemu_plugin_tb *tb)
{
    const uint8_t *code = calls.count ? qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(tb, 0)) : NULL;

    return code && map_find(&calls.signs, sign_of(qemu_plugin_tb_vaddr(tb), code), 0);
}

static void put_entry(struct guest_process *p, uint64_t addr, const struct call_rule *rule)
{
    p->entries.value_size = sizeof(const struct call_rule *);
    const struct call_rule **place = map_put(&p->entries, addr, 0);
    if (place)
        *place = rule;
}

void calls_map(struct guest_process *p, const char *file, const struct mapping *code)
{
    for (size_t i = 0; i < calls.count; i++) {
        const struct entry *e = &calls.entry[i];
        if (strcmp(e->file, file) == 0 && e->offset >= code->offset
            && e->offset - code->offset < code->end - code->start)
            put_entry(p, code->start + (e->offset - code->offset), e->rule);
    }
}

void calls_map_alone(struct guest_process *p)
{
    for (size_t k = 0; k < plugin.settings.symbol_files; k++)
        for (size_t i = 0; i < calls.count; i++)
            if (strcmp(calls.entry[i].file, plugin.settings.symbols[k]) == 0)
                put_entry(p, calls.entry[i].addr, calls.entry[i].rule);
}

/* ---- events ---- */

/* Reads the event's arguments. False: one of them is not known; then there is no event. */
static bool read_words(struct vcpu *v, const struct call *c, uint64_t result, uint64_t ret[CALL_WORDS])
{
    for (unsigned i = 0; c->rule->words[i]; i++) {
        char letter = c->rule->words[i];
        switch (letter) {
        case 'n': ret[i] = (uint32_t)c->arg[2]; break;
        case 'r': ret[i] = (uint32_t)result == OWNER_DIED ? 0 : (uint32_t)result; break;
        case 'p': ret[i] = result; break;
        case '*':
            if (!vcpu_memory(v, c->arg[0], &ret[i], sizeof ret[i]))
                return false;
            break;
        case 'b':
            if ((ret[i] = object_get(v->thread->process, c->arg[0])) == 0)
                return false;
            break;
        case 'c':
            if (!child_created(v, c->arg[0], &ret[i]))
                return false;
            break;
        case 't':
            if (!c->child)
                return false;
            ret[i] = c->child->id;
            break;
        default: ret[i] = c->arg[letter - '0'];
        }
    }
    return true;
}

static bool has_succeeded(const struct call_rule *rule, uint64_t result)
{
    int32_t r = (int32_t)result;

    switch (rule->moment) {
    case CALL_SUCCESS: return r == 0 || r == OWNER_DIED || (r == SERIAL_THREAD && rule->event == PEET_EV_barrier_wait);
    case CALL_POINTER: return result != 0;
    default: return true;
    }
}

/* Notes values that events of later calls need. */
static void note_success(struct guest_thread *t, const struct call *c, uint32_t result)
{
    switch (c->rule->event) {
    case PEET_EV_barrier_init: object_set(t->process, c->arg[0], (uint32_t)c->arg[2]); break;
    case PEET_EV_spin_lock: object_set(t->process, c->arg[0], 1); break;
    case PEET_EV_spin_trylock:
        if (result == 0)
            object_set(t->process, c->arg[0], 1);
        break;
    case PEET_EV_thread_join:
        if (c->child)
            c->child->family.is_joined = true;
        break;
    default: break;
    }
}

static void put_return(struct vcpu *v, const struct call *c)
{
    uint64_t words[CALL_WORDS], result = vcpu_register(v, plugin.isa->result);
    bool succeeded = has_succeeded(c->rule, result);

    if (succeeded)
        note_success(v->thread, c, (uint32_t)result);
    if (succeeded && read_words(v, c, result, words))
        vcpu_put(v, event_item_at(c->rule->event, c->back), words, (size_t)peet_event_arity(c->rule->event));
    if (c->rule->event == PEET_EV_thread_create)
        child_forget(v->thread);
}

void calls_return(struct vcpu *v, const struct block *b)
{
    struct guest_thread *t = v->thread;

    while (t->calls > 0 && t->call[t->calls - 1].level > t->signal_frames)
        t->calls--; /* of a signal handler that was left */
    struct call *c = t->calls ? &t->call[t->calls - 1] : NULL;
    if (!c || c->level != t->signal_frames || b->pc != c->back)
        return;
    if (vcpu_register(v, plugin.isa->sp) != c->sp + (plugin.isa->link ? 0 : sizeof(uint64_t)))
        return;
    t->calls--;
    if (!c->is_recorded)
        put_return(v, c);
}

/* Whether the thread is in such a function. Removes calls whose frames were left: the stack pointer is above them. */
static bool is_in_call(struct guest_thread *t, uint64_t sp)
{
    while (t->calls > 0) {
        const struct call *c = &t->call[t->calls - 1];
        if (c->level < t->signal_frames)
            return false;
        if (c->level == t->signal_frames && sp <= c->sp)
            return true;
        t->calls--;
    }
    return false;
}

const struct call *calls_current(const struct guest_thread *t)
{
    const struct call *c = t->calls ? &t->call[t->calls - 1] : NULL;

    return c && c->level == t->signal_frames ? c : NULL;
}

static const struct call_rule *call_rule_at(struct guest_process *p, uint64_t pc)
{
    pthread_mutex_lock(&plugin.lock);
    const struct call_rule **rule = map_find(&p->entries, pc, 0), *found = rule ? *rule : NULL;
    pthread_mutex_unlock(&plugin.lock);
    return found;
}

static void read_call(struct vcpu *v, struct call *c)
{
    const struct guest_isa *g = plugin.isa;

    for (unsigned i = 0; i < CALL_ARGUMENTS; i++)
        c->arg[i] = vcpu_register(v, g->arg[i]);
    if (g->link)
        c->back = vcpu_register(v, g->link);
    else if (!vcpu_memory(v, c->sp, &c->back, sizeof c->back))
        c->back = 0;
    if (strchr(c->rule->words, 't'))
        c->child = child_of_handle(v->thread->process, c->arg[0]);
    if (c->rule->event == PEET_EV_thread_create)
        child_expect(v->thread);
}

/* Whether a call makes no event: free of NULL, and pthread_spin_init, which has the same code as pthread_spin_unlock. */
static bool is_without_event(struct guest_thread *t, const struct call *c)
{
    if (c->rule->event == PEET_EV_free)
        return c->arg[0] == 0;
    if (c->rule->event != PEET_EV_spin_unlock)
        return false;
    if (object_get(t->process, c->arg[0]) == 0)
        return true;
    object_set(t->process, c->arg[0], 0);
    return false;
}

/* Called before the first instruction of a block that may begin a function. */
void on_call(unsigned cpu, void *unused)
{
    struct vcpu *v = vcpu_of(cpu);
    struct guest_thread *t = v->thread;
    uint64_t words[CALL_WORDS];

    (void)unused;
    if (v->state != STATE_TARGET || !t || !v->open || v->open->is_kernel)
        return;
    struct call c = { .rule = call_rule_at(t->process, v->open->pc), .level = t->signal_frames };
    if (!c.rule)
        return;
    c.sp = vcpu_register(v, plugin.isa->sp);
    if (is_in_call(t, c.sp) || t->calls == CALLS_MAX)
        return;
    read_call(v, &c);
    bool is_before = c.rule->moment == CALL_BEFORE || c.rule->moment == CALL_NO_RETURN;
    if (is_before && !is_without_event(t, &c) && read_words(v, &c, 0, words))
        vcpu_put_before(v, event_item_at(c.rule->event, c.back), words, (size_t)peet_event_arity(c.rule->event));
    if (c.rule->moment == CALL_NO_RETURN)
        return;
    c.is_recorded = is_before || c.rule->moment == CALL_SITE;
    t->call[t->calls++] = c;
    v->page_offsets_room = 0; /* all blocks take the slow path */
}
