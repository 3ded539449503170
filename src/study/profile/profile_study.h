/* SPDX-License-Identifier: MIT */
/* The run study `profile`, for verbs that need more of it than its tables. */
#ifndef STUDY_PROFILE_PROFILE_STUDY_H
#define STUDY_PROFILE_PROFILE_STUDY_H

#include "study/profile/profiler.h"
#include "study/run_study.h"

/* Rows of a table, where no option says how many. */
#define PROFILE_TOP_UNSET UINT64_MAX
enum { PROFILE_TOP = 20 };

/* What its report shows, as options say; may be changed before the report. */
struct profile_wants *profile_study_wants(struct run_study_state *s);

/* Before run_studies_open: the profile is to be estimated from samples; config may be NULL: it is not. */
void profile_study_sample(struct run_study_state *s, const struct sample_config *config);

/* The profile; while it runs, the unfinished one; NULL: not opened yet. It belongs to the state. */
struct profile *profile_study_profile(struct run_study_state *s);

#endif
