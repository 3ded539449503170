/* SPDX-License-Identifier: MIT */
/* The report file, lines of key=value for the command that started QEMU, replaced atomically each time; and the file of mode=count. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/qemu/plugin/plugin.h"

static void sum_counts(struct peet_totals *t)
{
    for (size_t i = 0; i < plugin.threads; i++) {
        t->instructions += plugin.thread[i]->count.instructions;
        t->references += plugin.thread[i]->count.references;
    }
}

static void write_warnings(FILE *f)
{
    const char *error = output_error();

    if (error)
        fprintf(f, "error=%s\n", error);
    if (plugin.count.near_misses)
        fprintf(f,
                "warning=%" PRIu64
                " times a stack pointer lay just beyond the window of a target's stack; what was executed "
                "there is missing: give a larger k, or stack\n",
                plugin.count.near_misses);
    if (plugin.count.collisions)
        fprintf(f, "warning=%" PRIu64 " times a thread seemed to run on two processors; one of them was left out\n",
                plugin.count.collisions);
    if (plugin.count.unknown_entries)
        fprintf(f, "warning=%" PRIu64 " times it was not known where the kernel interrupted a thread\n",
                plugin.count.unknown_entries);
}

static void write_lines(FILE *f, bool is_over)
{
    struct peet_totals t;

    output_totals(&t);
    if (plugin.settings.counts)
        sum_counts(&t);
    fprintf(f, "armed=%d\nover=%d\n", plugin.is_armed ? 1 : 0, is_over);
    fprintf(f, "processes=%" PRIu32 "\nthreads=%zu\n", plugin.process_count, plugin.marked);
    fprintf(f, "instructions=%" PRIu64 "\nreferences=%" PRIu64 "\n", t.instructions, t.references);
    fprintf(f, "lost=%" PRIu64 "\nblocks=%" PRIu64 "\nodd=%" PRIu64 "\nstale=%" PRIu64 "\n", plugin.count.lost,
            plugin.count.blocks, plugin.count.irregular_blocks, plugin.count.stale);
    write_warnings(f);
}

void report_write(bool is_over)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    if (!plugin.settings.report)
        return;
    pthread_mutex_lock(&lock);
    char *path = mem_format("%s.new", plugin.settings.report);
    FILE *f = fopen(path, "w");
    if (f) {
        write_lines(f, is_over);
        if (fclose(f) == 0)
            rename(path, plugin.settings.report);
    }
    free(path);
    pthread_mutex_unlock(&lock);
}

static void write_text(FILE *f, const char *text)
{
    putc('"', f);
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == '"' || *text == '\\')
            fprintf(f, "\\u%04x", (unsigned char)*text);
        else
            putc(*text, f);
    putc('"', f);
}

static int counts_failed(struct peet_err *err)
{
    return err_sys(err, errno, "%s: the counts could not be written", plugin.settings.out);
}

int counts_write(struct peet_err *err)
{
    FILE *f = fopen(plugin.settings.out, "w");

    if (!f)
        return counts_failed(err);
    fprintf(f, "{ \"machine\": \"%s\", \"threads\": [", plugin.isa->name);
    for (size_t i = 0; i < plugin.threads; i++) {
        const struct guest_thread *t = plugin.thread[i];
        if (!t->target)
            continue;
        fprintf(f, "%s\n  { \"id\": %" PRIu32 ", \"tid\": %" PRIu64 ", \"process\": %" PRIu32 ", \"program\": ",
                i ? "," : "", t->id, t->target->tid, t->process->id);
        write_text(f, t->process->program);
        fprintf(f, ", \"instructions\": %" PRIu64 ", \"references\": %" PRIu64 " }", t->count.instructions,
                t->count.references);
    }
    fprintf(f, "\n] }\n");
    return fclose(f) == 0 ? 0 : counts_failed(err);
}
