/* SPDX-License-Identifier: MIT */
/* Time, by program: what a hardware context does belongs to the program whose thread it executes, or has executed last. */
#include "base/mem.h"
#include "sim/engine/state.h"

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

static void sim_settle_place(struct sim *s, struct place *p)
{
    if (p->program != NO_PROGRAM) {
        struct sim_place *sum = &s->program[p->program].place;
        for (unsigned i = 0; i < TIME_COUNT; i++)
            sum->time[i] += i == TIME_idle ? 0 : p->seen.time[i] - p->settled.time[i];
        sum->instructions += p->seen.instructions - p->settled.instructions;
        sum->switches += p->seen.switches - p->settled.switches;
    }
    p->settled = p->seen;
}

void sim_change_program(struct sim *s, struct place *p)
{
    uint32_t program = p->context->space;

    memory_set_program(s->memory, p->cpu, program);
    if (p->program == program)
        return;
    sim_settle_place(s, p);
    p->program = program;
}

void sim_end_program(struct sim *s, const struct place *p)
{
    struct sim_program *program = &s->program[p->context->space];

    program->finished = p->clock > program->finished ? p->clock : program->finished;
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
    for (uint32_t i = 0; i < s->places; i++)
        sim_settle_place(s, &s->place[i]);
    for (uint32_t i = 0; i < n; i++) {
        s->program[i].memory = *memory_program_counts(s->memory, i);
        process_label(s->source->trace, s->program[i].process, s->program[i].name, sizeof s->program[i].name);
        ret->program[i] = s->program[i];
        for (uint32_t k = 0; k < n; k++)
            ret->evictions[(size_t)i * n + k] = (struct sim_evictions){ memory_private_evictions(s->memory, i, k),
                                                                        memory_shared_evictions(s->memory, i, k) };
    }
}
