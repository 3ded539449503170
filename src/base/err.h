/* SPDX-License-Identifier: MIT */
/* Setting a peet_err. A NULL err is allowed everywhere; then there is no text. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "peet/err.h"

/* Sets code and text and returns code, so that a function can end with `return err_set(err, …)`. */
int err_set(struct peet_err *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Sets PEET_ERR_IO and text, with ": " and the text of errno_value after it; returns the code. */
int err_sys(struct peet_err *err, int errno_value, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Puts "text: " before the text of an error; returns its code. */
int err_prefix(struct peet_err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
