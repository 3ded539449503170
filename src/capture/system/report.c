/* SPDX-License-Identifier: MIT */
/* Reads the plugin's report, lines KEY=VALUE. The plugin replaces the file from time to time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/system/system.h"

void report_read(const char *path, struct report *ret)
{
    FILE *f = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    struct {
        const char *key;
        uint64_t *value;
    } known[] = { { "armed", &ret->armed },           { "threads", &ret->threads },
                  { "processes", &ret->processes },   { "instructions", &ret->instructions },
                  { "references", &ret->references }, { "lost", &ret->lost } };

    if (!f)
        return;
    words_release(&ret->warnings);
    words_release(&ret->errors);
    while (getline(&line, &room, f) >= 0) {
        char *value = strchr(line, '=');
        if (!value || !strchr(value, '\n'))
            continue;
        *value++ = 0;
        value[strcspn(value, "\n")] = 0;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (!strcmp(line, known[i].key))
                *known[i].value = strtoull(value, NULL, 10);
        if (!strcmp(line, "warning"))
            words_add(&ret->warnings, "%s", value);
        if (!strcmp(line, "error"))
            words_add(&ret->errors, "%s", value);
        ret->there = true;
    }
    free(line);
    fclose(f);
}

void report_release(struct report *r)
{
    words_release(&r->warnings);
    words_release(&r->errors);
    *r = (struct report){ 0 };
}
