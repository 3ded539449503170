/* SPDX-License-Identifier: MIT */
/* Any bytes as what a guest says: on its console, in the plugin's report, as its processes' mappings, and as a command
 * line. The first byte says in what pieces the console comes. */
#include "fuzz.h"

#include "capture/modules.h"
#include "capture/system/system.h"

static void take_output(void *context, unsigned app, const char *text, size_t bytes)
{
    size_t *sum = context;

    if (app < 1)
        abort();
    for (size_t i = 0; i < bytes; i++)
        *sum += (unsigned char)text[i];
}

static void hear(const uint8_t *data, size_t size, size_t piece)
{
    struct console c;
    size_t sum = 0;

    console_init(&c, 3);
    c.output = take_output;
    c.context = &sum;
    for (size_t at = 0; at < size; at += piece)
        console_take(&c, (const char *)data + at, size - at < piece ? size - at : piece);
    console_release(&c);
}

static void read_report(const uint8_t *data, size_t size)
{
    struct report r = { 0 };
    char path[FUZZ_PATH];
    int fd = fuzz_file(data, size, path);

    report_read(path, &r);
    report_read(path, &r);
    report_release(&r);
    close(fd);
}

static void read_text(const char *text)
{
    struct mappings m;
    struct words w = { 0 };
    struct peet_err err = { 0 };

    mappings_parse(text, &m);
    for (size_t i = 0; i < m.count; i++)
        if (!m.at[i].name)
            abort();
    mappings_release(&m);
    fuzz_check(words_split("app", text, &w, &err), &err);
    words_release(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (!text)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    hear(data, size, size ? 1 + data[0] : 1);
    read_report(data, size);
    read_text(text);
    free(text);
    return 0;
}
