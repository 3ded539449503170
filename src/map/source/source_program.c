/* SPDX-License-Identifier: MIT */
/* The threads of a program that runs, as contexts. */
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/control/control.h"
#include "capture/protocol/control.h"
#include "capture/x86/layout.h"
#include "map/source/source.h"

enum { MOST = 1 << 16 };
_Static_assert((int)SOURCE_CANCELLED == (int)RAW_CANCELLED, "what the machine says is what the program understands");

#define TOO_MANY "the program has made more than %d threads, which is all that can be simulated"

struct program {
    struct source source;
    struct control *control;
    uint64_t registers[PEET_REGISTERS]; /* of a context that begins */
    struct source_thread context[MOST];
};

static void see_program(struct program *p)
{
    p->source.has_ended = control_is_over(p->control);
    while (p->source.threads < control_threads(p->control) && p->source.threads < MOST) {
        uint32_t i = p->source.threads++;
        p->context[i] = (struct source_thread){ control_thread_number(p->control, i),
                                                control_thread_process(p->control, i), i == 0 };
    }
}

static int next(struct source *s, uint32_t context, uint64_t reply, struct peet_batch *ret, struct peet_err *err)
{
    struct program *p = (struct program *)(void *)s;
    int r = control_next(p->control, context, reply, ret, err);

    see_program(p);
    if (r >= 0 && control_threads(p->control) > MOST)
        return err_set(err, PEET_ERR_USAGE, TOO_MANY, MOST);
    return r;
}

static int words(struct source *s, uint32_t context, uint64_t reply, struct source_words *ret, struct peet_err *err)
{
    struct program *p = (struct program *)(void *)s;
    uint64_t pointer = 0;
    int r = control_next_words(p->control, context, reply, &ret->word, &ret->end, &ret->names, &pointer, err);

    see_program(p);
    if (r >= 0 && control_threads(p->control) > MOST)
        return err_set(err, PEET_ERR_USAGE, TOO_MANY, MOST);
    p->registers[X86_FS_REGISTER] = pointer;
    ret->registers = pointer ? p->registers : NULL;
    return r;
}

static void skip(struct source *s, uint32_t context, uint64_t references, uint32_t line_bytes)
{
    control_skip(((struct program *)(void *)s)->control, context, references, line_bytes);
}

static unsigned calls(struct source *s, uint32_t context, struct source_calls *ret)
{
    return control_calls(((struct program *)(void *)s)->control, context, ret->site, ret->back, SOURCE_CALLS,
                         &ret->is_whole);
}

static uint64_t pointer(struct source *s, uint32_t context)
{
    return control_thread_pointer(((struct program *)(void *)s)->control, context);
}

static void free_program(struct source *s)
{
    struct program *p = (struct program *)(void *)s;

    control_free(p->control);
    free(p);
}

static const struct source_kind PROGRAM = { next, free_program, words, skip, calls, pointer };

static int open_program(struct program *p, int r, struct source **ret)
{
    if (r < 0) {
        free(p);
        return r;
    }
    p->source = (struct source){ &PROGRAM, control_schema(p->control), p->context, 0, MOST, true, false };
    see_program(p);
    *ret = &p->source;
    return 0;
}

int source_open_program(char *const *argv, uint32_t ahead, bool repeats, struct source **ret, struct peet_err *err)
{
    struct program *p = mem_alloc(1, sizeof *p);

    return open_program(p, control_start(argv, ahead, repeats ? PEET_WANT_REPEATS : 0, &p->control, err), ret);
}

int source_open_host(const struct raw_host *host, bool repeats, struct source **ret, struct peet_err *err)
{
    struct program *p = mem_alloc(1, sizeof *p);

    return open_program(p, control_attach(host, repeats ? PEET_WANT_REPEATS : 0, &p->control, err), ret);
}

int source_status(struct source *s)
{
    return control_status(((struct program *)(void *)s)->control);
}
