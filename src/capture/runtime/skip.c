/* SPDX-License-Identifier: MIT */
/* Skip mode (skip.h): the calling thread runs counting copies of functions (docs/design/instrumentation.md).
 * In skip mode `budget` says from where the thread counts, and peet_rt_cursor is the counter. The counter may have
 * passed 0, so that only `budget` says what peet_rt_cursor holds. Events suspend skip mode while they are written; a
 * stop ends it.
 * Skip mode can begin only where a record begins. If the buffer ends within a record, the rest of the record is written
 * to the end of the spill page, so that the next record faults. Roots of loops read the guard before they begin, and
 * need no spill page. */
#include "capture/runtime/crossing.h"
#include "capture/runtime/real.h"
#include "capture/runtime/rt.h"
#include "capture/runtime/host.h"
#include "capture/runtime/skip.h"

/* addresses much further below 0 are not canonical, and their faults have no address */
#define MAX_SKIP ((uint64_t)1 << 40)

/* The first fields of a schema entry (capture/protocol/schema_section.h). */
struct schema_head {
    uint32_t kind;
    int32_t start;
    uint16_t insns, slots;
    uint32_t flags;
    int32_t parent, counting;
};

void peet_rt_skip_begin(uint64_t references)
{
    struct rt_self *s = &peet_rt_self;

    s->skip.pending = 0;
    s->skip.budget = references < MAX_SKIP ? references : MAX_SKIP;
    s->skip.saved_cursor = peet_rt_cursor;
    peet_rt_cursor = (uint64_t *)(uintptr_t)-s->skip.budget;
}

/* Writes the gap event and restores the cursor. Returns the references that are left. */
static uint64_t skip_take_count(void)
{
    struct rt_self *s = &peet_rt_self;
    uint64_t left = -RT_ADDR(peet_rt_cursor), counted = s->skip.budget - left;

    s->skip.budget = 0;
    peet_rt_cursor = s->skip.saved_cursor;
    if (counted) {
        s->skip.path_unknown = true;
        uint64_t *signal_end = s->handlers.end;
        s->handlers.end = s->handlers.buffer.start; /* events of handlers that ran in skip mode follow the gap */
        peet_rt_put(PEET_EV_gap, 0, 2, (uint64_t[]){ 0, counted });
        s->handlers.end = signal_end;
    }
    return (int64_t)left > 0 ? left : 0;
}

void peet_rt_skip_end(void)
{
    peet_rt_self.skip.suspended = 0;
    if (peet_rt_self.skip.budget)
        skip_take_count();
}

void peet_rt_skip_suspend(void)
{
    uint64_t left = skip_take_count();

    peet_rt_self.skip.suspended = left;
}

void peet_rt_skip_resume(void)
{
    struct rt_self *s = &peet_rt_self;
    uint64_t references = s->skip.suspended ? s->skip.suspended : s->skip.pending;

    s->skip.suspended = 0;
    if (s->handlers.active == 0 && s->entry && references)
        peet_rt_skip_begin(references);
}

uint64_t peet_rt_skip_end_at(uint64_t counter, uint64_t stack)
{
    struct rt_self *s = &peet_rt_self;

    if (s->skip.budget) {
        peet_rt_cursor = (uint64_t *)(uintptr_t)counter;
        skip_take_count();
        peet_rt_put(PEET_EV_set_register, 0, 2, (uint64_t[]){ 0, stack });
    }
    return RT_ADDR(peet_rt_cursor);
}

/* ---- calls in skip mode ---- */

uint64_t peet_rt_recorded_site(uint64_t site)
{
    uint64_t back;

    return site && raw_crossing_target(site, &back) ? back : site;
}

/* Stops the thread, so that its stack can be walked. */
static void stop_for_calls(uint64_t rip, uint64_t rsp, uint64_t rbp, bool calls)
{
    struct raw_thread *entry = peet_rt_self.entry;

    entry->resume_regs[0] = rip;
    entry->resume_regs[1] = rsp;
    entry->resume_regs[2] = rbp;
    entry->resume_regs[3] = calls;
    peet_rt_self.skip.path_unknown = false;
    peet_rt_stop();
    entry->resume_regs[0] = 0;
}

void peet_rt_show_callers(const void *frame)
{
    const uint64_t *f = frame;
    uint64_t back;

    if (peet_rt_self.skip.budget && peet_rt_in_process && peet_rt_is_controlled() && raw_crossing_target(f[1], &back))
        stop_for_calls(f[1], RT_ADDR(f + 2), f[0], true);
}

/* Called on the stack of a thread that crosses. After a gap, a simulator in the process derives the calls that lead
 * here from the stack. */
void peet_rt_crossed(struct rt_registers *r)
{
    enum { RED_ZONE = 128 };
    struct rt_self *s = &peet_rt_self;
    bool is_cursor = !s->skip.budget && r->r15 >= RT_ADDR(s->buffer.start) && r->r15 <= RT_ADDR(s->buffer.end);
    uint64_t stack = RT_ADDR(r + 1) + RED_ZONE;

    if (!is_cursor)
        r->r15 = peet_rt_skip_end_at(r->r15, stack);
    peet_rt_cursor = (uint64_t *)(uintptr_t)r->r15;
    if (s->skip.path_unknown && peet_rt_in_process && peet_rt_is_controlled()) {
        if (is_cursor) /* the gap was written before an event */
            peet_rt_put(PEET_EV_gap, 0, 2, (uint64_t[]){ 0, 0 });
        stop_for_calls(r->rip, stack, r->rbp, false);
        r->r15 = RT_ADDR(peet_rt_cursor);
    }
}

/* ---- library code ---- */

static uint64_t skip_count_lines(const void *p, size_t n)
{
    uint64_t line = peet_rt_header->skip_line;

    return p ? (RT_ADDR(p) + n - 1) / line - RT_ADDR(p) / line + 1 : 0;
}

bool peet_rt_skip_bytes(size_t n, const void *a, const void *b)
{
    if (!peet_rt_header->skip_line || peet_rt_self.handlers.active > 0)
        return false;
    if (n > 0)
        peet_rt_cursor =
            (uint64_t *)(uintptr_t)(RT_ADDR(peet_rt_cursor) + skip_count_lines(a, n) + skip_count_lines(b, n));
    return true;
}

/* ---- entering skip mode ---- */

/* The key that the instruction is about to write; 0: it writes none. */
static uint64_t written_key(uint64_t rip, uint64_t r14)
{
    const uint8_t *code = (const uint8_t *)(uintptr_t)rip;
    int32_t constant;

    if (code[0] == 0x4d && code[1] == 0x89 && code[2] == 0x37) /* movq %r14, (%r15) */
        return r14;
    if (code[0] != 0x49 || code[1] != 0xc7 || code[2] != 0x07) /* movq $constant, (%r15) */
        return 0;
    __builtin_memcpy(&constant, code + 3, sizeof constant);
    return (uint64_t)(int64_t)constant;
}

/* Whether a root reads the last word that its tree can reach: movq …(%r15), %r14. */
static bool is_guard_read(uint64_t rip)
{
    const uint8_t *code = (const uint8_t *)(uintptr_t)rip;

    return code[0] == 0x4d && code[1] == 0x8b && (code[2] == 0x77 || code[2] == 0xb7);
}

static const struct schema_head *schema_head_of(uint64_t key)
{
    return key && !(key >> 63) ? (const struct schema_head *)(uintptr_t)key : NULL;
}

static const struct schema_head *schema_parent(const struct schema_head *e)
{
    return e->parent ? (const struct schema_head *)(const void *)((const char *)e + e->parent) : NULL;
}

/* The place in the counting copy where the root of e begins; 0: none. The key may be that of a shared block in the
 * root's record. */
static uint64_t counting_root(const struct schema_head *e)
{
    while (e && schema_parent(e))
        e = schema_parent(e);
    return e && e->counting ? RT_ADDR(&e->counting) + (uint64_t)(int64_t)e->counting : 0;
}

uint64_t peet_rt_counting_copy(uint64_t rip, uint64_t r14)
{
    return counting_root(schema_head_of(written_key(rip, r14)));
}

/* Words of a record with this key; 0: not known (loops). */
static size_t record_words(const struct schema_head *e)
{
    size_t words = 1;

    for (; e; e = schema_parent(e)) {
        if (e->kind != RAW_BLOCK)
            return 0;
        words += e->slots;
    }
    return words;
}

bool peet_rt_skip_at_fault(const uint64_t *record, size_t words, uint64_t r14, uint64_t *rip, uint64_t *ret_r15)
{
    struct rt_self *s = &peet_rt_self;
    const struct schema_head *e = schema_head_of(words ? record[0] : written_key(*rip, r14));
    uint64_t other = counting_root(e);

    if (!other)
        return false;
    if (words == 0 || is_guard_read(*rip)) {
        peet_rt_skip_begin(s->skip.pending);
        *ret_r15 = RT_ADDR(peet_rt_cursor);
        *rip = other;
        return true;
    }
    size_t all = record_words(e);
    if (all < words || all > RAW_MAX_WORDS)
        return false;
    struct rt_span apart = peet_rt_spill_page();
    s->skip.spilled = s->buffer;
    s->buffer = (struct rt_span){ apart.end - all, apart.end };
    for (size_t i = 0; i < words; i++)
        s->buffer.start[i] = record[i];
    for (size_t i = words; i < all; i++)
        s->buffer.start[i] = 0;
    *ret_r15 = RT_ADDR(s->buffer.start);
    return true;
}
