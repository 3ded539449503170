/* SPDX-License-Identifier: MIT */
/* Units: barriers, locks, joins and other synchronization of a program, each with its waits and the dependences that rely on it. See
 * docs/design/slack.md.
 *
 * A barrier is a unit at each place in the source; a lock is one with all locks of the same data object; a join is a place. */
#ifndef STUDY_SLACK_UNITS_H
#define STUDY_SLACK_UNITS_H

#include "map/source/source_relax.h"
#include "study/slack/dependences.h"

enum {
    UNIT_RELEASES = 64,   /* releases of a lock by a thread that are kept; of barriers, all are */
    UNIT_LINES = 1 << 14, /* lines of a unit that are listed; further ones only count */
    SECTION_OBJECTS = 16, /* data objects of a critical section that are kept */
    LINE_SHIFT = 6,       /* log2 of the bytes of a line */
};

/* A thread passes knowledge on: the segments that end with it, and when. */
struct unit_release {
    uint32_t must, known;
    uint64_t time; /* cycle */
};

/* A wait at a unit: the thread's last one. */
struct unit_wait {
    uint64_t start, cycles;
    uint64_t needed_until; /* cycle until which a dependence required it; 0: none did */
};

/* Data objects that a critical section used. */
struct section_objects {
    uint32_t object[SECTION_OBJECTS]; /* their names (units_name); rising; all that fit */
    uint32_t count;
    bool is_full; /* there were more */
};

/* A unit and a thread. */
struct unit_thread {
    uint32_t uses;       /* arrivals, acquisitions or waits so far */
    uint32_t first_uses; /* in the first run */
    bool is_relied_on;   /* a dependence relies on the last one */
    bool is_open;        /* the thread is in a critical section */
    bool has_written;    /* that section has written data other than stacks */
    uint32_t depth;      /* of locks of the unit that the thread holds */
    struct unit_wait wait;
    struct section_objects objects; /* of that section */
    struct unit_release *release;   /* release i is at i % UNIT_RELEASES for locks, at i for others */
    uint32_t releases, release_room;
    struct relax_need *need; /* of barriers: rising by arrival */
    uint32_t needs, need_room;
    uint32_t *section; /* of locks: number of the set of objects, by acquisition */
    uint8_t *wrote;    /* of locks: whether the section wrote, by acquisition */
    uint32_t sections, section_room;
};

/* A line that carried dependences of a unit. */
struct unit_line {
    uint32_t object; /* plus 1: name of its data object; 0: new */
    uint32_t member; /* name of the member there */
    uint64_t bytes[DEPENDENCE_KINDS];
};

/* Dependences from one thread to another. */
struct unit_pair {
    uint64_t bytes;
};

/* Sums over all runs. */
struct unit_counts {
    uint64_t uses, waits;
    uint64_t waited, needed; /* cycles; needed: a dependence required them */
    uint64_t longest;        /* cycles */
    uint64_t relied;         /* uses on which a dependence relies */
    uint64_t wrote;          /* critical sections that wrote data */
    uint64_t bytes[DEPENDENCE_KINDS];
    uint64_t unlisted; /* bytes of dependences at lines that are not listed */
};

struct sync_unit {
    uint8_t class;       /* enum relax_class */
    char *name;          /* of its data object; NULL: none */
    uint64_t addr, site; /* of the object, and of the first call; 0: unknown */
    uint32_t process;
    uint32_t same_as;        /* unit that it belongs to; UNIT_NONE: it is one */
    struct map addrs, sites; /* uint8_t: keys of struct relaxation */
    struct unit_counts sum;
    bool has_unknown_need;      /* a need has no arrival of the thread that is needed */
    bool is_needed_now;         /* in this run */
    bool has_plan;              /* needs and sections are those of the first run, and complete */
    uint32_t runs, needed_runs; /* runs that used it; in which a dependence relied on it */
    uint32_t most_members;      /* of barriers: threads in a round */
    struct map lines;           /* struct unit_line, by line and process */
    struct map pairs;           /* struct unit_pair, by from << 32 | to */
    struct unit_thread *thread;
    uint32_t threads;
};

/* The name of a data object or of a member, the same in all runs. */
struct unit_name {
    char *text;
    bool is_stack;
};

struct units {
    struct sync_unit *unit;
    uint32_t count, room;
    struct map by_key;  /* uint32_t: number, by object or place */
    struct map by_name; /* uint32_t: number, by hash of the name */
    struct map sets;    /* uint32_t: number of a set of objects, by its hash */
    struct section_objects *set;
    uint32_t set_count, set_room;
    bool has_plan;    /* the first run has ended */
    struct map names; /* uint32_t: number of a name, plus 1, by its hash */
    struct unit_name *name;
    uint32_t name_count, name_room;
};

void units_release(struct units *u);

/* The unit of an object or place; UNIT_NONE: there is none yet. */
uint32_t units_find(struct units *u, enum relax_class class, uint64_t addr, uint64_t site, uint32_t process);
/* Adds it. name: of its data object; NULL: none. */
uint32_t units_add(struct units *u, enum relax_class class, uint64_t addr, uint64_t site, uint32_t process,
                   const char *name);
void units_join(struct units *u, uint32_t unit, uint32_t same); /* the first one belongs to the second one */

static inline struct sync_unit *units_at(struct units *u, uint32_t number)
{
    while (u->unit[number].same_as != UNIT_NONE)
        number = u->unit[number].same_as;
    return &u->unit[number];
}

/* The number of a name of data. */
uint32_t units_name(struct units *u, const char *text, bool is_stack);

static inline bool units_name_is_stack(const struct units *u, uint32_t name)
{
    return u->name[name].is_stack;
}

struct unit_thread *unit_thread_at(struct sync_unit *x, uint32_t thread);

/* A thread uses a unit at a cycle: arrives, or asks for it. */
void unit_use(struct sync_unit *x, uint32_t thread, uint64_t now);

/* It waited there. */
void unit_waited(struct sync_unit *x, uint32_t thread, uint64_t cycles);

/* It passes knowledge on. */
void unit_release(struct sync_unit *x, uint32_t thread, const struct unit_release *r);

/* The cycle at which a thread passed its segment on; *ret_number: number of that release, from 1. UINT64_MAX: it did not, or that is unknown. */
uint64_t unit_release_time(const struct sync_unit *x, uint32_t thread, uint32_t segment, bool is_must,
                           uint32_t *ret_number);

/* A dependence relies on the unit. */
void unit_relied_on(struct sync_unit *x, const struct dependence *d);

/* A critical section of a thread begins, uses a data object, ends. */
void unit_open_section(struct sync_unit *x, uint32_t thread);
void unit_use_object(struct unit_thread *t, uint32_t object);
void unit_close_section(struct units *u, struct sync_unit *x, uint32_t thread);

/* The end of a run. What threads did in the first one is kept for predictions. */
void units_end_run(struct units *u);

#endif
