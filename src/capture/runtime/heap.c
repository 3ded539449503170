/* SPDX-License-Identifier: MIT */
/* The allocator's events. What the allocator does inside is not recorded; the memory that it takes from the system
 * shows in the blocks that it returns. Allocations within other wrapped functions are events, too, because other code
 * may free them. */
#include <sys/syscall.h>

#include "capture/runtime/real.h"
#include "capture/runtime/rt.h"
#include "capture/runtime/skip.h"

/* Memory for the dynamic linker, while the real functions are looked for; never freed. */
static struct {
    _Alignas(16) char bytes[1 << 16];
    _Atomic size_t used;
} early;

static void *early_alloc(size_t size)
{
    size_t rounded = (size + 15) & ~(size_t)15;
    size_t at = atomic_fetch_add(&early.used, rounded + 16);

    if (at + rounded + 16 > sizeof early.bytes)
        return NULL;
    *(size_t *)(void *)(early.bytes + at) = size;
    return early.bytes + at + 16;
}

/* The private heap of a controlled program: for what the C library needs for threads, and for the machine, so that
 * addresses in the program's heap do not depend on them. It is far from other mappings. Nothing in it is freed. */
enum { PRIVATE_BYTES = 1 << 28 };
static char *private_heap;
static _Atomic size_t private_used;

void peet_rt_heap_begin(void)
{
    long p = peet_rt_call(SYS_mmap, 1l << 45, PRIVATE_BYTES, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    private_heap = p < 0 && p > -4096 ? NULL : (char *)p;
}

static void *private_alloc(size_t align, size_t size)
{
    size_t step = align > 16 ? align : 16, room = ((size + step - 1) & -step) + step;
    size_t at = atomic_fetch_add(&private_used, room + step);

    if (at + room + step > PRIVATE_BYTES)
        return NULL;
    char *p = private_heap + ((at + step + step - 1) & -step);
    ((size_t *)(void *)p)[-2] = size;
    return p;
}

/* Whether an allocation comes from the private heap. */
static bool heap_is_private(void)
{
    return private_heap && peet_rt_self.hosted.is_private;
}

static bool heap_is_unrecorded(const void *p)
{
    return ((const char *)p >= early.bytes && (const char *)p < early.bytes + sizeof early.bytes)
           || (private_heap && (const char *)p >= private_heap && (const char *)p < private_heap + PRIVATE_BYTES);
}

RT_WRAPPER void *malloc(size_t size)
{
    void *p;

    if (!RT_FOUND(malloc))
        return early_alloc(size);
    if (heap_is_private())
        return private_alloc(16, size);
    RT_QUIET(p, RT_REAL(malloc)(size));
    RT_EVENT_ALWAYS(malloc, RT_SITE, RT_ADDR(p), size);
    peet_rt_show_callers(RT_FRAME);
    return p;
}

RT_WRAPPER void *calloc(size_t number, size_t size)
{
    void *p;

    if (!RT_FOUND(calloc))
        return early_alloc(number * size);
    if (heap_is_private())
        return private_alloc(16, number * size);
    RT_QUIET(p, RT_REAL(calloc)(number, size));
    RT_EVENT_ALWAYS(calloc, RT_SITE, RT_ADDR(p), number, size);
    peet_rt_show_callers(RT_FRAME);
    return p;
}

static void *heap_resize(void *old, size_t size, uint64_t site, const void *frame)
{
    void *p;

    if (!RT_FOUND(realloc) || heap_is_unrecorded(old)) {
        size_t had = old ? ((size_t *)old)[-2] : 0;
        if (!(p = RT_REAL(malloc) ? malloc(size) : early_alloc(size)))
            return NULL;
        for (size_t i = 0; i < had && i < size; i++)
            ((char *)p)[i] = ((char *)old)[i];
        return p;
    }
    uint64_t was = RT_ADDR(old);
    RT_QUIET(p, RT_REAL(realloc)(old, size));
    RT_EVENT_ALWAYS(realloc, site, RT_ADDR(p), was, size);
    peet_rt_show_callers(frame);
    return p;
}

RT_WRAPPER void *realloc(void *old, size_t size)
{
    return heap_resize(old, size, RT_SITE, RT_FRAME);
}

RT_WRAPPER void *reallocarray(void *old, size_t number, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(number, size, &bytes))
        bytes = SIZE_MAX; /* which fails, as it should */
    return heap_resize(old, bytes, RT_SITE, RT_FRAME);
}

RT_WRAPPER void free(void *p)
{
    if (heap_is_unrecorded(p) || !RT_FOUND(free))
        return;
    if (p)
        RT_EVENT_ALWAYS(free, RT_SITE, RT_ADDR(p));
    peet_rt_self.depth++;
    RT_REAL(free)(p);
    peet_rt_self.depth--;
}

RT_WRAPPER void *aligned_alloc(size_t align, size_t size)
{
    void *p;

    if (!RT_FOUND(aligned_alloc))
        return NULL;
    if (heap_is_private())
        return private_alloc(align, size);
    RT_QUIET(p, RT_REAL(aligned_alloc)(align, size));
    RT_EVENT_ALWAYS(memalign, RT_SITE, RT_ADDR(p), align, size);
    peet_rt_show_callers(RT_FRAME);
    return p;
}

RT_WRAPPER void *memalign(size_t align, size_t size)
{
    void *p;

    if (!RT_FOUND(memalign))
        return NULL;
    if (heap_is_private())
        return private_alloc(align, size);
    RT_QUIET(p, RT_REAL(memalign)(align, size));
    RT_EVENT_ALWAYS(memalign, RT_SITE, RT_ADDR(p), align, size);
    peet_rt_show_callers(RT_FRAME);
    return p;
}

RT_WRAPPER void *valloc(size_t size)
{
    void *p;

    if (!RT_FOUND(valloc))
        return NULL;
    RT_QUIET(p, RT_REAL(valloc)(size));
    RT_EVENT_ALWAYS(memalign, RT_SITE, RT_ADDR(p), 4096, size);
    peet_rt_show_callers(RT_FRAME);
    return p;
}

RT_WRAPPER int posix_memalign(void **ret, size_t align, size_t size)
{
    int r;

    if (!RT_FOUND(posix_memalign))
        return 12; /* ENOMEM */
    RT_QUIET(r, RT_REAL(posix_memalign)(ret, align, size));
    if (r == 0) {
        RT_EVENT_ALWAYS(memalign, RT_SITE, RT_ADDR(*ret), align, size);
        peet_rt_show_callers(RT_FRAME);
    }
    return r;
}
