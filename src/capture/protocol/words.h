/* SPDX-License-Identifier: MIT */
/* Event words: what an instrumented thread writes into its buffers (docs/design/event-words.md). A record is a key and its slots:
 *   0                no record has been written here
 *   below 2^63       address of a schema entry (schema_section.h): a block was executed, and the blocks from the root of its tree to it
 *   2^63 and above   an abstract event: RAW_EVENT | enum peet_event_kind << 48 | address of the call, 48 bits; its arguments follow */
#ifndef CAPTURE_PROTOCOL_WORDS_H
#define CAPTURE_PROTOCOL_WORDS_H

#include <stdint.h>

#define RAW_EVENT ((uint64_t)1 << 63)

/* Words of the longest record. The guard after a buffer is larger. */
enum { RAW_MAX_WORDS = 80 };

static inline uint64_t raw_event_key(unsigned kind, uint64_t site)
{
    return RAW_EVENT | (uint64_t)kind << 48 | (site & 0xffffffffffff);
}

#endif
