/* SPDX-License-Identifier: MIT */
/* peet simulate: one run for each number of processors and each seed, observed by the run study `report`. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/progress.h"
#include "capture/producer.h"
#include "cli/cli.h"
#include "cli/in_process_verb.h"
#include "cli/subject.h"
#include "map/source/source_doall.h"
#include "study/run_report.h"
#include "view/view.h"

enum { JITTER = 100 /* cycles: about a miss */, MAX_SEEDS = 10000 };

struct command_state {
    const char *machine, *format;
    const char *output; /* NULL or "-": standard output */
    const char *remap;  /* file of rules; NULL: none */
    const char *doall;  /* "split" or "keep" */
    struct opt_list settings;
    struct opt_list cpus;          /* a run for each; empty: as the machine says */
    struct opt_list orders;        /* memory orders, a run for each, first sc; empty: as the machine says */
    uint64_t seeds;                /* runs with the seeds 1 to this; 0: one run, with the machine's seed */
    uint64_t ahead;                /* bytes of event words of a thread before it is stopped; 0: the default */
    uint64_t doall_open;           /* iterations that are open at a time; 0: one for each hardware thread */
    uint64_t doall_records;        /* records of an iteration that are kept at most */
    bool apart;                    /* the simulation does not run in the program's process */
    struct run_study_state *study; /* of run_study_report */
};

/* ---- machines ---- */

static bool simulate_is_set(const struct command_state *s, const char *path)
{
    for (size_t i = 0; i < s->settings.count; i++)
        if (!strncmp(s->settings.item[i], path, strlen(path)) && s->settings.item[i][strlen(path)] == '=')
            return true;
    return false;
}

/* Loads the machine; cpus: number of processors, NULL: as the machine says; seed 0: the machine's. A seed has no effect without jitter. */
static int simulate_load(const struct command_state *s, struct machine_config *config, const char *cpus, uint64_t seed)
{
    int code = subject_machine(config, s->machine, &s->settings, cpus);

    if (code == EXIT_OK && seed) {
        config->seed = seed;
        config->jitter = config->jitter || simulate_is_set(s, "jitter") ? config->jitter : JITTER;
    }
    return code;
}

/* Runs for each number of processors and each seed: sc, then the orders that are asked for. */
static size_t simulate_orders(const struct command_state *s)
{
    bool has_sc = s->orders.count && !strcmp(s->orders.item[0], order_sc.name);

    return s->orders.count + (s->orders.count && !has_sc);
}

/* Gives the machine the i-th of these orders. */
static void simulate_set_order(const struct command_state *s, struct machine_config *config, size_t i)
{
    size_t added = simulate_orders(s) - s->orders.count, length = strlen(config->name);

    if (!s->orders.count)
        return;
    config->order.model = i < added ? &order_sc : order_find(s->orders.item[i - added]);
    snprintf(config->name + length, sizeof config->name - length, " (%s)", config->order.model->name);
}

/* Loads the machine of run number i: all seeds of an order, all orders of a number of processors, then the next number. */
static int simulate_load_run(const struct command_state *s, struct machine_config *config, size_t i)
{
    size_t each = s->seeds ? (size_t)s->seeds : 1, orders = s->orders.count ? simulate_orders(s) : 1;
    int code =
        simulate_load(s, config, s->cpus.count ? s->cpus.item[i / each / orders] : NULL, s->seeds ? i % each + 1 : 0);

    if (code == EXIT_OK)
        simulate_set_order(s, config, i / each % orders);
    return code;
}

/* ---- one run ---- */

/* A program with threads that stop at shared accesses: stores perform by the machine's order. */
static void simulate_order_accesses(struct source *source, const struct machine_config *c)
{
    uint32_t model = 0, group = c->order.domain == ORDER_DOMAIN_CONTEXT ? 1 : c->core_threads;

    if (!source->is_live || !c->order.at_accesses)
        return;
    while (memory_orders[model] != c->order.model)
        model++;
    source_set_order(
        source, &(struct source_order){ .model = model,
                                        .stores = c->order.stores,
                                        .delay = c->order.delay,
                                        .group = c->order.domain == ORDER_DOMAIN_GROUP ? group * c->order.group : group,
                                        .drains_randomly = c->order.drain == ORDER_DRAIN_RANDOM,
                                        .seed = c->seed });
}

/* Replaces the source by one in which iterations of parallel loops are threads, if that is wanted. It frees the source after a failure. */
static int simulate_split_loops(const struct command_state *s, struct source *source,
                                const struct machine_config *config, struct source **ret, struct peet_err *err)
{
    struct doall_config loops = { .window =
                                      s->doall_open ? (uint32_t)s->doall_open : config->cpus * config->core_threads,
                                  .limit = s->doall_records };

    *ret = source;
    simulate_order_accesses(source, config);
    if (source->stops_at_accesses || strcmp(s->doall, "keep") == 0
        || (!source->is_live && !trace_has_doall(source->trace)))
        return 0;
    return source_take_doall(source, &loops, ret, err);
}

/* Simulates run->source on run->machine, observed by the study. */
static int simulate_source(const struct command_state *s, struct observed_run *run, const char *name)
{
    const struct run_observer observer = { &run_study_report, s->study };
    const volatile uint32_t *stop = in_process_verb() ? in_process_verb()->host->want_end : &subject_want_end;
    struct progress progress;
    struct remap *remap = NULL;
    struct peet_err err;

    if (run_studies_open(&observer, 1, run->machine, run->source, &run->source, &err) < 0
        || (s->remap && remap_read(s->remap, run->source->trace, &remap, &err) < 0))
        return fail(&err);
    progress_init(&progress, stderr, name, 0, "references");
    int r = run_studies_play(&observer, 1, run, &(struct run_play){ stop, remap, &progress }, &err);
    progress_release(&progress);
    for (size_t i = 0; remap && r == 0 && remap_unused(remap, i); i++)
        warn("%s: '%s' did not occur", s->remap, remap_unused(remap, i));
    remap_free(remap);
    if (r < 0)
        return fail(&err);
    return run->result.is_interrupted ? subject_stopped_code(*stop) : EXIT_OK;
}

/* Ends a run that has a result: the study gets it. */
static void simulate_end(const struct command_state *s, struct observed_run *run)
{
    const struct run_observer observer = { &run_study_report, s->study };

    if (run->result.hw_thread)
        run_studies_end(&observer, 1, run);
}

/* In the program's process, which loads the machine itself. The study gets the result, without a simulation. */
static int simulate_in_process(const struct command_state *s, char **program, size_t i, struct observed_run *run)
{
    struct peet_err err;
    int code, status;

    if (in_process_verb_simulate(program, (uint32_t)s->ahead, i, &run->result, &code, &status, &err) < 0)
        return fail(&err);
    simulate_end(s, run);
    return code < 0 ? subject_exit_code(status) : code;
}

/* In this process: a trace, or a program that is controlled from here. */
static int simulate_here(const struct command_state *s, struct peet_trace *trace, char **program,
                         struct observed_run *run)
{
    const struct machine_config *config = run->machine;
    bool takes_loops = !s->remap && !config_has_store_buffers(config) && config->speculation.policy == SPECULATE_NONE
                       && !config->order.at_accesses;
    struct source *source;
    struct peet_err err;
    int r = trace ? source_open_trace(trace, takes_loops, &source, &err)
                  : source_open_program(program, (uint32_t)s->ahead, takes_loops, &source, &err);

    if (r < 0 || (config->cpus * config->core_threads > 1 && source_keep_conditions(source, &err) < 0)
        || simulate_split_loops(s, source, config, &run->source, &err) < 0)
        return fail(&err);
    int code = simulate_source(s, run, trace ? peet_trace_path(trace) : program[0]);
    if (code == EXIT_OK && !trace) {
        code = subject_exit_code(source_status(source));
        run->result.is_interrupted = subject_was_stopped(source_status(source));
    }
    simulate_end(s, run);
    source_free(run->source);
    return code;
}

/* Run number i of a trace, or of a program; its rows are added to the report. */
static int simulate_run(const struct command_state *s, struct peet_trace *trace, char **program, size_t i, bool is_last)
{
    struct machine_config config;
    struct observed_run run = { .machine = &config, .is_last = is_last };
    int code = simulate_load_run(s, &config, i);

    if (code != EXIT_OK)
        return code;
    code = !trace && !s->apart && in_process_verb_is_possible() ? simulate_in_process(s, program, i, &run)
                                                                : simulate_here(s, trace, program, &run);
    return code;
}

/* In the program's process: the one run that is asked for, whose result is the answer. */
static int simulate_answer(const struct command_state *s, const struct in_process_verb *here, char **program)
{
    struct machine_config config;
    struct observed_run run = { .machine = &config };
    struct source *source;
    struct peet_err err;
    int code = simulate_load_run(s, &config, here->run);

    run_report_study(s->study, 0);
    if (code == EXIT_OK
        && (source_open_host(here->host, !s->remap && !config_has_store_buffers(&config) && !config.order.at_accesses,
                             &source, &err)
                < 0
            || simulate_split_loops(s, source, &config, &run.source, &err) < 0))
        code = fail(&err);
    if (code == EXIT_OK)
        code = simulate_source(s, &run, program[0]);
    if (in_process_verb_answer_result(run.result.hw_thread ? -1 : code, &run.result, &err) < 0)
        code = fail(&err);
    simulate_end(s, &run);
    source_free(run.source);
    return code;
}

/* ---- all runs ---- */

static int simulate_check_options(const struct command_state *s)
{
    if (s->seeds > MAX_SEEDS)
        return usage_error(&cmd_simulate, "--seeds: 1 to %d were expected", MAX_SEEDS);
    if (s->doall_open > DOALL_MAX_WINDOW)
        return usage_error(&cmd_simulate, "--doall-open: 1 to %d were expected", DOALL_MAX_WINDOW);
    for (size_t i = 1; i < s->orders.count; i++)
        if (!strcmp(s->orders.item[i], order_sc.name))
            return usage_error(&cmd_simulate, "--order: sc comes first, or is left out");
    if (s->orders.count && simulate_is_set(s, "order.model"))
        return usage_error(&cmd_simulate, "--order sets order.model; leave out --order or --set order.model");
    if (s->ahead
        && (s->ahead < PRODUCER_AHEAD_LEAST || s->ahead > PRODUCER_AHEAD_MOST || s->ahead % PRODUCER_AHEAD_LEAST))
        return usage_error(&cmd_simulate, "--ahead: 4k to 1m were expected, in steps of 4k");
    if (s->seeds && simulate_is_set(s, "seed"))
        return usage_error(&cmd_simulate, "--seeds takes the seeds from 1 on; leave out --seeds or --set seed");
    return EXIT_OK;
}

static int simulate_show(const struct command_state *s, const struct result *r, struct peet_err *err)
{
    return s->output && strcmp(s->output, "-") != 0 ? view_save(s->format, r, s->output, err)
                                                    : view_show(s->format, r, stdout, err);
}

/* All runs of a trace, or of a program and its arguments. Mistakes in options are reported before the first one. */
static int simulate_all(const struct command_state *s, struct peet_trace *trace, char **program)
{
    size_t machines = s->cpus.count ? s->cpus.count : 1, orders = s->orders.count ? simulate_orders(s) : 1;
    size_t runs = machines * orders * (s->seeds ? (size_t)s->seeds : 1);
    struct machine_config config;
    struct result result = { 0 };
    struct peet_err err;
    int code = simulate_check_options(s);

    for (size_t i = 0; code == EXIT_OK && i < machines; i++)
        code = simulate_load(s, &config, s->cpus.count ? s->cpus.item[i] : NULL, 0);
    if (code != EXIT_OK)
        return code;
    struct run_report *report = run_report_study(s->study, s->seeds);
    if (trace && peet_trace_lacks_order(trace))
        table_note(report->runs, "%s", peet_trace_lacks_order(trace));
    if (trace && peet_trace_lacks_content(trace))
        table_note(report->runs, "%s", peet_trace_lacks_content(trace));
    for (size_t i = 0; code == EXIT_OK && i < runs; i++)
        code = simulate_run(s, trace, program, i, i + 1 == runs);
    if (report->added) {
        run_study_report.report(s->study, &result);
        result_title(&result, trace ? peet_trace_path(trace) : program[0]);
        if (simulate_show(s, &result, &err) < 0)
            code = fail(&err);
        result_release(&result);
    }
    return code;
}

static int simulate_trace(const struct command_state *s, const char *path)
{
    struct peet_trace *trace;
    struct peet_err err;
    int code;

    if (peet_trace_open(path, &trace, &err) < 0)
        return fail(&err);
    subject_expect_end();
    if (peet_trace_is_pipe(trace))
        code = usage_error(&cmd_simulate, "a trace is read thread by thread, which a pipe cannot do: give a file");
    else
        code = simulate_all(s, trace, NULL);
    for (size_t i = 0; peet_trace_problem(trace, i); i++) {
        warn("%s", peet_trace_problem(trace, i));
        code = code == EXIT_OK ? EXIT_DAMAGED : code;
    }
    peet_trace_free(trace);
    return code;
}

static int simulate_main(struct command_state *s, int operands, char **operand)
{
    if (operands == 0)
        return usage_error(&cmd_simulate, "no trace and no program given");
    if (operands > 1 && subject_is_trace(operand[0]))
        return usage_error(&cmd_simulate, "one trace was expected");
    if (s->output && !in_process_verb() && subject_check_output(s->output) != EXIT_OK)
        return EXIT_FAILED;
    if (!subject_is_program(operands, operand[0]))
        return simulate_trace(s, operand[0]);
    operand[operands] = NULL; /* argv has room: it held the verb, at least */
    return in_process_verb() ? simulate_answer(s, in_process_verb(), operand) : simulate_all(s, NULL, operand);
}

static void simulate_init(struct command_state *s)
{
    s->study = run_study_state_new(&run_study_report, NULL);
}

static size_t simulate_more_options(struct command_state *s, struct opt *ret)
{
    return command_bind(ret, run_study_report.options, s->study);
}

static void simulate_release(struct command_state *s)
{
    run_study_state_free(&run_study_report, s->study);
}

#define X(name) #name,
static const char *const ORDERS[] = { MEMORY_ORDERS(X) NULL };
#undef X
static const char *const DOALL[] = { "split", "keep", NULL };

static const struct opt options[] = {
    SUBJECT_MACHINE_OPTIONS(machine, settings),
    { .name = "cpus",
      .type = OPT_LIST,
      .arg = "N",
      .value = OPTION(cpus),
      .help = "numbers of processors: a run for each, and the speed-up" },
    { .name = "order",
      .type = OPT_LIST,
      .value = OPTION(orders),
      .choices = ORDERS,
      .help = "memory orders: a run for each, and what it costs against sc, which runs first" },
    { .name = "seeds",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = OPTION(seeds),
      .help = "run with the seeds 1 to N: means, and how far they can be trusted" },
    { .name = "doall",
      .type = OPT_CHOICE,
      .value = OPTION(doall),
      .choices = DOALL,
      .help = "parallel loops that one thread recorded: iterations side by side (split), or as recorded" },
    { .name = "doall-open",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = OPTION(doall_open),
      .help = "iterations of a loop that are open at a time (as many as hardware threads)" },
    { .name = "doall-records",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = OPTION(doall_records),
      .help = "records of an iteration that are kept at most while others run (4m)" },
    { .name = "ahead",
      .type = OPT_NUMBER,
      .arg = "BYTES",
      .value = OPTION(ahead),
      .help = "stop a thread of a program when it has written BYTES of event words (128k; 4k to 1m)" },
    { .name = "apart",
      .type = OPT_FLAG,
      .value = OPTION(apart),
      .help = "keep the machine out of the program's process: the same result, and slower" },
    { .name = "remap",
      .type = OPT_STRING,
      .arg = "FILE",
      .value = OPTION(remap),
      .help = "rules that move data to other addresses, for the machine only" },
    { .name = "output",
      .letter = 'o',
      .type = OPT_STRING,
      .arg = "FILE",
      .value = OPTION(output),
      .help = "write the result to FILE" },
    FORMAT_OPTION,
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
    "peet simulate --order tso,pso -m modern radix.peet",
    "what store buffers gain and fences cost, by line",
    "peet simulate --remap padded.rules falseshare.peet",
    "as if elements of an array were farther apart: spread heap:wl_alloc every 8 to 64",
    "peet simulate -m sato1999 -- ./fft -m 16 -p 4",
    "a program built with peet cc runs as the machine decides: which thread gets a lock, which runs next",
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
    .state_size = sizeof(struct command_state),
    .defaults =
        &(const struct command_state){
            .machine = "modern", .format = "text", .doall = "split", .doall_records = 4 << 20 },
    .examples = examples,
    .init = simulate_init,
    .more = simulate_more_options,
    .release = simulate_release,
    .run = simulate_main,
};
