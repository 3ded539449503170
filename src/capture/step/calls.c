/* SPDX-License-Identifier: MIT */
/* System calls: an event for each, further events for those that map and unmap memory; mappings are read again if a call concerns code.
 *
 * Two recordings of the same run must be equal. So numbers of processes and threads in the first three arguments or in the result are replaced
 * by those of the trace. The recorder's process number, which the program has as its parent's, is recorded as 0, as in a PID namespace. */
#include <linux/mman.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/step/step.h"

#define PAGE ((uint64_t)4096)

enum { ERRNO_MAX = 4095 };

static bool call_has_failed(int64_t result)
{
    return result < 0 && result >= -ERRNO_MAX;
}

/* ---- numbers of processes and threads ---- */

enum role { OTHER, PROCESS, THREAD };

/* Arguments and results of system calls that are such numbers. */
static const struct numbered {
    int call;
    uint8_t a, b, result; /* enum role */
} NUMBERED[] = {
    { SYS_getpid, OTHER, OTHER, PROCESS },    { SYS_getppid, OTHER, OTHER, PROCESS },
    { SYS_gettid, OTHER, OTHER, THREAD },     { SYS_set_tid_address, OTHER, OTHER, THREAD },
    { SYS_kill, PROCESS, OTHER, OTHER },      { SYS_tkill, THREAD, OTHER, OTHER },
    { SYS_tgkill, PROCESS, THREAD, OTHER },   { SYS_wait4, PROCESS, OTHER, PROCESS },
    { SYS_waitid, OTHER, PROCESS, OTHER },    { SYS_getpgrp, OTHER, OTHER, PROCESS },
    { SYS_getpgid, PROCESS, OTHER, PROCESS }, { SYS_setpgid, PROCESS, PROCESS, OTHER },
    { SYS_getsid, PROCESS, OTHER, PROCESS },  { SYS_setsid, OTHER, OTHER, PROCESS },
    { SYS_prlimit64, PROCESS, OTHER, OTHER }, { SYS_sched_getaffinity, THREAD, OTHER, OTHER },
};

static uint64_t trace_number(const struct stepper *r, uint64_t value, uint8_t role)
{
    const struct trace_numbers *n;

    if (role == OTHER)
        return value;
    if (value == (uint64_t)getpid())
        return 0;
    n = map_find(&r->numbers, value, 0);
    return !n ? value : role == PROCESS ? n->process : n->thread;
}

static int put_call(struct stepper *r, struct tracee *t, uint64_t site, int64_t result)
{
    const uint64_t *gpr = t->before.gpr;
    uint64_t call = gpr[X86_RAX], a = gpr[X86_RDI], b = gpr[X86_RSI], out = (uint64_t)result;

    for (size_t i = 0; i < sizeof NUMBERED / sizeof NUMBERED[0]; i++) {
        const struct numbered *n = &NUMBERED[i];
        if ((uint64_t)n->call != call)
            continue;
        a = trace_number(r, a, n->a);
        b = trace_number(r, b, n->b);
        out = trace_number(r, out, n->result);
    }
    return PUT_EVENT(r, t, syscall, site, call, a, b, gpr[X86_RDX], out);
}

/* ---- memory ---- */

static uint64_t round_to_pages(uint64_t size)
{
    return (size + PAGE - 1) & ~(PAGE - 1);
}

/* Converts protection bits to those of the trace: 1 execute, 2 write, 4 read. */
static uint64_t map_protection(uint64_t prot)
{
    return (prot & PROT_READ ? 4u : 0u) | (prot & PROT_WRITE ? 2u : 0u) | (prot & PROT_EXEC ? 1u : 0u);
}

static int put_resized(struct stepper *r, struct tracee *t, uint64_t site, uint64_t old, uint64_t new)
{
    if (new > old)
        return PUT_EVENT(r, t, map, site, old, new - old, 6);
    return new < old ? PUT_EVENT(r, t, unmap, site, new, old - new) : 0;
}

static int put_moved_break(struct stepper *r, struct tracee *t, uint64_t site, uint64_t to)
{
    uint64_t from = t->process->brk;

    t->process->brk = to;
    return from ? put_resized(r, t, site, round_to_pages(from), round_to_pages(to)) : 0;
}

static int put_remapped(struct stepper *r, struct tracee *t, uint64_t site, uint64_t to)
{
    const uint64_t *gpr = t->before.gpr;
    uint64_t old = gpr[X86_RDI], old_size = round_to_pages(gpr[X86_RSI]), size = round_to_pages(gpr[X86_RDX]);
    int result = 0;

    if (to == old)
        return put_resized(r, t, site, old + old_size, old + size);
    if (!(gpr[10] & MREMAP_DONTUNMAP) && old_size)
        result = PUT_EVENT(r, t, unmap, site, old, old_size);
    return result < 0 ? result : PUT_EVENT(r, t, map, site, to, size, 6);
}

/* shmat: the size is known only from the mappings. */
static int put_attached(struct stepper *r, struct tracee *t, uint64_t site, uint64_t at)
{
    struct mappings m;
    int result = 0;

    if (mappings_read(t->process->pid, &m, NULL) < 0)
        return 0;
    for (size_t i = 0; i < m.count && result == 0; i++)
        if (m.at[i].start == at)
            result = PUT_EVENT(r, t, map, site, at, m.at[i].end - at, m.at[i].protection);
    mappings_release(&m);
    return result;
}

static int put_memory(struct stepper *r, struct tracee *t, uint64_t site, int64_t result)
{
    const uint64_t *gpr = t->before.gpr;

    switch (gpr[X86_RAX]) {
    case SYS_mmap:
        return PUT_EVENT(r, t, map, site, (uint64_t)result, round_to_pages(gpr[X86_RSI]), map_protection(gpr[X86_RDX]));
    case SYS_munmap: return PUT_EVENT(r, t, unmap, site, gpr[X86_RDI], round_to_pages(gpr[X86_RSI]));
    case SYS_brk: return put_moved_break(r, t, site, (uint64_t)result);
    case SYS_mremap: return put_remapped(r, t, site, (uint64_t)result);
    case SYS_shmat: return put_attached(r, t, site, (uint64_t)result);
    default: return 0;
    }
}

/* Whether the call may have changed code mappings. */
static bool touches_code(const struct tracee *t, int64_t result)
{
    const struct tracee_process *p = t->process;
    const uint64_t *gpr = t->before.gpr;
    bool executable = (gpr[X86_RDX] & PROT_EXEC) != 0;

    switch (gpr[X86_RAX]) {
    case SYS_mmap: return executable || process_has_code(p, (uint64_t)result, gpr[X86_RSI]);
    case SYS_mprotect:
    case SYS_pkey_mprotect: return executable || process_has_code(p, gpr[X86_RDI], gpr[X86_RSI]);
    case SYS_munmap: return process_has_code(p, gpr[X86_RDI], gpr[X86_RSI]);
    case SYS_mremap:
        return process_has_code(p, gpr[X86_RDI], gpr[X86_RSI]) || process_has_code(p, (uint64_t)result, gpr[X86_RDX]);
    case SYS_shmat:
    case SYS_remap_file_pages: return true;
    default: return false;
    }
}

int call_done(struct stepper *r, struct tracee *t, uint64_t site, int64_t result)
{
    int done = put_call(r, t, site, result);

    if (done < 0 || call_has_failed(result))
        return done;
    if ((done = put_memory(r, t, site, result)) < 0)
        return done;
    return touches_code(t, result) ? process_scan(r, t->process, false) : 0;
}
