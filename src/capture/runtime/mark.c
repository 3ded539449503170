/* SPDX-License-Identifier: MIT */
/* Events that programs write about themselves (include/peet/mark.h), and the strings in them. */
#define __PEET__ 1
#include "peet/mark.h"

#include <sys/syscall.h>

#include "capture/runtime/rt.h"

enum { CACHE = 256, PATIENCE = 1000000 };

/* Numbers of strings by address: in most programs the strings are constants. */
static struct {
    _Atomic uint64_t address;
    _Atomic uint32_t number;
} cache[CACHE];

static bool string_is_same(const char *stored, const char *text)
{
    unsigned i = 0;

    while (i < RAW_STRING_BYTES - 1 && text[i] && stored[i] == text[i])
        i++;
    return i == RAW_STRING_BYTES - 1 || stored[i] == text[i];
}

static uint32_t find_string(struct raw_header *h, const char *text)
{
    uint32_t there = atomic_load_explicit(&h->strings, memory_order_acquire);

    for (uint32_t i = 0; i < there && i < RAW_STRINGS; i++)
        if (string_is_same(h->string[i], text))
            return i + 1;
    return 0;
}

static uint32_t mark_add_string(struct raw_header *h, const char *text)
{
    uint32_t number = 0;

    for (int i = 0; atomic_exchange_explicit(&h->string_lock, 1, memory_order_acquire); i++) {
        if (i == PATIENCE)
            return 0; /* the holder of the lock was killed */
        peet_rt_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    }
    uint32_t there = atomic_load(&h->strings);
    number = find_string(h, text);
    if (!number && there < RAW_STRINGS) {
        for (unsigned i = 0; i < RAW_STRING_BYTES - 1 && text[i]; i++)
            h->string[there][i] = text[i];
        number = there + 1;
        atomic_store_explicit(&h->strings, number, memory_order_release);
    }
    atomic_store_explicit(&h->string_lock, 0, memory_order_release);
    return number;
}

uint32_t peet_rt_string(const char *text)
{
    uint64_t address = RT_ADDR(text);
    uint32_t number;

    if (!peet_rt_header || !text)
        return 0;
    unsigned at = (unsigned)(address * 0x9e3779b97f4a7c15u >> 56) % CACHE;
    if (atomic_load(&cache[at].address) == address) {
        number = atomic_load(&cache[at].number);
        if (number && string_is_same(peet_rt_header->string[number - 1], text))
            return number;
    }
    number = find_string(peet_rt_header, text);
    if (!number)
        number = mark_add_string(peet_rt_header, text);
    atomic_store(&cache[at].address, 0);
    atomic_store(&cache[at].number, number);
    atomic_store(&cache[at].address, address);
    return number;
}

/* clang-format off */
RT_PUBLIC void peet_rt_mark(unsigned kind, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t site = RT_SITE;
    const char *name = (const char *)(uintptr_t)a;

    if (!peet_rt_is_recording())
        return;
    switch (kind) {
    case PEET_RT_REGION_BEGIN: RT_EVENT(region_begin, site, peet_rt_string(name)); break;
    case PEET_RT_REGION_END:   RT_EVENT(region_end, site, peet_rt_string(name)); break;
    case PEET_RT_MARK:         RT_EVENT(mark, site, peet_rt_string(name), b); break;
    case PEET_RT_NAME_DATA:    RT_EVENT(name_data, site, peet_rt_string(name), b, c); break;
    case PEET_RT_SPIN_WAIT:    RT_EVENT(spin_wait, site, a); break;
    case PEET_RT_DOALL_FORK:   RT_EVENT(doall_fork, site, a); break;
    case PEET_RT_DOALL_START:  RT_EVENT(doall_start, site, a); break;
    case PEET_RT_DOALL_FINISH: RT_EVENT(doall_finish, site, a); break;
    case PEET_RT_DOALL_JOIN:   RT_EVENT(doall_join, site, a); break;
    case PEET_RT_POST:         RT_EVENT(post, site, a, b); break;
    case PEET_RT_WAIT:         RT_EVENT(wait, site, a, b); break;
    case PEET_RT_SPIN_LOCK:    RT_EVENT(spin_lock, site, a); break;
    case PEET_RT_SPIN_TRYLOCK: RT_EVENT(spin_trylock, site, a, b); break;
    case PEET_RT_SPIN_UNLOCK:  RT_EVENT(spin_unlock, site, a); break;
    default: break;
    }
}
/* clang-format on */
