/* SPDX-License-Identifier: MIT */
/* To which object a byte belongs: the fast structures against a list of all blocks, on random events; and what the names are. */
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "study/objects/objects.h"
#include "study/objects/mem_spans.h"

static uint64_t state = 1;

static uint64_t draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state ^ state >> 29;
}

/* ---- a trace without a program ---- */

static char path[] = "/tmp/peet-objects-XXXXXX";
static struct peet_trace *trace;
static struct symbols *where;
static struct objects *objects;

static const struct peet_symbol SYMBOLS[] = { { 0x400000, 0x100, "solve", 1 },
                                              { 0x400100, 0x100, "_ZN3sim4stepEi", 1 },
                                              { 0x600000, 64, "table", 0 },
                                              { 0x600040, 8, "__field_MOD_count", 0 } };

static const struct peet_symbol LIBRARY_SYMBOLS[] = { { 0x800000, 0x100, "buffer", 1 } };

static void make_trace(void)
{
    struct peet_writer *w;
    struct peet_err err;
    struct peet_segment segment[] = { { 0x400000, 0x1000, 0, 5 }, { 0x600000, 0x1000, 0x1000, 6 } };
    struct peet_module module = { 1, "/nowhere/prog", "", 0, 2, 4, segment, SYMBOLS };
    struct peet_segment library_segment[] = { { 0x800000, 0x1000, 0, 5 } };
    struct peet_module library = { 1, "/nowhere/library.so", "", 0, 1, 1, library_segment, LIBRARY_SYMBOLS };
    struct peet_range stack = { 1, 0x7fff00000000, 0x10000, 6, "[stack]" };
    struct peet_range file = { 1, 0x700000000000, 0x10000, 4, "/data/input.bin" };
    uint32_t string;
    int fd = mkstemp(path);

    if (fd < 0 || peet_writer_open(path, NULL, &w, &err) < 0)
        abort();
    close(fd);
    (void)peet_writer_process(w, &(struct peet_process){ 1, 0, "/nowhere/prog", "prog" }, &err);
    (void)peet_writer_module(w, &module, &err);
    (void)peet_writer_module(w, &library, &err);
    (void)peet_writer_range(w, &stack, &err);
    (void)peet_writer_range(w, &file, &err);
    (void)peet_writer_string(w, "lattice", &string, &err);
    if (peet_writer_close(w, &err) < 0 || peet_trace_open(path, &trace, &err) < 0)
        abort();
}

static void begin(void)
{
    struct peet_err err;

    if (symbols_open(trace, &where, &err) < 0 || objects_new(trace, where, &objects, &err) < 0)
        abort();
}

static void end(void)
{
    objects_free(objects);
    symbols_free(where);
}

static void event(uint32_t kind, uint64_t site, uint64_t a, uint64_t b, uint64_t c)
{
    struct peet_event e = { kind, 3, site, { a, b, c } };
    static const uint64_t nothing[OBJECT_PATH];

    objects_event(objects, 1, 1, &e, nothing);
}

static uint32_t find(uint64_t addr, uint64_t *start, uint64_t *end_)
{
    return objects_find(objects, 1, 1, addr, 0x400010, start, end_);
}

static const char *name_at(uint64_t addr)
{
    uint64_t start, stop;

    return objects_info(objects, find(addr, &start, &stop))->name;
}

static enum object_kind kind_at(uint64_t addr)
{
    uint64_t start, stop;

    return objects_info(objects, find(addr, &start, &stop))->kind;
}

/* ---- against a list ---- */

enum { MOST = 300, STEPS = 20000 };

struct entry {
    uint64_t start, size, site;
};

static struct entry list[MOST];
static size_t entries;

static void list_remove(size_t i)
{
    list[i] = list[--entries];
}

static void list_clear(uint64_t start, uint64_t size)
{
    uint64_t last = size ? start + size - 1 : start;

    for (size_t i = entries; i-- > 0;) {
        uint64_t its = list[i].size ? list[i].start + list[i].size - 1 : list[i].start;
        if (list[i].start <= last && its >= start)
            list_remove(i);
    }
}

static void list_add(uint64_t start, uint64_t size, uint64_t site)
{
    list_clear(start, size);
    if (entries < MOST)
        list[entries++] = (struct entry){ start, size, site };
}

/* After the bytes that the C library lets a program use of a block. */
static uint64_t list_room(const struct entry *e)
{
    uint64_t end = e->start + e->size;

    if (e->size >= 131072 && e->start % 4096 == 16)
        while (end % 4096)
            end++;
    else
        while (end < e->start + 24 || (end - e->start) % 16 != 8)
            end++;
    return end;
}

static const struct entry *list_find(uint64_t addr)
{
    const struct entry *found = NULL;

    for (size_t i = 0; i < entries; i++)
        if (addr >= list[i].start && addr < list_room(&list[i]) && (!found || list[i].start > found->start))
            found = &list[i];
    return found;
}

/* Where it ends: a block that begins earlier ends it, too. */
static uint64_t list_end(const struct entry *e)
{
    uint64_t end = list_room(e);

    for (size_t i = 0; i < entries; i++)
        if (list[i].start > e->start && list[i].start < end)
            end = list[i].start;
    return end;
}

static uint64_t draw_address(void)
{
    return 0x10000000 + draw() % (4 << 20) / 16 * 16;
}

static uint64_t draw_size(void)
{
    uint64_t how = draw() % 10;

    return how == 0 ? 0 : how == 1 ? 200000 + draw() % 400000 : how == 2 ? draw() % 20000 : 1 + draw() % 200;
}

static void do_something(void)
{
    uint64_t addr = draw_address(), size = draw_size(), site = 0x400020 + draw() % 8 * 16, what = draw() % 10;
    size_t i = entries ? draw() % entries : 0;

    if (what < 4 && entries < MOST) {
        event(PEET_EV_malloc, site, addr, size, 0);
        list_add(addr, size, site);
    } else if (what < 5 && entries < MOST) {
        event(PEET_EV_calloc, site, addr, size, 1);
        list_add(addr, size, site);
    } else if (what < 6 && entries > 0) { /* maybe in place */
        uint64_t old = list[i].start, to = draw() % 2 ? old : addr;
        event(PEET_EV_realloc, site, to, old, size);
        list_remove(i);
        list_add(to, size, site);
    } else if (what < 9 && entries > 0) {
        event(PEET_EV_free, site, list[i].start, 0, 0);
        list_remove(i);
    } else { /* it is unknown */
        if (!list_find(addr))
            event(PEET_EV_free, site, addr + 8, 0, 0);
    }
}

/* The object is that of the site, and all of what is said to be the same is. */
static void compare(uint64_t addr)
{
    uint64_t start, stop;
    const struct object_info *f = objects_info(objects, find(addr, &start, &stop));
    const struct entry *e = list_find(addr);

    CHECK(start <= addr && addr < stop);
    if (!CHECK_EQ(f->kind == OBJECT_HEAP, e != NULL))
        return;
    if (e) {
        CHECK_EQ(f->path[0], e->site - 1);
        CHECK_EQ(start, e->start);
        CHECK_EQ(stop, list_end(e));
        CHECK_EQ(objects_offset(objects, 1, addr), addr - e->start);
    } else {
        for (size_t i = 0; i < entries; i++)
            CHECK(list[i].start >= stop || list_room(&list[i]) <= start);
    }
}

/* What was found some time ago, and that nothing has changed there since. */
static void what_is_remembered_holds_until_it_changes(void)
{
    enum { REMEMBERED = 40 };
    struct {
        uint64_t start, stop, since;
        uint32_t object;
    } known[REMEMBERED] = { 0 };
    unsigned kept = 0;

    begin();
    entries = 0;
    for (int i = 0; i < STEPS; i++) {
        do_something();
        for (int k = 0; k < REMEMBERED; k++) {
            uint64_t start, stop, addr = known[k].start;
            if (known[k].stop == 0
                || change_log_overlaps(objects_changes(objects), known[k].since, addr, known[k].stop))
                continue;
            addr += draw() % (known[k].stop - addr);
            CHECK_EQ(find(addr, &start, &stop), known[k].object);
            kept++;
        }
        int k = (int)(draw() % REMEMBERED);
        known[k].object = find(entries && draw() % 2 ? list[draw() % entries].start : draw_address(), &known[k].start,
                               &known[k].stop);
        known[k].since = objects_changes(objects)->count;
    }
    CHECK(kept > STEPS);
    end();
}

static void blocks_are_found_as_in_a_list_of_all(void)
{
    begin();
    entries = 0;
    for (int i = 0; i < STEPS; i++) {
        do_something();
        compare(draw_address() + draw() % 32);
        if (entries > 0) {
            const struct entry *e = &list[draw() % entries];
            compare(e->start + (e->size ? draw() % e->size : 0));
            compare(e->start + e->size);
        }
    }
    end();
}

static void spans_are_those_of_the_last_who_came(void)
{
    enum { ROOM = 400 };
    static uint32_t slow[ROOM];
    struct mem_spans s = { 0 };

    for (int i = 0; i < 5000; i++) {
        uint64_t from = draw() % ROOM, to = from + draw() % 40;
        uint32_t what = draw() % 4 ? (uint32_t)i + 1 : 0;
        to = to > ROOM ? ROOM : to;
        if (what)
            mem_spans_set(&s, &(struct mem_span){ 1, what, from, to, from, NULL });
        else
            mem_spans_clear(&s, 1, from, to);
        for (uint64_t k = from; k < to; k++)
            slow[k] = what;
        for (uint64_t k = 0; k < ROOM; k++) {
            uint64_t low = 0, high = ROOM;
            const struct mem_span *found = mem_spans_find(&s, 1, k, &low, &high);
            CHECK_EQ(found ? found->what : 0, slow[k]);
            CHECK(low <= k && k < high);
            CHECK(slow[low] == slow[k] && slow[high - 1] == slow[k]);
        }
    }
    mem_spans_release(&s);
}

/* ---- kinds and names ---- */

static void bytes_have_the_names_of_what_is_there(void)
{
    begin();
    CHECK_EQ(name_at(0x600008), "table");
    CHECK_EQ(kind_at(0x600008), OBJECT_VARIABLE);
    CHECK_EQ(name_at(0x600040), "field::count");
    CHECK_EQ(name_at(0x600100), "other data of prog");
    CHECK_EQ(name_at(0x7fff00000010), "stack of solve");
    CHECK_EQ(name_at(0x7ffeffff0000), "stack of solve"); /* it has grown */
    CHECK_EQ(name_at(0x700000000010), "/data/input.bin");
    CHECK_EQ(kind_at(0x700000000010), OBJECT_FILE);
    CHECK_EQ(name_at(0x123456789000), "unknown");
    end();
}

static void what_has_no_blocks_is_looked_up_once(void)
{
    uint64_t start, stop;

    begin();
    find(0x700000000010, &start, &stop);
    CHECK_EQ(start, 0x700000000000);
    CHECK_EQ(stop, 0x700000010000);
    event(PEET_EV_malloc, 0x400020, 0x700000003010, 64, 0);
    find(0x700000000010, &start, &stop);
    CHECK_EQ(start, 0x700000000000);
    CHECK(stop > 0x700000000010 && stop <= 0x700000003010);
    find(0x700000005000, &start, &stop);
    CHECK(start >= 0x700000003050 && start <= 0x700000005000);
    event(PEET_EV_free, 0x400020, 0x700000003010, 0, 0);
    find(0x700000000010, &start, &stop);
    CHECK_EQ(stop, 0x700000010000);
    end();
}

static void what_the_program_named_counts_before_all_else(void)
{
    uint64_t start, stop, string = 0;

    while (!peet_trace_string(trace, string) || strcmp(peet_trace_string(trace, string), "lattice") != 0)
        string++;
    begin();
    event(PEET_EV_malloc, 0x400020, 0x10000000, 4096, 0);
    event(PEET_EV_name_data, 0x400030, string, 0x10000100, 256);
    CHECK_EQ(name_at(0x10000180), "lattice");
    CHECK_EQ(kind_at(0x100000ff), OBJECT_HEAP);
    find(0x100000ff, &start, &stop);
    CHECK_EQ(start, 0x10000000);
    CHECK_EQ(stop, 0x10000100);
    event(PEET_EV_free, 0x400040, 0x10000000, 0, 0);
    CHECK_EQ(name_at(0x10000180), "unknown"); /* and goes with the memory */
    end();
}

static void a_realloc_that_fails_keeps_the_block(void)
{
    begin();
    event(PEET_EV_malloc, 0x400020, 0x10000000, 64, 0);
    event(PEET_EV_realloc, 0x400030, 0, 0x10000000, 1000);
    CHECK_EQ(kind_at(0x10000000), OBJECT_HEAP);
    event(PEET_EV_realloc, 0x400030, 0, 0x10000000, 0);
    CHECK_EQ(kind_at(0x10000000), OBJECT_UNKNOWN);
    end();
}

static void names_are_unique_and_blocks_of_a_site_are_one_object(void)
{
    begin();
    for (uint64_t i = 0; i < 10; i++)
        event(PEET_EV_malloc, 0x400020 + i % 2 * 16, 0x10000000 + 4096 * i, 100, 0);
    uint64_t start, stop;
    uint32_t a = find(0x10000000, &start, &stop), b = find(0x10001000, &start, &stop);
    CHECK(a != b);
    CHECK_EQ(find(0x10002000, &start, &stop), a);
    CHECK_EQ(objects_info(objects, a)->blocks, 5);
    CHECK_EQ(objects_info(objects, a)->bytes, 500);
    CHECK(strcmp(objects_info(objects, a)->name, objects_info(objects, b)->name) != 0);
    CHECK(strstr(objects_info(objects, a)->name, "malloc in solve") != NULL);
    end();
}

/* Before the first reference to a block of a library, the library's debug file is not opened for it. */
static void what_a_library_allocates_is_an_object_when_somebody_refers_to_it(void)
{
    uint64_t start, stop;

    begin();
    for (uint64_t i = 0; i < 6; i++)
        event(PEET_EV_malloc, 0x800020 + i % 2 * 16, 0x10000000 + 4096 * i, 100, 0);
    CHECK_EQ(objects_count(objects), 0);
    CHECK(!symbols_is_loaded(where, 1, 0x800010));
    uint32_t a = find(0x10002000, &start, &stop);
    CHECK_EQ(start, 0x10002000);
    CHECK_EQ(stop, 0x10002068);
    CHECK(symbols_is_loaded(where, 1, 0x800010));
    CHECK(strstr(objects_info(objects, a)->name, "malloc in buffer") != NULL);
    CHECK_EQ(objects_info(objects, a)->blocks, 3);
    CHECK_EQ(objects_count(objects), 2); /* and the other site has its blocks, too */
    CHECK(find(0x10001000, &start, &stop) != a);
    event(PEET_EV_malloc, 0x800020, 0x20000000, 100, 0);
    CHECK_EQ(find(0x20000000, &start, &stop), a);
    CHECK_EQ(objects_info(objects, a)->blocks, 4);
    CHECK_EQ(objects_info(objects, a)->bytes, 400);
    end();
}

static void stacks_of_threads_are_mapped_without_a_call(void)
{
    uint64_t start, stop;

    begin();
    uint64_t before = objects_changes(objects)->count;
    event(PEET_EV_map, 0, 0x7f0000000000, 0x800000, 6);
    CHECK(objects_changes(objects)->count != before);
    uint32_t n = objects_find(objects, 1, 2, 0x7f0000400000, 0x400110, &start, &stop);
    CHECK_EQ(objects_info(objects, n)->kind, OBJECT_STACK);
    CHECK_EQ(strncmp(objects_info(objects, n)->name, "stack of ", 9), 0);
    event(PEET_EV_unmap, 0x400010, 0x7f0000000000, 0x800000, 0);
    CHECK_EQ(kind_at(0x7f0000400000), OBJECT_UNKNOWN);
    end();
}

int main(void)
{
    make_trace();
    RUN(blocks_are_found_as_in_a_list_of_all);
    RUN(what_has_no_blocks_is_looked_up_once);
    RUN(what_is_remembered_holds_until_it_changes);
    RUN(spans_are_those_of_the_last_who_came);
    RUN(bytes_have_the_names_of_what_is_there);
    RUN(what_the_program_named_counts_before_all_else);
    RUN(a_realloc_that_fails_keeps_the_block);
    RUN(names_are_unique_and_blocks_of_a_site_are_one_object);
    RUN(what_a_library_allocates_is_an_object_when_somebody_refers_to_it);
    RUN(stacks_of_threads_are_mapped_without_a_call);
    peet_trace_free(trace);
    unlink(path);
    return check_done();
}
