/* SPDX-License-Identifier: MIT */
#include "capture/control/traps.h"

#include <Zydis/Zydis.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/modules.h"
#include "capture/protocol/control.h"
#include "capture/protocol/waits.h"

enum { LOOK_BACK = 40, CALL_BYTES = 2, NEAR = 64 };

#ifndef SYS_epoll_pwait2 /* not in every version of the headers */
#define SYS_epoll_pwait2 441
#endif

/* Numbers of the system calls in which a thread can block. */
static const uint16_t WAITS[] = {
#define X(name, how, argument) SYS_##name,
    RT_WAITS(X)
#undef X
};

/* Syscall instructions to be replaced. */
struct traps {
    struct raw_trap *call; /* by rising address */
    size_t count;
};

static bool can_wait(uint32_t number)
{
    for (size_t i = 0; i < sizeof WAITS / sizeof *WAITS; i++)
        if (WAITS[i] == number)
            return true;
    return false;
}

static bool is_syscall(const uint8_t *p)
{
    return p[0] == 0x0f && p[1] == 0x05;
}

static void traps_add(struct traps *t, const uint8_t *p, bool has_futex)
{
    t->call = mem_room(t->call, t->count, sizeof *t->call);
    t->call[t->count++] = (struct raw_trap){ (uint64_t)(uintptr_t)p, has_futex };
}

static bool writes_eax(const ZydisDecodedInstruction *x, const ZydisDecodedOperand *operand)
{
    for (unsigned i = 0; i < x->operand_count; i++)
        if (operand[i].type == ZYDIS_OPERAND_TYPE_REGISTER && (operand[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
            && ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, operand[i].reg.value) == ZYDIS_REGISTER_RAX)
            return true;
    return false;
}

/* Whether straight-line code leads from `from` to `to`, in which no instruction after the first writes %eax. */
static bool leads_to(const ZydisDecoder *d, const uint8_t *from, const uint8_t *to)
{
    ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
    ZydisDecodedInstruction x;

    for (const uint8_t *p = from; p < to; p += x.length)
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(d, p, (size_t)(to - p), &x, operand))
            || x.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE || (p > from && writes_eax(&x, operand)))
            return false;
        else if (p + x.length == to)
            return true;
    return false;
}

/* Whether an instruction before the call loads such a number: mov $number, %eax, or xor %eax, %eax for 0. */
static bool has_number(const ZydisDecoder *d, const uint8_t *low, const uint8_t *call)
{
    for (const uint8_t *p = call - 2; p >= low && p >= call - LOOK_BACK; p--) {
        uint32_t number = 0;
        bool is_zero = p[0] == 0x31 && p[1] == 0xc0, is_number = p[0] == 0xb8 && p + 5 <= call;
        if (is_number)
            memcpy(&number, p + 1, sizeof number);
        if ((is_zero || is_number) && can_wait(number) && leads_to(d, p, call))
            return true;
    }
    return false;
}

/* Whether `p` copies a long into %rax: the number that the caller of this code has chosen. */
static bool takes_number(const ZydisDecoder *d, const uint8_t *p, const uint8_t *call)
{
    ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
    ZydisDecodedInstruction x;

    return (p[0] & 0xf8) == 0x48 && ZYAN_SUCCESS(ZydisDecoderDecodeFull(d, p, (size_t)(call - p), &x, operand))
           && x.mnemonic == ZYDIS_MNEMONIC_MOV && operand[0].type == ZYDIS_OPERAND_TYPE_REGISTER
           && operand[0].reg.value == ZYDIS_REGISTER_RAX && operand[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE;
}

static bool has_any_number(const ZydisDecoder *d, const uint8_t *low, const uint8_t *call)
{
    for (const uint8_t *p = call - 3; p >= low && p >= call - LOOK_BACK; p--)
        if (takes_number(d, p, call) && leads_to(d, p, call))
            return true;
    return false;
}

static void scan_c_library(struct traps *t, const ZydisDecoder *d, const struct mapping *m, uint64_t function)
{
    const uint8_t *low = (const uint8_t *)(uintptr_t)m->start, *end = (const uint8_t *)(uintptr_t)m->end;
    const uint8_t *generic = (const uint8_t *)(uintptr_t)function;

    for (const uint8_t *second = low + 1; second < end && (second = memchr(second, 0x05, (size_t)(end - second)));
         second++) {
        const uint8_t *p = second - 1;
        bool is_generic = p > generic && p < generic + NEAR;
        if (is_syscall(p) && (is_generic || has_number(d, low, p) || has_any_number(d, low, p)))
            traps_add(t, p, is_generic);
    }
}

/* Adds all syscall instructions of a mapping, by decoding it from its beginning. */
static void scan_all(struct traps *t, const ZydisDecoder *d, const struct mapping *m)
{
    const uint8_t *p = (const uint8_t *)(uintptr_t)m->start, *end = (const uint8_t *)(uintptr_t)m->end;
    ZydisDecodedInstruction x;

    while (p < end) {
        bool known = ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(d, NULL, p, (size_t)(end - p), &x));
        if (known && x.mnemonic == ZYDIS_MNEMONIC_SYSCALL)
            traps_add(t, p, true);
        p += known ? x.length : 1;
    }
}

/* Writes through the kernel, which ignores page protection: the code stays executable and read-only, so that other threads can execute
 * it during the write. */
static int traps_write(int memory, const void *at, const uint8_t *bytes, size_t size)
{
    return pwrite(memory, bytes, size, (off_t)(uintptr_t)at) == (ssize_t)size ? 0 : -1;
}

static int traps_open_memory(void)
{
    return open("/proc/self/mem", O_RDWR | O_CLOEXEC);
}

bool traps_are_possible(void)
{
    static const uint8_t constant = 1; /* in a mapping that is only read, as code is */
    int memory = traps_open_memory();
    bool yes = memory >= 0 && traps_write(memory, &constant, &(uint8_t){ 1 }, 1) == 0;

    if (memory >= 0)
        close(memory);
    return yes;
}

static int traps_patch(const struct traps *t, const struct mapping *m, struct peet_err *err)
{
    static const uint8_t unknown[CALL_BYTES] = { 0x0f, 0x0b }; /* ud2 */
    int memory = traps_open_memory(), r = memory < 0 ? -1 : 0;

    for (size_t i = 0; r == 0 && i < t->count; i++)
        if (t->call[i].address >= m->start && t->call[i].address < m->end)
            r = traps_write(memory, (void *)(uintptr_t)t->call[i].address, unknown, sizeof unknown);
    if (r < 0)
        err_sys(err, errno, "%s: its system calls cannot be replaced", m->name);
    if (memory >= 0)
        close(memory);
    return r < 0 ? PEET_ERR_IO : 0;
}

static int compare_addresses(const void *a, const void *b)
{
    const struct raw_trap *x = a, *y = b;

    return x->address < y->address ? -1 : x->address > y->address;
}

int traps_set(const struct raw_host *host, struct peet_err *err)
{
    struct mappings m;
    struct traps t = { 0 };
    ZydisDecoder d;
    int r = mappings_read(getpid(), &m, err);

    if (r < 0)
        return r;
    ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    for (size_t i = 0; r == 0 && i < m.count; i++) {
        const struct mapping *x = &m.at[i];
        const char *name = strrchr(x->name, '/');
        bool has_all = name && !strncmp(name, "/libgomp.so", 11);
        if (!(x->protection & 1) || !name || (!has_all && !(host->syscall >= x->start && host->syscall < x->end)))
            continue;
        if (has_all)
            scan_all(&t, &d, x);
        else
            scan_c_library(&t, &d, x, host->syscall);
        r = traps_patch(&t, x, err);
    }
    mappings_release(&m);
    if (t.count)
        qsort(t.call, t.count, sizeof *t.call, compare_addresses);
    if (r == 0)
        host->set_traps(t.call, t.count);
    return r;
}
