/* SPDX-License-Identifier: MIT */
/* The study `allocation`: pages that a program refers to, over time; and blocks by allocating call.
 *
 * Time is each thread's references, cut into equal parts. Threads are read one after another: the study finds that a thread frees another thread's
 * block, but not when. A block that a thread allocates twice without freeing it was freed by another thread. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "study/study.h"

enum { PAGE_SHIFT = 12, PARTS = 64, ROWS = 48, APART = 256 /* pages */, SITES_SHOWN = 100 };

/* A page that was referred to. */
struct memory_page {
    uint64_t addr;           /* of its first byte */
    uint64_t in_part[PARTS]; /* references, by part of the run */
    uint32_t process;        /* number in the trace */
};

/* A call that allocates blocks. */
struct allocating_call {
    uint64_t addr;                   /* of the call */
    uint64_t blocks, bytes;          /* allocated */
    uint64_t freed, freed_elsewhere; /* blocks freed by the allocating thread; by other threads */
    double life;                     /* sum over blocks freed by their own thread; references of it */
    uint32_t process;                /* number in the trace */
};

/* A heap block. */
struct traced_block {
    uint64_t site, size; /* address of the allocating call; bytes */
    uint64_t born;       /* references of the thread before the allocation */
    uint32_t thread;     /* that allocated it; 0: it is free */
    uint32_t overlooked; /* frees by other threads that were inferred from a second allocation */
};

/* The study while it reads a trace. */
struct allocation_study {
    struct map pages;           /* struct memory_page, by number and process */
    struct map sites;           /* struct allocating_call, by address and process */
    struct map blocks;          /* struct traced_block, by address and process */
    uint64_t references, total; /* references of the current thread so far; of all threads */
    uint64_t damaged;           /* parts of the trace that could not be read */
    uint32_t thread, process;   /* of the current thread: numbers in the trace */
    struct memory_page *last;   /* the page that was found last */
};

static const struct column DISPLAY[] = { { "process", "Process", CELL_COUNT, true },
                                         { "from", "From", CELL_HEX, false },
                                         { "to", "To", CELL_HEX, false },
                                         { "touched", "Touched", CELL_BYTES, false },
                                         { "references", "References", CELL_COUNT, false },
                                         { "over_time", "Over time", CELL_CODE, false },
                                         { 0 } };

static const struct column SITES[] = { { "process", "Process", CELL_COUNT, true },
                                       { "site", "Site", CELL_HEX, false },
                                       { "function", "Function", CELL_TEXT, false },
                                       { "blocks", "Blocks", CELL_COUNT, false },
                                       { "bytes", "Bytes", CELL_BYTES, false },
                                       { "freed", "Freed", CELL_COUNT, false },
                                       { "freed_elsewhere", "by others", CELL_COUNT, false },
                                       { "kept", "Kept", CELL_COUNT, false },
                                       { "life", "Mean life", CELL_REAL, false },
                                       { 0 } };

static const struct plot PLOTS[] = {
    { .kind = PLOT_BARS, .title = "Bytes allocated", .over = "function", .of = "bytes", .least = 2, .most = 12 }, { 0 }
};

/* ---- references ---- */

static void *allocation_checked(void *p)
{
    assert(p); /* these tables are small beside the trace */
    return p;
}

static void allocation_touch(struct allocation_study *a, uint64_t addr, uint64_t times)
{
    uint64_t number = addr >> PAGE_SHIFT;
    struct memory_page *p = a->last;

    if (!p || p->addr >> PAGE_SHIFT != number || p->process != a->process) {
        p = allocation_checked(map_put(&a->pages, number, a->process));
        p->addr = number << PAGE_SHIFT;
        p->process = a->process;
        a->last = p;
    }
    uint64_t part = a->total ? a->references * PARTS / a->total : 0;
    p->in_part[part < PARTS ? part : PARTS - 1] += times;
}

static void allocation_touch_range(struct allocation_study *a, uint64_t addr, uint64_t size)
{
    for (uint64_t at = addr; size && at < addr + size; at = ((at >> PAGE_SHIFT) + 1) << PAGE_SHIFT)
        allocation_touch(a, at, 1);
}

/* ---- blocks ---- */

static struct allocating_call *alloc_site_find(struct allocation_study *a, uint64_t addr)
{
    struct allocating_call *s = allocation_checked(map_put(&a->sites, addr, a->process));

    s->addr = addr;
    s->process = a->process;
    return s;
}

static void allocation_give(struct allocation_study *a, uint64_t site, uint64_t addr, uint64_t size)
{
    struct traced_block *b = addr ? allocation_checked(map_put(&a->blocks, addr, a->process)) : NULL;
    struct allocating_call *s = alloc_site_find(a, site);

    if (!b)
        return;
    if (b->thread) { /* another thread freed it: its free is in a stream that comes later */
        alloc_site_find(a, b->site)->freed_elsewhere++;
        b->overlooked++;
        s = alloc_site_find(a, site);
    }
    *b = (struct traced_block){ site, size, a->references, a->thread, b->overlooked };
    s->blocks++;
    s->bytes += size;
}

static void allocation_take(struct allocation_study *a, uint64_t addr)
{
    struct traced_block *b = addr ? map_find(&a->blocks, addr, a->process) : NULL;

    if (!b)
        return;
    if (b->thread == a->thread) {
        struct allocating_call *s = alloc_site_find(a, b->site);
        s->freed++;
        s->life += (double)(a->references - b->born);
        b->thread = 0;
    } else if (b->overlooked) {
        b->overlooked--;
    } else if (b->thread) {
        alloc_site_find(a, b->site)->freed_elsewhere++;
        b->thread = 0;
    }
}

static void allocation_event(struct allocation_study *a, const struct peet_event *e)
{
    const uint64_t *arg = e->arg;

    switch (e->kind) {
    case PEET_EV_malloc: allocation_give(a, e->site, arg[0], arg[1]); break;
    case PEET_EV_calloc: allocation_give(a, e->site, arg[0], arg[1] * arg[2]); break;
    case PEET_EV_memalign: allocation_give(a, e->site, arg[0], arg[2]); break;
    case PEET_EV_realloc:
        if (arg[0]) {
            allocation_take(a, arg[1]);
            allocation_give(a, e->site, arg[0], arg[2]);
        }
        break;
    case PEET_EV_free: allocation_take(a, arg[0]); break;
    case PEET_EV_range_read:
    case PEET_EV_range_write: allocation_touch_range(a, arg[0], arg[1]); break;
    case PEET_EV_range_copy:
    case PEET_EV_range_compare:
        allocation_touch_range(a, arg[0], arg[2]);
        allocation_touch_range(a, arg[1], arg[2]);
        break;
    default: break;
    }
}

/* ---- reading ---- */

static int allocation_read_thread(struct allocation_study *a, struct peet_trace *t, const struct peet_thread *th,
                                  struct progress *progress, uint64_t *done, struct peet_err *err)
{
    struct peet_cursor *c;
    struct peet_batch b;
    struct peet_totals totals;
    int r = peet_cursor_open(t, th->id, 0, &c, err);

    if (r < 0)
        return r;
    a->thread = th->id + 1;
    a->process = th->process;
    a->references = 0;
    a->total = peet_trace_totals(t, th->id, &totals) == 0 ? totals.references : 0;
    while ((r = peet_cursor_next(c, &b, err)) > 0 || r == PEET_ERR_DAMAGED) {
        a->damaged += r == PEET_ERR_DAMAGED;
        for (size_t i = 0; r > 0 && i < b.count; i++) {
            const struct peet_record *x = &b.records[i];
            if (peet_is_reference(x)) {
                allocation_touch(a, x->addr, 1);
                a->references++;
            } else if (x->kind == PEET_EVENT) {
                allocation_event(a, &b.events[x->id]);
            }
        }
        if (progress)
            progress_at(progress, *done + a->references);
    }
    *done += a->references;
    peet_cursor_free(c);
    return r;
}

/* ---- tables ---- */

static int compare_pages(const void *x, const void *y)
{
    const struct memory_page *a = *(struct memory_page *const *)x, *b = *(struct memory_page *const *)y;

    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    return a->addr < b->addr ? -1 : a->addr > b->addr;
}

/* Decimal digits of a number; 0 for 0. */
static char decimal_digits(uint64_t n)
{
    char c = '0';

    for (; n; n /= 10)
        c++;
    return c == '0' ? ' ' : c > '9' ? '9' : c;
}

static void allocation_add_row(struct table *t, struct memory_page *const *page, size_t pages)
{
    uint64_t sum[PARTS] = { 0 }, all = 0;
    char text[PARTS + 1];

    for (size_t i = 0; i < pages; i++)
        for (int k = 0; k < PARTS; k++)
            sum[k] += page[i]->in_part[k];
    for (int k = 0; k < PARTS; k++) {
        text[k] = decimal_digits(sum[k]);
        all += sum[k];
    }
    text[PARTS] = 0;
    table_count(t, page[0]->process);
    table_count(t, page[0]->addr);
    table_count(t, page[pages - 1]->addr + (1 << PAGE_SHIFT));
    table_count(t, pages << PAGE_SHIFT);
    table_count(t, all);
    table_text(t, text);
}

static void allocation_add_pages(struct result *r, const struct allocation_study *a)
{
    struct table *t = result_table(r, "display", "Where and when memory is referred to", DISPLAY);
    struct memory_page **page = mem_alloc(a->pages.count + 1, sizeof *page), *p;
    size_t n = 0, at = 0, most = a->pages.count / ROWS + 1;
    uint64_t key;
    uint32_t tag;

    while ((p = map_next(&a->pages, &at, &key, &tag)))
        page[n++] = p;
    if (n)
        qsort(page, n, sizeof *page, compare_pages);
    for (size_t from = 0, i = 1; i <= n; i++) {
        bool ends = i == n || page[i]->process != page[i - 1]->process || i - from == most
                    || (page[i]->addr - page[i - 1]->addr) >> PAGE_SHIFT > APART;
        if (ends) {
            allocation_add_row(t, page + from, i - from);
            from = i;
        }
    }
    free(page);
    table_note(
        t,
        "Over time: a character for each 64th of a thread's references, all threads together; it is the number of decimal "
        "digits of what was referred to in it. What library functions move counts once for each page.");
}

static int compare_sites_by_bytes(const void *x, const void *y)
{
    const struct allocating_call *a = *(struct allocating_call *const *)x, *b = *(struct allocating_call *const *)y;

    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return a->addr < b->addr ? -1 : a->addr > b->addr;
}

static void allocation_add_site(struct table *t, const struct peet_trace *trace, const struct allocating_call *s)
{
    const struct peet_symbol *y = peet_trace_symbol(trace, s->process, s->addr ? s->addr - 1 : 0);

    table_count(t, s->process);
    table_count(t, s->addr);
    table_text(t, y && y->code ? y->name : NULL);
    table_count(t, s->blocks);
    table_count(t, s->bytes);
    table_count(t, s->freed + s->freed_elsewhere);
    table_count(t, s->freed_elsewhere);
    table_count(t, s->blocks - s->freed - s->freed_elsewhere);
    s->freed ? table_real(t, s->life / (double)s->freed) : table_none(t);
}

static void allocation_add_sites(struct result *r, const struct peet_trace *trace, const struct allocation_study *a)
{
    struct table *t = result_table(r, "sites", "Allocations by where they are asked for", SITES);
    struct allocating_call **site = mem_alloc(a->sites.count + 1, sizeof *site), *s;
    size_t n = 0, at = 0;
    uint64_t key;
    uint32_t tag;

    while ((s = map_next(&a->sites, &at, &key, &tag)))
        site[n++] = s;
    if (n)
        qsort(site, n, sizeof *site, compare_sites_by_bytes);
    for (size_t i = 0; i < n && i < SITES_SHOWN; i++)
        allocation_add_site(t, trace, site[i]);
    free(site);
    if (n > SITES_SHOWN)
        table_note(t, "%zu more are not shown.", n - SITES_SHOWN);
    table_note(
        t,
        "Life: references of the thread that allocates and frees; what the allocator does inside is not recorded, unless it "
        "was built with peet cc.");
    t->plot = PLOTS;
}

static int allocation_run(struct study_state *s, struct peet_trace *t, struct study_answer *answer,
                          struct progress *progress, struct peet_err *err)
{
    struct allocation_study a = { .pages = { .value_size = sizeof(struct memory_page) },
                                  .sites = { .value_size = sizeof(struct allocating_call) },
                                  .blocks = { .value_size = sizeof(struct traced_block) } };
    const struct peet_thread *th;
    uint64_t done = 0;
    int r = 0;

    (void)s;
    if (peet_trace_is_pipe(t))
        return err_set(err, PEET_ERR_USAGE, "%s: allocation reads a trace thread by thread; save it in a file first",
                       peet_trace_path(t));
    for (size_t i = 0; r == 0 && (th = peet_trace_thread(t, i)); i++)
        r = allocation_read_thread(&a, t, th, progress, &done, err);
    if (r == 0) {
        answer->damaged = a.damaged;
        allocation_add_pages(&answer->result, &a);
        allocation_add_sites(&answer->result, t, &a);
    }
    map_release(&a.pages);
    map_release(&a.sites);
    map_release(&a.blocks);
    return r;
}

const struct study study_allocation = {
    .name = "allocation",
    .summary = "where and when memory is referred to, and which calls allocate what",
    .run = allocation_run,
};
