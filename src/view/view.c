/* SPDX-License-Identifier: MIT */
#include "view/view.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/err.h"

static const struct view *const views[] = {
#define X(name) &view_##name,
    VIEWS(X)
#undef X
};

#define X(name) +1
enum { COUNT = VIEWS(X) };
#undef X

const struct view *view_at(size_t i)
{
    return i < COUNT ? views[i] : NULL;
}

const struct view *view_find(const char *name)
{
    for (size_t i = 0; view_at(i); i++)
        if (!strcmp(view_at(i)->name, name))
            return view_at(i);
    return NULL;
}

static int columns_of(int fd)
{
    const char *text = getenv("COLUMNS");
    struct winsize size;
    char *end;

    if (text && *text) {
        long columns = strtol(text, &end, 10);
        if (!*end && columns > 0 && columns < 100000)
            return (int)columns;
    }
    return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

struct view_style view_style_of(FILE *out)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    int fd = fileno(out);

    if (fd < 0 || !isatty(fd))
        return (struct view_style){ 0 };
    bool can_draw = !(term && !strcmp(term, "dumb"));
    return (struct view_style){
        .colour = can_draw && !(no_color && *no_color),
        .bars = can_draw,
        .width = columns_of(fd),
    };
}

int view_show(const char *name, const struct result *r, FILE *out, struct peet_err *err)
{
    struct view_style style = view_style_of(out);

    return view_show_in(name, r, &style, out, err);
}

int view_show_in(const char *name, const struct result *r, const struct view_style *style, FILE *out,
                 struct peet_err *err)
{
    const struct view *v = view_find(name);

    if (!v)
        return err_set(err, PEET_ERR_USAGE, "there is no output format '%s'", name);
    for (const struct table *t = r->first; t; t = t->next)
        assert(!t->filled);
    int code = v->show(r, style, out, err);
    if (code < 0)
        return code;
    errno = EIO; /* for an error that happened earlier, of which only the flag is left */
    if (fflush(out) || ferror(out))
        return err_sys(err, errno, "cannot write the result");
    return 0;
}

int view_save(const char *name, const struct result *r, const char *path, struct peet_err *err)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = fopen(path, "w"), *all = out ? open_memstream(&text, &bytes) : NULL;

    if (!all) {
        int reason = errno;
        if (out)
            fclose(out);
        return err_sys(err, reason, "%s", path);
    }
    setvbuf(out, NULL, _IONBF, 0); /* so that what goes wrong is known at once */
    int code = view_show_in(name, r, &(struct view_style){ 0 }, all, err);
    fclose(all);
    if (code == 0 && fwrite(text, 1, bytes, out) != bytes)
        code = err_sys(err, errno, "%s: cannot write the result", path);
    if (fclose(out) && code == 0)
        code = err_sys(err, errno, "%s: cannot write the result", path);
    free(text);
    return code;
}

const char *view_real(double real, char buffer[32])
{
    if (!isfinite(real))
        return "";
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(buffer, 32, "%.*g", digits, real);
        if (strtod(buffer, NULL) == real)
            break;
    }
    return buffer;
}
