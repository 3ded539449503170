/* SPDX-License-Identifier: MIT */
/* Event words of a recorded thread (word_reader) are the items that a cursor returns one by one, in whole and in damaged traces. */
#include <fcntl.h>
#include <sys/stat.h>

#include "trace_file.h"
#include "word_items.h"

enum { THREADS = 3, ITEMS = 3000, FLIPS = 300 };

static void words_are_the_items_of_a_cursor(void)
{
    struct synthetic *s = synthetic_new(5, &FULL);
    struct peet_trace *t;
    struct peet_err err;
    unsigned errors = 0;

    for (size_t chunk = 150; chunk < 1000000; chunk *= 50) {
        CHECK(write_trace(s, THREADS, ITEMS, &(struct peet_writer_config){ .chunk_words = chunk }));
        if (!fine(peet_trace_open(path, &t, &err), &err))
            break;
        for (uint32_t i = 0; i < THREADS; i++)
            CHECK(word_items_compare(t, i, &errors) >= ITEMS);
        peet_trace_free(t);
    }
    CHECK_EQ(errors, 0);
    free(s);
}

static void damage_is_reported_at_the_same_item(void)
{
    struct synthetic *s = synthetic_new(6, &FULL);
    struct peet_trace *t;
    struct peet_err err;
    struct stat status;
    unsigned errors = 0, differences = 0;
    int fd;

    CHECK(write_trace(s, THREADS, ITEMS, &(struct peet_writer_config){ .chunk_words = 200 }));
    if (!CHECK((fd = open(path, O_RDWR)) >= 0) || !CHECK(fstat(fd, &status) == 0))
        return;
    srandom(1);
    for (int n = 0; n < FLIPS; n++) {
        off_t at = random() % status.st_size;
        uint8_t byte = 0, wrong;
        CHECK(pread(fd, &byte, 1, at) == 1);
        wrong = (uint8_t)(byte ^ 1 << random() % 8);
        CHECK(pwrite(fd, &wrong, 1, at) == 1);
        if (peet_trace_open(path, &t, &err) == 0) {
            for (uint32_t i = 0; i < THREADS; i++)
                differences += trace_thread(t, i) && word_items_compare(t, i, &errors) < 0;
            peet_trace_free(t);
        }
        CHECK(pwrite(fd, &byte, 1, at) == 1);
    }
    CHECK_EQ(differences, 0);
    CHECK(errors > FLIPS / 10);
    close(fd);
    free(s);
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/t.peet", folder);
    RUN(words_are_the_items_of_a_cursor);
    RUN(damage_is_reported_at_the_same_item);
    unlink(path);
    rmdir(folder);
    return check_done();
}
