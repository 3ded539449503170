/* SPDX-License-Identifier: MIT */
/* Memory of the machine where it shares a process with the program: far away from the program's, so that where the program's memory lies
 * does not depend on the machine. It stands in front of the C library's allocator, and of mmap, in the machine's namespace.
 *
 * Small pieces come from pages of their own size, in steps of an eighth of a power of two, and go to a list of that size when they are freed; large ones are mapped.
 * One thread is all that there is here. */
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

enum { CLASSES = 256, HEADER = 16, PAGE = 4096, HUGE = 2 << 20, LARGE = 512 << 10, PIECE = 16 << 20 };

#define REGION ((uintptr_t)1 << 44)

static uintptr_t region_end = REGION; /* what is mapped ends here */
static uintptr_t piece, piece_end;    /* what small ones are cut from */
static void *freed[CLASSES];

struct header {
    uint32_t class;  /* CLASSES: it is mapped */
    uint32_t before; /* bytes between the beginning of the mapping, or of the piece, and the memory */
    size_t size;     /* that can be used */
};
_Static_assert(sizeof(struct header) == HEADER, "memory stays aligned");

/* ---- mappings ---- */

static void *map(size_t size, int protection, int flags, int fd, off_t offset)
{
    size_t whole = (size + PAGE - 1) & -(size_t)PAGE;

    for (;;) {
        uintptr_t at = region_end;
        region_end += whole + PAGE;
        long r = syscall(SYS_mmap, at, size, protection, flags | MAP_FIXED_NOREPLACE, fd, offset);
        if (r == (long)at)
            return (void *)at;
        if (r >= 0) /* a kernel that does not know the flag */
            return (void *)r;
        if (errno != EEXIST)
            return MAP_FAILED;
    }
}

SHOWN void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (!at && !(flags & MAP_FIXED))
        return map(size, protection, flags, fd, offset);
    return (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
}

SHOWN void *mmap64(void *at, size_t size, int protection, int flags, int fd, off64_t offset)
{
    return mmap(at, size, protection, flags, fd, offset);
}

static void *map_memory(size_t size)
{
    return map(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* Small memory lies together, in the largest pages that there are: tables that are as large as the program's data are used at random. */
static void *map_piece(void)
{
    region_end = (region_end + HUGE - 1) & -(uintptr_t)HUGE;
    void *p = map_memory(PIECE);
    if (p != MAP_FAILED)
        madvise(p, PIECE, MADV_HUGEPAGE);
    return p;
}

/* ---- sizes ---- */

/* The class of a size, and what that holds: 16, 32, … 128, 144, … 256, 288, … */
static unsigned class_of(size_t size, size_t *ret_holds)
{
    size_t n = size < 16 ? 16 : size;
    unsigned power = 63 - (unsigned)__builtin_clzll(n); /* 2^power <= n */

    if (power < 7) {
        *ret_holds = (n + 15) & -(size_t)16;
        return (unsigned)(*ret_holds / 16);
    }
    size_t step = (size_t)1 << (power - 3);
    *ret_holds = (n + step - 1) & -step;
    return 8 + (power - 7) * 8 + (unsigned)((*ret_holds - ((size_t)1 << power)) / step);
}

static struct header *header_of(void *p)
{
    return (struct header *)((uintptr_t)p - HEADER); /* not as a part of what malloc gives, which it is not */
}

/* ---- the allocator ---- */

static void *take_large(size_t align, size_t size)
{
    size_t before = align > HEADER ? align : HEADER;
    char *at = size < SIZE_MAX / 2 ? map_memory(before + size) : MAP_FAILED;

    if (at == (char *)MAP_FAILED || before > UINT32_MAX) {
        errno = ENOMEM;
        return NULL;
    }
    void *p = at + before;
    *header_of(p) = (struct header){ CLASSES, (uint32_t)before, size };
    return p;
}

/* What is new is zero. */
static void *take(size_t size, bool *ret_is_new)
{
    *ret_is_new = true;
    if (size >= LARGE)
        return take_large(HEADER, size);
    size_t holds;
    unsigned class = class_of(size, &holds);
    void *p = freed[class];
    if (p) {
        memcpy(&freed[class], p, sizeof(void *));
        *ret_is_new = false;
        return p;
    }
    if (piece_end - piece < holds + HEADER) {
        void *more = map_piece();
        if (more == MAP_FAILED) {
            errno = ENOMEM;
            return NULL;
        }
        piece = (uintptr_t)more;
        piece_end = piece + PIECE;
    }
    p = (void *)(piece + HEADER);
    piece += holds + HEADER;
    *header_of(p) = (struct header){ class, HEADER, holds };
    return p;
}

SHOWN void *malloc(size_t size)
{
    bool is_new;

    return take(size, &is_new);
}

SHOWN void free(void *p)
{
    if (!p)
        return;
    struct header *h = header_of(p);
    if (h->class == CLASSES) {
        munmap((char *)p - h->before, h->before + h->size);
        return;
    }
    memcpy(p, &freed[h->class], sizeof(void *));
    freed[h->class] = p;
}

SHOWN void *calloc(size_t count, size_t size)
{
    size_t bytes;
    bool is_new;

    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    void *p = take(bytes, &is_new);
    return p && !is_new ? memset(p, 0, bytes) : p;
}

/* One that is mapped becomes larger: its pages move, not what is in them, and there is room for more, for it will come. NULL: it cannot be done. */
static void *grow_large(void *old, size_t size)
{
    const struct header *h = header_of(old);
    size_t before = h->before, more = size + size / 4;
    void *to = size < SIZE_MAX / 4 ? map_memory(before + more) : MAP_FAILED; /* where nothing else is */

    if (to == MAP_FAILED)
        return NULL;
    long r =
        syscall(SYS_mremap, (char *)old - before, before + h->size, before + more, MREMAP_MAYMOVE | MREMAP_FIXED, to);
    if (r != (long)(uintptr_t)to) {
        munmap(to, before + more);
        return NULL;
    }
    void *p = (char *)to + before;
    header_of(p)->size = more;
    return p;
}

SHOWN void *realloc(void *old, size_t size)
{
    if (old && header_of(old)->size >= size && header_of(old)->size <= 2 * size + 64)
        return old;
    void *p = old && header_of(old)->class == CLASSES && size > header_of(old)->size ? grow_large(old, size) : NULL;
    if (p)
        return p;
    p = malloc(size);
    if (p && old) {
        memcpy(p, old, header_of(old)->size < size ? header_of(old)->size : size);
        free(old);
    }
    return p;
}

SHOWN void *memalign(size_t align, size_t size)
{
    return align <= HEADER ? malloc(size) : take_large(align > PAGE ? align : PAGE, size);
}

SHOWN void *aligned_alloc(size_t align, size_t size)
{
    return memalign(align, size);
}

SHOWN int posix_memalign(void **ret, size_t align, size_t size)
{
    void *p = memalign(align, size);

    if (p)
        *ret = p;
    return p ? 0 : ENOMEM;
}

SHOWN size_t malloc_usable_size(void *p)
{
    return p ? header_of(p)->size : 0;
}
