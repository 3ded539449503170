/* SPDX-License-Identifier: MIT */
/* The producer: finds QEMU, makes the guest's first file system, runs QEMU, and reads the report. The plugin in QEMU writes the trace, so that
 * it is complete however the guest ends. */
#include "capture/system/system.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"

/* The state of the producer `system`. */
struct producer_state {
    struct system_config own; /* the user's, with is_other and is_own set */
    const struct system_config *config;
    char folder[PATH_MAX]; /* for temporary files; "": none yet */
    char *console, *report, *initrd, *log, *plugin, *list, *answer;
    int answer_fd; /* of the FIFO; kept open, because opening one end blocks until the other is open */
    struct apps apps;
    struct emulator emulator;
    struct words command;
};

static int system_make_folder(struct producer_state *s, const char *out, struct peet_err *err)
{
    const char *tmp = getenv("TMPDIR");
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/peet-system.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(path))
        return err_sys(err, errno, "%s: cannot create", path);
    memcpy(s->folder, path, sizeof path);
    s->report = mem_format("%s/report", s->folder);
    s->initrd = mem_format("%s/initramfs", s->folder);
    s->log = mem_format("%s/qemu.log", s->folder);
    s->list = mem_format("%s/files", s->folder);
    s->console = mem_format("%s.console", out);
    return 0;
}

/* PEET_PLUGIN=none boots without one, for trying. */
static int find_plugin(struct producer_state *s, struct peet_err *err)
{
    static const char *const places[] = { "libpeet-qemu.so", "../../libpeet-qemu.so" };
    const char *given = getenv("PEET_PLUGIN");

    if (given && !strcmp(given, "none"))
        return 0;
    if (given)
        s->plugin = mem_string(given);
    for (size_t i = 0; i < sizeof places / sizeof *places && !s->plugin; i++) {
        char *path = mem_format("%s/%s", s->config->folder, places[i]);
        if (access(path, R_OK) == 0)
            s->plugin = path;
        else
            free(path);
    }
    return s->plugin ? 0
                     : err_set(err, PEET_ERR_IO,
                               "there is no libpeet-qemu.so in %s: peet is not completely built or installed",
                               s->config->folder);
}

/* The console's input. */
static int make_answer(struct producer_state *s, struct peet_err *err)
{
    char *path = mem_format("%s/answer", s->folder);

    if (mkfifo(path, 0600) < 0 || (s->answer_fd = open(path, O_RDWR | O_CLOEXEC)) < 0) {
        int r = err_sys(err, errno, "%s: cannot create", path);
        free(path);
        return r;
    }
    s->answer = path;
    return 0;
}

/* Options that speak of the file system that peet makes, which a system of the user's own does not have. */
static int check_own(const struct system_config *c, bool apps, struct peet_err *err)
{
    const char *why = c->image ? "--image is a system that starts its programs itself"
                               : "--kernel names a kernel that is not Linux, which starts its programs itself";

    if (apps)
        return err_set(err, PEET_ERR_USAGE, "%s: --app cannot be put into it", why);
    if (c->files.count)
        return err_set(err, PEET_ERR_USAGE, "%s: --file cannot be put into it; put %s into the system itself", why,
                       c->files.item[0]);
    if (c->sysroot)
        return err_set(err, PEET_ERR_USAGE,
                       "%s: --sysroot, where libraries of --app are, does not matter to it; --symbols FILE names its "
                       "functions",
                       why);
    if (c->marked)
        return err_set(err, PEET_ERR_USAGE, "%s: nothing is preloaded there; leave out --marked", why);
    return 0;
}

static int system_check(const struct producer_config *config, const struct system_config *c, struct peet_err *err)
{
    bool apps = c->apps.count || (config->argv && config->argv[0]);
    int r;

    if (c->is_own && (r = check_own(c, apps, err)) < 0)
        return r;
    if (!c->is_own && !apps)
        return err_set(err, PEET_ERR_USAGE, "nothing to run: --app 'PROGRAM ARGUMENT…', or --image DISK");
    if (c->initrd && !(c->is_own && c->kernel))
        return err_set(err, PEET_ERR_USAGE,
                       "--initrd goes with --image and --kernel; files for programs come with --file");
    if (!c->is_own && c->symbols.count)
        return err_set(err, PEET_ERR_USAGE,
                       "--symbols is for systems of your own (--image, or a --kernel that is not Linux); programs of "
                       "--app have their symbols without it");
    for (size_t i = 0; i < c->symbols.count; i++)
        if (access(c->symbols.item[i], R_OK) < 0)
            return err_sys(err, errno, "--symbols %s: cannot be read", c->symbols.item[i]);
    if (c->image && access(c->image, R_OK) < 0)
        return err_sys(err, errno, "--image %s: cannot be read", c->image);
    if (config->max || config->regions.count || config->only.count || config->skip.count || config->level)
        return err_set(err, PEET_ERR_USAGE,
                       "--level, --values, --max, --region, --only and --skip do not work with --system");
    return 0;
}

/* What kind of system it is. */
static int find_kind(struct producer_state *s, const struct system_config *config, struct peet_err *err)
{
    bool is_linux = true;
    int r = config->kernel ? kernel_is_linux(config->kernel, &is_linux, err) : 0;

    s->own = *config;
    s->own.is_other = !is_linux;
    s->own.is_own = config->image || !is_linux;
    s->config = &s->own;
    return r;
}

static int system_prepare(struct producer_state *s, const struct producer_config *config, const char *out,
                          struct recording *ret, struct peet_err *err)
{
    const struct system_config *c = &s->own;
    struct guest_files files = { .trace = out };
    int r;

    if ((r = find_kind(s, config->system, err)) < 0 || (r = system_check(config, c, err)) < 0
        || (r = qemu_check(c, err)) < 0 || (r = system_make_folder(s, out, err)) < 0
        || (r = apps_find(c, config->argv, &s->apps, err)) < 0 || (r = find_plugin(s, err)) < 0)
        return r;
    if (s->plugin && guest_asks(c) && (r = make_answer(s, err)) < 0)
        return r;
    files.initrd = c->is_own ? NULL : s->initrd;
    files.list = c->is_own ? NULL : s->list;
    files.apps = s->apps.count;
    files.plugin = s->plugin;
    files.report = s->report;
    files.console = s->console;
    files.answer = s->answer;
    if (!c->is_own && (r = guest_build(c, &s->apps, &files, ret, &files.initrd_bytes, err)) < 0)
        return r;
    if ((r = emulator_find(c, false, &s->emulator, err)) < 0)
        return r;
    return qemu_command(c, config->aslr, &s->emulator, &files, &s->command, err);
}

/* ---- what came of it ---- */

/* The first line of QEMU's log that is no warning, for the cause comes first; "" if there is none. */
static void first_complaint(const char *path, char *ret, size_t room)
{
    char *line = NULL;
    size_t n = 0;
    FILE *f = fopen(path, "re");

    *ret = 0;
    while (f && !*ret && getline(&line, &n, f) >= 0) {
        line[strcspn(line, "\r\n")] = 0;
        if (*line && !strstr(line, "warning: "))
            snprintf(ret, room, "%s", line);
    }
    free(line);
    if (f)
        fclose(f);
}

static void tell_of_apps(const struct producer_state *s, const struct console *console, struct recording *ret)
{
    for (size_t i = 0; i < console->apps; i++) {
        const struct console_app *a = &console->app[i];
        const char *name = s->apps.item[i].argv.item[0];
        if (a->ended && a->status && !ret->status)
            ret->status = a->status; /* the first that went wrong is what we end with */
        if (!a->ended)
            recording_warn(ret, "application %zu, %s, had not ended", i + 1, name);
        else if (WIFSIGNALED(a->status))
            recording_warn(ret, "application %zu, %s, was ended by signal %d (%s)", i + 1, name, WTERMSIG(a->status),
                           strsignal(WTERMSIG(a->status)));
        else if (a->status && console->apps > 1)
            recording_warn(ret, "application %zu, %s, ended with status %d", i + 1, name, WEXITSTATUS(a->status));
    }
}

static int tell_of_plugin(const struct producer_state *s, const struct report *report, struct recording *ret,
                          struct peet_err *err)
{
    ret->threads = report->threads;
    ret->processes = report->processes;
    ret->instructions = report->instructions;
    ret->references = report->references;
    for (size_t i = 0; i < report->warnings.count; i++)
        recording_warn(ret, "%s", report->warnings.item[i]);
    if (report->there && !report->threads)
        recording_warn(ret, "no thread was marked, so nothing is recorded: %s",
                       s->config->is_other ? "the programs have to include peet/mark_bare.h, and to run in user mode"
                       : s->config->is_own
                           ? "the programs have to include peet/mark.h, or to run with libpeet-mark.so preloaded"
                       : s->config->marked || s->config->plugin.pattern
                           ? "the programs do not execute the pattern"
                           : "static programs have to be linked with libpeet-mark.a, or to include peet/mark.h");
    if (report->lost)
        recording_warn(ret, "%llu instructions were lost", (unsigned long long)report->lost);
    return report->errors.count ? err_set(err, PEET_ERR_IO, "%s", report->errors.item[0]) : 0;
}

/* What there is of a recording that was cut off. */
static void say_recorded(const struct report *report, char *ret, size_t room)
{
    if (report->threads)
        snprintf(ret, room, "what was recorded until then is kept: %llu thread%s, %llu instructions",
                 (unsigned long long)report->threads, report->threads == 1 ? "" : "s",
                 (unsigned long long)report->instructions);
    else
        snprintf(ret, room, "nothing was recorded until then, for no thread had marked itself");
}

/* The error if the guest did not end by itself. */
static int system_explain_end(const struct producer_state *s, const struct guest_run *run, const struct report *report,
                              const struct console *console, struct recording *ret, struct peet_err *err)
{
    char text[300];

    if (run->interrupted || run->timed_out)
        say_recorded(report, text, sizeof text);
    if (run->interrupted) {
        ret->status = run->interrupted;
        return err_set(err, PEET_ERR_INTERRUPTED, "interrupted; %s", text);
    }
    if (run->timed_out)
        return err_set(err, PEET_ERR_INTERRUPTED,
                       "time is up: the guest was ended after %llu seconds (--timeout); %s; what the guest said is in "
                       "%s",
                       (unsigned long long)s->config->timeout, text, s->console);
    if (run->never_started)
        return err_set(err, PEET_ERR_IO, "the guest's kernel did not come to its first program in five minutes; see %s",
                       s->console);
    if (run->status) {
        first_complaint(s->log, text, sizeof text);
        if (s->config->is_own && !*text && WIFEXITED(run->status)) { /* by a device for it, as isa-debug-exit */
            ret->status = run->status;
            return 0;
        }
        return err_set(err, PEET_ERR_IO, "QEMU failed%s%s", *text ? ": " : ", and does not say why", text);
    }
    if (!s->config->is_own && !console->done)
        return err_set(err, PEET_ERR_IO, "the guest stopped before its programs ended; see %s%s%.200s", s->console,
                       console->last ? ", which ends: " : "", console->last ? console->last : "");
    return 0;
}

/* After the guest has ended: its state is in console and run. */
static int system_conclude(const struct producer_state *s, const struct guest_run *run, const struct console *console,
                           struct recording *ret, struct peet_err *err)
{
    struct report report = { 0 };

    report_read(s->report, &report);
    int r = system_explain_end(s, run, &report, console, ret, err);
    ret->ran = console->up || (s->config->is_own && (r == 0 || run->timed_out)) || run->interrupted;
    if (ret->ran) {
        if (!run->interrupted)
            tell_of_apps(s, console, ret);
        int wrote = tell_of_plugin(s, &report, ret, r < 0 ? NULL : err); /* the first error is reported */
        r = r < 0 ? r : wrote;
    }
    report_release(&report);
    return r;
}

static int system_record(struct producer_state *s, const struct producer_config *config, const char *out,
                         struct recording *ret, struct peet_err *err)
{
    struct console console;
    struct guest_run run;
    int r = system_prepare(s, config, out, ret, err);

    if (r < 0)
        return r;
    console_init(&console, s->apps.count);
    console.output = s->config->output;
    console.context = s->config->context;
    struct guest_files files = { .report = s->report, .console = s->console };
    struct guest_job job = { .command = &s->command,
                             .emulator = &s->emulator,
                             .files = &files,
                             .log = s->log,
                             .timeout = s->config->timeout,
                             .own_system = s->config->is_own,
                             .console = &console,
                             .progress = config->progress };
    r = guest_run(&job, &run, err);
    if (r == 0)
        r = system_conclude(s, &run, &console, ret, err);
    console_release(&console);
    return r;
}

static void system_release(struct producer_state *s)
{
    const char *const files[] = { s->report, s->initrd, s->log, s->list, s->answer };
    char *half = s->report ? mem_format("%s.new", s->report) : NULL; /* the plugin was killed while it wrote */

    if (half)
        unlink(half);
    free(half);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i])
            unlink(files[i]);
    if (s->folder[0])
        rmdir(s->folder);
    if (s->answer)
        close(s->answer_fd);
    free(s->answer);
    free(s->list);
    free(s->console);
    free(s->report);
    free(s->initrd);
    free(s->log);
    free(s->plugin);
    apps_release(&s->apps);
    emulator_release(&s->emulator);
    words_release(&s->command);
}

const struct producer producer_system = {
    .name = "system",
    .state_size = sizeof(struct producer_state),
    .record = system_record,
    .release = system_release,
};
