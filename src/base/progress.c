/* SPDX-License-Identifier: MIT */
#include "base/progress.h"

#include <time.h>
#include <unistd.h>

#include "base/utf8.h"

enum { PATIENCE_NS = 500000000, INTERVAL_NS = 200000000, NAME_COLUMNS = 40 };

static uint64_t progress_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void progress_init(struct progress *p, FILE *out, const char *what, uint64_t total, const char *unit)
{
    *p = (struct progress){ .out = out, .what = what, .total = total, .unit = unit };
    p->active = isatty(fileno(out));
    p->start = progress_now();
}

void progress_total(struct progress *p, uint64_t total)
{
    if (p)
        p->total = total;
}

static void progress_show(const struct progress *p, uint64_t done, double seconds)
{
    fputs("\r\033[K", p->out);
    utf8_show(p->what, NAME_COLUMNS, p->out);
    if (p->total)
        fprintf(p->out, ": %3.0f %%", 100.0 * (double)(done < p->total ? done : p->total) / (double)p->total);
    else
        fprintf(p->out, ": %.1f M %s", (double)done / 1e6, p->unit);
    if ((double)done / seconds >= 1e5) /* not of files and the like */
        fprintf(p->out, ", %.1f M/s", (double)done / 1e6 / seconds);
    fflush(p->out);
}

void progress_at(struct progress *p, uint64_t done)
{
    if (!p || !p->active)
        return;
    uint64_t t = progress_now();
    if (t - p->start < PATIENCE_NS || t - p->last < INTERVAL_NS)
        return;
    progress_show(p, done, (double)(t - p->start) / 1e9);
    p->last = t;
    p->shown = true;
}

void progress_release(struct progress *p)
{
    if (!p)
        return;
    if (p->shown)
        fputs("\r\033[K", p->out);
    p->active = p->shown = false;
}
