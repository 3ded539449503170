/* SPDX-License-Identifier: MIT */
/* The allocator of the in-process simulator. Its memory is in a region far from the program's, so that the program's addresses do not
 * depend on the simulator. It replaces malloc and mmap of the C library in the simulator's link-map namespace.
 *
 * Small blocks have size classes in steps of an eighth of a power of two, and a free list for each class. Large blocks are mapped.
 * Assumes that one thread calls it, the host thread. */
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

static uintptr_t region_end = REGION; /* address of the next mapping */
static uintptr_t piece, piece_end;    /* the unused rest of the mapping from which small blocks are taken */
static void *freed[CLASSES];          /* free lists: each free block begins with the address of the next one */

/* The 16 bytes before an allocated block. */
struct heap_header {
    uint32_t class;  /* size class; CLASSES: the block is a mapping */
    uint32_t before; /* bytes from the beginning of the mapping to the block; HEADER for small blocks */
    size_t size;     /* usable bytes */
};
_Static_assert(sizeof(struct heap_header) == HEADER, "memory stays aligned");

/* ---- mappings ---- */

static void *heap_map(size_t size, int protection, int flags, int fd, off_t offset)
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
        return heap_map(size, protection, flags, fd, offset);
    return (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
}

SHOWN void *mmap64(void *at, size_t size, int protection, int flags, int fd, off64_t offset)
{
    return mmap(at, size, protection, flags, fd, offset);
}

static void *heap_map_pages(size_t size)
{
    return heap_map(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* Maps memory for small blocks with huge pages: the simulator accesses tables as large as the program's data in random order. */
static void *heap_map_piece(void)
{
    region_end = (region_end + HUGE - 1) & -(uintptr_t)HUGE;
    void *p = heap_map_pages(PIECE);
    if (p != MAP_FAILED)
        madvise(p, PIECE, MADV_HUGEPAGE);
    return p;
}

/* ---- sizes ---- */

/* Returns the class of a size; *ret_holds: the class's size, one of 16, 32, … 128, 144, … 256, 288, … bytes. */
static unsigned size_class(size_t size, size_t *ret_holds)
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

static struct heap_header *header_of(void *p)
{
    return (struct heap_header *)((uintptr_t)p
                                  - HEADER); /* by integers: compilers know that it is not part of the block */
}

/* ---- the allocator ---- */

static void *heap_take_large(size_t align, size_t size)
{
    size_t before = align > HEADER ? align : HEADER;
    char *at = size < SIZE_MAX / 2 ? heap_map_pages(before + size) : MAP_FAILED;

    if (at == (char *)MAP_FAILED || before > UINT32_MAX) {
        errno = ENOMEM;
        return NULL;
    }
    void *p = at + before;
    *header_of(p) = (struct heap_header){ CLASSES, (uint32_t)before, size };
    return p;
}

/* *ret_is_new: the block is a part of a new mapping, and zero. */
static void *heap_take(size_t size, bool *ret_is_new)
{
    *ret_is_new = true;
    if (size >= LARGE)
        return heap_take_large(HEADER, size);
    size_t holds;
    unsigned class = size_class(size, &holds);
    void *p = freed[class];
    if (p) {
        memcpy(&freed[class], p, sizeof(void *));
        *ret_is_new = false;
        return p;
    }
    if (piece_end - piece < holds + HEADER) {
        void *more = heap_map_piece();
        if (more == MAP_FAILED) {
            errno = ENOMEM;
            return NULL;
        }
        piece = (uintptr_t)more;
        piece_end = piece + PIECE;
    }
    p = (void *)(piece + HEADER);
    piece += holds + HEADER;
    *header_of(p) = (struct heap_header){ class, HEADER, holds };
    return p;
}

SHOWN void *malloc(size_t size)
{
    bool is_new;

    return heap_take(size, &is_new);
}

SHOWN void free(void *p)
{
    if (!p)
        return;
    struct heap_header *h = header_of(p);
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
    void *p = heap_take(bytes, &is_new);
    return p && !is_new ? memset(p, 0, bytes) : p;
}

/* Enlarges a mapped block to 1.25 times `size` by moving its pages to another address. NULL: it failed. */
static void *heap_grow_large(void *old, size_t size)
{
    const struct heap_header *h = header_of(old);
    size_t before = h->before, more = size + size / 4;
    void *to = size < SIZE_MAX / 4 ? heap_map_pages(before + more) : MAP_FAILED; /* where nothing else is */

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
    void *p =
        old && header_of(old)->class == CLASSES && size > header_of(old)->size ? heap_grow_large(old, size) : NULL;
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
    return align <= HEADER ? malloc(size) : heap_take_large(align > PAGE ? align : PAGE, size);
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
