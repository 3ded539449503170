/* SPDX-License-Identifier: MIT */
/* A source of a program that runs under control of the simulator (capture/control). */
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/control/control.h"
#include "capture/protocol/control.h"
#include "capture/protocol/shared_memory.h"
#include "capture/x86/layout.h"
#include "map/source/source.h"

enum { MOST_THREADS = 1 << 16 };
_Static_assert((int)SOURCE_CANCELLED == (int)RAW_CANCELLED, "simulator and program agree on the reply");

#define TOO_MANY "the program has made more than %d threads, which is all that can be simulated"

/* A running program as a source. */
struct program {
    struct source source;
    struct control *control;                   /* of the program */
    uint64_t registers[PEET_REGISTERS];        /* trace registers of the thread that began last */
    struct source_thread thread[MOST_THREADS]; /* by index */
};

static void program_update(struct program *p)
{
    p->source.has_ended = control_is_over(p->control);
    while (p->source.threads < control_threads(p->control) && p->source.threads < MOST_THREADS) {
        uint32_t i = p->source.threads++;
        p->thread[i] = (struct source_thread){ control_thread_number(p->control, i),
                                               control_thread_process(p->control, i), i == 0 };
    }
}

static int program_next(struct source *s, uint32_t thread, uint64_t reply, struct peet_batch *ret, struct peet_err *err)
{
    struct program *p = (struct program *)(void *)s;
    int r = control_next(p->control, thread, reply, ret, err);

    program_update(p);
    if (r >= 0 && control_threads(p->control) > MOST_THREADS)
        return err_set(err, PEET_ERR_USAGE, TOO_MANY, MOST_THREADS);
    return r;
}

static int program_words(struct source *s, uint32_t thread, uint64_t reply, struct source_words *ret,
                         struct peet_err *err)
{
    struct program *p = (struct program *)(void *)s;
    uint64_t program_pointer = 0;
    int r = control_next_words(p->control, thread, reply, &ret->word, &ret->end, &ret->names, &program_pointer, err);

    program_update(p);
    if (r >= 0 && control_threads(p->control) > MOST_THREADS)
        return err_set(err, PEET_ERR_USAGE, TOO_MANY, MOST_THREADS);
    p->registers[X86_FS_REGISTER] = program_pointer;
    ret->registers = program_pointer ? p->registers : NULL;
    return r;
}

static void program_skip(struct source *s, uint32_t thread, uint64_t references, uint32_t line_bytes)
{
    control_skip(((struct program *)(void *)s)->control, thread, references, line_bytes);
}

static unsigned program_calls(struct source *s, uint32_t thread, struct source_calls *ret)
{
    struct control_call call[SOURCE_CALLS];
    unsigned n = control_calls(((struct program *)(void *)s)->control, thread, call, SOURCE_CALLS, &ret->root_slot);

    ret->is_whole = ret->root_slot != 0;
    for (unsigned i = 0; i < n; i++) {
        ret->site[i] = call[i].site;
        ret->back[i] = call[i].back;
        ret->slot[i] = call[i].slot;
    }
    return n;
}

static uint64_t program_pointer(struct source *s, uint32_t thread)
{
    return control_thread_pointer(((struct program *)(void *)s)->control, thread);
}

static void program_free(struct source *s)
{
    struct program *p = (struct program *)(void *)s;

    control_free(p->control);
    free(p);
}

static const struct source_kind PROGRAM = { program_next, program_free,  program_words,
                                            program_skip, program_calls, program_pointer };

static int program_open(struct program *p, int r, struct source **ret)
{
    if (r < 0) {
        free(p);
        return r;
    }
    p->source = (struct source){ &PROGRAM, control_schema(p->control), p->thread, 0, MOST_THREADS, true, false, false };
    program_update(p);
    *ret = &p->source;
    return 0;
}

int source_open_program(char *const *argv, uint32_t ahead, bool repeats, struct source **ret, struct peet_err *err)
{
    struct program *p = mem_alloc(1, sizeof *p);

    return program_open(p, control_start(argv, ahead, repeats ? PEET_WANT_REPEATS : 0, &p->control, err), ret);
}

int source_open_host(const struct raw_host *host, bool repeats, struct source **ret, struct peet_err *err)
{
    struct program *p = mem_alloc(1, sizeof *p);

    return program_open(p, control_attach(host, repeats ? PEET_WANT_REPEATS : 0, &p->control, err), ret);
}

void source_set_order(struct source *s, const struct source_order *o)
{
    s->stops_at_accesses = true;
    control_set_order(((struct program *)(void *)s)->control,
                      &(struct raw_order){ .model = 1 + o->model,
                                           .stores = o->stores,
                                           .drains_randomly = o->drains_randomly,
                                           .delay = o->delay,
                                           .group = o->group,
                                           .random = o->seed * 2 + 1 });
}

static const struct raw_order *program_order(const struct source *s)
{
    return control_order(((const struct program *)(const void *)s)->control);
}

void source_count_accesses(const struct source *s, uint64_t *ret_consulted, uint64_t *ret_alone)
{
    *ret_consulted = program_order(s)->consulted;
    *ret_alone = program_order(s)->alone;
}

uint64_t source_overtaken(const struct source *s, uint32_t i, uint64_t *ret_load, uint64_t *ret_store)
{
    const struct raw_overtaken *o = &program_order(s)->overtaken[i];

    if (i >= RAW_OVERTAKEN)
        return 0;
    *ret_load = o->load;
    *ret_store = o->store;
    return o->times;
}

int source_status(struct source *s)
{
    return control_status(((struct program *)(void *)s)->control);
}
