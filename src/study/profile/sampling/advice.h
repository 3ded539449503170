/* SPDX-License-Identifier: MIT */
/* Advice whether and how to sample a program: Table 7 of Martonosi, Gupta and Anderson (1993). Long runs with many misses are sampled best:
 * known misses outweigh unknown references, and there is time for many samples. */
#ifndef STUDY_PROFILE_SAMPLING_ADVICE_H
#define STUDY_PROFILE_SAMPLING_ADVICE_H

#include "study/profile/profile.h"

/* Classes of a program: by miss rate, and by references. */
enum advice_rate { RATE_LOW, RATE_MEDIUM, RATE_HIGH, ADVICE_RATES };
enum advice_size { SIZE_FEW, SIZE_MODERATE, SIZE_MANY, ADVICE_SIZES };

/* Least rate (misses by references) and size (references) of the classes. The paper gives no numbers. */
#define ADVICE_MEDIUM_RATE 0.005
#define ADVICE_HIGH_RATE 0.03
#define ADVICE_MODERATE_SIZE UINT64_C(10000000)
#define ADVICE_MANY_SIZE UINT64_C(1000000000)

/* An entry of the paper's Table 7. */
struct advice {
    enum advice_rate rate;
    enum advice_size size;
    const char *text; /* as in the paper */
    uint64_t length;  /* references of a sample; 0: do not sample */
};

struct advice advice_for(double miss_rate, uint64_t references);
struct advice advice_at(enum advice_rate rate, enum advice_size size);
const char *advice_rate_name(enum advice_rate rate);
const char *advice_size_name(enum advice_size size);

/* The data objects with 90 % of the stall, a line each, in the order of their shares in whole percents, then of names. To be freed. */
char *advice_order(const struct profile *p);

#endif
