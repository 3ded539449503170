/* SPDX-License-Identifier: MIT */
#include "map/spaces.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

bool trace_has_processes(const struct peet_trace *t)
{
    const struct peet_thread *first = peet_trace_thread(t, 0), *thread;

    for (size_t i = 1; first && (thread = peet_trace_thread(t, i)); i++)
        if (thread->process != first->process)
            return true;
    return false;
}

/* Without its folder; "" if the trace does not know it. */
static const char *program_of(const struct peet_process *p)
{
    const char *slash = p->program ? strrchr(p->program, '/') : NULL;

    return slash ? slash + 1 : p->program ? p->program : "";
}

void process_label(const struct peet_trace *t, uint32_t process, char *ret, size_t room)
{
    const struct peet_process *p, *own = NULL;
    bool is_unique = true;

    for (size_t i = 0; (p = peet_trace_process(t, i)); i++)
        own = p->id == process ? p : own;
    const char *name = own ? program_of(own) : "";
    for (size_t i = 0; (p = peet_trace_process(t, i)); i++)
        is_unique &= p == own || strcmp(program_of(p), name) != 0;
    if (is_unique && *name)
        snprintf(ret, room, "%s", name);
    else
        snprintf(ret, room, "%.64s%sprocess %" PRIu32 "%s", name, *name ? " (" : "", process, *name ? ")" : "");
}

static bool trace_has_frames(const struct peet_trace *t)
{
    for (uint32_t i = 0, items = peet_trace_items(t); i < items; i++) {
        const struct peet_event_item *e = peet_trace_event(t, i);
        if (e && e->kind == PEET_EV_page)
            return true;
    }
    return false;
}

void spaces_init(struct spaces *s, const struct peet_trace *t)
{
    *s = (struct spaces){ .by_frame = t && trace_has_processes(t) && trace_has_frames(t),
                          .numbers.value_size = sizeof(uint32_t),
                          .frames.value_size = sizeof(uint64_t) };
}

void spaces_release(struct spaces *s)
{
    free(s->process);
    map_release(&s->numbers);
    map_release(&s->frames);
    *s = (struct spaces){ 0 };
}

int spaces_of(struct spaces *s, uint32_t process, uint32_t *ret, struct peet_err *err)
{
    uint32_t *number = map_put(&s->numbers, process, 0);

    if (!number)
        return err_set(err, PEET_ERR_MEMORY, "no memory for the processes of a trace");
    if (*number == 0) {
        if (s->count == SPACES_MOST)
            return err_set(err, PEET_ERR_USAGE, "more than %d processes run, which is all that can be simulated",
                           SPACES_MOST);
        s->process = mem_room(s->process, s->count, sizeof *s->process);
        s->process[s->count++] = process;
        *number = s->count;
    }
    *ret = *number - 1;
    return 0;
}

void spaces_event(struct spaces *s, uint32_t space, const struct peet_event *e)
{
    if (!s->by_frame || e->kind != PEET_EV_page)
        return;
    uint64_t *frame = map_put(&s->frames, e->arg[0], space);
    assert(frame); /* 24 bytes for each page that a process refers to */
    *frame = e->arg[1] + 1;
    s->recent[e->arg[0] % SPACES_RECENT].page = 0;
}

uint64_t spaces_frame_addr(struct spaces *s, uint32_t space, uint64_t addr)
{
    uint64_t page = addr >> SPACE_PAGE_BITS, offset = addr & (SPACE_PAGE - 1);
    size_t at = page % SPACES_RECENT;

    if (s->recent[at].page != page + 1 || s->recent[at].space != space) {
        const uint64_t *frame = map_find(&s->frames, page, space);
        if (!frame)
            return spaces_tag(s, space, addr);
        s->recent[at].page = page + 1;
        s->recent[at].space = space;
        s->recent[at].frame = *frame - 1;
    }
    return s->recent[at].frame << SPACE_PAGE_BITS | offset;
}
