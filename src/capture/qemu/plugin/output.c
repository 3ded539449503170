/* SPDX-License-Identifier: MIT */
/* Buffers and the writer thread. A thread fills its buffer on any processor. Full buffers go to one writer thread, in order, and each becomes a
 * chunk. A chunk begins with the frames of its pages; a change of a page's frame is recorded before the block that accesses it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/version.h"
#include "capture/qemu/plugin/plugin.h"

/* Numbers of buffers that wait for the writer and that are kept for reuse (new ones cost page faults); words of reserve in a buffer. */
enum { WAITING_MAX = 48, FREE_MAX = 48, SLACK = 256 };

static struct {
    struct peet_writer *writer;
    struct peet_part *part;
    struct peet_err err; /* the first error; nothing is written after it */
    struct trace_item event[PEET_EVENT_KINDS];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work, space;
    struct buffer *first, **last, *spare;
    unsigned waiting, spares;
    struct peet_totals totals; /* of the whole trace; set when the writer is closed */
    bool is_over;
} output = { .lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .space = PTHREAD_COND_INITIALIZER };

const struct trace_item *event_item(uint32_t kind)
{
    return &output.event[kind];
}

const struct trace_item *event_item_at(uint32_t kind, uint64_t call_site)
{
    static struct map other_items = { .value_size = sizeof(struct trace_item *) };
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&lock);
    struct trace_item **place = map_put(&other_items, call_site, kind), *s = place ? *place : NULL;
    if (place && !s) {
        s = *place = mem_alloc(1, sizeof *s);
        s->kind = kind;
        s->call_site = call_site;
        s->slots = (uint16_t)peet_event_arity(kind);
    }
    pthread_mutex_unlock(&lock);
    return s ? s : event_item(kind);
}

/* ---- buffers ---- */

static struct buffer *buffer_new(struct guest_thread *t, size_t room)
{
    struct buffer *b = NULL;

    pthread_mutex_lock(&output.lock);
    if (room == BUFFER_WORDS && output.spare) {
        b = output.spare;
        output.spare = b->next;
        output.spares--;
    }
    pthread_mutex_unlock(&output.lock);
    if (!b) {
        b = mem_alloc(1, sizeof *b);
        b->words = mem_alloc(room + SLACK, sizeof *b->words);
        b->room = room;
        b->pages.value_size = sizeof(struct frames);
    }
    b->next = NULL;
    b->thread = t;
    b->count = 0;
    b->is_last = false;
    return b;
}

static void buffer_free(struct buffer *b)
{
    pthread_mutex_lock(&output.lock);
    bool keep = b->room == BUFFER_WORDS && output.spares < FREE_MAX;
    if (keep) {
        map_clear(&b->pages);
        b->next = output.spare;
        output.spare = b;
        output.spares++;
    }
    pthread_mutex_unlock(&output.lock);
    if (!keep) {
        map_release(&b->pages);
        free(b->words);
        free(b);
    }
}

static void hand_over(struct buffer *b)
{
    b->ranges = maps_ranges(b->thread->process);
    pthread_mutex_lock(&output.lock);
    while (output.waiting >= WAITING_MAX && !output.is_over)
        pthread_cond_wait(&output.space, &output.lock);
    *output.last = b;
    output.last = &b->next;
    output.waiting++;
    pthread_cond_signal(&output.work);
    pthread_mutex_unlock(&output.lock);
}

static void forget_pages(struct vcpu *v)
{
    v->epoch += UINT64_C(1) << 40;
    if (v->epoch >> 40 == 0)
        memset(v->tag, 0, PAGE_TAGS * sizeof *v->tag);
}

static void use_buffer(struct vcpu *v, struct buffer *b)
{
    v->thread->buffer = b;
    v->at = b->words + b->count;
    v->limit = b->words + b->room;
    forget_pages(v);
}

void buffer_attach(struct vcpu *v)
{
    if (!v->thread->buffer)
        v->thread->buffer = buffer_new(v->thread, BUFFER_FIRST);
    use_buffer(v, v->thread->buffer);
}

void buffer_detach(struct vcpu *v)
{
    struct buffer *b = v->thread->buffer;

    b->count = (size_t)(v->at - b->words);
    v->at = v->start = v->limit = NULL;
}

static void copy_page(struct buffer *to, const struct buffer *from, uint64_t addr)
{
    const struct frames *known = map_find(&from->pages, addr >> 12, 0);
    struct frames *place = known ? map_put(&to->pages, addr >> 12, 0) : NULL;

    if (place)
        *place = (struct frames){ known->now, known->now };
}

/* Moves the open block's words and the frames of its pages to the new buffer. */
void buffer_next(struct vcpu *v)
{
    struct buffer *old = v->thread->buffer, *b = buffer_new(v->thread, BUFFER_WORDS);
    size_t moved = v->open && !v->logs ? (size_t)(v->at - v->start) : 0;

    for (size_t i = 1; i < moved; i++)
        copy_page(b, old, v->start[i]);
    for (unsigned i = 0; v->open && v->logs && i < v->journal->count; i++)
        copy_page(b, old, v->journal->access[i].addr);
    memcpy(b->words, v->at - moved, moved * sizeof *b->words);
    old->count = (size_t)(v->at - old->words) - moved;
    use_buffer(v, b);
    v->at += moved;
    v->start = b->words;
    hand_over(old);
}

void buffer_pass(struct guest_thread *t)
{
    if (t->buffer)
        hand_over(t->buffer);
    t->buffer = NULL;
}

void buffer_finish(struct guest_thread *t)
{
    if (!t->buffer)
        t->buffer = buffer_new(t, BUFFER_FIRST);
    t->buffer->is_last = true;
    hand_over(t->buffer);
    t->buffer = NULL;
}

static void note_frame(struct vcpu *v, uint64_t page, uint64_t frame)
{
    struct frames *known = map_put(&v->thread->buffer->pages, page, 0);

    if (!known)
        return;
    bool has_moved = known->now != 0 && known->now != frame + 1;
    known->now = frame + 1;
    if (known->first == 0)
        known->first = frame + 1;
    struct target *target = v->thread->target;
    if (target && target->window.start >> 12 == page && target->frame == TARGET_NO_FRAME)
        target->frame = frame << 12 | (target->window.start & 4095);
    if (has_moved)
        vcpu_put_before(v, event_item(PEET_EV_page), (const uint64_t[]){ page, frame }, 2);
}

void buffer_page(struct vcpu *v, uint32_t info, uint64_t addr)
{
    uint64_t page = addr >> 12;
    struct qemu_plugin_hwaddr *at = qemu_plugin_get_hwaddr(info, addr);

    if (v->open && !v->open->is_kernel && !qemu_plugin_mem_is_store(info))
        v->rest->info = info;
    if (at)
        note_frame(v, page, qemu_plugin_hwaddr_phys_addr(at) >> 12);
    v->tag[page % PAGE_TAGS] = page ^ v->epoch;
    const struct buffer *b = v->thread->buffer;
    if ((size_t)(v->at - b->words) + 3 * b->pages.count > BUFFER_LIMIT)
        v->limit = v->at; /* the buffer ends with this block */
}

/* ---- writing ---- */

static int resolve_item(void *context, uint64_t name, uint32_t *ret_item, struct peet_err *err)
{
    struct trace_item *s = (struct trace_item *)(uintptr_t)name;
    int r = s->item    ? 0
            : s->block ? item_define(s, context, err)
                       : peet_writer_event(context, s->kind, s->call_site, &s->item, err);

    *ret_item = s->item;
    return r;
}

static int stream_put_event(struct peet_stream *stream, uint32_t kind, const uint64_t *args, struct peet_err *err)
{
    uint32_t item;
    int r = resolve_item(output.writer, (uint64_t)(uintptr_t)event_item(kind), &item, err);

    return r < 0 ? r : peet_stream_put(stream, item, args, err);
}

static int open_stream(struct guest_thread *t, struct peet_err *err)
{
    struct guest_process *p = t->process;
    char name[64];
    int r = 0;

    if (!p->is_recorded) {
        struct peet_process definition = { p->id, p->id, p->program, p->command };
        r = peet_writer_process(output.writer, &definition, err);
        p->is_recorded = true;
    }
    int unknown = PARENT_UNKNOWN;
    atomic_compare_exchange_strong(&t->family.parentage, &unknown, PARENT_NONE);
    bool has_parent = atomic_load(&t->family.parentage) == PARENT_KNOWN;
    snprintf(name, sizeof name, "tid %" PRIu64, t->target ? t->target->tid : 0);
    struct peet_thread definition = { t->id, p->id, has_parent ? t->family.parent : t->id,
                                      has_parent ? t->family.ordinal : 0, t->target ? name : "not marked" };
    if (r < 0 || (r = peet_stream_open(output.writer, &definition, &t->stream, err)) < 0 || !has_parent)
        return r;
    return stream_put_event(t->stream, PEET_EV_thread_start, (const uint64_t[]){ t->family.parent }, err);
}

static int put_pages(const struct buffer *b, const struct peet_names *names, struct peet_err *err)
{
    const struct frames *frames;
    uint64_t page;
    uint32_t tag;
    int r = 0;

    for (size_t at = 0; r == 0 && (frames = map_next(&b->pages, &at, &page, &tag)) != NULL;) {
        uint64_t words[3] = { (uint64_t)(uintptr_t)event_item(PEET_EV_page), page, frames->first - 1 };
        r = peet_part_put_named(output.part, words, 3, names, err);
    }
    return r;
}

static int write_buffer(struct buffer *b, struct peet_err *err)
{
    static const uint64_t registers[PEET_REGISTERS];
    struct peet_names names = { .item = resolve_item, .context = output.writer };
    struct guest_thread *t = b->thread;
    int r = t->stream ? 0 : open_stream(t, err);

    if (r < 0 || (r = maps_write(t->process, b->ranges, output.writer, err)) < 0)
        return r;
    peet_part_begin(output.part, t->stream, registers);
    if (b->count
        && ((r = put_pages(b, &names, err)) < 0
            || (r = peet_part_put_named(output.part, b->words, b->count, &names, err)) < 0))
        return r;
    if ((r = peet_part_commit(output.part, err)) < 0 || !b->is_last)
        return r;
    uint64_t end[2] = { t->end.how, t->end.code };
    if ((r = stream_put_event(t->stream, PEET_EV_thread_end, end, err)) < 0)
        return r;
    r = peet_stream_close(t->stream, err);
    t->stream = NULL;
    return r;
}

static void *output_write_all(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&output.lock);
    for (unsigned n = 1;; n++) {
        while (!output.first && !output.is_over)
            pthread_cond_wait(&output.work, &output.lock);
        struct buffer *b = output.first;
        if (!b)
            break;
        output.first = b->next;
        if (!output.first)
            output.last = &output.first;
        output.waiting--;
        pthread_cond_broadcast(&output.space);
        pthread_mutex_unlock(&output.lock);
        if (output.err.code == 0)
            write_buffer(b, &output.err);
        buffer_free(b);
        if (n % 256 == 0)
            report_write(false);
        pthread_mutex_lock(&output.lock);
    }
    pthread_mutex_unlock(&output.lock);
    return NULL;
}

/* ---- beginning and end ---- */

int output_open(struct peet_err *err)
{
    char applications[24];
    int r;

    snprintf(applications, sizeof applications, "%" PRIu64, plugin.settings.applications);

    output.last = &output.first;
    if ((r = peet_writer_open(plugin.settings.out, NULL, &output.writer, err)) < 0)
        return r;
    if ((r = peet_writer_meta(output.writer, "producer", "peet " PEET_VERSION " (QEMU)", err)) < 0
        || (r = peet_writer_meta(output.writer, "machine", plugin.isa->name, err)) < 0
        || (r = peet_writer_meta(output.writer, "level", "memory", err)) < 0
        || (r = peet_writer_meta(output.writer, "memory", "partly", err)) < 0
        || (plugin.settings.applications
            && (r = peet_writer_meta(output.writer, "applications", applications, err)) < 0)
        || (r = peet_part_new(output.writer, &output.part, err)) < 0)
        return r;
    for (uint32_t kind = 0; kind < PEET_EVENT_KINDS; kind++) {
        output.event[kind].kind = kind;
        output.event[kind].slots = (uint16_t)peet_event_arity(kind);
    }
    if (pthread_create(&output.thread, NULL, output_write_all, NULL) != 0)
        return err_set(err, PEET_ERR_MEMORY, "no thread to write the trace; see ulimit -u");
    return 0;
}

/* Puts what streams of threads without an end still hold into the file, so that totals are those of the whole trace. */
static void output_flush(void)
{
    for (size_t i = 0; i < plugin.threads && output.err.code == 0; i++)
        if (plugin.thread[i]->stream)
            peet_stream_flush(plugin.thread[i]->stream, &output.err);
}

void output_close(void)
{
    struct peet_err err = { 0 };

    pthread_mutex_lock(&output.lock);
    output.is_over = true;
    pthread_cond_broadcast(&output.work);
    pthread_cond_broadcast(&output.space);
    pthread_mutex_unlock(&output.lock);
    pthread_join(output.thread, NULL);
    peet_part_free(output.part);
    output_flush();
    peet_writer_totals(output.writer, &output.totals);
    if (peet_writer_close(output.writer, &err) < 0 && output.err.code == 0)
        output.err = err;
    output.writer = NULL;
}

void output_totals(struct peet_totals *ret)
{
    *ret = output.totals;
    if (output.writer)
        peet_writer_totals(output.writer, ret);
}

const char *output_error(void)
{
    return output.err.code ? output.err.text : NULL;
}
