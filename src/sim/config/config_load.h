/* SPDX-License-Identifier: MIT */
/* What the parts of config_load tell each other. */
#ifndef SIM_CONFIG_CONFIG_LOAD_H
#define SIM_CONFIG_CONFIG_LOAD_H

#include <stdio.h>

#include "sim/config/settings.h"

enum {
    CONFIG_MAX_FILE = 1 << 20, /* bytes of a machine file */
    CONFIG_MAX_INCLUDES = 10,  /* libconfig's own limit, one in another */
    CONFIG_MAX_BASES = 8,      /* machines that start from one another */
};

/* The presets, machines/NAME.cfg, as the Makefile has put them into the program; name NULL at the end. */
struct preset {
    const char *name, *summary, *text;
};
extern const struct preset presets[];

struct loader {
    struct machine_config config;
    char **origin; /* where each setting was said: "x.cfg:12"; NULL: nowhere */
};

/* Puts the settings of a machine, a preset or a file, on top of what is there. */
int loader_take(struct loader *l, const char *name, unsigned depth, struct peet_err *err);

/* The same, of a file's text. Folder: where its @include and its base are looked for. */
int loader_read(struct loader *l, const char *path, const char *folder, const char *text, unsigned depth,
                struct peet_err *err);

/* Sets a setting, or complains; `origin` is where it was said. */
int loader_put(struct loader *l, const char *path, const struct setting_value *v, const char *origin,
               struct peet_err *err);

/* A name in a folder; to be freed. */
char *config_join(const char *folder, const char *name);

/* A file's text; to be freed. */
int config_slurp(const char *path, char **ret, struct peet_err *err);

/* Looks for what libconfig would not survive or not tell, in the text and in all that it includes. */
int config_scan(const char *path, const char *folder, const char *text, unsigned depth, struct peet_err *err);

#endif
