/* SPDX-License-Identifier: MIT */
#include "study/slack/dependences.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

enum {
    SIDE_CACHE = 4096,     /* pages that a thread finds without a search */
    MOST_SIDES = 1 << 16,  /* pages of a thread's current accesses; more are processed early */
    SLAB_LAYERS = 1 << 12, /* layers that are allocated at a time */
};

/* Accesses of a thread's segment to a page: a bit for each byte. Bytes that a thread wrote later are *overwritten*; they are cleared when all
 * running threads know of that write. */
struct shadow_layer {
    struct shadow_layer *next; /* of those that are free */
    uint32_t thread;
    uint32_t must, known;         /* segment of the thread in either order */
    uint32_t writer, writer_must; /* thread and segment that overwrote bytes; writer_must 0: none */
    uint64_t read[PAGE_WORDS], wrote[PAGE_WORDS];
    uint64_t overwritten[PAGE_WORDS];
    uint64_t stale
        [PAGE_WORDS]; /* overwritten later in the order of this run: the write has the dependences that only locks order */
};

/* A layer of a page. words: a bit for each 8 bytes that it has. */
struct layer_entry {
    uint64_t words;
    struct shadow_layer *layer;
};

struct access_page {
    struct layer_entry *entry; /* the oldest layer first */
    uint32_t count, room;
    uint32_t user;  /* thread that accessed it first, plus 1 */
    bool is_shared; /* another thread has accessed it */
};

/* Accesses of a thread to a page since its clocks last changed. */
struct access_side {
    uint64_t number; /* of the page */
    struct access_page *page;
    uint64_t words; /* a bit for each 8 bytes with a bit below; set by the flush */
    uint64_t read[PAGE_WORDS], wrote[PAGE_WORDS];
};

/* A lookup cache entry: the side of a page. */
struct side_entry {
    uint64_t number; /* of the page, plus 1; 0: the entry is empty */
    uint32_t side;   /* index in the thread's sides, if `flush` is the thread's */
    uint32_t flush;  /* flushes of the thread when it was made */
    struct access_page *page;
};

struct access_thread {
    struct unit_clock must_order, known;
    uint32_t must, known_segment; /* current segments, from 1 */
    uint32_t process;
    uint32_t locks; /* that it holds */
    uint32_t flushes;
    uint32_t known_to_all;  /* segment up to which all other running threads know of it, in must_order … */
    uint64_t known_version; /* … as of this version of the clocks; 0: not computed */
    bool is_live, has_begun;
    uint64_t stack, stack_end; /* bytes of its stack: [stack, stack_end); 0, 0: not known */
    struct access_side *side;
    uint32_t sides, side_room;
    struct side_entry *cache; /* SIDE_CACHE entries */
};

struct layer_slab {
    struct layer_slab *next;
    struct shadow_layer layer[SLAB_LAYERS];
};

struct dependences {
    const struct dependence_observer *observer;
    struct access_thread *thread;
    uint32_t threads;
    struct map pages; /* struct access_page *, by number and process */
    struct shadow_layer *free;
    struct layer_slab *slabs;
    uint64_t version; /* changes of must_order clocks, from 1 */
    uint64_t races;
};

void channel_release(struct sync_channel *c)
{
    clock_release(&c->must_order);
    clock_release(&c->known);
}

struct dependences *dependences_new(const struct dependence_observer *observer)
{
    struct dependences *d = mem_alloc(1, sizeof *d);

    d->observer = observer;
    d->version = 1;
    d->pages.value_size = sizeof(struct access_page *);
    return d;
}

static void access_page_free(struct access_page *page)
{
    free(page->entry);
    free(page);
}

void dependences_free(struct dependences *d)
{
    struct access_page **page;
    uint64_t key;
    uint32_t tag;

    if (!d)
        return;
    for (uint32_t i = 0; i < d->threads; i++) {
        clock_release(&d->thread[i].must_order);
        clock_release(&d->thread[i].known);
        free(d->thread[i].side);
        free(d->thread[i].cache);
    }
    for (size_t at = 0; (page = map_next(&d->pages, &at, &key, &tag));)
        access_page_free(*page);
    map_release(&d->pages);
    while (d->slabs) {
        struct layer_slab *next = d->slabs->next;
        free(d->slabs);
        d->slabs = next;
    }
    free(d->thread);
    free(d);
}

static struct access_thread *access_thread_of(const struct dependences *d, uint32_t thread)
{
    assert(thread < d->threads && d->thread[thread].has_begun);
    return &d->thread[thread];
}

/* ---- layers ---- */

static struct shadow_layer *layer_new(struct dependences *d)
{
    if (!d->free) {
        struct layer_slab *slab = mem_alloc(1, sizeof *slab);
        slab->next = d->slabs;
        d->slabs = slab;
        for (int i = 0; i < SLAB_LAYERS; i++) {
            slab->layer[i].next = d->free;
            d->free = &slab->layer[i];
        }
    }
    struct shadow_layer *l = d->free;
    d->free = l->next;
    memset(l, 0, sizeof *l);
    return l;
}

/* Bits of 64 bytes as bits of 8 words of 8 bytes. */
static uint64_t words_of_bytes(uint64_t bytes)
{
    bytes |= bytes >> 4;
    bytes |= bytes >> 2;
    bytes |= bytes >> 1;
    return (bytes & UINT64_C(0x0101010101010101)) * UINT64_C(0x0102040810204080) >> 56;
}

static uint64_t words_of_bits(const uint64_t a[PAGE_WORDS], const uint64_t b[PAGE_WORDS])
{
    uint64_t words = 0;

    for (int i = 0; i < PAGE_WORDS; i++)
        words |= words_of_bytes(a[i] | b[i]) << 8 * i;
    return words;
}

/* Bytes of a layer that conflict with an access; false: there are none. */
static bool layer_conflicts(const struct shadow_layer *l, const struct access_side *s, bool is_must,
                            uint64_t ret[DEPENDENCE_KINDS][PAGE_WORDS])
{
    uint64_t any = 0;

    for (int i = 0; i < PAGE_WORDS; i++) {
        uint64_t use = is_must ? UINT64_MAX : ~l->stale[i];
        ret[DEPENDENCE_FLOW][i] = l->wrote[i] & s->read[i] & use;
        ret[DEPENDENCE_ANTI][i] = l->read[i] & s->wrote[i] & use;
        ret[DEPENDENCE_OUTPUT][i] = l->wrote[i] & s->wrote[i] & use;
        any |= ret[DEPENDENCE_FLOW][i] | ret[DEPENDENCE_ANTI][i] | ret[DEPENDENCE_OUTPUT][i];
    }
    return any;
}

/* The segment of a thread up to which all other running threads know of it, in must_order. */
static uint32_t segment_known_to_all(const struct dependences *d, uint32_t thread)
{
    struct access_thread *t = &d->thread[thread];
    uint32_t least = UINT32_MAX;

    if (t->known_version == d->version)
        return t->known_to_all;
    for (uint32_t i = 0; i < d->threads; i++)
        if (i != thread && d->thread[i].is_live && clock_at(&d->thread[i].must_order, thread)->segment < least)
            least = clock_at(&d->thread[i].must_order, thread)->segment;
    t->known_version = d->version;
    return t->known_to_all = least;
}

/* Clears overwritten bytes of a layer when all running threads know of the write. */
static void layer_clear_overwritten(const struct dependences *d, struct shadow_layer *l)
{
    if (l->writer_must == 0 || l->writer_must > segment_known_to_all(d, l->writer))
        return;
    for (int i = 0; i < PAGE_WORDS; i++) {
        l->read[i] &= ~l->overwritten[i];
        l->wrote[i] &= ~l->overwritten[i];
        l->overwritten[i] = 0;
    }
    l->writer_must = 0;
}

/* ---- the comparison of a thread's accesses with those of other threads ---- */

static bool layer_is_of_ended_stack(const struct dependences *d, const struct shadow_layer *l, uint64_t addr)
{
    const struct access_thread *t = &d->thread[l->thread];

    return !t->is_live && addr + PAGE_BYTES > t->stack && addr < t->stack_end;
}

static void side_report(const struct dependences *d, struct dependence *found, const struct clock_entry *e,
                        uint32_t segment)
{
    found->from_segment = segment;
    for (uint32_t i = 0; i < e->count; i++) {
        if (e->reliance[i].segment >= segment)
            continue;
        found->unit = e->reliance[i].unit;
        d->observer->found(d->observer->self, found);
    }
}

/* Compares with a layer of another thread. */
static void side_compare(struct dependences *d, uint32_t thread, const struct access_side *s,
                         const struct shadow_layer *l)
{
    const struct access_thread *t = &d->thread[thread];
    uint64_t bytes[DEPENDENCE_KINDS][PAGE_WORDS];
    const struct clock_entry *must = clock_at(&t->must_order, l->thread), *known = clock_at(&t->known, l->thread);

    if (!layer_conflicts(l, s, must->segment >= l->must, bytes)
        || layer_is_of_ended_stack(d, l, s->number << PAGE_SHIFT))
        return;
    struct dependence found = { .from = l->thread,
                                .to = thread,
                                .process = t->process,
                                .addr = s->number << PAGE_SHIFT,
                                .bytes = (const uint64_t(*)[DEPENDENCE_KINDS][PAGE_WORDS]) & bytes };
    if (must->segment >= l->must) {
        found.is_must = true;
        side_report(d, &found, must, l->must);
    } else if (known->segment >= l->known) {
        side_report(d, &found, known, l->known);
    } else {
        d->races++;
    }
}

/* Notes bytes of another thread's layer that the accesses overwrite, if the layer must precede them. */
static void side_overwrite(const struct dependences *d, uint32_t thread, const struct access_side *s,
                           struct shadow_layer *l)
{
    const struct access_thread *t = &d->thread[thread];
    uint64_t any = 0;

    if (clock_at(&t->known, l->thread)->segment >= l->known)
        for (int i = 0; i < PAGE_WORDS; i++)
            l->stale[i] |= s->wrote[i];
    if (clock_at(&t->must_order, l->thread)->segment < l->must
        || (l->writer_must && (l->writer != thread || l->writer_must != t->must)))
        return;
    for (int i = 0; i < PAGE_WORDS; i++) {
        uint64_t bytes = (l->read[i] | l->wrote[i]) & s->wrote[i];
        l->overwritten[i] |= bytes;
        any |= bytes;
    }
    if (any) {
        l->writer = thread;
        l->writer_must = t->must;
    }
}

/* Clears bits of the thread's earlier layers that later accesses make useless: those of this segment, and those that all threads know of. Layers
 * of a thread are sorted, the newest first; newer: reads and writes in newer layers that all threads know of. */
static void side_supersede(const struct dependences *d, uint32_t thread, const struct access_side *s,
                           struct shadow_layer *l, uint64_t newer[2][PAGE_WORDS])
{
    if (l->must == d->thread[thread].must) {
        for (int i = 0; i < PAGE_WORDS; i++) {
            l->read[i] &= ~(s->read[i] | s->wrote[i]);
            l->wrote[i] &= ~s->wrote[i];
        }
        return;
    }
    for (int i = 0; i < PAGE_WORDS; i++) {
        l->read[i] &= ~(newer[0][i] | newer[1][i]);
        l->wrote[i] &= ~newer[1][i];
    }
    if (l->must > segment_known_to_all(d, thread))
        return;
    for (int i = 0; i < PAGE_WORDS; i++) {
        newer[0][i] |= l->read[i];
        newer[1][i] |= l->wrote[i];
    }
}

/* Removes layers without bits from a page, from one of them on. */
static void page_remove_empty(struct dependences *d, struct access_page *page, uint32_t first)
{
    uint32_t kept = first;

    for (uint32_t i = first; i < page->count; i++) {
        if (page->entry[i].words) {
            page->entry[kept++] = page->entry[i];
            continue;
        }
        page->entry[i].layer->next = d->free;
        d->free = page->entry[i].layer;
    }
    page->count = kept;
}

/* Adds the accesses of a thread's segment to its layer there; own: its entry, NULL: it has none. */
static void page_add(struct dependences *d, uint32_t thread, const struct access_side *s, struct layer_entry *own)
{
    const struct access_thread *t = &d->thread[thread];
    struct access_page *page = s->page;

    if (!own) {
        if (page->count == page->room) {
            page->room = page->room ? 2 * page->room : 2;
            page->entry = realloc(page->entry, page->room * sizeof *page->entry);
            assert(page->entry);
        }
        own = &page->entry[page->count++];
        *own = (struct layer_entry){ .layer = layer_new(d) };
        own->layer->thread = thread;
        own->layer->must = t->must;
        own->layer->known = t->known_segment;
    }
    for (int i = 0; i < PAGE_WORDS; i++) {
        own->layer->read[i] |= s->read[i];
        own->layer->wrote[i] |= s->wrote[i];
        own->layer->overwritten[i] &= ~(s->read[i] | s->wrote[i]);
        own->layer->stale[i] &= ~(s->read[i] | s->wrote[i]);
    }
    own->words |= s->words;
}

/* Compares the accesses with all layers of the page, the newest first, and adds them to it. */
static void side_flush(struct dependences *d, uint32_t thread, struct access_side *s)
{
    const struct access_thread *t = &d->thread[thread];
    struct access_page *page = s->page;
    uint64_t newer[2][PAGE_WORDS] = { 0 };
    uint32_t empty = page->count;
    bool has_own = false;

    s->words = words_of_bits(s->read, s->wrote);
    page->user = page->user ? page->user : thread + 1;
    page->is_shared |= page->user != thread + 1;
    for (uint32_t i = page->count; i-- > 0;) {
        struct layer_entry *e = &page->entry[i];
        struct shadow_layer *l = e->layer;
        if (!(e->words & s->words))
            continue;
        layer_clear_overwritten(d, l);
        if (l->thread == thread) {
            side_supersede(d, thread, s, l, newer);
        } else {
            side_compare(d, thread, s, l);
            side_overwrite(d, thread, s, l);
        }
        e->words = words_of_bits(l->read, l->wrote);
        empty = e->words ? empty : i;
    }
    page_remove_empty(d, page, empty);
    if (page->count) { /* the newest layer is the only one that can be of this segment */
        const struct shadow_layer *last = page->entry[page->count - 1].layer;
        has_own = last->thread == thread && last->must == t->must && last->known == t->known_segment;
    }
    page_add(d, thread, s, has_own ? &page->entry[page->count - 1] : NULL);
}

void dependences_flush(struct dependences *d, uint32_t thread)
{
    struct access_thread *t = access_thread_of(d, thread);

    for (uint32_t i = 0; i < t->sides; i++) {
        struct access_side *s = &t->side[i];
        side_flush(d, thread, s);
        if (t->locks && d->observer->used)
            d->observer->used(d->observer->self, &(struct page_use){ thread, t->process, s->number << PAGE_SHIFT,
                                                                     s->read, s->wrote, s->page->is_shared });
    }
    t->sides = 0;
    t->flushes++;
}

/* ---- accesses ---- */

static struct access_page *access_page_at(struct dependences *d, uint64_t number, uint32_t process)
{
    struct access_page **page = map_put(&d->pages, number, process);

    assert(page);
    if (!*page)
        *page = mem_alloc(1, sizeof **page);
    return *page;
}

/* A new side of a page for the thread's current accesses. */
static struct access_side *side_new(struct dependences *d, uint32_t thread, uint64_t number, struct side_entry *entry)
{
    struct access_thread *t = &d->thread[thread];

    if (t->sides == MOST_SIDES)
        dependences_flush(d, thread);
    if (entry->number != number + 1)
        *entry = (struct side_entry){ .number = number + 1, .page = access_page_at(d, number, t->process) };
    entry->side = t->sides;
    entry->flush = t->flushes;
    if (t->sides == t->side_room)
        t->side = mem_grow(t->side, &t->side_room, t->sides, sizeof *t->side);
    struct access_side *s = &t->side[t->sides++];
    *s = (struct access_side){ .number = number, .page = entry->page };
    return s;
}

static inline struct access_side *access_side_at(struct dependences *d, uint32_t thread, uint64_t number)
{
    struct access_thread *t = &d->thread[thread];
    struct side_entry *entry = &t->cache[number % SIDE_CACHE];

    if (entry->number == number + 1 && entry->flush == t->flushes)
        return &t->side[entry->side];
    return side_new(d, thread, number, entry);
}

/* Sets bits of up to 64 bytes that lie in one word of bits. */
static inline void side_set(struct access_side *s, unsigned word, uint64_t mask, bool reads, bool writes)
{
    if (reads)
        s->read[word] |= mask & ~s->wrote[word];
    if (writes)
        s->wrote[word] |= mask;
}

void dependences_access(struct dependences *d, uint32_t thread, uint64_t addr, uint64_t size, bool reads, bool writes)
{
    struct access_side *s = NULL;
    uint64_t number = UINT64_MAX;

    while (size > 0) {
        unsigned bit = addr & 63;
        uint64_t n = size < 64 - bit ? size : 64 - bit;
        uint64_t mask = (n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1) << bit;
        if (addr >> PAGE_SHIFT != number) {
            number = addr >> PAGE_SHIFT;
            s = access_side_at(d, thread, number);
        }
        side_set(s, (addr >> 6) % PAGE_WORDS, mask, reads, writes);
        addr += n;
        size -= n;
    }
}

/* The first byte after `addr`, or `end`, at which another page begins. */
static uint64_t page_part_end(uint64_t addr, uint64_t end)
{
    uint64_t next = ((addr >> PAGE_SHIFT) + 1) << PAGE_SHIFT;

    return next < end ? next : end;
}

void dependences_discard(struct dependences *d, uint32_t thread, uint64_t addr, uint64_t size)
{
    uint32_t process = access_thread_of(d, thread)->process;

    for (uint64_t end = addr + size, next; addr < end; addr = next) {
        next = page_part_end(addr, end);
        if (map_find(&d->pages, addr >> PAGE_SHIFT, process))
            dependences_access(d, thread, addr, next - addr, false, true);
    }
}

void dependences_forget(struct dependences *d, uint32_t thread, uint64_t addr, uint64_t size)
{
    uint32_t process = access_thread_of(d, thread)->process;

    dependences_flush(d, thread);
    for (uint64_t end = addr + size, next; addr < end; addr = next) {
        next = page_part_end(addr, end);
        struct access_page **page = map_find(&d->pages, addr >> PAGE_SHIFT, process);
        if (!page)
            continue;
        for (uint32_t i = 0; i < (*page)->count; i++)
            for (uint64_t a = addr; a < next; a++) {
                struct shadow_layer *l = (*page)->entry[i].layer;
                l->read[(a >> 6) % PAGE_WORDS] &= ~(UINT64_C(1) << (a & 63));
                l->wrote[(a >> 6) % PAGE_WORDS] &= ~(UINT64_C(1) << (a & 63));
            }
    }
}

/* ---- threads and order ---- */

void dependences_begin(struct dependences *d, uint32_t thread, uint32_t process, uint32_t creator)
{
    d->thread = mem_reach(d->thread, &d->threads, thread, sizeof *d->thread);
    struct access_thread *t = &d->thread[thread];
    if (!t->has_begun) {
        t->cache = mem_alloc(SIDE_CACHE, sizeof *t->cache);
        t->must = t->known_segment = 1;
    }
    t->has_begun = t->is_live = true;
    d->version++;
    t->process = process;
    if (creator != UNIT_NONE) {
        struct sync_channel c = { 0 };
        dependences_publish(d, creator, &c, CHANNEL_MUST);
        dependences_acquire(d, thread, &c, UNIT_NONE, CHANNEL_MUST);
        channel_release(&c);
    }
}

void dependences_end(struct dependences *d, uint32_t thread)
{
    dependences_flush(d, thread);
    access_thread_of(d, thread)->is_live = false;
    d->version++;
}

void dependences_stack(struct dependences *d, uint32_t thread, uint64_t start, uint64_t end)
{
    access_thread_of(d, thread)->stack = start;
    access_thread_of(d, thread)->stack_end = end;
}

void dependences_publish(struct dependences *d, uint32_t thread, struct sync_channel *c, enum channel_order order)
{
    struct access_thread *t = access_thread_of(d, thread);

    dependences_flush(d, thread);
    clock_set(&t->known, thread, t->known_segment);
    clock_join(&c->known, &t->known, UNIT_NONE);
    t->known_segment++;
    if (order != CHANNEL_MUST)
        return;
    clock_set(&t->must_order, thread, t->must);
    clock_join(&c->must_order, &t->must_order, UNIT_NONE);
    t->must++;
}

void dependences_acquire(struct dependences *d, uint32_t thread, const struct sync_channel *c, uint32_t unit,
                         enum channel_order order)
{
    struct access_thread *t = access_thread_of(d, thread);

    dependences_flush(d, thread);
    clock_join(&t->known, &c->known, unit);
    if (order == CHANNEL_MUST) {
        clock_join(&t->must_order, &c->must_order, unit);
        d->version++;
    }
}

void dependences_hold(struct dependences *d, uint32_t thread, int change)
{
    struct access_thread *t = access_thread_of(d, thread);

    dependences_flush(d, thread);
    if (change > 0)
        t->locks++;
    else if (t->locks)
        t->locks--;
}

uint32_t dependences_segment(const struct dependences *d, uint32_t thread, enum channel_order order)
{
    const struct access_thread *t = access_thread_of(d, thread);

    return order == CHANNEL_MUST ? t->must : t->known_segment;
}

uint32_t dependences_stack_of(const struct dependences *d, uint64_t addr)
{
    for (uint32_t i = 0; i < d->threads; i++)
        if (d->thread[i].has_begun && addr >= d->thread[i].stack && addr < d->thread[i].stack_end)
            return i;
    return UNIT_NONE;
}

uint64_t dependences_races(const struct dependences *d)
{
    return d->races;
}
