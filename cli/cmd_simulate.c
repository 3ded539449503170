/* SPDX-License-Identifier: MIT */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/progress.h"
#include "capture/producer.h"
#include "cli/inside.h"
#include "cli/subject.h"
#include "map/source/source_doall.h"
#include "study/run_report.h"
#include "study/symbols/sync_names.h"
#include "view/view.h"

static const char *machine = "modern", *format, *remap, *output, *doall = "split";
static struct opt_list settings, cpus;
static uint64_t ahead, stretches, seeds, doall_open, doall_records = 4 << 20;
static bool apart;

enum { JITTER = 100, MOST_SEEDS = 10000 }; /* cycles: about a miss */

/* What the study needs of a run. The last of several shows its details. */
static void add(struct run_report *study, const struct machine_config *config, const struct sim_result *result,
                bool in_detail)
{
    run_report_add(study, config, result);
    if (in_detail)
        run_report_add_details(study, config, result);
}

/* One machine for one trace, or for a program; *source is freed. */
static int simulate(struct source *source, const struct machine_config *config, const char *name,
                    struct sim_result *ret)
{
    struct progress progress;
    struct remap *moved = NULL;
    struct sync_names *names = NULL;
    struct sim *sim = NULL;
    struct peet_err err;
    const volatile uint32_t *stop = inside_here() ? inside_here()->host->want_end : &subject_want_end;
    int r = sim_new(config, source, &sim, &err);

    if (r == 0)
        r = sync_names_new(source, &names, &err);
    if (r == 0 && remap)
        r = remap_read(remap, source->trace, &moved, &err);
    if (r == 0) {
        const struct sim_listener listener = sync_names_listener(names);
        sim_set_remap(sim, moved);
        sim_set_listener(sim, &listener);
        sim_set_stop(sim, stop);
        progress_init(&progress, stderr, name, 0, "references");
        r = sim_run(sim, &progress, &err);
        progress_release(&progress);
    }
    int code = r == 0 ? EXIT_OK : fail(&err);
    if (r == 0) {
        sim_result(sim, ret);
        code = ret->is_interrupted ? subject_stopped_code(*stop) : code;
    }
    for (size_t i = 0; moved && r == 0 && remap_unused(moved, i); i++)
        warn("%s: '%s' did not occur", remap, remap_unused(moved, i));
    remap_free(moved);
    sync_names_free(names);
    sim_free(sim);
    return code;
}

static bool is_set(const char *path)
{
    for (size_t i = 0; i < settings.count; i++)
        if (!strncmp(settings.item[i], path, strlen(path)) && settings.item[i][strlen(path)] == '=')
            return true;
    return false;
}

/* The machine with so many processors; with seeds, the one of that seed, which is not the same as that of another one. */
static int load(struct machine_config *config, const char *count, uint64_t seed)
{
    int code = subject_machine(config, machine, &settings, count);

    if (code == EXIT_OK && seed) {
        config->seed = seed;
        config->jitter = config->jitter || is_set("jitter") ? config->jitter : JITTER;
    }
    return code;
}

static int check_options(void)
{
    if (seeds > MOST_SEEDS)
        return usage_error(&cmd_simulate, "--seeds: 1 to %d were expected", MOST_SEEDS);
    if (doall_open > DOALL_MAX_WINDOW)
        return usage_error(&cmd_simulate, "--doall-open: 1 to %d were expected", DOALL_MAX_WINDOW);
    if (ahead && (ahead < PRODUCER_AHEAD_LEAST || ahead > PRODUCER_AHEAD_MOST || ahead % PRODUCER_AHEAD_LEAST))
        return usage_error(&cmd_simulate, "--ahead: 4k to 1m were expected, in steps of 4k");
    if (seeds && is_set("seed"))
        return usage_error(&cmd_simulate, "--seeds takes the seeds from 1 on; leave out --seeds or --set seed");
    return EXIT_OK;
}

/* Run number i: seed by seed, and then the next number of processors. */
static int load_run(struct machine_config *config, size_t i)
{
    size_t each = seeds ? (size_t)seeds : 1;

    return load(config, cpus.count ? cpus.item[i / each] : NULL, seeds ? i % each + 1 : 0);
}

/* The source with iterations of loops as contexts of their own, if that is wanted; it goes with what comes back, and is gone after a failure. */
static int take_loops(struct source *source, const struct machine_config *config, struct source **ret,
                      struct peet_err *err)
{
    struct doall_config loops = { .window = doall_open ? (uint32_t)doall_open : config->cpus * config->contexts,
                                  .limit = doall_records };

    *ret = source;
    if (strcmp(doall, "keep") == 0 || (!source->is_live && !trace_has_doall(source->trace)))
        return 0;
    return source_take_doall(source, &loops, ret, err);
}

/* With the machine in the program's process, where its configuration is loaded once more. */
static int run_inside(char **program, size_t i, struct sim_result *ret)
{
    struct peet_err err;
    int code, status;

    if (inside_simulate(program, (uint32_t)ahead, i, ret, &code, &status, &err) < 0)
        return fail(&err);
    return code < 0 ? subject_exit_code(status) : code;
}

static int run_one(struct run_report *study, struct peet_trace *trace, char **program, size_t i, bool in_detail)
{
    struct machine_config config;
    struct sim_result result = { 0 };
    struct source *source, *whole;
    struct peet_err err;
    int code = load_run(&config, i);

    if (code != EXIT_OK)
        return code;
    if (!trace && !apart && inside_is_here_to_run()) {
        code = run_inside(program, i, &result);
    } else {
        if ((trace ? source_open_trace(trace, !remap, &source, &err)
                   : source_open_program(program, (uint32_t)ahead, !remap, &source, &err))
                < 0
            || (config.cpus * config.contexts > 1 && source_keep_conditions(source, &err) < 0)
            || take_loops(source, &config, &whole, &err) < 0)
            return fail(&err);
        code = simulate(whole, &config, trace ? peet_trace_path(trace) : program[0], &result);
        if (code == EXIT_OK && !trace) {
            code = subject_exit_code(source_status(source));
            result.is_interrupted = subject_was_stopped(source_status(source));
        }
        source_free(whole);
    }
    if (result.hw_thread)
        add(study, &config, &result, in_detail);
    sim_result_release(&result);
    return code;
}

/* What is asked for in the program's process: one run, whose result goes outside. */
static int run_here(const struct inside *inside, char **program)
{
    struct machine_config config;
    struct sim_result result = { 0 };
    struct source *source, *whole;
    struct peet_err err;
    int code = load_run(&config, inside->run);

    if (code == EXIT_OK
        && (source_open_host(inside->host, !remap, &source, &err) < 0 || take_loops(source, &config, &whole, &err) < 0))
        code = fail(&err);
    if (code == EXIT_OK) {
        code = simulate(whole, &config, program[0], &result);
        source_free(whole);
    }
    if (inside_answer(result.hw_thread ? -1 : code, &result, &err) < 0)
        code = fail(&err);
    sim_result_release(&result);
    return code;
}

static int show(const struct result *r, struct peet_err *err)
{
    return output && strcmp(output, "-") != 0 ? view_save(format, r, output, err) : view_show(format, r, stdout, err);
}

/* A trace, or a program and its arguments. */
static int run_all(struct peet_trace *trace, char **program)
{
    size_t machines = cpus.count ? cpus.count : 1, runs = machines * (seeds ? (size_t)seeds : 1);
    struct machine_config config;
    struct run_report study;
    struct peet_err err;
    int code = check_options();

    for (size_t i = 0; code == EXIT_OK && i < machines; i++) /* mistakes are told before work begins */
        code = load(&config, cpus.count ? cpus.item[i] : NULL, 0);
    if (code != EXIT_OK)
        return code;
    run_report_init(&study, seeds);
    if (trace && peet_trace_lacks_order(trace))
        table_note(study.runs, "%s", peet_trace_lacks_order(trace));
    study.time_bins = stretches ? stretches : study.time_bins;
    for (size_t i = 0; code == EXIT_OK && i < runs; i++)
        code = run_one(&study, trace, program, i, i + 1 == runs);
    result_title(&study.result, trace ? peet_trace_path(trace) : program[0]);
    if (study.added && show(&study.result, &err) < 0)
        code = fail(&err);
    run_report_release(&study);
    return code;
}

static int run(int operands, char **operand)
{
    struct peet_trace *trace;
    struct peet_err err;

    if (operands == 0)
        return usage_error(&cmd_simulate, "no trace and no program given");
    if (operands > 1 && subject_is_trace(operand[0]))
        return usage_error(&cmd_simulate, "one trace was expected");
    if (output && !inside_here() && subject_check_output(output) != EXIT_OK)
        return EXIT_FAILED;
    if (subject_is_program(operands, operand[0])) {
        operand[operands] = NULL; /* argv has room: it held the verb, at least */
        int status = inside_here() ? run_here(inside_here(), operand) : run_all(NULL, operand);
        opt_list_release(&settings);
        opt_list_release(&cpus);
        return status;
    }
    if (peet_trace_open(operand[0], &trace, &err) < 0)
        return fail(&err);
    subject_expect_end();
    int code = EXIT_OK;
    if (peet_trace_is_pipe(trace))
        code = usage_error(&cmd_simulate, "a trace is read thread by thread, which a pipe cannot do: give a file");
    else
        code = run_all(trace, NULL);
    for (size_t i = 0; peet_trace_problem(trace, i); i++) {
        warn("%s", peet_trace_problem(trace, i));
        code = code == EXIT_OK ? EXIT_DAMAGED : code;
    }
    peet_trace_free(trace);
    opt_list_release(&settings);
    opt_list_release(&cpus);
    return code;
}

static const char *const DOALL[] = { "split", "keep", NULL };

static const struct opt options[] = {
    SUBJECT_MACHINE_OPTIONS(machine, settings),
    { .name = "cpus",
      .type = OPT_LIST,
      .arg = "N",
      .value = &cpus,
      .help = "numbers of processors: a run for each, and the speed-up" },
    { .name = "seeds",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = &seeds,
      .help = "run with the seeds 1 to N: means, and how far they can be trusted" },
    { .name = "doall",
      .type = OPT_CHOICE,
      .value = &doall,
      .choices = DOALL,
      .help = "parallel loops that one thread recorded: iterations side by side (split), or as recorded" },
    { .name = "doall-open",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = &doall_open,
      .help = "iterations of a loop that are open at a time (as many as hardware contexts)" },
    { .name = "doall-records",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = &doall_records,
      .help = "records of an iteration that are kept at most while others run (4m)" },
    { .name = "stretches",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = &stretches,
      .help = "cut the fabric's time into at most N stretches (64; 512 is as fine as it gets)" },
    { .name = "ahead",
      .type = OPT_NUMBER,
      .arg = "BYTES",
      .value = &ahead,
      .help = "stop a thread of a program at the latest when it has said so much (128k; 4k to 1m)" },
    { .name = "apart",
      .type = OPT_FLAG,
      .value = &apart,
      .help = "keep the machine out of the program's process: the same result, and slower" },
    { .name = "remap",
      .type = OPT_STRING,
      .arg = "FILE",
      .value = &remap,
      .help = "rules that put data elsewhere, for the machine alone" },
    { .name = "output",
      .letter = 'o',
      .type = OPT_STRING,
      .arg = "FILE",
      .value = &output,
      .help = "write the result to FILE" },
    { 0 },
};

static const char *const examples[] = {
    "peet simulate fft.peet",
    "what a recorded program would do on a machine with eight processors and three levels of cache",
    "peet simulate -m sato1999 --cpus 1,2,4,8,16 lu.peet",
    "the speed-up that more processors of another machine would bring",
    "peet simulate --seeds 10 --cpus 1,2,4,8 mp3d.peet",
    "the speed-up as the mean of ten schedules, with an interval of confidence",
    "peet simulate --set cache.l1.bytes=24K --set coherence.protocol=msi fft.peet",
    "the first machine with other caches",
    "peet simulate --remap padded.rules falseshare.peet",
    "as if elements of an array were farther apart: spread heap:wl_alloc every 8 to 64",
    "peet simulate -m sato1999 -- ./fft -m 16 -p 4",
    "a program built with peet cc runs as the machine says: who gets a lock, who runs when",
    "peet simulate --cpus 1,2,4 loops.peet",
    "a program that says by peet/mark.h which of its loops are parallel, as if they were",
    "peet simulate -m mine.cfg --format json fft.peet",
    "your own machine, for a program",
    "peet simulate --cpus 1,2,4,8 --format html -o fft.html fft.peet",
    "a page with plots, for a browser",
    NULL,
};

const struct command cmd_simulate = {
    .name = "simulate",
    .summary = "play a trace, or run a program, on a simulated machine",
    .operands = "[OPTION…] TRACE | -- PROGRAM [ARGUMENT…]",
    .options = options,
    .examples = examples,
    .format = &format,
    .run = run,
};
