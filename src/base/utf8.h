/* SPDX-License-Identifier: MIT */
/* Text that may be UTF-8, may be anything: reading it strictly, and showing it to people. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The character at s: its length in bytes, or 0 at the end and where there is no valid UTF-8. */
size_t utf8_decode(const char *s, uint32_t *ret);

/* Writes s to out with all that could harm a terminal made visible: controls as \n, \x1b or \u{202e}, bytes that are no
 * UTF-8 as \xff. Takes at most `limit` columns; text that is cut ends in "…". Returns the columns taken; with a NULL
 * out it only counts. */
size_t utf8_show(const char *s, size_t limit, FILE *out);

/* Writes s as a field of CSV (RFC 4180), with all that could harm a terminal made visible as in utf8_show. A spreadsheet
 * takes what begins with =, +, - or @ for a formula: an apostrophe stands before it, unless it is a number. */
void utf8_csv(const char *s, FILE *out);

/* Writes s as a string of JSON, quotes included; a byte that is no UTF-8 becomes U+FFFD. */
void utf8_json(const char *s, FILE *out);

#endif
