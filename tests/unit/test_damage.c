/* SPDX-License-Identifier: MIT */
/* Damaged traces: whatever happens to the bytes, a reader does not crash, does not hang, and hands out no wrong record
 * without saying that something is wrong. */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "check.h"
#include "format/file/chunk.h"
#include "tests/synthetic.h"
#include "word_items.h"

enum { THREADS = 3, ITEMS = 250, MOST = 400000, TRUNCATIONS = 1000, FLIPS = 10000, DEEP_FLIPS = 10000 };

static char folder[] = "/tmp/peet-damage.XXXXXX";
static char path[100];
static uint8_t *good; /* the bytes of the whole trace */
static size_t good_size;

/* A record, an event's content included, as one number; and where it stands. */
struct print {
    uint64_t digest, position;
};
static struct print *print[THREADS];
static size_t prints[THREADS];

static uint64_t digest_of(const struct peet_batch *b, const struct peet_record *r)
{
    uint64_t d = (r->addr * 31 + r->kind) * 31 + r->size;

    if (r->kind != PEET_EVENT)
        return d * 31 + r->id;
    const struct peet_event *e = &b->events[r->id];
    d = (d * 31 + e->kind) * 31 + e->site;
    for (unsigned i = 0; i < e->args; i++)
        d = d * 1000003 + e->arg[i];
    return d;
}

static void make_trace(void)
{
    static const struct synthetic_style style = { .regular = 9, .wander = 60, .loops = 30, .events = 300 };
    struct synthetic *s = synthetic_new(77, &style);
    static struct synthetic_thread t[THREADS];
    struct synthetic_step x;
    struct peet_stream *stream[THREADS];
    struct peet_writer *w;
    struct peet_err err;

    if (!CHECK(peet_writer_open(path, &(struct peet_writer_config){ .chunk_words = 200 }, &w, &err) == 0)
        || !CHECK(synthetic_define(s, w, &err) == 0))
        exit(1);
    for (uint32_t i = 0; i < THREADS; i++) {
        synthetic_thread_init(&t[i], s, i);
        CHECK(peet_stream_open(w, &(struct peet_thread){ .id = i, .name = "worker" }, &stream[i], &err) == 0);
    }
    for (int n = 0; n < ITEMS; n++)
        for (uint32_t i = 0; i < THREADS; i++) {
            synthetic_next(&t[i], &x);
            CHECK(peet_stream_put(stream[i], x.item, x.slot, &err) == 0);
        }
    for (uint32_t i = 0; i < THREADS; i++)
        CHECK(peet_stream_close(stream[i], &err) == 0);
    CHECK(peet_writer_close(w, &err) == 0);
    free(s);
}

static void read_good(void)
{
    struct peet_trace *t;
    struct peet_cursor *c;
    struct peet_batch b;
    struct peet_err err;

    if (!CHECK(peet_trace_open(path, &t, &err) == 0))
        exit(1);
    for (uint32_t i = 0; i < THREADS; i++) {
        uint64_t position = 0;
        print[i] = malloc(MOST * sizeof **print);
        peet_cursor_open(t, i, 0, &c, &err);
        while (peet_cursor_next(c, &b, &err) == 1)
            for (size_t k = 0; k < b.count && prints[i] < MOST; k++) {
                print[i][prints[i]++] = (struct print){ digest_of(&b, &b.records[k]), position };
                position += b.records[k].kind == PEET_BLOCK ? b.records[k].size : 0;
            }
        peet_cursor_free(c);
    }
    peet_trace_free(t);
    FILE *f = fopen(path, "rb");
    fseek(f, 0, SEEK_END);
    good_size = (size_t)ftell(f);
    rewind(f);
    good = malloc(good_size);
    CHECK_EQ(fread(good, 1, good_size, f), good_size);
    fclose(f);
}

static void write_bytes(const uint8_t *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    CHECK_EQ(write(fd, bytes, n), n);
    close(fd);
}

/* Does the batch stand somewhere in the good stream, at the position that it claims? */
static bool is_genuine(const struct peet_batch *b, size_t *hint)
{
    const struct print *p = print[b->thread];

    for (size_t from = *hint; from < prints[b->thread]; from++) {
        if (p[from].position > b->position)
            break;
        size_t k = 0;
        while (p[from].position == b->position && k < b->count && from + k < prints[b->thread]
               && p[from + k].digest == digest_of(b, &b->records[k]))
            k++;
        if (k == b->count) {
            *hint = from + k;
            return true;
        }
    }
    return false;
}

struct outcome {
    bool refused, told;
    size_t wrong, missing;
};

/* Reads all that can be read. */
static struct outcome read_damaged(void)
{
    struct outcome o = { 0 };
    struct peet_trace *t;
    struct peet_cursor *c;
    struct peet_batch b;
    struct peet_err err;

    if (peet_trace_open(path, &t, &err) < 0) {
        o.refused = err.text[0] != 0;
        return o;
    }
    o.told = peet_trace_problem(t, 0) != NULL;
    for (uint32_t i = 0; i < THREADS; i++) {
        size_t got = 0, hint = 0;
        int r = peet_cursor_open(t, i, 0, &c, &err);
        o.told |= r < 0;
        for (int tries = 0; r >= 0 && tries < 10000; tries++) {
            int n = peet_cursor_next(c, &b, &err);
            if (n == 0)
                break;
            o.told |= n < 0;
            if (n == 1) {
                got += b.count;
                o.wrong += !is_genuine(&b, &hint);
            }
        }
        if (r >= 0)
            peet_cursor_free(c);
        o.missing += got < prints[i] ? prints[i] - got : 0;
    }
    peet_trace_free(t);
    return o;
}

static void judge(struct outcome o, const char *what, size_t at, int how)
{
    bool ok = o.refused || (o.wrong == 0 && (o.told || o.missing == 0));

    if (!CHECK(ok))
        printf("# %s at byte %zu (%d): wrong batches %zu, missing records %zu, told %d\n", what, at, how, o.wrong,
               o.missing, o.told);
}

static void the_whole_trace_is_read_without_complaint(void)
{
    struct outcome o = read_damaged();

    CHECK(!o.refused && !o.told);
    CHECK_EQ(o.wrong, 0);
    CHECK_EQ(o.missing, 0);
}

static void a_truncated_trace_yields_its_whole_chunks_and_says_what_is_missing(void)
{
    uint64_t random = 5;
    size_t some = 0;

    for (int n = 0; n < TRUNCATIONS; n++) {
        size_t size = n < 200 ? good_size - 1 - (size_t)n : synthetic_random(&random) % good_size;
        write_bytes(good, size);
        struct outcome o = read_damaged();
        judge(o, "truncated", size, 0);
        CHECK(o.refused || o.told);
        some += !o.refused && o.missing < prints[0] + prints[1] + prints[2];
    }
    CHECK(some > TRUNCATIONS / 2); /* most of the cuts leave something that can be read */
}

static void a_flipped_byte_is_found_or_harmless(void)
{
    uint8_t *bytes = malloc(good_size);
    uint64_t random = 6;
    size_t intact = 0;

    for (int n = 0; n < FLIPS; n++) {
        size_t at = synthetic_random(&random) % good_size;
        memcpy(bytes, good, good_size);
        bytes[at] ^= (uint8_t)(1 + synthetic_below(&random, 255));
        write_bytes(bytes, good_size);
        struct outcome o = read_damaged();
        judge(o, "flipped", at, bytes[at]);
        intact += !o.refused && !o.told;
    }
    CHECK(intact < FLIPS / 20); /* only padding may change unnoticed */
    free(bytes);
}

/* Makes the checksums of a chunk right again, so that the code after the checks has to cope. */
static void mend(uint8_t *bytes, size_t at)
{
    struct chunk_header h;
    size_t chunk = FILE_HEADER_BYTES;

    while (chunk + CHUNK_HEADER_BYTES <= good_size && chunk_header_decode(good + chunk, &h)) {
        size_t end = chunk + CHUNK_HEADER_BYTES + h.payload + chunk_padding(h.payload);
        if (at >= chunk && at < end) {
            put_le64(bytes + chunk + 64, checksum_of(bytes + chunk + CHUNK_HEADER_BYTES, h.payload));
            put_le64(bytes + chunk + 72, checksum_of(bytes + chunk, 72));
        }
        chunk = end;
    }
}

static void damage_behind_a_right_checksum_neither_crashes_nor_hangs(void)
{
    uint8_t *bytes = malloc(good_size);
    uint64_t random = 7;

    for (int n = 0; n < DEEP_FLIPS; n++) {
        size_t at = FILE_HEADER_BYTES + synthetic_random(&random) % (good_size - FILE_HEADER_BYTES - TRAILER_BYTES);
        memcpy(bytes, good, good_size);
        bytes[at] ^= (uint8_t)(1 + synthetic_below(&random, 255));
        mend(bytes, at);
        write_bytes(bytes, good_size);
        struct peet_trace *t;
        struct peet_cursor *c;
        struct peet_batch b;
        struct peet_err err;
        if (peet_trace_open(path, &t, &err) < 0)
            continue;
        if (CHECK(peet_cursor_open(t, PEET_ALL_THREADS, PEET_WANT_PHYSICAL | PEET_WANT_VALUES, &c, &err) == 0)) {
            int r = 1;
            for (int batches = 0; r != 0 && batches < 300; batches++)
                r = peet_cursor_next(c, &b, &err);
            peet_cursor_free(c);
        }
        uint32_t thread = (uint32_t)n % THREADS;
        CHECK(!trace_thread(t, thread) || word_items_compare(t, thread, &(unsigned){ 0 }) >= 0);
        peet_trace_free(t);
    }
    free(bytes);
}

static void when_no_more_can_be_written_what_was_written_stays_readable(void)
{
    pid_t child = fork();

    if (child == 0) {
        struct synthetic *s = synthetic_new(3, &SYN_RANDOM);
        struct synthetic_thread *t = malloc(sizeof *t);
        struct synthetic_step x;
        struct peet_writer *w;
        struct peet_stream *stream;
        struct peet_err err = { 0 };
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 300000, 300000 });
        synthetic_thread_init(t, s, 0);
        int r = peet_writer_open(path, &(struct peet_writer_config){ .chunk_words = 2000 }, &w, &err);
        r = r < 0 ? r : synthetic_define(s, w, &err);
        r = r < 0 ? r : peet_stream_open(w, &(struct peet_thread){ .name = "x" }, &stream, &err);
        for (int i = 0; r == 0 && i < 1000000; i++) {
            synthetic_next(t, &x);
            r = peet_stream_put(stream, x.item, x.slot, &err);
        }
        bool told = r == PEET_ERR_IO && strstr(err.text, "cannot write");
        bool again = peet_stream_put(stream, x.item, x.slot, &err) == PEET_ERR_IO;
        bool at_end = peet_stream_close(stream, &err) == PEET_ERR_IO && peet_writer_close(w, &err) == PEET_ERR_IO;
        _exit(told && again && at_end ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    CHECK_EQ(status, 0);
    struct peet_trace *t;
    struct peet_err err;
    struct peet_totals totals;
    if (CHECK(peet_trace_open(path, &t, &err) == 0)) {
        CHECK(peet_trace_problem(t, 0) != NULL);
        CHECK(peet_trace_totals(t, 0, &totals) == 0 && totals.chunks > 10 && !totals.whole);
        peet_trace_free(t);
    }
}

static void a_killed_writer_leaves_all_its_whole_chunks(void)
{
    int ready[2];
    char byte;

    CHECK(pipe(ready) == 0);
    pid_t child = fork();
    if (child == 0) {
        struct synthetic *s = synthetic_new(3, &SYN_TYPICAL);
        struct synthetic_thread *t = malloc(sizeof *t);
        struct synthetic_step x;
        struct peet_writer *w;
        struct peet_stream *stream;
        struct peet_err err;
        synthetic_thread_init(t, s, 0);
        peet_writer_open(path, &(struct peet_writer_config){ .chunk_words = 1000 }, &w, &err);
        synthetic_define(s, w, &err);
        peet_stream_open(w, &(struct peet_thread){ .name = "x" }, &stream, &err);
        for (int i = 0;; i++) {
            synthetic_next(t, &x);
            peet_stream_put(stream, x.item, x.slot, &err);
            if (i == 20000 && write(ready[1], "x", 1) != 1)
                _exit(1);
        }
    }
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ready[0]);
    close(ready[1]);
    struct peet_trace *t;
    struct peet_cursor *c;
    struct peet_batch b;
    struct peet_err err;
    struct peet_totals totals;
    uint64_t instructions = 0;
    if (!CHECK(peet_trace_open(path, &t, &err) == 0) || !CHECK(peet_trace_totals(t, 0, &totals) == 0))
        return;
    CHECK(peet_trace_problem(t, 0) != NULL);
    CHECK(totals.instructions > 20000 && !totals.whole);
    CHECK(peet_cursor_open(t, 0, 0, &c, &err) == 0);
    while (peet_cursor_next(c, &b, &err) == 1)
        for (size_t i = 0; i < b.count; i++)
            instructions += b.records[i].kind == PEET_BLOCK ? b.records[i].size : 0;
    CHECK_EQ(instructions, totals.instructions);
    peet_cursor_free(c);
    peet_trace_free(t);
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/t.peet", folder);
    make_trace();
    read_good();
    RUN(the_whole_trace_is_read_without_complaint);
    RUN(a_truncated_trace_yields_its_whole_chunks_and_says_what_is_missing);
    RUN(a_flipped_byte_is_found_or_harmless);
    RUN(damage_behind_a_right_checksum_neither_crashes_nor_hangs);
    RUN(when_no_more_can_be_written_what_was_written_stays_readable);
    RUN(a_killed_writer_leaves_all_its_whole_chunks);
    unlink(path);
    rmdir(folder);
    for (int i = 0; i < THREADS; i++)
        free(print[i]);
    free(good);
    return check_done();
}
