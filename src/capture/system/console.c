/* SPDX-License-Identifier: MIT */
/* What a guest writes to its serial port. Lines of our init and of applications are as guest/init.c says; all else is the
 * kernel's, or the firmware's. A guest that is not ours says none of the former. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "capture/system/system.h"

void console_init(struct console *c, size_t apps)
{
    *c = (struct console){ .apps = apps, .app = mem_alloc(apps, sizeof *c->app) };
}

void console_release(struct console *c)
{
    free(c->line);
    free(c->last);
    free(c->app);
    *c = (struct console){ 0 };
}

/* "exit 2 0" */
static void hear_end(struct console *c, const char *line, const char *verb, bool by_signal)
{
    size_t n = strlen(verb);
    char *end;

    if (strncmp(line, verb, n) != 0 || line[n] != ' ')
        return;
    unsigned long app = strtoul(line + n, &end, 10), value = strtoul(end, NULL, 10);
    if (app < 1 || app > c->apps)
        return;
    c->app[app - 1].ended = true;
    c->app[app - 1].status = (int)(by_signal ? value & 0x7f : (value & 0xff) << 8);
}

static void hear_init(struct console *c, const char *line)
{
    c->up |= strcmp(line, "up") == 0;
    c->done |= strcmp(line, "done") == 0;
    hear_end(c, line, "exit", false);
    hear_end(c, line, "signal", true);
}

/* "2|text" and "2>text"; false: it is neither. */
static bool hear_app(struct console *c, char *line, size_t n)
{
    size_t digits = 0;
    unsigned app = 0;

    while (digits < n && digits < 4 && isdigit((unsigned char)line[digits]))
        app = 10 * app + (unsigned)(line[digits++] - '0');
    if (!digits || digits == n || app < 1 || app > c->apps || (line[digits] != '|' && line[digits] != '>'))
        return false;
    bool whole = line[digits] == '|';
    if (whole)
        line[n] = '\n'; /* stood there before */
    if (c->output)
        c->output(c->context, app, line + digits + 1, n - digits - 1 + whole);
    return true;
}

static void console_scan(struct console *c, char *line, size_t n)
{
    static const char init[] = "peet: ";

    line[n] = 0;
    if (n > sizeof init - 1 && !strncmp(line, init, sizeof init - 1)) {
        hear_init(c, line + sizeof init - 1);
        return;
    }
    if (c->up && hear_app(c, line, n))
        return;
    while (n > 0 && isspace((unsigned char)line[n - 1]))
        line[--n] = 0;
    if (n > 0) {
        free(c->last);
        c->last = mem_string(line);
    }
}

void console_take(struct console *c, const char *bytes, size_t n)
{
    char *longer = realloc(c->line, c->bytes + n + 1), *end;

    if (!longer)
        return;
    memcpy(longer + c->bytes, bytes, n);
    c->line = longer;
    c->bytes += n;
    char *from = c->line;
    while ((end = memchr(from, '\n', (size_t)(c->line + c->bytes - from)))) {
        console_scan(c, from, (size_t)(end - from));
        from = end + 1;
    }
    c->bytes -= (size_t)(from - c->line);
    memmove(c->line, from, c->bytes);
}
