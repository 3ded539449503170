/* SPDX-License-Identifier: MIT */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/progress.h"
#include "capture/producer.h"
#include "cli/inside.h"
#include "cli/subject.h"
#include "study/profile/sampling/advice.h"
#include "study/profile/sampling/estimate_profile.h"
#include "study/profile/export/export.h"
#include "study/profile/profile.h"
#include "view/view.h"

static const char *machine = "modern", *format, *output, *cpus, *callgrind, *stacks, *trace_path;
static struct opt_list settings;
enum {
    DEFAULT_LENGTH = 500000, /* references of a sample */
    FIRST_LENGTH = 1000,     /* the same of a program that runs, with --sample auto: at first, */
    LAST_LENGTH = 8000000,   /*   and when they have become longer */
    WHOLE_AHEAD = 1 << 19,   /* bytes of words after which the machine runs instead of the program; */
    SAMPLED_AHEAD = 1 << 17, /*   what a program says behind a window is said in vain */
};
static const char *sample, *sets, *color = "auto", *allow;
static uint64_t sample_length = DEFAULT_LENGTH, sample_seed = 1;
static bool is_random, is_steady, is_automatic;
enum { ROWS = 20, ROWS_OF_PAGE = 100 };
static uint64_t top = UINT64_MAX; /* not given */
static uint64_t calls;
static struct profile_wants wants = { .sort = "stall" };

/* ---- what comes out ---- */

static bool is_cut; /* the program was stopped while it was recorded */
static FILE *shown; /* NULL: on standard output */
static struct view_style style;

static int save(const char *path, int (*write)(const struct profile *p, FILE *out), const struct profile *p)
{
    FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");

    if (!out || write(p, out) < 0 || (out != stdout && fclose(out) != 0)) {
        complain("%s: cannot be written", path);
        return EXIT_FAILED;
    }
    return EXIT_OK;
}

static bool is_filed(void)
{
    return output && strcmp(output, "-") != 0;
}

static void choose_style(void)
{
    if (is_filed())
        return;
    style = view_style_of(stdout);
    if (!strcmp(color, "never"))
        style.colour = style.bars = false;
    else if (!strcmp(color, "always"))
        style.colour = style.bars = true;
}

/* For the program's process, which has no terminal and no environment of ours. */
static size_t style_number(void)
{
    return (size_t)style.width << 2 | (size_t)style.bars << 1 | style.colour;
}

static void take_style(size_t number)
{
    style = (struct view_style){ .colour = number & 1, .bars = number >> 1 & 1, .width = (int)(number >> 2) };
}

static int show(const struct result *r)
{
    struct peet_err err;
    int code =
        is_filed() ? view_save(format, r, output, &err) : view_show_in(format, r, &style, shown ? shown : stdout, &err);

    return code < 0 ? fail(&err) : EXIT_OK;
}

static bool is_page(void)
{
    return format && !strcmp(format, "html");
}

static int report(const struct profile *p, const char *title)
{
    struct result result = { 0 };

    wants.source |= is_page();
    result_title(&result, title);
    profile_report(p, &wants, &result);
    int code = show(&result);
    if (code == EXIT_OK && callgrind)
        code = save(callgrind, profile_callgrind, p);
    if (code == EXIT_OK && stacks)
        code = save(stacks, profile_stacks, p);
    result_release(&result);
    return code;
}

/* ---- what goes in ---- */

/* "1/10" */
static int read_part(const char *option, const char *text, uint64_t *ret)
{
    char *end = NULL;

    if (strncmp(text, "1/", 2) == 0 && text[2] >= '0' && text[2] <= '9')
        *ret = strtoull(text + 2, &end, 10);
    if (end && *end == 0 && *ret >= 1 && *ret <= 1000000)
        return EXIT_OK;
    return usage_error(&cmd_profile, "--%s %s: a part as 1/10 was expected, down to 1/1000000", option, text);
}

static int read_sampling(const struct machine_config *config, struct sample_config *ret)
{
    uint64_t time_part = 1, set_part = 1;
    struct peet_err err;
    int code = sample ? read_part("sample", sample, &time_part) : EXIT_OK;

    if (code == EXIT_OK && sets)
        code = read_part("sets", sets, &set_part);
    if (code != EXIT_OK)
        return code;
    if (sample && (sample_length == 0 || sample_length > UINT64_MAX / 2 / time_part))
        return usage_error(&cmd_profile, "--length: between 1 and %" PRIu64 " references were expected",
                           UINT64_MAX / 2 / time_part);
    *ret = (struct sample_config){ .is_random = is_random, .seed = sample_seed, .one_in = (uint32_t)set_part };
    if (sample) {
        ret->length = sample_length;
        ret->every = sample_length * time_part;
    }
    return sampled_geometry(config, ret, &err) < 0 ? fail(&err) : EXIT_OK;
}

/* A trace, and its profile when it has run. */
struct subject {
    struct peet_trace *trace;
    struct source *source;
    struct profile *profile;
    size_t told; /* problems of names that the user has been told */
};

static void tell_problems_of_names(struct subject *s)
{
    const char *problem;

    while (s->profile && (problem = symbols_problem(s->profile->symbols, s->told))) {
        warn("%s", problem);
        s->told++;
    }
}

static int run_subject(struct subject *s, const char *title, const volatile uint32_t *stop, struct peet_err *err)
{
    struct progress progress;

    objects_set_depth(s->profile->objects, (unsigned)calls);
    progress_init(&progress, stderr, title, 0, "references");
    int r = profile_run(s->profile, stop, &progress, err);
    progress_release(&progress);
    return r;
}

/* A run that nobody has looked at has no profile. */
static int check_windows(const struct subject *s, const char *name, const volatile uint32_t *stop)
{
    const struct sampled *sampled = s->profile->sampled;

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

static int open_subject(struct subject *s, const char *path, const char *title)
{
    struct machine_config config;
    struct sample_config sampling;
    struct peet_err err;
    int code = subject_machine(&config, machine, &settings, cpus);

    if (code == EXIT_OK && (sample || sets))
        code = read_sampling(&config, &sampling);
    if (code != EXIT_OK)
        return code;
    if (peet_trace_open(path, &s->trace, &err) < 0)
        return fail(&err);
    if (peet_trace_is_pipe(s->trace))
        return usage_error(&cmd_profile, "a trace is read thread by thread, which a pipe cannot do: give a file");
    if (profile_open_trace(s->trace, &config, sample || sets ? &sampling : NULL, &s->source, &s->profile, &err) < 0)
        return fail(&err);
    tell_problems_of_names(s);
    subject_expect_end();
    int r = run_subject(s, title, &subject_want_end, &err);
    s->profile->result.is_interrupted |= is_cut;
    return r < 0 ? fail(&err) : check_windows(s, path, &subject_want_end);
}

static void drop_subject(struct subject *s)
{
    profile_free(s->profile);
    source_free(s->source);
    peet_trace_free(s->trace);
    *s = (struct subject){ 0 };
}

/* Says what was wrong with the trace, and which code that is. */
static int close_subject(struct subject *s, int code)
{
    if (code == EXIT_OK && s->profile->result.is_interrupted)
        code = subject_stopped_code(subject_want_end);
    tell_problems_of_names(s);
    for (size_t i = 0; s->trace && peet_trace_problem(s->trace, i); i++) {
        warn("%s", peet_trace_problem(s->trace, i));
        code = code == EXIT_OK ? EXIT_DAMAGED : code;
    }
    drop_subject(s);
    return code;
}

static int profile_trace(const char *path, const char *title)
{
    struct subject s = { 0 };
    int code = open_subject(&s, path, title);

    if (code == EXIT_OK)
        code = report(s.profile, title);
    return close_subject(&s, code);
}

static int compare(char **path)
{
    struct subject before = { 0 }, after = { 0 };
    struct result result = { 0 };
    int code = open_subject(&before, path[0], path[0]);

    if (code == EXIT_OK)
        code = open_subject(&after, path[1], path[1]);
    if (code == EXIT_OK) {
        char *title = mem_format("%s → %s", path[0], path[1]);
        result_title(&result, title);
        free(title);
        bool is_worse = profile_diff(before.profile, after.profile, &wants, &result);
        code = show(&result);
        if (code == EXIT_OK && is_worse && !before.profile->result.is_interrupted
            && !after.profile->result.is_interrupted)
            code = EXIT_FOUND;
        result_release(&result);
    }
    code = close_subject(&after, code);
    return close_subject(&before, code);
}

/* ---- how much is enough ---- */

enum { FIRST_PART = 64, SAMPLES = 10 };

/* One profile of several; NULL is the whole one. */
static int try_part(struct subject *s, const char *path, const char *title, const char *part)
{
    drop_subject(s);
    sample = part;
    return open_subject(s, path, title);
}

/* How long samples are to be, from a first look; 0: there is no use in them. */
static int choose_length(const char *path, const char *title, uint64_t references)
{
    uint64_t given = sample_length, first = references / 100 / SAMPLES;
    struct subject s = { 0 };

    sample_length = 0;
    if (references < ADVICE_MODERATE_SIZE)
        return EXIT_OK;
    sample_length = first < DEFAULT_LENGTH ? first : DEFAULT_LENGTH;
    int code = try_part(&s, path, title, "1/100");
    if (code == EXIT_OK) {
        const struct profile *p = s.profile;
        sample_length = advice_for(p->references ? (double)p->misses / (double)p->references : 0, references).length;
    }
    if (sample_length && given != DEFAULT_LENGTH)
        sample_length = given;
    drop_subject(&s);
    return code;
}

/* Ever more samples, until twice as many say the same of the data that matter; of a program that is steady, as few as there may be. */
static int profile_automatically(const char *path, const char *title)
{
    struct subject s = { 0 };
    char *before = NULL, part[16];
    uint64_t references;
    bool is_enough = false;
    struct peet_err err;

    if (peet_trace_open(path, &s.trace, &err) < 0)
        return fail(&err);
    references = subject_references(s.trace);
    drop_subject(&s);
    int code = choose_length(path, title, references);
    for (unsigned one_in = FIRST_PART; code == EXIT_OK && !is_enough; one_in /= 2) {
        bool is_whole = sample_length == 0 || one_in < 2;
        if (!is_whole && references / one_in / sample_length < SAMPLES)
            continue; /* too few */
        snprintf(part, sizeof part, "1/%u", one_in);
        code = try_part(&s, path, title, is_whole ? NULL : part);
        char *order = code == EXIT_OK ? advice_order(s.profile) : NULL;
        is_enough = is_whole || is_steady || subject_want_end || (before && order && strcmp(before, order) == 0);
        free(before);
        before = order;
    }
    free(before);
    if (code == EXIT_OK)
        code = report(s.profile, title);
    return close_subject(&s, code);
}

static int profile_recording(const char *path, const char *title)
{
    return is_automatic ? profile_automatically(path, title) : profile_trace(path, title);
}

/* ---- a program while it runs ---- */

/* A path that stays the same when the program changes its folder. */
static const char *fixed_path(const char *path)
{
    char *folder = path && path[0] != '/' && strcmp(path, "-") != 0 ? getcwd(NULL, 0) : NULL;

    return folder ? mem_format("%s/%s", folder, path) : path;
}

/* Nobody knows how long a program will run, nor how often it will miss: windows grow, so that there are some in any case, and they know enough of large caches; the part
 * stays the same. */
static int read_automatic(const struct machine_config *config, struct sample_config *ret)
{
    bool is_given = sample_length != DEFAULT_LENGTH;
    uint64_t length = sample_length;

    sample = is_steady ? "1/64" : "1/10";
    sample_length = is_given ? length : FIRST_LENGTH;
    int code = read_sampling(config, ret);
    sample_length = length;
    ret->most = is_given ? 0 : LAST_LENGTH;
    return code;
}

/* What is asked for: mistakes are told before work begins. */
static int read_wishes(struct machine_config *machine_, struct sample_config *sampling)
{
    int code = subject_machine(machine_, machine, &settings, cpus);

    if (code != EXIT_OK || !(sample || sets))
        return code;
    return is_automatic ? read_automatic(machine_, sampling) : read_sampling(machine_, sampling);
}

/* The program in whose process this is, to its end. */
static int run_here(struct subject *s, const struct inside *inside, const char *title)
{
    struct machine_config config;
    struct sample_config sampling;
    const struct sample_config *of = sample || sets ? &sampling : NULL;
    struct source *inner;
    struct peet_err err;
    int code = read_wishes(&config, &sampling);

    if (code != EXIT_OK)
        return code;
    if (source_open_host(inside->host, of != NULL, &inner, &err) < 0
        || profile_open_source(inner, &config, of, &s->source, &s->profile, &err) < 0
        || run_subject(s, title, inside->host->want_end, &err) < 0)
        return fail(&err);
    return check_windows(s, title, inside->host->want_end);
}

/* In the program's process: the report goes outside as it is to be shown. */
static int profile_here(const struct inside *inside, char **program)
{
    struct subject s = { 0 };
    struct peet_err err;
    char *text = NULL;
    size_t bytes = 0;

    callgrind = fixed_path(callgrind);
    stacks = fixed_path(stacks);
    take_style(inside->run);
    output = NULL; /* that is outside */
    int code = run_here(&s, inside, program[0]);
    FILE *out = code == EXIT_OK ? open_memstream(&text, &bytes) : NULL;
    if (out) {
        shown = out;
        code = report(s.profile, program[0]);
        fclose(out);
        tell_problems_of_names(&s);
    }
    int answered = inside_answer_bytes(code == EXIT_OK ? -1 : code, text, bytes, &err);
    if (answered < 0)
        code = fail(&err);
    else if (code == EXIT_OK && s.profile->result.is_interrupted)
        code = subject_stopped_code(*inside->host->want_end);
    free(text);
    profile_free(s.profile);
    source_free(s.source);
    return code;
}

/* All that is left of the answer. */
static int pass_on(FILE *answer)
{
    FILE *out = is_filed() ? fopen(output, "w") : stdout;
    char bytes[1 << 14];
    bool ok = out != NULL;

    for (size_t n; ok && (n = fread(bytes, 1, sizeof bytes, answer)) > 0;)
        ok = fwrite(bytes, 1, n, out) == n;
    if (out && (out == stdout ? fflush(out) : fclose(out)) != 0)
        ok = false;
    if (ok)
        return EXIT_OK;
    complain("%s: cannot be written", output ? output : "the report");
    return EXIT_FAILED;
}

/* How much a thread says before it is stopped: one processor runs what it is given to the end, several take turns. */
static uint32_t ahead_for(const struct machine_config *c)
{
    return c->cpus > 1 ? 0 : sample ? SAMPLED_AHEAD : WHOLE_AHEAD;
}

/* After a report the program's own status counts, and is told unless it is 0. */
static int own_status(const char *program, int status)
{
    int code = subject_exit_code(status);

    if (code)
        warn("%s ended with status %d: this is the profile of what it did", program, code);
    return code;
}

static int profile_inside(char **program)
{
    struct machine_config config;
    struct sample_config unused;
    struct peet_err err;
    FILE *answer;
    int inner, status, code = read_wishes(&config, &unused);

    if (code != EXIT_OK)
        return code;
    if (inside_ask(program, ahead_for(&config), style_number(), &answer, &inner, &status, &err) < 0)
        return fail(&err);
    code = inner < 0 ? pass_on(answer) : inner;
    fclose(answer);
    return inner < 0 && code == EXIT_OK ? own_status(program[0], status) : code;
}

/* The name of a new, empty file of our own, so that a recording goes to no file, and through no link, that another user
 * left there. To be freed; NULL: see err. */
static char *new_recording(struct peet_err *err)
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

/* Else a program is recorded first, into a file that is gone afterwards unless it is wanted. */
static int profile_program(char **program)
{
    struct producer_config config = { .argv = program };
    struct machine_config unused;
    struct sample_config unused_too;
    struct recording recording = { 0 };
    struct peet_err err;
    int code = read_wishes(&unused, &unused_too);
    char *path = code != EXIT_OK ? NULL : trace_path ? mem_string(trace_path) : new_recording(&err);

    if (code != EXIT_OK || !path)
        return code != EXIT_OK ? code : fail(&err);
    if (record_trace(&producer_live, &config, path, &recording, &err) < 0)
        code = fail(&err);
    for (size_t i = 0; i < recording.warnings; i++)
        warn("%s", recording.warning[i]);
    int status = recording.status;
    recording_release(&recording);
    is_cut = subject_was_stopped(status);
    if (code == EXIT_OK) {
        int own = own_status(program[0], status);
        code = profile_recording(path, program[0]);
        if (own && (code == EXIT_OK || is_cut))
            code = own;
    }
    if (!trace_path)
        unlink(path);
    free(path);
    return code;
}

/* Options that would do nothing. */
static int check_options(bool is_diff)
{
    const char *const written[] = { output, callgrind, stacks, trace_path };

    if (is_steady && !is_automatic)
        return usage_error(&cmd_profile, "--steady goes with --sample auto");
    if (!sample && (is_random || sample_length != DEFAULT_LENGTH))
        return usage_error(&cmd_profile, "--%s goes with --sample", is_random ? "random" : "length");
    if (is_diff && (callgrind || stacks || trace_path))
        return usage_error(&cmd_profile, "--%s is not for diff", callgrind ? "callgrind" : stacks ? "stacks" : "trace");
    if (calls >= OBJECT_PATH)
        return usage_error(&cmd_profile, "--calls: at most %d were expected", OBJECT_PATH - 1);
    for (size_t i = 0; i < sizeof written / sizeof *written && !inside_here(); i++)
        if (written[i] && subject_check_output(written[i]) != EXIT_OK)
            return EXIT_FAILED;
    return EXIT_OK;
}

/* How much worse a comparison may come out, in percent. */
static int read_allowed(bool is_diff)
{
    char *end;
    double percent = allow ? strtod(allow, &end) : 1;

    if (allow && !is_diff)
        return usage_error(&cmd_profile, "--allow goes with diff");
    if (allow && (end == allow || *end || !(percent >= 0 && percent <= 1e6)))
        return usage_error(&cmd_profile, "--allow %s: percent were expected, as 0.5", allow);
    wants.allow = percent / 100;
    return EXIT_OK;
}

/* What is given: one trace, two, or a program. */
static int check_operands(int operands, char **operand, bool is_diff)
{
    if (operands == 0)
        return usage_error(&cmd_profile, "no trace and no program given");
    if (is_diff && operands != 3)
        return usage_error(&cmd_profile, "diff takes two traces (a program of that name is ./diff)");
    if (operands > 1 && subject_is_trace(operand[0]))
        return usage_error(&cmd_profile, "one trace was expected; 'peet profile diff' compares two");
    if (trace_path && (is_diff || subject_is_trace(operand[0])))
        return usage_error(&cmd_profile, "--trace is for programs that run");
    return EXIT_OK;
}

static int run(int operands, char **operand)
{
    int code;

    bool is_diff = operands > 0 && !strcmp(operand[0], "diff");

    is_automatic = sample && !strcmp(sample, "auto");
    if ((code = check_operands(operands, operand, is_diff)) != EXIT_OK || (code = check_options(is_diff)) != EXIT_OK
        || (code = read_allowed(is_diff)) != EXIT_OK)
        return code;
    choose_style();
    wants.top = top != UINT64_MAX ? top : is_page() ? ROWS_OF_PAGE : ROWS;
    if (is_diff) {
        code = compare(operand + 1);
    } else if (subject_is_program(operands, operand[0])) {
        operand[operands] = NULL;   /* argv has room: it held the verb, at least */
        bool is_once = !trace_path; /* else there has to be a recording */
        code = inside_here()                        ? profile_here(inside_here(), operand)
               : is_once && inside_is_here_to_run() ? profile_inside(operand)
                                                    : profile_program(operand);
    } else {
        code = profile_recording(operand[0], operand[0]);
    }
    opt_list_release(&settings);
    return code;
}

static const char *const COLORS[] = { "auto", "always", "never", NULL };
static const char *const SORTS[] = { "stall", "misses", "references", NULL };

static const struct opt options[] = {
    SUBJECT_MACHINE_OPTIONS(machine, settings),
    { .name = "cpus", .type = OPT_STRING, .arg = "N", .value = &cpus, .help = "the number of processors" },
    { .name = "top",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = &top,
      .help = "rows of each table (20, in a page 100; 0: all)" },
    { .name = "sort", .type = OPT_CHOICE, .value = &wants.sort, .choices = SORTS, .help = "what comes first" },
    { .name = "focus",
      .type = OPT_STRING,
      .arg = "NAME",
      .value = &wants.focus,
      .help = "only what has to do with this data object or function" },
    { .name = "calls",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = &calls,
      .help = "tell blocks of the heap apart by N calls above the one that names them, too (0)" },
    { .name = "source",
      .type = OPT_FLAG,
      .value = &wants.source,
      .help = "also the source of what costs most, line by line (always with --format html)" },
    { .name = "sample",
      .type = OPT_STRING,
      .arg = "1/N|auto",
      .value = &sample,
      .help = "look at one in N references, in windows, and estimate the rest; auto: as many as needed" },
    { .name = "steady",
      .type = OPT_FLAG,
      .value = &is_steady,
      .help = "with --sample auto: the program does the same all the time" },
    { .name = "length",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = &sample_length,
      .help = "references in a window (500000)" },
    { .name = "random",
      .type = OPT_FLAG,
      .value = &is_random,
      .help = "windows at random places, for programs that repeat themselves" },
    { .name = "sets",
      .type = OPT_STRING,
      .arg = "1/N",
      .value = &sets,
      .help = "look at one in N sets of the last own cache" },
    { .name = "seed", .type = OPT_NUMBER, .arg = "N", .value = &sample_seed, .help = "for --random and --sets (1)" },
    { .name = "callgrind",
      .type = OPT_STRING,
      .arg = "FILE",
      .value = &callgrind,
      .help = "also write what callgrind_annotate and KCachegrind read" },
    { .name = "stacks",
      .type = OPT_STRING,
      .arg = "FILE",
      .value = &stacks,
      .help = "also write call paths with their cycles, a line each, for flame graphs" },
    { .name = "trace",
      .type = OPT_STRING,
      .arg = "FILE",
      .value = &trace_path,
      .help = "keep the recording of the program there" },
    { .name = "allow",
      .type = OPT_STRING,
      .arg = "PERCENT",
      .value = &allow,
      .help = "with diff: a smaller change is none; status 1 if memory stall grows by more (1)" },
    { .name = "color",
      .type = OPT_CHOICE,
      .value = &color,
      .choices = COLORS,
      .help = "colours and bars in text: on a terminal (auto), in a pipe, too, or never" },
    { .name = "output",
      .letter = 'o',
      .type = OPT_STRING,
      .arg = "FILE",
      .value = &output,
      .help = "write the report to FILE" },
    { 0 },
};

static const char *const examples[] = {
    "peet profile -- ./fft -m 16 -p 4",
    "run a program built with peet cc: which data, which code, and why it waits for memory",
    "peet profile -m memspy-128k fft.peet",
    "the same of a recording, with another cache",
    "peet profile --focus grid ocean.peet",
    "all about one data object, or one function",
    "peet profile --sample 1/10 --random fft.peet",
    "from a tenth of the references, with what is unknown and how far off it may be",
    "peet profile diff before.peet after.peet",
    "what got better or worse between two recordings, by data and function",
    "peet profile --allow 5 diff before.peet after.peet || echo slower",
    "a check for CI: status 1 if memory waits over 5 % longer than before",
    "peet profile --format html -o fft.html fft.peet",
    "a page with plots, for a browser",
    "peet profile --callgrind callgrind.out.fft fft.peet && callgrind_annotate callgrind.out.fft",
    "line by line, by another tool",
    NULL,
};

const struct command cmd_profile = {
    .name = "profile",
    .summary = "show which data and which code wait for memory, and why",
    .operands = "[OPTION…] TRACE | diff TRACE.peet TRACE.peet | -- PROGRAM [ARGUMENT…]",
    .options = options,
    .examples = examples,
    .format = &format,
    .run = run,
};
