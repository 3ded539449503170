/* SPDX-License-Identifier: MIT */
/* The run study `profile` (docs/design/studies.md). */
#include "study/profile/profile_study.h"

#include "base/err.h"

/* Options, and the profile of the current run. */
struct run_study_state {
    struct profile_wants wants;
    uint64_t calls; /* calls above the one that names a heap object, by which objects are distinguished */
    struct sample_config sampling;
    bool is_sampled;
    struct profiler *profiler; /* NULL: not opened, or the run has ended */
    struct profile *profile;   /* NULL: the run has not ended */
};

struct profile_wants *profile_study_wants(struct run_study_state *s)
{
    return &s->wants;
}

void profile_study_sample(struct run_study_state *s, const struct sample_config *config)
{
    s->is_sampled = config != NULL;
    if (config)
        s->sampling = *config;
}

struct profile *profile_study_profile(struct run_study_state *s)
{
    return s->profiler ? profiler_profile(s->profiler) : s->profile;
}

static int profile_study_check(struct run_study_state *s, struct peet_err *err)
{
    if (s->calls >= OBJECT_PATH)
        return err_set(err, PEET_ERR_USAGE, "--calls: at most %d were expected", OBJECT_PATH - 1);
    return 0;
}

static int profile_study_open(struct run_study_state *s, const struct machine_config *machine, struct source *source,
                              struct source **ret, struct peet_err *err)
{
    return profiler_open_source(source, machine, s->is_sampled ? &s->sampling : NULL, ret, &s->profiler, err);
}

static int profile_study_begin(struct run_study_state *s, const struct observed_run *run, struct peet_err *err)
{
    (void)err;
    profiler_set_calls(s->profiler, (unsigned)s->calls);
    profiler_attach(s->profiler, run->sim);
    return 0;
}

static void profile_study_end(struct run_study_state *s, const struct observed_run *run)
{
    profiler_finish(s->profiler, run->sim);
    s->profile = profiler_take(s->profiler);
    s->profiler = NULL;
}

static void profile_study_report(struct run_study_state *s, struct result *ret)
{
    struct profile_wants wants = s->wants;

    wants.top = wants.top == PROFILE_TOP_UNSET ? PROFILE_TOP : wants.top;
    profile_report(s->profile, &wants, ret);
}

static void profile_study_release(struct run_study_state *s)
{
    profiler_free(s->profiler);
    profile_free(s->profile);
}

static const char *const SORTS[] = { "stall", "misses", "references", NULL };

static const struct opt options[] = {
    { .name = "top",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = RUN_STUDY_OPTION(wants.top),
      .help = "rows of each table (20, in a page 100; 0: all)" },
    { .name = "sort",
      .type = OPT_CHOICE,
      .value = RUN_STUDY_OPTION(wants.sort),
      .choices = SORTS,
      .help = "what comes first" },
    { .name = "focus",
      .type = OPT_STRING,
      .arg = "NAME",
      .value = RUN_STUDY_OPTION(wants.focus),
      .help = "only what has to do with this data object or function" },
    { .name = "calls",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = RUN_STUDY_OPTION(calls),
      .help = "distinguish heap blocks by N more calls above the one that names them (0)" },
    { .name = "source",
      .type = OPT_FLAG,
      .value = RUN_STUDY_OPTION(wants.source),
      .help = "also the source of what costs most, line by line (always with --format html)" },
    { 0 },
};

const struct run_study run_study_profile = {
    .name = "profile",
    .summary = "which data and which code wait for memory, and why",
    .options = options,
    .state_size = sizeof(struct run_study_state),
    .defaults = &(const struct run_study_state){ .wants = { .sort = "stall", .top = PROFILE_TOP_UNSET } },
    .check = profile_study_check,
    .open = profile_study_open,
    .begin = profile_study_begin,
    .end = profile_study_end,
    .report = profile_study_report,
    .release = profile_study_release,
};
