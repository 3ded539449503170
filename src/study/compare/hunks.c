/* SPDX-License-Identifier: MIT */
/* Events of one side of a hunk that repeat themselves are turns of a loop. All others belong to functions. Equal descriptions of a thread are
 * one row of the table `edits`. The table `hunks` shows the longest hunks side by side, with an equal line before and after each. */
#include "study/compare/hunks.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
    SIDE_LINES = 12,   /* lines of a side of a hunk */
    LOOP_PERIOD = 64,  /* events of a turn at most, where turns are not all alike */
    LOOP_LEAST = 1024, /* events that are looked at for that */
};

/* clang-format off */
static const struct column EDITS[] = {
    { "thread",   "Thread",   CELL_COUNT, true },
    { "what",     "B has",    CELL_TEXT,  false },
    { "function", "Function", CELL_TEXT,  false },
    { "source",   "Source",   CELL_TEXT,  false },
    { "only_a",   "In A alone", CELL_COUNT, false },
    { "only_b",   "In B alone", CELL_COUNT, false },
    { "turns",    "Turns",    CELL_COUNT, false },
    { "places",   "Places",   CELL_COUNT, false },
    { 0 },
};
static const struct column HUNKS[] = {
    { "thread", "Thread", CELL_COUNT, true },
    { "hunk",   "Hunk",   CELL_COUNT, false },
    { "at_a",   "Event of A", CELL_COUNT, false },
    { "a",      "A",      CELL_CODE,  false },
    { "mark",   "",       CELL_CODE,  false },
    { "b",      "B",      CELL_CODE,  false },
    { "at_b",   "Event of B", CELL_COUNT, false },
    { 0 },
};
/* clang-format on */

/* Where code of a class lies. Strings belong to the symbols. */
struct class_place {
    const char *function, *file; /* file: without its folder; NULL: unknown */
    uint32_t line;
    bool is_known;
};

static const struct class_place *hunk_place(struct hunk_report *r, uint32_t class)
{
    if (class >= r->places) {
        uint32_t places = code_match_classes(r->match) + 1;
        struct class_place *all = mem_alloc(places, sizeof *all);
        if (r->places)
            memcpy(all, r->place, r->places * sizeof *all);
        free(r->place);
        r->place = all;
        r->places = places;
    }
    struct class_place *p = &r->place[class];
    if (!p->is_known) {
        struct symbols_frame frame = code_match_frame(r->match, class);
        const char *slash = frame.file ? strrchr(frame.file, '/') : NULL;
        *p = (struct class_place){ frame.function, slash ? slash + 1 : frame.file, frame.line, true };
    }
    return p;
}

/* ---- one side of a hunk ---- */

/* Consecutive events of a stream. */
struct event_run {
    const struct event_stream *stream;
    size_t at, count;
};

static const uint32_t *event_run_events(const struct event_run *s)
{
    return s->stream->at + s->at;
}

/* The smallest distance after which all events repeat themselves; count: they do not. */
static size_t events_period(const uint32_t *x, size_t count)
{
    size_t *border = mem_alloc(count + 1, sizeof *border); /* by prefix: its longest proper prefix that is a suffix */
    size_t k = 0;

    for (size_t i = 1; i < count; i++) {
        while (k > 0 && x[i] != x[k])
            k = border[k];
        k += x[i] == x[k];
        border[i + 1] = k;
    }
    size_t period = count ? count - border[count] : 0;
    free(border);
    return period;
}

/* Turns of a loop that a side of a hunk consists of; 0: it is no loop. One turn is recognized by an equal one before or after it. */
static uint64_t event_run_turns(const struct event_run *s, size_t *ret_period)
{
    const uint32_t *x = event_run_events(s);
    size_t period = events_period(x, s->count), bytes = s->count * sizeof *x;

    *ret_period = period;
    if (s->count == 0)
        return 0;
    if (period <= s->count / 2)
        return s->count / period;
    *ret_period = s->count;
    bool is_before = s->at >= s->count && memcmp(x - s->count, x, bytes) == 0;
    bool is_after = s->stream->count - s->at >= 2 * s->count && memcmp(x + s->count, x, bytes) == 0;
    return is_before || is_after;
}

/* Turns of a loop in events that are almost all equal to those a turn earlier; 0: there is no such loop. */
static uint64_t events_loose_turns(const uint32_t *x, size_t count, size_t *ret_period)
{
    size_t shown = count < LOOP_LEAST ? count : LOOP_LEAST, best = 0;

    *ret_period = 0;
    for (size_t period = 1; period <= LOOP_PERIOD && 3 * period <= shown; period++) {
        size_t equal = 0;
        for (size_t i = period; i < shown; i++)
            equal += x[i] == x[i - period];
        if (equal > best && 5 * equal >= 4 * (shown - period)) {
            best = equal;
            *ret_period = period;
        }
    }
    return *ret_period ? count / *ret_period : 0;
}

/* The event that names a loop: the one with the lowest line in the function of the first event that has a line. */
static uint32_t events_head(struct hunk_report *r, const uint32_t *x, size_t count)
{
    uint32_t head = x[0];

    for (size_t i = 1; i < count; i++) {
        const struct class_place *p = hunk_place(r, x[i]), *best = hunk_place(r, head);
        if (p->line && (!best->line || (p->line < best->line && strcmp(p->function, best->function) == 0)))
            head = x[i];
    }
    return head;
}

/* ---- folded rows ---- */

/* What is said of a thread in one row. */
struct folded_edit {
    const char *function, *file; /* keys */
    uint32_t line;               /* key, of loops */
    bool is_loop, waits;         /* keys */
    uint32_t last_line;          /* of code: lines are line … last_line */
    uint64_t only[2], turns[2], places;
};

struct folded_edits {
    struct folded_edit *edit;
    size_t count;
};

static struct folded_edit *folded_edits_find(struct folded_edits *f, const struct folded_edit *key)
{
    for (size_t i = 0; i < f->count; i++) {
        struct folded_edit *e = &f->edit[i];
        if (e->is_loop == key->is_loop && (!key->is_loop || e->line == key->line)
            && strcmp(e->function, key->function) == 0
            && (e->file == key->file || (e->file && key->file && strcmp(e->file, key->file) == 0)))
            return e;
    }
    f->edit = mem_room(f->edit, f->count, sizeof *f->edit);
    f->edit[f->count] = *key;
    return &f->edit[f->count++];
}

static void folded_edits_add(struct hunk_report *r, struct folded_edits *f, uint32_t class, unsigned side,
                             uint64_t events, uint64_t turns)
{
    const struct class_place *p = hunk_place(r, class);
    const struct event_class *c = code_match_class(r->match, class);
    struct folded_edit key = { .function = p->function, .file = p->file, .line = p->line, .last_line = p->line };

    key.is_loop = turns > 0;
    key.waits = function_synchronizes(p->function) || c->kind == PEET_CL_pause;
    struct folded_edit *e = folded_edits_find(f, &key);
    e->only[side] += events;
    e->turns[side] += turns;
    e->places++;
    e->waits |= key.waits;
    if (p->line && (p->line < e->line || e->line == 0))
        e->line = p->line;
    if (p->line > e->last_line)
        e->last_line = p->line;
}

static void folded_edits_add_side(struct hunk_report *r, struct folded_edits *f, const struct event_run *s,
                                  unsigned side)
{
    const uint32_t *x = event_run_events(s);
    size_t period;
    uint64_t turns = event_run_turns(s, &period);

    if (turns) {
        folded_edits_add(r, f, events_head(r, x, period), side, s->count, turns);
        return;
    }
    for (size_t i = 0, end; i < s->count; i = end) {
        const char *function = hunk_place(r, x[i])->function;
        for (end = i + 1; end < s->count && strcmp(hunk_place(r, x[end])->function, function) == 0; end++)
            ;
        turns = events_loose_turns(x + i, end - i, &period);
        folded_edits_add(r, f, events_head(r, turns ? x + i + (end - i) / 2 : x + i, turns ? period : end - i), side,
                         end - i, turns);
    }
}

static int folded_edit_order(const void *a, const void *b)
{
    const struct folded_edit *x = a, *y = b;
    uint64_t dx = x->only[0] + x->only[1], dy = y->only[0] + y->only[1];

    if (dx != dy)
        return dx > dy ? -1 : 1;
    int names = strcmp(x->function, y->function);
    return names ? names : (x->line > y->line) - (x->line < y->line);
}

/* A count with separators; `text` has room for it. */
static const char *hunk_count(uint64_t n, char text[32])
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n), at = 0;

    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = 0;
    return text;
}

static char *folded_edit_source(const struct folded_edit *e)
{
    if (!e->file || !e->line)
        return NULL;
    return e->is_loop || e->line == e->last_line ? mem_format("%s:%u", e->file, e->line)
                                                 : mem_format("%s:%u-%u", e->file, e->line, e->last_line);
}

/* Letters of the unit: without its last one for a single event. */
static int hunk_unit(const struct hunk_report *r, uint64_t n)
{
    return (int)strlen(r->unit) - (n == 1);
}

/* "1,204 more turns of the wait loop in barrier.c:41" */
static char *folded_edit_text(const struct hunk_report *r, const struct folded_edit *e)
{
    const uint64_t *n = e->is_loop ? e->turns : e->only;
    char first[32], second[32], *source = folded_edit_source(e), *text;
    const char *at = source ? source : e->function;

    if (e->is_loop && n[0] != n[1])
        text = mem_format("%s %s turn%s of the %sloop in %s",
                          hunk_count(n[0] > n[1] ? n[0] - n[1] : n[1] - n[0], first), n[0] > n[1] ? "fewer" : "more",
                          n[0] + 1 == n[1] || n[1] + 1 == n[0] ? "" : "s", e->waits ? "wait " : "", at);
    else if (e->is_loop)
        text = mem_format("%s turns of the %sloop in %s at other times", hunk_count(n[0], first),
                          e->waits ? "wait " : "", at);
    else if (n[0] && n[1])
        text = mem_format("%s %.*s instead of %s in %s", hunk_count(n[1], first), hunk_unit(r, n[1]), r->unit,
                          hunk_count(n[0], second), e->function);
    else
        text = mem_format("%s %s %.*s in %s", hunk_count(n[0] + n[1], first), n[0] ? "fewer" : "more",
                          hunk_unit(r, n[0] + n[1]), r->unit, e->function);
    free(source);
    return text;
}

static void hunk_report_fold(struct hunk_report *r, const struct event_stream *a, const struct event_stream *b,
                             const struct edit_script *script)
{
    struct folded_edits f = { 0 };

    for (size_t i = 0; i < script->count; i++) {
        const struct edit_hunk *h = &script->hunk[i];
        folded_edits_add_side(r, &f, &(struct event_run){ a, h->a, h->a_count }, 0);
        folded_edits_add_side(r, &f, &(struct event_run){ b, h->b, h->b_count }, 1);
    }
    if (f.count)
        qsort(f.edit, f.count, sizeof *f.edit, folded_edit_order);
    for (size_t i = 0; i < f.count && (r->top == 0 || i < r->top); i++) {
        const struct folded_edit *e = &f.edit[i];
        char *what = folded_edit_text(r, e), *source = folded_edit_source(e);
        table_count(r->edits, a->thread->id);
        table_text(r->edits, what);
        table_text(r->edits, e->function);
        table_text(r->edits, source);
        table_count(r->edits, e->only[0]);
        table_count(r->edits, e->only[1]);
        if (e->is_loop)
            table_count(r->edits, e->turns[0] + e->turns[1]);
        else
            table_none(r->edits);
        table_count(r->edits, e->places);
        free(what);
        free(source);
    }
    free(f.edit);
}

/* ---- side by side ---- */

/* A line of one side: events of one source line that follow each other. */
struct side_line {
    char *text;
    size_t at;
};

struct side_lines {
    struct side_line line[SIDE_LINES + 1];
    size_t count;
};

static char *side_line_text(struct hunk_report *r, uint32_t class)
{
    const struct class_place *p = hunk_place(r, class);
    const struct event_class *c = code_match_class(r->match, class);
    const char *kind = c->kind >= EVENT_CLASS ? peet_event_name(c->kind - EVENT_CLASS)
                       : c->kind == PEET_CL_call || c->kind == PEET_CL_call_indirect ? "call"
                       : c->kind == PEET_CL_return                                   ? "return"
                                                                                     : "";
    const char *callee = c->callee ? c->callee : "";

    if (p->file && p->line)
        return mem_format("%s%s%s%s%s:%u %s", kind, *kind ? " " : "", callee, *callee ? " from " : "", p->file, p->line,
                          p->function);
    return mem_format("%s%s%s%s%s", kind, *kind ? " " : "", callee, *callee ? " from " : "", p->function);
}

static bool classes_share_line(struct hunk_report *r, uint32_t x, uint32_t y)
{
    const struct class_place *p = hunk_place(r, x), *q = hunk_place(r, y);

    return x == y
           || (p->line == q->line && strcmp(p->function, q->function) == 0
               && (code_match_class(r->match, x)->kind == code_match_class(r->match, y)->kind
                   || (p->line && strcmp(r->unit, "instructions") == 0)));
}

static void side_lines_make(struct hunk_report *r, const struct event_run *s, struct side_lines *ret)
{
    const uint32_t *x = event_run_events(s);
    size_t period;
    uint64_t turns = event_run_turns(s, &period);
    size_t shown = turns > 1 ? period : s->count;
    char number[32];

    ret->count = 0;
    for (size_t i = 0, end; i < shown; i = end) {
        for (end = i + 1; end < shown && classes_share_line(r, x[i], x[end]); end++)
            ;
        if (ret->count == SIDE_LINES) {
            ret->line[ret->count++] =
                (struct side_line){ mem_format("... %s more %s", hunk_count(shown - i, number), r->unit), s->at + i };
            break;
        }
        char *text = side_line_text(r, x[i]);
        char *counted = end > i + 1 ? mem_format("%s  x %s", text, hunk_count(end - i, number)) : mem_string(text);
        ret->line[ret->count++] = (struct side_line){ counted, s->at + i };
        free(text);
    }
    if (turns > 1 && ret->count <= SIDE_LINES)
        ret->line[ret->count++] =
            (struct side_line){ mem_format("... %s turns of this loop", hunk_count(turns, number)), s->at };
}

static void side_lines_release(struct side_lines *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->line[i].text);
}

static void hunk_put_line(struct hunk_report *r, uint32_t thread, size_t hunk, const struct side_line *a,
                          const char *mark, const struct side_line *b)
{
    table_count(r->hunks, thread);
    table_count(r->hunks, hunk);
    if (a)
        table_count(r->hunks, a->at);
    else
        table_none(r->hunks);
    table_text(r->hunks, a ? a->text : NULL);
    table_text(r->hunks, mark);
    table_text(r->hunks, b ? b->text : NULL);
    if (b)
        table_count(r->hunks, b->at);
    else
        table_none(r->hunks);
}

/* An equal event of both streams beside a hunk. */
static void hunk_put_context(struct hunk_report *r, const struct event_stream *a, size_t at_a, size_t at_b, size_t hunk)
{
    char *text = side_line_text(r, a->at[at_a]);

    hunk_put_line(r, a->thread->id, hunk, &(struct side_line){ text, at_a }, " ", &(struct side_line){ text, at_b });
    free(text);
}

static void hunk_put(struct hunk_report *r, const struct event_stream *a, const struct event_stream *b,
                     const struct edit_hunk *h, size_t number)
{
    struct side_lines left, right;

    side_lines_make(r, &(struct event_run){ a, h->a, h->a_count }, &left);
    side_lines_make(r, &(struct event_run){ b, h->b, h->b_count }, &right);
    if (h->a && h->b)
        hunk_put_context(r, a, h->a - 1, h->b - 1, number);
    for (size_t i = 0; i < left.count || i < right.count; i++)
        hunk_put_line(r, a->thread->id, number, i < left.count ? &left.line[i] : NULL,
                      i >= left.count    ? "+"
                      : i >= right.count ? "-"
                                         : "|",
                      i < right.count ? &right.line[i] : NULL);
    if (h->a + h->a_count < a->count && h->b + h->b_count < b->count)
        hunk_put_context(r, a, h->a + h->a_count, h->b + h->b_count, number);
    side_lines_release(&left);
    side_lines_release(&right);
}

static int size_order(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return (x < y) - (x > y);
}

/* The size of the smallest hunk that is among the `top` longest. */
static size_t hunks_least(const struct edit_script *script, uint64_t top)
{
    size_t *size, least = 0;

    if (top == 0 || script->count <= top)
        return 0;
    size = mem_alloc(script->count, sizeof *size);
    for (size_t i = 0; i < script->count; i++)
        size[i] = script->hunk[i].a_count + script->hunk[i].b_count;
    qsort(size, script->count, sizeof *size, size_order);
    least = size[top - 1];
    free(size);
    return least;
}

static void hunk_report_show(struct hunk_report *r, const struct event_stream *a, const struct event_stream *b,
                             const struct edit_script *script)
{
    size_t least = hunks_least(script, r->top), shown = 0;

    for (size_t i = 0; i < script->count && (r->top == 0 || shown < r->top); i++)
        if (script->hunk[i].a_count + script->hunk[i].b_count >= least) {
            hunk_put(r, a, b, &script->hunk[i], i + 1);
            shown++;
        }
    if (shown < script->count)
        table_note(r->hunks, "thread %u: %zu of %zu hunks; --top 0 shows all", a->thread->id, shown, script->count);
}

/* ---- interface ---- */

void hunk_report_begin(struct hunk_report *r, struct code_match *m, const char *unit, uint64_t top, struct result *ret)
{
    *r = (struct hunk_report){ .match = m, .unit = unit, .top = top };
    r->edits = ret->first ? ret->first : result_table(ret, "edits", "What B does otherwise", EDITS);
    r->hunks = ret->last != r->edits ? ret->last : result_table(ret, "hunks", "Side by side", HUNKS);
}

void hunk_report_add(struct hunk_report *r, const struct event_stream *a, const struct event_stream *b,
                     const struct edit_script *script)
{
    hunk_report_fold(r, a, b, script);
    hunk_report_show(r, a, b, script);
    if (!script->is_exact)
        table_note(r->edits, "thread %u: an exact script is out of reach; there may be a shorter one", a->thread->id);
}

void hunk_report_end(struct hunk_report *r)
{
    free(r->place);
    r->place = NULL;
    r->places = 0;
}
