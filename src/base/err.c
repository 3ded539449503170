/* SPDX-License-Identifier: MIT */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct peet_err *err, int code, const char *format, ...)
{
    va_list ap;

    if (!err)
        return code;
    va_start(ap, format);
    vsnprintf(err->text, sizeof err->text, format, ap);
    va_end(ap);
    err->code = code;
    return code;
}

int err_sys(struct peet_err *err, int errno_value, const char *format, ...)
{
    va_list ap;

    if (!err)
        return PEET_ERR_IO;
    va_start(ap, format);
    int n = vsnprintf(err->text, sizeof err->text, format, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof err->text)
        snprintf(err->text + n, sizeof err->text - (size_t)n, ": %s", strerror(errno_value));
    err->code = PEET_ERR_IO;
    return PEET_ERR_IO;
}

int err_prefix(struct peet_err *err, const char *format, ...)
{
    va_list ap;
    struct peet_err old;

    if (!err)
        return PEET_ERR_USAGE;
    old = *err;
    va_start(ap, format);
    int n = vsnprintf(err->text, sizeof err->text, format, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof err->text)
        snprintf(err->text + n, sizeof err->text - (size_t)n, ": %.*s", (int)sizeof err->text - n - 3, old.text);
    return err->code;
}
