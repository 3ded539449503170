/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <string.h>

#include "base/progress.h"
#include "cli/cli.h"
#include "cli/subject.h"
#include "format/check/check.h"
#include "view/view.h"

struct command_state {
    uint64_t most; /* findings of a rule that are listed */
    bool list;     /* list the rules */
    const char *format;
};

/* clang-format off */
static const struct column FINDINGS[] = {
    { "severity", "severity", CELL_TEXT,  false },
    { "rule",     "rule",     CELL_TEXT,  false },
    { "thread",   "thread",   CELL_COUNT, false },
    { "position", "position", CELL_COUNT, false },
    { "address",  "address",  CELL_HEX,   false },
    { "what",     "what",     CELL_TEXT,  false },
    { 0 },
};

static const struct column RULES[] = {
    { "rule",       "rule",       CELL_TEXT,  false },
    { "violations", "violations", CELL_COUNT, false },
    { "warnings",   "warnings",   CELL_COUNT, false },
    { "summary",    "what it asks", CELL_TEXT,  false },
    { 0 },
};

static const struct column ALL_RULES[] = {
    { "rule",    "rule",         CELL_TEXT, false },
    { "summary", "what it asks", CELL_TEXT, false },
    { 0 },
};
/* clang-format on */

/* The tables of the result. */
struct check_output {
    struct result result;
    struct table *findings, *rules;
};

static void check_add_finding(const struct check_finding *f, void *context)
{
    struct table *t = ((struct check_output *)context)->findings;

    table_text(t, f->severity == CHECK_VIOLATION ? "violation" : "warning");
    table_text(t, check_rule_name(f->rule));
    if (f->thread == CHECK_NO_THREAD) {
        table_none(t);
        table_none(t);
    } else {
        table_count(t, f->thread);
        table_count(t, f->position);
    }
    if (f->has_addr)
        table_count(t, f->addr);
    else
        table_none(t);
    table_text(t, f->text);
}

static void check_add_note(const char *text, void *context)
{
    table_note(((struct check_output *)context)->rules, "%s", text);
}

static int check_list_rules(const struct command_state *s)
{
    struct result result = { 0 };
    struct table *t = result_table(&result, "rules", "Rules", ALL_RULES);
    struct peet_err err;

    for (int i = 0; i < CHECK_RULE_COUNT; i++) {
        table_text(t, check_rule_name((enum check_rule)i));
        table_text(t, check_rule_summary((enum check_rule)i));
    }
    int code = view_show(s->format, &result, stdout, &err) < 0 ? fail(&err) : EXIT_OK;
    result_release(&result);
    return code;
}

/* Fills in the table of rules; returns whether there are violations. */
static bool check_sum_up(struct check_output *o, const struct check_totals *totals, uint64_t most)
{
    uint64_t violations = 0, unlisted = 0;

    for (int i = 0; i < CHECK_RULE_COUNT; i++) {
        const uint64_t *n = totals->found[i];
        table_text(o->rules, check_rule_name((enum check_rule)i));
        table_count(o->rules, n[CHECK_VIOLATION]);
        table_count(o->rules, n[CHECK_WARNING]);
        table_text(o->rules, check_rule_summary((enum check_rule)i));
        violations += n[CHECK_VIOLATION];
        for (int j = 0; j < CHECK_SEVERITIES; j++)
            unlisted += n[j] > most ? n[j] - most : 0;
    }
    if (unlisted)
        table_note(o->findings, "%" PRIu64 " more are not listed; --most N lists more of each rule", unlisted);
    return violations > 0;
}

static int check_print_file(const struct command_state *s, struct peet_trace *t)
{
    struct check_output o = { 0 };
    struct check_totals totals;
    struct progress progress;
    struct peet_err err;
    int code = EXIT_OK;

    o.findings = result_table(&o.result, "findings", "Findings", FINDINGS);
    o.rules = result_table(&o.result, "rules", "Rules", RULES);
    progress_init(&progress, stderr, peet_trace_path(t), 0, "instructions");
    struct check_config config = {
        .most = s->most, .found = check_add_finding, .note = check_add_note, .context = &o, .progress = &progress
    };
    int r = check_trace(t, &config, &totals, &err);
    progress_release(&progress);
    if (r < 0) {
        code = fail(&err);
    } else {
        bool violated = check_sum_up(&o, &totals, s->most);
        if (view_show(s->format, &o.result, stdout, &err) < 0)
            code = fail(&err);
        bool damaged = subject_warn_problems(t, totals.damaged) != EXIT_OK;
        if (code == EXIT_OK)
            code = violated ? EXIT_FOUND : damaged ? EXIT_DAMAGED : EXIT_OK;
    }
    result_release(&o.result);
    return code;
}

static int check_main(struct command_state *s, int operands, char **operand)
{
    struct peet_trace *t;
    struct peet_err err;

    if (s->list && operands == 0)
        return check_list_rules(s);
    if (operands != 1 || s->list)
        return usage_error(&cmd_check, !operands ? "no trace given"
                                       : s->list ? "--list needs no trace"
                                                 : "only one trace can be checked at a time");
    if (peet_trace_open(operand[0], &t, &err) < 0)
        return fail(&err);
    int code = check_print_file(s, t);
    peet_trace_free(t);
    return code;
}

static const struct opt options[] = {
    { .name = "most",
      .type = OPT_NUMBER,
      .arg = "N",
      .value = OPTION(most),
      .help = "list at most N findings of each rule (20)" },
    { .name = "list", .type = OPT_FLAG, .value = OPTION(list), .help = "list the rules" },
    FORMAT_OPTION,
    { 0 },
};

static const char *const examples[] = {
    "peet check fft.peet",
    "whether the trace can be what a program did",
    "peet check --most 1000000 --format csv fft.peet",
    "every finding, for a program",
    "peet check --list",
    "what is checked",
    NULL,
};

const struct command cmd_check = {
    .name = "check",
    .summary = "check that a trace is well-formed",
    .operands = "TRACE",
    .options = options,
    .state_size = sizeof(struct command_state),
    .defaults = &(const struct command_state){ .most = 20, .format = "text" },
    .examples = examples,
    .run = check_main,
};
