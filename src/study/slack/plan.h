/* SPDX-License-Identifier: MIT */
/* Plans: how a unit could be made weaker, and the relaxation with which a prediction simulates it. See docs/design/slack.md. */
#ifndef STUDY_SLACK_PLAN_H
#define STUDY_SLACK_PLAN_H

#include "study/slack/units.h"

/* A way to change a unit. */
struct slack_plan {
    uint8_t change;    /* enum relax_change */
    bool keeps;        /* all dependences of the run remain ordered */
    bool is_by_thread; /* SPLIT: by group of threads, not by data object */
    uint32_t parts;    /* SPLIT, GROUPS: number of parts that threads use */
};

enum { SLACK_PLANS = 4 };

/* The ways that make sense, the best one first; all that `ret` has room for. Returns their number. */
unsigned slack_plans(struct units *u, uint32_t unit, struct slack_plan ret[SLACK_PLANS]);

/* Parts into which the data objects of a lock fall, so that no critical section uses two: by name of the object, its part plus 1 (0: carries no
 * dependence). To be freed. *ret_parts: number of parts. */
uint32_t *slack_object_parts(struct units *u, const struct sync_unit *x, uint32_t *ret_parts);

/* The relaxation of a plan; to be released. addrs and sites are those of the unit, which must outlive it. */
void slack_relax(struct units *u, uint32_t unit, const struct slack_plan *plan, struct relaxation *ret);
void slack_relax_release(struct relaxation *r);

#endif
