/* SPDX-License-Identifier: MIT */
/* The allocator's events. What it does inside is not recorded; memory that it takes from the system shows up by the blocks
 * that it hands out. An allocation is one whoever asks for it: inside other wrapped functions, too, for others may free it. */
#include <sys/syscall.h>

#include "capture/runtime/real.h"
#include "capture/runtime/rt.h"

/* For the dynamic linker, while the real functions are being looked for; never freed. */
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

/* In a steered program: what the C library needs for threads, and for the machine, which is not to move what the program
 * has. Far from everything; there is more of it than anybody needs, so that nothing is freed. */
enum { OWN_BYTES = 1 << 28 };
static char *own;
static _Atomic size_t own_used;

void peet_rt_heap_begin(void)
{
    long p = peet_rt_call(SYS_mmap, 1l << 45, OWN_BYTES, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    own = p < 0 && p > -4096 ? NULL : (char *)p;
}

static void *own_alloc(size_t align, size_t size)
{
    size_t step = align > 16 ? align : 16, room = ((size + step - 1) & -step) + step;
    size_t at = atomic_fetch_add(&own_used, room + step);

    if (at + room + step > OWN_BYTES)
        return NULL;
    char *p = own + ((at + step + step - 1) & -step);
    ((size_t *)(void *)p)[-2] = size;
    return p;
}

/* Whether what is asked for now is for that. */
static bool is_own(void)
{
    return own && peet_rt_self.is_private;
}

static bool is_early(const void *p)
{
    return ((const char *)p >= early.bytes && (const char *)p < early.bytes + sizeof early.bytes)
           || (own && (const char *)p >= own && (const char *)p < own + OWN_BYTES);
}

RT_WRAPPER void *malloc(size_t size)
{
    void *p;

    if (!RT_FOUND(malloc))
        return early_alloc(size);
    if (is_own())
        return own_alloc(16, size);
    RT_QUIET(p, RT_REAL(malloc)(size));
    RT_EVENT_ALWAYS(malloc, RT_SITE, RT_ADDR(p), size);
    peet_rt_show_calls(RT_FRAME);
    return p;
}

RT_WRAPPER void *calloc(size_t number, size_t size)
{
    void *p;

    if (!RT_FOUND(calloc))
        return early_alloc(number * size);
    if (is_own())
        return own_alloc(16, number * size);
    RT_QUIET(p, RT_REAL(calloc)(number, size));
    RT_EVENT_ALWAYS(calloc, RT_SITE, RT_ADDR(p), number, size);
    peet_rt_show_calls(RT_FRAME);
    return p;
}

static void *resize(void *old, size_t size, uint64_t site, const void *frame)
{
    void *p;

    if (!RT_FOUND(realloc) || is_early(old)) {
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
    peet_rt_show_calls(frame);
    return p;
}

RT_WRAPPER void *realloc(void *old, size_t size)
{
    return resize(old, size, RT_SITE, RT_FRAME);
}

RT_WRAPPER void *reallocarray(void *old, size_t number, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(number, size, &bytes))
        bytes = SIZE_MAX; /* which fails as it should */
    return resize(old, bytes, RT_SITE, RT_FRAME);
}

RT_WRAPPER void free(void *p)
{
    if (is_early(p) || !RT_FOUND(free))
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
    if (is_own())
        return own_alloc(align, size);
    RT_QUIET(p, RT_REAL(aligned_alloc)(align, size));
    RT_EVENT_ALWAYS(memalign, RT_SITE, RT_ADDR(p), align, size);
    peet_rt_show_calls(RT_FRAME);
    return p;
}

RT_WRAPPER void *memalign(size_t align, size_t size)
{
    void *p;

    if (!RT_FOUND(memalign))
        return NULL;
    if (is_own())
        return own_alloc(align, size);
    RT_QUIET(p, RT_REAL(memalign)(align, size));
    RT_EVENT_ALWAYS(memalign, RT_SITE, RT_ADDR(p), align, size);
    peet_rt_show_calls(RT_FRAME);
    return p;
}

RT_WRAPPER void *valloc(size_t size)
{
    void *p;

    if (!RT_FOUND(valloc))
        return NULL;
    RT_QUIET(p, RT_REAL(valloc)(size));
    RT_EVENT_ALWAYS(memalign, RT_SITE, RT_ADDR(p), 4096, size);
    peet_rt_show_calls(RT_FRAME);
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
        peet_rt_show_calls(RT_FRAME);
    }
    return r;
}
