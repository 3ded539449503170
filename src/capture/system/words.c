/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/system/system.h"

/* The NULL at the end has its room, too. */
static void words_add_take(struct words *w, char *word)
{
    if (w->count == 0)
        w->item = mem_room(w->item, w->count, sizeof *w->item);
    w->item = mem_room(w->item, w->count + 1, sizeof *w->item);
    w->item[w->count++] = word;
    w->item[w->count] = NULL;
}

void words_add(struct words *w, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    words_add_take(w, mem_vformat(format, ap));
    va_end(ap);
}

/* Takes one word off *line into `out`, which has room for all of it; false: a quote has no end. */
static bool take_word(const char **line, char *out)
{
    const char *p = *line;
    char quote = 0;

    for (; *p && (quote || !strchr(" \t\n", *p)); p++) {
        if (quote != '\'' && *p == '\\' && p[1] && (!quote || strchr("\"\\$`", p[1])))
            *out++ = *++p;
        else if (quote ? *p == quote : *p == '\'' || *p == '"')
            quote = quote ? 0 : *p;
        else
            *out++ = *p;
    }
    *out = 0;
    *line = p;
    return !quote;
}

int words_split(const char *option, const char *line, struct words *ret, struct peet_err *err)
{
    struct words found = { 0 };

    for (const char *p = line; *(p += strspn(p, " \t\n"));) {
        char *word = mem_alloc(strlen(p) + 1, 1);
        if (!take_word(&p, word)) {
            free(word);
            words_release(&found);
            return err_set(err, PEET_ERR_USAGE, "%s \"%s\": a quote is never closed", option, line);
        }
        words_add_take(&found, word);
    }
    *ret = found;
    return 0;
}

void words_release(struct words *w)
{
    for (size_t i = 0; i < w->count; i++)
        free(w->item[i]);
    free(w->item);
    *w = (struct words){ 0 };
}
