/* SPDX-License-Identifier: MIT */
/* Time by program. The time of a hardware thread belongs to the program of the thread that it runs, or ran last. */
#include "base/mem.h"
#include "sim/engine/simulation.h"

int sim_add_program(struct sim *s, uint32_t process, uint32_t *ret_space, struct peet_err *err)
{
    uint32_t before = s->spaces.count;
    int r = spaces_of(&s->spaces, process, ret_space, err);

    if (r < 0)
        return r;
    if (s->spaces.count != before) {
        s->program = mem_room(s->program, before, sizeof *s->program);
        s->program[before] = (struct sim_program){ .process = process };
    }
    s->program[*ret_space].threads++;
    return 0;
}

static void sim_flush_hw_thread(struct sim *s, struct hw_thread *hw)
{
    if (hw->program != NO_PROGRAM) {
        struct time_account *sum = &s->program[hw->program].account;
        for (unsigned i = 0; i < TIME_COUNT; i++)
            sum->time[i] += i == TIME_idle ? 0 : hw->account.time[i] - hw->flushed.time[i];
        sum->instructions += hw->account.instructions - hw->flushed.instructions;
        sum->switches += hw->account.switches - hw->flushed.switches;
    }
    hw->flushed = hw->account;
}

void sim_change_program(struct sim *s, struct hw_thread *hw)
{
    uint32_t program = hw->thread->space;

    if (s->memory)
        hierarchy_set_program(s->memory, hw->cpu, program);
    if (hw->program == program)
        return;
    sim_flush_hw_thread(s, hw);
    hw->program = program;
}

void sim_end_program(struct sim *s, const struct hw_thread *hw)
{
    struct sim_program *program = &s->program[hw->thread->space];

    program->finished = hw->clock > program->finished ? hw->clock : program->finished;
}

void sim_list_programs(struct sim *s, struct sim_result *ret)
{
    uint32_t n = s->spaces.count;

    ret->by_frame = s->spaces.by_frame;
    if (n < 2)
        return;
    ret->programs = n;
    ret->program = mem_alloc(n, sizeof *ret->program);
    ret->evictions = mem_alloc((size_t)n * n, sizeof *ret->evictions);
    for (uint32_t i = 0; i < s->hw_threads; i++)
        sim_flush_hw_thread(s, &s->hw_thread[i]);
    for (uint32_t i = 0; i < n; i++) {
        process_label(s->source->trace, s->program[i].process, s->program[i].name, sizeof s->program[i].name);
        if (s->memory)
            s->program[i].memory = *hierarchy_program_counts(s->memory, i);
        ret->program[i] = s->program[i];
        for (uint32_t k = 0; s->memory && k < n; k++)
            ret->evictions[(size_t)i * n + k] = (struct sim_evictions){ hierarchy_private_evictions(s->memory, i, k),
                                                                        hierarchy_shared_evictions(s->memory, i, k) };
    }
}
