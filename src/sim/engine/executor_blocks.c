/* SPDX-License-Identifier: MIT */
/* Executes threads by translated blocks (sim/exec), on a single core. */
#include "sim/engine/executor.h"
#include "sim/exec/exec_blocks.h"

enum { STEP_CYCLES = 1 << 26 }; /* of a step at most: event words may stand for any number of references */

bool sim_set_block_observer(struct sim *s, const struct block_observer *observer, struct peet_err *err)
{
    if (s->mode.translates || config_has_store_buffers(&s->config) || !s->source->kind->words
        || !blocks_can_run(&s->config) || blocks_new(&s->config, s->source->trace, observer, &s->block_exec, err) < 0)
        return false;
    s->executor = &executor_blocks;
    return true;
}

/* The caches are a part of the executor, and exist already. */
static int translated_begin(struct sim *s, struct peet_err *err)
{
    (void)s, (void)err;
    return 0;
}

static int translated_step(struct sim *s, struct hw_thread *hw, uint64_t limit, struct peet_err *err)
{
    struct sim_thread *thread = hw->thread;

    while (thread->words.word == thread->words.end) {
        int r = sim_take_answer(s, hw,
                                source_words(s->source, thread->sched.number, thread->reply, &thread->words, err), err);
        if (r <= 0)
            return r;
    }
    struct exec_clock *t = blocks_clock(s->block_exec);
    uint64_t references = t->references;
    t->clock = hw->clock;
    limit = limit - hw->clock > STEP_CYCLES ? hw->clock + STEP_CYCLES : limit;
    int r = blocks_run(s->block_exec, thread->sched.number, &thread->words, sim_end_of_quantum(s, hw, limit),
                       &thread->event, err);
    hw->clock = t->clock;
    s->counts.references += t->references - references;
    if (r > 0) {
        sim_reach_event(s, hw, &thread->event);
        blocks_take_used(s->block_exec, thread->sched.number, &thread->words);
    } else if (r == 0) {
        sim_check_quantum(s, hw);
    }
    return r < 0 ? r : 0;
}

static void translated_library_access(struct sim *s, struct hw_thread *hw, const struct peet_record *r)
{
    struct source_words *w = &hw->thread->words;

    s->counts.references++;
    w->used += w->advance && w->is_on;
    w->passed += w->advance && !w->is_on;
    if (w->advance && !w->is_on)
        return;
    blocks_clock(s->block_exec)->clock = hw->clock;
    hw->clock += blocks_libcall_access(s->block_exec, hw->thread->sched.number, r, s->step.site,
                                       (uint64_t)((r->size + 15u) / 16) * s->config.cost[PEET_CL_plain]);
}

/* The executor counts the cycles as compute and stall by itself. */
static uint64_t translated_sync_access(struct sim *s, const struct sim_thread *t, uint64_t object,
                                       const struct peet_record *r, uint64_t now, struct sync_time *ret)
{
    uint32_t space;
    uint64_t data = spaces_untag(&s->spaces, object, &space);

    blocks_clock(s->block_exec)->clock = now;
    uint64_t cycles =
        blocks_sync_access(s->block_exec, t->sched.number, r, data, t->site, s->config.cost[PEET_CL_plain]);
    *ret = (struct sync_time){ .counted = cycles };
    return cycles;
}

static void translated_event(struct sim *s, uint32_t thread, const struct peet_event *e)
{
    blocks_event(s->block_exec, thread, e);
}

static uint32_t translated_path_counts(struct sim *s, uint32_t thread)
{
    return blocks_path_counts(s->block_exec, thread);
}

static uint64_t translated_clock(const struct sim *s)
{
    return blocks_clock(s->block_exec)->clock;
}

/* The source learns how many event words of each thread were used. */
static int translated_end(struct sim *s, struct peet_err *err)
{
    int r = 0;

    for (uint32_t i = 0; r >= 0 && i < s->threads; i++)
        r = source_words(s->source, i, 0, &s->thread[i].words, err);
    return r < 0 ? r : 0;
}

static void translated_flush(struct sim *s, struct sim_result *ret)
{
    struct exec_clock *t = blocks_clock(s->block_exec);
    struct time_account *p = &s->hw_thread[0].account;

    blocks_flush(s->block_exec);
    ret->fabric = *blocks_fabric(s->block_exec);
    blocks_counts(s->block_exec, &ret->memory[0]);
    p->time[TIME_compute] += t->compute;
    p->time[TIME_stall] += t->stall;
    p->time[TIME_bus] += t->bus;
    p->instructions += t->instructions;
    t->compute = t->stall = t->bus = t->instructions = 0;
}

static void translated_release(struct sim *s)
{
    blocks_free(s->block_exec);
}

const struct executor executor_blocks = { .name = "blocks",
                                          .progress_steps = 1 << 4,
                                          .begin = translated_begin,
                                          .step = translated_step,
                                          .library_access = translated_library_access,
                                          .sync_access = translated_sync_access,
                                          .event = translated_event,
                                          .path_counts = translated_path_counts,
                                          .clock = translated_clock,
                                          .end = translated_end,
                                          .flush = translated_flush,
                                          .release = translated_release };
