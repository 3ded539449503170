/* SPDX-License-Identifier: MIT */
#include "study/sharing/shadow.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

/* A name of the granules [from, to) of a page. */
struct page_names {
    uint16_t from, to;
    uint32_t name; /* number in data_names */
};

/* 512 granules. */
struct shadow_page {
    uint64_t number;          /* address / bytes of a page */
    struct shadow_side *side; /* list: one for each thread that ever touched it */
    struct page_names *names; /* rising; NULL: not looked up */
    uint32_t name_count;      /* elements of `names` */
    uint32_t process;         /* number in the trace */
    uint32_t epoch;           /* of the last access, from 1 */
};

static int shadow_no_memory(struct peet_err *err)
{
    return err_set(err, PEET_ERR_MEMORY, "no memory for what threads share; a larger granule needs less");
}

int shadow_init(struct shadow *s, unsigned shift, const struct data_names *names, size_t threads, struct peet_err *err)
{
    *s = (struct shadow){ .shift = shift, .epoch = 1, .names = names };
    s->pages.value_size = sizeof(struct shadow_page *);
    s->sides.value_size = sizeof(struct shadow_side *);
    s->flows.value_size = sizeof(struct shadow_flow);
    s->by_name = calloc(names->count + 1, sizeof *s->by_name);
    s->by_thread = calloc(threads + 1, sizeof *s->by_thread);
    return s->by_name && s->by_thread ? 0 : shadow_no_memory(err);
}

void shadow_release(struct shadow *s)
{
    map_release(&s->pages);
    map_release(&s->sides);
    map_release(&s->flows);
    free(s->changed);
    arena_release(&s->arena);
    free(s->by_name);
    free(s->by_thread);
    *s = (struct shadow){ 0 };
}

/* ---- references ---- */

/* Finds the names of the granules of a new page. A granule with several names has that of its first byte. */
static int shadow_page_find_names(struct shadow *s, struct shadow_page *page)
{
    struct page_names list[SHADOW_GRANULES];
    uint32_t n = 0;
    uint64_t base = (page->number * SHADOW_GRANULES) << s->shift, until;

    for (uint64_t at = 0; at < SHADOW_GRANULES;) {
        uint32_t name = data_names_find(s->names, page->process, base + (at << s->shift), &until);
        uint64_t to =
            until == UINT64_MAX ? SHADOW_GRANULES : (until - base + (UINT64_C(1) << s->shift) - 1) >> s->shift;
        to = to < SHADOW_GRANULES ? to : SHADOW_GRANULES;
        if (n && list[n - 1].name == name)
            list[n - 1].to = (uint16_t)to;
        else
            list[n++] = (struct page_names){ (uint16_t)at, (uint16_t)to, name };
        at = to;
    }
    page->names = arena_alloc(&s->arena, n * sizeof *list);
    if (!page->names)
        return -1;
    for (uint32_t i = 0; i < n; i++)
        page->names[i] = list[i];
    page->name_count = n;
    return 0;
}

static struct shadow_page *shadow_page_find(struct shadow *s, uint32_t process, uint64_t number)
{
    struct shadow_page **known = map_put(&s->pages, number, process);

    if (!known)
        return NULL;
    if (!*known) {
        struct shadow_page *page = arena_alloc(&s->arena, sizeof *page);
        if (!page)
            return NULL;
        *known = page;
        page->number = number;
        page->process = process;
        if (shadow_page_find_names(s, page) < 0)
            return NULL;
    }
    return *known;
}

/* The thread's side of a page; made at its first access. */
static __attribute__((noinline)) struct shadow_side *shadow_side_find(struct shadow *s, struct shadow_thread *l,
                                                                      uint64_t number)
{
    struct shadow_side **known = map_put(&s->sides, number, l->thread);

    if (!known)
        return NULL;
    if (!*known) {
        struct shadow_page *page = shadow_page_find(s, l->process, number);
        struct shadow_side *side = page ? arena_alloc(&s->arena, sizeof *side) : NULL;
        if (!side)
            return NULL;
        side->page = page;
        side->thread = l->thread;
        side->next = page->side;
        page->side = side;
        *known = side;
    }
    if ((*known)->epoch == s->epoch && (*known)->until < l->until)
        (*known)->until = l->until;
    l->number[number % SHADOW_CACHE] = number;
    l->side[number % SHADOW_CACHE] = *known;
    return *known;
}

void shadow_thread_until(struct shadow_thread *l, uint32_t epoch)
{
    if (epoch > l->until)
        memset(l->side, 0, sizeof l->side); /* sides with accesses in this epoch need the new value, too */
    l->until = epoch;
}

/* The first access to a side in an epoch: the page is listed for the end of the epoch. */
static __attribute__((noinline)) int shadow_note_change(struct shadow *s, const struct shadow_thread *l,
                                                        struct shadow_side *side)
{
    side->epoch = s->epoch;
    side->until = l->until;
    if (side->page->epoch == s->epoch)
        return 0;
    void *bigger = array_room(s->changed, s->changes, &s->change_room, sizeof *s->changed);
    if (!bigger)
        return -1;
    s->changed = bigger;
    s->changed[s->changes++] = side->page;
    side->page->epoch = s->epoch;
    return 0;
}

static inline void shadow_side_set(struct shadow_side *side, unsigned kind, unsigned word, uint64_t bits)
{
    if (kind != PEET_STORE)
        side->read[word] |= bits & ~side->wrote[word];
    if (kind != PEET_LOAD)
        side->wrote[word] |= bits;
}

int shadow_touch(struct shadow *s, struct shadow_thread *l, unsigned kind, uint64_t addr, uint64_t size,
                 struct peet_err *err)
{
    uint64_t granule = addr >> s->shift, last = (addr + size - 1) >> s->shift;

    while (granule <= last) {
        uint64_t number = granule / SHADOW_GRANULES;
        struct shadow_side *side = l->side[number % SHADOW_CACHE];
        if ((!side || l->number[number % SHADOW_CACHE] != number) && !(side = shadow_side_find(s, l, number)))
            return shadow_no_memory(err);
        if (side->epoch != s->epoch && shadow_note_change(s, l, side) < 0)
            return shadow_no_memory(err);
        unsigned bit = granule % 64;
        uint64_t more = last - granule < 63 - bit ? last - granule : 63 - bit; /* besides the first, in this word */
        shadow_side_set(side, kind, (unsigned)(granule % SHADOW_GRANULES) / 64, (UINT64_MAX >> (63 - more)) << bit);
        if (last - granule == more)
            break; /* also where memory ends */
        granule += more + 1;
    }
    return 0;
}

/* ---- the end of an epoch ---- */

static uint64_t count_bits(const uint64_t *bits)
{
    uint64_t n = 0;

    for (int w = 0; w < SHADOW_WORDS; w++)
        n += (uint64_t)__builtin_popcountll(bits[w]);
    return n;
}

/* The bits of granules with that name. */
static uint64_t count_named_bits(const uint64_t *bits, const struct page_names *x)
{
    uint64_t n = 0;

    for (unsigned w = x->from / 64; w * 64 < x->to; w++) {
        uint64_t mask = UINT64_MAX;
        if (x->from > w * 64)
            mask &= UINT64_MAX << (x->from - w * 64);
        if (x->to < w * 64 + 64)
            mask &= UINT64_MAX >> (w * 64 + 64 - x->to);
        n += (uint64_t)__builtin_popcountll(bits[w] & mask);
    }
    return n;
}

static int shadow_add_flow(struct shadow *s, const struct shadow_page *page, uint32_t from, uint32_t to,
                           const uint64_t *ordered, const uint64_t *unordered, struct peet_err *err)
{
    struct shadow_flow sum = { count_bits(ordered), count_bits(unordered) };

    if (!sum.ordered && !sum.unordered)
        return 0;
    struct shadow_flow *flow = map_put(&s->flows, from, to);
    if (!flow)
        return shadow_no_memory(err);
    flow->ordered += sum.ordered;
    flow->unordered += sum.unordered;
    s->total.flow.ordered += sum.ordered;
    s->total.flow.unordered += sum.unordered;
    for (uint32_t i = 0; i < page->name_count; i++) {
        struct shadow_flow *f = &s->by_name[page->names[i].name].flow;
        f->ordered += count_named_bits(ordered, &page->names[i]);
        f->unordered += count_named_bits(unordered, &page->names[i]);
    }
    return 0;
}

static bool shadow_side_is_touched(const struct shadow *s, const struct shadow_side *x)
{
    return x->epoch == s->epoch;
}

/* Accesses of earlier epochs that may lie in this one; NULL: none. */
static const struct shadow_span *shadow_span_now(const struct shadow *s, const struct shadow_side *x)
{
    return x->span && x->span->until > s->epoch ? x->span : NULL;
}

/* Adds the flow from one writer to one reader: earlier values that no other thread writes in this epoch, and values written in this epoch. A write that
 * may last for several epochs counts once. */
static int shadow_flow_between(struct shadow *s, const struct shadow_page *page, const struct shadow_side *from,
                               const struct shadow_side *to, const uint64_t *written_by_others,
                               const uint64_t *several_owners, struct peet_err *err)
{
    uint64_t ordered[SHADOW_WORDS] = { 0 }, unordered[SHADOW_WORDS] = { 0 };
    const struct shadow_span *wrote = shadow_span_now(s, from), *read = shadow_span_now(s, to);
    bool writes = shadow_side_is_touched(s, from), reads = shadow_side_is_touched(s, to);

    for (int w = 0; w < SHADOW_WORDS; w++) {
        if (reads) {
            uint64_t old = to->read[w] & from->owns[w] & ~to->read_since[w] & ~written_by_others[w];
            ordered[w] = old & ~several_owners[w];
            unordered[w] = (old & several_owners[w]) | (writes ? to->read[w] & from->wrote[w] : 0)
                           | (wrote ? to->read[w] & wrote->wrote[w] & ~to->read_since[w] : 0);
        }
        if (read && writes)
            unordered[w] |= read->read[w] & from->wrote[w];
    }
    return shadow_add_flow(s, page, from->thread, to->thread, ordered, unordered, err);
}

static int shadow_flow_to(struct shadow *s, const struct shadow_page *page, struct shadow_side *to,
                          const uint64_t *several_owners, struct peet_err *err)
{
    uint64_t others[SHADOW_WORDS] = { 0 };
    int r = 0;

    for (const struct shadow_side *x = page->side; x; x = x->next) {
        const struct shadow_span *span = shadow_span_now(s, x);
        for (int w = 0; x != to && w < SHADOW_WORDS; w++)
            others[w] |= (shadow_side_is_touched(s, x) ? x->wrote[w] : 0) | (span ? span->wrote[w] : 0);
    }
    for (const struct shadow_side *x = page->side; r == 0 && x; x = x->next)
        if (x != to)
            r = shadow_flow_between(s, page, x, to, others, several_owners, err);
    for (int w = 0; shadow_side_is_touched(s, to) && w < SHADOW_WORDS; w++)
        to->read_since[w] |= to->read[w];
    return r;
}

/* Keeps accesses of this epoch that may lie in later ones, too. */
static int shadow_side_extend(struct shadow *s, struct shadow_side *x)
{
    if (x->until <= s->epoch + 1)
        return 0;
    if (!x->span && !(x->span = arena_alloc(&s->arena, sizeof *x->span)))
        return -1;
    if (x->span->until <= s->epoch)
        *x->span = (struct shadow_span){ .until = x->until };
    x->span->until = x->until > x->span->until ? x->until : x->span->until;
    for (int w = 0; w < SHADOW_WORDS; w++) {
        x->span->read[w] |= x->read[w];
        x->span->wrote[w] |= x->wrote[w];
    }
    return 0;
}

/* Granules written in this epoch get new owners, and are unread. */
static int shadow_set_owners(struct shadow *s, const struct shadow_page *page)
{
    uint64_t written[SHADOW_WORDS] = { 0 };
    int r = 0;

    for (const struct shadow_side *x = page->side; x; x = x->next)
        for (int w = 0; shadow_side_is_touched(s, x) && w < SHADOW_WORDS; w++)
            written[w] |= x->wrote[w];
    for (struct shadow_side *x = page->side; x; x = x->next) {
        bool touched = shadow_side_is_touched(s, x);
        const struct shadow_span *span = shadow_span_now(s, x);
        for (int w = 0; w < SHADOW_WORDS; w++) {
            uint64_t still_written = span ? span->wrote[w] & written[w] : 0;
            x->owns[w] = (x->owns[w] & ~written[w]) | (touched ? x->wrote[w] : 0) | still_written;
            x->read_since[w] &= ~written[w];
            x->touched[w] |= touched ? x->read[w] | x->wrote[w] : 0;
            x->written[w] |= touched ? x->wrote[w] : 0;
        }
        r = touched && r == 0 ? shadow_side_extend(s, x) : r;
        for (int w = 0; touched && w < SHADOW_WORDS; w++)
            x->read[w] = x->wrote[w] = 0;
    }
    return r;
}

int shadow_end_epoch(struct shadow *s, struct peet_err *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < s->changes; i++) {
        const struct shadow_page *page = s->changed[i];
        uint64_t owned[SHADOW_WORDS] = { 0 }, several[SHADOW_WORDS] = { 0 };
        for (const struct shadow_side *x = page->side; x && page->side->next; x = x->next) {
            for (int w = 0; w < SHADOW_WORDS; w++) {
                several[w] |= owned[w] & x->owns[w];
                owned[w] |= x->owns[w];
            }
        }
        for (struct shadow_side *x = page->side; r == 0 && x && page->side->next; x = x->next)
            if (shadow_side_is_touched(s, x) || shadow_span_now(s, x))
                r = shadow_flow_to(s, page, x, several, err);
        if (r == 0 && shadow_set_owners(s, page) < 0)
            r = shadow_no_memory(err);
    }
    s->changes = 0;
    s->epoch++;
    return r;
}

/* ---- kinds ---- */

/* Granules of a page by kind, as bits. */
struct page_kinds {
    uint64_t touched[SHADOW_WORDS], alone[SHADOW_WORDS], read_only[SHADOW_WORDS], shared[SHADOW_WORDS],
        many[SHADOW_WORDS];
};

static void page_kinds_find(const struct shadow_page *page, struct page_kinds *k)
{
    for (int w = 0; w < SHADOW_WORDS; w++) {
        uint64_t touched = 0, twice = 0, written = 0, again = 0;
        for (const struct shadow_side *x = page->side; x; x = x->next) {
            twice |= touched & x->touched[w];
            touched |= x->touched[w];
            again |= written & x->written[w];
            written |= x->written[w];
        }
        k->touched[w] = touched;
        k->alone[w] = touched & ~twice;
        k->read_only[w] = twice & ~written;
        k->shared[w] = twice & written;
        k->many[w] = twice & again;
    }
}

static void page_kinds_add(struct shadow_kinds *to, const struct page_kinds *k, const struct page_names *x)
{
    to->touched += count_named_bits(k->touched, x);
    to->alone += count_named_bits(k->alone, x);
    to->read_only += count_named_bits(k->read_only, x);
    to->shared += count_named_bits(k->shared, x);
    to->many += count_named_bits(k->many, x);
}

/* The kinds of the granules that a thread touched. */
static void page_kinds_mask(const struct page_kinds *k, const uint64_t *mask, struct page_kinds *ret)
{
    for (int w = 0; w < SHADOW_WORDS; w++) {
        ret->touched[w] = k->touched[w] & mask[w];
        ret->alone[w] = k->alone[w] & mask[w];
        ret->read_only[w] = k->read_only[w] & mask[w];
        ret->shared[w] = k->shared[w] & mask[w];
        ret->many[w] = k->many[w] & mask[w];
    }
}

void shadow_count(struct shadow *s)
{
    static const struct page_names WHOLE = { 0, SHADOW_GRANULES, 0 };
    struct shadow_page *const *known;
    struct page_kinds all, own;
    uint64_t number;
    uint32_t process;

    for (size_t at = 0; (known = map_next(&s->pages, &at, &number, &process));) {
        const struct shadow_page *page = *known;
        page_kinds_find(page, &all);
        page_kinds_add(&s->total, &all, &WHOLE);
        for (uint32_t i = 0; i < page->name_count; i++)
            page_kinds_add(&s->by_name[page->names[i].name], &all, &page->names[i]);
        for (const struct shadow_side *x = page->side; x; x = x->next) {
            page_kinds_mask(&all, x->touched, &own);
            page_kinds_add(&s->by_thread[x->thread], &own, &WHOLE);
        }
    }
}
