/* SPDX-License-Identifier: MIT */
/* See sync_names.h. Blocks of the heap are known by the call that allocated them alone: nothing follows the calls above it here, so that what a
 * wrapper of malloc allocates has the wrapper's name. */
#include "study/sync_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "study/objects/objects.h"

enum { MEMBER_ROOM = 200 };

/* What names of locks and barriers are made of. */
struct sync_names {
    const struct source *source;
    struct symbols *symbols;
    struct objects *objects;
};

int sync_names_new(const struct source *source, struct sync_names **ret, struct peet_err *err)
{
    struct sync_names *n = mem_alloc(1, sizeof *n);
    int r;

    n->source = source;
    if ((r = symbols_open(source->trace, &n->symbols, err)) < 0
        || (r = objects_new(source->trace, n->symbols, &n->objects, err)) < 0) {
        sync_names_free(n);
        return r;
    }
    *ret = n;
    return 0;
}

void sync_names_free(struct sync_names *n)
{
    if (!n)
        return;
    objects_free(n->objects);
    symbols_free(n->symbols);
    free(n);
}

static void sync_names_event(void *context, uint32_t thread, const struct peet_event *e)
{
    struct sync_names *n = context;
    const struct source_thread *c = &n->source->thread[thread];
    const uint64_t path[OBJECT_PATH] = { 0 };

    if (objects_wants(e->kind))
        objects_event(n->objects, c->process, c->id, e, path);
}

/* What lies at an offset in an object, without what a library keeps in a lock: members whose names begin with '_'. */
static void member_at(struct objects *o, uint32_t number, uint64_t offset, bool any, char ret[MEMBER_ROOM])
{
    ret[0] = 0;
    if (!objects_member(o, number, offset, any, ret, MEMBER_ROOM))
        return;
    for (char *part = ret; part; part = strchr(part + 1, '.'))
        if (part[*part == '.'] == '_') {
            *part = 0;
            return;
        }
}

bool sync_name_find(struct objects *o, uint32_t process, uint32_t thread, uint64_t addr, bool any, char *ret,
                    size_t room)
{
    uint64_t start, end;
    uint32_t number = objects_find(o, process, thread, addr, 0, &start, &end);
    uint64_t offset = objects_offset(o, process, addr);
    const struct object_info *f = objects_info(o, number);
    char member[MEMBER_ROOM], place[MEMBER_ROOM] = "";

    if (f->kind == OBJECT_UNKNOWN || f->kind == OBJECT_STACK || f->kind == OBJECT_FILE)
        return false;
    member_at(o, number, offset, any, member);
    const char *slash = f->file ? strrchr(f->file, '/') : NULL;
    if (f->file)
        snprintf(place, sizeof place, "%s:%" PRIu32, slash ? slash + 1 : f->file, f->line);
    bool has_place = !place[0] || strstr(f->name, place);
    snprintf(ret, room, "%s%s%s%s%s", f->name, member[0] && member[0] != '[' ? "." : "", member,
             has_place ? "" : " at ", has_place ? "" : place);
    return true;
}

static void sync_names_object(void *context, uint32_t thread, struct sync_summary *ret)
{
    struct sync_names *n = context;
    const struct source_thread *c = &n->source->thread[thread];

    sync_name_find(n->objects, c->process, c->id, ret->addr, false, ret->name, sizeof ret->name);
}

/* The innermost function, and its line. A call site is the address after the call. */
static void sync_names_location(void *context, struct order_location *ret)
{
    struct sync_names *n = context;
    struct symbols_frame frame[SYMBOLS_FRAMES];
    bool is_call = ret->kind == ORDER_WAIT_sync;

    if (ret->addr == 0 || symbols_code(n->symbols, ret->process, ret->addr - is_call, frame) == 0)
        return;
    const char *slash = frame[0].file ? strrchr(frame[0].file, '/') : NULL;
    if (frame[0].file && frame[0].line)
        snprintf(ret->name, sizeof ret->name, "%s, %s:%" PRIu32, frame[0].function, slash ? slash + 1 : frame[0].file,
                 frame[0].line);
    else
        snprintf(ret->name, sizeof ret->name, "%s", frame[0].function);
}

struct sim_listener sync_names_listener(struct sync_names *n)
{
    return (struct sim_listener){ n, sync_names_event, sync_names_object, sync_names_location };
}
