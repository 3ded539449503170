/* SPDX-License-Identifier: MIT */
/* Steps 5 to 7 of the paper, one instruction after another. */
#include "capture/qemu/extract.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void extractor_release(struct extractor *x)
{
    targets_release(&x->targets);
    free(x->search);
    x->search = NULL;
    x->cores = 0;
}

static struct pattern_search *extractor_search(struct extractor *x, unsigned core)
{
    if (core >= x->cores) {
        struct pattern_search *more = mem_alloc(core + 1, sizeof *more);
        if (x->cores)
            memcpy(more, x->search, x->cores * sizeof *more);
        free(x->search);
        x->search = more;
        x->cores = core + 1;
    }
    return &x->search[core];
}

struct target *extract(struct extractor *x, const struct extract_insn *insn)
{
    struct target *target = targets_find(&x->targets, 0, insn->sp, &insn->translation);
    struct pattern_insn step = { insn->pc, insn->sp, 0, insn->bytes, insn->length };

    if (!pattern_step(extractor_search(x, insn->core), &x->pattern, &step))
        return target;
    struct target model = { .window = window_of(&x->window, insn->sp), .frame = TARGET_NO_FRAME, .tid = insn->tid };
    uint64_t frame;
    if (insn->translation.translate(insn->translation.context, model.window.start, &frame)) {
        model.frame = frame;
        targets_add(&x->targets, &model, NULL, NULL);
    }
    return target;
}
