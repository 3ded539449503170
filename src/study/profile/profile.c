/* SPDX-License-Identifier: MIT */
#include "study/profile/profile.h"

#include <stdlib.h>

#include "map/spaces.h"
#include "study/profile/sampling/estimate_profile.h"

const char *profile_cause_title(enum profile_cause c)
{
    static const char *const titles[] = {
#define X(name, title) title,
        PROFILE_CAUSES(X)
#undef X
    };

    return titles[c];
}

void profile_free(struct profile *p)
{
    if (!p)
        return;
    objects_free(p->objects);
    symbols_free(p->symbols);
    paths_release(&p->paths);
    sim_result_release(&p->result);
    member_costs_release(&p->members);
    free(p->access);
    free(p->pair);
    free(p->by_path);
    for (uint32_t i = 0; i < p->codes; i++)
        free(p->code[i].block);
    free(p->code);
    free(p->wait);
    free(p->places.call);
    sampled_free(p->sampled);
    free(p);
}

uint64_t path_counts_wait(const struct path_counts *l)
{
    uint64_t sum = 0;

    for (unsigned kind = 0; kind < TIME_COUNT; kind++)
        sum += l->wait[kind];
    return sum;
}

uint64_t profile_place_addr(const struct profile *p, uint32_t place)
{
    const uint32_t insns = p->places.insns;

    return place < insns ? peet_trace_insn(p->trace, place)->addr : p->places.call[place - insns] - 1;
}

uint32_t profile_object_process(const struct profile *p, uint32_t object)
{
    const uint32_t *index = map_find(&p->paths.indices, objects_info(p->objects, object)->process, 0);

    return index ? *index - 1 : 0;
}

const char *profile_process_name(const struct profile *p, uint32_t process, char ret[PROFILE_PROGRAM])
{
    ret[0] = '\0';
    if (p->paths.processes > 1)
        process_label(p->trace, p->paths.process[process].number, ret, PROFILE_PROGRAM);
    return ret;
}

size_t profile_symbols(const struct profile *p, uint32_t process, uint64_t addr, struct symbols_frame *ret)
{
    return symbols_code(p->symbols, p->paths.process[process].number, addr, ret);
}
