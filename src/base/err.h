/* SPDX-License-Identifier: MIT */
/* Filling in a peet_err. A NULL err is allowed everywhere and forgets the text. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "peet/err.h"

/* Sets code and text and returns code, so that a function can end with `return err_set(err, …)`. */
int err_set(struct peet_err *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same, with ": " and what errno_value means behind the text. */
int err_sys(struct peet_err *err, int errno_value, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Puts "text: " in front of what is there already; returns the code that is there. */
int err_prefix(struct peet_err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
