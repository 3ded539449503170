/* SPDX-License-Identifier: MIT */
/* The key resolver: from keys of event words to items of the trace. Threads that read words share the code tables; a key whose item is defined is
 * resolved without a lock. */
#include <inttypes.h>

#include "base/err.h"
#include "capture/recorder/live.h"

/* What is known of a key, if it is where the last one was; or NULL. Needs no lock. */
static struct live_item *key_peek(const struct live_reader *r, uint64_t key)
{
    const struct live_module *m = r->last;

    return m && key >= m->schema && key < m->schema_end && (key - m->schema) % RAW_ALIGN == 0
               ? &m->items[(key - m->schema) / RAW_ALIGN]
               : NULL;
}

/* Call with the code's lock held. */
static struct live_module *find_module(struct live_reader *r, uint64_t key)
{
    const struct live_process *p = r->thread->process;

    for (size_t i = 0; i < p->modules; i++)
        if (key >= p->module[i]->schema && key < p->module[i]->schema_end)
            return r->last = p->module[i];
    return NULL;
}

/* live_find, with the code's lock held. */
static int key_find(struct live_reader *r, uint64_t key, struct live_item **ret, struct peet_err *err)
{
    struct recorder *s = r->thread->recorder;
    struct live_module *m = find_module(r, key);

    if (!m) { /* a library may have been loaded since */
        int code = processes_scan(s, r->thread->process, false, err);
        if (code < 0)
            return code;
        m = find_module(r, key);
    }
    if (!m || (key - m->schema) % RAW_ALIGN)
        return err_set(err, PEET_ERR_FORMAT, "0x%016" PRIx64 " is the key of no block", key);
    *ret = &m->items[(key - m->schema) / RAW_ALIGN];
    return (*ret)->node ? 0 : code_plan(&s->code, m, key, err);
}

int live_find(struct live_reader *r, uint64_t key, struct live_item **ret, struct peet_err *err)
{
    struct recorder *s = r->thread->recorder;

    if ((*ret = key_peek(r, key)) && (*ret)->node)
        return 0;
    pthread_mutex_lock(&s->code_lock);
    int code = key_find(r, key, ret, err);
    pthread_mutex_unlock(&s->code_lock);
    return code;
}

/* The item of a key that the trace may not know yet; with the code's lock held. */
static int key_define(struct live_reader *r, uint64_t key, uint64_t part, uint32_t *ret_item, struct peet_err *err)
{
    struct live_code *c = &r->thread->recorder->code;
    struct live_item *item;

    if (key & RAW_EVENT)
        return code_event(c, key, ret_item, err);
    int code = key_find(r, key, &item, err);
    if (code == 0 && !item->is_defined)
        code = code_define(c, r->last, key, item, err);
    if (code == 0)
        *ret_item = part == LIVE_ENTRY ? item->entry : item->item;
    return code;
}

/* Whether the trace knows the item of a key; with the code's lock held. */
static bool key_is_known(struct live_reader *r, uint64_t key)
{
    const struct live_code *c = &r->thread->recorder->code;

    if (key & RAW_EVENT)
        return map_find(&c->events, key, 0);
    const struct live_item *item = find_module(r, key) ? key_peek(r, key) : NULL;
    return item && item->is_defined;
}

static int key_item(void *context, uint64_t key, uint32_t *ret_item, struct peet_err *err)
{
    struct live_reader *r = context;
    struct recorder *s = r->thread->recorder;
    uint64_t part = s->code.level == LEVEL_calls && !(key & RAW_EVENT) ? key & (LIVE_ENTRY | LIVE_LAST) : 0;
    const struct live_item *item = key & RAW_EVENT ? NULL : key_peek(r, key -= part);

    if (item && item->is_defined) {
        *ret_item = part == LIVE_ENTRY ? item->entry : item->item;
        return 0;
    }
    pthread_mutex_lock(&s->code_lock);
    if (r->job && !key_is_known(r, key)) { /* items are numbered in the order of the buffers, however fast each is */
        pthread_mutex_unlock(&s->code_lock);
        workers_await_turn(r->job);
        pthread_mutex_lock(&s->code_lock);
    }
    int code = key_define(r, key, part, ret_item, err);
    pthread_mutex_unlock(&s->code_lock);
    return code;
}

/* The module of a loop that is not in that of the last key; it has been found before. */
static const struct live_module *change_module(struct live_reader *r, uint64_t key)
{
    struct recorder *s = r->thread->recorder;

    pthread_mutex_lock(&s->code_lock);
    const struct live_module *m = find_module(r, key);
    pthread_mutex_unlock(&s->code_lock);
    return m;
}

static const struct live_item *find_known(struct live_reader *r, uint64_t key)
{
    const struct live_module *m = r->last;

    if (!m || key < m->schema || key >= m->schema_end)
        m = change_module(r, key);
    return &m->items[(key - m->schema) / RAW_ALIGN];
}

/* Loops left the registers that count: their trips follow. */
static void key_count_iterations(void *context, uint64_t key, uint64_t *slots)
{
    x86_path_resolve(find_known(context, key)->node, slots);
}

static const struct peet_trips *key_trips(void *context, uint64_t key)
{
    const struct live_item *item = find_known(context, key);

    return item->is_simple ? &item->trips : NULL;
}

struct peet_names live_names(struct live_reader *r)
{
    bool strips = r->thread->recorder->code.layout.strips_operands; /* then trips have been counted */

    return (struct peet_names){
        .item = key_item, .context = r, .loop = strips ? NULL : key_count_iterations, .trips = strips ? NULL : key_trips
    };
}
