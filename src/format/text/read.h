/* SPDX-License-Identifier: MIT */
/* The reader of the text form: its private struct, for the modules that read lines. */
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

/* A thread of the text. */
struct text_thread {
    struct peet_stream *stream;
    uint64_t line;            /* number of the line that defines it */
    uint64_t reached;         /* position after its last line, in instructions */
    uint64_t left_out;        /* instructions before that which the text lacks */
    bool ended;               /* its last line was thread_end */
    struct map frame;         /* struct text_frame, by page */
    struct text_thread *next; /* in the order of definitions; NULL: the last one */
};

/* The physical frame of a page. */
struct text_frame {
    uint64_t number, chunk; /* of the frame; of the last chunk that has its page event */
};

/* The definition that is being read. */
enum text_definition { TEXT_NOTHING, TEXT_MODULE, TEXT_BLOCK, TEXT_LOOP };

/* Reads text and writes a trace. */
struct text_reader {
    struct text_scan scan;
    struct peet_writer *writer;
    struct arena kept;  /* memory until the end of the text */
    struct arena arena; /* memory of the definition that is being read */
    enum text_definition now;
    struct map names;                  /* struct text_item, by number and letter */
    struct map threads;                /* struct text_thread *, by number */
    struct map processes;              /* number of the defining line, by number */
    struct text_thread *first, **last; /* list of threads; link for the next one */
    struct text_thread *thread;        /* thread of the last line of execution */
    uint32_t thread_id;                /* its number */
    bool ended;                        /* the line "end" was read */

    struct peet_module module;
    uint64_t module_line;
    struct peet_segment *segment;
    struct peet_symbol *symbol;
    size_t segment_room, symbol_room;
    struct text_block_def block;
    struct text_loop_def loop;
};

int text_no_memory(struct text_reader *r);

/* Prefixes an error of the writer with file and line; returns the code. */
int text_at_line(struct text_reader *r, uint64_t line, int code);

/* Read the rest of a line that begins with the word in the function's name. */
int text_meta_line(struct text_reader *r);
int text_process_line(struct text_reader *r);
int text_module_line(struct text_reader *r);
int text_range_line(struct text_reader *r);
int text_thread_line(struct text_reader *r);

/* Reads a line of a module: 1; 0: the line is no line of a module; or an error. */
int text_module_inner_line(struct text_reader *r);
int text_module_end(struct text_reader *r);

#endif
