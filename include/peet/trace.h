/* SPDX-License-Identifier: MIT */
/* Reading and writing traces; the file format is docs/trace-format.md.
 *
 * Reading: open a trace, open a cursor per thread, take batches until there are none. A truncated or damaged trace can be
 * opened, too: peet_trace_problem has what is missing. A cursor returns PEET_ERR_DAMAGED once for a damaged chunk, and continues after
 * it with the next call. Cursors of one trace may be used at the same time, each by one thread; a pipe has one cursor.
 *
 * Writing: open a writer, define what runs, open a stream per thread and put items into it. Any thread may make definitions at
 * any time; streams, and parts of a stream, do not wait for each other. */
#ifndef PEET_TRACE_H
#define PEET_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "peet/err.h"
#include "peet/record.h"
#include "peet/schema.h"

#define PEET_FORMAT_VERSION 1

/* ---- reading ---- */

struct peet_trace;
struct peet_cursor;

/* Totals of the chunks of a thread. Instructions and references are recorded ones, without gaps. */
struct peet_totals {
    uint64_t instructions, references, events, chunks; /* counts */
    uint64_t bytes;                                    /* of the chunks in the file */
    bool whole;                                        /* its last chunk was found */
};

/* Opens the trace at path; "-" is standard input. A file is opened through its index, or by a scan when it lacks one. */
int peet_trace_open(const char *path, struct peet_trace **ret, struct peet_err *err);
void peet_trace_free(struct peet_trace *t);

/* Problems found so far, one line each; NULL at the end. They are warnings: everything that is whole can be read. */
const char *peet_trace_problem(const struct peet_trace *t, size_t i);

/* Everything below lives as long as the trace. Meta data: pairs of key and value; NULL at the end. */
const char *peet_trace_path(const struct peet_trace *t);
bool peet_trace_is_pipe(const struct peet_trace *t);
uint64_t peet_trace_bytes(const struct peet_trace *t);
uint64_t peet_trace_time_chunks(const struct peet_trace *t);
const char *peet_trace_meta(const struct peet_trace *t, size_t i, const char **ret_value);
const char *peet_trace_meta_get(const struct peet_trace *t, const char *key);        /* NULL when there is none */
const struct peet_process *peet_trace_process(const struct peet_trace *t, size_t i); /* these: NULL at the end */
const struct peet_module *peet_trace_module(const struct peet_trace *t, size_t i);
const struct peet_range *peet_trace_range(const struct peet_trace *t, size_t i);
const struct peet_thread *peet_trace_thread(const struct peet_trace *t, size_t i);
int peet_trace_totals(const struct peet_trace *t, uint32_t thread, struct peet_totals *ret); /* -1: no such thread */

/* The schema by number. Items are numbered from 1; an item is exactly one of the three. */
uint32_t peet_trace_items(const struct peet_trace *t); /* one more than the greatest number */
uint32_t peet_trace_insns(const struct peet_trace *t);
const struct peet_block *peet_trace_block(const struct peet_trace *t, uint32_t item); /* NULL when it is no block */
const struct peet_loop *peet_trace_loop(const struct peet_trace *t, uint32_t item);
const struct peet_event_item *peet_trace_event(const struct peet_trace *t, uint32_t item);
const struct peet_insn *peet_trace_insn(const struct peet_trace *t, uint32_t number);
const struct peet_block *peet_trace_insn_block(const struct peet_trace *t, uint32_t number);
const char *peet_trace_string(const struct peet_trace *t, uint64_t number); /* NULL when there is none */

/* The symbol that covers addr in a process, or NULL. */
const struct peet_symbol *peet_trace_symbol(const struct peet_trace *t, uint32_t process, uint64_t addr);

/* A sentence for readers of times, if several threads of a process ran and the trace has no event by which one waits for another; else NULL.
 * Of a trace from a pipe, valid at its end. */
const char *peet_trace_lacks_order(const struct peet_trace *t);

/* NULL, or for a trace without instructions and events a sentence that says so. */
const char *peet_trace_lacks_content(const struct peet_trace *t);

enum {
    PEET_WANT_LOOPS = 1, /* loops are not expanded: they come as PEET_LOOP records */
    PEET_WANT_PHYSICAL = 2,
    PEET_WANT_VALUES = 4,
    PEET_WANT_REPEATS =
        8, /* strided loops come as PEET_REPEAT records; not with physical addresses, values or a seek */
};

/* All threads, chunk by chunk in the order of the file: the only way to read a pipe. A batch never mixes threads. */
#define PEET_ALL_THREADS UINT32_MAX

int peet_cursor_open(struct peet_trace *t, uint32_t thread, unsigned want, struct peet_cursor **ret,
                     struct peet_err *err);
void peet_cursor_free(struct peet_cursor *c);

/* The next batch: 1 and *batch, 0 at the end, or an error. After PEET_ERR_DAMAGED the next call continues after the damaged chunk. */
int peet_cursor_next(struct peet_cursor *c, struct peet_batch *batch, struct peet_err *err);

/* Not for PEET_ALL_THREADS. Sets the cursor to the block with instruction n of the thread (from 0), or the first block after it; 0, or an error. */
int peet_cursor_seek(struct peet_cursor *c, uint64_t n, struct peet_err *err);

/* The next item as it was written, unexpanded: 1, 0 at the end, or an error. Not to be mixed with peet_cursor_next. */
int peet_cursor_item(struct peet_cursor *c, uint32_t *ret_item, const uint64_t **ret_slots, struct peet_err *err);
const uint64_t *peet_cursor_registers(const struct peet_cursor *c); /* before the item that was handed out last */
uint32_t peet_cursor_thread(const struct peet_cursor *c);           /* whose item that was */
uint64_t peet_cursor_position(const struct peet_cursor *c);         /* its thread's instructions before it */

/* An entry of a thread's timing stream. */
struct peet_time {
    uint64_t position; /* recorded instructions of the thread before it */
    uint64_t ns;       /* nanoseconds since the start of the recording */
    uint32_t cpu;      /* processor on which the thread ran */
};
int peet_trace_times(struct peet_trace *t, uint32_t thread, struct peet_time **ret, size_t *ret_count,
                     struct peet_err *err);

/* One loop execution, block by block: init, then next until it returns NULL. Values and counts are copied. */
struct peet_loop_walk {
    const struct peet_trace *trace;
    const struct peet_loop *loop;
    uint64_t value[PEET_SLOTS], counts[PEET_SLOTS]; /* of the loop, as they are now */
    uint64_t slot[PEET_SLOTS];                      /* of the block returned last */
    uint64_t left[PEET_LOOP_DEPTH];                 /* by open loop: iterations left */
    uint16_t node, open[PEET_LOOP_DEPTH];           /* numbers of the next node, and of the nodes of open loops */
    int depth;                                      /* open loops */
};
void peet_loop_walk_init(struct peet_loop_walk *w, const struct peet_trace *t, const struct peet_loop_run *run);
const struct peet_block *peet_loop_walk_next(struct peet_loop_walk *w, const uint64_t **ret_slots);

/* ---- writing ---- */

struct peet_writer;
struct peet_stream;

/* How a trace is written. */
struct peet_writer_config {
    size_t chunk_words; /* words of a stream that make a chunk; 0: 131072 */
    int level;          /* of zstd's compression; 0: level 1 */
};

/* Creates the trace at path ("-": standard output). After a failure there is no file at path. */
int peet_writer_open(const char *path, const struct peet_writer_config *config, struct peet_writer **ret,
                     struct peet_err *err);
int peet_writer_open_fd(int fd, const struct peet_writer_config *config, struct peet_writer **ret,
                        struct peet_err *err);

/* Writes the index and closes; streams that are still open are closed as cut off. The first error of the whole life of
 * the writer is reported here. Frees the writer also when it fails. */
int peet_writer_close(struct peet_writer *w, struct peet_err *err);

void peet_writer_totals(struct peet_writer *w, struct peet_totals *ret); /* of what is in the file so far */

int peet_writer_meta(struct peet_writer *w, const char *key, const char *value, struct peet_err *err);
int peet_writer_process(struct peet_writer *w, const struct peet_process *p, struct peet_err *err);
int peet_writer_module(struct peet_writer *w, const struct peet_module *m, struct peet_err *err);
int peet_writer_range(struct peet_writer *w, const struct peet_range *r, struct peet_err *err);
int peet_writer_string(struct peet_writer *w, const char *s, uint32_t *ret_number, struct peet_err *err);

/* These check what they are given, set *ret_item and ignore the id inside. Blocks of a loop must be defined before it. */
int peet_writer_block(struct peet_writer *w, const struct peet_block *b, uint32_t *ret_item, struct peet_err *err);
int peet_writer_loop(struct peet_writer *w, const struct peet_loop *l, uint32_t *ret_item, struct peet_err *err);
int peet_writer_event(struct peet_writer *w, uint32_t kind, uint64_t site, uint32_t *ret_item, struct peet_err *err);

int peet_stream_open(struct peet_writer *w, const struct peet_thread *thread, struct peet_stream **ret,
                     struct peet_err *err);
int peet_stream_put(struct peet_stream *s, uint32_t item, const uint64_t *slots, struct peet_err *err);
/* Many at once: words holds item number, slots, item number, slots … */
int peet_stream_put_words(struct peet_stream *s, const uint64_t *words, size_t count, struct peet_err *err);
/* How the trip count of a loop follows from its words: slot[end] is removed, and appended after all other slots as
 * ((slot[end] - slot[start] - add) >> shift) * inverse & mask. */
struct peet_trips {
    uint64_t add, inverse, mask; /* operands of the formula */
    uint8_t end, start;          /* numbers of slots; start: PEET_LOOP_ZERO is the constant 0 */
    uint8_t shift;               /* bits */
};
/* A key resolver, for words with keys of the producer in place of item numbers. The item of a key must not change within a stream. */
struct peet_names {
    int (*item)(void *context, uint64_t key, uint32_t *ret_item,
                struct peet_err *err); /* may be called several times for a key */
    void *context;
    /* For a loop without trips: called for each execution with the words after the key; turns them into the loop's slots. May be NULL. */
    void (*loop)(void *context, uint64_t key, uint64_t *slots);
    /* For each key of a loop, may be called several times: how its trip count follows; NULL: by loop(). May be NULL. */
    const struct peet_trips *(*trips)(void *context, uint64_t key);
};
/* Words of loops are changed in place. */
int peet_stream_put_named(struct peet_stream *s, uint64_t *words, size_t count, const struct peet_names *names,
                          struct peet_err *err);
/* The number of the chunk that the next item goes to. A `page` event is valid to the end of its chunk, so
 * that every chunk can be read alone: a producer of physical addresses repeats page events when this number changes. */
uint64_t peet_stream_chunk(const struct peet_stream *s);
int peet_stream_time(struct peet_stream *s, const struct peet_time *time, struct peet_err *err);
int peet_stream_flush(struct peet_stream *s, struct peet_err *err); /* hands to the file what there is */
int peet_stream_close(struct peet_stream *s, struct peet_err *err); /* the thread is at its end; frees s */

/* Parts: items of a stream that are encoded separately, so that several threads can work on one stream. A part can be used several times
 * for any stream of the writer: begin, put, finish, commit. Commits to a stream, and all other calls for it, are made in the order of its
 * items. The calls before a commit need no order: each part may be filled by another thread, also while others put into the
 * same stream or commit. A part makes chunks that have no items of others. */
struct peet_part;
int peet_part_new(struct peet_writer *w, struct peet_part **ret, struct peet_err *err);
void peet_part_free(struct peet_part *p); /* what has not been committed is lost */

/* Empties the part. registers: the PEET_REGISTERS registers after the items that will precede it; addresses follow from them. The stream must be
 * open; it does not change before the commit. */
void peet_part_begin(struct peet_part *p, struct peet_stream *s, const uint64_t *registers);
int peet_part_put_named(struct peet_part *p, uint64_t *words, size_t count, const struct peet_names *names,
                        struct peet_err *err);
/* Packs the items so far; else the commit does. */
int peet_part_finish(struct peet_part *p, struct peet_err *err);
/* Writes the part after all items that were put into the stream or committed before; the part is then empty. */
int peet_part_commit(struct peet_part *p, struct peet_err *err);

/* ---- live streams ---- */

/* A stream whose items are expanded at once and not written, for simulation of a running program. Its
 * definitions are the writer's. */
struct peet_feed;
int peet_feed_new(struct peet_writer *w, uint32_t thread, unsigned want, struct peet_feed **ret, struct peet_err *err);
void peet_feed_free(struct peet_feed *f);
/* The next words, as for peet_stream_put_named. All words before must have been read. The words must stay in place until they are read, and are changed. */
void peet_feed_put(struct peet_feed *f, uint64_t *words, size_t count, const struct peet_names *names);
/* Sets a register before the first item. */
void peet_feed_register(struct peet_feed *f, unsigned reg, uint64_t value);
int peet_feed_next(struct peet_feed *f, struct peet_batch *batch, struct peet_err *err); /* 0: all words are read */

/* The definitions so far, for the lookup functions above; valid as long as the writer. */
const struct peet_trace *peet_writer_schema(struct peet_writer *w);

#endif
