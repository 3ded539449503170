/* SPDX-License-Identifier: MIT */
/* Threads that leave references out: they run the copies that count (docs/design/instrumentation.md).
 *
 * While a thread counts, `off` says from where, and the cursor is the counter; where the words go on is kept. It may have passed 0, so that only
 * `off` tells what the cursor is. Events interrupt the counting for as long as it takes to tell them; who stops for one counts no more.
 *
 * To leave something out, a thread has to be where the other copy can go on: where a record begins. If the buffer ends in the middle of one, the rest of it
 * is written to a page apart, at the end, so that the next record faults. Loops look before they begin, and need no such page. */
#include "capture/runtime/back.h"
#include "capture/runtime/real.h"
#include "capture/runtime/rt.h"

#define MOST ((uint64_t)1 << 40) /* further below 0 begin addresses that fault otherwise */

/* What stands first in an entry of the schema. */
struct entry {
    uint32_t kind;
    int32_t start;
    uint16_t insns, slots;
    uint32_t flags;
    int32_t parent, counting;
};

void peet_rt_go_off(uint64_t references)
{
    struct rt_self *s = &peet_rt_self;

    s->wish = 0;
    s->off = references < MOST ? references : MOST;
    s->kept = peet_rt_cursor;
    peet_rt_cursor = (uint64_t *)(uintptr_t)-s->off;
}

/* What has been left out is told; returns how much is left of it. */
static uint64_t end_count(void)
{
    struct rt_self *s = &peet_rt_self;
    uint64_t left = -RT_ADDR(peet_rt_cursor), counted = s->off - left;

    s->off = 0;
    peet_rt_cursor = s->kept;
    if (counted) {
        s->is_astray = true;
        uint64_t *signal_end = s->signal_end;
        s->signal_end = s->signal.start; /* what handlers said in this time comes behind it */
        peet_rt_put(PEET_EV_gap, 0, 2, (uint64_t[]){ 0, counted });
        s->signal_end = signal_end;
    }
    return (int64_t)left > 0 ? left : 0;
}

void peet_rt_wake(void)
{
    peet_rt_self.paused = 0;
    if (peet_rt_self.off)
        end_count();
}

void peet_rt_pause(void)
{
    uint64_t left = end_count();

    peet_rt_self.paused = left;
}

void peet_rt_go_on(void)
{
    struct rt_self *s = &peet_rt_self;
    uint64_t references = s->paused ? s->paused : s->wish;

    s->paused = 0;
    if (s->handlers == 0 && s->place && references)
        peet_rt_go_off(references);
}

uint64_t peet_rt_come_on_at(uint64_t counter, uint64_t stack)
{
    struct rt_self *s = &peet_rt_self;

    if (s->off) {
        peet_rt_cursor = (uint64_t *)(uintptr_t)counter;
        end_count();
        peet_rt_put(PEET_EV_set_register, 0, 2, (uint64_t[]){ 0, stack });
    }
    return RT_ADDR(peet_rt_cursor);
}

/* ---- calls that nobody has seen ---- */

uint64_t peet_rt_recorded_site(uint64_t site)
{
    uint64_t back;

    return site && raw_recorded(site, &back) ? back : site;
}

/* The thread stops, so that its stack can be looked at. */
static void stop_at(uint64_t rip, uint64_t rsp, uint64_t rbp, bool calls)
{
    struct raw_thread *place = peet_rt_self.place;

    place->resume_regs[0] = rip;
    place->resume_regs[1] = rsp;
    place->resume_regs[2] = rbp;
    place->resume_regs[3] = calls;
    peet_rt_self.is_astray = false;
    peet_rt_stop();
    place->resume_regs[0] = 0;
}

void peet_rt_show_calls(const void *frame)
{
    const uint64_t *f = frame;
    uint64_t back;

    if (peet_rt_self.off && peet_rt_inside && peet_rt_is_controlled() && raw_recorded(f[1], &back))
        stop_at(f[1], RT_ADDR(f + 2), f[0], true);
}

/* Behind a gap, the calls that have led here are not known otherwise. */
void peet_rt_come_on(struct rt_registers *r)
{
    enum { RED_ZONE = 128 };
    struct rt_self *s = &peet_rt_self;
    bool is_cursor = !s->off && r->r15 >= RT_ADDR(s->now.start) && r->r15 <= RT_ADDR(s->now.end);
    uint64_t stack = RT_ADDR(r + 1) + RED_ZONE;

    if (!is_cursor)
        r->r15 = peet_rt_come_on_at(r->r15, stack);
    peet_rt_cursor = (uint64_t *)(uintptr_t)r->r15;
    if (s->is_astray && peet_rt_inside && peet_rt_is_controlled()) {
        if (is_cursor) /* the gap was told with an event, elsewhere */
            peet_rt_put(PEET_EV_gap, 0, 2, (uint64_t[]){ 0, 0 });
        stop_at(r->rip, stack, r->rbp, false);
        r->r15 = RT_ADDR(peet_rt_cursor);
    }
}

/* ---- library code ---- */

static uint64_t lines_in(const void *p, size_t n)
{
    uint64_t line = peet_rt_header->skip_line;

    return p ? (RT_ADDR(p) + n - 1) / line - RT_ADDR(p) / line + 1 : 0;
}

bool peet_rt_count_bytes(size_t n, const void *a, const void *b)
{
    if (!peet_rt_header->skip_line || peet_rt_self.handlers > 0)
        return false;
    if (n > 0)
        peet_rt_cursor = (uint64_t *)(uintptr_t)(RT_ADDR(peet_rt_cursor) + lines_in(a, n) + lines_in(b, n));
    return true;
}

/* ---- the other way ---- */

/* The key that the instruction is about to write, or 0. */
static uint64_t key_at(uint64_t rip, uint64_t r14)
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

/* Where a root looks at the last word that its tree may come to: movq …(%r15), %r14. */
static bool is_look(uint64_t rip)
{
    const uint8_t *code = (const uint8_t *)(uintptr_t)rip;

    return code[0] == 0x4d && code[1] == 0x8b && (code[2] == 0x77 || code[2] == 0xb7);
}

static const struct entry *entry_of(uint64_t key)
{
    return key && !(key >> 63) ? (const struct entry *)(uintptr_t)key : NULL;
}

static const struct entry *parent_of(const struct entry *e)
{
    return e->parent ? (const struct entry *)(const void *)((const char *)e + e->parent) : NULL;
}

/* Where a root begins in the copy that counts, or 0. The key may be that of a way from there to a shared block. */
static uint64_t other_place(const struct entry *e)
{
    while (e && parent_of(e))
        e = parent_of(e);
    return e && e->counting ? RT_ADDR(&e->counting) + (uint64_t)(int64_t)e->counting : 0;
}

uint64_t peet_rt_other_copy(uint64_t rip, uint64_t r14)
{
    return other_place(entry_of(key_at(rip, r14)));
}

/* Words of a record that began with this key; 0: only it knows. */
static size_t words_of(const struct entry *e)
{
    size_t words = 1;

    for (; e; e = parent_of(e)) {
        if (e->kind != RAW_BLOCK)
            return 0;
        words += e->slots;
    }
    return words;
}

bool peet_rt_off_at(const uint64_t *record, size_t words, uint64_t r14, uint64_t *rip, uint64_t *ret_r15)
{
    struct rt_self *s = &peet_rt_self;
    const struct entry *e = entry_of(words ? record[0] : key_at(*rip, r14));
    uint64_t other = other_place(e);

    if (!other)
        return false;
    if (words == 0 || is_look(*rip)) {
        peet_rt_go_off(s->wish);
        *ret_r15 = RT_ADDR(peet_rt_cursor);
        *rip = other;
        return true;
    }
    size_t all = words_of(e);
    if (all < words || all > RAW_MAX_WORDS)
        return false;
    struct rt_window apart = peet_rt_apart();
    s->whole = s->now;
    s->now = (struct rt_window){ apart.end - all, apart.end };
    for (size_t i = 0; i < words; i++)
        s->now.start[i] = record[i];
    for (size_t i = words; i < all; i++)
        s->now.start[i] = 0;
    *ret_r15 = RT_ADDR(s->now.start);
    return true;
}
