/* SPDX-License-Identifier: MIT */
/* Streams of a program that runs, for callers that have definitions but no writer; the rest is in peet/trace.h. */
#ifndef FORMAT_READ_FEED_H
#define FORMAT_READ_FEED_H

#include "peet/trace.h"

/* As peet_feed_new. schema: made by trace_view; it must outlive the feed. */
int feed_new(struct peet_trace *schema, uint32_t thread, unsigned want, struct peet_feed **ret, struct peet_err *err);

#endif
