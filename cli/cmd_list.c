/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "cli/cli.h"
#include "sim/coherence/protocol.h"
#include "sim/config/settings.h"
#include "view/view.h"

struct command_state {
    const char *format;
};

/* clang-format off */
static const struct column MACHINES[] = {
    { "machine",  "machine",    CELL_TEXT,  false },
    { "cpus",     "processors", CELL_COUNT, false },
    { "protocol", "protocol",   CELL_TEXT,  false },
    { "fabric",   "fabric",     CELL_TEXT,  false },
    { "summary",  "what it is", CELL_TEXT,  false },
    { 0 },
};

static const struct column MODULES[] = {
    { "name",    "name",       CELL_TEXT, false },
    { "summary", "what it is", CELL_TEXT, false },
    { 0 },
};

static const struct column STATES[] = {
    { "protocol", "protocol",   CELL_TEXT, false },
    { "state",    "state",      CELL_TEXT, false },
    { "meaning",  "what it is", CELL_TEXT, false },
    { 0 },
};

static const struct column SETTINGS[] = {
    { "setting", "setting",    CELL_TEXT, false },
    { "values",  "values",     CELL_TEXT, false },
    { "default", "default",    CELL_TEXT, false },
    { "summary", "what it is", CELL_TEXT, false },
    { 0 },
};
/* clang-format on */

static int list_machines(struct result *r, struct peet_err *err)
{
    struct table *t = result_table(r, "machines", "Machines", MACHINES);
    struct machine_config c;
    const char *name, *summary;

    for (size_t i = 0; (name = config_preset(i, &summary)); i++) {
        int code = config_load(&c, name, NULL, 0, err);
        if (code < 0)
            return code;
        table_text(t, name);
        table_count(t, c.cpus);
        table_text(t, c.protocol->name);
        table_text(t, c.fabric_kind->name);
        table_text(t, summary);
    }
    return 0;
}

static void list_modules(struct result *r, const struct registry *registry)
{
    struct table *t = result_table(r, registry->name, registry->title, MODULES);
    const char *name, *summary;

    for (size_t i = 0; registry->at(i, &name, &summary); i++) {
        table_text(t, name);
        table_text(t, summary);
    }
}

static void list_states(struct result *r)
{
    struct table *t = result_table(r, "states", "States of the protocols", STATES);

    for (size_t i = 0; protocols[i]; i++)
        for (unsigned s = 0; s < protocols[i]->states; s++) {
            table_text(t, protocols[i]->name);
            table_text(t, protocols[i]->state[s].name);
            table_text(t, protocols[i]->state[s].meaning);
        }
}

static void list_settings(struct result *r)
{
    struct table *t = result_table(r, "settings", "Settings", SETTINGS);
    const struct setting *s;
    char range[300];

    for (size_t i = 0; (s = setting_at(i)); i++) {
        setting_range(s, range, sizeof range);
        table_text(t, s->path);
        table_text(t, range);
        table_text(t, s->initial);
        table_text(t, s->help);
    }
}

/* ---- the lists ---- */

enum { MACHINE_LIST, FIRST_REGISTRY, SETTING_LIST = FIRST_REGISTRY + REGISTRIES, LISTS };

static const char *list_name_of(size_t i, const void *context)
{
    (void)context;
    return i == MACHINE_LIST ? "machines" : i == SETTING_LIST ? "settings" : registries[i - FIRST_REGISTRY].name;
}

static int list_find(const char *name, bool wanted[LISTS])
{
    for (size_t i = 0; i < LISTS; i++) {
        if (!strcmp(list_name_of(i, NULL), name)) {
            wanted[i] = true;
            return EXIT_OK;
        }
    }
    const char *near = opt_nearest(name, LISTS, list_name_of, NULL);
    if (near)
        return usage_error(&cmd_list, "there is no list of '%s'; did you mean '%s'?", name, near);
    return usage_error(&cmd_list, "there is no list of '%s'", name);
}

static void list_registry(struct result *r, const struct registry *registry)
{
    list_modules(r, registry);
    if (!strcmp(registry->name, "protocols"))
        list_states(r);
}

static int list_main(struct command_state *s, int operands, char **operand)
{
    struct result result = { 0 };
    struct peet_err err;
    bool wanted[LISTS] = { false };
    int r = 0;

    for (int i = 0; i < operands; i++)
        if (list_find(operand[i], wanted) != EXIT_OK)
            return EXIT_USAGE;
    if (!operands || wanted[MACHINE_LIST])
        r = list_machines(&result, &err);
    for (size_t i = 0; i < REGISTRIES; i++)
        if (!operands || wanted[FIRST_REGISTRY + i])
            list_registry(&result, &registries[i]);
    if (!operands || wanted[SETTING_LIST])
        list_settings(&result);
    if (r == 0)
        r = view_show(s->format, &result, stdout, &err);
    result_release(&result);
    return r < 0 ? fail(&err) : EXIT_OK;
}

static const struct opt options[] = {
    FORMAT_OPTION,
    { 0 },
};

static const char *const examples[] = {
    "peet list machines",
    "the machines that peet knows by name",
    "peet list protocols locks",
    "what coherence.protocol and lock.kind can be",
    "peet list settings --format csv",
    "every setting of a machine with its values and its default, for a program",
    NULL,
};

const struct command cmd_list = {
    .name = "list",
    .summary = "list machines, their settings, and what they can be made of",
    .operands = "[machines|protocols|locks|barriers|schedulers|fabrics|replacements|orders|settings]…",
    .options = options,
    .state_size = sizeof(struct command_state),
    .defaults = &(const struct command_state){ .format = "text" },
    .examples = examples,
    .run = list_main,
};
