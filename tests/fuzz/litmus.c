/* SPDX-License-Identifier: MIT */
/* Any bytes as a litmus test, and, before a full stop and a newline at the end, as one in the short notation: read, explored as far as some thousand
 * states go, and put into words. */
#include "fuzz.h"
#include "litmus/explore.h"

static void explore(struct litmus_test *t)
{
    char *condition = litmus_condition_text(t);

    if (!condition[0])
        abort();
    free(condition);
    for (size_t i = 0; memory_orders[i]; i++) {
        struct explore_config config = { .order = memory_orders[i], .most_states = 3000 };
        struct litmus_outcomes o;
        struct peet_err err = { 0 };
        size_t lines;
        if (fuzz_check(litmus_explore(t, &config, &o, &err), &err) < 0)
            continue;
        if (!o.states || o.matching > o.count || (o.matching && t->quantifier != LITMUS_FORALL && !o.step))
            abort();
        free(litmus_witness(t, o.step, o.steps, &lines));
        litmus_outcomes_release(&o);
    }
    litmus_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct litmus_test *t;
    struct peet_err err = { 0 };
    char program[200];

    if (fuzz_check(litmus_parse((const char *)data, size, "file", &t, &err), &err) == 0)
        explore(t);
    if (size > 1 && size < sizeof program && memcmp(data + size - 2, ".\n", 2) == 0) {
        memcpy(program, data, size);
        program[size - 2] = '\0';
        if (fuzz_check(litmus_parse_short("name", program, "x=1", &t, &err), &err) == 0)
            explore(t);
    }
    return 0;
}
