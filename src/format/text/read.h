/* SPDX-License-Identifier: MIT */
/* The state of reading text, shared by those who read its lines. */
#ifndef FORMAT_TEXT_READ_H
#define FORMAT_TEXT_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "format/text/def.h"
#include "format/text/scan.h"
#include "peet/trace.h"

struct text_thread {
    struct peet_stream *stream;
    uint64_t line;            /* where it was defined */
    uint64_t reached;         /* the position that the text has come to */
    uint64_t left_out;        /* how much of that is not in the trace */
    bool ended;               /* its last line was thread_end */
    struct map frame;         /* of pages: struct text_frame */
    struct text_thread *next; /* in the order of their definitions */
};

struct text_frame {
    uint64_t number, chunk; /* the chunk in which it was said last */
};

enum text_definition { TEXT_NOTHING, TEXT_MODULE, TEXT_BLOCK, TEXT_LOOP };

struct text_reader {
    struct text_scan scan;
    struct peet_writer *writer;
    struct arena kept, arena; /* arena: for the definition that is being read */
    enum text_definition now;
    struct map names, threads, processes; /* struct text_item, struct text_thread *, the line of the definition */
    struct text_thread *first, **last;    /* last: where the next one goes */
    struct text_thread *thread;           /* of the last line of execution, and its number */
    uint32_t thread_id;
    bool ended; /* "end" was there */

    struct peet_module module;
    uint64_t module_line;
    struct peet_segment *segment;
    struct peet_symbol *symbol;
    size_t segment_room, symbol_room;
    struct text_block_def block;
    struct text_loop_def loop;
};

int text_no_memory(struct text_reader *r);

/* Puts the place in front of what the writer had to say, and returns the code. */
int text_at_line(struct text_reader *r, uint64_t line, int code);

/* The rest of a line that begins with that word. */
int text_meta_line(struct text_reader *r);
int text_process_line(struct text_reader *r);
int text_module_line(struct text_reader *r);
int text_range_line(struct text_reader *r);
int text_thread_line(struct text_reader *r);

/* A line inside a module: 1; 0 when it is something else; or an error. */
int text_module_inner_line(struct text_reader *r);
int text_module_end(struct text_reader *r);

#endif
