/* SPDX-License-Identifier: MIT */
/* Threads of the subject, each with its stream. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/step/step.h"

struct tracee *tracee_find(const struct stepper *r, pid_t tid)
{
    struct tracee **t = map_find(&r->threads, (uint64_t)tid, 0);

    return t ? *t : NULL;
}

int event_put(struct stepper *r, struct tracee *t, uint32_t kind, uint64_t site, const uint64_t *args)
{
    uint32_t item;
    int result = peet_writer_event(r->writer, kind, site, &item, r->err);

    return result < 0 ? result : peet_stream_put(t->stream, item, args, r->err);
}

static void read_name(pid_t tid, char *name, size_t size)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/comm", (int)tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, name, size - 1);
    if (fd >= 0)
        close(fd);
    name[n > 0 ? n : 0] = '\0';
    name[strcspn(name, "\n")] = '\0';
}

void tracee_inherit(struct tracee *t, const struct tracee *from)
{
    t->frame = mem_alloc(from->frames + 1, sizeof *t->frame);
    t->frames = from->frames;
    t->frame_room = from->frames + 1;
    if (from->frames)
        memcpy(t->frame, from->frame, from->frames * sizeof *t->frame);
    t->handlers = from->handlers;
    memcpy(t->handler, from->handler, sizeof t->handler);
}

int tracee_new(struct stepper *r, pid_t tid, struct tracee_parent family, struct tracee **ret)
{
    char name[64];
    struct tracee *t = mem_alloc(1, sizeof *t);

    read_name(tid, name, sizeof name);
    t->tid = tid;
    t->id = r->next_thread++;
    t->process = family.process;
    t->moment.before = &t->before;
    struct peet_thread defined = { t->id, t->process->id, family.has_parent ? family.parent : t->id, family.ordinal,
                                   name };
    int result = peet_stream_open(r->writer, &defined, &t->stream, r->err);
    r->threads.value_size = sizeof t;
    r->numbers.value_size = sizeof(struct trace_numbers);
    struct tracee **place = result == 0 ? map_put(&r->threads, (uint64_t)tid, 0) : NULL;
    struct trace_numbers *number = result == 0 ? map_put(&r->numbers, (uint64_t)tid, 0) : NULL;
    if (result == 0 && (!place || !number))
        result = err_set(r->err, PEET_ERR_MEMORY, "no memory for a thread");
    if (result < 0) {
        tracee_free(t);
        return result;
    }
    *place = *ret = t;
    *number = (struct trace_numbers){ t->id, t->process->id };
    t->process->threads++;
    r->ret->threads++;
    return 0;
}

void tracee_free(struct tracee *t)
{
    free(t->vectors);
    free(t->frame);
    free(t);
}

int tracee_end(struct stepper *r, struct tracee *t, uint64_t how, uint64_t code)
{
    struct tracee_process *p = t->process;
    int result = flow_close(r, t);

    if (result == 0)
        result = PUT_EVENT(r, t, thread_end, 0, how, code);
    if (result == 0)
        result = peet_stream_close(t->stream, r->err); /* otherwise the writer closes it, as truncated */
    map_remove(&r->threads, (uint64_t)t->tid, 0);
    tracee_free(t);
    if (--p->threads == 0) {
        map_remove(&r->processes, (uint64_t)p->pid, 0);
        process_free(p);
    }
    return result;
}
