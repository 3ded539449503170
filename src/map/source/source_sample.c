/* SPDX-License-Identifier: MIT */
/* Windows of a thread's references.
 *
 * Windows are counted in the thread's own references, so that they do not depend on the machine. A window opens and closes only where a block
 * begins, since all references of a block belong to it. So a window may be up to a block longer or shorter than configured; windows do not drift.
 * Instructions and references between windows are summed up, and make a gap event before the next record that the consumer gets.
 *
 * An inner source that can leave references out is asked to do so up to the next window. It reports how many it has left out. If it
 * overshoots the begin of a window, the next request is smaller. */
#include "map/source/source_sample.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "map/source/sampler.h"

enum { WINDOWS = 250 }; /* growing windows: references before the period, divided by the window's length */

bool sample_was_touched(const struct source *source, uint32_t thread, uint64_t line)
{
    const struct sampler *s = (const struct sampler *)(const void *)source;

    return s->has_left_out || touched_has(&s->touched, s->source.thread[thread].process, line);
}

/* ---- windows ---- */

/* A random window may reach into the next period, and meet the next window. If windows ended with their periods, the ends of periods would be
 * observed less often than their middles. */
static void sample_find_window(const struct sampler *s, struct sampled_thread *l)
{
    const struct sample_config *c = &s->config;

    l->window.length = c->length;
    if (c->most > c->length) {
        uint64_t wanted = l->window.begin / WINDOWS;
        l->window.length = wanted < c->length ? c->length : wanted < c->most ? wanted : c->most;
    }
    l->window.every = c->length ? c->every / c->length * l->window.length : 0;
    if (l->window.length == c->length)
        l->window.every = c->every; /* which need not be a multiple */
    uint64_t offset = (l->window.every - l->window.length)
                      / 2; /* at the beginning, what a program does first would count for the whole period */
    if (c->is_random && l->window.every > l->window.length) {
        l->window.random += 0x9e3779b97f4a7c15;
        offset = set_sample_hash(l->window.random) % l->window.every;
    }
    l->window.from = l->window.begin + offset;
    l->window.end = l->window.from + l->window.length;
}

/* The state of a thread; made at its first use. */
static struct sampled_thread *sampled_thread_of(struct sampler *s, uint32_t thread)
{
    struct sampled_thread *l = s->thread[thread];

    if (l)
        return l;
    l = s->thread[thread] = mem_alloc(1, sizeof *l);
    l->window.random = set_sample_hash(s->config.seed + 1) ^ thread;
    sample_find_window(s, l);
    l->is_on = l->window.from == 0;
    l->counts.windows = l->is_on;
    return l;
}

static bool sampler_has_windows(const struct sampler *s)
{
    return s->config.every != s->config.length; /* equal: one window that never ends; or both are 0 */
}

/* Advances to the window that is open or comes next. */
static void sample_find_next_window(const struct sampler *s, struct sampled_thread *l)
{
    while (l->now >= l->window.end) {
        l->window.period++;
        l->window.begin += l->window.every;
        sample_find_window(s, l);
    }
}

/* A block begins: opens or closes a window. */
static void sample_enter_block(const struct sampler *s, struct sampled_thread *l)
{
    bool was_on = l->is_on;

    if (!sampler_has_windows(s))
        return;
    sample_find_next_window(s, l);
    l->is_on = l->now >= l->window.from;
    l->counts.windows += l->is_on && !was_on; /* two that touch each other are one */
}

/* ---- reading ---- */

/* Sets l->part to the rest of the batch, up to its next strided loop: 1. If there is nothing before that loop, it is to be expanded
 * next: 0. At the end of the batch: 0. */
static int sample_refill_from_batch(struct sampled_thread *l)
{
    size_t from = l->in_raw;

    while (l->in_raw < l->raw.count && l->raw.records[l->in_raw].kind != PEET_REPEAT)
        l->in_raw++;
    l->part = l->raw;
    l->part.records += from;
    l->part.count = l->in_raw - from;
    l->at = 0;
    if (l->part.count > 0)
        return 1;
    if (l->in_raw < l->raw.count) {
        l->repeat = &l->raw.repeats[l->raw.records[l->in_raw++].id];
        l->iteration = 0;
    }
    return 0;
}

/* Allows the inner source to leave out references up to the next window, less its expected overshoot, which decays with each window. */
static void sample_allow_skip(struct sampler *s, uint32_t thread, struct sampled_thread *l)
{
    if (!s->inner->kind->skip || !sampler_has_windows(s))
        return;
    sample_find_next_window(s, l);
    if (l->window.period != l->skip.period)
        l->skip.overshoot -= l->skip.overshoot / 16;
    l->skip.period = l->window.period;
    uint64_t left = l->window.from > l->now + l->skip.overshoot ? l->window.from - l->now - l->skip.overshoot : 0;
    s->inner->kind->skip(s->inner, thread, left >= LEAST_SKIP ? left : 0, s->config.line_bytes);
}

static bool sample_is_gap(const struct sampler *s, const struct peet_event *e)
{
    return s->inner->kind->skip && e->kind == PEET_EV_gap;
}

/* The inner source has left out `late` references of a window. It checks its budget only between records, not inside a summarised loop
 * of any length. The next loop may be as long: it is better read from its beginning, which costs little, and skipped up to the window. */
static void sample_note_overshoot(struct sampled_thread *l, uint64_t late)
{
    uint64_t every = l->window.every, length = l->window.length, whole = l->skip.overshoot + late, rest = late % every;

    l->counts.missed += late / every * length + (rest < length ? rest : length);
    l->counts.late = l->counts.late < late ? late : l->counts.late;
    l->skip.overshoot = whole < every / 2 ? whole + whole / 2 : every; /* too long: the next windows are read in full */
}

/* Accounts for a gap event of the inner source; false: the event is another one. */
static bool sample_take_gap(struct sampler *s, uint32_t thread, struct sampled_thread *l, const struct peet_event *e)
{
    if (!sample_is_gap(s, e))
        return false;
    if (s->passed)
        s->passed(s->user, thread, NULL);
    if (l->now < l->window.from && l->now + e->arg[1] > l->window.from)
        sample_note_overshoot(l, l->now + e->arg[1] - l->window.from);
    l->now += e->arg[1];
    l->skip.left_out += e->arg[1];
    s->has_left_out = true;
    return true;
}

/* Reads the next records into l->part: 1, or 0 at the end. */
static int sample_refill(struct sampler *s, uint32_t thread, struct sampled_thread *l, uint64_t *reply,
                         struct peet_err *err)
{
    for (;;) {
        int r = sample_refill_from_repeat(s, thread, l, err);
        if (r != 0)
            return r;
        if (l->in_raw < l->raw.count) {
            if (sample_refill_from_batch(l) > 0)
                return 1;
            continue;
        }
        sample_allow_skip(s, thread, l);
        r = source_next(s->inner, thread, *reply, &l->raw, err);
        *reply = 0;
        s->source.thread = s->inner->thread;
        s->source.threads = s->inner->threads;
        l->in_raw = 0;
        if (r <= 0) {
            l->raw.count = l->part.count = l->at = 0;
            return r;
        }
    }
}

/* ---- between windows ---- */

/* Leaves out records up to the next window or event that passes: l->at is there. If l->part has none: l->at is its count. */
static int sample_pass_over(struct sampler *s, uint32_t thread, struct sampled_thread *l, struct peet_err *err)
{
    uint32_t process = s->source.thread[thread].process;

    for (; l->at < l->part.count; l->at++) {
        const struct peet_record *r = &l->part.records[l->at];
        int e = 0;
        if (r->kind == PEET_BLOCK) {
            sample_enter_block(s, l);
            if (l->is_on)
                return 0;
            l->gap.instructions += r->size;
            if (s->passed)
                s->passed(s->user, thread, r);
        } else if (r->kind == PEET_EVENT) {
            struct sample_range range[2];
            const struct peet_event *event = &l->part.events[r->id];
            unsigned ranges = sample_ranges(event, range);
            bool is_gap = ranges == 0 && sample_take_gap(s, thread, l, event);
            if (ranges == 0 && !is_gap)
                return 0;
            l->gap.references += is_gap ? event->arg[1] : 0;
            for (unsigned i = 0; i < ranges && e == 0; i++) {
                uint64_t lines = sample_lines(s, &range[i]);
                l->gap.references += lines;
                l->now += lines;
                e = lines ? sample_touch(s, process, range[i].addr, range[i].size, err) : 0;
            }
        } else {
            l->gap.references++;
            l->now++;
            e = sample_touch(s, process, r->addr, r->size, err);
        }
        l->gap.is_pending = true;
        if (e < 0)
            return e;
    }
    return 0;
}

static int sample_make_gap(struct sampled_thread *l, struct peet_batch *ret)
{
    l->gap.event =
        (struct peet_event){ .kind = PEET_EV_gap, .args = 2, .arg = { l->gap.instructions, l->gap.references } };
    l->gap.record = (struct peet_record){ .addr = l->gap.instructions, .kind = PEET_EVENT };
    *ret = (struct peet_batch){ .count = 1,
                                .records = &l->gap.record,
                                .events = &l->gap.event,
                                .event_count = 1,
                                .thread = l->raw.thread,
                                .position = l->raw.position };
    l->counts.gap_instructions += l->gap.instructions;
    l->counts.between += l->gap.references;
    l->gap.instructions = l->gap.references = 0;
    l->gap.is_pending = false;
    return 1;
}

/* ---- in a window ---- */

/* The number of records from l->at on that are in the window, or are events that pass. */
static size_t sample_find_end(struct sampler *s, struct sampled_thread *l)
{
    size_t i = l->at;

    for (; i < l->part.count; i++) {
        const struct peet_record *r = &l->part.records[i];
        if (r->kind == PEET_BLOCK) {
            sample_enter_block(s, l);
            if (!l->is_on)
                break;
            l->counts.instructions += r->size;
        } else {
            const struct peet_event *e = r->kind == PEET_EVENT ? &l->part.events[r->id] : NULL;
            uint64_t n = e ? sample_range_references(s, e) : 1;
            if (e && sample_is_gap(s, e))
                break;
            l->counts.observed += n;
            l->now += n;
        }
    }
    return i - l->at;
}

uint64_t sample_window_length(const struct source *source, uint32_t thread)
{
    const struct sampled_thread *l = ((const struct sampler *)(const void *)source)->thread[thread];

    return l ? l->window.length : 0;
}

bool sample_has_gaps(const struct source *source)
{
    return ((const struct sampler *)(const void *)source)->has_left_out;
}

bool sample_has_set(const struct source *source, uint64_t set)
{
    const struct sampler *s = (const struct sampler *)(const void *)source;

    return !set_sample_is_partial(&s->set_sample) || set_sample_has(&s->set_sample, set);
}

/* Returns the event at l->at, or the records from there to the end of the window or of the part. */
static int sample_show(struct sampler *s, struct sampled_thread *l, struct peet_batch *ret, struct peet_err *err)
{
    size_t count = 1;

    if (l->is_on || l->part.records[l->at].kind == PEET_BLOCK)
        count = sample_find_end(s, l);
    if (set_sample_is_partial(&s->set_sample)) {
        int r = sample_copy(s, l, count, ret, err);
        if (r < 0)
            return r;
    } else {
        *ret = l->part;
        ret->records += l->at;
        ret->count = count;
    }
    l->at += count;
    return ret->count > 0;
}

static int sampler_next(struct source *source, uint32_t thread, uint64_t reply, struct peet_batch *ret,
                        struct peet_err *err)
{
    struct sampler *s = (struct sampler *)(void *)source;
    struct sampled_thread *l = sampled_thread_of(s, thread);
    int r;

    if (l->has_ended) { /* the last gap was returned before this call */
        l->has_ended = false;
        return 0;
    }
    for (;;) {
        if (l->at == l->part.count) {
            r = sample_refill(s, thread, l, &reply, err);
            l->has_ended = r == 0 && l->gap.is_pending;
            if (l->has_ended)
                return sample_make_gap(l, ret);
            s->source.has_ended = s->inner->has_ended;
            if (r <= 0)
                return r;
        }
        const struct peet_record *first = &l->part.records[l->at];
        if (first->kind == PEET_EVENT && sample_is_gap(s, &l->part.events[first->id]))
            l->is_on = false; /* the window has ended in it */
        if (!l->is_on) {
            r = sample_pass_over(s, thread, l, err);
            if (r < 0)
                return r;
            if (l->at == l->part.count)
                continue;
            if (l->gap.is_pending)
                return sample_make_gap(l, ret);
        }
        r = sample_show(s, l, ret, err);
        if (r != 0)
            return r;
    }
}

void sample_set_gap_observer(struct source *source,
                             void (*passed)(void *user, uint32_t thread, const struct peet_record *block), void *user)
{
    struct sampler *s = (struct sampler *)(void *)source;

    s->passed = passed;
    s->user = user;
}

/* ---- life ---- */

static void sampler_free(struct source *source)
{
    struct sampler *s = (struct sampler *)(void *)source;

    for (uint32_t i = 0; s->thread && i < s->inner->threads; i++) {
        if (!s->thread[i])
            continue;
        free(s->thread[i]->buffer.expanded);
        free(s->thread[i]->buffer.copy);
        free(s->thread[i]->buffer.event);
        free(s->thread[i]);
    }
    touched_release(&s->touched);
    set_sample_release(&s->set_sample);
    free(s->thread);
    source_free(s->inner);
    free(s);
}

/* ---- words ---- */

static void sampler_take_words(struct sampler *s, struct sampled_thread *l, struct source_words *w)
{
    l->counts.observed += w->used;
    l->counts.between += w->passed;
    l->skip.left_out += w->passed;
    l->now += w->used + w->passed;
    s->has_left_out |= w->passed > 0;
    w->used = w->passed = 0;
}

static void sampler_advance(struct source_words *w)
{
    struct sampler *s = (struct sampler *)(void *)w->source;
    struct sampled_thread *l = sampled_thread_of(s, w->thread);

    sampler_take_words(s, l, w);
    sample_enter_block(s, l);
    w->is_on = l->is_on;
    w->left = l->is_on ? l->window.end - l->now : l->window.from - l->now;
}

static int sampler_words(struct source *source, uint32_t thread, uint64_t reply, struct source_words *ret,
                         struct peet_err *err)
{
    struct sampler *s = (struct sampler *)(void *)source;
    struct sampled_thread *l = sampled_thread_of(s, thread);

    l->has_words = true;
    sampler_take_words(s, l, ret);
    sample_allow_skip(s, thread, l);
    int r = source_words(s->inner, thread, reply, ret, err);
    s->source.thread = s->inner->thread;
    s->source.threads = s->inner->threads;
    s->source.has_ended = s->inner->has_ended;
    ret->advance = sampler_advance;
    ret->source = source;
    ret->thread = thread;
    sampler_advance(ret);
    return r;
}

void sample_add_gap(struct source *source, uint32_t thread, uint64_t references)
{
    struct sampler *s = (struct sampler *)(void *)source;
    struct sampled_thread *l = sampled_thread_of(s, thread);

    if (!l->has_words) /* then sampler_next has accounted for it */
        return;
    l->counts.between += references;
    sample_take_gap(s, thread, l, &(struct peet_event){ .kind = PEET_EV_gap, .arg = { 0, references } });
}

static unsigned sampler_calls(struct source *source, uint32_t thread, struct source_calls *ret)
{
    struct sampler *s = (struct sampler *)(void *)source;

    ret->is_whole = false;
    return s->inner->kind->calls ? s->inner->kind->calls(s->inner, thread, ret) : 0;
}

static uint64_t sampler_pointer(struct source *source, uint32_t thread)
{
    return source_pointer(((struct sampler *)(void *)source)->inner, thread);
}

static const struct source_kind SAMPLER = {
    .next = sampler_next, .free = sampler_free, .calls = sampler_calls, .pointer = sampler_pointer
};
static const struct source_kind WORD_SAMPLER = { .next = sampler_next,
                                                 .free = sampler_free,
                                                 .words = sampler_words,
                                                 .calls = sampler_calls,
                                                 .pointer = sampler_pointer };

static int sample_check_config(const struct sample_config *c, struct peet_err *err)
{
    if (c->every > 0 && (c->length == 0 || c->length > c->every))
        return err_set(err, PEET_ERR_USAGE,
                       "windows of %" PRIu64 " references do not fit in periods of %" PRIu64
                       "; at least 1, and at most the period was expected",
                       c->length, c->every);
    if (c->most && (c->every == 0 || c->every % c->length || c->most < c->length))
        return err_set(err, PEET_ERR_USAGE,
                       "windows of %" PRIu64 " references in %" PRIu64 " that grow to %" PRIu64
                       "; a part of all references was expected, and longer ones",
                       c->length, c->every, c->most);
    if (c->line_bytes == 0 || (c->line_bytes & (c->line_bytes - 1)))
        return err_set(err, PEET_ERR_USAGE, "lines of %" PRIu32 " bytes; a power of two was expected", c->line_bytes);
    if (c->sets & (c->sets - 1))
        return err_set(err, PEET_ERR_USAGE, "%" PRIu64 " sets cannot be sampled; a power of two was expected", c->sets);
    if (c->sets > 0 && (c->one_in == 0 || c->one_in > c->sets))
        return err_set(err, PEET_ERR_USAGE,
                       "one in %" PRIu32 " sets cannot be chosen of %" PRIu64 "; between 1 and %" PRIu64
                       " was expected",
                       c->one_in, c->sets, c->sets);
    return 0;
}

bool source_samples_sets(const struct source *s)
{
    bool is_sampler = s->kind == &SAMPLER || s->kind == &WORD_SAMPLER;

    return is_sampler && ((const struct sampler *)(const void *)s)->set_sample.bits;
}

int source_take_sample(struct source *inner, const struct sample_config *config, struct source **ret,
                       struct peet_err *err)
{
    int r = sample_check_config(config, err);
    struct sampler *s = r < 0 ? NULL : calloc(1, sizeof *s);

    if (!s) {
        source_free(inner);
        return r < 0 ? r : sample_no_memory(err);
    }
    s->inner = inner;
    s->config = *config;
    if (config->every == 0)
        s->config.length = 0;
    s->line_bits = (unsigned)__builtin_ctz(config->line_bytes);
    touched_init(&s->touched);
    s->thread = calloc(inner->max_threads + 1, sizeof(struct sampled_thread *));
    s->source = (struct source){ &SAMPLER,           inner->trace,   inner->thread, inner->threads,
                                 inner->max_threads, inner->is_live, false,         false };
    if (!s->thread
        || (config->sets > 0 && config->one_in > 1
            && set_sample_init(&s->set_sample, config->sets, config->one_in, config->seed, s->line_bits) < 0)) {
        sampler_free(&s->source);
        return sample_no_memory(err);
    }
    if (inner->kind->skip && inner->kind->words && sampler_has_windows(s) && !set_sample_is_partial(&s->set_sample))
        s->source.kind = &WORD_SAMPLER;
    *ret = &s->source;
    return 0;
}

/* Instructions of references that were left out: as many per reference as in windows. */
static uint64_t sample_estimate_instructions(const struct sample_counts *c, uint64_t references)
{
    return c->observed ? (uint64_t)((double)c->instructions / (double)c->observed * (double)references) : 0;
}

static void sample_add_counts(struct sample_counts *a, const struct sample_counts *b)
{
    a->windows += b->windows;
    a->observed += b->observed;
    a->instructions += b->instructions;
    a->between += b->between;
    a->gap_instructions += b->gap_instructions;
    a->other_sets += b->other_sets;
    a->missed += b->missed;
    a->late = a->late < b->late ? b->late : a->late;
}

struct sample_counts sample_counts(const struct source *source, uint32_t thread)
{
    const struct sampler *s = (const struct sampler *)(const void *)source;
    struct sample_counts sum = { .sets = s->config.sets };
    uint64_t rest = 0; /* references left out of threads without a window */

    sum.sampled_sets = set_sample_is_partial(&s->set_sample) ? s->set_sample.count : s->config.sets;
    for (uint32_t i = 0; i < s->source.threads; i++)
        if ((thread == SAMPLE_ALL || thread == i) && s->thread[i]) {
            const struct sampled_thread *l = s->thread[i];
            sample_add_counts(&sum, &l->counts);
            sum.gap_instructions += sample_estimate_instructions(&l->counts, l->skip.left_out);
            rest += l->counts.observed ? 0 : l->skip.left_out;
        }
    sum.gap_instructions += sample_estimate_instructions(&sum, rest);
    return sum;
}
