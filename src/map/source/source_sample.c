/* SPDX-License-Identifier: MIT */
/* Windows of a thread's references, and sets of a cache.
 *
 * A thread's windows are counted in its own references, so that they do not depend on the machine. Whether a window is open
 * is decided where a block begins, since a block without some of its references would be another block; so a window is as much as
 * a block longer or shorter than was asked for, and windows do not drift for that. Instructions and references between windows are summed
 * up, and told as a gap before the next thing that the consumer sees.
 *
 * A source that can leave references out is told how many there are to the next window. It says how many they were, so that windows do not drift
 * either, but begin as much late as it does; who was late is asked to leave out fewer. Which lines these references touched, and how many instructions
 * there were, it does not know: any line may have been, and instructions are taken for as many by reference as in windows.
 *
 * A reference to several lines is cut to those that are in chosen sets. */
#include "map/source/source_sample.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "map/source/sampler.h"

enum { WINDOWS = 250 }; /* that grow: one is as long as what came before all of its period, by that */

bool sample_was_touched(const struct source *source, uint32_t context, uint64_t line)
{
    const struct sampler *s = (const struct sampler *)(const void *)source;

    return s->has_left_out || touched_has(&s->touched, s->source.thread[context].process, line);
}

/* ---- windows ---- */

/* A random window may reach into the next period, and meet the next one: if all were whole inside of their periods, the ends of periods would be seen
 * less often than their middles. */
static void find_window(const struct sampler *s, struct lane *l)
{
    const struct sample_config *c = &s->config;

    l->length = c->length;
    if (c->most > c->length) {
        uint64_t wanted = l->begin / WINDOWS;
        l->length = wanted < c->length ? c->length : wanted < c->most ? wanted : c->most;
    }
    l->every = c->length ? c->every / c->length * l->length : 0;
    if (l->length == c->length)
        l->every = c->every; /* which need not be a multiple */
    uint64_t offset =
        (l->every - l->length) / 2; /* at the beginning, what a program does first would count for the whole period */
    if (c->is_random && l->every > l->length) {
        l->random += 0x9e3779b97f4a7c15;
        offset = set_sample_hash(l->random) % l->every;
    }
    l->from = l->begin + offset;
    l->end = l->from + l->length;
}

/* What is known of a context; made when it is asked for the first time. */
static struct lane *lane_of(struct sampler *s, uint32_t context)
{
    struct lane *l = s->lane[context];

    if (l)
        return l;
    l = s->lane[context] = mem_alloc(1, sizeof *l);
    l->random = set_sample_hash(s->config.seed + 1) ^ context;
    find_window(s, l);
    l->is_on = l->from == 0;
    l->counts.windows = l->is_on;
    return l;
}

static bool has_windows(const struct sampler *s)
{
    return s->config.every != s->config.length; /* else all is one; or both are 0 */
}

/* To the window that is open or comes next. */
static void find_next_window(const struct sampler *s, struct lane *l)
{
    while (l->now >= l->end) {
        l->period++;
        l->begin += l->every;
        find_window(s, l);
    }
}

/* A block begins: is it in a window? */
static void enter_block(const struct sampler *s, struct lane *l)
{
    bool was_on = l->is_on;

    if (!has_windows(s))
        return;
    find_next_window(s, l);
    l->is_on = l->now >= l->from;
    l->counts.windows += l->is_on && !was_on; /* two that touch each other are one */
}

/* ---- reading ---- */

/* What is left of the batch, up to its next repeat: 1, or 0 if it is at one, which is then to be expanded, or at its end. */
static int refill_from_batch(struct lane *l)
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
        l->trip = 0;
    }
    return 0;
}

/* What comes before the next window, nobody has to show. Who has been late may be so again, but that becomes less likely with each window. */
static void allow_skip(struct sampler *s, uint32_t context, struct lane *l)
{
    if (!s->inner->kind->skip || !has_windows(s))
        return;
    find_next_window(s, l);
    if (l->period != l->allowed)
        l->late -= l->late / 16;
    l->allowed = l->period;
    uint64_t left = l->from > l->now + l->late ? l->from - l->now - l->late : 0;
    s->inner->kind->skip(s->inner, context, left >= LEAST_SKIP ? left : 0, s->config.line_bytes);
}

static bool is_left_out(const struct sampler *s, const struct peet_event *e)
{
    return s->inner->kind->skip && e->kind == PEET_EV_gap;
}

/* A source looks only here and there whether it has left out enough: not in a loop that it tells in a few words, however long it is. If one
 * was so long that it came late, the next one may be, or a little longer: it is better seen from its beginning, which costs little, and passed over to
 * where the window begins. */
static void see_late(struct lane *l, uint64_t late)
{
    uint64_t every = l->every, length = l->length, whole = l->late + late, rest = late % every;

    l->counts.missed += late / every * length + (rest < length ? rest : length);
    l->counts.late = l->counts.late < late ? late : l->counts.late;
    l->late = whole < every / 2 ? whole + whole / 2 : every; /* then nothing is left out for a while */
}

/* The source behind has left something out; false: this is something else. */
static bool take_gap(struct sampler *s, uint32_t context, struct lane *l, const struct peet_event *e)
{
    if (!is_left_out(s, e))
        return false;
    if (s->passed)
        s->passed(s->user, context, NULL);
    if (l->now < l->from && l->now + e->arg[1] > l->from)
        see_late(l, l->now + e->arg[1] - l->from);
    l->now += e->arg[1];
    l->left_out += e->arg[1];
    s->has_left_out = true;
    return true;
}

/* The next records to look at: 1, or 0 at the end. */
static int refill(struct sampler *s, uint32_t context, struct lane *l, uint64_t *reply, struct peet_err *err)
{
    for (;;) {
        int r = sample_refill_from_repeat(s, context, l, err);
        if (r != 0)
            return r;
        if (l->in_raw < l->raw.count) {
            if (refill_from_batch(l) > 0)
                return 1;
            continue;
        }
        allow_skip(s, context, l);
        r = source_next(s->inner, context, *reply, &l->raw, err);
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

/* Leaves out what nobody sees, up to a window or an event that passes, if the part has one: then at is less than its count. */
static int pass_over(struct sampler *s, uint32_t context, struct lane *l, struct peet_err *err)
{
    uint32_t process = s->source.thread[context].process;

    for (; l->at < l->part.count; l->at++) {
        const struct peet_record *r = &l->part.records[l->at];
        int e = 0;
        if (r->kind == PEET_BLOCK) {
            enter_block(s, l);
            if (l->is_on)
                return 0;
            l->gap_instructions += r->size;
            if (s->passed)
                s->passed(s->user, context, r);
        } else if (r->kind == PEET_EVENT) {
            struct sample_range range[2];
            const struct peet_event *event = &l->part.events[r->id];
            unsigned ranges = sample_ranges(event, range);
            bool is_gap = ranges == 0 && take_gap(s, context, l, event);
            if (ranges == 0 && !is_gap)
                return 0;
            l->gap_references += is_gap ? event->arg[1] : 0;
            for (unsigned i = 0; i < ranges && e == 0; i++) {
                uint64_t lines = sample_lines(s, &range[i]);
                l->gap_references += lines;
                l->now += lines;
                e = lines ? sample_touch(s, process, range[i].addr, range[i].size, err) : 0;
            }
        } else {
            l->gap_references++;
            l->now++;
            e = sample_touch(s, process, r->addr, r->size, err);
        }
        l->has_gap = true;
        if (e < 0)
            return e;
    }
    return 0;
}

static int tell_gap(struct lane *l, struct peet_batch *ret)
{
    l->gap_event =
        (struct peet_event){ .kind = PEET_EV_gap, .args = 2, .arg = { l->gap_instructions, l->gap_references } };
    l->gap = (struct peet_record){ .addr = l->gap_instructions, .kind = PEET_EVENT };
    *ret = (struct peet_batch){ .count = 1,
                                .records = &l->gap,
                                .events = &l->gap_event,
                                .event_count = 1,
                                .thread = l->raw.thread,
                                .position = l->raw.position };
    l->counts.gap_instructions += l->gap_instructions;
    l->counts.between += l->gap_references;
    l->gap_instructions = l->gap_references = 0;
    l->has_gap = false;
    return 1;
}

/* ---- in a window ---- */

/* How many records from here on are in the window, or are events that pass. */
static size_t find_end(struct sampler *s, struct lane *l)
{
    size_t i = l->at;

    for (; i < l->part.count; i++) {
        const struct peet_record *r = &l->part.records[i];
        if (r->kind == PEET_BLOCK) {
            enter_block(s, l);
            if (!l->is_on)
                break;
            l->counts.instructions += r->size;
        } else {
            const struct peet_event *e = r->kind == PEET_EVENT ? &l->part.events[r->id] : NULL;
            uint64_t n = e ? sample_range_references(s, e) : 1;
            if (e && is_left_out(s, e))
                break;
            l->counts.observed += n;
            l->now += n;
        }
    }
    return i - l->at;
}

uint64_t sample_window_length(const struct source *source, uint32_t context)
{
    const struct lane *l = ((const struct sampler *)(const void *)source)->lane[context];

    return l ? l->length : 0;
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

/* Events between windows that follow each other, and all of a window that the part has. */
static int show(struct sampler *s, struct lane *l, struct peet_batch *ret, struct peet_err *err)
{
    size_t count = 1;

    if (l->is_on || l->part.records[l->at].kind == PEET_BLOCK)
        count = find_end(s, l);
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

static int next(struct source *source, uint32_t context, uint64_t reply, struct peet_batch *ret, struct peet_err *err)
{
    struct sampler *s = (struct sampler *)(void *)source;
    struct lane *l = lane_of(s, context);
    int r;

    if (l->has_ended) { /* behind its last gap; it may be asked again, for something else */
        l->has_ended = false;
        return 0;
    }
    for (;;) {
        if (l->at == l->part.count) {
            r = refill(s, context, l, &reply, err);
            l->has_ended = r == 0 && l->has_gap;
            if (l->has_ended)
                return tell_gap(l, ret);
            s->source.has_ended = s->inner->has_ended;
            if (r <= 0)
                return r;
        }
        const struct peet_record *first = &l->part.records[l->at];
        if (first->kind == PEET_EVENT && is_left_out(s, &l->part.events[first->id]))
            l->is_on = false; /* the window has ended in it */
        if (!l->is_on) {
            r = pass_over(s, context, l, err);
            if (r < 0)
                return r;
            if (l->at == l->part.count)
                continue;
            if (l->has_gap)
                return tell_gap(l, ret);
        }
        r = show(s, l, ret, err);
        if (r != 0)
            return r;
    }
}

void sample_set_gap_observer(struct source *source,
                             void (*passed)(void *user, uint32_t context, const struct peet_record *block), void *user)
{
    struct sampler *s = (struct sampler *)(void *)source;

    s->passed = passed;
    s->user = user;
}

/* ---- life ---- */

static void free_sampler(struct source *source)
{
    struct sampler *s = (struct sampler *)(void *)source;

    for (uint32_t i = 0; s->lane && i < s->inner->threads; i++) {
        if (!s->lane[i])
            continue;
        free(s->lane[i]->expanded);
        free(s->lane[i]->copy);
        free(s->lane[i]->event);
        free(s->lane[i]);
    }
    touched_release(&s->touched);
    set_sample_release(&s->set_sample);
    free(s->lane);
    source_free(s->inner);
    free(s);
}

/* ---- words ---- */

static void take_words(struct sampler *s, struct lane *l, struct source_words *w)
{
    l->counts.observed += w->used;
    l->counts.between += w->passed;
    l->left_out += w->passed;
    l->now += w->used + w->passed;
    s->has_left_out |= w->passed > 0;
    w->used = w->passed = 0;
}

static void turn(struct source_words *w)
{
    struct sampler *s = (struct sampler *)(void *)w->source;
    struct lane *l = lane_of(s, w->context);

    take_words(s, l, w);
    enter_block(s, l);
    w->is_on = l->is_on;
    w->left = l->is_on ? l->end - l->now : l->from - l->now;
}

static int words(struct source *source, uint32_t context, uint64_t reply, struct source_words *ret,
                 struct peet_err *err)
{
    struct sampler *s = (struct sampler *)(void *)source;
    struct lane *l = lane_of(s, context);

    l->has_words = true;
    take_words(s, l, ret);
    allow_skip(s, context, l);
    int r = source_words(s->inner, context, reply, ret, err);
    s->source.thread = s->inner->thread;
    s->source.threads = s->inner->threads;
    s->source.has_ended = s->inner->has_ended;
    ret->turn = turn;
    ret->source = source;
    ret->context = context;
    turn(ret);
    return r;
}

void sample_add_gap(struct source *source, uint32_t context, uint64_t references)
{
    struct sampler *s = (struct sampler *)(void *)source;
    struct lane *l = lane_of(s, context);

    if (!l->has_words) /* then it was seen */
        return;
    l->counts.between += references;
    take_gap(s, context, l, &(struct peet_event){ .kind = PEET_EV_gap, .arg = { 0, references } });
}

static unsigned calls(struct source *source, uint32_t context, struct source_calls *ret)
{
    struct sampler *s = (struct sampler *)(void *)source;

    ret->is_whole = false;
    return s->inner->kind->calls ? s->inner->kind->calls(s->inner, context, ret) : 0;
}

static uint64_t pointer(struct source *source, uint32_t context)
{
    return source_pointer(((struct sampler *)(void *)source)->inner, context);
}

static const struct source_kind SAMPLER = { .next = next, .free = free_sampler, .calls = calls, .pointer = pointer };
static const struct source_kind WORD_SAMPLER = {
    .next = next, .free = free_sampler, .words = words, .calls = calls, .pointer = pointer
};

static int check_config(const struct sample_config *c, struct peet_err *err)
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
    int r = check_config(config, err);
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
    s->lane = calloc(inner->max_threads + 1, sizeof(struct lane *));
    s->source = (struct source){ &SAMPLER,           inner->trace,   inner->thread, inner->threads,
                                 inner->max_threads, inner->is_live, false };
    if (!s->lane
        || (config->sets > 0 && config->one_in > 1
            && set_sample_init(&s->set_sample, config->sets, config->one_in, config->seed, s->line_bits) < 0)) {
        free_sampler(&s->source);
        return sample_no_memory(err);
    }
    if (inner->kind->skip && inner->kind->words && has_windows(s) && !set_sample_is_partial(&s->set_sample))
        s->source.kind = &WORD_SAMPLER;
    *ret = &s->source;
    return 0;
}

/* What has been left out had as many instructions by reference as what was seen. */
static uint64_t guess_instructions(const struct sample_counts *c, uint64_t references)
{
    return c->observed ? (uint64_t)((double)c->instructions / (double)c->observed * (double)references) : 0;
}

static void add_counts(struct sample_counts *a, const struct sample_counts *b)
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

struct sample_counts sample_counts(const struct source *source, uint32_t context)
{
    const struct sampler *s = (const struct sampler *)(const void *)source;
    struct sample_counts sum = { .sets = s->config.sets };
    uint64_t rest = 0; /* of threads that were never seen */

    sum.sampled_sets = set_sample_is_partial(&s->set_sample) ? s->set_sample.count : s->config.sets;
    for (uint32_t i = 0; i < s->source.threads; i++)
        if ((context == SAMPLE_ALL || context == i) && s->lane[i]) {
            const struct lane *l = s->lane[i];
            add_counts(&sum, &l->counts);
            sum.gap_instructions += guess_instructions(&l->counts, l->left_out);
            rest += l->counts.observed ? 0 : l->left_out;
        }
    sum.gap_instructions += guess_instructions(&sum, rest);
    return sum;
}
