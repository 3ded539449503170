/* SPDX-License-Identifier: MIT */
#include "study/slack/units.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static void unit_thread_release(struct unit_thread *t)
{
    free(t->release);
    free(t->need);
    free(t->section);
    free(t->wrote);
}

void units_release(struct units *u)
{
    for (uint32_t i = 0; i < u->count; i++) {
        struct sync_unit *x = &u->unit[i];
        for (uint32_t k = 0; k < x->threads; k++)
            unit_thread_release(&x->thread[k]);
        map_release(&x->addrs);
        map_release(&x->sites);
        map_release(&x->lines);
        map_release(&x->pairs);
        free(x->thread);
        free(x->name);
    }
    map_release(&u->by_key);
    map_release(&u->by_name);
    map_release(&u->sets);
    map_release(&u->names);
    for (uint32_t i = 0; i < u->name_count; i++)
        free(u->name[i].text);
    free(u->name);
    free(u->set);
    free(u->unit);
    *u = (struct units){ 0 };
}

/* ---- which unit ---- */

static uint64_t units_mix(uint64_t a, uint64_t b)
{
    a ^= b + UINT64_C(0x9e3779b97f4a7c15) + (a << 6) + (a >> 2);
    a ^= a >> 32;
    a *= UINT64_C(0xd6e8feb86659fd93);
    return a ^ a >> 32;
}

static uint64_t units_text_hash(const char *text)
{
    uint64_t h = 0;

    for (; *text; text++)
        h = units_mix(h, (unsigned char)*text);
    return h;
}

/* Barriers are distinguished by object and place, joins by place, all others by object. */
static uint64_t units_key(enum relax_class class, uint64_t addr, uint64_t site)
{
    uint64_t key = class == RELAX_JOIN ? 0 : addr;

    return class == RELAX_BARRIER || class == RELAX_JOIN ? units_mix(key, site) : key;
}

static uint32_t units_tag(enum relax_class class, uint32_t process)
{
    return process << 4 | (uint32_t) class;
}

uint32_t units_find(struct units *u, enum relax_class class, uint64_t addr, uint64_t site, uint32_t process)
{
    const uint32_t *number = map_find(&u->by_key, units_key(class, addr, site), units_tag(class, process));

    return number ? *number : UNIT_NONE;
}

static void units_add_key(struct map *keys, uint64_t key, uint32_t tag)
{
    uint8_t *value = map_put(keys, key, tag);

    assert(value);
    *value = 1;
}

uint32_t units_add(struct units *u, enum relax_class class, uint64_t addr, uint64_t site, uint32_t process,
                   const char *name)
{
    u->by_key.value_size = u->by_name.value_size = sizeof(uint32_t);
    uint32_t *by_key = map_put(&u->by_key, units_key(class, addr, site), units_tag(class, process));
    bool is_named = name && class != RELAX_BARRIER && class != RELAX_JOIN;
    uint32_t *by_name = is_named ? map_put(&u->by_name, units_text_hash(name), units_tag(class, process)) : NULL;

    assert(by_key && (by_name || !is_named));
    if (by_name && *by_name) {
        *by_key = *by_name - 1;
    } else {
        if (u->count == u->room)
            u->unit = mem_grow(u->unit, &u->room, u->count, sizeof *u->unit);
        *by_key = u->count++;
        if (by_name)
            *by_name = *by_key + 1;
        struct sync_unit *x = &u->unit[*by_key];
        *x = (struct sync_unit){ .class = (uint8_t) class,
                                 .name = name ? mem_string(name) : NULL,
                                 .same_as = UNIT_NONE };
        x->addr = addr;
        x->site = site;
        x->process = process;
        x->has_plan = u->has_plan;
        x->addrs.value_size = x->sites.value_size = sizeof(uint8_t);
        x->lines.value_size = sizeof(struct unit_line);
        x->pairs.value_size = sizeof(struct unit_pair);
    }
    struct sync_unit *x = units_at(u, *by_key);
    if (class != RELAX_JOIN)
        units_add_key(&x->addrs, addr, process);
    if (class == RELAX_BARRIER || class == RELAX_JOIN)
        units_add_key(&x->sites, site, 0);
    return *by_key;
}

static void units_copy_keys(struct map *to, const struct map *from)
{
    uint64_t key;
    uint32_t tag;

    for (size_t at = 0; map_next(from, &at, &key, &tag);)
        units_add_key(to, key, tag);
}

void units_join(struct units *u, uint32_t unit, uint32_t same)
{
    struct sync_unit *x = units_at(u, unit), *to = units_at(u, same);

    if (x == to)
        return;
    units_copy_keys(&to->addrs, &x->addrs);
    units_copy_keys(&to->sites, &x->sites);
    x->same_as = (uint32_t)(to - u->unit);
}

uint32_t units_name(struct units *u, const char *text, bool is_stack)
{
    u->names.value_size = sizeof(uint32_t);
    uint32_t *number = map_put(&u->names, units_text_hash(text), is_stack);
    assert(number);
    if (*number == 0) {
        if (u->name_count == u->name_room)
            u->name = mem_grow(u->name, &u->name_room, u->name_count, sizeof *u->name);
        u->name[u->name_count++] = (struct unit_name){ mem_string(text), is_stack };
        *number = u->name_count;
    }
    return *number - 1;
}

struct unit_thread *unit_thread_at(struct sync_unit *x, uint32_t thread)
{
    if (thread >= x->threads) { /* many units have few threads */
        uint32_t threads = thread + thread / 2 + 4;
        struct unit_thread *larger = mem_alloc(threads, sizeof *larger);
        if (x->threads)
            memcpy(larger, x->thread, x->threads * sizeof *larger);
        free(x->thread);
        x->thread = larger;
        x->threads = threads;
    }
    return &x->thread[thread];
}

/* ---- uses and waits ---- */

/* Adds the thread's last wait to the unit. */
static void unit_end_wait(struct sync_unit *x, struct unit_thread *t)
{
    const struct unit_wait *w = &t->wait;
    uint64_t needed = w->needed_until > w->start ? w->needed_until - w->start : 0;

    x->sum.waits += w->cycles > 0;
    x->sum.waited += w->cycles;
    x->sum.needed += needed < w->cycles ? needed : w->cycles;
    x->sum.longest = w->cycles > x->sum.longest ? w->cycles : x->sum.longest;
    x->sum.relied += t->is_relied_on;
    t->is_relied_on = false;
    t->wait = (struct unit_wait){ 0 };
}

void unit_use(struct sync_unit *x, uint32_t thread, uint64_t now)
{
    struct unit_thread *t = unit_thread_at(x, thread);

    unit_end_wait(x, t);
    t->uses++;
    t->wait.start = now;
    x->sum.uses++;
}

void unit_waited(struct sync_unit *x, uint32_t thread, uint64_t cycles)
{
    unit_thread_at(x, thread)->wait.cycles += cycles;
}

void unit_release(struct sync_unit *x, uint32_t thread, const struct unit_release *r)
{
    struct unit_thread *t = unit_thread_at(x, thread);
    bool is_ring = x->class != RELAX_BARRIER && x->class != RELAX_JOIN;
    uint32_t at = is_ring ? t->releases % UNIT_RELEASES : t->releases;

    if (at >= t->release_room)
        t->release = mem_grow(t->release, &t->release_room, at, sizeof *t->release);
    t->release[at] = *r;
    t->releases++;
}

uint64_t unit_release_time(const struct sync_unit *x, uint32_t thread, uint32_t segment, bool is_must,
                           uint32_t *ret_number)
{
    if (thread >= x->threads)
        return UINT64_MAX;
    const struct unit_thread *t = &x->thread[thread];
    bool is_ring = x->class != RELAX_BARRIER && x->class != RELAX_JOIN;
    uint32_t from = is_ring && t->releases > UNIT_RELEASES ? t->releases - UNIT_RELEASES : 0, to = t->releases;
    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        const struct unit_release *r = &t->release[is_ring ? middle % UNIT_RELEASES : middle];
        if ((is_must ? r->must : r->known) < segment)
            from = middle + 1;
        else
            to = middle;
    }
    if (from == t->releases)
        return UINT64_MAX;
    *ret_number = from + 1;
    return t->release[is_ring ? from % UNIT_RELEASES : from].time;
}

/* ---- dependences ---- */

static void unit_add_need(struct unit_thread *t, uint32_t from, uint32_t from_arrival)
{
    for (uint32_t i = t->needs; i > 0 && t->need[i - 1].arrival == t->uses; i--)
        if (t->need[i - 1].from == from) {
            if (t->need[i - 1].from_arrival < from_arrival)
                t->need[i - 1].from_arrival = from_arrival;
            return;
        }
    if (t->needs == t->need_room)
        t->need = mem_grow(t->need, &t->need_room, t->needs, sizeof *t->need);
    t->need[t->needs++] = (struct relax_need){ t->uses, from, from_arrival };
}

void unit_relied_on(struct sync_unit *x, const struct dependence *d)
{
    struct unit_thread *t = unit_thread_at(x, d->to);
    uint32_t number = 0;
    uint64_t time = unit_release_time(x, d->from, d->from_segment, d->is_must, &number);

    x->is_needed_now = true;
    t->is_relied_on = true;
    if (time > t->wait.needed_until)
        t->wait.needed_until = time;
    if (x->class != RELAX_BARRIER)
        return;
    if (number == 0 || t->uses == 0)
        x->has_unknown_need = true;
    else if (!x->has_plan)
        unit_add_need(t, d->from, number);
}

/* ---- critical sections ---- */

void unit_open_section(struct sync_unit *x, uint32_t thread)
{
    struct unit_thread *t = unit_thread_at(x, thread);

    t->is_open = true;
    t->has_written = false;
    t->objects = (struct section_objects){ 0 };
}

void unit_use_object(struct unit_thread *t, uint32_t object)
{
    struct section_objects *s = &t->objects;
    uint32_t at = 0;

    while (at < s->count && s->object[at] < object)
        at++;
    if (at < s->count && s->object[at] == object)
        return;
    if (s->count == SECTION_OBJECTS) {
        s->is_full = true;
        return;
    }
    memmove(&s->object[at + 1], &s->object[at], (s->count - at) * sizeof *s->object);
    s->object[at] = object;
    s->count++;
}

static uint32_t units_set_of(struct units *u, const struct section_objects *s)
{
    uint64_t h = units_mix(s->count, s->is_full);

    for (uint32_t i = 0; i < s->count; i++)
        h = units_mix(h, s->object[i]);
    u->sets.value_size = sizeof(uint32_t);
    uint32_t *number = map_put(&u->sets, h, 0);
    assert(number);
    if (*number == 0) {
        if (u->set_count == u->set_room)
            u->set = mem_grow(u->set, &u->set_room, u->set_count, sizeof *u->set);
        u->set[u->set_count++] = *s;
        *number = u->set_count;
    }
    return *number - 1;
}

void unit_close_section(struct units *u, struct sync_unit *x, uint32_t thread)
{
    struct unit_thread *t = unit_thread_at(x, thread);

    if (!t->is_open)
        return;
    t->is_open = false;
    x->sum.wrote += t->has_written;
    if (x->has_plan)
        return;
    if (t->sections == t->section_room) {
        uint32_t room = t->section_room;
        t->section = mem_grow(t->section, &t->section_room, t->sections, sizeof *t->section);
        t->wrote = mem_grow(t->wrote, &room, t->sections, sizeof *t->wrote);
    }
    t->section[t->sections] = units_set_of(u, &t->objects);
    t->wrote[t->sections++] = t->has_written;
}

/* ---- the end of a run ---- */

void units_end_run(struct units *u)
{
    for (uint32_t i = 0; i < u->count; i++) {
        struct sync_unit *x = &u->unit[i];
        uint64_t uses = 0;
        for (uint32_t k = 0; k < x->threads; k++) {
            struct unit_thread *t = &x->thread[k];
            unit_end_wait(x, t);
            uses += t->uses;
            t->first_uses = x->has_plan ? t->first_uses : t->uses;
            t->uses = t->releases = t->depth = 0;
            t->is_open = false;
        }
        x->runs += uses > 0;
        x->needed_runs += x->is_needed_now;
        x->is_needed_now = false;
        x->has_plan = true;
    }
    u->has_plan = true;
}
