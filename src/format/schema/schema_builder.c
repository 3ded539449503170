/* SPDX-License-Identifier: MIT */
#include "format/schema/schema_builder.h"

#include <inttypes.h>
#include <xxhash.h>

#include "base/err.h"

int schema_builder_init(struct schema_builder *b, const struct schema_sink *sink, void *sink_context,
                        struct peet_err *err)
{
    *b = (struct schema_builder){ .schema = schema_new(),
                                  .strings.value_size = sizeof(uint32_t),
                                  .events.value_size = sizeof(uint32_t),
                                  .next_item = 1,
                                  .next_string = 1,
                                  .sink = sink,
                                  .sink_context = sink_context };
    if (!b->schema)
        return err_set(err, PEET_ERR_MEMORY, "no memory for definitions");
    pthread_mutex_init(&b->lock, NULL);
    return 0;
}

void schema_builder_release(struct schema_builder *b)
{
    if (!b->schema)
        return;
    pthread_mutex_destroy(&b->lock);
    map_release(&b->strings);
    map_release(&b->events);
    schema_free(b->schema);
    buf_release(&b->bytes);
    *b = (struct schema_builder){ 0 };
}

/* Locks the builder for a definition, unless its sink refuses it. */
static int builder_begin(struct schema_builder *b, struct peet_err *err)
{
    int r = b->sink ? b->sink->check(b->sink_context, err) : 0;

    if (r == 0)
        pthread_mutex_lock(&b->lock);
    return r;
}

/* Ends a definition: r is what the schema returned for it. */
static int builder_end(struct schema_builder *b, int r, struct peet_err *err)
{
    if (r == 0 && b->sink)
        r = b->sink->added(b->sink_context, err);
    pthread_mutex_unlock(&b->lock);
    return r;
}

#define DEFINE(type, name) \
    int schema_builder_##name(struct schema_builder *b, const struct type *def, struct peet_err *err) \
    { \
        struct peet_err own; \
        int r = builder_begin(b, err = err ? err : &own); \
        if (r < 0) \
            return r; \
        r = schema_add_##name(b->schema, def, err); \
        if (r == 0 && b->sink) \
            defs_put_##name(&b->bytes, def); \
        return builder_end(b, r, err); \
    }

DEFINE(peet_process, process)
DEFINE(peet_module, module)
DEFINE(peet_range, range)
DEFINE(peet_thread, thread)

int schema_builder_meta(struct schema_builder *b, const char *key, const char *value, struct peet_err *err)
{
    struct peet_err own;
    int r = builder_begin(b, err = err ? err : &own);

    if (r < 0)
        return r;
    r = schema_add_meta(b->schema, key, value, err);
    if (r == 0 && b->sink)
        defs_put_meta(&b->bytes, key, value);
    return builder_end(b, r, err);
}

int schema_builder_string(struct schema_builder *b, const char *s, uint32_t *ret_number, struct peet_err *err)
{
    struct peet_err own;
    int r = builder_begin(b, err = err ? err : &own);

    if (r < 0)
        return r;
    uint32_t *known = map_put(&b->strings, XXH3_64bits(s, strlen(s)), 0);
    if (known && *known && !strcmp(b->schema->strings.at[*known], s)) {
        *ret_number = *known;
        pthread_mutex_unlock(&b->lock);
        return 0;
    }
    uint32_t number = b->next_string;
    r = schema_add_string(b->schema, number, s, err);
    if (r == 0) {
        if (b->sink)
            defs_put_string(&b->bytes, number, s);
        b->next_string++;
        if (known)
            *known = number;
        *ret_number = number;
    }
    return builder_end(b, r, err);
}

#define DEFINE_ITEM(type, name) \
    int schema_builder_##name(struct schema_builder *b, const struct type *def, uint32_t *ret_item, \
                              struct peet_err *err) \
    { \
        struct peet_err own; \
        int r = builder_begin(b, err = err ? err : &own); \
        if (r < 0) \
            return r; \
        struct type copy = *def; \
        copy.id = b->next_item; \
        r = schema_add_##name(b->schema, &copy, err); \
        if (r == 0) { \
            if (b->sink) \
                defs_put_##name(&b->bytes, &copy); \
            b->next_item++; \
            *ret_item = copy.id; \
        } \
        return builder_end(b, r, err); \
    }

DEFINE_ITEM(peet_block, block)
DEFINE_ITEM(peet_loop, loop)

int schema_builder_event(struct schema_builder *b, uint32_t kind, uint64_t site, uint32_t *ret_item,
                         struct peet_err *err)
{
    struct peet_err own;
    int r = builder_begin(b, err = err ? err : &own);

    if (r < 0)
        return r;
    uint32_t *known = map_put(&b->events, site, kind);
    const struct item *item = known && *known ? schema_item(b->schema, *known) : NULL;
    if (item && item->event->kind == kind && item->event->site == site) {
        *ret_item = *known;
        pthread_mutex_unlock(&b->lock);
        return 0;
    }
    struct peet_event_item e = { b->next_item, kind, site };
    r = kind < PEET_EVENT_KINDS ? schema_add_event(b->schema, &e, (unsigned)peet_event_arity(kind), err)
                                : err_set(err, PEET_ERR_FORMAT, "no event kind %" PRIu32, kind);
    if (r == 0) {
        if (b->sink)
            defs_put_event(&b->bytes, &e);
        b->next_item++;
        if (known)
            *known = e.id;
        *ret_item = e.id;
    }
    return builder_end(b, r, err);
}
