/* SPDX-License-Identifier: MIT */
/* Sources for profilers. */
#include "study/profile/profiler.h"

int profiler_open_source(struct source *inner, const struct machine_config *machine,
                         const struct sample_config *sampling, struct source **ret_source, struct profiler **ret,
                         struct peet_err *err)
{
    struct peet_trace *recording = source_recording(inner);
    int r = 0;

    *ret_source = NULL;
    *ret = NULL;
    if (!sampling)
        *ret_source = inner;
    else if ((r = source_take_sample(inner, sampling, ret_source, err)) < 0)
        return r; /* which has freed the inner source */
    r = profiler_new(machine, *ret_source, ret, err);
    if (r == 0 && recording)
        objects_look_ahead(profiler_profile(*ret)->objects, recording);
    return r == 0 && sampling ? profiler_set_sample(*ret, sampling, err) : r;
}

int profiler_open_trace_source(struct peet_trace *t, const struct machine_config *machine, bool is_sampled,
                               struct source **ret, struct peet_err *err)
{
    int r = source_open_trace(t, is_sampled, ret, err);

    if (r == 0 && !is_sampled && machine->cpus * machine->core_threads > 1
        && (r = source_keep_conditions(*ret, err)) < 0)
        source_free(*ret);
    return r;
}

int profiler_open_trace(struct peet_trace *t, const struct machine_config *machine,
                        const struct sample_config *sampling, struct source **ret_source, struct profiler **ret,
                        struct peet_err *err)
{
    struct source *inner;
    int r = profiler_open_trace_source(t, machine, sampling != NULL, &inner, err);

    *ret_source = NULL;
    *ret = NULL;
    return r < 0 ? r : profiler_open_source(inner, machine, sampling, ret_source, ret, err);
}
