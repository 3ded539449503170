/* SPDX-License-Identifier: MIT */
#include "capture/producer.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/version.h"

void recording_warn(struct recording *r, const char *format, ...)
{
    va_list ap;

    r->warning = mem_room(r->warning, r->warnings, sizeof *r->warning);
    va_start(ap, format);
    r->warning[r->warnings++] = mem_vformat(format, ap);
    va_end(ap);
}

void recording_release(struct recording *r)
{
    for (size_t i = 0; i < r->warnings; i++)
        free(r->warning[i]);
    free(r->warning);
    *r = (struct recording){ 0 };
}

static double producer_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int write_meta(const struct producer *producer, struct peet_writer *w, struct peet_err *err)
{
    struct utsname machine;
    char by[100];
    int r;

    snprintf(by, sizeof by, "peet %s record --%s", PEET_VERSION, producer->name);
    if ((r = peet_writer_meta(w, "producer", by, err)) < 0)
        return r;
    return uname(&machine) == 0 ? peet_writer_meta(w, "machine", machine.machine, err) : 0;
}

/* The trace is the beginning of a run, though each of its streams has an end. */
static int write_stop(const struct recording *ret, struct peet_writer *w, struct peet_err *err)
{
    char text[60];

    snprintf(text, sizeof text, "after %" PRIu64 " instructions", ret->instructions);
    return peet_writer_meta(w, "stopped", text, err);
}

/* The trace lacks threads that the program had. */
static int write_unrecorded(const struct recording *ret, struct peet_writer *w, struct peet_err *err)
{
    char text[60];

    snprintf(text, sizeof text, "%" PRIu64 " thread%s", ret->unrecorded, ret->unrecorded == 1 ? "" : "s");
    return peet_writer_meta(w, "unrecorded", text, err);
}

static int producer_run(const struct producer *producer, const struct producer_config *config, struct producer_state *s,
                        const char *out, struct recording *ret, struct peet_err *err)
{
    struct peet_writer *w;
    struct peet_err later;
    int r = producer->start(s, config, err);

    if (r < 0 || (r = peet_writer_open(out, NULL, &w, err)) < 0)
        return r;
    double start = producer_now();
    if ((r = write_meta(producer, w, err)) == 0)
        r = producer->run(s, w, ret, err);
    if (r == 0 && ret->stopped)
        r = write_stop(ret, w, err);
    if (r == 0 && ret->unrecorded)
        r = write_unrecorded(ret, w, err);
    int closed = peet_writer_close(w, &later); /* the first error is reported */
    if (r == 0 && closed < 0)
        r = err_set(err, closed, "%s", later.text);
    ret->seconds = producer_now() - start;
    return r;
}

int record_trace(const struct producer *producer, const struct producer_config *config, const char *out,
                 struct recording *ret, struct peet_err *err)
{
    struct producer_state *s = calloc(1, producer->state_size);

    *ret = (struct recording){ 0 };
    if (!s)
        return err_set(err, PEET_ERR_MEMORY, "no memory to record");
    double start = producer_now();
    int r = producer->record ? producer->record(s, config, out, ret, err)
                             : producer_run(producer, config, s, out, ret, err);
    if (producer->record)
        ret->seconds = producer_now() - start;
    producer->release(s);
    free(s);
    return r;
}
