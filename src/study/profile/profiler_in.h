/* SPDX-License-Identifier: MIT */
/* A profile while it is made. access_counts.c finds places and data objects, profiler.c observes references, block_observer.c observes
 * the block engine, which reports totals. */
#ifndef STUDY_PROFILE_PROFILER_IN_H
#define STUDY_PROFILE_PROFILER_IN_H

#include <assert.h>

#include "sim/exec/exec_blocks.h"
#include "study/profile/sampling/estimate_profile.h"
#include "study/profile/profiler.h"

/* While the profiler runs, the place of call i is FIRST_CALL + i, because the number of instructions is not final. */
#define FIRST_CALL ((uint32_t)1 << 31)
enum {
    NO_PLACE = UINT32_MAX,
    ANY_NODE = UINT32_MAX,
    OTHER_NODES = UINT32_MAX - 1, /* in struct stack_binding: frames of other functions, on all paths */
    FIRST_BIN = 1 << 10,          /* references of a time bin at first */
    PATH_LOOKUP = 1 << 14,
    PAIR_LOOKUP = 4096,
    OBJECT_LOOKUP_BITS = 10,
    STACK_LOOKUP_BITS = 13,
    ADDR_LOOKUP = 1024
};

/* The data object to which a place referred last: valid for addresses in [start, end) of the process, until the map changes there. */
struct object_cache {
    uint64_t start, end;     /* addresses [start, end) */
    uint64_t since;          /* version of the address-to-object map for which it was found (change_log) */
    uint32_t process;        /* number in the trace */
    uint32_t node;           /* of the call path for which it holds; ANY_NODE: all */
    uint64_t origin, stride; /* address where the object begins; bytes after which its members repeat, 0: it has none */
    uint32_t access;         /* 1 + index of its access counts; 0: unused */
    bool is_second;          /* of the first of two: the second one was used last */
    uint32_t references, writes; /* not yet in the access counts */
};

_Static_assert(sizeof(struct object_cache) == 64, "one line of the host");

/* A heap block or variable that was looked up, for all places. */
struct object_range {
    uint64_t start, end, since, origin, stride; /* as in struct object_cache */
    uint32_t process, object;                   /* number in the trace; index of the data object */
    uint32_t node;                              /* as in struct object_cache */
};

/* What a place refers to in stacks: in frames of the same function; in those of other ones, on all call paths or on one. In a second frame it is mostly the
 * same variable again: then the place is taken to refer to it in the whole stack. */
struct stack_binding {
    uint64_t frame;  /* end of the first frame */
    uint32_t object; /* the only one, unless it is mixed */
    enum { BINDING_NEW, BINDING_FIRST, BINDING_STEADY, BINDING_MIXED } state;
};

/* The call path on which a block was executed last. */
struct block_path {
    uint32_t node; /* of the calling context tree; valid if path is not 0 */
    uint32_t path; /* 1 + index of the path counts; 0: unused */
    bool stays;    /* control falls through: the block ends with no call, return or jump */
};

/* A struct object_range of a stack, for a place on a call path. */
struct stack_range {
    uint32_t place;
    struct object_range range;
};

/* Finds the data object of an address: by place, then by address, then by lookup in `objects`. */
struct object_lookup {
    struct object_cache *cache[2]; /* of instructions, of calls: two by place, of which the first holds is_second */
    uint32_t caches[2];
    struct object_range range[1 << OBJECT_LOOKUP_BITS]; /* heap blocks and variables, by hash of the address */
    struct stack_range stack[1 << STACK_LOOKUP_BITS];   /* by hash of place and half (stack_range_at) */
    struct place_addr {
        uint32_t next; /* 1 + place; 0: unused */
        uint64_t addr;
    } addr[ADDR_LOOKUP];              /* code addresses, by place */
    const struct change_log *changes; /* of the address-to-object map */
    bool *pointer_known;              /* by thread: its thread pointer was asked for */
    uint32_t threads;
};

/* A profile while it is made. */
struct profiler {
    struct profile *p;     /* the profile that is made; profiler_take returns it and frees the profiler */
    struct source *source; /* borrowed */
    struct profiler_debug debug;
    struct object_lookup lookup;
    struct {
        struct map access; /* uint32_t: index of access counts, by place and object */
        struct map pairs;  /* uint32_t: index of an interference pair, by hash */
        struct map calls;  /* uint32_t: 1 + index of a call, by address */
        struct map paths;  /* uint32_t: index of path counts, by block and node */
        struct map stacks; /* struct stack_binding, by place and node */
        struct map waits;  /* uint32_t: index of a wait, by place and number of earlier waits of that place */
    } number;
    struct time_bin *bin; /* of the current reference */
    uint32_t *path_of;    /* by thread: 1 + index of the path counts of its current block */
    uint32_t threads;
    struct block_path *block_path; /* by block */
    uint32_t block_paths;
    uint32_t path_lookup[PATH_LOOKUP]; /* 1 + index of path counts, by hash of node and block */
    uint32_t pair_lookup[PAIR_LOOKUP]; /* 1 + index of an interference pair, by hash */
    uint32_t line_shift;               /* log2 of the bytes of a line */
    bool by_blocks;                    /* the block engine reports totals */
    struct sim_observer observer;
    struct block_observer block_observer;
};

static inline void *checked_memory(void *p)
{
    assert(p); /* these tables are small compared with what is simulated */
    return p;
}

/* ---- places and data objects (access_counts.c) ---- */

/* After the run: gives calls their final places, after all instructions. */
void profiler_number_calls(struct profile *p);
/* Adds the references that are counted in object caches to the access counts. */
void profiler_flush_counts(struct profiler *x);
/* The place of a call of library code. */
uint32_t profiler_call_place(struct profiler *x, uint64_t addr);
/* The object cache of an address to which a thread refers at a place. */
struct object_cache *profiler_find_object(struct profiler *x, uint32_t thread, uint64_t addr, uint32_t place);
static inline bool object_cache_holds(const struct profiler *x, struct object_cache *s, uint32_t thread, uint64_t addr)
{
    return addr - s->start < s->end - s->start && s->process == x->source->thread[thread].process && s->access
           && (s->node == ANY_NODE || s->node == paths_current(x->p->paths.thread[thread])->node)
           && change_log_revalidate(x->lookup.changes, &s->since, s->start, s->end);
}
static inline struct object_cache *profiler_object_of(struct profiler *x, uint32_t thread, uint64_t addr,
                                                      uint32_t place)
{
    if (place < x->lookup.caches[0]) {
        struct object_cache *two = &x->lookup.cache[0][2 * (size_t)place], *s = two + two->is_second;
        if (object_cache_holds(x, s, thread, addr))
            return s;
    }
    return profiler_find_object(x, thread, addr, place);
}

/* ---- references and events (profiler.c) ---- */

enum profile_cause profile_cause_of(const struct profiler *x, const struct sim_reference *r);
/* The time bin of the next reference. */
struct time_bin *profile_bin_now(struct profile *p);
/* Counts `count` references that waited for one cause, `misses` of them misses. removed_by: 1 + index of the access counts of the references
 * that removed their lines; 0: unknown. */
void profiler_add_miss(struct profiler *x, struct access_counts *c, uint32_t removed_by, enum profile_cause cause,
                       uint64_t misses, uint64_t count, uint64_t stall);
/* Counts a reference, on a path, whose outcome a sample does not determine. */
void profiler_add_unknown(struct profiler *x, struct access_counts *c, uint32_t path);
void profiler_event(void *context, uint32_t thread, const struct peet_event *e);
uint32_t profiler_path(struct profiler *x, uint32_t node, uint32_t block); /* 1 + index of its path counts */
struct block_counts *profile_block_counts(struct profile *p, uint32_t process, uint32_t block);

/* ---- totals of the block engine (block_observer.c) ---- */

struct block_observer profiler_block_observer(struct profiler *x);
/* After the run: sets the references of all time bins, most of which were not reported one by one. */
void profile_fill_bins(struct profile *p);

#endif
