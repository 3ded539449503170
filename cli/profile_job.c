/* SPDX-License-Identifier: MIT */
#include "cli/profile_job.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/producer.h"
#include "cli/subject.h"
#include "study/profile/sampling/advice.h"
#include "study/profile/sampling/estimate_profile.h"

enum {
    FIRST_WINDOW = 1000,     /* references of the first window of a program with --sample auto */
    LAST_WINDOW = 8000000,   /* to which its windows grow */
    WHOLE_AHEAD = 1 << 19,   /* bytes, of event words on one core */
    SAMPLED_AHEAD = 1 << 17, /* with samples: words after the end of a window are not used */
    FIRST_ONE_IN = 64,       /* of a trace with --sample auto: the smallest sample */
    LEAST_WINDOWS = 10,      /* of a sample */
};

/* ---- what is asked for ---- */

bool profile_job_is_automatic(const struct profile_job *j)
{
    return j->sampling.part && !strcmp(j->sampling.part, "auto");
}

static bool profile_job_is_sampled(const struct profile_job *j)
{
    return j->sampling.part || j->sampling.sets;
}

/* Reads "1/10" as 10. */
static int profile_job_read_part(const char *option, const char *text, uint64_t *ret)
{
    char *end = NULL;

    if (strncmp(text, "1/", 2) == 0 && text[2] >= '0' && text[2] <= '9')
        *ret = strtoull(text + 2, &end, 10);
    if (end && *end == 0 && *ret >= 1 && *ret <= 1000000)
        return EXIT_OK;
    return usage_error(&cmd_profile, "--%s %s: a part as 1/10 was expected, down to 1/1000000", option, text);
}

static int profile_job_sampling(const struct profile_sampling *s, const struct machine_config *machine,
                                struct sample_config *ret)
{
    uint64_t time_part = 1, set_part = 1;
    struct peet_err err;
    int code = s->part ? profile_job_read_part("sample", s->part, &time_part) : EXIT_OK;

    if (code == EXIT_OK && s->sets)
        code = profile_job_read_part("sets", s->sets, &set_part);
    if (code != EXIT_OK)
        return code;
    if (s->part && (s->length == 0 || s->length > UINT64_MAX / 2 / time_part))
        return usage_error(&cmd_profile, "--length: between 1 and %" PRIu64 " references were expected",
                           UINT64_MAX / 2 / time_part);
    *ret = (struct sample_config){ .is_random = s->is_random, .seed = s->seed, .one_in = (uint32_t)set_part };
    if (s->part) {
        ret->length = s->length;
        ret->every = s->length * time_part;
    }
    return sampled_geometry(machine, ret, &err) < 0 ? fail(&err) : EXIT_OK;
}

/* Of a program with --sample auto, length and misses are unknown. Windows grow: there are some in short runs, and later ones fill large caches. The part stays the same. */
static int profile_job_automatic_sampling(const struct profile_sampling *s, const struct machine_config *machine,
                                          struct sample_config *ret)
{
    bool is_given = s->length != PROFILE_WINDOW;
    struct profile_sampling variant = *s;

    variant.part = s->is_steady ? "1/64" : "1/10";
    variant.length = is_given ? s->length : FIRST_WINDOW;
    int code = profile_job_sampling(&variant, machine, ret);
    ret->most = is_given ? 0 : LAST_WINDOW;
    return code;
}

static int profile_job_read(const struct profile_job *j, struct machine_config *machine, struct sample_config *sampling)
{
    int code = subject_machine(machine, j->machine, &j->settings, j->cpus);

    if (code != EXIT_OK || !profile_job_is_sampled(j))
        return code;
    return profile_job_is_automatic(j) ? profile_job_automatic_sampling(&j->sampling, machine, sampling)
                                       : profile_job_sampling(&j->sampling, machine, sampling);
}

int profile_job_check(const struct profile_job *j, struct machine_config *ret)
{
    struct sample_config sampling;

    return profile_job_read(j, ret, &sampling);
}

uint32_t profile_job_ahead(const struct profile_job *j, const struct machine_config *c)
{
    return c->cpus > 1 ? 0 : j->sampling.part ? SAMPLED_AHEAD : WHOLE_AHEAD;
}

/* ---- subjects ---- */

struct profile *profile_subject_profile(const struct profile_subject *s)
{
    return s->study ? profile_study_profile(s->study) : NULL;
}

void profile_subject_warn(struct profile_subject *s)
{
    struct profile *p = profile_subject_profile(s);
    const char *problem;

    while (p && (problem = symbols_problem(p->symbols, s->warned))) {
        warn("%s", problem);
        s->warned++;
    }
}

static void profile_subject_free(struct profile_subject *s)
{
    run_study_state_free(&run_study_profile, s->study);
    source_free(s->source);
    peet_trace_free(s->trace);
    *s = (struct profile_subject){ 0 };
}

int profile_subject_close(struct profile_subject *s, int code)
{
    if (code == EXIT_OK && profile_subject_profile(s)->result.is_interrupted)
        code = subject_stopped_code(subject_want_end);
    profile_subject_warn(s);
    for (size_t i = 0; s->trace && peet_trace_problem(s->trace, i); i++) {
        warn("%s", peet_trace_problem(s->trace, i));
        code = code == EXIT_OK ? EXIT_DAMAGED : code;
    }
    profile_subject_free(s);
    return code;
}

/* A sampled run without any window has no profile. */
static int profile_subject_check_windows(const struct profile_subject *s, const char *name,
                                         const volatile uint32_t *stop)
{
    const struct sampled *sampled = profile_subject_profile(s)->sampled;

    if (!sampled || sampled_counts(sampled).windows > 0 || *stop)
        return EXIT_OK;
    struct sample_counts c = sampled_counts(sampled);
    if (c.late)
        complain("%s: no window in %" PRIu64 " references: where one was to begin, a loop ran that ended up to %" PRIu64
                 " references later; take a recording (--trace), or no --sample",
                 name, c.between, c.late);
    else
        complain("%s: no window in %" PRIu64 " references: take a shorter --length, or no --sample", name, c.between);
    return EXIT_FAILED;
}

/* Simulates a source, which s owns from then on. */
static int profile_subject_run(struct profile_subject *s, const struct profile_job *j, struct source *source,
                               const char *title, const volatile uint32_t *stop)
{
    struct machine_config machine;
    struct sample_config sampling;
    struct progress progress;
    struct peet_err err;
    int code = profile_job_read(j, &machine, &sampling);

    s->study = run_study_state_new(&run_study_profile, j->study);
    profile_study_sample(s->study, profile_job_is_sampled(j) ? &sampling : NULL);
    const struct run_observer observer = { &run_study_profile, s->study };
    if (code != EXIT_OK) {
        source_free(source);
        return code;
    }
    if (run_studies_open(&observer, 1, &machine, source, &s->source, &err) < 0)
        return fail(&err);
    profile_subject_warn(s);
    struct observed_run run = { .machine = &machine, .source = s->source, .is_last = true };
    progress_init(&progress, stderr, title, 0, "references");
    int r = run_studies_play(&observer, 1, &run, &(struct run_play){ .stop = stop, .progress = &progress }, &err);
    progress_release(&progress);
    if (r < 0)
        return fail(&err);
    run_studies_end(&observer, 1, &run);
    profile_subject_profile(s)->result.is_interrupted |= j->is_cut;
    return profile_subject_check_windows(s, title, stop);
}

/* One profile of a trace, sampled as the job says. */
static int profile_job_trace_once(const struct profile_job *j, const char *path, const char *title,
                                  struct profile_subject *ret)
{
    struct machine_config machine;
    struct source *source;
    struct peet_err err;
    int code = profile_job_check(j, &machine);

    if (code != EXIT_OK)
        return code;
    if (peet_trace_open(path, &ret->trace, &err) < 0)
        return fail(&err);
    if (peet_trace_is_pipe(ret->trace))
        return usage_error(&cmd_profile, "a trace is read thread by thread, which a pipe cannot do: give a file");
    if (profiler_open_trace_source(ret->trace, &machine, profile_job_is_sampled(j), &source, &err) < 0)
        return fail(&err);
    subject_expect_end();
    return profile_subject_run(ret, j, source, title, &subject_want_end);
}

int profile_job_program(const struct profile_job *j, const struct in_process_verb *here, const char *title,
                        struct profile_subject *ret)
{
    struct machine_config machine;
    struct source *source;
    struct peet_err err;
    int code = profile_job_check(j, &machine);

    if (code != EXIT_OK)
        return code;
    if (source_open_host(here->host, profile_job_is_sampled(j), &source, &err) < 0)
        return fail(&err);
    return profile_subject_run(ret, j, source, title, here->host->want_end);
}

/* ---- how large a sample must be ---- */

/* Another profile of the trace, in place of the one before; part: "1/N", NULL: all references. */
static int profile_job_retry(const struct profile_job *j, const char *path, const char *title, const char *part,
                             uint64_t length, struct profile_subject *ret)
{
    struct profile_job variant = *j;

    profile_subject_free(ret);
    variant.sampling.part = part;
    variant.sampling.length = length;
    return profile_job_trace_once(&variant, path, title, ret);
}

/* Finds the length of windows by a first small sample; *ret 0: samples are of no use. */
static int profile_job_find_length(const struct profile_job *j, const char *path, const char *title,
                                   uint64_t references, uint64_t *ret)
{
    uint64_t first = references / 100 / LEAST_WINDOWS;
    struct profile_subject s = { 0 };

    *ret = 0;
    if (references < ADVICE_MODERATE_SIZE)
        return EXIT_OK;
    int code = profile_job_retry(j, path, title, "1/100", first < PROFILE_WINDOW ? first : PROFILE_WINDOW, &s);
    if (code == EXIT_OK) {
        const struct profile *p = profile_subject_profile(&s);
        *ret = advice_for(p->references ? (double)p->misses / (double)p->references : 0, references).length;
    }
    if (*ret && j->sampling.length != PROFILE_WINDOW)
        *ret = j->sampling.length;
    profile_subject_free(&s);
    return code;
}

/* Doubles the sample until two successive samples order the important data in the same way; for a steady program, takes the smallest one. */
static int profile_job_trace_automatically(const struct profile_job *j, const char *path, const char *title,
                                           struct profile_subject *ret)
{
    char *before = NULL, part[16];
    uint64_t references, length;
    bool is_enough = false;
    struct peet_err err;

    if (peet_trace_open(path, &ret->trace, &err) < 0)
        return fail(&err);
    references = subject_references(ret->trace);
    profile_subject_free(ret);
    int code = profile_job_find_length(j, path, title, references, &length);
    for (unsigned one_in = FIRST_ONE_IN; code == EXIT_OK && !is_enough; one_in /= 2) {
        bool is_whole = length == 0 || one_in < 2;
        if (!is_whole && references / one_in / length < LEAST_WINDOWS)
            continue;
        snprintf(part, sizeof part, "1/%u", one_in);
        code = profile_job_retry(j, path, title, is_whole ? NULL : part, length, ret);
        char *order = code == EXIT_OK ? advice_order(profile_subject_profile(ret)) : NULL;
        is_enough =
            is_whole || j->sampling.is_steady || subject_want_end || (before && order && strcmp(before, order) == 0);
        free(before);
        before = order;
    }
    free(before);
    return code;
}

int profile_job_trace(const struct profile_job *j, const char *path, const char *title, struct profile_subject *ret)
{
    return profile_job_is_automatic(j) ? profile_job_trace_automatically(j, path, title, ret)
                                       : profile_job_trace_once(j, path, title, ret);
}

/* ---- programs ---- */

char *profile_job_new_file(struct peet_err *err)
{
    const char *folder = getenv("TMPDIR");
    char *path = mem_format("%s/peet-profile-XXXXXX.peet", folder && *folder ? folder : "/tmp");
    int fd = mkostemps(path, 5, O_CLOEXEC);

    if (fd >= 0) {
        close(fd);
        return path;
    }
    err_sys(err, errno, "%s: cannot be made", path);
    free(path);
    return NULL;
}

int profile_job_record(char **program, const char *path, int *ret_status)
{
    struct producer_config config = { .argv = program };
    struct recording recording = { 0 };
    struct peet_err err;
    int code = record_trace(&producer_live, &config, path, &recording, &err) < 0 ? fail(&err) : EXIT_OK;

    for (size_t i = 0; i < recording.warnings; i++)
        warn("%s", recording.warning[i]);
    *ret_status = recording.status;
    recording_release(&recording);
    return code;
}
