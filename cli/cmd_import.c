/* SPDX-License-Identifier: MIT */
#include "capture/import/import.h"
#include "cli/cli.h"

struct command_state {
    const char *output;
    struct {
#define X(name, summary) bool name;
        IMPORTERS(X)
#undef X
    } is_given; /* by importer */
};

static int import_main(struct command_state *s, int operands, char **operand)
{
    const struct importer *importer = NULL;
    int formats = 0;
    struct peet_err err;

#define X(name, summary) \
    if (s->is_given.name || !importer) \
        importer = &importer_##name; \
    formats += s->is_given.name;
    IMPORTERS(X)
#undef X
    if (formats > 1)
        return usage_error(&cmd_import, "more than one format given");
    if (operands > 1)
        return usage_error(&cmd_import, "one file can be imported at a time; '%s' is the second", operand[1]);
    if (!s->output)
        return usage_error(&cmd_import, "no output given: -o OUT.peet, or -o - for standard output");
    if (import_trace(importer, operands ? operand[0] : "-", s->output, &err) < 0)
        return fail(&err);
    return EXIT_OK;
}

static const struct opt options[] = {
    { .name = "output",
      .letter = 'o',
      .type = OPT_STRING,
      .arg = "FILE",
      .value = OPTION(output),
      .help = "where the trace goes; - is standard output" },
#define X(name_, summary) \
    { .name = #name_, .type = OPT_FLAG, .value = OPTION(is_given.name_), .help = "read " summary },
    IMPORTERS(X)
#undef X
        { 0 },
};

static const char *const examples[] = {
    "peet import --text run.txt -o run.peet",
    "a trace from its text form",
    "peet dump --thread 2 run.peet | peet import -o two.peet",
    "a trace of one thread alone",
    "sed s/0x404040/0x404080/ run.txt | peet import -o - | peet info -",
    "nothing but pipes",
    NULL,
};

const struct command cmd_import = {
    .name = "import",
    .summary = "make a trace from something else",
    .operands = "[FILE|-]",
    .options = options,
    .state_size = sizeof(struct command_state),
    .examples = examples,
    .run = import_main,
};
