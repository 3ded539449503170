/* SPDX-License-Identifier: MIT */
/* usage: roundtrip FILE RECORDS
 *
 * How fast the trace format is written and read, on made-up streams of 16 threads (tests/synthetic.h): typical ones, where
 * most addresses step by constants and most blocks have the successor that they had before; ones with registers, in
 * which half of the blocks compute addresses; and random ones, where nothing can be foreseen. Items are made beforehand,
 * so that writing is encoding, compressing and handing to the file, and reading is all that gives expanded records.
 * Times are CPU times of one thread. After that, RECORDS random records are written and compared with the oracle, record
 * by record, and so is a third of them, each in a separate process, to see the memory that it takes. The last line has
 * all figures. */
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "tests/synthetic.h"

enum { ROUNDS = 5, THREADS = 16 };

static const char *path;

static void check(int r, const struct peet_err *err)
{
    if (r < 0) {
        fprintf(stderr, "roundtrip: %s\n", err->text);
        exit(1);
    }
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Words of about `records` records of one thread. */
static uint64_t *make_words(const struct synthetic *s, uint32_t thread, size_t records, size_t *ret_words)
{
    struct synthetic_thread *t = malloc(sizeof *t);
    struct synthetic_step x;
    size_t room = 3 * records + 1000, n = 0, made = 0;
    uint64_t *words = malloc(room * sizeof *words);

    if (!t || !words)
        abort();
    synthetic_thread_init(t, s, thread);
    while (made < records && n + 1 + PEET_SLOTS < room) {
        synthetic_next(t, &x);
        words[n++] = x.item;
        memcpy(words + n, x.slot, x.slots * sizeof *words);
        n += x.slots;
        made += 1 + x.slots;
    }
    free(t);
    *ret_words = n;
    return words;
}

struct figures {
    double write, read, bytes;
    uint64_t references, records;
};

static uint64_t read_all(uint64_t *ret_records)
{
    struct peet_trace *t;
    struct peet_cursor *c;
    struct peet_batch b;
    struct peet_err err;
    uint64_t sum = 0, references = 0, records = 0;

    check(peet_trace_open(path, &t, &err), &err);
    for (uint32_t i = 0; i < THREADS; i++) {
        int r;
        check(peet_cursor_open(t, i, 0, &c, &err), &err);
        while ((r = peet_cursor_next(c, &b, &err)) == 1) {
            for (size_t k = 0; k < b.count; k++)
                sum += b.records[k].addr;
            records += b.count;
        }
        check(r, &err);
        peet_cursor_free(c);
        struct peet_totals totals;
        peet_trace_totals(t, i, &totals);
        references += totals.references;
    }
    peet_trace_free(t);
    *ret_records = records + (sum == 1);
    return references;
}

/* One style: write and read `records` records, made from words that are written again and again. */
static struct figures measure_once(const struct synthetic_style *style, size_t records)
{
    struct synthetic *s = synthetic_new(1, style);
    struct peet_writer *w;
    struct peet_stream *stream;
    struct peet_err err;
    struct stat st;
    struct figures f = { 0 };
    size_t each = records / THREADS;

    check(peet_writer_open(path, NULL, &w, &err), &err);
    check(synthetic_define(s, w, &err), &err);
    for (uint32_t i = 0; i < THREADS; i++) {
        size_t n;
        uint64_t *words = make_words(s, i, each, &n);
        check(peet_stream_open(w, &(struct peet_thread){ .id = i, .name = "worker" }, &stream, &err), &err);
        double from = seconds();
        check(peet_stream_put_words(stream, words, n, &err), &err);
        check(peet_stream_close(stream, &err), &err);
        f.write += seconds() - from;
        free(words);
    }
    check(peet_writer_close(w, &err), &err);
    double from = seconds();
    f.references = read_all(&f.records);
    f.read = seconds() - from;
    stat(path, &st);
    f.bytes = (double)st.st_size;
    free(s);
    return f;
}

/* What else a machine does takes time away, and never gives any: the best of some rounds. */
static struct figures measure(const char *name, const struct synthetic_style *style, size_t records)
{
    struct figures f = measure_once(style, records);

    for (int i = 1; i < ROUNDS; i++) {
        struct figures again = measure_once(style, records);
        f.write = again.write < f.write ? again.write : f.write;
        f.read = again.read < f.read ? again.read : f.read;
    }
    printf("%-9s %6.1f M references in %6.1f M records: write %6.1f M/s, read %6.1f M/s, %.3f bytes per reference\n",
           name, (double)f.references * 1e-6, (double)f.records * 1e-6, (double)f.references * 1e-6 / f.write,
           (double)f.references * 1e-6 / f.read, f.bytes / (double)f.references);
    return f;
}

/* ---- identity ---- */

static void write_random(struct synthetic *s, uint64_t items)
{
    static struct synthetic_thread t[THREADS];
    struct peet_stream *stream[THREADS];
    struct peet_writer *w;
    struct peet_err err;
    struct synthetic_step x;

    check(peet_writer_open(path, NULL, &w, &err), &err);
    check(synthetic_define(s, w, &err), &err);
    for (uint32_t i = 0; i < THREADS; i++) {
        synthetic_thread_init(&t[i], s, i);
        check(peet_stream_open(w, &(struct peet_thread){ .id = i, .name = "worker" }, &stream[i], &err), &err);
    }
    for (uint64_t n = 0; n < items; n++)
        for (uint32_t i = 0; i < THREADS; i++) {
            synthetic_next(&t[i], &x);
            check(peet_stream_put(stream[i], x.item, x.slot, &err), &err);
        }
    for (uint32_t i = 0; i < THREADS; i++)
        check(peet_stream_close(stream[i], &err), &err);
    check(peet_writer_close(w, &err), &err);
}

static uint64_t compare_thread(struct synthetic *s, struct peet_trace *trace, uint32_t thread, uint64_t items)
{
    static struct peet_record expected[SYN_RECORDS];
    static struct synthetic_thread t;
    struct peet_cursor *c;
    struct peet_batch b = { 0 };
    struct peet_err err;
    struct synthetic_step x;
    uint64_t records = 0;
    size_t at = 0;

    check(peet_cursor_open(trace, thread, 0, &c, &err), &err);
    synthetic_thread_init(&t, s, thread);
    for (uint64_t n = 0; n < items; n++) {
        synthetic_next(&t, &x);
        size_t count = synthetic_expand(&t, trace, &x, expected);
        for (size_t i = 0; i < count; i++, at++, records++) {
            if (at == b.count) {
                int r = peet_cursor_next(c, &b, &err);
                if (r == 0) {
                    fprintf(stderr, "roundtrip: thread %u ends early\n", thread);
                    exit(1);
                }
                check(r, &err);
                at = 0;
            }
            const struct peet_record *got = &b.records[at], *want = &expected[i];
            if (got->kind != want->kind || got->addr != want->addr
                || (got->kind != PEET_EVENT && (got->id != want->id || got->size != want->size))) {
                fprintf(stderr, "roundtrip: thread %u, item %lu: another record than was written\n", thread,
                        (unsigned long)n);
                exit(1);
            }
        }
    }
    peet_cursor_free(c);
    return records;
}

/* At least `records` records; returns how many they were. */
static uint64_t compare(uint64_t records)
{
    struct synthetic *s = synthetic_new(7, &SYN_RANDOM);
    struct peet_trace *trace;
    struct peet_err err;
    uint64_t total = 0, items = records / THREADS / 4;

    write_random(s, items);
    check(peet_trace_open(path, &trace, &err), &err);
    for (uint32_t i = 0; i < THREADS; i++)
        total += compare_thread(s, trace, i, items);
    peet_trace_free(trace);
    free(s);
    return total;
}

/* The same in a child; *ret_mib is the most memory that it had. */
static uint64_t compare_apart(uint64_t records, double *ret_mib)
{
    int ends[2], status;
    uint64_t total = 0;
    struct rusage usage;

    if (pipe(ends) < 0)
        exit(1);
    pid_t child = fork();
    if (child == 0) {
        total = compare(records);
        _exit(write(ends[1], &total, sizeof total) == sizeof total ? 0 : 1);
    }
    close(ends[1]);
    bool got = read(ends[0], &total, sizeof total) == sizeof total;
    close(ends[0]);
    if (wait4(child, &status, 0, &usage) != child || status != 0 || !got)
        exit(1);
    *ret_mib = (double)usage.ru_maxrss / 1024;
    return total;
}

static double rate(const struct figures *f, double time)
{
    return (double)f->references * 1e-6 / time;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: roundtrip FILE RECORDS\n");
        return 2;
    }
    path = argv[1];
    size_t records = strtoull(argv[2], NULL, 0);
    double mib_third, mib;
    compare_apart(records / 3, &mib_third);
    uint64_t compared = compare_apart(records, &mib);
    printf("identical: %.1f M random records of %d threads; memory %.0f MiB, for a third of them %.0f MiB\n",
           (double)compared * 1e-6, THREADS, mib, mib_third);
    struct synthetic_style plain = SYN_TYPICAL, hard = SYN_RANDOM;
    plain.plain = hard.plain = true;
    size_t some = records / 4 > 12000000 ? records / 4 : 12000000; /* fewer would measure the start */
    struct figures t = measure("typical", &plain, some);
    struct figures c = measure("registers", &SYN_TYPICAL, some);
    struct figures r = measure("random", &hard, some);
    unlink(path);
    printf(
        "records=%lu read=%.1f write=%.1f read_registers=%.1f write_registers=%.1f read_random=%.1f write_random=%.1f "
        "bytes_per_reference=%.3f memory_third=%.0f memory=%.0f\n",
        (unsigned long)compared, rate(&t, t.read), rate(&t, t.write), rate(&c, c.read), rate(&c, c.write),
        rate(&r, r.read), rate(&r, r.write), t.bytes / (double)t.references, mib_third, mib);
    return 0;
}
