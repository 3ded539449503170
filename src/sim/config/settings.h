/* SPDX-License-Identifier: MIT */
/* The settings of a machine as one table: member of struct machine_config, range and initial value of each. Machine files, --set, range checks,
 * `peet list settings` and docs/machine-config.md follow it. */
#ifndef SIM_CONFIG_SETTINGS_H
#define SIM_CONFIG_SETTINGS_H

#include <stddef.h>

#include "sim/config/config.h"

/* The modules of one kind, by name. */
struct registry {
    const char *name; /* "protocols" */
    const char *title;
    /* The i-th, its name and its summary; NULL at the end. */
    const void *(*at)(size_t i, const char **ret_name, const char **ret_summary);
};
enum { REGISTRIES = 7 };
extern const struct registry registries[REGISTRIES];

/* The type of a setting. */
enum setting_type {
    SETTING_TEXT,
    SETTING_NUMBER,
    SETTING_BYTES, /* a number that is shown as 64K */
    SETTING_SWITCH,
    SETTING_WORD, /* one of a few words; its number is stored */
    SETTING_KIND, /* a module of a registry */
};

/* A setting: where its value is stored, and what it may be. */
struct setting {
    const char *path; /* "cache.l1.bytes" */
    enum setting_type type;
    size_t offset, size;             /* in struct machine_config */
    uint64_t least, most;            /* of numbers */
    bool is_power;                   /* of two, if it is not 0 */
    const char *const *words;        /* SETTING_WORD: NULL at the end */
    const struct registry *registry; /* SETTING_KIND */
    const char *initial;             /* as --set would say it */
    const char *help;
};

const struct setting *setting_at(size_t i); /* NULL at the end */
const struct setting *setting_find(const char *path);
size_t setting_index(const struct setting *s);
bool setting_is_group(const char *path); /* whether there are settings in it */

/* Sets err to the complaint about a path that is no setting, with the nearest name that would be one. */
int setting_unknown(const char *path, struct peet_err *err);

/* The type of a value that a file or the command line gives. */
enum value_type {
    VALUE_NUMBER,
    VALUE_TEXT,
    VALUE_SWITCH,
    VALUE_UNTYPED, /* of a command line: text that may also be a number or a switch */
    VALUE_OTHER,   /* of no setting's type: `text` names it, "a list" */
};
/* A value that a file or the command line gives. */
struct setting_value {
    enum value_type type;
    int64_t number; /* also of a switch: 0 or 1 */
    const char *text;
};

/* Sets the member of c, if type and range allow the value. The error begins with the path. */
int setting_put(const struct setting *s, struct machine_config *c, const struct setting_value *v, struct peet_err *err);

/* Whether the member's value is in range. */
int setting_check(const struct setting *s, const struct machine_config *c, struct peet_err *err);

/* The member's value, as for --set; the values that it can have. */
void setting_show(const struct setting *s, const struct machine_config *c, char *buffer, size_t size);
void setting_range(const struct setting *s, char *buffer, size_t size);

/* The number of a text like 4096, 0x1000, 4K; false: it is none, or too great. */
bool setting_number(const char *text, uint64_t *ret);

/* Two settings that exclude each other, or one with a wrong value. */
struct conflict {
    const char *path;  /* the setting that the error names first */
    const char *other; /* the setting that it conflicts with; NULL: none */
};

/* Checks as config_check does; *ret gets the settings of the first error. */
int config_find_conflict(const struct machine_config *c, struct conflict *ret, struct peet_err *err);

#endif
