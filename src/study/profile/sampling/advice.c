/* SPDX-License-Identifier: MIT */
#include "study/profile/sampling/advice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* ---- the table ---- */

enum { SHORT = 500000, MEDIUM = 2000000, LONG = 8000000 };

static const struct {
    const char *text;
    uint64_t length;
} TABLE[ADVICE_RATES][ADVICE_SIZES] = {
    [RATE_LOW] = { { "no profile needed", 0 },
                   { "profile, without sampling", 0 },
                   { "profile, with long samples", LONG } },
    [RATE_MEDIUM] = { { "profile, without sampling", 0 },
                      { "profile, possibly with sampling", MEDIUM },
                      { "profile, with medium samples", MEDIUM } },
    [RATE_HIGH] = { { "profile, without sampling", 0 },
                    { "profile, with sampling", SHORT },
                    { "profile, with short samples", SHORT } },
};

struct advice advice_at(enum advice_rate rate, enum advice_size size)
{
    return (struct advice){ rate, size, TABLE[rate][size].text, TABLE[rate][size].length };
}

struct advice advice_for(double miss_rate, uint64_t references)
{
    return advice_at(miss_rate < ADVICE_MEDIUM_RATE ? RATE_LOW
                     : miss_rate < ADVICE_HIGH_RATE ? RATE_MEDIUM
                                                    : RATE_HIGH,
                     references < ADVICE_MODERATE_SIZE ? SIZE_FEW
                     : references < ADVICE_MANY_SIZE   ? SIZE_MODERATE
                                                       : SIZE_MANY);
}

const char *advice_rate_name(enum advice_rate rate)
{
    static const char *const names[] = { "low", "medium", "high" };

    return names[rate];
}

const char *advice_size_name(enum advice_size size)
{
    static const char *const names[] = { "few", "moderate", "many" };

    return names[size];
}

/* ---- the order of data ---- */

/* A data object's part of the stall. */
struct stall_share {
    uint64_t stall;   /* cycles */
    double percent;   /* of the stall of all data; a whole number */
    const char *name; /* of the data object */
};

static int compare_stall_shares(const void *a, const void *b)
{
    const struct stall_share *x = a, *y = b;

    if (x->percent != y->percent)
        return x->percent > y->percent ? -1 : 1;
    return strcmp(x->name, y->name);
}

char *advice_order(const struct profile *p)
{
    uint32_t objects = objects_count(p->objects);
    struct stall_share *share = mem_alloc(objects + 1, sizeof *share);
    uint64_t all = 0, sum = 0;
    char *text = mem_string("");

    for (size_t i = 0; i < p->accesses; i++)
        for (unsigned k = 0; k < CAUSES; k++) {
            share[p->access[i].object].stall += p->access[i].stall[k];
            all += p->access[i].stall[k];
        }
    for (uint32_t i = 0; i < objects; i++) {
        share[i].name = objects_info(p->objects, i)->name;
        share[i].percent = all ? round(100.0 * (double)share[i].stall / (double)all) : 0;
    }
    qsort(share, objects, sizeof *share, compare_stall_shares);
    for (uint32_t i = 0; i < objects && (double)sum < 0.9 * (double)all; sum += share[i++].stall) {
        char *more = mem_format("%s%s\n", text, share[i].name);
        free(text);
        text = more;
    }
    free(share);
    return text;
}
