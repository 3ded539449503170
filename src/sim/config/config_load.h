/* SPDX-License-Identifier: MIT */
/* Internals of config_load. */
#ifndef SIM_CONFIG_CONFIG_LOAD_H
#define SIM_CONFIG_CONFIG_LOAD_H

#include <stdio.h>

#include "sim/config/settings.h"

enum {
    CONFIG_MAX_FILE = 1 << 20, /* bytes of a machine file */
    CONFIG_MAX_INCLUDES = 10,  /* nested; the limit of libconfig */
    CONFIG_MAX_BASES = 8,      /* nested */
};

/* The presets machines/NAME.cfg, which the Makefile puts into the program; name NULL: the end. */
struct preset {
    const char *name, *summary, *text;
};
extern const struct preset presets[];

/* A machine that is being loaded. */
struct loader {
    struct machine_config config;
    char **origin; /* by setting: the place that set it, "x.cfg:12"; NULL: it has its initial value */
};

/* Sets the settings of a preset or file; others keep their values. */
int loader_take(struct loader *l, const char *name, unsigned depth, struct peet_err *err);

/* Sets the settings of a file's text. folder: of its @include and its base. */
int loader_read(struct loader *l, const char *path, const char *folder, const char *text, unsigned depth,
                struct peet_err *err);

/* Sets a setting; origin: the place that sets it. */
int loader_put(struct loader *l, const char *path, const struct setting_value *v, const char *origin,
               struct peet_err *err);

/* A name in a folder; to be freed. */
char *config_join(const char *folder, const char *name);

/* A file's text; to be freed. */
int config_slurp(const char *path, char **ret, struct peet_err *err);

/* Reports mistakes that libconfig does not report, or that end the program, in the text and its @include files. */
int config_scan(const char *path, const char *folder, const char *text, unsigned depth, struct peet_err *err);

#endif
