/* SPDX-License-Identifier: MIT */
/* Definitions by their producer: checked, numbered, and kept in a schema that other threads may read at the same time.
 *
 * The writer of a file has a builder with a sink, which takes the definitions' bytes. A live program is simulated with a
 * builder that has none: there is a schema, but no file (docs/design/trace.md). */
#ifndef FORMAT_SCHEMA_SCHEMA_BUILDER_H
#define FORMAT_SCHEMA_SCHEMA_BUILDER_H

#include <pthread.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/map.h"
#include "format/schema/schema.h"

/* The file into which a builder puts its definitions. */
struct schema_sink {
    int (*check)(void *context, struct peet_err *err); /* before a definition, without the lock; an error refuses it */
    int (*added)(void *context, struct peet_err *err); /* after it, with the lock: schema_builder.bytes has grown */
};

/* Makes definitions, for several threads. */
struct schema_builder {
    pthread_mutex_t lock; /* of all that follows; the schema may be read without it */
    struct schema *schema;
    struct map strings;              /* uint32_t: number of a string, by its hash */
    struct map events;               /* uint32_t: item of an event, by its site and kind */
    uint32_t next_item, next_string; /* numbers that the next definitions get */
    const struct schema_sink *sink;  /* NULL: definitions are kept in memory only */
    void *sink_context;
    struct buf bytes; /* with a sink: encoded definitions that it has not taken yet */
};

int schema_builder_init(struct schema_builder *b, const struct schema_sink *sink, void *sink_context,
                        struct peet_err *err);
void schema_builder_release(struct schema_builder *b); /* also of a builder that is all zeros */

/* These do what the functions peet_writer_* of the same name promise (peet/trace.h). Any thread may call them. */
int schema_builder_process(struct schema_builder *b, const struct peet_process *p, struct peet_err *err);
int schema_builder_module(struct schema_builder *b, const struct peet_module *m, struct peet_err *err);
int schema_builder_range(struct schema_builder *b, const struct peet_range *r, struct peet_err *err);
int schema_builder_thread(struct schema_builder *b, const struct peet_thread *t, struct peet_err *err);
int schema_builder_meta(struct schema_builder *b, const char *key, const char *value, struct peet_err *err);
int schema_builder_string(struct schema_builder *b, const char *s, uint32_t *ret_number, struct peet_err *err);
int schema_builder_block(struct schema_builder *b, const struct peet_block *block, uint32_t *ret_item,
                         struct peet_err *err);
int schema_builder_loop(struct schema_builder *b, const struct peet_loop *loop, uint32_t *ret_item,
                        struct peet_err *err);
int schema_builder_event(struct schema_builder *b, uint32_t kind, uint64_t site, uint32_t *ret_item,
                         struct peet_err *err);

#endif
