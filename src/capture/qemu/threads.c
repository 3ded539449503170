/* SPDX-License-Identifier: MIT */
/* Windows and targets. Targets of a known space are sorted by address, and found by binary search. In unknown space windows overlap, and all
 * of them are compared. */
#include "capture/qemu/threads.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* ---- windows ---- */

struct window window_of(const struct window_config *c, uint64_t sp)
{
    uint64_t page = sp - sp % c->page;

    if (c->up) {
        uint64_t start = page - (c->pages - 1) * c->page;
        return (struct window){ start, start - 1 + c->stack };
    }
    uint64_t start = page + c->pages * c->page - 1;
    return (struct window){ start, start + 1 - c->stack };
}

static uint64_t window_low(struct window w)
{
    return w.start < w.end ? w.start : w.end;
}

static uint64_t window_high(struct window w)
{
    return w.start < w.end ? w.end : w.start;
}

bool window_has(struct window w, uint64_t addr)
{
    return addr >= window_low(w) && addr <= window_high(w);
}

static bool windows_overlap(struct window a, struct window b)
{
    return window_low(a) <= window_high(b) && window_low(b) <= window_high(a);
}

/* ---- the list ---- */

/* The targets of an address space. */
struct target_space {
    struct target **at; /* live targets, by rising addresses of their windows */
    size_t count;
};

static struct target_space *space_of(const struct targets *t, uint64_t root)
{
    struct target_space **s = map_find(&t->spaces, root, 0);

    return s ? *s : NULL;
}

void targets_release(struct targets *t)
{
    struct target_space **s;
    uint64_t root;
    uint32_t tag;

    for (size_t at = 0; (s = map_next(&t->spaces, &at, &root, &tag)) != NULL;) {
        free((*s)->at);
        free(*s);
    }
    for (size_t i = 0; i < t->count; i++)
        free(t->all[i]);
    free(t->all);
    map_release(&t->spaces);
    map_release(&t->frames);
    *t = (struct targets){ 0 };
}

/* Index of the first window that does not end before addr. */
static size_t space_position(const struct target_space *s, uint64_t addr)
{
    size_t first = 0, end = s->count;

    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (window_high(s->at[middle]->window) < addr)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

void targets_retire(struct targets *t, struct target *over)
{
    struct target_space *s = space_of(t, over->space);

    if (!over->live)
        return;
    over->live = false;
    for (size_t i = 0; i < s->count; i++)
        if (s->at[i] == over) {
            memmove(&s->at[i], &s->at[i + 1], (--s->count - i) * sizeof *s->at);
            break;
        }
    if (over->space == 0 && over->frame != TARGET_NO_FRAME)
        map_remove(&t->frames, over->frame, 0);
}

static struct target *overlapping_target(const struct targets *t, const struct target_space *s,
                                         const struct target *model)
{
    if (model->space == 0) {
        struct target **holder = map_find(&t->frames, model->frame, 0);
        return holder ? *holder : NULL;
    }
    size_t i = space_position(s, window_low(model->window));
    return i < s->count && windows_overlap(s->at[i]->window, model->window) ? s->at[i] : NULL;
}

static struct target_space *make_space(struct targets *t, uint64_t root)
{
    t->spaces.value_size = sizeof(struct target_space *);
    struct target_space *s = space_of(t, root);
    if (!s) {
        struct target_space **place = map_put(&t->spaces, root, 0);
        s = mem_alloc(1, sizeof *s);
        if (!place) {
            free(s);
            return NULL;
        }
        *place = s;
    }
    return s;
}

static void space_insert(struct target_space *s, struct target *made)
{
    size_t i = space_position(s, window_low(made->window));

    if (made->space == 0) /* the newest is compared first */
        i = s->count;
    s->at = mem_room(s->at, s->count, sizeof *s->at);
    memmove(&s->at[i + 1], &s->at[i], (s->count - i) * sizeof *s->at);
    s->at[i] = made;
    s->count++;
}

struct target *targets_add(struct targets *t, const struct target *model,
                           void (*retired)(struct target *over, void *context), void *context)
{
    struct target_space *s = make_space(t, model->space);

    if (!s)
        return NULL;
    for (struct target *over; (over = overlapping_target(t, s, model)) != NULL;) {
        if (retired)
            retired(over, context);
        targets_retire(t, over);
    }
    struct target *made = mem_alloc(1, sizeof *made);
    *made = *model;
    made->number = (uint32_t)t->count;
    made->live = true;
    t->all = mem_room(t->all, t->count, sizeof *t->all);
    t->all[t->count++] = made;
    space_insert(s, made);
    if (made->space == 0 && made->frame != TARGET_NO_FRAME) {
        t->frames.value_size = sizeof made;
        struct target **place = map_put(&t->frames, made->frame, 0);
        if (place)
            *place = made;
    }
    return made;
}

/* ---- looking for one ---- */

static bool is_in_its_frame(const struct target *target, const struct translation *tr)
{
    uint64_t frame;

    if (!tr || !tr->translate || target->frame == TARGET_NO_FRAME)
        return true;
    return tr->translate(tr->context, target->window.start, &frame) && frame == target->frame;
}

struct target *targets_find(const struct targets *t, uint64_t space, uint64_t sp, const struct translation *tr)
{
    const struct target_space *s = space_of(t, space);

    if (!s)
        return NULL;
    if (space != 0) {
        size_t i = space_position(s, sp);
        if (i == s->count || !window_has(s->at[i]->window, sp))
            return NULL;
        return is_in_its_frame(s->at[i], tr) ? s->at[i] : NULL;
    }
    for (size_t i = s->count; i-- > 0;)
        if (window_has(s->at[i]->window, sp) && is_in_its_frame(s->at[i], tr))
            return s->at[i];
    return NULL;
}

struct target *targets_find_pointer(const struct targets *t, uint64_t space, uint64_t pointer)
{
    const struct target_space *s = space ? space_of(t, space) : NULL;

    for (size_t i = s && pointer ? s->count : 0; i-- > 0;)
        if (s->at[i]->pointer == pointer)
            return s->at[i];
    return NULL;
}

struct target *targets_near(const struct targets *t, uint64_t space, uint64_t sp, uint64_t distance)
{
    const struct target_space *s = space_of(t, space);

    for (size_t i = s ? s->count : 0; i-- > 0;) {
        struct window w = s->at[i]->window;
        uint64_t beyond = w.start > w.end ? sp - w.start : w.start - sp; /* huge on the other side */
        if (beyond - 1 < distance)
            return s->at[i];
    }
    return NULL;
}
